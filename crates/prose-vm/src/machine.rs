//! The machine's state and its step.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, DecodeTarget, Effect, EffectId, End, ErrorKind, ErrorValue, Event, ExecutionId, Failure, Issued,
    MachineEvent, Outcome, RunStatus, Usage, Value,
};

use crate::api::{Completion, ResolveError, Step, StepState};
use crate::code::{Code, NodeId};
use crate::expr::Stop;
use crate::scope::{Frame, Scopes};
use crate::strand::{Cancel, Control, Cx, Kont, Strand, StrandId, Task, TaskState, Unwind, What};
use crate::{STEP_WORK, WORK_LIMIT};

/// A run in progress.
#[derive(Debug)]
pub struct Machine {
    pub(crate) code: Arc<Code>,
    pub(crate) scopes: Scopes,
    pub(crate) instances: Vec<Instance>,
    /// Those of calls that are over.
    pub(crate) free_instances: Vec<u32>,
    pub(crate) strands: BTreeMap<StrandId, Strand>,
    ready: VecDeque<StrandId>,
    mailbox: VecDeque<Incoming>,
    /// Effects that were neither answered nor cancelled, or whose answer was not delivered yet.
    pub(crate) effects: IndexMap<EffectId, Entry>,
    /// What is left of all others.
    past: HashMap<u64, Past>,
    pub(crate) cancel_scopes: IndexMap<EffectId, CancelScope>,
    out_effects: Vec<Issued>,
    pub(crate) out_events: Vec<MachineEvent>,
    pub(crate) seq: u64,
    order: u64,
    next_execution: ExecutionId,
    next_strand: StrandId,
    /// Evaluations since the machine last waited.
    work: u64,
    pub(crate) cancelled: bool,
    /// Cancel scopes that were not answered yet.
    pub(crate) open_scopes: usize,
    /// How the program ended; final once no cancel scope is open.
    done: Option<Completion>,
}

/// A program that runs: the entry, or one called.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Index into the bundle's programs.
    pub program: usize,
    /// The programs that called it, the entry first.
    pub callers: Vec<usize>,
    /// Folder names below the run.
    pub path: Vec<String>,
    /// Number of the last anonymous session.
    pub anonymous: u32,
    /// Values for inputs that were not used yet.
    pub supplied: IndexMap<String, Value>,
    pub outputs: IndexMap<String, Value>,
    /// How often each folder was called from here.
    pub calls: IndexMap<String, u32>,
}

/// An effect that was issued.
#[derive(Debug)]
pub(crate) struct Entry {
    pub state: EntryState,
    pub kind: &'static str,
    pub order: u64,
    /// The strand that waits for it; none for a cancel scope.
    pub owner: Option<StrandId>,
    /// Kept while it is pending.
    pub issued: Option<Box<Issued>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    Pending,
    /// Answered; the answer waits in the mailbox.
    Answered,
}

/// How an effect ended. A long run has many, so that only a hash of each id is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    Done,
    /// An answer is ignored, and a second one is too.
    Cancelled,
}

