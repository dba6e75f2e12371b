//! `for`, `repeat`, `loop`.

use std::sync::Arc;

use prose_model::{ConstructKind, End, ErrorKind, Value};

use crate::LOOP_LIMIT;
use crate::code::{Body, COp, NodeId};
use crate::eval::values;
use crate::events::below;
use crate::machine::Machine;
use crate::strand::{Control, ForState, LoopState, Strand, Unwind, What};

impl Machine {
    pub(crate) fn start_for(&mut self, s: &mut Strand, node: NodeId, items: Arc<Vec<Value>>) -> Control {
        let count = items.len() as u64;
        self.construct_started(s, node, ConstructKind::For, Some(count), None);
        self.start_count(s, node, count, Some(items))
    }

    pub(crate) fn start_repeat(&mut self, s: &mut Strand, node: NodeId, count: u64) -> Control {
        self.construct_started(s, node, ConstructKind::Repeat, Some(count), None);
        self.start_count(s, node, count, None)
    }

    fn start_count(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        count: u64,
        items: Option<Arc<Vec<Value>>>,
    ) -> Control {
        let layer = self.scopes.layer(s.cx.scope, None);
        s.push(What::For(Box::new(ForState {
            node,
            items,
            count,
            next: 0,
            values: Vec::new(),
            layer,
        })));
        Control::Value(Value::Null)
    }

    pub(crate) fn resume_for(&mut self, s: &mut Strand, mut state: Box<ForState>, value: Value) -> Control {
        let node = state.node;
        if let Some(done) = state.next.checked_sub(1) {
            self.part_finished(s, node, done, End::Ok);
            if self.code.node(node).used {
                state.values.push(value);
            }
        }
        let i = state.next;
        if i >= state.count {
            self.scopes.close(state.layer);
            self.construct_finished(s, node, End::Ok);
            return values(state.values);
        }
        let item = state
            .items
            .as_ref()
            .and_then(|items| items.get(i as usize).cloned());
        let layer = state.layer;
        state.next += 1;
        s.push(What::For(state));
        self.part_started(s, node, i, None);
        let code = self.code.clone();
        let (name, index, body) = match &code.node(node).op {
            COp::For {
                item, index, body, ..
            } => (Some(item), index.as_ref(), body),
            COp::Repeat { index, body, .. } => (None, index.as_ref(), body),
            _ => return Control::Value(Value::Null),
        };
        self.enter_iteration(s, node, i, layer);
        if let (Some(name), Some(item)) = (name, item) {
            self.bind_variable(s, node, name, item);
        }
        if let Some(name) = index {
            self.bind_variable(s, node, name, Value::Number(i as f64));
        }
        s.seq(body)
    }

    /// Moves to the place of an iteration.
    fn enter_iteration(&mut self, s: &mut Strand, node: NodeId, i: u64, layer: u32) {
        s.cx.place = below(&s.cx.place, &format!("{}[{i}]", self.code.node(node).id));
        s.cx.scope = layer;
    }

    pub(crate) fn unwind_for(&mut self, s: &mut Strand, state: ForState, unwind: Unwind) -> Control {
        self.scopes.close(state.layer);
        self.leave_loop(s, state.node, state.next.checked_sub(1), state.values, unwind)
    }

    pub(crate) fn unwind_loop(&mut self, s: &mut Strand, state: LoopState, unwind: Unwind) -> Control {
        self.scopes.close(state.layer);
        let open = (!state.testing).then_some(state.iteration);
        self.leave_loop(s, state.node, open, state.values, unwind)
    }

    fn leave_loop(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        open: Option<u64>,
        done: Vec<Value>,
        unwind: Unwind,
    ) -> Control {
        if let Some(part) = open {
            self.part_finished(s, node, part, unwind.end());
        }
        self.construct_finished(s, node, unwind.end());
        match unwind {
            Unwind::Break => values(done),
            unwind => Control::Unwind(unwind),
        }
    }

    pub(crate) fn start_loop(&mut self, s: &mut Strand, node: NodeId, max: Option<u64>) -> Control {
        let code = self.code.clone();
        let COp::Loop { test, .. } = &code.node(node).op else {
            return Control::Value(Value::Null);
        };
        let condition = test
            .map(|(_, cond)| code.source(cond))
            .filter(|text| !text.is_empty());
        self.construct_started(s, node, ConstructKind::Loop, max, condition);
        let layer = self.scopes.layer(s.cx.scope, None);
        let state = LoopState {
            node,
            iteration: 0,
            max,
            values: Vec::new(),
            testing: false,
            no_progress: false,
            verdicts: Vec::new(),
            layer,
        };
        self.next_iteration(s, Box::new(state))
    }

    /// Tests whether there is another iteration: `max` first, then the condition.
    fn next_iteration(&mut self, s: &mut Strand, mut state: Box<LoopState>) -> Control {
        let code = self.code.clone();
        let node = state.node;
        let COp::Loop {
            test, index, body, ..
        } = &code.node(node).op
        else {
            return self.broken(node);
        };
        if state.max.is_some_and(|max| state.iteration >= max) {
            return self.end_loop(s, *state);
        }
        if test.is_none() && state.max.is_none() && state.iteration >= LOOP_LIMIT {
            self.scopes.close(state.layer);
            self.construct_finished(s, node, End::Failed);
            let message =
                format!("a loop with neither a condition nor max: stopped after {LOOP_LIMIT} iterations");
            return self.raise(node, ErrorKind::LoopLimit, message);
        }
        match test {
            Some((_, cond)) => {
                state.testing = true;
                self.in_iteration(s, state, index.as_ref());
                self.start_task(
                    s,
                    crate::strand::Task::Truth(*cond),
                    code.node(*cond).lifts.clone(),
                )
            }
            None => self.loop_body(s, state, index.as_ref(), body),
        }
    }

    fn in_iteration(&mut self, s: &mut Strand, state: Box<LoopState>, index: Option<&prose_model::Name>) {
        let (node, i, layer) = (state.node, state.iteration, state.layer);
        s.push(What::Loop(state));
        self.enter_iteration(s, node, i, layer);
        if let Some(name) = index {
            self.bind_variable(s, node, name, Value::Number(i as f64));
        }
    }

    fn loop_body(
        &mut self,
        s: &mut Strand,
        mut state: Box<LoopState>,
        index: Option<&prose_model::Name>,
        body: &Body,
    ) -> Control {
        self.part_started(s, state.node, state.iteration, None);
        // After a test the index is bound already.
        let index = if state.testing { None } else { index };
        state.testing = false;
        self.in_iteration(s, state, index);
        s.seq(body)
    }

    fn end_loop(&mut self, s: &mut Strand, state: LoopState) -> Control {
        self.scopes.close(state.layer);
        self.construct_finished(s, state.node, End::Ok);
        values(state.values)
    }

    pub(crate) fn resume_loop(&mut self, s: &mut Strand, mut state: Box<LoopState>, value: Value) -> Control {
        let code = self.code.clone();
        let COp::Loop {
            test, index, body, ..
        } = &code.node(state.node).op
        else {
            return self.broken(state.node);
        };
        if state.testing {
            let holds = matches!(value, Value::Bool(true));
            let over = test.is_some_and(|(until, _)| holds == until);
            if over || state.no_progress {
                return self.end_loop(s, *state);
            }
            return self.loop_body(s, state, index.as_ref(), body);
        }
        self.part_finished(s, state.node, state.iteration, End::Ok);
        if code.node(state.node).used {
            state.values.push(value);
        }
        state.iteration += 1;
        self.next_iteration(s, state)
    }
}
