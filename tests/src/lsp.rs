//! A small language client that drives a real server process over its pipes.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a wait may take before the test is taken to hang.
pub const HANG: Duration = Duration::from_secs(60);

/// A connected client.
pub struct Client {
    /// The server process.
    pub child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    seen: VecDeque<Value>,
    next_id: i64,
}

impl Client {
    /// Starts `prose-lsp --stdio` in a folder, without any message sent.
    pub fn spawn(dir: &Path) -> Client {
        let mut child = Command::new(crate::bin("prose-lsp"))
            .arg("--stdio")
            .current_dir(dir)
            .env("HOME", dir)
            .env("XDG_CONFIG_HOME", dir.join(".config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            loop {
                let mut length = None;
                loop {
                    let mut line = String::new();
                    if stdout.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    let line = line.trim_end();
                    if line.is_empty() {
                        break;
                    }
                    if let Some(text) = line.strip_prefix("Content-Length: ") {
                        length = text.parse::<usize>().ok();
                    }
                }
                let mut body = vec![0; length.expect("the server sends a length")];
                if stdout.read_exact(&mut body).is_err() {
                    return;
                }
                let message = serde_json::from_slice(&body).expect("the server sends JSON");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Client {
            child,
            stdin,
            messages,
            seen: VecDeque::new(),
            next_id: 1,
        }
    }

    /// Starts a server and initializes it with the given client capabilities and options; returns the reply's result.
    pub fn start(dir: &Path, capabilities: Value, options: Value) -> (Client, Value) {
        let mut client = Client::spawn(dir);
        let result = client.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "rootUri": format!("file://{}", dir.display()),
                "capabilities": capabilities,
                "initializationOptions": options,
            }),
        );
        client.notify("initialized", json!({}));
        (client, result.expect("initialize succeeds"))
    }

    /// Sends raw bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        let body = serde_json::to_vec(message).unwrap();
        let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        frame.extend(body);
        self.send_raw(&frame);
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting; returns its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message);
        id
    }

    /// Sends a request and waits for its result or error.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send_request(method, params);
        self.response(id)
    }

    /// Waits for the response to a request.
    pub fn response(&mut self, id: i64) -> Result<Value, Value> {
        let message = self.wait(|m| m["id"] == json!(id) && m.get("method").is_none());
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// Waits for the first message, seen or to come, that fits, and takes it out.
    #[track_caller]
    pub fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&fits) {
            return self.seen.remove(at).unwrap();
        }
        let start = Instant::now();
        loop {
            let left = HANG.saturating_sub(start.elapsed());
            match self.messages.recv_timeout(left) {
                Ok(message) if fits(&message) => return message,
                Ok(message) => self.seen.push_back(message),
                Err(error) => panic!("no such message ({error}); seen: {:#?}", self.seen),
            }
        }
    }

    /// Waits for a notification or request of the server with this method.
    #[track_caller]
    pub fn wait_method(&mut self, method: &str) -> Value {
        self.wait(|m| m["method"] == method)
    }

    /// Answers a request of the server.
    pub fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Opens a document.
    pub fn open(&mut self, uri: &str, text: &str) {
        self.notify(
            "textDocument/didOpen",
            json!({"textDocument": {"uri": uri, "languageId": "prose", "version": 1, "text": text}}),
        );
    }

    /// Closes the server's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the process to end and returns its exit code.
    pub fn wait_exit(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < HANG {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
