//! `Content-Length` framing between the real stdin/stdout and tower-lsp.
//!
//! tower-lsp 0.20 ends its read loop at the first frame it can't decode, and a response it doesn't
//! recognise is taken for a request. So this layer decodes every incoming frame first, answers what
//! is malformed with a JSON-RPC error and goes on, and hands only well-formed, normalised messages
//! to the inner server. The size of one message is bounded.

use std::io;

use futures::{Stream, StreamExt};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
#[cfg(test)]
use tokio_util::bytes::Bytes;
use tokio_util::bytes::{Buf, BytesMut};
use tokio_util::codec::Decoder;
use tower_lsp::jsonrpc::Request;

/// Longest header block that is still looked at, in bytes.
const MAX_HEADER: usize = 8 * 1024;

/// The name every frame has to carry; also what re-synchronisation looks for.
const CONTENT_LENGTH: &[u8] = b"content-length:";

/// Bytes that are read at once; a pipe holds no more.
const PIECE: usize = 64 * 1024;

/// The largest message whose room in the input buffer is kept.
const KEPT: usize = 256 * 1024;

/// JSON-RPC error codes of this layer.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Counts the frames that are still owed to the client, so that a session ends only after its last answer is out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    due: watch::Sender<u64>,
}

impl Ledger {
    /// A frame will have to be written.
    pub(crate) fn owe(&self) {
        self.due.send_modify(|due| *due += 1);
    }

    /// It was written, or never will be.
    pub(crate) fn settle(&self) {
        self.due.send_modify(|due| *due = due.saturating_sub(1));
    }

    /// Ends when nothing is owed.
    pub(crate) async fn settled(&self) {
        // Fails only when the sender is gone, and `self` holds it.
        let _ = self.due.subscribe().wait_for(|due| *due == 0).await;
    }
}

/// Frames of this layer and its neighbours that go to the client beside the server's own, as bodies.
#[derive(Debug, Clone)]
pub(crate) struct Replies {
    tx: mpsc::UnboundedSender<Vec<u8>>,
    ledger: Ledger,
}

impl Replies {
    /// A sender, and the receiver for [`pump_out`].
    pub(crate) fn new(ledger: Ledger) -> (Replies, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (tx, rx) = mpsc::unbounded_channel();
        (Replies { tx, ledger }, rx)
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: &Value) {
        self.ledger.owe();
        if self.tx.send(message.to_string().into_bytes()).is_err() {
            self.ledger.settle();
        }
    }

    /// Sends a body: a notification, for which nobody waits when the session ends, or an answer that is owed already.
    pub(crate) fn pass(&self, body: Vec<u8>) {
        let _ = self.tx.send(body);
    }
}

/// What the decoder found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// A well-formed JSON-RPC message, normalised (see [`normalise`]).
    Message(Value),
    /// Something that is no message; `reply` is the JSON-RPC error to send to the client.
    Malformed {
        /// The error response, ready to be framed.
        reply: Value,
    },
}

/// Why a frame was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// The header block has no usable `Content-Length`.
    Header,
    /// The header block doesn't end within [`MAX_HEADER`] bytes.
    HeaderTooLong,
    /// The announced length is over the limit.
    TooLarge { len: u64, max: usize },
    /// The body isn't UTF-8 or isn't JSON.
    Json(String),
    /// The body is JSON but no JSON-RPC 2.0 message.
    Shape(&'static str),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::Header => f.write_str("message header without a valid Content-Length"),
            Fault::HeaderTooLong => write!(f, "message header longer than {MAX_HEADER} bytes"),
            Fault::TooLarge { len, max } => {
                write!(f, "message of {len} bytes is over the limit of {max} bytes")
            }
            Fault::Json(why) => write!(f, "message body is not valid JSON: {why}"),
            Fault::Shape(why) => write!(f, "not a JSON-RPC 2.0 message: {why}"),
        }
    }
}

