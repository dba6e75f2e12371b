use lsp_types::{
    DocumentSymbol, DocumentSymbolResponse, GotoDefinitionParams, GotoDefinitionResponse, Location,
    ReferenceParams, SymbolInformation, Url,
};
use prose_ide::{Cancellable, FileId, FilePosition, FileRange, NavigationTarget, RangeInfo, SymbolNode};
use tower_lsp::jsonrpc::Result;

use crate::convert::{Lines, Places, symbol_kind};
use crate::query::Snapshot;

/// Most symbols of the workspace in one answer: nobody reads more, and the client asks again with every letter.
const MOST_SYMBOLS: usize = 256;

/// `textDocument/definition` and `textDocument/declaration`
pub(crate) fn definition(
    snapshot: &Snapshot,
    file: FileId,
    params: &GotoDefinitionParams,
) -> Cancellable<Result<Option<GotoDefinitionResponse>>> {
    let offset = Lines::new(snapshot, file)?.offset(params.text_document_position_params.position);
    let found = snapshot.analysis.goto_definition(FilePosition { file, offset })?;
    targets(snapshot, file, found)
}

/// `textDocument/typeDefinition`
pub(crate) fn type_definition(
    snapshot: &Snapshot,
    file: FileId,
    params: &GotoDefinitionParams,
) -> Cancellable<Result<Option<GotoDefinitionResponse>>> {
    let offset = Lines::new(snapshot, file)?.offset(params.text_document_position_params.position);
    let found = snapshot.analysis.type_definition(FilePosition { file, offset })?;
    targets(snapshot, file, found)
}

/// `textDocument/implementation`
pub(crate) fn implementations(
    snapshot: &Snapshot,
    file: FileId,
    params: &GotoDefinitionParams,
) -> Cancellable<Result<Option<GotoDefinitionResponse>>> {
    let mut places = Places::new(snapshot);
    let offset = places
        .lines(file)?
        .offset(params.text_document_position_params.position);
    let mut locations = Vec::new();
    for place in snapshot.analysis.implementations(FilePosition { file, offset })? {
        locations.extend(places.location(place)?);
    }
    Ok(Ok(Some(GotoDefinitionResponse::Array(locations))))
}

fn targets(
    snapshot: &Snapshot,
    file: FileId,
    found: Option<RangeInfo<Vec<NavigationTarget>>>,
) -> Cancellable<Result<Option<GotoDefinitionResponse>>> {
    let mut places = Places::new(snapshot);
    let Some(found) = found else {
        return Ok(Ok(None));
    };
    let origin = places.lines(file)?.range(found.range);
    let mut links = Vec::new();
    for target in &found.info {
        links.extend(places.link(origin, target)?);
    }
    if snapshot.session.definition_links {
        return Ok(Ok(Some(GotoDefinitionResponse::Link(links))));
    }
    let location = |link: lsp_types::LocationLink| Location {
        uri: link.target_uri,
        range: link.target_selection_range,
    };
    Ok(Ok(Some(GotoDefinitionResponse::Array(
        links.into_iter().map(location).collect(),
    ))))
}

/// `workspace/symbol`
#[allow(deprecated)] // `deprecated` is a field without a default.
pub(crate) fn workspace_symbols(
    snapshot: &Snapshot,
    query: &str,
) -> Cancellable<Result<Option<Vec<SymbolInformation>>>> {
    let mut places = Places::new(snapshot);
    let mut out = Vec::new();
    for target in snapshot.analysis.workspace_symbols(query, MOST_SYMBOLS)? {
        let place = FileRange {
            file: target.file,
            range: target.focus_range,
        };
        out.extend(places.location(place)?.map(|location| SymbolInformation {
            name: target.name,
            kind: symbol_kind(target.kind),
            tags: None,
            deprecated: None,
            location,
            container_name: None,
        }));
    }
    Ok(Ok(Some(out)))
}

/// `textDocument/references`
pub(crate) fn references(
    snapshot: &Snapshot,
    file: FileId,
    params: &ReferenceParams,
) -> Cancellable<Result<Option<Vec<Location>>>> {
    let mut places = Places::new(snapshot);
    let offset = places.lines(file)?.offset(params.text_document_position.position);
    let position = FilePosition { file, offset };
    let found = snapshot
        .analysis
        .references(position, params.context.include_declaration)?;
    let mut locations = Vec::new();
    for place in found {
        locations.extend(places.location(place)?);
    }
    Ok(Ok(Some(locations)))
}

/// `textDocument/documentSymbol`
pub(crate) fn document_symbols(
    snapshot: &Snapshot,
    file: FileId,
) -> Cancellable<Result<Option<DocumentSymbolResponse>>> {
    let lines = Lines::new(snapshot, file)?;
    let symbols = snapshot.analysis.document_symbols(file)?;
    if snapshot.session.symbol_tree {
        let tree = symbols.into_iter().map(|symbol| nested(&lines, symbol)).collect();
        return Ok(Ok(Some(DocumentSymbolResponse::Nested(tree))));
    }
    let Some(uri) = snapshot.documents.uri(file) else {
        return Ok(Ok(None));
    };
    let mut out = Vec::new();
    flat(&lines, &uri, None, symbols, &mut out);
    Ok(Ok(Some(DocumentSymbolResponse::Flat(out))))
}

#[allow(deprecated)] // `deprecated` is a field without a default.
fn nested(lines: &Lines, symbol: SymbolNode) -> DocumentSymbol {
    let children: Vec<_> = symbol
        .children
        .into_iter()
        .map(|child| nested(lines, child))
        .collect();
    DocumentSymbol {
        name: symbol.name,
        detail: symbol.detail,
        kind: symbol_kind(symbol.kind),
        tags: None,
        deprecated: None,
        range: lines.range(symbol.full_range),
        selection_range: lines.range(symbol.focus_range),
        children: (!children.is_empty()).then_some(children),
    }
}

#[allow(deprecated)] // As above.
fn flat(
    lines: &Lines,
    uri: &Url,
    container: Option<&str>,
    symbols: Vec<SymbolNode>,
    out: &mut Vec<SymbolInformation>,
) {
    for symbol in symbols {
        out.push(SymbolInformation {
            name: symbol.name.clone(),
            kind: symbol_kind(symbol.kind),
            tags: None,
            deprecated: None,
            location: Location {
                uri: uri.clone(),
                range: lines.range(symbol.full_range),
            },
            container_name: container.map(str::to_owned),
        });
        flat(lines, uri, Some(&symbol.name), symbol.children, out);
    }
}
