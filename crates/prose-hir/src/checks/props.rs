//! Properties of agents and sessions.

use prose_model::vocabulary;

use super::{Context, near, repeated};
use crate::diagnostic::{Finding, Place};
use crate::hir::*;
use crate::view::Names;
use crate::{Fix, Tag, queries};

/// Longest prompt without a remark, in characters (compiler's W003).
const LONG_PROMPT: usize = 10_000;

pub(super) fn agent(ctx: &mut Context<'_>, agent: &AgentDef) {
    list(ctx, &agent.props, true);
}

pub(super) fn session(ctx: &mut Context<'_>, session: &Session) {
    list(ctx, &session.props, false);
    for modifier in &session.mods {
        match modifier.name.as_ref().map(|it| it.name.as_str()) {
            Some("retry") => {
                count(ctx, modifier, 0);
                modifier.value.iter().for_each(|it| many(ctx, it));
            }
            _ => {
                let text = "only `retry:` can stand here: write other properties on indented lines";
                ctx.push(Finding::new("P249", modifier.range, text));
            }
        }
    }
    if let Some(text) = &session.text {
        prompt(ctx, text, false);
    }
    let Some(name) = &session.agent else { return };
    let Some(agent) = ctx.program.agent(&name.name) else {
        return;
    };
    let (persists, prompted, site) = (agent.persists, agent.prompted, agent.site);
    let place = ctx.place(site, &name.name);
    if session.resume && !persists {
        let text = format!(
            "agent `{0}` keeps no memory to resume: add `persist: true` to it, or write `session: {0}`",
            name.name
        );
        ctx.push(Finding::new("E017", name.range, text).related(place.clone(), "the agent is declared here"));
    }
    if !prompted && session.text.is_none() && property(&session.props, "prompt").is_none() {
        let text = format!(
            "neither this session nor agent `{}` has a prompt: add `prompt: \"…\"`",
            name.name
        );
        ctx.push(Finding::new("P262", name.range, text).related(place, "the agent is declared here"));
    }
}

fn list(ctx: &mut Context<'_>, props: &[Property], of_agent: bool) {
    for (later, first) in repeated(props, |it| Some(&it.key.name)) {
        let (later, first) = (&props[later].key, &props[first].key);
        let text = format!("`{}:` is already given: remove one of the two", later.name);
        ctx.push(
            Finding::new("E009", later.range, text).related(Place::Here(first.range), "first given here"),
        );
    }
    for prop in props {
        let key = prop.key.name.as_str();
        let known = vocabulary::property(key).filter(|it| if of_agent { it.agent } else { it.session });
        if known.is_none() {
            unknown(ctx, prop, of_agent);
            continue;
        }
        match key {
            "model" => model(ctx, prop),
            "prompt" => match &prop.value {
                PropValue::Expr(Expr {
                    kind: ExprKind::Text(text),
                    ..
                })
                | PropValue::Block(text) => {
                    prompt(ctx, text, true);
                }
                _ => {}
            },
            "retry" => retry(ctx, prop),
            "backoff" => one_of(ctx, prop, &["none", "linear", "exponential"], true),
            "persist" => persist(ctx, prop),
            "skills" => skills(ctx, prop),
            "permissions" => permissions(ctx, prop),
            _ => {}
        }
    }
}

/// The word that a value is, quoted or not.
pub(super) fn word(value: &Expr) -> Option<String> {
    match &value.kind {
        ExprKind::Name(name) => Some(name.to_string()),
        ExprKind::Text(text) => text.plain(),
        _ => None,
    }
}

/// A modifier whose value is a number of at least so much, or something evaluated at run time.
pub(super) fn count(ctx: &mut Context<'_>, modifier: &Modifier, least: u32) {
    let Some(value) = &modifier.value else { return };
    let bad = match &value.kind {
        ExprKind::Number(number) => number.fract() != 0.0 || *number < f64::from(least),
        ExprKind::Neg(_) | ExprKind::Bool(_) | ExprKind::List { .. } | ExprKind::Null => true,
        ExprKind::Text(text) => text.plain().is_some_and(|it| it.trim().parse::<u32>().is_err()),
        _ => false,
    };
    if bad {
        let name = modifier.name.as_ref().map_or("this", |it| it.name.as_str());
        let text = format!("`{name}` takes a whole number of at least {least}");
        ctx.push(Finding::new("P249", value.range, text));
    }
}

