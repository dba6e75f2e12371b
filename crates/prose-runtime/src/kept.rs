//! What a changed program keeps of the run so far: the answers to questions that it asks in the same places.
//!
//! As far as these alone lead it, they are replayed. What was answered behind a question that is asked anew is put aside, and
//! taken when the program comes to ask it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, CancelWhat, DecodeTarget, Digest, Effect, EffectId, ErrorKind, Issued, JournalRecord, Outcome,
    RecordBody, Usage, Value,
};
use prose_vm::{Machine, StepState};

use crate::log;

/// The records of a run, the first `changed` of which are from before its program was changed, as they would be had the
/// changed program asked what it has in common with the one before. The rest of what was asked then is left out.
pub(crate) fn kept<'a>(
    bundle: &Arc<Bundle>,
    inputs: &IndexMap<String, Value>,
    records: &'a [JournalRecord],
    changed: usize,
) -> Cow<'a, [JournalRecord]> {
    kept_and_aside(bundle, inputs, records, changed).0
}

/// The same, and the answers that are put aside.
pub(crate) fn kept_and_aside<'a>(
    bundle: &Arc<Bundle>,
    inputs: &IndexMap<String, Value>,
    records: &'a [JournalRecord],
    changed: usize,
) -> (Cow<'a, [JournalRecord]>, Aside) {
    let (before, after) = records.split_at(changed.min(records.len()));
    if before.is_empty() {
        return (Cow::Borrowed(after), Aside::default());
    }
    let mut keeping = Keeping::new(
        Machine::start(bundle.clone(), inputs.clone()),
        before,
        retried(before),
    );
    keeping.settle();
    for record in before {
        let RecordBody::Cancel { what } = &record.body else {
            continue;
        };
        keeping.answer(record.seq);
        match what {
            CancelWhat::Run => keeping.machine.cancel(),
            CancelWhat::Deadline(scope) if keeping.issued.contains(scope) => keeping.machine.deadline(scope),
            CancelWhat::Deadline(_) => continue,
        }
        keeping.kept.push(record.clone());
        keeping.settle();
    }
    keeping.answer(u64::MAX);
    keeping.kept.extend_from_slice(after);
    let aside = Aside::of(keeping.asked);
    (Cow::Owned(keeping.kept), aside)
}

/// Answers of a run so far to questions that its changed program has not come to yet.
#[derive(Debug, Default)]
pub(crate) struct Aside(HashMap<Question, Outcome>);

impl Aside {
    /// Failures are no answers to put aside: to ask again is better.
    fn of(asked: HashMap<Question, Vec<&JournalRecord>>) -> Aside {
        let answered = |records: Vec<&JournalRecord>| {
            records.into_iter().rev().find_map(|record| match &record.body {
                RecordBody::Outcome { outcome, .. } => Some(outcome.clone()),
                _ => None,
            })
        };
        let counts = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Session(_) | Outcome::Verdict(_) | Outcome::Decoded { .. } | Outcome::Input { .. }
            )
        };
        Aside(
            asked
                .into_iter()
                .filter_map(|(question, records)| Some((question, answered(records).filter(counts)?)))
                .collect(),
        )
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The answer to a question that is asked now, without what it cost: that was counted when it came. What a session answers
    /// from a memory depends on what the memory holds by now.
    pub(crate) fn take(&mut self, issued: &Issued) -> Option<Outcome> {
        if self.0.is_empty() || remembers(&issued.effect) {
            return None;
        }
        let question = |hash| (issued.id.clone(), hash);
        let mut outcome = match self.0.remove(&question(log::hash(&issued.effect))) {
            Some(outcome) => outcome,
            None => self.0.remove(&question(log::older_hash(&issued.effect)))?,
        };
        match &mut outcome {
            Outcome::Session(session) => session.usage = Usage::default(),
            Outcome::Verdict(verdict) => verdict.usage = Usage::default(),
            _ => {}
        }
        Some(outcome)
    }
}

fn remembers(effect: &Effect) -> bool {
    match effect {
        Effect::Session(request) => {
            request.memory.is_some() || request.context.iter().any(|item| item.memory_of.is_some())
        }
        Effect::Decode(request) => matches!(request.target, DecodeTarget::Memory(_)),
        _ => false,
    }
}

/// How many questions have an answer, counted once however often they were asked.
pub(crate) fn answers(records: &[JournalRecord]) -> usize {
    let mut latest: HashMap<&EffectId, &Digest> = HashMap::new();
    let mut answered: HashSet<(&EffectId, Option<&Digest>)> = HashSet::new();
    for record in records {
        match &record.body {
            RecordBody::Issued { id, hash, .. } => {
                latest.insert(id, hash);
            }
            RecordBody::Outcome { id, outcome, .. }
                if !matches!(outcome, Outcome::Slept | Outcome::Cancelled) =>
            {
                answered.insert((id, latest.get(id).copied()));
            }
            _ => {}
        }
    }
    answered.len()
}

/// The session that a try belongs to.
fn session_of(id: &EffectId) -> &str {
    let id = id.as_str();
    match id.rsplit_once('~') {
        Some((session, number)) if number.bytes().all(|it| it.is_ascii_digit()) => session,
        _ => id,
    }
}

/// How many of the records are from before it was last asked that what failed for a reason that passes be tried again.
fn retried(records: &[JournalRecord]) -> usize {
    let last = records.iter().rposition(|record| {
        matches!(
            &record.body,
            RecordBody::Program {
                retry_failed: true,
                ..
            }
        )
    });
    last.map_or(0, |at| at + 1)
}

