//! What tests read from objects, by JSON pointer into the whole object.

use anyhow::{Result, bail, ensure};
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The value at a JSON pointer below the object's root (not `/metadata`); null where there is none.
pub fn at<'a>(object: &'a DynamicObject, pointer: &str) -> &'a Value {
    object.data.pointer(pointer).unwrap_or(&Value::Null)
}

/// Fails, naming object, pointer and both values, unless the value is `expected`.
pub fn expect_at(object: &DynamicObject, pointer: &str, expected: &Value) -> Result<()> {
    let found = at(object, pointer);
    let name = object.metadata.name.as_deref().unwrap_or("?");
    let around = pointer
        .rsplit_once('/')
        .map_or(&Value::Null, |(parent, _)| at(object, parent));
    ensure!(
        found == expected,
        "{name}{pointer}: expected {expected}, found {found} in {around}"
    );
    Ok(())
}

/// Names in `spec.clusters` of a ResourceBinding.
pub fn placed_on(binding: &DynamicObject) -> Vec<String> {
    let clusters = at(binding, "/spec/clusters").as_array().cloned().unwrap_or_default();
    clusters
        .iter()
        .filter_map(|cluster| cluster["name"].as_str().map(str::to_owned))
        .collect()
}

/// Health of a cluster in `status.aggregatedStatus` of a ResourceBinding.
pub fn health_on(binding: &DynamicObject, cluster: &str) -> Result<String> {
    let items = at(binding, "/status/aggregatedStatus")
        .as_array()
        .cloned()
        .unwrap_or_default();
    match items.iter().find(|item| item["clusterName"] == cluster) {
        Some(item) => Ok(item["health"].as_str().unwrap_or("absent").to_owned()),
        None => bail!("no item of cluster {cluster} in {items:?}"),
    }
}

/// The condition of a type in an object's status.
pub fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Result<&'a Value> {
    let found = at(object, "/status/conditions")
        .as_array()
        .and_then(|list| list.iter().find(|each| each["type"] == type_));
    match found {
        Some(condition) => Ok(condition),
        None => bail!("no condition {type_} in {}", at(object, "/status")),
    }
}

/// Fails unless the condition has this status and reason.
pub fn says(object: &DynamicObject, type_: &str, status: &str, reason: &str) -> Result<()> {
    let condition = condition(object, type_)?;
    ensure!(
        condition["status"] == status && condition["reason"] == reason,
        "{type_} is {condition}"
    );
    Ok(())
}

/// Fails unless the Instance runs and is ready.
pub fn is_ready(instance: &DynamicObject) -> Result<()> {
    says(instance, "Ready", "True", "Available")
}

/// Checks that so many replicas are asked for.
pub fn replicas(expected: i32) -> impl Fn(&DynamicObject) -> Result<()> + Copy {
    move |object| expect_at(object, "/spec/scaleSettings/minReplicas", &json!(expected))
}

/// The object's uid; empty where a server has not given one.
pub fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap_or_default()
}
