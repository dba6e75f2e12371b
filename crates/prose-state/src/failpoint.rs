//! Places in the write protocol where a test ends the process as a crash would.
//!
//! A place has a part (what is written) and a step (how far it is). [`ABORT_AT`] names one and which of its visits ends
//! the process; [`LOG`] names a file to which every visit is appended, so that a test knows all there are. Without them
//! a visit costs one load of memory.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Environment variable: `part.step:n`, the n-th visit from 1 of this process.
pub const ABORT_AT: &str = "PROSE_TEST_ABORT_AT";
/// Environment variable: a file that gets a line `part.step` for each visit.
pub const LOG: &str = "PROSE_TEST_POINTS_LOG";

struct Armed {
    /// Part, step and the visit at which the process ends.
    abort: Option<(String, String, u64)>,
    log: Option<PathBuf>,
    visits: Mutex<HashMap<(&'static str, &'static str), u64>>,
}

/// A visit: ends the process when it is the one that a test wants.
pub fn hit(part: &'static str, step: &'static str) {
    if due(part, step) {
        abort();
    }
}

/// A visit whose end the caller prepares, with a write that is only half made, and then calls [`abort`].
pub fn due(part: &'static str, step: &'static str) -> bool {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    match ARMED.get_or_init(armed) {
        None => false,
        Some(armed) => armed.visit(part, step),
    }
}

/// Ends the process at once: no destructor, no buffer that is flushed.
pub fn abort() -> ! {
    std::process::abort()
}

fn armed() -> Option<Armed> {
    let abort = std::env::var(ABORT_AT).ok().and_then(|text| {
        let (place, visit) = text.rsplit_once(':')?;
        let (part, step) = place.split_once('.')?;
        Some((part.to_owned(), step.to_owned(), visit.parse().ok()?))
    });
    let log = std::env::var_os(LOG).map(PathBuf::from);
    (abort.is_some() || log.is_some()).then(|| Armed {
        abort,
        log,
        visits: Mutex::default(),
    })
}

impl Armed {
    fn visit(&self, part: &'static str, step: &'static str) -> bool {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let visit = visits.entry((part, step)).or_insert(0);
        *visit += 1;
        if let Some(log) = &self.log {
            // A test that gets no log notices by itself.
            let _ = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(log)
                .and_then(|mut file| file.write_all(format!("{part}.{step}\n").as_bytes()));
        }
        self.abort
            .as_ref()
            .is_some_and(|(p, s, n)| p == part && s == step && n == visit)
    }
}
