//! The `claude` backend against a script in the place of the program: what it is told, what its tools may do, and every
//! way in which it can go wrong.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{condition, gone, patterns, rule, wait_for};
use expect_test::{Expect, expect};
use mock_model::scripted;
use prose_agents::*;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::*;
use serde_json::{Value as Json, json};

const KEY: &str = "sk-ant-very-secret-0001";

struct Stage(common::Stage);

impl std::ops::Deref for Stage {
    type Target = common::Stage;

    fn deref(&self) -> &common::Stage {
        &self.0
    }
}

impl Stage {
    fn new(script: &str) -> Stage {
        Stage::with(script, PermissionAnswer::Deny, |_| {})
    }

    fn with(script: &str, answer: PermissionAnswer, change: impl FnOnce(&mut BackendSpec)) -> Stage {
        let mut spec = BackendSpec {
            name: "claude".to_owned(),
            kind: "claude".to_owned(),
            ..BackendSpec::default()
        };
        change(&mut spec);
        let text = |places: &[(&str, &Path)]| scripted::claude(places, script);
        Stage(common::Stage::set(
            &ClaudeFactory,
            &variables(),
            spec,
            "claude",
            text,
            answer,
        ))
    }

    async fn run(&self) -> Result<SessionReply, Failure> {
        self.backend.sessions.spawn(self.session(|_, _| {})).await
    }

    async fn fails(&self, expected: Expect) -> Failure {
        let (failure, text) = self.failure(self.session(|_, _| {}), KEY).await;
        expected.assert_eq(&text);
        failure
    }

    /// The answers to questions about tools.
    fn answers(&self) -> String {
        let lines = self.read("log/answers");
        let answers = lines.lines().map(|line| {
            let json: Json = serde_json::from_str(line).unwrap();
            let answer = &json["response"]["response"]["hookSpecificOutput"];
            let why = answer["permissionDecisionReason"].as_str().unwrap();
            format!("{} {}", answer["permissionDecision"].as_str().unwrap(), why)
        });
        answers
            .collect::<Vec<_>>()
            .join("\n")
            .replace(self.root.path().to_str().unwrap(), "ROOT")
    }
}

fn create(spec: &BackendSpec, variables: &Variables) -> Result<Backend, BackendError> {
    common::create(&ClaudeFactory, spec, variables)
}

fn variables() -> Variables {
    let mut process: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in [
        ("PATH", std::env::var("PATH").unwrap().as_str()),
        ("HOME", "/nonexistent"),
        ("ANTHROPIC_API_KEY", KEY),
        ("OPENAI_API_KEY", "sk-of-another"),
    ] {
        process.insert(name.to_owned(), value.to_owned());
    }
    Variables::new(process, BTreeMap::new())
}

