//! Starting and resuming runs, and the handle on one.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use prose_agents::{Backend, BackendSettings, MockSource, Redactor, Registry};
use prose_model::backend::BackendCatalog;
use prose_model::{
    Bundle, EVENT_VERSION, EffectId, Event, Header, Order, RecordBody, RunEvent, RunId, RunStatus, StateIn,
    Value,
};
use prose_state::{
    Clock, MemoryRoots, NewRun, RandomIds, Recovered, Run, RunDir, RunIds, SystemClock, format_millis,
    no_header, read_journal, read_run,
};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::budget::Budget;
use crate::bus::{Backlog, Bus, EventStream, Gap};
use crate::catch_up::CatchUp;
use crate::changes::{Changes, changes};
use crate::driver::{Driver, Setup};
use crate::log::{Fault, Log};
use crate::perform::{Msg, panic_message};
use crate::publish::Publisher;
use crate::questions::Questions;
use crate::request::{
    AnswerError, Attach, InputMode, Limits, Overrides, ResumeRequest, RunError, RunRequest, RunResult,
    SessionQuestion, Signal, WaitingInput,
};
use crate::supplied;
use crate::timer::{SystemTimer, Timer};

/// The environment variable that aborts the process after so many journal records, for end-to-end tests of crashes.
pub const ABORT_VARIABLE: &str = "PROSE_TEST_ABORT_AFTER_RECORD";

/// So many events of an observer that needs all of them wait in memory.
const IN_MEMORY: usize = 4096;

/// Runs programs of one project.
#[derive(Clone)]
pub struct Engine {
    config: Arc<EngineConfig>,
}

/// How an engine works.
pub struct EngineConfig {
    /// `.prose/` is below it; sessions work in it.
    pub project_root: PathBuf,
    /// The user's home folder, for memory of scope `user`.
    pub home: Option<PathBuf>,
    /// Where backends come from.
    pub registry: Registry,
    /// Limits that are no part of a run's meaning.
    pub limits: Limits,
    /// The time for journal, events and run ids.
    pub clock: Arc<dyn Clock>,
    /// The random part of run ids.
    pub ids: Arc<dyn RunIds>,
    /// A number from 0 to 1 for the jitter of real back-off.
    pub jitter: fn() -> f64,
    /// The time for limits, back-off and the pace of `state.md`.
    pub timer: Arc<dyn Timer>,
    /// The tokio runtime that performs effects; none: the one that `start` is called on.
    pub handle: Option<Handle>,
    /// Stops runs where a test wants it.
    pub fault: Option<Fault>,
    /// Hides secrets in whatever a run is given, stores, shows and asks.
    pub redactor: Redactor,
}

impl EngineConfig {
    /// For a project whose configuration names backends.
    pub fn configured(project_root: impl Into<PathBuf>, catalog: BackendCatalog) -> EngineConfig {
        EngineConfig {
            redactor: Redactor::for_catalog(&catalog),
            registry: Registry::configured(catalog),
            ..EngineConfig::new(project_root)
        }
    }

    /// The usual ones, for a project.
    pub fn new(project_root: impl Into<PathBuf>) -> EngineConfig {
        EngineConfig {
            project_root: project_root.into(),
            home: std::env::home_dir(),
            registry: Registry::standard(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            jitter: random_fraction,
            timer: Arc::new(SystemTimer::default()),
            handle: None,
            fault: std::env::var(ABORT_VARIABLE)
                .ok()
                .and_then(|n| n.parse().ok())
                .map(Fault::AbortAfter),
            redactor: Redactor::default(),
        }
    }
}

/// The standard library seeds its hash maps from the system's randomness; a jitter needs no more.
fn random_fraction() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let bits = std::hash::RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A run that this process drives, or drove. Dropping it neither stops the run nor anything of it.
pub struct RunHandle {
    control: RunControl,
    events: Option<EventStream>,
    done: oneshot::Receiver<Result<RunResult, RunError>>,
}

/// Acts on a run from outside; none of its methods waits for the run.
#[derive(Clone)]
pub struct RunControl {
    run_id: RunId,
    ended: Option<RunStatus>,
    dir: PathBuf,
    bundle: Arc<Bundle>,
    tx: Sender<Msg>,
    bus: Bus,
    questions: Arc<Questions>,
    clock: Arc<dyn Clock>,
}

impl Engine {
    /// With the usual configuration.
    pub fn new(project_root: impl Into<PathBuf>) -> Engine {
        Engine::with(EngineConfig::new(project_root))
    }

