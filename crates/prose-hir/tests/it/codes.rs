//! The table of codes, its pages, and what is really reported.

use std::collections::BTreeSet;

use prose_model::codes::{CODES, CodeInfo, Severity};
use test_fixture::Fixture;

use crate::support::{found, load};

/// The program below a heading of a page.
fn program(page: &str, heading: &str) -> Option<String> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1)?;
    let section = section.split("\n## ").next()?;
    let code = section.split("```prose\n").nth(1)?;
    Some(code.split("```").next()?.to_owned())
}

/// Programs too large for a page.
fn too_large(code: &str) -> Option<String> {
    match code {
        "P106" => Some(format!("let x = {}1{}\n", "(".repeat(2000), ")".repeat(2000))),
        "W003" => Some(format!("session \"{}\"\n", "word ".repeat(2001))),
        _ => None,
    }
}

fn codes(text: &str) -> BTreeSet<&'static str> {
    let db = load(&Fixture::parse(text));
    found(&db, 0).into_iter().map(|it| it.code).collect()
}

fn silencing_names(info: &CodeInfo) -> bool {
    info.page.contains("\n## Silencing\n") && info.page.contains(&format!("`{} = ", info.code))
}

#[test]
fn pages_show_what_they_say() {
    let mut wrong_pages = Vec::new();
    for info in CODES.iter().filter(|it| !it.withdrawn) {
        let wrong = program(info.page, "Wrong").or_else(|| too_large(info.code));
        let wrong = wrong.unwrap_or_else(|| panic!("{} has no wrong program", info.code));
        let right =
            program(info.page, "Right").unwrap_or_else(|| panic!("{} has no right program", info.code));
        let mut expected = BTreeSet::from([info.code]);
        // A page names what else its program shows.
        if let Some(also) = info.page.split("This program also gives ").nth(1) {
            let also = also.split('.').next().unwrap();
            expected.insert(CODES.iter().find(|it| it.code == also).unwrap().code);
        }
        let got = codes(&wrong);
        if got != expected {
            wrong_pages.push(format!("{}: the wrong program gives {got:?}", info.code));
        }
        let got = codes(&right);
        let serious = |code: &&&str| {
            CODES
                .iter()
                .any(|it| it.code == **code && it.severity != Severity::Hint)
        };
        if got.contains(info.code) || got.iter().filter(serious).count() > 0 {
            wrong_pages.push(format!("{}: the right program gives {got:?}", info.code));
        }
        if !silencing_names(info) {
            wrong_pages.push(format!("{}: nothing about silencing", info.code));
        }
    }
    assert!(wrong_pages.is_empty(), "{}", wrong_pages.join("\n"));
}

#[test]
fn severities_agree_with_the_table() {
    for info in CODES.iter().filter(|it| !it.withdrawn) {
        let text = program(info.page, "Wrong")
            .or_else(|| too_large(info.code))
            .unwrap();
        let db = load(&Fixture::parse(&text));
        for it in found(&db, 0) {
            let row = prose_model::codes::find(it.code)
                .unwrap_or_else(|| panic!("{} is not in the table", it.code));
            assert_eq!(it.severity, row.severity, "{}", it.code);
            assert!(
                !it.message.is_empty() && !it.message.ends_with('.'),
                "{}: {}",
                it.code,
                it.message
            );
        }
    }
}

/// Every code that a literal in the sources names has a row, and every row is named by one.
#[test]
fn table_and_sources_have_the_same_codes() {
    let mut in_sources = BTreeSet::new();
    for (code, severity, _) in prose_syntax::SyntaxErrorKind::CODES {
        let row = prose_model::codes::find(code)
            .unwrap_or_else(|| panic!("{code} of the parser is not in the table"));
        assert_eq!(row.severity, *severity, "{code}");
        in_sources.insert((*code).to_owned());
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut open = vec![folder];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for piece in text.split('"') {
            let code = piece.len() == 4
                && piece.starts_with(['E', 'W', 'P', 'L'])
                && piece[1..].bytes().all(|it| it.is_ascii_digit());
            if code {
                in_sources.insert(piece.to_owned());
            }
        }
    }
    let reported = CODES.iter().filter(|it| !it.withdrawn);
    let in_table: BTreeSet<String> = reported.map(|it| it.code.to_owned()).collect();
    assert_eq!(in_sources, in_table);
}
