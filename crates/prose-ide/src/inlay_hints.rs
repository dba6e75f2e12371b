//! What a reader would have to look up: the agent and model behind a bound name, the parameter that an argument is for, the
//! limit of a loop that has none of its own.

use prose_hir::{DefKind, RootDatabase, SourceFile};
use prose_model::arguments::{assign, input_name};
use prose_model::vocabulary::LOOP_LIMIT;
use prose_syntax::ast::{self, AstNode, Expr, HasModifiers};
use prose_syntax::{SyntaxNode, TextRange, TextSize};

use crate::types::{FileRange, InlayHint, InlayKind};
use crate::{describe, markdown, names, tree};

/// Longest text of a hint, in characters.
const LONGEST: usize = 40;

pub(crate) fn inlay_hints(db: &RootDatabase, range: FileRange) -> Vec<InlayHint> {
    let Some(source) = tree::source(db, range.file) else {
        return Vec::new();
    };
    let whole = TextRange::up_to(TextSize::of(&*source.text(db)));
    let Some(range) = whole.intersect(range.range) else {
        return Vec::new();
    };
    let mut hints = Hints {
        db,
        source,
        found: Vec::new(),
    };
    for piece in tree::pieces_in(db, source, range) {
        for node in piece.root.descendants() {
            if piece.up(node.text_range()).intersect(range).is_some() {
                hints.node(&piece, &node);
            }
        }
    }
    let mut found = hints.found;
    found.retain(|it| range.contains_inclusive(it.offset));
    found.sort_by_key(|it| it.offset);
    found
}

struct Hints<'a> {
    db: &'a RootDatabase,
    source: SourceFile,
    found: Vec<InlayHint>,
}

