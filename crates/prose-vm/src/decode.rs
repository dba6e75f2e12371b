//! Text read as list, record, number or truth value, by rules alone (language.md, "Values").
//!
//! [`decode`] is shared: the machine uses it on inline text, the runtime on content behind a reference. Where it
//! answers `None` the rules can't tell and the judge is asked.

use indexmap::IndexMap;
use prose_model::{DecodeTarget, Value};

use crate::MAX_NESTING;
use crate::render::{json_to_value, json_to_values, plain};

/// Reads `text` as `target`; none when the rules don't decide.
///
/// [`DecodeTarget::Json`] and [`DecodeTarget::Memory`] are no questions about a text and always give none.
pub fn decode(text: &str, target: &DecodeTarget) -> Option<Value> {
    match target {
        DecodeTarget::List => list(text).map(Value::list),
        DecodeTarget::Record(keys) => record(text, keys).map(|r| Value::Record(r.into())),
        DecodeTarget::Number => number(text).map(Value::Number),
        DecodeTarget::Bool => boolean(text).map(Value::Bool),
        DecodeTarget::Equals(other) => equals(text, other).map(Value::Bool),
        DecodeTarget::IsEmpty => Some(Value::Bool(text.trim().is_empty())),
        DecodeTarget::Json | DecodeTarget::Memory(_) => None,
    }
}

/// A list: a JSON array, bare or as the only fenced block; a JSON object with exactly one array member; a top-level
/// Markdown list.
pub fn list(text: &str) -> Option<Vec<Value>> {
    match json_of(text) {
        Some(serde_json::Value::Array(items)) => return Some(json_to_values(items)),
        Some(serde_json::Value::Object(members)) => {
            let mut arrays = members.into_iter().filter_map(|(_, value)| match value {
                serde_json::Value::Array(items) => Some(items),
                _ => None,
            });
            return match (arrays.next(), arrays.next()) {
                (Some(items), None) => Some(json_to_values(items)),
                _ => None,
            };
        }
        Some(_) => return None,
        None => {}
    }
    markdown_list(text)
}

/// A record: a JSON object, bare or as the only fenced block; else the `Key: value` lines or headings among whose keys
/// at least one wanted key stands. Wanted keys come back as they were asked for.
pub fn record(text: &str, keys: &[String]) -> Option<IndexMap<String, Value>> {
    match json_of(text) {
        Some(serde_json::Value::Object(members)) => {
            let found: IndexMap<String, Value> = members
                .into_iter()
                .map(|(key, value)| (key, json_to_value(value)))
                .collect();
            return Some(under_wanted_keys(found, keys));
        }
        Some(_) => return None,
        None => {}
    }
    let found = key_lines(text).or_else(|| headings(text))?;
    let wanted = |key: &str| keys.iter().any(|k| fold(k) == fold(key));
    if keys.is_empty() || found.keys().any(|key| wanted(key)) {
        return Some(under_wanted_keys(found, keys));
    }
    let found = headings(text)?;
    found
        .keys()
        .any(|key| wanted(key))
        .then(|| under_wanted_keys(found, keys))
}

/// A number: the whole trimmed text.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // `f64::from_str` also reads "inf" and "nan", which no person means as a number.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return None;
    }
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// A truth value: the first word is one of yes, no, true, false, keep, drop, in any case.
pub fn boolean(text: &str) -> Option<bool> {
    let text = text
        .trim()
        .trim_start_matches(['*', '_', '"', '\'', '`', '(', '[']);
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    // “no-one” and “yes-men” are words of their own.
    let mut behind = text[end..].chars();
    if matches!(behind.next(), Some('-' | '_' | '\'' | '’'))
        && behind.next().is_some_and(char::is_alphanumeric)
    {
        return None;
    }
    match text[..end].to_ascii_lowercase().as_str() {
        "yes" | "true" | "keep" => Some(true),
        "no" | "false" | "drop" => Some(false),
        _ => None,
    }
}

