//! Cancelling, `finally`, deadlines: language.md, "Execution"; and refused outcomes.

use prose_model::{Effect, Policy, RunStatus, Strategy, Value};
use prose_vm::ResolveError;

use crate::build::*;
use crate::harness::*;

fn guarded(label: &str, cleanup: &str) -> prose_model::Node {
    try_(
        vec![session(label)],
        Some(vec![let_("caught", yes())]),
        Some(vec![session(cleanup)]),
    )
}
fn scope(run: &Run) -> prose_model::CancelRequest {
    let id = run
        .open
        .iter()
        .find(|id| matches!(run.get(id).effect, Effect::CancelScope(_)))
        .unwrap();
    match &run.get(id).effect {
        Effect::CancelScope(request) => request.clone(),
        _ => unreachable!(),
    }
}
fn cancelled(run: &Run) {
    assert_eq!(run.completion().status, RunStatus::Cancelled);
    assert!(
        !run.bound().iter().any(|b| b.starts_with("caught")),
        "catch never sees cancellation"
    );
}

#[test]
fn a_cancelled_run_ends_when_its_effects_have_stopped() {
    let mut run = run(vec![
        output("o", text("v")),
        parallel(vec![session("A"), session("B")]),
    ]);
    run.cancel();
    assert_eq!(run.pending(), ["cancel cancel"]);
    assert_eq!(scope(&run).effects.len(), 2);
    assert!(!scope(&run).finally);
    run.stopped();
    cancelled(&run);
    assert_eq!(run.completion().outputs.len(), 1);
}

#[test]
fn finally_runs_on_cancel_after_the_effects_have_stopped() {
    let mut run = run(vec![guarded("Work", "Clean up"), session("Never")]);
    run.cancel();
    assert!(scope(&run).finally);
    assert!(run.sessions().is_empty());
    run.stopped();
    assert_eq!(run.sessions(), ["Clean up"]);
    run.reply("Clean up", "ok");
    cancelled(&run);
}

#[test]
fn a_second_cancel_changes_nothing() {
    let mut run = run(vec![guarded("Work", "Clean up")]);
    run.cancel().cancel().stopped();
    assert_eq!(run.sessions(), ["Clean up"]);
    run.cancel().reply("Clean up", "ok");
    cancelled(&run);
}

#[test]
fn an_error_in_finally_does_not_undo_a_cancel() {
    let inner = guarded("Work", "Clean up");
    let mut run = run(vec![try_(vec![inner], Some(vec![let_("caught", yes())]), None)]);
    run.cancel().stopped();
    run.fail("Clean up", prose_model::ErrorKind::Backend, "down");
    cancelled(&run);
}

#[test]
fn errors_inside_finally_can_be_caught_there() {
    let clean = vec![try_(vec![session("C1")], Some(vec![session("C2")]), None)];
    let mut run = run(vec![try_(vec![session("Work")], None, Some(clean))]);
    run.cancel().stopped();
    run.fail("C1", prose_model::ErrorKind::Backend, "down")
        .reply("C2", "ok");
    cancelled(&run);
}

#[test]
fn a_finally_that_runs_already_is_left_to_end() {
    let mut run = run(vec![guarded("Work", "Clean up"), session("Never")]);
    run.reply("Work", "w").cancel();
    assert_eq!(scope(&run).effects, []);
    assert!(scope(&run).finally);
    run.stopped();
    assert_eq!(run.sessions(), ["Clean up"]);
    run.reply("Clean up", "ok");
    cancelled(&run);
}

#[test]
fn parallel_work_inside_finally_is_left_to_end_too() {
    let clean = vec![parallel(vec![session("C1"), session("C2")]), session("C3")];
    let mut run = run(vec![
        try_(vec![session("Work")], None, Some(clean)),
        session("Never"),
    ]);
    run.reply("Work", "w").cancel().stopped();
    run.reply("C1", "1").reply("C2", "2").reply("C3", "3");
    cancelled(&run);
}

#[test]
fn the_deadline_ends_finally_bodies() {
    let mut run = run(vec![guarded("Work", "Clean up")]);
    run.cancel().stopped();
    run.deadline("cancel");
    assert_eq!(run.pending(), ["cancel cancel:kill"]);
    assert!(!scope(&run).finally);
    run.stopped();
    cancelled(&run);
}

#[test]
fn a_late_or_unknown_deadline_changes_nothing() {
    let mut run = run(vec![session("A")]);
    run.deadline("cancel").deadline("nope");
    assert_eq!(run.sessions(), ["A"]);
    run.reply("A", "a").deadline("cancel").cancel();
    assert_eq!(run.result(), "a");
}

#[test]
fn a_join_waits_for_the_finally_of_its_losers() {
    let race = joined(
        Strategy::First,
        Policy::FailFast,
        vec![session("Fast"), guarded("Slow", "Clean up")],
    );
    let mut run = run(vec![race, session("After")]);
    run.reply("Fast", "f");
    assert!(scope(&run).finally);
    run.stopped();
    assert_eq!(run.sessions(), ["Clean up"]);
    run.reply("Clean up", "ok");
    assert_eq!(run.sessions(), ["After"]);
    assert_eq!(
        run.shown("caught"),
        "null",
        "what a loser never got to bind is null"
    );
}

