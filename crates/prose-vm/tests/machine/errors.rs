//! `try`, `throw`, `assert`: language.md, "Execution".

use prose_model::{Backoff, End, ErrorKind, Event, Op};

use crate::build::*;
use crate::harness::*;

fn order(run: &Run) -> Vec<String> {
    run.bound()
}

#[test]
fn success_runs_try_then_finally() {
    let run = run(vec![let_(
        "v",
        try_(
            vec![let_("a", num(1.0))],
            Some(vec![let_("b", num(2.0))]),
            Some(vec![let_("c", num(3.0))]),
        ),
    )]);
    assert_eq!(order(&run), ["a = 1", "c = 3", "v = 1"]);
}

#[test]
fn failure_runs_try_until_it_then_catch_then_finally() {
    let mut run = run(vec![let_(
        "v",
        try_(
            vec![session("Risky"), let_("never", num(0.0))],
            Some(vec![let_(
                "b",
                text("{err.kind}: {err.message} at {err.statement}, {err.attempts}"),
            )]),
            Some(vec![let_("c", num(3.0))]),
        ),
    )]);
    run.fail("Risky", ErrorKind::Permission, "denied");
    assert_eq!(
        order(&run)[..2],
        [
            "b = permission: denied at main/0.0.0, 1".to_owned(),
            "c = 3".to_owned()
        ]
    );
}

#[test]
fn an_error_names_the_line_and_the_words_of_its_statement() {
    let source = "# Two lines\nsession \"Risky\"\n  retry: 1\n";
    let mut bundle = (*bundle(vec![program(vec![try_(
        vec![session("Risky")],
        Some(vec![let_("at", member(var("err"), "statement"))]),
        None,
    )])]))
    .clone();
    bundle.files[0].text = source.into();
    let prose_model::Op::Try(t) = &mut bundle.programs[0].body[0].op else {
        panic!()
    };
    t.body[0].src = prose_model::SourceRange {
        file: 0,
        start: 12,
        end: source.len() as u32,
    };
    let mut run = Run::start(bundle.into(), &[]);
    run.fail("Risky", ErrorKind::Backend, "down");
    assert_eq!(run.shown("at"), "main.prose:2: session \"Risky\"");
}

#[test]
fn without_catch_the_error_goes_on_after_finally() {
    let mut run = run(vec![try_(
        vec![session("R")],
        None,
        Some(vec![let_("c", num(1.0))]),
    )]);
    run.fail("R", ErrorKind::Timeout, "slow");
    assert_eq!(order(&run), ["c = 1"]);
    assert_eq!(run.error(), "timeout: slow");
}

#[test]
fn a_failed_run_keeps_its_outputs() {
    let mut run = run(vec![output("o", text("kept")), session("R")]);
    run.fail("R", ErrorKind::Backend, "down");
    assert_eq!(run.error(), "backend: down");
    assert_eq!(show(&run.completion().outputs["o"]), "kept");
}

#[test]
fn throw_raises_an_error_with_its_message() {
    let run = run(vec![let_("x", text("it")), throw(Some("no: {x}"))]);
    assert_eq!(run.error(), "thrown: no: it");
    assert_eq!(
        run.completion().error.as_ref().unwrap().statement.as_str(),
        "main/1"
    );
}

#[test]
fn throw_in_catch_raises_the_caught_error_again() {
    let inner = try_(
        vec![session("R")],
        Some(vec![let_("seen", yes()), throw(None)]),
        None,
    );
    let mut run = run(vec![try_(
        vec![inner],
        Some(vec![let_("m", member(var("err"), "message"))]),
        None,
    )]);
    run.fail("R", ErrorKind::Backend, "down");
    assert_eq!(order(&run), ["seen = true", "m = down"]);
}

#[test]
fn throw_in_a_branch_of_a_catch_body_raises_it_too() {
    let inner = try_(
        vec![throw(Some("first"))],
        Some(vec![parallel(vec![throw(None)])]),
        None,
    );
    assert_eq!(run(vec![inner]).error(), "thrown: first");
}

#[test]
fn a_caught_error_can_be_thrown_by_name() {
    let throw_err = node(Op::Throw(boxed(var("err"))));
    assert_eq!(
        run(vec![try_(vec![throw(Some("e"))], Some(vec![throw_err]), None)]).error(),
        "thrown: e"
    );
}