    /// With another configuration.
    pub fn with(config: EngineConfig) -> Engine {
        Engine {
            config: Arc::new(config),
        }
    }

    /// The project root.
    pub fn project_root(&self) -> &Path {
        &self.config.project_root
    }

    /// Finds a backend by name, or one that is there.
    pub fn backend(&self, settings: &BackendSettings) -> Result<Backend, RunError> {
        Ok(self.config.registry.open(settings)?)
    }

    /// The fixed facts of a run on disk.
    pub fn header(&self, run: &RunId) -> Result<Header, RunError> {
        let dir = RunDir::find(&self.config.project_root, run)?;
        let records = match read_journal(&dir.journal()) {
            Ok(content) => content.records,
            Err(_) if matches!(dir.journal().try_exists(), Ok(false)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        match records.into_iter().next().map(|record| record.body) {
            Some(RecordBody::Header(header)) => Ok(*header),
            _ => Err(no_header(&dir).into()),
        }
    }

    /// The path of a run's program, relative to the project root where possible: of the one that was accepted last.
    ///
    /// # Errors
    /// That there is no such run, or that its journal can't be read.
    pub fn program(&self, run: &RunId) -> Result<String, RunError> {
        let header = self.header(run)?;
        let bundle = read_run(&RunDir::find(&self.config.project_root, run)?).bundle;
        let entry = bundle.as_ref().and_then(|bundle| {
            let program = bundle.programs.get(bundle.entry)?;
            bundle.files.get(program.file as usize)
        });
        Ok(entry.map_or(header.program, |file| file.path.clone()))
    }

    /// Refuses values for inputs that a program does not have, and such as are none of an input's choices, as far as those
    /// are known before the program runs.
    ///
    /// # Errors
    /// [`RunError::NoSuchInput`], [`RunError::NotAChoice`].
    pub fn check_inputs(bundle: &Bundle, inputs: &IndexMap<String, Value>) -> Result<(), RunError> {
        supplied::check_names(bundle, inputs)?;
        supplied::check_choices(bundle, inputs)
    }

    /// Starts a run and returns when it has an id and its directory is on disk. A name that the program has no input of is
    /// refused; so is a value that is none of its input's choices where those are known, else the input is asked for.
    pub async fn start(&self, request: RunRequest) -> Result<RunHandle, RunError> {
        let RunRequest {
            bundle,
            program,
            inputs,
            mut options,
            backend,
            attach,
        } = request;
        Engine::check_inputs(&bundle, &inputs)?;
        options.backend.clone_from(&backend.name);
        options.mock_text.clone_from(&backend.mock_text);
        let hidden = |value| self.config.redactor.redact_value(value);
        let new = NewRun {
            program,
            bundle,
            inputs: inputs
                .into_iter()
                .map(|(name, value)| (name, hidden(value)))
                .collect(),
            options,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
        };
        self.launch(
            Origin::New {
                new: Box::new(new),
                backend,
            },
            attach,
        )
        .await
    }

    /// Goes on with a run that stopped, crashed or waits. One that is over is replayed, which brings its files up to
    /// date and gives its result again. Values for inputs that the run can't use are refused before anything is written.
    pub async fn resume(&self, request: ResumeRequest) -> Result<RunHandle, RunError> {
        let ResumeRequest {
            run_id,
            inputs,
            changed,
            backend,
            overrides,
            attach,
        } = request;
        if nowhere().contains(&run_id) {
            return Err(RunError::NotKept { run: run_id });
        }
        let hidden = |(name, value)| (name, self.config.redactor.redact_value(value));
        let inputs = inputs.into_iter().map(hidden).collect();
        let root = &self.config.project_root;
        supplied::check_resume(root, &run_id, &inputs, changed.as_ref(), overrides.retry_failed)?;
        let origin = Origin::Resume {
            run_id,
            inputs,
            changed,
            overrides,
            backend: backend.map(Box::new),
        };
        self.launch(origin, attach).await
    }

    async fn launch(&self, origin: Origin, attach: Attach) -> Result<RunHandle, RunError> {
        let handle = match &self.config.handle {
            Some(handle) => handle.clone(),
            None => Handle::try_current().map_err(|_| {
                RunError::Engine("a run needs a tokio runtime to perform effects on".to_owned())
            })?,
        };
        let config = self.config.clone();
        let (ready_tx, ready) = oneshot::channel();
        let (done_tx, done) = oneshot::channel();
        let thread = move || {
            let bus = Bus::default();
            let run = AssertUnwindSafe(|| run_thread(&config, origin, attach, handle, bus.clone(), ready_tx));
            // A panic of ours ends this run and no other.
            let result = std::panic::catch_unwind(run).unwrap_or_else(|panic| {
                let message = panic_message(panic.as_ref());
                Err(RunError::Engine(format!("the engine panicked: {message}")))
            });
            bus.close();
            let _ = done_tx.send(result);
        };
        std::thread::Builder::new()
            .name("prose-run".to_owned())
            .spawn(thread)
            .map_err(|error| RunError::Engine(format!("no thread for the run: {error}")))?;
        match ready.await {
            Ok((control, events)) => Ok(RunHandle {
                control,
                events: Some(events),
                done,
            }),
            // It ended before it was ready, and says why.
            Err(_) => match done.await {
                Ok(Err(error)) => Err(error),
                _ => Err(RunError::Engine("the run ended before it began".to_owned())),
            },
        }
    }
}

/// The runs of this process whose state is in memory only: nobody can find them on disk, and a resume says why.
fn nowhere() -> MutexGuard<'static, BTreeSet<RunId>> {
    static RUNS: Mutex<BTreeSet<RunId>> = Mutex::new(BTreeSet::new());
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a run comes from.
enum Origin {
    New {
        new: Box<NewRun>,
        backend: Backend,
    },
    Resume {
        run_id: RunId,
        inputs: IndexMap<String, Value>,
        changed: Option<Arc<Bundle>>,
        overrides: Overrides,
        backend: Option<Box<Backend>>,
    },
}

/// A run's whole life in this process.
fn run_thread(
    config: &EngineConfig,
    origin: Origin,
    attach: Attach,
    handle: Handle,
    bus: Bus,
    ready: oneshot::Sender<(RunControl, EventStream)>,
) -> Result<RunResult, RunError> {
    let resumed = matches!(origin, Origin::Resume { .. });
    let mut not_mended = None;
    let (run, recovered, backend, inputs, overrides) = match origin {
        Origin::New { new, backend } => {
            let run = match new.options.state {
                StateIn::Files => {
                    Run::create(&config.project_root, *new, config.clock.clone(), &*config.ids)?
                }
                StateIn::Memory => {
                    let run = Run::in_memory(*new, config.clock.clone(), &*config.ids)?;
                    nowhere().insert(run.id().clone());
                    run
                }
            };
            (run, None, backend, IndexMap::new(), Overrides::default())
        }
        Origin::Resume {
            run_id,
            inputs,
            changed,
            overrides,
            backend,
        } => {
            let Opened {
                mut run,
                mut recovered,
                change,
            } = open(config, &run_id, changed, overrides.retry_failed)?;
            let ended = is_over(recovered.ended);
            let backend = match backend {
                Some(backend) => *backend,
                None if ended => crate::no_backend::no_backend(&run.header.options.backend),
                None => open_backend(config, &run)?,
            };
            if ended {
                not_mended = run.mend().err();
            } else {
                take_up(&mut run, &mut recovered, change)?;
            }
            (run, Some(recovered), backend, inputs, overrides)
        }
    };

    let (tx, rx): (Sender<Msg>, Receiver<Msg>) = channel();
    let questions = Arc::new(Questions::default());
    let control = RunControl {
        run_id: run.id().clone(),
        ended: recovered
            .as_ref()
            .and_then(|recovered| recovered.ended)
            .filter(|status| is_over(Some(*status))),
        dir: run.dir.path().to_owned(),
        bundle: run.bundle.clone(),
        tx: tx.clone(),
        bus: bus.clone(),
        questions: questions.clone(),
        clock: config.clock.clone(),
    };
    let events = bus.subscribe(match run.header.options.state {
        StateIn::Files => Backlog::Spilled(IN_MEMORY),
        StateIn::Memory => Backlog::Unlimited,
    });
    let signals = [
        attach
            .cancel
            .map(|signal| send_when(&handle, signal, &tx, Msg::Cancel)),
        attach
            .shutdown
            .map(|signal| send_when(&handle, signal, &tx, Msg::Stop)),
    ];
    // Whoever started the run may be gone; it goes on.
    let _ = ready.send((control, events));

    let log = Log::new(run.journal.clone(), config.fault);
    let mut publisher = Publisher::new(bus, &run, config.clock.clone(), config.timer.clone());
    if recovered.as_ref().is_some_and(|found| is_over(found.ended)) {
        publisher.at_rest();
    }
    publisher.stream(Event::RunStarted {
        program: run.header.program.clone(),
        digest: run.bundle.digest.clone(),
        files: run.bundle.files.iter().map(|file| file.digest.clone()).collect(),
        backend: backend.name.clone(),
        simulated: backend.simulated,
        resumed,
        dir: run.dir.path().display().to_string(),
    });
    if let Some(error) = not_mended {
        publisher.notice("warning", format!("the run's files are not up to date: {error}"));
    }
    let setup = Setup {
        redactor: config.redactor.clone(),
        asked: Arc::default(),
        limits: config.limits.clone(),
        options: prose_model::RunOptions {
            max_parallel: overrides.max_parallel.or(run.header.options.max_parallel),
            timeout_ms: overrides.timeout_ms.or(run.header.options.timeout_ms),
            idle_timeout_ms: overrides.idle_timeout_ms.or(run.header.options.idle_timeout_ms),
            ..run.header.options.clone()
        },
        project_root: config.project_root.clone(),
        roots: MemoryRoots {
            project_root: config.project_root.clone(),
            home: config.home.clone(),
            inside_run: backend.simulated,
        },
        handle,
        tx,
        permissions: attach.permissions,
        judges: Arc::new(Semaphore::new(config.limits.parallel_judge.max(1))),
        jitter: config.jitter,
        timer: config.timer.clone(),
    };
    let asking = attach.inputs == InputMode::Ask;
    questions.attend(asking);
    let mut driver = Driver::new(run, setup, backend, log, publisher, rx, questions.clone(), asking);
    let result = drive(&mut driver, recovered.as_ref(), inputs, overrides);
    for signal in signals.into_iter().flatten() {
        signal.abort();
    }
    questions.end();
    if let (Err(RunError::Diverged { .. }), Some(recovered)) = (&result, &recovered) {
        give_back(&driver.run, recovered.ended);
    }
    match &result {
        Ok(_) => {}
        // A simulated crash leaves everything as a real one would.
        Err(RunError::Fault(_)) => driver.abandon(),
        Err(error) => driver.broken(error),
    }
    driver.publisher.close();
    result
}

fn drive(
    driver: &mut Driver,
    recovered: Option<&Recovered>,
    inputs: IndexMap<String, Value>,
    overrides: Overrides,
) -> Result<RunResult, RunError> {
    if let Some(recovered) = recovered {
        driver.log.check()?;
        if let Some(torn) = recovered.torn.filter(|_| !is_over(recovered.ended)) {
            driver.publisher.notice(
                "warning",
                format!(
                    "the last record of the journal (line {}) was written in part when the run stopped; it was removed, and what it was about is done again",
                    torn.line
                ),
            );
        }
        let mut supplied = IndexMap::new();
        if !is_over(recovered.ended) {
            for (name, value) in inputs {
                let value = driver.run.values.externalize(&value)?;
                let name = prose_model::Name::from(name);
                driver.log.append_durable(RecordBody::Input {
                    name: name.clone(),
                    value: value.clone(),
                })?;
                supplied.insert(name, value);
            }
        }
        let raised = Budget {
            usd: overrides.budget_usd,
            tokens: overrides.budget_tokens,
        };
        if !is_over(recovered.ended) && !raised.is_none() {
            driver.log.append_durable(RecordBody::Budget {
                usd: raised.usd,
                tokens: raised.tokens,
            })?;
        }
        driver.replay(&recovered.records, recovered.changed, supplied, raised)?;
        if is_over(recovered.ended) && driver.completion.is_none() {
            // IMPORTANT: its journal is not written any more, so that nothing may be asked.
            return Err(RunError::Diverged {
                run: driver.run.id().clone(),
                reason: "it is over, but by what its journal says it goes on".to_owned(),
            });
        }
    }
    let exit = driver.drive()?;
    driver.finish(exit)
}

/// A run that is at rest, and how it is to go on.
struct Opened {
    run: Run,
    recovered: Recovered,
    /// The program that takes the place of the one so far, and whether failures that pass are no answers any more.
    change: Option<(Arc<Bundle>, bool)>,
}

/// Reads and checks a run; nothing of it is changed. A program that has changed has to be accepted.
fn open(
    config: &EngineConfig,
    run_id: &RunId,
    accepted: Option<Arc<Bundle>>,
    retry_failed: bool,
) -> Result<Opened, RunError> {
    let dir = RunDir::find(&config.project_root, run_id)?;
    let (run, mut recovered) = Run::at_rest(dir, config.clock.clone(), accepted.as_ref())?;
    // A failed run goes on when its program was mended, or what failed is tried again.
    let over = match recovered.ended {
        Some(RunStatus::Failed) => accepted.is_none() && !retry_failed,
        ended => is_over(ended),
    };
    if over {
        return Ok(Opened {
            run,
            recovered,
            change: None,
        });
    }
    if accepted.is_none() {
        let Changes { files, diff } = changes(&config.project_root, &run.bundle);
        if !files.is_empty() {
            return Err(RunError::ProgramChanged {
                run: run_id.clone(),
                files,
                diff,
            });
        }
    }
    if retry_failed && !recovered.records.iter().any(failed_in_passing) {
        return Err(RunError::NothingToRetry { run: run_id.clone() });
    }
    let bundle = accepted.unwrap_or_else(|| run.bundle.clone());
    let change = (retry_failed || bundle.digest != run.bundle.digest).then_some((bundle, retry_failed));
    if change.is_some() {
        recovered.ended = None;
    }
    Ok(Opened {
        run,
        recovered,
        change,
    })
}

/// Takes the run over, with the program that it goes on with.
fn take_up(
    run: &mut Run,
    recovered: &mut Recovered,
    change: Option<(Arc<Bundle>, bool)>,
) -> Result<(), RunError> {
    run.take_up()?;
    if let Some((bundle, retry_failed)) = change {
        run.change_program(bundle, retry_failed)?;
        // The record of the change is one of those that say what counts of the others.
        recovered.records = read_journal(&run.dir.journal())?.records;
        recovered.changed = recovered.records.len();
    }
    Ok(())
}

/// Whether a record is a failure that a retry may mend.
fn failed_in_passing(record: &prose_model::JournalRecord) -> bool {
    matches!(&record.body, RecordBody::Outcome { outcome, .. } if crate::kept::passes(outcome))
}

fn open_backend(config: &EngineConfig, run: &Run) -> Result<Backend, RunError> {
    let options = &run.header.options;
    let settings = BackendSettings {
        name: Some(options.backend.clone()),
        mock: options.mock_text.clone().map(MockSource::Text),
        realtime: false,
    };
    Ok(config.registry.open(&settings)?)
}

/// Leaves a run as it was found: a lease alone would make it look interrupted.
fn give_back(run: &Run, ended: Option<RunStatus>) {
    if let Some(status) = ended
        && let Err(error) = run.journal.append_durable(RecordBody::End { status })
    {
        tracing::warn!(%error, "the run's state was not restored");
    }
}

fn is_over(ended: Option<RunStatus>) -> bool {
    matches!(
        ended,
        Some(RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    )
}

fn send_when(handle: &Handle, signal: Signal, tx: &Sender<Msg>, msg: Msg) -> tokio::task::AbortHandle {
    let tx = tx.clone();
    let task = async move {
        signal.await;
        let _ = tx.send(msg);
    };
    handle.spawn(task).abort_handle()
}

impl RunHandle {
    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.control.run_id
    }

    /// How the run had ended before it was taken up. Then nothing is executed; its files are brought up to date, and its
    /// result is given again.
    pub fn ended(&self) -> Option<RunStatus> {
        self.control.ended
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.control.dir
    }

    /// Ways to act on it that outlive this handle.
    pub fn control(&self) -> RunControl {
        self.control.clone()
    }

    /// Every event from the first on; what nobody reads is kept, beyond a few thousand in a file. There is a gap only where
    /// no file can be written: [`RunControl::make_up`]. None when it was taken before.
    pub fn take_events(&mut self) -> Option<EventStream> {
        self.events.take()
    }

    /// Asks the run to cancel. A second time: `finally` bodies are cut short.
    pub fn cancel(&self) {
        self.control.cancel();
    }

    /// Answers an input.
    pub fn answer(&self, effect: &EffectId, value: Value) -> Result<(), AnswerError> {
        self.control.answer(effect, value)
    }

    /// Waits until this process's part in the run is over.
    pub async fn join(mut self) -> Result<RunResult, RunError> {
        // Nobody reads it any more.
        self.events = None;
        self.done
            .await
            .unwrap_or_else(|_| Err(RunError::Engine("the run's thread is gone".to_owned())))
    }
}

impl RunControl {
    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is executed: the texts that positions in events point into.
    pub fn bundle(&self) -> &Arc<Bundle> {
        &self.bundle
    }

    /// A new observer, which sees what happens from now on.
    pub fn subscribe(&self, backlog: Backlog) -> EventStream {
        self.bus.subscribe(backlog)
    }

    /// The machine's events behind `after_seq`, or from the first, out of the journal: for an observer whose stream has a
    /// gap, or that came late.
    pub fn catch_up(&self, after_seq: Option<u64>) -> Result<CatchUp, RunError> {
        if nowhere().contains(&self.run_id) {
            return Err(RunError::NotKept {
                run: self.run_id.clone(),
            });
        }
        CatchUp::new(&RunDir::at(&self.dir)?, after_seq)
    }

    /// Gives what a gap of this run's stream lacks: the machine's events out of the journal, and behind them
    /// [`Event::EventsMissed`] if others are missing too, or the journal can't be read. Stops when `give` says false, and
    /// returns whether it never did. Reads files.
    pub fn make_up(&self, gap: &Gap, mut give: impl FnMut(RunEvent) -> bool) -> bool {
        let mut given = 0;
        let mut after_seq = gap.after_seq;
        let mut made_up = || {
            let mut past = self.catch_up(gap.after_seq)?;
            while given < gap.machine
                && let Some(event) = past.next_event()?
            {
                if let Order::Machine { seq } = event.order {
                    after_seq = Some(seq);
                }
                given += 1;
                if !give(event) {
                    return Ok(false);
                }
            }
            Ok::<bool, RunError>(true)
        };
        if gap.machine > 0 {
            match made_up() {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    tracing::error!(%error, "events that were missed can't be read from the journal")
                }
            }
        }
        let (machine, streamed) = (gap.machine - given, gap.missed - gap.machine);
        if machine + streamed == 0 {
            return true;
        }
        give(RunEvent {
            v: EVENT_VERSION,
            run_id: self.run_id.clone(),
            ts: format_millis(self.clock.now_ms()),
            order: Order::Stream { after_seq, n: gap.n },
            event: Event::EventsMissed { machine, streamed },
        })
    }

    /// Asks the run to cancel: `finally` bodies run, then it ends as cancelled. A second time: they are cut short.
    pub fn cancel(&self) {
        let _ = self.tx.send(Msg::Cancel);
    }

    /// Lets go of the run as it stands, as a crash would, but with everything written; it can be resumed.
    pub fn stop(&self) {
        let _ = self.tx.send(Msg::Stop);
    }

    /// Nobody answers any more: sessions are told so, and the run is suspended when nothing goes on but inputs.
    pub fn stop_asking(&self) {
        self.questions.attend(false);
        let _ = self.tx.send(Msg::StopAsking);
    }

    /// What sessions wait to be told.
    pub fn session_questions(&self) -> Vec<SessionQuestion> {
        self.questions.of_sessions()
    }

    /// Inputs that wait for a person.
    pub fn questions(&self) -> Vec<WaitingInput> {
        self.questions.list()
    }

    /// Answers an input, or what a session wants to know. The first valid answer wins, and is taken only where the
    /// question is open.
    pub fn answer(&self, effect: &EffectId, value: Value) -> Result<(), AnswerError> {
        if self.questions.tell(effect, &value).is_some() {
            return Ok(());
        }
        let value = self.questions.take(effect, value)?;
        self.tx
            .send(Msg::Answer {
                id: effect.clone(),
                value,
            })
            .map_err(|_| AnswerError::Over)
    }
}
