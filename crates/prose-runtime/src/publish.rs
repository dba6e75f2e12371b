//! Turns what the machine and the driver say into published events and into the projections on disk.

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use prose_model::{
    BindKind, BindingRef, Bundle, EVENT_VERSION, Event, MachineEvent, Order, RunEvent, RunId, SourceRange,
    Value,
};
use prose_state::{Bindings, Clock, RunDir, StateProjection, format_millis, snippet};

use crate::bus::Bus;
use crate::timer::Timer;

/// `state.md` is written at most so often while the run goes on (interfaces.md, "Run directory").
const STATE_INTERVAL: Duration = Duration::from_millis(250);

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
    /// While a replay goes on: the time of the record that is replayed.
    replay_ts: Option<String>,
    /// While a replay goes on: the latest value of every binding, written when it is over. Writing each one
    /// would take the files back to old values for a moment.
    held: IndexMap<BindingRef, (BindKind, SourceRange, Value)>,
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
            replay_ts: None,
            held: IndexMap::new(),
        }
    }

    /// From here on events are those of a replay and happened at the given time.
    pub(crate) fn replay_at(&mut self, ts: &str) {
        self.replay_ts = Some(ts.to_owned());
    }

    /// The replay is over: binding files are brought up to date. Those of names that a changed program no longer binds go.
    pub(crate) fn replay_done(&mut self, changed: bool) {
        self.replay_ts = None;
        if changed && let Err(error) = self.bindings.keep_only(self.held.keys()) {
            tracing::warn!(%error, "files of an earlier version of the program were not removed");
        }
        for (binding, (kind, source, value)) in std::mem::take(&mut self.held) {
            self.write_binding(&binding, kind, source, &value);
        }
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
            if self.replay_ts.is_some() {
                self.held.insert(binding.clone(), (*kind, *source, value.clone()));
            } else {
                self.write_binding(binding, *kind, *source, value);
            }
        }
        self.publish(Order::Machine { seq: event.seq }, event.event);
    }

    /// An event in between.
    pub(crate) fn stream(&mut self, event: Event) {
        let order = Order::Stream {
            after_seq: self.last_seq,
            n: self.n,
        };
        self.n += 1;
        self.publish(order, event);
    }

    /// Something that a person should know.
    pub(crate) fn notice(&mut self, level: &str, message: String) {
        self.stream(Event::Notice {
            level: level.to_owned(),
            message,
        });
    }

    fn publish(&mut self, order: Order, event: Event) {
        let ts = self
            .replay_ts
            .clone()
            .unwrap_or_else(|| format_millis(self.clock.now_ms()));
        let event = RunEvent {
            v: EVENT_VERSION,
            run_id: self.run_id.clone(),
            ts,
            order,
            event,
        };
        self.projection.apply_run_event(&event);
        self.bus.publish(event);
    }

    /// A binding file is a projection: that it can't be written must not end the run.
    fn write_binding(&mut self, binding: &BindingRef, kind: BindKind, source: SourceRange, value: &Value) {
        let source = snippet(&self.bundle, source);
        if let Err(error) = self.bindings.write(binding, kind, &source, value) {
            tracing::warn!(binding = %binding.name, %error, "binding file not written");
            self.notice(
                "warning",
                format!("the file of `{}` was not written: {error}", binding.name),
            );
        }
    }

    /// How long until `state.md` may be written; none when there is nothing to write.
    pub(crate) fn flush_due(&self) -> Option<Duration> {
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
        self.last_flush = Some(self.timer.now());
        if let Err(error) = self.projection.flush(&self.dir) {
            tracing::warn!(%error, "state.md not written");
        }
    }

    /// No event follows.
    pub(crate) fn close(&self) {
        self.bus.close();
    }
}
