//! Names declared twice, or in a way that hides another.

use crate::Name;
use rustc_hash::FxHashMap;

use super::Context;
use crate::Fix;
use crate::diagnostic::{Finding, Place};
use crate::resolve::Binding;
use crate::scopes::{Def, DefKind, FrameKind, ROOT, Sort};
use crate::vars::VarPlace;
use crate::view::{Names, OWN};

pub(super) fn check(ctx: &mut Context<'_>) {
    file_wide(ctx);
    same_scope(ctx);
    let scopes = ctx.scopes;
    for (index, def) in scopes.defs.iter().enumerate() {
        if def.kind.is_global() {
            continue;
        }
        if !against_globals(ctx, def) {
            nested(ctx, def);
        }
        if def.kind == DefKind::Output {
            falls_through(ctx, index as u32, def);
        }
    }
}

/// Clashes of this chunk's declarations with those of earlier chunks, and at the top level.
fn file_wide(ctx: &mut Context<'_>) {
    let view = ctx.view;
    for clash in &view.clashes {
        let Some(def) = ctx.scopes.defs.get(clash.site.def as usize) else {
            continue;
        };
        let first = ctx.place(clash.first, &clash.name);
        if let Some(finding) = twice(def, clash.first_kind, first) {
            ctx.push(finding);
        }
    }
    for (site, first, name) in &view.repeated_targets {
        let range = ctx.scopes.def(site.def).full;
        let first = ctx.place(*first, name);
        ctx.push(
            Finding::new(
                "E010",
                range,
                "this program is already used: remove one of the two",
            )
            .related(first, "first used here"),
        );
    }
}

/// The finding for a name declared twice at one level.
fn twice(def: &Def, first_kind: DefKind, first: Place) -> Option<Finding> {
    let name = &def.name;
    let finding =
        |code, text: String| Some(Finding::new(code, def.range, text).related(first, "first declared here"));
    match (def.kind, first_kind) {
        (DefKind::Agent, DefKind::Agent) => finding(
            "E006",
            format!("agent `{name}` is already declared: rename or remove one of the two"),
        ),
        (DefKind::Block, DefKind::Block) => finding(
            "P146",
            format!("block `{name}` is already declared: rename or remove one of the two"),
        ),
        (DefKind::Agent | DefKind::Block, DefKind::Agent | DefKind::Block) => finding(
            "P147",
            format!(
                "`{name}` is already the name of {}: rename one of the two",
                first_kind.a_noun()
            ),
        ),
        (DefKind::Import, DefKind::Import) => finding(
            "E010",
            format!("another program is already used as `{name}`: give one a name with `as`"),
        ),
        (a, b) if a.is_global() || b.is_global() => finding(
            "P254",
            format!(
                "`{name}` is already the name of {}: give the program another with `as`",
                first_kind.a_noun()
            ),
        ),
        (DefKind::Input, DefKind::Input) => finding(
            "E021",
            format!("input `{name}` is already declared: remove one of the two"),
        ),
        (DefKind::Output, DefKind::Output) => finding(
            "E024",
            format!("output `{name}` is already bound: remove one of the two, or name one differently"),
        ),
        (DefKind::Output, _) if def.promotes => None,
        (DefKind::Output, _) | (_, DefKind::Output) => finding(
            "P253",
            format!(
                "`{name}` is already bound as {}: use another name; `output {name} = {name}` makes a variable an output",
                first_kind.a_noun()
            ),
        ),
        (DefKind::Session, _) | (_, DefKind::Session) => finding(
            "P253",
            format!(
                "`{name}` is already bound as {}: use another name",
                first_kind.a_noun()
            ),
        ),
        (DefKind::Branch, DefKind::Branch) => finding(
            "E019",
            format!("two branches are named `{name}`: give each its own name"),
        ),
        (DefKind::Let, _) => {
            let text = format!("`{name}` is already declared: drop `let` to assign it, or use another name");
            finding("E019", text)
        }
        _ => finding("E019", format!("`{name}` is already declared: use another name")),
    }
}

