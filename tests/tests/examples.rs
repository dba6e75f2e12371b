//! Every program in `examples/` is free of errors and warnings and runs to its end on its mock file.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::PathBuf;

use expect_test::expect;
use prose_tests::{prose, root, workspace};

fn examples() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "prose"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 9);
    paths
}

#[test]
fn examples_check_clean() {
    let dir = workspace(&[]);
    for path in examples() {
        let ran = prose(
            dir.path(),
            &["check", "--deny", "warnings", path.to_str().unwrap()],
        );
        assert_eq!(ran.code, 0, "{}", ran.stdout);
    }
}

#[test]
fn examples_run() {
    let mut report = String::new();
    for path in examples() {
        assert!(
            path.with_extension("mock.toml").exists(),
            "{} has no mock file",
            path.display()
        );
        // The folder's `.prose` would take the run in.
        let dir = workspace(&[]);
        let copy = dir.path().join(path.file_name().unwrap());
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(path.with_extension("mock.toml"), copy.with_extension("mock.toml")).unwrap();
        let path = copy;
        let ran = prose(
            dir.path(),
            &["run", path.to_str().unwrap(), "--backend", "simulate", "--quiet"],
        );
        assert_eq!(ran.code, 0, "{}: {}", path.display(), ran.stderr);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        report.push_str(&format!("== {name}\n{}", ran.stdout));
    }
    expect![[r#"
        == captain.prose
        The move is done; one link outside our control still points to the old page.
        == divide.prose
        Harbours follow the tides, and people follow the harbours.
        == hello.prose
        Answering the Sea
        == parallel-review.prose
        1. The password is written to the debug log.
        2. Every keystroke triggers a request.
        3. `doIt` says nothing about what it does.
        == recover.prose
        mirror-2 did not answer. Try again later or choose another mirror.
        == refine.prose
        A write-ahead log is written before the data, so that after a crash every half-done change can be finished or undone.
        == release.prose
        {
          "release_notes": "Before you update: create new tokens. Backups resume; the log rotates.",
          "people": "Ada, Bo, Chidi"
        }
        == shortlist.prose
        Lisbon opens to the Atlantic, Trieste hides in the Adriatic's corner, and Bergen shows its wooden houses.
        == triage.prose
        Logins are down for all users since 07:00. Please look at the auth service.
    "#]].assert_eq(&report);
}
