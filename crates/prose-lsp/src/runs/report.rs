//! The one task that tells the client about runs: events and progress.
//!
//! What arrives within 50 ms goes out together. Neighbouring pieces of one session's text become one event; every
//! other event is sent, in order. The task waits until the transport has taken a batch before it sends the next, so a
//! slow client gets larger pieces instead of a growing queue; all queues on the way here are short, and what is too much
//! waits where the run keeps its events.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lsp_types::notification::Progress as ProgressNotification;
use lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressEnd, WorkDoneProgressReport,
};
use prose_model::{EffectId, Event, RunEvent, RunId, RunStatus};
use tokio::sync::mpsc;

use super::protocol::{RunEventNotification, RunEventParams};
use crate::outbox::Outbox;

/// Events are held back this long, so that several go together.
const COALESCE: Duration = Duration::from_millis(50);
/// So many reports wait for the task; who has more waits.
pub(crate) const ON_THE_WAY: usize = 256;
/// So many reports go together at most.
const TOGETHER: usize = 1024;
/// Progress is repeated at least this often, for the elapsed time in it.
const TICK: Duration = Duration::from_secs(1);

/// Names one launch of a run in this server; a run that is resumed here is launched again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Launch {
    /// Counts launches.
    pub(crate) number: u64,
    /// The run.
    pub(crate) run: RunId,
}

/// What the task is told.
#[derive(Debug)]
pub(crate) enum Report {
    /// A run begins. `progress`: the client was asked for a progress token; [`Report::Token`] follows.
    Began {
        launch: Launch,
        title: String,
        progress: bool,
    },
    /// Whether the client takes progress for this run.
    Token { launch: Launch, accepted: bool },
    /// Something happened.
    Event { launch: Launch, event: Box<RunEvent> },
    /// The run is over; nothing more about it follows, except perhaps [`Report::Token`].
    Ended { launch: Launch, how: String },
}

/// What the client wants to hear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wants {
    /// `prose/runEvent`.
    pub(crate) events: bool,
}

/// The progress token of a launch.
pub(crate) fn token(launch: &Launch) -> NumberOrString {
    NumberOrString::String(format!("prose-run-{}-{}", launch.number, launch.run))
}

/// The run of a progress token.
pub(crate) fn run_of_token(token: &NumberOrString) -> Option<RunId> {
    match token {
        NumberOrString::String(token) => {
            let (_, run) = token.strip_prefix("prose-run-")?.split_once('-')?;
            Some(RunId::from(run))
        }
        NumberOrString::Number(_) => None,
    }
}

/// Runs until every sender is gone or the session is over.
pub(crate) async fn report(mut reports: mpsc::Receiver<Report>, outbox: Outbox, wants: Wants) {
    let mut runs: BTreeMap<Launch, Reported> = BTreeMap::new();
    loop {
        let ticking = runs.values().any(|run| run.token == Token::Begun);
        let first = if ticking {
            match tokio::time::timeout(TICK, reports.recv()).await {
                Ok(first) => first,
                Err(_) => {
                    for (launch, run) in &runs {
                        run.send_progress(launch, &outbox);
                    }
                    continue;
                }
            }
        } else {
            reports.recv().await
        };
        let Some(first) = first else { return };
        absorb(&mut runs, first);
        let window = tokio::time::sleep(COALESCE);
        tokio::pin!(window);
        for _ in 1..TOGETHER {
            tokio::select! {
                biased;
                more = reports.recv() => match more {
                    Some(more) => absorb(&mut runs, more),
                    None => break,
                },
                () = &mut window => break,
            }
        }
        if flush(&mut runs, &outbox, wants).await.is_err() {
            return;
        }
    }
}

fn absorb(runs: &mut BTreeMap<Launch, Reported>, report: Report) {
    match report {
        Report::Began {
            launch,
            title,
            progress,
        } => {
            let token = if progress { Token::Asked } else { Token::None };
            runs.insert(launch, Reported::new(title, token));
        }
        Report::Token { launch, accepted } => {
            if let Some(run) = runs.get_mut(&launch) {
                run.token = if accepted { Token::Accepted } else { Token::None };
            }
        }
        Report::Event { launch, event } => {
            if let Some(run) = runs.get_mut(&launch) {
                run.absorb(*event);
            }
        }
        Report::Ended { launch, how } => {
            if let Some(run) = runs.get_mut(&launch) {
                run.ended = Some(how);
            }
        }
    }
}

