//! Strings and discretions over several lines whose other end is missing.
//!
//! Read plainly, one missing `"""` turns the rest of the file inside out. So where the next delimiter looks like the begin of
//! another string, a statement begins at column 0 in between, and the plain reading leaves something open or takes prose for
//! code further on, the string ends before that statement. A program that is whole is always read plainly.

use rustc_hash::FxHashMap;

use super::{Lexed, Lexer, Looked};
use crate::{
    SyntaxErrorKind,
    SyntaxKind::{self, *},
    layout::continues_statement,
    text::name_len,
};

/// How often a text is read plainly to its end, which keeps lexing linear. Each reading answers for all delimiters it meets, so
/// that real texts need one or two.
const READINGS: usize = 16;

/// How many lines a missing begin is sought upwards.
const LINES_UP: usize = 500;

/// What plain readings of a text's rest gave. Offsets in the whole text.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    /// Where the lexed part begins.
    pub(crate) from: usize,
    /// For begins of strings and discretions over several lines: whether all from there on end, and nothing behind looks like
    /// prose that was taken for code. The same whatever reading came upon them.
    known: FxHashMap<usize, bool>,
    /// The statement before which a token was ended last; 0 when none was. A part may be lexed from a cut in front of it.
    pub(crate) barrier: usize,
    /// Such begins in the reading under way, in order.
    openers: Vec<usize>,
    /// The last place in it where something does not end, or prose was taken for code.
    last_bad: Option<usize>,
    readings: usize,
}

