//! Quick fixes for what the parser finds: each settles its finding and brings up no other.

use expect_test::{Expect, expect};
use prose_hir::{Diagnostic, Fix};
use test_fixture::Fixture;

use crate::support::{found, load};

fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let fixture = Fixture {
        files: vec![test_fixture::File {
            path: "main.prose".into(),
            text: text.into(),
        }],
        ..Fixture::parse("")
    };
    found(&load(&fixture), 0)
}

fn apply(text: &str, fix: &Fix) -> String {
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|it| std::cmp::Reverse(it.0.start()));
    let mut text = text.to_owned();
    for (range, with) in edits {
        text.replace_range(usize::from(range.start())..usize::from(range.end()), &with);
    }
    text
}

fn codes(found: &[Diagnostic]) -> Vec<&'static str> {
    let mut codes: Vec<_> = found.iter().map(|it| it.code).collect();
    codes.sort_unstable();
    codes
}

/// Applies the fix of the first finding of a code. That finding must go and no other may come.
#[track_caller]
fn check(code: &str, text: &str, expect: Expect) {
    let before = diagnostics(text);
    let Some(target) = before.iter().find(|it| it.code == code) else {
        panic!("no {code}: {before:#?}");
    };
    let fix = target.fix.as_ref().unwrap_or_else(|| panic!("{code} has no fix"));
    let fixed = apply(text, fix);
    expect.assert_eq(&fixed);
    // Others may go with it: an agent that seemed unused is used now.
    let mut allowed = codes(&before);
    allowed.remove(allowed.iter().position(|it| *it == code).unwrap());
    for code in codes(&diagnostics(&fixed)) {
        let at = allowed.iter().position(|it| *it == code);
        allowed.remove(at.unwrap_or_else(|| panic!("{code} in\n{fixed}")));
    }
}

