//! What the machine asks of the world, and what the world answers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BindKind, EffectId, ErrorKind, ExecutionId, Name, Persist, SourceRange, StmtId, Text, Value};

/// An effect with its identity and place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issued {
    /// Its place in the run; the same on every replay.
    pub id: EffectId,
    /// The node that asked.
    pub stmt: StmtId,
    /// Where that node stands.
    pub src: SourceRange,
    /// The frame it runs in; none for the root.
    pub execution_id: Option<ExecutionId>,
    /// Position in the machine's issue order, from 0. Simulated answers (`nth`, order of delivery) rest on it.
    pub order: u64,
    /// What is asked.
    pub effect: Effect,
}

/// What the machine can ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Run a subagent. Shared, since the machine, whoever performs it and whoever observes it all keep it while it is open.
    Session(Arc<SessionRequest>),
    /// Decide something that the program leaves to judgement.
    Judge(Box<JudgeRequest>),
    /// Read the content of a value as a list, record, number, truth value, or compare it.
    Decode(Box<DecodeRequest>),
    /// Ask the person who runs the program.
    Input(Box<InputRequest>),
    /// Let time pass.
    Sleep(SleepRequest),
    /// Stop other effects; answered when they have stopped.
    CancelScope(CancelRequest),
}

/// A session to spawn. Prompts are already evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRequest {
    /// The agent, if the session names one.
    pub agent: Option<Name>,
    /// Short label for people: the statement's own text, one line.
    pub label: String,
    /// The model's name, if any property names one.
    pub model: Option<String>,
    /// System context: the agent's prompt when the session has its own.
    pub system: Option<Text>,
    /// The task: label paragraph and prompt.
    pub task: Text,
    /// Labelled context values.
    pub context: Vec<ContextItem>,
    /// Whether `context:` was written (an empty one says "start fresh").
    pub context_given: bool,
    /// Skills by name.
    pub skills: Vec<String>,
    /// Permission rules, agent and session merged.
    pub permissions: Vec<PermissionRule>,
    /// Set for a persistent agent.
    pub memory: Option<MemoryRequest>,
    /// Where the result goes.
    pub binding: BindingTarget,
    /// The block invocation that it runs in, for the seed's "Execution scope" part.
    pub scope: Option<ExecutionScope>,
    /// 1 for the first try of the language's `retry`.
    pub attempt: u32,
    /// 1 + `retry`.
    pub max_attempts: u32,
}

/// A labelled value handed to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextItem {
    /// The label.
    pub label: String,
    /// The value at spawn.
    pub value: Value,
    /// The binding that it came from, if it is a whole one.
    pub binding: Option<BindingRef>,
    /// Set when the entry is an agent's memory rather than a value.
    pub memory_of: Option<MemoryRequest>,
}

/// Names a binding file of the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct BindingRef {
    /// Its name.
    pub name: Name,
    /// The frame; none for the root of a program.
    pub execution_id: Option<ExecutionId>,
    /// Path of program calls below the run: empty for the entry, else `imports/…` folder names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
}

/// Where a session's result goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BindingTarget {
    /// Its name and frame.
    #[serde(flatten)]
    pub binding: BindingRef,
    /// How it is bound.
    pub bind_kind: BindKind,
    /// The statement whose text is the `source:` of the binding file.
    pub source: SourceRange,
}

/// The block invocation a session runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionScope {
    /// Its execution id.
    pub execution_id: ExecutionId,
    /// The block.
    pub block: Name,
    /// Number of block frames on the stack, 1 for the outermost.
    pub depth: u32,
}

/// A permission rule with evaluated patterns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRule {
    /// `read`, `write`, `execute`, `bash`, `network`, or another word.
    pub key: Name,
    /// The rule.
    pub rule: PermissionValue,
}

/// An evaluated permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionValue {
    /// Granted.
    Allow,
    /// Refused.
    Deny,
    /// A person is asked.
    Prompt,
    /// Granted for these globs.
    Patterns(Vec<String>),
}

/// A persistent agent's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRequest {
    /// The agent.
    pub agent: Name,
    /// Its scope.
    pub persist: Persist,
    /// Namespace of an imported program (`{handle}--{slug}`); empty for the entry.
    pub namespace: String,
    /// Path of program calls that it runs in, as in [`BindingRef::program`]: memory that dies with the run lies there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    /// Whether memory is loaded (`resume:`) or archived first (`session:`).
    pub mode: MemoryMode,
}

/// What happens to memory that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMode {
    /// `session:`: archived; starts without.
    Fresh,
    /// `resume:`: loaded.
    Resume,
    /// Only read, as context.
    Read,
}

