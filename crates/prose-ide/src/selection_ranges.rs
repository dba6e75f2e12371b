//! What a selection grows to: word, text, expression, statement, construct, file.

use prose_hir::RootDatabase;
use prose_syntax::text::{self, PathStep, Segment};
use prose_syntax::{SyntaxKind, SyntaxNode, SyntaxToken, TextRange, TextSize};

use crate::tree;
use crate::types::FilePosition;

/// The ranges around a place, each inside the next; the last is the file.
pub(crate) fn selection_ranges(db: &RootDatabase, position: FilePosition) -> Vec<TextRange> {
    let Some(source) = tree::source(db, position.file) else {
        return Vec::new();
    };
    let whole = source.text(db);
    let offset = tree::clamp(&whole, position.offset);
    let mut out: Vec<TextRange> = Vec::new();
    if let Some((piece, local)) = tree::piece_at(db, source, offset)
        && let Some(token) = tree::token_at(&piece.root, local)
    {
        inside(&token, local, &mut out);
        if token.kind() != SyntaxKind::WHITESPACE {
            out.push(token.text_range());
        }
        let parents = token.parent_ancestors();
        out.extend(
            parents
                .filter(|it| it.kind() != SyntaxKind::SOURCE_FILE)
                .map(|it| without_blanks(&it)),
        );
        out.iter_mut().for_each(|it| *it = piece.up(*it));
    }
    out.push(TextRange::up_to(TextSize::of(&*whole)));
    out.retain(|it| it.contains_inclusive(offset));
    // Every range has to hold the one before it and more.
    let mut grown: Vec<TextRange> = Vec::new();
    for range in out {
        match grown.last() {
            Some(last) if range == *last || !range.contains_range(*last) => {}
            _ => grown.push(range),
        }
    }
    grown
}

/// The body of a construct begins with the line end in front of it.
fn without_blanks(node: &SyntaxNode) -> TextRange {
    let first = node
        .first_token()
        .filter(|it| it.kind() == SyntaxKind::WHITESPACE);
    let start = first.map_or(node.text_range().start(), |it| it.text_range().end());
    TextRange::new(start.min(node.text_range().end()), node.text_range().end())
}

/// What there is inside a token: words of a text, the parts of an interpolation, a line, what is between the quotes.
fn inside(token: &SyntaxToken, at: TextSize, out: &mut Vec<TextRange>) {
    let start = token.text_range().start();
    let content = match token.kind() {
        SyntaxKind::STRING | SyntaxKind::TRIPLE_STRING | SyntaxKind::DISCRETION => {
            text::content_range(token.kind(), token.text()) + start
        }
        SyntaxKind::BLOCK_TEXT | SyntaxKind::COMMENT => token.text_range(),
        _ => return,
    };
    if !content.contains_inclusive(at) {
        return;
    }
    if token.kind() != SyntaxKind::COMMENT {
        for segment in text::segments(token.kind(), token.text(), start) {
            let Segment::Interpolation(found) = segment else {
                continue;
            };
            if !found.range.contains_inclusive(at) {
                continue;
            }
            let mut path = found.root.range;
            let mut steps = vec![path];
            for step in &found.path {
                let own = match step {
                    PathStep::Field(name) | PathStep::IndexName(name) => name.range,
                    PathStep::Index { range, .. } => *range,
                };
                if own.contains_inclusive(at) && !path.contains_inclusive(at) {
                    out.push(own);
                }
                path = path.cover(own);
                steps.push(path);
            }
            out.extend(steps.into_iter().filter(|it| it.contains_inclusive(at)));
            out.push(found.path_range());
            out.push(found.range);
        }
    }
    let local = usize::from(at - start);
    if out.is_empty() {
        out.extend(word(token.text(), local).map(|it| it + start));
    }
    out.extend(
        line(token.text(), local)
            .map(|it| it + start)
            .filter(|it| content.contains_range(*it)),
    );
    out.push(content);
}

fn word(text: &str, at: usize) -> Option<TextRange> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let start = text[..at].trim_end_matches(is_word).len();
    let rest = &text[at..];
    let end = at + (rest.len() - rest.trim_start_matches(is_word).len());
    range(start, end)
}

/// The line without the blanks around it.
fn line(text: &str, at: usize) -> Option<TextRange> {
    let start = text[..at].rfind(['\n', '\r']).map_or(0, |it| it + 1);
    let end = text[at..].find(['\n', '\r']).map_or(text.len(), |it| at + it);
    let line = &text[start..end];
    let start = start + (line.len() - line.trim_start().len());
    range(start, start + line.trim().len())
}

fn range(start: usize, end: usize) -> Option<TextRange> {
    let size = |it: usize| u32::try_from(it).ok().map(TextSize::new);
    (start < end)
        .then(|| Some(TextRange::new(size(start)?, size(end)?)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let position = setup.position();
        let found = setup.analysis.selection_ranges(position).unwrap();
        let shown: Vec<String> = found
            .into_iter()
            .map(|it| format!("{:?}", setup.slice(position.file, it)))
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn words_of_a_text() {
        check(
            "let x = session \"find wi$0de rivers\"\n",
            expect![[r#"
                "wide"
                "find wide rivers"
                "\"find wide rivers\""
                "session \"find wide rivers\""
                "let x = session \"find wide rivers\""
                "let x = session \"find wide rivers\"\n""#]],
        );
    }

    #[test]
    fn interpolations() {
        check(
            "session \"on {a.na$0me} now\"\n",
            expect![[r#"
                "name"
                "a.name"
                "{a.name}"
                "on {a.name} now"
                "\"on {a.name} now\""
                "session \"on {a.name} now\""
                "session \"on {a.name} now\"\n""#]],
        );
    }

    #[test]
    fn constructs() {
        check(
            "if true:\n  do f($0a, b)\nsession \"x\"\n",
            expect![[r#"
                "a"
                "(a, b)"
                "do f(a, b)"
                "if true:\n  do f(a, b)"
                "if true:\n  do f(a, b)\nsession \"x\"\n""#]],
        );
    }

    #[test]
    fn lines_of_long_texts() {
        check(
            "session \"\"\"\n  one t$0wo\n  three\n\"\"\"\n",
            expect![[r#"
                "two"
                "one two"
                "\n  one two\n  three\n"
                "\"\"\"\n  one two\n  three\n\"\"\""
                "session \"\"\"\n  one two\n  three\n\"\"\""
                "session \"\"\"\n  one two\n  three\n\"\"\"\n""#]],
        );
    }

    #[test]
    fn empty_file() {
        check("$0", expect![[r#""""#]]);
    }
}