fn unknown(ctx: &mut Context<'_>, prop: &Property, of_agent: bool) {
    let key = prop.key.name.as_str();
    let owner = if of_agent { "an agent" } else { "a session" };
    if let Some(it) = vocabulary::property(key) {
        let _ = it;
        let other = if of_agent { "a session" } else { "an agent" };
        let text = format!("`{key}:` belongs to {other}, not to {owner}, and is ignored here");
        ctx.push(Finding::new("W005", prop.key.range, text));
        return;
    }
    let known = vocabulary::PROPERTIES
        .iter()
        .filter(|it| if of_agent { it.agent } else { it.session });
    let mut finding = Finding::new(
        "W005",
        prop.key.range,
        format!("{owner} has no property `{key}`, so that it is ignored"),
    );
    if let Some(near) = near::nearest(key, known.map(|it| it.key)) {
        finding = near::offer(finding, prop.key.range, Some(near));
    } else {
        finding.message.push_str(": remove it, or say it in the prompt");
    }
    ctx.push(finding);
}

fn model(ctx: &mut Context<'_>, prop: &Property) {
    let range = value_range(prop);
    match &prop.value {
        PropValue::Missing => {}
        PropValue::Word(word) => unknown_model(ctx, &word.name, range),
        PropValue::Expr(value) => match &value.kind {
            ExprKind::Name(name) => unknown_model(ctx, name, range),
            ExprKind::Text(_) | ExprKind::Member { .. } | ExprKind::Index { .. } | ExprKind::Missing => {}
            _ => ctx.push(Finding::new(
                "E008",
                range,
                "a model is a name: `sonnet`, `opus`, `haiku`, or a string",
            )),
        },
        _ => ctx.push(Finding::new(
            "E008",
            range,
            "a model is a name: `sonnet`, `opus`, `haiku`, or a string",
        )),
    }
}

fn unknown_model(ctx: &mut Context<'_>, name: &str, range: prose_syntax::TextRange) {
    if vocabulary::MODELS.iter().any(|it| it.word == name) {
        return;
    }
    let mut finding = Finding::new(
        "P241",
        range,
        format!("model `{name}` is none of sonnet, opus, haiku"),
    );
    match near::nearest(name, vocabulary::MODELS.iter().map(|it| it.word)) {
        Some(near) => {
            finding = near::offer(finding, range, Some(near));
        }
        None => finding
            .message
            .push_str(": the backend must know it; put it in quotes if it does"),
    }
    ctx.push(finding);
}

/// `property`: the text of a `prompt:`, else the text of a session.
fn prompt(ctx: &mut Context<'_>, text: &Template, property: bool) {
    if text.content.is_empty() {
        let (code, message) = if property {
            ("W004", "the prompt is empty: say what is to be done")
        } else {
            ("W001", "the session's prompt is empty: say what is to be done")
        };
        ctx.push(Finding::new(code, text.range, message));
    } else if text.pieces().all(|it| it.trim().is_empty()) {
        ctx.push(Finding::new(
            "W002",
            text.range,
            "the prompt is only blanks: say what is to be done",
        ));
    } else if text.pieces().map(str::len).sum::<usize>() > LONG_PROMPT
        && text.pieces().map(|it| it.chars().count()).sum::<usize>() > LONG_PROMPT
    {
        let text_start =
            prose_syntax::TextRange::at(text.range.start(), text.content.start() - text.range.start());
        let message = format!("the prompt has more than {LONG_PROMPT} characters: consider several sessions");
        ctx.push(Finding::new("W003", text_start, message));
    }
}

fn value_range(prop: &Property) -> prose_syntax::TextRange {
    match &prop.value {
        PropValue::Missing => prop.key.range,
        PropValue::Expr(it) => it.range,
        PropValue::Nested(_, range) | PropValue::Dashes(_, range) => *range,
        PropValue::Block(it) => it.range,
        PropValue::Word(it) => it.range,
    }
}

