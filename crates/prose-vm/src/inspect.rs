//! Read-only views for tests, status displays and debuggers.

use prose_model::{EffectId, Issued, Value, VisibleName};

use crate::api::StackEntry;
use crate::machine::{EntryState, Machine};

impl Machine {
    /// Open frames in start order.
    pub fn call_stack(&self) -> Vec<StackEntry> {
        let frames = self.scopes.frames();
        let parent = |id| {
            let caller = self.scopes.get(id)?.parent?;
            self.execution_id(caller)
        };
        let parents: Vec<_> = frames.iter().map(|(id, _)| parent(*id)).collect();
        frames
            .iter()
            .zip(&parents)
            .filter_map(|((_, frame), parent)| {
                Some(StackEntry {
                    execution_id: frame.execution_id?,
                    kind: frame.kind?,
                    name: frame.name.clone(),
                    depth: frame.depth,
                    parent: *parent,
                    call_site: frame.call_site.clone()?,
                    waiting: parents.contains(&frame.execution_id),
                })
            })
            .collect()
    }

    /// Effects that were issued and neither answered nor cancelled, in issue order.
    pub fn pending(&self) -> Vec<Issued> {
        let pending = self
            .effects
            .values()
            .filter(|entry| entry.state == EntryState::Pending);
        let mut pending: Vec<Issued> = pending
            .filter_map(|entry| entry.issued.as_deref().cloned())
            .collect();
        pending.sort_by_key(|issued| issued.order);
        pending
    }

    /// Names visible where a pending effect was issued, nearest first; none when it is not pending.
    pub fn visible_at(&self, effect: &EffectId) -> Option<Vec<VisibleName>> {
        let entry = self
            .effects
            .get(effect)
            .filter(|entry| entry.state == EntryState::Pending)?;
        let s = self.strands.get(&entry.owner?)?;
        Some(self.scopes.visible(s.cx.scope))
    }

    /// Outputs that the entry program has bound so far.
    pub fn outputs(&self) -> Vec<(String, Value)> {
        let entry = self.instances.first();
        entry
            .map(|entry| entry.outputs.clone().into_iter().collect())
            .unwrap_or_default()
    }
}
