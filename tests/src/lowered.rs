//! Programs to be compared: what is lowered, without what formatting may change.

use std::path::Path;

use prose_project::Workspace;
use serde_json::Value;

/// A program's bundle without sources, digests and ranges; none when it has errors. `name` is its file in the folder `root`.
pub fn lowered(root: &Path, name: &str, text: &str) -> Option<Value> {
    let mut workspace = Workspace::new(root);
    let file = workspace.add_text(name, text);
    let bundle = workspace.bundle(file).ok()?;
    let mut value = serde_json::to_value(&*bundle).ok()?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !matches!(name.as_str(), "files" | "digest"));
    }
    strip_ranges(&mut value);
    Some(value)
}

fn strip_ranges(value: &mut Value) {
    match value {
        Value::Object(fields) if ["file", "start", "end"].iter().all(|it| fields.contains_key(*it)) => {
            *value = Value::Null;
        }
        Value::Object(fields) => fields.values_mut().for_each(strip_ranges),
        Value::Array(items) => items.iter_mut().for_each(strip_ranges),
        _ => {}
    }
}

/// A bundle without ids, which are places in the tree.
pub fn without_ids(mut value: Value) -> Value {
    strip_ids(&mut value);
    value
}

fn strip_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "id");
            fields.values_mut().for_each(strip_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_ids),
        _ => {}
    }
}
