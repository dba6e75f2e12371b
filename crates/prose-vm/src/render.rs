//! Values as text.

use prose_model::{Text, TextPart, Value};

/// Longest one-line summary, in characters.
const LINE_LIMIT: usize = 80;

/// A number as a person writes it: without a fraction when it has none.
pub fn number(n: f64) -> String {
    if n.fract() == 0.0 && n.abs() < 1e15 {
        format!("{}", n as i64)
    } else {
        format!("{n}")
    }
}

/// A JSON value as a value of the language.
pub fn json_to_value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(b),
        serde_json::Value::Number(n) => n.as_f64().map_or(Value::Null, Value::Number),
        serde_json::Value::String(s) => Value::text(s),
        serde_json::Value::Array(items) => Value::list(json_to_values(items)),
        serde_json::Value::Object(members) => Value::record(
            members
                .into_iter()
                .map(|(key, value)| (key, json_to_value(value))),
        ),
    }
}

/// JSON values as values of the language.
pub(crate) fn json_to_values(items: Vec<serde_json::Value>) -> Vec<Value> {
    let mut values: Vec<Value> = items.into_iter().map(json_to_value).collect();
    // The vector may be that of the JSON, whose items are larger.
    values.shrink_to_fit();
    values
}

/// A value of the language as JSON. `content` gives the text behind a reference; where it gives none the whole answer
/// is none.
pub fn value_to_json(
    value: &Value,
    content: &mut dyn FnMut(&prose_model::TextRef) -> Option<String>,
) -> Option<serde_json::Value> {
    Some(match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => (*b).into(),
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 1e15 => (*n as i64).into(),
        Value::Number(n) => serde_json::Number::from_f64(*n).map_or(serde_json::Value::Null, Into::into),
        Value::Text(text) => {
            let mut whole = String::new();
            for part in &text.parts {
                match part {
                    TextPart::Inline(text) => whole.push_str(text),
                    TextPart::Ref(reference) => whole.push_str(&content(reference)?),
                }
            }
            whole.into()
        }
        Value::List(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| value_to_json(item, content)).collect();
            items?.into()
        }
        Value::Record(entries) => {
            let mut members = serde_json::Map::new();
            for (key, value) in entries.iter() {
                members.insert(key.clone(), value_to_json(value, content)?);
            }
            members.into()
        }
        Value::Error(error) => serde_json::json!({
            "kind": error.kind,
            "message": error.message,
            "statement": error.place(),
            "attempts": error.attempts,
        }),
    })
}

/// A list or record as JSON text; none when it holds a reference, whose content is not at hand.
pub fn inline_json(value: &Value) -> Option<String> {
    let json = value_to_json(value, &mut |_| None)?;
    serde_json::to_string(&json).ok()
}

/// A value as text for messages and short labels: a reference shows as its summary.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(*n),
        Value::Text(text) => plain_text(text),
        Value::List(_) | Value::Record(_) => {
            value_to_json(value, &mut |reference| Some(reference.summary.clone()))
                .map(|json| json.to_string())
                .unwrap_or_default()
        }
        Value::Error(error) => error.message.clone(),
    }
}

/// A rope as text for messages and short labels: a reference shows as its summary.
pub fn plain_text(text: &Text) -> String {
    text.parts
        .iter()
        .map(|part| match part {
            TextPart::Inline(text) => &**text,
            TextPart::Ref(reference) => reference.summary.as_str(),
        })
        .collect()
}

/// The first line that has content, cut to a length that fits a tree view.
pub fn one_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut out: String = line.chars().take(LINE_LIMIT).collect();
    if out.len() < line.len() {
        out.push('…');
    }
    out
}

/// A text in which nothing has a meaning of its own inside a glob pattern.
pub fn escape_glob(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '!') {
            // A one-character class is understood by every glob dialect; a backslash is not on Windows.
            out.push('[');
            out.push(c);
            out.push(']');
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_fraction_only_when_needed() {
        assert_eq!(number(3.0), "3");
        assert_eq!(number(-0.5), "-0.5");
        assert_eq!(number(1e20), "100000000000000000000");
    }

    #[test]
    fn a_line_is_the_first_with_content_and_short() {
        assert_eq!(one_line("\n  Hello there  \nmore"), "Hello there");
        assert_eq!(one_line(&"é".repeat(100)).chars().count(), LINE_LIMIT + 1);
    }

    #[test]
    fn glob_characters_lose_their_meaning() {
        assert_eq!(escape_glob("a*b?{c}"), "a[*]b[?][{]c[}]");
    }
}
