//! The lines that Claude Code reads and writes: one JSON object each.

use prose_model::Usage;
use serde_json::{Value as Json, json};

/// What the tool question of [`initialize`] comes back as.
const HOOK: &str = "tool";
/// Seconds that an answer to a tool question may take: a person may be asked.
const HOOK_SECONDS: u64 = 7 * 24 * 3600;

/// The first line: the system text, the form of the answer, and that every tool is asked about.
pub(super) fn initialize(system: &str, schema: Option<&Json>) -> String {
    let mut request = json!({
        "subtype": "initialize",
        "systemPrompt": system,
        "hooks": {"PreToolUse": [{"matcher": null, "hookCallbackIds": [HOOK], "timeout": HOOK_SECONDS}]},
    });
    if let Some(schema) = schema {
        request["jsonSchema"] = schema.clone();
    }
    json!({"type": "control_request", "request_id": "initialize", "request": request}).to_string()
}

/// The message.
pub(super) fn user(text: &str) -> String {
    // A text that begins with a slash is taken for a command.
    let text = match text.trim_start().starts_with('/') {
        true => format!("The task:\n\n{text}"),
        false => text.to_owned(),
    };
    json!({
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": null,
        "session_id": "",
    })
    .to_string()
}

/// A question about a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolQuestion {
    id: String,
    /// Whether it comes before its own rules are looked at, or because they don't decide.
    hook: bool,
    pub(super) tool: String,
    pub(super) input: Json,
}

/// The answer to a question about a tool: yes, or why not.
pub(super) fn answer(question: &ToolQuestion, decision: &Result<(), String>) -> String {
    let response = match (question.hook, decision) {
        (true, Ok(())) => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "permitted by the program",
        }}),
        (true, Err(why)) => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": why,
        }}),
        (false, Ok(())) => json!({"behavior": "allow", "updatedInput": question.input}),
        (false, Err(why)) => json!({"behavior": "deny", "message": why}),
    };
    let response = json!({"subtype": "success", "request_id": question.id, "response": response});
    json!({"type": "control_response", "response": response}).to_string()
}

/// Says that a request is not understood: it must not be waited for.
pub(super) fn refuse(id: &str) -> String {
    let response = json!({"subtype": "error", "request_id": id, "error": "not supported"});
    json!({"type": "control_response", "response": response}).to_string()
}

/// A line that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    /// It has begun, with this model.
    Begun { model: Option<String> },
    /// The service refused and is asked again.
    Retry {
        attempt: u64,
        status: Option<u64>,
        error: String,
    },
    /// A message begins.
    Message { id: String, usage: Usage },
    /// A piece of its text.
    Text(String),
    /// How many tokens the message that is written has so far.
    Written { output_tokens: u64 },
    /// A message, or a part of it, is whole.
    Whole(Whole),
    /// It wants to use a tool.
    Tool(ToolQuestion),
    /// It asks something else.
    Request { id: String },
    /// It refuses what it was told.
    Refused(String),
    /// It is over.
    Result(Box<ResultLine>),
    /// Something of no interest here.
    Other,
}

/// A message of the model as it is when it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whole {
    pub(super) id: String,
    pub(super) usage: Usage,
    pub(super) texts: Vec<String>,
    /// Names and inputs.
    pub(super) tools: Vec<(String, Json)>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ResultLine {
    /// `success`, or how it came to no answer.
    pub(super) subtype: String,
    pub(super) is_error: bool,
    /// What the service answered, for an error.
    pub(super) status: Option<u64>,
    pub(super) text: String,
    pub(super) structured: Option<Json>,
    pub(super) usage: Usage,
    /// Tools that were refused.
    pub(super) denied: Vec<String>,
}

/// Reads a line; none when it is no JSON object.
pub(super) fn read(line: &str) -> Option<Incoming> {
    let json: Json = serde_json::from_str(line).ok().filter(Json::is_object)?;
    Some(incoming(&json).unwrap_or(Incoming::Other))
}

