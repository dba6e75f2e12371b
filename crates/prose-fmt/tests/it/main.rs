//! Tests of the formatter through its public interface.
#![allow(clippy::unwrap_used, missing_docs)]

mod broken;
mod canonical;
mod properties;
mod rules;
mod typing;

/// Formats a text, and holds the result against what always must be so.
fn formatted(text: &str) -> String {
    let once = prose_fmt::format_text(text);
    assert_eq!(prose_fmt::format_text(&once), once, "formatting is idempotent");
    let letters = |text: &str| {
        text.chars()
            .filter(|it| !it.is_whitespace() && *it != ',')
            .collect::<String>()
    };
    assert_eq!(
        letters(&once),
        letters(text),
        "nothing but blanks and commas changes"
    );
    once
}
