//! Budgets, time limits and back-off. No test waits: time is virtual or passes when a test says so.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use common::*;
use prose_agents::{
    Capabilities, DecodeInput, Delivery, Judge, JudgeInput, Reading, SessionBackend, SessionReply,
    SessionSpawn, SessionUpdate, SpendLimit, failure,
};
use prose_model::{Decision, ErrorKind, Failure, RecordBody, RunOptions, RunStatus, Usage, Value, Verdict};
use prose_runtime::backends::Backend;
use prose_runtime::{
    Attach, EngineConfig, Limits, Overrides, ResumeRequest, RunRequest, RunResult, Timer, Wait,
};
use tokio::sync::{Notify, oneshot};

const DIME: &str = "[defaults]\ntokens = { in = 4, out = 6, cost_usd = 0.6 }\n";

async fn start(
    project: &Project,
    engine: &prose_runtime::Engine,
    backend: Backend,
    options: RunOptions,
) -> RunResult {
    let request = RunRequest {
        bundle: project.bundle(),
        program: "main.prose".into(),
        inputs: Default::default(),
        options,
        backend,
        attach: Attach::default(),
    };
    engine.start(request).await.unwrap().join().await.unwrap()
}

async fn resume(
    engine: &prose_runtime::Engine,
    first: &RunResult,
    overrides: Overrides,
    backend: Option<Backend>,
) -> RunResult {
    let request = ResumeRequest {
        overrides,
        backend,
        ..resume_request(&first.run_id)
    };
    engine.resume(request).await.unwrap().join().await.unwrap()
}

fn usd(budget: f64) -> RunOptions {
    RunOptions {
        budget_usd: Some(budget),
        ..RunOptions::default()
    }
}

fn records(result: &RunResult) -> Vec<RecordBody> {
    let records = prose_runtime::runs::read_journal(&result.dir.join("journal.jsonl"))
        .unwrap()
        .records;
    records.into_iter().map(|record| record.body).collect()
}

