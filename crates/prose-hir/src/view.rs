//! What a chunk sees of the rest of its file: what its own names mean elsewhere, and nothing else, so that its checks stay
//! true while other names come and go.
//!
//! Two things would change with every statement that is added: positions of chunks, and numbers of definitions in a chunk.
//! A view holds only what order the variables of one name have, counted from the chunk outwards, and says of a definition in
//! another chunk how many of its name come before it there.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::{Arc, Weak};

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
        let (ends, vars) = ROOM.with_borrow_mut(|(ends, vars, positions)| {
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
                    pick(it, at, vars, positions);
                    count_from(at, &mut vars[from..], positions);
                    for it in &mut vars[from..] {
                        it.site = near(it.site);
                        // Nothing that is checked here asks for these.
                        it.valued = Valued::No;
                        it.calls = false;
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

/// Ends, variables and positions.
type Room = (Vec<(u32, u32)>, Vec<VarEntry>, Vec<u32>);

thread_local! {
    /// Lists that are put together here and then kept with no more room than they need.
    static ROOM: RefCell<Room> = const { RefCell::new((Vec::new(), Vec::new(), Vec::new())) };
}

/// Of the variables of a name those that can matter to a chunk. The list of positions is any.
fn pick(all: Vars<'_>, at: u32, out: &mut Vec<VarEntry>, wanted: &mut Vec<u32>) {
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
        wanted.clear();
        let mut want = |it: usize| wanted.push(it as u32);
        want(0);
        before.checked_sub(1).into_iter().for_each(&mut want);
        (behind < len).then_some(behind).into_iter().for_each(&mut want);
        match place {
            VarPlace::Declared | VarPlace::Hidden => {
                let direct = list.iter().position(|it| it.direct);
                direct.into_iter().for_each(&mut want);
                let output = list[behind..].iter().position(output);
                output.map(|it| behind + it).into_iter().for_each(&mut want);
            }
            // Which of them count depends on the block in which the name is used.
            VarPlace::Elsewhere | VarPlace::ElsewhereImplicit | VarPlace::ElsewhereAssigned => {
                (before..behind).for_each(&mut want);
            }
            _ => {}
        }
        wanted.sort_unstable();
        wanted.dedup();
        out.extend(wanted.iter().map(|it| list[*it as usize]));
    }
}

/// Counts the positions of what was picked from that of the chunk.
fn count_from(at: u32, picked: &mut [VarEntry], positions: &mut Vec<u32>) {
    if let [it] = picked {
        it.at = match it.at.cmp(&at) {
            Ordering::Less => OWN - 1,
            Ordering::Equal => OWN,
            Ordering::Greater => OWN + 1,
        };
        return;
    }
    positions.clear();
    positions.extend(picked.iter().map(|it| it.at));
    positions.push(at);
    positions.sort_unstable();
    positions.dedup();
    let own = positions.partition_point(|it| *it < at) as u32;
    for it in picked {
        let rank = positions.partition_point(|other| *other < it.at) as u32;
        it.at = OWN - own + rank;
    }
}

/// A number made of others, which is another one when they differ.
struct Print(u64);

impl Print {
    fn add(&mut self, value: u64) {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        // What both halves of the product say: any bit of either factor changes about half of them.
        let product = u128::from(self.0 ^ value) * u128::from(SPREAD);
        self.0 = (product as u64 ^ (product >> 64) as u64)
            .rotate_left(29)
            .wrapping_add(SPREAD);
    }
    fn text(&mut self, text: &str) {
        self.add(text.len() as u64);
        for piece in text.as_bytes().chunks(8) {
            let value = piece.iter().fold(0, |value, it| value << 8 | u64::from(*it));
            self.add(value);
        }
    }
    fn name(&mut self, name: Name) {
        self.add(u64::from(name.number()));
    }
    /// A definition as another chunk knows it. What its number is in its own chunk does not count: the chunk is another one when
    /// the number is.
    fn site(&mut self, site: Site) {
        use salsa::plumbing::AsId;
        self.add(site.chunk.as_id().as_bits());
        self.add(site.file.as_id().as_bits() << 24 ^ u64::from(site.nth));
    }
    fn var(&mut self, it: &VarEntry, position: u64) {
        self.site(it.site);
        self.add(position << 32 | (it.kind as u64) << 16 | (it.place as u64) << 8 | u64::from(it.direct));
    }

    /// All that [`Seen`] has of a name.
    fn meaning(&mut self, program: &ProgramScope, at: u32, name: &Name, room: &mut Room) {
        let own = &program.own;
        let known = own.vars.known(name);
        let used_files = !(program.agents.is_empty() && program.blocks.is_empty());
        let global = known.is_some_and(|it| it.global) || used_files;
        if global {
            if let Some(it) = program.agent(name) {
                self.add(1);
                self.site(it.site);
                let flags = [it.persists, it.short_lived, it.prompted];
                self.add(flags.iter().fold(0, |all, it| all << 1 | u64::from(*it)));
            }
            if let Some(it) = program.block(name) {
                self.add(2);
                self.site(it.site);
                self.add(it.params.len() as u64);
                it.params.iter().for_each(|it| self.name(*it));
            }
            if let Some(it) = program.import(name) {
                self.add(3);
                self.add(u64::from(it.site.is_some()));
                it.site.into_iter().for_each(|it| self.site(it));
                self.text(&it.target);
            }
            if own.recursive.contains(name) {
                self.add(4);
            }
        }
        if !program.foreign.is_empty() && program.foreign.contains(name) {
            self.add(5);
        }
        let Some(vars) = known.and_then(|it| own.vars.of(it)) else {
            return self.add(0);
        };
        // Nearly all names have one variable.
        if let [it] = vars.all() {
            self.add(6);
            return self.var(it, it.at.cmp(&at) as i8 as u8 as u64);
        }
        let (_, picked, positions) = room;
        picked.clear();
        pick(vars, at, picked, positions);
        count_from(at, picked, positions);
        self.add(7 + picked.len() as u64);
        for it in picked {
            self.var(it, u64::from(it.at));
        }
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

/// What a chunk sees, as one number: whatever it sees is put together only to check the chunk, and not kept.
#[derive(Debug, Clone)]
pub(crate) struct Glance {
    /// Another one when [`ChunkView`] is another one.
    print: u64,
    /// What is seen. Not compared, and not kept by chunks that are no longer looked at.
    program: Weak<ProgramScope>,
    /// The names of the chunk. Not compared: it is another chunk when they are others.
    names: Arc<[Name]>,
}

impl PartialEq for Glance {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}
impl Eq for Glance {}

/// Glances out of a chunk of a file; nothing when it is none of its chunks.
pub(crate) fn glance(db: &dyn Db, file: SourceFile, chunk: Chunk) -> Option<Glance> {
    let program = queries::program_scope(db, file);
    let own = &program.own;
    let at = *own.positions.get(&chunk)?;
    let names = queries::names(db, chunk);
    let mut print = Print(names.len() as u64);
    ROOM.with_borrow_mut(|room| {
        for name in names.iter() {
            print.meaning(program, at, name, room);
        }
    });
    for it in own.clashes.get(&chunk).into_iter().flatten() {
        print.name(it.name);
        print.site(it.site);
        print.site(it.first);
        print.add((it.kind as u64) << 8 | it.first_kind as u64);
    }
    for (later, first, name) in own.repeated_targets.get(&chunk).into_iter().flatten() {
        print.name(*name);
        print.site(*later);
        print.site(*first);
    }
    let cycle = cycle(db, program, chunk);
    let flags = [
        program.incomplete,
        !own.imports.is_empty(),
        !program.used.is_empty(),
        cycle.is_some(),
    ];
    print.add(flags.iter().fold(0, |all, it| all << 1 | u64::from(*it)));
    print.text(cycle.unwrap_or_default());
    Some(Glance {
        print: print.0,
        program: Arc::downgrade(program),
        names: names.clone(),
    })
}

/// What a chunk of a file sees; nothing when it is none of its chunks. Asks for nothing but a glance: as long as that is the same,
/// so is what it gives.
pub(crate) fn view(db: &dyn Db, file: SourceFile, chunk: Chunk) -> Option<ChunkView> {
    let glance = queries::glance(db, chunk).as_ref()?;
    // Whoever glanced has asked for the program, so that it is there.
    let program = match glance.program.upgrade() {
        Some(program) => program,
        None => queries::program_scope(db, file).clone(),
    };
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
    Some(ChunkView {
        seen: Seen::new(&program, chunk, at, glance.names.clone()),
        clashes: clashes.collect(),
        repeated_targets: repeated.collect(),
        incomplete: program.incomplete,
        imports: !own.imports.is_empty(),
        uses_files: !program.used.is_empty(),
        cycle: cycle(db, &program, chunk).map(str::to_owned),
    })
}

/// The target through which the file uses itself, as far as it is told to a chunk.
fn cycle<'a>(db: &dyn Db, program: &'a ProgramScope, chunk: Chunk) -> Option<&'a str> {
    let cycle = program.cycle.as_deref()?;
    (!queries::declarations(db, chunk).uses.is_empty()).then_some(cycle)
}

/// What one name means to a chunk that does not have it.
pub(crate) fn seen(db: &dyn Db, chunk: Chunk, name: Name) -> Seen {
    let program = queries::program_scope(db, chunk.file(db));
    match program.own.positions.get(&chunk) {
        Some(at) => Seen::new(program, chunk, *at, Arc::from([name])),
        None => Seen::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, FileId, RootDatabase};

    const MAIN: &[&str] = &[
        "use \"./lib.prose\" as lib\n",
        "use \"./lib.prose\" as again\n",
        "agent a:\n  prompt: \"x\"\n",
        "agent a:\n  persist: true\n",
        "block b(x):\n  let v = x\n  do b(v)\n",
        "block b(x, y):\n  session \"{x}{y}\"\n",
        "let v = session: a\n",
        "let w = do b(v)\n",
        "v = lib(x: w)\n",
        "output v = v\n",
        "for v in w:\n  session \"{v}\"\n",
        "parallel for w in v:\n  let z = far(w)\n",
        "if **v and w**:\n  const z = 1\nelse:\n  z = 2\n",
        "const a = 1\n",
        "session \"{v}{w}{z}{far}\"\n",
    ];
    const LIB: &[&str] = &[
        "agent far:\n  prompt: \"x\"\n",
        "block b(z):\n  let w = z\n  session \"{w}\"\n",
        "use \"./main.prose\" as main\n",
        "output v = 1\n",
    ];

    /// Numbers that look random and are the same each time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % end
        }
    }

    #[test]
    fn a_glance_differs_when_what_is_seen_does() {
        let mut numbers = Numbers(1);
        let mut db = RootDatabase::with_chunk_size(None, 1);
        let (main, lib) = (FileId(0), FileId(1));
        let mut parts = [vec![2, 4, 6, 14], vec![0]];
        let mut before: Vec<(Chunk, Glance, ChunkView)> = Vec::new();
        let (mut same, mut other) = (0, 0);
        for round in 0..600 {
            // Mostly the program is changed, by one statement.
            let which = usize::from(numbers.below(8) == 0);
            let (list, all) = (&mut parts[which], [MAIN, LIB][which]);
            match numbers.below(3) {
                0 if !list.is_empty() => drop(list.remove(numbers.below(list.len()))),
                1 if !list.is_empty() => {
                    let at = numbers.below(list.len());
                    list[at] = numbers.below(all.len());
                }
                _ if list.len() < 24 => list.insert(numbers.below(list.len() + 1), numbers.below(all.len())),
                _ => {}
            }
            let text =
                |which: usize| -> String { parts[which].iter().map(|it| [MAIN, LIB][which][*it]).collect() };
            let mut change = Change::new();
            change.text(main, "/main.prose", text(0));
            change.text(lib, "/lib.prose", text(1));
            change.resolve(main, vec![("./lib.prose".into(), (round % 7 > 0).then_some(lib))]);
            change.resolve(lib, vec![("./main.prose".into(), Some(main))]);
            let old: Vec<_> = before.iter().map(|it| it.0.text(&db).to_string()).collect();
            db.apply_change(change);
            let file = db.source(main).unwrap();
            let mut after = Vec::new();
            for chunk in file.chunks(&db).iter() {
                let glance = queries::glance(&db, *chunk).clone().unwrap();
                after.push((*chunk, glance, view(&db, file, *chunk).unwrap()));
            }
            for ((chunk, glance, view), text) in before.iter().zip(old) {
                let found = after.iter().find(|it| it.0 == *chunk);
                let Some((_, new_glance, new_view)) = found.filter(|_| **chunk.text(&db) == *text) else {
                    continue;
                };
                assert_eq!(glance == new_glance, view == new_view, "{view:#?}\n{new_view:#?}");
                match view == new_view {
                    true => same += 1,
                    false => other += 1,
                }
            }
            before = after;
        }
        assert!(same > 500 && other > 500, "{same} {other}");
    }
}
