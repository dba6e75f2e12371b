//! The time that the engine waits by: behind a trait, so that tests decide when it passes.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A wait.
pub type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time as it passes for limits and back-off of sessions and for the pace of `state.md`. Dates come from
/// [`crate::EngineConfig::clock`], simulated sessions have a time of their own.
pub trait Timer: Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn now(&self) -> Duration;
    /// Resolves when so much time has passed. Polled on the engine's tokio runtime.
    fn sleep(&self, time: Duration) -> Wait;
}

/// Real time.
#[derive(Debug, Clone, Copy)]
pub struct SystemTimer {
    start: Instant,
}

impl Default for SystemTimer {
    fn default() -> Self {
        SystemTimer {
            start: Instant::now(),
        }
    }
}

impl Timer for SystemTimer {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
    fn sleep(&self, time: Duration) -> Wait {
        Box::pin(async move { tokio::time::sleep(time).await })
    }
}
