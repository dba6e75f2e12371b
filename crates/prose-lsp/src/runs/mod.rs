//! Runs started from the editor: commands, questions to the person, and what the client is told.
//!
//! Runs live on a tokio runtime of their own. A run that panics ends itself only; the client is told that it was
//! interrupted. Nothing here touches the analysis database: a run holds an immutable bundle.

mod args;
mod engine;
mod protocol;
mod report;
mod runtime;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use lsp_types::request::WorkDoneProgressCreate;
use lsp_types::{MessageType, NumberOrString, WorkDoneProgressCreateParams};
use prose_model::{EffectId, Event, Order, RunEvent, RunId, RunStatus};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tower_lsp::jsonrpc::{Error, ErrorCode};

pub(crate) use self::args::{AnswerArgs, COMMANDS, Command, RunArgs};
pub(crate) use self::engine::{
    Changes, Control, Engine, How, Question, Resumption, RunError, RunSummary, SIMULATE, StartRequest,
    Started,
};
use self::protocol::{InputParams, InputRequest};
use self::report::{Launch, Report, Wants};
pub(crate) use self::runtime::Runtime;
use crate::outbox::Outbox;
use crate::session::Session;
use crate::settings::Settings;

/// How long a client may take to answer `window/workDoneProgress/create`.
const PROGRESS_PATIENCE: Duration = Duration::from_secs(10);

/// All runs of this server.
pub(crate) struct Runs {
    engine: Arc<dyn Engine>,
    outbox: Outbox,
    session: OnceLock<(Arc<Session>, mpsc::Sender<Report>)>,
    /// `None` after [`Runs::stop`].
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
    handle: tokio::runtime::Handle,
    table: Arc<Mutex<BTreeMap<RunId, Arc<Run>>>>,
    launches: AtomicU64,
    /// How many runs are followed.
    going: watch::Sender<u32>,
}

/// A run of this server, going on or ended.
struct Run {
    id: RunId,
    program: String,
    control: Arc<dyn Control>,
    state: Mutex<State>,
}

struct State {
    /// `None` while it goes on.
    ended: Option<RunStatus>,
    questions: Vec<Asked>,
}

/// A question that waits.
struct Asked {
    question: Question,
    /// Dropped when the question is answered, so that a dialog at the client is closed.
    _open: oneshot::Sender<()>,
}

