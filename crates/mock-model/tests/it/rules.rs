//! Which rule answers, and what is logged.

use mock_model::{Answer, Api, MockModel, Rule, Script};
use serde_json::{Value, json};

use crate::client::{anthropic, ask, chat, hello, hello_chat, read};

fn mock(script: Script) -> MockModel {
    MockModel::start_blocking(script).unwrap()
}

fn said(mock: &MockModel, model: &str, system: &str, user: &str) -> String {
    let body = json!({
        "model": model, "max_tokens": 9, "system": system,
        "messages": [{"role": "user", "content": [{"type": "text", "text": user}]}],
    });
    let body: Value = serde_json::from_str(&anthropic(mock, &body).body).unwrap();
    body["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_first_rule_that_fits_answers() {
    let mock = mock(
        Script::new()
            .rule(Rule::user("a").model("^opus$").answer(Answer::text("1")))
            .rule(Rule::user("a").system("strict").answer(Answer::text("2")))
            .rule(Rule::user("a").nth(2).answer(Answer::text("3")))
            .rule(Rule::any().api(Api::Chat).answer(Answer::text("4")))
            .otherwise(Answer::text("5")),
    );
    assert_eq!(said(&mock, "opus", "", "a"), "1");
    assert_eq!(said(&mock, "opus-2", "be strict", "a"), "2");
    assert_eq!(said(&mock, "opus-2", "", "a"), "5");
    assert_eq!(said(&mock, "opus-2", "", "a"), "3");
    assert_eq!(said(&mock, "opus-2", "", "a"), "5");
    let rules: Vec<Option<usize>> = mock.requests().iter().map(|request| request.rule).collect();
    assert_eq!(rules, [Some(0), Some(1), None, Some(2), None]);
}

#[test]
fn a_request_without_a_rule_is_refused() {
    let mock = mock(Script::new().rule(Rule::user("never")));
    let came = anthropic(&mock, &hello(true));
    assert_eq!(came.status, 400);
    assert!(came.body.contains("has no rule for this request") && came.body.contains("Hello."));
    assert!(mock.requests()[0].complaint.is_some());
}

#[test]
fn groups_of_patterns_fill_the_answer() {
    let mock = mock(Script::new().rule(Rule::user("write to (?<path>\\S+)").turns([
        Answer::call(
            "write",
            json!({"path": "${path}", "all": ["${user}", "${other}"]}),
        ),
        Answer::text("wrote ${path}: ${result}, use ${n}"),
    ])));
    let mut body = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "write to a.md now"}],
    });
    let answer: Value = serde_json::from_str(&chat(&mock, &body).body).unwrap();
    let message = answer["choices"][0]["message"].clone();
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        r#"{"path":"a.md","all":["write to a.md now","${other}"]}"#
    );
    let id = message["tool_calls"][0]["id"].clone();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": "done"}));
    let answer: Value = serde_json::from_str(&chat(&mock, &body).body).unwrap();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "wrote a.md: done, use 1"
    );
}

#[test]
fn the_value_goes_where_the_request_wants_it() {
    let mock = mock(Script::always(Answer::json(json!({"decision": true}))));
    let mut body = hello(false);
    body["tools"] = json!([{"name": "verdict", "input_schema": {}}]);
    body["tool_choice"] = json!({"type": "tool", "name": "verdict"});
    let answer: Value = serde_json::from_str(&anthropic(&mock, &body).body).unwrap();
    assert_eq!(answer["content"][0]["name"], "verdict");
    assert_eq!(answer["content"][0]["input"], json!({"decision": true}));
    assert_eq!(answer["stop_reason"], "tool_use");
    let mut body = hello_chat(false);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "v", "schema": {}}});
    let answer: Value = serde_json::from_str(&chat(&mock, &body).body).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"decision":true}"#);
}

#[test]
fn a_result_has_to_follow_its_call() {
    let mock = mock(Script::always(Answer::text("ok")));
    let mut body = hello(false);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "a", "input": {}}]}),
    );
    messages.push(json!({"role": "user", "content": "and?"}));
    let came = anthropic(&mock, &body);
    assert_eq!(came.status, 400);
    assert!(
        came.body
            .contains("without `tool_result` blocks immediately after: t1"),
        "{}",
        came.body
    );
}

#[test]
fn keys_are_checked_and_kept_out_of_the_log() {
    let key = "sk-test-0123456789-abcd";
    let mock = mock(Script::always(Answer::text("ok")).key(key));
    assert_eq!(chat(&mock, &hello_chat(false)).status, 401);
    let bearer = format!("Bearer {key}");
    for (name, value) in [("authorization", bearer.as_str()), ("x-api-key", key)] {
        let came = read(ask(
            &mock,
            "/v1/chat/completions",
            &[(name, value)],
            &hello_chat(false),
        ));
        assert_eq!(came.status, 200);
    }
    let came = read(ask(
        &mock,
        &format!("/v1/chat/completions?key={key}"),
        &[],
        &hello_chat(false),
    ));
    assert_eq!(came.status, 200);
    let all = serde_json::to_string(&mock.requests()).unwrap();
    assert!(!all.contains(key) && all.contains("…abcd sha256:"), "{all}");
}

#[test]
fn the_log_file_has_a_line_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log.jsonl");
    let options = mock_model::Options {
        port: 0,
        log: Some(std::fs::File::create(&file).unwrap()),
    };
    let mock = MockModel::start_with(Script::always(Answer::text("ok")), options).unwrap();
    chat(&mock, &hello_chat(true));
    anthropic(&mock, &hello(true));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["api"], "chat");
    assert_eq!(lines[1]["body"]["messages"][0]["content"], "Hello.");
}

#[test]
fn what_harnesses_add_is_not_the_users_text() {
    let mock = mock(Script::always(Answer::text("${user} | ${result}")));
    let body = json!({
        "model": "m", "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "system", "content": "There are skills."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "a", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "done"}]},
                {"type": "text", "text": "<system-reminder>Be quick.</system-reminder>"},
            ]},
            {"role": "user", "content": "<system-reminder>Be quick.</system-reminder>"},
        ],
    });
    let answer: Value = serde_json::from_str(&anthropic(&mock, &body).body).unwrap();
    assert_eq!(answer["content"][0]["text"], "Go. | done");
    assert_eq!(mock.requests()[0].turn, 1);
}
