//! Loops, conditions: language.md, "Execution".

use prose_model::{BinaryOp, ConstructKind, Event, For, Op};

use crate::build::*;
use crate::harness::*;

#[test]
fn for_goes_through_items_in_order_and_gives_the_last_values() {
    let mut run = run(vec![let_(
        "r",
        for_("x", list(vec![text("a"), text("b")]), vec![session("S {x}")]),
    )]);
    assert_eq!(run.pending(), ["session main/0.0[0]>main/0.0.1"]);
    run.reply("S a", "1");
    assert_eq!(run.pending(), ["session main/0.0[1]>main/0.0.1"]);
    run.reply("S b", "2");
    assert_eq!(run.shown("r"), "[1, 2]");
}

#[test]
fn the_index_of_for_starts_at_0() {
    let f = For {
        item: "x".into(),
        index: Some("i".into()),
        source: list(vec![text("a"), text("b")]),
        parallel: None,
        body: vec![text("{i}{x}")],
    };
    assert_eq!(
        run(vec![let_("r", node(Op::For(Box::new(f))))]).shown("r"),
        "[0a, 1b]"
    );
}

#[test]
fn collections_are_lists_records_text_that_lists_and_null() {
    let over = |source| run(vec![let_("r", for_("x", source, vec![var("x")]))]);
    assert_eq!(
        over(rec(vec![("a", num(1.0)), ("b", num(2.0))])).shown("r"),
        "[1, 2]"
    );
    assert_eq!(over(text("1. a\n2. b")).shown("r"), "[a, b]");
    let null = over(null());
    assert_eq!(null.shown("r"), "[]");
    assert_eq!(null.warnings().len(), 1);
    assert_eq!(over(num(3.0)).error(), "type: 3 is no collection");
}

#[test]
fn repeat_counts_from_0() {
    assert_eq!(
        run(vec![let_("r", repeat(num(3.0), Some("i"), vec![var("i")]))]).shown("r"),
        "[0, 1, 2]"
    );
    assert_eq!(
        run(vec![let_("r", repeat(text("2"), None, vec![num(1.0)]))]).shown("r"),
        "[1, 1]"
    );
    assert_eq!(
        run(vec![let_("r", repeat(num(-1.0), None, vec![num(1.0)]))]).shown("r"),
        "[]"
    );
}

#[test]
fn a_loop_is_tested_before_the_first_iteration() {
    assert_eq!(
        run(vec![let_("r", loop_(until(yes()), None, vec![session("S")]))]).shown("r"),
        "[]"
    );
    assert_eq!(
        run(vec![let_("r", loop_(while_(no()), None, vec![session("S")]))]).shown("r"),
        "[]"
    );
}

#[test]
fn a_loop_goes_on_by_its_condition() {
    let body = vec![
        let_("k", num(0.0)),
        let_(
            "r",
            loop_(
                while_(bin(BinaryOp::Lt, var("k"), num(3.0))),
                None,
                vec![assign("k", add(var("k"), num(1.0)))],
            ),
        ),
    ];
    assert_eq!(run(body).shown("r"), "[1, 2, 3]");
}

#[test]
fn max_ends_a_loop_normally() {
    let mut run = run(vec![let_(
        "r",
        loop_(until(judge("done")), Some(2), vec![session("S {n}")]),
    )]);
    run.no().reply("S 0", "a").no().reply("S 1", "b");
    assert_eq!(run.shown("r"), "[a, b]");
    assert_eq!(run.completion().status, prose_model::RunStatus::Completed);
}

#[test]
fn a_loop_with_max_only_runs_so_often() {
    assert_eq!(
        run(vec![let_("r", loop_(None, Some(3), vec![var("n")]))]).shown("r"),
        "[0, 1, 2]"
    );
}

#[test]
fn a_loop_with_neither_stops_at_the_safety_limit_with_an_error() {
    let run = run(vec![
        let_("k", num(0.0)),
        loop_(None, None, vec![assign("k", add(var("k"), num(1.0)))]),
    ]);
    assert_eq!(
        run.error(),
        "loop_limit: a loop with neither a condition nor max: stopped after 1000 iterations"
    );
    assert_eq!(run.shown("k"), "1000");
}

