//! A run that is killed after any journal record and resumed ends as if nothing had happened, and asks nothing again
//! that was answered.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use common::*;
use indexmap::IndexMap;
use prose_agents::{
    Backend, Capabilities, DecodeInput, Judge, JudgeInput, Reading, SessionBackend, SessionReply,
    SessionSpawn,
};
use prose_model::{EffectId, Failure, RecordBody, RunStatus, Verdict};
use prose_runtime::runs::{RunDir, RunState, read_journal, run_summary};
use prose_runtime::{Engine, Fault, RunError, RunResult};

/// Uses every construct, with the places where order matters: races, retries, waits, shared memory, cancellation.
const EVERYTHING: &str = r#"input topic: "What about"

agent critic:
  model: sonnet
  persist: true
  prompt: "You are strict."

agent worker:
  model: haiku

block refine(text, depth):
  if depth <= 0 or **{text} is short enough**:
    output session: worker
      prompt: "finish {text}"
  let better = session: worker
    prompt: "refine {text}"
  output do refine(better, depth - 1)

let log = []
let plan = session: critic
  prompt: "plan {topic}"

parallel:
  left = session "left side"
    context: plan
  right = resume: critic
    prompt: "right side"
  third = resume: critic
    prompt: "third side"

parallel ("first"):
  a = session "hare"
  do:
    b = session "tortoise"
    try:
      session "never done"
    finally:
      session "clean up after the tortoise"

parallel (on-fail: "continue"):
  good = session "good branch"
  bad = session "bad branch"

for item, i in ["x", "y"]:
  let step = session "step {i} for {item}"
  log = log + [step]

parallel for name in ["n1", "n2", "n3"]:
  let inner = session "parallel {name}"
  log = log + [inner]

loop until **the text is good** (max: 4) as round:
  let draft = session "draft {round}"

repeat 2 as r:
  session "repeat {r}"

choice **which way**:
  option "north":
    log = log + ["north"]
  option "south":
    log = log + [session "go south"]

try:
  let fragile = session "fragile"
    retry: 2
    backoff: exponential
  throw "enough"
catch as err:
  log = log + [err.message]
finally:
  session "always"

let found = session "list the parts"
let doubled = found | pmap:
  session "double {item}"
let kept = doubled | filter:
  **keep {item}**
let total = kept | reduce(acc, item):
  session "add {acc} and {item}"

let chained = session "one" -> session "two"
let refined = do refine("start", 2)
output log = log
output total = total
output refined = refined
output chained = chained
"#;

const MOCK: &str = r#"
[[input]]
name = "topic"
value = "bees"
[[session]]
prompt = "^left"
delay_ms = 100
[[session]]
prompt = "^right"
delay_ms = 70
[[session]]
prompt = "hare"
delay_ms = 200
[[session]]
prompt = "tortoise$"
nth = 1
delay_ms = 30
[[session]]
prompt = "never done"
delay_ms = 100000
[[session]]
prompt = "bad branch"
fail = "backend"
[[session]]
prompt = "parallel n1"
delay_ms = 30
[[session]]
prompt = "parallel n2"
delay_ms = 10
[[session]]
prompt = "parallel n3"
delay_ms = 20
[[session]]
prompt = "fragile"
nth = 1
fail = { kind = "backend", retry_after_ms = 50 }
[[session]]
prompt = "fragile"
nth = 2
fail = "timeout"
[[session]]
prompt = "list the parts"
reply = "no list at all"
[[session]]
prompt = "^double"
nth = 2
delay_ms = 5
[[decode]]
text = "no list"
value = ["p1", "p2", "p3"]
[[verdict]]
condition = "is good"
answers = [false, false, true]
[[verdict]]
condition = "which way"
answers = ["south"]
[[verdict]]
condition = "short enough"
answers = [false]
"#;

/// Counts what a backend is asked, by process.
struct Counting {
    inner: Backend,
    asked: Arc<Mutex<Vec<EffectId>>>,
}

