//! `(max: N)` for a loop that has none.

use prose_syntax::ast::{self, AstNode, HasModifiers};
use prose_syntax::{SyntaxKind, TextRange};

use super::{Context, Place};
use crate::types::{CodeAction, RefactorKind, TextEdit};

pub(super) fn loop_limit(ctx: &Context<'_>, place: &Place, out: &mut Vec<CodeAction>) -> Option<()> {
    let found = place.token.parent_ancestors().find_map(|it| match it.kind() {
        // From inside its body a loop is far away.
        SyntaxKind::BODY => Some(None),
        SyntaxKind::LOOP_EXPR => Some(ast::LoopExpr::cast(it)),
        _ => None,
    })??;
    let node = found.syntax();
    if found.modifiers().next().is_some() {
        return None;
    }
    let keyword = node
        .children_with_tokens()
        .find(|it| it.kind() == SyntaxKind::LOOP_KW)?;
    let end = match found.condition() {
        Some(condition) => condition.syntax().text_range().end(),
        None => keyword.text_range().end(),
    };
    let edit = TextEdit {
        range: TextRange::empty(piece_end(place, end)),
        insert: " (max: 10)".to_owned(),
    };
    out.push(ctx.action("Add `(max: 10)`", RefactorKind::Rewrite, vec![edit]));
    Some(())
}

fn piece_end(place: &Place, end: prose_syntax::TextSize) -> prose_syntax::TextSize {
    place.piece.up(TextRange::empty(end)).start()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Add `(max: 10)`";

    #[test]
    fn loops_get_a_limit() {
        check(
            TITLE,
            Keeps::Texts,
            "lo$0op until **done** as i: # c\n  session \"x {i}\"\n",
            expect![[r#"
                loop until **done** (max: 10) as i: # c
                  session "x {i}"
            "#]],
        );
        check(
            TITLE,
            Keeps::Texts,
            "loop while **mo$0re**:\n  session \"x\"\n",
            expect![[r#"
                loop while **more** (max: 10):
                  session "x"
            "#]],
        );
    }

    #[test]
    fn other_places_are_silent() {
        refused(TITLE, "lo$0op until **done** (max: 3):\n  session \"x\"\n");
        refused(TITLE, "loop until **done**:\n  sess$0ion \"x\"\n");
        // The fix of the lint says it already.
        refused(TITLE, "lo$0op:\n  session \"x\"\n");
    }
}
