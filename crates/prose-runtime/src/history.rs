//! What happened in a run, told by its journal and its bundle: the machine is fed the recorded answers again and its
//! events are collected. Nothing on disk changes, and nothing is asked.

pub mod record;
pub mod report;
pub mod shape;

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, CancelWhat, Effect, EffectId, Event, Header, Issued, Name, Outcome, RecordBody, SourceRange,
    Value,
};
use prose_state::{RunDir, RunSummary, StoredRun, is_work, parse_ms, read_run};
use prose_vm::{Completion, Machine, StepState};

use crate::content::StoreContent;
use crate::dispatch::{due_of, wait_ms};
use crate::kept::kept;

/// A run's past.
pub struct History {
    /// Where it is.
    pub dir: RunDir,
    /// How it stands.
    pub summary: RunSummary,
    /// Its fixed facts, if they can be read.
    pub header: Option<Header>,
    /// What it executes, if that can be read.
    pub bundle: Option<Arc<Bundle>>,
    /// What the machine said, in order.
    pub events: Vec<PastEvent>,
    /// What was asked, in issue order.
    pub effects: IndexMap<EffectId, PastEffect>,
    /// How the program ended, if it did.
    pub completion: Option<Completion>,
    /// Values that were supplied for inputs after the start.
    pub supplied: Vec<(Name, Value)>,
    /// When a later process took the run up, in milliseconds since the start.
    pub resumed: Vec<u64>,
    /// Whether times are those of a simulation rather than of the clock.
    pub virtual_time: bool,
    /// When the last record was written, in milliseconds since the start.
    pub end_ms: u64,
    /// What is damaged or can't be told, a sentence each.
    pub problems: Vec<String>,
    content: StoreContent,
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct PastEvent {
    /// Milliseconds since the start, without the time in which no process worked on the run.
    pub at_ms: u64,
    /// What happened.
    pub event: Event,
}

/// An effect from its question to its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct PastEffect {
    /// The question.
    pub issued: Issued,
    /// When it was asked, in milliseconds since the start.
    pub asked_ms: u64,
    /// When a backend took it up last.
    pub started_ms: Option<u64>,
    /// When it was answered, how, and as which answer of the run, from 0.
    pub answer: Option<(u64, Outcome, usize)>,
    /// Whether it was stopped because its answer was not wanted any more.
    pub cancelled: bool,
    /// The answer that made the program ask; none for what it asked at its start.
    pub cause: Option<EffectId>,
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Location {
    /// The file, relative to the project root where possible.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Where a range begins.
pub fn location(bundle: &Bundle, range: SourceRange) -> Option<Location> {
    let file = bundle.files.get(range.file as usize)?;
    let before = file.text.as_bytes().get(..range.start as usize)?;
    let mut line = 1;
    let mut bytes = before.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => line += 1,
            b'\r' if bytes.peek() != Some(&&b'\n') => line += 1,
            _ => {}
        }
    }
    Some(Location {
        file: file.path.clone(),
        line,
    })
}

/// The present time, in milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    use prose_state::Clock as _;
    prose_state::SystemClock.now_ms()
}

/// Reads a run's past, as much of it as can be told.
pub fn history(dir: &RunDir) -> History {
    let StoredRun {
        dir,
        summary,
        header,
        bundle,
        changed,
        records,
        values,
        problems,
    } = read_run(dir);
    let records = match (&header, &bundle) {
        (Some(header), Some(bundle)) => kept(bundle, &header.inputs, &records, changed),
        _ => records.as_slice().into(),
    };
    let mut history = History {
        dir,
        summary,
        header,
        bundle,
        events: Vec::new(),
        effects: IndexMap::new(),
        completion: None,
        supplied: Vec::new(),
        resumed: Vec::new(),
        virtual_time: records.iter().any(|record| {
            matches!(&record.body, RecordBody::Started { handle: Some(handle), .. } if due_of(handle).is_some_and(|due| due > 0))
        }),
        end_ms: 0,
        problems,
        content: StoreContent(values),
    };
    if let (Some(header), Some(bundle)) = (&history.header, &history.bundle) {
        let machine = Machine::start(bundle.clone(), header.inputs.clone());
        Replay {
            history: &mut history,
            machine,
            now: 0,
            base: None,
            last: 0,
            due: IndexMap::new(),
            answers: 0,
            cause: None,
            unasked: Vec::new(),
            taken_up: None,
        }
        .all(&records);
    }
    history
}

struct Replay<'a> {
    history: &'a mut History,
    machine: Machine,
    /// Milliseconds since the start.
    now: u64,
    /// What is taken off a record's time.
    base: Option<i64>,
    /// Time of the last record.
    last: i64,
    /// When answers are due, in virtual time.
    due: IndexMap<EffectId, u64>,
    answers: usize,
    /// The answer that the machine goes on from.
    cause: Option<EffectId>,
    /// Answers to what was not asked.
    unasked: Vec<EffectId>,
    /// When a later process took the run up that has done nothing yet.
    taken_up: Option<u64>,
}

