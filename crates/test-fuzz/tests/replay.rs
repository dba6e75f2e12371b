//! The inputs that once failed, the repository's programs, and some thousands of changes of them.
#![allow(clippy::unwrap_used, missing_docs)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use test_fuzz::{Edit, Edited, Target, change};
use test_programs::{Numbers, originals, root};

/// Changes tried of each target; the fuzzer tries more.
const CHANGES: u64 = 200;

/// Checks an input, and says which one it was.
#[track_caller]
fn check(target: Target, name: &str, input: &str) {
    let result = catch_unwind(AssertUnwindSafe(|| target.check(input.as_bytes())));
    assert!(
        result.is_ok(),
        "{} fails on {name}, which is\n{input}",
        target.name()
    );
}

#[test]
fn cases_stay_mended() {
    for target in Target::ALL {
        let folder = root().join("fuzz/cases").join(target.name());
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let input = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            check(target, &path.display().to_string(), &input);
        }
    }
}

#[test]
fn no_case_is_in_a_folder_that_nothing_reads() {
    for entry in std::fs::read_dir(root().join("fuzz/cases")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.ends_with(".md") || Target::ALL.iter().any(|it| it.name() == name),
            "fuzz/cases/{name}"
        );
    }
}

#[test]
fn each_target_has_its_program() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for target in Target::ALL {
        let path = format!("fuzz_targets/{}.rs", target.name());
        assert!(root().join("fuzz").join(&path).is_file(), "no fuzz/{path}");
        assert!(manifest.contains(&format!("path = \"{path}\"")), "{path}");
    }
    let programs = std::fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
    assert_eq!(programs.count(), Target::ALL.len());
}

#[test]
fn the_programs_of_the_repository() {
    for program in originals() {
        for target in Target::ALL.into_iter().filter(|it| *it != Target::Edits) {
            check(target, &program.path, &program.text);
        }
    }
}

#[test]
fn changed_programs() {
    for target in Target::ALL {
        let mut input = String::new();
        for seed in 0..CHANGES {
            input = change(target, &input, seed, 2048);
            check(target, &format!("the input of seed {seed}"), &input);
        }
    }
}

/// What the fuzzer begins with is what runs write.
#[test]
fn journals_of_runs_are_whole() {
    for (name, damaged, torn) in [
        ("a-run-with-memory-and-branches", false, false),
        ("a-run-with-an-input", false, false),
        ("torn-record", false, true),
        ("checksum-that-does-not-fit", true, false),
        ("record-that-is-missing", true, false),
    ] {
        let path = root().join("fuzz/cases/journal").join(name);
        match prose_state::read_journal(&path) {
            Ok(content) => assert!(!damaged && content.torn.is_some() == torn, "{name}"),
            Err(error) => assert!(damaged, "{name}: {error}"),
        }
    }
}

/// Every kind of edit at random places of every program, one after the other.
#[test]
fn edits_of_programs() {
    let mut numbers = Numbers::new(3);
    for program in originals().iter().take(12) {
        let edits = (0..12)
            .map(|_| Edit {
                at: numbers.below(program.text.len() + 1),
                deleted: numbers.below(8),
                with: numbers.pick(test_programs::pieces()).clone(),
            })
            .collect();
        let text = program.text.clone();
        let input = Edited { text, edits }.write();
        check(Target::Edits, &program.path, &input);
    }
}

#[test]
fn changes_do_not_depend_on_chance() {
    let one = change(Target::Parser, "let a = 1\n", 7, 1000);
    assert_eq!(one, change(Target::Parser, "let a = 1\n", 7, 1000));
    let seeds = (0..20).map(|seed| change(Target::Parser, "let a = 1\n", seed, 1000));
    assert!(seeds.collect::<std::collections::BTreeSet<_>>().len() > 10);
}
