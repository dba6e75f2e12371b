//! Runs that are killed, with a backend that outlives them.
//!
//! A [`host`] process drives a run and can be killed at any moment. It asks an [`Answers`] over a Unix socket, which is part
//! of the test's own process and so knows of every question that was ever asked. Host and answers share nothing else.

pub mod answers;
pub mod host;

use serde::{Deserialize, Serialize};

pub use answers::{Answers, Asked};

/// The environment variable with the socket's path.
pub const SOCKET: &str = "PROSE_TEST_SOCKET";
/// The environment variable that says how the backend behaves: a word of [`Manner`].
pub const MANNER: &str = "PROSE_TEST_MANNER";

/// Set when each session starts a child process that goes on for long.
pub const CHILD: &str = "PROSE_TEST_CHILD";

/// How the backend behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Time is virtual, replies are text: every run goes the same way.
    Virtual,
    /// Time passes, results are files: what is asked at once is answered in any order.
    Files,
    /// The same, and a session goes on when the process that asked it is gone, and can be found again.
    Reattach,
}

impl Manner {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Manner::Virtual => "virtual",
            Manner::Files => "files",
            Manner::Reattach => "reattach",
        }
    }

    fn of(word: &str) -> Option<Manner> {
        [Manner::Virtual, Manner::Files, Manner::Reattach]
            .into_iter()
            .find(|manner| manner.word() == word)
    }
}

/// A question that crosses the socket, one line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// The effect that asks.
    pub effect: String,
    /// The process that asks.
    pub pid: u32,
    /// The lease it asks under; 0 for what has none.
    pub lease: u64,
    /// What it is about.
    pub what: What,
}

/// What is asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum What {
    /// A session.
    Session {
        /// The task.
        task: String,
        /// The label, for the default reply.
        label: String,
        /// The try, from 1.
        attempt: u32,
        /// Folder for results, when they are files.
        staging: Option<String>,
        /// Memory so far, for an agent that has one; empty at first.
        memory: Option<String>,
        /// Whether this looks for a session that was asked before.
        again: bool,
    },
    /// A discretion or choice.
    Judge {
        /// The text.
        text: String,
        /// What kind of answer.
        ask: prose_model::Ask,
    },
    /// Content to read.
    Decode {
        /// The content.
        text: String,
    },
    /// An input.
    Input {
        /// Its name.
        name: String,
    },
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Answer {
    /// A session's result; none when it was left in files.
    Reply {
        /// The text.
        text: Option<String>,
        /// Memory and segment, for an agent that has one; none when they were left in files.
        memory: Option<(String, String)>,
        /// How long it takes.
        delay_ms: u64,
    },
    /// The session fails.
    Failure(prose_model::Failure),
    /// What was decided.
    Decision(prose_model::Decision),
    /// A decoded or supplied value.
    Value(prose_model::Value),
    /// There is no such session.
    Gone,
}
