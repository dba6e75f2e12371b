use lsp_types::Url;
use prose_ide::{Cancellable, FileId};
use serde::{Deserialize, Serialize};
use tower_lsp::jsonrpc::Result;

use crate::query::Snapshot;

/// Parameters of `prose/viewText`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ViewTextParams {
    /// The document.
    pub(crate) uri: Url,
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
    let text = snapshot.analysis.file_text(file)?.unwrap_or_default().to_string();
    Ok(Ok(ViewText {
        text,
        tree: snapshot.analysis.view_tree(file)?,
    }))
}
