//! Indentation to tokens: adds INDENT, DEDENT and NEWLINE to the parser's input and takes trivia away.
//!
//! A line is compared with the stack of open columns. Blank and comment lines don't count. Inside brackets nothing
//! is added; a bracket that is never closed is given up at a line that begins a statement no deeper than the line the
//! bracket opened on. A line that begins with `|` or `->` continues the statement above.
//!
//! Each added token carries an index into the raw tokens: trivia before it goes into the tree before the added token
//! takes effect. So comments at the end of a block stay in it when they are as deep as the block.

use std::ops::Range;

use rowan::TextRange;

use crate::{
    SyntaxError, SyntaxErrorKind,
    SyntaxKind::{self, *},
    lexer::{Lexed, Looked, range},
    scan::Cut,
    text::indent_width,
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
    /// Brackets whose end was sought further on, as [`Lexed::looked`].
    pub(crate) looked: Vec<(u32, Looked)>,
}

/// Lays out what was lexed. What was in `out` goes.
pub(crate) fn layout(text: &str, lexed: &Lexed, out: &mut Layout) {
    out.toks.clear();
    out.errors.clear();
    out.cuts.clear();
    out.looked.clear();
    let mut state = State {
        text,
        lexed,
        out,
        levels: vec![Level {
            col: 0,
            from: 0,
            first: None,
        }],
        unclosed: None,
        brackets: Brackets::default(),
        comments: Vec::new(),
        line_col: 0,
        line_end: 0,
    };
    state.out.toks.reserve(lexed.len() / 2 + lexed.len() / 4 + 8);
    state.run();
}

/// How far the end of a bracket is sought whose content looks like statements. A file full of unclosed brackets stays
/// linear, and nobody writes calls of a thousand lines with statements in them.
const TOKENS_AHEAD: usize = 4096;

struct State<'a> {
    text: &'a str,
    lexed: &'a Lexed,
    out: &'a mut Layout,
    /// Open blocks; the first is the file itself, at column 0, and stays.
    levels: Vec<Level>,
    /// Open brackets and their raw indexes.
    brackets: Brackets,
    /// Comment-only lines since the last token: raw index and column.
    comments: Vec<(usize, u32)>,
    /// Column of the line the outermost open bracket is on.
    line_col: u32,
    /// Raw index behind the last token and a comment on its line.
    line_end: usize,
    /// Raw index of an outermost bracket, and whether it is never closed.
    unclosed: Option<(usize, bool)>,
}

/// The column of an open block.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Where its first line begins.
    col: u32,
    /// The shallowest column that counts as its own: smaller than `col` after a line that was not quite dedented, so that a
    /// block whose first line slipped is reported once and not with every line.
    from: u32,
    /// Where the first line's indentation stands, as long as that line is the only one of the block.
    first: Option<TextRange>,
}

