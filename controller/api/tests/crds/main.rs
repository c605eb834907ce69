//! The CRDs and types say what programs outside this project rely on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod catalogue;
mod columns;
mod read;
mod types;
mod unknown;

use popcell_api::{API_VERSION, GROUP, VERSION, annotations, crds};
use serde_json::{Value, json};

use read::{KINDS, crd, field, only_version, schema};

#[test]
fn crds_have_their_names_scope_and_version() {
    for (kind, name, short) in [
        ("Workload", "workloads.compute.datumapis.com", "wl"),
        ("WorkloadDeployment", "workloaddeployments.compute.datumapis.com", "wd"),
        ("Instance", "instances.compute.datumapis.com", "inst"),
    ] {
        let crd = crd(kind);
        assert_eq!(crd.metadata.name.as_deref(), Some(name));
        assert_eq!(crd.spec.group, GROUP);
        assert_eq!(crd.spec.scope, "Namespaced");
        assert_eq!(crd.spec.names.short_names, Some(vec![short.to_owned()]));
        let annotations = crd.metadata.annotations.as_ref().unwrap();
        assert_eq!(
            annotations[annotations::PARENT_CONTEXTS],
            annotations::PARENT_CONTEXT_PROJECT
        );
        let version = only_version(crd);
        assert_eq!(version.name, VERSION);
        assert_eq!(format!("{}/{}", crd.spec.group, version.name), API_VERSION);
        assert!(version.served && version.storage);
        assert!(version.subresources.as_ref().unwrap().status.is_some());
    }
}

#[test]
fn what_identifies_a_deployment_is_immutable() {
    for name in ["cityCode", "placementName", "workloadRef"] {
        let rules = schema("WorkloadDeployment", &field(&format!("spec.{name}")))["x-kubernetes-validations"].clone();
        assert_eq!(rules[0]["rule"], "self == oldSelf", "{name}");
        assert!(rules[0]["message"].as_str().unwrap().starts_with(name), "{rules}");
    }
}

#[test]
fn conditions_are_merged_by_type_and_validated() {
    for (kind, path) in [
        ("Workload", "status.conditions"),
        ("Workload", "status.placements[].conditions"),
        ("WorkloadDeployment", "status.conditions"),
        ("Instance", "status.conditions"),
    ] {
        let conditions = schema(kind, &field(path));
        assert_eq!(conditions["x-kubernetes-list-type"], "map");
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
        let item = &conditions["items"]["properties"];
        assert_eq!(item["reason"]["pattern"], "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$");
        assert_eq!(item["message"]["maxLength"], 32768);
        assert_eq!(item["status"]["enum"], json!(["True", "False", "Unknown"]));
    }
}

/// Lists that are merged by name; `instance` is where the kind has an InstanceSpec.
#[test]
fn lists_are_merged_by_name() {
    for (kind, instance) in [
        ("Workload", "spec.template.spec"),
        ("WorkloadDeployment", "spec.template.spec"),
        ("Instance", "spec"),
    ] {
        for list in [
            "runtime.sandbox.containers",
            "runtime.sandbox.containers[].env",
            "runtime.sandbox.containers[].ports",
            "runtime.virtualMachine.ports",
            "volumes",
            "controller.schedulingGates",
        ] {
            let list = schema(kind, &field(&format!("{instance}.{list}")));
            assert_eq!(list["x-kubernetes-list-type"], "map");
            assert_eq!(list["x-kubernetes-list-map-keys"], json!(["name"]));
        }
        for list in [
            "runtime.sandbox.containers",
            "runtime.virtualMachine.volumeAttachments",
            "networkInterfaces",
        ] {
            let list = schema(kind, &field(&format!("{instance}.{list}")));
            assert_eq!(list["minItems"], 1);
        }
    }
    assert_eq!(schema("Workload", &field("spec.placements"))["minItems"], 1);
}

