//! The value store: immutable content under the SHA-256 of its bytes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prose_model::{Digest, INLINE_LIMIT, Text, TextPart, TextRef, Value};
use sha2::{Digest as _, Sha256};

use crate::error::io;
use crate::fs::{Sync, create_dir, open_file, read_file, sync_dir, temporary, write_atomic};
use crate::{Result, StateError};

/// Longest summary, in characters.
const SUMMARY_LIMIT: usize = 120;

/// Hides what must not be stored of a text that comes in pieces.
pub trait Hide {
    /// Takes a piece and gives what may be stored now, possibly nothing.
    fn push(&mut self, piece: &str) -> String;
    /// The rest, when no piece follows. What comes then is another text.
    fn finish(&mut self) -> String;

    /// A text that comes at once.
    fn whole(&mut self, text: &str) -> String {
        let mut hidden = self.push(text);
        hidden.push_str(&self.finish());
        hidden
    }
}

/// Hides nothing.
struct Everything;

impl Hide for Everything {
    fn push(&mut self, piece: &str) -> String {
        piece.to_owned()
    }
    fn finish(&mut self) -> String {
        String::new()
    }
}

/// Content by digest, in a folder.
#[derive(Debug, Clone)]
pub struct ValueStore {
    dir: PathBuf,
    /// Where content is when it is not in files.
    memory: Option<Arc<Mutex<InMemory>>>,
}

/// Content that is kept by the process alone.
type InMemory = HashMap<Digest, Arc<[u8]>>;

impl ValueStore {
    /// The store in a folder, which is created when missing.
    pub fn open(dir: &Path) -> Result<ValueStore> {
        create_dir(dir)?;
        Ok(ValueStore::at(dir))
    }

    /// The store in a folder for reading only: nothing is created.
    pub fn at(dir: &Path) -> ValueStore {
        ValueStore {
            dir: dir.to_owned(),
            memory: None,
        }
    }

    /// A store in memory: shared by its clones, gone with the last of them.
    pub fn in_memory() -> ValueStore {
        ValueStore {
            dir: PathBuf::new(),
            memory: Some(Arc::default()),
        }
    }

    /// What is stored in memory under a name; an error when this store is in memory and has no such content.
    fn remembered(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>> {
        let Some(memory) = &self.memory else {
            return Ok(None);
        };
        let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        match memory.get(digest) {
            Some(content) => Ok(Some(content.clone())),
            None => Err(StateError::ValueMissing {
                digest: digest.clone(),
                store: self.dir.clone(),
            }),
        }
    }

    /// Stores content and returns its name. When this returns the content is on disk. The same content is stored once.
    pub fn put(&self, content: &[u8]) -> Result<Digest> {
        let digest = digest_of(content);
        if let Some(memory) = &self.memory {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.entry(digest.clone()).or_insert_with(|| content.into());
            return Ok(digest);
        }
        let path = self.dir.join(digest.as_str());
        // Presence is no proof: damage is repaired by the next one who has the content at hand.
        let present = path
            .metadata()
            .is_ok_and(|file| file.len() == content.len() as u64)
            && self.verify(&digest).is_ok();
        if !present {
            write_atomic(&path, content, Sync::Durable, "value")?;
        }
        Ok(digest)
    }

    /// Stores text and returns a reference to it.
    pub fn put_text(&self, text: &str) -> Result<TextRef> {
        Ok(TextRef {
            sha256: self.put(text.as_bytes())?,
            len: text.len() as u64,
            summary: summarize(text),
        })
    }

    /// The content, checked against its name.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>> {
        if let Some(content) = self.remembered(digest)? {
            return Ok(content.to_vec());
        }
        let path = self.path(digest)?;
        let content = read_file(&path).map_err(|error| self.missing(digest, &path, error))?;
        if digest_of(&content) == *digest {
            Ok(content)
        } else {
            Err(self.damaged(digest))
        }
    }

    /// The content as text, checked against its name.
    pub fn get_text(&self, digest: &Digest) -> Result<String> {
        // What is not UTF-8 was never stored as text.
        String::from_utf8(self.get(digest)?).map_err(|_| self.damaged(digest))
    }

    /// At most `len` bytes from `offset` on; fewer, or none, at the end. Not checked: checking means reading it all.
    pub fn read_range(&self, digest: &Digest, offset: u64, len: usize) -> Result<Vec<u8>> {
        if let Some(content) = self.remembered(digest)? {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
            return Ok(content[from..from.saturating_add(len).min(content.len())].to_vec());
        }
        let path = self.path(digest)?;
        let mut file = open_file(&path).map_err(|error| self.missing(digest, &path, error))?;
        file.seek(SeekFrom::Start(offset)).map_err(io("read", &path))?;
        let mut content = Vec::new();
        file.take(len as u64)
            .read_to_end(&mut content)
            .map_err(io("read", &path))?;
        Ok(content)
    }

