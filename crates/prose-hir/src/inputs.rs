//! The salsa inputs.
// The macro makes constructors and setters without documentation.
#![allow(missing_docs)]

use std::sync::Arc;

use prose_syntax::TextSize;

use crate::{FileId, FileState};

/// A piece of a file, some statements long, with its own parse, signature and checks. Where it stands is a matter of its
/// file.
#[salsa::input(debug)]
pub struct Chunk {
    /// The text.
    #[returns(deref)]
    pub text: Arc<str>,
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
