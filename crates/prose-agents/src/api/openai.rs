//! Chat completions of OpenAI and of the many servers that speak them, each a little differently.

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Ask, Broken, Call, Flow, Message, Stop, Tokens, Turn, filled, parse};

pub(crate) fn body(ask: &Ask<'_>, own: bool) -> Value {
    let mut messages: Vec<Value> = Vec::with_capacity(ask.messages.len() + 1);
    if !ask.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": ask.system}));
    }
    for message in ask.messages {
        add(&mut messages, message);
    }
    let mut body = json!({
        "model": ask.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    if let Some(max) = ask.max_tokens {
        // OpenAI's newer models refuse the old name, most other servers know no other.
        body[if own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }] = max.into();
    }
    if !ask.tools.is_empty() {
        let tools = ask.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            })
        });
        body["tools"] = tools.collect();
        if ask.form.is_some() {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(form) = ask.form.filter(|form| form.forced) {
        body["response_format"] = json!({
            "type": "json_schema",
            "json_schema": {"name": form.name, "schema": form.schema, "strict": true},
        });
    }
    body
}

fn add(messages: &mut Vec<Value>, message: &Message) {
    match message {
        Message::User(text) => {
            messages.push(json!({"role": "user", "content": filled(text, "Begin.")}));
        }
        Message::Assistant(turn) if turn.text.is_empty() && turn.calls.is_empty() => {}
        Message::Assistant(turn) => {
            let mut message = json!({"role": "assistant", "content": turn.text});
            if !turn.calls.is_empty() {
                let calls = turn.calls.iter().map(|call| {
                    let arguments = match &call.input {
                        Ok(input) => input.to_string(),
                        // Some servers refuse a conversation that holds arguments which are no JSON.
                        Err(_) => "{}".to_owned(),
                    };
                    json!({
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.name, "arguments": arguments},
                    })
                });
                message["tool_calls"] = calls.collect();
            }
            messages.push(message);
        }
        Message::Results(results) => messages.extend(results.iter().map(|result| {
            // There is no mark for a failure but the text.
            let mark = if result.is_error { "Error: " } else { "" };
            let text = format!("{mark}{}", filled(&result.text, "(no output)"));
            json!({"role": "tool", "tool_call_id": result.id, "content": text})
        })),
    }
}

/// Reads the events of one answer.
#[derive(Default)]
pub(crate) struct Reader {
    text: String,
    refusal: String,
    calls: Vec<Pieces>,
    stop: Option<String>,
    pub(crate) tokens: Tokens,
}

struct Pieces {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    /// What is thought before, by two names: a sign that an answer is being made.
    #[serde(default)]
    reasoning_content: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    reasoning: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Used {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Reader {
    pub(crate) fn event(
        &mut self,
        data: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Flow, Broken> {
        if data.trim() == "[DONE]" {
            return match self.may_end() {
                true => Ok(Flow::Done),
                false => Err(Broken::Garbage("the answer ended without a reason".to_owned())),
            };
        }
        let chunk: Chunk = parse(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            let text = |key: &str| match &error[key] {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            };
            return Err(Broken::Reported {
                kind: text("code").or_else(|| text("type")).unwrap_or_default(),
                message: text("message")
                    .unwrap_or_else(|| error.as_str().map_or_else(|| error.to_string(), str::to_owned)),
            });
        }
        if let Some(used) = chunk.usage {
            let cached = used
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens)
                .unwrap_or(0);
            self.tokens = Tokens {
                input: used.prompt_tokens.unwrap_or(0).saturating_sub(cached),
                output: used.completion_tokens.unwrap_or(0),
                cache_read: cached,
                cache_write: 0,
            };
        }
        let mut flow = Flow::Life;
        for choice in chunk.choices {
            // Only one is asked for.
            if choice.index != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                flow = self.delta(delta, on_text).max(flow);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.stop = Some(reason);
                flow = Flow::Content;
            }
        }
        Ok(flow)
    }

    fn delta(&mut self, delta: Delta, on_text: &mut (dyn FnMut(&str) + Send)) -> Flow {
        let thinks = delta.reasoning_content.is_some() || delta.reasoning.is_some();
        let mut flow = if thinks { Flow::Content } else { Flow::Life };
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            on_text(&text);
            self.text.push_str(&text);
            flow = Flow::Content;
        }
        if let Some(text) = delta.refusal {
            self.refusal.push_str(&text);
            flow = Flow::Content;
        }
        for (place, call) in delta.tool_calls.into_iter().flatten().enumerate() {
            flow = Flow::Content;
            self.call(place, call);
        }
        flow
    }

