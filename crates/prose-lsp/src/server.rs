//! The tower-lsp side: one short method per message.
//!
//! IMPORTANT: every method sends its event before its first await (see `guard.rs`), and none awaits the client.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use lsp_types::request::{
    GotoDeclarationParams, GotoDeclarationResponse, GotoImplementationParams, GotoImplementationResponse,
    GotoTypeDefinitionParams, GotoTypeDefinitionResponse, WorkspaceConfiguration,
};
use lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyIncomingCallsParams, CallHierarchyItem,
    CallHierarchyOutgoingCall, CallHierarchyOutgoingCallsParams, CallHierarchyPrepareParams,
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, CompletionParams, CompletionResponse,
    ConfigurationItem, ConfigurationParams, DidChangeConfigurationParams, DidChangeTextDocumentParams,
    DidChangeWatchedFilesParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, DocumentDiagnosticParams, DocumentDiagnosticReportResult,
    DocumentFormattingParams, DocumentHighlight, DocumentHighlightParams, DocumentLink, DocumentLinkParams,
    DocumentOnTypeFormattingParams, DocumentRangeFormattingParams, DocumentSymbolParams,
    DocumentSymbolResponse, ExecuteCommandParams, FoldingRange, FoldingRangeParams, GotoDefinitionParams,
    GotoDefinitionResponse, Hover, HoverParams, InitializeParams, InitializeResult, InitializedParams,
    InlayHint, InlayHintParams, Location, MessageType, PrepareRenameResponse, ReferenceParams,
    RenameFilesParams, RenameParams, SelectionRange, SelectionRangeParams, SemanticTokensDeltaParams,
    SemanticTokensFullDeltaResult, SemanticTokensParams, SemanticTokensRangeParams,
    SemanticTokensRangeResult, SemanticTokensResult, SignatureHelp, SignatureHelpParams, SymbolInformation,
    TextDocumentPositionParams, TextEdit, Url, WorkDoneProgressCancelParams, WorkspaceDiagnosticParams,
    WorkspaceDiagnosticReportResult, WorkspaceEdit, WorkspaceSymbolParams,
};
use prose_ide::{Cancellable, FileId};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::{Error, Result};

use crate::capabilities::initialize_result;
use crate::handlers;
use crate::handlers::{PullResults, TokenResults, ViewText, ViewTextParams};
use crate::main_loop::Event;
use crate::outbox::Outbox;
use crate::pages;
use crate::parent::Editor;
use crate::query::{Basis, Reach, Snapshot, query};
use crate::runs::{Changes, Command, How, Resumption, RunArgs, Runs, StartRequest, refused};
use crate::session::Session;
use crate::settings::Settings;

/// How long a client may take to answer `workspace/configuration`.
const SETTINGS_PATIENCE: Duration = Duration::from_secs(30);

