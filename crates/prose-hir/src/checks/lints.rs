//! Habits that cost time or hide mistakes, as far as a construct shows them by itself.

use prose_syntax::{TextRange, TextSize};

use super::{Context, repeated};
use crate::diagnostic::{Diagnostic, Finding, Place};
use crate::hir::*;
use crate::symbols::Unreached;
use crate::{Chunk, Db, SourceFile, Tag, queries};

const UNREACHED: &str = "this is never reached: remove it, or move it up";
const ENDS: &str = "the statements end here in any case";

/// What the statements of a body show.
pub(super) fn stmts(ctx: &mut Context<'_>, list: &[Stmt]) {
    let Some(at) = leaving(list) else {
        return;
    };
    let rest = &list[at + 1..];
    let (Some(first), Some(last)) = (rest.iter().find(runs), rest.iter().rfind(runs)) else {
        return;
    };
    let place = Place::Here(head(&list[at]));
    ctx.push(
        Finding::new("L408", first.range.cover(last.range), UNREACHED)
            .tag(Tag::Unnecessary)
            .related(place, ENDS),
    );
}

/// The statement after which none of a list is reached.
pub(crate) fn leaving(list: &[Stmt]) -> Option<usize> {
    list.iter().position(stmt_leaves)
}

/// Blocks and agents are there wherever they are declared.
fn runs(it: &&Stmt) -> bool {
    matches!(it.kind, StmtKind::Expr(_))
}

/// Statements of the top level that are never reached; they stand in several chunks.
pub(super) fn unreached(db: &dyn Db, file: SourceFile) -> Option<Diagnostic> {
    let Unreached { after, first, last } = queries::file_symbols(db, file).unreached.as_ref()?;
    let start = |chunk: &Chunk| {
        let at = *queries::positions(db, file).get(chunk)?;
        file.starts(db).get(at as usize).copied()
    };
    let (chunk, at) = after;
    let list = |of: &Chunk| {
        let from = if of == chunk { *at as usize + 1 } else { 0 };
        queries::body(db, *of).stmts.get(from..)
    };
    let end = head(queries::body(db, *chunk).stmts.get(*at as usize)?) + start(chunk)?;
    let first = list(first)?.iter().find(runs)?.range + start(first)?;
    let last = list(last)?.iter().rfind(runs)?.range + start(last)?;
    let finding = Finding::new("L408", first.cover(last), UNREACHED);
    Some(Diagnostic {
        code: finding.code,
        severity: finding.severity,
        message: finding.message,
        file: file.id(db),
        range: finding.range,
        related: vec![(file.id(db), end, ENDS.to_owned())],
        tags: vec![Tag::Unnecessary],
        fix: None,
        about: None,
    })
}

/// What an expression shows.
pub(super) fn expr(ctx: &mut Context<'_>, it: &Expr) {
    match &it.kind {
        ExprKind::Parallel { mods, body } => parallel(ctx, it, mods, body),
        ExprKind::Repeat { count, .. } if number(count) == Some(1.0) => {
            let text = "this runs once, without any loop: remove `repeat`, or give another number";
            ctx.push(Finding::new("L410", count.range, text).tag(Tag::Unnecessary));
        }
        ExprKind::Loop(inner) => {
            if let Some(max) = modifier(&inner.mods, "max").filter(|it| number(it) == Some(1.0)) {
                let text = "this runs at most once: write `if`, or raise the limit";
                ctx.push(Finding::new("L410", max.range, text));
            }
        }
        ExprKind::Try {
            catches,
            finally: None,
            ..
        } => {
            if let [(_, body)] = catches.as_slice()
                && let [
                    Stmt {
                        kind:
                            StmtKind::Expr(Expr {
                                kind: ExprKind::Throw(None),
                                range,
                            }),
                        ..
                    },
                ] = body.stmts.as_slice()
            {
                let text =
                    "this only raises the error again: remove `try` and `catch`, or do something about it";
                ctx.push(Finding::new("L411", *range, text).tag(Tag::Unnecessary));
            }
        }
        ExprKind::Session(it) => context(ctx, &it.props),
        _ => {}
    }
    each_child(it, &mut |child| {
        if let Child::Body(it) = child {
            stmts(ctx, &it.stmts);
        }
    });
}