impl Lexer<'_> {
    /// A `"""` string, at its begin. `closed` is where its closing quotes begin and end.
    pub(super) fn end_triple_string(&mut self, start: usize, closed: Option<(usize, usize)>) -> SyntaxKind {
        let until = closed.map_or(self.bytes.len(), |(quotes, _)| quotes);
        if self.plain {
            self.note(start, closed.is_some());
        } else if self.passes_barrier(start, closed.map(|(_, end)| end)) {
            self.ended(start);
            return self.unclosed_string(start, self.barrier);
        } else if closed.is_none() || self.opens_string(start, until) {
            match self.head_between(start, until) {
                Some(head) => {
                    self.looked(start, Looked::AtAll(0));
                    if closed.is_none() || !self.all_closed(start) {
                        self.set_barrier(head);
                        self.ended(start);
                        return self.unclosed_string(start, head);
                    }
                }
                None if closed.is_none() => {
                    self.looked(start, Looked::AtAll(0));
                    return self.unclosed_string(start, until);
                }
                None => {}
            }
        }
        self.pos = closed.map_or(self.bytes.len(), |(_, end)| end);
        TRIPLE_STRING
    }

    /// A `***` discretion, at its begin: where it ends, or `None` when it is not closed. `closed` is the end by plain reading.
    pub(super) fn end_triple_stars(&mut self, start: usize, closed: Option<usize>) -> Option<usize> {
        if self.plain {
            self.note(start, closed.is_some());
            return closed;
        }
        let end = closed?;
        let stars = end - 3;
        if self.passes_barrier(start, closed) {
            self.ended(start);
            return None;
        }
        if self.opens_discretion(start, stars)
            && let Some(head) = self.head_between(start, stars)
        {
            self.looked(start, Looked::AtAll(0));
            if !self.all_closed(start) {
                self.set_barrier(head);
                self.ended(start);
                return None;
            }
        }
        Some(end)
    }

    /// Where a `***` that is never closed ends: before the colon that opens the body, if one ends a line before a statement
    /// or blank line comes.
    pub(super) fn end_of_unclosed_stars(&self, start: usize, width: usize) -> usize {
        let first = &self.text[start + width..self.line_end(start)];
        if first.trim().is_empty() {
            let mut at = self.line_end(start);
            while let Some(next) = self.next_line(at) {
                let end = self.line_end(next);
                let line = self.text[next..end].trim();
                if line.is_empty() || is_head(line) {
                    break;
                }
                if let Some(before) = line.strip_suffix(':') {
                    let colon = next + self.text[next..end].trim_end().len() - 1;
                    // A line that holds only the colon belongs to the discretion as far as the colon.
                    return if before.trim().is_empty() {
                        colon
                    } else {
                        self.text[..colon].trim_end().len()
                    };
                }
                at = end;
            }
        }
        // The colon stays outside, so that the body is still found.
        let line = self.text[start..self.line_end(start)].trim_end();
        let line = line.strip_suffix(':').unwrap_or(line).trim_end();
        start + line.len().max(width)
    }

    /// Whether a token would take in the statement before which one in front of it was ended. It ends there as well: read
    /// alone, the part up to that statement says nothing of what follows.
    pub(super) fn passes_barrier(&self, start: usize, end: Option<usize>) -> bool {
        start < self.barrier && end.is_none_or(|end| end > self.barrier)
    }

    fn set_barrier(&mut self, head: usize) {
        self.barrier = head;
        self.outlook.barrier = self.outlook.from + head;
    }

    /// Notes that a token was ended before the barrier.
    pub(super) fn ended(&mut self, start: usize) {
        self.out.ended.push(u32::try_from(start).unwrap_or(u32::MAX));
        self.looked(
            start,
            Looked::AtAll(u32::try_from(self.barrier).unwrap_or(u32::MAX)),
        );
    }

    /// In a plain reading, notes a begin and whether it has an end.
    fn note(&mut self, start: usize, closed: bool) {
        let place = self.outlook.from + start;
        self.outlook.openers.push(place);
        if !closed {
            self.outlook.last_bad = Some(place);
        }
    }

    /// Whether by plain reading everything from a begin on is closed.
    fn all_closed(&mut self, start: usize) -> bool {
        let place = self.outlook.from + start;
        if let Some(closed) = self.outlook.known.get(&place) {
            return *closed;
        }
        // Every reading so far has found something open, or it would have known of this place. That this one is open, too, is
        // the answer that a part of the text gives as well when it is read alone: it ends where this is ended.
        if self.outlook.readings >= READINGS {
            return false;
        }
        self.outlook.readings += 1;
        self.outlook.openers.clear();
        self.outlook.last_bad = None;
        let mut lexer = Lexer {
            text: self.text,
            bytes: self.bytes,
            pos: start,
            line_start: self.line_start,
            no_triple_star_after: usize::MAX,
            known_line: self.known_line.clone(),
            out: &mut Lexed::default(),
            plain: true,
            reopened: None,
            barrier: 0,
            outlook: self.outlook,
        };
        while lexer.pos < lexer.bytes.len() {
            let start = lexer.pos;
            let kind = lexer.token();
            lexer.push(kind, start);
            if kind == PIPE {
                lexer.block_text(start);
            }
            // Text that is read as if it weren't text: no program holds these outside of strings, but prose is full of them.
            let prose = kind == UNKNOWN && !matches!(self.bytes[start], b'/' | b'~' | b'\\' | b'$');
            if prose || lexer.out.errors.iter().any(|it| it.kind.weight() == Some(2)) {
                lexer.outlook.last_bad = Some(lexer.outlook.from + start);
            }
            lexer.out.errors.clear();
        }
        let Outlook {
            known,
            openers,
            last_bad,
            ..
        } = &mut *self.outlook;
        known.extend(
            openers
                .drain(..)
                .map(|at| (at, last_bad.is_none_or(|bad| bad < at))),
        );
        last_bad.is_none()
    }

    /// Ends a string that is never closed, at a statement or the text's end. One that only stands at the end of other lines
    /// is the end of a string that was never opened.
    fn unclosed_string(&mut self, start: usize, limit: usize) -> SyntaxKind {
        if self.reopen(start) {
            self.pos = start + 3;
            self.error(SyntaxErrorKind::UnopenedString, start, start + 3);
            return TRIPLE_STRING;
        }
        let column = indentation(&self.text[self.line_start.min(start)..start]);
        let mut end = limit;
        let mut at = self.line_end(start);
        while let Some(next) = self.next_line(at).filter(|it| *it < limit) {
            at = self.line_end(next);
            let line = &self.text[next..at];
            let text = line.trim_start();
            if !text.is_empty() && indentation(line) <= column && (is_head(text) || is_property(text)) {
                end = next;
                break;
            }
        }
        // Blank lines and comments before the statement belong to it.
        let mut content = &self.text[start + 3..end];
        loop {
            content = content.trim_end();
            let Some(line) = content.rfind(['\n', '\r']) else {
                break;
            };
            if !content[line..].trim_start().starts_with('#') {
                break;
            }
            content = &content[..line];
        }
        self.pos = start + 3 + content.len();
        self.error(
            SyntaxErrorKind::UnterminatedString { triple: true },
            start,
            start + 3,
        );
        TRIPLE_STRING
    }

    /// Whether quotes alone on their line end a text that a line above should have opened; takes the tokens of that text
    /// back then. Only indented lines are taken, since at column 0 the text may be cut.
    fn reopen(&mut self, quotes: usize) -> bool {
        let line_start = self.line_start.min(quotes);
        let before = &self.text[line_start..quotes];
        let after = &self.text[quotes + 3..self.line_end(quotes)];
        if before.is_empty() || !before.trim().is_empty() || !after.trim().is_empty() {
            return false;
        }
        let mut content = false;
        let mut end = line_start;
        for _ in 0..LINES_UP {
            let above = &self.text[..end];
            let line = above
                .strip_suffix("\r\n")
                .or_else(|| above.strip_suffix(['\n', '\r']));
            // Before the first line there may be a byte order mark.
            let Some(line) = line else { return false };
            end = line.len();
            let from = self.text[..end].rfind(['\n', '\r']).map_or(0, |it| it + 1);
            let line = &self.text[from..end];
            if opens_text(line) {
                return content && self.take_back(from + line.trim_end().len());
            }
            if line.contains("\"\"\"") || from == 0 {
                return false;
            }
            if !line.trim().is_empty() {
                if indentation(line) == 0 {
                    return false;
                }
                content = true;
            }
            end = from;
        }
        false
    }

    /// Takes back all tokens behind a place, blanks excepted; what comes next begins behind those.
    fn take_back(&mut self, place: usize) -> bool {
        let at = u32::try_from(place).unwrap_or(u32::MAX);
        let index = self.out.starts.partition_point(|start| *start < at);
        if self.out.starts.get(index) != Some(&at) {
            return false;
        }
        self.out.kinds.truncate(index);
        self.out.starts.truncate(index);
        self.out.errors.retain(|it| it.range.start() < at.into());
        self.out.looked.retain(|(start, _)| *start < at);
        self.out.looked.push((at, Looked::AtAll(0)));
        self.out.ended.retain(|start| *start < at);
        self.out.ended.push(at);
        self.push(WHITESPACE, place);
        let rest = &self.text[place..];
        self.reopened = Some(place + (rest.len() - rest.trim_start().len()));
        true
    }

    /// Start of the line behind a line's end, if there is one.
    fn next_line(&self, line_end: usize) -> Option<usize> {
        let len = if self.bytes[line_end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        (line_end + len < self.bytes.len()).then_some(line_end + len)
    }

    /// Whether quotes on a later line look like the begin of a string.
    fn opens_string(&self, start: usize, quotes: usize) -> bool {
        self.before_on_line(start, quotes).is_some_and(opens_text)
    }

    /// Whether stars on a later line look like the begin of a discretion.
    fn opens_discretion(&self, start: usize, stars: usize) -> bool {
        self.before_on_line(start, stars).is_some_and(|before| {
            let word = before.trim_end().rsplit([' ', '\t']).next().unwrap_or("");
            matches!(
                word,
                "if" | "elif" | "choice" | "until" | "while" | "and" | "or" | "not"
            )
        })
    }

    fn before_on_line(&self, start: usize, place: usize) -> Option<&str> {
        let between = &self.bytes[start..place];
        let line = start + between.iter().rposition(|it| matches!(*it, b'\n' | b'\r'))? + 1;
        Some(&self.text[line..place])
    }

    /// The first line at column 0 that clearly begins a statement.
    fn head_between(&self, start: usize, end: usize) -> Option<usize> {
        let mut at = start;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &self.bytes[at..end]) {
            at += found + 1;
            if self.bytes[at..end].first().is_some_and(u8::is_ascii_lowercase)
                && is_head(&self.text[at..self.line_end(at)])
            {
                return Some(at);
            }
        }
        None
    }
}

