//! The event bus of a run: one publisher, any number of observers, none of which can hold the run up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prose_model::{Event, Order, RunEvent};
use tokio::sync::Notify;

use crate::spill::{Spill, Storage};

/// So many events come back from a file at a time.
const REFILL: usize = 256;

/// What an observer gets.
#[derive(Debug, Clone)]
pub enum StreamItem {
    /// An event, in the order of publication.
    Event(Arc<RunEvent>),
    /// The observer was too slow and events are missing here. [`crate::RunControl::make_up`] gives those of the machine,
    /// and says what is missing then.
    Gap(Gap),
}

/// Events that are missing in an observer's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// How many in all.
    pub missed: u64,
    /// How many of the machine.
    pub machine: u64,
    /// The last event of the machine before; none when it had sent none.
    pub after_seq: Option<u64>,
    /// The number of the first that came in between, or would have.
    pub n: u64,
}

impl Gap {
    pub(crate) fn add(&mut self, event: &RunEvent) {
        self.missed += 1;
        self.machine += u64::from(matches!(event.order, Order::Machine { .. }));
    }

    /// The first is there after all.
    pub(crate) fn take(&mut self, event: &RunEvent) {
        self.missed -= 1;
        match event.order {
            Order::Machine { seq } => {
                self.machine -= 1;
                self.after_seq = Some(seq);
            }
            Order::Stream { n, .. } => self.n = n + 1,
        }
    }
}

/// What happens when an observer does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Everything is kept, in memory. Only where a run writes nothing to disk.
    Unlimited,
    /// Everything is kept: so many events wait in memory, the others in a file that has no name. For observers that
    /// need every event, such as `--json`. Where no file can be written there is a gap, but not before some megabytes wait.
    Spilled(usize),
    /// At most so many events wait. Streamed text, tools and usage are dropped first, from half of the limit on;
    /// at the limit everything is but the end of the run.
    Bounded(usize),
}

/// One observer's end of the bus. Dropping it unsubscribes.
#[derive(Debug)]
pub struct EventStream {
    queue: Arc<Queue>,
}

