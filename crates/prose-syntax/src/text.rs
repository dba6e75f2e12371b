//! What is inside a string, a discretion or a `prompt: |` block: escapes, interpolations, dedent.
//!
//! Interpolation: `{` starts one only if everything up to the next `}` has the form
//! `ident(.ident | [number] | [ident])*`. A brace directly after another `{`, after `$`, or escaped as `\{`, starts none. Everything
//! else is text: JSON, `{}`, `{some words}`, `{ padded }`.
//!
//! Dedent (of `"""` and of block text): the line of the opening quotes and the line of the closing quotes don't count; the leading
//! whitespace common to the other non-blank lines goes, blank lines become empty, a line break right after the
//! opening quotes goes, and so does all whitespace before the closing quotes. Line ends become `\n`.

use rowan::{TextRange, TextSize};

use crate::SyntaxKind::{self, *};

/// A piece of a string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Text as a reader sees it.
    Text {
        /// Where it is written in the file (escapes and removed indentation included).
        range: TextRange,
        /// Escapes resolved, indentation removed.
        text: String,
    },
    /// `{name.field[0]}`
    Interpolation(Interpolation),
}

/// An interpolation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Interpolation {
    /// With both braces.
    pub range: TextRange,
    /// The variable.
    pub root: NamePart,
    /// What follows it.
    pub path: Vec<PathStep>,
}

/// A word with its place in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePart {
    /// The word.
    pub name: String,
    /// Its range.
    pub range: TextRange,
}

/// One step of an interpolation's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// `.name`
    Field(NamePart),
    /// `[3]`; the range is that of the digits.
    Index {
        /// The index; absurdly large numbers become `u64::MAX`.
        index: u64,
        /// Its range.
        range: TextRange,
    },
    /// `[name]`
    IndexName(NamePart),
}

impl Interpolation {
    /// The range between the braces.
    pub fn path_range(&self) -> TextRange {
        TextRange::new(
            self.range.start() + TextSize::from(1),
            self.range.end() - TextSize::from(1),
        )
    }
}

/// An unknown escape in a `"…"` string, or an escape sequence: two characters, backslash first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Escape {
    /// Backslash and the character after it.
    pub range: TextRange,
    /// What it stands for; `None` when unknown.
    pub value: Option<char>,
}

/// The character an escape stands for; `None` for an unknown one.
pub fn unescape(after_backslash: char) -> Option<char> {
    match after_backslash {
        '\\' => Some('\\'),
        '"' => Some('"'),
        'n' => Some('\n'),
        't' => Some('\t'),
        '{' => Some('{'),
        '}' => Some('}'),
        _ => None,
    }
}

/// Whether a character may begin a name. Letters beyond ASCII are accepted (with a hint elsewhere).
pub fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && c.is_alphabetic())
}

/// Whether a character may continue a name. A hyphen needs a look at the next character, see [`name_len`].
pub fn is_name_continue(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && c.is_alphanumeric())
}

/// Length in bytes of the name at the start of `text`; 0 if none begins there. A hyphen belongs to the name only when
/// a letter, digit or `_` follows.
pub fn name_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_alphabetic() || byte == b'_' || (at > 0 && byte.is_ascii_digit()) {
            at += 1;
        } else if byte == b'-' && at > 0 {
            match text[at + 1..].chars().next() {
                Some(next) if is_name_continue(next) => at += 1,
                _ => break,
            }
        } else if byte >= 0x80 {
            match text[at..].chars().next() {
                Some(c) if (at == 0 && is_name_start(c)) || (at > 0 && is_name_continue(c)) => {
                    at += c.len_utf8()
                }
                _ => break,
            }
        } else {
            break;
        }
    }
    at
}

/// Whether the whole text is one name.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_len(text) == text.len()
}

/// Whether a discretion token is written with three stars.
pub fn is_star_block(token: &str) -> bool {
    let stars = token.bytes().take_while(|it| *it == b'*').count();
    // `****` is an empty two-star discretion.
    stars == 3 || stars > 4
}

