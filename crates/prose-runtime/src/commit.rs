//! From what tasks bring back to what the machine is told: outcomes that have arrived together are appended to the
//! journal, put on disk with one sync, then acted on in their order.

use prose_model::{Decision, Effect, EffectId, ErrorKind, Issued, Outcome, RecordBody};

use crate::driver::{Driver, outcome_usage};
use crate::perform::TaskResult;
use crate::request::RunError;
use crate::timeline::Next;

/// So many outcomes share a sync at most: those behind have to wait for all before them.
const TOGETHER: usize = 256;

/// An outcome in the journal.
struct Journaled {
    issued: Issued,
    outcome: Outcome,
    /// Whether it has to be on disk before the machine sees it.
    durable: bool,
}

impl Driver {
    /// Answers an effect, and those whose answers have arrived meanwhile.
    pub(crate) fn answers(&mut self, id: EffectId, result: TaskResult) -> Result<(), RunError> {
        let mut together = Vec::new();
        let mut next = Some((id, result));
        while let Some((id, result)) = next.take() {
            // A person and a task may both have answered a question.
            if !together.iter().any(|other: &Journaled| other.issued.id == id) {
                together.extend(self.journal(&id, result)?);
            }
            if together.len() < TOGETHER
                && let Some(Next::Answer(id, result)) = self.timeline.pop_with()
            {
                next = Some((id, result));
            }
        }
        if together.iter().any(|outcome| outcome.durable) {
            self.log.sync()?;
        }
        for outcome in together {
            self.act(outcome)?;
        }
        self.start_queued()
    }

    /// Appends the outcome to the journal; none when there is nothing to tell the machine.
    fn journal(&mut self, id: &EffectId, result: TaskResult) -> Result<Option<Journaled>, RunError> {
        let Some(issued) = self.open.get(id).cloned() else {
            return Ok(None);
        };
        let is_pure = matches!(result, TaskResult::Pure(_));
        let outcome = match result {
            TaskResult::Session {
                reply, reattached, ..
            } => self.finish_session(&issued, *reply, reattached)?,
            TaskResult::Outcome(outcome) => *outcome,
            TaskResult::Reading(reading) => {
                // Its record has no place for what it cost.
                self.spend(id, reading.usage)?;
                self.check_priced(&reading.usage);
                Outcome::Decoded { value: reading.value }
            }
            TaskResult::Pure(value) => Outcome::Decoded { value: *value },
            // Both are dealt with before anything is put on the timeline.
            TaskResult::NoAnswer | TaskResult::Lost => return Ok(None),
        };
        if let Outcome::Failed(failure) = &outcome
            && failure.kind == ErrorKind::Budget
            && matches!(
                issued.effect,
                Effect::Session(_) | Effect::Judge(_) | Effect::Decode(_)
            )
            && !self.budget.is_none()
            && !self.cancelled
        {
            // Stopped at what was left: the program does not see it, and a larger budget asks again.
            self.spend(id, failure.usage)?;
            self.exhausted = true;
            self.release(id);
            self.held.push(issued);
            return Ok(None);
        }
        let outcome = self.stored(self.hidden(outcome))?;
        self.record(&issued, None)?;
        for update in self.buffered(id) {
            self.publish_update(id, update);
        }
        self.publish_rest(id);
        // What is simulated can be had again for nothing and comes out the same, so that a sync now and then is enough;
        // memory outlives the run, and what it holds must not be missing from the journal.
        let remembered = matches!(&outcome, Outcome::Session(session) if session.memory.is_some());
        let durable = !is_pure && (!self.capabilities.virtual_time || remembered);
        self.log.append(RecordBody::Outcome {
            id: id.clone(),
            lease: self.run.lease,
            outcome: outcome.clone(),
        })?;
        Ok(Some(Journaled {
            issued,
            outcome,
            durable,
        }))
    }

    /// Tells the machine. An outcome whose effect one before it has cancelled is paid for and changes nothing, as when
    /// the journal is replayed.
    fn act(&mut self, journaled: Journaled) -> Result<(), RunError> {
        let Journaled { issued, outcome, .. } = journaled;
        let id = &issued.id;
        let usage = outcome_usage(&outcome);
        self.usage.add(&usage);
        self.check_priced(&usage);
        if self.open.shift_remove(id).is_none() {
            return Ok(());
        }
        // An id is issued once; which ones have a record matters only as long as they are open.
        self.recorded.remove(id);
        self.questions.close(id);
        self.remember(&issued, &outcome);
        self.project_memory(id, &outcome);
        self.release(id);
        self.machine
            .resolve(id, outcome)
            .map_err(|error| RunError::Engine(error.to_string()))?;
        self.settle()
    }

    /// The outcome without secrets. What a session gave was looked through when it was read.
    fn hidden(&self, mut outcome: Outcome) -> Outcome {
        let redactor = &self.setup.redactor;
        if redactor.is_empty() {
            return outcome;
        }
        match &mut outcome {
            Outcome::Failed(failure) => redactor.redact_in(&mut failure.message),
            Outcome::Decoded { value } | Outcome::Input { value } => {
                *value = redactor.redact_value(std::mem::take(value));
            }
            Outcome::Verdict(verdict) => {
                redactor.redact_in(&mut verdict.reason);
                match &mut verdict.decision {
                    Decision::Value(value) => *value = redactor.redact_value(std::mem::take(value)),
                    Decision::Question { prompt, options } => {
                        redactor.redact_in(prompt);
                        options.iter_mut().for_each(|option| redactor.redact_in(option));
                    }
                    _ => {}
                }
            }
            Outcome::Session(_) | Outcome::Slept | Outcome::Cancelled => {}
        }
        outcome
    }

    /// The outcome with every large text in the value store, on disk before the record that names it.
    fn stored(&self, outcome: Outcome) -> Result<Outcome, RunError> {
        let values = &self.run.values;
        Ok(match outcome {
            Outcome::Decoded { value } => Outcome::Decoded {
                value: values.externalize(&value)?,
            },
            Outcome::Input { value } => Outcome::Input {
                value: values.externalize(&value)?,
            },
            Outcome::Verdict(mut verdict) => {
                if let Decision::Value(value) = &verdict.decision {
                    verdict.decision = Decision::Value(values.externalize(value)?);
                }
                Outcome::Verdict(verdict)
            }
            other => other,
        })
    }
}