/// How many outcomes the journal has, and how many effects it has twice.
fn outcomes(result: &RunResult) -> (usize, usize) {
    let ids: Vec<_> = records(result)
        .into_iter()
        .filter_map(|body| match body {
            RecordBody::Outcome { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    let different: std::collections::HashSet<_> = ids.iter().collect();
    (ids.len(), ids.len() - different.len())
}

#[tokio::test]
async fn a_spent_budget_stops_the_run_and_a_larger_one_goes_on() {
    let project = Project::new(
        "try:\n  let a = session \"one\"\n  let b = session \"two\"\n  output c = session \"three\"\ncatch as err:\n  output c = \"caught\"\n",
    );
    let engine = project.engine();
    let first = start(&project, &engine, simulate(&engine, DIME), usd(1.0)).await;
    assert_eq!(first.status, RunStatus::OutOfBudget);
    let error = first.error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert_eq!(
        error.message,
        format!(
            "the budget of 1 USD is spent: the run has cost 1.2 USD; to go on with a larger one: prose resume {} --budget USD",
            first.run_id
        )
    );
    assert_eq!(outcomes(&first), (2, 0));

    // With the same budget nothing is begun.
    let same = resume(&engine, &first, Overrides::default(), None).await;
    assert_eq!((same.status, outcomes(&same)), (RunStatus::OutOfBudget, (2, 0)));

    // It counts what earlier processes have spent, and is kept.
    let little = Overrides {
        budget_usd: Some(1.2),
        ..Overrides::default()
    };
    let second = resume(&engine, &first, little, None).await;
    assert_eq!(
        (second.status, second.usage.cost_usd),
        (RunStatus::OutOfBudget, Some(1.2))
    );
    let enough = Overrides {
        budget_usd: Some(1.3),
        ..Overrides::default()
    };
    let third = resume(&engine, &first, enough, None).await;
    assert_eq!(third.status, RunStatus::Completed, "{third:?}");
    assert_eq!(outputs(&third)["c"], "[simulated] three");
    assert_eq!(outcomes(&third), (3, 0));
    assert!((third.usage.cost_usd.unwrap() - 1.8).abs() < 1e-9);
}

#[tokio::test]
async fn a_raised_budget_is_kept_for_later_resumes() {
    let project =
        Project::new("let a = session \"one\"\nlet b = session \"two\"\noutput c = session \"three\"\n");
    let engine = project.engine();
    let first = start(&project, &engine, simulate(&engine, DIME), usd(0.5)).await;
    assert_eq!(outcomes(&first).0, 1);
    let raised = Overrides {
        budget_usd: Some(5.0),
        ..Overrides::default()
    };
    // Stopped as by a crash right after the raise was journaled.
    let len = records(&first).len() as u64;
    let crashing = project.engine_with(Some(prose_runtime::Fault::StopAfter(len + 2)));
    let request = ResumeRequest {
        overrides: raised,
        ..resume_request(&first.run_id)
    };
    assert!(crashing.resume(request).await.unwrap().join().await.is_err());
    let last = resume(&engine, &first, Overrides::default(), None).await;
    assert_eq!(last.status, RunStatus::Completed, "{last:?}");
}

#[tokio::test]
async fn tokens_count_too_and_what_is_in_flight_is_finished() {
    let project = Project::new(
        "parallel:\n  a = session \"one\"\n  b = session \"two\"\n  c = session \"three\"\noutput all = [a, b, c]\n",
    );
    let engine = project.engine();
    let options = RunOptions {
        budget_tokens: Some(10),
        max_parallel: Some(2),
        ..RunOptions::default()
    };
    let first = start(&project, &engine, simulate(&engine, DIME), options).await;
    let error = first.error.clone().unwrap().message;
    assert!(
        error.starts_with(
            "the budget of 10 tokens is spent: the run has used 20; to go on with a larger one: prose resume "
        ) && error.ends_with(" --budget-tokens N"),
        "{error}"
    );
    // The first two had begun together.
    assert_eq!(outcomes(&first), (2, 0));
    let more = Overrides {
        budget_tokens: Some(21),
        ..Overrides::default()
    };
    let second = resume(&engine, &first, more, None).await;
    assert_eq!((second.status, outcomes(&second)), (RunStatus::Completed, (3, 0)));
}

#[tokio::test]
async fn the_judge_waits_for_a_larger_budget_too() {
    let project = Project::new("let a = session \"one\"\nif **good**:\n  output x = \"yes\"\n");
    let engine = project.engine();
    let first = start(&project, &engine, simulate(&engine, DIME), usd(0.1)).await;
    assert_eq!((first.status, outcomes(&first).0), (RunStatus::OutOfBudget, 1));
    let more = Overrides {
        budget_usd: Some(9.0),
        ..Overrides::default()
    };
    let second = resume(&engine, &first, more, None).await;
    assert_eq!(outputs(&second)["x"], "yes");
}

/// Time that passes when a test says so.
#[derive(Default)]
struct ManualTimer {
    state: Mutex<Waits>,
    changed: Notify,
}

#[derive(Default)]
struct Waits {
    now: Duration,
    open: Vec<Open>,
}

struct Open {
    due: Duration,
    asked: Duration,
    over: oneshot::Sender<()>,
}

impl Timer for ManualTimer {
    fn now(&self) -> Duration {
        self.state.lock().unwrap().now
    }
    fn sleep(&self, time: Duration) -> Wait {
        let (over, rx) = oneshot::channel();
        let mut state = self.state.lock().unwrap();
        let due = state.now + time;
        state.open.push(Open {
            due,
            asked: time,
            over,
        });
        drop(state);
        self.changed.notify_waiters();
        Box::pin(async move {
            let _ = rx.await;
        })
    }
}

impl ManualTimer {
    /// Waits until somebody waits so long, then lets so much time pass.
    async fn pass(&self, time: Duration) {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock().unwrap();
                if state
                    .open
                    .iter()
                    .any(|wait| wait.asked == time && !wait.over.is_closed())
                {
                    state.now += time;
                    let now = state.now;
                    let all = std::mem::take(&mut state.open);
                    let (due, later): (Vec<Open>, Vec<Open>) =
                        all.into_iter().partition(|wait| wait.due <= now);
                    state.open = later;
                    for wait in due {
                        let _ = wait.over.send(());
                    }
                    return;
                }
            }
            changed.await;
        }
    }
}

/// Fails, hangs or spends as its task says, and notes what it was given.
#[derive(Default)]
struct Meter {
    budgets: Mutex<Vec<SpendLimit>>,
    hanging: Notify,
    /// Lets "wait" answer.
    go: Notify,
}

fn cost(dollars: f64) -> Usage {
    Usage {
        input_tokens: 1,
        output_tokens: 1,
        cost_usd: Some(dollars),
    }
}

#[async_trait]
impl SessionBackend for Meter {
    fn name(&self) -> &str {
        "meter"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Plain,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }
    async fn spawn(&self, s: SessionSpawn) -> Result<SessionReply, Failure> {
        self.budgets.lock().unwrap().push(s.budget);
        let task = s.request.task.as_inline().unwrap().into_owned();
        let attempt = s.request.attempt;
        match task.as_str() {
            "hang" => {
                s.sink.update(SessionUpdate::Usage(cost(0.25)));
                s.sink.update(SessionUpdate::Usage(cost(0.5)));
                self.hanging.notify_one();
                s.cancel.cancelled().await;
                Err(failure(ErrorKind::Backend, "cancelled"))
            }
            "wait" => {
                self.hanging.notify_one();
                self.go.notified().await;
                Ok(SessionReply::text("waited"))
            }
            "fast" => {
                self.hanging.notified().await;
                Ok(SessionReply::text("fast"))
            }
            "greedy" if s.budget.usd.is_some_and(|rest| rest < 1.0) => Err(Failure {
                usage: cost(s.budget.usd.unwrap() - 0.01),
                ..failure(ErrorKind::Budget, "stopped at the cap")
            }),
            "flaky" if attempt < 4 => Err(Failure {
                retry_after_ms: (attempt == 3).then_some(60_000),
                ..failure(ErrorKind::Backend, "try again")
            }),
            "untold" => Ok(SessionReply {
                usage: Usage {
                    cost_usd: None,
                    ..cost(0.0)
                },
                ..SessionReply::text("untold")
            }),
            _ => Ok(SessionReply {
                usage: cost(0.25),
                ..SessionReply::text(task)
            }),
        }
    }
}

#[async_trait]
impl Judge for Meter {
    fn name(&self) -> &str {
        "meter"
    }
    async fn decide(&self, input: JudgeInput) -> Result<Verdict, Failure> {
        self.budgets.lock().unwrap().push(input.budget);
        Ok(Verdict {
            decision: Decision::Yes,
            confidence: 1.0,
            reason: String::new(),
            usage: cost(0.25),
        })
    }
    async fn decode(&self, input: DecodeInput) -> Result<Reading, Failure> {
        self.budgets.lock().unwrap().push(input.budget);
        Ok(Reading {
            value: Value::list(vec![Value::text(input.text)]),
            usage: cost(0.25),
        })
    }
}

fn meter(meter: &Arc<Meter>) -> Backend {
    Backend {
        name: "meter".into(),
        simulated: false,
        sessions: meter.clone(),
        judge: meter.clone(),
        inputs: None,
        observer: None,
        mock_text: None,
    }
}

/// The result of a run that ends after the given time has passed, and not before.
async fn passing(run: impl Future<Output = RunResult>, time: impl Future<Output = ()>) -> RunResult {
    tokio::pin!(run);
    tokio::select! {
        result = &mut run => panic!("ended before its time: {result:?}"),
        () = time => {}
    }
    run.await
}

fn timed(project: &Project, timer: &Arc<ManualTimer>, jitter: fn() -> f64) -> prose_runtime::Engine {
    prose_runtime::Engine::with(EngineConfig {
        timer: timer.clone(),
        jitter,
        limits: Limits {
            idle_timeout: Some(Duration::from_secs(77)),
            cancel_grace: Duration::from_secs(7),
            ..Limits::default()
        },
        ..project.config()
    })
}

#[tokio::test]
async fn each_session_is_given_what_is_left() {
    let project = Project::new("let a = session \"one\"\nlet b = session \"two\"\n");
    let backend = Arc::new(Meter::default());
    let options = RunOptions {
        budget_tokens: Some(100),
        ..usd(1.0)
    };
    start(&project, &project.engine(), meter(&backend), options).await;
    let rest = |usd, tokens| SpendLimit {
        usd: Some(usd),
        tokens: Some(tokens),
    };
    assert_eq!(*backend.budgets.lock().unwrap(), [rest(1.0, 100), rest(0.75, 98)]);
}

#[tokio::test]
async fn judgements_count_as_sessions_do_and_are_given_what_is_left() {
    let program = "let a = session \"one\"\nif **fine**:\n  for item in a:\n    output x = session \"two\"\n";
    let project = Project::new(program);
    let backend = Arc::new(Meter::default());
    let engine = project.engine();
    let first = start(&project, &engine, meter(&backend), usd(2.0)).await;
    assert_eq!(outputs(&first)["x"], "two");
    let rest = |usd| SpendLimit {
        usd: Some(usd),
        tokens: None,
    };
    assert_eq!(
        *backend.budgets.lock().unwrap(),
        [rest(2.0), rest(1.75), rest(1.5), rest(1.25)]
    );
    let used = Usage {
        input_tokens: 4,
        output_tokens: 4,
        cost_usd: Some(1.0),
    };
    assert_eq!(first.usage, used);
    // It is on record.
    let again = resume(&engine, &first, Overrides::default(), Some(meter(&backend))).await;
    assert_eq!(again.usage, used);

    let project = Project::new(program);
    let backend = Arc::new(Meter::default());
    let stopped = start(&project, &project.engine(), meter(&backend), usd(0.75)).await;
    assert_eq!(stopped.status, RunStatus::OutOfBudget, "{stopped:?}");
    assert_eq!(backend.budgets.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_session_that_is_stopped_at_the_cap_is_asked_again_with_a_larger_budget() {
    let project = Project::new(
        "let a = session \"one\"\ntry:\n  output x = session \"greedy\"\ncatch:\n  output x = \"caught\"\n",
    );
    let backend = Arc::new(Meter::default());
    let engine = project.engine();
    let first = start(&project, &engine, meter(&backend), usd(1.0)).await;
    assert_eq!(
        (first.status, outcomes(&first).0),
        (RunStatus::OutOfBudget, 1),
        "{first:?}"
    );
    assert!((first.usage.cost_usd.unwrap() - 0.99).abs() < 1e-9);
    let spent = records(&first)
        .into_iter()
        .filter(|body| matches!(body, RecordBody::Spent { .. }));
    assert_eq!(spent.count(), 1);
    let more = Overrides {
        budget_usd: Some(3.0),
        ..Overrides::default()
    };
    let second = resume(&engine, &first, more, Some(meter(&backend))).await;
    assert_eq!(outputs(&second)["x"], "greedy");
    assert!((second.usage.cost_usd.unwrap() - 1.24).abs() < 1e-9);
    assert!((backend.budgets.lock().unwrap()[2].usd.unwrap() - 2.01).abs() < 1e-9);
}

#[tokio::test]
async fn what_a_cancelled_session_has_used_is_paid_for() {
    let project =
        Project::new("parallel (\"first\"):\n  a = session \"hang\"\n  b = session \"fast\"\noutput x = b\n");
    let backend = Arc::new(Meter::default());
    let result = start(
        &project,
        &project.engine(),
        meter(&backend),
        RunOptions::default(),
    )
    .await;
    assert_eq!(outputs(&result)["x"], "fast");
    assert_eq!(result.usage.cost_usd, Some(0.5));
}

#[tokio::test]
async fn a_backend_without_prices_is_told_of_once() {
    let project = Project::new("session \"untold\"\nsession \"untold\"\n");
    let engine = project.engine();
    let request = RunRequest {
        bundle: project.bundle(),
        program: "main.prose".into(),
        inputs: Default::default(),
        options: usd(1.0),
        backend: meter(&Arc::default()),
        attach: Attach::default(),
    };
    let mut handle = engine.start(request).await.unwrap();
    let events = all_events(&mut handle).await;
    assert_eq!(
        notices(&events),
        [
            "the backend `meter` does not say what sessions cost, so the budget in USD can't be kept; `--budget-tokens N` limits tokens"
        ]
    );
}

#[tokio::test]
async fn back_off_has_a_jitter_of_a_fifth_and_waits_at_least_as_long_as_the_backend_says() {
    for (jitter, factor) in [((|| 0.0) as fn() -> f64, 0.8), (|| 0.5, 1.0), (|| 1.0, 1.2)] {
        let project = Project::new("output x = session \"flaky\"\n  retry: 3\n  backoff: exponential\n");
        let timer = Arc::new(ManualTimer::default());
        let engine = timed(&project, &timer, jitter);
        let run = start(&project, &engine, meter(&Arc::default()), RunOptions::default());
        let time = async {
            timer.pass(Duration::from_secs(1).mul_f64(factor)).await;
            timer.pass(Duration::from_secs(2).mul_f64(factor)).await;
            timer.pass(Duration::from_secs(60)).await;
        };
        assert_eq!(outputs(&passing(run, time).await)["x"], "flaky");
    }
}

#[tokio::test]
async fn linear_and_numbered_back_off_wait_as_they_say() {
    for (backoff, each) in [("linear", 1000), ("333", 333)] {
        let project = Project::new(&format!(
            "output x = session \"flaky\"\n  retry: 3\n  backoff: {backoff}\n"
        ));
        let timer = Arc::new(ManualTimer::default());
        let engine = timed(&project, &timer, || 0.5);
        let run = start(&project, &engine, meter(&Arc::default()), RunOptions::default());
        let time = async {
            timer.pass(Duration::from_millis(each)).await;
            timer.pass(Duration::from_millis(each)).await;
            timer.pass(Duration::from_secs(60)).await;
        };
        assert_eq!(outputs(&passing(run, time).await)["x"], "flaky");
    }
}

#[tokio::test]
async fn silence_and_length_have_limits_of_their_own() {
    for (options, limit, message) in [
        (RunOptions::default(), 77, "the session reported nothing for 77 s"),
        (
            RunOptions {
                idle_timeout_ms: Some(5000),
                ..RunOptions::default()
            },
            5,
            "the session reported nothing for 5 s",
        ),
        (
            RunOptions {
                timeout_ms: Some(9000),
                ..RunOptions::default()
            },
            9,
            "the session took longer than 9 s",
        ),
    ] {
        let project = Project::new("output x = session \"hang\"\n");
        let timer = Arc::new(ManualTimer::default());
        let engine = timed(&project, &timer, || 0.5);
        let backend = Arc::new(Meter::default());
        let run = start(&project, &engine, meter(&backend), options);
        let time = async {
            backend.hanging.notified().await;
            timer.pass(Duration::from_secs(limit)).await;
        };
        let result = passing(run, time).await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Timeout, message)
        );
        // What it had used by then counts.
        assert_eq!(result.usage.cost_usd, Some(0.5));
    }
}

#[tokio::test]
async fn state_md_is_written_four_times_a_second_and_at_the_end() {
    let project = Project::new(
        "let a = session \"one\"\nlet b = session \"wait\"\nlet c = session \"two\"\noutput x = session \"wait\"\n",
    );
    let timer = Arc::new(ManualTimer::default());
    let engine = timed(&project, &timer, || 0.5);
    let backend = Arc::new(Meter::default());
    let handle = project
        .start_with(&engine, meter(&backend), Attach::default())
        .await;
    let path = handle.dir().join("state.md");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    let changed_from = async |old: &str| {
        loop {
            let text = read();
            if text != old {
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    // Once at the beginning; and while no time passes, not again.
    let first = changed_from("").await;
    backend.hanging.notified().await;
    backend.go.notify_one();
    backend.hanging.notified().await;
    assert_eq!(read(), first);
    timer.pass(Duration::from_millis(250)).await;
    let second = changed_from(&first).await;
    for part in [
        "# --> bindings/c.md\n",
        "output x = session \"wait\"",
        "<-- EXECUTING\n",
    ] {
        assert!(second.contains(part), "{second}");
    }
    // The end is written at once.
    backend.go.notify_one();
    handle.join().await.unwrap();
    assert!(read().contains("\nstatus: completed\n"), "{}", read());
}
