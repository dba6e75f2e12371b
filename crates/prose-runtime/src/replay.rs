//! Rebuilding a run from its journal: the machine is fed the recorded outcomes in order, and nothing that has one is
//! asked again.

use std::collections::HashMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use prose_agents::process;
use prose_model::{
    CancelWhat, Digest, Effect, EffectId, Issued, JournalRecord, MemoryMode, Name, Outcome, ProcessId,
    RecordBody, Segment, Value,
};
use prose_state::AgentMemory;

use crate::budget::Budget;
use crate::dispatch::{due_of, wait_ms};
use crate::driver::{Driver, outcome_usage};
use crate::kept::{answers, kept_and_aside};
use crate::log;
use crate::request::RunError;

/// What the journal says of effects that may have to be performed again.
#[derive(Debug, Default)]
pub(crate) struct RecoveredEffects {
    issued: HashMap<EffectId, RecordedIssue>,
    started: HashMap<EffectId, StartedBefore>,
    /// When a sleep is over, or another effect that takes its time, in virtual time.
    sleeps: HashMap<EffectId, u64>,
    /// Deadlines that were on the clock, with the scope's issue order.
    deadlines: HashMap<EffectId, (u64, Option<u64>)>,
}

#[derive(Debug)]
struct RecordedIssue {
    hash: Digest,
    memory: Option<Digest>,
}

/// A session that an earlier process started.
#[derive(Debug)]
pub(crate) struct StartedBefore {
    pub(crate) lease: u64,
    pub(crate) backend: String,
    pub(crate) handle: Option<serde_json::Value>,
}

impl RecoveredEffects {
    /// The version of its memory that a session was issued with.
    pub(crate) fn memory(&self, id: &EffectId) -> Option<&Digest> {
        self.issued.get(id)?.memory.as_ref()
    }
    pub(crate) fn started(&self, id: &EffectId) -> Option<&StartedBefore> {
        self.started.get(id)
    }
    /// When its outcome is due in virtual time, if that was settled before.
    pub(crate) fn due(&self, id: &EffectId) -> Option<u64> {
        let session = || self.started.get(id)?.handle.as_ref().and_then(due_of);
        self.sleeps.get(id).copied().or_else(session)
    }
}

/// The last session of every memory, by its folder.
type Memories = HashMap<PathBuf, LastSession>;

/// The last session of a memory.
struct LastSession {
    place: AgentMemory,
    read: Option<Digest>,
    new: Digest,
    segment: Option<Segment>,
}

impl Driver {
    /// Replays the records of earlier processes, then begins what they left undone. The first `changed` of them are from
    /// before the program was changed. `supplied` are values for inputs that came with this resume.
    pub(crate) fn replay(
        &mut self,
        records: &[JournalRecord],
        changed: usize,
        supplied: IndexMap<Name, Value>,
        raised: Budget,
    ) -> Result<(), RunError> {
        self.replaying = true;
        let mut memories = Memories::new();
        // Also what a changed program has no use for was paid for.
        for record in records {
            match &record.body {
                RecordBody::Outcome { outcome, .. } => self.usage.add(&outcome_usage(outcome)),
                RecordBody::Spent { usage, .. } => self.usage.add(usage),
                _ => {}
            }
        }
        let children: Vec<(EffectId, ProcessId)> = records
            .iter()
            .filter_map(|record| match &record.body {
                RecordBody::Child { id, process, .. } => Some((id.clone(), process.clone())),
                _ => None,
            })
            .collect();
        let accepted = changed > 0 && changed == records.len();
        let before = records;
        let (records, aside) = kept_and_aside(&self.run.bundle, &self.run.header.inputs, records, changed);
        self.aside = aside;
        if accepted {
            self.tell_kept(before, &records);
        }
        for record in records.iter() {
            self.publisher.replay_at(&record.ts);
            match &record.body {
                RecordBody::Header(_) => self.settle()?,
                RecordBody::Lease { .. }
                | RecordBody::Child { .. }
                | RecordBody::Program { .. }
                | RecordBody::End { .. } => {}
                RecordBody::Input { name, value } => {
                    self.supplied.insert(name.clone(), value.clone());
                }
                RecordBody::Issued { id, hash, memory, .. } => {
                    self.replay_issued(id, hash, memory.as_ref())?;
                    // What the memory held before was put away, or will be when this session starts again.
                    if let Some(place) = self.begins_afresh(id) {
                        memories.remove(place.dir());
                    }
                }
                RecordBody::Started {
                    id,
                    lease,
                    backend,
                    handle,
                } => {
                    let started = StartedBefore {
                        lease: *lease,
                        backend: backend.clone(),
                        handle: handle.clone(),
                    };
                    self.recovered.started.insert(id.clone(), started);
                }
                RecordBody::Spent { .. } => {}
                RecordBody::Budget { usd, tokens } => {
                    self.budget = self.budget.or_of(Budget {
                        usd: *usd,
                        tokens: *tokens,
                    });
                }
                RecordBody::Outcome { id, outcome, .. } => {
                    self.replay_answer(id, outcome, &mut memories)?;
                }
                RecordBody::Cancel {
                    what: CancelWhat::Run,
                } => {
                    self.replay_cancel();
                    self.settle()?;
                }
                RecordBody::Cancel {
                    what: CancelWhat::Deadline(scope),
                } => {
                    self.replay_passed(scope);
                    self.settle()?;
                }
            }
        }
        self.end_children(children);
        self.publisher.replay_done(changed > 0);
        self.replaying = false;
        self.budget = self.budget.or_of(raised);
        self.supplied.extend(supplied);
        for last in memories.into_values() {
            self.repair(&last);
        }
        if self.completion.is_none() {
            self.begin_recovered()?;
        }
        Ok(())
    }

