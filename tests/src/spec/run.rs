//! A run of a program under `simulate`, and what there is to say about it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;
use prose_agents::IssueObserver;
use prose_model::{
    Ask, BindKind, Bundle, Decision, Effect, End, Event, Failure, FrameKind, Issued, JudgeRequest,
    MemoryMode, PermissionValue, RunEvent, RunOptions, RunStatus, SessionRequest, Text, Value,
};
use prose_project::Loaded;
use prose_runtime::backends::{BackendSettings, Content, MockSource};
use prose_runtime::{
    Attach, Engine, EngineConfig, Overrides, ResumeRequest, RunError, RunHandle, RunRequest, RunResult,
    StreamItem, value_from_json,
};

use super::case::MAIN;
use super::page::{Case, Role};
use super::scene::{self, Stage};
use super::{Report, compare};

/// A finished run.
struct Ran {
    result: RunResult,
    events: Vec<Arc<RunEvent>>,
    /// What the machine asked for, in order.
    issued: Vec<Issued>,
    /// What sessions and judge were told.
    stage: Arc<Stage>,
}

/// Runs the case's program and holds its outcomes against what the page says.
pub fn check(case: &Case, loaded: &Loaded, root: &Path, report: &mut Report) {
    let bundle = match &loaded.bundle {
        Ok(bundle) => bundle.clone(),
        Err(_) => return report.fail(case.main.line, "the program can't be run"),
    };
    let ran = match run(case, bundle, root) {
        Ok(ran) => ran,
        Err((line, problem)) => return report.fail(line, problem),
    };
    let failed = ran.result.error.as_ref();
    if let Some(error) = failed
        && case.other(&Role::Error).is_none()
    {
        report.fail(case.main.line, format!("the run failed: {}", error.message));
    }
    for fence in &case.others {
        let actual = match &fence.role {
            Role::Output => ran
                .result
                .output_text()
                .unwrap_or_else(|error| Some(error.to_string()))
                .unwrap_or_default(),
            Role::Error => failed.map_or_else(
                || format!("none: the run {}", status(ran.result.status)),
                |error| format!("{}: {}", word(&error.kind), error.message),
            ),
            Role::Events => ran.events(),
            Role::Sessions => ran.sessions(),
            Role::Prompts => ran.prompts(),
            Role::Bindings => ran.bindings(),
            Role::RunFile(path) => ran.file(path),
            Role::ProjectFile(path) => ran.project_file(root, path),
            Role::Given => ran.tidy(&ran.stage.given()),
            Role::Decodings => ran.stage.decodings(),
            _ => continue,
        };
        compare::outcome(fence, &actual, report);
    }
}

