//! The tower-lsp side: one short method per message.
//!
//! IMPORTANT: every method sends its one event before its first await (see `guard.rs`), and none awaits the client.

use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use lsp_types::{
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    ExecuteCommandParams, InitializeParams, InitializeResult, InitializedParams, MessageType, Url,
    WorkDoneProgressCancelParams,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_lsp::jsonrpc::{Error, Result};
use tower_lsp::LanguageServer;

use crate::capabilities::initialize_result;
use crate::engine::{Cancellable, FileId};
use crate::handlers;
use crate::handlers::{ViewText, ViewTextParams};
use crate::main_loop::{self, Basis, Event, Snapshot};
use crate::outbox::Outbox;
use crate::runs::{Command, RunArgs, Runs, StartRequest, refused};
use crate::session::Session;

/// The server as tower-lsp sees it.
pub(crate) struct Backend {
    pub(crate) outbox: Outbox,
    pub(crate) events: Sender<Event>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) session: OnceLock<Arc<Session>>,
    /// Is told the editor's process id.
    pub(crate) parent: watch::Sender<Option<u32>>,
    pub(crate) version: String,
}

impl Backend {
    pub(crate) fn send(&self, event: Event) {
        // Fails only when the main loop is gone; the process is about to end then.
        let _ = self.events.send(event);
    }

    /// Reads the database: sends the query now, answers when a worker has run it.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        name: &'static str,
        basis: Basis,
        uri: Url,
        compute: impl FnMut(&Snapshot, FileId) -> Cancellable<Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (query, answer) = main_loop::query(name, compute);
        self.send(Event::Query { uri, basis, query });
        answer.await.unwrap_or_else(|_| Err(Error::internal_error()))
    }

    fn session(&self) -> Result<&Arc<Session>> {
        self.session.get().ok_or_else(|| refused("not initialized"))
    }

    /// `prose/viewText`.
    pub(crate) async fn view_text(&self, params: ViewTextParams) -> Result<ViewText> {
        self.read("viewText", Basis::Document, params.uri, handlers::view_text).await
    }

    /// `window/workDoneProgress/cancel`, which tower-lsp doesn't route.
    pub(crate) async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        self.runs.cancel_by_token(&params.token);
    }

    async fn run(&self, args: RunArgs) -> Result<Value> {
        let session = self.session()?;
        let how = Runs::how(session, Some(&args));
        Runs::check_trust(session, how.backend.as_deref())?;
        let version = args.version;
        let program =
            self.read("run", Basis::Document, args.uri, move |s, f| handlers::program(s, f, version)).await?;
        let request = StartRequest { bundle: program.bundle, path: program.path, inputs: args.inputs, how };
        let run = self.runs.start(request, program.name).await?;
        Ok(json!({ "runId": run }))
    }

    async fn command(&self, command: Command) -> Result<Value> {
        let session = self.session()?;
        match command {
            Command::Run(args) => self.run(args).await,
            Command::Resume(args) => {
                let how = Runs::how(session, None);
                Runs::check_trust(session, how.backend.as_deref())?;
                Ok(json!({ "runId": self.runs.resume(args.run_id, how).await? }))
            }
            Command::Cancel(args) => self.runs.cancel(&args.run_id).map(|()| Value::Null),
            Command::Answer(args) => self.runs.answer(args).map(|()| Value::Null),
            Command::Runs => Ok(json!(self.runs.list(session.folders.first().cloned()).await)),
        }
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let (session, problem) = Session::new(&params);
        let session = Arc::new(session);
        if self.session.set(Arc::clone(&session)).is_err() {
            return Err(Error::invalid_request());
        }
        self.send(Event::Initialized { session: Arc::clone(&session) });
        self.runs.begin(Arc::clone(&session));
        self.parent.send_replace(params.process_id);
        if let Some(problem) = problem {
            self.outbox.show(MessageType::WARNING, problem);
        }
        Ok(initialize_result(&session, &self.version))
    }

    async fn initialized(&self, _: InitializedParams) {
        if self.session.get().is_some_and(|s| s.watches_files) {
            tokio::spawn(handlers::watch_files(self.outbox.clone()));
        }
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.send(Event::Opened { uri: document.uri, version: document.version, text: document.text });
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let document = params.text_document;
        let (uri, version) = (document.uri, document.version);
        self.send(Event::Changed { uri, version, changes: params.content_changes });
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.send(Event::Closed { uri: params.text_document.uri });
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        self.send(Event::DiskChanged { uris: params.changes.into_iter().map(|c| c.uri).collect() });
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        let command = Command::parse(&params.command, params.arguments)?;
        self.command(command).await.map(Some)
    }
}
