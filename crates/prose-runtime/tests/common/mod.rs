//! A project in a temporary folder, a program and a mock in it, and runs of them.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{Bundle, Event, Order, RunEvent, RunId, RunOptions, Value};
use prose_runtime::backends::{Backend, BackendSettings, MockSource};
use prose_runtime::{
    Attach, Engine, EngineConfig, Fault, ResumeRequest, RunError, RunHandle, RunRequest, RunResult,
    StreamItem,
};

pub struct Project {
    pub dir: tempfile::TempDir,
}

impl Project {
    /// A project that holds `main.prose`.
    pub fn new(program: &str) -> Project {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".prose")).unwrap();
        std::fs::write(dir.path().join("main.prose"), program).unwrap();
        Project { dir }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn bundle(&self) -> Arc<Bundle> {
        let loaded = prose_project::load(&self.root().join("main.prose"), self.root()).unwrap();
        loaded
            .bundle
            .unwrap_or_else(|errors| panic!("the program has errors: {errors:#?}"))
    }

    pub fn config(&self) -> EngineConfig {
        EngineConfig {
            home: Some(self.root().join("home")),
            fault: None,
            ..EngineConfig::new(self.root())
        }
    }

    pub fn engine(&self) -> Engine {
        Engine::with(self.config())
    }

    pub fn engine_with(&self, fault: Option<Fault>) -> Engine {
        Engine::with(EngineConfig {
            fault,
            ..self.config()
        })
    }

    /// Starts the program with the simulate backend.
    pub async fn start(&self, engine: &Engine, mock: &str) -> RunHandle {
        let backend = simulate(engine, mock);
        self.start_with(engine, backend, Attach::default()).await
    }

    pub async fn start_with(&self, engine: &Engine, backend: Backend, attach: Attach) -> RunHandle {
        let request = RunRequest {
            bundle: self.bundle(),
            program: "main.prose".to_owned(),
            inputs: IndexMap::new(),
            options: RunOptions::default(),
            backend,
            attach,
        };
        engine.start(request).await.unwrap()
    }

    /// Runs the program to its end with the simulate backend.
    pub async fn run(&self, mock: &str) -> RunResult {
        self.start(&self.engine(), mock).await.join().await.unwrap()
    }

    pub async fn resume(&self, engine: &Engine, run_id: &RunId) -> Result<RunResult, RunError> {
        engine.resume(resume_request(run_id)).await?.join().await
    }

    /// The run's directory, with the path of every file that matters after a run and its content.
    pub fn files(&self, run_id: &RunId) -> IndexMap<String, String> {
        let root = self.root().join(".prose/runs").join(run_id.as_str());
        let mut files = IndexMap::new();
        walk(&root, &root, &mut files);
        files.sort_keys();
        files
    }
}

pub fn resume_request(run_id: &RunId) -> ResumeRequest {
    ResumeRequest {
        run_id: run_id.clone(),
        inputs: IndexMap::new(),
        changed: None,
        backend: None,
        overrides: Default::default(),
        attach: Attach::default(),
    }
}

pub fn simulate(engine: &Engine, mock: &str) -> Backend {
    let settings = BackendSettings {
        name: Some("simulate".to_owned()),
        mock: Some(MockSource::Text(mock.to_owned())),
        realtime: false,
    };
    engine.backend(&settings).unwrap()
}

fn walk(root: &Path, dir: &Path, files: &mut IndexMap<String, String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            walk(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .replace('\\', "/");
            files.insert(
                name,
                String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
            );
        }
    }
}

/// Every event of a run, none missing.
pub async fn all_events(handle: &mut RunHandle) -> Vec<Arc<RunEvent>> {
    let mut stream = handle.take_events().unwrap();
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            StreamItem::Event(event) => events.push(event),
            StreamItem::Gap(gap) => panic!("{} events are missing", gap.missed),
        }
    }
    events
}

/// Checks that each start has exactly one end and that machine events are numbered without gaps.
#[track_caller]
pub fn assert_complete(events: &[Arc<RunEvent>]) {
    let mut open: IndexMap<String, u32> = IndexMap::new();
    let mut next = 0;
    for event in events {
        if let Order::Machine { seq } = event.order {
            assert_eq!(seq, next, "{event:?}");
            next += 1;
        }
        let json = serde_json::to_value(&event.event).unwrap();
        let kind = json["type"].as_str().unwrap().to_owned();
        let Some((what, end)) = kind
            .strip_suffix("_started")
            .map(|what| (what, false))
            .or_else(|| kind.strip_suffix("_finished").map(|what| (what, true)))
        else {
            continue;
        };
        let key = match what {
            "statement" => json["path"].to_string(),
            "frame" => json["frame"].to_string(),
            "construct" => json["construct"].to_string(),
            "part" => format!("{}/{}", json["construct"], json["index"]),
            "run" => String::new(),
            "permission" => json["question"].to_string(),
            _ => json["effect"].to_string(),
        };
        let count = open.entry(format!("{what} {key}")).or_default();
        if end {
            assert_eq!(*count, 1, "{what} {key} ends without a start");
            *count = 0;
        } else {
            assert_eq!(*count, 0, "{what} {key} starts twice");
            *count = 1;
        }
    }
    open.retain(|_, count| *count > 0);
    assert!(open.is_empty(), "never ended: {open:#?}");
}

/// Outputs as text.
pub fn outputs(result: &RunResult) -> IndexMap<String, String> {
    result
        .outputs
        .iter()
        .map(|(name, value)| (name.clone(), result.to_text(value).unwrap()))
        .collect()
}

pub fn text(value: &str) -> Value {
    Value::text(value)
}

/// Messages of all notices.
pub fn notices(events: &[Arc<RunEvent>]) -> Vec<String> {
    let notice = |event: &Arc<RunEvent>| match &event.event {
        Event::Notice { message, .. } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(notice).collect()
}