#[test]
fn a_bare_throw_elsewhere_says_so() {
    assert_eq!(run(vec![throw(None)]).error(), "thrown: rethrow outside catch");
    let after = vec![try_(
        vec![throw(Some("x"))],
        Some(vec![]),
        Some(vec![throw(None)]),
    )];
    assert_eq!(run(after).error(), "thrown: rethrow outside catch");
    let p = program(vec![try_(
        vec![throw(Some("x"))],
        Some(vec![call("f", vec![])]),
        None,
    )]);
    assert_eq!(
        run_program(p.block(block("f", &[], vec![throw(None)]))).error(),
        "thrown: rethrow outside catch"
    );
}

#[test]
fn an_error_in_catch_still_runs_finally() {
    let run = run(vec![try_(
        vec![throw(Some("a"))],
        Some(vec![throw(Some("b"))]),
        Some(vec![let_("c", yes())]),
    )]);
    assert_eq!(order(&run), ["c = true"]);
    assert_eq!(run.error(), "thrown: b");
}

#[test]
fn an_error_in_finally_takes_the_place_of_the_first() {
    assert_eq!(
        run(vec![try_(
            vec![throw(Some("a"))],
            None,
            Some(vec![throw(Some("b"))])
        )])
        .error(),
        "thrown: b"
    );
}

#[test]
fn the_catch_variable_ends_with_its_body() {
    let run = run(vec![
        let_("err", text("outer")),
        try_(
            vec![throw(Some("a"))],
            Some(vec![let_("x", member(var("err"), "message"))]),
            None,
        ),
        let_("y", var("err")),
    ]);
    assert_eq!((run.shown("x"), run.shown("y")), ("a".into(), "outer".into()));
}

#[test]
fn output_and_break_run_finally_on_their_way() {
    let f = block(
        "f",
        &[],
        vec![
            try_(vec![ret(text("v"))], None, Some(vec![let_("c", yes())])),
            let_("never", no()),
        ],
    );
    let run = run_program(program(vec![let_("x", call("f", vec![]))]).block(f));
    assert_eq!(order(&run), ["c__1 = true", "x = v"]);
    let body = vec![repeat(
        num(3.0),
        None,
        vec![try_(vec![break_()], None, Some(vec![let_("c", yes())]))],
    )];
    assert_eq!(order(&self::run(body)), ["c = true"]);
}

#[test]
fn assert_raises_when_it_does_not_hold() {
    assert_eq!(
        run(vec![assert_(yes(), Some("m")), let_("x", num(1.0))]).shown("x"),
        "1"
    );
    assert_eq!(
        run(vec![assert_(no(), Some("must hold"))]).error(),
        "assertion: must hold"
    );
    assert_eq!(
        run(vec![assert_(eq(num(1.0), num(2.0)), None)]).error(),
        "assertion: assertion failed: "
    );
}

#[test]
fn an_error_value_reads_as_its_message_and_is_false() {
    let body = vec![try_(
        vec![throw(Some("boom"))],
        Some(vec![
            let_("t", text("saw {err}")),
            let_("b", not(var("err"))),
            let_("e", var("err")),
        ]),
        None,
    )];
    let run = run(body);
    assert_eq!(
        (run.shown("t"), run.shown("b"), run.shown("e")),
        ("saw boom".into(), "true".into(), "error(boom)".into())
    );
}

#[test]
fn ends_say_how_things_ended() {
    let mut run = run(vec![try_(
        vec![session("R").retry(0, Backoff::None)],
        Some(vec![]),
        None,
    )]);
    run.fail("R", ErrorKind::Backend, "down");
    let ends: Vec<End> = run
        .events
        .iter()
        .filter_map(|event| match event {
            Event::SessionFinished { end, .. }
            | Event::StatementFinished { end, .. }
            | Event::ConstructFinished { end, .. } => Some(*end),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [End::Failed, End::Failed, End::Ok, End::Ok]);
}

#[test]
fn an_error_says_how_many_tries_were_made_not_how_many_were_allowed() {
    let tried = session("Work").retry(2, Backoff::None);
    let mut run = run(vec![try_(
        vec![tried],
        Some(vec![let_("n", member(var("err"), "attempts"))]),
        None,
    )]);
    // A spent budget ends the tries.
    run.fail("Work", ErrorKind::Budget, "spent");
    assert_eq!(run.shown("n"), "1");
}
