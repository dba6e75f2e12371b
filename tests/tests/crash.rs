//! The crash matrix: a run of a program that uses every construct is ended after every journal record, at every step of every
//! write and at moments taken at random, also while it is resumed. It must end as if nothing had happened, nothing that was
//! answered is asked again, and what was in flight is asked once more at the most.
//!
//! `cargo xtask crash` runs all of it; without `PROSE_CRASH=full` a part is run.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prose_state::failpoint::{ABORT_AT, LOG};
use prose_tests::crash::{Answers, MANNER, Manner, SOCKET};
use prose_tests::{everything, files_below, root};
use regex::Regex;
use serde_json::Value;

/// Ends the process when the journal has so many records.
const ABORT_AFTER: &str = "PROSE_TEST_ABORT_AFTER_RECORD";

fn full() -> bool {
    std::env::var("PROSE_CRASH").is_ok_and(|value| value == "full")
}

/// How a process is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kill {
    /// After so many records in all.
    Record(usize),
    /// At a step of a write: its name and which visit.
    Point(String, usize),
    /// By a signal, after so many questions and microseconds.
    Signal(usize, u64),
}

/// A project with the program, and the one who answers.
struct World {
    dir: tempfile::TempDir,
    answers: Answers,
    manner: Manner,
}

fn mock() -> String {
    std::fs::read_to_string(root().join("tests/programs/everything.mock.toml")).unwrap()
}

/// The program as lowered once, so that no process has to.
fn bundle() -> &'static Path {
    static BUNDLE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = BUNDLE.get_or_init(|| {
        let dir = everything();
        let loaded = prose_project::load(&dir.path().join("everything.prose"), dir.path()).unwrap();
        let path = dir.path().join("bundle.json");
        std::fs::write(&path, serde_json::to_vec(&*loaded.bundle.unwrap()).unwrap()).unwrap();
        (dir, path)
    });
    path
}

/// What a process came to: none when it was killed.
type Ended = Option<(i32, String, String)>;

impl World {
    fn new(manner: Manner, mock: &str) -> World {
        let dir = everything();
        std::fs::create_dir(dir.path().join(".prose")).unwrap();
        let answers = Answers::listen(mock);
        World { dir, answers, manner }
    }

