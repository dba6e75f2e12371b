//! What `use` leads to, and whether calls and results agree with the inputs and outputs of the program that is called.

use std::sync::Arc;

use prose_model::arguments::{assign, input_name};

use crate::Name;

use super::{Context, near};
use crate::diagnostic::Finding;
use crate::hir::*;
use crate::paths::{TargetKind, target_kind};
use crate::scopes::Holds;
use crate::symbols::{FileSymbols, Site};
use crate::view::Names;
use crate::{FileState, SourceFile, queries};

/// Longest chain of variables that a program's result is followed through.
const LONGEST_CHAIN: usize = 8;

/// The `use` statements and texts of the chunk.
pub(super) fn check(ctx: &mut Context<'_>) {
    let body = ctx.body;
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Use(it) => used(ctx, it),
            StmtKind::SkillImport {
                source: Some((source, range)),
                ..
            } if !known_source(source) => {
                let text = format!(
                    "`{source}` is no known kind of source: known are `github:owner/name`, `npm:name` and paths that begin with `./`"
                );
                ctx.push(Finding::new("W006", *range, text));
            }
            _ => {}
        }
    }
    // Without imports no value is a program's result.
    if !ctx.view.imports {
        return;
    }
    texts(ctx, &body.stmts);
}

/// Where a target leads, if it was looked up.
fn file_of(ctx: &Context<'_>, target: &str) -> Option<Option<SourceFile>> {
    // The last counts.
    let uses = ctx.file.uses(ctx.db);
    uses.iter().rev().find(|it| it.0 == target).map(|it| it.1)
}

/// Where the target of a `use` leads.
fn used(ctx: &mut Context<'_>, it: &UseDef) {
    let Some((target, range)) = &it.target else {
        return;
    };
    if target.trim().is_empty() {
        ctx.push(Finding::new(
            "E011",
            *range,
            "the path is empty: name a program, `use \"handle/slug\"`",
        ));
        return;
    }
    let kind = target_kind(target);
    match file_of(ctx, target) {
        Some(Some(file)) if file.state(ctx.db) == FileState::Unapproved => {
            let text = format!(
                "`{target}` is not fetched, so that calls of it can't be checked: run the program to be asked for it"
            );
            ctx.push(Finding::new("P347", *range, text));
            return;
        }
        Some(None) if kind == TargetKind::Local => {
            missing(ctx, target, *range);
            return;
        }
        Some(Some(file)) if file.state(ctx.db) == FileState::Missing => {
            missing(ctx, target, *range);
            return;
        }
        Some(Some(file)) if file != ctx.file && *queries::is_damaged(ctx.db, file) => {
            let text = format!(
                "`{target}` has syntax errors, so that calls of it can't be checked: mend them there first"
            );
            ctx.push(Finding::new("P348", *range, text));
        }
        Some(Some(_)) => {}
        _ if kind == TargetKind::Unknown => {
            let text = format!(
                "`{target}` is no program: write `handle/slug`, an address that begins with `https://`, or a path that ends in `.prose`"
            );
            ctx.push(Finding::new("E012", *range, text));
        }
        _ => {}
    }
    if ctx.view.cycle.as_ref() == Some(target) {
        if file_of(ctx, target) == Some(Some(ctx.file)) {
            let text = "this file uses itself: remove this; what is to run again belongs into a block";
            ctx.push(Finding::new("P152", *range, text));
            return;
        }
        let text = format!("`{target}` uses this file in turn: move what both need into a third");
        let mut finding = Finding::new("P152", *range, text);
        if let Some(Some(other)) = file_of(ctx, target)
            && let Some(site) = leads_back(ctx, other)
        {
            let name = &queries::scopes(ctx.db, site.chunk).def(site.def).name;
            finding = finding.related(ctx.far_place(site, name), "this file is used there");
        }
        ctx.push(finding);
    }
}

/// The `use` of another file that leads to this one directly.
fn leads_back(ctx: &Context<'_>, other: SourceFile) -> Option<Site> {
    let uses = other.uses(ctx.db);
    let symbols = queries::file_symbols(ctx.db, other);
    let leads = |target: &str| uses.iter().any(|it| it.0 == target && it.1 == Some(ctx.file));
    symbols.targets.iter().find(|it| leads(&it.0))?.1
}

fn missing(ctx: &mut Context<'_>, target: &str, range: prose_syntax::TextRange) {
    let text =
        format!("there is no file `{target}` here or in a folder above: create it, or correct the path");
    ctx.push(Finding::new("P151", range, text));
}

