//! Values, operators, text, content: language.md, "Values".

use prose_model::{BinaryOp, DecodeTarget, Effect, Node, Op, Persist, Value};

use crate::build::*;
use crate::harness::*;

/// The value of an expression that needs nothing.
fn value(expr: Node) -> String {
    run(vec![let_("x", expr)]).shown("x")
}
fn raised(expr: Node) -> String {
    run(vec![let_("x", expr)]).error()
}

#[test]
fn plus_adds_numbers_appends_to_lists_and_joins_texts() {
    assert_eq!(value(add(num(1.0), num(2.5))), "3.5");
    assert_eq!(value(add(list(vec![num(1.0)]), num(2.0))), "[1, 2]");
    assert_eq!(value(add(num(1.0), list(vec![num(2.0)]))), "[1, 2]");
    assert_eq!(value(add(list(vec![num(1.0)]), list(vec![num(2.0)]))), "[1, 2]");
    assert_eq!(value(add(text("a"), text("b"))), "ab");
    assert_eq!(value(add(text("n = "), num(3.0))), "n = 3");
    assert_eq!(value(add(text("a"), rec(vec![("k", num(1.0))]))), "a{\"k\":1}");
}

#[test]
fn minus_and_negation_need_numbers() {
    assert_eq!(value(bin(BinaryOp::Sub, text(" 5 "), num(2.0))), "3");
    assert_eq!(value(node(Op::Neg(Box::new(num(2.0))))), "-2");
    assert_eq!(
        raised(bin(BinaryOp::Sub, null(), num(2.0))),
        "type: null is no number"
    );
    assert_eq!(
        raised(bin(BinaryOp::Sub, list(vec![]), num(2.0))),
        "type: a list is no number"
    );
}

#[test]
fn equality_is_of_trimmed_text_or_of_numbers() {
    assert_eq!(value(eq(text(" a\n"), text("a"))), "true");
    assert_eq!(value(eq(text("1.0"), text("1"))), "true");
    assert_eq!(value(eq(text("01"), num(1.0))), "true");
    assert_eq!(value(eq(text("a"), text("A"))), "false");
    assert_eq!(value(eq(text("yes, it is"), yes())), "true");
    assert_eq!(value(eq(null(), null())), "true");
    assert_eq!(value(eq(text(""), null())), "false");
    assert_eq!(value(eq(list(vec![text("a ")]), list(vec![text("a")]))), "true");
    assert_eq!(
        value(eq(rec(vec![("a", num(1.0))]), rec(vec![("a", num(2.0))]))),
        "false"
    );
    let more = || rec(vec![("a", num(1.0)), ("b", num(2.0))]);
    assert_eq!(value(eq(rec(vec![("a", num(1.0))]), more())), "false");
    assert_eq!(value(eq(more(), rec(vec![("a", num(1.0))]))), "false");
    assert_eq!(value(bin(BinaryOp::Ne, num(1.0), num(2.0))), "true");
}

#[test]
fn ordering_with_null_is_false() {
    for op in [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge] {
        assert_eq!(value(bin(op, null(), num(1.0))), "false");
        assert_eq!(value(bin(op, num(1.0), null())), "false");
    }
    assert_eq!(value(bin(BinaryOp::Lt, text("9"), num(10.0))), "true");
    assert_eq!(value(bin(BinaryOp::Le, num(2.0), num(2.0))), "true");
    assert_eq!(value(bin(BinaryOp::Gt, text("b"), text("a"))), "true");
}

#[test]
fn long_chains_of_operators_do_not_recurse() {
    let mut sum = num(0.0);
    for _ in 0..1_000 {
        sum = add(sum, num(1.0));
    }
    // Building and dropping such a tree recurses; the machine itself would take any length.
    assert_eq!(value(sum), "1000");
}

