//! Frames, the layers that loops put over them, and how names are found.
//!
//! A frame has one slot per name and all branches inside it share the slots. A loop, catch or pipeline variable lives in
//! a layer of its own above the frame, so that it shadows and vanishes without a trace, and so that two branches of one
//! frame can loop over the same name at once.

use std::sync::Arc;

use indexmap::IndexMap;
use prose_model::{
    BindKind, ErrorValue, ExecutionId, FrameKind, Name, SessionSummary, StmtId, Value, VisibleName,
};

/// Index into [`Scopes`].
pub(crate) type ScopeId = u32;

/// A name's slot.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub value: Value,
    pub kind: BindKind,
}

/// A frame or a layer over one.
#[derive(Debug)]
pub(crate) struct Scope {
    pub parent: Option<ScopeId>,
    pub slots: IndexMap<Name, Slot>,
    pub kind: ScopeKind,
}

#[derive(Debug)]
pub(crate) enum ScopeKind {
    Frame(Box<Frame>),
    /// `caught` is set by `catch`: what a bare `throw` raises again.
    Layer {
        caught: Option<Arc<ErrorValue>>,
    },
}

/// What a frame is.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// None for the entry program's root.
    pub kind: Option<FrameKind>,
    pub execution_id: Option<ExecutionId>,
    pub name: Name,
    /// Block frames on the stack, this one included when it is one.
    pub depth: u32,
    pub call_site: Option<StmtId>,
    /// The program instance it belongs to.
    pub instance: u32,
    /// Named outputs of a block.
    pub outputs: IndexMap<Name, Value>,
    /// What finished blocks called from here have left: read as the last resort (language.md, "Scope").
    pub residue: IndexMap<Name, Slot>,
    /// Sessions that finished here or in frames that ended, oldest first.
    pub history: Vec<SessionSummary>,
}

impl Frame {
    /// Notes sessions that finished. Only the latest are ever told; more are kept for a while, so that forgetting costs
    /// little.
    pub fn finished(&mut self, sessions: impl IntoIterator<Item = SessionSummary>) {
        self.history.extend(sessions);
        let over = self.history.len().saturating_sub(crate::SESSIONS_TOLD);
        if over > crate::SESSIONS_TOLD {
            self.history.drain(..over);
        }
    }
    /// Whether look-up ends here.
    pub fn is_boundary(&self) -> bool {
        matches!(self.kind, None | Some(FrameKind::Program))
    }
    /// The id under which bindings of this frame are filed: none at the root of a program.
    pub fn binding_id(&self) -> Option<ExecutionId> {
        if self.is_boundary() {
            None
        } else {
            self.execution_id
        }
    }
}

/// All open frames and layers.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    /// Boxed, so that the many that were open once leave little behind.
    open: Vec<Option<Box<Scope>>>,
    free: Vec<ScopeId>,
}

impl Scopes {
    pub fn open(&mut self, scope: Scope) -> ScopeId {
        if let Some(id) = self.free.pop() {
            self.open[id as usize] = Some(Box::new(scope));
            return id;
        }
        self.open.push(Some(Box::new(scope)));
        (self.open.len() - 1) as ScopeId
    }

    pub fn layer(&mut self, parent: ScopeId, caught: Option<Arc<ErrorValue>>) -> ScopeId {
        self.open(Scope {
            parent: Some(parent),
            slots: IndexMap::new(),
            kind: ScopeKind::Layer { caught },
        })
    }

    pub fn frame(&mut self, parent: Option<ScopeId>, frame: Frame) -> ScopeId {
        self.open(Scope {
            parent,
            slots: IndexMap::new(),
            kind: ScopeKind::Frame(Box::new(frame)),
        })
    }

    pub fn close(&mut self, id: ScopeId) -> Option<Scope> {
        let scope = self.open.get_mut(id as usize)?.take();
        if scope.is_some() {
            self.free.push(id);
        }
        scope.map(|scope| *scope)
    }

    pub fn get(&self, id: ScopeId) -> Option<&Scope> {
        self.open.get(id as usize)?.as_deref()
    }

    pub fn get_mut(&mut self, id: ScopeId) -> Option<&mut Scope> {
        self.open.get_mut(id as usize)?.as_deref_mut()
    }

