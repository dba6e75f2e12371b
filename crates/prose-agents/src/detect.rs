//! What a person wants to know who wonders why a backend can't be used, or which one is: the programs, keys, addresses and
//! models that it rests on. Shown of a key is only the name of its variable.
//!
//! Nothing is asked of a model here but by [`self_test`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::{
    BindKind, BindingRef, BindingTarget, ErrorKind, Failure, SessionRequest, SourceRange, Text, Usage,
};
use serde::Serialize;
use tokio::io::AsyncReadExt as _;

use crate::child::{Child, ChildCommand, Environment, describe, find_program};
use crate::prompt::{RenderedPrompt, STAGED_BINDING};
use crate::{
    Backend, BackendContext, BackendError, BackendFactory, BackendSettings, CancelToken, Clock, Delivery,
    PermissionAnswer, PermissionQuestion, Registry, ReplyBody, SessionSink, SessionSpawn, SessionUpdate,
    SpendLimit, failure, one_line,
};

/// How long a program may take to tell its version; a machine at work starts large ones slowly.
const VERSION_TIME: Duration = Duration::from_secs(20);
/// Most bytes that are read of a version.
const VERSION_BYTES: u64 = 4096;
/// What a self-test asks for.
const TEST_PROMPT: &str = "Answer with the one word: ready. Use no tool and write no file.";

/// What a backend rests on. A kind of backend tells by [`BackendFactory::needs`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Whether its answers are made up or written down beforehand, so that it needs nothing.
    pub simulated: bool,
    /// The program that it starts.
    pub program: Option<ProgramNeed>,
    /// The key that it sends.
    pub key: Option<KeyNeed>,
    /// Where its service is.
    pub base_url: Option<String>,
    /// What the usual names for models mean.
    pub models: Vec<ModelMeaning>,
    /// Of which month the list prices are by which it counts dollars; none: it knows none.
    pub prices_of: Option<&'static str>,
}

/// A program that a backend starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramNeed {
    /// A name on the path, or a path.
    pub command: PathBuf,
    /// The arguments with which it tells its version and ends; none: that can't be asked without more happening.
    pub version: Option<Vec<String>>,
    /// The oldest version that will do; none: any.
    pub oldest: Option<[u64; 3]>,
}

/// A key that a backend sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyNeed {
    /// The variable that holds it.
    pub variable: String,
    /// Whether nothing works without it.
    pub required: bool,
}

/// What a name for a model means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelMeaning {
    /// The program's name for it.
    pub name: String,
    /// The service's id; none: it has to be configured, or the service has one model.
    pub id: Option<String>,
    /// Whether configuration says so.
    pub configured: bool,
}

/// The meanings of the usual names, and of those that are configured besides. `usual` is what a name means without
/// configuration.
pub(crate) fn meanings(spec: &BackendSpec, usual: impl Fn(&str) -> Option<String>) -> Vec<ModelMeaning> {
    let names = ["sonnet", "opus", "haiku"];
    let more = spec.models.keys().map(String::as_str);
    let more = more.filter(|name| !names.contains(name));
    let meaning = |name: &str| ModelMeaning {
        name: name.to_owned(),
        id: spec.models.get(name).cloned().or_else(|| usual(name)),
        configured: spec.models.contains_key(name),
    };
    names.into_iter().chain(more).map(meaning).collect()
}

/// What is so about one backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendReport {
    /// The name by which it is asked for.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Whether its answers are made up or written down beforehand.
    pub simulated: bool,
    /// Whether it can be used as things are.
    pub usable: bool,
    /// Why not, or what else there is to say.
    pub reason: Option<String>,
    /// One line: how to set it up.
    pub setup: Option<String>,
    /// The program that it starts.
    pub program: Option<ProgramReport>,
    /// The key that it sends.
    pub key: Option<KeyReport>,
    /// Where its service is, without what an address can hide.
    pub base_url: Option<String>,
    /// What names for models mean.
    pub models: Vec<ModelMeaning>,
    /// Of which month the list prices are by which it counts dollars, as `2025-12`; none: it knows none.
    pub prices_of: Option<String>,
    /// Where it is configured; none: nowhere, all is as usual.
    pub configured_in: Option<String>,
}

