//! The `acp` backend against a script in the place of an agent: what it is told, what it may do by the kinds of the
//! protocol, and every way in which it can go wrong.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::{condition, gone, patterns, rule, wait_for};
use expect_test::{Expect, expect};
use mock_model::scripted;
use prose_agents::*;
use prose_model::backend::{BackendSpec, Variables};
use prose_model::*;
use serde_json::{Value as Json, json};

const KEY: &str = "sk-very-secret-0001";

/// Modes and models as older agents offer them.
const OLDER: &str = r#","modes":{"currentModeId":"yolo","availableModes":[{"id":"yolo","name":"All"},{"id":"default","name":"Ask"}]},"models":{"currentModelId":"auto","availableModels":[{"modelId":"auto","name":"Auto"},{"modelId":"x/big-opus-4","name":"Big"}]}"#;

struct Stage(common::Stage);

impl std::ops::Deref for Stage {
    type Target = common::Stage;

    fn deref(&self) -> &common::Stage {
        &self.0
    }
}

impl Stage {
    fn new(script: &str) -> Stage {
        Stage::with("my-agent", script, PermissionAnswer::Deny, |_| {})
    }

    /// An agent that has said hello, begun a session, and been told what to do.
    fn in_turn(script: &str) -> Stage {
        Stage::new(&format!("hello; session; turn\n{script}"))
    }

    fn with(
        program: &str,
        script: &str,
        answer: PermissionAnswer,
        change: impl FnOnce(&mut BackendSpec),
    ) -> Stage {
        let mut spec = BackendSpec {
            name: "mine".to_owned(),
            kind: "acp".to_owned(),
            ..BackendSpec::default()
        };
        change(&mut spec);
        let text = |places: &[(&str, &Path)]| scripted::acp(places, script);
        Stage(common::Stage::set(
            &AcpFactory,
            &variables(),
            spec,
            program,
            text,
            answer,
        ))
    }

    fn session(&self, change: impl FnOnce(&mut SessionRequest, &mut SessionSpawn)) -> SessionSpawn {
        self.0.session(|request, spawn| {
            request.model = None;
            change(request, spawn);
        })
    }

    async fn run(&self) -> Result<SessionReply, Failure> {
        self.backend.sessions.spawn(self.session(|_, _| {})).await
    }

    async fn fails(&self, expected: Expect) -> Failure {
        let (failure, text) = self.failure(self.session(|_, _| {}), KEY).await;
        expected.assert_eq(&text);
        failure
    }

    /// What the agent was told: method and parameters of each message.
    fn told(&self) -> Vec<(String, Json)> {
        let lines = self.read("log/in");
        let messages = lines
            .lines()
            .map(|line| serde_json::from_str::<Json>(line).unwrap());
        messages
            .map(|message| {
                let method = message["method"].as_str().unwrap_or_default().to_owned();
                (method, message["params"].clone())
            })
            .collect()
    }

    fn told_of(&self, method: &str) -> Json {
        let told = self.told();
        let found = told.iter().find(|(name, _)| name == method);
        found.map(|(_, params)| params.clone()).unwrap_or_default()
    }

    /// The options that were chosen, in the order of the questions.
    fn answers(&self) -> String {
        let lines = self.read("log/answers");
        let answers = lines.lines().map(|line| {
            let json: Json = serde_json::from_str(line).unwrap();
            let outcome = &json["result"]["outcome"];
            outcome["optionId"]
                .as_str()
                .or(outcome["outcome"].as_str())
                .unwrap()
                .to_owned()
        });
        answers.collect::<Vec<_>>().join(" ")
    }
}

fn create(spec: &BackendSpec, variables: &Variables) -> Result<Backend, BackendError> {
    common::create(&AcpFactory, spec, variables)
}

fn variables() -> Variables {
    let mut process: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in [
        ("PATH", std::env::var("PATH").unwrap().as_str()),
        ("HOME", "/nonexistent"),
        ("GEMINI_API_KEY", KEY),
        ("MY_KEY", KEY),
        ("OPENAI_API_KEY", "sk-of-another"),
    ] {
        process.insert(name.to_owned(), value.to_owned());
    }
    Variables::new(process, BTreeMap::new())
}