impl EventStream {
    /// The next event; none when the run is over and everything was delivered. Cancel safe.
    pub async fn next(&mut self) -> Option<StreamItem> {
        loop {
            // Registered before the look: what is pushed in between is not missed.
            let notified = self.queue.notify.notified();
            {
                let mut state = self.queue.lock();
                if let Some(item) = state.pop() {
                    return Some(item);
                }
                if state.closed {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// The next event if one is waiting.
    pub fn try_next(&mut self) -> Option<StreamItem> {
        self.queue.lock().pop()
    }
}

impl EventStream {
    /// How many events wait in memory.
    pub fn in_memory(&self) -> usize {
        self.queue.lock().items.len()
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.closed = true;
        state.items.clear();
        state.spill = None;
    }
}

#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    notify: Notify,
    backlog: Backlog,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<StreamItem>,
    /// What came after `items` and had no place there.
    spill: Option<Spill>,
    storage: Storage,
    /// The last event of the machine that was taken in, given or not.
    last_seq: Option<u64>,
    /// The number of the next event that comes in between.
    next_n: u64,
    /// By either end.
    closed: bool,
}

impl QueueState {
    fn pop(&mut self) -> Option<StreamItem> {
        if self.items.is_empty()
            && let Some(mut spill) = self.spill.take()
        {
            let (items, read) = spill.read(REFILL);
            self.items.extend(items);
            match read {
                Ok(()) => self.spill = Some(spill).filter(|spill| !spill.is_empty()),
                Err(error) => {
                    tracing::error!(%error, "events that were put aside can't be read");
                    self.items.push_back(StreamItem::Gap(spill.into_gap()));
                }
            }
        }
        self.items.pop_front()
    }

    fn push(&mut self, event: &Arc<RunEvent>, backlog: Backlog) {
        let here = Gap {
            missed: 0,
            machine: 0,
            after_seq: self.last_seq,
            n: self.next_n,
        };
        let room = match backlog {
            Backlog::Unlimited => true,
            Backlog::Spilled(limit) => self.spill.is_none() && self.items.len() < limit,
            Backlog::Bounded(limit) => {
                let streamed = is_progress(event);
                self.items.len() < if streamed { limit / 2 } else { limit }
                    || matches!(event.event, Event::RunFinished { .. })
            }
        };
        if room {
            self.items.push_back(StreamItem::Event(event.clone()));
        } else if let Backlog::Spilled(_) = backlog {
            let storage = self.storage;
            self.spill
                .get_or_insert_with(|| Spill::new(storage, here.clone()))
                .push(event, here);
        } else if let Some(StreamItem::Gap(gap)) = self.items.back_mut() {
            gap.add(event);
        } else {
            let mut gap = here;
            gap.add(event);
            self.items.push_back(StreamItem::Gap(gap));
        }
        match event.order {
            Order::Machine { seq } => self.last_seq = Some(seq),
            Order::Stream { n, .. } => self.next_n = n + 1,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when nobody listens any more.
    fn push(&self, event: &Arc<RunEvent>) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.push(event, self.backlog);
        drop(state);
        self.notify.notify_one();
        true
    }
}

/// Progress that a later event makes up for.
fn is_progress(event: &RunEvent) -> bool {
    matches!(event.order, Order::Stream { .. })
        && matches!(
            event.event,
            Event::SessionText { .. } | Event::SessionTool { .. } | Event::SessionUsage { .. }
        )
}

/// The publisher's end; clones publish to the same observers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bus {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    observers: Vec<Arc<Queue>>,
    closed: bool,
}

impl Bus {
    /// A new observer. It sees what is published from here on.
    pub(crate) fn subscribe(&self, backlog: Backlog) -> EventStream {
        self.subscribe_with(backlog, Storage::default())
    }

    fn subscribe_with(&self, backlog: Backlog, storage: Storage) -> EventStream {
        let queue = Arc::new(Queue {
            state: Mutex::new(QueueState {
                storage,
                ..QueueState::default()
            }),
            notify: Notify::new(),
            backlog,
        });
        let mut shared = self.lock();
        if shared.closed {
            queue.lock().closed = true;
        } else {
            shared.observers.push(queue.clone());
        }
        EventStream { queue }
    }

    /// Hands an event to every observer; never waits.
    pub(crate) fn publish(&self, event: RunEvent) {
        let event = Arc::new(event);
        self.lock().observers.retain(|queue| queue.push(&event));
    }

    /// Nothing follows: streams end when they have delivered what waits.
    pub(crate) fn close(&self) {
        let mut shared = self.lock();
        shared.closed = true;
        for queue in shared.observers.drain(..) {
            queue.lock().closed = true;
            queue.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use prose_model::EVENT_VERSION;

    use super::*;

    fn notice(n: u64) -> RunEvent {
        let event = Event::Notice {
            level: "info".into(),
            message: String::new(),
        };
        RunEvent {
            v: EVENT_VERSION,
            run_id: "r".into(),
            ts: String::new(),
            order: Order::Stream { after_seq: None, n },
            event,
        }
    }

    fn text(n: u64) -> RunEvent {
        RunEvent {
            event: Event::SessionText {
                effect: "e".into(),
                text: String::new(),
            },
            ..notice(n)
        }
    }

    async fn drain(stream: &mut EventStream) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(item) = stream.next().await {
            out.push(match item {
                StreamItem::Event(event) => match event.order {
                    Order::Stream { n, .. } => n.to_string(),
                    Order::Machine { seq } => format!("m{seq}"),
                },
                StreamItem::Gap(gap) => format!("gap {}", gap.missed),
            });
        }
        out
    }

    #[tokio::test]
    async fn a_slow_observer_gets_a_gap_and_the_others_everything() {
        let bus = Bus::default();
        let (mut slow, mut all) = (
            bus.subscribe(Backlog::Bounded(4)),
            bus.subscribe(Backlog::Unlimited),
        );
        let (mut last, gone) = (
            bus.subscribe(Backlog::Bounded(4)),
            bus.subscribe(Backlog::Bounded(4)),
        );
        drop(gone);
        for n in 0..2 {
            bus.publish(notice(n));
        }
        bus.publish(text(2));
        bus.publish(notice(3));
        bus.publish(notice(4));
        assert!(matches!(last.try_next(), Some(StreamItem::Event(_))));
        assert!(matches!(last.try_next(), Some(StreamItem::Event(_))));
        bus.publish(notice(5));
        bus.close();
        assert_eq!(drain(&mut all).await, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(drain(&mut slow).await, ["0", "1", "gap 1", "3", "gap 2"]);
        assert_eq!(drain(&mut last).await, ["gap 1", "3", "gap 1", "5"]);
        assert!(bus.subscribe(Backlog::Unlimited).next().await.is_none());
    }

    fn machine(seq: u64) -> RunEvent {
        let end = prose_model::End::Ok;
        RunEvent {
            order: Order::Machine { seq },
            event: Event::FrameFinished { frame: 1, end },
            ..notice(0)
        }
    }

    #[tokio::test]
    async fn what_has_no_place_in_memory_waits_in_a_file() {
        let bus = Bus::default();
        let mut stream = bus.subscribe(Backlog::Spilled(3));
        for n in 0..2000 {
            bus.publish(notice(n));
            assert!(stream.in_memory() <= 3);
        }
        for n in 0..1000 {
            let Some(StreamItem::Event(event)) = stream.next().await else {
                panic!("an event")
            };
            assert_eq!(*event, notice(n));
            assert!(stream.in_memory() <= REFILL);
        }
        // Behind what is in the file, and after it is read to its end, in memory again.
        bus.publish(notice(2000));
        for n in 1000..=2000 {
            let Some(StreamItem::Event(event)) = stream.next().await else {
                panic!("an event")
            };
            assert_eq!(event.order, Order::Stream { after_seq: None, n });
        }
        bus.publish(machine(0));
        assert_eq!(stream.in_memory(), 1);
        bus.close();
        assert_eq!(drain(&mut stream).await, ["m0"]);
    }

    #[tokio::test]
    async fn a_gap_says_from_where_to_catch_up() {
        let bus = Bus::default();
        let mut stream = bus.subscribe(Backlog::Bounded(2));
        for seq in 0..2 {
            bus.publish(machine(seq));
        }
        bus.publish(notice(0));
        for seq in 2..6 {
            bus.publish(machine(seq));
        }
        bus.close();
        assert_eq!(drain(&mut stream).await.len(), 3);
        let mut stream = Bus::default().subscribe(Backlog::Bounded(0));
        assert!(stream.try_next().is_none());
        let bus = Bus::default();
        let mut stream = bus.subscribe(Backlog::Bounded(1));
        bus.publish(machine(0));
        bus.publish(notice(0));
        bus.publish(machine(1));
        assert!(matches!(stream.try_next(), Some(StreamItem::Event(_))));
        assert!(matches!(
            stream.try_next(),
            Some(StreamItem::Gap(Gap {
                missed: 2,
                machine: 1,
                after_seq: Some(0),
                n: 0,
            }))
        ));
    }

    /// Machine events and others in turn: `m0`, `0`, `m1`, …
    fn publish(bus: &Bus, numbers: std::ops::Range<u64>) {
        for number in numbers {
            bus.publish(machine(number));
            bus.publish(notice(number));
        }
    }

    fn names(numbers: std::ops::Range<u64>) -> Vec<String> {
        numbers.flat_map(|n| [format!("m{n}"), n.to_string()]).collect()
    }

    fn no_file() -> std::io::Result<std::fs::File> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    #[tokio::test]
    async fn without_a_file_what_waits_is_kept_in_memory() {
        let bus = Bus::default();
        let storage = Storage {
            open: no_file,
            ..Storage::default()
        };
        let mut stream = bus.subscribe_with(Backlog::Spilled(3), storage);
        publish(&bus, 0..2000);
        bus.close();
        assert_eq!(drain(&mut stream).await, names(0..2000));
    }

    #[tokio::test]
    async fn a_gap_stands_where_the_events_would_and_what_follows_is_whole() {
        let bus = Bus::default();
        let storage = Storage {
            open: no_file,
            without_file: 100_000,
        };
        let mut stream = bus.subscribe_with(Backlog::Spilled(3), storage);
        publish(&bus, 0..2000);
        let mut got = Vec::new();
        let gap = loop {
            match stream.try_next() {
                Some(StreamItem::Event(event)) => got.push(match event.order {
                    Order::Stream { n, .. } => n.to_string(),
                    Order::Machine { seq } => format!("m{seq}"),
                }),
                Some(StreamItem::Gap(gap)) => break gap,
                None => panic!("a gap"),
            }
        };
        assert!((1000..3000).contains(&got.len()), "{}", got.len());
        assert_eq!(got, names(0..2000)[..got.len()]);
        let (machine, others) = (got.len().div_ceil(2) as u64, got.len() as u64 / 2);
        assert_eq!(
            gap,
            Gap {
                missed: 4000 - got.len() as u64,
                machine: 2000 - machine,
                after_seq: Some(machine - 1),
                n: others,
            }
        );
        // Who follows again misses nothing more.
        publish(&bus, 2000..2010);
        assert_eq!(stream.in_memory(), 3);
        publish(&bus, 2010..4000);
        bus.publish(RunEvent {
            event: Event::RunFinished {
                status: prose_model::RunStatus::Completed,
                outputs: Default::default(),
                error: None,
                usage: Default::default(),
            },
            ..notice(4000)
        });
        bus.close();
        let got = drain(&mut stream).await;
        assert_eq!(got[..20], names(2000..2010));
        assert!(got[got.len() - 2].starts_with("gap "));
        assert_eq!(got.last().unwrap(), "4000");
    }

    #[tokio::test]
    async fn a_file_that_can_not_be_read_to_its_end_loses_only_what_is_behind() {
        thread_local! {
            static FILE: std::cell::RefCell<Option<std::fs::File>> = const { std::cell::RefCell::new(None) };
        }
        /// A file that the test has open as well.
        fn shared() -> std::io::Result<std::fs::File> {
            let file = tempfile::tempfile()?;
            FILE.set(Some(file.try_clone()?));
            Ok(file)
        }
        let bus = Bus::default();
        let storage = Storage {
            open: shared,
            ..Storage::default()
        };
        let mut stream = bus.subscribe_with(Backlog::Spilled(0), storage);
        publish(&bus, 0..2000);
        bus.close();
        let file = FILE.take().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"\0", 10_000).unwrap();
        let got = drain(&mut stream).await;
        let (gap, read) = got.split_last().unwrap();
        assert!((10..256).contains(&read.len()), "{}", read.len());
        assert_eq!(read, &names(0..2000)[..read.len()]);
        assert_eq!(*gap, format!("gap {}", 4000 - read.len()));
    }

    /// A file that can't be written.
    fn read_only() -> std::io::Result<std::fs::File> {
        std::fs::File::open("Cargo.toml")
    }

    #[tokio::test]
    async fn a_file_that_can_not_be_written_is_as_good_as_none() {
        let bus = Bus::default();
        let storage = Storage {
            open: read_only,
            ..Storage::default()
        };
        let mut stream = bus.subscribe_with(Backlog::Spilled(0), storage);
        publish(&bus, 0..2000);
        bus.close();
        assert_eq!(drain(&mut stream).await, names(0..2000));
    }
}
