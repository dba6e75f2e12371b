//! What can be seen in a construct itself.

use prose_model::codes::Severity;
use prose_syntax::TextRange;

use super::{Context, props};
use crate::Fix;
use crate::diagnostic::{Finding, Place};
use crate::hir::*;

/// What a place is inside of.
#[derive(Clone, Copy, Default)]
struct Inside {
    block: bool,
    loop_: bool,
    stage: bool,
    catch: bool,
}

pub(super) fn check(ctx: &mut Context<'_>) {
    let body = ctx.body;
    stmts(ctx, &body.stmts, Inside::default());
}

fn stmts(ctx: &mut Context<'_>, list: &[Stmt], inside: Inside) {
    for stmt in list {
        match &stmt.kind {
            StmtKind::Use(_) | StmtKind::SkillImport { .. } => {}
            StmtKind::Agent(it) => {
                props::agent(ctx, it);
                for prop in &it.props {
                    if let PropValue::Expr(value) = &prop.value {
                        expr(ctx, value, inside);
                    }
                }
            }
            StmtKind::Block(it) => {
                for modifier in &it.mods {
                    match modifier.name.as_ref().map(|it| it.name.as_str()) {
                        Some("max_depth") => props::count(ctx, modifier, 1),
                        _ => unknown_modifier(ctx, modifier, "`max_depth:`"),
                    }
                }
                stmts(
                    ctx,
                    &it.body.stmts,
                    Inside {
                        block: true,
                        ..Inside::default()
                    },
                );
            }
            StmtKind::Expr(it) => expr(ctx, it, inside),
        }
    }
}

fn expr(ctx: &mut Context<'_>, it: &Expr, inside: Inside) {
    match &it.kind {
        ExprKind::Session(session) => props::session(ctx, session),
        ExprKind::DoCall {
            callee: Some(callee),
            args,
        } => {
            if ctx.program.block(&callee.name).is_some() {
                arity(ctx, callee, args);
            } else {
                inputs(ctx, callee, args);
            }
        }
        ExprKind::Call {
            callee: Some(callee),
            args,
        } => {
            if ctx.program.import(&callee.name).is_some() {
                inputs(ctx, callee, args);
            } else {
                arity(ctx, callee, args);
            }
        }
        ExprKind::Let {
            target: LetTarget::Record(names),
            value,
            ..
        } => outputs(ctx, names, value),
        ExprKind::Member { of, key } => outputs(ctx, std::slice::from_ref(key), of),
        ExprKind::Parallel { mods, body } => {
            join(ctx, mods);
            one_memory(ctx, body);
        }
        ExprKind::For(it) => {
            if it.parallel {
                join(ctx, &it.mods);
                if let [
                    Stmt {
                        kind: StmtKind::Expr(only),
                        ..
                    },
                ] = it.body.stmts.as_slice()
                    && let Some(name) = persistent(ctx, only)
                {
                    waits(ctx, name);
                }
            } else {
                it.mods
                    .iter()
                    .for_each(|it| unknown_modifier(ctx, it, "no modifier"));
            }
            swapped(ctx, it);
        }
        ExprKind::Repeat { mods, .. } => mods
            .iter()
            .for_each(|it| unknown_modifier(ctx, it, "no modifier")),
        ExprKind::Loop(inner) => {
            for modifier in &inner.mods {
                match modifier.name.as_ref().map(|it| it.name.as_str()) {
                    Some("max") => props::count(ctx, modifier, 1),
                    _ => unknown_modifier(ctx, modifier, "`max:`"),
                }
            }
            if inner.cond.is_none() && modifier(&inner.mods, "max").is_none() && !leaves(&inner.body) {
                let word = TextRange::at(it.range.start(), prose_syntax::TextSize::of("loop"));
                let text = "nothing ends this loop before the safety limit: add `until **…**` or `(max: N)`";
                ctx.push(Finding::new("P263", word, text));
            }
        }
        ExprKind::Try { catches, finally, .. } => {
            let word = TextRange::at(it.range.start(), prose_syntax::TextSize::of("try"));
            if catches.is_empty() && finally.is_none() && !is_broken(ctx, it.range) {
                ctx.push(Finding::new(
                    "P149",
                    word,
                    "`try` needs a `catch:` or a `finally:`",
                ));
            }
            for (name, body) in catches.iter().skip(1) {
                let range = name.as_ref().map_or(body.range, |it| it.range);
                ctx.push(Finding::new(
                    "P257",
                    range,
                    "only the first `catch` counts: put both bodies into one",
                ));
            }
        }
        ExprKind::Choice { options, .. } => {
            if options.is_empty() && !is_broken(ctx, it.range) {
                let word = TextRange::at(it.range.start(), prose_syntax::TextSize::of("choice"));
                ctx.push(Finding::new(
                    "P150",
                    word,
                    "`choice` has no options: add `option \"…\":` below",
                ));
            }
            for (index, option) in options.iter().enumerate() {
                if let Some(first) = options[..index].iter().find(|it| it.label == option.label) {
                    let text = format!(
                        "another option has the label \"{}\": the two can't be told apart",
                        option.label
                    );
                    ctx.push(
                        Finding::new("P264", option.range, text)
                            .related(Place::Here(first.range), "first here"),
                    );
                }
            }
        }
        ExprKind::Break if !inside.loop_ => {
            ctx.push(Finding::new("P153", it.range, "`break` is in no loop: remove it"));
        }
        ExprKind::Throw(None) if !inside.catch => {
            let text = "`throw` alone raises the caught error again, and here is none: give it a message";
            ctx.push(Finding::new("P265", it.range, text));
        }
        ExprKind::Return { .. } if !inside.block && !inside.stage => {
            let text =
                "there is no block to return from: this becomes the program's value; write `output name = …`";
            ctx.push(Finding::new("P248", it.range, text));
        }
        _ => {}
    }
    let now = match &it.kind {
        ExprKind::For(_) | ExprKind::Repeat { .. } | ExprKind::Loop(_) => Inside {
            loop_: true,
            ..inside
        },
        ExprKind::Pipeline { .. } => Inside {
            stage: true,
            loop_: false,
            ..inside
        },
        _ => inside,
    };
    if let ExprKind::Try {
        body,
        catches,
        finally,
    } = &it.kind
    {
        stmts(ctx, &body.stmts, now);
        for (_, body) in catches {
            stmts(ctx, &body.stmts, Inside { catch: true, ..now });
        }
        if let Some(body) = finally {
            stmts(ctx, &body.stmts, now);
        }
        return;
    }
    let mut children = Vec::new();
    each_child(it, &mut |child| children.push(child));
    for child in children {
        match child {
            Child::Expr(it) => expr(ctx, it, now),
            Child::Body(it) => stmts(ctx, &it.stmts, now),
        }
    }
}

