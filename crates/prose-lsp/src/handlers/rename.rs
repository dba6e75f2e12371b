use std::collections::HashMap;

use lsp_types::{
    DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, PrepareRenameResponse, RenameParams,
    TextDocumentEdit, TextDocumentPositionParams, WorkspaceEdit,
};
use prose_ide::{Cancellable, FileId, FilePosition, SourceChange};
use tower_lsp::jsonrpc::{Error, Result};

use crate::convert::{Lines, Places};
use crate::query::Snapshot;

/// `textDocument/prepareRename`
pub(crate) fn prepare_rename(
    snapshot: &Snapshot,
    file: FileId,
    params: &TextDocumentPositionParams,
) -> Cancellable<Result<Option<PrepareRenameResponse>>> {
    let lines = Lines::new(snapshot, file)?;
    let offset = lines.offset(params.position);
    Ok(
        match snapshot.analysis.prepare_rename(FilePosition { file, offset })? {
            Ok(found) => Ok(Some(PrepareRenameResponse::RangeWithPlaceholder {
                range: lines.range(found.range),
                placeholder: found.info,
            })),
            Err(prose_ide::RenameError::NoName) => Ok(None),
            Err(error) => Err(Error::invalid_params(error.to_string())),
        },
    )
}

/// `textDocument/rename`
pub(crate) fn rename(
    snapshot: &Snapshot,
    file: FileId,
    params: &RenameParams,
) -> Cancellable<Result<Option<WorkspaceEdit>>> {
    let offset = Lines::new(snapshot, file)?.offset(params.text_document_position.position);
    let position = FilePosition { file, offset };
    match snapshot.analysis.rename(position, &params.new_name)? {
        Ok(change) => Ok(Ok(Some(workspace_edit(snapshot, change)?))),
        Err(error) => Ok(Err(Error::invalid_params(error.to_string()))),
    }
}

/// Edits of several files, with the versions of those that are open where the client can tell them apart.
pub(crate) fn workspace_edit(snapshot: &Snapshot, change: SourceChange) -> Cancellable<WorkspaceEdit> {
    let mut places = Places::new(snapshot);
    let mut versioned = Vec::new();
    let mut plain = HashMap::new();
    for (file, edits) in change.edits {
        let Some(uri) = snapshot.documents.uri(file) else {
            continue;
        };
        let edits = places.lines(file)?.edits(edits);
        if !snapshot.session.document_changes {
            plain.insert(uri, edits);
            continue;
        }
        versioned.push(TextDocumentEdit {
            text_document: OptionalVersionedTextDocumentIdentifier {
                version: snapshot.documents.version(file).map(|it| it.1),
                uri,
            },
            edits: edits.into_iter().map(OneOf::Left).collect(),
        });
    }
    Ok(match snapshot.session.document_changes {
        true => WorkspaceEdit {
            document_changes: Some(DocumentChanges::Edits(versioned)),
            ..WorkspaceEdit::default()
        },
        false => WorkspaceEdit::new(plain),
    })
}
