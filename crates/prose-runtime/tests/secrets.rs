//! Secrets that a session, a judge or a person brings in are nowhere to be found afterwards; and questions about
//! permissions are events.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use common::{Project, all_events, assert_complete, notices, outputs};
use prose_agents::prompt::{STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT};
use prose_agents::{
    Backend, Capabilities, DecodeInput, Delivery, Judge, JudgeInput, MemoryUpdate, PermissionQuestion,
    Redactor, ReplyBody, SessionBackend, SessionReply, SessionSpawn, SessionUpdate, failure,
};
use prose_model::{Decision, ErrorKind, Event, Failure, PermissionGrant, Usage, Value, Verdict};
use prose_runtime::{Attach, Engine, EngineConfig, RunRequest};

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
            name: "bash".to_owned(),
            detail: format!("curl -H {SECRET}"),
        });
        let question = PermissionQuestion {
            key: "bash".to_owned(),
            tool: "bash".to_owned(),
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
        Ok(Verdict {
            decision: Decision::Yes,
            confidence: 1.0,
            reason: format!("because of {SECRET}"),
            usage: Usage::default(),
        })
    }
    async fn decode(&self, input: DecodeInput) -> Result<Value, Failure> {
        self.prompts.lock().unwrap().push(input.text);
        Ok(Value::list(vec![Value::text(SECRET)]))
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

async fn leak(delivery: Delivery) {
    let project = Project::new(PROGRAM);
    let engine = Engine::with(EngineConfig {
        redactor: Redactor::new([("OUR_KEY", SECRET)]),
        ..project.config()
    });
    let leaky = Arc::new(Leaky {
        delivery,
        prompts: Mutex::default(),
    });
    let backend = Backend {
        name: "leaky".to_owned(),
        simulated: false,
        sessions: leaky.clone(),
        judge: leaky.clone(),
        inputs: None,
        observer: None,
        mock_text: None,
    };
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

    for (name, content) in project.files(&result.run_id) {
        assert!(!content.contains(SECRET), "{name} holds the key: {content}");
    }
    for event in &events {
        let json = serde_json::to_string(event).unwrap();
        assert!(!json.contains(SECRET), "{json}");
    }
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
    assert!(
        notices(&events)[0].starts_with("refused: bash echo [redacted OUR_KEY] (there is nobody to ask;")
    );
}

#[tokio::test]
async fn a_plain_session_leaks_nothing() {
    leak(Delivery::Plain).await;
}

#[tokio::test]
async fn a_session_that_writes_files_leaks_nothing() {
    leak(Delivery::Files).await;
}
