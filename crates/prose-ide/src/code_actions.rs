//! Fixes that diagnostics bring, and Run: some editors show no lenses.

use prose_hir::RootDatabase;
use prose_syntax::TextRange;

use crate::types::{CodeAction, CodeActionKind, FileRange, TextEdit};
use crate::{code_lens, diagnostics, tree};

pub(crate) fn code_actions(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<CodeAction> {
    let Some(text) = tree::text(db, file) else { return Vec::new() };
    let range = TextRange::new(tree::clamp(&text, range.start()), tree::clamp(&text, range.end()));
    let fixes = diagnostics::diagnostics(db, file).into_iter().filter_map(|found| {
        // Touching is enough: the cursor stands behind a word as often as in it.
        found.range.intersect(range)?;
        let fix = found.fix?;
        let edits = fix.edits.into_iter().map(|(range, insert)| TextEdit { range, insert }).collect();
        Some(CodeAction {
            title: fix.title,
            kind: CodeActionKind::QuickFix { code: found.code, diagnostic: found.range, edits, file },
        })
    });
    let mut actions: Vec<CodeAction> = Vec::new();
    for fix in fixes {
        if !actions.contains(&fix) {
            actions.push(fix);
        }
    }
    if code_lens::first_executable(db, file).is_some() {
        actions.extend(
            code_lens::commands(file)
                .map(|command| CodeAction { title: command.title().to_owned(), kind: CodeActionKind::Run(command) }),
        );
    }
    actions
}