    fn host(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crash_host"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env("HOME", self.dir.path().join("home"))
            .env(SOCKET, self.answers.socket())
            .env(MANNER, self.manner.word())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the run, or goes on with it.
    fn go(&self, run: Option<&str>) -> Command {
        match run {
            None => self.host(&["bundle", bundle().to_str().unwrap()]),
            Some(run) => self.host(&["resume", run]),
        }
    }

    fn killed(&self, run: Option<&str>, kill: &Kill) -> Ended {
        let mut command = self.go(run);
        match kill {
            Kill::Record(n) => _ = command.env(ABORT_AFTER, n.to_string()),
            Kill::Point(name, visit) => _ = command.env(ABORT_AT, format!("{name}:{visit}")),
            Kill::Signal(asks, micros) => {
                let before = self.answers.count();
                let mut child = command.spawn().unwrap();
                while self.answers.count() < before + asks && child.try_wait().unwrap().is_none() {
                    std::thread::sleep(Duration::from_micros(200));
                }
                std::thread::sleep(Duration::from_micros(*micros));
                let _ = child.kill();
                return ended(child.wait_with_output().unwrap());
            }
        }
        ended(command.output().unwrap())
    }

    /// The run that has a header, if there is one.
    fn run(&self) -> Option<String> {
        let entries = std::fs::read_dir(self.dir.path().join(".prose/runs")).ok()?;
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.retain(|run| !journal(run).is_empty());
        assert!(runs.len() < 2, "{runs:?}");
        Some(runs.pop()?.file_name()?.to_str()?.to_owned())
    }

    fn records(&self) -> Vec<Value> {
        self.run()
            .map(|run| journal(&self.dir.path().join(".prose/runs").join(run)))
            .unwrap_or_default()
    }
}

fn ended(output: std::process::Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((output.status.code()?, text(output.stdout), text(output.stderr)))
}

/// The whole records of a run's journal.
fn journal(run: &Path) -> Vec<Value> {
    let bytes = std::fs::read(run.join("journal.jsonl")).unwrap_or_default();
    let whole = bytes.split_inclusive(|byte| *byte == b'\n');
    whole
        .filter(|line| line.ends_with(b"\n"))
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The answers in a journal, by effect.
fn outcomes(records: &[Value]) -> BTreeMap<String, Value> {
    let mut outcomes = BTreeMap::new();
    for record in records.iter().filter(|record| record["t"] == "outcome") {
        let id = record["id"].as_str().unwrap().to_owned();
        let twice = outcomes.insert(id.clone(), record["outcome"].clone());
        assert!(twice.is_none(), "{id} has two outcomes");
    }
    outcomes
}

/// What a run leaves, without what names it or the time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    stdout: String,
    files: BTreeMap<String, String>,
}

fn left(world: &World, stdout: &str) -> Left {
    static TIME: OnceLock<Regex> = OnceLock::new();
    let time = TIME.get_or_init(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap());
    let run = world.run().unwrap();
    let own = format!(".prose/runs/{run}/");
    let inner = ["journal.jsonl", "bundle.json", "lock", "values/", "staging/"];
    let files = files_below(world.dir.path())
        .into_iter()
        .filter(|(name, _)| match name.strip_prefix(&own) {
            Some(name) => !inner.iter().any(|inner| name.starts_with(inner)),
            // A run that never started is left where it is.
            None => !name.starts_with(".prose/runs/") && !name.ends_with(".lock"),
        })
        .map(|(name, bytes)| {
            let text = String::from_utf8(bytes).unwrap().replace(&run, "RUN");
            (
                name.replace(&run, "RUN"),
                time.replace_all(&text, "TIME").into_owned(),
            )
        })
        .filter(|(name, _)| !name.ends_with(".lock"))
        .collect();
    Left {
        stdout: stdout.to_owned(),
        files,
    }
}

/// The steps of all writes of an uninterrupted run, in order.
struct Reference {
    left: Left,
    records: usize,
    outcomes: BTreeMap<String, Value>,
    /// The name of each step with the number of its visits.
    points: BTreeMap<String, usize>,
}

fn reference(manner: Manner, mock: &str) -> Reference {
    let world = World::new(manner, mock);
    let log = world.dir.path().join("points.lock");
    let output = world.go(None).env(LOG, &log).output().unwrap();
    let (code, stdout, stderr) = ended(output).unwrap();
    assert_eq!(code, 0, "{stderr}");
    let mut points = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        *points.entry(line.to_owned()).or_default() += 1;
    }
    let records = world.records();
    Reference {
        left: left(&world, &stdout),
        records: records.len(),
        outcomes: outcomes(&records),
        points,
    }
}

/// Ends one process after the other as told, then lets the last go on to the end, and checks everything that must hold.
/// Returns how many of the kills met a process, and how many questions were asked more than once.
fn case(world: &World, kills: &[Kill]) -> (Left, BTreeMap<String, Value>, usize, usize) {
    let mut met = 0;
    let mut asked_before = 0;
    let mut processes_asking: HashMap<String, usize> = HashMap::new();
    let mut kills = kills.iter();
    let ended = loop {
        let run = world.run();
        let known = outcomes(&world.records());
        let kill = kills.next();
        let ended = match kill {
            Some(kill) => world.killed(run.as_deref(), kill),
            None => ended(world.go(run.as_deref()).output().unwrap()),
        };
        let asked = world.answers.asked();
        let mut in_this: HashMap<&str, usize> = HashMap::new();
        for asked in &asked[asked_before..] {
            *in_this.entry(&asked.effect).or_default() += 1;
            assert!(
                !known.contains_key(&asked.effect),
                "{} was answered and is asked again: {kill:?}",
                asked.effect
            );
        }
        asked_before = asked.len();
        for (effect, times) in in_this {
            assert_eq!(
                times, 1,
                "{effect} is asked {times} times by one process: {kill:?}"
            );
            *processes_asking.entry(effect.to_owned()).or_default() += 1;
        }
        match ended {
            Some(ended) => break ended,
            None => {
                assert!(kill.is_some(), "the process died by itself");
                met += 1;
            }
        }
        if world.run().is_none() {
            // Nothing ran yet, and the half-made run says so.
            assert_eq!(asked.len(), 0);
            for run in std::fs::read_dir(world.dir.path().join(".prose/runs"))
                .into_iter()
                .flatten()
            {
                let run = run.unwrap().file_name().into_string().unwrap();
                let (code, _, error) = self::ended(world.host(&["resume", &run]).output().unwrap()).unwrap();
                assert_eq!(code, 2);
                assert!(error.contains("never started"), "{error}");
            }
        }
    };
    let (code, stdout, stderr) = ended;
    assert_eq!(code, 0, "{stderr}");
    for (effect, times) in &processes_asking {
        assert!(
            *times <= met + 1,
            "{effect} was asked {times} times in {met} kills"
        );
    }
    let again = processes_asking.values().filter(|times| **times > 1).count();
    (left(world, &stdout), outcomes(&world.records()), met, again)
}

