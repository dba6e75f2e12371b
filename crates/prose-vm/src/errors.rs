//! Errors of the language: raising, `try`, `throw`, `assert`.

use std::sync::Arc;

use prose_model::{ConstructKind, End, ErrorKind, ErrorValue, Value};

use crate::code::{COp, NodeId};
use crate::expr::Stop;
use crate::machine::Machine;
use crate::render;
use crate::strand::{Cancel, Control, Pending, Strand, TryPhase, Unwind, What};

/// The word that `err.kind` reads: the serialised name.
pub fn kind_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Thrown => "thrown",
        ErrorKind::Assertion => "assertion",
        ErrorKind::Backend => "backend",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Permission => "permission",
        ErrorKind::Empty => "empty",
        ErrorKind::Budget => "budget",
        ErrorKind::Judge => "judge",
        ErrorKind::Type => "type",
        ErrorKind::Undefined => "undefined",
        ErrorKind::RecursionLimitExceeded => "recursion_limit_exceeded",
        ErrorKind::LoopLimit => "loop_limit",
        ErrorKind::Join => "join",
        ErrorKind::Import => "import",
        ErrorKind::Input => "input",
    }
}

impl Machine {
    /// An error raised by a node.
    pub(crate) fn error(&self, node: NodeId, kind: ErrorKind, message: impl Into<String>) -> Arc<ErrorValue> {
        let statement = self.code.node(node).id.clone();
        Arc::new(ErrorValue {
            kind,
            message: message.into(),
            statement,
            place: self.code.place(node),
            attempts: 1,
        })
    }

    pub(crate) fn raise(&self, node: NodeId, kind: ErrorKind, message: impl Into<String>) -> Control {
        Control::Unwind(Unwind::Error(self.error(node, kind, message)))
    }

    /// A continuation has met a node of another kind: a bug here, which ends the run instead of letting it hang.
    pub(crate) fn broken(&self, node: NodeId) -> Control {
        let message = format!("internal error at {}: unexpected node", self.code.node(node).id);
        self.raise(node, ErrorKind::Type, message)
    }

    pub(crate) fn start_try(&mut self, s: &mut Strand, node: NodeId) -> Control {
        let code = self.code.clone();
        let COp::Try { body, .. } = &code.node(node).op else {
            return Control::Value(Value::Null);
        };
        self.construct_started(s, node, ConstructKind::Try, None, None);
        s.push(What::Try {
            node,
            phase: TryPhase::Body,
        });
        s.seq(body)
    }

    pub(crate) fn resume_try(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        phase: TryPhase,
        value: Value,
    ) -> Control {
        match phase {
            TryPhase::Finally { then } => self.after_finally(s, node, then),
            TryPhase::Catch { layer } => {
                self.scopes.close(layer);
                self.finally(s, node, Pending::Value(value))
            }
            TryPhase::Body => self.finally(s, node, Pending::Value(value)),
        }
    }

    pub(crate) fn unwind_try(
        &mut self,
        s: &mut Strand,
        node: NodeId,
        phase: TryPhase,
        unwind: Unwind,
    ) -> Control {
        let code = self.code.clone();
        match phase {
            // What `finally` raises takes the place of what was pending; a cancelled strand stays cancelled.
            TryPhase::Finally { .. } => self.after_finally(s, node, Pending::Unwind(unwind)),
            TryPhase::Catch { layer } => {
                self.scopes.close(layer);
                self.finally(s, node, Pending::Unwind(unwind))
            }
            TryPhase::Body => match (&unwind, &code.node(node).op) {
                (
                    Unwind::Error(error),
                    COp::Try {
                        catch: Some((name, body)),
                        ..
                    },
                ) => {
                    let layer = self.scopes.layer(s.cx.scope, Some(error.clone()));
                    s.push(What::Try {
                        node,
                        phase: TryPhase::Catch { layer },
                    });
                    s.cx.scope = layer;
                    if let Some(name) = name {
                        self.bind_variable(s, node, name, Value::Error(error.clone()));
                    }
                    s.seq(body)
                }
                _ => self.finally(s, node, Pending::Unwind(unwind)),
            },
        }
    }

    /// Runs the `finally` body, if there is one and the deadline has not passed.
    fn finally(&mut self, s: &mut Strand, node: NodeId, then: Pending) -> Control {
        let code = self.code.clone();
        match &code.node(node).op {
            COp::Try {
                finally: Some(body), ..
            } if s.cancel != Cancel::Killed => {
                s.protected += 1;
                s.push(What::Try {
                    node,
                    phase: TryPhase::Finally { then },
                });
                s.seq(body)
            }
            _ => self.end_try(s, node, then),
        }
    }

    fn after_finally(&mut self, s: &mut Strand, node: NodeId, then: Pending) -> Control {
        s.protected = s.protected.saturating_sub(1);
        let cancelled = s.cancel == Cancel::Killed || (s.cancel == Cancel::Requested && s.protected == 0);
        let then = if cancelled {
            Pending::Unwind(Unwind::Cancel)
        } else {
            then
        };
        self.end_try(s, node, then)
    }

    fn end_try(&mut self, s: &mut Strand, node: NodeId, then: Pending) -> Control {
        match then {
            Pending::Value(value) => {
                self.construct_finished(s, node, End::Ok);
                Control::Value(value)
            }
            Pending::Unwind(unwind) => {
                self.construct_finished(s, node, unwind.end());
                Control::Unwind(unwind)
            }
        }
    }

    /// `throw`: raises a new error, the given error again, or what the enclosing `catch` holds.
    pub(crate) fn throw(&mut self, s: &Strand, node: NodeId, value: Option<Value>) -> Control {
        match value {
            None => match self.scopes.caught(s.cx.scope) {
                Some(error) => Control::Unwind(Unwind::Error(error)),
                None => self.raise(node, ErrorKind::Thrown, "rethrow outside catch"),
            },
            Some(Value::Error(error)) => Control::Unwind(Unwind::Error(error)),
            Some(value) => self.raise(node, ErrorKind::Thrown, render::plain(&value)),
        }
    }

    /// The unwinding for an evaluation that raised.
    pub(crate) fn stopped(&self, stop: Stop, node: NodeId) -> Control {
        match stop {
            Stop::Raise(kind, message, node) => self.raise(node, kind, message),
            // Only reached when content was needed at a place that can't wait; perform() handles all others.
            Stop::Need(_) => self.raise(node, ErrorKind::Type, "content is needed where it can't be read"),
        }
    }
}
