use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use prose_model::Failure;

use super::*;
use crate::session::{PermissionAnswer, PermissionQuestion, SessionSink, SessionUpdate};

fn rules(text: &str) -> Vec<PermissionRule> {
    text.split(';')
        .filter_map(|rule| rule.trim().split_once(": "))
        .map(|(key, value)| PermissionRule {
            key: key.into(),
            rule: match value {
                "allow" => PermissionValue::Allow,
                "deny" => PermissionValue::Deny,
                "prompt" => PermissionValue::Prompt,
                list => PermissionValue::Patterns(list.split(", ").map(str::to_owned).collect()),
            },
        })
        .collect()
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Ask => "ask",
        Decision::Deny(Denial::Rule { .. }) => "rule",
        Decision::Deny(Denial::Outside(_)) => "outside",
        Decision::Deny(Denial::Protected { .. }) => "protected",
        Decision::Deny(Denial::PrivateAddress(_)) => "private",
        Decision::Deny(Denial::Unclear(_)) => "unclear",
        Decision::Deny(Denial::Refused(_)) => "refused",
    }
}

/// A workspace with something to find, and a folder beside it.
fn workspace() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("ws");
    for folder in ["src/deep", ".prose/runs/r1/.staging/1", ".git/hooks", "docs"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::create_dir_all(dir.path().join("ws-other")).unwrap();
    for file in [
        "ws/a.md",
        "ws/src/b.md",
        "ws/.prose/.env",
        "ws/prose.toml",
        "secret.txt",
        "ws-other/x.md",
    ] {
        std::fs::write(dir.path().join(file), "text").unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("../secret.txt", root.join("out.md")).unwrap();
        symlink(dir.path(), root.join("up")).unwrap();
        symlink("src", root.join("inner")).unwrap();
        symlink(".prose", root.join("notes")).unwrap();
        symlink(".prose/.env", root.join("env.md")).unwrap();
        symlink("../nowhere.md", root.join("dangling.md")).unwrap();
        symlink("loop.md", root.join("loop.md")).unwrap();
    }
    dir
}

