//! The salsa inputs.
// The macro makes constructors and setters without documentation.
#![allow(missing_docs)]

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use prose_syntax::TextSize;

use crate::hir::ChunkBody;
use crate::{FileId, FileState};

/// The text of a chunk. What a file's first cutting has read on the way waits in it for whoever asks first, and is the same as
/// what reading the text again gives.
#[derive(Debug)]
pub struct ChunkText {
    text: Box<str>,
    read: Mutex<Option<Arc<ChunkBody>>>,
}

impl ChunkText {
    pub(crate) fn new(text: &str, read: Option<ChunkBody>) -> Arc<ChunkText> {
        Arc::new(ChunkText {
            text: text.into(),
            read: Mutex::new(read.map(Arc::new)),
        })
    }
    /// What was read already. Only once, so that it does not stay in memory.
    pub(crate) fn take_read(&self) -> Option<Arc<ChunkBody>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.take()
    }
}

impl Deref for ChunkText {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// A piece of a file, some statements long, with its own parse, signature and checks. Where it stands is a matter of its
/// file.
#[salsa::input(debug)]
pub struct Chunk {
    /// The text.
    #[returns(deref)]
    pub text: Arc<ChunkText>,
    /// The file it is a piece of.
    #[returns(copy)]
    pub file: SourceFile,
}

/// A file.
#[salsa::input(debug)]
pub struct SourceFile {
    /// Its id.
    #[returns(copy)]
    pub id: FileId,
    /// The path shown to a person.
    #[returns(clone)]
    pub path: Arc<str>,
    /// Whether there is a text, and if not, why.
    #[returns(copy)]
    pub state: FileState,
    /// The whole text (empty when there is none). Only for readers that want the whole: lowering and the editor.
    #[returns(clone)]
    pub text: Arc<str>,
    /// The chunks in order; changes only when chunks come or go.
    #[returns(clone)]
    pub chunks: Arc<[Chunk]>,
    /// Byte offset of each chunk; changes with almost every keystroke, so only source-map readers look at it.
    #[returns(clone)]
    pub starts: Arc<[TextSize]>,
    /// Where `use` targets lead.
    #[returns(clone)]
    pub uses: Arc<[(String, Option<SourceFile>)]>,
}