    /// Checks that the content is there and is what its name says.
    pub fn verify(&self, digest: &Digest) -> Result<()> {
        if self.remembered(digest)?.is_some() {
            return Ok(());
        }
        let path = self.path(digest)?;
        let mut file = open_file(&path).map_err(|error| self.missing(digest, &path, error))?;
        let mut hasher = Sha256::new();
        std::io::copy(&mut file, &mut hasher).map_err(io("read", &path))?;
        if hex(&hasher.finalize()) == digest.as_str() {
            Ok(())
        } else {
            Err(self.damaged(digest))
        }
    }

    /// Where the content lies.
    pub fn path(&self, digest: &Digest) -> Result<PathBuf> {
        let name = digest.as_str();
        // A digest may come from a journal or a session: it must not be able to name another file.
        if name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(self.dir.join(name))
        } else {
            Err(StateError::BadDigest {
                name: name.to_owned(),
            })
        }
    }

    /// Stores text that is read piece by piece, so that its length costs no memory, and returns a reference to it. What
    /// is no UTF-8 is replaced. `head` is the beginning of the text, for the summary.
    pub fn put_stream(&self, text: &mut dyn std::io::Read, head: &str) -> Result<TextRef> {
        self.put_hidden(text, head, &mut Everything)
    }

    /// The same for a text of which not everything may be stored. `head` is what may be shown of its beginning.
    pub fn put_hidden(
        &self,
        text: &mut dyn std::io::Read,
        head: &str,
        hide: &mut dyn Hide,
    ) -> Result<TextRef> {
        if self.memory.is_some() {
            let mut bytes = Vec::new();
            text.read_to_end(&mut bytes).map_err(io("read", &self.dir))?;
            return self.put_text(&hide.whole(&String::from_utf8_lossy(&bytes)));
        }
        let tmp = temporary(&self.dir.join("stream"));
        let stored = self.write_stream(text, &tmp, hide);
        let (digest, len) = match stored {
            Ok(stored) => stored,
            Err(error) => {
                let _ = fs::remove_file(&tmp);
                return Err(error);
            }
        };
        let path = self.dir.join(digest.as_str());
        fs::rename(&tmp, &path).map_err(io("write", &path))?;
        sync_dir(&self.dir)?;
        Ok(TextRef {
            sha256: digest,
            len,
            summary: summarize(head),
        })
    }

    fn write_stream(
        &self,
        text: &mut dyn std::io::Read,
        tmp: &Path,
        hide: &mut dyn Hide,
    ) -> Result<(Digest, u64)> {
        const PIECE: usize = 256 * 1024;
        let mut file = File::create_new(tmp).map_err(io("create", tmp))?;
        let mut hasher = Sha256::new();
        let mut len = 0;
        let mut put = |piece: &str| {
            hasher.update(piece);
            len += piece.len() as u64;
            file.write_all(piece.as_bytes()).map_err(io("write", tmp))
        };
        let mut buffer = vec![0; PIECE];
        // Bytes at the start of the buffer that may be the beginning of a character.
        let mut kept = 0;
        loop {
            let read = text.read(&mut buffer[kept..]).map_err(io("read", tmp))?;
            let filled = kept + read;
            let mut rest = &buffer[..filled];
            while !rest.is_empty() {
                let valid = match std::str::from_utf8(rest) {
                    Ok(valid) => valid,
                    Err(error) => std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(),
                };
                put(&hide.push(valid))?;
                rest = &rest[valid.len()..];
                match std::str::from_utf8(rest) {
                    Ok(_) => {}
                    // Cut in the middle of a character: the next piece may complete it.
                    Err(error) if error.error_len().is_none() && read > 0 => break,
                    Err(error) => {
                        put(&hide.push("\u{fffd}"))?;
                        rest = &rest[error.error_len().unwrap_or(rest.len())..];
                    }
                }
            }
            kept = rest.len();
            if read == 0 {
                break;
            }
            let from = filled - kept;
            buffer.copy_within(from..filled, 0);
        }
        put(&hide.finish())?;
        file.sync_all().map_err(io("sync", tmp))?;
        Ok((Digest::from(hex(&hasher.finalize())), len))
    }

    /// Text as a value holds it: inline up to [`INLINE_LIMIT`], else stored.
    pub fn externalize_text(&self, text: &str) -> Result<Text> {
        if text.len() <= INLINE_LIMIT {
            Ok(Text::inline(text))
        } else {
            Ok(Text::reference(self.put_text(text)?))
        }
    }

    /// The value with every inline text over the limit stored, at any depth. References stay what they are.
    pub fn externalize(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::Text(text) => Value::Text(self.externalize_rope(text)?),
            Value::List(items) => Value::List(Arc::new(
                items
                    .iter()
                    .map(|item| self.externalize(item))
                    .collect::<Result<_>>()?,
            )),
            Value::Record(entries) => Value::Record(Arc::new(
                entries
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), self.externalize(item)?)))
                    .collect::<Result<_>>()?,
            )),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Error(_) => value.clone(),
        })
    }

    fn externalize_rope(&self, text: &Text) -> Result<Text> {
        let mut parts = Vec::with_capacity(text.parts.len());
        for part in &text.parts {
            match part {
                TextPart::Inline(inline) if inline.len() > INLINE_LIMIT => {
                    parts.push(TextPart::Ref(self.put_text(inline)?));
                }
                _ => parts.push(part.clone()),
            }
        }
        Ok(Text { parts })
    }

    /// The whole text, references read.
    pub fn materialize(&self, text: &Text) -> Result<String> {
        let mut whole = String::new();
        for part in &text.parts {
            match part {
                TextPart::Inline(inline) => whole.push_str(inline),
                TextPart::Ref(reference) => whole.push_str(&self.get_text(&reference.sha256)?),
            }
        }
        Ok(whole)
    }

    /// Stores the whole of a text, references read piece by piece, and returns a reference to it.
    pub fn put_whole(&self, text: &Text) -> Result<TextRef> {
        if let [TextPart::Ref(reference)] = text.parts.as_slice() {
            return Ok(reference.clone());
        }
        let head = match text.parts.first() {
            Some(TextPart::Inline(inline)) => inline,
            Some(TextPart::Ref(reference)) => reference.summary.as_str(),
            None => "",
        };
        let mut whole = Whole {
            store: self,
            parts: text.parts.iter(),
            open: Box::new(std::io::empty()),
        };
        self.put_stream(&mut whole, head)
    }

    /// Checks that all that a text refers to is there and is what its name says.
    pub fn verify_text(&self, text: &Text) -> Result<()> {
        text.parts.iter().try_for_each(|part| match part {
            TextPart::Inline(_) => Ok(()),
            TextPart::Ref(reference) => self.verify(&reference.sha256),
        })
    }

    /// Writes the whole text, references read piece by piece, so that its length costs no memory. Not checked:
    /// [`ValueStore::verify_text`] does that.
    pub fn copy_text(&self, text: &Text, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        for part in &text.parts {
            match part {
                TextPart::Inline(inline) => out.write_all(inline.as_bytes())?,
                TextPart::Ref(reference) => {
                    let digest = &reference.sha256;
                    match self.remembered(digest).map_err(std::io::Error::other)? {
                        Some(content) => out.write_all(&content)?,
                        None => {
                            let path = self.path(digest).map_err(std::io::Error::other)?;
                            std::io::copy(&mut open_file(&path)?, out)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The value as JSON, references read. A number JSON can't write is null; an error is an object of its fields.
    pub fn to_json(&self, value: &Value) -> Result<serde_json::Value> {
        Ok(match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number) => json_number(*number),
            Value::Text(text) => self.materialize(text)?.into(),
            Value::List(items) => items
                .iter()
                .map(|item| self.to_json(item))
                .collect::<Result<Vec<_>>>()?
                .into(),
            Value::Record(entries) => entries
                .iter()
                .map(|(key, item)| Ok((key.clone(), self.to_json(item)?)))
                .collect::<Result<serde_json::Map<_, _>>>()?
                .into(),
            Value::Error(error) => serde_json::json!({
                "kind": error.kind,
                "message": error.message,
                "statement": error.place(),
                "attempts": error.attempts,
            }),
        })
    }

    /// The value as it stands in a binding file: text as it is, everything else as fenced JSON.
    pub fn render(&self, value: &Value) -> Result<String> {
        match value {
            Value::Text(text) => self.materialize(text),
            _ => {
                let json = serde_json::to_string_pretty(&self.to_json(value)?).unwrap_or_default();
                let fence = crate::binding::fence_for(&json);
                Ok(format!("{fence}json\n{json}\n{fence}"))
            }
        }
    }

    fn missing(&self, digest: &Digest, path: &Path, error: std::io::Error) -> StateError {
        if error.kind() == std::io::ErrorKind::NotFound {
            StateError::ValueMissing {
                digest: digest.clone(),
                store: self.dir.clone(),
            }
        } else {
            io("read", path)(error)
        }
    }

    fn damaged(&self, digest: &Digest) -> StateError {
        StateError::ValueDamaged {
            digest: digest.clone(),
            store: self.dir.clone(),
        }
    }
}

/// The name of some content.
pub fn digest_of(content: &[u8]) -> Digest {
    Digest::from(hex(&Sha256::digest(content)))
}

/// Reads a text from its first part to its last.
struct Whole<'t> {
    store: &'t ValueStore,
    parts: std::slice::Iter<'t, TextPart>,
    open: Box<dyn std::io::Read + 't>,
}

impl std::io::Read for Whole<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.open.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            self.open = match self.parts.next() {
                None => return Ok(0),
                Some(TextPart::Inline(inline)) => Box::new(inline.as_bytes()),
                Some(TextPart::Ref(reference)) => {
                    let digest = &reference.sha256;
                    match self.store.remembered(digest).map_err(std::io::Error::other)? {
                        Some(content) => Box::new(std::io::Cursor::new(content)),
                        None => {
                            let path = self.store.path(digest).map_err(std::io::Error::other)?;
                            Box::new(open_file(&path)?)
                        }
                    }
                }
            };
        }
    }
}

