//! Values of a running program.
//!
//! Content over [`INLINE_LIMIT`] lives in the run's value store and is named by a [`TextRef`]; the machine
//! passes the reference on and never sees what is behind it.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, StmtId};

/// Longest text, in bytes, that a value holds inline.
pub const INLINE_LIMIT: usize = 4096;

/// A value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(Text),
    /// A list.
    List(Arc<Vec<Value>>),
    /// A record, keys in order of insertion.
    Record(Arc<IndexMap<String, Value>>),
    /// An error, as `catch` and failed branches bind it.
    Error(Arc<ErrorValue>),
}

/// Text as a rope of inline and referenced parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Text {
    /// In order.
    pub parts: Vec<TextPart>,
}

/// A part of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TextPart {
    /// The text itself.
    Inline(Arc<str>),
    /// A name for content in the value store.
    Ref(TextRef),
}

/// Names an immutable piece of text in the run's value store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextRef {
    /// Digest of the content.
    pub sha256: Digest,
    /// Length in bytes.
    pub len: u64,
    /// One line about the content.
    pub summary: String,
}

/// An error of the language: what `err.message`, `.kind`, `.statement` and `.attempts` read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorValue {
    /// What kind it is.
    pub kind: ErrorKind,
    /// What happened, for a person.
    pub message: String,
    /// The statement that raised it.
    pub statement: StmtId,
    /// Where that is, for a person: `main.prose:3: session "Draft"`. Empty where no source is at hand.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// How often it was tried (1 for what has no retry).
    pub attempts: u32,
}

impl ErrorValue {
    /// What `err.statement` reads: the place for a person, else the statement's id.
    pub fn place(&self) -> &str {
        if self.place.is_empty() {
            self.statement.as_str()
        } else {
            &self.place
        }
    }
}

/// Kinds of error a program can catch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// `throw "…"`.
    Thrown,
    /// `assert` did not hold.
    Assertion,
    /// The backend reported an error.
    Backend,
    /// A time limit was reached.
    Timeout,
    /// A permission was refused.
    Permission,
    /// The session returned nothing.
    Empty,
    /// The budget is spent.
    Budget,
    /// The judge could not decide.
    Judge,
    /// A value has the wrong shape for what is done with it.
    Type,
    /// A name has no value.
    Undefined,
    /// `block '…' exceeded max_depth N`.
    RecursionLimitExceeded,
    /// A loop without a bound ran to the safety limit.
    LoopLimit,
    /// A `parallel` join can't be met any more.
    Join,
    /// A program that was not resolved was called.
    Import,
    /// An input was refused or could not be had.
    Input,
}

impl Value {
    /// Text that is held inline.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(Text::inline(text))
    }
    /// A list of the given items.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(items))
    }
    /// A record of the given entries.
    pub fn record(entries: impl IntoIterator<Item = (String, Value)>) -> Value {
        Value::Record(Arc::new(entries.into_iter().collect()))
    }
}

impl Text {
    /// Text that is held inline; empty text has no parts.
    pub fn inline(text: impl Into<Arc<str>>) -> Text {
        let text = text.into();
        Text {
            parts: if text.is_empty() {
                Vec::new()
            } else {
                vec![TextPart::Inline(text)]
            },
        }
    }
    /// Text that is only a reference.
    pub fn reference(reference: TextRef) -> Text {
        Text {
            parts: vec![TextPart::Ref(reference)],
        }
    }
    /// Length in bytes, references included.
    pub fn len(&self) -> u64 {
        self.parts
            .iter()
            .map(|part| match part {
                TextPart::Inline(text) => text.len() as u64,
                TextPart::Ref(reference) => reference.len,
            })
            .sum()
    }
    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The whole text when no part is a reference.
    pub fn as_inline(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => Some("".into()),
            [TextPart::Inline(text)] => Some((&**text).into()),
            parts => {
                let mut whole = String::new();
                for part in parts {
                    match part {
                        TextPart::Inline(text) => whole.push_str(text),
                        TextPart::Ref(_) => return None,
                    }
                }
                Some(whole.into())
            }
        }
    }
    /// Appends text.
    pub fn push_str(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(TextPart::Inline(last)) = self.parts.last_mut() {
            *last = format!("{last}{text}").into();
        } else {
            self.parts.push(TextPart::Inline(text.into()));
        }
    }
    /// Appends another rope.
    pub fn push(&mut self, other: &Text) {
        for part in &other.parts {
            match part {
                TextPart::Inline(text) => self.push_str(text),
                TextPart::Ref(_) => self.parts.push(part.clone()),
            }
        }
    }
}
