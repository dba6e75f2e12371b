//! Runs in real time with a scripted backend: cancellation, time limits, panics, questions, files, reattaching.
//! Nothing here waits for a fixed time to pass: each test waits for what has to happen.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod scripted;
mod wondering;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::*;
use indexmap::IndexMap;
use prose_agents::prompt::{STAGED_BINDING, STAGED_MEMORY, STAGED_SEGMENT};
use prose_agents::{
    Backend, Capabilities, DecodeInput, Delivery, Judge, JudgeInput, MemoryUpdate, PermissionAnswer,
    PermissionQuestion, Reading, ReplyBody, SessionBackend, SessionReply, SessionSpawn, SessionUpdate,
    UserQuestion, failure,
};
use prose_model::{Decision, EffectId, ErrorKind, Event, Failure, RunStatus, Usage, Value, Verdict};
use prose_runtime::{
    AnswerError, Attach, Engine, EngineConfig, InputMode, Limits, PermissionProvider, RunError, RunHandle,
    StreamItem, SystemTimer, Timer, Wait, WaitingInput,
};
use tokio::sync::{Notify, Semaphore};

use scripted::Scripted;

fn engine(project: &Project, limits: Limits) -> Engine {
    Engine::with(EngineConfig {
        limits,
        ..project.config()
    })
}

async fn run(
    program: &str,
    scripted: &Arc<Scripted>,
) -> (prose_runtime::RunResult, Vec<Arc<prose_model::RunEvent>>) {
    let project = Project::new(program);
    let mut handle = project
        .start_with(&project.engine(), scripted.backend(), Attach::default())
        .await;
    let events = all_events(&mut handle).await;
    assert_complete(&events);
    (handle.join().await.unwrap(), events)
}

#[tokio::test]
async fn a_panicking_backend_fails_one_session() {
    let program = "try:\n  session \"panic\"\ncatch as err:\n  output what = err.message\noutput then = session \"go on\"\n";
    let (result, _) = run(program, &Scripted::new(Delivery::Plain)).await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let outputs = outputs(&result);
    assert_eq!(
        (outputs["what"].as_str(), outputs["then"].as_str()),
        ("the backend panicked: told to", "did go on")
    );
}

#[tokio::test]
async fn nothing_is_a_failure() {
    for (task, delivery) in [("empty", Delivery::Plain), ("nothing", Delivery::Files)] {
        let (result, _) = run(&format!("session \"{task}\"\n"), &Scripted::new(delivery)).await;
        assert_eq!(result.error.unwrap().kind, ErrorKind::Empty, "{task}");
    }
}

const WITH_FINALLY: &str = r#"output before = session "one"
try:
  session "hang here"
finally:
  session "clean up"
session "never"
"#;

async fn start_hanging(project: &Project, engine: &Engine, scripted: &Arc<Scripted>) -> RunHandle {
    let handle = project
        .start_with(engine, scripted.backend(), Attach::default())
        .await;
    scripted.hanging.notified().await;
    handle
}

#[tokio::test]
async fn cancel_stops_sessions_and_runs_finally() {
    let project = Project::new(WITH_FINALLY);
    let scripted = Scripted::new(Delivery::Plain);
    let engine = project.engine();
    let mut handle = start_hanging(&project, &engine, &scripted).await;
    handle.cancel();
    let events = all_events(&mut handle).await;
    assert_complete(&events);
    let run_id = handle.run_id().clone();
    let result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Cancelled);
    assert_eq!(outputs(&result)["before"], "did one");
    assert_eq!(
        scripted.seen(),
        ["one", "hang here", "hang here stopped", "clean up"]
    );
    // The journal alone tells the same.
    let again = project.resume(&engine, &run_id).await.unwrap();
    assert_eq!(again.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_session_deaf_to_cancellation_is_dropped() {
    let project = Project::new("try:\n  session \"deaf\"\nfinally:\n  session \"clean up\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let limits = Limits {
        cancel_grace: Duration::from_millis(10),
        ..Limits::default()
    };
    let handle = start_hanging(&project, &engine(&project, limits), &scripted).await;
    handle.cancel();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Cancelled);
    assert_eq!(scripted.seen(), ["deaf", "clean up"]);
}

