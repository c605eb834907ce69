//! Reading CRDs and fixtures.

use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use popcell_api::{catalogue_crds, crds};
use serde_json::Value;

pub(crate) const KINDS: [&str; 3] = ["Workload", "WorkloadDeployment", "Instance"];

/// Made once: they take a while without optimisation.
static CRDS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(|| [crds(), catalogue_crds()].concat());

pub(crate) fn crd(kind: &str) -> &'static CustomResourceDefinition {
    CRDS.iter().find(|crd| crd.spec.names.kind == kind).unwrap()
}

pub(crate) fn only_version(crd: &CustomResourceDefinition) -> &CustomResourceDefinitionVersion {
    assert_eq!(crd.spec.versions.len(), 1);
    &crd.spec.versions[0]
}

/// The schema of a kind, or the part of it at a JSON pointer.
pub(crate) fn schema(kind: &str, pointer: &str) -> Value {
    let crd = crd(kind);
    let schema = &only_version(crd).schema.as_ref().unwrap().open_api_v3_schema;
    let schema = serde_json::to_value(schema).unwrap();
    let part = schema.pointer(pointer).cloned();
    part.unwrap_or_else(|| panic!("no {pointer} in the schema of {kind}"))
}

/// A path of fields, such as `spec.placements[].name`, as a JSON pointer into a schema.
pub(crate) fn field(path: &str) -> String {
    path.split('.')
        .map(|part| match part.strip_suffix("[]") {
            Some(list) => format!("/properties/{list}/items"),
            None => format!("/properties/{part}"),
        })
        .collect()
}

/// The object that has every field of its kind.
pub(crate) fn whole(kind: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/objects")
        .join(format!("{}.yaml", kind.to_lowercase()));
    serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// The example Workloads, by file name.
pub(crate) fn example_workloads() -> Vec<(String, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let named = files.map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        let object: Value = serde_saphyr::from_str(&text).unwrap();
        (file.file_name().unwrap().to_string_lossy().into_owned(), object)
    });
    named.filter(|(_, object)| object["kind"] == "Workload").collect()
}
