//! From the bundle's tree to [`crate::code`]'s table.

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use prose_model::{
    Agent, BinaryOp, BindKind, BindTarget, Bundle, LoopTest, Name, Node, Op, Permission, Policy, Program,
    Props, Stage, Strategy, Template, TemplatePart,
};

use crate::code::{
    Body, CAgent, CArgs, CBlock, CBranch, CJoin, CNode, COp, COption, CPart, CPermission, CProgram, CProps,
    CSession, CStage, CTemplate, NodeId, Role, RoleKind, Target, is_construct,
};

/// Compiles every program of a bundle.
pub(crate) fn compile(bundle: &Arc<Bundle>) -> (Vec<CNode>, Vec<CProgram>) {
    let mut compiler = Compiler::default();
    let programs = bundle
        .programs
        .iter()
        .map(|program| compiler.program(program))
        .collect();
    (compiler.nodes, programs)
}

#[derive(Default)]
struct Compiler {
    nodes: Vec<CNode>,
    declared: IndexSet<Name>,
    /// Names bound so far in the current frame of the tree walk.
    binds: Vec<Name>,
    /// Whether the value of the construct that is being compiled is used: then its bodies' last values are.
    used: bool,
}

/// What the surroundings tell a node.
#[derive(Clone)]
struct Around {
    role: Role,
    target: Option<Target>,
    chained: bool,
    statement: bool,
    used: bool,
}

impl Around {
    const PLAIN: Around = Around {
        role: Role::VALUE,
        target: None,
        chained: false,
        statement: false,
        used: true,
    };
    fn role(role: Role) -> Around {
        Around {
            role,
            ..Around::PLAIN
        }
    }
}

impl Compiler {
    fn program(&mut self, program: &Program) -> CProgram {
        self.declared.clear();
        self.used = true;
        let agents = program
            .agents
            .iter()
            .map(|(name, agent)| (name.clone(), self.agent(agent)))
            .collect();
        let mut blocks = IndexMap::new();
        for (name, block) in &program.blocks {
            for param in &block.params {
                self.declares(param);
            }
            let body = self.body(&block.body, Role::VALUE);
            let max_depth = block.max_depth.unwrap_or(crate::DEFAULT_MAX_DEPTH);
            blocks.insert(
                name.clone(),
                CBlock {
                    params: block.params.clone(),
                    max_depth,
                    body,
                },
            );
        }
        let body = self.body(&program.body, Role::VALUE);
        let (leading, body) = self.split_leading(program, &body);
        CProgram {
            agents,
            blocks,
            leading,
            body,
            declared: std::mem::take(&mut self.declared),
        }
    }

    /// Takes the leading inputs out of the top level, except those whose prompt needs another one's answer.
    fn split_leading(&self, program: &Program, body: &Body) -> (Body, Body) {
        let mut names: IndexSet<&Name> = program
            .inputs
            .iter()
            .filter(|input| input.leading)
            .map(|input| &input.name)
            .collect();
        let all: IndexSet<&Name> = names.clone();
        let mut leading = Vec::new();
        let mut rest = Vec::new();
        for &node in body.iter() {
            let first = match &self.nodes[node as usize].op {
                COp::Input { name, prompt, .. } => {
                    let independent = prompt.as_ref().is_none_or(|prompt| {
                        !prompt.0.iter().any(
                            |part| matches!(part, CPart::Insert { base: Some(base), .. } if all.contains(base)),
                        )
                    });
                    independent && names.shift_remove(name)
                }
                _ => false,
            };
            if first {
                leading.push(node)
            } else {
                rest.push(node)
            }
        }
        (leading.into(), rest.into())
    }

    fn agent(&mut self, agent: &Agent) -> CAgent {
        let mut operands = Vec::new();
        let props = self.props(&agent.props, &mut operands);
        CAgent {
            persist: agent.persist.clone(),
            props,
            operands: operands.into(),
        }
    }

    fn declares(&mut self, name: &Name) {
        self.declared.insert(name.clone());
    }

    fn binds(&mut self, name: &Name) {
        self.declares(name);
        if !self.binds.contains(name) {
            self.binds.push(name.clone());
        }
    }

