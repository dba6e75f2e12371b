//! The tools of a session through the real `prose mcp`, as an agent starts it: what they take and give, and who gets in.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use prose_agents::mcp::{Broker, Handed, LONGEST_PIECE, McpServer, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE};
use prose_agents::prompt::{PromptFile, RenderedPrompt};
use prose_agents::{
    CancelToken, Clock, PermissionAnswer, PermissionQuestion, Secret, SessionSink, SessionSpawn,
    SessionUpdate, SpendLimit, UserQuestion,
};
use prose_model::{
    BindKind, BindingRef, BindingTarget, Failure, MemoryMode, MemoryRequest, Persist, SessionRequest,
    SourceRange, Text,
};
use prose_tests::{bin, only_run, prose_command, workspace};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Answers questions with what it was given, and keeps them.
#[derive(Default)]
struct Person {
    answer: Option<String>,
    asked: Mutex<Vec<UserQuestion>>,
}

#[async_trait]
impl SessionSink for Person {
    async fn started(&self, _: Option<Value>, _: Option<String>) -> Result<(), Failure> {
        Ok(())
    }
    fn update(&self, _: SessionUpdate) {}
    async fn ask_permission(&self, _: PermissionQuestion) -> PermissionAnswer {
        PermissionAnswer::Deny
    }
    async fn ask_user(&self, question: UserQuestion) -> Option<String> {
        self.asked.lock().unwrap().push(question);
        self.answer.clone()
    }
}

struct Stage {
    folder: tempfile::TempDir,
    person: Arc<Person>,
    /// Whether the session leaves a memory.
    remembers: bool,
    files: Vec<(&'static str, String)>,
}

impl Stage {
    fn new() -> Stage {
        Stage {
            folder: tempfile::tempdir().unwrap(),
            person: Arc::default(),
            remembers: false,
            files: Vec::new(),
        }
    }

    fn session(&self) -> SessionSpawn {
        let memory = self.remembers.then(|| MemoryRequest {
            agent: "critic".into(),
            persist: Persist::Execution,
            namespace: String::new(),
            program: Vec::new(),
            mode: MemoryMode::Resume,
        });
        let files = self.files.iter().map(|(label, text)| {
            let path = self.folder.path().join(format!("context-{label}.md"));
            std::fs::write(&path, text).unwrap();
            PromptFile {
                label: (*label).to_owned(),
                path,
            }
        });
        SessionSpawn {
            effect: "e1".into(),
            order: 0,
            lease: 1,
            request: Arc::new(SessionRequest {
                agent: None,
                label: "Write".into(),
                model: None,
                system: None,
                task: Text::inline("Write"),
                context: Vec::new(),
                context_given: false,
                skills: Vec::new(),
                permissions: Vec::new(),
                memory,
                binding: BindingTarget {
                    binding: BindingRef {
                        name: "result".into(),
                        execution_id: None,
                        program: Vec::new(),
                    },
                    bind_kind: BindKind::Let,
                    source: SourceRange {
                        file: 0,
                        start: 0,
                        end: 0,
                    },
                },
                scope: None,
                attempt: 1,
                max_attempts: 1,
            }),
            prompt: RenderedPrompt {
                files: files.collect(),
                ..RenderedPrompt::default()
            },
            work_dir: self.folder.path().to_owned(),
            staging: self.folder.path().to_owned(),
            memory: None,
            timeout: None,
            budget: SpendLimit::default(),
            sink: self.person.clone(),
            cancel: CancelToken::new(),
            clock: Clock::Real,
        }
    }

    fn broker(&self) -> Broker {
        Broker::for_session(&self.session(), bin("prose")).unwrap()
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(name)).ok()
    }

    /// The value in the staged binding, as the run reads it.
    fn value(&self) -> String {
        prose_state::parse_staged(&self.read("binding.md").unwrap()).body
    }
}

/// An agent that has started the server.
struct Agent {
    child: Child,
    client: RunningService<RoleClient, ()>,
}

