//! Pipelines: language.md, "Execution".

use prose_model::{Op, Stage};

use crate::build::*;
use crate::harness::*;

fn xyz() -> prose_model::Node {
    list(vec![text("x"), text("y"), text("z")])
}

#[test]
fn map_goes_in_order_and_gives_the_last_values() {
    let mut run = run(vec![let_("r", pipe(xyz(), vec![map(vec![session("M {item}")])]))]);
    assert_eq!(run.sessions(), ["M x"]);
    assert_eq!(run.pending(), ["session main/0.0|0[0]>main/0.0.1"]);
    run.finish(|_| None);
    assert_eq!(run.shown("r"), "[re: M x, re: M y, re: M z]");
}

#[test]
fn filter_keeps_items_with_a_true_body() {
    let mut run = run(vec![let_(
        "r",
        pipe(xyz(), vec![filter(vec![session("Keep {item}?")])]),
    )]);
    run.reply("Keep x?", "yes, keep")
        .reply("Keep y?", "No")
        .reply("Keep z?", "hard to say");
    assert_eq!(run.pending().len(), 1);
    run.decoded(prose_model::Value::Bool(true));
    assert_eq!(run.shown("r"), "[x, z]");
}

#[test]
fn filter_by_a_discretion_asks_the_judge_a_condition() {
    let mut run = run(vec![let_(
        "r",
        pipe(xyz(), vec![filter(vec![judge("{item} is good")])]),
    )]);
    assert_eq!(run.judge().ask, prose_model::Ask::Condition);
    run.yes().decide(prose_model::Decision::Unsure).no();
    assert_eq!(run.shown("r"), "[x]");
}

#[test]
fn reduce_starts_from_the_first_item() {
    let fold = || vec![reduce(vec![text("({acc}{item})")])];
    assert_eq!(run(vec![let_("r", pipe(xyz(), fold()))]).shown("r"), "((xy)z)");
    assert_eq!(
        run(vec![let_("r", pipe(list(vec![]), fold()))]).shown("r"),
        "null"
    );
    assert_eq!(
        run(vec![let_("r", pipe(list(vec![text("one")]), fold()))]).shown("r"),
        "one"
    );
}

#[test]
fn pmap_runs_items_at_once_as_frames() {
    let mut run = run(vec![let_(
        "r",
        pipe(xyz(), vec![pmap(vec![let_("v", session("P {item}"))])]),
    )]);
    assert_eq!(run.sessions(), ["P x", "P y", "P z"]);
    assert_eq!(run.session("P y").binding.binding.execution_id, Some(2));
    run.reply("P z", "3").reply("P x", "1").reply("P y", "2");
    assert_eq!(run.shown("r"), "[1, 2, 3]");
}

#[test]
fn stages_run_left_to_right() {
    let stages = vec![
        filter(vec![not(eq(var("item"), text("y")))]),
        map(vec![text("{item}!")]),
        reduce(vec![add(var("acc"), var("item"))]),
    ];
    assert_eq!(run(vec![let_("r", pipe(xyz(), stages))]).shown("r"), "x!z!");
}

#[test]
fn chunks_cuts_lists() {
    let chunks = |n: f64| {
        run(vec![let_(
            "r",
            pipe(xyz(), vec![Stage::Chunks(Box::new(num(n)))]),
        )])
        .shown("r")
    };
    assert_eq!(chunks(2.0), "[[x, y], [z]]");
    assert_eq!(chunks(0.0), "[[x], [y], [z]]");
}

#[test]
fn output_yields_the_item() {
    let body = || {
        vec![
            if_(eq(var("item"), text("y")), vec![ret(text("early"))], None),
            text("late"),
        ]
    };
    assert_eq!(
        run(vec![let_("r", pipe(xyz(), vec![map(body())]))]).shown("r"),
        "[late, early, late]"
    );
    assert_eq!(
        run(vec![let_("r", pipe(xyz(), vec![pmap(body())]))]).shown("r"),
        "[late, early, late]"
    );
}

#[test]
fn the_item_shadows_and_is_restored() {
    let run = run(vec![
        let_("item", text("outer")),
        pipe(xyz(), vec![map(vec![var("item")])]),
        let_("x", var("item")),
    ]);
    assert_eq!(run.shown("x"), "outer");
}

#[test]
fn a_source_of_text_is_decoded() {
    let mut run = run(vec![let_(
        "r",
        pipe(session("List"), vec![map(vec![text("{item}.")])]),
    )]);
    run.reply("List", "- a\n- b");
    assert_eq!(run.shown("r"), "[a., b.]");
}

#[test]
fn a_failing_item_of_pmap_cancels_the_others() {
    let mut run = run(vec![pipe(xyz(), vec![pmap(vec![session("P {item}")])])]);
    run.fail("P y", prose_model::ErrorKind::Backend, "down").stopped();
    assert_eq!(run.error(), "backend: down");
}

#[test]
fn break_in_a_stage_leaves_the_loop_around() {
    let stage = map(vec![node(Op::Break)]);
    assert_eq!(
        run(vec![let_(
            "r",
            repeat(num(3.0), None, vec![pipe(xyz(), vec![stage])])
        )])
        .shown("r"),
        "[]"
    );
}
