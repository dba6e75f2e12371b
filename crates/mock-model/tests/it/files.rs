//! Scripts in files, and the program.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use mock_model::{Cut, Fault, MockModel, Place, Script, Stop};
use serde_json::Value;

use crate::client::{anthropic, chat, hello, hello_chat};

const SCRIPT: &str = r#"
key = "sk-1"
models = ["a", "b"]
otherwise = { text = "else" }

[[rule]]
api = "anthropic"
model = "^claude-"
user = "weather in (?<town>\\w+)"
system = "short"
tool = "^get_"
forced = false
nth = 2
header = { anthropic-version = "2023" }
[[rule.turns]]
calls = [{ name = "get_weather", input = { town = "${town}" } }]
usage = { input = 10, output = 5, cache_read = 100 }
[[rule.turns]]
text = "It is ${result}."
stop = "max_tokens"
chunk = 4
delay_ms = 1
first_ms = 1

[[rule]]
answer = { text = "well", faults = [
  { status = { code = 429, retry_after = "1" } },
  "reset",
  { cut = { how = "clean", after = { events = 2 } } },
  { hang = {} },
  { garbage = {} },
  { malformed = { after = { bytes = 9 } } },
  { error = { kind = "overloaded_error", message = "busy" } },
] }
"#;

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

#[test]
fn a_script_in_toml_says_everything() {
    let (_folder, path) = file("script.toml", SCRIPT);
    let script = Script::read(&path).unwrap();
    assert_eq!(script.rules.len(), 2);
    assert_eq!(script.rules[0].turns[1].stop, Some(Stop::MaxTokens));
    let faults = &script.rules[1].answer.as_ref().unwrap().faults;
    assert_eq!(faults.len(), 7);
    assert_eq!(
        faults[2],
        Fault::Cut {
            how: Cut::Clean,
            after: Place::Events(2)
        }
    );
    // The same as JSON, and back.
    let json = serde_json::to_string(&script).unwrap();
    let (_folder, path) = file("script.json", &json);
    let again = Script::read(&path).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), json);
}

#[test]
fn a_wrong_script_says_where() {
    for (text, word) in [
        ("[[rule]]\nuser = \"(\"", "regex"),
        ("[[rule]]\nansver = 1", "ansver"),
    ] {
        let (_folder, path) = file("script.toml", text);
        let problem = Script::read(&path).unwrap_err().to_string();
        assert!(
            problem.contains(word) && problem.contains("script.toml"),
            "{problem}"
        );
    }
    assert!(Script::read(&PathBuf::from("/none/at/all.toml")).is_err());
}

#[test]
fn stop_reasons_are_named_as_each_api_names_them() {
    for (stop, in_anthropic, in_chat) in [
        ("max_tokens", "max_tokens", "length"),
        ("refusal", "refusal", "stop"),
        ("filtered", "refusal", "content_filter"),
        ("stop_sequence", "stop_sequence", "stop"),
    ] {
        let script = format!("otherwise = {{ text = \"No.\", stop = \"{stop}\" }}");
        let (_folder, path) = file("script.toml", &script);
        let mock = MockModel::start_blocking(Script::read(&path).unwrap()).unwrap();
        let answer: Value = serde_json::from_str(&anthropic(&mock, &hello(false)).body).unwrap();
        assert_eq!(answer["stop_reason"], in_anthropic);
        let answer: Value = serde_json::from_str(&chat(&mock, &hello_chat(false)).body).unwrap();
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], in_chat);
        let key = if stop == "refusal" { "refusal" } else { "content" };
        assert_eq!(choice["message"][key], "No.");
        let streamed = anthropic(&mock, &hello(true)).body;
        assert!(
            streamed.contains(&format!("\"stop_reason\":\"{in_anthropic}\"")),
            "{streamed}"
        );
    }
}

#[test]
fn the_program_says_where_it_is_and_ends_with_its_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mock-model"))
        .args(["--port", "0", "--until-eof"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
