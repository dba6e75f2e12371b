//! Colours that need to know what a word means: names by what they stand for, keywords only where they act as one, names
//! inside texts.

use prose_hir::{DefKind, FileId, NamedRange, RootDatabase};
use prose_model::vocabulary;
use prose_syntax::text::{self, PathStep, Segment};
use prose_syntax::{SyntaxKind, SyntaxToken, TextRange, TextSize};

use crate::types::{SemanticToken, TokenKind};
use crate::{names, tree};

pub(crate) fn semantic_tokens(
    db: &RootDatabase,
    file: FileId,
    range: Option<TextRange>,
) -> Vec<SemanticToken> {
    let Some(source) = tree::source(db, file) else {
        return Vec::new();
    };
    let whole = TextRange::up_to(TextSize::of(&*source.text(db)));
    let Some(range) = range.map_or(Some(whole), |it| whole.intersect(it)) else {
        return Vec::new();
    };
    let mut tokens = Tokens {
        names: prose_hir::names_in(db, source, range),
        next: 0,
        found: Vec::new(),
    };
    for piece in tree::pieces_in(db, source, range) {
        let elements = piece.root.descendants_with_tokens();
        for token in elements.filter_map(|it| it.into_token()) {
            if piece.up(token.text_range()).intersect(range).is_some() {
                tokens.token(&piece, &token);
            }
        }
    }
    tokens.found
}

struct Tokens {
    /// In the order of the text.
    names: Vec<NamedRange>,
    /// The first of them that may still come.
    next: usize,
    found: Vec<SemanticToken>,
}

/// What there is in a text beside the text.
enum Part {
    /// The brace in front of a name.
    Open,
    /// The brace behind it.
    Close,
    Name(NamedRange),
    Kind(TokenKind),
}

impl Tokens {
    fn token(&mut self, piece: &tree::Piece, token: &SyntaxToken) {
        let range = piece.up(token.text_range());
        match token.kind() {
            SyntaxKind::WHITESPACE | SyntaxKind::BOM | SyntaxKind::UNKNOWN => {}
            SyntaxKind::COMMENT => self.push(range, TokenKind::Comment),
            SyntaxKind::NUMBER | SyntaxKind::DURATION => self.push(range, TokenKind::Number),
            SyntaxKind::STRING
            | SyntaxKind::TRIPLE_STRING
            | SyntaxKind::DISCRETION
            | SyntaxKind::BLOCK_TEXT => self.text(token, range),
            SyntaxKind::ARROW
            | SyntaxKind::PIPE
            | SyntaxKind::PLUS
            | SyntaxKind::MINUS
            | SyntaxKind::EQ
            | SyntaxKind::EQ2
            | SyntaxKind::NEQ
            | SyntaxKind::LT
            | SyntaxKind::GT
            | SyntaxKind::LTEQ
            | SyntaxKind::GTEQ => self.push(range, TokenKind::Operator),
            kind if kind.is_keyword() => match self.named(range) {
                Some(name) => self.name(range, &name),
                None => self.push(range, TokenKind::Keyword),
            },
            SyntaxKind::IDENT => match self.named(range) {
                Some(name) => self.name(range, &name),
                None => self.word(token, range),
            },
            _ => {}
        }
    }

    /// The name that stands in a range, if one does. Ranges have to be asked for in order.
    fn named(&mut self, range: TextRange) -> Option<NamedRange> {
        while let Some(name) = self.names.get(self.next)
            && name.range.start() < range.start()
        {
            self.next += 1;
        }
        self.names.get(self.next).filter(|it| it.range == range).copied()
    }

    /// A word that is no variable, agent, block or program.
    fn word(&mut self, token: &SyntaxToken, range: TextRange) {
        let Some(parent) = token.parent() else { return };
        let above = parent.parent().map(|it| it.kind());
        match (parent.kind(), above) {
            (
                SyntaxKind::NAME,
                Some(
                    SyntaxKind::PROPERTY
                    | SyntaxKind::MODIFIER
                    | SyntaxKind::ARG
                    | SyntaxKind::OBJECT_FIELD
                    | SyntaxKind::FIELD_EXPR,
                ),
            ) => self.push(range, TokenKind::Property),
            (SyntaxKind::BARE_WORD, _) => self.push(range, TokenKind::Value),
            (SyntaxKind::NAME_REF, _) if is_value_word(token) => self.push(range, TokenKind::Value),
            _ => {}
        }
    }

