//! The `acp` backend: a session is a turn of any agent that speaks the Agent Client Protocol.
//!
//! Each session is a process of its own. The agent is told by its standard input, asks before it acts, and is answered
//! by the session's [`Policy`]. It is offered no files and no terminal of ours: what it does with them it does itself.

mod connection;
pub(crate) mod offer;
mod own;
mod permit;
mod preset;
mod turn;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prose_model::backend::BackendSpec;
use prose_model::{ErrorKind, Failure};

use crate::child::{Environment, find_program};
use crate::detect::{KeyNeed, Needs, ProgramNeed, meanings};
use crate::judging::{Answer, Asker, ModelJudge, Question};
use crate::mcp::{self, Broker, McpServer};
use crate::policy::{Gate, Policy};
use crate::reply::{Said, reply};
use crate::{
    Backend, BackendContext, BackendError, BackendFactory, CancelToken, Capabilities, Delivery, Looked,
    Redactor, SessionBackend, SessionReply, SessionSpawn, failure,
};
use preset::Agent;
use turn::{Job, Turn, Wanted};

const KIND: &str = "acp";
pub(crate) const SETUP: &str = "name an agent that speaks the Agent Client Protocol: `[backends.NAME]` with `kind = \"acp\"` and \
                                `command` = claude, codex, gemini, opencode, or any program";

/// Words for classes of models, which a program may use with any backend.
pub(crate) const CLASSES: &[&str] = &["sonnet", "opus", "haiku"];
/// The model of sessions that name none, in `[models]`.
pub(crate) const DEFAULT_MODEL: &str = "default";
/// The model that decides, in `[models]`.
pub(crate) const JUDGE_MODEL: &str = "judge";
/// How long a decision may take.
pub(crate) const JUDGE_TIME: Duration = Duration::from_secs(5 * 60);
/// How long an agent may take until it is ready: some are fetched first.
const START_TIME: Duration = Duration::from_secs(2 * 60);

/// Makes [`Acp`].
#[derive(Debug, Clone, Copy)]
pub struct AcpFactory;

impl BackendFactory for AcpFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn look(&self, _: BackendContext<'_>) -> Option<Looked> {
        // Which agent it is has to be said.
        None
    }

    fn setup(&self) -> &'static str {
        SETUP
    }

    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let (spec, variables) = (context.spec, context.variables);
        let Some(agent) = Agent::of(spec) else {
            return Needs::default();
        };
        let keys = agent.key_names();
        let set = keys.iter().find(|name| variables.get(name).is_some());
        let key = spec.api_key_env.as_deref().or(set.or(keys.first()).copied());
        Needs {
            key: key.map(|variable| KeyNeed {
                variable: variable.to_owned(),
                // Without one it goes by its own login.
                required: spec.api_key_env.is_some(),
            }),
            base_url: spec.base_url.clone(),
            models: meanings(spec, |_| None),
            program: Some(ProgramNeed {
                version: agent.version_arguments(),
                oldest: None,
                command: agent.program,
            }),
            ..Needs::default()
        }
    }

    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let (spec, variables) = (context.spec, context.variables);
        let unusable = |reason: String, setup: String| BackendError::Unusable {
            name: spec.name.clone(),
            reason,
            setup,
        };
        let agent = Agent::of(spec).ok_or_else(|| {
            let reason = format!(
                "it is not said which agent it is; known are {}, and any program that speaks the protocol will do",
                preset::names()
            );
            unusable(reason, SETUP.to_owned())
        })?;
        let program = find_program(&agent.program, variables.get("PATH")).ok_or_else(|| {
            let reason = format!(
                "the program `{}` was not found on the PATH",
                agent.program.display()
            );
            unusable(reason, agent.setup())
        })?;
        let environment = agent
            .environment(spec, variables)
            .map_err(|reason| unusable(reason, agent.setup()))?;
        let keys = agent.key_names().into_iter().chain(spec.api_key_env.as_deref());
        let keys: Vec<(&str, &str)> = keys
            .filter_map(|name| Some((name, environment.get(name)?)))
            .collect();
        let redactor = Redactor::for_backend(variables, keys);
        let acp = Arc::new(Acp {
            spec: spec.clone(),
            agent,
            program,
            environment,
            redactor,
            prose: mcp::program(),
        });
        Ok(Backend {
            name: spec.name.clone(),
            simulated: false,
            sessions: acp.clone(),
            judge: Arc::new(ModelJudge::new(AcpJudge(acp))),
            inputs: None,
            observer: None,
            mock_text: None,
        })
    }
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Debug)]
pub struct Acp {
    spec: BackendSpec,
    agent: Agent,
    program: PathBuf,
    environment: Environment,
    redactor: Redactor,
    /// What it starts to reach the tools of its session, if it can.
    prose: Option<PathBuf>,
}

impl Acp {
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

    fn start_time(&self) -> Duration {
        self.spec.waits.connect.unwrap_or(START_TIME)
    }

