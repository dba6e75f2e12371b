//! The `openclaw` backend: a session is a session of an OpenClaw gateway, which runs the agent with tools of its own.
//!
//! The gateway is spoken to over its WebSocket. A session's run goes on when the connection breaks or this process ends, and
//! its answer is picked up later: both ask for it by the same id. What needs an approval is answered by the session's
//! [`Policy`]; what the gateway lets its agents do unasked is watched. Where no gateway is, a session is one turn of OpenClaw's
//! command line.

mod answer;
mod exec;
mod permit;
mod socket;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prose_model::backend::BackendSpec;
use prose_model::{ErrorKind, Failure};
use sha2::{Digest as _, Sha256};

use crate::acp::{DEFAULT_MODEL, JUDGE_MODEL, JUDGE_TIME};
use crate::api::{keeps_secrets, unsafe_address};
use crate::detect::{KeyNeed, Needs, ProgramNeed, meanings};
use crate::judging::{Answer, Asker, ModelJudge, Question};
use crate::policy::{Gate, Policy};
use crate::reply::{Said, reply};
use crate::{
    Backend, BackendContext, BackendError, BackendFactory, CancelToken, Capabilities, Delivery, Looked,
    Redactor, Secret, SessionBackend, SessionReply, SessionSpawn, failure,
};
use exec::Cli;
use permit::Mode;
use socket::Address;
use turn::{Job, Stop, Wanted};

const KIND: &str = "openclaw";
/// Where a gateway is that nobody has moved.
const URL: &str = "ws://127.0.0.1:18789";
/// The variable that holds its token.
const TOKEN: &str = "OPENCLAW_GATEWAY_TOKEN";
pub(crate) const SETUP: &str = "install OpenClaw (`npm install -g openclaw`), start its gateway (`openclaw gateway run`) and set \
                                OPENCLAW_GATEWAY_TOKEN to the `gateway.auth.token` of its openclaw.json";
/// How long the gateway may take until it lets us in.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// The time limit of a session that has none, in seconds: one that is left alone ends sometime.
const LONGEST: u64 = 24 * 60 * 60;

/// Makes [`OpenClaw`].
#[derive(Debug, Clone, Copy)]
pub struct OpenClawFactory;

impl BackendFactory for OpenClawFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn look(&self, context: BackendContext<'_>) -> Option<Looked> {
        let name = token_name(context.spec);
        Some(Looked {
            what: format!("the token of a gateway in {name}"),
            found: context.variables.get(name).is_some(),
        })
    }

    fn setup(&self) -> &'static str {
        SETUP
    }

    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let (spec, variables) = (context.spec, context.variables);
        let cli = Cli::find(spec, variables).filter(|_| spec.base_url.is_none());
        Needs {
            // It is looked at where it can take the gateway's place.
            program: cli.as_ref().map(|cli| ProgramNeed {
                command: cli.program().to_owned(),
                version: Some(vec!["--version".to_owned()]),
                oldest: None,
            }),
            key: Some(KeyNeed {
                variable: token_name(spec).to_owned(),
                required: needs_token(spec) && cli.is_none(),
            }),
            base_url: Some(spec.base_url.as_deref().unwrap_or(URL).to_owned()),
            models: meanings(spec, |_| None),
            ..Needs::default()
        }
    }

    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let (spec, variables) = (context.spec, context.variables);
        let unusable = |reason: String| BackendError::Unusable {
            name: spec.name.clone(),
            reason,
            setup: SETUP.to_owned(),
        };
        let url = spec.base_url.as_deref().unwrap_or(URL);
        let url = socket_url(url).ok_or_else(|| {
            unusable("its base_url has to be an address such as ws://127.0.0.1:18789".to_owned())
        })?;
        let name = token_name(spec);
        // A token of the usual name is for the usual address, and not sent to another one.
        let token = match spec.base_url.is_none() || spec.api_key_env.is_some() {
            true => variables.get(name),
            false => None,
        };
        // Of a gateway elsewhere it is no substitute.
        let cli = match spec.base_url {
            None => Cli::find(spec, variables),
            Some(_) => None,
        };
        if token.is_none() && needs_token(spec) && cli.is_none() {
            return Err(unusable(format!("there is no token in {name}")));
        }
        // What is asked about is the way, and not what goes over it.
        if token.is_some() && !keeps_secrets(&url.replacen("ws", "http", 1)) {
            return Err(unusable(unsafe_address(name)));
        }
        let redactor = Redactor::for_backend(variables, token.map(|token| (name, token)));
        let openclaw = Arc::new(OpenClaw {
            spec: spec.clone(),
            address: Address {
                url,
                token: token.map(Secret::new),
                token_name: name.to_owned(),
                time: spec.waits.connect.unwrap_or(CONNECT_TIME),
                redactor,
            },
            cli,
        });
        Ok(Backend {
            name: spec.name.clone(),
            simulated: false,
            sessions: openclaw.clone(),
            judge: Arc::new(ModelJudge::new(OpenClawJudge(openclaw))),
            inputs: None,
            observer: None,
            mock_text: None,
        })
    }
}

