//! The process that answers, as an agent's server does: it goes on when those that ask are killed.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use prose_agents::prompt::{STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT};
use prose_agents::{MockFile, SessionAnswer};
use prose_model::{Ask, Decision, Failure, Value};

use super::{Answer, Question, What};

/// Answers from a mock file over a socket, and counts.
pub struct Answers {
    _dir: tempfile::TempDir,
    socket: PathBuf,
    state: Arc<State>,
}

/// One question that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The effect.
    pub effect: String,
    /// The process.
    pub pid: u32,
    /// The lease.
    pub lease: u64,
}

impl Asked {
    fn of(question: &Question) -> Asked {
        Asked {
            effect: question.effect.clone(),
            pid: question.pid,
            lease: question.lease,
        }
    }
}

struct State {
    mock: MockFile,
    asked: Mutex<Vec<Asked>>,
    /// Sessions that can be found again, by effect: what they answered.
    known: Mutex<HashMap<String, Answer>>,
    /// A session with this in its task is left without an answer the first time.
    late: Option<String>,
    /// Its effect and folder.
    held: Mutex<Option<(String, PathBuf)>>,
}

impl Answers {
    /// Listens on a socket.
    pub fn listen(mock: &str) -> Answers {
        Answers::with(mock, None)
    }

    /// One whose first session with these words in its task answers only when it is asked again by the next process: then it
    /// still writes its results, and before the new one does.
    pub fn late(mock: &str, task: &str) -> Answers {
        Answers::with(mock, Some(task.to_owned()))
    }

    fn with(mock: &str, late: Option<String>) -> Answers {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("answers.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let state = Arc::new(State {
            mock: MockFile::parse(mock).unwrap(),
            asked: Mutex::default(),
            known: Mutex::default(),
            late,
            held: Mutex::default(),
        });
        let served = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = served.clone();
                std::thread::spawn(move || state.serve(stream));
            }
        });
        Answers {
            _dir: dir,
            socket,
            state,
        }
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Every question so far, in order of arrival.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Whether a session was left without an answer.
    pub fn is_holding(&self) -> bool {
        self.state.held.lock().unwrap().is_some()
    }

    /// How many questions there were so far.
    pub fn count(&self) -> usize {
        self.state.asked.lock().unwrap().len()
    }
}

impl State {
    fn serve(&self, stream: UnixStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        // Whoever asks may be killed at any moment; then there is nobody to answer.
        if reader.read_line(&mut line).is_err() || !line.ends_with('\n') {
            return;
        }
        let question: Question = serde_json::from_str(&line).unwrap();
        if self.hold(&question) {
            // Nothing is heard of it until whoever asked is gone.
            let _ = reader.read_line(&mut line);
            return;
        }
        let answer = self.answer(&question);
        let mut stream = stream;
        let _ = stream.write_all(format!("{}\n", serde_json::to_string(&answer).unwrap()).as_bytes());
    }

