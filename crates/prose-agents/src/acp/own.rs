//! Which of an agent's calls are calls of the session's own tools ([`crate::mcp`]). They hand over what is the session's own
//! and read what it was given, so that they need no permission.
//!
//! Each agent reports such a call in its own way, and only what the agent itself says counts: no title alone, since a model
//! may have a hand in titles.

use agent_client_protocol::v1::schema::{PermissionOption, RequestPermissionRequest};
use serde_json::Value as Json;

use super::permit::ToolCall;
use crate::mcp::{self, SERVER};

/// How an agent reports calls of tools that a server gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reports {
    /// By the name `mcp__SERVER__TOOL`, beyond the protocol.
    ClaudeName,
    /// By server and tool in the input, with a mark that says that it is such a call.
    CodexInput,
    /// By a title that is made of both, and by what it offers to be answered.
    GeminiTitle,
    /// In no way that could not be something else, so that it is told beforehand not to ask.
    Never,
}

/// Whether what the agent asks about is a call of a tool of the session's own.
pub(super) fn is_own(reports: Reports, call: &ToolCall, request: &RequestPermissionRequest) -> bool {
    match reports {
        Reports::ClaudeName => call.said("claudeName").as_str().is_some_and(mcp::is_own_tool),
        Reports::CodexInput => {
            let input = call.said("rawInput");
            let meta = request.meta.as_ref();
            let approval =
                meta.is_some_and(|meta| meta.get("is_mcp_tool_approval") == Some(&Json::Bool(true)));
            let of_call = *call.said("codexCall") == true
                && input["server"] == SERVER
                && input["tool"].as_str().is_some_and(mcp::is_tool);
            // Of several calls at once it does not say which one it asks about, but whose server's.
            let of_server = input["serverName"] == SERVER && input["server"].is_null();
            approval && (of_call || of_server)
        }
        Reports::GeminiTitle => {
            let title = call.said("title").as_str().unwrap_or_default();
            let tool = title.strip_suffix(&format!(" ({SERVER} MCP Server)"));
            let offered = |id: &str| request.options.iter().any(|option| is_option(option, id));
            // Other tools are answered otherwise. One of another server has a title of its own, unless it takes a command,
            // which is its title then.
            call.said("kind") == "other"
                && offered("proceed_always_server")
                && offered("proceed_always_tool")
                && tool.is_some_and(mcp::is_tool)
                && shown_parameters(call).is_some_and(|names| names.iter().all(|name| name != "command"))
        }
        Reports::Never => false,
    }
}

fn is_option(option: &PermissionOption, id: &str) -> bool {
    *option.option_id.0 == *id
}

