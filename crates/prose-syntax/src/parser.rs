//! The parser's machinery: lookahead, markers, errors, limits. The grammar is in [`crate::grammar`].

use std::ops::Range;

use rowan::TextRange;

use crate::{
    SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    event::Event,
    layout::{Brackets, Layout, Tok, closes},
    lexer::{Lexed, range},
    scan::Cut,
};

/// Deepest nesting of bodies and expressions the parser follows; it bounds its use of the stack.
pub(crate) const DEPTH_LIMIT: u32 = 256;

/// Looks at the input without consuming anything that the parser may take before it counts as stuck. Leaving all the levels that
/// [`DEPTH_LIMIT`] allows, with some dozens of looks each, must not.
const FUEL: u32 = DEPTH_LIMIT * 256;

pub(crate) struct Parser<'a> {
    text: &'a str,
    lexed: &'a Lexed,
    toks: &'a [Tok],
    /// Where the part begins that is parsed; an error in front of every token is there.
    begin: usize,
    pos: usize,
    fuel: std::cell::Cell<u32>,
    events: Vec<Event>,
    errors: Vec<SyntaxError>,
    depth: u32,
    /// Errors are dropped while this is above 0: inside a part that already has one.
    muted: u32,
    /// Whether the current top-level statement already has its error about depth.
    too_deep: bool,
    /// Open brackets.
    brackets: Brackets,
}

/// A node that has begun.
#[must_use]
pub(crate) struct Marker {
    at: usize,
}

/// A node that is finished and may still get a parent.
#[derive(Clone, Copy)]
pub(crate) struct Completed {
    at: usize,
    pub(crate) kind: SyntaxKind,
}

impl<'a> Parser<'a> {
    /// For the part of what was scanned between two cuts. `events` is empty; its memory is used.
    pub(crate) fn new(
        text: &'a str,
        lexed: &'a Lexed,
        layout: &'a Layout,
        part: Range<Cut>,
        events: Vec<Event>,
    ) -> Self {
        Parser {
            text,
            lexed,
            toks: &layout.toks[part.start.tok..part.end.tok],
            begin: lexed.start(part.start.raw),
            pos: 0,
            fuel: std::cell::Cell::new(FUEL),
            events,
            errors: Vec::new(),
            depth: 0,
            muted: 0,
            too_deep: false,
            brackets: Brackets::default(),
        }
    }

    pub(crate) fn finish(self) -> (Vec<Event>, Vec<SyntaxError>) {
        (self.events, self.errors)
    }

    // ---- lookahead ----------------------------------------------------------------------------

    fn tok(&self, ahead: usize) -> Tok {
        // Past the end, and when stuck, everything looks like the end, so that every loop ends.
        let end = Tok {
            kind: EOF,
            kw: EOF,
            raw: u32::MAX,
        };
        match self.fuel.get() {
            0 => end,
            fuel => {
                self.fuel.set(fuel - 1);
                self.toks.get(self.pos + ahead).copied().unwrap_or(end)
            }
        }
    }

    /// Kind of the current token; keywords are IDENT.
    pub(crate) fn current(&self) -> SyntaxKind {
        self.tok(0).kind
    }

    /// Kind of a token ahead; keywords are IDENT.
    pub(crate) fn nth(&self, ahead: usize) -> SyntaxKind {
        self.tok(ahead).kind
    }

    /// Keyword spelled by a token ahead, else its kind.
    pub(crate) fn kw(&self, ahead: usize) -> SyntaxKind {
        self.tok(ahead).kw
    }

    pub(crate) fn at(&self, kind: SyntaxKind) -> bool {
        self.current() == kind
    }

    pub(crate) fn at_kw(&self, kw: SyntaxKind) -> bool {
        self.kw(0) == kw
    }

    /// At the end of a logical line, or of a block.
    pub(crate) fn at_line_end(&self) -> bool {
        is_line_end(self.current())
    }

    /// Whether the current token is the first of its line.
    pub(crate) fn at_statement_start(&self) -> bool {
        self.pos == 0 || self.toks.get(self.pos - 1).is_some_and(|it| is_virtual(it.kind))
    }

