//! The tasks that perform effects, one tokio task each, and what they send to the driver.

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use prose_agents::{
    CancelToken, Clock, DecodeInput, InputSource, Judge, JudgeInput, PermissionAnswer, PermissionQuestion,
    Reading, Redactor, SessionBackend, SessionReply, SessionSink, SessionSpawn, SessionUpdate, UserQuestion,
    decision_fits, failure, process,
};
use prose_model::{
    Ask, Decision, DecodeTarget, EffectId, ErrorKind, Event, Failure, InputRequest, Outcome, PermissionGrant,
    ProcessId, Usage, Value, Verdict,
};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::AbortHandle;

use crate::questions::Questions;
use crate::request::{PermissionProvider, RunError, SessionQuestion};
use crate::timer::Timer;

/// Everything that the driver hears.
pub(crate) enum Msg {
    /// An effect's task is over. Sent exactly once for each task.
    Done { id: EffectId, result: TaskResult },
    /// A backend took a session up.
    Started {
        id: EffectId,
        handle: Option<serde_json::Value>,
        model: Option<String>,
        ack: oneshot::Sender<Result<(), Failure>>,
    },
    /// A session started a child process.
    Child {
        id: EffectId,
        process: ProcessId,
        ack: oneshot::Sender<Result<(), Failure>>,
    },
    /// A session's progress.
    Update { id: EffectId, update: SessionUpdate },
    /// A session's question to a person, and how it was settled.
    Permission(Event),
    /// Something a person should know.
    Notice { level: &'static str, message: String },
    /// A person answered a question; checked against the question before.
    Answer { id: EffectId, value: Value },
    /// `finally` bodies had their time.
    Deadline(EffectId),
    /// A cancel scope's sessions had their time to stop.
    Grace(EffectId),
    /// A memory that another process held may be free.
    MemoryFree,
    /// `state.md` may be written.
    Flush,
    /// The user cancels.
    Cancel,
    /// Let go of the run.
    Stop,
    /// There is nobody to answer inputs any more.
    StopAsking,
}

/// How a task ended.
#[derive(Debug)]
pub(crate) enum TaskResult {
    /// A session, with the virtual time that it took.
    Session {
        reply: Box<Result<SessionReply, Failure>>,
        took_ms: u64,
        reattached: bool,
    },
    /// Anything else.
    Outcome(Box<Outcome>),
    /// Content read by the judge.
    Reading(Box<Reading>),
    /// Content read by rules alone: asked again, it gives the same, so that its record needs no sync of its own.
    Pure(Box<Value>),
    /// The input source leaves the question to a person.
    NoAnswer,
    /// It vanished: aborted, or its tokio runtime is gone.
    Lost,
}

impl TaskResult {
    pub(crate) fn outcome(outcome: Outcome) -> TaskResult {
        TaskResult::Outcome(Box::new(outcome))
    }
    pub(crate) fn failed(failure: Failure) -> TaskResult {
        TaskResult::outcome(Outcome::Failed(failure))
    }
}

/// Runs a future as a task of its own. A panic inside becomes a failure of that effect alone.
pub(crate) fn spawn(
    handle: &Handle,
    tx: Sender<Msg>,
    id: EffectId,
    future: impl Future<Output = TaskResult> + Send + 'static,
) -> AbortHandle {
    let guard = DoneGuard { tx, id, sent: false };
    let inner = handle.spawn(future);
    let abort = inner.abort_handle();
    handle.spawn(async move {
        let mut guard = guard;
        let result = match inner.await {
            Ok(result) => result,
            Err(error) if error.is_panic() => {
                let message = panic_message(error.into_panic().as_ref());
                TaskResult::failed(failure(
                    ErrorKind::Backend,
                    format!("the backend panicked: {message}"),
                ))
            }
            Err(_) => TaskResult::Lost,
        };
        guard.send(result);
    });
    abort
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

/// Sends `Done` even when the task is dropped with its runtime: a driver must never wait for a task that is gone.
struct DoneGuard {
    tx: Sender<Msg>,
    id: EffectId,
    sent: bool,
}

impl DoneGuard {
    fn send(&mut self, result: TaskResult) {
        self.sent = true;
        // The driver may be over; then nobody waits.
        let _ = self.tx.send(Msg::Done {
            id: self.id.clone(),
            result,
        });
    }
}

impl Drop for DoneGuard {
    fn drop(&mut self) {
        if !self.sent {
            self.send(TaskResult::Lost);
        }
    }
}

/// Tells a session whether its record is on disk: without it the session must not go on, since a resumed run would know
/// nothing of it.
pub(crate) fn acknowledge(ack: oneshot::Sender<Result<(), Failure>>, result: &Result<(), RunError>) {
    let told = match result {
        Ok(()) => Ok(()),
        Err(error) => Err(failure(ErrorKind::Backend, error.to_string())),
    };
    // A session that is dropped meanwhile does not wait.
    let _ = ack.send(told);
}

/// A session's way to the driver.
pub(crate) struct Sink {
    pub(crate) id: EffectId,
    pub(crate) tx: Sender<Msg>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) permissions: Option<Arc<dyn PermissionProvider>>,
    pub(crate) questions: Arc<Questions>,
    /// Numbers the questions of this process.
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) redactor: Redactor,
}

