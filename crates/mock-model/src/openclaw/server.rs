//! The gateway: connections, methods, and what it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::run::{self, Ended, Order, now};
use super::script::{GatewayScript, Refusal, Step};

/// Something that a client asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// The parameters; a token is replaced by whether it was the right one.
    pub params: Value,
    /// The connection that it came over, from 1.
    pub connection: usize,
}

/// A running gateway. It ends, with all its connections, when this is dropped.
pub struct MockGateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MockGateway {
    /// Starts one on a free port, with a thread of its own.
    ///
    /// # Errors
    ///
    /// If no port can be opened.
    pub fn start(script: GatewayScript) -> io::Result<MockGateway> {
        MockGateway::start_at(script, 0)
    }

    /// The same on a port.
    ///
    /// # Errors
    ///
    /// If the port can't be opened.
    pub fn start_at(script: GatewayScript, port: u16) -> io::Result<MockGateway> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            released: watch::Sender::new(0),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("mock-gateway".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = serve(listener, served) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(MockGateway {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// `ws://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// What was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }

    /// The parameters of what was asked by a method, in order.
    pub fn asked_for(&self, method: &str) -> Vec<Value> {
        let asked = self.asked().into_iter();
        asked
            .filter(|asked| asked.method == method)
            .map(|asked| asked.params)
            .collect()
    }

    /// How many runs have begun.
    pub fn runs(&self) -> usize {
        self.shared.state().runs.len()
    }

    /// How many runs have ended.
    pub fn ended(&self) -> usize {
        let state = self.shared.state();
        state.runs.values().filter(|run| run.ended.is_some()).count()
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.shared.state().clients.len()
    }

    /// Lets every run that holds, or will hold, go on once.
    pub fn release(&self) {
        self.shared.released.send_modify(|count| *count += 1);
    }

    /// Breaks all connections.
    pub fn drop_all(&self) {
        self.shared.drop_all();
    }

    /// Waits until it is as wanted.
    pub async fn wait(&self, is: impl Fn(&MockGateway) -> bool) {
        let mut changes = self.shared.changed.subscribe();
        while !is(self) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for MockGateway {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which it has said.
            let _ = thread.join();
        }
    }
}

/// What connections and runs share.
pub(super) struct Shared {
    script: GatewayScript,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    released: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    connections: usize,
    refused: u32,
    sessions: BTreeMap<String, Vec<Value>>,
    runs: BTreeMap<String, Kept>,
    matched: BTreeMap<usize, usize>,
    approvals: BTreeMap<String, (Value, oneshot::Sender<String>)>,
    approvals_made: usize,
    /// The connections whose clients have said that they can be asked.
    askable: BTreeSet<usize>,
    clients: BTreeMap<usize, mpsc::UnboundedSender<Out>>,
}

/// A run as it is kept.
struct Kept {
    session: String,
    abort: watch::Sender<bool>,
    ended: Option<Ended>,
    /// Who began it: connection and request.
    asker: (usize, String),
}

enum Out {
    Frame(Value),
    /// The connection breaks.
    Cut,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn broadcast(&self, event: &str, payload: &Value) {
        for client in self.state().clients.values() {
            // One that is gone is taken out by its own task.
            let _ = client.send(Out::Frame(
                json!({"type": "event", "event": event, "payload": payload}),
            ));
        }
    }

    pub(super) fn drop_all(&self) {
        let mut state = self.state();
        for client in std::mem::take(&mut state.clients).values() {
            let _ = client.send(Out::Cut);
        }
        if self.script.forgets {
            state.sessions.clear();
            state.runs.clear();
        }
        drop(state);
        self.change();
    }

    pub(super) async fn held(&self) {
        let mut released = self.released.subscribe();
        // It ends only with the gateway.
        let _ = released.wait_for(|count| *count > 0).await;
    }

    pub(super) fn ask_approval(
        &self,
        event: &str,
        request: Value,
        decide: oneshot::Sender<String>,
    ) -> String {
        let mut state = self.state();
        state.approvals_made += 1;
        let id = format!("approval-{}", state.approvals_made);
        let entry =
            json!({"id": id, "request": request, "createdAtMs": now(), "expiresAtMs": now() + 60_000});
        // As a real one does, it asks only who can be asked, and nobody else later on.
        let listens = state.clients.keys().any(|client| state.askable.contains(client));
        if !listens && !self.script.waits {
            drop(state);
            let _ = decide.send("deny".to_owned());
            return id;
        }
        state.approvals.insert(id.clone(), (entry.clone(), decide));
        drop(state);
        self.broadcast(event, &entry);
        self.change();
        id
    }

    pub(super) fn finish(&self, order: &Order, ended: Ended) {
        let mut state = self.state();
        if ended.status == "ok" {
            let result = &ended.payload["result"];
            let text = result["payloads"][0]["text"].clone();
            if let Some(messages) = state.sessions.get_mut(&order.session) {
                messages.push(json!({
                    "role": "assistant",
                    "content": [{"type": "text", "text": text}],
                    "usage": {"input": 100, "output": 20, "cacheRead": 30, "totalTokens": 150, "cost": {"total": 0.5}},
                    "stopReason": "stop",
                }));
            }
        }
        let Some(kept) = state.runs.get_mut(&order.id) else {
            return;
        };
        kept.ended = Some(ended.clone());
        let (connection, request) = kept.asker.clone();
        if let Some(client) = state.clients.get(&connection) {
            let _ = client.send(Out::Frame(answer(&request, &ended)));
        }
        drop(state);
        self.change();
    }
}

/// The last answer to the request that began a run.
fn answer(request: &str, ended: &Ended) -> Value {
    let ok = ended.error.is_none();
    let mut frame = json!({"type": "res", "id": request, "ok": ok, "payload": ended.payload});
    if let Some(error) = &ended.error {
        frame["error"] = json!({"code": "UNAVAILABLE", "message": error});
    }
    frame
}

fn refusal(id: &str, code: &str, message: &str, details: Value) -> Value {
    json!({"type": "res", "id": id, "ok": false, "error": {"code": code, "message": message, "details": details}})
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A connection that goes wrong is the client's matter.
            let _ = connection(stream, shared).await;
        });
    }
}

