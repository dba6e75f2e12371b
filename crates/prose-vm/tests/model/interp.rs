//! The program as a tree that is walked: one recursive function per construct, with the host's own calls as the stack.

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use prose_model::*;

use crate::asks::*;
use crate::calls::*;
use crate::joins::*;
use crate::pure::{Eval, Pure, Stop, entry};
use crate::scope::*;
use crate::tasks::{Bound, Exit, Fut, Model, Res, Task};

/// Where something runs.
#[derive(Clone)]
pub struct Env {
    pub scope: Rc<Scope>,
    pub task: Rc<Task>,
    pub instance: usize,
    pub bound: Bound,
    pub testing: Option<Rc<Testing>>,
}

/// A loop's test.
#[derive(Default)]
pub struct Testing {
    pub test: Cell<u64>,
    pub no_progress: Cell<bool>,
    pub verdicts: RefCell<Vec<(String, String)>>,
}

/// What stands around an expression.
#[derive(Clone)]
pub struct Around {
    pub ask: Kind,
    /// What "unsure" counts as.
    pub unsure: bool,
    pub target: Option<(String, Option<BindKind>)>,
    pub previous: Option<(String, Value)>,
    pub statement: bool,
}
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Value,
    Condition,
    Loop(bool),
}

pub const PLAIN: Around = Around {
    ask: Kind::Value,
    unsure: false,
    target: None,
    previous: None,
    statement: false,
};
pub const CONDITION: Around = Around {
    ask: Kind::Condition,
    ..PLAIN
};

impl Around {
    pub fn operand(&self) -> Around {
        let ask = if self.ask == Kind::Value {
            Kind::Condition
        } else {
            self.ask
        };
        Around {
            ask,
            unsure: self.unsure,
            ..PLAIN
        }
    }
    pub fn negated(&self) -> Around {
        let operand = self.operand();
        Around {
            unsure: !operand.unsure,
            ..operand
        }
    }
}

pub type M = Rc<Model>;

pub fn is_pure(op: &Op) -> bool {
    use Op::*;
    matches!(
        op,
        Null | Bool(_)
            | Number(_)
            | Text(_)
            | Name(_)
            | AgentMemory(_)
            | Member { .. }
            | Index { .. }
            | List(_)
            | Record(_)
            | Not(_)
            | Neg(_)
            | Binary { .. }
    )
}

pub fn in_template<'n>(template: &'n Template, out: &mut Vec<(&'n Node, Around)>) {
    for part in &template.parts {
        if let TemplatePart::Insert { value, .. } = part {
            inner(value, &PLAIN, out);
        }
    }
}

/// The constructs inside an expression, left to right.
pub fn inner<'n>(node: &'n Node, around: &Around, out: &mut Vec<(&'n Node, Around)>) {
    match &node.op {
        Op::Text(template) => in_template(template, out),
        Op::Member { of, .. } | Op::Neg(of) => inner(of, &PLAIN, out),
        Op::Not(of) => inner(of, &around.negated(), out),
        Op::Index { of, index } => {
            inner(of, &PLAIN, out);
            inner(index, &PLAIN, out);
        }
        Op::List(items) => items.iter().for_each(|item| inner(item, &PLAIN, out)),
        Op::Record(entries) => entries.iter().for_each(|entry| inner(&entry.value, &PLAIN, out)),
        Op::Binary { op, lhs, rhs } => {
            if matches!(op, BinaryOp::And | BinaryOp::Or) {
                if needs(lhs) || needs(rhs) {
                    out.push((node, around.clone()));
                }
            } else {
                inner(lhs, &PLAIN, out);
                inner(rhs, &PLAIN, out);
            }
        }
        op if is_pure(op) => {}
        _ => out.push((node, around.clone())),
    }
}

pub fn needs(node: &Node) -> bool {
    let mut out = Vec::new();
    inner(node, &PLAIN, &mut out);
    !out.is_empty()
}