fn start(server: &McpServer) -> Child {
    let mut command = Command::new(&server.command);
    command
        .args(&server.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (name, value) in &server.variables {
        command.env(name, value.expose());
    }
    command.spawn().unwrap()
}

impl Agent {
    async fn of(broker: &Broker) -> Agent {
        let mut child = start(&broker.server());
        let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = ().serve(pipes).await.unwrap();
        Agent { child, client }
    }

    async fn tools(&self) -> Vec<String> {
        let tools = self.client.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// What a tool answers, or how it refuses.
    async fn call(&self, name: &'static str, input: Value) -> Result<String, String> {
        let input = input.as_object().cloned().unwrap();
        let called = self
            .client
            .call_tool(CallToolRequestParams::new(name).with_arguments(input))
            .await
            .map_err(|error| format!("broken: {error}"))?;
        let texts: Vec<&str> = called
            .content
            .iter()
            .map(|content| content.as_text().unwrap().text.as_str())
            .collect();
        match called.is_error {
            Some(true) => Err(texts.join("\n")),
            _ => Ok(texts.join("\n")),
        }
    }
}

/// How a server that can't do anything ends.
async fn refused(server: &McpServer) -> String {
    let child = start(server);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_session_has_the_tools_that_it_can_use() {
    let mut stage = Stage::new();
    let broker = stage.broker();
    assert_eq!(
        Agent::of(&broker).await.tools().await,
        ["write_binding", "ask_user"]
    );
    stage.remembers = true;
    stage.files = vec![("notes", "Bees.".to_owned())];
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    assert_eq!(
        agent.tools().await,
        [
            "write_binding",
            "read_binding",
            "update_memory",
            "write_segment",
            "ask_user"
        ]
    );
    let why = agent
        .call("verdict", json!({"decision": "yes"}))
        .await
        .unwrap_err();
    assert!(why.starts_with("there is no such tool"), "{why}");
}

#[tokio::test]
async fn a_judge_has_one_tool_and_its_last_answer_counts() {
    let schema = json!({"type": "object", "properties": {"decision": {"enum": ["yes", "no"]}}, "required": ["decision"]});
    let broker = Broker::for_judge(schema.clone(), bin("prose")).unwrap();
    let agent = Agent::of(&broker).await;
    let tools = agent.client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(Value::Object((*tools[0].input_schema).clone()), schema);
    assert!(agent.call("write_binding", json!({"value": "x"})).await.is_err());
    agent.call("verdict", json!({"decision": "no"})).await.unwrap();
    agent.call("verdict", json!({"decision": "yes"})).await.unwrap();
    assert_eq!(broker.answer().await, Some(json!({"decision": "yes"})));
}

#[tokio::test]
async fn values_arrive_whole_and_the_last_one_counts() {
    let mut stage = Stage::new();
    stage.remembers = true;
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    agent
        .call("write_binding", json!({"value": "first"}))
        .await
        .unwrap();
    // What looks like the head of a file is part of the value.
    let value = format!(
        "# Title\n\nkind: honey\n\n---\n\n{}",
        "Ü\"\\\u{1}\n".repeat(200_000)
    );
    assert!(value.len() > 1_000_000);
    let said = agent
        .call("write_binding", json!({"value": value}))
        .await
        .unwrap();
    assert_eq!(said, format!("Binding written: result ({} bytes)", value.len()));
    // A file that the agent writes as well counts for less.
    std::fs::write(stage.folder.path().join("binding.md"), "from the agent").unwrap();
    agent
        .call("update_memory", json!({"memory": "I like commas."}))
        .await
        .unwrap();
    let handed = broker.finish().await.unwrap();
    assert_eq!(
        handed,
        Handed {
            binding: true,
            memory: true,
            segment: false
        }
    );
    assert_eq!(stage.value().trim_end(), value.trim_end());
    assert_eq!(stage.read("memory.md").unwrap(), "I like commas.");
    // Nothing else is left.
    let mut names: Vec<_> = std::fs::read_dir(stage.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["binding.md", "memory.md"]);
}

#[tokio::test]
async fn long_values_come_in_pieces() {
    let stage = Stage::new();
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    let piece = "x".repeat(LONGEST_PIECE);
    agent
        .call("write_binding", json!({"value": piece}))
        .await
        .unwrap();
    agent
        .call("write_binding", json!({"value": "\nthe end", "append": true}))
        .await
        .unwrap();
    // Refused, and nothing is changed by it.
    for (input, why) in [
        (json!({"value": format!("{piece}x")}), "too many for one call"),
        (json!({"value": " \n"}), "it is empty"),
        (json!({}), "`value` is missing"),
        (json!({"value": null}), "`value` is missing"),
    ] {
        let said = agent.call("write_binding", input).await.unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    broker.finish().await.unwrap();
    assert_eq!(stage.value(), format!("{piece}\nthe end"));
}

#[tokio::test]
async fn a_message_without_an_end_ends_the_connection_and_not_the_session() {
    use tokio::io::AsyncWriteExt as _;
    let stage = Stage::new();
    let broker = stage.broker();
    let mut child = start(&broker.server());
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![b'x'; 1024 * 1024];
    while stdin.write_all(&block).await.is_ok() {}
    assert!(!child.wait().await.unwrap().success());
    let agent = Agent::of(&broker).await;
    agent
        .call("write_binding", json!({"value": "fine"}))
        .await
        .unwrap();
    assert!(broker.finish().await.unwrap().binding);
}

#[tokio::test]
async fn what_was_given_by_reference_is_read_in_parts() {
    let mut stage = Stage::new();
    let whole = "Bienen fliegen über Blüten. ".repeat(4_000);
    stage.files = vec![("notes", whole.clone()), ("other", "Wasps.".to_owned())];
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    let read = async |input: Value| agent.call("read_binding", input).await;
    assert_eq!(
        read(json!({"name": "other"})).await.unwrap(),
        "Wasps.\n[bytes 0 to 6 of 6; this is its end]"
    );
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let said = read(json!({"name": "notes", "offset": offset})).await.unwrap();
        let (text, note) = said.rsplit_once("\n[").unwrap();
        assert!(text.len() <= 32 * 1024);
        all.push_str(text);
        match note.rsplit_once("offset ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(all, whole);
    for (input, why) in [
        (
            json!({"name": "../../etc/passwd"}),
            "there is no such name in your context; there is notes, other",
        ),
        (json!({"name": "notes", "offset": -1}), "not negative"),
        (json!({}), "`name` is missing"),
    ] {
        let said = read(input).await.unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_person_is_asked_if_there_is_one() {
    let mut stage = Stage::new();
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    let question = json!({"question": "Which bees?", "options": ["wild", "tame"]});
    let said = agent.call("ask_user", question.clone()).await.unwrap_err();
    assert!(said.contains("decide yourself"), "{said}");
    stage.person = Arc::new(Person {
        answer: Some("wild".to_owned()),
        ..Person::default()
    });
    let broker = stage.broker();
    let agent = Agent::of(&broker).await;
    assert_eq!(agent.call("ask_user", question).await.unwrap(), "wild");
    let long = agent
        .call("ask_user", json!({"question": "x".repeat(3_000)}))
        .await;
    assert!(long.unwrap_err().contains("too long"));
    let asked = stage.person.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [UserQuestion {
            text: "Which bees?".to_owned(),
            options: vec!["wild".to_owned(), "tame".to_owned()],
        }]
    );
}

#[tokio::test]
async fn only_the_sessions_own_token_is_let_in() {
    let (one, two) = (Stage::new(), Stage::new());
    let (broker, other) = (one.broker(), two.broker());
    let mut server = broker.server();
    let token = server
        .variables
        .iter_mut()
        .find(|(name, _)| *name == TOKEN_VARIABLE)
        .unwrap();
    let foreign = other.server().variables[1].1.clone();
    for wrong in [foreign, Secret::new(""), Secret::new("x".repeat(10_000))] {
        token.1 = wrong;
        let server = McpServer {
            variables: vec![broker.server().variables[0].clone(), token.clone()],
            ..broker.server()
        };
        let said = refused(&server).await;
        assert!(said.contains("refuses the token"), "{said}");
    }
    let nothing = McpServer {
        variables: Vec::new(),
        ..broker.server()
    };
    let said = refused(&nothing).await;
    assert!(said.contains("started by an agent"), "{said}");
    // Neither the token nor anything of it is shown.
    assert!(!format!("{broker:?} {:?}", broker.server()).contains(other_token(&broker)));
    Agent::of(&broker)
        .await
        .call("write_binding", json!({"value": "mine"}))
        .await
        .unwrap();
    assert!(broker.finish().await.unwrap().binding);
    assert!(!other.finish().await.unwrap().binding);
}

fn other_token(broker: &Broker) -> &'static str {
    // Leaked for the comparison only.
    Box::leak(
        broker.server().variables[1]
            .1
            .expose()
            .to_owned()
            .into_boxed_str(),
    )
}

#[tokio::test]
async fn nobody_gets_in_once_the_session_is_over() {
    let stage = Stage::new();
    let broker = stage.broker();
    let server = broker.server();
    let socket = PathBuf::from(server.variables[0].1.expose());
    let config = broker.config_file().unwrap();
    private(socket.parent().unwrap(), 0o700);
    private(&config, 0o600);
    let mut late = Agent::of(&broker).await;
    late.call("write_binding", json!({"value": "in time"}))
        .await
        .unwrap();
    broker.finish().await.unwrap();
    let said = late.call("write_binding", json!({"value": "too late"})).await;
    assert!(said.is_err(), "{said:?}");
    let status = late.child.wait().await.unwrap();
    assert_eq!(status.code(), Some(2));
    let said = refused(&server).await;
    assert!(said.contains("the session is over"), "{said}");
    assert_eq!(stage.value(), "in time");
    assert!(!socket.parent().unwrap().exists());
    // The same session once more, under the next lease: the old token is nobody's.
    let again = stage.broker();
    let old = McpServer {
        variables: vec![again.server().variables[0].clone(), server.variables[1].clone()],
        ..again.server()
    };
    let said = refused(&old).await;
    assert!(said.contains("refuses the token"), "{said}");
    assert!(!again.finish().await.unwrap().binding);
}

fn private(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let found = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(found, mode, "{}", path.display());
}

#[tokio::test]
async fn the_server_ends_with_its_agent() {
    let stage = Stage::new();
    let broker = stage.broker();
    let Agent { mut child, client } = Agent::of(&broker).await;
    client.cancel().await.unwrap();
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn sessions_side_by_side_keep_to_themselves() {
    let stages: Vec<Stage> = (0..6).map(|_| Stage::new()).collect();
    let sessions = stages.iter().enumerate().map(|(number, stage)| async move {
        let broker = stage.broker();
        let agent = Agent::of(&broker).await;
        for round in 0..5 {
            let value = format!("{number}/{round} ").repeat(1_000);
            agent
                .call("write_binding", json!({"value": value}))
                .await
                .unwrap();
        }
        broker.finish().await.unwrap();
    });
    futures::future::join_all(sessions).await;
    for (number, stage) in stages.iter().enumerate() {
        assert_eq!(stage.value(), format!("{number}/4 ").repeat(1_000).trim_end());
    }
}

/// Stands in for Claude Code: starts the server that its arguments name, hands over a value, writes a file and says something
/// else.
const CLAUDE: &str = r##"#!/bin/sh
for arg in "$@"; do
  [ "$arg" = --version ] && { echo '9.9.9 (Claude Code)'; exit 0; }
  [ "$last" = --mcp-config ] && config=$arg
  last=$arg
done
read -r init
read -r prompt
out=$(printf '%s' "$prompt" | sed 's/.*write your output to:\\n  \([^\\]*\)\\n.*/\1/')
value() { sed 's/.*"'"$1"'":"\([^"]*\)".*/\1/' "$config"; }
{
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}'
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write_binding","arguments":{"value":"handed over"}}}'
  sleep 1
} | env PROSE_MCP_SOCKET="$(value PROSE_MCP_SOCKET)" PROSE_MCP_TOKEN="$(value PROSE_MCP_TOKEN)" "$(value command)" mcp > answers
printf 'written' > "$out"
echo '{"type":"result","subtype":"success","is_error":false,"result":"said","total_cost_usd":0.25}'
read -r rest
exit 0
"##;

#[test]
fn a_run_takes_what_was_handed_over_before_what_was_written_and_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = workspace(&[
        ("claude", CLAUDE),
        ("main.prose", "output text = session \"Write\"\n"),
    ]);
    let claude = folder.path().join("claude");
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = format!(
        "[backends.claude]\ncommand = {:?}\n",
        claude.display().to_string()
    );
    std::fs::write(folder.path().join("prose.toml"), settings).unwrap();
    let runtime = tempfile::tempdir().unwrap();
    let output = prose_command(folder.path())
        .args(["run", "main.prose", "--backend", "claude"])
        .env("XDG_RUNTIME_DIR", runtime.path())
        .env("ANTHROPIC_API_KEY", "sk-ant-test-0001")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let answers = std::fs::read_to_string(folder.path().join("answers")).unwrap_or_default();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "handed over\n",
        "{errors}\n{answers}"
    );
    let bindings = only_run(folder.path()).join("bindings");
    let kept = std::fs::read_to_string(bindings.join("text.md")).unwrap();
    assert!(kept.ends_with("handed over\n"), "{kept}");
    // No socket, and no file with a token, is left.
    assert_eq!(std::fs::read_dir(runtime.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_token_may_be_in_a_file() {
    let stage = Stage::new();
    let broker = stage.broker();
    let token = broker.server().variables[1].1.clone();
    let server = broker.server_by_file().unwrap();
    assert!(server.variables.iter().all(|(_, value)| *value != token));
    let file = PathBuf::from(
        server
            .variables
            .iter()
            .find(|(name, _)| *name == TOKEN_FILE_VARIABLE)
            .unwrap()
            .1
            .expose(),
    );
    private(&file, 0o600);
    let mut child = start(&server);
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let agent = Agent {
        child,
        client: ().serve(pipes).await.unwrap(),
    };
    agent
        .call("write_binding", json!({"value": "by file"}))
        .await
        .unwrap();
    assert!(broker.finish().await.unwrap().binding);
    assert!(!file.exists());
    let said = refused(&server).await;
    assert!(said.contains("the session is over"), "{said}");
}

/// What a stand-in for an agent of the Agent Client Protocol begins with. `begin` says hello and takes the session and what is to
/// be done; `tool NAME ARGUMENTS` calls a tool of the server that it was told.
const ACP_HEAD: &str = r##"#!/bin/sh
next() { read -r line || exit 0; id=$(printf '%s' "$line" | grep -o '"id":[^,}]*' | head -n 1 | cut -c 6-); }
ok() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
takes='{}'
begin() {
  next; ok '{"protocolVersion":1,"agentCapabilities":'"$takes"'}'
  next; new=$line; printf '%s\n' "$line" >> sessions; ok '{"sessionId":"s1"}'
}
turn() {
  next; turn=$id
  out=$(printf '%s' "$line" | sed 's/.*write your output to:\\n  \([^\\]*\)\\n.*/\1/')
}
value() { printf '%s' "$new" | sed 's/.*"name":"'"$1"'","value":"\([^"]*\)".*/\1/'; }
program() { printf '%s' "$new" | sed 's/.*"command":"\([^"]*\)".*/\1/'; }
tool() {
  {
    echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"sh","version":"1"}}}'
    echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"'"$1"'","arguments":'"$2"'}}'
  } | env -i PROSE_MCP_SOCKET="$(value PROSE_MCP_SOCKET)" PROSE_MCP_TOKEN_FILE="$(value PROSE_MCP_TOKEN_FILE)" "$(program)" mcp > answers
}
end() { id=$turn; ok '{"stopReason":"end_turn"}'; cat > /dev/null; }
"##;

/// What a program prints whose sessions are run by such a stand-in, and what it was told when sessions began.
fn acp(name: &str, script: &str, program: &str) -> (String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let script = format!("{ACP_HEAD}{script}\n");
    let folder = workspace(&[(name, script.as_str()), ("main.prose", program)]);
    let agent = folder.path().join(name);
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = format!(
        "[backends.mine]\nkind = \"acp\"\ncommand = {:?}\n",
        agent.display().to_string()
    );
    std::fs::write(folder.path().join("prose.toml"), settings).unwrap();
    let runtime = tempfile::tempdir().unwrap();
    let output = prose_command(folder.path())
        .args(["run", "main.prose", "--backend", "mine"])
        .env("XDG_RUNTIME_DIR", runtime.path())
        .output()
        .unwrap();
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}", read("answers"));
    assert_eq!(std::fs::read_dir(runtime.path()).unwrap().count(), 0);
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        read("sessions"),
    )
}