#[tokio::test]
async fn finally_has_a_deadline() {
    let project = Project::new("try:\n  session \"hang\"\nfinally:\n  session \"hang again\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let limits = Limits {
        finally_deadline: Duration::from_millis(50),
        ..Limits::default()
    };
    let engine = engine(&project, limits);
    let handle = start_hanging(&project, &engine, &scripted).await;
    let run_id = handle.run_id().clone();
    handle.cancel();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Cancelled);
    // How far `finally` comes in that time is nobody's promise; that the run ends is.
    assert_eq!(scripted.seen()[..2], ["hang", "hang stopped"]);
    assert_eq!(
        project.resume(&engine, &run_id).await.unwrap().status,
        RunStatus::Cancelled
    );
}

#[tokio::test]
async fn cancelled_twice_finally_is_cut_short() {
    let project = Project::new("try:\n  session \"hang\"\nfinally:\n  session \"hang again\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let limits = Limits {
        finally_deadline: Duration::from_secs(3600),
        ..Limits::default()
    };
    let handle = start_hanging(&project, &engine(&project, limits), &scripted).await;
    handle.cancel();
    scripted.hanging.notified().await;
    handle.cancel();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn signals_cancel_and_stop() {
    for cancel in [true, false] {
        let project = Project::new("session \"hang\"\n");
        let scripted = Scripted::new(Delivery::Plain);
        let notify = Arc::new(Notify::new());
        let signal = notify.clone();
        let signal: prose_runtime::Signal = Box::pin(async move { signal.notified().await });
        let attach = match cancel {
            true => Attach {
                cancel: Some(signal),
                ..Attach::default()
            },
            false => Attach {
                shutdown: Some(signal),
                ..Attach::default()
            },
        };
        let handle = project
            .start_with(&project.engine(), scripted.backend(), attach)
            .await;
        scripted.hanging.notified().await;
        notify.notify_one();
        let status = handle.join().await.unwrap().status;
        assert_eq!(
            status,
            if cancel {
                RunStatus::Cancelled
            } else {
                RunStatus::Interrupted
            }
        );
    }
}

const IDLE: Duration = Duration::from_secs(1);

/// A silence is over when the test says so; other waits take their time.
struct Silences {
    system: SystemTimer,
    /// One for each silence that may pass.
    passing: Arc<Semaphore>,
    /// Told when one has passed.
    passed: Arc<Notify>,
}

impl Timer for Silences {
    fn now(&self) -> Duration {
        self.system.now()
    }
    fn sleep(&self, time: Duration) -> Wait {
        if time != IDLE {
            return self.system.sleep(time);
        }
        let (passing, passed) = (self.passing.clone(), self.passed.clone());
        Box::pin(async move {
            passing.acquire_owned().await.unwrap().forget();
            passed.notify_one();
        })
    }
}

#[tokio::test]
async fn a_silent_session_times_out_and_one_that_asks_does_not() {
    struct Slow(Arc<Silences>);
    #[async_trait]
    impl PermissionProvider for Slow {
        async fn ask(&self, _: &EffectId, question: PermissionQuestion) -> PermissionAnswer {
            assert_eq!(question.detail, "rm -r build");
            // Only the open question keeps the session alive.
            self.0.passing.add_permits(1);
            self.0.passed.notified().await;
            PermissionAnswer::Allow
        }
    }
    let project = Project::new("output a = session \"ask\"\noutput b = session \"deaf\"\n");
    let silences = Arc::new(Silences {
        system: SystemTimer::default(),
        passing: Arc::new(Semaphore::new(0)),
        passed: Arc::default(),
    });
    let engine = Engine::with(EngineConfig {
        limits: Limits {
            idle_timeout: Some(IDLE),
            cancel_grace: Duration::from_millis(10),
            ..Limits::default()
        },
        timer: silences.clone(),
        ..project.config()
    });
    let scripted = Scripted::new(Delivery::Plain);
    let attach = Attach {
        permissions: Some(Arc::new(Slow(silences.clone()))),
        ..Attach::default()
    };
    let handle = project.start_with(&engine, scripted.backend(), attach).await;
    scripted.hanging.notified().await;
    silences.passing.add_permits(1);
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["a"], "Allow");
    let error = result.error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Timeout, "the session reported nothing for 1 s")
    );
}

#[tokio::test]
async fn without_anybody_to_ask_a_permission_is_refused_and_said() {
    let (result, events) = run("output a = session \"ask\"\n", &Scripted::new(Delivery::Plain)).await;
    assert_eq!(outputs(&result)["a"], "Deny");
    assert_eq!(
        notices(&events),
        [
            "refused: bash rm -r build (there is nobody to ask; a rule under `permissions:` permits it, and so does `--yes`)"
        ]
    );
}

