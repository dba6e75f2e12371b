//! One session with an agent: from its start to the end of its turn.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
};
use agent_client_protocol::{Error as ProtocolError, ErrorCode};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use prose_model::{ErrorKind, Failure, Usage};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

use super::connection::{Connection, Event, is_gone};
use super::offer::Offer;
use super::own::is_own;
use super::permit::{self, Calls, ToolCall};
use super::preset::Agent;
use crate::child::Environment;
use crate::mcp::McpServer;
use crate::policy::Gate;
use crate::{CancelToken, Redactor, SessionSink, SessionUpdate, failure};

/// The version of the protocol that is spoken.
const VERSION: u64 = 1;
/// How long it has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(4);
/// When an agent can fall silent.
const NOT_READY: &str = "before it was ready";
const TURN_NOT_OVER: &str = "before its turn was over";

/// The model that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// As the program names it.
    pub(super) name: String,
    /// As configuration names it for this agent, if it does.
    pub(super) configured: Option<String>,
}

/// What to do.
pub(super) struct Job {
    pub(super) dir: PathBuf,
    /// Folders outside of it that are worked in, too.
    pub(super) more_dirs: Vec<PathBuf>,
    /// What it is told.
    pub(super) text: String,
    pub(super) model: Option<Wanted>,
    /// How long the agent may take until it is ready.
    pub(super) start_time: Duration,
    /// At most so many US dollars.
    pub(super) usd: Option<f64>,
    /// Beyond the protocol, for a new session.
    pub(super) meta: Option<Json>,
    /// The server with the session's own tools.
    pub(super) server: Option<McpServer>,
    /// Who is told.
    pub(super) sink: Option<Arc<dyn SessionSink>>,
    /// Who decides about other tools; none: there are none.
    pub(super) gate: Option<Arc<Gate>>,
}

/// How it ended well.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Turn {
    /// What it said last.
    pub(super) text: String,
    pub(super) usage: Usage,
    /// Tools that were refused.
    pub(super) refused: Vec<String>,
}

/// Why a turn did not end well.
enum Stop {
    /// It says so.
    Failed(Failure),
    /// The agent says nothing any more; at this point.
    Gone(&'static str),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// Runs it to its end. When the token is cancelled, or the future dropped, nothing of it is left.
pub(super) async fn run(
    agent: &Agent,
    program: &Path,
    environment: &Environment,
    redactor: &Redactor,
    job: Job,
    cancel: &CancelToken,
) -> Result<Turn, Failure> {
    let started = Connection::start(
        agent,
        program,
        environment,
        redactor.clone(),
        &job.dir,
        job.sink.as_ref(),
    )
    .await;
    let (mut connection, events) = started?;
    let id = OnceLock::new();
    let mut talk = Talk {
        agent,
        environment,
        redactor,
        job: &job,
        connection: &connection,
        cancel,
        id: &id,
        has_server: false,
        calls: Calls::new(redactor.clone()),
        said: Said::default(),
        usage: Usage::default(),
        refused: Vec::new(),
    };
    let ended = {
        let mut running = pin!(talk.run(events));
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                if let Some(id) = id.get() {
                    // It may have to end what it has begun, as a command or a request.
                    connection.tell("session/cancel", json!({"sessionId": id}));
                    let _ = tokio::time::timeout(GRACE, &mut running).await;
                }
                Err(failure(ErrorKind::Backend, "the session was stopped").into())
            }
            ended = &mut running => ended,
            () = connection.silence() => Err(Stop::Gone(match id.get() {
                Some(_) => TURN_NOT_OVER,
                None => NOT_READY,
            })),
        }
    };
    let usage = talk.usage;
    let turn = Turn {
        text: talk.said.last(),
        usage,
        refused: std::mem::take(&mut talk.refused),
    };
    let result = match ended {
        Ok(()) => Ok(turn),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Gone(when)) => Err(failure(ErrorKind::Backend, connection.end_in_words(when).await)),
    };
    // A turn that has ended leaves nothing that needs time.
    connection.close(GRACE).await;
    result.map_err(|mut failure| {
        if failure.usage == Usage::default() {
            failure.usage = usage;
        }
        failure
    })
}

