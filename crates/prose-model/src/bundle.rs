//! The lowered form of a program and of all it can call: what a run executes.
//!
//! A bundle is immutable, owns no syntax tree, and is stored with the run (`bundle.json`), so that a
//! resumed run executes what was started even when the files have changed since.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Name, StmtId};

/// Version of the bundle's serialised form.
pub const BUNDLE_VERSION: u32 = 1;

/// A program, everything it can call, and the sources they were lowered from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// [`BUNDLE_VERSION`] of the writer.
    pub version: u32,
    /// Index into `programs` of the one that runs first.
    pub entry: usize,
    /// The entry program and every program that it can call.
    pub programs: Vec<Program>,
    /// The sources; [`SourceRange::file`] is an index into this list.
    pub files: Vec<BundleFile>,
    /// Digest over the paths and texts of `files`, in order.
    pub digest: Digest,
}

/// One source file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleFile {
    /// The path as shown to a person, relative to the project root where possible.
    pub path: String,
    /// The whole text.
    pub text: Arc<str>,
    /// Digest of `text`.
    pub digest: Digest,
}

/// A range of bytes in one of the bundle's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SourceRange {
    /// Index into [`Bundle::files`].
    pub file: u32,
    /// Byte offset of the first byte.
    pub start: u32,
    /// Byte offset after the last byte.
    pub end: u32,
}

/// One runnable program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The file's stem, or the slug of an import.
    pub name: Name,
    /// Folder name under `imports/` and namespace of project and user memory: `{handle}--{slug}`; empty for the entry.
    pub namespace: String,
    /// Index into [`Bundle::files`].
    pub file: u32,
    /// Declared inputs in source order (contract).
    pub inputs: Vec<InputContract>,
    /// Names bound by `output NAME = …` at any depth of the top level, in source order (contract).
    pub outputs: Vec<Name>,
    /// Agents, own and contributed by local used files.
    pub agents: IndexMap<Name, Agent>,
    /// Blocks, own and contributed by local used files.
    pub blocks: IndexMap<Name, Block>,
    /// What `use` statements name.
    pub imports: IndexMap<Name, Import>,
    /// The top level, without definitions.
    pub body: Vec<Node>,
}

/// An input as a caller sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputContract {
    /// The name that it binds.
    pub name: Name,
    /// The prompt's source text, for listings.
    pub prompt: String,
    /// Whether it stands before anything that runs, so that it is asked before the run starts.
    pub leading: bool,
    /// Whether it has a default.
    pub has_default: bool,
}

/// A used program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// The target as written.
    pub target: String,
    /// Index into [`Bundle::programs`]; none when it was not resolved (calling it is then an error of the run).
    pub program: Option<usize>,
}

/// A block definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// Its name.
    pub name: Name,
    /// Where it is declared.
    pub src: SourceRange,
    /// Parameters in order.
    pub params: Vec<Name>,
    /// `(max_depth: N)`; 100 where absent (seed, "Recursion Depth Limits").
    pub max_depth: Option<u32>,
    /// The statements.
    pub body: Vec<Node>,
}

/// An agent definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its name.
    pub name: Name,
    /// Where it is declared.
    pub src: SourceRange,
    /// Persistence, if any.
    pub persist: Option<Persist>,
    /// Defaults for sessions of this agent.
    pub props: Props,
}

/// Where a persistent agent's memory lives (seed, "Memory Scoping").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Persist {
    /// `persist: true`: dies with the run.
    Execution,
    /// `persist: project`.
    Project,
    /// `persist: user`.
    User,
    /// `persist: "path"`, relative to the workspace root.
    Path(String),
}

/// Properties of an agent or a session; a session's key replaces the agent's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Props {
    /// A model name (an identifier lowers to a literal text).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<Node>>,
    /// The prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<Node>>,
    /// The context; an empty list says "none" aloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// How many times a failed session is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Node>>,
    /// The wait between tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Skills by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Box<Node>>,
    /// Permissions by key (`read`, `write`, `execute`, `bash`, `network`, …).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub permissions: IndexMap<Name, Permission>,
}

/// What a session is given to read: labelled values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// Label and value; the label of a plain name is that name.
    pub items: Vec<ContextEntry>,
}

/// One entry of a `context:`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextEntry {
    /// Shown to the session; for an expression without a name its source text.
    pub label: String,
    /// What it evaluates to at spawn.
    pub value: Node,
}

/// The wait before a retry (language.md, "Execution").
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// No wait.
    None,
    /// 1 s each time.
    Linear,
    /// 1, 2, 4 … s, at most 60 s.
    Exponential,
    /// A fixed wait in milliseconds.
    Millis(u64),
}

/// One permission rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Granted.
    Allow,
    /// Refused.
    Deny,
    /// A person is asked.
    Prompt,
    /// Granted for these glob patterns (text nodes; inserted text is glob-escaped at spawn).
    Patterns(Vec<Node>),
}

