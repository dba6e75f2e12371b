//! The `openclaw` backend against a gateway that isn't one: what it is told, what it may do, how an answer is picked up that
//! came while nobody listened, and every way in which it can go wrong.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
mod without_gateway;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use common::{Recorder, condition, patterns, request, rule, spawn};
use expect_test::{Expect, expect};
use mock_model::openclaw::{GatewayScript, MockGateway, Refusal, Run, Step};
use prose_agents::*;
use prose_model::backend::{BackendSpec, Variables, Waits};
use prose_model::*;
use serde_json::{Value as Json, json};

const TOKEN: &str = "token-very-secret-0001";

struct Stage {
    root: tempfile::TempDir,
    gateway: MockGateway,
    backend: Backend,
    sink: Arc<Recorder>,
}

fn script() -> GatewayScript {
    GatewayScript::new(TOKEN)
        .model("mock", "claude-opus-4-5")
        .model("mock", "a")
}

impl Stage {
    fn new(script: GatewayScript) -> Stage {
        Stage::with(script, PermissionAnswer::Deny, |_| {})
    }

    /// A gateway that does this for any message.
    fn doing(steps: impl FnOnce(&Stage) -> Vec<Step>) -> Stage {
        // The folder is known only once it is there.
        let root = tempfile::tempdir().unwrap();
        let mut stage = Stage::at(root, GatewayScript::new(TOKEN), PermissionAnswer::Deny, |_| {});
        let steps = steps(&stage);
        let root = std::mem::replace(&mut stage.root, tempfile::tempdir().unwrap());
        Stage::at(
            root,
            script().run(Run::on("", steps)),
            PermissionAnswer::Deny,
            |_| {},
        )
    }

    fn with(script: GatewayScript, answer: PermissionAnswer, change: impl FnOnce(&mut BackendSpec)) -> Stage {
        Stage::at(tempfile::tempdir().unwrap(), script, answer, change)
    }