impl Env {
    pub fn bind(&self, m: &M, kind: BindKind, name: &str, value: Value) {
        let at = holder(&self.scope, name);
        at.set(name, value.clone(), kind);
        if !self.bound.borrow().iter().any(|own| own == name) {
            self.bound.borrow_mut().push(name.to_owned());
        }
        if kind == BindKind::Output {
            self.register(m, name, value.clone());
        }
        self.note(m, &at, name, kind, &value);
    }

    pub fn register(&self, m: &M, name: &str, value: Value) {
        match block_of(&self.scope) {
            Some(block) => {
                let frame = block.frame.as_ref().expect("a frame");
                frame.outputs.borrow_mut().insert(name.into(), value);
            }
            None => {
                m.world.borrow_mut().instances[self.instance]
                    .outputs
                    .insert(name.into(), value);
            }
        }
    }

    pub fn key(&self, m: &M, at: &Rc<Scope>, name: &str) -> String {
        let frame = frame_of(at);
        let frame = frame.frame.as_ref().expect("a frame");
        let root = matches!(frame.kind, None | Some(FrameKind::Program));
        let path = m.world.borrow().instances[self.instance].path.join("/");
        format!(
            "{path}:{name}__{}",
            if root { 0 } else { frame.execution.unwrap_or(0) }
        )
    }

    pub fn note(&self, m: &M, at: &Rc<Scope>, name: &str, kind: BindKind, value: &Value) {
        if let Some(word) = kind.file_kind() {
            let key = self.key(m, at, name);
            let shown = crate::without_places(format!("{word} {}", crate::show(value)));
            m.world.borrow_mut().bound.insert(key, shown);
        }
    }

    pub fn with(&self, scope: Rc<Scope>) -> Env {
        Env {
            scope,
            ..self.clone()
        }
    }
}

pub fn error(node: &Node, kind: ErrorKind, message: impl Into<String>) -> Exit {
    Exit::Error(Arc::new(ErrorValue {
        kind,
        message: message.into(),
        statement: node.id.clone(),
        place: String::new(),
        attempts: 1,
    }))
}

pub type Temps = HashMap<String, Value>;

/// Runs the constructs inside expressions.
pub async fn lift(m: &M, env: &Env, inside: Vec<(&Node, Around)>) -> Result<Temps, Exit> {
    let mut temps = Temps::new();
    for (node, around) in inside {
        let value = construct(m, env, node, around).await?;
        temps.insert(node.id.to_string(), value);
    }
    Ok(temps)
}

/// Evaluates once everything inside has run; starts over when content was read.
pub async fn pure<T>(
    m: &M,
    env: &Env,
    node: &Node,
    temps: &Temps,
    f: impl Fn(&Eval<'_>) -> Pure<T>,
) -> Result<T, Exit> {
    let mut memo = Vec::new();
    loop {
        let eval = Eval {
            scope: &env.scope,
            temps,
            memo: &memo,
        };
        let request = match f(&eval) {
            Ok(value) => return Ok(value),
            Err(Stop::Raise(kind, message)) => return Err(error(node, kind, message)),
            Err(Stop::Need(request)) => *request,
        };
        let what = format!(
            "decode {} {}",
            crate::target(&request.target),
            crate::show(&request.value)
        );
        match m.ask(&env.task, what).await? {
            Outcome::Decoded { value } => memo.push((request, value)),
            Outcome::Failed(failure) => return Err(error(node, failure.kind, failure.message)),
            other => panic!("{other:?}"),
        }
    }
}

/// The value of an expression.
pub fn value<'a>(m: &'a M, env: &'a Env, node: &'a Node, around: Around) -> Fut<'a, Res> {
    Box::pin(async move {
        if !is_pure(&node.op) {
            return construct(m, env, node, around).await;
        }
        let mut inside = Vec::new();
        inner(node, &around, &mut inside);
        let temps = lift(m, env, inside).await?;
        pure(m, env, node, &temps, |e| e.value(node)).await
    })
}

