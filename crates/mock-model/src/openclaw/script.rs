//! What a gateway does.

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

/// What a gateway does.
#[derive(Debug, Clone)]
pub struct GatewayScript {
    pub(super) token: String,
    pub(super) refusal: Option<Refusal>,
    pub(super) models: Vec<(String, String)>,
    pub(super) runs: Vec<Run>,
    pub(super) tick: Duration,
    pub(super) forgets: bool,
    pub(super) waits: bool,
}

impl GatewayScript {
    /// One that lets in who has this token, and knows no run and no model.
    pub fn new(token: impl Into<String>) -> GatewayScript {
        GatewayScript {
            token: token.into(),
            refusal: None,
            models: Vec::new(),
            runs: Vec::new(),
            tick: Duration::from_secs(30),
            forgets: false,
            waits: false,
        }
    }

    /// It knows this model, too.
    #[must_use]
    pub fn model(mut self, provider: &str, id: &str) -> GatewayScript {
        self.models.push((provider.to_owned(), id.to_owned()));
        self
    }

    /// What is done for a message; the first run that fits counts.
    #[must_use]
    pub fn run(mut self, run: Run) -> GatewayScript {
        self.runs.push(run);
        self
    }

    /// It turns clients away.
    #[must_use]
    pub fn refuse(mut self, refusal: Refusal) -> GatewayScript {
        self.refusal = Some(refusal);
        self
    }

    /// How often it says that it is there.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> GatewayScript {
        self.tick = tick;
        self
    }

    /// It keeps a question for who connects later, where nobody can be asked.
    #[must_use]
    pub fn waits(mut self) -> GatewayScript {
        self.waits = true;
        self
    }

    /// It does not know its sessions and runs any more once a connection was dropped, as one that was started anew.
    #[must_use]
    pub fn forgets(mut self) -> GatewayScript {
        self.forgets = true;
        self
    }
}

/// How a gateway turns clients away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It wants another version of the protocol.
    Protocol,
    /// It wants the device to be paired.
    Pairing,
    /// It is not ready yet, the first so many times.
    Starting(u32),
    /// It takes the connection and says nothing.
    Silent,
    /// It takes the connection and closes it at once.
    Closes,
    /// It is no WebSocket.
    NoWebSocket,
}

/// What is done for a message.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) pattern: Regex,
    pub(super) nth: Option<usize>,
    pub(super) steps: Vec<Step>,
}

impl Run {
    /// For messages that the pattern is found in. Steps can use its named groups as `${name}`.
    ///
    /// # Panics
    /// When the pattern is none.
    #[allow(clippy::expect_used, reason = "a test whose pattern is wrong can't go on")]
    pub fn on(pattern: &str, steps: impl IntoIterator<Item = Step>) -> Run {
        Run {
            pattern: Regex::new(pattern).expect("a pattern"),
            nth: None,
            steps: steps.into_iter().collect(),
        }
    }

    /// Only for the message of this number among those that fit, from 1.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Run {
        self.nth = Some(nth);
        self
    }
}

/// A step of a run. A run whose steps are done ends well, with what it said since it last used a tool.
#[derive(Debug, Clone)]
pub enum Step {
    /// A piece of its text.
    Say(String),
    /// A tool is used.
    Tool {
        /// Its name.
        name: String,
        /// What it is given.
        args: Value,
        /// Whether it fails.
        fails: bool,
    },
    /// A file is written, by the tool `write`.
    Write {
        /// Where.
        path: String,
        /// What.
        content: String,
    },
    /// A command needs somebody's approval. What is decided can be seen among what was asked.
    Approve(String),
    /// What a plugin wants to do needs somebody's approval.
    ApprovePlugin(String),
    /// Waits until [`super::MockGateway::release`].
    Hold,
    /// All connections break.
    Drop,
    /// It ends with an error.
    Fail(String),
    /// It ends because its time is over.
    TimeOut,
}

impl Step {
    /// A piece of its text.
    pub fn say(text: impl Into<String>) -> Step {
        Step::Say(text.into())
    }

    /// A tool is used.
    pub fn tool(name: &str, args: Value) -> Step {
        Step::Tool {
            name: name.to_owned(),
            args,
            fails: false,
        }
    }

    /// A tool is used and fails.
    pub fn failing(name: &str, args: Value) -> Step {
        Step::Tool {
            name: name.to_owned(),
            args,
            fails: true,
        }
    }

    /// A file is written.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Step {
        Step::Write {
            path: path.into(),
            content: content.into(),
        }
    }
}
