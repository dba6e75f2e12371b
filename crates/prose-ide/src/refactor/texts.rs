//! `"…"` written as `"""…"""` and back, `**…**` as `***…***` and back. What is said stays the same.

use prose_syntax::ast::{self, AstNode};
use prose_syntax::text::{self, Segment};
use prose_syntax::{SyntaxKind, SyntaxToken};

use super::{Context, Place, said};
use crate::types::{CodeAction, RefactorKind, TextEdit};

pub(super) fn texts(ctx: &Context<'_>, place: &Place, out: &mut Vec<CodeAction>) {
    let token = &place.token;
    let (title, insert) = match token.kind() {
        SyntaxKind::STRING if may_be_long(token) => ("Write the text as `\"\"\"…\"\"\"`", long(ctx, place)),
        SyntaxKind::TRIPLE_STRING if may_be_long(token) => ("Write the text as `\"…\"`", short(token)),
        SyntaxKind::DISCRETION if text::is_star_block(token.text()) => {
            ("Write the condition as `**…**`", stars(token, "**"))
        }
        SyntaxKind::DISCRETION => ("Write the condition as `***…***`", stars(token, "***")),
        _ => return,
    };
    let Some(insert) = insert else { return };
    let range = place.piece.up(token.text_range());
    out.push(ctx.action(title, RefactorKind::Rewrite, vec![TextEdit { range, insert }]));
}

/// Whether a text is one for people or models: paths, labels, keys and values of other properties have one line.
fn may_be_long(token: &SyntaxToken) -> bool {
    let Some(literal) = token.parent().filter(|it| it.kind() == SyntaxKind::LITERAL) else {
        return false;
    };
    let short = |kind| {
        matches!(
            kind,
            SyntaxKind::USE_STMT
                | SyntaxKind::IMPORT_STMT
                | SyntaxKind::MODIFIER
                | SyntaxKind::CHOICE_OPTION
                | SyntaxKind::INDEX_EXPR
        )
    };
    if literal.parent().is_none_or(|it| short(it.kind())) {
        return false;
    }
    let property = literal.ancestors().find_map(ast::Property::cast);
    property.is_none_or(|it| {
        it.key()
            .is_some_and(|key| matches!(key.text().as_str(), "prompt" | "context"))
    })
}

fn long(ctx: &Context<'_>, place: &Place) -> Option<String> {
    let token = place.token.text();
    let content = text::content_range(SyntaxKind::STRING, token);
    if !text::is_terminated(SyntaxKind::STRING, token) {
        return None;
    }
    let raw = &token[content];
    // What stands at the end as an escape stays one: blanks before the closing quotes would go.
    let mut body = raw;
    while let Some(rest) = body.strip_suffix("\\n").filter(|it| {
        let slashes = it.len() - it.trim_end_matches('\\').len();
        slashes % 2 == 0
    }) {
        body = rest;
    }
    let tail = &raw[body.len()..];
    let newline = ctx.newline();
    let outer = ctx.indent(place.piece.up(place.token.text_range()).start());
    let mut lines = vec![String::new()];
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let line = lines.last_mut()?;
        match c {
            '\\' => match chars.next()? {
                'n' => lines.push(String::new()),
                // Three quotes would end the text.
                '"' if chars.peek() != Some(&'\\') => line.push('"'),
                other => line.extend(['\\', other]),
            },
            other => line.push(other),
        }
    }
    lines.last_mut()?.push_str(tail);
    let mut out = format!("\"\"\"{newline}");
    for line in &lines {
        if !line.is_empty() {
            out.push_str(outer);
            out.push_str("  ");
            out.push_str(line);
        }
        out.push_str(newline);
    }
    out.push_str(outer);
    out.push_str("\"\"\"");
    same(&place.token, SyntaxKind::TRIPLE_STRING, out)
}

fn short(token: &SyntaxToken) -> Option<String> {
    // Braces are escaped only where they would begin an interpolation otherwise.
    [false, true].into_iter().find_map(|braces| {
        let mut out = String::from("\"");
        for segment in text::segments(token.kind(), token.text(), 0.into()) {
            match segment {
                Segment::Text { text, .. } => {
                    for c in text.chars() {
                        match c {
                            '\\' => out.push_str("\\\\"),
                            '"' => out.push_str("\\\""),
                            '\n' => out.push_str("\\n"),
                            '\t' => out.push_str("\\t"),
                            '{' | '}' if braces => out.extend(['\\', c]),
                            c => out.push(c),
                        }
                    }
                }
                Segment::Interpolation(it) => out.push_str(&token.text()[it.range]),
            }
        }
        out.push('"');
        same(token, SyntaxKind::STRING, out)
    })
}

