//! Everything that goes wrong between a service and us: what is tried again, what is said, and what is never shown.

use std::time::Duration;

use expect_test::{Expect, expect};
use mock_model::{Answer, Cut, Fault, MockModel, Place, Script};
use prose_agents::api::Limits;
use prose_agents::*;
use prose_model::*;

use crate::harness::*;

async fn mock(answer: Answer) -> MockModel {
    MockModel::start(Script::always(answer)).await.unwrap()
}

fn answer() -> Answer {
    Answer::text("one two three").chunk(4).tokens(10, 3)
}

fn status(code: u16) -> Fault {
    Fault::status(code)
}

fn cut(how: Cut, events: usize) -> Fault {
    Fault::Cut {
        how,
        after: Place::Events(events),
    }
}

fn reported(kind: &str) -> Fault {
    Fault::Error {
        kind: kind.to_owned(),
        message: "Overloaded".to_owned(),
        after: Place::Events(3),
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let faults = [
        status(408),
        status(409),
        status(429),
        status(500),
        status(502),
        status(503),
        status(529),
        Fault::status_retry_after(429, "0"),
        Fault::Reset,
        cut(Cut::Abrupt, 3),
        cut(Cut::Clean, 3),
        cut(Cut::Reset, 3),
        cut(Cut::Clean, 0),
        Fault::Garbage {
            after: Place::Events(3),
        },
        Fault::Malformed {
            after: Place::Events(2),
        },
    ];
    for kind in KINDS {
        for fault in &faults {
            let mock = mock(answer().first(2, fault.clone())).await;
            let (reply, sink) = run(&backend(kind, &mock), "x").await;
            let reply = reply.unwrap_or_else(|failure| panic!("{kind} {fault:?}: {failure:?}"));
            assert_eq!(text(&reply), "one two three", "{kind} {fault:?}");
            // What comes behind bytes that belong to no stream may still be whole.
            let malformed = matches!(fault, Fault::Malformed { .. });
            assert!(
                mock.asked().len() == 3 || malformed,
                "{kind} {fault:?} {}",
                mock.asked().len()
            );
            assert!(sink.text().ends_with("one two three"));
        }
    }
    let mock = mock(answer().first(1, reported("overloaded_error"))).await;
    assert!(run(&backend("anthropic", &mock), "x").await.0.is_ok());
}

#[tokio::test]
async fn what_broken_answers_used_is_counted() {
    let mock = mock(answer().first(2, cut(Cut::Abrupt, 5))).await;
    let reply = run(&backend("anthropic", &mock), "x").await.0.unwrap();
    assert_eq!(reply.usage.input_tokens, 30, "{:?}", reply.usage);
}

#[track_caller]
fn check(failure: &Failure, expected: Expect) {
    assert!(!format!("{failure:?}").contains(KEY), "{failure:?}");
    expected.assert_eq(&failure.message);
}

async fn failure_of(kind: &str, fault: Fault) -> (Failure, usize) {
    let mock = mock(answer().fault(fault)).await;
    let failure = run(&backend(kind, &mock), "x").await.0.unwrap_err();
    (failure, mock.asked().len())
}

#[tokio::test]
async fn what_does_not_pass_is_said_with_how_often_it_was_tried() {
    let (failure, tries) = failure_of("anthropic", status(529)).await;
    assert_eq!((failure.kind, tries), (ErrorKind::Backend, 5));
    check(
        &failure,
        expect!["anthropic: HTTP 529: mock-model: status 529 (overloaded_error) (tried 5 times)"],
    );
    let (failure, tries) = failure_of("openai", status(500)).await;
    assert_eq!(tries, 5);
    check(
        &failure,
        expect!["openai: HTTP 500: mock-model: status 500 (server_error) (tried 5 times)"],
    );
    let (failure, tries) = failure_of("openai", cut(Cut::Clean, 3)).await;
    assert_eq!(tries, 3);
    check(
        &failure,
        expect!["openai: the answer broke off: the stream ended before the answer did (tried 3 times)"],
    );
    let (failure, _) = failure_of("anthropic", cut(Cut::Abrupt, 3)).await;
    check(
        &failure,
        expect!["anthropic: the answer broke off: unexpected EOF during chunk size line (tried 3 times)"],
    );
    let (failure, _) = failure_of(
        "openai",
        Fault::Garbage {
            after: Place::Events(1),
        },
    )
    .await;
    check(
        &failure,
        expect![
            "openai: the answer broke off: what came is not the protocol: expected ident at line 1 column 14 (tried 3 times)"
        ],
    );
    let (failure, tries) = failure_of("openai", Fault::Reset).await;
    assert_eq!(tries, 5);
    assert!(
        failure.message.contains("the connection to http://127.0.0.1:"),
        "{}",
        failure.message
    );
    let (failure, _) = failure_of("anthropic", reported("overloaded_error")).await;
    check(
        &failure,
        expect!["anthropic: the service reports an error (overloaded_error): Overloaded (tried 5 times)"],
    );
}

#[tokio::test]
async fn what_would_fail_again_is_not_tried_again() {
    for (kind, code, expected) in [
        (
            "anthropic",
            400,
            expect!["anthropic: HTTP 400: mock-model: status 400 (invalid_request_error)"],
        ),
        (
            "anthropic",
            401,
            expect![
                "anthropic: HTTP 401: mock-model: status 401 (authentication_error); check the key in TEST_KEY"
            ],
        ),
        (
            "openai",
            401,
            expect!["openai: HTTP 401: mock-model: status 401 (invalid_api_key); check the key in TEST_KEY"],
        ),
        (
            "openai",
            403,
            expect![
                "openai: HTTP 403: mock-model: status 403 (invalid_request_error); check the key in TEST_KEY"
            ],
        ),
        (
            "openai",
            404,
            expect![
                "openai: HTTP 404: mock-model: status 404 (model_not_found); is there a model `model-s`? `[models.openai]` in prose.toml says which model a name means"
            ],
        ),
        (
            "anthropic",
            404,
            expect![
                "anthropic: HTTP 404: mock-model: status 404 (not_found_error); is there a model `model-s`? `[models.anthropic]` in prose.toml says which model a name means"
            ],
        ),
        (
            "anthropic",
            413,
            expect!["anthropic: HTTP 413: mock-model: status 413 (request_too_large)"],
        ),
        (
            "openai",
            302,
            expect![
                "openai: HTTP 302: mock-model: status 302 (server_error); the base_url leads elsewhere, name that place itself"
            ],
        ),
    ] {
        let (failure, tries) = failure_of(kind, status(code)).await;
        assert_eq!((failure.kind, tries), (ErrorKind::Backend, 1), "{kind} {code}");
        check(&failure, expected);
    }
}

#[tokio::test]
async fn a_long_wait_is_left_to_the_program() {
    for kind in KINDS {
        let (failure, tries) = failure_of(kind, Fault::status_retry_after(429, "3600")).await;
        assert_eq!((failure.retry_after_ms, tries), (Some(3_600_000), 1), "{kind}");
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_no_limit_on_the_rate() {
    let fault = Fault::Status {
        code: 429,
        retry_after: None,
        message: None,
        body: Some(r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#.to_owned()),
    };
    let (failure, tries) = failure_of("openai", fault).await;
    assert_eq!(tries, 1);
    check(
        &failure,
        expect![
            "openai: HTTP 429: You exceeded your current quota (insufficient_quota); the account has nothing left to spend"
        ],
    );
}

#[tokio::test]
async fn silence_ends() {
    // Only the limit that is meant to end it is short, so that a slow machine changes nothing.
    let short = Duration::from_millis(300);
    let no_answer = Limits {
        first_token: short,
        ..limits()
    };
    let stopped = Limits {
        idle: short,
        ..limits()
    };
    let hang = |events: Option<usize>| Fault::Hang {
        after: events.map(Place::Events),
    };
    for kind in KINDS {
        for (fault, quick, expected) in [
            (hang(None), no_answer, "no answer came for 0.3 s (tried 2 times)"),
            (
                hang(Some(0)),
                no_answer,
                "no answer came for 0.3 s (tried 2 times)",
            ),
            (
                hang(Some(4)),
                stopped,
                "the answer stopped coming for 0.3 s (tried 2 times)",
            ),
        ] {
            let mock = mock(answer().fault(fault.clone())).await;
            let backend = create(&spec(kind, &mock), &variables(), quick).unwrap();
            let failure = run(&backend, "x").await.0.unwrap_err();
            assert_eq!(failure.kind, ErrorKind::Timeout, "{kind} {fault:?}");
            assert_eq!(failure.message, format!("{kind}: {expected}"), "{fault:?}");
            mock.wait(|counts| counts.open == 0).await;
        }
    }
}

#[tokio::test]
async fn a_judgement_has_a_limit_too() {
    let quick = Limits {
        judgement: Duration::from_millis(100),
        ..limits()
    };
    let mock = mock(answer().fault(Fault::Hang { after: None })).await;
    let backend = create(&spec("openai", &mock), &variables(), quick).unwrap();
    let input = DecodeInput {
        effect: "main/1".into(),
        text: "seven".to_owned(),
        target: DecodeTarget::Number,
        budget: SpendLimit::default(),
        cancel: CancelToken::new(),
    };
    let failure = backend.judge.decode(input).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Timeout);
    check(&failure, expect!["openai: a judgement took longer than 0.1 s"]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let gone = mock(answer()).await;
    let spec = spec("openai", &gone);
    let port = gone.address().port();
    drop(gone);
    let backend = create(&spec, &variables(), limits()).unwrap();
    let failure = run(&backend, "x").await.0.unwrap_err();
    let message = failure.message.replace(&port.to_string(), "PORT");
    assert!(
        message.starts_with("openai: can't connect to http://127.0.0.1:PORT: Connection refused"),
        "{message}"
    );
    assert!(
        message.ends_with("is the server running, and is its base_url right? (tried 5 times)"),
        "{message}"
    );
}

#[tokio::test]
async fn an_error_that_holds_the_key_is_shown_without_it() {
    for kind in KINDS {
        for body in [
            format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#),
            format!("no such key: {KEY}"),
        ] {
            let fault = Fault::Status {
                code: 401,
                retry_after: None,
                message: None,
                body: Some(body),
            };
            let (failure, _) = failure_of(kind, fault).await;
            assert!(!failure.message.contains(KEY), "{}", failure.message);
            assert!(
                failure.message.contains("check the key in TEST_KEY"),
                "{}",
                failure.message
            );
        }
    }
}

#[tokio::test]
async fn half_of_a_key_is_no_better() {
    // Where a message is cut, the key begins before and ends after.
    let words = format!("{}{KEY} is no key", "x".repeat(299 - KEY.len() / 2));
    for kind in KINDS {
        let mut body = serde_json::json!({"error": {"message": words}}).to_string();
        for _ in 0..2 {
            let fault = Fault::Status {
                code: 400,
                retry_after: None,
                message: None,
                body: Some(body.clone()),
            };
            let (failure, _) = failure_of(kind, fault).await;
            assert!(!failure.message.contains(&KEY[..7]), "{}", failure.message);
            body = words.clone();
        }
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_logged_about_a_call_holds_no_key() {
    let log = Log::default();
    let to = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("prose_agents=debug")
        .with_writer(move || to.clone())
        .finish();
    let _log = tracing::subscriber::set_default(subscriber);
    for kind in KINDS {
        let fault = Fault::Status {
            code: 500,
            retry_after: None,
            message: None,
            body: Some(format!(r#"{{"error":{{"message":"the key {KEY} broke it"}}}}"#)),
        };
        failure_of(kind, fault).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("the key [redacted TEST_KEY] broke it"), "{text}");
    assert!(!text.contains(KEY), "{text}");
}

#[tokio::test]
async fn a_page_instead_of_a_stream_is_said_to_be_one() {
    let fault = Fault::Status {
        code: 200,
        retry_after: None,
        message: None,
        body: Some(r#"{"message":"Welcome"}"#.to_owned()),
    };
    let (failure, _) = failure_of("openai", fault).await;
    check(
        &failure,
        expect!["openai: the answer is no event stream; is the base_url right?: Welcome"],
    );
}