/// Whether the parser has already reported an error there, so that what is missing may be missing because of it.
fn is_broken(ctx: &Context<'_>, range: TextRange) -> bool {
    ctx.findings
        .iter()
        .any(|it| it.severity == Severity::Error && range.contains_range(it.range))
}

/// Whether a loop's body can leave the loop.
fn leaves(body: &Body) -> bool {
    fn leaves_expr(expr: &Expr) -> bool {
        if matches!(
            expr.kind,
            ExprKind::Break | ExprKind::Return { .. } | ExprKind::Throw(_)
        ) {
            return true;
        }
        let mut found = false;
        each_child(expr, &mut |child| {
            found |= match child {
                Child::Expr(it) => leaves_expr(it),
                Child::Body(it) => leaves(it),
            }
        });
        found
    }
    body.stmts
        .iter()
        .any(|stmt| matches!(&stmt.kind, StmtKind::Expr(it) if leaves_expr(it)))
}

fn arity(ctx: &mut Context<'_>, callee: &Ident, args: &[Argument]) {
    let Some(block) = ctx.program.block(&callee.name) else {
        return;
    };
    let params = block.params.clone();
    let place = ctx.place(block.site);
    let name = &callee.name;
    let list = params.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    let positional = args.iter().filter(|it| it.name.is_none()).count();
    for arg in args {
        if let Some(key) = &arg.name
            && !params.contains(&key.name)
        {
            let text = format!("block `{name}` has no parameter `{}`: it has ({list})", key.name);
            ctx.push(Finding::new("P240", key.range, text).related(place, "the block is declared here"));
            return;
        }
    }
    let missing: Vec<_> = params
        .iter()
        .skip(positional)
        .filter(|param| {
            !args
                .iter()
                .any(|arg| arg.name.as_ref().is_some_and(|it| it.name == **param))
        })
        .map(|it| format!("`{it}`"))
        .collect();
    let expects = |n: usize| match n {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    };
    if positional > params.len() {
        let range = args
            .iter()
            .filter(|it| it.name.is_none())
            .nth(params.len())
            .map_or(callee.range, |it| it.value.range);
        let text = format!(
            "block `{name}` takes {} and gets {}: the rest is ignored",
            expects(params.len()),
            positional
        );
        ctx.push(Finding::new("P240", range, text).related(place, format!("declared here with ({list})")));
    } else if !missing.is_empty() {
        let text = format!(
            "block `{name}` takes {} and gets {}: {} will be null",
            expects(params.len()),
            args.len(),
            missing.join(" and ")
        );
        ctx.push(
            Finding::new("P240", callee.range, text).related(place, format!("declared here with ({list})")),
        );
    }
}

