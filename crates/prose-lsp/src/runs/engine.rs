//! What the shell needs of a runtime, so that commands and notifications can be tested with a scripted one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use prose_model::{Bundle, EffectId, RunEvent, RunId};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// The one backend that runs anywhere, since it asks nobody and touches nothing but the run's folder.
pub(crate) const SIMULATE: &str = "simulate";

/// What to run and how.
#[derive(Debug, Clone)]
pub(crate) struct StartRequest {
    /// The program, lowered from the open text.
    pub(crate) bundle: Arc<Bundle>,
    /// The program's path, if it has one.
    pub(crate) path: Option<PathBuf>,
    /// Values for inputs, by name.
    pub(crate) inputs: Map<String, Value>,
    /// How to run.
    pub(crate) how: How,
}

/// Choices that a start and a resume share.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct How {
    /// Folder that `.prose/` is in or goes into: the client's workspace folder, if it has one.
    pub(crate) folder: Option<PathBuf>,
    /// Backend name; without one the configuration decides.
    pub(crate) backend: Option<String>,
    /// State backend name.
    pub(crate) state: Option<String>,
    /// Mock file for `simulate`.
    pub(crate) mock: Option<PathBuf>,
    /// Sessions at a time.
    pub(crate) max_parallel: Option<u32>,
    /// US dollars for the whole run.
    pub(crate) budget_usd: Option<f64>,
    /// Tokens for the whole run.
    pub(crate) budget_tokens: Option<u64>,
    /// Whether the workspace's own configuration may name programs and addresses.
    pub(crate) trusted: bool,
}

/// What goes on with a run that is taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resumption {
    /// Where its program has changed.
    pub(crate) changes: Changes,
    /// What failed for a reason that passes is asked again.
    pub(crate) retry_failed: bool,
}

/// What becomes of a run whose program's files have changed since it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changes {
    /// It is not resumed.
    Refused,
    /// It goes on with what is on disk.
    Accepted,
    /// It goes on with what is on disk in this file.
    AcceptedIn(PathBuf),
}

/// A run that is going on.
pub(crate) struct Started {
    /// Its id.
    pub(crate) id: RunId,
    /// Everything that happens. The stream ends with the run; the last event is `RunFinished` unless the run crashed. It
    /// holds few events: who fills it waits, and keeps what has no place.
    pub(crate) events: mpsc::Receiver<RunEvent>,
    /// Ways to act on it.
    pub(crate) control: Arc<dyn Control>,
}

/// Acts on a run from outside; none of these waits for the run.
pub(crate) trait Control: Send + Sync {
    /// Asks the run to stop; it ends by itself, after its `finally` bodies.
    fn cancel(&self);
    /// Lets go of the run as it stands; it can be resumed.
    fn stop(&self);
    /// Answers an input. The first valid answer wins.
    fn answer(&self, request: &EffectId, value: Value) -> Result<(), RunError>;
}

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunSummary {
    /// The run.
    pub(crate) run_id: RunId,
    /// `running`, `waiting`, or how it ended.
    pub(crate) status: String,
    /// The program's path.
    pub(crate) program: String,
    /// Questions that wait for `prose.answer`.
    pub(crate) waiting_for: Vec<Question>,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question {
    /// The effect; names the question in `prose.answer`.
    pub(crate) request_id: EffectId,
    /// The input's name, or the label of the session that asks.
    pub(crate) name: String,
    /// What is asked.
    pub(crate) prompt: String,
    /// Choices offered; empty for free text.
    pub(crate) options: Vec<String>,
    /// Whether a session asks, for itself alone: any answer will do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_session: bool,
}

/// Why something about a run can't be done; the text is for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunError(pub(crate) String);

impl RunError {
    /// The refusal that an untrusted workspace gets.
    pub(crate) fn untrusted() -> RunError {
        let text = "This workspace is not trusted, so its programs can't be run. Trust it in the editor, or use Run simulated.";
        RunError(text.to_owned())
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A runtime.
pub(crate) trait Engine: Send + Sync + 'static {
    /// Starts a run and returns as soon as it has an id.
    fn start(&self, request: StartRequest) -> BoxFuture<'static, Result<Started, RunError>>;
    /// Continues a run that has stopped or crashed. Without trust only one that was started with [`SIMULATE`].
    fn resume(&self, run: RunId, with: Resumption, how: How)
    -> BoxFuture<'static, Result<Started, RunError>>;
    /// Runs found on disk under the given folder, latest first.
    fn list(&self, folder: Option<PathBuf>) -> BoxFuture<'static, Vec<RunSummary>>;
}
