//! What a file and the files it uses declare together, put together from the signatures of their chunks.

use std::sync::Arc;

use crate::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::name::Numbering;
use crate::scopes::{DefKind, Holds};
use crate::signature::*;
use crate::vars::{VarEntry, VarTable};
use crate::{Chunk, Db, FileState, SourceFile};

/// A definition: a file, a chunk, and the definition's number there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub file: SourceFile,
    pub chunk: Chunk,
    pub def: u32,
    /// How many definitions of the same name come before it in the chunk. Follows from the rest, and stays what it is when
    /// other names are declared.
    pub nth: u32,
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        (self.file, self.chunk, self.def) == (other.file, other.chunk, other.def)
    }
}
impl Eq for Site {}

impl std::hash::Hash for Site {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.file, self.chunk, self.def).hash(state);
    }
}

/// An agent with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentEntry {
    pub site: Site,
    pub persists: bool,
    /// Its memory dies with the run.
    pub short_lived: bool,
    pub prompted: bool,
}

/// A block with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub site: Site,
    pub params: Arc<[Name]>,
}

/// An import with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportEntry {
    pub site: Option<Site>,
    pub target: String,
}

/// The same thing declared again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clash {
    /// The later declaration.
    pub site: Site,
    /// The one it clashes with.
    pub first: Site,
    pub name: Name,
    pub kind: DefKind,
    pub first_kind: DefKind,
}

/// Statements of the top level that are never reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreached {
    /// The one after which none is: its chunk, its position there.
    pub after: (Chunk, u32),
    /// The first chunk and the last with one that would run.
    pub first: Chunk,
    pub last: Chunk,
}

/// What one file declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileSymbols {
    pub agents: FxHashMap<Name, AgentEntry>,
    pub blocks: FxHashMap<Name, BlockEntry>,
    pub imports: FxHashMap<Name, ImportEntry>,
    /// `use` targets in order, with the place of a later `use` of the same target.
    pub targets: Vec<(String, Option<Site>)>,
    pub skills: FxHashSet<String>,
    pub vars: VarTable,
    /// By the chunk of the later declaration.
    pub clashes: FxHashMap<Chunk, Vec<Clash>>,
    /// Uses of a target already used, by the later's chunk: (later, first), the name of the first.
    pub repeated_targets: FxHashMap<Chunk, Vec<(Site, Site, Name)>>,
    pub inputs: Vec<InputSig>,
    pub outputs: Vec<Name>,
    /// Where each chunk stands.
    pub positions: Arc<FxHashMap<Chunk, u32>>,
    /// Blocks that can call themselves, directly or through others.
    pub recursive: FxHashSet<Name>,
    /// The first chunk that runs anything.
    pub first_run: Option<u32>,
    /// The last chunk with a statement.
    pub last: u32,
    /// Statements of the top level that are never reached.
    pub unreached: Option<Unreached>,
    /// Whether the top level may end with `output EXPR`.
    pub returns: bool,
    /// The last chunk whose top level asks the judge.
    pub last_judge: Option<u32>,
    /// Whether a block asks the judge.
    pub judges_in_blocks: bool,
    /// Skills that agents and sessions name.
    pub wanted_skills: FxHashSet<String>,
    /// Variables that are bound to what a call gives, or to other variables. Only for files that import programs.
    pub held: FxHashMap<Name, Holds>,
}

