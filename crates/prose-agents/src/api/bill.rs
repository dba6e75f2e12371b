//! What a session or a question has used, known also when its future is gone.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use prose_model::Usage;

use super::models::Price;
use super::wire::Tokens;
use crate::{SessionSink, SessionUpdate};

/// A sum of tokens, told to the session's observer whenever it grows.
#[derive(Default)]
pub(crate) struct Bill {
    sum: Mutex<Sum>,
    price: OnceLock<Price>,
    sink: Option<Arc<dyn SessionSink>>,
}

#[derive(Default)]
struct Sum {
    /// Of calls that are over.
    before: Tokens,
    /// Of the one that is going on.
    current: Tokens,
}

impl Bill {
    /// One that tells the session's observer.
    pub(crate) fn of(sink: Arc<dyn SessionSink>) -> Bill {
        Bill {
            sink: Some(sink),
            ..Bill::default()
        }
    }

    /// Says what the model costs; without it only tokens are counted.
    pub(crate) fn set_price(&self, price: Option<Price>) {
        if let Some(price) = price {
            // A session has one model.
            let _ = self.price.set(price);
        }
    }

    pub(crate) fn price(&self) -> Option<&Price> {
        self.price.get()
    }

    /// What was used so far.
    pub(crate) fn usage(&self) -> Usage {
        let sum = self.sum();
        let mut all = sum.before;
        all.add(sum.current);
        drop(sum);
        all.usage(self.price())
    }

    /// What the call that is going on has used by now.
    pub(crate) fn current(&self, tokens: Tokens) {
        let mut sum = self.sum();
        if sum.current == tokens {
            return;
        }
        sum.current = tokens;
        drop(sum);
        if let Some(sink) = &self.sink {
            sink.update(SessionUpdate::Usage(self.usage()));
        }
    }

    /// The call is over.
    pub(crate) fn settle(&self) {
        let mut sum = self.sum();
        let current = std::mem::take(&mut sum.current);
        sum.before.add(current);
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