/// An expression as a condition.
pub async fn truth(m: &M, env: &Env, node: &Node, around: Around) -> Result<bool, Exit> {
    let mut inside = Vec::new();
    inner(node, &around, &mut inside);
    let temps = lift(m, env, inside).await?;
    pure(m, env, node, &temps, |e| e.truth(&e.value(node)?)).await
}

pub async fn operands<'n>(
    m: &M,
    env: &Env,
    nodes: impl IntoIterator<Item = &'n Node>,
) -> Result<Temps, Exit> {
    let mut inside = Vec::new();
    nodes
        .into_iter()
        .for_each(|node| inner(node, &PLAIN, &mut inside));
    lift(m, env, inside).await
}

/// Statements; the value is the last one's.
pub fn body<'a>(m: &'a M, env: &'a Env, nodes: &'a [Node], last: Around) -> Fut<'a, Res> {
    Box::pin(async move {
        let mut result = Value::Null;
        for (i, node) in nodes.iter().enumerate() {
            let around = if i + 1 == nodes.len() { last.clone() } else { PLAIN };
            let around = Around {
                statement: true,
                ..around
            };
            result = value(m, env, node, around).await?;
        }
        Ok(result)
    })
}

pub fn construct<'a>(m: &'a M, env: &'a Env, node: &'a Node, around: Around) -> Fut<'a, Res> {
    Box::pin(async move {
        match &node.op {
            Op::Binary { op, lhs, rhs } => {
                let swap = needs(lhs) && !needs(rhs);
                let (first, second) = if swap { (rhs, lhs) } else { (lhs, rhs) };
                let first = truth(m, env, first, around.operand()).await?;
                if first == (*op == BinaryOp::Or) {
                    return Ok(Value::Bool(first));
                }
                Ok(Value::Bool(truth(m, env, second, around.operand()).await?))
            }
            Op::Judge(text) => judge(m, env, node, text, &around).await,
            Op::Session(it) => session(m, env, node, it, &around).await,
            Op::Call { block, args } => call(m, env, node, block, args, around.statement).await,
            Op::CallProgram { import, args } => call_program(m, env, node, import, args).await,
            Op::Arrow(parts) => {
                let mut previous: Option<(String, Value)> = None;
                for (i, part) in parts.iter().enumerate() {
                    let target = if i + 1 == parts.len() {
                        around.target.clone()
                    } else {
                        None
                    };
                    let around = Around {
                        target,
                        previous: previous.take(),
                        ..PLAIN
                    };
                    let result = value(m, env, part, around).await?;
                    let label = match &part.op {
                        Op::Session(_) => env.task.last_target.borrow().clone(),
                        _ => "previous".into(),
                    };
                    previous = Some((label, result));
                }
                Ok(previous.map(|(_, value)| value).unwrap_or_default())
            }
            Op::Pipeline { source, stages } => pipeline(m, env, node, source, stages).await,
            Op::Do(nodes) => body(m, env, nodes, PLAIN).await,
            Op::Parallel(it) => parallel(m, env, node, it).await,
            Op::For(it) => for_each(m, env, node, it).await,
            Op::Repeat {
                count,
                index,
                body: nodes,
            } => {
                let temps = operands(m, env, [&**count]).await?;
                let count = pure(m, env, node, &temps, |e| e.count(count)).await?;
                let layer = Scope::layer(&env.scope);
                let env = env.with(layer.clone());
                let mut values = Vec::new();
                for i in 0..count {
                    if let Some(index) = index {
                        layer.set(index, Value::Number(i as f64), BindKind::Loop);
                    }
                    match body(m, &env, nodes, PLAIN).await {
                        Ok(value) => values.push(value),
                        Err(Exit::Break) => break,
                        Err(exit) => return Err(exit),
                    }
                }
                Ok(Value::list(values))
            }
            Op::Loop(it) => condition_loop(m, env, node, it).await,
            Op::If { arms, otherwise } => {
                for arm in arms {
                    if truth(m, env, &arm.cond, CONDITION).await? {
                        return body(m, env, &arm.body, PLAIN).await;
                    }
                }
                match otherwise {
                    Some(nodes) => body(m, env, nodes, PLAIN).await,
                    None => Ok(Value::Null),
                }
            }
            Op::Choice { criteria, options } => choice(m, env, node, criteria, options).await,
            Op::Try(it) => try_(m, env, it).await,
            Op::Input(it) => input(m, env, node, it).await,
            Op::Bind {
                kind,
                target,
                value: of,
            } => bind(m, env, node, *kind, target, of).await,
            Op::Assign {
                name,
                path,
                value: of,
            } => assign(m, env, node, name, path, of).await,
            Op::Return(of) => {
                let result = match of {
                    Some(of) => operand(m, env, node, of).await?,
                    None => Value::Null,
                };
                Err(Exit::Return(result))
            }
            Op::Break => Err(Exit::Break),
            Op::Throw(None) => Err(match caught(&env.scope) {
                Some(error) => Exit::Error(error),
                None => error(node, ErrorKind::Thrown, "rethrow outside catch"),
            }),
            Op::Throw(Some(of)) => Err(match operand(m, env, node, of).await? {
                Value::Error(error) => Exit::Error(error),
                value => error(node, ErrorKind::Thrown, crate::reading::plain(&value)),
            }),
            Op::Assert { cond, message } => {
                let mut inside = Vec::new();
                inner(cond, &CONDITION, &mut inside);
                let temps = lift(m, env, inside).await?;
                let failed = pure(m, env, node, &temps, |e| {
                    if e.truth(&e.value(cond)?)? {
                        return Ok(None);
                    }
                    Ok(Some(match message {
                        Some(message) => crate::reading::plain(&e.value(message)?),
                        None => "assertion failed: ".into(),
                    }))
                })
                .await?;
                match failed {
                    None => Ok(Value::Null),
                    Some(message) => Err(error(node, ErrorKind::Assertion, message)),
                }
            }
            other => panic!("no construct: {other:?}"),
        }
    })
}

