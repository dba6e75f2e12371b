//! The crate table of `docs/architecture.md`: who may depend on whom, and what may depend on LSP types.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};
use prose_tests::root;

/// Normal dependencies among our crates. Whatever is not here is an arrow that the architecture lacks.
const ALLOWED: &[(&str, &[&str])] = &[
    ("prose-model", &[]),
    ("prose-syntax", &["prose-model"]),
    ("prose-hir", &["prose-syntax", "prose-model"]),
    ("prose-ide", &["prose-hir", "prose-syntax", "prose-model"]),
    ("prose-vm", &["prose-model"]),
    ("prose-state", &["prose-model"]),
    ("prose-agents", &["prose-model"]),
    ("prose-project", &["prose-hir", "prose-model"]),
    (
        "prose-runtime",
        &["prose-vm", "prose-state", "prose-agents", "prose-model"],
    ),
    (
        "prose-lsp",
        &[
            "prose-ide",
            "prose-project",
            "prose-runtime",
            "prose-model",
            "prose-syntax",
        ],
    ),
];

/// May depend on anything: the binaries, and what no user gets.
const FREE: &[&str] = &["prose-cli", "prose-tests", "test-fixture", "xtask"];

#[test]
fn crates_depend_only_along_the_table() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    assert!(ours.contains("prose-vm"));
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let from = package.name.as_str();
        if FREE.contains(&from) {
            continue;
        }
        let Some(to) = allowed.get(from) else {
            wrong.push(format!("{from} is not in the table"));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|d| d.kind == DependencyKind::Normal)
        {
            let name = dependency.name.as_str();
            if ours.contains(name) && !to.contains(name) {
                wrong.push(format!("{from} -> {name}"));
            }
            if ["lsp-types", "tower-lsp"].contains(&name) && from != "prose-lsp" {
                wrong.push(format!("{from} -> {name}: LSP types stay in prose-lsp"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_has_a_charter() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let lib = entry.unwrap().path().join("src/lib.rs");
        let text = std::fs::read_to_string(&lib).unwrap();
        let charter: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        for part in ["Deliberately absent:", "Architecture invariant:"] {
            assert!(charter.contains(part), "{} lacks `{part}`", lib.display());
        }
    }
}
