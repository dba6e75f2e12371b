//! Messages beyond the protocol that go to the client.

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use prose_model::{EffectId, RunEvent, RunId};
use serde::{Deserialize, Serialize};

/// `prose/runEvent`.
#[derive(Debug)]
pub(crate) enum RunEventNotification {}

impl Notification for RunEventNotification {
    type Params = RunEventParams;
    const METHOD: &'static str = "prose/runEvent";
}

/// Parameters of `prose/runEvent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunEventParams {
    /// The run.
    pub(crate) run_id: RunId,
    /// Counts this run's notifications from 0, without gaps.
    pub(crate) seq: u64,
    /// The event as `prose run --json` prints it. Neighbouring pieces of one session's text may come as one.
    pub(crate) event: RunEvent,
}

/// `prose/input`.
#[derive(Debug)]
pub(crate) enum InputRequest {}

impl Request for InputRequest {
    type Params = InputParams;
    type Result = InputAnswer;
    const METHOD: &'static str = "prose/input";
}

/// Parameters of `prose/input`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputParams {
    /// The run.
    pub(crate) run_id: RunId,
    /// The question.
    pub(crate) request_id: EffectId,
    /// The input's name, or the label of the session that asks.
    pub(crate) name: String,
    /// What is asked.
    pub(crate) prompt: String,
    /// Choices offered; absent for free text.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) options: Vec<String>,
    /// Whether a session asks, for itself alone: any answer will do.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) of_session: bool,
}

/// Answer to `prose/input`; `null` leaves the run waiting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputAnswer {
    /// The answer.
    #[serde(default)]
    pub(crate) value: serde_json::Value,
}
