//! Finding a backend by name.

use std::path::PathBuf;
use std::sync::Arc;

use prose_model::backend::{BackendCatalog, BackendSpec, Variables};

use crate::api::{AnthropicFactory, OpenAiFactory};
use crate::detect::Needs;
use crate::mock::{MockError, MockFile};
use crate::{
    AcpFactory, ClaudeFactory, InputSource, IssueObserver, Judge, OpenClawFactory, SessionBackend, Simulate,
};

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

/// What a backend is made from.
#[derive(Debug, Clone, Copy)]
pub struct BackendContext<'a> {
    /// What the caller wants.
    pub settings: &'a BackendSettings,
    /// What configuration says about it.
    pub spec: &'a BackendSpec,
    /// The variables it may read: keys, `PATH`, `HOME`.
    pub variables: &'a Variables,
}

/// Makes a kind of backend.
pub trait BackendFactory: Send + Sync {
    /// The kind that it makes, which is also the name of the backend of that kind that needs no configuration.
    fn kind(&self) -> &'static str;

    /// Whether it may be taken when none was named. None when it may not (made-up answers never are), else what
    /// was looked for and whether it was found.
    fn look(&self, context: BackendContext<'_>) -> Option<Looked>;

    /// One line: how to set it up.
    fn setup(&self) -> &'static str;

    /// What it rests on, for a person who wonders whether it can be used. Starts nothing and asks nobody.
    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let _ = context;
        Needs::default()
    }

    /// Makes it. Starts nothing and asks nobody.
    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError>;
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

/// The backends of a build, in the order in which they are looked for, and what configuration says about them.
pub struct Registry {
    factories: Vec<Box<dyn BackendFactory>>,
    catalog: BackendCatalog,
}

impl Registry {
    /// With nothing in it.
    pub fn empty() -> Registry {
        Registry {
            factories: Vec::new(),
            catalog: BackendCatalog::default(),
        }
    }

    /// With every backend of this build, none of them configured.
    pub fn standard() -> Registry {
        Registry::configured(BackendCatalog::default())
    }

    /// With every backend of this build, as configuration has them.
    pub fn configured(catalog: BackendCatalog) -> Registry {
        let mut registry = Registry::empty();
        registry.catalog = catalog;
        registry.add(ClaudeFactory);
        registry.add(AcpFactory);
        registry.add(OpenClawFactory);
        registry.add(AnthropicFactory::default());
        registry.add(OpenAiFactory::default());
        registry.add(SimulateFactory);
        registry.add(ReplayFactory);
        registry
    }

    /// Adds one, to be looked for after those before it.
    pub fn add(&mut self, factory: impl BackendFactory + 'static) {
        self.factories.push(Box::new(factory));
    }

    /// The names that can be asked for: those that are configured, then the kinds.
    pub fn names(&self) -> Vec<String> {
        let kinds = self.factories.iter().map(|factory| factory.kind());
        let mut names: Vec<String> = self.catalog.specs.keys().cloned().collect();
        for kind in kinds {
            if !names.iter().any(|name| name == kind) {
                names.push(kind.to_owned());
            }
        }
        names
    }

    /// What configuration says about backends.
    pub fn catalog(&self) -> &BackendCatalog {
        &self.catalog
    }

    /// The kinds, in the order in which they are looked for.
    pub fn factories(&self) -> impl Iterator<Item = &dyn BackendFactory> {
        self.factories.iter().map(AsRef::as_ref)
    }

    /// The backend that was named, else the first that is found.
    pub fn open(&self, settings: &BackendSettings) -> Result<Backend, BackendError> {
        if let Some(name) = &settings.name {
            let spec = self.catalog.spec(name);
            let factory = self.factories.iter().find(|factory| factory.kind() == spec.kind);
            let unknown = || BackendError::Unknown {
                name: name.clone(),
                known: self.names(),
            };
            return factory.ok_or_else(unknown)?.create(self.context(settings, &spec));
        }
        let mut looked = vec!["a name given by `--backend NAME` or `[run] backend` in prose.toml".to_owned()];
        for factory in &self.factories {
            let spec = self.catalog.spec(factory.kind());
            let context = self.context(settings, &spec);
            match factory.look(context) {
                Some(Looked { found: true, .. }) => return factory.create(context),
                Some(Looked { what, found: false }) => looked.push(format!("{}: {what}", factory.kind())),
                None => {}
            }
        }
        let setup = self
            .factories
            .iter()
            .map(|factory| format!("{}: {}", factory.kind(), factory.setup()))
            .collect();
        Err(BackendError::NoneFound { looked, setup })
    }

    fn context<'a>(&'a self, settings: &'a BackendSettings, spec: &'a BackendSpec) -> BackendContext<'a> {
        BackendContext {
            settings,
            spec,
            variables: &self.catalog.variables,
        }
    }
}

/// Makes [`Simulate::new`].
#[derive(Debug, Clone, Copy)]
pub struct SimulateFactory;

impl BackendFactory for SimulateFactory {
    fn kind(&self) -> &'static str {
        "simulate"
    }
    fn needs(&self, _: BackendContext<'_>) -> Needs {
        Needs {
            simulated: true,
            ..Needs::default()
        }
    }
    fn look(&self, _: BackendContext<'_>) -> Option<Looked> {
        None
    }
    fn setup(&self) -> &'static str {
        "`--backend simulate` makes answers up, or takes them from a mock file (`--mock FILE`); no model is asked"
    }
    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let settings = context.settings;
        let mock = load(settings.mock.as_ref())?.unwrap_or_default();
        Ok(simulated(mock, |mock| Simulate::new(mock, settings.realtime)))
    }
}

/// Makes [`Simulate::replay`].
#[derive(Debug, Clone, Copy)]
pub struct ReplayFactory;

impl BackendFactory for ReplayFactory {
    fn kind(&self) -> &'static str {
        "replay"
    }
    fn needs(&self, _: BackendContext<'_>) -> Needs {
        Needs {
            simulated: true,
            ..Needs::default()
        }
    }
    fn look(&self, _: BackendContext<'_>) -> Option<Looked> {
        None
    }
    fn setup(&self) -> &'static str {
        "`--backend replay --mock FILE` answers only from the file and fails where it has no answer"
    }
    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let settings = context.settings;
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
