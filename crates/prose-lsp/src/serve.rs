//! One session from the first byte to the exit code.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lsp_types::notification::{Notification, ShowMessage};
use lsp_types::{MessageType, ShowMessageParams};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tower_lsp::LspService;

use crate::documents::Documents;
use crate::framing::{Ledger, Replies, pump_in, pump_out};
use crate::guard::{Guard, Phase};
use crate::main_loop::{self, Event, Setup};
use crate::outbox::Outbox;
use crate::parent;
use crate::runs::{Engine, Runs, Runtime};
use crate::server::Backend;
use crate::transport;

/// Messages between the framing layer and the server. Few: back-pressure belongs to the client's pipe, and one may hold a long
/// document.
const AHEAD: usize = 4;
/// What is left to say when the session ends must be gone by then.
const FAREWELL: Duration = Duration::from_secs(2);
/// Exit code when the server itself failed.
const PANICKED: i32 = 101;

/// What the host program decides about a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Version reported in `initialize`.
    pub version: String,
    /// A folder of our own for what can be made again. Without one diagnostics have no links to pages about their codes.
    pub cache: Option<PathBuf>,
    /// Longest message accepted from the client, in bytes.
    pub max_message: usize,
    /// Called when there was nothing to do for a moment after some work and the server has let go of what it can: the
    /// time to give memory back to the system. Runs on a thread of the server and holds up what comes next.
    pub at_rest: fn(),
}

impl Default for Config {
    /// The crate's version; messages up to 64 MiB.
    fn default() -> Config {
        Config {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cache: None,
            max_message: 64 * 1024 * 1024,
            at_rest: || (),
        }
    }
}

/// Serves one client over stdin and stdout on a runtime of its own; returns the process's exit code.
///
/// The caller must end the process: the thread that reads stdin can't be stopped while stdin is open.
///
/// # Errors
/// When no threads can be had.
pub fn run_stdio(config: Config) -> std::io::Result<i32> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("prose-lsp")
        .enable_all()
        .build()?;
    let code = runtime.block_on(serve(
        tokio::io::stdin(),
        tokio::io::stdout(),
        config,
        std::future::pending(),
    ));
    runtime.shutdown_background();
    Ok(code)
}

/// Serves one client until `exit`, the end of `stdin`, the end of the editor's process, or `shutdown`.
///
/// Returns the exit code of the LSP specification: 0 if the client sent `shutdown` before, else 1; 101 after an
/// internal error that left the server's state unusable. Must be called in a tokio runtime with time and IO.
pub async fn serve(
    stdin: impl AsyncRead + Send + Unpin + 'static,
    stdout: impl AsyncWrite + Send + Unpin + 'static,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> i32 {
    serve_with(
        stdin,
        stdout,
        config,
        |outbox| Arc::new(Runtime::new(outbox)),
        shutdown,
    )
    .await
}

/// [`serve`] with a given runtime.
pub(crate) async fn serve_with(
    stdin: impl AsyncRead + Send + Unpin + 'static,
    stdout: impl AsyncWrite + Send + Unpin + 'static,
    config: Config,
    engine: impl FnOnce(Outbox) -> Arc<dyn Engine>,
    shutdown: impl Future<Output = ()>,
) -> i32 {
    let ledger = Ledger::default();
    let (phase, mut phases) = watch::channel(Phase::Running);
    let (replies, replies_rx) = Replies::new(ledger.clone());
    let (to_server, messages) = mpsc::channel(AHEAD);
    let (outbox, queue) = Outbox::new();
    let (events, events_rx) = channel();
    let documents = Arc::<Documents>::default();

    let runs = match Runs::new(engine(outbox.clone()), outbox.clone()) {
        Ok(runs) => Arc::new(runs),
        Err(e) => return no_threads(&e),
    };
    let setup = Setup {
        documents,
        outbox: outbox.clone(),
        events: events_rx,
        sender: events.clone(),
        at_rest: config.at_rest,
        on_panic: farewell(replies.clone(), phase.clone()),
    };
    if let Err(e) = main_loop::spawn(setup) {
        return no_threads(&e);
    }
    let (parents, parents_rx) = watch::channel(None);
    let backend = Backend {
        tokens: Arc::default(),
        pulled: Arc::default(),
        outbox,
        events: events.clone(),
        runs: Arc::clone(&runs),
        session: OnceLock::new(),
        settings: Arc::default(),
        parent: parents,
        cache: config.cache,
        version: config.version,
    };
    let raw = replies.clone();
    let service = LspService::build(|client| {
        tokio::spawn(queue.send_to(client, raw));
        backend
    })
    .custom_method("prose/viewText", Backend::view_text)
    .custom_method("window/workDoneProgress/cancel", Backend::cancel_progress);
    #[cfg(test)]
    let service = crate::tests::sabotage(service);
    let (service, socket) = service.finish();
    let service = Guard::new(service, phase.clone(), ledger.clone());

    let (calls, responses) = socket.split();
    let mut input = tokio::spawn(pump_in(stdin, to_server, replies.clone(), config.max_message));
    let mut server = tokio::spawn(transport::serve(service, responses, messages, replies));
    let mut output = tokio::spawn(pump_out(calls, replies_rx, stdout, ledger.clone()));

    let why = tokio::select! {
        _ = phases.wait_for(|phase| matches!(phase, Phase::Exit(_))) => "exit",
        ended = &mut input => {
            log_io("input", ended);
            "end of input"
        }
        ended = &mut output => {
            log_io("output", ended);
            "end of output"
        }
        _ = &mut server => "end of the server",
        () = parent::gone(parents_rx) => "end of the editor's process",
        () = shutdown => "shutdown of the host",
    };
    let code = phases.borrow().code();
    tracing::info!(code, "session over: {why}");
    runs.stop(FAREWELL).await;
    // Also an editor that is gone may have left a reader for what it asked.
    let _ = tokio::time::timeout(FAREWELL, ledger.settled()).await;
    let _ = events.send(Event::Quit);
    for task in [input.abort_handle(), server.abort_handle(), output.abort_handle()] {
        task.abort();
    }
    code
}

/// What happens when the main loop panicked: the person is told, and the session is over.
fn farewell(replies: Replies, phase: watch::Sender<Phase>) -> Box<dyn FnOnce(String) + Send> {
    Box::new(move |what| {
        let message =
            format!("The OpenProse language server has to stop, its state is no longer reliable: {what}");
        let params = ShowMessageParams {
            typ: MessageType::ERROR,
            message,
        };
        replies.send(&json!({ "jsonrpc": "2.0", "method": ShowMessage::METHOD, "params": params }));
        phase.send_replace(Phase::Exit(PANICKED));
    })
}

fn no_threads(error: &std::io::Error) -> i32 {
    tracing::error!(%error, "can't start");
    PANICKED
}

fn log_io(what: &str, ended: Result<std::io::Result<()>, tokio::task::JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "{what} failed"),
        Err(error) => tracing::error!(%error, "{what} panicked"),
    }
}
