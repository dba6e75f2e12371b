//! Indentation to tokens: adds INDENT, DEDENT and NEWLINE to the parser's input and takes trivia away.
//!
//! A line is compared with the stack of open columns. Blank and comment lines don't count. Inside brackets nothing
//! is added; a bracket that is never closed is given up at a line that begins a statement no deeper than the line the
//! bracket opened on. A line that begins with `|` or `->` continues the statement above.
//!
//! Each added token carries an index into the raw tokens: trivia before it goes into the tree before the added token
//! takes effect. So comments at the end of a block stay in it when they are as deep as the block.

use rowan::TextRange;

use crate::{
    SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    lexer::{Lexed, range},
    scan::Cut,
};

/// One token of the parser's input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tok {
    /// The kind; keywords are IDENT here.
    pub(crate) kind: SyntaxKind,
    /// The keyword an IDENT spells, else the same as `kind`.
    pub(crate) kw: SyntaxKind,
    /// Index of the raw token; for added ones, trivia up to here comes first.
    pub(crate) raw: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The parser's input, with EOF at the end.
    pub(crate) toks: Vec<Tok>,
    pub(crate) errors: Vec<SyntaxError>,
    /// Where the file may be cut, see [`crate::ChunkMap`].
    pub(crate) cuts: Vec<Cut>,
}

/// Lays out what was lexed. What was in `out` goes.
pub(crate) fn layout(text: &str, lexed: &Lexed, out: &mut Layout) {
    out.toks.clear();
    out.errors.clear();
    out.cuts.clear();
    let mut state = State {
        text,
        lexed,
        out,
        levels: vec![0],
        brackets: Brackets::default(),
        comments: Vec::new(),
        line_col: 0,
        line_end: 0,
    };
    state.out.toks.reserve(lexed.len() / 2 + lexed.len() / 4 + 8);
    state.run();
}

struct State<'a> {
    text: &'a str,
    lexed: &'a Lexed,
    out: &'a mut Layout,
    /// Columns of open blocks; the first is 0 and stays.
    levels: Vec<u32>,
    /// Open brackets and their raw indexes.
    brackets: Brackets,
    /// Comment-only lines since the last token: raw index and column.
    comments: Vec<(usize, u32)>,
    /// Column of the line the outermost open bracket is on.
    line_col: u32,
    /// Raw index behind the last token and a comment on its line.
    line_end: usize,
}

