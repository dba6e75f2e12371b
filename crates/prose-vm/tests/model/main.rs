//! Random programs through the machine and through a naive interpreter of the language, side by side.
//!
//! The interpreter shares no code with the machine but the bundle and values: it walks the tree by recursion, keeps scopes
//! as linked objects and branches as futures, and reads texts by rules of its own. After every answer both have to wait
//! for the same things, in the same order; at the end they have to agree on bindings, outputs, result and error.
#![allow(clippy::unwrap_used, missing_docs)]

mod asks;
#[allow(dead_code)]
#[path = "../machine/build.rs"]
mod build;
mod calls;
mod found;
mod generate;
mod interp;
mod joins;
mod pure;
mod reading;
mod scope;
mod source;
mod tasks;
mod written;

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use prose_model::{
    Ask, Bundle, Decision, DecodeTarget, Effect, EffectId, ErrorKind, Event, Failure, Issued, MachineEvent,
    MemoryMode, Outcome, RunStatus, SessionOutcome, Text, TextPart, TextRef, Usage, Value, Verdict,
};
use prose_vm::{Completion, Machine, StepState};

use generate::{Case, case};
use tasks::{Exit, Model};

/// A value for comparison.
pub fn show(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", show_text(text)),
        Value::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Record(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{key}: {}", show(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Error(error) => format!("{:?}({}; {})", error.kind, error.message, error.attempts),
        Value::Null => "null".into(),
        other => reading::plain(other),
    }
}
pub fn show_text(text: &Text) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Inline(text) => text.to_string(),
        TextPart::Ref(reference) => format!("<{}>", reference.summary),
    });
    parts.collect()
}
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => text.as_inline().is_some_and(|text| text.trim().is_empty()),
        _ => false,
    }
}

/// Errors inside values name the statement; which part of it is not of the language.
pub fn without_places(text: String) -> String {
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("statement") {
        out.push_str(before);
        rest = after.find("attempts").map_or(after, |at| &after[at..]);
    }
    out.push_str(rest);
    out
}

/// What the machine asks, in the interpreter's words.
fn asked(issued: &Issued) -> String {
    without_places(match &issued.effect {
        Effect::Session(it) => {
            let items: Vec<_> = it
                .context
                .iter()
                .map(|item| format!("{}={}", item.label, show(&item.value)))
                .collect();
            let binding = &it.binding.binding;
            let key = format!(
                "{}:{}__{}",
                binding.program.join("/"),
                binding.name,
                binding.execution_id.unwrap_or(0)
            );
            let mode = it.memory.as_ref().map(|memory| memory.mode == MemoryMode::Resume);
            let scope = it
                .scope
                .as_ref()
                .map(|scope| (scope.block.to_string(), Some(scope.execution_id), scope.depth));
            format!(
                "session {:?} {} system {} [{}] {}/{} -> {key} {:?} memory {mode:?} scope {scope:?}",
                it.agent,
                show_text(&it.task),
                it.system.as_ref().map_or_else(String::new, show_text),
                items.join(", "),
                it.attempt,
                it.max_attempts,
                it.binding.bind_kind,
            )
        }
        Effect::Judge(it) => {
            let what = match &it.ask {
                Ask::Value => "a value".to_owned(),
                Ask::Condition => "a condition".to_owned(),
                Ask::Loop {
                    until,
                    test,
                    previous,
                    ..
                } => {
                    let before: Vec<_> = previous.iter().map(|v| format!("{:?}", v.decision)).collect();
                    format!("a loop {until} {test} {before:?}")
                }
                Ask::Choice { options } => format!("a choice {options:?}"),
                Ask::Question => "a question".to_owned(),
            };
            let names: Vec<_> = it
                .names
                .iter()
                .map(|visible| format!("{}={}", visible.name, show(&visible.value)))
                .collect();
            format!("judge {what}: {} [{}]", show_text(&it.text), names.join(", "))
        }
        Effect::Decode(it) => format!("decode {} {}", target(&it.target), show(&it.value)),
        Effect::Input(it) => format!("input {} {}", it.name, show_text(&it.prompt)),
        Effect::Sleep(it) => format!("sleep {}", it.ms),
        Effect::CancelScope(_) => "cancel".into(),
    })
}

/// What content is read as.
pub fn target(target: &DecodeTarget) -> String {
    match target {
        DecodeTarget::Equals(other) => format!("equals {}", show(other)),
        other => format!("{other:?}"),
    }
}

