//! The variables of a file by name: what each statement of the top level, each block and each iteration declares.

use crate::Name;
use rustc_hash::FxHashMap;

use crate::scopes::{DefKind, Valued};
use crate::symbols::Site;

/// Where a variable is declared, as far as other statements care. The order is that of the lists in [`Vars`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum VarPlace {
    /// At the top level, where it can be seen after it ran.
    Declared,
    /// Likewise, an assignment.
    Assigned,
    /// In a loop or pipeline body of the top level.
    Hidden,
    /// Likewise, an assignment.
    HiddenAssigned,
    /// A variable of a construct of the top level.
    HiddenScoped,
    /// Likewise, one that nobody wrote.
    HiddenImplicit,
    /// In a block, an iteration or an agent.
    Elsewhere,
    /// Likewise, one that nobody wrote.
    ElsewhereImplicit,
    /// Likewise, an assignment.
    ElsewhereAssigned,
}

/// A variable with its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VarEntry {
    pub site: Site,
    /// Position of its chunk among those of the file.
    pub at: u32,
    pub kind: DefKind,
    pub place: VarPlace,
    /// Declared by a statement of the top level itself, not in a body of it.
    pub direct: bool,
    /// Whether what it is bound to has another use than its name.
    pub valued: Valued,
    /// Whether blocks may be called while it is in sight.
    pub calls: bool,
}

impl VarEntry {
    /// Orders the variables of one file as they are evaluated.
    pub fn order(&self) -> (u32, u32) {
        (self.at, self.site.def)
    }
}

/// The last of a list that is in an earlier chunk than the one at a position.
pub(crate) fn last_before(list: &[VarEntry], at: u32) -> Option<&VarEntry> {
    let count = list.partition_point(|it| it.at < at);
    Some(&list[count.checked_sub(1)?])
}

/// The first of a list that is in a later chunk than the one at a position.
pub(crate) fn first_after(list: &[VarEntry], at: u32) -> Option<&VarEntry> {
    list.get(list.partition_point(|it| it.at <= at))
}

/// All variables of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct VarTable {
    /// The names of variables, in the order of their first one, each with where its stretch of the entries begins.
    names: Box<[(Name, u32)]>,
    /// Those of a name stand together, by place and then in the order of the text.
    entries: Box<[VarEntry]>,
    /// What each name looks like, in their order.
    looks: Box<[Look]>,
    /// Where a name stands among `names`.
    places: Places,
}

/// Where names stand in a list, and which are also names of agents, blocks or imports.
#[derive(Debug, Clone, Default)]
struct Places {
    /// The number of the first name in `near`.
    first: u32,
    /// For each name from there on its place, or 0. Names of one file were mostly met together, so that most of these are used.
    near: Box<[Place]>,
    /// Likewise, for names that were met long before or after the others.
    far: FxHashMap<Name, Place>,
}

/// One more than a place in a list, 0 for a name that has none, twice; the last bit says that an agent, block or import has it.
type Place = u32;

impl Places {
    fn new(names: &[Name]) -> Places {
        // The stretch of numbers has to be worth its room: it begins and ends with those of which most names are near.
        let mut numbers: Vec<u32> = names.iter().map(|it| it.number()).collect();
        let (mut first, mut len) = (0, 0);
        if !numbers.is_empty() {
            let most = numbers.len() * 4 + 64;
            let (low, high) = bounds(&numbers);
            (first, len) = (low, (high - low) as usize + 1);
            if len > most {
                let middle = numbers.len() / 2;
                let middle = *numbers.select_nth_unstable(middle).1;
                first = middle.saturating_sub(most as u32 / 2);
                len = most;
            }
        }
        let mut out = Places {
            first,
            near: vec![0; len].into(),
            far: FxHashMap::default(),
        };
        for (place, name) in (1u32..).zip(names) {
            *out.at(*name) = place << 1;
        }
        out
    }