#[test]
fn interpolation_inserts_values_as_text() {
    let body = vec![
        let_("t", text("T")),
        let_("n", num(2.0)),
        let_("l", list(vec![text("a\"b"), num(1.0)])),
        let_("r", rec(vec![("k", yes())])),
        let_("x", text("{t} {n} {l} {r} {r.k}")),
    ];
    assert_eq!(run(body).shown("x"), "T 2 [\"a\\\"b\",1] {\"k\":true} true");
}

#[test]
fn inserted_text_is_never_rescanned() {
    let mut run = run(vec![
        let_("a", session("A")),
        let_("b", text("B")),
        let_("x", text("<{a}>")),
    ]);
    run.reply("A", "{b}");
    assert_eq!(run.shown("x"), "<{b}>");
}

#[test]
fn a_name_without_a_slot_stays_verbatim() {
    let run = run(vec![let_("x", text("keep {this}"))]);
    assert_eq!(run.shown("x"), "keep {this}");
    assert!(run.warnings().is_empty());
}

#[test]
fn null_becomes_empty_text_with_a_warning() {
    let run = run(vec![let_("n", null()), let_("x", text("[{n}]"))]);
    assert_eq!(run.shown("x"), "[]");
    assert_eq!(run.warnings().len(), 1, "{:?}", run.warnings());
    assert!(run.warnings()[0].starts_with("null-text:"));
}

#[test]
fn text_built_from_references_is_a_rope() {
    let mut run = run(vec![
        let_("a", session("A")),
        let_("x", add(text("head {a} "), var("a"))),
    ]);
    run.reply_long("A", "doc");
    assert_eq!(run.shown("x"), "head <doc> <doc>");
    assert_eq!(run.pending(), Vec::<String>::new());
}

#[test]
fn json_of_a_list_that_holds_references_is_asked_for() {
    let mut run = run(vec![
        let_("l", list(vec![session("A")])),
        let_("x", text("all: {l}")),
    ]);
    run.reply_long("A", "doc");
    assert_eq!(run.pending(), ["decode main/1:decode"]);
    let Effect::Decode(request) = &run.get(&run.open[0]).effect else {
        panic!()
    };
    assert_eq!(request.target, DecodeTarget::Json);
    run.decoded(Value::text("[\"…\"]"));
    assert_eq!(run.shown("x"), "all: [\"…\"]");
}

#[test]
fn members_of_records_lists_and_errors() {
    let r = || rec(vec![("Key Findings", text("f")), ("count", text("own"))]);
    assert_eq!(value(member(r(), "key_findings")), "f");
    assert_eq!(value(member(r(), "count")), "own");
    assert_eq!(value(member(r(), "length")), "2");
    assert_eq!(value(member(list(vec![num(7.0)]), "length")), "1");
    assert_eq!(value(member(list(vec![num(7.0)]), "count")), "1");
    assert_eq!(value(at(list(vec![num(7.0)]), num(0.0))), "7");
    assert_eq!(value(at(r(), text("count"))), "own");
    assert_eq!(value(member(null(), "length")), "0");
}

#[test]
fn a_missing_key_is_null_with_a_warning() {
    let expr = vec![
        member(rec(vec![]), "k"),
        at(list(vec![]), num(3.0)),
        member(num(1.0), "k"),
    ];
    for expr in expr {
        let run = run(vec![let_("x", expr)]);
        assert_eq!(run.shown("x"), "null");
        assert_eq!(run.warnings().len(), 1);
        assert!(
            run.warnings()[0].starts_with("missing-key:"),
            "{:?}",
            run.warnings()
        );
    }
}

#[test]
fn text_at_hand_is_decoded_by_rules() {
    let t = || text("Score: 7\nNotes: fine");
    assert_eq!(value(member(t(), "score")), "7");
    assert_eq!(value(member(text("- a\n- b"), "length")), "2");
    assert_eq!(value(at(text("[\"a\", \"b\"]"), num(1.0))), "b");
}