#[test]
fn losers_clean_up_at_most_until_the_deadline() {
    let race = joined(
        Strategy::First,
        Policy::FailFast,
        vec![session("Fast"), guarded("Slow", "Clean up")],
    );
    let mut run = run(vec![race, session("After")]);
    run.reply("Fast", "f")
        .stopped()
        .deadline("main/0:cancel")
        .stopped();
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn a_cancel_of_the_run_reaches_a_join_that_waits_for_losers() {
    let race = joined(
        Strategy::First,
        Policy::FailFast,
        vec![session("Fast"), guarded("Slow", "Clean up")],
    );
    let mut run = run(vec![try_(
        vec![race, session("Never")],
        None,
        Some(vec![session("Outer")]),
    )]);
    run.reply("Fast", "f");
    run.cancel();
    assert_eq!(run.pending(), ["cancel main/0.0:cancel", "cancel cancel"]);
    run.stopped().stopped();
    assert_eq!(run.sessions(), ["Clean up"]);
    run.reply("Clean up", "ok");
    assert_eq!(run.sessions(), ["Outer"]);
    run.reply("Outer", "ok");
    cancelled(&run);
}

#[test]
fn cancelling_reaches_nested_branches_and_frames() {
    let f = block(
        "f",
        &[],
        vec![parallel(vec![guarded("A", "CA"), guarded("B", "CB")])],
    );
    let body = vec![parallel_for(
        "x",
        list(vec![num(1.0), num(2.0)]),
        vec![call("f", vec![])],
    )];
    let mut run = run_program(program(body).block(f));
    assert_eq!(run.sessions().len(), 4);
    run.cancel();
    assert_eq!(scope(&run).effects.len(), 4);
    run.stopped();
    assert_eq!(run.sessions(), ["CA", "CB", "CA", "CB"]);
    run.finish(|_| None);
    cancelled(&run);
}

#[test]
fn a_wait_and_a_question_are_cancelled_too() {
    let body = vec![parallel(vec![
        session("S").retry(1, prose_model::Backoff::Linear),
        if_(judge("q"), vec![], None),
        input("i", "I?"),
    ])];
    let mut run = run(body);
    run.fail("S", prose_model::ErrorKind::Backend, "down").cancel();
    assert_eq!(scope(&run).effects.len(), 3);
    run.stopped();
    cancelled(&run);
}

#[test]
fn branches_that_wait_for_room_are_dropped_on_cancel() {
    let mut run = run(vec![limited(1, vec![session("A"), session("B")])]);
    run.cancel().stopped();
    cancelled(&run);
    assert_eq!(run.effects.len(), 2);
}

#[test]
fn a_run_can_be_cancelled_while_its_leading_inputs_wait() {
    let mut run = run(vec![input("a", "A?"), input("b", "B?"), session("S")]);
    run.answer("a", "1").cancel().stopped();
    cancelled(&run);
}

#[test]
fn a_run_ends_only_when_its_cancel_scopes_are_answered() {
    let mut run = run(vec![guarded("Work", "Clean up")]);
    run.reply("Work", "w").cancel().reply("Clean up", "ok");
    assert_eq!(run.done, None);
    run.stopped();
    cancelled(&run);
}

// ---- refused outcomes ----

#[test]
fn an_unknown_id_is_refused() {
    let mut run = run(vec![session("A")]);
    let refused = run.machine.resolve(&"nope".into(), replied(Value::Null));
    assert_eq!(refused, Err(ResolveError::Unknown("nope".into())));
}

#[test]
fn a_second_answer_is_refused_also_before_the_next_step() {
    let mut run = run(vec![session("A")]);
    let id = run.open[0].clone();
    run.machine.resolve(&id, replied(Value::text("1"))).unwrap();
    let again = run.machine.resolve(&id, replied(Value::text("2")));
    assert_eq!(again, Err(ResolveError::AlreadyResolved(id.clone())));
    run.open.clear();
    run.step();
    let late = run.machine.resolve(&id, replied(Value::text("3")));
    assert_eq!(late, Err(ResolveError::AlreadyResolved(id)));
    assert_eq!(run.result(), "1");
}

#[test]
fn an_outcome_of_the_wrong_kind_is_refused() {
    let mut run = run(vec![session("A")]);
    let id = run.open[0].clone();
    let refused = run.machine.resolve(&id, prose_model::Outcome::Slept).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the effect main/0 is of kind session; an outcome of kind slept can't answer it"
    );
    run.reply("A", "still open");
    assert_eq!(run.result(), "still open");
}

#[test]
fn a_race_goes_on_only_when_its_cancel_scope_is_answered_too() {
    let loser = try_(vec![session("Fails")], None, Some(vec![session("Clean up")]));
    let race = joined(Strategy::First, Policy::Continue, vec![loser, session("Wins")]);
    let mut run = run(vec![race, session("After")]);
    run.fail("Fails", prose_model::ErrorKind::Backend, "down");
    run.reply("Wins", "ok");
    // It is in `finally` already, so that there is nothing to stop but a deadline to keep.
    assert!(scope(&run).effects.is_empty() && scope(&run).finally);
    run.reply("Clean up", "ok");
    assert!(run.sessions().is_empty());
    run.stopped();
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn effects_are_stopped_in_the_order_in_which_they_were_asked_for() {
    let first = do_(vec![session("A1"), session("A2")]);
    let mut run = run(vec![parallel(vec![first, session("B")])]);
    run.reply("A1", "ok");
    let asked = run.open.clone();
    assert_eq!(run.sessions(), ["B", "A2"]);
    run.cancel();
    assert_eq!(scope(&run).effects, asked);
}
