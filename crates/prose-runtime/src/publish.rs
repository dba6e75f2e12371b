//! Turns what the machine and the driver say into published events and into the projections on disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use prose_model::{
    BindKind, BindingRef, Bundle, Digest, EVENT_VERSION, Event, MachineEvent, Order, RunEvent, RunId,
    SourceRange, StateIn, TextPart, Value,
};
use prose_state::{Bindings, Clock, RunDir, StateProjection, format_millis, parse_ms, snippet};

use crate::bus::Bus;
use crate::narration::Narrator;
use crate::timer::Timer;

/// `state.md` is written at most so often while the run goes on (interfaces.md, "Run directory").
const STATE_INTERVAL: Duration = Duration::from_millis(250);

/// So many binding files may lag behind before they are written at once.
const HELD_LIMIT: usize = 1024;

/// What becomes of the files that show how a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    /// They follow the run.
    Follow,
    /// The run is over: what its end leaves is compared with what is there.
    AtRest,
    /// They stay as they are: the run was not taken up, or its folder has gone and must not come back in parts.
    Leave,
}

pub(crate) struct Publisher {
    bus: Bus,
    run_id: RunId,
    clock: Arc<dyn Clock>,
    last_seq: Option<u64>,
    n: u64,
    dir: RunDir,
    bundle: Arc<Bundle>,
    bindings: Bindings,
    projection: StateProjection,
    timer: Arc<dyn Timer>,
    /// By the timer.
    last_flush: Option<Duration>,
    /// Whether the last write of `state.md` failed.
    state_failed: bool,
    files: Files,
    /// While a replay goes on: the time of the record that is replayed.
    replay_ts: Option<String>,
    /// The latest value of every binding whose file is not up to date. A loop binds the same name over and over, and a
    /// replay would take the files back to old values for a moment.
    held: IndexMap<BindingRef, (BindKind, SourceRange, Value)>,
    /// What the files of bindings hold that are references to stored content.
    written: HashMap<BindingRef, Digest>,
    /// Where state is in memory: what is said instead of what is written.
    narrator: Option<Narrator>,
    /// The last time, in milliseconds, and how it is written.
    stamp: (i64, String),
}

