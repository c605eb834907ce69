//! Fields that this release does not know.

use popcell_api::InstanceTemplateSpec;
use serde_json::Value;

use super::field::Faults;

/// Refuses every field of a template that is not in its type: a closed schema would have refused it.
pub(super) fn check(given: &Value, read: &InstanceTemplateSpec, faults: &mut Faults) {
    let Ok(known) = serde_json::to_value(read) else {
        return faults.invalid("spec.template", "...", "cannot be read");
    };
    walk("spec.template", given, Some(&known), faults);
}

/// `known` is what was read of a value. What is empty is written by nobody, so its absence says nothing.
fn walk(path: &str, given: &Value, known: Option<&Value>, faults: &mut Faults) {
    match (given, known) {
        (Value::Object(fields), _) => {
            for (field, value) in fields {
                let path = format!("{path}.{field}");
                match known.and_then(|known| known.get(field)) {
                    None if says_nothing(value) => {}
                    None => faults.forbidden(path, "unknown field"),
                    read => walk(&path, value, read, faults),
                }
            }
        }
        (Value::Array(items), Some(Value::Array(known))) => {
            for (index, item) in items.iter().enumerate() {
                walk(&format!("{path}[{index}]"), item, known.get(index), faults);
            }
        }
        _ => {}
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