/// Folds a key: case, `-`, `_` and spaces don't count.
pub fn fold(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

/// `==` of a text and another value: trimmed text, numbers when both parse. None when the other holds a reference.
fn equals(text: &str, other: &Value) -> Option<bool> {
    Some(match other {
        Value::Null => false,
        Value::Bool(b) => boolean(text).map_or_else(|| text.trim() == plain(other), |own| own == *b),
        Value::Number(n) => number(text) == Some(*n),
        Value::Text(other) => {
            let other = other.as_inline()?;
            match (number(text), number(&other)) {
                (Some(a), Some(b)) => a == b,
                _ => text.trim() == other.trim(),
            }
        }
        Value::List(items) => list(text).map(Value::list)? == Value::List(items.clone()),
        Value::Record(entries) => {
            let own = record(text, &entries.keys().cloned().collect::<Vec<_>>())?;
            own == **entries
        }
        Value::Error(error) => text.trim() == error.message.trim(),
    })
}

/// The text's JSON: bare, or the content of its only fenced block. JSON that is nested deeper than values may be counts
/// as undecided.
fn json_of(text: &str) -> Option<serde_json::Value> {
    let parse = |text: &str| {
        serde_json::from_str(text)
            .ok()
            .filter(|json| json_depth(json) <= MAX_NESTING)
    };
    let trimmed = text.trim();
    if trimmed.starts_with(['[', '{']) {
        return parse(trimmed);
    }
    let fenced = only_fence(trimmed)?;
    fenced
        .trim()
        .starts_with(['[', '{'])
        .then(|| parse(fenced.trim()))?
}

/// Levels of lists and objects; the parser bounds the recursion.
fn json_depth(json: &serde_json::Value) -> usize {
    match json {
        serde_json::Value::Array(items) => 1 + items.iter().map(json_depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(json_depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The content of the only fenced block; none when there is no block or more than one.
fn only_fence(text: &str) -> Option<String> {
    let mut content = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = fence_of(line) else { continue };
        let mut body = Vec::new();
        let mut closed = false;
        for line in lines.by_ref() {
            let line = line.trim();
            if line.starts_with(fence) && line.trim_matches('`').trim_matches('~').is_empty() {
                closed = true;
                break;
            }
            body.push(line);
        }
        if !closed || content.is_some() {
            return None;
        }
        content = Some(body.join("\n"));
    }
    content
}

fn fence_of(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

/// The items of the one Markdown list at the lowest indentation. Deeper lines belong to their item. Text that goes on
/// after the list, or two lists, leave it undecided.
fn markdown_list(text: &str) -> Option<Vec<Value>> {
    let mut items: Vec<String> = Vec::new();
    let mut base = None;
    let mut ordered = None;
    let mut over = false;
    let mut blank = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            blank = true;
            continue;
        }
        if fence_of(line).is_some() && base.is_none() {
            return None;
        }
        let indent = line.len() - line.trim_start().len();
        match (list_item(line.trim_start()), base) {
            (Some((kind, item)), None) => {
                base = Some(indent);
                ordered = Some(kind);
                items.push(item.to_owned());
            }
            (Some((kind, item)), Some(at)) if indent <= at => {
                if over || ordered != Some(kind) {
                    return None;
                }
                items.push(item.to_owned());
            }
            (_, Some(at)) if indent > at => {
                if over {
                    return None;
                }
                if let Some(last) = items.last_mut() {
                    last.push('\n');
                    last.push_str(line.trim());
                }
            }
            // A line of running text right under an item continues it; after a blank line it ends the list.
            (None, Some(_)) if !blank && !over => {
                if let Some(last) = items.last_mut() {
                    last.push(' ');
                    last.push_str(line.trim());
                }
            }
            (None, Some(_)) => over = true,
            _ => {}
        }
        blank = false;
    }
    // A single bullet inside running text is a remark, not a list.
    let remark = over && items.len() == 1;
    (!items.is_empty() && !remark).then(|| items.into_iter().map(Value::text).collect())
}

/// Whether the list is ordered, and the item's text.
fn list_item(line: &str) -> Option<(bool, &str)> {
    for bullet in ["- ", "* ", "+ ", "• "] {
        if let Some(rest) = line.strip_prefix(bullet) {
            return Some((false, rest.trim()));
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?;
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?;
    (digits > 0 && digits < 5).then_some((true, rest.trim()))
}

/// `Key: value` lines at the lowest indentation; lines without a key continue the value before them.
fn key_lines(text: &str) -> Option<IndexMap<String, Value>> {
    let mut found: IndexMap<String, String> = IndexMap::new();
    let mut in_fence = false;
    for line in text.lines() {
        if fence_of(line).is_some() {
            in_fence = !in_fence;
        }
        match key_line(line).filter(|_| !in_fence) {
            Some((key, value)) => {
                found.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            }
            None => {
                if let Some((_, last)) = found.last_mut() {
                    last.push('\n');
                    last.push_str(line.trim_end());
                }
            }
        }
    }
    (!found.is_empty()).then(|| {
        found
            .into_iter()
            .map(|(k, v)| (k, Value::text(v.trim())))
            .collect()
    })
}

fn key_line(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end();
    if line.starts_with([' ', '\t', '#']) {
        return None;
    }
    let line = line.trim_start_matches("- ").trim_start_matches("* ");
    let (key, value) = line.split_once(':')?;
    let key = key.trim().trim_matches(['*', '_', '`', '"']).trim();
    let value = value.trim_start_matches('*').trim();
    let words = key.split_whitespace().count();
    let plain = key
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '/'));
    (!key.is_empty() && words <= 4 && plain && !value.starts_with("//")).then_some((key, value))
}

/// Markdown headings with the text below each.
fn headings(text: &str) -> Option<IndexMap<String, Value>> {
    let mut found: IndexMap<String, String> = IndexMap::new();
    let mut in_fence = false;
    for line in text.lines() {
        if fence_of(line).is_some() {
            in_fence = !in_fence;
        }
        let level = line.bytes().take_while(|b| *b == b'#').count();
        if !in_fence && (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let key = line[level..]
                .trim()
                .trim_end_matches(':')
                .trim_matches('*')
                .trim();
            found.entry(key.to_owned()).or_default();
        } else if let Some((_, last)) = found.last_mut() {
            last.push_str(line.trim_end());
            last.push('\n');
        }
    }
    (!found.is_empty()).then(|| {
        found
            .into_iter()
            .map(|(k, v)| (k, Value::text(v.trim())))
            .collect()
    })
}

/// Renames keys that fold to a wanted one; an exact match wins over a folded one.
fn under_wanted_keys(found: IndexMap<String, Value>, keys: &[String]) -> IndexMap<String, Value> {
    let mut out = IndexMap::new();
    for (key, value) in &found {
        let name = match keys.iter().find(|k| fold(k) == fold(key)) {
            Some(wanted) if !found.contains_key(wanted) => wanted,
            _ => key,
        };
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(items: &[&str]) -> Option<Vec<Value>> {
        Some(items.iter().map(|item| Value::text(*item)).collect())
    }

    #[test]
    fn a_json_array_is_a_list_bare_or_as_the_only_fenced_block() {
        assert_eq!(list(r#"["a", "b"]"#), texts(&["a", "b"]));
        assert_eq!(
            list("Here they are:\n```json\n[\"a\", \"b\"]\n```\nDone."),
            texts(&["a", "b"])
        );
        assert_eq!(list("```\n[1]\n```\n```\n[2]\n```"), None, "two fenced blocks");
        assert_eq!(list("[1, 2"), None, "torn");
    }

    #[test]
    fn an_object_with_exactly_one_array_is_a_list() {
        assert_eq!(list(r#"{"items": ["a"], "n": 1}"#), texts(&["a"]));
        assert_eq!(list(r#"{"a": [], "b": []}"#), None);
        assert_eq!(list(r#"{"a": 1}"#), None);
    }

    #[test]
    fn a_top_level_markdown_list_is_a_list() {
        assert_eq!(
            list("Found:\n\n- one\n- two\n  - deeper\n"),
            texts(&["one", "two\n- deeper"])
        );
        assert_eq!(list("1. one\n2) two"), texts(&["one", "two"]));
        assert_eq!(list("- one\ngoes on\n- two"), texts(&["one goes on", "two"]));
        assert_eq!(list("- one\n\nText.\n\n- two"), None, "two lists");
        assert_eq!(list("Only prose."), None);
        assert_eq!(list(""), None);
    }

    #[test]
    fn a_record_is_a_json_object_or_key_lines_or_headings() {
        let keys = ["risk_level".to_owned(), "notes".to_owned()];
        for text in [
            r#"{"Risk Level": "high", "notes": "n"}"#,
            "Risk-Level: high\nNotes: n",
            "**Risk Level:** high\n**Notes:** n",
            "# Risk level\nhigh\n\n# Notes\n\nn\n",
        ] {
            let found = record(text, &keys).expect(text);
            assert_eq!(found.get("risk_level"), Some(&Value::text("high")), "{text}");
            assert!(
                found.contains_key("notes") || found.contains_key("Notes"),
                "{text}"
            );
        }
        let exact = record(r#"{"Risk Level": "folded", "risk_level": "exact"}"#, &keys).unwrap();
        assert_eq!(exact.get("risk_level"), Some(&Value::text("exact")));
        assert_eq!(record("Nothing here.", &keys), None);
        assert_eq!(record("See: this", &keys), None, "no wanted key");
        assert_eq!(record("[1]", &keys), None);
        assert_eq!(
            record("{}", &keys),
            Some(IndexMap::new()),
            "a missing key is the caller's null"
        );
    }

    #[test]
    fn a_number_is_the_whole_trimmed_text() {
        assert_eq!(number(" 42 \n"), Some(42.0));
        assert_eq!(number("-1.5"), Some(-1.5));
        assert_eq!(number("42 items"), None);
        assert_eq!(number("inf"), None);
        assert_eq!(number("nan"), None);
    }

    #[test]
    fn a_truth_value_is_the_first_word() {
        for yes in ["yes", "Yes, it is.", "TRUE", " keep: good", "**Yes**"] {
            assert_eq!(boolean(yes), Some(true), "{yes}");
        }
        for no in ["no", "No.", "false", "drop it", "no - never", "no—never", "_no_"] {
            assert_eq!(boolean(no), Some(false), "{no}");
        }
        for open in [
            "maybe",
            "nothing",
            "",
            "It is true",
            "No-one knows.",
            "keep-sake",
            "no’s",
            "y",
            "n",
        ] {
            assert_eq!(boolean(open), None, "{open}");
        }
    }

    #[test]
    fn equality_is_of_trimmed_texts_or_numbers() {
        let eq = |text, other| decode(text, &DecodeTarget::Equals(other));
        assert_eq!(eq(" a ", Value::text("a\n")), Some(Value::Bool(true)));
        assert_eq!(eq("1.0", Value::text("1")), Some(Value::Bool(true)));
        assert_eq!(eq("1", Value::Number(1.0)), Some(Value::Bool(true)));
        assert_eq!(eq("Yes!", Value::Bool(true)), Some(Value::Bool(true)));
        assert_eq!(eq("x", Value::Null), Some(Value::Bool(false)));
        assert_eq!(decode(" \n", &DecodeTarget::IsEmpty), Some(Value::Bool(true)));
    }
}
