//! Databases from fixtures, and what they say as text.

use prose_hir::{Change, Diagnostic, FileId, RootDatabase, SourceFile, diagnostics, paths};
use prose_syntax::TextSize;
use test_fixture::Fixture;

/// Files of a fixture in a database, those with an address for a path not approved, `use` targets resolved as on a disk with only these files.
pub fn load(fixture: &Fixture) -> RootDatabase {
    let mut db = RootDatabase::default();
    load_into(&mut db, fixture);
    db
}

pub fn load_into(db: &mut RootDatabase, fixture: &Fixture) {
    let mut change = Change::new();
    for (index, file) in fixture.files.iter().enumerate() {
        let id = FileId(index as u32);
        if file.path.starts_with("https://") {
            let content = prose_hir::FileContent::Unapproved;
            change.files.push((id, file.path.clone(), content));
            continue;
        }
        change.text(id, file.path.clone(), file.text.clone());
    }
    db.apply_change(change);
    let mut change = Change::new();
    for (index, file) in fixture.files.iter().enumerate() {
        let source = db.source(FileId(index as u32)).unwrap();
        let targets = prose_hir::use_targets(db, source)
            .into_iter()
            .filter_map(|target| {
                if paths::target_kind(&target) != paths::TargetKind::Local {
                    // An address leads somewhere only if the fixture says that it is known and not approved.
                    let known = fixture.file(&target)?;
                    return Some((target, Some(FileId(known as u32))));
                }
                let found = paths::candidates(&target, &file.path, "")
                    .into_iter()
                    .find_map(|path| fixture.file(&path));
                Some((target, found.map(|it| FileId(it as u32))))
            });
        let targets = targets.collect();
        change.resolve(FileId(index as u32), targets);
    }
    db.apply_change(change);
}

pub fn file(db: &RootDatabase, index: usize) -> SourceFile {
    db.source(FileId(index as u32)).unwrap()
}

pub fn found(db: &RootDatabase, index: usize) -> Vec<Diagnostic> {
    diagnostics(db, file(db, index))
}

/// Line and column from 1.
pub fn place(text: &str, offset: TextSize) -> String {
    let at = usize::from(offset);
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |it| it + 1) + 1;
    format!("{line}:{column}")
}
