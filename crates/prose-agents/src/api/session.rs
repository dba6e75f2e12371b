//! One session: rounds of asking the model and doing what it wants done, up to its last word.

use prose_model::{ErrorKind, Failure, Usage};
use serde_json::json;

use super::bill::Bill;
use super::client::Client;
use super::models::{self, Price};
use super::wire::{Ask, Call, CallResult, Form, Message, Stop, Tokens, Turn};
use crate::content::failure;
use crate::tools::{ToolSpec, Toolbox};
use crate::{MemoryUpdate, ReplyBody, SessionReply, SessionSink, SessionSpawn, SessionUpdate, SpendLimit};

/// With less than this left, in tokens, nothing useful can be answered.
const LEAST_ANSWER: u64 = 16;
/// Most tokens of what an agent remembers.
const MOST_MEMORY: u64 = 16_000;
/// How often a pause that a service makes is followed by a new call.
const MOST_PAUSES: u32 = 10;

/// A session at work.
struct Session<'a> {
    client: &'a Client,
    model: &'a str,
    bill: &'a Bill,
    system: String,
    messages: Vec<Message>,
    tools: &'a Toolbox,
    specs: Vec<ToolSpec>,
    sink: &'a dyn SessionSink,
    budget: SpendLimit,
}

/// Runs a session. What it used is in the reply, or in the failure.
pub(crate) async fn run(
    client: &Client,
    spawn: &SessionSpawn,
    model: &str,
    bill: &Bill,
    tools: &Toolbox,
) -> Result<SessionReply, Failure> {
    let specs = tools.specs();
    let mut session = Session {
        client,
        model,
        bill,
        system: system(spawn, &specs),
        messages: vec![Message::User(spawn.prompt.user.clone())],
        tools,
        specs,
        sink: &*spawn.sink,
        budget: spawn.budget,
    };
    let result = session.reply(spawn).await;
    let usage = session.usage();
    match result {
        Ok(mut reply) => {
            reply.usage = usage;
            Ok(reply)
        }
        Err(mut failure) => {
            failure.usage = usage;
            Err(failure)
        }
    }
}

fn system(spawn: &SessionSpawn, specs: &[ToolSpec]) -> String {
    let mut text = spawn.prompt.system.trim_end().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(
        "You run as one step of a larger program. Do the task and nothing beyond it. Your last message is the result, \
         which other steps use as it stands: give it whole, without a word about how you got there. Nobody answers \
         questions.",
    );
    if !specs.is_empty() {
        text.push_str(&format!(
            " The folder of the work is {}; paths are relative to it.",
            spawn.work_dir.display()
        ));
    }
    text
}

