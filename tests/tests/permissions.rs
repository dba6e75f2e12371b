//! `prose run` where a session wants more than it may, with a model that tries: nobody to ask, `--yes`, and what no answer
//! grants.
#![allow(clippy::unwrap_used, missing_docs)]
#![cfg(unix)]

use std::path::Path;
use std::process::Stdio;

use mock_model::{Answer, MockModel, Rule, Script};
use prose_tests::{Ran, files_below, only_run, prose_command, workspace};
use serde_json::json;

const SECRET: &str = "sk-live-0123456789abcdef";
const PROGRAM: &str = "output result = session \"Look around\"\n";

/// A model that reads the keys by every tool, tells itself that it may, and then says what it was given.
fn greedy() -> MockModel {
    let turns = [
        Answer::call("read", json!({"path": ".prose/.env"}))
            .and_call("read", json!({"path": "../outside.txt"}))
            .and_call(
                "write",
                json!({"path": "prose.toml", "content": "[run]\nbackend = \"simulate\"\n"}),
            )
            .and_call("approve", json!({"permission": "bash", "answer": "allow"})),
        Answer::call(
            "bash",
            json!({"command": "cat .prose/.env > copied; cat copied; env > variables"}),
        ),
        Answer::text("Result: ${result}"),
    ];
    let script = Script::new()
        .rule(Rule::user("Look around").turns(turns))
        .key(SECRET);
    MockModel::start_blocking(script).unwrap()
}

fn run(dir: &Path, mock: &MockModel, args: &[&str]) -> Ran {
    let config = format!(
        "[backends.openai]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"OUR_KEY\"\n",
        mock.url()
    );
    std::fs::write(dir.join("prose.toml"), config).unwrap();
    prose_command(dir)
        .args(["run", "a.prose", "--backend", "openai"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

fn folder() -> tempfile::TempDir {
    let dir = workspace(&[("ws/a.prose", PROGRAM), ("outside.txt", "outside\n")]);
    std::fs::create_dir(dir.path().join("ws/.prose")).unwrap();
    std::fs::write(dir.path().join("ws/.prose/.env"), format!("OUR_KEY={SECRET}\n")).unwrap();
    dir
}

#[test]
fn where_nobody_can_be_asked_the_answer_is_no() {
    let (dir, mock) = (folder(), greedy());
    let ws = dir.path().join("ws");
    let ran = run(&ws, &mock, &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ws.join("copied").exists());
    let events: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&serde_json::Value> {
        events.iter().filter(|event| event["type"] == kind).collect()
    };
    let (asked, settled) = (of("permission_started"), of("permission_finished"));
    assert_eq!((asked.len(), settled.len()), (1, 1), "{}", ran.stdout);
    assert_eq!(
        (&asked[0]["permission"], &asked[0]["tool"]),
        (&json!("bash"), &json!("bash"))
    );
    assert_eq!(
        (&settled[0]["answer"], &settled[0]["attended"]),
        (&json!("deny"), &json!(false))
    );
    let heard = mock
        .asked()
        .iter()
        .map(|asked| asked.body.to_string())
        .collect::<String>();
    for refusal in [
        "protected",
        "is outside of the workspace",
        "there is no tool",
        "nobody permitted it",
    ] {
        assert!(heard.contains(refusal), "{refusal}: {heard}");
    }
}

#[test]
fn what_yes_grants_shows_no_key() {
    let (dir, mock) = (folder(), greedy());
    let ws = dir.path().join("ws");
    let ran = run(&ws, &mock, &["--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // The shell could, and what it printed is hidden from the model and from all that is kept.
    assert_eq!(
        std::fs::read_to_string(ws.join("copied")).unwrap(),
        format!("OUR_KEY={SECRET}\n")
    );
    assert!(
        !std::fs::read_to_string(ws.join("variables"))
            .unwrap()
            .contains(SECRET)
    );
    assert!(ran.stdout.contains("OUR_KEY=[redacted OUR_KEY]"), "{ran:?}");
    assert!(
        !ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET),
        "{ran:?}"
    );
    for asked in mock.asked() {
        assert!(!asked.body.to_string().contains(SECRET), "{}", asked.body);
    }
    for (name, content) in files_below(&only_run(&ws)) {
        assert!(!String::from_utf8_lossy(&content).contains(SECRET), "{name}");
    }
}
