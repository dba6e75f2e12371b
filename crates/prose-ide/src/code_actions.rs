//! Fixes that diagnostics bring, and Run: some editors show no lenses.

use prose_hir::{FileId, RootDatabase};
use prose_syntax::TextRange;

use crate::types::{CodeAction, CodeActionKind, FileRange, TextEdit};
use crate::{code_lens, diagnostics, tree};

pub(crate) fn code_actions(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<CodeAction> {
    let Some(text) = tree::text(db, file) else {
        return Vec::new();
    };
    let range = TextRange::new(tree::clamp(&text, range.start()), tree::clamp(&text, range.end()));
    let mut actions: Vec<CodeAction> = Vec::new();
    if let Some(source) = tree::source(db, file) {
        // Touching is enough: the cursor stands behind a word as often as in it.
        let touched = diagnostics::diagnostics(db, file)
            .into_iter()
            .filter(|it| it.range.intersect(range).is_some());
        for found in touched {
            for (index, fix) in prose_hir::fixes(db, source, &found).into_iter().enumerate() {
                let action = CodeAction {
                    title: fix.title,
                    kind: CodeActionKind::QuickFix {
                        code: found.code,
                        diagnostic: found.range,
                        preferred: index == 0,
                        edits: edits(fix.edits),
                        file,
                    },
                };
                if !actions.contains(&action) {
                    actions.push(action);
                }
            }
        }
    }
    if code_lens::first_executable(db, file).is_some() {
        actions.extend(code_lens::commands(file).map(|command| CodeAction {
            title: command.title().to_owned(),
            kind: CodeActionKind::Run(command),
        }));
    }
    actions
}

/// The automatic fixes of a file as one, and how many they are; of the codes that are wanted.
pub(crate) fn fix_all(
    db: &RootDatabase,
    file: FileId,
    wanted: &dyn Fn(&str) -> bool,
) -> Option<(Vec<TextEdit>, usize)> {
    let source = tree::source(db, file)?;
    let (all, count) = prose_hir::fix_all(db, source, wanted);
    (!all.is_empty()).then(|| (edits(all), count))
}

fn edits(edits: Vec<(TextRange, String)>) -> Vec<TextEdit> {
    edits
        .into_iter()
        .map(|(range, insert)| TextEdit { range, insert })
        .collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{CodeActionKind, FileRange, TextRange};

    /// The titles, and for quick fixes the text after each.
    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let position = setup.position();
        let range = FileRange {
            file: position.file,
            range: TextRange::empty(position.offset),
        };
        let mut out = String::new();
        for action in setup.analysis.code_actions(range).unwrap() {
            match action.kind {
                CodeActionKind::QuickFix {
                    code,
                    mut edits,
                    file,
                    ..
                } => {
                    let mut text = setup.text(file).to_owned();
                    edits.sort_by_key(|it| std::cmp::Reverse(it.range.start()));
                    for edit in edits {
                        text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.insert);
                    }
                    out.push_str(&format!("{code} {}\n{text}", action.title));
                }
                CodeActionKind::Run(command) => {
                    out.push_str(&format!("{} simulated={}\n", action.title, command.simulated));
                }
            }
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn run_is_offered_everywhere() {
        check(
            "session \"x\"\n\n\n$0",
            expect![[r#"
            ▶ Run simulated=false
            ▷ Run simulated simulated=true
        "#]],
        );
        check("block f:\n  ses$0sion \"x\"\n", expect![""]);
    }

    #[test]
    fn fixes_at_the_cursor() {
        check(
            "agent writer:\n  model: opus\nsession: wri$0tr\n",
            expect![[r#"
            E007 Replace with `writer`
            agent writer:
              model: opus
            session: writer
            ▶ Run simulated=false
            ▷ Run simulated simulated=true
        "#]],
        );
        check(
            "agent writer:\n  model: opus\nsession: writr\nsession \"$0x\"\n",
            expect![[r#"
            ▶ Run simulated=false
            ▷ Run simulated simulated=true
        "#]],
        );
    }
}
