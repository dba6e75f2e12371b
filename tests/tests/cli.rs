//! The real `prose` binary: output, exit codes, and every kind of bad input.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use prose_tests::{everything, files_below, only_run, prose, workspace};
use serde_json::{Value, json};

const HELLO: &str = "session \"Say hello\"\n";

#[test]
fn run_prints_the_single_output_raw_on_stdout_and_nothing_else() {
    let dir = workspace(&[("a.prose", "output greeting = session \"Say hello\"\n")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "[simulated] Say hello\n");
    assert!(ran.stderr.contains("simulated"), "{ran:?}");
}

#[test]
fn several_outputs_are_one_json_object() {
    let dir = workspace(&[("a.prose", "output a = session \"A\"\noutput n = 1 + 2\n")]);
    let ran = prose(
        dir.path(),
        &["run", "a.prose", "--backend", "simulate", "--quiet"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value, json!({"a": "[simulated] A", "n": 3}));
}

#[test]
fn a_missing_backend_is_an_error_that_says_how_to_set_one_up() {
    let dir = workspace(&[("a.prose", HELLO)]);
    let ran = prose(dir.path(), &["run", "a.prose"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("--backend simulate"), "{ran:?}");
    assert!(!dir.path().join(".prose/runs").exists(), "nothing was run");
}

#[test]
fn compile_errors_stop_the_run_with_2() {
    let dir = workspace(&[("a.prose", "session: nobody\n")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("E007") && ran.stderr.contains("a.prose:1:"),
        "{ran:?}"
    );
    assert!(!dir.path().join(".prose/runs").exists(), "nothing was run");
}

#[test]
fn a_failing_program_exits_with_1_and_keeps_its_bound_outputs() {
    let dir = workspace(&[("a.prose", "output a = \"kept\"\nthrow \"no luck\"\n")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("no luck"), "{ran:?}");
    assert_eq!(ran.stdout, "kept\n");
}

#[test]
fn an_unanswerable_input_suspends_with_3_and_resume_answers_it() {
    let dir = workspace(&[
        (
            "a.prose",
            "let x = session \"First\"\ninput ok: \"Go on? (yes/no)\"\noutput r = \"{x} then {ok}\"\n",
        ),
        // Unmatched inputs get made-up answers under simulate, unless the mock file leaves them to a person.
        ("a.mock.toml", "[defaults]\nask = true\n"),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let id = only_run(dir.path())
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    assert!(
        ran.stderr.contains(&format!("prose resume {id} --input ok=")),
        "{ran:?}"
    );
    let ran = prose(dir.path(), &["resume", &id, "--input", "ok=yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "[simulated] First then yes\n");
}

#[test]
fn inputs_come_from_options_and_files() {
    let dir = workspace(&[
        (
            "a.prose",
            "input a: \"A\"\ninput b: \"B\"\noutput r = \"{a}+{b}\"\n",
        ),
        ("in.json", "{\"b\": \"from file\", \"a\": \"overridden\"}"),
    ]);
    let args = [
        "run",
        "a.prose",
        "--backend",
        "simulate",
        "--inputs",
        "in.json",
        "--input",
        "a=x=y",
    ];
    let ran = prose(dir.path(), &args);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "x=y+from file\n"), "{ran:?}");
}

#[test]
fn json_is_one_event_a_line_and_every_start_has_an_end() {
    let dir = everything();
    let ran = prose(
        dir.path(),
        &["run", "everything.prose", "--backend", "simulate", "--json"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.first().unwrap()["type"], "run_started");
    assert_eq!(events.last().unwrap()["type"], "run_finished");
    let mut open = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for event in &events {
        let kind = event["type"].as_str().unwrap();
        kinds.insert(kind.to_owned());
        let Some((what, phase)) = kind
            .rsplit_once('_')
            .filter(|(_, p)| ["started", "finished"].contains(p))
        else {
            continue;
        };
        let key = match what {
            "run" => String::new(),
            "statement" => event["path"].to_string(),
            "frame" => event["frame"].to_string(),
            "construct" => event["construct"].to_string(),
            "part" => format!("{} {}", event["construct"], event["index"]),
            _ => event["effect"].to_string(),
        };
        let key = format!("{what} {key}");
        match phase {
            "started" => assert!(open.insert(key.clone()), "{key} started twice"),
            _ => assert!(open.remove(&key), "{key} finished without a start"),
        }
    }
    assert!(open.is_empty(), "never finished: {open:#?}");
    for kind in [
        "session_started",
        "judge_started",
        "input_started",
        "sleep_started",
        "frame_started",
        "bound",
    ] {
        assert!(kinds.contains(kind), "{kind} is missing: {kinds:?}");
    }
}

#[test]
fn the_run_directory_is_the_seeds() {
    let dir = everything();
    let ran = prose(
        dir.path(),
        &["run", "everything.prose", "--backend", "simulate", "--quiet"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let run = only_run(dir.path());
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 6, 6], "{id}");
    let files = files_below(&run);
    let text = |name: &str| match files.get(name) {
        Some(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        None => panic!("{name} is not among {:#?}", files.keys()),
    };
    assert_eq!(
        text("program.prose"),
        std::fs::read_to_string(dir.path().join("everything.prose")).unwrap()
    );
    assert!(text("state.md").starts_with("# Execution State\n\nrun: "));
    let plan = text("bindings/plan.md");
    assert!(
        plan.starts_with("# plan\n\nkind: let\n\nsource:\n```prose\n"),
        "{plan}"
    );
    assert!(text("bindings/everything.md").contains("kind: output"));
    assert!(text("bindings/places.md").contains("kind: const"));
    assert!(text("bindings/topic.md").contains("kind: input"));
    let any = |start: &str, end: &str| {
        assert!(
            files
                .keys()
                .any(|name| name.starts_with(start) && name.ends_with(end)),
            "{start}*{end} is not among {:#?}",
            files.keys()
        );
    };
    any("bindings/report__", ".md");
    any("bindings/anon_", ".md");
    any("agents/captain/captain-001", ".md");
    any("agents/captain/memory", ".md");
    any("imports/", "/bindings/answer.md");
    any("journal", ".jsonl");
    any("bundle", ".json");
}

#[test]
fn check_reports_text_and_json_with_utf16_columns() {
    let dir = workspace(&[("a.prose", "let x = session \"𝒳 {y}\"\nsession: nobody\n")]);
    let ran = prose(dir.path(), &["check", "a.prose"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("error[E007]"), "{ran:?}");
    let ran = prose(dir.path(), &["check", "--format", "json", "a.prose"]);
    assert_eq!(ran.code, 1);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["summary"]["errors"], 1);
    let diagnostics = report["files"][0]["diagnostics"].as_array().unwrap();
    let undefined = diagnostics.iter().find(|d| d["code"] == "E007").unwrap();
    assert_eq!(undefined["range"]["start"], json!({"line": 1, "character": 9}));
    // `let x = session "` is 17 long, `𝒳 ` is three UTF-16 units, the brace one.
    let unknown_name = diagnostics.iter().find(|d| d["code"] == "P340").unwrap();
    assert_eq!(unknown_name["range"]["start"]["character"], 21, "{unknown_name}");
}

#[test]
fn check_takes_folders_and_denies_warnings_on_request() {
    let dir = workspace(&[
        ("p/a.prose", "session \"\"\n"),
        ("p/q/b.prose", HELLO),
        ("p/.hidden/c.prose", "]]]\n"),
    ]);
    let ran = prose(dir.path(), &["check", "p"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("W001"), "{ran:?}");
    assert_eq!(prose(dir.path(), &["check", "p", "--deny", "warnings"]).code, 1);
}

#[test]
fn check_fixes_what_needs_no_decision() {
    let dir = workspace(&[
        (
            "p/a.prose",
            "do: # two\r\n\tsession: \"a\"\r\n\tif **b**: session \"c\"\r\nsession: nobdy\r\n",
        ),
        ("p/b.prose", HELLO),
        ("prose.toml", "[lint]\nP305 = \"off\"\n"),
    ]);
    let ran = prose(dir.path(), &["check", "--fix", "p"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("fixed 3 problems in 1 file"), "{ran:?}");
    assert!(
        ran.stdout.contains("E007") && !ran.stdout.contains("P102"),
        "{ran:?}"
    );
    let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(
        text("p/a.prose"),
        "do: # two\r\n  session \"a\"\r\n  if **b**: session \"c\"\r\nsession: nobdy\r\n"
    );
    assert_eq!(text("p/b.prose"), HELLO);
    let entries = std::fs::read_dir(dir.path().join("p")).unwrap().count();
    assert_eq!(entries, 2, "nothing else is left there");
    let ran = prose(dir.path(), &["check", "--fix", "p"]);
    assert!(ran.stderr.contains("nothing to fix without asking"), "{ran:?}");
}

#[test]
fn files_that_may_only_be_read_stay() {
    const UNTIDY: &str = "session:  \"a\"\n";
    let dir = workspace(&[("a.prose", UNTIDY)]);
    let path = dir.path().join("a.prose");
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    for command in [&["check", "--fix", "a.prose"][..], &["fmt", "a.prose"]] {
        let ran = prose(dir.path(), command);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("read-only"), "{ran:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), UNTIDY);
}

#[test]
fn comments_silence_and_know_what_is_off() {
    let program = "session \"\" # prose: allow W001\nsession \"a\" # prose: allow W002\n";
    let dir = workspace(&[("a.prose", program)]);
    let codes = |dir: &std::path::Path| {
        let ran = prose(dir, &["check", "a.prose", "--format", "json"]);
        let out: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let found = out["files"][0]["diagnostics"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        found.iter().map(|it| it["code"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(codes(dir.path()), ["\"P345\""]);
    std::fs::write(dir.path().join("prose.toml"), "[lint]\nW002 = \"off\"\n").unwrap();
    assert_eq!(codes(dir.path()), [] as [&str; 0]);
}

#[test]
fn explain_prints_a_page_and_rejects_unknown_codes() {
    let dir = workspace(&[]);
    let ran = prose(dir.path(), &["explain", "e007"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.stdout.contains("E007") && ran.stdout.contains("```prose"),
        "{ran:?}"
    );
    let ran = prose(dir.path(), &["explain", "E999"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
}

#[test]
fn usage_errors_are_2() {
    let dir = workspace(&[("a.prose", HELLO)]);
    for args in [
        &["run"][..],
        &["run", "missing.prose"],
        &["run", "a.prose", "--backend", "nonsense"],
        &[
            "run",
            "a.prose",
            "--backend",
            "simulate",
            "--mock",
            "missing.toml",
        ],
        &[
            "run",
            "a.prose",
            "--backend",
            "simulate",
            "--input",
            "no-equals-sign",
        ],
        &["run", "a.prose", "--backend", "simulate", "--input", "unknown=1"],
        &["run", "a.prose", "--backend", "simulate", "--inputs", "a.prose"],
        &["run", "someone/something", "--backend", "simulate"],
        &["resume", "20260101-000000-abcdef"],
        &["resume", "../../etc"],
        &["check", "missing.prose"],
        &["nonsense"],
    ] {
        let ran = prose(dir.path(), args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
        assert!(!ran.stderr.contains("panicked"), "{args:?}: {ran:?}");
    }
}

#[test]
fn bad_bytes_give_a_message_and_never_a_panic() {
    let mut noise = Vec::new();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..65_536 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.push(state as u8);
    }
    let long = format!("session \"{}\"\n", "x".repeat(1 << 20));
    let nested = |levels: usize| {
        let mut text = String::new();
        for depth in 0..levels {
            text.push_str(&" ".repeat(depth));
            text.push_str("do:\n");
        }
        text.into_bytes()
    };
    let brackets = format!("let x = {}\n", "[".repeat(10_000));
    let cases: Vec<(&str, Vec<u8>, i32)> = vec![
        ("noise", noise, 2),
        ("invalid UTF-8", b"session \"\xff\xfe\"\n".to_vec(), 2),
        ("nul", b"session \"a\0b\"\n\0".to_vec(), 1),
        ("long line", long.into_bytes(), 0),
        ("nested", nested(5_000), 1),
        // 50 MB: longer than any program, refused as such.
        ("deeply nested", nested(10_000), 2),
        ("brackets", brackets.into_bytes(), 1),
        ("bom", "\u{feff}session \"Hi\"\n".into(), 0),
        (
            "crlf",
            b"agent a:\r\n  model: opus\r\n\r\nsession: a\r\n  prompt: \"Hi\"\r\n".to_vec(),
            0,
        ),
        (
            "cr",
            b"agent a:\r  model: opus\rsession: a\r  prompt: \"Hi\"\r".to_vec(),
            0,
        ),
        ("tabs", b"agent a:\n\tmodel: opus\n".to_vec(), 1),
        ("empty", Vec::new(), 0),
    ];
    for (name, bytes, check_code) in cases {
        let dir = workspace(&[]);
        std::fs::write(dir.path().join("a.prose"), &bytes).unwrap();
        let ran = prose(dir.path(), &["check", "a.prose"]);
        assert_eq!(
            ran.code, check_code,
            "check {name}: {} {}",
            ran.stdout, ran.stderr
        );
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
        let ran = prose(
            dir.path(),
            &["run", "a.prose", "--backend", "simulate", "--quiet"],
        );
        assert_eq!(
            ran.code,
            if check_code == 0 { 0 } else { 2 },
            "run {name}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
        if check_code != 0 {
            assert!(!ran.stderr.trim().is_empty(), "{name} says nothing");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_completed_run_whose_output_can_not_be_written_exits_with_1() {
    let dir = workspace(&[("a.prose", HELLO)]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = prose_tests::prose_command(dir.path())
        .args(["run", "a.prose", "--backend", "simulate", "--quiet"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
}

#[test]
fn event_lines_neither_repeat_choices_nor_name_parts_of_nothing() {
    let dir = workspace(&[(
        "a.prose",
        "input go: \"Go? (yes/no)\"\nif go == \"yes\":\n  session \"A\"\nelse:\n  session \"B\"\n",
    )]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("Go? (yes/no)\n"), "{ran:?}");
    assert!(
        !ran.stderr.lines().any(|line| line.trim_end().ends_with(" of")),
        "{ran:?}"
    );
}

#[test]
fn a_page_can_go_to_a_device_or_a_pipe() {
    let dir = workspace(&[("a.prose", "session \"go\"\n")]);
    let ran = prose(dir.path(), &["run", "a.prose", "--backend", "simulate", "-q"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    if cfg!(unix) {
        let page = prose(dir.path(), &["runs", "show", "last", "--report", "/dev/stdout"]);
        assert!(
            page.code == 0 && page.stdout.trim_end().ends_with("</html>"),
            "{page:?}"
        );
    }
}

#[test]
fn commands_that_go_on_work_where_the_person_is() {
    let dir = workspace(&[
        ("pro ject/prose.toml", ""),
        ("pro ject/a.prose", "input q: \"Which?\"\n"),
        ("pro ject/a.mock.toml", "[defaults]\nask = true\n"),
        ("other/prose.toml", ""),
    ]);
    let other = dir.path().join("other");
    let ran = prose(
        &other,
        &["run", "../pro ject/a.prose", "--backend", "simulate", "-q"],
    );
    assert_eq!(ran.code, 3, "{ran:?}");
    let root = dir.path().join("pro ject").canonicalize().unwrap();
    let expected = format!("to answer: cd '{}' && prose resume 2", root.display());
    assert!(ran.stderr.contains(&expected), "{ran:?}");
}

/// What happens when the disk is full, shown by a limit for the size of files.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_half_run_and_says_how_to_go_on() {
    let dir = workspace(&[("a.prose", "repeat 400:\n  session \"go\"\noutput o = \"done\"\n")]);
    let limited = |blocks: u32| -> prose_tests::Ran {
        let prose = prose_tests::bin("prose");
        let script = format!(
            "trap '' XFSZ; ulimit -f {blocks}; exec '{}' run a.prose --backend simulate -q",
            prose.display()
        );
        std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(dir.path())
            .output()
            .unwrap()
            .into()
    };
    let none = limited(0);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{none:?}");
    let left = std::fs::read_dir(dir.path().join(".prose/runs")).unwrap().count();
    assert_eq!(left, 0, "nothing ran, nothing stays");
    let cut = limited(60);
    assert_eq!((cut.code, cut.stdout.as_str()), (1, ""), "{cut:?}");
    let run = prose_tests::only_run(dir.path());
    let id = run.file_name().unwrap().to_string_lossy().into_owned();
    assert!(
        cut.stderr.contains("journal.jsonl") && cut.stderr.contains(&format!("prose resume {id}\n")),
        "{cut:?}"
    );
    let resumed = prose(dir.path(), &["resume", &id, "-q"]);
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (0, "done\n"),
        "{resumed:?}"
    );
}

/// Nobody reads what is written, so that the process hangs in a write.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_process_that_waits_for_a_reader() {
    let dir = workspace(&[("a.prose", "repeat 400:\n  session \"go\"\n")]);
    let mut child = prose_tests::prose_command(dir.path())
        .args(["run", "a.prose", "--backend", "simulate", "--json"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let ended = |dir: &std::path::Path| {
        prose(dir, &["runs", "--format", "json"])
            .stdout
            .contains("\"completed\"")
    };
    while !ended(dir.path()) {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "the pipe was large enough for all events"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let status = loop {
        let sent = std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        std::thread::sleep(std::time::Duration::from_millis(50));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn no_count_of_tokens_is_too_large() {
    let dir = workspace(&[
        ("a.prose", "session \"one\"\nsession \"two\"\n"),
        (
            "a.mock.toml",
            "[[session]]\nreply = \"ok\"\ntokens = { in = 9223372036854775807, out = 9223372036854775807 }\n",
        ),
    ]);
    let ran = prose(
        dir.path(),
        &["run", "a.prose", "--backend", "simulate", "--budget", "5"],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    for looked in [&["runs"][..], &["runs", "show", "last"], &["resume", "last"]] {
        let looked = prose(dir.path(), looked);
        assert_eq!(looked.code, 0, "{looked:?}");
    }
}

/// A terminal does what the control characters in a text say.
#[cfg(unix)]
#[test]
fn names_of_files_do_not_drive_the_terminal() {
    let name = "a\u{1b}[2J.prose";
    let dir = workspace(&[(name, "session \"one\"\nthrow \"no\"\n")]);
    for args in [
        &["run", name, "--backend", "simulate"][..],
        &["runs"],
        &["runs", "show", "last"],
        &["run", "nowhere\u{1b}[2J.prose"],
    ] {
        let ran = prose(dir.path(), args);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(text.contains("[2J.prose") && !text.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn a_mock_file_is_not_passed_over_by_a_real_backend() {
    let dir = workspace(&[
        ("a.prose", "session \"go\"\n"),
        ("a.mock.toml", "[[session]]\nreply = \"mock\"\n"),
        (
            "prose.toml",
            "[run]\nbackend = \"local\"\n[backends.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
        ),
    ]);
    let ran = prose(dir.path(), &["run", "a.prose", "--mock", "a.mock.toml"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("add --backend simulate"), "{ran:?}");
    let ran = prose(
        dir.path(),
        &[
            "run",
            "a.prose",
            "-q",
            "--mock",
            "a.mock.toml",
            "--backend",
            "simulate",
        ],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
}
