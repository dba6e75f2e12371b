//! Inside strings, discretions and block text.

use prose_syntax::{
    SyntaxKind::{self, *},
    TextSize,
    ast::{AstNode, DiscretionExpr, Literal},
    parse,
    text::{self, PathStep, Segment},
};

/// Segments in short: text as it is, interpolations in ⟨⟩ with their steps.
fn show(kind: SyntaxKind, token: &str) -> String {
    let mut out = String::new();
    for segment in text::segments(kind, token, TextSize::from(0)) {
        match segment {
            Segment::Text { text, .. } => out.push_str(&text),
            Segment::Interpolation(it) => {
                out.push('⟨');
                out.push_str(&it.root.name);
                for step in it.path {
                    match step {
                        PathStep::Field(name) => out.push_str(&format!(".{}", name.name)),
                        PathStep::Index { index, .. } => out.push_str(&format!("[{index}]")),
                        PathStep::IndexName(name) => out.push_str(&format!("[={}]", name.name)),
                    }
                }
                out.push('⟩');
            }
        }
    }
    out
}

#[test]
fn interpolations_and_what_is_none() {
    for (written, meant) in [
        ("Hi {name}, {a.b} {c[0].d[i]}!", "Hi ⟨name⟩, ⟨a.b⟩ ⟨c[0].d[=i]⟩!"),
        ("{my-name}{x}{_y1}", "⟨my-name⟩⟨x⟩⟨_y1⟩"),
        (
            "{} {{x}} ${X} {a: b} {some words} { padded }",
            "{} {{x}} ${X} {a: b} {some words} { padded }",
        ),
        (
            r#"{"a": 1} {a.} {.a} {a[} {a[]} {a[0} {1} {a"#,
            r#"{"a": 1} {a.} {.a} {a[} {a[]} {a[0} {1} {a"#,
        ),
        (r"\{x\} \\{x} \{", r"{x} \⟨x⟩ {"),
        ("{\"k\": {x}}", "{\"k\": ⟨x⟩}"),
        ("é{é}é", "é⟨é⟩é"),
        (r"a\nb\tc", "a\nb\tc"),
    ] {
        let token = format!("\"\"\"{written}\"\"\"");
        assert_eq!(show(TRIPLE_STRING, &token), meant, "{written}");
    }
    assert_eq!(show(DISCRETION, "**is {x} \\{y} so**"), "is ⟨x⟩ \\⟨y⟩ so");
}

#[test]
fn ranges_are_exact() {
    let source = "session \"ab {c.d[10][e]} f\"";
    let root = parse(source).syntax();
    let string = root
        .descendants()
        .find_map(Literal::cast)
        .and_then(|it| it.string())
        .unwrap();
    let segments = string.segments();
    let Segment::Interpolation(it) = &segments[1] else {
        panic!("{segments:?}")
    };
    assert_eq!(&source[it.range], "{c.d[10][e]}");
    assert_eq!(&source[it.path_range()], "c.d[10][e]");
    assert_eq!(&source[it.root.range], "c");
    let steps: Vec<&str> = it
        .path
        .iter()
        .map(|step| match step {
            PathStep::Field(name) | PathStep::IndexName(name) => &source[name.range],
            PathStep::Index { range, .. } => &source[*range],
        })
        .collect();
    assert_eq!(steps, ["d", "10", "e"]);
    let texts: Vec<&str> = segments
        .iter()
        .filter_map(|it| match it {
            Segment::Text { range, .. } => Some(&source[*range]),
            Segment::Interpolation(_) => None,
        })
        .collect();
    assert_eq!(texts, ["ab ", " f"]);
    assert_eq!(&source[string.content_range()], "ab {c.d[10][e]} f");
    assert_eq!(string.text(), "ab {c.d[10][e]} f");
}

#[test]
fn dedent() {
    for (written, meant) in [
        ("\"\"\"\n  a\n    b\n\n  c\n\"\"\"", "a\n  b\n\nc"),
        ("\"\"\"a\n    b\n  c\"\"\"", "a\nb\nc"),
        ("\"\"\"a\n    b\n    c\n  \"\"\"", "a\nb\nc"),
        ("\"\"\"one line\"\"\"", "one line"),
        ("\"\"\"\"\"\"", ""),
        ("\"\"\"\n\"\"\"", ""),
        ("\"\"\"  \r\n  a\r\n  b\r\n\"\"\"", "a\nb"),
        ("\"\"\"\n  {x}\n    y\n  \"\"\"", "⟨x⟩\n  y"),
        ("\"\"\"\n\ta\n\tb\n\"\"\"", "a\nb"),
        ("\"\"\"\n  a\\n  b\n\"\"\"", "a\n  b"),
        // What an escape stands for is no layout.
        ("\"\"\"\n  a\\n\\t \n\"\"\"", "a\n\t"),
        ("\"\"\"\\n\"\"\"", "\n"),
        ("\"\"\"say \"hi\"\"\"\"", "say \"hi\""),
        ("\"\"\"\\d+ \\w \\\\ \\\"\"\"\"", "\\d+ \\w \\ \""),
    ] {
        assert_eq!(show(TRIPLE_STRING, written), meant, "{written:?}");
    }
    assert_eq!(show(BLOCK_TEXT, "\n    a\n      b\n\n    {c}"), "a\n  b\n\n⟨c⟩");
    assert_eq!(show(BLOCK_TEXT, "\u{b} \u{a0}\n    a"), "a");
}

