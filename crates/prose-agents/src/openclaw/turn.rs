//! One session at a gateway: from its creation, or from where an earlier process left it, to its answer.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use prose_model::{ErrorKind, Failure};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::{self, Past, Turn};
use super::permit::{self, Mode, Want};
use super::socket::{Address, Answer, Answers, Event, Link, NoLink, Trouble};
use crate::acp::CLASSES;
use crate::acp::offer::Choices;
use crate::policy::Gate;
use crate::tools::LIFE;
use crate::{CancelToken, SessionSink, SessionUpdate, failure};

/// How long a stopped session may take to end.
const GRACE: Duration = Duration::from_secs(4);
/// How long a gateway is waited for that was there and is gone: it may be starting anew.
const ABSENCE: Duration = Duration::from_secs(120);
/// The longest wait between two tries to reach it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long the gateway is asked to wait for the end of a run at a time.
const WAIT: Duration = Duration::from_secs(60);
/// The same for one that it does not know to be running, and how often.
const SHORT_WAIT: Duration = Duration::from_millis(500);
const SHORT_WAITS: u32 = 3;

/// The model that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// As the program names it.
    pub(super) name: String,
    /// As configuration names it for the gateway, if it does.
    pub(super) configured: Option<String>,
}

/// What to do.
pub(super) struct Job {
    /// The session's key, where an earlier process has made it.
    pub(super) session: Option<String>,
    /// The run's id, by which it is run once only; a part of the session's key.
    pub(super) run: String,
    pub(super) dir: PathBuf,
    pub(super) system: String,
    pub(super) message: String,
    pub(super) model: Option<Wanted>,
    pub(super) mode: Mode,
    /// How long it may take, in seconds.
    pub(super) seconds: u64,
    /// A bare question to the model: no tools, no prompt of the gateway's own, and nothing is kept.
    pub(super) bare: bool,
    /// Who is told.
    pub(super) sink: Option<Arc<dyn SessionSink>>,
    /// Who decides about what it does; none: it does nothing.
    pub(super) gate: Option<Arc<Gate>>,
}

/// Why a session did not end well.
#[derive(Debug)]
pub(super) enum Stop {
    /// The gateway isn't there, in words; nothing was begun.
    Nobody(String),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// Runs a session to its end. When the token is cancelled, or the future dropped, it is stopped at the gateway.
pub(super) async fn run(address: &Address, job: &Job, cancel: &CancelToken) -> Result<Turn, Stop> {
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(stopped().into()),
        opened = Link::open(address) => opened,
    };
    let (link, events) = opened.map_err(|no| match no {
        NoLink::Nobody(why) => Stop::Nobody(why),
        NoLink::Refused(failure) => Stop::Failed(failure),
    })?;
    let mut talk = Talk::new(address, job, cancel, link, events);
    let ended = talk.begin().await;
    Ok(talk.close(ended).await?)
}

/// Takes up a session that an earlier process began; none: the gateway knows nothing of it.
pub(super) async fn take_up(
    address: &Address,
    job: &Job,
    cancel: &CancelToken,
) -> Option<Result<Turn, Failure>> {
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => return Some(Err(stopped())),
        opened = Link::open(address) => opened,
    };
    let (link, events) = match opened {
        Ok(opened) => opened,
        Err(NoLink::Nobody(_)) => return None,
        Err(NoLink::Refused(failure)) => return Some(Err(failure)),
    };
    let mut talk = Talk::new(address, job, cancel, link, events);
    talk.arm();
    match talk.follow(Source::Transcript).await {
        Ok(None) => {
            talk.link.set_farewell(None);
            None
        }
        Ok(Some(turn)) => Some(talk.close(Ok(turn)).await),
        Err(failure) => Some(talk.close(Err(failure)).await),
    }
}

pub(super) fn stopped() -> Failure {
    failure(ErrorKind::Backend, "the session was stopped")
}

