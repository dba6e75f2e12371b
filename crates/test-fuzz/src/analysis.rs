//! All checks, lowering, and questions at a place.

use prose_hir::{
    Change, Diagnostic, FileId, RootDatabase, SourceFile, bundle, definitions, diagnostics, name_at, paths,
    references, scope_at,
};
use prose_model::codes::{self, Severity};

/// The file under test.
pub(crate) const MAIN: FileId = FileId(0);
/// A file that the text may `use`, as `./lib` or `./lib.prose`.
const LIB: FileId = FileId(1);
const LIB_TEXT: &str = "input topic: \"Topic\"\nagent helper:\n  prompt: \"You help.\"\n\
    block shared(a, b):\n  output a\noutput result = do shared(topic, 1)\n";

pub(crate) fn check(text: &str) {
    let mut db = database();
    set(&mut db, text);
    let Some(file) = db.source(MAIN) else {
        panic!("the file is not there");
    };
    let found = diagnostics(&db, file);
    found.iter().for_each(|it| sensible(it, text));
    let errors = found.iter().any(|it| it.severity == Severity::Error);
    match bundle(&db, file) {
        Ok(bundle) => {
            assert!(!errors, "a program with errors was lowered");
            assert_eq!(bundle.programs.is_empty(), bundle.files.is_empty());
        }
        Err(why) => assert!(errors, "a program without errors was not lowered: {why:?}"),
    }
    questions(&db, file, text);
}

/// A database with only the file that may be used.
pub(crate) fn database() -> RootDatabase {
    with_lib(RootDatabase::default())
}

/// As [`database`], with a chunk for each statement of the top level.
pub(crate) fn database_of_small_chunks() -> RootDatabase {
    with_lib(RootDatabase::with_chunk_size(None, 1))
}

fn with_lib(mut db: RootDatabase) -> RootDatabase {
    let mut change = Change::new();
    change.text(LIB, "/lib.prose", LIB_TEXT);
    db.apply_change(change);
    db
}

/// Sets the text of the main file, and where what it uses leads.
pub(crate) fn set(db: &mut RootDatabase, text: &str) {
    let mut change = Change::new();
    change.text(MAIN, "/main.prose", text);
    db.apply_change(change);
    let Some(file) = db.source(MAIN) else { return };
    let targets = prose_hir::use_targets(db, file)
        .into_iter()
        .filter(|target| paths::target_kind(target) == paths::TargetKind::Local)
        .map(|target| {
            let found = paths::candidates(&target, "/main.prose", "")
                .into_iter()
                .find_map(|path| match path.as_str() {
                    "/lib.prose" => Some(LIB),
                    "/main.prose" => Some(MAIN),
                    _ => None,
                });
            (target, found)
        })
        .collect();
    let mut change = Change::new();
    change.resolve(MAIN, targets);
    db.apply_change(change);
}

/// What the checks say of the main file.
pub(crate) fn found(db: &RootDatabase) -> Vec<Diagnostic> {
    db.source(MAIN)
        .map_or_else(Vec::new, |file| diagnostics(db, file))
}

fn sensible(it: &Diagnostic, text: &str) {
    let inside = |range: prose_syntax::TextRange| {
        text.get(usize::from(range.start())..usize::from(range.end()))
            .is_some()
    };
    assert!(
        inside(it.range),
        "{it:?} is outside the text or inside a character"
    );
    assert!(codes::find(it.code).is_some(), "{it:?} has no row in the table");
    assert!(!it.message.is_empty(), "{it:?} says nothing");
    for (file, range, _) in &it.related {
        assert!(*file != MAIN || inside(*range), "{it:?} points outside the text");
    }
    if let Some(fix) = &it.fix {
        let mut edits: Vec<_> = fix.edits.iter().map(|(range, _)| *range).collect();
        edits.sort_by_key(|range| (range.start(), range.end()));
        assert!(
            edits.iter().all(|range| inside(*range)),
            "{it:?} edits outside the text"
        );
        assert!(
            edits.windows(2).all(|two| two[0].end() <= two[1].start()),
            "{it:?} has edits that overlap"
        );
    }
}

/// A place in every stretch of the text, and its end.
fn questions(db: &RootDatabase, file: SourceFile, text: &str) {
    let step = text.len() / 8 + 1;
    for at in (0..=text.len()).step_by(step).chain([text.len(), text.len() + 1]) {
        let at = u32::try_from(at).unwrap_or(u32::MAX).into();
        scope_at(db, file, at);
        if let Some(definition) = name_at(db, file, at).and_then(|it| it.definition) {
            for place in references(db, &definition) {
                assert!(
                    usize::from(place.range.end()) <= text.len().max(LIB_TEXT.len()),
                    "{place:?} is outside the text"
                );
            }
        }
    }
    definitions(db, file);
}