fn replied(value: Value) -> Outcome {
    Outcome::Session(Box::new(SessionOutcome {
        summary: show(&value),
        value,
        usage: Usage::default(),
        memory: None,
        segment: None,
    }))
}
fn failed(kind: ErrorKind, message: &str) -> Outcome {
    Outcome::Failed(Failure {
        kind,
        message: message.into(),
        retry_after_ms: None,
        usage: Usage::default(),
    })
}
fn verdict(decision: Decision) -> Outcome {
    Outcome::Verdict(Verdict {
        decision,
        confidence: 1.0,
        reason: "because".into(),
        usage: Usage::default(),
    })
}

/// An answer by the draw.
fn answer(issued: &Issued, draw: u16, turn: usize) -> Outcome {
    match &issued.effect {
        Effect::Session(_) => match draw % 24 {
            0..=2 => failed(ErrorKind::Backend, &format!("down {turn}")),
            3 if turn.is_multiple_of(4) => failed(ErrorKind::Budget, "spent"),
            3 => replied(Value::text(" ")),
            4 => replied(Value::text("[\"x\", {\"k\": \"v\"}]")),
            5 => replied(Value::text("{\"k\": 2, \"m\": [1, \"z\"]}")),
            6 => replied(Value::text("4")),
            7 => replied(Value::text("no")),
            8 => replied(Value::text("K: one\nM: two")),
            9 => replied(Value::Text(Text::reference(TextRef {
                sha256: format!("sha{turn}").into(),
                len: 10_000,
                summary: format!("long {turn}"),
            }))),
            _ => replied(Value::text(format!("r{turn}"))),
        },
        Effect::Judge(it) => match (&it.ask, draw % 8) {
            (_, 0) if turn.is_multiple_of(3) => failed(ErrorKind::Judge, "no judge"),
            (Ask::Choice { options }, n) => verdict(match n {
                1 => Decision::Unsure,
                2 => Decision::Option("nothing".into()),
                n => Decision::Option(options[usize::from(n) % options.len()].clone()),
            }),
            (Ask::Value, n) if n > 3 => verdict(Decision::Value(Value::Number(f64::from(n)))),
            (_, 1) => verdict(Decision::Unsure),
            (Ask::Loop { .. }, 2) => verdict(Decision::NoProgress),
            (_, n) if n.is_multiple_of(2) => verdict(Decision::No),
            _ => verdict(Decision::Yes),
        },
        Effect::Decode(it) => {
            if draw.is_multiple_of(16) {
                return failed(ErrorKind::Type, "unreadable");
            }
            let value = match &it.target {
                DecodeTarget::List => Value::list(vec![Value::text("one"), Value::Number(2.0)]),
                DecodeTarget::Record(_) => Value::record([("k".to_owned(), Value::text("decoded"))]),
                DecodeTarget::Number => Value::Number(1.0),
                DecodeTarget::Json | DecodeTarget::Memory(_) => Value::text("json"),
                _ => Value::Bool(draw.is_multiple_of(2)),
            };
            Outcome::Decoded { value }
        }
        Effect::Input(it) => match draw % 16 {
            0 => failed(ErrorKind::Input, "nobody"),
            _ => Outcome::Input {
                value: Value::text(format!("{} {turn}", it.name)),
            },
        },
        Effect::Sleep(_) => Outcome::Slept,
        Effect::CancelScope(_) => Outcome::Cancelled,
    }
}

/// The machine with what it waits for.
struct Real {
    machine: Machine,
    open: Vec<Issued>,
    log: Vec<String>,
    bound: IndexMap<String, String>,
    done: Option<Completion>,
}

impl Real {
    fn start(bundle: &Arc<Bundle>) -> Real {
        Real {
            machine: Machine::start(bundle.clone(), IndexMap::new()),
            open: Vec::new(),
            log: Vec::new(),
            bound: IndexMap::new(),
            done: None,
        }
    }

    /// Steps until nothing goes on; what is cancelled stops at once.
    fn rest(&mut self) {
        loop {
            let step = self.machine.step();
            for issued in step.effects {
                match &issued.effect {
                    Effect::CancelScope(request) => self.open.retain(|it| !request.effects.contains(&it.id)),
                    _ => self.log.push(asked(&issued)),
                }
                self.open.push(issued);
            }
            for event in step.events {
                if let Event::Bound {
                    binding, kind, value, ..
                } = event.event
                    && let Some(word) = kind.file_kind()
                {
                    let id = binding.execution_id.unwrap_or(0);
                    let key = format!("{}:{}__{id}", binding.program.join("/"), binding.name);
                    self.bound
                        .insert(key, without_places(format!("{word} {}", show(&value))));
                }
            }
            match step.state {
                StepState::Running => {}
                StepState::Done(done) => {
                    self.done = Some(done);
                    return;
                }
                StepState::Waiting => {
                    let cancel = |it: &Issued| matches!(it.effect, Effect::CancelScope(_));
                    let Some(at) = self.open.iter().position(cancel) else {
                        return;
                    };
                    let scope = self.open.remove(at);
                    self.machine.resolve(&scope.id, Outcome::Cancelled).unwrap();
                }
            }
        }
    }
}

