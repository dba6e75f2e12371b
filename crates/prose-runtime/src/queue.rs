//! Which session may start: at most so many at once, and those that share a memory one at a time in spawn order.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use prose_model::EffectId;

/// Everything here takes a time that hardly grows with the number of sessions: a `parallel for` may bring thousands.
#[derive(Debug)]
pub(crate) struct SessionQueue {
    limit: usize,
    /// All that wait, by issue order.
    waiting: BTreeMap<u64, Waiting>,
    orders: HashMap<EffectId, u64>,
    /// Those of `waiting` that may start: without a memory, or the first of a memory that nobody has.
    ready: BTreeMap<u64, EffectId>,
    /// Orders of those that wait for a memory, the first first; memories that nobody waits for have no entry.
    lanes: HashMap<PathBuf, VecDeque<u64>>,
    /// Sessions that run, with the memory that they have.
    active: HashMap<EffectId, Option<PathBuf>>,
    /// Memories of sessions that run.
    taken: HashSet<PathBuf>,
    /// Memories that another process has.
    blocked: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Waiting {
    id: EffectId,
    memory: Option<PathBuf>,
}

impl SessionQueue {
    pub(crate) fn new(limit: usize) -> SessionQueue {
        SessionQueue {
            limit: limit.max(1),
            waiting: BTreeMap::new(),
            orders: HashMap::new(),
            ready: BTreeMap::new(),
            lanes: HashMap::new(),
            active: HashMap::new(),
            taken: HashSet::new(),
            blocked: HashSet::new(),
        }
    }

    /// Takes a session in at its place in issue order, which is its own.
    pub(crate) fn push(&mut self, id: EffectId, order: u64, memory: Option<PathBuf>) {
        self.orders.insert(id.clone(), order);
        match &memory {
            None => {
                self.ready.insert(order, id.clone());
            }
            Some(memory) => {
                let lane = self.lanes.entry(memory.clone()).or_default();
                let at = lane.partition_point(|other| *other < order);
                // One that waits keeps later ones from overtaking it.
                if at == 0
                    && let Some(first) = lane.front()
                {
                    self.ready.remove(first);
                }
                lane.insert(at, order);
            }
        }
        let waiting = Waiting {
            id,
            memory: memory.clone(),
        };
        self.waiting.insert(order, waiting);
        if let Some(memory) = memory {
            self.open_lane(&memory);
        }
    }

    /// Lets the first session of a memory start, if nobody has the memory.
    fn open_lane(&mut self, memory: &PathBuf) {
        if self.taken.contains(memory) || self.blocked.contains(memory) {
            return;
        }
        if let Some(first) = self.lanes.get(memory).and_then(|lane| lane.front())
            && let Some(waiting) = self.waiting.get(first)
        {
            self.ready.insert(*first, waiting.id.clone());
        }
    }

    /// The next session that may start, which counts as running from here on.
    pub(crate) fn next(&mut self) -> Option<EffectId> {
        if self.active.len() >= self.limit {
            return None;
        }
        let (order, id) = self.ready.pop_first()?;
        let Waiting { memory, .. } = self.take(order)?;
        if let Some(memory) = &memory {
            self.taken.insert(memory.clone());
        }
        self.active.insert(id.clone(), memory);
        Some(id)
    }

    fn take(&mut self, order: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&order)?;
        self.orders.remove(&waiting.id);
        self.ready.remove(&order);
        if let Some(memory) = &waiting.memory
            && let Some(lane) = self.lanes.get_mut(memory)
        {
            lane.retain(|other| *other != order);
            if lane.is_empty() {
                self.lanes.remove(memory);
            }
        }
        Some(waiting)
    }

    /// A session is over.
    pub(crate) fn finish(&mut self, id: &EffectId) {
        if let Some(Some(memory)) = self.active.remove(id) {
            self.taken.remove(&memory);
            self.open_lane(&memory);
        }
    }

    /// A session has to wait although it was next: another process has its memory.
    pub(crate) fn block(&mut self, id: &EffectId, order: u64) {
        let Some(memory) = self.active.remove(id) else {
            return;
        };
        if let Some(memory) = &memory {
            self.taken.remove(memory);
            self.blocked.insert(memory.clone());
        }
        self.push(id.clone(), order, memory);
    }

    /// Other processes may have let go.
    pub(crate) fn unblock(&mut self) {
        for memory in std::mem::take(&mut self.blocked) {
            self.open_lane(&memory);
        }
    }

    /// The first session that waits.
    pub(crate) fn first(&self) -> Option<&EffectId> {
        self.waiting.values().next().map(|waiting| &waiting.id)
    }

    /// Whether no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes a waiting session out; false when it does not wait.
    pub(crate) fn remove(&mut self, id: &EffectId) -> bool {
        let Some(waiting) = self.orders.get(id).copied().and_then(|order| self.take(order)) else {
            return false;
        };
        if let Some(memory) = &waiting.memory {
            self.open_lane(memory);
        }
        true
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