    fn at(
        root: tempfile::TempDir,
        script: GatewayScript,
        answer: PermissionAnswer,
        change: impl FnOnce(&mut BackendSpec),
    ) -> Stage {
        let path = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("work/.prose/staging")).unwrap();
        let gateway = MockGateway::start(script).unwrap();
        let mut spec = BackendSpec {
            name: "openclaw".to_owned(),
            kind: "openclaw".to_owned(),
            base_url: Some(gateway.url()),
            api_key_env: Some("GATEWAY_TOKEN".to_owned()),
            ..BackendSpec::default()
        };
        change(&mut spec);
        Stage {
            backend: create(&spec).unwrap(),
            root,
            gateway,
            sink: Recorder::new(answer),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn output(&self) -> String {
        self.path("work/.prose/staging/binding.md").display().to_string()
    }

    fn session(&self, change: impl FnOnce(&mut SessionRequest)) -> SessionSpawn {
        let mut asked = request();
        asked.model = None;
        change(&mut asked);
        let mut spawn = spawn(self.path("work"), self.sink.clone());
        spawn.request = Arc::new(asked);
        spawn
    }

    async fn run(&self) -> Result<SessionReply, Failure> {
        self.backend.sessions.spawn(self.session(|_| {})).await
    }

    async fn fails(&self, expected: Expect) -> Failure {
        let failure = self.run().await.unwrap_err();
        self.shown(&failure, expected);
        failure
    }

    fn shown(&self, failure: &Failure, expected: Expect) {
        let text = format!("{:?}: {}", failure.kind, failure.message);
        let text = text.replace(&self.gateway.url(), "GATEWAY");
        let root = self.path("").display().to_string();
        expected.assert_eq(&text.replace(root.trim_end_matches('/'), "ROOT"));
        assert!(!failure.message.contains(TOKEN));
    }

    /// What the gateway was told to begin a run with.
    fn told(&self) -> Json {
        self.gateway
            .asked_for("agent")
            .first()
            .cloned()
            .unwrap_or_default()
    }

    /// What was decided about the gateway's questions.
    fn decisions(&self) -> Vec<String> {
        let asked = self.gateway.asked().into_iter();
        asked
            .filter(|asked| asked.method.ends_with("approval.resolve"))
            .map(|asked| asked.params["decision"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What an earlier process had on record.
    fn handle(&self) -> Json {
        let text = self.sink.text();
        let line = text
            .lines()
            .find(|line| line.starts_with("started Some("))
            .unwrap();
        assert!(line.contains("session") && line.contains("run"), "{line}");
        let told = self.told();
        json!({"session": told["sessionKey"], "run": told["idempotencyKey"]})
    }

    async fn until(&self, is: impl Fn(&MockGateway) -> bool) {
        let waiting = self.gateway.wait(is);
        tokio::time::timeout(Duration::from_secs(60), waiting)
            .await
            .expect("it comes to that");
    }
}

fn create(spec: &BackendSpec) -> Result<Backend, BackendError> {
    let settings = BackendSettings::default();
    let mut process: BTreeMap<String, String> = BTreeMap::new();
    process.insert("GATEWAY_TOKEN".to_owned(), TOKEN.to_owned());
    OpenClawFactory.create(BackendContext {
        settings: &settings,
        spec,
        variables: &Variables::new(process, BTreeMap::new()),
    })
}

#[tokio::test]
async fn it_is_told_what_to_do_and_what_it_wrote_is_the_result() {
    let stage = Stage::doing(|stage| {
        vec![
            Step::say("I read"),
            Step::say(" it."),
            Step::tool("read", json!({"path": "draft.md"})),
            Step::write(stage.output(), "the result"),
            Step::say("Binding written: verdict\nSummary: it is fine"),
        ]
    });
    let spawn = stage.session(|request| request.model = Some("opus".to_owned()));
    let reply = stage.backend.sessions.spawn(spawn).await.unwrap();
    assert_eq!(reply.body, ReplyBody::Staged);
    assert!(reply.summary.unwrap().contains("it is fine"));
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: 130,
            output_tokens: 20,
            cost_usd: Some(0.5)
        }
    );
    let hello = &stage.gateway.asked_for("connect")[0];
    assert_eq!(hello["auth"], json!({"right": true}));
    assert_eq!(hello["caps"], json!(["tool-events", "approvals"]));
    let created = &stage.gateway.asked_for("sessions.create")[0];
    assert_eq!(created["permissionMode"], "guarded");
    assert_eq!(created["visibility"], "draft");
    assert_eq!(created["model"], "mock/claude-opus-4-5");
    assert_eq!(created["cwd"], stage.path("work").display().to_string());
    let told = stage.told();
    assert_eq!(told["message"], "Judge the draft: it's \"fine\".");
    assert_eq!(told["extraSystemPrompt"], "You are a critic.");
    assert_eq!(told["deliver"], false);
    assert_eq!(created["key"], told["sessionKey"]);
    let run = told["idempotencyKey"].as_str().unwrap();
    assert_eq!(told["sessionKey"], format!("agent:main:{run}"));
    expect![[r#"
        text "I read"
        usage 0 6
        text " it."
        usage 0 10
        tool read draft.md
        tool write ROOT/work/.prose/staging/binding.md
        text "Binding written: verdict\nSummary: it is fine"
        usage 0 44
        usage 130 20"#]]
    .assert_eq(&told_without_handle(&stage));
}

/// What was reported, but for the line that has ids in it.
fn told_without_handle(stage: &Stage) -> String {
    let text = stage.sink.text();
    let lines = text.lines().filter(|line| !line.starts_with("started"));
    let root = stage.path("").display().to_string();
    lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace(root.trim_end_matches('/'), "ROOT")
}

#[tokio::test]
async fn what_it_said_is_the_result_where_it_wrote_nothing() {
    let stage = Stage::doing(|_| {
        vec![
            Step::failing("read", json!({"path": "none.md"})),
            Step::say("It is fine."),
        ]
    });
    let reply = stage.run().await.unwrap();
    assert_eq!(reply.body, ReplyBody::Text("It is fine.".to_owned()));
    let said = stage.sink.text();
    assert!(
        said.contains("notice 1 of 1 tool calls of the session failed"),
        "{said}"
    );
    assert!(said.contains("notice the agent wrote no output file"), "{said}");
}

#[tokio::test]
async fn each_session_has_a_key_of_its_own_and_the_same_one_again() {
    let stage = Stage::doing(|_| vec![Step::say("fine")]);
    stage.run().await.unwrap();
    let mut other = stage.session(|_| {});
    other.effect = "e2".into();
    stage.backend.sessions.spawn(other).await.unwrap();
    let mut later = stage.session(|_| {});
    later.staging = stage.path("work/.prose/staging-of-lease-2");
    stage.backend.sessions.spawn(later).await.unwrap();
    // What has its answer is not run again.
    stage.run().await.unwrap();
    let runs = stage.gateway.asked_for("agent");
    let mut keys: Vec<&str> = runs
        .iter()
        .map(|run| run["idempotencyKey"].as_str().unwrap())
        .collect();
    assert_eq!((keys.len(), keys[0]), (4, keys[3]));
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), stage.gateway.runs()), (3, 3));
}

#[tokio::test]
async fn models_are_found_and_words_for_classes_may_be_missing() {
    let stage = Stage::doing(|_| vec![Step::say("fine")]);
    let model = async |name: &str| {
        let spawn = stage.session(|request| request.model = Some(name.to_owned()));
        stage.backend.sessions.spawn(spawn).await
    };
    model("haiku").await.unwrap();
    assert!(
        stage
            .sink
            .text()
            .contains("notice the gateway has no model `haiku`")
    );
    let failure = model("gpt-9").await.unwrap_err();
    stage.shown(
        &failure,
        expect!["Backend: the gateway has no model `gpt-9`; it offers mock/claude-opus-4-5, mock/a"],
    );
    let configured = Stage::with(
        script().run(Run::on("", [Step::say("fine")])),
        PermissionAnswer::Deny,
        |spec| {
            spec.models.insert("default".to_owned(), "x/y".to_owned());
        },
    );
    configured.run().await.unwrap();
    assert_eq!(configured.gateway.asked_for("sessions.create")[0]["model"], "x/y");
    assert_eq!(configured.gateway.asked_for("models.list").len(), 0);
}

#[tokio::test]
async fn commands_are_asked_for() {
    let steps = [Step::Approve("git push".to_owned()), Step::say("done")];
    let run = || script().run(Run::on("", steps.clone()));
    // Nobody is there to be asked.
    let stage = Stage::with(run(), PermissionAnswer::Deny, |_| {});
    let reply = stage.run().await.unwrap();
    assert_eq!(reply.body, ReplyBody::Text("done".to_owned()));
    assert_eq!(stage.decisions(), ["deny"]);
    assert!(stage.sink.text().contains("ask bash exec: git push"));
    // Somebody grants it; a rule does; a rule doesn't.
    let stage = Stage::with(run(), PermissionAnswer::Allow, |_| {});
    stage.run().await.unwrap();
    assert_eq!(stage.decisions(), ["allow-once"]);
    for (pattern, decision) in [("git *", "allow-once"), ("cargo *", "deny")] {
        let stage = Stage::with(run(), PermissionAnswer::Allow, |_| {});
        let spawn = stage.session(|request| request.permissions.push(rule("bash", patterns(&[pattern]))));
        stage.backend.sessions.spawn(spawn).await.unwrap();
        assert_eq!(stage.decisions(), [decision]);
        assert!(!stage.sink.text().contains("ask"), "{}", stage.sink.text());
    }
}

#[tokio::test]
async fn what_a_plugin_wants_is_asked_of_a_person() {
    let steps = [Step::ApprovePlugin("Post it".to_owned()), Step::say("done")];
    let run = || script().run(Run::on("", steps.clone()));
    let stage = Stage::with(run(), PermissionAnswer::Allow, |_| {});
    stage.run().await.unwrap();
    assert_eq!(stage.decisions(), ["allow-once"]);
    assert!(stage.sink.text().contains("ask execute odd: Post it: what it is"));
    let stage = Stage::with(run(), PermissionAnswer::Allow, |_| {});
    let spawn = stage.session(|request| request.permissions.push(rule("bash", PermissionValue::Deny)));
    stage.backend.sessions.spawn(spawn).await.unwrap();
    assert_eq!(stage.decisions(), ["deny"]);
}

#[tokio::test]
async fn no_half_of_a_secret_is_left_where_a_text_is_cut() {
    // Up to the place where each text is cut there is a part of the secret.
    let across = |longest: usize| format!("{}{TOKEN}", "x".repeat(longest - 10));
    let steps = [
        Step::Approve(across(200)),
        Step::ApprovePlugin(across(200)),
        Step::tool(&across(60), json!({"command": across(200)})),
    ];
    let stage = Stage::with(script().run(Run::on("", steps)), PermissionAnswer::Deny, |_| {});
    *stage.sink.redactor.lock().unwrap() = Redactor::new([("GATEWAY_TOKEN", TOKEN)]);
    let failure = stage.run().await.unwrap_err();
    let said = format!("{}\n{}", stage.sink.text(), failure.message);
    // A person is asked about the whole of a command: nobody says yes to what is hidden.
    let told: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("ask bash"))
        .collect();
    for line in &told {
        assert!(!line.contains(&TOKEN[..5]), "{line}");
    }
    for head in [
        "ask execute odd",
        "tool exec",
        "tool xxx",
        "the session has no output",
    ] {
        let is_told = |line: &&str| line.starts_with(head) && line.contains("xxx[redacted");
        assert!(told.iter().any(is_told), "{head}: {said}");
    }
}

