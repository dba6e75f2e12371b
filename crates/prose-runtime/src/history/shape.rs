//! What a report of a run is made of: plain data for a person's screen, a page or a program.

use indexmap::IndexMap;
use prose_model::{ConstructKind, EffectId, ExecutionId, Usage};
use serde::Serialize;

/// A run from beginning to end.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// The run.
    pub id: String,
    /// The program's path.
    pub program: String,
    /// Its directory.
    pub dir: String,
    /// The backend that it was started with.
    pub backend: String,
    /// How it stands: `completed`, `failed`, `cancelled`, `waiting`, `interrupted`, `running`, `unreadable` or
    /// `foreign`.
    pub status: String,
    /// When it was started, RFC 3339.
    pub started: Option<String>,
    /// Time of the last record, RFC 3339.
    pub updated: Option<String>,
    /// How long processes worked on it, in milliseconds; for a simulated one, how long it would have taken.
    pub duration_ms: u64,
    /// Whether its times are those of a simulation rather than of the clock.
    pub virtual_time: bool,
    /// When later processes took it up, in milliseconds since the start.
    pub resumed_ms: Vec<u64>,
    /// Sessions asked for, tries counted.
    pub sessions: u32,
    /// Sessions that have an answer.
    pub sessions_done: u32,
    /// What all answers cost.
    pub usage: Usage,
    /// Inputs with what they were answered.
    pub inputs: Vec<InputLine>,
    /// What ran, each line before those under it.
    pub tree: Vec<Line>,
    /// Which session gave rise to which.
    pub flow: Vec<Flow>,
    /// The latest value of each name.
    pub bindings: Vec<BindingLine>,
    /// The program's outputs.
    pub outputs: IndexMap<String, Shown>,
    /// The value of a program without outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Shown>,
    /// The error of a failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorLine>,
    /// What it warned of.
    pub warnings: Vec<String>,
    /// What is damaged or can't be told.
    pub problems: Vec<String>,
}

/// A line of the tree.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Index of the line that it lies under.
    pub parent: Option<usize>,
    /// How deep it lies.
    pub depth: usize,
    /// What it is.
    pub kind: LineKind,
    /// What it is called: a session's label, a block's name, a condition.
    pub title: String,
    /// The agent of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that a session asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where it stands: `file:line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// When it began, in milliseconds since the start.
    pub begin_ms: u64,
    /// When it was over; none while it is not.
    pub end_ms: Option<u64>,
    /// How it stands.
    pub state: LineState,
    /// What it used; of what has lines under it, all of those.
    pub usage: Usage,
    /// The tries of a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What the judge said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictLine>,
    /// One line about the result, or what went wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Where a session's result went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// What a session was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Shown>,
    /// What a session answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Shown>,
    /// The effect of a session, question or input; of a session's last try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectId>,
}

/// What a line of the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A session.
    Session,
    /// A question to the judge.
    Judge,
    /// A question to a person.
    Input,
    /// A wait.
    Wait,
    /// A block's invocation.
    Block,
    /// A called program.
    Program,
    /// An iteration of `parallel for`, an item of `pmap`.
    Item,
    /// A construct.
    Construct(ConstructKind),
}

impl LineKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            LineKind::Session => "session",
            LineKind::Judge => "judge",
            LineKind::Input => "input",
            LineKind::Wait => "wait",
            LineKind::Block => "do",
            LineKind::Program => "program",
            LineKind::Item => "item",
            LineKind::Construct(kind) => match kind {
                ConstructKind::Parallel | ConstructKind::ParallelFor => "parallel",
                ConstructKind::For => "for",
                ConstructKind::Repeat => "repeat",
                ConstructKind::Loop => "loop",
                ConstructKind::If => "if",
                ConstructKind::Choice => "choice",
                ConstructKind::Try => "try",
                ConstructKind::Pipeline => "pipeline",
            },
        }
    }
}

/// How a line of the tree stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// Done.
    Ok,
    /// Failed.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// Going on.
    Running,
    /// Waiting for a person.
    Waiting,
    /// Not over, and no process is there to go on with it.
    Unfinished,
}

impl LineState {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            LineState::Ok => "done",
            LineState::Failed => "failed",
            LineState::Cancelled => "cancelled",
            LineState::Running => "running",
            LineState::Waiting => "waiting",
            LineState::Unfinished => "unfinished",
        }
    }
}

/// A try of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// When it was asked for.
    pub asked_ms: u64,
    /// When a backend took it up.
    pub started_ms: Option<u64>,
    /// When it was over.
    pub end_ms: Option<u64>,
    /// How it stands.
    pub state: LineState,
    /// What it used.
    pub usage: Usage,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What the judge said.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictLine {
    /// `yes`, `no`, `unsure`, `no progress`, the label of a choice, a judged value or question.
    pub decision: String,
    /// 0 to 1.
    pub confidence: f64,
    /// Why.
    pub reason: String,
}

/// An input with its answer.
#[derive(Debug, Clone, Serialize)]
pub struct InputLine {
    /// Its name.
    pub name: String,
    /// Its prompt; empty for a value that was given before the program asked.
    pub prompt: String,
    /// The choices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The answer; none while it waits.
    pub value: Option<Shown>,
    /// Where the answer is from: `start` (given with the program), `resume`, `run` (asked, or answered by a mock file).
    pub from: &'static str,
}

/// An edge between two lines of the tree that are sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Index of the earlier session in the tree.
    pub from: usize,
    /// Index of the later one.
    pub to: usize,
    /// `context`: the later one was given the earlier one's result. `memory`: they share one. `then`: the program went
    /// on with the later one when it had the earlier one's result.
    pub kind: &'static str,
}

/// The latest value of a name.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingLine {
    /// The name.
    pub name: String,
    /// The frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// Folders of called programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// `input`, `let`, `const`, `output`, or a word for what has no file.
    pub kind: &'static str,
    /// When it was bound last, in milliseconds since the start.
    pub at_ms: u64,
    /// How often it was bound.
    pub times: u32,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Its value.
    pub value: Shown,
}

/// A value as it is shown.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// Its size as text, in bytes.
    pub bytes: u64,
    /// The text, or its beginning.
    pub text: String,
    /// Whether something was left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An error of the program.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorLine {
    /// The kind.
    pub kind: String,
    /// What happened.
    pub message: String,
    /// The statement.
    pub statement: String,
}
