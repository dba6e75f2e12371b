//! Serialised shapes are public once shipped: this test shows every change to them.
//! `UPDATE_EXPECT=1 cargo test -p prose-model` writes the new shape.
#![allow(clippy::unwrap_used, missing_docs)]

use expect_test::expect_file;
use schemars::schema_for;

macro_rules! snapshot {
    ($name:ident, $ty:ty) => {
        snapshot!($name, $ty, concat!("schemas/", stringify!($name), ".json"));
    };
    ($name:ident, $ty:ty, $file:expr) => {
        #[test]
        fn $name() {
            let schema = serde_json::to_string_pretty(&schema_for!($ty)).unwrap() + "\n";
            expect_file![$file].assert_eq(&schema);
        }
    };
}

snapshot!(bundle, prose_model::Bundle);
// Published with the documentation: who reads `prose run --json` may rest on it.
snapshot!(
    run_event,
    prose_model::RunEvent,
    "../../../docs/schemas/run-event.json"
);
snapshot!(journal_record, prose_model::JournalRecord);
snapshot!(issued, prose_model::Issued);

#[test]
fn event_order_is_flat() {
    let event = prose_model::RunEvent {
        v: prose_model::EVENT_VERSION,
        run_id: "20260115-143052-a7b3c9".into(),
        ts: "2026-01-15T14:30:52.000Z".into(),
        order: prose_model::Order::Machine { seq: 4 },
        event: prose_model::Event::FrameFinished {
            frame: 2,
            end: prose_model::End::Ok,
        },
    };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(
        json,
        r#"{"v":1,"runId":"20260115-143052-a7b3c9","ts":"2026-01-15T14:30:52.000Z","seq":4,"type":"frame_finished","frame":2,"end":"ok"}"#
    );
    assert_eq!(
        serde_json::from_str::<prose_model::RunEvent>(&json).unwrap(),
        event
    );
}

#[test]
fn values_round_trip() {
    use prose_model::{Text, TextRef, Value};
    let mut text = Text::inline("head ");
    text.push(&Text::reference(TextRef {
        sha256: "ab".into(),
        len: 9000,
        summary: "s".into(),
    }));
    text.push_str(" tail");
    assert_eq!(text.len(), 9010);
    assert_eq!(text.as_inline(), None);
    let value = Value::list(vec![
        Value::Null,
        Value::Number(2.5),
        Value::Text(text),
        Value::record([("k".to_owned(), Value::Bool(true))]),
    ]);
    let json = serde_json::to_string(&value).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
}
