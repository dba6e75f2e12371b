//! Starting, leaving and taking up runs.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{bundle, issued, outcome};
use prose_model::*;
use prose_state::{FixedIds, ManualClock, NewRun, Run, RunDir, RunState, StateError, list_runs, run_summary};

const START: i64 = 1_768_487_452_345;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(START))
}

fn create(root: &Path, id: u64) -> Run {
    let new = NewRun {
        program: "main.prose".into(),
        bundle: bundle("session \"a\"\n"),
        inputs: [("topic".to_owned(), Value::text("x".repeat(5000)))]
            .into_iter()
            .collect(),
        options: RunOptions {
            backend: "simulate".into(),
            ..RunOptions::default()
        },
        engine: "test".into(),
    };
    Run::create(root, new, clock(), &FixedIds::from(id)).unwrap()
}

#[test]
fn a_run_is_taken_up_where_it_was_left() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    assert_eq!(
        fs::read_to_string(run.dir.path().join("program.prose")).unwrap(),
        "session \"a\"\n"
    );
    assert_eq!((run.lease, run.started_ms), (1, START));
    for (id, order) in [("a", 0), ("b", 1), ("c", 2)] {
        run.journal.append(issued(id, order)).unwrap();
    }
    let started = |id: &str, lease| RecordBody::Started {
        id: id.into(),
        lease,
        backend: "acp".into(),
        handle: Some(serde_json::json!({"session": 7})),
    };
    run.journal.append(started("c", 1)).unwrap();
    run.journal.append(outcome("b", 1, Value::text("done"))).unwrap();
    run.journal
        .append_durable(RecordBody::Input {
            name: "go".into(),
            value: Value::Bool(true),
        })
        .unwrap();
    let (dir, header) = (run.dir.clone(), run.header.clone());
    drop(run);

    let (run, recovered) = Run::open(dir, clock()).unwrap();
    assert_eq!((run.lease, run.started_ms, &run.header), (2, START, &header));
    assert_eq!(run.bundle.files[0].text.as_ref(), "session \"a\"\n");
    let Value::Text(topic) = &run.header.inputs["topic"] else {
        panic!("text")
    };
    assert!(
        topic.as_inline().is_none(),
        "a long input is stored, not written into the header"
    );
    assert_eq!(run.values.materialize(topic).unwrap(), "x".repeat(5000));
    assert_eq!(recovered.records.len(), 8);
    assert_eq!(recovered.inputs["go"], Value::Bool(true));
    let pending: Vec<(&str, bool)> = recovered
        .pending
        .iter()
        .map(|effect| (effect.id.as_str(), effect.started.is_some()))
        .collect();
    assert_eq!(pending, [("a", false), ("c", true)]);
    assert_eq!((recovered.torn, recovered.ended), (None, None));

    run.journal
        .append_durable(RecordBody::End {
            status: RunStatus::Waiting,
        })
        .unwrap();
    let dir = run.dir.clone();
    drop(run);
    let (run, recovered) = Run::open(dir, clock()).unwrap();
    assert_eq!((run.lease, recovered.ended), (3, Some(RunStatus::Waiting)));
}

#[test]
fn a_run_has_one_owner() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let error = Run::open(run.dir.clone(), clock()).err().unwrap();
    assert!(
        matches!(error, StateError::Locked { pid: Some(pid), .. } if pid == std::process::id()),
        "{error}"
    );
}

#[test]
fn a_run_at_rest_is_held_and_not_changed() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    run.journal
        .append_durable(RecordBody::End {
            status: RunStatus::Waiting,
        })
        .unwrap();
    let dir = run.dir.clone();
    drop(run);
    let before = fs::read(dir.journal()).unwrap();
    let (mut run, recovered) = Run::at_rest(dir.clone(), clock(), None).unwrap();
    assert_eq!((run.lease, recovered.ended), (1, Some(RunStatus::Waiting)));
    assert!(matches!(
        Run::at_rest(dir.clone(), clock(), None),
        Err(StateError::Locked { .. })
    ));
    run.mend().unwrap();
    run.journal.append_durable(issued("a", 0)).unwrap();
    assert_eq!(fs::read(dir.journal()).unwrap(), before);
    run.take_up().unwrap();
    run.journal.append_durable(issued("a", 0)).unwrap();
    drop(run);
    let (run, recovered) = Run::open(dir, clock()).unwrap();
    assert_eq!((run.lease, recovered.records.len()), (3, 5));
}

