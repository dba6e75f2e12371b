//! What a program means: salsa inputs and queries over its chunks, the names it declares and uses, every check, and the
//! lowering to a [`prose_model::Bundle`].
//!
//! All input goes through one [`Change`]. A file is cut into chunks; queries of a [`Chunk`] know neither where it stands nor
//! what others declare, so that a keystroke costs one chunk. Functions for the editor take a place in a file and answer with
//! ranges of the file.
//!
//! Deliberately absent: LSP types, IO, finding and fetching of files, configuration of severities.
//!
//! Architecture invariant: no query that others build on holds a range of the file; ranges are chunk-relative, and where a
//! chunk stands is asked for last.

mod build;
mod checks;
mod db;
mod diagnostic;
pub mod hir;
mod inputs;
mod labels;
mod lower;
mod name;
pub mod paths;
mod queries;
mod resolve;
mod scopes;
mod semantic;
mod signature;
mod symbols;
mod vars;
mod view;

pub use checks::{diagnostics, fix_all, fix_code, fixes};
pub use db::{
    Change, Db, EventCallback, FileContent, FileId, FileState, Resolutions, RootDatabase, chunk_at,
};
pub use diagnostic::{Diagnostic, Fix, Tag};
pub use inputs::{Chunk, ChunkText, SourceFile};
pub use lower::bundle;
pub use name::Name;
pub use prose_syntax::LineIndex;
pub use queries::{ParsedChunk, body, line_index, parse};
pub use resolve::Binding;
pub use scopes::{DefKind, RefKind};
pub use semantic::{
    Definition, NameUse, NamedRange, ProgramContract, Reference, VisibleName, block_params, contract,
    definitions, name_at, names_in, program_file, references, resolve_at, scope_at, sees, use_targets,
    used_file,
};
