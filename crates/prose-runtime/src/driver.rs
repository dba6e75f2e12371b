//! The drive loop of one run. It lives on a thread of its own, because journal and machine are synchronous; effects
//! are tokio tasks, which report back by messages.
//!
//! Order of every step: an outcome is journaled and on disk, together with those that arrived with it, then the machine
//! sees it, then what it asks is journaled and performed. So what a replay of the journal rebuilds is what happened.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender};

use indexmap::IndexMap;
use prose_agents::{Backend, CancelToken, Capabilities, Redactor, SessionUpdate};
use prose_model::{
    CancelWhat, Digest, Effect, EffectId, ErrorKind, ErrorValue, Event, Issued, Name, Outcome, ProcessId,
    RecordBody, RunOptions, RunStatus, StateIn, Usage, Value,
};
use prose_state::{MemoryRoots, Run, StateError, snippet};
use prose_vm::{Completion, Machine, StepState};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::budget::Budget;
use crate::computing::Computing;
use crate::content::StoreContent;
use crate::kept::Aside;
use crate::log::{self, Log};
use crate::open::OpenEffects;
use crate::perform::{self, Msg, TaskResult};
use crate::publish::Publisher;
use crate::questions::Questions;
use crate::queue::SessionQueue;
use crate::request::{Limits, PermissionProvider, RunError, RunResult};
use crate::sessions::SessionState;
use crate::timeline::{Next, Timeline};
use crate::timer::Timer;

/// One run while this process drives it.
pub(crate) struct Driver {
    pub(crate) run: Run,
    pub(crate) setup: Setup,
    pub(crate) backend: Backend,
    pub(crate) capabilities: Capabilities,
    pub(crate) machine: Machine,
    pub(crate) log: Log,
    pub(crate) content: StoreContent,
    pub(crate) publisher: Publisher,
    pub(crate) rx: Receiver<Msg>,
    /// Messages that came while a simulated task was awaited.
    pub(crate) deferred: VecDeque<Msg>,

    /// What the machine waits for, in issue order.
    pub(crate) open: OpenEffects,
    /// Effects with an `issued` record.
    pub(crate) recorded: HashSet<EffectId>,
    /// Answers of before the program was changed, for what it comes to ask again.
    pub(crate) aside: Aside,
    /// Effects that a task performs.
    pub(crate) tasks: HashMap<EffectId, Task>,
    pub(crate) queue: SessionQueue,
    pub(crate) sessions: HashMap<EffectId, SessionState>,
    pub(crate) timeline: Timeline,
    /// Cancel scopes that wait for tasks to stop.
    closing: IndexMap<EffectId, Closing>,
    /// Cancel scopes whose `finally` bodies have a deadline on the clock.
    deadlines: HashSet<EffectId>,
    pub(crate) questions: Arc<Questions>,
    /// Values for inputs, supplied to a resume.
    pub(crate) supplied: IndexMap<Name, Value>,
    /// What agents remember, and how many segments they have, where state is in memory.
    pub(crate) remembered: HashMap<PathBuf, (Option<String>, u32)>,
    pub(crate) memo: HashMap<(Digest, String), Value>,
    /// What all outcomes so far have cost, and what ended without one.
    pub(crate) usage: Usage,
    pub(crate) budget: Budget,
    /// A session was stopped at what was left of the budget.
    pub(crate) exhausted: bool,
    /// Whether it was said that the budget can't be kept.
    unpriced: bool,
    /// What waits for a larger budget, besides the queue.
    pub(crate) held: Vec<Issued>,
    /// Whether a message will come when `state.md` may be written.
    flushing: bool,
    pub(crate) completion: Option<Completion>,
    /// What an earlier process left; empty for a new run and while it is not known yet.
    pub(crate) recovered: crate::replay::RecoveredEffects,
    /// Children of earlier processes whose sessions are tried to be found again.
    pub(crate) leftovers: HashMap<EffectId, Vec<ProcessId>>,
    pub(crate) replaying: bool,
    pub(crate) asking: bool,
    pub(crate) cancelled: bool,
    pub(crate) stop: bool,
}

/// Fixed for the run.
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) options: RunOptions,
    pub(crate) project_root: PathBuf,
    pub(crate) roots: MemoryRoots,
    pub(crate) handle: Handle,
    pub(crate) tx: Sender<Msg>,
    pub(crate) permissions: Option<Arc<dyn PermissionProvider>>,
    /// Numbers the questions to it.
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) redactor: Redactor,
    pub(crate) judges: Arc<Semaphore>,
    pub(crate) jitter: fn() -> f64,
    pub(crate) timer: Arc<dyn Timer>,
}

