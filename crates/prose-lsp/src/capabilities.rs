//! What the server tells the client about itself.

use lsp_types::{
    ExecuteCommandOptions, InitializeResult, ServerCapabilities, ServerInfo, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};

use crate::runs::COMMANDS;
use crate::session::Session;

/// The answer to `initialize`.
pub(crate) fn initialize_result(session: &Session, version: &str) -> InitializeResult {
    InitializeResult {
        capabilities: capabilities(session),
        server_info: Some(ServerInfo { name: "prose-lsp".into(), version: Some(version.into()) }),
    }
}

fn capabilities(session: &Session) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(session.encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            ..TextDocumentSyncOptions::default()
        })),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: COMMANDS.iter().map(|c| (*c).to_owned()).collect(),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: None,
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    }
}
