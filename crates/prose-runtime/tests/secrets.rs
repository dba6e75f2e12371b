//! Secrets that a session, a judge or a person brings in are nowhere to be found afterwards; and questions about
//! permissions are events.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use common::{Project, all_events, assert_complete, notices, outputs, resume_request};
use prose_agents::prompt::{STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT};
use prose_agents::{
    Backend, Capabilities, DecodeInput, Delivery, Judge, JudgeInput, MemoryUpdate, PermissionQuestion,
    Reading, Redactor, ReplyBody, SessionBackend, SessionReply, SessionSpawn, SessionUpdate, failure,
};
use prose_model::{
    Ask, Decision, ErrorKind, Event, Failure, PermissionGrant, RunEvent, RunId, RunStatus, Usage, Value,
    Verdict,
};
use prose_runtime::{Attach, Engine, EngineConfig, RunRequest, WaitingInput};

const SECRET: &str = "sk-live-0123456789abcdef";

/// Says the secret wherever it can.
struct Leaky {
    delivery: Delivery,
    prompts: Mutex<Vec<String>>,
}

#[async_trait]
impl SessionBackend for Leaky {
    fn name(&self) -> &str {
        "leaky"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: self.delivery,
            reattach: true,
            skills: false,
            virtual_time: false,
        }
    }
    async fn spawn(&self, s: SessionSpawn) -> Result<SessionReply, Failure> {
        self.prompts.lock().unwrap().push(s.prompt.joined());
        s.sink
            .started(Some(serde_json::json!({ "key": SECRET })), None)
            .await?;
        let (a, b) = SECRET.split_at(7);
        for piece in ["it is ", a, b, ", I say ", a] {
            s.sink.update(SessionUpdate::Text(piece.to_owned()));
        }
        s.sink.update(SessionUpdate::Tool {
            name: format!("search for {SECRET}"),
            detail: format!("curl -H {SECRET}"),
        });
        let question = PermissionQuestion {
            key: "bash".to_owned(),
            tool: format!("bash for {SECRET},"),
            detail: format!("echo {SECRET}"),
        };
        s.sink.ask_permission(question).await;
        if s.request
            .task
            .as_inline()
            .is_some_and(|task| task.contains("fail"))
        {
            return Err(failure(ErrorKind::Backend, format!("401 for {SECRET}")));
        }
        let text = format!("The key is {SECRET}.");
        let memory = s.memory.as_ref().map(|_| match self.delivery {
            Delivery::Plain => MemoryUpdate::Text {
                memory: text.clone(),
                segment: text.clone(),
            },
            Delivery::Files => {
                std::fs::write(s.staging.join(STAGED_MEMORY), &text).unwrap();
                std::fs::write(s.staging.join(STAGED_SEGMENT), &text).unwrap();
                MemoryUpdate::Staged
            }
        });
        let body = match self.delivery {
            Delivery::Plain => ReplyBody::Text(text.clone()),
            Delivery::Files => {
                std::fs::write(s.staging.join(STAGED_BINDING), &text).unwrap();
                ReplyBody::Staged
            }
        };
        Ok(SessionReply {
            body,
            summary: Some(text),
            usage: Usage::default(),
            memory,
        })
    }
}

#[async_trait]
impl Judge for Leaky {
    fn name(&self) -> &str {
        "leaky"
    }
    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        self.prompts.lock().unwrap().push(input.text);
        let decision = match input.request.ask {
            Ask::Question => Decision::Question {
                prompt: format!("{SECRET} or not?"),
                options: vec![SECRET.to_owned(), "not".to_owned()],
            },
            _ => Decision::Yes,
        };
        Ok(Verdict {
            decision,
            confidence: 1.0,
            reason: format!("because of {SECRET}"),
            usage: Usage::default(),
        })
    }
    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        self.prompts.lock().unwrap().push(input.text);
        Ok(Value::list(vec![Value::text(SECRET)]).into())
    }
}

