//! `docs/compiler-checks.md` and the table of codes name the same codes, and the page leaves none of upstream's numbers out.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use prose_model::codes::CODES;
use prose_tests::root;

/// Codes in a text, each once.
fn codes(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|it| {
            it.len() == 4
                && it.starts_with(['E', 'W', 'P', 'L'])
                && it[1..].bytes().all(|it| it.is_ascii_digit())
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_names_every_code_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/compiler-checks.md")).unwrap();
    let (tables, alone) = page.split_once("\n## Ours alone\n").unwrap();
    let mut here = BTreeSet::new();
    let mut upstream = BTreeSet::new();
    for row in tables.lines().filter(|it| it.starts_with("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        upstream.extend(codes(cells[1]));
        here.extend(codes(cells[2]));
    }
    let alone = codes(alone);
    let both: Vec<_> = here.intersection(&alone).collect();
    assert!(both.is_empty(), "in the tables and ours alone: {both:?}");
    let reported = CODES.iter().filter(|it| !it.withdrawn);
    let table: BTreeSet<String> = reported.map(|it| it.code.to_owned()).collect();
    let page: BTreeSet<String> = here.union(&alone).cloned().collect();
    assert_eq!(page, table, "left: the page, right: the table of codes");

    let errors = (1..=28).map(|it| format!("E{it:03}"));
    let warnings = (1..=11).map(|it| format!("W{it:03}"));
    let expected: BTreeSet<String> = errors.chain(warnings).collect();
    assert_eq!(upstream, expected, "left: the page, right: upstream's numbers");
}