    async fn turn(&self, job: Job, cancel: &CancelToken) -> Result<Turn, Failure> {
        let environment = match job.server {
            Some(_) => Cow::Owned(self.agent.with_own_tools(&self.environment)),
            None => Cow::Borrowed(&self.environment),
        };
        let turn = turn::run(
            &self.agent,
            &self.program,
            &environment,
            &self.redactor,
            job,
            cancel,
        )
        .await;
        turn.map_err(|mut failure| {
            self.redactor.redact_in(&mut failure.message);
            failure
        })
    }

    /// The tools of a session, of which the agent gets to know. Without them it does what its prompt says otherwise.
    fn broker(&self, open: impl FnOnce(PathBuf) -> io::Result<Broker>) -> Option<(Broker, McpServer)> {
        let opened = open(self.prose.clone()?).and_then(|broker| {
            // Some agents hand a server's variables on among arguments.
            let server = broker.server_by_file()?;
            Ok((broker, server))
        });
        opened
            .inspect_err(|error| tracing::warn!("a session goes without its own tools: {error}"))
            .ok()
    }

    fn session_job(&self, session: &SessionSpawn, server: Option<McpServer>) -> Job {
        let policy = Policy::for_session(session);
        let outside = !session.staging.starts_with(&session.work_dir);
        let model = session.request.model.as_deref();
        Job {
            dir: session.work_dir.clone(),
            more_dirs: outside.then(|| session.staging.clone()).into_iter().collect(),
            text: told(&session.prompt.system, &session.prompt.user),
            model: model
                .map(|name| self.model(name))
                .or_else(|| self.model_for(DEFAULT_MODEL)),
            start_time: self.start_time(),
            usd: session.budget.usd,
            meta: self.agent.session_meta(Some(&policy)),
            server,
            sink: Some(session.sink.clone()),
            gate: Some(Arc::new(Gate::new(policy, session.sink.clone()))),
        }
    }
}

/// The system text and the message as one, since the protocol knows no system text.
fn told(system: &str, user: &str) -> String {
    let mut text = system.trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(user);
    // What begins so is a command of the agent to its own users.
    if text.trim_start().starts_with(['/', '!', '#']) {
        text.insert_str(0, "The task:\n\n");
    }
    text
}

#[async_trait]
impl SessionBackend for Acp {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Files,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }

    fn has_broker(&self) -> bool {
        self.prose.is_some()
    }

    async fn spawn(&self, session: SessionSpawn) -> Result<SessionReply, Failure> {
        let (broker, server) = self.broker(|prose| Broker::for_session(&session, prose)).unzip();
        let turn = self
            .turn(self.session_job(&session, server), &session.cancel)
            .await?;
        mcp::keep(broker, turn.usage).await?;
        let said = Said {
            text: turn.text,
            usage: turn.usage,
            refused: turn.refused,
        };
        reply(&session, said).map_err(|mut failure| {
            self.redactor.redact_in(&mut failure.message);
            failure
        })
    }
}

/// Decides by asking the agent, without any tool but that which takes the decision.
#[derive(Debug)]
struct AcpJudge(Arc<Acp>);

#[async_trait]
impl Asker for AcpJudge {
    fn name(&self) -> &str {
        &self.0.spec.name
    }

    async fn ask(&self, question: Question, cancel: &CancelToken) -> Result<Answer, Failure> {
        let acp = &*self.0;
        let schema = question.schema;
        let (broker, server) = acp.broker(|prose| Broker::for_judge(schema, prose)).unzip();
        let tools = match server {
            Some(_) => {
                "Give the object with the tool `verdict` of the server `prose` (its name may have something in front, as in \
                 `mcp__prose__verdict`); if you don't have it, answer with the object. Use no other tools; none is permitted."
            }
            None => "Use no tools; none is permitted.",
        };
        let system = format!("{}\n\n{tools}", question.system);
        let job = Job {
            // It has no tools, and nothing to look for.
            dir: std::env::temp_dir(),
            more_dirs: Vec::new(),
            text: told(&system, &question.user),
            model: acp
                .model_for(JUDGE_MODEL)
                .or_else(|| acp.model_for(DEFAULT_MODEL)),
            start_time: acp.start_time(),
            usd: question.budget.usd,
            meta: acp.agent.session_meta(None),
            server,
            sink: None,
            gate: None,
        };
        // It is stopped rather than dropped, so that what it has used is known.
        let stop = cancel.child_token();
        let turn = acp.turn(job, &stop);
        tokio::pin!(turn);
        let turn = tokio::select! {
            turn = &mut turn => turn?,
            () = tokio::time::sleep(JUDGE_TIME) => {
                stop.cancel();
                let minutes = JUDGE_TIME.as_secs() / 60;
                let message = format!("the judge has not answered for {minutes} minutes");
                turn.await.map_err(|stopped| Failure {
                    usage: stopped.usage,
                    ..failure(ErrorKind::Timeout, message)
                })?
            }
        };
        let decided = match broker {
            Some(broker) => broker.answer().await,
            None => None,
        };
        Ok(Answer {
            text: decided.map_or(turn.text, |decided| decided.to_string()),
            usage: turn.usage,
        })
    }
}
