//! Blocks and programs: language.md, "Forms", "Scope", "Execution".

use prose_model::{Argument, BindKind, Block, ErrorKind, Event, FrameKind, Op};

use crate::build::*;
use crate::harness::*;

#[test]
fn arguments_are_evaluated_at_the_call_and_bound_to_parameters() {
    let p = program(vec![
        let_("t", text("cats")),
        let_("x", call("f", vec![var("t"), num(2.0)])),
    ]);
    let mut run = run_program(p.block(block("f", &["topic", "n"], vec![session("Do {topic} {n}")])));
    assert_eq!(run.pending(), ["session main/1.0>block:f/0"]);
    let scope = run.session("Do cats 2").scope.clone().unwrap();
    assert_eq!(
        (scope.execution_id, scope.block.as_str(), scope.depth),
        (1, "f", 1)
    );
    run.finish(|_| None);
    assert_eq!(run.shown("x"), "re: Do cats 2");
}

#[test]
fn missing_arguments_are_null_superfluous_ones_dropped_each_with_a_warning() {
    let args = vec![
        Argument {
            name: Some("b".into()),
            value: text("B"),
        },
        Argument {
            name: None,
            value: text("A"),
        },
        Argument {
            name: Some("zz".into()),
            value: text("Z"),
        },
    ];
    let p = program(vec![node(Op::Call {
        block: "f".into(),
        args,
    })]);
    let run = run_program(p.block(block(
        "f",
        &["a", "b", "c"],
        vec![let_("x", list(vec![var("a"), var("b"), var("c")]))],
    )));
    assert_eq!(run.shown("x"), "[A, B, null]");
    assert_eq!(run.warnings().len(), 2, "{:?}", run.warnings());
}

#[test]
fn a_call_runs_its_sessions_before_plain_names_are_read() {
    let p = program(vec![
        let_("t", text("old")),
        parallel(vec![
            call("f", vec![session("S"), var("t")]),
            assign("t", text("new")),
        ]),
    ]);
    let mut run = run_program(p.block(block("f", &["a", "b"], vec![let_("x", text("{a} {b}"))])));
    run.reply("S", "s");
    assert_eq!(run.shown("x"), "s new");
}

fn value_of(body: Vec<prose_model::Node>) -> String {
    run_program(program(vec![let_("x", call("f", vec![]))]).block(block("f", &[], body))).shown("x")
}

#[test]
fn the_value_of_a_block() {
    assert_eq!(
        value_of(vec![num(1.0), num(2.0)]),
        "2",
        "its last statement's value"
    );
    assert_eq!(
        value_of(vec![output("o", num(1.0)), num(2.0)]),
        "1",
        "one named output"
    );
    assert_eq!(
        value_of(vec![output("o", num(1.0)), output("p", num(2.0)), num(3.0)]),
        "{o: 1, p: 2}",
        "several"
    );
    assert_eq!(
        value_of(vec![output("o", num(1.0)), ret(num(9.0)), num(3.0)]),
        "9",
        "output EXPR"
    );
    assert_eq!(value_of(vec![]), "null");
}

#[test]
fn output_leaves_the_nearest_named_block_through_everything() {
    let inner = try_(
        vec![repeat(
            num(3.0),
            None,
            vec![do_(vec![if_(yes(), vec![ret(text("v"))], None)])],
        )],
        None,
        None,
    );
    assert_eq!(value_of(vec![inner, text("never")]), "v");
}

#[test]
fn outputs_of_a_block_are_not_the_programs() {
    let p = program(vec![call("f", vec![]), output("mine", num(1.0))]);
    let run = run_program(p.block(block("f", &[], vec![output("theirs", num(2.0))])));
    assert_eq!(run.completion().outputs.keys().collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn the_last_binding_of_an_output_wins_and_promotion_registers() {
    let run = run(vec![
        let_("x", num(1.0)),
        output("x", var("x")),
        output("y", num(2.0)),
        output("y", num(3.0)),
        assign("x", num(4.0)),
    ]);
    let outputs: Vec<_> = run
        .completion()
        .outputs
        .iter()
        .map(|(k, v)| format!("{k}={}", show(v)))
        .collect();
    assert_eq!(outputs, ["x=4", "y=3"]);
}

#[test]
fn output_at_top_level_becomes_the_programs_value() {
    let run = run(vec![
        output("o", num(1.0)),
        ret(text("value")),
        throw(Some("never")),
    ]);
    assert_eq!(run.result(), "value");
    assert_eq!(show(&run.completion().outputs["o"]), "1");
}

#[test]
fn execution_ids_count_frames_in_start_order() {
    let p = program(vec![
        call("f", vec![]),
        parallel_for("x", list(vec![null(), null()]), vec![call("g", vec![])]),
        pipe(list(vec![null()]), vec![pmap(vec![])]),
    ]);
    let p =
        p.block(block("f", &[], vec![call("g", vec![])]))
            .block(block("g", &[], vec![let_("v", num(1.0))]));
    let run = run_program(p);
    let frames: Vec<_> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::FrameStarted {
                frame, kind, depth, ..
            } => Some((*frame, *kind, *depth)),
            _ => None,
        })
        .collect();
    let wanted = [
        (1, FrameKind::Block, 1),
        (2, FrameKind::Block, 2),
        (3, FrameKind::Iteration, 0),
        (4, FrameKind::Iteration, 0),
        (5, FrameKind::Block, 1),
        (6, FrameKind::Block, 1),
        (7, FrameKind::Item, 0),
    ];
    assert_eq!(frames, wanted);
}

