//! What configuration and environment say about backends, as plain data: the project crate reads it, the agents crate
//! uses it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

/// One backend as configuration has it: `[backends.NAME]`, with the model names that count for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BackendSpec {
    /// The name by which it is asked for.
    pub name: String,
    /// What it is: `claude`, `acp`, `anthropic`, `openai`, `openclaw`, `simulate` or `replay`.
    pub kind: String,
    /// Where it is configured, as `prose.toml:12`; none: nowhere.
    pub origin: Option<String>,
    /// The program to start; none: the kind's own.
    pub command: Option<String>,
    /// Its arguments; none: the kind's own.
    pub args: Option<Vec<String>>,
    /// Where the service is; none: the kind's own.
    pub base_url: Option<String>,
    /// The variable that holds the key; none: the kind's own.
    pub api_key_env: Option<String>,
    /// A program's model name → the backend's id for it, `[models.NAME]` before `[models]`.
    pub models: IndexMap<String, String>,
    /// How long it is waited for; none: the kind's own.
    pub waits: Waits,
    /// What models cost, by the backend's id; what is not here costs what the kind knows, if it does.
    pub prices: IndexMap<String, Price>,
}

/// How long a service is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Until there is a connection.
    pub connect: Option<Duration>,
    /// From a request to the first piece of an answer.
    pub first_token: Option<Duration>,
    /// Between two pieces of an answer.
    pub idle: Option<Duration>,
}

/// What a model costs, in US dollars a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Tokens that it reads.
    pub input: f64,
    /// Tokens that it writes.
    pub output: f64,
    /// Tokens that it reads from its cache; none: as `input`.
    pub cached_input: Option<f64>,
}

/// Every backend that is configured, and the variables that backends read.
#[derive(Debug, Clone, Default)]
pub struct BackendCatalog {
    /// `[backends.NAME]`, by name.
    pub specs: IndexMap<String, BackendSpec>,
    /// `[models]`: for backends that are not in `specs`.
    pub models: IndexMap<String, String>,
    /// `[models.NAME]` of backends that are not in `specs`.
    pub models_of: IndexMap<String, IndexMap<String, String>>,
    /// `.prose/.env` and the environment of the process.
    pub variables: Variables,
}

impl BackendCatalog {
    /// The backend of that name; one that is not configured is of the kind of its name, with that kind's usual settings.
    pub fn spec(&self, name: &str) -> BackendSpec {
        self.specs.get(name).cloned().unwrap_or_else(|| {
            let mut models = self.models_of.get(name).cloned().unwrap_or_default();
            for (model, id) in &self.models {
                models.entry(model.clone()).or_insert_with(|| id.clone());
            }
            BackendSpec {
                name: name.to_owned(),
                kind: name.to_owned(),
                models,
                ..BackendSpec::default()
            }
        })
    }
}

/// Variables by name. Shown, stored and logged are their names only: a value may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables {
    values: Arc<BTreeMap<String, String>>,
    secret: Arc<BTreeMap<String, String>>,
    /// What the process has for names that `.prose/.env` has, too.
    hidden: Arc<BTreeMap<String, String>>,
}

impl Variables {
    /// Those of the process, and those of `.prose/.env`, which count first and are secrets whatever their name.
    pub fn new(process: BTreeMap<String, String>, file: BTreeMap<String, String>) -> Variables {
        let (mut values, mut secret) = (process, file);
        // One that is empty is as good as none, and hides nothing.
        values.retain(|_, value| !value.is_empty());
        secret.retain(|_, value| !value.is_empty());
        let mut hidden = values.clone();
        hidden.retain(|name, _| secret.contains_key(name));
        values.extend(secret.clone());
        Variables {
            values: Arc::new(values),
            secret: Arc::new(secret),
            hidden: Arc::new(hidden),
        }
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether the value of a variable is one of `.prose/.env`, which comes with a project, and not of the person who runs it.
    pub fn is_of_project(&self, name: &str) -> bool {
        self.secret.contains_key(name)
    }

    /// The value of a variable in the process's environment, whatever `.prose/.env` says.
    pub fn of_process(&self, name: &str) -> Option<&str> {
        match self.is_of_project(name) {
            true => self.hidden.get(name).map(String::as_str),
            false => self.get(name),
        }
    }

    /// All variables that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Variables of `.prose/.env`, by name.
    pub fn secret(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secret
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
