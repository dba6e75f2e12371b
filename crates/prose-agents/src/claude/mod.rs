//! The `claude` backend: a session is a run of Claude Code without a terminal.
//!
//! The program is spoken to over its pipes, as its own SDKs do: system text, prompt and the form of an answer go in by
//! standard input, never by arguments, and before it uses a tool it asks. What it may is decided by the session's
//! [`Policy`]; nothing of its user's settings, memory files, plugins and servers is loaded.

pub(crate) mod permit;
mod protocol;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::{ErrorKind, Failure};
use tokio::sync::OnceCell;

use crate::api::{keeps_secrets, unsafe_address};
use crate::child::{Environment, find_program};
use crate::detect::{KeyNeed, Needs, ProgramNeed, meanings, tell_version, too_old};
use crate::judging::{Answer, Asker, ModelJudge, Question};
use crate::mcp::{self, Broker};
use crate::origin::{keys_for, led_by_project, stays};
use crate::policy::{Gate, Policy};
use crate::reply::{Said, reply};
use crate::{
    Backend, BackendContext, BackendError, BackendFactory, CancelToken, Capabilities, Delivery, Looked,
    Redactor, SessionBackend, SessionReply, SessionSpawn, SpendLimit, failure,
};
use turn::{Job, Turn};

const KIND: &str = "claude";
const PROGRAM: &str = "claude";
pub(crate) const KEY: &str = "ANTHROPIC_API_KEY";
pub(crate) const SETUP: &str = "install Claude Code (`npm install -g @anthropic-ai/claude-code`) and start `claude` once to log in, or set ANTHROPIC_API_KEY";

/// The oldest version that knows everything it is told here. With older ones a session would have more than it is permitted.
const OLDEST: [u64; 3] = [2, 1, 40];
/// The model that decides, by the program's name for it, unless `[models]` has one for `judge`.
const JUDGE_MODEL: &str = "sonnet";
/// How long a decision may take.
const JUDGE_TIME: Duration = Duration::from_secs(5 * 60);

/// What Claude Code itself reads to reach a model: keys, addresses, ids.
pub(crate) const OWN_VARIABLES: &[&str] = &[
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "API_TIMEOUT_MS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_USE_BEDROCK",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLAUDE_CODE_USE_VERTEX",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "CLOUD_ML_REGION",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_RESOURCE",
    "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB",
];

/// Those of them that lead to a service which is not the one that `base_url` names, or prove there who one is.
const OF_ANOTHER_ADDRESS: &[&str] = &[
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLAUDE_CODE_USE_VERTEX",
    "ANTHROPIC_VERTEX_BASE_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLAUDE_CODE_USE_FOUNDRY",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_BASE_URL",
];
/// Those that say where the service is.
pub(crate) const LEADS: &[&str] = &[
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_RESOURCE",
];
/// Those that hold what goes to the address of the first of them; those of clouds have files of their own, too.
const KEYS: &[&str] = &[KEY, "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// What is sent to an address of one's own for which no key is named: something has to be, or the program sends its login.
pub(crate) const NO_KEY: &str = "none";

/// How it has to behave where nobody sits in front of it.
pub(crate) const FIXED_VARIABLES: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_TELEMETRY", "1"),
    // IMPORTANT: without it a prompt with `@path` in it has that file sent along, and no permission is asked for it.
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    // The few tools of the session itself are there from the beginning, and don't have to be looked for.
    ("ENABLE_TOOL_SEARCH", "false"),
    // It waits for the server that has them, however busy the machine is: at all, for its start, and with the first request to
    // the model until then, which is 5 s otherwise; in milliseconds.
    ("MCP_CONNECTION_NONBLOCKING", "false"),
    ("MCP_TIMEOUT", "60000"),
    ("MCP_CONNECT_TIMEOUT_MS", "60000"),
    // A session is over when it has answered.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
];

/// Makes [`Claude`].
#[derive(Debug, Clone, Copy)]
pub struct ClaudeFactory;

