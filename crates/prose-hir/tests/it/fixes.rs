//! Quick fixes: each settles its finding, brings up no other, and keeps every comment; an automatic one keeps the meaning.

use std::collections::BTreeMap;

use prose_hir::{Change, Diagnostic, FileId, Fix, RootDatabase, bundle, diagnostics, fixes};
use prose_syntax::{SyntaxKind, SyntaxNode};

use crate::fix_cases::{self, Case};

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

/// What is wrong about a fix, if anything is.
fn wrong(before: &str, target: &Diagnostic, all: &[Diagnostic], fix: &Fix) -> Option<String> {
    let after = fix.apply(before);
    if after == before {
        return Some("changes nothing".into());
    }
    let now = found(&load(&after));
    let (old, new) = (counts(all), counts(&now));
    if new.get(target.code).copied().unwrap_or(0) >= old[target.code] {
        return Some(format!("{} is still there", target.code));
    }
    for (code, count) in &new {
        // Once a mistake is settled, a lint about the habit may show.
        if !code.starts_with("L4") && *count > old.get(code).copied().unwrap_or(0) {
            return Some(format!("{code} is new"));
        }
    }
    let kept = counted(comments(&after));
    let lost = counted(comments(before))
        .into_iter()
        .any(|(comment, count)| kept.get(&comment).copied().unwrap_or(0) < count);
    if lost && !fix.title.ends_with("with its comments") {
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
            if let Some(what) = wrong(before, target, &all, fix) {
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
