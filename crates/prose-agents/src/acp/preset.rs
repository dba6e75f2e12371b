//! What is known about some agents: how they are started, what they read, in which mode they ask before they act.

use std::path::{Path, PathBuf};

use prose_model::backend::{BackendSpec, Variables};
use serde_json::{Value as Json, json};

use super::own::Reports;
use crate::api::{keeps_secrets, unsafe_address};
use crate::child::Environment;
use crate::claude;
use crate::mcp;
use crate::origin::{keys_for, led_by_project, stays};
use crate::policy::Policy;

/// Modes in which agents that nothing is known about ask before they act; the first that is offered is taken.
const ASKING_MODES: &[&str] = &["default", "ask", "manual", "read-only", "normal"];

/// What OpenCode asks before it does it; of several entries that are for a tool the last one counts.
const OPENCODE_PERMISSION: &str = "OPENCODE_PERMISSION";
const OPENCODE_RULES: &str =
    r#"{"*":"ask","todowrite":"allow","todoread":"allow","task":"deny","skill":"deny","question":"deny"}"#;

/// An agent that is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preset {
    /// By which name it is asked for: `command = "NAME"`.
    pub(super) name: &'static str,
    /// Its program.
    program: &'static str,
    /// Whether it knows `--version`: what does not would start to speak the protocol.
    tells_version: bool,
    /// What makes the program speak the protocol.
    args: &'static [&'static str],
    /// Its package, as `npx` names it.
    package: &'static str,
    /// The modes in which it asks, best first.
    modes: &'static [&'static str],
    /// Variables that it reads: keys, addresses, places.
    variables: &'static [&'static str],
    /// How it has to behave where nobody sits in front of it.
    fixed: &'static [(&'static str, &'static str)],
    /// Variables that may hold its key, with the way to log in that reads it.
    keys: &'static [(&'static str, &'static str)],
    /// The variable that holds the address of its service.
    address: Option<&'static str>,
    /// All variables that say where its service is, or where what says so lies.
    leads: &'static [&'static str],
    /// How its user logs in.
    login: &'static str,
    /// How it reports calls of tools that a server gives it.
    reports: Reports,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "claude",
        program: "claude-agent-acp",
        tells_version: false,
        args: &[],
        package: "@agentclientprotocol/claude-agent-acp",
        modes: &["default"],
        variables: claude::OWN_VARIABLES,
        fixed: claude::FIXED_VARIABLES,
        keys: &[(claude::KEY, "")],
        address: Some("ANTHROPIC_BASE_URL"),
        leads: claude::LEADS,
        login: "start `claude` once to log in, or set ANTHROPIC_API_KEY",
        reports: Reports::ClaudeName,
    },
    Preset {
        name: "codex",
        program: "codex-acp",
        tells_version: false,
        args: &[],
        package: "@agentclientprotocol/codex-acp",
        // In all others files are written without a question.
        modes: &["read-only"],
        variables: &["CODEX_HOME", "OPENAI_BASE_URL"],
        // A server of the same name in its user's settings would be taken for that of the session.
        fixed: &[("DISABLE_MCP_CONFIG_FILTERING", "true")],
        keys: &[("OPENAI_API_KEY", "api-key"), ("CODEX_API_KEY", "api-key")],
        address: Some("OPENAI_BASE_URL"),
        leads: &["OPENAI_BASE_URL", "CODEX_HOME"],
        login: "run `codex login`, or set OPENAI_API_KEY",
        reports: Reports::CodexInput,
    },
    Preset {
        name: "gemini",
        program: "gemini",
        tells_version: true,
        args: &["--acp"],
        package: "@google/gemini-cli",
        modes: &["default"],
        variables: &[
            "GEMINI_CLI_HOME",
            "GEMINI_CLI_TRUST_WORKSPACE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_GENAI_USE_GCA",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        fixed: &[("GEMINI_TELEMETRY_ENABLED", "false")],
        keys: &[
            ("GEMINI_API_KEY", "gemini-api-key"),
            ("GOOGLE_API_KEY", "vertex-ai"),
        ],
        address: Some("GOOGLE_GEMINI_BASE_URL"),
        leads: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"],
        login: "start `gemini` once to log in, or set GEMINI_API_KEY",
        reports: Reports::GeminiTitle,
    },
    Preset {
        name: "opencode",
        program: "opencode",
        tells_version: true,
        args: &["acp"],
        package: "opencode-ai",
        modes: &["build"],
        variables: &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
        ],
        fixed: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            // IMPORTANT: it asks for nothing by itself.
            (OPENCODE_PERMISSION, OPENCODE_RULES),
            // A no is an answer, and not the end of its turn.
            (
                "OPENCODE_CONFIG_CONTENT",
                r#"{"experimental":{"continue_loop_on_deny":true},"share":"disabled"}"#,
            ),
        ],
        keys: &[
            ("ANTHROPIC_API_KEY", ""),
            ("GEMINI_API_KEY", ""),
            ("OPENAI_API_KEY", ""),
            ("OPENCODE_API_KEY", ""),
            ("OPENROUTER_API_KEY", ""),
        ],
        address: None,
        leads: &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"],
        login: "run `opencode auth login`",
        reports: Reports::Never,
    },
];