impl State<'_> {
    fn run(&mut self) {
        let mut at_line_start = true;
        let mut col = 0;
        let mut indent = range(0, 0);
        for index in 0..self.lexed.len() {
            match self.lexed.kind(index) {
                WHITESPACE => {
                    if let Some((c, r)) = self.column(index) {
                        (at_line_start, col, indent) = (true, c, r);
                    } else if at_line_start && self.lexed.end(index) > self.lexed.start(index) {
                        // Blanks in several tokens (invisible characters) add up.
                        let blank = self.lexed.range(index);
                        col += width(self.lexed.text(self.text, index));
                        indent = TextRange::new(indent.start().min(blank.start()), blank.end());
                    }
                }
                BOM => {}
                COMMENT if at_line_start => self.comments.push((index, col)),
                COMMENT => self.line_end = index + 1,
                kind => {
                    if at_line_start {
                        self.line(index, kind, col, indent);
                    }
                    at_line_start = false;
                    self.token(index, kind);
                }
            }
        }
        self.end();
    }

    /// Column of what follows a whitespace token with a line end in it, and the range of the indentation.
    fn column(&self, index: usize) -> Option<(u32, TextRange)> {
        let (from, to) = (self.lexed.start(index), self.lexed.end(index));
        let blank = &self.text.as_bytes()[from..to];
        let start = from + blank.iter().rposition(|it| matches!(*it, b'\n' | b'\r'))? + 1;
        Some((width(&self.text[start..to]), range(start, to)))
    }

    fn push(&mut self, kind: SyntaxKind, raw: usize) {
        let raw = u32::try_from(raw).unwrap_or(u32::MAX);
        self.out.toks.push(Tok { kind, kw: kind, raw });
    }

    fn token(&mut self, index: usize, kind: SyntaxKind) {
        self.line_end = index + 1;
        let kw = match kind {
            IDENT => SyntaxKind::from_keyword(self.lexed.text(self.text, index)).unwrap_or(IDENT),
            _ => kind,
        };
        self.out.toks.push(Tok {
            kind,
            kw,
            raw: u32::try_from(index).unwrap_or(u32::MAX),
        });
        match kind {
            L_PAREN | L_BRACK | L_BRACE => self.brackets.push(kind, index),
            R_PAREN | R_BRACK | R_BRACE => {
                self.brackets.close(kind);
            }
            _ => {}
        }
    }

    /// First token of a line.
    fn line(&mut self, index: usize, kind: SyntaxKind, col: u32, indent: TextRange) {
        if let Some((innermost, _)) = self.brackets.last() {
            if !(col <= self.line_col && self.begins_statement(index, innermost == L_BRACE)) {
                self.comments.clear();
                return;
            }
            self.unclosed();
        }
        self.check_tabs(indent);
        let first = self.out.toks.is_empty();
        let continues = matches!(kind, PIPE | ARROW) && !first;
        if continues {
            // The line belongs to the statement above, unless it closes blocks on its way.
            self.dedent(col);
        } else {
            let top = self.levels.last().copied().unwrap_or(0);
            // A block's last line ends with DEDENT; NEWLINE then ends the statement the block belongs to.
            if col < top {
                let col = self.nearest_level(col, indent);
                self.dedent(col);
            }
            if !first {
                self.push(NEWLINE, self.line_end);
            }
            if col > top {
                self.push(INDENT, self.line_end);
                self.levels.push(col);
            }
            self.cut(index, kind, col, first);
        }
        self.line_col = col;
        self.comments.clear();
    }

    /// The open column a dedented line belongs to.
    fn nearest_level(&mut self, col: u32, indent: TextRange) -> u32 {
        let inner = self.levels.partition_point(|level| *level < col);
        let above = self.levels.get(inner).copied().unwrap_or(col);
        if above == col {
            return col;
        }
        self.out.errors.push(SyntaxError {
            kind: SyntaxErrorKind::BadDedent,
            range: indent,
        });
        let below = self.levels.get(inner.wrapping_sub(1)).copied().unwrap_or(0);
        if above - col <= col - below { above } else { below }
    }

    /// Closes all blocks deeper than a column.
    fn dedent(&mut self, col: u32) {
        let mut taken = 0;
        while let Some(level) = self.levels.pop_if(|level| *level > col && *level > 0) {
            while self.comments.get(taken).is_some_and(|(_, col)| *col >= level) {
                taken += 1;
            }
            let raw = match taken {
                0 => self.line_end,
                n => self.comments[n - 1].0 + 1,
            };
            self.push(DEDENT, raw);
        }
    }

    /// Notes a place where the file can be cut.
    fn cut(&mut self, index: usize, kind: SyntaxKind, col: u32, first: bool) {
        if first || col != 0 || matches!(kind, R_PAREN | R_BRACK | R_BRACE) {
            return;
        }
        if kind == IDENT {
            let word = self.lexed.text(self.text, index);
            if matches!(word, "elif" | "else" | "catch" | "finally" | "option") {
                return;
            }
        }
        let comment = self.comments.iter().find(|(_, col)| *col == 0);
        self.out.cuts.push(Cut {
            raw: comment.map_or(index, |(raw, _)| *raw),
            tok: self.out.toks.len(),
        });
    }

    fn check_tabs(&mut self, indent: TextRange) {
        let blank = &self.text[indent];
        if let Some(at) = memchr::memchr(b'\t', blank.as_bytes()) {
            let from = usize::from(indent.start()) + at;
            let len = blank[at..].bytes().take_while(|it| *it == b'\t').count();
            self.out.errors.push(SyntaxError {
                kind: SyntaxErrorKind::TabIndent,
                range: range(from, from + len),
            });
        }
    }

    fn unclosed(&mut self) {
        if let Some((_, outermost)) = self.brackets.first() {
            let open = self
                .lexed
                .text(self.text, outermost)
                .chars()
                .next()
                .unwrap_or('(');
            let range = self.lexed.range(outermost);
            self.out.errors.push(SyntaxError {
                kind: SyntaxErrorKind::UnclosedBracket { open },
                range,
            });
        }
        self.brackets.clear();
    }

    /// Whether a line inside brackets is so clearly a statement, or a property, that the bracket must be unclosed.
    fn begins_statement(&self, index: usize, in_braces: bool) -> bool {
        if self.lexed.kind(index) != IDENT {
            return false;
        }
        let mut next = index + 1;
        if self.lexed.kind(next) == WHITESPACE {
            next += if self.column(next).is_some() {
                self.lexed.len()
            } else {
                1
            };
        }
        let next = self.lexed.kind(next);
        let word = self.lexed.text(self.text, index);
        if next == EQ {
            return true;
        }
        if next == COLON && in_braces {
            return false;
        }
        match SyntaxKind::from_keyword(word) {
            Some(LET_KW | CONST_KW) => matches!(next, IDENT | L_BRACE),
            Some(AGENT_KW | BLOCK_KW | INPUT_KW | FOR_KW) => next == IDENT,
            Some(OUTPUT_KW) => matches!(next, IDENT | STRING | L_BRACE | L_BRACK),
            Some(USE_KW | IMPORT_KW | OPTION_KW) => next == STRING,
            Some(SESSION_KW) => matches!(next, STRING | TRIPLE_STRING | COLON | IDENT),
            Some(RESUME_KW | TRY_KW | ELSE_KW | FINALLY_KW) => next == COLON,
            Some(DO_KW | PARALLEL_KW | LOOP_KW | CATCH_KW) => matches!(next, COLON | IDENT | L_PAREN),
            Some(REPEAT_KW) => matches!(next, NUMBER | IDENT),
            Some(IF_KW | ELIF_KW | CHOICE_KW) => matches!(next, DISCRETION | IDENT),
            Some(THROW_KW) => matches!(next, STRING | EOF),
            _ => next == COLON && prose_model::vocabulary::property(word).is_some(),
        }
    }

    fn end(&mut self) {
        self.unclosed();
        self.dedent(0);
        if !self.out.toks.is_empty() {
            self.push(NEWLINE, self.line_end);
        }
        self.push(EOF, self.lexed.len());
    }
}