#[tokio::test]
async fn it_is_told_by_its_input_what_to_do_and_what_it_wrote_is_the_result() {
    let script = r#"init
echo '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":{"id":"m1","usage":{"input_tokens":9,"output_tokens":1}}}}'
echo '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"I write."}}}'
echo '{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m1","usage":{"input_tokens":9,"output_tokens":1},"content":[{"type":"text","text":"I write."},{"type":"tool_use","name":"Write","input":{"file_path":"x.md","content":"…"}}]}}'
echo '{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_delta","usage":{"output_tokens":6}}}'
echo '{"type":"something","new":1}'
printf 'the result' > "$S/binding.md"
done_with 'Binding written: verdict\nSummary: it is fine'"#;
    let stage = Stage::with(script, PermissionAnswer::Deny, |spec| {
        spec.models
            .insert("opus".to_owned(), "some-large-model".to_owned());
    });
    let session = stage.session(|_, spawn| spawn.budget.usd = Some(1.5));
    let reply = stage.backend.sessions.spawn(session).await.unwrap();
    assert_eq!(reply.body, ReplyBody::Staged);
    assert!(reply.summary.unwrap().contains("it is fine"));
    let used = Usage {
        input_tokens: 15,
        output_tokens: 7,
        cost_usd: Some(0.25),
    };
    assert_eq!(reply.usage, used);
    expect![[r#"
        started None claude-model-1
        usage 9 1
        text "I write."
        tool Write x.md
        usage 9 1
        usage 9 6"#]]
    .assert_eq(&stage.sink.text());

    let init: Json = serde_json::from_str(&stage.read("log/init")).unwrap();
    let system = init["request"]["systemPrompt"].as_str().unwrap();
    assert!(
        system.starts_with("You are a critic.\n\nYour working folder is "),
        "{system}"
    );
    assert_eq!(
        init["request"]["hooks"]["PreToolUse"][0]["hookCallbackIds"],
        json!(["tool"])
    );
    let prompt: Json = serde_json::from_str(&stage.read("log/prompt")).unwrap();
    assert_eq!(prompt["message"]["content"], "Judge the draft: it's \"fine\".");

    let args = stage.read("log/args");
    let id = args.lines().find(|line| line.len() == 36).unwrap().to_owned();
    expect![[r#"
        --print
        --input-format
        stream-json
        --output-format
        stream-json
        --verbose
        --include-partial-messages
        --no-session-persistence
        --session-id
        ID
        --setting-sources

        --strict-mcp-config
        --disable-slash-commands
        --permission-mode
        default
        --permission-prompt-tool
        stdio
        --tools
        Read,Glob,Grep,Write,Edit,NotebookEdit,Bash,WebFetch,WebSearch
        --model
        some-large-model
        --disallowedTools
        Read(**/.prose/.env)
        Read(**/.prose/.env.*)
        --max-budget-usd
        1.500000
    "#]]
    .assert_eq(&args.replace(&id, "ID"));
    let env = stage.read("log/env");
    assert!(env.contains(&format!("ANTHROPIC_API_KEY={KEY}\n")), "{env}");
    assert!(env.contains("CLAUDE_CODE_DISABLE_ATTACHMENTS=1\n"), "{env}");
    assert!(env.contains("MCP_CONNECT_TIMEOUT_MS=60000\n"), "{env}");
    assert!(!env.contains("sk-of-another"), "{env}");
    stage.run().await.unwrap();
    assert!(
        !stage.read("log/args").contains(&id),
        "every session has an id of its own"
    );
}

#[tokio::test]
async fn key_address_and_arguments_come_from_the_configuration() {
    let stage = Stage::with(
        "printf x > \"$S/binding.md\"; done_with ok",
        PermissionAnswer::Deny,
        |spec| {
            spec.api_key_env = Some("OPENAI_API_KEY".to_owned());
            spec.base_url = Some("http://127.0.0.1:1".to_owned());
            spec.args = Some(vec!["first".to_owned()]);
        },
    );
    stage.run().await.unwrap();
    let env = stage.read("log/env");
    assert!(env.contains("ANTHROPIC_API_KEY=sk-of-another\n"), "{env}");
    assert!(env.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:1\n"), "{env}");
    assert!(stage.read("log/args").starts_with("first\n--print\n"));
    let spec = BackendSpec {
        name: "claude".to_owned(),
        kind: "claude".to_owned(),
        command: Some("sh".to_owned()),
        api_key_env: Some("NOT_SET".to_owned()),
        ..BackendSpec::default()
    };
    let error = create(&spec, &variables()).err().unwrap();
    assert!(
        error
            .to_string()
            .contains("the variable NOT_SET, which `api_key_env` names, is not set"),
        "{error}"
    );
}

#[tokio::test]
async fn what_proves_who_one_is_goes_to_no_other_address() {
    let mut process: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in [
        ("PATH", std::env::var("PATH").unwrap().as_str()),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_AUTH_TOKEN", "of-anthropic-1"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "of-anthropic-2"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x: of-anthropic-3"),
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("AWS_SECRET_ACCESS_KEY", "of-amazon"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "of-google"),
        ("ANTHROPIC_FOUNDRY_API_KEY", "of-microsoft"),
        ("MY_KEY", "sk-of-mine"),
    ] {
        process.insert(name.to_owned(), value.to_owned());
    }
    let variables = Variables::new(process, BTreeMap::new());
    let stage = Stage::new("printf x > \"$S/binding.md\"; done_with ok");
    let mut spec = BackendSpec {
        name: "claude".to_owned(),
        kind: "claude".to_owned(),
        command: Some(stage.path("claude").display().to_string()),
        ..BackendSpec::default()
    };
    let others = [
        "of-anthropic",
        "of-amazon",
        "of-google",
        "of-microsoft",
        "BEDROCK",
    ];
    for (address, named, key) in [
        (None, None, KEY),
        (Some("http://127.0.0.1:1"), None, "none"),
        (Some("http://127.0.0.1:1"), Some("MY_KEY"), "sk-of-mine"),
    ] {
        spec.base_url = address.map(str::to_owned);
        spec.api_key_env = named.map(str::to_owned);
        let backend = create(&spec, &variables).unwrap();
        backend.sessions.spawn(stage.session(|_, _| {})).await.unwrap();
        let env = stage.read("log/env");
        assert!(env.contains(&format!("ANTHROPIC_API_KEY={key}\n")), "{env}");
        for other in others {
            assert_eq!(env.contains(other), address.is_none(), "{other}: {env}");
        }
    }
    spec.base_url = Some("http://models.example".to_owned());
    let error = create(&spec, &variables).err().unwrap().to_string();
    assert!(error.contains("anybody could read the key in MY_KEY"), "{error}");
}

#[tokio::test]
async fn keys_of_the_environment_do_not_go_where_a_project_leads() {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    let path = std::env::var("PATH").unwrap();
    let process = [
        ("PATH", path.as_str()),
        ("ANTHROPIC_API_KEY", KEY),
        ("CLAUDE_CODE_OAUTH_TOKEN", "of-the-person"),
        ("MINE", "sk-of-mine"),
        ("HTTPS_PROXY", "http://proxy.example"),
    ];
    let stage = Stage::new("printf x > \"$S/binding.md\"; done_with ok");
    let mut spec = BackendSpec {
        name: "claude".to_owned(),
        kind: "claude".to_owned(),
        command: Some(stage.path("claude").display().to_string()),
        ..BackendSpec::default()
    };
    let lead = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let refused = |spec: &BackendSpec, file: &[(&str, &str)]| {
        create(spec, &Variables::new(map(&process), map(file)))
            .err()
            .unwrap()
            .to_string()
    };
    let why = refused(&spec, &[lead]);
    assert!(
        why.contains("ANTHROPIC_BASE_URL in .prose/.env leads to another address, to which ANTHROPIC_API_KEY of the environment"),
        "{why}"
    );
    let why = refused(
        &spec,
        &[
            ("ANTHROPIC_BEDROCK_BASE_URL", "https://x.example"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
        ],
    );
    assert!(
        why.contains("ANTHROPIC_BEDROCK_BASE_URL counts only in the environment"),
        "{why}"
    );
    spec.api_key_env = Some("MINE".to_owned());
    let why = refused(&spec, &[lead]);
    assert!(why.contains("MINE of the environment is not sent"), "{why}");

    let seen = async |spec: &BackendSpec, process: &[(&str, &str)], file: &[(&str, &str)]| {
        let backend = create(spec, &Variables::new(map(process), map(file))).unwrap();
        backend.sessions.spawn(stage.session(|_, _| {})).await.unwrap();
        let env = stage.read("log/env");
        assert!(env.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:1\n"), "{env}");
        assert!(!env.contains("of-the-person"), "{env}");
        env
    };
    let env = seen(&spec, &process, &[lead, ("MINE", "sk-of-the-project")]).await;
    assert!(env.contains("ANTHROPIC_API_KEY=sk-of-the-project\n"), "{env}");
    spec.api_key_env = None;
    let file = [
        lead,
        ("ANTHROPIC_AUTH_TOKEN", "of-the-project"),
        ("HTTPS_PROXY", "http://evil.example"),
    ];
    let env = seen(&spec, &process, &file).await;
    assert!(env.contains("ANTHROPIC_AUTH_TOKEN=of-the-project\n"), "{env}");
    assert!(!env.contains("ANTHROPIC_API_KEY"), "{env}");
    // Nor is the way there another's than the person's own.
    assert!(env.contains("HTTPS_PROXY=http://proxy.example\n"), "{env}");
    // Where there is no key, the login of the person does not go there either.
    let env = seen(&spec, &process[..1], &[lead]).await;
    assert!(env.contains("ANTHROPIC_API_KEY=none\n"), "{env}");
}

#[tokio::test]
async fn its_tools_may_do_what_the_program_permits() {
    let outside = "/etc/passwd";
    let script = format!(
        r#"init
use 1 Read '{{"file_path":"src/a.txt"}}'
use 2 Read '{{"file_path":"other/a.txt"}}'
use 3 Read '{{"file_path":"{outside}"}}'
use 4 Read '{{"file_path":"../claude"}}'
use 5 Grep '{{"pattern":"key"}}'
use 6 Grep '{{"pattern":"key","path":"src"}}'
use 7 Glob '{{"pattern":"../**"}}'
use 8 Glob '{{"pattern":"{{/etc,x}}/*","path":"src"}}'
use 9 Write "{{\"file_path\":\"$S/binding.md\"}}"
use 10 Write '{{"file_path":"prose.toml"}}'
use 11 Edit '{{"file_path":"out/x"}}'
use 12 Bash '{{"command":"rm -rf x"}}'
use 13 WebFetch '{{"url":"https://example.com/x"}}'
use 14 WebFetch '{{"url":"https://evil.org/x"}}'
use 15 WebFetch '{{"url":"file:///etc/passwd"}}'
use 16 Task '{{"prompt":"x"}}'
use 17 mcp__any__thing '{{}}'
use 18 Read '{{}}'
printf x > "$S/binding.md"; done_with ok"#
    );
    let stage = Stage::new(&script);
    for folder in ["work/src", "work/other", "work/out"] {
        std::fs::create_dir(stage.path(folder)).unwrap();
    }
    let session = stage.session(|request, _| {
        request.permissions = vec![
            rule("read", patterns(&["src/**"])),
            rule("write", PermissionValue::Allow),
            rule("network", patterns(&["example.com"])),
            rule("bash", PermissionValue::Deny),
        ];
    });
    stage.backend.sessions.spawn(session).await.unwrap();
    expect![[r#"
        allow permitted by the program
        deny `read` is not permitted here: other/a.txt
        deny /etc/passwd is outside of the workspace
        deny ../claude is outside of the workspace
        deny `read` is not permitted here: 
        allow permitted by the program
        deny a pattern is relative to `path` and does not climb out of it
        deny a pattern is relative to `path` and does not climb out of it
        allow permitted by the program
        deny prose.toml is protected: the configuration of this workspace
        allow permitted by the program
        deny `bash` is not permitted here: rm -rf x
        allow permitted by the program
        deny `network` is not permitted here: evil.org
        deny `file:///etc/passwd` is no address on the web
        deny `Task` is no tool of this session
        deny `mcp__any__thing` is no tool of this session
        deny `Read` needs `file_path`"#]]
    .assert_eq(&stage.answers());
    expect!["started None claude-model-1"].assert_eq(&stage.sink.text());
    // What can't be permitted at all is not offered.
    assert!(
        stage
            .read("log/args")
            .contains("\nRead,Glob,Grep,Write,Edit,NotebookEdit,WebFetch,WebSearch\n")
    );
}

#[tokio::test]
async fn what_is_left_to_a_person_is_asked_and_reading_goes_on_meanwhile() {
    let script = r#"init
use 1 Bash '{"command":"make test"}'
use 2 WebSearch '{"query":"weather"}'
printf x > "$S/binding.md"; done_with ok"#;
    for (answer, word) in [
        (PermissionAnswer::Allow, "allow"),
        (PermissionAnswer::Deny, "deny"),
    ] {
        let stage = Stage::with(script, answer, |_| {});
        stage.run().await.unwrap();
        assert!(
            stage.answers().lines().all(|line| line.starts_with(word)),
            "{}",
            stage.answers()
        );
        assert!(
            stage.sink.text().contains("ask bash Bash: make test"),
            "{}",
            stage.sink.text()
        );
        assert!(
            stage.sink.text().contains("WebSearch for \"weather\""),
            "{}",
            stage.sink.text()
        );
    }
}

#[tokio::test]
async fn what_it_says_counts_when_it_wrote_nothing_unless_it_is_a_receipt() {
    let stage = Stage::new("init; done_with 'forty-two'");
    let reply = stage.run().await.unwrap();
    assert_eq!(reply.body, ReplyBody::Text("forty-two".to_owned()));
    assert!(
        stage
            .sink
            .text()
            .contains("notice the agent wrote no output file"),
        "{}",
        stage.sink.text()
    );

    Stage::new("done_with 'Binding written: x'")
        .fails(expect![
            "Empty: the agent says that it has written its output, and has not"
        ])
        .await;
    Stage::new("done_with ''")
        .fails(expect!["Empty: the session returned nothing"])
        .await;
    let failure = Stage::new(r#"done_with '' '[{"tool_name":"Write"},{"tool_name":"Write"}]'"#)
        .fails(expect![
            "Permission: the session has no output; refused was: Write"
        ])
        .await;
    assert_eq!(failure.usage.output_tokens, 7, "a failed session has cost, too");
}

#[tokio::test]
async fn errors_of_the_service_are_named() {
    let result = |rest: &str| {
        format!(
            "init; echo '{{\"type\":\"result\",{rest},\"modelUsage\":{{\"a\":{{\"inputTokens\":3}}}}}}'; exit 1"
        )
    };
    let case = |rest: &str| Stage::new(&result(rest));
    case(r#""subtype":"success","is_error":true,"api_error_status":529,"result":"API Error: Overloaded""#)
        .fails(expect![
            "Backend: the model's service answered 529: API Error: Overloaded"
        ])
        .await;
    case(r#""subtype":"success","is_error":true,"api_error_status":null,"result":"Not logged in · Please run /login""#)
        .fails(expect!["Backend: Claude Code may not use the model (Not logged in · Please run /login): install Claude Code (`npm install -g @anthropic-ai/claude-code`) and start `claude` once to log in, or set ANTHROPIC_API_KEY"])
        .await;
    let failure = case(r#""subtype":"error_max_budget_usd","is_error":true,"total_cost_usd":0.5,"errors":["Reached maximum budget"]"#)
        .fails(expect!["Budget: the session was stopped: the budget is spent"])
        .await;
    assert_eq!(failure.usage.cost_usd, Some(0.5));
    case(r#""subtype":"error_during_execution","is_error":true,"errors":["one","two"]"#)
        .fails(expect![
            "Backend: Claude Code stopped (during execution): one; two"
        ])
        .await;
    // A key that is refused is not tried ten times.
    let retries = r#"init
for i in 1 2 3 4; do echo '{"type":"system","subtype":"api_retry","attempt":'$i',"error_status":401,"error":"authentication_failed"}'; done
sleep 1000"#;
    Stage::new(retries).fails(expect!["Backend: Claude Code may not use the model (authentication_failed): install Claude Code (`npm install -g @anthropic-ai/claude-code`) and start `claude` once to log in, or set ANTHROPIC_API_KEY"]).await;
    let refused = r#"echo '{"type":"control_response","response":{"subtype":"error","request_id":"initialize","error":"unknown subtype"}}'; sleep 1000"#;
    Stage::new(refused)
        .fails(expect![
            "Backend: Claude Code does not understand what it is asked (unknown subtype); it may be too old"
        ])
        .await;
}

#[tokio::test]
async fn one_that_breaks_down_says_how() {
    Stage::new("init; echo 'something broke' >&2; exit 7")
        .fails(expect![
            "Backend: Claude Code ended with exit code 7 and gave no result: something broke"
        ])
        .await;
    Stage::new(&format!("echo 'the key {KEY} is bad' >&2; exit 1"))
        .fails(expect!["Backend: Claude Code ended with exit code 1 and gave no result: the key [redacted ANTHROPIC_API_KEY] is bad"])
        .await;
    Stage::new("echo 'no JSON at all'; echo '[1,2]'; exit 0")
        .fails(expect![
            "Backend: Claude Code ended with exit code 0 and gave no result; it said: no JSON at all"
        ])
        .await;
    Stage::new("init; kill -9 $$")
        .fails(expect![
            "Backend: Claude Code was ended by signal 9 and gave no result"
        ])
        .await;
    Stage::new("init; exec >&-; trap '' TERM; kill -9 $$")
        .fails(expect![
            "Backend: Claude Code was ended by signal 9 and gave no result"
        ])
        .await;
    // A line that is no JSON does no harm to what follows.
    let stage = Stage::new("echo warning; init; printf x > \"$S/binding.md\"; done_with ok");
    assert_eq!(stage.run().await.unwrap().body, ReplyBody::Staged);
    // Half of a key is no better, where a message is cut.
    let failure = Stage::new(&format!("echo '{}{KEY}' >&2; exit 1", "x".repeat(110)))
        .run()
        .await
        .unwrap_err();
    assert!(!failure.message.contains(&KEY[..6]), "{}", failure.message);
}

#[tokio::test]
async fn one_that_is_too_old_is_told_nothing() {
    let stage = Stage::new("done_with ok");
    let say = |version: &str| {
        let text = stage.read("claude");
        let text = text.replacen("${VERSION:-2.1.197}", version, 1);
        std::fs::write(stage.path("claude"), text).unwrap();
    };
    say("2.0.76");
    let why = stage.run().await.unwrap_err().message;
    assert_eq!(
        why.replace(stage.root.path().to_str().unwrap(), "ROOT"),
        format!(
            "`ROOT/claude` is of version 2.0.76, and has to be of version 2.1.40 or newer\n  to set it up: {}",
            "install Claude Code (`npm install -g @anthropic-ai/claude-code`) and start `claude` once to log in, or set ANTHROPIC_API_KEY"
        )
    );
    assert_eq!(stage.read("log/prompt"), "", "it was not started but for that");
    // One that says something else, or nothing, is taken as it is.
    for odd in ["a wrapper 1.0.0", ""] {
        let stage = Stage::new("done_with ok");
        let text = stage
            .read("claude")
            .replacen("${VERSION:-2.1.197} (Claude Code)", odd, 1);
        std::fs::write(stage.path("claude"), text).unwrap();
        stage.run().await.unwrap();
    }
}

#[tokio::test]
async fn a_prompt_that_is_not_read_is_not_waited_for() {
    let stage = Stage::new("");
    // It holds its input open, reads nothing of it, and does not end.
    let program = "#!/bin/sh\n[ \"$1\" = --version ] && exit 1\necho '{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"ok\"}'\nexec sleep 1000\n";
    std::fs::write(stage.path("claude"), program).unwrap();
    let long = "x".repeat(1_000_000);
    let session = stage.session(|_, spawn| spawn.prompt.user = long);
    let reply = tokio::time::timeout(
        std::time::Duration::from_secs(120),
        stage.backend.sessions.spawn(session),
    );
    assert_eq!(
        reply.await.unwrap().unwrap().body,
        ReplyBody::Text("ok".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cancelled_or_dropped_leaves_nothing() {
    for dropped in [false, true] {
        let stage = Stage::new("init; (trap '' TERM; sleep 1000) & echo $! > \"$D/pid\"; wait");
        let cancel = CancelToken::new();
        let session = stage.session(|_, spawn| spawn.cancel = cancel.clone());
        let sessions = stage.backend.sessions.clone();
        let task = tokio::spawn(async move { sessions.spawn(session).await });
        let grandchild: u32 = wait_for(&stage.path("log/pid")).parse().unwrap();
        if dropped {
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        } else {
            cancel.cancel();
            assert_eq!(
                task.await.unwrap().unwrap_err().message,
                "the session was stopped"
            );
        }
        let child = stage.sink.child.lock().unwrap().unwrap();
        gone(child);
        gone(grandchild);
    }
}

#[tokio::test]
async fn one_that_uses_too_many_tokens_is_stopped() {
    let script = r#"init
for i in 1 2 3 4 5 6; do echo '{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m'$i'","usage":{"input_tokens":40,"cache_read_input_tokens":10},"content":[]}}'; done
sleep 1000"#;
    let stage = Stage::new(script);
    let session = stage.session(|_, spawn| spawn.budget.tokens = Some(120));
    let failure = stage.backend.sessions.spawn(session).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Budget, "{}", failure.message);
    assert_eq!(failure.usage.input_tokens, 150);
}

#[tokio::test]
async fn a_text_that_looks_like_a_command_is_a_text() {
    let stage = Stage::new("init; done_with ok");
    let session = stage.session(|_, spawn| spawn.prompt.user = " /clear all tables".to_owned());
    stage.backend.sessions.spawn(session).await.unwrap();
    let prompt: Json = serde_json::from_str(&stage.read("log/prompt")).unwrap();
    assert_eq!(prompt["message"]["content"], "The task:\n\n /clear all tables");
}

#[tokio::test]
async fn it_judges_in_a_form_that_is_forced_and_without_tools() {
    let script = r#"init
use 1 Bash '{"command":"ls"}'
use 2 StructuredOutput '{"decision":"yes"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"…","structured_output":{"reason":"all is said","decision":"yes","confidence":0.9},"total_cost_usd":0.01,"usage":{"input_tokens":2,"output_tokens":3}}'"#;
    let stage = Stage::with(script, PermissionAnswer::Allow, |spec| {
        spec.models.insert("sonnet".to_owned(), "middle-model".to_owned());
    });
    let verdict = stage
        .backend
        .judge
        .decide(condition("the text is done"))
        .await
        .unwrap();
    assert_eq!(verdict.decision, Decision::Yes);
    assert_eq!(verdict.reason, "all is said");
    assert_eq!(verdict.usage.output_tokens, 3);
    let init: Json = serde_json::from_str(&stage.read("log/init")).unwrap();
    assert_eq!(
        init["request"]["jsonSchema"]["properties"]["decision"]["enum"],
        json!(["yes", "no", "unsure"])
    );
    assert!(stage.read("log/prompt").contains("the text is done"));
    assert!(
        stage
            .read("log/args")
            .contains("--tools\n\n--model\nmiddle-model\n"),
        "{}",
        stage.read("log/args")
    );
    assert!(
        stage
            .answers()
            .starts_with("deny `Bash` is no tool of this session\nallow "),
        "{}",
        stage.answers()
    );
}

#[test]
fn where_it_is_not_installed_its_absence_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let process = BTreeMap::from([("PATH".to_owned(), folder.path().display().to_string())]);
    let variables = Variables::new(process, BTreeMap::new());
    let spec = BackendSpec {
        name: "claude".to_owned(),
        kind: "claude".to_owned(),
        ..BackendSpec::default()
    };
    let settings = BackendSettings::default();
    let context = BackendContext {
        settings: &settings,
        spec: &spec,
        variables: &variables,
    };
    let looked = ClaudeFactory.look(context).unwrap();
    assert_eq!(
        (looked.what.as_str(), looked.found),
        ("the program `claude` on the PATH", false)
    );
    expect![[r#"
        backend `claude` is not usable: the program `claude` was not found on the PATH
          to set it up: install Claude Code (`npm install -g @anthropic-ai/claude-code`) and start `claude` once to log in, or set ANTHROPIC_API_KEY"#]].assert_eq(&create(&spec, &variables).err().unwrap().to_string());
    let program = folder.path().join("claude");
    scripted::install(&program, "#!/bin/sh\n").unwrap();
    assert!(ClaudeFactory.look(context).unwrap().found);
}