impl State<'_> {
    fn run(&mut self) {
        let mut at_line_start = true;
        let mut col = 0;
        let mut indent = range(0, 0);
        for (index, kind) in self.lexed.kinds().iter().copied().enumerate() {
            match kind {
                // The most frequent token of all.
                WHITESPACE if !at_line_start && self.is_space(index) => {}
                WHITESPACE => {
                    if let Some((c, r)) = self.column(index) {
                        (at_line_start, col, indent) = (true, c, r);
                    } else if at_line_start && self.lexed.end(index) > self.lexed.start(index) {
                        // Blanks in several tokens (invisible characters) add up.
                        let blank = self.lexed.range(index);
                        col += indent_width(self.lexed.text(self.text, index));
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

    fn is_space(&self, index: usize) -> bool {
        self.text.as_bytes().get(self.lexed.span(index)) == Some(b" ")
    }

    /// Column of what follows a whitespace token with a line end in it, and the range of the indentation.
    fn column(&self, index: usize) -> Option<(u32, TextRange)> {
        let Range { start: from, end: to } = self.lexed.span(index);
        let blank = self.text.as_bytes().get(from..to)?;
        let start = from + blank.iter().rposition(|it| matches!(*it, b'\n' | b'\r'))? + 1;
        Some((indent_width(&self.text[start..to]), range(start, to)))
    }

    fn push(&mut self, kind: SyntaxKind, raw: usize) {
        let raw = u32::try_from(raw).unwrap_or(u32::MAX);
        self.out.toks.push(Tok { kind, kw: kind, raw });
    }

    fn token(&mut self, index: usize, kind: SyntaxKind) {
        self.line_end = index + 1;
        let kw = match kind {
            IDENT => (self.text.as_bytes().get(self.lexed.span(index)))
                .and_then(SyntaxKind::from_keyword_bytes)
                .unwrap_or(IDENT),
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
            if !self.ends_brackets(index, col, innermost == L_BRACE) {
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
            let top = self.levels.last().copied().unwrap_or(Level {
                col: 0,
                from: 0,
                first: None,
            });
            let mut col = col;
            if col == top.col + 1 && !first && self.slipped(index) {
                self.out.errors.push(SyntaxError {
                    kind: SyntaxErrorKind::UnexpectedIndent,
                    range: indent,
                });
                col = top.col;
            }
            // A block's last line ends with DEDENT; NEWLINE then ends the statement the block belongs to.
            if col < top.from {
                let col = self.nearest_level(index, col, indent);
                self.dedent(col);
            }
            if col <= top.col
                && let Some(level) = self.levels.last_mut()
            {
                level.first = None;
            }
            if !first {
                self.push(NEWLINE, self.line_end);
            }
            if col > top.col {
                self.push(INDENT, self.line_end);
                self.levels.push(Level {
                    col,
                    from: col,
                    first: Some(indent),
                });
            }
            if indent.is_empty() {
                self.cut(index, kind, col, first);
            }
        }
        self.line_col = col;
        self.comments.clear();
    }

    /// Whether a line one column deeper than the one above can't be in a block that the line above opens: rather a blank is
    /// too many.
    fn slipped(&self, index: usize) -> bool {
        let opens = self
            .out
            .toks
            .last()
            .is_none_or(|it| matches!(it.kind, COLON | EQ | BLOCK_TEXT));
        let key = matches!(self.lexed.kind(index), IDENT | STRING) && self.next_on_line(index) == COLON;
        !(opens || key)
    }

    /// The column of the open block a dedented line belongs to.
    fn nearest_level(&mut self, index: usize, col: u32, indent: TextRange) -> u32 {
        let inner = self.levels.partition_point(|level| level.col < col);
        let Some(above) = self.levels.get_mut(inner) else {
            return col;
        };
        if above.from <= col {
            return above.col;
        }
        let mut above = *above;
        let below = self.levels.get(inner.wrapping_sub(1)).map_or(0, |it| it.col);
        let (near, far) = (above.from - col, col - below);
        // Half-way a property belongs to the properties above. A statement is more likely one that got a blank too many.
        let deeper = near < far || near == far && self.is_property(index);
        // Of two lines that differ the one an odd number of blanks deep slipped.
        let slipped = match above.first {
            Some(first) if deeper && (above.col - below) % 2 == 1 && far % 2 == 0 => Some(first),
            _ => None,
        };
        self.out.errors.push(SyntaxError {
            kind: SyntaxErrorKind::BadDedent {
                first: slipped.is_some(),
            },
            range: slipped.unwrap_or(indent),
        });
        if !deeper {
            return below;
        }
        above.from = col;
        self.levels[inner] = above;
        above.col
    }

    /// Closes all blocks deeper than a column.
    fn dedent(&mut self, col: u32) {
        let mut taken = 0;
        while let Some(level) = self.levels.pop_if(|level| level.col > col && level.col > 0) {
            while self
                .comments
                .get(taken)
                .is_some_and(|(_, col)| *col >= level.from)
            {
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
        if kind == IDENT && continues_statement(self.lexed.text(self.text, index)) {
            return;
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

    /// Whether a line shows that the bracket it is in was never closed.
    fn ends_brackets(&mut self, index: usize, col: u32, in_braces: bool) -> bool {
        if col <= self.line_col {
            return self.begins_statement(index, in_braces)
                || (in_braces
                    && (self.is_property(index) || self.begins_statement(index, false))
                    && self.never_closed(index));
        }
        // The body of a construct whose first line holds the bracket; a string that isn't closed has taken its colon.
        let header = self.out.toks.last().is_some_and(|it| match it.kind {
            COLON => true,
            STRING => !crate::text::is_terminated(STRING, self.lexed.text(self.text, it.raw as usize)),
            _ => false,
        });
        header && self.begins_statement(index, false) && self.never_closed(index)
    }

    /// Whether the outermost open bracket is still open where a statement begins no deeper than its line.
    fn never_closed(&mut self, from: usize) -> bool {
        let outermost = self.brackets.first().map_or(0, |(_, index)| index);
        if let Some((known, unclosed)) = self.unclosed
            && known == outermost
        {
            return unclosed;
        }
        let mut open = self.brackets.clone();
        let mut unclosed = true;
        let mut decided = false;
        let mut line = None;
        let mut stopped = self.lexed.len();
        for index in from..self.lexed.len() {
            if index - from >= TOKENS_AHEAD {
                decided = true;
                break;
            }
            let kind = self.lexed.kind(index);
            match kind {
                WHITESPACE => {
                    if let Some((col, _)) = self.column(index) {
                        line = Some(col);
                    }
                    continue;
                }
                COMMENT | BOM => continue,
                L_PAREN | L_BRACK | L_BRACE => open.push(kind, index),
                R_PAREN | R_BRACK | R_BRACE => {
                    open.close(kind);
                }
                _ => {}
            }
            let Some((innermost, _)) = open.last() else {
                unclosed = false;
                stopped = index;
                break;
            };
            let first = line.take();
            if first.is_some_and(|col| col <= self.line_col)
                && self.begins_statement(index, innermost == L_BRACE)
            {
                decided = true;
                stopped = index;
                break;
            }
        }
        let looked = match unclosed && !decided {
            true => Looked::AtAll(0),
            // Whether a statement begins depends on what follows its first word.
            false => u32::try_from(self.lexed.end(stopped + 2)).map_or(Looked::AtAll(0), Looked::To),
        };
        let start = u32::try_from(self.lexed.start(outermost)).unwrap_or(u32::MAX);
        self.out.looked.push((start, looked));
        // Where the text isn't known to its end, neither is the answer; nothing behind the bracket is used then.
        let known = !unclosed || decided || self.lexed.start(self.lexed.len()) == self.text.len();
        self.unclosed = Some((outermost, unclosed && known));
        unclosed && known
    }

    /// Kind of the token behind another, blanks left out; EOF at the end of the line.
    fn next_on_line(&self, index: usize) -> SyntaxKind {
        match self.lexed.kind(index + 1) {
            WHITESPACE if self.column(index + 1).is_some() => EOF,
            WHITESPACE => self.lexed.kind(index + 2),
            kind => kind,
        }
    }

    /// Whether a line begins with a property everybody knows.
    fn is_property(&self, index: usize) -> bool {
        self.lexed.kind(index) == IDENT
            && self.next_on_line(index) == COLON
            && prose_model::vocabulary::property(self.lexed.text(self.text, index)).is_some()
    }

    /// Whether a line inside brackets is so clearly a statement, or a property, that the bracket must be unclosed.
    fn begins_statement(&self, index: usize, in_braces: bool) -> bool {
        if self.lexed.kind(index) != IDENT {
            return false;
        }
        let next = self.next_on_line(index);
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
#[derive(Debug, Default, Clone)]
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

/// Whether a line that begins with this word belongs to the statement above, so that the file is not cut there.
pub(crate) fn continues_statement(word: &str) -> bool {
    // `as err:` is a `catch` without its word; the last ones are what other languages call the same clauses.
    matches!(
        word,
        "elif" | "else" | "catch" | "finally" | "option" | "as" | "elseif" | "elsif" | "except" | "rescue"
    )
}