const PROGRAM: &str = r#"input given: "A value"
agent keeper:
  persist: true
  prompt: "You keep things"
let said = session: keeper
  prompt: "Say {given}"
if **{given} is a key**:
  let other = session "Again"
    context: said
for item in said:
  session "Look at {item}"
try:
  session "fail"
catch as err:
  output failed = err.message
output said = said
"#;

fn engine(project: &Project) -> Engine {
    Engine::with(EngineConfig {
        redactor: Redactor::new([("OUR_KEY", SECRET)]),
        ..project.config()
    })
}

fn leaky(delivery: Delivery) -> Arc<Leaky> {
    Arc::new(Leaky {
        delivery,
        prompts: Mutex::default(),
    })
}

fn backend<B: SessionBackend + Judge + 'static>(sessions: &Arc<B>) -> Backend {
    Backend {
        name: "leaky".to_owned(),
        simulated: false,
        sessions: sessions.clone(),
        judge: sessions.clone(),
        inputs: None,
        observer: None,
        mock_text: None,
    }
}

#[track_caller]
fn assert_hidden(project: &Project, run: &RunId, events: &[Arc<RunEvent>]) {
    for (name, content) in project.files(run) {
        assert!(!content.contains(SECRET), "{name} holds the key: {content}");
    }
    for event in events {
        let json = serde_json::to_string(event).unwrap();
        assert!(!json.contains(SECRET), "{json}");
    }
}

async fn leak(delivery: Delivery) {
    let project = Project::new(PROGRAM);
    let engine = engine(&project);
    let leaky = leaky(delivery);
    let backend = backend(&leaky);
    let request = RunRequest {
        bundle: project.bundle(),
        program: "main.prose".to_owned(),
        inputs: [("given".to_owned(), Value::text(SECRET))].into_iter().collect(),
        options: Default::default(),
        backend,
        attach: Attach::default(),
    };
    let mut handle = engine.start(request).await.unwrap();
    let events = all_events(&mut handle).await;
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["said"], "The key is [redacted OUR_KEY].");
    assert_eq!(outputs(&result)["failed"], "401 for [redacted OUR_KEY]");
    assert_complete(&events);

    assert_hidden(&project, &result.run_id, &events);
    for prompt in leaky.prompts.lock().unwrap().iter() {
        assert!(!prompt.contains(SECRET), "{prompt}");
    }
    let first = events.iter().find_map(|event| match &event.event {
        Event::SessionFinished { effect, .. } => Some(effect.clone()),
        _ => None,
    });
    let streamed: String = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::SessionText { effect, text } if Some(effect) == first.as_ref() => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(streamed, "it is [redacted OUR_KEY], I say sk-live");

    let asked: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::PermissionStarted {
                question,
                permission,
                detail,
                ..
            } => Some(format!("{question} {permission}: {detail}")),
            Event::PermissionFinished {
                question,
                answer,
                attended,
                ..
            } => {
                assert_eq!((*answer, *attended), (PermissionGrant::Deny, false));
                Some(format!("{question} refused"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        asked[..3],
        [
            "1 bash: echo [redacted OUR_KEY]",
            "1 refused",
            "2 bash: echo [redacted OUR_KEY]"
        ]
    );
    assert!(notices(&events)[0].starts_with(
        "refused: bash for [redacted OUR_KEY], echo [redacted OUR_KEY] (there is nobody to ask;"
    ));
}

#[tokio::test]
async fn a_plain_session_leaks_nothing() {
    leak(Delivery::Plain).await;
}

#[tokio::test]
async fn a_session_that_writes_files_leaks_nothing() {
    leak(Delivery::Files).await;
}

/// Runs a program until it waits for its one input.
async fn wait(project: &Project, engine: &Engine, leaky: &Arc<Leaky>) -> WaitingInput {
    let mut handle = project
        .start_with(engine, backend(leaky), Attach::default())
        .await;
    let events = all_events(&mut handle).await;
    let mut result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Waiting);
    assert_hidden(project, &result.run_id, &events);
    result.waiting.remove(0)
}

