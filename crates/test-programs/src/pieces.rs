//! What programs are made of, for putting other ones together.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use prose_model::vocabulary as v;
use prose_syntax::{ChunkMap, parse};

use crate::originals;

/// Signs and words that no table lists: delimiters, and what commonly goes wrong with text.
const SIGNS: &[&str] = &[
    "\n",
    "\n",
    "\n  ",
    "\n    ",
    "\n      ",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    "\"",
    "\"\"\"",
    "'",
    "**",
    "***",
    "****",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    ":\n  ",
    ",",
    ".",
    "|",
    "|\n    ",
    "->",
    "=",
    "==",
    "!=",
    "<=",
    "+",
    "-",
    "- ",
    "#",
    "# ",
    "@",
    "\\",
    "\\n",
    "\\u",
    "&&",
    "||",
    "//",
    "é",
    "😀",
    "\u{301}",
    "\u{a0}",
    "\u{200b}",
    "\u{feff}",
    "0",
    "1",
    "2.5",
    "30s",
    "1e9",
    "99999999999999999999",
    "x",
    "item",
    "x-y",
    "x[0]",
    "x.y",
    "{x}",
    "{x.y[0]}",
    "\"{x}\"",
    "\"a\"",
    "**it is so**",
    "# prose: allow W004",
    "# prose: allow",
    "as x",
    "(max: 3)",
    "(\"first\", on-fail: \"continue\")",
];

/// Pieces of programs, short and long, each once: every word of the vocabulary and its patterns of use, signs, lines, statements
/// at every depth as they stand, and whole chunks of the repository's programs.
pub fn pieces() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        let mut add = |piece: &str| {
            if !piece.is_empty() && piece.len() <= 1024 && seen.insert(piece.to_owned()) {
                all.push(piece.to_owned());
            }
        };
        SIGNS.iter().for_each(|it| add(it));
        for it in v::KEYWORDS {
            add(it.word);
            add(&format!("{} ", it.word));
            add(it.usage);
        }
        for it in v::PROPERTIES {
            add(&format!("{}: ", it.key));
            add(it.usage);
            it.values.iter().for_each(|value| add(value.word));
        }
        for list in [
            v::MODELS,
            v::PERMISSIONS,
            v::PERMISSION_VALUES,
            v::ERROR_KEYS,
            v::LIST_KEYS,
        ] {
            list.iter().for_each(|it| add(it.word));
        }
        for program in originals() {
            let text = &program.text;
            text.split_inclusive('\n').for_each(&mut add);
            ChunkMap::with_target(text, 1)
                .ranges()
                .for_each(|it| add(&text[it]));
            for node in parse(text).syntax().descendants() {
                add(&node.text().to_string());
            }
        }
        all
    })
}
