//! Finding a backend by name.

use std::path::PathBuf;
use std::sync::Arc;

use crate::mock::{MockError, MockFile};
use crate::{InputSource, IssueObserver, Judge, SessionBackend, Simulate};

/// A backend ready to use: its sessions, its judge, and what it answers besides.
#[derive(Clone)]
pub struct Backend {
    /// The name by which it was asked for.
    pub name: String,
    /// Whether its answers are made up or written down beforehand, which every front end has to say.
    pub simulated: bool,
    /// Runs sessions.
    pub sessions: Arc<dyn SessionBackend>,
    /// Decides.
    pub judge: Arc<dyn Judge>,
    /// Answers inputs in place of a person.
    pub inputs: Option<Arc<dyn InputSource>>,
    /// Told of every effect in issue order.
    pub observer: Option<Arc<dyn IssueObserver>>,
    /// The mock file's text, kept with the run so that a resumed one gives the same answers.
    pub mock_text: Option<String>,
}

/// What a caller knows about the backend that is wanted.
#[derive(Debug, Clone, Default)]
pub struct BackendSettings {
    /// The name: `--backend`, then configuration. None: looked for.
    pub name: Option<String>,
    /// The mock file of `simulate` and `replay`.
    pub mock: Option<MockSource>,
    /// `--realtime`: simulated delays take their time.
    pub realtime: bool,
}

/// Where a mock file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MockSource {
    /// A file.
    Path(PathBuf),
    /// Its text, as a run keeps it.
    Text(String),
}

/// Makes a kind of backend.
pub trait BackendFactory: Send + Sync {
    /// The name that it answers to.
    fn name(&self) -> &'static str;

    /// Whether it may be taken when none was named. None when it may not (made-up answers never are), else what
    /// was looked for and whether it was found.
    fn look(&self, settings: &BackendSettings) -> Option<Looked>;

    /// One line: how to set it up.
    fn setup(&self) -> &'static str;

    /// Makes it.
    fn create(&self, settings: &BackendSettings) -> Result<Backend, BackendError>;
}

/// The result of looking for a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// What was looked for: a program on the path, a variable, a setting.
    pub what: String,
    /// Whether it is there.
    pub found: bool,
}

/// Why there is no backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// None was named and none was found.
    #[error("{}", none_found(looked, setup))]
    NoneFound {
        /// What was looked for, in order.
        looked: Vec<String>,
        /// How to set one up, a line each.
        setup: Vec<String>,
    },
    /// A name that nothing answers to.
    #[error("unknown backend `{name}`; this build knows {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// It exists but can't be used as things are.
    #[error("backend `{name}` is not usable: {reason}\n  to set it up: {setup}")]
    Unusable {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
        /// One line.
        setup: String,
    },
    /// The mock file is bad.
    #[error("{0}")]
    Mock(#[from] MockError),
}

fn none_found(looked: &[String], setup: &[String]) -> String {
    let mut text = "no backend to run sessions with\n  looked for:".to_owned();
    for line in looked {
        text.push_str("\n    - ");
        text.push_str(line);
    }
    text.push_str("\n  set one up:");
    for line in setup {
        text.push_str("\n    - ");
        text.push_str(line);
    }
    text
}

/// The backends of a build, in the order in which they are looked for.
pub struct Registry {
    factories: Vec<Box<dyn BackendFactory>>,
}

impl Registry {
    /// With nothing in it.
    pub fn empty() -> Registry {
        Registry {
            factories: Vec::new(),
        }
    }

    /// With every backend of this build.
    pub fn standard() -> Registry {
        let mut registry = Registry::empty();
        registry.add(SimulateFactory);
        registry.add(ReplayFactory);
        registry
    }

    /// Adds one, to be looked for after those before it.
    pub fn add(&mut self, factory: impl BackendFactory + 'static) {
        self.factories.push(Box::new(factory));
    }

    /// The names that can be asked for.
    pub fn names(&self) -> Vec<String> {
        self.factories
            .iter()
            .map(|factory| factory.name().to_owned())
            .collect()
    }

    /// The backend that was named, else the first that is found.
    pub fn open(&self, settings: &BackendSettings) -> Result<Backend, BackendError> {
        if let Some(name) = &settings.name {
            let factory = self.factories.iter().find(|factory| factory.name() == name);
            let unknown = || BackendError::Unknown {
                name: name.clone(),
                known: self.names(),
            };
            return factory.ok_or_else(unknown)?.create(settings);
        }
        let mut looked = vec!["a name given by `--backend NAME` or `[run] backend` in prose.toml".to_owned()];
        for factory in &self.factories {
            match factory.look(settings) {
                Some(Looked { found: true, .. }) => return factory.create(settings),
                Some(Looked { what, found: false }) => looked.push(format!("{}: {what}", factory.name())),
                None => {}
            }
        }
        let setup = self
            .factories
            .iter()
            .map(|factory| format!("{}: {}", factory.name(), factory.setup()))
            .collect();
        Err(BackendError::NoneFound { looked, setup })
    }
}

/// Makes [`Simulate::new`].
#[derive(Debug, Clone, Copy)]
pub struct SimulateFactory;

impl BackendFactory for SimulateFactory {
    fn name(&self) -> &'static str {
        "simulate"
    }
    fn look(&self, _: &BackendSettings) -> Option<Looked> {
        None
    }
    fn setup(&self) -> &'static str {
        "`--backend simulate` makes answers up, or takes them from a mock file (`--mock FILE`); no model is asked"
    }
    fn create(&self, settings: &BackendSettings) -> Result<Backend, BackendError> {
        let mock = load(settings.mock.as_ref())?.unwrap_or_default();
        Ok(simulated(mock, |mock| Simulate::new(mock, settings.realtime)))
    }
}

/// Makes [`Simulate::replay`].
#[derive(Debug, Clone, Copy)]
pub struct ReplayFactory;

impl BackendFactory for ReplayFactory {
    fn name(&self) -> &'static str {
        "replay"
    }
    fn look(&self, _: &BackendSettings) -> Option<Looked> {
        None
    }
    fn setup(&self) -> &'static str {
        "`--backend replay --mock FILE` answers only from the file and fails where it has no answer"
    }
    fn create(&self, settings: &BackendSettings) -> Result<Backend, BackendError> {
        let mock = load(settings.mock.as_ref())?.ok_or_else(|| BackendError::Unusable {
            name: "replay".to_owned(),
            reason: "it needs a mock file".to_owned(),
            setup: self.setup().to_owned(),
        })?;
        Ok(simulated(mock, |mock| Simulate::replay(mock, settings.realtime)))
    }
}

fn load(source: Option<&MockSource>) -> Result<Option<MockFile>, MockError> {
    source
        .map(|source| match source {
            MockSource::Path(path) => MockFile::load(path),
            MockSource::Text(text) => MockFile::parse(text),
        })
        .transpose()
}

fn simulated(mock: MockFile, make: impl FnOnce(MockFile) -> Simulate) -> Backend {
    let mock_text = Some(mock.portable_text().to_owned()).filter(|text| !text.is_empty());
    let simulate = Arc::new(make(mock));
    Backend {
        name: SessionBackend::name(&*simulate).to_owned(),
        simulated: true,
        sessions: simulate.clone(),
        judge: simulate.clone(),
        inputs: Some(simulate.clone()),
        observer: Some(simulate),
        mock_text,
    }
}
