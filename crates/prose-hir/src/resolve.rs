//! What a name means where it stands.
//!
//! A name is looked up at run time: frame, calling frames, root, globals. So most answers are about what may be there,
//! and only a name that nothing can ever bind is an error.

use crate::Name;

use crate::scopes::{DefKind, DefsOfName, FrameKind, ROOT, Ref, RefKind, Scopes, Sort};
use crate::symbols::Site;
use crate::vars::{VarEntry, VarPlace, Vars, first_after, last_before};
use crate::view::Names;
use crate::{Chunk, SourceFile};

/// How sure it is that the name has a value when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// It is in sight.
    Sure,
    /// Declared in a loop or pipeline body that is over (or in a sibling's): the value of the last round, if any.
    AfterLoop,
    /// Declared later in a loop that both are in: unset in the first round.
    NextRound,
    /// Declared only in a block, so that it is there only while the block calls, or after it was called.
    OtherBlock,
    /// Declared only later in straight-line order.
    Later,
    /// An agent, block or program where a value is wanted; an agent stands for its memory.
    Global,
    /// Declared nowhere.
    Unbound,
}

/// What a name was resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub binding: Binding,
    /// The declaration that matters most; none when unbound.
    pub site: Option<Site>,
    pub kind: Option<DefKind>,
    /// It belongs to another block or iteration than the place.
    pub elsewhere: bool,
}

/// What all uses and declarations of one thing have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// An agent, block or import of a file.
    Global(SourceFile, DefKind, Name),
    /// A variable of the top level.
    Root(SourceFile, Name),
    /// A variable of a block or iteration: chunk and frame.
    Frame(SourceFile, Chunk, u32, Name),
    /// A variable of a construct.
    Scoped(Site),
}

/// A chunk in its file.
pub(crate) struct Resolver<'a> {
    pub file: SourceFile,
    pub chunk: Chunk,
    /// Its position, in the terms of `program`.
    pub at: u32,
    pub scopes: &'a Scopes,
    pub program: &'a dyn Names,
}

