//! The part of an API server: unknown fields, and the schema.

use std::sync::LazyLock;

use popcell_api::crds;

use super::*;

/// A Workload as a server takes it.
pub(super) struct Received {
    /// Without the fields that it does not know.
    pub(super) kept: Value,
    /// Those fields, as in the answer `strict decoding error: unknown field "..."`.
    pub(super) unknown: Vec<String>,
    /// Errors of the schema about what is kept. They come before admission is asked.
    pub(super) invalid: Vec<String>,
}

/// Bounds, patterns and sizes of lists are not here: admission has the same rules.
pub(super) fn receive(workload: &Value) -> Received {
    let schema = &SCHEMA["properties"]["spec"];
    let mut kept = workload.clone();
    let (mut unknown, mut invalid) = (Vec::new(), Vec::new());
    prune("spec", &mut kept["spec"], schema, &mut unknown);
    check("spec", &kept["spec"], schema, &mut invalid);
    Received { kept, unknown, invalid }
}

/// Whether the schema has this field, as `spec.a[].b`.
pub(super) fn is_described(path: &str) -> bool {
    let mut part = Some(&*SCHEMA);
    for step in path.split('.') {
        let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        part = part.and_then(|part| part["properties"].get(name));
        if is_list {
            part = part.and_then(|part| part.get("items"));
        }
    }
    part.is_some()
}

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let crds = serde_json::to_value(crds()).unwrap();
    let mut crds = crds.as_array().unwrap().iter();
    let crd = crds.find(|crd| crd["spec"]["names"]["kind"] == "Workload").unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
});

/// The schema of a field, or of every key of a map.
fn part<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema["properties"]
        .get(name)
        .or_else(|| schema.get("additionalProperties"))
}

fn prune(path: &str, value: &mut Value, schema: &Value, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let path = format!("{path}.{name}");
            match part(schema, name) {
                Some(part) => prune(&path, value, part, unknown),
                None => unknown.push(path),
            }
            part(schema, name).is_some()
        }),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune(&format!("{path}[{index}]"), item, &schema["items"], unknown);
            }
        }
        _ => {}
    }
}

fn check(path: &str, value: &Value, schema: &Value, invalid: &mut Vec<String>) {
    let is_of = |type_: &str| match type_ {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        other => panic!("{path} is of type {other}"),
    };
    if let Some(type_) = schema["type"].as_str().filter(|type_| !is_of(type_)) {
        invalid.push(format!(
            "{path}: Invalid value: {value}: {path} in body must be of type {type_}"
        ));
        return;
    }
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(value)) {
        let supported: Vec<String> = values.iter().map(ToString::to_string).collect();
        invalid.push(format!(
            "{path}: Unsupported value: {value}: supported values: {}",
            supported.join(", ")
        ));
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if value.get(name).is_none() {
            invalid.push(format!("{path}.{name}: Required value"));
        }
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(part) = part(schema, name) {
                    check(&format!("{path}.{name}"), value, part, invalid);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&format!("{path}[{index}]"), item, &schema["items"], invalid);
            }
        }
        _ => {}
    }
}

#[test]
fn unknown_fields_are_dropped_and_wrong_values_named() {
    let mut workload = workload();
    set(
        &mut workload,
        "/spec/template/spec/runtime/sandbox/containers/0/args",
        json!(["a"]),
    );
    set(
        &mut workload,
        "/spec/template/spec/runtime/sandbox/containers/0/image",
        json!(1),
    );
    set(
        &mut workload,
        "/spec/template/spec/runtime/sandbox/containers/0/ports/0/protocol",
        json!("ICMP"),
    );
    set(&mut workload, "/spec/template/spec/networkInterfaces", Value::Null);
    let received = receive(&workload);
    assert_eq!(
        received.unknown,
        ["spec.template.spec.runtime.sandbox.containers[0].args"]
    );
    let container = "spec.template.spec.runtime.sandbox.containers[0]";
    assert_eq!(
        sorted(received.invalid),
        [
            "spec.template.spec.networkInterfaces: Required value".to_owned(),
            format!("{container}.image: Invalid value: 1: {container}.image in body must be of type string"),
            format!(
                "{container}.ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"TCP\", \"UDP\", \"SCTP\""
            ),
        ]
    );
    assert!(
        received
            .kept
            .pointer("/spec/template/spec/runtime/sandbox/containers/0/args")
            .is_none()
    );
}
