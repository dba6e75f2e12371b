//! Names for the editor: what stands at a place, what it means, where else it is used, what could be written.

use std::sync::Arc;

use crate::Name;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashMap;

use crate::resolve::{Binding, Resolved, Resolver, Slot};
use crate::scopes::{DefKind, FrameKind, RefKind, Scopes};
use crate::symbols::{ProgramScope, Site};
use crate::view::Names;
use crate::{Chunk, Db, FileId, FileState, RootDatabase, SourceFile, chunk_at, labels, queries};

/// A declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The file it is in.
    pub file: FileId,
    /// What it declares.
    pub kind: DefKind,
    /// The name.
    pub name: Name,
    /// Where the name stands; for a `use` without `as` its path, for the `item` of a pipeline the word after the bar.
    pub range: TextRange,
    /// The statement or construct it belongs to.
    pub full_range: TextRange,
    /// The block it is in.
    pub block: Option<Name>,
    slot: Slot,
    site: Site,
}

impl Definition {
    /// The file as an input.
    pub fn source(&self) -> SourceFile {
        self.site.file
    }
}

/// A name in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameUse {
    /// The name.
    pub name: Name,
    /// Where it stands.
    pub range: TextRange,
    /// How it is used; `None` where it is declared.
    pub role: Option<RefKind>,
    /// How sure it is that it has a value.
    pub binding: Binding,
    /// What it means.
    pub definition: Option<Definition>,
}

/// A place where something is used or declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The file.
    pub file: FileId,
    /// The name.
    pub range: TextRange,
    /// How it is used; `None` where it is declared.
    pub role: Option<RefKind>,
}

/// A name in the text and the sort of thing that it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedRange {
    /// Where it stands.
    pub range: TextRange,
    /// How it is used; `None` where it is declared.
    pub role: Option<RefKind>,
    /// What it means.
    pub kind: DefKind,
}

/// A name that could be written at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleName {
    /// The name.
    pub name: Name,
    /// What it is.
    pub kind: DefKind,
    /// Where it is declared; missing for what has no place of its own.
    pub definition: Option<Definition>,
}

/// What a program takes and gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramContract {
    /// Inputs in order, and whether each has a default.
    pub inputs: Vec<(Name, bool)>,
    /// Outputs in order.
    pub outputs: Vec<Name>,
}

/// A chunk with everything about its names.
struct View {
    file: SourceFile,
    chunk: Chunk,
    /// Its position in the file.
    at: u32,
    start: TextSize,
    scopes: Arc<Scopes>,
    program: Arc<ProgramScope>,
}

impl View {
    fn new(db: &dyn Db, file: SourceFile, index: usize) -> Option<View> {
        let chunk = *file.chunks(db).get(index)?;
        let start = *file.starts(db).get(index)?;
        Some(View {
            file,
            chunk,
            at: index as u32,
            start,
            scopes: queries::scopes(db, chunk).clone(),
            program: queries::program_scope(db, file).clone(),
        })
    }

    fn resolver(&self) -> Resolver<'_> {
        Resolver {
            file: self.file,
            chunk: self.chunk,
            at: self.at,
            scopes: &self.scopes,
            program: &*self.program,
        }
    }

    fn definition(&self, db: &dyn Db, def: u32) -> Option<Definition> {
        let it = self.scopes.defs.get(def as usize)?;
        let block = match self.scopes.outermost_frame(it.scope) {
            FrameKind::Block(name) if !name.is_empty() => Some(*name),
            _ => None,
        };
        Some(Definition {
            file: self.file.id(db),
            kind: it.kind,
            name: it.name,
            range: it.range + self.start,
            full_range: it.full + self.start,
            block,
            slot: self.resolver().slot_of_def(def),
            site: Site {
                file: self.file,
                chunk: self.chunk,
                def,
                nth: 0,
            },
        })
    }
}

fn definition_of(db: &dyn Db, site: Site) -> Option<Definition> {
    let index = *queries::positions(db, site.file).get(&site.chunk)?;
    View::new(db, site.file, index as usize)?.definition(db, site.def)
}

fn views(db: &dyn Db, file: SourceFile) -> impl Iterator<Item = View> + '_ {
    (0..file.chunks(db).len()).filter_map(move |index| View::new(db, file, index))
}