fn run(case: &Case, bundle: Arc<Bundle>, root: &Path) -> Result<Ran, (usize, String)> {
    let mock = case.other(&Role::Mock);
    let engine = Engine::with(EngineConfig {
        home: Some(root.join("home")),
        fault: None,
        ..EngineConfig::new(root)
    });
    let settings = BackendSettings {
        name: Some("simulate".to_owned()),
        mock: mock.map(|fence| MockSource::Text(fence.text.clone())),
        realtime: false,
    };
    let at = mock.map_or(case.main.line, |fence| fence.line);
    let mut backend = engine
        .backend(&settings)
        .map_err(|error| (at, error.to_string()))?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    backend.observer = Some(Arc::new(Listening {
        inner: backend.observer,
        seen: seen.clone(),
    }));
    let stage = Arc::new(Stage::new(case.main.flags.scene.clone()));
    let backend = scene::on_stage(backend, &stage);
    let request = RunRequest {
        bundle,
        program: MAIN.to_owned(),
        inputs: inputs(case)?,
        options: RunOptions::default(),
        backend: backend.clone(),
        attach: stage.attach(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| (case.main.line, error.to_string()))?;
    let (result, events) = runtime
        .block_on(async {
            let (result, events) = told(engine.start(request).await?).await?;
            if result.status != RunStatus::Interrupted {
                return Ok((result, events));
            }
            let again = ResumeRequest {
                run_id: result.run_id,
                inputs: IndexMap::new(),
                changed: None,
                backend: Some(backend),
                overrides: Overrides::default(),
                attach: Attach::default(),
            };
            told(engine.resume(again).await?).await
        })
        .map_err(|error: RunError| (case.main.line, error.to_string()))?;
    for event in &events {
        crate::schema::check_event(event).map_err(|problem| (case.main.line, problem))?;
    }
    let issued = std::mem::take(&mut *seen.lock().unwrap());
    Ok(Ran {
        result,
        events,
        issued,
        stage,
    })
}

/// A run's end and all that it said.
async fn told(mut handle: RunHandle) -> Result<(RunResult, Vec<Arc<RunEvent>>), RunError> {
    let mut stream = handle.take_events();
    let mut events = Vec::new();
    while let Some(stream) = &mut stream
        && let Some(item) = stream.next().await
    {
        if let StreamItem::Event(event) = item {
            events.push(event);
        }
    }
    Ok((handle.join().await?, events))
}

/// The values of the `toml inputs` fence.
fn inputs(case: &Case) -> Result<IndexMap<String, Value>, (usize, String)> {
    let Some(fence) = case.other(&Role::Inputs) else {
        return Ok(IndexMap::new());
    };
    let table: IndexMap<String, serde_json::Value> =
        toml::from_str(&fence.text).map_err(|error| (fence.line, error.to_string()))?;
    Ok(table
        .into_iter()
        .map(|(name, value)| (name, value_from_json(value)))
        .collect())
}

/// Notes what is asked for.
struct Listening {
    inner: Option<Arc<dyn IssueObserver>>,
    seen: Arc<Mutex<Vec<Issued>>>,
}

impl IssueObserver for Listening {
    fn issued(&self, issued: &Issued, content: &dyn Content) -> Result<(), Failure> {
        self.seen.lock().unwrap().push(issued.clone());
        match &self.inner {
            Some(inner) => inner.issued(issued, content),
            None => Ok(()),
        }
    }
}

impl Ran {
    /// `researcher: Find sources (try 2 of 3)`, a line each.
    fn sessions(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            if let Some((_, subject)) = session_start(&event.event) {
                let _ = writeln!(text, "{subject}");
            }
        }
        text
    }

    /// What happens, a line each.
    fn events(&self) -> String {
        let mut lines = Vec::new();
        // What was said at the start of an effect or frame, to say it again at its end.
        let mut subjects: HashMap<String, String> = HashMap::new();
        for event in &self.events {
            if let Some(line) = line(&event.event, &mut subjects) {
                lines.push(line);
            }
        }
        let mut end = format!("run {}", status(self.result.status));
        for waiting in &self.result.waiting {
            let options = match waiting.options.as_slice() {
                [] => String::new(),
                options => format!(" [{}]", options.join(", ")),
            };
            let _ = write!(
                end,
                " for {}: {}{options}",
                waiting.name,
                waiting.prompt.trim_end()
            );
        }
        lines.push(end);
        lines.join("\n")
    }

    /// What each session is given, and what the judge is asked.
    fn prompts(&self) -> String {
        let mut text = String::new();
        for issued in &self.issued {
            let (head, parts) = match &issued.effect {
                Effect::Session(request) => self.session_parts(request),
                Effect::Judge(request) => self.judge_parts(request),
                _ => continue,
            };
            let _ = writeln!(text, "{head}");
            for (name, body) in parts {
                let body = body.trim_end().replace('\n', "\n    ");
                let _ = writeln!(text, "  {name}: {body}");
            }
        }
        text
    }

    fn session_parts(&self, request: &SessionRequest) -> (String, Vec<(String, String)>) {
        let mut head = vec!["session".to_owned()];
        head.extend(request.agent.as_ref().map(ToString::to_string));
        head.extend(request.model.as_ref().map(|model| format!("({model})")));
        let mut parts = Vec::new();
        let mut part = |name: &str, body: String| parts.push((name.to_owned(), body));
        if let Some(system) = &request.system {
            part("system", self.read(system));
        }
        part("task", self.read(&request.task));
        if request.context_given && request.context.is_empty() {
            part("context", "none".to_owned());
        }
        for item in &request.context {
            let value = match &item.memory_of {
                Some(memory) => format!("the memory of {}", memory.agent),
                None => self.result.to_text(&item.value).unwrap_or_default(),
            };
            part(&format!("context {}", item.label), value);
        }
        if !request.skills.is_empty() {
            part("skills", request.skills.join(", "));
        }
        for rule in &request.permissions {
            let value = match &rule.rule {
                PermissionValue::Allow => "allow".to_owned(),
                PermissionValue::Deny => "deny".to_owned(),
                PermissionValue::Prompt => "prompt".to_owned(),
                PermissionValue::Patterns(patterns) => patterns.join(", "),
            };
            part(&format!("permission {}", rule.key), value);
        }
        if let Some(memory) = &request.memory {
            let mode = match memory.mode {
                MemoryMode::Fresh => "fresh",
                MemoryMode::Resume => "resumed",
                MemoryMode::Read => "read",
            };
            part("memory", format!("{mode}, {}", word(&memory.persist)));
        }
        if let Some(scope) = &request.scope {
            part(
                "scope",
                format!(
                    "block {} #{}, depth {}",
                    scope.block, scope.execution_id, scope.depth
                ),
            );
        }
        (head.join(" "), parts)
    }

    fn judge_parts(&self, request: &JudgeRequest) -> (String, Vec<(String, String)>) {
        let head = match &request.ask {
            Ask::Condition => "judge a condition".to_owned(),
            Ask::Loop { until, test, .. } => {
                format!(
                    "judge {} (test {})",
                    if *until { "until" } else { "while" },
                    test + 1
                )
            }
            Ask::Choice { options } => format!("judge a choice of {}", options.join(", ")),
            Ask::Value => "judge a value".to_owned(),
            Ask::Question => "judge how to ask".to_owned(),
        };
        let mut parts = vec![("text".to_owned(), self.read(&request.text))];
        for visible in &request.names {
            let value = self
                .result
                .to_json(&visible.value)
                .map_or_else(|error| error.to_string(), |json| json.to_string());
            parts.push((format!("name {}", visible.name), value));
        }
        if let Ask::Loop { previous, .. } = &request.ask
            && !previous.is_empty()
        {
            let verdicts: Vec<String> = previous.iter().map(|it| decision(&it.decision)).collect();
            parts.push(("before".to_owned(), verdicts.join(", ")));
        }
        for session in &request.history {
            parts.push((format!("done {}", session.label), session.summary.clone()));
        }
        (head, parts)
    }

    fn read(&self, text: &Text) -> String {
        self.result
            .content()
            .read(text)
            .unwrap_or_else(|failure| failure.message)
    }

    /// `let draft__3 = "…"`, in the order in which the names were first bound.
    fn bindings(&self) -> String {
        let mut bindings: IndexMap<String, String> = IndexMap::new();
        for event in &self.events {
            let Event::Bound {
                binding, kind, value, ..
            } = &event.event
            else {
                continue;
            };
            let Some(word) = kind.file_kind() else {
                continue;
            };
            let mut name = String::new();
            for program in &binding.program {
                let _ = write!(name, "{program}/");
            }
            name.push_str(&binding.name);
            if let Some(id) = binding.execution_id {
                let _ = write!(name, "__{id}");
            }
            let word = match kind {
                BindKind::Branch => "branch",
                _ => word,
            };
            let value = self
                .result
                .to_json(value)
                .map_or_else(|error| error.to_string(), |json| json.to_string());
            // The first kind stays: an assignment changes a `let`, it does not declare it again.
            match bindings.get_mut(&name) {
                Some(line) => {
                    let head = line.split(" = ").next().unwrap_or_default().to_owned();
                    *line = format!("{head} = {value}");
                }
                None => {
                    bindings.insert(name.clone(), format!("{word} {name} = {value}"));
                }
            }
        }
        bindings.into_values().collect::<Vec<_>>().join("\n")
    }

    /// A file of the run's folder; the run's id, in its path and its text, reads `RUN`.
    fn file(&self, path: &str) -> String {
        let path = path.replace("RUN", self.result.run_id.as_str());
        self.read_file(&self.result.dir.join(path))
    }

    /// A file of the project's folder.
    fn project_file(&self, root: &Path, path: &str) -> String {
        let path = path.replace("RUN", self.result.run_id.as_str());
        self.read_file(&root.join(path))
    }

    fn read_file(&self, path: &Path) -> String {
        match std::fs::read_to_string(path) {
            Ok(text) => without_times(&text.replace(self.result.run_id.as_str(), "RUN")),
            Err(_) => "there is no such file".to_owned(),
        }
    }

    /// A text with the run's folder written as `RUN`.
    fn tidy(&self, text: &str) -> String {
        let dir = self.result.dir.display().to_string();
        let text = text.replace(&dir, "RUN");
        if cfg!(windows) {
            text.replace('\\', "/")
        } else {
            text
        }
    }
}