#[test]
fn what_rules_can_not_decode_is_asked() {
    let mut run = run(vec![
        let_("a", session("A")),
        let_("x", member(var("a"), "score")),
    ]);
    run.reply("A", "It went rather well.");
    let Effect::Decode(request) = &run.get(&run.open[0]).effect else {
        panic!()
    };
    assert_eq!(request.target, DecodeTarget::Record(vec!["score".into()]));
    run.decoded(Value::record([("score".into(), Value::Number(9.0))]));
    assert_eq!(run.shown("x"), "9");
}

#[test]
fn content_behind_a_reference_is_asked_for() {
    let mut run = run(vec![
        let_("a", session("A")),
        let_("same", eq(var("a"), text("x"))),
        let_("empty", eq(var("a"), text(" "))),
        let_("n", bin(BinaryOp::Lt, var("a"), num(3.0))),
        let_("first", at(var("a"), num(0.0))),
        if_(var("a"), vec![let_("if", yes())], None),
    ]);
    run.reply_long("A", "doc");
    let mut targets = Vec::new();
    while run.done.is_none() {
        let id = run.open[0].clone();
        let Effect::Decode(request) = &run.get(&id).effect else {
            panic!()
        };
        targets.push(request.target.clone());
        let outcome = canned(&run.get(&id).effect);
        run.resolve(&id, outcome);
    }
    let wanted = [
        DecodeTarget::Equals(Value::text("x")),
        DecodeTarget::IsEmpty,
        DecodeTarget::Number,
        DecodeTarget::List,
        DecodeTarget::Bool,
    ];
    assert_eq!(targets, wanted);
    assert_eq!(run.shown("n"), "true");
    assert_eq!(run.shown("first"), "one");
    assert_eq!(run.shown("if"), "true");
}

#[test]
fn an_answer_of_the_wrong_shape_is_an_error() {
    let mut run = run(vec![let_("a", session("A")), for_("x", var("a"), vec![])]);
    run.reply_long("A", "doc").decoded(Value::Number(1.0));
    assert_eq!(run.error(), "type: the content could not be read as a list");
}

#[test]
fn names_are_read_when_a_decoding_has_come() {
    // Both branches wait in the middle of a right side that reads `n`; neither loses the other's store.
    let counted = |label: &str| {
        let score = bin(BinaryOp::Sub, session(label), num(0.0));
        assign("n", add(var("n"), score))
    };
    let mut run = run(vec![
        let_("n", num(0.0)),
        parallel(vec![counted("A"), counted("B")]),
    ]);
    run.reply_long("A", "a").reply_long("B", "b");
    assert_eq!(run.pending().len(), 2);
    run.decoded(Value::Number(1.0)).decoded(Value::Number(10.0));
    assert_eq!(run.shown("n"), "11");
}

#[test]
fn an_agents_name_as_a_value_is_its_memory() {
    let p = program(vec![let_("x", text("so far: {captain}"))]).agent(persistent("captain", Persist::User));
    let mut run = run_program(p);
    let Effect::Decode(request) = &run.get(&run.open[0]).effect else {
        panic!()
    };
    assert!(matches!(&request.target, DecodeTarget::Memory(memory) if memory.agent == "captain"));
    run.decoded(Value::text("notes"));
    assert_eq!(run.shown("x"), "so far: notes");
}

#[test]
fn the_name_of_an_agent_without_memory_stays_verbatim_in_text() {
    let p = program(vec![let_("x", text("ask {helper}"))]).agent(agent("helper", None));
    assert_eq!(run_program(p).shown("x"), "ask {helper}");
}

#[test]
fn numbers_stay_finite() {
    assert_eq!(raised(num(f64::INFINITY)), "type: the number is too large");
    assert_eq!(
        raised(add(num(f64::MAX), num(f64::MAX))),
        "type: the number is too large"
    );
}

