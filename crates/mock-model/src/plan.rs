//! How an answer is sent, step by step: decided here, done by the server.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::api::{self, Event};
use crate::asked::{Api, Asked};
use crate::choose::Chosen;
use crate::script::{Cut, Fault, Place};

/// An answer, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// How long nothing comes, not even the head.
    pub first: Duration,
    /// What comes then.
    pub head: Head,
    /// What the body is made of.
    pub steps: Vec<Step>,
}

/// What comes first.
#[derive(Debug, Clone)]
pub(crate) enum Head {
    /// A status and headers.
    Answer {
        status: u16,
        content_type: &'static str,
        retry_after: Option<String>,
        /// The length of the body, if it is announced.
        length: Option<usize>,
    },
    /// Nothing, ever.
    Never,
    /// A reset of the connection.
    Reset,
}

/// A step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Wait(Duration),
    Send(Bytes),
    /// Nothing more comes, and the connection stays open.
    Hang,
    /// The connection is closed without the body's end.
    Abort,
    /// The connection is reset.
    Reset,
}

/// A whole JSON answer.
pub(crate) fn json(status: u16, body: &Value) -> Plan {
    whole(status, None, body.to_string().into())
}

/// An error in the API's shape.
pub(crate) fn error(api: Api, status: u16, message: &str) -> Plan {
    json(status, &api::error(api, status, None, message))
}

/// The answer that was chosen, with what goes wrong.
pub(crate) fn answer(asked: &Asked, chosen: &Chosen) -> Plan {
    let mut plan = match &chosen.fault {
        Some(Fault::Status {
            code,
            retry_after,
            message,
            body,
        }) => {
            let message = message
                .clone()
                .unwrap_or_else(|| format!("mock-model: status {code}"));
            let body = body
                .clone()
                .unwrap_or_else(|| api::error(asked.api, *code, None, &message).to_string());
            whole(*code, retry_after.clone(), body.into())
        }
        Some(Fault::Reset) => without_body(Head::Reset),
        Some(Fault::Hang { after: None }) => without_body(Head::Never),
        fault => {
            // Without `alt=sse`, Gemini streams the elements of one array.
            let sse = asked.stream && (asked.api != Api::Gemini || !asked.headers.contains_key(":array"));
            if sse {
                stream(asked, chosen, fault.as_ref())
            } else {
                unstreamed(asked, chosen, fault.as_ref())
            }
        }
    };
    plan.first = Duration::from_millis(chosen.answer.first_ms);
    plan
}

fn stream(asked: &Asked, chosen: &Chosen, fault: Option<&Fault>) -> Plan {
    let mut events = api::events(asked, &chosen.reply);
    // What is put among the events, where, and whether the others still come.
    let inserted = match fault {
        Some(Fault::Garbage { after }) => Some((
            *after,
            Bytes::from_static(b"data: {\"this is\": no JSON,,\n\n"),
            true,
        )),
        Some(Fault::Malformed { after }) => Some((
            *after,
            Bytes::from_static(b"\xff\xfe\x00<html>502 Bad Gateway</html>\r\n: \xc3\x28\n\n"),
            true,
        )),
        Some(Fault::Error { kind, message, after }) => {
            let name = events.first().and_then(|event| event.name.as_ref()).is_some();
            let mut event = api::error_event(asked.api, kind, message);
            if !name {
                event.name = None;
            }
            Some((*after, event.bytes(), false))
        }
        _ => None,
    };
    let delay = Duration::from_millis(chosen.answer.delay_ms);
    let mut steps = Vec::new();
    let mut insert_at = None;
    if let Some((place, bytes, goes_on)) = inserted {
        let at = event_at(&events, place);
        if !goes_on {
            events.truncate(at);
        }
        insert_at = Some((at, bytes));
    }
    for (index, event) in events.iter().enumerate() {
        if let Some((at, bytes)) = &insert_at
            && *at == index
        {
            steps.push(Step::Send(bytes.clone()));
        }
        if event.piece && !delay.is_zero() {
            steps.push(Step::Wait(delay));
        }
        steps.push(Step::Send(event.bytes()));
    }
    if let Some((at, bytes)) = insert_at
        && at >= events.len()
    {
        steps.push(Step::Send(bytes));
    }
    end_early(&mut steps, fault);
    Plan {
        first: Duration::ZERO,
        head: Head::Answer {
            status: 200,
            content_type: "text/event-stream; charset=utf-8",
            retry_after: None,
            length: None,
        },
        steps,
    }
}

