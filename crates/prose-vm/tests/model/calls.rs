//! Calls of blocks and programs: language.md, "Scope" and "Execution".

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::*;

use crate::interp::*;
use crate::scope::*;
use crate::tasks::{Bound, Exit, How, Instance, Model, Plan, Res};

pub async fn arguments(
    m: &M,
    env: &Env,
    node: &Node,
    args: &[Argument],
) -> Result<Vec<(Option<Name>, Value)>, Exit> {
    let temps = operands(m, env, args.iter().map(|arg| &arg.value)).await?;
    pure(m, env, node, &temps, |e| {
        args.iter()
            .map(|arg| Ok((arg.name.clone(), e.value(&arg.value)?)))
            .collect()
    })
    .await
}

/// By name, else by position among those that no name is given for.
pub fn matched(names: &[&Name], args: Vec<(Option<Name>, Value)>) -> IndexMap<String, Value> {
    let mut given = IndexMap::new();
    let mut open: Vec<&Name> = names.to_vec();
    open.retain(|own| !args.iter().any(|(name, _)| name.as_ref() == Some(*own)));
    open.reverse();
    for (name, value) in args {
        let to = match &name {
            Some(name) => names.iter().copied().find(|own| *own == name),
            None => open.pop(),
        };
        if let Some(to) = to {
            given.insert(to.to_string(), value);
        }
    }
    given
}

pub async fn call(m: &M, env: &Env, node: &Node, block: &Name, args: &[Argument], statement: bool) -> Res {
    let args = arguments(m, env, node, args).await?;
    let bundle = m.bundle.clone();
    let program = m.world.borrow().instances[env.instance].program;
    let callee = &bundle.programs[program].blocks[block];
    let depth = frame_of(&env.scope).frame.as_ref().expect("a frame").depth + 1;
    let most = callee.max_depth.unwrap_or(100);
    if depth > most {
        let message = format!("[Error] RecursionLimitExceeded: block '{block}' exceeded max_depth {most}");
        return Err(error(node, ErrorKind::RecursionLimitExceeded, message));
    }
    let frame = Frame {
        kind: Some(FrameKind::Block),
        execution: Some(m.new_execution()),
        name: block.to_string(),
        depth,
        ..Frame::default()
    };
    let scope = Scope::framed(Some(&env.scope), frame);
    let given = matched(&callee.params.iter().collect::<Vec<_>>(), args);
    for param in &callee.params {
        let value = given.get(param.as_str()).cloned().unwrap_or_default();
        scope.set(param, value, BindKind::Param);
    }
    let inside = Env {
        bound: Bound::default(),
        testing: None,
        ..env.with(scope.clone())
    };
    let how = body(m, &inside, &callee.body, PLAIN).await;
    let frame = scope.frame.as_ref().expect("a frame");
    if statement {
        let caller = frame_of(&env.scope);
        let mut left = caller.frame.as_ref().expect("a frame").residue.borrow_mut();
        left.extend(frame.residue.borrow().clone());
        left.extend(
            scope
                .slots
                .borrow()
                .iter()
                .map(|(name, (value, _))| (name.clone(), value.clone())),
        );
    }
    let outputs = frame.outputs.borrow().clone();
    match how {
        Ok(value) => Ok(match outputs.len() {
            0 => value,
            1 => outputs.values().next().cloned().unwrap_or_default(),
            _ => Value::record(outputs),
        }),
        Err(Exit::Return(value)) => Ok(value),
        Err(Exit::Break) => Err(error(node, ErrorKind::Type, "break outside a loop")),
        Err(exit) => Err(exit),
    }
}

