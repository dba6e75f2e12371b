//! The run directory and everything in it: journal, content-addressed values, binding files, agent memory, and the
//! `state.md` projection. Layout and file formats are those of the seed, "State Management"; the journal is ours.
//!
//! Order of writes (architecture, boundary 4): staging → validate → value fsync → journal record (fdatasync) →
//! projections. Whatever is a projection (`bindings/`, `state.md`, copies under `imports/`) can be rebuilt from the
//! journal by replaying the machine and handing the events to [`Bindings::apply`] and [`StateProjection::apply`].
//!
//! Deliberately absent: calls to agents or models, scheduling, the machine, async. Every function blocks; a caller
//! inside an async engine uses a blocking thread.
//!
//! Architecture invariant: the journal alone decides what a resumed run knows; no other file is read back for that
//! but the values and the bundle it names by digest.

mod binding;
mod clock;
mod error;
pub mod failpoint;
mod fs;
mod journal;
mod layout;
mod memory;
mod outline;
mod program;
mod projection;
mod references;
mod run;
mod summary;
mod tail;
mod trace;
mod values;
mod view;

pub use binding::{
    BindingFile, Bindings, Staged, binding_file_name, parse_staged, read_staged, read_staged_text,
};
pub use clock::{
    Clock, FixedIds, ManualClock, RandomIds, RunIds, SystemClock, format_millis, format_seconds, parse_ms,
};
pub use error::{Damage, StateError};
pub use fs::read_at_most;
pub use journal::{
    Journal, JournalContent, TornTail, decode_journal, encode_record, read_intact, read_journal,
};
pub use layout::{ProgramDir, RunDir, RunLock, lock_owner, safe_file_name};
pub use memory::{AgentMemory, MemoryLock, MemoryRoots};
pub use program::snippet;
pub use projection::StateProjection;
pub use run::{NewRun, PendingEffect, Recovered, Run};
pub use summary::{RunState, RunSummary, is_work, list_runs, no_header, run_summary};
pub use tail::JournalTail;
pub use values::{Hide, ValueStore, digest_of, summarize};
pub use view::{StoredRun, find_run, read_run};

/// What every fallible function here returns.
pub type Result<T> = std::result::Result<T, StateError>;
