//! Uses of names.

use prose_model::vocabulary;

use crate::Name;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashSet;

use super::{Context, near};
use crate::Fix;
use crate::diagnostic::Finding;
use crate::queries;
use crate::resolve::{Binding, Resolved, Resolver};
use crate::scopes::{DefKind, ROOT, Ref, RefKind};
use crate::symbols::ProgramScope;
use crate::view::Names;

pub(super) fn check(ctx: &mut Context<'_>) {
    let scopes = ctx.scopes;
    let mut met = Met::default();
    for used in &scopes.refs {
        let resolved = ctx.resolver().resolve(used);
        match used.kind {
            RefKind::Agent | RefKind::Resume => {
                agent(ctx, used, &resolved);
                memory(ctx, used, &mut met);
            }
            RefKind::Do => block(ctx, used, &resolved),
            RefKind::Call => program(ctx, used, &resolved),
            RefKind::Assign => assign(ctx, used, resolved),
            RefKind::Insert => insert(ctx, used, &resolved),
            RefKind::Value => value(ctx, used, &resolved),
            RefKind::Bare | RefKind::Word | RefKind::Label => {}
        }
    }
}

fn agent(ctx: &mut Context<'_>, used: &Ref, resolved: &Resolved) {
    let name = &used.name;
    let finding = match resolved.kind {
        Some(DefKind::Agent) => return,
        Some(DefKind::Block) => Finding::new(
            "E007",
            used.range,
            format!("`{name}` is a block, not an agent: call it with `do {name}`"),
        ),
        Some(_) => Finding::new(
            "E007",
            used.range,
            format!("`{name}` is an imported program, not an agent: call it as `{name}(input: value)`"),
        ),
        // It may be declared in a file that can't be read, which is reported where it is used.
        None if ctx.view.incomplete => return,
        None if ctx.program.vars(name).is_some() => Finding::new(
            "E007",
            used.range,
            format!("`{name}` is a variable, not an agent: declare `agent {name}:` or name an agent"),
        ),
        None => {
            let near = ctx.meant(name, Among::Agents);
            let finding = Finding::new("E007", used.range, format!("no agent `{name}` is declared"));
            match near {
                Some(near) => near::offer(finding, used.range, Some(near)),
                None => Finding {
                    message: format!("{}: add `agent {name}:`", finding.message),
                    ..finding
                },
            }
        }
    };
    let finding = match resolved.site {
        Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
        None => finding,
    };
    ctx.push(finding);
}

/// The agents whose memory was used so far.
#[derive(Default)]
struct Met<'a> {
    /// By scope and name.
    in_scope: FxHashSet<(u32, &'a Name)>,
    /// In earlier statements of the top level, at any depth, and in the one being looked at.
    earlier: FxHashSet<&'a Name>,
    now: Vec<&'a Name>,
    /// Which statement that is.
    stmt: usize,
}

/// Whether there is something to go on with, or something that is thrown away.
fn memory<'a>(ctx: &mut Context<'a>, used: &'a Ref, met: &mut Met<'a>) {
    let name = &used.name;
    let Some(agent) = ctx.program.agent(name).filter(|it| it.persists) else {
        return;
    };
    let scopes = ctx.scopes;
    let stmts = &ctx.body.stmts;
    if stmts
        .get(met.stmt)
        .is_some_and(|it| it.range.end() <= used.range.start())
    {
        met.stmt = stmts.partition_point(|it| it.range.end() <= used.range.start());
        met.earlier.extend(met.now.drain(..));
    }
    let frame = scopes.frame_of(used.scope);
    let before = scopes
        .ancestors_in(frame, used.scope)
        .any(|it| met.in_scope.contains(&(it, name)))
        || frame == ROOT && met.earlier.contains(name);
    met.in_scope.insert((used.scope, name));
    met.now.push(name);
    let own = agent.site.file == ctx.file;
    if used.kind == RefKind::Resume {
        // Read only where it matters: it changes with every new session of the file.
        if agent.short_lived && own && !ctx.view.uses_files {
            let (_, starts) = *queries::memory(ctx.db, ctx.chunk, *name);
            if !starts {
                let text = format!(
                    "nothing starts a session of `{name}`, so that there is no memory yet: begin with `session: {name}`"
                );
                ctx.push(Finding::new("E018", used.range, text));
            }
        }
        return;
    }
    let earlier = || frame == ROOT && queries::memory(ctx.db, ctx.chunk, *name).0;
    if before || earlier() {
        let text = format!(
            "this starts `{name}` afresh and archives what it remembers: to go on write `resume: {name}`"
        );
        ctx.push(Finding::new("W011", used.range, text));
    }
}

