//! Joins: strategies × policies, losers, limits: language.md, "Execution".

use prose_model::{Effect, ErrorKind, Node, ParallelFor, Policy, Strategy};

use crate::build::*;
use crate::harness::*;

const POLICIES: [Policy; 3] = [Policy::FailFast, Policy::Continue, Policy::Ignore];

fn abc() -> Vec<Node> {
    vec![
        branch("a", session("A")),
        branch("b", session("B")),
        branch("c", session("C")),
    ]
}
/// `a`, `b`, `c` by a join, then `after`.
fn race(join: Node) -> Run {
    run(vec![let_("r", join), session("After")])
}
fn down(run: &mut Run, label: &str) {
    run.fail(label, ErrorKind::Backend, &format!("{label} down"));
}

#[test]
fn all_branches_start_at_once_and_are_awaited() {
    let mut run = race(parallel(abc()));
    assert_eq!(run.sessions(), ["A", "B", "C"]);
    run.reply("C", "3").reply("A", "1");
    assert_eq!(run.shown("c"), "3", "branch writes are immediate");
    run.reply("B", "2");
    assert_eq!(run.shown("r"), "{a: 1, b: 2, c: 3}");
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn branches_without_names_give_a_list_in_branch_order() {
    let mut run = race(parallel(vec![session("A"), branch("b", session("B"))]));
    run.reply("B", "2").reply("A", "1");
    assert_eq!(run.shown("r"), "[1, 2]");
}

#[test]
fn all_fail_fast_cancels_the_rest_and_raises() {
    let mut run = race(parallel(abc()));
    run.reply("A", "1");
    down(&mut run, "B");
    assert_eq!(run.pending(), ["cancel main/0.0:cancel"]);
    let Effect::CancelScope(request) = &run.get(&run.open[0]).effect else {
        panic!()
    };
    assert_eq!(request.effects.len(), 1);
    assert_eq!(request.effects[0].as_str(), "main/0.0.2.0");
    assert!(!request.finally);
    run.stopped();
    assert_eq!(run.error(), "backend: B down");
}

#[test]
fn all_continue_binds_errors_warns_once_and_raises_nothing() {
    let mut run = race(joined(Strategy::All, Policy::Continue, abc()));
    down(&mut run, "B");
    down(&mut run, "A");
    assert_eq!(run.sessions(), ["C"]);
    run.reply("C", "3");
    assert_eq!(run.shown("r"), "{a: error(A down), b: error(B down), c: 3}");
    assert_eq!(run.shown("a"), "error(A down)");
    assert_eq!(
        run.warnings(),
        ["branches-failed: failed and went on: a (A down); b (B down)"]
    );
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn all_ignore_is_the_same_without_the_warning() {
    let mut run = race(joined(Strategy::All, Policy::Ignore, abc()));
    down(&mut run, "A");
    down(&mut run, "B");
    down(&mut run, "C");
    assert_eq!(
        run.shown("r"),
        "{a: error(A down), b: error(B down), c: error(C down)}"
    );
    assert!(run.warnings().is_empty());
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn first_success_wins_under_every_policy() {
    for policy in POLICIES {
        let mut run = race(joined(Strategy::First, policy, abc()));
        run.reply("B", "2");
        assert_eq!(run.pending(), ["cancel main/0.0:cancel"]);
        run.stopped();
        assert_eq!(run.shown("r"), "{a: null, b: 2, c: null}");
        assert_eq!((run.shown("a"), run.shown("c")), ("null".into(), "null".into()));
        assert_eq!(run.sessions(), ["After"]);
    }
}

#[test]
fn first_failure_decides_under_fail_fast_and_ignore() {
    let mut fast = race(joined(Strategy::First, Policy::FailFast, abc()));
    down(&mut fast, "B");
    fast.stopped();
    assert_eq!(fast.error(), "backend: B down");
    let mut ignore = race(joined(Strategy::First, Policy::Ignore, abc()));
    down(&mut ignore, "B");
    ignore.stopped();
    assert_eq!(ignore.shown("r"), "{a: null, b: error(B down), c: null}");
    assert_eq!(ignore.sessions(), ["After"]);
}

#[test]
fn first_under_continue_waits_for_a_success() {
    let mut run = race(joined(Strategy::First, Policy::Continue, abc()));
    down(&mut run, "A");
    run.reply("C", "3").stopped();
    assert_eq!(run.shown("r"), "{a: null, b: null, c: 3}");
}

#[test]
fn first_under_continue_goes_on_when_no_branch_succeeds() {
    let mut none = race(joined(Strategy::First, Policy::Continue, abc()));
    for label in ["A", "B", "C"] {
        down(&mut none, label);
    }
    assert_eq!(
        none.shown("r"),
        "{a: error(A down), b: error(B down), c: error(C down)}"
    );
    assert_eq!(
        none.warnings(),
        ["branches-failed: failed and went on: a (A down); b (B down); c (C down)"]
    );
    assert_eq!(none.sessions(), ["After"]);
}

#[test]
fn any_needs_its_count_of_successes_under_every_policy() {
    for policy in POLICIES {
        let mut run = race(any_of(2, policy, abc()));
        down(&mut run, "A");
        assert_eq!(run.sessions(), ["B", "C"]);
        run.reply("C", "3").reply("B", "2");
        assert_eq!(run.shown("r"), "{a: null, b: 2, c: 3}");
        assert_eq!(run.sessions(), ["After"]);
    }
}

#[test]
fn losers_of_a_race_are_null_whether_they_fail_before_or_after_its_end() {
    for policy in POLICIES {
        let mut before = race(any_of(1, policy, abc()));
        down(&mut before, "A");
        before.reply("B", "2").stopped();
        let mut after = race(any_of(1, policy, abc()));
        after.reply("B", "2").stopped();
        for run in [&before, &after] {
            assert_eq!(run.shown("r"), "{a: null, b: 2, c: null}", "{policy:?}");
            assert_eq!(run.shown("a"), "null");
        }
        let reported = before.warnings().iter().any(|line| line.contains("a (A down)"));
        assert_eq!(reported, policy == Policy::Continue, "{policy:?}");
    }
}

#[test]
fn any_cancels_what_is_left_once_it_is_met() {
    let mut run = race(any_of(2, Policy::FailFast, abc()));
    run.reply("A", "1").reply("C", "3").stopped();
    assert_eq!(run.shown("r"), "{a: 1, b: null, c: 3}");
}

#[test]
fn any_that_can_not_be_met_is_an_error() {
    for policy in [Policy::FailFast, Policy::Continue] {
        let mut run = race(any_of(2, policy, abc()));
        down(&mut run, "A");
        down(&mut run, "B");
        run.stopped();
        assert_eq!(
            run.error(),
            "join: 2 of 3 branches had to succeed: a (A down); b (B down)"
        );
    }
    assert_eq!(
        race(any_of(4, Policy::FailFast, abc())).error(),
        "join: 4 of 3 branches had to succeed"
    );
}

#[test]
fn any_that_can_not_be_met_goes_on_under_ignore() {
    let mut run = race(any_of(2, Policy::Ignore, abc()));
    down(&mut run, "A");
    down(&mut run, "B");
    assert_eq!(run.sessions(), ["C"]);
    run.reply("C", "3");
    assert_eq!(run.shown("r"), "{a: error(A down), b: error(B down), c: 3}");
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn the_winner_is_the_first_outcome_handed_in() {
    let mut run = race(joined(Strategy::First, Policy::FailFast, abc()));
    let ids = run.open.clone();
    run.machine
        .resolve(&ids[2], replied(prose_model::Value::text("3")))
        .unwrap();
    run.machine
        .resolve(&ids[0], replied(prose_model::Value::text("1")))
        .unwrap();
    run.step();
    run.stopped();
    assert_eq!(run.shown("r"), "{a: null, b: null, c: 3}");
}

#[test]
fn outcomes_of_losers_are_accepted_and_ignored() {
    let mut run = race(joined(Strategy::First, Policy::FailFast, abc()));
    let loser = run.open[2].clone();
    run.reply("A", "1");
    run.machine
        .resolve(&loser, replied(prose_model::Value::text("late")))
        .unwrap();
    run.step();
    run.stopped();
    assert_eq!(run.shown("c"), "null");
}

#[test]
fn what_a_loser_had_bound_stands_and_the_rest_is_null() {
    let slow = do_(vec![let_("early", session("B1")), let_("late", session("B2"))]);
    let mut run = run(vec![
        joined(Strategy::First, Policy::FailFast, vec![session("A"), slow]),
        let_("x", text("{early}")),
        let_("y", var("late")),
    ]);
    run.reply("B1", "kept").reply("A", "1").stopped();
    assert_eq!((run.shown("x"), run.shown("y")), ("kept".into(), "null".into()));
}

#[test]
fn names_of_losers_are_null_in_every_round() {
    let race = joined(
        Strategy::First,
        Policy::FailFast,
        vec![branch("a", session("A {i}")), branch("b", session("B {i}"))],
    );
    let mut run = run(vec![repeat(
        num(2.0),
        Some("i"),
        vec![race, let_("seen", list(vec![var("a"), var("b")]))],
    )]);
    run.reply("A 0", "1").stopped().reply("B 1", "2").stopped();
    assert_eq!(run.shown("seen"), "[null, 2]");
}

#[test]
fn max_limits_how_many_run_at_once() {
    let mut run = race(limited(2, abc()));
    assert_eq!(run.sessions(), ["A", "B"]);
    run.reply("B", "2");
    assert_eq!(run.sessions(), ["A", "C"]);
    run.reply("C", "3").reply("A", "1");
    assert_eq!(run.shown("r"), "{a: 1, b: 2, c: 3}");
}

#[test]
fn branches_that_were_not_started_never_are() {
    let mut run = race(limited(1, abc()));
    down(&mut run, "A");
    assert_eq!(run.error(), "backend: A down");
    assert_eq!(run.effects.len(), 1);
}

#[test]
fn parallel_for_follows_the_same_rules() {
    let items = || list(vec![text("a"), text("b"), text("c")]);
    let body = || vec![session("S {x}")];
    let modifiers = ParallelFor {
        policy: Policy::Continue,
        max: boxed(num(2.0)),
        ..ParallelFor::default()
    };
    let mut run = run(vec![let_(
        "r",
        parallel_for_with("x", items(), modifiers, body()),
    )]);
    assert_eq!(run.sessions(), ["S a", "S b"]);
    down(&mut run, "S b");
    assert_eq!(run.sessions(), ["S a", "S c"]);
    run.reply("S c", "3").reply("S a", "1");
    assert_eq!(run.shown("r"), "[1, error(S b down), 3]");
    assert_eq!(
        run.warnings(),
        ["branches-failed: failed and went on: item 2 (S b down)"]
    );
    assert_eq!(
        self::run(vec![let_("r", parallel_for("x", list(vec![]), body()))]).shown("r"),
        "[]"
    );
}

#[test]
fn break_in_parallel_for_ends_it_and_cancels_the_rest() {
    let body = vec![
        session("S {x}"),
        if_(eq(var("x"), text("b")), vec![break_()], None),
        text("{x} done"),
    ];
    let items = list(vec![text("a"), text("b"), text("c")]);
    let mut run = run(vec![let_("r", parallel_for("x", items, body))]);
    run.reply("S a", "1").reply("S b", "2").stopped();
    assert_eq!(run.shown("r"), "[a done, null, null]");
}

#[test]
fn output_in_a_branch_leaves_the_block_and_cancels_its_siblings() {
    let race = parallel(vec![session("A"), do_(vec![session("B"), ret(text("out"))])]);
    let f = block(
        "f",
        &[],
        vec![repeat(num(2.0), None, vec![race]), let_("never", no())],
    );
    let mut run = run_program(program(vec![let_("x", call("f", vec![]))]).block(f));
    run.reply("B", "2").stopped();
    assert_eq!(run.shown("x"), "out");
}

#[test]
fn break_in_a_branch_leaves_the_loop_around() {
    let race = parallel(vec![session("A"), do_(vec![session("B"), break_()])]);
    let mut run = run(vec![let_("r", repeat(num(5.0), None, vec![race]))]);
    run.reply("B", "2").stopped();
    assert_eq!(run.shown("r"), "[]");
}

#[test]
fn a_caught_failure_does_not_fail_its_branch() {
    let safe = try_(vec![session("A")], Some(vec![text("recovered")]), None);
    let mut run = race(parallel(vec![branch("a", safe), branch("b", session("B"))]));
    down(&mut run, "A");
    run.reply("B", "2");
    assert_eq!(run.shown("r"), "{a: recovered, b: 2}");
}

#[test]
fn the_binding_of_a_branch_is_its_name() {
    let run = race(parallel(abc()));
    let target = &run.session("B").binding;
    assert_eq!(
        (target.binding.name.as_str(), target.bind_kind),
        ("b", prose_model::BindKind::Branch)
    );
}

#[test]
fn what_a_sibling_has_bound_stands_when_a_branch_fails() {
    let fails = do_(vec![session("Fails"), let_("n", text("late"))]);
    let binds = do_(vec![let_("n", text("kept"))]);
    let mut run = run(vec![
        joined(Strategy::All, Policy::Continue, vec![fails, binds]),
        let_("x", var("n")),
    ]);
    run.fail("Fails", ErrorKind::Backend, "down");
    assert_eq!(run.shown("x"), "kept");
}

#[test]
fn a_join_that_raises_clears_what_an_earlier_round_has_left() {
    let branch = do_(vec![session("S {item}"), let_("n", var("item"))]);
    let round = try_(
        vec![parallel(vec![branch])],
        Some(vec![let_("x", var("n"))]),
        None,
    );
    let mut run = run(vec![
        let_("x", text("untouched")),
        for_("item", list(vec![num(1.0), num(2.0)]), vec![round]),
    ]);
    run.reply("S 1", "ok");
    assert_eq!(run.shown("n"), "1");
    run.fail("S 2", ErrorKind::Backend, "down");
    assert_eq!(run.shown("x"), "null");
}
