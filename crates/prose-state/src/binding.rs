//! `bindings/{name}.md`: one file a named value, in the seed's format. A projection of the latest value.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use prose_model::{BindKind, BindingRef, Bundle, Event, ExecutionId, Text, TextPart, TextRef, Value};

use crate::error::io;
use crate::fs::{
    Sync, create_dir, open_file, open_own, read_file, read_if_present, refused, write_atomic,
    write_atomic_with,
};
use crate::program::snippet;
use crate::{Hide, Result, RunDir, StateError, ValueStore, safe_file_name, summarize};

/// Content over this many bytes is never held in memory as a whole.
const LARGE: u64 = 1024 * 1024;
/// A session can't leave a longer value; nobody reads so much text, and a file of holes could fill the disk.
const LONGEST: u64 = 1024 * 1024 * 1024;
/// Nor a longer text that is read as a whole.
const LONGEST_WHOLE: u64 = 16 * 1024 * 1024;
/// Header and summary of a long file are looked for in so many bytes.
const HEAD: usize = 64 * 1024;

/// What a binding file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingFile {
    /// The name that is bound; one line.
    pub name: String,
    /// `input`, `output`, `let` or `const`.
    pub kind: String,
    /// The frame; none for the root.
    pub execution_id: Option<ExecutionId>,
    /// The statement that made it.
    pub source: String,
    /// The value.
    pub body: String,
}

/// What a session left in its staging folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Name in the header, if there is one.
    pub name: Option<String>,
    /// Kind in the header.
    pub kind: Option<String>,
    /// Execution id in the header.
    pub execution_id: Option<ExecutionId>,
    /// The value, without blank lines around it.
    pub body: String,
}

/// The binding files of a run.
#[derive(Debug, Clone)]
pub struct Bindings {
    run: RunDir,
    values: ValueStore,
}

impl BindingFile {
    /// The file's text. The source's fence is longer than any run of backticks in it.
    pub fn render(&self) -> String {
        let BindingFile {
            name,
            kind,
            source,
            body,
            ..
        } = self;
        let scope = self
            .execution_id
            .map(|id| format!("execution_id: {id}\n"))
            .unwrap_or_default();
        let fence = fence_for(source);
        format!(
            "# {name}\n\nkind: {kind}\n{scope}\nsource:\n{fence}prose\n{source}\n{fence}\n\n---\n\n{body}\n"
        )
    }

    /// Reads what [`BindingFile::render`] wrote, or another tool in the same format. Header lines may end in CRLF.
    ///
    /// # Errors
    /// A part of the format that is missing.
    pub fn parse(text: &str) -> std::result::Result<BindingFile, &'static str> {
        let header = Header::parse(text)?;
        let body = header.body.ok_or("there is no `---` line before the value")?;
        let body = strip_blank_line(body);
        Ok(BindingFile {
            name: header.name.to_owned(),
            kind: header.kind.to_owned(),
            execution_id: header.execution_id,
            source: header.source.ok_or("there is no `source:`")?.to_owned(),
            body: strip_newline(body, header.crlf).to_owned(),
        })
    }
}

/// Reads what a session wrote for its binding: with the header, with one that is incomplete, or only the value.
pub fn parse_staged(text: &str) -> Staged {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Sessions that were shown the format in a fence sometimes return the fence.
    let unfenced = unwrap_fence(text);
    let header = Header::parse(text).or_else(|reason| unfenced.ok_or(reason).and_then(Header::parse));
    let Ok(header) = header else {
        return Staged {
            name: None,
            kind: None,
            execution_id: None,
            body: trim_blank_lines(text).to_owned(),
        };
    };
    let body = trim_blank_lines(header.body.unwrap_or(header.after));
    Staged {
        name: Some(header.name.to_owned()),
        kind: Some(header.kind.to_owned()),
        execution_id: header.execution_id,
        body: if header.crlf {
            body.replace("\r\n", "\n")
        } else {
            body.to_owned()
        },
    }
}