fn block(ctx: &mut Context<'_>, used: &Ref, resolved: &Resolved) {
    let name = &used.name;
    let finding = match resolved.kind {
        Some(DefKind::Block | DefKind::Import) => return,
        None if ctx.view.incomplete => return,
        Some(_) => Finding::new(
            "P141",
            used.range,
            format!("`{name}` is an agent, not a block: run a session of it with `session: {name}`"),
        ),
        None => {
            let near = ctx.meant(name, Among::Blocks);
            let finding = Finding::new("P141", used.range, format!("no block `{name}` is declared"));
            match near {
                Some(near) => near::offer(finding, used.range, Some(near)),
                None => Finding {
                    message: format!("{}: add `block {name}:`", finding.message),
                    ..finding
                },
            }
        }
    };
    let finding = match resolved.site {
        Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
        None => finding,
    };
    ctx.push(finding);
}

fn program(ctx: &mut Context<'_>, used: &Ref, resolved: &Resolved) {
    let name = &used.name;
    let finding = match resolved.kind {
        Some(DefKind::Import) => return,
        Some(DefKind::Block) => Finding::new(
            "P256",
            used.range,
            format!("`{name}` is a block: call it with `do {name}(…)`"),
        )
        .fix(Fix::replace(
            format!("Write `do {name}`"),
            TextRange::empty(used.range.start()),
            "do ",
        )),
        Some(_) => Finding::new(
            "E025",
            used.range,
            format!("`{name}` is an agent, not a program: run a session of it with `session: {name}`"),
        ),
        None if ctx.view.incomplete => return,
        None => {
            let near = ctx.meant(name, Among::Called);
            let finding = Finding::new(
                "E025",
                used.range,
                format!("no program or block `{name}` to call"),
            );
            match near {
                Some(near) => near::offer(finding, used.range, Some(near)),
                None if matches!(name.as_str(), "session" | "resume") => {
                    let message = format!(
                        "`{name}` takes no parentheses: name the agent behind a colon, `{name}: agent`"
                    );
                    Finding { message, ..finding }
                }
                None => {
                    let message = format!("{}: bring it in with `use \"…\" as {name}`", finding.message);
                    Finding { message, ..finding }
                }
            }
        }
    };
    let finding = match resolved.site {
        Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
        None => finding,
    };
    ctx.push(finding);
}

fn assign(ctx: &mut Context<'_>, used: &Ref, resolved: Resolved) {
    let name = &used.name;
    let kind = resolved.kind;
    let declared = match resolved.binding {
        Binding::Sure | Binding::AfterLoop => true,
        // The assignment is itself among what declares the name later.
        Binding::NextRound | Binding::Later | Binding::OtherBlock => {
            let real = kind.is_some_and(|it| it.declares_slot());
            if real && resolved.binding != Binding::OtherBlock {
                let finding = Finding::new(
                    "P243",
                    used.range,
                    format!("`{name}` is assigned before it is declared"),
                );
                let finding = match resolved.site {
                    Some(site) => finding.related(ctx.place(site, name), "declared only here"),
                    None => finding,
                };
                ctx.push(finding);
                return;
            }
            false
        }
        // An agent of that name is reported with the declarations.
        Binding::Global => kind == Some(DefKind::Agent),
        Binding::Unbound => false,
    };
    if !declared {
        let form = match name.as_str() {
            "output" => Some("output name = …` or `output …"),
            "input" => Some("input name: \"…\""),
            _ => None,
        };
        if let Some(form) = form.filter(|_| resolved.binding != Binding::OtherBlock) {
            let text = format!("this sets a variable called `{name}`: write `{form}`");
            ctx.push(Finding::new("P243", used.range, text));
            return;
        }
        let elsewhere = resolved.binding == Binding::OtherBlock && kind.is_some_and(|it| it.declares_slot());
        let text = if elsewhere {
            format!(
                "`{name}` is declared only in another block, whose variable this changes when that block is a caller: write `let {name} = …` for one of its own"
            )
        } else {
            format!("`{name}` is not declared: write `let {name} = …`")
        };
        let at = TextRange::empty(used.range.start());
        let fix = Fix::replace("Add `let`", at, "let ");
        let finding = Finding::new("P243", used.range, text).fix(fix);
        let finding = match resolved.site.filter(|_| elsewhere) {
            Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
            None => finding,
        };
        ctx.push(finding);
        return;
    }
    let finding = match kind {
        Some(DefKind::Const) => Finding::new(
            "P144",
            used.range,
            format!(
                "`{name}` is a constant and can't be assigned: declare it with `let`, or use another name"
            ),
        ),
        Some(
            kind @ (DefKind::Item | DefKind::Index | DefKind::Catch | DefKind::Implicit | DefKind::Reduce),
        ) => {
            if resolved.binding == Binding::AfterLoop {
                return;
            }
            let noun = kind.a_noun();
            Finding::new(
                "P145",
                used.range,
                format!("`{name}` is {noun} and can't be assigned: use another name"),
            )
        }
        Some(DefKind::Param) => Finding::new(
            "P343",
            used.range,
            format!("`{name}` is a parameter: another name for the new value reads better"),
        ),
        _ => return,
    };
    let finding = match resolved.site {
        Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
        None => finding,
    };
    ctx.push(finding);
}

