//! Anthropic's messages: requests and the events of an answer.

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Ask, Broken, Call, Flow, Message, Stop, Tokens, Turn, filled, parse};

/// The version of the protocol that is spoken here.
pub(crate) const VERSION: &str = "2023-06-01";

pub(crate) fn body(ask: &Ask<'_>) -> Value {
    let messages: Vec<Value> = ask.messages.iter().filter_map(message).collect();
    let mut body = json!({
        "model": ask.model,
        "max_tokens": ask.max_tokens.unwrap_or(8192),
        "stream": true,
        "messages": messages,
    });
    if !ask.system.trim().is_empty() {
        body["system"] = ask.system.into();
    }
    let mut tools: Vec<Value> = ask
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            })
        })
        .collect();
    if let Some(form) = ask.form.filter(|form| form.forced) {
        tools.push(json!({
            "name": form.name,
            "description": "Takes the answer.",
            "input_schema": form.schema,
        }));
        body["tool_choice"] = json!({"type": "tool", "name": form.name, "disable_parallel_tool_use": true});
    }
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    body
}

fn message(message: &Message) -> Option<Value> {
    Some(match message {
        Message::User(text) => json!({"role": "user", "content": filled(text, "Begin.")}),
        // An answer without content can't be sent back.
        Message::Assistant(turn) if turn.blocks.is_empty() => return None,
        Message::Assistant(turn) => json!({"role": "assistant", "content": turn.blocks}),
        Message::Results(results) => {
            let blocks: Vec<Value> = results
                .iter()
                .map(|result| {
                    let mut block = json!({
                        "type": "tool_result",
                        "tool_use_id": result.id,
                        "content": filled(&result.text, "(no output)"),
                    });
                    if result.is_error {
                        block["is_error"] = true.into();
                    }
                    block
                })
                .collect();
            json!({"role": "user", "content": blocks})
        }
    })
}

/// Reads the events of one answer.
#[derive(Default)]
pub(crate) struct Reader {
    /// The tool that had to be called.
    form: Option<String>,
    blocks: Vec<Block>,
    stop: Option<String>,
    explained: String,
    pub(crate) tokens: Tokens,
}

struct Block {
    index: u64,
    start: Value,
    text: String,
    signature: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: u64,
        content_block: Value,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    MessageDelta {
        delta: Ending,
        #[serde(default)]
        usage: Used,
    },
    MessageStop,
    Error {
        error: Reported,
    },
    /// `ping`, `content_block_stop`, and what newer services add.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    usage: Used,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Ending {
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<Explained>,
}

#[derive(Deserialize)]
struct Explained {
    #[serde(default)]
    explanation: Option<String>,
}

#[derive(Deserialize, Default)]
struct Used {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Reported {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

impl Reader {
    pub(crate) fn new(form: Option<String>) -> Reader {
        Reader {
            form,
            ..Reader::default()
        }
    }

    /// The counts are totals of the answer, each event's in the place of those before.
    fn used(&mut self, used: &Used) {
        let tokens = &mut self.tokens;
        tokens.input = used.input_tokens.unwrap_or(tokens.input);
        tokens.output = used.output_tokens.unwrap_or(tokens.output);
        tokens.cache_read = used.cache_read_input_tokens.unwrap_or(tokens.cache_read);
        tokens.cache_write = used.cache_creation_input_tokens.unwrap_or(tokens.cache_write);
    }