fn refused(what: &str, message: &str) -> Failure {
    failure(
        ErrorKind::Backend,
        format!("the gateway refuses {what}: {message}"),
    )
}

/// Where the end is waited for.
enum Source {
    /// The answers to the request that began it.
    Run(Answers),
    /// The session's transcript, and whether the run has ended.
    Transcript,
}

/// Something that was decided about.
enum Decided {
    /// A question of the gateway: what the answer is, and to what.
    Approval {
        method: &'static str,
        id: String,
        what: String,
        permitted: Result<(), String>,
    },
    /// What a tool does already.
    Tool {
        call: String,
        permitted: Result<(), String>,
    },
}

/// A tool call that goes on.
struct Call {
    name: String,
    /// Why it is not permitted, once that is known.
    refused: Option<String>,
    /// Whether that is still being decided.
    open: bool,
    /// Whether it did what it was to do, once it has ended.
    done: Option<bool>,
}

struct Talk<'a> {
    address: &'a Address,
    job: &'a Job,
    cancel: &'a CancelToken,
    link: Link,
    events: mpsc::UnboundedReceiver<Event>,
    /// The agent of the gateway that does it.
    agent: String,
    /// The session's key.
    session: String,
    /// Decisions under way.
    deciding: FuturesUnordered<BoxFuture<'a, Decided>>,
    /// Questions that are being decided.
    asked: BTreeSet<String>,
    calls: HashMap<String, Call>,
    /// Whether the agent has begun: it may have to wait for others first.
    begun: bool,
    refused: Vec<String>,
}

