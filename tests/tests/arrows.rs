//! The table of crates in `docs/architecture.md`, held against what `cargo metadata` says.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use prose_tests::root;

/// Crates that no shipped crate depends on, and that may depend on anything.
const DEV_ONLY: [&str; 7] = [
    "mock-model",
    "prose-bench",
    "test-fixture",
    "test-fuzz",
    "test-programs",
    "xtask",
    "prose-tests",
];
/// May depend on every crate: it is where they are put together.
const TOP: &str = "prose-cli";
/// Dependencies from outside that belong to one crate only.
const PRIVATE: [(&str, &str); 2] = [("lsp-types", "prose-lsp"), ("tower-lsp", "prose-lsp")];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// The arrows that the document allows: rows `| `prose-x` | … | may depend on | … |`, names without `prose-`.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    text.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').map(str::trim).collect();
            let name = cells.first()?.strip_suffix('`')?;
            let targets = cells
                .get(2)?
                .split(',')
                .map(str::trim)
                .filter(|target| !matches!(*target, "–" | ""));
            name.starts_with("prose-").then(|| {
                (
                    name.to_owned(),
                    targets.map(|target| format!("prose-{target}")).collect(),
                )
            })
        })
        .collect()
}

fn normal_dependencies(package: &Package) -> BTreeSet<String> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal)
        .map(|dependency| dependency.name.to_string())
        .collect()
}

/// What is wrong with the arrows of `package`, a sentence each.
fn wrong_arrows(
    package: &str,
    dependencies: &BTreeSet<String>,
    ours: &BTreeSet<String>,
    allowed: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if DEV_ONLY.contains(&package) {
        return wrong;
    }
    for (outside, owner) in PRIVATE {
        if dependencies.contains(outside) && package != owner {
            wrong.push(format!("{package} depends on {outside}, which only {owner} may"));
        }
    }
    let Some(targets) = allowed.get(package) else {
        wrong.push(format!(
            "{package} is missing in the table of docs/architecture.md"
        ));
        return wrong;
    };
    for target in dependencies.intersection(ours) {
        if DEV_ONLY.contains(&target.as_str()) {
            wrong.push(format!("{package} depends on {target}, which is for tests only"));
        } else if package != TOP && !targets.contains(target) {
            wrong.push(format!(
                "{package} depends on {target}; the table of docs/architecture.md has no such arrow"
            ));
        }
    }
    wrong
}

#[test]
fn arrows_are_those_of_the_table() {
    let metadata = metadata();
    let ours: BTreeSet<String> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let allowed = allowed();
    let wrong: Vec<String> = metadata
        .packages
        .iter()
        .flat_map(|package| wrong_arrows(&package.name, &normal_dependencies(package), &ours, &allowed))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in allowed.keys() {
        assert!(
            ours.contains(name),
            "the table of docs/architecture.md has a crate {name} that does not exist"
        );
    }
}

#[test]
fn a_wrong_arrow_is_found() {
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let ours = set(&["prose-model", "prose-vm", "prose-lsp", "test-fixture"]);
    let allowed = BTreeMap::from([
        ("prose-model".to_owned(), set(&[])),
        ("prose-vm".to_owned(), set(&["prose-model"])),
        ("prose-lsp".to_owned(), set(&["prose-model"])),
    ]);
    let wrong = |package: &str, dependencies: &[&str]| {
        wrong_arrows(package, &set(dependencies), &ours, &allowed).len()
    };
    assert_eq!(wrong("prose-vm", &["prose-model", "serde"]), 0);
    assert_eq!(wrong("prose-lsp", &["prose-model", "lsp-types", "tower-lsp"]), 0);
    assert_eq!(wrong("prose-model", &["prose-vm"]), 1);
    assert_eq!(wrong("prose-vm", &["lsp-types"]), 1);
    assert_eq!(wrong("prose-vm", &["test-fixture"]), 1);
    assert_eq!(wrong("prose-new", &[]), 1);
}

#[test]
fn every_crate_says_what_it_is_for() {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let file = entry.unwrap().path().join("src/lib.rs");
        let text = std::fs::read_to_string(&file).unwrap();
        let charter: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(str::trim)
            .collect();
        assert!(
            charter.first().is_some_and(|line| !line.is_empty()),
            "{} has no doc comment at its top",
            file.display()
        );
        for part in ["Deliberately absent:", "Architecture invariant:"] {
            assert!(
                charter.join(" ").contains(part),
                "the doc comment at the top of {} lacks “{part}”",
                file.display()
            );
        }
        seen += 1;
    }
    assert!(seen > 10);
}

#[test]
fn unsafe_code_is_only_where_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let listed: BTreeSet<String> = page
        .split("## Unsafe code")
        .nth(1)
        .unwrap()
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("- `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    // Written in two parts, so that this file is none of those.
    let allowed = ["allow(unsafe", "_code)"].concat();
    let mut folders = ["crates", "tests", "xtask"]
        .map(|name| root().join(name))
        .to_vec();
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && std::fs::read_to_string(&path).unwrap().contains(&allowed)
            {
                let name = path.strip_prefix(root()).unwrap();
                found.insert(name.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    assert_eq!(found, listed);
}
