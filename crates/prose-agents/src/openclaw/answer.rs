//! How a run ended, as the gateway tells it: at its end, or later by the session's transcript.

use prose_model::{ErrorKind, Failure, Usage};
use serde_json::Value as Json;

use crate::{Redactor, failure};

/// How a run ended well.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Turn {
    /// What it said last.
    pub(super) text: String,
    pub(super) usage: Usage,
    /// Tool calls, and how many of them failed.
    pub(super) calls: u64,
    pub(super) failures: u64,
    /// What it wanted to do and was refused.
    pub(super) refused: Vec<String>,
}

impl Turn {
    /// What a person should know though it ended well.
    pub(super) fn warning(&self) -> Option<String> {
        let (failures, calls) = (self.failures, self.calls);
        (failures > 0).then(|| format!("{failures} of {calls} tool calls of the session failed"))
    }
}

/// Reads the payload of the last answer.
pub(super) fn turn(payload: &Json, redactor: &Redactor) -> Result<Turn, Failure> {
    let result = &payload["result"];
    let meta = &result["meta"];
    let usage = usage(&meta["agentMeta"]);
    let failed = |kind, message: String| {
        Err(Failure {
            usage,
            ..failure(kind, message)
        })
    };
    match payload["status"].as_str().unwrap_or_default() {
        "ok" => {}
        "timeout" => {
            let stop = payload["stopReason"].as_str().unwrap_or_default();
            return match stop {
                "rpc" | "stop" | "aborted" => failed(
                    ErrorKind::Backend,
                    "the session was stopped at the gateway".to_owned(),
                ),
                _ => failed(
                    ErrorKind::Timeout,
                    "the gateway's own time limit for a session was reached (`agents.defaults.timeoutSeconds`)"
                        .to_owned(),
                ),
            };
        }
        _ => {
            let said = [
                &payload["error"],
                &payload["error"]["message"],
                &payload["summary"],
            ];
            let said = said.iter().find_map(|said| said.as_str()).unwrap_or_default();
            return failed(ErrorKind::Backend, failed_with(said, redactor));
        }
    }
    let payloads = || result["payloads"].as_array().into_iter().flatten();
    let texts = |is_error: bool| {
        payloads()
            .filter(move |payload| (payload["isError"] == true) == is_error)
            .filter_map(|payload| payload["text"].as_str())
            .collect::<Vec<&str>>()
            .join("\n\n")
    };
    if let Some(error) = error_of(meta) {
        return failed(ErrorKind::Backend, failed_with(error, redactor));
    }
    let text = texts(false);
    let errors = texts(true);
    if text.trim().is_empty() && !errors.trim().is_empty() {
        return failed(ErrorKind::Backend, failed_with(&errors, redactor));
    }
    let tools = &meta["toolSummary"];
    Ok(Turn {
        text,
        usage,
        calls: tools["calls"].as_u64().unwrap_or_default(),
        failures: tools["failures"].as_u64().unwrap_or_default(),
        refused: Vec::new(),
    })
}

/// Reads what the command line answers.
pub(super) fn envelope(envelope: &Json, redactor: &Redactor) -> Result<Turn, Failure> {
    let usage = usage(envelope);
    let tools = &envelope["toolSummary"];
    match envelope["status"].as_str().unwrap_or_default() {
        "ok" => Ok(Turn {
            text: envelope["final"].as_str().unwrap_or_default().to_owned(),
            usage,
            calls: tools["calls"].as_u64().unwrap_or_default(),
            failures: tools["failures"].as_u64().unwrap_or_default(),
            refused: Vec::new(),
        }),
        status => {
            let kind = match status {
                "timeout" => ErrorKind::Timeout,
                _ => ErrorKind::Backend,
            };
            let said = envelope["error"]["message"].as_str().unwrap_or_default();
            Err(Failure {
                usage,
                ..failure(kind, failed_with(said, redactor))
            })
        }
    }
}

fn error_of(meta: &Json) -> Option<&str> {
    let error = &meta["error"];
    error["message"].as_str().or_else(|| error.as_str())
}

/// What a run says that failed.
pub(super) fn failed_with(said: &str, redactor: &Redactor) -> String {
    let said = redactor.one_line(said);
    match said.is_empty() {
        true => "the agent failed, and OpenClaw does not say why: its log does".to_owned(),
        false => format!("the agent failed: {said}"),
    }
}

/// What was used until now, of which the gateway tells only the tokens that were written.
pub(super) fn so_far(data: &Json) -> Usage {
    let count = |name: &str| data[name].as_u64().unwrap_or_default();
    Usage {
        input_tokens: count("inputTokens"),
        output_tokens: count("outputTokens"),
        cost_usd: None,
    }
}

/// Tokens and money, of `agentMeta`, of a message, or of what the command line answers.
fn usage(meta: &Json) -> Usage {
    let counts = &meta["usage"];
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    let input = ["input", "cacheRead", "cacheWrite"];
    let cost = meta["costUsd"]
        .as_f64()
        .or_else(|| counts["cost"]["total"].as_f64());
    Usage {
        input_tokens: input.iter().fold(0, |sum, name| sum.saturating_add(count(name))),
        output_tokens: count("output"),
        cost_usd: cost.filter(|cost| cost.is_finite() && *cost >= 0.0),
    }
}

/// What a session's transcript says about its run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Past {
    /// Nothing was ever asked there.
    Nothing,
    /// It runs, or the end is not there yet.
    Open {
        /// Whether the gateway says that it runs; none: it does not say.
        active: Option<bool>,
    },
    /// It is over.
    Over(Result<Turn, Failure>),
}

/// Reads the answer to `chat.history`.
pub(super) fn past(history: &Json, redactor: &Redactor) -> Past {
    let messages: Vec<&Json> = history["messages"].as_array().into_iter().flatten().collect();
    let active = history["sessionInfo"]["hasActiveRun"].as_bool();
    // What has only just begun has written nothing yet.
    if messages.is_empty() && active != Some(true) {
        return Past::Nothing;
    }
    let of_model = |message: &&&Json| message["role"] == "assistant";
    let mut used = Usage::default();
    for message in messages.iter().filter(of_model) {
        used.add(&usage(message));
    }
    let last = match messages.last() {
        Some(last) if active != Some(true) && last["role"] == "assistant" => last,
        _ => return Past::Open { active },
    };
    let text = text_of(&last["content"]);
    match last["stopReason"].as_str().unwrap_or("stop") {
        "stop" | "end_turn" | "length" => Past::Over(Ok(Turn {
            text,
            usage: used,
            ..Turn::default()
        })),
        "toolUse" | "tool_use" => Past::Open { active },
        _ => {
            let said = last["errorMessage"].as_str().unwrap_or(&text);
            Past::Over(Err(Failure {
                usage: used,
                ..failure(ErrorKind::Backend, failed_with(said, redactor))
            }))
        }
    }
}

fn text_of(content: &Json) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    let texts = parts.filter(|part| part["type"] == "text");
    texts
        .filter_map(|part| part["text"].as_str())
        .collect::<Vec<&str>>()
        .join("\n\n")
}
