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

use prose_agents::process;
use prose_model::ProcessId;
use prose_state::failpoint::{ABORT_AT, LOG};
use prose_tests::crash::{Answers, CHILD, MANNER, Manner, SOCKET};
use prose_tests::{EVERYTHING_MOCK, everything, files_below};
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
        World::with(manner, Answers::listen(mock))
    }

    fn with(manner: Manner, answers: Answers) -> World {
        let dir = everything();
        std::fs::create_dir(dir.path().join(".prose")).unwrap();
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
    let mut asked_before = world.answers.count();
    let mut earlier: BTreeSet<u32> = world.answers.asked().iter().map(|asked| asked.pid).collect();
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
        let mut in_this: HashMap<(u32, &str), usize> = HashMap::new();
        for asked in &asked[asked_before..] {
            *in_this.entry((asked.pid, &asked.effect)).or_default() += 1;
            // A question of a process that is killed may be read only later.
            assert!(
                earlier.contains(&asked.pid) || !known.contains_key(&asked.effect),
                "{} was answered and is asked again: {kill:?}",
                asked.effect
            );
        }
        asked_before = asked.len();
        earlier.extend(asked.iter().map(|asked| asked.pid));
        for ((_, effect), times) in in_this {
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
        let found = found.files.get(name).map_or("(no file)", String::as_str);
        let mut pairs = found.lines().zip(text.lines());
        let line = pairs.find(|(found, expected)| found != expected);
        assert!(found == text, "{name} after {kills:?}: {line:?} differ");
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
    REFERENCE.get_or_init(|| reference(Manner::Virtual, EVERYTHING_MOCK))
}

fn check_virtual(kills: &[Kill]) -> (usize, usize) {
    let expected = virtual_reference();
    let world = World::new(Manner::Virtual, EVERYTHING_MOCK);
    let (left, outcomes, met, again) = case(&world, kills);
    assert_left(&left, &expected.left, kills);
    assert_eq!(outcomes, expected.outcomes, "after {kills:?}");
    (met, again)
}

#[test]
fn two_uninterrupted_runs_leave_the_same() {
    let again = reference(Manner::Virtual, EVERYTHING_MOCK);
    assert_left(&again.left, &virtual_reference().left, &[]);
    assert_eq!(again.records, virtual_reference().records);
    assert!(again.records > 200, "{}", again.records);
    for file in [
        ".prose/runs/RUN/agents/captain/memory.md",
        ".prose/runs/RUN/agents/captain/captain-002.md",
        ".prose/runs/RUN/agents/captain/archive/RUN/captain-005.md",
        ".prose/runs/RUN/imports/local--helper/agents/aide/aide-001.md",
        ".prose/agents/keeper/keeper-002.md",
        "home/.prose/agents/friend/archive/RUN/friend-001.md",
        "notes/clerk/clerk-002.md",
        ".prose/runs/RUN/imports/local--helper/imports/local--deeper/state.md",
        ".prose/runs/RUN/bindings/report__3.md",
    ] {
        assert!(
            again.left.files.contains_key(file),
            "{file}: {:#?}",
            again.left.files.keys()
        );
    }
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

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// Several ends in a row, each while the run is resumed from the one before.
#[test]
fn ended_again_and_again() {
    let reference = virtual_reference();
    let points: Vec<(&String, &usize)> = reference.points.iter().collect();
    let mut numbers = Numbers(1);
    let cases = (0..if full() { 300 } else { 12 }).map(|_| {
        let mut kills = Vec::new();
        let mut record = 2;
        for _ in 0..2 + numbers.below(3) {
            kills.push(if numbers.below(3) == 0 {
                record += numbers.below(40) as usize;
                Kill::Record(record)
            } else {
                let (name, visits) = points[numbers.below(points.len() as u64) as usize];
                Kill::Point(name.clone(), 1 + numbers.below(*visits as u64) as usize)
            });
        }
        kills
    });
    all(cases.collect(), check_virtual);
}

fn signals(seed: u64, cases: usize, questions: u64) -> Vec<Vec<Kill>> {
    let mut numbers = Numbers(seed);
    let kill = |numbers: &mut Numbers| Kill::Signal(numbers.below(questions) as usize, numbers.below(4000));
    (0..cases)
        .map(|_| {
            // One process in two is killed once, the others up to three times.
            let kills = 1 + numbers.below(6).saturating_sub(3);
            (0..kills).map(|_| kill(&mut numbers)).collect()
        })
        .collect()
}

#[test]
fn killed_at_any_moment() {
    all(signals(7, if full() { 200 } else { 10 }, 110), check_virtual);
}

/// The mock with other winners and another order of arrival.
fn forced(quick: bool, swift: bool, scouts: [&str; 3]) -> String {
    let mut mock = EVERYTHING_MOCK.to_owned();
    let mut delay = |prompt: &str, ms: usize| {
        let at = mock.find(&format!("prompt = \"^{prompt}\"")).unwrap();
        let from = at + mock[at..].find("delay_ms = ").unwrap();
        let end = from + mock[from..].find('\n').unwrap();
        mock.replace_range(from..end, &format!("delay_ms = {ms}"));
    };
    delay("Race quick", if quick { 10 } else { 1000 });
    delay("Race slow", if quick { 1000 } else { 10 });
    delay("Swift", if swift { 20 } else { 2000 });
    delay("Lame", if swift { 2000 } else { 20 });
    for (at, scout) in scouts.iter().enumerate() {
        delay(&format!("Scout the {scout}"), 100 * (at + 1));
    }
    mock
}

/// What a run may leave where nothing but the clock decides who is first.
fn legal() -> &'static BTreeSet<Left> {
    static LEGAL: OnceLock<BTreeSet<Left>> = OnceLock::new();
    LEGAL.get_or_init(|| {
        let orders = [
            ["north", "south", "east"],
            ["north", "east", "south"],
            ["south", "north", "east"],
            ["south", "east", "north"],
            ["east", "north", "south"],
            ["east", "south", "north"],
        ];
        let mut legal = BTreeSet::new();
        for order in orders {
            for (quick, swift) in [(true, true), (true, false), (false, true), (false, false)] {
                legal.insert(unordered(
                    reference(Manner::Virtual, &forced(quick, swift, order)).left,
                ));
            }
        }
        assert_eq!(legal.len(), 24);
        legal
    })
}

/// The list of bindings in `state.md` is in the order in which they were first bound: of what goes on at once, any.
fn unordered(mut left: Left) -> Left {
    for (_, text) in left
        .files
        .iter_mut()
        .filter(|(name, _)| name.ends_with("state.md"))
    {
        let mut lines: Vec<&str> = text.lines().collect();
        let row = |line: &&str| line.starts_with("| ") && line.contains("| bindings/");
        let from = lines.iter().position(row).unwrap_or(0);
        let len = lines[from..].iter().take_while(|line| row(line)).count();
        lines[from..from + len].sort_unstable();
        *text = lines.join("\n");
    }
    left
}

fn check_real(manner: Manner, kills: &[Kill]) -> (usize, usize) {
    let world = World::new(manner, EVERYTHING_MOCK);
    let (left, _, met, again) = case(&world, kills);
    let left = unordered(left);
    if !legal().contains(&left) {
        // Shown as its difference from the nearest.
        let nearest = legal().iter().max_by_key(|legal| {
            legal
                .files
                .iter()
                .filter(|(name, text)| left.files.get(*name) == Some(text))
                .count()
        });
        assert_left(&left, nearest.unwrap(), kills);
    }
    (met, again)
}

#[test]
fn killed_at_any_moment_while_time_passes() {
    let mut cases = signals(11, if full() { 200 } else { 8 }, 110);
    cases.push(Vec::new());
    all(cases, |kills| check_real(Manner::Files, kills));
}

/// The steps that only sessions with files and memory outside of the run have.
#[test]
fn ended_at_the_steps_of_sessions_while_time_passes() {
    let parts = ["staging", "session", "archive", "memory", "segment", "value"];
    let mut cases = Vec::new();
    for (name, visits) in &reference(Manner::Files, EVERYTHING_MOCK).points {
        if parts.iter().any(|part| name.split('.').next() == Some(part)) {
            let step = if full() { 1 } else { *visits };
            let visits = (1..=*visits).step_by(step);
            cases.extend(visits.map(|visit| vec![Kill::Point(name.clone(), visit)]));
        }
    }
    assert!(cases.len() > 15, "{cases:?}");
    all(cases, |kills| check_real(Manner::Files, kills));
}

#[test]
fn sessions_that_outlive_their_process_are_found_again() {
    let mut cases = signals(13, if full() { 60 } else { 4 }, 110);
    cases.push(Vec::new());
    all(cases, |kills| check_real(Manner::Reattach, kills));
}

/// A session goes on when the process that asked it is killed, and writes its results when the next process has asked again.
#[test]
fn results_of_an_earlier_process_that_come_late_are_not_taken() {
    for task in ["Plan the work", "Branch one", "Afresh, continued", "File 2"] {
        let world = World::with(Manner::Files, Answers::late(EVERYTHING_MOCK, task));
        let mut child = world.go(None).spawn().unwrap();
        while !world.answers.is_holding() {
            assert!(child.try_wait().unwrap().is_none(), "it ended without {task}");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (left, ..) = case(&world, &[]);
        let left = unordered(left);
        assert!(legal().contains(&left), "{task}");
        assert!(!left.files.values().any(|text| text.contains("too late")));
        let held = world.answers.asked();
        let again = held.iter().filter(|asked| asked.lease == 2).count();
        assert!(again > 0 && held.iter().any(|asked| asked.lease == 1));
    }
}

/// What a session started is ended by the next process before the session is asked again.
#[test]
fn children_of_a_killed_process_are_ended() {
    let children = |world: &World| -> Vec<ProcessId> {
        let records = world.records();
        let children = records.into_iter().filter(|record| record["t"] == "child");
        children
            .map(|mut record| serde_json::from_value(record["process"].take()).unwrap())
            .collect()
    };
    let world = World::with(Manner::Files, Answers::late(EVERYTHING_MOCK, "Branch one"));
    let mut host = world.go(None).env(CHILD, "1").spawn().unwrap();
    while !world.answers.is_holding() {
        assert!(host.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    host.kill().unwrap();
    host.wait().unwrap();
    let before = children(&world);
    let alive = before.iter().filter(|child| process::is_alive(child)).count();
    assert!(alive > 0, "the child of the held session goes on");
    let output = world.go(world.run().as_deref()).env(CHILD, "1").output().unwrap();
    let (code, _, stderr) = ended(output).unwrap();
    assert_eq!(code, 0, "{stderr}");
    let after = children(&world);
    assert!(after.len() > before.len());
    for child in after {
        assert!(!process::is_alive(&child), "{child:?}");
    }
}
