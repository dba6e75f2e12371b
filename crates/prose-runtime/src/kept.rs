//! What a changed program keeps of the run so far: the answers to questions that it asks in the same places.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use prose_model::{CancelWhat, Digest, EffectId, Issued, JournalRecord, Outcome, RecordBody};

use crate::driver::Driver;
use crate::log;
use crate::replay::{Memories, RecordedIssue, StartedBefore};
use crate::request::RunError;

/// The records from before a change, by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    asked: HashMap<(EffectId, Digest), Asked>,
    /// Questions of the changed program that have an answer, the oldest answer first.
    ready: BinaryHeap<Reverse<(u64, EffectId)>>,
}

/// A question that was asked before.
#[derive(Debug, Default)]
struct Asked {
    memory: Option<Digest>,
    started: Option<StartedBefore>,
    /// Number of the record, its time, and the answer.
    answer: Option<(u64, String, Outcome)>,
}

impl Kept {
    /// Takes in the records before the change.
    pub(crate) fn new(records: &[JournalRecord]) -> Kept {
        let mut asked: HashMap<(EffectId, Digest), Asked> = HashMap::new();
        // A place may have asked several questions, when the program was changed before.
        let mut latest: HashMap<&EffectId, &Digest> = HashMap::new();
        for record in records {
            match &record.body {
                RecordBody::Issued { id, hash, memory, .. } => {
                    latest.insert(id, hash);
                    asked.entry((id.clone(), hash.clone())).or_default().memory = memory.clone();
                }
                RecordBody::Started {
                    id,
                    lease,
                    backend,
                    handle,
                } => {
                    let question = latest.get(id).map(|hash| (id.clone(), (*hash).clone()));
                    if let Some(asked) = question.and_then(|question| asked.get_mut(&question)) {
                        asked.started = Some(StartedBefore {
                            lease: *lease,
                            backend: backend.clone(),
                            handle: handle.clone(),
                        });
                    }
                }
                RecordBody::Outcome { id, outcome, .. } => {
                    let question = latest.get(id).map(|hash| (id.clone(), (*hash).clone()));
                    if let Some(asked) = question.and_then(|question| asked.get_mut(&question)) {
                        asked.answer = Some((record.seq, record.ts.clone(), outcome.clone()));
                    }
                }
                _ => {}
            }
        }
        Kept {
            asked,
            ready: BinaryHeap::new(),
        }
    }
}

impl Driver {
    /// Replays the records from before the program was changed: what the changed program asks as before is answered
    /// as before, in the order of then.
    pub(crate) fn replay_changed(
        &mut self,
        records: &[JournalRecord],
        memories: &mut Memories,
    ) -> Result<(), RunError> {
        self.kept = Some(Kept::new(records));
        for record in records {
            if let RecordBody::Input { name, value } = &record.body {
                self.supplied.insert(name.clone(), value.clone());
            }
        }
        if let Some(first) = records.first() {
            self.publisher.replay_at(&first.ts);
        }
        self.settle()?;
        for record in records {
            let RecordBody::Cancel { what } = &record.body else {
                continue;
            };
            self.answer_kept(record.seq, memories)?;
            self.publisher.replay_at(&record.ts);
            match what {
                CancelWhat::Run => self.replay_cancel(),
                CancelWhat::Deadline(scope) => self.replay_passed(scope),
            }
            self.settle()?;
        }
        self.answer_kept(u64::MAX, memories)?;
        self.kept = None;
        Ok(())
    }

    /// Whether a question of the changed program was asked before; then it counts as asked, and its answer as given.
    pub(crate) fn find_kept(&mut self, issued: &Issued) {
        let Some(kept) = &mut self.kept else {
            return;
        };
        let question = (issued.id.clone(), log::hash(&issued.effect));
        let Some(asked) = kept.asked.get_mut(&question) else {
            return;
        };
        if let Some((seq, ..)) = &asked.answer {
            kept.ready.push(Reverse((*seq, issued.id.clone())));
        }
        let (started, memory) = (asked.started.take(), asked.memory.clone());
        let (id, hash) = question;
        self.recorded.insert(id.clone());
        self.recovered.know(id, RecordedIssue { hash, memory }, started);
    }

    /// Gives the answers from before the record `until`, as long as there are any that are asked for.
    fn answer_kept(&mut self, until: u64, memories: &mut Memories) -> Result<(), RunError> {
        loop {
            let Some(kept) = &mut self.kept else {
                return Ok(());
            };
            let id = match kept.ready.peek() {
                Some(Reverse((seq, _))) if *seq < until => match kept.ready.pop() {
                    Some(Reverse((_, id))) => id,
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            let Some(issued) = self.open.get(&id) else {
                // The program has cancelled it meanwhile.
                continue;
            };
            let question = (id.clone(), log::hash(&issued.effect));
            let answer = kept
                .asked
                .get_mut(&question)
                .and_then(|asked| asked.answer.take());
            if let Some((_, ts, outcome)) = answer {
                self.publisher.replay_at(&ts);
                self.replay_answer(&id, &outcome, memories)?;
            }
        }
    }
}