/// The names of the agents that are known.
pub(super) fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}

/// What to start, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Agent {
    /// The program, as it is looked for.
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    preset: Option<&'static Preset>,
}

impl Agent {
    /// The agent that configuration names; none when it names none.
    pub(super) fn of(spec: &BackendSpec) -> Option<Agent> {
        let command = spec.command.as_deref()?;
        let given = spec.args.as_deref().unwrap_or_default();
        let named = PRESETS.iter().find(|preset| preset.name == command);
        let file = Path::new(command).file_stem();
        let known = named
            .or_else(|| {
                PRESETS
                    .iter()
                    .find(|preset| file == Some(preset.program.as_ref()))
            })
            .or_else(|| PRESETS.iter().find(|preset| preset.is_started_by(given)));
        Some(Agent {
            program: PathBuf::from(named.map_or(command, |preset| preset.program)),
            args: match (&spec.args, known) {
                (Some(args), _) => args.clone(),
                (None, Some(preset)) => preset.args.iter().map(|arg| (*arg).to_owned()).collect(),
                (None, None) => Vec::new(),
            },
            preset: known,
        })
    }

    /// The name for messages.
    pub(super) fn name(&self) -> String {
        match self.preset {
            Some(preset) => preset.program.to_owned(),
            None => self.program.display().to_string(),
        }
    }

    /// How to get it.
    pub(super) fn setup(&self) -> String {
        match self.preset {
            Some(preset) => format!("`npm install -g {}`, then {}", preset.package, preset.login),
            None => super::SETUP.to_owned(),
        }
    }