/// Signs of life of a session.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    seen: Notify,
    /// How many questions to a person are open; while there are, silence is no fault of the session.
    asking: AtomicUsize,
    /// What it has used so far by its own account.
    used: Mutex<Usage>,
}

impl Activity {
    /// What the session has used so far by its own account.
    pub(crate) fn used(&self) -> Usage {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionSink for Sink {
    async fn started(&self, handle: Option<serde_json::Value>, model: Option<String>) -> Result<(), Failure> {
        self.activity.seen.notify_one();
        let (ack, answer) = oneshot::channel();
        let gone = || failure(ErrorKind::Backend, "the run is over");
        self.tx
            .send(Msg::Started {
                id: self.id.clone(),
                handle,
                model,
                ack,
            })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    async fn child(&self, pid: u32) -> Result<(), Failure> {
        // One that is gone already needs no ending.
        let Some(process) = process::identify(pid) else {
            return Ok(());
        };
        let (ack, answer) = oneshot::channel();
        let gone = || failure(ErrorKind::Backend, "the run is over");
        let id = self.id.clone();
        self.tx
            .send(Msg::Child { id, process, ack })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    fn update(&self, update: SessionUpdate) {
        self.activity.seen.notify_one();
        if let SessionUpdate::Usage(usage) = &update {
            *self.activity.used.lock().unwrap_or_else(PoisonError::into_inner) = *usage;
        }
        let _ = self.tx.send(Msg::Update {
            id: self.id.clone(),
            update,
        });
    }

    fn notice(&self, message: String) {
        let _ = self.tx.send(Msg::Notice {
            level: "warning",
            message,
        });
    }

    fn alive(&self) {
        self.activity.seen.notify_one();
    }

    fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    async fn ask_permission(&self, question: PermissionQuestion) -> PermissionAnswer {
        let hidden = |text: &str| self.redactor.redact(text).into_owned();
        let question = PermissionQuestion {
            key: hidden(&question.key),
            tool: hidden(&question.tool),
            detail: hidden(&question.detail),
        };
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let what = format!("{} {}", question.tool, question.detail);
        let _ = self.tx.send(Msg::Permission(Event::PermissionStarted {
            effect: self.id.clone(),
            question: number,
            permission: question.key.clone(),
            tool: question.tool.clone(),
            detail: question.detail.clone(),
        }));
        let mut open = OpenQuestion {
            sink: self,
            number,
            answer: PermissionAnswer::Deny,
        };
        if let Some(provider) = &self.permissions {
            let _asking = Asking::new(&self.activity);
            open.answer = provider.ask(&self.id, question).await;
        }
        let answer = open.answer;
        drop(open);
        if answer == PermissionAnswer::Deny {
            let why = match self.permissions {
                Some(_) => "",
                None => {
                    " (there is nobody to ask; a rule under `permissions:` permits it, and so does `--yes`)"
                }
            };
            let message = format!("refused: {}{why}", what.trim());
            let _ = self.tx.send(Msg::Notice {
                level: "warning",
                message,
            });
        }
        answer
    }

    async fn ask_user(&self, question: UserQuestion) -> Option<String> {
        let hidden = |text: &String| self.redactor.redact(text).into_owned();
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let question = SessionQuestion {
            request: format!("{}?{number}", self.id).as_str().into(),
            session: self.id.clone(),
            text: hidden(&question.text),
            options: question.options.iter().map(hidden).collect(),
        };
        let asked = self.questions.ask(question.clone());
        let mut open = OpenSessionQuestion {
            sink: self,
            request: question.request.clone(),
            attended: asked.is_some(),
            answered: false,
        };
        let _ = self.tx.send(Msg::Permission(Event::QuestionStarted {
            effect: self.id.clone(),
            request: question.request,
            text: question.text,
            options: question.options,
        }));
        let _asking = Asking::new(&self.activity);
        let answer = asked?.await.ok();
        open.answered = answer.is_some();
        answer
    }
}

/// What a session wants to know; settled in any case, as when its session is dropped meanwhile.
struct OpenSessionQuestion<'a> {
    sink: &'a Sink,
    request: EffectId,
    attended: bool,
    answered: bool,
}

impl Drop for OpenSessionQuestion<'_> {
    fn drop(&mut self) {
        self.sink.questions.withdraw(&self.request);
        let _ = self.sink.tx.send(Msg::Permission(Event::QuestionFinished {
            effect: self.sink.id.clone(),
            request: self.request.clone(),
            answered: self.answered,
            attended: self.attended,
        }));
    }
}

/// A question that is settled in any case: one whose session is dropped meanwhile is answered with no.
struct OpenQuestion<'a> {
    sink: &'a Sink,
    number: u64,
    answer: PermissionAnswer,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let _ = self.sink.tx.send(Msg::Permission(Event::PermissionFinished {
            effect: self.sink.id.clone(),
            question: self.number,
            answer: match self.answer {
                PermissionAnswer::Allow => PermissionGrant::Allow,
                PermissionAnswer::AllowSession => PermissionGrant::AllowSession,
                PermissionAnswer::Deny => PermissionGrant::Deny,
            },
            attended: self.sink.permissions.is_some(),
        }));
    }
}

