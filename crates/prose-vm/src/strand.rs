//! A strand: one concurrent branch, with its stack of continuations on the heap.

use std::sync::Arc;

use prose_model::{
    Backoff, BindingRef, ContextItem, DecodeRequest, EffectId, End, ErrorValue, ExecutionId, FrameKind, Name,
    Policy, SessionRequest, Strategy, Value, Verdict,
};

use crate::code::{Body, NodeId};
use crate::scope::ScopeId;

/// Names a strand; never used again.
pub(crate) type StrandId = u64;

/// One concurrent branch.
#[derive(Debug)]
pub(crate) struct Strand {
    pub id: StrandId,
    /// The strand that waits for it, and which of that strand's parts it is.
    pub parent: Option<(StrandId, usize)>,
    pub stack: Vec<Kont>,
    pub cx: Cx,
    pub control: Control,
    pub cancel: Cancel,
    /// How many `finally` bodies it is in, those of its ancestors included: above 0 it can't be cancelled.
    pub protected: u32,
    /// Names that this strand has bound in the frame it started in.
    pub bound: Vec<Name>,
    /// Where the last session's result went, for the next part of an arrow.
    pub last_binding: Option<BindingRef>,
}

/// Where a strand stands besides its stack.
#[derive(Debug, Clone)]
pub(crate) struct Cx {
    pub scope: ScopeId,
    pub instance: u32,
    /// Prefix of the places below: call sites and loop indexes.
    pub place: Arc<str>,
}

/// What a strand does next.
#[derive(Debug)]
pub(crate) enum Control {
    /// Evaluate a node.
    Eval(NodeId),
    /// Give a value to the top of the stack.
    Value(Value),
    /// Leave the top of the stack.
    Unwind(Unwind),
    /// Wait for an effect's outcome.
    Effect(EffectId),
    /// Wait for the parts of the join on top of the stack.
    Join,
    /// Cancelled; wait until the cancel scope's effects have stopped.
    Stopping(EffectId),
}

/// Why frames are left.
#[derive(Debug, Clone)]
pub(crate) enum Unwind {
    Error(Arc<ErrorValue>),
    Return(Value),
    Break,
    Cancel,
}

impl Unwind {
    pub fn end(&self) -> End {
        match self {
            Unwind::Error(_) => End::Failed,
            Unwind::Return(_) | Unwind::Break => End::Left,
            Unwind::Cancel => End::Cancelled,
        }
    }
}

/// How far a strand is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancel {
    No,
    /// It unwinds and runs `finally` bodies.
    Requested,
    /// The deadline passed: it unwinds and runs nothing.
    Killed,
}

/// A continuation: what is to be done with a value or when unwinding, and the place to come back to.
#[derive(Debug)]
pub(crate) struct Kont {
    pub cx: Cx,
    pub what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    /// Statements in order; `next - 1` is running.
    Seq { nodes: Body, next: usize },
    /// An operation whose constructs run first and whose pure part is then evaluated at once.
    Task(Box<TaskState>),
    /// `and`, `or`: the first side is running, or the second.
    Logic { node: NodeId, second: bool },
    /// A session, or the wait before its next try.
    Session(Box<SessionState>),
    /// A judged condition or value.
    Judge { node: NodeId },
    /// A choice among these labels: waits for the verdict.
    Choice { node: NodeId, labels: Vec<String> },
    /// An option's body.
    ChoiceBody { node: NodeId, option: usize },
    /// An input: waits for the judge's question or the person's answer.
    Input {
        node: NodeId,
        prompt: prose_model::Text,
        /// What was offered to the person; none while the judge is asked how to ask.
        options: Option<Vec<String>>,
    },
    /// A block, iteration or item frame.
    Frame(Box<FrameState>),
    /// A program.
    Program(Box<ProgramState>),
    /// `for` in sequence, and `repeat`.
    For(Box<ForState>),
    /// `loop`.
    Loop(Box<LoopState>),
    /// `if`: the condition of `arm` is tested, or its body runs.
    If { node: NodeId, arm: usize, body: bool },
    /// `try`.
    Try { node: NodeId, phase: TryPhase },
    /// `a -> b`; `next - 1` is running.
    Arrow {
        node: NodeId,
        next: usize,
        previous: Option<ContextItem>,
    },
    /// A pipeline stage other than pmap.
    Stage(Box<StageState>),
    /// Waits for other strands.
    Join(Box<Join>),
}

/// What a task does once its constructs have run.
#[derive(Debug, Clone)]
pub(crate) enum Task {
    /// Gives the node's value.
    Value(NodeId),
    /// Gives the node's value as a truth value.
    Truth(NodeId),
    /// Gives a value that is at hand as a truth value.
    AsTruth(NodeId, Value),
    /// Gives the items of a value for a later pipeline stage.
    StageItems(NodeId, usize, Value),
    /// Cuts the items of a pipeline's stage; the second node is the size.
    Chunks(NodeId, usize, NodeId, Arc<Vec<Value>>),
    /// Does what the construct does with its operands.
    Construct(NodeId),
}

