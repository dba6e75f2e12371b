//! Names that select something of what is called: `topic` in `do review(topic: x)` is the block's parameter or the program's
//! input, `verdict` in `r.verdict` the output of the program whose result `r` holds.

use crate::name::Name;
use prose_syntax::{TextRange, TextSize};
use rustc_hash::FxHashSet;

use crate::hir::*;
use crate::resolve::Slot;
use crate::scopes::DefKind;
use crate::symbols::Site;
use crate::view::Names;
use crate::{Chunk, Db, FileState, RootDatabase, SourceFile, queries};

/// A name that selects something, with ranges of its chunk.
struct Label {
    key: Ident,
    of: Selected,
}

/// What a [`Label`] selects something of.
enum Selected {
    /// A parameter or input of what is called: its name, and whether it is called by `do`.
    Argument(Name, bool),
    /// An output of the program that is called.
    Result(Name, bool),
    /// A part of what a variable holds.
    Part(Name),
}

/// What calls and values mean in a file.
struct Meanings<'a> {
    db: &'a dyn Db,
    file: SourceFile,
}

/// What a name is called by.
enum Callee {
    Block(Site),
    Program(SourceFile),
}

impl Meanings<'_> {
    fn callee(&self, name: &Name, by_do: bool) -> Option<Callee> {
        let scope = queries::program_scope(self.db, self.file);
        let block = || scope.block(name).map(|it| Callee::Block(it.site));
        let program = || {
            let target = &scope.import(name)?.target;
            crate::used_file(self.db, self.file, target).map(Callee::Program)
        };
        match by_do {
            true => block().or_else(program),
            false => program().or_else(block),
        }
    }

    /// The file whose output a member of a variable's value is.
    fn held(&self, name: &Name) -> Option<SourceFile> {
        let (_, target) = queries::held(self.db, self.file, *name).as_ref()?;
        crate::used_file(self.db, self.file, target)
    }

    /// The declaration that a label selects.
    fn site(&self, label: &Label) -> Option<Site> {
        match &label.of {
            Selected::Argument(callee, by_do) => match self.callee(callee, *by_do)? {
                Callee::Block(block) => parameter(self.db, block, &label.key.name),
                Callee::Program(file) => {
                    let symbols = queries::file_symbols(self.db, file);
                    let known = symbols.inputs.iter().any(|it| it.name == label.key.name);
                    known.then(|| root(self.db, file, &label.key.name)).flatten()
                }
            },
            Selected::Result(callee, by_do) => match self.callee(callee, *by_do)? {
                Callee::Block(_) => None,
                Callee::Program(file) => output(self.db, file, &label.key.name),
            },
            Selected::Part(variable) => output(self.db, self.held(variable)?, &label.key.name),
        }
    }
}

/// A parameter of a block.
fn parameter(db: &dyn Db, block: Site, name: &Name) -> Option<Site> {
    let scopes = queries::scopes(db, block.chunk);
    let full = scopes.defs.get(block.def as usize)?.full;
    let is_it = |it: &crate::scopes::Def| it.kind == DefKind::Param && it.name == *name && it.full == full;
    let def = scopes.defs.iter().position(is_it)?;
    Some(Site {
        file: block.file,
        chunk: block.chunk,
        def: def as u32,
        nth: 0,
    })
}

/// Where the top level of a file first declares a variable.
fn root(db: &dyn Db, file: SourceFile, name: &Name) -> Option<Site> {
    let vars = queries::file_symbols(db, file).vars.get(name)?;
    Some(vars.declared().first()?.site)
}

fn output(db: &dyn Db, file: SourceFile, name: &Name) -> Option<Site> {
    let known = queries::file_symbols(db, file).outputs.contains(name);
    known.then(|| root(db, file, name)).flatten()
}

/// The label at an offset of a chunk, and what it selects.
pub(crate) fn at(db: &dyn Db, file: SourceFile, chunk: Chunk, local: TextSize) -> Option<(Ident, Site)> {
    let body = queries::body(db, chunk);
    let stmt = body.stmts.iter().find(|it| it.range.contains_inclusive(local))?;
    let mut labels = Vec::new();
    in_stmt(stmt, &mut |label| {
        if label.key.range.contains_inclusive(local) {
            labels.push(label);
        }
    });
    let meanings = Meanings { db, file };
    let found = labels
        .into_iter()
        .find_map(|it| Some((meanings.site(&it)?, it.key)));
    found.map(|(site, key)| (key, site))
}

