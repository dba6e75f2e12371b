//! Signatures of chunks, without ranges, and what a file and the files it uses declare together.
//!
//! A keystroke inside a prompt changes no signature, so that nothing built on them is computed again.

use std::collections::BTreeSet;
use std::sync::Arc;

use prose_model::Name;
use prose_syntax::TextSize;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::*;
use crate::scopes::{Def, DefKind, FrameKind, Holds, ROOT, RefKind, Scopes, Valued};
use crate::vars::{VarEntry, VarPlace, VarTable, Vars};
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
    /// Whether there is no statement at all.
    pub empty: bool,
    /// The statement of the top level after which none is reached.
    pub leaves: Option<u32>,
    /// Whether any statement runs, also without asking for anything.
    pub steps: bool,
    /// Whether one does after the statement after which none is reached.
    pub steps_after: bool,
    /// Whether an error of the parser may have cost it declarations or uses.
    pub broken: bool,
    /// Whether the top level may end with `output EXPR`, so that its result may be anything.
    pub returns: bool,
    /// Whether the top level asks the judge.
    pub judges: bool,
    /// Whether a block does.
    pub judges_in_blocks: bool,
    /// Skills that agents and sessions name.
    pub wanted_skills: Vec<String>,
    /// Variables that are bound to what a call gives, or to other variables.
    pub held: Box<[(Name, Holds)]>,
    /// For each definition how many of its name come before it in the chunk.
    pub nths: Box<[u32]>,
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
    pub params: Arc<[Name]>,
    pub calls: Box<[Name]>,
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
    /// Declared by a statement of the top level itself, not in a body of it.
    pub direct: bool,
    /// `output x = x`
    pub promotes: bool,
    /// Whether what it is bound to has another use than its name.
    pub valued: Valued,
    /// Whether blocks may be called while it is in sight.
    pub calls: bool,
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
        let frame = frame_around(scopes, used.scope);
        calls.entry(frame).or_default().insert(used.name.clone());
    }
    let mut block_frames = (0..scopes.frames.len() as u32)
        .filter(|it| matches!(scopes.frames[*it as usize].kind, FrameKind::Block(_)))
        .collect::<Vec<_>>()
        .into_iter();
    let mut named: Vec<(TextSize, u32)> = (0u32..)
        .zip(&scopes.defs)
        .filter(|(_, def)| def.kind.is_global() || def.kind == DefKind::Input)
        .map(|(index, def)| (def.range.start(), index))
        .collect();
    named.sort_unstable();
    let mut items = Items {
        out: &mut out,
        scopes,
        named: &named,
        calls: &calls,
        block_frames: &mut block_frames,
        in_block: false,
    };
    items.stmts(&body.stmts);
    // Where the judge is last asked in each frame; the places are in order.
    let judged = scopes.judged.iter().map(|it| (frame_around(scopes, it.1), it.0));
    let last_judged: FxHashMap<u32, u32> = judged.collect();
    let mut outputs = FxHashSet::default();
    for (index, def) in (0u32..).zip(&scopes.defs) {
        if def.kind.is_global() {
            continue;
        }
        let outermost = scopes.outermost_frame(def.scope);
        if def.kind == DefKind::Output && *outermost == FrameKind::Root && outputs.insert(&def.name) {
            out.outputs.push(def.name.clone());
        }
        let in_root = *outermost == FrameKind::Root && scopes.frame_of(def.scope) == ROOT;
        let hidden = scopes.scope(def.scope).home != ROOT;
        let place = match def.kind {
            DefKind::Implicit if in_root => VarPlace::HiddenImplicit,
            DefKind::Implicit => VarPlace::ElsewhereImplicit,
            DefKind::Assigned if !in_root => VarPlace::ElsewhereAssigned,
            _ if !in_root => VarPlace::Elsewhere,
            DefKind::Assigned if hidden => VarPlace::HiddenAssigned,
            DefKind::Assigned => VarPlace::Assigned,
            kind if kind.is_scoped() => VarPlace::HiddenScoped,
            _ if hidden => VarPlace::Hidden,
            _ => VarPlace::Declared,
        };
        out.vars.push(VarSig {
            name: def.name.clone(),
            def: index,
            kind: def.kind,
            place,
            direct: in_root && def.scope == ROOT,
            promotes: def.promotes,
            valued: match is_judged(scopes, &last_judged, def) {
                true => Valued::Yes,
                false => def.valued,
            },
            calls: calls.contains_key(&frame_around(scopes, def.scope)),
        });
    }
    for (_, scope) in &scopes.judged {
        match frame_around(scopes, *scope) {
            ROOT => out.judges = true,
            _ => out.judges_in_blocks = true,
        }
    }
    pauses(body, &mut out);
    out.held = scopes.held.clone();
    let mut met: FxHashMap<&Name, u32> = FxHashMap::default();
    let nths = scopes.defs.iter().map(|def| {
        let count = met.entry(&def.name).or_default();
        *count += 1;
        *count - 1
    });
    out.nths = nths.collect();
    out.empty = body.stmts.is_empty();
    let leaves = crate::checks::lints::leaving(&body.stmts);
    out.leaves = leaves.map(|it| it as u32);
    let steps = |list: &[Stmt]| list.iter().any(|it| matches!(it.kind, StmtKind::Expr(_)));
    out.steps = steps(&body.stmts);
    out.steps_after = leaves.is_some_and(|it| steps(&body.stmts[it + 1..]));
    let is_error = |it: &prose_syntax::SyntaxError| it.severity() == prose_model::codes::Severity::Error;
    out.broken = body.errors.iter().any(is_error);
    out.runs = body
        .stmts
        .iter()
        .any(|stmt| matches!(&stmt.kind, StmtKind::Expr(expr) if runs(expr)));
    out
}