impl Counting {
    fn wrap(inner: Backend) -> (Backend, Arc<Mutex<Vec<EffectId>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let counting = Arc::new(Counting {
            inner: inner.clone(),
            asked: asked.clone(),
        });
        (
            Backend {
                sessions: counting.clone(),
                judge: counting,
                ..inner
            },
            asked,
        )
    }
}

#[async_trait]
impl SessionBackend for Counting {
    fn name(&self) -> &str {
        self.inner.sessions.name()
    }
    fn capabilities(&self) -> Capabilities {
        self.inner.sessions.capabilities()
    }
    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        self.asked.lock().unwrap().push(session.effect.clone());
        self.inner.sessions.spawn(session).await
    }
}

#[async_trait]
impl Judge for Counting {
    fn name(&self) -> &str {
        self.inner.judge.name()
    }
    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        self.asked.lock().unwrap().push(input.effect.clone());
        self.inner.judge.decide(input).await
    }
    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        self.asked.lock().unwrap().push(input.effect.clone());
        self.inner.judge.decode(input).await
    }
}

/// What has to be the same however often a run was interrupted.
#[derive(Debug, PartialEq)]
struct EndState {
    status: RunStatus,
    outputs: IndexMap<String, String>,
    files: IndexMap<String, String>,
}

fn end_state(project: &Project, result: &RunResult) -> EndState {
    let mut files = project.files(&result.run_id);
    files.retain(|name, _| {
        name.starts_with("bindings/") || name.starts_with("agents/") || name.starts_with("imports/")
    });
    // Archived memory lies in a folder named after the run; state.md of called programs holds times.
    let files = files
        .into_iter()
        .filter(|(name, _)| !name.ends_with("state.md"))
        .map(|(name, text)| (name.replace(result.run_id.as_str(), "RUN"), text))
        .collect();
    EndState {
        status: result.status,
        outputs: outputs(result),
        files,
    }
}

#[track_caller]
fn assert_same(found: &EndState, expected: &EndState, stop: u64) {
    let names = |state: &EndState| state.files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "after record {stop}");
    for (name, text) in &expected.files {
        assert_eq!(&found.files[name], text, "{name} after record {stop}");
    }
    assert_eq!(found, expected, "after record {stop}");
}

fn answered(project: &Project, run: &prose_model::RunId) -> (u64, HashSet<EffectId>) {
    let dir = RunDir::find(project.root(), run).unwrap();
    let records = read_journal(&dir.journal()).unwrap().records;
    let answered = records.iter().filter_map(|record| match &record.body {
        RecordBody::Outcome { id, .. } => Some(id.clone()),
        _ => None,
    });
    (records.len() as u64, answered.collect())
}

fn tally(asked: &Mutex<Vec<EffectId>>) -> HashMap<EffectId, u32> {
    let mut tally = HashMap::new();
    for id in asked.lock().unwrap().iter() {
        *tally.entry(id.clone()).or_insert(0) += 1;
    }
    tally
}

/// Runs until the given record, as if the process died there.
async fn killed_run(
    project: &Project,
    mock: &str,
    records: u64,
) -> (prose_model::RunId, HashMap<EffectId, u32>) {
    let engine = project.engine_with(Some(Fault::StopAfter(records)));
    let (backend, asked) = Counting::wrap(simulate(&engine, mock));
    let handle = project.start_with(&engine, backend, Default::default()).await;
    let run_id = handle.run_id().clone();
    match handle.join().await {
        Err(RunError::Fault(n)) => assert_eq!(n, records),
        other => panic!("the run was to stop after record {records}: {other:?}"),
    }
    (run_id, tally(&asked))
}