/// Whether an outcome is a failure that may not come again: it says nothing about what was asked.
pub(crate) fn passes(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(failure) => matches!(
            failure.kind,
            ErrorKind::Backend | ErrorKind::Timeout | ErrorKind::Budget
        ),
        _ => false,
    }
}

/// Whether a value that was given was taken for an answer later.
fn is_used(given: &Value, later: &[JournalRecord]) -> bool {
    later
        .iter()
        .any(|record| matches!(&record.body, RecordBody::Outcome { outcome: Outcome::Input { value }, .. } if value == given))
}

/// A question: its place and what is asked.
type Question = (EffectId, Digest);

struct Keeping<'a> {
    machine: Machine,
    /// The records about each question: issued, started, answered.
    asked: HashMap<Question, Vec<&'a JournalRecord>>,
    open: HashMap<EffectId, Digest>,
    issued: HashSet<EffectId>,
    /// Records that fit the changed program as far as it is, by number.
    ready: BinaryHeap<Reverse<(u64, Option<Question>)>>,
    by_number: HashMap<u64, &'a JournalRecord>,
    kept: Vec<JournalRecord>,
}

impl<'a> Keeping<'a> {
    fn new(machine: Machine, records: &'a [JournalRecord], retried: usize) -> Keeping<'a> {
        let mut keeping = Keeping {
            machine,
            asked: HashMap::new(),
            open: HashMap::new(),
            issued: HashSet::new(),
            ready: BinaryHeap::new(),
            by_number: HashMap::new(),
            kept: Vec::new(),
        };
        // What failed and was made good by a later try of the same session did not fail.
        let made_good: HashSet<&str> = records
            .iter()
            .filter_map(|record| match &record.body {
                RecordBody::Outcome {
                    id,
                    outcome: Outcome::Session(_),
                    ..
                } => Some(session_of(id)),
                _ => None,
            })
            .collect();
        // A place may have asked several questions, when the program was changed before.
        let mut latest: HashMap<&EffectId, &Digest> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            let id = match &record.body {
                RecordBody::Issued { id, hash, .. } => {
                    latest.insert(id, hash);
                    id
                }
                RecordBody::Started { id, .. } | RecordBody::Outcome { id, .. } => id,
                // What was given in answer to a question goes with that question: another one is to be asked.
                RecordBody::Input { value, .. } if is_used(value, &records[at..]) => continue,
                RecordBody::Header(_)
                | RecordBody::Lease { .. }
                | RecordBody::Input { .. }
                | RecordBody::Spent { .. }
                | RecordBody::Budget { .. } => {
                    keeping.by_number.insert(record.seq, record);
                    keeping.ready.push(Reverse((record.seq, None)));
                    continue;
                }
                RecordBody::Child { .. }
                | RecordBody::Program { .. }
                | RecordBody::Cancel { .. }
                | RecordBody::End { .. } => continue,
            };
            if let Some(hash) = latest.get(id) {
                let question = (id.clone(), (*hash).clone());
                if at < retried
                    && let RecordBody::Outcome { outcome, .. } = &record.body
                    && passes(outcome)
                    && !made_good.contains(session_of(id))
                {
                    // The session that failed must not be found again either, and is asked with what is remembered by now.
                    keeping.asked.remove(&question);
                    continue;
                }
                keeping.by_number.insert(record.seq, record);
                let own = keeping.asked.entry(question).or_default();
                if matches!(record.body, RecordBody::Outcome { .. }) {
                    // Of several answers to one question the last counts.
                    own.retain(|record| !matches!(record.body, RecordBody::Outcome { .. }));
                }
                own.push(record);
            }
        }
        keeping
    }

    /// Steps the machine until it waits, and notes what it asks as before.
    fn settle(&mut self) {
        loop {
            let step = self.machine.step();
            for issued in &step.effects {
                self.opened(issued);
            }
            if !matches!(step.state, StepState::Running) {
                return;
            }
        }
    }

    fn opened(&mut self, issued: &Issued) {
        let mut question = (issued.id.clone(), log::hash(&issued.effect));
        if !self.asked.contains_key(&question) {
            let older = (issued.id.clone(), log::older_hash(&issued.effect));
            if self.asked.contains_key(&older) {
                question = older;
            }
        }
        self.issued.insert(issued.id.clone());
        self.open.insert(question.0.clone(), question.1.clone());
        if let Effect::CancelScope(request) = &issued.effect {
            for id in &request.effects {
                self.open.remove(id);
            }
        }
        for record in self.asked.remove(&question).unwrap_or_default() {
            self.ready.push(Reverse((record.seq, Some(question.clone()))));
        }
    }

    /// Keeps the records before the record `until` that fit, in their order, and gives the machine the answers.
    fn answer(&mut self, until: u64) {
        while let Some(Reverse((seq, _))) = self.ready.peek()
            && *seq < until
            && let Some(Reverse((seq, question))) = self.ready.pop()
        {
            let Some(record) = self.by_number.get(&seq).copied() else {
                continue;
            };
            if let RecordBody::Outcome { id, outcome, .. } = &record.body {
                // The changed program may have cancelled it meanwhile.
                let open = question
                    .as_ref()
                    .is_some_and(|(id, hash)| self.open.get(id) == Some(hash));
                if !open || !self.resolve(id, outcome) {
                    continue;
                }
            }
            self.kept.push(record.clone());
            self.settle();
        }
    }

    fn resolve(&mut self, id: &EffectId, outcome: &Outcome) -> bool {
        self.open.remove(id);
        self.machine.resolve(id, outcome.clone()).is_ok()
    }
}
