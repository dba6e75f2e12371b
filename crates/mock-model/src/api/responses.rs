//! OpenAI's responses. A tool that is offered in a namespace has the name `NAMESPACE.TOOL` in a script.

use serde_json::{Value, json};

use super::{Event, Reply, pieces};
use crate::asked::{Asked, Step, follow, names, texts};
use crate::script::Stop;

pub(crate) fn read(asked: &mut Asked, body: &Value) {
    let mut system: Vec<String> = body["instructions"]
        .as_str()
        .map(str::to_owned)
        .into_iter()
        .collect();
    if let Some(text) = body["input"].as_str() {
        asked.user = text.to_owned();
    } else {
        let mut steps = Vec::new();
        for item in items(body) {
            let kind = item["type"].as_str().unwrap_or("message");
            match item["role"].as_str() {
                Some("user") => steps.push(Step::User(texts(&item["content"]))),
                Some("system" | "developer") => system.push(texts(&item["content"])),
                Some("assistant") => steps.push(Step::Model),
                _ if kind.ends_with("_call_output") => steps.push(Step::Result(match &item["output"] {
                    // Some harnesses send parts, and some an object.
                    Value::Object(_) => item["output"].to_string(),
                    output => texts(output),
                })),
                _ if kind.ends_with("_call") => steps.push(Step::Call),
                _ => {}
            }
        }
        (asked.user, asked.result, asked.turn) = follow(steps);
    }
    asked.system = system.join("\n");
    asked.tools = elements(&body["tools"])
        .flat_map(|tool| match tool["type"].as_str() {
            Some("namespace") => names(&tool["tools"], |inner| &inner["name"])
                .into_iter()
                .map(|inner| format!("{}.{inner}", tool["name"].as_str().unwrap_or_default()))
                .collect(),
            // Some kinds of tool have no name but their kind.
            kind => tool["name"]
                .as_str()
                .or(kind)
                .map(str::to_owned)
                .into_iter()
                .collect::<Vec<_>>(),
        })
        .collect();
    asked.forced_tool = body["tool_choice"]["name"].as_str().map(str::to_owned);
    let format = &body["text"]["format"];
    asked.schema = (format["type"] == "json_schema").then(|| format["schema"].clone());
}

pub(crate) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut response = head(asked, reply);
    response["status"] = status(reply).into();
    if let Some(reason) = incomplete(reply) {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["output"] = output(asked, reply).into();
    let usage = &reply.usage;
    response["usage"] = json!({
        "input_tokens": usage.all_input(),
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    });
    response
}

pub(crate) fn events(asked: &Asked, reply: &Reply) -> Vec<Event> {
    let mut stream = Stream::default();
    stream.push("response.created", json!({"response": head(asked, reply)}));
    stream.push("response.in_progress", json!({"response": head(asked, reply)}));
    for (index, item) in output(asked, reply).into_iter().enumerate() {
        let id = item["id"].clone();
        let mut empty = item.clone();
        empty["status"] = "in_progress".into();
        match item["type"].as_str() {
            Some("message") => {
                let part = item["content"][0].clone();
                let refused = part["type"] == "refusal";
                let (kind, key) = if refused {
                    ("refusal", "refusal")
                } else {
                    ("output_text", "text")
                };
                empty["content"] = json!([]);
                stream.push(
                    "response.output_item.added",
                    json!({"output_index": index, "item": empty}),
                );
                let at = json!({"item_id": id, "output_index": index, "content_index": 0});
                let mut start = part.clone();
                start[key] = "".into();
                stream.push("response.content_part.added", with(&at, json!({"part": start})));
                for piece in pieces(part[key].as_str().unwrap_or_default(), reply.chunk) {
                    stream.piece(
                        &format!("response.{kind}.delta"),
                        with(&at, json!({"delta": piece})),
                    );
                }
                stream.push(
                    &format!("response.{kind}.done"),
                    with(&at, json!({key: part[key]})),
                );
                stream.push("response.content_part.done", with(&at, json!({"part": part})));
            }
            Some("function_call") => {
                empty["arguments"] = "".into();
                stream.push(
                    "response.output_item.added",
                    json!({"output_index": index, "item": empty}),
                );
                let at = json!({"item_id": id, "output_index": index});
                for piece in pieces(item["arguments"].as_str().unwrap_or_default(), reply.chunk) {
                    stream.piece(
                        "response.function_call_arguments.delta",
                        with(&at, json!({"delta": piece})),
                    );
                }
                stream.push(
                    "response.function_call_arguments.done",
                    with(&at, json!({"arguments": item["arguments"]})),
                );
            }
            _ => stream.push(
                "response.output_item.added",
                json!({"output_index": index, "item": item}),
            ),
        }
        stream.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
    stream.push(
        &format!("response.{}", status(reply)),
        json!({"response": whole(asked, reply)}),
    );
    stream.events
}

/// An error in the middle of a stream.
pub(crate) fn error_event(kind: &str, message: &str) -> Value {
    json!({"type": "error", "code": kind, "message": message, "param": null, "sequence_number": 0})
}

pub(crate) fn complaint(asked: &Asked) -> Option<String> {
    let body = &asked.body;
    if !body["model"].is_string() {
        return Some("Missing required parameter: 'model'.".to_owned());
    }
    if body["previous_response_id"].is_string() {
        return Some("Previous response not found: this mock keeps none; send the whole input".to_owned());
    }
    if body["input"].as_str().is_none_or(str::is_empty) && items(body).next().is_none() {
        return Some("Missing required parameter: 'input'.".to_owned());
    }
    let ids = |suffix: &'static str| {
        items(body)
            .filter(move |item| item["type"].as_str().is_some_and(|kind| kind.ends_with(suffix)))
            .filter_map(|item| item["call_id"].as_str())
    };
    let answered: Vec<&str> = ids("_call_output").collect();
    let called: Vec<&str> = ids("_call").collect();
    if let Some(id) = called.iter().find(|id| !answered.contains(id)) {
        return Some(format!("No tool output found for function call {id}."));
    }
    answered
        .iter()
        .find(|id| !called.contains(id))
        .map(|id| format!("No tool call found for function call output with call_id {id}."))
}

