//! `prose doctor`: what it says of backends that are there, that aren't, and that don't answer; that it asks nobody without being
//! told to; and that it never shows a key.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use mock_model::{Answer, Fault, MockModel, Script};
use prose_tests::{Ran, prose_command, workspace};
use serde_json::{Value, json};

const KEY: &str = "sk-test-0123456789abcdef";

/// With nothing of the person's who runs the tests.
fn doctor(dir: &Path, args: &[&str]) -> Ran {
    let mut command = prose_command(dir);
    for name in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_BASE_URL",
        "OPENPROSE_BACKEND",
        "OPENCLAW_GATEWAY_TOKEN",
    ] {
        command.env_remove(name);
    }
    command.env("PATH", "/usr/bin:/bin").arg("doctor").args(args);
    let ran: Ran = command.output().unwrap().into();
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
    ran
}

fn backend<'a>(report: &'a Value, name: &str) -> &'a Value {
    let backends = report["backends"].as_array().unwrap();
    backends.iter().find(|backend| backend["name"] == name).unwrap()
}

fn local(mock: &MockModel) -> tempfile::TempDir {
    let config = format!(
        "[run]\nbackend = \"local\"\n[backends.local]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"TEST_KEY\"\n\
         [models.local]\nsonnet = \"middle\"\n",
        mock.url()
    );
    workspace(&[
        ("prose.toml", &config),
        (".prose/.env", &format!("TEST_KEY={KEY}\n")),
    ])
}

#[test]
fn nothing_is_there() {
    let dir = workspace(&[]);
    let ran = doctor(dir.path(), &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for text in [
        "Without --backend no program runs: no backend was found.",
        "claude: the program `claude` was not found on the PATH\n  to set it up: install Claude Code",
        "openclaw: there is no token in OPENCLAW_GATEWAY_TOKEN\n",
        "anthropic: there is no key in ANTHROPIC_API_KEY\n",
        "made up  simulate",
        "acp: it is not said which agent it is",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
    // Made-up answers are no reason to call all well.
    let ran = doctor(dir.path(), &["--json"]);
    assert_eq!(ran.code, 1);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["taken"], Value::Null);
    assert_eq!(
        backend(&report, "anthropic")["key"],
        json!({"variable": "ANTHROPIC_API_KEY", "setIn": null, "required": true})
    );
}

#[test]
fn a_server_that_is_configured_is_told_of_and_not_asked() {
    let mock = MockModel::start_blocking(Script::always(Answer::text("ready"))).unwrap();
    let dir = local(&mock);
    let ran = doctor(dir.path(), &["--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let local = backend(&report, "local");
    assert_eq!((&local["usable"], &local["reason"]), (&json!(true), &Value::Null));
    assert_eq!(
        local["key"],
        json!({"variable": "TEST_KEY", "setIn": ".prose/.env", "required": true})
    );
    assert_eq!(local["baseUrl"], format!("{}/v1", mock.url()));
    assert!(
        local["configuredIn"].as_str().unwrap().ends_with("prose.toml:3"),
        "{local}"
    );
    assert_eq!(
        local["models"].as_array().unwrap()[..2],
        [
            json!({"name": "sonnet", "id": "middle", "configured": true}),
            json!({"name": "opus", "id": null, "configured": false}),
        ]
    );
    assert_eq!(report["taken"]["name"], "local");
    assert!(
        report["taken"]["namedIn"]
            .as_str()
            .unwrap()
            .ends_with("prose.toml:2")
    );
    let ran = doctor(dir.path(), &[]);
    assert!(ran.stdout.contains("TEST_KEY in .prose/.env"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("Without --backend, `local` is taken, as prose.toml:2 says."),
        "{}",
        ran.stdout
    );
    assert!(mock.requests().is_empty(), "nobody was asked for anything");
}

#[test]
fn a_test_asks_one_word_once_it_is_agreed_to() {
    let mock =
        MockModel::start_blocking(Script::always(Answer::text("ready").tokens(20, 1)).key(KEY)).unwrap();
    let dir = local(&mock);
    for args in [&["--test"][..], &["--test", "local"]] {
        let ran = doctor(dir.path(), args);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("prose doctor --test local --yes"), "{ran:?}");
    }
    assert!(mock.requests().is_empty(), "it was not agreed to");
    let ran = doctor(dir.path(), &["--test", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout.contains("ok: `local` answered \"ready\" after "),
        "{ran:?}"
    );
    assert!(ran.stdout.contains(", by middle, 21 tokens\n"), "{ran:?}");
    let asked = mock.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].complaint, None);
    // It made no mess where it was called.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    let ran = doctor(dir.path(), &["--test", "simulate"]);
    assert_eq!((ran.code, mock.asked().len()), (2, 1), "{ran:?}");
    assert!(ran.stderr.contains("`simulate` asks no model"), "{ran:?}");
}

#[test]
fn a_test_that_fails_says_why() {
    let refusal = Fault::Status {
        code: 401,
        retry_after: None,
        message: Some(format!("{KEY} is no key")),
        body: None,
    };
    let mock = MockModel::start_blocking(Script::always(Answer::text("").fault(refusal))).unwrap();
    let dir = local(&mock);
    let ran = doctor(dir.path(), &["--test", "local", "--yes", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["test"]["ok"], false);
    assert!(
        report["test"]["error"].as_str().unwrap().contains("401"),
        "{report}"
    );
    assert_eq!(backend(&report, "local")["usable"], true);
    let ran = doctor(dir.path(), &["--test", "nobody", "--yes"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("unknown backend `nobody`"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn programs_tell_their_versions() {
    use std::os::unix::fs::PermissionsExt as _;
    let config = "[backends.claude]\ncommand = \"./good\"\n[backends.broken]\nkind = \"claude\"\ncommand = \"./bad\"\n\
                  [backends.other]\nkind = \"anthropic\"\nbase_url = \"https://me:sk-test-0123456789abcdef@host.example/v1\"\n";
    let dir = workspace(&[
        ("prose.toml", config),
        (
            "good",
            "#!/bin/sh\n[ \"$1\" = --version ] && printf '9.9.9 \\033[31m(Claude Code)\\n'\n",
        ),
        ("bad", "#!/bin/sh\necho 'its library is missing' >&2\nexit 127\n"),
        (".prose/.env", &format!("ANTHROPIC_API_KEY={KEY}\n")),
    ]);
    for name in ["good", "bad"] {
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path().join(name), all).unwrap();
    }
    let ran = doctor(dir.path(), &["--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let version = backend(&report, "claude")["program"]["version"].as_str().unwrap();
    assert!(version.starts_with("9.9.9 "), "{report}");
    let broken = backend(&report, "broken");
    assert_eq!(broken["usable"], false);
    let reason = broken["reason"].as_str().unwrap();
    assert!(
        reason.contains("--version` ended with exit code 127: its library is missing"),
        "{reason}"
    );
    assert_eq!(backend(&report, "other")["baseUrl"], "https://host.example");
    let ran = doctor(dir.path(), &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "the terminal is ours: {ran:?}");
    assert!(
        ran.stdout
            .contains("Without --backend, `claude` is taken: it is the first that was found."),
        "{ran:?}"
    );
}
