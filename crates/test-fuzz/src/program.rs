//! What a text means, so that two can be compared.

use prose_hir::bundle;
use prose_model::codes::Severity;
use serde_json::Value;

use crate::analysis;

/// What is run, without where it stands in the text; `None` for a program with errors.
pub(crate) fn program(text: &str) -> Option<Value> {
    let mut db = analysis::database();
    analysis::set(&mut db, text);
    if analysis::found(&db)
        .iter()
        .any(|it| it.severity == Severity::Error)
    {
        return None;
    }
    let bundle = bundle(&db, db.source(analysis::MAIN)?).ok()?;
    let mut value = serde_json::to_value(&*bundle).ok()?;
    without_places(&mut value);
    Some(value)
}

/// Takes sources, digests and ranges out.
fn without_places(value: &mut Value) {
    match value {
        Value::Object(map) if ["file", "start", "end"].iter().all(|it| map.contains_key(*it)) => {
            *value = Value::Null;
        }
        Value::Object(map) => {
            map.retain(|key, _| !matches!(key.as_str(), "files" | "digest"));
            map.values_mut().for_each(without_places);
        }
        Value::Array(all) => all.iter_mut().for_each(without_places),
        _ => {}
    }
}

/// The same as far as a rewriting keeps it: without the ids of nodes, which count what stands before a node, as written,
/// and without the labels of context, which are as written too.
pub(crate) fn as_rewritten(mut program: Option<Value>) -> Option<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|key, _| key != "id");
                if map.len() == 2
                    && map.contains_key("value")
                    && map.get("label").is_some_and(Value::is_string)
                {
                    map.remove("label");
                }
                map.values_mut().for_each(strip);
            }
            Value::Array(all) => all.iter_mut().for_each(strip),
            _ => {}
        }
    }
    program.iter_mut().for_each(strip);
    program
}
