//! Inputs of the database and the one way to change them.

use std::sync::Arc;

use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashMap;
use salsa::Setter;

use crate::{Chunk, SourceFile};

/// Names a file for as long as the database lives. Numbers are given out by whoever owns the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Its text.
    Text(Arc<str>),
    /// It was looked for and does not exist, or can't be read.
    Missing,
    /// It is remote and nobody approved fetching it.
    Unapproved,
}

/// Where the targets of a file's `use` statements lead: target as written → file, or `None` when it was looked for
/// and not found. A target that is not in the list was not looked up and gets no diagnostic.
pub type Resolutions = Vec<(String, Option<FileId>)>;

/// What changed. Everything that enters the database enters here.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// Files with the path shown to a person and their new content.
    pub files: Vec<(FileId, String, FileContent)>,
    /// The `use` targets of files, complete for each file named.
    pub resolutions: Vec<(FileId, Resolutions)>,
}

impl Change {
    /// A change of nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets a file's text.
    pub fn text(&mut self, file: FileId, path: impl Into<String>, text: impl Into<Arc<str>>) {
        self.files
            .push((file, path.into(), FileContent::Text(text.into())));
    }
    /// Sets where a file's `use` targets lead.
    pub fn resolve(&mut self, file: FileId, targets: Resolutions) {
        self.resolutions.push((file, targets));
    }
}

/// Whether a file has a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It has.
    Text,
    /// It does not exist.
    Missing,
    /// It is remote and not approved.
    Unapproved,
}

/// The database as queries see it.
#[salsa::db]
pub trait Db: salsa::Database {}

/// The database. Clones are cheap snapshots; a live clone blocks the next change, so none may outlive a request.
#[salsa::db]
#[derive(Clone)]
pub struct RootDatabase {
    storage: salsa::Storage<Self>,
    files: Arc<FxHashMap<FileId, SourceFile>>,
    /// Chunks that no file uses any more, to be used again: inputs are never freed.
    spare: Arc<Vec<Chunk>>,
}

#[salsa::db]
impl salsa::Database for RootDatabase {}

#[salsa::db]
impl Db for RootDatabase {}

impl Default for RootDatabase {
    fn default() -> Self {
        Self::new(None)
    }
}

/// Told of everything the query engine does; for tests that count queries.
pub type EventCallback = Box<dyn Fn(salsa::Event) + Send + Sync + 'static>;

impl RootDatabase {
    /// An empty database.
    pub fn new(events: Option<EventCallback>) -> Self {
        RootDatabase {
            storage: salsa::Storage::new(events),
            files: Arc::default(),
            spare: Arc::default(),
        }
    }

    /// The file with this id, if a change ever named it.
    pub fn source(&self, file: FileId) -> Option<SourceFile> {
        self.files.get(&file).copied()
    }

    /// Every file, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = (FileId, SourceFile)> + '_ {
        self.files.iter().map(|(id, file)| (*id, *file))
    }

    /// Applies a change. Inputs are set only where they differ, because setting an equal value invalidates as well.
    ///
    /// IMPORTANT: waits until every clone of the database is gone.
    pub fn apply_change(&mut self, change: Change) {
        for (id, path, content) in change.files {
            self.set_file(id, &path, content);
        }
        for (id, targets) in change.resolutions {
            let file = self.source_or_new(id);
            let uses: Arc<[(String, Option<SourceFile>)]> = targets
                .into_iter()
                .map(|(target, found)| (target, found.map(|id| self.source_or_new(id))))
                .collect();
            if file.uses(self) != uses {
                file.set_uses(self).to(uses);
            }
        }
    }

    fn source_or_new(&mut self, id: FileId) -> SourceFile {
        if let Some(file) = self.source(id) {
            return file;
        }
        let file = SourceFile::new(
            self,
            id,
            Arc::from(""),
            FileState::Missing,
            Arc::from(""),
            Arc::from([]),
            Arc::from([]),
            Arc::from([]),
        );
        Arc::make_mut(&mut self.files).insert(id, file);
        file
    }

    fn set_file(&mut self, id: FileId, path: &str, content: FileContent) {
        let file = self.source_or_new(id);
        if &*file.path(self) != path {
            file.set_path(self).to(path.into());
        }
        let (state, text) = match content {
            FileContent::Text(text) => (FileState::Text, text),
            FileContent::Missing => (FileState::Missing, Arc::from("")),
            FileContent::Unapproved => (FileState::Unapproved, Arc::from("")),
        };
        if file.state(self) != state {
            file.set_state(self).to(state);
        }
        let old = file.text(self);
        if old == text {
            return;
        }
        self.set_chunks(file, &old, &text);
        file.set_text(self).to(text);
    }

    /// Cuts the new text and gives every chunk whose text stays the input it had.
    fn set_chunks(&mut self, file: SourceFile, old_text: &str, new_text: &str) {
        let old_chunks = file.chunks(self);
        let old_starts = file.starts(self);
        let new = prose_syntax::chunks(new_text)
            .into_iter()
            .map(|it| it.range)
            .collect::<Vec<_>>();
        let old_range = |index: usize| {
            let end = old_starts
                .get(index + 1)
                .map_or(old_text.len(), |it| usize::from(*it));
            usize::from(old_starts[index])..end
        };
        let same = |old: usize, new: TextRange| old_text[old_range(old)] == new_text[new];
        let most = old_chunks.len().min(new.len());
        let prefix = (0..most).take_while(|i| same(*i, new[*i])).count();
        let suffix = (0..most - prefix)
            .take_while(|i| same(old_chunks.len() - 1 - i, new[new.len() - 1 - i]))
            .count();

        let old_middle = &old_chunks[prefix..old_chunks.len() - suffix];
        let mut chunks = Vec::with_capacity(new.len());
        chunks.extend_from_slice(&old_chunks[..prefix]);
        for (index, range) in new[prefix..new.len() - suffix].iter().enumerate() {
            let text = &new_text[*range];
            let chunk = match old_middle
                .get(index)
                .copied()
                .or_else(|| Arc::make_mut(&mut self.spare).pop())
            {
                Some(chunk) => {
                    if &*chunk.text(self) != text {
                        chunk.set_text(self).to(text.into());
                    }
                    chunk
                }
                None => Chunk::new(self, text.into()),
            };
            chunks.push(chunk);
        }
        if let Some(unused) = old_middle.get(new.len() - suffix - prefix..) {
            Arc::make_mut(&mut self.spare).extend_from_slice(unused);
        }
        chunks.extend_from_slice(&old_chunks[old_chunks.len() - suffix..]);

        if *old_chunks != *chunks {
            file.set_chunks(self).to(chunks.into());
        }
        let starts: Vec<TextSize> = new.iter().map(|it| it.start()).collect();
        if *old_starts != *starts {
            file.set_starts(self).to(starts.into());
        }
    }
}

/// The chunk at an offset: its index in the file and where it starts. An offset between two chunks belongs to the
/// later one, except that the end of the file belongs to the last.
pub fn chunk_at(db: &dyn Db, file: SourceFile, offset: TextSize) -> Option<(usize, Chunk, TextSize)> {
    let starts = file.starts(db);
    let index = starts.partition_point(|start| *start <= offset).checked_sub(1)?;
    Some((index, *file.chunks(db).get(index)?, starts[index]))
}