const WRITE: &str = "output text = session \"Write\"\n";

#[test]
fn an_agent_of_the_protocol_hands_over_what_it_makes() {
    let script = r#"begin; turn
tool write_binding '{"value":"handed over"}'
printf 'written' > "$out"
end"#;
    let (said, sessions) = acp("my-agent", script, WRITE);
    assert_eq!(said, "handed over\n");
    assert!(!sessions.contains("\"PROSE_MCP_TOKEN\""), "{sessions}");
}

#[test]
fn one_that_takes_no_servers_writes_files() {
    let no_servers =
        r#"takes='{"mcpCapabilities":{"stdio":false}}'; begin; turn; printf 'written' > "$out"; end"#;
    let (said, sessions) = acp("my-agent", no_servers, WRITE);
    assert_eq!(said, "written\n");
    assert!(sessions.contains("\"mcpServers\":[]"), "{sessions}");
    let refuses = r#"next; ok '{"protocolVersion":1,"agentCapabilities":{}}'
next; printf '%s\n' "$line" >> sessions
printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"Invalid params"}}\n' "$id"
next; printf '%s\n' "$line" >> sessions; ok '{"sessionId":"s1"}'
turn; printf 'written' > "$out"; end"#;
    let (said, sessions) = acp("my-agent", refuses, WRITE);
    assert_eq!(said, "written\n");
    let sessions: Vec<&str> = sessions.lines().collect();
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert!(sessions[0].contains("PROSE_MCP_SOCKET") && sessions[1].contains("\"mcpServers\":[]"));
}

