//! One run of the program: what it is told, what it answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use prose_model::{ErrorKind, Failure, Usage};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use super::protocol::{self, Incoming, ResultLine};
use super::{SETUP, permit};
use crate::child::{Child, ChildCommand, Environment, Line, Lines, describe};
use crate::policy::Gate;
use crate::tools::LIFE;
use crate::{CancelToken, Redactor, SessionSink, SessionUpdate, failure};

/// Longest line that is read, in bytes: a tool's whole result is one.
const LINE: usize = 16 * 1024 * 1024;
/// How long it has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(4);
/// How often a service may refuse the key: a wrong one does not get better.
const KEY_REFUSALS: u64 = 2;

/// What to run.
pub(super) struct Job {
    pub(super) arguments: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) system: String,
    pub(super) user: String,
    /// The form of the answer.
    pub(super) schema: Option<serde_json::Value>,
    /// At most so many tokens, in and out.
    pub(super) tokens: Option<u64>,
    /// Who is told.
    pub(super) sink: Option<Arc<dyn SessionSink>>,
    /// Who decides about tools; none: there are none.
    pub(super) gate: Option<Arc<Gate>>,
}

/// How it ended well.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Turn {
    /// What it said last.
    pub(super) text: String,
    /// The answer in the form that was asked for.
    pub(super) structured: Option<serde_json::Value>,
    pub(super) usage: Usage,
    /// Tools that were refused.
    pub(super) denied: Vec<String>,
}

/// Runs it to its end. When the token is cancelled, or the future dropped, nothing of it is left.
pub(super) async fn run(
    program: &Path,
    environment: &Environment,
    redactor: &Redactor,
    job: Job,
    cancel: &CancelToken,
) -> Result<Turn, Failure> {
    let mut child = Child::start(ChildCommand {
        program: program.to_owned(),
        args: job.arguments.iter().map(Into::into).collect(),
        dir: job.dir.clone(),
        environment: environment.clone(),
    })
    .await
    .map_err(|error| failure(ErrorKind::Backend, format!("{error}\n  to set it up: {SETUP}")))?;
    let mut talk = Talk::new(&job, redactor);
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(failure(ErrorKind::Backend, "the session was stopped")),
        ended = talk.run(child.pid(), child.stdin.take(), child.stdout.take()) => ended,
        () = silence(&child) => Ok(None),
    };
    let result = match ended {
        Ok(Some(result)) => {
            // It has nothing left to do; whether it goes by itself does not matter any more.
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
            let _ = child.stop(Duration::ZERO).await;
            finished(*result, redactor)
        }
        Ok(None) => {
            let how = match tokio::time::timeout(GRACE, child.wait()).await {
                Ok(status) => status.map_or_else(|error| format!("was lost ({error})"), describe),
                Err(_) => {
                    let _ = child.stop(GRACE).await;
                    "closed its output".to_owned()
                }
            };
            Err(without_result(
                &how,
                &child.stderr(),
                talk.garbage.as_deref(),
                redactor,
            ))
        }
        Err(failure) => {
            let _ = child.stop(GRACE).await;
            Err(failure)
        }
    };
    result.map_err(|mut failure| {
        if failure.usage == Usage::default() {
            failure.usage = talk.used();
        }
        failure
    })
}

/// Waits until it has ended and what it said has been read. Who holds its output open beyond that has nothing to say.
async fn silence(child: &Child) {
    child.ended().await;
    tokio::time::sleep(GRACE).await;
}

/// A conversation with the program.
struct Talk<'a> {
    job: &'a Job,
    redactor: &'a Redactor,
    /// Used by the messages that are done, and by the one that is written.
    before: Usage,
    current: Usage,
    message: String,
    /// Whether the text of that message came in pieces.
    streamed: bool,
    /// Whether it uses tools, as far as it has said.
    works: bool,
    /// The first line that was no JSON.
    garbage: Option<String>,
}

