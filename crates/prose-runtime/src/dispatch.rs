//! Beginning an effect: what each kind needs before a task performs it, or it is answered at once.

use std::sync::Arc;
use std::time::Duration;

use prose_agents::{CancelToken, Content, DecodeInput, JudgeInput, failure, plain_text};
use prose_model::{
    DecodeRequest, DecodeTarget, Digest, Effect, ErrorKind, Failure, Issued, JudgeRequest, Outcome,
    SleepRequest, Value,
};
use prose_state::digest_of;

use crate::content::{HiddenContent, inlined};
use crate::driver::{Driver, Task};
use crate::perform::{self, TaskResult};
use crate::questions::as_option;
use crate::request::RunError;
use crate::timeline::Next;

impl Driver {
    /// Takes in an effect that the machine issued, in issue order. A replay only registers it.
    pub(crate) fn issue(&mut self, issued: Issued) -> Result<(), RunError> {
        let observed = match &self.backend.observer {
            Some(observer) => observer.issued(&issued, &self.content),
            None => Ok(()),
        };
        self.open.insert(issued.id.clone(), issued.clone());
        if self.replaying {
            self.register(&issued);
            return Ok(());
        }
        match observed {
            Ok(()) => self.begin(issued),
            Err(failure) => {
                self.record(&issued, None)?;
                self.schedule(&issued, TaskResult::failed(failure));
                Ok(())
            }
        }
    }

    /// Performs an effect. Sessions only join the queue.
    pub(crate) fn begin(&mut self, issued: Issued) -> Result<(), RunError> {
        if let Some(outcome) = self.aside.take(&issued) {
            self.schedule(&issued, TaskResult::outcome(outcome));
            return Ok(());
        }
        match &issued.effect {
            Effect::Session(request) => return self.enqueue_session(&issued, request),
            Effect::Judge(_) if self.holds() => self.held.push(issued),
            Effect::Judge(request) => {
                self.record(&issued, None)?;
                self.begin_judge(&issued, request)?;
            }
            Effect::Decode(request) => {
                self.record(&issued, None)?;
                self.begin_decode(&issued, request)?;
            }
            Effect::Input(_) => {
                self.record(&issued, None)?;
                self.begin_input(&issued)?;
            }
            Effect::Sleep(request) => {
                self.record(&issued, None)?;
                self.begin_sleep(&issued, request);
            }
            Effect::CancelScope(request) => {
                self.record(&issued, None)?;
                if request.finally {
                    let due = self.finally_due();
                    self.arm_deadline(&issued.id, issued.order, due);
                }
                self.cancel_effects(&issued, &request.effects);
            }
        }
        Ok(())
    }

    /// When `finally` bodies of a scope that is cancelled now have to be done, in virtual time.
    pub(crate) fn finally_due(&self) -> Option<u64> {
        let limit = u64::try_from(self.setup.limits.finally_deadline.as_millis()).unwrap_or(u64::MAX);
        self.timeline.now().map(|now| now.saturating_add(limit))
    }

    fn begin_judge(&mut self, issued: &Issued, request: &JudgeRequest) -> Result<(), RunError> {
        let text = match self.content.read(&request.text) {
            Ok(text) => text,
            Err(failure) => {
                self.schedule(issued, TaskResult::failed(failure));
                return Ok(());
            }
        };
        let cancel = CancelToken::new();
        let input = JudgeInput {
            effect: issued.id.clone(),
            stmt: issued.stmt.clone(),
            request: Arc::new(request.clone()),
            text: self.setup.redactor.redact(&text).into_owned(),
            attempt: 1,
            content: Arc::new(HiddenContent(self.content.clone(), self.setup.redactor.clone())),
            budget: self.budget.rest(&self.spent()),
            cancel: cancel.clone(),
        };
        let task = perform::judge(self.backend.judge.clone(), input, self.setup.judges.clone());
        self.spawn_task(issued, cancel, task)
    }