/// A program, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramReport {
    /// As it is asked for.
    pub command: String,
    /// Where it was found.
    pub path: Option<PathBuf>,
    /// What it says of its version.
    pub version: Option<String>,
}

/// A key, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyReport {
    /// The variable that holds it.
    pub variable: String,
    /// Where it is set; none: it isn't.
    pub set_in: Option<KeyPlace>,
    /// Whether nothing works without it.
    pub required: bool,
}

/// Where a variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum KeyPlace {
    /// The process's environment.
    #[serde(rename = "environment")]
    Environment,
    /// The project's `.prose/.env`.
    #[serde(rename = ".prose/.env")]
    File,
}

impl std::fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KeyPlace::Environment => "environment",
            KeyPlace::File => ".prose/.env",
        })
    }
}

/// What is so about every backend: those that are configured, then the kinds. Programs are asked for their versions.
pub async fn report(registry: &Registry) -> Vec<BackendReport> {
    let one = |name: String| async move {
        let spec = registry.catalog().spec(&name);
        match registry.factories().find(|factory| factory.kind() == spec.kind) {
            Some(factory) => describe_backend(factory, &spec, &registry.catalog().variables).await,
            None => unknown_kind(spec),
        }
    };
    futures::future::join_all(registry.names().into_iter().map(one)).await
}

/// The name of the backend that a run takes when none is named; none: there is none.
pub fn taken_unnamed(registry: &Registry) -> Option<String> {
    let settings = BackendSettings::default();
    let found = registry.factories().find(|factory| {
        let spec = registry.catalog().spec(factory.kind());
        let context = BackendContext {
            settings: &settings,
            spec: &spec,
            variables: &registry.catalog().variables,
        };
        factory.look(context).is_some_and(|looked| looked.found)
    });
    found.map(|factory| factory.kind().to_owned())
}

fn unknown_kind(spec: BackendSpec) -> BackendReport {
    BackendReport {
        reason: Some(format!(
            "this version has no backends of the kind `{}`",
            spec.kind
        )),
        name: spec.name,
        kind: spec.kind,
        simulated: false,
        usable: false,
        setup: None,
        program: None,
        key: None,
        base_url: spec.base_url.as_deref().map(plain_url),
        models: Vec::new(),
        prices_of: None,
        configured_in: spec.origin,
    }
}

async fn describe_backend(
    factory: &dyn BackendFactory,
    spec: &BackendSpec,
    variables: &Variables,
) -> BackendReport {
    let settings = BackendSettings::default();
    let context = BackendContext {
        settings: &settings,
        spec,
        variables,
    };
    let needs = factory.needs(context);
    let simulated = needs.simulated;
    // Nobody has said yet what answers are to be given.
    let created = match simulated {
        true => Ok(()),
        false => factory.create(context).map(|_| ()),
    };
    let mut setup = factory.setup().to_owned();
    let mut reason = created.err().map(|error| match error {
        BackendError::Unusable {
            reason, setup: own, ..
        } => {
            setup = own;
            reason
        }
        error => error.to_string(),
    });
    let mut usable = reason.is_none();
    let mut program = None;
    if let Some(need) = needs.program {
        let path = find_program(&need.command, variables.get("PATH"));
        let mut version = None;
        if let (Some(path), Some(arguments)) = (&path, need.version) {
            match tell_version(path, arguments, Environment::basic(variables)).await {
                Ok(told) => {
                    let said = told.as_deref().zip(need.oldest);
                    if let Some(problem) = said.and_then(|(said, oldest)| too_old(path, said, oldest)) {
                        usable = false;
                        reason.get_or_insert(problem);
                    }
                    version = told;
                }
                Err(problem) => {
                    usable = false;
                    reason.get_or_insert(problem);
                }
            }
        }
        program = Some(ProgramReport {
            command: need.command.display().to_string(),
            path,
            version,
        });
    }
    BackendReport {
        name: spec.name.clone(),
        kind: spec.kind.clone(),
        simulated,
        usable,
        setup: (simulated || !usable).then_some(setup),
        reason,
        program,
        key: needs.key.map(|need| KeyReport {
            set_in: place_of(variables, &need.variable),
            variable: need.variable,
            required: need.required,
        }),
        base_url: needs.base_url.as_deref().map(plain_url),
        models: needs.models,
        prices_of: needs.prices_of.map(ToOwned::to_owned),
        configured_in: spec.origin.clone(),
    }
}

