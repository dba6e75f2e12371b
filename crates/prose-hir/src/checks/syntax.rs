//! Findings of the parser, with the change that settles each where there is an obvious one.

use std::cell::LazyCell;

use prose_syntax::SyntaxKind::{
    AS_KW, BLOCK_STRING, BLOCK_TEXT, BODY, CALL_EXPR, COLON, COMMENT, DASH_ITEM, DASH_LIST, EXPR_STMT, IF_KW,
    LIST_EXPR, LITERAL, MODIFIER, MODIFIER_LIST, NAME, OBJECT_EXPR, PAREN_EXPR, PIPE, PROPERTY_LIST,
    RESUME_EXPR, SESSION_EXPR,
};
use prose_syntax::{
    NodeOrToken, SessionForm, SyntaxError, SyntaxErrorKind, SyntaxKind, SyntaxNode, SyntaxToken, TextRange,
    TextSize,
};

use crate::diagnostic::Finding;
use crate::hir::ChunkBody;
use crate::symbols::ProgramScope;
use crate::{Chunk, Db, Fix, queries};

/// The parser's findings about a chunk.
pub(super) fn findings(db: &dyn Db, chunk: Chunk, body: &ChunkBody, program: &ProgramScope) -> Vec<Finding> {
    let source = Source {
        text: chunk.text(db),
        root: LazyCell::new(|| queries::parse(db, chunk).root()),
        program,
    };
    body.errors
        .iter()
        .map(|error| Finding {
            code: error.code(),
            severity: error.severity(),
            message: error.to_string(),
            range: error.range,
            related: Vec::new(),
            tags: Vec::new(),
            fix: source.fix(error),
        })
        .collect()
}

struct Source<'a, F: FnOnce() -> SyntaxNode> {
    text: &'a str,
    /// Most findings are settled without the tree.
    root: LazyCell<SyntaxNode, F>,
    program: &'a ProgramScope,
}