impl Fault {
    fn into_frame(self, id: Value) -> Frame {
        let code = match self {
            Fault::Shape(_) => INVALID_REQUEST,
            _ => PARSE_ERROR,
        };
        let error = json!({ "code": code, "message": self.to_string() });
        Frame::Malformed {
            reply: json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a header block.
    Header,
    /// Inside a body of this many bytes.
    Body(usize),
    /// Discarding this many bytes of a body that was too large.
    Skip(u64),
    /// Discarding until something looks like a header again.
    Resync,
}

/// Decoder that never fails on content; only the underlying reader can fail.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    state: State,
    max_message: usize,
    /// A header block without an end is searched again only from here.
    scanned: usize,
}

impl FrameDecoder {
    /// A decoder that refuses messages of more than `max_message` bytes.
    pub(crate) fn new(max_message: usize) -> FrameDecoder {
        FrameDecoder {
            state: State::Header,
            max_message,
            scanned: 0,
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.scanned = 0;
    }

    /// Gives up on the bytes at hand and looks for the next header after the first byte.
    fn lose_sync(&mut self, src: &mut BytesMut, fault: Fault) -> Frame {
        src.advance(src.len().min(1));
        self.enter(State::Resync);
        fault.into_frame(Value::Null)
    }
}

impl Decoder for FrameDecoder {
    type Item = Frame;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<Frame>> {
        loop {
            match self.state {
                State::Header => {
                    let Some((head, body)) = header_end(src, self.scanned) else {
                        if src.len() > MAX_HEADER {
                            return Ok(Some(self.lose_sync(src, Fault::HeaderTooLong)));
                        }
                        self.scanned = src.len().saturating_sub(3);
                        return Ok(None);
                    };
                    if head == 0 {
                        // Blank lines between messages are harmless.
                        src.advance(body);
                        self.scanned = 0;
                        continue;
                    }
                    let Some(len) = content_length(&src[..head]) else {
                        return Ok(Some(self.lose_sync(src, Fault::Header)));
                    };
                    src.advance(body);
                    match usize::try_from(len) {
                        Ok(len) if len <= self.max_message => self.enter(State::Body(len)),
                        _ => {
                            self.enter(State::Skip(len));
                            let fault = Fault::TooLarge {
                                len,
                                max: self.max_message,
                            };
                            return Ok(Some(fault.into_frame(Value::Null)));
                        }
                    }
                }
                State::Body(len) => {
                    if src.len() < len {
                        src.reserve(len - src.len());
                        return Ok(None);
                    }
                    let body = src.split_to(len).freeze();
                    if src.is_empty() && len > KEPT {
                        // Else the room that a whole document took would be kept for the next keystrokes.
                        *src = BytesMut::new();
                    }
                    self.enter(State::Header);
                    if body.iter().all(u8::is_ascii_whitespace) {
                        continue;
                    }
                    if let Some(frame) = classify(&body) {
                        return Ok(Some(frame));
                    }
                }
                State::Skip(len) => {
                    let now = len.min(src.len() as u64);
                    src.advance(now as usize);
                    if now < len {
                        self.state = State::Skip(len - now);
                        return Ok(None);
                    }
                    self.enter(State::Header);
                }
                State::Resync => match find_header_name(src) {
                    Some(at) => {
                        src.advance(at);
                        self.enter(State::Header);
                    }
                    None => {
                        // The name may be cut in two by the end of the buffer.
                        src.advance(src.len().saturating_sub(CONTENT_LENGTH.len() - 1));
                        return Ok(None);
                    }
                },
            }
        }
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> io::Result<Option<Frame>> {
        match self.decode(src)? {
            Some(frame) => Ok(Some(frame)),
            None => {
                if !src.is_empty() {
                    tracing::warn!(bytes = src.len(), "input ended inside a message");
                    src.clear();
                }
                Ok(None)
            }
        }
    }
}

/// End of the header block: (length of the header lines, offset of the body). Lines may end in LF only.
fn header_end(src: &[u8], from: usize) -> Option<(usize, usize)> {
    // A block may also be empty: a stray line end before the next message.
    if let Some(rest) = src.strip_prefix(b"\r\n") {
        return Some((0, src.len() - rest.len()));
    }
    if src.first() == Some(&b'\n') {
        return Some((0, 1));
    }
    let mut at = from.saturating_sub(3);
    while let Some(nl) = src.get(at..)?.iter().position(|b| *b == b'\n') {
        let nl = at + nl;
        match (src.get(nl + 1), src.get(nl + 2)) {
            (Some(b'\n'), _) => return Some((nl + 1, nl + 2)),
            (Some(b'\r'), Some(b'\n')) => return Some((nl + 1, nl + 3)),
            _ => at = nl + 1,
        }
    }
    None
}

/// The value of `Content-Length` in a header block; `None` when a line is no header or the value no number.
fn content_length(head: &[u8]) -> Option<u64> {
    let head = std::str::from_utf8(head).ok()?;
    let mut length = None;
    for line in head.lines() {
        let (name, value) = line.split_once(':')?;
        let name = name.trim();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return None;
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse().ok()?);
        }
    }
    length
}

fn find_header_name(src: &[u8]) -> Option<usize> {
    src.windows(CONTENT_LENGTH.len())
        .position(|w| w.eq_ignore_ascii_case(CONTENT_LENGTH))
}

/// Checks one body. `None`: an error reply of the client to no
/// request in particular; answering it with an error could go on forever.
fn classify(body: &[u8]) -> Option<Frame> {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(e) => return Some(Fault::Json(e.to_string()).into_frame(Value::Null)),
    };
    let Value::Object(mut message) = value else {
        let fault = Fault::Shape("a message is one JSON object, batches are not part of LSP");
        return Some(fault.into_frame(Value::Null));
    };
    let id = match message.get("id") {
        Some(Value::String(s)) => Value::String(s.clone()),
        Some(Value::Number(n)) if n.as_i64().is_some() => Value::Number(n.clone()),
        _ => Value::Null,
    };
    if id.is_null() && message.contains_key("error") && !message.contains_key("method") {
        tracing::warn!(error = %message["error"], "the client reports an error");
        return None;
    }
    Some(match normalise(&mut message) {
        Ok(()) => Frame::Message(Value::Object(message)),
        Err(fault) => fault.into_frame(id),
    })
}

