//! From what an agent that works on files wrote and said to the session's result.

use prose_model::{ErrorKind, Failure, MemoryMode, Usage};

use crate::prompt::{STAGED_BINDING, STAGED_MEMORY};
use crate::{MemoryUpdate, ReplyBody, SessionReply, SessionSpawn, failure};

/// The beginning of the receipt that the prompt asks for.
const RECEIPT: &str = "Binding written:";

/// How a turn of an agent ended.
pub(crate) struct Said {
    /// What it said last.
    pub(crate) text: String,
    pub(crate) usage: Usage,
    /// What it wanted to do and was refused.
    pub(crate) refused: Vec<String>,
}

/// The file that it wrote, else, with a warning, what it said.
pub(crate) fn reply(session: &SessionSpawn, turn: Said) -> Result<SessionReply, Failure> {
    let wrote = |name: &str| std::fs::metadata(session.staging.join(name)).is_ok_and(|file| file.len() > 0);
    let remembers = session
        .request
        .memory
        .as_ref()
        .is_some_and(|memory| memory.mode != MemoryMode::Read);
    let memory = (remembers && wrote(STAGED_MEMORY)).then_some(MemoryUpdate::Staged);
    let failed = |kind, message: String| Failure {
        usage: turn.usage,
        ..failure(kind, message)
    };
    if wrote(STAGED_BINDING) {
        return Ok(SessionReply {
            body: ReplyBody::Staged,
            summary: Some(turn.text).filter(|text| text.contains("Summary:")),
            usage: turn.usage,
            memory,
        });
    }
    let text = turn.text.trim();
    if !text.is_empty() && !text.contains(RECEIPT) {
        session
            .sink
            .notice("the agent wrote no output file; what it said last is taken for its output".to_owned());
        return Ok(SessionReply {
            body: ReplyBody::Text(turn.text),
            summary: None,
            usage: turn.usage,
            memory,
        });
    }
    if !turn.refused.is_empty() {
        let mut tools = turn.refused;
        tools.dedup();
        return Err(Failure {
            usage: turn.usage,
            ..failure(
                ErrorKind::Permission,
                format!("the session has no output; refused was: {}", tools.join(", ")),
            )
        });
    }
    Err(match text.is_empty() {
        true => failed(ErrorKind::Empty, "the session returned nothing".to_owned()),
        false => failed(
            ErrorKind::Empty,
            "the agent says that it has written its output, and has not".to_owned(),
        ),
    })
}
