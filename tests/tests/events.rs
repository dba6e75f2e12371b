//! What a run tells other programs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::process::Command;

use prose_tests::schema::check_json;
use prose_tests::{bin, everything};
use serde_json::{Value, json};

#[test]
fn every_event_of_every_construct_fits_the_published_schema() {
    let folder = everything();
    let output = Command::new(bin("prose"))
        .current_dir(folder.path())
        .args(["run", "everything.prose", "--backend", "simulate", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    let mut next = 0;
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        check_json(&event).unwrap();
        if let Some(seq) = event["seq"].as_u64() {
            assert_eq!(seq, next, "{line}");
            next += 1;
        }
        kinds.insert(event["type"].as_str().unwrap().to_owned());
    }
    for kind in [
        "run_started",
        "run_finished",
        "session_text",
        "session_started",
        "judge_finished",
        "bound",
    ] {
        assert!(kinds.contains(kind), "{kind} is not among {kinds:?}");
    }
}

#[test]
fn the_schema_refuses_what_is_no_event() {
    let good =
        json!({"v": 1, "runId": "r", "ts": "t", "seq": 4, "type": "frame_finished", "frame": 2, "end": "ok"});
    check_json(&good).unwrap();
    for (key, value) in [
        ("type", json!("frame_vanished")),
        ("end", json!("well")),
        ("seq", json!("4")),
        ("frame", Value::Null),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(check_json(&bad).is_err(), "{bad}");
    }
}
