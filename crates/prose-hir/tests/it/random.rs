//! Edits at random: nothing panics, and the way to a text never shows.

use prose_hir::{
    Change, FileId, RootDatabase, bundle, definitions, diagnostics, name_at, references, scope_at,
};

use crate::support::file;

/// A small generator of numbers; the same seed gives the same test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

const PIECES: &[&str] = &[
    "\n",
    "  ",
    "\"",
    "\"\"\"",
    "**",
    "***",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ":",
    ",",
    ".",
    "|",
    "->",
    "=",
    "#",
    "\t",
    "é",
    "let ",
    "const ",
    "session ",
    "session: ",
    "resume: ",
    "agent ",
    "block ",
    "do ",
    "do:",
    "parallel:",
    "for x in ",
    "loop ",
    "until ",
    "if ",
    "else:",
    "try:",
    "catch as e:",
    "choice ",
    "option ",
    "use ",
    "input ",
    "output ",
    "prompt: ",
    "context: ",
    "item",
    "x",
    "x[0]",
    "{x}",
    "| map:",
    "throw",
    "break",
    "return ",
    "persist: true",
];

fn programs() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut out: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "prose"))
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect();
    out.sort();
    assert!(!out.is_empty());
    out
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn set(db: &mut RootDatabase, text: &str) {
    let mut change = Change::new();
    change.text(FileId(0), "/main.prose", text);
    db.apply_change(change);
}

#[test]
fn edits_at_random() {
    let mut numbers = Numbers(7);
    for text in programs() {
        let mut text = text;
        let mut db = RootDatabase::default();
        for _ in 0..40 {
            let from = boundary(&text, numbers.below(text.len() + 1));
            let to = boundary(&text, (from + numbers.below(12)).min(text.len()));
            let with = match numbers.below(3) {
                0 => String::new(),
                1 => PIECES[numbers.below(PIECES.len())].to_owned(),
                _ => format!(
                    "{}{}",
                    PIECES[numbers.below(PIECES.len())],
                    PIECES[numbers.below(PIECES.len())]
                ),
            };
            text.replace_range(from..to.max(from), &with);
            set(&mut db, &text);
            let source = file(&db, 0);
            let found = diagnostics(&db, source);
            for it in &found {
                assert!(
                    text.get(usize::from(it.range.start())..usize::from(it.range.end()))
                        .is_some(),
                    "{it:?}\n{text}"
                );
            }

            let mut fresh = RootDatabase::default();
            set(&mut fresh, &text);
            assert_eq!(found, diagnostics(&fresh, file(&fresh, 0)), "{text}");
            let errors = found
                .iter()
                .any(|it| it.severity == prose_model::codes::Severity::Error);
            assert_eq!(bundle(&db, source).is_err(), errors, "{text}");

            let at = numbers.below(text.len() + 2) as u32;
            scope_at(&db, source, at.into());
            if let Some(definition) = name_at(&db, source, at.into()).and_then(|it| it.definition) {
                let places = references(&db, &definition);
                assert!(
                    places.iter().all(|it| usize::from(it.range.end()) <= text.len()),
                    "{text}"
                );
            }
        }
        definitions(&db, file(&db, 0));
    }
}
