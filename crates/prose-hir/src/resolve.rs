//! What a name means where it stands.
//!
//! A name is looked up at run time: frame, calling frames, root, globals. So most answers are about what may be there,
//! and only a name that nothing can ever bind is an error.

use prose_model::Name;

use crate::SourceFile;
use crate::scopes::{DefKind, FrameKind, ROOT, Ref, RefKind, Scopes};
use crate::symbols::{ProgramScope, Site, VarEntry, VarPlace};

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
        Site { file: self.file, chunk: self.chunk, def }
    }

    fn found(&self, binding: Binding, def: u32) -> Resolved {
        Resolved { binding, site: Some(self.here(def)), kind: Some(self.scopes.def(def).kind) }
    }

    /// Resolves a use.
    pub fn resolve(&self, used: &Ref) -> Resolved {
        match used.kind {
            RefKind::Agent | RefKind::Resume => self.global(&used.name, [DefKind::Agent, DefKind::Block, DefKind::Import]),
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
                return Resolved { binding: Binding::Global, site, kind: Some(kind) };
            }
        }
        Resolved { binding: Binding::Unbound, site: None, kind: None }
    }

    /// Resolves a name as a variable, read at a place.
    pub fn variable(&self, name: &Name, scope: u32, seq: u32) -> Resolved {
        let scopes = self.scopes;
        let outermost = scopes.outermost_frame(scope);
        let mut worse: Option<Resolved> = None;
        let mut keep = |resolved: Resolved| {
            let rank = |it: &Resolved| (rank(it.binding), it.kind == Some(DefKind::Assigned));
            if worse.as_ref().is_none_or(|it| rank(&resolved) < rank(it)) {
                worse = Some(resolved);
            }
        };

        // Own frame, then the frames around it.
        for frame in scopes.frames_from(scopes.frame_of(scope)) {
            if let Some(found) = self.in_frame(name, frame, scope, seq, &mut keep) {
                return found;
            }
        }
        let entries: &[VarEntry] = self.program.own.vars.get(name).map_or(&[], Vec::as_slice);
        if *outermost == FrameKind::Root {
            // Other chunks of the top level.
            let mut last: Option<&VarEntry> = None;
            for entry in entries.iter().filter(|it| it.site.chunk != self.chunk) {
                let VarPlace::Root { hidden, .. } = entry.place else { continue };
                let resolved = |binding| Resolved { binding, site: Some(entry.site), kind: Some(entry.kind) };
                match (entry.site.chunk < self.chunk, hidden) {
                    (true, false) => {
                        let better = last.is_none_or(|it| {
                            entry.kind != DefKind::Assigned || it.kind == DefKind::Assigned
                        });
                        if better {
                            last = Some(entry);
                        }
                    }
                    (true, true) if entry.kind == DefKind::Implicit => {}
                    (true, true) => keep(resolved(Binding::AfterLoop)),
                    (false, false) => keep(resolved(Binding::Later)),
                    (false, true) => {}
                }
            }
            if let Some(entry) = last {
                return Resolved { binding: Binding::Sure, site: Some(entry.site), kind: Some(entry.kind) };
            }
        } else {
            // A block or agent is evaluated while some caller is; the top level is always among the callers.
            let root = entries
                .iter()
                .filter(|it| matches!(it.place, VarPlace::Root { .. }) && !it.kind.is_scoped())
                .min_by_key(|it| it.kind == DefKind::Assigned);
            if let Some(entry) = root {
                return Resolved { binding: Binding::Sure, site: Some(entry.site), kind: Some(entry.kind) };
            }
        }
        let global = self.global(name, [DefKind::Agent, DefKind::Import, DefKind::Block]);
        if global.binding == Binding::Global {
            return global;
        }
        // Variables of blocks, and of constructs of the top level for what is called from inside them.
        let elsewhere = entries
            .iter()
            .filter(|it| match &it.place {
                VarPlace::Elsewhere(_) => !self.is_own(it, scope),
                VarPlace::Root { .. } => *outermost != FrameKind::Root && it.kind.is_scoped(),
            })
            .min_by_key(|it| (it.kind == DefKind::Assigned, it.kind == DefKind::Implicit));
        if let Some(entry) = elsewhere {
            keep(Resolved { binding: Binding::OtherBlock, site: Some(entry.site), kind: Some(entry.kind) });
        } else if self.program.foreign.contains(name) {
            keep(Resolved { binding: Binding::OtherBlock, site: None, kind: None });
        }
        let Some(mut resolved) = worse else {
            return Resolved { binding: Binding::Unbound, site: None, kind: None };
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

    /// Looks in one frame, as seen from a place in it or below it. Returns what is in sight; tells `keep` about the rest.
    fn in_frame(
        &self,
        name: &Name,
        frame: u32,
        scope: u32,
        seq: u32,
        keep: &mut dyn FnMut(Resolved),
    ) -> Option<Resolved> {
        let scopes = self.scopes;
        let mut best: Option<(u32, u32)> = None;
        let mut scoped: Option<(u32, u32)> = None;
        for (index, def) in scopes.defs.iter().enumerate() {
            let index = index as u32;
            if def.name != *name || def.kind.is_global() || scopes.frame_of(def.scope) != frame {
                continue;
            }
            if def.kind.is_scoped() {
                if scopes.encloses(def.scope, scope) {
                    // The innermost construct wins.
                    if scoped.is_none_or(|(at, _)| at <= def.scope) {
                        scoped = Some((def.scope, index));
                    }
                } else if def.seq < seq && def.kind != DefKind::Implicit {
                    keep(self.found(Binding::AfterLoop, index));
                }
                continue;
            }
            let common = scopes.common(def.scope, scope);
            if def.seq < seq {
                if scopes.hidden_from(def.scope, common) {
                    keep(self.found(Binding::AfterLoop, index));
                } else {
                    // The latest; a declaration rather than an assignment to it.
                    let weight = if def.kind == DefKind::Assigned { 0 } else { def.seq };
                    if best.is_none_or(|(at, _)| at <= weight) {
                        best = Some((weight, index));
                    }
                }
            } else if scopes.in_loop(common) {
                keep(self.found(Binding::NextRound, index));
            } else if scopes.ancestors(common).any(|it| scopes.scope(it).parallel) {
                // Branches run at the same time.
                keep(self.found(Binding::NextRound, index));
            } else {
                keep(self.found(Binding::Later, index));
            }
        }
        let index = match (scoped, best) {
            (Some((_, index)), _) => index,
            (None, Some((_, index))) => index,
            (None, None) => return None,
        };
        Some(self.found(Binding::Sure, index))
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
                return self.slot_of(&resolved, &it.name).unwrap_or_else(|| self.frame_slot(it.scope, &it.name));
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
        let root = self.program.own.vars.get(name).is_some_and(|entries| {
            entries.iter().any(|it| it.site == site && matches!(it.place, VarPlace::Root { .. }))
        });
        // A variable of a block in another chunk has no slot that this use is sure to mean.
        root.then(|| Slot::Root(site.file, name.clone()))
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
