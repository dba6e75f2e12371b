//! Where the cursor is, from the tokens alone.
//!
//! A program is incomplete exactly where someone completes, and there the tree is what recovery made of it. So this
//! looks at tokens: the logical line of the cursor, the lines that enclose it by indentation and its siblings.

mod line;

use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize, text};

/// A token that is neither blank nor comment.
#[derive(Debug, Clone)]
pub(crate) struct Tok {
    pub(crate) kind: SyntaxKind,
    pub(crate) range: TextRange,
    /// Column of its first character; a tab goes to the next multiple of 2.
    column: u32,
    /// Whether it is the first on its physical line.
    first: bool,
}

/// A logical line: what stands between two line ends outside brackets.
#[derive(Debug, Clone, Copy)]
struct Line {
    column: u32,
    start: usize,
    end: usize,
}

/// What the lines under a header are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// Statements.
    Statements,
    /// Branches of `parallel:`; statements, too.
    Branches,
    /// Options of `choice`.
    Options,
    /// Properties.
    Properties(Owner),
    /// Keys of `permissions:`.
    Permissions,
    /// What is indented under another property.
    Nested(String),
}

/// What has properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Agent,
    Session,
    Resume,
}

/// What has modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modified {
    Parallel,
    ParallelFor,
    Loop,
    Block,
    Session,
}

/// What can stand at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Text for an agent, a comment, a number, a name being declared.
    Nothing,
    /// The start of a line among statements.
    Statement {
        /// Directly in the file.
        top_level: bool,
        /// Among the branches of `parallel:`.
        branches: bool,
        /// Keywords that continue the construct above.
        continuations: Vec<&'static str>,
    },
    /// `option`.
    Options,
    /// A property's key, with the keys that are there already.
    Properties(Owner, Vec<String>),
    /// A key of `permissions:`.
    Permissions(Vec<String>),
    /// The value of a key in `permissions:`.
    PermissionValue,
    /// The value of a property.
    PropertyValue(String),
    /// The value of a property, inside its quotes.
    QuotedValue(String),
    /// A value of `context:`, inside or outside brackets.
    Context,
    /// An agent.
    Agents,
    /// A block.
    Blocks,
    /// A value; `heads`: also sessions and constructs that have a value.
    Expression { heads: bool },
    /// Only these keywords.
    Keywords(&'static [&'static str]),
    /// A modifier, with the names that are there already.
    Modifiers(Modified, Vec<String>),
    /// The value of a modifier; `quoted`: inside its quotes.
    ModifierValue {
        of: Modified,
        name: Option<String>,
        quoted: bool,
    },
    /// An argument of this block or program, with the names that are there already.
    Arguments(String, Vec<String>),
    /// A name inside `{…}` of a text or in a list of patterns.
    Variables,
    /// A key of what this path leads to; the path is a name and keys.
    Member { path: Vec<String>, at: TextSize },
    /// A key in `let { … }`; the offset is that of the line's start.
    PatternKey(TextRange),
}

/// The cursor: what can stand there and the word that is there.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) place: Place,
    /// The word at the cursor; empty when there is none.
    pub(crate) word: TextRange,
    /// The first character behind the word on its line: a `:` or `(` that is there needn't be brought.
    pub(crate) followed_by: Option<char>,
    /// Where names are looked up: at the cursor, or directly behind the token before it, since blanks at the end of a
    /// line belong to no construct.
    pub(crate) lookup: TextSize,
    /// The line at the cursor and those around it: what they declare has no value yet, save what constructs declare for
    /// their bodies.
    pub(crate) unfinished: Vec<TextRange>,
}

