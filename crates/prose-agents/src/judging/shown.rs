//! Values of the program as a question shows them: data in tags that none of them can close, the long ones cut.

use std::fmt::Write as _;

use prose_model::{Failure, Text, TextPart, Value};

use super::inline;
use crate::Content;
use crate::content::{one_line, plain_text};

/// Longest value, in bytes, that is shown whole when the question names it.
const NAMED_LIMIT: usize = 16 * 1024;
/// Longest value, in bytes, that is shown whole otherwise.
const OTHER_LIMIT: usize = 4 * 1024;
/// How much of all values is shown, in bytes; those after it appear with size and summary only.
const VALUES_LIMIT: usize = 64 * 1024;
/// A value longer than this, in bytes, is not read at all; its summary stands for it.
const READ_LIMIT: u64 = 1024 * 1024;
/// Less room than this, in bytes, is left unused.
const LEAST: usize = 256;
/// How many names are shown.
const NAMES_LIMIT: usize = 200;

/// Texts that will stand in tags, to find a tag that none of them can close.
#[derive(Default)]
pub(super) struct Shown {
    taken: Vec<u32>,
}

impl Shown {
    const STEM: &'static str = "data-";

    pub(super) fn will_show(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        for (at, _) in lower.match_indices(Shown::STEM) {
            let digits = lower[at + Shown::STEM.len()..]
                .bytes()
                .take_while(u8::is_ascii_digit);
            let number = digits.fold(0u32, |sum, digit| {
                sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
            });
            self.taken.push(number);
        }
    }

    /// A tag whose name stands in none of the texts.
    pub(super) fn tag(mut self) -> String {
        self.taken.sort_unstable();
        let free = self
            .taken
            .iter()
            .fold(1, |free, taken| if *taken == free { free + 1 } else { free });
        format!("{}{free}", Shown::STEM)
    }
}

/// A name as it is shown.
pub(super) struct ShownValue {
    name: String,
    kind: &'static str,
    size: u64,
    text: Option<String>,
    note: &'static str,
}

impl ShownValue {
    pub(super) fn write(&self, out: &mut String, tag: &str) {
        let ShownValue {
            name,
            kind,
            size,
            note,
            ..
        } = self;
        match &self.text {
            None => {
                let _ = write!(out, "\n{name}: {kind}");
            }
            Some(text) => {
                let _ = write!(
                    out,
                    "\n{name} ({kind}, {size} bytes{note}):\n<{tag}>\n{text}\n</{tag}>"
                );
            }
        }
    }
}

pub(super) fn values(
    shown: &mut Shown,
    names: &[prose_model::VisibleName],
    question: &str,
    content: &dyn Content,
) -> Result<Vec<ShownValue>, Failure> {
    let question = question.to_lowercase();
    let named = |name: &str| {
        let name = name.to_lowercase();
        mentions(&question, &name) || mentions(&question, &name.replace(['_', '-'], " "))
    };
    // Those that the question names first, so that they have the room.
    let (mut order, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| named(&name.name));
    let first = order.len();
    order.extend(others);
    let mut left = VALUES_LIMIT;
    let mut list = Vec::with_capacity(order.len().min(NAMES_LIMIT));
    for (index, name) in order.into_iter().take(NAMES_LIMIT).enumerate() {
        let limit = if index < first { NAMED_LIMIT } else { OTHER_LIMIT };
        let size = size_of(&name.value);
        let kind = kind_of(&name.value);
        let (text, note) = if matches!(name.value, Value::Null) {
            (None, "")
        } else if size > READ_LIMIT || left < LEAST {
            (Some(summary_of(&name.value)), ", only its summary")
        } else {
            let whole = plain_text(&name.value, content)?;
            let text = cut(&whole, limit.min(left));
            let note = if text.len() < whole.len() { ", cut" } else { "" };
            (Some(text), note)
        };
        if let Some(text) = &text {
            left = left.saturating_sub(text.len());
            shown.will_show(text);
        }
        list.push(ShownValue {
            name: name.name.to_string(),
            kind,
            size,
            text,
            note,
        });
    }
    Ok(list)
}

/// Whether a word stands in a text, not as part of a longer one.
pub(super) fn mentions(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "truth value",
        Value::Number(_) => "number",
        Value::Text(_) => "text",
        Value::List(_) => "list",
        Value::Record(_) => "record",
        Value::Error(_) => "error",
    }
}

/// About how long a value is as text, in bytes, without reading it.
pub(super) fn size_of(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) => 8,
        Value::Text(text) => text.len(),
        Value::List(items) => items
            .iter()
            .fold(2, |sum: u64, item| sum.saturating_add(size_of(item) + 4)),
        Value::Record(entries) => entries.iter().fold(2, |sum: u64, (key, value)| {
            sum.saturating_add(size_of(value) + key.len() as u64 + 6)
        }),
        Value::Error(error) => error.message.len() as u64,
    }
}

/// One line about a value, without reading what is behind references.
pub(super) fn summary_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text_summary(text),
        Value::List(items) => format!("{} items", items.len()),
        Value::Record(entries) => {
            one_line(&entries.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        Value::Error(error) => one_line(&error.message),
        other => one_line(&inline(other)),
    }
}

pub(super) fn text_summary(text: &Text) -> String {
    let first = text.parts.first().map(|part| match part {
        TextPart::Inline(text) => one_line(text),
        TextPart::Ref(reference) => one_line(&reference.summary),
    });
    first.unwrap_or_default()
}

/// A text of at most about that many bytes: beginning and end, and how much is left out between them.
pub(super) fn cut(text: &str, limit: usize) -> String {
    let text = text.trim_end();
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - limit / 4).max(head);
    format!(
        "{}\n[… {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}