/// A name that a chunk uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub name: Name,
    /// Each kind of use is one bit.
    kinds: u16,
}

impl Usage {
    /// Whether it is used in this way.
    pub fn has(&self, kind: RefKind) -> bool {
        self.kinds & (1 << kind as u16) != 0
    }

    /// Whether any use of it reads it or runs what it names.
    pub fn reads(&self) -> bool {
        self.kinds & !(1 << RefKind::Assign as u16) != 0
    }
}

/// Reads the names that a chunk uses, each once, in the order of their first use.
pub(crate) fn usages_of(scopes: &Scopes) -> Vec<Usage> {
    let mut index: FxHashMap<&Name, usize> = FxHashMap::default();
    let mut out: Vec<Usage> = Vec::new();
    for used in &scopes.refs {
        let at = *index.entry(&used.name).or_insert_with(|| {
            out.push(Usage {
                name: used.name.clone(),
                kinds: 0,
            });
            out.len() - 1
        });
        out[at].kinds |= 1 << used.kind as u16;
    }
    out
}

/// The frame of the top level, a block or an agent that a scope is in.
fn frame_around(scopes: &Scopes, scope: u32) -> u32 {
    scopes.frames_from(scopes.frame_of(scope)).last().unwrap_or(ROOT)
}

/// Whether the judge is asked, in the same block of this chunk, when a variable may be in sight.
fn is_judged(scopes: &Scopes, last_judged: &FxHashMap<u32, u32>, def: &Def) -> bool {
    if last_judged.is_empty() {
        return false;
    }
    let frame = frame_around(scopes, def.scope);
    let Some(last) = last_judged.get(&frame) else {
        return false;
    };
    *last >= def.seq || scopes.ancestors(def.scope).any(|it| scopes.scope(it).looped)
}

/// Notes which inputs do more than give a value: those that do not begin the program make it wait.
fn pauses(body: &ChunkBody, out: &mut Declarations) {
    if out.vars.iter().all(|it| it.kind != DefKind::Input) {
        return;
    }
    let mut ran = false;
    let mut leading = FxHashSet::default();
    for stmt in &body.stmts {
        let StmtKind::Expr(expr) = &stmt.kind else {
            continue;
        };
        match &expr.kind {
            ExprKind::Input { name: Some(name), .. } if !ran => drop(leading.insert(&name.name)),
            _ => ran |= runs(expr),
        }
    }
    for var in out.vars.iter_mut().filter(|it| it.kind == DefKind::Input) {
        if !leading.contains(&var.name) {
            var.valued = Valued::Yes;
        }
    }
}

struct Items<'a> {
    out: &'a mut Declarations,
    scopes: &'a Scopes,
    /// Globals and inputs by where they stand.
    named: &'a [(TextSize, u32)],
    calls: &'a FxHashMap<u32, BTreeSet<Name>>,
    block_frames: &'a mut std::vec::IntoIter<u32>,
    in_block: bool,
}

