//! Asking a person on the terminal, one question at a time: inputs of the program, and permissions that sessions want.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prose_model::EffectId;
use prose_runtime::backends::{PermissionAnswer, PermissionQuestion};
use prose_runtime::{PermissionProvider, RunControl, WaitingInput};
use tokio::sync::oneshot;

use super::{plain, say};
use crate::args::CommonArgs;

/// Who answers when a session wants what its permissions leave to a person.
pub(super) enum Asker {
    /// `--yes`: everything is granted.
    Yes,
    /// Whoever sits at the terminal.
    Terminal(Arc<Open>),
    /// Nobody, so that the answer is no.
    Nobody,
}

impl Asker {
    pub(super) fn of(common: &CommonArgs) -> Asker {
        match (common.yes, super::run::asks(common)) {
            (true, _) => Asker::Yes,
            (false, true) => Asker::Terminal(Arc::default()),
            (false, false) => Asker::Nobody,
        }
    }

    pub(super) fn provider(&self) -> Option<Arc<dyn PermissionProvider>> {
        match self {
            Asker::Yes => Some(Arc::new(Yes)),
            Asker::Terminal(open) => Some(open.clone()),
            Asker::Nobody => None,
        }
    }

    /// Nobody answers any more.
    pub(super) fn stop(&self) {
        if let Asker::Terminal(open) = self {
            let mut state = open.lock();
            state.over = true;
            // What is dropped is answered with no.
            state.waiting.clear();
        }
    }
}

/// Grants what the program leaves to a person.
struct Yes;

#[async_trait::async_trait]
impl PermissionProvider for Yes {
    async fn ask(&self, _: &EffectId, _: PermissionQuestion) -> PermissionAnswer {
        PermissionAnswer::Allow
    }
}

/// Permissions that sessions wait for.
#[derive(Default)]
pub(super) struct Open(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<WaitingPermission>,
    over: bool,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first question whose session still waits.
    fn next(&self) -> Option<WaitingPermission> {
        let mut state = self.lock();
        while let Some(question) = state.waiting.pop_front() {
            if !question.answer.is_closed() {
                return Some(question);
            }
        }
        None
    }
}

#[async_trait::async_trait]
impl PermissionProvider for Open {
    async fn ask(&self, _: &EffectId, question: PermissionQuestion) -> PermissionAnswer {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.over {
                return PermissionAnswer::Deny;
            }
            state.waiting.push_back(WaitingPermission { question, answer });
        }
        answered.await.unwrap_or(PermissionAnswer::Deny)
    }
}

/// A permission that a session waits for. Dropped, it is refused.
pub(super) struct WaitingPermission {
    question: PermissionQuestion,
    answer: oneshot::Sender<PermissionAnswer>,
}

impl WaitingPermission {
    /// Takes what the person typed: only a clear yes is one.
    pub(super) fn settle(self, text: &str) {
        // The session may be gone meanwhile, and then nobody needs the answer.
        let _ = self.answer.send(answer_of(text));
    }
}

fn answer_of(text: &str) -> PermissionAnswer {
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" => PermissionAnswer::Allow,
        "s" | "session" => PermissionAnswer::AllowSession,
        _ => PermissionAnswer::Deny,
    }
}

/// Something to ask.
pub(super) enum Question {
    Input(WaitingInput),
    Permission(WaitingPermission),
}

impl Question {
    fn text(&self) -> String {
        match self {
            Question::Input(input) => format!(
                "? {}: {}{}\n> ",
                input.name,
                input.prompt.trim_end(),
                choices(input)
            ),
            Question::Permission(WaitingPermission { question, .. }) => plain(&format!(
                "? a session wants `{}`: {} {}\n  y: this time, s: for the rest of this session, N: no\n> ",
                question.key, question.tool, question.detail
            )),
        }
    }
}

/// The next question to a person; permissions first, since a session stands still for them.
pub(super) fn next_question(asker: &Asker, control: &RunControl) -> Option<Question> {
    if let Asker::Terminal(open) = asker
        && let Some(question) = open.next()
    {
        return Some(Question::Permission(question));
    }
    control.questions().into_iter().next().map(Question::Input)
}

/// The choices of an input, unless its prompt names them itself.
pub(super) fn choices(input: &WaitingInput) -> String {
    if input.options.is_empty()
        || input
            .options
            .iter()
            .all(|option| input.prompt.contains(option.as_str()))
    {
        return String::new();
    }
    format!(" ({})", input.options.join(", "))
}

/// Asks one question at a time on the terminal.
#[derive(Default)]
pub(super) struct Prompter {
    pending: Option<(Question, oneshot::Receiver<Option<String>>)>,
}

impl Prompter {
    pub(super) fn waits(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn ask(&mut self, question: Question) {
        let (send, receive) = oneshot::channel();
        say(&question.text());
        // A blocking read can't be cancelled; the thread ends with the process at the latest.
        let spawned = std::thread::Builder::new()
            .name("prose-input".to_owned())
            .spawn(move || {
                let mut line = String::new();
                let answer = match io::stdin().read_line(&mut line) {
                    Ok(0) | Err(_) => None,
                    Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
                };
                let _ = send.send(answer);
            });
        if spawned.is_ok() {
            self.pending = Some((question, receive));
        }
    }

    /// The answer to the question that was asked; none when standard input has ended. Never resolves while there is
    /// no question.
    pub(super) async fn answer(&mut self) -> Option<(Question, String)> {
        let Some((_, receive)) = &mut self.pending else {
            return std::future::pending().await;
        };
        let answer = receive.await.ok().flatten();
        let (question, _) = self.pending.take()?;
        answer.map(|text| (question, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> PermissionQuestion {
        PermissionQuestion {
            key: "bash".to_owned(),
            tool: "bash".to_owned(),
            detail: "ls".to_owned(),
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        for (text, answer) in [
            ("y", PermissionAnswer::Allow),
            (" YES ", PermissionAnswer::Allow),
            ("s", PermissionAnswer::AllowSession),
            ("", PermissionAnswer::Deny),
            ("n", PermissionAnswer::Deny),
            ("yes, but", PermissionAnswer::Deny),
        ] {
            assert_eq!(answer_of(text), answer, "{text:?}");
        }
    }

    #[tokio::test]
    async fn questions_are_asked_in_order_and_end_with_the_input() {
        let open = Arc::new(Open::default());
        let ask = |open: &Arc<Open>| {
            let open = open.clone();
            tokio::spawn(async move { open.ask(&EffectId::from("e"), question()).await })
        };
        let first = ask(&open);
        let waiting = loop {
            match open.next() {
                Some(waiting) => break waiting,
                None => tokio::task::yield_now().await,
            }
        };
        waiting.settle("s");
        assert_eq!(first.await.unwrap(), PermissionAnswer::AllowSession);
        // One that nobody waits for is not asked.
        let gone = ask(&open);
        while open.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        gone.abort();
        assert!(gone.await.is_err());
        assert!(open.next().is_none());
        let second = ask(&open);
        while open.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        Asker::Terminal(open.clone()).stop();
        assert_eq!(second.await.unwrap(), PermissionAnswer::Deny);
        assert_eq!(
            open.ask(&EffectId::from("e"), question()).await,
            PermissionAnswer::Deny
        );
    }
}
