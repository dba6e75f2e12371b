//! Sessions: language.md, "Sessions and memory" and "Execution".

use prose_model::{
    Backoff, BindKind, Effect, ErrorKind, Event, Failure, MemoryMode, Outcome, Permission, PermissionValue,
    Persist, Props, Usage,
};

use crate::build::*;
use crate::harness::*;

#[test]
fn a_program_without_outputs_results_in_its_last_statement() {
    let mut run = run(vec![session("One"), session("Two")]);
    assert_eq!(run.pending(), ["session main/0"]);
    run.reply("One", "first");
    assert_eq!(run.pending(), ["session main/1"]);
    run.reply("Two", "second");
    assert_eq!(run.result(), "second");
    assert_eq!(run.bound(), ["anon_001 = first", "anon_002 = second"]);
}

#[test]
fn an_empty_program_completes_at_once_without_a_result() {
    assert_eq!(run(vec![]).result(), "none");
}

#[test]
fn long_texts_are_mentioned_in_a_prompt_and_handed_over_as_context() {
    let long = "line of text\n".repeat(4_000);
    let body = vec![
        let_("draft", text(&long)),
        let_("whole", text("Dear all, {draft}")),
        let_("note", text("short")),
        session("Review {draft} and {note}").prompt("Mind {whole}"),
        if_(judge("{draft} is good"), vec![], None),
    ];
    let mut run = run(body);
    let request = run.effects[0].clone();
    let Effect::Session(request) = &request.effect else {
        panic!()
    };
    assert_eq!(
        show_text(&request.task),
        "Review [draft: line of text (52000 bytes)] and short\n\n\
         Mind [whole: Dear all, line of text (52010 bytes)]"
    );
    let context: Vec<_> = request
        .context
        .iter()
        .map(|item| {
            (
                item.label.as_str(),
                item.binding.as_ref().map(|b| b.name.as_str()),
            )
        })
        .collect();
    assert_eq!(context, [("draft", Some("draft")), ("whole", Some("whole"))]);
    assert!(!request.context_given);
    let label = request.label.clone();
    run.reply(&label, "ok");
    assert_eq!(
        show_text(&run.judge().text),
        "[draft: line of text (52000 bytes)] is good"
    );
}

#[test]
fn the_result_goes_to_what_stands_around_the_session() {
    let body = vec![
        let_("a", session("A")),
        bind(BindKind::Const, "b", session("B")),
        output("c", session("C")),
        assign("a", session("D")),
        let_("l", list(vec![session("E")])),
        session("F"),
        session_of("x").edit(|s| s.name = Some("g".into())),
    ];
    let mut run = run_program(program(body).agent(agent("x", Some("Do x"))));
    run.finish(|_| None);
    let target = |label: &str| {
        let target = &run.session(label).binding;
        format!("{} {:?}", target.binding.name, target.bind_kind)
    };
    assert_eq!(target("A"), "a Let");
    assert_eq!(target("B"), "b Const");
    assert_eq!(target("C"), "c Output");
    assert_eq!(target("D"), "a Let");
    assert_eq!(target("E"), "anon_001 Anonymous");
    assert_eq!(target("F"), "anon_002 Anonymous");
    assert_eq!(target("session: x"), "g Let");
    assert_eq!(run.shown("g"), "re: session: x");
    assert_eq!(run.completion().outputs["c"], prose_model::Value::text("re: C"));
    assert_eq!(run.completion().result, None);
}

#[test]
fn a_label_is_the_first_paragraph_of_a_task_with_a_prompt() {
    let run = run(vec![session("Plan").prompt("Think\nhard")]);
    assert_eq!(show_text(&run.session("Plan").task), "Plan\n\nThink\nhard");
    assert_eq!(run.session("Plan").system, None);
}

#[test]
fn an_agents_prompt_is_system_context_or_else_the_task() {
    let body = vec![session_of("critic"), session_of("critic").prompt("Review it")];
    let run = run_program(program(vec![parallel(body)]).agent(agent("critic", Some("Be strict"))));
    let alone = run.session("session: critic");
    assert_eq!(
        (show_text(&alone.task), alone.system.clone()),
        ("Be strict".into(), None)
    );
    let own = run.session("Review it");
    assert_eq!(show_text(&own.task), "Review it");
    assert_eq!(own.system.as_ref().map(show_text), Some("Be strict".into()));
}