type Broken = tokio_tungstenite::tungstenite::Error;

async fn connection(stream: TcpStream, shared: Arc<Shared>) -> Result<(), Broken> {
    let refuse = shared.script.refusal;
    if refuse == Some(Refusal::NoWebSocket) {
        use tokio::io::AsyncWriteExt as _;
        let mut stream = stream;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
            .await?;
        return Ok(());
    }
    let mut socket = tokio_tungstenite::accept_async(stream).await?;
    match refuse {
        Some(Refusal::Closes) => return socket.close(None).await,
        Some(Refusal::Silent) => {
            while socket.next().await.is_some() {}
            return Ok(());
        }
        _ => {}
    }
    let number = {
        let mut state = shared.state();
        state.connections += 1;
        state.connections
    };
    let talked = talk(&mut socket, &shared, number).await;
    shared.state().clients.remove(&number);
    shared.change();
    talked
}

/// Talks with a client until one side is gone.
async fn talk(
    socket: &mut WebSocketStream<TcpStream>,
    shared: &Arc<Shared>,
    number: usize,
) -> Result<(), Broken> {
    let challenge =
        json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": now()}});
    socket.send(Message::text(challenge.to_string())).await?;
    let (send, mut out) = mpsc::unbounded_channel();
    let mut tick = tokio::time::interval(shared.script.tick);
    let mut is_in = false;
    loop {
        tokio::select! {
            frame = out.recv() => match frame {
                Some(Out::Frame(frame)) => socket.send(Message::text(frame.to_string())).await?,
                Some(Out::Cut) | None => return Ok(()),
            },
            _ = tick.tick(), if is_in => {
                let frame = json!({"type": "event", "event": "tick", "payload": {"ts": now()}});
                socket.send(Message::text(frame.to_string())).await?;
            }
            message = socket.next() => {
                let text = match message {
                    Some(Ok(Message::Text(text))) => text,
                    Some(Ok(_)) => continue,
                    Some(Err(_)) | None => break,
                };
                let Ok(frame) = serde_json::from_str::<Value>(&text) else { break };
                if is_in {
                    handle(shared, number, &send, &frame);
                    continue;
                }
                let (answer, lets_in) = hello(shared, number, &frame);
                if lets_in {
                    shared.state().clients.insert(number, send.clone());
                    is_in = true;
                }
                socket.send(Message::text(answer.to_string())).await?;
                shared.change();
                if !lets_in {
                    return socket.close(None).await;
                }
            }
        }
    }
    Ok(())
}

