//! What large runs keep: counted in bytes, not in time.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)]
#[path = "machine/build.rs"]
mod build;

use std::alloc::System;
use std::collections::VecDeque;

use build::*;
use prose_model::{
    BinaryOp, Effect, EffectId, Issued, Node, Outcome, ParallelFor, RunStatus, SessionOutcome, Usage, Value,
};
use prose_vm::{Machine, StepState};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held(region: &Region<'_, System>) -> isize {
    let change = region.change();
    change.bytes_allocated as isize - change.bytes_deallocated as isize
}

fn replied(text: &str) -> Outcome {
    Outcome::Session(Box::new(SessionOutcome {
        value: Value::text(text),
        summary: "done".into(),
        usage: Usage::default(),
        memory: None,
        segment: None,
    }))
}

/// Runs a program whose sessions are answered in order of their start, the one called "List" with a list of `items`.
/// What the machine hands out is dropped, as a runtime does. `seen` is told after how many answers.
fn run(body: Vec<Node>, items: usize, mut seen: impl FnMut(usize)) {
    let mut machine = Machine::start(bundle(vec![program(body)]), Default::default());
    let mut open: VecDeque<(EffectId, bool)> = VecDeque::with_capacity(20_000);
    let mut answered = 0;
    loop {
        let step = machine.step();
        drop(step.events);
        for Issued { id, effect, .. } in step.effects {
            let Effect::Session(request) = effect else {
                panic!("only sessions are asked")
            };
            open.push_back((id, request.label == "List"));
        }
        match step.state {
            StepState::Running => continue,
            StepState::Waiting => {}
            StepState::Done(done) => {
                assert_eq!(done.status, RunStatus::Completed, "{:?}", done.error);
                return;
            }
        }
        let (id, list) = open.pop_front().unwrap();
        let answer = match list {
            true => format!("{:?}", (0..items).collect::<Vec<_>>()),
            false => "some words of an answer that nobody uses".into(),
        };
        machine.resolve(&id, replied(&answer)).unwrap();
        answered += 1;
        seen(answered);
    }
}

/// How much more is held after `late` answers than after `early` ones, in bytes.
fn growth(body: Vec<Node>, items: usize, early: usize, late: usize) -> isize {
    let region = Region::new(GLOBAL);
    let (mut before, mut after) = (None, None);
    run(body, items, |answered| {
        if answered == early {
            before = Some(held(&region));
        }
        if answered == late {
            after = Some(held(&region));
        }
    });
    after.unwrap() - before.unwrap()
}

/// The allocator counts for the whole process, so that one test runs what would be several.
#[test]
fn what_is_over_is_not_kept() {
    // Branches of which nobody uses the values: the items, a place in the join and a trace of each effect are left.
    let n = 10_000_usize;
    let wide = |at_once: Option<f64>| {
        let modifiers = ParallelFor {
            max: at_once.map(|max| Box::new(num(max))),
            ..ParallelFor::default()
        };
        vec![
            parallel_for_with("x", session("List"), modifiers, vec![session("S {x}")]),
            session("After"),
        ]
    };
    for at_once in [None, Some(16.0)] {
        let kept = growth(wide(at_once), n, 1, n) / n as isize;
        assert!(kept <= 200, "{kept} bytes are kept per finished branch");
    }

    // Iterations of loops whose values nobody uses, each with a session; only the hash of its id is left.
    let n = 100_000;
    let counted = || repeat(num(n as f64), Some("i"), vec![session("S {i}")]);
    let judged = || {
        let more = bin(BinaryOp::Lt, var("x"), num(n as f64));
        loop_(
            while_(more),
            None,
            vec![session("S"), assign("x", add(var("x"), num(1.0)))],
        )
    };
    for body in [
        vec![counted(), session("After")],
        vec![let_("x", num(0.0)), judged(), session("After")],
        vec![for_("x", session("List"), vec![session("S")]), session("After")],
        vec![
            repeat(num(n as f64), Some("i"), vec![do_(vec![session("S"), null()])]),
            session("After"),
        ],
    ] {
        let kept = growth(body, n, 20_000, n) / (n as isize - 20_000);
        assert!(kept <= 48, "{kept} bytes are kept per iteration");
    }
}