    /// Says what a program that was just accepted keeps of the answers, before anything is asked anew.
    fn tell_kept(&mut self, before: &[JournalRecord], kept: &[JournalRecord]) {
        let (all, still, aside) = (answers(before), answers(kept), self.aside.len());
        let anew = all.saturating_sub(still).saturating_sub(aside);
        let message = match (all, anew, aside) {
            (0, ..) => return,
            (_, 0, 0) => format!("all answers so far count ({all})"),
            (_, _, 0) => format!(
                "of {all} answers so far {still} count; what the others were about is asked anew, where the program still asks it"
            ),
            _ => format!(
                "of {all} answers so far {still} count, {aside} more where the program comes to ask the same; what the others were about is asked anew"
            ),
        };
        self.publisher.notice("info", message);
    }

    /// The machine issued an effect while replaying.
    pub(crate) fn register(&mut self, issued: &Issued) {
        match &issued.effect {
            Effect::Sleep(request) => {
                if let Some(now) = self.timeline.now() {
                    self.recovered
                        .sleeps
                        .insert(issued.id.clone(), now.saturating_add(wait_ms(request)));
                }
            }
            Effect::CancelScope(request) => {
                for id in &request.effects {
                    self.open.shift_remove(id);
                    self.questions.close(id);
                }
                if request.finally {
                    let due = self.finally_due();
                    self.recovered
                        .deadlines
                        .insert(issued.id.clone(), (issued.order, due));
                }
            }
            Effect::Judge(_) | Effect::Decode(_) | Effect::Input(_) => {
                let delay = self.virtual_delay(issued);
                if let Some(now) = self.timeline.now().filter(|_| delay > 0) {
                    self.recovered
                        .sleeps
                        .insert(issued.id.clone(), now.saturating_add(delay));
                }
            }
            Effect::Session(_) => {}
        }
    }

    fn replay_issued(
        &mut self,
        id: &EffectId,
        hash: &Digest,
        memory: Option<&Digest>,
    ) -> Result<(), RunError> {
        // One that was cancelled or answered in the meantime is not open any more; its hash no longer matters.
        if let Some(issued) = self.open.get(id)
            && !log::asks(&issued.effect, hash)
        {
            return Err(self.diverged(format!(
                "the effect {id} asks for something else than the journal says"
            )));
        }
        self.recorded.insert(id.clone());
        let issue = RecordedIssue {
            hash: hash.clone(),
            memory: memory.cloned(),
        };
        if let Some(earlier) = self.recovered.issued.insert(id.clone(), issue)
            && earlier.hash != *hash
        {
            return Err(self.diverged(format!("the journal has two different effects {id}")));
        }
        Ok(())
    }