#[tokio::test]
async fn the_judge_is_asked_once_more_and_is_then_unsure() {
    let scripted = Scripted::new(Delivery::Plain);
    let unreadable = || Err(failure(ErrorKind::Judge, "gibberish"));
    *scripted.verdicts.lock().unwrap() = vec![
        unreadable(),
        Ok(Decision::Yes),
        Ok(Decision::Option("no such thing".into())),
        unreadable(),
        unreadable(),
        unreadable(),
    ];
    let program = r#"if **first**:
  output a = "yes"
else:
  output a = "no"
if **second**:
  output b = "yes"
else:
  output b = "no"
choice **third**:
  option "x":
    session "x"
"#;
    let (result, _) = run(program, &scripted).await;
    let outputs = outputs(&result);
    assert_eq!((outputs["a"].as_str(), outputs["b"].as_str()), ("yes", "no"));
    let error = result.error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Judge, "no option was chosen: gibberish")
    );
    assert_eq!(
        scripted.seen(),
        [
            "judge first #1",
            "judge first #2",
            "judge second #1",
            "judge second #2",
            "judge third #1",
            "judge third #2"
        ]
    );
    assert_eq!(result.usage.input_tokens, 2);
}

#[tokio::test]
async fn an_agent_that_writes_files() {
    let project = Project::new(
        r#"agent keeper:
  persist: project
  prompt: "You keep."

let long = session "write the long one"
output x = session: keeper
  prompt: "write {long}"
  context: long
resume: keeper
  prompt: "write more"
"#,
    );
    let scripted = Scripted::new(Delivery::Files);
    let result = project
        .start_with(&project.engine(), scripted.backend(), Attach::default())
        .await
        .join()
        .await
        .unwrap();
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    assert_eq!(
        outputs(&result)["x"],
        "written by write written by write the long one"
    );
    let agents = project.root().join(".prose/agents/keeper");
    let read = |name: &str| std::fs::read_to_string(agents.join(name)).unwrap();
    assert_eq!(
        read("memory.md"),
        "write written by write the long one\nwrite more\n"
    );
    assert_eq!(read("keeper-001.md"), "did write written by write the long one");
    assert_eq!(read("keeper-002.md"), "did write more");
    let prompts = scripted.prompts.lock().unwrap();
    assert!(
        prompts[1].contains("Context (by reference):\n- long: "),
        "{}",
        prompts[1]
    );
    assert!(
        prompts[1].contains("# x\n\nkind: output\n\nsource:\n```prose\noutput x = session: keeper"),
        "{}",
        prompts[1]
    );
    assert!(
        prompts[2].contains("write written by write the long one\n"),
        "{}",
        prompts[2]
    );
    let summary = std::fs::read_to_string(result.dir.join("state.md")).unwrap();
    assert!(summary.contains("bindings/x.md"), "{summary}");
}

#[tokio::test]
async fn memory_that_another_process_uses_is_waited_for() {
    let program = r#"agent keeper:
  persist: project
  prompt: "You keep."

parallel:
  resume: keeper
    prompt: "write this"
  session "gate"
"#;
    let project = Project::new(program);
    let roots = prose_state::MemoryRoots {
        project_root: project.root().to_owned(),
        home: None,
        inside_run: false,
    };
    let request = prose_model::MemoryRequest {
        agent: "keeper".into(),
        persist: prose_model::Persist::Project,
        namespace: String::new(),
        program: Vec::new(),
        mode: prose_model::MemoryMode::Resume,
    };
    let anywhere = prose_state::RunDir::at(project.root()).unwrap();
    let memory = roots.locate(&anywhere, &[], &request).unwrap();
    let lock = memory.lock().unwrap();

    let scripted = Scripted::new(Delivery::Files);
    let handle = start_hanging(&project, &project.engine(), &scripted).await;
    // The keeper comes first in issue order: were it not held up, it would have been seen first.
    assert_eq!(scripted.seen(), ["gate"]);
    scripted.gate.notify_one();
    drop(lock);
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Completed);
    assert_eq!(memory.read().unwrap().as_deref(), Some("write this\n"));
}

