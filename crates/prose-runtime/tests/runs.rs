//! Whole runs with the simulate backend: results, events, files.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use expect_test::expect;
use prose_model::{Decision, Event, RunStatus};
use prose_runtime::RunResult;
use prose_runtime::runs::{RunState, list_runs};

#[tokio::test]
async fn a_program_runs_to_its_end_and_leaves_the_seed_s_files() {
    let project = Project::new(
        r#"agent poet:
  model: haiku
  prompt: "You write poems."

let poem = session: poet
  prompt: "Write about a lighthouse"

output title = session "Give it a title"
  context: poem
"#,
    );
    let mut handle = project
        .start(
            &project.engine(),
            "[[session]]\nagent = \"poet\"\nreply = \"Light.\\nNight.\"\ntokens = { in = 3, out = 4, cost_usd = 0.5 }\n",
        )
        .await;
    let events = all_events(&mut handle).await;
    let result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    assert_eq!(outputs(&result)["title"], "[simulated] Give it a title");
    assert_eq!(
        result.output_text().unwrap().as_deref(),
        Some("[simulated] Give it a title")
    );
    assert_eq!((result.usage.input_tokens, result.usage.cost_usd), (3, Some(0.5)));
    assert_complete(&events);
    assert!(matches!(
        &events[0].event,
        Event::RunStarted {
            simulated: true,
            resumed: false,
            ..
        }
    ));
    assert!(matches!(
        &events.last().unwrap().event,
        Event::RunFinished {
            status: RunStatus::Completed,
            ..
        }
    ));

    let files = project.files(&result.run_id);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    expect![[r#"
        [
            "bindings/poem.md",
            "bindings/title.md",
            "bundle.json",
            "journal.jsonl",
            "lock",
            "program.prose",
            "state.md",
        ]
    "#]]
    .assert_debug_eq(&names);
    assert!(
        files["bindings/poem.md"].ends_with("---\n\nLight.\nNight.\n"),
        "{}",
        files["bindings/poem.md"]
    );
    assert!(files["state.md"].contains("poem"), "{}", files["state.md"]);

    let summary = &list_runs(project.root()).unwrap()[0];
    assert_eq!(
        summary.state,
        RunState::Ended {
            status: RunStatus::Completed
        }
    );
    assert_eq!((summary.sessions, summary.sessions_done), (2, 2));
}

#[tokio::test]
async fn an_output_without_a_name_is_what_is_printed() {
    let project = Project::new("output a = 1\noutput b = 2\noutput \"both\"\n");
    let mut handle = project.start(&project.engine(), "").await;
    all_events(&mut handle).await;
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["b"], "2");
    assert_eq!(result.output_text().unwrap().as_deref(), Some("both"));
}

#[tokio::test]
async fn virtual_time_costs_nothing_and_orders_outcomes() {
    let project = Project::new(
        r#"let log = []
parallel:
  do:
    session "slow"
    log = log + ["slow"]
  do:
    session "fast"
    log = log + ["fast"]
let retried = session "flaky"
  retry: 2
  backoff: exponential
output all = log
output last = retried
"#,
    );
    let mock = r#"
[[session]]
prompt = "slow"
delay_ms = 86400000
[[session]]
prompt = "fast"
delay_ms = 1000
[[session]]
prompt = "flaky"
nth = 1
fail = "timeout"
[[session]]
prompt = "flaky"
nth = 2
fail = { kind = "backend", retry_after_ms = 3600000 }
"#;
    let result = project.run(mock).await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let outputs = outputs(&result);
    assert_eq!(
        result.to_json(&result.outputs["all"]).unwrap().to_string(),
        r#"["fast","slow"]"#
    );
    assert_eq!(outputs["last"], "[simulated] flaky");
}

#[tokio::test]
async fn time_limits_cut_a_session_in_virtual_time_too() {
    let long = "the session took longer than";
    let silent = "the session reported nothing for";
    for (timeout_ms, idle_timeout_ms, message) in [
        (Some(1000), None, format!("{long} 1 s")),
        (None, Some(2000), format!("{silent} 2 s")),
        (Some(3000), Some(2000), format!("{silent} 2 s")),
        (Some(1000), Some(2000), format!("{long} 1 s")),
    ] {
        let project = Project::new("let x = session \"slow\"\n");
        let engine = project.engine();
        let mut request = prose_runtime::RunRequest {
            bundle: project.bundle(),
            program: "main.prose".into(),
            inputs: Default::default(),
            options: Default::default(),
            backend: simulate(&engine, "[defaults]\ndelay_ms = 5000\n"),
            attach: Default::default(),
        };
        request.options.timeout_ms = timeout_ms;
        request.options.idle_timeout_ms = idle_timeout_ms;
        let result = engine.start(request).await.unwrap().join().await.unwrap();
        assert_eq!(result.status, RunStatus::Failed);
        let error = result.error.unwrap();
        assert_eq!(
            (error.kind, error.message),
            (prose_model::ErrorKind::Timeout, message)
        );
    }
}

#[tokio::test]
async fn memory_of_a_persistent_agent_goes_from_session_to_session() {
    let project = Project::new(
        r#"agent captain:
  persist: project
  prompt: "You decide."

resume: captain
  prompt: "first"
parallel:
  resume: captain
    prompt: "second"
  resume: captain
    prompt: "third"
"#,
    );
    let mut handle = project.start(&project.engine(), "").await;
    let events = all_events(&mut handle).await;
    let result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let files = project.files(&result.run_id);
    let agents: Vec<&str> = files
        .keys()
        .filter(|name| name.starts_with("agents/"))
        .map(String::as_str)
        .collect();
    expect![[r#"
        [
            "agents/captain/.lock",
            "agents/captain/captain-001.md",
            "agents/captain/captain-002.md",
            "agents/captain/captain-003.md",
            "agents/captain/memory.md",
        ]
    "#]]
    .assert_debug_eq(&agents);
    expect![[r#"
        ## Segment 1 Summary

        - first: [simulated] first
        ## Segment 2 Summary

        - second: [simulated] second
        ## Segment 3 Summary

        - third: [simulated] third
    "#]]
    .assert_eq(&files["agents/captain/memory.md"]);
    assert_eq!(
        notices(&events),
        ["`captain` is resumed but has no memory yet; it starts without"]
    );
    // Simulated sessions change nothing that real ones know.
    assert!(!project.root().join(".prose/agents").exists());
}

#[tokio::test]
async fn large_results_live_in_the_store_and_are_decoded_there() {
    let items: Vec<String> = (0..400).map(|n| format!("- item number {n}")).collect();
    let project = Project::new(
        r#"let found = session "list them"
let count = 0
for item in found:
  count = count + 1
output count = count
output found = found
output same = found == found
output odd = session "Use {found}"
"#,
    );
    let mock = format!(
        "[[session]]\nprompt = \"^list\"\nreply = '''\n{}\n'''\n[[session]]\nprompt = \"number 399\"\nreply = \"saw it\"\n",
        items.join("\n")
    );
    let result = project.run(&mock).await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let outputs = outputs(&result);
    assert_eq!(
        (outputs["count"].as_str(), outputs["same"].as_str()),
        ("400", "true")
    );
    assert_eq!(outputs["found"], items.join("\n"));
    assert_eq!(outputs["odd"], "saw it");
    let files = project.files(&result.run_id);
    assert!(
        files.keys().any(|name| name.starts_with("values/")),
        "{:?}",
        files.keys()
    );
}

/// What the judge says: decision, confidence, reason of every answer.
async fn judged(project: &Project, mock: &str) -> (Vec<(Decision, f64, String)>, RunResult) {
    let mut handle = project.start(&project.engine(), mock).await;
    let events = all_events(&mut handle).await;
    let verdicts = events.iter().filter_map(|event| match &event.event {
        Event::JudgeFinished { verdict, .. } => verdict.clone(),
        _ => None,
    });
    let verdicts = verdicts.map(|verdict| (verdict.decision, verdict.confidence, verdict.reason));
    (verdicts.collect(), handle.join().await.unwrap())
}

#[tokio::test]
async fn a_record_gives_the_judges_reasons_again() {
    let project = Project::new(
        "loop until **it is good** (max: 5):\n  session \"write\"\nif **it is short**:\n  session \"print\"\n",
    );
    let mock = "[[verdict]]\ncondition = \"good\"\nanswers = [false, true]\nreasons = [\"too \\\"long\\\"\", \"fine\"]\nconfidences = [0.25]\n";
    let (first, result) = judged(&project, mock).await;
    assert_eq!(
        first,
        [
            (Decision::No, 0.25, "too \"long\"".to_owned()),
            (Decision::Yes, 0.25, "fine".to_owned()),
            (Decision::Yes, 1.0, "[simulated]".to_owned()),
        ]
    );
    let history = prose_runtime::runs::history(&prose_runtime::runs::RunDir::at(&result.dir).unwrap());
    let record = prose_runtime::runs::Recording::of(&history, std::path::Path::new("a.mock.toml"));
    assert_eq!(record.problems, [""; 0]);
    assert_eq!(record.text.matches("reasons").count(), 1, "{}", record.text);
    assert_eq!(judged(&project, &record.text).await.0, first, "{}", record.text);
}

/// The machine is not where a cancellation has a place in the journal, and won't be for long.
#[tokio::test]
async fn a_run_that_computes_can_be_stopped() {
    let project = Project::new("repeat 900000:\n  let x = 1\noutput y = \"done\"\n");
    let engine = project.engine();
    let handle = project.start(&engine, "").await;
    handle.cancel();
    let result = handle.join().await.unwrap();
    assert!(
        matches!(result.status, RunStatus::Interrupted | RunStatus::Cancelled),
        "{result:?}"
    );
    assert!(result.dir.join("state.md").exists());
}