    /// Statements; `last` is the role of the last one.
    fn body(&mut self, nodes: &[Node], last: Role) -> Body {
        let end = nodes.len().saturating_sub(1);
        let used = self.used;
        nodes
            .iter()
            .enumerate()
            .map(|(i, node)| {
                let role = if i == end { last } else { Role::VALUE };
                self.node(
                    node,
                    &Around {
                        role,
                        statement: true,
                        used: i == end && used,
                        ..Around::PLAIN
                    },
                )
            })
            .collect()
    }

    /// Statements of another frame: what they bind is not bound here.
    fn frame_body(&mut self, nodes: &[Node]) -> Body {
        let outer = std::mem::take(&mut self.binds);
        let body = self.body(nodes, Role::VALUE);
        self.binds = outer;
        body
    }

    /// An operand: compiled, and its lifts noted.
    fn operand(&mut self, node: &Node, around: &Around, operands: &mut Vec<NodeId>) -> NodeId {
        let id = self.node(node, around);
        operands.extend_from_slice(&self.nodes[id as usize].lifts.clone());
        id
    }

    fn plain(&mut self, node: &Node, operands: &mut Vec<NodeId>) -> NodeId {
        self.operand(node, &Around::PLAIN, operands)
    }

    fn optional(&mut self, node: Option<&Node>, operands: &mut Vec<NodeId>) -> Option<NodeId> {
        node.map(|node| self.plain(node, operands))
    }

