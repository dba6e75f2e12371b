//! A whole program on the backends that talk to a model's API, through the real binary: what the service is asked, what
//! the run leaves behind, and that no key is in any of it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use mock_model::{Answer, Cut, Fault, MockModel, Place, Rule, Script};
use prose_tests::{Ran, files_below, only_run, prose_command, workspace};
use serde_json::json;

const KEY: &str = "sk-test-0123456789abcdef";
const KINDS: [&str; 2] = ["anthropic", "openai"];

const PROGRAM: &str = r#"
agent researcher:
  model: opus
  prompt: "You are a researcher."
  permissions:
    bash: deny
    network: deny

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
  context: facts

loop until **the draft is ready** (max: 3):
  draft = resume: critic
    prompt: "Improve the draft"
    context: draft

output report = session "Write the report"
  context: { facts, reviews, draft }
"#;

/// A verdict or a memory, as the question wants it.
fn forced() -> Vec<Rule> {
    let verdict = |n: u64, decision: &str| {
        Rule::user("the draft is ready")
            .forced(true)
            .nth(n)
            .answer(Answer::json(
                json!({"reason": "seen", "decision": decision, "confidence": 0.9}),
            ))
    };
    let memory = json!({"memory": "The draft is short.", "segment": "Wrote it."});
    vec![
        verdict(1, "no"),
        verdict(2, "yes"),
        Rule::any().forced(true).answer(Answer::json(memory)),
    ]
}

fn script() -> Script {
    let mut script = Script::new().key(KEY);
    for rule in forced() {
        script = script.rule(rule);
    }
    script
        .rule(Rule::user("Collect facts").turns([
            Answer::call("read", json!({"path": "notes.md"})),
            Answer::text("Bees dance.").first(2, Fault::status(529)),
        ]))
        .rule(Rule::user("Review the (?<angle>\\w+)").answer(Answer::text("The ${angle} is fine.")))
        .rule(Rule::user("Draft a text").answer(Answer::text("Draft one.")))
        .rule(Rule::user("Improve the draft").answer(Answer::text("Draft two.")))
        .rule(Rule::user("Write the report").answer(Answer::text("The report.")))
}

fn folder(kind: &str, mock: &MockModel, program: &str) -> tempfile::TempDir {
    let config = format!(
        "[backends.{kind}]\nbase_url = \"{}\"\napi_key_env = \"TEST_KEY\"\n\
         [models.{kind}]\nopus = \"big\"\nsonnet = \"middle\"\nhaiku = \"small\"\n",
        mock.url()
    );
    workspace(&[
        ("main.prose", program),
        ("notes.md", "Bees dance to tell where flowers are."),
        ("prose.toml", &config),
        (".prose/.env", &format!("TEST_KEY={KEY}\n")),
    ])
}

fn run(dir: &Path, args: &[&str]) -> Ran {
    let mut command = prose_command(dir);
    command.env("PROSE_LOG", "debug").args(args);
    command.output().unwrap().into()
}

/// No file of the workspace and nothing that was printed holds the key, but the file that it comes from.
#[track_caller]
fn no_key(dir: &Path, ran: &Ran) {
    for (name, bytes) in files_below(dir) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            name.ends_with(".prose/.env") || !text.contains(KEY),
            "{name} holds the key"
        );
    }
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
}

