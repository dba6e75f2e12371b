//! What the machine hands out and how it refuses.

use indexmap::IndexMap;
use prose_model::{
    EffectId, ErrorValue, ExecutionId, FrameKind, Issued, MachineEvent, Name, RunStatus, StmtId, Value,
};

/// What one call of [`crate::Machine::step`] brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Newly asked, in issue order. A [`prose_model::Effect::CancelScope`] names earlier ones that are to stop.
    pub effects: Vec<Issued>,
    /// What happened, in order; numbered without gaps over the whole run.
    pub events: Vec<MachineEvent>,
    /// Whether there is more to do.
    pub state: StepState,
}

/// How the machine stands after a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepState {
    /// The step's share of work is used up; call `step` again before anything else.
    Running,
    /// Nothing goes on without an outcome.
    Waiting,
    /// The program is over; further steps bring nothing.
    Done(Completion),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// `Completed`, `Failed` or `Cancelled`.
    pub status: RunStatus,
    /// Outputs that were bound, also by a run that failed (language.md, "Execution"), in order of first binding.
    pub outputs: IndexMap<String, Value>,
    /// The value that `output EXPR` or `return` gave at top level; else, when no output was declared, the final
    /// statement's value.
    pub result: Option<Value>,
    /// The error that nobody caught.
    pub error: Option<ErrorValue>,
}

/// Why an outcome was refused. The machine is unchanged by a refused call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No effect has this id.
    #[error("no effect has the id {0}")]
    Unknown(EffectId),
    /// The effect was answered before.
    #[error("the effect {0} was answered before")]
    AlreadyResolved(EffectId),
    /// The outcome can't answer an effect of this kind.
    #[error("the effect {id} is of kind {effect}; an outcome of kind {outcome} can't answer it")]
    WrongKind {
        /// The effect.
        id: EffectId,
        /// Its kind.
        effect: &'static str,
        /// The outcome's kind.
        outcome: &'static str,
    },
}

/// A frame as the call stack shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct StackEntry {
    /// Its number.
    pub execution_id: ExecutionId,
    /// What it is.
    pub kind: FrameKind,
    /// Block or program name; the item's name for iterations.
    pub name: Name,
    /// Block frames on the stack, this one included when it is one.
    pub depth: u32,
    /// The calling frame; none when it is the root.
    pub parent: Option<ExecutionId>,
    /// The node that opened it.
    pub call_site: StmtId,
    /// Whether a frame that it called is still open.
    pub waiting: bool,
}
