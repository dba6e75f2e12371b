use lsp_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};
use prose_ide::{Cancellable, FileId, FilePosition, HoverConfig};
use tower_lsp::jsonrpc::Result;

use crate::convert::Lines;
use crate::query::Snapshot;

/// `textDocument/hover`
pub(crate) fn hover(
    snapshot: &Snapshot,
    file: FileId,
    params: &HoverParams,
) -> Cancellable<Result<Option<Hover>>> {
    let lines = Lines::new(snapshot, file)?;
    let offset = lines.offset(params.text_document_position_params.position);
    let (markup, kind) = if snapshot.session.markdown {
        (prose_ide::MarkupKind::Markdown, MarkupKind::Markdown)
    } else {
        (prose_ide::MarkupKind::PlainText, MarkupKind::PlainText)
    };
    let found = snapshot
        .analysis
        .hover(FilePosition { file, offset }, HoverConfig { markup })?;
    Ok(Ok(found.map(|found| Hover {
        contents: HoverContents::Markup(MarkupContent {
            kind,
            value: found.markdown,
        }),
        range: Some(lines.range(found.range)),
    })))
}
