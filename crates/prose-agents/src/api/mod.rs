//! The `anthropic` and `openai` backends: sessions and the judge straight through a model's API, with tools of our own.
//!
//! A session's reply is its result ([`Delivery::Plain`]). Each round of a session is one streamed call, which counts only
//! when the protocol's own mark of the end has come; `client` says what is tried again, and that it is tried nowhere
//! else. An agent's memory is asked for after the result, as a JSON object.

mod anthropic;
mod bill;
mod client;
mod models;
mod openai;
mod session;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::{ErrorKind, Failure};
use tokio::sync::OnceCell;

use crate::backend::{Backend, BackendContext, BackendError, BackendFactory, Looked};
use crate::content::failure;
use crate::detect::{KeyNeed, Needs, meanings};
use crate::judging::{Answer, Asker, ModelJudge, Question};
use crate::tools::Toolbox;
use crate::{
    CancelToken, Capabilities, Delivery, Judge, Policy, Redactor, Secret, SessionBackend, SessionReply,
    SessionSpawn,
};
use bill::Bill;
use client::{Client, Service};
use models::{Meaning, Price};
use wire::{Ask, Form, Message, Stop, Wire};

pub use client::Limits;
pub(crate) use client::{keeps_secrets, unsafe_address};

/// Most tokens of a judgement: a reason, or a text that is read as a list.
const MOST_JUDGEMENT: u64 = 8_000;

/// Sessions and judgements through a model's API. Cheap to clone: all clones share connections.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

struct Inner {
    client: Client,
    models: IndexMap<String, String>,
    prices: IndexMap<String, prose_model::backend::Price>,
    variables: Variables,
    /// The models that the server has, asked for once and only where no other way tells which to use.
    served: OnceCell<Vec<String>>,
}

impl Api {
    /// The id of the model that a name means.
    async fn model(&self, name: Option<&str>) -> Result<String, Failure> {
        let Inner {
            client,
            models,
            served,
            ..
        } = &*self.0;
        let name = match models::meaning(client.wire, client.own, models, name) {
            Meaning::Id(id) => return Ok(id),
            Meaning::Unmapped(name) => name,
        };
        let served = served.get_or_try_init(|| client.served()).await?;
        match served.as_slice() {
            [only] => Ok(only.clone()),
            all if all.contains(&name) => Ok(name),
            all => {
                let has = match all.len() {
                    0 => "it lists no models".to_owned(),
                    count => {
                        let more = if count > 5 { ", …" } else { "" };
                        format!("it has {}{more}", all[..count.min(5)].join(", "))
                    }
                };
                Err(failure(
                    ErrorKind::Backend,
                    format!(
                        "{0}: which of its models is `{name}`? {has}. Say so in prose.toml: [models.{0}] {name} = \"…\"",
                        client.name
                    ),
                ))
            }
        }
    }

    /// What configuration says that a model costs, else its list price.
    fn price(&self, model: &str) -> Option<Price> {
        let configured = self.0.prices.get(model).map(Price::from);
        configured.or_else(|| models::price(model))
    }

    /// Puts a question, without a limit on the time.
    async fn answer(&self, question: &Question, bill: &Bill) -> Result<Answer, Failure> {
        let client = &self.0.client;
        // `judge` is a name of our own: a program can't mean it.
        let name = self.0.models.contains_key("judge").then_some("judge");
        let model = self.model(name).await?;
        bill.set_price(self.price(&model));
        let messages = [Message::User(question.user.clone())];
        let said = question.system.len() + question.user.len();
        let affordable = session::affordable(question.budget, bill.price(), said);
        session::enough(affordable)?;
        let most = MOST_JUDGEMENT.min(models::most_tokens(&model));
        let short = affordable.filter(|left| *left < most);
        let ask = Ask {
            model: &model,
            system: &question.system,
            messages: &messages,
            tools: &[],
            form: Some(Form {
                name: question.name,
                schema: &question.schema,
                forced: true,
            }),
            // OpenAI's limit would count what a model thinks before it answers.
            max_tokens: short.or((client.wire == Wire::Anthropic).then_some(most)),
        };
        let result = client.turn(&ask, bill, &mut |_| ()).await;
        let usage = bill.usage();
        let turn = result.map_err(|failure| Failure { usage, ..failure })?;
        let refused = |message: String| Failure {
            usage,
            ..failure(ErrorKind::Judge, message)
        };
        match turn.stop {
            Stop::Refused(why) => Err(refused(format!(
                "`{model}` declined to judge: {}",
                client.redactor.one_line(&why)
            ))),
            Stop::Length if short.is_some() => Err(Failure {
                usage,
                ..failure(ErrorKind::Budget, "the budget ended in the middle of an answer")
            }),
            Stop::Length | Stop::Window => Err(refused(format!("`{model}` gave an answer that was cut"))),
            _ => Ok(Answer {
                text: turn.text,
                usage,
            }),
        }
    }
}