/// The name at an offset: declared or used, in code, in `{…}` of a string or discretion, or as a whole discretion.
pub fn name_at(db: &dyn Db, file: SourceFile, offset: TextSize) -> Option<NameUse> {
    let (index, _, start) = chunk_at(db, file, offset)?;
    // A name that ends where the next chunk begins belongs to the chunk before.
    let before = (offset == start && index > 0).then(|| index - 1);
    [Some(index), before].into_iter().flatten().find_map(|index| {
        let view = View::new(db, file, index)?;
        let local = offset.checked_sub(view.start)?;
        name_in(db, &view, local)
    })
}

fn name_in(db: &dyn Db, view: &View, local: TextSize) -> Option<NameUse> {
    let scopes = &view.scopes;
    let used = scopes
        .refs
        .iter()
        .filter(|it| it.range.contains_inclusive(local))
        .max_by_key(|it| it.range.start());
    if let Some(used) = used {
        let resolved = view.resolver().resolve(used);
        let plain = matches!(used.kind, RefKind::Bare | RefKind::Word | RefKind::Insert);
        if plain && resolved.binding == Binding::Unbound {
            return None;
        }
        let mut definition = resolved.site.and_then(|site| definition_of(db, site));
        if used.kind == RefKind::Assign && definition.is_none() {
            let own = scopes.defs.iter().position(|it| it.range == used.range);
            definition = own.and_then(|def| view.definition(db, def as u32));
        }
        return Some(NameUse {
            name: used.name,
            range: used.range + view.start,
            role: Some(used.kind),
            binding: resolved.binding,
            definition,
        });
    }
    let defs = &mut scopes.defs.iter();
    let def = defs.position(|it| it.kind != DefKind::Implicit && it.range.contains_inclusive(local));
    let Some(def) = def else {
        let (key, site) = labels::at(db, view.file, view.chunk, local)?;
        return Some(NameUse {
            name: key.name,
            range: key.range + view.start,
            role: Some(RefKind::Label),
            binding: Binding::Sure,
            definition: definition_of(db, site),
        });
    };
    let it = scopes.def(def as u32);
    Some(NameUse {
        name: it.name,
        range: it.range + view.start,
        role: None,
        binding: Binding::Sure,
        definition: view.definition(db, def as u32),
    })
}

/// What the name at an offset means.
pub fn resolve_at(db: &dyn Db, file: SourceFile, offset: TextSize) -> Option<Definition> {
    name_at(db, file, offset)?.definition
}

/// Every declaration of a file, in order; assignments to what is declared elsewhere are not among them.
pub fn definitions(db: &dyn Db, file: SourceFile) -> Vec<Definition> {
    let mut out = Vec::new();
    for view in views(db, file) {
        for (index, def) in view.scopes.defs.iter().enumerate() {
            let declares = match def.kind {
                DefKind::Implicit => false,
                DefKind::Assigned => {
                    let resolved = view.resolver().variable(&def.name, def.scope, def.seq);
                    let own = Site {
                        file: view.file,
                        chunk: view.chunk,
                        def: index as u32,
                        nth: 0,
                    };
                    resolved.binding != Binding::Sure || resolved.site == Some(own)
                }
                _ => true,
            };
            if declares {
                out.extend(view.definition(db, index as u32));
            }
        }
    }
    out
}

/// Every name in a range of a file that means something, in the order of the text; those in texts too. What is declared
/// nowhere is left out, and so are words that only look like names.
pub fn names_in(db: &dyn Db, file: SourceFile, range: TextRange) -> Vec<NamedRange> {
    let starts = file.starts(db);
    let first = starts
        .partition_point(|it| *it <= range.start())
        .saturating_sub(1);
    let end = starts.partition_point(|it| *it < range.end());
    let mut out = Vec::new();
    for view in (first..end).filter_map(|index| View::new(db, file, index)) {
        let resolver = view.resolver();
        let mut put = |range: TextRange, role, kind| {
            out.push(NamedRange {
                range: range + view.start,
                role,
                kind,
            });
        };
        for def in view.scopes.defs.iter() {
            if !matches!(def.kind, DefKind::Implicit | DefKind::Assigned) {
                put(def.range, None, def.kind);
            }
        }
        for used in view.scopes.refs.iter() {
            let resolved = resolver.resolve(used);
            let plain = matches!(used.kind, RefKind::Bare | RefKind::Word | RefKind::Insert);
            if plain && resolved.binding == Binding::Unbound {
                continue;
            }
            match (resolved.kind, used.kind) {
                (Some(kind), _) => put(used.range, Some(used.kind), kind),
                (None, RefKind::Assign) => put(used.range, Some(used.kind), DefKind::Assigned),
                (None, _) => {}
            }
        }
    }
    out.retain(|it| range.intersect(it.range).is_some());
    // A declaration and a use at one place are one name: the declaration counts.
    out.sort_by_key(|it| (it.range.start(), it.range.end(), it.role));
    out.dedup_by_key(|it| it.range);
    out
}