/// A declaration that the whole file sees.
enum Declared<'a> {
    Agent(&'a AgentSig),
    Block(&'a BlockSig),
    Use(&'a UseSig),
}

/// What a chunk declares for the whole file, in the order of the text, so that it doesn't matter where the file is cut.
fn in_order(sig: &Declarations) -> Vec<Declared<'_>> {
    if sig.agents.is_empty() && sig.blocks.is_empty() && sig.uses.is_empty() {
        return Vec::new();
    }
    let mut out: Vec<(u32, Declared<'_>)> = Vec::new();
    out.extend(sig.agents.iter().map(|it| (it.def, Declared::Agent(it))));
    out.extend(sig.blocks.iter().map(|it| (it.def, Declared::Block(it))));
    // One without a definition stays where it is among the others.
    let mut last = 0;
    for it in &sig.uses {
        last = it.def.unwrap_or(last);
        out.push((last, Declared::Use(it)));
    }
    out.sort_by_key(|it| it.0);
    out.into_iter().map(|it| it.1).collect()
}

/// Puts the signatures of a file's chunks together.
pub(crate) fn fold(db: &dyn Db, file: SourceFile) -> FileSymbols {
    let mut out = FileSymbols {
        positions: crate::queries::positions(db, file).clone(),
        ..FileSymbols::default()
    };
    let mut calls: FxHashMap<&Name, &[Name]> = FxHashMap::default();
    let mut leaving: Option<(Chunk, u32)> = None;
    let mut unreached: Option<(Chunk, Chunk)> = None;
    let mut names = Numbering::new();
    // By the numbers of names.
    let mut first_direct: Vec<Option<(Site, DefKind)>> = Vec::new();
    let mut first_target: FxHashMap<&str, (Site, &Name)> = FxHashMap::default();
    let mut outputs = FxHashSet::default();
    let chunks = file.chunks(db);
    let mut vars: Vec<(u32, VarEntry)> = Vec::with_capacity(chunks.len() * 8);
    for (index, chunk) in chunks.iter().enumerate() {
        let sig = crate::queries::declarations(db, *chunk);
        let at = |def: u32| Site {
            file,
            chunk: *chunk,
            def,
            nth: sig.nths.get(def as usize).copied().unwrap_or_default(),
        };
        if sig.runs && out.first_run.is_none() {
            out.first_run = Some(index as u32);
        }
        if !sig.empty {
            out.last = index as u32;
        }
        match (&mut leaving, sig.leaves) {
            (None, None) => {}
            (None, Some(stmt)) => {
                leaving = Some((*chunk, stmt));
                if sig.steps_after {
                    unreached = Some((*chunk, *chunk));
                }
            }
            (Some(_), _) if sig.steps => unreached = Some((unreached.map_or(*chunk, |it| it.0), *chunk)),
            (Some(_), _) => {}
        }
        if sig.judges {
            out.last_judge = Some(index as u32);
        }
        out.judges_in_blocks |= sig.judges_in_blocks;
        out.returns |= sig.returns;
        out.skills.extend(sig.skills.iter().cloned());
        out.wanted_skills.extend(sig.wanted_skills.iter().cloned());
        for it in in_order(sig) {
            match it {
                Declared::Agent(it) => {
                    let site = at(it.def);
                    let entry = AgentEntry {
                        site,
                        persists: it.persists,
                        short_lived: it.short_lived,
                        prompted: it.prompted,
                    };
                    declare_global(&mut out, &it.name, DefKind::Agent, site);
                    out.agents.entry(it.name).or_insert(entry);
                }
                Declared::Block(it) => {
                    let site = at(it.def);
                    let entry = BlockEntry {
                        site,
                        params: it.params.clone(),
                    };
                    calls.entry(&it.name).or_insert(&it.calls);
                    declare_global(&mut out, &it.name, DefKind::Block, site);
                    out.blocks.entry(it.name).or_insert(entry);
                }
                Declared::Use(it) => {
                    let site = it.def.map(at);
                    out.targets.push((it.target.clone(), site));
                    if let Some(site) = site {
                        match first_target.get(it.target.as_str()) {
                            Some((first, name)) => out
                                .repeated_targets
                                .entry(site.chunk)
                                .or_default()
                                .push((site, *first, *(*name))),
                            None => {
                                first_target.insert(&it.target, (site, &it.name));
                                declare_global(&mut out, &it.name, DefKind::Import, site);
                            }
                        }
                    }
                    let entry = ImportEntry {
                        site,
                        target: it.target.clone(),
                    };
                    out.imports.entry(it.name).or_insert(entry);
                }
            }
        }
        out.inputs.extend(sig.inputs.iter().cloned());
        for name in &sig.outputs {
            if outputs.insert(name) {
                out.outputs.push(*name);
            }
        }
        for it in &sig.vars {
            let site = at(it.def);
            let number = names.meet(it.name);
            if number as usize == first_direct.len() {
                first_direct.push(None);
            }
            if it.direct && it.kind.declares_slot() {
                let first_direct = &mut first_direct[number as usize];
                match first_direct {
                    // From here on it is an output.
                    Some((_, first_kind)) if it.promotes && *first_kind != DefKind::Output => {
                        *first_kind = DefKind::Output;
                    }
                    Some((first, first_kind)) => out.clashes.entry(site.chunk).or_default().push(Clash {
                        site,
                        first: *first,
                        name: it.name,
                        kind: it.kind,
                        first_kind: *first_kind,
                    }),
                    None => *first_direct = Some((site, it.kind)),
                }
            }
            vars.push((
                number,
                VarEntry {
                    site,
                    at: index as u32,
                    kind: it.kind,
                    place: it.place,
                    direct: it.direct,
                    valued: it.valued,
                    calls: it.calls,
                },
            ));
        }
    }
    if !out.imports.is_empty() {
        for chunk in chunks.iter() {
            let sig = crate::queries::declarations(db, *chunk);
            out.held.extend(sig.held.iter().cloned());
        }
    }
    if let (Some(after), Some((first, last))) = (leaving, unreached) {
        out.unreached = Some(Unreached { after, first, last });
    }
    out.recursive = recursive(&calls);
    let globals = out
        .agents
        .keys()
        .chain(out.blocks.keys())
        .chain(out.imports.keys());
    out.vars = VarTable::new(names.names(), &vars, globals);
    out
}

/// Records a clash of a global with an earlier one of any kind.
fn declare_global(out: &mut FileSymbols, name: &Name, kind: DefKind, site: Site) {
    let earlier = [
        (DefKind::Agent, out.agents.get(name).map(|it| it.site)),
        (DefKind::Block, out.blocks.get(name).map(|it| it.site)),
        (DefKind::Import, out.imports.get(name).and_then(|it| it.site)),
    ];
    if let Some((first_kind, first)) = earlier.into_iter().find_map(|(kind, site)| Some((kind, site?))) {
        out.clashes.entry(site.chunk).or_default().push(Clash {
            site,
            first,
            name: *name,
            kind,
            first_kind,
        });
    }
}

/// The blocks on a cycle of calls.
fn recursive(calls_of: &FxHashMap<&Name, &[Name]>) -> FxHashSet<Name> {
    // Strongly connected components (Tarjan), without recursion: a chain of calls can be as long as the file.
    #[derive(Clone, Copy)]
    struct Seen {
        number: usize,
        low: usize,
        open: bool,
    }
    let mut out = FxHashSet::default();
    let mut seen: FxHashMap<&Name, Seen> = FxHashMap::default();
    let mut open: Vec<&Name> = Vec::new();
    for root in calls_of.keys().copied() {
        if seen.contains_key(root) {
            continue;
        }
        let mut path: Vec<(&Name, std::slice::Iter<'_, Name>)> = Vec::new();
        let mut next = Some(root);
        loop {
            if let Some(name) = next.take() {
                let number = seen.len();
                let fresh = Seen {
                    number,
                    low: number,
                    open: true,
                };
                seen.insert(name, fresh);
                open.push(name);
                path.push((name, calls_of[name].iter()));
            }
            let Some((name, calls)) = path.last_mut() else {
                break;
            };
            let name = *name;
            let Some(called) = calls.next() else {
                path.pop();
                let done = seen[name];
                if let Some((caller, _)) = path.last()
                    && let Some(caller) = seen.get_mut(*caller)
                {
                    caller.low = caller.low.min(done.low);
                }
                if done.low == done.number {
                    let from = open.iter().rposition(|it| *it == name).unwrap_or(0);
                    let cycle = open.len() - from > 1 || calls_of[name].contains(name);
                    for member in open.drain(from..) {
                        if let Some(it) = seen.get_mut(member) {
                            it.open = false;
                        }
                        if cycle {
                            out.insert(*member);
                        }
                    }
                }
                continue;
            };
            match (seen.get(called).copied(), calls_of.get_key_value(called)) {
                (Some(it), _) if it.open => {
                    if let Some(caller) = seen.get_mut(name) {
                        caller.low = caller.low.min(it.number);
                    }
                }
                (None, Some((called, _))) => next = Some(*called),
                _ => {}
            }
        }
    }
    out
}

/// What a file sees: its own declarations, and agents and blocks of the local files it uses, at any depth.
///
/// Not compared: it is put together again only when its parts differ, and views of it are compared instead.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramScope {
    pub own: Arc<FileSymbols>,
    /// Agents of used files that the file does not declare itself.
    pub agents: FxHashMap<Name, AgentEntry>,
    /// Likewise blocks.
    pub blocks: FxHashMap<Name, BlockEntry>,
    /// Variables and parameters of the blocks of used files.
    pub foreign: FxHashSet<Name>,
    /// Files used locally, at any depth, in order, without the file itself.
    pub used: Vec<SourceFile>,
    /// Target → file, for the file's own `use` statements.
    pub files: FxHashMap<String, Option<SourceFile>>,
    /// The file uses itself through this target.
    pub cycle: Option<String>,
    /// A local file that is used, here or by what is used, can't be read, so that any agent or block may be missing.
    pub incomplete: bool,
}

/// Collects what a file sees.
pub(crate) fn program_scope(db: &dyn Db, file: SourceFile) -> ProgramScope {
    let own = crate::queries::file_symbols(db, file);
    let mut out = ProgramScope {
        own: own.clone(),
        ..ProgramScope::default()
    };
    for (target, found) in file.uses(db).iter() {
        out.files.insert(target.clone(), *found);
    }
    let mut seen = FxHashSet::from_iter([file]);
    for (target, _) in &own.targets {
        let found = out.files.get(target).copied();
        out.incomplete |= is_unreadable(db, target, found);
        if let Some(Some(used)) = found {
            if reaches(db, used, file) {
                out.cycle.get_or_insert_with(|| target.clone());
            }
            visit(db, used, &mut seen, &mut out);
        }
    }
    out
}

fn visit(db: &dyn Db, file: SourceFile, seen: &mut FxHashSet<SourceFile>, out: &mut ProgramScope) {
    if !seen.insert(file) || file.state(db) != FileState::Text {
        return;
    }
    out.used.push(file);
    let symbols = crate::queries::file_symbols(db, file);
    for (name, entry) in &symbols.agents {
        if !out.own.agents.contains_key(name) {
            out.agents.entry(*name).or_insert_with(|| entry.clone());
        }
    }
    for (name, entry) in &symbols.blocks {
        if !out.own.blocks.contains_key(name) {
            out.blocks.entry(*name).or_insert_with(|| entry.clone());
        }
    }
    for (name, vars) in symbols.vars.iter() {
        if vars.any_elsewhere() {
            out.foreign.insert(*name);
        }
    }
    let resolved = file.uses(db);
    for (target, _) in &symbols.targets {
        let found = resolved.iter().find(|it| it.0 == *target).map(|it| it.1);
        out.incomplete |= is_unreadable(db, target, found);
    }
    for used in used_files(db, file) {
        visit(db, used, seen, out);
    }
}

/// Whether a target is a local file that was looked for and has no text.
fn is_unreadable(db: &dyn Db, target: &str, found: Option<Option<SourceFile>>) -> bool {
    let local = || crate::paths::target_kind(target) == crate::paths::TargetKind::Local;
    match found {
        None => false,
        Some(None) => local(),
        Some(Some(file)) => local() && file.state(db) != FileState::Text,
    }
}

/// The files that a file's own `use` statements lead to.
pub(crate) fn used_files(db: &dyn Db, file: SourceFile) -> Vec<SourceFile> {
    let resolved = file.uses(db);
    let symbols = crate::queries::file_symbols(db, file);
    let find = |target: &String| resolved.iter().find(|it| it.0 == *target)?.1;
    symbols
        .targets
        .iter()
        .filter_map(|(target, _)| find(target))
        .collect()
}

/// Whether following `use` from one file leads to another.
fn reaches(db: &dyn Db, from: SourceFile, to: SourceFile) -> bool {
    let mut seen = FxHashSet::default();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        if file == to {
            return true;
        }
        if seen.insert(file) {
            open.extend(used_files(db, file));
        }
    }
    false
}