/// Kills a run after every record of its journal and resumes it each time.
async fn check_every_kill(project: &Project, mock: &str, least: u64) {
    let whole = project.run(mock).await;
    let expected = end_state(project, &whole);
    let (records, all) = answered(project, &whole.run_id);
    assert!(records > least, "{records} records, {whole:?}");

    // The whole of it is `cargo xtask crash` for, which ends processes; here a part is enough.
    let step = if std::env::var("PROSE_CRASH").is_ok_and(|value| value == "full") {
        1
    } else {
        5
    };
    for stop in (2..=records).step_by(step) {
        let (run_id, before) = killed_run(project, mock, stop).await;
        let (at_kill, known) = answered(project, &run_id);
        assert_eq!(at_kill, stop);
        let engine = project.engine();
        let (backend, asked) = Counting::wrap(simulate(&engine, mock));
        let mut request = resume_request(&run_id);
        request.backend = Some(backend);
        let mut handle = engine.resume(request).await.unwrap();
        let events = all_events(&mut handle).await;
        let result = handle.join().await.unwrap();
        assert_same(&end_state(project, &result), &expected, stop);
        assert_complete(&events);
        for (id, times) in &tally(&asked) {
            assert!(
                !known.contains(id),
                "{id} was asked again although answered, after record {stop}"
            );
            assert_eq!(*times, 1, "{id}");
        }
        assert!(before.values().all(|times| *times == 1));
        let (_, outcomes) = answered(project, &run_id);
        assert_eq!(outcomes, all, "after record {stop}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_record_and_resumed_it_ends_the_same() {
    check_every_kill(&Project::new(EVERYTHING), MOCK, 120).await;
}

/// What the other program lacks: called programs, memory that starts afresh, memory as a value, a cancel scope whose
/// `finally` runs into its deadline, large results, destructuring, a failure at the end.
const MORE: &str = r#"use "helper.prose" as helper

agent critic:
  persist: true
  prompt: "You are strict."

agent keeper:
  persist: project
  prompt: "You keep."

session: critic
  prompt: "first"
resume: critic
  prompt: "second"
session: critic
  prompt: "afresh"
resume: keeper
  prompt: "keep this"
let told = session "What does the critic know"
  context: critic
let known = critic

parallel ("first"):
  a = session "quick"
  do:
    try:
      session "slow"
    finally:
      session "endless clean-up"
      session "never reached"
session "much later"

let big = session "long list"
let { name, size } = session "a record"
for item in big:
  if item == "- none":
    session "unreachable"
let sum = size + 1
let answer = helper(topic: "bees {name} {sum}")
parallel for part in ["p", "q"]:
  helper(topic: part)
output answer = answer
output known = known
throw "in the end"
"#;

const HELPER: &str = r#"input topic: "What"
agent inner:
  persist: true
  prompt: "You help."
resume: inner
  prompt: "think about {topic}"
let said = resume: inner
  prompt: "answer about {topic}"
output said = said
output memo = inner
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_for_called_programs_memory_deadlines_and_failures() {
    let lines: String = (0..600).map(|n| format!("- entry {n}\n")).collect();
    let mock = format!(
        r#"
[[session]]
prompt = "^slow"
delay_ms = 900000
[[session]]
prompt = "^endless"
delay_ms = 900000
[[session]]
prompt = "^much later"
delay_ms = 3600000
[[session]]
prompt = "^long"
reply = '''
{lines}'''
[[session]]
prompt = "a record"
reply = "Name: Ann\nSize: 41"
[[session]]
prompt = "think about q"
delay_ms = 5
"#
    );
    let project = Project::new(MORE);
    std::fs::write(project.root().join("helper.prose"), HELPER).unwrap();
    let whole = project.run(&mock).await;
    assert_eq!(whole.status, RunStatus::Failed);
    assert_eq!(
        whole.error.as_ref().map(|error| error.message.as_str()),
        Some("in the end"),
        "{whole:?}"
    );
    let outputs = outputs(&whole);
    assert_eq!(
        outputs["known"],
        "## Segment 1 Summary\n\n- afresh: [simulated] afresh\n"
    );
    let answer = &outputs["answer"];
    assert!(answer.contains("answer about bees Ann 411"), "{answer}");
    assert!(
        answer.contains("- think about bees Ann 411: [simulated] think"),
        "{answer}"
    );
    let dir = RunDir::find(project.root(), &whole.run_id).unwrap();
    let deadlines = read_journal(&dir.journal())
        .unwrap()
        .records
        .into_iter()
        .filter(|record| {
            matches!(
                &record.body,
                RecordBody::Cancel {
                    what: prose_model::CancelWhat::Deadline(_)
                }
            )
        });
    assert_eq!(deadlines.count(), 1);
    check_every_kill(&project, &mock, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_and_again_it_still_ends_the_same() {
    let project = Project::new(EVERYTHING);
    let whole = project.run(MOCK).await;
    let expected = end_state(&project, &whole);
    let (mut run_id, mut stop) = (None, 7);
    let mut asked_in_all: HashMap<EffectId, u32> = HashMap::new();
    let result = loop {
        let engine: Engine = project.engine_with(Some(Fault::StopAfter(stop)));
        let (backend, asked) = Counting::wrap(simulate(&engine, MOCK));
        let handle = match &run_id {
            None => project.start_with(&engine, backend, Default::default()).await,
            Some(run_id) => {
                let mut request = resume_request(run_id);
                request.backend = Some(backend);
                engine.resume(request).await.unwrap()
            }
        };
        run_id = Some(handle.run_id().clone());
        let ended = handle.join().await;
        for (id, times) in tally(&asked) {
            *asked_in_all.entry(id).or_default() += times;
        }
        match ended {
            Ok(result) => break result,
            Err(RunError::Fault(_)) => stop += 7,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(stop > 120);
    assert_eq!(end_state(&project, &result), expected);
    // Each process makes at most one attempt at what has no outcome.
    assert!(
        asked_in_all.values().sum::<u32>() < 2 * asked_in_all.len() as u32,
        "{asked_in_all:?}"
    );
}

#[tokio::test]
async fn two_runs_are_the_same_to_the_byte() {
    let project = Project::new(EVERYTHING);
    let strip = |run: &prose_model::RunId| {
        let dir = RunDir::find(project.root(), run).unwrap();
        let records = read_journal(&dir.journal()).unwrap().records;
        records
            .into_iter()
            .map(|record| match record.body {
                RecordBody::Header(_) => String::new(),
                body => serde_json::to_string(&body).unwrap(),
            })
            .collect::<Vec<_>>()
    };
    let (a, b) = (project.run(MOCK).await, project.run(MOCK).await);
    assert_eq!(strip(&a.run_id), strip(&b.run_id));
}

#[tokio::test]
async fn a_finished_run_tells_its_result_again_and_repairs_its_files() {
    let project = Project::new("output x = session \"go\"\n");
    let first = project.run("").await;
    let binding = first.dir.join("bindings/x.md");
    let text = std::fs::read_to_string(&binding).unwrap();
    std::fs::write(&binding, "damaged").unwrap();
    let again = project.resume(&project.engine(), &first.run_id).await.unwrap();
    assert_eq!(
        (again.status, outputs(&again)),
        (RunStatus::Completed, outputs(&first))
    );
    assert_eq!(std::fs::read_to_string(&binding).unwrap(), text);
    let dir = RunDir::find(project.root(), &first.run_id).unwrap();
    assert_eq!(
        run_summary(&dir).state,
        RunState::Ended {
            status: RunStatus::Completed
        }
    );
}

#[tokio::test]
async fn a_changed_program_is_refused_unless_accepted() {
    let project = Project::new("let x = session \"one\"\noutput y = session \"two\"\n");
    let (run_id, _) = killed_run(&project, "", 6).await;
    std::fs::write(
        project.root().join("main.prose"),
        "output y = session \"other\"\n",
    )
    .unwrap();
    let engine = project.engine();
    let error = project.resume(&engine, &run_id).await.unwrap_err();
    assert!(
        matches!(&error, RunError::ProgramChanged { files, .. } if files == &["main.prose"]),
        "{error}"
    );
    assert!(error.to_string().contains("has changed since run"), "{error}");
    let mut request = resume_request(&run_id);
    request.changed = Some(project.bundle());
    let result = engine.resume(request).await.unwrap().join().await.unwrap();
    assert_eq!(outputs(&result)["y"], "[simulated] other");
    assert!(!result.dir.join("bindings/x.md").exists(), "x is gone");
    let text = std::fs::read_to_string(result.dir.join("program.prose")).unwrap();
    assert_eq!(text, "output y = session \"other\"\n");
}

/// The answers that a changed program keeps: those to the same question in the same place, wherever the statement has moved
/// to in the file; also after further crashes and changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_changes_are_executed_and_keep_what_still_fits() {
    const BEFORE: &str = r#"agent keeper:
  persist: true
let a = session "one"
let m = session: keeper
  prompt: "note {a}"
parallel:
  left = session "left"
  right = session "right"
let b = session "two {a}"
let c = session "three {b}"
output y = session "four {c}"
"#;
    let project = Project::new(BEFORE);
    let whole = project.run("").await;
    let (records, _) = answered(&project, &whole.run_id);
    let after = format!(
        "# A line on top moves everything.\n{}",
        BEFORE.replace("three {b}", "drei {b}")
    );
    for stop in 2..=records {
        std::fs::write(project.root().join("main.prose"), BEFORE).unwrap();
        let (run_id, _) = killed_run(&project, "", stop).await;
        let (_, known) = answered(&project, &run_id);
        std::fs::write(project.root().join("main.prose"), &after).unwrap();
        let mut asked_in_all = Vec::new();
        let first = stop + 5;
        let mut next = first;
        let result = loop {
            // Killed again while the changed program runs; it is accepted once.
            let engine = project.engine_with(Some(Fault::StopAfter(next)));
            let (backend, asked) = Counting::wrap(simulate(&engine, ""));
            let mut request = resume_request(&run_id);
            request.changed = (next == first).then(|| project.bundle());
            request.backend = Some(backend);
            let ended = engine.resume(request).await.unwrap().join().await;
            asked_in_all.extend(asked.lock().unwrap().drain(..).map(|id| id.to_string()));
            match ended {
                Ok(result) => break result,
                Err(RunError::Fault(_)) => next += 5,
                Err(error) => panic!("after record {stop}, then {next}: {error}"),
            }
        };
        if stop == records {
            // It had completed, so that nothing is executed any more.
            assert!(asked_in_all.is_empty());
            continue;
        }
        assert_eq!(
            outputs(&result)["y"],
            "[simulated] four [simulated] drei [simulated] two [simulated] one",
            "after record {stop}"
        );
        let files = project.files(&run_id);
        assert!(files["bindings/c.md"].contains("drei"), "{files:#?}");
        assert!(files["agents/keeper/keeper-001.md"].contains("note"));
        assert!(!files.contains_key("agents/keeper/keeper-002.md"));
        // `c` and what depends on it are asked again, nothing else that had an answer.
        for id in asked_in_all {
            let again = known.contains(&EffectId::from(id.as_str()));
            assert!(
                !again || id.starts_with("main/4") || id.starts_with("main/5"),
                "{id} after record {stop}"
            );
        }
    }
}

#[tokio::test]
async fn a_failed_run_goes_on_with_a_mended_program() {
    let project = Project::new("let x = session \"one\"\nthrow \"oh\"\noutput y = x\n");
    let failed = project.run("").await;
    assert_eq!(failed.status, RunStatus::Failed);
    std::fs::write(
        project.root().join("main.prose"),
        "let x = session \"one\"\noutput y = x\n",
    )
    .unwrap();
    let engine = project.engine();
    let (backend, asked) = Counting::wrap(simulate(&engine, ""));
    let mut request = resume_request(&failed.run_id);
    request.changed = Some(project.bundle());
    request.backend = Some(backend);
    let result = engine.resume(request).await.unwrap().join().await.unwrap();
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(outputs(&result)["y"], "[simulated] one");
    assert!(asked.lock().unwrap().is_empty(), "it was answered");
}

#[tokio::test]
async fn a_lost_value_refuses_the_resume() {
    let project = Project::new("let x = session \"long\"\noutput y = x\n");
    let mock = format!("[[session]]\nreply = '''\n{}'''\n", "line\n".repeat(2000));
    let whole = project.run(&mock).await;
    let values = whole.dir.join("values");
    let value = std::fs::read_dir(&values)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let name = value.file_name().unwrap().to_string_lossy().into_owned();
    let journal = std::fs::read(whole.dir.join("journal.jsonl")).unwrap();
    let content = std::fs::read(&value).unwrap();
    let refused = async || {
        let error = project
            .resume(&project.engine(), &whole.run_id)
            .await
            .unwrap_err();
        error.to_string()
    };
    std::fs::write(&value, b"something else").unwrap();
    let error = refused().await;
    assert!(
        error.contains(&name) && error.contains("is damaged") && error.contains("the result of"),
        "{error}"
    );
    std::fs::remove_file(&value).unwrap();
    let error = refused().await;
    assert!(error.contains(&name) && error.contains("is missing"), "{error}");
    assert_eq!(
        std::fs::read(whole.dir.join("journal.jsonl")).unwrap(),
        journal,
        "nothing is written"
    );
    std::fs::write(&value, content).unwrap();
    project.resume(&project.engine(), &whole.run_id).await.unwrap();
}

#[tokio::test]
async fn a_run_has_one_owner() {
    let project = Project::new("input x: \"?\"\noutput y = x\n");
    let engine = project.engine();
    let backend = Backend {
        inputs: None,
        ..simulate(&engine, "")
    };
    let attach = prose_runtime::Attach {
        inputs: prose_runtime::InputMode::Ask,
        ..Default::default()
    };
    let handle = project.start_with(&engine, backend, attach).await;
    let error = project.resume(&engine, handle.run_id()).await.unwrap_err();
    assert!(error.to_string().contains("in use by process"), "{error}");
    handle.control().stop();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Interrupted);
}

#[tokio::test]
async fn a_run_that_is_not_there() {
    let project = Project::new("session \"x\"\n");
    let error = project
        .resume(&project.engine(), &"20260101-000000-abcdef".into())
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("there is no run at"), "{error}");
}

#[tokio::test]
async fn a_torn_last_record_is_cut() {
    let project = Project::new("let x = session \"one\"\noutput y = session \"two\"\n");
    let (run_id, _) = killed_run(&project, "", 6).await;
    let dir = RunDir::find(project.root(), &run_id).unwrap();
    let mut journal = std::fs::read(dir.journal()).unwrap();
    journal.truncate(journal.len() - 9);
    std::fs::write(dir.journal(), journal).unwrap();
    let result = project.resume(&project.engine(), &run_id).await.unwrap();
    assert_eq!(outputs(&result)["y"], "[simulated] two");
}

#[tokio::test]
async fn an_edited_bundle_is_no_resume() {
    let project = Project::new("let x = session \"one\"\noutput y = session \"two {x}\"\n");
    let whole = project.run("").await;
    let (records, _) = answered(&project, &whole.run_id);
    let (run_id, _) = killed_run(&project, "", records - 2).await;
    let dir = RunDir::find(project.root(), &run_id).unwrap();
    let bundle = std::fs::read_to_string(dir.bundle()).unwrap();
    assert!(bundle.contains("two "));
    let mut json: serde_json::Value = serde_json::from_str(&bundle).unwrap();
    let body = json["programs"][0]["body"].to_string().replace("two ", "three ");
    json["programs"][0]["body"] = serde_json::from_str(&body).unwrap();
    std::fs::write(dir.bundle(), json.to_string()).unwrap();
    let error = project.resume(&project.engine(), &run_id).await.unwrap_err();
    assert!(error.to_string().contains("was changed"), "{error}");

    // The header of an earlier engine has no digest of the file, so an edit shows only in what is asked.
    let content = read_journal(&dir.journal()).unwrap();
    std::fs::remove_file(dir.journal()).unwrap();
    let journal = prose_state::Journal::create(&dir.journal(), Arc::new(prose_state::SystemClock)).unwrap();
    let bodies = content.records.into_iter().map(|record| match record.body {
        RecordBody::Header(mut header) => {
            header.bundle_bytes = None;
            RecordBody::Header(header)
        }
        body => body,
    });
    journal.append_all_durable(bodies).unwrap();
    drop(journal);
    let error = project.resume(&project.engine(), &run_id).await.unwrap_err();
    assert!(matches!(error, RunError::Diverged { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_with_the_deepest_expression_is_resumed() {
    let nots = "not ".repeat(90);
    let program =
        format!("let x = {nots}true\nsession \"one\"\nif {nots}x:\n  session \"two\"\noutput y = x\n");
    check_every_kill(&Project::new(&program), "", 5).await;
}
