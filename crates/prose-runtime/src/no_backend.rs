//! What stands in for a backend where a run is only replayed.

use std::sync::Arc;

use async_trait::async_trait;
use prose_agents::{
    Backend, Capabilities, DecodeInput, Delivery, Judge, JudgeInput, Reading, SessionBackend, SessionReply,
    SessionSpawn, failure,
};
use prose_model::{ErrorKind, Failure, Verdict};

struct NoBackend;

/// Answers nothing; a run that is over asks nothing.
pub(crate) fn no_backend(name: &str) -> Backend {
    Backend {
        name: name.to_owned(),
        simulated: matches!(name, "simulate" | "replay"),
        sessions: Arc::new(NoBackend),
        judge: Arc::new(NoBackend),
        inputs: None,
        observer: None,
        mock_text: None,
    }
}

fn none() -> Failure {
    failure(ErrorKind::Backend, "the run is over; nothing is asked any more")
}

#[async_trait]
impl SessionBackend for NoBackend {
    fn name(&self) -> &str {
        "none"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Plain,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }
    async fn spawn(&self, _: SessionSpawn) -> Result<SessionReply, Failure> {
        Err(none())
    }
}

#[async_trait]
impl Judge for NoBackend {
    fn name(&self) -> &str {
        "none"
    }
    async fn decide(&self, _: JudgeInput) -> Result<Verdict, Failure> {
        Err(none())
    }
    async fn decode(&self, _: DecodeInput) -> Result<Reading, Failure> {
        Err(none())
    }
}
