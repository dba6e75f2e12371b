//! Parameters of the block, inputs of the program that the call around the cursor is of.

use prose_hir::{DefKind, RootDatabase};
use prose_syntax::ast::{self, AstNode};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize};

use crate::types::{FilePosition, MarkupKind, SignatureHelp};
use crate::{describe, names, tree};

pub(crate) fn signature_help(
    db: &RootDatabase,
    position: FilePosition,
    markup: MarkupKind,
) -> Option<SignatureHelp> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let (piece, local) = tree::piece_at(db, source, offset)?;
    // Behind the last token of an unfinished call the cursor stands in blanks that belong to nobody.
    let token = piece.root.token_at_offset(local).left_biased()?;
    let inside = |node: &SyntaxNode| {
        let range = node.text_range();
        let closed = node
            .last_token()
            .is_some_and(|it| it.kind() == SyntaxKind::R_PAREN);
        range.start() < local && (!closed || local < range.end())
    };
    let list = token
        .parent_ancestors()
        .filter_map(ast::ArgList::cast)
        .find(|it| inside(it.syntax()))?;
    let call = list.syntax().parent()?;
    let callee = match call.kind() {
        SyntaxKind::DO_CALL_EXPR => ast::DoCallExpr::cast(call)?.callee()?.syntax().text_range(),
        SyntaxKind::CALL_EXPR => match ast::CallExpr::cast(call)?.callee()? {
            ast::Expr::Name(name) => name.syntax().text_range(),
            _ => return None,
        },
        _ => return None,
    };
    let found = names::at(db, source, piece.up(callee).start())?.definition;
    let parameters: Vec<String> = match found.kind {
        DefKind::Block => {
            let block = ast::BlockDef::cast(names::node(db, &found)?)?;
            let params = block.params().into_iter().flat_map(|it| it.params());
            params.filter_map(|it| it.name()).map(|it| it.text()).collect()
        }
        DefKind::Import => {
            let contract = describe::contract(db, &found)?;
            contract.inputs.iter().map(|it| it.0.to_string()).collect()
        }
        _ => return None,
    };
    let mut label = format!("{}(", found.name);
    let mut ranges = Vec::new();
    for (number, name) in parameters.iter().enumerate() {
        if number > 0 {
            label.push_str(", ");
        }
        let start = TextSize::of(label.as_str());
        label.push_str(name);
        ranges.push(TextRange::new(start, TextSize::of(label.as_str())));
    }
    label.push(')');
    let parts = describe::definition(db, &found);
    // The label says what the first part says.
    let documentation = describe::render(parts.get(1..).unwrap_or_default(), markup);
    Some(SignatureHelp {
        active: active(&list, local, &parameters),
        label,
        documentation: Some(documentation).filter(|it| !it.is_empty()),
        parameters: ranges,
    })
}

/// The parameter that the argument at an offset is for.
fn active(list: &ast::ArgList, at: TextSize, parameters: &[String]) -> Option<usize> {
    let commas = list
        .syntax()
        .children_with_tokens()
        .filter(|it| it.kind() == SyntaxKind::COMMA && it.text_range().end() <= at)
        .count();
    if let Some(name) = list.args().nth(commas).and_then(|it| it.name()) {
        return parameters.iter().position(|it| *it == name.text());
    }
    (commas < parameters.len()).then_some(commas)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::MarkupKind;
    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let found = setup
            .analysis
            .signature_help(setup.position(), MarkupKind::PlainText)
            .unwrap();
        let Some(found) = found else {
            return expect.assert_eq("nothing");
        };
        let mut label = found.label.clone();
        if let Some(range) = found.active.and_then(|it| found.parameters.get(it)) {
            label.insert(usize::from(range.end()), '>');
            label.insert(usize::from(range.start()), '<');
        }
        let documentation = found.documentation.unwrap_or_default();
        expect.assert_eq(format!("{label}\n{documentation}").trim_end());
    }

    #[test]
    fn blocks() {
        let block = "# Looks twice.\nblock f(a, b):\n  output x = session \"{a}{b}\"\n";
        check(
            &format!("{block}do f($0)\n"),
            expect![[r#"
            f(<a>, b)
            Looks twice.

            Gives `x`."#]],
        );
        check(
            &format!("{block}do f(1, $0)\n"),
            expect![[r#"
            f(a, <b>)
            Looks twice.

            Gives `x`."#]],
        );
        check(
            &format!("{block}do f(b: 1$0, a: 2)\n"),
            expect![[r#"
            f(a, <b>)
            Looks twice.

            Gives `x`."#]],
        );
        check(
            &format!("{block}do f(1, 2, $0)\n"),
            expect![[r#"
            f(a, b)
            Looks twice.

            Gives `x`."#]],
        );
        check(
            &format!("{block}do f(1$0\n"),
            expect![[r#"
            f(<a>, b)
            Looks twice.

            Gives `x`."#]],
        );
        check(
            &format!("{block}do f([1, $02], 3)\n"),
            expect![[r#"
            f(<a>, b)
            Looks twice.

            Gives `x`."#]],
        );
        check(&format!("{block}do f(1, 2)$0\n"), expect!["nothing"]);
    }

    #[test]
    fn programs() {
        check(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = lib(topic: $0)\n#- /lib.prose\ninput topic: \"?\"\ninput depth: 2\nsession \"{topic} {depth}\"\n",
            expect![[r#"
                lib(<topic>, depth)
                Inputs: `topic`, `depth` (has a default)"#]],
        );
        check("use \"alice/x\"\nlet r = x($0)\n", expect!["nothing"]);
    }
}
