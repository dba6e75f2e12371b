//! What is reported where, and that neighbours stay whole.

use expect_test::{Expect, expect};
use prose_syntax::{SyntaxErrorKind, parse};

use crate::error_codes;

/// Compares the findings of a text, marked under its lines.
#[track_caller]
fn check(text: &str, expect: Expect) {
    let parse = parse(text);
    let index = prose_syntax::LineIndex::new(text);
    let mut out = String::new();
    for error in parse.errors() {
        let (from, to) = (index.utf8(error.range.start()), index.utf8(error.range.end()));
        let place = if from.line == to.line {
            format!("{}:{}-{}", from.line + 1, from.col + 1, to.col + 1)
        } else {
            format!(
                "{}:{}-{}:{}",
                from.line + 1,
                from.col + 1,
                to.line + 1,
                to.col + 1
            )
        };
        out.push_str(&format!(
            "{place} {} {} {error}\n",
            error.code(),
            error.severity().as_str()
        ));
    }
    expect.assert_eq(&out);
}

/// The bad line sits between two good statements; they must be there, whole, and only these errors reported.
#[track_caller]
fn between(bad: &str, codes: &[&str]) {
    let text =
        format!("let before = session \"b\"\n  retry: 1\n{bad}\nsession \"after\"\n  context: before\n");
    assert_eq!(error_codes(&text), codes, "{bad}");
    let tree = parse(&text).tree();
    let statements: Vec<String> = tree.statements().map(|it| it.to_string()).collect();
    assert_eq!(
        statements.first().map(String::as_str),
        Some("let before = session \"b\"\n  retry: 1"),
        "{bad}"
    );
    assert_eq!(
        statements.last().map(String::as_str),
        Some("session \"after\"\n  context: before"),
        "{bad}"
    );
}

#[test]
fn one_bad_statement_damages_no_neighbour() {
    for word in ["save", "ask", "enable", "gate", "exec"] {
        between(&format!("{word} \"x\""), &["E004"]);
        between(
            &format!("{word} thing:\n  session \"inner\"\n  more of it"),
            &["E004"],
        );
    }
    between("session \"open", &["E001"]);
    between("session \"bad \\q\"", &["E002"]);
    between("session", &["E003"]);
    between("resume:", &["E003"]);
    between("session name", &["E003"]);
    between("let x =", &["E005"]);
    between("let 3 = x", &["E005"]);
    between("let x", &["E005"]);
    between("agent:", &["E005"]);
    between("agent a b:\n  model: x", &["E004"]);
    between("agent a\n  model: x", &["E005"]);
    between("block f(:\n  session \"x\"", &["P105"]);
    for word in [
        "do",
        "parallel",
        "loop",
        "try",
        "if a",
        "for a in b",
        "repeat 3",
        "block f",
        "choice **a b c**",
    ] {
        let inner = if word.starts_with("choice") {
            "option \"a\":\n    do f"
        } else {
            "do f"
        };
        between(&format!("{word}\n  {inner}"), &["E005"]);
    }
    between("loop 3:\n  do f", &["E004"]);
    between("if :\n  session \"x\"", &["E004"]);
    between("if a\n  session \"x\"", &["E005"]);
    between("if a then:\n  session \"x\"", &["E004"]);
    between("if a = b:\n  session \"x\"", &["E004"]);
    between("if **a:\n  session \"x\"", &["P101"]);
    between("if ****:\n  session \"x\"", &["P107"]);
    between("else:\n  session \"x\"", &["E004"]);
    between("elif a:\n  session \"x\"", &["E004"]);
    between("catch:\n  session \"x\"", &["E004"]);
    between("finally:\n  session \"x\"", &["E004"]);
    between("option \"a\":\n  session \"x\"", &["E004"]);
    between("for x xs:\n  session \"x\"", &["E005"]);
    between("for x in:\n  session \"x\"", &["E004"]);
    between("parallel {\n  session \"x\"\n}", &["E004"]);
    between(
        "choice **which one**:\n  session \"x\"\n  session \"y\"",
        &["E005"],
    );
    between("xs | sort:\n  session \"x\"", &["E004"]);
    between("xs | reduce:\n  session \"x\"", &["E005"]);
    between("f(a, (b", &["P105"]);
    between("x = [1, 2", &["P105"]);
    between("x = {a: 1", &["P105"]);
    between("x = (1]", &["E004"]);
    between("}", &["E004"]);
    between("?!", &["E004"]);
    between("a && b", &["E004"]);
    between("prompt: \"x\"", &["E005"]);
    between("prompt:\n  \"x\"", &["E005"]);
    between("do f\n  session \"x\"", &["P104"]);
    between("input: \"x\"", &["E020"]);
    between("input \"x\"", &["E020"]);
    between("use x", &["E005"]);
    between("do:\n    session \"x\"\n   session \"y\"", &["P103"]);
    between("do:\n\tsession \"x\"", &["P102"]);
    between("sesion \"x\"\n  prompt: \"y\"", &["E004"]);
    between("session \"x\"\n  retry: 120s", &["P108"]);
    between("session \"x\"\n  retry 3", &["E005"]);
    between("session \"x\"\n  retry:", &["E005"]);
    between("session \"x\"\n  \"y\"", &["P104"]);
    between("x = “quoted”", &["E004"]);
}