#[async_trait]
impl SessionBackend for Api {
    fn name(&self) -> &str {
        &self.0.client.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            delivery: Delivery::Plain,
            reattach: false,
            skills: false,
            virtual_time: false,
        }
    }

    async fn spawn(&self, spawn: SessionSpawn) -> Result<SessionReply, Failure> {
        let bill = Bill::of(spawn.sink.clone());
        let work = async {
            let model = self.model(spawn.request.model.as_deref()).await?;
            spawn.sink.started(None, Some(model.clone())).await?;
            let tools = Toolbox::new(&spawn, Policy::for_session(&spawn), self.0.variables.clone());
            bill.set_price(self.price(&model));
            session::run(&self.0.client, &spawn, &model, &bill, &tools).await
        };
        tokio::select! {
            result = work => result,
            // Whatever is going on is dropped, and its connection with it.
            () = spawn.cancel.cancelled() => Err(Failure {
                usage: bill.usage(),
                ..failure(ErrorKind::Backend, "cancelled")
            }),
        }
    }
}

#[async_trait]
impl Asker for Api {
    fn name(&self) -> &str {
        &self.0.client.name
    }

    async fn ask(&self, question: Question, cancel: &CancelToken) -> Result<Answer, Failure> {
        let limit = self.0.client.limits.judgement;
        let bill = Bill::default();
        let (kind, message) = tokio::select! {
            result = tokio::time::timeout(limit, self.answer(&question, &bill)) => match result {
                Ok(result) => return result,
                Err(_) => {
                    let name = &self.0.client.name;
                    let message = format!("{name}: a judgement took longer than {} s", limit.as_secs_f64());
                    (ErrorKind::Timeout, message)
                }
            },
            () = cancel.cancelled() => (ErrorKind::Backend, "cancelled".to_owned()),
        };
        Err(Failure {
            usage: bill.usage(),
            ..failure(kind, message)
        })
    }
}

/// Makes the `anthropic` backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnthropicFactory {
    /// How long things may take, and how often they are tried.
    pub limits: Limits,
}

/// Makes the `openai` backend, which speaks to any compatible server.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenAiFactory {
    /// How long things may take, and how often they are tried.
    pub limits: Limits,
}

const ANTHROPIC_BASE: &str = "https://api.anthropic.com";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const OPENAI_BASE: &str = "https://api.openai.com/v1";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

impl BackendFactory for AnthropicFactory {
    fn kind(&self) -> &'static str {
        "anthropic"
    }

    fn look(&self, context: BackendContext<'_>) -> Option<Looked> {
        let name = context.spec.api_key_env.as_deref().unwrap_or(ANTHROPIC_KEY);
        Some(Looked {
            what: format!(
                "a key in {name}, or a server named by [backends.anthropic] base_url in prose.toml"
            ),
            found: context.spec.base_url.is_some() || context.variables.get(name).is_some(),
        })
    }

    fn setup(&self) -> &'static str {
        "put a key of Anthropic's API into ANTHROPIC_API_KEY, in the environment or in .prose/.env"
    }

    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let spec = context.spec;
        let base = anthropic_base(spec);
        needs(spec, Wire::Anthropic, (ANTHROPIC_KEY, ANTHROPIC_BASE), base)
    }

    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let spec = context.spec;
        let key_name = spec.api_key_env.as_deref().unwrap_or(ANTHROPIC_KEY);
        let base = anthropic_base(spec);
        let own = base == ANTHROPIC_BASE;
        let key = key(context, key_name, own);
        if key.is_none() && (own || spec.api_key_env.is_some()) {
            return Err(self.unusable(spec, format!("there is no key in {key_name}")));
        }
        let service = Service {
            wire: Wire::Anthropic,
            name: spec.name.clone(),
            own,
            base: base.to_owned(),
            redactor: Redactor::for_backend(context.variables, key.map(|key| (key_name, key))),
            key: key.map(Secret::new),
            key_name: key_name.to_owned(),
            limits: self.limits.with(&spec.waits),
        };
        backend(service, context).map_err(|reason| self.unusable(spec, reason))
    }
}

