//! [`Engine`] by `prose-runtime`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use prose_model::{EffectId, RunEvent, RunId, RunOptions, StateIn};
use prose_project::{Config, Environment, StateKind, Trust, find_root, home};
use prose_runtime::backends::{BackendSettings, MockFile, MockSource, PermissionAnswer, PermissionQuestion};
use prose_runtime::runs::{RunState, list_runs};
use prose_runtime::{
    Attach, EngineConfig, Gap, InputMode, Overrides, PermissionProvider, ResumeRequest, RunControl,
    RunHandle, RunRequest, StreamItem, value_from_json,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::engine::{
    Changes, Control, Engine, How, Resumption, RunError, RunSummary, SIMULATE, StartRequest, Started,
};
use super::report::status_word;
use crate::outbox::Outbox;

/// How long a person may think about a permission before the answer is no.
const PERMISSION_PATIENCE: Duration = Duration::from_secs(10 * 60);

/// So many events of a run are between its queue and the task that tells the client.
const EVENTS_ON_THE_WAY: usize = 64;

/// Runs programs of the client's workspace.
pub(crate) struct Runtime {
    outbox: Outbox,
    /// Project roots of the runs that were started here.
    roots: Arc<Mutex<BTreeMap<RunId, PathBuf>>>,
}

impl Runtime {
    /// Asks the client through `outbox` when a session wants what a person has to allow.
    pub(crate) fn new(outbox: Outbox) -> Runtime {
        Runtime {
            outbox,
            roots: Arc::default(),
        }
    }

    fn attach(&self) -> Attach {
        Attach {
            inputs: InputMode::Ask,
            permissions: Some(Arc::new(AskClient {
                outbox: self.outbox.clone(),
            })),
            ..Attach::default()
        }
    }
}

impl Engine for Runtime {
    fn start(&self, request: StartRequest) -> BoxFuture<'static, Result<Started, RunError>> {
        let (attach, roots) = (self.attach(), Arc::clone(&self.roots));
        async move {
            let StartRequest { bundle, path, inputs, how } = request;
            if let Some(target) = bundle.programs.iter().flat_map(|p| p.imports.values()).find(|i| i.program.is_none()) {
                let target = &target.target;
                return Err(RunError(format!(
                    "the program uses `{target}`, which is not on this disk; fetching programs is not supported yet"
                )));
            }
            let root = root(path.as_deref(), how.folder.as_deref())?;
            let config = config(&root, how.trusted)?;
            let options = options(&how, &config)?;
            let settings = backend_settings(&how, &config, path.as_deref(), &root);
            let engine = prose_runtime::Engine::with(EngineConfig::configured(&root, config.catalog()));
            let backend = engine.backend(&settings).map_err(|e| RunError(e.to_string()))?;
            let program = bundle.programs.get(bundle.entry).and_then(|p| bundle.files.get(p.file as usize));
            let program = program.map_or_else(String::new, |file| file.path.clone());
            let inputs = inputs.into_iter().map(|(name, value)| (name, value_from_json(value))).collect();
            let request = RunRequest { bundle, program, inputs, options, backend, attach };
            let handle = engine.start(request).await.map_err(|e| RunError(e.to_string()))?;
            Ok(started(handle, root, &roots))
        }
        .boxed()
    }

    fn resume(
        &self,
        run: RunId,
        with: Resumption,
        how: How,
    ) -> BoxFuture<'static, Result<Started, RunError>> {
        let (attach, roots) = (self.attach(), Arc::clone(&self.roots));
        async move {
            let known = lock(&roots).get(&run).cloned();
            let root = match known {
                Some(root) => root,
                None => root(None, how.folder.as_deref())?,
            };
            let config = config(&root, how.trusted)?;
            let engine = prose_runtime::Engine::with(EngineConfig::configured(&root, config.catalog()));
            let header = engine.header(&run).map_err(|e| RunError(e.to_string()))?;
            if !how.trusted && header.options.backend != SIMULATE {
                return Err(RunError::untrusted());
            }
            let program = match with.changes {
                Changes::Refused => None,
                Changes::Accepted => {
                    let program = engine.program(&run).map_err(|e| RunError(e.to_string()))?;
                    Some(root.join(program))
                }
                Changes::AcceptedIn(path) => Some(path),
            };
            let changed = match program {
                Some(path) => {
                    let loaded = prose_project::load(&path, &root).map_err(|e| RunError(e.to_string()))?;
                    let errors = || RunError("the changed program has errors and can't be run".to_owned());
                    Some(loaded.bundle.map_err(|_| errors())?)
                }
                None => None,
            };
            let request = ResumeRequest {
                run_id: run,
                inputs: Default::default(),
                changed,
                backend: None,
                overrides: Overrides {
                    max_parallel: how.max_parallel,
                    budget_usd: how.budget_usd,
                    budget_tokens: how.budget_tokens,
                    retry_failed: with.retry_failed,
                    ..Overrides::default()
                },
                attach,
            };
            let handle = engine
                .resume(request)
                .await
                .map_err(|e| RunError(e.to_string()))?;
            Ok(started(handle, root, &roots))
        }
        .boxed()
    }

    fn list(&self, folder: Option<PathBuf>) -> BoxFuture<'static, Vec<RunSummary>> {
        async move {
            let Ok(root) = root(None, folder.as_deref()) else {
                return Vec::new();
            };
            let listed = tokio::task::spawn_blocking(move || list_runs(&root)).await;
            let runs = match listed {
                Ok(Ok(runs)) => runs,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "runs can't be listed");
                    Vec::new()
                }
                Err(error) => {
                    tracing::error!(%error, "listing runs panicked");
                    Vec::new()
                }
            };
            runs.into_iter()
                .map(|run| RunSummary {
                    run_id: run.id,
                    status: match run.state {
                        RunState::Running { .. } => "running".to_owned(),
                        RunState::Ended { status } => status_word(status).to_owned(),
                        RunState::Unreadable { .. } => "unreadable".to_owned(),
                        RunState::NeverStarted => "never started".to_owned(),
                        RunState::Foreign => "foreign".to_owned(),
                    },
                    program: run.program,
                    waiting_for: Vec::new(),
                })
                .collect()
        }
        .boxed()
    }
}