pub async fn call_program(m: &M, env: &Env, node: &Node, import: &Name, written: &[Argument]) -> Res {
    let args = arguments(m, env, node, written).await?;
    let bundle = m.bundle.clone();
    let caller = m.world.borrow().instances[env.instance].program;
    let index = bundle.programs[caller].imports[import]
        .program
        .expect("a resolved program");
    let callee = &bundle.programs[index];
    let execution = m.new_execution();
    let names: Vec<&Name> = callee.inputs.iter().map(|input| &input.name).collect();
    // A variable alone is the input of its name.
    let args = args
        .into_iter()
        .zip(written)
        .map(|((name, value), arg)| match &arg.value.op {
            Op::Name(own) if name.is_none() && names.contains(&own) => (Some(own.clone()), value),
            _ => (name, value),
        })
        .collect();
    let supplied = matched(&names, args);
    let instance = {
        let mut world = m.world.borrow_mut();
        let own = &mut world.instances[env.instance];
        let mut path = own.path.clone();
        let times = own.calls.entry(callee.namespace.clone()).or_default();
        *times += 1;
        path.push(match *times {
            1 => callee.namespace.clone(),
            _ => format!("{}__{execution}", callee.namespace),
        });
        world.instances.push(Instance {
            program: index,
            path,
            supplied,
            ..Instance::default()
        });
        world.instances.len() - 1
    };
    let depth = frame_of(&env.scope).frame.as_ref().expect("a frame").depth;
    let frame = Frame {
        kind: Some(FrameKind::Program),
        execution: Some(execution),
        name: import.to_string(),
        depth,
        ..Frame::default()
    };
    let inside = Env {
        scope: Scope::framed(Some(&env.scope), frame),
        instance,
        bound: Bound::default(),
        testing: None,
        task: env.task.clone(),
    };
    let how = program(m, &inside, callee).await;
    let outputs = m.world.borrow().instances[instance].outputs.clone();
    match how {
        Ok(value) if callee.outputs.is_empty() && outputs.is_empty() => Ok(value),
        Ok(_) => Ok(Value::record(outputs)),
        Err(Exit::Return(value)) => Ok(value),
        Err(exit) => Err(exit),
    }
}

/// A program: its leading inputs at once, then its statements.
pub async fn program(m: &M, env: &Env, it: &Program) -> Res {
    let own: Vec<&Name> = it
        .inputs
        .iter()
        .filter(|own| own.leading)
        .map(|own| &own.name)
        .collect();
    // One whose prompt needs the answer to another comes after it.
    let mut seen: Vec<&Name> = Vec::new();
    let mut leads = |node: &Node| match &node.op {
        Op::Input(input) => {
            let prompt = input.prompt.iter().flat_map(|prompt| &prompt.parts);
            let needs = |part: &TemplatePart| match part {
                TemplatePart::Insert { verbatim, .. } => own.iter().any(|name| {
                    verbatim.trim_matches(['{', '}']).split(['.', '[']).next() == Some(name.as_str())
                }),
                TemplatePart::Text(_) => false,
            };
            let name = own.iter().find(|name| ***name == input.name);
            match name {
                Some(name) if !seen.contains(name) && !prompt.clone().any(needs) => {
                    seen.push(name);
                    true
                }
                _ => false,
            }
        }
        _ => false,
    };
    let (leading, rest): (Vec<Node>, Vec<Node>) = it.body.iter().cloned().partition(|node| leads(node));
    let mut last = Value::Null;
    if !leading.is_empty() {
        let (model, place, nodes) = (m.clone(), env.clone(), leading.clone());
        let plan = Plan {
            total: leading.len(),
            strategy: Strategy::All,
            policy: Policy::FailFast,
            need: 1,
            max: usize::MAX,
            start: Rc::new(move |i, task, bound| {
                let (m, node) = (model.clone(), nodes[i].clone());
                let env = Env {
                    task,
                    bound,
                    ..place.clone()
                };
                Box::pin(async move { value(&m, &env, &node, PLAIN).await })
            }),
            end: Box::new(|_, _| {}),
            is_loop: false,
            error: Box::new(|_| Exit::Break),
            labels: Vec::new(),
        };
        for how in m.join(&env.task, plan).await? {
            if let How::Ok(value) = how {
                last = value;
            }
        }
    }
    let how = match rest.is_empty() {
        true => Ok(last),
        false => body(m, env, &rest, PLAIN).await,
    };
    match (how, it.body.first()) {
        (Err(Exit::Break), Some(first)) => Err(error(first, ErrorKind::Type, "break outside a loop")),
        (how, _) => how,
    }
}

/// Starts the bundle's entry.
pub fn start(bundle: Arc<Bundle>) -> M {
    let m = Rc::new(Model {
        bundle: bundle.clone(),
        world: RefCell::default(),
    });
    m.world.borrow_mut().instances.push(Instance::default());
    let model = m.clone();
    m.start(move |task| {
        Box::pin(async move {
            let env = Env {
                scope: Scope::framed(None, Frame::default()),
                task,
                instance: 0,
                bound: Bound::default(),
                testing: None,
            };
            program(&model, &env, &bundle.programs[0]).await
        })
    });
    m
}
