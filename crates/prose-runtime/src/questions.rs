//! The questions to a person that are open, shared between the driver and whoever answers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use prose_agents::{Content, InlineContent, plain_text};
use prose_model::{EffectId, InputRequest, Value};
use tokio::sync::oneshot;

use crate::request::{AnswerError, SessionQuestion, WaitingInput};

#[derive(Debug, Default)]
pub(crate) struct Questions {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: IndexMap<EffectId, Open>,
    /// Those of sessions, by request.
    of_sessions: IndexMap<EffectId, OfSession>,
    /// Whether there is anybody whom sessions can ask.
    attended: bool,
    over: bool,
}

#[derive(Debug)]
struct OfSession {
    question: SessionQuestion,
    /// Dropped, nobody answers.
    answer: oneshot::Sender<String>,
}

#[derive(Debug)]
struct Open {
    question: WaitingInput,
    /// Whether nothing but a person answers it.
    needs_person: bool,
}

impl Questions {
    pub(crate) fn open(&self, id: &EffectId, request: &InputRequest, content: &dyn Content) {
        // A prompt that can't be read is asked without its text rather than not at all.
        let prompt = content.read(&request.prompt).unwrap_or_default();
        let question = WaitingInput {
            effect: id.clone(),
            name: request.name.clone(),
            prompt,
            options: request.options.clone(),
        };
        let open = Open {
            question,
            needs_person: false,
        };
        self.lock().open.insert(id.clone(), open);
    }

    /// Whether that is news about a question that is open.
    pub(crate) fn needs_person(&self, id: &EffectId) -> bool {
        match self.lock().open.get_mut(id) {
            Some(open) => !std::mem::replace(&mut open.needs_person, true),
            None => false,
        }
    }

    pub(crate) fn close(&self, id: &EffectId) {
        self.lock().open.shift_remove(id);
    }

    /// Closes a question for an answer: the first valid one wins.
    pub(crate) fn take(&self, id: &EffectId, value: Value) -> Result<Value, AnswerError> {
        let mut state = self.lock();
        if state.over {
            return Err(AnswerError::Over);
        }
        let open = state
            .open
            .get(id)
            .ok_or_else(|| AnswerError::NotOpen(id.clone()))?;
        let value = as_option(&open.question.options, value)?;
        state.open.shift_remove(id);
        Ok(value)
    }

    /// What nothing but a person answers.
    pub(crate) fn list(&self) -> Vec<WaitingInput> {
        let state = self.lock();
        let needed = state.open.values().filter(|open| open.needs_person);
        needed.map(|open| open.question.clone()).collect()
    }

    /// Whether there is anybody whom sessions can ask; what is open when there is nobody any more is not answered.
    pub(crate) fn attend(&self, attended: bool) {
        let mut state = self.lock();
        state.attended = attended;
        if !attended {
            state.of_sessions.clear();
        }
    }

    /// Opens a session's question. None when there is nobody to ask.
    pub(crate) fn ask(&self, question: SessionQuestion) -> Option<oneshot::Receiver<String>> {
        let mut state = self.lock();
        if state.over || !state.attended {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let request = question.request.clone();
        state.of_sessions.insert(request, OfSession { question, answer });
        Some(answered)
    }

    /// The session does not wait for the answer any more.
    pub(crate) fn withdraw(&self, request: &EffectId) {
        self.lock().of_sessions.shift_remove(request);
    }

    /// Answers a session's question, if it is one that is open. An empty answer is none.
    pub(crate) fn tell(&self, request: &EffectId, value: &Value) -> Option<()> {
        let OfSession { answer, .. } = self.lock().of_sessions.shift_remove(request)?;
        let text = plain_text(value, &InlineContent).unwrap_or_default();
        if !text.trim().is_empty() {
            // The session may be gone meanwhile, and then nobody needs the answer.
            let _ = answer.send(text);
        }
        Some(())
    }

    /// What sessions wait to be told.
    pub(crate) fn of_sessions(&self) -> Vec<SessionQuestion> {
        let state = self.lock();
        let open = state.of_sessions.values();
        open.map(|open| open.question.clone()).collect()
    }

    /// No answer is taken any more.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        state.of_sessions.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The choice that a person means, in the program's spelling; any answer where there are no choices.
pub(crate) fn as_option(options: &[String], value: Value) -> Result<Value, AnswerError> {
    prose_vm::choices::as_choice(options, &value).ok_or_else(|| AnswerError::NotAnOption {
        options: options.to_vec(),
    })
}
