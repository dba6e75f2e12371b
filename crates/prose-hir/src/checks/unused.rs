//! Declarations of a file that nothing reads, runs or calls.
//!
//! A name is read at run time from whatever calls the reader, so that one use of a name anywhere in the file counts for
//! every declaration of it; and the judge of a discretion is told of all names in sight, so that any that may be asked
//! while a variable is there counts as a use.

use crate::Name;
use prose_model::codes::Severity;
use prose_syntax::{ChunkMap, SyntaxError, TextRange, TextSize};
use rustc_hash::FxHashSet;

use crate::diagnostic::Finding;
use crate::name::Numbering;
use crate::paths::{TargetKind, target_kind};
use crate::scopes::{DefKind, RefKind, Valued};
use crate::symbols::{FileSymbols, ImportEntry, ProgramScope, Site};
use crate::vars::{VarEntry, VarPlace};
use crate::view::Names;
use crate::{Chunk, Db, FileState, SourceFile, Tag, queries};

/// Name, place, code, message.
type Unused<'a> = (&'a Name, Site, &'static str, String);

/// What is never used, with ranges that mean nothing. A file that runs nothing is a library: others may use what it has.
pub(crate) fn check(db: &dyn Db, file: SourceFile) -> Vec<(Site, Finding)> {
    let symbols = queries::file_symbols(db, file);
    if symbols.first_run.is_none() {
        return Vec::new();
    }
    let program = queries::program_scope(db, file);
    let (mut read, mut called) = (Numbering::new(), Numbering::new());
    for file in std::iter::once(&file).chain(&program.used) {
        for usage in file
            .chunks(db)
            .iter()
            .flat_map(|it| queries::usages(db, *it).iter())
        {
            if usage.reads() {
                read.meet(usage.name);
            }
            if usage.has(RefKind::Do) || usage.has(RefKind::Call) {
                called.meet(usage.name);
            }
        }
    }

    let mut out: Vec<Unused<'_>> = Vec::new();
    for (name, agent) in &symbols.agents {
        if !read.has(*name) {
            let text = format!("agent `{name}` is never used: run it with `session: {name}`, or remove it");
            out.push((name, agent.site, "L401", text));
        }
    }
    for (name, block) in &symbols.blocks {
        if !called.has(*name) {
            let text = format!("block `{name}` is never called: call it with `do {name}`, or remove it");
            out.push((name, block.site, "L402", text));
        }
    }
    for (name, import) in &symbols.imports {
        if let Some(site) = import.site
            && !read.has(*name)
            && !serves(db, program, &read, name, import)
        {
            let text =
                format!("program `{name}` is never called: call it with `{name}(…)`, or remove the line");
            out.push((name, site, "L407", text));
        }
    }
    let judging_blocks = symbols.judges_in_blocks
        || program
            .used
            .iter()
            .any(|it| queries::file_symbols(db, *it).judges_in_blocks);
    for (name, vars) in symbols.vars.iter() {
        if read.has(*name) || name.starts_with('_') {
            continue;
        }
        for entry in vars.all() {
            if let Some((code, text)) = variable(symbols, name, entry, judging_blocks) {
                out.push((name, entry.site, code, text));
            }
        }
    }
    if out.is_empty() {
        return Vec::new();
    }
    misspelled(symbols, program, &read, &mut out);
    let broken = |it: &&Chunk| queries::declarations(db, **it).broken;
    for chunk in file.chunks(db).iter().filter(broken) {
        let mentions = queries::mentions(db, *chunk);
        if !mentions.is_empty() {
            out.retain(|it| !mentions.contains(it.0));
        }
    }
    let mut out: Vec<(Site, Finding)> = out
        .into_iter()
        .map(|(_, site, code, text)| {
            let finding = Finding::new(code, TextRange::default(), text).tag(Tag::Unnecessary);
            (site, finding)
        })
        .collect();
    out.sort_by_key(|it| (symbols.positions.get(&it.0.chunk), it.0.def));
    out
}

/// Leaves out what a misspelled name was probably meant to be: that is reported where the name is used.
fn misspelled(symbols: &FileSymbols, program: &ProgramScope, read: &Numbering, out: &mut Vec<Unused<'_>>) {
    let unknown: Vec<&str> = read
        .names()
        .iter()
        .filter(|it| {
            !symbols.vars.contains_key(it)
                && program.agent(it).is_none()
                && program.block(it).is_none()
                && program.import(it).is_none()
        })
        .map(|it| it.as_str())
        .collect();
    // A program with that many unknown names has other worries.
    if unknown.len() > 64 {
        return;
    }
    out.retain(|it| !unknown.iter().any(|word| super::near::may_be(word, it.0)));
}

