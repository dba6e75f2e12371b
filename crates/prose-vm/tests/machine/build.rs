//! A small language for bundles: nodes without ids, numbered by their place once the program is whole.

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    Agent, Argument, Arm, Backoff, BinaryOp, BindKind, BindTarget, Block, Bundle, BundleFile, Catch,
    ChoiceOption, Context, ContextEntry, For, Import, Input, InputContract, Loop, LoopTest, Name, Node, Op,
    Parallel, ParallelFor, Permission, Persist, Policy, Program, Props, RecordEntry, Session, SourceRange,
    Stage, StmtId, Strategy, Template, TemplatePart, Try,
};

pub const NOWHERE: SourceRange = SourceRange {
    file: 0,
    start: 0,
    end: 0,
};

pub fn node(op: Op) -> Node {
    Node {
        id: "".into(),
        src: NOWHERE,
        op,
    }
}
pub fn boxed(node: Node) -> Option<Box<Node>> {
    Some(Box::new(node))
}

// ---- values ----

pub fn null() -> Node {
    node(Op::Null)
}
pub fn yes() -> Node {
    node(Op::Bool(true))
}
pub fn no() -> Node {
    node(Op::Bool(false))
}
pub fn num(n: f64) -> Node {
    node(Op::Number(n))
}
pub fn var(name: &str) -> Node {
    node(Op::Name(name.into()))
}
pub fn list(items: Vec<Node>) -> Node {
    node(Op::List(items))
}
pub fn rec(entries: Vec<(&str, Node)>) -> Node {
    node(Op::Record(
        entries
            .into_iter()
            .map(|(key, value)| RecordEntry {
                key: key.into(),
                value,
            })
            .collect(),
    ))
}
pub fn bin(op: BinaryOp, lhs: Node, rhs: Node) -> Node {
    node(Op::Binary {
        op,
        lhs: Box::new(lhs),
        rhs: Box::new(rhs),
    })
}
pub fn add(lhs: Node, rhs: Node) -> Node {
    bin(BinaryOp::Add, lhs, rhs)
}
pub fn eq(lhs: Node, rhs: Node) -> Node {
    bin(BinaryOp::Eq, lhs, rhs)
}
pub fn not(of: Node) -> Node {
    node(Op::Not(Box::new(of)))
}
pub fn member(of: Node, key: &str) -> Node {
    node(Op::Member {
        of: Box::new(of),
        key: key.into(),
    })
}
pub fn at(of: Node, index: Node) -> Node {
    node(Op::Index {
        of: Box::new(of),
        index: Box::new(index),
    })
}

/// A template: `{name}`, `{name.key}` insert.
pub fn template(text: &str) -> Template {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').expect("a closing brace");
        if open > 0 {
            parts.push(TemplatePart::Text(rest[..open].into()));
        }
        let verbatim = rest[open..=close].to_owned();
        let mut path = rest[open + 1..close].split('.');
        let mut value = var(path.next().unwrap());
        for key in path {
            value = member(value, key);
        }
        parts.push(TemplatePart::Insert {
            value: Box::new(value),
            verbatim,
        });
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Text(rest.into()));
    }
    Template { parts }
}
pub fn text(text: &str) -> Node {
    node(Op::Text(template(text)))
}
pub fn judge(text: &str) -> Node {
    node(Op::Judge(template(text)))
}

// ---- sessions ----

/// `session "label"`.
pub fn session(label: &str) -> Node {
    node(Op::Session(Box::new(Session {
        resume: false,
        name: None,
        agent: None,
        label: boxed(text(label)),
        props: Props::default(),
    })))
}
/// `session: agent`.
pub fn session_of(agent: &str) -> Node {
    node(Op::Session(Box::new(Session {
        resume: false,
        name: None,
        agent: Some(agent.into()),
        label: None,
        props: Props::default(),
    })))
}
/// `resume: agent`.
pub fn resume(agent: &str) -> Node {
    session_of(agent).edit(|s| s.resume = true)
}

/// Properties of a session node.
pub trait SessionNode {
    fn edit(self, f: impl FnOnce(&mut Session)) -> Self;
    fn prompt(self, prompt: &str) -> Self;
    fn retry(self, times: u32, backoff: Backoff) -> Self;
    fn context(self, entries: Vec<(&str, Node)>) -> Self;
}

