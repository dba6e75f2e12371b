//! Signatures of chunks, without ranges, and what a file and the files it uses declare together.
//!
//! A keystroke inside a prompt changes no signature, so that nothing built on them is computed again.

use std::collections::BTreeSet;
use std::sync::Arc;

use prose_model::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::*;
use crate::scopes::{DefKind, FrameKind, ROOT, RefKind, Scopes};
use crate::{Chunk, Db, FileState, SourceFile};

/// What a chunk declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Declarations {
    pub agents: Vec<AgentSig>,
    pub blocks: Vec<BlockSig>,
    pub uses: Vec<UseSig>,
    pub skills: Vec<String>,
    pub vars: Vec<VarSig>,
    pub inputs: Vec<InputSig>,
    /// Names bound by `output name =` at any depth of the top level.
    pub outputs: Vec<Name>,
    /// Whether running the chunk asks a session or the judge for anything.
    pub runs: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentSig {
    pub name: Name,
    pub def: u32,
    pub persists: bool,
    /// Its memory dies with the run.
    pub short_lived: bool,
    pub prompted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockSig {
    pub name: Name,
    pub def: u32,
    pub params: Vec<Name>,
    pub calls: BTreeSet<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UseSig {
    pub target: String,
    pub name: Name,
    /// None when the `use` gives no name that can be used.
    pub def: Option<u32>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VarSig {
    pub name: Name,
    pub def: u32,
    pub kind: DefKind,
    pub place: VarPlace,
    /// `output x = x`
    pub promotes: bool,
}

/// Where a variable is declared, as far as other chunks care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VarPlace {
    /// In the root frame.
    Root {
        /// In the root scope itself, not in a body.
        direct: bool,
        /// In a loop or pipeline body.
        hidden: bool,
    },
    /// In a block (of that name), an iteration or an agent.
    Elsewhere(Name),
}

/// An input of the top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputSig {
    pub name: Name,
    pub has_default: bool,
}

/// Reads a chunk's declarations.
pub(crate) fn declarations_of(body: &ChunkBody, scopes: &Scopes) -> Declarations {
    let mut out = Declarations::default();
    let mut calls: FxHashMap<u32, BTreeSet<Name>> = FxHashMap::default();
    for used in scopes
        .refs
        .iter()
        .filter(|it| matches!(it.kind, RefKind::Do | RefKind::Call))
    {
        let frame = scopes
            .frames_from(scopes.frame_of(used.scope))
            .last()
            .unwrap_or(ROOT);
        calls.entry(frame).or_default().insert(used.name.clone());
    }
    let mut block_frames = (0..scopes.frames.len() as u32)
        .filter(|it| matches!(scopes.frames[*it as usize].kind, FrameKind::Block(_)))
        .collect::<Vec<_>>()
        .into_iter();
    let mut items = Items {
        out: &mut out,
        scopes,
        calls: &calls,
        block_frames: &mut block_frames,
    };
    items.stmts(&body.stmts);
    for (index, def) in scopes.defs.iter().enumerate() {
        if def.kind.is_global() {
            continue;
        }
        let at_root = *scopes.outermost_frame(def.scope) == FrameKind::Root;
        if def.kind == DefKind::Output && at_root && !out.outputs.contains(&def.name) {
            out.outputs.push(def.name.clone());
        }
        let place = match scopes.outermost_frame(def.scope) {
            FrameKind::Root if scopes.frame_of(def.scope) == ROOT => VarPlace::Root {
                direct: def.scope == ROOT,
                hidden: def.kind.is_scoped() || scopes.hidden_from(def.scope, ROOT),
            },
            FrameKind::Block(name) => VarPlace::Elsewhere(name.clone()),
            _ => VarPlace::Elsewhere(Name::default()),
        };
        out.vars.push(VarSig {
            name: def.name.clone(),
            def: index as u32,
            kind: def.kind,
            place,
            promotes: def.promotes,
        });
    }
    out.runs = body
        .stmts
        .iter()
        .any(|stmt| matches!(&stmt.kind, StmtKind::Expr(expr) if runs(expr)));
    out
}

struct Items<'a> {
    out: &'a mut Declarations,
    scopes: &'a Scopes,
    calls: &'a FxHashMap<u32, BTreeSet<Name>>,
    block_frames: &'a mut std::vec::IntoIter<u32>,
}