    /// Whether nothing stands between a token ahead and the one before it.
    pub(crate) fn touches(&self, ahead: usize) -> bool {
        let at = self.pos + ahead;
        match (
            at.checked_sub(1).and_then(|it| self.toks.get(it)),
            self.toks.get(at),
        ) {
            (Some(before), Some(tok)) => {
                !is_virtual(before.kind) && !is_virtual(tok.kind) && tok.raw == before.raw.wrapping_add(1)
            }
            _ => false,
        }
    }

    /// Text of a token ahead; empty for the added ones.
    pub(crate) fn text(&self, ahead: usize) -> &'a str {
        match self.toks.get(self.pos + ahead) {
            Some(tok) if !is_virtual(tok.kind) => self.lexed.text(self.text, tok.raw as usize),
            _ => "",
        }
    }

    /// Range of the current token; at a line's end the empty range behind the last token.
    pub(crate) fn range(&self) -> TextRange {
        match self.toks.get(self.pos) {
            Some(tok) if !is_virtual(tok.kind) => self.lexed.range(tok.raw as usize),
            _ => {
                let end = self.last_range().end();
                TextRange::empty(end)
            }
        }
    }

    /// Range of the token before the current one.
    pub(crate) fn last_range(&self) -> TextRange {
        let before = &self.toks[..self.pos.min(self.toks.len())];
        match before.iter().rev().find(|it| !is_virtual(it.kind)) {
            Some(tok) => self.lexed.range(tok.raw as usize),
            None => range(self.begin, self.begin),
        }
    }

    /// Kind of the token before the current one; keywords are IDENT.
    pub(crate) fn last_kind(&self) -> SyntaxKind {
        let before = self.pos.checked_sub(1).and_then(|it| self.toks.get(it));
        before.map_or(EOF, |it| it.kind)
    }

    /// Range from a position to the last token taken.
    pub(crate) fn range_since(&self, start: usize) -> TextRange {
        match self.toks[start.min(self.toks.len())..self.pos.min(self.toks.len())]
            .iter()
            .find(|it| !is_virtual(it.kind))
        {
            Some(tok) => self.lexed.range(tok.raw as usize).cover(self.last_range()),
            None => self.range(),
        }
    }

    /// Text of the token before the current one.
    pub(crate) fn last_text(&self) -> &'a str {
        &self.text[self.last_range()]
    }

    /// Whether the last token is a string or discretion that is never closed.
    pub(crate) fn last_is_unterminated(&self) -> bool {
        !crate::text::is_terminated(self.last_kind(), self.last_text())
    }

    /// Index of the current token, to see whether anything was taken.
    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    // ---- taking tokens -------------------------------------------------------------------------

    /// Takes the current token as it is.
    pub(crate) fn bump(&mut self) {
        let kind = self.toks.get(self.pos).map_or(EOF, |it| it.kind);
        self.bump_as(kind);
    }

    /// Takes the current token under another kind: a word as a keyword.
    pub(crate) fn bump_as(&mut self, kind: SyntaxKind) {
        let Some(tok) = self.toks.get(self.pos).copied() else {
            return;
        };
        self.fuel.set(FUEL);
        match tok.kind {
            EOF => return,
            NEWLINE | INDENT | DEDENT => self.events.push(Event::Trivia { until: tok.raw }),
            _ => self.events.push(Event::Token { kind }),
        }
        self.pos += 1;
    }

    /// Takes the current word as the keyword it spells.
    pub(crate) fn bump_kw(&mut self) {
        self.bump_as(self.toks.get(self.pos).map_or(EOF, |it| it.kw));
    }

    pub(crate) fn eat(&mut self, kind: SyntaxKind) -> bool {
        let here = self.at(kind);
        if here {
            self.bump();
        }
        here
    }

    /// Takes everything that is left, after the parser got stuck.
    pub(crate) fn drain(&mut self) {
        if self.toks.get(self.pos).is_none_or(|it| it.kind == EOF) {
            return;
        }
        self.fuel.set(FUEL);
        let found = self.describe();
        self.error(SyntaxErrorKind::UnexpectedToken {
            found,
            expected: "a statement",
        });
        let m = self.start();
        while self.toks.get(self.pos).is_some_and(|it| it.kind != EOF) {
            self.bump();
        }
        m.complete(self, ERROR);
    }

    // ---- nodes -----------------------------------------------------------------------------------

    pub(crate) fn start(&mut self) -> Marker {
        self.begin(false)
    }

    /// A node that owns the trivia in front of it: an indented block.
    pub(crate) fn start_block(&mut self) -> Marker {
        self.begin(true)
    }

    fn begin(&mut self, block: bool) -> Marker {
        self.events.push(Event::Start {
            kind: ERROR,
            block,
            parent: 0,
        });
        Marker {
            at: self.events.len() - 1,
        }
    }

    /// A node of the current token alone.
    pub(crate) fn leaf(&mut self, kind: SyntaxKind) -> Completed {
        self.leaf_of(kind, |tok| tok.kind)
    }

    /// A node of the current token alone, which is taken as the keyword it spells if it spells one.
    pub(crate) fn leaf_kw(&mut self, kind: SyntaxKind) -> Completed {
        self.leaf_of(kind, |tok| tok.kw)
    }

    fn leaf_of(&mut self, kind: SyntaxKind, token: impl Fn(&Tok) -> SyntaxKind) -> Completed {
        let tok = self.toks.get(self.pos).filter(|it| !is_virtual(it.kind));
        let token = tok.and_then(|it| u8::try_from(token(it) as u16).ok());
        let Some(token) = token else {
            let m = self.start();
            self.bump();
            return m.complete(self, kind);
        };
        self.fuel.set(FUEL);
        self.pos += 1;
        self.events.push(Event::Leaf {
            token,
            kind,
            parent: 0,
        });
        Completed {
            at: self.events.len() - 1,
            kind,
        }
    }

    // ---- errors ------------------------------------------------------------------------------------

    /// Reports at the current token.
    pub(crate) fn error(&mut self, kind: SyntaxErrorKind) {
        let range = self.range();
        self.error_at(kind, range);
    }

    pub(crate) fn error_at(&mut self, kind: SyntaxErrorKind, range: TextRange) {
        if self.muted == 0 {
            self.errors.push(SyntaxError { kind, range });
        }
    }

    pub(crate) fn expected(&mut self, what: &'static str, after: &'static str) {
        self.error(SyntaxErrorKind::Expected { what, after });
    }

    /// Reports the current token as unexpected, with a better kind for tokens of other languages.
    /// Only once for a token: whoever comes second knows less about it.
    pub(crate) fn unexpected(&mut self, expected: &'static str) {
        let range = self.range();
        if self.errors.last().is_some_and(|it| it.range == range) {
            return;
        }
        // In a path or a version the sign touches what is before it.
        if matches!(self.text(0), "/" | "%" | "*")
            && matches!(self.last_kind(), NUMBER | IDENT | R_PAREN | R_BRACK)
            && (self.last_kind() == NUMBER || !self.touches(0))
            && matches!(self.nth(1), NUMBER | IDENT | L_PAREN)
        {
            let found = self.text(0).to_owned();
            self.error(SyntaxErrorKind::NoArithmetic { found });
            return;
        }
        if self.text(0) == "=" && self.touches(0) {
            let instead = match self.last_text() {
                "==" => "==",
                "!=" => "!=",
                _ => "",
            };
            if !instead.is_empty() {
                let found = format!("{instead}=");
                let range = self.last_range().cover(range);
                self.error_at(SyntaxErrorKind::WrongOperator { found, instead }, range);
                return;
            }
        }
        let found = self.describe();
        let instead = match self.text(0) {
            "=" if !self.at_statement_start() && matches!(self.last_text(), "+" | "-") => Some("x = x + …"),
            "=" => Some("=="),
            "&&" => Some("and"),
            "||" => Some("or"),
            "!" => Some("not"),
            "//" => Some("#"),
            "'" => Some("\""),
            text if text.starts_with(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) => Some("\""),
            _ => None,
        };
        self.error(match (self.current(), instead) {
            (L_BRACE, _) => SyntaxErrorKind::BraceBlock,
            (_, Some(instead)) => SyntaxErrorKind::WrongOperator {
                found: self.text(0).to_owned(),
                instead,
            },
            _ => SyntaxErrorKind::UnexpectedToken { found, expected },
        });
    }

    /// The current token in words.
    pub(crate) fn describe(&self) -> String {
        match self.toks.get(self.pos).map_or(EOF, |it| it.kind) {
            EOF => "end of file".to_owned(),
            NEWLINE => "end of line".to_owned(),
            INDENT => "indentation".to_owned(),
            DEDENT => "end of block".to_owned(),
            STRING | TRIPLE_STRING => "string".to_owned(),
            DISCRETION => "discretion".to_owned(),
            NUMBER => format!("number `{}`", self.text(0)),
            _ => match self.text(0).chars().next() {
                // It would not be seen.
                Some(c) if c.is_control() => format!("character U+{:04X}", u32::from(c)),
                _ => format!("`{}`", self.text(0)),
            },
        }
    }

    pub(crate) fn mute(&mut self) {
        self.muted += 1;
    }

    pub(crate) fn unmute(&mut self) {
        self.muted = self.muted.saturating_sub(1);
    }

    // ---- limits ------------------------------------------------------------------------------------

    /// One level deeper; `false` when that is too deep, and then the caller must not call [`Parser::leave`].
    pub(crate) fn enter(&mut self) -> bool {
        if self.depth >= DEPTH_LIMIT {
            if !self.too_deep {
                self.too_deep = true;
                self.error(SyntaxErrorKind::TooDeep);
            }
            return false;
        }
        self.depth += 1;
        true
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// A new top-level statement.
    pub(crate) fn reset_depth_error(&mut self) {
        self.too_deep = false;
    }

    // ---- brackets ----------------------------------------------------------------------------------

    pub(crate) fn open_bracket(&mut self) -> SyntaxKind {
        let kind = self.current();
        self.brackets.push(kind, 0);
        self.bump();
        kind
    }

    pub(crate) fn in_brackets(&self) -> bool {
        !self.brackets.is_empty()
    }

    /// Ends the innermost bracket: takes its closer, or reports what stands there.
    pub(crate) fn close_bracket(&mut self) {
        let Some(open) = self.brackets.pop() else { return };
        let here = self.current();
        if closes(open, here) {
            self.bump();
        } else if matches!(here, R_PAREN | R_BRACK | R_BRACE) && !self.brackets.fits(here) {
            // It fits no open bracket: it closes this one, wrongly.
            self.unexpected(match open {
                L_PAREN => "`)`",
                L_BRACK => "`]`",
                _ => "`}`",
            });
            let m = self.start();
            self.bump();
            m.complete(self, ERROR);
        }
        // At a line's end the layout has reported the unclosed bracket.
    }

    /// Whether the current token is a closer that ends the innermost bracket, rightly or wrongly.
    pub(crate) fn at_closer(&self) -> bool {
        matches!(self.current(), R_PAREN | R_BRACK | R_BRACE)
    }

    /// Skips one token, or a whole bracketed group, inside the current node.
    pub(crate) fn skip_balanced(&mut self) {
        let mut open = Brackets::default();
        loop {
            let kind = self.current();
            let closes_nothing = matches!(kind, R_PAREN | R_BRACK | R_BRACE) && !open.close(kind);
            if closes_nothing || is_line_end(kind) {
                return;
            }
            if matches!(kind, L_PAREN | L_BRACK | L_BRACE) {
                open.push(kind, 0);
            }
            self.bump();
            if open.is_empty() {
                return;
            }
        }
    }
}

