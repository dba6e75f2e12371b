//! Every editor feature as plain data in byte offsets: [`AnalysisHost`] takes changes, [`Analysis`] is a snapshot that
//! answers questions.
//!
//! One file per feature. Each function takes a database and a place and returns plain data; nothing here knows a
//! protocol. Deliberately absent: LSP types, serde, IO, names and checks (`prose-hir`), configuration files.
//!
//! Architecture invariant: no answer depends on anything but the changes applied, and no place, however far outside
//! its file, makes a feature panic.

mod call_hierarchy;
mod code_actions;
mod code_lens;
mod completion;
mod describe;
mod diagnostics;
mod document_links;
mod document_symbols;
mod folding;
mod formatting;
mod goto_definition;
mod highlights;
mod hover;
mod inlay_hints;
mod markdown;
mod move_files;
mod names;
mod refactor;
mod references;
mod rename;
mod selection_ranges;
mod semantic_tokens;
mod signature_help;
mod tree;
mod types;
mod workspace_symbols;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod robustness;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use prose_hir::RootDatabase;
use salsa::Database as _;

pub use prose_hir::{Change, Diagnostic, FileContent, FileId, Fix, Resolutions, Tag};
pub use prose_model::Bundle;
pub use prose_model::codes::Severity;
pub use prose_syntax::{LineCol, LineIndex, TextRange, TextSize};
pub use rename::RenameError;
pub use salsa::Cancelled;
pub use types::*;

/// An answer, unless a change came in between; then ask again.
pub type Cancellable<T> = Result<T, Cancelled>;

/// Owns the state. Lives on one thread, which must not hold an [`Analysis`] itself when it applies a change.
#[derive(Default)]
pub struct AnalysisHost {
    db: RootDatabase,
}

impl AnalysisHost {
    /// A host without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a change: cancels what is being computed, waits until the snapshots are gone, then writes.
    ///
    /// IMPORTANT: never call this while the calling thread holds an [`Analysis`]; it would wait for itself.
    pub fn apply_change(&mut self, change: Change) {
        self.db.apply_change(change);
    }

    /// Lets go of what is quickly computed again: after a file was opened, that is what was read of all its chunks, the most
    /// of what is in memory. The rule of [`apply_change`](Self::apply_change) holds.
    pub fn rest(&mut self) {
        self.db.rest();
    }

    /// A snapshot for one request. Cheap.
    pub fn analysis(&self) -> Analysis {
        Analysis { db: self.db.clone() }
    }

    /// Cancels what is being computed and waits until the snapshots are gone; the rule of
    /// [`apply_change`](Self::apply_change) holds.
    pub fn request_cancellation(&mut self) {
        self.db.trigger_cancellation();
    }
}

/// A snapshot that answers questions about files. Drop it as soon as the question is answered: a live one blocks every
/// change. A clone is another snapshot.
#[derive(Clone)]
pub struct Analysis {
    db: RootDatabase,
}

/// Cancels the questions of one [`Analysis`], from any thread; they then answer [`Cancelled::Local`].
#[derive(Clone)]
pub struct Canceller(salsa::CancellationToken);

