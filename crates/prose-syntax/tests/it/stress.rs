//! Extreme texts: deep, long, hostile. All run on a test's small stack.

use prose_syntax::parse;

/// Parses, compares the text, drops the tree.
fn survives(text: &str) -> Vec<&'static str> {
    let parse = parse(text);
    assert!(parse.syntax().text() == text);
    let mut codes: Vec<&str> = parse.errors().iter().map(|it| it.code()).collect();
    codes.dedup();
    codes
}

#[test]
fn deep_indentation() {
    let mut text = String::new();
    for level in 0..10_000 {
        text.push_str(&" ".repeat(level.min(3000)));
        text.push_str("do:\n");
    }
    assert!(survives(&text).contains(&"P106"));
}

#[test]
fn deep_properties() {
    let mut text = "agent a:\n".to_owned();
    for level in 1..2_000 {
        text.push_str(&" ".repeat(level));
        text.push_str("k:\n");
    }
    survives(&text);
}

#[test]
fn deep_brackets() {
    for bracket in ["[", "(", "{", "f(", "{a: ", "a[", "[f({k: "] {
        assert!(
            survives(&format!("x = {}", bracket.repeat(10_000))).contains(&"P106"),
            "{bracket}"
        );
    }
    survives(&format!("x = {}{}", "[".repeat(10_000), "]".repeat(10_000)));
    survives(&")]}".repeat(10_000));
    survives(&format!("x = {}{}", "(".repeat(200_000), "]".repeat(200_000)));
}

#[test]
fn deep_operators() {
    for piece in [
        "- ",
        "not ",
        "not - ",
        "if ",
        "repeat ",
        "a -> ",
        "a + ",
        "a.",
        "loop until ",
        "choice ",
        "output ",
    ] {
        survives(&format!("x = {}a", piece.repeat(10_000)));
        survives(&format!("{}a", piece.repeat(10_000)));
    }
    assert!(survives(&format!("x = {}a", "a + ".repeat(10_000))).contains(&"P106"));
    survives(&format!("x = xs {}", "| map: a ".repeat(10_000)));
    survives(&"if a: ".repeat(10_000));
    survives(&"do\n ".repeat(10_000));
    survives(&"else: ".repeat(10_000));
    survives(&"session a: ".repeat(10_000));
}

#[test]
fn deep_clauses() {
    let mut text = "if a:\n  do f\n".to_owned();
    text.push_str(&"elif b:\n  do g\n".repeat(10_000));
    assert_eq!(survives(&text), [""; 0]);
}

#[test]
fn one_long_line() {
    survives(&format!("session \"{}\"", "a {b} \\n ".repeat(120_000)));
    survives(&"a".repeat(1_000_000));
    survives(&"a ".repeat(500_000));
    survives(&"\u{1F600}".repeat(250_000));
    survives(&format!("x = [{}]", "1, ".repeat(300_000)));
    survives(&"**a b** ".repeat(120_000));
    survives(&"a: | ".repeat(200_000));
}

#[test]
fn many_unterminated() {
    survives(&"***a\n".repeat(20_000));
    survives(&"**a\n\n".repeat(20_000));
    survives(&"\"a\n".repeat(20_000));
    survives(&"x = [\n".repeat(20_000));
    survives(&"prompt: |\n  a\n".repeat(20_000));
    survives(&"prompt: |\n".repeat(20_000));
    survives(&"# c\n  ".repeat(20_000));
}
