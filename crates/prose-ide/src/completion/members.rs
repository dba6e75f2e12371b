//! Keys behind a dot, where the value's shape is known.

use prose_hir::{DefKind, Definition, SourceFile};
use prose_model::vocabulary;
use prose_syntax::TextSize;
use prose_syntax::ast::{self, AstNode, Expr, HasBody};

use super::{Completions, Proposal, Rank};
use crate::describe;
use crate::names;
use crate::types::CompletionKind;

/// How many names are followed to find out a shape: `let a = b`, `let b = c` ….
const MAX_STEPS: usize = 8;

/// What is known of a value.
enum Shape {
    /// A caught error.
    Error,
    /// A list.
    List,
    /// A record with these keys; the expressions are their values where they are known.
    Record(Vec<(String, Option<Expr>)>),
}

impl Completions<'_> {
    /// Keys of the value that `path` leads to.
    pub(super) fn members(&mut self, path: &[String], at: TextSize) {
        let Some((root, keys)) = path.split_first() else {
            return;
        };
        let Some(def) = self.variable(self.source, at, root) else {
            return;
        };
        let mut shape = self.shape_of(&def, 0);
        for key in keys {
            shape = match shape {
                Some(Shape::Record(entries)) => entries
                    .into_iter()
                    .find(|(name, _)| name == key)
                    .and_then(|(_, value)| self.shape(&value?, &def, 0)),
                _ => None,
            };
        }
        let (words, entries) = match shape {
            Some(Shape::Error) => (vocabulary::ERROR_KEYS, Vec::new()),
            Some(Shape::List) => (vocabulary::LIST_KEYS, Vec::new()),
            Some(Shape::Record(entries)) => (&[][..], entries),
            None => return,
        };
        for word in words {
            self.add(Proposal::new(word.word, CompletionKind::Field, Rank::First).doc(word.doc));
        }
        for (key, value) in entries {
            let mut proposal = Proposal::new(key, CompletionKind::Field, Rank::First);
            if let Some(value) = value {
                proposal = proposal.detail(describe::maker(&value).replace('`', ""));
            }
            self.add(proposal);
        }
    }

    fn variable(&self, source: SourceFile, at: TextSize, name: &str) -> Option<Definition> {
        names::variables(self.db, source, at)
            .into_iter()
            .find(|it| it.name == name)?
            .definition
    }

    fn shape_of(&self, def: &Definition, steps: usize) -> Option<Shape> {
        if steps > MAX_STEPS {
            return None;
        }
        if def.kind == DefKind::Catch {
            return Some(Shape::Error);
        }
        let node = names::node(self.db, def)?;
        // `let { a } = …` binds a key, not the record.
        if ast::LetStmt::cast(node.clone()).is_some_and(|it| it.pattern().is_some()) {
            return None;
        }
        self.shape(&describe::value_of(&node)?, def, steps)
    }

    /// The shape of an expression in the file of `near`.
    fn shape(&self, value: &Expr, near: &Definition, steps: usize) -> Option<Shape> {
        match value {
            Expr::Paren(it) => self.shape(&it.inner()?.unparen(), near, steps + 1),
            Expr::Name(it) => {
                let name = it.text();
                let def = self.variable(near.source(), near.full_range.start(), &name)?;
                self.shape_of(&def, steps + 1)
            }
            Expr::Object(it) => {
                let entries: Vec<_> = it
                    .fields()
                    .filter_map(|field| Some((field.key_text()?, field.value())))
                    .collect();
                (!entries.is_empty()).then_some(Shape::Record(entries))
            }
            Expr::List(_) | Expr::Pipe(_) | Expr::For(_) | Expr::Repeat(_) | Expr::Loop(_) => {
                Some(Shape::List)
            }
            // A record when all branches are named, else a list.
            Expr::Parallel(it) => {
                let branches: Vec<Option<(String, Option<Expr>)>> = it
                    .body()?
                    .statements()
                    .map(|branch| match branch {
                        ast::Stmt::Assign(it) => match it.target()? {
                            ast::Target::Name(name) => Some((name.text(), it.value())),
                            _ => None,
                        },
                        _ => None,
                    })
                    .collect();
                match branches.into_iter().collect::<Option<Vec<_>>>() {
                    Some(entries) if !entries.is_empty() => Some(Shape::Record(entries)),
                    _ => Some(Shape::List),
                }
            }
            Expr::Call(it) => {
                let Some(Expr::Name(callee)) = it.callee() else {
                    return None;
                };
                let callee = callee.text();
                let import = names::globals(self.db, near.source(), DefKind::Import)
                    .into_iter()
                    .find(|def| def.name == callee.as_str())?;
                let contract = describe::contract(self.db, &import.definition?)?;
                Some(Shape::Record(
                    contract
                        .outputs
                        .iter()
                        .map(|name| (name.to_string(), None))
                        .collect(),
                ))
            }
            Expr::DoCall(it) => {
                let callee = it.callee()?.text();
                let block = names::globals(self.db, near.source(), DefKind::Block)
                    .into_iter()
                    .find(|def| def.name == callee.as_str())?;
                let node = names::node(self.db, &block.definition?)?;
                let mut outputs: Vec<String> = node
                    .descendants()
                    .filter_map(ast::OutputStmt::cast)
                    // `output VALUE` returns that value instead.
                    .map(|it| it.name().map(|name| name.text()))
                    .collect::<Option<_>>()?;
                outputs.sort();
                outputs.dedup();
                // One output is the value itself.
                (outputs.len() > 1)
                    .then(|| Shape::Record(outputs.into_iter().map(|name| (name, None)).collect()))
            }
            _ => None,
        }
    }
}
