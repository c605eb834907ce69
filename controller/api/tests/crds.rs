//! The CRDs say what programs outside this project rely on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use popcell_api::{API_VERSION, GROUP, VERSION, annotations, crds};
use serde_json::{Value, json};

fn workload_deployments() -> CustomResourceDefinition {
    crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == "WorkloadDeployment")
        .unwrap()
}

fn only_version(crd: &CustomResourceDefinition) -> &CustomResourceDefinitionVersion {
    assert_eq!(crd.spec.versions.len(), 1);
    &crd.spec.versions[0]
}

fn schema(pointer: &str) -> Value {
    let crd = workload_deployments();
    let schema = &only_version(&crd).schema.as_ref().unwrap().open_api_v3_schema;
    let schema = serde_json::to_value(schema).unwrap();
    schema
        .pointer(pointer)
        .cloned()
        .unwrap_or_else(|| panic!("no {pointer} in the schema"))
}

#[test]
fn names_scope_and_version() {
    let crd = workload_deployments();
    assert_eq!(
        crd.metadata.name.as_deref(),
        Some("workloaddeployments.compute.datumapis.com")
    );
    assert_eq!(crd.spec.group, GROUP);
    assert_eq!(crd.spec.scope, "Namespaced");
    assert_eq!(crd.spec.names.short_names, Some(vec!["wd".to_owned()]));
    let annotations = crd.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        annotations[annotations::PARENT_CONTEXTS],
        annotations::PARENT_CONTEXT_PROJECT
    );
    let version = only_version(&crd);
    assert_eq!(version.name, VERSION);
    assert_eq!(format!("{}/{}", crd.spec.group, version.name), API_VERSION);
    assert!(version.served && version.storage);
    assert!(version.subresources.as_ref().unwrap().status.is_some());
}

#[test]
fn printed_columns() {
    let crd = workload_deployments();
    let columns: Vec<(String, String, i32)> = only_version(&crd)
        .additional_printer_columns
        .as_ref()
        .unwrap()
        .iter()
        .map(|column| {
            (
                column.name.clone(),
                column.json_path.clone(),
                column.priority.unwrap_or(0),
            )
        })
        .collect();
    let expected = [
        ("Age", ".metadata.creationTimestamp", 0),
        ("Available", r#".status.conditions[?(@.type=="Available")].status"#, 0),
        ("Reason", r#".status.conditions[?(@.type=="Available")].reason"#, 0),
        ("Replicas", ".status.replicas", 0),
        ("Ready", ".status.readyReplicas", 0),
        ("Desired", ".status.desiredReplicas", 0),
        ("Up-to-date", ".status.updatedReplicas", 0),
        ("Location Namespace", ".status.location.namespace", 1),
        ("Location Name", ".status.location.name", 1),
    ];
    assert_eq!(
        columns,
        expected.map(|(name, path, priority)| (name.to_owned(), path.to_owned(), priority))
    );
}

#[test]
fn what_identifies_a_deployment_is_immutable() {
    for field in ["cityCode", "placementName", "workloadRef"] {
        let rules = schema(&format!("/properties/spec/properties/{field}/x-kubernetes-validations"));
        assert_eq!(rules[0]["rule"], "self == oldSelf", "{field}");
        assert!(rules[0]["message"].as_str().unwrap().starts_with(field), "{rules}");
    }
}

#[test]
fn conditions_are_merged_by_type_and_checked() {
    let conditions = schema("/properties/status/properties/conditions");
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    let item = &conditions["items"]["properties"];
    assert_eq!(item["reason"]["pattern"], "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$");
    assert_eq!(item["message"]["maxLength"], 32768);
    assert_eq!(item["status"]["enum"], json!(["True", "False", "Unknown"]));
}

#[test]
fn defaults() {
    let scale = schema("/properties/spec/properties/scaleSettings");
    assert_eq!(
        scale["properties"]["instanceManagementPolicy"]["default"],
        "OrderedReady"
    );
    assert_eq!(
        scale["properties"]["instanceManagementPolicy"]["enum"],
        json!(["OrderedReady"])
    );
    let template = "/properties/spec/properties/template/properties/spec/properties";
    let ports = format!("{template}/runtime/properties/sandbox/properties/containers/items/properties/ports");
    assert_eq!(schema(&ports)["items"]["properties"]["protocol"]["default"], "TCP");
    let disk = schema(&format!(
        "{template}/volumes/items/properties/disk/properties/template/properties/spec"
    ));
    assert_eq!(disk["properties"]["type"]["default"], "pd-standard");
}

#[test]
fn required_fields() {
    assert_eq!(
        schema("/properties/spec/required"),
        json!(["cityCode", "placementName", "scaleSettings", "template", "workloadRef"])
    );
    assert_eq!(
        schema("/properties/status/required"),
        json!([
            "currentReplicas",
            "desiredReplicas",
            "readyReplicas",
            "replicas",
            "updatedReplicas"
        ])
    );
    assert_eq!(schema("/required"), json!(["spec"]));
}

#[test]
fn no_field_takes_null() {
    let all = serde_json::to_string(&crds()).unwrap();
    assert!(!all.contains(r#""nullable""#));
}
