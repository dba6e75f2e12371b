//! What the checks found, and the lowered program.

use std::sync::Arc;

use prose_hir::{Diagnostic, FileId, RootDatabase};
use prose_model::Bundle;

use crate::tree;

pub(crate) fn diagnostics(db: &RootDatabase, file: FileId) -> Vec<Diagnostic> {
    let Some(source) = tree::source(db, file) else {
        return Vec::new();
    };
    let mut found = prose_hir::diagnostics(db, source);
    found.sort_by_key(|it| (it.range.start(), it.range.end(), it.code));
    found
}

pub(crate) fn bundle(db: &RootDatabase, file: FileId) -> Result<Arc<Bundle>, Vec<Diagnostic>> {
    match db.source(file) {
        Some(source) => prose_hir::bundle(db, source),
        None => Err(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::FileRange;
    use crate::fixture::setup;

    #[track_caller]
    fn check(fixture: &str, expect: Expect) {
        let setup = setup(fixture);
        let file = setup.main();
        let found = setup.analysis.diagnostics(file).unwrap();
        let shown: Vec<String> = found
            .into_iter()
            .map(|it| {
                let place = setup.place(FileRange {
                    file,
                    range: it.range,
                });
                format!(
                    "{place} {} {} [{}]",
                    it.severity.as_str(),
                    it.code,
                    setup.slice(file, it.range)
                )
            })
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn in_the_order_of_the_text() {
        check(
            "session: nobody\ndo nothing\nagent a:\n  model: opus\nagent a:\n  model: opus\n",
            expect![[r#"
            /main.prose:1:10 error E007 [nobody]
            /main.prose:2:4 error P141 [nothing]
            /main.prose:3:7 hint L401 [a]
            /main.prose:5:7 error E006 [a]"#]],
        );
        check("session \"x\"\n", expect![""]);
    }

    #[test]
    fn programs_with_errors_have_no_bundle() {
        let broken = setup("session: nobody\n");
        let found = broken.analysis.bundle(broken.main()).unwrap().unwrap_err();
        assert_eq!(found.iter().map(|it| it.code).collect::<Vec<_>>(), ["E007"]);
        let sound = setup("session \"x\"\n");
        let bundle = sound.analysis.bundle(sound.main()).unwrap().unwrap();
        assert_eq!(bundle.programs.len(), 1);
    }
}