    fn at(&mut self, name: Name) -> &mut Place {
        let near = name.number().wrapping_sub(self.first) as usize;
        match self.near.get_mut(near) {
            Some(it) => it,
            None => self.far.entry(name).or_default(),
        }
    }

    fn get(&self, name: Name) -> Place {
        let near = name.number().wrapping_sub(self.first) as usize;
        match self.near.get(near) {
            Some(it) => *it,
            None => self.far.get(&name).copied().unwrap_or_default(),
        }
    }
}

/// The least and the greatest.
fn bounds(numbers: &[u32]) -> (u32, u32) {
    let all = numbers.iter();
    all.fold((u32::MAX, 0), |(low, high), it| (low.min(*it), high.max(*it)))
}

/// What is known by a name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    /// The stretch of its entries, empty if no variable has it.
    start: u32,
    end: u32,
    /// Whether an agent, block or import has it.
    pub global: bool,
}

impl PartialEq for VarTable {
    fn eq(&self, other: &Self) -> bool {
        // Everything else follows from these, and from the globals, which are compared elsewhere.
        self.names == other.names && self.entries == other.entries
    }
}
impl Eq for VarTable {}

/// The length of a word and which letters it has (by five bits of each), to see fast that two words differ much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    letters: u32,
    len: u16,
    ascii: bool,
}

impl Look {
    fn of(word: &str) -> Look {
        Look {
            letters: word.bytes().fold(0, |letters, it| letters | 1 << (it & 31)),
            len: u16::try_from(word.len()).unwrap_or(u16::MAX),
            ascii: word.is_ascii(),
        }
    }

    /// Whether so many edits, each of which changes one character, may turn one word into the other.
    fn may_become(self, other: Look, edits: u32) -> bool {
        if !(self.ascii && other.ascii) {
            return true;
        }
        let letters = (self.letters ^ other.letters).count_ones();
        letters <= 2 * edits && u32::from(self.len.abs_diff(other.len)) <= edits
    }
}

impl VarTable {
    /// Takes the variables in the order of the text, each with the number of its name among `names`, and the names of what is
    /// no variable.
    pub fn new<'a>(
        names: &[Name],
        vars: &[(u32, VarEntry)],
        globals: impl Iterator<Item = &'a Name>,
    ) -> VarTable {
        // Counts first, so that the variables of a name come to stand together.
        let mut starts = vec![0; names.len() + 1];
        for (id, _) in vars {
            starts[*id as usize + 1] += 1;
        }
        for id in 0..names.len() {
            starts[id + 1] += starts[id];
        }
        let mut ends = starts.clone();
        // Any will do; all are overwritten.
        let mut entries: Vec<VarEntry> = vars.iter().map(|it| it.1).collect();
        for (id, entry) in vars {
            let at = &mut ends[*id as usize];
            entries[*at as usize] = *entry;
            *at += 1;
        }
        for bounds in starts.windows(2) {
            let stretch = &mut entries[bounds[0] as usize..bounds[1] as usize];
            if stretch.len() > 1 {
                // Stable: the order of the text stays.
                stretch.sort_by_key(|it| it.place);
            }
        }
        let mut places = Places::new(names);
        for name in globals {
            *places.at(*name) |= 1;
        }
        VarTable {
            looks: names.iter().map(|it| Look::of(it)).collect(),
            names: names.iter().copied().zip(starts).collect(),
            entries: entries.into(),
            places,
        }
    }

    /// What is known by a name, if anything is.
    pub fn known(&self, name: &Name) -> Option<Known> {
        let place = self.places.get(*name);
        let global = place & 1 != 0;
        let Some(index) = (place >> 1).checked_sub(1) else {
            return global.then_some(Known {
                start: 0,
                end: 0,
                global,
            });
        };
        let start = self.names.get(index as usize)?.1;
        let end = self.names.get(index as usize + 1).map(|it| it.1);
        Some(Known {
            start,
            end: end.unwrap_or(self.entries.len() as u32),
            global,
        })
    }

    /// The variables of a name that is known, if there are any.
    pub fn of(&self, known: Known) -> Option<Vars<'_>> {
        (known.start < known.end).then(|| Vars {
            entries: &self.entries[known.start as usize..known.end as usize],
        })
    }

    /// The variables of a name, if there are any.
    pub fn get(&self, name: &Name) -> Option<Vars<'_>> {
        self.of(self.known(name)?)
    }

    /// Every name with its variables, in the order of their first one.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Vars<'_>)> {
        let ends = self.names.iter().skip(1).map(|it| it.1);
        let ends = ends.chain([self.entries.len() as u32]);
        self.names.iter().zip(ends).map(|((name, start), end)| {
            let entries = &self.entries[*start as usize..end as usize];
            (name, Vars { entries })
        })
    }

    /// Whether any variable is named so.
    pub fn contains_key(&self, name: &Name) -> bool {
        self.get(name).is_some()
    }

    /// All names, in the order of their first variable.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.names.iter().map(|it| &it.0)
    }

    /// Names that so many insertions, deletions, replacements and swaps may make of a word, and some others.
    pub fn like(&self, word: &str, edits: u32) -> impl Iterator<Item = &Name> {
        let look = Look::of(word);
        let names = self.looks.iter().zip(self.keys());
        names
            .filter(move |(it, _)| look.may_become(**it, edits))
            .map(|(_, name)| name)
    }
}