impl<'a> Talk<'a> {
    fn new(
        address: &'a Address,
        job: &'a Job,
        cancel: &'a CancelToken,
        link: Link,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Talk<'a> {
        let agent = link.agent.clone();
        let session = job.session.clone();
        Talk {
            address,
            job,
            cancel,
            session: session.unwrap_or_else(|| format!("agent:{agent}:{}", job.run)),
            agent,
            link,
            events,
            deciding: FuturesUnordered::new(),
            asked: BTreeSet::new(),
            calls: HashMap::new(),
            begun: false,
            refused: Vec::new(),
        }
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

    /// What stops the session if nobody waits for it any more.
    fn abortion(&self) -> (&'static str, Json) {
        (
            "chat.abort",
            json!({"sessionKey": self.session, "runId": self.job.run}),
        )
    }

    /// From now on the run is stopped when this is dropped.
    fn arm(&self) {
        let (method, params) = self.abortion();
        self.link.set_farewell(Some((method, params)));
    }

    /// Ends the talk: what runs is stopped, what has ended is left.
    async fn close(mut self, mut ended: Result<Turn, Failure>) -> Result<Turn, Failure> {
        match &mut ended {
            Ok(turn) => {
                self.link.set_farewell(None);
                turn.refused = std::mem::take(&mut self.refused);
                self.tell(SessionUpdate::Usage(turn.usage));
                if let Some(warning) = turn.warning() {
                    self.notice(warning);
                }
            }
            Err(_) => self.abort().await,
        }
        if self.job.bare {
            // A question leaves nothing behind.
            let gone = json!({"key": self.session, "deleteTranscript": true});
            let _ = self.link.ask("sessions.delete", gone).await;
        }
        ended
    }

    /// Stops the run, if it goes on, and waits a moment for it to be over.
    async fn abort(&mut self) {
        self.link.set_farewell(None);
        let (method, params) = self.abortion();
        let wait = json!({"runId": self.job.run, "timeoutMs": GRACE.as_millis()});
        let stopping = async {
            let aborted = self.link.ask(method, params).await;
            if aborted.is_ok_and(|answer| answer["aborted"] == true) {
                let _ = self.link.ask("agent.wait", wait).await;
            }
        };
        // One that can't be reached stops by its own time limit.
        let _ = tokio::time::timeout(GRACE, stopping).await;
    }

    /// Begins the session and its run.
    async fn begin(&mut self) -> Result<Turn, Failure> {
        let (job, cancel) = (self.job, self.cancel);
        let model = match cancel.run_until_cancelled(self.create()).await {
            Some(model) => model?,
            None => return Err(stopped()),
        };
        if let Some(sink) = &job.sink {
            // IMPORTANT: on record before anything runs. If it never gets to run, the transcript is empty and it is begun anew.
            sink.started(Some(json!({"session": self.session, "run": job.run})), model)
                .await?;
        }
        let mut params = json!({
            "agentId": self.agent,
            "sessionKey": self.session,
            "message": job.message,
            "deliver": false,
            "timeout": job.seconds,
            "idempotencyKey": job.run,
            "disableMessageTool": true,
        });
        if !job.system.is_empty() {
            params["extraSystemPrompt"] = job.system.as_str().into();
        }
        if job.bare {
            params["modelRun"] = true.into();
            params["promptMode"] = "none".into();
        }
        let answers = self.link.ask_long("agent", params);
        self.arm();
        let ended = self.follow(Source::Run(answers)).await?;
        ended.ok_or_else(|| {
            failure(
                ErrorKind::Backend,
                "the gateway does not know the session any more; it may have been started anew",
            )
        })
    }

    /// Makes the session; the model that counts.
    async fn create(&mut self) -> Result<Option<String>, Failure> {
        let job = self.job;
        let model = self.model().await?;
        let mut params = json!({
            "key": self.session,
            "agentId": self.agent,
            "permissionMode": job.mode.word(),
            // The gateway's own assistant is not told of it, who would look into it.
            "visibility": "draft",
            "cwd": job.dir,
        });
        if let Some(model) = &model {
            params["model"] = model.as_str().into();
        }
        let created = self.ask("sessions.create", params).await;
        created.map_err(|trouble| self.in_words("a session", trouble))?;
        Ok(model)
    }

    /// The gateway's name for the model that is wanted; none: its own choice.
    async fn model(&mut self) -> Result<Option<String>, Failure> {
        let Some(wanted) = &self.job.model else {
            return Ok(None);
        };
        if let Some(configured) = &wanted.configured {
            return Ok(Some(configured.clone()));
        }
        let list = self.ask("models.list", json!({"view": "configured"})).await;
        let list = list.map_err(|trouble| self.in_words("its list of models", trouble))?;
        let models = offered(&list);
        if let Some(found) = models.find(&wanted.name) {
            return Ok(Some(found.to_owned()));
        }
        let offered = models.in_words();
        if CLASSES.contains(&&*wanted.name) {
            self.notice(format!(
                "the gateway has no model `{}`, so that its own is used; `[models]` in prose.toml can name one of {offered}",
                wanted.name
            ));
            return Ok(None);
        }
        Err(failure(
            ErrorKind::Backend,
            format!("the gateway has no model `{}`; it offers {offered}", wanted.name),
        ))
    }

    async fn ask(&mut self, method: &str, params: Json) -> Result<Json, Trouble> {
        self.link.ask(method, params).await
    }

    fn in_words(&self, what: &str, trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Refused { code, message } => {
                let message = self.address.redactor.one_line(&message);
                refused(what, if message.is_empty() { &code } else { &message })
            }
            Trouble::Lost => failure(
                ErrorKind::Backend,
                format!(
                    "the connection to {} was lost when {what} was asked for",
                    self.address.shown()
                ),
            ),
        }
    }

