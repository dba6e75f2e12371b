//! `prose resume`, with the real binary: killed runs, runs that are over, that have an owner, whose files or program changed.
//! `crash.rs` ends runs everywhere; here a few places show that the binary does the same.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use prose_tests::{Ran, everything, files_below, only_run, prose, prose_command, workspace};
use serde_json::Value;

/// Aborts the process when the journal has so many records; header and first lease are written as one.
const ABORT: &str = "PROSE_TEST_ABORT_AFTER_RECORD";

fn records(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What a run leaves, without what names the process or the time: bindings, memory, and the outcome of every effect.
fn left(dir: &Path) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Value>) {
    let run = only_run(dir);
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let files = files_below(&run)
        .into_iter()
        .map(|(name, bytes)| (name.replace(&id, "RUN"), bytes))
        .filter(|(name, _)| {
            name.contains("bindings/") || name.ends_with("memory.md") || name.ends_with("program.prose")
        })
        .collect();
    let mut outcomes = BTreeMap::new();
    for record in records(&run) {
        if record["t"] == "outcome" {
            let id = record["id"].as_str().unwrap().to_owned();
            let twice = outcomes.insert(id.clone(), record["outcome"].clone());
            assert!(
                twice.is_none(),
                "{id} has two outcomes: something was asked again"
            );
        }
    }
    (files, outcomes)
}