impl SessionNode for Node {
    fn edit(mut self, f: impl FnOnce(&mut Session)) -> Self {
        match &mut self.op {
            Op::Session(session) => f(session),
            other => panic!("no session: {other:?}"),
        }
        self
    }
    fn prompt(self, prompt: &str) -> Self {
        self.edit(|s| s.props.prompt = boxed(text(prompt)))
    }
    fn retry(self, times: u32, backoff: Backoff) -> Self {
        self.edit(|s| {
            s.props.retry = boxed(num(f64::from(times)));
            s.props.backoff = Some(backoff);
        })
    }
    fn context(self, entries: Vec<(&str, Node)>) -> Self {
        self.edit(|s| s.props.context = Some(context(entries)))
    }
}

pub fn context(entries: Vec<(&str, Node)>) -> Context {
    Context {
        items: entries
            .into_iter()
            .map(|(label, value)| ContextEntry {
                label: label.into(),
                value,
            })
            .collect(),
    }
}

pub fn agent(name: &str, prompt: Option<&str>) -> Agent {
    let prompt = prompt.map(|prompt| Box::new(text(prompt)));
    Agent {
        name: name.into(),
        src: NOWHERE,
        persist: None,
        props: Props {
            prompt,
            ..Props::default()
        },
    }
}
pub fn patterns(nodes: Vec<Node>) -> Permission {
    Permission::Patterns(nodes)
}
pub fn persistent(name: &str, persist: Persist) -> Agent {
    Agent {
        persist: Some(persist),
        ..agent(name, Some("You keep notes"))
    }
}

// ---- statements ----

pub fn bind(kind: BindKind, name: &str, value: Node) -> Node {
    node(Op::Bind {
        kind,
        target: BindTarget::Name(name.into()),
        value: Box::new(value),
    })
}
pub fn let_(name: &str, value: Node) -> Node {
    bind(BindKind::Let, name, value)
}
pub fn output(name: &str, value: Node) -> Node {
    bind(BindKind::Output, name, value)
}
pub fn branch(name: &str, value: Node) -> Node {
    bind(BindKind::Branch, name, value)
}
pub fn destructure(names: &[&str], value: Node) -> Node {
    let names = names.iter().map(|name| Name::from(*name)).collect();
    node(Op::Bind {
        kind: BindKind::Let,
        target: BindTarget::Record(names),
        value: Box::new(value),
    })
}
pub fn assign(name: &str, value: Node) -> Node {
    node(Op::Assign {
        name: name.into(),
        path: Vec::new(),
        value: Box::new(value),
    })
}
pub fn assign_field(name: &str, key: &str, value: Node) -> Node {
    node(Op::Assign {
        name: name.into(),
        path: vec![text(key)],
        value: Box::new(value),
    })
}
pub fn call(block: &str, args: Vec<Node>) -> Node {
    let args = args
        .into_iter()
        .map(|value| Argument { name: None, value })
        .collect();
    node(Op::Call {
        block: block.into(),
        args,
    })
}
pub fn named(name: &str, value: Node) -> Argument {
    Argument {
        name: Some(name.into()),
        value,
    }
}
pub fn call_program(import: &str, args: Vec<Argument>) -> Node {
    node(Op::CallProgram {
        import: import.into(),
        args,
    })
}
pub fn arrow(parts: Vec<Node>) -> Node {
    node(Op::Arrow(parts))
}
pub fn pipe(source: Node, stages: Vec<Stage>) -> Node {
    node(Op::Pipeline {
        source: Box::new(source),
        stages,
    })
}
pub fn map(body: Vec<Node>) -> Stage {
    Stage::Map {
        item: "item".into(),
        body,
    }
}
pub fn pmap(body: Vec<Node>) -> Stage {
    Stage::Pmap {
        item: "item".into(),
        body,
    }
}
pub fn filter(body: Vec<Node>) -> Stage {
    Stage::Filter {
        item: "item".into(),
        body,
    }
}
pub fn reduce(body: Vec<Node>) -> Stage {
    Stage::Reduce {
        acc: "acc".into(),
        item: "item".into(),
        body,
    }
}
pub fn do_(body: Vec<Node>) -> Node {
    node(Op::Do(body))
}

