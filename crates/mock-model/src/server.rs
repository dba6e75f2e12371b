//! The server: routes, connections, and doing what a [`Plan`] says.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use crate::asked::{Api, Asked};
use crate::choose::Chooser;
use crate::log::{Counts, Ended, Log, Logged, query_without_key, without_keys};
use crate::plan::{self, Head, Plan, Step};
use crate::script::Script;

/// Where a mock listens and what it writes.
#[derive(Debug, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 for any that is free.
    pub port: u16,
    /// A file that gets a line of JSON for each request.
    pub log: Option<File>,
}

/// A running mock. It ends, with all its connections, when this is dropped.
pub struct MockModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MockModel {
    /// Starts a mock on a free port. It runs on a thread of its own: a test that stops its own clock doesn't stop the mock's.
    ///
    /// # Errors
    ///
    /// If no port can be opened.
    #[allow(
        clippy::unused_async,
        reason = "callers await everything else here, and a later one may have to wait"
    )]
    pub async fn start(script: Script) -> io::Result<MockModel> {
        MockModel::start_blocking(script)
    }

    /// As [`start`](MockModel::start), from a test without a runtime.
    ///
    /// # Errors
    ///
    /// If no port can be opened.
    pub fn start_blocking(script: Script) -> io::Result<MockModel> {
        MockModel::start_with(script, Options::default())
    }

    /// Starts a mock with options.
    ///
    /// # Errors
    ///
    /// If the port can't be opened.
    pub fn start_with(script: Script, options: Options) -> io::Result<MockModel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                chooser: Chooser::new(script),
                log: Log::new(options.log),
            }),
            counts: watch::Sender::new(Counts::default()),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("mock-model".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = serve(listener, served) => {}
                        _ = stopped => {}
                    }
                });
                // Connections end with the runtime, whatever they wait for.
            })?;
        Ok(MockModel {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was asked so far, in order.
    pub fn requests(&self) -> Vec<Logged> {
        self.shared.state().log.requests().to_vec()
    }

    /// What was asked of models so far: without lists of models, counts of tokens and what is answered with 404.
    pub fn asked(&self) -> Vec<Logged> {
        let mut all = self.requests();
        all.retain(|request| request.api.is_some());
        all
    }

    /// How many requests there were, and how many are open.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.borrow()
    }

    /// Waits until the counts are as wanted: `mock.wait(|counts| counts.asked == 3).await`.
    pub async fn wait(&self, wanted: impl FnMut(&Counts) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        // The sender lives as long as `self`.
        let _ = counts.wait_for(wanted).await;
    }

    /// Answers from another script from now on, and counts its uses from 0. The log goes on.
    pub fn set_script(&self, script: Script) {
        self.shared.state().chooser = Chooser::new(script);
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
}

struct State {
    chooser: Chooser,
    log: Log,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test's own function for an answer leaves the log whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, number: u64, ended: Ended) {
        let mut state = self.state();
        state.log.end(number, ended);
        self.counts.send_replace(state.log.counts());
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, or the client is gone again already.
            tokio::task::yield_now().await;
            continue;
        };
        // Pieces are to arrive when they are sent.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let reset = Arc::new(AtomicBool::new(false));
            let line = Line {
                stream,
                reset: Arc::clone(&reset),
            };
            let service =
                service_fn(move |request| respond(Arc::clone(&shared), Arc::clone(&reset), request));
            // A client that goes away is no error here, and neither is a connection that the script ends.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(line), service)
                .await;
        });
    }
}

type Body = StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Cutoff>> + Send>>>;

/// Why a body ends without its end: the script wants it.
#[derive(Debug, thiserror::Error)]
#[error("the script ends the connection here")]
struct Cutoff;

/// Answers a request.
async fn respond(
    shared: Arc<Shared>,
    reset: Arc<AtomicBool>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Cutoff> {
    let (head, body) = request.into_parts();
    // Half a body is treated as what has come of it: no JSON, most likely.
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let came = Came {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect(),
        body: serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())),
    };
    let (number, plan) = shared.decide(came);
    let open = Open {
        shared,
        number,
        sent: false,
    };
    send(plan, open, reset, number).await
}