/// How a run ended, in words.
fn ending(
    status: RunStatus,
    outputs: &IndexMap<String, Value>,
    result: Option<&Value>,
    error: Option<String>,
) -> String {
    let outputs: Vec<_> = outputs
        .iter()
        .map(|(name, value)| format!("{name}={}", show(value)))
        .collect();
    format!(
        "{status:?} [{}] {:?} {error:?}",
        outputs.join(", "),
        result.map(show)
    )
}

fn model_ending(model: &Model, declared: bool) -> Option<String> {
    let world = model.world.borrow();
    let outputs = &world.instances[0].outputs;
    let declared = declared || !outputs.is_empty();
    let (status, result, error) = match world.done.as_ref()? {
        Ok(Value::Null) => (RunStatus::Completed, None, None),
        Ok(value) => (RunStatus::Completed, (!declared).then_some(value), None),
        Err(Exit::Return(value)) => (RunStatus::Completed, Some(value), None),
        Err(Exit::Error(error)) => (RunStatus::Failed, None, Some(show(&Value::Error(error.clone())))),
        Err(Exit::Break) => unreachable!("break leaves no program"),
        Err(Exit::Cancel) => (RunStatus::Cancelled, None, None),
    };
    Some(ending(status, outputs, result, error))
}

/// Runs a case through both; the first difference is an error.
fn compare(case: &Case) -> Result<(), String> {
    let mut real = Real::start(&case.bundle);
    let model = calls::start(case.bundle.clone());
    for turn in 0..2_000 {
        real.rest();
        model.rest();
        let open: Vec<_> = real.open.iter().map(asked).collect();
        let wanted: Vec<_> = model
            .world
            .borrow()
            .open
            .iter()
            .map(|(_, what)| what.clone())
            .collect();
        if open != wanted {
            return Err(format!(
                "turn {turn}: the machine asks {open:#?}, the model {wanted:#?}"
            ));
        }
        if open.is_empty() {
            break;
        }
        // Without draws everything is answered well, oldest first.
        let draw = case.picks.get(turn).copied().unwrap_or(255);
        if draw > 65_000 {
            real.machine.cancel();
            model.cancel();
            continue;
        }
        let at = usize::from(draw / 256) % open.len();
        let issued = real.open.remove(at);
        let outcome = answer(&issued, draw % 256, turn);
        real.machine.resolve(&issued.id, outcome.clone()).unwrap();
        model.answer(at, outcome);
    }
    let Some(done) = &real.done else {
        return Err(format!("the machine has not ended; {:?}", real.machine.pending()));
    };
    let error = done
        .error
        .clone()
        .map(|error| show(&Value::Error(Arc::new(error))));
    let ended = ending(done.status, &done.outputs, done.result.as_ref(), error);
    let declared = !case.bundle.programs[0].outputs.is_empty();
    let wanted = model_ending(&model, declared);
    let (ended, wanted) = (without_places(ended), wanted.map(without_places));
    if Some(&ended) != wanted.as_ref() {
        return Err(format!("the machine ends {ended}, the model {wanted:?}"));
    }
    let world = model.world.borrow();
    if real.log != world.log {
        return Err(format!("asked: {:#?}, the model {:#?}", real.log, world.log));
    }
    if real.bound != world.bound {
        return Err(format!("bound: {:#?}, the model {:#?}", real.bound, world.bound));
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig {
        // More by PROPTEST_CASES.
        cases: std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(150),
        max_shrink_iters: 4_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/model/regressions.txt",
        ))),
        ..ProptestConfig::default()
    }
}

/// What came from outside, in order.
#[derive(Clone)]
enum Said {
    Outcome(EffectId, Outcome),
    Cancel,
}

/// All that a machine has said.
#[derive(Default, PartialEq, Debug)]
struct Trace {
    effects: Vec<Issued>,
    events: Vec<MachineEvent>,
    done: Option<Completion>,
}

