//! Who calls whom: blocks, and programs as whole files.

use prose_hir::{DefKind, Definition, FileId, RefKind, RootDatabase, SourceFile};
use prose_syntax::{TextRange, TextSize};

use crate::types::{Call, CallItem, FilePosition, NavigationTarget, SymbolKind};
use crate::{names, tree};

/// The block or program that the name at a place stands for.
pub(crate) fn item(db: &RootDatabase, position: FilePosition) -> Option<CallItem> {
    let source = tree::source(db, position.file)?;
    let offset = tree::clamp(&source.text(db), position.offset);
    let found = names::at(db, source, offset)?.definition;
    match found.kind {
        DefKind::Block => Some(block_item(&found)),
        DefKind::Import => Some(import_item(db, &found)),
        _ => None,
    }
}

pub(crate) fn incoming(db: &RootDatabase, item: &CallItem) -> Vec<Call> {
    let mut calls = Calls::default();
    for definition in called_by(db, item) {
        let mut places = prose_hir::references(db, &definition);
        places.retain(|it| is_call(it.role));
        for place in places {
            if let Some(source) = db.source(place.file) {
                let caller = caller(db, place.file, source, place.range);
                calls.add(caller, place.range);
            }
        }
    }
    calls.0
}

pub(crate) fn outgoing(db: &RootDatabase, item: &CallItem) -> Vec<Call> {
    let mut calls = Calls::default();
    let Some(source) = tree::source(db, item.target.file) else {
        return Vec::new();
    };
    let is_program = item.target.kind == SymbolKind::File;
    let range = match is_program {
        true => TextRange::up_to(TextSize::of(&*source.text(db))),
        false => item.target.full_range,
    };
    let blocks = blocks(db, source);
    for name in prose_hir::names_in(db, source, range) {
        if !is_call(name.role) || !range.contains_range(name.range) {
            continue;
        }
        // What a block calls is its own affair.
        let inner = innermost(&blocks, name.range);
        let own = match is_program {
            true => inner.is_none(),
            false => inner.is_some_and(|it| it.range == item.target.focus_range),
        };
        if !own {
            continue;
        }
        let Some(found) = names::at(db, source, name.range.start()) else {
            continue;
        };
        let called = match found.definition.kind {
            DefKind::Block => block_item(&found.definition),
            DefKind::Import => import_item(db, &found.definition),
            _ => continue,
        };
        calls.add(called, name.range);
    }
    calls.0
}

/// Calls by item, in the order in which they were found.
#[derive(Default)]
struct Calls(Vec<Call>);

impl Calls {
    fn add(&mut self, item: CallItem, place: TextRange) {
        match self.0.iter_mut().find(|it| it.item == item) {
            Some(call) => call.places.push(place),
            None => self.0.push(Call {
                item,
                places: vec![place],
            }),
        }
    }
}

fn is_call(role: Option<RefKind>) -> bool {
    matches!(role, Some(RefKind::Do | RefKind::Call))
}

/// The declarations through which an item is called.
fn called_by(db: &RootDatabase, item: &CallItem) -> Vec<Definition> {
    if item.target.kind != SymbolKind::File {
        let source = db.source(item.target.file);
        let found = source.and_then(|it| prose_hir::resolve_at(db, it, item.target.focus_range.start()));
        return found.into_iter().collect();
    }
    let mut files: Vec<_> = db.files().collect();
    files.sort_by_key(|it| it.0);
    let mut out = Vec::new();
    for (_, file) in files {
        let uses = file.uses(db);
        if !uses
            .iter()
            .any(|it| it.1.is_some_and(|it| it.id(db) == item.target.file))
        {
            continue;
        }
        let imports = prose_hir::definitions(db, file);
        out.extend(imports.into_iter().filter(|it| {
            it.kind == DefKind::Import
                && prose_hir::program_file(db, file, &it.name).is_some_and(|it| it.id(db) == item.target.file)
        }));
    }
    out
}

