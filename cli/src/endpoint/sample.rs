//! A minimal object of a kind: enough to see whether anybody answers for it.

use popcell_protocol::{Gvk, Operation};
use serde_json::value::RawValue;

use super::wire::Question;

/// A minimal object of a kind.
#[derive(Debug)]
pub struct Sample {
    kind: Gvk,
    object: Box<RawValue>,
}

impl Sample {
    /// The object of `kind`.
    pub fn of(kind: &Gvk) -> Self {
        let object = serde_json::json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": { "name": "popcell-probe", "namespace": "default", "generation": 1 }, "spec": {}, "status": {},
        });
        let object = serde_json::value::to_raw_value(&object).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            kind: kind.clone(),
            object,
        }
    }

    /// The object's text.
    pub fn text(&self) -> &str {
        self.object.get()
    }

    /// A question about it.
    pub fn question(&self, operation: Operation) -> Question<'_> {
        Question {
            operation,
            kind: &self.kind,
            name: "popcell-probe",
            namespace: Some("default"),
            object: &self.object,
            observed: (operation == Operation::Retain).then_some(&*self.object),
            replicas: i32::from(operation == Operation::ReviseReplica),
            items: None,
        }
    }
}
