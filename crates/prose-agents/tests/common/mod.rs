//! What the tests of backends that start agents have in common.
#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prose_agents::prompt::RenderedPrompt;
use prose_agents::*;
use prose_model::*;
use serde_json::Value as Json;

/// Records what a session reports; answers questions about permissions with `answer`.
pub struct Recorder {
    pub answer: PermissionAnswer,
    lines: Mutex<Vec<String>>,
    pub child: Mutex<Option<u32>>,
}

impl Recorder {
    pub fn new(answer: PermissionAnswer) -> Arc<Recorder> {
        Arc::new(Recorder {
            answer,
            lines: Mutex::default(),
            child: Mutex::default(),
        })
    }

    pub fn push(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    pub fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }
}

#[async_trait]
impl SessionSink for Recorder {
    async fn started(&self, handle: Option<Json>, model: Option<String>) -> Result<(), Failure> {
        self.push(format!("started {handle:?} {}", model.unwrap_or_default()));
        Ok(())
    }
    async fn child(&self, pid: u32) -> Result<(), Failure> {
        *self.child.lock().unwrap() = Some(pid);
        Ok(())
    }
    fn update(&self, update: SessionUpdate) {
        self.push(match update {
            SessionUpdate::Text(text) => format!("text {text:?}"),
            SessionUpdate::Tool { name, detail } => format!("tool {name} {detail}"),
            SessionUpdate::Usage(usage) => format!("usage {} {}", usage.input_tokens, usage.output_tokens),
        });
    }
    fn notice(&self, message: String) {
        self.push(format!("notice {message}"));
    }
    async fn ask_permission(&self, question: PermissionQuestion) -> PermissionAnswer {
        self.push(format!(
            "ask {} {}: {}",
            question.key, question.tool, question.detail
        ));
        self.answer
    }
}

pub fn request() -> SessionRequest {
    SessionRequest {
        agent: Some("critic".into()),
        label: "judge".to_owned(),
        model: Some("opus".to_owned()),
        system: None,
        task: Text::inline("judge"),
        context: Vec::new(),
        context_given: false,
        skills: Vec::new(),
        permissions: Vec::new(),
        memory: None,
        binding: BindingTarget {
            binding: BindingRef {
                name: "verdict".into(),
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
    }
}

pub fn rule(key: &str, rule: PermissionValue) -> PermissionRule {
    PermissionRule {
        key: key.into(),
        rule,
    }
}

pub fn patterns(list: &[&str]) -> PermissionValue {
    PermissionValue::Patterns(list.iter().map(|one| (*one).to_owned()).collect())
}

/// A session that works in a folder.
pub fn spawn(work_dir: PathBuf, sink: Arc<dyn SessionSink>) -> SessionSpawn {
    SessionSpawn {
        effect: "e1".into(),
        order: 0,
        lease: 1,
        request: Arc::new(request()),
        prompt: RenderedPrompt {
            system: "You are a critic.".to_owned(),
            user: "Judge the draft: it's \"fine\".".to_owned(),
            files: Vec::new(),
        },
        staging: work_dir.join(".prose/staging"),
        work_dir,
        memory: None,
        timeout: None,
        budget: SpendLimit::default(),
        sink,
        cancel: CancelToken::new(),
        clock: Clock::Real,
    }
}

/// Waits until a process is gone.
pub fn gone(pid: u32) {
    let until = Instant::now() + Duration::from_secs(30);
    while process::identify(pid).is_some() {
        assert!(Instant::now() < until, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a file that ends with a line.
pub fn wait_for(path: &Path) -> String {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(Instant::now() < until, "{} does not come", path.display()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A question whether a condition holds.
pub fn condition(text: &str) -> JudgeInput {
    JudgeInput {
        effect: "e1".into(),
        stmt: "main/0".into(),
        request: Arc::new(JudgeRequest {
            ask: Ask::Condition,
            text: Text::inline(text),
            names: Vec::new(),
            history: Vec::new(),
        }),
        text: text.to_owned(),
        attempt: 1,
        content: Arc::new(InlineContent),
        cancel: CancelToken::new(),
    }
}