/// Length of the delimiters of a token: (opening, closing). The closing one is 0 when the token is unterminated.
fn delimiters(kind: SyntaxKind, token: &str) -> (usize, usize) {
    match kind {
        STRING => {
            let closed = token.len() >= 2 && string_is_closed(token);
            (1.min(token.len()), usize::from(closed))
        }
        // One that nothing opened is only closed.
        TRIPLE_STRING if !token.starts_with("\"\"\"") => (0, if token.ends_with("\"\"\"") { 3 } else { 0 }),
        TRIPLE_STRING => (3.min(token.len()), if triple_is_closed(token) { 3 } else { 0 }),
        DISCRETION => {
            let n = if is_star_block(token) { 3 } else { 2 };
            let closed =
                token.len() >= 2 * n && token.as_bytes()[token.len() - n..].iter().all(|it| *it == b'*');
            (n.min(token.len()), if closed { n } else { 0 })
        }
        _ => (0, 0),
    }
}

/// Whether the last quote of a `"…"` token closes it (it is not escaped).
fn string_is_closed(token: &str) -> bool {
    let bytes = token.as_bytes();
    if bytes.last() != Some(&b'"') {
        return false;
    }
    let slashes = bytes[1..bytes.len() - 1]
        .iter()
        .rev()
        .take_while(|it| **it == b'\\')
        .count();
    slashes % 2 == 0
}

/// Whether the last three quotes of a `"""…"""` token close it.
fn triple_is_closed(token: &str) -> bool {
    if token.len() < 6 || !token.ends_with("\"\"\"") {
        return false;
    }
    let body = &token.as_bytes()[3..token.len() - 3];
    body.iter().rev().take_while(|it| **it == b'\\').count() % 2 == 0
}

/// Columns of an indentation. A tab goes to the next multiple of two.
pub fn indent_width(blank: &str) -> u32 {
    if blank.bytes().all(|it| it == b' ') {
        return u32::try_from(blank.len()).unwrap_or(u32::MAX);
    }
    let mut col = 0u32;
    for c in blank.chars() {
        col = if c == '\t' {
            (col / 2 + 1).saturating_mul(2)
        } else {
            col.saturating_add(1)
        };
    }
    col
}

/// Whether a string or discretion token has its closing delimiter.
pub fn is_terminated(kind: SyntaxKind, token: &str) -> bool {
    match kind {
        STRING | TRIPLE_STRING | DISCRETION => delimiters(kind, token).1 > 0,
        _ => true,
    }
}

/// The range between the delimiters, relative to the token.
pub fn content_range(kind: SyntaxKind, token: &str) -> TextRange {
    let (open, close) = delimiters(kind, token);
    range(open, (token.len() - close).max(open))
}

/// The escapes of a string token, with positions in the file. In `"""` and block text only the six known ones count.
pub fn escapes(kind: SyntaxKind, token: &str, start: TextSize) -> Vec<Escape> {
    let mut out = Vec::new();
    if !matches!(kind, STRING | TRIPLE_STRING | BLOCK_TEXT) {
        return out;
    }
    let content = content_range(kind, token);
    let (mut at, end) = (usize::from(content.start()), usize::from(content.end()));
    while let Some(found) = memchr::memchr(b'\\', &token.as_bytes()[at..end]) {
        let slash = at + found;
        let Some(next) = token[slash + 1..end].chars().next() else {
            break;
        };
        let value = unescape(next);
        if kind == STRING || value.is_some() {
            out.push(Escape {
                range: range(slash, slash + 1 + next.len_utf8()) + start,
                value,
            });
            at = slash + 1 + next.len_utf8();
        } else {
            at = slash + 1;
        }
    }
    out
}

/// The text of a token between its delimiters, when that is all there is to it: it has no layout, and nothing in it is escaped or
/// may be an interpolation.
pub fn plain(kind: SyntaxKind, token: &str) -> Option<&str> {
    let content = match kind {
        STRING | DISCRETION => &token[content_range(kind, token)],
        _ => return None,
    };
    memchr::memchr2(b'{', b'\\', content.as_bytes())
        .is_none()
        .then_some(content)
}