async fn send(
    plan: Plan,
    mut open: Open,
    reset: Arc<AtomicBool>,
    number: u64,
) -> Result<Response<Body>, Cutoff> {
    if !plan.first.is_zero() {
        tokio::time::sleep(plan.first).await;
    }
    let (status, content_type, retry_after, length) = match plan.head {
        Head::Answer {
            status,
            content_type,
            retry_after,
            length,
        } => (status, content_type, retry_after, length),
        Head::Never => pending().await,
        Head::Reset => {
            reset.store(true, Ordering::Relaxed);
            open.sent = true;
            return Err(Cutoff);
        }
    };
    let mut response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, content_type)
        .header("request-id", format!("req_mock_{number}"))
        .header("x-request-id", format!("req_mock_{number}"));
    if let Some(retry_after) = retry_after {
        response = response.header(RETRY_AFTER, retry_after);
    }
    if let Some(length) = length {
        response = response.header(CONTENT_LENGTH, length);
    }
    let steps = plan.steps.into_iter();
    let body = stream::unfold((steps, open, reset), |(mut steps, mut open, reset)| async move {
        loop {
            match steps.next() {
                Some(Step::Wait(time)) => tokio::time::sleep(time).await,
                Some(Step::Send(bytes)) => {
                    open.sent = steps.len() == 0;
                    return Some((Ok(Frame::data(bytes)), (steps, open, reset)));
                }
                Some(Step::Hang) => pending().await,
                Some(step @ (Step::Abort | Step::Reset)) => {
                    // What was sent before is written out when the body has nothing to give for once.
                    tokio::task::yield_now().await;
                    open.sent = true;
                    reset.store(step == Step::Reset, Ordering::Relaxed);
                    return Some((Err(Cutoff), (steps, open, reset)));
                }
                None => {
                    open.whole();
                    return None;
                }
            }
        }
    });
    let body: Body = StreamBody::new(Box::pin(body));
    response.body(body).map_err(|_| Cutoff)
}