impl Replay<'_> {
    fn all(&mut self, records: &[prose_model::JournalRecord]) {
        for record in records {
            self.clock(record);
            if is_work(&record.body)
                && let Some(at) = self.taken_up.take()
            {
                self.history.resumed.push(at);
            }
            match &record.body {
                RecordBody::Header(_) => self.settle(),
                RecordBody::Lease { lease, .. } => {
                    // Counts when something comes of it.
                    self.taken_up = (*lease > 1).then_some(self.now);
                }
                RecordBody::Input { name, value } => {
                    self.history.supplied.push((name.clone(), value.clone()));
                }
                RecordBody::Issued { .. }
                | RecordBody::Program { .. }
                | RecordBody::Spent { .. }
                | RecordBody::Budget { .. }
                | RecordBody::Child { .. }
                | RecordBody::End { .. } => {}
                RecordBody::Started { id, handle, .. } => {
                    if let Some(due) = handle.as_ref().and_then(due_of) {
                        self.due.entry(id.clone()).or_insert(due);
                    }
                    if let Some(effect) = self.history.effects.get_mut(id) {
                        effect.started_ms = Some(self.now);
                    }
                }
                RecordBody::Outcome { id, outcome, .. } => {
                    if !self.answer(id, outcome) {
                        break;
                    }
                }
                RecordBody::Cancel {
                    what: CancelWhat::Run,
                } => {
                    self.cause = None;
                    self.machine.cancel();
                    self.settle();
                }
                RecordBody::Cancel {
                    what: CancelWhat::Deadline(scope),
                } => {
                    self.cause = Some(scope.clone());
                    self.machine.deadline(scope);
                    self.settle();
                }
            }
        }
        self.history.end_ms = self.now;
        if let Some(first) = self.unasked.first() {
            self.history.problems.push(format!(
                "{} of the journal's answers, from {first} on, belong to nothing that the program asks for; another version \
                 of the program or of prose wrote them, and they are not shown",
                self.unasked.len()
            ));
        }
    }

    fn clock(&mut self, record: &prose_model::JournalRecord) {
        let Some(at) = parse_ms(&record.ts) else { return };
        let base = self.base.get_or_insert(at);
        if matches!(&record.body, RecordBody::Lease { lease, .. } if *lease > 1) {
            *base += at.saturating_sub(self.last).max(0);
        }
        self.last = at.max(self.last);
        if !self.history.virtual_time {
            let elapsed = u64::try_from(at.saturating_sub(*base)).unwrap_or(0);
            self.now = elapsed.max(self.now);
        }
    }

    /// Whether the replay can go on.
    fn answer(&mut self, id: &EffectId, outcome: &Outcome) -> bool {
        if self.history.virtual_time
            && let Some(due) = self.due.get(id)
        {
            self.now = self.now.max(*due);
        }
        let known = self
            .history
            .effects
            .get_mut(id)
            .filter(|effect| effect.answer.is_none());
        let Some(effect) = known else {
            // The run was taken up with another program: the answer is to a question that is no longer asked.
            self.history.problems.push(format!(
                "the journal has an answer to {id}, which the program doesn't ask for"
            ));
            return true;
        };
        if effect.cancelled {
            // It arrived together with the answer that made the program cancel it, and was too late.
            return true;
        }
        effect.answer = Some((self.now, outcome.clone(), self.answers));
        self.answers += 1;
        if let Err(error) = self.machine.resolve(id, outcome.clone()) {
            self.history
                .problems
                .push(format!("the journal can't be followed any further: {error}"));
            return false;
        }
        self.cause = Some(id.clone());
        self.settle();
        true
    }

    fn settle(&mut self) {
        loop {
            let step = self.machine.step();
            let at_ms = self.now;
            self.history
                .events
                .extend(step.events.into_iter().map(|event| PastEvent {
                    at_ms,
                    event: event.event,
                }));
            for issued in step.effects {
                self.issued(issued);
            }
            match step.state {
                StepState::Running => {}
                StepState::Waiting => return,
                StepState::Done(completion) => {
                    self.history.completion = Some(completion);
                    return;
                }
            }
        }
    }

    fn issued(&mut self, issued: Issued) {
        match &issued.effect {
            Effect::Sleep(request) if self.history.virtual_time => {
                self.due
                    .insert(issued.id.clone(), self.now.saturating_add(wait_ms(request)));
            }
            Effect::CancelScope(request) => {
                for id in &request.effects {
                    if let Some(effect) = self.history.effects.get_mut(id) {
                        effect.cancelled = true;
                    }
                }
            }
            _ => {}
        }
        let effect = PastEffect {
            asked_ms: self.now,
            started_ms: None,
            answer: None,
            cancelled: false,
            cause: self.cause.clone(),
            issued,
        };
        self.history.effects.insert(effect.issued.id.clone(), effect);
    }
}

impl History {
    /// Reads content of this run.
    pub fn content(&self) -> &dyn prose_agents::Content {
        &self.content
    }

    /// Its values.
    pub fn values(&self) -> &prose_state::ValueStore {
        &self.content.0
    }

    /// Where a range of its sources begins.
    pub fn location(&self, range: SourceRange) -> Option<Location> {
        location(self.bundle.as_ref()?, range)
    }
}
