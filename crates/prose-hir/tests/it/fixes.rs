//! Quick fixes: each settles its finding, brings up no other, and keeps every comment; an automatic one keeps the meaning.

use std::collections::BTreeMap;

use expect_test::expect;
use prose_hir::{Change, Diagnostic, FileId, Fix, RootDatabase, bundle, diagnostics, fix_all, fixes};
use prose_model::codes::{CODES, Repair, Severity};
use prose_syntax::{SyntaxKind, SyntaxNode};

use crate::fix_cases::{self, Case};
use crate::random::programs;

/// A program that others can use.
const LIB: &str = "input topic: \"What to look into\"\noutput report = session \"Look into {topic}\"\n";

const MAIN: FileId = FileId(0);

fn load(text: &str) -> RootDatabase {
    let mut change = Change::new();
    change.text(MAIN, "main.prose", text);
    change.text(FileId(1), "lib.prose", LIB);
    change.resolve(MAIN, vec![("lib.prose".into(), Some(FileId(1)))]);
    let mut db = RootDatabase::default();
    db.apply_change(change);
    db
}

fn found(db: &RootDatabase) -> Vec<Diagnostic> {
    diagnostics(db, db.source(MAIN).unwrap())
}

fn fixes_of(db: &RootDatabase, it: &Diagnostic) -> Vec<Fix> {
    fixes(db, db.source(MAIN).unwrap(), it)
}

fn comments(text: &str) -> Vec<String> {
    let root: SyntaxNode = prose_syntax::parse(text).syntax();
    root.descendants_with_tokens()
        .filter(|it| it.kind() == SyntaxKind::COMMENT)
        .map(|it| it.to_string())
        .collect()
}

/// How often each is there.
fn counted<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut out = BTreeMap::new();
    for it in all {
        *out.entry(it).or_default() += 1;
    }
    out
}

fn counts(found: &[Diagnostic]) -> BTreeMap<&'static str, usize> {
    counted(found.iter().map(|it| it.code))
}

/// The lowered program without places: what it means. None when it can't run.
fn meaning(text: &str) -> Option<String> {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                for key in ["src", "id", "files", "digest", "source"] {
                    fields.remove(key);
                }
                fields.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let db = load(text);
    let bundle = bundle(&db, db.source(MAIN).unwrap()).ok()?;
    let mut value = serde_json::to_value(&*bundle).unwrap();
    strip(&mut value);
    Some(format!("{value:#}"))
}

/// What is wrong about a fix, if anything is. `may_come`: codes that a fix may bring up.
fn wrong(
    before: &str,
    target: &Diagnostic,
    all: &[Diagnostic],
    fix: &Fix,
    may_come: impl Fn(&str) -> bool,
) -> Option<String> {
    let after = fix.apply(before);
    if after == before {
        return Some("changes nothing".into());
    }
    let now = found(&load(&after));
    let (old, new) = (counts(all), counts(&now));
    // Settled: there is less of it, or at least it is not where it was.
    let moved: isize = fix
        .edits
        .iter()
        .filter(|it| it.0.start() < target.range.start())
        .map(|(range, with)| with.len() as isize - u32::from(range.len()) as isize)
        .sum();
    let place = u32::from(target.range.start()) as isize + moved;
    let again = |it: &Diagnostic| {
        it.code == target.code
            && u32::from(it.range.start()) as isize == place
            && it.message == target.message
    };
    let less = new.get(target.code).copied().unwrap_or(0) < old[target.code];
    if !less && (!may_come(target.code) || now.iter().any(again)) {
        return Some(format!("{} is still there", target.code));
    }
    for (code, count) in &new {
        // Once a mistake is settled, a lint about the habit may show.
        let lint = code.starts_with("L4");
        if *count > old.get(code).copied().unwrap_or(0) && !lint && !may_come(code) {
            return Some(format!("{code} is new"));
        }
    }
    let kept = counted(comments(&after));
    let lost = counted(comments(before))
        .into_iter()
        .any(|(comment, count)| kept.get(&comment).copied().unwrap_or(0) < count);
    // A comment that silences findings may be the very matter.
    let told = fix.title.ends_with("with its comments") || matches!(target.code, "P344" | "P345");
    if lost && !told {
        return Some("a comment is lost".into());
    }
    if fix.automatic
        && let Some(meant) = meaning(before)
    {
        let means = meaning(&after);
        if means.as_ref() != Some(&meant) {
            let means = means.unwrap_or_default();
            let line = meant.lines().zip(means.lines()).find(|it| it.0 != it.1);
            return Some(format!("means something else: {line:?}"));
        }
    }
    None
}

#[test]
fn every_fix_settles_its_finding_and_nothing_else() {
    let mut bad = Vec::new();
    for Case { code, before, after } in fix_cases::all() {
        let db = load(before);
        let all = found(&db);
        let Some(target) = all.iter().find(|it| it.code == code) else {
            bad.push(format!("no {code} in\n{before}{all:#?}"));
            continue;
        };
        let fixes = fixes_of(&db, target);
        let mut shown = String::new();
        for fix in &fixes {
            let automatic = if fix.automatic { " (automatic)" } else { "" };
            shown.push_str(&format!("-- {}{automatic}\n{}", fix.title, fix.apply(before)));
            if let Some(what) = wrong(before, target, &all, fix, |_| false) {
                bad.push(format!(
                    "{code}, {}: {what}\n{before}--\n{}",
                    fix.title,
                    fix.apply(before)
                ));
            }
        }
        if fixes.is_empty() {
            bad.push(format!("no fix for {code} in\n{before}"));
        }
        after.assert_eq(&shown);
    }
    assert!(bad.is_empty(), "{}", bad.join("\n====\n"));
}

