use lsp_types::{TextDocumentIdentifier, Url};
use serde::{Deserialize, Serialize};
use tower_lsp::jsonrpc::Result;

use crate::engine::{Cancellable, FileId};
use crate::main_loop::Snapshot;

/// Parameters of `prose/viewText`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ViewTextParams {
    /// The document.
    pub(crate) uri: Url,
}

impl From<TextDocumentIdentifier> for ViewTextParams {
    fn from(document: TextDocumentIdentifier) -> ViewTextParams {
        ViewTextParams { uri: document.uri }
    }
}

/// Answer of `prose/viewText`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ViewText {
    /// The text as the server has it.
    pub(crate) text: String,
    /// Its syntax tree, one node or token a line.
    pub(crate) tree: String,
}

/// `prose/viewText`: what the server sees, for tests and bug reports.
pub(crate) fn view_text(snapshot: &Snapshot, file: FileId) -> Cancellable<Result<ViewText>> {
    let text = snapshot.analysis.file_text(file)?.to_string();
    Ok(Ok(ViewText { text, tree: String::new() }))
}