#[test]
fn a_program_runs_on_both_services() {
    for kind in KINDS {
        let mock = MockModel::start_blocking(script()).unwrap();
        let dir = folder(kind, &mock, PROGRAM);
        let ran = run(dir.path(), &["run", "main.prose", "--backend", kind]);
        assert_eq!(
            (ran.code, ran.stdout.trim()),
            (0, "The report."),
            "{kind} {}",
            ran.stderr
        );
        no_key(dir.path(), &ran);

        let asked = mock.asked();
        assert!(asked.iter().all(|asked| asked.complaint.is_none()), "{asked:?}");
        let bodies: Vec<String> = asked.iter().map(|asked| asked.body.to_string()).collect();
        let of = |text: &str| {
            bodies
                .iter()
                .filter(|body| body.contains(text))
                .collect::<Vec<_>>()
        };
        // Model, system text and permissions of an agent.
        let research = of("Collect facts about bees");
        assert!(research[0].contains(r#""model":"big""#) && research[0].contains("You are a researcher."));
        assert!(research[0].contains(r#""read""#) && !research[0].contains(r#""bash""#));
        assert!(
            research[1].contains("where flowers are"),
            "the tool's result comes back"
        );
        // Context is part of the prompt.
        for angle in ["style", "truth"] {
            let review = of(&format!("Review the {angle}"));
            assert!(review[0].contains("Bees dance.") && review[0].contains(r#""model":"middle""#));
        }
        let report = of("Write the report");
        for text in [
            "Bees dance.",
            "The style is fine.",
            "The truth is fine.",
            "Draft two.",
        ] {
            assert!(report[0].contains(text), "{text} {}", report[0]);
        }
        // Memory comes back, and the judge sees what there is.
        let improve = of("Improve the draft");
        assert!(improve[0].contains("The draft is short.") && improve[0].contains(r#""model":"small""#));
        let judged = of("until this holds");
        assert!(
            judged[0].contains("Draft one.") && judged[1].contains("Draft two."),
            "{judged:?}"
        );
        assert!(judged[1].contains("no: seen"), "earlier verdicts are shown");

        let run = only_run(dir.path());
        let memory = std::fs::read_to_string(run.join("agents/critic/memory.md")).unwrap();
        assert_eq!(memory.trim(), "The draft is short.");
    }
}

#[test]
fn a_failure_names_session_attempt_and_cause() {
    let program = "output x = session \"Try it\"\n  retry: 1\n";
    for kind in KINDS {
        let script = Script::always(Answer::text("").fault(Fault::Status {
            code: 400,
            retry_after: None,
            message: Some(format!("bad request with {KEY}")),
            body: None,
        }));
        let mock = MockModel::start_blocking(script).unwrap();
        let dir = folder(kind, &mock, program);
        let ran = run(dir.path(), &["run", "main.prose", "--backend", kind]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        for text in ["Try it", "HTTP 400: bad request with", "(attempt 2/2)"] {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        assert_eq!(mock.asked().len(), 2, "once for each of the program's tries");
        no_key(dir.path(), &ran);
    }
}

/// What a service can do to an answer, and what a run that can't get past it says of the cause.
fn faults() -> Vec<(Fault, &'static str)> {
    let after = Place::Events(2);
    vec![
        (Fault::status_retry_after(429, "0"), "HTTP 429"),
        (Fault::status(529), "HTTP 529"),
        (Fault::status(500), "HTTP 500"),
        (
            Fault::Cut {
                how: Cut::Abrupt,
                after,
            },
            "broke off",
        ),
        (Fault::Hang { after: None }, "for 0.5 s"),
        (Fault::Hang { after: Some(after) }, "for 0.5 s"),
        (Fault::Garbage { after }, "broke off"),
    ]
}

/// Runs a program against an answer, for every fault and on both services. `wait` is how long pieces of an answer are waited for.
fn with_every_fault(
    program: &str,
    wait: &str,
    answer: fn(Fault) -> Answer,
    check: fn(&str, &Path, Ran, &str, &MockModel),
) {
    std::thread::scope(|scope| {
        for kind in KINDS {
            for (fault, cause) in faults() {
                scope.spawn(move || {
                    let script = Script::always(answer(fault.clone())).key(KEY);
                    let mock = MockModel::start_blocking(script).unwrap();
                    let dir = folder(kind, &mock, program);
                    let waits =
                        format!("first_token_timeout = \"{wait}\"\nidle_timeout = \"{wait}\"\n[models");
                    let config = std::fs::read_to_string(dir.path().join("prose.toml")).unwrap();
                    std::fs::write(dir.path().join("prose.toml"), config.replace("[models", &waits)).unwrap();
                    let ran = run(dir.path(), &["run", "main.prose", "--backend", kind]);
                    no_key(dir.path(), &ran);
                    check(&format!("{kind} {fault:?}"), dir.path(), ran, cause, &mock);
                    // The mock notices in a moment of its own that nobody listens any more.
                    for _ in 0..500 {
                        match mock.counts().open {
                            0 => return,
                            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
                        }
                    }
                    panic!("{kind} {fault:?}: a connection is left");
                });
            }
        }
    });
}

#[test]
fn a_fault_that_passes_changes_no_result() {
    let program = "let a = session \"Say it\"\noutput x = session \"Say it again\"\n  context: a\n";
    with_every_fault(
        program,
        // Long enough for what comes, however busy the machine is.
        "10s",
        |fault| Answer::text("one two three").chunk(4).first(1, fault),
        |case, _, ran, _, mock| {
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (0, "one two three\n"),
                "{case}: {}",
                ran.stderr
            );
            assert_eq!(mock.asked().len(), 3, "{case}");
        },
    );
}

#[test]
fn a_fault_that_stays_fails_the_run_and_is_named() {
    let program = "output x = session \"Try it\"\n  retry: 1\n";
    with_every_fault(
        program,
        "500ms",
        |fault| Answer::text("one two three").chunk(4).fault(fault),
        |case, dir, ran, cause, _| {
            assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{case}: {}", ran.stderr);
            // Which session, which of its tries, and what was wrong.
            for text in ["Try it", "2", cause, "tried"] {
                assert!(ran.stderr.contains(text), "{case}: {text}: {}", ran.stderr);
            }
            let left: Vec<_> = files_below(&only_run(dir))
                .into_keys()
                .filter(|name| name.contains("staging/") || name.contains("bindings/"))
                .collect();
            assert!(left.is_empty(), "{case}: {left:?}");
        },
    );
}