/// The value in a file that a session wrote: what [`parse_staged`] reads, but a long one goes to the value store without
/// being held in memory; in that one line ends stay as they are. None when there is nothing in it. Only what `hide` lets
/// through is stored; the file stays as it is.
///
/// # Errors
/// There is no such file; what lies there is no regular file, is a link or has a second name, or is longer than 1 GiB.
pub fn read_staged(path: &Path, values: &ValueStore, hide: &mut dyn Hide) -> Result<Option<(Text, String)>> {
    let failed = |error| io("read", path)(error);
    let mut file = open_own(path)
        .and_then(|file| file.ok_or_else(|| std::io::ErrorKind::NotFound.into()))
        .map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    if len > LONGEST {
        return Err(failed(too_long(LONGEST)));
    }
    if len <= LARGE {
        let mut bytes = Vec::new();
        // It may have grown meanwhile.
        file.take(LARGE).read_to_end(&mut bytes).map_err(failed)?;
        let body = parse_staged(&hide.whole(&String::from_utf8_lossy(&bytes))).body;
        let body = body.trim_end();
        if body.is_empty() {
            return Ok(None);
        }
        return Ok(Some((values.externalize_text(body)?, summarize(body))));
    }
    // The header, and what a summary is made of, are at the beginning; blank lines to leave out at both ends.
    let mut head = vec![0; HEAD];
    file.read_exact(&mut head).map_err(failed)?;
    let head = String::from_utf8_lossy(&head);
    // A replaced character would move what follows.
    let head = head.split('\u{fffd}').next().unwrap_or_default();
    let text = head.strip_prefix('\u{feff}').unwrap_or(head);
    let body = match Header::parse(text) {
        Ok(header) => header.body.unwrap_or(header.after),
        Err(_) => text,
    };
    let body = body.trim_start_matches(['\n', '\r']);
    let start = (body.as_ptr() as usize - head.as_ptr() as usize) as u64;
    let mut tail = vec![0; HEAD];
    file.seek(SeekFrom::End(-(HEAD as i64))).map_err(failed)?;
    file.read_exact(&mut tail).map_err(failed)?;
    let end = len
        - tail
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count() as u64;
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    // What may be the beginning of something to hide is left out of the summary.
    let shown = hide.push(body);
    hide.finish();
    let stored = values.put_hidden(&mut file.take(end.saturating_sub(start)), &shown, hide)?;
    let summary = stored.summary.clone();
    Ok(Some((Text::reference(stored), summary)))
}

