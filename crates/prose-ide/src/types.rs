//! What goes in and comes out: plain data in byte offsets.

use prose_hir::FileId;
use prose_syntax::{TextRange, TextSize};

/// A place in a file. An offset past the end or inside a character is moved to the nearest one before it that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilePosition {
    /// The file.
    pub file: FileId,
    /// Bytes from the start of the file.
    pub offset: TextSize,
}

/// A range in a file, clamped like [`FilePosition::offset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileRange {
    /// The file.
    pub file: FileId,
    /// Bytes from the start of the file.
    pub range: TextRange,
}

/// What a name stands for; editors choose icons by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolKind {
    /// `agent name:`.
    Agent,
    /// `block name:`.
    Block,
    /// A program brought in by `use`.
    Import,
    /// `input name:`.
    Input,
    /// `output name = …`.
    Output,
    /// `let`, a named branch, an assignment that declares.
    Variable,
    /// `const`.
    Constant,
    /// A parameter of a block.
    Parameter,
    /// Bound by `for`, `repeat … as`, `loop … as`, `catch as` or a pipeline stage.
    LoopVariable,
    /// A whole file.
    File,
}

impl SymbolKind {
    /// The word for it in prose.
    pub fn as_str(self) -> &'static str {
        match self {
            SymbolKind::Agent => "agent",
            SymbolKind::Block => "block",
            SymbolKind::Import => "program",
            SymbolKind::Input => "input",
            SymbolKind::Output => "output",
            SymbolKind::Variable => "variable",
            SymbolKind::Constant => "constant",
            SymbolKind::Parameter => "parameter",
            SymbolKind::LoopVariable => "loop variable",
            SymbolKind::File => "file",
        }
    }
}

/// Where a name leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NavigationTarget {
    /// The file of the declaration.
    pub file: FileId,
    /// The whole declaration, its body included.
    pub full_range: TextRange,
    /// The name in it.
    pub focus_range: TextRange,
    /// The name; for a file its path.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
}

/// An answer together with the range of the source that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeInfo<T> {
    /// The range in the asked file.
    pub range: TextRange,
    /// The answer.
    pub info: T,
}

/// How the client shows documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkupKind {
    /// Markdown is rendered.
    Markdown,
    /// Text is shown as it is.
    PlainText,
}

/// What the client can show on hover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoverConfig {
    /// Format of [`HoverResult::markdown`].
    pub markup: MarkupKind,
}

impl Default for HoverConfig {
    fn default() -> Self {
        HoverConfig {
            markup: MarkupKind::Markdown,
        }
    }
}

/// The answer to a hover. Text of the user's program in it is fenced or escaped, so that it can't form links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoverResult {
    /// Markdown, or plain text where [`HoverConfig::markup`] says so.
    pub markdown: String,
    /// What was hovered.
    pub range: TextRange,
}

/// What the client can do with completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompletionConfig {
    /// Whether [`CompletionItem::snippet`] may be filled.
    pub snippets: bool,
}

/// What a completion is; editors choose icons by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompletionKind {
    /// A declared name.
    Symbol(SymbolKind),
    /// A keyword of the language.
    Keyword,
    /// `model:`, `prompt:` ….
    Property,
    /// A value of a property or modifier.
    Value,
    /// A key of a record.
    Field,
}

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionItem {
    /// What is shown and matched against what was typed.
    pub label: String,
    /// What it is.
    pub kind: CompletionKind,
    /// A short line beside the label: signature, model, how it was bound.
    pub detail: Option<String>,
    /// Markdown, under the rules of [`HoverResult`].
    pub documentation: Option<String>,
    /// What to insert as it is.
    pub insert: String,
    /// What to insert in LSP snippet syntax, if that differs and [`CompletionConfig::snippets`] is set.
    pub snippet: Option<String>,
    /// What the insertion replaces: the word under the cursor, or an empty range at it.
    pub replace: TextRange,
    /// Proposals are in the order of these.
    pub sort_text: String,
    /// What typed text is matched against where the label isn't it.
    pub filter_text: Option<String>,
}

/// A declaration in the outline of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolNode {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// A short line: model, parameters, how it was bound.
    pub detail: Option<String>,
    /// The whole declaration; contains `focus_range` and the children's.
    pub full_range: TextRange,
    /// The name in it.
    pub focus_range: TextRange,
    /// Declarations inside it.
    pub children: Vec<SymbolNode>,
}

/// Runs a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCommand {
    /// Which.
    pub file: FileId,
    /// With the backend `simulate`: no model is asked.
    pub simulated: bool,
}

impl RunCommand {
    /// What the editor shows.
    pub fn title(&self) -> &'static str {
        if self.simulated {
            "▷ Run simulated"
        } else {
            "▶ Run"
        }
    }
}

/// A command shown above a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLens {
    /// The line is the one where this starts.
    pub range: TextRange,
    /// What is shown.
    pub title: String,
    /// What it does.
    pub command: RunCommand,
}