/// The server as tower-lsp sees it.
pub(crate) struct Backend {
    pub(crate) outbox: Outbox,
    pub(crate) events: Sender<Event>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) session: OnceLock<Arc<Session>>,
    pub(crate) settings: Arc<Mutex<Settings>>,
    /// What the client was told about colours.
    pub(crate) tokens: Arc<TokenResults>,
    /// What the client was told about diagnostics that it asked for.
    pub(crate) pulled: Arc<PullResults>,
    /// Is told the editor's process.
    pub(crate) parent: watch::Sender<Option<Arc<Editor>>>,
    /// See [`crate::Config::cache`].
    pub(crate) cache: Option<PathBuf>,
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
        self.ask(name, Some(uri), basis, Reach::File, compute).await
    }

    /// The same, for an answer that may come from any program of the workspace.
    async fn read_across<T: Send + 'static>(
        &self,
        name: &'static str,
        basis: Basis,
        uri: Url,
        compute: impl FnMut(&Snapshot, FileId) -> Cancellable<Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.ask(name, Some(uri), basis, Reach::Workspace, compute).await
    }

    /// Reads the database for a question about no file in particular.
    async fn read_all<T: Send + 'static>(
        &self,
        name: &'static str,
        mut compute: impl FnMut(&Snapshot) -> Cancellable<Result<T>> + Send + 'static,
    ) -> Result<T> {
        let compute = move |snapshot: &Snapshot, _| compute(snapshot);
        self.ask(name, None, Basis::Document, Reach::Workspace, compute)
            .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        name: &'static str,
        uri: Option<Url>,
        basis: Basis,
        reach: Reach,
        compute: impl FnMut(&Snapshot, FileId) -> Cancellable<Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (query, answer) = query(name, compute);
        self.send(Event::Query {
            uri,
            basis,
            reach,
            query,
        });
        answer.await.unwrap_or_else(|_| Err(Error::internal_error()))
    }

    fn session(&self) -> Result<&Arc<Session>> {
        self.session.get().ok_or_else(|| refused("not initialized"))
    }

    fn settings(&self) -> Settings {
        self.settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// `prose/viewText`.
    pub(crate) async fn view_text(&self, params: ViewTextParams) -> Result<ViewText> {
        self.read("viewText", Basis::Document, params.uri, handlers::view_text)
            .await
    }

    /// `window/workDoneProgress/cancel`, which tower-lsp doesn't route.
    pub(crate) async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        self.runs.cancel_by_token(&params.token);
    }

    fn reader(&self) -> SettingsReader {
        let (outbox, events) = (self.outbox.clone(), self.events.clone());
        SettingsReader {
            outbox,
            events,
            settings: Arc::clone(&self.settings),
        }
    }

    /// Asks the client for its section `prose`, in a task of its own.
    fn pull_settings(&self) {
        let reader = self.reader();
        tokio::spawn(async move {
            let item = ConfigurationItem {
                scope_uri: None,
                section: Some("prose".to_owned()),
            };
            let params = ConfigurationParams { items: vec![item] };
            match reader
                .outbox
                .ask::<WorkspaceConfiguration>(params, SETTINGS_PATIENCE)
                .await
            {
                Ok(sections) => reader.take(sections.first().unwrap_or(&Value::Null)),
                Err(error) => tracing::info!(%error, "the client's settings are not known"),
            }
        });
    }

    async fn run(&self, args: RunArgs) -> Result<Value> {
        let session = self.session()?;
        let how = Runs::how(session, &self.settings(), Some(&args));
        Runs::check_trust(session, how.backend.as_deref())?;
        let version = args.version;
        self.send(Event::Stale);
        let program = self
            .read_across("run", Basis::Document, args.uri, move |s, f| {
                handlers::program(s, f, version)
            })
            .await?;
        let request = StartRequest {
            bundle: program.bundle,
            path: program.path,
            inputs: args.inputs,
            how,
        };
        let run = self.runs.start(request, program.name).await?;
        Ok(json!({ "runId": run }))
    }

    async fn command(&self, command: Command) -> Result<Value> {
        let session = self.session()?;
        match command {
            Command::Run(args) => self.run(args).await,
            Command::Resume(args) => {
                let how = How {
                    budget_usd: args.budget_usd,
                    budget_tokens: args.budget_tokens,
                    ..Runs::how(session, &self.settings(), None)
                };
                let changes = match (args.accept_changed, args.uri) {
                    (false, None) => Changes::Refused,
                    (true, None) => Changes::Accepted,
                    (true, Some(uri)) => Changes::AcceptedIn(uri.to_file_path().map_err(|()| {
                        Error::invalid_params(format!("`uri` is no file on this disk: {uri}"))
                    })?),
                    (false, Some(_)) => {
                        return Err(Error::invalid_params("`uri` needs `acceptChanged: true`"));
                    }
                };
                let with = Resumption {
                    changes,
                    retry_failed: args.retry_failed,
                };
                Ok(json!({ "runId": self.runs.resume(args.run_id, with, how).await? }))
            }
            Command::Cancel(args) => self.runs.cancel(&args.run_id).map(|()| Value::Null),
            Command::Answer(args) => self.runs.answer(args).map(|()| Value::Null),
            Command::Runs => Ok(json!(self.runs.list(session.folders.first().cloned()).await)),
        }
    }
}

/// Takes over settings that the client sent.
struct SettingsReader {
    outbox: Outbox,
    events: Sender<Event>,
    settings: Arc<Mutex<Settings>>,
}

impl SettingsReader {
    fn take(&self, section: &Value) {
        match Settings::read(section) {
            Ok(None) => {}
            Ok(Some(settings)) => {
                settings.clone_into(&mut self.settings.lock().unwrap_or_else(PoisonError::into_inner));
                // Fails only when the main loop is gone.
                let _ = self.events.send(Event::Configured { settings });
            }
            Err(problem) => self.outbox.show(MessageType::WARNING, problem),
        }
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let (mut session, settings, problem) = Session::new(&params);
        if let Some(below) = self.cache.as_deref().filter(|_| session.code_descriptions) {
            session.code_pages = pages::folder(below)
                .inspect_err(|error| tracing::info!(%error, "no pages about codes"))
                .ok();
        }
        let session = Arc::new(session);
        if self.session.set(Arc::clone(&session)).is_err() {
            return Err(Error::invalid_request());
        }
        settings.clone_into(&mut self.settings.lock().unwrap_or_else(PoisonError::into_inner));
        self.send(Event::Initialized {
            session: Arc::clone(&session),
            settings,
        });
        self.runs.begin(Arc::clone(&session));
        self.parent.send_replace(params.process_id.and_then(Editor::find));
        if let Some(problem) = problem {
            self.outbox.show(MessageType::WARNING, problem);
        }
        Ok(initialize_result(&session, &self.version))
    }

