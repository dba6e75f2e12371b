//! What can be seen in a construct itself.

use prose_model::arguments::assign;
use prose_syntax::TextRange;

use super::{Context, contracts, lints, near, props, repeated};
use crate::Fix;
use crate::diagnostic::{Finding, Place};
use crate::hir::*;
use crate::view::Names;

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
                lints::agent(ctx, it);
                for prop in &it.props {
                    if let PropValue::Expr(value) = &prop.value {
                        expr(ctx, value, inside);
                    }
                }
            }
            StmtKind::Block(it) => {
                repeated_modifiers(ctx, &it.mods);
                for modifier in &it.mods {
                    match modifier.name.as_ref().map(|it| it.name.as_str()) {
                        Some("max_depth") => props::count(ctx, modifier, 1),
                        _ => unknown_modifier(ctx, modifier, "`max_depth:`"),
                    }
                }
                lints::stmts(ctx, &it.body.stmts);
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
    lints::expr(ctx, it);
    match &it.kind {
        ExprKind::Session(session) => props::session(ctx, session),
        ExprKind::DoCall {
            callee: Some(callee),
            args,
        } => {
            if ctx.program.block(&callee.name).is_some() {
                arity(ctx, callee, args);
            } else {
                contracts::inputs(ctx, callee, args);
            }
        }
        ExprKind::Call {
            callee: Some(callee),
            args,
        } => {
            if ctx.program.import(&callee.name).is_some() {
                contracts::inputs(ctx, callee, args);
            } else {
                arity(ctx, callee, args);
            }
        }
        ExprKind::Let {
            target: LetTarget::Record(names),
            value,
            ..
        } => contracts::outputs(ctx, names, value),
        ExprKind::Member { of, key } => contracts::outputs(ctx, std::slice::from_ref(key), of),
        ExprKind::Parallel { mods, body } => {
            join(ctx, mods, Some(body.stmts.len()));
            one_memory(ctx, body);
        }
        ExprKind::For(it) => {
            if it.parallel {
                join(ctx, &it.mods, None);
                if let [
                    Stmt {
                        kind: StmtKind::Expr(only),
                        ..
                    },
                ] = it.body.stmts.as_slice()
                    && let Some(name) = persistent(ctx, only)
                {
                    waits(ctx, name, None);
                }
            } else {
                it.mods
                    .iter()
                    .for_each(|it| unknown_modifier(ctx, it, "no modifier"));
            }
            swapped(ctx, it);
        }
        ExprKind::Repeat { count, mods, .. } => {
            rounds(ctx, count);
            mods.iter()
                .for_each(|it| unknown_modifier(ctx, it, "no modifier"));
        }
        ExprKind::If { arms, .. } => arms.iter().for_each(|(cond, _)| unjudged(ctx, cond)),
        ExprKind::Loop(inner) => {
            inner.cond.iter().for_each(|it| unjudged(ctx, it));
            repeated_modifiers(ctx, &inner.mods);
            for modifier in &inner.mods {
                match modifier.name.as_ref().map(|it| it.name.as_str()) {
                    Some("max") => props::count(ctx, modifier, 1),
                    _ => unknown_modifier(ctx, modifier, "`max:`"),
                }
            }
            if inner.cond.is_none()
                && modifier(&inner.mods, "max").is_none()
                && !leaves(&inner.body)
                && !ctx.is_broken(it.range)
            {
                let word = ctx.keyword(it.range, "loop");
                let text = "nothing ends this loop before the safety limit: add `until **…**` or `(max: N)`";
                ctx.push(Finding::new("P263", word, text));
            }
        }
        ExprKind::Try { catches, finally, .. } => {
            let word = ctx.keyword(it.range, "try");
            if catches.is_empty() && finally.is_none() && !ctx.is_broken(it.range) {
                ctx.push(Finding::new(
                    "P149",
                    word,
                    "`try` needs a `catch:` or a `finally:`",
                ));
            }
            let place =
                |(name, body): &(Option<Ident>, Body)| name.as_ref().map_or(body.range, |it| it.range);
            for catch in catches.iter().skip(1) {
                let text = "only the first `catch` counts: put both bodies into one";
                let first = Place::Here(place(&catches[0]));
                ctx.push(Finding::new("P257", place(catch), text).related(first, "the first `catch`"));
            }
        }
        ExprKind::Choice { options, .. } => {
            if options.is_empty() && !ctx.is_broken(it.range) {
                let word = ctx.keyword(it.range, "choice");
                ctx.push(Finding::new(
                    "P150",
                    word,
                    "`choice` has no options: add `option \"…\":` below",
                ));
            }
            for (later, first) in repeated(options, |it| Some(it.label.as_str())) {
                let (option, first) = (&options[later], &options[first]);
                let text = format!(
                    "another option has the label \"{}\", and the two can't be told apart: rename one",
                    option.label
                );
                ctx.push(
                    Finding::new("P264", option.range, text).related(Place::Here(first.range), "first here"),
                );
            }
        }
        ExprKind::Break if !inside.loop_ => {
            ctx.push(Finding::new("P153", it.range, "`break` is in no loop: remove it"));
        }
        ExprKind::Throw(None) if !inside.catch => {
            let text = "`throw` alone raises the caught error again, and here is none: give it a message";
            ctx.push(Finding::new("P265", it.range, text));
        }
        ExprKind::Throw(Some(message)) if is_blank(message) => {
            let text = "the message is empty: say what is wrong";
            ctx.push(Finding::new("P265", message.range, text));
        }
        ExprKind::Input {
            value: Some(value), ..
        } if is_blank(value) => {
            let text = "the description is empty: say what is asked for";
            ctx.push(Finding::new("P215", value.range, text));
        }
        ExprKind::Return { is_return, value }
            if !inside.block
                && !inside.stage
                && !ctx.is_broken(it.range)
                && (*is_return || !lints::is_missing(value.as_deref())) =>
        {
            let text = match lints::is_missing(value.as_deref()) {
                true => {
                    "there is no block to return from, so that the program ends here: remove this, or put what it leaves into a block"
                }
                false => {
                    "there is no block to return from: this becomes the program's value; write `output name = …`"
                }
            };
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

/// Whether it is a text with nothing in it.
fn is_blank(it: &Expr) -> bool {
    let blank = |part: &Part| matches!(part, Part::Text(text) if text.trim().is_empty());
    matches!(&it.kind, ExprKind::Text(text) if text.parts.iter().all(blank))
}

/// How often `repeat` runs its body.
fn rounds(ctx: &mut Context<'_>, count: &Expr) {
    let text = match &count.kind {
        ExprKind::Number(number) if *number < 1.0 => "the body never runs: give a whole number of at least 1",
        ExprKind::Number(number) if number.fract() != 0.0 => {
            "a number of rounds is whole: this one is rounded down"
        }
        ExprKind::Neg(_) => "the body never runs: give a whole number of at least 1",
        ExprKind::Bool(_) | ExprKind::Null | ExprKind::List { .. } | ExprKind::Record(_) => {
            "this is no number of rounds: give a whole number of at least 1"
        }
        _ => return,
    };
    ctx.push(Finding::new("P266", count.range, text));
}

/// A text where a judge was meant to be asked.
fn unjudged(ctx: &mut Context<'_>, cond: &Expr) {
    let ExprKind::Text(text) = &cond.kind else { return };
    let message = "a text in quotes is never judged: write the condition between `**`";
    let finding = Finding::new("P269", cond.range, message);
    let edges = [
        TextRange::new(text.range.start(), text.content.start()),
        TextRange::new(text.content.end(), text.range.end()),
    ];
    let stars = if edges[0].len() == prose_syntax::TextSize::of('"') {
        "**"
    } else {
        "***"
    };
    let edits = edges.map(|it| (it, stars.to_owned())).to_vec();
    ctx.push(finding.fix(Fix::new("Put it between asterisks", edits)));
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
    let place = ctx.place(block.site, &callee.name);
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
    let known: Vec<&str> = params.iter().map(|it| it.as_str()).collect();
    let names: Vec<Option<&str>> = args
        .iter()
        .map(|arg| arg.name.as_ref().map(|it| it.name.as_str()))
        .collect();
    let assigned = assign(&known, &names);
    let missing: Vec<_> = params
        .iter()
        .enumerate()
        .filter(|(at, _)| !assigned.contains(&Some(*at)))
        .map(|(_, it)| format!("`{it}`"))
        .collect();
    let expects = |n: usize| match n {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    };
    let extra = args
        .iter()
        .zip(&assigned)
        .find(|(arg, at)| arg.name.is_none() && at.is_none());
    if let Some((extra, _)) = extra {
        let range = extra.value.range;
        let text = format!(
            "block `{name}` takes {} and gets {}: the rest is ignored",
            expects(params.len()),
            positional
        );
        ctx.push(Finding::new("P240", range, text).related(place, format!("declared here with ({list})")));
    } else if !missing.is_empty() {
        let text = format!(
            "block `{name}` takes {} and gets {}: {} will be null, pass it",
            expects(params.len()),
            args.len(),
            missing.join(" and ")
        );
        ctx.push(
            Finding::new("P240", callee.range, text).related(place, format!("declared here with ({list})")),
        );
    }
}

fn unknown_modifier(ctx: &mut Context<'_>, modifier: &Modifier, expected: &str) {
    let range = modifier.name.as_ref().map_or(modifier.range, |it| it.range);
    let what = match &modifier.name {
        Some(name) => format!("modifier `{}`", name.name),
        None => "this modifier".to_owned(),
    };
    // `expected` names the known ones as `on-fail:`.
    let known = expected.split('`').filter_map(|it| it.strip_suffix(':'));
    let word = modifier.name.as_ref().map(|it| it.name.replace('_', "-"));
    let near = word.and_then(|word| {
        known
            .filter(|it| it.replace('_', "-") == word || near::nearest(&word, [*it]).is_some())
            .min_by_key(|it| it.replace('_', "-") != word)
    });
    let finding = Finding::new("P249", range, format!("{what} is not known here and is ignored"));
    ctx.push(match near {
        Some(near) => Finding {
            message: format!("{}: did you mean `{near}`?", finding.message),
            ..finding
        },
        None => Finding {
            message: format!("{}: expected {expected}", finding.message),
            ..finding
        },
    });
}

/// A strategy of `parallel` that nobody knows.
fn unknown_strategy(ctx: &mut Context<'_>, modifier: &Modifier, word: Option<&str>) {
    let range = modifier.value.as_ref().map_or(modifier.range, |it| it.range);
    let text = "this strategy is not known and \"all\" is taken";
    let near = word.and_then(|it| near::nearest(it, ["all", "first", "any"]));
    let finding = match near {
        Some(near) => Finding::new("P249", range, format!("{text}: did you mean (\"{near}\")?")),
        None => {
            let expected = "expected (\"all\"), (\"first\") or (\"any\")";
            Finding::new("P249", range, format!("{text}: {expected}"))
        }
    };
    ctx.push(finding);
}

/// What parentheses say twice: only one of the two can count.
fn repeated_modifiers(ctx: &mut Context<'_>, mods: &[Modifier]) {
    let key = |it: &'_ Modifier| match &it.name {
        Some(name) if !matches!(name.name.as_str(), "strategy" | "join") => Some(name.name),
        _ => Some("strategy".into()),
    };
    for (later, first) in repeated(mods, key) {
        let (later, first) = (&mods[later], &mods[first]);
        let what = match &later.name {
            Some(name) => format!("`{}:`", name.name),
            None => "the strategy".to_owned(),
        };
        let text = format!("{what} is already given: remove one of the two");
        ctx.push(
            Finding::new("P249", later.range, text).related(Place::Here(first.range), "first given here"),
        );
    }
}

/// Join strategy, failure policy and limits of `parallel`.
fn join(ctx: &mut Context<'_>, mods: &[Modifier], branches: Option<usize>) {
    repeated_modifiers(ctx, mods);
    let mut strategy = String::new();
    for modifier in mods {
        let word = modifier.value.as_ref().and_then(props::word);
        match modifier.name.as_ref().map(|it| it.name.as_str()) {
            None | Some("strategy" | "join") => match word.as_deref() {
                Some(known @ ("all" | "first" | "any")) => {
                    if modifier.name.is_some() {
                        let text =
                            format!("other tools know the strategy only without a name: write (\"{known}\")");
                        let fix = Fix::replace("Remove the name", modifier.range, format!("\"{known}\""));
                        ctx.push(Finding::new("P249", modifier.range, text).fix(fix.automatic()));
                    }
                    strategy = known.to_owned();
                }
                Some("race") => {
                    let text = "the strategy is called \"first\"";
                    let finding = Finding::new("P249", modifier.range, text);
                    let value = modifier.value.as_ref().map_or(modifier.range, |it| it.range);
                    let fix = Fix::replace("Write \"first\"", value, "\"first\"");
                    ctx.push(finding.fix(fix.automatic()));
                }
                _ => unknown_strategy(ctx, modifier, word.as_deref()),
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
    if strategy == "any"
        && let Some(branches) = branches
        && let Some(Expr {
            kind: ExprKind::Number(count),
            range,
        }) = modifier(mods, "count")
        && *count > branches as f64
    {
        let text = format!(
            "{count} branches have to succeed and there are only {branches}, so that this can only fail: lower `count:`"
        );
        ctx.push(Finding::new("P267", *range, text));
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

fn waits(ctx: &mut Context<'_>, name: &Ident, first: Option<TextRange>) {
    let text = format!(
        "sessions of `{0}` share one memory, so that they run one after the other here: write them without `parallel`, or give each an agent of its own",
        name.name
    );
    let finding = Finding::new("L403", name.range, text);
    ctx.push(match first {
        Some(first) => finding.related(Place::Here(first), "the first session of this memory"),
        None => finding,
    });
}

/// Branches that share an agent's memory.
fn one_memory(ctx: &mut Context<'_>, body: &Body) {
    let agents: Vec<&Ident> = body
        .stmts
        .iter()
        .filter_map(|stmt| match &stmt.kind {
            StmtKind::Expr(it) => persistent(ctx, it),
            _ => None,
        })
        .collect();
    for (later, first) in repeated(&agents, |it| Some(&it.name)) {
        waits(ctx, agents[later], Some(agents[first].range));
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
            "the item comes first, so that `{}` is the item here and `{}` its index: swap the two",
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