#[test]
fn calls_of_values_are_errors() {
    for text in ["do h.judge(\"x\")\n", "let v = r.f(1)\n", "f(1).g(2)\n"] {
        let parse = parse(text);
        let errors: Vec<_> = parse.errors().iter().map(|it| it.to_string()).collect();
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].contains("by their own name"), "{errors:?}");
    }
}

#[test]
fn messages_name_a_way_out() {
    check(
        "ask \"x\"\nwhile **a b c**:\n  do f\nsesion \"x\"\nsession \"a\\q\"\nif a = b:\n  do f\nfrobnicate the widget\n",
        expect![[r#"
            1:1-4 E004 error `ask` begins no statement: use `input name: "…"` to ask a person or `session "…"` to ask an agent
            2:1-6 E004 error `while` begins no statement: use `loop while **…**:`
            4:1-7 E004 error `sesion` begins no statement: use `session`
            5:11-13 E002 error unknown escape `\q`: known are `\\ \" \n \t \{ \}`; write `\\` for a backslash
            6:6-7 E004 error `=` can't stand here: write `==`
            8:1-11 E004 error `frobnicate` begins no statement: to let an agent do something write `session "…"`, to call a block `do frobnicate`
        "#]],
    );
}

#[test]
fn unclosed_bracket_ends_at_the_next_statement() {
    check(
        "session \"x\"\n  context: [a, b\n  retry: 3\nlet y = f(1,\n  2\nlet z = {a: 1,\nagent b:\n  model: x\n",
        expect![[r#"
        2:12-13 P105 error `[` is never closed: add `]`
        4:10-11 P105 error `(` is never closed: add `)`
        6:9-10 P105 error `{` is never closed: add `}`
    "#]],
    );
}

#[test]
fn wrong_closers() {
    check(
        "x = [a)\ny = (b]\nz = f(a))\n",
        expect![[r#"
        1:7-8 E004 error unexpected `)`, expected `]`
        2:7-8 E004 error unexpected `]`, expected `)`
        3:9-10 E004 error unexpected `)`, expected the end of the line
    "#]],
    );
}

#[test]
fn warnings_and_hints_about_forms() {
    check(
        "session n:\n  prompt: \"x\"\nsession: \"x\"\nsession \"x\":\n  context: a, b\nlet a = **is it so**\nname_{v} = 1\n\
         loop as i (max: {n}):\n  break\nif **a\n  b**: do f\nelse if b: do g\ntry:\n  do f\ncatch e:\n  do g\nlet übung = [a b]\n",
        expect![[r#"
            1:1-8 P203 warning session has a name but no agent: write `let name = session "…"`, or name the agent after `:`
            3:1-8 P204 warning write `session "…"` without the colon
            4:1-8 P204 warning no `:` is needed after a session's text
            5:12-16 P205 warning write a list in brackets: `[a, b]`
            6:9-21 P202 warning a discretion as a value is judged once, here: `if **…**` or a session says more clearly what is meant
            7:1-9 P207 warning a computed name becomes a field of a record: write a record or list instead
            8:11-21 P307 hint usual order: condition, then `(max: n)`, then `as name`
            8:17-20 P308 hint no braces are needed around the value
            9:3-8 P208 warning `break` is understood here but other tools may not know it
            10:4-11:6 P301 hint use `***` for a discretion over several lines
            11:8-10 P305 hint put the body on an indented line of its own
            12:1-5 P213 warning write `elif`
            12:12-14 P305 hint put the body on an indented line of its own
            15:7-8 P214 warning write `catch as name:`
            17:5-11 P302 hint name with letters beyond ASCII: other tools may not accept it
            17:16-16 P212 warning a comma is missing between the elements
        "#]],
    );
}

#[test]
fn invisible_characters_are_blanks() {
    check(
        "session\u{a0}\"x\"\n\u{a0}\u{a0}retry: 1\n",
        expect![[r#"
        1:8-10 P221 warning invisible character U+00A0: replace it with a space
        2:1-5 P221 warning invisible character U+00A0: replace it with a space
    "#]],
    );
}

#[test]
fn every_code_is_listed_once_with_the_severity_of_its_number() {
    let codes = SyntaxErrorKind::CODES;
    for (i, (code, severity, title)) in codes.iter().enumerate() {
        assert!(
            codes[..i].iter().all(|(other, ..)| other < code),
            "{code} is out of order"
        );
        let by_number = match &code[..2] {
            "P2" => "warning",
            "P3" => "hint",
            _ => "error",
        };
        assert_eq!(severity.as_str(), by_number, "{code}");
        assert!(!title.is_empty());
    }
}

#[test]
fn unterminated_triple_string_is_one_error() {
    assert_eq!(
        error_codes("session \"\"\"\nfoo\n  bar: [\nsessions \"x\n"),
        ["E001"]
    );
}

#[test]
fn prose_that_looks_like_code_stays_inside_strings() {
    assert_eq!(
        error_codes("session \"\"\"\nsession \"x\"\n\tif foo:\n]})\n\"\"\"\nsession ***\n a # b \" c\n***\n"),
        ["E004"]
    );
}

/// A reader that looks at the rest of the text for each of these would not come to an end here.
#[test]
fn long_runs_of_openers_are_read_once() {
    for (piece, most) in [
        ("(", 2),
        ("\"\"\"", 1),
        ("**", 1),
        ("***\nlet a = 1\n", 1),
        ("-", 1),
        (">", 1),
        ("f(a:\n  session \"x\"\n", 60_000),
        ("x = [\n", 60_000),
        ("agent a:\n  prompt: \"\"\"\n    text\n", 60_000),
    ] {
        let text = piece.repeat(300_000 / piece.len());
        let parse = parse(&text);
        assert_eq!(parse.syntax().text(), text.as_str(), "{piece:?}");
        assert!(
            parse.errors().len() <= most,
            "{piece:?}: {}",
            parse.errors().len()
        );
    }
}

/// One error of a text, with its message.
#[track_caller]
fn one(text: &str, message: &str) {
    let parse = parse(text);
    let found: Vec<String> = parse
        .errors()
        .iter()
        .filter(|it| it.severity() != prose_model::codes::Severity::Hint)
        .map(|it| format!("{} {it}", &text[it.range]))
        .collect();
    assert_eq!(found, [message], "{text}");
}

#[test]
fn what_newcomers_write_has_one_error_with_the_way_out() {
    one(
        "session writer \"Write\"",
        "session writer `session` needs a prompt or an agent: to run agent `writer` write `session: writer`",
    );
    let words = |it: &str| {
        format!("{it} a condition in words stands between stars, for the model to judge: write `**{it}**`")
    };
    one(
        "loop until the draft is good:\n  do f",
        &words("the draft is good"),
    );
    one(
        "if it's all well:\n  do f\nelse:\n  do g",
        &words("it's all well"),
    );
    one(
        "if a:\n  do f\nelif the draft is good:\n  do g",
        &words("the draft is good"),
    );
    one(
        "choice the best way:\n  option \"a\":\n    do g",
        &words("the best way"),
    );
    one(
        "if a:\n  do f\nelseif b:\n  do g\nelse:\n  do h",
        "elseif `elseif` begins no statement: use `elif`",
    );
    one(
        "try:\n  do f\nexcept Error as err:\n  do g\nfinally:\n  do h",
        "except `except` begins no statement: use `catch:` or `catch as err:`",
    );
    for more in ["= \"kind\"", ": text", "= f(1, 2)"] {
        let text = format!("block greet(name, tone {more}):\n  do f");
        let sign = &more[..1];
        one(
            &text,
            &format!(
                "{sign} a parameter is only a name, without default or type: remove this, and pass the value in each call"
            ),
        );
    }
    for word in ["except", "rescue"] {
        one(
            &format!("{word}:\n  do f"),
            &format!("{word} `{word}` begins no statement: use `catch:` or `catch as err:`"),
        );
    }
    one("if !a:\n  do f", "! `!` can't stand here: write `not`");
    one("if a === 3:\n  do f", "=== `===` can't stand here: write `==`");
    one("if a !== 3:\n  do f", "!== `!==` can't stand here: write `!=`");
    one("if 'ok':\n  do f", "' `'` can't stand here: write `\"`");
    for args in ["\"Bo\"", "3, x", "name"] {
        one(
            &format!("do greet {args}"),
            &format!("{args} arguments go into parentheses: write `do greet(…)`"),
        );
    }
    one(
        "agent w:\n  prompt: You write well.\n  model: x",
        "You a text stands in quotes: write `prompt: \"…\"`",
    );
    one(
        "import \"a.prose\"",
        "import \"a.prose\" `import` only declares a skill, and only with `from \"…\"`: to bring in a program write `use \"…\"`",
    );
    one(
        "for each item in xs:\n  do f",
        "each `each` is a word too many: remove it",
    );
    one("for item of xs:\n  do f", "of `of` can't stand here: write `in`");
    for sign in ["/", "%", "*"] {
        let message = format!(
            "{sign} there is no `{sign}`, numbers can only be added and subtracted: let a session calculate the rest"
        );
        one(&format!("let a = 7 {sign} 2"), &message);
        one(&format!("let a = n {sign} 2"), &message);
    }
    for text in ["let url = input \"Enter\"", "url = input: \"Enter\""] {
        one(
            text,
            "input an input is a statement of its own, which binds its name: write `input url: \"…\"`",
        );
    }
    one(
        "let ys = xs | map (x):\n  do f",
        "(x) `map` takes no name, the item is called `item`: write `map:`",
    );
    one(
        "let l =\n  - \"a\"\n  - \"b\"\ndo f",
        "- \"a\"\n  - \"b\" write the list in brackets: `[a, b]`",
    );
    one(
        "let l = - \"a\"",
        "- `-` before a text means nothing: remove it, or write a list in brackets, `[\"a\", \"b\"]`",
    );
}

#[test]
fn what_only_looks_like_a_slip_is_right() {
    for text in [
        "if a is b:\n  do f",
        "if a is not b and not c:\n  do f",
        "for each in xs:\n  do f",
        "for each, i in xs:\n  do f",
        "let x =\n  -1",
        "let x =\n  - 1",
        "let x =\n  -y",
        "let l = 3 - 1",
        "agent w:\n  prompt: a + b",
        "session \"x\"\n  prompt: do f",
        "let input = 3\nlet x = input",
        "let x = do f\nlet y = do g + do h",
        "try:\n  do f\ncatch:\n  do g\nexcept = 3",
        "if a:\n  do f\nelseif = 3",
    ] {
        let parse = parse(text);
        let bad: Vec<String> = parse
            .errors()
            .iter()
            .filter(|it| it.code() != "P223")
            .filter(|it| it.severity() != prose_model::codes::Severity::Hint)
            .map(|it| it.to_string())
            .collect();
        assert!(bad.is_empty(), "{text}: {bad:?}");
    }
}