impl BackendFactory for OpenAiFactory {
    fn kind(&self) -> &'static str {
        "openai"
    }

    fn look(&self, context: BackendContext<'_>) -> Option<Looked> {
        let name = context.spec.api_key_env.as_deref().unwrap_or(OPENAI_KEY);
        Some(Looked {
            what: format!("a key in {name}, or a server named by [backends.openai] base_url in prose.toml"),
            found: context.spec.base_url.is_some() || context.variables.get(name).is_some(),
        })
    }

    fn setup(&self) -> &'static str {
        "put a key of OpenAI's API into OPENAI_API_KEY, or name a compatible server (Ollama, vLLM, llama.cpp, LM Studio) \
         in prose.toml: [backends.openai] base_url = \"http://127.0.0.1:11434/v1\""
    }

    fn needs(&self, context: BackendContext<'_>) -> Needs {
        let spec = context.spec;
        let base = openai_base(spec);
        needs(spec, Wire::OpenAi, (OPENAI_KEY, OPENAI_BASE), &base)
    }

    fn create(&self, context: BackendContext<'_>) -> Result<Backend, BackendError> {
        let spec = context.spec;
        let key_name = spec.api_key_env.as_deref().unwrap_or(OPENAI_KEY);
        let base = openai_base(spec);
        let own = base == OPENAI_BASE;
        let key = key(context, key_name, own);
        if key.is_none() && (own || spec.api_key_env.is_some()) {
            return Err(self.unusable(spec, format!("there is no key in {key_name}")));
        }
        let service = Service {
            wire: Wire::OpenAi,
            name: spec.name.clone(),
            own,
            base,
            redactor: Redactor::for_backend(context.variables, key.map(|key| (key_name, key))),
            key: key.map(Secret::new),
            key_name: key_name.to_owned(),
            limits: self.limits.with(&spec.waits),
        };
        backend(service, context).map_err(|reason| self.unusable(spec, reason))
    }
}

/// The key to send. That of the protocol's own service goes to another server only when it is said to be for it.
fn key<'a>(context: BackendContext<'a>, name: &str, own: bool) -> Option<&'a str> {
    let key = context.variables.get(name);
    key.filter(|_| own || context.spec.api_key_env.is_some())
}

/// The address without what is the same for all services; it may be written with or without `/v1`.
fn anthropic_base(spec: &BackendSpec) -> &str {
    let base = spec.base_url.as_deref().unwrap_or(ANTHROPIC_BASE);
    let base = base.trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base)
}

/// The address up to the version, which may be left out.
fn openai_base(spec: &BackendSpec) -> String {
    let base = spec.base_url.as_deref().unwrap_or(OPENAI_BASE);
    let mut base = base.trim_end_matches('/').to_owned();
    let path = base
        .split_once("://")
        .map_or("", |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    if path.is_empty() {
        base.push_str("/v1");
    }
    base
}

/// What a service needs; `usual` are the variable of its key, and the address of the one whose models are known.
fn needs(spec: &BackendSpec, wire: Wire, usual: (&str, &str), base: &str) -> Needs {
    let own = base == usual.1;
    let required = own || spec.api_key_env.is_some();
    Needs {
        // A server of one's own is sent a key only when it is said to be for it.
        key: required.then(|| KeyNeed {
            variable: spec.api_key_env.as_deref().unwrap_or(usual.0).to_owned(),
            required,
        }),
        base_url: Some(base.to_owned()),
        models: meanings(spec, |name| models::usual(wire, own, name)),
        prices_of: Some(models::PRICES_OF),
        ..Needs::default()
    }
}

/// What both factories say when they can't.
trait Unusable: BackendFactory {
    fn unusable(&self, spec: &BackendSpec, reason: String) -> BackendError {
        BackendError::Unusable {
            name: spec.name.clone(),
            reason,
            setup: self.setup().to_owned(),
        }
    }
}

impl<T: BackendFactory> Unusable for T {}

fn backend(service: Service, context: BackendContext<'_>) -> Result<Backend, String> {
    let spec = context.spec;
    let api = Api(Arc::new(Inner {
        client: Client::new(service)?,
        models: spec.models.clone(),
        prices: spec.prices.clone(),
        variables: context.variables.clone(),
        served: OnceCell::new(),
    }));
    let judge: Arc<dyn Judge> = Arc::new(ModelJudge::new(api.clone()));
    Ok(Backend {
        name: spec.name.clone(),
        simulated: false,
        sessions: Arc::new(api),
        judge,
        inputs: None,
        observer: None,
        mock_text: None,
    })
}
