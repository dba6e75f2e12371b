//! What the tests of backends that start agents have in common.
#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use mock_model::scripted;
use prose_agents::prompt::RenderedPrompt;
use prose_agents::*;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::*;
use serde_json::Value as Json;

/// Records what a session reports; answers questions about permissions with `answer`.
pub struct Recorder {
    pub answer: PermissionAnswer,
    lines: Mutex<Vec<String>>,
    pub child: Mutex<Option<u32>>,
    /// What the run hides.
    pub redactor: Mutex<Redactor>,
}

impl Recorder {
    pub fn new(answer: PermissionAnswer) -> Arc<Recorder> {
        Arc::new(Recorder {
            answer,
            lines: Mutex::default(),
            child: Mutex::default(),
            redactor: Mutex::default(),
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
    fn redactor(&self) -> Redactor {
        self.redactor.lock().unwrap().clone()
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

/// A folder with a workspace, a staging folder, a folder `log` for what is kept, a program in an agent's place, and the backend
/// that starts it.
pub struct Stage {
    pub root: tempfile::TempDir,
    pub backend: Backend,
    pub sink: Arc<Recorder>,
}

impl Stage {
    /// `text` makes the program's text of its places. `spec` says what is configured but the program.
    pub fn set(
        factory: &dyn BackendFactory,
        variables: &Variables,
        mut spec: BackendSpec,
        program: &str,
        text: impl FnOnce(&[(&str, &Path)]) -> String,
        answer: PermissionAnswer,
    ) -> Stage {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let (log, staging) = (path.join("log"), path.join("work/.prose/staging"));
        for folder in [&log, &staging] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let program = path.join(program);
        scripted::install(&program, &text(&[("D", &log), ("S", &staging)])).unwrap();
        spec.command = Some(program.display().to_string());
        let backend = create(factory, &spec, variables).unwrap();
        Stage {
            root,
            backend,
            sink: Recorder::new(answer),
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    pub fn session(&self, change: impl FnOnce(&mut SessionRequest, &mut SessionSpawn)) -> SessionSpawn {
        let mut asked = request();
        let mut spawn = spawn(self.path("work"), self.sink.clone());
        change(&mut asked, &mut spawn);
        spawn.request = Arc::new(asked);
        spawn
    }

    /// Runs a session, which has to fail; the kind of its failure, and its message with `ROOT` for the folder.
    pub async fn failure(&self, session: SessionSpawn, key: &str) -> (Failure, String) {
        let failure = self.backend.sessions.spawn(session).await.unwrap_err();
        let text = format!("{:?}: {}", failure.kind, failure.message);
        let root = self.path("").display().to_string();
        assert!(!failure.message.contains(key));
        let text = text.replace(root.trim_end_matches('/'), "ROOT");
        (failure, text)
    }
}

pub fn create(
    factory: &dyn BackendFactory,
    spec: &BackendSpec,
    variables: &Variables,
) -> Result<Backend, BackendError> {
    factory.create(BackendContext {
        settings: &BackendSettings::default(),
        spec,
        variables,
    })
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
        budget: SpendLimit::default(),
        cancel: CancelToken::new(),
    }
}