/// Whether a skill can come from there, as far as the form of the text tells.
fn known_source(source: &str) -> bool {
    let source = source.trim();
    ["github:", "npm:", "./", "../", "/", "~/", "https://", "http://"]
        .iter()
        .any(|it| source.starts_with(it) && source.len() > it.len())
        || target_kind(source) != TargetKind::Unknown
}

/// An imported program, when its file is known.
pub(super) struct Program {
    symbols: Arc<FileSymbols>,
}

/// The program that a name stands for.
fn program_of(ctx: &Context<'_>, name: &Name) -> Option<Program> {
    program_at(ctx, &ctx.program.import(name)?.target)
}

/// The program that a target leads to. What a damaged file takes and gives isn't known.
fn program_at(ctx: &Context<'_>, target: &str) -> Option<Program> {
    let file = file_of(ctx, target)??;
    let known = file.state(ctx.db) == FileState::Text && !*queries::is_damaged(ctx.db, file);
    known.then(|| Program {
        symbols: queries::file_symbols(ctx.db, file).clone(),
    })
}

/// What is passed to a program.
pub(super) fn inputs(ctx: &mut Context<'_>, callee: &Ident, args: &[Argument]) {
    let Some(Program { symbols }) = program_of(ctx, &callee.name) else {
        return;
    };
    let name = &callee.name;
    for arg in args {
        let Some(key) = &arg.name else { continue };
        if symbols.inputs.iter().any(|it| it.name == key.name) {
            continue;
        }
        let known = || symbols.inputs.iter().map(|it| it.name.as_str());
        let mut finding = Finding::new(
            "E027",
            key.range,
            format!("program `{name}` has no input `{}`", key.name),
        );
        match near::nearest(&key.name, known()) {
            Some(near) => {
                finding = near::offer(finding, key.range, Some(near));
                if let Some(site) = Name::find(near).and_then(|it| site_of(&symbols, &it)) {
                    finding = finding.related(
                        ctx.far_place(site, near),
                        format!("input `{near}` is declared here"),
                    );
                }
            }
            None if symbols.inputs.is_empty() => finding.message.push_str(": it has none, remove this"),
            None => {
                let known = known().collect::<Vec<_>>().join(", ");
                finding.message.push_str(&format!(": it has {known}"));
            }
        }
        ctx.push(finding);
    }
    let inputs: Vec<&str> = symbols.inputs.iter().map(|it| it.name.as_str()).collect();
    let names: Vec<Option<&str>> = args
        .iter()
        .map(|arg| {
            let variable = match &arg.value.kind {
                ExprKind::Name(name) => Some(name.as_str()),
                _ => None,
            };
            input_name(&inputs, arg.name.as_ref().map(|it| it.name.as_str()), variable)
        })
        .collect();
    let assigned = assign(&inputs, &names);
    let mut unnamed = args.iter().zip(&assigned).filter(|(arg, _)| arg.name.is_none());
    let positional = unnamed.clone().count();
    if let Some((extra, _)) = unnamed.find(|(_, at)| at.is_none()) {
        let takes = match symbols.inputs.len() {
            0 => "no input".to_owned(),
            1 => "1 input".to_owned(),
            n => format!("{n} inputs"),
        };
        let text =
            format!("program `{name}` takes {takes} and gets {positional}: remove the rest, it is ignored");
        ctx.push(Finding::new("P240", extra.value.range, text));
    }
    let missing: Vec<(&Name, Option<Site>)> = symbols
        .inputs
        .iter()
        .enumerate()
        .filter(|(at, input)| !input.has_default && !assigned.contains(&Some(*at)))
        .map(|(_, it)| (&it.name, site_of(&symbols, &it.name)))
        .collect();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|it| format!("`{}`", it.0)).collect();
        let text = format!(
            "program `{name}` is not given {}, so that whoever runs it is asked: pass it",
            names.join(" and ")
        );
        let mut finding = Finding::new("E026", callee.range, text);
        for (name, site) in missing.iter().filter_map(|it| Some((it.0, it.1?))) {
            finding = finding.related(ctx.far_place(site, name), "the input is declared here");
        }
        ctx.push(finding);
    }
}

/// Where a program's top level declares a name.
fn site_of(symbols: &FileSymbols, name: &Name) -> Option<Site> {
    let vars = symbols.vars.get(name)?;
    Some(vars.declared().first()?.site)
}