#[test]
fn what_never_started_or_was_changed_is_not_resumed() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let dir = run.dir.clone();
    drop(run);

    let other = serde_json::to_vec(&*bundle("session \"b\"\n")).unwrap();
    let bytes = fs::read(dir.bundle()).unwrap();
    fs::write(dir.bundle(), other).unwrap();
    let error = Run::open(dir.clone(), clock()).err().unwrap();
    assert!(
        error.to_string().contains("but the run was started with"),
        "{error}"
    );
    fs::write(dir.bundle(), &bytes[..100]).unwrap();
    let error = Run::open(dir.clone(), clock()).err().unwrap();
    assert!(matches!(error, StateError::BundleDamaged { .. }), "{error:?}");
    fs::write(dir.bundle(), bytes).unwrap();
    Run::open(dir.clone(), clock()).unwrap();

    fs::write(dir.journal(), "").unwrap();
    assert!(matches!(
        Run::open(dir.clone(), clock()),
        Err(StateError::NoHeader { .. })
    ));
    fs::remove_file(dir.journal()).unwrap();
    assert!(matches!(
        Run::open(dir.clone(), clock()),
        Err(StateError::NoHeader { .. })
    ));
    // What a session wrote shows that there was one.
    let bindings = dir.path().join("bindings");
    fs::create_dir_all(&bindings).unwrap();
    fs::write(bindings.join("x.md"), "# x\n").unwrap();
    for empty in [false, true] {
        if empty {
            fs::write(dir.journal(), "").unwrap();
        }
        assert!(matches!(
            Run::open(dir.clone(), clock()),
            Err(StateError::JournalLost { .. })
        ));
        let RunState::Unreadable { reason } = run_summary(&dir).state else {
            panic!("readable")
        };
        assert!(reason.contains("what its sessions wrote is in"), "{reason}");
    }
    assert!(matches!(
        RunDir::at(&root.path().join("none")),
        Err(StateError::NoRun { .. })
    ));
}

#[test]
fn runs_are_listed_with_how_they_stand() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(list_runs(root.path()).unwrap(), []);
    let done = create(root.path(), 1);
    done.journal.append(issued("a", 0)).unwrap();
    done.journal.append(outcome("a", 1, Value::Null)).unwrap();
    done.journal.append(issued("b", 1)).unwrap();
    done.journal
        .append_durable(RecordBody::End {
            status: RunStatus::Completed,
        })
        .unwrap();
    drop(done);
    drop(create(root.path(), 2));
    let running = create(root.path(), 3);
    let broken = create(root.path(), 4);
    let journal = broken.dir.journal();
    drop(broken);
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("main.prose", "Main.prose", 1)).unwrap();
    fs::create_dir(RunDir::runs(root.path()).join("20260101-000000-aaaaaa")).unwrap();
    let foreign = RunDir::runs(root.path()).join("20260101-000000-aaaaa9");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("state.md"), "# Execution State").unwrap();

    let runs = list_runs(root.path()).unwrap();
    let states: Vec<(&str, String)> = runs
        .iter()
        .map(|run| {
            (
                &run.id.as_str()[16..],
                serde_json::to_value(&run.state).unwrap()["state"].to_string(),
            )
        })
        .collect();
    let expected = [
        ("000003", "\"running\""),
        ("000002", "\"ended\""),
        ("000001", "\"ended\""),
        // Of the same second, but when exactly it doesn't tell.
        ("000004", "\"unreadable\""),
        ("aaaaaa", "\"never_started\""),
        ("aaaaa9", "\"foreign\""),
    ];
    assert_eq!(states, expected.map(|(id, state)| (id, state.to_owned())));
    assert_eq!(
        runs[0].state,
        RunState::Running {
            pid: Some(std::process::id())
        }
    );
    assert_eq!(
        runs[1].state,
        RunState::Ended {
            status: RunStatus::Interrupted
        }
    );
    let done = &runs[2];
    assert_eq!(
        done.state,
        RunState::Ended {
            status: RunStatus::Completed
        }
    );
    assert_eq!(
        (done.sessions_done, done.sessions, done.usage.input_tokens),
        (1, 2, 10)
    );
    assert_eq!(
        (done.program.as_str(), done.backend.as_str()),
        ("main.prose", "simulate")
    );
    assert_eq!(done.started.as_deref(), Some("2026-01-15T14:30:52.345Z"));
    assert_eq!(run_summary(&running.dir), runs[0]);
}