/// The value of the only operand of a construct; what goes wrong in it is the construct's error.
pub async fn operand(m: &M, env: &Env, node: &Node, of: &Node) -> Res {
    let temps = operands(m, env, [of]).await?;
    pure(m, env, node, &temps, |e| e.value(of)).await
}

pub async fn bind(m: &M, env: &Env, node: &Node, kind: BindKind, target: &BindTarget, of: &Node) -> Res {
    match target {
        BindTarget::Name(name) => {
            let around = Around {
                target: Some((name.to_string(), Some(kind))),
                ..PLAIN
            };
            let result = bound_value(m, env, node, of, around).await?;
            env.bind(m, kind, name, result.clone());
            Ok(result)
        }
        BindTarget::Record(names) => {
            let temps = operands(m, env, [of]).await?;
            let (whole, fields) = pure(m, env, node, &temps, |e| {
                let whole = e.value(of)?;
                let keys = names.iter().map(|name| name.to_string()).collect();
                let entries = match &whole {
                    Value::Text(_) => e.decoded(&whole, DecodeTarget::Record(keys))?,
                    other => other.clone(),
                };
                let field = |name: &Name| match &entries {
                    Value::Record(entries) => entry(entries, name).unwrap_or_default(),
                    _ => Value::Null,
                };
                Ok((whole, names.iter().map(field).collect::<Vec<_>>()))
            })
            .await?;
            for (name, field) in names.iter().zip(fields) {
                env.bind(m, kind, name, field);
            }
            Ok(whole)
        }
    }
}

/// A right side: what goes wrong in its plain part is the statement's error.
pub async fn bound_value(m: &M, env: &Env, node: &Node, of: &Node, around: Around) -> Res {
    let mut inside = Vec::new();
    inner(of, &around, &mut inside);
    let temps = lift(m, env, inside).await?;
    pure(m, env, node, &temps, |e| e.value(of)).await
}

