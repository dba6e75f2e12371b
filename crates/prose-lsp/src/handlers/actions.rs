use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeLens, Diagnostic, NumberOrString,
    WorkspaceEdit,
};
use prose_ide::{Cancellable, FileId, FileRange, RefactorKind, Severity};
use tower_lsp::jsonrpc::Result;

use crate::convert::{Lines, run_command};
use crate::query::Snapshot;

/// Kind of the actions that run the file.
pub(crate) const RUN: CodeActionKind = CodeActionKind::new("source.run");

/// Kind of the action that makes every fix that needs no decision.
pub(crate) const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.prose");

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
    let quick_fixes = snapshot.session.action_literals && wanted(&CodeActionKind::QUICKFIX);
    let given = &params.context.diagnostics;
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
                preferred,
                edits,
                file,
            } if quick_fixes => {
                let at = lines.range(diagnostic);
                let solved = given.iter().filter(|d| d.range == at && has_code(d, code));
                let Some(edit) = workspace_edit(snapshot, &lines, file, edits) else {
                    continue;
                };
                out.push(quick_fix(action.title, edit, solved, preferred));
            }
            prose_ide::CodeActionKind::FixCode { code, edits, file } if quick_fixes => {
                let solved = given.iter().filter(|d| has_code(d, code));
                let Some(edit) = workspace_edit(snapshot, &lines, file, edits) else {
                    continue;
                };
                out.push(quick_fix(action.title, edit, solved, false));
            }
            prose_ide::CodeActionKind::Refactor { kind, edits, file }
                if snapshot.session.action_literals && wanted(&refactor_kind(kind)) =>
            {
                let Some(edit) = workspace_edit(snapshot, &lines, file, edits) else {
                    continue;
                };
                out.push(
                    CodeAction {
                        title: action.title,
                        kind: Some(refactor_kind(kind)),
                        edit: Some(edit),
                        ..CodeAction::default()
                    }
                    .into(),
                );
            }
            prose_ide::CodeActionKind::Run(_)
            | prose_ide::CodeActionKind::Refactor { .. }
            | prose_ide::CodeActionKind::QuickFix { .. }
            | prose_ide::CodeActionKind::FixCode { .. } => {}
        }
    }
    // Only on request: it checks the file several times over.
    if snapshot.session.action_literals && params.context.only.is_some() && wanted(&FIX_ALL) {
        out.extend(fix_all(snapshot, &lines, file)?);
    }
    Ok(Ok(Some(out)))
}

fn refactor_kind(kind: RefactorKind) -> CodeActionKind {
    match kind {
        RefactorKind::Extract => CodeActionKind::REFACTOR_EXTRACT,
        RefactorKind::Inline => CodeActionKind::REFACTOR_INLINE,
        RefactorKind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
    }
}

fn quick_fix<'a>(
    title: String,
    edit: WorkspaceEdit,
    solved: impl Iterator<Item = &'a Diagnostic>,
    preferred: bool,
) -> CodeActionOrCommand {
    let solved: Vec<_> = solved.cloned().collect();
    CodeAction {
        title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: (!solved.is_empty()).then_some(solved),
        edit: Some(edit),
        is_preferred: preferred.then_some(true),
        ..CodeAction::default()
    }
    .into()
}

fn has_code(diagnostic: &Diagnostic, code: &str) -> bool {
    matches!(&diagnostic.code, Some(NumberOrString::String(it)) if it == code)
}

/// All automatic fixes of codes that are not turned off.
fn fix_all(snapshot: &Snapshot, lines: &Lines, file: FileId) -> Cancellable<Option<CodeActionOrCommand>> {
    let on = |code: &str| snapshot.lint.severity(code, Severity::Warning).is_some();
    let Some((edits, count)) = snapshot.analysis.fix_all(file, &on)? else {
        return Ok(None);
    };
    let edit = workspace_edit(snapshot, lines, file, edits);
    Ok(edit.map(|edit| {
        CodeAction {
            title: match count {
                1 => "Fix the one problem that needs no decision".to_owned(),
                _ => format!("Fix the {count} problems that need no decision"),
            },
            kind: Some(FIX_ALL),
            edit: Some(edit),
            ..CodeAction::default()
        }
        .into()
    }))
}

fn workspace_edit(
    snapshot: &Snapshot,
    lines: &Lines,
    file: FileId,
    edits: Vec<prose_ide::TextEdit>,
) -> Option<WorkspaceEdit> {
    let uri = snapshot.documents.uri(file)?;
    let edits = lines.edits(edits);
    Some(WorkspaceEdit {
        changes: Some(HashMap::from([(uri, edits)])),
        ..WorkspaceEdit::default()
    })
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
