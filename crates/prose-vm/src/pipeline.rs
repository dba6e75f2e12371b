//! Pipelines: `map`, `filter`, `reduce` in order, `pmap` concurrently, `chunks`.

use std::sync::Arc;

use prose_model::{ConstructKind, EffectId, End, Event, Name, Value};

use crate::code::{Body, COp, CStage, NodeId};
use crate::events::below;
use crate::expr::list_of;
use crate::machine::Machine;
use crate::strand::{Control, StageState, Strand, Task, Unwind, What};

impl Machine {
    /// Goes on to a stage with the value of the one before; past the last one gives that value.
    pub(crate) fn next_stage(&mut self, s: &mut Strand, node: NodeId, stage: usize, value: Value) -> Control {
        let code = self.code.clone();
        let COp::Pipeline { stages, .. } = &code.node(node).op else {
            return Control::Value(value);
        };
        match stages.get(stage) {
            Some(_) => self.start_task(s, Task::StageItems(node, stage, value), Body::default()),
            None => Control::Value(value),
        }
    }

    /// A stage's own place, the key of its events.
    pub(crate) fn stage_id(&self, s: &Strand, node: NodeId, stage: usize) -> EffectId {
        format!("{}|{stage}", self.id_at(&s.cx, node)).into()
    }

    pub(crate) fn start_stage(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        stage: usize,
        items: Arc<Vec<Value>>,
    ) -> Control {
        let code = self.code.clone();
        let COp::Pipeline { stages, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        let construct = self.stage_id(s, node, stage);
        let mut next = 0;
        let mut acc = Value::Null;
        match &stages[stage] {
            CStage::Chunks(size) => {
                return self.start_task(s, Task::Chunks(node, stage, *size, items), Body::default());
            }
            CStage::Pmap { .. } => return self.start_pmap(s, node, stage, construct, items),
            CStage::Reduce { .. } => {
                // Folds from the first item; nothing to fold gives null.
                acc = items.first().cloned().unwrap_or_default();
                next = 1;
            }
            CStage::Map { .. } | CStage::Filter { .. } => {}
        }
        let total = Some(items.len() as u64);
        self.construct_started_as(s, node, construct, ConstructKind::Pipeline, total, None);
        let layer = self.scopes.layer(s.cx.scope, None);
        let state = StageState {
            node,
            stage,
            items,
            next,
            out: Vec::new(),
            acc,
            layer,
            judging: false,
        };
        self.next_item(s, Box::new(state))
    }

    fn next_item(&mut self, s: &mut Strand, mut state: Box<StageState>) -> Control {
        let code = self.code.clone();
        let node = state.node;
        let COp::Pipeline { stages, .. } = &code.node(node).op else {
            return self.broken(node);
        };
        let stage = &stages[state.stage];
        let construct = self.stage_id(s, node, state.stage);
        let Some(item) = state.items.get(state.next).cloned() else {
            self.scopes.close(state.layer);
            self.emit(Event::ConstructFinished {
                construct,
                end: End::Ok,
            });
            let value = match stage {
                CStage::Reduce { .. } => state.acc,
                _ => list_of(state.out),
            };
            return self.next_stage(s, node, state.stage + 1, value);
        };
        self.emit(Event::PartStarted {
            construct: construct.clone(),
            index: state.next as u32,
            label: None,
        });
        let i = state.next;
        let (layer, acc) = (state.layer, state.acc.clone());
        state.next += 1;
        state.judging = false;
        let segment = format!("{}|{}[{i}]", code.node(node).id, state.stage);
        s.push(What::Stage(state));
        s.cx.place = below(&s.cx.place, &segment);
        s.cx.scope = layer;
        let (names, body): (Vec<(&Name, Value)>, &Body) = match stage {
            CStage::Map { item: name, body } | CStage::Filter { item: name, body } => {
                (vec![(name, item)], body)
            }
            CStage::Reduce {
                acc: first,
                item: name,
                body,
            } => (vec![(first, acc), (name, item)], body),
            CStage::Pmap { .. } | CStage::Chunks(_) => return self.broken(node),
        };
        for (name, value) in names {
            self.bind_variable(s, node, name, value);
        }
        s.seq(body)
    }

    pub(crate) fn resume_stage(
        &mut self,
        s: &mut Strand,
        mut state: Box<StageState>,
        value: Value,
    ) -> Control {
        let code = self.code.clone();
        let COp::Pipeline { stages, .. } = &code.node(state.node).op else {
            return self.broken(state.node);
        };
        let i = state.next - 1;
        match &stages[state.stage] {
            CStage::Filter { .. } if !state.judging => {
                state.judging = true;
                let node = state.node;
                let segment = format!("{}|{}[{i}]", code.node(node).id, state.stage);
                s.push(What::Stage(state));
                s.cx.place = below(&s.cx.place, &segment);
                return self.start_task(s, Task::AsTruth(node, value), Body::default());
            }
            CStage::Filter { .. } => {
                if matches!(value, Value::Bool(true)) {
                    state.out.extend(state.items.get(i).cloned());
                }
            }
            CStage::Reduce { .. } => state.acc = value,
            _ => state.out.push(value),
        }
        let construct = self.stage_id(s, state.node, state.stage);
        self.emit(Event::PartFinished {
            construct,
            index: i as u32,
            end: End::Ok,
        });
        self.next_item(s, state)
    }

    pub(crate) fn unwind_stage(&mut self, s: &mut Strand, state: Box<StageState>, unwind: Unwind) -> Control {
        // `output EXPR` yields the item.
        if let Unwind::Return(value) = unwind {
            return self.resume_stage(s, state, value);
        }
        self.scopes.close(state.layer);
        let construct = self.stage_id(s, state.node, state.stage);
        let index = state.next.saturating_sub(1) as u32;
        self.emit(Event::PartFinished {
            construct: construct.clone(),
            index,
            end: unwind.end(),
        });
        self.emit(Event::ConstructFinished {
            construct,
            end: unwind.end(),
        });
        Control::Unwind(unwind)
    }

    /// Lists of at most `size` items.
    pub(crate) fn chunks(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        stage: usize,
        size: u64,
        items: &[Value],
    ) -> Control {
        let construct = self.stage_id(s, node, stage);
        let total = Some(items.len() as u64);
        self.construct_started_as(s, node, construct.clone(), ConstructKind::Pipeline, total, None);
        let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
        let chunks = items
            .chunks(size)
            .map(|chunk| Value::list(chunk.to_vec()))
            .collect();
        self.emit(Event::ConstructFinished {
            construct,
            end: End::Ok,
        });
        self.next_stage(s, node, stage + 1, list_of(chunks))
    }
}
