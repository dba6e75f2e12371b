//! The queries. Those of a chunk know neither where it stands nor what others declare.

use std::sync::Arc;

use crate::Name;
use prose_syntax::{LineIndex, Parse, SyntaxNode, TextRange};
use rustc_hash::{FxHashMap, FxHashSet};
use salsa::Database as _;

use crate::checks::{Among, Checked};
use crate::diagnostic::Finding;
use crate::hir::ChunkBody;
use crate::scopes::{RefKind, Scopes};
use crate::signature::{Declarations, Usage};
use crate::symbols::{FileSymbols, ProgramScope, Site};
use crate::view::{Glance, Seen};
use crate::{Chunk, Db, RootDatabase, SourceFile};

/// A parse that is equal only to itself: comparing trees costs as much as parsing.
#[derive(Debug, Clone)]
pub struct ParsedChunk(Arc<Parse>);

impl PartialEq for ParsedChunk {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for ParsedChunk {}

impl std::ops::Deref for ParsedChunk {
    type Target = Parse;
    fn deref(&self) -> &Parse {
        &self.0
    }
}

impl ParsedChunk {
    /// The root of the chunk's tree; ranges count from the chunk's start.
    pub fn root(&self) -> SyntaxNode {
        self.0.syntax()
    }
}

/// Chunks of which trees are kept, from one change to the next; an attribute takes no constant.
const PARSES: usize = 32;
/// Likewise what was read of them.
const BODIES: usize = 64;

/// Forgets all but a few of both.
pub(crate) fn forget(db: &mut RootDatabase) {
    const KEPT: usize = 4;
    parse::set_lru_capacity(db, KEPT);
    body::set_lru_capacity(db, KEPT);
    db.trigger_lru_eviction();
    parse::set_lru_capacity(db, PARSES);
    body::set_lru_capacity(db, BODIES);
}

/// The tree of a chunk, for whoever asks about the text itself.
#[salsa::tracked(lru = 32)]
pub fn parse(db: &dyn Db, chunk: Chunk) -> ParsedChunk {
    ParsedChunk(Arc::new(prose_syntax::parse(chunk.text(db))))
}

/// The statements of a chunk, and what the parser found.
///
/// Does not ask for [`parse`]: a whole file's trees would stay until the next change, and a tree is several times as large as
/// what is read from it.
#[salsa::tracked(lru = 64)]
pub fn body(db: &dyn Db, chunk: Chunk) -> Arc<ChunkBody> {
    let text = chunk.text(db);
    if let Some(read) = text.take_read() {
        return read;
    }
    Arc::new(crate::build::chunk_body(&prose_syntax::read(text)))
}

/// Whether the parser found errors in a chunk.
#[salsa::tracked]
fn is_broken(db: &dyn Db, chunk: Chunk) -> bool {
    let errors = &body(db, chunk).errors;
    errors
        .iter()
        .any(|it| it.severity() == prose_model::codes::Severity::Error)
}

/// Whether the parser found errors in a file, so that some of what it declares may be missing.
#[salsa::tracked]
pub(crate) fn is_damaged(db: &dyn Db, file: SourceFile) -> bool {
    file.chunks(db).iter().any(|chunk| *is_broken(db, *chunk))
}

/// Names and scopes of a chunk.
#[salsa::tracked]
pub(crate) fn scopes(db: &dyn Db, chunk: Chunk) -> Arc<Scopes> {
    let body = body(db, chunk);
    let mut out = Scopes::of(body);
    out.declared = Arc::new(crate::signature::declarations_of(body, &out));
    Arc::new(out)
}

/// What a chunk declares: no ranges, so that it stays equal while prompts are edited.
#[salsa::tracked]
pub(crate) fn declarations(db: &dyn Db, chunk: Chunk) -> Arc<Declarations> {
    scopes(db, chunk).declared.clone()
}

/// Where each chunk of a file stands.
#[salsa::tracked]
pub(crate) fn positions(db: &dyn Db, file: SourceFile) -> Arc<FxHashMap<Chunk, u32>> {
    Arc::new(file.chunks(db).iter().copied().zip(0u32..).collect())
}

/// The names a chunk uses.
#[salsa::tracked]
pub(crate) fn usages(db: &dyn Db, chunk: Chunk) -> Arc<[Usage]> {
    crate::signature::usages_of(scopes(db, chunk)).into()
}

/// Words of the statements with an error in a chunk, any of which may have been meant as a use. Asked only when a name seems to be unused.
#[salsa::tracked]
pub(crate) fn mentions(db: &dyn Db, chunk: Chunk) -> Arc<FxHashSet<Name>> {
    let mut out = FxHashSet::default();
    if declarations(db, chunk).broken {
        crate::checks::broken_words(chunk.text(db), &body(db, chunk).errors, &mut out);
    }
    Arc::new(out)
}

/// The texts of several lines in a chunk, each with where it begins and ends. Asked only where something is silenced.
#[salsa::tracked]
pub(crate) fn long_texts(db: &dyn Db, chunk: Chunk) -> Arc<[(TextRange, TextRange)]> {
    crate::checks::long_texts(&parse(db, chunk).root()).into()
}

/// What a file declares.
#[salsa::tracked]
pub(crate) fn file_symbols(db: &dyn Db, file: SourceFile) -> Arc<FileSymbols> {
    Arc::new(crate::symbols::fold(db, file))
}

/// What a file sees, through its local `use` statements too.
#[salsa::tracked(no_eq)]
pub(crate) fn program_scope(db: &dyn Db, file: SourceFile) -> Arc<ProgramScope> {
    Arc::new(crate::symbols::program_scope(db, file))
}

/// The names that a chunk uses or declares, sorted by their numbers.
#[salsa::tracked]
pub(crate) fn names(db: &dyn Db, chunk: Chunk) -> Arc<[Name]> {
    crate::view::names(db, chunk)
}

/// What the checks of a chunk look at outside of it, as one number.
#[salsa::tracked]
pub(crate) fn glance(db: &dyn Db, chunk: Chunk) -> Option<Glance> {
    crate::view::glance(db, chunk.file(db), chunk)
}

/// What a name means to a chunk that does not have it.
#[salsa::tracked]
pub(crate) fn seen(db: &dyn Db, chunk: Chunk, name: Name) -> Arc<Seen> {
    Arc::new(crate::view::seen(db, chunk, name))
}

/// The name of a table that was probably meant by a word. Asked only for words that mean nothing.
#[salsa::tracked]
pub(crate) fn meant(db: &dyn Db, file: SourceFile, word: Name, among: Among) -> Option<Name> {
    crate::checks::meant(program_scope(db, file), &word, among)
}

/// The names of variables into which one edit makes a word, or by which it may have been meant. Likewise.
#[salsa::tracked]
pub(crate) fn like(db: &dyn Db, file: SourceFile, word: Name, one_edit: bool) -> Arc<[Name]> {
    crate::checks::like(program_scope(db, file), &word, one_edit).into()
}

/// What skills are known by in a file: names, aliases, and paths without what they begin with.
#[salsa::tracked]
pub(crate) fn known_skills(db: &dyn Db, file: SourceFile) -> Arc<FxHashSet<String>> {
    let symbols = file_symbols(db, file);
    let mut out = symbols.skills.clone();
    for (alias, import) in &symbols.imports {
        out.insert(alias.to_string());
        out.insert(import.target.clone());
        out.insert(import.target.trim_start_matches('@').to_owned());
        out.extend(import.target.rsplit('/').next().map(str::to_owned));
    }
    Arc::new(out)
}

/// The program whose result a variable holds wherever it can be read: its name and target.
#[salsa::tracked]
pub(crate) fn held(db: &dyn Db, file: SourceFile, name: Name) -> Option<(Name, String)> {
    crate::checks::held(file_symbols(db, file), &name)
}

/// Whether a session or `resume` of an agent stands in an earlier chunk, and whether any session in the file starts it afresh.
#[salsa::tracked]
pub(crate) fn memory(db: &dyn Db, chunk: Chunk, agent: Name) -> (bool, bool) {
    let file = chunk.file(db);
    let Some((first, starts)) = memories(db, file).get(&agent).copied() else {
        return (false, false);
    };
    let at = positions(db, file).get(&chunk).copied();
    (at.is_some_and(|at| first < at), starts)
}

/// The findings of a chunk as part of its file.
#[salsa::tracked]
pub(crate) fn check_chunk(db: &dyn Db, chunk: Chunk) -> Arc<Checked> {
    Arc::new(crate::checks::chunk(db, chunk.file(db), chunk))
}

/// For each agent, the first chunk that starts or goes on with a session of it, and whether any session in the file starts it
/// afresh.
#[salsa::tracked]
pub(crate) fn memories(db: &dyn Db, file: SourceFile) -> Arc<FxHashMap<Name, (u32, bool)>> {
    let mut out: FxHashMap<Name, (u32, bool)> = FxHashMap::default();
    for (index, chunk) in (0u32..).zip(file.chunks(db).iter()) {
        for used in usages(db, *chunk).iter() {
            if used.has(RefKind::Agent) || used.has(RefKind::Resume) {
                let entry = out.entry(used.name).or_insert((index, false));
                entry.1 |= used.has(RefKind::Agent);
            }
        }
    }
    Arc::new(out)
}

/// Declarations of a file that nothing uses; the ranges of these findings mean nothing.
#[salsa::tracked]
pub(crate) fn unused(db: &dyn Db, file: SourceFile) -> Arc<[(Site, Finding)]> {
    crate::checks::unused::check(db, file).into()
}

/// The lines of a file.
#[salsa::tracked]
pub fn line_index(db: &dyn Db, file: SourceFile) -> Arc<LineIndex> {
    Arc::new(LineIndex::new(&file.text(db)))
}
