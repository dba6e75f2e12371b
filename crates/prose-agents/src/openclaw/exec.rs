//! A session without a gateway: one turn of OpenClaw's own command line. Nobody can be asked there, so that the session has tools for
//! the project's files and no others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prose_model::backend::{BackendSpec, Variables};
use prose_model::{ErrorKind, Failure};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::answer::{self, Turn};
use super::permit::Mode;
use super::turn::{Job, stopped};
use crate::acp::CLASSES;
use crate::child::{Child, ChildCommand, Environment, describe, find_program};
use crate::tools::LIFE;
use crate::{CancelToken, Redactor, failure};

const PROGRAM: &str = "openclaw";
/// How long it has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(4);
/// Most bytes that are read of its answer.
const ANSWER: u64 = 32 * 1024 * 1024;

/// Where OpenClaw's own things are. A project's file must not lead it to others, which may send the keys elsewhere.
const PLACES: &[&str] = &["OPENCLAW_HOME", "OPENCLAW_CONFIG_PATH", "OPENCLAW_STATE_DIR"];
/// The keys of its models.
const KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "DEEPSEEK_API_KEY",
    "CEREBRAS_API_KEY",
];
/// How it has to behave where nobody sits in front of it.
const FIXED_VARIABLES: &[(&str, &str)] = &[
    ("OPENCLAW_NO_AUTO_UPDATE", "1"),
    ("OPENCLAW_DISABLE_BONJOUR", "1"),
    ("OPENCLAW_NO_RESPAWN", "1"),
];
/// The tools that a session may have, without those that write.
const READING: &[&str] = &["read", "ls", "find", "grep"];
const WRITING: &[&str] = &["write", "edit"];
/// What a question has, in a folder with nothing in it.
const BARE: &[&str] = &["ls"];
/// What it may not have whatever its user's settings say.
const REFUSED: &[&str] = &[
    "exec",
    "process",
    "bash",
    "apply_patch",
    "message",
    "group:runtime",
    "group:web",
    "group:ui",
    "group:automation",
    "group:messaging",
    "group:nodes",
    "group:sessions",
];

/// OpenClaw's command line.
#[derive(Debug)]
pub(super) struct Cli {
    program: PathBuf,
    environment: Environment,
    /// Its user's settings.
    config: Option<PathBuf>,
}

impl Cli {
    /// The one that is there.
    pub(super) fn find(spec: &BackendSpec, variables: &Variables) -> Option<Cli> {
        let command = PathBuf::from(spec.command.as_deref().unwrap_or(PROGRAM));
        let program = find_program(&command, variables.get("PATH"))?;
        let mut environment = Environment::basic(variables);
        environment.take(variables, KEYS);
        for name in PLACES.iter().filter(|name| !variables.is_of_project(name)) {
            environment.take(variables, &[name]);
        }
        for (name, value) in FIXED_VARIABLES {
            environment.set(name, value);
        }
        let place = |name: &str, file: &str| environment.get(name).map(|folder| Path::new(folder).join(file));
        let config = place("OPENCLAW_CONFIG_PATH", "")
            .map(|path| path.components().collect())
            .or_else(|| place("OPENCLAW_STATE_DIR", "openclaw.json"))
            .or_else(|| place("HOME", ".openclaw/openclaw.json"));
        Some(Cli {
            program,
            environment,
            config: config.filter(|path: &PathBuf| path.is_file()),
        })
    }