fn unstreamed(asked: &Asked, chosen: &Chosen, fault: Option<&Fault>) -> Plan {
    let body = if asked.stream {
        let all: Vec<Value> = api::events(asked, &chosen.reply)
            .iter()
            .filter_map(|event| serde_json::from_str(&event.data).ok())
            .collect();
        Value::Array(all)
    } else {
        api::whole(asked, &chosen.reply)
    };
    let mut plan = match fault {
        Some(Fault::Garbage { .. }) => whole(200, None, Bytes::from_static(b"{\"this is\": no JSON,,")),
        Some(Fault::Malformed { .. }) => whole(
            200,
            None,
            Bytes::from_static(b"\xff\xfe\x00<html>502 Bad Gateway</html>"),
        ),
        Some(Fault::Error { kind, message, .. }) => {
            json(500, &api::error(asked.api, 500, Some(kind), message))
        }
        _ => json(200, &body),
    };
    if end_early(&mut plan.steps, fault)
        && let Head::Answer { length, .. } = &mut plan.head
    {
        *length = None;
    }
    let delay = Duration::from_millis(chosen.answer.delay_ms);
    if !delay.is_zero() {
        plan.steps.insert(0, Step::Wait(delay));
    }
    plan
}

fn whole(status: u16, retry_after: Option<String>, body: Bytes) -> Plan {
    Plan {
        first: Duration::ZERO,
        head: Head::Answer {
            status,
            content_type: "application/json",
            retry_after,
            length: Some(body.len()),
        },
        steps: vec![Step::Send(body)],
    }
}

fn without_body(head: Head) -> Plan {
    Plan {
        first: Duration::ZERO,
        head,
        steps: Vec::new(),
    }
}

/// The index of the event that comes first behind `place`.
fn event_at(events: &[Event], place: Place) -> usize {
    match place {
        Place::Events(count) => count.min(events.len()),
        Place::Bytes(count) => {
            let mut sum = 0;
            events
                .iter()
                .position(|event| {
                    sum += event.bytes().len();
                    sum > count
                })
                .unwrap_or(events.len())
        }
    }
}

/// Ends the steps where the fault says. Whether the body is shorter than announced, and yet ends as it should.
fn end_early(steps: &mut Vec<Step>, fault: Option<&Fault>) -> bool {
    let (place, last) = match fault {
        Some(Fault::Cut { how, after }) => (
            *after,
            match how {
                Cut::Abrupt => Some(Step::Abort),
                Cut::Clean => None,
                Cut::Reset => Some(Step::Reset),
            },
        ),
        Some(Fault::Hang { after: Some(after) }) => (*after, Some(Step::Hang)),
        _ => return false,
    };
    let mut events = 0;
    let mut bytes = 0;
    let mut cut = None;
    for (index, step) in steps.iter().enumerate() {
        let Step::Send(data) = step else { continue };
        let keep = match place {
            Place::Events(count) if events >= count => Some(0),
            Place::Bytes(count) if bytes + data.len() > count => Some(count - bytes),
            _ => None,
        };
        if let Some(keep) = keep {
            cut = Some((index, data.slice(..keep)));
            break;
        }
        events += 1;
        bytes += data.len();
    }
    if let Some((index, kept)) = cut {
        steps.truncate(index);
        if !kept.is_empty() {
            steps.push(Step::Send(kept));
        }
    }
    let clean = last.is_none();
    steps.extend(last);
    clean
}
