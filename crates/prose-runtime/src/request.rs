//! What a caller hands to the engine and gets back.

use std::borrow::Cow;
use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use prose_agents::{
    Backend, BackendError, Content, PermissionAnswer, PermissionQuestion, plain_json, plain_text,
};
use prose_model::{Bundle, EffectId, ErrorValue, Name, RunId, RunOptions, RunStatus, Text, Usage, Value};
use prose_state::StateError;

use crate::content::StoreContent;

/// A future that some signal resolves.
pub type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A run to start.
pub struct RunRequest {
    /// What is executed.
    pub bundle: Arc<Bundle>,
    /// The program's path as shown to a person; relative to the project root where possible.
    pub program: String,
    /// Values for inputs, by name; each serves the first execution of that input.
    pub inputs: IndexMap<String, Value>,
    /// Options that a resume keeps. `backend` and `mock_text` are filled in from the backend.
    pub options: RunOptions,
    /// Who runs sessions and decides.
    pub backend: Backend,
    /// Everything about this process that a resume does not keep.
    pub attach: Attach,
}

/// A run to go on with.
pub struct ResumeRequest {
    /// The run.
    pub run_id: RunId,
    /// Values for inputs that wait or are still to come.
    pub inputs: IndexMap<String, Value>,
    /// The program as it is now, when its user accepts what has changed since the run was started: this is executed, and
    /// of the answers so far those count whose place and question it has too. None: a changed program is refused.
    pub changed: Option<Arc<Bundle>>,
    /// Who runs sessions and decides; none: the one that the run was started with, opened by name.
    pub backend: Option<Backend>,
    /// What is to be otherwise than the run was started with, for this process.
    pub overrides: Overrides,
    /// Everything about this process that a resume does not keep.
    pub attach: Attach,
}

/// Options of a resume that replace those of the run, none: as the run has them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overrides {
    /// At most so many sessions at once, in this process.
    pub max_parallel: Option<u32>,
    /// Total time for one session in this process, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// A session that reports nothing for so long has failed, in this process; milliseconds.
    pub idle_timeout_ms: Option<u64>,
    /// US dollars for the whole run, what it has cost so far included. Kept for later resumes.
    pub budget_usd: Option<f64>,
    /// Tokens for the whole run, those used so far included. Kept for later resumes.
    pub budget_tokens: Option<u64>,
    /// Sessions and questions whose failure passes (of the backend, in time, at the budget) are asked again, also in a run
    /// that failed of it, and where the program caught it.
    pub retry_failed: bool,
}

/// How this process takes part in a run.
#[derive(Default)]
pub struct Attach {
    /// Whether inputs can be answered through [`crate::RunHandle::answer`].
    pub inputs: InputMode,
    /// Asked when a session wants what its permissions leave to a person; without one the answer is no.
    pub permissions: Option<Arc<dyn PermissionProvider>>,
    /// Cancels the run: `finally` bodies run, then it ends as cancelled.
    pub cancel: Option<Signal>,
    /// Lets go of the run as it stands; it can be resumed.
    pub shutdown: Option<Signal>,
}

/// Whether there is anybody to answer inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputMode {
    /// Nobody: when nothing else can go on, the run is suspended.
    #[default]
    Never,
    /// Whoever holds the handle; the run waits for as long as it takes.
    Ask,
}

/// Answers permission questions.
#[async_trait]
pub trait PermissionProvider: Send + Sync {
    /// Whether the session of this effect may do that.
    async fn ask(&self, effect: &EffectId, question: PermissionQuestion) -> PermissionAnswer;
}

/// Limits that are no part of a run's meaning.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Sessions at once when neither request nor run say otherwise, for agents that work on files.
    pub parallel_files: usize,
    /// The same for plain APIs and simulated sessions.
    pub parallel_plain: usize,
    /// Judge calls at once.
    pub parallel_judge: usize,
    /// A session that reports nothing for so long has failed.
    pub idle_timeout: Option<Duration>,
    /// How long sessions that are cancelled or timed out have to stop by themselves before they are dropped.
    pub cancel_grace: Duration,
    /// How long `finally` bodies may run after a cancel (language.md, "Execution").
    pub finally_deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            parallel_files: 4,
            parallel_plain: 16,
            parallel_judge: 8,
            idle_timeout: Some(Duration::from_secs(30 * 60)),
            cancel_grace: Duration::from_secs(10),
            finally_deadline: Duration::from_secs(30),
        }
    }
}