#[test]
fn a_session_key_replaces_the_agents() {
    let mut critic = agent("critic", Some("Be strict"));
    critic.props = Props {
        model: boxed(text("sonnet")),
        retry: boxed(num(2.0)),
        context: Some(context(vec![("k", text("agent's"))])),
        skills: vec![Box::new(text("s1"))],
        permissions: [
            ("read".into(), patterns(vec![text("a/**")])),
            ("bash".into(), Permission::Deny),
        ]
        .into(),
        ..critic.props
    };
    let own = session_of("critic").prompt("P").context(vec![]).edit(|s| {
        s.props.model = boxed(text("opus"));
        s.props.skills = vec![Box::new(text("s2"))];
        s.props.permissions = [("bash".into(), Permission::Prompt)].into();
    });
    let run = run_program(program(vec![parallel(vec![session_of("critic"), own])]).agent(critic));
    let inherited = run.session("session: critic");
    assert_eq!(inherited.model.as_deref(), Some("sonnet"));
    assert_eq!((inherited.attempt, inherited.max_attempts), (1, 3));
    assert_eq!(inherited.context.len(), 1);
    let own = run.session("P");
    assert_eq!(own.model.as_deref(), Some("opus"));
    assert_eq!(own.max_attempts, 3);
    assert!(own.context.is_empty() && own.context_given);
    assert_eq!(own.skills, ["s1", "s2"]);
    assert_eq!(own.permissions.len(), 2);
    assert_eq!(own.permissions[1].rule, PermissionValue::Prompt);
}

#[test]
fn a_session_without_context_has_none_and_says_so() {
    let run = run(vec![session("A")]);
    assert!(!run.session("A").context_given);
}

#[test]
fn context_names_the_binding_it_comes_from() {
    let mut run = run(vec![
        let_("x", text("v")),
        session("A").context(vec![("x", var("x")), ("sum", add(var("x"), text("!")))]),
    ]);
    let context = &run.session("A").context;
    assert_eq!(context[0].label, "x");
    assert_eq!(context[0].binding.as_ref().map(|b| b.name.as_str()), Some("x"));
    assert_eq!(
        (show(&context[1].value), context[1].binding.clone()),
        ("v!".into(), None)
    );
    run.finish(|_| None);
}

#[test]
fn an_agents_name_in_a_context_is_its_memory() {
    let body = vec![session("A").context(vec![("captain", var("captain"))])];
    let run = run_program(program(body).agent(persistent("captain", Persist::Project)));
    let item = &run.session("A").context[0];
    let memory = item.memory_of.as_ref().unwrap();
    assert_eq!(
        (memory.agent.as_str(), memory.mode),
        ("captain", MemoryMode::Read)
    );
}

#[test]
fn session_starts_fresh_and_resume_loads() {
    let body = vec![
        session_of("captain").prompt("First"),
        resume("captain").prompt("Then"),
    ];
    let mut run = run_program(program(body).agent(persistent("captain", Persist::Execution)));
    run.finish(|_| None);
    let mode = |label: &str| run.session(label).memory.as_ref().unwrap().mode;
    assert_eq!(mode("First"), MemoryMode::Fresh);
    assert_eq!(mode("Then"), MemoryMode::Resume);
}

#[test]
fn resume_of_an_agent_without_memory_warns_and_runs() {
    let mut run = run_program(program(vec![resume("a").prompt("P")]).agent(agent("a", None)));
    assert_eq!(run.session("P").memory, None);
    assert_eq!(run.warnings(), ["no-memory: agent 'a' keeps no memory to resume"]);
    run.finish(|_| None);
}

#[test]
fn prompts_are_evaluated_at_spawn() {
    let mut worker = agent("w", Some("Work on {topic}"));
    worker.props.permissions = [("read".into(), patterns(vec![text("{dir}/*.md")]))].into();
    let body = vec![
        let_("topic", text("cats")),
        let_("dir", text("a[1]*")),
        session_of("w").prompt("Go"),
        assign("topic", text("dogs")),
        session_of("w").prompt("Again"),
    ];
    let mut run = run_program(program(body).agent(worker));
    run.finish(|_| None);
    let system = |label: &str| run.session(label).system.as_ref().map(show_text).unwrap();
    assert_eq!(system("Go"), "Work on cats");
    assert_eq!(system("Again"), "Work on dogs");
    let PermissionValue::Patterns(patterns) = &run.session("Go").permissions[0].rule else {
        panic!()
    };
    assert_eq!(patterns, &["a[[]1[]][*]/*.md"], "inserted text means itself");
}

#[test]
fn names_in_a_permission_list_give_patterns() {
    let body = vec![
        let_("dirs", list(vec![text("a"), text("b*")])),
        session("A").edit(|s| s.props.permissions = [("write".into(), patterns(vec![var("dirs")]))].into()),
    ];
    let run = run(body);
    let rule = &run.session("A").permissions[0].rule;
    assert_eq!(*rule, PermissionValue::Patterns(vec!["a".into(), "b[*]".into()]));
}

#[test]
fn an_unknown_agent_is_an_error_of_the_run() {
    assert_eq!(
        run(vec![session_of("nobody")]).error(),
        "undefined: there is no agent 'nobody'"
    );
}

#[test]
fn retry_makes_each_attempt_its_own_effect() {
    let mut run = run(vec![let_("x", session("Flaky").retry(2, Backoff::None))]);
    run.fail("Flaky", ErrorKind::Backend, "down");
    assert_eq!(run.pending(), ["session main/0.0~2"]);
    assert_eq!(run.session("Flaky").attempt, 2);
    run.fail("Flaky", ErrorKind::Timeout, "slow");
    assert_eq!(run.pending(), ["session main/0.0~3"]);
    run.reply("Flaky", "ok");
    assert_eq!(run.shown("x"), "ok");
}

