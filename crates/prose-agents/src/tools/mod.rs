//! The tools of sessions that talk to a model directly: `read`, `write`, `list`, `bash`, `web_fetch`. Each asks the
//! session's policy first, about what it really touches.
//!
//! Architecture invariant: a tool never fails the session. What goes wrong is a result that says so, for the model to read.

mod bash;
mod beneath;
mod files;
mod page;
#[cfg(test)]
mod tests;
mod watch;
mod web;

use std::sync::Arc;
use std::time::Duration;

use prose_model::backend::Variables;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::policy::{Denial, Gate, Policy};
use crate::redact::Redactor;
use crate::session::{CancelToken, SessionSink, SessionSpawn, SessionUpdate};

/// The longest result of a tool, in bytes.
const LONGEST_RESULT: usize = 64 * 1024;
/// How often a tool that works shows that the session is alive.
pub(crate) const LIFE: Duration = Duration::from_secs(1);

/// A tool as a model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name to call it by.
    pub name: &'static str,
    /// What it does, for the model.
    pub description: &'static str,
    /// JSON schema of its input: an object.
    pub parameters: Json,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// For the model.
    pub text: String,
    /// Whether it could not do it.
    pub is_error: bool,
}

impl ToolResult {
    fn ok(text: impl Into<String>) -> ToolResult {
        ToolResult {
            text: text.into(),
            is_error: false,
        }
    }

    fn error(text: impl std::fmt::Display) -> ToolResult {
        ToolResult {
            text: text.to_string(),
            is_error: true,
        }
    }
}

impl From<Denial> for ToolResult {
    fn from(why: Denial) -> Self {
        ToolResult::error(format_args!(
            "refused: {why}. Permissions can't be changed from here; go on without it, or say what is missing."
        ))
    }
}

/// The tools of one session.
pub struct Toolbox {
    gate: Gate,
    sink: Arc<dyn SessionSink>,
    cancel: CancelToken,
    redactor: Redactor,
    variables: Variables,
}

impl Toolbox {
    /// The tools of a session under its policy ([`Policy::for_session`]). Of the variables, commands see those that any
    /// program needs.
    pub fn new(session: &SessionSpawn, policy: Policy, variables: Variables) -> Toolbox {
        Toolbox {
            variables,
            gate: Gate::new(policy, session.sink.clone()),
            sink: session.sink.clone(),
            cancel: session.cancel.clone(),
            redactor: session.sink.redactor(),
        }
    }

    /// Those tools that the policy may let through.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let policy = self.gate.policy();
        let mut specs = Vec::new();
        if policy.is_possible("read") {
            specs.push(ToolSpec {
                name: "read",
                description: "Reads a text file. Paths are relative to the workspace. A long file comes in parts: give `offset`, the first line to read (from 1), and `limit`, the number of lines.",
                parameters: object(
                    json!({
                        "path": { "type": "string" },
                        "offset": { "type": "integer", "minimum": 1 },
                        "limit": { "type": "integer", "minimum": 1 },
                    }),
                    &["path"],
                ),
            });
            specs.push(ToolSpec {
                name: "list",
                description: "Lists a folder of the workspace; folders end with `/`. With `pattern`, a glob such as `**/*.rs`, it lists the files below the folder that match; `.git`, `.prose`, `node_modules` and `target` are not searched.",
                parameters: object(
                    json!({ "path": { "type": "string" }, "pattern": { "type": "string" } }),
                    &[],
                ),
            });
        }
        if policy.is_possible("write") {
            specs.push(ToolSpec {
                name: "write",
                description: "Writes a text file, whole: what was in it before is replaced. Folders that are missing are made.",
                parameters: object(
                    json!({ "path": { "type": "string" }, "content": { "type": "string" } }),
                    &["path", "content"],
                ),
            });
        }
        if policy.is_possible("bash") {
            specs.push(ToolSpec {
                name: "bash",
                description: "Runs a shell command in the workspace's folder and gives its output and exit code. It gets no input, and what it leaves running is ended.",
                parameters: object(
                    json!({
                        "command": { "type": "string" },
                        "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": bash::LONGEST.as_secs() },
                    }),
                    &["command"],
                ),
            });
        }
        if policy.is_possible("network") {
            specs.push(ToolSpec {
                name: "web_fetch",
                description: "Gets a page or a text from an http or https address. Pages come as plain text.",
                parameters: object(json!({ "url": { "type": "string" } }), &["url"]),
            });
        }
        specs
    }

    /// Uses a tool. Dropping the future stops what it does, and so does cancelling the session: commands end, no address is
    /// asked, and a file that is not in its place by then is not put there.
    pub async fn call(&self, name: &str, input: Json) -> ToolResult {
        let result = tokio::select! {
            result = self.dispatch(name, input) => result,
            () = self.cancel.cancelled() => ToolResult::error("the session was cancelled"),
        };
        ToolResult {
            text: self.redactor.redact(&result.text).into_owned(),
            ..result
        }
    }

    async fn dispatch(&self, name: &str, input: Json) -> ToolResult {
        let done = match name {
            "read" => {
                self.run(
                    "read",
                    input,
                    |input: &files::Read| input.path.clone(),
                    files::read,
                )
                .await
            }
            "write" => {
                self.run(
                    "write",
                    input,
                    |input: &files::Write| input.path.clone(),
                    files::write,
                )
                .await
            }
            "list" => self.run("list", input, files::List::detail, files::list).await,
            "bash" => {
                self.run(
                    "bash",
                    input,
                    |input: &bash::Bash| input.command.clone(),
                    bash::bash,
                )
                .await
            }
            "web_fetch" => {
                self.run(
                    "web_fetch",
                    input,
                    |input: &web::Fetch| input.url.clone(),
                    web::fetch,
                )
                .await
            }
            _ => {
                let known: Vec<&str> = self.specs().iter().map(|spec| spec.name).collect();
                Err(ToolResult::error(format_args!(
                    "there is no tool `{}`; there are {}",
                    self.redactor.shown(name, 60),
                    known.join(", ")
                )))
            }
        };
        done.unwrap_or_else(|refused| refused)
    }

    /// Reads a tool's input, reports that it is used, and uses it.
    async fn run<'a, I: DeserializeOwned>(
        &'a self,
        name: &'static str,
        input: Json,
        detail: impl Fn(&I) -> String,
        tool: impl AsyncFnOnce(&'a Toolbox, I) -> Result<ToolResult, ToolResult>,
    ) -> Result<ToolResult, ToolResult> {
        let input: I = serde_json::from_value(input).map_err(|error| {
            ToolResult::error(format_args!("the input of `{name}` is not as described: {error}"))
        })?;
        self.sink.update(SessionUpdate::Tool {
            name: name.to_owned(),
            detail: self.redactor.shown(&detail(&input), 200),
        });
        let work = tool(self, input);
        tokio::pin!(work);
        let mut signs = tokio::time::interval(LIFE);
        loop {
            tokio::select! {
                done = &mut work => return done,
                // A tool that is at work says nothing, and is no session that hangs: each has a limit of its own.
                _ = signs.tick() => self.sink.alive(),
            }
        }
    }
}

fn object(properties: Json, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Cuts a text at a limit in bytes, between characters.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
