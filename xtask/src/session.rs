//! A series of steps: runs each, goes on after a failure, and sums up at the end.

use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::failures::Failures;
use crate::{Result, process, tally::Tally};

/// What a step prints counts how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The whole step is one check.
    Check,
    /// A test runner, whose closing lines are counted.
    Runner,
}

/// The steps so far.
#[derive(Default)]
pub struct Session {
    tally: Tally,
    failed: Vec<String>,
    /// What runners said about failed tests.
    told: Vec<String>,
    times: Vec<(String, f64)>,
}

impl Session {
    /// Runs a step; whether it went well.
    pub fn step(&mut self, name: &str, kind: Kind, command: Command) -> bool {
        self.step_within(process::STEP_LIMIT, name, kind, command)
    }

    /// Runs a step that may take so long; whether it went well.
    pub fn step_within(&mut self, limit: Duration, name: &str, kind: Kind, command: Command) -> bool {
        let (mut seen, mut failures) = (Tally::default(), Failures::default());
        let begun = self.begin(name);
        let result = process::tee_within(limit, command, |line| {
            if kind == Kind::Runner {
                seen.read(line);
            }
            failures.read(line);
        });
        let problem = match result {
            Ok(true) => None,
            Ok(false) => Some("its exit code says so".to_owned()),
            Err(problem) => Some(problem),
        };
        // A runner that found no test at all has failed as well.
        let problem = match (kind, seen) {
            _ if problem.is_some() => problem,
            (Kind::Runner, Tally { failed: 1.., .. }) => Some("tests failed".to_owned()),
            (Kind::Runner, Tally { passed: 0, .. }) => Some("it ran no test".to_owned()),
            _ => None,
        };
        if kind == Kind::Check {
            seen.passed = u64::from(problem.is_none());
        }
        if problem.is_some() {
            seen.failed = seen.failed.max(1);
            self.told.extend(failures.into_lines());
        }
        self.tally.add(seen);
        self.end(name, begun, problem)
    }

    /// Prepares something; a failure counts as one failed check, success as nothing.
    pub fn prepare<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        let begun = self.begin(name);
        match work() {
            Ok(made) => {
                self.end(name, begun, None);
                Some(made)
            }
            Err(problem) => {
                self.tally.failed += 1;
                self.end(name, begun, Some(problem));
                None
            }
        }
    }

    /// Prints times, what failed, and the closing line; the exit code.
    pub fn close(self) -> ExitCode {
        say("");
        for (name, seconds) in &self.times {
            say(&format!("{seconds:7.1} s  {name}"));
        }
        if !self.told.is_empty() {
            say("");
        }
        for line in &self.told {
            say(line);
        }
        for name in &self.failed {
            say(&format!("failed: {name}"));
        }
        say(&format!(
            "{} passed, {} failed",
            self.tally.passed, self.tally.failed
        ));
        if self.failed.is_empty() && self.tally.failed == 0 && self.tally.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn begin(&self, name: &str) -> Instant {
        say(&format!("\n==> {name}"));
        Instant::now()
    }

    fn end(&mut self, name: &str, begun: Instant, problem: Option<String>) -> bool {
        self.times.push((name.to_owned(), begun.elapsed().as_secs_f64()));
        if let Some(problem) = &problem {
            say(&format!("{name} failed: {problem}"));
            self.failed.push(name.to_owned());
        }
        problem.is_none()
    }
}

/// Prints a line. A closed standard output is no reason to stop.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
