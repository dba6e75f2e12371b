//! Branches, loops over lists and pipelines: language.md, "Execution".

use std::rc::Rc;

use prose_model::*;

use crate::interp::*;
use crate::scope::*;
use crate::tasks::{Bound, Exit, How, Plan, Res};

/// Numbers of a join that are computed.
pub async fn limits(
    m: &M,
    env: &Env,
    node: &Node,
    temps: &Temps,
    count: Option<&Node>,
    max: Option<&Node>,
) -> Result<(usize, usize), Exit> {
    pure(m, env, node, temps, |e| {
        let count = count.map_or(Ok(1), |node| e.count(node))?;
        let max = max.map_or(Ok(u64::MAX), |node| e.count(node))?;
        Ok((count.max(1) as usize, max.max(1) as usize))
    })
    .await
}

pub fn shown(how: How) -> Value {
    match how {
        How::Ok(value) => value,
        How::Failed(error) => Value::Error(error),
        How::Open | How::Gone => Value::Null,
    }
}

/// Names that a branch can bind in this frame, in the order of the text.
pub fn binds(node: &Node, out: &mut Vec<String>) {
    let mut add = |name: &Name| {
        if !out.iter().any(|own| own == name) {
            out.push(name.to_string());
        }
    };
    match &node.op {
        Op::Session(session) => session.name.iter().for_each(add),
        Op::Input(input) => add(&input.name),
        Op::Bind { target, value, .. } => {
            match target {
                BindTarget::Name(name) => add(name),
                BindTarget::Record(names) => names.iter().for_each(add),
            }
            binds(value, out);
        }
        Op::Assign { path, value, .. } => {
            path.iter().for_each(|key| binds(key, out));
            binds(value, out);
        }
        Op::Member { of, .. } | Op::Not(of) | Op::Neg(of) => binds(of, out),
        Op::Index { of, index } => {
            binds(of, out);
            binds(index, out);
        }
        Op::List(nodes) | Op::Arrow(nodes) | Op::Do(nodes) => nodes.iter().for_each(|node| binds(node, out)),
        Op::Record(entries) => entries.iter().for_each(|entry| binds(&entry.value, out)),
        Op::Binary { lhs, rhs, .. } => {
            binds(lhs, out);
            binds(rhs, out);
        }
        Op::Call { args, .. } | Op::CallProgram { args, .. } => {
            args.iter().for_each(|arg| binds(&arg.value, out));
        }
        Op::Pipeline { source, stages } => {
            binds(source, out);
            for stage in stages {
                match stage {
                    Stage::Map { body, .. } | Stage::Filter { body, .. } | Stage::Reduce { body, .. } => {
                        body.iter().for_each(|node| binds(node, out));
                    }
                    // Items of pmap have frames of their own.
                    Stage::Pmap { .. } => {}
                    Stage::Chunks(size) => binds(size, out),
                }
            }
        }
        Op::Parallel(it) => it.branches.iter().for_each(|node| binds(node, out)),
        Op::For(it) => {
            binds(&it.source, out);
            if it.parallel.is_none() {
                it.body.iter().for_each(|node| binds(node, out));
            }
        }
        Op::Repeat { count, body, .. } => {
            binds(count, out);
            body.iter().for_each(|node| binds(node, out));
        }
        Op::Loop(it) => {
            it.max.iter().for_each(|node| binds(node, out));
            match &it.test {
                Some(LoopTest::Until(cond) | LoopTest::While(cond)) => binds(cond, out),
                None => {}
            }
            it.body.iter().for_each(|node| binds(node, out));
        }
        Op::If { arms, otherwise } => {
            for arm in arms {
                binds(&arm.cond, out);
                arm.body.iter().for_each(|node| binds(node, out));
            }
            otherwise.iter().flatten().for_each(|node| binds(node, out));
        }
        Op::Choice { options, .. } => {
            let nodes = options.iter().flat_map(|option| &option.body);
            nodes.for_each(|node| binds(node, out));
        }
        Op::Try(it) => {
            let catch = it.catch.iter().flat_map(|catch| &catch.body);
            let all = it.body.iter().chain(catch).chain(it.finally.iter().flatten());
            all.for_each(|node| binds(node, out));
        }
        Op::Return(of) | Op::Throw(of) => of.iter().for_each(|node| binds(node, out)),
        Op::Assert { cond, message } => {
            binds(cond, out);
            message.iter().for_each(|node| binds(node, out));
        }
        _ => {}
    }
}

