//! Everything the server sends on its own account.
//!
//! One task sends it, so notifications arrive in the order in which they were produced, and nobody who produces one
//! ever waits for the client. A request to the client runs in a detached task until its answer comes: tower-lsp 0.20
//! panics when an answer arrives for a request whose future was dropped, so a timeout only stops the waiting.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lsp_types::notification::{Cancel, Notification, PublishDiagnostics, ShowMessage};
use lsp_types::request::Request;
use lsp_types::{CancelParams, MessageType, NumberOrString, ShowMessageParams, Url};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tower::Service;
use tower_lsp::Client;
use tower_lsp::jsonrpc;

use crate::framing::Replies;

/// Handle to the sending task; cheap to clone, usable from any thread.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    tx: mpsc::UnboundedSender<Outgoing>,
    next_id: Arc<AtomicI32>,
}

/// What the sending task takes from; see [`Queue::send_to`].
#[derive(Debug)]
pub(crate) struct Queue {
    rx: mpsc::UnboundedReceiver<Outgoing>,
}

#[derive(Debug)]
enum Outgoing {
    /// A message that is complete.
    Raw(Vec<u8>),
    /// A message for the protocol library to put together.
    Call {
        method: &'static str,
        params: Value,
        then: Then,
    },
}

#[derive(Debug)]
enum Then {
    /// A notification.
    Nothing,
    /// A notification; tell when the transport has taken it.
    Sent(oneshot::Sender<()>),
    /// A request with this id.
    Answer(i32, oneshot::Sender<jsonrpc::Result<Value>>),
}

impl Outbox {
    /// A handle and the queue behind it.
    pub(crate) fn new() -> (Outbox, Queue) {
        let (tx, rx) = mpsc::unbounded_channel();
        (
            Outbox {
                tx,
                next_id: Arc::default(),
            },
            Queue { rx },
        )
    }

    /// Sends a notification, some time soon.
    pub(crate) fn notify<N: Notification>(&self, params: N::Params) {
        self.push(N::METHOD, params, Then::Nothing);
    }

    /// Sends a notification and tells when the transport has taken it, so that a fast producer can be slowed down by
    /// a slow client. Errors when the session is over.
    pub(crate) fn notify_tracked<N: Notification>(&self, params: N::Params) -> oneshot::Receiver<()> {
        let (tx, rx) = oneshot::channel();
        self.push(N::METHOD, params, Then::Sent(tx));
        rx
    }

    fn push(&self, method: &'static str, params: impl serde::Serialize, then: Then) {
        match serde_json::to_value(params) {
            Ok(params) => {
                // Fails only when the session is over.
                let _ = self.tx.send(Outgoing::Call { method, params, then });
            }
            Err(e) => tracing::error!(method, %e, "message can't be serialised"),
        }
    }

    /// `window/showMessage`.
    pub(crate) fn show(&self, typ: MessageType, message: impl Into<String>) {
        self.notify::<ShowMessage>(ShowMessageParams {
            typ,
            message: message.into(),
        });
    }

    /// `textDocument/publishDiagnostics`, with the diagnostics as JSON.
    ///
    /// They are most of what a server sends: a large file has thousands, all of them again on every keystroke. So they are
    /// written once, by whoever computed them, and neither made into a [`Value`] nor written again.
    pub(crate) fn publish(&self, uri: &Url, version: Option<i32>, diagnostics: &str) {
        let version = version.map_or_else(String::new, |it| format!(r#""version":{it},"#));
        let uri = Value::from(uri.as_str());
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"{}","params":{{"uri":{uri},{version}"diagnostics":{diagnostics}}}}}"#,
            PublishDiagnostics::METHOD,
        );
        // Fails only when the session is over.
        let _ = self.tx.send(Outgoing::Raw(body.into_bytes()));
    }

    /// Sends a request whose answer says nothing.
    pub(crate) fn request<R: Request<Result = ()>>(&self, params: R::Params) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, _) = oneshot::channel();
        self.push(R::METHOD, params, Then::Answer(id, tx));
    }

    /// Sends a request to the client and waits for the answer, at most `patience`.
    ///
    /// IMPORTANT: never call this from a request handler; call it from a task of its own. A client that waits for our
    /// answer before it gives its own would wait forever.
    pub(crate) async fn ask<R: Request>(
        &self,
        params: R::Params,
        patience: Duration,
    ) -> Result<R::Result, AskError> {
        self.ask_until::<R>(params, tokio::time::sleep(patience))
            .await
            .unwrap_or(Err(AskError::Timeout))
    }

    /// Sends a request to the client and waits for the answer until `over`; then the client is told to forget it, and
    /// there is no answer. The rule of [`Outbox::ask`] holds.
    pub(crate) async fn ask_until<R: Request>(
        &self,
        params: R::Params,
        over: impl Future<Output = ()>,
    ) -> Option<Result<R::Result, AskError>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, answer) = oneshot::channel();
        self.push(R::METHOD, params, Then::Answer(id, tx));
        tokio::select! {
            answer = answer => Some(match answer {
                Ok(Ok(value)) => serde_json::from_value(value).map_err(|e| AskError::Unreadable(e.to_string())),
                Ok(Err(error)) => Err(AskError::Refused(error)),
                Err(_) => Err(AskError::Refused(jsonrpc::Error::internal_error())),
            }),
            () = over => {
                self.notify::<Cancel>(CancelParams { id: NumberOrString::Number(id) });
                None
            }
        }
    }
}

impl Queue {
    /// The sending task; ends with the last handle or with the session.
    pub(crate) async fn send_to(mut self, mut client: Client, replies: Replies) {
        while let Some(outgoing) = self.rx.recv().await {
            let (method, params, then) = match outgoing {
                Outgoing::Raw(body) => {
                    replies.pass(body);
                    continue;
                }
                Outgoing::Call { method, params, then } => (method, params, then),
            };
            let message = jsonrpc::Request::build(method).params(params);
            match then {
                Then::Nothing | Then::Sent(_) => {
                    if client.call(message.finish()).await.is_err() {
                        // The session is over; what remains has no reader.
                        return;
                    }
                    if let Then::Sent(sent) = then {
                        let _ = sent.send(());
                    }
                }
                Then::Answer(id, reply) => {
                    let answer = client.call(message.id(i64::from(id)).finish());
                    tokio::spawn(async move {
                        let answer = match answer.await {
                            Ok(Some(response)) => response.into_parts().1,
                            Ok(None) | Err(_) => Err(jsonrpc::Error::internal_error()),
                        };
                        let _ = reply.send(answer);
                    });
                }
            }
        }
    }
}

/// Why a request to the client has no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// The client answered with an error, or the session is over.
    Refused(jsonrpc::Error),
    /// No answer in time.
    Timeout,
    /// The answer has the wrong shape.
    Unreadable(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Refused(error) => write!(f, "{error}"),
            AskError::Timeout => f.write_str("the client did not answer in time"),
            AskError::Unreadable(why) => write!(f, "the client's answer can't be read: {why}"),
        }
    }
}
