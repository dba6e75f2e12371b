//! Session backends and the judge, each behind one object-safe trait, and what all of them share: the text a
//! session is given, the mock file, the registry that finds a backend by name.
//!
//! A backend turns a [`SessionSpawn`] into a [`SessionReply`] or a failure and reports on the way through
//! [`SessionSink`]. A [`Judge`] answers what the program leaves to judgement. Both only ever see what the
//! runtime hands them.
//!
//! Deliberately absent: scheduling, retries, limits on how many sessions run, persistence, the run directory.
//! Those are the runtime's and the state crate's. Nothing here falls back to made-up answers: `simulate` runs
//! only when it is named.
//!
//! Architecture invariant: a backend keeps no truth about a run. Asked again with the same effect id, it
//! may repeat its work, and the runtime decides which answer counts.

mod acp;
pub mod api;
mod backend;
pub mod child;
mod claude;
mod content;
pub mod detect;
mod http;
mod judge;
pub mod judging;
pub mod mcp;
mod mock;
mod openclaw;
mod origin;
pub mod policy;
pub mod process;
pub mod prompt;
pub mod redact;
mod reply;
mod session;
mod simulate;
pub mod skills;
pub mod tools;

pub use acp::{Acp, AcpFactory};
pub use backend::{
    Backend, BackendContext, BackendError, BackendFactory, BackendSettings, Looked, MockSource, Registry,
    ReplayFactory, SimulateFactory,
};
pub use claude::{Claude, ClaudeFactory};
pub use content::{Content, InlineContent, failure, one_line, plain_json, plain_text};
pub use judge::{DecodeInput, InputSource, IssueObserver, Judge, JudgeInput, Reading, decision_fits};
pub use mock::{
    DecodeRule, Defaults, FailSpec, InputRule, MockError, MockErrorKind, MockFile, Pattern, SessionAnswer,
    SessionRule, TokenSpec, VerdictRule,
};
pub use openclaw::{OpenClaw, OpenClawFactory};
pub use policy::Policy;
pub use redact::{RedactStream, Redactor, Secret};
pub use session::{
    CancelToken, Capabilities, Clock, Delivery, MemoryContext, MemoryUpdate, NullSink, PermissionAnswer,
    PermissionQuestion, ReplyBody, SessionBackend, SessionReply, SessionSink, SessionSpawn, SessionUpdate,
    SpendLimit, UserQuestion,
};
pub use simulate::{SIMULATED, Simulate};