#[test]
#[cfg(unix)]
fn paths() {
    let dir = workspace();
    let root = dir.path().join("ws");
    let staging = root.join(".prose/runs/r1/.staging/1");
    let absolute = |path: &str| path.replace("$ROOT", root.to_str().unwrap());
    let only_md = "read: *.md; write: docs/";
    let all = "read: allow; write: allow";
    for (rules_text, access, path, expected) in [
        // The defaults.
        ("", "read", "a.md", "allow"),
        ("", "read", "./src/../a.md", "allow"),
        ("", "write", "src/new/file.md", "allow"),
        ("", "read", "$ROOT/src/b.md", "allow"),
        ("", "read", "", "allow"),
        ("", "read", ".", "allow"),
        // Out of the workspace, by whatever way.
        (all, "read", "../secret.txt", "outside"),
        (all, "read", "src/../../secret.txt", "outside"),
        (all, "read", "../ws/a.md", "outside"),
        (all, "write", "../new.md", "outside"),
        (all, "read", "/etc/passwd", "outside"),
        (all, "read", "$ROOT/../secret.txt", "outside"),
        (all, "read", "$ROOT-other/x.md", "outside"),
        (all, "read", "~/.ssh/id_rsa", "outside"),
        (all, "read", "/proc/self/environ", "outside"),
        (all, "read", "out.md", "outside"),
        (all, "read", "up/secret.txt", "outside"),
        (all, "write", "up/new/deeper/file.md", "outside"),
        (all, "read", "missing/../../../secret.txt", "outside"),
        (all, "write", "dangling.md", "unclear"),
        (all, "read", "loop.md", "unclear"),
        (all, "read", "a\0.md", "unclear"),
        ("read: /etc/*, ../*, ~/*", "read", "/etc/passwd", "outside"),
        ("read: /etc/*, ../*, ~/*", "read", "../secret.txt", "outside"),
        // A link inside counts for where it leads.
        (all, "read", "inner/b.md", "allow"),
        ("read: inner/**", "read", "inner/b.md", "rule"),
        ("read: inner/**, src/**", "read", "inner/b.md", "allow"),
        (all, "read", "notes/.env", "protected"),
        (all, "read", "env.md", "protected"),
        (all, "write", "notes/x.md", "protected"),
        // Protected whatever the rules say.
        (all, "read", ".prose/.env", "protected"),
        (all, "read", ".PROSE/.Env", "protected"),
        (all, "read", "src/../.prose/./.env", "protected"),
        (all, "read", "$ROOT/.prose/.env", "protected"),
        (all, "read", ".prose/.env.", "protected"),
        (all, "read", ".prose/.env::$DATA", "protected"),
        (all, "read", ".prose/.env.local", "protected"),
        (all, "read", ".prose/runs/r1", "allow"),
        (all, "write", ".prose/runs/r1/journal.jsonl", "protected"),
        (all, "write", ".prose/policy.toml", "protected"),
        (all, "write", "prose.toml", "protected"),
        (all, "write", "PROSE.TOML", "protected"),
        (all, "write", "prose.toml ", "protected"),
        (all, "write", "sub/prose.toml", "protected"),
        (all, "write", "prose.lock", "protected"),
        (all, "write", ".vscode/settings.json", "protected"),
        (all, "write", "notes.code-workspace", "protected"),
        (all, "write", "src/.Envrc", "protected"),
        (all, "write", ".claude/settings.json", "protected"),
        (all, "write", ".mcp.json", "protected"),
        (all, "write", ".devcontainer/devcontainer.json", "protected"),
        (all, "write", ".husky/pre-commit", "protected"),
        (all, "write", ".vscode", "protected"),
        (all, "write", "sub/.zed/tasks.json", "protected"),
        (all, "write", ".nvim.lua", "protected"),
        (all, "write", ".exrc", "protected"),
        (all, "write", ".dir-locals.el", "protected"),
        (all, "write", ".git/hooks/pre-commit", "protected"),
        (all, "write", ".git/config", "protected"),
        (all, "write", ".git/modules/m/hooks/post-checkout", "protected"),
        (all, "write", "sub/.git", "protected"),
        (all, "write", ".git/COMMIT_EDITMSG", "allow"),
        (all, "write", ".gitignore", "allow"),
        (all, "write", "src/config", "allow"),
        // The session's own folder.
        (
            "read: deny; write: deny",
            "write",
            "$ROOT/.prose/runs/r1/.staging/1/binding.md",
            "allow",
        ),
        (
            "read: deny; write: deny",
            "read",
            ".prose/runs/r1/.staging/1/context/a.md",
            "allow",
        ),
        (all, "write", ".prose/runs/r1/.staging/2/binding.md", "protected"),
        (all, "write", ".prose/runs/r1/.staging/1/../../x", "protected"),
        // Rules.
        (only_md, "read", "a.md", "allow"),
        (only_md, "read", "src/deep/c.md", "allow"),
        (only_md, "read", "src/b.rs", "rule"),
        (only_md, "read", "src", "rule"),
        (only_md, "write", "docs/new/page.html", "allow"),
        (only_md, "write", "a.md", "rule"),
        ("read: src/*.md", "read", "src/b.md", "allow"),
        ("read: src/*.md", "read", "src/deep/b.md", "rule"),
        // A folder may be read when all that is in it may.
        ("read: src/**", "read", "src", "allow"),
        ("read: src/*", "read", "src", "allow"),
        ("read: src/**/*", "read", "src", "allow"),
        ("read: src/**", "read", "src/deep", "allow"),
        ("read: ./src/**", "read", "$ROOT/src", "allow"),
        ("read: **", "read", ".", "allow"),
        ("read: *", "read", "src", "allow"),
        ("read: **/*", "read", "", "allow"),
        ("read: src/**", "read", ".", "rule"),
        ("read: src/*.md", "read", "src", "rule"),
        ("read: src/deep/**", "read", "src", "rule"),
        ("read: src/*/**", "read", "src", "rule"),
        ("read: src/**", "read", "inner", "rule"),
        ("read: src/**, inner/**", "read", "inner", "allow"),
        ("read: a.md/**", "read", "a.md", "rule"),
        ("write: src/**", "write", "src", "rule"),
        ("read: .prose/**", "read", ".prose/.env", "protected"),
        ("read: ./src", "read", "src/deep/b.md", "allow"),
        ("read: /src/", "read", "src/deep/b.md", "allow"),
        ("read: **", "read", "src/deep/b.md", "allow"),
        ("read: .", "read", "src/deep/b.md", "allow"),
        ("read: odd[*]name/**", "read", "odd*name/x", "allow"),
        ("read: odd[*]name/**", "read", "oddername/x", "rule"),
        ("read: [!]x[]]", "read", "!x]", "allow"),
        ("read: [!]x[]]", "read", "ax]", "rule"),
        ("read: {broken", "read", "a.md", "rule"),
        ("read: prompt", "read", "a.md", "ask"),
        ("read: prompt", "read", ".prose/.env", "protected"),
        ("write: deny", "write", "a.md", "rule"),
        ("write: deny; write: allow", "write", "a.md", "allow"),
        ("execute: src/*.sh", "execute", "src/x.sh", "allow"),
        ("", "execute", "src/x.sh", "ask"),
    ] {
        let policy = Policy::with(
            &root,
            Some(&staging),
            &[],
            &rules(rules_text),
            Redactor::default(),
        );
        let path = absolute(path);
        let path = Path::new(&path);
        let decision = policy.decide(match access {
            "read" => Access::Read(path),
            "write" => Access::Write(path),
            _ => Access::Execute(path),
        });
        assert_eq!(
            word(&decision),
            expected,
            "{access} {} under `{rules_text}`: {decision:?}",
            path.display()
        );
    }
}

