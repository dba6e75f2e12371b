//! The session trait and what goes in and out of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use prose_model::{EffectId, Failure, SessionRequest, Usage};

use crate::prompt::RenderedPrompt;
use crate::redact::Redactor;

/// Tells a backend that its session is no longer wanted.
pub type CancelToken = tokio_util::sync::CancellationToken;

/// Runs sessions.
///
/// Contract: `spawn` returns within reason after its token is cancelled, having stopped whatever it
/// started; what it returns then is ignored. Dropping the future stops the session too. A panic inside
/// ends that one session as failed.
#[async_trait]
pub trait SessionBackend: Send + Sync {
    /// The name by which people know it, as in `--backend NAME`.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether its sessions are given the tools of [`crate::mcp`]. Their prompts name them then, and still say what to do
    /// without.
    fn has_broker(&self) -> bool {
        false
    }

    /// Runs one session to its end. [`SessionSpawn::effect`] is the idempotency key: a resumed run may
    /// spawn it again under a higher lease.
    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure>;

    /// Tries to take up a session that an earlier process spawned, by the handle that it passed to
    /// [`SessionSink::started`]. None: it is not there any more, and the runtime spawns it again.
    async fn reattach(
        &self,
        session: SessionSpawn,
        handle: serde_json::Value,
    ) -> Option<Result<SessionReply, Failure>> {
        let _ = (session, handle);
        None
    }
}

/// What a backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// How results come back.
    pub delivery: Delivery,
    /// Whether `reattach` can succeed.
    pub reattach: bool,
    /// Whether it knows skills, so that they need no mention in the system text.
    pub skills: bool,
    /// Whether it runs on [`Clock::Virtual`]: it waits only through the clock it is given.
    pub virtual_time: bool,
}

/// How a session's result comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The agent works on files: it reads context by reference and writes its binding into staging.
    Files,
    /// The reply is the result; context is part of the prompt.
    Plain,
}

/// Everything a backend is given for one session.
#[derive(Clone)]
pub struct SessionSpawn {
    /// The effect: idempotency key, the same on every replay.
    pub effect: EffectId,
    /// Position in the machine's issue order.
    pub order: u64,
    /// The lease it runs under; late writers of an older lease are ignored.
    pub lease: u64,
    /// What the program asks for, references unresolved.
    pub request: Arc<SessionRequest>,
    /// The text to send.
    pub prompt: RenderedPrompt,
    /// The folder the agent works in: the project root.
    pub work_dir: PathBuf,
    /// A folder of this session and lease alone. Result files go here. It exists for [`Delivery::Files`] only.
    pub staging: PathBuf,
    /// The memory of a persistent agent.
    pub memory: Option<MemoryContext>,
    /// The total time limit, which the runtime enforces as well.
    pub timeout: Option<Duration>,
    /// What is left of the run's budget. A backend that can stops the session there, with a failure of kind `budget`
    /// that says what was used.
    pub budget: SpendLimit,
    /// Where to report.
    pub sink: Arc<dyn SessionSink>,
    /// Cancelled when the session is no longer wanted.
    pub cancel: CancelToken,
    /// The time to wait by.
    pub clock: Clock,
}

/// What may still be spent; none where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SpendLimit {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens, in and out.
    pub tokens: Option<u64>,
}

impl SpendLimit {
    /// What is left of it when this was used.
    #[must_use]
    pub fn after(self, used: &Usage) -> SpendLimit {
        SpendLimit {
            usd: self.usd.map(|usd| (usd - used.cost_usd.unwrap_or(0.0)).max(0.0)),
            tokens: self.tokens.map(|tokens| tokens.saturating_sub(used.tokens())),
        }
    }
}

/// A persistent agent's memory at spawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryContext {
    /// What it remembers; none when there is nothing, or the session starts fresh.
    pub text: Option<String>,
    /// The number of the segment that this session adds, from 1.
    pub segment: u32,
}

/// How a session ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionReply {
    /// The result.
    pub body: ReplyBody,
    /// One line about it; the runtime makes one from the body when there is none.
    pub summary: Option<String>,
    /// Tokens and money.
    pub usage: Usage,
    /// What the agent wants to remember; ignored for an agent without memory.
    pub memory: Option<MemoryUpdate>,
}

impl SessionReply {
    /// A reply that is only text.
    pub fn text(text: impl Into<String>) -> SessionReply {
        SessionReply {
            body: ReplyBody::Text(text.into()),
            summary: None,
            usage: Usage::default(),
            memory: None,
        }
    }
}

/// Where a session's result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBody {
    /// Here.
    Text(String),
    /// In the staging file that the prompt named ([`crate::prompt::STAGED_BINDING`]).
    Staged,
}