impl Trace {
    fn steps(&mut self, machine: &mut Machine) {
        loop {
            let step = machine.step();
            self.effects.extend(step.effects);
            self.events.extend(step.events);
            match step.state {
                StepState::Running => {}
                StepState::Waiting => return,
                StepState::Done(done) => {
                    self.done = Some(done);
                    return;
                }
            }
        }
    }
}

/// Runs a case by its draws, cancel scopes among the effects, and says what was said.
fn record(case: &Case) -> (Trace, Vec<Said>) {
    let mut machine = Machine::start(case.bundle.clone(), IndexMap::new());
    let (mut trace, mut said) = (Trace::default(), Vec::new());
    let (mut open, mut seen): (Vec<Issued>, usize) = (Vec::new(), 0);
    for turn in 0..2_000 {
        trace.steps(&mut machine);
        for issued in &trace.effects[seen..] {
            if let Effect::CancelScope(request) = &issued.effect {
                open.retain(|it| !request.effects.contains(&it.id));
            }
            open.push(issued.clone());
        }
        seen = trace.effects.len();
        if open.is_empty() {
            break;
        }
        let draw = case.picks.get(turn).copied().unwrap_or(255);
        if draw > 65_000 {
            machine.cancel();
            said.push(Said::Cancel);
            continue;
        }
        let issued = open.remove(usize::from(draw / 256) % open.len());
        let outcome = answer(&issued, draw % 256, turn);
        machine.resolve(&issued.id, outcome.clone()).unwrap();
        said.push(Said::Outcome(issued.id, outcome));
    }
    (trace, said)
}

/// Says the same again, as many things at once as `groups` say, in turn; 0 is a step for nothing.
fn replay(case: &Case, said: &[Said], groups: &[u8]) -> Trace {
    let mut machine = Machine::start(case.bundle.clone(), IndexMap::new());
    let mut trace = Trace::default();
    trace.steps(&mut machine);
    let mut groups = groups.iter().cycle();
    let mut said = said.iter().peekable();
    while said.peek().is_some() {
        let group = groups.next().copied().unwrap_or(1);
        for _ in 0..group {
            let Some(next) = said.peek() else { break };
            match next {
                // What is not asked yet needs a step first.
                Said::Outcome(id, outcome) => match machine.resolve(id, outcome.clone()) {
                    Ok(()) => {}
                    Err(_) => break,
                },
                Said::Cancel => machine.cancel(),
            }
            said.next();
        }
        trace.steps(&mut machine);
    }
    trace
}

#[test]
fn the_draws_reach_everything() {
    let mut runner = TestRunner::deterministic();
    let cases = case();
    let mut seen = BTreeSet::new();
    for _ in 0..150 {
        let (trace, _) = record(&cases.new_tree(&mut runner).unwrap().current());
        let done = trace.done.unwrap();
        seen.insert(format!("{:?}", done.status));
        seen.extend(
            trace
                .effects
                .iter()
                .map(|it| asked(it).split(' ').next().unwrap().to_owned()),
        );
        for MachineEvent { event, .. } in &trace.events {
            match event {
                Event::ConstructStarted { kind, .. } => seen.insert(format!("{kind:?}")),
                Event::FrameStarted { kind, .. } => seen.insert(format!("frame {kind:?}")),
                Event::PartFinished { end, .. } => seen.insert(format!("part {end:?}")),
                _ => false,
            };
        }
    }
    for wanted in [
        "Completed",
        "Failed",
        "Cancelled",
        "session",
        "judge",
        "decode",
        "input",
        "sleep",
        "cancel",
        "Parallel",
        "ParallelFor",
        "For",
        "Repeat",
        "Loop",
        "If",
        "Choice",
        "Try",
        "Pipeline",
        "frame Block",
        "frame Iteration",
        "frame Item",
        "frame Program",
        "part Ok",
        "part Failed",
        "part Cancelled",
        "part Left",
    ] {
        assert!(seen.contains(wanted), "no draw reaches {wanted}: {seen:?}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn machine_and_model_agree(case in case()) {
        if let Err(difference) = compare(&case) {
            prop_assert!(false, "{}", difference);
        }
    }

    #[test]
    fn a_run_is_a_function_of_what_is_said(case in case(), groups in prop::collection::vec(0..6_u8, 1..8)) {
        let (trace, said) = record(&case);
        prop_assert!(trace.done.is_some());
        let groups = if groups.iter().all(|n| *n == 0) { vec![1] } else { groups };
        prop_assert_eq!(&trace, &replay(&case, &said, &groups));
    }
}
