//! A language client that does as little as possible, so that what is measured is the server.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before the server is taken to hang.
const HANG: Duration = Duration::from_secs(120);

/// A message of the server and when its last byte was there.
struct Message {
    at: Instant,
    body: Vec<u8>,
}

/// A server and the connection to it. Ends with this value.
pub struct Client {
    server: Child,
    stdin: ChildStdin,
    messages: Receiver<Message>,
    next_id: i64,
}

impl Client {
    /// Starts the binary in an empty folder and initializes the session.
    pub fn start(binary: &Path, folder: &Path) -> io::Result<Client> {
        let mut server = Command::new(binary)
            .arg("--stdio")
            .current_dir(folder)
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder.join(".config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || io::Error::other("the server has no pipes");
        let stdin = server.stdin.take().ok_or_else(missing)?;
        let stdout = server.stdout.take().ok_or_else(missing)?;
        let (send, messages) = channel();
        thread::spawn(move || {
            let mut reader = BufReader::with_capacity(1 << 20, stdout);
            while let Ok(Some(body)) = read(&mut reader) {
                let at = Instant::now();
                if send.send(Message { at, body }).is_err() {
                    return;
                }
            }
        });
        let mut client = Client {
            server,
            stdin,
            messages,
            next_id: 1,
        };
        let parameters = json!({
            "processId": std::process::id(),
            "rootUri": format!("file://{}", folder.display()),
            "capabilities": {"textDocument": {"publishDiagnostics": {"versionSupport": true}}},
        });
        client.request("initialize", parameters)?;
        client.notify("initialized", json!({}))?;
        Ok(client)
    }

    /// The server's process id.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Sends a request; how long the answer took.
    pub fn request(&mut self, method: &str, parameters: Value) -> io::Result<Duration> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let begun = self.send(&message)?;
        let at = self.wait(|body| {
            // Only short messages are parsed: diagnostics of a long file would disturb the next measurement.
            body.len() < 65536
                && serde_json::from_slice::<Value>(body)
                    .is_ok_and(|it| it["id"] == json!(id) && it.get("method").is_none())
        })?;
        Ok(at - begun)
    }

    /// Sends a notification; when.
    pub fn notify(&mut self, method: &str, parameters: Value) -> io::Result<Instant> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": parameters}))
    }

    /// Waits for the diagnostics of a version of a document; when they were there.
    pub fn diagnostics(&mut self, uri: &str, version: i64) -> io::Result<Instant> {
        let (uri, version) = (format!("\"uri\":\"{uri}\""), format!("\"version\":{version}"));
        self.wait(|body| {
            // The version comes after the diagnostics, or before them: it is at either end.
            let ends = [
                &body[..body.len().min(600)],
                &body[body.len().saturating_sub(600)..],
            ];
            contains(ends[0], "textDocument/publishDiagnostics")
                && ends.iter().any(|it| contains(it, &uri))
                && ends.iter().any(|it| ends_number(it, &version))
        })
    }

    fn send(&mut self, message: &Value) -> io::Result<Instant> {
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let begun = Instant::now();
        self.stdin.write_all(frame.as_bytes())?;
        self.stdin.flush()?;
        Ok(begun)
    }

    /// Waits for a message that fits and drops those before it.
    fn wait(&mut self, fits: impl Fn(&[u8]) -> bool) -> io::Result<Instant> {
        loop {
            let message = self
                .messages
                .recv_timeout(HANG)
                .map_err(|error| io::Error::other(format!("no answer of the server: {error}")))?;
            if fits(&message.body) {
                return Ok(message.at);
            }
            self.answer(&message.body)?;
        }
    }

    /// Answers what the server asks, with nothing.
    fn answer(&mut self, body: &[u8]) -> io::Result<()> {
        if body.len() > 65536 {
            return Ok(());
        }
        if let Ok(message) = serde_json::from_slice::<Value>(body)
            && let (Some(id), Some(_)) = (message.get("id"), message.get("method"))
        {
            self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null}))?;
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The body of the next message; `None` at the end.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|it| it == part.as_bytes())
}

/// Whether `part`, which ends with a number, is in a text with nothing that goes on with the number.
fn ends_number(text: &[u8], part: &str) -> bool {
    let found = |at: &usize| text[*at..].starts_with(part.as_bytes());
    (0..text.len())
        .filter(found)
        .any(|at| !text.get(at + part.len()).is_some_and(u8::is_ascii_digit))
}