#[tokio::test]
async fn a_session_that_may_not_write_can_only_read() {
    let stage = Stage::doing(|_| vec![Step::say("fine")]);
    for (value, mode) in [
        (PermissionValue::Deny, "read-only"),
        (PermissionValue::Prompt, "read-only"),
        (PermissionValue::Allow, "guarded"),
    ] {
        let mut spawn = stage.session(|request| request.permissions.push(rule("write", value)));
        spawn.effect = mode.into();
        stage.backend.sessions.spawn(spawn).await.unwrap();
        let created = stage.gateway.asked_for("sessions.create");
        assert_eq!(created.last().unwrap()["permissionMode"], mode);
    }
}

#[tokio::test]
async fn a_session_that_did_what_is_not_permitted_is_stopped() {
    let cases = [
        ("read", json!({"path": ".prose/.env"})),
        ("read", json!({"path": "/etc/passwd"})),
        ("read", json!({"path": "../other"})),
        ("write", json!({"path": "prose.toml", "content": "x"})),
        ("edit", json!({"path": ".git/hooks/pre-commit"})),
        ("write", json!({"path": "src/main.rs", "content": "x"})),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Add File: src/a\n"}),
        ),
        ("web_fetch", json!({"url": "https://evil.example/"})),
        ("web_fetch", json!({"url": "http://127.0.0.1:9/"})),
        ("web_search", json!({"query": "x"})),
    ];
    for (tool, args) in cases {
        let steps = [Step::tool(tool, args.clone()), Step::Hold, Step::say("secret: 1")];
        let stage = Stage::new(script().run(Run::on("", steps)));
        let spawn = stage.session(|request| {
            request.permissions = vec![
                rule("write", patterns(&["notes/"])),
                rule("network", patterns(&["good.example"])),
            ];
        });
        let failure = stage.backend.sessions.spawn(spawn).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Permission, "{tool} {args}: {failure:?}");
        assert!(
            failure.message.contains(&format!("the gateway let `{tool}` do")),
            "{failure:?}"
        );
        stage.until(|gateway| gateway.ended() == 1).await;
    }
    // What the gateway itself refused did nothing.
    let steps = [
        Step::failing("read", json!({"path": "/etc/passwd"})),
        Step::tool("read", json!({"path": "notes/a.md"})),
        Step::tool("write", json!({"path": "notes/b.md"})),
        Step::say("fine"),
    ];
    let stage = Stage::new(script().run(Run::on("", steps)));
    stage.run().await.unwrap();
}