fn incoming(json: &Json) -> Option<Incoming> {
    let part_of_another = !json["parent_tool_use_id"].is_null();
    Some(match json["type"].as_str()? {
        "system" => match json["subtype"].as_str()? {
            "init" => Incoming::Begun {
                model: json["model"].as_str().map(ToOwned::to_owned),
            },
            "api_retry" => Incoming::Retry {
                attempt: json["attempt"].as_u64().unwrap_or(0),
                status: json["error_status"].as_u64(),
                error: words(&json["error"]),
            },
            _ => Incoming::Other,
        },
        "stream_event" if !part_of_another => event(&json["event"])?,
        "assistant" if !part_of_another => Incoming::Whole(whole(&json["message"])?),
        "control_request" => {
            let request = &json["request"];
            let id = json["request_id"].as_str()?.to_owned();
            match request["subtype"].as_str() {
                Some("hook_callback") if request["callback_id"] == HOOK => {
                    let input = &request["input"];
                    Incoming::Tool(ToolQuestion {
                        id,
                        hook: true,
                        tool: words(&input["tool_name"]),
                        input: input["tool_input"].clone(),
                    })
                }
                Some("can_use_tool") => Incoming::Tool(ToolQuestion {
                    id,
                    hook: false,
                    tool: words(&request["tool_name"]),
                    input: request["input"].clone(),
                }),
                _ => Incoming::Request { id },
            }
        }
        "control_response" if json["response"]["subtype"] == "error" => {
            Incoming::Refused(words(&json["response"]["error"]))
        }
        "result" => Incoming::Result(Box::new(result(json))),
        _ => Incoming::Other,
    })
}

fn event(event: &Json) -> Option<Incoming> {
    Some(match event["type"].as_str()? {
        "message_start" => Incoming::Message {
            id: words(&event["message"]["id"]),
            usage: usage(&event["message"]["usage"]),
        },
        "content_block_delta" if event["delta"]["type"] == "text_delta" => {
            Incoming::Text(words(&event["delta"]["text"]))
        }
        "message_delta" => Incoming::Written {
            output_tokens: event["usage"]["output_tokens"].as_u64()?,
        },
        _ => Incoming::Other,
    })
}

fn whole(message: &Json) -> Option<Whole> {
    let blocks = message["content"].as_array()?;
    let of = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    Some(Whole {
        id: words(&message["id"]),
        usage: usage(&message["usage"]),
        texts: of("text").map(|block| words(&block["text"])).collect(),
        tools: of("tool_use")
            .map(|block| (words(&block["name"]), block["input"].clone()))
            .collect(),
    })
}

fn result(json: &Json) -> ResultLine {
    // What all models have used; the plain sum is missing where it was stopped.
    let models = json["modelUsage"].as_object().filter(|models| !models.is_empty());
    let mut used = match models {
        Some(models) => models.values().fold(Usage::default(), |mut sum, model| {
            let count = |key: &str| model[key].as_u64().unwrap_or(0);
            sum.add(&Usage {
                input_tokens: count("inputTokens")
                    .saturating_add(count("cacheReadInputTokens"))
                    .saturating_add(count("cacheCreationInputTokens")),
                output_tokens: count("outputTokens"),
                cost_usd: None,
            });
            sum
        }),
        None => usage(&json["usage"]),
    };
    used.cost_usd = json["total_cost_usd"]
        .as_f64()
        .filter(|cost| cost.is_finite() && *cost >= 0.0);
    let errors = json["errors"].as_array();
    let errors = errors.map(|errors| errors.iter().map(words).collect::<Vec<_>>().join("; "));
    let text = json["result"].as_str().map(ToOwned::to_owned);
    let denied = json["permission_denials"].as_array();
    ResultLine {
        subtype: words(&json["subtype"]),
        is_error: json["is_error"].as_bool().unwrap_or(false),
        status: json["api_error_status"].as_u64(),
        text: text.or(errors).unwrap_or_default(),
        structured: Some(json["structured_output"].clone()).filter(|answer| !answer.is_null()),
        usage: used,
        denied: denied
            .map(|all| all.iter().map(|one| words(&one["tool_name"])).collect())
            .unwrap_or_default(),
    }
}

fn usage(json: &Json) -> Usage {
    let count = |key: &str| json[key].as_u64().unwrap_or(0);
    Usage {
        input_tokens: count("input_tokens")
            .saturating_add(count("cache_read_input_tokens"))
            .saturating_add(count("cache_creation_input_tokens")),
        output_tokens: count("output_tokens"),
        cost_usd: None,
    }
}

fn words(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}
