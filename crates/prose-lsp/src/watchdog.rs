//! Notices a main loop that is slow or stuck.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A turn that takes longer is logged when it is over.
const SLOW: Duration = Duration::from_millis(100);
/// A turn that takes longer is logged while it lasts.
const STUCK: Duration = Duration::from_secs(5);

/// The turn that is going on, if any.
type Current = Arc<Mutex<Option<(&'static str, Instant)>>>;

/// Measures turns; its thread ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    current: Current,
    _alive: Sender<()>,
}

impl Watchdog {
    /// Starts the watching thread. Without a thread to be had, slow turns are still logged.
    pub(crate) fn start() -> Watchdog {
        let current = Current::default();
        let (alive, dropped) = channel::<()>();
        let seen = Arc::clone(&current);
        let watch = move || {
            let mut reported = None;
            while dropped.recv_timeout(STUCK / 5) == Err(RecvTimeoutError::Timeout) {
                let turn = *seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((name, began)) = turn
                    && began.elapsed() > STUCK
                    && reported != Some(began)
                {
                    reported = Some(began);
                    tracing::error!(turn = name, "the main loop is stuck");
                }
            }
        };
        if let Err(e) = thread::Builder::new().name("prose-watchdog".into()).spawn(watch) {
            tracing::warn!(%e, "no watchdog");
        }
        Watchdog {
            current,
            _alive: alive,
        }
    }

    /// Runs one turn of the loop.
    pub(crate) fn turn(&mut self, name: &'static str, run: impl FnOnce()) {
        let began = Instant::now();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((name, began));
        run();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let took = began.elapsed();
        if took > SLOW {
            tracing::warn!(turn = name, took_ms = took.as_millis() as u64, "slow turn");
        }
    }
}