#[tokio::test]
async fn errors_are_told_with_what_the_agent_said() {
    let failing = |step: Step| Stage::new(script().run(Run::on("", [Step::say("Hm."), step])));
    failing(Step::Fail(format!("rate limited, key {TOKEN}")))
        .fails(expect![
            "Backend: the agent failed: rate limited, key [redacted GATEWAY_TOKEN]"
        ])
        .await;
    let failure = failing(Step::TimeOut)
        .fails(expect![
            "Timeout: the gateway's own time limit for a session was reached (`agents.defaults.timeoutSeconds`)"
        ])
        .await;
    assert_eq!(failure.usage.output_tokens, 20);
    Stage::new(script())
        .fails(expect!["Backend: the agent failed: no run fits the message"])
        .await;
    Stage::doing(|_| Vec::new())
        .fails(expect!["Empty: the session returned nothing"])
        .await;
}

#[tokio::test]
async fn a_gateway_that_turns_it_away_is_told_of() {
    let refusing = |refusal: Refusal| {
        let waits = Waits {
            connect: Some(Duration::from_millis(500)),
            ..Waits::default()
        };
        Stage::with(script().refuse(refusal), PermissionAnswer::Deny, |spec| {
            spec.waits = waits
        })
    };
    refusing(Refusal::Protocol)
        .fails(expect!["Backend: GATEWAY speaks another version of the protocol than 4: OpenClaw 2026.9 or later is needed"])
        .await;
    refusing(Refusal::Pairing).fails(expect!["Backend: GATEWAY wants a paired device, as it does of other machines: use a gateway on this machine, or one that is reached through a tunnel such as `ssh -L`"]).await;
    refusing(Refusal::Closes)
        .fails(expect![
            "Backend: GATEWAY closes the connection before it has said hello"
        ])
        .await;
    refusing(Refusal::NoWebSocket)
        .fails(expect![
            "Backend: GATEWAY answers HTTP 200 and is no OpenClaw gateway"
        ])
        .await;
    let silent = refusing(Refusal::Silent).run().await.unwrap_err();
    assert!(silent.message.contains("did not answer for 0.5 s"), "{silent:?}");
    let stage = Stage::with(GatewayScript::new("another"), PermissionAnswer::Deny, |_| {});
    stage.fails(expect!["Backend: GATEWAY refuses the token in GATEWAY_TOKEN: it has to be the `gateway.auth.token` of the gateway's openclaw.json"]).await;
    // One that is starting is waited for.
    let starting = script()
        .run(Run::on("", [Step::say("fine")]))
        .refuse(Refusal::Starting(3));
    let stage = Stage::new(starting);
    stage.run().await.unwrap();
    assert_eq!(stage.gateway.asked_for("connect").len(), 4);
}

