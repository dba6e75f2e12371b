//! The machine's own work: what a run costs besides its sessions. Answers come at once and are all alike.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use prose_hir::{Change, FileId, RootDatabase, bundle};
use prose_model::{Bundle, Effect, Outcome, SessionOutcome, Usage, Value};
use prose_vm::{Machine, StepState};

use crate::machine;
use crate::runs::RunOutcome;

/// A program, and how often its part that counts runs.
pub struct Program {
    /// What it is, for a table.
    pub what: String,
    /// Branches or iterations.
    pub count: usize,
    bundle: Arc<Bundle>,
}

/// One `parallel for` over so many items, with a session each and nobody who uses the values.
///
/// # Errors
/// A sentence, when the program is wrong.
pub fn parallel_for(count: usize) -> Result<Program, String> {
    let text = "parallel for x in session \"List\":\n  session \"Look at {x}\"\nsession \"After\"\n";
    Program::new(
        format!("the machine alone: {count} branches with a session each"),
        count,
        text,
    )
}

/// One `repeat` with a session in each of so many iterations.
///
/// # Errors
/// A sentence, when the program is wrong.
pub fn repeat(count: usize) -> Result<Program, String> {
    let text = format!("repeat {count} as i:\n  session \"Round {{i}}\"\nsession \"After\"\n");
    Program::new(
        format!("the machine alone: {count} rounds of `repeat` with a session each"),
        count,
        &text,
    )
}

/// One `loop while` with a session in each of so many iterations.
///
/// # Errors
/// A sentence, when the program is wrong.
pub fn loop_while(count: usize) -> Result<Program, String> {
    let text =
        format!("let x = 0\nloop while x < {count}:\n  session \"Round\"\n  x = x + 1\nsession \"After\"\n");
    Program::new(
        format!("the machine alone: {count} rounds of `loop while` with a session each"),
        count,
        &text,
    )
}

impl Program {
    fn new(what: String, count: usize, text: &str) -> Result<Program, String> {
        let mut db = RootDatabase::default();
        let mut change = Change::new();
        change.text(FileId(0), "/main.prose", text);
        db.apply_change(change);
        match db.source(FileId(0)).map(|file| bundle(&db, file)) {
            Some(Ok(bundle)) => Ok(Program { what, count, bundle }),
            _ => Err(format!("the program is wrong: {text}")),
        }
    }

    /// Runs to the end and gives the number of answers; what the machine hands out is dropped.
    ///
    /// # Errors
    /// A sentence, when the run does not end as it should.
    pub fn run(&self) -> Result<usize, String> {
        let mut machine = Machine::start(self.bundle.clone(), Default::default());
        let mut open = VecDeque::new();
        let mut answered = 0;
        loop {
            let step = machine.step();
            for issued in step.effects {
                if let Effect::Session(request) = issued.effect {
                    open.push_back((issued.id, request.label == "List"));
                }
            }
            match step.state {
                StepState::Running => continue,
                StepState::Waiting => {}
                StepState::Done(done) => {
                    return match done.error {
                        None => Ok(answered),
                        Some(error) => Err(error.message),
                    };
                }
            }
            let Some((id, list)) = open.pop_front() else {
                return Err("the machine waits for nothing".to_owned());
            };
            let text = if list {
                format!("{:?}", (0..self.count).collect::<Vec<_>>())
            } else {
                "some words of an answer".to_owned()
            };
            let outcome = SessionOutcome {
                value: Value::text(text),
                summary: "done".into(),
                usage: Usage::default(),
                memory: None,
                segment: None,
            };
            machine
                .resolve(&id, Outcome::Session(Box::new(outcome)))
                .map_err(|error| error.to_string())?;
            answered += 1;
        }
    }

    /// Runs once, on this thread, and says what it took.
    ///
    /// # Errors
    /// A sentence, when the run does not end as it should.
    pub fn measure(&self) -> Result<RunOutcome, String> {
        let process = std::process::id();
        let before = machine::resident(process);
        let (started, cpu) = (Instant::now(), machine::cpu(process));
        self.run()?;
        Ok(RunOutcome {
            what: self.what.clone(),
            count: self.count as u64,
            wall: started.elapsed(),
            cpu: machine::cpu(process).saturating_sub(cpu),
            grown: machine::resident(process).saturating_sub(before),
        })
    }
}
