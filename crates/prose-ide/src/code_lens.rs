//! Run and Run simulated above the first statement that runs.

use prose_hir::{FileId, RootDatabase};
use prose_syntax::TextRange;
use prose_syntax::ast::{AstNode, SourceFile, Stmt};

use crate::tree;
use crate::types::{CodeLens, RunCommand};

pub(crate) fn code_lenses(db: &RootDatabase, file: FileId) -> Vec<CodeLens> {
    let Some(range) = first_executable(db, file) else { return Vec::new() };
    commands(file).map(|command| CodeLens { range, title: command.title().to_owned(), command }).collect()
}

/// The ways to run a file.
pub(crate) fn commands(file: FileId) -> impl Iterator<Item = RunCommand> {
    [false, true].into_iter().map(move |simulated| RunCommand { file, simulated })
}

/// The first statement that does something; in a file that only asks for inputs the first of these. A library of agents
/// and blocks has none: running it would do nothing.
pub(crate) fn first_executable(db: &RootDatabase, file: FileId) -> Option<TextRange> {
    let source = tree::source(db, file)?;
    let mut input = None;
    for piece in tree::pieces(db, source) {
        let statements = SourceFile::cast(piece.root.clone()).into_iter().flat_map(|it| it.statements());
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