    /// Follows the run to its end; none: the gateway knows nothing of it.
    async fn follow(&mut self, mut source: Source) -> Result<Option<Turn>, Failure> {
        loop {
            let ended = match &mut source {
                Source::Run(answers) => self.listen(answers).await,
                Source::Transcript => self.look().await,
            };
            match ended {
                Ok(Some(Heard::Ended(turn))) => return Ok(Some(turn)),
                Ok(Some(Heard::Unknown)) => return Ok(None),
                // It runs already, which an earlier connection began.
                Ok(Some(Heard::Elsewhere)) => source = Source::Transcript,
                Ok(None) => {
                    self.come_back().await?;
                    source = Source::Transcript;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Listens until the run has ended; none: the connection is gone.
    async fn listen(&mut self, answers: &mut Answers) -> Result<Option<Heard>, Failure> {
        loop {
            let Some(answer) = self.next_answer(answers).await? else {
                return Ok(None);
            };
            let status = answer.payload["status"].as_str().unwrap_or_default();
            match (status, &answer.error) {
                ("accepted", None) => {}
                ("in_flight", None) => return Ok(Some(Heard::Elsewhere)),
                (_, Some((code, message))) => return Err(self.failed(status, code, message)),
                _ => {
                    self.settle().await?;
                    let turn = answer::turn(&answer.payload, &self.address.redactor)?;
                    return Ok(Some(Heard::Ended(turn)));
                }
            }
        }
    }

    fn failed(&self, status: &str, code: &str, message: &str) -> Failure {
        let redactor = &self.address.redactor;
        match status {
            // It was not even begun.
            "" => {
                let message = redactor.one_line(message);
                refused(
                    "to run the session",
                    if message.is_empty() { code } else { &message },
                )
            }
            _ => failure(ErrorKind::Backend, answer::failed_with(message, redactor)),
        }
    }

    /// Looks into the transcript, and waits, until the run has ended; none: the connection is gone.
    async fn look(&mut self) -> Result<Option<Heard>, Failure> {
        self.ask_what_is_open().await?;
        let mut short = 0;
        loop {
            let history = json!({"sessionKey": self.session, "limit": 1000});
            let mut answers = self.link.ask_long("chat.history", history);
            let Some(answer) = self.next_answer(&mut answers).await? else {
                return Ok(None);
            };
            let past = match &answer.error {
                None => answer::past(&answer.payload, &self.address.redactor),
                // It knows no such session.
                Some(_) => Past::Nothing,
            };
            let active = match past {
                Past::Nothing if short >= 1 => return Ok(Some(Heard::Unknown)),
                Past::Nothing => None,
                Past::Over(ended) => return ended.map(|turn| Some(Heard::Ended(turn))),
                Past::Open { active } => active,
            };
            let time = match active {
                Some(true) => WAIT,
                _ => SHORT_WAIT,
            };
            let wait = json!({"runId": self.job.run, "timeoutMs": time.as_millis()});
            let mut answers = self.link.ask_long("agent.wait", wait);
            let Some(answer) = self.next_answer(&mut answers).await? else {
                return Ok(None);
            };
            let ended = &answer.payload;
            if ended["status"] == "error" {
                let said = ended["error"].as_str().unwrap_or_default();
                let message = answer::failed_with(said, &self.address.redactor);
                return Err(failure(ErrorKind::Backend, message));
            }
            if ended["status"] == "timeout" && !ended["endedAt"].is_null() {
                answer::turn(ended, &self.address.redactor)?;
            }
            if active != Some(true) {
                short += 1;
                if short > SHORT_WAITS {
                    return Err(failure(
                        ErrorKind::Backend,
                        "the session broke off at the gateway, which may have been started anew",
                    ));
                }
            }
        }
    }

    /// Takes up the questions that were asked while nobody listened.
    async fn ask_what_is_open(&mut self) -> Result<(), Failure> {
        for (event, method) in [
            ("exec.approval.requested", "exec.approval.list"),
            ("plugin.approval.requested", "plugin.approval.list"),
        ] {
            // An older gateway has no such list; then nothing is known to be open.
            let Ok(list) = self.ask(method, json!({})).await else {
                continue;
            };
            let entries = list.as_array().or_else(|| list["approvals"].as_array()).cloned();
            for payload in entries.into_iter().flatten() {
                self.note(Event {
                    name: event.to_owned(),
                    payload,
                });
            }
        }
        Ok(())
    }

    /// The next answer; what else happens meanwhile is dealt with. None: the connection is gone.
    async fn next_answer(&mut self, answers: &mut Answers) -> Result<Option<Answer>, Failure> {
        let mut signs = tokio::time::interval(LIFE);
        let mut listens = true;
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(stopped()),
                event = self.events.recv(), if listens => match event {
                    Some(event) => self.note(event),
                    None => listens = false,
                },
                Some(decided) = self.deciding.next(), if !self.deciding.is_empty() => self.decided(decided).await?,
                answer = answers.recv() => return Ok(answer),
                // Tools, and others that come first, have limits of the gateway's own.
                _ = signs.tick(), if !self.begun || !self.calls.is_empty() => {
                    if let Some(sink) = &self.job.sink {
                        sink.alive();
                    }
                }
            }
        }
    }

    /// Waits for what is still being decided about tools that are done.
    async fn settle(&mut self) -> Result<(), Failure> {
        while let Ok(event) = self.events.try_recv() {
            self.note(event);
        }
        while !self.deciding.is_empty() {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(stopped()),
                decided = self.deciding.next() => match decided {
                    Some(decided) => self.decided(decided).await?,
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Connects anew, and waits for a gateway that is not there.
    async fn come_back(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + ABSENCE;
        let mut pause = Duration::from_millis(100);
        tracing::debug!(session = self.session, "the connection to the gateway was lost");
        loop {
            let opened = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(stopped()),
                opened = Link::open(self.address) => opened,
            };
            match opened {
                Ok((link, events)) => {
                    self.link = link;
                    self.events = events;
                    // What is being asked stays asked; of tools nothing is known any more.
                    self.calls.clear();
                    self.arm();
                    return Ok(());
                }
                Err(NoLink::Refused(failure)) => return Err(failure),
                Err(NoLink::Nobody(why)) if Instant::now() + pause > until => {
                    return Err(failure(
                        ErrorKind::Backend,
                        format!("the connection to the gateway was lost, and does not come back: {why}"),
                    ));
                }
                Err(NoLink::Nobody(_)) => {}
            }
            if let Some(sink) = &self.job.sink {
                sink.alive();
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(stopped()),
                () = tokio::time::sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes in what the gateway says of this session.
    fn note(&mut self, mut event: Event) {
        let payload = &mut event.payload;
        match event.name.as_str() {
            "agent" if payload["runId"] == self.job.run.as_str() => {
                let data = payload["data"].take();
                match payload["stream"].as_str().unwrap_or_default() {
                    "lifecycle" => self.begun = true,
                    "assistant" => {
                        self.begun = true;
                        if let Some(text) = data["delta"].as_str().filter(|text| !text.is_empty()) {
                            self.tell(SessionUpdate::Text(text.to_owned()));
                        }
                    }
                    "tool" => self.tool(&data),
                    "usage" => self.tell(SessionUpdate::Usage(answer::so_far(&data))),
                    _ => {}
                }
            }
            "exec.approval.requested" | "plugin.approval.requested" => {
                let request = payload["request"].take();
                if request["sessionKey"] == self.session.as_str()
                    && let Some(id) = payload["id"].as_str()
                    && self.asked.insert(id.to_owned())
                {
                    let is_exec = event.name.starts_with("exec");
                    self.approval(is_exec, id.to_owned(), request);
                }
            }
            _ => {}
        }
    }

    /// Has somebody decide about what the gateway asks.
    fn approval(&mut self, is_exec: bool, id: String, request: Json) {
        let gate = self.job.gate.clone();
        let redactor = self.address.redactor.clone();
        self.deciding.push(Box::pin(async move {
            let (method, permitted) = match is_exec {
                true => (
                    "exec.approval.resolve",
                    permit::command(gate.as_deref(), &request).await,
                ),
                false => (
                    "plugin.approval.resolve",
                    permit::plugin(gate.as_deref(), &request, &redactor).await,
                ),
            };
            let what = ["command", "title"].iter().find_map(|key| request[*key].as_str());
            Decided::Approval {
                method,
                id,
                what: redactor.shown(what.unwrap_or_default(), 200),
                permitted,
            }
        }));
    }

    /// Takes in what is said about a tool.
    fn tool(&mut self, data: &Json) {
        let id = data["toolCallId"].as_str().unwrap_or_default().to_owned();
        match data["phase"].as_str().unwrap_or_default() {
            "start" => {
                let called = data["name"].as_str().unwrap_or("tool");
                let name = self.address.redactor.shown(called, 60);
                self.tell(SessionUpdate::Tool {
                    name: name.clone(),
                    detail: permit::detail(&data["args"], &self.address.redactor),
                });
                let wants = Want::of(called, &data["args"]);
                let mut call = Call {
                    name: name.clone(),
                    refused: None,
                    open: false,
                    done: None,
                };
                if let Some(gate) = self.job.gate.clone().filter(|_| !wants.is_empty()) {
                    call.open = true;
                    let call = id.clone();
                    self.deciding.push(Box::pin(async move {
                        let permitted = permit::pass(&gate, &name, &wants).await;
                        Decided::Tool { call, permitted }
                    }));
                }
                self.calls.insert(id, call);
            }
            "result" | "end" => {
                if let Some(call) = self.calls.get_mut(&id) {
                    call.done = Some(data["isError"] != true);
                    if !call.open && call.refused.is_none() {
                        self.calls.remove(&id);
                    } else if call.refused.is_some() {
                        // It was refused before it had ended.
                        let call = id;
                        self.deciding.push(Box::pin(async move {
                            Decided::Tool {
                                call,
                                permitted: Ok(()),
                            }
                        }));
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes in a decision.
    async fn decided(&mut self, decided: Decided) -> Result<(), Failure> {
        match decided {
            Decided::Approval {
                method,
                id,
                what,
                permitted,
            } => {
                self.asked.remove(&id);
                let decision = if permitted.is_ok() { "allow-once" } else { "deny" };
                if let Err(why) = permitted {
                    tracing::debug!(what, why, "refused");
                    self.refused.push(format!("{what} ({why})"));
                }
                // One that has expired, or that somebody else has answered, needs no answer.
                let answers = self
                    .link
                    .ask_long(method, json!({"id": id, "decision": decision}));
                drop(answers);
                Ok(())
            }
            Decided::Tool { call: id, permitted } => {
                let Some(call) = self.calls.get_mut(&id) else {
                    return Ok(());
                };
                call.open = false;
                if let Err(why) = permitted {
                    call.refused = Some(why);
                }
                match (&call.refused, call.done) {
                    // What it did can't be undone, and the agent must not go on with what it has learned by it.
                    (Some(why), Some(true)) => Err(failure(
                        ErrorKind::Permission,
                        format!(
                            "the session was stopped: the gateway let `{}` do what is not permitted ({why}); what its agents may \
                             use is said by `tools` in its openclaw.json",
                            call.name
                        ),
                    )),
                    (Some(why), Some(false)) => {
                        self.refused.push(format!("{} ({why})", call.name));
                        self.calls.remove(&id);
                        Ok(())
                    }
                    (None, Some(_)) => {
                        self.calls.remove(&id);
                        Ok(())
                    }
                    (_, None) => Ok(()),
                }
            }
        }
    }
}

/// The models of a list, by the ids that the gateway takes.
fn offered(list: &Json) -> Choices {
    let models = list["models"].as_array().into_iter().flatten();
    Choices::new(models.map(|model| {
        let text = |key: &str| model[key].as_str().unwrap_or_default();
        let id = match text("provider") {
            "" => text("id").to_owned(),
            provider => format!("{provider}/{}", text("id")),
        };
        let name = model["alias"].as_str().unwrap_or(text("name"));
        (id, name.to_owned())
    }))
}

/// What was heard of the run.
enum Heard {
    Ended(Turn),
    /// It goes on, and its end is told elsewhere.
    Elsewhere,
    /// The gateway knows nothing of it.
    Unknown,
}
