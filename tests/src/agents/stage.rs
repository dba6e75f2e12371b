//! Where an agent runs: a folder to work in, a home that knows nothing but the mock model, and no variable of the caller's.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mock_model::{MockModel, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Agent;

/// The only key that the mock model lets in.
pub const KEY: &str = "sk-mock-0000-1111-2222-3333";
/// How long an agent may take for a run; only a hang takes longer.
const LIMIT: Duration = Duration::from_secs(600);
/// What the caller's own tool recognises its descendants by. The only variable that is passed on.
pub(super) const MARK: &str = "PROSE_XTASK_CHILD";

/// A stage for one run of an agent.
pub struct Stage {
    agent: Agent,
    /// The mock model.
    pub mock: MockModel,
    /// The folder the agent works in.
    pub work: PathBuf,
    pub(super) home: PathBuf,
    folder: TempDir,
}

/// What became of a run.
#[derive(Debug)]
pub struct Ended {
    /// Whether the exit code is 0.
    pub success: bool,
    /// What was printed.
    pub output: String,
    /// What was printed as errors.
    pub errors: String,
}

impl Stage {
    /// A stage with a mock model whose script may depend on the folder that is worked in.
    pub fn new(agent: Agent, script: impl FnOnce(&Path) -> Script) -> Result<Stage, String> {
        let problem = |error: std::io::Error| format!("can't set the stage: {error}");
        let folder = TempDir::new().map_err(problem)?;
        let root = folder.path().canonicalize().map_err(problem)?;
        let (work, home) = (root.join("work"), root.join("home"));
        fs::create_dir_all(&work).map_err(problem)?;
        fs::create_dir_all(&home).map_err(problem)?;
        let mock = MockModel::start_blocking(script(&work).key(KEY)).map_err(problem)?;
        let stage = Stage {
            agent,
            mock,
            work,
            home,
            folder,
        };
        stage.settings().map_err(problem)?;
        Ok(stage)
    }

    /// The agent's program in this stage.
    ///
    /// # Errors
    ///
    /// If nobody has said where the program is.
    pub fn command(&self, arguments: &[&str]) -> Result<Command, String> {
        let program = self.agent.program().ok_or_else(|| {
            format!(
                "{} isn't there: `cargo xtask agents` brings it",
                self.agent.name()
            )
        })?;
        let mut command = Command::new(program);
        self.prepare(&mut command, arguments);
        Ok(command)
    }

    fn prepare(&self, command: &mut Command, arguments: &[&str]) {
        command
            .args(arguments)
            .current_dir(&self.work)
            .env_clear()
            .envs(self.variables())
            .envs(std::env::var_os(MARK).map(|mark| (MARK, mark)))
            .process_group(0)
            .stdin(Stdio::null());
    }

    /// Runs the agent to its end.
    ///
    /// # Errors
    ///
    /// If it can't be started or takes too long.
    pub fn run(&self, arguments: &[&str]) -> Result<Ended, String> {
        self.run_to_end(self.command(arguments)?)
    }

    /// Runs `prose`, which lies beside the tests, to its end.
    ///
    /// # Errors
    ///
    /// If it can't be started or takes too long.
    pub fn run_prose(&self, arguments: &[&str]) -> Result<Ended, String> {
        self.run_to_end(self.prose(arguments)?)
    }

    /// The command for `prose` in this stage.
    ///
    /// # Errors
    ///
    /// If it can't be found.
    pub(super) fn prose(&self, arguments: &[&str]) -> Result<Command, String> {
        let here = std::env::current_exe().map_err(|error| format!("can't find prose: {error}"))?;
        let mut command = Command::new(here.with_file_name("prose"));
        self.prepare(&mut command, arguments);
        Ok(command)
    }

    fn run_to_end(&self, mut command: Command) -> Result<Ended, String> {
        let problem = |error: std::io::Error| format!("can't run {}: {error}", self.agent.name());
        // Files, because a pipe that is held open by a grandchild would never end.
        let (output, errors) = (self.folder.path().join("out"), self.folder.path().join("err"));
        let mut child = command
            .stdout(File::create(&output).map_err(problem)?)
            .stderr(File::create(&errors).map_err(problem)?)
            .spawn()
            .map_err(problem)?;
        let status = wait(&mut child, LIMIT);
        let ended = Ended {
            success: status == Some(true),
            output: fs::read_to_string(&output).unwrap_or_default(),
            errors: fs::read_to_string(&errors).unwrap_or_default(),
        };
        match status {
            Some(_) => Ok(ended),
            None => Err(format!("{} took over {LIMIT:?}: {ended:?}", self.agent.name())),
        }
    }

