//! Formatting: blanks move and nothing else, once is enough, and the program stays what it is.

use prose_fmt::format_text;
use prose_syntax::{NodeOrToken, SyntaxKind, parse};

use crate::program::program;

pub(crate) fn check(text: &str) {
    let formatted = format_text(text);
    assert_eq!(
        contents(text),
        contents(&formatted),
        "formatting changed more than blanks, to\n{formatted}"
    );
    assert_eq!(
        format_text(&formatted),
        formatted,
        "formatting twice is not formatting once"
    );
    if parse(text).has_errors() {
        return;
    }
    assert!(
        !parse(&formatted).has_errors(),
        "formatting made errors, in\n{formatted}"
    );
    assert_eq!(
        program(text),
        program(&formatted),
        "formatting changed what the program is, to\n{formatted}"
    );
}

/// Everything a text says: its tokens without blanks. Strings, discretions and comments are tokens. A comma that ends a list may
/// come and go with its lines, and blanks at a line's end go from comments.
pub(crate) fn contents(text: &str) -> Vec<(SyntaxKind, String)> {
    let mut all: Vec<(SyntaxKind, String)> = Vec::new();
    for token in parse(text)
        .syntax()
        .descendants_with_tokens()
        .filter_map(NodeOrToken::into_token)
    {
        match token.kind() {
            SyntaxKind::WHITESPACE => {}
            SyntaxKind::COMMENT => all.push((SyntaxKind::COMMENT, token.text().trim_end().to_owned())),
            kind => all.push((kind, token.text().to_owned())),
        }
    }
    let closers = [SyntaxKind::R_BRACK, SyntaxKind::R_BRACE, SyntaxKind::R_PAREN];
    let mut kept: Vec<(SyntaxKind, String)> = Vec::with_capacity(all.len());
    for (index, it) in all.iter().enumerate() {
        let next = all[index + 1..].iter().find(|next| next.0 != SyntaxKind::COMMENT);
        if it.0 == SyntaxKind::COMMA && next.is_some_and(|next| closers.contains(&next.0)) {
            continue;
        }
        kept.push(it.clone());
    }
    kept
}
