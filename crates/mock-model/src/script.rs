//! Scripts: which request gets which answer. Read from TOML or JSON, or made with the builders here.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::asked::{Api, Asked};

/// What a mock answers: the first rule that fits a request does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The rules, in the order they are tried.
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The answer to a request that no rule fits. Without it such a request is refused with status 400, which no client
    /// tries again, and a message that says what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Answer>,
    /// The only key that is let in, whichever header carries it; others get status 401. Without it any key does, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The names that the list of models gives.
    #[serde(default = "default_models")]
    pub models: Vec<String>,
    /// Whether requests that the real service would refuse (a missing field, a tool call without its result) are let
    /// through.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lenient: bool,
}

/// A rule: what a request must be like, and what is answered then. Every condition that is there must hold.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Requests of this API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Pattern>,
    /// The last text of the user: results of tools don't count, nor do texts that are nothing but a harness's reminders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Pattern>,
    /// The system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Pattern>,
    /// The texts of the tool results that came last, if the conversation ends with some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Pattern>,
    /// The whole body, as JSON without blanks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Pattern>,
    /// The name of one of the tools that are offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Pattern>,
    /// Headers, by lower-case name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub header: BTreeMap<String, Pattern>,
    /// Whether the answer's shape is forced, by a schema or by naming the tool to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<bool>,
    /// Only the n-th request that fits the rest of this rule, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The answers of a conversation with tools, by how many rounds of tool calls have come since the user's last text.
    /// The last one repeats. Used instead of `answer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Answer>,
    /// Makes the answer. Used instead of `answer` and `turns`.
    #[serde(skip)]
    pub made: Option<Made>,
}

/// A function that makes an answer.
#[derive(Clone)]
pub struct Made(pub(crate) Arc<dyn Fn(&Asked) -> Answer + Send + Sync>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Made(..)")
    }
}

/// What the model says, how fast, and what goes wrong on the way.
///
/// In `text`, `json` and the inputs of `calls`, `${name}` stands for what the group `name` of one of the rule's patterns
/// has matched, for `user`, `model`, `result` (of the request) or `n` (how often the rule has been used, from 1).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What is thought before, where the API shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A value: the input of the tool that must be called if there is one, else the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The tools that are called, after the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Why the answer ends. Without it: because it is whole, or for the tools it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Tokens. What isn't said is a fourth of the characters.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// Characters in a piece of a stream; 12 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<usize>,
    /// Milliseconds before each piece of a stream.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// Milliseconds before anything is answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_ms: u64,
    /// What goes wrong each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What goes wrong the first time, the second and so on; then all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// What it is given.
    #[serde(default = "empty_object")]
    pub input: Value,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It is whole.
    End,
    /// The limit of tokens is reached.
    MaxTokens,
    /// The model declines.
    Refusal,
    /// The service keeps the answer back.
    Filtered,
    /// A stop sequence came.
    StopSequence,
}

/// Tokens of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read, without those that came from or went to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens that came from the cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Tokens that went to the cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Tokens of the output that were thought.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Another status than 200, with an error in the API's own shape.
    Status {
        /// The status.
        code: u16,
        /// The value of the header `retry-after`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<String>,
        /// The message; otherwise one that names the status.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The body as it is, whatever the API's shape is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
    },
    /// The answer ends early.
    Cut {
        /// How the connection ends.
        #[serde(default)]
        how: Cut,
        /// Where.
        after: Place,
    },
    /// The connection is reset before anything is answered.
    Reset,
    /// Nothing more comes, and the connection stays open.
    Hang {
        /// Where; without it, not even the head of the answer comes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Place>,
    },
    /// What should be JSON isn't.
    Garbage {
        /// Where in a stream. A whole answer is replaced.
        #[serde(default)]
        after: Place,
    },
    /// Bytes that are no event stream; the stream goes on behind them. A whole answer is replaced.
    Malformed {
        /// Where in a stream.
        #[serde(default)]
        after: Place,
    },
    /// The API's own event for an error in mid-stream, and the end. A whole answer is replaced by status 500.
    Error {
        /// The API's name of the error, such as `overloaded_error`.
        kind: String,
        /// The message.
        message: String,
        /// Where in a stream.
        #[serde(default)]
        after: Place,
    },
}

/// How a connection ends early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Closed without the mark of the body's end.
    #[default]
    Abrupt,
    /// The body ends as it should, too early.
    Clean,
    /// Reset.
    Reset,
}

/// A place in an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Behind so many events of a stream.
    Events(usize),
    /// Behind so many bytes.
    Bytes(usize),
}

impl Default for Place {
    fn default() -> Place {
        Place::Events(0)
    }
}

/// A regular expression that must be found somewhere in the text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Regex);

impl Pattern {
    /// The expression.
    pub fn regex(&self) -> &Regex {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Pattern, regex::Error> {
        Regex::new(&text).map(Pattern)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.0.as_str().to_owned()
    }
}

impl From<&str> for Pattern {
    /// For tests written in Rust.
    ///
    /// # Panics
    ///
    /// If `text` is no regular expression.
    fn from(text: &str) -> Pattern {
        match Regex::new(text) {
            Ok(regex) => Pattern(regex),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Why a script can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file can't be read.
    #[error("can't read the script {0}: {1}")]
    Read(String, std::io::Error),
    /// The text is no script.
    #[error("the script {0} is wrong: {1}")]
    Wrong(String, String),
}

impl Script {
    /// A script without rules.
    pub fn new() -> Script {
        Script {
            models: default_models(),
            ..Script::default()
        }
    }

    /// A script that gives every request this answer.
    pub fn always(answer: Answer) -> Script {
        Script {
            otherwise: Some(answer),
            ..Script::new()
        }
    }

    /// Adds a rule behind the others.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Script {
        self.rules.push(rule);
        self
    }

    /// The answer to what no rule fits.
    #[must_use]
    pub fn otherwise(mut self, answer: Answer) -> Script {
        self.otherwise = Some(answer);
        self
    }

    /// Lets only this key in.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Script {
        self.key = Some(key.into());
        self
    }

