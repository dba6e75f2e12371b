//! Cancelling: losers of a join, the whole run, and what outlives a deadline.
//!
//! A cancelled strand's effects are stopped by a cancel scope. Only when these have stopped does it unwind and run its
//! `finally` bodies, so that clean-up never races with what it cleans up after. A strand inside `finally` is protected:
//! it goes on and unwinds when it comes out, unless the deadline kills it.

use prose_model::{CancelRequest, Effect, EffectId};

use crate::code::{COp, NodeId};
use crate::machine::{CancelScope, Machine};
use crate::strand::{Cancel, ChildState, Control, Cx, Strand, StrandId, TryPhase, Unwind, What};

/// What a walk over strands has found.
#[derive(Default)]
struct Found {
    /// Strands that wait for nothing any more and are to unwind.
    leaves: Vec<StrandId>,
    effects: Vec<EffectId>,
    /// Whether a `finally` body runs or will.
    finally: bool,
}

impl Machine {
    /// Cancels strands with all below them. Gives the cancel scope to wait for; without one they unwind already.
    pub(crate) fn cancel_strands(
        &mut self,
        roots: &[StrandId],
        join: Option<StrandId>,
        cx: &Cx,
        node: NodeId,
        id: EffectId,
    ) -> Option<EffectId> {
        let found = self.mark(roots, Cancel::Requested);
        self.stop(found, roots, join, cx, node, id)
    }

    /// Marks strands as cancelled or killed and finds what has to stop.
    fn mark(&mut self, roots: &[StrandId], how: Cancel) -> Found {
        let code = self.code.clone();
        let mut found = Found::default();
        let mut todo: Vec<StrandId> = roots.iter().rev().copied().collect();
        while let Some(id) = todo.pop() {
            let Some(s) = self.strands.get_mut(&id) else {
                continue;
            };
            if how == Cancel::Requested {
                found.finally |= s.protected > 0 || s.stack.iter().any(|kont| has_finally(&code, &kont.what));
                // One that is cancelled already is left to its own cancel scope.
                if s.cancel != Cancel::No {
                    continue;
                }
            }
            s.cancel = how;
            if s.protected > 0 && how == Cancel::Requested {
                continue;
            }
            match &s.control {
                Control::Effect(effect) => {
                    found.effects.push(effect.clone());
                    found.leaves.push(id);
                }
                Control::Join => {
                    let Some(What::Join(join)) = s.stack.last_mut().map(|kont| &mut kont.what) else {
                        continue;
                    };
                    for child in &mut join.children {
                        if matches!(child.state, ChildState::Waiting) {
                            child.state = ChildState::Gone;
                            join.lost += 1;
                        }
                    }
                    join.next = join.children.len();
                    todo.extend(join.children.iter().rev().filter_map(|child| child.strand));
                }
                Control::Stopping(_) => {}
                Control::Eval(_) | Control::Value(_) | Control::Unwind(_) => {
                    found.leaves.push(id);
                    self.unqueue(id);
                }
            }
        }
        found
    }

    /// Stops the effects found, or lets the strands unwind when there is nothing to stop.
    fn stop(
        &mut self,
        found: Found,
        roots: &[StrandId],
        join: Option<StrandId>,
        cx: &Cx,
        node: NodeId,
        id: EffectId,
    ) -> Option<EffectId> {
        let Found {
            leaves,
            mut effects,
            finally,
        } = found;
        if effects.is_empty() && !finally {
            for id in leaves {
                self.release(id);
            }
            return None;
        }
        effects.sort_by_key(|id| self.effects.get(id).map(|entry| entry.order));
        for effect in &effects {
            self.drop_effect(effect);
        }
        let effect = Effect::CancelScope(CancelRequest { effects, finally });
        let id = self.issue(None, cx, node, id, effect);
        for leaf in leaves {
            if let Some(s) = self.strands.get_mut(&leaf) {
                s.control = Control::Stopping(id.clone());
            }
        }
        // A scope is needed until it is answered and all that it cancels is gone: till then its deadline may pass.
        let (strands, pending) = (&self.strands, &self.effects);
        self.cancel_scopes.retain(|id, scope| {
            pending.contains_key(id) || scope.roots.iter().any(|root| strands.contains_key(root))
        });
        self.cancel_scopes.insert(
            id.clone(),
            CancelScope {
                roots: roots.to_vec(),
                join,
            },
        );
        Some(id)
    }

    /// Lets a cancelled strand unwind.
    fn release(&mut self, id: StrandId) {
        if let Some(mut s) = self.strands.remove(&id) {
            s.control = Control::Unwind(Unwind::Cancel);
            self.wake(s);
        }
    }

    /// A cancel scope was answered: its effects have stopped.
    pub(crate) fn scope_stopped(&mut self, scope: &EffectId) {
        let stopped = |s: &Strand| matches!(&s.control, Control::Stopping(id) if id == scope);
        let ids: Vec<StrandId> = self
            .strands
            .values()
            .filter(|s| stopped(s))
            .map(|s| s.id)
            .collect();
        for id in ids {
            self.release(id);
        }
        let join = self.cancel_scopes.get(scope).and_then(|scope| scope.join);
        if let Some((s, mut join)) = join.and_then(|id| self.take_join(id)) {
            if join.stopping.as_ref() == Some(scope) {
                join.stopping = None;
            }
            self.continue_join(s, join);
        }
    }

    /// The user cancels.
    pub(crate) fn cancel_run(&mut self) {
        let Some((&root, s)) = self.strands.first_key_value() else {
            return;
        };
        if self.cancelled {
            return;
        }
        self.cancelled = true;
        let cx = s.cx.clone();
        self.cancel_strands(&[root], None, &cx, self.entry_node(), "cancel".into());
    }

    /// A node of the entry program, for what belongs to the run as a whole.
    fn entry_node(&self) -> NodeId {
        let entry = self
            .instances
            .first()
            .and_then(|entry| self.code.programs.get(entry.program));
        entry
            .and_then(|program| program.leading.first().or(program.body.first()))
            .copied()
            .unwrap_or(0)
    }

    /// The time for `finally` bodies is over.
    pub(crate) fn deadline_passed(&mut self, scope: &EffectId) {
        let Some(roots) = self.cancel_scopes.get(scope).map(|scope| scope.roots.clone()) else {
            return;
        };
        let found = self.mark(&roots, Cancel::Killed);
        if found.leaves.is_empty() {
            return;
        }
        let Some(cx) = self.strands.get(&found.leaves[0]).map(|s| s.cx.clone()) else {
            return;
        };
        let node = self.entry_node();
        self.stop(found, &roots, None, &cx, node, format!("{scope}:kill").into());
    }
}

/// Whether leaving this continuation runs a `finally` body.
fn has_finally(code: &crate::code::Code, what: &What) -> bool {
    match what {
        What::Try {
            node,
            phase: TryPhase::Body | TryPhase::Catch { .. },
        } => {
            matches!(&code.node(*node).op, COp::Try { finally: Some(_), .. })
        }
        _ => false,
    }
}
