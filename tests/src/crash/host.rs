//! The process that drives a run and may be killed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use prose_agents::{
    Backend, BackendContext, BackendError, BackendFactory, BackendSettings, Capabilities, Content,
    DecodeInput, Delivery, InputSource, IssueObserver, Judge, JudgeInput, Looked, MemoryUpdate, Reading,
    Registry, ReplyBody, SessionBackend, SessionReply, SessionSpawn, failure,
};
use prose_model::{
    Bundle, Effect, EffectId, ErrorKind, Failure, InputRequest, Issued, RunStatus, Usage, Value, Verdict,
};
use prose_runtime::{Attach, Engine, EngineConfig, ResumeRequest, RunRequest};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::{Answer, CHILD, MANNER, Manner, Question, SOCKET, What};

/// The backend's name.
const NAME: &str = "answers";
/// Real time is made short: a delay of the mock takes this part of itself.
const FASTER: u64 = 20;

/// Runs `bundle FILE` or `resume RUN_ID` in the current folder; what it says is what `prose` would.
pub fn run(arguments: &[String]) -> (u8, String, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let result = runtime.block_on(drive(arguments));
    runtime.shutdown_background();
    match result {
        Ok((status, output)) => {
            let code = match status {
                RunStatus::Completed => 0,
                RunStatus::Failed => 1,
                RunStatus::Waiting | RunStatus::OutOfBudget => 3,
                RunStatus::Cancelled | RunStatus::Interrupted => 130,
            };
            (code, output, String::new())
        }
        Err(error) => (2, String::new(), error),
    }
}

async fn drive(arguments: &[String]) -> Result<(RunStatus, String), String> {
    let text = |error: prose_runtime::RunError| error.to_string();
    let mut registry = Registry::empty();
    registry.add(Factory);
    let engine = Engine::with(EngineConfig {
        registry,
        ..EngineConfig::new(std::env::current_dir().unwrap())
    });
    let handle = match arguments {
        [verb, file] if verb == "bundle" => {
            let bundle: Bundle = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            let settings = BackendSettings {
                name: Some(NAME.to_owned()),
                ..BackendSettings::default()
            };
            let request = RunRequest {
                program: bundle.files[0].path.clone(),
                bundle: Arc::new(bundle),
                inputs: Default::default(),
                options: Default::default(),
                backend: engine.backend(&settings).map_err(text)?,
                attach: Attach::default(),
            };
            engine.start(request).await.map_err(text)?
        }
        [verb, run] if verb == "resume" => {
            let request = ResumeRequest {
                run_id: run.as_str().into(),
                inputs: Default::default(),
                changed: None,
                backend: None,
                overrides: Default::default(),
                attach: Attach::default(),
            };
            engine.resume(request).await.map_err(text)?
        }
        other => return Err(format!("usage: bundle FILE | resume RUN_ID, not {other:?}")),
    };
    let result = handle.join().await.map_err(text)?;
    let output = result.output_text().map_err(text)?.unwrap_or_default();
    Ok((result.status, output))
}

struct Factory;

impl BackendFactory for Factory {
    fn kind(&self) -> &'static str {
        NAME
    }
    fn look(&self, _: BackendContext<'_>) -> Option<Looked> {
        None
    }
    fn setup(&self) -> &'static str {
        "only for tests"
    }
    fn create(&self, _: BackendContext<'_>) -> Result<Backend, BackendError> {
        let variable = |name: &str| std::env::var(name).unwrap();
        let client = Arc::new(Client {
            socket: variable(SOCKET),
            manner: Manner::of(&variable(MANNER)).unwrap(),
            tasks: Mutex::default(),
        });
        Ok(Backend {
            name: NAME.to_owned(),
            simulated: false,
            sessions: client.clone(),
            judge: client.clone(),
            inputs: Some(client.clone()),
            observer: Some(client),
            mock_text: None,
        })
    }
}

struct Client {
    socket: String,
    manner: Manner,
    /// The task of each session, without what is said around it.
    tasks: Mutex<HashMap<EffectId, String>>,
}

