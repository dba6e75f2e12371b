//! The variables of a file by name: what each statement of the top level, each block and each iteration declares.

use crate::Name;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct VarTable {
    /// For each name its stretch of the entries.
    names: IndexMap<Name, (u32, u32), FxBuildHasher>,
    /// Those of a name stand together, by place and then in the order of the text.
    entries: Box<[VarEntry]>,
    /// What each name looks like, in their order.
    looks: Box<[Look]>,
}

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
    /// Takes the variables in the order of the text.
    pub fn new(vars: Vec<(&Name, VarEntry)>) -> VarTable {
        // Counts first, so that the variables of a name come to stand together.
        let mut names: IndexMap<Name, (u32, u32), FxBuildHasher> =
            IndexMap::with_capacity_and_hasher(vars.len() / 2, FxBuildHasher);
        let mut ids = Vec::with_capacity(vars.len());
        let mut counts: Vec<u32> = Vec::new();
        for (name, _) in &vars {
            let id = match names.get(*name) {
                Some((id, _)) => *id,
                None => {
                    let id = counts.len() as u32;
                    counts.push(0);
                    names.insert(*(*name), (id, 0));
                    id
                }
            };
            counts[id as usize] += 1;
            ids.push(id);
        }
        let mut next = 0;
        let mut ends: Vec<u32> = counts
            .iter()
            .map(|count| {
                let start = next;
                next += count;
                start
            })
            .collect();
        let mut entries: Vec<VarEntry> = vars.iter().map(|it| it.1).collect();
        for ((_, entry), id) in vars.iter().zip(ids) {
            let at = &mut ends[id as usize];
            entries[*at as usize] = *entry;
            *at += 1;
        }
        for (start, end) in names.values_mut() {
            let id = *start as usize;
            (*start, *end) = (ends[id] - counts[id], ends[id]);
            let stretch = &mut entries[*start as usize..*end as usize];
            if stretch.len() > 1 {
                // Stable: the order of the text stays.
                stretch.sort_by_key(|it| it.place);
            }
        }
        names.shrink_to_fit();
        VarTable {
            looks: names.keys().map(|it| Look::of(it)).collect(),
            names,
            entries: entries.into(),
        }
    }

    /// The variables of a name, if there are any.
    pub fn get(&self, name: &Name) -> Option<Vars<'_>> {
        let (start, end) = *self.names.get(name)?;
        Some(Vars {
            entries: &self.entries[start as usize..end as usize],
        })
    }

    /// Every name with its variables, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Vars<'_>)> {
        self.names.iter().map(|(name, (start, end))| {
            let entries = &self.entries[*start as usize..*end as usize];
            (name, Vars { entries })
        })
    }

    /// Whether anything is named so.
    pub fn contains_key(&self, name: &Name) -> bool {
        self.names.contains_key(name)
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// All names, in the order of their first variable.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// Names that so many insertions, deletions, replacements and swaps may make of a word, and some others.
    pub fn like(&self, word: &str, edits: u32) -> impl Iterator<Item = &Name> {
        let look = Look::of(word);
        let names = self.looks.iter().zip(self.names.keys());
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