#[tokio::test]
async fn it_is_told_what_to_do_and_what_it_wrote_is_the_result() {
    let script = r#"echo 'Welcome to the agent!'
hello; session "$OFFER"
next; ok '{}'
next; ok '{}'
turn
update '{"sessionUpdate":"available_commands_update","availableCommands":[]}'
update '{"sessionUpdate":"a_novelty","new":[1,2]}'
echo '{"jsonrpc":"2.0","method":"_vendor/news","params":{"x":1}}'
echo '{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/passwd"}}'; next
update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}'
say 'I write'; say ' it.'
call 1 'Write out.md' edit
update '{"sessionUpdate":"usage_update","used":100,"size":1000,"cost":{"amount":0.25,"currency":"USD"}}'
printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of a helper"}}}}'
say 'Binding written: verdict\nSummary: it is fine'
printf 'the result' > "$S/binding.md"
end end_turn ',"usage":{"inputTokens":10,"cachedReadTokens":5,"outputTokens":7,"totalTokens":22}'"#;
    let script = format!("OFFER='{OLDER}'\n{script}");
    let stage = Stage::with("my-agent", &script, PermissionAnswer::Deny, |spec| {
        spec.api_key_env = Some("MY_KEY".to_owned());
    });
    let session = stage.session(|request, _| request.model = Some("opus".to_owned()));
    let reply = stage.backend.sessions.spawn(session).await.unwrap();
    assert_eq!(reply.body, ReplyBody::Staged);
    assert_eq!(
        reply.summary.as_deref(),
        Some("Binding written: verdict\nSummary: it is fine")
    );
    let used = Usage {
        input_tokens: 15,
        output_tokens: 7,
        cost_usd: Some(0.25),
    };
    assert_eq!(reply.usage, used);
    expect![[r#"
        started None x/big-opus-4
        text "I write"
        text " it."
        tool edit Write out.md
        usage 0 0
        text "Binding written: verdict\nSummary: it is fine"
        usage 15 7"#]]
    .assert_eq(&stage.sink.text());

    let told: Vec<String> = stage.told().into_iter().map(|(method, _)| method).collect();
    assert_eq!(
        told,
        [
            "initialize",
            "session/new",
            "session/set_mode",
            "session/set_model",
            "session/prompt",
            ""
        ]
    );
    let work = stage.path("work");
    assert_eq!(
        stage.told_of("initialize")["clientCapabilities"],
        json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false})
    );
    assert_eq!(
        stage.told_of("session/new"),
        json!({"cwd": work, "mcpServers": []})
    );
    assert_eq!(
        stage.told_of("session/set_mode"),
        json!({"sessionId": "s1", "modeId": "default"})
    );
    assert_eq!(stage.told_of("session/set_model")["modelId"], "x/big-opus-4");
    assert_eq!(
        stage.told_of("session/prompt")["prompt"],
        json!([{"type": "text", "text": "You are a critic.\n\nJudge the draft: it's \"fine\"."}])
    );
    let refused: Json = serde_json::from_str(stage.read("log/in").lines().last().unwrap()).unwrap();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("f"), &json!(-32601))
    );
    let env = stage.read("log/env");
    assert!(env.contains(&format!("MY_KEY={KEY}\n")), "{env}");
    assert!(
        !env.contains("OPENAI_API_KEY") && !env.contains("GEMINI_API_KEY"),
        "{env}"
    );
    assert_eq!(stage.read("log/pwd").trim(), work.display().to_string());
}