    async fn initialized(&self, _: InitializedParams) {
        let Some(session) = self.session.get() else { return };
        if session.watches_files {
            tokio::spawn(handlers::watch_files(self.outbox.clone()));
        }
        if session.configuration {
            self.pull_settings();
        }
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        match params.settings.get("prose") {
            Some(section) => self.reader().take(section),
            None if self.session.get().is_some_and(|s| s.configuration) => self.pull_settings(),
            None => {}
        }
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.send(Event::Opened {
            uri: document.uri,
            version: document.version,
            text: document.text,
        });
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let document = params.text_document;
        let (uri, version) = (document.uri, document.version);
        self.send(Event::Changed {
            uri,
            version,
            changes: params.content_changes,
        });
    }

    async fn did_save(&self, _: DidSaveTextDocumentParams) {
        self.send(Event::Stale);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.tokens.forget(&params.text_document.uri);
        self.send(Event::Closed {
            uri: params.text_document.uri,
        });
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        self.send(Event::DiskChanged {
            uris: params.changes.into_iter().map(|c| c.uri).collect(),
        });
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("hover", Basis::Position, uri, move |s, f| {
            handlers::hover(s, f, &params)
        })
        .await
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        let uri = params.text_document_position.text_document.uri.clone();
        self.read("completion", Basis::Position, uri, move |s, f| {
            handlers::completion(s, f, &params)
        })
        .await
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("definition", Basis::Position, uri, move |s, f| {
            handlers::definition(s, f, &params)
        })
        .await
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        let uri = params.text_document_position.text_document.uri.clone();
        self.read_across("references", Basis::Position, uri, move |s, f| {
            handlers::references(s, f, &params)
        })
        .await
    }