/// A `parallel:` to be given modifiers.
pub fn parallel(branches: Vec<Node>) -> Node {
    joined(Strategy::All, Policy::FailFast, branches)
}
pub fn joined(strategy: Strategy, policy: Policy, branches: Vec<Node>) -> Node {
    node(Op::Parallel(Parallel {
        branches,
        strategy,
        policy,
        count: None,
        max: None,
    }))
}
pub fn any_of(count: u32, policy: Policy, branches: Vec<Node>) -> Node {
    let count = boxed(num(f64::from(count)));
    node(Op::Parallel(Parallel {
        branches,
        strategy: Strategy::Any,
        policy,
        count,
        max: None,
    }))
}
pub fn limited(max: u32, branches: Vec<Node>) -> Node {
    let max = boxed(num(f64::from(max)));
    let (strategy, policy) = (Strategy::All, Policy::FailFast);
    node(Op::Parallel(Parallel {
        branches,
        strategy,
        policy,
        count: None,
        max,
    }))
}

pub fn for_(item: &str, source: Node, body: Vec<Node>) -> Node {
    node(Op::For(Box::new(For {
        item: item.into(),
        index: None,
        source,
        parallel: None,
        body,
    })))
}
pub fn parallel_for(item: &str, source: Node, body: Vec<Node>) -> Node {
    parallel_for_with(item, source, ParallelFor::default(), body)
}
pub fn parallel_for_with(item: &str, source: Node, modifiers: ParallelFor, body: Vec<Node>) -> Node {
    let parallel = Some(modifiers);
    node(Op::For(Box::new(For {
        item: item.into(),
        index: Some("i".into()),
        source,
        parallel,
        body,
    })))
}
pub fn repeat(count: Node, index: Option<&str>, body: Vec<Node>) -> Node {
    node(Op::Repeat {
        count: Box::new(count),
        index: index.map(Into::into),
        body,
    })
}
pub fn loop_(test: Option<LoopTest>, max: Option<u32>, body: Vec<Node>) -> Node {
    let max = max.map(|max| num(f64::from(max)));
    node(Op::Loop(Box::new(Loop {
        test,
        max,
        index: Some("n".into()),
        body,
    })))
}
pub fn until(cond: Node) -> Option<LoopTest> {
    Some(LoopTest::Until(cond))
}
pub fn while_(cond: Node) -> Option<LoopTest> {
    Some(LoopTest::While(cond))
}
pub fn if_(cond: Node, then: Vec<Node>, otherwise: Option<Vec<Node>>) -> Node {
    if_else(vec![(cond, then)], otherwise)
}
pub fn if_else(arms: Vec<(Node, Vec<Node>)>, otherwise: Option<Vec<Node>>) -> Node {
    node(Op::If {
        arms: arms.into_iter().map(|(cond, body)| Arm { cond, body }).collect(),
        otherwise,
    })
}
pub fn choice(criteria: &str, options: Vec<(&str, Vec<Node>)>) -> Node {
    let options = options
        .into_iter()
        .map(|(label, body)| ChoiceOption {
            label: label.into(),
            template: label.contains('{').then(|| template(label)),
            src: NOWHERE,
            body,
        })
        .collect();
    node(Op::Choice {
        criteria: template(criteria),
        options,
    })
}
pub fn try_(body: Vec<Node>, catch: Option<Vec<Node>>, finally: Option<Vec<Node>>) -> Node {
    let catch = catch.map(|body| Catch {
        name: Some("err".into()),
        body,
    });
    node(Op::Try(Box::new(Try { body, catch, finally })))
}
pub fn throw(message: Option<&str>) -> Node {
    node(Op::Throw(message.map(|message| Box::new(text(message)))))
}
pub fn ret(value: Node) -> Node {
    node(Op::Return(boxed(value)))
}
pub fn break_() -> Node {
    node(Op::Break)
}
pub fn assert_(cond: Node, message: Option<&str>) -> Node {
    node(Op::Assert {
        cond: Box::new(cond),
        message: message.map(|message| Box::new(text(message))),
    })
}
pub fn input(name: &str, prompt: &str) -> Node {
    let prompt = Some(template(prompt));
    node(Op::Input(Box::new(Input {
        name: name.into(),
        prompt,
        discretion: false,
        default: None,
    })))
}
pub fn discretion_input(name: &str, prompt: &str) -> Node {
    let prompt = Some(template(prompt));
    node(Op::Input(Box::new(Input {
        name: name.into(),
        prompt,
        discretion: true,
        default: None,
    })))
}