/// The answer to `connect`, and whether the client is let in.
fn hello(shared: &Shared, connection: usize, frame: &Value) -> (Value, bool) {
    let id = frame["id"].as_str().unwrap_or_default();
    let mut params = frame["params"].clone();
    let is_right = params["auth"]["token"] == shared.script.token.as_str();
    params["auth"] = json!({"right": is_right});
    let mut state = shared.state();
    state.asked.push(Asked {
        method: frame["method"].as_str().unwrap_or_default().to_owned(),
        params: params.clone(),
        connection,
    });
    let no = |code: &str, message: &str, details: Value| (refusal(id, code, message, details), false);
    match shared.script.refusal {
        Some(Refusal::Protocol) => {
            let details = json!({"code": "PROTOCOL_UNSUPPORTED", "expectedProtocol": 5});
            return no("INVALID_REQUEST", "protocol mismatch", details);
        }
        Some(Refusal::Pairing) => {
            let details = json!({"code": "PAIRING_REQUIRED", "requestId": "r1"});
            return no("NOT_PAIRED", "pairing required", details);
        }
        Some(Refusal::Starting(times)) if state.refused < times => {
            state.refused += 1;
            let mut frame = refusal(
                id,
                "UNAVAILABLE",
                "gateway starting",
                json!({"reason": "startup-sidecars"}),
            );
            frame["error"]["retryable"] = true.into();
            frame["error"]["retryAfterMs"] = 20.into();
            return (frame, false);
        }
        _ => {}
    }
    if frame["method"] != "connect" || params["minProtocol"] != 4 {
        return no("INVALID_REQUEST", "invalid handshake", Value::Null);
    }
    if !is_right {
        let details = json!({"code": "AUTH_TOKEN_MISMATCH"});
        return no("INVALID_REQUEST", "unauthorized: gateway token mismatch", details);
    }
    let caps = params["caps"].as_array();
    if caps.is_some_and(|caps| caps.iter().any(|cap| cap == "approvals")) {
        state.askable.insert(connection);
    }
    let tick = u64::try_from(shared.script.tick.as_millis()).unwrap_or(u64::MAX);
    let payload = json!({
        "type": "hello-ok",
        "protocol": 4,
        "server": {"version": "0.0-mock", "connId": connection.to_string()},
        "features": {"methods": [], "events": []},
        "snapshot": {},
        "auth": {"role": "operator", "scopes": params["scopes"]},
        "policy": {"maxPayload": 26_214_400, "maxBufferedBytes": 52_428_800, "tickIntervalMs": tick},
    });
    (
        json!({"type": "res", "id": id, "ok": true, "payload": payload}),
        true,
    )
}

fn handle(shared: &Arc<Shared>, connection: usize, send: &mpsc::UnboundedSender<Out>, frame: &Value) {
    let id = frame["id"].as_str().unwrap_or_default();
    let method = frame["method"].as_str().unwrap_or_default();
    let params = &frame["params"];
    shared.state().asked.push(Asked {
        method: method.to_owned(),
        params: params.clone(),
        connection,
    });
    if method == "agent.wait" {
        let (shared, send, id, params) = (shared.clone(), send.clone(), id.to_owned(), params.clone());
        tokio::spawn(async move {
            let payload = wait(&shared, &params).await;
            let _ = send.send(Out::Frame(
                json!({"type": "res", "id": id, "ok": true, "payload": payload}),
            ));
        });
    } else {
        let answer = match method {
            "agent" => agent(shared, connection, id, params),
            _ => call(&mut shared.state(), &shared.script, method, params),
        };
        let frame = match answer {
            Ok(Value::Null) => None,
            Ok(payload) => Some(json!({"type": "res", "id": id, "ok": true, "payload": payload})),
            Err(message) => Some(refusal(id, "INVALID_REQUEST", &message, Value::Null)),
        };
        if let Some(frame) = frame {
            let _ = send.send(Out::Frame(frame));
        }
    }
    shared.change();
}

