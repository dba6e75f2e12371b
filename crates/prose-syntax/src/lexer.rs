//! Text to tokens. Total: every byte of any text belongs to exactly one token.
//!
//! Keywords are contextual, so the lexer knows only names. It decides where strings, discretions and `prompt: |`
//! blocks end, because their content follows no other rule.

mod unclosed;

use std::{cell::Cell, ops::Range};

use rowan::{TextRange, TextSize};

use crate::{
    SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    text::{indent_width, is_name_continue, is_name_start, unescape},
};

pub(crate) use unclosed::Outlook;

/// The tokens of a text, trivia included, as parallel arrays.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    kinds: Vec<SyntaxKind>,
    /// Where the tokens start, and where the last one ends.
    starts: Vec<u32>,
    pub(crate) errors: Vec<SyntaxError>,
    /// Tokens whose end was sought further on and not found: start of the token, and how far the lexer looked.
    pub(crate) looked: Vec<(u32, Looked)>,
    /// Starts of tokens that were ended because of what comes further on. A part of a text that is read alone must end at the
    /// next cut behind each, so that it is read the same way.
    pub(crate) ended: Vec<u32>,
}

/// How far the lexer looked for the end of a token, and so which later changes may give it another one. In the order of how much
/// that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Looked {
    /// So many bytes, counted from whatever the owner says.
    To(u32),
    /// To the text's end for three stars: changes that make some.
    ForStars,
    /// At all that comes: any change. Where the token was ended before a statement further on, it counts how far on that is,
    /// since what stands in between was read with that in mind; else 0.
    AtAll(u32),
}

impl Looked {
    /// The same, counted from so many bytes further on.
    pub(crate) fn counted_from(self, start: usize) -> Looked {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        match self {
            Looked::To(to) => Looked::To(to.saturating_sub(start)),
            Looked::AtAll(ended) => Looked::AtAll(ended.saturating_sub(start)),
            Looked::ForStars => Looked::ForStars,
        }
    }
}

/// How many tokens behind a place must be known before [`crate::layout`] can say whether a statement begins there.
const TOKENS_BEHIND: usize = 4;

impl Lexed {
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn kind(&self, index: usize) -> SyntaxKind {
        self.kinds.get(index).copied().unwrap_or(EOF)
    }

    pub(crate) fn start(&self, index: usize) -> usize {
        match self.starts.get(index).or(self.starts.last()) {
            Some(start) => *start as usize,
            None => 0,
        }
    }

    /// Start and end of a token that exists.
    pub(crate) fn span(&self, index: usize) -> Range<usize> {
        match self.starts.get(index..index + 2) {
            Some([from, to]) => *from as usize..*to as usize,
            _ => 0..0,
        }
    }

    /// The kinds of all tokens.
    pub(crate) fn kinds(&self) -> &[SyntaxKind] {
        &self.kinds
    }

    pub(crate) fn end(&self, index: usize) -> usize {
        self.start(index + 1)
    }

    pub(crate) fn text<'a>(&self, text: &'a str, index: usize) -> &'a str {
        &text[self.span(index)]
    }

    pub(crate) fn range(&self, index: usize) -> TextRange {
        range(self.start(index), self.end(index))
    }
}

/// A range from byte offsets; texts are at most [`crate::MAX_TEXT_LEN`] long.
pub(crate) fn range(from: usize, to: usize) -> TextRange {
    let size = |it: usize| TextSize::from(u32::try_from(it).unwrap_or(u32::MAX));
    TextRange::new(size(from), size(to))
}