    /// A text, cut at what stands in its braces and at its escapes.
    fn text(&mut self, token: &SyntaxToken, range: TextRange) {
        let judged = token.kind() == SyntaxKind::DISCRETION;
        // A discretion that is nothing but a name is that name's value.
        let content = text::content_range(token.kind(), token.text()) + range.start();
        if judged && let Some(name) = self.peek(content) {
            self.piece(
                TextRange::new(range.start(), name.range.start()),
                TokenKind::String,
                true,
            );
            self.name(name.range, &name);
            self.piece(
                TextRange::new(name.range.end(), range.end()),
                TokenKind::String,
                true,
            );
            return;
        }
        let start = range.start();
        let mut parts: Vec<(TextRange, Part)> = Vec::new();
        for segment in text::segments(token.kind(), token.text(), start) {
            let Segment::Interpolation(found) = segment else {
                continue;
            };
            let Some(root) = self.named(found.root.range) else {
                continue;
            };
            let (open, close) = (found.range.start(), found.range.end());
            parts.push((TextRange::new(open, found.root.range.start()), Part::Open));
            parts.push((found.root.range, Part::Name(root)));
            for step in &found.path {
                parts.push(match step {
                    PathStep::Field(field) => (field.range, Part::Kind(TokenKind::Property)),
                    PathStep::Index { range, .. } => (*range, Part::Kind(TokenKind::Number)),
                    PathStep::IndexName(index) => match self.named(index.range) {
                        Some(name) => (index.range, Part::Name(name)),
                        None => continue,
                    },
                });
            }
            parts.push((TextRange::new(close - TextSize::new(1), close), Part::Close));
        }
        let escapes = text::escapes(token.kind(), token.text(), start);
        let known = escapes.into_iter().filter(|it| it.value.is_some());
        parts.extend(known.map(|it| (it.range, Part::Kind(TokenKind::Escape))));
        parts.sort_by_key(|it| it.0.start());
        let mut at = start;
        let mut inside = false;
        for (range, part) in parts {
            // Dots and brackets of a path are no text.
            if !inside {
                self.piece(TextRange::new(at, range.start()), TokenKind::String, judged);
            }
            match part {
                Part::Open | Part::Close => {
                    self.push(range, TokenKind::Operator);
                    inside = matches!(part, Part::Open);
                }
                Part::Name(name) => self.name(range, &name),
                Part::Kind(kind) => self.push(range, kind),
            }
            at = range.end();
        }
        self.piece(TextRange::new(at, range.end()), TokenKind::String, judged);
    }

    /// The name that begins inside a range and ends in it, when nothing but blanks is around it.
    fn peek(&mut self, content: TextRange) -> Option<NamedRange> {
        while let Some(name) = self.names.get(self.next)
            && name.range.start() < content.start()
        {
            self.next += 1;
        }
        let name = self.names.get(self.next)?;
        (name.role == Some(prose_hir::RefKind::Bare) && content.contains_range(name.range)).then_some(*name)
    }

    fn name(&mut self, range: TextRange, name: &NamedRange) {
        self.found.push(SemanticToken {
            range,
            kind: TokenKind::Name(names::symbol_kind(name.kind)),
            declaration: name.role.is_none(),
            // A parameter can be assigned, though it is better not to.
            readonly: name.kind == DefKind::Const || (name.kind.is_scoped() && name.kind != DefKind::Param),
            judged: false,
        });
    }

    fn push(&mut self, range: TextRange, kind: TokenKind) {
        self.piece(range, kind, false);
    }

    fn piece(&mut self, range: TextRange, kind: TokenKind, judged: bool) {
        if !range.is_empty() {
            self.found.push(SemanticToken {
                range,
                kind,
                declaration: false,
                readonly: false,
                judged,
            });
        }
    }
}

