//! The command line, where no gateway is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

/// A script in the place of the program, and a backend that finds no gateway. `D` is a folder for what it notes.
fn backend(folder: &Path, script: &str) -> Backend {
    let program = folder.join("openclaw");
    let head = format!("#!/bin/sh\nD='{}'\n", folder.display());
    std::fs::write(&program, format!("{head}{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(folder.join("home/.openclaw")).unwrap();
    std::fs::write(folder.join("home/.openclaw/openclaw.json"), "{}").unwrap();
    let mut process: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in [
        ("PATH", format!("{}:/usr/bin:/bin", folder.display())),
        ("HOME", folder.join("home").display().to_string()),
        ("OTHER_SECRET", "not-for-agents".to_owned()),
        ("ANTHROPIC_API_KEY", TOKEN.to_owned()),
    ] {
        process.insert(name.to_owned(), value);
    }
    let settings = BackendSettings::default();
    let spec = BackendSpec {
        name: "openclaw".to_owned(),
        kind: "openclaw".to_owned(),
        ..BackendSpec::default()
    };
    OpenClawFactory
        .create(BackendContext {
            settings: &settings,
            spec: &spec,
            variables: &Variables::new(process, BTreeMap::new()),
        })
        .unwrap()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(path.join("work/.prose/staging")).unwrap();
    (root, path)
}

const NOTES: &str = r#"printf '%s\n' "$@" > "$D/args"; cat > "$D/in"; env > "$D/env"
for a in "$@"; do case "$a" in *openclaw.json) cat "$a" > "$D/config";; esac; done
"#;

fn answers(envelope: &Json) -> String {
    format!("{NOTES}cat <<'END'\n{envelope}\nEND")
}

#[tokio::test]
async fn a_session_is_a_turn_of_the_command_line() {
    let (_root, path) = folder();
    let envelope = json!({
        "ok": true, "status": "ok", "final": "It is fine.",
        "usage": {"input": 120, "output": 8}, "costUsd": 0.25, "toolSummary": {"calls": 2, "failures": 1},
    });
    let backend = backend(&path, &answers(&envelope));
    let sink = Recorder::new(PermissionAnswer::Allow);
    let reply = backend
        .sessions
        .spawn(spawn(path.join("work"), sink.clone()))
        .await
        .unwrap();
    assert_eq!(reply.body, ReplyBody::Text("It is fine.".to_owned()));
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.cost_usd),
        (120, Some(0.25))
    );
    let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    // No prompt among the arguments, which everybody can read.
    assert_eq!(read("in"), "You are a critic.\n\nJudge the draft: it's \"fine\".");
    let args = read("args");
    assert!(
        args.starts_with("agent\nexec\n--json\n--message-file\n-\n"),
        "{args}"
    );
    assert!(!args.contains("critic"), "{args}");
    let config: Json = serde_json::from_str(&read("config")).unwrap();
    assert_eq!(
        config["tools"]["allow"],
        json!(["read", "ls", "find", "grep", "write", "edit"])
    );
    assert_eq!(config["tools"]["exec"]["mode"], "deny");
    assert_eq!(config["tools"]["fs"]["workspaceOnly"], true);
    assert!(
        config["$include"]
            .as_str()
            .unwrap()
            .ends_with("home/.openclaw/openclaw.json")
    );
    let env = read("env");
    assert!(
        env.contains("ANTHROPIC_API_KEY=") && !env.contains("not-for-agents"),
        "{env}"
    );
    let said = sink.text();
    for text in [
        "notice no gateway of OpenClaw is there",
        "notice OpenClaw's command line is told no model for `opus`",
        "notice 1 of 2 tool calls",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    common::gone(sink.child.lock().unwrap().unwrap());
}

#[tokio::test]
async fn what_goes_wrong_is_told() {
    let fails = async |script: &str, expected: Expect| {
        let (_root, path) = folder();
        let backend = backend(&path, script);
        let sink = Recorder::new(PermissionAnswer::Allow);
        let failure = backend
            .sessions
            .spawn(spawn(path.join("work"), sink))
            .await
            .unwrap_err();
        expected.assert_eq(&format!("{:?}: {}", failure.kind, failure.message));
    };
    let error = json!({"ok": false, "status": "error", "error": {"message": format!("no key {TOKEN}")}});
    fails(
        &format!("{}\nexit 1", answers(&error)),
        expect!["Backend: the agent failed: no key [redacted ANTHROPIC_API_KEY]"],
    )
    .await;
    let late = json!({"ok": false, "status": "timeout", "error": {"message": "too late"}});
    fails(&answers(&late), expect!["Timeout: the agent failed: too late"]).await;
    fails(
        "echo hm; echo 'bad config' >&2; exit 3",
        expect!["Backend: OpenClaw's command line ended with exit code 3 and gave no answer: bad config"],
    )
    .await;
}

#[tokio::test]
async fn a_session_that_is_not_wanted_any_more_is_ended() {
    let (_root, path) = folder();
    let backend = backend(&path, "echo begun > \"$D/begun\"; sleep 600");
    let sink = Recorder::new(PermissionAnswer::Allow);
    let spawn = spawn(path.join("work"), sink.clone());
    let cancel = spawn.cancel.clone();
    let begun = path.join("begun");
    let stopping = tokio::task::spawn_blocking(move || {
        common::wait_for(&begun);
        cancel.cancel();
    });
    let (reply, stopped) = tokio::join!(backend.sessions.spawn(spawn), stopping);
    stopped.unwrap();
    assert_eq!(reply.unwrap_err().message, "the session was stopped");
    let pid = sink.child.lock().unwrap().unwrap();
    common::gone(pid);
}

#[tokio::test]
async fn a_judge_and_a_reader_have_what_they_need() {
    let (_root, path) = folder();
    let verdict = json!({"reason": "seen", "decision": "no", "confidence": 0.8}).to_string();
    let backend = backend(&path, &answers(&json!({"status": "ok", "final": verdict})));
    let decided = backend.judge.decide(condition("the sky is green")).await.unwrap();
    assert_eq!(decided.decision, Decision::No);
    let config =
        || -> Json { serde_json::from_str(&std::fs::read_to_string(path.join("config")).unwrap()).unwrap() };
    assert_eq!(config()["tools"]["allow"], json!(["ls"]));
    let sink = Recorder::new(PermissionAnswer::Allow);
    let mut session = spawn(path.join("work"), sink);
    let mut asked = request();
    asked.permissions.push(rule("write", PermissionValue::Deny));
    session.request = Arc::new(asked);
    backend.sessions.spawn(session).await.unwrap();
    assert_eq!(config()["tools"]["allow"], json!(["read", "ls", "find", "grep"]));
}