/// What a persistent agent leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryUpdate {
    /// Here.
    Text {
        /// The new memory, whole.
        memory: String,
        /// The record of this session.
        segment: String,
    },
    /// In the staging files that the prompt named.
    Staged,
}

/// Where a running session reports. Implemented by the runtime; no method may block for long.
#[async_trait]
pub trait SessionSink: Send + Sync {
    /// The session exists and can be found again by this handle; returns when that is durable.
    async fn started(&self, handle: Option<serde_json::Value>, model: Option<String>) -> Result<(), Failure>;

    /// The session has started a child process, which would outlive this one's sudden end; returns when it is on record,
    /// so that a later process can end it. To be called before the child does anything that counts, and the child should
    /// lead a process group, so that what it starts is ended with it.
    async fn child(&self, pid: u32) -> Result<(), Failure> {
        let _ = pid;
        Ok(())
    }

    /// Progress. Never blocks; may be dropped for slow observers.
    fn update(&self, update: SessionUpdate);

    /// A sign of life, where there is nothing to tell: something takes long that has its own limit. Never blocks.
    fn alive(&self) {}

    /// Hides what is secret in texts that the session is given besides its prompt, as the results of tools. What it
    /// reports is looked through without that.
    fn redactor(&self) -> Redactor {
        Redactor::default()
    }

    /// Something that a person should know, though the session goes on. Never blocks.
    fn notice(&self, message: String) {
        let _ = message;
    }

    /// Asks whether the session may do something that its permissions leave to a person.
    async fn ask_permission(&self, question: PermissionQuestion) -> PermissionAnswer;

    /// Asks a person something that the session wants to know. None when nobody is there, or nobody answers.
    async fn ask_user(&self, question: UserQuestion) -> Option<String> {
        let _ = question;
        None
    }
}

/// Progress of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    /// A piece of its text.
    Text(String),
    /// It uses a tool.
    Tool {
        /// The tool.
        name: String,
        /// One line about its arguments, without secrets.
        detail: String,
    },
    /// What it has used so far.
    Usage(Usage),
}

/// Something a session wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionQuestion {
    /// The permission key: `read`, `write`, `execute`, `bash`, `network`.
    pub key: String,
    /// The tool.
    pub tool: String,
    /// One line: what exactly.
    pub detail: String,
}

/// Something a session wants to know from a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    /// The question.
    pub text: String,
    /// Answers to choose from; empty where any will do.
    pub options: Vec<String>,
}

/// The answer to a [`PermissionQuestion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// This time.
    Allow,
    /// For the rest of this session.
    AllowSession,
    /// No. Also the answer when no one can be asked.
    Deny,
}

/// A sink that drops everything and denies every permission. For tests and dry runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

#[async_trait]
impl SessionSink for NullSink {
    async fn started(&self, _: Option<serde_json::Value>, _: Option<String>) -> Result<(), Failure> {
        Ok(())
    }
    fn update(&self, _: SessionUpdate) {}
    async fn ask_permission(&self, _: PermissionQuestion) -> PermissionAnswer {
        PermissionAnswer::Deny
    }
}

/// The time a backend waits by.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// Time passes.
    #[default]
    Real,
    /// Waiting only adds up; the runtime delivers the outcome at that distance in virtual time.
    Virtual(Arc<Waited>),
}

/// What was waited by a virtual clock, in milliseconds.
#[derive(Debug, Default)]
pub struct Waited {
    total: AtomicU64,
    longest: AtomicU64,
}

impl Clock {
    /// A virtual clock that has not moved.
    pub fn virtual_time() -> Clock {
        Clock::Virtual(Arc::default())
    }

    /// Waits, or notes that it would have waited.
    pub async fn sleep(&self, time: Duration) {
        match self {
            Clock::Real => tokio::time::sleep(time).await,
            Clock::Virtual(waited) => {
                let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                waited.total.fetch_add(ms, Ordering::Relaxed);
                waited.longest.fetch_max(ms, Ordering::Relaxed);
            }
        }
    }

    /// Milliseconds a virtual clock has moved; 0 for real time.
    pub fn elapsed_ms(&self) -> u64 {
        match self {
            Clock::Real => 0,
            Clock::Virtual(waited) => waited.total.load(Ordering::Relaxed),
        }
    }

    /// Milliseconds of the longest wait by a virtual clock, in which nothing was reported; 0 for real time.
    pub fn longest_wait_ms(&self) -> u64 {
        match self {
            Clock::Real => 0,
            Clock::Virtual(waited) => waited.longest.load(Ordering::Relaxed),
        }
    }
}
