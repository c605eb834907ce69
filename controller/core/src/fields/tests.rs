//! The table against the CRDs, what it says against admission and conditions, and docs/reference/fields.md, which is made from
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::admission::{validate, validate_deployment, warnings};
use crate::instance_types::Catalogue;
use crate::observed::Observed;
use crate::testing::{is_neutral, now, object};

const KINDS: [Kind; 2] = [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT];

/// Every field without fields of its own, as rows write paths: read from the schema, not from [`Node`].
fn leaves(kind: Kind) -> BTreeSet<String> {
    fn collect(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
            for (name, one) in fields {
                collect(one, &format!("{path}.{name}"), found);
            }
        } else if let Some(item) = schema.get("items") {
            collect(item, &format!("{path}[]"), found);
        } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            collect(values, &format!("{path}.*"), found);
        } else {
            found.insert(path.to_owned());
        }
    }
    let crds = serde_json::to_value(crds()).unwrap();
    let crd = crds.as_array().unwrap().iter();
    let mut crd = crd.filter(|crd| crd["spec"]["names"]["kind"] == kind.kind);
    let schema = &crd.next().unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut found = BTreeSet::new();
    for part in ["spec", "status"] {
        collect(&schema["properties"][part], part, &mut found);
    }
    // Of every object: the API server checks them.
    let beside: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(beside, ["spec", "status"], "{}", kind.kind);
    found
}

/// Whether a path is at or below that of a row.
fn is_within(leaf: &str, row: &str) -> bool {
    leaf.strip_prefix(row)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether a row is for a key of a map.
fn is_key_of(row: &str, leaf: &str) -> bool {
    let (above, _) = row.rsplit_once('.').unwrap();
    leaf.strip_suffix(".*") == Some(above)
}

#[test]
fn no_field_of_the_crds_is_without_a_row() {
    for kind in KINDS {
        let rows: Vec<(String, Handling)> = table::rows(kind).collect();
        let missing: Vec<String> = leaves(kind)
            .into_iter()
            .filter(|leaf| {
                !rows.iter().any(|(row, handling)| match handling {
                    Handling::Done(..) => leaf == row,
                    _ => is_within(leaf, row),
                })
            })
            .collect();
        assert!(
            missing.is_empty(),
            "{} has fields without a row in controller/core/src/fields/table.rs: {missing:#?}",
            kind.kind
        );
    }
}

#[test]
fn no_row_is_without_a_field_or_there_twice() {
    for kind in KINDS {
        let leaves = leaves(kind);
        let mut seen = BTreeSet::new();
        for (row, handling) in table::rows(kind) {
            assert!(seen.insert(row.clone()), "{row} twice");
            let is_field = leaves.iter().any(|leaf| match handling {
                Handling::Done(..) => *leaf == row || is_key_of(&row, leaf),
                _ => is_within(leaf, &row),
            });
            assert!(is_field, "{}: {row} is in no CRD", kind.kind);
            let is_status = row.starts_with("status.");
            assert_eq!(is_status, matches!(handling, Handling::Written(_)), "{row}");
        }
    }
}

#[test]
fn warnings_are_short_and_few() {
    for kind in KINDS {
        let texts: Vec<&str> = table::rows(kind)
            .filter_map(|(_, handling)| match handling {
                Handling::Warned(text) => Some(text),
                _ => None,
            })
            .chain([UNKNOWN, OF_MACHINES])
            .collect();
        assert!(texts.len() <= WARNINGS, "{}: {}", kind.kind, texts.len());
        for text in texts {
            assert!(text.len() <= 100, "{text}");
        }
    }
}

/// One with the parts that rows are about, and nothing to warn about.
fn workload() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "uid": "u", "generation": 3 },
        "spec": {
            "placements": [{ "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "web", "image": "i", "env": [{ "name": "A", "value": "a" }],
                        "ports": [{ "name": "http", "port": 80 }],
                        "volumeAttachments": [{ "name": "data", "mountPath": "/data" }] }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
                "volumes": [{ "name": "data", "disk": { "template": { "spec": { "type": "pd-standard",
                    "resources": { "requests": { "storage": "10Gi" } },
                    "populator": { "filesystem": { "type": "ext4" } } } } } }],
            } },
        },
    })
}