/// Brings a message into the one form tower-lsp reads as it is meant.
///
/// - A missing `jsonrpc` member is added; any value but `"2.0"` is refused.
/// - `params: null` is removed: tower-lsp refuses it for `shutdown`, some clients send it.
/// - A response keeps only `id` and one of `result`, `error`; unknown members of the error go.
fn normalise(message: &mut Map<String, Value>) -> Result<(), Fault> {
    match message.get("jsonrpc") {
        None => {
            message.insert("jsonrpc".into(), "2.0".into());
        }
        Some(Value::String(v)) if v == "2.0" => {}
        Some(_) => return Err(Fault::Shape("`jsonrpc` must be \"2.0\"")),
    }
    match message.get("id") {
        None | Some(Value::String(_)) => {}
        Some(Value::Null) => {
            // A request that can't be answered by id; a notification is the nearest valid thing.
            message.remove("id");
        }
        Some(Value::Number(n)) if n.as_i64().is_some() => {}
        Some(Value::Number(n)) => match n.as_f64() {
            Some(f) if f.fract() == 0.0 && f.abs() < 9e15 => {
                message.insert("id".into(), (f as i64).into());
            }
            _ => return Err(Fault::Shape("`id` must be an integer or a string")),
        },
        Some(_) => return Err(Fault::Shape("`id` must be an integer or a string")),
    }
    match message.get("method") {
        Some(Value::String(method)) => {
            let takes_none = matches!(method.as_str(), "shutdown" | "exit");
            let wants_some = method == "initialized";
            match message.get("params") {
                Some(Value::Object(_) | Value::Array(_)) if !takes_none => {}
                None if wants_some => {
                    message.insert("params".into(), json!({}));
                }
                None => {}
                Some(Value::Null | Value::Object(_) | Value::Array(_)) => {
                    message.remove("params");
                }
                Some(_) => return Err(Fault::Shape("`params` must be an object or an array")),
            }
            for extra in ["result", "error"] {
                message.remove(extra);
            }
        }
        Some(_) => return Err(Fault::Shape("`method` must be a string")),
        None => {
            if !message.contains_key("id") {
                return Err(Fault::Shape("neither `method` nor `id`"));
            }
            normalise_response(message);
        }
    }
    Ok(())
}