/// The text of another file that a session wrote, as what it wants to remember; none when there is no such file. It is
/// taken as [`read_staged`] takes it, but is not longer than 16 MiB, since it is read as a whole.
pub fn read_staged_text(path: &Path) -> Result<Option<String>> {
    let read = || -> std::io::Result<Option<String>> {
        let Some(file) = open_own(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(LONGEST_WHOLE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST_WHOLE {
            return Err(too_long(LONGEST_WHOLE));
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    };
    read().map_err(io("read", path))
}

fn too_long(longest: u64) -> std::io::Error {
    refused(format!("it is longer than {} MiB", longest / (1024 * 1024)))
}

/// Content that is copied rather than read.
fn large(value: &Value) -> Option<&TextRef> {
    let Value::Text(text) = value else { return None };
    match text.parts.as_slice() {
        [TextPart::Ref(reference)] if reference.len > LARGE => Some(reference),
        _ => None,
    }
}

/// Whether a file holds a head, the stored content and a line end, and nothing else; read piece by piece.
fn is_made_of(path: &Path, head: &str, stored: &Path, len: u64) -> std::io::Result<bool> {
    if fs::metadata(path)?.len() != head.len() as u64 + len + 1 {
        return Ok(false);
    }
    let mut file = BufReader::new(open_file(path)?);
    let mut expected = head
        .as_bytes()
        .chain(BufReader::new(open_file(stored)?))
        .chain(&b"\n"[..]);
    loop {
        let (found, wanted) = (file.fill_buf()?, expected.fill_buf()?);
        let len = found.len().min(wanted.len());
        if len == 0 {
            return Ok(found.len() == wanted.len());
        }
        if found[..len] != wanted[..len] {
            return Ok(false);
        }
        file.consume(len);
        expected.consume(len);
    }
}

/// The file's name: `{name}.md` or `{name}__{execution_id}.md`.
pub fn binding_file_name(binding: &BindingRef) -> String {
    let mut name = safe_file_name(&binding.name);
    match binding.execution_id {
        Some(id) => name.push_str(&format!("__{id}")),
        // A root name that looks like a scoped one must not take that one's file.
        None => {
            if let Some((stem, digits)) = name.rsplit_once("__")
                && !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit())
            {
                name = format!("{stem}_%5F{digits}");
            }
        }
    }
    name.push_str(".md");
    name
}

impl Bindings {
    /// The binding files of a run.
    pub fn new(run: RunDir, values: ValueStore) -> Bindings {
        Bindings { run, values }
    }

    /// Where a binding's file is.
    pub fn path(&self, binding: &BindingRef) -> Result<PathBuf> {
        Ok(self
            .run
            .program(&binding.program)?
            .bindings()
            .join(binding_file_name(binding)))
    }

    /// Writes a binding's file in one step and returns its path; none for kinds that have no file. An unchanged file
    /// is left alone, so that links to it stay links.
    pub fn write(
        &self,
        binding: &BindingRef,
        kind: BindKind,
        source: &str,
        value: &Value,
    ) -> Result<Option<PathBuf>> {
        let Some(kind) = kind.file_kind() else {
            return Ok(None);
        };
        if let Some(reference) = large(value) {
            return self.write_large(binding, kind, source, reference).map(Some);
        }
        let file = BindingFile {
            name: binding.name.to_string(),
            kind: kind.to_owned(),
            execution_id: binding.execution_id,
            source: source.to_owned(),
            body: self.values.render(value)?,
        };
        let path = self.path(binding)?;
        let text = file.render();
        let same_length = path.metadata().is_ok_and(|old| old.len() == text.len() as u64);
        if same_length && read_file(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(Some(path));
        }
        if let Some(folder) = path.parent() {
            self.run.create_below(folder)?;
        }
        write_atomic(&path, text.as_bytes(), Sync::Lazy, "binding")?;
        Ok(Some(path))
    }

    /// Writes a file whose value is copied from the store piece by piece.
    fn write_large(
        &self,
        binding: &BindingRef,
        kind: &str,
        source: &str,
        value: &TextRef,
    ) -> Result<PathBuf> {
        let head = BindingFile {
            name: binding.name.to_string(),
            kind: kind.to_owned(),
            execution_id: binding.execution_id,
            source: source.to_owned(),
            body: String::new(),
        };
        let head = head.render();
        let head = head.strip_suffix('\n').unwrap_or(&head);
        let path = self.path(binding)?;
        let stored = self.values.path(&value.sha256)?;
        if is_made_of(&path, head, &stored, value.len).unwrap_or(false) {
            return Ok(path);
        }
        if let Some(folder) = path.parent() {
            self.run.create_below(folder)?;
        }
        write_atomic_with(&path, Sync::Lazy, "binding", |file, tmp| {
            let mut content = open_file(&stored).map_err(io("read", &stored))?;
            file.write_all(head.as_bytes())
                .and_then(|()| std::io::copy(&mut content, file))
                .and_then(|_| file.write_all(b"\n"))
                .map_err(io("write", tmp))
        })?;
        Ok(path)
    }

    /// Writes the file of a [`Event::Bound`]; does nothing for other events.
    pub fn apply(&self, event: &Event, bundle: &Bundle) -> Result<Option<PathBuf>> {
        match event {
            Event::Bound {
                binding,
                kind,
                source,
                value,
                ..
            } => self.write(binding, *kind, &snippet(bundle, *source), value),
            _ => Ok(None),
        }
    }

    /// Removes the files of all other names, in the programs that these are in and in the entry.
    pub fn keep_only<'a>(&self, bindings: impl Iterator<Item = &'a BindingRef>) -> Result<()> {
        let mut folders: HashMap<PathBuf, HashSet<PathBuf>> = HashMap::new();
        folders.insert(self.run.program(&[])?.bindings(), HashSet::new());
        for binding in bindings {
            let path = self.path(binding)?;
            if let Some(folder) = path.parent().map(Path::to_owned) {
                folders.entry(folder).or_default().insert(path);
            }
        }
        for (folder, known) in folders {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io("read", folder)(error)),
            };
            for entry in entries {
                let path = entry.map_err(io("read", &folder))?.path();
                if !known.contains(&path) && path.extension().is_some_and(|extension| extension == "md") {
                    fs::remove_file(&path).map_err(io("remove", &path))?;
                }
            }
        }
        Ok(())
    }

    /// Reads a binding's file; none when there is none.
    pub fn read(&self, binding: &BindingRef) -> Result<Option<BindingFile>> {
        let path = self.path(binding)?;
        let Some(bytes) = read_if_present(&path)? else {
            return Ok(None);
        };
        let bad = |reason| StateError::BadBinding {
            path: path.clone(),
            reason,
        };
        let text = String::from_utf8(bytes).map_err(|_| bad("it is not UTF-8"))?;
        BindingFile::parse(&text).map(Some).map_err(bad)
    }

    /// Copies a binding's file, such as for a session's context: later versions of the binding don't show there, and what
    /// the session does to its file does not show in the binding. No hard link, which would share what is written, and which
    /// careful agents refuse to read.
    pub fn copy(&self, binding: &BindingRef, target: &Path) -> Result<()> {
        let path = self.path(binding)?;
        if let Some(folder) = target.parent() {
            create_dir(folder)?;
        }
        match fs::remove_file(target) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("remove", target)(error));
            }
            _ => {}
        }
        fs::copy(&path, target).map_err(io("copy", path))?;
        Ok(())
    }
}

