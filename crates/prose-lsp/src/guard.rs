//! The outermost service layer: what tower-lsp 0.20 doesn't promise by itself.
//!
//! - The first part of every handler, up to its first await, runs inside `call`, so in arrival order and before the
//!   next message is read, however many requests are waiting.
//! - A panic in a handler becomes an `InternalError` for that request.
//! - Request ids are replaced by our own, so that a client that repeats one (or repeats one whose handler panicked)
//!   still gets one answer per request.
//! - More requests than tower-lsp has slots for are refused at once, so that notifications and cancellation always
//!   get through.
//! - `shutdown` and `exit` are noted, so that `exit` can end the process while stdin is still open.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use futures::task::noop_waker_ref;
use tokio::sync::watch;
use tower::Service;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

use crate::framing::Ledger;

/// Slots given to tower-lsp's own concurrency limit.
pub(crate) const CONCURRENCY: usize = 1024;
/// Requests in flight; below [`CONCURRENCY`] so that a notification always finds a slot.
const MAX_IN_FLIGHT: usize = CONCURRENCY - 24;

/// Where the session stands with regard to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// Neither `shutdown` nor `exit` has arrived.
    #[default]
    Running,
    /// `shutdown` has arrived.
    ShutDown,
    /// `exit` has arrived; the process ends with this code: 0 after `shutdown`, else 1 (LSP specification).
    Exit(i32),
}

impl Phase {
    /// The exit code when the session ends here.
    pub(crate) fn code(self) -> i32 {
        match self {
            Phase::Running => 1,
            Phase::ShutDown => 0,
            Phase::Exit(code) => code,
        }
    }
}

/// Requests in flight: the client's id → the ids used inside, oldest first.
#[derive(Debug, Default)]
struct InFlight {
    next: i64,
    count: usize,
    by_client_id: HashMap<Id, Vec<i64>>,
}

/// The layer; see the module's comment.
#[derive(Debug)]
pub(crate) struct Guard<S> {
    inner: S,
    phase: watch::Sender<Phase>,
    ledger: Ledger,
    in_flight: Arc<Mutex<InFlight>>,
}

impl<S> Guard<S> {
    /// Wraps `inner`; `phase` tells when the session ends, `ledger` counts the answers that are owed.
    pub(crate) fn new(inner: S, phase: watch::Sender<Phase>, ledger: Ledger) -> Guard<S> {
        Guard {
            inner,
            phase,
            ledger,
            in_flight: Arc::default(),
        }
    }

    fn note_phase(&self, method: &str) {
        match method {
            "shutdown" => self.phase.send_if_modified(|p| {
                let first = *p == Phase::Running;
                if first {
                    *p = Phase::ShutDown;
                }
                first
            }),
            "exit" => self.phase.send_if_modified(|p| {
                let first = !matches!(p, Phase::Exit(_));
                *p = Phase::Exit(p.code());
                first
            }),
            _ => false,
        };
    }
}

type Answer<E> = Result<Option<Response>, E>;

impl<S> Service<Request> for Guard<S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Answer<S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.note_phase(request.method());
        let method = request.method().to_owned();
        let client_id = request.id().cloned();
        if client_id.is_some() {
            self.ledger.owe();
        }
        let request = match (&client_id, method.as_str()) {
            (None, "$/cancelRequest") => self.translate_cancel(request),
            (None, _) => request,
            (Some(id), _) => match self.register(id) {
                Some(own) => with_id(request, own),
                None => {
                    tracing::warn!(method, "request refused, too many are waiting");
                    return ready(Ok(Some(Response::from_error(id.clone(), overloaded())))).boxed();
                }
            },
        };
        let entry = client_id
            .as_ref()
            .zip(request.id().cloned())
            .map(|(client, own)| Entry {
                client: client.clone(),
                own,
                method: method.clone(),
                ledger: self.ledger.clone(),
                in_flight: Arc::clone(&self.in_flight),
            });

        // IMPORTANT: the first poll happens here, not in tower-lsp's buffer, which starts futures only while it has
        // slots. Handlers do their one synchronous send before their first await, so the main loop receives events
        // in the order in which the client sent them.
        let inner = &mut self.inner;
        let started = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut future = Box::pin(inner.call(request));
            match future.as_mut().poll(&mut Context::from_waker(noop_waker_ref())) {
                Poll::Ready(answer) => Started::Done(answer),
                Poll::Pending => Started::Waiting(future),
            }
        }));
        match started {
            Ok(Started::Done(answer)) => ready(finish(entry, answer)).boxed(),
            Ok(Started::Waiting(future)) => async move {
                match AssertUnwindSafe(future).catch_unwind().await {
                    Ok(answer) => finish(entry, answer),
                    Err(panic) => panicked(entry, &method, &*panic),
                }
            }
            .boxed(),
            Err(panic) => ready(panicked(entry, &method, &*panic)).boxed(),
        }
    }
}

