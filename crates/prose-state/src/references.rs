//! Which stored content a journal names.

use indexmap::IndexMap;
use prose_model::{Decision, Digest, JournalRecord, Outcome, RecordBody, TextPart, Value};

/// Every value that the records name, with words for what it is where it first stands.
pub(crate) fn references(records: &[JournalRecord]) -> IndexMap<Digest, String> {
    let mut found = IndexMap::new();
    for record in records {
        match &record.body {
            RecordBody::Header(header) => {
                for (name, value) in &header.inputs {
                    collect(value, &format!("the input `{name}`"), &mut found);
                }
            }
            RecordBody::Input { name, value } => collect(value, &format!("the input `{name}`"), &mut found),
            RecordBody::Issued { id, memory, .. } => {
                if let Some(memory) = memory {
                    add(memory, || format!("the memory that {id} reads"), &mut found);
                }
            }
            RecordBody::Outcome { id, outcome, .. } => match outcome {
                Outcome::Session(session) => {
                    collect(&session.value, &format!("the result of {id}"), &mut found);
                    if let Some(memory) = &session.memory {
                        add(memory, || format!("the memory that {id} left"), &mut found);
                    }
                    if let Some(segment) = &session.segment {
                        add(
                            &segment.sha256,
                            || format!("the segment that {id} left"),
                            &mut found,
                        );
                    }
                }
                Outcome::Decoded { value } | Outcome::Input { value } => {
                    collect(value, &format!("the answer to {id}"), &mut found);
                }
                Outcome::Verdict(verdict) => {
                    if let Decision::Value(value) = &verdict.decision {
                        collect(value, &format!("the answer to {id}"), &mut found);
                    }
                }
                Outcome::Failed(_) | Outcome::Slept | Outcome::Cancelled => {}
            },
            RecordBody::Program { bundle_bytes, .. } => {
                add(
                    bundle_bytes,
                    || "the program as it was accepted".to_owned(),
                    &mut found,
                );
            }
            RecordBody::Lease { .. }
            | RecordBody::Started { .. }
            | RecordBody::Spent { .. }
            | RecordBody::Budget { .. }
            | RecordBody::Child { .. }
            | RecordBody::Cancel { .. }
            | RecordBody::End { .. } => {}
        }
    }
    found
}

fn add(digest: &Digest, what: impl FnOnce() -> String, found: &mut IndexMap<Digest, String>) {
    if !found.contains_key(digest) {
        found.insert(digest.clone(), what());
    }
}

/// The references inside a value, at any depth.
fn collect(value: &Value, what: &str, found: &mut IndexMap<Digest, String>) {
    match value {
        Value::Text(text) => {
            for part in &text.parts {
                if let TextPart::Ref(reference) = part {
                    add(&reference.sha256, || what.to_owned(), found);
                }
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, what, found)),
        Value::Record(entries) => entries.iter().for_each(|(_, item)| collect(item, what, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Error(_) => {}
    }
}
