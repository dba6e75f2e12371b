//! The run's journal as the driver writes it, with a place where tests stop a run as a crash would.

use std::sync::Arc;

use prose_model::{Digest, Effect, Issued, RecordBody, SourceRange};
use prose_state::{Journal, digest_of};

use crate::request::RunError;

/// Stops a run after a journal record, for tests of resumption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// After so many records in all, the driver drops the run: nothing more is written, no task goes on.
    StopAfter(u64),
    /// After so many records in all, the process is aborted.
    AbortAfter(u64),
}

pub(crate) struct Log {
    journal: Arc<Journal>,
    fault: Option<Fault>,
}

impl Log {
    pub(crate) fn new(journal: Arc<Journal>, fault: Option<Fault>) -> Log {
        Log { journal, fault }
    }

    /// Appends a record; on disk only after the next durable one.
    pub(crate) fn append(&self, body: RecordBody) -> Result<(), RunError> {
        self.check()?;
        self.journal.append(body)?;
        self.check()
    }

    /// Appends a record; on disk when this returns, with everything before it.
    pub(crate) fn append_durable(&self, body: RecordBody) -> Result<(), RunError> {
        self.check()?;
        self.journal.append_durable(body)?;
        self.check()
    }

    /// Everything appended so far is on disk when this returns.
    pub(crate) fn sync(&self) -> Result<(), RunError> {
        Ok(self.journal.sync()?)
    }

    /// Whether a test's record has been reached. Also checked before a write: the record may have been one of those
    /// that creating the run wrote.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        match self.fault {
            Some(Fault::StopAfter(n)) if self.journal.len() >= n => Err(RunError::Fault(n)),
            Some(Fault::AbortAfter(n)) if self.journal.len() >= n => std::process::abort(),
            _ => Ok(()),
        }
    }
}

/// The word for a kind of effect in `issued` records.
pub(crate) fn kind(effect: &Effect) -> &'static str {
    match effect {
        Effect::Session(_) => "session",
        Effect::Judge(_) => "judge",
        Effect::Decode(_) => "decode",
        Effect::Input(_) => "input",
        Effect::Sleep(_) => "sleep",
        Effect::CancelScope(_) => "cancel_scope",
    }
}

/// Digest of what is asked: an outcome counts only for the same question.
pub(crate) fn hash(effect: &Effect) -> Digest {
    digest(effect, true)
}

/// Whether that is the digest of what is asked. In older journals it holds how often a session may be tried, too.
pub(crate) fn asks(effect: &Effect, recorded: &Digest) -> bool {
    hash(effect) == *recorded || digest(effect, false) == *recorded
}

/// The same, as older journals have it.
pub(crate) fn older_hash(effect: &Effect) -> Digest {
    digest(effect, false)
}

/// How often a session may be tried is no part of the question; `once` leaves it out.
fn digest(effect: &Effect, once: bool) -> Digest {
    // Where its statement stands in the file is no part of the question: an edit above it changes nothing.
    let placeless = match effect {
        Effect::Session(request) => {
            let mut request = (**request).clone();
            request.binding.source = SourceRange {
                file: 0,
                start: 0,
                end: 0,
            };
            if once {
                request.max_attempts = 1;
            }
            Some(Effect::Session(Arc::new(request)))
        }
        _ => None,
    };
    // Effects serialise without maps of unordered keys, so equal effects give equal texts.
    let text = serde_json::to_string(placeless.as_ref().unwrap_or(effect)).unwrap_or_default();
    digest_of(text.as_bytes())
}

/// The record of an issued effect.
pub(crate) fn issued_record(issued: &Issued, memory: Option<Digest>) -> RecordBody {
    RecordBody::Issued {
        id: issued.id.clone(),
        stmt: issued.stmt.clone(),
        kind: kind(&issued.effect).to_owned(),
        order: issued.order,
        hash: hash(&issued.effect),
        memory,
    }
}