/// The same name twice in one scope inside this chunk; the top level's own scope is compared across chunks.
fn same_scope(ctx: &mut Context<'_>) {
    let scopes = ctx.scopes;
    let mut first: FxHashMap<(u32, &Name), &Def> = FxHashMap::default();
    for def in &scopes.defs {
        if def.scope == ROOT || !(def.kind.declares_slot() || def.kind.is_scoped()) {
            continue;
        }
        let Some(earlier) = first.get(&(def.scope, &def.name)).copied() else {
            first.insert((def.scope, &def.name), def);
            continue;
        };
        let place = Place::Here(earlier.range);
        let name = &def.name;
        if def.promotes {
            first.insert((def.scope, &def.name), def);
        }
        let finding = match (def.kind.is_scoped(), earlier.kind.is_scoped()) {
            (true, true) => Some(
                Finding::new(
                    "E019",
                    def.range,
                    format!("two {}s are named `{name}`: rename one", def.kind.noun()),
                )
                .related(place, "first declared here"),
            ),
            (_, true) if def.kind == DefKind::Output && def.promotes => None,
            (_, true) => Some(
                Finding::new(
                    "P242",
                    def.range,
                    format!(
                        "`{name}` is the name of the {}: use another name",
                        earlier.kind.noun()
                    ),
                )
                .related(place, "declared here"),
            ),
            // Branches that add to one variable of outside: `all = all + [session "…"]`.
            _ if (def.kind, earlier.kind) == (DefKind::Branch, DefKind::Branch)
                && declared_around(ctx, def).is_some() =>
            {
                None
            }
            _ => twice(def, earlier.kind, place),
        };
        if let Some(finding) = finding {
            ctx.push(finding);
        }
    }
}

/// A variable named like an agent or block. Whether it was an agent.
fn against_globals(ctx: &mut Context<'_>, def: &Def) -> bool {
    let name = &def.name;
    if def.kind == DefKind::Implicit {
        return false;
    }
    if let Some(agent) = ctx.program.agent(name) {
        let own = agent.site.file == ctx.file;
        let (code, text) = if def.kind.is_scoped() || !own {
            (
                "P255",
                format!(
                    "`{name}` is also the name of an agent: use another name for the {}",
                    def.kind.noun()
                ),
            )
        } else {
            (
                "P148",
                format!(
                    "`{name}` is the name of an agent: use another name for the {}",
                    def.kind.noun()
                ),
            )
        };
        let place = ctx.place(agent.site, name);
        ctx.push(Finding::new(code, def.range, text).related(place, "the agent is declared here"));
        return true;
    }
    if let Some(block) = ctx.program.block(name)
        && block.site.file == ctx.file
        && def.kind != DefKind::Assigned
    {
        let place = ctx.place(block.site, name);
        let text = format!("`{name}` is also the name of a block: another name reads more clearly");
        ctx.push(Finding::new("P342", def.range, text).related(place, "the block is declared here"));
    }
    false
}

/// What an enclosing scope of the same frame declares under the name before it.
fn declared_around(ctx: &Context<'_>, def: &Def) -> Option<(DefKind, Place)> {
    let scopes = ctx.scopes;
    let frame = scopes.frame_of(def.scope);
    let name = &def.name;
    let named = scopes.defs_of(name);
    scopes.ancestors_in(frame, def.scope).skip(1).find_map(|it| {
        if it == ROOT {
            // Statements of the top level stand in several chunks.
            let vars = ctx.program.vars(name)?;
            let entry = vars.declared().iter().find(|it| it.direct)?;
            let here = entry.site.chunk == ctx.chunk;
            let before = match here {
                true => scopes.def(entry.site.def).seq < def.seq,
                false => entry.at < OWN,
            };
            return before.then(|| (entry.kind, ctx.place(entry.site, name)));
        }
        let declares = |it: &&u32| scopes.def(**it).kind != DefKind::Assigned;
        let first = named?.in_scope(it).iter().find(declares)?;
        let first = scopes.def(*first);
        (first.seq < def.seq).then_some((first.kind, Place::Here(first.range)))
    })
}

