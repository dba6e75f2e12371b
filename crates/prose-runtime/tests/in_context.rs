//! Runs whose state is in memory: nothing on disk, markers in place of `state.md`.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use expect_test::expect;
use prose_model::{Event, RunEvent, RunOptions, RunStatus, StateIn};
use prose_runtime::{Attach, RunError, RunRequest, RunResult};

const PROGRAM: &str = r#"agent scribe:
  persist: true

block review(what):
  session "Review {what}"

let research = session "Look around"
parallel:
  a = session "Analyze a"
  b = session "Analyze b"
loop until **complete** (max: 3):
  session "Put together"
    context: { a, b, research }
do review("it")
resume: scribe
  prompt: "first"
let last = resume: scribe
  prompt: "second"
try:
  session "breaks"
catch as err:
  output x = session "mended"
"#;

const MOCK: &str = r#"
[[session]]
prompt = "breaks"
fail = "timeout"
"#;

async fn in_memory(project: &Project) -> (RunResult, Vec<Arc<RunEvent>>) {
    let engine = project.engine();
    let request = RunRequest {
        bundle: project.bundle(),
        program: "main.prose".into(),
        inputs: Default::default(),
        options: RunOptions {
            state: StateIn::Memory,
            ..RunOptions::default()
        },
        backend: simulate(&engine, MOCK),
        attach: Attach::default(),
    };
    let mut handle = engine.start(request).await.unwrap();
    let events = all_events(&mut handle).await;
    (handle.join().await.unwrap(), events)
}

#[tokio::test]
async fn nothing_is_on_disk_and_markers_say_where_the_run_stands() {
    let project = Project::new(PROGRAM);
    std::fs::remove_dir(project.root().join(".prose")).unwrap();
    let (result, events) = in_memory(&project).await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    assert_eq!(outputs(&result)["x"], "[simulated] mended");
    assert_complete(&events);
    let left: Vec<_> = std::fs::read_dir(project.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["main.prose"]);

    let lines: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::Narration { line } => Some(line.as_str()),
            _ => None,
        })
        .collect();
    expect![[r#"
        main.prose begins; state mode: in-context (nothing is written, nothing can be resumed)
        1→ research ✓
        ∥ [a b]
        2→ a ✓
        ∥ [a✓ b→]
        3→ b ✓
        ∥ [a✓ b✓]
        ∥ done
        loop:1/3
        4→ ✓
        loop:1/3 exit(**complete**)
        [Frame+] #1 review
        5→ ✓
        [Frame-] #1 review done
        6→ ✓
        7→ last ✓
        try→
        8→ ✗ [simulated] failure: timeout
        9→ x ✓
        ---end
    "#]]
    .assert_eq(&(lines.join("\n") + "\n"));

    let engine = project.engine();
    let error = engine.resume(resume_request(&result.run_id)).await.err().unwrap();
    assert!(matches!(error, RunError::NotKept { .. }), "{error}");
    assert!(error.to_string().contains("its state was in context"));
}

#[tokio::test]
async fn large_values_stay_in_memory_too() {
    let project = Project::new("let big = session \"write\"\nlet list = [big, big]\noutput y = list\n");
    std::fs::remove_dir(project.root().join(".prose")).unwrap();
    let engine = project.engine();
    let reply = "long line\\n".repeat(2000);
    let request = RunRequest {
        bundle: project.bundle(),
        program: "main.prose".into(),
        inputs: Default::default(),
        options: RunOptions {
            state: StateIn::Memory,
            ..RunOptions::default()
        },
        backend: simulate(&engine, &format!("[[session]]\nreply = \"{reply}\"\n")),
        attach: Attach::default(),
    };
    let result = engine.start(request).await.unwrap().join().await.unwrap();
    assert!(outputs(&result)["y"].len() > 40_000);
    assert!(!project.root().join(".prose").exists());
}
