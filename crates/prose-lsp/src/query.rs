//! What requests ask the main loop for.

use std::sync::Arc;

use prose_ide::{Analysis, Cancellable, FileId};
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, Result};

use crate::documents::Documents;
use crate::session::Session;
use crate::settings::Lint;

/// What a request refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A position in the text as it was when the request arrived: after an edit the answer would be wrong.
    Position,
    /// The document, whatever its text is by now.
    Document,
}

/// Which files an answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its own and those that it uses.
    File,
    /// Every program of the workspace: the answer waits until all were looked for.
    Workspace,
}

/// What a reader may look at.
pub(crate) struct Snapshot {
    /// The database at one revision.
    pub(crate) analysis: Analysis,
    /// Counts the writes to the database.
    pub(crate) revision: u64,
    /// The client's facts.
    pub(crate) session: Arc<Session>,
    /// Severities as the person wants them.
    pub(crate) lint: Arc<Lint>,
    /// Names of files. Texts come from `analysis`, so that offsets and texts belong together.
    pub(crate) documents: Arc<Documents>,
}

/// A read that answers one request.
pub(crate) trait Query: Send {
    /// For logs.
    fn name(&self) -> &'static str;
    /// Whether somebody still waits for the answer.
    fn wanted(&self) -> bool;
    /// Computes and answers.
    fn run(&mut self, snapshot: &Snapshot, file: FileId) -> Cancellable<()>;
    /// Answers with an error.
    fn refuse(&mut self, error: Error);
}

/// A [`Query`] made of a function and the channel of its answer.
struct Answering<T, F> {
    name: &'static str,
    reply: Option<oneshot::Sender<Result<T>>>,
    compute: F,
}

impl<T, F> Query for Answering<T, F>
where
    T: Send,
    F: FnMut(&Snapshot, FileId) -> Cancellable<Result<T>> + Send,
{
    fn name(&self) -> &'static str {
        self.name
    }
    fn wanted(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| !reply.is_closed())
    }
    fn run(&mut self, snapshot: &Snapshot, file: FileId) -> Cancellable<()> {
        let answer = (self.compute)(snapshot, file)?;
        if let Some(reply) = self.reply.take() {
            // The client may have cancelled meanwhile.
            let _ = reply.send(answer);
        }
        Ok(())
    }
    fn refuse(&mut self, error: Error) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(Err(error));
        }
    }
}

/// Makes a query out of a function, and the receiver of its answer.
pub(crate) fn query<T: Send + 'static>(
    name: &'static str,
    compute: impl FnMut(&Snapshot, FileId) -> Cancellable<Result<T>> + Send + 'static,
) -> (Box<dyn Query>, oneshot::Receiver<Result<T>>) {
    let (tx, rx) = oneshot::channel();
    (
        Box::new(Answering {
            name,
            reply: Some(tx),
            compute,
        }),
        rx,
    )
}
