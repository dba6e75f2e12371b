//! Calls of a model over HTTP: streams, time limits, and trying again.
//!
//! IMPORTANT: this is the only place that tries a call again because of the connection or the service. The runtime does
//! not; a program's `retry:` is about sessions and comes on top. What a service says about when to come back is
//! honoured here up to [`Limits::longest_wait`] and passed on with the failure beyond that.
//!
//! A call that broke down in mid-answer is made anew from the start. That is safe since an answer is acted upon only
//! when it is whole; its text may have been shown twice as progress.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use eventsource_stream::{EventStreamError, Eventsource as _};
use futures::{Stream, StreamExt as _};
use prose_model::backend::Waits;
use prose_model::{ErrorKind, Failure};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::anthropic::VERSION;
use super::bill::Bill;
use super::wire::{Ask, Broken, Flow, Form, Turn, Wire};
use crate::content::failure;
use crate::http;
use crate::redact::{Redactor, Secret};

/// Most that is read of an error's body, in bytes.
const ERROR_LIMIT: usize = 64 * 1024;
/// Most that is read of a stream, in bytes: what is longer is no answer but a fault.
const STREAM_LIMIT: usize = 64 * 1024 * 1024;

/// The longest line of a stream, in bytes: the reader goes through a line anew with every piece of it.
const LINE_LIMIT: usize = 2 * 1024 * 1024;

/// How long things may take, and how often they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the request to the first piece of an answer. Servers that load a model first take long.
    pub first_token: Duration,
    /// Between two signs of life in an answer.
    pub idle: Duration,
    /// For a whole judgement, tries included; sessions have the runtime's limit.
    pub judgement: Duration,
    /// How often a call is tried in all when the service can't be reached or turns it away for now.
    pub tries: u32,
    /// The wait before the second try; it doubles up to 16 times.
    pub backoff: Duration,
    /// A service that wants a longer wait than this is not waited for.
    pub longest_wait: Duration,
    /// How many rounds of tool calls a session may have.
    pub rounds: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            first_token: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            judgement: Duration::from_secs(600),
            tries: 5,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
            rounds: 100,
        }
    }
}

impl Limits {
    /// With what configuration says.
    #[must_use]
    pub(crate) fn with(self, waits: &Waits) -> Limits {
        Limits {
            connect: waits.connect.unwrap_or(self.connect),
            first_token: waits.first_token.unwrap_or(self.first_token),
            idle: waits.idle.unwrap_or(self.idle),
            ..self
        }
    }
}

/// How often a call whose answer broke off is tried in all: it may have cost something each time.
const TRIES_BROKEN: u32 = 3;
/// The same for one that was silent: each costs a long wait.
const TRIES_SILENT: u32 = 2;

/// A service, ready to be called.
pub(crate) struct Client {
    pub(crate) wire: Wire,
    /// The backend's name, for messages.
    pub(crate) name: String,
    /// Whether it is the service whose protocol it speaks, rather than one that is compatible.
    pub(crate) own: bool,
    pub(crate) limits: Limits,
    base: String,
    key: Option<Secret>,
    /// The variable that holds the key, or would.
    key_name: String,
    http: reqwest::Client,
    pub(crate) redactor: Redactor,
    /// Cleared when the server turned out to know no schemas.
    schemas: AtomicBool,
}

/// What a [`Client`] is made from.
pub(crate) struct Service {
    pub(crate) wire: Wire,
    pub(crate) name: String,
    pub(crate) own: bool,
    pub(crate) base: String,
    pub(crate) key: Option<Secret>,
    pub(crate) key_name: String,
    pub(crate) limits: Limits,
    /// Hides what no message may hold, the key above all.
    pub(crate) redactor: Redactor,
}

/// Why a call was in vain.
struct Fault {
    kind: ErrorKind,
    message: String,
    /// How often such a call is tried in all.
    tries: u32,
    /// When to come back, if the service said so.
    after: Option<Duration>,
    /// Whether the service does not like what it was asked.
    rejected: bool,
}

impl Fault {
    fn new(kind: ErrorKind, message: impl Into<String>, tries: u32) -> Fault {
        Fault {
            kind,
            message: message.into(),
            tries,
            after: None,
            rejected: false,
        }
    }
}

