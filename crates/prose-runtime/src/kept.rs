//! What a changed program keeps of the run so far: the answers to questions that it asks in the same places.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Bundle, CancelWhat, Digest, Effect, EffectId, ErrorKind, Issued, JournalRecord, Outcome, RecordBody,
    Value,
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
    let (before, after) = records.split_at(changed.min(records.len()));
    if before.is_empty() {
        return Cow::Borrowed(after);
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
    Cow::Owned(keeping.kept)
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
        // A place may have asked several questions, when the program was changed before.
        let mut latest: HashMap<&EffectId, &Digest> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            let id = match &record.body {
                RecordBody::Issued { id, hash, .. } => {
                    latest.insert(id, hash);
                    id
                }
                RecordBody::Started { id, .. } | RecordBody::Outcome { id, .. } => id,
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
                {
                    // The session that failed must not be found again either.
                    if let Some(records) = keeping.asked.get_mut(&question) {
                        records.retain(|record| !matches!(record.body, RecordBody::Started { .. }));
                    }
                    continue;
                }
                keeping.by_number.insert(record.seq, record);
                keeping.asked.entry(question).or_default().push(record);
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