/// Whether a word is one of the values of the property it belongs to: `model: opus`.
fn is_value_word(token: &SyntaxToken) -> bool {
    let property = token
        .parent_ancestors()
        .find(|it| it.kind() == SyntaxKind::PROPERTY);
    let key = property.and_then(|it| it.first_token());
    key.and_then(|it| vocabulary::property(it.text()))
        .is_some_and(|it| it.values.iter().any(|value| value.word == token.text()))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{TextRange, TextSize, TokenKind};

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let tokens = setup.analysis.semantic_tokens(file, None).unwrap();
        let mut out = String::new();
        let mut at = TextSize::new(0);
        for token in tokens {
            assert!(token.range.start() >= at, "tokens overlap");
            at = token.range.end();
            let kind = match token.kind {
                TokenKind::Name(kind) => kind.as_str().replace(' ', "-"),
                other => format!("{other:?}").to_lowercase(),
            };
            let mark = |on: bool, word: &str| if on { word.to_owned() } else { String::new() };
            out.push_str(&format!(
                "{kind}{}{}{} {:?}\n",
                mark(token.declaration, " declared"),
                mark(token.readonly, " readonly"),
                mark(token.judged, " judged"),
                setup.slice(file, token.range),
            ));
        }
        expect.assert_eq(&out);
    }

    #[test]
    fn names_by_what_they_are() {
        check(
            "use \"alice/x\" as lib\nagent a:\n  model: opus\nblock f(p):\n  session \"{p}\"\nlet v = session: a\nconst c = lib(topic: v)\ndo f(c)\n",
            expect![[r#"
                keyword "use"
                string "\"alice/x\""
                keyword "as"
                program declared "lib"
                keyword "agent"
                agent declared "a"
                property "model"
                value "opus"
                keyword "block"
                block declared "f"
                parameter declared "p"
                keyword "session"
                string "\""
                operator "{"
                parameter "p"
                operator "}"
                string "\""
                keyword "let"
                variable declared "v"
                operator "="
                keyword "session"
                agent "a"
                keyword "const"
                constant declared readonly "c"
                operator "="
                program "lib"
                property "topic"
                variable "v"
                keyword "do"
                block "f"
                constant readonly "c"
            "#]],
        );
    }

    #[test]
    fn texts() {
        check(
            "let a = 1\nlet i = 0\nsession \"x {a.b[0][i]} \\n {nobody} {{\"\nloop until **done {a}** (max: 2):\n  a = **a**\n",
            expect![[r#"
                keyword "let"
                variable declared "a"
                operator "="
                number "1"
                keyword "let"
                variable declared "i"
                operator "="
                number "0"
                keyword "session"
                string "\"x "
                operator "{"
                variable "a"
                property "b"
                number "0"
                variable "i"
                operator "}"
                string " "
                escape "\\n"
                string " {nobody} {{\""
                keyword "loop"
                keyword "until"
                string judged "**done "
                operator "{"
                variable "a"
                operator "}"
                string judged "**"
                property "max"
                number "2"
                variable "a"
                operator "="
                string judged "**"
                variable "a"
                string judged "**"
            "#]],
        );
    }

    #[test]
    fn words_that_are_keywords_elsewhere() {
        check(
            "let map = 1\nmap = [map] | map: item # end\n",
            expect![[r##"
            keyword "let"
            variable declared "map"
            operator "="
            number "1"
            variable "map"
            operator "="
            variable "map"
            operator "|"
            keyword "map"
            loop-variable readonly "item"
            comment "# end"
        "##]],
        );
    }

    #[test]
    fn a_part_of_a_file() {
        let setup = setup("let a = 1\nlet b = a\nlet c = b\n");
        let file = setup.main();
        let range = TextRange::new(TextSize::new(14), TextSize::new(15));
        let all = setup.analysis.semantic_tokens(file, None).unwrap();
        let part = setup.analysis.semantic_tokens(file, Some(range)).unwrap();
        assert_eq!(part.len(), 1);
        assert!(all.contains(&part[0]));
        let outside = TextRange::new(TextSize::new(900), TextSize::new(901));
        assert!(
            setup
                .analysis
                .semantic_tokens(file, Some(outside))
                .unwrap()
                .is_empty()
        );
    }
}