/// How many tokens a budget leaves for an answer to what is so long, in bytes; none: as many as one likes.
pub(super) fn affordable(budget: SpendLimit, price: Option<&Price>, said: usize) -> Option<u64> {
    // About four characters make a token. It need not be exact: the runtime counts what was really used.
    let asked = said as u64 / 4;
    let by_tokens = budget.tokens.map(|limit| limit.saturating_sub(asked));
    let by_money = budget.usd.zip(price).map(|(limit, price)| {
        let question = Tokens {
            input: asked,
            ..Tokens::default()
        };
        price.affords(limit - price.of(question))
    });
    match (by_tokens, by_money) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A failure for want of budget, where no answer is worth its price.
pub(super) fn enough(affordable: Option<u64>) -> Result<(), Failure> {
    match affordable {
        Some(left) if left < LEAST_ANSWER => Err(failure(
            ErrorKind::Budget,
            "the budget does not reach for another answer of the model",
        )),
        _ => Ok(()),
    }
}

impl Session<'_> {
    fn usage(&self) -> Usage {
        self.bill.usage()
    }

    async fn reply(&mut self, spawn: &SessionSpawn) -> Result<SessionReply, Failure> {
        let text = self.work().await?;
        let memory = match &spawn.memory {
            Some(memory) => self.remember(memory.segment).await,
            None => None,
        };
        Ok(SessionReply {
            body: ReplyBody::Text(text),
            summary: None,
            usage: Usage::default(),
            memory,
        })
    }

    /// Rounds up to the last word, which is the result.
    async fn work(&mut self) -> Result<String, Failure> {
        let mut text = String::new();
        let mut pauses = 0;
        for _ in 0..self.client.limits.rounds {
            let turn = self.ask(None, None).await?;
            // Models that have said all before their last tool call end without a word.
            if !turn.text.trim().is_empty() {
                text.clone_from(&turn.text);
            }
            let calls = turn.calls.clone();
            self.ended(&turn, pauses)?;
            let paused = turn.stop == Stop::Pause;
            self.messages.push(Message::Assistant(turn));
            if paused {
                pauses += 1;
                continue;
            }
            if calls.is_empty() {
                return Ok(text);
            }
            let results = self.call(calls).await;
            self.messages.push(Message::Results(results));
        }
        Err(failure(
            ErrorKind::Backend,
            format!(
                "{}: the session used tools for {} rounds without coming to a result",
                self.client.name, self.client.limits.rounds
            ),
        ))
    }

    /// Whether an answer ended as one has to.
    fn ended(&self, turn: &Turn, pauses: u32) -> Result<(), Failure> {
        let name = &self.client.name;
        let message = match &turn.stop {
            Stop::End => return Ok(()),
            Stop::Pause if pauses < MOST_PAUSES => return Ok(()),
            Stop::Pause => format!("{name}: the service paused more than {MOST_PAUSES} times"),
            Stop::Length if self.short().is_some() => {
                return Err(failure(
                    ErrorKind::Budget,
                    "the budget ended in the middle of an answer",
                ));
            }
            Stop::Length => format!(
                "{name}: the answer was cut at the model's limit of tokens; ask for less at once, or for parts"
            ),
            Stop::Window => format!("{name}: prompt and answer are too long for `{}`", self.model),
            Stop::Refused(why) if why.trim().is_empty() => {
                format!("{name}: `{}` declined to answer", self.model)
            }
            Stop::Refused(why) => {
                format!(
                    "{name}: `{}` declined to answer: {}",
                    self.model,
                    self.client.redactor.one_line(why)
                )
            }
            Stop::Other(why) => format!("{name}: the answer ended for an unknown reason, `{why}`"),
        };
        Err(failure(ErrorKind::Backend, message))
    }

    /// How many tokens the budget leaves for an answer to what has been said, if there is one.
    fn affordable(&self) -> Option<u64> {
        let said: usize = self.messages.iter().map(size).sum::<usize>() + self.system.len();
        affordable(self.budget.after(&self.usage()), self.bill.price(), said)
    }

    /// What the budget leaves, where that is less than an answer may have anyway.
    fn short(&self) -> Option<u64> {
        self.affordable()
            .filter(|left| *left < models::most_tokens(self.model))
    }

    async fn ask(&mut self, form: Option<Form<'_>>, most: Option<u64>) -> Result<Turn, Failure> {
        let affordable = self.affordable();
        enough(affordable)?;
        let own_limit = models::most_tokens(self.model).min(most.unwrap_or(u64::MAX));
        let max_tokens = match (affordable, self.client.wire) {
            (Some(left), _) => Some(left.min(own_limit)),
            (None, super::wire::Wire::Anthropic) => Some(own_limit),
            // Servers know their models' limits themselves.
            (None, super::wire::Wire::OpenAi) => most,
        };
        let ask = Ask {
            model: self.model,
            system: &self.system,
            messages: &self.messages,
            tools: &self.specs,
            form,
            max_tokens,
        };
        let sink = self.sink;
        let shown = form.is_none();
        let mut on_text = |text: &str| {
            if shown {
                sink.update(SessionUpdate::Text(text.to_owned()));
            }
        };
        let result = self.client.turn(&ask, self.bill, &mut on_text).await;
        self.sink.update(SessionUpdate::Usage(self.usage()));
        result
    }

    /// Uses the tools, one after the other: each may rest on what the one before has done.
    async fn call(&self, calls: Vec<Call>) -> Vec<CallResult> {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let (text, is_error) = match call.input {
                Ok(input) => {
                    let result = self.tools.call(&call.name, input).await;
                    (result.text, result.is_error)
                }
                Err(_) => ("the arguments are no JSON object; call it again".to_owned(), true),
            };
            results.push(CallResult {
                id: call.id,
                text,
                is_error,
            });
        }
        results
    }

    /// Asks for the agent's memory, after the result, so that the two stay apart. A result is not given up because the
    /// memory could not be had: it stays as it was then.
    async fn remember(&mut self, segment: u32) -> Option<MemoryUpdate> {
        let schema = json!({
            "type": "object",
            "properties": {"memory": {"type": "string"}, "segment": {"type": "string"}},
            "required": ["memory", "segment"],
            "additionalProperties": false,
        });
        self.messages.push(Message::User(format!(
            "Your result has been taken. Now write down what you want to remember, as one JSON object and nothing \
             else:\n\
             - `memory`: your memory anew and whole, as Markdown. It takes the place of the one you had.\n\
             - `segment`: the record of this session (segment {segment:03}): what you looked at, found, decided, and \
             what should come next.\n\nIts schema:\n{schema}"
        )));
        let form = Form {
            name: "update_memory",
            schema: &schema,
            forced: true,
        };
        let mut why = String::new();
        for _ in 0..2 {
            match self.ask(Some(form), Some(MOST_MEMORY)).await {
                Ok(turn) if turn.stop == Stop::End => match memory(&turn.text) {
                    Some(update) => return Some(update),
                    None => "it could not be read".clone_into(&mut why),
                },
                Ok(turn) => why = format!("the answer ended early: {:?}", turn.stop),
                Err(failure) => {
                    why = failure.message;
                    break;
                }
            }
        }
        tracing::warn!(
            backend = self.client.name,
            cause = why,
            "the agent's memory stays as it was"
        );
        self.sink.notice(format!(
            "the agent's memory stays as it was: {}",
            self.client.redactor.one_line(&why)
        ));
        None
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant(turn) => {
            let calls = turn.calls.iter().map(|call| match &call.input {
                Ok(input) => call.name.len() + input.to_string().len(),
                Err(text) => call.name.len() + text.len(),
            });
            turn.text.len() + calls.sum::<usize>()
        }
        Message::Results(results) => results.iter().map(|result| result.text.len()).sum(),
    }
}

fn memory(answer: &str) -> Option<MemoryUpdate> {
    let object = crate::judging::only_object(answer, "memory").ok()?;
    let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str).map(str::trim);
    let memory = text("memory").filter(|text| !text.is_empty())?;
    Some(MemoryUpdate::Text {
        memory: format!("{memory}\n"),
        segment: text("segment")
            .map(|text| format!("{text}\n"))
            .unwrap_or_default(),
    })
}
