//! Finding the variables of a name without looking at all of them.

use std::cmp::Ordering;
use std::ops::Range;

use crate::Name;
use crate::name::Numbering;

use super::{Def, DefKind, Scope, Scopes};

/// Sorts of variables, in the order in which a frame prefers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// Of constructs.
    Scoped,
    /// The implicit ones among them.
    Implicit,
    /// Of frames.
    Declared,
    /// Assignments.
    Assigned,
}

impl Sort {
    fn of(kind: DefKind) -> Sort {
        match kind {
            DefKind::Assigned => Sort::Assigned,
            DefKind::Implicit => Sort::Implicit,
            kind if kind.is_scoped() => Sort::Scoped,
            _ => Sort::Declared,
        }
    }
}

/// The variables of every name, in three orders. Each name has the same stretch of all three.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NameIndex {
    /// By the numbers of the names, each with where its stretch begins; it ends where the next begins.
    stretches: Box<[(Name, u32)]>,
    /// By scope, then in order.
    by_scope: Box<[u32]>,
    /// By sort and home, then in order.
    by_home: Box<[u32]>,
    /// By frame and sort, then in order.
    by_frame: Box<[u32]>,
}

impl NameIndex {
    pub fn new(scopes: &[Scope], defs: &[Def]) -> NameIndex {
        let vars = || (0u32..).zip(defs).filter(|(_, def)| !def.kind.is_global());
        let mut names = Numbering::new();
        let ids: Vec<u32> = vars().map(|(_, def)| names.meet(def.name)).collect();
        let mut counts = vec![0; names.names().len()];
        for id in &ids {
            counts[*id as usize] += 1;
        }
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        order.sort_unstable_by_key(|it| names.names()[*it as usize].number());
        let mut next = 0;
        // From here on the numbers are where stretches end so far.
        for id in &order {
            next += std::mem::replace(&mut counts[*id as usize], next);
        }
        let stretches = order
            .iter()
            .map(|it| (names.names()[*it as usize], counts[*it as usize]));
        let stretches = stretches.collect();
        let mut in_order = vec![0; ids.len()];
        for ((index, _), id) in vars().zip(&ids) {
            let end = &mut counts[*id as usize];
            in_order[*end as usize] = index;
            *end += 1;
        }
        let mut index = NameIndex {
            by_scope: in_order.clone().into(),
            by_home: in_order.clone().into(),
            by_frame: in_order.into(),
            stretches,
        };
        let home = |def: &Def| scopes[def.scope as usize].home;
        let frame = |def: &Def| scopes[def.scope as usize].frame;
        for at in 0..index.stretches.len() {
            let stretch = index.stretch(at);
            if stretch.len() < 2 {
                continue;
            }
            // Stable sorts: the order of the text stays within equals.
            let def = |it: &u32| &defs[*it as usize];
            index.by_scope[stretch.clone()].sort_by_key(|it| def(it).scope);
            index.by_home[stretch.clone()].sort_by_key(|it| (Sort::of(def(it).kind), home(def(it))));
            index.by_frame[stretch].sort_by_key(|it| (frame(def(it)), Sort::of(def(it).kind)));
        }
        index
    }

    fn stretch(&self, at: usize) -> Range<usize> {
        let end = self
            .stretches
            .get(at + 1)
            .map_or(self.by_scope.len(), |it| it.1 as usize);
        self.stretches[at].1 as usize..end
    }

    pub fn get<'a>(&'a self, scopes: &'a Scopes, name: &Name) -> Option<DefsOfName<'a>> {
        let number = name.number();
        let at = self.stretches.binary_search_by_key(&number, |it| it.0.number());
        let stretch = self.stretch(at.ok()?);
        Some(DefsOfName {
            scopes,
            by_scope: &self.by_scope[stretch.clone()],
            by_home: &self.by_home[stretch.clone()],
            by_frame: &self.by_frame[stretch],
        })
    }
}

/// The variables of one name, by their numbers.
#[derive(Clone, Copy)]
pub(crate) struct DefsOfName<'a> {
    scopes: &'a Scopes,
    by_scope: &'a [u32],
    by_home: &'a [u32],
    by_frame: &'a [u32],
}

impl<'a> DefsOfName<'a> {
    fn run<K: Ord>(&self, list: &'a [u32], key: impl Fn(&Def) -> K, wanted: &K) -> &'a [u32] {
        let compare = |it: &u32| key(self.scopes.def(*it)).cmp(wanted);
        let start = list.partition_point(|it| compare(it) == Ordering::Less);
        let len = list[start..].partition_point(|it| compare(it) == Ordering::Equal);
        &list[start..start + len]
    }

    /// Those that a scope itself declares, in order.
    pub fn in_scope(&self, scope: u32) -> &'a [u32] {
        self.run(self.by_scope, |def| def.scope, &scope)
    }

    /// Those of a sort that can be seen everywhere in this scope and in no wider one, in order.
    pub fn at_home(&self, sort: Sort, home: u32) -> &'a [u32] {
        let key = |def: &Def| (Sort::of(def.kind), self.scopes.scope(def.scope).home);
        self.run(self.by_home, key, &(sort, home))
    }

    /// Those of a sort in a frame, in order.
    pub fn in_frame(&self, frame: u32, sort: Sort) -> &'a [u32] {
        let key = |def: &Def| (self.scopes.frame_of(def.scope), Sort::of(def.kind));
        self.run(self.by_frame, key, &(frame, sort))
    }

    /// The last of a list before a place.
    pub fn before(&self, list: &[u32], seq: u32) -> Option<u32> {
        let count = list.partition_point(|it| self.scopes.def(*it).seq < seq);
        Some(list[count.checked_sub(1)?])
    }

    /// The first of a list from a place on.
    pub fn from(&self, list: &[u32], seq: u32) -> Option<u32> {
        let count = list.partition_point(|it| self.scopes.def(*it).seq < seq);
        list.get(count).copied()
    }
}