impl Items<'_> {
    fn def(&self, ident: &Ident) -> Option<u32> {
        let found = self
            .scopes
            .defs
            .iter()
            .position(|it| it.range == ident.range && it.kind.is_global())?;
        Some(found as u32)
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Use(it) => {
                    let Some((target, _)) = &it.target else { continue };
                    let named = it.alias.as_ref().map(|it| it.name.clone());
                    let Some(name) = named.or_else(|| crate::paths::default_name(target)) else {
                        continue;
                    };
                    let range = it
                        .alias
                        .as_ref()
                        .map(|it| it.range)
                        .or(it.target.as_ref().map(|it| it.1));
                    let def = range.and_then(|range| {
                        self.def(&Ident {
                            name: name.clone(),
                            range,
                        })
                    });
                    self.out.uses.push(UseSig {
                        target: target.clone(),
                        name,
                        def,
                    });
                }
                StmtKind::SkillImport { skill } => {
                    self.out.skills.extend(skill.iter().map(|it| it.0.clone()))
                }
                StmtKind::Agent(it) => {
                    let Some(name) = &it.name else { continue };
                    let Some(def) = self.def(name) else { continue };
                    let persists = property(&it.props, "persist").is_some_and(|it| !is_false(&it.value));
                    let short_lived =
                        crate::lower::persist(&it.props) == Some(prose_model::Persist::Execution);
                    let prompted = property(&it.props, "prompt").is_some();
                    self.out.agents.push(AgentSig {
                        name: name.name.clone(),
                        def,
                        persists,
                        short_lived,
                        prompted,
                    });
                }
                StmtKind::Block(it) => {
                    let frame = self.block_frames.next();
                    if let Some(name) = &it.name
                        && let Some(def) = self.def(name)
                    {
                        self.out.blocks.push(BlockSig {
                            name: name.name.clone(),
                            def,
                            params: it.params.iter().map(|it| it.name.clone()).collect(),
                            calls: frame
                                .and_then(|it| self.calls.get(&it))
                                .cloned()
                                .unwrap_or_default(),
                        });
                    }
                    self.stmts(&it.body.stmts);
                }
                StmtKind::Expr(it) => self.expr(it),
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Input {
            name: Some(name),
            value,
            default,
        } = &expr.kind
        {
            let has_default = default.is_some() || value.as_ref().is_some_and(|it| is_default(it));
            // Inputs of blocks are asked for when they are met; they are no part of the contract.
            let at_root = self.scopes.defs.iter().any(|def| {
                def.range == name.range && matches!(self.scopes.outermost_frame(def.scope), FrameKind::Root)
            });
            if at_root {
                self.out.inputs.push(InputSig {
                    name: name.name.clone(),
                    has_default,
                });
            }
        }
        each_child(expr, &mut |child| match child {
            Child::Expr(it) => self.expr(it),
            Child::Body(it) => self.stmts(&it.stmts),
        });
    }
}

fn is_false(value: &PropValue) -> bool {
    matches!(
        value,
        PropValue::Expr(Expr {
            kind: ExprKind::Bool(false) | ExprKind::Null,
            ..
        })
    )
}

/// Whether an input's value is a default rather than a prompt.
pub(crate) fn is_default(value: &Expr) -> bool {
    !matches!(
        value.kind,
        ExprKind::Text(_) | ExprKind::Judge { .. } | ExprKind::Missing
    )
}

/// Whether evaluating it asks anybody for anything.
pub(crate) fn runs(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Session(_) | ExprKind::DoCall { .. } | ExprKind::Call { .. } | ExprKind::Judge { .. } => {
            true
        }
        // What leaves or branches must not be overtaken by a later input.
        ExprKind::Throw(_) | ExprKind::Return { .. } | ExprKind::Assert { .. } | ExprKind::Break => true,
        ExprKind::If { .. } | ExprKind::Loop(_) | ExprKind::Choice { .. } => true,
        ExprKind::Input { .. } => false,
        _ => {
            let mut found = false;
            each_child(expr, &mut |child| {
                found |= match child {
                    Child::Expr(it) => runs(it),
                    Child::Body(it) => it
                        .stmts
                        .iter()
                        .any(|stmt| matches!(&stmt.kind, StmtKind::Expr(expr) if runs(expr))),
                };
            });
            found
        }
    }
}

