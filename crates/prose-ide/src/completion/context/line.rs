//! What can stand behind the tokens of a line.

use prose_model::vocabulary;
use prose_syntax::{SyntaxKind, TextRange};

use super::{Body, Finder, Line, Modified, Place, is_text_kind, is_word, is_word_kind, starts_value};

impl Finder<'_> {
    /// The place after the tokens of `line` that are before index `end`; `own` is the token being completed.
    pub(super) fn in_line(&self, line: Line, end: usize, line_index: usize, own: Option<usize>) -> Place {
        let start = line.start;
        if end <= start {
            return self.at_line_start(line.column, line_index, own);
        }
        let last = end - 1;
        let (last_kind, last_word) = (self.toks[last].kind, self.word(last));

        if last_kind == SyntaxKind::DOT {
            return match self.path_before(start, last) {
                Some(path) => Place::Member {
                    path,
                    at: self.toks[last].range.start(),
                },
                None => Place::Nothing,
            };
        }
        if let Some(&open) = self.open_brackets(start, end).last() {
            return self.in_bracket(line, open, end, line_index, own);
        }
        // Agents: `session:`, `resume:`, `session name:`.
        if last_kind == SyntaxKind::COLON {
            let keyword = |i: usize| {
                matches!(self.word(i), "session" | "resume")
                    && (i == start || starts_value(self.toks[i - 1].kind, self.word(i - 1)))
            };
            if last > start && keyword(last - 1) {
                return Place::Agents;
            }
            if last >= start + 2 && keyword(last - 2) && is_word(self.text, &self.toks[last - 1]) {
                return Place::Agents;
            }
        }
        // Properties, on their own line or on that of their session.
        let colon = (start..end)
            .rev()
            .find(|&i| self.toks[i].kind == SyntaxKind::COLON);
        let enclosing = self
            .enclosing(line.column, line_index)
            .find_map(|(_, line)| self.body_of(line));
        if self.kind(start + 1) == Some(SyntaxKind::COLON)
            && end > start + 1
            && !is_header_keyword(self.word(start))
        {
            let key = self.word(start).to_owned();
            match enclosing {
                Some(Body::Permissions) => return Place::PermissionValue,
                Some(Body::Properties(_)) => return self.property_value(key, start + 2, end),
                Some(Body::Nested(of)) if of == "context" => return Place::Context,
                Some(Body::Nested(_)) => return Place::Nothing,
                _ => {}
            }
        }
        if let Some(colon) = colon.filter(|&colon| colon > start) {
            let key = self.word(colon - 1);
            let session = (start..colon - 1)
                .rev()
                .any(|i| matches!(self.word(i), "session" | "resume"));
            if session && is_property(key) && is_word(self.text, &self.toks[colon - 1]) {
                return self.property_value(key.to_owned(), colon + 1, end);
            }
        }
        match enclosing {
            Some(Body::Permissions | Body::Properties(_)) => return Place::Nothing,
            Some(Body::Nested(key)) => {
                // `- item` lines.
                return if key == "context" {
                    Place::Context
                } else {
                    Place::Nothing
                };
            }
            _ => {}
        }
        self.in_statement(line, end, last, last_kind, last_word)
    }

    fn property_value(&self, key: String, value_start: usize, end: usize) -> Place {
        match key.as_str() {
            "context" => match self.toks[end - 1].kind {
                SyntaxKind::COLON
                | SyntaxKind::COMMA
                | SyntaxKind::PLUS
                | SyntaxKind::L_BRACK
                | SyntaxKind::L_BRACE => Place::Context,
                _ => Place::Nothing,
            },
            _ if end > value_start => match self.toks[end - 1].kind {
                SyntaxKind::PLUS => Place::Expression { heads: false },
                _ => Place::Nothing,
            },
            _ => Place::PropertyValue(key),
        }
    }

    fn in_statement(
        &self,
        line: Line,
        end: usize,
        last: usize,
        last_kind: SyntaxKind,
        last_word: &str,
    ) -> Place {
        let start = line.start;
        let first = self.word(start);
        let head_at = self.head_index(line).min(last);
        let assigned = matches!(self.kind(start + 1), Some(SyntaxKind::EQ)) && end > start + 1;
        // Names being declared and texts being written.
        if last == start && !assigned {
            match first {
                "agent" | "block" | "let" | "const" | "input" | "use" | "import" | "session" | "option"
                | "for" => {
                    return Place::Nothing;
                }
                "resume" | "try" | "finally" => return Place::Nothing,
                "output" | "return" => return Place::Expression { heads: true },
                "throw" | "repeat" | "assert" => return Place::Expression { heads: false },
                _ => {}
            }
        }
        if matches!(first, "agent") && !assigned {
            return Place::Nothing;
        }
        if matches!(first, "use") && !assigned {
            return if last_kind == SyntaxKind::STRING {
                Place::Keywords(&["as"])
            } else {
                Place::Nothing
            };
        }
        if first == "input" && !assigned {
            return Place::Nothing;
        }
        match last_kind {
            SyntaxKind::EQ | SyntaxKind::ARROW => return Place::Expression { heads: true },
            SyntaxKind::PIPE => return Place::Keywords(&["map", "filter", "pmap", "reduce", "chunks"]),
            SyntaxKind::PLUS
            | SyntaxKind::MINUS
            | SyntaxKind::EQ2
            | SyntaxKind::NEQ
            | SyntaxKind::LT
            | SyntaxKind::GT
            | SyntaxKind::LTEQ
            | SyntaxKind::GTEQ => return Place::Expression { heads: false },
            SyntaxKind::COLON => {
                // The one-line form of a body: `if **x**: do f`.
                return if is_header_keyword(self.word(head_at)) {
                    Place::Expression { heads: true }
                } else {
                    Place::Nothing
                };
            }
            SyntaxKind::COMMA => return Place::Nothing,
            _ => {}
        }
        if is_word_kind(last_kind) {
            let previous = (last > start).then(|| self.toks[last - 1].kind);
            match last_word {
                // `do` begins an expression only where one can begin.
                "do" if last == start || starts_value(previous.unwrap_or(last_kind), self.word(last - 1)) => {
                    return Place::Blocks;
                }
                "in" if matches!(self.word(head_at), "for" | "parallel") => {
                    return Place::Expression { heads: false };
                }
                "until" | "while" if self.word(head_at) == "loop" => {
                    return Place::Expression { heads: false };
                }
                "if" | "elif" | "choice" if last == head_at || last == start => {
                    return Place::Expression { heads: false };
                }
                "and" | "or" | "not" => return Place::Expression { heads: false },
                "parallel" if last == head_at => return Place::Keywords(&["for"]),
                "loop" if last == head_at => return Place::Keywords(&["until", "while", "as"]),
                "catch" if last == start => return Place::Keywords(&["as"]),
                "repeat" if last == head_at => return Place::Expression { heads: false },
                "else" if last == start => return Place::Nothing,
                "as" => return Place::Nothing,
                _ => {}
            }
        }
        // A complete operand stands before the cursor.
        match self.word(head_at) {
            "for" | "parallel" if !(start..end).any(|i| self.word(i) == "in") => {
                let names = (head_at..end)
                    .filter(|&i| is_word_kind(self.toks[i].kind))
                    .count();
                let heads = if self.word(head_at) == "for" { 1 } else { 2 };
                if names > heads {
                    Place::Keywords(&["in"])
                } else {
                    Place::Nothing
                }
            }
            "repeat" => Place::Keywords(&["as"]),
            "loop" if !(start..end).any(|i| self.word(i) == "as") => Place::Keywords(&["as", "and", "or"]),
            "if" | "elif" => Place::Keywords(&["and", "or"]),
            "session" | "resume" if matches!(last_kind, SyntaxKind::STRING | SyntaxKind::TRIPLE_STRING) => {
                Place::Nothing
            }
            _ => Place::Nothing,
        }
    }

    fn in_bracket(
        &self,
        line: Line,
        open: usize,
        end: usize,
        line_index: usize,
        own: Option<usize>,
    ) -> Place {
        let start = line.start;
        let last = end - 1;
        let last_kind = self.toks[last].kind;
        let enclosing = self
            .enclosing(line.column, line_index)
            .find_map(|(_, line)| self.body_of(line));
        // The property whose value this bracket belongs to.
        let own_line =
            self.kind(start + 1) == Some(SyntaxKind::COLON) && !is_header_keyword(self.word(start));
        let key = if own_line
            && matches!(
                enclosing,
                Some(Body::Properties(_) | Body::Permissions | Body::Nested(_))
            ) {
            Some(self.word(start))
        } else {
            let has_session = (start..open).any(|i| matches!(self.word(i), "session" | "resume"));
            (start + 1..open)
                .rev()
                .find(|&i| self.toks[i].kind == SyntaxKind::COLON)
                .map(|i| self.word(i - 1))
                .filter(|key| has_session && is_property(key))
        };
        let after_separator = matches!(
            last_kind,
            SyntaxKind::COMMA
                | SyntaxKind::L_PAREN
                | SyntaxKind::L_BRACK
                | SyntaxKind::L_BRACE
                | SyntaxKind::COLON
        ) || matches!(
            last_kind,
            SyntaxKind::PLUS
                | SyntaxKind::MINUS
                | SyntaxKind::EQ2
                | SyntaxKind::NEQ
                | SyntaxKind::LT
                | SyntaxKind::GT
                | SyntaxKind::LTEQ
                | SyntaxKind::GTEQ
        ) || matches!(self.word(last), "and" | "or" | "not");
        if own_line && enclosing == Some(Body::Permissions) {
            return if after_separator {
                Place::Variables
            } else {
                Place::Nothing
            };
        }
        match self.toks[open].kind {
            SyntaxKind::L_PAREN => self.in_parentheses(line, open, end, after_separator, own),
            SyntaxKind::L_BRACE if open == start + 1 && matches!(self.word(start), "let" | "const") => {
                let range = TextRange::new(
                    self.toks[start].range.start(),
                    self.toks[line.end - 1].range.end(),
                );
                if after_separator {
                    Place::PatternKey(range)
                } else {
                    Place::Nothing
                }
            }
            // Only one directly at the key: in a list of a session inside a context something else may stand.
            _ if key == Some("context") => {
                // Lists may go on with blanks instead of commas (seed, "context:").
                let blank_separated = is_word_kind(last_kind) && self.toks[open].kind == SyntaxKind::L_BRACK;
                if after_separator || blank_separated {
                    Place::Context
                } else {
                    Place::Nothing
                }
            }
            _ if matches!(key, Some("skills" | "tools")) => Place::Nothing,
            _ if matches!(self.word(last), "session" | "resume") => Place::Nothing,
            _ if self.word(last) == "do" => Place::Blocks,
            _ if last_kind == SyntaxKind::COLON
                && matches!(self.word(last.saturating_sub(1)), "session" | "resume") =>
            {
                Place::Agents
            }
            SyntaxKind::L_BRACK if after_separator => Place::Expression { heads: true },
            _ if after_separator => Place::Expression { heads: false },
            _ => Place::Nothing,
        }
    }

    fn in_parentheses(
        &self,
        line: Line,
        open: usize,
        end: usize,
        after_separator: bool,
        own: Option<usize>,
    ) -> Place {
        let start = line.start;
        let last = end - 1;
        // Names given already: `k:` at this bracket's depth.
        let mut present = Vec::new();
        let mut depth = 0i32;
        let mut at = open + 1;
        while at < line.end {
            match self.toks[at].kind {
                SyntaxKind::L_PAREN | SyntaxKind::L_BRACK | SyntaxKind::L_BRACE => depth += 1,
                SyntaxKind::R_PAREN | SyntaxKind::R_BRACK | SyntaxKind::R_BRACE => depth -= 1,
                SyntaxKind::COLON if depth == 0 && Some(at - 1) != own => {
                    present.push(self.word(at - 1).to_owned())
                }
                _ => {}
            }
            if depth < 0 {
                break;
            }
            at += 1;
        }
        let value_of = (self.toks[last].kind == SyntaxKind::COLON).then(|| self.word(last - 1).to_owned());
        let head_at = self.head_index(line);
        let head = self.word(head_at);
        let before_open = if open > start { self.word(open - 1) } else { "" };
        let of = match head {
            "block" if open == start + 2 => return Place::Nothing,
            "block" => Some(Modified::Block),
            "parallel" if self.word(head_at + 1) == "for" => {
                // `parallel for x in (…)` is a value, modifiers come behind it.
                (before_open != "in").then_some(Modified::ParallelFor)
            }
            "parallel" => Some(Modified::Parallel),
            "loop" if !matches!(before_open, "until" | "while" | "and" | "or" | "not" | "(") => {
                Some(Modified::Loop)
            }
            "session" | "resume" if open > head_at && is_text_kind(self.toks[open - 1].kind) => {
                Some(Modified::Session)
            }
            _ => None,
        };
        if let Some(of) = of {
            return match value_of {
                Some(name) => Place::ModifierValue {
                    of,
                    name: Some(name),
                    quoted: false,
                },
                None if after_separator => Place::Modifiers(of, present),
                None => Place::Nothing,
            };
        }
        if before_open == "reduce" {
            return Place::Nothing;
        }
        let is_call =
            open > start && is_word(self.text, &self.toks[open - 1]) && !is_operator_word(before_open);
        if !after_separator {
            return Place::Nothing;
        }
        if is_call
            && value_of.is_none()
            && matches!(self.toks[last].kind, SyntaxKind::COMMA | SyntaxKind::L_PAREN)
        {
            return Place::Arguments(before_open.to_owned(), present);
        }
        Place::Expression { heads: false }
    }

    /// The path that ends before the dot at `dot`: `a.b` in `a.b.`; an index counts as nothing known.
    fn path_before(&self, start: usize, dot: usize) -> Option<Vec<String>> {
        let mut path = Vec::new();
        let mut at = dot;
        loop {
            let word = at.checked_sub(1).filter(|&i| i >= start)?;
            if !is_word(self.text, &self.toks[word]) {
                return None;
            }
            path.push(self.word(word).to_owned());
            match word.checked_sub(1).filter(|&i| i >= start) {
                Some(before) if self.toks[before].kind == SyntaxKind::DOT => at = before,
                _ => break,
            }
        }
        path.reverse();
        Some(path)
    }
}

/// Words whose line ends in `:` and is no property.
fn is_header_keyword(word: &str) -> bool {
    matches!(
        word,
        "session"
            | "resume"
            | "do"
            | "parallel"
            | "for"
            | "repeat"
            | "loop"
            | "if"
            | "elif"
            | "else"
            | "try"
            | "catch"
            | "finally"
            | "choice"
            | "option"
            | "block"
            | "agent"
    )
}

fn is_operator_word(word: &str) -> bool {
    matches!(
        word,
        "and" | "or" | "not" | "in" | "until" | "while" | "if" | "elif" | "output" | "return" | "repeat"
    )
}

fn is_property(word: &str) -> bool {
    vocabulary::property(word).is_some()
}
