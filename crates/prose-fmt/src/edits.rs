//! From decided gaps to edits, and back to a text.

use std::ops::Range;

use prose_syntax::{TextRange, TextSize};

use crate::{TextEdit, layout::Gap, source::Source, wrap::Wrapped};

/// The edits that turn the source into what was decided, in order, as small as they can be.
pub(crate) fn edits(source: &Source<'_>, wrapped: &Wrapped) -> Vec<TextEdit> {
    let mut out = Vec::new();
    let mut wanted = String::new();
    let eol = line_end(source.text).unwrap_or("\n");
    let (mut commas, mut dropped) = (
        wrapped.commas.iter().peekable(),
        wrapped.dropped.iter().peekable(),
    );
    let mut from = source.start as usize;
    for at in 0..source.tokens.len() {
        let token = u32::try_from(at).unwrap_or(u32::MAX);
        let end = source.tokens[at].end as usize;
        if dropped.next_if(|it| **it == token).is_some() {
            // Its place is part of the next gap.
            continue;
        }
        let range = from..source.tokens[at].start as usize;
        let before = at.checked_sub(1).and_then(|it| u32::try_from(it).ok());
        let comma = before.is_some_and(|it| commas.next_if(|next| **next == it).is_some());
        gap(
            source,
            at,
            wrapped.gaps[at],
            range,
            comma,
            eol,
            &mut wanted,
            &mut out,
        );
        from = end;
    }
    let rest = from..source.text.len();
    let old = &source.text[rest.clone()];
    let new = match line_end(old) {
        Some(eol) if !source.tokens.is_empty() => eol,
        _ => "",
    };
    replace(source.text, rest, new, &mut out);
    out
}

#[allow(clippy::too_many_arguments)]
fn gap(
    source: &Source<'_>,
    at: usize,
    gap: Gap,
    range: Range<usize>,
    comma: bool,
    eol: &str,
    wanted: &mut String,
    out: &mut Vec<TextEdit>,
) {
    let text = source.text;
    let old = &text[range.clone()];
    wanted.clear();
    if comma {
        wanted.push(',');
    }
    match gap {
        Gap::Keep => wanted.push_str(old),
        Gap::Trailing => match old.bytes().all(|it| it == b' ') && !old.is_empty() {
            true => wanted.push_str(old),
            false => wanted.push_str("  "),
        },
        Gap::Line { indent, blank } => {
            if at > 0 {
                if !comma && is_line(old, indent, blank) {
                    return;
                }
                let eol = line_end(old).unwrap_or(eol);
                wanted.push_str(eol);
                if blank {
                    wanted.push_str(eol);
                }
            }
            wanted.extend(std::iter::repeat_n(' ', indent as usize));
        }
        Gap::Flat | Gap::Unset | Gap::Inside { .. } => {
            if source.tokens[at].space {
                wanted.push(' ');
            }
        }
    }
    replace(text, range, wanted, out);
}

/// Whether blanks are what is wanted, whatever kinds of line ends they have.
fn is_line(old: &str, indent: u32, blank: bool) -> bool {
    let rest = old.trim_start_matches(['\n', '\r']);
    let breaks = crate::source::line_breaks(&old[..old.len() - rest.len()]);
    breaks == 1 + u32::from(blank) && rest.len() == indent as usize && rest.bytes().all(|it| it == b' ')
}

/// The kind of line end a text uses first.
pub(crate) fn line_end(text: &str) -> Option<&'static str> {
    let at = memchr::memchr2(b'\n', b'\r', text.as_bytes())?;
    Some(match (text.as_bytes()[at], text.as_bytes().get(at + 1)) {
        (b'\n', _) => "\n",
        (_, Some(b'\n')) => "\r\n",
        _ => "\r",
    })
}

/// Adds an edit without what both texts begin and end with.
fn replace(text: &str, range: Range<usize>, new: &str, out: &mut Vec<TextEdit>) {
    let old = &text[range.clone()];
    if old == new {
        return;
    }
    let shorter = old.len().min(new.len());
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let mut head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    while !split_at(old, head) || !split_at(new, head) {
        head -= 1;
    }
    let tail = a[head..]
        .iter()
        .rev()
        .zip(b[head..].iter().rev())
        .take(shorter - head);
    let mut tail = tail.take_while(|(a, b)| a == b).count();
    while !split_at(old, old.len() - tail) || !split_at(new, new.len() - tail) {
        tail -= 1;
    }
    out.push(TextEdit {
        range: range_of(range.start + head, range.end - tail),
        insert: new[head..new.len() - tail].to_owned(),
    });
}

/// Whether a text can be split at an offset: between characters, and not inside CR LF.
fn split_at(text: &str, at: usize) -> bool {
    text.is_char_boundary(at)
        && !(at > 0 && text.as_bytes()[at - 1] == b'\r' && text.as_bytes().get(at) == Some(&b'\n'))
}

/// A range from offsets; texts are at most 4 GiB long.
pub(crate) fn range_of(from: usize, to: usize) -> TextRange {
    let size = |it: usize| TextSize::from(u32::try_from(it).unwrap_or(u32::MAX));
    TextRange::new(size(from), size(to))
}

/// Applies edits, which must be in order and apart from each other, to the text they were made for.
pub fn apply(text: &str, edits: &[TextEdit]) -> String {
    let mut out = String::with_capacity(text.len() + edits.len() * 4);
    let mut from = 0;
    for edit in edits {
        let (start, end) = (usize::from(edit.range.start()), usize::from(edit.range.end()));
        if let Some(kept) = text.get(from..start) {
            out.push_str(kept);
        }
        out.push_str(&edit.insert);
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}