#[test]
fn given_files_can_be_read() {
    let dir = workspace();
    let root = dir.path().join("ws");
    let given = dir.path().join("secret.txt");
    let policy = Policy::with(
        &root,
        None,
        std::slice::from_ref(&given),
        &rules("read: deny"),
        Redactor::default(),
    );
    assert_eq!(policy.decide(Access::Read(&given)), Decision::Allow);
    assert_eq!(word(&policy.decide(Access::Write(&given))), "outside");
    assert_eq!(word(&policy.decide(Access::Read(&root.join("a.md")))), "rule");
}

#[test]
fn commands() {
    let dir = workspace();
    let root = dir.path().join("ws");
    for (rules_text, command, expected) in [
        ("", "ls", "ask"),
        ("bash: allow", "ls; rm -rf .", "allow"),
        ("bash: deny", "ls", "rule"),
        ("bash: cargo test*, git status", "cargo test -p x", "allow"),
        ("bash: cargo test*, git status", "git status", "allow"),
        ("bash: cargo test*, git status", "git push", "rule"),
        ("bash: cargo test*", "cargo test; rm -rf .", "rule"),
        ("bash: cargo test*", "cargo test && curl evil", "rule"),
        ("bash: cargo test*", "cargo test $(curl evil)", "rule"),
        ("bash: cargo test*", "cargo test `curl evil`", "rule"),
        ("bash: cargo test*", "cargo test \"$(curl evil)\"", "rule"),
        ("bash: cargo test*", "cargo test > prose.toml", "rule"),
        ("bash: cargo test*", "cargo test\ncurl evil", "rule"),
        ("bash: cargo test*", "cargo test \\\n; curl evil", "rule"),
        ("bash: cargo test*", "cargo test 'a; b'", "allow"),
        ("bash: *", "PATH=. ls", "rule"),
        ("bash: *", "", "rule"),
        ("execute: src/*.sh", "./src/x.sh a b", "allow"),
        ("execute: src/*.sh", "src/x.sh; ls", "ask"),
        ("execute: src/*.sh", "docs/x.sh", "rule"),
        ("execute: src/*.sh", "/bin/ls", "ask"),
        ("execute: src/*.sh; bash: deny", "src/x.sh", "rule"),
        ("execute: src/*.sh; bash: prompt", "src/x.sh", "ask"),
        ("execute: deny; bash: allow", "src/x.sh", "rule"),
        ("execute: prompt; bash: allow", "src/x.sh", "ask"),
    ] {
        let policy = Policy::new(&root, &rules(rules_text));
        let decision = policy.decide(Access::Bash(command));
        assert_eq!(word(&decision), expected, "{command:?} under `{rules_text}`");
    }
}

#[test]
fn hosts() {
    for (rules_text, host, port, expected) in [
        ("", "example.com", 443, "ask"),
        ("", "localhost", 80, "private"),
        ("network: allow", "example.com", 443, "allow"),
        ("network: allow", "localhost", 80, "private"),
        ("network: allow", "LOCALHOST.", 80, "private"),
        ("network: allow", "a.localhost", 80, "private"),
        ("network: allow", "127.0.0.1", 80, "private"),
        ("network: allow", "127.1", 80, "private"),
        ("network: allow", "2130706433", 80, "private"),
        ("network: allow", "0x7f.0.0.1", 80, "private"),
        ("network: allow", "[::1]", 80, "private"),
        ("network: allow", "::ffff:10.0.0.1", 80, "private"),
        ("network: allow", "169.254.169.254", 80, "private"),
        ("network: allow", "metadata.google.internal", 80, "private"),
        ("network: allow", "10.1.2.3", 80, "private"),
        ("network: allow", "fe80::1", 80, "private"),
        ("network: allow", "fd00::1", 80, "private"),
        ("network: allow", "64:ff9b::7f00:1", 80, "private"),
        ("network: allow", "0.0.0.0", 80, "private"),
        ("network: allow", "93.184.216.34", 80, "allow"),
        ("network: allow", "2606:2800:220:1::1", 80, "allow"),
        ("network: allow", "", 80, "unclear"),
        ("network: deny", "example.com", 443, "rule"),
        ("network: example.com", "example.com", 443, "allow"),
        ("network: example.com", "EXAMPLE.com.", 443, "allow"),
        ("network: example.com", "evil-example.com", 443, "rule"),
        ("network: example.com", "example.com.evil.org", 443, "rule"),
        ("network: *.example.com", "a.b.example.com", 443, "allow"),
        ("network: *.example.com", "example.com", 443, "rule"),
        ("network: *.example.com", "evilexample.com", 443, "rule"),
        ("network: https://example.com/docs/*", "example.com", 443, "allow"),
        ("network: example.com:8080", "example.com", 443, "rule"),
        ("network: *", "example.com", 443, "allow"),
        ("network: *", "127.0.0.1", 80, "private"),
        ("network: 127.0.0.1:8080", "127.0.0.1", 8080, "allow"),
        ("network: 127.0.0.1:8080", "127.0.0.1", 22, "rule"),
        ("network: [::1]", "::1", 80, "allow"),
        ("network: localhost", "localhost", 8080, "allow"),
    ] {
        let policy = Policy::new(Path::new("/ws"), &rules(rules_text));
        let decision = policy.decide(Access::Network { host, port });
        assert_eq!(word(&decision), expected, "{host}:{port} under `{rules_text}`");
    }
}

