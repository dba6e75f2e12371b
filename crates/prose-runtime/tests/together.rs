//! Outcomes that arrive together are in the journal before the first of them is acted on. One that the first makes
//! unwanted was too late: live, when the run is taken up again, and when its past is told.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use prose_model::{Outcome, RecordBody, RunStatus, SessionOutcome, Usage, Value};
use prose_runtime::runs::{RunDir, history, read_journal};
use prose_runtime::{Fault, RunError};
use prose_state::{Journal, SystemClock};

const PROGRAM: &str = r#"
parallel ("first"):
  hare = session "hare"
  tortoise = session "tortoise"
let after = session "after {hare}"
output winner = hare
"#;

const MOCK: &str = r#"
[[session]]
prompt = "^hare"
reply = "the hare"
delay_ms = 10
[[session]]
prompt = "^tortoise"
reply = "the tortoise"
delay_ms = 90
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_behind_the_one_that_cancels_it_is_ignored() {
    let project = Project::new(PROGRAM);
    let whole = project.run(MOCK).await;
    let journal = |run| RunDir::find(project.root(), run).unwrap().journal();
    let records = read_journal(&journal(&whole.run_id)).unwrap().records;
    let first = records
        .iter()
        .position(|record| matches!(record.body, RecordBody::Outcome { .. }))
        .unwrap() as u64
        + 1;

    // The process dies when both outcomes are on disk and before it does anything about the first.
    let engine = project.engine_with(Some(Fault::StopAfter(first)));
    let run = project.start(&engine, MOCK).await;
    let run_id = run.run_id().clone();
    assert!(matches!(run.join().await, Err(RunError::Fault(_))));
    let records = read_journal(&journal(&run_id)).unwrap().records;
    let sessions: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Issued { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    let [hare, tortoise] = sessions.as_slice() else {
        panic!("two sessions are asked: {sessions:?}")
    };
    assert!(matches!(&records.last().unwrap().body, RecordBody::Outcome { id, .. } if id == hare));
    {
        let (open, _) = Journal::open(&journal(&run_id), Arc::new(SystemClock)).unwrap();
        let late = SessionOutcome {
            value: Value::text("the tortoise"),
            summary: "the tortoise".into(),
            usage: Usage {
                input_tokens: 7,
                ..Usage::default()
            },
            memory: None,
            segment: None,
        };
        open.append_durable(RecordBody::Outcome {
            id: tortoise.clone(),
            lease: 1,
            outcome: Outcome::Session(Box::new(late)),
        })
        .unwrap();
    }

    let resumed = project.resume(&project.engine(), &run_id).await.unwrap();
    assert_eq!(resumed.status, RunStatus::Completed);
    assert_eq!(outputs(&resumed), outputs(&whole));
    // What came too late was paid for.
    assert!(resumed.usage.input_tokens >= 7, "{:?}", resumed.usage);

    let past = history(&RunDir::find(project.root(), &run_id).unwrap());
    assert_eq!(past.problems, Vec::<String>::new());
    let [hare, tortoise] = [&past.effects[hare], &past.effects[tortoise]];
    assert!(hare.answer.is_some() && !hare.cancelled);
    assert!(tortoise.answer.is_none() && tortoise.cancelled);
}
