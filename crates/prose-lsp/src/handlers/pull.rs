use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use dashmap::DashMap;
use lsp_types::{
    Diagnostic, DocumentDiagnosticParams, DocumentDiagnosticReport, DocumentDiagnosticReportResult,
    FullDocumentDiagnosticReport, RelatedFullDocumentDiagnosticReport,
    RelatedUnchangedDocumentDiagnosticReport, UnchangedDocumentDiagnosticReport, WorkspaceDiagnosticParams,
    WorkspaceDiagnosticReport, WorkspaceDiagnosticReportResult, WorkspaceDocumentDiagnosticReport,
    WorkspaceFullDocumentDiagnosticReport, WorkspaceUnchangedDocumentDiagnosticReport,
};
use prose_ide::{Cancellable, FileId};
use prose_project::would_find;
use tower_lsp::jsonrpc::Result;

use crate::convert;
use crate::query::Snapshot;

/// What the ids of results were worked out from, so that a client that asks again and again about a workspace in which
/// nothing has changed costs nothing.
#[derive(Debug, Default)]
pub(crate) struct PullResults {
    /// The database's revision, and the id of the file's diagnostics in it.
    ids: DashMap<FileId, (u64, String)>,
}

/// `textDocument/diagnostic`
pub(crate) fn document_diagnostics(
    snapshot: &Snapshot,
    file: FileId,
    params: &DocumentDiagnosticParams,
) -> Cancellable<Result<DocumentDiagnosticReportResult>> {
    let items = convert::diagnostics(snapshot, file)?;
    let result_id = id(&items);
    let report = if params.previous_result_id.as_ref() == Some(&result_id) {
        DocumentDiagnosticReport::Unchanged(RelatedUnchangedDocumentDiagnosticReport {
            related_documents: None,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        })
    } else {
        DocumentDiagnosticReport::Full(RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: FullDocumentDiagnosticReport {
                result_id: Some(result_id),
                items,
            },
        })
    };
    Ok(Ok(report.into()))
}

/// `workspace/diagnostic`: the programs of the workspace's folders, and whatever else is open. A file that is gone is
/// reported once, with nothing in it.
pub(crate) fn workspace_diagnostics(
    snapshot: &Snapshot,
    params: &WorkspaceDiagnosticParams,
    results: &PullResults,
) -> Cancellable<Result<WorkspaceDiagnosticReportResult>> {
    let documents = &snapshot.documents;
    let known: HashMap<FileId, &String> = params
        .previous_result_ids
        .iter()
        .filter_map(|it| Some((documents.id(&it.uri)?, &it.value)))
        .collect();
    let mut items = Vec::new();
    for file in documents.files() {
        let (open, before) = (documents.version(file), known.get(&file));
        let gone = snapshot.analysis.file_text(file)?.is_none();
        let here = open.is_some() || (!gone && in_workspace(snapshot, file));
        if !here && before.is_none() {
            continue;
        }
        let Some(uri) = documents.uri(file) else { continue };
        let version = open.map(|(_, version)| i64::from(version));
        let unchanged = |result_id| WorkspaceUnchangedDocumentDiagnosticReport {
            uri: uri.clone(),
            version,
            unchanged_document_diagnostic_report: UnchangedDocumentDiagnosticReport { result_id },
        };
        let cached = results.ids.get(&file).map(|it| it.value().clone());
        if let Some((revision, id)) = cached
            && revision == snapshot.revision
            && before.copied() == Some(&id)
        {
            items.push(WorkspaceDocumentDiagnosticReport::Unchanged(unchanged(id)));
            continue;
        }
        let found = match here {
            true => convert::diagnostics(snapshot, file)?,
            false => Vec::new(),
        };
        let id = id(&found);
        results.ids.insert(file, (snapshot.revision, id.clone()));
        items.push(if before.copied() == Some(&id) {
            WorkspaceDocumentDiagnosticReport::Unchanged(unchanged(id))
        } else {
            WorkspaceDocumentDiagnosticReport::Full(WorkspaceFullDocumentDiagnosticReport {
                uri,
                version,
                full_document_diagnostic_report: FullDocumentDiagnosticReport {
                    result_id: Some(id),
                    items: found,
                },
            })
        });
    }
    Ok(Ok(WorkspaceDiagnosticReport { items }.into()))
}

fn in_workspace(snapshot: &Snapshot, file: FileId) -> bool {
    let key = snapshot.documents.key(file);
    let path = key.as_ref().and_then(|key| key.path());
    path.is_some_and(|path| {
        let folders = snapshot.session.folders.iter();
        folders.into_iter().any(|folder| would_find(folder, path))
    })
}

/// Names diagnostics by what they say, so that the same ones have the same name however they came about.
fn id(items: &[Diagnostic]) -> String {
    let mut hasher = DefaultHasher::new();
    for item in items {
        // A diagnostic is plain data, which can always be written.
        serde_json::to_string(item).unwrap_or_default().hash(&mut hasher);
    }
    format!("{}-{:016x}", items.len(), hasher.finish())
}