/// All variables of one name. Each list is in the order of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vars<'a> {
    entries: &'a [VarEntry],
}

impl<'a> Vars<'a> {
    /// Variables of one name, sorted by place and then in the order of the text.
    pub fn of(entries: &'a [VarEntry]) -> Vars<'a> {
        Vars { entries }
    }

    /// All of them, by place.
    pub fn all(self) -> &'a [VarEntry] {
        self.entries
    }

    /// The list of one place.
    pub fn at(self, place: VarPlace) -> &'a [VarEntry] {
        let start = self.entries.partition_point(|it| it.place < place);
        let len = self.entries[start..].partition_point(|it| it.place == place);
        &self.entries[start..start + len]
    }

    /// Declarations of the top level that can be seen after they ran.
    pub fn declared(self) -> &'a [VarEntry] {
        self.at(VarPlace::Declared)
    }

    /// Whether any is in a block, iteration or agent.
    pub fn any_elsewhere(self) -> bool {
        self.entries
            .last()
            .is_some_and(|it| it.place >= VarPlace::Elsewhere)
    }

    /// Whether a variable of the top level is declared or assigned at this place: chunk by its position, definition.
    pub fn has_root(self, key: (u32, u32)) -> bool {
        let root = self.entries.partition_point(|it| it.place < VarPlace::Elsewhere);
        let mut rest = &self.entries[..root];
        while let Some(first) = rest.first() {
            let len = rest.partition_point(|it| it.place == first.place);
            if rest[..len].binary_search_by_key(&key, VarEntry::order).is_ok() {
                return true;
            }
            rest = &rest[len..];
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_places_however_far_apart_they_were_met() {
        let name = |it: usize| Name::new(&format!("place_{it}"));
        let all: Vec<Name> = (0..5000).map(name).collect();
        for step in [1, 3, 50, 2499, 4999] {
            for reversed in [false, true] {
                let mut names: Vec<Name> = all.iter().copied().step_by(step).collect();
                if reversed {
                    names.reverse();
                }
                let mut places = Places::new(&names);
                assert!(places.near.len() <= names.len() * 4 + 64);
                *places.at(name(1)) |= 1;
                for it in &all {
                    let place = names.iter().position(|other| other == it).map_or(0, |it| it + 1);
                    let global = u32::from(*it == name(1));
                    assert_eq!(places.get(*it), (place as u32) << 1 | global, "{it} by {step}");
                }
            }
        }
        assert_eq!(Places::new(&[]).get(name(0)), 0);
        assert_eq!(Places::default().get(name(0)), 0);
    }
}
