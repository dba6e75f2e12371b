//! What the machine around a run lacks: a place for files, space, a reader. Nothing is lost without a word.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Read;
use std::process::Stdio;

use prose_tests::{prose, prose_command, workspace};
use serde_json::Value;

/// More events than may wait in memory, and nowhere to put them aside: the machine's come from the journal.
#[test]
fn a_late_reader_gets_every_event_of_the_machine_once_although_no_file_can_be_made() {
    let dir = workspace(&[("a.prose", "let x = 0\nrepeat 30000:\n  x = x + 1\noutput x = x\n")]);
    let mut child = prose_command(dir.path())
        .args(["run", "a.prose", "--backend", "simulate", "--json"])
        .env("TMPDIR", dir.path().join("not-there"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !prose(dir.path(), &["runs", "--format", "json"])
        .stdout
        .contains("\"completed\"")
    {
        assert_eq!(child.try_wait().unwrap(), None, "the pipe held all events");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.len() > 60_000);
    assert!(seqs.iter().copied().eq(0..seqs.len() as u64));
    // In between nothing came but the beginning and the end, and they are there.
    let between: Vec<(&str, u64)> = events
        .iter()
        .filter_map(|event| Some((event["type"].as_str()?, event["n"].as_u64()?)))
        .collect();
    assert_eq!(between, [("run_started", 0), ("run_finished", 1)]);
    assert_eq!(events.last().unwrap()["type"], "run_finished");
}

#[test]
fn events_that_can_not_be_written_stop_the_run_and_it_says_why() {
    let dir = workspace(&[("a.prose", "repeat 400:\n  session \"go\"\noutput o = \"done\"\n")]);
    let ran: prose_tests::Ran = prose_command(dir.path())
        .args(["run", "a.prose", "--backend", "simulate", "--json"])
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap()
        .into();
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("error: the events can't be written to standard output: "),
        "{ran:?}"
    );
}

#[test]
fn a_run_whose_events_nobody_reads_any_more_stops_quietly_and_says_how_to_go_on() {
    let dir = workspace(&[("a.prose", "repeat 400:\n  session \"go\"\noutput o = \"done\"\n")]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran: prose_tests::Ran = prose_command(dir.path())
        .args(["run", "a.prose", "--backend", "simulate", "--json"])
        .stdout(writer)
        .output()
        .unwrap()
        .into();
    let run = prose_tests::only_run(dir.path());
    let id = run.file_name().unwrap().to_string_lossy();
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(
        ran.stderr,
        format!(
            "nobody reads the events any more; the run is stopped\nthe run was interrupted; to go on: prose resume {id}\n"
        )
    );
    let ran = prose(dir.path(), &["resume", "last", "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
}

#[test]
fn a_run_with_a_linked_folder_hides_no_other() {
    let dir = workspace(&[("a.prose", "session \"go\"\n")]);
    prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    let strange = dir.path().join(".prose/runs/20990101-000000-aaaaaa");
    std::fs::create_dir(&strange).unwrap();
    std::os::unix::fs::symlink(dir.path(), strange.join("values")).unwrap();
    let listed = prose(dir.path(), &["runs"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(
        listed.stdout.contains("unreadable") && listed.stdout.contains("completed"),
        "{listed:?}"
    );
}

/// A link to a device without an end, a pipe that nobody writes to.
#[test]
fn runs_whose_journal_is_no_file_are_listed_as_unreadable() {
    let dir = workspace(&[("a.prose", "session \"go\"\n")]);
    prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    let journal = prose_tests::only_run(dir.path()).join("journal.jsonl");
    std::fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &journal).unwrap();
    let listed = prose(dir.path(), &["runs"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.stdout.contains("unreadable"), "{listed:?}");
    for command in [&["resume", "last"][..], &["runs", "show", "last"]] {
        let ran = prose(dir.path(), command);
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains("no regular file"),
            "{ran:?}"
        );
    }
}

/// A journal that is there and can't be opened is no journal that never was.
#[test]
fn a_run_whose_journal_can_not_be_opened_is_unreadable_and_not_unbegun() {
    let dir = workspace(&[("a.prose", "throw \"no\"\n")]);
    prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    let run = prose_tests::only_run(dir.path());
    for written in ["state.md", "journal.jsonl"] {
        std::fs::remove_file(run.join(written)).unwrap();
    }
    // Who tests may be allowed to read everything; a link to itself nobody can open.
    std::os::unix::fs::symlink("journal.jsonl", run.join("journal.jsonl")).unwrap();
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let listed = prose(dir.path(), &["runs"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.stdout.contains("unreadable"), "{listed:?}");
    for command in [&["runs", "show", id.as_str()][..], &["resume", &id]] {
        let ran = prose(dir.path(), command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            said.contains("can't read") && said.contains("journal.jsonl") && !said.contains("never started"),
            "{ran:?}"
        );
    }
}

/// A pipe that nobody writes to, a device without an end, in the place of the program or of a file that it uses.
#[test]
fn a_program_that_is_no_file_any_more_does_not_hold_a_resume_up() {
    for name in ["main.prose", "helper.prose"] {
        let dir = workspace(&[
            (
                "main.prose",
                "use \"./helper.prose\" as helper\ninput q: \"Which?\"\nlet h = helper()\noutput x = q\n",
            ),
            ("helper.prose", "output h = session \"Help\"\n"),
            ("main.mock.toml", "[defaults]\nask = true\n"),
        ]);
        let ran = prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
        assert_eq!(ran.code, 3, "{ran:?}");
        let path = dir.path().join(name);
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        for kind in ["pipe", "device"] {
            if kind == "device" {
                std::fs::remove_file(&path).unwrap();
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let resume = ["resume", "last", "--input", "q=a", "-q"];
            let ran = prose(dir.path(), &resume);
            assert_eq!(ran.code, 2, "{name}, {kind}: {ran:?}");
            assert!(
                ran.stderr
                    .contains(&format!("+++ {name} (now): it is no regular file")),
                "{name}, {kind}: {ran:?}"
            );
            let ran = prose(dir.path(), &[&resume[..], &["--accept-changes"]].concat());
            assert_eq!(ran.code, 2, "{name}, {kind}: {ran:?}");
        }
    }
}

#[test]
fn the_option_that_is_named_is_that_of_the_limit_that_was_reached() {
    let dir = workspace(&[
        ("a.prose", "repeat 5:\n  session \"go\"\noutput o = \"done\"\n"),
        (
            "a.mock.toml",
            "[[session]]\nreply = \"ok\"\ntokens = { in = 5, out = 5 }\n",
        ),
    ]);
    let run = ["run", "a.prose", "--backend", "simulate", "-q"];
    let ran = prose(dir.path(), &[&run[..], &["--budget-tokens", "10"]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    let hint = |ran: &prose_tests::Ran| ran.stderr.trim_end().ends_with(" --budget-tokens N");
    assert!(hint(&ran), "{ran:?}");
    let ran = prose(dir.path(), &["resume", "last", "--budget", "5", "-q"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(hint(&ran), "{ran:?}");
    let ran = prose(dir.path(), &["resume", "last", "--budget-tokens", "1000", "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
}