async fn wait(shared: &Shared, params: &Value) -> Value {
    let run = params["runId"].as_str().unwrap_or_default();
    let limit = Duration::from_millis(params["timeoutMs"].as_u64().unwrap_or(30_000));
    let mut changes = shared.changed.subscribe();
    let look = || {
        let state = shared.state();
        state.runs.get(run).and_then(|kept| kept.ended.clone())
    };
    let ending = async {
        loop {
            if let Some(ended) = look() {
                return ended;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    match tokio::time::timeout(limit, ending).await {
        Ok(ended) => json!({
            "runId": run, "status": ended.status, "startedAt": ended.at, "endedAt": ended.at, "error": ended.error,
            "stopReason": ended.payload["stopReason"],
        }),
        Err(_) => json!({"runId": run, "status": "timeout"}),
    }
}

/// Begins a run, or says what became of the one with that key.
fn agent(shared: &Arc<Shared>, connection: usize, id: &str, params: &Value) -> Result<Value, String> {
    let text = |key: &str| params[key].as_str().filter(|text| !text.is_empty());
    let missing = |key: &str| format!("invalid agent params: at root: must have required property '{key}'");
    let run = text("idempotencyKey")
        .ok_or_else(|| missing("idempotencyKey"))?
        .to_owned();
    let message = text("message").ok_or_else(|| missing("message"))?;
    let session = text("sessionKey")
        .ok_or_else(|| missing("sessionKey"))?
        .to_owned();
    let mut state = shared.state();
    if let Some(kept) = state.runs.get(&run) {
        return match &kept.ended {
            Some(ended) => Ok(ended.payload.clone()),
            None => Ok(json!({"runId": run, "status": "in_flight"})),
        };
    }
    let mut steps = None;
    for (number, rule) in shared.script.runs.iter().enumerate() {
        let Some(found) = rule.pattern.captures(message) else {
            continue;
        };
        let count = state.matched.entry(number).or_default();
        *count += 1;
        if rule.nth.is_some_and(|nth| nth != *count) {
            continue;
        }
        let fill = |text: &str| {
            let mut out = text.to_owned();
            for name in rule.pattern.capture_names().flatten() {
                let value = found.name(name).map_or("", |group| group.as_str());
                out = out.replace(&format!("${{{name}}}"), value);
            }
            out
        };
        let filled = rule.steps.iter().map(|step| match step {
            Step::Say(text) => Step::Say(fill(text)),
            Step::Write { path, content } => Step::Write {
                path: fill(path),
                content: fill(content),
            },
            other => other.clone(),
        });
        steps = Some(filled.collect());
        break;
    }
    let steps = steps.unwrap_or_else(|| vec![Step::Fail("no run fits the message".to_owned())]);
    let messages = state.sessions.entry(session.clone()).or_default();
    messages.push(json!({"role": "user", "content": message}));
    let (abort, aborted) = watch::channel(false);
    let kept = Kept {
        session: session.clone(),
        abort,
        ended: None,
        asker: (connection, id.to_owned()),
    };
    state.runs.insert(run.clone(), kept);
    // Before anything of the run, which waits for this lock.
    if let Some(client) = state.clients.get(&connection) {
        let payload = json!({"runId": run, "status": "accepted", "acceptedAt": now()});
        let _ = client.send(Out::Frame(
            json!({"type": "res", "id": id, "ok": true, "payload": payload}),
        ));
    }
    drop(state);
    let order = Order {
        id: run,
        session,
        steps,
        abort: aborted,
    };
    tokio::spawn(run::run(shared.clone(), order));
    Ok(Value::Null)
}

fn call(state: &mut State, script: &GatewayScript, method: &str, params: &Value) -> Result<Value, String> {
    let text = |key: &str| params[key].as_str().unwrap_or_default();
    match method {
        "models.list" => {
            let models = script.models.iter();
            let models: Vec<Value> = models
                .map(|(provider, id)| json!({"id": id, "name": id, "provider": provider}))
                .collect();
            Ok(json!({"models": models}))
        }
        "sessions.create" => {
            if !matches!(text("permissionMode"), "guarded" | "read-only") {
                return Err("the mock runs nobody without a guard".to_owned());
            }
            let key = text("key").to_owned();
            state.sessions.entry(key.clone()).or_default();
            Ok(json!({"ok": true, "key": key, "sessionId": format!("id-of-{key}"), "entry": {}}))
        }
        "sessions.delete" => {
            let deleted = state.sessions.remove(text("key")).is_some();
            Ok(json!({"ok": true, "key": text("key"), "deleted": deleted}))
        }
        "chat.history" => {
            let key = text("sessionKey");
            let messages = state.sessions.get(key).cloned().unwrap_or_default();
            let open = |kept: &&Kept| kept.session == key && kept.ended.is_none();
            let active: Vec<&String> = state
                .runs
                .iter()
                .filter(|(_, kept)| open(kept))
                .map(|(run, _)| run)
                .collect();
            let info = json!({"hasActiveRun": !active.is_empty(), "activeRunIds": active});
            Ok(json!({"sessionKey": key, "messages": messages, "sessionInfo": info}))
        }
        "chat.abort" | "sessions.abort" => {
            let key = params["sessionKey"].as_str().unwrap_or(text("key"));
            let mut aborted = Vec::new();
            for (run, kept) in &state.runs {
                if kept.session == key && kept.ended.is_none() {
                    let _ = kept.abort.send(true);
                    aborted.push(run.clone());
                }
            }
            Ok(json!({"ok": true, "aborted": !aborted.is_empty(), "runIds": aborted}))
        }
        "exec.approval.list" | "plugin.approval.list" => {
            let entries: Vec<&Value> = state.approvals.values().map(|(entry, _)| entry).collect();
            Ok(json!(entries))
        }
        "exec.approval.resolve" | "plugin.approval.resolve" => {
            let decide = state.approvals.remove(text("id"));
            let (_, decide) = decide.ok_or("unknown or expired approval id")?;
            // A run that has ended waits for nothing.
            let _ = decide.send(text("decision").to_owned());
            Ok(json!({"ok": true}))
        }
        _ => Err(format!("unknown method: {method}")),
    }
}