/// A question for the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeRequest {
    /// What kind of answer is wanted.
    pub ask: Ask,
    /// The text between the asterisks, interpolated.
    pub text: Text,
    /// Names that the statement can see.
    pub names: Vec<VisibleName>,
    /// Summaries of finished sessions of the frame stack, oldest first.
    pub history: Vec<SessionSummary>,
}

/// What is asked of the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// `if`, `elif`, `assert`, a filter: yes, no or unsure.
    Condition,
    /// The test of a loop.
    Loop {
        /// `until` rather than `while`.
        until: bool,
        /// 0 for the test before the first iteration.
        test: u32,
        /// The loop's own place, so that answers can go by loop.
        frame: EffectId,
        /// Earlier verdicts of this loop, oldest first.
        previous: Vec<Verdict>,
    },
    /// `choice`: one of the labels.
    Choice {
        /// The labels.
        options: Vec<String>,
    },
    /// `**…**` as a value.
    Value,
    /// A discretion input: how to put it to the person.
    Question,
}

/// A name visible to the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VisibleName {
    /// The name.
    pub name: Name,
    /// Its value (references stay references).
    pub value: Value,
}

/// What is known of a finished session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// The label of its request.
    pub label: String,
    /// One line about its result.
    pub summary: String,
}

/// Content to be read as something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecodeRequest {
    /// The content.
    pub value: Value,
    /// What it is wanted as.
    pub target: DecodeTarget,
}

/// What content is decoded to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecodeTarget {
    /// A list.
    List,
    /// A record that has these keys (missing ones become null).
    Record(Vec<String>),
    /// A number.
    Number,
    /// A truth value.
    Bool,
    /// Whether it equals another value; answered with a truth value.
    Equals(Value),
    /// Whether it is empty text; answered with a truth value.
    IsEmpty,
    /// The JSON text of a list or record that holds references, for interpolation. Needs content, never a judge.
    Json,
    /// The text of an agent's memory, where its name stands as a value (the request's own value is null; null when
    /// there is no memory yet). Needs no judge.
    Memory(MemoryRequest),
}

/// A question for the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputRequest {
    /// The input's name.
    pub name: Name,
    /// The prompt, interpolated.
    pub prompt: Text,
    /// Choices offered; empty for free text.
    pub options: Vec<String>,
}

/// A wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SleepRequest {
    /// Milliseconds.
    pub ms: u64,
    /// What the failed try said about when to come back, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Effects to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelRequest {
    /// The effects, in issue order. Their outcomes, should they still come, are ignored.
    pub effects: Vec<EffectId>,
    /// Whether `finally` bodies now run, so that the runtime starts the deadline.
    pub finally: bool,
}

/// The answer to an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// A session ended well.
    Session(Box<SessionOutcome>),
    /// The effect failed.
    Failed(Failure),
    /// The judge's answer.
    Verdict(Verdict),
    /// Decoded content.
    Decoded {
        /// The value.
        value: Value,
    },
    /// The person's answer.
    Input {
        /// The value.
        value: Value,
    },
    /// The time has passed.
    Slept,
    /// The effects of a [`CancelRequest`] have stopped.
    Cancelled,
}

/// A session's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOutcome {
    /// The value, inline up to the limit, else a reference.
    pub value: Value,
    /// One line about it.
    pub summary: String,
    /// Tokens and money.
    #[serde(default)]
    pub usage: Usage,
    /// Digest of the agent's memory after the session, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<crate::Digest>,
    /// The segment that the session adds to that memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

/// A numbered record of one session in an agent's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// Its number, from 1, given at spawn.
    pub number: u32,
    /// Digest of its text.
    pub sha256: crate::Digest,
}

/// Tokens and money, as the backend reports them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars; none when the backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// All tokens. A backend may report any number, so that sums end at the largest.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds another usage; money stays unknown only while both are.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
    }
}

/// Why an effect failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The kind.
    pub kind: ErrorKind,
    /// What happened, for a person; holds no secret.
    pub message: String,
    /// When to come back, in milliseconds, if the backend said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the failed try cost.
    #[serde(default)]
    pub usage: Usage,
}

/// The judge's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The answer.
    pub decision: Decision,
    /// 0 to 1.
    pub confidence: f64,
    /// Why, for a person.
    pub reason: String,
    /// What the judging cost.
    #[serde(default)]
    pub usage: Usage,
}

/// What the judge decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It holds.
    Yes,
    /// It does not hold.
    No,
    /// Can't be told: loops go on, `if` is false.
    Unsure,
    /// A loop makes no progress: ends it.
    NoProgress,
    /// The label of a choice.
    Option(String),
    /// A judged value.
    Value(Value),
    /// A question for a person, with choices (empty: free text).
    Question {
        /// The question.
        prompt: String,
        /// The choices.
        options: Vec<String>,
    },
}