#[test]
fn a_loop_with_a_condition_may_run_longer() {
    let cond = bin(BinaryOp::Lt, var("k"), num(1_500.0));
    let run = run(vec![
        let_("k", num(0.0)),
        loop_(while_(cond), None, vec![assign("k", add(var("k"), num(1.0)))]),
    ]);
    assert_eq!(run.shown("k"), "1500");
}

#[test]
fn a_program_that_only_spins_is_stopped() {
    let spin = loop_(while_(yes()), None, vec![let_("x", num(1.0))]);
    // Catching the error and spinning on does not help it.
    let body = vec![loop_(
        while_(yes()),
        None,
        vec![try_(vec![spin], Some(vec![let_("y", num(1.0))]), None)],
    )];
    let mut machine = prose_vm::Machine::start(bundle(vec![program(body)]), Default::default());
    let done = loop {
        match machine.step().state {
            prose_vm::StepState::Running => {}
            prose_vm::StepState::Waiting => panic!("nothing was asked"),
            prose_vm::StepState::Done(done) => break done,
        }
    };
    assert!(
        done.error
            .unwrap()
            .message
            .starts_with("the program goes on and on")
    );
}

#[test]
fn break_leaves_the_nearest_loop() {
    let run = run(vec![let_(
        "r",
        for_(
            "x",
            list(vec![num(1.0), num(2.0)]),
            vec![
                loop_(
                    None,
                    Some(5),
                    vec![
                        if_(eq(var("n"), num(1.0)), vec![break_()], None),
                        let_("seen", var("n")),
                    ],
                ),
                var("x"),
            ],
        ),
    )]);
    assert_eq!(run.shown("r"), "[1, 2]");
    assert_eq!(run.shown("seen"), "0");
}

#[test]
fn break_outside_a_loop_is_an_error() {
    assert_eq!(run(vec![break_()]).error(), "type: break outside a loop");
    let p = program(vec![for_("x", list(vec![null()]), vec![call("f", vec![])])]);
    assert_eq!(
        run_program(p.block(block("f", &[], vec![break_()]))).error(),
        "type: break outside a loop"
    );
}

#[test]
fn the_first_condition_that_holds_decides() {
    let arms = |a, b| {
        let arms = vec![(a, vec![text("A")]), (b, vec![text("B")])];
        run(vec![let_("x", if_else(arms, Some(vec![text("E")])))]).shown("x")
    };
    assert_eq!(arms(yes(), yes()), "A");
    assert_eq!(arms(no(), yes()), "B");
    assert_eq!(arms(no(), no()), "E");
    assert_eq!(run(vec![let_("x", if_(no(), vec![], None))]).shown("x"), "null");
}

#[test]
fn later_conditions_are_not_asked_when_one_holds() {
    let arms = vec![
        (judge("first"), vec![session("A")]),
        (judge("second"), vec![session("B")]),
    ];
    let mut run = run(vec![if_else(arms, None)]);
    run.no();
    assert_eq!(show_text(&run.judge().text), "second");
    run.yes();
    assert_eq!(run.sessions(), ["B"]);
}

#[test]
fn do_gives_its_last_value() {
    assert_eq!(
        run(vec![let_("x", do_(vec![num(1.0), num(2.0)]))]).shown("x"),
        "2"
    );
}

#[test]
fn constructs_say_what_they_are() {
    let run = run(vec![
        for_("x", list(vec![num(1.0)]), vec![]),
        loop_(None, Some(2), vec![]),
        repeat(num(1.0), None, vec![]),
    ]);
    let kinds: Vec<_> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ConstructStarted { kind, total, .. } => Some((*kind, *total)),
            _ => None,
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (ConstructKind::For, Some(1)),
            (ConstructKind::Loop, Some(2)),
            (ConstructKind::Repeat, Some(1))
        ]
    );
}

#[test]
fn a_loop_in_a_loop_sees_the_outer_one_s_variables() {
    let inner = for_("j", list(vec![num(3.0)]), vec![let_("x", text("{i} {j}"))]);
    let run = run(vec![for_("i", list(vec![num(2.0)]), vec![inner])]);
    assert_eq!(run.shown("x"), "2 3");
}
