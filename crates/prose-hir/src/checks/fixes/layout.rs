//! Fixes of indentation and brackets.

use prose_syntax::SyntaxKind::{
    AGENT_DEF, BLOCK_TEXT, CHOICE_EXPR, COLON, DISCRETION, ERROR, OPTION_LIST, RESUME_EXPR, SESSION_EXPR,
    TRIPLE_STRING,
};
use prose_syntax::{SyntaxKind, TextRange, TextSize};

use super::{At, child, size, width};
use crate::Fix;

/// Indentation of spaces that leaves every block as it is.
pub(super) fn spaces(at: &At<'_>, offset: TextSize) -> Fix {
    let (start, indent) = at.line(offset);
    let range = TextRange::at(start, TextSize::of(indent));
    Fix::replace("Indent with spaces", range, " ".repeat(width(indent)))
}

/// A line of code: where it starts, its indentation, its text.
struct Line<'a> {
    start: TextSize,
    indent: &'a str,
    text: &'a str,
    /// The kind of the token that the line begins inside of.
    inside: Option<SyntaxKind>,
}

impl Line<'_> {
    fn col(&self) -> usize {
        width(self.indent)
    }
    /// Blank, a comment, or inside a text: it opens and closes nothing.
    fn counts(&self) -> bool {
        self.inside.is_none() && !self.text.is_empty() && !self.text.starts_with('#')
    }
}

impl At<'_> {
    /// The line that begins at an offset.
    fn line_at(&self, start: TextSize) -> Line<'_> {
        let whole = self.slice(TextRange::new(start, self.line_end(start)));
        let text = whole.trim_start_matches([' ', '\t']);
        let indent = &whole[..whole.len() - text.len()];
        let inside = self
            .after(start)
            .next()
            .filter(|it| it.text_range().start() < start)
            .map(|it| it.kind())
            .filter(|it| matches!(*it, TRIPLE_STRING | DISCRETION | BLOCK_TEXT));
        Line {
            start,
            indent,
            text: text.trim_end(),
            inside,
        }
    }

    /// The lines from that of an offset on.
    fn lines_from(&self, offset: TextSize) -> impl Iterator<Item = Line<'_>> {
        let end = TextSize::of(&*self.text);
        let first = (offset < end).then(|| self.line(offset).0);
        std::iter::successors(first, move |start| {
            let next = self.next_line(*start);
            (next < end && next > *start).then_some(next)
        })
        .map(|start| self.line_at(start))
    }

    /// The lines before that of an offset, the nearest first.
    fn lines_before(&self, offset: TextSize) -> impl Iterator<Item = Line<'_>> {
        let before = move |start: TextSize| {
            let text = self.before(start);
            let text = text
                .strip_suffix("\r\n")
                .or_else(|| text.strip_suffix(['\n', '\r']))?;
            Some(self.line(TextSize::of(text)).0)
        };
        let first = before(self.line(offset).0);
        std::iter::successors(first, move |start| before(*start)).map(|start| self.line_at(start))
    }

    /// Moves lines to another column, with what is indented below them. Lines inside texts stay.
    fn shift<'l>(
        &self,
        title: &str,
        lines: impl Iterator<Item = Line<'l>>,
        from: usize,
        to: usize,
    ) -> Option<Fix> {
        let mut edits = Vec::new();
        for line in lines {
            match line.inside {
                // Its lines are measured against the column of its key.
                Some(BLOCK_TEXT) => {}
                Some(_) => continue,
                None if line.text.is_empty() => continue,
                None => {}
            }
            let col = (line.col() + to).checked_sub(from).unwrap_or(to);
            let range = TextRange::at(line.start, TextSize::of(line.indent));
            edits.push((range, " ".repeat(col)));
        }
        (!edits.is_empty() && from != to).then(|| Fix::new(title, edits))
    }

    /// The lines from that of an offset on that are at least so deep.
    fn run(&self, offset: TextSize, col: usize) -> impl Iterator<Item = Line<'_>> {
        let mut lines: Vec<Line<'_>> = self
            .lines_from(offset)
            .take_while(|it| !it.counts() || it.col() >= col)
            .collect();
        // Comments and blanks behind the last line belong to what follows.
        while lines.last().is_some_and(|it| !it.counts() && it.inside.is_none()) {
            lines.pop();
        }
        lines.into_iter().filter(move |it| it.counts() || it.col() >= col)
    }
}

/// A line at a column that no block has goes, with what follows at that column, to the nearest one.
pub(super) fn dedented(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let line = at.line_at(at.line(range.end()).0);
    let col = line.col();
    let (mut above, mut below) = (None, None);
    let mut least = usize::MAX;
    for open in at.lines_before(line.start).filter(Line::counts) {
        let it = open.col();
        if it >= least {
            continue;
        }
        least = it;
        if it > col {
            above = Some(it);
        } else {
            below = Some(it);
            break;
        }
    }
    let to = match (above, below) {
        (Some(above), Some(below)) if above - col <= col - below => above,
        (_, Some(below)) => below,
        (Some(above), None) => above,
        (None, None) => return None,
    };
    at.shift("Align it with the block", at.run(line.start, col), col, to)
}