/// While it lives, silence is no fault of the session.
struct Asking<'a>(&'a Activity);

impl<'a> Asking<'a> {
    fn new(activity: &'a Activity) -> Asking<'a> {
        activity.asking.fetch_add(1, Ordering::Relaxed);
        Asking(activity)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        self.0.seen.notify_one();
    }
}

/// The time limits of one session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionLimits {
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    /// How long it has to stop by itself after one of them.
    pub(crate) grace: Duration,
}

/// Runs a session: takes an earlier one up by its handle if there is one, else spawns it. The earlier one writes to
/// the staging folder that it was told, which `reattach` names.
pub(crate) async fn session(
    backend: Arc<dyn SessionBackend>,
    spawn: SessionSpawn,
    reattach: Option<(SessionSpawn, serde_json::Value)>,
    leftovers: Vec<ProcessId>,
    activity: Arc<Activity>,
    limits: SessionLimits,
    timer: Arc<dyn Timer>,
) -> TaskResult {
    let (clock, cancel) = (spawn.clock.clone(), spawn.cancel.clone());
    let reattached = std::sync::atomic::AtomicBool::new(false);
    let run = async {
        if let Some((earlier, handle)) = reattach
            && let Some(reply) = backend.reattach(earlier, handle).await
        {
            reattached.store(true, Ordering::Relaxed);
            return reply;
        }
        if !leftovers.is_empty() {
            // It is asked anew, so what is left of the earlier one has to be gone first.
            let grace = limits.grace;
            let _ = tokio::task::spawn_blocking(move || process::end(&leftovers, grace)).await;
        }
        backend.spawn(spawn).await
    };
    let mut reply = match clock {
        // Nothing takes real time there; the limit is applied to the time it would have taken.
        Clock::Virtual(_) => run.await,
        Clock::Real => limited(run, &cancel, &activity, limits, &*timer).await,
    };
    let mut took_ms = clock.elapsed_ms();
    let over = |limit: Option<Duration>, ms: u64| limit.filter(|limit| u128::from(ms) > limit.as_millis());
    let silent = over(limits.idle, clock.longest_wait_ms());
    let long = over(limits.total, took_ms);
    // Whichever is over first.
    let limit = match (silent, long) {
        (Some(idle), long) if long.is_none_or(|total| idle < total) => Some((SILENT, idle)),
        (_, long) => long.map(|total| (LONG, total)),
    };
    if let Some((what, limit)) = limit {
        took_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        reply = Err(timed_out(what, limit));
    }
    TaskResult::Session {
        reply: Box::new(reply),
        took_ms,
        reattached: reattached.into_inner(),
    }
}

async fn limited(
    run: impl Future<Output = Result<SessionReply, Failure>>,
    cancel: &CancelToken,
    activity: &Activity,
    limits: SessionLimits,
    timer: &dyn Timer,
) -> Result<SessionReply, Failure> {
    tokio::pin!(run);
    let total = at_most(limits.total, timer);
    tokio::pin!(total);
    let failure = loop {
        tokio::select! {
            reply = &mut run => return reply,
            () = &mut total => break timed_out(LONG, limits.total.unwrap_or_default()),
            () = activity.seen.notified() => {}
            () = at_most(limits.idle, timer) => {
                if activity.asking.load(Ordering::Relaxed) == 0 {
                    break timed_out(SILENT, limits.idle.unwrap_or_default());
                }
            }
        }
    };
    cancel.cancel();
    // What it answers now comes too late, but it may have children to stop.
    tokio::select! {
        _ = run => {}
        () = timer.sleep(limits.grace) => {}
    }
    Err(failure)
}