    pub(crate) fn event(
        &mut self,
        data: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Flow, Broken> {
        match parse(data)? {
            Event::MessageStart { message } => {
                self.used(&message.usage);
                Ok(Flow::Life)
            }
            Event::ContentBlockStart { index, content_block } => {
                // Some gateways send a block whole at its start.
                let text = match content_block["type"].as_str() {
                    Some("text") => content_block["text"].as_str().unwrap_or_default().to_owned(),
                    Some("tool_use") => content_block["input"]
                        .as_object()
                        .filter(|input| !input.is_empty())
                        .map(|_| content_block["input"].to_string())
                        .unwrap_or_default(),
                    _ => String::new(),
                };
                if content_block["type"] == "text" && !text.is_empty() {
                    on_text(&text);
                }
                self.blocks.push(Block {
                    index,
                    start: content_block,
                    text,
                    signature: String::new(),
                });
                Ok(Flow::Content)
            }
            Event::ContentBlockDelta { index, delta } => {
                let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
                let block =
                    block.ok_or_else(|| Broken::Garbage("a piece of a block that never began".to_owned()))?;
                match delta {
                    Delta::Text { text } => {
                        on_text(&text);
                        block.text.push_str(&text);
                    }
                    Delta::InputJson { partial_json } => block.text.push_str(&partial_json),
                    Delta::Thinking { thinking } => block.text.push_str(&thinking),
                    Delta::Signature { signature } => block.signature.push_str(&signature),
                    Delta::Other => {}
                }
                Ok(Flow::Content)
            }
            Event::MessageDelta { delta, usage } => {
                self.used(&usage);
                self.stop = delta.stop_reason.or(self.stop.take());
                if let Some(explanation) = delta.stop_details.and_then(|details| details.explanation) {
                    self.explained = explanation;
                }
                Ok(Flow::Content)
            }
            Event::MessageStop if self.stop.is_none() => {
                Err(Broken::Garbage("the answer ended without a reason".to_owned()))
            }
            Event::MessageStop => Ok(Flow::Done),
            Event::Error { error } => Err(Broken::Reported {
                kind: error.kind,
                message: error.message,
            }),
            Event::Other => Ok(Flow::Life),
        }
    }

    pub(crate) fn turn(self) -> Turn {
        let mut turn = Turn::default();
        for Block {
            mut start,
            text,
            signature,
            ..
        } in self.blocks
        {
            match start["type"].as_str() {
                Some("text") => {
                    if text.is_empty() {
                        continue;
                    }
                    turn.text.push_str(&text);
                    start["text"] = text.into();
                }
                Some("tool_use") => {
                    let id = start["id"].as_str().unwrap_or_default().to_owned();
                    let name = start["name"].as_str().unwrap_or_default().to_owned();
                    let call = Call::new(id, name, &text);
                    // What was no JSON can't be sent back as it came.
                    start["input"] = call.input.clone().unwrap_or_else(|_| json!({}));
                    turn.calls.push(call);
                }
                Some("thinking") => {
                    start["thinking"] = text.into();
                    start["signature"] = signature.into();
                }
                _ => {}
            }
            turn.blocks.push(start);
        }
        if let Some(form) = &self.form
            && let Some(at) = turn.calls.iter().position(|call| call.name == *form)
        {
            let call = turn.calls.swap_remove(at);
            turn.text = match call.input {
                Ok(object) => object.to_string(),
                Err(text) => text,
            };
        }
        turn.stop = match self.stop.as_deref() {
            Some("end_turn" | "stop_sequence" | "tool_use") => Stop::End,
            Some("pause_turn") => Stop::Pause,
            Some("max_tokens") => Stop::Length,
            Some("model_context_window_exceeded") => Stop::Window,
            Some("refusal") => Stop::Refused(self.explained),
            other => Stop::Other(other.unwrap_or_default().to_owned()),
        };
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &[Value]) -> (Turn, String) {
        let mut reader = Reader::default();
        let mut shown = String::new();
        for event in events {
            let flow = reader.event(&event.to_string(), &mut |text| shown.push_str(text));
            assert!(flow.is_ok(), "{event} {flow:?}");
        }
        (reader.turn(), shown)
    }

    #[test]
    fn what_was_thought_goes_back_as_it_came_and_what_is_new_is_no_error() {
        let (turn, shown) = read(&[
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "newer", "data": 1}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "newer_delta", "data": 2}}),
            json!({"type": "newer_event"}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "Whole"}}),
            json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ]);
        assert_eq!(
            (turn.text.as_str(), shown.as_str(), turn.stop),
            ("Whole", "Whole", Stop::End)
        );
        assert_eq!(turn.calls[0].input, Ok(json!({"path": "a"})));
        assert_eq!(
            turn.blocks,
            [
                json!({"type": "thinking", "thinking": "Hm", "signature": "s1"}),
                json!({"type": "newer", "data": 1}),
                json!({"type": "text", "text": "Whole"}),
                json!({"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}}),
            ]
        );
    }
}