impl BackendFactory for ClaudeFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn look(&self, context: BackendContext<'_>) -> Option<Looked> {
        let command = command_of(context.spec);
        Some(Looked {
            what: format!("the program `{}` on the PATH", command.display()),
            found: find_program(&command, context.variables.get("PATH")).is_some(),
        })
    }

    fn setup(&self) -> &'static str {
        SETUP
    }

    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let (spec, variables) = (context.spec, context.variables);
        let named = spec.api_key_env.is_some();
        let base_url = spec.base_url.as_deref().or(variables.get("ANTHROPIC_BASE_URL"));
        Needs {
            program: Some(ProgramNeed {
                command: command_of(spec),
                version: Some(version_arguments(spec)),
                oldest: Some(OLDEST),
            }),
            // An address of one's own is sent a key only when it is said to be for it.
            key: (named || spec.base_url.is_none()).then(|| KeyNeed {
                variable: spec.api_key_env.as_deref().unwrap_or(KEY).to_owned(),
                // Without one it goes by its own login.
                required: named,
            }),
            base_url: base_url.map(ToOwned::to_owned),
            models: meanings(spec, |name| Some(name.to_owned())),
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
        let command = command_of(spec);
        let program = find_program(&command, variables.get("PATH")).ok_or_else(|| {
            unusable(format!(
                "the program `{}` was not found on the PATH",
                command.display()
            ))
        })?;
        let environment = environment(spec, variables).map_err(unusable)?;
        let key = environment.get(KEY).map(|key| (KEY, key));
        let redactor = Redactor::for_backend(variables, key);
        let claude = Arc::new(Claude {
            spec: spec.clone(),
            program,
            environment,
            redactor,
            prose: mcp::program(),
            checked: OnceCell::new(),
        });
        Ok(Backend {
            name: spec.name.clone(),
            simulated: false,
            sessions: claude.clone(),
            judge: Arc::new(ModelJudge::new(ClaudeJudge(claude))),
            inputs: None,
            observer: None,
            mock_text: None,
        })
    }
}

fn version_arguments(spec: &BackendSpec) -> Vec<String> {
    let mut arguments = spec.args.clone().unwrap_or_default();
    arguments.push("--version".to_owned());
    arguments
}

fn command_of(spec: &BackendSpec) -> PathBuf {
    PathBuf::from(spec.command.as_deref().unwrap_or(PROGRAM))
}

/// The variable by which `.prose/.env` leads to another address.
///
/// # Errors
/// A sentence, when it leads what goes to a cloud: whose login that is can't be told.
pub(crate) fn lead(variables: &Variables) -> Result<Option<&'static str>, String> {
    match led_by_project(variables, LEADS) {
        Some(name) if name != LEADS[0] => Err(format!(
            "{name} counts only in the environment, and not in .prose/.env: the login of a cloud would go to its address"
        )),
        lead => Ok(lead),
    }
}

/// Whether a variable says nothing at the address that is configured, or that `lead` of `.prose/.env` leads to, and must not be
/// sent there.
pub(crate) fn is_of_another_address(
    name: &str,
    spec: &BackendSpec,
    variables: &Variables,
    lead: Option<&str>,
) -> bool {
    let led_away = lead.is_some() && !variables.is_of_project(name);
    OF_ANOTHER_ADDRESS.contains(&name) && (spec.base_url.is_some() || led_away)
}

