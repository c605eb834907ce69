//! WorkloadDeployment: one placement of a workload in one city.
#![allow(clippy::duplicated_attributes, reason = "each printcolumn(..) is a list of its own")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::instance::{InstanceTemplateSpec, LocationReference};
use crate::schema::{conditions, immutable};
use crate::workload::HorizontalScaleSettings;

/// One placement of a workload in one city.
///
/// City, placement and workload never change: another city is another object, so that a policy that selects by city
/// never keeps an object that left it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "WorkloadDeployment",
    plural = "workloaddeployments",
    shortname = "wd",
    namespaced,
    doc = "One placement of a workload in one city.",
    status = "WorkloadDeploymentStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    derive = "PartialEq",
    annotation("discovery.miloapis.com/parent-contexts", "Project"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "City", type_ = "string", json_path = ".spec.cityCode"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].reason"#
    ),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.desiredReplicas"),
    printcolumn(name = "Up-to-date", type_ = "integer", json_path = ".status.updatedReplicas"),
    printcolumn(
        name = "Location Namespace",
        type_ = "string",
        json_path = ".status.location.namespace",
        priority = 1
    ),
    printcolumn(
        name = "Location Name",
        type_ = "string",
        json_path = ".status.location.name",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDeploymentSpec {
    /// The workload that this is a part of.
    #[schemars(extend("x-kubernetes-validations" = immutable("workloadRef")))]
    pub workload_ref: WorkloadReference,
    /// The placement in the workload.
    #[schemars(extend("x-kubernetes-validations" = immutable("placementName")))]
    pub placement_name: String,
    /// The city that the instances run in.
    #[schemars(extend("x-kubernetes-validations" = immutable("cityCode")))]
    pub city_code: String,
    /// What each instance is made from.
    pub template: InstanceTemplateSpec,
    /// How many instances run.
    pub scale_settings: HorizontalScaleSettings,
    /// How many an autoscaler asks for, in the cell only; it counts between `minReplicas` and `maxReplicas`. Written by way
    /// of the subresource `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
}

/// Identity of a Workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Name of the Workload.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What runs, as the cell sees it.
///
/// The counts are required by the schema: a writer gives all of them, zeros included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDeploymentStatus {
    /// The site that serves the city. An observation: nothing waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
    /// Conditions, one for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Instances that exist.
    pub replicas: i32,
    /// Instances of the latest template that are programmed.
    pub current_replicas: i32,
    /// Instances of the latest template, ready or not.
    pub updated_replicas: i32,
    /// Instances that should exist.
    pub desired_replicas: i32,
    /// Instances that are ready.
    pub ready_replicas: i32,
    /// Generation of the object on this plane that the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Label selector of the Pods of the instances in the cell, for an autoscaler there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// In a single cluster the instance type with its size, as the annotation `compute.datumapis.com/instance-type-size` has it: it
    /// counts while no InstanceType has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type_size: Option<String>,
}
