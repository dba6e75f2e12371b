//! Selected statements, and whole lines that move to another indentation without saying anything else.

use prose_syntax::ast::{self, AstNode};
use prose_syntax::text;
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize};

use super::{Context, said};
use crate::tree::{self, Piece};

/// Whole statements of one body, or of the top level.
pub(super) struct Selected {
    /// With their places in the file; at least one.
    pub(super) stmts: Vec<(ast::Stmt, TextRange)>,
    /// Their lines, and those of selected comments around them; without the last line break.
    pub(super) lines: TextRange,
    /// Columns that they are indented by.
    pub(super) indent: usize,
    /// The body, unless it is the top level.
    pub(super) body: Option<SyntaxNode>,
    /// The first statement of the top level that is touched.
    pub(super) top: TextRange,
    /// Nothing that runs follows in the body.
    pub(super) last: bool,
}

impl Selected {
    /// From the first to the last statement.
    pub(super) fn range(&self) -> TextRange {
        let ranges = self.stmts.iter().map(|it| it.1);
        ranges.reduce(TextRange::cover).unwrap_or(self.lines)
    }

    /// The statements and all nodes in them.
    pub(super) fn nodes(&self) -> impl Iterator<Item = SyntaxNode> + '_ {
        self.stmts.iter().flat_map(|(it, _)| it.syntax().descendants())
    }
}

/// The statements that the range selects, when it selects whole ones that have their lines to themselves.
pub(super) fn selected(ctx: &Context<'_>) -> Option<Selected> {
    let range = ctx.range;
    if range.is_empty() {
        return None;
    }
    let mut touched: Vec<(Piece, ast::Stmt, TextRange)> = Vec::new();
    for piece in tree::pieces_in(ctx.db, ctx.source, range) {
        touched.extend(top_statements(&piece).filter(|it| overlap(it.2, range)));
    }
    let top = touched.first()?.2;
    if !touched.iter().all(|it| ctx.is_sound(it.2)) {
        return None;
    }
    let (stmts, body, last) = if touched.iter().all(|it| range.contains_range(it.2)) {
        let end = touched.last()?.2.end();
        let rest = TextRange::new(end, TextSize::of(&*ctx.text));
        let mut later = tree::pieces_in(ctx.db, ctx.source, rest);
        let follows = later.any(|piece| top_statements(&piece).any(|it| it.2.start() >= end && runs(&it.1)));
        let stmts = touched.into_iter().map(|it| (it.1, it.2)).collect();
        (stmts, None, !follows)
    } else {
        let [(piece, _, whole)] = touched.as_slice() else {
            return None;
        };
        let local = range.intersect(*whole)?.checked_sub(piece.start)?;
        let body = piece
            .root
            .covering_element(local)
            .ancestors()
            .find_map(ast::Body::cast)?;
        let all: Vec<_> = body
            .statements()
            .map(|it| (piece.up(it.syntax().text_range()), it))
            .collect();
        let chosen: Vec<_> = all
            .iter()
            .filter(|it| overlap(it.0, range))
            .map(|(range, it)| (it.clone(), *range))
            .collect();
        if !chosen.iter().all(|it| range.contains_range(it.1)) {
            return None;
        }
        let last = chosen.last()?.1 == all.last()?.0;
        (chosen, Some(body.syntax().clone()), last)
    };
    let (first, end) = (stmts.first()?.1.start(), stmts.last()?.1.end());
    let indent = own_line(ctx, TextRange::new(first, end))?;
    Some(Selected {
        lines: with_comments(ctx, TextRange::new(ctx.line_start(first), ctx.line_end(end))),
        stmts,
        indent,
        body,
        top,
        last,
    })
}

fn top_statements(piece: &Piece) -> impl Iterator<Item = (Piece, ast::Stmt, TextRange)> + use<> {
    let piece = piece.clone();
    let list: Vec<_> = piece.root.children().filter_map(ast::Stmt::cast).collect();
    list.into_iter().map(move |it| {
        let range = piece.up(it.syntax().text_range());
        (piece.clone(), it, range)
    })
}

/// Whether a statement is executed where it stands.
fn runs(stmt: &ast::Stmt) -> bool {
    use ast::Stmt::*;
    !matches!(stmt, Use(_) | Import(_) | Agent(_) | Block(_))
}

fn overlap(a: TextRange, b: TextRange) -> bool {
    a.intersect(b).is_some_and(|it| !it.is_empty())
}

/// Columns that a statement is indented by, when nothing but a comment shares its lines.
pub(super) fn own_line(ctx: &Context<'_>, range: TextRange) -> Option<usize> {
    let before = ctx.slice(TextRange::new(ctx.line_start(range.start()), range.start()));
    let behind = ctx
        .slice(TextRange::new(range.end(), ctx.line_end(range.end())))
        .trim();
    let alone = before.bytes().all(|it| it == b' ') && (behind.is_empty() || behind.starts_with('#'));
    alone.then_some(before.len())
}