/// Backticks for a fence around text that may hold backticks itself.
pub(crate) fn fence_for(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

/// The parts before the value.
struct Header<'a> {
    name: &'a str,
    kind: &'a str,
    execution_id: Option<ExecutionId>,
    source: Option<&'a str>,
    /// What follows the `---` line.
    body: Option<&'a str>,
    /// What follows the last header line, for when there is no `---`.
    after: &'a str,
    crlf: bool,
}

impl<'a> Header<'a> {
    fn parse(text: &'a str) -> std::result::Result<Header<'a>, &'static str> {
        let mut rest = text;
        let first = next_content_line(&mut rest).ok_or("it is empty")?;
        let name = first
            .strip_prefix("# ")
            .ok_or("it does not begin with `# name`")?
            .trim();
        let crlf = text[..text.len() - rest.len()].ends_with("\r\n");
        let mut header = Header {
            name,
            kind: "",
            execution_id: None,
            source: None,
            body: None,
            after: rest,
            crlf,
        };
        loop {
            header.after = rest;
            let Some(line) = next_content_line(&mut rest) else {
                break;
            };
            if let Some(kind) = line.strip_prefix("kind:") {
                header.kind = kind.trim();
            } else if let Some(id) = line.strip_prefix("execution_id:") {
                // `(root)` and the like: as good as none.
                header.execution_id = id.trim().parse().ok();
            } else if line.trim_end() == "source:" {
                header.source = Some(fenced(&mut rest).ok_or("`source:` has no fenced text")?);
            } else if is_separator(line) {
                header.body = Some(rest);
                break;
            } else {
                break;
            }
        }
        if header.kind.is_empty() {
            Err("there is no `kind:`")
        } else {
            Ok(header)
        }
    }
}

/// The next line that isn't blank, without its end.
fn next_content_line<'a>(rest: &mut &'a str) -> Option<&'a str> {
    loop {
        if rest.is_empty() {
            return None;
        }
        let line = next_line(rest);
        if !line.trim().is_empty() {
            return Some(line);
        }
    }
}

fn next_line<'a>(rest: &mut &'a str) -> &'a str {
    let (line, after) = match rest.split_once('\n') {
        Some((line, after)) => (line.strip_suffix('\r').unwrap_or(line), after),
        None => (*rest, ""),
    };
    *rest = after;
    line
}