fn indentation(line: &str) -> usize {
    line.bytes().take_while(|it| matches!(it, b' ' | b'\t')).count()
}

/// A line that can only be followed by a text: `prompt:`, `let x =`, `session`.
fn opens_text(line: &str) -> bool {
    let line = line.trim();
    let word = |it: &str| !it.is_empty() && name_len(it) == it.len();
    let words = |it: &str| it.split_whitespace().all(word);
    if let Some(before) = line.strip_suffix(':') {
        let first = before.split_whitespace().next().unwrap_or("");
        return is_property(line) || matches!(first, "input" | "session") && words(before);
    }
    if let Some(before) = line.strip_suffix('=') {
        let first = before.split_whitespace().next().unwrap_or("");
        let keyword = matches!(first, "let" | "const" | "output");
        return words(before) && before.split_whitespace().count() == if keyword { 2 } else { 1 };
    }
    match line.strip_suffix("session") {
        Some(before) => before.is_empty() || before.ends_with(' ') && before.trim_end().ends_with(['=', '>']),
        None => false,
    }
}

/// `word: …` with a property everybody knows.
fn is_property(line: &str) -> bool {
    let word = &line[..name_len(line)];
    line[word.len()..].starts_with(':') && prose_model::vocabulary::property(word).is_some()
}