/// The table of codes says which have a fix; each of those has a row, with an automatic one where it says so.
#[test]
fn every_code_that_says_so_has_a_fix() {
    let mut shown: BTreeMap<&str, Repair> = BTreeMap::new();
    for case in fix_cases::all() {
        let db = load(case.before);
        let all = found(&db);
        let target = all.iter().find(|it| it.code == case.code);
        let automatic = target.is_some_and(|it| fixes_of(&db, it).iter().any(|it| it.automatic));
        let repair = if automatic {
            Repair::Automatic
        } else {
            Repair::Offered
        };
        let entry = shown.entry(case.code).or_insert(repair);
        *entry = repair.max(*entry);
    }
    let said: BTreeMap<&str, Repair> = CODES
        .iter()
        .filter(|it| it.repair != Repair::None)
        .map(|it| (it.code, it.repair))
        .collect();
    assert_eq!(shown, said);
    assert!(said.len() >= 35);
}

/// What `fix_all` makes of a text.
fn all_fixed(text: &str) -> (String, usize) {
    let db = load(text);
    let (edits, count) = fix_all(&db, db.source(MAIN).unwrap(), &|_| true);
    (Fix::new("", edits).apply(text), count)
}

#[test]
fn all_at_once_leaves_nothing_automatic_and_adds_nothing() {
    for Case { code, before, .. } in fix_cases::all() {
        let all = found(&load(before));
        let (after, count) = all_fixed(before);
        let db = load(&after);
        let now = found(&db);
        for it in &now {
            let left = fixes_of(&db, it).into_iter().find(|it| it.automatic);
            assert_eq!(left, None, "{code}\n{before}--\n{after}");
        }
        assert!(
            now.len() + count <= all.len(),
            "{code}\n{before}--\n{after}{now:#?}"
        );
        assert_eq!(all_fixed(&after), (after.clone(), 0), "{code}");
        if let Some(meant) = meaning(before) {
            assert_eq!(meaning(&after), Some(meant), "{code}\n{before}--\n{after}");
        }
    }
}

#[test]
fn all_at_once_takes_several_rounds() {
    let text = "agent a: # it\n\tprompt: |\n\t\tone\n\tskills:\n\t\t- \"x\"\nloop as i (max: {3}): session: \"b {i}\"\nsession: nobdy\n";
    let (after, count) = all_fixed(text);
    expect![[r#"
        9
        agent a: # it
          prompt: """
        		one
          """
          skills: ["x"]
        loop (max: 3) as i:
          session "b {i}"
        session: nobdy
    "#]]
    .assert_eq(&format!("{count}\n{after}"));
}

/// Words taken out of programs, doubled, or put elsewhere: whatever is offered there does what it says.
#[test]
fn fixes_of_damaged_programs() {
    let mut bad = Vec::new();
    let mut tried = 0;
    let texts = programs()
        .into_iter()
        .map(|it| (it, 16))
        .chain(fix_cases::all().into_iter().map(|it| (it.before.to_owned(), 4)));
    for (number, (program, steps)) in texts.enumerate() {
        let root: SyntaxNode = prose_syntax::parse(&program).syntax();
        let tokens: Vec<_> = root
            .descendants_with_tokens()
            .filter_map(prose_syntax::NodeOrToken::into_token)
            .collect();
        // A few places of each program, others in each.
        for step in 0..steps {
            let at = (number * 7 + step * 31 + step * step * 5) % tokens.len();
            let token = &tokens[at];
            let range = std::ops::Range::<usize>::from(token.text_range());
            let mut text = program.clone();
            match step % 4 {
                0 => text.replace_range(range, ""),
                1 => text.insert_str(range.start, token.text()),
                2 => text.insert_str(range.end, tokens[(at * 3) % tokens.len()].text()),
                _ => text.insert(range.start, '\t'),
            }
            let db = load(&text);
            let all = found(&db);
            let lost = prose_syntax::parse(&text)
                .errors()
                .iter()
                .any(|it| it.severity() == Severity::Error);
            for target in &all {
                for fix in fixes_of(&db, target) {
                    tried += 1;
                    let info = prose_model::codes::find(target.code).unwrap();
                    assert_ne!(info.repair, Repair::None, "{}", target.code);
                    // What the author decides on may uncover a lesser matter: a name that is a keyword, a second unused
                    // block. Where the parser was lost, anything may come to light, and checks that waited for an error to go
                    // speak up when it has gone.
                    let may_come = |code: &str| {
                        let severity = prose_model::codes::find(code).unwrap().severity;
                        let waited = target.severity == Severity::Error;
                        lost || !fix.automatic && (severity != Severity::Error || waited)
                    };
                    if let Some(what) = wrong(&text, target, &all, &fix, may_come) {
                        bad.push(format!("{}, {}: {what}\n{text}", target.code, fix.title));
                    }
                }
            }
            let (after, _) = all_fixed(&text);
            let errors =
                |found: &[Diagnostic]| found.iter().filter(|it| it.severity == Severity::Error).count();
            assert!(errors(&found(&load(&after))) <= errors(&all), "{text}--\n{after}");
        }
    }
    assert!(tried > 100, "only {tried}");
    assert!(
        bad.is_empty(),
        "{} of {tried}\n{}",
        bad.len(),
        bad.iter().take(6).cloned().collect::<Vec<_>>().join("\n====\n")
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
        let db = load(text);
        let found = found(&db);
        let target = found.iter().find(|it| it.code == code);
        let target = target.unwrap_or_else(|| panic!("no {code} in {text}: {found:#?}"));
        assert_eq!(fixes_of(&db, target), [], "{text}");
    }
}