    fn begin_decode(&mut self, issued: &Issued, request: &DecodeRequest) -> Result<(), RunError> {
        match self.decode_by_rules(request) {
            Ok(Decoded::Value(value)) => self.schedule(issued, TaskResult::Pure(Box::new(value))),
            Ok(Decoded::Memory(value)) => {
                self.schedule(issued, TaskResult::outcome(Outcome::Decoded { value }))
            }
            Ok(Decoded::Undecided { .. }) if self.holds() => self.held.push(issued.clone()),
            Ok(Decoded::Undecided { text, target }) => {
                let cancel = CancelToken::new();
                let input = DecodeInput {
                    effect: issued.id.clone(),
                    text: self.setup.redactor.redact(&text).into_owned(),
                    target,
                    budget: self.budget.rest(&self.spent()),
                    cancel: cancel.clone(),
                };
                let task = perform::decode(self.backend.judge.clone(), input, self.setup.judges.clone());
                return self.spawn_task(issued, cancel, task);
            }
            Err(failure) => self.schedule(issued, TaskResult::failed(failure)),
        }
        Ok(())
    }

    fn decode_by_rules(&self, request: &DecodeRequest) -> Result<Decoded, Failure> {
        match &request.target {
            DecodeTarget::Json => {
                let json = prose_agents::plain_json(&request.value, &self.content)?;
                return Ok(Decoded::Value(Value::text(json.to_string())));
            }
            DecodeTarget::Memory(memory) => {
                let state = |error: prose_state::StateError| failure(ErrorKind::Backend, error.to_string());
                let place = self
                    .setup
                    .roots
                    .locate(&self.run.dir, &memory.program, memory)
                    .map_err(state)?;
                let text = self.recall(&place).map_err(state)?;
                return Ok(Decoded::Memory(text.map_or(Value::Null, Value::text)));
            }
            _ => {}
        }
        let (text, target) = self.decode_question(request)?;
        if let Some(value) = prose_vm::decode::decode(&text, &target) {
            return Ok(Decoded::Value(value));
        }
        match self.memo.get(&memo_key(&text, &target)) {
            Some(value) => Ok(Decoded::Value(value.clone())),
            None => Ok(Decoded::Undecided { text, target }),
        }
    }

    /// The content, and what it is wanted as, without references.
    fn decode_question(&self, request: &DecodeRequest) -> Result<(String, DecodeTarget), Failure> {
        let text = plain_text(&request.value, &self.content)?;
        let target = match &request.target {
            DecodeTarget::Equals(other) => DecodeTarget::Equals(inlined(other, &self.content)?),
            target => target.clone(),
        };
        Ok((text, target))
    }

    /// Keeps what content was read as: the same content is not asked about twice.
    pub(crate) fn remember(&mut self, issued: &Issued, outcome: &Outcome) {
        if let (Effect::Decode(request), Outcome::Decoded { value }) = (&issued.effect, outcome)
            && !matches!(request.target, DecodeTarget::Json | DecodeTarget::Memory(_))
            && let Ok((text, target)) = self.decode_question(request)
        {
            self.memo.insert(memo_key(&text, &target), value.clone());
        }
    }

    fn begin_input(&mut self, issued: &Issued) -> Result<(), RunError> {
        let Effect::Input(request) = &issued.effect else {
            return Ok(());
        };
        if let Some(value) = self.supplied.shift_remove(&request.name) {
            match as_option(&request.options, value) {
                Ok(value) => {
                    self.schedule(issued, TaskResult::outcome(Outcome::Input { value }));
                    return Ok(());
                }
                // A value that can't be used leaves the question open, as if none had been given.
                Err(error) => {
                    let name = &request.name;
                    let message = format!("the value given for `{name}` is not used: {error}");
                    self.publisher.notice("warning", message);
                }
            }
        }
        let Some(source) = self.backend.inputs.clone() else {
            self.needs_person(&issued.id);
            return Ok(());
        };
        let prompt = self.content.read(&request.prompt).unwrap_or_default();
        let task = perform::input(source, issued.id.clone(), (**request).clone(), prompt);
        self.spawn_task(issued, CancelToken::new(), task)
    }

