//! What an observer sees of a run. A [`RunEvent`] is the only way a run is observed: by the editor, the
//! terminal and `state.md` alike.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BindKind, BindingRef, EffectId, ErrorValue, ExecutionId, Name, RunId, SourceRange, StmtId, Usage, Value,
    Verdict,
};

/// Version of the event format; raised only by incompatible changes.
pub const EVENT_VERSION: u32 = 1;

/// An event with its place in the run's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// [`EVENT_VERSION`] of the writer.
    pub v: u32,
    /// The run.
    pub run_id: RunId,
    /// When it was published, RFC 3339 in UTC with milliseconds.
    pub ts: String,
    /// Its place in the order.
    #[serde(flatten)]
    pub order: Order,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Place of an event. Machine events are numbered by the machine and come again, with the same numbers,
/// on replay; what streams in between hangs on the last machine event and is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Order {
    /// A machine event.
    Machine {
        /// From 0, without gaps.
        seq: u64,
    },
    /// Streamed text, tool calls, usage; lifecycle of the run itself.
    Stream {
        /// The last machine event before it, if any.
        after_seq: Option<u64>,
        /// From 0, counted by the runtime process.
        n: u64,
    },
}

/// A machine event with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineEvent {
    /// From 0, without gaps.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

/// What happened. Every `…_started` has exactly one `…_finished` with the same key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    // ---- by the runtime, about the run (stream order) ----
    /// A process took the run up, for the first time or again.
    RunStarted {
        /// The program's path.
        program: String,
        /// Digest of the bundle: positions map to an open text only while its digest matches.
        digest: crate::Digest,
        /// The text's digest per file, in the bundle's order.
        files: Vec<crate::Digest>,
        /// Backend name.
        backend: String,
        /// Whether answers are made up by the simulate backend.
        simulated: bool,
        /// Whether it continues an earlier process's run.
        resumed: bool,
        /// The run directory.
        dir: String,
    },
    /// The process is done with the run.
    RunFinished {
        /// How it ended.
        status: RunStatus,
        /// The program's outputs (or its single value under `result`).
        outputs: IndexMap<String, Value>,
        /// The error of a failed run.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorValue>,
        /// All that was used, earlier processes included.
        usage: Usage,
    },

    // ---- by the machine ----
    /// A statement begins.
    StatementStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
    },
    /// A statement is done.
    StatementFinished {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// How.
        end: End,
    },
    /// A frame begins: block, parallel iteration, pmap item, called program.
    FrameStarted {
        /// The call site.
        #[serde(flatten)]
        at: Place,
        /// The new frame's id.
        frame: ExecutionId,
        /// What kind.
        kind: FrameKind,
        /// Block or program name; the item's name for iterations.
        name: Name,
        /// Block frames on the stack, this one included when it is one.
        depth: u32,
        /// Arguments, or the item and its index.
        arguments: IndexMap<String, Value>,
    },
    /// A frame is left.
    FrameFinished {
        /// Its id.
        frame: ExecutionId,
        /// How.
        end: End,
    },
    /// A construct with parts begins: parallel, loop, for, repeat, if, choice, try, pipeline.
    ConstructStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// Its place, the key of its end.
        construct: EffectId,
        /// What it is.
        kind: ConstructKind,
        /// Branches or items, when known.
        total: Option<u32>,
        /// A loop's condition or a choice's criteria, as written.
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<String>,
    },
    /// A part of a construct begins: a branch, an iteration, an item, an arm.
    PartStarted {
        /// The construct.
        construct: EffectId,
        /// Which, from 0.
        index: u32,
        /// A branch's name, an option's label.
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// A part is done.
    PartFinished {
        /// The construct.
        construct: EffectId,
        /// Which.
        index: u32,
        /// How.
        end: End,
    },
    /// A construct is done.
    ConstructFinished {
        /// The construct.
        construct: EffectId,
        /// How.
        end: End,
    },
    /// A session is asked for.
    SessionStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// The effect.
        effect: EffectId,
        /// The agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Name>,
        /// One line.
        label: String,
        /// The model asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// 1 for the first try.
        attempt: u32,
        /// 1 + `retry`.
        max_attempts: u32,
        /// Where the result goes.
        binding: BindingRef,
        /// `resume:` rather than `session:`.
        resume: bool,
    },
    /// A session is over.
    SessionFinished {
        /// The effect.
        effect: EffectId,
        /// How.
        end: End,
        /// One line about the result, or the failure's message.
        summary: String,
        /// What it used.
        usage: Usage,
    },
    /// The judge is asked.
    JudgeStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// The effect.
        effect: EffectId,
        /// The question, as written.
        text: String,
    },
    /// The judge has answered.
    JudgeFinished {
        /// The effect.
        effect: EffectId,
        /// How.
        end: End,
        /// The answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// The content of a value is asked for.
    DecodeStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// The effect.
        effect: EffectId,
    },
    /// The content was read.
    DecodeFinished {
        /// The effect.
        effect: EffectId,
        /// How.
        end: End,
    },
    /// An input waits for a person.
    InputStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// The effect; also the `requestId` of `prose.answer`.
        effect: EffectId,
        /// The input's name.
        name: Name,
        /// The prompt.
        prompt: String,
        /// Choices offered.
        options: Vec<String>,
    },
    /// An input was answered.
    InputFinished {
        /// The effect.
        effect: EffectId,
        /// How.
        end: End,
    },
    /// A wait begins.
    SleepStarted {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// The effect.
        effect: EffectId,
        /// Milliseconds: what the program says, or what the backend asks for where that is longer.
        ms: u64,
    },
    /// A wait is over.
    SleepFinished {
        /// The effect.
        effect: EffectId,
        /// How.
        end: End,
    },
    /// A name was bound or assigned.
    Bound {
        /// The statement.
        #[serde(flatten)]
        at: Place,
        /// Which binding; `program` and `executionId` name its folder and frame.
        binding: BindingRef,
        /// How it was declared.
        kind: BindKind,
        /// The statement whose text becomes `source:`.
        source: SourceRange,
        /// The value.
        value: Value,
    },
    /// Something ran, probably not as meant.
    Warning {
        /// Where.
        #[serde(flatten)]
        at: Place,
        /// A code of the table where there is one, else a word.
        code: String,
        /// What happened.
        message: String,
    },

    // ---- by the runtime, in between (stream order) ----
    /// Nothing but a person can answer an input that has started: there is no value for it, and the backend gives none.
    InputNeeded {
        /// The effect.
        effect: EffectId,
    },
    /// A session handed to the backend.
    SessionSpawned {
        /// The effect.
        effect: EffectId,
        /// The backend.
        backend: String,
        /// The model really used, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A piece of a session's text.
    SessionText {
        /// The effect.
        effect: EffectId,
        /// The piece.
        text: String,
    },
    /// A session uses a tool.
    SessionTool {
        /// The effect.
        effect: EffectId,
        /// The tool.
        tool: String,
        /// One line about its arguments.
        detail: String,
    },
    /// A session wants what its permissions leave to a person.
    PermissionStarted {
        /// The session's effect.
        effect: EffectId,
        /// Which of this process's questions, from 1: the key of its end.
        question: u64,
        /// The permission: `read`, `write`, `execute`, `bash`, `network`.
        permission: String,
        /// The tool.
        tool: String,
        /// One line: what exactly.
        detail: String,
    },
    /// The question is settled.
    PermissionFinished {
        /// The session's effect.
        effect: EffectId,
        /// Which question.
        question: u64,
        /// How.
        answer: PermissionGrant,
        /// Whether there was anybody to ask; where not, the answer is no.
        attended: bool,
    },
    /// A session wants to know something from the person who runs the program. Unlike an input it is no part of the
    /// program, and the answer goes to the session alone.
    QuestionStarted {
        /// The session's effect.
        effect: EffectId,
        /// Which question: the key of its end, and the `requestId` of `prose.answer`.
        request: EffectId,
        /// What it wants to know.
        text: String,
        /// Answers that it offers; any other will do as well.
        options: Vec<String>,
    },
    /// The question is settled.
    QuestionFinished {
        /// The session's effect.
        effect: EffectId,
        /// Which question.
        request: EffectId,
        /// Whether it was answered. The session goes on without an answer, too.
        answered: bool,
        /// Whether there was anybody to ask.
        attended: bool,
    },
    /// What a session has used so far.
    SessionUsage {
        /// The effect.
        effect: EffectId,
        /// So far.
        usage: Usage,
    },
    /// A marker of where a run stands whose state is kept in memory only: what `state.md` says of the others.
    Narration {
        /// One line.
        line: String,
    },
    /// Something the runtime wants a person to know.
    Notice {
        /// `info`, `warning`.
        level: String,
        /// What.
        message: String,
    },
    /// Instead of events that this observer was too slow for and that could not be made up for. Made for the observer: it
    /// has the number of the first streamed event that is missing, or of the next.
    EventsMissed {
        /// How many of the machine, behind `afterSeq`; 0 unless the journal could not be read.
        machine: u64,
        /// How many of those that came in between.
        streamed: u64,
    },
}

