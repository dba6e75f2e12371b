//! What can be folded: constructs, lists, texts of several lines, comments, `use` statements.

use prose_hir::{FileId, RootDatabase};
use prose_syntax::{NodeOrToken, SyntaxKind, SyntaxNode, TextRange};

use crate::tree;
use crate::types::{Fold, FoldKind};

pub(crate) fn folds(db: &RootDatabase, file: FileId) -> Vec<Fold> {
    let Some(source) = tree::source(db, file) else {
        return Vec::new();
    };
    let text = source.text(db);
    let mut folds = Folds {
        text: &text,
        found: Vec::new(),
        comments: None,
        uses: None,
    };
    for piece in tree::pieces(db, source) {
        folds.collect(&piece);
    }
    folds.end_comments();
    folds.end_uses();
    let mut found = folds.found;
    found.sort_by_key(|it| (it.range.start(), std::cmp::Reverse(it.range.end()), it.kind));
    // Of several that begin in one line an editor can show only one: the longest.
    found.dedup_by(|later, first| {
        later.range.start() == first.range.start()
            || !has_line_end(&text, TextRange::new(first.range.start(), later.range.start()))
    });
    found
}

struct Folds<'a> {
    text: &'a str,
    found: Vec<Fold>,
    /// The comments below each other that were seen last, and how many.
    comments: Option<(TextRange, usize)>,
    /// Likewise `use` statements.
    uses: Option<(TextRange, usize)>,
}

impl Folds<'_> {
    fn collect(&mut self, piece: &tree::Piece) {
        for element in piece.root.descendants_with_tokens() {
            let range = piece.up(element.text_range());
            match element {
                NodeOrToken::Token(token) => match token.kind() {
                    SyntaxKind::COMMENT => self.comment(range),
                    SyntaxKind::STRING
                    | SyntaxKind::TRIPLE_STRING
                    | SyntaxKind::DISCRETION
                    | SyntaxKind::BLOCK_TEXT => {
                        self.comments_end_before(range);
                        self.push(range, FoldKind::Code);
                    }
                    _ => {}
                },
                NodeOrToken::Node(node) => {
                    if node.kind() == SyntaxKind::USE_STMT {
                        self.used(range);
                    }
                    if folds_whole(node.kind()) || holds_body(&node) {
                        let first = node.first_token();
                        let start = first.map_or(range.start(), |it| piece.up(it.text_range()).start());
                        let end = piece.up(trimmed(&node)).end();
                        if start <= end {
                            self.push(TextRange::new(start, end), FoldKind::Code);
                        }
                    }
                }
            }
        }
    }

    fn comment(&mut self, range: TextRange) {
        let line = self.text[..usize::from(range.start())]
            .rfind(['\n', '\r'])
            .map_or(0, |it| it + 1);
        // A comment behind code belongs to the code.
        if !self.text[line..usize::from(range.start())]
            .trim()
            .trim_start_matches('\u{feff}')
            .is_empty()
        {
            return;
        }
        match self.comments {
            Some((whole, count)) if self.adjoins(whole, range) => {
                self.comments = Some((whole.cover(range), count + 1));
            }
            _ => {
                self.end_comments();
                self.comments = Some((range, 1));
            }
        }
    }

    fn comments_end_before(&mut self, range: TextRange) {
        if self.comments.is_some_and(|it| it.0.end() <= range.start()) {
            self.end_comments();
        }
    }

    fn used(&mut self, range: TextRange) {
        match self.uses {
            Some((whole, count)) if self.only_blanks(whole, range) => {
                self.uses = Some((whole.cover(range), count + 1));
            }
            _ => {
                self.end_uses();
                self.uses = Some((range, 1));
            }
        }
    }

    fn end_comments(&mut self) {
        if let Some((range, count)) = self.comments.take()
            && count > 1
        {
            self.push(range, FoldKind::Comment);
        }
    }

    fn end_uses(&mut self) {
        if let Some((range, count)) = self.uses.take()
            && count > 1
        {
            self.push(range, FoldKind::Imports);
        }
    }

    /// Whether the second begins in the line below the end of the first.
    fn adjoins(&self, first: TextRange, second: TextRange) -> bool {
        let between = self.between(first, second);
        between.trim().is_empty() && between.replace("\r\n", "\n").matches(['\n', '\r']).count() == 1
    }

    fn only_blanks(&self, first: TextRange, second: TextRange) -> bool {
        self.between(first, second).trim().is_empty()
    }

    fn between(&self, first: TextRange, second: TextRange) -> &str {
        self.text
            .get(usize::from(first.end())..usize::from(second.start()))
            .unwrap_or("-")
    }

    fn push(&mut self, range: TextRange, kind: FoldKind) {
        if has_line_end(self.text, range) {
            self.found.push(Fold { range, kind });
        }
    }
}

