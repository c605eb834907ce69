//! The module of tests/fixtures-guest, which does what an object's annotation says, and requests about such objects.

use serde_json::{Value, json};

#[path = "../../../../tests/fixtures-guest/wasm.rs"]
mod guest;
pub(crate) use guest::wasm;

/// A spin that takes some tens of milliseconds on any machine: more than the fast path's budget, less than a deadline.
pub(crate) const LONG: &str = "spin-50000000";

/// A request about an object that makes the module behave. Its fields are in Karmada's order.
pub(crate) fn request(operation: &str, behaviour: &str) -> String {
    request_about(operation, "Misbehaving", &object("Misbehaving", behaviour))
}

/// The same for a kind of choice, about any object.
pub(crate) fn request_about(operation: &str, kind: &str, object: &Value) -> String {
    let observed = if operation == "Retain" {
        format!(r#","observedObject":{object}"#)
    } else {
        String::new()
    };
    format!(
        r#"{{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{{"uid":"{UID}","kind":{{"group":"tests.popcell.dev","version":"v1","kind":"{kind}"}},"name":"a","namespace":"ns","operation":"{operation}","object":{object}{observed},"replicas":3}}}}"#
    )
}

pub(crate) const UID: &str = "5c0e3f8a-0000-4000-8000-000000000001";

pub(crate) fn object(kind: &str, behaviour: &str) -> Value {
    json!({"apiVersion": "tests.popcell.dev/v1", "kind": kind,
           "metadata": {"name": "a", "namespace": "ns", "annotations": {"tests.popcell.dev/behaviour": behaviour}}})
}