// ---- programs ----

pub fn block(name: &str, params: &[&str], body: Vec<Node>) -> Block {
    let params = params.iter().map(|param| Name::from(*param)).collect();
    Block {
        name: name.into(),
        src: NOWHERE,
        params,
        max_depth: None,
        body,
    }
}

/// A program of statements; leading inputs are found as the lowering finds them.
pub fn program(body: Vec<Node>) -> Program {
    let mut inputs = Vec::new();
    let mut leading = true;
    for node in &body {
        match &node.op {
            Op::Input(input) => inputs.push(InputContract {
                name: input.name.clone(),
                prompt: String::new(),
                leading,
                has_default: input.default.is_some(),
            }),
            _ => leading = false,
        }
    }
    let mut outputs = Vec::new();
    for node in &body {
        if let Op::Bind {
            kind: BindKind::Output,
            target: BindTarget::Name(name),
            ..
        } = &node.op
        {
            outputs.push(name.clone());
        }
    }
    Program {
        name: "main".into(),
        namespace: String::new(),
        file: 0,
        inputs,
        outputs,
        agents: IndexMap::new(),
        blocks: IndexMap::new(),
        imports: IndexMap::new(),
        body,
    }
}

/// Parts of a program.
pub trait ProgramParts {
    fn agent(self, agent: Agent) -> Self;
    fn block(self, block: Block) -> Self;
    fn import(self, name: &str, index: Option<usize>) -> Self;
    fn namespace(self, namespace: &str) -> Self;
}

impl ProgramParts for Program {
    fn agent(mut self, agent: Agent) -> Self {
        self.agents.insert(agent.name.clone(), agent);
        self
    }
    fn block(mut self, block: Block) -> Self {
        self.blocks.insert(block.name.clone(), block);
        self
    }
    fn import(mut self, name: &str, index: Option<usize>) -> Self {
        self.imports.insert(
            name.into(),
            Import {
                target: format!("alice/{name}"),
                program: index,
            },
        );
        self
    }
    fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self.name = namespace.into();
        self
    }
}

/// A bundle of the given programs, the first the entry; nodes get their ids.
pub fn bundle(mut programs: Vec<Program>) -> Arc<Bundle> {
    for program in &mut programs {
        number_all("main", &mut program.body);
        for (name, block) in &mut program.blocks {
            number_all(&format!("block:{name}"), &mut block.body);
        }
        for (name, agent) in &mut program.agents {
            let mut nodes = Vec::new();
            props_nodes(&mut agent.props, &mut nodes);
            for (i, node) in nodes.into_iter().enumerate() {
                number(node, &format!("agent:{name}/{i}"));
            }
        }
    }
    Arc::new(Bundle {
        version: prose_model::BUNDLE_VERSION,
        entry: 0,
        programs,
        files: vec![BundleFile {
            path: "main.prose".into(),
            text: "".into(),
            digest: "0".into(),
        }],
        digest: "0".into(),
    })
}

fn number_all(root: &str, nodes: &mut [Node]) {
    for (i, node) in nodes.iter_mut().enumerate() {
        number(node, &format!("{root}/{i}"));
    }
}

fn number(node: &mut Node, id: &str) {
    node.id = StmtId::new(id);
    for (i, child) in children(&mut node.op).into_iter().enumerate() {
        number(child, &format!("{id}.{i}"));
    }
}

fn template_nodes<'n>(template: &'n mut Template, out: &mut Vec<&'n mut Node>) {
    for part in &mut template.parts {
        if let TemplatePart::Insert { value, .. } = part {
            out.push(value);
        }
    }
}