/// Sends what has gathered. Fails when the session is over.
async fn flush(runs: &mut BTreeMap<Launch, Reported>, outbox: &Outbox, wants: Wants) -> Result<(), ()> {
    let mut last = None;
    for (launch, run) in runs.iter_mut() {
        for event in std::mem::take(&mut run.events) {
            if wants.events {
                let params = RunEventParams {
                    run_id: launch.run.clone(),
                    seq: run.seq,
                    event,
                };
                run.seq += 1;
                last = Some(outbox.notify_tracked::<RunEventNotification>(params));
            }
        }
        run.update_progress(launch, outbox);
    }
    runs.retain(|_, run| run.ended.is_none() || run.token == Token::Asked);
    match last {
        Some(last) => last.await.map_err(|_| ()),
        None => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// No progress for this run, or no longer.
    None,
    /// The client has not answered yet.
    Asked,
    /// The client takes progress; nothing was sent yet.
    Accepted,
    /// `begin` was sent, `end` wasn't.
    Begun,
}

/// What is known about a run that the client is told about.
#[derive(Debug)]
struct Reported {
    title: String,
    token: Token,
    /// Not sent yet.
    events: Vec<RunEvent>,
    /// Number of the next notification.
    seq: u64,
    since: Instant,
    started: u32,
    finished: u32,
    /// Sessions going on, oldest first.
    active: Vec<(EffectId, String)>,
    ended: Option<String>,
    changed: bool,
}

impl Reported {
    fn new(title: String, token: Token) -> Reported {
        Reported {
            title,
            token,
            events: Vec::new(),
            seq: 0,
            since: Instant::now(),
            started: 0,
            finished: 0,
            active: Vec::new(),
            ended: None,
            changed: false,
        }
    }

    fn absorb(&mut self, event: RunEvent) {
        match &event.event {
            Event::SessionStarted {
                effect, agent, label, ..
            } => {
                let who = agent.as_ref().map_or_else(|| label.clone(), ToString::to_string);
                self.started += 1;
                self.active.push((effect.clone(), who));
                self.changed = true;
            }
            Event::SessionFinished { effect, .. } => {
                self.finished += 1;
                self.active.retain(|(id, _)| id != effect);
                self.changed = true;
            }
            Event::SessionText { effect, text } => {
                if let Some(RunEvent {
                    event:
                        Event::SessionText {
                            effect: last,
                            text: whole,
                        },
                    ..
                }) = self.events.last_mut()
                    && last == effect
                {
                    whole.push_str(text);
                    return;
                }
            }
            _ => {}
        }
        self.events.push(event);
    }

    fn update_progress(&mut self, launch: &Launch, outbox: &Outbox) {
        if self.token == Token::Accepted {
            self.token = Token::Begun;
            let begin = WorkDoneProgressBegin {
                title: self.title.clone(),
                cancellable: Some(true),
                message: None,
                percentage: None,
            };
            progress(launch, WorkDoneProgress::Begin(begin), outbox);
        }
        if std::mem::take(&mut self.changed) {
            self.send_progress(launch, outbox);
        }
        if self.token == Token::Begun
            && let Some(how) = &self.ended
        {
            self.token = Token::None;
            let message = Some(format!("{how} · {}", self.tally()));
            progress(
                launch,
                WorkDoneProgress::End(WorkDoneProgressEnd { message }),
                outbox,
            );
        }
    }

    fn send_progress(&self, launch: &Launch, outbox: &Outbox) {
        if self.token != Token::Begun {
            return;
        }
        let report = WorkDoneProgressReport {
            cancellable: Some(true),
            message: Some(self.message()),
            percentage: None,
        };
        progress(launch, WorkDoneProgress::Report(report), outbox);
    }

    /// As in “3/7 sessions · researcher · 12 s”.
    fn message(&self) -> String {
        let who = match self.active.as_slice() {
            [] => String::new(),
            [(_, one)] => format!(" · {one}"),
            [(_, one), others @ ..] => format!(" · {one} and {} more", others.len()),
        };
        format!(
            "{}/{} sessions{who} · {} s",
            self.finished,
            self.started,
            self.since.elapsed().as_secs()
        )
    }

    fn tally(&self) -> String {
        let s = if self.finished == 1 { "" } else { "s" };
        format!(
            "{} session{s} · {} s",
            self.finished,
            self.since.elapsed().as_secs()
        )
    }
}

fn progress(launch: &Launch, value: WorkDoneProgress, outbox: &Outbox) {
    let params = ProgressParams {
        token: token(launch),
        value: ProgressParamsValue::WorkDone(value),
    };
    outbox.notify::<ProgressNotification>(params);
}

/// The word for how a run ended.
pub(crate) fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Waiting => "waiting",
        RunStatus::OutOfBudget => "out of budget",
        RunStatus::Interrupted => "interrupted",
    }
}

#[cfg(test)]
mod tests {
    use prose_model::{EVENT_VERSION, Order};

    use super::*;

    #[tokio::test]
    async fn a_client_that_takes_nothing_lets_no_queue_grow() {
        let (outbox, _never_served) = Outbox::new();
        let (tx, rx) = mpsc::channel(ON_THE_WAY);
        let task = tokio::spawn(report(rx, outbox, Wants { events: true }));
        let launch = Launch {
            number: 0,
            run: "r".into(),
        };
        let began = Report::Began {
            launch: launch.clone(),
            title: String::new(),
            progress: false,
        };
        tx.send(began).await.unwrap();
        let mut taken = 0;
        for n in 0..10 * (ON_THE_WAY + TOGETHER) {
            let order = Order::Machine { seq: n as u64 };
            let end = prose_model::End::Ok;
            let event = RunEvent {
                v: EVENT_VERSION,
                run_id: "r".into(),
                ts: String::new(),
                order,
                event: Event::FrameFinished { frame: 1, end },
            };
            let event = Report::Event {
                launch: launch.clone(),
                event: Box::new(event),
            };
            taken += usize::from(tx.try_send(event).is_ok());
            tokio::task::yield_now().await;
        }
        // One batch is being sent, and behind it the channel is full.
        assert!(taken >= ON_THE_WAY, "{taken}");
        assert!(taken <= ON_THE_WAY + TOGETHER, "{taken}");
        task.abort();
    }
}