/// Splits a token into text and interpolations. `start` is the token's offset in the file; all ranges are absolute.
pub fn segments(kind: SyntaxKind, token: &str, start: TextSize) -> Vec<Segment> {
    let content = content_range(kind, token);
    let (from, to) = (usize::from(content.start()), usize::from(content.end()));
    let escaped = matches!(kind, STRING | TRIPLE_STRING | BLOCK_TEXT);
    let mut out = Out {
        start,
        segments: Vec::new(),
        text: String::new(),
        text_start: from,
        kept: 0,
    };
    for line in lines(kind, token, from, to) {
        piece(&mut out, token, line, escaped);
    }
    if matches!(kind, TRIPLE_STRING | BLOCK_TEXT) {
        out.trim_end();
    }
    out.flush(to);
    out.segments
}

/// The whole text, interpolations as written in `token`, which begins at `start` in the file.
pub fn joined(segments: &[Segment], token: &str, start: TextSize) -> String {
    let mut out = String::new();
    for segment in segments {
        match segment {
            Segment::Text { text, .. } => out.push_str(text),
            Segment::Interpolation(it) => {
                if let Some(range) = it.range.checked_sub(start) {
                    out.push_str(
                        token
                            .get(range.start().into()..range.end().into())
                            .unwrap_or_default(),
                    );
                }
            }
        }
    }
    out
}

/// A stretch of raw content to be read, and whether a line break follows it in the value.
struct Line {
    from: usize,
    to: usize,
    newline: bool,
}

/// The parts of the content that remain after dedent.
fn lines(kind: SyntaxKind, token: &str, from: usize, to: usize) -> Vec<Line> {
    if !matches!(kind, TRIPLE_STRING | BLOCK_TEXT) {
        return vec![Line {
            from,
            to,
            newline: false,
        }];
    }
    let mut raw = Vec::new();
    let mut at = from;
    loop {
        let line_end = memchr::memchr2(b'\n', b'\r', &token.as_bytes()[at..to]).map_or(to, |it| at + it);
        raw.push((at, line_end));
        if line_end == to {
            break;
        }
        at = line_end
            + if token[line_end..to].starts_with("\r\n") {
                2
            } else {
                1
            };
    }
    let last = raw.len() - 1;
    let terminated = is_terminated(kind, token);
    // The lines of the quotes don't count; block text begins with the break behind `|` and has no closing line.
    let counts = |index: usize| index > 0 && (index < last || kind == BLOCK_TEXT || !terminated);
    let mut common: Option<&str> = None;
    for (index, (a, b)) in raw.iter().enumerate() {
        let line = &token[*a..*b];
        if !counts(index) || is_blank(line) {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        common = Some(match common {
            Some(so_far) => common_prefix(so_far, indent),
            None => indent,
        });
    }
    let common = common.unwrap_or("");
    let mut out = Vec::with_capacity(raw.len());
    for (index, (a, b)) in raw.iter().enumerate() {
        let line = &token[*a..*b];
        let newline = index < last;
        if index == 0 {
            // Behind the bar of a block text there are only blanks, of whatever kind.
            if last > 0 && (kind == BLOCK_TEXT || is_blank(line)) {
                continue;
            }
            out.push(Line {
                from: *a,
                to: *b,
                newline,
            });
        } else if is_blank(line) {
            out.push(Line {
                from: *b,
                to: *b,
                newline,
            });
        } else {
            out.push(Line {
                from: a + common_prefix(common, line).len(),
                to: *b,
                newline,
            });
        }
    }
    out
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|it| it == b' ' || it == b'\t')
}

fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let n = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    // Both are only spaces and tabs up to here, so `n` is a character boundary.
    &a[..n]
}

struct Out {
    start: TextSize,
    segments: Vec<Segment>,
    text: String,
    text_start: usize,
    /// How much of `text` is no layout: it ends with what an escape stands for.
    kept: usize,
}