impl Client {
    async fn ask(&self, effect: &EffectId, lease: u64, what: What) -> Answer {
        let question = Question {
            effect: effect.to_string(),
            pid: std::process::id(),
            lease,
            what,
        };
        let mut stream = UnixStream::connect(Path::new(&self.socket)).await.unwrap();
        let line = format!("{}\n", serde_json::to_string(&question).unwrap());
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn question(&self, session: &SessionSpawn, again: bool) -> What {
        let files = self.manner != Manner::Virtual;
        What::Session {
            task: self.tasks.lock().unwrap()[&session.effect].clone(),
            label: session.request.label.clone(),
            attempt: session.request.attempt,
            staging: files.then(|| session.staging.display().to_string()),
            memory: session
                .memory
                .as_ref()
                .map(|memory| memory.text.clone().unwrap_or_default()),
            again,
        }
    }

    async fn reply(&self, session: &SessionSpawn, answer: Answer) -> Result<SessionReply, Failure> {
        match answer {
            Answer::Reply {
                text,
                memory,
                delay_ms,
            } => {
                let part = if self.manner == Manner::Virtual { 1 } else { FASTER };
                session.clock.sleep(Duration::from_millis(delay_ms / part)).await;
                Ok(SessionReply {
                    memory: match (&text, memory) {
                        (None, _) => Some(MemoryUpdate::Staged),
                        (_, memory) => memory.map(|(memory, segment)| MemoryUpdate::Text { memory, segment }),
                    },
                    body: text.map_or(ReplyBody::Staged, ReplyBody::Text),
                    summary: None,
                    usage: Usage::default(),
                })
            }
            Answer::Failure(failure) => Err(failure),
            other => Err(failure(ErrorKind::Backend, format!("{other:?}"))),
        }
    }
}

impl IssueObserver for Client {
    fn issued(&self, issued: &Issued, content: &dyn Content) -> Result<(), Failure> {
        if let Effect::Session(request) = &issued.effect {
            let task = content.read(&request.task)?;
            self.tasks.lock().unwrap().insert(issued.id.clone(), task);
        }
        Ok(())
    }
}

#[async_trait]
impl SessionBackend for Client {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: match self.manner {
                Manner::Virtual => Delivery::Plain,
                _ => Delivery::Files,
            },
            reattach: self.manner == Manner::Reattach,
            skills: false,
            virtual_time: self.manner == Manner::Virtual,
        }
    }

    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        if self.manner == Manner::Reattach {
            let handle = serde_json::Value::String(session.effect.to_string());
            session.sink.started(Some(handle), None).await?;
        }
        let mut child = None;
        if std::env::var_os(CHILD).is_some() {
            let mut command = tokio::process::Command::new("sleep");
            command.arg("1000").process_group(0).kill_on_drop(true);
            let spawned = command.spawn().unwrap();
            session.sink.child(spawned.id().unwrap()).await?;
            child = Some(spawned);
        }
        let question = self.question(&session, false);
        let answer = self.ask(&session.effect, session.lease, question).await;
        let reply = self.reply(&session, answer).await;
        if let Some(child) = &mut child {
            child.kill().await.unwrap();
        }
        reply
    }

    async fn reattach(
        &self,
        session: SessionSpawn,
        _handle: serde_json::Value,
    ) -> Option<Result<SessionReply, Failure>> {
        let question = self.question(&session, true);
        match self.ask(&session.effect, session.lease, question).await {
            Answer::Gone => None,
            answer => Some(self.reply(&session, answer).await),
        }
    }
}

#[async_trait]
impl Judge for Client {
    fn name(&self) -> &str {
        NAME
    }

    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        let what = What::Judge {
            text: input.text.clone(),
            ask: input.request.ask.clone(),
        };
        match self.ask(&input.effect, 0, what).await {
            Answer::Decision(decision) => Ok(Verdict {
                decision,
                confidence: 1.0,
                reason: "as told".to_owned(),
                usage: Usage::default(),
            }),
            other => Err(failure(ErrorKind::Backend, format!("{other:?}"))),
        }
    }

    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        match self
            .ask(&input.effect, 0, What::Decode { text: input.text })
            .await
        {
            Answer::Value(value) => Ok(value.into()),
            other => Err(failure(ErrorKind::Backend, format!("{other:?}"))),
        }
    }
}

#[async_trait]
impl InputSource for Client {
    async fn answer(&self, effect: &EffectId, request: &InputRequest, _: &str) -> Option<Value> {
        let what = What::Input {
            name: request.name.to_string(),
        };
        match self.ask(effect, 0, what).await {
            Answer::Value(value) => Some(value),
            _ => None,
        }
    }
}
