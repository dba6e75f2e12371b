//! A run: its steps, whoever listens.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::script::Step;
use super::server::Shared;

/// How a run ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// `ok`, `error` or `timeout`.
    pub(super) status: &'static str,
    /// The answer's payload.
    pub(super) payload: Value,
    pub(super) error: Option<String>,
    pub(super) at: u64,
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What one is about.
pub(super) struct Order {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) steps: Vec<Step>,
    /// Becomes true when it is to end.
    pub(super) abort: watch::Receiver<bool>,
}

/// Runs it to its end.
pub(super) async fn run(shared: Arc<Shared>, order: Order) {
    let mut abort = order.abort.clone();
    let mut talk = Talk {
        shared: &shared,
        order: &order,
        seq: 0,
        said: String::new(),
        calls: 0,
        failures: 0,
    };
    talk.event("lifecycle", json!({"phase": "start", "startedAt": now()}));
    let ended = tokio::select! {
        biased;
        _ = abort.wait_for(|abort| *abort) => talk.end("timeout", Some("rpc"), None),
        ended = talk.steps() => ended,
    };
    shared.finish(&order, ended);
}

struct Talk<'a> {
    shared: &'a Shared,
    order: &'a Order,
    seq: u64,
    said: String,
    calls: u64,
    failures: u64,
}

impl Talk<'_> {
    async fn steps(&mut self) -> Ended {
        for step in &self.order.steps {
            match step {
                Step::Say(text) => {
                    self.said.push_str(text);
                    let whole = self.said.clone();
                    self.event("assistant", json!({"text": whole, "delta": text}));
                    self.event("usage", json!({"outputTokens": whole.len()}));
                }
                Step::Tool { name, args, fails } => self.tool(name, args, *fails),
                Step::Write { path, content } => {
                    let wrote = std::fs::write(path, content);
                    self.tool(
                        "write",
                        &json!({"path": path, "content": content}),
                        wrote.is_err(),
                    );
                }
                Step::Approve(command) => {
                    let request =
                        json!({"command": command, "cwd": "/", "host": "gateway", "agentId": "main"});
                    let allowed = self.approval("exec.approval.requested", request).await;
                    self.tool("exec", &json!({"command": command}), !allowed);
                }
                Step::ApprovePlugin(title) => {
                    let request = json!({"title": title, "description": "what it is", "pluginId": "some", "toolName": "odd"});
                    let allowed = self.approval("plugin.approval.requested", request).await;
                    self.tool("odd", &json!({}), !allowed);
                }
                Step::Hold => self.shared.held().await,
                Step::Drop => self.shared.drop_all(),
                Step::Fail(message) => {
                    self.event("lifecycle", json!({"phase": "error", "error": message}));
                    return self.end("error", None, Some(message.clone()));
                }
                Step::TimeOut => return self.end("timeout", Some("timeout"), None),
            }
            // Others have their turn, as over a network.
            tokio::task::yield_now().await;
        }
        self.event("lifecycle", json!({"phase": "end", "endedAt": now()}));
        self.end("ok", None, None)
    }

    fn tool(&mut self, name: &str, args: &Value, fails: bool) {
        self.said.clear();
        self.calls += 1;
        self.failures += u64::from(fails);
        let id = format!("call-{}", self.calls);
        self.event(
            "tool",
            json!({"phase": "start", "name": name, "toolCallId": id, "args": args}),
        );
        self.event(
            "tool",
            json!({"phase": "result", "name": name, "toolCallId": id, "isError": fails}),
        );
    }

    /// Whether it was allowed.
    async fn approval(&mut self, event: &str, mut request: Value) -> bool {
        request["sessionKey"] = self.order.session.as_str().into();
        let (decide, decided) = oneshot::channel();
        let id = self.shared.ask_approval(event, request, decide);
        let decision: String = decided.await.unwrap_or_default();
        let resolved = event.replace("requested", "resolved");
        self.shared
            .broadcast(&resolved, &json!({"id": id, "decision": decision}));
        decision.starts_with("allow")
    }

    fn event(&mut self, stream: &str, data: Value) {
        self.seq += 1;
        let payload = json!({
            "runId": self.order.id,
            "sessionKey": self.order.session,
            "seq": self.seq,
            "stream": stream,
            "ts": now(),
            "data": data,
        });
        self.shared.broadcast("agent", &payload);
    }

    fn end(&self, status: &'static str, stop: Option<&str>, error: Option<String>) -> Ended {
        let summary = match status {
            "ok" => "completed",
            "timeout" => "aborted",
            _ => "failed",
        };
        let mut payload = json!({"runId": self.order.id, "status": status, "summary": summary});
        if error.is_none() {
            payload["result"] = json!({
                "payloads": [{"text": self.said, "mediaUrl": null}],
                "meta": {
                    "durationMs": 5,
                    "agentMeta": {
                        "provider": "mock",
                        "model": "a",
                        "usage": {"input": 100, "output": 20, "cacheRead": 30, "total": 150},
                        "costUsd": 0.5,
                    },
                    "toolSummary": {"calls": self.calls, "failures": self.failures},
                },
            });
        }
        if let Some(stop) = stop {
            payload["stopReason"] = stop.into();
        }
        Ended {
            status,
            payload,
            error,
            at: now(),
        }
    }
}