impl Items<'_> {
    fn def(&self, ident: &Ident) -> Option<u32> {
        self.at(ident).find(|it| self.scopes.def(*it).kind.is_global())
    }

    /// What is declared where a name stands.
    fn at(&self, ident: &Ident) -> impl Iterator<Item = u32> + '_ {
        let range = ident.range;
        let first = self.named.partition_point(|it| it.0 < range.start());
        self.named[first..]
            .iter()
            .take_while(move |it| it.0 == range.start())
            .map(|it| it.1)
            .filter(move |it| self.scopes.def(*it).range == range)
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
                StmtKind::SkillImport { skill, .. } => {
                    self.out.skills.extend(skill.iter().map(|it| it.0.clone()))
                }
                StmtKind::Agent(it) => {
                    let Some(name) = &it.name else { continue };
                    let Some(def) = self.def(name) else { continue };
                    let persists = property(&it.props, "persist").is_some_and(|it| !is_false(&it.value));
                    let short_lived =
                        crate::lower::persist(&it.props) == Some(prose_model::Persist::Execution);
                    let prompted = property(&it.props, "prompt").is_some();
                    self.skills(&it.props);
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
                                .into_iter()
                                .flatten()
                                .cloned()
                                .collect(),
                        });
                    }
                    let outer = std::mem::replace(&mut self.in_block, true);
                    self.stmts(&it.body.stmts);
                    self.in_block = outer;
                }
                StmtKind::Expr(it) => self.expr(it),
            }
        }
    }

    /// Notes the skills that properties name.
    fn skills(&mut self, props: &[Property]) {
        let Some(skills) = property(props, "skills") else {
            return;
        };
        let items = match &skills.value {
            PropValue::Expr(Expr {
                kind: ExprKind::List { items, .. },
                ..
            })
            | PropValue::Dashes(items, _) => items.as_slice(),
            PropValue::Expr(it) => std::slice::from_ref(it),
            _ => &[],
        };
        for item in items {
            match &item.kind {
                ExprKind::Text(text) => self.out.wanted_skills.extend(text.plain()),
                ExprKind::Name(name) => self.out.wanted_skills.push(name.to_string()),
                _ => {}
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Session(it) => self.skills(&it.props),
            ExprKind::Return { .. } => self.out.returns |= !self.in_block,
            _ => {}
        }
        if let ExprKind::Input {
            name: Some(name),
            value,
            default,
        } = &expr.kind
        {
            let has_default = default.is_some() || value.as_ref().is_some_and(|it| is_default(it));
            // Inputs of blocks are asked for when they are met; they are no part of the contract.
            let at_root = self
                .at(name)
                .any(|it| *self.scopes.outermost_frame(self.scopes.def(it).scope) == FrameKind::Root);
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
    /// Names of agents, blocks and imports.
    pub globals: FxHashSet<Name>,
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
    let mut first_direct: FxHashMap<&Name, (Site, DefKind)> = FxHashMap::default();
    let mut first_target: FxHashMap<&str, (Site, &Name)> = FxHashMap::default();
    let mut outputs = FxHashSet::default();
    let mut vars: Vec<(&Name, VarEntry)> = Vec::new();
    for (index, chunk) in file.chunks(db).iter().enumerate() {
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
                    out.agents.entry(it.name.clone()).or_insert(entry);
                }
                Declared::Block(it) => {
                    let site = at(it.def);
                    let entry = BlockEntry {
                        site,
                        params: it.params.clone(),
                    };
                    calls.entry(&it.name).or_insert(&it.calls);
                    declare_global(&mut out, &it.name, DefKind::Block, site);
                    out.blocks.entry(it.name.clone()).or_insert(entry);
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
                                .push((site, *first, (*name).clone())),
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
                    out.imports.entry(it.name.clone()).or_insert(entry);
                }
            }
        }
        out.inputs.extend(sig.inputs.iter().cloned());
        for name in &sig.outputs {
            if outputs.insert(name) {
                out.outputs.push(name.clone());
            }
        }
        for it in &sig.vars {
            let site = at(it.def);
            if it.direct && it.kind.declares_slot() {
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
                        first_direct.insert(&it.name, (site, it.kind));
                    }
                }
            }
            vars.push((
                &it.name,
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
        for chunk in file.chunks(db).iter() {
            let sig = crate::queries::declarations(db, *chunk);
            out.held.extend(sig.held.iter().cloned());
        }
    }
    if let (Some(after), Some((first, last))) = (leaving, unreached) {
        out.unreached = Some(Unreached { after, first, last });
    }
    out.vars = VarTable::new(vars);
    out.recursive = recursive(&calls);
    let globals = out
        .agents
        .keys()
        .chain(out.blocks.keys())
        .chain(out.imports.keys());
    out.globals = globals.cloned().collect();
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
                            out.insert(member.clone());
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
            out.agents.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    for (name, entry) in &symbols.blocks {
        if !out.own.blocks.contains_key(name) {
            out.blocks.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    for name in symbols.vars.keys() {
        if symbols.vars.get(name).is_some_and(Vars::any_elsewhere) {
            out.foreign.insert(name.clone());
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
