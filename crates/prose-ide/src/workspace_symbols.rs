//! Declarations of the whole workspace whose names match what was typed.

use prose_hir::{DefKind, RootDatabase};

use crate::names;
use crate::types::NavigationTarget;

/// The best matches first, at most `limit`: names that are what was typed, then those that begin with it, contain it, have
/// its letters in order. Variables of constructs and parameters are not listed.
pub(crate) fn workspace_symbols(db: &RootDatabase, query: &str, limit: usize) -> Vec<NavigationTarget> {
    let query: Vec<char> = query.chars().flat_map(char::to_lowercase).collect();
    let mut files: Vec<_> = db.files().collect();
    files.sort_by_key(|it| it.0);
    let mut found = Vec::new();
    for (id, file) in files {
        for definition in prose_hir::definitions(db, file) {
            if definition.kind.is_scoped() {
                continue;
            }
            if let Some(rank) = rank(&definition.name, &query) {
                let main = !matches!(
                    definition.kind,
                    DefKind::Agent | DefKind::Block | DefKind::Input | DefKind::Output
                );
                let key = (rank, main, definition.name, id, definition.range.start());
                found.push((key, definition));
            }
        }
    }
    found.sort_by_key(|it| it.0);
    found.iter().take(limit).map(|it| names::target(&it.1)).collect()
}

/// How well a name matches, the smaller the better.
fn rank(name: &str, query: &[char]) -> Option<u8> {
    if query.is_empty() {
        return Some(0);
    }
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    if name == query {
        return Some(0);
    }
    if name.starts_with(query) {
        return Some(1);
    }
    if name.windows(query.len()).any(|it| it == query) {
        return Some(2);
    }
    let mut rest = name.iter();
    query
        .iter()
        .all(|wanted| rest.any(|it| it == wanted))
        .then_some(3)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::FileRange;
    use crate::fixture::setup;

    const FILES: &str = "#- /main.prose\nuse \"lib.prose\" as lib\nagent writer:\n  model: opus\nlet written = session: writer\nfor w in [1]:\n  session \"{w}\"\n#- /lib.prose\nblock rewrite(w):\n  session \"{w}\"\nagent worker-title:\n  model: opus\ninput writ: \"?\"\n";

    #[track_caller]
    fn check(query: &str, limit: usize, expect: Expect) {
        let setup = setup(FILES);
        let found = setup.analysis.workspace_symbols(query, limit).unwrap();
        let shown: Vec<String> = found
            .into_iter()
            .map(|it| {
                let place = setup.place(FileRange {
                    file: it.file,
                    range: it.focus_range,
                });
                format!("{} {} {place}", it.kind.as_str(), it.name)
            })
            .collect();
        expect.assert_eq(&shown.join("\n"));
    }

    #[test]
    fn best_first() {
        check(
            "Writ",
            10,
            expect![[r#"
            input writ /lib.prose:5:7
            agent writer /main.prose:2:7
            variable written /main.prose:4:5
            block rewrite /lib.prose:1:7
            agent worker-title /lib.prose:3:7"#]],
        );
        check(
            "",
            3,
            expect![[r#"
            block rewrite /lib.prose:1:7
            agent worker-title /lib.prose:3:7
            input writ /lib.prose:5:7"#]],
        );
        check("nothing like it", 10, expect![""]);
    }
}