/// One line about a text: its first line that says something, without Markdown's marks, cut at a word.
pub fn summarize(text: &str) -> String {
    let line = text
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches(['#', '>', '*', '-', '`', ' ', '\u{feff}'])
                .trim_end()
        })
        .find(|line| line.chars().any(char::is_alphanumeric))
        .unwrap_or_default();
    // Control characters would let a session's text act on the terminal that shows the summary.
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let Some((cut, _)) = line.char_indices().nth(SUMMARY_LIMIT) else {
        return line;
    };
    let cut = line[..cut].rfind(' ').filter(|at| *at > 0).unwrap_or(cut);
    format!("{}…", line[..cut].trim_end())
}

/// Whole numbers without a fraction, as a person writes them.
fn json_number(number: f64) -> serde_json::Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        (number as i64).into()
    } else {
        serde_json::Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn store() -> (tempfile::TempDir, ValueStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = ValueStore::open(&dir.path().join("values")).unwrap();
        (dir, store)
    }

    #[test]
    fn same_content_is_stored_once_and_named_by_sha256() {
        let (_dir, store) = store();
        let digest = store.put(b"abc").unwrap();
        assert_eq!(
            digest.as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(store.put(b"abc").unwrap(), digest);
        assert_eq!(fs::read_dir(&store.dir).unwrap().count(), 1);
    }

    #[test]
    fn damage_and_absence_are_told_apart_and_put_repairs() {
        let (_dir, store) = store();
        let digest = store.put(b"some content").unwrap();
        fs::write(store.path(&digest).unwrap(), b"same content").unwrap();
        assert!(matches!(store.get(&digest), Err(StateError::ValueDamaged { .. })));
        assert!(matches!(
            store.verify(&digest),
            Err(StateError::ValueDamaged { .. })
        ));
        store.put(b"some content").unwrap();
        assert_eq!(store.get(&digest).unwrap(), b"some content");
        fs::remove_file(store.path(&digest).unwrap()).unwrap();
        assert!(matches!(store.get(&digest), Err(StateError::ValueMissing { .. })));
    }

    #[test]
    fn a_digest_names_no_other_file() {
        let (_dir, store) = store();
        for name in [
            "../journal.jsonl",
            "",
            "ABC",
            &"A".repeat(64),
            &format!("{}/", "a".repeat(63)),
        ] {
            assert!(
                matches!(store.get(&Digest::from(name)), Err(StateError::BadDigest { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn text_over_the_limit_becomes_a_reference_with_a_summary() {
        let (_dir, store) = store();
        let at_limit = "é".repeat(INLINE_LIMIT / 2);
        assert_eq!(
            store.externalize_text(&at_limit).unwrap().as_inline().unwrap(),
            at_limit
        );
        let over = format!("# The *findings*\n\n{}", "x".repeat(INLINE_LIMIT));
        let value = Value::list(vec![Value::text(over.as_str()), Value::Bool(true)]);
        let Value::List(items) = store.externalize(&value).unwrap() else {
            panic!("a list stays a list")
        };
        let Value::Text(text) = &items[0] else {
            panic!("a text stays a text")
        };
        let [TextPart::Ref(reference)] = text.parts.as_slice() else {
            panic!("{text:?}")
        };
        assert_eq!(
            (reference.len, reference.summary.as_str()),
            (over.len() as u64, "The *findings*")
        );
        assert_eq!(store.materialize(text).unwrap(), over);
        assert_eq!(store.read_range(&reference.sha256, 2, 3).unwrap(), b"The");
        assert_eq!(
            store
                .read_range(&reference.sha256, over.len() as u64 + 9, 3)
                .unwrap(),
            b""
        );
    }

    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(summarize("\n\n---\n> Quoted *text*\nmore"), "Quoted *text*");
        assert_eq!(summarize("```\n***\n"), "");
        assert_eq!(summarize("a\u{1b}[31mb"), "a [31mb");
        let long = summarize(&"word ".repeat(100));
        assert!(
            long.ends_with("word…") && long.chars().count() <= SUMMARY_LIMIT + 1,
            "{long}"
        );
        assert_eq!(summarize(&"x".repeat(500)).chars().count(), SUMMARY_LIMIT + 1);
    }

    #[test]
    fn json_reads_as_a_person_writes() {
        let (_dir, store) = store();
        let value = Value::record([
            ("n".to_owned(), Value::Number(3.0)),
            ("x".to_owned(), Value::Number(0.1)),
            ("none".to_owned(), Value::Null),
            ("list".to_owned(), Value::list(vec![Value::text("a```b")])),
        ]);
        expect_test::expect![[r#"
            ````json
            {
              "n": 3,
              "x": 0.1,
              "none": null,
              "list": [
                "a```b"
              ]
            }
            ````"#]]
        .assert_eq(&store.render(&value).unwrap());
    }

    #[test]
    fn a_stream_is_stored_as_the_text_that_it_reads_as() {
        /// Gives one byte at a time, so that every character is cut.
        struct Slow<'a>(&'a [u8]);
        impl std::io::Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else {
                    return Ok(0);
                };
                buffer[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let (_dir, store) = store();
        for bytes in ["# aé€😀b".as_bytes(), b"a\xffb\xe2\x82", b"", b"\xf0\x9f\x98"] {
            let text = String::from_utf8_lossy(bytes);
            for reader in [&mut Slow(bytes) as &mut dyn std::io::Read, &mut &bytes[..]] {
                let stored = store.put_stream(reader, &text).unwrap();
                assert_eq!(stored.sha256, digest_of(text.as_bytes()), "{text}");
                assert_eq!(stored.len, text.len() as u64);
                assert_eq!(store.get_text(&stored.sha256).unwrap(), text);
            }
        }
    }

    #[test]
    fn the_whole_of_a_text_is_stored_under_one_name() {
        let (_dir, store) = store();
        for store in [store, ValueStore::in_memory()] {
            let long = store.put_text(&"é".repeat(5_000)).unwrap();
            let mut text = Text::inline("# Title\n");
            text.push(&Text::reference(long.clone()));
            text.push_str("end");
            let whole = store.put_whole(&text).unwrap();
            let as_text = store.materialize(&text).unwrap();
            assert_eq!(whole.sha256, digest_of(as_text.as_bytes()));
            assert_eq!((whole.len, whole.summary.as_str()), (text.len(), "Title"));
            assert_eq!(store.get_text(&whole.sha256).unwrap(), as_text);
            // What is stored already is not stored again.
            assert_eq!(store.put_whole(&Text::reference(long.clone())).unwrap(), long);
        }
    }

    proptest! {
        #[test]
        fn content_round_trips(content in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let (_dir, store) = store();
            let digest = store.put(&content).unwrap();
            store.verify(&digest).unwrap();
            prop_assert_eq!(store.get(&digest).unwrap(), content);
        }

        #[test]
        fn text_round_trips(parts in proptest::collection::vec(("\\PC{0,40}", 0usize..400), 0..4)) {
            let (_dir, store) = store();
            let mut text = Text::default();
            let mut whole = String::new();
            for (piece, times) in parts {
                let piece = piece.repeat(times);
                text.push(&store.externalize_text(&piece).unwrap());
                whole.push_str(&piece);
            }
            let Value::Text(stored) = store.externalize(&Value::Text(text)).unwrap() else { panic!("text") };
            prop_assert_eq!(stored.len(), whole.len() as u64);
            prop_assert!(stored.parts.iter().all(
                |part| !matches!(part, TextPart::Inline(inline) if inline.len() > INLINE_LIMIT)
            ));
            prop_assert_eq!(store.materialize(&stored).unwrap(), whole);
        }
    }
}
