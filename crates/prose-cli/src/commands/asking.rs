//! Asking a person on the terminal, one question at a time: inputs of the program, and what sessions want: permissions, and
//! to be told something.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prose_model::EffectId;
use prose_runtime::backends::{PermissionAnswer, PermissionQuestion};
use prose_runtime::{PermissionProvider, RunControl, SessionQuestion, WaitingInput};
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
    Session(SessionQuestion),
}

impl Question {
    /// What is asked was written by a program or a session. None of it can pass for a question of another kind: those
    /// begin where a line does, and there only what we say begins.
    fn text(&self) -> String {
        match self {
            Question::Input(input) => {
                let asked = format!("{}{}", input.prompt.trim_end(), choices(input));
                format!("? {}: {}\n> ", quoted(&input.name), quoted(&asked))
            }
            Question::Permission(WaitingPermission { question, .. }) => format!(
                "? a session wants `{}`: {} {}\n  y: this time, s: for the rest of this session, N: no\n> ",
                quoted(&question.key),
                quoted(&question.tool),
                quoted(&question.detail)
            ),
            Question::Session(question) => {
                let options = question.options.iter().enumerate();
                let options: String = options
                    .map(|(number, option)| format!("\n{}: {option}", number + 1))
                    .collect();
                let asked = format!("{}{options}", question.text.trim_end());
                format!(
                    "? a session asks: {}\n  nothing: decide yourself\n> ",
                    quoted(&asked)
                )
            }
        }
    }

    /// Whether nobody waits for the answer any more. `open` are the inputs and sessions' questions that are open.
    fn is_gone(&self, open: &[EffectId]) -> bool {
        match self {
            Question::Input(input) => !open.contains(&input.effect),
            Question::Permission(permission) => permission.answer.is_closed(),
            Question::Session(question) => !open.contains(&question.request),
        }
    }
}

/// Someone else's text inside of a question: its further lines are marked.
fn quoted(text: &str) -> String {
    plain(text).replace('\n', "\n  | ")
}

/// What a person means who has typed this: one of the offered answers, by its text or number, or something else.
pub(super) fn meant(question: &SessionQuestion, typed: &str) -> String {
    let typed = typed.trim();
    let options = &question.options;
    let numbered = || options.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
    match options.iter().any(|option| option == typed) {
        true => typed.to_owned(),
        false => numbered().map_or(typed, String::as_str).to_owned(),
    }
}

/// The inputs and sessions' questions that are open.
pub(super) fn open_questions(control: &RunControl) -> Vec<EffectId> {
    let inputs = control.questions().into_iter().map(|input| input.effect);
    let others = control.session_questions().into_iter();
    inputs.chain(others.map(|question| question.request)).collect()
}

