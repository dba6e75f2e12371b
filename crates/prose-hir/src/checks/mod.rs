//! The checks. Those of a chunk are one query each; this file puts their findings into the file.

mod clashes;
mod contracts;
mod fixes;
pub(crate) mod lints;
mod names;
mod near;
mod props;
mod shape;
mod suppress;
mod syntax;
pub(crate) mod unused;

pub(crate) use contracts::held;
pub(crate) use names::{Among, like, meant};
pub(crate) use suppress::{Allow, long_texts};
pub(crate) use unused::broken_words;

use std::hash::Hash;

use crate::Name;
use prose_model::codes::Severity;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::diagnostic::{Finding, Place};
use crate::hir::ChunkBody;
use crate::queries;
use crate::resolve::Resolver;
use crate::scopes::Scopes;
use crate::symbols::Site;
use crate::view::{ChunkView, OWN, Seen};
use crate::{Chunk, Db, Diagnostic, FileState, SourceFile};

pub use fixes::{fix_all, fix_code, fixes};

/// What the checks of a chunk look at.
pub(crate) struct Context<'a> {
    db: &'a dyn Db,
    file: SourceFile,
    chunk: Chunk,
    body: &'a ChunkBody,
    scopes: &'a Scopes,
    view: &'a ChunkView,
    program: &'a Seen,
    findings: Vec<Finding>,
}

impl Context<'_> {
    fn resolver(&self) -> Resolver<'_> {
        Resolver {
            file: self.file,
            chunk: self.chunk,
            at: OWN,
            scopes: self.scopes,
            program: self.program,
        }
    }
    fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
    /// Whether the parser has already reported an error there, so that what is missing may be missing because of it.
    fn is_broken(&self, range: TextRange) -> bool {
        self.findings
            .iter()
            .any(|it| it.severity == Severity::Error && range.contains_range(it.range))
    }
    /// The word that a construct begins with; an empty place where the parser has made out the construct without it.
    fn keyword(&self, construct: TextRange, word: &str) -> TextRange {
        let text = self.chunk.text(self.db);
        let rest = text.get(usize::from(construct.start())..);
        match rest.is_some_and(|it| it.starts_with(word)) {
            true => TextRange::at(construct.start(), TextSize::of(word)),
            false => TextRange::empty(construct.start()),
        }
    }
    /// The place of a definition of this name.
    fn place(&self, site: Site, name: &str) -> Place {
        if site.chunk == self.chunk {
            return Place::Here(self.scopes.def(site.def).range);
        }
        Place::Def(site.chunk, Name::new(name), site.nth)
    }
    /// Likewise of one in a file that is used.
    fn far_place(&self, site: Site, name: &str) -> Place {
        Place::Def(site.chunk, Name::new(name), site.nth)
    }
    /// The name that was probably meant by a word.
    fn meant(&self, word: &Name, among: Among) -> Option<&str> {
        let found = queries::meant(self.db, self.file, *word, among);
        found.as_ref().map(|it| it.as_str())
    }
}

/// Where keys of a list come again: position of the later, position of the first. Keys that are none are passed over.
fn repeated<'a, T, K: Eq + Hash>(list: &'a [T], key: impl Fn(&'a T) -> Option<K>) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    // Nearly all lists are short.
    if list.len() <= 8 {
        for (later, item) in list.iter().enumerate().skip(1) {
            let Some(wanted) = key(item) else { continue };
            let same = |it: &'a T| key(it).is_some_and(|it| it == wanted);
            out.extend(list[..later].iter().position(same).map(|first| (later, first)));
        }
        return out;
    }
    let mut seen: FxHashMap<K, usize> = FxHashMap::default();
    for (index, item) in list.iter().enumerate() {
        let Some(key) = key(item) else { continue };
        match seen.get(&key) {
            Some(first) => out.push((index, *first)),
            None => drop(seen.insert(key, index)),
        }
    }
    out
}

/// What the checks of one chunk found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Checked {
    pub findings: Box<[Finding]>,
    /// Comments that silence findings. What they silence is decided where the findings of the file are put together.
    pub allows: Box<[Allow]>,
}

/// The findings of one chunk as part of its file.
pub(crate) fn chunk(db: &dyn Db, file: SourceFile, chunk: Chunk) -> Checked {
    let Some(view) = crate::view::view(db, file, chunk) else {
        return Checked::default();
    };
    let body = queries::body(db, chunk);
    let scopes = queries::scopes(db, chunk);
    let mut ctx = Context {
        db,
        file,
        chunk,
        body,
        scopes,
        view: &view,
        program: &view.seen,
        findings: syntax::findings(body),
    };
    too_deep(&mut ctx);
    names::check(&mut ctx);
    clashes::check(&mut ctx);
    shape::check(&mut ctx);
    contracts::check(&mut ctx);
    Checked {
        findings: ctx.findings.into(),
        allows: suppress::allows(chunk.text(db), || queries::parse(db, chunk).root()).into(),
    }
}

/// One finding for each statement that is nested too deeply, however many of its parts are, unless the parser has one.
fn too_deep(ctx: &mut Context<'_>) {
    let body = ctx.body;
    if body.too_deep.is_empty() {
        return;
    }
    let stmt_at = |range: TextRange| body.stmts.partition_point(|it| it.range.start() <= range.start());
    let deep = ctx.findings.iter().filter(|it| it.code == "P106");
    let mut reported: FxHashSet<usize> = deep.map(|it| stmt_at(it.range)).collect();
    for range in &body.too_deep {
        if reported.insert(stmt_at(*range)) {
            let start = TextRange::empty(range.start());
            let text = "nested too deeply: move the inner part into a block of its own";
            ctx.push(Finding::new("P106", start, text));
        }
    }
}

/// Everything that is to be said about a file, in the order of the text.
pub fn diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    if file.state(db) != FileState::Text {
        return Vec::new();
    }
    let chunks = file.chunks(db);
    let starts = file.starts(db);
    let mut out = Vec::new();
    let mut allows = Vec::new();
    for (chunk, start) in chunks.iter().zip(starts.iter()) {
        let checked = queries::check_chunk(db, *chunk);
        out.extend(checked.findings.iter().map(|it| in_file(db, file, *start, it)));
        allows.extend(checked.allows.iter().map(|it| (*start, it)));
    }
    let positions = queries::positions(db, file);
    for (site, finding) in queries::unused(db, file).iter() {
        if let Some(at) = positions.get(&site.chunk)
            && let Some(start) = starts.get(*at as usize)
        {
            let range = queries::scopes(db, site.chunk).def(site.def).range;
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
    out.extend(lints::unreached(db, file));
    if !allows.is_empty() {
        let text_around = |offset: TextSize| {
            let index = starts.partition_point(|it| *it <= offset).checked_sub(1)?;
            let (chunk, start) = (*chunks.get(index)?, *starts.get(index)?);
            let texts = queries::long_texts(db, chunk);
            let at = texts.partition_point(|it| it.0.end() <= offset - start);
            let (text, lines) = texts.get(at)?;
            text.contains(offset - start).then(|| *lines + start)
        };
        suppress::apply(file.id(db), &file.text(db), &allows, text_around, &mut out);
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
            Place::Def(chunk, name, nth) => {
                let other = chunk.file(db);
                let at = *queries::positions(db, other).get(chunk)?;
                let defs = queries::scopes(db, *chunk).defs.iter();
                let def = defs.filter(|it| it.name == *name).nth(*nth as usize)?;
                let range = def.range + *other.starts(db).get(at as usize)?;
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
        about: None,
    }
}