impl Hints<'_> {
    fn node(&mut self, piece: &tree::Piece, node: &SyntaxNode) {
        if let Some(value) = describe::value_of(node) {
            let name = match ast::Stmt::cast(node.clone()) {
                Some(ast::Stmt::Let(it)) => it.name().map(|it| it.syntax().text_range()),
                Some(ast::Stmt::Output(it)) => it.name().map(|it| it.syntax().text_range()),
                Some(ast::Stmt::Assign(it)) => match it.target() {
                    Some(ast::Target::Name(it)) => Some(it.syntax().text_range()),
                    _ => None,
                },
                _ => None,
            };
            if let Some(name) = name {
                self.session(piece, name, &value);
            }
            return;
        }
        match Expr::cast(node.clone()) {
            Some(Expr::DoCall(it)) => {
                if let (Some(callee), Some(args)) = (it.callee(), it.args()) {
                    self.arguments(piece, callee.syntax().text_range(), &args);
                }
            }
            Some(Expr::Call(it)) => {
                if let (Some(Expr::Name(callee)), Some(args)) = (it.callee(), it.args()) {
                    self.arguments(piece, callee.syntax().text_range(), &args);
                }
            }
            Some(Expr::Loop(it)) => self.limit(piece, &it),
            _ => {}
        }
    }

    /// `let draft: writer · opus = session: writer`
    fn session(&mut self, piece: &tree::Piece, name: TextRange, value: &Expr) {
        let (agent, own) = match value {
            Expr::Session(it) => (it.agent(), ast::HasProperties::property(it, "model")),
            Expr::Resume(it) => (it.agent(), ast::HasProperties::property(it, "model")),
            _ => return,
        };
        let agent = agent.and_then(|it| {
            let place = piece.up(it.syntax().text_range()).start();
            prose_hir::resolve_at(self.db, self.source, place).filter(|it| it.kind == DefKind::Agent)
        });
        let of_agent = || {
            let node = ast::AgentDef::cast(names::node(self.db, agent.as_ref()?)?)?;
            describe::property_value(&ast::HasProperties::property(&node, "model")?)
        };
        let model = own.and_then(|it| describe::property_value(&it)).or_else(of_agent);
        // The agent stands in the line itself; what can't be seen there is the model.
        let Some(model) = model else { return };
        let label = match &agent {
            Some(agent) => format!(": {} · {model}", agent.name),
            None => format!(": {model}"),
        };
        self.found.push(InlayHint {
            offset: piece.up(name).end(),
            label: markdown::excerpt(&label, 1, LONGEST),
            kind: InlayKind::Session,
            target: agent.as_ref().map(names::target),
        });
    }

    /// `do review(text: draft)`
    fn arguments(&mut self, piece: &tree::Piece, callee: TextRange, args: &ast::ArgList) {
        // Nothing to tell: all have names.
        if args.args().all(|it| it.name().is_some()) {
            return;
        }
        let Some(found) = names::at(self.db, self.source, piece.up(callee).start()) else {
            return;
        };
        let definition = found.definition;
        let parameters: Vec<String> = match definition.kind {
            DefKind::Block => prose_hir::block_params(self.db, self.source, &definition.name)
                .into_iter()
                .flatten()
                .map(|it| it.to_string())
                .collect(),
            DefKind::Import => describe::contract(self.db, &definition)
                .map(|it| it.inputs.iter().map(|it| it.0.to_string()).collect())
                .unwrap_or_default(),
            _ => return,
        };
        let args: Vec<ast::Arg> = args.args().collect();
        let known: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let own: Vec<Option<String>> = args.iter().map(|it| it.name().map(|it| it.text())).collect();
        let texts: Vec<Option<String>> = args
            .iter()
            .map(|it| match it.value()? {
                ast::Expr::Name(name) => Some(name.text()),
                _ => None,
            })
            .collect();
        let names: Vec<Option<&str>> = own
            .iter()
            .zip(&texts)
            .map(|(own, variable)| match definition.kind {
                DefKind::Import => input_name(&known, own.as_deref(), variable.as_deref()),
                _ => own.as_deref(),
            })
            .collect();
        let assigned = assign(&known, &names);
        for (arg, at) in args.iter().zip(assigned).filter(|(arg, _)| arg.name().is_none()) {
            let (Some(value), Some(parameter)) = (arg.value(), at.and_then(|at| parameters.get(at))) else {
                continue;
            };
            // `do review(draft)` where the parameter is `draft` says it already.
            if value.syntax().text() == parameter.as_str() {
                continue;
            }
            self.found.push(InlayHint {
                offset: piece.up(value.syntax().text_range()).start(),
                label: format!("{}:", markdown::excerpt(parameter, 1, LONGEST)),
                kind: InlayKind::Parameter,
                target: Some(names::target(&definition)),
            });
        }
    }

    /// `loop until **done** (max: 1000)`
    fn limit(&mut self, piece: &tree::Piece, it: &ast::LoopExpr) {
        let limited = it
            .modifiers()
            .any(|it| it.name().is_some_and(|it| it.text() == "max"));
        let keyword = it.syntax().first_token();
        let (None, Some(end)) = (it.condition(), keyword.map(|it| it.text_range().end())) else {
            return;
        };
        if !limited {
            self.found.push(InlayHint {
                offset: end + piece.start,
                label: format!(" (max: {LOOP_LIMIT})"),
                kind: InlayKind::LoopLimit,
                target: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::setup;
    use crate::{FileRange, TextRange, TextSize};

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let range = FileRange {
            file,
            range: TextRange::up_to(TextSize::of(setup.text(file))),
        };
        let mut text = setup.text(file).to_owned();
        for hint in setup.analysis.inlay_hints(range).unwrap().into_iter().rev() {
            text.insert_str(usize::from(hint.offset), &format!("«{}»", hint.label));
        }
        expect.assert_eq(&text);
    }

    #[test]
    fn sessions() {
        check(
            "agent writer:\n  model: opus\nagent plain:\n  prompt: \"x\"\nlet a = session: writer\nlet b = session \"x\"\n  model: haiku\nlet c = session \"y\"\nlet d = session: plain\noutput e = resume: writer\nparallel:\n  p = session: writer\n    model: sonnet\n",
            expect![[r#"
                agent writer:
                  model: opus
                agent plain:
                  prompt: "x"
                let a«: writer · opus» = session: writer
                let b«: haiku» = session "x"
                  model: haiku
                let c = session "y"
                let d = session: plain
                output e«: writer · opus» = resume: writer
                parallel:
                  p«: writer · sonnet» = session: writer
                    model: sonnet
            "#]],
        );
    }

    #[test]
    fn arguments() {
        check(
            "block f(text, depth):\n  session \"{text}{depth}\"\nlet text = 1\ndo f(text, 2)\ndo f(1, depth: 2)\ndo f(1, 2, 3)\n",
            expect![[r#"
                block f(text, depth):
                  session "{text}{depth}"
                let text = 1
                do f(text, «depth:»2)
                do f(«text:»1, depth: 2)
                do f(«text:»1, «depth:»2, 3)
            "#]],
        );
        check(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = lib(1)\n#- /lib.prose\ninput topic: \"?\"\nsession \"{topic}\"\n",
            expect![[r#"
                use "lib.prose" as lib
                let r = lib(«topic:»1)
            "#]],
        );
    }

    #[test]
    fn loops() {
        check(
            "loop until **done**:\n  session \"x\"\nloop until **done** (max: 2):\n  session \"x\"\nloop:\n  session \"x\"\n",
            expect![[r#"
                loop until **done**:
                  session "x"
                loop until **done** (max: 2):
                  session "x"
                loop« (max: 1000)»:
                  session "x"
            "#]],
        );
    }
}