/// Whether a name is in sight at a use.
fn is_visible(ctx: &Context<'_>, used: &Ref, name: &Name) -> bool {
    let other = queries::seen(ctx.db, ctx.chunk, *name);
    let resolver = Resolver {
        program: &**other,
        ..ctx.resolver()
    };
    resolver.variable(name, used.scope, used.seq).binding == Binding::Sure
}

/// Names in sight at a use, sorted, of those that are one edit away or else near enough to have been meant.
fn visible<'a>(ctx: &Context<'a>, used: &Ref, one_edit: bool) -> Vec<&'a str> {
    let names = queries::like(ctx.db, ctx.file, used.name, one_edit);
    let names = names.iter().filter(|it| is_visible(ctx, used, it));
    names.map(|it| it.as_str()).collect()
}

/// Names of variables that are one edit away from a word or else near enough to have been meant, sorted.
pub(crate) fn like(program: &ProgramScope, word: &str, one_edit: bool) -> Vec<Name> {
    let edits = if one_edit { 1 } else { 2 };
    let wanted = |it: &str| match one_edit {
        true => near::one_edit(word, it),
        false => near::may_be(word, it),
    };
    let mut names: Vec<Name> = program
        .own
        .vars
        .like(word, edits)
        .filter(|it| wanted(it))
        .cloned()
        .collect();
    names.sort_unstable();
    names
}

/// Where a name is looked for that was probably meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Among {
    /// Agents that the file sees.
    Agents,
    /// Blocks that the file sees.
    Blocks,
    /// Programs that it uses, and its own blocks.
    Called,
}

/// The name that was probably meant by a word.
pub(crate) fn meant(program: &ProgramScope, word: &str, among: Among) -> Option<Name> {
    let own = &program.own;
    match among {
        Among::Agents => near::nearest_name(word, own.agents.keys().chain(program.agents.keys())),
        Among::Blocks => near::nearest_name(word, own.blocks.keys().chain(program.blocks.keys())),
        Among::Called => near::nearest_name(word, own.imports.keys().chain(own.blocks.keys())),
    }
}

fn insert(ctx: &mut Context<'_>, used: &Ref, resolved: &Resolved) {
    match resolved.binding {
        Binding::Unbound | Binding::Later => {}
        Binding::AfterLoop => return value(ctx, used, resolved),
        // It may be there when the text is evaluated.
        _ => return,
    }
    let name = &used.name;
    let near = match name.chars().count() {
        0..=2 => Vec::new(),
        _ if resolved.binding == Binding::Later => Vec::new(),
        _ => visible(ctx, used, true),
    };
    let finding = match (resolved.binding, near.first()) {
        (Binding::Unbound, Some(near)) => {
            let text = format!("`{name}` is not in scope");
            near::offer(Finding::new("P246", used.range, text), used.range, Some(near))
        }
        (Binding::Later, _) => {
            let text = format!(
                "`{name}` is declared only later, so that `{{{name}}}` stays as written: move its declaration up, or write `\\{{{name}\\}}`"
            );
            let finding = Finding::new("P340", used.range, text);
            match resolved.site {
                Some(site) => finding.related(ctx.place(site, name), "declared here"),
                None => finding,
            }
        }
        _ => Finding::new(
            "P340",
            used.range,
            format!(
                "`{name}` is not in scope, so that `{{{name}}}` stays as written: declare it, or write `\\{{{name}\\}}`"
            ),
        ),
    };
    ctx.push(finding);
}