/// Keys taken from a value, which may be a program's result.
pub(super) fn outputs(ctx: &mut Context<'_>, keys: &[Ident], value: &Expr) {
    let mut found = None;
    let callee = match &value.kind {
        ExprKind::Call {
            callee: Some(callee), ..
        }
        | ExprKind::DoCall {
            callee: Some(callee), ..
        } => callee.name,
        ExprKind::Name(name) if ctx.view.imports => match queries::held(ctx.db, ctx.file, *name) {
            Some((callee, target)) => {
                found = program_at(ctx, target);
                *callee
            }
            None => return,
        },
        _ => return,
    };
    let Some(Program { symbols }) = found.or_else(|| program_of(ctx, &callee)) else {
        return;
    };
    // Without declared outputs the result is whatever the last statement gives, and `output EXPR` may give anything.
    if symbols.outputs.is_empty() || symbols.returns {
        return;
    }
    for key in keys {
        // Every record can be counted.
        if symbols.outputs.contains(&key.name) || matches!(key.name.as_str(), "length" | "count") {
            continue;
        }
        let text = format!(
            "program `{callee}` has no output `{}`, so that this is null",
            key.name
        );
        let mut finding = Finding::new("E028", key.range, text);
        match near::nearest(&key.name, symbols.outputs.iter().map(|it| it.as_str())) {
            Some(near) => {
                finding = near::offer(finding, key.range, Some(near));
                if let Some(site) = Name::find(near).and_then(|it| site_of(&symbols, &it)) {
                    finding = finding.related(
                        ctx.far_place(site, near),
                        format!("output `{near}` is bound here"),
                    );
                }
            }
            None => {
                let known = symbols.outputs.iter().map(|it| it.as_str()).collect::<Vec<_>>();
                finding
                    .message
                    .push_str(&format!(": it has {}", known.join(", ")));
            }
        }
        ctx.push(finding);
    }
}

/// The program whose result a variable holds wherever it can be read: it is bound once in the whole file.
pub(crate) fn held(symbols: &FileSymbols, name: &Name) -> Option<(Name, String)> {
    let mut name = name;
    for _ in 0..LONGEST_CHAIN {
        if symbols.vars.get(name)?.all().len() != 1 {
            return None;
        }
        match symbols.held.get(name)? {
            Holds::Call(callee) => {
                let import = symbols.imports.get(callee)?;
                return Some((*callee, import.target.clone()));
            }
            Holds::Variable(other) => name = other,
        }
    }
    None
}

/// Members in `{…}` of texts.
fn texts(ctx: &mut Context<'_>, list: &[Stmt]) {
    for stmt in list {
        match &stmt.kind {
            StmtKind::Use(_) | StmtKind::SkillImport { .. } => {}
            StmtKind::Agent(it) => props(ctx, &it.props),
            StmtKind::Block(it) => texts(ctx, &it.body.stmts),
            StmtKind::Expr(it) => expr(ctx, it),
        }
    }
}

fn props(ctx: &mut Context<'_>, list: &[Property]) {
    for prop in list {
        match &prop.value {
            PropValue::Block(text) => template(ctx, text),
            PropValue::Expr(it) => expr(ctx, it),
            _ => {}
        }
    }
}

fn expr(ctx: &mut Context<'_>, it: &Expr) {
    match &it.kind {
        ExprKind::Text(text) | ExprKind::Judge { text, .. } => template(ctx, text),
        ExprKind::Session(session) => {
            if let Some(text) = &session.text {
                template(ctx, text);
            }
            for prop in &session.props {
                if let PropValue::Block(text) = &prop.value {
                    template(ctx, text);
                }
            }
        }
        _ => {}
    }
    each_child(it, &mut |child| match child {
        Child::Expr(it) => expr(ctx, it),
        Child::Body(it) => texts(ctx, &it.stmts),
    });
}

fn template(ctx: &mut Context<'_>, text: &Template) {
    for part in &text.parts {
        if let Part::Insert(it) = part {
            members(ctx, &it.value);
        }
    }
}

fn members(ctx: &mut Context<'_>, value: &Expr) {
    match &value.kind {
        ExprKind::Member { of, key } => {
            outputs(ctx, std::slice::from_ref(key), of);
            members(ctx, of);
        }
        ExprKind::Index { of, .. } => members(ctx, of),
        _ => {}
    }
}
