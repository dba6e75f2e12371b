//! Records of `journal.jsonl`, the truth of a run.
//!
//! One JSON object a line: `{"v","seq","ts","crc","t":…,…}`. `crc` is the CRC-32C, as eight hexadecimal digits, of the
//! line as it would be without the `crc` member. `prose-state` computes and checks it.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, EffectId, Name, Outcome, RunId, RunStatus, StmtId, Usage, Value};

/// Version of the journal format.
pub const JOURNAL_VERSION: u32 = 1;

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalRecord {
    /// [`JOURNAL_VERSION`] of the writer.
    pub v: u32,
    /// From 0, without gaps.
    pub seq: u64,
    /// When it was written, RFC 3339 in UTC with milliseconds.
    pub ts: String,
    /// What it records.
    #[serde(flatten)]
    pub body: RecordBody,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum RecordBody {
    /// Always the first record.
    Header(Box<Header>),
    /// A process owns the run from here on.
    Lease {
        /// Raised by every resume, from 1.
        lease: u64,
        /// The owner's process id.
        pid: u32,
    },
    /// A value that was supplied before or during the run for an input by name.
    Input {
        /// The input.
        name: Name,
        /// The value.
        value: Value,
    },
    /// The machine asked for an effect.
    Issued {
        /// The effect.
        id: EffectId,
        /// Where.
        stmt: StmtId,
        /// `session`, `judge`, `decode`, `input`, `sleep`, `cancel_scope`.
        kind: String,
        /// Position in the issue order.
        order: u64,
        /// Digest of what is asked: an outcome counts only for the same question.
        hash: Digest,
        /// Digest of the memory the session reads, if it has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<Digest>,
    },
    /// A backend took the effect up.
    Started {
        /// The effect.
        id: EffectId,
        /// The lease it runs under.
        lease: u64,
        /// The backend.
        backend: String,
        /// What the backend needs to find it again (session id, process id with start time).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handle: Option<serde_json::Value>,
    },
    /// A session started a child process. Should the process that drives the run end suddenly, the next one ends the child.
    Child {
        /// The effect.
        id: EffectId,
        /// The lease it runs under.
        lease: u64,
        /// The child.
        process: ProcessId,
    },
    /// An effect's answer; durable before the machine sees it.
    Outcome {
        /// The effect.
        id: EffectId,
        /// The lease it ran under.
        lease: u64,
        /// The answer.
        outcome: Outcome,
    },
    /// From here on the run executes a changed program, as its user accepted. Of the records before, those answers count
    /// whose effect and question the changed program has too.
    Program {
        /// Digest of the new bundle, as [`Header::bundle`].
        bundle: Digest,
        /// Digest of its bytes, under which it is among the run's values.
        bundle_bytes: Digest,
        /// Whether what failed so far for a reason that passes (backend, time, budget) is asked again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retry_failed: bool,
    },
    /// What an effect cost that ended without an outcome: cancelled on its way, or stopped at the end of the budget.
    Spent {
        /// The effect.
        id: EffectId,
        /// What it had used.
        usage: Usage,
    },
    /// From here on the run may cost so much in all. Before the first such record the header's options count.
    Budget {
        /// US dollars.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
        /// Tokens, in and out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
    /// The user cancelled, or a deadline passed.
    Cancel {
        /// What was cancelled.
        what: CancelWhat,
    },
    /// The run is over; nothing follows.
    End {
        /// How.
        status: RunStatus,
    },
}

/// One process: ids are used again, but not with the same start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ProcessId {
    /// Its id.
    pub pid: u32,
    /// When it started, in words of the system that are only compared with each other.
    pub started: String,
}

/// What a cancel record cancels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelWhat {
    /// The whole run, by its user.
    Run,
    /// The `finally` bodies that a cancel scope let run.
    Deadline(EffectId),
}

/// The run's fixed facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The run.
    pub run_id: RunId,
    /// Path of the program when it was started.
    pub program: String,
    /// Digest of the bundle (stored as `bundle.json`).
    pub bundle: Digest,
    /// Digest of the bytes of `bundle.json`, which unlike [`Header::bundle`] covers what was lowered from the sources.
    /// Absent in runs of earlier engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_bytes: Option<Digest>,
    /// Digests of the program's text and of what it uses, by path; the program's own first. Empty in runs of earlier
    /// engines.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub sources: IndexMap<String, Digest>,
    /// Version of the engine.
    pub engine: String,
    /// Values supplied at the start, by input name.
    pub inputs: IndexMap<String, Value>,
    /// Options that a resume must keep.
    pub options: RunOptions,
}

/// Where a run's state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateIn {
    /// In the run directory.
    #[default]
    Files,
    /// In the memory of the process: nothing is written, nothing can be resumed.
    Memory,
}

impl StateIn {
    fn is_files(&self) -> bool {
        *self == StateIn::Files
    }
}

/// Options of a run that its meaning rests on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunOptions {
    /// Backend name.
    pub backend: String,
    /// Path of the mock file, for `simulate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock: Option<String>,
    /// Text of the mock file, so that a resumed run gives the same answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_text: Option<String>,
    /// Where the run's state is.
    #[serde(default, skip_serializing_if = "StateIn::is_files")]
    pub state: StateIn,
    /// At most so many sessions at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// Total time for one session, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// A session that reports nothing for so long has failed, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// US dollars for the whole run, resumes included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
    /// Tokens, in and out, for the whole run, resumes included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u64>,
}
