//! Events of a run from its journal: for an observer that has missed some, or that came late.

use std::collections::VecDeque;

use prose_model::{CancelWhat, EVENT_VERSION, Event, JournalRecord, Order, RecordBody, RunEvent, RunId};
use prose_state::{JournalTail, RunDir, RunState, read_run};
use prose_vm::{Machine, StepState};

use crate::kept::kept;
use crate::request::RunError;

/// The machine's events of a run in order, made anew from its journal. What was only streamed (text, tools, usage,
/// notices) is not in the journal and not among them. Nothing on disk changes and nothing is asked.
pub struct CatchUp {
    run_id: RunId,
    /// Records from before the program was changed, as far as they still count.
    kept: VecDeque<JournalRecord>,
    tail: JournalTail,
    machine: Machine,
    after: Option<u64>,
    ready: VecDeque<RunEvent>,
    done: bool,
}

impl CatchUp {
    /// From the event behind `after_seq` on, or from the first.
    pub(crate) fn new(dir: &RunDir, after_seq: Option<u64>) -> Result<CatchUp, RunError> {
        let stored = read_run(dir);
        let (Some(header), Some(bundle)) = (stored.header, stored.bundle) else {
            let reason = match stored.summary.state {
                RunState::Unreadable { reason } => reason,
                _ => stored.problems.join("; "),
            };
            return Err(RunError::Content(format!(
                "the events of the run can't be read: {reason}"
            )));
        };
        let mut tail = JournalTail::open(&dir.journal());
        let mut before = VecDeque::new();
        if stored.changed > 0 {
            let upto = stored.records.get(..stored.changed).unwrap_or_default();
            before = kept(&bundle, &header.inputs, upto, stored.changed)
                .into_owned()
                .into();
            for _ in 0..stored.changed {
                tail.read()?;
            }
        }
        Ok(CatchUp {
            run_id: header.run_id.clone(),
            kept: before,
            tail,
            machine: Machine::start(bundle, header.inputs),
            after: after_seq,
            ready: VecDeque::new(),
            done: false,
        })
    }

    /// The next event; none where the journal ends for now. While the run goes on there may be more later. Reads files.
    pub fn next_event(&mut self) -> Result<Option<RunEvent>, RunError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.done {
                return Ok(None);
            }
            let next = match self.kept.pop_front() {
                Some(record) => Some(record),
                None => self.tail.read()?,
            };
            let Some(record) = next else {
                return Ok(None);
            };
            match &record.body {
                RecordBody::Header(_) => {}
                RecordBody::Outcome { id, outcome, .. } => {
                    if self.machine.resolve(id, outcome.clone()).is_err() {
                        return Err(RunError::Diverged {
                            run: self.run_id.clone(),
                            reason: format!("the journal answers the effect {id}, which is not asked for"),
                        });
                    }
                }
                RecordBody::Cancel {
                    what: CancelWhat::Run,
                } => self.machine.cancel(),
                RecordBody::Cancel {
                    what: CancelWhat::Deadline(scope),
                } => self.machine.deadline(scope),
                RecordBody::Lease { .. }
                | RecordBody::Input { .. }
                | RecordBody::Issued { .. }
                | RecordBody::Started { .. }
                | RecordBody::Spent { .. }
                | RecordBody::Budget { .. }
                | RecordBody::Child { .. }
                | RecordBody::Program { .. }
                | RecordBody::End { .. } => continue,
            }
            self.settle(&record.ts);
        }
    }

    fn settle(&mut self, ts: &str) {
        loop {
            let step = self.machine.step();
            for event in step.events {
                if self.after.is_none_or(|after| event.seq > after) {
                    self.push(ts, event.seq, event.event);
                }
            }
            match step.state {
                StepState::Running => {}
                StepState::Waiting => return,
                StepState::Done(_) => {
                    self.done = true;
                    return;
                }
            }
        }
    }

    fn push(&mut self, ts: &str, seq: u64, event: Event) {
        self.ready.push_back(RunEvent {
            v: EVENT_VERSION,
            run_id: self.run_id.clone(),
            ts: ts.to_owned(),
            order: Order::Machine { seq },
            event,
        });
    }
}