/// The contract of an imported program, when its file is known.
fn program_of(ctx: &Context<'_>, name: &str) -> Option<std::sync::Arc<crate::symbols::FileSymbols>> {
    let target = &ctx.program.import(name)?.target;
    let file = (*ctx.program.files.get(target)?)?;
    (file.state(ctx.db) == crate::FileState::Text).then(|| crate::queries::file_symbols(ctx.db, file).clone())
}

fn inputs(ctx: &mut Context<'_>, callee: &Ident, args: &[Argument]) {
    let Some(symbols) = program_of(ctx, &callee.name) else {
        return;
    };
    let name = &callee.name;
    for arg in args {
        let Some(key) = &arg.name else { continue };
        if symbols.inputs.iter().any(|it| it.name == key.name) {
            continue;
        }
        let known: Vec<&str> = symbols.inputs.iter().map(|it| it.name.as_str()).collect();
        let mut finding = Finding::new(
            "E027",
            key.range,
            format!("program `{name}` has no input `{}`", key.name),
        );
        match super::near::nearest(&key.name, known.iter().copied()) {
            Some(near) => {
                finding.message.push_str(&format!(": did you mean `{near}`?"));
                finding.fix = Some(Fix::replace(format!("Replace with `{near}`"), key.range, near));
            }
            None if known.is_empty() => finding.message.push_str(": it has none"),
            None => finding
                .message
                .push_str(&format!(": it has {}", known.join(", "))),
        }
        ctx.push(finding);
    }
    let positional = args.iter().filter(|it| it.name.is_none()).count();
    let missing: Vec<String> = symbols
        .inputs
        .iter()
        .skip(positional)
        .filter(|input| !input.has_default)
        .filter(|input| {
            !args
                .iter()
                .any(|arg| arg.name.as_ref().is_some_and(|it| it.name == input.name))
        })
        .map(|it| format!("`{}`", it.name))
        .collect();
    if !missing.is_empty() {
        let text = format!(
            "program `{name}` is not given {}: whoever runs it will be asked",
            missing.join(" and ")
        );
        ctx.push(Finding::new("E026", callee.range, text));
    }
}

/// Keys taken from the result of a program call.
fn outputs(ctx: &mut Context<'_>, keys: &[Ident], value: &Expr) {
    let ExprKind::Call {
        callee: Some(callee), ..
    } = &value.kind
    else {
        return;
    };
    let Some(symbols) = program_of(ctx, &callee.name) else {
        return;
    };
    // Without declared outputs the result is whatever the last statement gives.
    if symbols.outputs.is_empty() {
        return;
    }
    for key in keys.iter().filter(|key| !symbols.outputs.contains(&key.name)) {
        let known: Vec<&str> = symbols.outputs.iter().map(|it| it.as_str()).collect();
        let mut finding = Finding::new(
            "E028",
            key.range,
            format!(
                "program `{}` has no output `{}`, so that this is null",
                callee.name, key.name
            ),
        );
        match super::near::nearest(&key.name, known.iter().copied()) {
            Some(near) => {
                finding.message.push_str(&format!(": did you mean `{near}`?"));
                finding.fix = Some(Fix::replace(format!("Replace with `{near}`"), key.range, near));
            }
            None => finding
                .message
                .push_str(&format!(": it has {}", known.join(", "))),
        }
        ctx.push(finding);
    }
}

fn unknown_modifier(ctx: &mut Context<'_>, modifier: &Modifier, expected: &str) {
    let range = modifier.name.as_ref().map_or(modifier.range, |it| it.range);
    let what = match &modifier.name {
        Some(name) => format!("modifier `{}`", name.name),
        None => "this modifier".to_owned(),
    };
    ctx.push(Finding::new(
        "P249",
        range,
        format!("{what} is not known here and is ignored: expected {expected}"),
    ));
}