fn props_nodes<'n>(props: &'n mut Props, out: &mut Vec<&'n mut Node>) {
    out.extend(props.model.as_deref_mut());
    out.extend(props.prompt.as_deref_mut());
    out.extend(
        props
            .context
            .iter_mut()
            .flat_map(|context| &mut context.items)
            .map(|entry| &mut entry.value),
    );
    out.extend(props.retry.as_deref_mut());
    out.extend(props.skills.iter_mut().map(|skill| &mut **skill));
    for rule in props.permissions.values_mut() {
        if let Permission::Patterns(nodes) = rule {
            out.extend(nodes);
        }
    }
}

fn children(op: &mut Op) -> Vec<&mut Node> {
    let mut out: Vec<&mut Node> = Vec::new();
    match op {
        Op::Null | Op::Bool(_) | Op::Number(_) | Op::Name(_) | Op::AgentMemory(_) | Op::Break => {}
        Op::Text(template) | Op::Judge(template) => template_nodes(template, &mut out),
        Op::Member { of, .. } | Op::Not(of) | Op::Neg(of) => out.push(of),
        Op::Index { of, index } => out.extend([&mut **of, &mut **index]),
        Op::List(nodes) | Op::Arrow(nodes) | Op::Do(nodes) => out.extend(nodes),
        Op::Record(entries) => out.extend(entries.iter_mut().map(|entry| &mut entry.value)),
        Op::Binary { lhs, rhs, .. } => out.extend([&mut **lhs, &mut **rhs]),
        Op::Session(session) => {
            out.extend(session.label.as_deref_mut());
            props_nodes(&mut session.props, &mut out);
        }
        Op::Call { args, .. } | Op::CallProgram { args, .. } => {
            out.extend(args.iter_mut().map(|arg| &mut arg.value));
        }
        Op::Pipeline { source, stages } => {
            out.push(source);
            for stage in stages {
                match stage {
                    Stage::Map { body, .. }
                    | Stage::Filter { body, .. }
                    | Stage::Pmap { body, .. }
                    | Stage::Reduce { body, .. } => out.extend(body),
                    Stage::Chunks(size) => out.push(size),
                }
            }
        }
        Op::Parallel(parallel) => {
            out.extend(&mut parallel.branches);
            out.extend(parallel.count.as_deref_mut());
            out.extend(parallel.max.as_deref_mut());
        }
        Op::For(f) => {
            out.push(&mut f.source);
            if let Some(modifiers) = &mut f.parallel {
                out.extend(modifiers.count.as_deref_mut());
                out.extend(modifiers.max.as_deref_mut());
            }
            out.extend(&mut f.body);
        }
        Op::Repeat { count, body, .. } => {
            out.push(count);
            out.extend(body);
        }
        Op::Loop(l) => {
            match &mut l.test {
                Some(LoopTest::Until(cond) | LoopTest::While(cond)) => out.push(cond),
                None => {}
            }
            out.extend(&mut l.max);
            out.extend(&mut l.body);
        }
        Op::If { arms, otherwise } => {
            for arm in arms {
                out.push(&mut arm.cond);
                out.extend(&mut arm.body);
            }
            out.extend(otherwise.iter_mut().flatten());
        }
        Op::Choice { criteria, options } => {
            template_nodes(criteria, &mut out);
            for option in options {
                if let Some(label) = &mut option.template {
                    template_nodes(label, &mut out);
                }
                out.extend(&mut option.body);
            }
        }
        Op::Try(t) => {
            out.extend(&mut t.body);
            out.extend(t.catch.iter_mut().flat_map(|catch| &mut catch.body));
            out.extend(t.finally.iter_mut().flatten());
        }
        Op::Input(input) => {
            if let Some(prompt) = &mut input.prompt {
                template_nodes(prompt, &mut out);
            }
            out.extend(&mut input.default);
        }
        Op::Bind { value, .. } => out.push(value),
        Op::Assign { path, value, .. } => {
            out.extend(path);
            out.push(value);
        }
        Op::Return(value) | Op::Throw(value) => out.extend(value.as_deref_mut()),
        Op::Assert { cond, message } => {
            out.push(cond);
            out.extend(message.as_deref_mut());
        }
    }
    out
}