fn place_of(variables: &Variables, name: &str) -> Option<KeyPlace> {
    variables.get(name)?;
    let in_file = variables.secret().any(|(other, _)| other == name);
    Some(match in_file {
        true => KeyPlace::File,
        false => KeyPlace::Environment,
    })
}

/// An address without what may be secret in it: who asks, and parameters.
fn plain_url(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut parsed) if parsed.has_host() => {
            let bare = parsed.path() == "/" && !url.ends_with('/');
            // These fail only for addresses without a host.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.set_query(None);
            parsed.set_fragment(None);
            let text = parsed.to_string();
            match bare {
                true => text.trim_end_matches('/').to_owned(),
                false => text,
            }
        }
        _ => "(not an address)".to_owned(),
    }
}

/// What a program says of its version: none when it says nothing or takes too long.
pub(crate) async fn tell_version(
    program: &Path,
    arguments: Vec<String>,
    environment: Environment,
) -> Result<Option<String>, String> {
    let words = arguments.join(" ");
    let problem = |what: &str| format!("`{} {words}` {what}", program.display());
    let mut child = Child::start(ChildCommand {
        program: program.to_owned(),
        args: arguments.iter().map(Into::into).collect(),
        dir: std::env::temp_dir(),
        environment,
    })
    .await
    .map_err(|error| error.to_string())?;
    child.stdin = None;
    let stdout = child.stdout.take();
    let telling = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            // What can't be read is no version.
            let _ = stdout.take(VERSION_BYTES).read_to_end(&mut bytes).await;
        }
        (child.wait().await, bytes)
    };
    let Ok((status, bytes)) = tokio::time::timeout(VERSION_TIME, telling).await else {
        return Ok(None);
    };
    match status {
        Ok(status) if status.success() => {
            let line = one_line(&String::from_utf8_lossy(&bytes));
            Ok(Some(line).filter(|line| !line.is_empty()))
        }
        Ok(status) => {
            let said = one_line(&child.stderr());
            let colon = if said.is_empty() { "" } else { ": " };
            Err(problem(&format!("{}{colon}{said}", describe(status))))
        }
        Err(error) => Err(problem(&format!("was lost: {error}"))),
    }
}

/// Why a program is too old, if what it says begins with the number of such a version.
pub(crate) fn too_old(program: &Path, said: &str, oldest: [u64; 3]) -> Option<String> {
    let found = said.split_whitespace().next()?;
    let numbers = found.split(['.', '-', '+']).map(str::parse::<u64>);
    let numbers: Vec<u64> = numbers.take(3).collect::<Result<_, _>>().ok()?;
    let [major, minor, patch] = oldest;
    (numbers.len() == 3 && numbers[..] < oldest[..]).then(|| {
        format!(
            "`{}` is of version {found}, and has to be of version {major}.{minor}.{patch} or newer",
            program.display()
        )
    })
}

/// How a self-test went well.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfTest {
    /// What the model said, one line.
    pub said: String,
    /// The model, where the backend tells.
    pub model: Option<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Tokens and money.
    pub usage: Usage,
}