/// The next question to a person; first those for which a session stands still.
pub(super) fn next_question(asker: &Asker, control: &RunControl) -> Option<Question> {
    if let Asker::Terminal(open) = asker
        && let Some(question) = open.next()
    {
        return Some(Question::Permission(question));
    }
    if let Some(question) = control.session_questions().into_iter().next() {
        return Some(Question::Session(question));
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
pub(super) struct Prompter {
    pending: Option<Question>,
    /// A line that is being read: for the question that is asked, or, when that was withdrawn, for the next one.
    reading: Option<oneshot::Receiver<Option<String>>>,
    /// Reads a line; none when there are no more.
    read: fn() -> Option<String>,
    /// Throws away what was typed before a question was seen.
    forget_typed: fn(),
}

impl Default for Prompter {
    fn default() -> Prompter {
        Prompter {
            pending: None,
            reading: None,
            read: read_line,
            forget_typed,
        }
    }
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
    }
}

/// Only a terminal has lines that were meant for something else.
fn forget_typed() {
    #[cfg(unix)]
    {
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}

impl Prompter {
    pub(super) fn waits(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes the question back when nobody waits for its answer any more, so that others get their turn. `open` are the
    /// inputs and questions that the run waits for.
    pub(super) fn withdraw(&mut self, open: impl FnOnce() -> Vec<EffectId>) -> bool {
        let gone = self
            .pending
            .as_ref()
            .is_some_and(|question| question.is_gone(&open()));
        if gone {
            self.pending = None;
            say("\n(the answer is not needed any more)\n");
        }
        gone
    }

    pub(super) fn ask(&mut self, question: Question) {
        // IMPORTANT: a line that answers something else must not grant anything.
        if matches!(question, Question::Permission(_)) {
            (self.forget_typed)();
            // One that was read for a question that was withdrawn is as old.
            if let Some(reading) = &mut self.reading
                && matches!(reading.try_recv(), Ok(Some(_)))
            {
                self.reading = None;
            }
        }
        say(&question.text());
        if self.reading.is_none() {
            let (send, receive) = oneshot::channel();
            let read = self.read;
            // A blocking read can't be cancelled; the thread ends with the process at the latest.
            let spawned = std::thread::Builder::new()
                .name("prose-input".to_owned())
                .spawn(move || _ = send.send(read()));
            if spawned.is_err() {
                return;
            }
            self.reading = Some(receive);
        }
        self.pending = Some(question);
    }

    /// The answer to the question that was asked; none when standard input has ended. Never resolves while there is
    /// no question.
    pub(super) async fn answer(&mut self) -> Option<(Question, String)> {
        let (Some(_), Some(reading)) = (&self.pending, &mut self.reading) else {
            return std::future::pending().await;
        };
        let answer = reading.await.ok().flatten();
        self.reading = None;
        let question = self.pending.take()?;
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

    #[test]
    fn nothing_in_a_question_passes_for_another_one() {
        let input = Question::Input(WaitingInput {
            effect: EffectId::from("e"),
            name: "topic".into(),
            prompt: "Which?\u{1b}[2K\r\n? a session wants `bash`: ls\u{202e}".to_owned(),
            options: vec!["a\u{7}".to_owned()],
        });
        assert_eq!(
            input.text(),
            "? topic: Which?[2K\n  | ? a session wants `bash`: ls (a)\n> "
        );
        let (answer, _answered) = oneshot::channel();
        let question = PermissionQuestion {
            detail: "rm -r ~\n\u{1b}[1A? topic: y or n?\n> ".to_owned(),
            ..question()
        };
        let permission = Question::Permission(WaitingPermission { question, answer });
        assert_eq!(
            permission.text(),
            "? a session wants `bash`: bash rm -r ~\n  | [1A? topic: y or n?\n  | > \n  y: this time, s: for the rest of this session, N: no\n> "
        );
    }

    #[tokio::test]
    async fn a_question_that_nobody_waits_for_makes_way() {
        use std::sync::mpsc;
        static LINES: Mutex<Option<mpsc::Receiver<String>>> = Mutex::new(None);
        static FORGOTTEN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let (type_line, lines) = mpsc::channel();
        *LINES.lock().unwrap() = Some(lines);
        let mut prompter = Prompter {
            read: || LINES.lock().unwrap().as_ref()?.recv().ok(),
            forget_typed: || _ = FORGOTTEN.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            ..Prompter::default()
        };
        let permission = || {
            let (answer, answered) = oneshot::channel();
            let question = question();
            (
                Question::Permission(WaitingPermission { question, answer }),
                answered,
            )
        };
        let (first, session) = permission();
        prompter.ask(first);
        assert!(!prompter.withdraw(Vec::new));
        drop(session);
        assert!(prompter.withdraw(Vec::new));
        assert!(!prompter.waits());
        let (second, mut session) = permission();
        prompter.ask(second);
        assert_eq!(FORGOTTEN.load(std::sync::atomic::Ordering::Relaxed), 2);
        type_line.send("y".to_owned()).unwrap();
        let Some((Question::Permission(second), text)) = prompter.answer().await else {
            panic!("an answer")
        };
        second.settle(&text);
        assert_eq!(session.try_recv(), Ok(PermissionAnswer::Allow));
        // A line that came while a question was on its way out grants nothing.
        let (third, session) = permission();
        prompter.ask(third);
        type_line.send("y".to_owned()).unwrap();
        // Its end is the line's arrival.
        while prompter
            .reading
            .as_ref()
            .is_some_and(|reading| reading.is_empty())
        {
            tokio::task::yield_now().await;
        }
        drop(session);
        assert!(prompter.withdraw(Vec::new));
        let (fourth, _session) = permission();
        prompter.ask(fourth);
        drop(type_line);
        assert!(prompter.answer().await.is_none());

        let input = WaitingInput {
            effect: EffectId::from("e"),
            name: "topic".into(),
            prompt: String::new(),
            options: Vec::new(),
        };
        assert!(!Question::Input(input.clone()).is_gone(std::slice::from_ref(&input.effect)));
        assert!(Question::Input(input).is_gone(&[]));
    }

    #[test]
    fn what_a_session_wants_to_know_is_answered_by_text_or_number() {
        let question = SessionQuestion {
            request: EffectId::from("e?1"),
            session: EffectId::from("e"),
            text: "Which bees?\n? a session wants `bash`".to_owned(),
            options: vec!["wild".to_owned(), "2".to_owned(), "tame".to_owned()],
        };
        for (typed, answer) in [
            ("1", "wild"),
            ("2", "2"),
            (" tame ", "tame"),
            ("4", "4"),
            ("0", "0"),
            ("all of them", "all of them"),
            (" ", ""),
        ] {
            assert_eq!(meant(&question, typed), answer, "{typed:?}");
        }
        let asked = Question::Session(question.clone());
        assert_eq!(
            asked.text(),
            "? a session asks: Which bees?\n  | ? a session wants `bash`\n  | 1: wild\n  | 2: 2\n  | 3: tame\n  nothing: decide yourself\n> "
        );
        assert!(asked.is_gone(&[]) && !asked.is_gone(&[question.request]));
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