/// The finding for a variable of a name that nothing reads, unless it has another use.
fn variable(
    symbols: &FileSymbols,
    name: &Name,
    entry: &VarEntry,
    judging_blocks: bool,
) -> Option<(&'static str, String)> {
    let chunk = entry.at;
    let at_root = entry.place < VarPlace::Elsewhere;
    let valued = match entry.valued {
        Valued::No => false,
        Valued::Yes => true,
        Valued::Last => chunk == symbols.last,
    };
    // A named branch is bound for the sake of its label as often as for its value.
    let judged = at_root && symbols.last_judge.is_some_and(|it| it > chunk)
        || (at_root || entry.calls) && judging_blocks;
    if valued || judged || entry.kind == DefKind::Branch {
        return None;
    }
    Some(match entry.kind {
        DefKind::Let | DefKind::Const | DefKind::Session => (
            "L404",
            format!(
                "`{name}` is never read: pass it on, as with `context: {name}`, make it an output, or drop the name"
            ),
        ),
        DefKind::Catch => (
            "L404",
            format!("the error `{name}` is never read: pass it on, or write `catch:`"),
        ),
        DefKind::Item => (
            "L404",
            format!(
                "`{name}` is never read, so that every round does the same: put `{{{name}}}` into a prompt, or write `repeat`"
            ),
        ),
        DefKind::Index => ("L404", format!("the index `{name}` is never read: drop the name")),
        DefKind::Param => (
            "L405",
            format!("parameter `{name}` is never read: put `{{{name}}}` into a prompt, or remove it"),
        ),
        // An input that comes after something ran makes the program wait, which may be all that is wanted.
        DefKind::Input if symbols.first_run.is_none_or(|it| chunk <= it) => (
            "L406",
            format!("input `{name}` is never read: put `{{{name}}}` into a prompt, or remove it"),
        ),
        _ => return None,
    })
}

/// Whether a `use` is of some use besides the name that it gives: a skill, or agents and blocks of the file it leads to.
fn serves(db: &dyn Db, program: &ProgramScope, read: &Numbering, name: &Name, import: &ImportEntry) -> bool {
    let target = import.target.as_str();
    let skills = &program.own.wanted_skills;
    if skills.contains(name.as_str())
        || skills.contains(target)
        || skills.contains(target.trim_start_matches('@'))
    {
        return true;
    }
    // Reported as such.
    if program.own.targets.iter().filter(|it| it.0 == target).count() > 1 {
        return true;
    }
    match program.files.get(target) {
        // What can't be read may give anything, and is reported as such.
        Some(None) => true,
        Some(Some(file)) if file.state(db) != FileState::Text => true,
        Some(Some(file)) => {
            let mut open = vec![*file];
            let mut seen = FxHashSet::default();
            while let Some(file) = open.pop() {
                if !seen.insert(file) {
                    continue;
                }
                let symbols = queries::file_symbols(db, file);
                if symbols
                    .agents
                    .keys()
                    .chain(symbols.blocks.keys())
                    .any(|it| read.has(*it))
                {
                    return true;
                }
                open.extend(crate::symbols::used_files(db, file));
            }
            false
        }
        None => target.trim().is_empty() || target_kind(target) == TargetKind::Unknown,
    }
}

/// Collects the words of the statements of the top level in which there is an error.
pub(crate) fn broken_words(text: &str, errors: &[SyntaxError], out: &mut FxHashSet<Name>) {
    let is_error = |it: &&SyntaxError| it.severity() == Severity::Error;
    let starts: Vec<_> = errors
        .iter()
        .filter(is_error)
        .map(|it| it.range.start())
        .collect();
    for range in ChunkMap::with_target(text, 1).ranges() {
        let inside = |it: &TextSize| range.start() < *it && *it < range.end();
        let on_edge = |it: &TextSize| range.start() == *it || *it == range.end();
        // An error between two statements is of the one that has it when it stands alone, so that it doesn't matter what a
        // chunk holds besides.
        let is_broken = starts.iter().any(inside)
            || starts.iter().any(on_edge)
                && prose_syntax::parse(&text[range])
                    .errors()
                    .iter()
                    .any(|it| is_error(&it));
        if is_broken {
            words(&text[range], out);
        }
    }
}

/// Collects the words of a text that may be names, of those with hyphens also their parts.
fn words(text: &str, out: &mut FxHashSet<Name>) {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    for word in text.split(|c: char| !(part(c) || c == '-')) {
        let word = word.trim_matches('-');
        if word.is_empty() {
            continue;
        }
        out.insert(Name::new(word));
        if word.contains('-') {
            out.extend(word.split('-').map(Name::new));
        }
    }
}