impl Runs {
    /// The table and its runtime.
    pub(crate) fn new(engine: Arc<dyn Engine>, outbox: Outbox) -> std::io::Result<Runs> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("prose-run")
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let runtime = Mutex::new(Some(runtime));
        Ok(Runs {
            engine,
            outbox,
            session: OnceLock::new(),
            runtime,
            handle,
            table: Arc::default(),
            launches: AtomicU64::new(0),
            going: watch::Sender::new(0),
        })
    }

    /// The client is known: starts reporting. A second call changes nothing.
    pub(crate) fn begin(&self, session: Arc<Session>) {
        let (tx, rx) = mpsc::channel(report::ON_THE_WAY);
        let wants = Wants {
            events: session.extensions.run_event,
        };
        if self.session.set((session, tx)).is_ok() {
            tokio::spawn(report::report(rx, self.outbox.clone(), wants));
        }
    }

    /// Lets go of all runs, so that they can be resumed, and waits until they have noticed, at most `patience`.
    pub(crate) async fn stop(&self, patience: Duration) {
        let table: Vec<_> = lock(&self.table).values().cloned().collect();
        for run in table.iter().filter(|run| lock(&run.state).ended.is_none()) {
            run.control.stop();
        }
        let mut going = self.going.subscribe();
        if tokio::time::timeout(patience, going.wait_for(|count| *count == 0))
            .await
            .is_err()
        {
            tracing::warn!("runs did not stop in time");
        }
        let runtime = lock(&self.runtime).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }

    /// Refuses what the person has not allowed. `backend` is the one asked for, by the command or the configuration.
    pub(crate) fn check_trust(session: &Session, backend: Option<&str>) -> Result<(), Error> {
        if session.trusted || backend == Some(SIMULATE) {
            return Ok(());
        }
        Err(refused(RunError::untrusted().0))
    }

    /// Choices of a start or resume.
    pub(crate) fn how(session: &Session, settings: &Settings, args: Option<&RunArgs>) -> How {
        let backend = args
            .and_then(|a| a.backend.clone())
            .or_else(|| settings.backend.clone());
        How {
            folder: session.folders.first().cloned(),
            backend,
            state: args.and_then(|a| a.state.clone()),
            mock: args.and_then(|a| a.mock.clone()),
            max_parallel: settings.max_parallel,
            // A run that is resumed keeps its own.
            budget_usd: args.and_then(|a| a.budget_usd.or(settings.budget_usd)),
            budget_tokens: args.and_then(|a| a.budget_tokens.or(settings.budget_tokens)),
            trusted: session.trusted,
        }
    }

    /// Starts a run; returns its id as soon as it has one.
    pub(crate) async fn start(&self, request: StartRequest, program: String) -> Result<RunId, Error> {
        let simulated = request.how.backend.as_deref() == Some(SIMULATE);
        self.launch(self.engine.start(request), program, simulated).await
    }

    /// Continues a stopped run.
    pub(crate) async fn resume(&self, run: RunId, with: Resumption, how: How) -> Result<RunId, Error> {
        if self
            .find(&run)
            .is_some_and(|run| lock(&run.state).ended.is_none())
        {
            return Err(refused(format!("run {run} is still going on")));
        }
        self.launch(
            self.engine.resume(run.clone(), with, how),
            format!("run {run}"),
            false,
        )
        .await
    }

    async fn launch(
        &self,
        starting: futures::future::BoxFuture<'static, Result<Started, RunError>>,
        program: String,
        simulated: bool,
    ) -> Result<RunId, Error> {
        let Some((session, reports)) = self.session.get() else {
            return Err(refused("not initialized"));
        };
        let started = match self.handle.spawn(starting).await {
            Ok(started) => started.map_err(|e| refused(e.0))?,
            Err(e) => {
                tracing::error!(%e, "starting a run panicked");
                return Err(Error::internal_error());
            }
        };
        let Started { id, events, control } = started;
        let state = Mutex::new(State {
            ended: None,
            questions: Vec::new(),
        });
        let run = Arc::new(Run {
            id: id.clone(),
            program,
            control,
            state,
        });
        lock(&self.table).insert(id.clone(), Arc::clone(&run));
        let title = if simulated {
            format!("{} (simulated)", run.program)
        } else {
            run.program.clone()
        };
        // Fails only when the session is over, as do all sends of reports.
        let launch = Launch {
            number: self.launches.fetch_add(1, Ordering::Relaxed),
            run: id.clone(),
        };
        let began = Report::Began {
            launch: launch.clone(),
            title,
            progress: session.work_done_progress,
        };
        let _ = reports.send(began).await;
        if session.work_done_progress {
            self.handle.spawn(ask_for_progress(
                self.outbox.clone(),
                launch.clone(),
                reports.clone(),
            ));
        }
        let reporter = Reporter {
            launch,
            run,
            session: Arc::clone(session),
            outbox: self.outbox.clone(),
            reports: reports.clone(),
        };
        self.going.send_modify(|count| *count += 1);
        let going = self.going.clone();
        self.handle.spawn(async move {
            reporter.follow(events).await;
            going.send_modify(|count| *count -= 1);
        });
        Ok(id)
    }

    /// Asks a run to stop.
    pub(crate) fn cancel(&self, id: &RunId) -> Result<(), Error> {
        let run = self.find(id).ok_or_else(|| unknown(id))?;
        if let Some(status) = lock(&run.state).ended {
            return Err(refused(format!(
                "run {id} has ended already: {}",
                report::status_word(status)
            )));
        }
        run.control.cancel();
        Ok(())
    }

    /// `window/workDoneProgress/cancel`.
    pub(crate) fn cancel_by_token(&self, token: &NumberOrString) {
        if let Some(run) = report::run_of_token(token)
            && let Err(error) = self.cancel(&run)
        {
            tracing::info!(%error, "nothing to cancel");
        }
    }

    /// `prose.answer`.
    pub(crate) fn answer(&self, args: AnswerArgs) -> Result<(), Error> {
        let run = self.find(&args.run_id).ok_or_else(|| unknown(&args.run_id))?;
        run.answer(&args.request_id, args.value).map_err(|e| refused(e.0))
    }

    /// `prose.runs`: this server's runs, then those on disk.
    pub(crate) async fn list(&self, folder: Option<PathBuf>) -> Vec<RunSummary> {
        let own: Vec<RunSummary> = lock(&self.table)
            .values()
            .rev()
            .map(|run| run.summary())
            .collect();
        let listing = self.handle.spawn(self.engine.list(folder));
        let others = listing.await.unwrap_or_else(|e| {
            tracing::error!(%e, "listing runs panicked");
            Vec::new()
        });
        let others = others
            .into_iter()
            .filter(|other| own.iter().all(|run| run.run_id != other.run_id));
        own.iter().cloned().chain(others).collect()
    }

    fn find(&self, id: &RunId) -> Option<Arc<Run>> {
        lock(&self.table).get(id).cloned()
    }
}

