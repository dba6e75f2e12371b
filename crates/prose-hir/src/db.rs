//! Inputs of the database and the one way to change them.

use std::sync::Arc;

use prose_syntax::{ChunkMap, Splice, TextRange, TextSize};
use rustc_hash::FxHashMap;
use salsa::Setter;

use crate::inputs::ChunkText;
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
    /// Where each file is cut.
    maps: Arc<FxHashMap<SourceFile, ChunkMap>>,
    /// Bytes that a chunk has about.
    chunk_size: usize,
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
        Self::with_chunk_size(events, ChunkMap::TARGET)
    }

    /// An empty database that cuts files into chunks of about so many bytes; 1 cuts between all statements of the top
    /// level. No answer depends on it.
    pub fn with_chunk_size(events: Option<EventCallback>, chunk_size: usize) -> Self {
        RootDatabase {
            chunk_size,
            storage: salsa::Storage::new(events),
            files: Arc::default(),
            maps: Arc::default(),
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
        let Some(edit) = Edit::between(&old, &text) else {
            return;
        };
        self.set_chunks(file, &old, &text, &edit);
        file.set_text(self).to(text);
    }

    /// Cuts the new text where it differs; every chunk whose text stays keeps the input it had.
    fn set_chunks(&mut self, file: SourceFile, old_text: &str, new_text: &str, edit: &Edit) {
        let old_chunks = file.chunks(self);
        let maps = Arc::make_mut(&mut self.maps);
        // What is known of the new chunks already.
        let mut read = Vec::new();
        let (starts, splice) = match maps.get_mut(&file).filter(|_| !old_text.is_empty()) {
            Some(map) => {
                let splice = map.edit(new_text, edit.deleted, edit.inserted);
                (map.starts(), splice)
            }
            None => {
                let map = prose_syntax::cut_and_read(new_text, self.chunk_size, |it| {
                    read.push(crate::build::chunk_body(it));
                });
                let splice = Splice {
                    old: 0..old_chunks.len(),
                    new: 0..map.len(),
                };
                (maps.entry(file).insert_entry(map).into_mut().starts(), splice)
            }
        };
        let starts: Arc<[TextSize]> = starts.into();

        let end = |index: usize| {
            starts
                .get(index + 1)
                .map_or(new_text.len(), |it| usize::from(*it))
        };
        let piece = |index: usize| &new_text[usize::from(starts[index])..end(index)];
        let old = &old_chunks[splice.old.clone()];
        // Chunks by which others know where a name is declared are best kept: those behind what was written or deleted at
        // the beginning of the first, those before it otherwise.
        let (more, fewer) =
            match old.len() != splice.new.len() && self.ends_like(old, splice.new.clone().map(piece)) {
                true => (
                    splice.new.len().saturating_sub(old.len()),
                    old.len().saturating_sub(splice.new.len()),
                ),
                false => (0, 0),
            };
        let kept = old[fewer..].iter().take(splice.new.len()).copied();
        let mut spare: Vec<Chunk> = old[..fewer].to_vec();
        spare.extend(old[fewer..].iter().skip(splice.new.len()));
        let mut kept = std::iter::repeat_n(None, more).chain(kept.map(Some));
        let mut read = read.into_iter();
        let mut fresh = Vec::with_capacity(splice.new.len());
        for index in splice.new.clone() {
            let text = piece(index);
            let read = read.next();
            let used = kept.next().flatten();
            let used = used.or_else(|| Arc::make_mut(&mut self.spare).pop());
            let chunk = match used {
                Some(chunk) => {
                    if **chunk.text(self) != *text {
                        chunk.set_text(self).to(ChunkText::new(text, read));
                    }
                    if chunk.file(self) != file {
                        chunk.set_file(self).to(file);
                    }
                    chunk
                }
                None => Chunk::new(self, ChunkText::new(text, read), file),
            };
            fresh.push(chunk);
        }
        Arc::make_mut(&mut self.spare).extend(spare);
        if old_chunks[splice.old.clone()] != *fresh {
            let chunks: Arc<[Chunk]> = old_chunks[..splice.old.start]
                .iter()
                .chain(&fresh)
                .chain(&old_chunks[splice.old.end..])
                .copied()
                .collect();
            file.set_chunks(self).to(chunks);
        }
        if *file.starts(self) != *starts {
            file.set_starts(self).to(starts);
        }
    }
}

impl RootDatabase {
    /// Forgets what is quickly read from the texts again, all but a little. Waits until every clone of the database is gone.
    pub fn rest(&mut self) {
        crate::queries::forget(self);
    }

    /// Whether chunks have more in common at their end with what replaces them than at their beginning.
    fn ends_like<'a>(
        &self,
        old: &[Chunk],
        mut new: impl DoubleEndedIterator<Item = &'a str> + Clone,
    ) -> bool {
        let (Some(first), Some(last)) = (old.first(), old.last()) else {
            return false;
        };
        let (Some(new_first), Some(new_last)) = (new.clone().next(), new.next_back()) else {
            return false;
        };
        let same = |it: &(u8, u8)| it.0 == it.1;
        let front = first.text(self).bytes().zip(new_first.bytes());
        let back = last.text(self).bytes().rev().zip(new_last.bytes().rev());
        back.take_while(same).count() > front.take_while(same).count()
    }
}

/// The one stretch in which two texts differ, on character boundaries of both.
struct Edit {
    /// In the old text.
    deleted: TextRange,
    /// Length of what stands in its place in the new one.
    inserted: TextSize,
}

impl Edit {
    /// Compares two texts; `None` when they are equal.
    fn between(old: &str, new: &str) -> Option<Edit> {
        const STEP: usize = 1024;
        let (a, b) = (old.as_bytes(), new.as_bytes());
        let most = a.len().min(b.len());
        let mut prefix = 0;
        while prefix + STEP <= most && a[prefix..prefix + STEP] == b[prefix..prefix + STEP] {
            prefix += STEP;
        }
        while prefix < most && a[prefix] == b[prefix] {
            prefix += 1;
        }
        if prefix == a.len() && prefix == b.len() {
            return None;
        }
        while !(old.is_char_boundary(prefix) && new.is_char_boundary(prefix)) {
            prefix -= 1;
        }
        let most = most - prefix;
        let mut suffix = 0;
        let same = |from: usize, len: usize| {
            a[a.len() - from - len..a.len() - from] == b[b.len() - from - len..b.len() - from]
        };
        while suffix + STEP <= most && same(suffix, STEP) {
            suffix += STEP;
        }
        while suffix < most && same(suffix, 1) {
            suffix += 1;
        }
        while !(old.is_char_boundary(a.len() - suffix) && new.is_char_boundary(b.len() - suffix)) {
            suffix -= 1;
        }
        let size = |it: usize| TextSize::new(u32::try_from(it).unwrap_or(u32::MAX));
        Some(Edit {
            deleted: TextRange::new(size(prefix), size(a.len() - suffix)),
            inserted: size(b.len() - suffix - prefix),
        })
    }
}

/// The chunk at an offset: its index in the file and where it starts. An offset between two chunks belongs to the
/// later one, except that the end of the file belongs to the last.
pub fn chunk_at(db: &dyn Db, file: SourceFile, offset: TextSize) -> Option<(usize, Chunk, TextSize)> {
    let starts = file.starts(db);
    let index = starts.partition_point(|start| *start <= offset).checked_sub(1)?;
    Some((index, *file.chunks(db).get(index)?, starts[index]))
}
