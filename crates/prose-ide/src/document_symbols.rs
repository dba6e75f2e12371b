//! The outline of a file.

use prose_hir::{FileId, RootDatabase};
use prose_syntax::ast::{self, AstNode, HasProperties, LetStmt, Target};
use prose_syntax::{SyntaxKind, SyntaxNode, TextRange, TextSize, WalkEvent};
use rustc_hash::FxHashSet;

use crate::types::{SymbolKind, SymbolNode};
use crate::{describe, tree};

pub(crate) fn document_symbols(db: &RootDatabase, file: FileId) -> Vec<SymbolNode> {
    let Some(source) = tree::source(db, file) else {
        return Vec::new();
    };
    let mut outline = Outline::default();
    for piece in tree::pieces(db, source) {
        outline.collect(&piece.root, piece.start);
    }
    outline.symbols
}

/// The declarations of one frame: the top level or a block. A name has one slot there, so it is listed once.
#[derive(Default)]
struct Outline {
    symbols: Vec<SymbolNode>,
    seen: FxHashSet<String>,
}

impl Outline {
    fn collect(&mut self, root: &SyntaxNode, base: TextSize) {
        let mut walk = root.preorder();
        while let Some(event) = walk.next() {
            let WalkEvent::Enter(node) = event else { continue };
            if node == *root {
                continue;
            }
            self.declaration(&node, base);
            // A block is a frame of its own; in an agent nothing is declared.
            if matches!(node.kind(), SyntaxKind::BLOCK_DEF | SyntaxKind::AGENT_DEF) {
                walk.skip_subtree();
            }
        }
    }

    fn declaration(&mut self, node: &SyntaxNode, base: TextSize) {
        let full = node.text_range() + base;
        match node.kind() {
            SyntaxKind::AGENT_DEF => {
                let Some(agent) = ast::AgentDef::cast(node.clone()) else {
                    return;
                };
                let detail = agent
                    .property("model")
                    .and_then(|it| describe::property_value(&it));
                self.push(agent.name(), SymbolKind::Agent, detail, full, base, Vec::new());
            }
            SyntaxKind::BLOCK_DEF => {
                let Some(block) = ast::BlockDef::cast(node.clone()) else {
                    return;
                };
                let mut inner = Outline::default();
                inner.collect(node, base);
                let detail = block.params().map(|it| describe::params(&it));
                self.push(block.name(), SymbolKind::Block, detail, full, base, inner.symbols);
            }
            SyntaxKind::USE_STMT => {
                let Some(used) = ast::UseStmt::cast(node.clone()) else {
                    return;
                };
                let Some(path) = used.path().and_then(|it| it.string()) else {
                    return;
                };
                match used.alias() {
                    Some(alias) => {
                        self.push(
                            Some(alias),
                            SymbolKind::Import,
                            Some(path.text()),
                            full,
                            base,
                            Vec::new(),
                        );
                    }
                    None => {
                        let Some(name) = prose_hir::paths::default_name(&path.text()) else {
                            return;
                        };
                        let name = name.to_string();
                        let focus = path.content_range() + base;
                        self.add(
                            name,
                            SymbolKind::Import,
                            Some(path.text()),
                            full,
                            focus,
                            Vec::new(),
                        );
                    }
                }
            }
            SyntaxKind::INPUT_STMT => {
                let name = ast::InputStmt::cast(node.clone()).and_then(|it| it.name());
                self.push(
                    name,
                    SymbolKind::Input,
                    Some("input".into()),
                    full,
                    base,
                    Vec::new(),
                );
            }
            SyntaxKind::OUTPUT_STMT => {
                let name = ast::OutputStmt::cast(node.clone()).and_then(|it| it.name());
                self.push(
                    name,
                    SymbolKind::Output,
                    Some("output".into()),
                    full,
                    base,
                    Vec::new(),
                );
            }
            SyntaxKind::LET_STMT => {
                let Some(binding) = LetStmt::cast(node.clone()) else {
                    return;
                };
                let kind = if binding.is_const() {
                    SymbolKind::Constant
                } else {
                    SymbolKind::Variable
                };
                let word = if binding.is_const() { "const" } else { "let" };
                let names = binding
                    .name()
                    .into_iter()
                    .chain(binding.pattern().into_iter().flat_map(|it| it.names()));
                for name in names {
                    self.push(Some(name), kind, Some(word.into()), full, base, Vec::new());
                }
            }
            SyntaxKind::ASSIGN_STMT => {
                let Some(Target::Name(name)) = ast::AssignStmt::cast(node.clone()).and_then(|it| it.target())
                else {
                    return;
                };
                let focus = name.syntax().text_range() + base;
                let detail = node
                    .parent()
                    .and_then(|it| it.parent())
                    .filter(|it| it.kind() == SyntaxKind::PARALLEL_EXPR)
                    .map(|_| "branch".to_owned());
                self.add(name.text(), SymbolKind::Variable, detail, full, focus, Vec::new());
            }
            SyntaxKind::SESSION_EXPR => {
                let name = ast::SessionExpr::cast(node.clone()).and_then(|it| it.name());
                self.push(
                    name,
                    SymbolKind::Variable,
                    Some("session".into()),
                    full,
                    base,
                    Vec::new(),
                );
            }
            SyntaxKind::RESUME_EXPR => {
                let name = ast::ResumeExpr::cast(node.clone()).and_then(|it| it.name());
                self.push(
                    name,
                    SymbolKind::Variable,
                    Some("resume".into()),
                    full,
                    base,
                    Vec::new(),
                );
            }
            _ => {}
        }
    }

