//! `if` and arrows.

use prose_model::{ContextItem, End, Value};

use crate::code::{COp, NodeId};
use crate::machine::Machine;
use crate::strand::{Control, Strand, Task, What};

impl Machine {
    pub(crate) fn resume_if(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        arm: usize,
        body: bool,
        value: Value,
    ) -> Control {
        if body {
            self.part_finished(s, node, arm as u64, End::Ok);
            self.construct_finished(s, node, End::Ok);
            return Control::Value(value);
        }
        let code = self.code.clone();
        let COp::If { arms, otherwise } = &code.node(node).op else {
            return Control::Value(Value::Null);
        };
        let taken = match (matches!(value, Value::Bool(true)), arms.get(arm + 1)) {
            (true, _) => arms.get(arm).map(|(_, body)| (arm, body)),
            (false, Some((cond, _))) => {
                s.push(What::If {
                    node,
                    arm: arm + 1,
                    body: false,
                });
                return self.start_task(s, Task::Truth(*cond), code.node(*cond).lifts.clone());
            }
            (false, None) => otherwise.as_ref().map(|body| (arms.len(), body)),
        };
        match taken {
            Some((arm, body)) => {
                self.part_started(s, node, arm as u64, None);
                s.push(What::If {
                    node,
                    arm,
                    body: true,
                });
                s.seq(body)
            }
            None => {
                self.construct_finished(s, node, End::Ok);
                Control::Value(Value::Null)
            }
        }
    }

    /// Hands the value of an arrow's part on to the next one.
    pub(crate) fn resume_arrow(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        next: usize,
        value: Value,
    ) -> Control {
        let code = self.code.clone();
        let COp::Arrow(parts) = &code.node(node).op else {
            return Control::Value(value);
        };
        let Some(part) = parts.get(next) else {
            return Control::Value(value);
        };
        // Only a session's own result is a binding; what a block gives may be something else.
        let of_session = matches!(code.node(parts[next - 1]).op, COp::Session(_));
        let binding = s.last_binding.take().filter(|_| of_session);
        let label = binding
            .as_ref()
            .map_or_else(|| "previous".to_owned(), |b| b.name.to_string());
        let previous = Some(ContextItem {
            label,
            value,
            binding,
            memory_of: None,
        });
        s.push(What::Arrow {
            node,
            next: next + 1,
            previous,
        });
        Control::Eval(*part)
    }
}