/// How a run ended for this process.
#[derive(Clone)]
pub struct RunResult {
    /// The run.
    pub run_id: RunId,
    /// Its directory.
    pub dir: PathBuf,
    /// How. `Waiting`: an input has to be supplied; `Interrupted`: this process let go of it. Both can be resumed.
    pub status: RunStatus,
    /// Outputs that were bound, also by a run that failed.
    pub outputs: IndexMap<String, Value>,
    /// The program's value where it is no named output.
    pub result: Option<Value>,
    /// The error of a failed run.
    pub error: Option<ErrorValue>,
    /// All that was used, earlier processes included.
    pub usage: Usage,
    /// Inputs that wait, for status `Waiting`.
    pub waiting: Vec<WaitingInput>,
    /// Reads the content behind references.
    pub(crate) content: StoreContent,
}

impl std::fmt::Debug for RunResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunResult")
            .field("run_id", &self.run_id)
            .field("status", &self.status)
            .field("outputs", &self.outputs)
            .field("result", &self.result)
            .field("error", &self.error)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

/// What a program prints.
pub struct Output<'a> {
    text: Cow<'a, Text>,
    content: &'a StoreContent,
}

impl Output<'_> {
    /// Whether it is the empty text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes it, with a newline behind it unless it ends with one.
    ///
    /// # Errors
    /// Those of the writer; and of the run's files, should they have gone meanwhile.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut line = Lines { out, last: None };
        self.content.0.copy_text(&self.text, &mut line)?;
        match line.last {
            Some(b'\n') => Ok(()),
            _ => line.out.write_all(b"\n"),
        }
    }
}

/// Passes everything on and knows the last byte.
struct Lines<'a> {
    out: &'a mut dyn Write,
    last: Option<u8>,
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.last = bytes[..written].last().copied().or(self.last);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// An input that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingInput {
    /// The effect.
    pub effect: EffectId,
    /// The input's name, as `--input NAME=VALUE` takes it.
    pub name: Name,
    /// The prompt.
    pub prompt: String,
    /// Choices offered; empty for free text.
    pub options: Vec<String>,
}

/// Something that a session waits to be told by a person. It is no input of the program: any answer goes, also none, and
/// only the session gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuestion {
    /// By which it is answered: [`crate::RunControl::answer`]. An answer that is empty is none.
    pub request: EffectId,
    /// The session.
    pub session: EffectId,
    /// What it wants to know.
    pub text: String,
    /// Answers that it offers.
    pub options: Vec<String>,
}

impl RunResult {
    /// What the program prints: its value where it has one (there are no outputs, or an `output` without a name gave
    /// it), else one output raw, several as one JSON object. Fails when content is missing from the run's store.
    pub fn output_text(&self) -> Result<Option<String>, RunError> {
        let failed = |failure: prose_model::Failure| RunError::Content(failure.message);
        if self.result.is_none() && self.outputs.len() > 1 {
            let mut object = serde_json::Map::new();
            for (name, value) in &self.outputs {
                object.insert(name.clone(), plain_json(value, &self.content).map_err(failed)?);
            }
            return Ok(Some(
                serde_json::to_string_pretty(&object)
                    .map_err(|error| RunError::Content(error.to_string()))?,
            ));
        }
        let value = self.result.as_ref().or_else(|| self.outputs.values().next());
        value
            .map(|value| plain_text(value, &self.content).map_err(failed))
            .transpose()
    }