pub async fn parallel(m: &M, env: &Env, node: &Node, it: &Parallel) -> Res {
    let temps = operands(m, env, it.count.as_deref().into_iter().chain(it.max.as_deref())).await?;
    let (need, max) = limits(m, env, node, &temps, it.count.as_deref(), it.max.as_deref()).await?;
    let name_of = |node: &Node| match &node.op {
        Op::Bind {
            kind: BindKind::Branch,
            target: BindTarget::Name(name),
            ..
        } => Some(name.to_string()),
        _ => None,
    };
    let names: Vec<Option<String>> = it.branches.iter().map(name_of).collect();
    let (model, place, branches) = (m.clone(), env.clone(), it.branches.clone());
    let (end_model, end_env) = (m.clone(), env.clone());
    let mut bindable = Vec::new();
    for branch in &it.branches {
        let mut all = Vec::new();
        binds(branch, &mut all);
        bindable.push(all);
    }
    let own = names.clone();
    let at = node.clone();
    let plan = Plan {
        total: it.branches.len(),
        strategy: it.strategy,
        policy: it.policy,
        need,
        max,
        start: Rc::new(move |i, task, bound| {
            let (m, node) = (model.clone(), branches[i].clone());
            let env = Env {
                task,
                bound,
                testing: None,
                ..place.clone()
            };
            let around = Around {
                statement: true,
                ..PLAIN
            };
            Box::pin(async move { value(&m, &env, &node, around).await })
        }),
        end: Box::new(move |parts, decided| {
            let (m, env) = (&end_model, &end_env);
            let mut before = env.bound.borrow().clone();
            for part in parts {
                for name in part.bound.borrow().iter() {
                    if !before.contains(name) {
                        before.push(name.clone());
                    }
                }
            }
            *env.bound.borrow_mut() = before;
            if matches!(decided, Err(Exit::Cancel)) {
                return;
            }
            for ((part, all), own) in parts.iter().zip(&bindable).zip(&own) {
                let failed = match &part.how {
                    How::Ok(_) => continue,
                    How::Failed(error) if decided.is_ok() => Some(error),
                    _ => None,
                };
                for name in all {
                    if parts.iter().any(|part| part.bound.borrow().contains(name)) {
                        continue;
                    }
                    // When the join raises only what an earlier run has left is cleared.
                    let frame = frame_of(&env.scope);
                    let stale = find(&env.scope, name).is_some_and(|(at, ..)| Rc::ptr_eq(&at, &frame));
                    if decided.is_err() && !stale {
                        continue;
                    }
                    let is_own = own.as_ref() == Some(name);
                    let kind = if is_own { BindKind::Branch } else { BindKind::Let };
                    let value = match failed {
                        Some(error) if is_own => Value::Error(error.clone()),
                        _ => Value::Null,
                    };
                    env.bind(m, kind, name, value);
                }
            }
        }),
        is_loop: false,
        error: Box::new(move |message| error(&at, ErrorKind::Join, message)),
        labels: names
            .iter()
            .enumerate()
            .map(|(i, name)| name.clone().unwrap_or_else(|| format!("branch {}", i + 1)))
            .collect(),
    };
    let values = m.join(&env.task, plan).await?.into_iter().map(shown);
    Ok(match names.into_iter().collect::<Option<Vec<_>>>() {
        Some(names) if !names.is_empty() => Value::record(names.into_iter().zip(values)),
        _ => Value::list(values.collect()),
    })
}

/// Runs a body for each item at once, each in a frame of its own.
#[allow(clippy::too_many_arguments)]
pub fn each_at_once(
    m: &M,
    env: &Env,
    node: &Node,
    kind: FrameKind,
    names: (&Name, Option<&Name>),
    items: Vec<Value>,
    nodes: &[Node],
    modifiers: (Strategy, Policy, usize, usize),
) -> Plan {
    let (model, place, nodes) = (m.clone(), env.clone(), nodes.to_vec());
    let (name, index) = (names.0.clone(), names.1.cloned());
    let (strategy, policy, need, max) = modifiers;
    let at = node.clone();
    let total = items.len();
    Plan {
        total,
        strategy,
        policy,
        need,
        max,
        start: Rc::new(move |i, task, _| {
            let frame = Frame {
                kind: Some(kind),
                execution: Some(model.new_execution()),
                name: name.to_string(),
                depth: frame_of(&place.scope).frame.as_ref().expect("a frame").depth,
                ..Frame::default()
            };
            let scope = Scope::framed(Some(&place.scope), frame);
            scope.set(&name, items[i].clone(), BindKind::Loop);
            if let Some(index) = &index {
                scope.set(index, Value::Number(i as f64), BindKind::Loop);
            }
            let env = Env {
                task,
                scope,
                bound: Bound::default(),
                testing: None,
                ..place.clone()
            };
            let (m, nodes) = (model.clone(), nodes.clone());
            Box::pin(async move {
                match body(&m, &env, &nodes, PLAIN).await {
                    Err(Exit::Return(value)) if kind == FrameKind::Item => Ok(value),
                    how => how,
                }
            })
        }),
        end: Box::new(|_, _| {}),
        is_loop: kind == FrameKind::Iteration,
        error: Box::new(move |message| error(&at, ErrorKind::Join, message)),
        labels: (1..=total).map(|i| format!("item {i}")).collect(),
    }
}

