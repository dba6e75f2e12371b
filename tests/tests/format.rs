//! Formatting changes no program: what is lowered is equal but for ranges. The repository's own programs are formatted.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use prose_tests::lowered::without_ids;
use prose_tests::{prose, root, workspace};
use serde_json::Value;

fn programs() -> Vec<PathBuf> {
    let mut paths = prose_project::find_programs(&root().join("examples")).unwrap();
    paths.extend(prose_project::find_programs(&root().join("tests/programs")).unwrap());
    assert!(paths.len() >= 11);
    paths
}

fn lowered(path: &Path, text: &str) -> Value {
    let name = path.file_name().unwrap().to_string_lossy();
    prose_tests::lowered::lowered(path.parent().unwrap(), &name, text).unwrap()
}

/// The same program written carelessly: deeper, with more blanks.
fn careless(text: &str) -> String {
    let parse = prose_syntax::parse(text);
    let mut out = String::new();
    for token in parse
        .syntax()
        .descendants_with_tokens()
        .filter_map(|it| it.into_token())
    {
        let blank = token.kind() == prose_syntax::SyntaxKind::WHITESPACE;
        match token.text().rfind('\n').filter(|_| blank) {
            Some(at) => {
                let (lines, indent) = token.text().split_at(at + 1);
                out.push_str(&lines.replace('\n', "   \n"));
                out.push_str(&indent.repeat(2));
            }
            None if blank => out.push_str("  "),
            None => out.push_str(token.text()),
        }
    }
    out
}

#[test]
fn formatting_changes_no_program() {
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap();
        let before = lowered(&path, &text);
        let formatted = prose_fmt::format_text(&text);
        assert_eq!(
            prose_fmt::format_text(&formatted),
            formatted,
            "{}",
            path.display()
        );
        assert_eq!(lowered(&path, &formatted), before, "{}", path.display());
        let careless = careless(&text);
        assert_ne!(careless, text);
        assert_eq!(lowered(&path, &careless), before, "{}", path.display());
        let formatted = prose_fmt::format_text(&careless);
        assert_eq!(
            prose_fmt::format_text(&formatted),
            formatted,
            "{}",
            path.display()
        );
        assert_eq!(lowered(&path, &formatted), before, "{}", path.display());
    }
}

#[test]
fn the_canonical_form_means_the_same() {
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap();
        let form = prose_fmt::canonical(&prose_syntax::parse(&text));
        assert!(
            !prose_syntax::parse(&form).has_errors(),
            "{}:\n{form}",
            path.display()
        );
        let (before, after) = (lowered(&path, &text), lowered(&path, &form));
        assert_eq!(
            without_ids(after),
            without_ids(before),
            "{}:\n{form}",
            path.display()
        );
        let again = prose_fmt::canonical(&prose_syntax::parse(&form));
        assert_eq!(again, form, "{}", path.display());
    }
}

#[test]
fn the_repositorys_programs_are_formatted() {
    let dir = workspace(&[]);
    let ran = prose(
        dir.path(),
        &[
            "fmt",
            "--check",
            root().join("examples").to_str().unwrap(),
            root().join("tests/programs").to_str().unwrap(),
        ],
    );
    assert_eq!(
        ran.code, 0,
        "not formatted (`prose fmt examples tests/programs`):\n{}",
        ran.stdout
    );
}