impl Task {
    pub fn node(&self) -> NodeId {
        match self {
            Task::Value(node)
            | Task::Truth(node)
            | Task::AsTruth(node, _)
            | Task::StageItems(node, ..)
            | Task::Chunks(node, ..)
            | Task::Construct(node) => *node,
        }
    }
}

/// A task under way.
#[derive(Debug)]
pub(crate) struct TaskState {
    pub task: Task,
    pub lifts: Body,
    /// `next - 1` is running.
    pub next: usize,
    /// Values of the constructs that have run.
    pub temps: Vec<(NodeId, Value)>,
    /// Answers to decodings; the pure part starts over after each.
    pub memo: Vec<(DecodeRequest, Value)>,
    /// The decoding that is waited for.
    pub asked: Option<DecodeRequest>,
}

/// A session under way.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub node: NodeId,
    pub request: Arc<SessionRequest>,
    pub backoff: Backoff,
    pub sleeping: bool,
    /// Whether the result has no name of its own.
    pub anonymous: bool,
}

/// A frame that is open.
#[derive(Debug)]
pub(crate) struct FrameState {
    pub scope: ScopeId,
    pub id: ExecutionId,
    pub call: NodeId,
    pub kind: FrameKind,
    /// What the caller had bound.
    pub bound: Vec<Name>,
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct ProgramState {
    pub inner: Cx,
    /// None for the entry.
    pub id: Option<ExecutionId>,
    /// Whether its leading inputs are being asked.
    pub prelude: bool,
    /// What the caller had bound.
    pub bound: Vec<Name>,
}

/// A `for` or `repeat` under way.
#[derive(Debug)]
pub(crate) struct ForState {
    pub node: NodeId,
    /// None for `repeat`.
    pub items: Option<Arc<Vec<Value>>>,
    pub count: u64,
    /// `next - 1` is running.
    pub next: u64,
    pub values: Vec<Value>,
    pub layer: ScopeId,
}

/// A `loop` under way.
#[derive(Debug)]
pub(crate) struct LoopState {
    pub node: NodeId,
    pub iteration: u64,
    pub max: Option<u64>,
    pub values: Vec<Value>,
    pub testing: bool,
    /// A verdict of this test said that nothing moves any more.
    pub no_progress: bool,
    pub verdicts: Vec<(NodeId, Verdict)>,
    pub layer: ScopeId,
}

/// What a `try` does.
#[derive(Debug)]
pub(crate) enum TryPhase {
    Body,
    Catch {
        layer: ScopeId,
    },
    /// Runs `finally`; then goes on with what was pending.
    Finally {
        then: Pending,
    },
}

/// What goes on after `finally`.
#[derive(Debug)]
pub(crate) enum Pending {
    Value(Value),
    Unwind(Unwind),
}

/// A pipeline stage under way.
#[derive(Debug)]
pub(crate) struct StageState {
    pub node: NodeId,
    pub stage: usize,
    pub items: Arc<Vec<Value>>,
    pub next: usize,
    pub out: Vec<Value>,
    /// The accumulator of `reduce`.
    pub acc: Value,
    pub layer: ScopeId,
    /// The item's value is being read as a truth value.
    pub judging: bool,
}

/// A join under way.
#[derive(Debug)]
pub(crate) struct Join {
    pub node: NodeId,
    pub kind: JoinKind,
    pub construct: EffectId,
    pub children: Vec<Child>,
    /// First child that was not started.
    pub next: usize,
    pub running: usize,
    /// How many have succeeded, and how many can't any more.
    pub succeeded: usize,
    pub lost: usize,
    pub max: usize,
    pub strategy: Strategy,
    pub policy: Policy,
    /// Successes that decide, for `any`.
    pub need: usize,
    pub decided: Option<Decided>,
    /// The cancel scope that the losers' effects were put in, until it is answered.
    pub stopping: Option<EffectId>,
    pub items: Arc<Vec<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Branches,
    Iterations,
    /// Items of a pipeline's stage.
    Items(usize),
    /// Leading inputs.
    Prelude,
}

/// A part of a join.
#[derive(Debug)]
pub(crate) struct Child {
    pub strand: Option<StrandId>,
    pub state: ChildState,
    pub bound: Box<[Name]>,
}

#[derive(Debug)]
pub(crate) enum ChildState {
    Waiting,
    Running,
    Ok(Value),
    Failed(Arc<ErrorValue>),
    /// Cancelled or left.
    Gone,
}

/// What a join was decided to do once its losers are gone.
#[derive(Debug)]
pub(crate) enum Decided {
    Done,
    Unwind(Unwind),
}