#[test]
fn its_question_whether_it_may_hand_over_is_answered_yes() {
    // As Codex asks. Nobody could be asked here, so that any other question is answered no.
    let script = r#"begin; turn
ask() {
  say '{"sessionUpdate":"tool_call","toolCallId":"c'"$1"'","title":"mcp.prose.write_binding","kind":"execute","rawInput":{"server":"'"$2"'","tool":"write_binding","arguments":{}},"_meta":{"is_mcp_tool_call":true}}'
  printf '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c'"$1"'","kind":"execute","status":"pending"},"_meta":{"is_mcp_tool_approval":true},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}\n'
  read -r answer
  case $answer in *'"allow"'*) said="$said yes";; *) said="$said no";; esac
}
ask 1 prose; ask 2 other
tool write_binding '{"value":"answers:'"$said"'"}'
end"#;
    let (said, _) = acp("codex-acp", script, WRITE);
    assert_eq!(said, "answers: yes no\n");
}

#[test]
fn a_decision_is_taken_from_the_tool_before_what_is_said() {
    let script = r#"begin; turn
case $line in
  *'You decide what a running program'*)
    tool verdict '{"reason":"as it is","decision":"yes","confidence":1}'
    say '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I have no idea."}}';;
  *) printf 'decided' > "$out";;
esac
end"#;
    let program =
        "if **it is done**:\n  output text = session \"Write\"\nelse:\n  output text = \"undecided\"\n";
    let (said, _) = acp("my-agent", script, program);
    assert_eq!(said, "decided\n");
}

#[test]
fn where_nobody_sits_a_session_is_told_so_and_goes_on() {
    let script = r#"begin; turn
tool ask_user '{"question":"Which bees?","options":["wild"]}'
case $(cat answers) in *'nobody is there to answer'*) printf 'decided myself' > "$out";; esac
end"#;
    let (said, _) = acp("my-agent", script, WRITE);
    assert_eq!(said, "decided myself\n");
}