/// The same, made directly.
fn deployment() -> Value {
    let workload = workload();
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": "mine", "namespace": "default", "uid": "d", "generation": 3 },
        "spec": { "workloadRef": { "name": "none", "uid": "none" }, "placementName": "us", "cityCode": "DFW",
            "template": workload["spec"]["template"], "scaleSettings": { "minReplicas": 1 } },
    })
}

/// What a row is about: its path, a pointer and a value in a Workload or WorkloadDeployment of these tests. `scale` is where that
/// has its scale settings.
type Set = (&'static str, &'static str, Value);

fn made(kind: Kind, pointer: &str, value: &Value) -> Object {
    let mut whole = if kind == kind::WORKLOAD {
        workload()
    } else {
        deployment()
    };
    let settings = if kind == kind::WORKLOAD {
        "/spec/placements/0/scaleSettings"
    } else {
        "/spec/scaleSettings"
    };
    let of_settings = pointer.strip_prefix("/scale").map(|rest| format!("{settings}{rest}"));
    let pointer = of_settings.unwrap_or_else(|| pointer.to_owned());
    let (above, last) = pointer.rsplit_once('/').unwrap();
    let above = whole.pointer_mut(above).unwrap_or_else(|| panic!("no {above}"));
    match above {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value.clone(),
        above => above[last] = value.clone(),
    }
    object(whole)
}

fn faults(kind: Kind, object: &Object) -> Vec<String> {
    let cities = ["DFW"].into();
    let builtin = Catalogue::default();
    let types = Observed::Known(&builtin);
    let errors = if kind == kind::WORKLOAD {
        validate(None, object, &cities, types)
    } else {
        validate_deployment(None, object, None, &cities, types)
    };
    errors.iter().map(ToString::to_string).collect()
}

/// Path of a row as a finding has it, in the objects of these tests.
fn found_at(row: &str) -> String {
    row.replace("[]", "[0]")
}

const VOLUME: &str = "/spec/template/spec/volumes/0";

#[test]
fn every_row_that_refuses_is_refused() {
    let items = json!([{ "key": "k", "path": "p" }]);
    let sets: [Set; 4] = [
        (
            "spec.template.spec.runtime.resources.requests",
            "/spec/template/spec/runtime/resources/requests",
            json!({ "cpu": "1" }),
        ),
        (
            "spec.template.spec.runtime.sandbox.containers[].resources",
            "/spec/template/spec/runtime/sandbox/containers/0/resources",
            json!({ "limits": { "cpu": "1" } }),
        ),
        (
            "spec.template.spec.volumes[].configMap.items",
            VOLUME,
            json!({ "name": "data", "configMap": { "name": "c", "items": items } }),
        ),
        (
            "spec.template.spec.volumes[].secret.items",
            VOLUME,
            json!({ "name": "data", "secret": { "secretName": "s", "items": items } }),
        ),
    ];
    for kind in KINDS {
        let mut refused = BTreeMap::new();
        for (row, handling) in table::rows(kind) {
            if let Handling::Refused(text) = handling {
                refused.insert(row, text);
            }
        }
        for (row, pointer, value) in &sets {
            let text = refused.remove(*row).unwrap_or_else(|| panic!("no row {row}"));
            let expected = vec![format!("{}: Forbidden: {text}", found_at(row))];
            assert_eq!(faults(kind, &made(kind, pointer, value)), expected);
        }
        assert!(refused.is_empty(), "rows that are not tried: {refused:?}");
    }
}

/// Metrics with a target that no autoscaler takes.
fn sums() -> Value {
    json!([{ "resource": { "name": "cpu", "target": { "value": "2" } } }])
}

