//! An agent made of a session's model, skills and permissions.

use prose_syntax::ast::{self, AstNode, HasProperties};
use prose_syntax::{SyntaxKind, TextRange, TextSize};

use super::lines::{above, line_above, moved, own_line};
use super::{Context, Place};
use crate::types::{CodeAction, RefactorKind, TextEdit};

/// What goes to the agent.
const MOVED: [&str; 3] = ["model", "skills", "permissions"];

pub(super) fn extract_agent(ctx: &Context<'_>, place: &Place, out: &mut Vec<CodeAction>) -> Option<()> {
    let session = place.token.parent_ancestors().find_map(ast::SessionExpr::cast)?;
    let node = session.syntax();
    let text = session.text()?;
    // A session with a text and properties below, and nothing else that would have to go somewhere.
    let plain = |kind| {
        matches!(
            kind,
            SyntaxKind::SESSION_KW | SyntaxKind::LITERAL | SyntaxKind::PROPERTY_LIST
        )
    };
    let mut parts = node.children_with_tokens().filter(|it| !it.kind().is_trivia());
    if !parts.all(|it| plain(it.kind())) || session.property("prompt").is_some() {
        return None;
    }
    let keyword = place.piece.up(session.keyword()?.text_range());
    let literal = place.piece.up(text.syntax().text_range());
    let mut lists = node.children().filter_map(ast::PropertyList::cast);
    let (list, None) = (lists.next()?, lists.next()) else {
        return None;
    };
    let mut properties = Vec::new();
    for property in list.properties() {
        let range = place.piece.up(property.syntax().text_range());
        let indent = own_line(ctx, range)?;
        properties.push((property.key()?.text(), range, indent));
    }
    let indent = properties.first()?.2;
    let agent: Vec<_> = properties
        .iter()
        .filter(|it| MOVED.contains(&it.0.as_str()))
        .collect();
    if agent.is_empty() {
        return None;
    }
    let name = ctx.fresh_name("new_agent");
    let newline = ctx.newline();
    let mut above_it = format!("agent {name}:{newline}");
    let mut edits = vec![
        TextEdit {
            range: TextRange::new(keyword.end(), literal.end()),
            insert: format!(": {name}"),
        },
        TextEdit {
            range: TextRange::empty(ctx.line_end(literal.end())),
            insert: format!("{newline}{}prompt: {}", " ".repeat(indent), ctx.slice(literal)),
        },
    ];
    for (_, range, column) in agent {
        // Names of the session's surroundings mean nothing to an agent.
        if !prose_hir::names_in(ctx.db, ctx.source, *range).is_empty() {
            return None;
        }
        let mut start = ctx.line_start(range.start());
        // Comments directly above a property are its own, but for what stands behind the session's text.
        while let Some(line) = line_above(ctx, start).filter(|it| it.start() > literal.end())
            && ctx.slice(line).trim_start().starts_with('#')
        {
            start = line.start();
        }
        let lines = TextRange::new(start, ctx.line_end(range.end()));
        above_it.push_str(&moved(ctx, lines, *column, 2)?);
        above_it.push_str(newline);
        // The line break in front goes with it.
        let before = line_above(ctx, start)?.end();
        edits.push(TextEdit {
            range: TextRange::new(before, lines.end()),
            insert: String::new(),
        });
    }
    above_it.push_str(newline);
    edits.push(TextEdit {
        range: TextRange::empty(above(ctx, place.top.start())),
        insert: above_it,
    });
    let edits = joined(edits);
    if ctx.keeps(&edits) {
        out.push(ctx.action(format!("Extract to agent `{name}`"), RefactorKind::Extract, edits));
    }
    Some(())
}

/// In the order of the text; those that touch become one.
fn joined(mut edits: Vec<TextEdit>) -> Vec<TextEdit> {
    edits.sort_by_key(|it| (it.range.start(), it.range.end()));
    let mut out: Vec<TextEdit> = Vec::new();
    for edit in edits {
        match out.last_mut().filter(|it| it.range.end() == edit.range.start()) {
            Some(last) if last.range.start() > TextSize::from(0) || !last.range.is_empty() => {
                last.range = last.range.cover(edit.range);
                last.insert.push_str(&edit.insert);
            }
            _ => out.push(edit),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Extract to agent";

    #[test]
    fn of_a_session_with_a_model() {
        check(
            TITLE,
            Keeps::Texts,
            "let t = 1\n# about x\nlet x = sess$0ion \"Say {t}\" # c\n  # cheap\n  model: haiku # d\n  context: t\n  permissions:\n    read: [\"*.md\"]\n    bash: deny\n  retry: 2\nsession \"y\"\n",
            expect![[r#"
                let t = 1
                agent new_agent:
                  # cheap
                  model: haiku # d
                  permissions:
                    read: ["*.md"]
                    bash: deny

                # about x
                let x = session: new_agent # c
                  prompt: "Say {t}"
                  context: t
                  retry: 2
                session "y"
            "#]],
        );
        check(
            TITLE,
            Keeps::Texts,
            "agent new_agent:\n  prompt: \"x\"\nif **a**:\n  session: new_agent\n  sess$0ion \"\"\"\n    a\n    b\n  \"\"\"\n      model: opus",
            expect![[r#"
                agent new_agent:
                  prompt: "x"
                agent new_agent_2:
                  model: opus

                if **a**:
                  session: new_agent
                  session: new_agent_2
                      prompt: """
                    a
                    b
                  """"#]],
        );
    }

    #[test]
    fn not_of_others() {
        refused(TITLE, "sess$0ion \"x\"\n");
        refused(TITLE, "sess$0ion \"x\"\n  retry: 2\n");
        refused(TITLE, "agent a:\n  prompt: \"x\"\nsess$0ion: a\n  model: opus\n");
        refused(TITLE, "sess$0ion \"x\"\n  prompt: \"y\"\n  model: opus\n");
        refused(TITLE, "sess$0ion \"x\" model: opus\n");
        refused(
            TITLE,
            "let d = \"x\"\nsess$0ion \"x\"\n  model: opus\n  permissions:\n    read: [\"{d}/*\"]\n",
        );
    }
}
