//! A conversation with a model, whichever service it is with.

use std::borrow::Cow;

use prose_model::Usage;
use serde_json::Value;

use super::models::Price;
use super::{anthropic, openai};
use crate::tools::ToolSpec;

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which many servers speak.
    OpenAi,
}

/// One call of the model.
pub(crate) struct Ask<'a> {
    pub(crate) model: &'a str,
    pub(crate) system: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: &'a [ToolSpec],
    /// Set where the answer has to be a JSON object.
    pub(crate) form: Option<Form<'a>>,
    pub(crate) max_tokens: Option<u64>,
}

/// What an answer has to look like.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a> {
    /// A word for it.
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    /// Whether the service is told; otherwise the text asks for it and nothing else does.
    pub(crate) forced: bool,
}

/// A step of the conversation.
pub(crate) enum Message {
    User(String),
    Assistant(Turn),
    Results(Vec<CallResult>),
}

/// What a tool answered.
pub(crate) struct CallResult {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// What the model said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// Its text. Where a form was forced: the object.
    pub(crate) text: String,
    /// The tools it wants to use.
    pub(crate) calls: Vec<Call>,
    /// The answer as the service wants it back, where it does.
    pub(crate) blocks: Vec<Value>,
    pub(crate) stop: Stop,
}

/// A tool that the model wants to use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments; or the text that should have been JSON.
    pub(crate) input: Result<Value, String>,
}

impl Call {
    pub(crate) fn new(id: String, name: String, arguments: &str) -> Call {
        let input = if arguments.trim().is_empty() {
            Ok(Value::Object(serde_json::Map::new()))
        } else {
            match serde_json::from_str(arguments) {
                Ok(input @ Value::Object(_)) => Ok(input),
                _ => Err(arguments.to_owned()),
            }
        };
        Call { id, name, input }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Stop {
    /// It is whole, or waits for tools.
    #[default]
    End,
    /// The service wants to be asked to go on.
    Pause,
    /// The limit of tokens was reached.
    Length,
    /// The context window is full.
    Window,
    /// The model declines, or its service does, with its words if there are any.
    Refused(String),
    /// Something else.
    Other(String),
}

/// Tokens of one or several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Read, neither from nor to a cache.
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
}

impl Tokens {
    pub(crate) fn add(&mut self, other: Tokens) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }

    /// As the rest of the project counts; without money where no price is known.
    pub(crate) fn usage(self, price: Option<&Price>) -> Usage {
        Usage {
            input_tokens: self
                .input
                .saturating_add(self.cache_read)
                .saturating_add(self.cache_write),
            output_tokens: self.output,
            cost_usd: price.map(|price| price.of(self)),
        }
    }
}

/// What an event of a stream was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    /// A sign of life.
    Life,
    /// A piece of the answer.
    Content,
    /// The mark of the end.
    Done,
}

/// Why a stream is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is no stream of that protocol.
    Garbage(String),
    /// The service reports an error in it: its kind and words.
    Reported { kind: String, message: String },
}

/// Reads the events of one answer.
pub(crate) enum Reader {
    Anthropic(anthropic::Reader),
    OpenAi(openai::Reader),
}

impl Reader {
    /// Takes an event's data; text goes to `on_text` at once.
    pub(crate) fn event(
        &mut self,
        data: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Flow, Broken> {
        match self {
            Reader::Anthropic(reader) => reader.event(data, on_text),
            Reader::OpenAi(reader) => reader.event(data, on_text),
        }
    }

    /// Whether a stream that ends here has said all.
    pub(crate) fn may_end(&self) -> bool {
        match self {
            Reader::Anthropic(_) => false,
            Reader::OpenAi(reader) => reader.may_end(),
        }
    }

    /// What was used so far.
    pub(crate) fn tokens(&self) -> Tokens {
        match self {
            Reader::Anthropic(reader) => reader.tokens,
            Reader::OpenAi(reader) => reader.tokens,
        }
    }

    /// The answer.
    pub(crate) fn turn(self) -> Turn {
        match self {
            Reader::Anthropic(reader) => reader.turn(),
            Reader::OpenAi(reader) => reader.turn(),
        }
    }
}

impl Wire {
    /// Where to send a call, below the base address.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Wire::Anthropic => "/v1/messages",
            Wire::OpenAi => "/chat/completions",
        }
    }

    /// The body of a call. `own` is whether it goes to the service whose protocol it is.
    pub(crate) fn body(self, ask: &Ask<'_>, own: bool) -> Value {
        match self {
            Wire::Anthropic => anthropic::body(ask),
            Wire::OpenAi => openai::body(ask, own),
        }
    }

    pub(crate) fn reader(self, ask: &Ask<'_>) -> Reader {
        let form = ask
            .form
            .filter(|form| form.forced)
            .map(|form| form.name.to_owned());
        match self {
            Wire::Anthropic => Reader::Anthropic(anthropic::Reader::new(form)),
            Wire::OpenAi => Reader::OpenAi(openai::Reader::default()),
        }
    }
}

/// The event as JSON of the expected shape.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(data: &'a str) -> Result<T, Broken> {
    serde_json::from_str(data).map_err(|error| Broken::Garbage(error.to_string()))
}

/// A text that may not be empty.
pub(crate) fn filled<'a>(text: &'a str, instead: &'a str) -> Cow<'a, str> {
    Cow::Borrowed(if text.trim().is_empty() { instead } else { text })
}