fn value(ctx: &mut Context<'_>, used: &Ref, resolved: &Resolved) {
    let name = &used.name;
    let at = used.range;
    let finding = match resolved.binding {
        Binding::Sure => return,
        Binding::Global => match resolved.kind {
            Some(DefKind::Block) => Finding::new(
                "P251",
                at,
                format!("`{name}` is a block: to use its result write `do {name}`"),
            ),
            Some(DefKind::Import) => Finding::new(
                "P251",
                at,
                format!("`{name}` is an imported program: to use its result call it, `{name}(input: value)`"),
            ),
            _ => return,
        },
        Binding::AfterLoop => {
            let text = match resolved.kind {
                Some(kind) if kind.is_scoped() => format!(
                    "`{name}` is the {} of a construct that is over here: keep its value in a variable declared before",
                    kind.noun()
                ),
                _ => format!(
                    "`{name}` is declared in a loop or pipeline body; after it, it is what the last round left: declare it before"
                ),
            };
            Finding::new("P244", at, text)
        }
        Binding::NextRound => Finding::new(
            "P252",
            at,
            format!("`{name}` is declared further down, so that it may have no value yet: declare it before"),
        ),
        Binding::OtherBlock => Finding::new(
            "P245",
            at,
            format!(
                "`{name}` is declared only in another block, or in rounds that run side by side: pass it as a parameter, or use the result of the whole"
            ),
        ),
        Binding::Later => Finding::new(
            "P143",
            at,
            format!("`{name}` is used before it is declared: move its declaration up"),
        ),
        Binding::Unbound => {
            ctx.push(unbound(ctx, used));
            return;
        }
    };
    let finding = match resolved.site {
        Some(site) => finding.related(ctx.place(site, name), format!("`{name}` is declared here")),
        None => finding,
    };
    ctx.push(finding);
}

fn unbound(ctx: &Context<'_>, used: &Ref) -> Finding {
    let name = &used.name;
    let finding = Finding::new("P142", used.range, format!("no variable `{name}` is declared"));
    // `depth-1` is one name; a subtraction needs blanks.
    let dash = name.match_indices('-').map(|it| it.0).find(|at| {
        let (left, right) = (&name[..*at], &name[at + 1..]);
        let known = |word: &str| is_visible(ctx, used, &word.into());
        known(left) && (right.bytes().all(|it| it.is_ascii_digit()) || known(right))
    });
    if let Some(at) = dash {
        let (left, right) = (&name[..at], &name[at + 1..]);
        let range = TextRange::at(used.range.start() + TextSize::of(left), TextSize::of('-'));
        return Finding {
            message: format!("`{name}` is one name: to subtract write `{left} - {right}`"),
            fix: Some(Fix::replace(format!("Write `{left} - {right}`"), range, " - ")),
            ..finding
        };
    }
    let constant = match name.as_str() {
        "True" | "TRUE" => Some("true"),
        "False" | "FALSE" => Some("false"),
        "None" | "Null" | "NULL" | "nil" | "undefined" => Some("null"),
        _ => None,
    };
    if let Some(constant) = constant {
        return Finding {
            message: format!("no variable `{name}` is declared: write `{constant}`"),
            fix: Some(Fix::replace(format!("Write `{constant}`"), used.range, constant)),
            ..finding
        };
    }
    let names = visible(ctx, used, false);
    let near = near::nearest(name, names);
    match near {
        Some(_) => near::offer(finding, used.range, near),
        None if vocabulary::keyword(name).is_some() => {
            let message = format!("`{name}` lacks the rest of its statement, and no variable has this name");
            Finding { message, ..finding }
        }
        None => {
            let message = format!(
                "{}: bind it with `let {name} = …`, or write text in quotes",
                finding.message
            );
            Finding { message, ..finding }
        }
    }
}
