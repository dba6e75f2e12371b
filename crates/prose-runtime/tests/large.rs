//! Runs with thousands of sessions: what is kept in memory, and that nobody who only looks on can hold them up.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use prose_model::{Event, Order, RunEvent, RunStatus};
use prose_runtime::{Backlog, StreamItem};

/// So many sessions in one `parallel for`, by a list of so many items.
fn many(count: usize) -> String {
    let items: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    format!(
        "parallel for item in [{}]:\n  session \"Look at {{item}}\"\noutput done = \"all\"\n",
        items.join(", ")
    )
}

fn without_time(mut event: RunEvent) -> RunEvent {
    event.ts = String::new();
    event
}

#[tokio::test]
async fn observers_that_never_read_hold_nothing_up_and_can_catch_up() {
    const BOUND: usize = 256;
    let project = Project::new(&many(10_000));
    let engine = project.engine();
    let mut handle = project.start(&engine, "").await;
    let control = handle.control();
    let mut slow = control.subscribe(Backlog::Bounded(BOUND));
    // Needs everything, and is not read either while the run goes on.
    let mut all = handle.take_events().unwrap();
    let result = handle.join().await.unwrap();
    assert_eq!(result.status, RunStatus::Completed);
    // Two more: the marker, and the end of the run.
    assert!(slow.in_memory() <= BOUND + 2, "{}", slow.in_memory());
    assert!(all.in_memory() <= 4096, "{}", all.in_memory());

    let mut whole = Vec::new();
    let (mut finished, mut others) = (0, 0);
    while let Some(item) = all.next().await {
        let StreamItem::Event(event) = item else {
            panic!("{item:?}")
        };
        finished += u32::from(matches!(event.event, Event::SessionFinished { .. }));
        if matches!(event.order, Order::Machine { .. }) {
            whole.push(without_time((*event).clone()));
        } else {
            others += 1;
        }
    }
    assert_eq!(finished, 10_000);
    for (seq, event) in (0..).zip(&whole) {
        assert_eq!(event.order, Order::Machine { seq });
    }

    // The slow one: what it was given, and at each marker what is missing there.
    let mut seen = Vec::new();
    let mut gaps = 0;
    let mut streamed = 0;
    while let Some(item) = slow.next().await {
        match item {
            StreamItem::Event(event) => {
                if matches!(event.order, Order::Machine { .. }) {
                    seen.push(without_time((*event).clone()));
                } else {
                    streamed += 1;
                }
            }
            StreamItem::Gap(gap) => {
                gaps += 1;
                let went_on = control.make_up(&gap, |event| {
                    match event.event {
                        Event::EventsMissed {
                            machine,
                            streamed: missed,
                        } => {
                            assert_eq!(machine, 0);
                            streamed += missed;
                        }
                        _ => seen.push(without_time(event)),
                    }
                    true
                });
                assert!(went_on);
            }
        }
    }
    assert!(gaps > 0);
    // The stream began with the run, or a little later: all that came before is in the journal too.
    let first = seen.first().map(|event| event.order);
    let at = whole.iter().position(|event| Some(event.order) == first).unwrap();
    assert!(seen[..] == whole[at..]);
    assert!(streamed <= others, "{streamed} of {others}");
    let mut past = control.catch_up(None).unwrap();
    for event in &whole {
        assert_eq!(without_time(past.next_event().unwrap().unwrap()), *event);
    }
    assert!(past.next_event().unwrap().is_none());
}

#[tokio::test]
async fn a_hundred_thousand_iterations() {
    let project = Project::new("let x = 0\nrepeat 100000 as i:\n  x = x + 1\noutput x = x\n");
    let result = project.run("").await;
    assert_eq!(outputs(&result)["x"], "100000");
}