#[test]
fn schemas_have_defaults_ranges_and_enums() {
    for (kind, instance) in [
        ("Workload", "spec.template.spec"),
        ("WorkloadDeployment", "spec.template.spec"),
        ("Instance", "spec"),
    ] {
        let port = schema(
            kind,
            &field(&format!("{instance}.runtime.sandbox.containers[].ports[]")),
        );
        assert_eq!(port["properties"]["protocol"]["default"], "TCP");
        assert_eq!(port["properties"]["port"]["minimum"], json!(1.0));
        assert_eq!(port["properties"]["port"]["maximum"], json!(65535.0));
        let disk = schema(kind, &field(&format!("{instance}.volumes[].disk.template.spec")));
        assert_eq!(disk["properties"]["type"]["default"], "pd-standard");
        let filesystem = &disk["properties"]["populator"]["properties"]["filesystem"];
        assert_eq!(filesystem["properties"]["type"]["enum"], json!(["ext4"]));
    }
    for (kind, path) in [
        ("Workload", "spec.placements[].scaleSettings"),
        ("WorkloadDeployment", "spec.scaleSettings"),
    ] {
        let scale = schema(kind, &field(path));
        let policy = &scale["properties"]["instanceManagementPolicy"];
        assert_eq!(policy["default"], "OrderedReady");
        assert_eq!(policy["enum"], json!(["OrderedReady"]));
        let metric = &scale["properties"]["metrics"]["items"]["properties"]["resource"];
        assert_eq!(metric["properties"]["name"]["enum"], json!(["cpu"]));
        assert_eq!(metric["required"], json!(["name", "target"]));
    }
}

#[test]
fn a_new_instance_has_a_default_status() {
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({
            "type": type_, "status": "Unknown", "reason": reason, "message": message,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    assert_eq!(
        schema("Instance", "/properties/status/default"),
        json!({ "conditions": [
            condition("Programmed", "Pending", "Waiting for controller"),
            condition("Available", "Pending", "Waiting for controller"),
            condition("Ready", "Pending", "Waiting for controller"),
            condition("QuotaGranted", "PendingEvaluation", "Waiting for quota evaluation"),
        ] })
    );
    for kind in ["Workload", "WorkloadDeployment"] {
        assert_eq!(schema(kind, "/properties/status").get("default"), None);
    }
}

#[test]
fn schemas_require_their_fields() {
    const COUNTS: [&str; 5] = [
        "currentReplicas",
        "desiredReplicas",
        "readyReplicas",
        "replicas",
        "updatedReplicas",
    ];
    let with = |more: &str| {
        let mut all = [COUNTS.as_slice(), &[more]].concat();
        all.sort_unstable();
        json!(all)
    };
    let deployment = ["cityCode", "placementName", "scaleSettings", "template", "workloadRef"];
    for (kind, path, required) in [
        ("Workload", String::new(), json!(["spec"])),
        ("Workload", field("spec"), json!(["placements", "template"])),
        (
            "Workload",
            field("spec.placements[]"),
            json!(["cityCodes", "name", "scaleSettings"]),
        ),
        (
            "Workload",
            field("spec.placements[].scaleSettings"),
            json!(["minReplicas"]),
        ),
        ("Workload", field("status"), with("deployments")),
        ("Workload", field("status.placements[]"), with("name")),
        ("WorkloadDeployment", String::new(), json!(["spec"])),
        ("WorkloadDeployment", field("spec"), json!(deployment)),
        ("WorkloadDeployment", field("spec.workloadRef"), json!(["name", "uid"])),
        ("WorkloadDeployment", field("spec.template"), json!(["spec"])),
        ("WorkloadDeployment", field("status"), json!(COUNTS)),
        ("Instance", String::new(), json!(["spec"])),
        ("Instance", field("spec"), json!(["networkInterfaces", "runtime"])),
        ("Instance", field("spec.runtime"), json!(["resources"])),
        ("Instance", field("spec.controller"), json!(["templateHash"])),
        ("Instance", field("status.controller"), json!(["observedTemplateHash"])),
    ] {
        assert_eq!(schema(kind, &path)["required"], required, "{kind} {path}");
    }
    // Of a LocationReference only the name: later releases have no namespace in it.
    assert_eq!(
        schema("WorkloadDeployment", &field("status.location"))["required"],
        json!(["name"])
    );
}

#[test]
fn no_field_accepts_null() {
    let all = serde_json::to_string(&crds()).unwrap();
    assert!(!all.contains(r#""nullable""#));
}

/// One that is not shows as an empty line in `kubectl explain`.
#[test]
fn every_field_is_described() {
    fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if part.get("description").is_none() {
                found.push(path.clone());
            }
            undescribed(&path, part, found);
            undescribed(&path, &part["items"], found);
        }
    }
    for kind in KINDS {
        let mut found = Vec::new();
        for part in ["spec", "status"] {
            undescribed(part, &schema(kind, &field(part)), &mut found);
        }
        assert_eq!(found, Vec::<String>::new(), "{kind}");
    }
}