/// Join strategy, failure policy and limits of `parallel`.
fn join(ctx: &mut Context<'_>, mods: &[Modifier]) {
    let mut strategy = String::new();
    for modifier in mods {
        let word = modifier.value.as_ref().and_then(props::word);
        match modifier.name.as_ref().map(|it| it.name.as_str()) {
            None | Some("strategy" | "join") => match word.as_deref() {
                Some("all" | "first" | "any") => strategy = word.unwrap_or_default(),
                Some("race") => {
                    let text = "the strategy is called \"first\"";
                    let finding = Finding::new("P249", modifier.range, text);
                    let value = modifier.value.as_ref().map_or(modifier.range, |it| it.range);
                    let fix = Fix::replace("Write \"first\"", value, "\"first\"");
                    ctx.push(finding.fix(fix.automatic()));
                }
                _ => unknown_modifier(
                    ctx,
                    modifier,
                    "\"all\", \"first\", \"any\", `on-fail:`, `count:` or `max:`",
                ),
            },
            Some("on-fail") => match word.as_deref() {
                Some("fail-fast" | "continue" | "ignore") => {}
                Some("collect") => {
                    let value = modifier.value.as_ref().map_or(modifier.range, |it| it.range);
                    let text = "the policy \"collect\" is called \"continue\"";
                    let fix = Fix::replace("Write \"continue\"", value, "\"continue\"");
                    ctx.push(Finding::new("P249", value, text).fix(fix.automatic()));
                }
                _ => {
                    let value = modifier.value.as_ref().map_or(modifier.range, |it| it.range);
                    let text = "this policy is not known and \"fail-fast\" is taken: expected \"fail-fast\", \"continue\" or \"ignore\"";
                    ctx.push(Finding::new("P249", value, text));
                }
            },
            Some("count" | "max") => props::count(ctx, modifier, 1),
            Some(_) => unknown_modifier(
                ctx,
                modifier,
                "\"all\", \"first\", \"any\", `on-fail:`, `count:` or `max:`",
            ),
        }
    }
    if strategy != "any"
        && let Some(count) = mods
            .iter()
            .find(|it| it.name.as_ref().is_some_and(|it| it.name == "count"))
    {
        let text = "`count:` only counts with the strategy \"any\"";
        ctx.push(Finding::new("P249", count.range, text));
    }
}

/// The persistent agent whose session a statement runs directly.
fn persistent<'a>(ctx: &Context<'_>, expr: &'a Expr) -> Option<&'a Ident> {
    match &expr.kind {
        ExprKind::Session(it) => it
            .agent
            .as_ref()
            .filter(|name| ctx.program.agent(&name.name).is_some_and(|it| it.persists)),
        ExprKind::Let { value, .. } | ExprKind::Assign { value, .. } | ExprKind::Output { value, .. } => {
            persistent(ctx, value)
        }
        _ => None,
    }
}

fn waits(ctx: &mut Context<'_>, name: &Ident) {
    let text = format!(
        "sessions of `{}` share one memory and run one after the other here",
        name.name
    );
    ctx.push(Finding::new("L403", name.range, text));
}

/// Branches that share an agent's memory.
fn one_memory(ctx: &mut Context<'_>, body: &Body) {
    let mut seen: Vec<&str> = Vec::new();
    for stmt in &body.stmts {
        let StmtKind::Expr(it) = &stmt.kind else { continue };
        let Some(name) = persistent(ctx, it) else { continue };
        if seen.contains(&name.name.as_str()) {
            waits(ctx, name);
        }
        seen.push(&name.name);
    }
}

/// `for i, x in xs`: the item comes first, the index second.
fn swapped(ctx: &mut Context<'_>, it: &For) {
    let (Some(item), Some(index)) = (&it.item, &it.index) else {
        return;
    };
    let counts =
        |name: &str| matches!(name, "i" | "j" | "k" | "n" | "idx" | "index") || name.ends_with("_index");
    if counts(&item.name) && !counts(&index.name) {
        let text = format!(
            "the item comes first: `{}` is the item here and `{}` its index",
            item.name, index.name
        );
        let edits = vec![
            (item.range, index.name.to_string()),
            (index.range, item.name.to_string()),
        ];
        let fix = Fix::new("Swap the two", edits);
        ctx.push(Finding::new("P250", item.range.cover(index.range), text).fix(fix));
    }
}
