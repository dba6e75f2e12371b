//! The machine as a function: same outcomes in the same order, same effects and events; however calls are grouped.

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use prose_model::{
    Backoff, BinaryOp, Effect, EffectId, ErrorKind, Issued, MachineEvent, Node, Outcome, Policy, Strategy,
};
use prose_vm::{Completion, Machine, StepState};
use std::sync::Arc;

use crate::build::*;
use crate::harness::*;
use crate::spike::bundle_of_spike;

/// What came from outside, in order.
#[derive(Debug, Clone)]
enum Said {
    Outcome(EffectId, Outcome),
    Cancel,
    Deadline(EffectId),
}

#[derive(Debug, Default, PartialEq)]
struct Trace {
    effects: Vec<Issued>,
    events: Vec<MachineEvent>,
    done: Option<Completion>,
}

fn steps(machine: &mut Machine, trace: &mut Trace) {
    loop {
        let step = machine.step();
        trace.effects.extend(step.effects);
        trace.events.extend(step.events);
        match step.state {
            StepState::Running => {}
            StepState::Waiting => return,
            StepState::Done(done) => {
                trace.done = Some(done);
                return;
            }
        }
    }
}

/// Runs to the end: `pick` says which open effect is answered next and how.
fn drive(bundle: &Arc<prose_model::Bundle>, picks: &[u8]) -> (Trace, Vec<Said>) {
    let mut machine = Machine::start(bundle.clone(), Default::default());
    let mut trace = Trace::default();
    let mut said = Vec::new();
    let mut open: Vec<Issued> = Vec::new();
    let mut seen = 0;
    for turn in 0..20_000_usize {
        steps(&mut machine, &mut trace);
        for issued in &trace.effects[seen..] {
            if let Effect::CancelScope(request) = &issued.effect {
                open.retain(|effect| !request.effects.contains(&effect.id));
            }
            open.push(issued.clone());
        }
        seen = trace.effects.len();
        if trace.done.is_some() {
            assert!(open.is_empty());
            break;
        }
        assert!(!open.is_empty(), "stuck");
        let pick = picks.get(turn).copied().unwrap_or(0);
        if pick == 255 {
            machine.cancel();
            said.push(Said::Cancel);
            continue;
        }
        let at = usize::from(pick / 4) % open.len();
        let scope = open
            .iter()
            .find(|issued| matches!(issued.effect, Effect::CancelScope(_)));
        if pick == 254
            && let Some(scope) = scope
        {
            let id = scope.id.clone();
            machine.deadline(&id);
            said.push(Said::Deadline(id));
            continue;
        }
        let issued = open.remove(at);
        let outcome = match (&issued.effect, pick % 4) {
            (Effect::Session(_), 1) => failed(ErrorKind::Backend, "down"),
            (Effect::Session(request), 2) => replied(long(&request.label)),
            (Effect::Judge(request), 1) if !matches!(request.ask, prose_model::Ask::Choice { .. }) => {
                verdict(prose_model::Decision::Unsure)
            }
            (effect, _) => canned(effect),
        };
        machine.resolve(&issued.id, outcome.clone()).unwrap();
        said.push(Said::Outcome(issued.id, outcome));
    }
    (trace, said)
}

/// Replays what was said; `group` says how many are handed in before each step.
fn replay(bundle: &Arc<prose_model::Bundle>, said: &[Said], group: usize) -> Trace {
    let mut machine = Machine::start(bundle.clone(), Default::default());
    let mut trace = Trace::default();
    steps(&mut machine, &mut trace);
    let mut said = said.iter().peekable();
    while said.peek().is_some() {
        let mut given = 0;
        while given < group {
            let Some(next) = said.peek() else { break };
            match next {
                // An outcome whose effect has not been issued yet needs a step first.
                Said::Outcome(id, outcome) => match machine.resolve(id, outcome.clone()) {
                    Ok(()) => {}
                    Err(_) => break,
                },
                Said::Cancel => machine.cancel(),
                Said::Deadline(scope) => machine.deadline(scope),
            }
            said.next();
            given += 1;
        }
        assert!(given > 0, "refused");
        steps(&mut machine, &mut trace);
    }
    trace
}

#[track_caller]
fn check(bundle: &Arc<prose_model::Bundle>, picks: &[u8]) {
    let (trace, said) = drive(bundle, picks);
    assert!(trace.done.is_some());
    let events: Vec<_> = trace.events.iter().map(|event| event.event.clone()).collect();
    check_pairs(&events, true);
    let mut ids: Vec<_> = trace.effects.iter().map(|issued| &issued.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), trace.effects.len(), "ids are unique");
    for (order, issued) in trace.effects.iter().enumerate() {
        assert_eq!(issued.order, order as u64);
    }
    assert_eq!(trace, replay(bundle, &said, 1), "replay");
    assert_eq!(trace, replay(bundle, &said, 3), "replay in groups");
    assert_eq!(
        trace,
        replay(bundle, &said, usize::MAX),
        "replay in the largest groups"
    );
}