/// The names of the parameters that Gemini CLI shows of a call of a server's tool; none where it does not show all.
fn shown_parameters(call: &ToolCall) -> Option<Vec<String>> {
    let content = call.said("content").as_array()?;
    let [entry] = content.as_slice() else { return None };
    let text = entry["content"]["text"].as_str()?;
    if let Ok(Json::Object(parameters)) = serde_json::from_str(text) {
        return Some(parameters.into_iter().map(|(name, _)| name).collect());
    }
    // A long one is shown by the names of its first five parameters.
    let names = text.strip_prefix("[Payload omitted due to length with parameters: ")?;
    let names: Vec<String> = names
        .strip_suffix(']')?
        .split(", ")
        .map(ToOwned::to_owned)
        .collect();
    (!names.iter().any(|name| name == "...")).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::permit::Calls;
    use super::*;

    const GEMINI: &[&str] = &[
        "proceed_always_server",
        "proceed_always_tool",
        "proceed_once",
        "cancel",
    ];

    fn asked(reports: Reports, before: &[Json], call: Json, meta: Json, options: &[&str]) -> bool {
        let mut calls = Calls::default();
        for update in before {
            calls.note(update);
        }
        let options: Vec<Json> = options
            .iter()
            .map(|id| json!({"optionId": id, "name": id, "kind": "allow_once"}))
            .collect();
        let request = json!({"sessionId": "s", "toolCall": call, "options": options, "_meta": meta});
        let request: RequestPermissionRequest = serde_json::from_value(request).unwrap();
        let call = calls.note(&serde_json::to_value(&request.tool_call).unwrap());
        is_own(reports, &call, &request)
    }

    #[test]
    fn claude_code_names_it_beyond_the_protocol() {
        let named = |name: &str, title: &str| {
            let update = json!({"toolCallId": "1", "title": title, "kind": "other", "_meta": {"claudeCode": {"toolName": name}}});
            let question = json!({"toolCallId": "1", "title": title, "rawInput": {"value": "x"}});
            asked(Reports::ClaudeName, &[update], question, Json::Null, &[])
        };
        assert!(named("mcp__prose__write_binding", "mcp__prose__write_binding"));
        assert!(!named("Bash", "mcp__prose__write_binding"));
        assert!(!named("mcp__other__write_binding", "x"));
        let unsaid = json!({"toolCallId": "1", "title": "mcp__prose__write_binding", "name": "mcp__prose__write_binding"});
        assert!(!asked(Reports::ClaudeName, &[], unsaid, Json::Null, &[]));
    }

    #[test]
    fn codex_says_server_and_tool() {
        let title = "mcp.prose.write_binding";
        let call = |server: &str, tool: &str| {
            json!({"toolCallId": "1", "title": title, "kind": "execute", "_meta": {"is_mcp_tool_call": true},
                "rawInput": {"server": server, "tool": tool, "arguments": {}}})
        };
        let pending = json!({"toolCallId": "1", "kind": "execute", "status": "pending"});
        let approval = json!({"is_mcp_tool_approval": true});
        let codex = |before: &[Json], question: &Json, meta: &Json| {
            asked(Reports::CodexInput, before, question.clone(), meta.clone(), &[])
        };
        assert!(codex(&[call("prose", "write_binding")], &pending, &approval));
        assert!(!codex(&[call("prose", "write_binding")], &pending, &Json::Null));
        assert!(!codex(&[call("other", "write_binding")], &pending, &approval));
        assert!(!codex(&[call("prose", "delete_all")], &pending, &approval));
        let command = json!({"toolCallId": "1", "title": title, "kind": "execute", "rawInput": {"command": title, "server": "prose",
            "tool": "write_binding"}});
        assert!(!codex(&[command], &pending, &approval));
        let several = |server: &str| {
            json!({"toolCallId": "e", "title": "MCP tool call approval", "kind": "execute",
                "rawInput": {"serverName": server, "description": "Allow the prose MCP server …?", "schema": {}}})
        };
        assert!(codex(&[], &several("prose"), &approval));
        assert!(!codex(&[], &several("other"), &approval));
        assert!(!codex(&[], &several("prose"), &Json::Null));
    }

    #[test]
    fn gemini_cli_is_known_by_what_it_offers_and_shows() {
        let ask = |title: &str, kind: &str, text: &str, options: &[&str]| {
            let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
            let call = json!({"toolCallId": "1", "title": title, "kind": kind, "content": content});
            asked(Reports::GeminiTitle, &[], call, Json::Null, options)
        };
        let title = "write_binding (prose MCP Server)";
        assert!(ask(title, "other", r#"{"value":"x"}"#, GEMINI));
        assert!(ask(
            title,
            "other",
            "[Payload omitted due to length with parameters: value, append]",
            GEMINI
        ));
        for (title, kind, text, options) in [
            // A shell command, and a tool of another server whose command is so called.
            (title, "execute", "x", &["proceed_always", "proceed_once"][..]),
            (
                title,
                "other",
                r#"{"value":"x"}"#,
                &["proceed_always", "proceed_once"],
            ),
            (title, "other", r#"{"command":"x"}"#, GEMINI),
            (
                title,
                "other",
                "[Payload omitted due to length with parameters: command]",
                GEMINI,
            ),
            (
                title,
                "other",
                "[Payload omitted due to length with parameters: a, b, c, d, e, ...]",
                GEMINI,
            ),
            (title, "other", "anything", GEMINI),
            ("write_binding (other MCP Server)", "other", "{}", GEMINI),
            ("rm (prose MCP Server)", "other", "{}", GEMINI),
            (
                "write_binding (prose MCP Server) (other MCP Server)",
                "other",
                "{}",
                GEMINI,
            ),
        ] {
            assert!(!ask(title, kind, text, options), "{title} {kind} {text}");
        }
    }
}