impl Canceller {
    /// Cancels.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Analysis {
    /// A handle that cancels the questions of this snapshot and no other.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.db.cancellation_token())
    }

    /// The files' ids, in order.
    pub fn files(&self) -> Vec<FileId> {
        let mut files: Vec<_> = self.db.files().map(|(id, _)| id).collect();
        files.sort_unstable();
        files
    }

    /// The file's text; `None` when it is unknown or has none.
    pub fn file_text(&self, file: FileId) -> Cancellable<Option<Arc<str>>> {
        self.with(|db| tree::text(db, file))
    }

    /// The path shown to a person; `None` for an unknown file.
    pub fn file_path(&self, file: FileId) -> Cancellable<Option<Arc<str>>> {
        self.with(|db| db.source(file).map(|source| source.path(db)))
    }

    /// The file's lines, for positions; empty for an unknown file.
    pub fn line_index(&self, file: FileId) -> Cancellable<Arc<LineIndex>> {
        self.with(|db| match tree::source(db, file) {
            Some(source) => prose_hir::line_index(db, source).clone(),
            None => Arc::new(LineIndex::new("")),
        })
    }

    /// What the checks found, in the order of the text.
    pub fn diagnostics(&self, file: FileId) -> Cancellable<Vec<Diagnostic>> {
        self.with(|db| diagnostics::diagnostics(db, file))
    }

    /// What is under the cursor.
    pub fn hover(&self, position: FilePosition, config: HoverConfig) -> Cancellable<Option<HoverResult>> {
        self.with(|db| hover::hover(db, position, config))
    }

    /// What could be written at the cursor.
    pub fn completion(
        &self,
        position: FilePosition,
        config: CompletionConfig,
    ) -> Cancellable<Vec<CompletionItem>> {
        self.with(|db| completion::completion(db, position, config))
    }

    /// Where the name under the cursor is declared.
    pub fn goto_definition(
        &self,
        position: FilePosition,
    ) -> Cancellable<Option<RangeInfo<Vec<NavigationTarget>>>> {
        self.with(|db| goto_definition::goto_definition(db, position))
    }

    /// Where the name under the cursor is used, in all files that are known; in the order of files and text.
    pub fn references(
        &self,
        position: FilePosition,
        include_declaration: bool,
    ) -> Cancellable<Vec<FileRange>> {
        self.with(|db| references::references(db, position, include_declaration))
    }

    /// The places in the file of the name under the cursor; on a keyword, the keywords that belong to it.
    pub fn highlights(&self, position: FilePosition) -> Cancellable<Vec<Highlight>> {
        self.with(|db| highlights::highlights(db, position))
    }

    /// What can be folded, in the order of the text; at most one begins in a line.
    pub fn folds(&self, file: FileId) -> Cancellable<Vec<Fold>> {
        self.with(|db| folding::folds(db, file))
    }

    /// The ranges that a selection at a place grows to, the smallest first; the last is the whole file.
    pub fn selection_ranges(&self, position: FilePosition) -> Cancellable<Vec<TextRange>> {
        self.with(|db| selection_ranges::selection_ranges(db, position))
    }

    /// How a range of a file is to be coloured, in order; all of it when no range is given.
    pub fn semantic_tokens(&self, file: FileId, range: Option<TextRange>) -> Cancellable<Vec<SemanticToken>> {
        self.with(|db| semantic_tokens::semantic_tokens(db, file, range))
    }

    /// For a name: the agent of the session that it is bound to.
    pub fn type_definition(
        &self,
        position: FilePosition,
    ) -> Cancellable<Option<RangeInfo<Vec<NavigationTarget>>>> {
        self.with(|db| goto_definition::type_definition(db, position))
    }

    /// For an agent: its sessions; for a block or program: its calls.
    pub fn implementations(&self, position: FilePosition) -> Cancellable<Vec<FileRange>> {
        self.with(|db| goto_definition::implementations(db, position))
    }

    /// What the call around the cursor takes.
    pub fn signature_help(
        &self,
        position: FilePosition,
        markup: MarkupKind,
    ) -> Cancellable<Option<SignatureHelp>> {
        self.with(|db| signature_help::signature_help(db, position, markup))
    }

    /// Words to show in a range, in the order of the text.
    pub fn inlay_hints(&self, range: FileRange) -> Cancellable<Vec<InlayHint>> {
        self.with(|db| inlay_hints::inlay_hints(db, range))
    }

    /// The paths in a file that lead somewhere.
    pub fn document_links(&self, file: FileId) -> Cancellable<Vec<DocumentLink>> {
        self.with(|db| document_links::document_links(db, file))
    }

    /// Declarations of all files by name, the best matches first.
    pub fn workspace_symbols(&self, query: &str, limit: usize) -> Cancellable<Vec<NavigationTarget>> {
        self.with(|db| workspace_symbols::workspace_symbols(db, query, limit))
    }

    /// The block or program at a place, whose calls can be asked for.
    pub fn call_item(&self, position: FilePosition) -> Cancellable<Option<CallItem>> {
        self.with(|db| call_hierarchy::item(db, position))
    }

    /// Who calls a block or program.
    pub fn incoming_calls(&self, item: &CallItem) -> Cancellable<Vec<Call>> {
        self.with(|db| call_hierarchy::incoming(db, item))
    }

    /// Which blocks and programs a block or program calls.
    pub fn outgoing_calls(&self, item: &CallItem) -> Cancellable<Vec<Call>> {
        self.with(|db| call_hierarchy::outgoing(db, item))
    }

    /// What would be renamed at a place: where its name stands, and the name.
    pub fn prepare_rename(
        &self,
        position: FilePosition,
    ) -> Cancellable<Result<RangeInfo<String>, RenameError>> {
        self.with(|db| rename::prepare(db, position))
    }

    /// The edits that rename what the name under the cursor stands for.
    pub fn rename(
        &self,
        position: FilePosition,
        new_name: &str,
    ) -> Cancellable<Result<SourceChange, RenameError>> {
        self.with(|db| rename::rename(db, position, new_name))
    }

    /// The edits by which the paths in `use` follow files that are about to move. `place` is a file's absolute path with `/`
    /// between its parts, if it has one; `moves` has the new ones. The edits are of the files where they are now.
    pub fn move_files(
        &self,
        place: &dyn Fn(FileId) -> Option<String>,
        moves: &BTreeMap<FileId, String>,
    ) -> Cancellable<SourceChange> {
        self.with(|db| move_files::move_files(db, place, moves))
    }

    /// The declarations of a file as a tree.
    pub fn document_symbols(&self, file: FileId) -> Cancellable<Vec<SymbolNode>> {
        self.with(|db| document_symbols::document_symbols(db, file))
    }

    /// Edits that format the file, in order; none for statements with errors in them.
    pub fn format(&self, file: FileId) -> Cancellable<Vec<TextEdit>> {
        self.with(|db| formatting::format(db, file))
    }

    /// Edits that format the statements a range touches.
    pub fn format_range(&self, range: FileRange) -> Cancellable<Vec<TextEdit>> {
        self.with(|db| formatting::format_range(db, range))
    }

    /// Edits after a line end or a colon was typed; the position is behind it.
    pub fn format_on_type(&self, position: FilePosition, typed: char) -> Cancellable<Vec<TextEdit>> {
        self.with(|db| formatting::format_on_type(db, position, typed))
    }

    /// Commands above lines: Run and Run simulated at the first statement that runs.
    pub fn code_lenses(&self, file: FileId) -> Cancellable<Vec<CodeLens>> {
        self.with(|db| code_lens::code_lenses(db, file))
    }

    /// What settles a diagnostic, the best first.
    pub fn fixes(&self, found: &Diagnostic) -> Cancellable<Vec<Fix>> {
        self.with(|db| {
            tree::source(db, found.file)
                .map(|source| prose_hir::fixes(db, source, found))
                .unwrap_or_default()
        })
    }

    /// The automatic fixes of a file as one, of the codes that are wanted, and how many they are.
    pub fn fix_all(
        &self,
        file: FileId,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Cancellable<Option<(Vec<TextEdit>, usize)>> {
        self.with(|db| code_actions::fix_all(db, file, wanted))
    }

    /// Fixes of diagnostics that touch the range, refactorings of what is there, and Run for editors without lenses.
    pub fn code_actions(&self, range: FileRange) -> Cancellable<Vec<CodeAction>> {
        self.with(|db| code_actions::code_actions(db, range))
    }

    /// The file and all that it can call, lowered; else the diagnostics that prevent it.
    pub fn bundle(&self, file: FileId) -> Cancellable<Result<Arc<Bundle>, Vec<Diagnostic>>> {
        self.with(|db| diagnostics::bundle(db, file))
    }

    /// The targets of the file's `use` statements, as written, each once: what whoever owns the files has to look for.
    pub fn use_targets(&self, file: FileId) -> Cancellable<Vec<String>> {
        self.with(|db| {
            db.source(file)
                .map(|source| prose_hir::use_targets(db, source))
                .unwrap_or_default()
        })
    }

    /// The syntax tree as text, one node or token a line, for tests and bug reports.
    pub fn view_tree(&self, file: FileId) -> Cancellable<String> {
        self.with(|db| tree::view(db, file))
    }

    fn with<T>(&self, question: impl FnOnce(&RootDatabase) -> T) -> Cancellable<T> {
        // A query that unwinds leaves no half-written state: salsa publishes results only when they are complete.
        Cancelled::catch(AssertUnwindSafe(|| question(&self.db)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(3);

    fn change(text: &str) -> Change {
        let mut change = Change::new();
        change.text(FILE, "/a.prose", text);
        change
    }

    #[test]
    fn a_snapshot_sees_what_was_applied_before_it() {
        let mut host = AnalysisHost::new();
        host.apply_change(change("session \"one\"\n"));
        let text = host.analysis().file_text(FILE).unwrap();
        assert_eq!(text.as_deref(), Some("session \"one\"\n"));
        host.apply_change(change("session \"two\"\n"));
        let analysis = host.analysis();
        assert_eq!(
            analysis.file_text(FILE).unwrap().as_deref(),
            Some("session \"two\"\n")
        );
        assert_eq!(analysis.file_path(FILE).unwrap().as_deref(), Some("/a.prose"));
        assert_eq!(analysis.files(), [FILE]);
        assert_eq!(analysis.line_index(FILE).unwrap().line_count(), 2);
    }

    #[test]
    fn a_write_cancels_readers_and_waits_for_them() {
        let mut host = AnalysisHost::new();
        host.apply_change(change("session: nobody\n"));
        let analysis = host.analysis();
        let (started, wait) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            // Asks until it is told to stop; a new text each time would need the writer.
            started.send(()).unwrap();
            loop {
                match analysis
                    .diagnostics(FILE)
                    .and_then(|_| analysis.hover(place(), HoverConfig::default()))
                {
                    Ok(_) => {}
                    Err(why) => break why,
                }
            }
        });
        wait.recv().unwrap();
        host.apply_change(change("session \"x\"\n"));
        assert!(matches!(reader.join().unwrap(), Cancelled::PendingWrite));
        assert!(host.analysis().diagnostics(FILE).unwrap().is_empty());
    }

    #[test]
    fn one_snapshot_can_be_cancelled_alone() {
        let mut host = AnalysisHost::new();
        host.apply_change(change("session: nobody\n"));
        let (one, other) = (host.analysis(), host.analysis());
        one.canceller().cancel();
        assert!(matches!(one.diagnostics(FILE), Err(Cancelled::Local)));
        assert_eq!(other.diagnostics(FILE).unwrap().len(), 1);
    }

    fn place() -> FilePosition {
        FilePosition {
            file: FILE,
            offset: TextSize::new(10),
        }
    }
}