/// A node of the executable tree. Every construct is an expression; a statement is one whose value may go unused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Stable identity.
    pub id: StmtId,
    /// Where it stands.
    pub src: SourceRange,
    /// What it does.
    pub op: Op,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string with its interpolations.
    Text(Template),
    /// The value of a name: frame, calling frames, root.
    Name(Name),
    /// An agent's name used as a value: its memory.
    AgentMemory(Name),
    /// `of.key` (also `.length`, `.count`).
    Member {
        /// The record, error or list.
        of: Box<Node>,
        /// The key as written.
        key: String,
    },
    /// `of[index]`.
    Index {
        /// The list or record.
        of: Box<Node>,
        /// A number or a key.
        index: Box<Node>,
    },
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{a, b}`, `{k: v}`.
    Record(Vec<RecordEntry>),
    /// `not x`.
    Not(Box<Node>),
    /// `-x`.
    Neg(Box<Node>),
    /// A binary operator.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left side.
        lhs: Box<Node>,
        /// Right side.
        rhs: Box<Node>,
    },
    /// `**…**` where a value or a condition is wanted: the judge decides.
    Judge(Template),
    /// A session.
    Session(Box<Session>),
    /// `do block(args)`.
    Call {
        /// The block.
        block: Name,
        /// Arguments in order.
        args: Vec<Argument>,
    },
    /// `program(k: v)`.
    CallProgram {
        /// Key in [`Program::imports`].
        import: Name,
        /// Arguments.
        args: Vec<Argument>,
    },
    /// `a -> b -> c`: each gets the previous result as context.
    Arrow(Vec<Node>),
    /// `source | stage | stage`.
    Pipeline {
        /// The collection.
        source: Box<Node>,
        /// Left to right.
        stages: Vec<Stage>,
    },
    /// `do:`.
    Do(Vec<Node>),
    /// `parallel:`.
    Parallel(Parallel),
    /// `for`, `parallel for`.
    For(Box<For>),
    /// `repeat n`.
    Repeat {
        /// How often.
        count: Box<Node>,
        /// Bound to 0, 1, ….
        index: Option<Name>,
        /// The statements.
        body: Vec<Node>,
    },
    /// `loop`.
    Loop(Box<Loop>),
    /// `if`/`elif`/`else`.
    If {
        /// Conditions with their bodies, in order.
        arms: Vec<Arm>,
        /// The `else` body.
        otherwise: Option<Vec<Node>>,
    },
    /// `choice`.
    Choice {
        /// What the judge decides by.
        criteria: Template,
        /// The options.
        options: Vec<ChoiceOption>,
    },
    /// `try`.
    Try(Box<Try>),
    /// `input`.
    Input(Box<Input>),
    /// `let`, `const`, `output name =`, a named parallel branch.
    Bind {
        /// How it was declared.
        kind: BindKind,
        /// What it binds.
        target: BindTarget,
        /// The right side.
        value: Box<Node>,
    },
    /// `name = …`, `name.field = …`.
    Assign {
        /// The variable.
        name: Name,
        /// Path of fields below it; empty for the variable itself.
        path: Vec<Node>,
        /// The right side.
        value: Box<Node>,
    },
    /// `output EXPR`, `return EXPR`: leaves the nearest named block (in a pipeline body: yields the item).
    Return(Option<Box<Node>>),
    /// `break`.
    Break,
    /// `throw`, `throw "…"`.
    Throw(Option<Box<Node>>),
    /// `assert COND: "text"`.
    Assert {
        /// Must hold.
        cond: Box<Node>,
        /// The message of the error.
        message: Option<Box<Node>>,
    },
}

/// Text with interpolations, dedented and with escapes resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Template {
    /// In order; two literal parts never touch.
    pub parts: Vec<TemplatePart>,
}

/// A part of a [`Template`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplatePart {
    /// Literal text.
    Text(String),
    /// `{name.field[0]}`.
    Insert {
        /// What is inserted; a name, member or index node.
        value: Box<Node>,
        /// The source text with its braces, kept when the name has no slot at run time.
        verbatim: String,
    },
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordEntry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Node,
}

/// An argument of a call; evaluated at the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    /// Given by name, else by position.
    pub name: Option<Name>,
    /// The value.
    pub value: Node,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BinaryOp {
    /// `+`: numbers add, a list on either side appends, else texts join.
    Add,
    /// `-`.
    Sub,
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Lt,
    /// `<=`.
    Le,
    /// `>`.
    Gt,
    /// `>=`.
    Ge,
    /// `and`, short-circuit; a side that needs no model is evaluated first.
    And,
    /// `or`, likewise.
    Or,
}

/// `session` or `resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// `resume:` rather than `session:`.
    pub resume: bool,
    /// `session NAME: agent`: also binds the result.
    pub name: Option<Name>,
    /// The agent.
    pub agent: Option<Name>,
    /// The text after `session`: with `prompt:` the first paragraph of the task.
    pub label: Option<Box<Node>>,
    /// Its own properties.
    pub props: Props,
}

