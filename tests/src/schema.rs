//! Events held against the schema that is published with the documentation.

use std::sync::OnceLock;

use jsonschema::Validator;
use prose_model::RunEvent;

use crate::root;

fn validator() -> Result<&'static Validator, String> {
    static VALIDATOR: OnceLock<Result<Validator, String>> = OnceLock::new();
    let made = VALIDATOR.get_or_init(|| {
        let text = std::fs::read_to_string(root().join("docs/schemas/run-event.json"))
            .map_err(|error| error.to_string())?;
        let schema = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        jsonschema::validator_for(&schema).map_err(|error| error.to_string())
    });
    made.as_ref().map_err(Clone::clone)
}

/// Checks one event, as it is written for other programs.
///
/// # Errors
/// What does not fit, with the event.
pub fn check_event(event: &RunEvent) -> Result<(), String> {
    check_json(&serde_json::to_value(event).map_err(|error| error.to_string())?)
}

/// Checks the JSON of an event.
///
/// # Errors
/// What does not fit, with the event.
pub fn check_json(event: &serde_json::Value) -> Result<(), String> {
    let problems: Vec<String> = validator()?
        .iter_errors(event)
        .map(|error| format!("{error} at {}", error.instance_path))
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "an event that docs/schemas/run-event.json does not allow: {}\n{event}",
            problems.join("; ")
        )),
    }
}
