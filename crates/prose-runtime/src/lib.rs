//! The engine that drives runs: it steps the machine, performs the effects that it asks for, journals their outcomes,
//! publishes events, cancels, limits and resumes.
//!
//! A run is driven by a thread of its own; effects are tokio tasks. Whoever watches subscribes to [`RunHandle`]'s events
//! and can neither slow nor stop the run but by [`RunControl`].
//!
//! Deliberately absent: the language (parser, checks, lowering), what the machine does with an outcome, formats on
//! disk, backends, front ends, LSP types.
//!
//! Architecture invariant: nothing reaches the machine that is not in the journal before, and nothing that is in the
//! journal is asked again.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod budget;
mod bus;
mod catch_up;
mod changes;
mod commit;
mod computing;
mod content;
mod dispatch;
mod driver;
mod engine;
mod history;
mod kept;
mod log;
mod narration;
mod nesting;
mod no_backend;
mod open;
mod perform;
pub mod plan;
mod publish;
mod questions;
mod queue;
mod replay;
mod request;
mod sessions;
mod spill;
mod supplied;
mod timeline;
mod timer;

pub use bus::{Backlog, EventStream, Gap, StreamItem};
pub use catch_up::CatchUp;
pub use engine::{ABORT_VARIABLE, Engine, EngineConfig, RunControl, RunHandle};
pub use log::Fault;
pub use nesting::Nesting;
pub use request::{
    AnswerError, Attach, InputMode, Limits, Output, Overrides, PermissionProvider, ResumeRequest, RunError,
    RunRequest, RunResult, SessionQuestion, Signal, WaitingInput, value_from_json,
};
pub use timer::{SystemTimer, Timer, Wait};

/// Backends as front ends need them: finding one by name, mock files, permission questions, prompts for a dry run.
pub mod backends {
    pub use prose_agents::{
        Backend, BackendContext, BackendError, BackendFactory, BackendSettings, Content, Delivery,
        InlineContent, MockError, MockFile, MockSource, PermissionAnswer, PermissionQuestion, Redactor,
        Registry,
    };
    pub use prose_agents::{detect, mcp, prompt};
}

/// Runs on disk as front ends need them.
pub mod runs {
    pub use crate::history::record::Recording;
    pub use crate::history::report::state_word;
    pub use crate::history::shape::{
        Attempt, BindingLine, ErrorLine, Flow, InputLine, Line, LineKind, LineState, RunReport, Shown,
        VerdictLine,
    };
    pub use crate::history::{History, Location, PastEffect, PastEvent, history, location, now_ms};
    pub use prose_state::{
        BindingFile, Bindings, RunDir, RunState, RunSummary, StateError, StoredRun, ValueStore, find_run,
        list_runs, parse_ms, read_journal, read_run, run_summary,
    };
}