/// The tokens of a tree whose first byte is at `base` in the file; appends to `out`.
pub(crate) fn collect_tokens(tree: &SyntaxNode, base: TextSize, out: &mut Vec<Tok>) {
    let mut column = 0;
    let mut first = true;
    let mut token = tree.first_token();
    while let Some(tok) = token {
        let text = tok.text();
        if !tok.kind().is_trivia() && !text.is_empty() {
            out.push(Tok {
                kind: tok.kind(),
                range: tok.text_range() + base,
                column,
                first,
            });
            first = false;
        }
        column = column_after(text, column, tok.kind() == SyntaxKind::WHITESPACE, &mut first);
        token = tok.next_token();
    }
}

fn column_after(text: &str, mut column: u32, blank: bool, first: &mut bool) -> u32 {
    for ch in text.chars() {
        match ch {
            '\n' | '\r' => {
                column = 0;
                *first = blank;
            }
            '\t' => column = (column / 2 + 1) * 2,
            '\u{feff}' => {}
            _ => column += 1,
        }
    }
    column
}

impl Context {
    /// Finds the place of `offset`, which is within `text` and on a character boundary.
    pub(crate) fn new(text: &str, toks: &[Tok], offset: TextSize) -> Context {
        Finder {
            text,
            toks,
            lines: lines(text, toks),
        }
        .context(offset)
    }
}

struct Finder<'a> {
    text: &'a str,
    toks: &'a [Tok],
    lines: Vec<Line>,
}

/// Cuts the tokens into logical lines. A bracket that was never closed ends before a line that is not deeper than its
/// own and looks like a statement or a property.
fn lines(text: &str, toks: &[Tok]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut depth = 0usize;
    for (i, tok) in toks.iter().enumerate() {
        let starts = match lines.last() {
            None => true,
            Some(line) => {
                tok.first && (depth == 0 || (tok.column <= line.column && looks_like_start(text, toks, i)))
            }
        };
        if starts {
            depth = 0;
            lines.push(Line {
                column: tok.column,
                start: i,
                end: i,
            });
        }
        match tok.kind {
            SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE => depth += 1,
            SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE => {
                depth = depth.saturating_sub(1)
            }
            _ => {}
        }
        if let Some(line) = lines.last_mut() {
            line.end = i + 1;
        }
    }
    lines
}

fn looks_like_start(text: &str, toks: &[Tok], i: usize) -> bool {
    let word = &text[toks[i].range];
    let next = toks.get(i + 1).map(|tok| tok.kind);
    match word {
        "agent" | "block" | "let" | "const" | "output" | "input" | "use" => next.is_some_and(|kind| {
            is_word_kind(kind) || matches!(kind, SyntaxKind::STRING | SyntaxKind::L_BRACE)
        }),
        "session" | "resume" | "do" | "parallel" | "repeat" | "for" | "loop" | "if" | "elif" | "else"
        | "try" | "catch" | "finally" | "choice" | "option" | "throw" => !matches!(
            next,
            Some(SyntaxKind::COMMA | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE | SyntaxKind::R_PAREN)
        ),
        _ => is_word(text, &toks[i]) && matches!(next, Some(SyntaxKind::COLON | SyntaxKind::EQ)),
    }
}

/// A word: names, keywords.
fn is_word_kind(kind: SyntaxKind) -> bool {
    kind == SyntaxKind::IDENT || kind.is_keyword()
}

fn is_word(text: &str, tok: &Tok) -> bool {
    is_word_kind(tok.kind)
        || (tok.kind == SyntaxKind::UNKNOWN
            && text[tok.range]
                .chars()
                .all(|ch| ch.is_alphanumeric() || ch == '_'))
}

fn is_text_kind(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::STRING | SyntaxKind::TRIPLE_STRING | SyntaxKind::DISCRETION | SyntaxKind::BLOCK_TEXT
    )
}

/// Words that a session or another construct follows as a value.
fn starts_value(kind: SyntaxKind, word: &str) -> bool {
    matches!(kind, SyntaxKind::EQ | SyntaxKind::ARROW | SyntaxKind::COLON)
        || matches!(word, "output" | "return")
}

