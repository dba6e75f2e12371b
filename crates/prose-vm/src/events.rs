//! Events, places and ids.

use std::sync::Arc;

use prose_model::{
    BindKind, BindingRef, ConstructKind, EffectId, End, Event, ExecutionId, MachineEvent, Name, Place,
    SourceRange, Value,
};
use sha2::{Digest as _, Sha256};

use crate::code::NodeId;
use crate::machine::Machine;
use crate::scope::{ScopeId, Slot};
use crate::strand::{Cx, Strand};

/// Longest place prefix, in bytes, that is kept readable.
const PLACE_LIMIT: usize = 160;

/// The prefix of the places below a call site or an iteration. Deep recursion would make it arbitrarily long, so that a
/// long one is replaced by its digest.
pub(crate) fn below(place: &str, segment: &str) -> Arc<str> {
    let whole = format!("{place}{segment}>");
    if whole.len() <= PLACE_LIMIT {
        return whole.into();
    }
    let digest = Sha256::digest(whole.as_bytes());
    let mut short = String::from("~");
    for byte in &digest[..16] {
        short.push_str(&format!("{byte:02x}"));
    }
    short.push('>');
    short.into()
}

impl Machine {
    pub(crate) fn emit(&mut self, event: Event) {
        let seq = self.seq;
        self.seq += 1;
        self.out_events.push(MachineEvent { seq, event });
    }

    /// The id of what a node does here.
    pub(crate) fn id_at(&self, cx: &Cx, node: NodeId) -> EffectId {
        format!("{}{}", cx.place, self.code.node(node).id).into()
    }

    pub(crate) fn place(&self, cx: &Cx, node: NodeId) -> Place {
        let n = self.code.node(node);
        Place {
            stmt: n.id.clone(),
            src: n.src,
            execution_id: self.execution_id(cx.scope),
            path: self.id_at(cx, node),
        }
    }

    /// The frame that a scope belongs to; none for the root.
    pub(crate) fn execution_id(&self, scope: ScopeId) -> Option<ExecutionId> {
        self.scopes
            .frame_of(scope)
            .and_then(|(_, frame)| frame.execution_id)
    }

    pub(crate) fn statement_started(&mut self, s: &Strand, node: NodeId) {
        let at = self.place(&s.cx, node);
        self.emit(Event::StatementStarted { at });
    }

    pub(crate) fn statement_finished(&mut self, s: &Strand, node: NodeId, end: End) {
        let at = self.place(&s.cx, node);
        self.emit(Event::StatementFinished { at, end });
    }

    pub(crate) fn construct_started(
        &mut self,
        s: &Strand,
        node: NodeId,
        kind: ConstructKind,
        total: Option<u64>,
        condition: Option<String>,
    ) {
        let construct = self.id_at(&s.cx, node);
        self.construct_started_as(s, node, construct, kind, total, condition);
    }

    pub(crate) fn construct_started_as(
        &mut self,
        s: &Strand,
        node: NodeId,
        construct: EffectId,
        kind: ConstructKind,
        total: Option<u64>,
        condition: Option<String>,
    ) {
        let at = self.place(&s.cx, node);
        let total = total.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        self.emit(Event::ConstructStarted {
            at,
            construct,
            kind,
            total,
            condition,
        });
    }

    pub(crate) fn construct_finished(&mut self, s: &Strand, node: NodeId, end: End) {
        let construct = self.id_at(&s.cx, node);
        self.emit(Event::ConstructFinished { construct, end });
    }

    pub(crate) fn part_started(&mut self, s: &Strand, node: NodeId, index: u64, label: Option<String>) {
        let construct = self.id_at(&s.cx, node);
        self.emit(Event::PartStarted {
            construct,
            index: index as u32,
            label,
        });
    }

    pub(crate) fn part_finished(&mut self, s: &Strand, node: NodeId, index: u64, end: End) {
        let construct = self.id_at(&s.cx, node);
        self.emit(Event::PartFinished {
            construct,
            index: index as u32,
            end,
        });
    }

    pub(crate) fn warn(&mut self, cx: &Cx, node: NodeId, code: &str, message: impl Into<String>) {
        let at = self.place(cx, node);
        self.emit(Event::Warning {
            at,
            code: code.into(),
            message: message.into(),
        });
    }

    /// The binding that a name held by a scope stands for.
    pub(crate) fn binding_ref(&self, holder: ScopeId, name: &Name) -> BindingRef {
        let frame = self.scopes.frame_of(holder).map(|(_, frame)| frame);
        let instance = frame.and_then(|frame| self.instances.get(frame.instance as usize));
        BindingRef {
            name: name.clone(),
            execution_id: frame.and_then(|frame| frame.binding_id()),
            program: instance.map_or_else(Vec::new, |instance| instance.path.clone()),
        }
    }

    /// Binds a name in the current frame and says so.
    pub(crate) fn bind(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        kind: BindKind,
        name: &Name,
        value: Value,
        source: SourceRange,
    ) {
        let holder = self.scopes.bind(
            s.cx.scope,
            name,
            Slot {
                value: value.clone(),
                kind,
            },
        );
        if !s.bound.contains(name) {
            s.bound.push(name.clone());
        }
        if kind == BindKind::Output {
            self.register_output(s, name, value.clone());
        }
        let at = self.place(&s.cx, node);
        let binding = self.binding_ref(holder, name);
        self.emit(Event::Bound {
            at,
            binding,
            kind,
            source,
            value,
        });
    }

    /// Binds a loop, catch or pipeline variable in its layer, which must be the current scope.
    pub(crate) fn bind_variable(&mut self, s: &Strand, node: NodeId, name: &Name, value: Value) {
        let scope = s.cx.scope;
        let slot = Slot {
            value: value.clone(),
            kind: BindKind::Loop,
        };
        if let Some(layer) = self.scopes.get_mut(scope) {
            layer.slots.insert(name.clone(), slot);
        }
        let at = self.place(&s.cx, node);
        let binding = self.binding_ref(scope, name);
        let source = self.code.node(node).src;
        self.emit(Event::Bound {
            at,
            binding,
            kind: BindKind::Loop,
            source,
            value,
        });
    }

    /// Registers a named output with the nearest block, else with the program.
    pub(crate) fn register_output(&mut self, s: &Strand, name: &Name, value: Value) {
        let block = self.scopes.block_of(s.cx.scope).map(|(id, _)| id);
        match block.and_then(|id| self.scopes.frame_of_mut(id)) {
            Some(frame) => {
                frame.outputs.insert(name.clone(), value);
            }
            None => {
                if let Some(instance) = self.instances.get_mut(s.cx.instance as usize) {
                    instance.outputs.insert(name.to_string(), value);
                }
            }
        }
    }
}
