//! Frames and names: language.md, "Scope".

use crate::build::*;
use crate::harness::*;
use prose_model::BindKind;

#[test]
fn let_in_a_nested_scope_assigns_the_frames_slot() {
    let run = run(vec![
        let_("x", num(1.0)),
        if_(yes(), vec![let_("x", num(2.0))], None),
        do_(vec![let_("y", num(3.0))]),
        let_("z", add(var("x"), var("y"))),
    ]);
    assert_eq!(run.shown("z"), "5");
}

#[test]
fn loop_variables_shadow_and_are_restored() {
    let run = run(vec![
        let_("item", text("outer")),
        for_(
            "item",
            list(vec![num(1.0)]),
            vec![assign("item", num(9.0)), let_("in", var("item"))],
        ),
        let_("after", var("item")),
    ]);
    assert_eq!(
        (run.shown("in"), run.shown("after")),
        ("9".into(), "outer".into())
    );
}

#[test]
fn what_a_loop_body_declares_keeps_its_value() {
    let run = run(vec![
        repeat(num(2.0), Some("i"), vec![let_("last", var("i"))]),
        let_("x", var("last")),
    ]);
    assert_eq!(run.shown("x"), "1");
}

#[test]
fn branches_of_one_frame_share_slots_at_once() {
    let mut run = run(vec![
        let_("x", text("0")),
        parallel(vec![
            do_(vec![session("A"), assign("x", text("1"))]),
            do_(vec![session("B"), session("C {x}")]),
        ]),
    ]);
    run.reply("A", "a").reply("B", "b");
    assert_eq!(run.sessions(), ["C 1"]);
}

#[test]
fn branches_can_loop_over_one_name() {
    let each = |items: Vec<prose_model::Node>| for_("it", list(items), vec![session("S {it}")]);
    let mut run = run(vec![parallel(vec![
        each(vec![text("a"), text("b")]),
        each(vec![text("x"), text("y")]),
    ])]);
    run.reply("S a", "1").reply("S x", "1");
    assert_eq!(run.sessions(), ["S b", "S y"]);
}

#[test]
fn lookup_goes_through_calling_frames_to_the_root() {
    let body = vec![
        let_("root", text("r")),
        for_(
            "loop",
            list(vec![text("l")]),
            vec![call("outer", vec![text("p")])],
        ),
    ];
    let p = program(body)
        .block(block(
            "outer",
            &["param"],
            vec![let_("local", text("o")), call("inner", vec![])],
        ))
        .block(block(
            "inner",
            &[],
            vec![let_("x", text("{root} {loop} {param} {local}"))],
        ));
    assert_eq!(run_program(p).shown("x"), "r l p o");
}

#[test]
fn assignment_goes_to_the_nearest_frame_that_holds_the_name() {
    let body = vec![
        let_("x", text("root")),
        call("f", vec![]),
        let_("after", var("x")),
    ];
    let p = program(body).block(block(
        "f",
        &[],
        vec![assign("x", text("changed")), call("g", vec![])],
    ));
    let p = p.block(block(
        "g",
        &[],
        vec![let_("x", text("own")), assign("x", text("own 2"))],
    ));
    let run = run_program(p);
    assert_eq!(run.shown("after"), "changed");
    assert_eq!(
        run.bound(),
        [
            "x = root",
            "x = changed",
            "x__2 = own",
            "x__2 = own 2",
            "after = changed"
        ]
    );
}

#[test]
fn a_block_does_not_change_its_callers_loop_variables() {
    let each = |body| for_("item", list(vec![text("a"), text("b")]), body);
    let p = program(vec![each(vec![call("f", vec![]), session("S {item}")])]);
    let mut run = run_program(p.block(block(
        "f",
        &[],
        vec![assign("item", add(var("item"), text("!"))), session("F {item}")],
    )));
    assert_eq!(run.sessions(), ["F a!"]);
    run.reply("F a!", "1");
    assert_eq!(run.sessions(), ["S a"]);
    run.reply("S a", "1");
    assert_eq!(run.sessions(), ["F b!"]);
}