/// The first line of a block, deeper than those below it, goes to their column, with what is below it.
pub(super) fn first_of_block(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let line = at.line_at(at.line(range.end()).0);
    let col = line.col();
    let next = at
        .lines_from(line.start)
        .find(|it| it.counts() && it.col() < col)?;
    let lines = at.lines_from(line.start).take_while(|it| it.start < next.start);
    at.shift("Align it with the lines below", lines, col, next.col())
}

/// A deeper line that nothing opened goes to the column of the line above.
pub(super) fn indented(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let mut offset = range.start();
    if !at.begins_line(offset) {
        offset = at.next_line(offset);
    }
    let line = at.lines_from(offset).find(Line::counts)?;
    let above = at.lines_before(line.start).find(Line::counts)?;
    // Such a line goes on with a statement that began further up.
    let goes_on = above.text.starts_with(['|', '-']);
    let (to, col) = (above.col(), line.col());
    (to < col && !goes_on)
        .then(|| at.shift("Remove the indentation", at.run(line.start, col), col, to))
        .flatten()
}

/// Options go below their `choice`.
pub(super) fn options(at: &At<'_>, offset: TextSize) -> Option<Fix> {
    let choice = at
        .node(offset, &[OPTION_LIST])
        .and_then(|it| it.parent())
        .filter(|it| it.kind() == CHOICE_EXPR)?;
    let list = child(&choice, OPTION_LIST)?.text_range();
    let end = at.trimmed(list).end();
    let lines = at.lines_from(list.start()).take_while(|it| it.start < end);
    at.shift("Indent the options", lines, 0, 2).map(Fix::automatic)
}

/// `{` at a line's end and the `}` that belongs to it, as `:` and indentation.
pub(super) fn braces(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let open = TextRange::at(range.start(), TextSize::of('{'));
    if at.slice(open) != "{" || !at.ends_line(open.end()) {
        return None;
    }
    let (_, indent) = at.line(open.start());
    let col = width(indent);
    let before = |offset| TextSize::of(at.before(offset).trim_end_matches([' ', '\t']));
    let mut edits = vec![(TextRange::new(before(open.start()), open.end()), ":".into())];
    let mut lines = at.lines_from(open.end()).skip(1);
    loop {
        let line = lines.next()?;
        if !line.counts() || line.col() > col {
            continue;
        }
        if line.col() < col {
            return None;
        }
        let rest = line.text.strip_prefix('}')?.trim_start();
        if rest.is_empty() {
            edits.push((
                TextRange::new(line.start, at.next_line(line.start)),
                String::new(),
            ));
            break;
        }
        // `} else {`
        let clause = rest.strip_suffix('{')?.trim_end();
        let whole = TextRange::at(line.start, size(line.indent.len() + line.text.len()));
        edits.push((whole, format!("{}{clause}:", line.indent)));
    }
    Some(Fix::new("Write `:` and indent", edits))
}

/// A closing bracket at the end of the line that the bracket opened on.
pub(super) fn close_bracket(at: &At<'_>, range: TextRange, open: char) -> Vec<Fix> {
    let close = match open {
        '(' => ")",
        '[' => "]",
        _ => "}",
    };
    let line_end = at.line_end(range.start());
    let last = at
        .after(range.start())
        .take_while(|it| it.text_range().start() < line_end)
        .filter(|it| !it.kind().is_trivia())
        .last();
    let Some(last) = last else {
        return Vec::new();
    };
    let end = last.text_range().end();
    let fix = |offset| Fix::replace(format!("Add `{close}`"), TextRange::empty(offset), close);
    let mut out = Vec::new();
    if last.kind() == COLON {
        out.push(fix(end - TextSize::of(':')));
    }
    out.push(fix(end));
    out.retain(|it| at.settles(it));
    out.truncate(1);
    out
}

/// `key: value` where no property can be, below a session or agent: it belongs to that.
pub(super) fn property_of(at: &At<'_>, range: TextRange) -> Option<Fix> {
    let error = at.node(range.start(), &[ERROR])?;
    let line = at.line_at(at.line(range.start()).0);
    let owner = error
        .prev_sibling()?
        .descendants()
        .filter(|it| is_owner(it.kind()))
        .last()?;
    let first = at.line(owner.text_range().start()).1;
    if !at.begins_line(range.start()) || width(first) != line.col() {
        return None;
    }
    let end = at.trimmed(error.text_range()).end();
    let lines = at.lines_from(line.start).take_while(|it| it.start < end);
    let title = format!("Indent it under the {}", word(owner.kind()));
    at.shift(&title, lines, 0, 2)
}

/// `key: value` that was meant to be a variable.
pub(super) fn property_as_variable(at: &At<'_>, range: TextRange, key: &str) -> Option<Fix> {
    if prose_model::vocabulary::property(key).is_some() {
        return None;
    }
    let colon = at.after(range.start()).find(|it| it.kind() == COLON)?;
    Some(Fix::new(
        format!("Write `let {key} = …`"),
        vec![
            (TextRange::empty(range.start()), "let ".into()),
            (colon.text_range(), " =".into()),
        ],
    ))
}

fn is_owner(kind: SyntaxKind) -> bool {
    matches!(kind, SESSION_EXPR | RESUME_EXPR | AGENT_DEF)
}

fn word(kind: SyntaxKind) -> &'static str {
    if kind == AGENT_DEF { "agent" } else { "session" }
}