/// A task that performs an effect.
pub(crate) struct Task {
    pub(crate) cancel: CancelToken,
    pub(crate) abort: AbortHandle,
}

struct Closing {
    order: u64,
    rest: HashSet<EffectId>,
}

/// Why the loop ended.
pub(crate) enum Exit {
    Done(Completion),
    /// Only a person could go on.
    Waiting,
    /// Only a larger budget could go on.
    OutOfBudget(ErrorValue),
    /// Let go of.
    Stopped,
}

impl Driver {
    #[expect(
        clippy::too_many_arguments,
        reason = "the one place where a driver is put together"
    )]
    pub(crate) fn new(
        run: Run,
        setup: Setup,
        backend: Backend,
        log: Log,
        publisher: Publisher,
        rx: Receiver<Msg>,
        questions: Arc<Questions>,
        asking: bool,
    ) -> Driver {
        let mut capabilities = backend.sessions.capabilities();
        let limits = &setup.limits;
        let default = match capabilities.delivery {
            prose_agents::Delivery::Files => limits.parallel_files,
            prose_agents::Delivery::Plain => limits.parallel_plain,
        };
        let parallel = setup.options.max_parallel.map_or(default, |n| n as usize);
        let budget = Budget::of(&setup.options);
        if setup.options.state == StateIn::Memory {
            // There are no files to refer to: context is passed as text, and the reply is the result.
            capabilities.delivery = prose_agents::Delivery::Plain;
        }
        Driver {
            machine: Machine::start(run.bundle.clone(), run.header.inputs.clone()),
            content: StoreContent(run.values.clone()),
            queue: SessionQueue::new(parallel),
            timeline: Timeline::new(capabilities.virtual_time),
            run,
            setup,
            backend,
            capabilities,
            log,
            publisher,
            rx,
            deferred: VecDeque::new(),
            open: OpenEffects::default(),
            recorded: HashSet::new(),
            aside: Aside::default(),
            tasks: HashMap::new(),
            sessions: HashMap::new(),
            closing: IndexMap::new(),
            deadlines: HashSet::new(),
            questions,
            supplied: IndexMap::new(),
            remembered: HashMap::new(),
            memo: HashMap::new(),
            usage: Usage::default(),
            budget,
            exhausted: false,
            unpriced: false,
            held: Vec::new(),
            flushing: false,
            completion: None,
            recovered: crate::replay::RecoveredEffects::default(),
            leftovers: HashMap::new(),
            replaying: false,
            asking,
            cancelled: false,
            stop: false,
        }
    }

    /// Drives a new or replayed run to its end, or to where it can't go on.
    pub(crate) fn drive(&mut self) -> Result<Exit, RunError> {
        // The record that a test stops at may be one that creating or replaying the run wrote.
        self.log.check()?;
        self.publisher.flush(false);
        self.settle()?;
        self.start_queued()?;
        loop {
            while let Some(msg) = self.deferred.pop_front().or_else(|| self.rx.try_recv().ok()) {
                self.handle(msg)?;
            }
            if let Some(completion) = self.completion.take() {
                return Ok(Exit::Done(completion));
            }
            if self.stop {
                return Ok(Exit::Stopped);
            }
            if let Some(next) = self.timeline.pop() {
                self.deliver(next)?;
                self.publisher.flush(false);
                continue;
            }
            if let Some(error) = self.out_of_budget() {
                return Ok(Exit::OutOfBudget(error));
            }
            if self.is_idle()? && !self.asking {
                return Ok(Exit::Waiting);
            }
            self.publisher.flush(false);
            if let Some(due) = self.publisher.flush_due().filter(|_| !self.flushing) {
                self.flushing = true;
                self.later(due, Msg::Flush);
            }
            let Ok(msg) = self.rx.recv() else {
                return Ok(Exit::Stopped);
            };
            self.handle(msg)?;
        }
    }

    /// What the run has cost, with what running sessions say of themselves.
    pub(crate) fn spent(&self) -> Usage {
        let mut spent = self.usage;
        if !self.budget.is_none() {
            spent.add(&self.in_flight());
        }
        spent
    }

    /// Whether what costs money is not begun any more. A run that is cancelled goes to its end: there it fails.
    pub(crate) fn holds(&self) -> bool {
        !self.cancelled && (self.exhausted || self.budget.is_spent(&self.spent()))
    }

    /// The error with which the run stops when nothing goes on but what a larger budget would pay for.
    fn out_of_budget(&self) -> Option<ErrorValue> {
        if !self.holds() || !self.tasks.is_empty() || !self.closing.is_empty() {
            return None;
        }
        let first = self.held.first().map(|issued| &issued.id);
        let first = self.queue.first().or(first)?;
        let (spent, limit) = self.budget.message(&self.usage);
        Some(ErrorValue {
            kind: ErrorKind::Budget,
            message: match self.setup.options.state {
                StateIn::Files => format!(
                    "{spent}; to go on with a larger one: prose resume {} {limit}",
                    self.run.id()
                ),
                StateIn::Memory => format!(
                    "{spent}; its state was in context, so that it can't go on: start it again with a larger one: {limit}"
                ),
            },
            statement: self
                .open
                .get(first)
                .map_or_else(|| "main".into(), |issued| issued.stmt.clone()),
            place: self
                .open
                .get(first)
                .map_or_else(String::new, |issued| self.place(issued)),
            attempts: 1,
        })
    }

    /// Where an effect is asked, as [`ErrorValue::place`] has it.
    fn place(&self, issued: &Issued) -> String {
        let Some(file) = self.run.bundle.files.get(issued.src.file as usize) else {
            return String::new();
        };
        let before = file.text.get(..issued.src.start as usize).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let text = prose_agents::one_line(&snippet(&self.run.bundle, issued.src));
        format!("{}:{line}: {text}", file.path)
    }

    /// Counts what an effect has cost that gets no outcome.
    pub(crate) fn spend(&mut self, id: &EffectId, usage: Usage) -> Result<(), RunError> {
        if usage == Usage::default() {
            return Ok(());
        }
        self.log.append(RecordBody::Spent {
            id: id.clone(),
            usage,
        })?;
        self.usage.add(&usage);
        Ok(())
    }

    /// Says once that money can't be counted.
    pub(crate) fn check_priced(&mut self, usage: &Usage) {
        let used = usage.tokens() > 0;
        if self.budget.usd.is_some() && used && usage.cost_usd.is_none() && !self.unpriced {
            self.unpriced = true;
            let message = format!(
                "the backend `{}` does not say what sessions cost, so the budget in USD can't be kept; \
                 `--budget-tokens N` limits tokens",
                self.backend.name
            );
            self.publisher.notice("warning", message);
        }
    }

    /// Whether nothing but a person's answer can bring the run on.
    fn is_idle(&self) -> Result<bool, RunError> {
        // A deadline brings on only what a cancelled run still does; of an older scope it may be long past use.
        let busy = !self.tasks.is_empty()
            || !self.closing.is_empty()
            || !self.queue.is_empty()
            || (self.cancelled && !self.deadlines.is_empty());
        if busy {
            return Ok(false);
        }
        let stuck = self
            .open
            .values()
            .find(|issued| !matches!(issued.effect, Effect::Input(_)));
        match stuck {
            None if !self.open.is_empty() => Ok(true),
            None => Err(RunError::Engine("the machine waits for nothing".to_owned())),
            Some(issued) => Err(RunError::Engine(format!(
                "nobody performs the effect {}",
                issued.id
            ))),
        }
    }

    /// Steps the machine until it waits, publishes what happened and begins what it asks.
    pub(crate) fn settle(&mut self) -> Result<(), RunError> {
        let mut computing = Computing::default();
        loop {
            if self.lets_go() {
                return Ok(());
            }
            let step = self.machine.step();
            // IMPORTANT: before the events: who reads of a question there may answer at once.
            for issued in &step.effects {
                if let Effect::Input(request) = &issued.effect {
                    self.questions.open(&issued.id, request, &self.content);
                }
            }
            for event in step.events {
                self.publisher.machine(event);
            }
            for issued in step.effects {
                self.issue(issued)?;
            }
            match step.state {
                StepState::Running => self.goes_on(&mut computing),
                StepState::Waiting | StepState::Done(_) => {
                    self.rests(computing);
                    if let StepState::Done(completion) = step.state {
                        self.completion = Some(completion);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn handle(&mut self, msg: Msg) -> Result<(), RunError> {
        match msg {
            Msg::Done { id, result } => self.task_done(id, result)?,
            Msg::Started {
                id,
                handle,
                model,
                ack,
            } => {
                let result = self.session_started(&id, handle, model);
                perform::acknowledge(ack, &result);
                result?;
            }
            Msg::Child { id, process, ack } => {
                let lease = self.run.lease;
                let result = self.log.append_durable(RecordBody::Child { id, lease, process });
                perform::acknowledge(ack, &result);
                result?;
            }
            Msg::Update { id, update } => {
                if self.open.contains_key(&id) {
                    self.publish_update(&id, update);
                }
            }
            Msg::Permission(event) => self.publisher.stream(event),
            Msg::Notice { level, message } => self.notice(level, &message),
            Msg::Answer { id, value } => {
                if let Some(issued) = self.open.get(&id) {
                    let answer = TaskResult::outcome(Outcome::Input { value });
                    self.timeline.push_now(issued.order, Next::Answer(id, answer));
                }
            }
            Msg::Deadline(scope) => self.deliver(Next::Deadline(scope))?,
            Msg::Grace(scope) => self.grace_over(&scope),
            Msg::Flush => self.flushing = false,
            Msg::MemoryFree => {
                self.queue.unblock();
                self.start_queued()?;
            }
            Msg::Cancel if self.completion.is_some() => {}
            Msg::Cancel if self.cancelled => {
                // Asked twice: what `finally` still does is not worth the wait.
                for scope in self.deadlines.clone() {
                    self.deliver(Next::Deadline(scope))?;
                }
            }
            Msg::Cancel => {
                self.cancelled = true;
                self.log.append_durable(RecordBody::Cancel {
                    what: CancelWhat::Run,
                })?;
                self.machine.cancel();
                self.settle()?;
                self.start_queued()?;
            }
            Msg::Stop => self.stop = true,
            Msg::StopAsking => self.asking = false,
        }
        Ok(())
    }

    /// The replayed journal says that the run was cancelled.
    pub(crate) fn replay_cancel(&mut self) {
        self.cancelled = true;
        self.machine.cancel();
    }

    /// Gives the machine what is next.
    fn deliver(&mut self, next: Next) -> Result<(), RunError> {
        match next {
            Next::Deadline(scope) => {
                if self.completion.is_none() && self.deadlines.remove(&scope) {
                    let what = CancelWhat::Deadline(scope.clone());
                    self.log.append_durable(RecordBody::Cancel { what })?;
                    self.machine.deadline(&scope);
                    self.settle()?;
                    self.start_queued()?;
                }
                Ok(())
            }
            Next::Answer(id, result) => self.answers(id, result),
        }
    }

    /// Writes the `issued` record of an effect, once.
    pub(crate) fn record(&mut self, issued: &Issued, memory: Option<Digest>) -> Result<(), RunError> {
        if self.recorded.insert(issued.id.clone()) {
            self.log.append(log::issued_record(issued, memory))?;
        }
        Ok(())
    }

    /// A task reported its end.
    fn task_done(&mut self, id: EffectId, result: TaskResult) -> Result<(), RunError> {
        self.tasks.remove(&id);
        self.stopped(&id);
        let Some(order) = self.open.get(&id).map(|issued| issued.order) else {
            // Cancelled on its way: what it has used is paid for all the same.
            let usage = match &result {
                TaskResult::Session { reply, .. } => match &**reply {
                    Ok(reply) => reply.usage,
                    Err(failure) if failure.usage != Usage::default() => failure.usage,
                    Err(_) => self.reported(&id),
                },
                TaskResult::Outcome(outcome) => outcome_usage(outcome),
                _ => self.reported(&id),
            };
            self.spend(&id, usage)?;
            self.release(&id);
            return self.start_queued();
        };
        match result {
            TaskResult::Lost => self.stop = true,
            TaskResult::NoAnswer => self.needs_person(&id),
            result => self.timeline.push_now(order, Next::Answer(id, result)),
        }
        Ok(())
    }

    /// Waits for a task that takes no real time.
    pub(crate) fn run_to_end(&mut self, id: &EffectId) -> Result<TaskResult, RunError> {
        loop {
            match self.rx.recv() {
                Ok(Msg::Done { id: done, result }) if done == *id => {
                    self.tasks.remove(id);
                    return Ok(result);
                }
                Ok(Msg::Started { id, model, ack, .. }) => {
                    self.publish_spawned(&id, model);
                    let _ = ack.send(Ok(()));
                }
                Ok(Msg::Child { ack, .. }) => _ = ack.send(Ok(())),
                Ok(Msg::Update { id, update }) => self.buffer(&id, update),
                Ok(Msg::Notice { level, message }) => self.notice(level, &message),
                Ok(msg) => self.deferred.push_back(msg),
                Err(_) => return Ok(TaskResult::Lost),
            }
        }
    }

    /// Schedules a task's result by its effect; a vanished task ends this process's part in the run.
    pub(crate) fn schedule(&mut self, issued: &Issued, result: TaskResult) {
        match result {
            TaskResult::Lost => self.stop = true,
            TaskResult::NoAnswer => self.needs_person(&issued.id),
            result => self
                .timeline
                .push_now(issued.order, Next::Answer(issued.id.clone(), result)),
        }
    }

    /// The question is open already; now whoever watches puts it to a person.
    pub(crate) fn needs_person(&mut self, id: &EffectId) {
        if self.questions.needs_person(id) {
            self.publisher.stream(Event::InputNeeded { effect: id.clone() });
        }
    }

    /// Stops what a cancel scope names; the scope is answered when all of it has stopped.
    pub(crate) fn cancel_effects(&mut self, scope: &Issued, effects: &[EffectId]) {
        let mut rest = HashSet::new();
        for id in effects {
            self.open.shift_remove(id);
            self.recorded.remove(id);
            self.questions.close(id);
            self.queue.remove(id);
            self.timeline.remove(id);
            if let Some(task) = self.tasks.get(id) {
                task.cancel.cancel();
                rest.insert(id.clone());
            } else {
                self.release(id);
            }
        }
        // Only sessions stop by themselves; nothing is lost when the others are dropped at once.
        for id in &rest {
            if !self.sessions.contains_key(id)
                && let Some(task) = self.tasks.get(id)
            {
                task.abort.abort();
            }
        }
        if rest.is_empty() {
            self.timeline.push_now(
                scope.order,
                Next::Answer(scope.id.clone(), TaskResult::outcome(Outcome::Cancelled)),
            );
            return;
        }
        self.closing.insert(
            scope.id.clone(),
            Closing {
                order: scope.order,
                rest,
            },
        );
        self.later(self.setup.limits.cancel_grace, Msg::Grace(scope.id.clone()));
    }

    /// Starts the clock for a cancel scope's `finally` bodies; `due` is virtual time.
    pub(crate) fn arm_deadline(&mut self, scope: &EffectId, order: u64, due: Option<u64>) {
        if !self.deadlines.insert(scope.clone()) {
            return;
        }
        match due {
            Some(due) => self.timeline.push_at(due, order, Next::Deadline(scope.clone())),
            None => self.later(self.setup.limits.finally_deadline, Msg::Deadline(scope.clone())),
        }
    }

    /// The journal says that this deadline has passed.
    pub(crate) fn replay_deadline(&mut self, scope: &EffectId) {
        self.machine.deadline(scope);
    }

    /// Sends a message to itself after a while.
    pub(crate) fn later(&self, time: std::time::Duration, msg: Msg) {
        let tx = self.setup.tx.clone();
        let wait = self.setup.timer.clone();
        self.setup.handle.spawn(async move {
            wait.sleep(time).await;
            let _ = tx.send(msg);
        });
    }

    /// A cancelled task has stopped.
    fn stopped(&mut self, id: &EffectId) {
        let mut over = Vec::new();
        for (scope, closing) in &mut self.closing {
            if closing.rest.remove(id) && closing.rest.is_empty() {
                over.push((scope.clone(), closing.order));
            }
        }
        for (scope, order) in over {
            self.closing.shift_remove(&scope);
            self.timeline.push_now(
                order,
                Next::Answer(scope, TaskResult::outcome(Outcome::Cancelled)),
            );
        }
    }

    /// Sessions of a cancel scope that did not stop by themselves are dropped.
    fn grace_over(&mut self, scope: &EffectId) {
        let Some(closing) = self.closing.get(scope) else {
            return;
        };
        for id in closing.rest.clone() {
            tracing::warn!(effect = %id, "a cancelled session did not stop and is dropped");
            if let Some(task) = self.tasks.get(&id) {
                task.abort.abort();
            }
        }
    }

    /// Says what a session's side wants a person to know.
    fn notice(&mut self, level: &str, message: &str) {
        let message = self.setup.redactor.redact(message).into_owned();
        self.publisher.notice(level, message);
    }

    pub(crate) fn publish_update(&mut self, id: &EffectId, update: SessionUpdate) {
        let effect = id.clone();
        let event = match update {
            SessionUpdate::Text(text) => {
                let text = match self.sessions.get_mut(id) {
                    Some(session) => session.shown.push(&text),
                    None => self.setup.redactor.redact(&text).into_owned(),
                };
                // What may be the beginning of a secret waits for more.
                if text.is_empty() {
                    return;
                }
                Event::SessionText { effect, text }
            }
            SessionUpdate::Tool { mut name, mut detail } => {
                self.publish_rest(id);
                self.setup.redactor.redact_in(&mut name);
                self.setup.redactor.redact_in(&mut detail);
                Event::SessionTool {
                    effect,
                    tool: name,
                    detail,
                }
            }
            SessionUpdate::Usage(usage) => Event::SessionUsage { effect, usage },
        };
        self.publisher.stream(event);
    }

    /// Publishes what was held back of a session's text: no more of it follows.
    pub(crate) fn publish_rest(&mut self, id: &EffectId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let text = session.shown.finish();
        if !text.is_empty() {
            let effect = id.clone();
            self.publisher.stream(Event::SessionText { effect, text });
        }
    }

    /// Ends this process's part in the run.
    pub(crate) fn finish(&mut self, exit: Exit) -> Result<RunResult, RunError> {
        self.abandon();
        let (status, completion, error) = match exit {
            Exit::Done(completion) => (completion.status, Some(completion), None),
            Exit::Waiting => (RunStatus::Waiting, None, None),
            Exit::OutOfBudget(error) => (RunStatus::OutOfBudget, None, Some(error)),
            Exit::Stopped => (RunStatus::Interrupted, None, None),
        };
        let completion = completion.unwrap_or(Completion {
            status,
            outputs: IndexMap::new(),
            result: None,
            error,
        });
        if status != RunStatus::Interrupted {
            self.log.append_durable(RecordBody::End { status })?;
        }
        let waiting = if status == RunStatus::Waiting {
            self.questions.list()
        } else {
            Vec::new()
        };
        let mut outputs = completion.outputs.clone();
        if let Some(result) = &completion.result {
            outputs
                .entry("result".to_owned())
                .or_insert_with(|| result.clone());
        }
        let error = completion.error.clone();
        self.publisher.finish(Event::RunFinished {
            status,
            outputs,
            error,
            usage: self.usage,
        });
        let over = matches!(
            status,
            RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled
        );
        if over
            && self.setup.options.state == StateIn::Files
            && let Err(error) = self.run.dir.clear_staging()
        {
            tracing::warn!(%error, "staging not cleared");
        }
        Ok(RunResult {
            run_id: self.run.id().clone(),
            dir: self.run.dir.path().to_owned(),
            status,
            outputs: completion.outputs,
            result: completion.result,
            error: completion.error,
            usage: self.usage,
            waiting,
            content: self.content.clone(),
        })
    }

    /// The run can't go on in this process: says so to whoever watches.
    pub(crate) fn broken(&mut self, error: &RunError) {
        self.abandon();
        // The run's folder has gone, or is somebody else's by now, or the run stays as it was found.
        if matches!(
            error,
            RunError::State(StateError::JournalGone { .. } | StateError::JournalAltered { .. })
                | RunError::Diverged { .. }
        ) {
            self.publisher.leave_files();
        }
        self.publisher.notice("warning", error.to_string());
        let status = RunStatus::Interrupted;
        let usage = self.usage;
        self.publisher.finish(Event::RunFinished {
            status,
            outputs: IndexMap::new(),
            error: None,
            usage,
        });
    }

    /// Drops all tasks.
    pub(crate) fn abandon(&mut self) {
        for (_, task) in self.tasks.drain() {
            task.cancel.cancel();
            task.abort.abort();
        }
    }
}

/// What an outcome cost.
pub(crate) fn outcome_usage(outcome: &Outcome) -> Usage {
    match outcome {
        Outcome::Session(session) => session.usage,
        Outcome::Failed(failure) => failure.usage,
        Outcome::Verdict(verdict) => verdict.usage,
        Outcome::Decoded { .. } | Outcome::Input { .. } | Outcome::Slept | Outcome::Cancelled => {
            Usage::default()
        }
    }
}
