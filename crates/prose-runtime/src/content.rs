//! Reading content out of a run's value store.

use prose_agents::{Content, Redactor, failure};
use prose_model::{ErrorKind, Failure, Text, Value};
use prose_state::ValueStore;

/// Content of one run.
#[derive(Clone)]
pub(crate) struct StoreContent(pub(crate) ValueStore);

impl Content for StoreContent {
    fn read(&self, text: &Text) -> Result<String, Failure> {
        if let Some(inline) = text.as_inline() {
            return Ok(inline.into_owned());
        }
        self.0
            .materialize(text)
            .map_err(|error| failure(ErrorKind::Backend, error.to_string()))
    }
}

/// Content of one run as a model may see it: what the program itself holds may have secrets in it.
pub(crate) struct HiddenContent(pub(crate) StoreContent, pub(crate) Redactor);

impl Content for HiddenContent {
    fn read(&self, text: &Text) -> Result<String, Failure> {
        let mut text = self.0.read(text)?;
        self.1.redact_in(&mut text);
        Ok(text)
    }
}

/// The value with all references read, at any depth.
pub(crate) fn inlined(value: &Value, content: &dyn Content) -> Result<Value, Failure> {
    Ok(match value {
        Value::Text(text) => Value::text(content.read(text)?),
        Value::List(items) => Value::list(
            items
                .iter()
                .map(|item| inlined(item, content))
                .collect::<Result<_, _>>()?,
        ),
        Value::Record(entries) => Value::record(
            entries
                .iter()
                .map(|(key, item)| Ok((key.clone(), inlined(item, content)?)))
                .collect::<Result<Vec<_>, Failure>>()?,
        ),
        other => other.clone(),
    })
}
