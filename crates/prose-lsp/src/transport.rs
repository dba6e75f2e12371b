//! Brings messages to tower-lsp's service and its answers back.
//!
//! In place of tower-lsp's own transport, which reads frames: these were read and checked already (`framing.rs`), and a long
//! document would be copied, parsed and kept in a buffer once more.

use std::fmt::Display;
use std::future::poll_fn;

use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tower::Service;
use tower_lsp::jsonrpc::{Error, Id, Request, Response};

use crate::framing::Replies;
use crate::guard::CONCURRENCY;

/// Serves until no message comes any more and all requests are answered, or the service is over.
///
/// `responses` takes the client's answers. At most [`CONCURRENCY`] requests are worked on at once.
pub(crate) async fn serve<S, R>(
    mut service: S,
    mut responses: R,
    mut messages: mpsc::Receiver<Value>,
    replies: Replies,
) where
    S: Service<Request, Response = Option<Response>>,
    S::Error: Display,
    R: futures::Sink<Response> + Unpin,
{
    let mut working = FuturesUnordered::new();
    let mut next: Option<Request> = None;
    let mut open = true;
    loop {
        tokio::select! {
            message = messages.recv(), if open && next.is_none() && working.len() < CONCURRENCY => match message {
                None => open = false,
                Some(message) if message.get("method").is_some() => match serde_json::from_value(message) {
                    Ok(request) => next = Some(request),
                    Err(error) => refuse(&replies, &error),
                },
                Some(message) => match serde_json::from_value(message) {
                    // Fails only when the session is over.
                    Ok(response) => drop(responses.send(response).await),
                    Err(error) => refuse(&replies, &error),
                },
            },
            // Not awaited alone: the service is ready only after `initialize`, which is among those that are worked on.
            ready = poll_fn(|cx| service.poll_ready(cx)), if next.is_some() => match (ready, next.take()) {
                (Ok(()), Some(request)) => working.push(service.call(request)),
                (Ok(()), None) => {}
                (Err(error), _) => {
                    tracing::info!(%error, "a message after the end");
                    return;
                }
            },
            Some(answer) = working.next(), if !working.is_empty() => match answer {
                Ok(Some(answer)) => send(&replies, &answer),
                Ok(None) => {}
                Err(error) => tracing::info!(%error, "a message after the end"),
            },
            else => return,
        }
    }
}

/// Answers a message that is none of JSON-RPC's.
fn refuse(replies: &Replies, error: &serde_json::Error) {
    tracing::warn!(%error, "message skipped");
    if let Ok(reply) = serde_json::to_value(Response::from_error(Id::Null, Error::invalid_request())) {
        replies.send(&reply);
    }
}

fn send(replies: &Replies, answer: &Response) {
    match serde_json::to_vec(answer) {
        Ok(body) => replies.pass(body),
        Err(error) => tracing::error!(%error, "an answer can't be serialised"),
    }
}