/// A declaration inside a body whose name is already there: the same slot (`let` too much) or another (shadowing).
fn nested(ctx: &mut Context<'_>, def: &Def) {
    if matches!(def.kind, DefKind::Assigned | DefKind::Branch | DefKind::Output) {
        return;
    }
    let scopes = ctx.scopes;
    let frame = scopes.frame_of(def.scope);
    let name = &def.name;
    if def.kind.declares_slot() && def.scope != ROOT {
        let place = declared_around(ctx, def);
        if let Some((kind, place)) = place {
            let text = if kind == DefKind::Const || kind.is_scoped() {
                format!("`{name}` is already {} here: use another name", kind.a_noun())
            } else if def.kind == DefKind::Let {
                format!(
                    "`{name}` is already declared, so that this assigns it: drop `let`, or use another name"
                )
            } else {
                format!("`{name}` is already declared, so that this assigns it: use another name")
            };
            let mut finding = Finding::new("P242", def.range, text).related(place, "declared here");
            let word = prose_syntax::TextRange::new(def.full.start(), def.range.start());
            let plain = word.len() == prose_syntax::TextSize::of("let ");
            if def.kind == DefKind::Let && plain && kind != DefKind::Const && !kind.is_scoped() {
                finding = finding.fix(Fix::replace("Drop `let`", word, ""));
            }
            ctx.push(finding);
            return;
        }
    }
    // A new slot or a construct's variable, with the same name in sight around it.
    let outer = match scopes.frames[frame as usize].kind {
        FrameKind::Block(_) if def.kind == DefKind::Param || def.kind.declares_slot() => ctx
            .program
            .vars(name)
            .and_then(|vars| vars.declared().first())
            .map(|it| it.site),
        _ => {
            let scope = scopes.scope(def.scope);
            let Some(parent) = scope.parent else { return };
            let new = def.kind.is_scoped() || scopes.frame_of(parent) != frame;
            if !new {
                return;
            }
            let resolved = ctx.resolver().variable(name, parent, def.seq);
            // An `item` inside an `item` is how pipelines nest.
            let implicit = def.kind == DefKind::Implicit && resolved.kind == Some(DefKind::Implicit);
            (resolved.binding == Binding::Sure && !implicit)
                .then_some(resolved.site)
                .flatten()
        }
    };
    if let Some(site) = outer {
        let place = ctx.place(site, name);
        let text = format!(
            "{} `{name}` hides another `{name}`: another name reads more clearly",
            def.kind.noun()
        );
        ctx.push(Finding::new("P341", def.range, text).related(place, "the other is declared here"));
    }
}

/// A branch that binds an output and goes on to where it is bound again.
fn falls_through(ctx: &mut Context<'_>, index: u32, def: &Def) {
    let scopes = ctx.scopes;
    if def.scope == ROOT {
        return;
    }
    let frame = scopes.frame_of(def.scope);
    if !scopes
        .ancestors_in(frame, def.scope)
        .any(|it| scopes.scope(it).group != 0)
    {
        return;
    }
    let named = scopes.defs_of(&def.name);
    let declared = named.map_or(&[][..], |it| it.in_frame(frame, Sort::Declared));
    let next = declared.partition_point(|it| *it <= index);
    let mut after = declared[next..].iter().map(|it| scopes.def(*it));
    let inside = after.find(|later| {
        if later.kind != DefKind::Output {
            return false;
        }
        let common = scopes.common(def.scope, later.scope);
        if common == def.scope || !scopes.may_skip(def.scope, common) {
            return false;
        }
        let below = |scope| scopes.ancestors(scope).take_while(|it| *it != common).last();
        match (below(def.scope), below(later.scope)) {
            (Some(a), Some(b)) => {
                let (a, b) = (scopes.scope(a), scopes.scope(b));
                a.group == 0 || a.group != b.group
            }
            _ => true,
        }
    });
    let place = match inside {
        Some(later) => Place::Here(later.range),
        None if frame == ROOT && scopes.may_skip(def.scope, ROOT) => {
            let vars = ctx.program.vars(&def.name);
            let first = |place| {
                let list = vars.map_or(&[][..], |vars| vars.at(place));
                let next = list.partition_point(|it| it.at <= OWN);
                list[next..].iter().find(|it| it.kind == DefKind::Output)
            };
            let both = [first(VarPlace::Declared), first(VarPlace::Hidden)];
            let later = both.into_iter().flatten().min_by_key(|it| it.order());
            let Some(later) = later else { return };
            ctx.place(later.site, &def.name)
        }
        None => return,
    };
    let name = &def.name;
    let text = format!(
        "the program goes on after this and binds output `{name}` again: put the rest into `else:`, or name one differently"
    );
    ctx.push(Finding::new("P247", def.range, text).related(place, "bound again here"));
}