    fn push(
        &mut self,
        name: Option<ast::Name>,
        kind: SymbolKind,
        detail: Option<String>,
        full: TextRange,
        base: TextSize,
        children: Vec<SymbolNode>,
    ) {
        if let Some(name) = name {
            let focus = name.syntax().text_range() + base;
            self.add(name.text(), kind, detail, full, focus, children);
        }
    }

    fn add(
        &mut self,
        name: String,
        kind: SymbolKind,
        detail: Option<String>,
        full_range: TextRange,
        focus_range: TextRange,
        children: Vec<SymbolNode>,
    ) {
        let declared_again =
            matches!(kind, SymbolKind::Variable | SymbolKind::Output) && self.seen.contains(&name);
        if name.is_empty() || (declared_again && kind == SymbolKind::Variable) {
            return;
        }
        self.seen.insert(name.clone());
        self.symbols.push(SymbolNode {
            name,
            kind,
            detail,
            full_range,
            focus_range,
            children,
        });
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::SymbolNode;
    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        fn show(nodes: &[SymbolNode], depth: usize, out: &mut String) {
            for node in nodes {
                let detail = node
                    .detail
                    .as_deref()
                    .map(|it| format!(" · {it}"))
                    .unwrap_or_default();
                out.push_str(&format!(
                    "{}{} {}{detail}\n",
                    "  ".repeat(depth),
                    node.kind.as_str(),
                    node.name
                ));
                show(&node.children, depth + 1, out);
            }
        }
        let setup = setup(fixture);
        let mut out = String::new();
        show(
            &setup.analysis.document_symbols(setup.main()).unwrap(),
            0,
            &mut out,
        );
        expect.assert_eq(&out);
    }

    #[test]
    fn everything_declared() {
        check(
            r#"
            use "alice/research" as res
            use "bob/critique"
            input topic: "What?"
            agent writer:
              model: opus
              prompt: "x"
            agent plain:
              prompt: "y"
            block review(text, depth):
              let first = session "x"
              block inner:
                let deep = session "y"
              output verdict = session "z"
            block nothing:
              session "x"
            let a = session: writer
            const b = 2
            let { k, l } = res(topic: topic)
            a = session "again"
            fresh = session "once"
            fresh = session "twice"
            parallel:
              p = session "1"
              session q: writer
            for item in [1]:
              let inside = session "x"
            output result = a
            "#,
            expect![[r#"
                program res · alice/research
                program critique · bob/critique
                input topic · input
                agent writer · opus
                agent plain
                block review · (text, depth)
                  variable first · let
                  block inner
                    variable deep · let
                  output verdict · output
                block nothing
                variable a · let
                constant b · const
                variable k · let
                variable l · let
                variable fresh
                variable p · branch
                variable q · session
                variable inside · let
                output result · output
            "#]],
        );
    }

    #[test]
    fn unfinished_declarations() {
        check("agent \nblock \nlet \nsession \"x\"\n", expect![""]);
    }
}
