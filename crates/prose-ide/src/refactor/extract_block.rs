//! A block made of selected statements, and a call in their place.

use prose_hir::{Binding, DefKind, Definition, RefKind};
use prose_syntax::ast::{self, AstNode};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange};

use super::Context;
use super::lines::{Selected, above, moved};
use super::parallelize::is_parallel;
use crate::types::{CodeAction, RefactorKind, TextEdit};

pub(super) fn extract_block(ctx: &Context<'_>, selected: &Selected, out: &mut Vec<CodeAction>) -> Option<()> {
    let region = selected.range();
    if selected.nodes().any(|it| stays(&it, selected)) {
        return None;
    }
    let (params, declared) = variables(ctx, selected)?;
    let mut results: Vec<&Definition> = Vec::new();
    for definition in &declared {
        if used_outside(ctx, definition, region)? {
            results.push(definition);
        }
        if survives(ctx, selected, definition) {
            return None;
        }
    }
    let result = match results.as_slice() {
        [] => None,
        [one] => Some((one.name.to_string(), binding(one, selected)?)),
        _ => return None,
    };
    if selected.body.as_ref().is_some_and(is_parallel)
        && (result.is_some() || !matches!(selected.stmts.as_slice(), [(ast::Stmt::Expr(_), _)]))
    {
        return None;
    }
    let name = ctx.fresh_name("new_block");
    let newline = ctx.newline();
    let list = match params.is_empty() {
        true => String::new(),
        false => format!("({})", params.join(", ")),
    };
    let mut block = format!("block {name}{list}:{newline}");
    block.push_str(&moved(ctx, selected.lines, selected.indent, 2)?);
    block.push_str(newline);
    let mut call = " ".repeat(selected.indent);
    if let Some((result, word)) = &result {
        block.push_str(&format!("  output {result}{newline}"));
        call.push_str(&format!("{word} {result} = "));
    }
    block.push_str(newline);
    call.push_str(&format!("do {name}{list}"));
    let start = above(ctx, selected.top.start()).min(selected.lines.start());
    let edits = if start == selected.lines.start() {
        vec![TextEdit {
            range: selected.lines,
            insert: block + &call,
        }]
    } else {
        vec![
            TextEdit {
                range: TextRange::empty(start),
                insert: block,
            },
            TextEdit {
                range: selected.lines,
                insert: call,
            },
        ]
    };
    if ctx.keeps(&edits) {
        out.push(ctx.action(format!("Extract to block `{name}`"), RefactorKind::Extract, edits));
    }
    Some(())
}