#[test]
fn where_strings_end() {
    let token = |source: &str| {
        let first = parse(source).syntax().first_token().unwrap();
        (first.kind(), first.text().to_owned())
    };
    let triple = |text: &str| (TRIPLE_STRING, text.to_owned());
    assert_eq!(token("\"\"\"a\"\"\"\" x"), triple("\"\"\"a\"\"\"\""));
    assert_eq!(token("\"\"\"a\"\"\"\"\" x"), triple("\"\"\"a\"\"\"\"\""));
    assert_eq!(token("\"\"\"a\"\"\"\"\"\"b\"\"\""), triple("\"\"\"a\"\"\""));
    assert_eq!(token("\"\"\"\"\"\" x"), triple("\"\"\"\"\"\""));
    assert_eq!(token("\"\"\"a\\\"\"\"b\"\"\""), triple("\"\"\"a\\\"\"\"b\"\"\""));
    assert_eq!(token("\"a\\\"b\" x"), (STRING, "\"a\\\"b\"".to_owned()));
    assert_eq!(token("\"a\\\nb"), (STRING, "\"a\\".to_owned()));
    assert_eq!(token("\"\" x"), (STRING, "\"\"".to_owned()));
    assert_eq!(token("\"a\rb"), (STRING, "\"a".to_owned()));
}

#[test]
fn where_discretions_end() {
    let token = |source: &str| {
        let root = parse(source).syntax();
        let found = root
            .descendants_with_tokens()
            .filter_map(|it| it.into_token())
            .find(|it| it.kind() == DISCRETION);
        found.map(|it| it.text().to_owned()).unwrap()
    };
    assert_eq!(token("if **a # \" b** or **c**:"), "**a # \" b**");
    assert_eq!(token("if ***a\n\n** b\n***:"), "***a\n\n** b\n***");
    assert_eq!(token("  if **a\n  b**:"), "**a\n  b**");
    // One that ends its line may hold paragraphs, up to a closing `**` on a line of its own.
    assert_eq!(
        token("  input a: **\n    b\n\n    c {d}\n  **\n"),
        "**\n    b\n\n    c {d}\n  **"
    );
    assert_eq!(token("if **  \r\n  b\r\n\r\n  c**:"), "**  \r\n  b\r\n\r\n  c**");
    assert_eq!(token("if **\n  b\n\ndo f\nif **c**:"), "**");
    assert_eq!(token("  if **\n    b\n\ndo **c"), "**");
    // A blank or shallower line, or one whose stars are its own, ends the search.
    assert_eq!(token("if **a:\n\nb**:"), "**a");
    assert_eq!(token("  if **a:\nb**:"), "**a");
    assert_eq!(token("if **a:\n  if **b**:\n"), "**a");
    assert_eq!(token("if ***a: \n  b\n"), "***a");
    assert_eq!(token("****"), "****");
    assert_eq!(token("******"), "******");
    assert_eq!(token("**src/***"), "**src/***");
}

#[test]
fn discretion_accessors() {
    let root = parse("if ** ready ** or ***\n  a {b}\n***:\n  do f\n").syntax();
    let all: Vec<_> = root
        .descendants()
        .filter_map(DiscretionExpr::cast)
        .filter_map(|it| it.token())
        .collect();
    assert_eq!(all[0].as_name().as_deref(), Some("ready"));
    assert!(!all[0].is_block() && all[1].is_block());
    assert_eq!(all[1].text(), "\n  a {b}\n");
    assert_eq!(all[1].as_name(), None);
    assert_eq!(all[1].segments().len(), 3);
}

#[test]
fn escapes_have_places() {
    let token = "\"a\\n\\q\\\\\"";
    let found: Vec<(&str, Option<char>)> = text::escapes(STRING, token, TextSize::from(0))
        .into_iter()
        .map(|it| (&token[it.range], it.value))
        .collect();
    assert_eq!(found, [("\\n", Some('\n')), ("\\q", None), ("\\\\", Some('\\'))]);
    assert_eq!(
        text::escapes(TRIPLE_STRING, "\"\"\"\\d\\t\"\"\"", TextSize::from(0)).len(),
        1
    );
}
