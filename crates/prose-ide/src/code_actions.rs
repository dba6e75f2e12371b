//! Fixes that diagnostics bring, refactorings, and Run: some editors show no lenses.

use prose_hir::{FileId, RootDatabase, SourceFile};
use prose_syntax::TextRange;

use crate::types::{CodeAction, CodeActionKind, FileRange, TextEdit};
use crate::{code_lens, diagnostics, refactor, tree};

/// Findings of one code up to which a fix of all of them is offered unasked.
const MANY: usize = 200;

pub(crate) fn code_actions(db: &RootDatabase, FileRange { file, range }: FileRange) -> Vec<CodeAction> {
    let Some(text) = tree::text(db, file) else {
        return Vec::new();
    };
    let range = TextRange::new(tree::clamp(&text, range.start()), tree::clamp(&text, range.end()));
    let mut actions: Vec<CodeAction> = Vec::new();
    if let Some(source) = tree::source(db, file) {
        let all = diagnostics::diagnostics(db, file);
        // Touching is enough: the cursor stands behind a word as often as in it.
        let touched = || all.iter().filter(|it| it.range.intersect(range).is_some());
        let mut everywhere: Vec<&'static str> = Vec::new();
        for found in touched() {
            for (index, fix) in prose_hir::fixes(db, source, found).into_iter().enumerate() {
                if fix.automatic && !everywhere.contains(&found.code) {
                    everywhere.push(found.code);
                }
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
        for code in everywhere {
            let count = all.iter().filter(|it| it.code == code).count();
            if (2..=MANY).contains(&count) {
                actions.extend(fix_code(db, source, code));
            }
        }
    }
    for action in refactor::refactorings(db, FileRange { file, range }) {
        let new = match &action.kind {
            CodeActionKind::Refactor { edits, .. } => !actions.iter().any(|it| made(it) == Some(edits)),
            _ => true,
        };
        if new {
            actions.push(action);
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

/// The edits of a fix: what a fix does already needn't be offered once more.
fn made(action: &CodeAction) -> Option<&Vec<TextEdit>> {
    match &action.kind {
        CodeActionKind::QuickFix { edits, .. } => Some(edits),
        _ => None,
    }
}

/// One action for all findings of a code in the file, when it settles more than one.
fn fix_code(db: &RootDatabase, source: SourceFile, code: &'static str) -> Option<CodeAction> {
    let (all, count) = prose_hir::fix_code(db, source, code);
    (count > 1).then(|| CodeAction {
        title: format!("Fix all {count} of {code} in this file"),
        kind: CodeActionKind::FixCode {
            code,
            edits: edits(all),
            file: source.id(db),
        },
    })
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
                }
                | CodeActionKind::FixCode {
                    code,
                    mut edits,
                    file,
                } => {
                    let mut text = setup.text(file).to_owned();
                    edits.sort_by_key(|it| std::cmp::Reverse(it.range.start()));
                    for edit in edits {
                        text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.insert);
                    }
                    out.push_str(&format!("{code} {}\n{text}", action.title));
                }
                CodeActionKind::Refactor { .. } => {}
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
                E007 Declare agent `writr`
                agent writer:
                  model: opus
                agent writr:
                  prompt: "…"

                session: writr
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

    #[test]
    fn several_fixes_and_all_of_a_code() {
        check(
            "do:\n\tsession \"a\"\ndo:\n$0\tsession \"b\"\n",
            expect![[r#"
            P102 Indent with spaces
            do:
            	session "a"
            do:
              session "b"
            P102 Fix all 2 of P102 in this file
            do:
              session "a"
            do:
              session "b"
            ▶ Run simulated=false
            ▷ Run simulated simulated=true
        "#]],
        );
        check(
            "session \"it\\$0's\"\n",
            expect![[r#"
            E002 Double the backslash
            session "it\\'s"
            E002 Remove the backslash
            session "it's"
            ▶ Run simulated=false
            ▷ Run simulated simulated=true
        "#]],
        );
    }

    #[test]
    fn everything_automatic_at_once() {
        let setup = setup("do:\n\tlet x = session: \"a\"\n\tif x: session \"b\"\nsession: nobody\n");
        let file = setup.main();
        let (edits, count) = setup.analysis.fix_all(file, &|_| true).unwrap().unwrap();
        let mut text = setup.text(file).to_owned();
        for edit in edits.iter().rev() {
            text.replace_range(std::ops::Range::<usize>::from(edit.range), &edit.insert);
        }
        expect![[r#"
            4
            do:
              let x = session "a"
              if x:
                session "b"
            session: nobody
        "#]]
        .assert_eq(&format!("{count}\n{text}"));
        let (edits, _) = setup.analysis.fix_all(file, &|it| it == "P204").unwrap().unwrap();
        assert_eq!(edits.len(), 1);
        assert_eq!(setup.analysis.fix_all(file, &|_| false).unwrap(), None);
    }
}
