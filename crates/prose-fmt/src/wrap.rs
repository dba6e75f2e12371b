//! Bracketed lists: on one line, or one element a line. Goes through the tokens once, with the column at hand.

use prose_syntax::SyntaxKind::*;

use crate::{
    Options,
    layout::{Gap, Group, INDENT, Plan, Style},
    source::Source,
};

/// What becomes of each token.
pub(crate) struct Wrapped {
    pub(crate) gaps: Vec<Gap>,
    /// Tokens behind which a comma is put, in order.
    pub(crate) commas: Vec<u32>,
    /// Commas that go, in order.
    pub(crate) dropped: Vec<u32>,
}

/// A broken bracket that is open.
struct Open<'p> {
    group: &'p Group,
    /// Column of the line it opened on.
    outer: u32,
    /// Next of its items.
    next: usize,
}

/// Decides all groups of a plan.
pub(crate) fn wrap(source: &Source<'_>, plan: Plan, options: &Options) -> Wrapped {
    let Plan { mut gaps, groups } = plan;
    let tails = tails(source, &gaps, &groups);
    let mut out = Wrapped {
        gaps: Vec::new(),
        commas: Vec::new(),
        dropped: Vec::new(),
    };
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut groups = groups.iter().peekable();
    let (mut column, mut indent) = (0u32, 0u32);
    // Where the outermost bracket closes that must stay on its line. What is broken in it would break it the next time.
    let mut flat_until = None;
    for (at, gap) in gaps.iter_mut().enumerate() {
        let token = u32::try_from(at).unwrap_or(u32::MAX);
        flat_until = flat_until.filter(|close| *close != token);
        if let Some(top) = open.last_mut() {
            if top.group.close == token {
                *gap = Gap::Line {
                    indent: top.outer,
                    blank: false,
                };
                open.pop();
            } else if top.group.items.get(top.next) == Some(&token) {
                let blank = top.next > 0 && source.token(token).breaks > 1;
                let first = top.next == 0 && token == top.group.open + 1;
                top.next += 1;
                *gap = Gap::Line {
                    indent: top.outer + INDENT,
                    blank: blank && !first,
                };
            } else if let Gap::Inside { extra, blank } = *gap {
                *gap = Gap::Line {
                    indent: top.outer + INDENT + extra,
                    blank: blank && token > top.group.open + 1,
                };
            }
        }
        match *gap {
            Gap::Line { indent: to, .. } => (column, indent) = (to, to),
            Gap::Inside { .. } => *gap = Gap::Flat,
            Gap::Keep => {
                if let Some(to) = source.column(token) {
                    (column, indent) = (to, to);
                } else {
                    column += u32::try_from(source.gap(at).len()).unwrap_or(0);
                }
            }
            _ => column += u32::from(source.token(token).space && !source.token(token).trailing_comma),
        }
        let group = groups.next_if(|it| it.open == token);
        if let Some(group) = group {
            let width = source.distance(group.open, group.close) + tails[group.close as usize];
            let broken = match group.style {
                Style::Broken => true,
                Style::Auto => flat_until.is_none() && column.saturating_add(width) > options.width,
                Style::Hug | Style::Flat => false,
            };
            if group.style == Style::Flat && flat_until.is_none() {
                flat_until = Some(group.close);
            }
            match (broken, group.comma) {
                (true, None) if group.wants_comma() => out.commas.extend(group.last),
                (false, Some(comma)) => out.dropped.push(comma),
                _ => {}
            }
            if broken {
                open.push(Open {
                    group,
                    outer: indent,
                    next: 0,
                });
            }
        }
        if source.token(token).multi {
            column = source.last_line_width(token);
        } else {
            column = column.saturating_add(source.width(token));
        }
    }
    // Inner brackets end first, outer ones open first.
    out.commas.sort_unstable();
    out.dropped.sort_unstable();
    out.gaps = gaps;
    out
}

/// Width from the start of each token to the first place behind it where a line may end.
fn tails(source: &Source<'_>, gaps: &[Gap], groups: &[Group]) -> Vec<u32> {
    let mut out = vec![0u32; source.tokens.len()];
    let mut groups = groups.iter().rev().peekable();
    for at in (0..source.tokens.len()).rev() {
        let token = u32::try_from(at).unwrap_or(u32::MAX);
        let width = source.width(token);
        let opens = groups
            .next_if(|it| it.open == token)
            .is_some_and(|it| matches!(it.style, Style::Auto | Style::Broken));
        let stops = opens || source.token(token).multi;
        let next = source.tokens.get(at + 1);
        out[at] = match next {
            Some(next) if !stops && next.kind != COMMENT => match gaps[at + 1] {
                Gap::Line { .. } | Gap::Inside { .. } => width,
                _ => width + u32::from(next.space && !next.trailing_comma) + out[at + 1],
            },
            _ => width,
        };
    }
    out
}
