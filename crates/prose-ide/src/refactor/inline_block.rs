//! A block's statements in the place of a call. The block goes when that was its last one.

use prose_hir::{Binding, DefKind, Definition, RefKind};
use prose_syntax::ast::{self, AstNode, HasBody};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize};

use super::lines::{above, line_above, line_below, moved, own_line};
use super::parallelize::is_parallel;
use super::{Context, Place};
use crate::names;
use crate::tree::{self, Piece};
use crate::types::{CodeAction, RefactorKind, TextEdit};

/// The call: its statement and what binds its value.
struct Call {
    stmt: SyntaxNode,
    range: TextRange,
    indent: usize,
    /// `let x` or `const x`.
    bound: Option<String>,
    args: Vec<ast::Arg>,
    /// Where the called name stands.
    callee: TextRange,
    /// Nothing follows in its body.
    last: bool,
}

/// The block: its header and body.
struct Body {
    piece: Piece,
    node: SyntaxNode,
    params: Vec<String>,
    stmts: Vec<ast::Stmt>,
    /// The lines below the header.
    lines: TextRange,
    indent: usize,
    /// The comment behind the header.
    comment: String,
}

pub(super) fn inline_block(ctx: &Context<'_>, place: &Place, out: &mut Vec<CodeAction>) -> Option<()> {
    let call = call(ctx, place)?;
    let definition = names::at(ctx.db, ctx.source, call.callee.start())?.definition;
    if definition.kind != DefKind::Block || definition.file != ctx.file {
        return None;
    }
    let body = body(ctx, &definition)?;
    let whole = body.piece.up(body.node.text_range());
    if !ctx.is_sound(whole) || whole.contains_range(call.range) {
        return None;
    }
    let last = body.stmts.last()?;
    if body.stmts.iter().any(|it| stays(it, last)) {
        return None;
    }
    let given = given(ctx, place, &call, &body)?;
    if !fits(ctx, &call, &body, &definition, whole, &given)? {
        return None;
    }
    let newline = ctx.newline();
    let indent = " ".repeat(call.indent);
    let mut text = String::new();
    let other = prose_hir::references(ctx.db, &definition)
        .iter()
        .filter(|it| it.role.is_some())
        .any(|it| (it.file, it.range) != (ctx.file, call.callee));
    let start = above(ctx, whole.start());
    if !other {
        let line = ctx.line_start(whole.start());
        text.push_str(&moved(ctx, TextRange::new(start, line), 0, call.indent)?);
        if !body.comment.is_empty() {
            text.push_str(&format!("{indent}{}{newline}", body.comment));
        }
    }
    let behind = TextRange::new(call.range.end(), ctx.line_end(call.range.end()));
    let comment = ctx.slice(behind).trim();
    if !comment.is_empty() {
        text.push_str(&format!("{indent}{comment}{newline}"));
    }
    for (param, value) in &given {
        text.push_str(&format!("{indent}let {param} = {value}{newline}"));
    }
    text.push_str(&statements(ctx, &call, &body, last)?);
    let mut edits = vec![TextEdit {
        range: TextRange::new(ctx.line_start(call.range.start()), behind.end()),
        insert: text,
    }];
    if !other {
        edits.push(TextEdit {
            range: removed(ctx, start, body.lines.end()),
            insert: String::new(),
        });
        edits.sort_by_key(|it| it.range.start());
    }
    if ctx.keeps(&edits) {
        let title = format!("Inline block `{}`", definition.name);
        out.push(ctx.action(title, RefactorKind::Inline, edits));
    }
    Some(())
}

fn call(ctx: &Context<'_>, place: &Place) -> Option<Call> {
    let call = place.token.parent_ancestors().find_map(ast::DoCallExpr::cast)?;
    let stmt = call.syntax().parent()?;
    let bound = match ast::Stmt::cast(stmt.clone())? {
        ast::Stmt::Expr(_) => None,
        ast::Stmt::Let(it) => Some(format!("{} {}", it.keyword()?.text(), it.name()?.text())),
        _ => return None,
    };
    let around = stmt.parent()?;
    if is_parallel(&around) || has_comment(&stmt) {
        return None;
    }
    let siblings = around.children().filter_map(ast::Stmt::cast);
    // Of the top level not all is in this tree, and what is taken for the last one needn't be it.
    let last = siblings.last()?.syntax() == &stmt;
    let range = place.piece.up(stmt.text_range());
    Some(Call {
        indent: own_line(ctx, range)?,
        range,
        bound,
        args: call.args().iter().flat_map(|it| it.args()).collect(),
        callee: place.piece.up(call.callee()?.syntax().text_range()),
        last,
        stmt,
    })
}