/// Splits the front of a text into tokens: those that begin before `limit`, and as many behind it as are needed to tell
/// whether the text can be cut there. What was in `out` goes.
pub(crate) fn lex_until(text: &str, limit: usize, out: &mut Lexed, outlook: &mut Outlook) {
    out.kinds.clear();
    out.starts.clear();
    out.errors.clear();
    out.looked.clear();
    out.ended.clear();
    // An estimate from real programs, which saves most regrowth.
    let estimate = text.len().min(limit) / 8 + 8;
    out.kinds.reserve(estimate);
    out.starts.reserve(estimate);
    let mut lexer = Lexer {
        text,
        bytes: text.as_bytes(),
        pos: 0,
        line_start: 0,
        no_triple_star_after: usize::MAX,
        known_line: Cell::new((1, 0)),
        out,
        plain: false,
        reopened: None,
        barrier: outlook.barrier.saturating_sub(outlook.from),
        outlook,
    };
    if text.starts_with('\u{feff}') {
        lexer.push(BOM, 0);
        lexer.pos = 3;
        lexer.line_start = 3;
    }
    let mut behind = 0;
    while lexer.pos < lexer.bytes.len() {
        let start = lexer.pos;
        let kind = lexer.token();
        debug_assert!(lexer.pos > start, "a token has at least one byte");
        if kind == TRIPLE_STRING
            && let Some(opened) = lexer.reopened.take()
        {
            lexer.push(kind, opened);
            behind = 0;
            continue;
        }
        lexer.push(kind, start);
        if kind == PIPE {
            lexer.block_text(start);
        }
        if start >= limit && !kind.is_trivia() {
            behind += 1;
            if behind == TOKENS_BEHIND {
                break;
            }
        }
    }
    lexer
        .out
        .starts
        .push(u32::try_from(lexer.pos).unwrap_or(u32::MAX));
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    /// Start of the current line; its indentation decides where an unterminated `**` ends.
    line_start: usize,
    /// No `***` closes anything from here on; keeps a file full of unterminated ones linear.
    no_triple_star_after: usize,
    /// A stretch without a line end, and the line end (or the text's end) behind it.
    known_line: Cell<(usize, usize)>,
    out: &'a mut Lexed,
    /// Whether everything is read plainly, however it ends.
    plain: bool,
    /// Where the string begins whose closing quotes were just read, when nothing opened it.
    reopened: Option<usize>,
    /// The statement before which a token was ended last, because of what comes further on; 0 when none was.
    barrier: usize,
    outlook: &'a mut Outlook,
}