/// What every row that warns is about.
fn warned() -> Vec<Set> {
    let env = |from: Value| json!([{ "name": "A", "valueFrom": from }]);
    vec![
        (
            "scale.metrics[].resource.target.value",
            "/scale",
            json!({ "minReplicas": 1, "maxReplicas": 2, "metrics": sums() }),
        ),
        (
            "spec.template.spec.controller",
            "/spec/template/spec/controller",
            json!({ "templateHash": "x" }),
        ),
        (
            "spec.template.spec.location",
            "/spec/template/spec/location",
            json!({ "name": "x" }),
        ),
        (
            "spec.template.spec.networkInterfaces[].networkPolicy",
            "/spec/template/spec/networkInterfaces/0/networkPolicy",
            json!({ "ingress": [{ "from": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }] }] }),
        ),
        (
            "spec.template.spec.runtime.sandbox.containers[].env[].valueFrom.fileKeyRef",
            "/spec/template/spec/runtime/sandbox/containers/0/env",
            env(json!({ "fileKeyRef": { "volumeName": "v", "path": "p", "key": "k" } })),
        ),
        (
            "spec.template.spec.volumes[].disk.template.spec.resources.requests.*",
            "/spec/template/spec/volumes/0/disk/template/spec/resources/requests",
            json!({ "storage": "10Gi", "iops": "3" }),
        ),
    ]
}

#[test]
fn every_row_that_warns_is_accepted_with_its_warning_and_shown_on_the_object() {
    for kind in KINDS {
        let mut rows = BTreeMap::new();
        for (row, handling) in table::rows(kind) {
            if let Handling::Warned(text) = handling {
                rows.insert(row, text);
            }
        }
        for (row, pointer, value) in warned() {
            let scale = if kind == kind::WORKLOAD {
                "spec.placements[].scaleSettings."
            } else {
                "spec.scaleSettings."
            };
            let row = row.replacen("scale.", scale, 1);
            let text = rows.remove(&row).unwrap_or_else(|| panic!("no row {row}"));
            let object = made(kind, pointer, &value);
            assert_eq!(faults(kind, &object), Vec::<String>::new(), "{row}");
            let expected = format!("{}: {text}", found_at(&row).replace(".*", ".iops"));
            assert_eq!(warnings(kind, None, &object, None), [expected.as_str()]);
            let shown = shown(kind, &object, json!({})).unwrap();
            assert_eq!(shown["message"], json!(expected));
        }
        assert!(rows.is_empty(), "rows that are not tried: {rows:?}");
    }
}

/// The condition of an object in a status that had these fields.
fn shown(kind: Kind, object: &Object, status: Value) -> Option<Value> {
    let mut status = status.as_object().cloned().unwrap();
    show(&mut status, kind, object, Some(3), now());
    conditions::find(&Value::Object(status), UNSUPPORTED_FIELDS).cloned()
}

#[test]
fn what_is_done_whole_has_no_warning_and_no_condition() {
    for (kind, whole) in [(kind::WORKLOAD, workload()), (kind::WORKLOAD_DEPLOYMENT, deployment())] {
        let object = object(whole);
        assert_eq!(faults(kind, &object), Vec::<String>::new());
        assert_eq!(warnings(kind, None, &object, None), Vec::<String>::new());
        let before =
            json!({ "conditions": [{ "type": "UnsupportedFields", "status": "True" }, { "type": "Available" }] });
        assert_eq!(shown(kind, &object, before), None, "it ends with the last such field");
    }
}