enum Started<F, E> {
    Done(Answer<E>),
    Waiting(Pin<Box<F>>),
}

impl<S> Guard<S> {
    /// Own id for a request, or `None` when too many are in flight.
    fn register(&self, client: &Id) -> Option<i64> {
        let mut in_flight = lock(&self.in_flight);
        if in_flight.count >= MAX_IN_FLIGHT {
            return None;
        }
        in_flight.count += 1;
        in_flight.next += 1;
        let own = in_flight.next;
        in_flight
            .by_client_id
            .entry(client.clone())
            .or_default()
            .push(own);
        Some(own)
    }

    /// `$/cancelRequest` names the client's id; of a repeated id the oldest request is meant.
    fn translate_cancel(&self, request: Request) -> Request {
        let id = request.params().and_then(|p| p.get("id")).cloned();
        let id = id.and_then(|id| serde_json::from_value::<Id>(id).ok());
        let own = id.and_then(|id| lock(&self.in_flight).by_client_id.get(&id)?.first().copied());
        // No request of ours has a negative id: a cancel that comes too late names none.
        Request::build("$/cancelRequest")
            .params(serde_json::json!({ "id": own.unwrap_or(-1) }))
            .finish()
    }
}

/// A registered request; gone from the table when dropped, answered or not.
struct Entry {
    client: Id,
    own: Id,
    method: String,
    ledger: Ledger,
    in_flight: Arc<Mutex<InFlight>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.in_flight);
        in_flight.count -= 1;
        if let Some(own) = in_flight.by_client_id.get_mut(&self.client) {
            own.retain(|n| Id::Number(*n) != self.own);
            if own.is_empty() {
                in_flight.by_client_id.remove(&self.client);
            }
        }
    }
}

/// Gives the answer the client's id. A request has an answer even where tower-lsp has none (`$/…` it doesn't know).
fn finish<E>(entry: Option<Entry>, answer: Answer<E>) -> Answer<E> {
    let Some(entry) = entry else { return answer };
    let result = match answer {
        Ok(Some(response)) => response.into_parts().1,
        Ok(None) => {
            let mut error = Error::method_not_found();
            error.data = Some(entry.method.clone().into());
            Err(error)
        }
        Err(error) => {
            // The session is over; this answer will never be written.
            entry.ledger.settle();
            return Err(error);
        }
    };
    Ok(Some(Response::from_parts(entry.client.clone(), result)))
}

fn panicked<E>(entry: Option<Entry>, method: &str, panic: &(dyn std::any::Any + Send)) -> Answer<E> {
    let what = panic_message(panic);
    tracing::error!(method, what, "handler panicked");
    Ok(entry.map(|entry| {
        let mut error = Error::internal_error();
        error.message = format!("internal error in {method}: {what}").into();
        Response::from_error(entry.client.clone(), error)
    }))
}

/// The text of a panic, as far as it has one.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panic without a message")
}

fn with_id(request: Request, id: i64) -> Request {
    let (method, _, params) = request.into_parts();
    let builder = Request::build(method).id(id);
    match params {
        Some(params) => builder.params(params).finish(),
        None => builder.finish(),
    }
}

/// LSP 3.17 `ServerCancelled`: the client may ask again.
fn overloaded() -> Error {
    Error {
        code: ErrorCode::ServerError(-32802),
        message: format!("the server is already working on {MAX_IN_FLIGHT} requests").into(),
        data: None,
    }
}

/// The table is consistent at every release of the lock, so a poisoned one is as good as any.
fn lock(in_flight: &Mutex<InFlight>) -> std::sync::MutexGuard<'_, InFlight> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}
