//! Time and randomness, behind traits so that tests and simulated runs decide them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use prose_model::RunId;

/// Says what time it is.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        Timestamp::now().as_millisecond()
    }
}

/// A clock that stands until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Stands at the given milliseconds since the Unix epoch.
    pub fn at(ms: i64) -> ManualClock {
        ManualClock(AtomicI64::new(ms))
    }
    /// Moves the clock on by so many milliseconds.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes the random part of a run id.
pub trait RunIds: Send + Sync {
    /// Six characters of `a-z0-9`; asked again when the id is taken.
    fn random6(&self) -> String;
}

/// Run ids nobody can foresee.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl RunIds for RandomIds {
    fn random6(&self) -> String {
        // The standard library seeds its hash maps from the system's randomness; no more is needed for six characters.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        base36(hasher.finish())
    }
}

/// Run ids that count up from a number.
#[derive(Debug, Default)]
pub struct FixedIds(AtomicU64);

impl FixedIds {
    /// The first id is this number in base 36.
    pub fn from(first: u64) -> FixedIds {
        FixedIds(AtomicU64::new(first))
    }
}

impl RunIds for FixedIds {
    fn random6(&self) -> String {
        base36(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// `{YYYYMMDD}-{HHMMSS}-{random6}` in UTC, so that it agrees with `started:` in `state.md` (seed, "Run ID Format").
pub(crate) fn run_id(ms: i64, random6: &str) -> RunId {
    RunId::from(format!("{}-{random6}", timestamp(ms).strftime("%Y%m%d-%H%M%S")))
}

/// RFC 3339 in UTC with milliseconds, as in the journal and in events.
pub fn format_millis(ms: i64) -> String {
    timestamp(ms).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// RFC 3339 in UTC with whole seconds, as in `state.md`.
pub fn format_seconds(ms: i64) -> String {
    timestamp(ms).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Milliseconds since the Unix epoch of an RFC 3339 time.
pub fn parse_ms(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|ts| ts.as_millisecond())
}

fn timestamp(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn base36(mut n: u64) -> String {
    let mut text = [b'0'; 6];
    for place in text.iter_mut().rev() {
        *place = b"0123456789abcdefghijklmnopqrstuvwxyz"[(n % 36) as usize];
        n /= 36;
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_shape_of_the_seed() {
        let id = run_id(1_768_487_452_345, &FixedIds::from(35 + 36).random6());
        assert_eq!(id.as_str(), "20260115-143052-00001z");
        assert_eq!(format_seconds(1_768_487_452_345), "2026-01-15T14:30:52Z");
        assert_eq!(format_millis(1_768_487_452_045), "2026-01-15T14:30:52.045Z");
        assert_eq!(parse_ms("2026-01-15T14:30:52.045Z"), Some(1_768_487_452_045));
    }

    #[test]
    fn random_ids_differ() {
        let ids: std::collections::HashSet<String> = (0..200).map(|_| RandomIds.random6()).collect();
        assert!(ids.len() > 190, "{ids:?}");
        assert!(
            ids.iter()
                .all(|id| id.len() == 6 && id.bytes().all(|b| b.is_ascii_alphanumeric()))
        );
    }
}