impl Out {
    /// Drops the whitespace before the closing quotes, as it is written: an escaped newline or tab is part of the text.
    fn trim_end(&mut self) {
        self.text.truncate(self.text.trim_end().len().max(self.kept));
    }

    fn flush(&mut self, at: usize) {
        if !self.text.is_empty() {
            let range = range(self.text_start, at) + self.start;
            self.segments.push(Segment::Text {
                range,
                text: std::mem::take(&mut self.text),
            });
        }
        self.text_start = at;
        self.kept = 0;
    }
}

fn piece(out: &mut Out, token: &str, line: Line, escaped: bool) {
    let bytes = token.as_bytes();
    let mut at = line.from;
    while at < line.to {
        let Some(found) = memchr::memchr2(b'{', b'\\', &bytes[at..line.to]) else {
            out.text.push_str(&token[at..line.to]);
            break;
        };
        out.text.push_str(&token[at..at + found]);
        at += found;
        if bytes[at] == b'\\' {
            let next = token[at + 1..line.to].chars().next();
            match next
                .filter(|_| escaped)
                .and_then(|it| unescape(it).map(|value| (it, value)))
            {
                Some((next, value)) => {
                    out.text.push(value);
                    out.kept = out.text.len();
                    at += 1 + next.len_utf8();
                }
                None => {
                    out.text.push('\\');
                    at += 1;
                }
            }
            continue;
        }
        // `{{` and `${` belong to templates of other languages.
        let braces = bytes[at..line.to].iter().take_while(|it| **it == b'{').count();
        let dollar = at > line.from && bytes[at - 1] == b'$';
        if braces > 1 || dollar {
            out.text.push_str(&token[at..at + braces]);
            at += braces;
            continue;
        }
        match interpolation(
            &token[at..line.to],
            TextSize::try_from(at).unwrap_or_default() + out.start,
        ) {
            Some((found, len)) => {
                out.flush(at);
                out.segments.push(Segment::Interpolation(found));
                at += len;
                out.text_start = at;
            }
            None => {
                out.text.push('{');
                at += 1;
            }
        }
    }
    if line.newline {
        out.text.push('\n');
    }
}

/// Reads an interpolation at the start of `text`, which begins at `start` in the file. Gives it and its length.
fn interpolation(text: &str, start: TextSize) -> Option<(Interpolation, usize)> {
    let bytes = text.as_bytes();
    let mut at = 1;
    let name = |at: &mut usize| {
        let len = name_len(&text[*at..]);
        if len == 0 {
            return None;
        }
        let part = NamePart {
            name: text[*at..*at + len].to_owned(),
            range: range(*at, *at + len) + start,
        };
        *at += len;
        Some(part)
    };
    let root = name(&mut at)?;
    let mut path = Vec::new();
    loop {
        match bytes.get(at)? {
            b'}' => {
                at += 1;
                return Some((
                    Interpolation {
                        range: range(0, at) + start,
                        root,
                        path,
                    },
                    at,
                ));
            }
            b'.' => {
                at += 1;
                path.push(PathStep::Field(name(&mut at)?));
            }
            b'[' => {
                at += 1;
                let digits = bytes[at..].iter().take_while(|it| it.is_ascii_digit()).count();
                if digits > 0 {
                    let index = text[at..at + digits].parse().unwrap_or(u64::MAX);
                    path.push(PathStep::Index {
                        index,
                        range: range(at, at + digits) + start,
                    });
                    at += digits;
                } else {
                    path.push(PathStep::IndexName(name(&mut at)?));
                }
                if bytes.get(at) != Some(&b']') {
                    return None;
                }
                at += 1;
            }
            _ => return None,
        }
    }
}

/// A range from byte offsets. Texts are shorter than 4 GiB (see [`crate::MAX_TEXT_LEN`]).
fn range(from: usize, to: usize) -> TextRange {
    let size = |it: usize| TextSize::from(u32::try_from(it).unwrap_or(u32::MAX));
    TextRange::new(size(from), size(to))
}