    /// How its user logs in.
    pub(super) fn login(&self) -> &'static str {
        self.preset
            .map_or("log in with the agent's own program", |preset| preset.login)
    }

    /// All the variables that it sees; the text says what can't be done.
    pub(super) fn environment(
        &self,
        spec: &BackendSpec,
        variables: &Variables,
    ) -> Result<Environment, String> {
        let mut environment = Environment::basic(variables);
        let lead = match (self.preset, &spec.base_url) {
            (Some(preset), None) => preset.lead(variables)?,
            _ => None,
        };
        if let Some(preset) = self.preset {
            for name in preset.variables {
                if !claude::is_of_another_address(name, spec, variables, lead) {
                    environment.take(variables, &[name]);
                }
            }
            let keys = preset.keys.iter().map(|(name, _)| *name);
            let given = match (&spec.base_url, lead) {
                (Some(_), _) => Vec::new(),
                (None, Some(_)) if spec.api_key_env.is_some() => Vec::new(),
                (None, Some(lead)) => keys_for(variables, lead, keys.clone())?,
                (None, None) => keys.clone().collect(),
            };
            if given.is_empty() {
                // Something has to be sent, or the agent sends its login.
                keys.for_each(|name| environment.set(name, claude::NO_KEY));
            }
            environment.take(variables, &given);
        }
        if let (Some(name), Some(lead)) = (&spec.api_key_env, lead)
            && !variables.is_of_project(name)
        {
            return Err(stays(name, lead));
        }
        if let (Some(name), Some(url)) = (&spec.api_key_env, &spec.base_url)
            && !keeps_secrets(url)
        {
            return Err(unsafe_address(name));
        }
        if let Some(name) = &spec.api_key_env {
            let key = variables
                .get(name)
                .ok_or_else(|| format!("the variable {name}, which `api_key_env` names, is not set"))?;
            // Under its own name, too: an agent's own settings may know it by that.
            environment.set(name, key);
            if let Some((known, _)) = self.preset.and_then(|preset| preset.keys.first()) {
                environment.set(known, key);
            }
        }
        if let Some(url) = &spec.base_url {
            let name = self.preset.and_then(|preset| preset.address).ok_or(
                "`base_url` can't be handed to this agent: set the address in the agent's own settings",
            )?;
            environment.set(name, url);
        }
        for (name, value) in self.preset.iter().flat_map(|preset| preset.fixed) {
            environment.set(name, value);
        }
        Ok(environment)
    }

    /// How it reports calls of tools that a server gives it. Nothing is known of others.
    pub(super) fn reports(&self) -> Reports {
        self.preset.map_or(Reports::Never, |preset| preset.reports)
    }

    /// Its variables where a session has tools of its own, for which it is not to ask.
    pub(super) fn with_own_tools(&self, environment: &Environment) -> Environment {
        let mut environment = environment.clone();
        if environment.get(OPENCODE_PERMISSION) == Some(OPENCODE_RULES) {
            let allowed = mcp::TOOLS
                .iter()
                .map(|tool| format!(r#","{}_{tool}":"allow""#, mcp::SERVER));
            let rules = OPENCODE_RULES.trim_end_matches('}').to_owned() + &allowed.collect::<String>() + "}";
            environment.set(OPENCODE_PERMISSION, &rules);
        }
        environment
    }

    /// What makes the program tell its version and end; none where that is not known of it.
    pub(super) fn version_arguments(&self) -> Option<Vec<String>> {
        let preset = self.preset.filter(|preset| preset.tells_version)?;
        let own = self.program.file_stem() == Some(preset.program.as_ref());
        own.then(|| vec!["--version".to_owned()])
    }

    /// The names of variables that may hold a key.
    pub(super) fn key_names(&self) -> Vec<&'static str> {
        let keys = self.preset.map_or(&[][..], |preset| preset.keys);
        keys.iter().map(|(name, _)| *name).collect()
    }

    /// The way to log in by a key that it has, of those that it offers.
    pub(super) fn key_login(&self, environment: &Environment, offered: &[String]) -> Option<&'static str> {
        let keys = self.preset?.keys.iter();
        let ways = keys.filter(|(name, way)| !way.is_empty() && environment.get(name).is_some());
        ways.map(|(_, way)| *way)
            .find(|way| offered.iter().any(|offered| offered == way))
    }

    /// The modes in which it asks before it acts, best first.
    pub(super) fn modes(&self) -> &'static [&'static str] {
        self.preset.map_or(ASKING_MODES, |preset| preset.modes)
    }

    /// What a new session is told beyond the protocol. Without a policy it is to have no tools.
    pub(super) fn session_meta(&self, policy: Option<&Policy>) -> Option<Json> {
        if self.preset?.name != "claude" {
            return None;
        }
        let tools = policy.map(claude::permit::tools).unwrap_or_default();
        // Nothing of what its user has set up for himself, and a question before each use of a tool.
        Some(json!({"claudeCode": {"options": {
            "settingSources": [],
            "tools": tools,
            "disallowedTools": claude::permit::REFUSED,
            "settings": {"permissions": {"ask": tools}},
            "strictMcpConfig": true,
        }}}))
    }
}

