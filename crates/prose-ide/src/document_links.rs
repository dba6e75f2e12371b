//! Paths that can be followed: those of `use`, and of `persist:` where it is one.

use prose_hir::paths::{self, TargetKind};
use prose_hir::{FileId, RootDatabase};
use prose_model::vocabulary;
use prose_syntax::ast::{self, AstNode, Expr, PropertyValue};

use crate::tree;
use crate::types::{DocumentLink, LinkTarget};

pub(crate) fn document_links(db: &RootDatabase, file: FileId) -> Vec<DocumentLink> {
    let Some(source) = tree::source(db, file) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for piece in tree::pieces(db, source) {
        for node in piece.root.descendants() {
            if let Some(used) = ast::UseStmt::cast(node.clone()) {
                let Some(path) = used.path().and_then(|it| it.string()) else {
                    continue;
                };
                let text = path.text();
                let target = match prose_hir::used_file(db, source, &text) {
                    Some(used) => LinkTarget::File(used.id(db)),
                    None if paths::target_kind(&text) == TargetKind::Url => LinkTarget::Url(text),
                    None => continue,
                };
                out.push(DocumentLink {
                    range: piece.up(path.content_range()),
                    target,
                });
            } else if let Some(property) = ast::Property::cast(node)
                && property.key().is_some_and(|it| it.text() == "persist")
                && let Some(PropertyValue::Expr(Expr::Literal(literal))) = property.value()
                && let Some(string) = literal.string()
            {
                let text = string.text();
                let is_scope = vocabulary::property("persist")
                    .is_some_and(|it| it.values.iter().any(|it| it.word == text));
                if !is_scope && !text.trim().is_empty() {
                    out.push(DocumentLink {
                        range: piece.up(string.content_range()),
                        target: LinkTarget::Path(text),
                    });
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let found = setup.analysis.document_links(file).unwrap();
        let shown: Vec<String> = found
            .into_iter()
            .map(|it| format!("{} {:?}", setup.slice(file, it.range), it.target))
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn what_can_be_followed() {
        check(
            "#- /main.prose\nuse \"lib.prose\"\nuse \"alice/x\"\nuse \"https://example.org/y.prose\" as y\nuse \"missing.prose\"\nagent a:\n  persist: \"notes/a\"\nagent b:\n  persist: project\n#- /lib.prose\nblock f:\n  session \"x\"\n",
            expect![[r#"
                lib.prose File(FileId(1))
                https://example.org/y.prose Url("https://example.org/y.prose")
                notes/a Path("notes/a")"#]],
        );
    }
}