impl Client {
    /// Sets a client up; nothing is connected. The reason when it can't be.
    pub(crate) fn new(service: Service) -> Result<Client, String> {
        let Service {
            wire,
            name,
            own,
            base,
            key,
            key_name,
            limits,
            redactor,
        } = service;
        let address =
            reqwest::Url::parse(&base).map_err(|error| format!("its base_url is no address: {error}"))?;
        if !matches!(address.scheme(), "http" | "https") || !address.has_host() {
            return Err("its base_url is no http or https address".to_owned());
        }
        if key.is_some() && !keeps_secrets(&base) {
            return Err(unsafe_address(&key_name));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if wire == Wire::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        }
        if let Some(key) = &key {
            let (header, value) = match wire {
                Wire::Anthropic => ("x-api-key", key.expose().trim().to_owned()),
                Wire::OpenAi => ("authorization", format!("Bearer {}", key.expose().trim())),
            };
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| format!("the key in {key_name} holds characters that no key has"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let mut builder = http::builder()
            .default_headers(headers)
            .connect_timeout(limits.connect)
            // IMPORTANT: the key goes with a redirect, wherever it leads.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&address) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| error.without_url().to_string())?;
        Ok(Client {
            wire,
            name,
            own,
            limits,
            base: base.trim_end_matches('/').to_owned(),
            key,
            key_name,
            http,
            redactor,
            schemas: AtomicBool::new(true),
        })
    }

    /// Asks the model once, and again where that may help. What all tries used is put on the bill as it comes.
    pub(crate) async fn turn(
        &self,
        ask: &Ask<'_>,
        bill: &Bill,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Turn, Failure> {
        let mut ask = Ask {
            form: ask.form.map(|form| self.form(form)),
            ..*ask
        };
        let mut attempt = 1;
        loop {
            let fault = match self.once(&ask, bill, on_text).await {
                Ok(turn) => {
                    if self.wire == Wire::OpenAi && ask.form.is_some_and(|form| !form.forced) {
                        self.schemas.store(false, Ordering::Relaxed);
                    }
                    return Ok(turn);
                }
                Err(mut fault) => {
                    self.redactor.redact_in(&mut fault.message);
                    fault
                }
            };
            if fault.rejected && self.wire == Wire::OpenAi && ask.form.is_some_and(|form| form.forced) {
                // Many servers don't know schemas, and say so in many ways. The text asks for the form as well.
                ask.form = ask.form.map(|form| Form {
                    forced: false,
                    ..form
                });
                continue;
            }
            let wait = self.backoff(attempt).max(fault.after.unwrap_or_default());
            if attempt >= fault.tries || wait > self.limits.longest_wait {
                return Err(self.failure(fault, attempt));
            }
            tracing::debug!(
                backend = self.name,
                attempt,
                wait_ms = wait.as_millis() as u64,
                cause = fault.message,
                "a call is tried again"
            );
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    fn form<'a>(&self, form: Form<'a>) -> Form<'a> {
        Form {
            forced: form.forced && self.schemas.load(Ordering::Relaxed),
            ..form
        }
    }

    /// Half a second, one, two …, a fifth more or less.
    fn backoff(&self, attempt: u32) -> Duration {
        let jitter = (RandomState::new().hash_one(attempt) % 1000) as f64 / 1000.0;
        let factor = 1u32 << (attempt - 1).min(4);
        (self.limits.backoff * factor).mul_f64(0.8 + 0.4 * jitter)
    }

    fn failure(&self, fault: Fault, attempts: u32) -> Failure {
        let tried = match attempts {
            1 => String::new(),
            _ => format!(" (tried {attempts} times)"),
        };
        let mut message = format!("{}: {}{tried}", self.name, fault.message);
        self.redactor.redact_in(&mut message);
        Failure {
            retry_after_ms: fault
                .after
                .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            ..failure(fault.kind, message)
        }
    }

    async fn once(
        &self,
        ask: &Ask<'_>,
        bill: &Bill,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Turn, Fault> {
        let body = self.wire.body(ask, self.own).to_string();
        let first = Instant::now() + self.limits.first_token;
        let request = self
            .http
            .post(format!("{}{}", self.base, self.wire.path()))
            .body(body);
        let response = timeout_at(first, request.send())
            .await
            .map_err(|_| self.silent())?
            .map_err(|error| self.unreachable(error))?;
        if !response.status().is_success() {
            return Err(self.refused(ask.model, response, first).await);
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("application/json") || kind.starts_with("text/html")) {
            let said = self.said(response, first).await;
            return Err(Fault::new(
                ErrorKind::Backend,
                format!("the answer is no event stream; is the base_url right?{said}"),
                1,
            ));
        }
        let mut reader = self.wire.reader(ask);
        let read = self
            .read(&mut reader, response.bytes_stream(), first, bill, on_text)
            .await;
        bill.current(reader.tokens());
        bill.settle();
        read.map(|()| reader.turn())
    }

    /// Reads a stream up to the mark of its end.
    async fn read(
        &self,
        reader: &mut super::wire::Reader,
        bytes: impl Stream<Item = reqwest::Result<impl AsRef<[u8]>>>,
        first: Instant,
        bill: &Bill,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Fault> {
        let broken = |why: &str| {
            Fault::new(
                ErrorKind::Backend,
                format!("the answer broke off: {why}"),
                TRIES_BROKEN,
            )
        };
        // Comments of the stream are a sign of life too, which the events don't show.
        let pulse = Mutex::new(Pulse::new(Instant::now()));
        let pulse = || pulse.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = bytes
            .inspect(|piece| {
                let piece = piece.as_ref().map_or([].as_slice(), AsRef::as_ref);
                pulse().beat(Instant::now(), piece);
            })
            .take_while(|_| std::future::ready(!pulse().is_too_long));
        let events = bytes.eventsource();
        tokio::pin!(events);
        let mut begun = false;
        loop {
            let limit = if begun {
                pulse().last + self.limits.idle
            } else {
                first
            };
            let event = match timeout_at(limit, events.next()).await {
                // What came meanwhile was no whole event.
                Err(_) if begun && pulse().last + self.limits.idle > limit => continue,
                Err(_) if begun => {
                    return Err(Fault::new(
                        ErrorKind::Timeout,
                        format!(
                            "the answer stopped coming for {} s",
                            self.limits.idle.as_secs_f64()
                        ),
                        TRIES_SILENT,
                    ));
                }
                Err(_) => return Err(self.silent()),
                Ok(None) if pulse().is_too_long => {
                    return Err(Fault::new(
                        ErrorKind::Backend,
                        "the answer is too long to be one",
                        1,
                    ));
                }
                Ok(None) if reader.may_end() => return Ok(()),
                Ok(None) => return Err(broken("the stream ended before the answer did")),
                Ok(Some(Err(EventStreamError::Transport(error)))) => return Err(broken(&cause(error))),
                Ok(Some(Err(_))) => return Err(broken("it is no event stream")),
                Ok(Some(Ok(event))) => event,
            };
            let flow = reader.event(&event.data, on_text);
            bill.current(reader.tokens());
            match flow {
                Ok(Flow::Done) => return Ok(()),
                Ok(Flow::Content) => begun = true,
                Ok(Flow::Life) => {}
                Err(Broken::Garbage(why)) => {
                    return Err(broken(&format!("what came is not the protocol: {why}")));
                }
                Err(Broken::Reported { kind, message }) => return Err(self.reported(&kind, &message)),
            }
        }
    }

    fn silent(&self) -> Fault {
        Fault::new(
            ErrorKind::Timeout,
            format!("no answer came for {} s", self.limits.first_token.as_secs_f64()),
            TRIES_SILENT,
        )
    }

    fn unreachable(&self, error: reqwest::Error) -> Fault {
        let connect = error.is_connect();
        let kind = if error.is_timeout() {
            ErrorKind::Timeout
        } else {
            ErrorKind::Backend
        };
        let cause = cause(error);
        let address = shown(&self.base);
        let message = match (connect, self.own) {
            (true, true) => format!("can't connect to {address}: {cause}; is there a network?"),
            (true, false) => {
                format!(
                    "can't connect to {address}: {cause}; is the server running, and is its base_url right?"
                )
            }
            (false, _) => format!("the connection to {address} broke: {cause}"),
        };
        Fault::new(kind, message, self.limits.tries)
    }

    /// An error in mid-stream.
    fn reported(&self, kind: &str, message: &str) -> Fault {
        let tries = match kind {
            "overloaded_error"
            | "api_error"
            | "rate_limit_error"
            | "timeout_error"
            | "server_error"
            | "rate_limit_exceeded"
            | "408"
            | "429"
            | "500"
            | "502"
            | "503"
            | "504"
            | "529" => self.limits.tries,
            _ => 1,
        };
        let named = if kind.is_empty() {
            String::new()
        } else {
            format!(" ({kind})")
        };
        Fault::new(
            ErrorKind::Backend,
            format!(
                "the service reports an error{named}: {}",
                self.redactor.cut(message, brief)
            ),
            tries,
        )
    }

    /// A status that is no success.
    async fn refused(&self, model: &str, response: reqwest::Response, first: Instant) -> Fault {
        let status = response.status().as_u16();
        let after = retry_after(response.headers());
        let should = response
            .headers()
            .get("x-should-retry")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<bool>().ok());
        let said = self.said(response, first).await;
        // A quota that is used up does not come back in a minute, though it has the status of a limit on the rate.
        let spent = said.contains("insufficient_quota") || said.contains("credit balance");
        let again = matches!(status, 408 | 409 | 429 | 500..) && !spent && status != 501;
        let help = match status {
            401 | 403 if self.key.is_some() => format!("; check the key in {}", self.key_name),
            401 | 403 => format!(
                "; put a key into {} (in the environment or .prose/.env)",
                self.key_name
            ),
            404 => format!(
                "; is there a model `{model}`? `[models.{}]` in prose.toml says which model a name means",
                self.name
            ),
            300..=399 => "; the base_url leads elsewhere, name that place itself".to_owned(),
            429 if spent => "; the account has nothing left to spend".to_owned(),
            _ => String::new(),
        };
        Fault {
            kind: ErrorKind::Backend,
            message: format!("HTTP {status}{said}{help}"),
            tries: if should.unwrap_or(again) {
                self.limits.tries
            } else {
                1
            },
            after,
            rejected: matches!(status, 400 | 404 | 415 | 422 | 501),
        }
    }

    /// The ids of the models that the server has.
    pub(crate) async fn served(&self) -> Result<Vec<String>, Failure> {
        let first = Instant::now() + self.limits.first_token;
        let get = self.http.get(format!("{}/models", self.base)).send();
        let result = async {
            let response = timeout_at(first, get)
                .await
                .map_err(|_| self.silent())?
                .map_err(|error| self.unreachable(error))?;
            if !response.status().is_success() {
                return Err(self.refused("", response, first).await);
            }
            let text = self.body(response, 4 * 1024 * 1024, first).await;
            let list: Value = serde_json::from_str(&text)
                .map_err(|_| Fault::new(ErrorKind::Backend, "the list of its models is no JSON", 1))?;
            let ids = list["data"].as_array().into_iter().flatten();
            Ok(ids
                .filter_map(|model| model["id"].as_str().map(str::to_owned))
                .collect())
        };
        result.await.map_err(|fault| self.failure(fault, 1))
    }

    /// What a body says about an error, for a message: `: …`, or nothing.
    async fn said(&self, response: reqwest::Response, limit: Instant) -> String {
        let text = self.body(response, ERROR_LIMIT, limit).await;
        let said = match serde_json::from_str::<Value>(&text) {
            Ok(json) => words(&json),
            // A page for people says nothing in its first line.
            Err(_) if text.trim_start().starts_with('<') => String::new(),
            Err(_) => text,
        };
        let said = self.redactor.cut(&said, brief);
        if said.is_empty() {
            said
        } else {
            format!(": {said}")
        }
    }

    /// The beginning of a body, without secrets; what goes wrong on the way is no news here.
    async fn body(&self, response: reqwest::Response, most: usize, limit: Instant) -> String {
        let (mut text, mut read) = (String::new(), self.redactor.bytes());
        let mut stream = response.bytes_stream();
        let soon = (Instant::now() + Duration::from_secs(10)).min(limit);
        let mut left = most;
        while let Ok(Some(Ok(piece))) = timeout_at(soon, stream.next()).await {
            text.push_str(&read.push(&piece[..piece.len().min(left)]));
            if piece.len() >= left {
                return text;
            }
            left -= piece.len();
        }
        text + &read.finish()
    }
}

/// What the bytes of a stream say by themselves.
struct Pulse {
    /// When the last ones came.
    last: Instant,
    size: usize,
    /// How long the line is that has not ended.
    line: usize,
    is_too_long: bool,
}

impl Pulse {
    fn new(now: Instant) -> Pulse {
        Pulse {
            last: now,
            size: 0,
            line: 0,
            is_too_long: false,
        }
    }

    fn beat(&mut self, now: Instant, bytes: &[u8]) {
        self.last = now;
        self.size += bytes.len();
        self.is_too_long |= self.size > STREAM_LIMIT;
        for (at, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            self.line = part.len() + if at == 0 { self.line } else { 0 };
            self.is_too_long |= self.line > LINE_LIMIT;
        }
    }
}

/// Why a key is not sent there.
pub(crate) fn unsafe_address(key_name: &str) -> String {
    format!(
        "its base_url is an http address of another machine, on the way to which anybody could read the key in {key_name}; \
         name an https address, or leave `api_key_env` out if the server needs no key"
    )
}

/// Whether an address is one that a key may be sent to: nobody on the way can read it.
pub(crate) fn keeps_secrets(address: &str) -> bool {
    reqwest::Url::parse(address).is_ok_and(|address| address.scheme() == "https" || is_loopback(&address))
}

fn is_loopback(address: &reqwest::Url) -> bool {
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// An address without what may be secret in it.
fn shown(base: &str) -> String {
    match reqwest::Url::parse(base) {
        Ok(address) => address.origin().ascii_serialization(),
        Err(_) => "the service".to_owned(),
    }
}

/// The innermost cause, without the address.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Services have several shapes for errors.
fn words(json: &Value) -> String {
    let error = match &json["error"] {
        Value::Null => json,
        error => error,
    };
    let message = [
        &error["message"],
        &error["detail"],
        error,
        &json["message"],
        &json["detail"],
    ]
    .into_iter()
    .find_map(Value::as_str)
    .unwrap_or_default();
    let kind = [&error["code"], &error["type"]]
        .into_iter()
        .find_map(Value::as_str);
    match kind {
        Some(kind) if !message.contains(kind) => format!("{message} ({kind})"),
        _ => message.to_owned(),
    }
}

/// One line of at most 300 characters.
fn brief(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 300 {
        line
    } else {
        line.chars().take(299).chain(['…']).collect()
    }
}

/// When to come back: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let after = text("retry-after")?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
    let wait = then.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).ok()?);
        retry_after(&headers)
    }

    #[test]
    fn the_time_to_come_back_has_three_forms() {
        assert_eq!(after("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(after("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(
            after("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        let years = after("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT");
        assert!(years.is_some_and(|wait| wait > Duration::from_secs(86_400)));
        for bad in ["", "soon", "-1", "inf", "NaN", "1e400"] {
            assert_eq!(after("retry-after", bad), None, "{bad}");
        }
    }

    #[test]
    fn a_stream_is_silent_from_its_last_byte_on_and_has_no_endless_line() {
        let begin = Instant::now();
        let mut pulse = Pulse::new(begin);
        let later = begin + Duration::from_secs(9);
        pulse.beat(later, b": a comment\n");
        assert_eq!((pulse.last, pulse.line, pulse.is_too_long), (later, 0, false));
        let half = vec![b'x'; LINE_LIMIT / 2];
        for _ in 0..3 {
            pulse.beat(later, &half);
            pulse.beat(later, b"x\n");
            assert!(!pulse.is_too_long);
        }
        pulse.beat(later, &half);
        pulse.beat(later, b"y");
        assert!(!pulse.is_too_long);
        pulse.beat(later, &half);
        assert!(pulse.is_too_long);
    }

    #[test]
    fn errors_are_read_in_all_their_shapes() {
        let read = |text: &str| words(&serde_json::from_str(text).unwrap_or_default());
        assert_eq!(
            read(r#"{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}"#),
            "Busy (overloaded_error)"
        );
        assert_eq!(
            read(r#"{"error":"model \"x\" not found"}"#),
            "model \"x\" not found"
        );
        assert_eq!(
            read(r#"{"object":"error","message":"too long","code":400}"#),
            "too long"
        );
        assert_eq!(read(r#"{"detail":"Not Found"}"#), "Not Found");
        assert_eq!(read("[]"), "");
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        assert_eq!(shown("https://user:word@host:8080/v1?key=1"), "https://host:8080");
    }
}