    fn begin_sleep(&mut self, issued: &Issued, request: &SleepRequest) {
        if let Some(now) = self.timeline.now() {
            let due = self
                .recovered
                .due(&issued.id)
                .unwrap_or(now.saturating_add(wait_ms(request)));
            let answer = Next::Answer(issued.id.clone(), TaskResult::outcome(Outcome::Slept));
            self.timeline.push_at(due, issued.order, answer);
            return;
        }
        let time = real_wait(request, (self.setup.jitter)());
        self.spawn_background(
            issued,
            CancelToken::new(),
            perform::sleep(time, self.setup.timer.clone()),
        );
    }

    /// Performs an effect in a task. In virtual time the task is waited for, so that the order of everything is that of
    /// the issue.
    fn spawn_task(
        &mut self,
        issued: &Issued,
        cancel: CancelToken,
        task: impl Future<Output = TaskResult> + Send + 'static,
    ) -> Result<(), RunError> {
        self.spawn_background(issued, cancel, task);
        if self.capabilities.virtual_time {
            let result = self.run_to_end(&issued.id)?;
            match (self.virtual_delay(issued), result) {
                (0, result) => self.schedule(issued, result),
                (_, result @ (TaskResult::Lost | TaskResult::NoAnswer)) => self.schedule(issued, result),
                (delay, result) => {
                    let due = self.recovered.due(&issued.id);
                    let due = due.unwrap_or(self.timeline.now().unwrap_or(0).saturating_add(delay));
                    let answer = Next::Answer(issued.id.clone(), result);
                    self.timeline.push_at(due, issued.order, answer);
                }
            }
        }
        Ok(())
    }

    /// How long the answer to what is no session takes in virtual time.
    pub(crate) fn virtual_delay(&self, issued: &Issued) -> u64 {
        let observer = self.backend.observer.as_ref();
        observer.map_or(0, |observer| observer.delay_ms(&issued.id))
    }

    pub(crate) fn spawn_background(
        &mut self,
        issued: &Issued,
        cancel: CancelToken,
        task: impl Future<Output = TaskResult> + Send + 'static,
    ) {
        let abort = perform::spawn(&self.setup.handle, self.setup.tx.clone(), issued.id.clone(), task);
        self.tasks.insert(issued.id.clone(), Task { cancel, abort });
    }
}

/// How long a sleep takes in virtual time: exactly as long as asked, so that simulated runs repeat.
pub(crate) fn wait_ms(request: &SleepRequest) -> u64 {
    request.ms.max(request.retry_after_ms.unwrap_or(0))
}

/// How long a sleep takes in real time, with a number from 0 to 1 for the jitter: ±20 %, so that what failed together
/// does not come back together; never before the backend's own time.
fn real_wait(request: &SleepRequest, jitter: f64) -> Duration {
    let factor = 0.8 + 0.4 * jitter.clamp(0.0, 1.0);
    Duration::from_millis(request.ms)
        .mul_f64(factor)
        .max(Duration::from_millis(request.retry_after_ms.unwrap_or(0)))
}

enum Decoded {
    Value(Value),
    /// What an agent remembered at this moment.
    Memory(Value),
    Undecided {
        text: String,
        target: DecodeTarget,
    },
}

fn memo_key(text: &str, target: &DecodeTarget) -> (Digest, String) {
    (
        digest_of(text.as_bytes()),
        serde_json::to_string(target).unwrap_or_default(),
    )
}

/// The handle of a started record in virtual time: when the session's outcome is due.
pub(crate) fn due_handle(due: u64) -> serde_json::Value {
    serde_json::json!({ "virtual_due_ms": due })
}

/// Reads [`due_handle`].
pub(crate) fn due_of(handle: &serde_json::Value) -> Option<u64> {
    handle.get("virtual_due_ms").and_then(serde_json::Value::as_u64)
}