#[tokio::test]
async fn nobody_is_there() {
    let stage = Stage::with(script(), PermissionAnswer::Deny, |_| {});
    let Stage {
        root,
        gateway,
        backend,
        sink,
    } = stage;
    let url = gateway.url();
    drop(gateway);
    let path = root.path().canonicalize().unwrap();
    let failure = backend
        .sessions
        .spawn(spawn(path.join("work"), sink))
        .await
        .unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Backend);
    assert!(
        failure.message.contains(&format!("{url} can't be reached"))
            && failure.message.contains("gateway run"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_anew_and_the_answer_picked_up() {
    // It goes on meanwhile, or has ended before anybody is back; what it asks is taken up.
    for steps in [
        vec![Step::say("a"), Step::Drop, Step::Hold, Step::say("b")],
        vec![Step::say("a"), Step::Drop, Step::say("b")],
        vec![
            Step::say("a"),
            Step::Drop,
            Step::Approve("git push".to_owned()),
            Step::say("ab"),
        ],
    ] {
        let asks = steps.len() == 4 && matches!(steps[2], Step::Approve(_));
        let stage = Stage::new(script().waits().run(Run::on("", steps)));
        let running = stage.run();
        let letting = async {
            stage
                .until(|gateway| gateway.asked_for("chat.history").len() == 1)
                .await;
            stage.gateway.release();
        };
        let (reply, ()) = tokio::join!(running, letting);
        let reply = reply.unwrap();
        assert_eq!(reply.body, ReplyBody::Text("ab".to_owned()));
        assert_eq!((reply.usage.input_tokens, reply.usage.cost_usd), (130, Some(0.5)));
        assert_eq!(stage.gateway.runs(), 1);
        assert_eq!(stage.decisions().len(), usize::from(asks));
    }
}

#[tokio::test]
async fn a_silent_gateway_is_gone() {
    // It never says that it is there.
    let script = script()
        .tick(Duration::from_millis(100))
        .run(Run::on("", [Step::Hold, Step::say("fine")]));
    let stage = Stage::new(script);
    let running = stage.run();
    let letting = async {
        stage.until(|gateway| gateway.runs() == 1).await;
        stage.gateway.release();
    };
    let (reply, ()) = tokio::join!(running, letting);
    reply.unwrap();
}

#[tokio::test]
async fn a_gateway_that_was_started_anew_has_lost_the_session() {
    let steps = [Step::say("a"), Step::Drop, Step::Hold];
    let stage = Stage::new(script().forgets().run(Run::on("", steps)));
    stage
        .fails(expect![
            "Backend: the gateway does not know the session any more; it may have been started anew"
        ])
        .await;
}

#[tokio::test]
async fn what_an_earlier_process_began_is_taken_up() {
    for ends_before in [true, false] {
        let stage = Stage::new(script().run(Run::on("", [Step::Hold, Step::say("late")])));
        // The process ends without a word: what it had asked for goes on.
        let backend = stage.backend.clone();
        let spawn = stage.session(|_| {});
        let gone = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let _ = runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(60), backend.sessions.spawn(spawn)).await
            });
        });
        stage.until(|gateway| gateway.runs() == 1).await;
        let handle = stage.handle();
        let later = Recorder::new(PermissionAnswer::Deny);
        let mut spawn = stage.session(|_| {});
        spawn.sink = later;
        spawn.lease = 2;
        if ends_before {
            stage.gateway.release();
            stage.until(|gateway| gateway.ended() == 1).await;
        }
        let taken = stage.backend.sessions.reattach(spawn, handle);
        let letting = async {
            stage
                .until(|gateway| gateway.asked_for("chat.history").len() == 1)
                .await;
            stage.gateway.release();
        };
        let (taken, ()) = tokio::join!(taken, letting);
        let reply = taken.unwrap().unwrap();
        assert_eq!(reply.body, ReplyBody::Text("late".to_owned()));
        assert_eq!(
            (stage.gateway.runs(), stage.gateway.asked_for("agent").len()),
            (1, 1)
        );
        gone.join().unwrap();
    }
}