fn body(ctx: &Context<'_>, definition: &Definition) -> Option<Body> {
    let block = ast::BlockDef::cast(names::node(ctx.db, definition)?)?;
    let (piece, _) = tree::piece_at(ctx.db, ctx.source, definition.full_range.start())?;
    let body = block.body()?;
    let stmts: Vec<ast::Stmt> = body.statements().collect();
    let first = piece.up(stmts.first()?.syntax().text_range());
    let end = piece.up(stmts.last()?.syntax().text_range()).end();
    let node = block.syntax().clone();
    let colon = node
        .children_with_tokens()
        .filter(|it| it.kind() == SyntaxKind::COLON)
        .last()?;
    let header = piece.up(colon.text_range()).end();
    let own = piece.up(body.syntax().text_range());
    // What the body ends with may be a comment below its last statement.
    let text = ctx.slice(own).trim_end();
    let end = end.max(own.start() + TextSize::of(text));
    let line = line_below(ctx, ctx.line_end(header))?;
    let lines = TextRange::new(line.start(), ctx.line_end(end));
    if !lines.contains_range(first) {
        return None;
    }
    own_line(ctx, TextRange::new(first.start(), end))?;
    let params = block.params();
    if params.as_ref().is_some_and(|it| has_comment(it.syntax())) {
        return None;
    }
    let params = params
        .iter()
        .flat_map(|it| it.params())
        .filter_map(|it| it.name());
    Some(Body {
        params: params.map(|it| it.text()).collect(),
        comment: ctx
            .slice(TextRange::new(header, ctx.line_end(header)))
            .trim()
            .to_owned(),
        indent: own_line(ctx, TextRange::new(first.start(), end))?,
        stmts,
        lines,
        node,
        piece,
    })
}

fn has_comment(node: &SyntaxNode) -> bool {
    node.descendants_with_tokens()
        .any(|it| it.kind() == SyntaxKind::COMMENT)
}

/// Whether a statement means something else outside a block.
fn stays(stmt: &ast::Stmt, last: &ast::Stmt) -> bool {
    stmt.syntax().descendants().any(|node| {
        let around = |kinds: &[SyntaxKind]| {
            let inside = node
                .ancestors()
                .take_while(|it| it.kind() != SyntaxKind::BLOCK_DEF);
            inside.into_iter().any(|it| kinds.contains(&it.kind()))
        };
        match node.kind() {
            SyntaxKind::OUTPUT_STMT => {
                &node != last.syntax() || ast::OutputStmt::cast(node).is_none_or(|it| it.name().is_some())
            }
            SyntaxKind::BREAK_STMT => !around(&[
                SyntaxKind::LOOP_EXPR,
                SyntaxKind::FOR_EXPR,
                SyntaxKind::REPEAT_EXPR,
            ]),
            SyntaxKind::THROW_STMT => {
                let bare = ast::ThrowStmt::cast(node.clone()).is_some_and(|it| it.value().is_none());
                bare && !around(&[SyntaxKind::CATCH_CLAUSE])
            }
            kind => matches!(
                kind,
                SyntaxKind::USE_STMT
                    | SyntaxKind::IMPORT_STMT
                    | SyntaxKind::INPUT_STMT
                    | SyntaxKind::RETURN_STMT
                    | SyntaxKind::AGENT_DEF
                    | SyntaxKind::BLOCK_DEF
                    | SyntaxKind::COMPUTED_NAME
            ),
        }
    })
}