fn has_line_end(text: &str, range: TextRange) -> bool {
    text[range].contains(['\n', '\r'])
}

/// Lists in brackets.
fn folds_whole(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::LIST_EXPR
            | SyntaxKind::OBJECT_EXPR
            | SyntaxKind::ARG_LIST
            | SyntaxKind::PARAM_LIST
            | SyntaxKind::MODIFIER_LIST
    )
}

/// A construct with a header line and lines below it.
fn holds_body(node: &SyntaxNode) -> bool {
    node.children().any(|it| {
        matches!(
            it.kind(),
            SyntaxKind::BODY
                | SyntaxKind::PROPERTY_LIST
                | SyntaxKind::OPTION_LIST
                | SyntaxKind::DASH_LIST
                | SyntaxKind::PIPE_OP
        )
    })
}

/// A node's range without blanks at its end. Of a construct with clauses only the part before the first, since each
/// clause is folded by itself.
fn trimmed(node: &SyntaxNode) -> TextRange {
    let clause = node.children().find(|it| {
        matches!(
            it.kind(),
            SyntaxKind::ELIF_CLAUSE
                | SyntaxKind::ELSE_CLAUSE
                | SyntaxKind::CATCH_CLAUSE
                | SyntaxKind::FINALLY_CLAUSE
        )
    });
    let last = match &clause {
        Some(clause) => clause.first_token().and_then(|it| it.prev_token()),
        None => node.last_token(),
    };
    let mut last = last;
    while let Some(token) = &last
        && token.kind() == SyntaxKind::WHITESPACE
    {
        last = token.prev_token();
    }
    let range = node.text_range();
    match last {
        Some(token) if token.text_range().end() >= range.start() => {
            TextRange::new(range.start(), token.text_range().end())
        }
        _ => TextRange::empty(range.start()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{FileRange, FoldKind, TextRange};

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let line = |at| {
            let range = TextRange::empty(at);
            let place = setup.place(FileRange { file, range });
            place.split(':').nth(1).unwrap_or_default().to_owned()
        };
        let folds = setup.analysis.folds(file).unwrap();
        let shown: Vec<String> = folds
            .into_iter()
            .map(|it| {
                let kind = match it.kind {
                    FoldKind::Code => "",
                    FoldKind::Comment => " comment",
                    FoldKind::Imports => " imports",
                };
                format!("{}-{}{kind}", line(it.range.start()), line(it.range.end()))
            })
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn constructs() {
        check(
            "agent a:\n  model: opus\n  permissions:\n    bash: deny\n\nblock f(x):\n  if true:\n    session \"x\"\n  elif false:\n    session \"y\"\n  else:\n    session \"z\"\n\nsession \"end\"\n",
            expect![[r#"
                1-4
                3-4
                6-12
                7-8
                9-10
                11-12"#]],
        );
        check(
            "choice **which**:\n  option \"a\":\n    session \"x\"\n  option \"b\":\n    session \"y\"\ntry:\n  session \"x\"\ncatch:\n  session \"y\"\n",
            expect![[r#"
                1-5
                2-3
                4-5
                6-7
                8-9"#]],
        );
    }

    #[test]
    fn texts_and_lists() {
        check(
            "session \"\"\"\none\ntwo\n\"\"\"\nlet x = [\n  1,\n  2\n]\nif **one\ntwo**:\n  session \"x\"\n",
            expect![[r#"
                1-4
                5-8
                9-11"#]],
        );
    }

    #[test]
    fn comments_and_imports() {
        check(
            "# one\n# two\n\n# alone\nuse \"a/b\"\nuse \"c/d\"\n\nuse \"e/f\"\nsession \"x\" # behind\n# three\n# four\n",
            expect![[r#"
                1-2 comment
                5-8 imports
                10-11 comment"#]],
        );
    }

    #[test]
    fn nothing_in_one_line() {
        check("session \"x\"\nif true: session \"y\"\n", expect![""]);
        check("", expect![""]);
    }
}
