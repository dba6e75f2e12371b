//! What the machine waits for.

use std::collections::{BTreeMap, HashMap};

use prose_model::{EffectId, Issued};

/// Effects without an answer, by issue order and by id. A map that keeps the order of insertion would move all others
/// when one goes, and there may be thousands.
#[derive(Debug, Default)]
pub(crate) struct OpenEffects {
    by_order: BTreeMap<u64, Issued>,
    orders: HashMap<EffectId, u64>,
}

impl OpenEffects {
    pub(crate) fn insert(&mut self, id: EffectId, issued: Issued) {
        self.orders.insert(id, issued.order);
        self.by_order.insert(issued.order, issued);
    }

    pub(crate) fn get(&self, id: &EffectId) -> Option<&Issued> {
        self.by_order.get(self.orders.get(id)?)
    }

    pub(crate) fn contains_key(&self, id: &EffectId) -> bool {
        self.orders.contains_key(id)
    }

    /// Takes one out.
    pub(crate) fn shift_remove(&mut self, id: &EffectId) -> Option<Issued> {
        self.by_order.remove(&self.orders.remove(id)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_order.is_empty()
    }

    /// In issue order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Issued> {
        self.by_order.values()
    }
}
