//! The judge, the source of inputs, and the observer of issue order.

use std::sync::Arc;

use async_trait::async_trait;
use prose_model::{
    Ask, Decision, DecodeTarget, EffectId, Failure, InputRequest, Issued, JudgeRequest, StmtId, Usage, Value,
    Verdict,
};

use crate::{CancelToken, Content, SpendLimit};

/// Answers what a program leaves to judgement. Stateless: what it is asked holds all it may use.
#[async_trait]
pub trait Judge: Send + Sync {
    /// The name by which people know it.
    fn name(&self) -> &str;

    /// Decides a discretion, a choice, a judged value, or words a question for a person, as
    /// [`JudgeRequest::ask`] says. A failure of kind `judge` means that the answer could not be read; the
    /// runtime asks once more.
    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure>;

    /// Reads content that the deterministic decoder could not read as what it is wanted as.
    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure>;
}

/// What content was read as.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The value.
    pub value: Value,
    /// What it cost.
    pub usage: Usage,
}

/// For what costs nothing.
impl From<Value> for Reading {
    fn from(value: Value) -> Reading {
        Reading {
            value,
            usage: Usage::default(),
        }
    }
}

/// A question for the judge.
#[derive(Clone)]
pub struct JudgeInput {
    /// The effect: idempotency key.
    pub effect: EffectId,
    /// The statement that asks.
    pub stmt: StmtId,
    /// The question, references unresolved.
    pub request: Arc<JudgeRequest>,
    /// The text between the asterisks.
    pub text: String,
    /// 1, or 2 when the first answer could not be read.
    pub attempt: u32,
    /// Reads the visible names' values.
    pub content: Arc<dyn Content>,
    /// What is left of the run's budget, as for a session.
    pub budget: SpendLimit,
    /// Cancelled when the answer is no longer wanted.
    pub cancel: CancelToken,
}

/// Content to be read as something.
#[derive(Clone)]
pub struct DecodeInput {
    /// The effect: idempotency key.
    pub effect: EffectId,
    /// The content.
    pub text: String,
    /// What it is wanted as.
    pub target: DecodeTarget,
    /// What is left of the run's budget, as for a session.
    pub budget: SpendLimit,
    /// Cancelled when the answer is no longer wanted.
    pub cancel: CancelToken,
}

/// Answers inputs in place of a person, as a mock file does.
#[async_trait]
pub trait InputSource: Send + Sync {
    /// The answer, or none when a person has to be asked. `prompt` is the request's prompt, resolved.
    async fn answer(&self, effect: &EffectId, request: &InputRequest, prompt: &str) -> Option<Value>;
}

/// Sees every effect in the machine's issue order, also those that a replay answers from the journal, before any of
/// them is performed. Lets simulated answers count occurrences the same way in a resumed run.
pub trait IssueObserver: Send + Sync {
    /// One effect was issued.
    fn issued(&self, issued: &Issued, content: &dyn Content) -> Result<(), Failure>;

    /// How long an effect that is no session takes in virtual time, in milliseconds.
    fn delay_ms(&self, _effect: &EffectId) -> u64 {
        0
    }
}

/// Whether a decision is an answer to what was asked: a choice is answered by one of its labels, a condition
/// by yes, no or unsure, a loop's test also by no progress.
pub fn decision_fits(ask: &Ask, decision: &Decision) -> bool {
    match (ask, decision) {
        (Ask::Condition | Ask::Loop { .. }, Decision::Yes | Decision::No | Decision::Unsure) => true,
        (Ask::Loop { .. }, Decision::NoProgress) => true,
        (Ask::Choice { options }, Decision::Option(label)) => options.contains(label),
        (Ask::Value, Decision::Value(_) | Decision::Unsure) => true,
        (Ask::Question, Decision::Question { .. }) => true,
        _ => false,
    }
}
