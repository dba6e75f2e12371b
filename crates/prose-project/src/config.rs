//! Configuration: `prose.toml` of the workspace, then that of the user, then the environment. Of a setting that several
//! places have, the first place's counts.

mod read;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use prose_model::backend::{BackendCatalog, BackendSpec, Price, Variables, Waits};
use prose_model::codes::Severity;

use crate::env::Environment;

/// All settings, merged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// `[run]`
    pub run: RunConfig,
    /// `[models]`
    pub models: Models,
    /// `[backends.NAME]`, by name.
    pub backends: IndexMap<String, BackendConfig>,
    /// `[lint]`: code → level.
    pub lint: IndexMap<String, LintLevel>,
    /// `[imports]`
    pub imports: ImportsConfig,
    /// What backends may read: keys and paths.
    pub variables: Variables,
    /// What was passed over, and where: unknown keys, and what an untrusted workspace may not set.
    pub notices: Vec<Notice>,
}

/// `[run]`: defaults of the options of `prose run`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunConfig {
    /// Name of a backend.
    pub backend: Option<String>,
    /// Where that name is from: a file with the line, or a variable.
    pub backend_origin: Option<String>,
    /// Where state is kept.
    pub state: Option<StateKind>,
    /// At most so many sessions at once; at least 1.
    pub max_parallel: Option<u32>,
    /// Total time for one session.
    pub timeout: Option<Duration>,
    /// A session that reports nothing for so long has failed.
    pub idle_timeout: Option<Duration>,
    /// US dollars for a run.
    pub budget_usd: Option<f64>,
    /// Tokens for a run, in and out.
    pub budget_tokens: Option<u64>,
}

/// `[models]`: what a program's model names mean to backends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Models {
    /// `[models] sonnet = "…"`: for every backend.
    pub any: IndexMap<String, String>,
    /// `[models.BACKEND] sonnet = "…"`: for one.
    pub by_backend: IndexMap<String, IndexMap<String, String>>,
}

/// `[backends.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct BackendConfig {
    /// What it is; the table's name where absent, if that is a kind.
    pub kind: BackendKind,
    /// Where the table is: a file with the line.
    pub origin: String,
    /// The program to start.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Where the service is.
    pub base_url: Option<String>,
    /// The variable that holds the key, in `.prose/.env` or the environment.
    pub api_key_env: Option<String>,
    /// `connect_timeout`, `first_token_timeout`, `idle_timeout`: how long a service is waited for.
    pub waits: Waits,
    /// `[backends.NAME.prices]`: what models cost, by the backend's id.
    pub prices: IndexMap<String, Price>,
}

/// `[imports]`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportsConfig {
    /// Whether only locked content may be used.
    pub frozen: Option<bool>,
    /// Address of the registry for `handle/slug`.
    pub registry: Option<String>,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }
        impl $name {
            /// Every word, in the order of the documentation.
            pub const WORDS: &[&str] = &[$($word),+];
            /// What the word means, if it is one.
            pub fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
            /// The word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Where the state of runs is kept.
    StateKind {
        /// `.prose/runs/`
        Filesystem = "filesystem",
        /// The process alone.
        InContext = "in-context",
        /// A database file.
        Sqlite = "sqlite",
        /// A database server.
        Postgres = "postgres",
    }
}

words! {
    /// Kinds of backend.
    BackendKind {
        /// The `claude` command line.
        Claude = "claude",
        /// Any agent that speaks the Agent Client Protocol.
        Acp = "acp",
        /// The Anthropic API.
        Anthropic = "anthropic",
        /// The OpenAI API, or one like it.
        OpenAi = "openai",
        /// OpenClaw.
        OpenClaw = "openclaw",
        /// Made-up answers.
        Simulate = "simulate",
        /// Recorded answers.
        Replay = "replay",
    }
}

words! {
    /// What `[lint]` makes of a code.
    LintLevel {
        /// The program can't run.
        Error = "error",
        /// Reported.
        Warning = "warning",
        /// Shown in an editor.
        Hint = "hint",
        /// Not reported.
        Off = "off",
    }
}