    /// The program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Has it do one turn. When the token is cancelled, or the future dropped, nothing of it is left.
    pub(super) async fn run(
        &self,
        job: &Job,
        redactor: &Redactor,
        cancel: &CancelToken,
    ) -> Result<Turn, Failure> {
        let problem = |what: &str, error: &dyn std::fmt::Display| {
            failure(
                ErrorKind::Backend,
                format!("OpenClaw's command line {what}: {error}"),
            )
        };
        let folder = Folder::new().map_err(|error| problem("has no folder for its settings", &error))?;
        let config = folder.0.join("openclaw.json");
        std::fs::write(&config, self.settings(job).to_string())
            .map_err(|error| problem("can't be given settings", &error))?;
        let mut environment = self.environment.clone();
        if let Some(parent) = self.config.as_deref().and_then(Path::parent) {
            // The settings are read along with its user's own.
            environment.set("OPENCLAW_INCLUDE_ROOTS", &parent.display().to_string());
        }
        let mut args: Vec<String> = ["agent", "exec", "--json", "--message-file", "-", "--config"]
            .map(ToOwned::to_owned)
            .to_vec();
        args.push(config.display().to_string());
        let dir = match job.bare {
            true => &folder.0,
            false => &job.dir,
        };
        args.extend(["--cwd".to_owned(), dir.display().to_string()]);
        args.extend(["--timeout".to_owned(), job.seconds.to_string()]);
        if let Some(model) = job.model.as_ref() {
            match &model.configured {
                Some(configured) => args.extend(["--model".to_owned(), configured.clone()]),
                None if CLASSES.contains(&&*model.name) => self.notice(job, &model.name),
                None => args.extend(["--model".to_owned(), model.name.clone()]),
            }
        }
        let mut child = Child::start(ChildCommand {
            program: self.program.clone(),
            args: args.iter().map(Into::into).collect(),
            dir: dir.clone(),
            environment,
        })
        .await
        .map_err(|error| problem("can't be started", &error))?;
        if let Some(sink) = &job.sink {
            sink.child(child.pid()).await?;
            sink.started(None, None).await?;
        }
        let text = match job.system.is_empty() {
            true => job.message.clone(),
            false => format!("{}\n\n{}", job.system, job.message),
        };
        let talking = talk(&mut child, text, job);
        let told = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            told = talking => Some(told),
        };
        let Some(told) = told else {
            let _ = child.stop(GRACE).await;
            return Err(stopped());
        };
        let status = match tokio::time::timeout(GRACE, child.wait()).await {
            Ok(status) => status,
            Err(_) => child.stop(GRACE).await,
        };
        match serde_json::from_slice::<Json>(&told) {
            Ok(envelope) if envelope["status"].is_string() => answer::envelope(&envelope, redactor),
            _ => {
                let how = status.map_or_else(|error| format!("was lost ({error})"), describe);
                let stderr = child.stderr();
                let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
                let last = last.map_or_else(String::new, |line| format!(": {}", redactor.one_line(line)));
                Err(failure(
                    ErrorKind::Backend,
                    format!("OpenClaw's command line {how} and gave no answer{last}"),
                ))
            }
        }
    }

    fn notice(&self, job: &Job, name: &str) {
        if let Some(sink) = &job.sink {
            sink.notice(format!(
                "OpenClaw's command line is told no model for `{name}`, so that its own is used; `[models]` in prose.toml can name one"
            ));
        }
    }

    /// Its user's settings, and on top what the session may use.
    fn settings(&self, job: &Job) -> Json {
        let all = [READING, WRITING].concat();
        let allowed = match (job.bare, job.mode) {
            // It has to have one.
            (true, _) => BARE,
            (false, Mode::ReadOnly) => READING,
            (false, Mode::Guarded) => &all,
        };
        let others = all.iter().filter(|tool| !allowed.contains(tool));
        let refused: Vec<&&str> = REFUSED.iter().chain(others).collect();
        let mut settings = json!({"tools": {
            "allow": allowed,
            "deny": refused,
            "fs": {"workspaceOnly": true},
            "exec": {"mode": "deny"},
        }});
        if let Some(config) = &self.config {
            settings["$include"] = config.display().to_string().into();
        }
        settings
    }
}

/// Tells it what to do, and reads all that it answers.
async fn talk(child: &mut Child, text: String, job: &Job) -> Vec<u8> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // One that does not read is noticed by its answer.
            let _ = stdin.write_all(text.as_bytes()).await;
            let _ = stdin.shutdown().await;
        }
    };
    let read = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            // What can't be read is no answer.
            let _ = stdout.take(ANSWER).read_to_end(&mut bytes).await;
        }
        bytes
    };
    let talk = async { tokio::join!(write, read).1 };
    tokio::pin!(talk);
    let mut signs = tokio::time::interval(LIFE);
    loop {
        tokio::select! {
            bytes = &mut talk => return bytes,
            // It says nothing until it is done, and has a time limit of its own.
            _ = signs.tick() => if let Some(sink) = &job.sink {
                sink.alive();
            },
        }
    }
}

/// A folder that only this user can enter, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("prose-openclaw-{}", uuid::Uuid::new_v4().simple()));
        #[cfg_attr(not(unix), expect(unused_mut))]
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        builder.create(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is no secret.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