/// The answer to what a session wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionGrant {
    /// It may, this time.
    Allow,
    /// It may, for the rest of the session.
    AllowSession,
    /// It may not.
    Deny,
}

/// Where in the program and in which frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The node.
    pub stmt: StmtId,
    /// Where it stands.
    pub src: SourceRange,
    /// The frame; none for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The place of this occurrence: unique in the run.
    pub path: EffectId,
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Well.
    Ok,
    /// With an error.
    Failed,
    /// Stopped from outside.
    Cancelled,
    /// Left early by `output EXPR`, `return` or `break`.
    Left,
}

/// Kinds of frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// A block invocation.
    Block,
    /// An iteration of `parallel for`.
    Iteration,
    /// An item of `pmap`.
    Item,
    /// A called program.
    Program,
}

/// Kinds of construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConstructKind {
    /// `parallel:`.
    Parallel,
    /// `parallel for`.
    ParallelFor,
    /// `for`.
    For,
    /// `repeat`.
    Repeat,
    /// `loop`.
    Loop,
    /// `if`.
    If,
    /// `choice`.
    Choice,
    /// `try`.
    Try,
    /// A pipeline stage.
    Pipeline,
}

/// How a run ended, or stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// To its end.
    Completed,
    /// By an error nobody caught.
    Failed,
    /// By the user.
    Cancelled,
    /// Nothing can go on before a person answers.
    Waiting,
    /// The budget is spent; goes on when it is resumed with a larger one.
    OutOfBudget,
    /// The process is gone without an end (only seen from outside).
    Interrupted,
}