impl LintLevel {
    /// The severity that it gives a code; none when that is off.
    pub fn severity(self) -> Option<Severity> {
        match self {
            LintLevel::Error => Some(Severity::Error),
            LintLevel::Warning => Some(Severity::Warning),
            LintLevel::Hint => Some(Severity::Hint),
            LintLevel::Off => None,
        }
    }
}

/// Whether a workspace's own `prose.toml` may say what is started and where data is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user has said so, or started the command there.
    Trusted,
    /// It was only opened.
    Untrusted,
}

/// Something in a configuration that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The file, or none for the environment.
    pub path: Option<PathBuf>,
    /// From 1; 0 for the environment.
    pub line: u32,
    /// What, and why.
    pub message: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}:{}: {}", path.display(), self.line, self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// A configuration that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file can't be read.
    #[error("can't read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file isn't TOML.
    #[error("{}:{line}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// A setting has a value that it can't have.
    #[error("{}:{line}: `{key}` must be {expected}, not {found}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u32,
        /// The setting, as in `run.max_parallel`.
        key: String,
        /// What it can be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A variable has a value that it can't have.
    #[error("the environment variable {name} must be {expected}, not {found:?}")]
    Variable {
        /// The variable.
        name: String,
        /// What it can be.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl Config {
    /// Reads and merges `{root}/prose.toml`, the user's file, and variables: `OPENPROSE_BACKEND`, `OPENPROSE_STATE`,
    /// `OPENPROSE_MAX_PARALLEL`, `OPENPROSE_TIMEOUT`, `OPENPROSE_IDLE_TIMEOUT`,
    /// `OPENPROSE_BUDGET_USD`, `OPENPROSE_BUDGET_TOKENS`. Files that don't exist are no error.
    pub fn load(
        root: &Path,
        trust: Trust,
        user_file: Option<&Path>,
        environment: &Environment,
    ) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        if let Some(workspace) = Config::read(&root.join("prose.toml"), trust)? {
            config.merge(workspace);
        }
        if let Some(path) = user_file
            && let Some(user) = Config::read(path, Trust::Trusted)?
        {
            config.merge(user);
        }
        config.merge(Config::of_environment(environment)?);
        config.variables = environment.variables();
        Ok(config)
    }

    /// What backends need to know.
    pub fn catalog(&self) -> BackendCatalog {
        let spec = |(name, backend): (&String, &BackendConfig)| {
            let mut models = self.models.by_backend.get(name).cloned().unwrap_or_default();
            for (model, id) in &self.models.any {
                models.entry(model.clone()).or_insert_with(|| id.clone());
            }
            let spec = BackendSpec {
                name: name.clone(),
                kind: backend.kind.as_str().to_owned(),
                origin: Some(backend.origin.clone()),
                command: backend.command.clone(),
                args: backend.args.clone(),
                base_url: backend.base_url.clone(),
                api_key_env: backend.api_key_env.clone(),
                models,
                waits: backend.waits,
                prices: backend.prices.clone(),
            };
            (name.clone(), spec)
        };
        BackendCatalog {
            specs: self.backends.iter().map(spec).collect(),
            models: self.models.any.clone(),
            models_of: self.models.by_backend.clone(),
            variables: self.variables.clone(),
        }
    }

    /// The user's configuration file, `prose/config.toml` in the user's configuration folder; it need not exist.
    pub fn user_file() -> Option<PathBuf> {
        directories::ProjectDirs::from("", "", "prose").map(|dirs| dirs.config_dir().join("config.toml"))
    }

    /// Reads one file; none when there is none.
    pub fn read(path: &Path, trust: Trust) -> Result<Option<Config>, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(path, &text, trust).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Io {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Reads the text of a file.
    pub fn parse(path: &Path, text: &str, trust: Trust) -> Result<Config, ConfigError> {
        read::parse(path, text, trust)
    }

    /// The severity of a code under `[lint]`: none when it is off.
    pub fn severity(&self, code: &str, default: Severity) -> Option<Severity> {
        self.lint
            .get(code)
            .map_or(Some(default), |level| level.severity())
    }

    /// Takes over what is not set yet.
    fn merge(&mut self, other: Config) {
        let run = &mut self.run;
        if run.backend.is_none() {
            (run.backend, run.backend_origin) = (other.run.backend, other.run.backend_origin);
        }
        run.state = run.state.or(other.run.state);
        run.max_parallel = run.max_parallel.or(other.run.max_parallel);
        run.timeout = run.timeout.or(other.run.timeout);
        run.idle_timeout = run.idle_timeout.or(other.run.idle_timeout);
        run.budget_usd = run.budget_usd.or(other.run.budget_usd);
        run.budget_tokens = run.budget_tokens.or(other.run.budget_tokens);
        add_missing(&mut self.models.any, other.models.any);
        for (backend, models) in other.models.by_backend {
            add_missing(self.models.by_backend.entry(backend).or_default(), models);
        }
        // A backend is taken as a whole: half of one place's and half of another's fit together by chance only.
        add_missing(&mut self.backends, other.backends);
        add_missing(&mut self.lint, other.lint);
        self.imports.frozen = self.imports.frozen.or(other.imports.frozen);
        self.imports.registry = self.imports.registry.take().or(other.imports.registry);
        self.notices.extend(other.notices);
    }

    fn of_environment(environment: &Environment) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let bad = |name: &str, expected: &str, found: &str| ConfigError::Variable {
            name: name.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        };
        let get = |name: &'static str| environment.get(name).map(|value| (name, value));
        if let Some((name, value)) = get("OPENPROSE_BACKEND") {
            config.run.backend = Some(value.to_owned());
            config.run.backend_origin = Some(name.to_owned());
        }
        if let Some((name, value)) = get("OPENPROSE_STATE") {
            let state =
                StateKind::from_word(value).ok_or_else(|| bad(name, &one_of(StateKind::WORDS), value))?;
            config.run.state = Some(state);
        }
        if let Some((name, value)) = get("OPENPROSE_MAX_PARALLEL") {
            let count = value.parse().ok().filter(|count| *count > 0);
            config.run.max_parallel = Some(count.ok_or_else(|| bad(name, MAX_PARALLEL, value))?);
        }
        if let Some((name, value)) = get("OPENPROSE_TIMEOUT") {
            let timeout = parse_duration(value).ok_or_else(|| bad(name, DURATION, value))?;
            config.run.timeout = Some(timeout);
        }
        if let Some((name, value)) = get("OPENPROSE_IDLE_TIMEOUT") {
            let timeout = parse_duration(value).ok_or_else(|| bad(name, DURATION, value))?;
            config.run.idle_timeout = Some(timeout);
        }
        if let Some((name, value)) = get("OPENPROSE_BUDGET_TOKENS") {
            let tokens = value.parse().ok();
            config.run.budget_tokens = Some(tokens.ok_or_else(|| bad(name, TOKENS, value))?);
        }
        if let Some((name, value)) = get("OPENPROSE_BUDGET_USD") {
            let budget = value
                .parse()
                .ok()
                .filter(|budget: &f64| budget.is_finite() && *budget >= 0.0);
            config.run.budget_usd = Some(budget.ok_or_else(|| bad(name, BUDGET, value))?);
        }
        Ok(config)
    }
}

