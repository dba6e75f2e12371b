//! Anthropic's messages.

use serde_json::{Value, json};

use super::{Event, Reply, pieces};
use crate::asked::{Asked, Step, follow, names, texts};
use crate::script::Stop;

pub(crate) fn read(asked: &mut Asked, body: &Value) {
    let system: Vec<String> = std::iter::once(texts(&body["system"]))
        // Harnesses put system texts between the other messages.
        .chain(
            messages(body)
                .filter(|message| message["role"] == "system")
                .map(|message| texts(&message["content"])),
        )
        .filter(|text| !text.is_empty())
        .collect();
    asked.system = system.join("\n");
    let steps = messages(body).flat_map(|message| {
        let content = &message["content"];
        if message["role"] == "system" {
            return Vec::new();
        }
        if message["role"] == "assistant" {
            return match blocks(content, "tool_use").next() {
                Some(_) => vec![Step::Call],
                None => vec![Step::Model],
            };
        }
        let results: Vec<Step> = blocks(content, "tool_result")
            .map(|block| Step::Result(texts(&block["content"])))
            .collect();
        if results.is_empty() {
            vec![Step::User(texts(content))]
        } else {
            results
        }
    });
    (asked.user, asked.result, asked.turn) = follow(steps.collect::<Vec<_>>());
    asked.tools = names(&body["tools"], |tool| &tool["name"]);
    asked.forced_tool = (body["tool_choice"]["type"] == "tool")
        .then(|| body["tool_choice"]["name"].as_str().map(str::to_owned))
        .flatten();
    asked.schema = [&body["output_config"]["format"], &body["output_format"]]
        .into_iter()
        .find(|format| format["type"] == "json_schema")
        .map(|format| format["schema"].clone());
}

pub(crate) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut message = message(asked, reply);
    message["content"] = content(reply).into();
    message["stop_reason"] = stop(reply).into();
    message["usage"]["output_tokens"] = reply.usage.output.into();
    message
}

pub(crate) fn events(asked: &Asked, reply: &Reply) -> Vec<Event> {
    let mut all = vec![
        event(
            &json!({"type": "message_start", "message": message(asked, reply)}),
            false,
        ),
        event(&json!({"type": "ping"}), false),
    ];
    for (index, block) in content(reply).into_iter().enumerate() {
        let (empty, deltas) = unfold(&block, reply.chunk);
        all.push(event(
            &json!({"type": "content_block_start", "index": index, "content_block": empty}),
            false,
        ));
        all.extend(deltas.iter().map(|delta| {
            event(
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                true,
            )
        }));
        all.push(event(
            &json!({"type": "content_block_stop", "index": index}),
            false,
        ));
    }
    all.push(event(
        &json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop(reply), "stop_sequence": null},
            "usage": {"output_tokens": reply.usage.output},
        }),
        false,
    ));
    all.push(event(&json!({"type": "message_stop"}), false));
    all
}

pub(crate) fn error(status: u16, kind: Option<&str>, message: &str) -> Value {
    let kind = kind.unwrap_or(match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    });
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub(crate) fn complaint(asked: &Asked) -> Option<String> {
    let body = &asked.body;
    if !body["model"].is_string() {
        return Some("model: Field required".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|limit| limit == 0) {
        return Some("max_tokens: Field required".to_owned());
    }
    if !asked.headers.contains_key("anthropic-version") {
        return Some("anthropic-version: header is required".to_owned());
    }
    if messages(body).next().is_none() {
        return Some("messages: at least one message is required".to_owned());
    }
    let mut waiting: Vec<&str> = Vec::new();
    for (index, message) in messages(body).enumerate() {
        let content = &message["content"];
        let role = message["role"].as_str().unwrap_or_default();
        // Newer services take system texts between the others.
        if !matches!(role, "user" | "assistant" | "system") {
            return Some(format!(
                "messages.{index}.role: Input should be 'user' or 'assistant'"
            ));
        }
        if content.as_array().is_none_or(Vec::is_empty) && content.as_str().is_none_or(str::is_empty) {
            return Some(format!("messages.{index}: content must not be empty"));
        }
        if let Some(place) = blocks(content, "text").position(|block| block["text"] == "") {
            return Some(format!(
                "messages.{index}.content.{place}: text content blocks must be non-empty"
            ));
        }
        if role == "assistant" {
            waiting.extend(blocks(content, "tool_use").filter_map(|block| block["id"].as_str()));
        } else if role == "user" {
            for block in blocks(content, "tool_result") {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                match waiting.iter().position(|known| *known == id) {
                    Some(place) => {
                        waiting.remove(place);
                    }
                    None => {
                        return Some(format!(
                            "messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
                        ));
                    }
                }
            }
            if let Some(id) = waiting.first() {
                return Some(format!(
                    "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
                ));
            }
        }
    }
    waiting
        .first()
        .map(|id| format!("messages: `tool_use` ids were found without `tool_result` blocks: {id}"))
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    body["messages"].as_array().into_iter().flatten()
}

fn blocks<'a>(content: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    content
        .as_array()
        .into_iter()
        .flatten()
        .filter(move |block| block["type"] == kind)
}

/// The message before it has content.
fn message(asked: &Asked, reply: &Reply) -> Value {
    json!({
        "id": format!("msg_mock_{}", reply.number),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": reply.usage.input,
            "cache_creation_input_tokens": reply.usage.cache_write,
            "cache_read_input_tokens": reply.usage.cache_read,
            "output_tokens": 1,
        },
    })
}

fn content(reply: &Reply) -> Vec<Value> {
    let thinking = reply
        .thinking
        .iter()
        .map(|text| json!({"type": "thinking", "thinking": text, "signature": "bW9jaw=="}));
    let text = reply
        .text
        .iter()
        .map(|text| json!({"type": "text", "text": text}));
    let calls = reply
        .calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
    thinking.chain(text).chain(calls).collect()
}

/// A block as it starts, and what is added to it.
fn unfold(block: &Value, chunk: usize) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let cut = |text: &Value| pieces(text.as_str().unwrap_or_default(), chunk);
    let deltas = match block["type"].as_str() {
        Some("thinking") => {
            empty["thinking"] = "".into();
            empty["signature"] = "".into();
            cut(&block["thinking"])
                .iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .chain([json!({"type": "signature_delta", "signature": block["signature"]})])
                .collect()
        }
        Some("tool_use") => {
            empty["input"] = json!({});
            pieces(&block["input"].to_string(), chunk)
                .iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        }
        _ => {
            empty["text"] = "".into();
            cut(&block["text"])
                .iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect()
        }
    };
    (empty, deltas)
}

fn stop(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::End if reply.calls.is_empty() => "end_turn",
        Stop::End => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal | Stop::Filtered => "refusal",
        Stop::StopSequence => "stop_sequence",
    }
}

fn event(data: &Value, piece: bool) -> Event {
    Event {
        name: data["type"].as_str().map(str::to_owned),
        data: data.to_string(),
        piece,
    }
}
