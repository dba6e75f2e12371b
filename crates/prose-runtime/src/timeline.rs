//! What is ready to be delivered to the machine, and when: at once in real time, by due time in virtual time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use prose_model::EffectId;

use crate::perform::TaskResult;

/// Something that the machine is told next.
#[derive(Debug)]
pub(crate) enum Next {
    /// An effect's answer.
    Answer(EffectId, TaskResult),
    /// The `finally` bodies of a cancel scope had their time.
    Deadline(EffectId),
}

impl Next {
    fn id(&self) -> &EffectId {
        match self {
            Next::Answer(id, _) | Next::Deadline(id) => id,
        }
    }
}

/// The order of delivery.
#[derive(Debug)]
pub(crate) enum Timeline {
    /// Time passes by itself; what is ready goes in order of arrival.
    Real(VecDeque<Next>),
    /// Nothing waits: the earliest is next, and time jumps there. Ties go by issue order.
    Virtual {
        /// Milliseconds since the run began.
        now: u64,
        /// By due time, issue order, arrival.
        due: BTreeMap<(u64, u64, u64), Next>,
        /// Where in `due` an effect's are.
        places: HashMap<EffectId, Vec<(u64, u64, u64)>>,
        /// Counts arrivals.
        arrivals: u64,
    },
}

impl Timeline {
    pub(crate) fn new(is_virtual: bool) -> Timeline {
        if is_virtual {
            Timeline::Virtual {
                now: 0,
                due: BTreeMap::new(),
                places: HashMap::new(),
                arrivals: 0,
            }
        } else {
            Timeline::Real(VecDeque::new())
        }
    }

    /// Virtual milliseconds; none in real time.
    pub(crate) fn now(&self) -> Option<u64> {
        match self {
            Timeline::Real(_) => None,
            Timeline::Virtual { now, .. } => Some(*now),
        }
    }

    /// Moves virtual time on, as a replay does.
    pub(crate) fn advance_to(&mut self, at: u64) {
        if let Timeline::Virtual { now, .. } = self {
            *now = at.max(*now);
        }
    }

    /// Ready now.
    pub(crate) fn push_now(&mut self, order: u64, next: Next) {
        self.push_at(self.now().unwrap_or(0), order, next);
    }

    /// Ready at a virtual time; in real time at once.
    pub(crate) fn push_at(&mut self, at: u64, order: u64, next: Next) {
        match self {
            Timeline::Real(queue) => queue.push_back(next),
            Timeline::Virtual {
                due,
                places,
                arrivals,
                ..
            } => {
                *arrivals += 1;
                let place = (at, order, *arrivals);
                places.entry(next.id().clone()).or_default().push(place);
                due.insert(place, next);
            }
        }
    }

    /// The next to be delivered; virtual time moves there.
    pub(crate) fn pop(&mut self) -> Option<Next> {
        match self {
            Timeline::Real(queue) => queue.pop_front(),
            Timeline::Virtual { now, due, places, .. } => {
                let (place, next) = due.pop_first()?;
                *now = place.0.max(*now);
                if let Some(others) = places.get_mut(next.id()) {
                    others.retain(|other| *other != place);
                    if others.is_empty() {
                        places.remove(next.id());
                    }
                }
                Some(next)
            }
        }
    }

    /// The next that has arrived with what was taken last, if it is an answer. In virtual time nothing arrives together:
    /// what one answer brings about may be due before the next.
    pub(crate) fn pop_with(&mut self) -> Option<Next> {
        match self {
            Timeline::Real(queue) if matches!(queue.front(), Some(Next::Answer(..))) => queue.pop_front(),
            Timeline::Real(_) | Timeline::Virtual { .. } => None,
        }
    }

    /// Takes out what was ready for an effect that is no longer wanted.
    pub(crate) fn remove(&mut self, id: &EffectId) {
        match self {
            Timeline::Real(queue) => queue.retain(|next| next.id() != id),
            Timeline::Virtual { due, places, .. } => {
                for place in places.remove(id).unwrap_or_default() {
                    due.remove(&place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_goes_by_due_time_then_by_issue_order() {
        let mut timeline = Timeline::new(true);
        let next = |id: &str| Next::Deadline(id.into());
        timeline.push_at(50, 0, next("late"));
        timeline.push_at(10, 2, next("second"));
        timeline.push_at(10, 1, next("first"));
        timeline.push_at(20, 3, next("gone"));
        timeline.remove(&"gone".into());
        let mut order = Vec::new();
        while let Some(next) = timeline.pop() {
            order.push(format!("{}@{}", next.id(), timeline.now().unwrap()));
            if order.len() == 1 {
                timeline.push_now(9, Next::Deadline("now".into()));
            }
        }
        assert_eq!(order, ["first@10", "second@10", "now@10", "late@50"]);
    }
}