/// Whether a node means something else, or nothing, in a block of its own.
fn stays(node: &SyntaxNode, selected: &Selected) -> bool {
    let inside = |kinds: &[SyntaxKind]| {
        let statement = |it: &SyntaxNode| selected.stmts.iter().any(|(own, _)| own.syntax() == it);
        let mut done = false;
        let mut around = node.ancestors().take_while(|it| {
            let now = !done;
            done = statement(it);
            now
        });
        around.any(|it| kinds.contains(&it.kind()))
    };
    match node.kind() {
        SyntaxKind::USE_STMT
        | SyntaxKind::IMPORT_STMT
        | SyntaxKind::INPUT_STMT
        | SyntaxKind::OUTPUT_STMT
        | SyntaxKind::RETURN_STMT
        | SyntaxKind::AGENT_DEF
        | SyntaxKind::BLOCK_DEF
        | SyntaxKind::COMPUTED_NAME => true,
        SyntaxKind::BREAK_STMT => !inside(&[
            SyntaxKind::LOOP_EXPR,
            SyntaxKind::FOR_EXPR,
            SyntaxKind::REPEAT_EXPR,
        ]),
        SyntaxKind::THROW_STMT => {
            let bare = ast::ThrowStmt::cast(node.clone()).is_some_and(|it| it.value().is_none());
            bare && !inside(&[SyntaxKind::CATCH_CLAUSE])
        }
        SyntaxKind::DO_CALL_EXPR => {
            // Each round of a recursion would be two calls deep.
            let own = node.ancestors().find_map(ast::BlockDef::cast);
            let callee = ast::DoCallExpr::cast(node.clone()).and_then(|it| it.callee());
            match (own.and_then(|it| it.name()), callee) {
                (Some(own), Some(callee)) => own.text() == callee.text(),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The variables that the statements use, in the order of first use, and what they declare; `None` where they do more than that
/// with the names around them.
fn variables(ctx: &Context<'_>, selected: &Selected) -> Option<(Vec<String>, Vec<Definition>)> {
    let region = selected.range();
    let mut params: Vec<String> = Vec::new();
    let mut declared: Vec<Definition> = Vec::new();
    for name in ctx.names(region) {
        if name.role == Some(RefKind::Label) {
            continue;
        }
        if !matches!(name.binding, Binding::Sure | Binding::Global) {
            // An assignment to what nothing declares is a declaration.
            let own = |it: &Definition| it.range == name.range && it.file == ctx.file;
            let declares = name.role == Some(RefKind::Assign) && name.definition.as_ref().is_some_and(own);
            if !declares {
                return None;
            }
        }
        let definition = name.definition?;
        if definition.kind.is_global() {
            continue;
        }
        let inside = definition.file == ctx.file && region.contains_range(definition.range);
        match name.role {
            _ if definition.file != ctx.file => return None,
            None | Some(RefKind::Assign) if !inside => return None,
            _ if inside => {
                let slot = !definition.kind.is_scoped();
                if slot && !declared.iter().any(|it| it.name == definition.name) {
                    declared.push(definition);
                }
            }
            _ => {
                let name = name.name.to_string();
                if definition.kind == DefKind::Implicit {
                    return None;
                }
                if !params.contains(&name) {
                    params.push(name);
                }
            }
        }
    }
    // A parameter keeps the value that it was called with.
    for (stmt, range) in &selected.stmts {
        let stale = |name: &String| ctx.changes_meanwhile(name, stmt.syntax(), *range);
        if params.iter().any(stale) {
            return None;
        }
    }
    // One name for two things would be one variable.
    let both = declared
        .iter()
        .any(|it| params.iter().any(|name| it.name.as_str() == name));
    (!both).then_some((params, declared))
}

/// Whether a variable of the statements is used outside; `None` where it isn't only theirs.
fn used_outside(ctx: &Context<'_>, definition: &Definition, region: TextRange) -> Option<bool> {
    let references = prose_hir::references(ctx.db, definition);
    let outside: Vec<_> = references
        .iter()
        .filter(|it| it.file != ctx.file || !region.contains_range(it.range))
        .collect();
    for place in &outside {
        let before = place.range.start() < region.start();
        if place.role.is_none() || (place.role == Some(RefKind::Assign) && before) {
            return None;
        }
    }
    // Who else says the name may mean it, as what a block is called from is in its sight.
    for (place, _) in ctx.spelled(definition.name.as_str(), region) {
        if outside.iter().any(|it| it.range == place) {
            continue;
        }
        let name = prose_hir::name_at(ctx.db, ctx.source, place.start());
        if name.is_none_or(|it| it.binding != Binding::Sure) {
            return None;
        }
    }
    Some(!outside.is_empty())
}

/// Whether a round of a loop may see what an earlier one has left in a variable, which a block of its own would have lost: a
/// nested statement declares it, and one outside that uses it.
fn survives(ctx: &Context<'_>, selected: &Selected, definition: &Definition) -> bool {
    let looped = selected.body.iter().flat_map(SyntaxNode::ancestors).any(|it| {
        matches!(
            it.kind(),
            SyntaxKind::LOOP_EXPR | SyntaxKind::FOR_EXPR | SyntaxKind::REPEAT_EXPR | SyntaxKind::PIPE_OP
        )
    });
    let declaring = selected
        .stmts
        .iter()
        .find(|it| it.1.contains_range(definition.range));
    let Some((stmt, range)) = declaring.filter(|_| looped) else {
        return false;
    };
    let start = range.start() - stmt.syntax().text_range().start();
    let nested = stmt
        .syntax()
        .descendants()
        .filter(|it| it.kind() == SyntaxKind::BODY)
        .map(|it| it.text_range() + start)
        .filter(|it| it.contains_range(definition.range))
        .last();
    nested.is_some_and(|body| {
        let references = prose_hir::references(ctx.db, definition);
        references.iter().any(|it| !body.contains_range(it.range))
    })
}

/// The word that binds what the statements give, when one of them declares it in so many words.
fn binding(result: &Definition, selected: &Selected) -> Option<&'static str> {
    let at = selected
        .stmts
        .iter()
        .position(|it| it.1.contains_range(result.range))?;
    let (stmt, range) = &selected.stmts[at];
    // The value of the last statement may be that of what is around it.
    if selected.last && at + 1 < selected.stmts.len() {
        return None;
    }
    let start = range.start() - stmt.syntax().text_range().start();
    let is_name = |it: &SyntaxNode| it.text_range() + start == result.range;
    match stmt {
        ast::Stmt::Let(it) => {
            let pattern = it.pattern().into_iter().flat_map(|it| it.names());
            let mut names = it.name().into_iter().chain(pattern);
            names
                .any(|it| is_name(it.syntax()))
                .then_some(match it.is_const() {
                    true => "const",
                    false => "let",
                })
        }
        ast::Stmt::Assign(it) => match it.target()? {
            ast::Target::Name(name) if is_name(name.syntax()) => Some("let"),
            _ => None,
        },
        ast::Stmt::Expr(it) => match it.expr()? {
            ast::Expr::Session(session) if is_name(session.name()?.syntax()) => Some("let"),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Extract to block";

    #[test]
    fn statements_of_the_top_level() {
        check(
            TITLE,
            Keeps::Texts,
            "agent w:\n  prompt: \"w\"\nlet t = \"x\"\nlet u = \"y\"\n\n# about\n$0session \"A {u} {t}\" # a\n  context: t\n# between\nif **is {u} good**:\n  session: w\n    prompt: \"\"\"\n      B\n        b\n    \"\"\"$0\nsession \"z\"\n",
            expect![[r#"
                agent w:
                  prompt: "w"
                let t = "x"
                let u = "y"

                block new_block(u, t):
                  session "A {u} {t}" # a
                    context: t
                  # between
                  if **is {u} good**:
                    session: w
                      prompt: """
                        B
                          b
                      """

                # about
                do new_block(u, t)
                session "z"
            "#]],
        );
    }

    #[test]
    fn one_result() {
        check(
            TITLE,
            Keeps::Texts,
            "$0# first\nlet a = session \"a\"\nconst b = session \"{a}\"$0\nsession \"{b}\"\n",
            expect![[r#"
                block new_block:
                  # first
                  let a = session "a"
                  const b = session "{a}"
                  output b

                const b = do new_block
                session "{b}"
            "#]],
        );
        refused(
            TITLE,
            "$0let a = session \"a\"\nlet b = session \"{a}\"$0\nsession \"{a} {b}\"\n",
        );
        refused(TITLE, "$0if **x**:\n  let a = session \"a\"$0\nsession \"{a}\"\n");
        // The value of the last statement is the block's.
        refused(
            TITLE,
            "block f:\n  repeat 2:\n    if a:\n      session \"x\"\n    $0let a = 1\n    session \"b\"$0\ndo f\n",
        );
    }

    #[test]
    fn statements_of_a_body() {
        check(
            TITLE,
            Keeps::Texts,
            "block new_block(x):\n  session \"{x}\"\nlet items = [1, 2]\n# all\nfor item in items:\n    let n = 1\n    $0session \"a {item}\"\n    do new_block(n)$0\n    session \"b\"\n",
            expect![[r#"
                block new_block(x):
                  session "{x}"
                let items = [1, 2]
                block new_block_2(item, n):
                  session "a {item}"
                  do new_block(n)

                # all
                for item in items:
                    let n = 1
                    do new_block_2(item, n)
                    session "b"
            "#]],
        );
    }

    #[test]
    fn what_would_mean_something_else() {
        for program in [
            "let a = 1\n$0a = 2$0\nsession \"{a}\"\n",
            "$0output a = session \"x\"$0\n",
            "block f:\n  $0return session \"x\"$0\ndo f\n",
            "repeat 2:\n  $0break$0\n",
            "try:\n  session \"x\"\ncatch:\n  $0throw$0\n",
            "let r = [1] | map:\n  $0session \"{item}\"$0\n",
            "$0agent a:\n  prompt: \"x\"$0\nsession: a\n",
            "$0input a: \"x\"$0\nsession \"{a}\"\n",
            "$0session \"x$0\n",
            "session \"$0x$0\"\n",
            "parallel:\n  $0a = session \"x\"$0\n  session \"y\"\n",
            "if **a**: $0session \"x\"$0\n",
            "block f(n):\n  $0do f(n - 1)$0\ndo f(2)\n",
            "repeat 2:\n  $0if **x**:\n    let v = 1\n  session \"{v}\"$0\n",
            "let a = 1\nblock f:\n  a = 2\n$0do f\nsession \"{a}\"$0\n",
        ] {
            refused(TITLE, program);
        }
    }
}