fn normalise_response(message: &mut Map<String, Value>) {
    let error = message.remove("error").filter(|e| !e.is_null());
    let result = message.remove("result");
    message.retain(|k, _| k == "jsonrpc" || k == "id");
    match error {
        Some(error) => {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
            let text = error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or("unknown error");
            message.insert("error".into(), json!({ "code": code, "message": text }));
        }
        None => {
            message.insert("result".into(), result.unwrap_or(Value::Null));
        }
    }
}

/// One message with its header.
pub(crate) fn encode(body: &[u8]) -> Vec<u8> {
    let mut out = header(body).into_bytes();
    out.extend_from_slice(body);
    out
}

fn header(body: &[u8]) -> String {
    format!("Content-Length: {}\r\n\r\n", body.len())
}

/// Client → server: forwards well-formed frames to `server` until the input ends, and sends an error reply for
/// every other one through `replies`.
pub(crate) async fn pump_in(
    mut stdin: impl AsyncRead + Unpin,
    server: mpsc::Sender<Value>,
    replies: Replies,
    max_message: usize,
) -> io::Result<()> {
    let mut decoder = FrameDecoder::new(max_message);
    let mut src = BytesMut::new();
    // Read in pieces: whoever reads standard input keeps a buffer as large as the largest piece that was asked for.
    let mut piece = vec![0; PIECE];
    let mut open = true;
    while open {
        let len = stdin.read(&mut piece).await?;
        src.extend_from_slice(&piece[..len]);
        open = len > 0;
        while let Some(frame) = match open {
            true => decoder.decode(&mut src)?,
            false => decoder.decode_eof(&mut src)?,
        } {
            match frame {
                Frame::Message(message) => {
                    if server.send(message).await.is_err() {
                        // The session is over.
                        return Ok(());
                    }
                }
                Frame::Malformed { reply } => {
                    tracing::warn!(%reply, "malformed message skipped");
                    replies.send(&reply);
                }
            }
        }
    }
    Ok(())
}

/// How tower-lsp's requests and notifications begin; whatever else it writes is a response.
const CALL: &[u8] = br#"{"jsonrpc":"2.0","method":"#;

/// Server → client: writes what the server asks and tells the client and the [`Replies`], and settles the ledger for every
/// response and reply.
pub(crate) async fn pump_out(
    mut calls: impl Stream<Item = Request> + Unpin,
    mut replies: mpsc::UnboundedReceiver<Vec<u8>>,
    mut stdout: impl AsyncWrite + Unpin,
    ledger: Ledger,
) -> io::Result<()> {
    let (mut calls_open, mut replies_open) = (true, true);
    loop {
        let body = tokio::select! {
            call = calls.next(), if calls_open => match call {
                Some(call) => serde_json::to_vec(&call)?,
                None => {
                    calls_open = false;
                    continue;
                }
            },
            reply = replies.recv(), if replies_open => match reply {
                Some(reply) => reply,
                None => {
                    replies_open = false;
                    continue;
                }
            },
            else => return Ok(()),
        };
        write(&mut stdout, &body, &ledger).await?;
    }
}

async fn write(stdout: &mut (impl AsyncWrite + Unpin), body: &[u8], ledger: &Ledger) -> io::Result<()> {
    stdout.write_all(&encode(body)).await?;
    stdout.flush().await?;
    if !body.starts_with(CALL) {
        ledger.settle();
    }
    Ok(())
}

