//! Run and Run simulated above the first statement that runs.

use prose_hir::{FileId, RootDatabase};
use prose_syntax::TextRange;
use prose_syntax::ast::{AstNode, SourceFile, Stmt};

use crate::tree;
use crate::types::{CodeLens, RunCommand};

pub(crate) fn code_lenses(db: &RootDatabase, file: FileId) -> Vec<CodeLens> {
    let Some(range) = first_executable(db, file) else {
        return Vec::new();
    };
    commands(file)
        .map(|command| CodeLens {
            range,
            title: command.title().to_owned(),
            command,
        })
        .collect()
}

/// The ways to run a file.
pub(crate) fn commands(file: FileId) -> impl Iterator<Item = RunCommand> {
    [false, true]
        .into_iter()
        .map(move |simulated| RunCommand { file, simulated })
}

/// The first statement that does something; in a file that only asks for inputs the first of these. A library of agents
/// and blocks has none: running it would do nothing.
pub(crate) fn first_executable(db: &RootDatabase, file: FileId) -> Option<TextRange> {
    let source = tree::source(db, file)?;
    let mut input = None;
    for piece in tree::pieces(db, source) {
        let statements = SourceFile::cast(piece.root.clone())
            .into_iter()
            .flat_map(|it| it.statements());
        for statement in statements {
            let range = piece.up(statement.syntax().text_range());
            match statement {
                Stmt::Use(_) | Stmt::Import(_) | Stmt::Agent(_) | Stmt::Block(_) => {}
                Stmt::Input(_) => input = input.or(Some(range)),
                _ => return Some(range),
            }
        }
    }
    input
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::FileRange;
    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let lenses = setup.analysis.code_lenses(file).unwrap();
        let shown: Vec<String> = lenses
            .into_iter()
            .map(|it| {
                let place = setup.place(FileRange {
                    file,
                    range: it.range,
                });
                format!("{place} {} simulated={}", it.title, it.command.simulated)
            })
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn first_statement_that_runs() {
        check(
            "# x\nuse \"a/b\"\nagent a:\n  model: opus\ninput t: \"?\"\nlet x = session \"y\"\nsession \"z\"\n",
            expect![[r#"
            /main.prose:6:1 ▶ Run simulated=false
            /main.prose:6:1 ▷ Run simulated simulated=true"#]],
        );
        check(
            "session \"x\"\n",
            expect![[r#"
            /main.prose:1:1 ▶ Run simulated=false
            /main.prose:1:1 ▷ Run simulated simulated=true"#]],
        );
        check(
            "input t: \"?\"\n",
            expect![[r#"
            /main.prose:1:1 ▶ Run simulated=false
            /main.prose:1:1 ▷ Run simulated simulated=true"#]],
        );
    }

    #[test]
    fn libraries_and_empty_files_have_none() {
        check(
            "agent a:\n  model: opus\nblock f:\n  session \"x\"\n",
            expect![""],
        );
        check("# nothing\n", expect![""]);
        check("", expect![""]);
    }
}
