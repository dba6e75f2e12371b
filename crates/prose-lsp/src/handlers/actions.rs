use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeLens, Diagnostic, NumberOrString,
    TextEdit, WorkspaceEdit,
};
use prose_ide::{Cancellable, FileId, FileRange};
use tower_lsp::jsonrpc::Result;

use crate::convert::{Lines, run_command};
use crate::main_loop::Snapshot;

/// Kind of the actions that run the file.
pub(crate) const RUN: CodeActionKind = CodeActionKind::new("source.run");

/// `textDocument/codeLens`
pub(crate) fn code_lenses(snapshot: &Snapshot, file: FileId) -> Cancellable<Result<Option<Vec<CodeLens>>>> {
    let lines = Lines::new(snapshot, file)?;
    let lenses = snapshot.analysis.code_lenses(file)?;
    let convert = |lens: prose_ide::CodeLens| {
        let command = run_command(snapshot, lens.command)?;
        Some(CodeLens {
            range: lines.range(lens.range),
            command: Some(command),
            data: None,
        })
    };
    Ok(Ok(Some(lenses.into_iter().filter_map(convert).collect())))
}

/// `textDocument/codeAction`
pub(crate) fn code_actions(
    snapshot: &Snapshot,
    file: FileId,
    params: &CodeActionParams,
) -> Cancellable<Result<Option<Vec<CodeActionOrCommand>>>> {
    let lines = Lines::new(snapshot, file)?;
    let range = lines.text_range(params.range);
    let found = snapshot.analysis.code_actions(FileRange { file, range })?;
    let wanted = |kind: &CodeActionKind| match &params.context.only {
        None => true,
        Some(kinds) => kinds.iter().any(|only| covers(only, kind)),
    };
    let mut out = Vec::new();
    for action in found {
        match action.kind {
            prose_ide::CodeActionKind::Run(command) if wanted(&RUN) => {
                let Some(command) = run_command(snapshot, command) else {
                    continue;
                };
                out.push(if snapshot.session.action_literals {
                    let (title, kind) = (action.title, Some(RUN));
                    CodeAction {
                        title,
                        kind,
                        command: Some(command),
                        ..CodeAction::default()
                    }
                    .into()
                } else {
                    command.into()
                });
            }
            prose_ide::CodeActionKind::QuickFix {
                code,
                diagnostic,
                edits,
                file,
            } if snapshot.session.action_literals && wanted(&CodeActionKind::QUICKFIX) => {
                let Some(uri) = snapshot.documents.uri(file) else {
                    continue;
                };
                let at = lines.range(diagnostic);
                let solved = |d: &&Diagnostic| {
                    d.range == at && d.code == Some(NumberOrString::String(code.to_owned()))
                };
                let diagnostics: Vec<_> = params
                    .context
                    .diagnostics
                    .iter()
                    .filter(solved)
                    .cloned()
                    .collect();
                let edits = edits
                    .into_iter()
                    .map(|e| TextEdit {
                        range: lines.range(e.range),
                        new_text: e.insert,
                    })
                    .collect();
                let edit = WorkspaceEdit {
                    changes: Some(HashMap::from([(uri, edits)])),
                    ..WorkspaceEdit::default()
                };
                let action = CodeAction {
                    title: action.title,
                    kind: Some(CodeActionKind::QUICKFIX),
                    diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
                    edit: Some(edit),
                    ..CodeAction::default()
                };
                out.push(action.into());
            }
            prose_ide::CodeActionKind::Run(_) | prose_ide::CodeActionKind::QuickFix { .. } => {}
        }
    }
    Ok(Ok(Some(out)))
}

/// Kinds are hierarchical: `source` asks for `source.run`, too.
fn covers(only: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let (only, kind) = (only.as_str(), kind.as_str());
    only.is_empty() || kind == only || kind.strip_prefix(only).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_hierarchical() {
        let kind = |k: &'static str| CodeActionKind::new(k);
        assert!(covers(&CodeActionKind::EMPTY, &RUN));
        assert!(covers(&kind("source"), &RUN));
        assert!(covers(&kind("source.run"), &RUN));
        assert!(!covers(&kind("source.ru"), &RUN));
        assert!(!covers(&kind("quickfix"), &RUN));
    }
}
