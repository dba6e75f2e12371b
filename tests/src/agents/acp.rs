//! A client of the Agent Client Protocol that does what a turn needs and no more.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Stage;
use super::stage::wait;

/// How long an agent may be silent; only a hang takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What an agent did in a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// The answer's text.
    pub text: String,
    /// Why the turn ended.
    pub stop: String,
    /// How often it asked for permission.
    pub asked: usize,
    /// Tool calls that it reported.
    pub tools: usize,
}

/// Starts an agent, has it answer `prompt`, allowing whatever it asks for, and ends it.
pub fn turn(stage: &Stage, arguments: &[&str], prompt: &str) -> Result<Turn, String> {
    let mut client = Client::start(stage, arguments)?;
    let mut turn = Turn::default();
    let result = client.talk(stage, prompt, &mut turn);
    // The end of its input is an agent's sign to end.
    drop(client.input.take());
    if wait(&mut client.child, Duration::from_secs(20)).is_none() && result.is_ok() {
        return Err("the agent did not end with its input".to_owned());
    }
    result.map(|()| turn)
}

struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    count: u64,
}

impl Client {
    fn start(stage: &Stage, arguments: &[&str]) -> Result<Client, String> {
        let mut child = stage
            .command(arguments)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("can't start the agent: {error}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the agent has no output")?;
        let (send, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // What isn't JSON is not of the protocol; some agents print a greeting.
                if let Ok(message) = serde_json::from_str(&line)
                    && send.send(message).is_err()
                {
                    return;
                }
            }
        });
        Ok(Client {
            child,
            input,
            messages,
            count: 0,
        })
    }

    fn talk(&mut self, stage: &Stage, prompt: &str, turn: &mut Turn) -> Result<(), String> {
        let hello = json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "prose-tests", "version": "0"},
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        });
        let agent = self.ask("initialize", hello, turn)?;
        if agent["protocolVersion"] != 1 {
            return Err(format!("the agent speaks another version: {agent}"));
        }
        let session = self.ask("session/new", json!({"cwd": stage.work, "mcpServers": []}), turn)?;
        let prompt = json!({
            "sessionId": session["sessionId"],
            "prompt": [{"type": "text", "text": prompt}],
        });
        let answer = self.ask("session/prompt", prompt, turn)?;
        turn.stop = answer["stopReason"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    /// Sends a request, and does what the agent wants until the answer comes.
    fn ask(&mut self, method: &str, params: Value, turn: &mut Turn) -> Result<Value, String> {
        self.count += 1;
        let id = self.count;
        self.send(json!({"id": id, "method": method, "params": params}))?;
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self
                .messages
                .recv_timeout(left)
                .map_err(|error| format!("no answer to {method}: {error}"))?;
            if message["method"].is_null() {
                if message["id"] != id {
                    continue;
                }
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(format!("{method}: {}", message["error"])),
                };
            }
            self.serve(&message, turn)?;
        }
    }

    /// Does what the agent wants.
    fn serve(&mut self, message: &Value, turn: &mut Turn) -> Result<(), String> {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/update") => {
                let update = &params["update"];
                match update["sessionUpdate"].as_str() {
                    Some("agent_message_chunk") => {
                        turn.text += update["content"]["text"].as_str().unwrap_or_default();
                    }
                    Some("tool_call") => turn.tools += 1,
                    _ => {}
                }
                Ok(())
            }
            Some("session/request_permission") => {
                turn.asked += 1;
                let option = params["options"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|option| option["kind"] == "allow_once")
                    .map(|option| option["optionId"].clone());
                let outcome = match option {
                    Some(option) => json!({"outcome": "selected", "optionId": option}),
                    None => json!({"outcome": "cancelled"}),
                };
                self.send(json!({"id": message["id"], "result": {"outcome": outcome}}))
            }
            _ if message["id"].is_null() => Ok(()),
            method => self.send(json!({
                "id": message["id"],
                "error": {"code": -32601, "message": format!("there is no {method:?} here")},
            })),
        }
    }

    fn send(&mut self, mut message: Value) -> Result<(), String> {
        message["jsonrpc"] = "2.0".into();
        let input = self.input.as_mut().ok_or("the agent's input is closed")?;
        writeln!(input, "{message}")
            .and_then(|()| input.flush())
            .map_err(|error| format!("can't write to the agent: {error}"))
    }
}
