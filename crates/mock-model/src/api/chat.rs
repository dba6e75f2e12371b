//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::{Event, Reply, pieces};
use crate::asked::{Asked, Step, follow, names, texts};
use crate::script::Stop;

pub(crate) fn read(asked: &mut Asked, body: &Value) {
    let system: Vec<String> = messages(body)
        .filter(|message| message["role"] == "system" || message["role"] == "developer")
        .map(|message| texts(&message["content"]))
        .collect();
    asked.system = system.join("\n");
    let steps = messages(body).filter_map(|message| match message["role"].as_str()? {
        "user" => Some(Step::User(texts(&message["content"]))),
        "tool" => Some(Step::Result(texts(&message["content"]))),
        "assistant" if calls(message).next().is_some() => Some(Step::Call),
        "assistant" => Some(Step::Model),
        _ => None,
    });
    (asked.user, asked.result, asked.turn) = follow(steps.collect::<Vec<_>>());
    asked.tools = names(&body["tools"], |tool| &tool["function"]["name"]);
    asked.forced_tool = body["tool_choice"]["function"]["name"]
        .as_str()
        .map(str::to_owned);
    let format = &body["response_format"];
    asked.schema = match format["type"].as_str() {
        Some("json_schema") => Some(format["json_schema"]["schema"].clone()),
        Some("json_object") => Some(json!({"type": "object"})),
        _ => None,
    };
}

pub(crate) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
    if reply.stop == Stop::Refusal {
        message["refusal"] = message["content"].take();
    }
    if let Some(thinking) = &reply.thinking {
        message["reasoning_content"] = thinking.as_str().into();
    }
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().map(call).collect();
    }
    let mut answer = head(asked, reply, "chat.completion");
    answer["choices"] =
        json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply)}]);
    answer["usage"] = usage(reply);
    answer
}

pub(crate) fn events(asked: &Asked, reply: &Reply) -> Vec<Event> {
    let with_usage = asked.body["stream_options"]["include_usage"] == true;
    let chunk = |choices: Value, usage: Value, piece: bool| {
        let mut data = head(asked, reply, "chat.completion.chunk");
        data["choices"] = choices;
        if with_usage {
            data["usage"] = usage;
        }
        Event {
            name: None,
            data: data.to_string(),
            piece,
        }
    };
    let delta = |delta: Value, piece: bool| {
        chunk(
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]),
            Value::Null,
            piece,
        )
    };
    let mut all = vec![delta(
        json!({"role": "assistant", "content": "", "refusal": null}),
        false,
    )];
    let mut streamed = |key: &str, text: &Option<String>| {
        for piece in text.iter().flat_map(|text| pieces(text, reply.chunk)) {
            all.push(delta(json!({key: piece}), true));
        }
    };
    streamed("reasoning_content", &reply.thinking);
    let key = if reply.stop == Stop::Refusal {
        "refusal"
    } else {
        "content"
    };
    streamed(key, &reply.text);
    for (index, each) in reply.calls.iter().enumerate() {
        let mut first = call(each);
        first["index"] = index.into();
        first["function"]["arguments"] = "".into();
        all.push(delta(json!({"tool_calls": [first]}), false));
        for piece in pieces(&each.input.to_string(), reply.chunk) {
            all.push(delta(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                true,
            ));
        }
    }
    all.push(chunk(
        json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish(reply)}]),
        Value::Null,
        false,
    ));
    if with_usage {
        all.push(chunk(json!([]), usage(reply), false));
    }
    all.push(Event {
        name: None,
        data: "[DONE]".to_owned(),
        piece: false,
    });
    all
}

pub(crate) fn error(status: u16, kind: Option<&str>, message: &str) -> Value {
    let kind = kind.unwrap_or(match status {
        400..=428 => "invalid_request_error",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    });
    let code = match status {
        401 => json!("invalid_api_key"),
        404 => json!("model_not_found"),
        429 => json!("rate_limit_exceeded"),
        _ => Value::Null,
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub(crate) fn complaint(asked: &Asked) -> Option<String> {
    let body = &asked.body;
    if !body["model"].is_string() {
        return Some("you must provide a model parameter".to_owned());
    }
    if messages(body).next().is_none() {
        return Some("[] is too short - 'messages'".to_owned());
    }
    let mut waiting: Vec<&str> = Vec::new();
    for (index, message) in messages(body).enumerate() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match waiting.iter().position(|known| *known == id) {
                    Some(place) => {
                        waiting.remove(place);
                    }
                    None => {
                        return Some(format!(
                            "Invalid parameter: messages.[{index}] with role 'tool' must be a response to a preceding message with 'tool_calls'."
                        ));
                    }
                }
            }
            _ if !waiting.is_empty() => {}
            Some("assistant") => waiting.extend(calls(message).filter_map(|call| call["id"].as_str())),
            Some("user" | "system" | "developer") => {}
            role => return Some(format!("Invalid value: {role:?} in messages.[{index}].role")),
        }
    }
    waiting.first().map(|id| {
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. (missing: {id})"
        )
    })
}

fn messages(body: &Value) -> impl Iterator<Item = &Value> {
    body["messages"].as_array().into_iter().flatten()
}

fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    message["tool_calls"].as_array().into_iter().flatten()
}

/// The answer before it has choices.
fn head(asked: &Asked, reply: &Reply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-mock-{}", reply.number),
        "object": object,
        "created": 1_767_225_600,
        "model": asked.model,
    })
}

fn call(call: &super::ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.input.to_string()},
    })
}

fn finish(reply: &Reply) -> &'static str {
    match reply.stop {
        Stop::End if !reply.calls.is_empty() => "tool_calls",
        Stop::End | Stop::Refusal | Stop::StopSequence => "stop",
        Stop::MaxTokens => "length",
        Stop::Filtered => "content_filter",
    }
}

fn usage(reply: &Reply) -> Value {
    let usage = &reply.usage;
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