/// Every place where a declaration's thing is declared or used, in every file that can see it, ordered.
pub fn references(db: &RootDatabase, of: &Definition) -> Vec<Reference> {
    let own = of.source();
    let mut files = vec![own];
    if matches!(of.slot, Slot::Global(_, DefKind::Agent | DefKind::Block, _)) {
        for (_, file) in db.files() {
            if file != own && queries::program_scope(db, file).used.contains(&own) {
                files.push(file);
            }
        }
    }
    let mut out = Vec::new();
    for file in files {
        for view in views(db, file) {
            collect(db, &view, of, &mut out);
        }
    }
    for (file, chunk, range) in labels::of(db, &of.slot, of.kind, &of.name, of.site) {
        let at = queries::positions(db, file).get(&chunk).copied();
        if let Some(start) = at.and_then(|at| file.starts(db).get(at as usize).copied()) {
            out.push(Reference {
                file: file.id(db),
                range: range + start,
                role: Some(RefKind::Label),
            });
        }
    }
    out.sort_by_key(|it| (it.file, it.range.start(), it.range.end(), it.role));
    out.dedup_by_key(|it| (it.file, it.range));
    out
}

fn collect(db: &dyn Db, view: &View, of: &Definition, out: &mut Vec<Reference>) {
    let file = view.file.id(db);
    let resolver = view.resolver();
    let assigned: FxHashMap<TextRange, u32> = (0u32..)
        .zip(&view.scopes.defs)
        .filter(|(_, def)| def.name == of.name && def.kind == DefKind::Assigned)
        .map(|(index, def)| (def.range, index))
        .collect();
    for (index, def) in view.scopes.defs.iter().enumerate() {
        let shown = def.name == of.name && !matches!(def.kind, DefKind::Implicit | DefKind::Assigned);
        if shown && resolver.slot_of_def(index as u32) == of.slot {
            out.push(Reference {
                file,
                range: def.range + view.start,
                role: None,
            });
        }
    }
    for used in view.scopes.refs.iter().filter(|it| it.name == of.name) {
        let resolved = resolver.resolve(used);
        let slot = match used.kind {
            RefKind::Assign => assigned.get(&used.range).map(|def| resolver.slot_of_def(*def)),
            _ => resolver.slot_of(&resolved, &used.name),
        };
        if slot.as_ref() == Some(&of.slot) {
            out.push(Reference {
                file,
                range: used.range + view.start,
                role: Some(used.kind),
            });
        }
    }
}

/// The names that are in sight at an offset: variables, agents, blocks and imported programs, sorted by name.
pub fn scope_at(db: &dyn Db, file: SourceFile, offset: TextSize) -> Vec<VisibleName> {
    let Some((index, chunk, start)) = chunk_at(db, file, offset) else {
        return Vec::new();
    };
    let Some(view) = View::new(db, file, index) else {
        return Vec::new();
    };
    let local = offset - start;
    let text = chunk.text(db);
    let scope = scope_around(&view.scopes, text, local);
    // A statement at whose end the cursor stands is still being written.
    let over = |end: TextSize| {
        end <= local
            && text.as_bytes()[..usize::from(local).min(text.len())]
                .get(end.into()..)
                .is_some_and(|gap| gap.iter().any(|it| matches!(it, b'\n' | b'\r')))
    };
    let seq = view
        .scopes
        .defs
        .iter()
        .filter(|it| {
            if it.kind.is_scoped() {
                it.range.start() < local
            } else {
                over(it.full.end())
            }
        })
        .map(|it| it.seq + 1)
        .max()
        .unwrap_or(0);
    let mut out = Vec::new();
    let resolver = view.resolver();
    for name in view.program.own.vars.keys() {
        let Resolved {
            binding, site, kind, ..
        } = resolver.variable(name, scope, seq);
        if let (Binding::Sure, Some(site), Some(kind)) = (binding, site, kind) {
            out.push(VisibleName {
                name: *name,
                kind,
                definition: definition_of(db, site),
            });
        }
    }
    let program = &view.program;
    let agents = program.own.agents.iter().chain(&program.agents);
    out.extend(
        agents
            .map(|(name, it)| (name, DefKind::Agent, Some(it.site)))
            .map(|it| global(db, it)),
    );
    let blocks = program.own.blocks.iter().chain(&program.blocks);
    out.extend(
        blocks
            .map(|(name, it)| (name, DefKind::Block, Some(it.site)))
            .map(|it| global(db, it)),
    );
    let imports = program.own.imports.iter();
    out.extend(
        imports
            .map(|(name, it)| (name, DefKind::Import, it.site))
            .map(|it| global(db, it)),
    );
    out.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    out
}