    /// Some servers leave the index out and send each call whole, some send the name with every piece, some the
    /// arguments as an object.
    fn call(&mut self, place: usize, call: CallDelta) {
        let known = match (call.index, &call.id) {
            (Some(index), _) => self.calls.iter().position(|pieces| pieces.index == index),
            (None, Some(id)) if !id.is_empty() => self.calls.iter().position(|pieces| pieces.id == *id),
            (None, _) => (place < self.calls.len()).then_some(place),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(Pieces {
                index: call.index.unwrap_or(self.calls.len() as u64),
                id: String::new(),
                name: String::new(),
                arguments: String::new(),
            });
            self.calls.len() - 1
        });
        let pieces = &mut self.calls[at];
        if let Some(id) = call.id.filter(|id| !id.is_empty()) {
            pieces.id = id;
        }
        let Some(function) = call.function else { return };
        if let Some(name) = function.name.filter(|name| !name.is_empty()) {
            pieces.name = name;
        }
        match function.arguments {
            Some(Value::String(piece)) => pieces.arguments.push_str(&piece),
            Some(Value::Null) | None => {}
            Some(whole) => pieces.arguments = whole.to_string(),
        }
    }

    /// Some servers send no `[DONE]`; the reason why the answer ends stands before it anyway.
    pub(crate) fn may_end(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn turn(self) -> Turn {
        let stop = match self.stop.as_deref() {
            _ if !self.refusal.trim().is_empty() => Stop::Refused(self.refusal),
            Some("stop" | "tool_calls" | "function_call" | "eos" | "end_turn") => Stop::End,
            Some("length") => Stop::Length,
            Some("content_filter") => Stop::Refused("the service's filter kept the answer back".to_owned()),
            other => Stop::Other(other.unwrap_or_default().to_owned()),
        };
        let calls = self.calls.into_iter().enumerate().map(|(at, pieces)| {
            let id = if pieces.id.is_empty() {
                format!("call_{at}")
            } else {
                pieces.id
            };
            Call::new(id, pieces.name, &pieces.arguments)
        });
        Turn {
            text: self.text,
            calls: calls.collect(),
            blocks: Vec::new(),
            stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(chunks: &[Value]) -> Turn {
        let mut reader = Reader::default();
        for chunk in chunks {
            let flow = reader.event(&chunk.to_string(), &mut |_| ());
            assert!(flow.is_ok(), "{chunk} {flow:?}");
        }
        reader.turn()
    }

    fn calls(calls: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    }

    fn end(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    #[test]
    fn calls_are_read_in_the_ways_of_different_servers() {
        let wanted = |id: &str, name: &str, path: &str| Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: Ok(json!({"path": path})),
        };
        // In pieces, two at once.
        let official = turn(&[
            calls(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}])),
            calls(json!([{"index": 0, "function": {"arguments": "{\"path\""}}])),
            calls(
                json!([{"index": 1, "id": "b", "function": {"name": "list", "arguments": "{\"path\":\"y\"}"}}]),
            ),
            calls(json!([{"index": 0, "function": {"arguments": ":\"x\"}"}}])),
            end("tool_calls"),
        ]);
        assert_eq!(
            official.calls,
            [wanted("a", "read", "x"), wanted("b", "list", "y")]
        );
        // Whole, without index and ids, the arguments an object; the end is like any other.
        let whole = turn(&[
            calls(json!([
                {"function": {"name": "read", "arguments": {"path": "x"}}},
                {"function": {"name": "list", "arguments": {"path": "y"}}},
            ])),
            end("stop"),
        ]);
        assert_eq!(
            whole.calls,
            [wanted("call_0", "read", "x"), wanted("call_1", "list", "y")]
        );
        assert_eq!(whole.stop, Stop::End);
        // The name with every piece.
        let repeated = turn(&[
            calls(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"path\":"}}])),
            calls(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "\"x\"}"}}])),
            end("tool_calls"),
        ]);
        assert_eq!(repeated.calls, [wanted("a", "read", "x")]);
        // No JSON is said to the model, not guessed.
        let broken = turn(&[
            calls(json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{path"}}])),
            end("stop"),
        ]);
        assert_eq!(broken.calls[0].input, Err("{path".to_owned()));
    }

    #[test]
    fn an_end_without_a_reason_is_none() {
        let mut reader = Reader::default();
        assert!(reader.event("[DONE]", &mut |_| ()).is_err());
        assert!(!reader.may_end());
    }
}
