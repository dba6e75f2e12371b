//! Under which open part of a run something lies, told by its frame and its place.

use std::collections::HashMap;

use prose_model::ExecutionId;

/// The open constructs and frames of a run, each with a key of the caller's.
#[derive(Debug)]
pub struct Nesting<K> {
    frames: HashMap<ExecutionId, Entry<K>>,
    constructs: HashMap<String, Entry<K>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry<K> {
    key: K,
    depth: usize,
}

impl<K> Default for Nesting<K> {
    fn default() -> Self {
        Nesting {
            frames: HashMap::new(),
            constructs: HashMap::new(),
        }
    }
}

impl<K: Copy> Nesting<K> {
    /// What is around a place, with its depth: the nearest open construct, or the frame when no construct of that
    /// frame is around it. Many frames may share the place that they were called from, so that the place alone can't
    /// tell them apart; long places are shortened, so that they don't always begin with those around them.
    pub fn around(&self, frame: Option<ExecutionId>, path: &str) -> Option<(K, usize)> {
        let construct = self
            .constructs
            .get(path)
            .or_else(|| ends(path).rev().find_map(|end| self.constructs.get(&path[..end])));
        let frame = frame.and_then(|frame| self.frames.get(&frame));
        let nearest = match (construct, frame) {
            (Some(construct), Some(frame)) if frame.depth > construct.depth => Some(frame),
            (Some(construct), _) => Some(construct),
            (None, frame) => frame,
        };
        nearest.map(|entry| (entry.key, entry.depth))
    }

    /// A construct opens: its own place, and that of its statement, which the frames of a pipeline's stage name.
    pub fn open_construct(&mut self, path: &str, statement: &str, key: K, depth: usize) {
        self.constructs.insert(path.to_owned(), Entry { key, depth });
        if statement != path {
            self.constructs.insert(statement.to_owned(), Entry { key, depth });
        }
    }

    /// A frame opens.
    pub fn open_frame(&mut self, frame: ExecutionId, key: K, depth: usize) {
        self.frames.insert(frame, Entry { key, depth });
    }

    /// A construct is over.
    pub fn close_construct(&mut self, path: &str)
    where
        K: PartialEq,
    {
        let Some(closed) = self.constructs.remove(path) else {
            return;
        };
        // A stage's place is its statement's with the number of the stage.
        if let Some((statement, _)) = path.rsplit_once('|')
            && self
                .constructs
                .get(statement)
                .is_some_and(|entry| entry.key == closed.key)
        {
            self.constructs.remove(statement);
        }
    }

    /// A frame is over.
    pub fn close_frame(&mut self, frame: ExecutionId) {
        self.frames.remove(&frame);
    }

    /// Gives everything that is open another key; what gets none is let go of.
    pub fn renumber(&mut self, key: impl Fn(K) -> Option<K>) {
        let renumbered = |entry: &mut Entry<K>| match key(entry.key) {
            Some(key) => {
                entry.key = key;
                true
            }
            None => false,
        };
        self.frames.retain(|_, entry| renumbered(entry));
        self.constructs.retain(|_, entry| renumbered(entry));
    }

    /// Nothing is open any more.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.constructs.clear();
    }
}

/// Where the places end that a place can lie in; `main/1` is no part of `main/10`.
fn ends(path: &str) -> impl DoubleEndedIterator<Item = usize> {
    path.match_indices(['.', '[', '>', '|', '~', ':', '/'])
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_tell_apart_what_shares_a_place() {
        let mut nesting = Nesting::default();
        assert_eq!(nesting.around(None, "main/1.0"), None);
        nesting.open_construct("main/1", "main/1", "parallel", 0);
        assert_eq!(nesting.around(None, "main/1"), Some(("parallel", 0)));
        assert_eq!(nesting.around(None, "main/10.0"), None, "another statement");
        nesting.open_frame(1, "first", 1);
        nesting.open_frame(2, "second", 1);
        let at = |nesting: &Nesting<_>, frame, path| nesting.around(frame, path).map(|(key, _)| key);
        assert_eq!(at(&nesting, Some(1), "main/1[0]>main/1.1.0"), Some("first"));
        assert_eq!(at(&nesting, Some(2), "main/1[1]>main/1.1.0"), Some("second"));
        nesting.open_construct("main/1[1]>main/1.1.1", "main/1[1]>main/1.1.1", "loop", 2);
        assert_eq!(
            at(&nesting, Some(2), "main/1[1]>main/1.1.1[0]>main/1.1.1.0"),
            Some("loop")
        );
        assert_eq!(
            at(&nesting, Some(1), "~0011>x"),
            Some("first"),
            "a shortened place"
        );
        nesting.close_frame(1);
        nesting.open_construct("main/4.0|0", "main/4.0", "map", 0);
        assert_eq!(at(&nesting, None, "main/4.0"), Some("map"));
        nesting.close_construct("main/4.0|0");
        assert_eq!(at(&nesting, None, "main/4.0"), None);
        assert_eq!(at(&nesting, Some(1), "~0011>x"), None);
    }
}
