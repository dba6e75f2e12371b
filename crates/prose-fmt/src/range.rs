//! Formatting a part of a file.

use prose_syntax::{Parse, SyntaxKind::*, TextRange};

use crate::{
    Options, TextEdit, apply, format, is_same,
    source::{Kid, Source},
};

/// The edits of [`format`](fn@crate::format) that concern the statements and properties a range touches: the innermost ones that
/// can be formatted alone.
pub fn format_range(parse: &Parse, text: &str, range: TextRange, options: &Options) -> Vec<TextEdit> {
    let edits = format(parse, text, options);
    if edits.is_empty() {
        return edits;
    }
    let source = Source::new(parse, text);
    let runs = runs(&source, u32::from(range.start()), u32::from(range.end()));
    for (index, (from, to)) in runs.iter().enumerate().rev() {
        let inside: Vec<TextEdit> = edits
            .iter()
            .filter(|it| u32::from(it.range.start()) >= *from && u32::from(it.range.end()) <= *to)
            .cloned()
            .collect();
        // Moved alone, a statement may end up in no block, or in another one.
        if index == 0 || inside.is_empty() || is_same(parse, &source, &apply(text, &inside)) {
            return inside;
        }
    }
    Vec::new()
}

/// Places of the neighbours that a range touches, at each level of nesting, the outermost first.
fn runs(source: &Source<'_>, start: u32, end: u32) -> Vec<(u32, u32)> {
    let mut runs = Vec::new();
    let mut list = Some(0);
    while let Some(node) = list.take() {
        let touched: Vec<(u32, u32, u32)> = source
            .kids(node)
            .iter()
            .filter_map(|kid| match *kid {
                Kid::Node(it) => {
                    let (first, last) = (source.first(*kid)?, source.last(it)?);
                    Some((
                        it,
                        line_start(source.text, source.token(first).start),
                        source.token(last).end,
                    ))
                }
                Kid::Token(_) => None,
            })
            .filter(|(_, from, to)| *from <= end && start <= *to)
            .collect();
        let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
            break;
        };
        runs.push((first.1, last.2));
        if let [only] = touched.as_slice() {
            list = block_at(source, only.0, start, end);
        }
    }
    runs
}

/// The block inside a statement that has a range to itself.
fn block_at(source: &Source<'_>, node: u32, start: u32, end: u32) -> Option<u32> {
    source.kids(node).iter().find_map(|kid| {
        let Kid::Node(it) = *kid else { return None };
        let tokens = &source.node(it).tokens;
        if tokens.is_empty() {
            return None;
        }
        let from = line_start(source.text, source.token(tokens.start).start);
        let to = source.token(tokens.end - 1).end;
        if matches!(source.node(it).kind, BODY | PROPERTY_LIST | OPTION_LIST) && source.is_indented(it) {
            return (from <= start && end <= to).then_some(it);
        }
        (source.token(tokens.start).start <= start && end <= to)
            .then(|| block_at(source, it, start, end))
            .flatten()
    })
}

pub(crate) fn line_start(text: &str, at: u32) -> u32 {
    let before = text.as_bytes().get(..at as usize).unwrap_or_default();
    let start = memchr::memrchr2(b'\n', b'\r', before).map_or(0, |it| it + 1);
    u32::try_from(start).unwrap_or(u32::MAX)
}
