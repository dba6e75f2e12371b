//! Which session may start: at most so many at once, and those that share a memory one at a time in spawn order.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use prose_model::EffectId;

#[derive(Debug)]
pub(crate) struct SessionQueue {
    limit: usize,
    waiting: Vec<Waiting>,
    /// Sessions that run, with the memory that they have.
    active: HashMap<EffectId, Option<PathBuf>>,
    /// Sessions whose memory another process has.
    blocked: HashSet<EffectId>,
}

#[derive(Debug)]
struct Waiting {
    id: EffectId,
    order: u64,
    memory: Option<PathBuf>,
}

impl SessionQueue {
    pub(crate) fn new(limit: usize) -> SessionQueue {
        SessionQueue {
            limit: limit.max(1),
            waiting: Vec::new(),
            active: HashMap::new(),
            blocked: HashSet::new(),
        }
    }

    /// Takes a session in at its place in issue order.
    pub(crate) fn push(&mut self, id: EffectId, order: u64, memory: Option<PathBuf>) {
        let at = self.waiting.partition_point(|waiting| waiting.order <= order);
        self.waiting.insert(at, Waiting { id, order, memory });
    }

    /// The next session that may start, which counts as running from here on.
    pub(crate) fn next(&mut self) -> Option<EffectId> {
        if self.active.len() >= self.limit {
            return None;
        }
        let mut taken: HashSet<&PathBuf> = self.active.values().flatten().collect();
        let at = self.waiting.iter().position(|waiting| match &waiting.memory {
            // One that waits keeps later ones from overtaking it.
            Some(memory) => taken.insert(memory) && !self.blocked.contains(&waiting.id),
            None => true,
        })?;
        let Waiting { id, memory, .. } = self.waiting.remove(at);
        self.active.insert(id.clone(), memory);
        Some(id)
    }

    /// A session is over.
    pub(crate) fn finish(&mut self, id: &EffectId) {
        self.active.remove(id);
    }

    /// A session has to wait although it was next: another process has its memory.
    pub(crate) fn block(&mut self, id: &EffectId, order: u64) {
        if let Some(memory) = self.active.remove(id) {
            self.blocked.insert(id.clone());
            self.push(id.clone(), order, memory);
        }
    }

    /// Other processes may have let go.
    pub(crate) fn unblock(&mut self) {
        self.blocked.clear();
    }

    /// The first session that waits.
    pub(crate) fn first(&self) -> Option<&EffectId> {
        self.waiting.first().map(|waiting| &waiting.id)
    }

    /// Whether no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a waiting session out; false when it does not wait.
    pub(crate) fn remove(&mut self, id: &EffectId) -> bool {
        self.blocked.remove(id);
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.id != *id);
        before != self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut SessionQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.next())
            .map(|id| id.to_string())
            .collect()
    }

    #[test]
    fn sessions_of_one_memory_go_one_by_one_in_order() {
        let mut queue = SessionQueue::new(3);
        let memory = || Some(PathBuf::from("m"));
        queue.push("b".into(), 1, memory());
        queue.push("a".into(), 0, memory());
        queue.push("c".into(), 2, None);
        queue.push("d".into(), 3, memory());
        queue.push("e".into(), 4, None);
        queue.push("f".into(), 5, None);
        assert_eq!(drain(&mut queue), ["a", "c", "e"]);
        queue.finish(&"c".into());
        assert_eq!(drain(&mut queue), ["f"]);
        queue.finish(&"a".into());
        assert_eq!(drain(&mut queue), ["b"]);
        assert!(queue.remove(&"d".into()) && !queue.remove(&"d".into()));
    }

    #[test]
    fn a_blocked_session_keeps_its_place() {
        let mut queue = SessionQueue::new(2);
        queue.push("a".into(), 0, Some("m".into()));
        queue.push("b".into(), 1, Some("m".into()));
        queue.push("c".into(), 2, None);
        assert_eq!(queue.next(), Some("a".into()));
        queue.block(&"a".into(), 0);
        assert_eq!(drain(&mut queue), ["c"]);
        queue.unblock();
        assert_eq!(drain(&mut queue), ["a"]);
    }
}
