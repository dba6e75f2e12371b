//! Signatures of chunks: what each declares and uses, without ranges.
//!
//! A keystroke inside a prompt changes no signature, so that nothing built on them is computed again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Name;
use prose_syntax::TextSize;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::*;
use crate::name::Numbering;
use crate::scopes::{Def, DefKind, FrameKind, Holds, ROOT, RefKind, Scopes, Valued};
use crate::vars::VarPlace;

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
        for frame in scopes.frames_from(scopes.frame_of(used.scope)) {
            calls.entry(frame).or_default().insert(used.name);
        }
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
    // Where the judge is last asked in each frame or in one within; the places are in order.
    let mut last_judged: FxHashMap<u32, u32> = FxHashMap::default();
    for (seq, scope) in &scopes.judged {
        last_judged.extend(
            scopes
                .frames_from(scopes.frame_of(*scope))
                .map(|frame| (frame, *seq)),
        );
    }
    let mut outputs = FxHashSet::default();
    for (index, def) in (0u32..).zip(&scopes.defs) {
        if def.kind.is_global() {
            continue;
        }
        let outermost = scopes.outermost_frame(def.scope);
        if def.kind == DefKind::Output && *outermost == FrameKind::Root && outputs.insert(&def.name) {
            out.outputs.push(def.name);
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
            name: def.name,
            def: index,
            kind: def.kind,
            place,
            direct: in_root && def.scope == ROOT,
            promotes: def.promotes,
            valued: match is_judged(scopes, &last_judged, def) {
                true => Valued::Yes,
                false => def.valued,
            },
            calls: calls.contains_key(&scopes.frame_of(def.scope)),
        });
    }
    for (_, scope) in &scopes.judged {
        match frame_around(scopes, *scope) {
            ROOT => out.judges = true,
            _ => out.judges_in_blocks = true,
        }
    }
    pauses(body, scopes, &mut out);
    out.held = scopes.held.clone();
    let mut names = Numbering::new();
    let mut counts: Vec<u32> = Vec::with_capacity(scopes.defs.len());
    let nths = scopes.defs.iter().map(|def| {
        let name = names.meet(def.name) as usize;
        if name == counts.len() {
            counts.push(0);
        }
        counts[name] += 1;
        counts[name] - 1
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
    let mut names = Numbering::new();
    let mut out: Vec<Usage> = Vec::with_capacity(scopes.refs.len());
    for used in &scopes.refs {
        let at = names.meet(used.name) as usize;
        if at == out.len() {
            out.push(Usage {
                name: used.name,
                kinds: 0,
            });
        }
        out[at].kinds |= 1 << used.kind as u16;
    }
    out
}

/// The frame of the top level, a block or an agent that a scope is in.
fn frame_around(scopes: &Scopes, scope: u32) -> u32 {
    scopes.frames_from(scopes.frame_of(scope)).last().unwrap_or(ROOT)
}

/// Whether the judge is asked, in this chunk, when a variable may be in sight: behind it in its frame, or anywhere in a loop
/// around it. What stands before that loop is asked once, and without it.
fn is_judged(scopes: &Scopes, last_judged: &FxHashMap<u32, u32>, def: &Def) -> bool {
    let frame = scopes.frame_of(def.scope);
    let Some(last) = last_judged.get(&frame) else {
        return false;
    };
    let around = scopes.ancestors(def.scope).map(|it| scopes.scope(it));
    let loops = around.take_while(|it| it.frame == frame).filter(|it| it.looped);
    *last >= loops.map(|it| it.seqs.0 + 1).fold(def.seq, u32::min)
}

/// Notes which inputs do more than give a value: those that do not begin the program make it wait.
fn pauses(body: &ChunkBody, scopes: &Scopes, out: &mut Declarations) {
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
            ExprKind::Input { name: Some(name), .. } if !ran => drop(leading.insert(name.range)),
            _ => ran |= runs(expr),
        }
    }
    for var in out.vars.iter_mut().filter(|it| it.kind == DefKind::Input) {
        if !leading.contains(&scopes.def(var.def).range) {
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
                    let named = it.alias.as_ref().map(|it| it.name);
                    let Some(name) = named.or_else(|| crate::paths::default_name(target)) else {
                        continue;
                    };
                    let range = it
                        .alias
                        .as_ref()
                        .map(|it| it.range)
                        .or(it.target.as_ref().map(|it| it.1));
                    let def = range.and_then(|range| self.def(&Ident { name, range }));
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
                        name: name.name,
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
                            name: name.name,
                            def,
                            params: it.params.iter().map(|it| it.name).collect(),
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
                    name: name.name,
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