/// Open brackets, each with an index of the caller's.
#[derive(Debug, Default)]
pub(crate) struct Brackets {
    open: Vec<(SyntaxKind, usize)>,
    /// How many of each kind are open, so that a closer that fits none is known without a search.
    counts: [usize; 3],
}

impl Brackets {
    pub(crate) fn push(&mut self, open: SyntaxKind, index: usize) {
        self.open.push((open, index));
        self.counts[Self::slot(open)] += 1;
    }

    /// A closer closes its opener and all within it; one that fits none closes the innermost. `false` if nothing is open.
    pub(crate) fn close(&mut self, closer: SyntaxKind) -> bool {
        let fits = self.fits(closer);
        while let Some((open, _)) = self.open.pop() {
            self.counts[Self::slot(open)] -= 1;
            if !fits || closes(open, closer) {
                return true;
            }
        }
        false
    }

    /// Whether a closer fits any open bracket.
    pub(crate) fn fits(&self, closer: SyntaxKind) -> bool {
        self.counts[Self::slot(closer)] > 0
    }

    pub(crate) fn pop(&mut self) -> Option<SyntaxKind> {
        let (open, _) = self.open.pop()?;
        self.counts[Self::slot(open)] -= 1;
        Some(open)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn first(&self) -> Option<(SyntaxKind, usize)> {
        self.open.first().copied()
    }

    fn last(&self) -> Option<(SyntaxKind, usize)> {
        self.open.last().copied()
    }

    fn clear(&mut self) {
        *self = Brackets::default();
    }

    fn slot(bracket: SyntaxKind) -> usize {
        match bracket {
            L_PAREN | R_PAREN => 0,
            L_BRACK | R_BRACK => 1,
            _ => 2,
        }
    }
}

/// Whether two brackets belong together.
pub(crate) fn closes(open: SyntaxKind, close: SyntaxKind) -> bool {
    matches!(
        (open, close),
        (L_PAREN, R_PAREN) | (L_BRACK, R_BRACK) | (L_BRACE, R_BRACE)
    )
}

/// Width of an indentation. A tab goes to the next multiple of two.
fn width(blank: &str) -> u32 {
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