fn odd_value(ctx: &mut Context<'_>, prop: &Property, expected: &str) {
    let text = format!("`{}:` takes {expected}; this value is ignored", prop.key.name);
    ctx.push(Finding::new("P258", value_range(prop), text));
}

/// More retries than that are hardly meant (compiler's table of error handling).
const MANY_RETRIES: f64 = 10.0;

fn many(ctx: &mut Context<'_>, value: &Expr) {
    if let ExprKind::Number(number) = value.kind
        && number > MANY_RETRIES
    {
        let text = format!(
            "{number} retries are unusually many: {MANY_RETRIES} or fewer do, or catch the error with `try`"
        );
        ctx.push(Finding::new("P268", value.range, text));
    }
}

fn retry(ctx: &mut Context<'_>, prop: &Property) {
    if let PropValue::Expr(value) = &prop.value {
        many(ctx, value);
    }
    let fine = match &prop.value {
        PropValue::Missing => true,
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Number(number) => *number >= 0.0 && number.fract() == 0.0,
            ExprKind::Name(_)
            | ExprKind::Member { .. }
            | ExprKind::Index { .. }
            | ExprKind::Binary { .. }
            | ExprKind::Missing => true,
            ExprKind::Text(text) => text.plain().is_none_or(|it| it.trim().parse::<u32>().is_ok()),
            _ => false,
        },
        _ => false,
    };
    if !fine {
        odd_value(ctx, prop, "a whole number of tries");
    }
}

fn one_of(ctx: &mut Context<'_>, prop: &Property, words: &[&str], number: bool) {
    let fine = match &prop.value {
        PropValue::Missing => true,
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Number(_) | ExprKind::Duration(_) => number,
            ExprKind::Missing => true,
            _ => word(it).is_some_and(|it| words.contains(&it.as_str())),
        },
        PropValue::Word(it) => words.contains(&it.name.as_str()),
        _ => false,
    };
    if !fine {
        odd_value(ctx, prop, &words.join(", "));
    }
}

fn persist(ctx: &mut Context<'_>, prop: &Property) {
    let fine = match &prop.value {
        PropValue::Missing => true,
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Bool(_) | ExprKind::Text(_) | ExprKind::Missing | ExprKind::Null => true,
            ExprKind::Name(name) => matches!(name.as_str(), "project" | "user" | "execution"),
            _ => false,
        },
        // The parser has asked for quotes.
        PropValue::Word(_) => true,
        _ => false,
    };
    if !fine {
        let text = "`persist:` takes `true`, `project`, `user` or a folder in quotes; `true` is taken";
        ctx.push(Finding::new("P258", value_range(prop), text));
    }
}

fn skills(ctx: &mut Context<'_>, prop: &Property) {
    let range = value_range(prop);
    match &prop.value {
        PropValue::Expr(it) => match &it.kind {
            ExprKind::List { items, .. } => {
                if items.is_empty() {
                    ctx.push(
                        Finding::new("W010", range, "the list of skills is empty: remove it")
                            .tag(Tag::Unnecessary),
                    );
                }
                items.iter().for_each(|it| skill(ctx, it));
            }
            ExprKind::Text(_) | ExprKind::Name(_) => {
                ctx.push(
                    Finding::new("P258", range, "`skills:` takes a list: put the name in brackets").fix(
                        Fix::new(
                            "Put it in brackets",
                            vec![
                                (prose_syntax::TextRange::empty(range.start()), "[".into()),
                                (prose_syntax::TextRange::empty(range.end()), "]".into()),
                            ],
                        )
                        .automatic(),
                    ),
                );
                skill(ctx, it);
            }
            ExprKind::Missing => {}
            _ => ctx.push(Finding::new(
                "E013",
                range,
                "`skills:` takes a list: `[\"name\", …]`",
            )),
        },
        PropValue::Dashes(items, _) => items.iter().for_each(|it| skill(ctx, it)),
        PropValue::Missing | PropValue::Word(_) => {}
        _ => ctx.push(Finding::new(
            "E013",
            range,
            "`skills:` takes a list: `[\"name\", …]`",
        )),
    }
}