/// Statements by which every construct meets every other.
fn statement(depth: u32) -> BoxedStrategy<Node> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let leaf = prop_oneof![
        4 => (name(), 0..3_u32).prop_map(|(n, retry)| let_(n, session(&format!("S {n}")).retry(retry, Backoff::Linear))),
        2 => name().prop_map(|n| assign(n, add(list(vec![var(n)]), session("T")))),
        1 => name().prop_map(|n| session("U {a}").context(vec![(n, var(n))])),
        1 => Just(input("q", "Q? (yes/no)")),
        1 => Just(throw(Some("x"))),
        1 => Just(ret(text("r"))),
        1 => Just(output("out", text("{b}"))),
        1 => Just(arrow(vec![session("X"), session("Y")])),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let body = move || prop::collection::vec(statement(depth - 1), 0..3);
    let policy = || prop::sample::select(vec![Policy::FailFast, Policy::Continue, Policy::Ignore]);
    let strategy = prop::sample::select(vec![Strategy::All, Strategy::First, Strategy::Any]);
    prop_oneof![
        3 => leaf,
        2 => (strategy, policy(), body(), body()).prop_map(|(strategy, policy, a, b)| {
            joined(strategy, policy, vec![branch("a", do_(a)), do_(b), let_("c", session("Third"))])
        }),
        1 => body().prop_map(|b| parallel_for("a", var("b"), b)),
        1 => body().prop_map(|b| for_("a", list(vec![num(1.0), num(2.0)]), b)),
        1 => body().prop_map(|b| loop_(until(bin(BinaryOp::And, judge("done"), var("a"))), Some(2), b)),
        1 => (body(), body()).prop_map(|(a, b)| if_(judge("{a}"), a, Some(b))),
        1 => (body(), body()).prop_map(|(a, b)| choice("which", vec![("A", a), ("B", b)])),
        2 => (body(), prop::option::of(body()), prop::option::of(body())).prop_map(|(a, b, c)| try_(a, b, c)),
        1 => (body(), body()).prop_map(|(a, b)| pipe(list(vec![text("p"), text("q")]), vec![pmap(a), map(b)])),
        1 => body().prop_map(|b| pipe(var("a"), vec![filter(b), reduce(vec![session("R {acc}")])])),
        1 => Just(call("f", vec![var("a"), session("Arg")])),
        1 => Just(call_program("other", vec![named("topic", var("b"))])),
        1 => body().prop_map(|mut b| { b.push(break_()); repeat(num(2.0), Some("i"), b) }),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_is_a_function_of_what_was_said(
        body in prop::collection::vec(statement(3), 1..5),
        called in prop::collection::vec(statement(1), 1..4),
        other in prop::collection::vec(statement(1), 1..4),
        picks in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        // The called bodies call nothing, so that every program ends.
        let plain = |body: Vec<Node>| body.into_iter().filter(|n| !calls(n)).collect::<Vec<_>>();
        let entry = program(body).block(block("f", &["p", "q"], plain(called))).import("other", Some(1));
        let mut second = plain(other);
        second.insert(0, input("topic", "T?"));
        check(&bundle(vec![entry, program(second).namespace("o--ther")]), &picks);
    }
}

fn calls(node: &Node) -> bool {
    format!("{node:?}").contains("Call")
}

#[test]
fn the_spike_is_a_function_of_what_was_said() {
    for seed in 0..40_u32 {
        let picks: Vec<u8> = (0..80_u32)
            .map(|i| (seed.wrapping_mul(2_654_435_761).wrapping_add(i * 40_503) >> 7) as u8 % 250)
            .collect();
        check(&bundle_of_spike(), &picks);
    }
}

#[test]
fn a_long_computation_comes_in_several_steps_without_changing_anything() {
    let body = vec![
        let_("x", num(0.0)),
        repeat(num(20_000.0), None, vec![assign("x", add(var("x"), num(1.0)))]),
    ];
    let mut machine = Machine::start(bundle(vec![program(body)]), Default::default());
    assert_eq!(machine.step().state, StepState::Running);
    let mut trace = Trace::default();
    steps(&mut machine, &mut trace);
    assert_eq!(trace.done.unwrap().status, prose_model::RunStatus::Completed);
}

#[test]
fn two_nodes_with_one_id_still_have_different_effects() {
    let mut twice = program(vec![parallel(vec![session("A"), session("B")])]);
    let mut bundle = (*bundle(vec![twice.clone()])).clone();
    twice.body.clear();
    if let prose_model::Op::Parallel(p) = &mut bundle.programs[0].body[0].op {
        p.branches[1].id = p.branches[0].id.clone();
    }
    let mut machine = Machine::start(Arc::new(bundle), Default::default());
    let ids: Vec<_> = machine
        .step()
        .effects
        .into_iter()
        .map(|issued| issued.id.to_string())
        .collect();
    assert_eq!(ids, ["main/0.0", "main/0.0#2"]);
}

#[test]
fn a_machine_can_be_handed_to_another_thread() {
    fn sendable<T: Send + 'static>(_: &T) {}
    sendable(&Machine::start(bundle_of_spike(), Default::default()));
}

#[test]
fn ids_are_places_and_do_not_depend_on_the_order_of_outcomes() {
    let ids = |picks: &[u8]| {
        let (trace, _) = drive(&bundle_of_spike(), picks);
        let mut ids: Vec<_> = trace
            .effects
            .into_iter()
            .map(|issued| issued.id.to_string())
            .collect();
        ids.sort();
        ids
    };
    // Multiples of 4 choose another effect but the same kind of answer.
    let first = ids(&[0; 80]);
    for step in 1..12_u8 {
        let picks: Vec<u8> = (0..80_u8)
            .map(|i| i.wrapping_mul(step).wrapping_mul(4) % 248)
            .collect();
        assert_eq!(ids(&picks), first);
    }
}