/// A definition: a file, a chunk by its position, and the definition's number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub file: SourceFile,
    pub chunk: u32,
    pub def: u32,
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
    pub params: Vec<Name>,
    pub calls: BTreeSet<Name>,
}

/// An import with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportEntry {
    pub site: Option<Site>,
    pub target: String,
}

/// A variable with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VarEntry {
    pub site: Site,
    pub kind: DefKind,
    pub place: VarPlace,
}

/// All variables of one name. Each list is in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Vars {
    /// Declarations of the top level that can be seen after they ran.
    pub declared: Vec<VarEntry>,
    /// Likewise assignments.
    pub assigned: Vec<VarEntry>,
    /// In loop and pipeline bodies of the top level, and variables of its constructs.
    pub hidden: Vec<VarEntry>,
    /// In blocks, iterations and agents.
    pub elsewhere: Vec<VarEntry>,
}

impl Vars {
    fn push(&mut self, entry: VarEntry) {
        let list = match entry.place {
            VarPlace::Elsewhere(_) => &mut self.elsewhere,
            VarPlace::Root { hidden: true, .. } => &mut self.hidden,
            VarPlace::Root { .. } if entry.kind == DefKind::Assigned => &mut self.assigned,
            VarPlace::Root { .. } => &mut self.declared,
        };
        list.push(entry);
    }

    /// The last that can be seen at the top level of a chunk, of those in chunks before.
    pub fn before(&self, chunk: u32) -> Option<&VarEntry> {
        let last = |list: &'_ [VarEntry]| list.partition_point(|it| it.site.chunk < chunk).checked_sub(1);
        last(&self.declared)
            .map(|at| &self.declared[at])
            .or_else(|| last(&self.assigned).map(|at| &self.assigned[at]))
    }

    /// The first of chunks after this one.
    pub fn after(&self, chunk: u32) -> Option<&VarEntry> {
        let first = |list: &'_ [VarEntry]| list.partition_point(|it| it.site.chunk <= chunk);
        self.declared
            .get(first(&self.declared))
            .or_else(|| self.assigned.get(first(&self.assigned)))
    }

    /// Whether a variable of the top level is declared or assigned at this place.
    pub fn has_root(&self, site: Site) -> bool {
        [&self.declared, &self.assigned, &self.hidden]
            .into_iter()
            .any(|list| {
                list.binary_search_by_key(&(site.chunk, site.def), |it| (it.site.chunk, it.site.def))
                    .is_ok()
            })
    }
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

/// What one file declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileSymbols {
    pub agents: FxHashMap<Name, AgentEntry>,
    pub blocks: FxHashMap<Name, BlockEntry>,
    pub imports: FxHashMap<Name, ImportEntry>,
    /// `use` targets in order, with the place of a later `use` of the same target.
    pub targets: Vec<(String, Option<Site>)>,
    pub skills: FxHashSet<String>,
    pub vars: FxHashMap<Name, Vars>,
    /// By the chunk of the later declaration.
    pub clashes: FxHashMap<u32, Vec<Clash>>,
    /// Uses of a target already used, by the later's chunk: (later, first).
    pub repeated_targets: FxHashMap<u32, Vec<(Site, Site)>>,
    pub inputs: Vec<InputSig>,
    pub outputs: Vec<Name>,
    pub positions: FxHashMap<Chunk, u32>,
    /// Blocks that can call themselves, directly or through others.
    pub recursive: FxHashSet<Name>,
    /// The first chunk that runs anything.
    pub first_run: Option<u32>,
}