fn skill(ctx: &mut Context<'_>, item: &Expr) {
    let name = match &item.kind {
        ExprKind::Text(text) => text.plain(),
        ExprKind::Name(name) if !ctx.program.has_value(name) => Some(name.to_string()),
        ExprKind::Name(_) | ExprKind::Member { .. } | ExprKind::Index { .. } | ExprKind::Missing => None,
        _ => {
            ctx.push(Finding::new(
                "E014",
                item.range,
                "a skill is named by a string: put its name in quotes",
            ));
            return;
        }
    };
    let Some(name) = name else { return };
    let skills = queries::known_skills(ctx.db, ctx.file);
    if !skills.contains(&name) && !skills.contains(name.trim_start_matches('@')) {
        let text = format!(
            "skill `{name}` is not declared in this file, so that the backend must have it: bring it in with `use`"
        );
        ctx.push(Finding::new("W007", item.range, text));
    }
}

fn permissions(ctx: &mut Context<'_>, prop: &Property) {
    let rules = match &prop.value {
        PropValue::Nested(rules, _) => rules,
        PropValue::Missing
        | PropValue::Expr(Expr {
            kind: ExprKind::Record(_) | ExprKind::Missing,
            ..
        }) => return,
        _ => {
            let text = "`permissions:` takes indented lines: `read: [\"src/**\"]`, `bash: deny`";
            ctx.push(Finding::new("E015", value_range(prop), text));
            return;
        }
    };
    for (later, first) in repeated(rules, |it| Some(&it.key.name)) {
        let (later, first) = (&rules[later].key, &rules[first].key);
        let text = format!(
            "permission `{}:` is already given: remove one of the two",
            later.name
        );
        ctx.push(
            Finding::new("E009", later.range, text).related(Place::Here(first.range), "first given here"),
        );
    }
    for rule in rules {
        let key = rule.key.name.as_str();
        if vocabulary::permission(key).is_none() {
            let mut finding = Finding::new(
                "W008",
                rule.key.range,
                format!("`{key}` is no kind of permission"),
            );
            match near::nearest(key, vocabulary::PERMISSIONS.iter().map(|it| it.word)) {
                Some(near) => {
                    finding = near::offer(finding, rule.key.range, Some(near));
                }
                None => finding
                    .message
                    .push_str(": known are read, write, execute, bash and network"),
            }
            ctx.push(finding);
        }
        permission(ctx, rule);
    }
}

fn permission(ctx: &mut Context<'_>, rule: &Property) {
    let items: &[Expr] = match &rule.value {
        PropValue::Expr(it) => match &it.kind {
            ExprKind::Name(name) if vocabulary::PERMISSION_VALUES.iter().any(|it| *name == it.word) => return,
            ExprKind::Text(_) | ExprKind::Missing | ExprKind::Member { .. } => return,
            ExprKind::List { items, .. } => items,
            _ => {
                let text =
                    "a permission is `allow`, `deny`, `prompt` or a list of patterns; `prompt` is taken";
                ctx.push(Finding::new("W009", it.range, text));
                return;
            }
        },
        PropValue::Dashes(items, _) => items,
        PropValue::Missing => return,
        _ => {
            let text = "a permission is `allow`, `deny`, `prompt` or a list of patterns; `prompt` is taken";
            ctx.push(Finding::new("W009", value_range(rule), text));
            return;
        }
    };
    for item in items {
        let fine = matches!(
            item.kind,
            ExprKind::Text(_)
                | ExprKind::Name(_)
                | ExprKind::Member { .. }
                | ExprKind::Index { .. }
                | ExprKind::Binary { .. }
                | ExprKind::Missing
        );
        if !fine {
            ctx.push(Finding::new(
                "E016",
                item.range,
                "a permission's pattern is a string: put it in quotes, as in `\"src/**\"`",
            ));
        }
    }
}
