//! Reading values: content behind references, and values as a person or a model sees them.

use prose_model::{ErrorKind, Failure, Text, TextPart, Usage, Value};

/// Reads the content behind the references of a [`Text`]. The runtime implements it over the run's value store.
pub trait Content: Send + Sync {
    /// The whole text, references replaced by what they name. Fails when content is missing or unreadable.
    fn read(&self, text: &Text) -> Result<String, Failure>;
}

/// Content that holds no references; a reference reads as its summary. For dry runs and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct InlineContent;

impl Content for InlineContent {
    fn read(&self, text: &Text) -> Result<String, Failure> {
        Ok(text
            .parts
            .iter()
            .map(|part| match part {
                TextPart::Inline(text) => text.to_string(),
                TextPart::Ref(reference) => reference.summary.clone(),
            })
            .collect())
    }
}

/// A failure that cost nothing.
pub fn failure(kind: ErrorKind, message: impl Into<String>) -> Failure {
    Failure {
        kind,
        message: message.into(),
        retry_after_ms: None,
        usage: Usage::default(),
    }
}

/// A value as plain JSON, as it is shown and as other tools read it (not the tagged form of the journal).
/// A number without a fraction is an integer.
pub fn plain_json(value: &Value, content: &dyn Content) -> Result<serde_json::Value, Failure> {
    Ok(match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => (*b).into(),
        Value::Number(n) if n.fract() == 0.0 && n.abs() < 9e15 => (*n as i64).into(),
        Value::Number(n) => (*n).into(),
        Value::Text(text) => content.read(text)?.into(),
        Value::List(items) => items
            .iter()
            .map(|item| plain_json(item, content))
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Value::Record(entries) => entries
            .iter()
            .map(|(key, value)| Ok((key.clone(), plain_json(value, content)?)))
            .collect::<Result<serde_json::Map<_, _>, Failure>>()?
            .into(),
        Value::Error(error) => serde_json::json!({
            "kind": error.kind,
            "message": error.message,
            "statement": error.place(),
            "attempts": error.attempts,
        }),
    })
}

/// A value as text: text as it is, null as nothing, numbers and truth values as written, the rest as JSON.
pub fn plain_text(value: &Value, content: &dyn Content) -> Result<String, Failure> {
    Ok(match value {
        Value::Null => String::new(),
        Value::Text(text) => content.read(text)?,
        Value::Error(error) => error.message.clone(),
        Value::Bool(_) | Value::Number(_) => plain_json(value, content)?.to_string(),
        Value::List(_) | Value::Record(_) => {
            let json = plain_json(value, content)?;
            serde_json::to_string_pretty(&json).unwrap_or_else(|_| json.to_string())
        }
    })
}

/// The first line that says something, cut at 120 characters.
pub fn one_line(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if line.chars().count() <= 120 {
        line.to_owned()
    } else {
        line.chars().take(119).chain(['…']).collect()
    }
}