#[tokio::test]
async fn nothing_is_taken_up_of_what_is_not_there() {
    let stage = Stage::doing(|_| vec![Step::say("fine")]);
    stage.run().await.unwrap();
    let handle = stage.handle();
    let reattach = async |effect: &str, handle: Json| {
        let mut spawn = stage.session(|_| {});
        spawn.effect = effect.into();
        stage.backend.sessions.reattach(spawn, handle).await
    };
    // Of others nothing is read.
    let asked = stage.gateway.asked().len();
    assert!(reattach("e2", handle.clone()).await.is_none());
    let foreign = json!({"session": "agent:main:main", "run": handle["run"]});
    assert!(reattach("e1", foreign).await.is_none());
    assert!(reattach("e1", json!({})).await.is_none());
    assert_eq!(stage.gateway.asked().len(), asked);
    assert!(reattach("e1", handle).await.unwrap().is_ok());

    // It was on record, and never begun.
    let stage = Stage::doing(|_| vec![Step::say("fine")]);
    let other = Stage::doing(|_| vec![Step::say("fine")]);
    other.run().await.unwrap();
    let told = other.told();
    let mut spawn = stage.session(|_| {});
    spawn.work_dir = other.path("work");
    spawn.staging = other.path("work/.prose/staging");
    let handle = json!({"session": told["sessionKey"], "run": told["idempotencyKey"]});
    assert!(stage.backend.sessions.reattach(spawn, handle).await.is_none());
    assert_eq!(stage.gateway.runs(), 0);
}