#[tokio::test]
async fn what_a_person_may_choose_leaks_nothing() {
    let project = Project::new("input pick: **which of them**\noutput said = pick\n");
    let waiting = wait(&project, &engine(&project), &leaky(Delivery::Plain)).await;
    assert_eq!(waiting.prompt, "[redacted OUR_KEY] or not?");
    assert_eq!(waiting.options, ["[redacted OUR_KEY]", "not"]);
}

#[tokio::test]
async fn what_a_resumed_run_is_given_leaks_nothing() {
    let project = Project::new("input why: \"Why?\"\noutput said = why\n");
    let (engine, leaky) = (engine(&project), leaky(Delivery::Plain));
    wait(&project, &engine, &leaky).await;
    let runs = std::fs::read_dir(project.root().join(".prose/runs")).unwrap();
    let name = runs.map(|run| run.unwrap().file_name()).next().unwrap();
    let mut request = resume_request(&RunId::from(name.to_str().unwrap()));
    request.backend = Some(backend(&leaky));
    request.inputs = [("why".to_owned(), Value::text(SECRET))].into();
    let mut handle = engine.resume(request).await.unwrap();
    let events = all_events(&mut handle).await;
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["said"], "[redacted OUR_KEY]");
    assert_hidden(&project, &result.run_id, &events);
}

/// Leaves a link to a file of the user in the place of a file of its own.
#[cfg(unix)]
struct Linking {
    /// The name in the staging folder that is a link.
    name: &'static str,
    target: std::path::PathBuf,
}

#[cfg(unix)]
#[async_trait]
impl SessionBackend for Linking {
    fn name(&self) -> &str {
        "linking"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Files,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }
    async fn spawn(&self, s: SessionSpawn) -> Result<SessionReply, Failure> {
        for name in [STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT] {
            let path = s.staging.join(name);
            if name == self.name {
                std::os::unix::fs::symlink(&self.target, path).unwrap();
            } else {
                std::fs::write(path, "my own").unwrap();
            }
        }
        Ok(SessionReply {
            body: ReplyBody::Staged,
            memory: Some(MemoryUpdate::Staged),
            ..SessionReply::text("")
        })
    }
}

#[cfg(unix)]
#[async_trait]
impl Judge for Linking {
    fn name(&self) -> &str {
        "linking"
    }
    async fn decide(&self, _: JudgeInput) -> Result<Verdict, Failure> {
        Err(failure(ErrorKind::Judge, "nothing to decide"))
    }
    async fn decode(&self, _: DecodeInput) -> Result<Reading, Failure> {
        Err(failure(ErrorKind::Judge, "nothing to decode"))
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_a_session_leaves_is_neither_read_nor_written_through() {
    let program = "agent keeper:\n  persist: true\noutput said = session: keeper\n  prompt: \"Say it\"\n";
    for name in [STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT] {
        let project = Project::new(program);
        let target = project.root().join(".prose/.env");
        let kept = format!("OUR_KEY={SECRET}\nNOTE=of the user\n");
        std::fs::write(&target, &kept).unwrap();
        let linking = Arc::new(Linking {
            name,
            target: target.clone(),
        });
        let mut handle = project
            .start_with(&engine(&project), backend(&linking), Attach::default())
            .await;
        let events = all_events(&mut handle).await;
        let result = handle.join().await.unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), kept);
        if name == STAGED_BINDING {
            let message = &result.error.as_ref().unwrap().message;
            assert!(
                message.ends_with("it is a link; a session has to write the text itself"),
                "{message}"
            );
        } else {
            assert_eq!(outputs(&result)["said"], "my own");
            let said = notices(&events);
            assert!(
                said[0].starts_with("what an agent wants to remember was not taken: can't read "),
                "{said:?}"
            );
        }
        for (name, content) in project.files(&result.run_id) {
            assert!(!content.contains("of the user"), "{name} holds the file");
        }
    }
}