/// A request as it came.
struct Came {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// What a path means.
enum Route {
    Model(Api),
    CountTokens(&'static str),
    Models,
    Alive,
    Unknown,
}

fn route(method: &str, path: &str) -> Route {
    let last = path.rsplit('/').next().unwrap_or_default();
    match method {
        "POST" if path.ends_with("/messages/count_tokens") => Route::CountTokens("input_tokens"),
        "POST" if path.ends_with("/messages") => Route::Model(Api::Anthropic),
        "POST" if path.ends_with("/chat/completions") => Route::Model(Api::Chat),
        "POST" if path.ends_with("/responses") => Route::Model(Api::Responses),
        "POST" if last.ends_with(":generateContent") || last.ends_with(":streamGenerateContent") => {
            Route::Model(Api::Gemini)
        }
        "POST" if last.ends_with(":countTokens") => Route::CountTokens("totalTokens"),
        "GET" if path.ends_with("/models") => Route::Models,
        "GET" | "HEAD" if path == "/" => Route::Alive,
        _ => Route::Unknown,
    }
}

impl Shared {
    /// Decides what is answered, and logs the request.
    fn decide(&self, came: Came) -> (u64, Plan) {
        let mut state = self.state();
        let number = state.log.next();
        let mut logged = Logged {
            number,
            query: query_without_key(&came.query),
            headers: without_keys(&came.headers),
            method: came.method,
            path: came.path,
            api: None,
            body: came.body.clone(),
            rule: None,
            turn: 0,
            status: 200,
            fault: None,
            complaint: None,
            ended: None,
        };
        let plan = match route(&logged.method, &logged.path) {
            Route::Model(api) => {
                logged.api = Some(api);
                let mut headers = came.headers;
                if api == Api::Gemini && !came.query.split('&').any(|part| part == "alt=sse") {
                    headers.insert(":array".to_owned(), String::new());
                }
                let asked = Asked::read(api, &logged.path, headers, came.body);
                logged.turn = asked.turn;
                state.answer(&asked, &came.query, &mut logged)
            }
            Route::CountTokens(name) => plan::json(200, &json!({name: came.body.to_string().len() / 4})),
            Route::Models => plan::json(200, &models(&state.chooser.script().models)),
            Route::Alive => plan::json(200, &json!({})),
            Route::Unknown => plan::error(
                Api::Anthropic,
                404,
                &format!("mock-model has nothing at {}", logged.path),
            ),
        };
        logged.status = match plan.head {
            Head::Answer { status, .. } => status,
            Head::Never | Head::Reset => 0,
        };
        state.log.add(logged);
        self.counts.send_replace(state.log.counts());
        (number, plan)
    }
}

impl State {
    fn answer(&mut self, asked: &Asked, query: &str, logged: &mut Logged) -> Plan {
        let mut refuse = |status: u16, message: String| {
            let plan = plan::error(asked.api, status, &message);
            logged.complaint = Some(message);
            plan
        };
        if let Some(key) = &self.chooser.script().key
            && !carries(asked, query, key)
        {
            return refuse(401, "invalid x-api-key".to_owned());
        }
        if !asked.body.is_object() {
            return refuse(400, "the body is no JSON object".to_owned());
        }
        if !self.chooser.script().lenient
            && let Some(complaint) = crate::api::complaint(asked)
        {
            return refuse(400, complaint);
        }
        match self.chooser.choose(asked, logged.number) {
            Some(chosen) => {
                logged.rule = chosen.rule;
                logged.fault = chosen.fault.as_ref().map(|fault| format!("{fault:?}"));
                plan::answer(asked, &chosen)
            }
            None => refuse(
                400,
                format!(
                    "mock-model has no rule for this request; model {:?}, user's last text {:?}, result {:?}",
                    asked.model,
                    short(&asked.user),
                    asked.result.as_deref().map(short),
                ),
            ),
        }
    }
}

/// The end of a text, which in a long one is what was said last.
fn short(text: &str) -> String {
    const SHOWN: usize = 400;
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let end: String = text.chars().skip(length - SHOWN).collect();
    format!("…{end}")
}

/// Whether the request carries the key, in whichever header.
fn carries(asked: &Asked, query: &str, key: &str) -> bool {
    let header = |name: &str| asked.headers.get(name).map(String::as_str);
    header("x-api-key") == Some(key)
        || header("x-goog-api-key") == Some(key)
        || header("api-key") == Some(key)
        || header("authorization").and_then(|value| value.strip_prefix("Bearer ")) == Some(key)
        || query
            .split('&')
            .any(|part| part.strip_prefix("key=") == Some(key))
}

/// The list of models, with what each API's clients look for.
fn models(names: &[String]) -> Value {
    let data: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "id": name,
                "object": "model",
                "type": "model",
                "display_name": name,
                "created": 1_767_225_600,
                "created_at": "2026-01-01T00:00:00Z",
                "owned_by": "mock-model",
            })
        })
        .collect();
    let gemini: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": format!("models/{name}"), "supportedGenerationMethods": ["generateContent"]}))
        .collect();
    json!({"object": "list", "data": data, "has_more": false, "models": gemini})
}

/// An answer on its way: its end is logged, and so is that its client has gone.
struct Open {
    shared: Arc<Shared>,
    number: u64,
    sent: bool,
}

impl Open {
    fn whole(mut self) {
        self.sent = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let ended = if self.sent { Ended::Sent } else { Ended::Left };
        self.shared.end(self.number, ended);
    }
}

/// A connection that can be reset instead of being closed.
struct Line {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // Closing without lingering is a reset. Where it can't be set, the connection is closed instead.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.load(Ordering::Relaxed) {
            // An orderly end first would make the reset pointless.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
