//! The connection to a gateway: its handshake, requests and their answers, and what it says without having been asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use prose_model::{ErrorKind, Failure};
use serde_json::{Value as Json, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::{Redactor, Secret, failure, http};

/// The version of the protocol that is spoken.
const VERSION: u64 = 4;
/// Largest message that is read, in bytes: the gateway's own limit, and some room.
const MESSAGE: usize = 32 * 1024 * 1024;
/// How long the gateway may take for a request that it answers at once.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How often it says that it is there, where it does not tell.
const TICK: Duration = Duration::from_secs(30);
/// Its agent, where it does not tell.
const AGENT: &str = "main";
/// How long it may take to close a connection.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// What sessions need: `cwd` and `permissionMode` are for administrators only.
const SCOPES: [&str; 4] = [
    "operator.read",
    "operator.write",
    "operator.admin",
    "operator.approvals",
];
/// The events that are looked at.
const EVENTS: [&str; 3] = ["agent", "exec.approval.requested", "plugin.approval.requested"];

/// A gateway, and how to get in.
pub(super) struct Address {
    pub(super) url: String,
    pub(super) token: Option<Secret>,
    /// The variable that holds the token, or would.
    pub(super) token_name: String,
    /// How long it may take until the connection stands.
    pub(super) time: Duration,
    pub(super) redactor: Redactor,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    /// Without what may be secret in it.
    pub(super) fn shown(&self) -> String {
        match reqwest::Url::parse(&self.url) {
            Ok(url) => {
                let host = url.host_str().unwrap_or_default();
                let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
                format!("{}://{host}{port}", url.scheme())
            }
            Err(_) => "its address".to_owned(),
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoLink {
    /// Nobody is there, in words.
    Nobody(String),
    /// It lets nobody in, or not us.
    Refused(Failure),
}

/// Why a request was in vain.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The gateway says no: its code and words.
    Refused { code: String, message: String },
    /// The connection is gone, or silent.
    Lost,
}

/// What the gateway says without having been asked.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) payload: Json,
}

/// One answer to a request; some have two.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) payload: Json,
    /// Code and words, where it went wrong.
    pub(super) error: Option<(String, String)>,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;
type Waiting = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Answer>>>>;

/// The answers to one request; none any more: the connection is gone.
pub(super) type Answers = mpsc::UnboundedReceiver<Answer>;

/// A connection to a gateway that has let us in. Dropped, it says its farewell, if there is one, and is closed.
pub(super) struct Link {
    send: mpsc::UnboundedSender<String>,
    waiting: Waiting,
    count: AtomicU64,
    /// The agent that runs what names none.
    pub(super) agent: String,
    /// A request to be sent when this is dropped.
    farewell: Mutex<Option<String>>,
}

impl Link {
    /// Connects and says hello; the events come by the receiver, until the connection is gone.
    pub(super) async fn open(address: &Address) -> Result<(Link, mpsc::UnboundedReceiver<Event>), NoLink> {
        let until = Instant::now() + address.time;
        loop {
            match timeout_at(until, greet(address)).await {
                Ok(Ok(greeted)) => return Ok(begin(greeted)),
                Ok(Err(Greeting::Later(wait))) if Instant::now() + wait < until => {
                    tokio::time::sleep(wait).await;
                }
                Ok(Err(Greeting::Later(_))) => {
                    return Err(NoLink::Nobody(format!("{} is still starting", address.shown())));
                }
                Ok(Err(Greeting::No(no))) => return Err(no),
                Err(_) => {
                    let seconds = address.time.as_secs_f64();
                    return Err(NoLink::Nobody(format!(
                        "{} did not answer for {seconds} s",
                        address.shown()
                    )));
                }
            }
        }
    }

    /// Asks for something that is answered once.
    pub(super) async fn ask(&self, method: &str, params: Json) -> Result<Json, Trouble> {
        let mut answers = self.ask_long(method, params);
        match timeout(ANSWER_TIME, answers.recv()).await {
            Ok(Some(Answer { error: None, payload })) => Ok(payload),
            Ok(Some(Answer {
                error: Some((code, message)),
                ..
            })) => Err(Trouble::Refused { code, message }),
            Ok(None) | Err(_) => Err(Trouble::Lost),
        }
    }

    /// Asks for something that may be answered late, or more than once.
    pub(super) fn ask_long(&self, method: &str, params: Json) -> Answers {
        let (give, answers) = mpsc::unbounded_channel();
        let id = self.next_id();
        let mut waiting = lock(&self.waiting);
        waiting.retain(|_, give| !give.is_closed());
        waiting.insert(id.clone(), give);
        drop(waiting);
        // IMPORTANT: whoever takes the connection's end out clears the list; so what is sent after the end must be taken out here.
        if self.send.send(request(&id, method, params)).is_err() {
            lock(&self.waiting).remove(&id);
        }
        answers
    }

    /// What is asked when this is dropped.
    pub(super) fn set_farewell(&self, farewell: Option<(&str, Json)>) {
        *lock(&self.farewell) = farewell.map(|(method, params)| request(&self.next_id(), method, params));
    }

    fn next_id(&self) -> String {
        self.count.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(farewell) = lock(&self.farewell).take() {
            let _ = self.send.send(farewell);
        }
    }
}

fn request(id: &str, method: &str, params: Json) -> String {
    json!({"type": "req", "id": id, "method": method, "params": params}).to_string()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a greeting did not end well.
enum Greeting {
    /// It is to be tried again after this time.
    Later(Duration),
    No(NoLink),
}

impl From<NoLink> for Greeting {
    fn from(no: NoLink) -> Greeting {
        Greeting::No(no)
    }
}

/// What is known of a gateway once it has let us in.
struct Hello {
    socket: Socket,
    /// How often it says that it is there.
    tick: Duration,
    agent: String,
}

/// Connects and is let in.
async fn greet(address: &Address) -> Result<Hello, Greeting> {
    // For an address with TLS.
    http::provide_tls();
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let (mut socket, _) = connect_async_with_config(address.url.as_str(), Some(config), true)
        .await
        .map_err(|error| no_socket(address, &error))?;
    let closed = || {
        NoLink::Refused(failure(
            ErrorKind::Backend,
            format!(
                "{} closes the connection before it has said hello",
                address.shown()
            ),
        ))
    };
    loop {
        let frame = next_frame(&mut socket).await.ok_or_else(closed)?;
        if frame["event"] == "connect.challenge" {
            break;
        }
    }
    let mut auth = json!({});
    if let Some(token) = &address.token {
        auth["token"] = token.expose().into();
    }
    let hello = json!({
        "minProtocol": VERSION,
        "maxProtocol": VERSION,
        "client": {
            // The one that needs no paired device on the gateway's own machine.
            "id": "gateway-client",
            "displayName": "OpenProse",
            "version": env!("CARGO_PKG_VERSION"),
            "platform": std::env::consts::OS,
            "mode": "backend",
        },
        "role": "operator",
        "scopes": SCOPES,
        // Without the second one the gateway asks nobody, and refuses what would have to be asked.
        "caps": ["tool-events", "approvals"],
        "auth": auth,
    });
    socket
        .send(Message::text(request("hello", "connect", hello)))
        .await
        .map_err(|_| closed())?;
    let answer = loop {
        let frame = next_frame(&mut socket).await.ok_or_else(closed)?;
        if frame["type"] == "res" && frame["id"] == "hello" {
            break frame;
        }
    };
    if answer["ok"] == true {
        let payload = &answer["payload"];
        let tick = payload["policy"]["tickIntervalMs"].as_u64();
        let agent = &payload["snapshot"]["sessionDefaults"]["defaultAgentId"];
        return Ok(Hello {
            socket,
            tick: tick.map_or(TICK, Duration::from_millis),
            agent: agent.as_str().unwrap_or(AGENT).to_owned(),
        });
    }
    let error = &answer["error"];
    if let Some(wait) = error["retryAfterMs"]
        .as_u64()
        .filter(|_| error["retryable"] == true)
    {
        return Err(Greeting::Later(Duration::from_millis(wait.max(10))));
    }
    Err(NoLink::Refused(turned_away(address, error)).into())
}

fn no_socket(address: &Address, error: &SocketError) -> NoLink {
    let shown = address.shown();
    let said = |what: String| address.redactor.one_line(&what);
    match error {
        SocketError::Io(error) => {
            NoLink::Nobody(format!("{shown} can't be reached: {}", said(error.to_string())))
        }
        SocketError::Tls(error) => NoLink::Refused(failure(
            ErrorKind::Backend,
            format!("{shown} can't be trusted: {}", said(error.to_string())),
        )),
        SocketError::Http(answer) => NoLink::Refused(failure(
            ErrorKind::Backend,
            format!(
                "{shown} answers HTTP {} and is no OpenClaw gateway",
                answer.status().as_u16()
            ),
        )),
        error => NoLink::Refused(failure(
            ErrorKind::Backend,
            format!("{shown} is no OpenClaw gateway: {}", said(error.to_string())),
        )),
    }
}

/// What a gateway says that lets nobody in, and how to mend it.
fn turned_away(address: &Address, error: &Json) -> Failure {
    let said = |value: &Json| address.redactor.one_line(value.as_str().unwrap_or_default());
    let code = error["details"]["code"]
        .as_str()
        .or_else(|| error["code"].as_str())
        .unwrap_or_default();
    let name = &address.token_name;
    let shown = address.shown();
    let message = if code.contains("PAIR") || code.contains("DEVICE") {
        format!(
            "{shown} wants a paired device, as it does of other machines: use a gateway on this machine, or one that is \
             reached through a tunnel such as `ssh -L`"
        )
    } else if code.contains("PROTOCOL") || said(&error["message"]).contains("protocol") {
        format!(
            "{shown} speaks another version of the protocol than {VERSION}: OpenClaw 2026.9 or later is needed"
        )
    } else if code.starts_with("AUTH") || said(&error["message"]).contains("unauthorized") {
        match address.token {
            Some(_) => format!(
                "{shown} refuses the token in {name}: it has to be the `gateway.auth.token` of the gateway's openclaw.json"
            ),
            None => {
                format!("{shown} wants a token: set {name} to the `gateway.auth.token` of its openclaw.json")
            }
        }
    } else {
        format!("{shown} lets nobody in: {}", said(&error["message"]))
    };
    failure(ErrorKind::Backend, message)
}

/// The next message that is one of the protocol; none at the end.
async fn next_frame(socket: &mut Socket) -> Option<Json> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => match serde_json::from_str(&text) {
                Ok(frame) => return Some(frame),
                // What is no JSON is nothing that is waited for.
                Err(_) => continue,
            },
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

fn begin(hello: Hello) -> (Link, mpsc::UnboundedReceiver<Event>) {
    let (send, to_send) = mpsc::unbounded_channel();
    let (tell, events) = mpsc::unbounded_channel();
    let waiting = Waiting::default();
    // It ends with the link, whose half of the channel it waits for.
    tokio::spawn(drive(hello.socket, hello.tick, to_send, waiting.clone(), tell));
    let link = Link {
        send,
        waiting,
        count: AtomicU64::new(1),
        agent: hello.agent,
        farewell: Mutex::default(),
    };
    (link, events)
}

/// Carries messages both ways until one side is gone.
async fn drive(
    mut socket: Socket,
    tick: Duration,
    mut to_send: mpsc::UnboundedReceiver<String>,
    waiting: Waiting,
    tell: mpsc::UnboundedSender<Event>,
) {
    // One that does not even say that it is there is gone, whatever the network says.
    let silence = (tick * 3).max(Duration::from_secs(5));
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            message = to_send.recv() => match message {
                Some(message) => {
                    if !matches!(timeout(silence, socket.send(Message::text(message))).await, Ok(Ok(()))) {
                        break;
                    }
                }
                None => {
                    let _ = timeout(CLOSE_TIME, take_leave(&mut socket)).await;
                    break;
                }
            },
            frame = timeout_at(heard + silence, next_frame(&mut socket)) => {
                let Ok(Some(frame)) = frame else { break };
                heard = Instant::now();
                route(frame, &waiting, &tell);
            }
        }
    }
    // IMPORTANT: first closed, then cleared, so that no request stays between.
    to_send.close();
    lock(&waiting).clear();
}

/// Closes the connection and waits for the other side to do so. One that is dropped while something of the gateway's has not been
/// read is reset, and the gateway may never read what it was told last.
async fn take_leave(socket: &mut Socket) {
    if socket.close(None).await.is_ok() {
        while let Some(Ok(_)) = socket.next().await {}
    }
}

fn route(mut frame: Json, waiting: &Waiting, tell: &mpsc::UnboundedSender<Event>) {
    if frame["type"] == "event" {
        if let Some(name) = frame["event"].as_str().filter(|name| EVENTS.contains(name)) {
            let name = name.to_owned();
            // Nobody listens any more: it does not matter then.
            let _ = tell.send(Event {
                name,
                payload: frame["payload"].take(),
            });
        }
        return;
    }
    let Some(id) = frame["id"].as_str().map(ToOwned::to_owned) else {
        return;
    };
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let error = (frame["ok"] != true).then(|| {
        let error = &frame["error"];
        (text(&error["code"]), text(&error["message"]))
    });
    let answer = Answer {
        payload: frame["payload"].take(),
        error,
    };
    let mut waiting = lock(waiting);
    if let Some(give) = waiting.get(&id)
        && give.send(answer).is_err()
    {
        // Whoever asked does not wait any more.
        waiting.remove(&id);
    }
}