#[test]
fn after_the_last_try_the_error_tells_how_often_it_was_tried() {
    let body = vec![try_(
        vec![session("Flaky").retry(1, Backoff::None)],
        Some(vec![
            let_("n", member(var("err"), "attempts")),
            let_("k", member(var("err"), "kind")),
        ]),
        None,
    )];
    let mut run = run(body);
    run.fail("Flaky", ErrorKind::Backend, "down")
        .fail("Flaky", ErrorKind::Timeout, "slow");
    assert_eq!((run.shown("n"), run.shown("k")), ("2".into(), "timeout".into()));
}

fn waits(backoff: Backoff, failures: usize) -> Vec<u64> {
    let mut run = run(vec![session("F").retry(20, backoff)]);
    for _ in 0..failures {
        run.fail("F", ErrorKind::Backend, "down").slept();
    }
    let waits = run.effects.iter().filter_map(|issued| match &issued.effect {
        Effect::Sleep(request) => Some(request.ms),
        _ => None,
    });
    waits.collect()
}

#[test]
fn backoff_is_linear_exponential_or_a_number_of_milliseconds() {
    assert_eq!(waits(Backoff::Linear, 3), [1000, 1000, 1000]);
    assert_eq!(
        waits(Backoff::Exponential, 8),
        [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    );
    assert_eq!(waits(Backoff::Millis(250), 2), [250, 250]);
}

#[test]
fn a_wait_carries_what_the_failure_said_about_coming_back() {
    let mut run = run(vec![session("F").retry(1, Backoff::None)]);
    let id = run.open[0].clone();
    let failure = Failure {
        kind: ErrorKind::Backend,
        message: "busy".into(),
        retry_after_ms: Some(700),
        usage: Usage::default(),
    };
    run.resolve(&id, Outcome::Failed(failure));
    let Effect::Sleep(request) = &run.get(&run.open[0]).effect else {
        panic!("{:?}", run.pending())
    };
    assert_eq!((request.ms, request.retry_after_ms), (0, Some(700)));
    // Who watches sees how long it really is.
    let shown = run.events.iter().rev().find_map(|event| match event {
        Event::SleepStarted { ms, .. } => Some(*ms),
        _ => None,
    });
    assert_eq!(shown, Some(700));
    assert_eq!(run.pending(), ["sleep main/0~2:sleep"]);
    run.slept();
    assert_eq!(run.pending(), ["session main/0~2"]);
}

#[test]
fn an_empty_result_is_a_failure() {
    let mut run = run(vec![session("E").retry(1, Backoff::None)]);
    run.reply("E", "").reply("E", " \n ");
    assert_eq!(run.error(), "empty: the session returned nothing");
    assert_eq!(run.completion().error.as_ref().unwrap().attempts, 2);
}

#[test]
fn a_result_that_talks_of_failure_is_a_result() {
    let mut run = run(vec![session("E")]);
    run.reply("E", "ERROR: failed");
    assert_eq!(run.result(), "ERROR: failed");
}

#[test]
fn a_spent_budget_is_not_tried_again() {
    let mut run = run(vec![session("E").retry(5, Backoff::None)]);
    run.fail("E", ErrorKind::Budget, "no money left");
    assert_eq!(run.error(), "budget: no money left");
}

#[test]
fn in_an_arrow_each_session_gets_the_one_before_as_context() {
    let mut run = run(vec![let_(
        "x",
        arrow(vec![session("A"), session("B"), session("C")]),
    )]);
    run.reply("A", "a").reply("B", "b");
    let context = &run.session("C").context;
    assert_eq!(context.len(), 1);
    assert_eq!(
        (context[0].label.as_str(), show(&context[0].value)),
        ("anon_002", "b".into())
    );
    assert_eq!(run.session("C").binding.binding.name, "x");
    run.reply("C", "c");
    assert_eq!(run.shown("x"), "c");
    assert_eq!(run.bound(), ["anon_001 = a", "anon_002 = b", "x = c"]);
}

#[test]
fn sessions_in_one_right_side_run_left_to_right() {
    let mut run = run(vec![let_("x", list(vec![session("A"), session("B")]))]);
    assert_eq!(run.sessions(), ["A"]);
    run.reply("A", "a");
    assert_eq!(run.sessions(), ["B"]);
    run.reply("B", "b");
    assert_eq!(run.shown("x"), "[a, b]");
}

#[test]
fn what_a_block_gives_an_arrow_is_no_sessions_binding() {
    let f = block("f", &[], vec![let_("a", session("A")), let_("b", text("other"))]);
    let body = vec![arrow(vec![call("f", vec![]), session("B")])];
    let mut run = run_program(program(body).block(f));
    run.reply("A", "ok");
    let given = &run.session("B").context;
    assert_eq!((given.len(), given[0].label.as_str()), (1, "previous"));
    assert_eq!(given[0].binding, None);
}