/// The text with `TIME` in place of each time, written as in `2026-01-31T09:30:00Z`.
fn without_times(text: &str) -> String {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00Z";
    let is_time = |at: &[u8]| {
        at.iter().zip(SHAPE).all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        })
    };
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(window) = text.as_bytes().get(at..at + SHAPE.len()) {
        if is_time(window) {
            out.push_str(&text[done..at]);
            out.push_str("TIME");
            at += SHAPE.len();
            done = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&text[done..]);
    out
}

fn session_start(event: &Event) -> Option<(String, String)> {
    let Event::SessionStarted {
        effect,
        agent,
        label,
        attempt,
        max_attempts,
        ..
    } = event
    else {
        return None;
    };
    let mut subject = match agent {
        Some(agent) => format!("{agent}: {label}"),
        None => label.clone(),
    };
    if *attempt > 1 {
        let _ = write!(subject, " (try {attempt} of {max_attempts})");
    }
    Some((effect.to_string(), subject))
}

fn line(event: &Event, subjects: &mut HashMap<String, String>) -> Option<String> {
    if let Some((effect, subject)) = session_start(event) {
        subjects.insert(effect, subject.clone());
        return Some(format!("start {subject}"));
    }
    Some(match event {
        Event::SessionFinished {
            effect, end, summary, ..
        } => {
            let subject = subjects.remove(effect.as_str()).unwrap_or_default();
            match end {
                End::Ok => format!("done {subject}"),
                End::Failed => format!("failed {subject}: {summary}"),
                _ => format!("{} {subject}", ending(*end)),
            }
        }
        Event::JudgeStarted { effect, text, .. } => {
            subjects.insert(
                effect.to_string(),
                text.split_whitespace().collect::<Vec<_>>().join(" "),
            );
            return None;
        }
        Event::JudgeFinished { effect, end, verdict } => {
            let subject = subjects.remove(effect.as_str()).unwrap_or_default();
            let answer = match verdict {
                Some(verdict) => decision(&verdict.decision),
                None => ending(*end).to_owned(),
            };
            format!("judge **{subject}**: {answer}")
        }
        Event::InputStarted {
            name,
            prompt,
            options,
            ..
        } => {
            let options = match options.as_slice() {
                [] => String::new(),
                options => format!(" [{}]", options.join(", ")),
            };
            format!("ask {name}: {}{options}", prompt.trim_end())
        }
        Event::FrameStarted {
            frame,
            kind: kind @ (FrameKind::Block | FrameKind::Program),
            name,
            ..
        } => {
            let subject = format!("{} {name} #{frame}", word(kind));
            subjects.insert(format!("frame {frame}"), subject.clone());
            format!("enter {subject}")
        }
        Event::FrameFinished { frame, end } => {
            let subject = subjects.remove(&format!("frame {frame}"))?;
            match end {
                End::Ok => format!("leave {subject}"),
                _ => format!("leave {subject}: {}", ending(*end)),
            }
        }
        Event::SleepStarted { ms, .. } => format!("wait {ms} ms"),
        Event::Warning { code, message, .. } => format!("warning {code}: {message}"),
        Event::Narration { line } => line.clone(),
        Event::Notice { level, message } => format!("{level}: {message}"),
        _ => return None,
    })
}

fn ending(end: End) -> &'static str {
    match end {
        End::Ok => "done",
        End::Failed => "failed",
        End::Cancelled => "cancelled",
        End::Left => "left early",
    }
}

fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Yes => "yes".to_owned(),
        Decision::No => "no".to_owned(),
        Decision::Unsure => "unsure".to_owned(),
        Decision::NoProgress => "no progress".to_owned(),
        Decision::Option(label) => label.clone(),
        Decision::Value(_) => "a value".to_owned(),
        Decision::Question { prompt, .. } => prompt.clone(),
    }
}

fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Waiting => "waits",
        RunStatus::OutOfBudget => "out of budget",
        RunStatus::Interrupted => "interrupted",
    }
}

/// The word a unit variant is written with in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}