    /// The scope and those below it, up to and with the program boundary.
    fn chain(&self, from: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let id = next?;
            let scope = self.get(id)?;
            next = match &scope.kind {
                ScopeKind::Frame(frame) if frame.is_boundary() => None,
                _ => scope.parent,
            };
            Some((id, scope))
        })
    }

    /// Where a name is held: layers, frame, calling frames, root.
    pub fn find(&self, from: ScopeId, name: &str) -> Option<(ScopeId, &Slot)> {
        self.chain(from)
            .find_map(|(id, scope)| Some((id, scope.slots.get(name)?)))
    }

    /// Where an assignment to a name goes: the nearest scope that holds it, but never the loop, catch or pipeline
    /// variable of a caller, which the block that assigns can't mean.
    pub fn assignable(&self, from: ScopeId, name: &str) -> Option<(ScopeId, &Slot)> {
        let mut called = false;
        for (id, scope) in self.chain(from) {
            match scope.slots.get(name) {
                Some(slot) if !called || slot.kind != BindKind::Loop => return Some((id, slot)),
                _ => {}
            }
            called |= matches!(&scope.kind, ScopeKind::Frame(frame) if frame.kind == Some(FrameKind::Block));
        }
        None
    }

    /// What a finished block has left under a name.
    pub fn residue(&self, from: ScopeId, name: &str) -> Option<&Value> {
        self.chain(from).find_map(|(_, scope)| match &scope.kind {
            ScopeKind::Frame(frame) => frame.residue.get(name).map(|slot| &slot.value),
            ScopeKind::Layer { .. } => None,
        })
    }

    /// The frame that a scope is or lies over.
    pub fn frame_of(&self, from: ScopeId) -> Option<(ScopeId, &Frame)> {
        self.chain(from).find_map(|(id, scope)| match &scope.kind {
            ScopeKind::Frame(frame) => Some((id, &**frame)),
            ScopeKind::Layer { .. } => None,
        })
    }

    pub fn frame_of_mut(&mut self, from: ScopeId) -> Option<&mut Frame> {
        let (id, _) = self.frame_of(from)?;
        match &mut self.get_mut(id)?.kind {
            ScopeKind::Frame(frame) => Some(frame),
            ScopeKind::Layer { .. } => None,
        }
    }

    /// The nearest block invocation, seen through iterations and items.
    pub fn block_of(&self, from: ScopeId) -> Option<(ScopeId, &Frame)> {
        self.chain(from).find_map(|(id, scope)| match &scope.kind {
            ScopeKind::Frame(frame) if frame.kind == Some(FrameKind::Block) => Some((id, &**frame)),
            _ => None,
        })
    }

    /// Binds a name in the frame, or in a layer of this frame that shadows it. Gives the scope that holds it.
    pub fn bind(&mut self, from: ScopeId, name: &Name, slot: Slot) -> ScopeId {
        let mut holder = from;
        let mut next = Some(from);
        while let Some(id) = next {
            let Some(scope) = self.get(id) else { break };
            holder = id;
            match &scope.kind {
                ScopeKind::Layer { .. } if !scope.slots.contains_key(name) => next = scope.parent,
                _ => break,
            }
        }
        if let Some(scope) = self.get_mut(holder) {
            scope.slots.insert(name.clone(), slot);
        }
        holder
    }

    /// The error that the nearest `catch` of this frame or of iterations in it holds.
    pub fn caught(&self, from: ScopeId) -> Option<Arc<ErrorValue>> {
        for (_, scope) in self.chain(from) {
            match &scope.kind {
                ScopeKind::Layer { caught: Some(error) } => return Some(error.clone()),
                ScopeKind::Frame(frame) if frame.kind == Some(FrameKind::Block) => return None,
                _ => {}
            }
        }
        None
    }

    /// Names that a statement sees, nearest first, each once.
    pub fn visible(&self, from: ScopeId) -> Vec<VisibleName> {
        let mut seen: IndexMap<&Name, &Value> = IndexMap::new();
        for (_, scope) in self.chain(from) {
            for (name, slot) in &scope.slots {
                seen.entry(name).or_insert(&slot.value);
            }
        }
        seen.into_iter()
            .map(|(name, value)| VisibleName {
                name: name.clone(),
                value: value.clone(),
            })
            .collect()
    }

    /// Sessions that finished in the frames of the stack, oldest first.
    pub fn history(&self, from: ScopeId) -> Vec<SessionSummary> {
        let mut frames: Vec<&Frame> = self
            .chain(from)
            .filter_map(|(_, scope)| match &scope.kind {
                ScopeKind::Frame(frame) => Some(&**frame),
                ScopeKind::Layer { .. } => None,
            })
            .collect();
        frames.reverse();
        let count: usize = frames.iter().map(|frame| frame.history.len()).sum();
        frames
            .iter()
            .flat_map(|frame| frame.history.iter())
            .skip(count.saturating_sub(crate::SESSIONS_TOLD))
            .cloned()
            .collect()
    }

    /// Open frames with an execution id, in the order of their ids.
    pub fn frames(&self) -> Vec<(ScopeId, &Frame)> {
        let mut frames: Vec<_> = self
            .open
            .iter()
            .enumerate()
            .filter_map(|(id, scope)| match &scope.as_ref()?.kind {
                ScopeKind::Frame(frame) if frame.execution_id.is_some() => Some((id as ScopeId, &**frame)),
                _ => None,
            })
            .collect();
        frames.sort_by_key(|(_, frame)| frame.execution_id);
        frames
    }
}
