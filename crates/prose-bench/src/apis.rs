//! Sessions straight through a model's API, many at once, against a mock of the service in a process of its own, so that only
//! our side is measured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mock_model::{Answer, MockModel, Script};
use prose_agents::api::{AnthropicFactory, OpenAiFactory};
use prose_agents::prompt::RenderedPrompt;
use prose_agents::{
    BackendContext, BackendFactory as _, BackendSettings, CancelToken, Clock, NullSink, SessionBackend,
    SessionSpawn, SpendLimit,
};
use prose_model::backend::{BackendSpec, Variables};
use prose_model::{BindKind, BindingRef, BindingTarget, SessionRequest, SourceRange, Text};

use crate::machine;
use crate::runs::RunOutcome;

/// Sessions at once.
const AT_ONCE: u64 = 200;
/// Rounds before the figures count: connections and buffers are there then.
const WARM: u64 = 2;

/// The kinds of backend that are measured.
pub const KINDS: [&str; 2] = ["anthropic", "openai"];

/// Serves the mock, says its address on standard output, and ends when standard input does.
///
/// # Errors
/// Those of the system.
pub fn serve() -> std::io::Result<()> {
    let answer = Answer::text("word and word ".repeat(60))
        .chunk(24)
        .tokens(100, 50)
        .delay(Duration::from_millis(5));
    let mock = MockModel::start_blocking(Script::always(answer))?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", mock.url())?;
    stdout.flush()?;
    std::io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Many sessions on a backend, 200 at once. The memory is what came on top after the first rounds.
///
/// # Errors
/// A sentence, when a session fails.
pub fn measure(kind: &str, rounds: u64) -> Result<RunOutcome, String> {
    let service = Service::start().map_err(|error| format!("the mock does not start: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let sessions = backend(kind, &service.url)?;
    let process = std::process::id();
    let mut begun = (Instant::now(), machine::cpu(process), machine::resident(process));
    let mut most = 0;
    for round in 0..WARM + rounds {
        if round == WARM {
            begun = (Instant::now(), machine::cpu(process), machine::resident(process));
        }
        runtime.block_on(at_once(&sessions, dir.path()))?;
        if round >= WARM {
            most = most.max(machine::resident(process));
        }
    }
    Ok(RunOutcome {
        what: format!(
            "{} sessions through the API of `{kind}`, {AT_ONCE} at once (memory: beyond the first {})",
            rounds * AT_ONCE,
            WARM * AT_ONCE
        ),
        count: rounds * AT_ONCE,
        wall: begun.0.elapsed(),
        cpu: machine::cpu(process).saturating_sub(begun.1),
        grown: most.saturating_sub(begun.2),
    })
}

async fn at_once(sessions: &Arc<dyn SessionBackend>, dir: &Path) -> Result<(), String> {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let (sessions, session) = (sessions.clone(), session(number, dir));
        tasks.spawn(async move { sessions.spawn(session).await.map_err(|failure| failure.message) });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn backend(kind: &str, url: &str) -> Result<Arc<dyn SessionBackend>, String> {
    let spec = BackendSpec {
        name: kind.to_owned(),
        kind: kind.to_owned(),
        base_url: Some(url.to_owned()),
        models: [("sonnet".to_owned(), "mock".to_owned())].into(),
        ..BackendSpec::default()
    };
    let (settings, variables) = (BackendSettings::default(), Variables::default());
    let context = BackendContext {
        settings: &settings,
        spec: &spec,
        variables: &variables,
    };
    let created = match kind {
        "anthropic" => AnthropicFactory::default().create(context),
        _ => OpenAiFactory::default().create(context),
    };
    created
        .map(|backend| backend.sessions)
        .map_err(|error| error.to_string())
}

fn session(number: u64, dir: &Path) -> SessionSpawn {
    let request = SessionRequest {
        agent: None,
        label: "look".to_owned(),
        model: None,
        system: None,
        task: Text::inline("look"),
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
    SessionSpawn {
        effect: format!("main/{number}").as_str().into(),
        order: number,
        lease: 1,
        request: Arc::new(request),
        prompt: RenderedPrompt {
            system: "You are strict.".to_owned(),
            user: "Look at it. ".repeat(200),
            ..RenderedPrompt::default()
        },
        work_dir: dir.to_owned(),
        staging: dir.join("staging"),
        memory: None,
        timeout: None,
        budget: SpendLimit::default(),
        sink: Arc::new(NullSink),
        cancel: CancelToken::new(),
        clock: Clock::Real,
    }
}

/// The mock in a process of its own, which ends when this is dropped.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start() -> std::io::Result<Service> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut url)?;
        }
        Ok(Service {
            child,
            url: url.trim().to_owned(),
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It ends with its input; what becomes of it then does not matter.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
