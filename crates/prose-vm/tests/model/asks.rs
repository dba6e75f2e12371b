//! What is asked of sessions, of the judge and of the person: language.md, "Sessions", "Judging", "Execution".

use std::sync::Arc;

use prose_model::*;

use crate::interp::*;
use crate::scope::*;
use crate::tasks::{Exit, Res};

/// What the judge is asked, with the names it is told.
pub fn question(env: &Env, what: &str, text: &Text) -> String {
    let names = visible(&env.scope);
    let names: Vec<_> = names
        .iter()
        .map(|(name, value)| format!("{name}={}", crate::show(value)))
        .collect();
    format!("judge {what}: {} [{}]", crate::show_text(text), names.join(", "))
}

pub async fn judge(m: &M, env: &Env, node: &Node, text: &Template, around: &Around) -> Res {
    let mut inside = Vec::new();
    in_template(text, &mut inside);
    let temps = lift(m, env, inside).await?;
    let text = pure(m, env, node, &temps, |e| e.template(text)).await?;
    let testing = match around.ask {
        Kind::Loop(_) => env.testing.clone(),
        _ => None,
    };
    let what = match (&testing, around.ask) {
        (_, Kind::Value) => "a value".to_owned(),
        (Some(testing), Kind::Loop(until)) => {
            let before: Vec<_> = testing
                .verdicts
                .borrow()
                .iter()
                .filter(|(id, _)| *id == node.id.as_str())
                .map(|(_, said)| said.clone())
                .collect();
            format!("a loop {until} {} {before:?}", testing.test.get())
        }
        _ => "a condition".to_owned(),
    };
    let verdict = match m.ask(&env.task, question(env, &what, &text)).await? {
        Outcome::Verdict(verdict) => verdict,
        Outcome::Failed(failure) => return Err(error(node, failure.kind, failure.message)),
        other => panic!("{other:?}"),
    };
    if let Some(testing) = testing {
        if verdict.decision == Decision::NoProgress {
            testing.no_progress.set(true);
        }
        let said = format!("{:?}", verdict.decision);
        testing.verdicts.borrow_mut().push((node.id.to_string(), said));
    }
    Ok(match verdict.decision {
        Decision::Yes => Value::Bool(true),
        Decision::No => Value::Bool(false),
        Decision::Value(value) => value,
        _ if around.ask == Kind::Value => Value::Null,
        _ => Value::Bool(around.unsure),
    })
}

pub async fn choice(m: &M, env: &Env, node: &Node, criteria: &Template, options: &[ChoiceOption]) -> Res {
    let mut inside = Vec::new();
    in_template(criteria, &mut inside);
    let temps = lift(m, env, inside).await?;
    let (labels, text) = pure(m, env, node, &temps, |e| {
        let mut labels = Vec::new();
        for option in options {
            labels.push(match &option.template {
                Some(template) => crate::reading::plain_text(&e.template(template)?),
                None => option.label.clone(),
            });
        }
        Ok((labels, e.template(criteria)?))
    })
    .await?;
    let asked = question(env, &format!("a choice {labels:?}"), &text);
    let verdict = match m.ask(&env.task, asked).await? {
        Outcome::Verdict(verdict) => verdict,
        Outcome::Failed(failure) => return Err(error(node, failure.kind, failure.message)),
        other => panic!("{other:?}"),
    };
    let Decision::Option(chosen) = verdict.decision else {
        let message = format!("the judge could not choose: {}", verdict.reason);
        return Err(error(node, ErrorKind::Judge, message));
    };
    let plain = |label: &str| crate::without_places(label.to_owned());
    let at = labels.iter().position(|label| plain(label) == plain(&chosen));
    let Some(at) = at else {
        let message = format!("the judge chose \"{}\", which is no option", chosen.trim());
        return Err(error(node, ErrorKind::Judge, message));
    };
    body(m, env, &options[at].body, PLAIN).await
}

