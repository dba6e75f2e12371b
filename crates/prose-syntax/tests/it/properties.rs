//! Properties that hold for every text.

use proptest::prelude::*;
use prose_syntax::{LineIndex, MAX_TREE_DEPTH, TextSize, WalkEvent, parse};

use crate::chunks::check_concatenation;

/// Pieces that programs are made of, in any order.
const SOUP: &[&str] = &[
    "session",
    "resume",
    "agent",
    "block",
    "let",
    "const",
    "input",
    "output",
    "use",
    "import",
    "from",
    "as",
    "do",
    "parallel",
    "for",
    "in",
    "repeat",
    "loop",
    "until",
    "while",
    "try",
    "catch",
    "finally",
    "throw",
    "choice",
    "option",
    "if",
    "elif",
    "else",
    "return",
    "break",
    "assert",
    "and",
    "or",
    "not",
    "true",
    "null",
    "map",
    "filter",
    "reduce",
    "chunks",
    "prompt",
    "context",
    "permissions",
    "model",
    "x",
    "foo-bar",
    "\"text\"",
    "\"a {b} c\"",
    "\"\"\"",
    "\"",
    "**",
    "***",
    "**judge**",
    "****",
    "12",
    "1.5",
    "120s",
    "->",
    "|",
    "+",
    "-",
    "==",
    "=",
    "<",
    ":",
    ":",
    ":",
    ",",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "@",
    "#",
    "# note",
    "\\",
    "'",
    "&&",
    "é",
    "\u{a0}",
    "\u{feff}",
    "\t",
    "\r",
    "\r\n",
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n  ",
    "\n    ",
    "\n      ",
    "\n\n",
    "\n   ",
    "| map:",
    "prompt: |",
    "session \"x\"\n",
    "if **a b**:\n  ",
    "- ",
];

fn soup() -> impl Strategy<Value = String> {
    let piece = (prop::sample::select(SOUP), any::<bool>());
    prop::collection::vec(piece, 0..60).prop_map(|pieces| {
        let mut out = String::new();
        for (piece, blank) in pieces {
            out.push_str(piece);
            if blank {
                out.push(' ');
            }
        }
        out
    })
}

/// Lossless, bounded, and findings inside the text and on character boundaries.
fn check_text(text: &str) {
    let parse = parse(text);
    assert_eq!(parse.syntax().text(), text);
    let mut depth = 0;
    for event in parse.syntax().preorder() {
        match event {
            WalkEvent::Enter(_) => depth += 1,
            WalkEvent::Leave(_) => depth -= 1,
        }
        assert!(depth <= MAX_TREE_DEPTH);
    }
    for error in parse.errors() {
        assert!(
            text.get(usize::from(error.range.start())..usize::from(error.range.end()))
                .is_some(),
            "{error:?}"
        );
        assert!(!error.to_string().is_empty());
    }
    for token in parse
        .syntax()
        .descendants_with_tokens()
        .filter_map(|it| it.into_token())
    {
        let start = token.text_range().start();
        let segments = prose_syntax::text::segments(token.kind(), token.text(), start);
        prose_syntax::text::joined(&segments, token.text(), start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn any_string_is_parsed_losslessly(text in any::<String>()) {
        check_text(&text);
    }

    #[test]
    fn token_soup_is_parsed_losslessly(text in soup()) {
        check_text(&text);
    }

    #[test]
    fn chunks_of_soup_make_the_whole(text in soup()) {
        check_concatenation(&text);
    }

    #[test]
    fn positions_go_there_and_back(text in "[a-z é😀\r\n]{0,40}") {
        let index = LineIndex::new(&text);
        for (at, _) in text.char_indices() {
            if text.as_bytes()[at] == b'\n' && at > 0 && text.as_bytes()[at - 1] == b'\r' {
                continue; // Between CR and LF is no position of its own.
            }
            let offset = TextSize::try_from(at).unwrap();
            assert_eq!(index.offset_utf8(&text, index.utf8(offset)), offset);
            assert_eq!(index.offset_utf16(&text, index.utf16(&text, offset)), offset);
        }
    }
}
