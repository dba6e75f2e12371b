//! The measuring itself works. No time is looked at.
#![allow(clippy::unwrap_used, missing_docs)]

use prose_bench::keystrokes::{Options, measure};
use prose_bench::report;

#[test]
fn a_few_keystrokes_through_the_real_server() {
    let options = Options {
        lines: 300,
        keystrokes: 5,
        edits: 25,
    };
    let outcome = measure(&prose_tests::bin("prose-lsp"), options).unwrap();
    assert!((250..=300).contains(&outcome.lines), "{}", outcome.lines);
    let counts: Vec<usize> = outcome.times.iter().map(|it| it.all.len()).collect();
    assert_eq!(counts, [5, 5, 5, 15, 15]);
    assert!(outcome.times[0].quantile(0.5) <= outcome.times[0].quantile(1.0));
    let table = report::keystrokes(std::slice::from_ref(&outcome));
    assert_eq!(table.lines().count(), 2 + outcome.times.len());
    assert_eq!(report::memory(&[outcome]).lines().count(), 3);
}

#[test]
fn tables_go_between_the_marks_of_the_page() {
    let page = std::fs::read_to_string(test_programs::root().join("docs/performance.md")).unwrap();
    let written = report::replace_measured(&page, "| a |\n").unwrap();
    assert!(written.contains("-->\n\n| a |\n\n<!--"));
    assert_eq!(report::replace_measured(&written, "| a |").unwrap(), written);
    assert!(report::replace_measured("nothing", "").is_err());
}