impl<'a> Talk<'a> {
    fn new(job: &'a Job, redactor: &'a Redactor) -> Talk<'a> {
        Talk {
            job,
            redactor,
            before: Usage::default(),
            current: Usage::default(),
            message: String::new(),
            streamed: false,
            works: false,
            garbage: None,
        }
    }

    fn used(&self) -> Usage {
        let mut used = self.before;
        used.add(&self.current);
        used
    }

    /// Speaks with it until it says that it is over; none when it ends without a word.
    async fn run(
        &mut self,
        pid: u32,
        stdin: Option<ChildStdin>,
        stdout: Option<ChildStdout>,
    ) -> Result<Option<Box<ResultLine>>, Failure> {
        let job = self.job;
        if let Some(sink) = &job.sink {
            sink.child(pid).await?;
        }
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Ok(None);
        };
        // IMPORTANT: written by a task of its own, since it may write while it does not read.
        let (send, lines_to_write) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(stdin, lines_to_write));
        let _writer = AbortOnDrop(writer.abort_handle());
        let tell = |line: String| {
            // One that is gone is noticed by what it no longer says.
            let _ = send.send(line);
        };
        tell(protocol::initialize(&job.system, job.schema.as_ref()));
        tell(protocol::user(&job.user));

        let mut lines = Lines::new(stdout, LINE);
        let mut questions = FuturesUnordered::new();
        let mut signs = tokio::time::interval(LIFE);
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                Some((question, decision)) = questions.next(), if !questions.is_empty() => {
                    tell(protocol::answer(&question, &decision));
                    continue;
                }
                // A tool that is at work says nothing; Claude Code has a limit for it.
                _ = signs.tick(), if self.works => {
                    if let Some(sink) = &job.sink {
                        sink.alive();
                    }
                    continue;
                }
            };
            let line = match line {
                Ok(Some(Line::Text(line))) if line.trim().is_empty() => continue,
                Ok(Some(Line::Text(line))) => line,
                // Longer than anything that is needed of it.
                Ok(Some(Line::TooLong(_))) => continue,
                Ok(None) | Err(_) => return Ok(None),
            };
            match protocol::read(&line) {
                None => {
                    self.garbage.get_or_insert_with(|| self.redactor.one_line(&line));
                }
                Some(Incoming::Result(result)) => return Ok(Some(result)),
                Some(Incoming::Refused(why)) => {
                    return Err(failure(
                        ErrorKind::Backend,
                        format!(
                            "Claude Code does not understand what it is asked ({}); it may be too old",
                            self.redactor.one_line(&why)
                        ),
                    ));
                }
                Some(Incoming::Request { id }) => tell(protocol::refuse(&id)),
                Some(Incoming::Tool(question)) => {
                    questions.push(async move {
                        let gate = job.gate.as_deref();
                        let decision = permit::permit(gate, &job.dir, &question.tool, &question.input).await;
                        (question, decision)
                    });
                }
                Some(other) => self.note(other).await?,
            }
        }
    }

    /// Takes in what only has to be passed on.
    async fn note(&mut self, incoming: Incoming) -> Result<(), Failure> {
        match incoming {
            Incoming::Begun { model } => {
                if let Some(sink) = &self.job.sink {
                    sink.started(None, model).await?;
                }
            }
            Incoming::Retry {
                attempt,
                status,
                error,
            } => {
                self.update(SessionUpdate::Usage(self.used()));
                let refused = matches!(status, Some(401 | 403)) || error == "authentication_failed";
                if refused && attempt >= KEY_REFUSALS {
                    return Err(failure(ErrorKind::Backend, key_refused(&error, self.redactor)));
                }
            }
            Incoming::Message { id, usage } => {
                self.begin(&id, usage);
                self.streamed = true;
                self.works = false;
                self.account()?;
            }
            Incoming::Text(text) => self.update(SessionUpdate::Text(text)),
            Incoming::Written { output_tokens } => {
                self.current.output_tokens = self.current.output_tokens.max(output_tokens);
                self.account()?;
            }
            Incoming::Whole(whole) => {
                if whole.id != self.message {
                    self.begin(&whole.id, whole.usage);
                }
                if !self.streamed {
                    for text in whole.texts {
                        self.update(SessionUpdate::Text(text));
                    }
                }
                self.works |= !whole.tools.is_empty();
                for (name, input) in whole.tools {
                    let detail = permit::detail(&name, &input, self.redactor);
                    self.update(SessionUpdate::Tool { name, detail });
                }
                self.account()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, id: &str, usage: Usage) {
        let done = std::mem::replace(&mut self.current, usage);
        self.before.add(&done);
        id.clone_into(&mut self.message);
        self.streamed = false;
    }

    /// Says what was used, and stops what has used too much.
    fn account(&self) -> Result<(), Failure> {
        let used = self.used();
        self.update(SessionUpdate::Usage(used));
        match self.job.tokens {
            Some(limit) if used.tokens() >= limit => Err(failure(
                ErrorKind::Budget,
                format!(
                    "the session was stopped at {} tokens: the budget has {limit} left for it",
                    used.tokens()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn update(&self, update: SessionUpdate) {
        if let Some(sink) = &self.job.sink {
            sink.update(update);
        }
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

fn key_refused(error: &str, redactor: &Redactor) -> String {
    let error = redactor.one_line(error);
    format!("Claude Code may not use the model ({error}): {SETUP}")
}

/// Reads the last line.
fn finished(result: ResultLine, redactor: &Redactor) -> Result<Turn, Failure> {
    if !result.is_error && result.subtype == "success" {
        return Ok(Turn {
            text: result.text,
            structured: result.structured,
            usage: result.usage,
            denied: result.denied,
        });
    }
    let said = redactor.one_line(&result.text);
    let lower = result.text.to_lowercase();
    let (kind, message) = match (result.subtype.as_str(), result.status) {
        ("error_max_budget_usd", _) => (
            ErrorKind::Budget,
            "the session was stopped: the budget is spent".to_owned(),
        ),
        ("error_max_structured_output_retries", _) => (
            ErrorKind::Judge,
            "the model gave no answer in the form that was asked for".to_owned(),
        ),
        (_, Some(401 | 403)) => (ErrorKind::Backend, key_refused(&said, redactor)),
        _ if lower.contains("not logged in")
            || lower.contains("/login")
            || lower.contains("invalid api key") =>
        {
            (ErrorKind::Backend, key_refused(&said, redactor))
        }
        ("success", Some(status)) => (
            ErrorKind::Backend,
            format!("the model's service answered {status}: {said}"),
        ),
        ("success", None) => (
            ErrorKind::Backend,
            format!("Claude Code reports an error: {said}"),
        ),
        (subtype, _) => {
            let what = subtype.trim_start_matches("error_").replace('_', " ");
            (
                ErrorKind::Backend,
                format!("Claude Code stopped ({what}): {said}"),
            )
        }
    };
    Err(Failure {
        usage: result.usage,
        ..failure(kind, message.trim_end_matches([':', ' ']).to_owned())
    })
}

fn without_result(how: &str, stderr: &str, garbage: Option<&str>, redactor: &Redactor) -> Failure {
    let mut message = format!("Claude Code {how} and gave no result");
    // The end says most.
    let last: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if let Some(from) = last.len().checked_sub(1) {
        let from = from.saturating_sub(2);
        message.push_str(": ");
        message.push_str(
            &last[from..]
                .iter()
                .map(|line| redactor.one_line(line))
                .collect::<Vec<_>>()
                .join(" / "),
        );
    } else if let Some(garbage) = garbage {
        message.push_str(&format!("; it said: {garbage}"));
    }
    failure(ErrorKind::Backend, message)
}