#[tokio::test]
async fn no_more_sessions_at_once_than_allowed() {
    let project = Project::new("parallel for n in [1, 2, 3, 4, 5]:\n  session \"gate {n}\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let engine = project.engine();
    let request = prose_runtime::RunRequest {
        bundle: project.bundle(),
        program: "main.prose".into(),
        inputs: IndexMap::new(),
        options: prose_model::RunOptions {
            max_parallel: Some(2),
            ..Default::default()
        },
        backend: scripted.backend(),
        attach: Attach::default(),
    };
    let handle = engine.start(request).await.unwrap();
    let summary = |dir: &std::path::Path| {
        let dir = prose_state::RunDir::at(dir).unwrap();
        let records = prose_state::read_journal(&dir.journal()).unwrap().records;
        let count = |kind: &str| {
            records
                .iter()
                .filter(|record| serde_json::to_value(&record.body).unwrap()["t"] == kind)
                .count()
        };
        (count("started"), count("outcome"))
    };
    for _ in 0..5 {
        scripted.hanging.notified().await;
        // Whatever moment this catches, two run at most.
        let (started, done) = summary(handle.dir());
        assert!(started <= done + 2, "{started} started, {done} done");
        scripted.gate.notify_one();
    }
    let dir = handle.dir().to_owned();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Completed);
    assert_eq!(summary(&dir), (5, 5));
}

#[tokio::test]
async fn a_session_of_an_earlier_process_is_found_again_or_spawned_again() {
    for (task, expected) in [("gate", "found again"), ("gate lost", "gate lost passed")] {
        let project = Project::new(&format!("output x = session \"{task}\"\n"));
        let mut scripted = Scripted::new(Delivery::Plain);
        Arc::get_mut(&mut scripted).unwrap().reattach = true;
        let engine = project.engine();
        let handle = start_hanging(&project, &engine, &scripted).await;
        let run_id = handle.run_id().clone();
        handle.control().stop();
        assert_eq!(handle.join().await.unwrap().status, RunStatus::Interrupted);
        scripted.gate.notify_one();
        let mut request = resume_request(&run_id);
        request.backend = Some(scripted.backend());
        let result = engine.resume(request).await.unwrap().join().await.unwrap();
        assert_eq!(outputs(&result)["x"], expected);
        assert_eq!(
            scripted.seen()[1],
            format!("reattach {{\"session\":\"{task}\"}} lease 2")
        );
    }
}

const ASKS: &str = "input who: \"Who? (Ann, Bob)\"\nlet found = session \"go\"\ninput why: \"Why?\"\noutput x = \"{who} {why} {found}\"\n";

#[tokio::test]
async fn an_input_that_nobody_answers_suspends_the_run() {
    let project = Project::new(ASKS);
    let scripted = Scripted::new(Delivery::Plain);
    let engine = project.engine();
    let mut handle = project
        .start_with(&engine, scripted.backend(), Attach::default())
        .await;
    let run_id = handle.run_id().clone();
    let events = all_events(&mut handle).await;
    assert!(matches!(
        &events.last().unwrap().event,
        Event::RunFinished {
            status: RunStatus::Waiting,
            ..
        }
    ));
    let result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Waiting);
    assert_eq!(
        (
            result.waiting[0].name.as_str(),
            result.waiting[0].options.join("|")
        ),
        ("who", "Ann|Bob".to_owned())
    );

    let resume = async |inputs: &[(&str, &str)]| {
        let mut request = resume_request(&run_id);
        request.backend = Some(scripted.backend());
        request.inputs = inputs.iter().map(|(k, v)| ((*k).to_owned(), text(v))).collect();
        engine.resume(request).await.unwrap().join().await.unwrap()
    };
    let result = resume(&[("who", "bob")]).await;
    assert_eq!(
        (result.status, result.waiting[0].name.as_str()),
        (RunStatus::Waiting, "why")
    );
    assert_eq!(resume(&[]).await.status, RunStatus::Waiting);
    let mut unknown = resume_request(&run_id);
    unknown.backend = Some(scripted.backend());
    unknown.inputs = IndexMap::from([("unused".to_owned(), text("x"))]);
    let refused = engine.resume(unknown).await.err().unwrap();
    assert!(matches!(refused, RunError::NoSuchInput { .. }), "{refused}");
    let result = resume(&[("why", "no reason")]).await;
    assert_eq!(
        outputs(&result),
        IndexMap::from([("x".to_owned(), "Bob no reason did go".to_owned())])
    );
    assert_eq!(scripted.seen(), ["go"]);
}