impl Resolver<'_> {
    fn here(&self, def: u32) -> Site {
        Site {
            file: self.file,
            chunk: self.chunk,
            def,
            nth: 0,
        }
    }

    fn found(&self, binding: Binding, def: u32) -> Resolved {
        Resolved {
            binding,
            site: Some(self.here(def)),
            kind: Some(self.scopes.def(def).kind),
            elsewhere: false,
        }
    }

    /// Resolves a use.
    pub fn resolve(&self, used: &Ref) -> Resolved {
        match used.kind {
            RefKind::Agent | RefKind::Resume => {
                self.global(&used.name, [DefKind::Agent, DefKind::Block, DefKind::Import])
            }
            RefKind::Do => self.global(&used.name, [DefKind::Block, DefKind::Import, DefKind::Agent]),
            RefKind::Call => self.global(&used.name, [DefKind::Import, DefKind::Block, DefKind::Agent]),
            _ => self.variable(&used.name, used.scope, used.seq),
        }
    }

    fn global(&self, name: &Name, order: [DefKind; 3]) -> Resolved {
        for kind in order {
            let site = match kind {
                DefKind::Agent => self.program.agent(name).map(|it| Some(it.site)),
                DefKind::Block => self.program.block(name).map(|it| Some(it.site)),
                _ => self.program.import(name).map(|it| it.site),
            };
            if let Some(site) = site {
                return Resolved {
                    binding: Binding::Global,
                    site,
                    kind: Some(kind),
                    elsewhere: false,
                };
            }
        }
        Resolved {
            binding: Binding::Unbound,
            site: None,
            kind: None,
            elsewhere: false,
        }
    }

    /// Resolves a name as a variable, read at a place.
    pub fn variable(&self, name: &Name, scope: u32, seq: u32) -> Resolved {
        let scopes = self.scopes;
        // Own frame, then the frames around it.
        let frames = || scopes.frames_from(scopes.frame_of(scope));
        let own = scopes.defs_of(name);
        let vars = self.program.vars(name);
        let outermost = scopes.outermost_frame(scope);
        let at_top = *outermost == FrameKind::Root;
        for frame in frames() {
            // Statements of the top level stand in several chunks, and it must not matter in which.
            let before = vars.filter(|_| frame == ROOT);
            let found = own.and_then(|own| self.sure_in_frame(own, frame, scope, seq));
            let earlier = |list: &'_ [VarEntry]| last_before(list, self.at).map(|it| at(Binding::Sure, it));
            let here = |sort: Sort| {
                let (_, def) = found.filter(|it| it.0 <= sort)?;
                Some(self.found(Binding::Sure, def))
            };
            let sure = here(Sort::Declared)
                .or_else(|| earlier(before?.at(VarPlace::Declared)))
                .or_else(|| here(Sort::Assigned))
                .or_else(|| earlier(before?.at(VarPlace::Assigned)));
            if let Some(sure) = sure {
                return sure;
            }
        }
        if !at_top && let Some(vars) = vars {
            // A block or agent is evaluated while some caller is; the top level is always among the callers.
            let in_loops = || {
                let both = [vars.at(VarPlace::Hidden), vars.at(VarPlace::HiddenAssigned)];
                both.into_iter()
                    .filter_map(<[VarEntry]>::first)
                    .min_by_key(|it| it.order())
            };
            let entry = vars
                .at(VarPlace::Declared)
                .first()
                .or(vars.at(VarPlace::Assigned).first());
            if let Some(entry) = entry.or_else(in_loops) {
                return at(Binding::Sure, entry);
            }
        }
        let global = self.global(name, [DefKind::Agent, DefKind::Import, DefKind::Block]);
        if global.binding == Binding::Global {
            return global;
        }

        // Nothing is in sight. Of what else there is, the least doubtful counts.
        let mut best = Best(None);
        for frame in frames() {
            let vars = vars.filter(|_| frame == ROOT);
            self.doubtful_in_frame(own, vars, frame, scope, seq, &mut best);
        }
        let settled = best
            .0
            .as_ref()
            .is_some_and(|it| rank(it.binding) < rank(Binding::OtherBlock));
        if !settled {
            match vars.and_then(|vars| self.elsewhere(vars, scope, at_top)) {
                Some(entry) => best.keep(Resolved {
                    elsewhere: true,
                    ..at(Binding::OtherBlock, entry)
                }),
                None if self.program.is_foreign(name) => best.keep(Resolved {
                    binding: Binding::OtherBlock,
                    site: None,
                    kind: None,
                    elsewhere: false,
                }),
                None => {}
            }
        }
        let Best(best) = best;
        let Some(mut resolved) = best else {
            return Resolved {
                binding: Binding::Unbound,
                site: None,
                kind: None,
                elsewhere: false,
            };
        };
        if resolved.binding == Binding::Later
            && let FrameKind::Block(block) = outermost
            && self.program.is_recursive(block)
        {
            // A deeper call sees what its caller has declared by then.
            resolved.binding = Binding::OtherBlock;
        }
        resolved
    }

    /// A variable of another block, or of a construct of the top level for what is called from inside it.
    fn elsewhere<'a>(&self, vars: Vars<'a>, scope: u32, at_top: bool) -> Option<&'a VarEntry> {
        // Variables of the very block that the place is in are not elsewhere; they stand together.
        let own = (!at_top).then(|| {
            let scopes = self.scopes;
            let frame = scopes.frames_from(scopes.frame_of(scope)).last().unwrap_or(ROOT);
            let top = scopes.ancestors_in(frame, scope).last().unwrap_or(ROOT);
            let (from, to) = scopes.scope(top).seqs;
            let before = |seq| scopes.defs.partition_point(|it| it.seq <= seq) as u32;
            (self.at, before(from))..(self.at, before(to))
        });
        let other = |list: &'a [VarEntry]| match &own {
            None => list.first(),
            Some(own) => {
                let outside = list.first().filter(|it| it.order() < own.start);
                outside.or_else(|| list.get(list.partition_point(|it| it.order() < own.end)))
            }
        };
        let construct = |list: &'a [VarEntry]| list.first().filter(|_| !at_top);
        other(vars.at(VarPlace::Elsewhere))
            .or_else(|| construct(vars.at(VarPlace::HiddenScoped)))
            .or_else(|| other(vars.at(VarPlace::ElsewhereImplicit)))
            .or_else(|| construct(vars.at(VarPlace::HiddenImplicit)))
            .or_else(|| other(vars.at(VarPlace::ElsewhereAssigned)))
    }

    /// What is in sight of a frame's variables, from a place in it or below it, with its sort.
    fn sure_in_frame(&self, named: DefsOfName<'_>, frame: u32, scope: u32, seq: u32) -> Option<(Sort, u32)> {
        let scopes = self.scopes;
        // The innermost construct around the place wins; it is the last that began.
        for scope in scopes.ancestors_in(frame, scope) {
            let list = named.in_scope(scope);
            if list.first().is_some_and(|it| scopes.def(*it).kind.is_scoped()) {
                // Variables of a construct come first in its scope.
                let count = list.partition_point(|it| scopes.def(*it).kind.is_scoped());
                if let Some(def) = named.before(&list[..count], seq) {
                    return Some((Sort::Scoped, def));
                }
            }
        }
        // The latest; a declaration rather than an assignment to it.
        [Sort::Declared, Sort::Assigned].into_iter().find_map(|sort| {
            let homes = scopes
                .ancestors_in(frame, scope)
                .filter(|it| scopes.scope(*it).home == *it);
            let seen = homes.filter_map(|home| named.before(named.at_home(sort, home), seq));
            Some((sort, seen.max()?))
        })
    }

    /// Tells `best` of a frame's variables that are not in sight. With `vars`, those of other chunks belong to it too.
    fn doubtful_in_frame(
        &self,
        own: Option<DefsOfName<'_>>,
        vars: Option<Vars<'_>>,
        frame: u32,
        scope: u32,
        seq: u32,
        best: &mut Best,
    ) {
        let scopes = self.scopes;
        let in_frame = |sort| own.map(|own| (own, own.in_frame(frame, sort)));
        // What is over: of what stands last before the place, a declaration rather than an assignment.
        let over = |sorts: &[Sort]| {
            let last = |sort: &Sort| {
                let (own, list) = in_frame(*sort)?;
                own.before(list, seq)
            };
            let def = sorts.iter().filter_map(last).max()?;
            Some(self.found(Binding::AfterLoop, def))
        };
        let earlier = |lists: [&'_ [VarEntry]; 2]| {
            let entries = lists.into_iter().filter_map(|list| last_before(list, self.at));
            Some(at(Binding::AfterLoop, entries.max_by_key(|it| it.order())?))
        };
        let found = over(&[Sort::Scoped, Sort::Declared])
            .or_else(|| earlier([vars?.at(VarPlace::HiddenScoped), vars?.at(VarPlace::Hidden)]))
            .or_else(|| over(&[Sort::Assigned]))
            .or_else(|| earlier([vars?.at(VarPlace::HiddenAssigned), &[]]));
        if let Some(found) = found {
            best.keep(found);
        }
        // The widest scope around the place in which something that comes later may be there already: in the next round, or
        // because a branch that runs at the same time has set it.
        let top = scopes.ancestors_in(frame, scope).last().unwrap_or(ROOT);
        let in_branch = scopes.ancestors(top).skip(1).any(|it| scopes.scope(it).parallel);
        let again = match in_branch {
            true => Some(top),
            false => scopes
                .ancestors_in(frame, scope)
                .filter(|it| scopes.scope(*it).looped || scopes.scope(*it).parallel)
                .last(),
        };
        for sort in [Sort::Declared, Sort::Assigned] {
            let next = in_frame(sort).and_then(|(own, list)| own.from(list, seq));
            if let Some(def) = next {
                let again = again.is_some_and(|it| scopes.encloses(it, scopes.def(def).scope));
                let binding = match again {
                    true => Binding::NextRound,
                    false => Binding::Later,
                };
                best.keep(self.found(binding, def));
            } else if let Some(vars) = vars {
                let lists = match sort {
                    Sort::Assigned => [vars.at(VarPlace::Assigned), vars.at(VarPlace::HiddenAssigned)],
                    _ => [vars.at(VarPlace::Declared), vars.at(VarPlace::Hidden)],
                };
                let after = lists.into_iter().filter_map(|list| first_after(list, self.at));
                if let Some(entry) = after.min_by_key(|it| it.order()) {
                    best.keep(at(Binding::Later, entry));
                }
            }
        }
    }

    /// What a declaration declares.
    pub fn slot_of_def(&self, def: u32) -> Slot {
        let it = self.scopes.def(def);
        if it.kind.is_global() {
            return Slot::Global(self.file, it.kind, it.name);
        }
        if it.kind.is_scoped() {
            return Slot::Scoped(self.here(def));
        }
        if it.kind == DefKind::Assigned {
            // An assignment goes to the nearest frame that holds the name.
            let resolved = self.variable(&it.name, it.scope, it.seq);
            if let Some(site) = resolved.site
                && (site.chunk, site.def) != (self.chunk, def)
                && resolved.kind.is_some_and(|kind| !kind.is_global())
            {
                return self
                    .slot_of(&resolved, &it.name)
                    .unwrap_or_else(|| self.frame_slot(it.scope, &it.name));
            }
        }
        self.frame_slot(it.scope, &it.name)
    }

    fn frame_slot(&self, scope: u32, name: &Name) -> Slot {
        match self.scopes.frame_of(scope) {
            ROOT => Slot::Root(self.file, *name),
            frame => Slot::Frame(self.file, self.chunk, frame, *name),
        }
    }

    /// What a use uses.
    pub fn slot_of(&self, resolved: &Resolved, name: &Name) -> Option<Slot> {
        let site = resolved.site?;
        let kind = resolved.kind?;
        if kind.is_global() {
            return Some(Slot::Global(site.file, kind, *name));
        }
        if kind.is_scoped() {
            return Some(Slot::Scoped(site));
        }
        // A variable of another block or iteration is none that this use is sure to mean.
        if site.file == self.file && site.chunk == self.chunk && !resolved.elsewhere {
            let def = self.scopes.def(site.def);
            return Some(self.frame_slot(def.scope, name));
        }
        let root = self.program.has_root(name, site);
        root.then_some(Slot::Root(site.file, *name))
    }
}

/// The least doubtful of what was found; of equals the first.
struct Best(Option<Resolved>);

impl Best {
    fn keep(&mut self, resolved: Resolved) {
        let order = |it: &Resolved| (rank(it.binding), it.kind == Some(DefKind::Assigned));
        if self.0.as_ref().is_none_or(|it| order(&resolved) < order(it)) {
            self.0 = Some(resolved);
        }
    }
}

fn at(binding: Binding, entry: &VarEntry) -> Resolved {
    Resolved {
        binding,
        site: Some(entry.site),
        kind: Some(entry.kind),
        elsewhere: false,
    }
}

/// The order in which doubtful bindings are preferred.
fn rank(binding: Binding) -> u8 {
    match binding {
        Binding::Sure => 0,
        Binding::Global => 1,
        Binding::AfterLoop => 2,
        Binding::NextRound => 3,
        Binding::OtherBlock => 4,
        Binding::Later => 5,
        Binding::Unbound => 6,
    }
}