/// Every label that selects a declaration, with its chunk: of the file itself and of all that can see it.
pub(crate) fn of(
    db: &RootDatabase,
    slot: &Slot,
    kind: DefKind,
    name: &Name,
    site: Site,
) -> Vec<(SourceFile, Chunk, TextRange)> {
    let own = site.file;
    let is_param = kind == DefKind::Param;
    let symbols = queries::file_symbols(db, own);
    let is_root = matches!(slot, Slot::Root(..));
    let is_input = is_root && symbols.inputs.iter().any(|it| it.name == *name);
    let is_output = is_root && symbols.outputs.contains(name);
    if !(is_param || is_input || is_output) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for (_, file) in db.files() {
        if file.state(db) != FileState::Text {
            continue;
        }
        let meanings = Meanings { db, file };
        let names = selecting(db, &meanings, own, is_param, is_output);
        if names.is_empty() {
            continue;
        }
        for chunk in file.chunks(db).iter() {
            let uses = queries::usages(db, *chunk);
            if !uses.iter().any(|it| names.contains(&it.name)) {
                continue;
            }
            for stmt in &queries::body(db, *chunk).stmts {
                in_stmt(stmt, &mut |label| {
                    let same = |found: Site| match is_param {
                        true => found == site,
                        false => found.file == own,
                    };
                    if label.key.name == *name && meanings.site(&label).is_some_and(same) {
                        let wanted = match &label.of {
                            Selected::Argument(..) => is_param || is_input,
                            Selected::Result(..) | Selected::Part(_) => is_output,
                        };
                        if wanted {
                            out.push((file, *chunk, label.key.range));
                        }
                    }
                });
            }
        }
    }
    out
}

/// The names by which a file calls what another declares, or that hold what a call of it gave.
fn selecting(
    db: &dyn Db,
    meanings: &Meanings<'_>,
    own: SourceFile,
    is_param: bool,
    is_output: bool,
) -> FxHashSet<Name> {
    let file = meanings.file;
    let scope = queries::program_scope(db, file);
    if is_param {
        // Blocks are seen under their own names.
        let sees = file == own || scope.used.contains(&own);
        let symbols = queries::file_symbols(db, own);
        return match sees {
            true => symbols.blocks.keys().cloned().collect(),
            false => FxHashSet::default(),
        };
    }
    let imports = scope.own.imports.iter();
    let mut names: FxHashSet<Name> = imports
        .filter(|(_, it)| crate::used_file(db, file, &it.target) == Some(own))
        .map(|(name, _)| *name)
        .collect();
    if is_output && !names.is_empty() {
        let variables = scope.own.held.keys();
        names.extend(
            variables
                .filter(|it| meanings.held(it) == Some(own))
                .cloned()
                .collect::<Vec<_>>(),
        );
    }
    names
}

// ---- finding labels -------------------------------------------------------------------------------------------------

fn in_stmt(stmt: &Stmt, found: &mut dyn FnMut(Label)) {
    match &stmt.kind {
        StmtKind::Use(_) | StmtKind::SkillImport { .. } => {}
        StmtKind::Agent(it) => in_props(&it.props, found),
        StmtKind::Block(it) => it.body.stmts.iter().for_each(|it| in_stmt(it, found)),
        StmtKind::Expr(it) => in_expr(it, found),
    }
}

fn in_props(props: &[Property], found: &mut dyn FnMut(Label)) {
    for prop in props {
        match &prop.value {
            PropValue::Block(text) => in_template(text, found),
            PropValue::Expr(it) => in_expr(it, found),
            PropValue::Nested(list, _) => in_props(list, found),
            PropValue::Dashes(items, _) => items.iter().for_each(|it| in_expr(it, found)),
            PropValue::Word(_) | PropValue::Missing => {}
        }
    }
}

fn in_template(text: &Template, found: &mut dyn FnMut(Label)) {
    for part in &text.parts {
        if let Part::Insert(it) = part {
            in_expr(&it.value, found);
        }
    }
}

fn in_expr(expr: &Expr, found: &mut dyn FnMut(Label)) {
    match &expr.kind {
        ExprKind::Text(text) | ExprKind::Judge { text, .. } => in_template(text, found),
        ExprKind::Session(session) => {
            session.text.iter().for_each(|it| in_template(it, found));
            for prop in &session.props {
                if let PropValue::Block(text) = &prop.value {
                    in_template(text, found);
                }
            }
        }
        ExprKind::DoCall {
            callee: Some(callee),
            args,
        } => arguments(callee, true, args, found),
        ExprKind::Call {
            callee: Some(callee),
            args,
        } => arguments(callee, false, args, found),
        ExprKind::Member { of, key } => part(of, key, found),
        ExprKind::Let {
            target: LetTarget::Record(keys),
            value,
            ..
        } => keys.iter().for_each(|key| part(value, key, found)),
        _ => {}
    }
    each_child(expr, &mut |child| match child {
        Child::Expr(it) => in_expr(it, found),
        Child::Body(it) => it.stmts.iter().for_each(|it| in_stmt(it, found)),
    });
}

fn arguments(callee: &Ident, by_do: bool, args: &[Argument], found: &mut dyn FnMut(Label)) {
    for key in args.iter().filter_map(|it| it.name.as_ref()) {
        found(Label {
            key: key.clone(),
            of: Selected::Argument(callee.name, by_do),
        });
    }
}

fn part(of: &Expr, key: &Ident, found: &mut dyn FnMut(Label)) {
    let of = match &of.kind {
        ExprKind::Name(name) => Selected::Part(*name),
        ExprKind::DoCall {
            callee: Some(callee), ..
        } => Selected::Result(callee.name, true),
        ExprKind::Call {
            callee: Some(callee), ..
        } => Selected::Result(callee.name, false),
        _ => return,
    };
    found(Label { key: key.clone(), of });
}