pub async fn for_each(m: &M, env: &Env, node: &Node, it: &For) -> Res {
    let (count, max) = match &it.parallel {
        Some(it) => (it.count.as_deref(), it.max.as_deref()),
        None => (None, None),
    };
    let temps = operands(m, env, [&it.source].into_iter().chain(count).chain(max)).await?;
    let items = pure(m, env, node, &temps, |e| e.items(&e.value(&it.source)?)).await?;
    if let Some(modifiers) = &it.parallel {
        let (need, max) = limits(m, env, node, &temps, count, max).await?;
        let modifiers = (modifiers.strategy, modifiers.policy, need, max);
        let names = (&it.item, it.index.as_ref());
        let plan = each_at_once(
            m,
            env,
            node,
            FrameKind::Iteration,
            names,
            items,
            &it.body,
            modifiers,
        );
        let values = m.join(&env.task, plan).await?;
        return Ok(Value::list(values.into_iter().map(shown).collect()));
    }
    let layer = Scope::layer(&env.scope);
    let env = env.with(layer.clone());
    let mut values = Vec::new();
    for (i, item) in items.into_iter().enumerate() {
        layer.set(&it.item, item, BindKind::Loop);
        if let Some(index) = &it.index {
            layer.set(index, Value::Number(i as f64), BindKind::Loop);
        }
        match body(m, &env, &it.body, PLAIN).await {
            Ok(value) => values.push(value),
            Err(Exit::Break) => break,
            Err(exit) => return Err(exit),
        }
    }
    Ok(Value::list(values))
}

pub async fn pipeline(m: &M, env: &Env, node: &Node, source: &Node, stages: &[Stage]) -> Res {
    let sizes = stages.iter().filter_map(|stage| match stage {
        Stage::Chunks(size) => Some(&**size),
        _ => None,
    });
    let temps = operands(m, env, [source].into_iter().chain(sizes)).await?;
    let mut whole = pure(m, env, node, &temps, |e| e.value(source)).await?;
    for stage in stages {
        let items = pure(m, env, node, &temps, |e| e.items(&whole)).await?;
        let layer = Scope::layer(&env.scope);
        let inside = env.with(layer.clone());
        // `output EXPR` yields the item.
        let yielded = |how: Res| match how {
            Err(Exit::Return(value)) => Ok(value),
            how => how,
        };
        whole = match stage {
            Stage::Map { item, body: nodes } => {
                let mut out = Vec::new();
                for value in items {
                    layer.set(item, value, BindKind::Loop);
                    out.push(yielded(body(m, &inside, nodes, PLAIN).await)?);
                }
                Value::list(out)
            }
            Stage::Filter { item, body: nodes } => {
                let mut out = Vec::new();
                for value in items {
                    layer.set(item, value.clone(), BindKind::Loop);
                    let kept = yielded(body(m, &inside, nodes, CONDITION).await)?;
                    if pure(m, env, node, &Temps::new(), |e| e.truth(&kept)).await? {
                        out.push(value);
                    }
                }
                Value::list(out)
            }
            Stage::Reduce {
                acc,
                item,
                body: nodes,
            } => {
                let mut items = items.into_iter();
                let mut sum = items.next().unwrap_or_default();
                for value in items {
                    layer.set(acc, sum, BindKind::Loop);
                    layer.set(item, value, BindKind::Loop);
                    sum = yielded(body(m, &inside, nodes, PLAIN).await)?;
                }
                sum
            }
            Stage::Pmap { item, body: nodes } => {
                let modifiers = (Strategy::All, Policy::FailFast, 1, usize::MAX);
                let plan = each_at_once(
                    m,
                    env,
                    node,
                    FrameKind::Item,
                    (item, None),
                    items,
                    nodes,
                    modifiers,
                );
                let values = m.join(&env.task, plan).await?;
                Value::list(values.into_iter().map(shown).collect())
            }
            Stage::Chunks(size) => {
                let size = pure(m, env, node, &temps, |e| e.count(size)).await?;
                let chunks = items.chunks(size.max(1) as usize);
                Value::list(chunks.map(|chunk| Value::list(chunk.to_vec())).collect())
            }
        };
    }
    Ok(whole)
}