fn token_name(spec: &BackendSpec) -> &str {
    spec.api_key_env.as_deref().unwrap_or(TOKEN)
}

/// Whether nothing works without a token: a gateway at an address of one's own may want none.
fn needs_token(spec: &BackendSpec) -> bool {
    spec.base_url.is_none() || spec.api_key_env.is_some()
}

/// The address of a gateway's socket; people know it by its web page, too.
fn socket_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "ws" | "http" => "ws",
        "wss" | "https" => "wss",
        _ => return None,
    };
    let url = format!("{scheme}://{rest}");
    let parsed = reqwest::Url::parse(&url).ok()?;
    parsed.has_host().then_some(url)
}

/// A gateway of OpenClaw.
#[derive(Debug)]
pub struct OpenClaw {
    spec: BackendSpec,
    address: Address,
    /// What a session can be run by where no gateway is.
    cli: Option<Cli>,
}

impl OpenClaw {
    /// What is meant by a program's name for a model.
    fn model(&self, name: &str) -> Wanted {
        Wanted {
            name: name.to_owned(),
            configured: self.spec.models.get(name).cloned(),
        }
    }

    /// The model of configuration for a purpose, if it names one.
    fn model_for(&self, purpose: &str) -> Option<Wanted> {
        self.spec
            .models
            .contains_key(purpose)
            .then(|| self.model(purpose))
    }

    fn job(&self, session: &SessionSpawn) -> Job {
        let policy = Policy::for_session(session);
        let model = session.request.model.as_deref();
        let mode = Mode::of(&session.request.permissions);
        let limit = session.timeout.map_or(LONGEST, |limit| limit.as_secs() + 1);
        Job {
            session: None,
            run: run_id(session),
            dir: session.work_dir.clone(),
            system: system_text(&session.prompt.system, mode),
            message: told(&session.prompt.user),
            model: model
                .map(|name| self.model(name))
                .or_else(|| self.model_for(DEFAULT_MODEL)),
            mode,
            seconds: limit,
            bare: false,
            sink: Some(session.sink.clone()),
            gate: Some(Arc::new(Gate::new(policy, session.sink.clone()))),
        }
    }

    fn reply(&self, session: &SessionSpawn, turn: answer::Turn) -> Result<SessionReply, Failure> {
        let said = Said {
            text: turn.text,
            usage: turn.usage,
            refused: turn.refused,
        };
        reply(session, said).map_err(|failure| self.hidden(failure))
    }

    fn hidden(&self, mut failure: Failure) -> Failure {
        self.address.redactor.redact_in(&mut failure.message);
        failure
    }
}

/// The id of a session's run: the same whenever the same session is asked for. What a program asks for has the same effect
/// in every run, so that the session's own folder tells them apart, and one lease from the next.
fn run_id(session: &SessionSpawn) -> String {
    let mut hash = Sha256::new();
    hash.update(session.staging.as_os_str().as_encoded_bytes());
    hash.update([0]);
    hash.update(session.effect.to_string());
    let hex: String = hash
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("prose-{hex}")
}

/// The system text. One who can't write can't leave a file behind, as the message asks for.
fn system_text(system: &str, mode: Mode) -> String {
    let mut text = system.trim_end().to_owned();
    if mode == Mode::ReadOnly {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(
            "You have no tool that writes. Where you are asked to write your output to a file, give it whole as your last message \
             instead, and nothing else.",
        );
    }
    text
}

/// The message. What begins so is a command of OpenClaw to its own users.
fn told(user: &str) -> String {
    match user.trim_start().starts_with(['/', '!']) {
        true => format!("The task:\n\n{user}"),
        false => user.to_owned(),
    }
}