impl Preset {
    /// The variable by which `.prose/.env` leads to another address.
    fn lead(&self, variables: &Variables) -> Result<Option<&'static str>, String> {
        match self.name {
            "claude" => claude::lead(variables),
            _ => Ok(led_by_project(variables, self.leads)),
        }
    }

    /// Whether these are arguments of a program that fetches and starts its package.
    fn is_started_by(&self, args: &[String]) -> bool {
        args.iter().any(|arg| {
            arg.strip_prefix(self.package)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn agent(command: &str, args: Option<&[&str]>) -> (String, String, Option<&'static str>) {
        let agent = Agent::of(&BackendSpec {
            command: Some(command.to_owned()),
            args: args.map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()),
            ..BackendSpec::default()
        })
        .unwrap();
        (
            agent.program.display().to_string(),
            agent.args.join(" "),
            agent.preset.map(|preset| preset.name),
        )
    }

    #[test]
    fn agents_are_known_by_name_program_and_package() {
        let is = |program: &str, args: &str, name| (program.to_owned(), args.to_owned(), name);
        assert_eq!(agent("claude", None), is("claude-agent-acp", "", Some("claude")));
        assert_eq!(agent("codex", None), is("codex-acp", "", Some("codex")));
        assert_eq!(agent("gemini", None), is("gemini", "--acp", Some("gemini")));
        assert_eq!(
            agent("/opt/bin/opencode", None),
            is("/opt/bin/opencode", "acp", Some("opencode"))
        );
        assert_eq!(
            agent("gemini", Some(&["--acp", "--debug"])),
            is("gemini", "--acp --debug", Some("gemini"))
        );
        assert_eq!(
            agent("npx", Some(&["-y", "@agentclientprotocol/codex-acp@2.6"])),
            is("npx", "-y @agentclientprotocol/codex-acp@2.6", Some("codex"))
        );
        // The command line of Claude Code does not speak the protocol.
        assert_eq!(agent("/opt/bin/claude", None), is("/opt/bin/claude", "", None));
        assert_eq!(agent("my-agent", Some(&["acp"])), is("my-agent", "acp", None));
    }

    #[test]
    fn keys_of_the_environment_do_not_go_where_a_project_leads() {
        let led = |command: &str, lead: &str, key: Option<&str>, file: &[(&str, &str)]| {
            let spec = BackendSpec {
                command: Some(command.to_owned()),
                api_key_env: key.map(ToOwned::to_owned),
                ..BackendSpec::default()
            };
            let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
                let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
                pairs.iter().map(owned).collect()
            };
            let process = [
                ("ANTHROPIC_API_KEY", "of-anthropic"),
                ("CLAUDE_CODE_OAUTH_TOKEN", "a-login"),
                ("OPENAI_API_KEY", "of-openai"),
                ("GEMINI_API_KEY", "of-google"),
                ("GOOGLE_APPLICATION_CREDENTIALS", "a-file"),
                ("MINE", "mine"),
            ];
            let mut file = owned(file);
            file.insert(lead.to_owned(), "https://elsewhere.example".to_owned());
            Agent::of(&spec)
                .unwrap()
                .environment(&spec, &Variables::new(owned(&process), file))
        };
        for (command, lead, key) in [
            ("claude", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
            ("codex", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
            ("codex", "CODEX_HOME", "OPENAI_API_KEY"),
            ("gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
        ] {
            let why = led(command, lead, None, &[]).unwrap_err();
            assert!(why.contains(lead) && why.contains(key), "{why}");
            let why = led(command, lead, Some("MINE"), &[]).unwrap_err();
            assert!(why.contains(lead) && why.contains("MINE"), "{why}");
            let of_project = led(command, lead, None, &[(key, "of-the-project")]).unwrap();
            assert_eq!(of_project.get(key), Some("of-the-project"), "{command}");
            let named = led(command, lead, Some("MINE"), &[("MINE", "theirs")]).unwrap();
            assert_eq!(named.get(key), Some("theirs"), "{command}");
            for environment in [of_project, named] {
                assert_eq!(environment.get("CLAUDE_CODE_OAUTH_TOKEN"), None, "{command}");
                assert_eq!(
                    environment.get("GOOGLE_APPLICATION_CREDENTIALS"),
                    None,
                    "{command}"
                );
            }
        }
        let cloud = led(
            "claude",
            "ANTHROPIC_VERTEX_BASE_URL",
            None,
            &[("ANTHROPIC_API_KEY", "x")],
        );
        assert!(cloud.is_err_and(|why| why.contains("counts only in the environment")));
    }

    fn environment(command: &str, base_url: Option<&str>, key: Option<&str>) -> Result<Environment, String> {
        let spec = BackendSpec {
            command: Some(command.to_owned()),
            base_url: base_url.map(ToOwned::to_owned),
            api_key_env: key.map(ToOwned::to_owned),
            ..BackendSpec::default()
        };
        let variables = [
            ("ANTHROPIC_API_KEY", "of-anthropic"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "a-login"),
            ("OPENAI_API_KEY", "of-openai"),
            ("MINE", "mine"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = Variables::new(BTreeMap::from(variables), BTreeMap::new());
        Agent::of(&spec).unwrap().environment(&spec, &variables)
    }

    #[test]
    fn keys_and_logins_go_to_no_address_but_their_own() {
        let own = environment("claude", None, None).unwrap();
        assert_eq!(own.get("ANTHROPIC_API_KEY"), Some("of-anthropic"));
        assert_eq!(own.get("CLAUDE_CODE_OAUTH_TOKEN"), Some("a-login"));
        for (command, name) in [("claude", "ANTHROPIC_API_KEY"), ("codex", "OPENAI_API_KEY")] {
            let other = environment(command, Some("http://127.0.0.1:1"), None).unwrap();
            assert_eq!(other.get(name), Some("none"), "{command}");
            assert_eq!(other.get("CLAUDE_CODE_OAUTH_TOKEN"), None, "{command}");
            let named = environment(command, Some("https://gateway.example"), Some("MINE")).unwrap();
            assert_eq!(named.get(name), Some("mine"), "{command}");
        }
        let open = environment("claude", Some("http://gateway.example"), Some("MINE"));
        assert!(open.is_err_and(|why| why.contains("MINE")));
    }
}
