//! The shapes of the four APIs: how each says the same things.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;

use bytes::Bytes;
use serde_json::Value;

use crate::asked::{Api, Asked};
use crate::script::Stop;

/// What is answered, with everything filled in.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The request's place in the log, from 1: names in the answer end with it.
    pub number: u64,
    /// What is thought before.
    pub thinking: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// Why it ends; [`Stop::End`] with calls means that their results are awaited.
    pub stop: Stop,
    /// Tokens.
    pub usage: Counted,
    /// Characters in a piece.
    pub chunk: usize,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// Its id, unique in the mock.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Value,
}

/// Tokens.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Read, without those that came from or went to a cache.
    pub input: u64,
    /// Written, thought ones included.
    pub output: u64,
    /// From the cache.
    pub cache_read: u64,
    /// To the cache.
    pub cache_write: u64,
    /// Thought.
    pub reasoning: u64,
}

impl Counted {
    /// All that was read.
    pub fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// All.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }
}

/// An event of a stream.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its name, where the API names events.
    pub name: Option<String>,
    /// Its data, one line.
    pub data: String,
    /// Whether it carries a piece of the answer, which takes its time.
    pub piece: bool,
}

impl Event {
    /// As it is sent.
    pub fn bytes(&self) -> Bytes {
        let data = &self.data;
        match &self.name {
            Some(name) => format!("event: {name}\ndata: {data}\n\n"),
            None => format!("data: {data}\n\n"),
        }
        .into()
    }
}

/// The answer in one piece.
pub fn whole(asked: &Asked, reply: &Reply) -> Value {
    match asked.api {
        Api::Anthropic => anthropic::whole(asked, reply),
        Api::Chat => chat::whole(asked, reply),
        Api::Responses => responses::whole(asked, reply),
        Api::Gemini => gemini::whole(asked, reply),
    }
}

/// The answer as a stream.
pub fn events(asked: &Asked, reply: &Reply) -> Vec<Event> {
    match asked.api {
        Api::Anthropic => anthropic::events(asked, reply),
        Api::Chat => chat::events(asked, reply),
        Api::Responses => responses::events(asked, reply),
        Api::Gemini => gemini::events(asked, reply),
    }
}

/// The body of an error. `kind` is the API's name of the error; without it, the one that goes with the status.
pub fn error(api: Api, status: u16, kind: Option<&str>, message: &str) -> Value {
    match api {
        Api::Anthropic => anthropic::error(status, kind, message),
        Api::Chat | Api::Responses => chat::error(status, kind, message),
        Api::Gemini => gemini::error(status, kind, message),
    }
}

/// An error in the middle of a stream.
pub fn error_event(api: Api, kind: &str, message: &str) -> Event {
    let event = |name: Option<&str>, data: Value| Event {
        name: name.map(str::to_owned),
        data: data.to_string(),
        piece: false,
    };
    match api {
        Api::Anthropic => event(Some("error"), anthropic::error(500, Some(kind), message)),
        Api::Chat => event(None, chat::error(500, Some(kind), message)),
        Api::Responses => event(Some("error"), responses::error_event(kind, message)),
        Api::Gemini => event(None, gemini::error(500, Some(kind), message)),
    }
}

/// What the real service would refuse in a request, in a sentence.
pub fn complaint(asked: &Asked) -> Option<String> {
    match asked.api {
        Api::Anthropic => anthropic::complaint(asked),
        Api::Chat => chat::complaint(asked),
        Api::Responses => responses::complaint(asked),
        Api::Gemini => gemini::complaint(asked),
    }
}

/// `text` in pieces of so many characters; at least one piece.
pub fn pieces(text: &str, characters: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    if all.is_empty() {
        return vec![String::new()];
    }
    all.chunks(characters.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}