pub async fn assign(m: &M, env: &Env, node: &Node, name: &Name, path: &[Node], of: &Node) -> Res {
    let target = path.is_empty().then(|| (name.to_string(), None));
    let mut inside = Vec::new();
    path.iter().for_each(|key| inner(key, &PLAIN, &mut inside));
    inner(of, &Around { target, ..PLAIN }, &mut inside);
    let temps = lift(m, env, inside).await?;
    let (result, whole) = pure(m, env, node, &temps, |e| {
        let result = e.value(of)?;
        let path = path.iter().map(|key| e.value(key)).collect::<Pure<Vec<_>>>()?;
        let old = find(&env.scope, name)
            .map(|(_, value, _)| value)
            .unwrap_or_default();
        let whole = e.put(old, &path, result.clone())?;
        Ok((result, whole))
    })
    .await?;
    match assignable(&env.scope, name) {
        Some((_, BindKind::Const)) => {
            return Err(error(node, ErrorKind::Type, format!("'{name}' is a constant")));
        }
        Some((at, kind)) => {
            at.set(name, whole.clone(), kind);
            if kind == BindKind::Output {
                env.register(m, name, whole.clone());
            }
            env.note(m, &at, name, kind, &whole);
        }
        None => env.bind(m, BindKind::Let, name, whole),
    }
    Ok(result)
}

pub async fn try_(m: &M, env: &Env, it: &Try) -> Res {
    let task = &env.task;
    let owes = u32::from(it.finally.is_some());
    task.finallies.set(task.finallies.get() + owes);
    let mut how = body(m, env, &it.body, PLAIN).await;
    if let (Err(Exit::Error(error)), Some(catch)) = (&how, &it.catch) {
        let layer = Rc::new(Scope {
            parent: Some(env.scope.clone()),
            slots: Slots::default(),
            frame: None,
            caught: Some(error.clone()),
        });
        if let Some(name) = &catch.name {
            layer.set(name, Value::Error(error.clone()), BindKind::Loop);
        }
        how = body(m, &env.with(layer), &catch.body, PLAIN).await;
    }
    task.finallies.set(task.finallies.get() - owes);
    let Some(finally) = &it.finally else { return how };
    task.protected.set(task.protected.get() + 1);
    let last = body(m, env, finally, PLAIN).await;
    task.protected.set(task.protected.get() - 1);
    if task.cancelled.get() && task.protected.get() == 0 {
        return Err(Exit::Cancel);
    }
    last.and(how)
}

pub async fn condition_loop(m: &M, env: &Env, node: &Node, it: &Loop) -> Res {
    let temps = operands(m, env, &it.max).await?;
    let max = match &it.max {
        Some(max) => Some(pure(m, env, node, &temps, |e| e.count(max)).await?),
        None => None,
    };
    let layer = Scope::layer(&env.scope);
    let testing = Rc::new(Testing::default());
    let inside = env.with(layer.clone());
    let test_env = Env {
        testing: Some(testing.clone()),
        ..inside.clone()
    };
    let mut values = Vec::new();
    for i in 0_u64.. {
        if max.is_some_and(|max| i >= max) {
            break;
        }
        if it.test.is_none() && max.is_none() && i >= 1_000 {
            let message = "a loop with neither a condition nor max: stopped after 1000 iterations";
            return Err(error(node, ErrorKind::LoopLimit, message));
        }
        if let Some(index) = &it.index {
            layer.set(index, Value::Number(i as f64), BindKind::Loop);
        }
        if let Some(test) = &it.test {
            let (until, cond) = match test {
                LoopTest::Until(cond) => (true, cond),
                LoopTest::While(cond) => (false, cond),
            };
            testing.test.set(i);
            let around = Around {
                ask: Kind::Loop(until),
                unsure: !until,
                ..PLAIN
            };
            match truth(m, &test_env, cond, around).await {
                Ok(holds) if holds == until || testing.no_progress.get() => break,
                Ok(_) => {}
                Err(exit) => return Err(exit),
            }
        }
        match body(m, &inside, &it.body, PLAIN).await {
            Ok(value) => values.push(value),
            Err(Exit::Break) => break,
            Err(exit) => return Err(exit),
        }
    }
    Ok(Value::list(values))
}