/// What an agent shows.
pub(super) fn agent(ctx: &mut Context<'_>, agent: &AgentDef) {
    let Some(Property {
        key,
        value: PropValue::Nested(rules, _),
        ..
    }) = property(&agent.props, "permissions")
    else {
        return;
    };
    let everywhere = |kind: &str| match property(rules, kind).map(|it| &it.value) {
        Some(PropValue::Expr(Expr {
            kind: ExprKind::List { items, .. },
            ..
        })) => items.iter().any(|it| match &it.kind {
            ExprKind::Text(text) => {
                matches!(&*text.parts, [Part::Text(it)] if matches!(&**it, "**" | "**/*"))
            }
            _ => false,
        }),
        Some(PropValue::Expr(Expr {
            kind: ExprKind::Name(word),
            ..
        })) => word == "allow",
        _ => false,
    };
    if ["write", "bash", "network"].into_iter().all(everywhere) {
        let text =
            "this agent may write anything, run anything and reach any host: leave it what its task needs";
        ctx.push(Finding::new("L414", key.range, text));
    }
}

fn parallel(ctx: &mut Context<'_>, it: &Expr, mods: &[Modifier], body: &Body) {
    let word = ctx.keyword(it.range, "parallel");
    match body.stmts.as_slice() {
        [_] if !ctx.is_broken(it.range) => {
            let text = "there is only one branch, so that nothing runs beside it: remove `parallel:`, or add branches";
            ctx.push(Finding::new("L409", word, text).tag(Tag::Unnecessary));
        }
        _ => {}
    }
    if !mods.is_empty() || body.stmts.len() < 2 {
        return;
    }
    for stmt in &body.stmts {
        if let StmtKind::Expr(Expr {
            kind: ExprKind::Parallel { mods, .. },
            range,
        }) = &stmt.kind
            && mods.is_empty()
        {
            let inner = ctx.keyword(*range, "parallel");
            let text = "these branches run beside those around them in any case: move them up one level";
            ctx.push(
                Finding::new("L412", inner, text)
                    .tag(Tag::Unnecessary)
                    .related(Place::Here(word), "inside this one"),
            );
        }
    }
}

/// A value that is passed twice.
fn context(ctx: &mut Context<'_>, props: &[Property]) {
    let Some(Property {
        value:
            PropValue::Expr(Expr {
                kind: ExprKind::List { items, .. },
                ..
            }),
        ..
    }) = property(props, "context")
    else {
        return;
    };
    let name = |it: &Expr| match &it.kind {
        ExprKind::Name(name) => Some(*name),
        _ => None,
    };
    for (later, first) in repeated(items, name) {
        let Some(name) = name(&items[later]) else { continue };
        let text = format!("`{name}` is already in this context: remove it");
        ctx.push(
            Finding::new("L413", items[later].range, text)
                .tag(Tag::Unnecessary)
                .related(Place::Here(items[first].range), "first here"),
        );
    }
}

fn number(it: &Expr) -> Option<f64> {
    match it.kind {
        ExprKind::Number(number) => Some(number),
        _ => None,
    }
}

/// Whether nothing after a statement is ever reached.
fn stmt_leaves(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Expr(it) => leaves(it),
        _ => false,
    }
}

fn leaves(it: &Expr) -> bool {
    let body = |it: &Body| it.stmts.iter().any(stmt_leaves);
    match &it.kind {
        // With what an `output` returns, the parser may have lost its name.
        ExprKind::Return { is_return, value } => *is_return || !is_missing(value.as_deref()),
        ExprKind::Throw(_) | ExprKind::Break => true,
        ExprKind::If {
            arms,
            otherwise: Some(otherwise),
        } => body(otherwise) && arms.iter().all(|it| body(&it.1)),
        ExprKind::Choice { options, .. } => !options.is_empty() && options.iter().all(|it| body(&it.body)),
        ExprKind::Do(it) => body(it),
        _ => false,
    }
}

/// Whether the parser found no value.
pub(super) fn is_missing(value: Option<&Expr>) -> bool {
    value.is_none_or(|it| matches!(it.kind, ExprKind::Missing))
}

/// A statement's first word.
fn head(stmt: &Stmt) -> TextRange {
    let word = match &stmt.kind {
        StmtKind::Expr(it) => match &it.kind {
            ExprKind::Throw(_) => "throw",
            ExprKind::Break => "break",
            ExprKind::Return { is_return: true, .. } => "return",
            ExprKind::Return { .. } => "output",
            ExprKind::If { .. } => "if",
            ExprKind::Choice { .. } => "choice",
            _ => "",
        },
        _ => "",
    };
    TextRange::at(stmt.range.start(), TextSize::of(word))
}