/// The text between fences; leaves what follows the closing one.
fn fenced<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let opening = next_content_line(rest)?.trim_start();
    let ticks = opening.len() - opening.trim_start_matches('`').len();
    if ticks < 3 {
        return None;
    }
    let start = *rest;
    while !rest.is_empty() {
        let before = start.len() - rest.len();
        let line = next_line(rest).trim();
        if line.len() >= ticks && line.bytes().all(|byte| byte == b'`') {
            let inside = &start[..before];
            let inside = inside.strip_suffix('\n').unwrap_or(inside);
            return Some(inside);
        }
    }
    None
}

/// The inside of a text that is one fenced piece.
fn unwrap_fence(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    if !rest.starts_with("```") {
        return None;
    }
    let opening = rest.len() - rest.trim_start_matches('`').len();
    next_line(&mut rest);
    let inside = rest.trim_end().trim_end_matches('`');
    (rest.trim_end().len() - inside.len() == opening).then_some(inside)
}

fn is_separator(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

fn strip_blank_line(text: &str) -> &str {
    text.strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'))
        .unwrap_or(text)
}

fn strip_newline(text: &str, crlf: bool) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if crlf {
        text.strip_suffix('\r').unwrap_or(text)
    } else {
        text
    }
}

/// Without blank lines before and after; the first line keeps its indentation.
fn trim_blank_lines(text: &str) -> &str {
    let mut rest = text;
    loop {
        let mut after = rest;
        if rest.is_empty() || !next_line(&mut after).trim().is_empty() {
            return rest.trim_end();
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn file(name: &str, execution_id: Option<u32>, source: &str, body: &str) -> BindingFile {
        BindingFile {
            name: name.into(),
            kind: "let".into(),
            execution_id,
            source: source.into(),
            body: body.into(),
        }
    }

    #[test]
    fn the_format_is_the_seed_s() {
        let source = "let result = session \"Process chunk\"";
        expect![[r#"
            # result

            kind: let
            execution_id: 43

            source:
            ```prose
            let result = session "Process chunk"
            ```

            ---

            Processed chunk into 3 sub-parts...
        "#]]
        .assert_eq(&file("result", Some(43), source, "Processed chunk into 3 sub-parts...").render());
    }

    #[test]
    fn backticks_in_the_source_lengthen_its_fence() {
        let text = file("x", None, "session \"\"\"\n````\n\"\"\"", "v").render();
        assert!(text.contains("source:\n`````prose\n"), "{text}");
    }

    #[test]
    fn file_names_follow_the_seed_and_never_collide() {
        let name = |name: &str, execution_id| {
            binding_file_name(&BindingRef {
                name: name.into(),
                execution_id,
                program: vec![],
            })
        };
        assert_eq!(name("research", None), "research.md");
        assert_eq!(name("result", Some(43)), "result__43.md");
        assert_eq!(name("anon_001", None), "anon_001.md");
        assert_eq!(name("result__43", None), "result_%5F43.md");
        assert_eq!(name("result__43", Some(1)), "result__43__1.md");
        assert_eq!(name("a__b", None), "a__b.md");
        assert_eq!(name("../../etc/passwd", None), "%2E.%2F..%2Fetc%2Fpasswd.md");
        assert_eq!(name("con", None), "con%.md");
    }

    #[test]
    fn what_sessions_write_is_understood() {
        let check = |text: &str, name: Option<&str>, body: &str| {
            let staged = parse_staged(text);
            assert_eq!(
                (staged.name.as_deref(), staged.body.as_str()),
                (name, body),
                "{text:?}"
            );
        };
        let whole = file(
            "x",
            Some(3),
            "let x = session \"a\"",
            "The value.\n\n---\n\nMore.",
        )
        .render();
        check(&whole, Some("x"), "The value.\n\n---\n\nMore.");
        assert_eq!(parse_staged(&whole).execution_id, Some(3));
        check(
            &whole.replace('\n', "\r\n"),
            Some("x"),
            "The value.\n\n---\n\nMore.",
        );
        check(
            &format!("\u{feff}{whole}"),
            Some("x"),
            "The value.\n\n---\n\nMore.",
        );
        check(
            &format!("```markdown\n{whole}```\n"),
            Some("x"),
            "The value.\n\n---\n\nMore.",
        );
        check(
            "# x\n\nkind: let\n\n---\n\n\n  indented\nvalue\n\n",
            Some("x"),
            "  indented\nvalue",
        );
        check(
            "# x\nkind: let\n\nvalue without separator\n",
            Some("x"),
            "value without separator",
        );
        check(
            "Only the value.\r\nTwo lines.\r\n",
            None,
            "Only the value.\r\nTwo lines.",
        );
        check(
            "# A report\n\nkind people wrote this\n",
            None,
            "# A report\n\nkind people wrote this",
        );
        check("---\ntitle: x\n---\nbody", None, "---\ntitle: x\n---\nbody");
        check("```json\n[1]\n```\n", None, "```json\n[1]\n```");
        check("", None, "");
        check("\n \n", None, "");
    }

    #[test]
    fn missing_parts_are_named() {
        assert_eq!(
            BindingFile::parse("text").unwrap_err(),
            "it does not begin with `# name`"
        );
        assert_eq!(
            BindingFile::parse("# x\n\nsource:\n```\n```\n---\nv").unwrap_err(),
            "there is no `kind:`"
        );
        assert_eq!(
            BindingFile::parse("# x\n\nkind: let\nsource:\n```\nopen").unwrap_err(),
            "`source:` has no fenced text"
        );
        assert_eq!(
            BindingFile::parse("# x\n\nkind: let\n").unwrap_err(),
            "there is no `---` line before the value"
        );
    }

    #[test]
    fn a_copied_version_and_the_binding_change_apart() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::at(root.path()).unwrap();
        let values = ValueStore::open(&run.values()).unwrap();
        let bindings = Bindings::new(run, values);
        let binding = BindingRef {
            name: "x".into(),
            execution_id: None,
            program: vec!["alice--research".into()],
        };
        let target = root.path().join("staging/1/context/x.md");
        let write = |text: &str| {
            bindings
                .write(&binding, BindKind::Let, "let x = 1", &Value::text(text))
                .unwrap()
        };
        let path = write("first").unwrap();
        assert_eq!(path, root.path().join("imports/alice--research/bindings/x.md"));
        bindings.copy(&binding, &target).unwrap();
        write("first");
        write("second");
        let copied = fs::read_to_string(&target).unwrap();
        assert_eq!(BindingFile::parse(&copied).unwrap().body, "first");
        assert_eq!(bindings.read(&binding).unwrap().unwrap().body, "second");
        bindings.copy(&binding, &target).unwrap();
        assert!(fs::read_to_string(&target).unwrap().ends_with("second\n"));
        fs::write(&target, "written over by a session").unwrap();
        assert_eq!(bindings.read(&binding).unwrap().unwrap().body, "second");
        let param = bindings
            .write(&binding, BindKind::Param, "", &Value::Null)
            .unwrap();
        assert_eq!(param, None);
    }

    /// Text full of what the format itself is made of.
    fn awkward() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("---".to_owned()),
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("\r".to_owned()),
            Just("```".to_owned()),
            Just("`````prose\n".to_owned()),
            Just("# name\n\nkind: let\n".to_owned()),
            Just("source:\n".to_owned()),
            Just("execution_id: 7\n".to_owned()),
            Just(" ".to_owned()),
            ".{0,12}",
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_value_round_trips(
            name in "[A-Za-z_][A-Za-z0-9_-]{0,20}",
            execution_id in proptest::option::of(any::<u32>()),
            source in awkward(),
            body in awkward(),
        ) {
            let file = file(&name, execution_id, &source, &body);
            prop_assert_eq!(BindingFile::parse(&file.render()), Ok(file));
        }

        #[test]
        fn reading_never_panics(text in awkward()) {
            let _ = BindingFile::parse(&text);
            let staged = parse_staged(&text);
            prop_assert!(staged.body.len() <= text.len());
        }

        #[test]
        fn a_written_file_is_understood_as_staged(source in awkward(), body in awkward()) {
            let staged = parse_staged(&file("x", None, &source, &body).render());
            prop_assert_eq!(staged.name.as_deref(), Some("x"));
            prop_assert_eq!(staged.body, trim_blank_lines(&body));
        }
    }
}