/// The parameters that have to be bound, with their values, in the order of the call.
fn given(ctx: &Context<'_>, place: &Place, call: &Call, body: &Body) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (at, arg) in call.args.iter().enumerate() {
        let param = match arg.name() {
            Some(name) => body.params.iter().find(|it| **it == name.text())?,
            None => body.params.get(at)?,
        };
        if seen.contains(param) {
            return None;
        }
        seen.push(param.clone());
        let value = arg.value()?;
        let text = ctx.slice(place.piece.up(value.syntax().text_range()));
        // Brackets around the arguments allow line breaks that a statement doesn't.
        let closed = matches!(
            value,
            ast::Expr::Literal(_) | ast::Expr::List(_) | ast::Expr::Object(_) | ast::Expr::Paren(_)
        );
        if text.contains(['\n', '\r']) && !closed {
            return None;
        }
        let same = matches!(&value, ast::Expr::Name(it) if it.text() == *param);
        if same {
            // What the parameter keeps, the variable may not.
            if ctx.changes_meanwhile(param, &body.node, body.piece.up(body.node.text_range()))
                || ctx.changes_meanwhile(param, &call.stmt, call.range)
            {
                return None;
            }
        } else {
            out.push((param.clone(), text.to_owned()));
        }
    }
    // One that isn't given is null.
    (seen.len() == body.params.len()).then_some(out)
}

/// Whether the block's names mean the same where it is called.
fn fits(
    ctx: &Context<'_>,
    call: &Call,
    body: &Body,
    definition: &Definition,
    whole: TextRange,
    given: &[(String, String)],
) -> Option<bool> {
    let mut new: Vec<String> = given.iter().map(|it| it.0.clone()).collect();
    let looped = call.stmt.ancestors().any(|it| {
        matches!(
            it.kind(),
            SyntaxKind::LOOP_EXPR | SyntaxKind::FOR_EXPR | SyntaxKind::REPEAT_EXPR | SyntaxKind::PIPE_OP
        )
    });
    for name in ctx.names(body.lines) {
        if name.role == Some(RefKind::Label) {
            continue;
        }
        let found = name.definition?;
        let own = found.file == ctx.file && whole.contains_range(found.range);
        if found.kind == DefKind::Block && found.range == definition.range && found.file == ctx.file {
            return Some(false);
        }
        let declares = own && found.range == name.range && !found.kind.is_global();
        if !matches!(name.binding, Binding::Sure | Binding::Global) && !declares {
            return Some(false);
        }
        // A parameter is the block's own; the variable of its name is not.
        if found.kind == DefKind::Param && name.role == Some(RefKind::Assign) {
            return Some(false);
        }
        if declares && !found.kind.is_scoped() {
            // What a round has left is there in the next.
            let direct = body.stmts.iter().any(|it| {
                let bound = match it {
                    ast::Stmt::Let(it) => it.syntax().text_range(),
                    _ => return false,
                };
                body.piece.up(bound).contains_range(found.range)
            });
            if looped && !direct {
                return Some(false);
            }
            if !new.contains(&found.name.to_string()) {
                new.push(found.name.to_string());
            }
        }
    }
    Some(new.iter().all(|it| ctx.spelled(it, whole).is_empty()))
}

/// The block's statements as they are written in the place of the call.
fn statements(ctx: &Context<'_>, call: &Call, body: &Body, last: &ast::Stmt) -> Option<String> {
    let range = body.piece.up(last.syntax().text_range());
    let start = ctx.line_start(range.start());
    let before = TextRange::new(body.lines.start(), start);
    let mut out = moved(ctx, before, body.indent, call.indent)?;
    let end = moved(
        ctx,
        TextRange::new(start, body.lines.end()),
        body.indent,
        call.indent,
    )?;
    let text = &end[call.indent.min(end.len())..];
    let indent = " ".repeat(call.indent);
    match (last, &call.bound) {
        (ast::Stmt::Output(output), bound) => {
            let rest = text.strip_prefix("output")?.trim_start_matches(' ');
            let plain = matches!(
                output.value()?,
                ast::Expr::Name(_) | ast::Expr::Literal(_) | ast::Expr::Field(_)
            );
            match bound {
                Some(bound) => out.push_str(&format!("{indent}{bound} = {rest}")),
                // A value that nobody takes.
                None if plain && !call.last && !rest.contains('#') => {
                    let kept = out.trim_end_matches(['\n', '\r']).len();
                    if kept == 0 {
                        return None;
                    }
                    out.truncate(kept);
                }
                None => out.push_str(&format!("{indent}{rest}")),
            }
        }
        (ast::Stmt::Expr(it), Some(bound)) => {
            let value = matches!(
                it.expr()?,
                ast::Expr::Session(_) | ast::Expr::Resume(_) | ast::Expr::DoCall(_) | ast::Expr::Call(_)
            );
            if !value {
                return None;
            }
            out.push_str(&format!("{indent}{bound} = {text}"));
        }
        (_, Some(_)) => return None,
        (_, None) => out.push_str(&end),
    }
    Some(out)
}