#[test]
fn what_is_done_for_machines_only_has_a_warning_in_a_sandbox() {
    let findings = |runtime: Option<Value>| {
        let mut one = workload();
        let spec = &mut one["spec"]["template"]["spec"];
        spec["volumes"][0]["disk"]["deviceName"] = json!("data");
        spec["volumes"][0]["disk"]["template"]["metadata"] = json!({ "labels": { "tier": "a" } });
        if let Some(runtime) = runtime {
            spec["runtime"] = runtime;
        }
        let found = findings(kind::WORKLOAD, &crate::testing::object(one));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let place = "spec.template.spec.volumes[0].disk";
    assert_eq!(
        findings(None),
        [
            format!("{place}.deviceName: {OF_MACHINES}"),
            format!("{place}.template.metadata.labels.tier: {OF_MACHINES}")
        ]
    );
    let machine = json!({ "virtualMachine": { "volumeAttachments": [{ "name": "data" }] } });
    assert_eq!(findings(Some(machine)), Vec::<String>::new());
}

#[test]
fn the_condition_is_written_once_and_stays_where_the_spec_is_not_kept() {
    let limited = made(kind::WORKLOAD, "/scale/metrics", &sums());
    let first = shown(kind::WORKLOAD, &limited, json!({})).unwrap();
    assert_eq!(
        (&first["status"], &first["reason"], &first["observedGeneration"]),
        (&json!("True"), &json!("UnsupportedFields"), &json!(3))
    );
    let mut again = limited.clone();
    again.data["status"] = json!({ "conditions": [first] });
    let mut status = again.at("/status").unwrap().as_object().cloned().unwrap();
    let later = now() + jiff::SignedDuration::from_hours(1);
    show(&mut status, kind::WORKLOAD, &again, Some(3), later);
    assert_eq!(Some(&Value::Object(status)), again.at("/status"));

    let excess = crate::limits::Excess::Bytes { bytes: 2, limit: 1 };
    let large = crate::testing::enlarged(&again, kind::WORKLOAD, "spec", 1 << 20, excess);
    let before = json!({ "conditions": [first] });
    assert_eq!(shown(kind::WORKLOAD, &large, before), Some(first));
}

#[test]
fn a_field_that_no_schema_describes_is_named_once_with_how_many_there_are() {
    let mut newer = workload();
    newer["spec"]["schedule"] = json!("daily");
    newer["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["command"] = json!(["a"]);
    newer["spec"]["template"]["spec"]["empty"] = json!({ "a": [], "b": null });
    let newer = object(newer);
    let expected = ["spec.schedule: unknown field: popcell does nothing with it (and 1 more)"];
    assert_eq!(warnings(kind::WORKLOAD, None, &newer, None), expected);
    // The template of one made directly may have none; what is beside it may.
    let template = made(
        kind::WORKLOAD_DEPLOYMENT,
        "/spec/template/spec/hostNetwork",
        &json!(true),
    );
    let refused = ["spec.template.spec.hostNetwork: Forbidden: unknown field"];
    assert_eq!(faults(kind::WORKLOAD_DEPLOYMENT, &template), refused);
    let beside = made(kind::WORKLOAD_DEPLOYMENT, "/scale/behaviour", &json!(1));
    assert_eq!(faults(kind::WORKLOAD_DEPLOYMENT, &beside), Vec::<String>::new());
    let expected = ["spec.scaleSettings.behaviour: unknown field: popcell does nothing with it"];
    assert_eq!(warnings(kind::WORKLOAD_DEPLOYMENT, None, &beside, None), expected);
}

#[test]
fn whatever_is_set_warnings_are_bounded_and_have_no_control_characters() {
    let mut hostile = workload();
    hostile["spec"]["a\r\nX-Evil: 1\u{7f}\u{9b}"] = json!(1);
    hostile["spec"]["\u{e9}".repeat(100_000)] = json!(1);
    for number in 0..2000 {
        hostile["spec"][format!("x{number}")] = json!(1);
    }
    let file = json!({ "name": "A", "valueFrom": { "fileKeyRef": { "volumeName": "v", "path": "p", "key": "k" } } });
    hostile["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["env"] = json!(vec![file; 900]);
    let hostile = object(hostile);
    let reported = warnings(kind::WORKLOAD, None, &hostile, None);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported.iter().any(|one| one.ends_with("(and 2001 more)")),
        "{reported:?}"
    );
    assert!(
        reported.iter().any(|one| one.ends_with("(and 899 more)")),
        "{reported:?}"
    );
    for key in ["a\r\n\u{7f}\u{9b}", &"\u{e9}".repeat(100_000), &"k".repeat(100_000)] {
        let mut one = workload();
        one["spec"][key] = json!(1);
        let reported = warnings(kind::WORKLOAD, None, &object(one), None);
        let [only] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert!(
            only.len() <= WARNING_BYTES && !only.chars().any(char::is_control),
            "{only}"
        );
        assert!(only.ends_with(UNKNOWN), "{only}");
    }
}

#[test]
fn what_was_not_changed_or_was_reviewed_with_its_workload_has_no_warning() {
    let limited = made(kind::WORKLOAD, "/scale/metrics", &sums());
    let mut finalized = limited.clone();
    finalized.metadata.finalizers = Some(vec!["f".to_owned()]);
    assert!(warnings(kind::WORKLOAD, Some(&limited), &finalized, None).is_empty());
    let mut rolled = limited.clone();
    rolled.data["spec"]["template"]["metadata"] = json!({ "labels": { "a": "b" } });
    assert_eq!(warnings(kind::WORKLOAD, Some(&limited), &rolled, None).len(), 1);

    let mut made = made(kind::WORKLOAD_DEPLOYMENT, "/scale/metrics", &sums());
    made.metadata.name = Some("web-us-dfw".to_owned());
    made.data["spec"]["workloadRef"] = json!({ "name": "web", "uid": "u" });
    assert_eq!(
        warnings(kind::WORKLOAD_DEPLOYMENT, None, &made, Some(&limited)).len(),
        1
    );
    made.metadata.owner_references = Some(vec![crate::workload::owner(kind::WORKLOAD, &limited, true)]);
    assert!(warnings(kind::WORKLOAD_DEPLOYMENT, None, &made, Some(&limited)).is_empty());
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/fields.md")
}

const HEAD: &str = "\
<!-- Generated from controller/core/src/fields/table.rs and the CRDs: see there. Do not edit. -->

# Fields of Workloads and WorkloadDeployments

What popcell does with each field of these kinds:

- **done**: what the field asks for is done. Reconcilers are those of [architecture.md](../architecture.md#the-controller);
  providers are other programs, which read the Instance ([their contract](../domain.md#providers)).
- **refused**: admission rejects an object that sets the field.
- **warning**: the object is accepted, and `kubectl` prints the warning. While the field is set, the condition
  `UnsupportedFields` of the Workload, and of its WorkloadDeployments, is True and names it.

A row that refuses or warns, and one of a status, is also for all fields below it. `*` stands for every key without a row of its
own.

`kubectl apply` itself rejects a field that a Workload does not have (`--validate=strict`, its default). A client that does not
ask for that has such fields dropped by the API server. A WorkloadDeployment keeps them: one that is made directly may have none
in its template, and has a warning for those elsewhere. Those that come from a newer plane are in the condition of the cell.
";

fn line(path: &str, handling: Handling) -> String {
    let (what, about) = match handling {
        Handling::Done(actor, what) => ("done", format!("by {}: {what}", actor.as_str())),
        Handling::Refused(text) => ("refused", text.to_owned()),
        Handling::Warned(text) => ("warning", text.to_owned()),
        Handling::Written(who) => ("status", who.to_owned()),
    };
    format!("| `{path}` | {what} | {about} |\n")
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for kind in KINDS {
        let mut lines: Vec<(String, Handling)> = table::rows(kind).collect();
        lines.sort_by(|left, right| left.0.cmp(&right.0));
        write!(page, "\n## {}\n\n", kind.kind).unwrap();
        if kind == kind::WORKLOAD_DEPLOYMENT {
            page.push_str("`spec.template` is as in a Workload.\n\n");
            lines.retain(|(row, _)| !row.starts_with("spec.template."));
        }
        page.push_str("| field | | what is done |\n| --- | --- | --- |\n");
        for (path, handling) in lines {
            page.push_str(&line(&path, handling));
        }
    }
    page
}

#[test]
fn the_page_in_docs_is_what_the_table_says() {
    let found = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        found == page(),
        "docs/reference/fields.md is not what the table says: run `cargo test -p popcell-core write_the_page -- --ignored`"
    );
}

#[test]
#[ignore = "writes docs/reference/fields.md"]
fn write_the_page() {
    std::fs::write(file(), page()).unwrap();
}

#[test]
fn no_refusal_and_no_warning_names_what_users_do_not_know() {
    assert!(is_neutral(UNKNOWN));
    let mut seen = 0;
    for (path, handling) in KINDS.into_iter().flat_map(table::rows) {
        if let Handling::Refused(text) | Handling::Warned(text) = handling {
            assert!(is_neutral(text), "{path}: {text}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}