impl Run {
    /// The first valid answer wins: it takes the question away.
    fn answer(&self, request: &EffectId, value: Value) -> Result<(), RunError> {
        let mut state = lock(&self.state);
        let Some(at) = state
            .questions
            .iter()
            .position(|q| q.question.request_id == *request)
        else {
            let asked: Vec<_> = state
                .questions
                .iter()
                .map(|q| format!("`{}`", q.question.request_id))
                .collect();
            let asked = if asked.is_empty() {
                "nothing".to_owned()
            } else {
                asked.join(", ")
            };
            return Err(RunError(format!(
                "run {} is not waiting for `{request}`; it waits for {asked}",
                self.id
            )));
        };
        self.control.answer(request, value)?;
        state.questions.remove(at);
        Ok(())
    }

    fn summary(&self) -> RunSummary {
        let state = lock(&self.state);
        let status = match state.ended {
            Some(status) => report::status_word(status),
            None if state.questions.is_empty() => "running",
            None => "waiting",
        };
        RunSummary {
            run_id: self.id.clone(),
            status: status.to_owned(),
            program: self.program.clone(),
            waiting_for: state.questions.iter().map(|q| q.question.clone()).collect(),
        }
    }
}

/// Follows one run to its end.
struct Reporter {
    launch: Launch,
    run: Arc<Run>,
    session: Arc<Session>,
    outbox: Outbox,
    reports: mpsc::Sender<Report>,
}

impl Reporter {
    async fn follow(self, mut events: mpsc::Receiver<RunEvent>) {
        let mut last = LastSeen::default();
        // Inputs that may be answered without a person.
        let mut started = BTreeMap::new();
        let mut labels = BTreeMap::new();
        while let Some(event) = events.recv().await {
            last.see(&event);
            match &event.event {
                Event::InputStarted {
                    effect,
                    name,
                    prompt,
                    options,
                    ..
                } => {
                    let question = Question {
                        request_id: effect.clone(),
                        name: name.to_string(),
                        prompt: prompt.clone(),
                        options: options.clone(),
                        of_session: false,
                    };
                    started.insert(effect.clone(), question);
                }
                Event::SessionStarted { effect, label, .. } => {
                    labels.insert(effect.clone(), label.clone());
                }
                Event::SessionFinished { effect, .. } => {
                    labels.remove(effect);
                }
                Event::QuestionStarted {
                    effect,
                    request,
                    text,
                    options,
                } => self.ask(Question {
                    request_id: request.clone(),
                    name: labels.get(effect).cloned().unwrap_or_default(),
                    prompt: text.clone(),
                    options: options.clone(),
                    of_session: true,
                }),
                Event::QuestionFinished { request, .. } => self.answered(request),
                Event::InputNeeded { effect } => {
                    if let Some(question) = started.remove(effect) {
                        self.ask(question);
                    }
                }
                Event::InputFinished { effect, .. } => {
                    started.remove(effect);
                    self.answered(effect);
                }
                Event::RunFinished { status, .. } => self.end(*status),
                _ => {}
            }
            self.tell(event).await;
        }
        let ended = lock(&self.run.state).ended;
        let status = match ended {
            Some(status) => status,
            None => {
                self.end(RunStatus::Interrupted);
                self.tell(last.crash(&self.run.id)).await;
                let text = format!(
                    "{}: the run stopped because of an internal error; it can be resumed.",
                    self.run.program
                );
                self.outbox.show(MessageType::ERROR, text);
                RunStatus::Interrupted
            }
        };
        let ended = Report::Ended {
            launch: self.launch.clone(),
            how: report::status_word(status).to_owned(),
        };
        let _ = self.reports.send(ended).await;
    }

    /// Takes a question away that waits no more.
    fn answered(&self, request: &EffectId) {
        lock(&self.run.state)
            .questions
            .retain(|q| q.question.request_id != *request);
    }

    /// Notes the end, before the client can hear of it.
    fn end(&self, status: RunStatus) {
        let mut state = lock(&self.run.state);
        state.ended = Some(status);
        state.questions.clear();
    }

