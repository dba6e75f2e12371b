//! The variables of a file by name: what each statement of the top level, each block and each iteration declares.

use crate::Name;
use rustc_hash::{FxBuildHasher, FxHashMap};

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
    /// What is known by each name.
    known: FxHashMap<Name, Known>,
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
        let mut known = FxHashMap::with_capacity_and_hasher(names.len() + names.len() / 8, FxBuildHasher);
        for (name, bounds) in names.iter().zip(starts.windows(2)) {
            let (start, end) = (bounds[0], bounds[1]);
            let stretch = &mut entries[start as usize..end as usize];
            if stretch.len() > 1 {
                // Stable: the order of the text stays.
                stretch.sort_by_key(|it| it.place);
            }
            known.insert(
                *name,
                Known {
                    start,
                    end,
                    global: false,
                },
            );
        }
        for name in globals {
            known.entry(*name).or_insert_with(Known::default).global = true;
        }
        VarTable {
            looks: names.iter().map(|it| Look::of(it)).collect(),
            names: names.iter().copied().zip(starts).collect(),
            entries: entries.into(),
            known,
        }
    }

    /// What is known by a name, if anything is.
    pub fn known(&self, name: &Name) -> Option<Known> {
        self.known.get(name).copied()
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