    /// The same as [`RunResult::output_text`], to be written without having it in memory. What it refers to has been
    /// checked when this returns.
    pub fn output(&self) -> Result<Option<Output<'_>>, RunError> {
        let value = self.result.as_ref().or_else(|| self.outputs.values().next());
        let several = self.result.is_none() && self.outputs.len() > 1;
        let text = match value {
            Some(Value::Text(text)) if !several => {
                self.content.0.verify_text(text)?;
                Cow::Borrowed(text)
            }
            _ => match self.output_text()? {
                Some(text) => Cow::Owned(Text::inline(text)),
                None => return Ok(None),
            },
        };
        Ok(Some(Output {
            text,
            content: &self.content,
        }))
    }

    /// Whether the program came to nothing: it bound no output, and its value is null.
    pub fn has_no_value(&self) -> bool {
        self.outputs.is_empty() && matches!(self.result, None | Some(Value::Null))
    }

    /// A value of this run as plain JSON.
    pub fn to_json(&self, value: &Value) -> Result<serde_json::Value, RunError> {
        plain_json(value, &self.content).map_err(|failure| RunError::Content(failure.message))
    }

    /// A value of this run as text.
    pub fn to_text(&self, value: &Value) -> Result<String, RunError> {
        plain_text(value, &self.content).map_err(|failure| RunError::Content(failure.message))
    }

    /// Reads content of this run.
    pub fn content(&self) -> &dyn Content {
        &self.content
    }
}

/// Plain JSON as a value.
pub fn value_from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => n
            .as_f64()
            .map_or_else(|| Value::text(n.to_string()), Value::Number),
        serde_json::Value::String(text) => Value::text(text),
        serde_json::Value::Array(items) => Value::list(items.into_iter().map(value_from_json).collect()),
        serde_json::Value::Object(entries) => Value::record(
            entries
                .into_iter()
                .map(|(key, value)| (key, value_from_json(value))),
        ),
    }
}

/// Why a run could not be started, resumed or finished. Errors of the program are not among these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The state on disk.
    #[error(transparent)]
    State(#[from] StateError),
    /// The backend.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The program's files are not what the run was started with.
    #[error(
        "the program has changed since run {run} was started: {}; undo the changes, accept them, or start a new run",
        files.join(", ")
    )]
    ProgramChanged {
        /// The run.
        run: RunId,
        /// The files.
        files: Vec<String>,
        /// The changes, as a unified diff.
        diff: String,
    },
    /// A value was given for an input that the program does not have.
    #[error(
        "the program has no input `{name}`; {}",
        match known.as_slice() {
            [] => "it has none at all".to_owned(),
            known => format!("its inputs are {}", known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        }
    )]
    NoSuchInput {
        /// The name.
        name: Name,
        /// The program's inputs.
        known: Vec<Name>,
    },
    /// A value was given that is none of the choices that its input offers.
    #[error("the value given for `{name}` has to be one of: {}", options.join(", "))]
    NotAChoice {
        /// The input.
        name: Name,
        /// The choices.
        options: Vec<String>,
    },
    /// Nothing of the run failed for a reason that passes.
    #[error(
        "nothing of run {run} failed for a reason that passes (the backend, time, the budget), so that there is nothing to try again; to go on with its program mended: --accept-changes"
    )]
    NothingToRetry {
        /// The run.
        run: RunId,
    },
    /// A value was given for an input that has its value already.
    #[error(
        "`{name}` was answered already, and what the run did since rests on that answer; leave it out, or start a new run with the other one"
    )]
    InputAnswered {
        /// The input.
        name: Name,
    },
    /// The replayed machine asks for something other than the journal says.
    #[error("run {run} can't be resumed: {reason}")]
    Diverged {
        /// The run.
        run: RunId,
        /// What differs.
        reason: String,
    },
    /// The run's state was in memory only.
    #[error(
        "run {run} can't be resumed or looked at again: its state was in context, so that nothing was kept; start the program again, with `--state filesystem` for a run that can go on"
    )]
    NotKept {
        /// The run.
        run: RunId,
    },
    /// A value's content could not be read.
    #[error("{0}")]
    Content(String),
    /// The engine itself: no tokio runtime, no thread, a panic.
    #[error("{0}")]
    Engine(String),
    /// A test stopped the run here, as a crash would.
    #[error("stopped by fault injection after journal record {0}")]
    Fault(u64),
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No such question is open: it was answered before, or is no longer wanted, or never was.
    #[error("no open question has the id {0}; it may have been answered before")]
    NotOpen(EffectId),
    /// The answer is none of the choices.
    #[error("the answer has to be one of {}", options.join(", "))]
    NotAnOption {
        /// The choices.
        options: Vec<String>,
    },
    /// The run is over.
    #[error("the run is over")]
    Over,
}