/// What the agent has said.
#[derive(Debug, Default)]
struct Said {
    before: String,
    current: String,
}

impl Said {
    /// Something else has begun.
    fn pause(&mut self) {
        if !self.current.trim().is_empty() {
            self.before = std::mem::take(&mut self.current);
        }
    }

    /// What it said last.
    fn last(&mut self) -> String {
        self.pause();
        std::mem::take(&mut self.before)
    }
}

struct Talk<'a> {
    agent: &'a Agent,
    environment: &'a Environment,
    redactor: &'a Redactor,
    job: &'a Job,
    connection: &'a Connection,
    cancel: &'a CancelToken,
    id: &'a OnceLock<String>,
    /// Whether the agent was given the session's own tools.
    has_server: bool,
    calls: Calls,
    said: Said,
    usage: Usage,
    refused: Vec<String>,
}

impl Talk<'_> {
    async fn run(&mut self, mut events: mpsc::UnboundedReceiver<Event>) -> Result<(), Stop> {
        let start = self.job.start_time;
        let ready = tokio::time::timeout(start, self.begin()).await;
        let id = ready.map_err(|_| {
            let name = self.agent.name();
            failure(
                ErrorKind::Timeout,
                format!(
                    "the agent `{name}` was not ready after {} s (`connect_timeout`){}; it has to speak the Agent Client \
                     Protocol on its standard input and output",
                    start.as_secs(),
                    self.connection.last_words()
                ),
            )
        })??;
        let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": self.job.text}]});
        let mut answer = pin!(self.connection.ask("session/prompt", prompt));
        let mut questions = FuturesUnordered::new();
        let answer = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    if let Some((call, request, responder)) = self.note(&id, event)? {
                        let own = self.has_server && is_own(self.agent.reports(), &call, &request);
                        questions.push(decide(self.job, self.cancel, own, call, request, responder));
                    }
                }
                Some(refused) = questions.next(), if !questions.is_empty() => self.refused.extend(refused),
                answer = &mut answer => break answer,
            }
        };
        while let Ok(event) = events.try_recv() {
            self.note(&id, event)?;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_gone(&error) => return Err(Stop::Gone(TURN_NOT_OVER)),
            Err(error) => return Err(self.refused_by_agent("the turn", &error).into()),
        };
        self.account(&answer);
        self.finished(&answer)
    }

    /// Says hello and begins a session; its id.
    async fn begin(&mut self) -> Result<String, Stop> {
        let hello = json!({
            "protocolVersion": VERSION,
            "clientInfo": {"name": "prose", "title": "OpenProse", "version": env!("CARGO_PKG_VERSION")},
            // What it does with files and programs it does itself, and asks before.
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        });
        let hello = self.ask("initialize", hello).await?.map_err(|error| {
            // Another version of the protocol is found here, too.
            let name = self.agent.name();
            let message = format!(
                "the agent `{name}` can't be spoken to: {}",
                in_words(&error, self.redactor)
            );
            failure(ErrorKind::Backend, message)
        })?;
        let session = self.new_session(&hello).await?;
        let id = session["sessionId"].as_str().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| {
            let name = self.agent.name();
            failure(
                ErrorKind::Backend,
                format!("the agent `{name}` began a session without an id"),
            )
        })?;
        let _ = self.id.set(id.to_owned());
        self.choose_mode(id, &session).await?;
        let model = self.choose_model(id, &session).await?;
        if let Some(sink) = &self.job.sink {
            sink.started(None, model).await?;
        }
        Ok(id.to_owned())
    }

    /// Asks while nothing else is going on. The outer error is that the agent is gone.
    async fn ask(&self, method: &'static str, params: Json) -> Result<Result<Json, ProtocolError>, Stop> {
        match self.connection.ask(method, params).await {
            Err(error) if is_gone(&error) => Err(Stop::Gone(NOT_READY)),
            answer => Ok(answer),
        }
    }

    async fn new_session(&mut self, hello: &Json) -> Result<Json, Stop> {
        let job = self.job;
        // Every agent takes servers that it starts itself, unless it says otherwise.
        let takes_servers = hello["agentCapabilities"]["mcpCapabilities"]["stdio"] != false;
        let server = job.server.as_ref().filter(|_| takes_servers);
        self.has_server = server.is_some();
        let servers: Vec<Json> = server.into_iter().map(as_json).collect();
        let mut params = json!({"cwd": job.dir, "mcpServers": servers});
        let takes_more =
            !hello["agentCapabilities"]["sessionCapabilities"]["additionalDirectories"].is_null();
        if takes_more && !job.more_dirs.is_empty() {
            params["additionalDirectories"] = json!(job.more_dirs);
        }
        if let Some(meta) = &job.meta {
            params["_meta"] = meta.clone();
        }
        let mut begun = self.ask("session/new", params.clone()).await?;
        if let Err(error) = &begun
            && is_login(error)
        {
            self.log_in(hello, error).await?;
            begun = self.ask("session/new", params.clone()).await?;
        }
        if let Err(error) = &begun
            && self.has_server
            && !is_login(error)
        {
            // Its prompt says what to do without them.
            tracing::warn!(code = ?error.code, "an agent does not take a session's own tools, and goes without");
            self.has_server = false;
            params["mcpServers"] = json!([]);
            begun = self.ask("session/new", params).await?;
        }
        begun.map_err(|error| self.refused_by_agent("a session", &error).into())
    }

    /// Logs in by a key: what else the agent offers needs a person.
    async fn log_in(&self, hello: &Json, refused: &ProtocolError) -> Result<(), Stop> {
        let ways = hello["authMethods"].as_array().into_iter().flatten();
        let ways: Vec<String> = ways
            .filter_map(|way| way["id"].as_str().map(ToOwned::to_owned))
            .collect();
        let Some(way) = self.agent.key_login(self.environment, &ways) else {
            return Err(self.login_needed(refused).into());
        };
        match self.ask("authenticate", json!({"methodId": way})).await? {
            Ok(_) => Ok(()),
            Err(error) => Err(self.login_needed(&error).into()),
        }
    }

    async fn choose_mode(&self, id: &str, session: &Json) -> Result<(), Stop> {
        let Some(modes) = Offer::modes(session) else {
            return Ok(());
        };
        let Some(mode) = modes.first_of(self.agent.modes()) else {
            let current = modes.current.as_deref().unwrap_or("its own mode");
            self.notice(format!(
                "of the modes of the agent `{}` ({}) none is known in which it asks before it acts; it runs in `{}`",
                self.agent.name(),
                modes.in_words(),
                self.redactor.one_line(current)
            ));
            return Ok(());
        };
        let (method, params) = modes.choose(id, mode);
        let chosen = self.ask(method, params).await?;
        chosen.map_err(|error| self.refused_by_agent(&format!("the mode `{mode}`"), &error))?;
        Ok(())
    }

    /// Chooses the model that is wanted; the one that counts.
    async fn choose_model(&self, id: &str, session: &Json) -> Result<Option<String>, Stop> {
        let models = Offer::models(session);
        let current = models.as_ref().and_then(|models| models.current.clone());
        let Some(wanted) = &self.job.model else {
            return Ok(current);
        };
        let name = self.agent.name();
        let Some(models) = models else {
            self.notice(format!(
                "the agent `{name}` offers no choice of models: `{}` is left to it",
                wanted.name
            ));
            return Ok(None);
        };
        let asked = wanted.configured.as_deref().unwrap_or(&wanted.name);
        let Some(model) = models.find(asked) else {
            let offered = models.in_words();
            // The names that every program may use are words for a class of models; others mean one model.
            if wanted.configured.is_none() && super::CLASSES.contains(&&*wanted.name) {
                self.notice(format!(
                    "the agent `{name}` has no model `{}`, so that its own is used; `[models]` in prose.toml can name one of {offered}",
                    wanted.name
                ));
                return Ok(current);
            }
            return Err(failure(
                ErrorKind::Backend,
                format!("the agent `{name}` has no model `{asked}`; it offers {offered}"),
            )
            .into());
        };
        let (method, params) = models.choose(id, model);
        let chosen = self.ask(method, params).await?;
        chosen.map_err(|error| self.refused_by_agent(&format!("the model `{model}`"), &error))?;
        Ok(Some(model.to_owned()))
    }

    /// Takes in what the agent says; a question is given back.
    fn note(&mut self, session: &str, event: Event) -> Result<Option<Question>, Stop> {
        match event {
            Event::Permission(request, responder) => {
                let said = serde_json::to_value(&request.tool_call).unwrap_or_default();
                Ok(Some((self.calls.note(&said), request, responder)))
            }
            // Of sessions that it has begun by itself.
            Event::Update { session: other, .. } if other != session => Ok(None),
            Event::Update { update, .. } => self.update(&update).map(|()| None),
        }
    }

    fn update(&mut self, update: &Json) -> Result<(), Stop> {
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                if let Some(text) = update["content"]["text"].as_str() {
                    self.said.current.push_str(text);
                    self.tell(SessionUpdate::Text(text.to_owned()));
                }
            }
            "tool_call" => {
                self.said.pause();
                let call = self.calls.note(update);
                self.tell(SessionUpdate::Tool {
                    name: call.name(),
                    detail: call.detail(),
                });
            }
            "tool_call_update" => match update["status"].as_str() {
                Some("completed" | "failed") => self.calls.forget(update),
                _ => {
                    self.calls.note(update);
                }
            },
            "usage_update" => {
                let cost = &update["cost"];
                let is_usd = cost["currency"]
                    .as_str()
                    .is_some_and(|name| name.eq_ignore_ascii_case("usd"));
                if let Some(usd) = cost["amount"].as_f64().filter(|usd| is_usd && *usd >= 0.0) {
                    self.usage.cost_usd = Some(usd);
                    self.tell(SessionUpdate::Usage(self.usage));
                    if let Some(limit) = self.job.usd.filter(|limit| usd > *limit) {
                        return Err(failure(
                            ErrorKind::Budget,
                            format!(
                                "the session was stopped at ${usd:.4}: the budget has ${limit:.4} left for it"
                            ),
                        )
                        .into());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes in what the turn has used, if the agent says so.
    fn account(&mut self, answer: &Json) {
        let usage = &answer["usage"];
        let quota = &answer["_meta"]["quota"]["token_count"];
        let count = |value: &Json| value.as_u64();
        if let Some(output) = count(&usage["outputTokens"]) {
            let parts = ["inputTokens", "cachedReadTokens", "cachedWriteTokens"];
            let sum = || {
                parts
                    .iter()
                    .filter_map(|part| count(&usage[*part]))
                    .fold(0, u64::saturating_add)
            };
            // Agents differ in whether what was cached is part of the input; the total says it.
            let input = count(&usage["totalTokens"]).and_then(|total| total.checked_sub(output));
            self.usage.input_tokens = input.unwrap_or_else(sum);
            self.usage.output_tokens = output;
        } else if let (Some(input), Some(output)) =
            (count(&quota["input_tokens"]), count(&quota["output_tokens"]))
        {
            self.usage.input_tokens = input;
            self.usage.output_tokens = output;
        } else {
            return;
        }
        self.tell(SessionUpdate::Usage(self.usage));
    }

    /// Reads why the turn has ended.
    fn finished(&self, answer: &Json) -> Result<(), Stop> {
        let name = self.agent.name();
        let message = match answer["stopReason"].as_str().unwrap_or_default() {
            "end_turn" => return Ok(()),
            "max_tokens" => {
                "the answer was cut at the model's limit of tokens; ask for less at once, or for parts"
                    .to_owned()
            }
            "max_turn_requests" => format!(
                "the agent `{name}` stopped: it has asked its model as often as it may in one turn; ask for less at once"
            ),
            "refusal" => format!("the agent `{name}` declined to go on"),
            // Some end their turn at a no.
            "cancelled" if !self.refused.is_empty() => {
                let refused = self.refused.join(", ");
                return Err(failure(
                    ErrorKind::Permission,
                    format!("the agent `{name}` ended its turn when it was refused: {refused}"),
                )
                .into());
            }
            "cancelled" => {
                format!("the agent `{name}` says that its turn was cancelled, though nobody did")
            }
            other => format!(
                "the agent `{name}` stopped for a reason that is not known: {}",
                self.redactor.one_line(other)
            ),
        };
        Err(failure(ErrorKind::Backend, message).into())
    }

    fn refused_by_agent(&self, what: &str, error: &ProtocolError) -> Failure {
        if is_login(error) {
            return self.login_needed(error);
        }
        failure(
            ErrorKind::Backend,
            format!(
                "the agent `{}` refuses {what}: {}",
                self.agent.name(),
                in_words(error, self.redactor)
            ),
        )
    }

    fn login_needed(&self, error: &ProtocolError) -> Failure {
        failure(
            ErrorKind::Backend,
            format!(
                "the agent `{}` is not logged in ({}): {}",
                self.agent.name(),
                in_words(error, self.redactor),
                self.agent.login()
            ),
        )
    }

    fn tell(&self, update: SessionUpdate) {
        if let Some(sink) = &self.job.sink {
            sink.update(update);
        }
    }

    fn notice(&self, message: String) {
        if let Some(sink) = &self.job.sink {
            sink.notice(message);
        }
    }
}

/// A question about a permission.
type Question = (
    ToolCall,
    Box<RequestPermissionRequest>,
    Responder<RequestPermissionResponse>,
);

/// Decides and answers; what was refused is given back. What is the session's `own` tool is permitted.
async fn decide(
    job: &Job,
    cancel: &CancelToken,
    own: bool,
    call: ToolCall,
    request: Box<RequestPermissionRequest>,
    responder: Responder<RequestPermissionResponse>,
) -> Option<String> {
    let permission = async {
        match own {
            true => Ok(()),
            false => permit::permit(job.gate.as_deref(), &job.dir, &call).await,
        }
    };
    let permitted = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            let _ = responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
            return None;
        }
        permitted = permission => permitted,
    };
    let outcome = permit::outcome(&request.options, permitted.is_ok());
    // One that is gone needs no answer.
    let _ = responder.respond(RequestPermissionResponse::new(outcome));
    let why = permitted.err()?;
    tracing::debug!(tool = call.name(), why, "refused");
    Some(format!("{} ({why})", call.name()))
}

/// A server as the protocol has it.
fn as_json(server: &McpServer) -> Json {
    let variables = server.variables.iter();
    let variables: Vec<Json> = variables
        .map(|(name, value)| json!({"name": name, "value": value.expose()}))
        .collect();
    json!({"name": server.name, "command": server.command, "args": server.args, "env": variables})
}

fn is_login(error: &ProtocolError) -> bool {
    error.code == ErrorCode::AUTH_REQUIRED
}

/// What an error of the protocol says.
fn in_words(error: &ProtocolError, redactor: &Redactor) -> String {
    let quoted = |text: &str| redactor.one_line(text);
    let data = error.data.as_ref();
    let more = data.and_then(|data| {
        let inner = ["details", "message", "error"]
            .iter()
            .find_map(|key| data[*key].as_str());
        inner.or_else(|| data.as_str())
    });
    match more {
        Some(more) if !error.message.contains(more) => {
            format!("{}: {}", quoted(&error.message), quoted(more))
        }
        _ => quoted(&error.message),
    }
}