/// Has a backend answer one short session, in a folder that exists and holds nothing of worth. It may cost money.
///
/// # Errors
/// As a session fails, or when it takes longer than `limit`.
pub async fn self_test(backend: &Backend, folder: &Path, limit: Duration) -> Result<SelfTest, Failure> {
    let staging = folder.join("staging");
    if backend.sessions.capabilities().delivery == Delivery::Files {
        std::fs::create_dir_all(&staging).map_err(|error| {
            failure(
                ErrorKind::Backend,
                format!("can't make {}: {error}", staging.display()),
            )
        })?;
    }
    let sink = Arc::new(TestSink::default());
    let cancel = CancelToken::new();
    let spawn = test_session(folder, &staging, sink.clone(), cancel.clone(), limit);
    let begun = Instant::now();
    let reply = match tokio::time::timeout(limit, backend.sessions.spawn(spawn)).await {
        Ok(reply) => reply?,
        Err(_) => {
            let message = format!("there was no answer within {} s", limit.as_secs_f64());
            return Err(failure(ErrorKind::Timeout, message));
        }
    };
    let text = match reply.body {
        ReplyBody::Text(text) => text,
        ReplyBody::Staged => std::fs::read_to_string(staging.join(STAGED_BINDING)).unwrap_or_default(),
    };
    let said = one_line(&text);
    if said.is_empty() {
        return Err(failure(ErrorKind::Empty, "the session returned nothing"));
    }
    let model = sink.model.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(SelfTest {
        said,
        model,
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        usage: reply.usage,
    })
}

fn test_session(
    folder: &Path,
    staging: &Path,
    sink: Arc<TestSink>,
    cancel: CancelToken,
    limit: Duration,
) -> SessionSpawn {
    let request = SessionRequest {
        agent: None,
        label: "self-test".to_owned(),
        model: None,
        system: None,
        task: Text::inline(TEST_PROMPT),
        context: Vec::new(),
        context_given: true,
        skills: Vec::new(),
        permissions: Vec::new(),
        memory: None,
        binding: BindingTarget {
            binding: BindingRef {
                name: "answer".into(),
                execution_id: None,
                program: Vec::new(),
            },
            bind_kind: BindKind::Let,
            source: SourceRange {
                file: 0,
                start: 0,
                end: 0,
            },
        },
        scope: None,
        attempt: 1,
        max_attempts: 1,
    };
    SessionSpawn {
        effect: "self-test".into(),
        order: 0,
        lease: 1,
        request: Arc::new(request),
        prompt: RenderedPrompt {
            user: TEST_PROMPT.to_owned(),
            ..RenderedPrompt::default()
        },
        work_dir: folder.to_owned(),
        staging: staging.to_owned(),
        memory: None,
        timeout: Some(limit),
        budget: SpendLimit::default(),
        sink,
        cancel,
        clock: Clock::Real,
    }
}

/// Keeps the model's name, and permits nothing.
#[derive(Default)]
struct TestSink {
    model: Mutex<Option<String>>,
}

#[async_trait]
impl SessionSink for TestSink {
    async fn started(&self, _: Option<serde_json::Value>, model: Option<String>) -> Result<(), Failure> {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
        Ok(())
    }
    fn update(&self, _: SessionUpdate) {}
    async fn ask_permission(&self, _: PermissionQuestion) -> PermissionAnswer {
        PermissionAnswer::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let is_old = |said: &str| too_old(Path::new("x"), said, [2, 1, 40]).is_some();
        for said in ["2.1.39 (Claude Code)", "1.99.99", "2.0.200", "2.1.9-beta"] {
            assert!(is_old(said), "{said}");
        }
        for said in [
            "2.1.40",
            "2.1.100 (x)",
            "2.10.0",
            "3.0.0",
            "",
            "2.1",
            "v1.0.0",
            "what?",
        ] {
            assert!(!is_old(said), "{said}");
        }
        assert_eq!(
            too_old(Path::new("/bin/x"), "1.2.3 (X)", [1, 3, 0]).unwrap(),
            "`/bin/x` is of version 1.2.3, and has to be of version 1.3.0 or newer"
        );
    }

    #[test]
    fn an_address_is_shown_without_what_it_hides() {
        let shown = [
            "https://user:secret@gateway.example/v1?key=secret#x",
            "http://127.0.0.1:8080",
            "http://127.0.0.1:8080/",
            "secret",
        ]
        .map(plain_url);
        assert_eq!(
            shown,
            [
                "https://gateway.example/v1",
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080/",
                "(not an address)"
            ]
        );
    }
}