/// Puts the signatures of a file's chunks together.
pub(crate) fn fold(db: &dyn Db, file: SourceFile) -> FileSymbols {
    let mut out = FileSymbols::default();
    let mut first_direct: FxHashMap<Name, (Site, DefKind)> = FxHashMap::default();
    let mut first_target: FxHashMap<String, Site> = FxHashMap::default();
    for (index, chunk) in file.chunks(db).iter().enumerate() {
        let at = |def| Site {
            file,
            chunk: index as u32,
            def,
        };
        out.positions.insert(*chunk, index as u32);
        let sig = crate::queries::declarations(db, *chunk);
        if sig.runs && out.first_run.is_none() {
            out.first_run = Some(index as u32);
        }
        out.skills.extend(sig.skills.iter().cloned());
        for it in &sig.agents {
            let site = at(it.def);
            let entry = AgentEntry {
                site,
                persists: it.persists,
                short_lived: it.short_lived,
                prompted: it.prompted,
            };
            declare_global(&mut out, &it.name, DefKind::Agent, site);
            out.agents.entry(it.name.clone()).or_insert(entry);
        }
        for it in &sig.blocks {
            let site = at(it.def);
            let entry = BlockEntry {
                site,
                params: it.params.clone(),
                calls: it.calls.clone(),
            };
            declare_global(&mut out, &it.name, DefKind::Block, site);
            out.blocks.entry(it.name.clone()).or_insert(entry);
        }
        for it in &sig.uses {
            let site = it.def.map(at);
            out.targets.push((it.target.clone(), site));
            if let Some(site) = site {
                match first_target.get(&it.target) {
                    Some(first) => out
                        .repeated_targets
                        .entry(site.chunk)
                        .or_default()
                        .push((site, *first)),
                    None => {
                        first_target.insert(it.target.clone(), site);
                        declare_global(&mut out, &it.name, DefKind::Import, site);
                    }
                }
            }
            let entry = ImportEntry {
                site,
                target: it.target.clone(),
            };
            out.imports.entry(it.name.clone()).or_insert(entry);
        }
        out.inputs.extend(sig.inputs.iter().cloned());
        for name in &sig.outputs {
            if !out.outputs.contains(name) {
                out.outputs.push(name.clone());
            }
        }
        for it in &sig.vars {
            let site = at(it.def);
            if let VarPlace::Root { direct: true, .. } = it.place
                && it.kind.declares_slot()
            {
                match first_direct.get_mut(&it.name) {
                    // From here on it is an output.
                    Some((_, first_kind)) if it.promotes && *first_kind != DefKind::Output => {
                        *first_kind = DefKind::Output;
                    }
                    Some((first, first_kind)) => out.clashes.entry(site.chunk).or_default().push(Clash {
                        site,
                        first: *first,
                        name: it.name.clone(),
                        kind: it.kind,
                        first_kind: *first_kind,
                    }),
                    None => {
                        first_direct.insert(it.name.clone(), (site, it.kind));
                    }
                }
            }
            out.vars.entry(it.name.clone()).or_default().push(VarEntry {
                site,
                kind: it.kind,
                place: it.place.clone(),
            });
        }
    }
    out.recursive = recursive(&out.blocks);
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
            name: name.clone(),
            kind,
            first_kind,
        });
    }
}

fn recursive(blocks: &FxHashMap<Name, BlockEntry>) -> FxHashSet<Name> {
    let mut out = FxHashSet::default();
    for name in blocks.keys() {
        let mut seen: FxHashSet<&Name> = FxHashSet::default();
        let mut open: Vec<&Name> = blocks[name].calls.iter().collect();
        while let Some(next) = open.pop() {
            if next == name {
                out.insert(name.clone());
                break;
            }
            if seen.insert(next)
                && let Some(block) = blocks.get(next)
            {
                open.extend(&block.calls);
            }
        }
    }
    out
}

/// What a file sees: its own declarations, and agents and blocks of the local files it uses, at any depth.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
}

impl ProgramScope {
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.own.agents.get(name).or_else(|| self.agents.get(name))
    }
    pub fn block(&self, name: &str) -> Option<&BlockEntry> {
        self.own.blocks.get(name).or_else(|| self.blocks.get(name))
    }
    pub fn import(&self, name: &str) -> Option<&ImportEntry> {
        self.own.imports.get(name)
    }
    /// Whether anything that has a value has this name: a variable of any kind, anywhere, or an agent.
    pub fn has_value(&self, name: &str) -> bool {
        self.own.vars.contains_key(name) || self.foreign.contains(name) || self.agent(name).is_some()
    }
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
        if let Some(Some(used)) = out.files.get(target).copied() {
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
            out.agents.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    for (name, entry) in &symbols.blocks {
        if !out.own.blocks.contains_key(name) {
            out.blocks.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    for (name, vars) in &symbols.vars {
        if !vars.elsewhere.is_empty() {
            out.foreign.insert(name.clone());
        }
    }
    for used in used_files(db, file) {
        visit(db, used, seen, out);
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
