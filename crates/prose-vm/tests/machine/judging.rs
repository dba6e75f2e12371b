//! Judging: language.md, "Judging".

use prose_model::{Ask, BinaryOp, Decision, ErrorKind, Op, Value};

use crate::build::*;
use crate::harness::*;

#[test]
fn the_judge_gets_text_names_and_history() {
    let mut run = run(vec![
        let_("x", session("First")),
        if_(judge("is {x} good"), vec![session("Y")], None),
    ]);
    run.reply("First", "one");
    let request = run.judge();
    assert_eq!(show_text(&request.text), "is one good");
    assert_eq!(request.ask, Ask::Condition);
    assert_eq!(request.names.len(), 1);
    assert_eq!(request.names[0].value, Value::text("one"));
    assert_eq!(request.history.len(), 1);
    assert_eq!(
        (
            request.history[0].label.as_str(),
            request.history[0].summary.as_str()
        ),
        ("First", "one")
    );
    run.yes();
    assert_eq!(run.sessions(), ["Y"]);
}

#[test]
fn history_holds_sessions_of_blocks_that_ended_and_of_callers() {
    let f = block("f", &[], vec![session("In block"), if_(judge("q"), vec![], None)]);
    let mut run = run_program(
        program(vec![
            session("Before"),
            call("f", vec![]),
            if_(judge("after"), vec![], None),
        ])
        .block(f),
    );
    run.reply("Before", "1").reply("In block", "2");
    let labels = |run: &Run| {
        run.judge()
            .history
            .iter()
            .map(|h| h.label.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(&run), ["Before", "In block"]);
    run.no();
    assert_eq!(labels(&run), ["Before", "In block"]);
}

#[test]
fn a_loops_test_gets_the_earlier_verdicts_and_its_loop() {
    let mut run = run(vec![loop_(until(judge("done")), Some(5), vec![session("S {n}")])]);
    let Ask::Loop {
        until,
        test,
        frame,
        previous,
    } = &run.judge().ask
    else {
        panic!()
    };
    assert!(*until && *test == 0 && previous.is_empty());
    assert_eq!(frame.as_str(), "main/0");
    assert_eq!(run.pending(), ["judge main/0[0]>main/0.0"]);
    run.no().reply("S 0", "a");
    let Ask::Loop { test, previous, .. } = &run.judge().ask else {
        panic!()
    };
    assert_eq!((*test, previous.len()), (1, 1));
    assert_eq!(previous[0].decision, Decision::No);
    run.yes();
    assert_eq!(run.result(), "[a]");
}

#[test]
fn unsure_lets_loops_go_on() {
    let mut until_run = run(vec![loop_(until(judge("done")), Some(1), vec![session("S")])]);
    until_run.decide(Decision::Unsure);
    assert_eq!(until_run.sessions(), ["S"]);
    let mut while_run = run(vec![loop_(while_(judge("more")), Some(1), vec![session("S")])]);
    while_run.decide(Decision::Unsure);
    assert_eq!(while_run.sessions(), ["S"]);
    let mut negated = run(vec![loop_(
        while_(not(judge("done"))),
        Some(1),
        vec![session("S")],
    )]);
    negated.decide(Decision::Unsure);
    assert_eq!(negated.sessions(), ["S"]);
}

#[test]
fn unsure_is_false_for_if() {
    let branch = |cond| {
        let mut run = run(vec![let_(
            "x",
            if_(cond, vec![text("then")], Some(vec![text("else")])),
        )]);
        run.decide(Decision::Unsure);
        run.shown("x")
    };
    assert_eq!(branch(judge("q")), "else");
    assert_eq!(branch(not(judge("q"))), "else");
}

#[test]
fn no_progress_ends_a_loop() {
    for test in [
        until(judge("done")),
        while_(judge("more")),
        while_(not(judge("done"))),
    ] {
        let mut run = run(vec![let_("r", loop_(test, None, vec![session("S")]))]);
        run.decide(Decision::Unsure)
            .reply("S", "a")
            .decide(Decision::NoProgress);
        assert_eq!(run.shown("r"), "[a]");
    }
}

#[test]
fn mixed_conditions_ask_only_when_the_plain_side_leaves_it_open() {
    let mixed = |op, plain| run(vec![if_(bin(op, judge("q"), plain), vec![session("S")], None)]);
    assert_eq!(mixed(BinaryOp::And, no()).result(), "none");
    assert_eq!(mixed(BinaryOp::Or, yes()).sessions(), ["S"]);
    let mut open = mixed(BinaryOp::And, yes());
    open.yes();
    assert_eq!(open.sessions(), ["S"]);
    let mut both = run(vec![if_(
        bin(BinaryOp::Or, judge("a"), judge("b")),
        vec![session("S")],
        None,
    )]);
    both.no().yes();
    assert_eq!(both.sessions(), ["S"]);
}

#[test]
fn choice_takes_the_option_that_the_judge_names() {
    let options = vec![("Critical", vec![session("C")]), ("Minor", vec![session("M")])];
    let mut run = run(vec![let_("x", choice("severity", options))]);
    let Ask::Choice { options } = &run.judge().ask else {
        panic!()
    };
    assert_eq!(options, &["Critical", "Minor"]);
    run.decide(Decision::Option(" minor".into()));
    run.reply("M", "m");
    assert_eq!(run.shown("x"), "m");
}

#[test]
fn a_choice_that_the_judge_can_not_make_is_an_error() {
    for decision in [Decision::Unsure, Decision::Option("Other".into()), Decision::Yes] {
        let mut run = run(vec![choice("q", vec![("A", vec![session("A")])])]);
        run.decide(decision);
        assert!(run.error().starts_with("judge: the judge "), "{}", run.error());
    }
}

#[test]
fn a_failed_judge_is_an_error_that_can_be_caught() {
    let body = vec![try_(
        vec![if_(judge("q"), vec![], None)],
        Some(vec![let_("k", member(var("err"), "kind"))]),
        None,
    )];
    let mut run = run(body);
    let id = run.open[0].clone();
    run.resolve(&id, failed(ErrorKind::Backend, "no judge"));
    assert_eq!(run.shown("k"), "backend");
}

#[test]
fn a_discretion_as_a_value_is_judged() {
    let mut run = run(vec![let_("x", judge("the mood"))]);
    assert_eq!(run.judge().ask, Ask::Value);
    run.decide(Decision::Value(Value::text("sunny")));
    assert_eq!(run.shown("x"), "sunny");
    let mut unsure = self::run(vec![let_("x", judge("the mood"))]);
    unsure.decide(Decision::Unsure);
    assert_eq!(unsure.shown("x"), "null");
    assert_eq!(unsure.warnings().len(), 1);
}

#[test]
fn labels_of_options_are_interpolated() {
    let options = vec![
        ("Stay in {x}", vec![let_("r", num(1.0))]),
        ("Go", vec![let_("r", num(2.0))]),
    ];
    let mut run = run(vec![let_("x", text("Rome")), choice("where to", options)]);
    let Ask::Choice { options } = &run.judge().ask else {
        panic!()
    };
    assert_eq!(options, &["Stay in Rome", "Go"]);
    assert_eq!(run.pending(), ["judge main/1:which"], "a key of its own");
    run.decide(Decision::Option("stay in rome".into()));
    assert_eq!(run.shown("r"), "1");
}

#[test]
fn an_assertion_by_the_judge() {
    let mut run = run(vec![node(Op::Assert {
        cond: Box::new(judge("all well")),
        message: None,
    })]);
    assert_eq!(run.judge().ask, Ask::Condition);
    run.no();
    assert!(run.error().starts_with("assertion:"));
}

#[test]
fn no_progress_counts_whatever_the_rest_of_the_condition_says() {
    let test = until(bin(BinaryOp::Or, judge("done"), judge("enough")));
    let mut run = run(vec![loop_(test, Some(5), vec![session("S")]), session("After")]);
    run.decide(Decision::NoProgress).no();
    assert_eq!(run.sessions(), ["After"]);
}

#[test]
fn each_condition_of_a_test_is_told_its_own_verdicts() {
    let test = until(bin(BinaryOp::Or, judge("done"), judge("enough")));
    let mut run = run(vec![loop_(test, Some(5), vec![session("S")])]);
    run.no().decide(Decision::Unsure).reply("S", "a");
    let Ask::Loop { previous, .. } = &run.judge().ask else {
        panic!()
    };
    assert_eq!(previous.len(), 1);
    assert_eq!(previous[0].decision, Decision::No);
}

#[test]
fn the_option_that_is_written_just_so_goes_first() {
    let options = vec![("go", vec![text("small")]), ("Go", vec![text("large")])];
    let mut run = run(vec![let_("x", choice("where", options))]);
    run.decide(Decision::Option("Go".into()));
    assert_eq!(run.shown("x"), "large");
}