/// A difference as a person reads it.
#[track_caller]
fn assert_left(found: &Left, expected: &Left, kills: &[Kill]) {
    for (name, text) in &expected.files {
        assert_eq!(found.files.get(name), Some(text), "{name} after {kills:?}");
    }
    for name in found.files.keys() {
        assert!(
            expected.files.contains_key(name),
            "{name} is left after {kills:?}"
        );
    }
    assert_eq!(found.stdout, expected.stdout, "after {kills:?}");
}

/// Runs cases on a few threads; each is a few processes that mostly wait for each other. The first that fails is shown
/// with its kills.
fn all(cases: Vec<Vec<Kill>>, check: impl Fn(&[Kill]) -> (usize, usize) + std::marker::Sync) {
    let next = AtomicUsize::new(0);
    let (met, again) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(kills) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(kills)));
                    match result {
                        Ok(counts) => {
                            met.fetch_add(counts.0, Ordering::Relaxed);
                            again.fetch_add(counts.1, Ordering::Relaxed);
                        }
                        Err(panic) => {
                            next.store(cases.len(), Ordering::Relaxed);
                            std::panic::resume_unwind(panic);
                        }
                    }
                }
            });
        }
    });
    let note = format!(
        "{} cases, {} kills, {} questions asked again that were in flight\n",
        cases.len(),
        met.into_inner(),
        again.into_inner()
    );
    let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
}

fn virtual_reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| reference(Manner::Virtual, &mock()))
}

fn check_virtual(kills: &[Kill]) -> (usize, usize) {
    let expected = virtual_reference();
    let world = World::new(Manner::Virtual, &mock());
    let (left, outcomes, met, again) = case(&world, kills);
    assert_left(&left, &expected.left, kills);
    assert_eq!(outcomes, expected.outcomes, "after {kills:?}");
    (met, again)
}

#[test]
fn two_uninterrupted_runs_leave_the_same() {
    let again = reference(Manner::Virtual, &mock());
    assert_left(&again.left, &virtual_reference().left, &[]);
    assert_eq!(again.records, virtual_reference().records);
    assert!(again.records > 200, "{}", again.records);
}

#[test]
fn ended_after_every_record() {
    let records = virtual_reference().records;
    let step = if full() { 1 } else { 9 };
    all(
        (2..=records)
            .step_by(step)
            .map(|n| vec![Kill::Record(n)])
            .collect(),
        check_virtual,
    );
}

#[test]
fn ended_at_every_step_of_every_write() {
    let reference = virtual_reference();
    let mut cases = Vec::new();
    for (name, visits) in &reference.points {
        // The first and the last visit of each, and in between as many as there is time for.
        let between = if full() { 1 } else { (*visits / 2).max(1) };
        let mut chosen: BTreeSet<usize> = (1..=*visits).step_by(between).collect();
        chosen.insert(*visits);
        cases.extend(
            chosen
                .into_iter()
                .map(|visit| vec![Kill::Point(name.clone(), visit)]),
        );
    }
    all(cases, check_virtual);
}
