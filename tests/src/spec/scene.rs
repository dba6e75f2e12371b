//! Who answers a page's run: `simulate`, and in its way, as the program's flags ask for, an agent that works on files, a
//! person who cancels, a process that ends, a judge whose answers can't be read.
//!
//! The agent knows nothing but the text that it is given: where it writes what is what that text says.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use prose_agents::prompt::STAGED_BINDING;
use prose_agents::{
    Backend, Capabilities, DecodeInput, Delivery, Judge, JudgeInput, MemoryUpdate, Reading, ReplyBody,
    SessionBackend, SessionReply, SessionSpawn, failure,
};
use prose_model::{DecodeTarget, ErrorKind, Failure, Verdict};
use prose_runtime::{Attach, Signal};
use tokio::sync::Notify;

use super::page::Scene;

/// What is played, and what was told on the way.
#[derive(Debug, Default)]
pub struct Stage {
    scene: Scene,
    given: Mutex<Vec<String>>,
    decodings: Mutex<Vec<String>>,
    garbled: AtomicUsize,
    /// Told when the session that the person or the process waits for has started.
    reached: Arc<Notify>,
    /// Where the session of the process that ended was to write.
    late: Mutex<Option<PathBuf>>,
}

impl Stage {
    /// Nothing has been told yet.
    pub fn new(scene: Scene) -> Stage {
        Stage {
            garbled: AtomicUsize::new(scene.garbled),
            scene,
            ..Stage::default()
        }
    }

    /// Who can cancel or stop the run.
    pub fn attach(&self) -> Attach {
        let reached = self.reached.clone();
        let signal: Signal = Box::pin(async move { reached.notified().await });
        match (&self.scene.cancel, &self.scene.stop) {
            (Some(_), _) => Attach {
                cancel: Some(signal),
                ..Attach::default()
            },
            (None, Some(_)) => Attach {
                shutdown: Some(signal),
                ..Attach::default()
            },
            (None, None) => Attach::default(),
        }
    }

    /// The texts that sessions were given, each below the name of its session.
    pub fn given(&self) -> String {
        self.given.lock().unwrap().join("\n")
    }

    /// What the judge was asked to read, a line each.
    pub fn decodings(&self) -> String {
        self.decodings.lock().unwrap().join("\n")
    }

    /// Whether a session was given this system text before.
    fn says(&self, system: &str) -> bool {
        let part = format!("--- system\n{system}\n--- task");
        !system.is_empty() && self.given.lock().unwrap().iter().any(|told| told.contains(&part))
    }

    fn in_real_time(&self) -> bool {
        self.scene.files || self.scene.cancel.is_some() || self.scene.stop.is_some()
    }
}

/// The backend with the stage before it.
pub fn on_stage(backend: Backend, stage: &Arc<Stage>) -> Backend {
    Backend {
        // Agents that write files keep their memory where agents do.
        simulated: !stage.scene.files,
        sessions: Arc::new(Sessions {
            inner: backend.sessions,
            stage: stage.clone(),
        }),
        judge: Arc::new(Judged {
            inner: backend.judge,
            stage: stage.clone(),
        }),
        ..backend
    }
}

struct Sessions {
    inner: Arc<dyn SessionBackend>,
    stage: Arc<Stage>,
}

#[async_trait]
impl SessionBackend for Sessions {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        Capabilities {
            delivery: if self.stage.scene.files {
                Delivery::Files
            } else {
                inner.delivery
            },
            virtual_time: inner.virtual_time && !self.stage.in_real_time(),
            ..inner
        }
    }

    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        let scene = &self.stage.scene;
        let text = session.prompt.clone();
        let mut told = format!("=== {}, lease {}\n", session.request.label, session.lease);
        // What was said to an earlier session already is not shown again.
        if self.stage.says(&text.system) {
            told.push_str("--- system: as above\n");
        } else if !text.system.is_empty() {
            told.push_str(&format!("--- system\n{}\n", text.system));
        }
        told.push_str(&format!("--- task\n{}\n", text.user));
        self.stage.given.lock().unwrap().push(told);

        let task = text.user.lines().next().unwrap_or_default().to_owned();
        let meant = |word: &Option<String>| word.as_ref().is_some_and(|word| task.contains(word.as_str()));
        let first = session.lease == 1;
        if (meant(&scene.cancel) || meant(&scene.stop)) && first {
            if meant(&scene.stop) {
                *self.stage.late.lock().unwrap() = Some(session.staging.clone());
            }
            self.stage.reached.notify_one();
            session.cancel.cancelled().await;
            return Err(failure(ErrorKind::Backend, "stopped"));
        }
        let reply = self.inner.spawn(session).await?;
        if !scene.files {
            return Ok(reply);
        }
        let late = self.stage.late.lock().unwrap().take();
        if let Some(folder) = late {
            std::fs::write(folder.join(STAGED_BINDING), "written too late").unwrap();
        }
        Ok(write(&text.user, reply))
    }
}

/// Does what the text says about files.
fn write(text: &str, reply: SessionReply) -> SessionReply {
    let ReplyBody::Text(result) = &reply.body else {
        return reply;
    };
    let between = |from: &str, to: &str| {
        let rest = text.rsplit_once(from)?.1;
        rest.split_once(to).map(|(found, _)| found.trim())
    };
    let head = between("put your output below the line):", "[your output]").unwrap_or_default();
    if let Some(path) = between("write your output to:", "\n\n") {
        std::fs::write(path, format!("{head}\n{result}\n")).unwrap();
    }
    let memory = match reply.memory {
        Some(MemoryUpdate::Text { memory, segment }) => {
            let places = [
                (
                    between("write your memory anew, whole, to:", "\nand a record"),
                    memory,
                ),
                (between("what should come next) to:", "\n\n"), segment),
            ];
            for (path, text) in places {
                if let Some(path) = path {
                    std::fs::write(Path::new(path), text).unwrap();
                }
            }
            Some(MemoryUpdate::Staged)
        }
        other => other,
    };
    SessionReply {
        body: ReplyBody::Staged,
        summary: Some("Binding written\nSummary: done".to_owned()),
        memory,
        ..reply
    }
}

struct Judged {
    inner: Arc<dyn Judge>,
    stage: Arc<Stage>,
}

#[async_trait]
impl Judge for Judged {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        let left = |left: usize| left.checked_sub(1);
        let garbled = &self.stage.garbled;
        if garbled
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
        {
            return Err(failure(ErrorKind::Judge, "it answered in riddles"));
        }
        self.inner.decide(input).await
    }

    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        let wanted = match &input.target {
            DecodeTarget::List => "a list".to_owned(),
            DecodeTarget::Record(keys) if keys.is_empty() => "a record".to_owned(),
            DecodeTarget::Record(keys) => format!("a record with {}", keys.join(", ")),
            DecodeTarget::Number => "a number".to_owned(),
            DecodeTarget::Bool => "yes or no".to_owned(),
            DecodeTarget::Equals(_) => "the same as another value".to_owned(),
            DecodeTarget::IsEmpty => "nothing".to_owned(),
            DecodeTarget::Json | DecodeTarget::Memory(_) => "text".to_owned(),
        };
        let first = input.text.lines().next().unwrap_or_default();
        let line = format!("as {wanted}: {first}");
        self.stage.decodings.lock().unwrap().push(line);
        self.inner.decode(input).await
    }
}