fn started(dir: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for record in records(&only_run(dir)) {
        if record["t"] == "started" {
            *counts
                .entry(record["id"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    counts
}

#[test]
fn aborted_and_resumed_it_ends_the_same() {
    let whole = everything();
    let reference = prose(
        whole.path(),
        &["run", "everything.prose", "--backend", "simulate", "--quiet"],
    );
    assert_eq!(reference.code, 0, "{reference:?}");
    let total = records(&only_run(whole.path())).len();
    assert!(total > 200, "{total}");
    let expected = left(whole.path());
    for n in [2, 3, total / 3, total / 2, total - 1, total] {
        case(n, &reference, &expected);
    }
}

fn case(n: usize, reference: &Ran, expected: &(BTreeMap<String, Vec<u8>>, BTreeMap<String, Value>)) {
    let dir = everything();
    let killed: Ran = prose_command(dir.path())
        .args(["run", "everything.prose", "--backend", "simulate", "--quiet"])
        .env(ABORT, n.to_string())
        .output()
        .unwrap()
        .into();
    assert_eq!(
        (killed.code, killed.stdout.as_str()),
        (-1, ""),
        "after record {n}: {killed:?}"
    );
    let run = only_run(dir.path());
    assert_eq!(records(&run).len(), n, "the process died right after record {n}");
    let answered: Vec<String> = left(dir.path()).1.into_keys().collect();
    let started_before = started(dir.path());
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let resumed = prose(dir.path(), &["resume", &id, "--quiet"]);
    assert_eq!(resumed.code, 0, "after record {n}: {resumed:?}");
    assert_eq!(resumed.stdout, reference.stdout, "after record {n}");
    let now = left(dir.path());
    assert_eq!(now.1, expected.1, "outcomes after record {n}");
    for (name, bytes) in &expected.0 {
        let found = now.0.get(name).map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(
            found.as_deref(),
            Some(&*String::from_utf8_lossy(bytes)),
            "{name} after record {n}"
        );
    }
    assert_eq!(now.0.len(), expected.0.len(), "files after record {n}");
    let started_after = started(dir.path());
    for id in answered {
        assert_eq!(
            started_before.get(&id),
            started_after.get(&id),
            "{id} had an answer and was started again after record {n}"
        );
    }
}

#[test]
fn a_run_has_one_owner() {
    let dir = everything();
    prose_command(dir.path())
        .args(["run", "everything.prose", "--backend", "simulate", "--quiet"])
        .env(ABORT, "20")
        .output()
        .unwrap();
    let run = only_run(dir.path());
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let lock = std::fs::OpenOptions::new()
        .write(true)
        .open(run.join("lock"))
        .unwrap();
    lock.lock().unwrap();
    let refused = prose(dir.path(), &["resume", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("is in use by process ") && refused.stderr.contains("(kill "),
        "{refused:?}"
    );
    lock.unlock().unwrap();
    assert_eq!(prose(dir.path(), &["resume", &id, "--quiet"]).code, 0);
}

#[test]
fn a_torn_last_record_is_cut_and_damage_before_it_is_reported() {
    let dir = everything();
    prose_command(dir.path())
        .args(["run", "everything.prose", "--backend", "simulate", "--quiet"])
        .env(ABORT, "40")
        .output()
        .unwrap();
    let run = only_run(dir.path());
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let journal = run.join("journal.jsonl");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes.truncate(bytes.len() - 9);
    std::fs::write(&journal, &bytes).unwrap();
    let resumed = prose(dir.path(), &["resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(
        resumed
            .stderr
            .contains("was written in part when the run stopped; it was removed")
            && !resumed.stderr.contains("WARN"),
        "{resumed:?}"
    );

    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let refused = prose(dir.path(), &["resume", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("byte"), "{refused:?}");
    assert_eq!(std::fs::read(&journal).unwrap(), bytes, "nothing is changed");
}

#[test]
fn a_changed_program_is_not_resumed_unless_accepted() {
    let dir = everything();
    prose_command(dir.path())
        .args(["run", "everything.prose", "--backend", "simulate", "--quiet"])
        .env(ABORT, "30")
        .output()
        .unwrap();
    let id = only_run(dir.path())
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let program = dir.path().join("everything.prose");
    let text = std::fs::read_to_string(&program).unwrap();
    std::fs::write(&program, text.replace("Finish", "Finish differently")).unwrap();
    let refused = prose(dir.path(), &["resume", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("everything.prose") && refused.stderr.contains("--accept-changes"));
    for line in [
        "--- everything.prose",
        "+++ everything.prose",
        "-output everything = session \"Finish\"\n",
    ] {
        assert!(refused.stderr.contains(line), "{refused:?}");
    }
    let resumed = prose(dir.path(), &["resume", &id, "--accept-changes", "--quiet"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(
        resumed.stdout.contains("reply to Finish differently"),
        "{resumed:?}"
    );
}

#[test]
fn a_run_that_is_over_says_so_and_prints_its_outputs_again() {
    for (program, code, how) in [
        ("output x = session \"go\"\n", 0, "completed"),
        ("output x = session \"go\"\nthrow \"no good\"\n", 1, "failed"),
    ] {
        let dir = workspace(&[("main.prose", program)]);
        let run = prose(dir.path(), &["run", "main.prose", "--backend", "simulate"]);
        assert_eq!(run.code, code, "{run:?}");
        let id = only_run(dir.path())
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        std::fs::remove_file(only_run(dir.path()).join("bindings/x.md")).unwrap();
        std::fs::write(only_run(dir.path()).join("state.md"), "damaged").unwrap();
        std::fs::remove_file(only_run(dir.path()).join("program.prose")).unwrap();
        let asked = started(dir.path());
        let again = prose(dir.path(), &["resume", &id]);
        assert_eq!((again.code, &again.stdout), (code, &run.stdout), "{again:?}");
        assert!(
            again.stderr.contains(how) && again.stderr.contains("nothing is run again"),
            "{again:?}"
        );
        assert_eq!(started(dir.path()), asked);
        let files = files_below(&only_run(dir.path()));
        assert_eq!(files["program.prose"], program.as_bytes());
        assert!(String::from_utf8_lossy(&files["bindings/x.md"]).contains("[simulated] go"));
        assert!(String::from_utf8_lossy(&files["state.md"]).contains("# Execution State"));
    }
}

#[test]
fn a_lost_value_is_named() {
    let dir = workspace(&[
        ("main.prose", "output x = session \"go\"\n"),
        (
            "main.mock.toml",
            &format!("[[session]]\nreply = \"{}\"\n", "word ".repeat(2000)),
        ),
    ]);
    let run = prose(
        dir.path(),
        &["run", "main.prose", "--backend", "simulate", "--quiet"],
    );
    assert_eq!(run.code, 0, "{run:?}");
    let folder = only_run(dir.path());
    let id = folder.file_name().unwrap().to_string_lossy().into_owned();
    let value = std::fs::read_dir(folder.join("values"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let name = value.file_name().unwrap().to_string_lossy().into_owned();
    std::fs::write(&value, "other content").unwrap();
    let refused = prose(dir.path(), &["resume", &id]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(
        refused.stderr.contains(&name) && refused.stderr.contains("is damaged"),
        "{refused:?}"
    );
}

#[test]
fn a_program_with_another_name_or_whose_bundle_is_lost_goes_on_when_that_is_accepted() {
    let dir = workspace(&[(
        "old.prose",
        "let a = session \"one\"\nlet b = session \"two\"\noutput c = session \"three\"\n",
    )]);
    prose_command(dir.path())
        .args(["run", "old.prose", "--backend", "simulate", "--quiet"])
        .env(ABORT, "8")
        .output()
        .unwrap();
    let run = only_run(dir.path());
    let answered = left(dir.path()).1.len();
    assert!((1..3).contains(&answered));
    let text = std::fs::read_to_string(dir.path().join("old.prose")).unwrap();
    std::fs::remove_file(dir.path().join("old.prose")).unwrap();
    std::fs::write(dir.path().join("new.prose"), text.replace("three", "four")).unwrap();

    let gone = prose(dir.path(), &["resume", "last", "--accept-changes"]);
    assert_eq!(gone.code, 2, "{gone:?}");
    assert!(
        gone.stderr.contains(
            "old.prose, the run's program, is gone; if it has another name now, add --program FILE"
        ),
        "{gone:?}"
    );
    let alone = prose(dir.path(), &["resume", "last", "--program", "new.prose"]);
    assert_eq!(alone.code, 2, "{alone:?}");
    assert!(alone.stderr.contains("--accept-changes"), "{alone:?}");

    std::fs::remove_file(run.join("bundle.json")).unwrap();
    let lost = prose(dir.path(), &["resume", "last"]);
    assert_eq!(lost.code, 2, "{lost:?}");
    assert!(
        lost.stderr.contains("bundle.json: the file is missing") && lost.stderr.contains("--accept-changes"),
        "{lost:?}"
    );
    let accepted = prose(
        dir.path(),
        &[
            "resume",
            "last",
            "--accept-changes",
            "--program",
            "new.prose",
            "-q",
        ],
    );
    assert_eq!(
        (accepted.code, accepted.stdout.as_str()),
        (0, "[simulated] four\n"),
        "{accepted:?}"
    );
    // What was answered is not asked again, which `left` looks at.
    assert_eq!(left(dir.path()).1.len(), 3);
}

/// A run that waits for `go`, with what is given at the start.
fn waiting(program: &str, given: &[&str]) -> tempfile::TempDir {
    let dir = workspace(&[
        ("main.prose", program),
        ("main.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let mut args = vec!["run", "main.prose", "--backend", "simulate", "-q"];
    args.extend(given.iter().flat_map(|given| ["--input", *given]));
    let ran = prose(dir.path(), &args);
    assert_eq!(ran.code, 3, "{ran:?}");
    dir
}

#[test]
fn a_value_that_can_not_be_chosen_is_refused_and_the_run_waits_on() {
    let program = "input go: \"Delete? (yes/no)\"\noutput done = go\n";
    let dir = waiting(program, &[]);
    let before = records(&only_run(dir.path()));
    let refused = prose(dir.path(), &["resume", "last", "--input", "go=maybe"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("`go` has to be one of: yes, no"),
        "{refused:?}"
    );
    assert_eq!(records(&only_run(dir.path())), before, "nothing is written");
    let taken = prose(dir.path(), &["resume", "last", "--input", "go=No", "-q"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "no\n"), "{taken:?}");

    // At the start it is the same.
    let dir = workspace(&[("main.prose", program)]);
    let run = |value| {
        prose(
            dir.path(),
            &[
                "run",
                "main.prose",
                "--backend",
                "simulate",
                "-q",
                "--input",
                value,
            ],
        )
    };
    let refused = run("go=maybe");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("`go` has to be one of: yes, no"),
        "{refused:?}"
    );
    assert!(!dir.path().join(".prose/runs").exists());
    let taken = run("go=No");
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "no\n"), "{taken:?}");
}

/// Choices that are known only when the run gets there: a value that is none of them leaves the question open.
#[test]
fn a_value_that_turns_out_to_be_no_choice_leaves_the_question_open() {
    let program = "input first: \"First?\"\ninput go: \"Which ({first}/b)\"\noutput done = go\n";
    let dir = waiting(program, &["go=c"]);
    let resumed = prose(dir.path(), &["resume", "last", "--input", "first=a"]);
    assert_eq!(resumed.code, 3, "{resumed:?}");
    assert!(
        resumed.stderr.contains("none of its choices (a, b)"),
        "{resumed:?}"
    );
    let taken = prose(dir.path(), &["resume", "last", "--input", "go=B", "-q"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "b\n"), "{taken:?}");

    let dir = waiting(program, &[]);
    let resumed = prose(
        dir.path(),
        &["resume", "last", "--input", "first=a", "--input", "go=c"],
    );
    assert_eq!(resumed.code, 3, "{resumed:?}");
    assert!(resumed.stderr.contains("`go` is not used"), "{resumed:?}");
    let taken = prose(dir.path(), &["resume", "last", "--input", "go=a", "-q"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "a\n"), "{taken:?}");
}

#[test]
fn a_value_that_comes_too_late_or_is_unknown_is_refused() {
    let dir = waiting(
        "input b: \"B?\"\ninput go: \"Go?\"\noutput done = b + go\n",
        &["b=typo"],
    );
    let before = records(&only_run(dir.path()));
    let late = prose(
        dir.path(),
        &["resume", "last", "--input", "b=right", "--input", "go=x"],
    );
    assert_eq!(late.code, 2, "{late:?}");
    assert!(late.stderr.contains("`b` was answered already"), "{late:?}");
    let unknown = prose(dir.path(), &["resume", "last", "--input", "goo=x"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown.stderr.contains("no input `goo`; its inputs are b, go"),
        "{unknown:?}"
    );
    assert_eq!(records(&only_run(dir.path())), before, "nothing is written");
    let taken = prose(dir.path(), &["resume", "last", "--input", "go=x", "-q"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (0, "typox\n"), "{taken:?}");
}

#[test]
fn a_session_that_is_asked_again_counts_once() {
    let dir = workspace(&[("main.prose", "let x = session \"one\"\nthrow \"oh\"\n")]);
    let failed = prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    std::fs::write(dir.path().join("main.prose"), "output x = session \"two\"\n").unwrap();
    let mended = prose(dir.path(), &["resume", "last", "--accept-changes", "-q"]);
    assert_eq!(mended.code, 0, "{mended:?}");
    let runs = prose(dir.path(), &["runs"]);
    let row = runs.stdout.lines().nth(1).unwrap();
    let [.., sessions, _tokens, _cost] = row.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{runs:?}");
    };
    assert_eq!(sessions, "1", "{runs:?}");
}

fn outcomes(dir: &Path, id: &str) -> usize {
    let records = records(&only_run(dir));
    let own = |record: &&Value| record["t"] == "outcome" && record["id"] == id;
    records.iter().filter(own).count()
}

#[test]
fn what_failed_for_a_reason_that_passes_is_tried_again() {
    let dir = workspace(&[
        (
            "main.prose",
            "let a = session \"one\"\noutput b = session \"two {a}\"\n",
        ),
        (
            "main.mock.toml",
            "[[session]]\nprompt = \"two\"\nfail = \"timeout\"\n",
        ),
        (
            "up.mock.toml",
            "[[session]]\nprompt = \"two\"\nreply = \"done\"\n",
        ),
    ]);
    let failed = prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("--retry-failed"), "{failed:?}");
    let over = prose(dir.path(), &["resume", "last", "--mock", "up.mock.toml", "-q"]);
    assert_eq!(over.code, 1, "{over:?}");
    let retry = ["resume", "last", "--retry-failed", "--mock", "up.mock.toml"];
    let again = prose(dir.path(), &retry);
    assert_eq!((again.code, again.stdout.as_str()), (0, "done\n"), "{again:?}");
    assert!(again.stderr.contains("of 2 answers so far 1 count"), "{again:?}");
    assert_eq!(
        (outcomes(dir.path(), "main/0.0"), outcomes(dir.path(), "main/1.0")),
        (1, 2)
    );
    // The journal can be read as before.
    let shown = prose(dir.path(), &["resume", "last", "-q"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "done\n"), "{shown:?}");

    let dir = workspace(&[("main.prose", "throw \"oh\"\n")]);
    prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
    let nothing = prose(dir.path(), &["resume", "last", "--retry-failed"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(nothing.stderr.contains("nothing to try again"), "{nothing:?}");
}

#[test]
fn how_often_a_session_may_be_tried_is_no_part_of_what_it_is_asked() {
    let dir = workspace(&[("main.prose", "let a = session \"one\"\nthrow \"oh\"\n")]);
    prose(dir.path(), &["run", "main.prose", "--backend", "simulate", "-q"]);
    std::fs::write(
        dir.path().join("main.prose"),
        "let a = session \"one\"\n  retry: 2\noutput b = a\n",
    )
    .unwrap();
    let mended = prose(dir.path(), &["resume", "last", "--accept-changes"]);
    assert_eq!(mended.code, 0, "{mended:?}");
    assert!(
        mended.stderr.contains("all answers so far count (1)"),
        "{mended:?}"
    );
    assert_eq!(outcomes(dir.path(), "main/0.0"), 1);
}

/// Runs, then writes the program anew and takes the run up with the arguments.
fn changed(dir: &Path, program: &str, arguments: &[&str]) -> Ran {
    std::fs::write(dir.join("main.prose"), program).unwrap();
    prose(dir, &[&["resume", "last", "-q"], arguments].concat())
}

const TRIO: &str = "let a = session \"Research\"\nlet b = session \"Summarise\"\nlet c = session \"Publish\"\noutput o = \"{a}|{b}|{c}\"\n";

fn mock(reply: &str, more: &str) -> String {
    format!("{more}\n[[session]]\nreply = \"{reply}\"\n")
}

/// A run of a program whose last session failed, and mock files by which it fails again and by which it ends well.
fn failed_at_its_last(program: &str) -> tempfile::TempDir {
    let fails = "[[session]]\nprompt = \"Publish\"\nfail = \"backend\"\n";
    let dir = workspace(&[
        ("main.prose", program),
        ("old.toml", &mock("old", fails)),
        ("new.toml", &mock("new", fails)),
        ("good.toml", &mock("good", "")),
    ]);
    let run = [
        "run",
        "main.prose",
        "-q",
        "--backend",
        "simulate",
        "--mock",
        "old.toml",
    ];
    assert_eq!(prose(dir.path(), &run).code, 1);
    dir
}

#[test]
fn what_is_asked_the_same_behind_a_changed_session_is_not_paid_again() {
    let dir = failed_at_its_last(TRIO);
    let better = TRIO.replace("Research", "Research better");
    let ran = changed(dir.path(), &better, &["--accept-changes", "--mock", "new.toml"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(
        ["main/0.0", "main/1.0", "main/2.0"].map(|id| outcomes(dir.path(), id)),
        // The second counts as it is, and is taken over; the third failed and is asked again.
        [2, 2, 2]
    );
    let ran = changed(dir.path(), &better, &["--retry-failed", "--mock", "good.toml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "new|old|good\n"), "{ran:?}");
}

#[test]
fn of_several_answers_to_one_question_the_last_counts() {
    let using = TRIO.replace("Summarise", "Summarise {a}");
    let dir = failed_at_its_last(&using);
    let better = using.replace("Research", "Research better");
    changed(dir.path(), &better, &["--accept-changes", "--mock", "new.toml"]);
    changed(dir.path(), &using, &["--accept-changes", "--mock", "new.toml"]);
    let ran = changed(
        dir.path(),
        &better,
        &["--accept-changes", "--retry-failed", "--mock", "good.toml"],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "new|new|good\n"), "{ran:?}");
}

#[test]
fn a_failure_that_a_later_try_made_good_is_not_tried_again() {
    let program = "let a = session \"Alpha\"\n  retry: 2\ntry:\n  let b = session \"Beta\"\ncatch:\n  let f = session \"Fallback\"\nlet c = session \"Gamma\"\noutput o = \"{a}|{f}|{c}\"\n";
    let rule = |prompt: &str, answer: &str| format!("[[session]]\nprompt = \"{prompt}\"\n{answer}\n");
    let first = [
        rule("Alpha", "nth = 1\nfail = \"backend\""),
        rule("Alpha", "reply = \"paid\""),
        rule("Beta", "fail = \"backend\""),
        rule("Fallback", "reply = \"paid\""),
        rule("Gamma", "fail = \"backend\""),
    ];
    let second = [
        rule("Beta", "fail = \"backend\""),
        rule("Gamma", "reply = \"done\""),
        "[[session]]\nreply = \"paid twice\"\n".to_owned(),
    ];
    let dir = workspace(&[
        ("main.prose", program),
        ("first.toml", &first.concat()),
        ("second.toml", &second.concat()),
    ]);
    let run = [
        "run",
        "main.prose",
        "-q",
        "--backend",
        "simulate",
        "--mock",
        "first.toml",
    ];
    assert_eq!(prose(dir.path(), &run).code, 1);
    let ran = changed(dir.path(), program, &["--retry-failed", "--mock", "second.toml"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "paid|paid|done\n"),
        "{ran:?}"
    );
}

#[test]
fn a_persons_answer_goes_with_its_question() {
    let program =
        "input x: \"Delete the staging data? (yes/no)\"\nlet a = session \"do {x}\"\nthrow \"stop\"\n";
    let dir = workspace(&[
        ("main.prose", program),
        ("main.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let run = ["run", "main.prose", "-q", "--backend", "simulate"];
    assert_eq!(prose(dir.path(), &run).code, 3);
    assert_eq!(
        prose(dir.path(), &["resume", "last", "-q", "--input", "x=yes"]).code,
        1
    );
    let other = changed(
        dir.path(),
        &program.replace("staging", "PRODUCTION"),
        &["--accept-changes"],
    );
    assert_eq!(other.code, 3, "{other:?}");
    let same = changed(dir.path(), program, &["--accept-changes"]);
    assert_eq!(same.code, 1, "the same question is answered: {same:?}");
}

#[test]
fn a_session_that_is_tried_again_remembers_what_came_meanwhile() {
    let program = "agent m:\n  persist: true\n  prompt: \"m\"\nsession: m\n  prompt: \"start\"\nparallel (on-fail: \"continue\"):\n  a = resume: m\n    prompt: \"A\"\n  b = resume: m\n    prompt: \"B\"\nthrow \"x\"\n";
    let dir = workspace(&[
        ("main.prose", program),
        (
            "down.toml",
            &mock("ok", "[[session]]\nprompt = \"A\"\nfail = \"backend\"\n"),
        ),
        ("up.toml", &mock("ok", "")),
    ]);
    let run = [
        "run",
        "main.prose",
        "-q",
        "--backend",
        "simulate",
        "--mock",
        "down.toml",
    ];
    assert_eq!(prose(dir.path(), &run).code, 1);
    let ran = changed(dir.path(), program, &["--retry-failed", "--mock", "up.toml"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let memory = std::fs::read_to_string(only_run(dir.path()).join("agents/m/memory.md")).unwrap();
    assert!(
        memory.contains("- B: ok") && memory.contains("- A: ok"),
        "{memory}"
    );
}
