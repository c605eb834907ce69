//! The status of an object as a controller writes it: what differs, and only over the object that it has read.

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Map, Value, json};

/// A status that is being changed.
pub(super) struct Draft<'a> {
    object: &'a DynamicObject,
    now: Timestamp,
    status: Map<String, Value>,
}

impl<'a> Draft<'a> {
    /// Begins with the status that the object has.
    pub(super) fn of(object: &'a DynamicObject, now: Timestamp) -> Self {
        let status = object.data.get("status").and_then(Value::as_object);
        Self {
            object,
            now,
            status: status.cloned().unwrap_or_default(),
        }
    }

    /// Sets a field.
    pub(super) fn set(&mut self, field: &str, value: Value) {
        self.status.insert(field.to_owned(), value);
    }

    /// Sets a condition and leaves the others; its time changes with its status only.
    pub(super) fn condition(&mut self, type_: &str, status: &str, reason: &str, message: &str) {
        let conditions = self.status.entry("conditions").or_insert_with(|| json!([]));
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else {
            return;
        };
        let mut wanted = json!({
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": self.object.metadata.generation,
            "lastTransitionTime": self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        match conditions.iter_mut().find(|condition| condition["type"] == type_) {
            Some(found) => {
                if found["status"] == wanted["status"] && found["lastTransitionTime"].is_string() {
                    wanted["lastTransitionTime"] = found["lastTransitionTime"].take();
                }
                *found = wanted;
            }
            None => conditions.push(wanted),
        }
    }

    /// Since when a condition has its status; null where there is no such condition.
    pub(super) fn since(&self, type_: &str) -> Value {
        let conditions = self.status.get("conditions").and_then(Value::as_array);
        let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == type_));
        found.map_or(Value::Null, |condition| condition["lastTransitionTime"].clone())
    }

    /// A merge patch of the fields that differ, which the server refuses if the object has changed since; `None` where
    /// nothing differs.
    pub(super) fn patch(&self) -> Option<Value> {
        let before = |field: &str| self.object.data.get("status").and_then(|status| status.get(field));
        let changed = self
            .status
            .iter()
            .filter(|(field, value)| before(field) != Some(*value));
        let changed: Map<String, Value> = changed.map(|(field, value)| (field.clone(), value.clone())).collect();
        let version = self.object.metadata.resource_version.as_deref();
        (!changed.is_empty()).then(|| json!({ "metadata": { "resourceVersion": version }, "status": changed }))
    }

    /// Writes it, if it differs. `false` where another client was faster, or has deleted the object: an event of that is
    /// on its way.
    pub(super) async fn write(&self, api: &Api<DynamicObject>) -> Result<bool, kube::Error> {
        let Some(patch) = self.patch() else { return Ok(true) };
        let name = self.object.metadata.name.as_deref().unwrap_or_default();
        let written = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        unless_overtaken(written)
    }
}

/// Whether a guarded write came through; being too late is no error.
pub(super) fn unless_overtaken<T>(outcome: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1",
            "kind": "Thing",
            "metadata": { "name": "it", "generation": 2, "resourceVersion": "7" },
            "status": status,
        }))
        .unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn only_what_differs_is_written_and_only_over_what_was_read() {
        let object = object(&json!({ "kept": 1, "changed": 1, "conditions": [{ "type": "Other", "status": "True" }] }));
        let mut draft = Draft::of(&object, at("2026-01-01T00:00:00.7Z"));
        assert_eq!(draft.patch(), None);
        draft.set("kept", json!(1));
        draft.set("changed", json!(2));
        draft.condition("Ready", "False", "Because", "of this");
        let ready = json!({ "type": "Ready", "status": "False", "reason": "Because", "message": "of this",
            "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z" });
        assert_eq!(
            draft.patch().unwrap(),
            json!({
                "metadata": { "resourceVersion": "7" },
                "status": { "changed": 2, "conditions": [{ "type": "Other", "status": "True" }, ready] },
            })
        );
    }

    #[test]
    fn time_stands_still_while_the_status_does() {
        let mut object = object(&Value::Null);
        for (time, status, reason, expected) in [
            ("2026-01-01T00:00:01Z", "False", "A", "2026-01-01T00:00:01Z"),
            ("2026-01-01T00:00:02Z", "False", "B", "2026-01-01T00:00:01Z"),
            ("2026-01-01T00:00:03Z", "True", "B", "2026-01-01T00:00:03Z"),
        ] {
            let mut draft = Draft::of(&object, at(time));
            draft.condition("Ready", status, reason, "");
            let patch = draft.patch().unwrap();
            assert_eq!(patch["status"]["conditions"][0]["lastTransitionTime"], expected);
            object.data["status"] = patch["status"].clone();
        }
        let mut again = Draft::of(&object, at("2026-01-01T00:00:04Z"));
        again.condition("Ready", "True", "B", "");
        assert_eq!(again.patch(), None);
    }
}
