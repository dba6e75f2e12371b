//! The documents that the client has open, and the mapping between URIs and the engine's file ids.
//!
//! The main loop alone writes here; requests only look names up. A document keeps the URI as its client spelled it,
//! while two spellings of one path are one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dashmap::DashMap;
use lsp_types::{TextDocumentContentChangeEvent, Url};
use prose_ide::{FileId, LineIndex, TextSize};

use crate::positions::Encoding;

/// One open document.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The client's own spelling.
    pub(crate) uri: Url,
    /// The client's version of `text`.
    pub(crate) version: i32,
    /// Counts every change on our side; unlike `version` it can't repeat or go back.
    pub(crate) generation: u64,
    /// The whole text.
    pub(crate) text: Arc<str>,
    /// Its lines.
    index: LineIndex,
}

/// What identifies a file: its path if it has one, else its URI (`untitled:Untitled-1`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FileKey {
    /// A file on disk.
    Path(PathBuf),
    /// Anything else.
    Other(Url),
}

impl FileKey {
    /// The identity behind a URI.
    pub(crate) fn new(uri: &Url) -> FileKey {
        match uri.to_file_path() {
            Ok(path) if uri.scheme() == "file" => FileKey::Path(path),
            _ => FileKey::Other(uri.clone()),
        }
    }

    /// The path of a file on disk.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            FileKey::Path(path) => Some(path),
            FileKey::Other(_) => None,
        }
    }

    /// The URI to show when no client has spelled one.
    fn uri(&self) -> Option<Url> {
        match self {
            FileKey::Path(path) => Url::from_file_path(path).ok(),
            FileKey::Other(uri) => Some(uri.clone()),
        }
    }
}

/// The tables; see the module's comment.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    ids: DashMap<FileKey, FileId>,
    keys: DashMap<FileId, FileKey>,
    open: DashMap<FileId, Document>,
    next_id: AtomicU32,
    generations: std::sync::atomic::AtomicU64,
}

impl Documents {
    /// The id of a file, and whether it is new. Only the main loop may call this.
    ///
    /// A path and what its links lead to are one file, known by the name that came first.
    pub(crate) fn intern(&self, key: FileKey) -> (FileId, bool) {
        if let Some(id) = self.ids.get(&key) {
            return (*id, false);
        }
        let real = key
            .path()
            .and_then(|path| path.canonicalize().ok())
            .map(FileKey::Path)
            .filter(|real| *real != key);
        let known = real.as_ref().and_then(|real| self.ids.get(real).map(|id| *id));
        let id = known.unwrap_or_else(|| {
            let id = FileId(self.next_id.fetch_add(1, Ordering::Relaxed));
            // IMPORTANT: `keys` before `ids`, so whoever finds an id also finds its key.
            self.keys.insert(id, key.clone());
            id
        });
        if let Some(real) = real {
            self.ids.insert(real, id);
        }
        self.ids.insert(key, id);
        (id, known.is_none())
    }

    /// The id of a known file.
    pub(crate) fn id(&self, uri: &Url) -> Option<FileId> {
        self.ids.get(&FileKey::new(uri)).map(|id| *id)
    }

    /// The identity behind an id.
    pub(crate) fn key(&self, file: FileId) -> Option<FileKey> {
        self.keys.get(&file).map(|key| key.clone())
    }

    /// The URI to name a file to the client: as the client spelled it where it is open.
    pub(crate) fn uri(&self, file: FileId) -> Option<Url> {
        if let Some(document) = self.open.get(&file) {
            return Some(document.uri.clone());
        }
        self.keys.get(&file)?.uri()
    }

    /// The text of an open document (cheap: it is shared).
    pub(crate) fn text(&self, file: FileId) -> Option<Arc<str>> {
        self.open.get(&file).map(|d| Arc::clone(&d.text))
    }

    /// The name and version of an open document.
    pub(crate) fn version(&self, file: FileId) -> Option<(Url, i32)> {
        self.open.get(&file).map(|d| (d.uri.clone(), d.version))
    }

    /// Whether a file is open.
    pub(crate) fn has(&self, file: FileId) -> bool {
        self.open.contains_key(&file)
    }

    /// The generation of an open document.
    pub(crate) fn generation(&self, file: FileId) -> Option<u64> {
        self.open.get(&file).map(|d| d.generation)
    }

    /// All known files' ids, open or not, in the order in which they were first seen.
    pub(crate) fn files(&self) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.keys.iter().map(|key| *key.key()).collect();
        files.sort_unstable();
        files
    }

    /// Whether the client has a file of this path open.
    pub(crate) fn is_open(&self, path: &Path) -> bool {
        let id = self.ids.get(&FileKey::Path(path.to_owned())).map(|id| *id);
        id.is_some_and(|id| self.open.contains_key(&id))
    }

    /// All open documents' ids, in the order in which they were first seen.
    pub(crate) fn open_files(&self) -> Vec<FileId> {
        let mut files: Vec<FileId> = self.open.iter().map(|d| *d.key()).collect();
        files.sort_unstable();
        files
    }

    /// `didOpen`. Opening an open document replaces it.
    pub(crate) fn open(&self, uri: Url, version: i32, text: String) -> FileId {
        let (file, _) = self.intern(FileKey::new(&uri));
        let document = Document {
            uri,
            version,
            generation: self.next_generation(),
            index: LineIndex::new(&text),
            text: text.into(),
        };
        self.open.insert(file, document);
        file
    }

    /// `didChange`: applies the changes in order. `None` for a document that isn't open.
    pub(crate) fn change(
        &self,
        uri: &Url,
        version: i32,
        changes: &[TextDocumentContentChangeEvent],
        encoding: Encoding,
    ) -> Option<FileId> {
        let file = self.id(uri)?;
        let mut document = self.open.get_mut(&file)?;
        let Document { text, index, .. } = &mut *document;
        *text = apply(text, index, changes, encoding).into();
        document.version = version;
        document.generation = self.next_generation();
        Some(file)
    }

    /// `didClose`. `None` for a document that isn't open.
    pub(crate) fn close(&self, uri: &Url) -> Option<(FileId, Document)> {
        self.open.remove(&self.id(uri)?)
    }

    fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The text after the changes of one notification: each is relative to the result of the one before. `index` has the lines
