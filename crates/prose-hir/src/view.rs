//! What a chunk sees of the rest of its file: what its own names mean elsewhere, and nothing else, so that its checks stay
//! true while other names come and go.
//!
//! Two things would change with every statement that is added: positions of chunks, and numbers of definitions in a chunk.
//! A view holds only what order the variables of one name have, counted from the chunk outwards, and says of a definition in
//! another chunk how many of its name come before it there.

use std::cell::RefCell;
use std::sync::Arc;

use crate::Name;

use crate::scopes::{DefKind, Valued};
use crate::symbols::{AgentEntry, BlockEntry, Clash, ImportEntry, ProgramScope, Site};
use crate::vars::{VarEntry, VarPlace, Vars};
use crate::{Chunk, Db, SourceFile, queries};

/// What names mean outside the chunk that uses them.
pub(crate) trait Names {
    fn agent(&self, name: &Name) -> Option<&AgentEntry>;
    fn block(&self, name: &Name) -> Option<&BlockEntry>;
    fn import(&self, name: &Name) -> Option<&ImportEntry>;
    /// The variables of a name, those of the chunk itself among them.
    fn vars(&self, name: &Name) -> Option<Vars<'_>>;
    /// Whether a block of a used file has a variable of this name.
    fn is_foreign(&self, name: &Name) -> bool;
    /// Whether the block of this name may call itself.
    fn is_recursive(&self, name: &Name) -> bool;
    /// Whether a definition is a variable of the top level.
    fn has_root(&self, name: &Name, site: Site) -> bool;

    /// Whether anything that has a value has this name: a variable of any kind, anywhere, or an agent.
    fn has_value(&self, name: &Name) -> bool {
        self.vars(name).is_some() || self.is_foreign(name) || self.agent(name).is_some()
    }

    /// Whether a word has any meaning.
    fn is_taken(&self, word: &str) -> bool {
        Name::find(word)
            .is_some_and(|it| self.has_value(&it) || self.block(&it).is_some() || self.import(&it).is_some())
    }
}

impl Names for ProgramScope {
    fn agent(&self, name: &Name) -> Option<&AgentEntry> {
        self.own.agents.get(name).or_else(|| self.agents.get(name))
    }
    fn block(&self, name: &Name) -> Option<&BlockEntry> {
        self.own.blocks.get(name).or_else(|| self.blocks.get(name))
    }
    fn import(&self, name: &Name) -> Option<&ImportEntry> {
        self.own.imports.get(name)
    }
    fn vars(&self, name: &Name) -> Option<Vars<'_>> {
        self.own.vars.get(name)
    }
    fn is_foreign(&self, name: &Name) -> bool {
        self.foreign.contains(name)
    }
    fn is_recursive(&self, name: &Name) -> bool {
        self.own.recursive.contains(name)
    }
    fn has_root(&self, name: &Name, site: Site) -> bool {
        let at = self.own.positions.get(&site.chunk);
        at.is_some_and(|at| self.vars(name).is_some_and(|it| it.has_root((*at, site.def))))
    }
}

/// The position that a chunk has in its own view; those of others lie around it.
pub(crate) const OWN: u32 = 1 << 31;

/// What some names mean, as one chunk sees them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// The names, sorted by their numbers. All others go by their positions here.
    names: Arc<[Name]>,
    agents: Box<[(u32, AgentEntry)]>,
    blocks: Box<[(u32, BlockEntry)]>,
    imports: Box<[(u32, ImportEntry)]>,
    /// Where the variables of each name that has any end; they begin where those of the one before end.
    ends: Box<[(u32, u32)]>,
    vars: Box<[VarEntry]>,
    foreign: Box<[u32]>,
    recursive: Box<[u32]>,
}

impl Seen {
    fn number(&self, name: &Name) -> Option<u32> {
        let found = self.names.binary_search_by_key(&name.number(), |it| it.number());
        Some(found.ok()? as u32)
    }