    /// Waits while the client is behind; the run doesn't.
    async fn tell(&self, event: RunEvent) {
        let event = Report::Event {
            launch: self.launch.clone(),
            event: Box::new(event),
        };
        let _ = self.reports.send(event).await;
    }

    /// Puts a question to the person, through the client if it can, else by a message.
    fn ask(&self, question: Question) {
        let (open, answered) = oneshot::channel();
        let asked = Asked {
            question: question.clone(),
            _open: open,
        };
        lock(&self.run.state).questions.push(asked);
        if !self.session.extensions.input {
            return self
                .outbox
                .show(MessageType::INFO, how_to_answer(&self.run, &question));
        }
        let params = InputParams {
            run_id: self.run.id.clone(),
            request_id: question.request_id.clone(),
            name: question.name.clone(),
            prompt: question.prompt.clone(),
            options: question.options.clone(),
            of_session: question.of_session,
        };
        let (run, outbox) = (Arc::clone(&self.run), self.outbox.clone());
        tokio::spawn(async move {
            let answer = outbox.ask_until::<InputRequest>(params, async {
                // Never sent to: it ends when the question is answered or the run is over.
                let _ = answered.await;
            });
            let problem = match answer.await {
                // Answered elsewhere.
                None => return,
                // A session whose question is put away decides by itself.
                Some(Ok(answer)) if !answer.value.is_null() || question.of_session => {
                    let value = match answer.value {
                        Value::Null => Value::from(""),
                        value => value,
                    };
                    match run.answer(&question.request_id, value) {
                        Ok(()) => return,
                        Err(error) => Some(error.0),
                    }
                }
                Some(Ok(_)) => None,
                Some(Err(error)) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                tracing::warn!(problem, "no answer from the client");
            }
            if lock(&run.state)
                .questions
                .iter()
                .any(|q| q.question.request_id == question.request_id)
            {
                outbox.show(MessageType::INFO, how_to_answer(&run, &question));
            }
        });
    }
}

/// The message that stands in for a dialog.
fn how_to_answer(run: &Run, question: &Question) -> String {
    let options = match question.options.as_slice() {
        [] => String::new(),
        options => format!(" ({})", options.join(", ")),
    };
    let argument = serde_json::json!({ "runId": run.id, "requestId": question.request_id, "value": "…" });
    let who = match question.of_session {
        true => format!("{}: the session `{}` asks", run.program, question.name),
        false => format!("{} waits for the input `{}`", run.program, question.name),
    };
    format!(
        "{who}: {}{options}\nAnswer with the command `prose.answer` and the argument {argument}",
        question.prompt
    )
}

/// Where a run stood when it was last heard of.
#[derive(Debug, Default)]
struct LastSeen {
    ts: String,
    seq: Option<u64>,
    n: Option<u64>,
}

impl LastSeen {
    fn see(&mut self, event: &RunEvent) {
        self.ts.clone_from(&event.ts);
        match event.order {
            Order::Machine { seq } => self.seq = Some(seq),
            Order::Stream { n, .. } => self.n = Some(n),
        }
    }

    /// The end of a run that could not say so itself.
    fn crash(self, run: &RunId) -> RunEvent {
        RunEvent {
            v: prose_model::EVENT_VERSION,
            run_id: run.clone(),
            ts: self.ts,
            order: Order::Stream {
                after_seq: self.seq,
                n: self.n.map_or(0, |n| n + 1),
            },
            event: Event::RunFinished {
                status: RunStatus::Interrupted,
                outputs: Default::default(),
                error: None,
                usage: Default::default(),
            },
        }
    }
}

async fn ask_for_progress(outbox: Outbox, launch: Launch, reports: mpsc::Sender<Report>) {
    let params = WorkDoneProgressCreateParams {
        token: report::token(&launch),
    };
    let answer = outbox
        .ask::<WorkDoneProgressCreate>(params, PROGRESS_PATIENCE)
        .await;
    if let Err(error) = &answer {
        tracing::info!(%error, "no progress for a run");
    }
    let _ = reports
        .send(Report::Token {
            launch,
            accepted: answer.is_ok(),
        })
        .await;
}

/// LSP 3.17 `RequestFailed`: the request is fine, it just can't be done; the message is for the person.
pub(crate) fn refused(why: impl Into<String>) -> Error {
    Error {
        code: ErrorCode::ServerError(-32803),
        message: why.into().into(),
        data: None,
    }
}

fn unknown(run: &RunId) -> Error {
    refused(format!("there is no run {run} in this server"))
}

/// Every critical section here leaves its data whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