fn hash(id: &EffectId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A cancel scope that was issued.
#[derive(Debug)]
pub(crate) struct CancelScope {
    /// What it cancels.
    pub roots: Vec<StrandId>,
    /// The strand whose join waits for it.
    pub join: Option<StrandId>,
}

/// What came from outside, in order of arrival.
#[derive(Debug)]
enum Incoming {
    Outcome(EffectId, Box<Outcome>),
    Cancel,
    Deadline(EffectId),
}

impl Machine {
    /// Starts the bundle's entry program. `inputs` are values for its inputs by name; each serves the first execution
    /// of its input only.
    pub fn start(bundle: Arc<Bundle>, inputs: IndexMap<String, Value>) -> Machine {
        let entry = bundle.entry;
        let code = Arc::new(Code::new(bundle));
        let mut machine = Machine {
            code,
            scopes: Scopes::default(),
            instances: Vec::new(),
            free_instances: Vec::new(),
            strands: BTreeMap::new(),
            ready: VecDeque::new(),
            mailbox: VecDeque::new(),
            effects: IndexMap::new(),
            past: HashMap::new(),
            cancel_scopes: IndexMap::new(),
            out_effects: Vec::new(),
            out_events: Vec::new(),
            seq: 0,
            order: 0,
            next_execution: 1,
            next_strand: 1,
            work: 0,
            cancelled: false,
            open_scopes: 0,
            done: None,
        };
        let instance = machine.instance(entry, Vec::new(), Vec::new(), inputs);
        let scope = machine.scopes.frame(
            None,
            Frame {
                instance,
                ..Frame::default()
            },
        );
        let id = machine.new_strand();
        let mut root = Strand {
            id,
            parent: None,
            stack: Vec::new(),
            cx: Cx {
                scope,
                instance,
                place: "".into(),
            },
            control: Control::Value(Value::Null),
            cancel: Cancel::No,
            protected: 0,
            bound: Vec::new(),
            last_binding: None,
        };
        let inner = root.cx.clone();
        root.control = machine.start_program(&mut root, entry, inner, None);
        machine.wake(root);
        machine
    }

    /// Goes on until nothing can without an outcome, or the step's share of work is used up.
    pub fn step(&mut self) -> Step {
        let mut fuel = STEP_WORK;
        let state = loop {
            if let Some(id) = self.ready.pop_front() {
                if !self.run(id, &mut fuel) {
                    self.ready.push_front(id);
                    break StepState::Running;
                }
            } else if let (Some(done), 0) = (&self.done, self.open_scopes) {
                break StepState::Done(done.clone());
            } else {
                // Outcomes are delivered one at a time, each only when all that it follows has come to rest: so it makes
                // no difference whether they were handed in together.
                self.work = 0;
                match self.mailbox.pop_front() {
                    Some(incoming) => self.deliver(incoming),
                    None => break StepState::Waiting,
                }
            }
        };
        let effects = std::mem::take(&mut self.out_effects);
        Step {
            effects,
            events: std::mem::take(&mut self.out_events),
            state,
        }
    }

    /// Answers an effect. The answer takes effect in the next step. Answers to effects that were cancelled meanwhile are
    /// accepted and ignored.
    ///
    /// # Errors
    /// When the id is unknown or was answered before, or the outcome can't answer this kind of effect.
    pub fn resolve(&mut self, id: &EffectId, outcome: Outcome) -> Result<(), ResolveError> {
        let Some(entry) = self.effects.get_mut(id) else {
            return match self.past.get(&hash(id)) {
                None => Err(ResolveError::Unknown(id.clone())),
                Some(Past::Cancelled) => Ok(()),
                Some(Past::Done) => Err(ResolveError::AlreadyResolved(id.clone())),
            };
        };
        let fits = matches!(
            (entry.kind, &outcome),
            ("session", Outcome::Session(_))
                | ("judge", Outcome::Verdict(_))
                | ("decode", Outcome::Decoded { .. })
                | ("input", Outcome::Input { .. })
                | ("sleep", Outcome::Slept)
                | ("cancel_scope", Outcome::Cancelled)
                | (_, Outcome::Failed(_))
        );
        match entry.state {
            EntryState::Answered => return Err(ResolveError::AlreadyResolved(id.clone())),
            EntryState::Pending if !fits => {
                let outcome = outcome_kind(&outcome);
                return Err(ResolveError::WrongKind {
                    id: id.clone(),
                    effect: entry.kind,
                    outcome,
                });
            }
            EntryState::Pending => entry.state = EntryState::Answered,
        }
        self.mailbox
            .push_back(Incoming::Outcome(id.clone(), Box::new(outcome)));
        Ok(())
    }

    /// The user cancels the run: everything unwinds, `finally` bodies run. A second call changes nothing.
    pub fn cancel(&mut self) {
        self.mailbox.push_back(Incoming::Cancel);
    }

    /// The time that a cancel scope's `finally` bodies had is over: what still runs of them stops. An unknown or
    /// finished scope changes nothing.
    pub fn deadline(&mut self, scope: &EffectId) {
        self.mailbox.push_back(Incoming::Deadline(scope.clone()));
    }

    // ---- strands ----

    pub(crate) fn new_strand(&mut self) -> StrandId {
        self.next_strand += 1;
        self.next_strand - 1
    }

    pub(crate) fn new_execution(&mut self) -> ExecutionId {
        self.next_execution += 1;
        self.next_execution - 1
    }

    pub(crate) fn instance(
        &mut self,
        program: usize,
        callers: Vec<usize>,
        path: Vec<String>,
        supplied: IndexMap<String, Value>,
    ) -> u32 {
        let instance = Instance {
            program,
            callers,
            path,
            anonymous: 0,
            supplied,
            outputs: IndexMap::new(),
            calls: IndexMap::new(),
        };
        if let Some(id) = self.free_instances.pop() {
            self.instances[id as usize] = instance;
            return id;
        }
        self.instances.push(instance);
        (self.instances.len() - 1) as u32
    }

    /// Puts a strand back; it runs when its turn comes, unless it waits.
    pub(crate) fn wake(&mut self, strand: Strand) {
        let waits = matches!(
            strand.control,
            Control::Effect(_) | Control::Join | Control::Stopping(_)
        );
        if !waits {
            self.ready.push_back(strand.id);
        }
        self.strands.insert(strand.id, strand);
    }

    /// Takes a strand out of the queue of those that can run.
    pub(crate) fn unqueue(&mut self, id: StrandId) {
        self.ready.retain(|queued| *queued != id);
    }

    /// Runs a strand until it waits or ends. False when the fuel is used up before.
    fn run(&mut self, id: StrandId, fuel: &mut u64) -> bool {
        let Some(mut s) = self.strands.remove(&id) else {
            return true;
        };
        loop {
            if matches!(
                s.control,
                Control::Effect(_) | Control::Join | Control::Stopping(_)
            ) {
                self.strands.insert(id, s);
                return true;
            }
            if *fuel == 0 {
                self.strands.insert(id, s);
                return false;
            }
            *fuel -= 1;
            s.control = match std::mem::replace(&mut s.control, Control::Join) {
                Control::Eval(node) => {
                    self.work += 1;
                    if self.work > WORK_LIMIT {
                        let message = "the program goes on and on without asking for anything";
                        self.raise(node, ErrorKind::LoopLimit, message)
                    } else {
                        self.eval(&mut s, node)
                    }
                }
                Control::Value(value) => match s.stack.pop() {
                    Some(Kont { cx, what }) => {
                        s.cx = cx;
                        self.resume(&mut s, what, value)
                    }
                    None => {
                        self.strand_ended(s, Ok(value));
                        return true;
                    }
                },
                Control::Unwind(unwind) => match s.stack.pop() {
                    Some(Kont { cx, what }) => {
                        s.cx = cx;
                        self.unwind(&mut s, what, unwind)
                    }
                    None => {
                        self.strand_ended(s, Err(unwind));
                        return true;
                    }
                },
                waiting => waiting,
            };
        }
    }

    fn strand_ended(&mut self, s: Strand, how: Result<Value, Unwind>) {
        match s.parent {
            Some((parent, index)) => self.child_ended(parent, index, s.bound, how),
            None => self.finish(how),
        }
    }

    /// The entry program is over.
    fn finish(&mut self, how: Result<Value, Unwind>) {
        let outputs = self
            .instances
            .first()
            .map(|entry| entry.outputs.clone())
            .unwrap_or_default();
        let program = self
            .instances
            .first()
            .and_then(|entry| self.code.bundle.programs.get(entry.program));
        let declared = !outputs.is_empty() || program.is_some_and(|program| !program.outputs.is_empty());
        let (status, result, error): (_, Option<Value>, Option<Arc<ErrorValue>>) = match how {
            // Null is no result: there is nothing to print or to hand on.
            Ok(Value::Null) => (RunStatus::Completed, None, None),
            Ok(value) => (RunStatus::Completed, (!declared).then_some(value), None),
            Err(Unwind::Return(value)) => (RunStatus::Completed, Some(value), None),
            Err(Unwind::Error(error)) => (RunStatus::Failed, None, Some(error)),
            Err(Unwind::Break) => (RunStatus::Completed, None, None),
            Err(Unwind::Cancel) => (RunStatus::Cancelled, None, None),
        };
        let error = error.map(|error| (*error).clone());
        self.done = Some(Completion {
            status,
            outputs,
            result,
            error,
        });
    }

    // ---- effects ----

    /// Issues an effect. Ids are unique in the run even where a bundle gives two nodes one id.
    pub(crate) fn issue(
        &mut self,
        owner: Option<StrandId>,
        cx: &Cx,
        node: NodeId,
        id: EffectId,
        effect: Effect,
    ) -> EffectId {
        let mut unique = id.clone();
        let mut ordinal = 1;
        while self.effects.contains_key(&unique) || self.past.contains_key(&hash(&unique)) {
            ordinal += 1;
            unique = format!("{id}#{ordinal}").into();
        }
        let n = self.code.node(node);
        let issued = Issued {
            id: unique.clone(),
            stmt: n.id.clone(),
            src: n.src,
            execution_id: self.execution_id(cx.scope),
            order: self.order,
            effect,
        };
        self.order += 1;
        let entry = Entry {
            state: EntryState::Pending,
            kind: effect_kind(&issued.effect),
            order: issued.order,
            owner,
            issued: Some(Box::new(issued.clone())),
        };
        self.open_scopes += usize::from(owner.is_none());
        self.effects.insert(unique.clone(), entry);
        self.out_effects.push(issued);
        unique
    }

    /// Takes an effect out of those that are open.
    fn forget(&mut self, id: &EffectId, how: Past) -> Option<Entry> {
        let entry = self.effects.swap_remove(id)?;
        self.past.insert(hash(id), how);
        // Ten thousand at once are rare; their room is given back when few are left.
        if self.effects.capacity() > 64 && self.effects.len() < self.effects.capacity() / 4 {
            self.effects.shrink_to(self.effects.len() * 2);
        }
        Some(entry)
    }

    fn deliver(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Cancel => self.cancel_run(),
            Incoming::Deadline(scope) => self.deadline_passed(&scope),
            Incoming::Outcome(id, outcome) => {
                // One that was cancelled meanwhile is gone.
                let Some(entry) = self.forget(&id, Past::Done) else {
                    return;
                };
                match entry.owner {
                    None => {
                        self.open_scopes -= 1;
                        self.scope_stopped(&id);
                    }
                    Some(owner) => self.answered(owner, &id, *outcome),
                }
            }
        }
    }

    /// Hands an outcome to the strand that waits for it.
    fn answered(&mut self, owner: StrandId, id: &EffectId, outcome: Outcome) {
        let Some(mut s) = self.strands.remove(&owner) else {
            return;
        };
        let Some(Kont { cx, what }) = s.stack.pop() else {
            return;
        };
        s.cx = cx;
        s.control = match what {
            What::Session(state) if state.sleeping => {
                self.emit(Event::SleepFinished {
                    effect: id.clone(),
                    end: End::Ok,
                });
                self.try_session(&mut s, state)
            }
            What::Session(state) => self.session_answered(&mut s, state, id, outcome),
            What::Judge { node } => self.judge_answered(&mut s, node, id, outcome),
            What::Choice { node, labels } => self.choice_answered(&mut s, node, &labels, id, outcome),
            What::Input {
                node,
                prompt,
                options,
            } => self.input_answered(&mut s, node, (prompt, options), id, outcome),
            What::Task(state) => self.decode_answered(&mut s, state, id, outcome),
            // No other continuation waits for an effect; leaving it is the way to end its events.
            other => {
                s.stack.push(Kont {
                    cx: s.cx.clone(),
                    what: other,
                });
                Control::Unwind(Unwind::Cancel)
            }
        };
        self.wake(s);
    }

    /// Asks for content that a task needs.
    pub(crate) fn ask_content(&mut self, s: &mut Strand, mut state: Box<TaskState>, stop: Stop) -> Control {
        let node = state.task.node();
        let request = match stop {
            Stop::Need(request) => *request,
            stop => return self.stopped(stop, node),
        };
        let nth = state.memo.len();
        let what = match &state.task {
            Task::Truth(_) | Task::AsTruth(..) => "truth",
            Task::StageItems(_, stage, _) => &format!("items{stage}"),
            Task::Chunks(_, stage, ..) => &format!("size{stage}"),
            Task::Value(_) | Task::Construct(_) => "decode",
        };
        let mut id = format!("{}:{what}", self.id_at(&s.cx, node));
        if nth > 0 {
            id.push_str(&(nth + 1).to_string());
        }
        state.asked = Some(request.clone());
        let effect = Effect::Decode(Box::new(request));
        let id = self.issue(Some(s.id), &s.cx, node, id.into(), effect);
        let at = self.place(&s.cx, node);
        self.emit(Event::DecodeStarted {
            at,
            effect: id.clone(),
        });
        s.push(What::Task(state));
        Control::Effect(id)
    }

    fn decode_answered(
        &mut self,
        s: &mut Strand,
        mut state: Box<TaskState>,
        id: &EffectId,
        outcome: Outcome,
    ) -> Control {
        let node = state.task.node();
        let failed = |machine: &mut Machine, kind, message: String| {
            machine.emit(Event::DecodeFinished {
                effect: id.clone(),
                end: End::Failed,
            });
            machine.raise(node, kind, message)
        };
        let value = match outcome {
            Outcome::Decoded { value } => value,
            Outcome::Failed(Failure { kind, message, .. }) => return failed(self, kind, message),
            _ => return failed(self, ErrorKind::Type, "the content was not decoded".into()),
        };
        let Some(request) = state.asked.take() else {
            return Control::Value(value);
        };
        let fits = match &request.target {
            DecodeTarget::List => matches!(value, Value::List(_)),
            DecodeTarget::Record(_) => matches!(value, Value::Record(_)),
            DecodeTarget::Number => matches!(value, Value::Number(_)),
            DecodeTarget::Bool | DecodeTarget::Equals(_) | DecodeTarget::IsEmpty => {
                matches!(value, Value::Bool(_))
            }
            DecodeTarget::Json | DecodeTarget::Memory(_) => matches!(value, Value::Text(_) | Value::Null),
        };
        if !fits {
            let message = format!(
                "the content could not be read as {}",
                target_word(&request.target)
            );
            return failed(self, ErrorKind::Type, message);
        }
        self.emit(Event::DecodeFinished {
            effect: id.clone(),
            end: End::Ok,
        });
        state.memo.push((request, value));
        self.perform_task(s, state)
    }

    /// Marks an effect as cancelled and ends its event. An answer that is in the mailbox but was not delivered yet comes
    /// too late as well: whether it was handed in before or after this step makes no difference.
    pub(crate) fn drop_effect(&mut self, id: &EffectId) {
        let Some(entry) = self.forget(id, Past::Cancelled) else {
            return;
        };
        let effect = id.clone();
        let end = End::Cancelled;
        let event = match entry.kind {
            "session" => {
                let usage = Usage::default();
                Event::SessionFinished {
                    effect,
                    end,
                    summary: "cancelled".into(),
                    usage,
                }
            }
            "judge" => Event::JudgeFinished {
                effect,
                end,
                verdict: None,
            },
            "decode" => Event::DecodeFinished { effect, end },
            "input" => Event::InputFinished { effect, end },
            "sleep" => Event::SleepFinished { effect, end },
            _ => return,
        };
        self.emit(event);
    }
}

/// The word for an effect's kind, as in the journal.
pub(crate) fn effect_kind(effect: &Effect) -> &'static str {
    match effect {
        Effect::Session(_) => "session",
        Effect::Judge(_) => "judge",
        Effect::Decode(_) => "decode",
        Effect::Input(_) => "input",
        Effect::Sleep(_) => "sleep",
        Effect::CancelScope(_) => "cancel_scope",
    }
}

fn outcome_kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Session(_) => "session",
        Outcome::Failed(_) => "failed",
        Outcome::Verdict(_) => "verdict",
        Outcome::Decoded { .. } => "decoded",
        Outcome::Input { .. } => "input",
        Outcome::Slept => "slept",
        Outcome::Cancelled => "cancelled",
    }
}

fn target_word(target: &DecodeTarget) -> &'static str {
    match target {
        DecodeTarget::List => "a list",
        DecodeTarget::Record(_) => "a record",
        DecodeTarget::Number => "a number",
        DecodeTarget::Bool | DecodeTarget::Equals(_) | DecodeTarget::IsEmpty => "a truth value",
        DecodeTarget::Json | DecodeTarget::Memory(_) => "text",
    }
}