fn items(body: &Value) -> impl Iterator<Item = &Value> {
    elements(&body["input"])
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A tool's name as a script has it, `NAMESPACE.TOOL` where it is offered in a namespace: that, and its name there.
fn in_namespace<'a>(asked: &'a Asked, name: &'a str) -> Option<(&'a str, &'a str)> {
    elements(&asked.body["tools"])
        .filter(|tool| tool["type"] == "namespace")
        .filter_map(|tool| tool["name"].as_str())
        .find_map(|namespace| Some((namespace, name.strip_prefix(namespace)?.strip_prefix('.')?)))
}

/// The response before it has output.
fn head(asked: &Asked, reply: &Reply) -> Value {
    json!({
        "id": format!("resp_mock_{}", reply.number),
        "object": "response",
        "created_at": 1_767_225_600,
        "status": "in_progress",
        "error": null,
        "incomplete_details": null,
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "usage": null,
    })
}

fn output(asked: &Asked, reply: &Reply) -> Vec<Value> {
    let number = reply.number;
    let thinking = reply.thinking.iter().map(|text| {
        json!({
            "type": "reasoning",
            "id": format!("rs_mock_{number}"),
            "summary": [{"type": "summary_text", "text": text}],
        })
    });
    let text = reply.text.iter().map(|text| {
        let part = if reply.stop == Stop::Refusal {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": []})
        };
        json!({
            "type": "message",
            "id": format!("msg_mock_{number}"),
            "status": status(reply),
            "role": "assistant",
            "content": [part],
        })
    });
    let calls = reply.calls.iter().map(|call| {
        let mut item = json!({
            "type": "function_call",
            "id": format!("fc_{}", call.id),
            "call_id": call.id,
            "name": call.name,
            "arguments": call.input.to_string(),
            "status": "completed",
        });
        if let Some((namespace, name)) = in_namespace(asked, &call.name) {
            item["namespace"] = namespace.into();
            item["name"] = name.into();
        }
        item
    });
    thinking.chain(text).chain(calls).collect()
}

fn incomplete(reply: &Reply) -> Option<&'static str> {
    match reply.stop {
        Stop::MaxTokens => Some("max_output_tokens"),
        Stop::Filtered => Some("content_filter"),
        Stop::End | Stop::Refusal | Stop::StopSequence => None,
    }
}

fn status(reply: &Reply) -> &'static str {
    match incomplete(reply) {
        Some(_) => "incomplete",
        None => "completed",
    }
}

/// `at` with what `more` has in addition.
fn with(at: &Value, more: Value) -> Value {
    let mut all = at.clone();
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

/// Events, numbered as they are added.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
}

impl Stream {
    fn push(&mut self, name: &str, data: Value) {
        let head = json!({"type": name, "sequence_number": self.events.len()});
        self.events.push(Event {
            name: Some(name.to_owned()),
            data: with(&head, data).to_string(),
            piece: false,
        });
    }

    fn piece(&mut self, name: &str, data: Value) {
        self.push(name, data);
        if let Some(last) = self.events.last_mut() {
            last.piece = true;
        }
    }
}