/// A length of time as a person writes it: `90s`, `10m`, `1h 30m`, `500ms`. More than zero; a bare number is refused.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.trim().parse().ok()?;
    Duration::try_from(span)
        .ok()
        .filter(|duration| !duration.is_zero())
}

const MAX_PARALLEL: &str = "a whole number from 1 on";
const DURATION: &str = "a length of time such as \"90s\" or \"10m\"";
const TOKENS: &str = "a whole number of tokens";
const BUDGET: &str = "a number of US dollars from 0 on";

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

fn add_missing<V>(to: &mut IndexMap<String, V>, from: IndexMap<String, V>) {
    for (key, value) in from {
        to.entry(key).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
[run]
backend = "work"
state = "filesystem"
max_parallel = 4
timeout = "10m"
budget_usd = 2

[models]
sonnet = "general"
[models.work]
sonnet = "special"

[backends.work]
kind = "acp"
command = "agent"
args = ["--acp"]
api_key_env = "KEY"

[backends.openai]
base_url = "http://localhost:1234/v1"
first_token_timeout = "20m"
[backends.openai.prices."my-model"]
input = 1
output = 2.5

[lint]
L401 = "warning"
w007 = "off"

[imports]
frozen = true
"#;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of(&[], variables)
    }

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("prose.toml"), text, Trust::Trusted)
    }

    #[test]
    fn every_setting_is_read() {
        let config = parse(FULL).unwrap();
        assert_eq!(config.run.backend.as_deref(), Some("work"));
        assert_eq!(config.run.state, Some(StateKind::Filesystem));
        assert_eq!(config.run.max_parallel, Some(4));
        assert_eq!(config.run.timeout, Some(Duration::from_secs(600)));
        assert_eq!(config.run.budget_usd, Some(2.0));
        let catalog = config.catalog();
        let model = |backend: &str, name: &str| catalog.spec(backend).models.get(name).cloned();
        assert_eq!(model("work", "sonnet").as_deref(), Some("special"));
        assert_eq!(model("openai", "sonnet").as_deref(), Some("general"));
        assert_eq!(model("not configured", "sonnet").as_deref(), Some("general"));
        assert_eq!(model("work", "opus"), None);
        let work = catalog.spec("work");
        assert_eq!(
            (work.kind.as_str(), work.api_key_env.as_deref()),
            ("acp", Some("KEY"))
        );
        assert_eq!(catalog.spec("claude").kind, "claude");
        assert_eq!(
            config.backends["work"].args.as_deref(),
            Some(["--acp".to_owned()].as_slice())
        );
        assert_eq!(config.backends["openai"].kind, BackendKind::OpenAi);
        let openai = catalog.spec("openai");
        assert_eq!(openai.waits.first_token, Some(Duration::from_secs(1200)));
        assert_eq!(openai.waits.idle, None);
        let price = openai.prices["my-model"];
        assert_eq!((price.input, price.output, price.cached_input), (1.0, 2.5, None));
        assert_eq!(config.severity("L401", Severity::Hint), Some(Severity::Warning));
        assert_eq!(config.severity("W007", Severity::Hint), None);
        assert_eq!(config.severity("E001", Severity::Error), Some(Severity::Error));
        assert_eq!(config.imports.frozen, Some(true));
        assert_eq!(config.notices, []);
    }

    #[test]
    fn the_first_place_counts() {
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().join("user.toml");
        std::fs::write(
            dir.path().join("prose.toml"),
            "[run]\nbackend = \"workspace\"\n[backends.x]\nkind = \"acp\"\n",
        )
        .unwrap();
        std::fs::write(
            &user,
            "[run]\nbackend = \"user\"\ntimeout = \"1s\"\n[backends.x]\nkind = \"claude\"\ncommand = \"c\"\n[lint]\nL401 = \"off\"\n",
        )
        .unwrap();
        let variables = [
            ("OPENPROSE_BACKEND", "env"),
            ("OPENPROSE_TIMEOUT", "2s"),
            ("OPENPROSE_MAX_PARALLEL", "3"),
        ];
        let config = Config::load(dir.path(), Trust::Trusted, Some(&user), &environment(&variables)).unwrap();
        assert_eq!(config.run.backend.as_deref(), Some("workspace"));
        assert_eq!(config.run.timeout, Some(Duration::from_secs(1)));
        assert_eq!(config.run.max_parallel, Some(3));
        assert_eq!(
            (config.backends["x"].kind, &config.backends["x"].command),
            (BackendKind::Acp, &None)
        );
        assert_eq!(config.lint["L401"], LintLevel::Off);
        let nothing = dir.path().join("nothing");
        let config =
            Config::load(&nothing, Trust::Trusted, Some(&nothing), &environment(&variables)).unwrap();
        assert_eq!(config.run.backend.as_deref(), Some("env"));
    }

    #[test]
    fn an_untrusted_workspace_starts_and_sends_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let user = dir.path().join("user.toml");
        std::fs::write(dir.path().join("prose.toml"), FULL).unwrap();
        std::fs::write(&user, "[backends.work]\nkind = \"claude\"\n").unwrap();
        let config = Config::load(dir.path(), Trust::Untrusted, Some(&user), &environment(&[])).unwrap();
        assert_eq!(config.run.backend.as_deref(), Some("work"));
        assert_eq!(
            config.backends["work"].kind,
            BackendKind::Claude,
            "the user's, not a torso of the workspace's"
        );
        assert!(!config.backends.contains_key("openai"));
        let notices: Vec<String> = config
            .notices
            .iter()
            .map(|it| format!("{}: {}", it.line, it.message))
            .collect();
        assert_eq!(
            notices,
            [
                "14: `backends.work` is ignored: a workspace that isn't trusted can't set `command`, `args`, `api_key_env`",
                "20: `backends.openai` is ignored: a workspace that isn't trusted can't set `base_url`",
            ]
        );
    }

    #[test]
    fn errors_name_file_line_and_what_is_expected() {
        let check = |text: &str, message: &str| {
            let error = parse(text).unwrap_err().to_string();
            assert_eq!(error, message, "{text}");
        };
        check(
            "[run]\nstate = \"disk\"",
            "prose.toml:2: `run.state` must be one of \"filesystem\", \"in-context\", \"sqlite\", \"postgres\", not \"disk\"",
        );
        check(
            "[run]\n\nmax_parallel = 0",
            "prose.toml:3: `run.max_parallel` must be a whole number from 1 on, not 0",
        );
        check(
            "[run]\nmax_parallel = 1.5",
            "prose.toml:2: `run.max_parallel` must be a whole number from 1 on, not 1.5",
        );
        check(
            "[run]\ntimeout = 30",
            "prose.toml:2: `run.timeout` must be a length of time such as \"90s\" or \"10m\", not 30",
        );
        check(
            "[run]\ntimeout = \"-3s\"",
            "prose.toml:2: `run.timeout` must be a length of time such as \"90s\" or \"10m\", not \"-3s\"",
        );
        check(
            "[run]\nbudget_usd = nan",
            "prose.toml:2: `run.budget_usd` must be a number of US dollars from 0 on, not nan",
        );
        check("run = 1", "prose.toml:1: `run` must be a table, not 1");
        check(
            "[backends.openai]\nidle_timeout = 5",
            "prose.toml:2: `backends.openai.idle_timeout` must be a length of time such as \"90s\" or \"10m\", not 5",
        );
        check(
            "[backends.openai.prices.m]\ninput = 1",
            "prose.toml:1: `backends.openai.prices.m.output` must be a number of US dollars from 0 on, not left out",
        );
        check(
            "[backends.x]\n",
            "prose.toml:1: `backends.x.kind` must be one of \"claude\", \"acp\", \"anthropic\", \"openai\", \"openclaw\", \"simulate\", \"replay\", not left out",
        );
        check(
            "[backends.x]\nkind = \"acp\"\nargs = [\"a\",\n 1]",
            "prose.toml:4: `backends.x.args` must be a list of texts, not 1",
        );
        check(
            "[lint]\nE001 = \"warn\"",
            "prose.toml:2: `lint.E001` must be one of \"error\", \"warning\", \"hint\", \"off\", not \"warn\"",
        );
        check(
            "[models]\nx = 1",
            "prose.toml:2: `models.x` must be a text, or a table of one backend's models, not 1",
        );
        let error = parse("[run]\nbackend = \n").unwrap_err();
        assert!(matches!(error, ConfigError::Syntax { line: 2, .. }), "{error:?}");
        assert!(matches!(
            Config::load(
                Path::new("/"),
                Trust::Trusted,
                None,
                &environment(&[("OPENPROSE_STATE", "disk")])
            ),
            Err(ConfigError::Variable { .. })
        ));
    }

    #[test]
    fn unknown_keys_are_noticed() {
        let config = parse("colour = 1\n[run]\nbackends = \"x\"\n[lint]\nE01x = \"off\"\n").unwrap();
        let notices: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
        assert_eq!(
            notices,
            [
                "prose.toml:1: unknown setting `colour`",
                "prose.toml:3: unknown setting `run.backends`",
                "prose.toml:5: `lint.E01x`: there is no such code",
            ]
        );
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("90s", 90_000),
            ("10m", 600_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            (" 2s ", 2000),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "0s", "-1s", "30", "soon", "1s ago"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
