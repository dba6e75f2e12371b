//! What a damaged statement does to the meaning of the others: only what it declared or mentioned changes.

use std::collections::BTreeSet;

use prose_hir::{Change, FileId, RootDatabase, diagnostics};
use prose_syntax::{ChunkMap, SyntaxErrorKind, SyntaxKind, TextRange, parse};

use crate::support::file;

fn programs() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<_> = ["examples", "tests/programs"]
        .iter()
        .flat_map(|it| std::fs::read_dir(root.join(it)).unwrap())
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "prose"))
        .collect();
    paths.sort();
    assert!(paths.len() > 5);
    paths
        .iter()
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect()
}

/// Findings about meaning: start, code, message.
fn meaning(db: &mut RootDatabase, text: &str) -> Vec<(usize, &'static str, String)> {
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
    diagnostics(db, file(db, 0))
        .into_iter()
        .filter(|it| SyntaxErrorKind::CODES.iter().all(|(code, ..)| *code != it.code))
        .map(|it| (usize::from(it.range.start()), it.code, it.message))
        .collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !(it.is_alphanumeric() || matches!(it, '_' | '-')))
        .filter(|it| !it.is_empty())
}

#[test]
fn deleting_a_token_changes_only_what_its_statement_named() {
    let mut deletions = 0;
    let mut db = RootDatabase::default();
    for text in programs() {
        let before = meaning(&mut db, &text);
        let statements: Vec<TextRange> = ChunkMap::with_target(&text, 1).ranges().collect();
        let tokens: Vec<TextRange> = parse(&text)
            .syntax()
            .descendants_with_tokens()
            .filter_map(|it| it.into_token())
            .filter(|it| !it.kind().is_trivia() && it.kind() != SyntaxKind::STRING)
            .map(|it| it.text_range())
            .collect();
        for token in tokens {
            deletions += 1;
            let mut after = text.clone();
            after.replace_range(std::ops::Range::<usize>::from(token), "");
            let statement = statements.iter().find(|it| it.contains(token.start())).unwrap();
            let (from, to) = (usize::from(statement.start()), usize::from(statement.end()));
            let gone = usize::from(token.len());
            let outside_before: BTreeSet<_> = before
                .iter()
                .filter(|(at, ..)| *at < from || *at >= to)
                .map(|(at, code, message)| (if *at >= to { at - gone } else { *at }, *code, message.clone()))
                .collect();
            let outside_after: BTreeSet<_> = meaning(&mut db, &after)
                .into_iter()
                .filter(|(at, ..)| *at < from || *at >= to - gone)
                .collect();
            let named: BTreeSet<&str> = words(&text[*statement]).collect();
            for (at, code, message) in outside_before.symmetric_difference(&outside_after) {
                // Lints are about style: they are silent next to a syntax error, and `output name = x` without the name
                // leaves the program.
                if code.starts_with('L') {
                    continue;
                }
                assert!(
                    words(message).any(|it| named.contains(it)),
                    "{code} at {at}: {message}; without {:?} in {:?}\n{after}",
                    &text[token],
                    &text[*statement]
                );
            }
        }
    }
    assert!(deletions > 700);
}
