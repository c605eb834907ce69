//! The catalogue of instance types: on the platform's server only, and no type changes its size.

use popcell_api::{GROUP, InstanceType, VERSION, annotations, catalogue_crds, crds};
use serde_json::{Value, json};

use crate::read::{crd, field, only_version, schema, whole};

const KIND: &str = "InstanceType";

#[test]
fn instance_types_are_of_the_cluster_and_of_no_project() {
    let crd = crd(KIND);
    assert_eq!(
        crd.metadata.name.as_deref(),
        Some("instancetypes.compute.datumapis.com")
    );
    assert_eq!((crd.spec.group.as_str(), crd.spec.scope.as_str()), (GROUP, "Cluster"));
    assert_eq!(only_version(crd).name, VERSION);
    let given = crd.metadata.annotations.iter().flatten();
    assert!(given.clone().all(|(key, _)| key != annotations::PARENT_CONTEXTS));
    assert!(crds().iter().all(|one| one.spec.names.kind != KIND));
    assert_eq!(catalogue_crds().len(), 1);
}

#[test]
fn a_type_never_changes_and_has_a_name_and_two_amounts_above_zero() {
    let spec = schema(KIND, &field("spec"));
    assert_eq!(spec["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
    assert_eq!(spec["required"], json!(["cpu", "memory", "name"]));
    assert_eq!(schema(KIND, "")["required"], json!(["spec"]));
    assert_eq!(spec["properties"]["name"]["maxLength"], 128);
    for (amount, most) in [("cpu", "10k"), ("memory", "1Pi")] {
        let part = &spec["properties"][amount];
        let rules: Vec<&Value> = part["x-kubernetes-validations"].as_array().unwrap().iter().collect();
        assert_eq!(rules[0]["rule"], "quantity(string(self)).compareTo(quantity('0')) > 0");
        assert_eq!(
            rules[1]["rule"],
            format!("quantity(string(self)).compareTo(quantity('{most}')) <= 0")
        );
        assert!(part["description"].is_string());
    }
    assert!(!spec.to_string().contains("x-kubernetes-preserve-unknown-fields"));
    assert!(!spec.to_string().contains("nullable"));
}

#[test]
fn the_type_reads_and_writes_every_field() {
    let object = whole(KIND);
    let typed: InstanceType = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), object);
    let described = schema(KIND, &field("spec"))["properties"].as_object().unwrap().len();
    assert_eq!(object["spec"].as_object().unwrap().len(), described);
}

#[test]
fn the_type_that_is_shipped_is_the_one_that_is_built_in() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../manifests/instance-types/d1-standard-2.yaml"
    );
    let shipped: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(shipped["spec"], whole(KIND)["spec"]);
    assert_eq!(
        shipped["spec"],
        json!({ "name": "datumcloud/d1-standard-2", "cpu": "1", "memory": "2Gi" })
    );
}