/// `block process(n): if n <= 0: … else: do process(n - 1)`.
fn recursive(max_depth: Option<u32>) -> Block {
    let again = call(
        "process",
        vec![bin(prose_model::BinaryOp::Sub, var("n"), num(1.0))],
    );
    let body = vec![if_(
        bin(prose_model::BinaryOp::Le, var("n"), num(0.0)),
        vec![session("Base")],
        Some(vec![again]),
    )];
    Block {
        max_depth,
        ..block("process", &["n"], body)
    }
}
fn recurse(n: f64, max_depth: Option<u32>) -> Run {
    run_program(program(vec![let_("x", call("process", vec![num(n)]))]).block(recursive(max_depth)))
}

#[test]
fn recursion_has_a_limit_with_the_specified_text() {
    let run = recurse(50.0, Some(50));
    assert_eq!(
        run.error(),
        "recursion_limit_exceeded: [Error] RecursionLimitExceeded: block 'process' exceeded max_depth 50"
    );
    let mut deepest = recurse(49.0, Some(50));
    deepest.reply("Base", "b");
    assert_eq!(deepest.shown("x"), "b");
}

#[test]
fn the_default_limit_is_100() {
    assert!(
        recurse(100.0, None)
            .error()
            .ends_with("block 'process' exceeded max_depth 100")
    );
    assert_eq!(
        recurse(99.0, None).session("Base").scope.as_ref().unwrap().depth,
        100
    );
}

#[test]
fn deep_recursion_needs_no_stack() {
    let deep = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let mut run = recurse(9_999.0, Some(10_000));
        assert_eq!(run.session("Base").scope.as_ref().unwrap().depth, 10_000);
        assert_eq!(run.machine.call_stack().len(), 10_000);
        assert!(run.open[0].as_str().len() < 250, "{:?}", run.open[0]);
        run.reply("Base", "bottom");
        assert_eq!(run.shown("x"), "bottom");
    });
    deep.unwrap().join().unwrap();
}

#[test]
fn deep_recursion_unwinds_without_a_stack() {
    let deep = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let mut run = recurse(9_999.0, Some(10_000));
        run.fail("Base", ErrorKind::Backend, "down");
        assert_eq!(run.error(), "backend: down");
        let mut cancelled = recurse(9_999.0, Some(10_000));
        cancelled.cancel().stopped();
        assert_eq!(cancelled.completion().status, prose_model::RunStatus::Cancelled);
    });
    deep.unwrap().join().unwrap();
}

#[test]
fn recursion_through_parallel_needs_no_stack() {
    let deep = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let less = bin(prose_model::BinaryOp::Sub, var("n"), num(1.0));
        let down = parallel_for("k", list(vec![less]), vec![call("f", vec![var("k")])]);
        let body = vec![if_(
            bin(prose_model::BinaryOp::Le, var("n"), num(0.0)),
            vec![session("Base")],
            Some(vec![down]),
        )];
        let f = Block {
            max_depth: Some(5_000),
            ..block("f", &["n"], body)
        };
        let start = || run_program(program(vec![let_("x", call("f", vec![num(2_000.0)]))]).block(f.clone()));
        start().reply("Base", "b").completion();
        let mut cancelled = start();
        cancelled.cancel().stopped();
        assert_eq!(cancelled.completion().status, prose_model::RunStatus::Cancelled);
    });
    deep.unwrap().join().unwrap();
}

#[test]
fn an_unknown_block_is_an_error_of_the_run() {
    assert_eq!(
        run(vec![call("nope", vec![])]).error(),
        "undefined: there is no block 'nope'"
    );
}

// ---- programs ----

fn research() -> prose_model::Program {
    program(vec![
        input("topic", "Topic?"),
        session("Look at {topic}"),
        output("findings", session("Find {topic}")),
        output("sources", text("s")),
    ])
    .namespace("alice--research")
}
fn caller(body: Vec<prose_model::Node>) -> Run {
    Run::start(
        bundle(vec![program(body).import("research", Some(1)), research()]),
        &[],
    )
}