fn global(db: &dyn Db, (name, kind, site): (&Name, DefKind, Option<Site>)) -> VisibleName {
    VisibleName {
        name: *name,
        kind,
        definition: site.and_then(|site| definition_of(db, site)),
    }
}

/// The innermost scope at an offset of a chunk. On a fresh line below a body the indentation tells whether the line
/// still belongs to it.
fn scope_around(scopes: &Scopes, text: &str, local: TextSize) -> u32 {
    let mut at = usize::from(local).min(text.len());
    // Offsets of the caller are not checked.
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let indent = |at: usize| {
        let line = text[..at].rfind(['\n', '\r']).map_or(0, |it| it + 1);
        text[line..].len() - text[line..].trim_start_matches(' ').len()
    };
    let column = indent(at);
    let gap_breaks = |end: usize, at: usize| end == at || text[end..at].contains(['\n', '\r']);
    let inside = |range: TextRange| {
        if range.contains(local) {
            return true;
        }
        let (start, end) = (usize::from(range.start()), usize::from(range.end()));
        at >= end
            && !range.is_empty()
            && text
                .get(end..at)
                .is_some_and(|gap| gap.trim().is_empty())
            // Blanks at the end of a line belong to what stands on it.
            && (!gap_breaks(end, at) || column > indent(start))
    };
    let found = (1..scopes.scopes.len() as u32)
        .rev()
        .find(|it| inside(scopes.scope(*it).range));
    found.unwrap_or(crate::scopes::ROOT)
}

/// What a program takes and gives.
pub fn contract(db: &dyn Db, file: SourceFile) -> ProgramContract {
    let symbols = queries::file_symbols(db, file);
    ProgramContract {
        inputs: symbols
            .inputs
            .iter()
            .map(|it| (it.name, it.has_default))
            .collect(),
        outputs: symbols.outputs.clone(),
    }
}

/// The parameters of a block that the file sees.
pub fn block_params(db: &dyn Db, file: SourceFile, block: &str) -> Option<Vec<Name>> {
    queries::program_scope(db, file)
        .block(&Name::find(block)?)
        .map(|it| it.params.to_vec())
}

/// The targets of the file's `use` statements, as written, each once.
pub fn use_targets(db: &dyn Db, file: SourceFile) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for (target, _) in &queries::file_symbols(db, file).targets {
        if !out.contains(target) {
            out.push(target.clone());
        }
    }
    out
}

/// Whether a file uses another, directly or through others, so that it sees what that one declares.
pub fn sees(db: &dyn Db, file: SourceFile, other: SourceFile) -> bool {
    let scope = queries::program_scope(db, file);
    let directly = || file.uses(db).iter().any(|it| it.1 == Some(other));
    file == other || scope.used.contains(&other) || directly()
}

/// The file that a `use` target leads to, when it is known and has a text.
pub fn used_file(db: &dyn Db, file: SourceFile, target: &str) -> Option<SourceFile> {
    let found = file.uses(db).iter().find(|it| it.0 == target)?.1?;
    (found.state(db) == FileState::Text).then_some(found)
}

/// The file that a call of an imported program runs.
pub fn program_file(db: &dyn Db, file: SourceFile, import: &str) -> Option<SourceFile> {
    let scope = queries::program_scope(db, file);
    used_file(db, file, &scope.import(&Name::find(import)?)?.target)
}
