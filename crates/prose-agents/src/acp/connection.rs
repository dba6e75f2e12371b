//! The agent's process and the connection to it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{RequestPermissionRequest, RequestPermissionResponse};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent as AgentRole, Client, Error as ProtocolError, Lines as Transport, UntypedMessage,
};
use prose_model::{ErrorKind, Failure};
use serde::Serialize;
use serde_json::Value as Json;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, oneshot};

use super::preset::Agent;
use crate::child::{Child, ChildCommand, Environment, Line, Lines, describe};
use crate::{Redactor, SessionSink, failure};

/// Longest line that is read, in bytes: a tool's whole result is one.
const LINE: usize = 16 * 1024 * 1024;
/// How long it has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(4);

/// What the agent says without having been asked.
pub(super) enum Event {
    /// `session/update`: its session, and what is new.
    Update { session: String, update: Json },
    /// It wants to do something and waits for the answer.
    Permission(
        Box<RequestPermissionRequest>,
        Responder<RequestPermissionResponse>,
    ),
}

/// Whether an error is that the agent says nothing any more.
pub(super) fn is_gone(error: &ProtocolError) -> bool {
    agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error)
}

/// What was seen of the agent's output.
#[derive(Debug, Default)]
struct Seen {
    /// The first line that was no message.
    garbage: Option<String>,
    /// How long the first line was that was thrown away for its length.
    too_long: Option<usize>,
}

/// A running agent.
pub(super) struct Connection {
    child: Child,
    peer: ConnectionTo<AgentRole>,
    /// Dropped, it ends the task below.
    finish: Option<oneshot::Sender<()>>,
    driver: tokio::task::JoinHandle<()>,
    seen: Arc<Mutex<Seen>>,
    name: String,
    redactor: Redactor,
}

impl Connection {
    /// Starts the agent, and says so to the sink.
    pub(super) async fn start(
        agent: &Agent,
        program: &Path,
        environment: &Environment,
        redactor: Redactor,
        dir: &Path,
        sink: Option<&Arc<dyn SessionSink>>,
    ) -> Result<(Connection, mpsc::UnboundedReceiver<Event>), Failure> {
        let mut child = Child::start(ChildCommand {
            program: program.to_owned(),
            args: agent.args.iter().map(Into::into).collect(),
            dir: dir.to_owned(),
            environment: environment.clone(),
        })
        .await
        .map_err(|error| {
            failure(
                ErrorKind::Backend,
                format!("{error}\n  to set it up: {}", agent.setup()),
            )
        })?;
        if let Some(sink) = sink {
            sink.child(child.pid()).await?;
        }
        let lost = || {
            failure(
                ErrorKind::Backend,
                format!("the agent `{}` was lost as it started", agent.name()),
            )
        };
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(lost());
        };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let source = (Lines::new(stdout, LINE), seen.clone(), redactor.clone());
        let incoming = futures::stream::unfold(source, |(mut lines, seen, redactor)| async {
            let line = next_message(&mut lines, &seen, &redactor).await?;
            Some((Ok(line), (lines, seen, redactor)))
        });
        let outgoing = futures::sink::unfold(stdin, |mut stdin, mut line: String| async move {
            line.push('\n');
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await?;
            Ok::<_, std::io::Error>(stdin)
        });
        let (tell, events) = mpsc::unbounded_channel();
        let updates = tell.clone();
        let (give, peer) = oneshot::channel();
        let (finish, finished) = oneshot::channel::<()>();
        // A task of its own: what comes in is read whatever we are doing.
        let connection = Client
            .v1()
            .name("prose")
            .on_receive_notification(
                async move |message: UntypedMessage, _| {
                    if message.method == "session/update" {
                        let mut params = message.params;
                        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                        let update = params["update"].take();
                        // Nobody listens any more: it does not matter then.
                        let _ = updates.send(Event::Update { session, update });
                    }
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _| {
                    let _ = tell.send(Event::Permission(Box::new(request), responder));
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(
                Transport::new(Box::pin(outgoing), Box::pin(incoming)),
                async move |peer: ConnectionTo<AgentRole>| {
                    let _ = give.send(peer);
                    let _ = finished.await;
                    Ok(())
                },
            );
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(code = ?error.code, "the connection to an agent has ended");
            }
        });
        let peer = peer.await.map_err(|_| lost())?;
        let connection = Connection {
            child,
            peer,
            finish: Some(finish),
            driver,
            seen,
            name: agent.name(),
            redactor,
        };
        Ok((connection, events))
    }

    /// Asks the agent for something and waits for the answer.
    pub(super) fn ask(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> impl Future<Output = Result<Json, ProtocolError>> + Send + 'static {
        let peer = self.peer.clone();
        let message = UntypedMessage::new(method, params);
        async move { peer.send_request(message?).block_task().await }
    }

    /// Tells the agent something.
    pub(super) fn tell(&self, method: &str, params: impl Serialize) {
        // One that is gone is noticed by what it no longer says.
        let _ = UntypedMessage::new(method, params).and_then(|message| self.peer.send_notification(message));
    }

    /// Waits until the agent has ended and what it said has been read. Who holds its output open beyond that has nothing to say.
    pub(super) async fn silence(&self) {
        self.child.ended().await;
        tokio::time::sleep(GRACE).await;
    }

    /// How an agent has ended that says nothing any more, and `when`, with its last words.
    pub(super) async fn end_in_words(&mut self, when: &str) -> String {
        let how = match tokio::time::timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(error)) => format!("was lost ({error})"),
            Err(_) => "closed its output".to_owned(),
        };
        format!("the agent `{}` {how} {when}{}", self.name, self.last_words())
    }

    /// What it wrote as errors, else what it said that was no message, to be put behind a sentence.
    pub(super) fn last_words(&self) -> String {
        let stderr = self.child.stderr();
        let lines: Vec<&str> = stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        // The end says most.
        let last: Vec<String> = lines[lines.len().saturating_sub(3)..]
            .iter()
            .map(|line| self.redactor.one_line(line))
            .collect();
        let seen = self.seen();
        match (&seen.garbage, seen.too_long) {
            _ if !last.is_empty() => format!(": {}", last.join(" / ")),
            (Some(garbage), _) => format!("; it said: {garbage}"),
            (None, Some(bytes)) => format!("; it sent a message of {bytes} bytes, which is too long"),
            (None, None) => String::new(),
        }
    }

    /// Ends the agent with all that it started.
    pub(super) async fn close(&mut self, grace: Duration) {
        // Its input ends.
        self.finish = None;
        let _ = tokio::time::timeout(Duration::from_millis(200), &mut self.driver).await;
        self.driver.abort();
        let _ = self.child.stop(grace).await;
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The next line that is a message; none at the end.
async fn next_message(
    lines: &mut Lines<tokio::process::ChildStdout>,
    seen: &Mutex<Seen>,
    redactor: &Redactor,
) -> Option<String> {
    let seen = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match lines.next().await {
            Ok(Some(Line::Text(line))) if line.trim().is_empty() => {}
            Ok(Some(Line::Text(line))) => {
                // Some agents, and what they are started by, print a greeting first.
                let is_object = line.trim_start().starts_with('{');
                if is_object && serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok() {
                    return Some(line);
                }
                seen().garbage.get_or_insert_with(|| redactor.one_line(&line));
            }
            // Longer than anything that is needed of it.
            Ok(Some(Line::TooLong(bytes))) => {
                seen().too_long.get_or_insert(bytes);
            }
            Ok(None) | Err(_) => return None,
        }
    }
}