fn environment(spec: &BackendSpec, variables: &Variables) -> Result<Environment, String> {
    let mut environment = Environment::basic(variables);
    let lead = match &spec.base_url {
        Some(_) => None,
        None => lead(variables)?,
    };
    for name in OWN_VARIABLES {
        if !is_of_another_address(name, spec, variables, lead) {
            environment.take(variables, &[name]);
        }
    }
    match &spec.api_key_env {
        Some(name) => {
            if let Some(lead) = lead.filter(|_| !variables.is_of_project(name)) {
                return Err(stays(name, lead));
            }
            let key = variables
                .get(name)
                .ok_or_else(|| format!("the variable {name}, which `api_key_env` names, is not set"))?;
            if let Some(url) = &spec.base_url
                && !keeps_secrets(url)
            {
                return Err(unsafe_address(name));
            }
            environment.set(KEY, key);
        }
        None if spec.base_url.is_some() => environment.set(KEY, NO_KEY),
        None => match lead {
            Some(lead) => match keys_for(variables, lead, KEYS.iter().copied())? {
                keys if keys.is_empty() => environment.set(KEY, NO_KEY),
                keys => environment.take(variables, &keys),
            },
            None => environment.take(variables, &[KEY]),
        },
    }
    if let Some(url) = &spec.base_url {
        environment.set("ANTHROPIC_BASE_URL", url);
    }
    for (name, value) in FIXED_VARIABLES {
        environment.set(name, value);
    }
    Ok(environment)
}

/// Claude Code.
#[derive(Debug)]
pub struct Claude {
    spec: BackendSpec,
    program: PathBuf,
    environment: Environment,
    redactor: Redactor,
    /// What it starts to reach the tools of its session, if it can.
    prose: Option<PathBuf>,
    /// Whether its version was looked at, and is new enough.
    checked: OnceCell<()>,
}

impl Claude {
    /// What the program's name for a model means here; Claude Code knows `sonnet`, `opus` and `haiku` by itself.
    fn model<'a>(&'a self, name: &'a str) -> &'a str {
        self.spec.models.get(name).map_or(name, String::as_str)
    }

    /// The arguments that every turn has; none of them is secret, or as long as a prompt can be.
    fn arguments(&self, model: Option<&str>, tools: &[&str]) -> Vec<String> {
        let mut args = self.spec.args.clone().unwrap_or_default();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        add(&[
            "--print",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ]);
        add(&["--include-partial-messages", "--no-session-persistence"]);
        add(&["--session-id", &uuid::Uuid::new_v4().to_string()]);
        // Nothing of what the user has set up for himself: no settings, no servers, no commands.
        add(&[
            "--setting-sources",
            "",
            "--strict-mcp-config",
            "--disable-slash-commands",
        ]);
        // What is not decided before a tool is used is asked over the pipes.
        add(&[
            "--permission-mode",
            "default",
            "--permission-prompt-tool",
            "stdio",
        ]);
        add(&["--tools", &tools.join(",")]);
        if let Some(model) = model {
            add(&["--model", self.model(model)]);
        }
        args
    }

    /// Sees that it is new enough, once. One that says nothing of its version is given the benefit of the doubt.
    async fn check_version(&self) -> Result<(), Failure> {
        let check = || async {
            let told = tell_version(
                &self.program,
                version_arguments(&self.spec),
                self.environment.clone(),
            );
            match told.await {
                Ok(Some(said)) => match too_old(&self.program, &said, OLDEST) {
                    Some(why) => Err(failure(
                        ErrorKind::Backend,
                        format!("{why}\n  to set it up: {SETUP}"),
                    )),
                    None => Ok(()),
                },
                // What is wrong shows as it is used.
                Ok(None) | Err(_) => Ok(()),
            }
        };
        self.checked.get_or_try_init(check).await.copied()
    }

