//! What a name means where it stands.
//!
//! A name is looked up at run time: frame, calling frames, root, globals. So most answers are about what may be there,
//! and only a name that nothing can ever bind is an error.

use prose_model::Name;

use crate::SourceFile;
use crate::scopes::{DefKind, FrameKind, ROOT, Ref, RefKind, Scopes};
use crate::symbols::{ProgramScope, Site, VarEntry, Vars};

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
}

/// What all uses and declarations of one thing have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// An agent, block or import of a file.
    Global(SourceFile, DefKind, Name),
    /// A variable of the top level.
    Root(SourceFile, Name),
    /// A variable of a block or iteration: chunk and frame.
    Frame(SourceFile, u32, u32, Name),
    /// A variable of a construct.
    Scoped(Site),
}

/// A chunk in its file.
pub(crate) struct Resolver<'a> {
    pub file: SourceFile,
    pub chunk: u32,
    pub scopes: &'a Scopes,
    pub program: &'a ProgramScope,
}

impl Resolver<'_> {
    fn here(&self, def: u32) -> Site {
        Site {
            file: self.file,
            chunk: self.chunk,
            def,
        }
    }

    fn found(&self, binding: Binding, def: u32) -> Resolved {
        Resolved {
            binding,
            site: Some(self.here(def)),
            kind: Some(self.scopes.def(def).kind),
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
                };
            }
        }
        Resolved {
            binding: Binding::Unbound,
            site: None,
            kind: None,
        }
    }

    /// Resolves a name as a variable, read at a place.
    pub fn variable(&self, name: &Name, scope: u32, seq: u32) -> Resolved {
        let scopes = self.scopes;
        // Own frame, then the frames around it.
        let frames = || scopes.frames_from(scopes.frame_of(scope));
        if let Some(def) = frames().find_map(|frame| self.sure_in_frame(name, frame, scope, seq)) {
            return self.found(Binding::Sure, def);
        }
        let outermost = scopes.outermost_frame(scope);
        let none = Vars::default();
        let vars = self.program.own.vars.get(name).unwrap_or(&none);
        let entry = match outermost {
            FrameKind::Root => vars.before(self.chunk),
            // A block or agent is evaluated while some caller is; the top level is always among the callers.
            _ => {
                let bound = |it: &&VarEntry| !it.kind.is_scoped();
                vars.declared
                    .first()
                    .or_else(|| vars.assigned.first())
                    .or_else(|| vars.hidden.iter().find(bound))
            }
        };
        if let Some(entry) = entry {
            return at(Binding::Sure, entry);
        }
        let global = self.global(name, [DefKind::Agent, DefKind::Import, DefKind::Block]);
        if global.binding == Binding::Global {
            return global;
        }

        // Nothing is in sight. Of what else there is, the least doubtful counts.
        let mut best: Option<Resolved> = None;
        let mut keep = |resolved: Resolved| {
            let rank = |it: &Resolved| (rank(it.binding), it.kind == Some(DefKind::Assigned));
            if best.as_ref().is_none_or(|it| rank(&resolved) < rank(it)) {
                best = Some(resolved);
            }
        };
        for frame in frames() {
            self.doubtful_in_frame(name, frame, scope, seq, &mut keep);
        }
        if *outermost == FrameKind::Root {
            let over = |it: &&VarEntry| it.site.chunk < self.chunk && it.kind != DefKind::Implicit;
            if let Some(entry) = vars.hidden.iter().rfind(over) {
                keep(at(Binding::AfterLoop, entry));
            }
            if let Some(entry) = vars.after(self.chunk) {
                keep(at(Binding::Later, entry));
            }
        }
        // Variables of blocks, and of constructs of the top level for what is called from inside them.
        let constructs = vars.hidden.iter().filter(|_| *outermost != FrameKind::Root);
        let elsewhere = vars
            .elsewhere
            .iter()
            .filter(|it| !self.is_own(it, scope))
            .chain(constructs);
        match elsewhere.min_by_key(|it| (it.kind == DefKind::Assigned, it.kind == DefKind::Implicit)) {
            Some(entry) => keep(at(Binding::OtherBlock, entry)),
            None if self.program.foreign.contains(name) => {
                keep(Resolved {
                    binding: Binding::OtherBlock,
                    site: None,
                    kind: None,
                });
            }
            None => {}
        }
        let Some(mut resolved) = best else {
            return Resolved {
                binding: Binding::Unbound,
                site: None,
                kind: None,
            };
        };
        if resolved.binding == Binding::Later
            && let FrameKind::Block(block) = outermost
            && self.program.own.recursive.contains(block)
        {
            // A deeper call sees what its caller has declared by then.
            resolved.binding = Binding::OtherBlock;
        }
        resolved
    }

    /// Whether a variable is in the very block that `scope` is in.
    fn is_own(&self, entry: &VarEntry, scope: u32) -> bool {
        if entry.site.chunk != self.chunk || entry.site.file != self.file {
            return false;
        }
        let top = |scope| self.scopes.frames_from(self.scopes.frame_of(scope)).last();
        top(self.scopes.def(entry.site.def).scope) == top(scope)
    }

    /// What is in sight of a frame's variables, from a place in it or below it.
    fn sure_in_frame(&self, name: &Name, frame: u32, scope: u32, seq: u32) -> Option<u32> {
        let scopes = self.scopes;
        let found = scopes.defs_of(name)?;
        let before = |list: &'_ [u32]| list.partition_point(|it| scopes.def(*it).seq < seq);
        // The innermost construct around the place wins; it is the last that began.
        let around = found.scoped[..before(&found.scoped)]
            .iter()
            .rev()
            .copied()
            .find(|it| {
                let def = scopes.def(*it);
                scopes.frame_of(def.scope) == frame && scopes.encloses(def.scope, scope)
            });
        let seen = |it: &u32| {
            let def = scopes.def(*it);
            scopes.frame_of(def.scope) == frame
                && !scopes.hidden_from(def.scope, scopes.common(def.scope, scope))
        };
        // The latest; a declaration rather than an assignment to it.
        let last = |list: &'_ [u32]| list[..before(list)].iter().rev().copied().find(seen);
        around
            .or_else(|| last(&found.declared))
            .or_else(|| last(&found.assigned))
    }

    /// Tells `keep` of a frame's variables that are not in sight.
    fn doubtful_in_frame(
        &self,
        name: &Name,
        frame: u32,
        scope: u32,
        seq: u32,
        keep: &mut dyn FnMut(Resolved),
    ) {
        let scopes = self.scopes;
        let Some(found) = scopes.defs_of(name) else { return };
        for index in found.all() {
            let def = scopes.def(index);
            if scopes.frame_of(def.scope) != frame {
                continue;
            }
            if def.kind.is_scoped() {
                if def.seq < seq && def.kind != DefKind::Implicit {
                    keep(self.found(Binding::AfterLoop, index));
                }
                continue;
            }
            let common = scopes.common(def.scope, scope);
            let branches = || scopes.ancestors(common).any(|it| scopes.scope(it).parallel);
            let binding = if def.seq < seq {
                Binding::AfterLoop
            } else if scopes.in_loop(common) || branches() {
                // The next round, or a branch that runs at the same time, may have set it.
                Binding::NextRound
            } else {
                Binding::Later
            };
            keep(self.found(binding, index));
        }
    }

    /// What a declaration declares.
    pub fn slot_of_def(&self, def: u32) -> Slot {
        let it = self.scopes.def(def);
        if it.kind.is_global() {
            return Slot::Global(self.file, it.kind, it.name.clone());
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
            ROOT => Slot::Root(self.file, name.clone()),
            frame => Slot::Frame(self.file, self.chunk, frame, name.clone()),
        }
    }

    /// What a use uses.
    pub fn slot_of(&self, resolved: &Resolved, name: &Name) -> Option<Slot> {
        let site = resolved.site?;
        let kind = resolved.kind?;
        if kind.is_global() {
            return Some(Slot::Global(site.file, kind, name.clone()));
        }
        if kind.is_scoped() {
            return Some(Slot::Scoped(site));
        }
        if site.file == self.file && site.chunk == self.chunk {
            let def = self.scopes.def(site.def);
            return Some(self.frame_slot(def.scope, name));
        }
        let root = self
            .program
            .own
            .vars
            .get(name)
            .is_some_and(|vars| vars.has_root(site));
        // A variable of a block in another chunk has no slot that this use is sure to mean.
        root.then(|| Slot::Root(site.file, name.clone()))
    }
}

fn at(binding: Binding, entry: &VarEntry) -> Resolved {
    Resolved {
        binding,
        site: Some(entry.site),
        kind: Some(entry.kind),
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
