//! A client for tests: speaks the protocol over in-memory pipes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::Decoder;

use crate::framing::{OutgoingDecoder, encode};
use crate::outbox::Outbox;
use crate::runs::{Engine, Runtime};
use crate::serve::{Config, serve_with};

/// Only keeps a broken test from hanging; no test is decided by it.
const HANG: Duration = Duration::from_secs(120);

pub(crate) struct TestClient {
    stdin: Option<DuplexStream>,
    stdout: DuplexStream,
    decoder: OutgoingDecoder,
    buffer: BytesMut,
    /// Messages nobody has asked for yet.
    pending: VecDeque<Value>,
    next_id: i64,
    server: JoinHandle<i32>,
    shutdown: Option<tokio::sync::oneshot::Sender<()>>,
}

impl TestClient {
    /// A server that has not been initialized.
    pub(crate) fn raw() -> TestClient {
        TestClient::serve(Config::default(), |outbox| Arc::new(Runtime::new(outbox)))
    }

    fn serve(config: Config, engine: impl FnOnce(Outbox) -> Arc<dyn Engine> + Send + 'static) -> TestClient {
        // As large as an operating system's pipe, so that nobody is ahead further than in reality.
        let (stdin, server_in) = tokio::io::duplex(64 * 1024);
        let (server_out, stdout) = tokio::io::duplex(64 * 1024);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let config = Config {
            max_message: 1 << 20,
            ..config
        };
        let server = tokio::spawn(serve_with(server_in, server_out, config, engine, async {
            if stopped.await.is_err() {
                std::future::pending().await
            }
        }));
        TestClient {
            stdin: Some(stdin),
            stdout,
            decoder: OutgoingDecoder::default(),
            buffer: BytesMut::new(),
            pending: VecDeque::new(),
            next_id: 0,
            server,
            shutdown: Some(stop),
        }
    }

    /// An initialized session of a client without special capabilities.
    pub(crate) async fn start() -> TestClient {
        TestClient::with(json!({ "capabilities": {} })).await
    }

    /// An initialized session.
    pub(crate) async fn with(initialize: Value) -> TestClient {
        TestClient::raw().initialized(initialize).await
    }

    /// An initialized session of a server that the host program decided something about.
    pub(crate) async fn configured(config: Config, initialize: Value) -> TestClient {
        let client = TestClient::serve(config, |outbox| Arc::new(Runtime::new(outbox)));
        client.initialized(initialize).await
    }

    /// An initialized session whose runs are driven by `engine`.
    pub(crate) async fn with_engine(engine: Arc<dyn Engine>, initialize: Value) -> TestClient {
        TestClient::serve(Config::default(), move |_| engine)
            .initialized(initialize)
            .await
    }

    async fn initialized(self, initialize: Value) -> TestClient {
        let mut client = self;
        client.request("initialize", initialize).await.unwrap();
        client.notify("initialized", json!({})).await;
        client
    }

    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        tokio::time::timeout(HANG, stdin.write_all(bytes))
            .await
            .expect("the server reads")
            .unwrap();
    }

    pub(crate) async fn message(&mut self, message: Value) {
        self.bytes(&encode(message.to_string().as_bytes())).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.message(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Sends a request without waiting for its answer.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.message(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        id
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The answer to a request sent before.
    pub(crate) async fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let answer = self
            .wait(|m| m.get("method").is_none() && m["id"] == json!(id))
            .await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// The next notification or request of the server with this method; its whole message.
    pub(crate) async fn next(&mut self, method: &str) -> Value {
        self.wait(|m| m["method"] == json!(method)).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.message(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
            .await;
    }

    /// The first message, old or new, that `wanted` accepts; the others stay for later.
    pub(crate) async fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.pending.iter().position(&wanted) {
            return self.pending.remove(at).unwrap();
        }
        loop {
            let message = self.read().await.expect("the server closed its output");
            if wanted(&message) {
                return message;
            }
            self.pending.push_back(message);
        }
    }

    /// The next message on the wire; `None` at its end.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            if let Some(body) = self.decoder.decode(&mut self.buffer).unwrap() {
                return Some(serde_json::from_slice(&body).unwrap());
            }
            let read = self.stdout.read_buf(&mut self.buffer);
            if tokio::time::timeout(HANG, read)
                .await
                .expect("the server answers")
                .unwrap()
                == 0
            {
                return None;
            }
        }
    }

    /// Messages that have arrived and that nobody has asked for.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Value> {
        self.pending.iter()
    }

    pub(crate) async fn open(&mut self, uri: &str, version: i32, text: &str) {
        let document = json!({ "uri": uri, "languageId": "prose", "version": version, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }))
            .await;
    }

    pub(crate) async fn change(&mut self, uri: &str, version: i32, changes: Value) {
        let document = json!({ "uri": uri, "version": version });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        )
        .await;
    }

    /// The server's text of a document.
    pub(crate) async fn text(&mut self, uri: &str) -> String {
        let view = self
            .request("prose/viewText", json!({ "uri": uri }))
            .await
            .unwrap();
        view["text"].as_str().unwrap().to_owned()
    }

    /// The diagnostics published for a version of a document.
    pub(crate) async fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<Value> {
        let wanted = |m: &Value| {
            m["method"] == json!("textDocument/publishDiagnostics")
                && m["params"]["uri"] == json!(uri)
                && m["params"]["version"] == json!(version)
        };
        self.wait(wanted).await["params"]["diagnostics"]
            .as_array()
            .unwrap()
            .clone()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn stop_host(&mut self) {
        let _ = self.shutdown.take().unwrap().send(());
    }

    /// The exit code; stdin stays as it is.
    pub(crate) async fn exit_code(mut self) -> i32 {
        self.shutdown = self.shutdown.take();
        tokio::time::timeout(HANG, &mut self.server)
            .await
            .expect("the server ends")
            .unwrap()
    }
}

/// Small deterministic random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