#[tokio::test]
async fn a_session_that_is_not_wanted_any_more_is_stopped_at_the_gateway() {
    // By its token, and by nobody waiting for it.
    for by_token in [true, false] {
        let stage = Stage::new(script().run(Run::on("", [Step::Hold])));
        let spawn = stage.session(|_| {});
        let cancel = spawn.cancel.clone();
        let running = stage.backend.sessions.spawn(spawn);
        let stopping = async {
            stage.until(|gateway| gateway.runs() == 1).await;
            cancel.cancel();
        };
        if by_token {
            let (reply, ()) = tokio::join!(running, stopping);
            assert_eq!(reply.unwrap_err().message, "the session was stopped");
        } else {
            tokio::select! {
                _ = running => unreachable!(),
                () = stage.until(|gateway| gateway.runs() == 1) => {}
            }
        }
        stage.until(|gateway| gateway.ended() == 1).await;
        assert_eq!(stage.gateway.asked_for("chat.abort").len(), 1);
        stage.until(|gateway| gateway.connections() == 0).await;
    }
}

#[tokio::test]
async fn it_decides_without_tools_and_leaves_nothing() {
    let answer = json!({"reason": "seen", "decision": "no", "confidence": 0.8}).to_string();
    let script = script().run(Run::on("the sky is green", [Step::say(answer)]));
    let stage = Stage::new(script);
    let verdict = stage
        .backend
        .judge
        .decide(condition("the sky is green"))
        .await
        .unwrap();
    assert_eq!((verdict.decision, verdict.confidence), (Decision::No, 0.8));
    let told = stage.told();
    assert_eq!(
        (&told["modelRun"], &told["promptMode"]),
        (&json!(true), &json!("none"))
    );
    let created = &stage.gateway.asked_for("sessions.create")[0];
    assert_eq!(created["permissionMode"], "read-only");
    assert_eq!(stage.gateway.asked_for("sessions.delete").len(), 1);
}

#[test]
fn what_it_needs_has_to_be_there() {
    let why = |spec: BackendSpec| match create(&spec) {
        Err(BackendError::Unusable { reason, .. }) => reason,
        _ => "usable".to_owned(),
    };
    let spec = |url: Option<&str>, key: Option<&str>| BackendSpec {
        base_url: url.map(ToOwned::to_owned),
        api_key_env: key.map(ToOwned::to_owned),
        ..BackendSpec::default()
    };
    assert_eq!(
        why(spec(None, None)),
        "there is no token in OPENCLAW_GATEWAY_TOKEN"
    );
    assert_eq!(why(spec(None, Some("GATEWAY_TOKEN"))), "usable");
    assert_eq!(
        why(spec(Some("wss://claw.example"), Some("GATEWAY_TOKEN"))),
        "usable"
    );
    assert_eq!(why(spec(Some("ws://127.0.0.1:1"), None)), "usable");
    assert!(why(spec(Some("ws://claw.example"), Some("GATEWAY_TOKEN"))).contains("another machine"));
    assert!(why(spec(Some("claw"), None)).contains("has to be an address"));
}