impl Publisher {
    pub(crate) fn new(
        bus: Bus,
        run: &prose_state::Run,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Publisher {
        let projection = StateProjection::new(
            run.bundle.clone(),
            run.id().clone(),
            &run.header.program,
            run.started_ms,
        );
        Publisher {
            bus,
            run_id: run.id().clone(),
            clock,
            last_seq: None,
            n: 0,
            dir: run.dir.clone(),
            bundle: run.bundle.clone(),
            bindings: run.bindings.clone(),
            projection,
            timer,
            last_flush: None,
            state_failed: false,
            files: Files::Follow,
            replay_ts: None,
            held: IndexMap::new(),
            written: HashMap::new(),
            narrator: (run.header.options.state == StateIn::Memory).then(Narrator::default),
            stamp: (i64::MIN, String::new()),
        }
    }

    /// The run is over and told once more: files are only written where they are not as its end left them.
    pub(crate) fn at_rest(&mut self) {
        self.files = Files::AtRest;
        self.projection.at_rest();
    }

    /// No file is written any more.
    pub(crate) fn leave_files(&mut self) {
        self.files = Files::Leave;
    }

    /// From here on events are those of a replay and happened at the given time.
    pub(crate) fn replay_at(&mut self, ts: &str) {
        self.replay_ts = Some(ts.to_owned());
    }

    /// The replay is over: binding files are brought up to date. Those of names that a changed program no longer binds go.
    pub(crate) fn replay_done(&mut self, changed: bool) {
        self.replay_ts = None;
        if changed && let Err(error) = self.bindings.keep_only(self.held.keys()) {
            self.notice(
                "warning",
                format!("files of an earlier version of the program were not removed: {error}"),
            );
        }
        self.write_held();
    }

    /// Brings all binding files up to date.
    fn write_held(&mut self) {
        for (binding, (kind, source, value)) in std::mem::take(&mut self.held) {
            self.write_binding(&binding, kind, source, &value);
        }
    }

    /// Brings the file of a binding up to date, and says whether it is known to hold this very reference.
    pub(crate) fn holds_value(&mut self, binding: &BindingRef, value: &Value) -> bool {
        if let Some((kind, source, value)) = self.held.swap_remove(binding) {
            self.write_binding(binding, kind, source, &value);
        }
        reference(value).is_some_and(|digest| self.written.get(binding) == Some(digest))
    }

    /// An event of the machine.
    pub(crate) fn machine(&mut self, event: MachineEvent) {
        self.last_seq = Some(event.seq);
        if let Event::Bound {
            binding,
            kind,
            source,
            value,
            ..
        } = &event.event
        {
            if kind.file_kind().is_some() && self.narrator.is_none() {
                self.held.insert(binding.clone(), (*kind, *source, value.clone()));
            }
            if self.held.len() >= HELD_LIMIT && self.replay_ts.is_none() {
                self.write_held();
            }
        }
        let lines = self
            .narrator
            .as_mut()
            .map(|narrator| narrator.lines(&event.event));
        self.publish(Order::Machine { seq: event.seq }, event.event);
        self.narrate(lines);
    }

    /// An event in between.
    pub(crate) fn stream(&mut self, event: Event) {
        let lines = self.narrator.as_mut().map(|narrator| narrator.lines(&event));
        let begins = matches!(event, Event::RunStarted { .. });
        if begins {
            self.stream_one(event);
            self.narrate(lines);
        } else {
            self.narrate(lines);
            self.stream_one(event);
        }
    }

    fn narrate(&mut self, lines: Option<Vec<String>>) {
        for line in lines.into_iter().flatten() {
            self.stream_one(Event::Narration { line });
        }
    }

    fn stream_one(&mut self, event: Event) {
        let order = self.next_between();
        self.publish(order, event);
    }

    /// The place of an event that is none of the machine's.
    fn next_between(&mut self) -> Order {
        let order = Order::Stream {
            after_seq: self.last_seq,
            n: self.n,
        };
        self.n += 1;
        order
    }

    /// Something that a person should know.
    pub(crate) fn notice(&mut self, level: &str, message: String) {
        self.stream(Event::Notice {
            level: level.to_owned(),
            message,
        });
    }

    fn publish(&mut self, order: Order, event: Event) {
        let event = self.dated(order, event);
        self.projection.apply(&event.event, self.stamp.0);
        self.bus.publish(event);
    }

    fn dated(&mut self, order: Order, event: Event) -> RunEvent {
        let ts = match &self.replay_ts {
            Some(ts) => {
                if let Some(ms) = parse_ms(ts) {
                    self.stamp = (ms, String::new());
                }
                ts.clone()
            }
            None => {
                let now = self.clock.now_ms();
                if self.stamp.0 != now || self.stamp.1.is_empty() {
                    self.stamp = (now, format_millis(now));
                }
                self.stamp.1.clone()
            }
        };
        RunEvent {
            v: EVENT_VERSION,
            run_id: self.run_id.clone(),
            ts,
            order,
            event,
        }
    }

    /// A binding file is a projection: that it can't be written must not end the run.
    fn write_binding(&mut self, binding: &BindingRef, kind: BindKind, source: SourceRange, value: &Value) {
        let source = snippet(&self.bundle, source);
        match reference(value) {
            Some(digest) => self.written.insert(binding.clone(), digest.clone()),
            None => self.written.remove(binding),
        };
        if let Err(error) = self.bindings.write(binding, kind, &source, value) {
            self.written.remove(binding);
            tracing::debug!(binding = %binding.name, %error, "binding file not written");
            self.notice(
                "warning",
                format!("the file of `{}` was not written: {error}", binding.name),
            );
        }
    }

    /// How long until `state.md` may be written; none when there is nothing to write.
    pub(crate) fn flush_due(&self) -> Option<Duration> {
        if self.narrator.is_some() {
            return None;
        }
        let since = self
            .last_flush
            .map_or(STATE_INTERVAL, |at| self.timer.now().saturating_sub(at));
        self.projection
            .dirty()
            .then(|| STATE_INTERVAL.saturating_sub(since))
    }

    /// Writes `state.md` if it is time, or in any case.
    pub(crate) fn flush(&mut self, now: bool) {
        if !now && self.flush_due() != Some(Duration::ZERO) {
            return;
        }
        let wanted = match self.files {
            Files::Follow => true,
            Files::AtRest => now,
            Files::Leave => false,
        };
        if self.narrator.is_some() || !wanted {
            return;
        }
        self.last_flush = Some(self.timer.now());
        self.write_held();
        if let Err(error) = self.projection.flush(&self.dir) {
            tracing::debug!(%error, "state.md not written");
            // Once: as long as nothing changes about it, it would be said several times a second.
            if !std::mem::replace(&mut self.state_failed, true) {
                self.notice("warning", format!("state.md is not up to date: {error}"));
            }
        } else {
            self.state_failed = false;
        }
    }

    /// The last event: everything is on disk, or it was said that it is not, when observers get it.
    pub(crate) fn finish(&mut self, event: Event) {
        let lines = self.narrator.as_mut().map(|narrator| narrator.lines(&event));
        self.narrate(lines);
        self.projection.apply(&event, self.clock.now_ms());
        self.flush(true);
        let order = self.next_between();
        let event = self.dated(order, event);
        self.bus.publish(event);
    }

    /// No event follows.
    pub(crate) fn close(&self) {
        self.bus.close();
    }
}

/// The content that a value is nothing but a reference to.
fn reference(value: &Value) -> Option<&Digest> {
    match value {
        Value::Text(text) => match text.parts.as_slice() {
            [TextPart::Ref(reference)] => Some(&reference.sha256),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use prose_model::RunStatus;
    use prose_state::{NewRun, RandomIds, Run, SystemClock};

    use super::*;
    use crate::timer::SystemTimer;

    #[test]
    fn the_end_of_a_run_leaves_nothing_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("main.prose");
        std::fs::write(&path, "session \"x\"\n").unwrap();
        let new = NewRun {
            program: "main.prose".to_owned(),
            bundle: prose_project::load(&path, dir.path()).unwrap().bundle.unwrap(),
            inputs: IndexMap::new(),
            options: Default::default(),
            engine: String::new(),
        };
        let clock = Arc::new(SystemClock);
        let run = Run::create(dir.path(), new, clock.clone(), &RandomIds).unwrap();
        let bus = Bus::default();
        let mut publisher = Publisher::new(bus, &run, clock, Arc::new(SystemTimer::default()));
        publisher.finish(Event::RunFinished {
            status: RunStatus::Completed,
            outputs: IndexMap::new(),
            error: None,
            usage: Default::default(),
        });
        assert_eq!(publisher.flush_due(), None);
        let state = std::fs::read_to_string(run.dir.path().join("state.md")).unwrap();
        assert!(state.contains("completed"), "{state}");
    }
}