    fn find<'a, T>(&self, list: &'a [(u32, T)], name: &Name) -> Option<(usize, &'a T)> {
        if list.is_empty() {
            return None;
        }
        let number = self.number(name)?;
        let at = list.binary_search_by_key(&number, |it| it.0).ok()?;
        Some((at, &list[at].1))
    }

    fn has(&self, list: &[u32], name: &Name) -> bool {
        !list.is_empty()
            && self
                .number(name)
                .is_some_and(|it| list.binary_search(&it).is_ok())
    }

    /// What the names mean to a chunk at a position of the file.
    fn new(program: &ProgramScope, chunk: Chunk, at: u32, names: Arc<[Name]>) -> Seen {
        let own = &program.own;
        let near = |site: Site| match site.chunk == chunk {
            true => site,
            false => Site {
                def: site.nth,
                ..site
            },
        };
        let used_files = !(program.agents.is_empty() && program.blocks.is_empty());
        let mut agents = Vec::new();
        let mut blocks = Vec::new();
        let mut imports = Vec::new();
        let mut foreign = Vec::new();
        let mut recursive = Vec::new();
        let (ends, vars) = ROOM.with_borrow_mut(|(ends, vars)| {
            ends.clear();
            vars.clear();
            for (number, name) in (0u32..).zip(names.iter()) {
                let known = own.vars.known(name);
                // Most names are those of variables.
                let global = known.is_some_and(|it| it.global) || used_files;
                if global && let Some(it) = program.agent(name) {
                    let site = near(it.site);
                    agents.push((number, AgentEntry { site, ..it.clone() }));
                }
                if global && let Some(it) = program.block(name) {
                    let site = near(it.site);
                    blocks.push((number, BlockEntry { site, ..it.clone() }));
                }
                if global && let Some(it) = program.import(name) {
                    let site = it.site.map(near);
                    imports.push((number, ImportEntry { site, ..it.clone() }));
                }
                if let Some(it) = known.and_then(|it| own.vars.of(it)) {
                    let from = vars.len();
                    picked(it, at, vars);
                    for it in &mut vars[from..] {
                        it.site = near(it.site);
                    }
                    ends.push((number, vars.len() as u32));
                }
                if program.foreign.contains(name) {
                    foreign.push(number);
                }
                if global && own.recursive.contains(name) {
                    recursive.push(number);
                }
            }
            (Box::from(ends.as_slice()), Box::from(vars.as_slice()))
        });
        Seen {
            names,
            agents: agents.into(),
            blocks: blocks.into(),
            imports: imports.into(),
            ends,
            vars,
            foreign: foreign.into(),
            recursive: recursive.into(),
        }
    }
}

/// Ends and variables.
type Room = (Vec<(u32, u32)>, Vec<VarEntry>);

thread_local! {
    /// Lists that are put together here and then kept with no more room than they need.
    static ROOM: RefCell<Room> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Of the variables of a name those that can matter to a chunk.
fn picked(all: Vars<'_>, at: u32, out: &mut Vec<VarEntry>) {
    let from = out.len();
    let mut rest = all.all();
    while let Some(first) = rest.first() {
        let place = first.place;
        let len = rest.partition_point(|it| it.place == place);
        let (list, after) = rest.split_at(len);
        rest = after;
        if len <= 2 {
            out.extend_from_slice(list);
            continue;
        }
        let before = list.partition_point(|it| it.at < at);
        let behind = list.partition_point(|it| it.at <= at);
        let output = |it: &VarEntry| it.kind == DefKind::Output;
        let mut wanted = vec![0];
        wanted.extend(before.checked_sub(1));
        wanted.extend((behind < len).then_some(behind));
        match place {
            VarPlace::Declared | VarPlace::Hidden => {
                wanted.extend(list.iter().position(|it| it.direct));
                wanted.extend(list[behind..].iter().position(output).map(|it| behind + it));
            }
            // Which of them count depends on the block in which the name is used.
            VarPlace::Elsewhere | VarPlace::ElsewhereImplicit | VarPlace::ElsewhereAssigned => {
                wanted.extend(before..behind);
            }
            _ => {}
        }
        wanted.sort_unstable();
        wanted.dedup();
        out.extend(wanted.into_iter().map(|it| list[it]));
    }
    let picked = &mut out[from..];
    for it in picked.iter_mut() {
        // Nothing that is checked here asks for these.
        it.valued = Valued::No;
        it.calls = false;
    }
    if let [it] = picked {
        it.at = match it.at.cmp(&at) {
            std::cmp::Ordering::Less => OWN - 1,
            std::cmp::Ordering::Equal => OWN,
            std::cmp::Ordering::Greater => OWN + 1,
        };
        return;
    }
    let mut positions: Vec<u32> = picked.iter().map(|it| it.at).collect();
    positions.push(at);
    positions.sort_unstable();
    positions.dedup();
    let own = positions.partition_point(|it| *it < at) as u32;
    for it in picked {
        let rank = positions.partition_point(|other| *other < it.at) as u32;
        it.at = OWN - own + rank;
    }
}

impl Names for Seen {
    fn agent(&self, name: &Name) -> Option<&AgentEntry> {
        Some(self.find(&self.agents, name)?.1)
    }
    fn block(&self, name: &Name) -> Option<&BlockEntry> {
        Some(self.find(&self.blocks, name)?.1)
    }
    fn import(&self, name: &Name) -> Option<&ImportEntry> {
        Some(self.find(&self.imports, name)?.1)
    }
    fn vars(&self, name: &Name) -> Option<Vars<'_>> {
        let (index, end) = self.find(&self.ends, name)?;
        let start = index.checked_sub(1).map_or(0, |it| self.ends[it].1);
        Some(Vars::of(&self.vars[start as usize..*end as usize]))
    }
    fn is_foreign(&self, name: &Name) -> bool {
        self.has(&self.foreign, name)
    }
    fn is_recursive(&self, name: &Name) -> bool {
        self.has(&self.recursive, name)
    }
    fn has_root(&self, name: &Name, site: Site) -> bool {
        let mut vars = self.vars(name).into_iter().flat_map(Vars::all);
        vars.any(|it| it.place < VarPlace::Elsewhere && it.site == site)
    }
}