#[test]
fn a_half_made_run_is_not_taken_for_another_tool_s() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let dir = run.dir.clone();
    for break_it in [
        |path: &Path| fs::write(path, "").unwrap(),
        |path: &Path| fs::remove_file(path).unwrap(),
    ] {
        break_it(&dir.journal());
        assert_eq!(
            run_summary(&dir).state,
            RunState::Running {
                pid: Some(std::process::id())
            }
        );
    }
    drop(run);
    assert_eq!(run_summary(&dir).state, RunState::NeverStarted);
}

#[test]
fn staging_is_by_lease_and_effect() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let first = run.dir.staging(1, &"main/0".into()).unwrap();
    assert!(first.is_dir());
    assert_eq!(run.dir.staging_path(1, &"main/0".into()), first);
    assert_ne!(run.dir.staging_path(2, &"main/0".into()), first);
    assert_ne!(run.dir.staging_path(1, &"main/1".into()), first);
    run.dir.clear_staging().unwrap();
    assert!(!first.exists() && first.parent().unwrap().parent().unwrap().is_dir());
}

/// A node around which others can be put.
fn node(op: Op) -> Node {
    Node {
        id: "main/0".into(),
        src: SourceRange {
            file: 0,
            start: 0,
            end: 1,
        },
        op,
    }
}

/// A bundle whose only statement is as many `choice`s within each other: of all constructs, their JSON nests deepest.
fn deep_bundle(levels: usize) -> Arc<Bundle> {
    let mut inner = node(Op::Null);
    for _ in 0..levels {
        let option = ChoiceOption {
            label: "[\"{".into(),
            template: None,
            src: inner.src,
            body: vec![inner],
        };
        inner = node(Op::Choice {
            criteria: Template { parts: vec![] },
            options: vec![option],
        });
    }
    let mut bundle = (*bundle("session \"a\"\n")).clone();
    bundle.programs[0].body = vec![inner];
    Arc::new(bundle)
}

fn create_with(root: &Path, bundle: Arc<Bundle>) -> Result<Run, StateError> {
    let new = NewRun {
        program: "main.prose".into(),
        bundle,
        inputs: Default::default(),
        options: RunOptions::default(),
        engine: "test".into(),
    };
    Run::create(root, new, clock(), &FixedIds::from(1))
}

#[test]
fn the_deepest_bundle_is_taken_up() {
    let root = tempfile::tempdir().unwrap();
    let bundle = deep_bundle(100);
    let run = create_with(root.path(), bundle.clone()).unwrap();
    let dir = run.dir.clone();
    drop(run);
    let (run, _) = Run::open(dir, clock()).unwrap();
    assert_eq!(run.bundle, bundle);
}

#[test]
fn a_bundle_too_deep_to_be_read_is_not_run() {
    let root = tempfile::tempdir().unwrap();
    let error = create_with(root.path(), deep_bundle(300)).err().unwrap();
    assert!(
        matches!(&error, StateError::Unserializable { reason } if reason.contains("nested deeper")),
        "{error}"
    );
}

#[test]
fn a_deep_file_in_place_of_the_bundle_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let dir = run.dir.clone();
    drop(run);
    fs::write(dir.bundle(), "[".repeat(1_000_000)).unwrap();
    let error = Run::open(dir, clock()).err().unwrap();
    assert!(error.to_string().contains("nested deeper"), "{error}");
}

#[test]
fn a_change_to_what_was_lowered_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let run = create_with(root.path(), deep_bundle(1)).unwrap();
    let dir = run.dir.clone();
    drop(run);
    let text = fs::read_to_string(dir.bundle()).unwrap();
    let changed = text.replacen("\"label\":\"[", "\"label\":\"]", 1);
    assert_ne!(changed, text);
    fs::write(dir.bundle(), changed).unwrap();
    let error = Run::open(dir.clone(), clock()).err().unwrap();
    assert!(
        matches!(&error, StateError::BundleDamaged { reason, .. } if reason.contains("was changed")),
        "{error}"
    );
    fs::write(dir.bundle(), text).unwrap();
    Run::open(dir, clock()).unwrap();
}