impl<F: FnOnce() -> SyntaxNode> Source<'_, F> {
    fn fix(&self, error: &SyntaxError) -> Option<Fix> {
        let range = error.range;
        let found = self
            .text
            .get(usize::from(range.start())..usize::from(range.end()))?;
        match &error.kind {
            SyntaxErrorKind::TabIndent => self.spaces(range.start()),
            SyntaxErrorKind::UnknownEscape(_) => {
                let at = TextRange::empty(range.start());
                Some(Fix::replace("Double the backslash", at, "\\"))
            }
            SyntaxErrorKind::UnterminatedString { triple: false } if !found.ends_with('\\') => {
                let end = range.start() + TextSize::of(found.trim_end());
                Some(Fix::replace("Add `\"`", TextRange::empty(end), "\""))
            }
            SyntaxErrorKind::SessionWithoutPrompt {
                word,
                name: Some(name),
            } if self.program.agent(name).is_some() => {
                let at = TextRange::empty(range.start() + TextSize::of(*word));
                Some(Fix::replace(format!("Write `{word}: {name}`"), at, ":"))
            }
            SyntaxErrorKind::Expected { what: "`:`", .. } => self.colon(range.start()),
            SyntaxErrorKind::Expected { after: "`use`", .. } => {
                let rest = self.text.get(usize::from(range.start())..)?;
                let path = rest.split([' ', '\t', '\n', '\r', '#', '"', '\\']).next()?;
                let range = TextRange::at(range.start(), TextSize::of(path));
                (!path.is_empty()).then(|| quote(range, path))
            }
            SyntaxErrorKind::WrongOperator { found, instead } => match found.as_str() {
                "&&" | "||" | "!" | "//" | "=" if !instead.contains(' ') => Some(Fix::replace(
                    format!("Write `{instead}`"),
                    range,
                    self.padded(range, instead),
                )),
                _ => None,
            },
            SyntaxErrorKind::NotAStatement {
                nearest: Some(nearest),
                ..
            } => {
                let word = nearest.strip_prefix('`')?.strip_suffix('`')?;
                let one = word.bytes().all(|it| it.is_ascii_alphabetic());
                // With a meaning of its own only in front of what may follow it, which the rest of the line shows.
                let head = one && word != found;
                head.then(|| Fix::replace(format!("Replace with `{word}`"), range, word))
            }
            SyntaxErrorKind::OddSession(form) => self.session(*form, range.start()),
            SyntaxErrorKind::BareList => Some(Fix {
                title: "Put the list into brackets".into(),
                edits: vec![
                    (TextRange::empty(range.start()), "[".into()),
                    (TextRange::empty(range.end()), "]".into()),
                ],
            }),
            SyntaxErrorKind::DashList => self.dash_list(range),
            SyntaxErrorKind::BlockString => self.block_string(range),
            SyntaxErrorKind::MissingComma => Some(Fix::replace("Add a comma", range, ",")),
            SyntaxErrorKind::ElseIf => {
                let word = self
                    .after(range.end())
                    .find(|it| !it.kind().is_trivia())
                    .filter(|it| it.kind() == IF_KW)?;
                Some(Fix::replace(
                    "Write `elif`",
                    range.cover(word.text_range()),
                    "elif",
                ))
            }
            SyntaxErrorKind::CatchWithoutAs => {
                let at = TextRange::empty(range.start());
                Some(Fix::replace("Add `as`", at, "as "))
            }
            SyntaxErrorKind::OutputColon { declares: false } => {
                let colon = TextRange::new(range.end() - TextSize::of(':'), range.end());
                let with = self.padded(colon, "=");
                Some(Fix::replace("Write `=`", colon, with))
            }
            SyntaxErrorKind::BareWord if !found.contains(['"', '\\', '{', '\n']) => Some(quote(range, found)),
            SyntaxErrorKind::InvisibleCharacter(_) => {
                let spaces = " ".repeat(found.chars().count());
                Some(Fix::replace("Replace with a space", range, spaces))
            }
            SyntaxErrorKind::MultiLineDiscretion if !found.contains("***") => Some(Fix {
                title: "Write `***`".into(),
                edits: vec![
                    (TextRange::empty(range.start()), "*".into()),
                    (TextRange::empty(range.end()), "*".into()),
                ],
            }),
            SyntaxErrorKind::InlineBody => self.inline_body(range.start()),
            SyntaxErrorKind::BracedValue => {
                let inner = found.strip_prefix('{')?.strip_suffix('}')?.trim();
                Some(Fix::replace("Remove the braces", range, inner))
            }
            _ => None,
        }
    }

    /// Where the line begins that holds an offset, and its indentation.
    fn line(&self, offset: TextSize) -> Option<(TextSize, &str)> {
        let before = self.text.get(..usize::from(offset))?;
        let start = before.rfind(['\n', '\r']).map_or(0, |it| it + 1);
        let line = &self.text[start..];
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        Some((TextSize::try_from(start).ok()?, &line[..blank]))
    }

    /// Indentation of spaces that leaves every block as it is.
    fn spaces(&self, offset: TextSize) -> Option<Fix> {
        let (start, indent) = self.line(offset)?;
        let range = TextRange::at(start, TextSize::of(indent));
        let spaces = " ".repeat(width(indent));
        Some(Fix::replace("Indent with spaces", range, spaces))
    }

    /// Indentation of what belongs below the line of an offset.
    fn below(&self, offset: TextSize) -> Option<String> {
        let (_, indent) = self.line(offset)?;
        Some(format!("{indent}  "))
    }

    /// Tokens from an offset on.
    fn after(&self, offset: TextSize) -> impl Iterator<Item = SyntaxToken> {
        let first = (offset < self.root.text_range().end())
            .then(|| self.root.token_at_offset(offset).right_biased())
            .flatten();
        std::iter::successors(first, SyntaxToken::next_token)
    }

    /// Whether only blanks follow an offset on its line.
    fn ends_line(&self, offset: TextSize) -> bool {
        let rest = self.text.get(usize::from(offset)..).unwrap_or_default();
        let rest = rest.trim_start_matches([' ', '\t']);
        rest.is_empty() || rest.starts_with(['\n', '\r'])
    }

    /// A missing colon, when something is indented below or a value follows.
    fn colon(&self, offset: TextSize) -> Option<Fix> {
        let fix = || Fix::replace("Add `:`", TextRange::empty(offset), ":");
        let mut rest = self.text.get(usize::from(offset)..)?.lines();
        let first = rest.next()?.trim();
        if !(first.is_empty() || first.starts_with('#')) {
            return Some(fix());
        }
        let (_, indent) = self.line(offset)?;
        let next = rest.find(|it| !(it.trim().is_empty() || it.trim().starts_with('#')))?;
        let deeper = next.len() - next.trim_start_matches([' ', '\t']).len();
        (width(&next[..deeper]) > width(indent)).then(fix)
    }

    /// A word with a blank on each side where there is none.
    fn padded(&self, range: TextRange, word: &str) -> String {
        let blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let before = self.text[..usize::from(range.start())].chars().next_back();
        let after = self.text[usize::from(range.end())..].chars().next();
        let left = if blank(before) { "" } else { " " };
        let right = if blank(after) { "" } else { " " };
        format!("{left}{word}{right}")
    }

    fn session(&self, form: SessionForm, head: TextSize) -> Option<Fix> {
        let node = self
            .after(head)
            .next()?
            .parent_ancestors()
            .find(|it| matches!(it.kind(), SESSION_EXPR | RESUME_EXPR))?;
        let children = || node.children_with_tokens();
        let colon = |it: &NodeOrToken<_, SyntaxToken>| it.as_token().filter(|it| it.kind() == COLON).cloned();
        match form {
            SessionForm::ColonText => {
                let colon = children().find_map(|it| colon(&it))?;
                let range = colon.text_range();
                let with = if self.text[usize::from(range.end())..].starts_with([' ', '\t']) {
                    ""
                } else {
                    " "
                };
                Some(Fix::replace("Remove `:`", range, with))
            }
            SessionForm::TrailingColon => {
                let colon = children().filter_map(|it| colon(&it)).last()?;
                Some(Fix::replace("Remove `:`", colon.text_range(), ""))
            }
            SessionForm::AgentText => {
                let text = node.children().find(|it| it.kind() == LITERAL)?;
                let property = format!("prompt: {text}");
                self.as_lines(
                    &node,
                    text.text_range(),
                    &[property],
                    "Write the text as `prompt:`",
                )
            }
            SessionForm::Modifiers => {
                let list = node.children().find(|it| it.kind() == MODIFIER_LIST)?;
                let lines: Vec<String> = list
                    .children()
                    .filter(|it| it.kind() == MODIFIER)
                    .map(|it| it.to_string())
                    .collect();
                let plain = lines.iter().all(|it| it.contains(':') && !it.contains('\n'));
                if lines.is_empty() || !plain || has_comment(&list) {
                    return None;
                }
                self.as_lines(
                    &node,
                    list.text_range(),
                    &lines,
                    "Write the properties on lines of their own",
                )
            }
            SessionForm::AsName => {
                // As a value it has a name in front of it already.
                node.parent().filter(|it| it.kind() == EXPR_STMT)?;
                let name = node.children().find(|it| it.kind() == NAME)?;
                let word = children().find(|it| it.kind() == AS_KW)?.text_range();
                let before = self.text[..usize::from(word.start())].trim_end_matches([' ', '\t']);
                Some(Fix {
                    title: format!("Write `let {name} = …`"),
                    edits: vec![
                        (
                            TextRange::empty(node.text_range().start()),
                            format!("let {name} = "),
                        ),
                        (
                            TextRange::new(TextSize::of(before), name.text_range().end()),
                            String::new(),
                        ),
                    ],
                })
            }
            SessionForm::NoAgent => None,
        }
    }

    /// Moves what stands last on a session's line to property lines below it.
    fn as_lines(&self, session: &SyntaxNode, range: TextRange, lines: &[String], title: &str) -> Option<Fix> {
        if !self.ends_line(range.end()) || in_brackets(session) {
            return None;
        }
        let indent = match session.children().find(|it| it.kind() == PROPERTY_LIST) {
            // Properties that are there set the column.
            Some(list) => self.line(list.first_child()?.text_range().start())?.1.to_owned(),
            None => self.below(session.text_range().start())?,
        };
        let before = &self.text[..usize::from(range.start())];
        let start = TextSize::of(before.trim_end_matches([' ', '\t']));
        let lines: String = lines.iter().map(|it| format!("\n{indent}{it}")).collect();
        Some(Fix::replace(title, TextRange::new(start, range.end()), lines))
    }

    fn dash_list(&self, range: TextRange) -> Option<Fix> {
        let list = self
            .after(range.start())
            .next()?
            .parent_ancestors()
            .find(|it| it.kind() == DASH_LIST)?;
        let items: Vec<SyntaxNode> = list.children().filter(|it| it.kind() == DASH_ITEM).collect();
        let values: Option<Vec<String>> = items
            .iter()
            .map(|it| Some(it.first_child()?.to_string()))
            .collect();
        let values = values?;
        if has_comment(&list) || values.iter().any(|it| it.contains('\n')) {
            return None;
        }
        let first = items.first()?.text_range().start();
        let before = self.text[..usize::from(first)].trim_end();
        let start = TextSize::of(before);
        let end = items.last()?.text_range().end();
        // A comment after the key would swallow the list.
        if !before.ends_with(':') {
            return None;
        }
        let list = format!(" [{}]", values.join(", "));
        Some(Fix::replace(
            "Write the list in brackets",
            TextRange::new(start, end),
            list,
        ))
    }

    fn block_string(&self, range: TextRange) -> Option<Fix> {
        let node = self
            .after(range.start())
            .next()?
            .parent_ancestors()
            .find(|it| it.kind() == BLOCK_STRING)?;
        let tokens = || node.children_with_tokens().filter_map(NodeOrToken::into_token);
        let pipe = tokens().find(|it| it.kind() == PIPE)?.text_range();
        let text = tokens().find(|it| it.kind() == BLOCK_TEXT)?;
        if text.text().contains("\"\"\"") || text.text().contains('\\') {
            return None;
        }
        let (_, indent) = self.line(pipe.start())?;
        let end = text.text_range().start() + TextSize::of(text.text().trim_end());
        // What may follow the bar, as in `|-`, goes with it.
        let line = self.text[usize::from(pipe.start())..].lines().next()?;
        Some(Fix {
            title: "Write `\"\"\"`".into(),
            edits: vec![
                (TextRange::at(pipe.start(), TextSize::of(line)), "\"\"\"".into()),
                (TextRange::empty(end), format!("\n{indent}\"\"\"")),
            ],
        })
    }

    fn inline_body(&self, offset: TextSize) -> Option<Fix> {
        let body = self
            .after(offset)
            .next()?
            .parent_ancestors()
            .find(|it| it.kind() == BODY)?;
        if in_brackets(&body) || body.to_string().contains('\n') {
            return None;
        }
        let before = self.text[..usize::from(offset)].trim_end_matches([' ', '\t']);
        let range = TextRange::new(TextSize::of(before), offset);
        let indent = self.below(offset)?;
        Some(Fix::replace(
            "Put it on a line of its own",
            range,
            format!("\n{indent}"),
        ))
    }
}

fn quote(range: TextRange, text: &str) -> Fix {
    Fix::replace("Put it into quotes", range, format!("\"{text}\""))
}

fn has_comment(node: &SyntaxNode) -> bool {
    node.descendants_with_tokens().any(|it| it.kind() == COMMENT)
}

/// Whether layout is suspended around a node, so that line ends mean nothing there.
fn in_brackets(node: &SyntaxNode) -> bool {
    let suspends = |kind: SyntaxKind| matches!(kind, LIST_EXPR | OBJECT_EXPR | PAREN_EXPR | CALL_EXPR);
    node.ancestors().skip(1).any(|it| suspends(it.kind()))
}

/// Columns of an indentation. A tab goes to the next multiple of two, as in the parser's layout.
fn width(blank: &str) -> usize {
    blank
        .chars()
        .fold(0, |col, c| if c == '\t' { (col / 2 + 1) * 2 } else { col + 1 })
}
