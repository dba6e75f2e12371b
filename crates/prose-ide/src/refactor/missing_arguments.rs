//! Arguments that a call lacks, with a variable of their name where there is one.

use prose_hir::DefKind;
use prose_syntax::ast::{self, AstNode};
use prose_syntax::{SyntaxKind, TextRange, TextSize};

use super::{Context, Place};
use crate::types::{CodeAction, RefactorKind, TextEdit};
use crate::{describe, names};

pub(super) fn missing_arguments(ctx: &Context<'_>, place: &Place, out: &mut Vec<CodeAction>) -> Option<()> {
    let call = place
        .token
        .parent_ancestors()
        .find(|it| matches!(it.kind(), SyntaxKind::DO_CALL_EXPR | SyntaxKind::CALL_EXPR))?;
    let (callee, args) = match ast::DoCallExpr::cast(call.clone()) {
        Some(it) => (it.callee()?, it.args()),
        None => {
            let it = ast::CallExpr::cast(call)?;
            let ast::Expr::Name(name) = it.callee()? else {
                return None;
            };
            (name, it.args())
        }
    };
    let callee = callee.syntax().text_range();
    let at = place.piece.up(callee);
    let found = names::at(ctx.db, ctx.source, at.start())?.definition;
    // All that is taken, and whether it has to be given.
    let taken: Vec<(String, bool)> = match found.kind {
        DefKind::Block => {
            let block = ast::BlockDef::cast(names::node(ctx.db, &found)?)?;
            let params = block.params()?.params().filter_map(|it| it.name());
            params.map(|it| (it.text(), true)).collect()
        }
        DefKind::Import => {
            let contract = describe::contract(ctx.db, &found)?;
            let inputs = contract.inputs.iter();
            inputs.map(|it| (it.0.to_string(), !it.1)).collect()
        }
        _ => return None,
    };
    let given: Vec<ast::Arg> = args.iter().flat_map(|it| it.args()).collect();
    let by_name: Vec<String> = given
        .iter()
        .filter_map(|it| it.name())
        .map(|it| it.text())
        .collect();
    let by_place = given.len() - by_name.len();
    let missing: Vec<&String> = taken
        .iter()
        .skip(by_place)
        .filter(|(name, needed)| *needed && !by_name.contains(name))
        .map(|it| &it.0)
        .collect();
    let visible = names::variables(ctx.db, ctx.source, at.start());
    let list: Vec<String> = missing
        .iter()
        .map(|name| match visible.iter().any(|it| it.name.as_str() == *name) {
            true => format!("{name}: {name}"),
            false => format!("{name}: \"\""),
        })
        .collect();
    let title = match missing.as_slice() {
        [] => return None,
        [name] => format!("Add the missing argument `{name}`"),
        many => format!("Add the {} missing arguments", many.len()),
    };
    let list = list.join(", ");
    let (local, insert) = match (&args, given.last()) {
        (Some(_), Some(last)) => (last.syntax().text_range().end(), format!(", {list}")),
        (Some(args), None) => (args.syntax().text_range().start() + TextSize::from(1), list),
        (None, _) => (callee.end(), format!("({list})")),
    };
    let range = place.piece.up(TextRange::empty(local));
    out.push(ctx.action(title, RefactorKind::Rewrite, vec![TextEdit { range, insert }]));
    Some(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::refactor::tests::{Keeps, check, refused};

    const TITLE: &str = "Add the ";

    #[test]
    fn of_blocks_and_programs() {
        check(
            TITLE,
            Keeps::Nothing,
            "block f(a, b, c):\n  session \"{a} {b} {c}\"\nlet c = 1\ndo f$0(1)\n",
            expect![[r#"
                block f(a, b, c):
                  session "{a} {b} {c}"
                let c = 1
                do f(1, b: "", c: c)
            "#]],
        );
        check(
            TITLE,
            Keeps::Nothing,
            "block f(a):\n  session \"{a}\"\ndo$0 f # c\n",
            expect![[r#"
                block f(a):
                  session "{a}"
                do f(a: "") # c
            "#]],
        );
        check(
            TITLE,
            Keeps::Nothing,
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet topic = session \"t\"\nlet r = li$0b()\noutput r = r\n#- /lib.prose\ninput topic: \"What?\"\ninput more:\n  \"x\"\noutput o = session \"{topic}{more}\"\n",
            expect![[r#"
                use "lib.prose" as lib
                let topic = session "t"
                let r = lib(topic: topic, more: "")
                output r = r
            "#]],
        );
    }

    #[test]
    fn nothing_is_missing() {
        refused(TITLE, "block f(a):\n  session \"{a}\"\ndo$0 f(a: 1)\n");
        refused(TITLE, "block f(a):\n  session \"{a}\"\ndo$0 f(1)\n");
        refused(TITLE, "block f:\n  session \"x\"\ndo$0 f\n");
        refused(TITLE, "do$0 nothing\n");
    }
}
