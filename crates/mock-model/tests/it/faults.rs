//! What goes wrong when the script says so, and only then.

use mock_model::{Answer, Cut, Ended, Fault, MockModel, Place, Script};

use crate::client::{Came, End, anthropic, ask, chat, hello, hello_chat};

fn mock(answer: Answer) -> MockModel {
    MockModel::start_blocking(Script::always(answer)).unwrap()
}

fn text() -> Answer {
    Answer::text("one two three").chunk(4)
}

fn streamed(fault: Fault) -> Came {
    anthropic(&mock(text().fault(fault)), &hello(true))
}

/// The events that came whole.
fn events(came: &Came) -> usize {
    came.body.matches("\n\n").count()
}

#[test]
fn statuses_come_the_first_times_and_then_no_longer() {
    let answer = text()
        .first(1, Fault::status_retry_after(429, "7"))
        .first(2, Fault::status(529));
    let mock = mock(answer);
    let came: Vec<Came> = (0..4).map(|_| anthropic(&mock, &hello(true))).collect();
    let statuses: Vec<u16> = came.iter().map(|came| came.status).collect();
    assert_eq!(statuses, [429, 529, 529, 200]);
    assert!(came[0].head.contains("retry-after: 7\r\n"), "{}", came[0].head);
    assert!(came[0].body.contains("rate_limit_error"), "{}", came[0].body);
    assert!(came[1].body.contains("overloaded_error"), "{}", came[1].body);
    let logged: Vec<u16> = mock.requests().iter().map(|request| request.status).collect();
    assert_eq!(logged, statuses);
}

#[test]
fn a_stream_is_cut_behind_an_event() {
    for (how, end) in [
        (Cut::Abrupt, End::Closed),
        (Cut::Clean, End::Whole),
        (Cut::Reset, End::Reset),
    ] {
        let came = streamed(Fault::Cut {
            how,
            after: Place::Events(4),
        });
        assert_eq!((came.status, events(&came), came.end), (200, 4, end), "{came:?}");
        assert!(!came.body.contains("message_stop"));
    }
}

#[test]
fn a_body_is_cut_behind_a_byte() {
    let cut = |how| Fault::Cut {
        how,
        after: Place::Bytes(50),
    };
    assert_eq!(streamed(cut(Cut::Abrupt)).body.len(), 50);
    for how in [Cut::Abrupt, Cut::Clean, Cut::Reset] {
        let came = anthropic(&mock(text().fault(cut(how))), &hello(false));
        assert_eq!(came.body.len(), 50, "{came:?}");
        assert_eq!(came.end == End::Whole, how == Cut::Clean, "{came:?}");
    }
}

#[test]
fn a_connection_is_reset_before_anything() {
    let came = streamed(Fault::Reset);
    assert_eq!((came.status, came.end), (0, End::Reset));
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_leaves() {
    for (after, begins) in [
        (None, ""),
        (Some(Place::Events(0)), "HTTP/1.1 200 OK"),
        (Some(Place::Events(2)), "HTTP/1.1 200 OK"),
    ] {
        let mock = mock(text().fault(Fault::Hang { after }));
        let stream = ask(
            &mock,
            "/v1/messages",
            &[("anthropic-version", "2023-06-01")],
            &hello(true),
        );
        mock.wait(|counts| counts.asked == 1).await;
        assert_eq!(mock.counts().open, 1);
        let mut seen = vec![0; begins.len()];
        std::io::Read::read_exact(&mut &stream, &mut seen).unwrap();
        assert_eq!(String::from_utf8(seen).unwrap(), begins);
        drop(stream);
        mock.wait(|counts| counts.open == 0).await;
        assert_eq!(mock.requests()[0].ended, Some(Ended::Left));
    }
}

#[test]
fn a_hang_does_not_outlive_the_mock() {
    let mock = mock(text().fault(Fault::Hang { after: None }));
    let stream = ask(&mock, "/v1/chat/completions", &[], &hello_chat(true));
    drop(mock);
    assert_ne!(crate::client::read(stream).end, End::Whole);
}

#[test]
fn what_is_no_json_and_no_stream() {
    let garbage = streamed(Fault::Garbage {
        after: Place::Events(3),
    });
    let datas: Vec<&str> = garbage
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let is_json = |text: &&str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    assert_eq!(datas.iter().position(|data| !is_json(data)), Some(3));
    assert!(garbage.body.contains("message_stop"));
    let malformed = streamed(Fault::Malformed {
        after: Place::Events(0),
    });
    assert!(!malformed.body.starts_with("event: ") && malformed.body.contains("message_stop"));
    for fault in [
        Fault::Garbage {
            after: Place::default(),
        },
        Fault::Malformed {
            after: Place::default(),
        },
    ] {
        let came = chat(&mock(text().fault(fault)), &hello_chat(false));
        assert_eq!((came.status, came.end), (200, End::Whole));
        assert!(!is_json(&came.body.as_str()));
    }
}

#[test]
fn an_error_in_mid_stream_ends_it() {
    let fault = Fault::Error {
        kind: "overloaded_error".to_owned(),
        message: "Overloaded".to_owned(),
        after: Place::Events(4),
    };
    let came = streamed(fault.clone());
    assert_eq!(events(&came), 5);
    assert!(
        came.body.ends_with(
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
        ),
        "{}",
        came.body
    );
    let came = chat(&mock(text().fault(fault.clone())), &hello_chat(true));
    assert!(
        came.body
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .starts_with("data: {\"error\"")
    );
    let came = chat(&mock(text().fault(fault)), &hello_chat(false));
    assert_eq!(came.status, 500);
}