    fn hold(&self, question: &Question) -> bool {
        let What::Session {
            task,
            staging: Some(staging),
            ..
        } = &question.what
        else {
            return false;
        };
        if !self.late.as_ref().is_some_and(|late| task.contains(late)) {
            return false;
        }
        let mut held = self.held.lock().unwrap();
        match &*held {
            None => {
                *held = Some((question.effect.clone(), staging.into()));
                self.asked.lock().unwrap().push(Asked::of(question));
                true
            }
            Some((effect, folder)) => {
                if *effect == question.effect {
                    assert_ne!(
                        *folder,
                        Path::new(staging),
                        "a new process has a folder of its own"
                    );
                    for file in [STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT] {
                        std::fs::write(folder.join(file), "too late").unwrap();
                    }
                }
                false
            }
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        if let What::Session { again: true, .. } = question.what {
            let known = self.known.lock().unwrap().get(&question.effect).cloned();
            return known.unwrap_or(Answer::Gone);
        }
        self.asked.lock().unwrap().push(Asked::of(question));
        let answer = match &question.what {
            What::Session {
                task,
                label,
                attempt,
                staging,
                memory,
                ..
            } => self.session(task, label, *attempt, staging.as_deref(), memory.as_deref()),
            What::Judge { text, ask } => Answer::Decision(self.decide(text, ask)),
            What::Decode { text } => {
                let rule = self
                    .mock
                    .decodes
                    .iter()
                    .find(|rule| rule.text.as_ref().is_none_or(|pattern| pattern.matches(text)));
                Answer::Value(rule.map_or(Value::Null, |rule| rule.value.clone()))
            }
            What::Input { name } => {
                let rule = self
                    .mock
                    .inputs
                    .iter()
                    .find(|rule| rule.name.as_deref().is_none_or(|n| n == name));
                Answer::Value(rule.map_or(Value::Null, |rule| rule.value.clone()))
            }
        };
        if matches!(question.what, What::Session { .. }) {
            let mut known = self.known.lock().unwrap();
            known.insert(question.effect.clone(), answer.clone());
        }
        answer
    }

    fn session(
        &self,
        task: &str,
        label: &str,
        attempt: u32,
        staging: Option<&str>,
        memory: Option<&str>,
    ) -> Answer {
        let rule = self.mock.sessions.iter().find(|rule| {
            rule.prompt.as_ref().is_none_or(|pattern| pattern.matches(task))
                && rule.nth.is_none_or(|nth| nth == u64::from(attempt))
        });
        let template = self.mock.defaults.reply.as_deref().unwrap_or("{label}");
        let text = match rule.map(|rule| &rule.answer) {
            Some(SessionAnswer::Reply(text)) => text.clone(),
            Some(SessionAnswer::Fail(fail)) => {
                return Answer::Failure(Failure {
                    kind: fail.kind,
                    message: fail.message.clone(),
                    retry_after_ms: fail.retry_after_ms,
                    usage: Default::default(),
                });
            }
            _ => template.replace("{label}", label),
        };
        let memory =
            memory.map(|earlier| (format!("{earlier}- {label}: {text}\n"), format!("did {label}\n")));
        let delay_ms = rule.and_then(|rule| rule.delay_ms).unwrap_or(0);
        let Some(staging) = staging else {
            return Answer::Reply {
                text: Some(text),
                memory,
                delay_ms,
            };
        };
        let staging = Path::new(staging);
        // As an agent does: the files first, then the word that they are there. A folder that is gone is one of a run that
        // has ended.
        let _ = std::fs::write(staging.join(STAGED_BINDING), text);
        if let Some((memory, segment)) = &memory {
            let _ = std::fs::write(staging.join(STAGED_MEMORY), memory);
            let _ = std::fs::write(staging.join(STAGED_SEGMENT), segment);
        }
        Answer::Reply {
            text: None,
            memory: None,
            delay_ms,
        }
    }

    fn decide(&self, text: &str, ask: &Ask) -> Decision {
        let rule = self.mock.verdicts.iter().find(|rule| {
            rule.condition
                .as_ref()
                .is_none_or(|pattern| pattern.matches(text))
        });
        let test = match ask {
            Ask::Loop { test, .. } => *test as usize,
            _ => 0,
        };
        let answer = rule.and_then(|rule| rule.answers.get(test).or(rule.answers.last()));
        match (ask, answer) {
            (Ask::Value, Some(value)) => Decision::Value(value.clone()),
            (Ask::Choice { options }, Some(value)) => Decision::Option(match value {
                Value::Text(text) => text.as_inline().unwrap().into_owned(),
                _ => options[0].clone(),
            }),
            (Ask::Choice { options }, None) => Decision::Option(options[0].clone()),
            (_, Some(Value::Bool(false))) => Decision::No,
            _ => Decision::Yes,
        }
    }
}