/// The lines of a block and the blank ones that set it apart.
fn removed(ctx: &Context<'_>, start: TextSize, end: TextSize) -> TextRange {
    let (mut start, mut end) = (start, end);
    let blank = |it: &TextRange| ctx.slice(*it).trim().is_empty();
    while let Some(below) = line_below(ctx, end).filter(blank) {
        end = below.end();
    }
    match line_below(ctx, end) {
        Some(below) => end = below.start(),
        None => {
            while let Some(over) = line_above(ctx, start).filter(blank) {
                start = over.start();
            }
        }
    }
    TextRange::new(start, end)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Inline block";

    #[test]
    fn the_only_call() {
        check(
            TITLE,
            Keeps::Nothing,
            "agent w:\n  prompt: \"w\"\n\n# about f\nblock f(a, b): # head\n  # in it\n  let z = session \"\"\"\n    A {a}\n      {b}\n  \"\"\"\n  if **{z}**:\n    session: w # w\n  # end\n\nlet a = \"x\"\nif **q**:\n    do $0f(a, 1 + 2) # call\nsession \"y\"\n",
            expect![[r#"
                agent w:
                  prompt: "w"

                let a = "x"
                if **q**:
                    # about f
                    # head
                    # call
                    let b = 1 + 2
                    # in it
                    let z = session """
                      A {a}
                        {b}
                    """
                    if **{z}**:
                      session: w # w
                    # end
                session "y"
            "#]],
        );
    }

    #[test]
    fn one_of_two_calls() {
        check(
            TITLE,
            Keeps::Nothing,
            "block f(p):\n    let z = session \"{p}\"\n    output z\nlet r = $0do f(p: \"v\")\nlet s = do f(r)\nsession \"{s}\"\n",
            expect![[r#"
                block f(p):
                    let z = session "{p}"
                    output z
                let p = "v"
                let z = session "{p}"
                let r = z
                let s = do f(r)
                session "{s}"
            "#]],
        );
    }

    #[test]
    fn values() {
        check(
            TITLE,
            Keeps::Nothing,
            "block f:\n  session \"x\"\n    retry: 2\nconst r = $0do f\nsession \"{r}\"\n",
            expect![[r#"
                const r = session "x"
                  retry: 2
                session "{r}"
            "#]],
        );
        check(
            TITLE,
            Keeps::Nothing,
            "do$0 f\nsession \"y\"\n\nblock f:\n  let z = session \"x\"\n  session \"{z}\"\n  output z\n",
            expect![[r#"
                let z = session "x"
                session "{z}"
                session "y"
            "#]],
        );
    }

    #[test]
    fn what_would_mean_something_else() {
        for program in [
            // Recursion.
            "block f(n):\n  do f(n)\ndo f$0(1)\n",
            // A name of the caller.
            "block f:\n  let z = session \"x\"\n  session \"{z}\"\nlet z = 1\ndo$0 f\nsession \"{z}\"\n",
            "block f(p):\n  session \"{p}\"\nlet p = 1\ndo$0 f(2)\nsession \"{p}\"\n",
            // Leaves the block early.
            "block f:\n  if **a**:\n    output 1\n  session \"x\"\ndo$0 f\n",
            "block f:\n  output n = session \"x\"\nlet r = do$0 f\nsession \"{r}\"\n",
            // What isn't given is null.
            "block f(p):\n  session \"{p}\"\ndo$0 f\n",
            // A branch.
            "block f:\n  let z = session \"x\"\n  session \"{z}\"\nparallel:\n  do$0 f\n  session \"y\"\n",
            // An earlier round would be seen.
            "block f:\n  if **a**:\n    let z = session \"x\"\n  session \"y\"\nrepeat 2:\n  do$0 f\n",
            // The whole is no statement.
            "block f:\n  session \"x\"\nlet r = [do$0 f]\n",
            "block f(p):\n  p = 2\n  session \"{p}\"\nlet p = 1\ndo$0 f(p)\n",
            "block f:\n  session \"x\"\nif **a**: do$0 f\n",
            "block f:\n  session \"x\n\ndo$0 f\n",
            "do $0nothing\n",
        ] {
            refused(TITLE, program);
        }
    }
}