#[test]
fn fields_are_assigned_and_records_made_on_the_way() {
    let run = run(vec![
        let_("r", rec(vec![("a", num(1.0))])),
        assign_field("r", "b", num(2.0)),
        assign_field("fresh", "{r.a}", text("v")),
        let_("l", list(vec![num(0.0)])),
        assign_field("l", "1", num(5.0)),
    ]);
    assert_eq!(run.shown("r"), "{a: 1, b: 2}");
    assert_eq!(run.shown("fresh"), "{1: v}");
    assert_eq!(run.shown("l"), "[0, 5]");
}

#[test]
fn fields_of_what_came_as_text_are_assigned() {
    let deep = node(Op::Assign {
        name: "r".into(),
        path: vec![text("sub"), num(1.0)],
        value: Box::new(text("new")),
    });
    let mut run = run(vec![
        let_("r", session("S")),
        assign_field("r", "Done", yes()),
        deep,
        let_("lines", session("L")),
        assign_field("lines", "risk", num(2.0)),
        let_("far", session("F")),
        assign_field("far", "x", num(1.0)),
    ]);
    run.reply("S", "{\"done\": false, \"sub\": [\"a\", \"b\"]}");
    assert_eq!(run.shown("r"), "{done: true, sub: [a, new]}");
    run.reply("L", "Risk: 1\nOwner: Ada");
    assert_eq!(run.shown("lines"), "{Risk: 2, Owner: Ada}");
    run.reply_long("F", "a long record");
    assert_eq!(run.pending(), ["decode main/6:decode"]);
    run.decoded(Value::record([("y".to_owned(), Value::Null)]));
    assert_eq!(run.shown("far"), "{y: null, x: 1}");
}

#[test]
fn destructuring_takes_keys_and_nulls_what_is_missing() {
    let mut run = run(vec![destructure(&["a", "b"], session("S"))]);
    run.reply("S", "{\"a\": 1, \"c\": 2}");
    assert_eq!((run.shown("a"), run.shown("b")), ("1".into(), "null".into()));
    assert_eq!(run.warnings().len(), 1);
}

#[test]
fn truth_of_values() {
    let truth = |expr: Node| {
        run(vec![if_(
            expr,
            vec![let_("x", yes())],
            Some(vec![let_("x", no())]),
        )])
        .shown("x")
    };
    for expr in [
        yes(),
        num(2.0),
        text("keep"),
        list(vec![null()]),
        rec(vec![("k", null())]),
    ] {
        assert_eq!(truth(expr), "true");
    }
    for expr in [
        no(),
        null(),
        num(0.0),
        text(""),
        text("No."),
        list(vec![]),
        rec(vec![]),
    ] {
        assert_eq!(truth(expr), "false");
    }
    assert_eq!(value(not(text("drop"))), "true");
    assert_eq!(value(bin(BinaryOp::And, yes(), text("yes"))), "true");
    assert_eq!(value(bin(BinaryOp::Or, no(), null())), "false");
}

#[test]
fn values_stay_within_what_can_be_stored() {
    let deeper = repeat(num(100.0), None, vec![assign("x", list(vec![var("x")]))]);
    assert!(
        run(vec![let_("x", null()), deeper])
            .error()
            .starts_with("type: a value nested")
    );
    let wider = repeat(num(60.0), None, vec![assign("x", list(vec![var("x"), var("x")]))]);
    assert!(
        run(vec![let_("x", null()), wider])
            .error()
            .starts_with("type: a value nested")
    );
    let longer = repeat(num(60.0), None, vec![assign("x", add(var("x"), var("x")))]);
    assert!(
        run(vec![let_("x", text("ab")), longer])
            .error()
            .starts_with("type: a text of over")
    );
    let more = repeat(num(60.0), None, vec![assign("x", add(var("x"), var("x")))]);
    assert!(
        run(vec![let_("x", list(vec![null()])), more])
            .error()
            .starts_with("type: a list of over")
    );
}