/// The lines and those of comments around them, as far as they are selected.
fn with_comments(ctx: &Context<'_>, lines: TextRange) -> TextRange {
    let (mut start, mut end) = (lines.start(), lines.end());
    let mut at = start;
    while let Some(above) = line_above(ctx, at).filter(|it| it.start() >= ctx.line_start(ctx.range.start())) {
        at = above.start();
        match is_comment(ctx, above) {
            true if at + TextSize::of(ctx.indent(at)) >= ctx.range.start() => start = at,
            false if ctx.slice(above).trim().is_empty() => {}
            _ => break,
        }
    }
    at = end;
    while let Some(below) = line_below(ctx, at).filter(|it| it.start() < ctx.range.end()) {
        at = below.end();
        match is_comment(ctx, below) {
            true if at <= ctx.line_end(ctx.range.end()) => end = at,
            false if ctx.slice(below).trim().is_empty() => {}
            _ => break,
        }
    }
    TextRange::new(start, end)
}

/// Where the comments directly above a line of the top level begin; the line itself when there are none.
pub(super) fn above(ctx: &Context<'_>, stmt: TextSize) -> TextSize {
    let mut at = ctx.line_start(stmt);
    while let Some(line) = line_above(ctx, at).filter(|it| is_comment(ctx, *it)) {
        at = line.start();
    }
    at
}

/// The line above the one that begins at an offset, without its line break.
pub(super) fn line_above(ctx: &Context<'_>, start: TextSize) -> Option<TextRange> {
    let before = &ctx.text[..usize::from(start)];
    let text = before
        .strip_suffix("\r\n")
        .or_else(|| before.strip_suffix(['\n', '\r']))?;
    let end = TextSize::of(text);
    Some(TextRange::new(ctx.line_start(end), end))
}

/// The line below the one that ends at an offset.
pub(super) fn line_below(ctx: &Context<'_>, end: TextSize) -> Option<TextRange> {
    let rest = &ctx.text[usize::from(end)..];
    let behind = rest
        .strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix(['\n', '\r']))?;
    let start = end + (TextSize::of(rest) - TextSize::of(behind));
    Some(TextRange::new(start, ctx.line_end(start)))
}

/// Whether a line holds a comment and nothing else.
fn is_comment(ctx: &Context<'_>, line: TextRange) -> bool {
    if !ctx.slice(line).trim_start().starts_with('#') {
        return false;
    }
    let at = line.start() + TextSize::of(ctx.indent(line.start()));
    let Some((piece, local)) = tree::piece_at(ctx.db, ctx.source, at) else {
        return false;
    };
    let token = piece.root.token_at_offset(local).right_biased();
    token.is_some_and(|it| it.kind() == SyntaxKind::COMMENT && it.text_range().start() == local)
}

/// Lines moved from one indentation to another; the first stays where it is only begun in front of the range. `None` where that would change what is said.
pub(super) fn moved(ctx: &Context<'_>, lines: TextRange, from: usize, to: usize) -> Option<String> {
    let mut out = String::new();
    let (mut at, mut fresh) = (lines.start(), ctx.line_start(lines.start()) == lines.start());
    for piece in tree::pieces_in(ctx.db, ctx.source, lines) {
        let tokens = piece
            .root
            .descendants_with_tokens()
            .filter_map(|it| it.into_token());
        for token in tokens {
            let range = piece.up(token.text_range());
            if !lines.contains_range(range) || range.start() < at || !is_long(token.kind(), token.text()) {
                continue;
            }
            out.push_str(&shifted(
                ctx.slice(TextRange::new(at, range.start())),
                fresh,
                from,
                to,
            )?);
            out.push_str(&text_moved(token.kind(), token.text(), from, to)?);
            (at, fresh) = (range.end(), false);
        }
    }
    out.push_str(&shifted(
        ctx.slice(TextRange::new(at, lines.end())),
        fresh,
        from,
        to,
    )?);
    Some(out)
}

fn is_long(kind: SyntaxKind, token: &str) -> bool {
    let text = matches!(
        kind,
        SyntaxKind::STRING | SyntaxKind::TRIPLE_STRING | SyntaxKind::DISCRETION | SyntaxKind::BLOCK_TEXT
    );
    text && token.contains(['\n', '\r'])
}

/// A text or discretion of several lines, moved so that it says the same.
fn text_moved(kind: SyntaxKind, token: &str, from: usize, to: usize) -> Option<String> {
    match kind {
        // Every blank in it counts. With two stars it ends early where a line has less indentation than the statement.
        SyntaxKind::DISCRETION => (text::is_star_block(token) || to <= from).then(|| token.to_owned()),
        _ => {
            let new = shifted(token, false, from, to).filter(|new| said(kind, new) == said(kind, token));
            match kind {
                // Its indentation is that of the program.
                SyntaxKind::BLOCK_TEXT => new,
                _ => Some(new.unwrap_or_else(|| token.to_owned())),
            }
        }
    }
}

/// Lines with their indentation changed; the first only if it is a `fresh` one. `None` for tabs.
fn shifted(text: &str, fresh: bool, from: usize, to: usize) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut rest, mut fresh) = (text, fresh);
    while !rest.is_empty() {
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let line;
        (line, rest) = rest.split_at(end);
        let content = line.trim_start_matches(' ');
        if !fresh {
            out.push_str(line);
        } else if content.starts_with('\t') {
            return None;
        } else {
            if !content.starts_with(['\n', '\r']) {
                let width = line.len() - content.len();
                out.push_str(&" ".repeat((width + to).saturating_sub(from)));
            }
            out.push_str(content);
        }
        fresh = true;
    }
    Some(out)
}