#[test]
fn the_deepest_values_are_read_back() {
    // The machine builds none that nest deeper.
    let mut value = Value::text("x");
    for _ in 0..50 {
        value = Value::list(vec![value]);
    }
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    run.journal.append(issued("a", 0)).unwrap();
    run.journal
        .append_durable(outcome("a", 1, value.clone()))
        .unwrap();
    let dir = run.dir.clone();
    drop(run);
    let (_, recovered) = Run::open(dir, clock()).unwrap();
    assert!(recovered.records.iter().any(|record| matches!(
        &record.body,
        RecordBody::Outcome { outcome: Outcome::Session(session), .. } if session.value == value
    )));
}

#[test]
fn the_newest_of_two_runs_of_a_second_is_told_by_the_exact_time() {
    let root = tempfile::tempdir().unwrap();
    // The later one's id comes first in the alphabet.
    let mut ids = Vec::new();
    for (id, ms) in [(9, START), (1, START + 200)] {
        let new = NewRun {
            program: "main.prose".into(),
            bundle: bundle("session \"a\"\n"),
            inputs: Default::default(),
            options: RunOptions::default(),
            engine: "test".into(),
        };
        let clock = Arc::new(ManualClock::at(ms));
        let run = Run::create(root.path(), new, clock, &FixedIds::from(id)).unwrap();
        ids.push(run.id().clone());
    }
    assert!(ids[1] < ids[0], "{ids:?}");
    let last = prose_state::find_run(root.path(), "last").unwrap();
    assert!(last.path().ends_with(ids[1].as_str()), "{last:?}");
    let listed: Vec<_> = list_runs(root.path())
        .unwrap()
        .into_iter()
        .map(|run| run.id)
        .collect();
    assert_eq!(listed, [ids[1].clone(), ids[0].clone()]);
}

#[test]
fn a_lost_bundle_is_named_and_the_program_as_it_is_now_can_take_its_place() {
    let root = tempfile::tempdir().unwrap();
    let run = create(root.path(), 1);
    let (dir, same) = (run.dir.clone(), run.bundle.clone());
    drop(run);
    fs::remove_file(dir.bundle()).unwrap();
    let journal = fs::read(dir.journal()).unwrap();
    let error = Run::open(dir.clone(), clock()).err().unwrap().to_string();
    let id = dir.path().file_name().unwrap().to_string_lossy();
    assert!(
        error.contains("bundle.json: the file is missing; it holds the program")
            && error.ends_with(&format!("prose resume {id} --accept-changes")),
        "{error}"
    );
    assert_eq!(fs::read(dir.journal()).unwrap(), journal, "nothing is changed");

    // The very program is put back.
    let (run, recovered) = Run::open_or(dir.clone(), clock(), Some(&same)).unwrap();
    assert_eq!((&run.bundle, recovered.changed), (&same, 0));
    drop(run);
    Run::open(dir.clone(), clock()).unwrap();

    // Another one takes its place as an accepted change.
    fs::write(dir.bundle(), "{").unwrap();
    let other = bundle("session \"b\"\n");
    let (run, recovered) = Run::open_or(dir.clone(), clock(), Some(&other)).unwrap();
    assert_eq!(
        (&run.bundle, recovered.changed),
        (&other, recovered.records.len())
    );
    drop(run);
    let (run, recovered) = Run::open(dir, clock()).unwrap();
    assert_eq!(run.bundle, other);
    assert!(recovered.changed > 0);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_read() {
    for part in ["journal.jsonl", "bundle.json", "lock", "program.prose"] {
        let root = tempfile::tempdir().unwrap();
        let run = create(root.path(), 1);
        let dir = run.dir.clone();
        drop(run);
        let path = dir.path().join(part);
        for kind in ["endless", "pipe"] {
            fs::remove_file(&path).unwrap();
            if kind == "endless" {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            } else {
                let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
                assert!(made.success());
            }
            // Each comes back, whatever it says.
            let summary = run_summary(&dir);
            if part == "journal.jsonl" {
                assert!(
                    matches!(&summary.state, RunState::Unreadable { reason } if reason.contains("no regular file")),
                    "{summary:?}"
                );
            }
            prose_state::read_run(&dir);
            assert!(prose_state::find_run(root.path(), "last").is_ok());
            assert!(prose_state::list_runs(root.path()).unwrap().len() == 1);
            if matches!(part, "journal.jsonl" | "bundle.json") {
                let error = Run::open(dir.clone(), clock()).err().unwrap();
                assert!(error.to_string().contains("no regular file"), "{error}");
            }
        }
    }
}