    async fn goto_declaration(
        &self,
        params: GotoDeclarationParams,
    ) -> Result<Option<GotoDeclarationResponse>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("declaration", Basis::Position, uri, move |s, f| {
            handlers::definition(s, f, &params)
        })
        .await
    }

    async fn goto_type_definition(
        &self,
        params: GotoTypeDefinitionParams,
    ) -> Result<Option<GotoTypeDefinitionResponse>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("typeDefinition", Basis::Position, uri, move |s, f| {
            handlers::type_definition(s, f, &params)
        })
        .await
    }

    async fn goto_implementation(
        &self,
        params: GotoImplementationParams,
    ) -> Result<Option<GotoImplementationResponse>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read_across("implementation", Basis::Position, uri, move |s, f| {
            handlers::implementations(s, f, &params)
        })
        .await
    }

    async fn document_highlight(
        &self,
        params: DocumentHighlightParams,
    ) -> Result<Option<Vec<DocumentHighlight>>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("documentHighlight", Basis::Position, uri, move |s, f| {
            handlers::highlights(s, f, &params)
        })
        .await
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        let uri = params.text_document.uri;
        self.read("documentLink", Basis::Document, uri, handlers::document_links)
            .await
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        let uri = params.text_document.uri;
        self.read("foldingRange", Basis::Document, uri, handlers::folding)
            .await
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        let uri = params.text_document.uri.clone();
        self.read("selectionRange", Basis::Position, uri, move |s, f| {
            handlers::selection_ranges(s, f, &params)
        })
        .await
    }

    async fn semantic_tokens_full(
        &self,
        params: SemanticTokensParams,
    ) -> Result<Option<SemanticTokensResult>> {
        let results = Arc::clone(&self.tokens);
        self.read(
            "semanticTokens/full",
            Basis::Document,
            params.text_document.uri,
            move |s, f| handlers::tokens_full(s, f, &results),
        )
        .await
    }

    async fn semantic_tokens_full_delta(
        &self,
        params: SemanticTokensDeltaParams,
    ) -> Result<Option<SemanticTokensFullDeltaResult>> {
        let results = Arc::clone(&self.tokens);
        let uri = params.text_document.uri.clone();
        self.read("semanticTokens/delta", Basis::Document, uri, move |s, f| {
            handlers::tokens_delta(s, f, &params, &results)
        })
        .await
    }

    async fn semantic_tokens_range(
        &self,
        params: SemanticTokensRangeParams,
    ) -> Result<Option<SemanticTokensRangeResult>> {
        let uri = params.text_document.uri.clone();
        self.read("semanticTokens/range", Basis::Position, uri, move |s, f| {
            handlers::tokens_range(s, f, &params)
        })
        .await
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        let uri = params.text_document.uri.clone();
        self.read("inlayHint", Basis::Position, uri, move |s, f| {
            handlers::inlay_hints(s, f, &params)
        })
        .await
    }

    async fn signature_help(&self, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("signatureHelp", Basis::Position, uri, move |s, f| {
            handlers::signature_help(s, f, &params)
        })
        .await
    }

    async fn prepare_rename(
        &self,
        params: TextDocumentPositionParams,
    ) -> Result<Option<PrepareRenameResponse>> {
        let uri = params.text_document.uri.clone();
        self.read("prepareRename", Basis::Position, uri, move |s, f| {
            handlers::prepare_rename(s, f, &params)
        })
        .await
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let uri = params.text_document_position.text_document.uri.clone();
        self.read_across("rename", Basis::Position, uri, move |s, f| {
            handlers::rename(s, f, &params)
        })
        .await
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        let uri = params.text_document_position_params.text_document.uri.clone();
        self.read("prepareCallHierarchy", Basis::Position, uri, move |s, f| {
            handlers::prepare_calls(s, f, &params)
        })
        .await
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        let uri = params.item.uri.clone();
        self.read_across("incomingCalls", Basis::Document, uri, move |s, f| {
            handlers::incoming_calls(s, f, &params.item)
        })
        .await
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        let uri = params.item.uri.clone();
        self.read("outgoingCalls", Basis::Document, uri, move |s, f| {
            handlers::outgoing_calls(s, f, &params.item)
        })
        .await
    }

    async fn symbol(&self, params: WorkspaceSymbolParams) -> Result<Option<Vec<SymbolInformation>>> {
        self.read_all("symbol", move |s| handlers::workspace_symbols(s, &params.query))
            .await
    }

    async fn will_rename_files(&self, params: RenameFilesParams) -> Result<Option<WorkspaceEdit>> {
        self.read_all("willRenameFiles", move |s| {
            handlers::will_rename_files(s, &params)
        })
        .await
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        let uri = params.text_document.uri;
        self.read("documentSymbol", Basis::Document, uri, handlers::document_symbols)
            .await
    }

    async fn formatting(&self, params: DocumentFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        let uri = params.text_document.uri.clone();
        self.read("formatting", Basis::Position, uri, move |s, f| {
            handlers::formatting(s, f, &params)
        })
        .await
    }

    async fn range_formatting(&self, params: DocumentRangeFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        let uri = params.text_document.uri.clone();
        self.read("rangeFormatting", Basis::Position, uri, move |s, f| {
            handlers::range_formatting(s, f, &params)
        })
        .await
    }

    async fn on_type_formatting(
        &self,
        params: DocumentOnTypeFormattingParams,
    ) -> Result<Option<Vec<TextEdit>>> {
        let uri = params.text_document_position.text_document.uri.clone();
        self.read("onTypeFormatting", Basis::Position, uri, move |s, f| {
            handlers::on_type_formatting(s, f, &params)
        })
        .await
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReportResult> {
        let uri = params.text_document.uri.clone();
        self.read("diagnostic", Basis::Document, uri, move |s, f| {
            handlers::document_diagnostics(s, f, &params)
        })
        .await
    }

    async fn workspace_diagnostic(
        &self,
        params: WorkspaceDiagnosticParams,
    ) -> Result<WorkspaceDiagnosticReportResult> {
        let results = Arc::clone(&self.pulled);
        self.read_all("workspace/diagnostic", move |s| {
            handlers::workspace_diagnostics(s, &params, &results)
        })
        .await
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.read(
            "codeLens",
            Basis::Document,
            params.text_document.uri,
            handlers::code_lenses,
        )
        .await
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let uri = params.text_document.uri.clone();
        self.read("codeAction", Basis::Position, uri, move |s, f| {
            handlers::code_actions(s, f, &params)
        })
        .await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        let command = Command::parse(&params.command, params.arguments)?;
        self.command(command).await.map(Some)
    }
}
