//! A client that shows every byte of an answer.
#![allow(dead_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use mock_model::MockModel;
use serde_json::{Value, json};

/// An answer as it came.
#[derive(Debug)]
pub struct Came {
    pub status: u16,
    pub head: String,
    /// The body, without the marks of its chunks.
    pub body: String,
    /// How the connection ended.
    pub end: End,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum End {
    /// The body is whole.
    Whole,
    /// The connection was closed within the body or before the head.
    Closed,
    /// The connection was reset.
    Reset,
}

/// A connection on which a request was sent.
pub fn ask(mock: &MockModel, path: &str, headers: &[(&str, &str)], body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(mock.address()).unwrap();
    let body = body.to_string();
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: mock\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    stream
}

/// Reads an answer to its end.
pub fn read(mut stream: TcpStream) -> Came {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let reset = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break false,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break true,
            Err(error) => panic!("{error}"),
        }
    };
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = match split {
        Some(place) => bytes.split_at(place + 4),
        None => (&bytes[..], &[][..]),
    };
    let head = String::from_utf8(head.to_vec()).unwrap();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map(|length| length.parse::<usize>().unwrap());
    let (body, whole) = match length {
        Some(length) => (body.to_vec(), body.len() == length),
        None => dechunked(body),
    };
    Came {
        status,
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
        end: match (reset, whole && status != 0) {
            (true, _) => End::Reset,
            (false, true) => End::Whole,
            (false, false) => End::Closed,
        },
    }
}

fn dechunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, true);
        }
        let here = size.min(bytes.len());
        body.extend_from_slice(&bytes[..here]);
        bytes = bytes.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

/// A request to Anthropic's API.
pub fn anthropic(mock: &MockModel, body: &Value) -> Came {
    read(ask(
        mock,
        "/v1/messages",
        &[("anthropic-version", "2023-06-01")],
        body,
    ))
}

/// A request to OpenAI's chat API.
pub fn chat(mock: &MockModel, body: &Value) -> Came {
    read(ask(mock, "/v1/chat/completions", &[], body))
}

/// A message of a user to Anthropic's API.
pub fn hello(stream: bool) -> Value {
    json!({
        "model": "m", "max_tokens": 100, "stream": stream,
        "messages": [{"role": "user", "content": "Hello."}],
    })
}

/// A message of a user to OpenAI's chat API.
pub fn hello_chat(stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "Hello."}],
    })
}