async fn at_most(limit: Option<Duration>, timer: &dyn Timer) {
    match limit {
        Some(limit) => timer.sleep(limit).await,
        None => std::future::pending().await,
    }
}

const LONG: &str = "the session took longer than";
const SILENT: &str = "the session reported nothing for";

fn timed_out(what: &str, limit: Duration) -> Failure {
    failure(ErrorKind::Timeout, format!("{what} {} s", limit.as_secs_f64()))
}

/// Asks the judge; once more when its answer can't be read or is no answer to the question; then it is unsure, and
/// a choice fails (language.md, "Judging").
pub(crate) async fn judge(judge: Arc<dyn Judge>, input: JudgeInput, limit: Arc<Semaphore>) -> TaskResult {
    // Closed never: the semaphore lives as long as the run.
    let _permit = limit.acquire_owned().await;
    let ask = input.request.ask.clone();
    let text = input.text.clone();
    let mut usage = Usage::default();
    let mut reason = String::new();
    for attempt in 1..=2 {
        match judge
            .decide(JudgeInput {
                attempt,
                budget: input.budget.after(&usage),
                ..input.clone()
            })
            .await
        {
            Ok(mut verdict) => {
                verdict.usage.add(&usage);
                if decision_fits(&ask, &verdict.decision) {
                    return TaskResult::outcome(Outcome::Verdict(verdict));
                }
                reason = "the judge answered something else than what was asked".to_owned();
                usage = verdict.usage;
            }
            Err(failure) if failure.kind == ErrorKind::Judge => {
                usage.add(&failure.usage);
                reason = failure.message;
            }
            Err(mut failure) => {
                failure.usage.add(&usage);
                return TaskResult::failed(failure);
            }
        }
    }
    let decision = match ask {
        Ask::Choice { .. } => {
            return TaskResult::failed(Failure {
                kind: ErrorKind::Judge,
                message: format!("no option was chosen: {reason}"),
                retry_after_ms: None,
                usage,
            });
        }
        Ask::Question => Decision::Question {
            prompt: text.trim().to_owned(),
            options: Vec::new(),
        },
        Ask::Condition | Ask::Loop { .. } | Ask::Value => Decision::Unsure,
    };
    TaskResult::outcome(Outcome::Verdict(Verdict {
        decision,
        confidence: 0.0,
        reason,
        usage,
    }))
}

/// Asks the judge to read content that the rules can't.
pub(crate) async fn decode(judge: Arc<dyn Judge>, input: DecodeInput, limit: Arc<Semaphore>) -> TaskResult {
    let _permit = limit.acquire_owned().await;
    let target = input.target.clone();
    match judge.decode(input).await {
        Ok(reading) if shape_fits(&target, &reading.value) => TaskResult::Reading(Box::new(reading)),
        Ok(reading) => TaskResult::failed(Failure {
            usage: reading.usage,
            ..failure(
                ErrorKind::Type,
                "the content could not be read as what it is wanted as: the judge gave something else",
            )
        }),
        Err(failure) => TaskResult::failed(failure),
    }
}

fn shape_fits(target: &DecodeTarget, value: &Value) -> bool {
    match target {
        DecodeTarget::List => matches!(value, Value::List(_)),
        DecodeTarget::Record(_) => matches!(value, Value::Record(_)),
        DecodeTarget::Number => matches!(value, Value::Number(_)),
        DecodeTarget::Bool | DecodeTarget::Equals(_) | DecodeTarget::IsEmpty => {
            matches!(value, Value::Bool(_))
        }
        DecodeTarget::Json | DecodeTarget::Memory(_) => matches!(value, Value::Text(_) | Value::Null),
    }
}

/// Asks whoever answers inputs in place of a person.
pub(crate) async fn input(
    source: Arc<dyn InputSource>,
    id: EffectId,
    request: InputRequest,
    prompt: String,
) -> TaskResult {
    match source.answer(&id, &request, &prompt).await {
        Some(value) => TaskResult::outcome(Outcome::Input { value }),
        None => TaskResult::NoAnswer,
    }
}

/// Waits.
pub(crate) async fn sleep(time: Duration, timer: Arc<dyn Timer>) -> TaskResult {
    timer.sleep(time).await;
    TaskResult::outcome(Outcome::Slept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_hears_whether_its_record_was_written() {
        for (result, expected) in [
            (Ok(()), Ok(())),
            (
                Err(RunError::Engine("the disk is full".to_owned())),
                Err((ErrorKind::Backend, true)),
            ),
        ] {
            let (ack, mut told) = oneshot::channel();
            acknowledge(ack, &result);
            let told = told.try_recv().unwrap();
            let told = told.map_err(|failure| (failure.kind, failure.message.contains("the disk is full")));
            assert_eq!(told, expected);
        }
    }
}
