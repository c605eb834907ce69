//! InstanceType: how large Instances of a type are; the catalogue of the platform.
#![allow(clippy::duplicated_attributes, reason = "each printcolumn(..) is a list of its own")]

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::positive_quantity;

/// A size that Workloads choose by name. It is on the server that the management plane runs on, and in no project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "InstanceType",
    plural = "instancetypes",
    shortname = "itype",
    doc = "A size of Instances that Workloads choose by name.",
    derive = "PartialEq",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.memory"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(extend("x-kubernetes-validations" = json!([{
    "rule": "self == oldSelf",
    "message": "spec is immutable: a type never changes its size; make another one",
}])))]
#[serde(rename_all = "camelCase")]
pub struct InstanceTypeSpec {
    /// What `runtime.resources.instanceType` of a Workload has, such as `datumcloud/d1-standard-2`. Of two objects with one name the
    /// older counts.
    #[schemars(
        length(min = 1, max = 128),
        regex(pattern = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$")
    )]
    pub name: String,
    /// Processors: above 0, at most 10000.
    #[schemars(schema_with = "positive_cpu")]
    pub cpu: Quantity,
    /// Memory in bytes: above 0, at most 1Pi.
    #[schemars(schema_with = "positive_memory")]
    pub memory: Quantity,
}

fn positive_cpu(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    positive_quantity(generator, "10k")
}

fn positive_memory(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    positive_quantity(generator, "1Pi")
}
