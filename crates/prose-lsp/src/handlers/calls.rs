use lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, CallHierarchyPrepareParams,
};
use prose_ide::{CallItem, Cancellable, FileId, FilePosition, NavigationTarget, SymbolKind};
use serde_json::json;
use tower_lsp::jsonrpc::{Error, Result};

use crate::convert::{Lines, Places, symbol_kind};
use crate::query::Snapshot;

/// `textDocument/prepareCallHierarchy`
pub(crate) fn prepare_calls(
    snapshot: &Snapshot,
    file: FileId,
    params: &CallHierarchyPrepareParams,
) -> Cancellable<Result<Option<Vec<CallHierarchyItem>>>> {
    let offset = Lines::new(snapshot, file)?.offset(params.text_document_position_params.position);
    let Some(item) = snapshot.analysis.call_item(FilePosition { file, offset })? else {
        return Ok(Ok(None));
    };
    let item = to_client(&mut Places::new(snapshot), snapshot, &item)?;
    Ok(Ok(item.map(|it| vec![it])))
}

/// `callHierarchy/incomingCalls`
pub(crate) fn incoming_calls(
    snapshot: &Snapshot,
    file: FileId,
    item: &CallHierarchyItem,
) -> Cancellable<Result<Option<Vec<CallHierarchyIncomingCall>>>> {
    let Some(item) = from_client(snapshot, file, item)? else {
        return Ok(Err(unknown()));
    };
    let mut places = Places::new(snapshot);
    let mut out = Vec::new();
    for call in snapshot.analysis.incoming_calls(&item)? {
        let Some(from) = to_client(&mut places, snapshot, &call.item)? else {
            continue;
        };
        let lines = places.lines(call.item.target.file)?;
        let from_ranges = call.places.iter().map(|it| lines.range(*it)).collect();
        out.push(CallHierarchyIncomingCall { from, from_ranges });
    }
    Ok(Ok(Some(out)))
}

/// `callHierarchy/outgoingCalls`
pub(crate) fn outgoing_calls(
    snapshot: &Snapshot,
    file: FileId,
    item: &CallHierarchyItem,
) -> Cancellable<Result<Option<Vec<CallHierarchyOutgoingCall>>>> {
    let Some(item) = from_client(snapshot, file, item)? else {
        return Ok(Err(unknown()));
    };
    let mut places = Places::new(snapshot);
    let mut out = Vec::new();
    for call in snapshot.analysis.outgoing_calls(&item)? {
        let Some(to) = to_client(&mut places, snapshot, &call.item)? else {
            continue;
        };
        let lines = places.lines(file)?;
        let from_ranges = call.places.iter().map(|it| lines.range(*it)).collect();
        out.push(CallHierarchyOutgoingCall { to, from_ranges });
    }
    Ok(Ok(Some(out)))
}

fn unknown() -> Error {
    Error::invalid_params("there is nothing that can be called any more: ask again at its name")
}

fn to_client(
    places: &mut Places<'_>,
    snapshot: &Snapshot,
    item: &CallItem,
) -> Cancellable<Option<CallHierarchyItem>> {
    let target = &item.target;
    let Some(uri) = snapshot.documents.uri(target.file) else {
        return Ok(None);
    };
    let lines = places.lines(target.file)?;
    Ok(Some(CallHierarchyItem {
        name: target.name.clone(),
        kind: symbol_kind(target.kind),
        tags: None,
        detail: None,
        uri,
        range: lines.range(target.full_range),
        selection_range: lines.range(target.focus_range),
        data: Some(json!({ "program": target.kind == SymbolKind::File })),
    }))
}

/// The item that the client got earlier, as the text is now.
fn from_client(snapshot: &Snapshot, file: FileId, item: &CallHierarchyItem) -> Cancellable<Option<CallItem>> {
    let lines = Lines::new(snapshot, file)?;
    let is_program = item.data.as_ref().and_then(|it| it["program"].as_bool()) == Some(true);
    if is_program {
        return Ok(Some(CallItem {
            target: NavigationTarget {
                file,
                full_range: lines.text_range(item.range),
                focus_range: lines.text_range(item.selection_range),
                name: item.name.clone(),
                kind: SymbolKind::File,
            },
        }));
    }
    let offset = lines.offset(item.selection_range.start);
    snapshot.analysis.call_item(FilePosition { file, offset })
}