/// Replaces a range by a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// What is replaced; empty to insert.
    pub range: TextRange,
    /// The new text.
    pub insert: String,
}

/// Something to do at a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAction {
    /// What is shown.
    pub title: String,
    /// What it does.
    pub kind: CodeActionKind,
}

/// What a [`CodeAction`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeActionKind {
    /// Repairs what a diagnostic reports.
    QuickFix {
        /// The diagnostic's code.
        code: &'static str,
        /// The diagnostic's range.
        diagnostic: TextRange,
        /// Whether it is the first choice for the diagnostic.
        preferred: bool,
        /// Disjoint edits of `file`.
        edits: Vec<TextEdit>,
        /// The file.
        file: FileId,
    },
    /// Repairs what all diagnostics of one code in the file report.
    FixCode {
        /// The code.
        code: &'static str,
        /// Disjoint edits of `file`.
        edits: Vec<TextEdit>,
        /// The file.
        file: FileId,
    },
    /// Writes the program differently. It means the same, but for what the title says.
    Refactor {
        /// The sort of rewriting.
        kind: RefactorKind,
        /// Disjoint edits of `file`, in the order of the text.
        edits: Vec<TextEdit>,
        /// The file.
        file: FileId,
    },
    /// Runs the file.
    Run(RunCommand),
}

/// What a refactoring does; clients ask for them by these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefactorKind {
    /// Makes a block or an agent of what is there.
    Extract,
    /// Puts what is declared elsewhere in the place of its use.
    Inline,
    /// Anything else.
    Rewrite,
}

/// A place where the name under the cursor occurs, or a keyword that belongs to the one there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Highlight {
    /// Where.
    pub range: TextRange,
    /// What happens there.
    pub kind: HighlightKind,
}

/// What a [`Highlight`] marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HighlightKind {
    /// The name is declared or gets a value.
    Write,
    /// The name is read.
    Read,
    /// A keyword of the same construct.
    Keyword,
}

/// Lines that can be folded away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fold {
    /// From somewhere in the line that stays to somewhere in the last line that goes.
    pub range: TextRange,
    /// What they are.
    pub kind: FoldKind,
}

/// What a [`Fold`] hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FoldKind {
    /// The inside of a construct, a list, a text.
    Code,
    /// Comments.
    Comment,
    /// `use` statements below each other.
    Imports,
}

/// A stretch of text and how it is to be coloured. Stretches don't overlap; one may span lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SemanticToken {
    /// Where.
    pub range: TextRange,
    /// What it is.
    pub kind: TokenKind,
    /// The name is declared here.
    pub declaration: bool,
    /// The name never gets another value.
    pub readonly: bool,
    /// A model decides what the text says.
    pub judged: bool,
}

/// What a [`SemanticToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenKind {
    /// A word of the grammar where it acts as one.
    Keyword,
    /// A comment.
    Comment,
    /// Text for people, agents and models.
    String,
    /// An escape in a text.
    Escape,
    /// A number or duration.
    Number,
    /// A sign that computes, compares or connects.
    Operator,
    /// A name.
    Name(SymbolKind),
    /// A key of a property list, record, modifier list or argument list.
    Property,
    /// A value that is a word, such as a model.
    Value,
}

/// Edits of several files that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceChange {
    /// For each file disjoint edits in the order of the text.
    pub edits: std::collections::BTreeMap<FileId, Vec<TextEdit>>,
}

/// What a call takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHelp {
    /// `review(text, depth)`.
    pub label: String,
    /// Markdown, under the rules of [`HoverResult`].
    pub documentation: Option<String>,
    /// Where in the label each parameter stands, in bytes.
    pub parameters: Vec<TextRange>,
    /// The one that is being written, if the call takes it.
    pub active: Option<usize>,
}

/// A word shown in the text that isn't part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlayHint {
    /// Where it is shown.
    pub offset: TextSize,
    /// What is shown.
    pub label: String,
    /// What it tells.
    pub kind: InlayKind,
    /// Where what it names is declared.
    pub target: Option<NavigationTarget>,
}

/// What an [`InlayHint`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InlayKind {
    /// Behind a bound name: the agent and model of its session.
    Session,
    /// In front of an argument: the parameter that it is for.
    Parameter,
    /// Behind a loop without a limit of its own: the one that holds.
    LoopLimit,
}

/// A path that leads somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentLink {
    /// The path without its quotes.
    pub range: TextRange,
    /// Where it leads.
    pub target: LinkTarget,
}

/// Where a [`DocumentLink`] leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A file that is known.
    File(FileId),
    /// An address on the web. Nothing opens it by itself.
    Url(String),
    /// A path, relative to the workspace's folder.
    Path(String),
}

/// A block or program in the hierarchy of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallItem {
    /// The block; a program is the file with an empty focus.
    pub target: NavigationTarget,
}

/// Calls between two items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The other side.
    pub item: CallItem,
    /// Where the calls stand, in the file of the caller.
    pub places: Vec<TextRange>,
}