impl Lexer<'_> {
    fn push(&mut self, kind: SyntaxKind, start: usize) {
        self.out.kinds.push(kind);
        self.out.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
    }

    fn error(&mut self, kind: SyntaxErrorKind, from: usize, to: usize) {
        self.out.errors.push(SyntaxError {
            kind,
            range: range(from, to),
        });
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn one(&mut self, kind: SyntaxKind) -> SyntaxKind {
        self.pos += 1;
        kind
    }

    fn two(&mut self, kind: SyntaxKind) -> SyntaxKind {
        self.pos += 2;
        kind
    }

    fn token(&mut self) -> SyntaxKind {
        match self.bytes[self.pos] {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.whitespace(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.ident(),
            b'"' => self.string(),
            b'0'..=b'9' => self.number(),
            b'#' => {
                self.pos = self.line_end(self.pos);
                COMMENT
            }
            b'*' if self.peek(1) == b'*' => self.discretion(),
            b':' => self.one(COLON),
            b',' => self.one(COMMA),
            b'.' => self.one(DOT),
            b'(' => self.one(L_PAREN),
            b')' => self.one(R_PAREN),
            b'[' => self.one(L_BRACK),
            b']' => self.one(R_BRACK),
            b'{' => self.one(L_BRACE),
            b'}' => self.one(R_BRACE),
            b'@' => self.one(AT),
            b'+' => self.one(PLUS),
            b'-' if self.peek(1) == b'>' => self.two(ARROW),
            b'-' => self.one(MINUS),
            b'|' if self.peek(1) == b'|' => self.two(UNKNOWN),
            b'|' => self.one(PIPE),
            b'=' if self.peek(1) == b'=' => self.two(EQ2),
            b'=' => self.one(EQ),
            b'!' if self.peek(1) == b'=' => self.two(NEQ),
            b'<' if self.peek(1) == b'=' => self.two(LTEQ),
            b'<' => self.one(LT),
            b'>' if self.peek(1) == b'=' => self.two(GTEQ),
            b'>' => self.one(GT),
            byte if byte < 0x80 => self.unknown(),
            _ => self.non_ascii(),
        }
    }

    fn whitespace(&mut self) -> SyntaxKind {
        while let Some(byte) = self.bytes.get(self.pos) {
            match byte {
                b' ' | b'\t' | 0x0b | 0x0c => self.pos += 1,
                b'\n' | b'\r' => {
                    self.pos += 1;
                    self.line_start = self.pos;
                }
                _ => break,
            }
        }
        WHITESPACE
    }

    fn ident(&mut self) -> SyntaxKind {
        // The common case first: a run of ASCII letters, digits and `_`.
        self.pos += 1;
        while matches!(
            self.bytes.get(self.pos),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_')
        ) {
            self.pos += 1;
        }
        if matches!(self.bytes.get(self.pos), Some(b'-' | 0x80..)) {
            self.ident_tail();
        }
        IDENT
    }

    /// Continues a name behind its first characters.
    fn ident_tail(&mut self) {
        while let Some(byte) = self.bytes.get(self.pos) {
            let rest = &self.text[self.pos..];
            let word = match byte {
                b'-' => &rest[1..],
                _ => rest,
            };
            let Some(next) = word.chars().next().filter(|it| is_name_continue(*it)) else {
                break;
            };
            self.pos += (rest.len() - word.len()) + next.len_utf8();
        }
    }

    fn number(&mut self) -> SyntaxKind {
        self.digits();
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.pos += 1;
            self.digits();
        }
        let unit = self.bytes[self.pos..]
            .iter()
            .take_while(|it| it.is_ascii_alphabetic())
            .count();
        let after = self.bytes.get(self.pos + unit).copied().unwrap_or(0);
        let known = matches!(
            &self.bytes[self.pos..self.pos + unit],
            b"ms" | b"s" | b"m" | b"min" | b"h" | b"d"
        );
        if known && !after.is_ascii_alphanumeric() && after != b'_' {
            self.pos += unit;
            return DURATION;
        }
        NUMBER
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.pos += 1;
        }
    }

    fn string(&mut self) -> SyntaxKind {
        if self.bytes[self.pos..].starts_with(b"\"\"\"") {
            return self.triple_string();
        }
        let start = self.pos;
        self.pos += 1;
        loop {
            match self.bytes.get(self.pos) {
                Some(b'"') => {
                    self.pos += 1;
                    return STRING;
                }
                Some(b'\\') => {
                    match self.text[self.pos + 1..].chars().next() {
                        Some(c) if c != '\n' && c != '\r' => {
                            let end = self.pos + 1 + c.len_utf8();
                            if unescape(c).is_none() {
                                self.error(SyntaxErrorKind::UnknownEscape(c), self.pos, end);
                            }
                            self.pos = end;
                        }
                        // A backslash at the line's end; the loop reports the missing quote.
                        _ => self.pos += 1,
                    };
                }
                Some(b'\n' | b'\r') | None => {
                    self.error(
                        SyntaxErrorKind::UnterminatedString { triple: false },
                        start,
                        self.pos,
                    );
                    return STRING;
                }
                Some(_) => self.pos += 1,
            }
        }
    }

    fn triple_string(&mut self) -> SyntaxKind {
        let start = self.pos;
        self.pos += 3;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.bytes[self.pos..]) {
            self.pos += found;
            if self.bytes[self.pos] == b'\\' {
                self.pos += if matches!(self.peek(1), b'"' | b'\\') {
                    2
                } else {
                    1
                };
                continue;
            }
            // Longer runs are as good as six, and are not counted again and again.
            let run = self.bytes[self.pos..]
                .iter()
                .take(6)
                .take_while(|it| **it == b'"')
                .count();
            // Of a run of four or five quotes the last three close.
            let end = self.pos + if matches!(run, 3..=5) { run } else { run.min(3) };
            if run >= 3 {
                return self.end_triple_string(start, Some((self.pos, end)));
            }
            self.pos = end;
        }
        self.end_triple_string(start, None)
    }

    fn discretion(&mut self) -> SyntaxKind {
        let start = self.pos;
        let stars = self.stars(start);
        let looked = |to: usize| u32::try_from(to).map_or(Looked::AtAll(0), Looked::To);
        let end = match stars {
            4 => Ok(start + 4),
            2 => match self.find_stars(start + 2, self.line_end(start), 2) {
                Some(end) => Ok(end),
                None => match self.find_on_later_lines(start) {
                    Ok(end) if self.passes_barrier(start, Some(end)) => {
                        self.ended(start);
                        Err(Looked::AtAll(0))
                    }
                    Ok(end) => Ok(end),
                    Err(to) => Err(looked(to)),
                },
            },
            _ if start >= self.no_triple_star_after => Err(Looked::ForStars),
            _ => {
                let closed = self.find_stars(start + 3, self.bytes.len(), 3);
                if closed.is_none() {
                    self.no_triple_star_after = self.no_triple_star_after.min(start);
                }
                self.end_triple_stars(start, closed).ok_or(Looked::ForStars)
            }
        };
        match end {
            Ok(end) => {
                self.pos = end;
                let width = if stars == 3 || stars > 4 { 3 } else { 2 };
                self.check_discretion(start, width, end);
            }
            Err(looked) => {
                // Stars alone on their line look for a colon on the lines below.
                let alone = stars != 2 && self.text[start + stars..self.line_end(start)].trim().is_empty();
                self.looked(start, if alone { Looked::AtAll(0) } else { looked });
                self.pos = if stars == 2 {
                    // The colon that opens the body stays outside, so that the body is still found.
                    let line = self.text[start..self.line_end(start)].trim_end();
                    let line = line.strip_suffix(':').unwrap_or(line).trim_end();
                    start + line.len().max(stars)
                } else {
                    self.end_of_unclosed_stars(start, stars)
                };
                self.error(
                    SyntaxErrorKind::UnterminatedDiscretion { block: stars != 2 },
                    start,
                    self.pos,
                );
            }
        }
        DISCRETION
    }

    /// Notes how far the end of a token was sought in vain.
    fn looked(&mut self, start: usize, looked: Looked) {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        self.out.looked.push((start, looked));
    }

    fn stars(&self, at: usize) -> usize {
        self.bytes[at..].iter().take_while(|it| **it == b'*').count()
    }

    /// End of the first run of at least `width` stars in a range.
    fn find_stars(&self, from: usize, to: usize, width: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            at += memchr::memchr(b'*', &self.bytes[at..to])?;
            let run = self.stars(at).min(to - at);
            at += run;
            if run >= width {
                return Some(at);
            }
        }
        None
    }

    /// Number of delimiters in a range; `****` is two of them.
    fn star_runs(&self, from: usize, to: usize) -> usize {
        let mut runs = 0;
        let mut at = from;
        while let Some(end) = self.find_stars(at, to, 2) {
            let run = self.bytes[at..end]
                .iter()
                .rev()
                .take_while(|it| **it == b'*')
                .count();
            runs += if run == 4 { 2 } else { 1 };
            at = end;
        }
        runs
    }

    /// `**` may close on a later line, unless a blank or shallower line comes first. One that ends its line opens a text of
    /// several paragraphs: blank lines belong to it, as long as every other line is deeper and the closing `**` has a
    /// line of its own. An error is how far it looked.
    fn find_on_later_lines(&self, start: usize) -> Result<usize, usize> {
        let indent = self.bytes[self.line_start.min(start)..start]
            .iter()
            .take_while(|it| matches!(**it, b' ' | b'\t'))
            .count();
        let mut at = self.line_end(start);
        let paragraphs = self.bytes[start + 2..at]
            .iter()
            .all(|it| matches!(*it, b' ' | b'\t'));
        let mut past_blank = false;
        while at < self.bytes.len() {
            at += if self.bytes[at..].starts_with(b"\r\n") {
                2
            } else {
                1
            };
            let end = self.line_end(at);
            let line = &self.bytes[at..end];
            let blanks = line.iter().take_while(|it| matches!(**it, b' ' | b'\t')).count();
            if blanks == line.len() && paragraphs {
                past_blank = true;
                at = end;
                continue;
            }
            if blanks == line.len() || blanks < indent {
                return Err(end);
            }
            let closes = line[blanks..].starts_with(b"**");
            if past_blank && blanks == indent && !closes {
                return Err(end);
            }
            if let Some(found) = self.find_stars(at, end, 2) {
                // A line with pairs of its own closes nothing: those are the discretions of other statements.
                return if self.star_runs(at, end) % 2 == 1 {
                    Ok(found)
                } else {
                    Err(end)
                };
            }
            at = end;
        }
        Err(self.bytes.len())
    }

    fn check_discretion(&mut self, start: usize, width: usize, end: usize) {
        let content = &self.text[start + width..end - width];
        let trimmed = content.trim();
        let multi_line = width == 2 && content.contains(['\n', '\r']);
        if trimmed.is_empty() {
            self.error(SyntaxErrorKind::EmptyDiscretion, start, end);
        } else if trimmed.chars().nth(2).is_none() {
            self.error(SyntaxErrorKind::ShortDiscretion, start, end);
        } else if multi_line {
            self.error(SyntaxErrorKind::MultiLineDiscretion, start, end);
        }
    }

    /// Offset of the line end at or after `at`.
    fn line_end(&self, at: usize) -> usize {
        // Kept, since a long line may ask for its end many times.
        let (from, to) = self.known_line.get();
        if (from..=to).contains(&at) {
            return to;
        }
        let end = memchr::memchr2(b'\n', b'\r', &self.bytes[at..]).map_or(self.bytes.len(), |it| at + it);
        self.known_line.set((at, end));
        end
    }

    /// After `key: |` at a line's end: takes the deeper lines below as one token.
    fn block_text(&mut self, pipe: usize) {
        let last = self.out.kinds.len() - 1;
        let mut before = last;
        let mut seen = [EOF; 2];
        for slot in &mut seen {
            if before > 0 && self.out.kinds[before - 1] == WHITESPACE {
                before -= 1;
            }
            if before == 0 {
                return;
            }
            before -= 1;
            *slot = self.out.kinds[before];
        }
        let key = self.out.starts[before] as usize;
        let first_line_end = self.line_end(self.pos);
        if seen != [COLON, IDENT]
            || key < self.line_start
            || !self.text[self.pos..first_line_end].trim().is_empty()
        {
            return;
        }
        let blank = |bytes: &[u8]| bytes.iter().take_while(|it| matches!(**it, b' ' | b'\t')).count();
        // Columns as in the layout, which has tabs too.
        let start = self.line_start;
        let indent = indent_width(&self.text[start..start + blank(&self.bytes[start..pipe])]);
        let (mut at, mut end) = (first_line_end, None);
        while at < self.bytes.len() {
            at += if self.bytes[at..].starts_with(b"\r\n") {
                2
            } else {
                1
            };
            let line_end = self.line_end(at);
            let line = &self.bytes[at..line_end];
            let blanks = blank(line);
            let col = indent_width(&self.text[at..at + blanks]);
            at = line_end;
            if blanks == line.len() {
                continue;
            }
            if col <= indent {
                break;
            }
            end = Some(line_end);
        }
        if let Some(end) = end {
            let start = self.pos;
            self.pos = end;
            self.push(BLOCK_TEXT, start);
        }
    }

    fn unknown(&mut self) -> SyntaxKind {
        if self.bytes[self.pos..].starts_with(b"&&") || self.bytes[self.pos..].starts_with(b"//") {
            return self.two(UNKNOWN);
        }
        self.one(UNKNOWN)
    }

    fn non_ascii(&mut self) -> SyntaxKind {
        let c = self.text[self.pos..].chars().next().unwrap_or('\0');
        let start = self.pos;
        if is_name_start(c) {
            self.pos += c.len_utf8();
            self.ident_tail();
            return IDENT;
        }
        if is_invisible(c) {
            // Pasted text is full of them; they act as the blank they look like.
            while let Some(c) = self.text[self.pos..]
                .chars()
                .next()
                .filter(|it| is_invisible(*it))
            {
                self.pos += c.len_utf8();
            }
            self.error(SyntaxErrorKind::InvisibleCharacter(c), start, self.pos);
            return WHITESPACE;
        }
        while let Some(c) = self.text[self.pos..].chars().next() {
            if c.is_ascii() || is_name_start(c) || is_invisible(c) {
                break;
            }
            self.pos += c.len_utf8();
        }
        UNKNOWN
    }
}

/// What makes up white space, a byte order mark too.
pub(crate) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}') || is_invisible(c)
}

fn is_invisible(c: char) -> bool {
    !c.is_ascii() && (c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'))
}