fn stars(token: &SyntaxToken, mark: &str) -> Option<String> {
    let content = &token.text()[text::content_range(SyntaxKind::DISCRETION, token.text())];
    // Where two stars would end over several lines depends on what follows.
    if mark == "**" && content.contains(['\n', '\r']) {
        return None;
    }
    same(token, SyntaxKind::DISCRETION, format!("{mark}{content}{mark}"))
}

/// The new token, when it is read as one token that says the same.
fn same(token: &SyntaxToken, kind: SyntaxKind, new: String) -> Option<String> {
    let program = format!("let x = {new}\n");
    let parse = prose_syntax::parse(&program);
    let read = parse
        .syntax()
        .descendants_with_tokens()
        .filter_map(|it| it.into_token())
        .find(|it| it.kind() == kind)?;
    let whole = read.text() == new && text::is_terminated(kind, &new) && !parse.has_errors();
    (whole && said(kind, &new) == said(token.kind(), token.text())).then_some(new)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const LONG: &str = "Write the text as `\"\"\"…\"\"\"`";
    const SHORT: &str = "Write the text as `\"…\"`";

    #[test]
    fn texts_over_several_lines() {
        check(
            LONG,
            Keeps::Program,
            "let t = 1\nsession \"Say$0 \\\"hi\\\" to {t}.\\n\\n  \\\\ \\{t} {\\\"a\\\": 1}\\n\" # c\n  context: t\n",
            expect![[r#"
                let t = 1
                session """
                  Say "hi" to {t}.

                    \\ \{t} {"a": 1}\n
                """ # c
                  context: t
            "#]],
        );
        check(
            LONG,
            Keeps::Program,
            "agent a:\n  prompt: \"$0x\"\nsession: a\n",
            expect![[r#"
                agent a:
                  prompt: """
                    x
                  """
                session: a
            "#]],
        );
        check(
            LONG,
            Keeps::Program,
            "session \"$0a \\\"\\\"\\\" b\"\n",
            expect![[r#"
                session """
                  a \"\"" b
                """
            "#]],
        );
    }

    #[test]
    fn texts_in_one_line() {
        check(
            SHORT,
            Keeps::Program,
            "let t = 1\nsession \"\"\"$0\n  Say \"hi\" to {t}: \\d \\{t} ${t} {\"a\": 1}\n\n    more\t.\n\"\"\"\n  context: t\n",
            expect![[r#"
                let t = 1
                session "Say \"hi\" to {t}: \\d \{t\} $\{t\} \{\"a\": 1\}\n\n  more\t."
                  context: t
            "#]],
        );
        check(
            SHORT,
            Keeps::Program,
            "session \"\"\"$0{\"a\": 1}\"\"\"\n",
            expect![[r#"
                session "{\"a\": 1}"
            "#]],
        );
    }

    #[test]
    fn discretions() {
        check(
            "Write the condition as `***…***`",
            Keeps::Program,
            "let t = 1\nif **is {t} goo$0d**:\n  session \"x\"\n",
            expect![[r#"
                let t = 1
                if ***is {t} good***:
                  session "x"
            "#]],
        );
        check(
            "Write the condition as `**…**`",
            Keeps::Program,
            "if ***is it goo$0d***:\n  session \"x\"\n",
            expect![[r#"
                if **is it good**:
                  session "x"
            "#]],
        );
        refused(
            "Write the condition",
            "if ***is it\n  goo$0d***:\n  session \"x\"\n",
        );
        refused(
            "Write the condition as `**",
            "if ***a ** goo$0d***:\n  session \"x\"\n",
        );
    }

    #[test]
    fn other_texts_stay() {
        refused("Write the text", "use \"a/$0b\"\n");
        refused(
            "Write the text",
            "choice **which**:\n  option \"$0a\":\n    session \"x\"\n",
        );
        refused("Write the text", "agent a:\n  model: \"$0opus\"\n");
        refused("Write the text", "parallel (\"fir$0st\"):\n  session \"x\"\n");
        refused("Write the text", "let o = { \"$0a\": 1 }\n");
        refused("Write the text", "session \"$0a\n");
        refused("Write the text", "session \"a\"\nlet x = \"$0b\" ]\n");
    }
}
