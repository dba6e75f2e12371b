//! Reading content out of a run's value store.

use prose_agents::{Content, failure};
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