/// Everything that the checks of a chunk look at outside of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChunkView {
    /// The names that the chunk uses or declares.
    pub seen: Seen,
    /// What it declares and an earlier chunk or statement of the top level has declared.
    pub clashes: Box<[Clash]>,
    /// Its uses of programs that are already used: (later, first), the name of the first.
    pub repeated_targets: Box<[(Site, Site, Name)]>,
    /// A local file that is used can't be read, so that any agent or block may be missing.
    pub incomplete: bool,
    /// Whether the file uses any programs.
    pub imports: bool,
    /// Whether it uses any local files that can be read.
    pub uses_files: bool,
    /// The file uses itself through this target, which is told to chunks with a `use`.
    pub cycle: Option<String>,
}

/// The names that a chunk uses or declares, sorted by their numbers.
pub(crate) fn names(db: &dyn Db, chunk: Chunk) -> Arc<[Name]> {
    let declared = queries::declarations(db, chunk);
    let used = queries::usages(db, chunk);
    let mut out: Vec<Name> = used.iter().map(|it| it.name).collect();
    out.extend(declared.vars.iter().map(|it| it.name));
    out.extend(declared.agents.iter().map(|it| it.name));
    out.extend(declared.blocks.iter().map(|it| it.name));
    out.extend(declared.uses.iter().map(|it| it.name));
    out.sort_unstable_by_key(|it| it.number());
    out.dedup();
    out.into()
}

/// What a chunk of a file sees; nothing when it is none of its chunks.
pub(crate) fn view(db: &dyn Db, file: SourceFile, chunk: Chunk) -> Option<ChunkView> {
    let program = queries::program_scope(db, file);
    let own = &program.own;
    let at = *own.positions.get(&chunk)?;
    let near = |site: Site| match site.chunk == chunk {
        true => site,
        false => Site {
            def: site.nth,
            ..site
        },
    };
    let clashes = own.clashes.get(&chunk).into_iter().flatten();
    let clashes = clashes.map(|it| Clash {
        site: near(it.site),
        first: near(it.first),
        ..it.clone()
    });
    let repeated = own.repeated_targets.get(&chunk).into_iter().flatten();
    let repeated = repeated.map(|(later, first, name)| (near(*later), near(*first), *name));
    let has_uses = !queries::declarations(db, chunk).uses.is_empty();
    Some(ChunkView {
        seen: Seen::new(program, chunk, at, queries::names(db, chunk).clone()),
        clashes: clashes.collect(),
        repeated_targets: repeated.collect(),
        incomplete: program.incomplete,
        imports: !own.imports.is_empty(),
        uses_files: !program.used.is_empty(),
        cycle: program.cycle.clone().filter(|_| has_uses),
    })
}

/// What one name means to a chunk that does not have it.
pub(crate) fn seen(db: &dyn Db, chunk: Chunk, name: Name) -> Seen {
    let program = queries::program_scope(db, chunk.file(db));
    match program.own.positions.get(&chunk) {
        Some(at) => Seen::new(program, chunk, *at, Arc::from([name])),
        None => Seen::default(),
    }
}
