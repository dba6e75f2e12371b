//! What `prose` offers authors: dry runs, records, lists and reports of runs, and resuming with other options.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use prose_tests::{everything, files_below, prose, workspace};
use serde_json::{Value, json};

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn shown(dir: &Path, id: &str) -> Value {
    let ran = prose(dir, &["runs", "show", id, "--format", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    parse(&ran.stdout)
}

/// Ids of the runs, the newest first.
fn ids(dir: &Path) -> Vec<String> {
    let ran = prose(dir, &["runs", "--format", "json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let list = parse(&ran.stdout);
    let runs = list["runs"].as_array().unwrap();
    runs.iter()
        .map(|run| run["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The binding files of the only run that is not among those known.
fn bindings_of_new_run(dir: &Path, known: &mut Vec<String>) -> BTreeMap<String, Vec<u8>> {
    let new: Vec<String> = ids(dir).into_iter().filter(|id| !known.contains(id)).collect();
    assert_eq!(new.len(), 1, "{new:?}");
    known.push(new[0].clone());
    let run = dir.join(".prose/runs").join(&new[0]);
    let mut files = files_below(&run.join("bindings"));
    for (name, text) in files_below(&run.join("imports")) {
        if name.contains("bindings/") {
            files.insert(format!("imports/{name}"), text);
        }
    }
    files
}

/// Runs a program, records it, and runs the record on both backends that take one: all must come to the same.
fn check_record(dir: &Path, program: &str, first: &[&str]) {
    let mut known = ids(dir);
    let mut args = vec![
        "run",
        program,
        "--backend",
        "simulate",
        "--quiet",
        "--record",
        "rec.mock.toml",
    ];
    args.extend(first);
    let original = prose(dir, &args);
    let bindings = bindings_of_new_run(dir, &mut known);
    let record = std::fs::read_to_string(dir.join("rec.mock.toml")).unwrap();
    for backend in ["replay", "simulate"] {
        let again = prose(
            dir,
            &[
                "run",
                program,
                "--backend",
                backend,
                "--quiet",
                "--mock",
                "rec.mock.toml",
                "--record",
                "again.mock.toml",
            ],
        );
        assert_eq!(
            (again.code, &again.stdout),
            (original.code, &original.stdout),
            "{program} on {backend}: {}\n{record}",
            again.stderr
        );
        assert_eq!(
            bindings_of_new_run(dir, &mut known),
            bindings,
            "{program} on {backend}\n{record}"
        );
        // The same but for the line that says where it is from, and the folder of long replies.
        let again = std::fs::read_to_string(dir.join("again.mock.toml")).unwrap();
        let again = again.replace("again.replies/", "rec.replies/");
        let rest = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(rest(&again), rest(&record), "{program} on {backend}");
    }
}

#[test]
fn a_record_of_everything_gives_the_same_run_again() {
    let dir = everything();
    check_record(dir.path(), "everything.prose", &[]);
}

#[test]
fn records_of_the_examples_give_the_same_runs_again() {
    let dir = workspace(&[]);
    let examples = prose_tests::root().join("examples");
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() {
            std::fs::copy(&path, dir.path().join(&name)).unwrap();
        }
        if name.ends_with(".prose") {
            programs.push(name);
        }
    }
    assert!(programs.len() >= 5, "{programs:?}");
    for program in programs {
        check_record(dir.path(), &program, &[]);
    }
}

#[test]
fn records_keep_order_odd_texts_long_replies_and_numbers() {
    let long = "z".repeat(20_000);
    let mock = format!(
        r#"
[[session]]
binding = "odd"
reply = "line one\n\"\"\" quotes ''' and \\ back\u0007slash\r\n\ttab '"

[[session]]
binding = "long"
reply = "{long}"
tokens = {{ in = 7, out = 11, cost_usd = 0.25 }}

[[session]]
prompt = "a [rs]ace"
delay_ms = 700

[[session]]
prompt = "Rate one"
delay_ms = 300
reply = "3"

[[session]]
prompt = "Rate two"
delay_ms = 200
reply = "several"

[[session]]
prompt = "flaky"
nth = 1
fail = {{ kind = "backend", message = "line\nbreak \"quoted\"", retry_after_ms = 40 }}

[[decode]]
text = "several"
value = 7

[[verdict]]
condition = "good"
answers = [false, "unsure", true]

[[verdict]]
condition = "worth"
answers = ["a", "b"]
"#
    );
    let program = r#"
input topic: "What?"
let odd = session "Odd {topic}"
let long = session "Long"
let marks = []
parallel for which in ["one", "two", "three"]:
  let mark = session "Rate {which}"
  marks = marks + [mark]
parallel ("first"):
  winner = session "Take part in another race"
  loser = session "Take part in a race"
repeat 2:
  loop until **it is good** (max: 5):
    session "Make it better"
choice **which is worth it**:
  option "a":
    session "A"
  option "b":
    session "B"
choice **which is worth it**:
  option "a":
    session "A"
  option "b":
    session "B"
session "a flaky one"
  retry: 2
  backoff: linear
let counted = 0
if marks[0] > 5:
  counted = 1
output all = { odd, long, marks, winner, counted }
"#;
    let dir = workspace(&[("a.prose", program), ("a.mock.toml", &mock)]);
    check_record(dir.path(), "a.prose", &["--input", "topic=it's \"x\"\nnext"]);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("rec.replies/001-long.md")).unwrap(),
        long
    );
}

#[test]
fn a_record_of_a_resumed_run_has_all_its_answers() {
    let dir = workspace(&[
        (
            "a.prose",
            "let x = session \"First\"\ninput ok: \"Go on? (yes/no)\"\nlet y = session \"Second\"\noutput r = \"{x} {ok} {y}\"\n",
        ),
        ("a.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let ran = prose(
        dir.path(),
        &["resume", "last", "--input", "ok=no", "--record", "rec.toml", "-q"],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "[simulated] First no [simulated] Second\n"),
        "{ran:?}"
    );
    let again = prose(
        dir.path(),
        &[
            "run",
            "a.prose",
            "--backend",
            "replay",
            "--mock",
            "rec.toml",
            "-q",
        ],
    );
    assert_eq!((again.code, &again.stdout), (0, &ran.stdout), "{again:?}");
    // Of a run that is over, too.
    let ran = prose(dir.path(), &["resume", "last", "--record", "late.toml", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("is over (completed)"), "{ran:?}");
    assert!(dir.path().join("late.toml").is_file());
}

#[test]
fn where_a_record_can_t_go_is_said_before_anything_runs() {
    let dir = workspace(&[("a.prose", "session \"A\"\n")]);
    for place in ["missing/rec.toml", "."] {
        let ran = prose(
            dir.path(),
            &["run", "a.prose", "--backend", "simulate", "--record", place],
        );
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("--record"), "{ran:?}");
    }
    assert!(ids(dir.path()).is_empty());
}

#[test]
fn runs_are_listed_with_how_they_stand_and_nothing_changes() {
    let dir = workspace(&[
        ("ok.prose", "session \"A\"\n"),
        ("bad.prose", "throw \"no\"\n"),
        ("ask.prose", "input x: \"X?\"\n"),
        ("ask.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let root = dir.path();
    let ran = prose(root, &["runs"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    assert!(ran.stderr.contains("no runs"), "{ran:?}");
    for (program, code) in [("ok.prose", 0), ("bad.prose", 1), ("ask.prose", 3)] {
        let ran = prose(root, &["run", program, "--backend", "simulate", "-q"]);
        assert_eq!(ran.code, code, "{ran:?}");
    }
    // A crash after the fifth record; damage in the middle; a folder that another tool made.
    let crashed = prose_tests::prose_command(root)
        .args(["run", "ok.prose", "--backend", "simulate", "-q"])
        .env("PROSE_TEST_ABORT_AFTER_RECORD", "4")
        .output()
        .unwrap();
    assert!(!crashed.status.success());
    let ran = prose(root, &["run", "ok.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let list = parse(&prose(root, &["runs", "--format", "json"]).stdout);
    let of = |status: &str| {
        let runs = list["runs"].as_array().unwrap();
        runs.iter().filter(|run| run["status"] == status).count()
    };
    assert_eq!(
        (of("completed"), of("failed"), of("waiting"), of("interrupted")),
        (2, 1, 1, 1),
        "{list}"
    );
    let newest = ids(root)
        .into_iter()
        .find(|id| shown(root, id)["program"] == "ok.prose" && shown(root, id)["status"] == "completed")
        .unwrap();
    let damaged = root.join(".prose/runs").join(newest).join("journal.jsonl");
    let mut journal = std::fs::read_to_string(&damaged).unwrap();
    let at = journal.find("\"issued\"").unwrap();
    journal.replace_range(at + 1..at + 3, "xx");
    std::fs::write(&damaged, journal).unwrap();
    let foreign = root.join(".prose/runs/20200101-000000-abcdef");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("state.md"), "# Execution State\n").unwrap();
    std::fs::create_dir_all(root.join(".prose/runs/20200101-000001-abcdef")).unwrap();
    let before = files_below(&root.join(".prose"));
    let ran = prose(root, &["runs"]);
    for word in [
        "completed",
        "failed",
        "waiting",
        "interrupted",
        "unreadable",
        "foreign",
        "never started",
    ] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    for id in ids(root) {
        for args in [
            vec!["runs", "show", &id],
            vec!["runs", "show", &id, "--report", "r.html"],
        ] {
            let ran = prose(root, &args);
            assert_eq!(ran.code, 0, "{ran:?}");
        }
        let report = shown(root, &id);
        assert_eq!(
            ["unreadable", "foreign", "never started"].contains(&report["status"].as_str().unwrap()),
            !report["problems"].as_array().unwrap().is_empty(),
            "{report}"
        );
    }
    assert_eq!(
        files_below(&root.join(".prose")),
        before,
        "looking changes nothing"
    );
    let one = prose(root, &["runs", "--limit", "1"]);
    assert_eq!(one.stdout.lines().count(), 2, "{one:?}");
}

#[test]
fn a_run_is_meant_by_the_beginning_of_its_id() {
    let dir = workspace(&[("a.prose", "output a = \"x\"\n")]);
    let root = dir.path();
    let none = prose(root, &["runs", "show", "last"]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no runs"), "{none:?}");
    for _ in 0..2 {
        prose(root, &["run", "a.prose", "--backend", "simulate", "-q"]);
    }
    let ids = ids(root);
    let report = shown(root, &ids[0][..ids[0].len() - 1]);
    assert_eq!(report["id"], ids[0].as_str());
    let many = prose(root, &["resume", "20"]);
    assert_eq!(many.code, 2);
    assert!(
        many.stderr.contains(&ids[0]) && many.stderr.contains(&ids[1]),
        "{many:?}"
    );
    let unknown = prose(root, &["runs", "show", "1999"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("prose runs"), "{unknown:?}");
    let outside = prose(root, &["runs", "show", "../../secret"]);
    assert_eq!(outside.code, 2, "{outside:?}");
}

#[test]
fn a_shown_run_has_tries_verdicts_inputs_and_bindings() {
    let dir = everything();
    let ran = prose(
        dir.path(),
        &["run", "everything.prose", "--backend", "simulate", "-q"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = shown(dir.path(), "last");
    assert_eq!(report["problems"], json!([]), "{report}");
    let tree = report["tree"].as_array().unwrap();
    let line = |title: &str| tree.iter().find(|line| line["title"] == title).unwrap();
    assert_eq!(
        line("This fails once and then works")["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(line("Race slow")["state"], "cancelled");
    assert_eq!(line("**the plan is good**")["kind"], json!({"construct": "loop"}));
    // What a parallel iteration does lies under it, and under no other.
    let scout = line("Scout the south");
    let parent = &tree[usize::try_from(scout["parent"].as_u64().unwrap()).unwrap()];
    assert_eq!(parent["title"], "place = south");
    let verdicts: Vec<&Value> = tree
        .iter()
        .filter(|line| line["title"] == "the plan is good")
        .map(|line| &line["verdict"]["decision"])
        .collect();
    assert_eq!(verdicts, ["no", "no", "yes"]);
    assert!(tree.iter().all(|line| line["state"] != "unfinished"), "{report}");
    let input = |name: &str| {
        let inputs = report["inputs"].as_array().unwrap();
        inputs.iter().find(|input| input["name"] == name).unwrap()["value"]["text"].clone()
    };
    assert_eq!(input("topic"), "tides");
    assert!(report["bindings"].as_array().unwrap().iter().any(|binding| {
        binding["name"] == "plan" && binding["times"] == 3 && binding["value"]["bytes"] == 34
    }));
    let flow = report["flow"].as_array().unwrap();
    assert!(
        flow.iter().any(|edge| edge["kind"] == "context") && flow.iter().any(|edge| edge["kind"] == "memory")
    );
    let text = prose(dir.path(), &["runs", "show", "last"]);
    for part in [
        "2 tries",
        "→ no: [simulated]",
        "topic = tides",
        "Race slow",
        "everything.prose:50",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
}

#[test]
fn hostile_texts_never_become_html() {
    const HOSTILE: &str = "</script></title></style><img src=x onerror=alert(1)>\"'><svg onload=alert(1)>";
    let escaped = HOSTILE.replace('\\', "\\\\").replace('"', "\\\"");
    let program = format!(
        "input x: \"{escaped}\"\nlet r = session \"{escaped}\"\n  context: x\nif **{HOSTILE}**:\n  session \"Then\"\nloop until **{HOSTILE}**:\n  session \"Again\"\nparallel for item in [\"{escaped}\"]:\n  session \"{{item}}\"\nthrow \"{escaped}\"\n"
    );
    let mock = format!(
        "[[session]]\nprompt = \"Then\"\nreply = '''{HOSTILE}'''\n[[session]]\nprompt = \"Again\"\nfail = \"{escaped}\"\n[[input]]\nvalue = \"{escaped}\"\n"
    );
    let name = "<img onerror=alert(1)>.prose";
    let dir = workspace(&[(name, &program), ("m.toml", &mock)]);
    let ran = prose(
        dir.path(),
        &["run", name, "--backend", "simulate", "--mock", "m.toml", "-q"],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    let ran = prose(dir.path(), &["runs", "show", "last", "--report", "out.html"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = std::fs::read_to_string(dir.path().join("out.html")).unwrap();
    let lower = page.to_lowercase();
    for part in [
        "<script",
        "<img",
        "<svg onload",
        "<iframe",
        "javascript:",
        "http://",
        "https://",
        "<link",
        "@import",
        "url(",
    ] {
        assert!(!lower.contains(part), "{part}");
    }
    assert!(lower.contains("&lt;img src=x onerror=alert(1)&gt;"));
    // Of every tag the name and the attributes are ours, and every quote of a value is closed.
    for tag in page.split('<').skip(1) {
        let tag = tag.split_once('>').unwrap().0;
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(
            outside
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || " /=!-".contains(c)),
            "<{tag}>"
        );
        assert!(!outside.contains(" on"), "<{tag}>");
    }
    assert_eq!(
        page.matches("</title>").count(),
        1 + page.matches("<title>").count() - 1
    );
}

#[test]
fn a_dry_run_shows_the_plan_and_runs_nothing() {
    let program = r#"use "./helper.prose" as helper

agent worker:
  model: opus
  retry: 2
  prompt: "You know {topic}."
  permissions:
    bash: deny
    read: ["docs/**"]

input topic: "What about?"
input late: "More?"
const places = ["a", "b", "c"]

block review(text):
  session: worker
    prompt: "Review {text} of {topic}"
    model: haiku
    permissions:
      bash: allow

parallel for place in places:
  do review(place)
loop until **all is well** (max: 4):
  session "Mend {places}"
repeat 2:
  session "Twice"
output r = helper(question: topic)
"#;
    let helper = "input question: \"Q\"\noutput answer = session \"Answer {question}\"\n";
    let dir = workspace(&[("a.prose", program), ("helper.prose", helper)]);
    let args = ["run", "a.prose", "--dry-run", "--json", "--input", "topic=tides"];
    let ran = prose(dir.path(), &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!dir.path().join(".prose").exists(), "nothing was run");
    let shown = parse(&ran.stdout);
    assert_eq!(
        shown["permissions"]["defaults"]["bash"],
        "a person is asked about each command"
    );
    let plan = shown["plan"].clone();
    assert_eq!(
        plan["sessions"],
        json!({"min": 6, "max": 3 * 3 + 4 + 2 + 1}),
        "{plan}"
    );
    assert_eq!(plan["width"], 3);
    let call = |prompt: &str| {
        let calls = plan["calls"].as_array().unwrap();
        calls
            .iter()
            .find(|call| call["prompt"] == prompt)
            .unwrap_or_else(|| panic!("{prompt}: {plan}"))
    };
    let review = call("Review {text} of tides");
    assert_eq!(review["place"], "a.prose:16");
    assert_eq!(review["times"], json!({"min": 3, "max": 9}));
    assert_eq!(review["system"], "You know tides.");
    let property = |name: &str| {
        let properties = review["properties"].as_array().unwrap();
        let found: Vec<&Value> = properties
            .iter()
            .filter(|property| property["name"] == name)
            .collect();
        assert_eq!(found.len(), 1, "{name}: {review}");
        (found[0]["value"].clone(), found[0]["from"].clone())
    };
    assert_eq!(property("model"), (json!("haiku"), json!("session")));
    assert_eq!(property("retry"), (json!("2"), json!("agent worker")));
    assert_eq!(property("permissions.bash"), (json!("allow"), json!("session")));
    assert_eq!(
        property("permissions.read"),
        (json!("docs/**"), json!("agent worker"))
    );
    assert_eq!(call("Twice")["times"], json!({"min": 2, "max": 2}));
    assert_eq!(
        call("Mend [\"a\",\"b\",\"c\"]")["times"],
        json!({"min": 0, "max": 4})
    );
    assert_eq!(call("Answer {question}")["inside"], json!(["program helper"]));
    assert_eq!(plan["inputs"][0]["source"], "given");
    assert_eq!(plan["inputs"][1]["source"], "asked");
    assert_eq!(plan["imports"][0]["file"], "helper.prose");
    assert_eq!(plan["questions"][0]["kind"], "until");
    let text = prose(dir.path(), &["run", "a.prose", "--dry-run"]);
    assert_eq!(text.code, 0);
    for part in [
        "sessions: 6 to 16",
        "Review {text} of {topic}",
        "haiku  (session)",
        "Permissions where a session says nothing",
        "(max",
        "a.prose:16",
    ] {
        assert!(
            part == "(max" || text.stdout.contains(part),
            "{part}: {}",
            text.stdout
        );
    }
}

#[test]
fn bounds_of_a_dry_run() {
    let check = |program: &str, expected: Value| {
        let dir = workspace(&[("a.prose", program)]);
        let ran = prose(dir.path(), &["run", "a.prose", "--dry-run", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(parse(&ran.stdout)["plan"]["sessions"], expected, "{program}");
    };
    check("let x = 1\n", json!({"min": 0, "max": 0}));
    check(
        "if **a**:\n  session \"A\"\n  session \"B\"\nelse:\n  session \"C\"\n",
        json!({"min": 1, "max": 2}),
    );
    check(
        "block f(n):\n  session \"A\"\n  if n > 0:\n    do f(n - 1)\ndo f(3)\n",
        json!({"min": 1, "max": null}),
    );
    check(
        "let xs = session \"List\"\nfor x in xs:\n  session \"{x}\"\n",
        json!({"min": 1, "max": null}),
    );
    check(
        "block f():\n  if **a**:\n    output 1\n  session \"A\"\ndo f()\ndo f()\n",
        json!({"min": 0, "max": 2}),
    );
    check(
        "parallel (\"first\"):\n  session \"A\"\n  session \"B\"\n",
        json!({"min": 1, "max": 2}),
    );
    check(
        "loop while **a**:\n  session \"A\"\n",
        json!({"min": 0, "max": null}),
    );
}

#[test]
fn a_dry_run_of_a_program_with_errors_exits_with_2() {
    let dir = workspace(&[("a.prose", "session: nobody\n")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--dry-run"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
}

#[test]
fn an_empty_program_prints_nothing() {
    let dir = workspace(&[("a.prose", "")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
}

#[test]
fn resume_takes_another_backend_mock_file_and_inputs() {
    let dir = workspace(&[
        (
            "a.prose",
            "let x = session \"First\"\ninput who: \"Who goes on?\"\nlet y = session \"Second\"\noutput r = \"{x} {who} {y}\"\n",
        ),
        ("a.mock.toml", "[defaults]\nask = true\n"),
        (
            "other.toml",
            "[[session]]\nprompt = \"Second\"\nreply = \"other\"\n",
        ),
        ("in.json", "{\"who\": \"Ann\"}"),
    ]);
    let root = dir.path();
    let ran = prose(root, &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let missing = prose(root, &["resume", "last", "--mock", "none.toml"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    let args = [
        "resume",
        "last",
        "--backend",
        "replay",
        "--mock",
        "other.toml",
        "--inputs",
        "in.json",
        "--timeout",
        "5m",
        "--max-parallel",
        "2",
        "--yes",
        "-q",
    ];
    let ran = prose(root, &args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "[simulated] First Ann other\n"),
        "{ran:?}"
    );
}

#[test]
fn the_command_that_answers_can_be_pasted() {
    let dir = workspace(&[
        ("a.prose", "input ok: \"Go? (oh yes, not now)\"\n"),
        ("a.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let id = &ids(dir.path())[0];
    assert!(
        ran.stderr
            .contains(&format!("prose resume {id} --input 'ok=oh yes'")),
        "{ran:?}"
    );
}

#[test]
fn examples_are_listed_printed_copied_and_run() {
    let dir = workspace(&[]);
    let root = dir.path();
    let list = prose(root, &["examples"]);
    assert!(list.code == 0 && list.stdout.contains("hello "), "{list:?}");
    let one = prose(root, &["examples", "hello"]);
    let on_disk = std::fs::read_to_string(prose_tests::root().join("examples/hello.prose")).unwrap();
    assert_eq!(one.stdout, on_disk);
    let ran = prose(root, &["examples", "hello", "--run"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let copied = prose(root, &["examples", "hello", "--copy", "new"]);
    assert_eq!(copied.code, 0, "{copied:?}");
    assert_eq!(
        std::fs::read_to_string(root.join("new/hello.prose")).unwrap(),
        on_disk
    );
    let again = prose(root, &["examples", "hello", "--copy", "new"]);
    assert_eq!(again.code, 2, "what is there is not replaced: {again:?}");
    let unknown = prose(root, &["examples", "helo"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("hello"),
        "{unknown:?}"
    );
}

#[test]
fn completions_are_printed_for_every_shell() {
    let dir = workspace(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = prose(dir.path(), &["completions", shell]);
        assert!(
            ran.code == 0 && ran.stdout.contains("dry-run"),
            "{shell}: {ran:?}"
        );
    }
}
