//! Inputs: language.md, "Execution".

use prose_model::{Ask, Decision, ErrorKind, Input, Op};

use crate::build::*;
use crate::harness::*;

fn start(body: Vec<prose_model::Node>, inputs: &[(&str, &str)]) -> Run {
    Run::start(bundle(vec![program(body)]), inputs)
}

#[test]
fn leading_inputs_are_asked_at_once_before_anything_runs() {
    let body = vec![input("a", "A?"), input("b", "B?"), session("S {a} {b}")];
    let mut run = start(body, &[]);
    assert_eq!(run.pending(), ["input main/0", "input main/1"]);
    run.answer("b", "2").answer("a", "1");
    assert_eq!(run.sessions(), ["S 1 2"]);
}

#[test]
fn a_supplied_value_binds_without_asking() {
    let mut run = start(
        vec![input("a", "A?"), input("b", "B?"), session("S {a} {b}")],
        &[("a", "1")],
    );
    assert_eq!(run.pending(), ["input main/1"]);
    run.answer("b", "2");
    assert_eq!(run.sessions(), ["S 1 2"]);
    assert_eq!(run.bound(), ["a = 1", "b = 2"]);
}

#[test]
fn a_leading_input_whose_prompt_needs_another_comes_after_it() {
    let mut run = start(
        vec![input("a", "A?"), input("b", "B for {a}?"), session("S")],
        &[],
    );
    assert_eq!(run.pending(), ["input main/0"]);
    run.answer("a", "cats");
    assert_eq!(show_text(&run.input("b").prompt), "B for cats?");
}

#[test]
fn an_input_in_the_middle_pauses_only_its_branch() {
    let body = vec![
        parallel(vec![
            do_(vec![input("go", "Go on?"), session("A {go}")]),
            session("B"),
        ]),
        session("C"),
    ];
    let mut run = start(body, &[]);
    assert_eq!(run.pending(), ["input main/0.0.0", "session main/0.1"]);
    run.reply("B", "b");
    assert_eq!(run.pending(), ["input main/0.0.0"]);
    run.answer("go", "yes");
    assert_eq!(run.sessions(), ["A yes"]);
}

#[test]
fn several_inputs_can_wait_at_once() {
    let body = vec![session("S"), parallel(vec![input("a", "A?"), input("b", "B?")])];
    let mut run = start(body, &[]);
    run.reply("S", "s");
    assert_eq!(run.pending(), ["input main/1.0", "input main/1.1"]);
    run.answer("b", "2").answer("a", "1");
    assert_eq!((run.shown("a"), run.shown("b")), ("1".into(), "2".into()));
}

#[test]
fn a_supplied_value_serves_the_first_execution_only() {
    let mut run = start(
        vec![session("S"), repeat(num(2.0), None, vec![input("go", "Go?")])],
        &[("go", "yes")],
    );
    run.reply("S", "s");
    assert_eq!(run.pending(), ["input main/1[1]>main/1.1"]);
    run.answer("go", "no");
    assert_eq!(run.bound()[1..], ["go = yes".to_owned(), "go = no".to_owned()]);
}

#[test]
fn choices_come_from_the_prompts_last_parenthesis() {
    let run = start(vec![input("ok", "Deploy (now)? (yes/no)")], &[]);
    assert_eq!(run.input("ok").options, ["yes", "no"]);
}

#[test]
fn an_answer_has_to_be_one_of_the_choices_and_is_kept_as_the_program_spells_it() {
    let ask = || {
        start(
            vec![
                session("S"),
                input("go", "Deploy? (Yes/No)"),
                session("Then {go}"),
            ],
            &[],
        )
    };
    let mut run = ask();
    run.reply("S", "s").answer("go", " yes ");
    assert_eq!(run.sessions(), ["Then Yes"]);
    let mut refused = ask();
    refused.reply("S", "s").answer("go", "maybe");
    assert_eq!(refused.error(), "input: 'go' has to be one of: Yes, No");
}

#[test]
fn a_supplied_value_is_held_to_the_choices() {
    let given = |value| {
        start(
            vec![input("go", "Deploy? (Yes/No)"), session("Then {go}")],
            &[("go", value)],
        )
    };
    assert_eq!(given("yes").sessions(), ["Then Yes"]);
    let mut run = given("maybe");
    assert_eq!(run.pending(), ["input main/0"]);
    run.answer("go", "no");
    assert_eq!(run.sessions(), ["Then No"]);
}

#[test]
fn a_discretion_is_put_by_the_judge_first() {
    let mut run = start(vec![session("S"), discretion_input("next", "What now?")], &[]);
    run.reply("S", "s");
    assert_eq!(run.pending(), ["judge main/1:question"]);
    assert_eq!(run.judge().ask, Ask::Question);
    let options = vec!["ship".to_owned(), "wait".to_owned()];
    run.decide(Decision::Question {
        prompt: "Ship it?".into(),
        options: options.clone(),
    });
    assert_eq!(run.pending(), ["input main/1"]);
    assert_eq!(show_text(&run.input("next").prompt), "Ship it?");
    assert_eq!(run.input("next").options, options);
    run.answer("next", "ship");
    assert_eq!(run.result(), "ship");
}

#[test]
fn a_discretion_is_put_in_the_programs_words_when_the_judge_fails() {
    let mut run = start(vec![discretion_input("next", "What now? (a, b)")], &[]);
    let id = run.open[0].clone();
    run.resolve(&id, failed(ErrorKind::Backend, "no judge"));
    assert_eq!(show_text(&run.input("next").prompt), "What now? (a, b)");
    assert_eq!(run.input("next").options, ["a", "b"]);
}

#[test]
fn a_supplied_discretion_asks_nobody() {
    assert_eq!(
        start(vec![discretion_input("n", "What?")], &[("n", "v")]).result(),
        "v"
    );
}

#[test]
fn a_default_is_used_when_nothing_was_supplied() {
    let with_default = || {
        let default = Some(list(vec![text("a")]));
        vec![node(Op::Input(Box::new(Input {
            name: "xs".into(),
            prompt: None,
            discretion: false,
            default,
        })))]
    };
    assert_eq!(start(with_default(), &[]).result(), "[a]");
    assert_eq!(start(with_default(), &[("xs", "given")]).result(), "given");
}

#[test]
fn a_refused_input_is_an_error() {
    let mut run = start(
        vec![try_(
            vec![input("a", "A?")],
            Some(vec![let_("k", member(var("err"), "kind"))]),
            None,
        )],
        &[],
    );
    let id = run.open[0].clone();
    run.resolve(&id, failed(ErrorKind::Input, "nobody there"));
    assert_eq!(run.shown("k"), "input");
}