#[test]
fn a_called_program_gives_a_record_of_its_outputs() {
    let mut run = caller(vec![
        let_("r", call_program("research", vec![named("topic", text("cats"))])),
        let_("f", member(var("r"), "findings")),
        destructure(&["sources"], var("r")),
    ]);
    run.finish(|_| None);
    assert_eq!(run.shown("r"), "{findings: re: Find cats, sources: s}");
    assert_eq!(
        (run.shown("f"), run.shown("sources")),
        ("re: Find cats".into(), "s".into())
    );
}

#[test]
fn bindings_of_a_called_program_go_to_its_folder() {
    let twice = repeat(
        num(2.0),
        None,
        vec![call_program("research", vec![named("topic", text("t"))])],
    );
    let mut run = caller(vec![session("Own"), twice]);
    run.finish(|_| None);
    let bound = run.bound();
    let wanted = [
        "anon_001 = re: Own",
        "alice--research/topic = t",
        "alice--research/anon_001 = re: Look at t",
        "alice--research/findings = re: Find t",
        "alice--research/sources = s",
        "alice--research__2/topic = t",
        "alice--research__2/anon_001 = re: Look at t",
        "alice--research__2/findings = re: Find t",
        "alice--research__2/sources = s",
    ];
    assert_eq!(bound, wanted);
}

#[test]
fn a_missing_input_of_a_called_program_is_asked() {
    let mut run = caller(vec![let_("r", call_program("research", vec![]))]);
    assert_eq!(run.pending(), ["input main/0.0>main/0"]);
    run.answer("topic", "dogs")
        .reply("Look at dogs", "l")
        .reply("Find dogs", "f");
    assert_eq!(run.shown("r"), "{findings: f, sources: s}");
}

#[test]
fn lookup_ends_at_the_program_boundary() {
    let inner = program(vec![let_("x", text("{mine}"))]).namespace("bob--inner");
    let entry =
        program(vec![let_("mine", text("secret")), call_program("inner", vec![])]).import("inner", Some(1));
    let run = Run::start(bundle(vec![entry, inner]), &[]);
    assert_eq!(run.shown("x"), "{mine}");
}

#[test]
fn a_program_without_outputs_gives_its_result() {
    let inner = program(vec![text("last")]).namespace("bob--inner");
    let entry = program(vec![let_("x", call_program("inner", vec![]))]).import("inner", Some(1));
    assert_eq!(Run::start(bundle(vec![entry, inner]), &[]).shown("x"), "last");
}

#[test]
fn memory_of_a_called_program_is_in_its_namespace() {
    let inner = program(vec![resume("a").prompt("P")])
        .agent(persistent("a", prose_model::Persist::Project))
        .namespace("bob--inner");
    let entry = program(vec![call_program("inner", vec![])]).import("inner", Some(1));
    let run = Run::start(bundle(vec![entry, inner]), &[]);
    assert_eq!(run.session("P").memory.as_ref().unwrap().namespace, "bob--inner");
}

#[test]
fn a_program_that_was_not_resolved_is_an_error_of_the_run() {
    let run = run_program(program(vec![call_program("x", vec![])]).import("x", None));
    assert_eq!(run.error(), "import: program 'x' (alice/x) was not resolved");
}

#[test]
fn a_cycle_of_programs_is_an_error_of_the_run() {
    let second = program(vec![call_program("first", vec![])])
        .import("first", Some(0))
        .namespace("b--second");
    let first = program(vec![call_program("second", vec![])]).import("second", Some(1));
    let run = Run::start(bundle(vec![first, second]), &[]);
    assert_eq!(run.error(), "import: program 'first' (alice/first) calls itself");
}

#[test]
fn an_error_in_a_called_program_reaches_the_caller() {
    let mut run = caller(vec![try_(
        vec![call_program(
            "research",
            vec![named("topic", text("t")), named("zz", null())],
        )],
        Some(vec![let_("m", member(var("err"), "message"))]),
        None,
    )]);
    assert_eq!(run.warnings().len(), 1);
    run.fail("Look at t", ErrorKind::Backend, "down");
    assert_eq!(run.shown("m"), "down");
}

#[test]
fn a_parameter_has_no_binding_of_its_own() {
    let p = program(vec![call("f", vec![text("v")])]);
    let mut run = run_program(p.block(block(
        "f",
        &["p"],
        vec![
            session("S").context(vec![("p", var("p"))]),
            assign("p", session("T")),
        ],
    )));
    assert_eq!(run.session("S").context[0].binding, None);
    run.reply("S", "s");
    assert_eq!(run.session("T").binding.bind_kind, BindKind::Anonymous);
    run.finish(|_| None);
}