fn blocks(db: &RootDatabase, source: SourceFile) -> Vec<Definition> {
    let mut all = prose_hir::definitions(db, source);
    all.retain(|it| it.kind == DefKind::Block);
    all
}

fn innermost(blocks: &[Definition], place: TextRange) -> Option<&Definition> {
    blocks
        .iter()
        .filter(|it| it.full_range.contains_range(place))
        .min_by_key(|it| it.full_range.len())
}

/// The block around a place, else the program.
fn caller(db: &RootDatabase, file: FileId, source: SourceFile, place: TextRange) -> CallItem {
    match innermost(&blocks(db, source), place) {
        Some(block) => block_item(block),
        None => program_item(db, file, source),
    }
}

fn block_item(block: &Definition) -> CallItem {
    CallItem {
        target: names::target(block),
    }
}

/// The file that an import leads to; while it isn't known, the import.
fn import_item(db: &RootDatabase, import: &Definition) -> CallItem {
    match prose_hir::program_file(db, import.source(), &import.name) {
        Some(file) => program_item(db, file.id(db), file),
        None => block_item(import),
    }
}

fn program_item(db: &RootDatabase, file: FileId, source: SourceFile) -> CallItem {
    let path = source.path(db);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(&path).to_owned();
    CallItem {
        target: NavigationTarget {
            file,
            full_range: TextRange::up_to(TextSize::of(&*source.text(db))),
            focus_range: TextRange::default(),
            name,
            kind: SymbolKind::File,
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::fixture::{Setup, setup};
    use crate::{Call, FileRange};

    const FILES: &str = "#- /main.prose\nuse \"lib.prose\" as lib\nblock f(n):\n  do g(n)\n  do f(n - 1)\n  do g(2)\nblock g(n):\n  session \"{n}\"\ndo f(3)\nlet r = lib()\n#- /lib.prose\nsession \"x\"\n";

    fn show(setup: &Setup, file: crate::FileId, calls: Vec<Call>) -> String {
        let lines = calls.into_iter().map(|call| {
            let places: Vec<String> = call
                .places
                .iter()
                .map(|range| setup.place(FileRange { file, range: *range }))
                .collect();
            let target = call.item.target;
            format!("{} {}: {}", target.kind.as_str(), target.name, places.join(" "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    fn check(at: &str, incoming: Expect, outgoing: Expect) {
        let marked = FILES.replacen(at, &format!("$0{at}"), 1);
        let setup = setup(&marked);
        let item = setup.analysis.call_item(setup.position()).unwrap().unwrap();
        let calls = setup.analysis.incoming_calls(&item).unwrap();
        incoming.assert_eq(&show(&setup, setup.main(), calls));
        let calls = setup.analysis.outgoing_calls(&item).unwrap();
        outgoing.assert_eq(&show(&setup, item.target.file, calls));
    }

    #[test]
    fn blocks() {
        check(
            "f(n):",
            expect![[r#"
            block f: /main.prose:4:6
            file main.prose: /main.prose:8:4"#]],
            expect![[r#"
            block g: /main.prose:3:6 /main.prose:5:6
            block f: /main.prose:4:6"#]],
        );
        check(
            "g(n)\n",
            expect!["block f: /main.prose:3:6 /main.prose:5:6"],
            expect![[""]],
        );
    }

    #[test]
    fn programs() {
        check(
            "lib()",
            expect!["file main.prose: /main.prose:9:9"],
            expect![[""]],
        );
    }

    #[test]
    fn a_program_calls_what_its_top_level_calls() {
        let setup = setup(
            "#- /main.prose\nuse \"lib.prose\" as lib\nlet r = $0lib()\n#- /lib.prose\nblock f:\n  do g\nblock g:\n  session \"x\"\ndo f\n",
        );
        let item = setup.analysis.call_item(setup.position()).unwrap().unwrap();
        let calls = setup.analysis.outgoing_calls(&item).unwrap();
        expect!["block f: /lib.prose:5:4"].assert_eq(&show(&setup, item.target.file, calls));
    }
}