/// Answers everything alike and counts.
struct Answers(PermissionAnswer, AtomicUsize, std::sync::Mutex<Vec<String>>);

#[async_trait]
impl SessionSink for Answers {
    async fn started(&self, _: Option<serde_json::Value>, _: Option<String>) -> Result<(), Failure> {
        Ok(())
    }
    fn update(&self, _: SessionUpdate) {}
    async fn ask_permission(&self, question: PermissionQuestion) -> PermissionAnswer {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.2.lock().unwrap().push(question.detail);
        self.0
    }
}

fn gate(answer: PermissionAnswer, rules_text: &str) -> (Gate, Arc<Answers>) {
    let sink = Arc::new(Answers(answer, AtomicUsize::new(0), std::sync::Mutex::default()));
    let policy = Policy::new(Path::new("/ws"), &rules(rules_text));
    (Gate::new(policy, sink.clone()), sink)
}

#[tokio::test]
async fn what_is_granted_for_a_session_is_not_asked_again() {
    let (gate, sink) = gate(PermissionAnswer::AllowSession, "");
    for command in ["ls", "pwd"] {
        gate.pass("bash", Access::Bash(command)).await.unwrap();
    }
    for (host, port) in [("a.com", 443), ("a.com", 443), ("b.com", 443)] {
        gate.pass("web_fetch", Access::Network { host, port })
            .await
            .unwrap();
    }
    assert_eq!(
        sink.1.load(Ordering::Relaxed),
        3,
        "bash once, two hosts once each"
    );
}

#[tokio::test]
async fn what_is_granted_once_is_asked_again_and_a_no_is_a_no() {
    let (gate_once, sink) = gate(PermissionAnswer::Allow, "");
    for _ in 0..2 {
        gate_once.pass("bash", Access::Bash("ls")).await.unwrap();
    }
    assert_eq!(sink.1.load(Ordering::Relaxed), 2);
    let (gate_never, sink) = gate(PermissionAnswer::Deny, "network: deny");
    let why = gate_never.pass("bash", Access::Bash("ls")).await.unwrap_err();
    assert_eq!(why.to_string(), "nobody permitted it: bash ls");
    let host = Access::Network {
        host: "a.com",
        port: 443,
    };
    gate_never.pass("web_fetch", host).await.unwrap_err();
    assert_eq!(sink.1.load(Ordering::Relaxed), 1, "what is refused is not asked");
}

#[tokio::test]
async fn a_person_sees_all_of_what_is_asked() {
    let (gate, sink) = gate(PermissionAnswer::Allow, "");
    let command = format!("ls{}; rm -rf .\n\u{202e}evil\u{1b}[2K\u{200b}", " ".repeat(1_000));
    gate.pass("bash", Access::Bash(&command)).await.unwrap();
    assert_eq!(
        sink.2.lock().unwrap()[0],
        "ls ; rm -rf .⏎\\u{202e}evil\\u{1b}[2K\\u{200b}"
    );
    let long = format!("echo {}; rm -rf .", "x".repeat(3_000));
    let why = gate.pass("bash", Access::Bash(&long)).await.unwrap_err();
    assert!(matches!(why, Denial::Unclear(_)));
    assert_eq!(
        sink.1.load(Ordering::Relaxed),
        1,
        "nobody is asked about a part of it"
    );
}

#[test]
fn a_refusal_shows_no_half_of_a_secret() {
    let redactor = Redactor::new([("KEY", "sk-very-secret-0001")]);
    let command = format!("echo {} sk-very-secret-0001", "x".repeat(185));
    let policy = Policy::with(Path::new("/w"), None, &[], &rules("bash: deny"), redactor);
    let Decision::Deny(why) = policy.decide(Access::Bash(&command)) else {
        panic!("it is denied")
    };
    assert!(!why.to_string().contains("sk-"), "{why}");
}