#[tokio::test]
async fn permissions_are_answered_by_the_kind_of_the_option_and_the_rules() {
    let script = r#"hello; session; turn
ask read '"locations":[{"path":"src/a.rs"}]'
ask read '"locations":[{"path":"docs/a.md"}]'
ask read '"title":"Read something"'
ask edit '"content":[{"type":"diff","path":"'"$S"'/binding.md","newText":"x"}]'
ask edit '"rawInput":{"file_path":"notes.md"}'
ask edit '"rawInput":{"file_path":"prose.toml"}'
ask edit '"locations":[{"path":"notes.md"}],"rawInput":{"filePath":"../out.md"}'
ask move '"rawInput":{"source":"notes.md","destination":".prose/.env"}'
ask delete '"locations":[{"path":"/etc/passwd"}]'
ask execute '"rawInput":{"command":"git status"}'
ask execute '"rawInput":{"command":["bash","-lc","git push"]}'
ask fetch '"rawInput":{"url":"https://example.com/x"}'
ask fetch '"rawInput":{"url":"https://example.org/x"}'
ask fetch '"title":"Search the web"'
ask search '"rawInput":{"path":"src","pattern":"fn main"}'
ask search '"rawInput":{"pattern":"../**"}'
ask switch_mode '"title":"Ready to code?"'
ask think '"title":"Plan"'
ask other '"title":"mcp tool"'
ask edit '"rawInput":{"file_path":"notes.md"}' '[{"optionId":"A","name":"x","kind":"allow_always"}]'
ask execute '"rawInput":{"command":"rm -r x"}' '[{"optionId":"A","name":"x","kind":"allow_always"}]'
wrote"#;
    let stage = Stage::with("my-agent", script, PermissionAnswer::Allow, |_| {});
    let session = stage.session(|request, _| {
        request.permissions = vec![
            rule("read", patterns(&["src/**"])),
            rule("write", patterns(&["notes.md"])),
            rule("network", patterns(&["example.com"])),
            rule("bash", patterns(&["git status"])),
        ];
    });
    stage.backend.sessions.spawn(session).await.unwrap();
    // A choice for each question above, in their order: five for files that are read and written, and so on.
    assert_eq!(
        stage.answers(),
        "a r r a a r r r r a r a r r a r r a a A cancelled"
    );
    // Only what no permission speaks of was left to a person.
    expect![[r#"
        started None 
        ask execute other: mcp tool"#]]
    .assert_eq(&stage.sink.text());
}

#[tokio::test]
async fn what_is_left_to_a_person_is_asked() {
    for (answer, option) in [(PermissionAnswer::Allow, "a"), (PermissionAnswer::Deny, "r")] {
        let script = r#"hello; session; turn
ask execute '"title":"make test"'
wrote"#;
        let stage = Stage::with("my-agent", script, answer, |_| {});
        stage.run().await.unwrap();
        assert_eq!(stage.answers(), option);
        assert!(
            stage.sink.text().contains("ask bash execute: make test"),
            "{}",
            stage.sink.text()
        );
    }
}

#[tokio::test]
async fn what_it_says_counts_when_it_wrote_nothing_unless_it_is_a_receipt() {
    let stage = Stage::in_turn("say 'First I look.'; call 1 look read; say forty; say -two; end");
    let reply = stage.run().await.unwrap();
    assert_eq!(reply.body, ReplyBody::Text("forty-two".to_owned()));
    assert_eq!(reply.usage, Usage::default(), "what is not told is not made up");
    assert!(
        stage
            .sink
            .text()
            .contains("notice the agent wrote no output file"),
        "{}",
        stage.sink.text()
    );
    Stage::in_turn("say 'Binding written: x'; end")
        .fails(expect![
            "Empty: the agent says that it has written its output, and has not"
        ])
        .await;
    Stage::in_turn("end")
        .fails(expect!["Empty: the session returned nothing"])
        .await;
    Stage::in_turn(r#"ask execute '"title":"ls"'; end"#)
        .fails(expect![
            "Permission: the session has no output; refused was: execute (nobody permitted it: bash ls)"
        ])
        .await;
}

#[tokio::test]
async fn a_turn_that_does_not_end_well_says_why() {
    for (reason, expected) in [
        (
            "max_tokens",
            expect![
                "Backend: the answer was cut at the model's limit of tokens; ask for less at once, or for parts"
            ],
        ),
        (
            "max_turn_requests",
            expect![
                "Backend: the agent `ROOT/my-agent` stopped: it has asked its model as often as it may in one turn; ask for less at once"
            ],
        ),
        (
            "refusal",
            expect!["Backend: the agent `ROOT/my-agent` declined to go on"],
        ),
        (
            "cancelled",
            expect!["Backend: the agent `ROOT/my-agent` says that its turn was cancelled, though nobody did"],
        ),
        (
            "tired",
            expect!["Backend: the agent `ROOT/my-agent` stopped for a reason that is not known: tired"],
        ),
    ] {
        let quota = r#",\"_meta\":{\"quota\":{\"token_count\":{\"input_tokens\":3,\"output_tokens\":4}}}"#;
        let stage = Stage::in_turn(&format!("printf x > \"$S/binding.md\"; end {reason} \"{quota}\""));
        let failure = stage.fails(expected).await;
        assert_eq!(failure.usage.tokens(), 7, "a failed session has cost, too");
    }
    Stage::in_turn(r#"ask edit '"locations":[{"path":"prose.toml"}]'; end cancelled"#)
        .fails(expect!["Permission: the agent `ROOT/my-agent` ended its turn when it was refused: edit (prose.toml is protected: the configuration of this workspace)"])
        .await;
    Stage::in_turn(r#"fails '{"code":-32603,"message":"Internal error","data":{"details":"API Error: 529 Overloaded"}}'"#)
        .fails(expect!["Backend: the agent `ROOT/my-agent` refuses the turn: Internal error: API Error: 529 Overloaded"])
        .await;
    let costly = r#"update '{"sessionUpdate":"usage_update","used":1,"size":9,"cost":{"amount":0.75,"currency":"USD"}}'; sleep 1000"#;
    let stage = Stage::in_turn(costly);
    let session = stage.session(|_, spawn| spawn.budget.usd = Some(0.5));
    let failure = stage.backend.sessions.spawn(session).await.unwrap_err();
    assert_eq!(
        (failure.kind, failure.usage.cost_usd),
        (ErrorKind::Budget, Some(0.75))
    );
}

#[tokio::test]
async fn one_that_breaks_down_says_how() {
    let stage = Stage::with(
        "my-agent",
        &format!("echo 'no model: the key {KEY} is bad' >&2; exit 7"),
        PermissionAnswer::Deny,
        |spec| spec.api_key_env = Some("MY_KEY".to_owned()),
    );
    stage.fails(expect!["Backend: the agent `ROOT/my-agent` ended with exit code 7 before it was ready: no model: the key [redacted MY_KEY] is bad"]).await;
    Stage::new("echo 'usage: my-agent'; exit 0")
        .fails(expect!["Backend: the agent `ROOT/my-agent` ended with exit code 0 before it was ready; it said: usage: my-agent"])
        .await;
    Stage::new("hello; next; kill -9 $$")
        .fails(expect![
            "Backend: the agent `ROOT/my-agent` was ended by signal 9 before it was ready"
        ])
        .await;
    Stage::in_turn("say hm; echo 'out of memory' >&2; exit 3")
        .fails(expect!["Backend: the agent `ROOT/my-agent` ended with exit code 3 before its turn was over: out of memory"])
        .await;
    Stage::in_turn("exec >&-; sleep 1000")
        .fails(expect![
            "Backend: the agent `ROOT/my-agent` closed its output before its turn was over"
        ])
        .await;
    Stage::new("next; ok '{\"protocolVersion\":2}'; next")
        .fails(expect!["Backend: the agent `ROOT/my-agent` can't be spoken to: Invalid request: required ACP protocol version 1 but peer negotiated 2; use a matching implementation for the negotiated protocol version"])
        .await;
    Stage::new("next; ok '{}'; next").fails(expect!["Backend: the agent `ROOT/my-agent` can't be spoken to: Invalid params: initialize.protocolVersion must be a valid ACP protocol version"]).await;
    Stage::new("next; fails '{\"code\":-32601,\"message\":\"Method not found\"}'; next")
        .fails(expect![
            "Backend: the agent `ROOT/my-agent` can't be spoken to: Method not found"
        ])
        .await;
    Stage::new("hello; next; ok '{}'; next")
        .fails(expect![
            "Backend: the agent `ROOT/my-agent` began a session without an id"
        ])
        .await;
    Stage::new(&format!("hello; session '{OLDER}'; next; fails '{{\"code\":-32602,\"message\":\"Invalid params\",\"data\":\"no such mode\"}}'; next"))
        .fails(expect!["Backend: the agent `ROOT/my-agent` refuses the mode `default`: Invalid params: no such mode"])
        .await;
}

#[tokio::test]
async fn models_are_those_that_the_agent_offers() {
    let script = format!(
        "hello; session '{OLDER}'; next; ok '{{}}'; next; turn=$id; case $line in *set_model*) ok '{{}}'; turn;; esac; wrote"
    );
    let run = async |model: Option<&str>, models: &[(&str, &str)]| {
        let stage = Stage::with("my-agent", &script, PermissionAnswer::Deny, |spec| {
            for (name, id) in models {
                spec.models.insert((*name).to_owned(), (*id).to_owned());
            }
        });
        let session = stage.session(|request, _| request.model = model.map(ToOwned::to_owned));
        let failure = stage.backend.sessions.spawn(session).await.err();
        let chosen = stage.told_of("session/set_model")["modelId"].to_string();
        let message =
            failure.map(|failure| failure.message.replace(&stage.path("").display().to_string(), ""));
        let notices = stage
            .sink
            .text()
            .replace(&stage.path("").display().to_string(), "");
        format!("{chosen} {} {notices}", message.unwrap_or_default())
    };
    expect!["null  started None auto"].assert_eq(&run(None, &[]).await);
    expect![[r#""x/big-opus-4"  started None x/big-opus-4"#]]
        .assert_eq(&run(None, &[("default", "big")]).await);
    expect![[r#""x/big-opus-4"  started None x/big-opus-4"#]]
        .assert_eq(&run(Some("sonnet"), &[("sonnet", "x/big-opus-4")]).await);
    expect![[r#"
        null  notice the agent `my-agent` has no model `haiku`, so that its own is used; `[models]` in prose.toml can name one of auto, x/big-opus-4
        started None auto"#]]
    .assert_eq(&run(Some("haiku"), &[]).await);
    expect!["null the agent `my-agent` has no model `gpt-9`; it offers auto, x/big-opus-4 "]
        .assert_eq(&run(Some("gpt-9"), &[]).await);
    expect!["null the agent `my-agent` has no model `small`; it offers auto, x/big-opus-4 "]
        .assert_eq(&run(Some("haiku"), &[("haiku", "small")]).await);
}

#[tokio::test]
async fn what_is_not_offered_is_told() {
    let offer = r#","configOptions":[{"id":"m","category":"mode","type":"select","currentValue":"yolo","options":[{"value":"yolo","name":"All"}]}]"#;
    let script = format!("hello; session '{offer}'; turn; wrote");
    let stage = Stage::with("my-agent", &script, PermissionAnswer::Deny, |_| {});
    let session = stage.session(|request, _| request.model = Some("opus".to_owned()));
    stage.backend.sessions.spawn(session).await.unwrap();
    let root = stage.path("").display().to_string();
    expect![[r#"
        notice of the modes of the agent `my-agent` (yolo) none is known in which it asks before it acts; it runs in `yolo`
        notice the agent `my-agent` offers no choice of models: `opus` is left to it
        started None "#]]
    .assert_eq(&stage.sink.text().replace(&root, ""));
}

#[tokio::test]
async fn logging_in_is_done_by_a_key_or_left_to_its_user() {
    let locked = "hello; next; fails '{\"code\":-32000,\"message\":\"Authentication required\"}'";
    Stage::new(&format!("{locked}; next"))
        .fails(expect!["Backend: the agent `ROOT/my-agent` is not logged in (Authentication required): log in with the agent's own program"])
        .await;
    // One that is known, and for which there is a key.
    let script = format!("{locked}; next; ok '{{}}'; session; turn; wrote");
    let stage = Stage::with("gemini", &script, PermissionAnswer::Deny, |_| {});
    stage.run().await.unwrap();
    assert_eq!(
        stage.told_of("authenticate"),
        json!({"methodId": "gemini-api-key"})
    );
    assert!(stage.read("log/env").contains(&format!("GEMINI_API_KEY={KEY}\n")));
    let script =
        format!("{locked}; next; fails '{{\"code\":-32000,\"message\":\"The key is expired\"}}'; exit 0");
    Stage::with("gemini", &script, PermissionAnswer::Deny, |_| {})
        .fails(expect![
            "Backend: the agent `gemini` is not logged in (The key is expired): start `gemini` once to log in, or set GEMINI_API_KEY"
        ])
        .await;
}

#[tokio::test]
async fn it_judges_without_tools() {
    let script = r#"hello; session; turn
ask read '"locations":[{"path":"a.md"}]'
say 'I look.'; call 1 look read
say '{\"reason\":\"all is said\",\"decision\":\"yes\",'; say '\"confidence\":0.9}'
end"#;
    let stage = Stage::with("my-agent", script, PermissionAnswer::Allow, |_| {});
    let verdict = stage
        .backend
        .judge
        .decide(condition("the text is done"))
        .await
        .unwrap();
    assert_eq!(
        (verdict.decision, verdict.reason.as_str()),
        (Decision::Yes, "all is said")
    );
    assert_eq!(stage.answers(), "r");
    let prompt = stage.told_of("session/prompt")["prompt"][0]["text"].to_string();
    assert!(
        prompt.contains("the text is done") && prompt.contains("Answer with one JSON object"),
        "{prompt}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cancelled_or_dropped_leaves_nothing() {
    for dropped in [false, true] {
        let script = r#"(trap '' TERM; sleep 1000) & echo $! > "$D/pid"; next; end cancelled"#;
        let stage = Stage::in_turn(script);
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
            assert_eq!(stage.told_of("session/cancel"), json!({"sessionId": "s1"}));
        }
        let child = stage.sink.child.lock().unwrap().unwrap();
        gone(child);
        gone(grandchild);
    }
}

#[test]
fn what_is_missing_is_named() {
    let fails = |command: Option<&str>, base_url: Option<&str>| {
        let spec = BackendSpec {
            name: "mine".to_owned(),
            kind: "acp".to_owned(),
            command: command.map(ToOwned::to_owned),
            base_url: base_url.map(ToOwned::to_owned),
            ..BackendSpec::default()
        };
        create(&spec, &Variables::default()).err().unwrap().to_string()
    };
    expect![[r#"
        backend `mine` is not usable: it is not said which agent it is; known are claude, codex, gemini, opencode, and any program that speaks the protocol will do
          to set it up: name an agent that speaks the Agent Client Protocol: `[backends.NAME]` with `kind = "acp"` and `command` = claude, codex, gemini, opencode, or any program"#]].assert_eq(&fails(None, None));
    expect![[r#"
        backend `mine` is not usable: the program `codex-acp` was not found on the PATH
          to set it up: `npm install -g @agentclientprotocol/codex-acp`, then run `codex login`, or set OPENAI_API_KEY"#]].assert_eq(&fails(Some("codex"), None));
    expect![[r#"
        backend `mine` is not usable: the program `no-such-agent` was not found on the PATH
          to set it up: name an agent that speaks the Agent Client Protocol: `[backends.NAME]` with `kind = "acp"` and `command` = claude, codex, gemini, opencode, or any program"#]].assert_eq(&fails(Some("no-such-agent"), None));
    expect![[r#"
        backend `mine` is not usable: `base_url` can't be handed to this agent: set the address in the agent's own settings
          to set it up: name an agent that speaks the Agent Client Protocol: `[backends.NAME]` with `kind = "acp"` and `command` = claude, codex, gemini, opencode, or any program"#]].assert_eq(&fails(Some("/bin/sh"), Some("http://127.0.0.1:1")));
}

#[tokio::test]
async fn one_that_says_nothing_is_not_waited_for() {
    let silent = |script: &str| {
        Stage::with("my-agent", script, PermissionAnswer::Deny, |spec| {
            spec.waits.connect = Some(Duration::from_secs(1));
        })
    };
    silent("echo 'usage: my-agent [OPTIONS]'; sleep 1000")
        .fails(expect!["Timeout: the agent `ROOT/my-agent` was not ready after 1 s (`connect_timeout`); it said: usage: my-agent [OPTIONS]; it has to speak the Agent Client Protocol on its standard input and output"])
        .await;
    silent("hello; next; sleep 1000").fails(expect!["Timeout: the agent `ROOT/my-agent` was not ready after 1 s (`connect_timeout`); it has to speak the Agent Client Protocol on its standard input and output"]).await;
}