#[async_trait]
impl SessionBackend for OpenClaw {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Files,
            reattach: true,
            skills: false,
            virtual_time: false,
        }
    }

    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        let turn = self.turn(&self.job(&session), &session.cancel).await?;
        self.reply(&session, turn)
    }

    async fn reattach(
        &self,
        session: SessionSpawn,
        handle: serde_json::Value,
    ) -> Option<Result<SessionReply, Failure>> {
        let mut job = self.job(&session);
        let key = handle["session"].as_str()?;
        // Only what this run has made itself: a transcript of another session is none of its business.
        if handle["run"] != job.run.as_str() || !key.ends_with(&job.run) {
            return None;
        }
        job.session = Some(key.to_owned());
        let turn = turn::take_up(&self.address, &job, &session.cancel).await?;
        Some(match turn {
            Ok(turn) => self.reply(&session, turn),
            Err(failure) => Err(self.hidden(failure)),
        })
    }
}

impl OpenClaw {
    /// By the gateway; where there is none, by the command line.
    async fn turn(&self, job: &Job, cancel: &CancelToken) -> Result<answer::Turn, Failure> {
        let nobody = match turn::run(&self.address, job, cancel).await {
            Ok(turn) => return Ok(turn),
            Err(Stop::Failed(failure)) => return Err(self.hidden(failure)),
            Err(Stop::Nobody(why)) => why,
        };
        let Some(cli) = &self.cli else {
            return Err(self.nobody(&nobody));
        };
        let notice = |message: String| {
            if let Some(sink) = &job.sink {
                sink.notice(message);
            }
        };
        notice(format!(
            "no gateway of OpenClaw is there ({nobody}); the session runs by its command line, where nobody can be asked: without \
             commands, and without the web"
        ));
        let turn = cli.run(job, &self.address.redactor, cancel).await;
        let turn = turn.map_err(|failure| self.hidden(failure))?;
        if let Some(warning) = turn.warning() {
            notice(warning);
        }
        Ok(turn)
    }

    fn nobody(&self, why: &str) -> Failure {
        self.hidden(failure(
            ErrorKind::Backend,
            format!("no gateway of OpenClaw is there: {why}\n  to set it up: {SETUP}"),
        ))
    }
}

/// Decides by a bare question to the gateway's model, without tools.
#[derive(Debug)]
struct OpenClawJudge(Arc<OpenClaw>);

#[async_trait]
impl Asker for OpenClawJudge {
    fn name(&self) -> &str {
        &self.0.spec.name
    }

    async fn ask(&self, question: Question, cancel: &CancelToken) -> Result<Answer, Failure> {
        let openclaw = &*self.0;
        let job = Job {
            session: None,
            run: format!("prose-judge-{}", uuid::Uuid::new_v4().simple()),
            // It has no tools, and nothing to look for.
            dir: std::env::temp_dir(),
            system: String::new(),
            message: told(&format!("{}\n\n{}", question.system.trim_end(), question.user)),
            model: openclaw
                .model_for(JUDGE_MODEL)
                .or_else(|| openclaw.model_for(DEFAULT_MODEL)),
            mode: Mode::ReadOnly,
            seconds: JUDGE_TIME.as_secs(),
            bare: true,
            sink: None,
            gate: None,
        };
        let turn = openclaw.turn(&job, cancel);
        let turn = tokio::time::timeout(JUDGE_TIME, turn).await.map_err(|_| {
            let minutes = JUDGE_TIME.as_secs() / 60;
            let message = format!("the judge has not answered for {minutes} minutes");
            failure(ErrorKind::Timeout, message)
        })?;
        let turn = turn?;
        Ok(Answer {
            text: turn.text,
            usage: turn.usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_web_page_is_one_of_the_socket_too() {
        assert_eq!(
            socket_url("http://127.0.0.1:1").as_deref(),
            Some("ws://127.0.0.1:1")
        );
        assert_eq!(
            socket_url("https://a.example/x").as_deref(),
            Some("wss://a.example/x")
        );
        assert_eq!(socket_url("wss://a.example").as_deref(), Some("wss://a.example"));
        assert_eq!(socket_url("127.0.0.1:1"), None);
        assert_eq!(socket_url("ftp://a.example"), None);
    }

    #[test]
    fn a_task_is_no_command_of_the_gateway() {
        assert_eq!(told("/new\nsession"), "The task:\n\n/new\nsession");
        assert_eq!(told("What is new?"), "What is new?");
    }
}