/// Cuts the server's output into bodies; that output is well-formed by construction.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct OutgoingDecoder {
    body: Option<usize>,
}

#[cfg(test)]
impl Decoder for OutgoingDecoder {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<Bytes>> {
        let len = match self.body {
            Some(len) => len,
            None => {
                let Some((head, body)) = header_end(src, 0) else {
                    return Ok(None);
                };
                let len = content_length(&src[..head])
                    .and_then(|len| usize::try_from(len).ok())
                    .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "bad own header"))?;
                src.advance(body);
                self.body = Some(len);
                len
            }
        };
        if src.len() < len {
            src.reserve(len - src.len());
            return Ok(None);
        }
        self.body = None;
        Ok(Some(src.split_to(len).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `input` fed in pieces of `step` bytes.
    fn decode(input: &[u8], step: usize) -> Vec<Frame> {
        let mut decoder = FrameDecoder::new(1024);
        let mut src = BytesMut::new();
        let mut out = Vec::new();
        for piece in input.chunks(step) {
            src.extend_from_slice(piece);
            while let Some(frame) = decoder.decode(&mut src).unwrap() {
                out.push(frame);
            }
        }
        while let Some(frame) = decoder.decode_eof(&mut src).unwrap() {
            out.push(frame);
        }
        out
    }

    fn summary(input: &[u8]) -> Vec<String> {
        let whole: Vec<_> = decode(input, input.len().max(1)).iter().map(show).collect();
        for step in [1, 2, 3, 7] {
            let pieces: Vec<_> = decode(input, step).iter().map(show).collect();
            assert_eq!(pieces, whole, "fed {step} bytes at a time");
        }
        whole
    }

    fn show(frame: &Frame) -> String {
        match frame {
            Frame::Message(message) => message.to_string(),
            Frame::Malformed { reply } => {
                format!("error {} id {}", reply["error"]["code"], reply["id"])
            }
        }
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    fn framed(body: &str) -> String {
        String::from_utf8(encode(body.as_bytes())).unwrap()
    }

    #[test]
    fn whole_messages_pass_unchanged() {
        let input = framed(PING) + &framed(PING);
        assert_eq!(summary(input.as_bytes()), [PING, PING]);
    }

    #[test]
    fn other_headers_case_and_bare_newlines_are_accepted() {
        let input = format!(
            "content-type: application/x; charset=latin\ncontent-LENGTH:  {} \n\n{PING}",
            PING.len()
        );
        assert_eq!(summary(input.as_bytes()), [PING]);
    }

    #[test]
    fn bad_json_is_answered_and_the_next_message_read() {
        let input = framed("{bad}") + &framed(PING);
        assert_eq!(summary(input.as_bytes()), ["error -32700 id null", PING]);
    }

    #[test]
    fn bad_utf8_is_answered() {
        let mut input = encode(b"\xff\xfe{}");
        input.extend(encode(PING.as_bytes()));
        assert_eq!(summary(&input), ["error -32700 id null", PING]);
    }

    #[test]
    fn garbage_before_a_header_costs_one_error() {
        for garbage in [
            "garbage",
            "garbage\r\n\r\n",
            "a: b\r\n\r\n",
            "Content-Length: x\r\n\r\n{}",
            "{\"a\":1}\n",
        ] {
            let input = garbage.to_owned() + &framed(PING);
            assert_eq!(
                summary(input.as_bytes()),
                ["error -32700 id null", PING],
                "{garbage:?}"
            );
        }
    }

    #[test]
    fn an_endless_header_is_cut_off() {
        let input = "x".repeat(3 * MAX_HEADER) + &framed(PING);
        assert_eq!(
            decode(input.as_bytes(), 1000)
                .iter()
                .map(show)
                .collect::<Vec<_>>(),
            ["error -32700 id null", PING]
        );
    }

    #[test]
    fn a_message_over_the_limit_is_skipped_whole() {
        let big = format!("{{\"a\":\"{}\"}}", "y".repeat(2000));
        let input = framed(&big) + &framed(PING);
        assert_eq!(summary(input.as_bytes()), ["error -32700 id null", PING]);
    }

    #[test]
    fn a_length_that_overflows_is_an_error() {
        let input = format!("Content-Length: 99999999999999999999999\r\n\r\n{}", framed(PING));
        assert_eq!(summary(input.as_bytes()), ["error -32700 id null", PING]);
    }

    #[test]
    fn a_length_too_short_loses_only_that_message() {
        let input = format!("Content-Length: 5\r\n\r\n{PING}{}", framed(PING));
        assert_eq!(
            summary(input.as_bytes()),
            ["error -32700 id null", "error -32700 id null", PING]
        );
    }

    #[test]
    fn json_that_is_no_message_is_an_invalid_request() {
        for (body, id) in [
            ("[]", "null"),
            ("7", "null"),
            ("{}", "null"),
            (r#"{"jsonrpc":"1.0","id":4,"method":"x"}"#, "4"),
            (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, "\"a\""),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, "null"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"x","params":3}"#, "2"),
        ] {
            let input = framed(body) + &framed(PING);
            assert_eq!(
                summary(input.as_bytes()),
                [format!("error -32600 id {id}"), PING.into()],
                "{body}"
            );
        }
    }

    #[test]
    fn what_clients_get_slightly_wrong_is_put_right() {
        for (body, want) in [
            (
                r#"{"id":1,"method":"shutdown","params":null}"#,
                r#"{"id":1,"method":"shutdown","jsonrpc":"2.0"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"shutdown","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"shutdown"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"initialized"}"#,
                r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.0,"method":"x"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m","stack":"s"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
            ),
        ] {
            let got = summary(framed(body).as_bytes());
            let got: Vec<Value> = got.iter().map(|s| serde_json::from_str(s).unwrap()).collect();
            assert_eq!(got, [serde_json::from_str::<Value>(want).unwrap()], "{body}");
        }
    }

    #[test]
    fn an_error_without_id_is_not_answered() {
        let input =
            framed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#) + &framed(PING);
        assert_eq!(summary(input.as_bytes()), [PING]);
    }

    #[test]
    fn input_ending_inside_a_message_is_no_error() {
        assert_eq!(summary(b"Content-Length: 100\r\n\r\n{\"a\""), [] as [&str; 0]);
        assert_eq!(summary(b"Content-Len"), [] as [&str; 0]);
    }

    #[tokio::test]
    async fn calls_and_replies_are_written_whole_and_replies_are_settled() {
        const COUNT: usize = 20;
        let ledger = Ledger::default();
        let (replies, replies_rx) = Replies::new(ledger.clone());
        // Smaller than a frame.
        let (stdout, mut client) = tokio::io::duplex(16);
        let call = Request::build("ping").id(1).finish();
        let calls = futures::stream::iter(vec![call.clone(); COUNT]);
        let pump = tokio::spawn(pump_out(calls, replies_rx, stdout, ledger.clone()));
        (0..COUNT).for_each(|_| replies.send(&json!({})));
        drop(replies);
        let mut seen = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut client, &mut seen)
            .await
            .unwrap();
        pump.await.unwrap().unwrap();
        ledger.settled().await;
        let seen = String::from_utf8(seen).unwrap();
        let call = framed(&call.to_string());
        assert_eq!(seen.matches(&call).count(), COUNT);
        assert_eq!(seen.matches(&framed("{}")).count(), COUNT);
        assert_eq!(seen.len(), COUNT * (call.len() + framed("{}").len()));
    }

    #[test]
    fn tower_lsp_writes_calls_the_way_the_ledger_expects() {
        let call = tower_lsp::jsonrpc::Request::build("m")
            .params(json!({}))
            .id(1)
            .finish();
        assert!(call.to_string().as_bytes().starts_with(CALL));
        let response = tower_lsp::jsonrpc::Response::from_ok(1.into(), json!({}));
        assert!(!serde_json::to_vec(&response).unwrap().starts_with(CALL));
    }
}
