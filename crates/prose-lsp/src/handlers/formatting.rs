use lsp_types::{
    DocumentFormattingParams, DocumentOnTypeFormattingParams, DocumentRangeFormattingParams, TextEdit,
};
use prose_ide::{Cancellable, FileId, FilePosition, FileRange};
use tower_lsp::jsonrpc::Result;

use crate::convert::Lines;
use crate::query::Snapshot;

/// `textDocument/formatting`. The style has no options, so those of the client are not asked for.
pub(crate) fn formatting(
    snapshot: &Snapshot,
    file: FileId,
    _: &DocumentFormattingParams,
) -> Cancellable<Result<Option<Vec<TextEdit>>>> {
    let found = snapshot.analysis.format(file)?;
    answer(snapshot, file, found)
}

/// `textDocument/rangeFormatting`
pub(crate) fn range_formatting(
    snapshot: &Snapshot,
    file: FileId,
    params: &DocumentRangeFormattingParams,
) -> Cancellable<Result<Option<Vec<TextEdit>>>> {
    let range = Lines::new(snapshot, file)?.text_range(params.range);
    let found = snapshot.analysis.format_range(FileRange { file, range })?;
    answer(snapshot, file, found)
}

/// `textDocument/onTypeFormatting`
pub(crate) fn on_type_formatting(
    snapshot: &Snapshot,
    file: FileId,
    params: &DocumentOnTypeFormattingParams,
) -> Cancellable<Result<Option<Vec<TextEdit>>>> {
    let offset = Lines::new(snapshot, file)?.offset(params.text_document_position.position);
    let typed = params.ch.chars().next().unwrap_or(' ');
    let found = snapshot
        .analysis
        .format_on_type(FilePosition { file, offset }, typed)?;
    answer(snapshot, file, found)
}

fn answer(
    snapshot: &Snapshot,
    file: FileId,
    found: Vec<prose_ide::TextEdit>,
) -> Cancellable<Result<Option<Vec<TextEdit>>>> {
    Ok(Ok(Some(Lines::new(snapshot, file)?.edits(found))))
}