#[test]
fn characters() {
    check(
        "P102",
        "do:\n\tsession \"a\"\n",
        expect![[r#"
        do:
          session "a"
    "#]],
    );
    check(
        "P102",
        "do:\n  do:\n  \tsession \"a\"\n  \tsession \"b\"\n",
        expect![[r#"
            do:
              do:
                session "a"
              	session "b"
        "#]],
    );
    check(
        "P102",
        "do:\n\t \tsession \"a\"\n",
        expect![[r#"
        do:
            session "a"
    "#]],
    );
    check(
        "E002",
        "session \"a\\d+ b\"\n",
        expect![[r#"
        session "a\\d+ b"
    "#]],
    );
    check(
        "E001",
        "session \"a\nsession \"b\"\n",
        expect![[r#"
        session "a"
        session "b"
    "#]],
    );
    check(
        "P221",
        "session\u{a0}\"a\"\n",
        expect![[r#"
        session "a"
    "#]],
    );
    check(
        "P301",
        "if **it\n  rains**:\n  session \"a\"\n",
        expect![[r#"
        if ***it
          rains***:
          session "a"
    "#]],
    );
    check(
        "P220",
        "agent a:\n  persist: .notes/a/\nsession: a\n  prompt: \"x\"\n",
        expect![[r#"
            agent a:
              persist: ".notes/a/"
            session: a
              prompt: "x"
        "#]],
    );
    check(
        "E005",
        "use alice/research\n",
        expect![[r#"
        use "alice/research"
    "#]],
    );
}

#[test]
fn words() {
    check(
        "P213",
        "let x = 1\nif x == 1:\n  session \"a\"\nelse  if x == 2:\n  session \"b\"\n",
        expect![[r#"
            let x = 1
            if x == 1:
              session "a"
            elif x == 2:
              session "b"
        "#]],
    );
    check(
        "P214",
        "try:\n  session \"a\"\ncatch err:\n  session \"b {err.message}\"\n",
        expect![[r#"
            try:
              session "a"
            catch as err:
              session "b {err.message}"
        "#]],
    );
    check(
        "E004",
        "let x = 1\nif x == 1&&x < 2:\n  session \"a\"\n",
        expect![[r#"
            let x = 1
            if x == 1 and x < 2:
              session "a"
        "#]],
    );
    check(
        "E004",
        "let x = 1\nif x = 1:\n  session \"a\"\n",
        expect![[r#"
        let x = 1
        if x == 1:
          session "a"
    "#]],
    );
    check(
        "E004",
        "sesion \"a\"\n",
        expect![[r#"
        session "a"
    "#]],
    );
    check(
        "E005",
        "repeat 3\n  session \"a\"\n",
        expect![[r#"
        repeat 3:
          session "a"
    "#]],
    );
    check(
        "E005",
        "do\n  session \"a\"\n",
        expect![[r#"
        do:
          session "a"
    "#]],
    );
    check(
        "E005",
        "session \"a\"\n  retry 3\n",
        expect![[r#"
        session "a"
          retry: 3
    "#]],
    );
    check(
        "P142",
        "block f(depth):\n  do f(depth-1)\ndo f(1)\n",
        expect![[r#"
        block f(depth):
          do f(depth - 1)
        do f(1)
    "#]],
    );
    check(
        "P308",
        "let n = 2\nloop (max: {n}):\n  session \"a\"\n",
        expect![[r#"
            let n = 2
            loop (max: n):
              session "a"
        "#]],
    );
}

#[test]
fn sessions() {
    const AGENT: &str = "agent a:\n  prompt: \"You are a.\"\n";
    check(
        "E003",
        &format!("{AGENT}session a\n"),
        expect![[r#"
        agent a:
          prompt: "You are a."
        session: a
    "#]],
    );
    check(
        "P204",
        "session: \"a\"\n",
        expect![[r#"
        session "a"
    "#]],
    );
    check(
        "P204",
        "session \"a\":\n  retry: 2\n",
        expect![[r#"
        session "a"
          retry: 2
    "#]],
    );
    check(
        "P204",
        &format!("{AGENT}let x = session: a \"text\"\n  retry: 2\n"),
        expect![[r#"
            agent a:
              prompt: "You are a."
            let x = session: a
              prompt: "text"
              retry: 2
        "#]],
    );
    check(
        "P204",
        &format!("{AGENT}do:\n  session: a \"text\"\n"),
        expect![[r#"
            agent a:
              prompt: "You are a."
            do:
              session: a
                prompt: "text"
        "#]],
    );
    check(
        "P204",
        "session \"a\" (retry: 3, backoff: \"linear\")\n",
        expect![[r#"
            session "a"
              retry: 3
              backoff: "linear"
        "#]],
    );
}

#[test]
fn names() {
    check(
        "P204",
        "session \"a\" as x\n  retry: 2\noutput y = x\n",
        expect![[r#"
            let x = session "a"
              retry: 2
            output y = x
        "#]],
    );
    check(
        "P219",
        "let x = session \"a\"\noutput y: x\n",
        expect![[r#"
        let x = session "a"
        output y = x
    "#]],
    );
}

#[test]
fn lists_and_bodies() {
    check(
        "P205",
        "let a = session \"a\"\nlet b = session \"b\"\nsession \"c\"\n  context: a, b\n",
        expect![[r#"
            let a = session "a"
            let b = session "b"
            session "c"
              context: [a, b]
        "#]],
    );
    check(
        "P209",
        "agent a:\n  skills:\n    - \"x\"\n    - \"y\"\nsession: a\n  prompt: \"x\"\n",
        expect![[r#"
            agent a:
              skills: ["x", "y"]
            session: a
              prompt: "x"
        "#]],
    );
    check(
        "P209",
        "agent a:\n  skills:\n  - \"x\"\n  prompt: \"y\"\nsession: a\n",
        expect![[r#"
            agent a:
              skills: ["x"]
              prompt: "y"
            session: a
        "#]],
    );
    check(
        "P210",
        "agent a:\n  prompt: |\n    one\n    two\nsession: a\n",
        expect![[r#"
            agent a:
              prompt: """
                one
                two
              """
            session: a
        "#]],
    );
    check(
        "P212",
        "let x = [\"a\" \"b\"]\n",
        expect![[r#"
        let x = ["a", "b"]
    "#]],
    );
    check(
        "P305",
        "if **it rains**: session \"a\"\n",
        expect![[r#"
        if **it rains**:
          session "a"
    "#]],
    );
}

/// Where the change would not be the whole of it, none is offered.
#[test]
fn no_fix_by_half() {
    for (code, text) in [
        ("E003", "session a\n"),
        ("E005", "repeat 3\n"),
        (
            "P209",
            "agent a:\n  skills: # these\n    - \"x\"\nsession: a\n  prompt: \"x\"\n",
        ),
        ("P210", "agent a:\n  prompt: |\n    one \\d\nsession: a\n"),
        ("P305", "else_ = [do: session \"a\"]\n"),
    ] {
        let found = diagnostics(text);
        let target = found.iter().find(|it| it.code == code);
        let target = target.unwrap_or_else(|| panic!("no {code} in {text}: {found:#?}"));
        assert_eq!(target.fix, None, "{text}");
    }
}
