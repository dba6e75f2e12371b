//! What a request asks, whichever API it speaks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which many others speak too.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Gemini's content generation.
    Gemini,
}

/// A request, read.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its API.
    pub api: Api,
    /// The model it names.
    pub model: String,
    /// The system text.
    pub system: String,
    /// The last text of the user that isn't only a harness's reminder.
    pub user: String,
    /// The texts of the tool results that the conversation ends with.
    pub result: Option<String>,
    /// Rounds of tool calls since the user's last text.
    pub turn: usize,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// The tool that must be called.
    pub forced_tool: Option<String>,
    /// The schema of the text.
    pub schema: Option<Value>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Headers, by lower-case name, as they came.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

/// One step of a conversation, as far as an answer depends on it.
pub(crate) enum Step {
    /// The user says something.
    User(String),
    /// The model calls tools, or one of several tools of a round.
    Call,
    /// A tool's result.
    Result(String),
    /// The model says something.
    Model,
}

/// The last user text, the results at the end, the rounds of calls since the user's text.
pub(crate) fn follow(steps: impl IntoIterator<Item = Step>) -> (String, Option<String>, usize) {
    let (mut user, mut results, mut turn) = (String::new(), Vec::new(), 0);
    let mut calling = false;
    for step in steps {
        match step {
            Step::User(text) if is_reminder(&text) => {}
            Step::User(text) => {
                (user, turn, calling) = (text, 0, false);
                results.clear();
            }
            Step::Call => {
                if !calling {
                    turn += 1;
                    results.clear();
                }
                calling = true;
            }
            Step::Result(text) => {
                calling = false;
                results.push(text);
            }
            Step::Model => results.clear(),
        }
    }
    (user, (!results.is_empty()).then(|| results.join("\n")), turn)
}

/// Harnesses put texts of their own among the user's.
fn is_reminder(text: &str) -> bool {
    let mut rest = text.trim();
    if rest.is_empty() {
        return true;
    }
    while let Some(inner) = rest.strip_prefix("<system-reminder>") {
        match inner.split_once("</system-reminder>") {
            Some((_, behind)) => rest = behind.trim_start(),
            None => return false,
        }
        if rest.is_empty() {
            return true;
        }
    }
    false
}

/// All texts of a message's content: a string, or parts that have a text.
pub(crate) fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.as_str().or_else(|| part["text"].as_str()))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The strings below `key` of every element.
pub(crate) fn names(elements: &Value, name: impl Fn(&Value) -> &Value) -> Vec<String> {
    elements
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|element| name(element).as_str().map(str::to_owned))
        .collect()
}

impl Asked {
    /// Reads the body of a request.
    pub(crate) fn read(api: Api, path: &str, headers: BTreeMap<String, String>, body: Value) -> Asked {
        let mut asked = Asked {
            api,
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: String::new(),
            user: String::new(),
            result: None,
            turn: 0,
            tools: Vec::new(),
            forced_tool: None,
            schema: None,
            stream: body["stream"].as_bool().unwrap_or(false),
            headers,
            body: Value::Null,
        };
        match api {
            Api::Anthropic => crate::api::anthropic::read(&mut asked, &body),
            Api::Chat => crate::api::chat::read(&mut asked, &body),
            Api::Responses => crate::api::responses::read(&mut asked, &body),
            Api::Gemini => crate::api::gemini::read(&mut asked, path, &body),
        }
        asked.body = body;
        asked
    }

    /// Whether the answer's shape is forced.
    pub fn is_forced(&self) -> bool {
        self.forced_tool.is_some() || self.schema.is_some()
    }
}
