//! The editors' own grammars know every keyword of the one table, so that colours and completion agree.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use prose_model::vocabulary::KEYWORDS;
use prose_tests::root;

/// The words in a file, hyphens included. A grammar names each word somewhere, whatever its format.
fn words(path: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_grammar_knows_every_keyword() {
    assert!(KEYWORDS.len() > 40, "{}", KEYWORDS.len());
    let mut missing = Vec::new();
    // Emacs' mode colours by position more than by word, and properties are words before a colon everywhere.
    for grammar in [
        "editors/vscode/syntaxes/prose.tmLanguage.json",
        "editors/neovim/syntax/prose.vim",
    ] {
        let known = words(grammar);
        missing.extend(
            KEYWORDS
                .iter()
                .filter(|it| !known.contains(it.word))
                .map(|it| format!("{grammar}: {}", it.word)),
        );
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