#[tokio::test]
async fn the_first_valid_answer_wins() {
    let project = Project::new(ASKS);
    let scripted = Scripted::new(Delivery::Plain);
    let attach = Attach {
        inputs: InputMode::Ask,
        ..Attach::default()
    };
    let mut handle = project
        .start_with(&project.engine(), scripted.backend(), attach)
        .await;
    let mut events = handle.take_events().unwrap();
    let mut answered = Vec::new();
    while let Some(item) = events.next().await {
        let StreamItem::Event(event) = item else {
            panic!("a gap")
        };
        if let Event::InputNeeded { effect } = &event.event {
            let questions = handle.control().questions();
            assert_eq!(questions.len(), 1);
            assert_eq!(questions[0].effect, *effect);
            let WaitingInput { name, options, .. } = &questions[0];
            answered.push(name.to_string());
            if name == "who" {
                let refused = handle.answer(effect, text("Carl"));
                assert_eq!(
                    refused,
                    Err(AnswerError::NotAnOption {
                        options: options.clone()
                    })
                );
            }
            assert_eq!(handle.answer(effect, text(" ann ")), Ok(()));
            assert_eq!(
                handle.answer(effect, text("Bob")),
                Err(AnswerError::NotOpen(effect.clone()))
            );
        }
    }
    let control = handle.control();
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["x"], "Ann  ann  did go");
    assert_eq!(answered, ["who", "why"]);
    assert_eq!(
        control.answer(&"main/0".into(), text("x")),
        Err(AnswerError::Over)
    );
}

#[tokio::test]
async fn simulated_runs_can_ask_too() {
    let project = Project::new(ASKS);
    let engine = project.engine();
    let attach = Attach {
        inputs: InputMode::Ask,
        ..Attach::default()
    };
    let mock = "[defaults]\nask = true\n[[input]]\nname = \"why\"\nvalue = \"so\"\n";
    let mut handle = project.start_with(&engine, simulate(&engine, mock), attach).await;
    let mut events = handle.take_events().unwrap();
    let mut needed = 0;
    while let Some(item) = events.next().await {
        let StreamItem::Event(event) = item else {
            panic!("a gap")
        };
        if let Event::InputNeeded { effect } = &event.event {
            // The mock file answers the other one: nobody was asked.
            needed += 1;
            handle.answer(effect, text("Bob")).unwrap();
        }
    }
    assert_eq!(
        outputs(&handle.join().await.unwrap())["x"],
        "Bob so [simulated] go"
    );
    assert_eq!(needed, 1);

    let result = project.run(mock).await;
    assert_eq!(
        (result.status, result.waiting[0].name.as_str()),
        (RunStatus::Waiting, "who")
    );
}

#[tokio::test]
async fn when_nobody_answers_any_more_the_run_is_suspended() {
    let project = Project::new(ASKS);
    let attach = Attach {
        inputs: InputMode::Ask,
        ..Attach::default()
    };
    let scripted = Scripted::new(Delivery::Plain);
    let handle = project
        .start_with(&project.engine(), scripted.backend(), attach)
        .await;
    handle.control().stop_asking();
    assert_eq!(handle.join().await.unwrap().status, RunStatus::Waiting);
}

#[tokio::test]
async fn an_observer_that_never_reads_does_not_hold_the_run_up() {
    let project = Project::new("output x = session \"chatty\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let handle = project
        .start_with(&project.engine(), scripted.backend(), Attach::default())
        .await;
    let mut slow = handle.control().subscribe(prose_runtime::Backlog::Bounded(8));
    let result = handle.join().await.unwrap();
    assert_eq!(outputs(&result)["x"], "said enough");
    let mut missed = 0;
    while let Some(item) = slow.next().await {
        if let StreamItem::Gap(gap) = item {
            missed += gap.missed;
        }
    }
    assert!(missed > 400, "{missed}");
}

#[tokio::test]
async fn a_judge_that_decodes_to_something_else_fails_the_statement() {
    let program = "let found = session \"prose, no list\"\nfor item in found:\n  session \"x\"\n";
    let (result, _) = run(program, &Scripted::new(Delivery::Plain)).await;
    assert_eq!(result.error.unwrap().kind, ErrorKind::Type);
}

#[test]
fn a_runtime_that_goes_away_interrupts_its_runs() {
    let project = Project::new("session \"hang\"\n");
    let scripted = Scripted::new(Delivery::Plain);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let handle = runtime.block_on(async {
        let engine = project.engine();
        start_hanging(&project, &engine, &scripted).await
    });
    runtime.shutdown_background();
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(
        other.block_on(handle.join()).unwrap().status,
        RunStatus::Interrupted
    );
}

#[test]
fn without_a_runtime_there_is_a_message() {
    let project = Project::new("session \"x\"\n");
    let engine = project.engine();
    let future = engine.resume(resume_request(&"20260101-000000-abcdef".into()));
    let mut future = Box::pin(future);
    let waker = std::task::Waker::noop();
    let poll = future.as_mut().poll(&mut std::task::Context::from_waker(waker));
    let std::task::Poll::Ready(Err(RunError::Engine(message))) = poll else {
        panic!("not refused")
    };
    assert!(message.contains("tokio runtime"), "{message}");
}
