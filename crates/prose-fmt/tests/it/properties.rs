//! What holds for every text.

use proptest::prelude::*;

use prose_syntax::SyntaxKind::{self, *};

/// Pieces of programs, good and bad.
const PIECES: &[&str] = &[
    "session \"x\"",
    "session: a",
    "session a:",
    "resume: a",
    "prompt: \"y\"",
    "prompt: \"\"\"a\n  b\"\"\"",
    "prompt: |\n      raw",
    "context: [a, b]",
    "context: a, b",
    "context:",
    "- \"x\"",
    "let x = ",
    "x = 1",
    "output ",
    "return",
    "if a:",
    "elif b:",
    "else:",
    "else if c:",
    "try:",
    "catch as e:",
    "finally:",
    "throw",
    "loop until **done** (max: 3):",
    "parallel (\"any\", count: 2):",
    "parallel for x in xs:",
    "for x, i in xs:",
    "repeat 3:",
    "choice **which**:",
    "option \"a\":",
    "do f(1, k: 2)",
    "do:",
    "block f(a, b):",
    "agent a:",
    "use \"a/b\" as c",
    "input x: \"d\"",
    "| map: session \"m\"",
    "| filter:",
    "| reduce(a, b):",
    "-> session \"n\"",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    "=",
    "+",
    "and",
    "or",
    "not",
    "**d d**",
    "***e\n\nf***",
    "\"open",
    "\"\"\"",
    "**",
    "# note",
    "1",
    "120s",
    "a.b",
    "a[0]",
    "{ a, b: 1 }",
    "[1,\n 2,\n]",
    ":",
    "|",
    "->",
    "-",
    "é",
    "\u{a0}",
    "\u{feff}",
    "@x/y:1",
    "read: [\"**\"]",
    "permissions:",
    "model: gpt-4.1",
    "odd: 5 m\n      more: x",
];

fn program() -> impl Strategy<Value = String> {
    let blank = prop_oneof![
        6 => Just("\n".to_owned()),
        2 => (0usize..9).prop_map(|n| format!("\n{}", " ".repeat(n))),
        4 => (0usize..5).prop_map(|n| format!("\n{}", "  ".repeat(n))),
        1 => Just("\n\t".to_owned()),
        1 => Just("\r\n  ".to_owned()),
        1 => Just("\n\n\n".to_owned()),
        4 => Just(" ".to_owned()),
        2 => Just(String::new()),
        1 => Just("   ".to_owned()),
    ];
    let piece = prop::sample::select(PIECES);
    prop::collection::vec((blank, piece), 0..24).prop_map(|parts| {
        parts
            .iter()
            .map(|(blank, piece)| format!("{blank}{piece}"))
            .collect()
    })
}

/// Tokens that formatting must keep: all but blanks and commas.
fn tokens(text: &str) -> Vec<(SyntaxKind, String)> {
    prose_syntax::parse(text)
        .syntax()
        .descendants_with_tokens()
        .filter_map(|it| it.into_token())
        .filter(|it| !matches!(it.kind(), WHITESPACE | COMMA))
        .map(|it| (it.kind(), it.text().trim_ascii_end().to_owned()))
        .collect()
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    let parse = prose_syntax::parse(text);
    let edits = prose_fmt::format(&parse, text, &prose_fmt::Options::default());
    for pair in edits.windows(2) {
        prop_assert!(
            pair[0].range.end() <= pair[1].range.start(),
            "edits overlap: {:?}",
            pair
        );
    }
    let once = prose_fmt::apply(text, &edits);
    let again = prose_fmt::format_text(&once);
    prop_assert_eq!(&again, &once, "idempotent");
    prop_assert_eq!(tokens(text), tokens(&once));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn programs_of_pieces(text in program()) {
        holds(&text)?;
    }

    #[test]
    fn any_text(text in any::<String>()) {
        holds(&text)?;
    }

    #[test]
    fn text_of_punctuation(text in "[a-c\\[\\](){}|:,=.\\-> \n\t\"*#0-9+<]{0,60}") {
        holds(&text)?;
    }

    #[test]
    fn every_line_end_keeps_its_kind(text in program(), eol in prop::sample::select(&["\r\n", "\r"][..])) {
        let text = text.replace("\r\n", "\n").replace('\n', eol);
        let once = prose_fmt::format_text(&text);
        let rest = once.replace(eol, "");
        prop_assert!(!rest.contains(['\n', '\r']), "{:?}", once);
        holds(&text)?;
    }
}
