//! The checks. Those of a chunk are one query each; this file puts their findings into the file.

mod clashes;
mod fixes;
mod names;
mod near;
mod props;
mod shape;
mod syntax;

use prose_model::Name;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashSet;

use crate::diagnostic::{Finding, Place};
use crate::hir::ChunkBody;
use crate::queries;
use crate::resolve::Resolver;
use crate::scopes::{RefKind, Scopes};
use crate::symbols::{ProgramScope, Site};
use crate::{Chunk, Db, Diagnostic, FileState, SourceFile, Tag};

pub use fixes::{fix_all, fix_code, fixes};

/// What the checks of a chunk look at.
pub(crate) struct Context<'a> {
    db: &'a dyn Db,
    file: SourceFile,
    chunk: u32,
    body: &'a ChunkBody,
    scopes: &'a Scopes,
    program: &'a ProgramScope,
    findings: Vec<Finding>,
}

impl Context<'_> {
    fn resolver(&self) -> Resolver<'_> {
        Resolver {
            file: self.file,
            chunk: self.chunk,
            scopes: self.scopes,
            program: self.program,
        }
    }
    fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
    fn place(&self, site: Site) -> Place {
        if site.file == self.file && site.chunk == self.chunk {
            return Place::Here(self.scopes.def(site.def).range);
        }
        Place::Def(site.file, site.chunk as usize, site.def)
    }
}

/// The findings of one chunk as part of its file.
pub(crate) fn chunk(db: &dyn Db, file: SourceFile, chunk: Chunk) -> Vec<Finding> {
    let program = queries::program_scope(db, file);
    let Some(position) = program.own.positions.get(&chunk).copied() else {
        return Vec::new();
    };
    let body = queries::body(db, chunk);
    let scopes = queries::scopes(db, chunk);
    let mut ctx = Context {
        db,
        file,
        chunk: position,
        body,
        scopes,
        program,
        findings: syntax::findings(body),
    };
    for range in &body.too_deep {
        let start = TextRange::empty(range.start());
        ctx.push(Finding::new(
            "P106",
            start,
            "nested too deeply: move the inner part into a block of its own",
        ));
    }
    names::check(&mut ctx);
    clashes::check(&mut ctx);
    shape::check(&mut ctx);
    ctx.findings
}

/// Everything that is to be said about a file, in the order of the text.
pub fn diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    if file.state(db) != FileState::Text {
        return Vec::new();
    }
    let chunks = file.chunks(db);
    let starts = file.starts(db);
    let mut out = Vec::new();
    for (chunk, start) in chunks.iter().zip(starts.iter()) {
        let findings = queries::check_chunk(db, *chunk);
        out.extend(findings.iter().map(|it| in_file(db, file, *start, it)));
    }
    for (site, finding) in queries::unused(db, file).iter() {
        if let Some(start) = starts.get(site.chunk as usize)
            && let Some(chunk) = chunks.get(site.chunk as usize)
        {
            let range = queries::scopes(db, *chunk).def(site.def).range;
            out.push(in_file(
                db,
                file,
                *start,
                &Finding {
                    range,
                    ..finding.clone()
                },
            ));
        }
    }
    out.sort_by_key(|it| (it.range.start(), it.range.end(), it.code));
    out.dedup();
    out
}

fn in_file(db: &dyn Db, file: SourceFile, start: TextSize, finding: &Finding) -> Diagnostic {
    let related = finding
        .related
        .iter()
        .filter_map(|(place, text)| match place {
            Place::Here(range) => Some((file.id(db), *range + start, text.clone())),
            Place::Def(other, chunk, def) => {
                let range = def_range(
                    db,
                    Site {
                        file: *other,
                        chunk: *chunk as u32,
                        def: *def,
                    },
                )?;
                Some((other.id(db), range, text.clone()))
            }
        })
        .collect();
    let fix = finding.fix.clone().map(|mut fix| {
        fix.edits.iter_mut().for_each(|(range, _)| *range += start);
        fix
    });
    Diagnostic {
        code: finding.code,
        severity: finding.severity,
        message: finding.message.clone(),
        file: file.id(db),
        range: finding.range + start,
        related,
        tags: finding.tags.clone(),
        fix,
    }
}

/// Where a definition's name stands in its file.
pub(crate) fn def_range(db: &dyn Db, site: Site) -> Option<TextRange> {
    let chunk = *site.file.chunks(db).get(site.chunk as usize)?;
    let start = *site.file.starts(db).get(site.chunk as usize)?;
    let scopes = queries::scopes(db, chunk);
    Some(scopes.defs.get(site.def as usize)?.range + start)
}

/// Agents and blocks that nothing in the file uses. A file that runs nothing is a library: others may use them.
pub(crate) fn unused(db: &dyn Db, file: SourceFile) -> Vec<(Site, Finding)> {
    let symbols = queries::file_symbols(db, file);
    if symbols.first_run.is_none() {
        return Vec::new();
    }
    let mut used: FxHashSet<&Name> = FxHashSet::default();
    let mut called: FxHashSet<&Name> = FxHashSet::default();
    let chunks = file.chunks(db);
    for usage in chunks.iter().flat_map(|it| queries::usages(db, *it).iter()) {
        if symbols.agents.contains_key(&usage.name) {
            used.insert(&usage.name);
        }
        if usage.has(RefKind::Do) || usage.has(RefKind::Call) {
            called.insert(&usage.name);
        }
    }
    let mut out = Vec::new();
    let none = TextRange::default();
    for (name, agent) in &symbols.agents {
        if !used.contains(name) {
            let text = format!("agent `{name}` is never used");
            out.push((agent.site, Finding::new("L401", none, text).tag(Tag::Unnecessary)));
        }
    }
    for (name, block) in &symbols.blocks {
        if !called.contains(name) {
            let text = format!("block `{name}` is never called");
            out.push((block.site, Finding::new("L402", none, text).tag(Tag::Unnecessary)));
        }
    }
    out.sort_by_key(|it| (it.0.chunk, it.0.def));
    out
}
