//! A program on a gateway of OpenClaw, through the real binary: a run that is killed while the gateway works for it is taken up
//! without anything being asked twice, and the gateway's token is nowhere.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mock_model::openclaw::{GatewayScript, MockGateway, Run, Step};
use prose_tests::{Ran, files_below, only_run, prose_command, workspace};
use serde_json::json;

const TOKEN: &str = "gateway-token-0000-1111-2222";

const PROGRAM: &str = r#"
agent researcher:
  model: opus
  prompt: "You are a researcher."

agent critic:
  model: haiku
  persist: true
  prompt: "You are a critic."

let facts = session: researcher
  prompt: "Collect facts about bees"

let reviews = parallel for angle in ["style", "truth"]:
  session "Review the {angle}"
    context: facts

let draft = session: critic
  prompt: "Draft a text"
  context: { facts, reviews }

loop until **the draft is ready** (max: 3):
  draft = resume: critic
    prompt: "Improve the draft"
    context: draft

output report = session "Write the report"
  context: draft
"#;

/// A session that writes its output, after these steps.
fn session(task: &str, before: Vec<Step>, output: &str) -> Run {
    let pattern = format!(r"(?s){task}.*output to:\n  (?P<out>\S+)");
    let after = [
        Step::write("${out}", output),
        Step::say("Binding written: it\nSummary: done"),
    ];
    Run::on(&pattern, before.into_iter().chain(after))
}

fn script(slow: Vec<Step>) -> GatewayScript {
    let verdict = |decision: &str| {
        let answer = json!({"reason": "seen", "decision": decision, "confidence": 0.9});
        Step::say(answer.to_string())
    };
    let remembers = |task: &str, output: &str| {
        let pattern = format!(
            r"(?s){task}.*anew, whole, to:\n  (?P<memory>\S+).*to:\n  (?P<segment>\S+).*output to:\n  (?P<out>\S+)"
        );
        Run::on(
            &pattern,
            [
                Step::write("${memory}", "The draft is short."),
                Step::write("${segment}", "Wrote it."),
                Step::write("${out}", output),
                Step::say("Binding written: it\nSummary: done"),
            ],
        )
    };
    GatewayScript::new(TOKEN)
        .model("mock", "claude-opus-4-5")
        .model("mock", "small-haiku")
        .run(Run::on("until this holds", [verdict("no")]).nth(1))
        .run(Run::on("until this holds", [verdict("yes")]))
        .run(session("Collect facts", slow, "Bees dance."))
        .run(session("Review the style", Vec::new(), "The style is fine."))
        .run(session("Review the truth", Vec::new(), "The truth is fine."))
        .run(remembers("Draft a text", "Draft one."))
        .run(remembers("Improve the draft", "Draft two."))
        .run(session("Write the report", Vec::new(), "The report."))
}

fn folder(gateway: &MockGateway) -> tempfile::TempDir {
    let config = format!(
        "[backends.openclaw]\nbase_url = \"{}\"\napi_key_env = \"GATEWAY_TOKEN\"\n",
        gateway.url()
    );
    workspace(&[
        ("main.prose", PROGRAM),
        ("prose.toml", &config),
        (".prose/.env", &format!("GATEWAY_TOKEN={TOKEN}\n")),
    ])
}

fn run(dir: &Path, args: &[&str]) -> Ran {
    let mut command = prose_command(dir);
    command
        .env("PROSE_LOG", "debug")
        .args(args)
        .args(["--backend", "openclaw"]);
    command.output().unwrap().into()
}

/// No file of the workspace and nothing that was printed holds the token, but the file that it comes from.
#[track_caller]
fn no_token(dir: &Path, ran: &Ran) {
    for (name, bytes) in files_below(dir) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            name.ends_with(".prose/.env") || !text.contains(TOKEN),
            "{name} holds the token"
        );
    }
    assert!(
        !ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN),
        "{ran:?}"
    );
}

#[track_caller]
fn ends_well(dir: &Path, ran: &Ran, gateway: &MockGateway) {
    assert_eq!(
        (ran.code, ran.stdout.trim()),
        (0, "The report."),
        "{}",
        ran.stderr
    );
    no_token(dir, ran);
    let memory = std::fs::read_to_string(only_run(dir).join("agents/critic/memory.md")).unwrap();
    assert_eq!(memory.trim(), "The draft is short.");
    // Six sessions and two decisions, each of them once.
    assert_eq!((gateway.runs(), gateway.ended()), (8, 8));
}

#[test]
fn a_program_runs_on_a_gateway() {
    let gateway = MockGateway::start(script(Vec::new())).unwrap();
    let dir = folder(&gateway);
    let ran = run(dir.path(), &["run", "main.prose"]);
    ends_well(dir.path(), &ran, &gateway);
    let told = gateway.asked_for("agent");
    let of = |text: &str| {
        let found = told
            .iter()
            .find(|run| run["message"].as_str().unwrap().contains(text));
        found.unwrap().to_string()
    };
    assert!(of("Collect facts").contains("You are a researcher."));
    // By reference: the file is named, and its text is not there.
    let review = of("Review the style");
    assert!(
        review.contains("- facts: ") && !review.contains("Bees dance."),
        "{review}"
    );
    // Memory comes back.
    assert!(of("Improve the draft").contains("The draft is short."));
    let models: Vec<_> = gateway
        .asked_for("sessions.create")
        .into_iter()
        .map(|created| created["model"].clone())
        .collect();
    assert_eq!(models[0], "mock/claude-opus-4-5");
    assert!(models.contains(&json!("mock/small-haiku")), "{models:?}");
}

#[test]
fn a_run_that_is_killed_is_taken_up_where_the_gateway_is() {
    // The answer comes when the run is there again, or before that, or the connection breaks besides.
    for (ends_before, steps) in [
        (false, vec![Step::Hold]),
        (true, vec![Step::Hold]),
        (false, vec![Step::Hold, Step::Drop]),
    ] {
        let gateway = MockGateway::start(script(steps)).unwrap();
        let dir = folder(&gateway);
        let mut first = prose_command(dir.path());
        first.args(["run", "main.prose", "--backend", "openclaw"]);
        let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until(|| gateway.runs() == 1);
        first.kill().unwrap();
        first.wait().unwrap();
        until(|| gateway.connections() == 0);
        if ends_before {
            gateway.release();
            until(|| gateway.ended() == 1);
        }
        let id = only_run(dir.path())
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let ran = std::thread::scope(|scope| {
            let resumed = scope.spawn(|| run(dir.path(), &["resume", &id]));
            // It looks before it asks.
            until(|| !gateway.asked_for("chat.history").is_empty() || resumed.is_finished());
            gateway.release();
            resumed.join().unwrap()
        });
        ends_well(dir.path(), &ran, &gateway);
    }
}

#[track_caller]
fn until(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}
