//! Tests of the syntax layer through its public interface.

#![allow(clippy::unwrap_used)]

mod chunks;
mod edits;
mod errors;
mod line_index;
mod properties;
mod recovery;
mod stress;
mod strings;
mod trees_blocks;
mod trees_expr;
mod trees_stmt;
mod typed;

use expect_test::Expect;
use prose_syntax::{dump, parse};

/// Compares the tree and the findings of a text.
#[track_caller]
fn check(text: &str, expect: Expect) {
    let parse = parse(text);
    assert_eq!(parse.syntax().text(), text);
    // Blanks are left out: that they are all there is checked above.
    let mut out = String::new();
    for line in dump(&parse.syntax())
        .lines()
        .filter(|it| !it.trim_start().starts_with("WHITESPACE@"))
    {
        out.push_str(line);
        out.push('\n');
    }
    for error in parse.errors() {
        out.push_str(&format!("{}@{:?}: {error}\n", error.code(), error.range));
    }
    expect.assert_eq(&out);
}

/// Codes of the findings that are errors.
fn error_codes(text: &str) -> Vec<&'static str> {
    let parse = parse(text);
    let errors = parse
        .errors()
        .iter()
        .filter(|it| it.severity() == prose_model::codes::Severity::Error);
    errors.map(|it| it.code()).collect()
}