/// of the text and has them afterwards.
fn apply(
    text: &str,
    index: &mut LineIndex,
    changes: &[TextDocumentContentChangeEvent],
    encoding: Encoding,
) -> String {
    // Room for all that comes, so that a long text is copied once.
    let added: usize = changes.iter().map(|it| it.text.len()).sum();
    let before = text;
    let mut text = String::with_capacity(before.len() + added);
    text.push_str(before);
    for change in changes {
        match change.range {
            Some(range) => {
                let range = encoding.text_range(index, &text, range);
                text.replace_range(std::ops::Range::<usize>::from(range), &change.text);
                index.edit(&text, range, TextSize::of(&*change.text));
            }
            None => {
                text.clone_from(&change.text);
                *index = LineIndex::new(&text);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::{Position, Range};

    fn edit(range: Option<(u32, u32, u32, u32)>, text: &str) -> TextDocumentContentChangeEvent {
        let range = range.map(|(a, b, c, d)| Range {
            start: Position {
                line: a,
                character: b,
            },
            end: Position {
                line: c,
                character: d,
            },
        });
        TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.into(),
        }
    }

    fn uri(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn apply(text: &str, changes: &[TextDocumentContentChangeEvent], encoding: Encoding) -> String {
        let mut index = LineIndex::new(text);
        let after = super::apply(text, &mut index, changes, encoding);
        assert_eq!(index, LineIndex::new(&after));
        after
    }

    #[test]
    fn several_changes_apply_one_after_the_other() {
        let changes = [
            edit(Some((0, 0, 0, 0)), "x\n"),
            edit(Some((1, 1, 1, 2)), ""),
            edit(Some((9, 9, 9, 9)), "!"),
        ];
        assert_eq!(apply("abc", &changes, Encoding::Utf16), "x\nac!");
        assert_eq!(
            apply(
                "abc",
                &[edit(None, "new"), edit(Some((0, 0, 0, 1)), "N")],
                Encoding::Utf8
            ),
            "New"
        );
    }

    #[test]
    fn changes_count_in_the_negotiated_encoding() {
        assert_eq!(
            apply("🦀b", &[edit(Some((0, 2, 0, 3)), "c")], Encoding::Utf16),
            "🦀c"
        );
        assert_eq!(
            apply("🦀b", &[edit(Some((0, 4, 0, 5)), "c")], Encoding::Utf8),
            "🦀c"
        );
    }

    #[test]
    fn two_spellings_are_one_file_and_the_client_sees_its_own() {
        let documents = Documents::default();
        let spelled = uri("file:///work%20space/a%2Db.prose");
        let file = documents.open(spelled.clone(), 1, "a".into());
        assert_eq!(documents.id(&uri("file:///work%20space/a-b.prose")), Some(file));
        assert_eq!(documents.uri(file), Some(spelled.clone()));
        documents.close(&spelled).unwrap();
        assert_eq!(documents.uri(file), Some(uri("file:///work%20space/a-b.prose")));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_its_target_are_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        std::fs::write(folder.join("a.prose"), "").unwrap();
        std::os::unix::fs::symlink(folder.join("a.prose"), folder.join("link.prose")).unwrap();
        let documents = Documents::default();
        let (link, _) = documents.intern(FileKey::Path(folder.join("link.prose")));
        assert_eq!(
            documents.intern(FileKey::Path(folder.join("a.prose"))),
            (link, false)
        );
        assert_eq!(documents.files(), [link]);
    }

    #[test]
    fn untitled_documents_have_no_path() {
        let documents = Documents::default();
        let untitled = uri("untitled:Untitled-1");
        let file = documents.open(untitled.clone(), 1, String::new());
        assert_eq!(documents.uri(file), Some(untitled.clone()));
        assert_eq!(documents.key(file).unwrap().path(), None);
        assert_ne!(documents.open(uri("untitled:Untitled-2"), 1, String::new()), file);
    }

    #[test]
    fn changing_or_closing_what_is_not_open_does_nothing() {
        let documents = Documents::default();
        let unknown = uri("file:///a.prose");
        assert_eq!(documents.change(&unknown, 1, &[], Encoding::Utf16), None);
        assert!(documents.close(&unknown).is_none());
    }

    #[test]
    fn generations_grow_even_when_versions_repeat() {
        let documents = Documents::default();
        let a = uri("file:///a.prose");
        let file = documents.open(a.clone(), 7, "x".into());
        let first = documents.generation(file).unwrap();
        documents
            .change(&a, 7, &[edit(None, "y")], Encoding::Utf16)
            .unwrap();
        assert!(documents.generation(file).unwrap() > first);
    }
}