    /// The time of a scope's `finally` bodies was over.
    fn replay_passed(&mut self, scope: &EffectId) {
        if let Some((_, Some(due))) = self.recovered.deadlines.remove(scope) {
            self.timeline.advance_to(due);
        }
        self.replay_deadline(scope);
    }

    /// Gives the machine a recorded answer, and notes which memory it is the last of.
    fn replay_answer(
        &mut self,
        id: &EffectId,
        outcome: &Outcome,
        memories: &mut Memories,
    ) -> Result<(), RunError> {
        if let Some(last) = self.replay_outcome(id, outcome)? {
            memories.insert(last.place.dir().to_owned(), last);
        }
        Ok(())
    }

    fn replay_outcome(&mut self, id: &EffectId, outcome: &Outcome) -> Result<Option<LastSession>, RunError> {
        let Some(issued) = self.open.shift_remove(id) else {
            // It arrived together with one that cancelled it: then it was too late, and still is.
            if self.machine.resolve(id, outcome.clone()).is_ok() {
                return Ok(None);
            }
            return Err(self.diverged(format!(
                "the journal answers the effect {id}, which is not asked for"
            )));
        };
        if let Some(due) = self.recovered.due(id) {
            self.timeline.advance_to(due);
        }
        self.questions.close(id);
        self.remember(&issued, outcome);
        if let (Effect::Input(request), Outcome::Input { .. }) = (&issued.effect, outcome) {
            // Supplied values are used before anybody is asked.
            self.supplied.shift_remove(&request.name);
        }
        self.machine
            .resolve(id, outcome.clone())
            .map_err(|error| self.diverged(error.to_string()))?;
        self.settle()?;
        let (Effect::Session(request), Outcome::Session(session)) = (issued.effect, outcome) else {
            return Ok(None);
        };
        let place = self.memory_place(&request).ok().flatten();
        Ok(place.zip(session.memory.clone()).map(|(place, new)| LastSession {
            place,
            read: self.recovered.memory(id).cloned(),
            new,
            segment: session.segment.clone(),
        }))
    }

    /// The memory of a session that does not go on from what is there.
    fn begins_afresh(&self, id: &EffectId) -> Option<AgentMemory> {
        let Effect::Session(request) = &self.open.get(id)?.effect else {
            return None;
        };
        let fresh = request.memory.as_ref()?.mode == MemoryMode::Fresh;
        fresh.then(|| self.memory_place(request).ok().flatten()).flatten()
    }

    /// Ends the children of earlier processes, but for those of sessions that may be found again.
    fn end_children(&mut self, children: Vec<(EffectId, ProcessId)>) {
        let mut leftover = Vec::new();
        for (id, process) in children {
            let found_again = self.capabilities.reattach
                && self.open.contains_key(&id)
                && self
                    .recovered
                    .started(&id)
                    .is_some_and(|started| started.handle.is_some());
            if found_again {
                self.leftovers.entry(id).or_default().push(process);
            } else {
                leftover.push(process);
            }
        }
        for process in process::end(&leftover, self.setup.limits.cancel_grace) {
            let pid = process.pid;
            self.publisher.notice(
                "warning",
                format!("process {pid}, which a session of this run started, could not be ended"),
            );
        }
    }

    fn repair(&mut self, last: &LastSession) {
        let repaired = self.repair_memory(&last.place, last.read.as_ref(), &last.new, last.segment.as_ref());
        if let Err(error) = repaired {
            self.publisher.notice(
                "warning",
                format!("an agent's memory was not brought up to date: {error}"),
            );
        }
    }

    /// Performs what has no outcome, in issue order.
    fn begin_recovered(&mut self) -> Result<(), RunError> {
        for (scope, (order, due)) in std::mem::take(&mut self.recovered.deadlines) {
            self.arm_deadline(&scope, order, due);
        }
        let pending: Vec<Issued> = self.open.values().cloned().collect();
        for issued in pending {
            // An earlier one may have been a cancel scope that named it.
            if self.open.contains_key(&issued.id) {
                self.begin(issued)?;
            }
        }
        Ok(())
    }

    fn diverged(&self, reason: String) -> RunError {
        RunError::Diverged {
            run: self.run.id().clone(),
            reason,
        }
    }
}
