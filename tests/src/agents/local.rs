//! A run on a real, very small language model: what it says makes no sense, but it comes as a real server sends it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::stage::{MARK, wait};

/// How long the model may take to be loaded, and a run to end; only a hang takes longer.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs a program of two sessions on the model; the second is given what the first said.
pub fn run() -> Result<(), String> {
    let problem = |error: std::io::Error| format!("can't prepare the run: {error}");
    let server = Server::start()?;
    let folder = TempDir::new().map_err(problem)?;
    let config = format!(
        "[backends.local]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodels = {{ sonnet = \"local\" }}\n",
        server.url
    );
    let program = "let name = session \"Name a colour.\"\n  model: sonnet\n\
                   output answer = session \"Say something about it.\"\n  model: sonnet\n  context: name\n";
    fs::write(folder.path().join("prose.toml"), config).map_err(problem)?;
    fs::write(folder.path().join("colour.prose"), program).map_err(problem)?;
    let output = folder.path().join("events.jsonl");
    let errors = folder.path().join("errors.txt");
    let mut prose = command(&variable("PROSE_BIN")?);
    prose
        .args(["run", "colour.prose", "--backend", "local", "--json"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(fs::File::create(&output).map_err(problem)?)
        .stderr(fs::File::create(&errors).map_err(problem)?);
    let mut child = prose.spawn().map_err(problem)?;
    let ended = wait(&mut child, LIMIT);
    let text = fs::read_to_string(&output).unwrap_or_default();
    let said = || {
        format!(
            "it ended with {ended:?}; errors: {}; events: {text}",
            fs::read_to_string(&errors).unwrap_or_default()
        )
    };
    if ended != Some(true) {
        return Err(said());
    }
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    // Each answer comes in pieces.
    if count("session_finished") != 2 || count("session_text") < 4 {
        return Err(said());
    }
    Ok(())
}

/// The model's server. It ends when this is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Result<Server, String> {
        let mut server = command(&variable("PROSE_NODE")?);
        server
            .arg(crate::root().join("tests/agents/local-model/server.mjs"))
            .arg(variable("PROSE_LOCAL_MODEL")?)
            .env("NODE_MODULES_OF", variable("PROSE_LOCAL_MODEL_PACKAGES")?)
            // It ends with its input, which is ours to close.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = server
            .spawn()
            .map_err(|error| format!("can't start the model: {error}"))?;
        let (send, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let mut server = Server {
            child,
            url: String::new(),
        };
        loop {
            let line = lines
                .recv_timeout(LIMIT)
                .map_err(|error| format!("the model was not loaded: {error}"))?;
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut server.url);
                return Ok(server);
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        wait(&mut self.child, Duration::from_secs(10));
    }
}

/// A program in an environment without the caller's variables, that leads a group of its own.
fn command(program: &PathBuf) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(std::env::var_os(MARK).map(|mark| (MARK, mark)))
        .process_group(0);
    command
}

fn variable(name: &str) -> Result<PathBuf, String> {
    std::env::var_os(name)
        .map(PathBuf::from)
        .ok_or_else(|| format!("{name} isn't set: `cargo xtask agents --only local-model` sets it"))
}
