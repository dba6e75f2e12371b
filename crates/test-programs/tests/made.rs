//! What is made here is what it is said to be.
#![allow(clippy::unwrap_used, missing_docs)]

use prose_hir::{Change, FileId, RootDatabase, bundle, diagnostics};
use prose_model::codes::Severity;

#[track_caller]
fn has_no_errors(text: &str) {
    let mut db = RootDatabase::default();
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
    let file = db.source(FileId(0)).unwrap();
    let errors: Vec<_> = diagnostics(&db, file)
        .into_iter()
        .filter(|it| it.severity == Severity::Error)
        .map(|it| (it.code, it.message, &text[it.range]))
        .take(5)
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert!(bundle(&db, file).is_ok());
}

#[test]
fn repeated_examples_do_not_clash() {
    let text = test_programs::repeated(60_000);
    assert!(text.len() >= 60_000 && text.len() < 70_000);
    has_no_errors(&text);
}

#[test]
fn dense_programs_have_no_errors() {
    let text = test_programs::dense(60_000);
    assert!(text.len() >= 60_000 && text.len() < 70_000);
    has_no_errors(&text);
}

#[test]
fn pieces_are_of_all_kinds() {
    let pieces = test_programs::pieces();
    assert!(pieces.len() > 500, "{}", pieces.len());
    for wanted in ["parallel", "prompt: ", "\"\"\""] {
        assert!(pieces.iter().any(|it| it == wanted), "{wanted}");
    }
    assert!(
        pieces
            .iter()
            .any(|it| it.starts_with("let ") && it.lines().count() > 2)
    );
}