    /// What an agent that isn't a child of ours directly, such as one that a backend starts, has to find in its environment.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let home = self.home.display().to_string();
        let url = self.mock.url();
        let node = match self.agent {
            Agent::Openclaw => "PROSE_NEWER_NODE",
            _ => "PROSE_NODE",
        };
        let path = std::env::var(node)
            .ok()
            .and_then(|node| Some(Path::new(&node).parent()?.display().to_string()))
            .map_or_else(String::new, |folder| format!("{folder}:"));
        let mut all = vec![
            ("PATH", format!("{path}/usr/local/bin:/usr/bin:/bin")),
            ("TERM", "dumb".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
        ];
        let more: Vec<(&str, String)> = match self.agent {
            Agent::Claude | Agent::ClaudeAcp => vec![
                ("CLAUDE_CONFIG_DIR", format!("{home}/.claude")),
                ("ANTHROPIC_BASE_URL", url),
                ("ANTHROPIC_API_KEY", KEY.to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("DISABLE_TELEMETRY", "1".to_owned()),
                // It refuses to be lenient as root otherwise.
                ("IS_SANDBOX", "1".to_owned()),
            ],
            Agent::Codex | Agent::CodexAcp => vec![
                ("CODEX_HOME", format!("{home}/.codex")),
                ("MOCK_KEY", KEY.to_owned()),
            ],
            Agent::Gemini | Agent::GeminiAcp => vec![
                ("GEMINI_API_KEY", KEY.to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", url),
                ("GEMINI_TELEMETRY_ENABLED", "false".to_owned()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ],
            Agent::Opencode | Agent::OpencodeAcp => vec![
                ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
                ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ],
            Agent::Openclaw => [
                "OPENCLAW_SKIP_CHANNELS",
                "OPENCLAW_SKIP_CRON",
                "OPENCLAW_DISABLE_BONJOUR",
                "OPENCLAW_NO_RESPAWN",
                "OPENCLAW_NO_AUTO_UPDATE",
            ]
            .map(|name| (name, "1".to_owned()))
            .to_vec(),
        };
        all.push(("HOME", home));
        all.extend(more);
        all
    }

    /// Writes the settings that can't be said by variables.
    fn settings(&self) -> std::io::Result<()> {
        let url = self.mock.url();
        match self.agent {
            // That of a gateway depends on its port.
            Agent::Claude | Agent::ClaudeAcp | Agent::Openclaw => Ok(()),
            Agent::Codex | Agent::CodexAcp => {
                let text = format!(
                    "model = \"mock\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n\
                     [model_providers.mock]\nname = \"mock\"\nbase_url = \"{url}/v1\"\nenv_key = \"MOCK_KEY\"\n\
                     wire_api = \"responses\"\n"
                );
                self.write(".codex/config.toml", &text)
            }
            Agent::Gemini | Agent::GeminiAcp => self.write_json(
                ".gemini/settings.json",
                &json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}},
                    "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
                }),
            ),
            Agent::Opencode | Agent::OpencodeAcp => self.write_json(
                ".config/opencode/opencode.json",
                &json!({
                    "model": "mock/mock",
                    "small_model": "mock/mock",
                    "autoupdate": false,
                    "share": "disabled",
                    "provider": {"mock": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "mock",
                        "options": {"baseURL": format!("{url}/v1"), "apiKey": KEY},
                        "models": {"mock": {"name": "mock"}, "small": {"name": "small"}},
                    }},
                }),
            ),
        }
    }

    pub(super) fn write_json(&self, path: &str, value: &Value) -> std::io::Result<()> {
        self.write(path, &value.to_string())
    }

    fn write(&self, path: &str, text: &str) -> std::io::Result<()> {
        let file = self.home.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text)
    }
}

/// Waits for a child that leads a group of its own; ends the group at the limit. Whether it succeeded, if it ended by itself.
pub(super) fn wait(child: &mut Child, limit: Duration) -> Option<bool> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                if let Some(process) = prose_agents::process::identify(child.id()) {
                    prose_agents::process::end(&[process], Duration::from_secs(2));
                }
                // It is gone now, or can't be waited for.
                let _ = child.try_wait();
                return None;
            }
        }
    }
}