/// The project root of a program, or of the client's folder.
fn root(path: Option<&Path>, folder: Option<&Path>) -> Result<PathBuf, RunError> {
    let start = path.and_then(Path::parent).or(folder);
    let Some(start) = start else {
        return Err(RunError(
            "a run needs a folder for its files: open one, or save the program".to_owned(),
        ));
    };
    Ok(find_root(start, folder.unwrap_or(start), home().as_deref()))
}

fn config(root: &Path, trusted: bool) -> Result<Config, RunError> {
    let trust = if trusted { Trust::Trusted } else { Trust::Untrusted };
    let environment =
        Environment::load(root).map_err(|e| RunError(format!("can't read .prose/.env: {e}")))?;
    Config::load(root, trust, Config::user_file().as_deref(), &environment)
        .map_err(|e| RunError(e.to_string()))
}

fn options(how: &How, config: &Config) -> Result<RunOptions, RunError> {
    let state = match &how.state {
        Some(word) => Some(StateKind::from_word(word).ok_or_else(|| {
            RunError(format!(
                "`state` is one of {}, not `{word}`",
                StateKind::WORDS.join(", ")
            ))
        })?),
        None => config.run.state,
    };
    let state = match state {
        None | Some(StateKind::Filesystem) => StateIn::Files,
        Some(StateKind::InContext) => StateIn::Memory,
        Some(other) => {
            return Err(RunError(format!(
                "runs can't keep their state in `{other}` yet, only in `filesystem` or `in-context`"
            )));
        }
    };
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Ok(RunOptions {
        backend: String::new(),
        mock: how.mock.as_ref().map(|path| path.to_string_lossy().into_owned()),
        mock_text: None,
        state,
        max_parallel: how.max_parallel.or(config.run.max_parallel),
        timeout_ms: config.run.timeout.map(millis),
        idle_timeout_ms: config.run.idle_timeout.map(millis),
        budget_usd: how.budget_usd.or(config.run.budget_usd),
        budget_tokens: how.budget_tokens.or(config.run.budget_tokens),
    })
}

