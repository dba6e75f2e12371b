//! Mock files: what parses, what does not and where, which rule wins.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use expect_test::{Expect, expect};
use prose_agents::{MockFile, SessionAnswer};

#[track_caller]
fn check_error(text: &str, expect: Expect) {
    let error = MockFile::parse(text).expect_err("the text should not parse");
    expect.assert_eq(&error.to_string());
}

#[test]
fn toml_and_json_give_the_same_file() {
    let toml = r#"
[defaults]
reply = "r"
[[session]]
agent = "a"
nth = 2
fail = "timeout"
tokens = { in = 10, out = 20 }
[[verdict]]
condition = "go"
answers = [false, "unsure", 3]
[[input]]
name = "topic"
value = ["x", { k = 1.5 }]
"#;
    let json = r#"{"defaults": {"reply": "r"},
        "session": [{"agent": "a", "nth": 2, "fail": "timeout", "tokens": {"in": 10, "out": 20}}],
        "verdict": [{"condition": "go", "answers": [false, "unsure", 3]}],
        "input": [{"name": "topic", "value": ["x", {"k": 1.5}]}]}"#;
    let (toml, json) = (MockFile::parse(toml).unwrap(), MockFile::parse(json).unwrap());
    assert_eq!(format!("{:?}", toml.sessions), format!("{:?}", json.sessions));
    assert_eq!(format!("{:?}", toml.verdicts), format!("{:?}", json.verdicts));
    assert_eq!(format!("{:?}", toml.inputs), format!("{:?}", json.inputs));
    assert_eq!(toml.verdicts[0].answers.len(), 3);
}

#[test]
fn an_unknown_key_is_an_error_with_its_line() {
    check_error(
        "[defaults]\nreply = \"r\"\n\n[[session]]\nagnet = \"x\"\n",
        expect![
            "mock:5: unknown field `agnet`, expected one of `agent`, `binding`, `prompt`, `nth`, `reply`, `file`, `fail`, `delay_ms`, `tokens`, `memory`"
        ],
    );
    check_error(
        "{\n\"sessions\": []\n}",
        expect![
            "mock:2: unknown field `sessions`, expected one of `defaults`, `session`, `verdict`, `input`, `decode`"
        ],
    );
}

#[test]
fn bad_values_are_errors_with_their_line() {
    check_error(
        "[[session]]\n\nprompt = \"(\"\n",
        expect!["mock:3: bad regular expression `(`: unclosed group"],
    );
    check_error(
        "[[session]]\nagent = \"a\"\n[[session]]\nreply = \"a\"\nfail = \"timeout\"\n",
        expect!["mock:3: session rule 2: only one of `reply`, `file` and `fail` is possible"],
    );
    check_error(
        "[[session]]\nnth = 0\n",
        expect!["mock:1: session rule 1: `nth` counts from 1"],
    );
    check_error(
        "[[verdict]]\ncondition = \"x\"\nanswers = []\n",
        expect!["mock:1: verdict rule 1: `answers` needs at least one answer"],
    );
    check_error(
        "[[session]]\nfail = { kind = \"tired\" }\n",
        expect![
            "mock:2: unknown kind of failure `tired`; one of backend, timeout, permission, empty, budget"
        ],
    );
}

#[test]
fn reply_files_are_read_once_and_travel_with_the_text() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("reply.md"), "from a \"file\"\n").unwrap();
    let path = dir.path().join("x.mock.toml");
    std::fs::write(
        &path,
        "[[session]]\nagent = \"a\"\nfile = \"reply.md\"\n[[session]]\nreply = \"b\"\n",
    )
    .unwrap();
    let mock = MockFile::load(&path).unwrap();
    let again = MockFile::parse(mock.portable_text()).unwrap();
    for mock in [&mock, &again] {
        assert_eq!(
            mock.sessions[0].answer,
            SessionAnswer::Reply("from a \"file\"\n".to_owned())
        );
        assert_eq!(mock.sessions[1].answer, SessionAnswer::Reply("b".to_owned()));
    }
    assert_eq!(MockFile::beside(&dir.path().join("x.prose")), Some(path));
    assert_eq!(MockFile::beside(&dir.path().join("y.prose")), None);

    std::fs::write(
        dir.path().join("y.mock.toml"),
        "[[session]]\nfile = \"gone.md\"\n",
    )
    .unwrap();
    let error = MockFile::load(&dir.path().join("y.mock.toml"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("gone.md"), "{error}");
    let error = MockFile::load(Path::new("/nowhere/z.mock.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/nowhere/z.mock.toml: can't be read"),
        "{error}"
    );
}
