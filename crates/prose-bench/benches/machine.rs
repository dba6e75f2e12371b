//! The machine's own work: what a run costs besides its sessions. Answers come at once and are all alike.
#![allow(missing_docs)]

use std::collections::VecDeque;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use prose_hir::{Change, FileId, RootDatabase, bundle};
use prose_model::{Bundle, Effect, Outcome, SessionOutcome, Usage, Value};
use prose_vm::{Machine, StepState};

fn lowered(text: &str) -> Arc<Bundle> {
    let mut db = RootDatabase::default();
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
    let lowered = db.source(FileId(0)).map(|file| bundle(&db, file));
    match lowered {
        Some(Ok(bundle)) => bundle,
        _ => panic!("the program of the benchmark is wrong"),
    }
}

/// Runs to the end; the session called "List" is answered with a list of `items`.
fn run(bundle: Arc<Bundle>, items: usize) -> usize {
    let mut machine = Machine::start(bundle, Default::default());
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
            StepState::Done(_) => return answered,
        }
        let Some((id, list)) = open.pop_front() else {
            return answered;
        };
        let text = if list {
            format!("{:?}", (0..items).collect::<Vec<_>>())
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
        if machine.resolve(&id, Outcome::Session(Box::new(outcome))).is_err() {
            return answered;
        }
        answered += 1;
    }
}

fn machine(criterion: &mut Criterion) {
    // As a test it only has to run; then few are enough.
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (branches, iterations) = if bench { (10_000, 100_000) } else { (100, 100) };
    let programs = [
        (
            "parallel for",
            branches,
            "parallel for x in session \"List\":\n  session \"Look at {x}\"\nsession \"After\"\n".to_owned(),
        ),
        (
            "repeat",
            iterations,
            format!("repeat {iterations} as i:\n  session \"Round {{i}}\"\nsession \"After\"\n"),
        ),
        (
            "loop while",
            iterations,
            format!(
                "let x = 0\nloop while x < {iterations}:\n  session \"Round\"\n  x = x + 1\nsession \"After\"\n"
            ),
        ),
    ];
    let mut group = criterion.benchmark_group("machine");
    group.sample_size(10);
    for (name, count, text) in programs {
        let bundle = lowered(&text);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{name}/{count}"), |it| {
            it.iter_batched(
                || bundle.clone(),
                |bundle| run(bundle, count),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, machine);
criterion_main!(benches);
