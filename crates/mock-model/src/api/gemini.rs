//! Gemini's content generation.

use serde_json::{Value, json};

use super::{Event, Reply, pieces};
use crate::asked::{Asked, Step, follow, texts};
use crate::script::Stop;

pub(crate) fn read(asked: &mut Asked, path: &str, body: &Value) {
    // `/v1beta/models/NAME:streamGenerateContent`
    let last = path.rsplit('/').next().unwrap_or_default();
    let (model, method) = last.split_once(':').unwrap_or((last, ""));
    asked.model = model.to_owned();
    asked.stream = method == "streamGenerateContent";
    asked.system = texts(&body["systemInstruction"]["parts"]);
    let mut steps = Vec::new();
    for content in contents(body) {
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let results: Vec<&Value> = parts
            .iter()
            .map(|part| &part["functionResponse"])
            .filter(|result| result.is_object())
            .collect();
        if !results.is_empty() {
            steps.extend(
                results
                    .into_iter()
                    .map(|result| Step::Result(result["response"].to_string())),
            );
        } else if content["role"] == "model" {
            let calls = parts.iter().any(|part| part["functionCall"].is_object());
            steps.push(if calls { Step::Call } else { Step::Model });
        } else {
            steps.push(Step::User(texts(&content["parts"])));
        }
    }
    (asked.user, asked.result, asked.turn) = follow(steps);
    asked.tools = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|group| group["functionDeclarations"].as_array().into_iter().flatten())
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect();
    let calling = &body["toolConfig"]["functionCallingConfig"];
    asked.forced_tool = (calling["mode"] == "ANY")
        .then(|| calling["allowedFunctionNames"][0].as_str().map(str::to_owned))
        .flatten();
    let config = &body["generationConfig"];
    asked.schema = [&config["responseJsonSchema"], &config["responseSchema"]]
        .into_iter()
        .find(|schema| schema.is_object())
        .cloned();
}

pub(crate) fn whole(asked: &Asked, reply: &Reply) -> Value {
    let mut parts = Vec::new();
    parts.extend(thought(reply.thinking.as_deref()));
    parts.extend(reply.text.iter().map(|text| json!({"text": text})));
    parts.extend(calls(reply));
    chunk(asked, reply, parts, true)
}

pub(crate) fn events(asked: &Asked, reply: &Reply) -> Vec<Event> {
    let cut = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| pieces(text, reply.chunk)).collect()
    };
    let mut parts: Vec<Value> = Vec::new();
    for piece in cut(&reply.thinking) {
        parts.extend(thought(Some(&piece)));
    }
    parts.extend(cut(&reply.text).into_iter().map(|piece| json!({"text": piece})));
    parts.extend(calls(reply));
    if parts.is_empty() {
        parts.push(json!({"text": ""}));
    }
    let last = parts.len() - 1;
    parts
        .into_iter()
        .enumerate()
        .map(|(index, part)| Event {
            name: None,
            data: chunk(asked, reply, vec![part], index == last).to_string(),
            piece: true,
        })
        .collect()
}

pub(crate) fn error(status: u16, kind: Option<&str>, message: &str) -> Value {
    let kind = kind.unwrap_or(match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    });
    json!({"error": {"code": status, "message": message, "status": kind}})
}

pub(crate) fn complaint(asked: &Asked) -> Option<String> {
    let mut contents = contents(&asked.body).peekable();
    if contents.peek().is_none() {
        return Some("contents is not specified".to_owned());
    }
    for content in contents {
        if content["parts"].as_array().is_none_or(Vec::is_empty) {
            return Some("contents.parts must not be empty.".to_owned());
        }
    }
    None
}

fn contents(body: &Value) -> impl Iterator<Item = &Value> {
    body["contents"].as_array().into_iter().flatten()
}

fn thought(text: Option<&str>) -> Option<Value> {
    text.map(|text| json!({"text": text, "thought": true}))
}

fn calls(reply: &Reply) -> impl Iterator<Item = Value> {
    reply
        .calls
        .iter()
        .map(|call| json!({"functionCall": {"id": call.id, "name": call.name, "args": call.input}}))
}

fn chunk(asked: &Asked, reply: &Reply, parts: Vec<Value>, last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if last {
        candidate["finishReason"] = match reply.stop {
            Stop::End | Stop::StopSequence => "STOP",
            Stop::MaxTokens => "MAX_TOKENS",
            Stop::Refusal => "PROHIBITED_CONTENT",
            Stop::Filtered => "SAFETY",
        }
        .into();
    }
    let usage = &reply.usage;
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.all_input(),
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.total(),
        },
        "modelVersion": asked.model,
        "responseId": format!("mock-{}", reply.number),
    })
}