/// Whether a line so clearly begins a statement that it can hardly be part of a text. Stricter than what the layout asks of
/// a line inside brackets, since texts are full of the same words.
fn is_head(line: &str) -> bool {
    let line = line.trim_end();
    let word = &line[..name_len(line)];
    let rest = line[word.len()..].trim_start();
    let behind_name = || rest[name_len(rest)..].trim_start();
    let named = name_len(rest) > 0;
    let assigns = |it: &str| it.starts_with('=') && !it.starts_with("==");
    match word {
        "agent" => named && behind_name() == ":",
        "block" => named && behind_name().starts_with([':', '(']) && rest.ends_with(':'),
        "let" | "const" => rest.starts_with('{') || named && assigns(behind_name()),
        "output" => named && assigns(behind_name()),
        "input" => named && behind_name().starts_with(':'),
        "use" | "throw" => rest.starts_with('"'),
        "session" | "resume" => {
            let target = rest.strip_prefix(':').map(str::trim);
            rest.starts_with('"') || target.is_some_and(|it| name_len(it) == it.len())
        }
        "for" => {
            let behind = behind_name();
            named && (behind.starts_with("in ") || behind.starts_with(',')) && rest.ends_with(':')
        }
        "repeat" => rest.starts_with(|it: char| it.is_ascii_digit()) && rest.ends_with(':'),
        "parallel" | "loop" => {
            rest == ":"
                || rest.ends_with(':')
                    && ["(", "for ", "until ", "while "]
                        .iter()
                        .any(|it| rest.starts_with(it))
        }
        "try" => rest == ":",
        "do" => rest == ":" || named && behind_name().starts_with('('),
        "if" | "choice" => rest.starts_with("**"),
        "" => false,
        // Before these the file is not cut, and so nothing can be ended there.
        word if continues_statement(word) => false,
        _ => {
            let value = rest.strip_prefix('=').map(str::trim_start).unwrap_or("");
            ["session", "resume:", "do ", "parallel", "\""]
                .iter()
                .any(|it| value.starts_with(it))
        }
    }
}
