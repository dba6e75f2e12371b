use lsp_types::{
    DocumentHighlight, DocumentHighlightKind, DocumentHighlightParams, DocumentLink, FoldingRange,
    FoldingRangeKind, SelectionRange, SelectionRangeParams, Url,
};
use prose_ide::{Cancellable, FileId, FilePosition, FoldKind, HighlightKind, LinkTarget};
use tower_lsp::jsonrpc::Result;

use crate::convert::Lines;
use crate::query::Snapshot;

/// `textDocument/documentHighlight`
pub(crate) fn highlights(
    snapshot: &Snapshot,
    file: FileId,
    params: &DocumentHighlightParams,
) -> Cancellable<Result<Option<Vec<DocumentHighlight>>>> {
    let lines = Lines::new(snapshot, file)?;
    let offset = lines.offset(params.text_document_position_params.position);
    let found = snapshot.analysis.highlights(FilePosition { file, offset })?;
    let convert = |it: prose_ide::Highlight| DocumentHighlight {
        range: lines.range(it.range),
        kind: Some(match it.kind {
            HighlightKind::Write => DocumentHighlightKind::WRITE,
            HighlightKind::Read => DocumentHighlightKind::READ,
            HighlightKind::Keyword => DocumentHighlightKind::TEXT,
        }),
    };
    Ok(Ok(Some(found.into_iter().map(convert).collect())))
}

/// `textDocument/foldingRange`
pub(crate) fn folding(snapshot: &Snapshot, file: FileId) -> Cancellable<Result<Option<Vec<FoldingRange>>>> {
    let lines = Lines::new(snapshot, file)?;
    let whole_lines = snapshot.session.folds_whole_lines;
    let convert = |it: prose_ide::Fold| {
        let range = lines.range(it.range);
        FoldingRange {
            start_line: range.start.line,
            // What stands before the fold in its line, the header, stays to be seen.
            start_character: None,
            end_line: range.end.line,
            end_character: (!whole_lines).then_some(range.end.character),
            kind: match it.kind {
                FoldKind::Code => None,
                FoldKind::Comment => Some(FoldingRangeKind::Comment),
                FoldKind::Imports => Some(FoldingRangeKind::Imports),
            },
            collapsed_text: None,
        }
    };
    let mut found: Vec<FoldingRange> = snapshot.analysis.folds(file)?.into_iter().map(convert).collect();
    if let Some(limit) = snapshot.session.fold_limit {
        found.truncate(limit as usize);
    }
    Ok(Ok(Some(found)))
}

/// `textDocument/selectionRange`
pub(crate) fn selection_ranges(
    snapshot: &Snapshot,
    file: FileId,
    params: &SelectionRangeParams,
) -> Cancellable<Result<Option<Vec<SelectionRange>>>> {
    let lines = Lines::new(snapshot, file)?;
    let mut out = Vec::new();
    for position in &params.positions {
        let offset = lines.offset(*position);
        let ranges = snapshot
            .analysis
            .selection_ranges(FilePosition { file, offset })?;
        let nested = ranges.into_iter().rev().fold(None, |parent, range| {
            Some(SelectionRange {
                range: lines.range(range),
                parent: parent.map(Box::new),
            })
        });
        // Every position gets an answer, since the client matches them by number.
        out.push(nested.unwrap_or_else(|| SelectionRange {
            range: lsp_types::Range::new(*position, *position),
            parent: None,
        }));
    }
    Ok(Ok(Some(out)))
}

/// `textDocument/documentLink`
pub(crate) fn document_links(
    snapshot: &Snapshot,
    file: FileId,
) -> Cancellable<Result<Option<Vec<DocumentLink>>>> {
    let lines = Lines::new(snapshot, file)?;
    let mut out = Vec::new();
    for link in snapshot.analysis.document_links(file)? {
        let (target, tooltip) = match link.target {
            LinkTarget::File(file) => (snapshot.documents.uri(file), None),
            LinkTarget::Url(url) => (Url::parse(&url).ok(), Some("Open on the web".to_owned())),
            LinkTarget::Path(path) => {
                // Confined to the workspace; what leads out of it is no link.
                let inside = !path.starts_with('/') && !path.split(['/', '\\']).any(|it| it == "..");
                let folder = snapshot.session.folders.first().filter(|_| inside);
                let target = folder.and_then(|it| Url::from_file_path(it.join(&path)).ok());
                (target, Some("Where the memory is kept".to_owned()))
            }
        };
        out.extend(target.map(|target| DocumentLink {
            range: lines.range(link.range),
            target: Some(target),
            tooltip,
            data: None,
        }));
    }
    Ok(Ok(Some(out)))
}
