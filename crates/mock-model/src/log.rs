//! What was asked, in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::asked::Api;

/// Headers whose values are kept out of the log.
const SECRET: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "set-cookie",
];

/// A request and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Logged {
    /// Its place, from 1.
    pub number: u64,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, as it came; a key in it is kept out as in headers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// The headers, by lower-case name. Of a key, the last four characters and the beginning of its SHA-256.
    pub headers: BTreeMap<String, String>,
    /// The API, if it is a request to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The body; text that isn't JSON is a string.
    pub body: Value,
    /// The index of the rule that fitted, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// The rounds of tool calls since the user's last text.
    pub turn: usize,
    /// The status of the answer; 0 when none is sent.
    pub status: u16,
    /// What the script let go wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What was complained about, if the request was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
    /// How the answer ended, if it has. Not in the log's file, which is written when a request comes.
    #[serde(skip)]
    pub ended: Option<Ended>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All was sent that the script says, faults included.
    Sent,
    /// The client went away before.
    Left,
}

/// How many requests there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All that came.
    pub asked: usize,
    /// Those whose answer hasn't ended.
    pub open: usize,
}

/// The log.
#[derive(Default)]
pub(crate) struct Log {
    requests: Vec<Logged>,
    file: Option<File>,
}

impl Log {
    pub fn new(file: Option<File>) -> Log {
        Log {
            requests: Vec::new(),
            file,
        }
    }

    /// The place the next request gets.
    pub fn next(&self) -> u64 {
        u64::try_from(self.requests.len() + 1).unwrap_or(u64::MAX)
    }

    pub fn add(&mut self, request: Logged) {
        if let Some(file) = &mut self.file
            && let Ok(mut line) = serde_json::to_vec(&request)
        {
            line.push(b'\n');
            // Whoever reads the file finds out that a line is missing; the answer doesn't depend on it.
            let _ = file.write_all(&line).and_then(|()| file.flush());
        }
        self.requests.push(request);
    }

    pub fn end(&mut self, number: u64, ended: Ended) {
        let place = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        if let Some(request) = place.and_then(|place| self.requests.get_mut(place)) {
            request.ended = Some(ended);
        }
    }

    pub fn requests(&self) -> &[Logged] {
        &self.requests
    }

    pub fn counts(&self) -> Counts {
        Counts {
            asked: self.requests.len(),
            open: self
                .requests
                .iter()
                .filter(|request| request.ended.is_none())
                .count(),
        }
    }
}

/// Headers as the log keeps them.
pub(crate) fn without_keys(headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = if SECRET.contains(&name.as_str()) {
                hidden(value)
            } else {
                value.clone()
            };
            (name.clone(), value)
        })
        .collect()
}

/// A query as the log keeps it.
pub(crate) fn query_without_key(query: &str) -> String {
    let parts: Vec<String> = query
        .split('&')
        .map(|part| match part.split_once('=') {
            Some(("key", key)) => format!("key={}", hidden(key)),
            _ => part.to_owned(),
        })
        .collect();
    parts.join("&")
}

/// `Bearer …wxyz sha256:0123456789abcdef`: the scheme, the end of the key, and the beginning of the key's hash. Keys
/// that are too short to show four characters of show none.
pub(crate) fn hidden(value: &str) -> String {
    let (scheme, key) = match value.split_once(' ') {
        Some((scheme, key)) => (format!("{scheme} "), key),
        None => (String::new(), value),
    };
    let length = key.chars().count();
    let end: String = if length >= 12 {
        key.chars().skip(length - 4).collect()
    } else {
        String::new()
    };
    let hash: String = Sha256::digest(key.as_bytes())
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{scheme}…{end} sha256:{hash}")
}