/// A mock file that isn't named is looked for beside the program; only backends that read one look at it.
fn backend_settings(how: &How, config: &Config, path: Option<&Path>, root: &Path) -> BackendSettings {
    let named = how.mock.as_ref().map(|mock| root.join(mock));
    let mock = named.or_else(|| path.and_then(MockFile::beside));
    BackendSettings {
        name: how.backend.clone().or_else(|| config.run.backend.clone()),
        mock: mock.map(MockSource::Path),
        realtime: false,
    }
}

fn started(mut handle: RunHandle, root: PathBuf, roots: &Mutex<BTreeMap<RunId, PathBuf>>) -> Started {
    let id = handle.run_id().clone();
    lock(roots).insert(id.clone(), root);
    let control = Arc::new(handle.control());
    // What a slow client has not taken waits in the run's own queue, which has a file for what is too much.
    let (tx, events) = mpsc::channel(EVENTS_ON_THE_WAY);
    if let Some(mut stream) = handle.take_events() {
        let control = Arc::clone(&control);
        tokio::spawn(async move {
            while let Some(item) = stream.next().await {
                let sent = match item {
                    StreamItem::Event(event) => tx.send(Arc::unwrap_or_clone(event)).await.is_ok(),
                    StreamItem::Gap(gap) => make_up(&control, &tx, gap).await,
                };
                if !sent {
                    return;
                }
            }
        });
    }
    Started { id, events, control }
}

/// Sends what the stream has lost, as far as the run's journal has it. False when nobody listens any more.
async fn make_up(control: &Arc<RunControl>, tx: &mpsc::Sender<RunEvent>, gap: Gap) -> bool {
    let (control, tx) = (Arc::clone(control), tx.clone());
    let reading =
        tokio::task::spawn_blocking(move || control.make_up(&gap, |event| tx.blocking_send(event).is_ok()));
    reading.await.unwrap_or(false)
}

impl Control for RunControl {
    fn cancel(&self) {
        RunControl::cancel(self);
    }
    fn stop(&self) {
        RunControl::stop(self);
    }
    fn answer(&self, request: &EffectId, value: Value) -> Result<(), RunError> {
        RunControl::answer(self, request, value_from_json(value)).map_err(|e| RunError(e.to_string()))
    }
}

/// Permissions by `window/showMessageRequest`. No answer is a no.
struct AskClient {
    outbox: Outbox,
}

impl AskClient {
    const ONCE: &str = "Allow";
    const SESSION: &str = "Allow for this session";
    const DENY: &str = "Deny";
}

#[tower_lsp::async_trait]
impl PermissionProvider for AskClient {
    async fn ask(&self, _effect: &EffectId, question: PermissionQuestion) -> PermissionAnswer {
        let action = |title: &str| MessageActionItem {
            title: title.to_owned(),
            properties: Default::default(),
        };
        let params = ShowMessageRequestParams {
            typ: MessageType::WARNING,
            message: format!(
                "A session asks for `{}`: {} {}",
                question.key, question.tool, question.detail
            ),
            actions: Some([Self::ONCE, Self::SESSION, Self::DENY].map(action).to_vec()),
        };
        match self
            .outbox
            .ask::<ShowMessageRequest>(params, PERMISSION_PATIENCE)
            .await
        {
            Ok(Some(chosen)) if chosen.title == Self::ONCE => PermissionAnswer::Allow,
            Ok(Some(chosen)) if chosen.title == Self::SESSION => PermissionAnswer::AllowSession,
            Ok(_) => PermissionAnswer::Deny,
            Err(error) => {
                tracing::info!(%error, "nobody answered a permission question");
                PermissionAnswer::Deny
            }
        }
    }
}

/// Every critical section here is one call.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