impl Finder<'_> {
    fn word(&self, i: usize) -> &str {
        self.toks.get(i).map_or("", |tok| &self.text[tok.range])
    }

    fn kind(&self, i: usize) -> Option<SyntaxKind> {
        self.toks.get(i).map(|tok| tok.kind)
    }

    fn context(&self, offset: TextSize) -> Context {
        let empty = TextRange::empty(offset);
        // Inside a text: between its delimiters, or at the end of one that has no closing ones.
        if let Some((i, tok)) = self.toks.iter().enumerate().find(|(_, tok)| {
            is_text_kind(tok.kind)
                && tok.range.start() < offset
                && (offset < tok.range.end()
                    || (offset == tok.range.end() && !text::is_terminated(tok.kind, &self.text[tok.range])))
        }) {
            return self.inside_text(i, tok, offset);
        }
        // The word at the cursor, and how many tokens are before it.
        let at = self.toks.partition_point(|tok| tok.range.end() < offset);
        let (word, before) = match self.toks.get(at) {
            Some(tok) if is_word(self.text, tok) && tok.range.start() <= offset => (tok.range, at),
            Some(tok) if tok.range.end() == offset => match self.toks.get(at + 1) {
                Some(next) if next.range.start() == offset && is_word(self.text, next) => {
                    (next.range, at + 1)
                }
                _ => (empty, at + 1),
            },
            _ => (empty, at),
        };
        // At the very start of a word nothing of it was typed: something is inserted before it.
        let word = if word.start() == offset { empty } else { word };
        let after = self.text[usize::from(word.end())..].trim_start_matches([' ', '\t']);
        let followed_by = after.chars().next().filter(|ch| !matches!(ch, '\n' | '\r'));

        // A number or a closed text directly before the cursor is no place for a name.
        if word.is_empty() && before > 0 {
            let tok = &self.toks[before - 1];
            let touches = tok.range.end() == offset;
            if touches
                && (is_text_kind(tok.kind) || matches!(tok.kind, SyntaxKind::NUMBER | SyntaxKind::DURATION))
            {
                return Context {
                    place: Place::Nothing,
                    word,
                    followed_by,
                    lookup: offset,
                    unfinished: Vec::new(),
                };
            }
        }

        let cursor_line = self.physical_line_start(word.start());
        let column = self.column_of(word.start());
        // The logical line: the last one that starts before the cursor, if the cursor is on its last physical line, in
        // a bracket of it, or directly behind its tokens.
        let line_index = self.lines.partition_point(|line| line.start < before);
        let line = line_index.checked_sub(1).map(|i| self.lines[i]);
        let line_before = line.filter(|line| {
            let last = &self.toks[before - 1];
            let same_physical = last.range.end() > cursor_line;
            same_physical
                || self
                    .open_brackets(line.start, before)
                    .last()
                    .is_some_and(|&open| {
                        // In a bracket that was never closed, a cursor that isn't deeper than its line left it.
                        column > line.column || self.closes_after(open, before)
                    })
        });
        let place = match line_before {
            Some(line) => self.in_line(line, before, line_index - 1, (!word.is_empty()).then_some(before)),
            None => self.at_line_start(column, line_index, (!word.is_empty()).then_some(before)),
        };
        let unfinished = match line_before {
            Some(line) => self.unfinished(line.column, line_index - 1, Some(line)),
            None => self.unfinished(column, line_index, None),
        };
        let lookup = match line_before {
            Some(_) if word.is_empty() => self.toks[before - 1].range.end(),
            _ => word.start(),
        };
        Context {
            place,
            word,
            followed_by,
            lookup,
            unfinished,
        }
    }

    fn physical_line_start(&self, offset: TextSize) -> TextSize {
        let before = &self.text[..usize::from(offset)];
        let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
        TextSize::new(start as u32)
    }

    fn column_of(&self, offset: TextSize) -> u32 {
        let start = self.physical_line_start(offset);
        column_after(
            &self.text[usize::from(start)..usize::from(offset)],
            0,
            true,
            &mut true,
        )
    }

    /// Indexes of the brackets of tokens `start..end` that are open at `end`.
    fn open_brackets(&self, start: usize, end: usize) -> Vec<usize> {
        let mut open = Vec::new();
        for i in start..end {
            match self.toks[i].kind {
                SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE => open.push(i),
                SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE => {
                    open.pop();
                }
                _ => {}
            }
        }
        open
    }

    /// Whether the bracket at `open` is closed by a token at or after `from` in the same logical line.
    fn closes_after(&self, open: usize, from: usize) -> bool {
        let line_end = self
            .lines
            .iter()
            .find(|line| line.start <= open && open < line.end)
            .map_or(open, |line| line.end);
        let mut depth = 0usize;
        for i in open..line_end {
            match self.toks[i].kind {
                SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE => depth += 1,
                SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return i >= from;
                    }
                }
                _ => {}
            }
        }
        false
    }

    // ---- texts ---------------------------------------------------------------------------------

    fn inside_text(&self, i: usize, tok: &Tok, offset: TextSize) -> Context {
        let token = &self.text[tok.range];
        let inner = usize::from(offset - tok.range.start());
        let line_index = self
            .lines
            .partition_point(|line| line.start <= i)
            .saturating_sub(1);
        let line = self.lines[line_index];
        let mut context = Context {
            place: Place::Nothing,
            word: TextRange::empty(offset),
            followed_by: None,
            // The columns of its lines say nothing about the program's blocks.
            lookup: tok.range.start(),
            unfinished: self.unfinished(line.column, line_index, Some(line)),
        };

        if let Some(start) = open_interpolation(token, inner) {
            if !self.is_plain_string(i, line) {
                let typed = &token[start..inner];
                let word_start = typed.rfind(|ch: char| !is_name_char(ch)).map_or(0, |at| at + 1);
                let rest = &token[inner..];
                let word_end = inner + rest.find(|ch: char| !is_name_char(ch)).unwrap_or(rest.len());
                let base = tok.range.start();
                context.word = TextRange::new(
                    base + TextSize::new((start + word_start) as u32),
                    base + TextSize::new(word_end as u32),
                );
                context.followed_by = token[word_end..].chars().next();
                let path = &typed[..word_start];
                context.place = if let Some(path) = path.strip_suffix('.') {
                    let path = path.split('.').map(str::to_owned).collect();
                    Place::Member {
                        path,
                        at: tok.range.start(),
                    }
                } else {
                    Place::Variables
                };
            }
            return context;
        }

        // The whole content of a string that is a value from a list: `parallel ("any")`, `model: "opus"`.
        if tok.kind == SyntaxKind::STRING {
            let end = if text::is_terminated(tok.kind, token) {
                token.len() - 1
            } else {
                token.trim_end().len().max(inner)
            };
            let place = match self.in_line(line, i, line_index, None) {
                Place::Modifiers(of, _) => Place::ModifierValue {
                    of,
                    name: None,
                    quoted: true,
                },
                Place::ModifierValue { of, name, .. } => Place::ModifierValue {
                    of,
                    name,
                    quoted: true,
                },
                Place::PropertyValue(key) => Place::QuotedValue(key),
                _ => return context,
            };
            context.place = place;
            context.word = TextRange::new(
                tok.range.start() + TextSize::new(1),
                tok.range.start() + TextSize::new(end as u32),
            );
            context.followed_by = Some('"');
        }
        context
    }

    /// Strings without interpolation: paths, skills, labels of options.
    fn is_plain_string(&self, i: usize, line: Line) -> bool {
        matches!(self.word(line.start), "use" | "import" | "option")
            || (self.word(line.start) == "skills" && self.kind(line.start + 1) == Some(SyntaxKind::COLON))
            || i > 0 && self.word(i - 1) == "as"
    }

    // ---- the start of a line -----------------------------------------------------------------------

    /// Lines that enclose a line of this column, innermost first: those above with smaller and smaller columns.
    fn enclosing(&self, column: u32, line_index: usize) -> impl Iterator<Item = (usize, Line)> + '_ {
        let mut limit = column;
        self.lines[..line_index]
            .iter()
            .copied()
            .enumerate()
            .rev()
            .filter(move |(_, line)| {
                let encloses = line.column < limit;
                if encloses {
                    limit = line.column;
                }
                encloses
            })
    }

    /// Lines at this column above and below `line_index` under the same header.
    fn siblings_above(&self, column: u32, line_index: usize) -> impl Iterator<Item = Line> + '_ {
        self.lines[..line_index]
            .iter()
            .rev()
            .take_while(move |line| line.column >= column)
            .filter(move |line| line.column == column)
            .copied()
    }

    fn siblings_below(&self, column: u32, line_index: usize) -> impl Iterator<Item = Line> + '_ {
        self.lines[line_index..]
            .iter()
            .take_while(move |line| line.column >= column)
            .filter(move |line| line.column == column)
            .copied()
    }

    /// `own` is the token that is being completed, if there is one.
    fn at_line_start(&self, column: u32, line_index: usize, own: Option<usize>) -> Place {
        let body = self
            .enclosing(column, line_index)
            .find_map(|(_, line)| self.body_of(line));
        let present = || -> Vec<String> {
            self.siblings_above(column, line_index)
                .chain(self.siblings_below(column, line_index))
                .filter(|line| {
                    self.kind(line.start + 1) == Some(SyntaxKind::COLON) && Some(line.start) != own
                })
                .map(|line| self.word(line.start).to_owned())
                .collect()
        };
        match body {
            Some(Body::Properties(owner)) => Place::Properties(owner, present()),
            Some(Body::Permissions) => Place::Permissions(present()),
            Some(Body::Nested(key)) if key == "context" => Place::Context,
            Some(Body::Nested(_)) => Place::Nothing,
            Some(Body::Options) => Place::Options,
            Some(body @ (Body::Statements | Body::Branches)) => {
                self.statement(column, line_index, false, body == Body::Branches)
            }
            None => self.statement(column, line_index, column == 0, false),
        }
    }

    fn statement(&self, column: u32, line_index: usize, top_level: bool, branches: bool) -> Place {
        let above: Vec<Line> = self.siblings_above(column, line_index).collect();
        let mut continuations = Vec::new();
        // Pipelines and arrows may go on below, but only the statement directly above counts.
        if let Some(&line) = above.first() {
            match self.head(line) {
                "if" | "elif" => continuations.extend(["elif", "else"]),
                "try" => continuations.extend(["catch", "finally"]),
                "catch" => continuations.push("finally"),
                _ => {}
            }
        }
        Place::Statement {
            top_level,
            branches,
            continuations,
        }
    }

    fn unfinished(&self, column: u32, line_index: usize, line: Option<Line>) -> Vec<TextRange> {
        let enclosing = self.enclosing(column, line_index).map(|(_, line)| line);
        line.into_iter()
            .chain(enclosing)
            .map(|line| self.toks[line.start].range.cover(self.toks[line.end - 1].range))
            .collect()
    }

    /// The word that says what a line is: past `let x =` and the like.
    fn head(&self, line: Line) -> &str {
        self.word(self.head_index(line))
    }

    fn head_index(&self, line: Line) -> usize {
        let first = self.word(line.start);
        let mut at = line.start;
        if matches!(first, "let" | "const" | "output") || self.kind(line.start + 1) == Some(SyntaxKind::EQ) {
            if let Some(eq) = (line.start..line.end).find(|&i| self.kind(i) == Some(SyntaxKind::EQ)) {
                at = eq + 1;
            } else if first == "output" {
                at = line.start + 1;
            }
        }
        at.min(line.end.saturating_sub(1))
    }

    /// What the lines indented under this one are; `None` when it opens nothing.
    fn body_of(&self, line: Line) -> Option<Body> {
        let (first, second) = (self.word(line.start), self.kind(line.start + 1));
        if self.kind(line.start) == Some(SyntaxKind::PIPE) {
            return Some(Body::Statements);
        }
        if self.kind(line.end - 1) == Some(SyntaxKind::COLON) && self.is_pipe_op(line) {
            return Some(Body::Statements);
        }
        let head_at = self.head_index(line);
        let head = self.word(head_at);
        match head {
            "agent" if second != Some(SyntaxKind::EQ) => return Some(Body::Properties(Owner::Agent)),
            "choice" => return Some(Body::Options),
            "parallel" if self.word(head_at + 1) != "for" => return Some(Body::Branches),
            "parallel" | "block" | "if" | "elif" | "else" | "for" | "repeat" | "loop" | "try" | "catch"
            | "finally" | "option" => {
                // The one-line form: `if **x**: session "y"` may have properties below.
                return Some(self.session_in(line).map_or(Body::Statements, Body::Properties));
            }
            "do" if self.kind(head_at + 1) == Some(SyntaxKind::COLON) => return Some(Body::Statements),
            _ => {}
        }
        if let Some(owner) = self.session_in(line) {
            return Some(Body::Properties(owner));
        }
        if second == Some(SyntaxKind::COLON) && line.end == line.start + 2 {
            return Some(if first == "permissions" {
                Body::Permissions
            } else {
                Body::Nested(first.to_owned())
            });
        }
        None
    }

    fn is_pipe_op(&self, line: Line) -> bool {
        (line.start..line.end)
            .rev()
            .take(8)
            .any(|i| self.kind(i) == Some(SyntaxKind::PIPE))
    }

    /// The last session of a line, if its properties may stand below.
    fn session_in(&self, line: Line) -> Option<Owner> {
        let mut depth = 0i32;
        for i in (line.start..line.end).rev() {
            match self.toks[i].kind {
                SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE => depth += 1,
                SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE => depth -= 1,
                _ if depth == 0 => {
                    let owner = match self.word(i) {
                        "session" => Owner::Session,
                        "resume" => Owner::Resume,
                        _ => continue,
                    };
                    let after = self.kind(i + 1).filter(|_| i + 1 < line.end);
                    let used = !matches!(after, Some(SyntaxKind::EQ | SyntaxKind::DOT));
                    if used && (i == line.start || starts_value(self.toks[i - 1].kind, self.word(i - 1))) {
                        return Some(owner);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

fn is_name_char(ch: char) -> bool {
    ch.is_alphanumeric() || ch == '_' || ch == '-'
}

/// Where the interpolation starts that is open at `offset` of a text: behind a `{` that is no escape and no `{{`, when
/// what was typed since could become a path.
fn open_interpolation(text: &str, offset: usize) -> Option<usize> {
    let typed = text.get(..offset)?;
    let brace = typed.rfind('{')?;
    let before = &typed[..brace];
    if before.ends_with(['{', '\\', '$']) {
        return None;
    }
    let path = &typed[brace + 1..];
    let mut start = true;
    for ch in path.chars() {
        match ch {
            '.' if !start => start = true,
            '[' | ']' if !start => {}
            ch if start && (ch.is_alphabetic() || ch == '_') => start = false,
            ch if !start && is_name_char(ch) => {}
            _ => return None,
        }
    }
    Some(brace + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolations_begin_where_a_path_can() {
        assert_eq!(open_interpolation("\"a {na", 6), Some(4));
        assert_eq!(open_interpolation("\"a {", 4), Some(4));
        assert_eq!(open_interpolation("\"a {x.", 6), Some(4));
        assert_eq!(open_interpolation("\"a {x} b", 8), None);
        assert_eq!(open_interpolation("\"a {x y", 7), None);
        assert_eq!(open_interpolation("\"a {{x", 6), None);
        assert_eq!(open_interpolation("\"a \\{x", 6), None);
        assert_eq!(open_interpolation("\"a ${x", 6), None);
        assert_eq!(open_interpolation("\"a { x", 6), None);
    }
}
