//! What an API server keeps of an object, and what it drops.

use popcell_api::Workload;
use serde_json::Value;

use crate::read::{KINDS, example_workloads, field, schema, whole};

const KEEP: &str = "x-kubernetes-preserve-unknown-fields";

/// Fields of `value` that `schema` does not describe: a server drops them.
fn undescribed(path: &str, value: &Value, schema: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                let part = schema["properties"].get(name);
                match part.or_else(|| schema.get("additionalProperties")) {
                    Some(part) => undescribed(&path, value, part, found),
                    None => found.push(path),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                undescribed(&format!("{path}[]"), item, &schema["items"], found);
            }
        }
        _ => {}
    }
}

#[test]
fn schemas_describe_every_field() {
    for kind in KINDS {
        let object = whole(kind);
        let mut found = Vec::new();
        for part in ["spec", "status"] {
            undescribed(part, &object[part], &schema(kind, &field(part)), &mut found);
        }
        // Upstream's schema has its parts; nothing reads or writes them.
        found.retain(|path| !path.starts_with("status.gateway."));
        assert_eq!(found, Vec::<String>::new(), "{kind}");
    }
}

/// Fields that `schema` describes and that none of `values` has.
fn unused(path: &str, schema: &Value, values: &[&Value], found: &mut Vec<String>) {
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let below: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if below.is_empty() {
            found.push(path);
        } else {
            unused(&path, part, &below, found);
        }
    }
    if let Some(items) = schema.get("items") {
        let below: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        unused(path, items, &below, found);
    }
}

/// Otherwise the test above, and those on a real server, look at less than everything.
#[test]
fn whole_objects_have_every_field() {
    for kind in KINDS {
        let object = whole(kind);
        let mut found = Vec::new();
        for part in ["spec", "status"] {
            unused(part, &schema(kind, &field(part)), &[&object[part]], &mut found);
        }
        // A newer part of Kubernetes' own EnvVar, which the whole objects leave out.
        found.retain(|path| !path.ends_with("env.valueFrom.fileKeyRef"));
        assert_eq!(found, Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn the_examples_have_no_field_that_is_dropped() {
    let examples = example_workloads();
    assert_eq!(examples.len(), 2);
    for (file, object) in examples {
        let mut found = Vec::new();
        undescribed("spec", &object["spec"], &schema("Workload", &field("spec")), &mut found);
        assert_eq!(found, Vec::<String>::new(), "{file}");
        let typed: Workload = serde_json::from_value(object).unwrap();
        assert!(
            typed
                .spec
                .placements
                .iter()
                .all(|placement| !placement.city_codes.is_empty()),
            "{file}"
        );
    }
}

/// Objects below `schema` with or without the mark that keeps unknown fields.
fn objects(path: &str, schema: &Value, keep: bool, found: &mut Vec<String>) {
    if schema.get("properties").is_some() && schema.get(KEEP).is_some() == keep {
        found.push(path.to_owned());
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        objects(&format!("{path}.{name}"), part, keep, found);
    }
    for (mark, part) in [("[]", "items"), ("{}", "additionalProperties")] {
        if let Some(part) = schema.get(part) {
            objects(&format!("{path}{mark}"), part, keep, found);
        }
    }
}

fn objects_in(kind: &str, keep: bool) -> Vec<String> {
    let mut found = Vec::new();
    for part in ["spec", "status"] {
        objects(part, &schema(kind, &field(part)), keep, &mut found);
    }
    found
}

#[test]
fn what_controllers_carry_keeps_unknown_fields() {
    // Rules cannot compare what they do not know.
    assert_eq!(objects_in("WorkloadDeployment", false), ["spec.workloadRef"]);
    assert_eq!(objects_in("Instance", false), Vec::<String>::new());
}

#[test]
fn what_people_write_is_checked() {
    assert_eq!(objects_in("Workload", true), Vec::<String>::new());
    let gateway = schema("Workload", &field("status.gateway"));
    assert_eq!(gateway[KEEP], true);
}