    fn template(&mut self, template: &Template, operands: &mut Vec<NodeId>) -> CTemplate {
        let parts = template.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => CPart::Text(text.as_str().into()),
            TemplatePart::Insert { value, verbatim } => CPart::Insert {
                base: base_name(value).cloned(),
                verbatim: verbatim.as_str().into(),
                value: self.plain(value, operands),
            },
        });
        CTemplate(parts.collect())
    }

    fn props(&mut self, props: &Props, operands: &mut Vec<NodeId>) -> CProps {
        let prompt = self.optional(props.prompt.as_deref(), operands);
        let context = props.context.as_ref().map(|context| {
            let entries = context.items.iter();
            entries
                .map(|entry| (entry.label.clone(), self.plain(&entry.value, operands)))
                .collect()
        });
        let model = self.optional(props.model.as_deref(), operands);
        let retry = self.optional(props.retry.as_deref(), operands);
        let skills = props
            .skills
            .iter()
            .map(|skill| self.plain(skill, operands))
            .collect();
        let permissions = props.permissions.iter().map(|(key, rule)| {
            let rule = match rule {
                Permission::Allow => CPermission::Allow,
                Permission::Deny => CPermission::Deny,
                Permission::Prompt => CPermission::Prompt,
                Permission::Patterns(nodes) => {
                    CPermission::Patterns(nodes.iter().map(|node| self.plain(node, operands)).collect())
                }
            };
            (key.clone(), rule)
        });
        let permissions = permissions.collect();
        CProps {
            model,
            prompt,
            context,
            retry,
            backoff: props.backoff,
            skills,
            permissions,
        }
    }

    fn args(&mut self, args: &[prose_model::Argument], operands: &mut Vec<NodeId>) -> CArgs {
        CArgs(
            args.iter()
                .map(|arg| (arg.name.clone(), self.plain(&arg.value, operands)))
                .collect(),
        )
    }

    fn join(
        &mut self,
        (strategy, policy): (Strategy, Policy),
        count: Option<&Node>,
        max: Option<&Node>,
        operands: &mut Vec<NodeId>,
    ) -> CJoin {
        CJoin {
            strategy,
            policy,
            count: self.optional(count, operands),
            max: self.optional(max, operands),
        }
    }

    fn push(&mut self, node: &Node, op: COp, operands: Vec<NodeId>, around: &Around) -> NodeId {
        let id = self.nodes.len() as NodeId;
        let construct = is_construct(&op);
        let operands: Body = operands.into();
        self.nodes.push(CNode {
            id: node.id.clone(),
            src: node.src,
            op,
            lifts: if construct { [id].into() } else { operands.clone() },
            operands,
            target: around.target.clone(),
            statement: around.statement,
            used: around.used,
        });
        id
    }

    /// A binary expression. Long left-leaning chains are walked in a loop, not by recursion.
    fn binary(&mut self, node: &Node, around: &Around) -> NodeId {
        let mut spine = Vec::new();
        let mut leftmost = node;
        let mut role = around.role;
        while let Op::Binary { op, lhs, rhs } = &leftmost.op {
            let logic = matches!(op, BinaryOp::And | BinaryOp::Or);
            let inner = if logic { role.operand() } else { Role::VALUE };
            spine.push((leftmost, *op, rhs, inner));
            leftmost = lhs;
            role = inner;
        }
        let mut left = self.node(leftmost, &Around::role(role));
        while let Some((node, op, rhs, inner)) = spine.pop() {
            let right = self.node(rhs, &Around::role(inner));
            let left_lifts = self.nodes[left as usize].lifts.clone();
            let right_lifts = self.nodes[right as usize].lifts.clone();
            let logic = matches!(op, BinaryOp::And | BinaryOp::Or);
            let around = if spine.is_empty() { around } else { &Around::PLAIN };
            left = if logic && !(left_lifts.is_empty() && right_lifts.is_empty()) {
                // The side that needs no model goes first.
                let swap = !left_lifts.is_empty() && right_lifts.is_empty();
                let (first, second) = if swap { (right, left) } else { (left, right) };
                self.push(
                    node,
                    COp::Logic {
                        or: op == BinaryOp::Or,
                        first,
                        second,
                    },
                    Vec::new(),
                    around,
                )
            } else {
                let operands = left_lifts.iter().chain(right_lifts.iter()).copied().collect();
                self.push(
                    node,
                    COp::Binary {
                        op,
                        lhs: left,
                        rhs: right,
                    },
                    operands,
                    around,
                )
            };
        }
        left
    }

    fn node(&mut self, node: &Node, around: &Around) -> NodeId {
        let outer = std::mem::replace(&mut self.used, around.used);
        let id = self.node_within(node, around);
        self.used = outer;
        id
    }

    fn node_within(&mut self, node: &Node, around: &Around) -> NodeId {
        let mut operands = Vec::new();
        let lifts = &mut operands;
        let op = match &node.op {
            Op::Binary { .. } => return self.binary(node, around),
            Op::Null => COp::Null,
            Op::Bool(value) => COp::Bool(*value),
            Op::Number(value) => COp::Number(*value),
            Op::Text(template) => COp::Text(self.template(template, lifts)),
            Op::Name(name) => COp::Name(name.clone()),
            Op::AgentMemory(name) => COp::AgentMemory(name.clone()),
            Op::Member { of, key } => COp::Member {
                of: self.plain(of, lifts),
                key: key.clone(),
            },
            Op::Index { of, index } => COp::Index {
                of: self.plain(of, lifts),
                index: self.plain(index, lifts),
            },
            Op::List(items) => COp::List(items.iter().map(|item| self.plain(item, lifts)).collect()),
            Op::Record(entries) => COp::Record(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), self.plain(&entry.value, lifts)))
                    .collect(),
            ),
            Op::Not(of) => COp::Not(self.operand(of, &Around::role(around.role.negated()), lifts)),
            Op::Neg(of) => COp::Neg(self.plain(of, lifts)),
            Op::Judge(text) => COp::Judge {
                text: self.template(text, lifts),
                role: around.role,
            },
            Op::Session(session) => {
                if let Some(name) = &session.name {
                    self.binds(name);
                }
                COp::Session(Box::new(CSession {
                    resume: session.resume,
                    name: session.name.clone(),
                    agent: session.agent.clone(),
                    label: self.optional(session.label.as_deref(), lifts),
                    props: self.props(&session.props, lifts),
                    chained: around.chained,
                }))
            }
            Op::Call { block, args } => COp::Call {
                block: block.clone(),
                args: self.args(args, lifts),
            },
            Op::CallProgram { import, args } => COp::CallProgram {
                import: import.clone(),
                args: self.args(args, lifts),
            },
            Op::Arrow(parts) => COp::Arrow(self.arrow(parts, around)),
            Op::Pipeline { source, stages } => {
                let source = self.plain(source, lifts);
                COp::Pipeline {
                    source,
                    stages: stages.iter().map(|stage| self.stage(stage, lifts)).collect(),
                }
            }
            Op::Do(body) => COp::Do(self.body(body, Role::VALUE)),
            Op::Parallel(parallel) => {
                let modifiers = (parallel.strategy, parallel.policy);
                let join = self.join(
                    modifiers,
                    parallel.count.as_deref(),
                    parallel.max.as_deref(),
                    lifts,
                );
                COp::Parallel {
                    branches: parallel.branches.iter().map(|b| self.branch(b)).collect(),
                    join,
                }
            }
            Op::For(f) => self.for_loop(f, lifts),
            Op::Repeat { count, index, body } => {
                let count = self.plain(count, lifts);
                index.iter().for_each(|name| self.declares(name));
                COp::Repeat {
                    count,
                    index: index.clone(),
                    body: self.body(body, Role::VALUE),
                }
            }
            Op::Loop(l) => self.condition_loop(l, lifts),
            Op::If { arms, otherwise } => COp::If {
                arms: arms
                    .iter()
                    .map(|arm| {
                        let cond = self.node(&arm.cond, &Around::role(Role::CONDITION));
                        (cond, self.body(&arm.body, Role::VALUE))
                    })
                    .collect(),
                otherwise: otherwise.as_ref().map(|body| self.body(body, Role::VALUE)),
            },
            Op::Choice { criteria, options } => COp::Choice {
                criteria: self.template(criteria, lifts),
                options: options
                    .iter()
                    .map(|option| COption {
                        label: match &option.template {
                            Some(template) => self.template(template, lifts),
                            None => CTemplate([CPart::Text(option.label.as_str().into())].into()),
                        },
                        body: self.body(&option.body, Role::VALUE),
                    })
                    .collect(),
            },
            Op::Try(t) => COp::Try {
                body: self.body(&t.body, Role::VALUE),
                catch: t.catch.as_ref().map(|catch| {
                    catch.name.iter().for_each(|name| self.declares(name));
                    (catch.name.clone(), self.body(&catch.body, Role::VALUE))
                }),
                finally: t.finally.as_ref().map(|body| {
                    self.used = false;
                    self.body(body, Role::VALUE)
                }),
            },
            Op::Input(input) => {
                self.binds(&input.name);
                COp::Input {
                    name: input.name.clone(),
                    prompt: input.prompt.as_ref().map(|prompt| self.template(prompt, lifts)),
                    discretion: input.discretion,
                    default: self.optional(input.default.as_ref(), lifts),
                }
            }
            Op::Bind { kind, target, value } => {
                let mut inner = Around::PLAIN;
                match target {
                    BindTarget::Name(name) => {
                        self.binds(name);
                        let (name, kind) = (name.clone(), Some(*kind));
                        inner.target = Some(Target {
                            name,
                            kind,
                            source: node.src,
                        });
                    }
                    BindTarget::Record(names) => names.iter().for_each(|name| self.binds(name)),
                }
                let value = self.operand(value, &inner, lifts);
                COp::Bind {
                    kind: *kind,
                    target: target.clone(),
                    value,
                }
            }
            Op::Assign { name, path, value } => {
                // Only declared, not bound: a loser that never got to assign leaves the variable as it was.
                self.declares(name);
                let mut inner = Around::PLAIN;
                if path.is_empty() {
                    inner.target = Some(Target {
                        name: name.clone(),
                        kind: None,
                        source: node.src,
                    });
                }
                let path = path.iter().map(|key| self.plain(key, lifts)).collect();
                COp::Assign {
                    name: name.clone(),
                    path,
                    value: self.operand(value, &inner, lifts),
                }
            }
            Op::Return(value) => COp::Return(self.optional(value.as_deref(), lifts)),
            Op::Break => COp::Break,
            Op::Throw(value) => COp::Throw(self.optional(value.as_deref(), lifts)),
            Op::Assert { cond, message } => COp::Assert {
                cond: self.operand(cond, &Around::role(Role::CONDITION), lifts),
                message: self.optional(message.as_deref(), &mut Vec::new()),
            },
        };
        self.push(node, op, operands, around)
    }

    fn arrow(&mut self, parts: &[Node], around: &Around) -> Body {
        let last = parts.len().saturating_sub(1);
        parts
            .iter()
            .enumerate()
            .map(|(i, part)| {
                let target = if i == last { around.target.clone() } else { None };
                self.node(
                    part,
                    &Around {
                        target,
                        chained: i > 0,
                        ..Around::PLAIN
                    },
                )
            })
            .collect()
    }

    fn stage(&mut self, stage: &Stage, lifts: &mut Vec<NodeId>) -> CStage {
        self.used = true;
        match stage {
            Stage::Map { item, body } => {
                self.declares(item);
                CStage::Map {
                    item: item.clone(),
                    body: self.body(body, Role::VALUE),
                }
            }
            Stage::Filter { item, body } => {
                self.declares(item);
                CStage::Filter {
                    item: item.clone(),
                    body: self.body(body, Role::CONDITION),
                }
            }
            Stage::Pmap { item, body } => {
                self.declares(item);
                CStage::Pmap {
                    item: item.clone(),
                    body: self.frame_body(body),
                }
            }
            Stage::Reduce { acc, item, body } => {
                self.declares(acc);
                self.declares(item);
                let body = self.body(body, Role::VALUE);
                CStage::Reduce {
                    acc: acc.clone(),
                    item: item.clone(),
                    body,
                }
            }
            Stage::Chunks(size) => CStage::Chunks(self.plain(size, lifts)),
        }
    }

    fn branch(&mut self, node: &Node) -> CBranch {
        let name = match &node.op {
            Op::Bind {
                kind: BindKind::Branch,
                target: BindTarget::Name(name),
                ..
            } => Some(name.clone()),
            _ => None,
        };
        let outer = std::mem::take(&mut self.binds);
        let id = self.node(
            node,
            &Around {
                statement: true,
                used: self.used,
                ..Around::PLAIN
            },
        );
        let binds = std::mem::replace(&mut self.binds, outer);
        binds.iter().for_each(|name| self.binds(name));
        CBranch {
            node: id,
            name,
            binds,
        }
    }

    fn for_loop(&mut self, f: &prose_model::For, lifts: &mut Vec<NodeId>) -> COp {
        let source = self.plain(&f.source, lifts);
        self.declares(&f.item);
        f.index.iter().for_each(|name| self.declares(name));
        let parallel = f.parallel.as_ref().map(|p| {
            self.join(
                (p.strategy, p.policy),
                p.count.as_deref(),
                p.max.as_deref(),
                lifts,
            )
        });
        let body = if parallel.is_some() {
            self.frame_body(&f.body)
        } else {
            self.body(&f.body, Role::VALUE)
        };
        COp::For {
            item: f.item.clone(),
            index: f.index.clone(),
            source,
            parallel,
            body,
        }
    }

    fn condition_loop(&mut self, l: &prose_model::Loop, lifts: &mut Vec<NodeId>) -> COp {
        let max = self.optional(l.max.as_ref(), lifts);
        l.index.iter().for_each(|name| self.declares(name));
        let test = l.test.as_ref().map(|test| {
            let (until, cond) = match test {
                LoopTest::Until(cond) => (true, cond),
                LoopTest::While(cond) => (false, cond),
            };
            // Unsure lets the loop go on: not yet for `until`, still for `while`.
            let role = Role {
                kind: RoleKind::Loop { until },
                unsure: !until,
            };
            (until, self.node(cond, &Around::role(role)))
        });
        COp::Loop {
            test,
            max,
            index: l.index.clone(),
            body: self.body(&l.body, Role::VALUE),
        }
    }
}

/// The name that an insertion starts from.
fn base_name(node: &Node) -> Option<&Name> {
    match &node.op {
        Op::Name(name) | Op::AgentMemory(name) => Some(name),
        Op::Member { of, .. } | Op::Index { of, .. } => base_name(of),
        _ => None,
    }
}