/// The added tokens.
fn is_virtual(kind: SyntaxKind) -> bool {
    matches!(kind, NEWLINE | INDENT | DEDENT | EOF)
}

/// What ends a logical line.
pub(crate) fn is_line_end(kind: SyntaxKind) -> bool {
    is_virtual(kind)
}

impl Marker {
    pub(crate) fn complete(self, p: &mut Parser<'_>, kind: SyntaxKind) -> Completed {
        if let Some(Event::Start { kind: slot, .. }) = p.events.get_mut(self.at) {
            *slot = kind;
        }
        p.events.push(Event::Finish);
        Completed { at: self.at, kind }
    }

    /// The node is not needed after all; its children go to the parent.
    pub(crate) fn abandon(self, p: &mut Parser<'_>) {
        if self.at + 1 == p.events.len() {
            p.events.pop();
        } else if let Some(event) = p.events.get_mut(self.at) {
            *event = Event::Nothing;
        }
    }
}

impl Completed {
    /// Begins a node that becomes this node's parent.
    pub(crate) fn precede(self, p: &mut Parser<'_>) -> Marker {
        let marker = p.start();
        let distance = u32::try_from(marker.at - self.at).unwrap_or(0);
        if let Some(Event::Start { parent, .. } | Event::Leaf { parent, .. }) = p.events.get_mut(self.at) {
            *parent = distance;
        }
        marker
    }
}
