//! What is offered in place of a text or a part of it: the canonical form, parts formatted, what typing brings, quick fixes.

use prose_fmt::{Options, TextEdit, apply, canonical, format_range, format_text, on_type};
use prose_hir::{Diagnostic, Fix, RootDatabase, SourceFile, fix_all, fix_code, fixes};
use prose_model::codes::Severity;
use prose_syntax::{Parse, SyntaxKind, TextRange, TextSize, parse};

use crate::program::{as_rewritten, program};
use crate::{analysis, formatter::contents};

/// Places, ranges and findings that are tried of each text. All of a long one would take a time that grows with its square.
const PLACES: usize = 6;

pub(crate) fn check(text: &str) {
    let parse = parse(text);
    canonical_form(&parse, text);
    parts(&parse, text);
    typing(text);

    let mut db = analysis::database();
    analysis::set(&mut db, text);
    if let Some(file) = db.source(analysis::MAIN) {
        quick_fixes(&db, file, &parse, text);
    }
}

fn canonical_form(parse: &Parse, text: &str) {
    let form = canonical(parse);
    if parse.has_errors() {
        return;
    }
    let meant = program(text);
    if meant.is_none() {
        return;
    }
    let again = prose_syntax::parse(&form);
    assert!(
        !again.has_errors(),
        "the canonical form has errors: {:?}, in\n{form}",
        again.errors()
    );
    assert_eq!(canonical(&again), form, "the canonical form has another");
    assert_eq!(format_text(&form), form, "the canonical form is not formatted");
    // `session name: agent` becomes `let name = session: agent`, which is another statement of the same effect.
    let named = parse.syntax().descendants().any(|node| {
        node.kind() == SyntaxKind::SESSION_EXPR && node.children().any(|it| it.kind() == SyntaxKind::NAME)
    });
    let means = program(&form);
    assert!(means.is_some(), "the canonical form can not be run:\n{form}");
    assert!(
        named || as_rewritten(means) == as_rewritten(meant),
        "the canonical form is another program:\n{form}"
    );
}

/// Parts of a text formatted: blanks move and nothing else, and the program stays what it is.
fn parts(parse: &Parse, text: &str) {
    let step = text.len() / PLACES + 1;
    let mut last = Vec::new();
    for start in (0..text.len()).step_by(step) {
        // A cursor, a few words, and several lines.
        for len in [0, 12, step] {
            let range = TextRange::new(size(start), size(start + len));
            let edits = format_range(parse, text, range, &Options::default());
            if edits.is_empty() || edits == last {
                continue;
            }
            sensible(
                edits.iter().map(|it| it.range),
                text,
                &format!("formatting {range:?}"),
            );
            let formatted = apply(text, &edits);
            assert_eq!(
                contents(text),
                contents(&formatted),
                "formatting {range:?} changed more than blanks, to\n{formatted}"
            );
            if !parse.has_errors() {
                assert!(
                    program(text) == program(&formatted),
                    "formatting {range:?} changed what the program is, to\n{formatted}"
                );
            }
            last = edits;
        }
    }
}

/// What is changed while a person types, behind line ends, colons, and where neither is.
fn typing(text: &str) {
    for typed in ['\n', ':', 'x'] {
        let behind = |(at, _): (usize, &str)| at + typed.len_utf8();
        let places: Vec<usize> = text.match_indices(typed).map(behind).collect();
        let some = places.iter().copied().step_by(places.len() / PLACES + 1);
        for at in some.chain([0, text.len() / 2, text.len(), text.len() + 1]) {
            let edits = on_type(text, size(at), typed);
            let what = format!("{typed:?} at {at}");
            sensible(edits.iter().map(|it| it.range), text, &what);
            let blank =
                |it: &TextEdit| it.insert.chars().all(|c| c == ' ') && text[it.range].trim().is_empty();
            assert!(
                edits.iter().all(blank),
                "{what} changed more than blanks: {edits:?}"
            );
        }
    }
}

fn quick_fixes(db: &RootDatabase, file: SourceFile, parse: &Parse, text: &str) {
    let found = analysis::found(db);
    let before = errors(&found);
    let lost = parse.has_errors();
    let step = found.len() / PLACES + 1;
    for target in found.iter().step_by(step) {
        for fix in fixes(db, file, target) {
            let what = format!("`{}` of {}", fix.title, target.code);
            assert!(!fix.title.is_empty(), "{what} has no title");
            sensible(fix.edits.iter().map(|it| it.0), text, &what);
            let after = fix.apply(text);
            assert_ne!(after, text, "{what} changes nothing");
            // Where the parser was lost, anything may come to light.
            if fix.automatic && !lost {
                kept(text, before, &after, &what);
            }
        }
    }
    let (edits, made) = fix_all(db, file, &|_| true);
    assert!(made > 0 || edits.is_empty(), "no fix makes {edits:?}");
    sensible(edits.iter().map(|it| it.0), text, "everything automatic");
    kept(
        text,
        before,
        &Fix::new("", edits).apply(text),
        "everything automatic",
    );
    if let Some(it) = found
        .iter()
        .find(|it| fixes(db, file, it).iter().any(|it| it.automatic))
    {
        let (edits, _) = fix_code(db, file, it.code);
        sensible(edits.iter().map(|it| it.0), text, it.code);
    }
}

/// A change that is made unseen brings up no error, and the program means the same.
fn kept(text: &str, before: usize, after: &str, what: &str) {
    if text == after {
        return;
    }
    let mut db = analysis::database();
    analysis::set(&mut db, after);
    let found = analysis::found(&db);
    assert!(
        errors(&found) <= before,
        "{what} brings up errors: {found:#?}, in\n{after}"
    );
    if before == 0 {
        assert!(
            as_rewritten(program(text)) == as_rewritten(program(after)),
            "{what} changed what the program is, to\n{after}"
        );
    }
}

fn errors(found: &[Diagnostic]) -> usize {
    found.iter().filter(|it| it.severity == Severity::Error).count()
}

/// Edits are in the text, on boundaries of characters, and apart from each other.
fn sensible(ranges: impl Iterator<Item = TextRange>, text: &str, what: &str) {
    let mut ranges: Vec<TextRange> = ranges.collect();
    ranges.sort_by_key(|it| (it.start(), it.end()));
    for range in &ranges {
        assert!(
            text.get(usize::from(range.start())..usize::from(range.end()))
                .is_some(),
            "{what} edits {range:?}, outside the text or inside a character"
        );
    }
    for two in ranges.windows(2) {
        assert!(
            two[0].end() <= two[1].start(),
            "{what} has edits that overlap: {two:?}"
        );
        assert!(two[0] != two[1], "{what} inserts twice at {two:?}");
    }
}

fn size(at: usize) -> TextSize {
    TextSize::from(u32::try_from(at).unwrap_or(u32::MAX))
}