    /// Reads a script: JSON if the name ends so, otherwise TOML.
    ///
    /// # Errors
    ///
    /// If the file can't be read or isn't a script.
    pub fn read(file: &Path) -> Result<Script, ScriptError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|error| ScriptError::Read(name.clone(), error))?;
        if file.extension().is_some_and(|extension| extension == "json") {
            serde_json::from_str(&text).map_err(|error| ScriptError::Wrong(name, error.to_string()))
        } else {
            toml::from_str(&text).map_err(|error| ScriptError::Wrong(name, error.to_string()))
        }
    }
}

impl Rule {
    /// A rule that fits every request.
    pub fn any() -> Rule {
        Rule::default()
    }

    /// A rule for the user's last text.
    pub fn user(pattern: &str) -> Rule {
        Rule {
            user: Some(pattern.into()),
            ..Rule::default()
        }
    }

    /// Only requests of this API.
    #[must_use]
    pub fn api(mut self, api: Api) -> Rule {
        self.api = Some(api);
        self
    }

    /// Only requests for this model.
    #[must_use]
    pub fn model(mut self, pattern: &str) -> Rule {
        self.model = Some(pattern.into());
        self
    }

    /// Only requests with this system text.
    #[must_use]
    pub fn system(mut self, pattern: &str) -> Rule {
        self.system = Some(pattern.into());
        self
    }

    /// Only requests that end with such a result of a tool.
    #[must_use]
    pub fn result(mut self, pattern: &str) -> Rule {
        self.result = Some(pattern.into());
        self
    }

    /// Only requests with such a body.
    #[must_use]
    pub fn body(mut self, pattern: &str) -> Rule {
        self.body = Some(pattern.into());
        self
    }

    /// Only requests that offer such a tool.
    #[must_use]
    pub fn tool(mut self, pattern: &str) -> Rule {
        self.tool = Some(pattern.into());
        self
    }

    /// Only requests with such a header; its name in lower case.
    #[must_use]
    pub fn header(mut self, name: &str, pattern: &str) -> Rule {
        self.header.insert(name.to_owned(), pattern.into());
        self
    }

    /// Only requests whose answer's shape is forced, or isn't.
    #[must_use]
    pub fn forced(mut self, forced: bool) -> Rule {
        self.forced = Some(forced);
        self
    }

    /// Only the n-th request that fits, from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Rule {
        self.nth = Some(nth);
        self
    }

    /// What is answered.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Rule {
        self.answer = Some(answer);
        self
    }

    /// What is answered first, after the first results of tools, and so on.
    #[must_use]
    pub fn turns(mut self, turns: impl IntoIterator<Item = Answer>) -> Rule {
        self.turns = turns.into_iter().collect();
        self
    }

    /// Makes the answer by a function.
    #[must_use]
    pub fn made(mut self, made: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Rule {
        self.made = Some(Made(Arc::new(made)));
        self
    }
}

impl Answer {
    /// A text.
    pub fn text(text: impl Into<String>) -> Answer {
        Answer {
            text: Some(text.into()),
            ..Answer::default()
        }
    }

    /// A value in the shape that is forced.
    pub fn json(value: Value) -> Answer {
        Answer {
            json: Some(value),
            ..Answer::default()
        }
    }

    /// A call of a tool.
    pub fn call(name: impl Into<String>, input: Value) -> Answer {
        Answer::default().and_call(name, input)
    }

    /// One more call.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, input: Value) -> Answer {
        self.calls.push(Call {
            name: name.into(),
            input,
        });
        self
    }

    /// What is thought before.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Answer {
        self.thinking = Some(text.into());
        self
    }

    /// Why it ends.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Answer {
        self.stop = Some(stop);
        self
    }

    /// Tokens in and out.
    #[must_use]
    pub fn tokens(mut self, input: u64, output: u64) -> Answer {
        self.usage.input = Some(input);
        self.usage.output = Some(output);
        self
    }

    /// All tokens.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Answer {
        self.usage = usage;
        self
    }

    /// Characters in a piece of a stream.
    #[must_use]
    pub fn chunk(mut self, characters: usize) -> Answer {
        self.chunk = Some(characters);
        self
    }

    /// Waits before each piece of a stream.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Answer {
        self.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Waits before anything is answered.
    #[must_use]
    pub fn first_after(mut self, delay: Duration) -> Answer {
        self.first_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Goes wrong each time.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Answer {
        self.fault = Some(fault);
        self
    }

    /// Goes wrong so many times more, and then no longer.
    #[must_use]
    pub fn first(mut self, times: usize, fault: Fault) -> Answer {
        self.faults.extend(std::iter::repeat_n(fault, times));
        self
    }
}

impl Fault {
    /// A status.
    pub fn status(code: u16) -> Fault {
        Fault::Status {
            code,
            retry_after: None,
            message: None,
            body: None,
        }
    }

    /// A status, and when to come again (seconds, or a date).
    pub fn status_retry_after(code: u16, retry_after: impl Into<String>) -> Fault {
        Fault::Status {
            code,
            retry_after: Some(retry_after.into()),
            message: None,
            body: None,
        }
    }
}

impl Usage {
    fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

fn default_models() -> Vec<String> {
    vec!["mock".to_owned()]
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !value
}
