//! A backend that talks to a mock, and a sink that keeps what it is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mock_model::MockModel;
use prose_agents::api::{AnthropicFactory, Limits, OpenAiFactory};
use prose_agents::prompt::RenderedPrompt;
use prose_agents::*;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::*;

/// Both kinds.
pub const KINDS: [&str; 2] = ["anthropic", "openai"];
/// The key that the mock is given.
pub const KEY: &str = "sk-test-0123456789abcdef";

/// Limits under which nothing waits long.
pub fn limits() -> Limits {
    Limits {
        backoff: Duration::from_millis(1),
        longest_wait: Duration::from_secs(5),
        rounds: 6,
        ..Limits::default()
    }
}

/// What configuration says for a backend that talks to the mock.
pub fn spec(kind: &str, mock: &MockModel) -> BackendSpec {
    BackendSpec {
        name: kind.to_owned(),
        kind: kind.to_owned(),
        base_url: Some(mock.url()),
        api_key_env: Some("TEST_KEY".to_owned()),
        models: [("sonnet", "model-s"), ("opus", "model-o")]
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .into(),
        ..BackendSpec::default()
    }
}

pub fn variables() -> Variables {
    Variables::new(
        BTreeMap::from([("TEST_KEY".to_owned(), KEY.to_owned())]),
        BTreeMap::new(),
    )
}

pub fn create(spec: &BackendSpec, variables: &Variables, limits: Limits) -> Result<Backend, BackendError> {
    let context = BackendContext {
        settings: &BackendSettings::default(),
        spec,
        variables,
    };
    match spec.kind.as_str() {
        "anthropic" => AnthropicFactory { limits }.create(context),
        _ => OpenAiFactory { limits }.create(context),
    }
}

pub fn backend(kind: &str, mock: &MockModel) -> Backend {
    create(&spec(kind, mock), &variables(), limits()).unwrap()
}

/// Keeps what a session reports.
#[derive(Default)]
pub struct Kept {
    pub started: Mutex<Vec<Option<String>>>,
    pub updates: Mutex<Vec<SessionUpdate>>,
    pub notices: Mutex<Vec<String>>,
}

impl Kept {
    pub fn text(&self) -> String {
        let updates = self.updates.lock().unwrap();
        let texts = updates.iter().filter_map(|update| match update {
            SessionUpdate::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
    pub fn usage(&self) -> Option<Usage> {
        let updates = self.updates.lock().unwrap();
        updates.iter().rev().find_map(|update| match update {
            SessionUpdate::Usage(usage) => Some(*usage),
            _ => None,
        })
    }
    pub fn tools(&self) -> Vec<String> {
        let updates = self.updates.lock().unwrap();
        let tools = updates.iter().filter_map(|update| match update {
            SessionUpdate::Tool { name, detail } => Some(format!("{name} {detail}")),
            _ => None,
        });
        tools.collect()
    }
}

#[async_trait]
impl SessionSink for Kept {
    async fn started(&self, _: Option<serde_json::Value>, model: Option<String>) -> Result<(), Failure> {
        self.started.lock().unwrap().push(model);
        Ok(())
    }
    fn update(&self, update: SessionUpdate) {
        self.updates.lock().unwrap().push(update);
    }
    fn notice(&self, message: String) {
        self.notices.lock().unwrap().push(message);
    }
    async fn ask_permission(&self, _: PermissionQuestion) -> PermissionAnswer {
        PermissionAnswer::Deny
    }
}

/// A session with that task.
pub fn spawn(task: &str) -> (SessionSpawn, Arc<Kept>) {
    let sink = Arc::<Kept>::default();
    let request = SessionRequest {
        agent: None,
        label: task.to_owned(),
        model: None,
        system: None,
        task: Text::inline(task),
        context: Vec::new(),
        context_given: false,
        skills: Vec::new(),
        permissions: Vec::new(),
        memory: None,
        binding: BindingTarget {
            binding: BindingRef {
                name: "result".into(),
                execution_id: None,
                program: Vec::new(),
            },
            bind_kind: BindKind::Let,
            source: SourceRange {
                file: 0,
                start: 0,
                end: 0,
            },
        },
        scope: None,
        attempt: 1,
        max_attempts: 1,
    };
    let session = SessionSpawn {
        effect: "main/1".into(),
        order: 0,
        lease: 1,
        request: Arc::new(request),
        prompt: RenderedPrompt {
            system: "You are strict.".to_owned(),
            user: task.to_owned(),
            ..RenderedPrompt::default()
        },
        work_dir: PathBuf::from("/nowhere"),
        staging: PathBuf::new(),
        memory: None,
        timeout: None,
        budget: SpendLimit::default(),
        sink: sink.clone(),
        cancel: CancelToken::new(),
        clock: Clock::Real,
    };
    (session, sink)
}

/// Runs a session with that task.
pub async fn run(backend: &Backend, task: &str) -> (Result<SessionReply, Failure>, Arc<Kept>) {
    let (session, sink) = spawn(task);
    (backend.sessions.spawn(session).await, sink)
}

pub fn text(reply: &SessionReply) -> &str {
    match &reply.body {
        ReplyBody::Text(text) => text,
        ReplyBody::Staged => "(staged)",
    }
}