pub async fn session(m: &M, env: &Env, node: &Node, it: &Session, around: &Around) -> Res {
    let bundle = m.bundle.clone();
    let program = m.world.borrow().instances[env.instance].program;
    let program = &bundle.programs[program];
    let agent = it.agent.as_ref().and_then(|name| program.agents.get(name));
    let no_props = Props::default();
    let defaults = agent.map_or(&no_props, |agent| &agent.props);
    let own = &it.props;
    let context = own.context.as_ref().or(defaults.context.as_ref());
    let retry = own.retry.as_ref().or(defaults.retry.as_ref());
    let backoff = own.backoff.or(defaults.backoff).unwrap_or(Backoff::None);
    struct Spawn {
        label: Option<Text>,
        prompt: Option<Text>,
        agent: Option<Text>,
        retries: u64,
        context: Vec<(String, Value)>,
    }
    let plan = pure(m, env, node, &Temps::new(), |e| {
        let text = |node: &Option<Box<Node>>| match node {
            Some(node) => Ok(Some(e.text(&e.value(node)?)?)),
            None => Ok(None),
        };
        let (label, prompt, agent) = (text(&it.label)?, text(&own.prompt)?, text(&defaults.prompt)?);
        let retries = match retry {
            Some(node) => e.count(node)?,
            None => 0,
        };
        let mut given = Vec::new();
        for item in context.iter().flat_map(|context| &context.items) {
            given.push((item.label.clone(), e.value(&item.value)?));
        }
        Ok(Spawn {
            label,
            prompt,
            agent,
            retries,
            context: given,
        })
    })
    .await?;
    let has_own = plan.label.is_some() || plan.prompt.is_some();
    let mut task = Text::default();
    for (i, text) in [&plan.label, &plan.prompt].into_iter().flatten().enumerate() {
        if i > 0 && !task.is_empty() {
            task.push_str("\n\n");
        }
        task.push(text);
    }
    let (task, system) = match (has_own, plan.agent) {
        (false, Some(agent)) => (agent, None),
        (_, agent) => (task, agent),
    };
    let items = around.previous.iter().chain(&plan.context);
    let items: Vec<_> = items
        .map(|(label, value)| format!("{label}={}", crate::show(value)))
        .collect();
    // Where the result goes.
    let own_target = it
        .name
        .as_ref()
        .map(|name| (name.to_string(), Some(BindKind::Let)));
    let target = own_target.or_else(|| around.target.clone());
    let target = target.and_then(|(name, kind)| match kind {
        Some(kind) => Some((env.scope.clone(), name, kind)),
        None => match assignable(&env.scope, &name) {
            Some((at, kind)) => kind.file_kind().map(|_| (at, name, kind)),
            None => Some((env.scope.clone(), name, BindKind::Let)),
        },
    });
    let anonymous = target.is_none();
    let (at, name, kind) = target.unwrap_or_else(|| {
        let mut world = m.world.borrow_mut();
        let instance = &mut world.instances[env.instance];
        instance.anonymous += 1;
        let name = format!("anon_{:03}", instance.anonymous);
        (env.scope.clone(), name, BindKind::Anonymous)
    });
    let key = env.key(m, &at, &name);
    let mode = agent.and_then(|agent| agent.persist.as_ref()).map(|_| it.resume);
    let most = plan.retries + 1;
    for attempt in 1..=most {
        let asked = format!(
            "session {:?} {} system {} [{}] {attempt}/{most} -> {key} {kind:?} memory {mode:?} scope {:?}",
            it.agent,
            crate::show_text(&task),
            system.as_ref().map_or_else(String::new, crate::show_text),
            items.join(", "),
            block_of(&env.scope).map(|block| {
                let frame = block.frame.as_ref().expect("a frame");
                (frame.name.clone(), frame.execution, frame.depth)
            }),
        );
        let failure = match m.ask(&env.task, asked).await? {
            Outcome::Session(outcome) if crate::is_blank(&outcome.value) => Failure {
                kind: ErrorKind::Empty,
                message: "the session returned nothing".into(),
                retry_after_ms: None,
                usage: Usage::default(),
            },
            Outcome::Session(outcome) => {
                *env.task.last_target.borrow_mut() = name.clone();
                if it.name.is_some() {
                    env.bind(m, BindKind::Let, &name, outcome.value.clone());
                } else if anonymous {
                    env.note(m, &at, &name, BindKind::Anonymous, &outcome.value);
                }
                return Ok(outcome.value);
            }
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        };
        if attempt == most || failure.kind == ErrorKind::Budget {
            return Err(Exit::Error(Arc::new(ErrorValue {
                kind: failure.kind,
                message: failure.message,
                statement: node.id.clone(),
                place: String::new(),
                attempts: attempt as u32,
            })));
        }
        let ms = match backoff {
            Backoff::None => 0,
            Backoff::Linear => 1_000,
            Backoff::Exponential => (1_000 * 2_u64.pow(attempt as u32 - 1)).min(60_000),
            Backoff::Millis(ms) => ms,
        };
        if ms > 0 || failure.retry_after_ms.is_some() {
            m.ask(&env.task, format!("sleep {ms}")).await?;
        }
    }
    unreachable!()
}

pub async fn input(m: &M, env: &Env, node: &Node, it: &Input) -> Res {
    let supplied = m.world.borrow_mut().instances[env.instance]
        .supplied
        .shift_remove(it.name.as_str());
    if let Some(value) = supplied {
        env.bind(m, BindKind::Input, &it.name, value.clone());
        return Ok(value);
    }
    let prompt = it.prompt.clone().unwrap_or(Template { parts: Vec::new() });
    let prompt = pure(m, env, node, &Temps::new(), |e| e.template(&prompt)).await?;
    let asked = format!("input {} {}", it.name, crate::show_text(&prompt));
    match m.ask(&env.task, asked).await? {
        Outcome::Input { value } => {
            env.bind(m, BindKind::Input, &it.name, value.clone());
            Ok(value)
        }
        Outcome::Failed(failure) => Err(error(node, failure.kind, failure.message)),
        other => panic!("{other:?}"),
    }
}
