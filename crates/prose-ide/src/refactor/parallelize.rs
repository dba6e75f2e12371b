//! Sessions one after the other of which none needs an earlier one, run at the same time.

use prose_syntax::ast::{self, AstNode, HasProperties};
use prose_syntax::{SyntaxKind, TextRange};

use super::Context;
use super::lines::{Selected, moved};
use crate::names;
use crate::types::{CodeAction, RefactorKind, TextEdit};

pub(super) fn parallelize(ctx: &Context<'_>, selected: &Selected, out: &mut Vec<CodeAction>) -> Option<()> {
    if selected.stmts.len() < 2 || selected.body.as_ref().is_some_and(is_parallel) {
        return None;
    }
    // The value of the last statement may be that of what is around it.
    let contract = prose_hir::contract(ctx.db, ctx.source);
    if selected.last && (selected.body.is_some() || contract.outputs.is_empty()) {
        return None;
    }
    let (mut lets, mut bound) = (Vec::new(), Vec::new());
    for (at, (stmt, range)) in selected.stmts.iter().enumerate() {
        let start = range.start();
        let session = match stmt {
            ast::Stmt::Expr(it) => it.expr()?,
            ast::Stmt::Let(it) if !it.is_const() => {
                let keyword = it.keyword()?.text_range();
                let name = it.name()?.syntax().text_range();
                bound.push(it.name()?.text());
                lets.push(TextRange::at(start, name.start() - keyword.start()));
                it.value()?
            }
            _ => return None,
        };
        let ast::Expr::Session(session) = session else {
            return None;
        };
        if session.name().is_some() {
            return None;
        }
        if let Some(agent) = session.agent() {
            let local = agent.syntax().text_range().start() - stmt.syntax().text_range().start();
            let found = names::at(ctx.db, ctx.source, start + local)?.definition;
            let agent = ast::AgentDef::cast(names::node(ctx.db, &found)?)?;
            // Its sessions share a memory.
            if agent.property("persist").is_some() {
                return None;
            }
            // Its texts are evaluated where the session starts.
            if found.file == ctx.file
                && bound.iter().any(|it| {
                    ctx.names(found.full_range)
                        .iter()
                        .any(|used| used.name.as_str() == it)
                })
            {
                return None;
            }
        }
        let earlier = TextRange::new(selected.range().start(), start);
        let uses = |it: prose_hir::NameUse| {
            it.definition
                .is_none_or(|it| it.file == ctx.file && earlier.contains_range(it.range))
        };
        if at > 0 && ctx.names(*range).into_iter().any(uses) {
            return None;
        }
    }
    bound.sort_unstable();
    if bound.windows(2).any(|it| it[0] == it[1]) {
        return None;
    }
    let (from, to) = (selected.indent, selected.indent + 2);
    let newline = ctx.newline();
    let mut insert = format!("{}parallel:{newline}", " ".repeat(from));
    // Branches are written without `let`.
    let mut at = selected.lines.start();
    for range in lets {
        let line = ctx.line_start(range.start());
        insert.push_str(&moved(ctx, TextRange::new(at, line), from, to)?);
        insert.push_str(&" ".repeat(to));
        at = range.end();
    }
    insert.push_str(&moved(ctx, TextRange::new(at, selected.lines.end()), from, to)?);
    let edits = vec![TextEdit {
        range: selected.lines,
        insert,
    }];
    if ctx.keeps(&edits) {
        let title = format!("Run these {} sessions in parallel", selected.stmts.len());
        out.push(ctx.action(title, RefactorKind::Rewrite, edits));
    }
    Some(())
}

/// Whether the statements of a body are branches.
pub(super) fn is_parallel(body: &prose_syntax::SyntaxNode) -> bool {
    body.parent()
        .is_some_and(|it| it.kind() == SyntaxKind::PARALLEL_EXPR)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Run these";

    #[test]
    fn independent_sessions() {
        check(
            TITLE,
            Keeps::Texts,
            "let t = 1\n$0# one\nlet a = session \"A {t}\" # x\n  context: t\n\nlet b = session \"\"\"\n  B\n    b\n\"\"\"\nsession \"C\"$0\nsession \"{a} {b}\"\n",
            expect![[r#"
                let t = 1
                parallel:
                  # one
                  a = session "A {t}" # x
                    context: t

                  b = session """
                    B
                      b
                  """
                  session "C"
                session "{a} {b}"
            "#]],
        );
        check(
            TITLE,
            Keeps::Texts,
            "agent w:\n  prompt: \"w\"\nblock f:\n    $0let a = session: w\n      prompt: \"A\"\n    let b = session: w\n      prompt: \"B\"$0\n    output a + b\ndo f\n",
            expect![[r#"
                agent w:
                  prompt: "w"
                block f:
                    parallel:
                      a = session: w
                        prompt: "A"
                      b = session: w
                        prompt: "B"
                    output a + b
                do f
            "#]],
        );
    }

    #[test]
    fn dependent_ones_stay() {
        let rest = "session \"z\"\n";
        for lines in [
            "$0let a = session \"a\"\nlet b = session \"{a}\"$0\n",
            "$0let a = session \"a\"\nlet b = session \"b\"\n  context: a$0\n",
            "$0const a = session \"a\"\nlet b = session \"b\"$0\n",
            "$0let a = session \"a\"\nlet a = session \"b\"$0\n",
            "$0let a = 1\nlet b = session \"b\"$0\n",
            "$0let a = session \"a\"$0\n",
            "parallel:\n  $0a = session \"a\"\n  session \"b\"$0\n",
            "agent q:\n  prompt: \"{a}\"\n$0let a = session \"a\"\nsession: q\n  prompt: \"b\"$0\n",
            "agent p:\n  prompt: \"p\"\n  persist: true\n$0session: p\n  prompt: \"a\"\nsession: p\n  prompt: \"b\"$0\n",
        ] {
            refused(TITLE, &format!("{lines}{rest}"));
        }
        // The second one's result is the program's.
        refused(TITLE, "$0session \"a\"\nsession \"b\"$0\n");
    }
}
