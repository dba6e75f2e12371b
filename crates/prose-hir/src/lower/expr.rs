//! Expressions, which all statements that run are.

use prose_model::{
    Argument as ArgumentNode, Arm, BindKind, BindTarget, Catch, ChoiceOption as OptionNode, For as ForNode,
    Input, Loop as LoopNode, LoopTest, Name, Node, Op, Parallel, ParallelFor, Policy, RecordEntry,
    Session as SessionNode, Stage as StageNode, Strategy, Template as TemplateNode, TemplatePart, Try,
};
use prose_syntax::TextRange;

use super::{Lowerer, parts};
use crate::hir::*;
use crate::resolve::Binding;
use crate::scopes::DefKind;
use crate::view::Names;

impl Lowerer<'_> {
    /// Lowers an expression as the node with this id.
    pub(super) fn expr(&mut self, expr: &Expr, id: &str) -> Node {
        let op = self.op(expr, id);
        self.node(id, expr.range, op)
    }

    fn boxed(&mut self, expr: &Expr, id: String) -> Box<Node> {
        Box::new(self.expr(expr, &id))
    }

    // The constructs have functions of their own so that this one, which calls itself for every level of nesting,
    // needs little stack.
    fn op(&mut self, expr: &Expr, id: &str) -> Op {
        match &expr.kind {
            ExprKind::Missing | ExprKind::Null => Op::Null,
            ExprKind::Bool(value) => Op::Bool(*value),
            ExprKind::Number(value) => Op::Number(*value),
            ExprKind::Duration(text) => Op::Text(literal(text)),
            ExprKind::Text(text) => Op::Text(self.template(text, id)),
            ExprKind::Name(name) => self.name(name, expr.range),
            ExprKind::Judge { text, bare } => self.judge(text, bare.as_ref(), id),
            ExprKind::Break => Op::Break,
            ExprKind::Member { .. }
            | ExprKind::Index { .. }
            | ExprKind::List { .. }
            | ExprKind::Record(_)
            | ExprKind::Not(_)
            | ExprKind::Neg(_)
            | ExprKind::Binary { .. }
            | ExprKind::Arrow(_) => self.composed(expr, id),
            ExprKind::Session(it) => self.session(it, id),
            ExprKind::DoCall { .. } | ExprKind::Call { .. } => self.call(expr, id),
            ExprKind::Pipeline { source, stages } => self.pipeline(source, stages, id),
            ExprKind::Do(body) => Op::Do(self.body(body, id)),
            ExprKind::Parallel { mods, body } => self.parallel(mods, body, id),
            ExprKind::For(it) => self.for_loop(it, id),
            ExprKind::Repeat {
                count, index, body, ..
            } => self.repeat(count, index.as_ref(), body, id),
            ExprKind::Loop(it) => self.loop_(it, id),
            ExprKind::If { arms, otherwise } => self.conditional(arms, otherwise.as_deref(), id),
            ExprKind::Choice { criteria, options } => self.choice(criteria, options, id),
            ExprKind::Try {
                body,
                catches,
                finally,
            } => self.try_(body, catches, finally.as_deref(), id),
            ExprKind::Input { name, value, default } => {
                self.input(name.as_ref(), value.as_deref(), default.as_deref(), id)
            }
            ExprKind::Let { .. } | ExprKind::Output { .. } | ExprKind::Assign { .. } => {
                self.binding(expr, id)
            }
            ExprKind::Return { .. } | ExprKind::Throw(_) | ExprKind::Assert { .. } => self.leave(expr, id),
        }
    }

    fn composed(&mut self, expr: &Expr, id: &str) -> Op {
        let mut ids = parts(id);
        match &expr.kind {
            ExprKind::Member { of, key } => Op::Member {
                of: self.boxed(of, ids.next()),
                key: key.name.to_string(),
            },
            ExprKind::Index { of, index } => Op::Index {
                of: self.boxed(of, ids.next()),
                index: self.boxed(index, ids.next()),
            },
            ExprKind::List { items, .. } => {
                Op::List(items.iter().map(|it| self.expr(it, &ids.next())).collect())
            }
            ExprKind::Arrow(steps) => Op::Arrow(steps.iter().map(|it| self.expr(it, &ids.next())).collect()),
            ExprKind::Record(fields) => Op::Record(
                fields
                    .iter()
                    .map(|it| RecordEntry {
                        key: it.key.name.to_string(),
                        value: self.expr(&it.value, &ids.next()),
                    })
                    .collect(),
            ),
            ExprKind::Not(it) => Op::Not(self.boxed(it, ids.next())),
            ExprKind::Neg(it) => Op::Neg(self.boxed(it, ids.next())),
            ExprKind::Binary { op, lhs, rhs } => Op::Binary {
                op: *op,
                lhs: self.boxed(lhs, ids.next()),
                rhs: self.boxed(rhs, ids.next()),
            },
            _ => Op::Null,
        }
    }

    /// A name where a value is wanted.
    fn name(&self, name: &crate::Name, range: TextRange) -> Op {
        let agent = match self.names.get(&range) {
            Some(resolved) => resolved.binding == Binding::Global && resolved.kind == Some(DefKind::Agent),
            None => false,
        };
        if agent {
            Op::AgentMemory((*name).into())
        } else {
            Op::Name((*name).into())
        }
    }

    /// Whether a word is a value: something in the file, or in the program the part is contributed to, binds it.
    pub(super) fn is_value(&self, name: &crate::Name, range: TextRange) -> bool {
        let Some(resolved) = self.names.get(&range) else {
            return self.entry.has_value(name);
        };
        match resolved.binding {
            Binding::Unbound => self.entry.has_value(name),
            Binding::Global => resolved.kind == Some(DefKind::Agent),
            _ => true,
        }
    }

    fn judge(&mut self, text: &Template, bare: Option<&Ident>, id: &str) -> Op {
        match bare {
            Some(bare) if self.is_variable(bare) => Op::Name(bare.name.into()),
            _ => Op::Judge(self.template(text, id)),
        }
    }

    /// Whether the whole text of a discretion names a variable; an agent's name is just a word there.
    fn is_variable(&self, bare: &Ident) -> bool {
        self.names
            .get(&bare.range)
            .is_some_and(|it| !matches!(it.binding, Binding::Unbound | Binding::Global))
    }

    pub(super) fn template(&mut self, text: &Template, id: &str) -> TemplateNode {
        let mut ids = parts(id);
        let mut out: Vec<TemplatePart> = Vec::new();
        let push_text = |out: &mut Vec<TemplatePart>, text: &str| match out.last_mut() {
            Some(TemplatePart::Text(last)) => last.push_str(text),
            _ => out.push(TemplatePart::Text(text.to_owned())),
        };
        for part in &text.parts {
            match part {
                Part::Text(text) => push_text(&mut out, text),
                Part::Insert(it) => {
                    let id = ids.next();
                    let root = root_name(&it.value);
                    if root.is_some_and(|(name, range)| self.is_value(name, range)) {
                        let value = self.boxed(&it.value, id);
                        out.push(TemplatePart::Insert {
                            value,
                            verbatim: it.verbatim.to_string(),
                        });
                    } else {
                        push_text(&mut out, &it.verbatim);
                    }
                }
            }
        }
        TemplateNode { parts: out }
    }

    fn session(&mut self, it: &Session, id: &str) -> Op {
        let mut ids = parts(id);
        let label = it.text.as_ref().map(|text| {
            let id = ids.next();
            let op = Op::Text(self.template(text, &id));
            Box::new(self.node(&id, text.range, op))
        });
        let props = ids.next();
        Op::Session(Box::new(SessionNode {
            resume: it.resume,
            name: it.name.as_ref().map(|it| it.name.into()),
            agent: it.agent.as_ref().map(|it| it.name.into()),
            label,
            props: self.props(&it.props, &it.mods, &props),
        }))
    }

    fn call(&mut self, expr: &Expr, id: &str) -> Op {
        let (callee, args, by_do) = match &expr.kind {
            ExprKind::DoCall {
                callee: Some(callee),
                args,
            } => (callee, args, true),
            ExprKind::Call {
                callee: Some(callee),
                args,
            } => (callee, args, false),
            _ => return Op::Null,
        };
        let mut ids = parts(id);
        let args = args
            .iter()
            .map(|it| ArgumentNode {
                name: it.name.as_ref().map(|it| it.name.into()),
                value: self.expr(&it.value, &ids.next()),
            })
            .collect();
        let name = prose_model::Name::from(callee.name);
        let import = match self.names.get(&callee.range).and_then(|it| it.kind) {
            Some(DefKind::Import) => true,
            Some(_) => false,
            None => !by_do,
        };
        if import {
            Op::CallProgram { import: name, args }
        } else {
            Op::Call { block: name, args }
        }
    }

    fn pipeline(&mut self, source: &Expr, stages: &[Stage], id: &str) -> Op {
        let mut ids = parts(id);
        let source = self.boxed(source, ids.next());
        let item = || Name::new_static("item");
        let mut out = Vec::new();
        for stage in stages {
            let id = ids.next();
            out.push(match &stage.kind {
                StageKind::Missing => continue,
                StageKind::Map(body) => StageNode::Map {
                    item: item(),
                    body: self.body(body, &id),
                },
                StageKind::Filter(body) => StageNode::Filter {
                    item: item(),
                    body: self.body(body, &id),
                },
                StageKind::Pmap(body) => StageNode::Pmap {
                    item: item(),
                    body: self.body(body, &id),
                },
                StageKind::Reduce { params, body } => {
                    let mut names = params.iter().map(|it| Name::from(it.name));
                    StageNode::Reduce {
                        acc: names.next().unwrap_or_else(|| Name::new_static("acc")),
                        item: names.next().unwrap_or_else(item),
                        body: self.body(body, &id),
                    }
                }
                StageKind::Chunks(count) => StageNode::Chunks(match count {
                    Some(count) => self.boxed(count, id),
                    None => Box::new(self.node(&id, stage.range, Op::Number(1.0))),
                }),
            });
        }
        Op::Pipeline { source, stages: out }
    }

    fn parallel(&mut self, mods: &[Modifier], body: &Body, id: &str) -> Op {
        let mut branches = Vec::new();
        for stmt in &body.stmts {
            let StmtKind::Expr(it) = &stmt.kind else { continue };
            let id = format!("{id}.{}", branches.len());
            branches.push(match &it.kind {
                ExprKind::Assign {
                    name, path, value, ..
                } if path.is_empty() => {
                    let value = self.boxed(value, format!("{id}.0"));
                    let target = BindTarget::Name(name.name.into());
                    self.node(
                        &id,
                        it.range,
                        Op::Bind {
                            kind: BindKind::Branch,
                            target,
                            value,
                        },
                    )
                }
                _ => self.expr(it, &id),
            });
        }
        let join = self.join(mods, id);
        Op::Parallel(Parallel {
            branches,
            strategy: join.strategy,
            policy: join.policy,
            count: join.count,
            max: join.max,
        })
    }

    /// Strategy, policy and limits; the ids of the limits can't collide with those of branches.
    fn join(&mut self, mods: &[Modifier], id: &str) -> ParallelFor {
        let mut out = ParallelFor::default();
        for modifier in mods {
            let Some(value) = &modifier.value else { continue };
            let word = super::props::word(value);
            match modifier.name.as_ref().map(|it| it.name.as_str()) {
                None | Some("strategy" | "join") => match word.as_deref() {
                    Some("first" | "race") => out.strategy = Strategy::First,
                    Some("any") => out.strategy = Strategy::Any,
                    Some("all") => out.strategy = Strategy::All,
                    _ => {}
                },
                Some("on-fail") => match word.as_deref() {
                    Some("continue" | "collect") => out.policy = Policy::Continue,
                    Some("ignore") => out.policy = Policy::Ignore,
                    Some("fail-fast") => out.policy = Policy::FailFast,
                    _ => {}
                },
                Some("count") => out.count = Some(self.boxed(value, format!("{id}.count"))),
                Some("max") => out.max = Some(self.boxed(value, format!("{id}.max"))),
                Some(_) => {}
            }
        }
        out
    }

    fn for_loop(&mut self, it: &For, id: &str) -> Op {
        let mut ids = parts(id);
        let source = self.expr(&it.source, &ids.next());
        let body = self.body(&it.body, &ids.next());
        let parallel = it.parallel.then(|| self.join(&it.mods, id));
        let name = |ident: &Option<Ident>| ident.as_ref().map(|it| Name::from(it.name));
        let item = name(&it.item).unwrap_or_else(|| Name::new_static("item"));
        Op::For(Box::new(ForNode {
            item,
            index: name(&it.index),
            source,
            parallel,
            body,
        }))
    }

    fn repeat(&mut self, count: &Expr, index: Option<&Ident>, body: &Body, id: &str) -> Op {
        let mut ids = parts(id);
        let count = self.boxed(count, ids.next());
        let body = self.body(body, &ids.next());
        Op::Repeat {
            count,
            index: index.map(|it| it.name.into()),
            body,
        }
    }

    fn loop_(&mut self, it: &Loop, id: &str) -> Op {
        let mut ids = parts(id);
        let test = it.cond.as_ref().map(|cond| {
            let cond = self.expr(cond, &ids.next());
            if it.until {
                LoopTest::Until(cond)
            } else {
                LoopTest::While(cond)
            }
        });
        let body = self.body(&it.body, &ids.next());
        let max = modifier(&it.mods, "max").map(|max| match max {
            // `(max: {n})`
            Expr {
                kind: ExprKind::Record(fields),
                ..
            } if fields.len() == 1 => self.expr(&fields[0].value, &format!("{id}.max")),
            max => self.expr(max, &format!("{id}.max")),
        });
        let index = it.index.as_ref().map(|it| it.name.into());
        Op::Loop(Box::new(LoopNode {
            test,
            max,
            index,
            body,
        }))
    }

    fn conditional(&mut self, arms: &[(Expr, Body)], otherwise: Option<&Body>, id: &str) -> Op {
        let mut ids = parts(id);
        let mut out = Vec::new();
        for (cond, body) in arms {
            let cond = self.expr(cond, &ids.next());
            out.push(Arm {
                cond,
                body: self.body(body, &ids.next()),
            });
        }
        Op::If {
            arms: out,
            otherwise: otherwise.map(|it| self.body(it, &ids.next())),
        }
    }

    fn choice(&mut self, criteria: &Expr, options: &[ChoiceOption], id: &str) -> Op {
        let mut ids = parts(id);
        let criteria_id = ids.next();
        let criteria = match &criteria.kind {
            ExprKind::Judge { text, bare } => match bare {
                // The criterion is the value of a variable.
                Some(bare) if self.is_variable(bare) => self.inserted(criteria, bare, &criteria_id),
                _ => self.template(text, &criteria_id),
            },
            ExprKind::Text(text) => self.template(text, &criteria_id),
            ExprKind::Name(name) => {
                let ident = Ident {
                    name: *name,
                    range: criteria.range,
                };
                self.inserted(criteria, &ident, &criteria_id)
            }
            _ => literal(&self.source(criteria.range)),
        };
        let options = options
            .iter()
            .map(|it| {
                let id = ids.next();
                let template = it
                    .text
                    .as_ref()
                    .map(|text| self.template(text, &format!("{id}.label")));
                OptionNode {
                    label: it.label.clone(),
                    template: template.filter(|it| {
                        it.parts
                            .iter()
                            .any(|part| matches!(part, TemplatePart::Insert { .. }))
                    }),
                    src: self.src(it.range),
                    body: self.body(&it.body, &id),
                }
            })
            .collect();
        Op::Choice { criteria, options }
    }

    /// A text that is nothing but the value of a name.
    fn inserted(&mut self, at: &Expr, ident: &Ident, id: &str) -> TemplateNode {
        let op = self.name(&ident.name, ident.range);
        let value = Box::new(self.node(&format!("{id}.0"), at.range, op));
        TemplateNode {
            parts: vec![TemplatePart::Insert {
                value,
                verbatim: ident.name.to_string(),
            }],
        }
    }

    fn try_(
        &mut self,
        body: &Body,
        catches: &[(Option<Ident>, Body)],
        finally: Option<&Body>,
        id: &str,
    ) -> Op {
        let mut ids = parts(id);
        let body = self.body(body, &ids.next());
        let catch = catches.first().map(|(name, body)| Catch {
            name: name.as_ref().map(|it| it.name.into()),
            body: self.body(body, &ids.next()),
        });
        let finally = finally.map(|it| self.body(it, &ids.next()));
        Op::Try(Box::new(Try { body, catch, finally }))
    }

    fn input(&mut self, name: Option<&Ident>, value: Option<&Expr>, default: Option<&Expr>, id: &str) -> Op {
        let mut ids = parts(id);
        let mut out = Input {
            name: name.map(|it| it.name.into()).unwrap_or_default(),
            prompt: None,
            discretion: false,
            default: None,
        };
        match value {
            None => {}
            Some(Expr {
                kind: ExprKind::Missing,
                ..
            }) => {}
            Some(Expr {
                kind: ExprKind::Text(text),
                ..
            }) => out.prompt = Some(self.template(text, &ids.next())),
            Some(Expr {
                kind: ExprKind::Judge { text, .. },
                ..
            }) => {
                out.prompt = Some(self.template(text, &ids.next()));
                out.discretion = true;
            }
            Some(value) => out.default = Some(self.expr(value, &ids.next())),
        }
        if let (None, Some(default)) = (&out.default, default) {
            out.default = Some(self.expr(default, &ids.next()));
        }
        Op::Input(Box::new(out))
    }

    fn binding(&mut self, expr: &Expr, id: &str) -> Op {
        let mut ids = parts(id);
        match &expr.kind {
            ExprKind::Let {
                constant,
                target,
                value,
            } => {
                let value = self.boxed(value, ids.next());
                let target = match target {
                    LetTarget::Missing => return value.op,
                    LetTarget::Name(name) => BindTarget::Name(name.name.into()),
                    LetTarget::Record(names) => {
                        BindTarget::Record(names.iter().map(|it| it.name.into()).collect())
                    }
                };
                Op::Bind {
                    kind: if *constant { BindKind::Const } else { BindKind::Let },
                    target,
                    value,
                }
            }
            ExprKind::Output { name, value } => {
                let value = self.boxed(value, ids.next());
                Op::Bind {
                    kind: BindKind::Output,
                    target: BindTarget::Name(name.name.into()),
                    value,
                }
            }
            ExprKind::Assign {
                name, path, value, ..
            } => {
                let value = self.boxed(value, ids.next());
                let path = path.iter().map(|it| self.expr(it, &ids.next())).collect();
                Op::Assign {
                    name: name.name.into(),
                    path,
                    value,
                }
            }
            _ => Op::Null,
        }
    }

    fn leave(&mut self, expr: &Expr, id: &str) -> Op {
        let mut ids = parts(id);
        match &expr.kind {
            ExprKind::Return { value, .. } => Op::Return(value.as_ref().map(|it| self.boxed(it, ids.next()))),
            ExprKind::Throw(value) => Op::Throw(value.as_ref().map(|it| self.boxed(it, ids.next()))),
            ExprKind::Assert { cond, message } => Op::Assert {
                cond: self.boxed(cond, ids.next()),
                message: message.as_ref().map(|it| self.boxed(it, ids.next())),
            },
            _ => Op::Null,
        }
    }
}

/// A text without interpolations.
pub(super) fn literal(text: &str) -> TemplateNode {
    let parts = if text.is_empty() {
        Vec::new()
    } else {
        vec![TemplatePart::Text(text.to_owned())]
    };
    TemplateNode { parts }
}

/// The name that an interpolation begins with.
fn root_name(value: &Expr) -> Option<(&crate::Name, TextRange)> {
    match &value.kind {
        ExprKind::Name(name) => Some((name, value.range)),
        ExprKind::Member { of, .. } | ExprKind::Index { of, .. } => root_name(of),
        _ => None,
    }
}