    async fn turn(&self, job: Job, cancel: &CancelToken) -> Result<Turn, Failure> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(failure(ErrorKind::Backend, "the session was stopped")),
            checked = self.check_version() => checked?,
        }
        let turn = turn::run(&self.program, &self.environment, &self.redactor, job, cancel).await;
        turn.map_err(|mut failure| {
            self.redactor.redact_in(&mut failure.message);
            failure
        })
    }

    /// The tools by which the session hands over what it makes. Without them it writes files, as its prompt says.
    fn broker(&self, session: &SessionSpawn) -> Option<(Broker, PathBuf)> {
        let broker = Broker::for_session(session, self.prose.clone()?);
        let started = broker.and_then(|broker| {
            let config = broker.config_file()?;
            Ok((broker, config))
        });
        started
            .inspect_err(|error| tracing::warn!("a session goes without its own tools: {error}"))
            .ok()
    }

    fn session_job(&self, session: &SessionSpawn, servers: Option<&Path>) -> Job {
        let policy = Policy::for_session(session);
        let tools = permit::tools(&policy);
        let mut arguments = self.arguments(session.request.model.as_deref(), &tools);
        if let Some(servers) = servers {
            arguments.extend(["--mcp-config".to_owned(), servers.display().to_string()]);
        }
        // The same once more where it looks by itself, as its search does: what no permission grants.
        arguments.push("--disallowedTools".to_owned());
        arguments.extend(permit::REFUSED.iter().map(|rule| (*rule).to_owned()));
        if !session.staging.starts_with(&session.work_dir) {
            arguments.extend(["--add-dir".to_owned(), session.staging.display().to_string()]);
        }
        arguments.extend(at_most(session.budget));
        Job {
            arguments,
            dir: session.work_dir.clone(),
            system: system_text(&session.prompt.system, &session.work_dir),
            user: session.prompt.user.clone(),
            schema: None,
            tokens: session.budget.tokens,
            sink: Some(session.sink.clone()),
            gate: Some(Arc::new(Gate::new(policy, session.sink.clone()))),
        }
    }
}

/// The arguments by which no more money is spent.
fn at_most(budget: SpendLimit) -> impl Iterator<Item = String> {
    let usd = budget.usd.into_iter();
    usd.flat_map(|usd| {
        [
            "--max-budget-usd".to_owned(),
            format!("{:.6}", usd.max(0.000_001)),
        ]
    })
}

/// The system text, with what replaces the one that it has for people in front of a terminal.
fn system_text(system: &str, work_dir: &Path) -> String {
    let mut text = system.trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&format!(
        "Your working folder is {}. Nobody watches and nobody answers questions: decide yourself, and do the task to its end. \
         When a tool is refused, do without it or say what could not be done.",
        work_dir.display()
    ));
    text
}

#[async_trait]
impl SessionBackend for Claude {
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
        let (broker, servers) = self.broker(&session).unzip();
        let job = self.session_job(&session, servers.as_deref());
        let turn = self.turn(job, &session.cancel).await?;
        mcp::keep(broker, turn.usage).await?;
        let said = Said {
            text: turn.text,
            usage: turn.usage,
            refused: turn.denied,
        };
        reply(&session, said)
    }
}

/// Decides by asking Claude Code, without tools.
#[derive(Debug)]
struct ClaudeJudge(Arc<Claude>);

#[async_trait]
impl Asker for ClaudeJudge {
    fn name(&self) -> &str {
        &self.0.spec.name
    }

    async fn ask(&self, question: Question, cancel: &CancelToken) -> Result<Answer, Failure> {
        let claude = &*self.0;
        let model = match claude.spec.models.contains_key("judge") {
            true => "judge",
            false => JUDGE_MODEL,
        };
        let mut arguments = claude.arguments(Some(model), &[]);
        arguments.extend(at_most(question.budget));
        let job = Job {
            arguments,
            // It has no tools, and nothing to look for.
            dir: std::env::temp_dir(),
            system: question.system,
            user: question.user,
            schema: Some(question.schema),
            tokens: question.budget.tokens,
            sink: None,
            gate: None,
        };
        // It is stopped rather than dropped, so that what it has used is known.
        let stop = CancelToken::new();
        let turn = claude.turn(job, &stop);
        tokio::pin!(turn);
        let turn = tokio::select! {
            turn = &mut turn => turn?,
            () = cancel.cancelled() => {
                stop.cancel();
                turn.await?
            }
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
        let text = turn.structured.map_or(turn.text, |answer| answer.to_string());
        Ok(Answer {
            text,
            usage: turn.usage,
        })
    }
}