#[test]
fn a_frame_has_its_own_slots() {
    let p = program(vec![
        let_("x", num(1.0)),
        call("f", vec![]),
        let_("after", var("x")),
    ]);
    let run = run_program(p.block(block("f", &[], vec![let_("x", num(2.0))])));
    assert_eq!(run.shown("after"), "1");
}

#[test]
fn a_bare_call_leaves_its_locals_readable_as_a_last_resort() {
    let f = block("f", &[], vec![let_("found", text("gold"))]);
    let p = program(vec![
        call("f", vec![]),
        let_("x", var("found")),
        let_("t", text("{found}")),
    ]);
    let run = run_program(p.block(f.clone()));
    assert_eq!((run.shown("x"), run.shown("t")), ("gold".into(), "gold".into()));
    let used = program(vec![let_("v", call("f", vec![])), let_("x", var("found"))]).block(f);
    assert_eq!(run_program(used).shown("x"), "null");
}

#[test]
fn a_name_that_was_not_bound_on_the_way_is_null_with_a_warning() {
    let run = run(vec![
        if_(no(), vec![let_("x", num(1.0))], None),
        let_("y", var("x")),
    ]);
    assert_eq!(run.shown("y"), "null");
    assert_eq!(
        run.warnings(),
        ["unbound: 'x' was not bound on the way here: it is null"]
    );
}

#[test]
fn a_name_that_nothing_declares_is_an_error() {
    assert_eq!(
        run(vec![let_("y", var("nope"))]).error(),
        "undefined: 'nope' has no value"
    );
}

#[test]
fn a_constant_is_not_assigned() {
    let body = vec![bind(BindKind::Const, "c", num(1.0)), assign("c", num(2.0))];
    assert_eq!(run(body).error(), "type: 'c' is a constant");
}

#[test]
fn results_accumulate_over_parallel_branches() {
    let one = |label: &str| assign("results", add(var("results"), list(vec![session(label)])));
    let mut run = run(vec![
        let_("results", list(vec![])),
        parallel(vec![one("A"), one("B"), one("C")]),
    ]);
    assert_eq!(run.sessions(), ["A", "B", "C"]);
    run.reply("C", "c").reply("A", "a").reply("B", "b");
    assert_eq!(run.shown("results"), "[c, a, b]");
}

#[test]
fn iterations_of_parallel_for_are_frames_with_ids() {
    let body = vec![
        let_("r", session("S {x} {i}")),
        assign("all", add(var("all"), var("r"))),
    ];
    let mut run = run(vec![
        let_("all", list(vec![])),
        parallel_for("x", list(vec![text("a"), text("b")]), body),
    ]);
    assert_eq!(run.sessions(), ["S a 0", "S b 1"]);
    let binding = |label: &str| run.session(label).binding.binding.clone();
    assert_eq!(
        (binding("S a 0").name.as_str(), binding("S a 0").execution_id),
        ("r", Some(1))
    );
    assert_eq!(binding("S b 1").execution_id, Some(2));
    run.reply("S b 1", "2").reply("S a 0", "1");
    assert_eq!(
        run.bound(),
        ["all = []", "r__2 = 2", "all = [2]", "r__1 = 1", "all = [2, 1]"]
    );
}

#[test]
fn inspection_shows_frames_and_names() {
    let p = program(vec![let_("root", text("r")), call("f", vec![text("v")])]).block(block(
        "f",
        &["p"],
        vec![parallel_for("x", list(vec![text("a")]), vec![session("S")])],
    ));
    let mut run = run_program(p);
    let stack = run.machine.call_stack();
    let lines: Vec<_> = stack
        .iter()
        .map(|f| format!("{} {} {:?} {}", f.execution_id, f.name, f.parent, f.waiting))
        .collect();
    assert_eq!(lines, ["1 f None true", "2 x Some(1) false"]);
    let names = run.machine.visible_at(&run.open[0]).unwrap();
    let names: Vec<_> = names.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["x", "i", "p", "root"]);
    assert_eq!(run.machine.pending().len(), 1);
    run.finish(|_| None);
    assert!(run.machine.call_stack().is_empty());
    assert!(run.machine.pending().is_empty());
}