/// A stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Transforms each item.
    Map {
        /// Name of the item in the body.
        item: Name,
        /// The body; its last value is the result.
        body: Vec<Node>,
    },
    /// Keeps items whose body gives a true value.
    Filter {
        /// Name of the item in the body.
        item: Name,
        /// The body.
        body: Vec<Node>,
    },
    /// `map`, concurrently; each item is a frame.
    Pmap {
        /// Name of the item in the body.
        item: Name,
        /// The body.
        body: Vec<Node>,
    },
    /// Folds from the first item.
    Reduce {
        /// Name of the accumulator.
        acc: Name,
        /// Name of the item.
        item: Name,
        /// The body.
        body: Vec<Node>,
    },
    /// `chunks(n)`: lists of at most n items.
    Chunks(Box<Node>),
}

/// `parallel:` with its join.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parallel {
    /// Branches in order; a named branch is a [`Op::Bind`] of kind `Branch`.
    pub branches: Vec<Node>,
    /// When the block is done.
    pub strategy: Strategy,
    /// What a failed branch does.
    pub policy: Policy,
    /// `count: N` of `any`.
    pub count: Option<Box<Node>>,
    /// `max: N`: how many run at once.
    pub max: Option<Box<Node>>,
}

/// Join strategy (seed, "Join Strategies").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Waits for all.
    #[default]
    All,
    /// The first completion decides.
    First,
    /// The first success, or `count` successes.
    Any,
}

/// Failure policy (seed, "Failure Policies").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The first failure cancels the rest and is raised.
    #[default]
    FailFast,
    /// All run; failures are bound as error values and reported once.
    Continue,
    /// As `continue`, without the report.
    Ignore,
}

/// `for x, i in xs` and `parallel for`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct For {
    /// Bound to each item.
    pub item: Name,
    /// Bound to 0, 1, ….
    pub index: Option<Name>,
    /// The collection.
    pub source: Node,
    /// Set for `parallel for`: each iteration is a frame.
    pub parallel: Option<ParallelFor>,
    /// The statements.
    pub body: Vec<Node>,
}

/// Modifiers of `parallel for`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ParallelFor {
    /// When it is done.
    pub strategy: Strategy,
    /// What a failed iteration does.
    pub policy: Policy,
    /// `count: N` of `any`.
    pub count: Option<Box<Node>>,
    /// How many run at once.
    pub max: Option<Box<Node>>,
}

/// `loop`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loop {
    /// Tested before each iteration.
    pub test: Option<LoopTest>,
    /// `(max: N)`.
    pub max: Option<Node>,
    /// Bound to 0, 1, ….
    pub index: Option<Name>,
    /// The statements.
    pub body: Vec<Node>,
}

/// A loop's condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopTest {
    /// Ends the loop when it holds.
    Until(Node),
    /// Ends the loop when it does not hold.
    While(Node),
}

/// A condition and its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// The condition.
    pub cond: Node,
    /// The statements.
    pub body: Vec<Node>,
}

/// `option "label":`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceOption {
    /// The label as written.
    pub label: String,
    /// The label with its interpolations; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// Where it stands.
    pub src: SourceRange,
    /// The statements.
    pub body: Vec<Node>,
}

/// `try`/`catch`/`finally`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Try {
    /// The guarded statements.
    pub body: Vec<Node>,
    /// The handler.
    pub catch: Option<Catch>,
    /// Runs in every case, also on cancellation.
    pub finally: Option<Vec<Node>>,
}

/// `catch as err:`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Catch {
    /// The name of the error in the body.
    pub name: Option<Name>,
    /// The statements.
    pub body: Vec<Node>,
}

/// `input name: prompt`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The name that it binds.
    pub name: Name,
    /// The prompt; shown verbatim for a string.
    pub prompt: Option<Template>,
    /// Whether the prompt is a discretion, which the judge turns into a question with choices.
    pub discretion: bool,
    /// Used when nothing was supplied.
    pub default: Option<Node>,
}

/// How a name was bound; also the `kind:` of a binding file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BindKind {
    /// `input`.
    Input,
    /// `output name =`.
    Output,
    /// `let`.
    Let,
    /// `const`.
    Const,
    /// `name = …` in `parallel:`; written as `let`.
    Branch,
    /// A block's parameter; no file.
    Param,
    /// A loop, catch or pipeline variable; no file.
    Loop,
    /// A session whose result no one names; written as `let` under `anon_NNN`.
    Anonymous,
}

impl BindKind {
    /// The word after `kind:` in a binding file, or none when the binding has no file.
    pub fn file_kind(self) -> Option<&'static str> {
        match self {
            BindKind::Input => Some("input"),
            BindKind::Output => Some("output"),
            BindKind::Let | BindKind::Branch | BindKind::Anonymous => Some("let"),
            BindKind::Const => Some("const"),
            BindKind::Param | BindKind::Loop => None,
        }
    }
}

/// What a binding binds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BindTarget {
    /// One name.
    Name(Name),
    /// `{ a, b }`: keys of a record under their own names.
    Record(Vec<Name>),
}
