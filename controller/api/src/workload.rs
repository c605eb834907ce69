//! Workload: what a consumer wants to run, in which cities, and how many instances of it.
#![allow(clippy::duplicated_attributes, reason = "each printcolumn(..) is a list of its own")]

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::instance::InstanceTemplateSpec;
use crate::schema::{any_object, conditions, quantity};

/// What runs, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "Workload",
    plural = "workloads",
    shortname = "wl",
    namespaced,
    doc = "What runs, and in which cities.",
    status = "WorkloadStatus",
    derive = "PartialEq",
    annotation("discovery.miloapis.com/parent-contexts", "Project"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
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
    printcolumn(name = "Deployments", type_ = "integer", json_path = ".status.deployments"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".status.desiredReplicas"),
    printcolumn(name = "Up-to-date", type_ = "integer", json_path = ".status.updatedReplicas")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// What each instance is made from.
    pub template: InstanceTemplateSpec,
    /// Where instances run.
    #[schemars(length(min = 1))]
    pub placements: Vec<WorkloadPlacement>,
}

/// A group of cities that run the workload in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPlacement {
    /// Name, unique in the workload.
    pub name: String,
    /// The cities; each runs `scaleSettings` on its own.
    pub city_codes: Vec<String>,
    /// How many instances run in each city.
    pub scale_settings: HorizontalScaleSettings,
}

/// What runs, over all cities.
///
/// The counts are required by the schema: a writer gives all of them, zeros included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Conditions, one for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// WorkloadDeployments that exist, those that are going away included.
    pub deployments: i32,
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
    /// Generation of the object that the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The same by placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<WorkloadPlacementStatus>,
    /// Reserved; popcell neither writes nor reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub gateway: Option<Value>,
}

/// What runs of one placement, over its cities. All counts are required.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPlacementStatus {
    /// Name of the placement.
    pub name: String,
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
}

/// Bounds and rules for the number of instances in one city.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HorizontalScaleSettings {
    /// Instances that always run.
    pub min_replicas: i32,
    /// Upper bound for an autoscaler. Needs `metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// What an autoscaler looks at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricSpec>,
    /// Order in which instances are created, replaced and removed.
    #[serde(default)]
    pub instance_management_policy: InstanceManagementPolicy,
}

/// Order in which instances are created, replaced and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceManagementPolicy {
    /// One at a time, by ordinal; the next waits until the one before it is ready. An empty value means the same.
    #[default]
    #[serde(alias = "")]
    OrderedReady,
}

/// One metric for an autoscaler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricSpec {
    /// A resource that every instance uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricSource>,
}

/// A resource metric and the value to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetricSource {
    /// The resource.
    pub name: ResourceMetricName,
    /// The value to hold.
    pub target: MetricTarget,
}

/// Resources that can drive an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceMetricName {
    /// Processor time.
    #[serde(rename = "cpu")]
    Cpu,
}

/// The value of a metric to hold; exactly one field is set (checked at admission).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricTarget {
    /// Sum over all instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity")]
    pub value: Option<Quantity>,
    /// Average over the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity")]
    pub average_value: Option<Quantity>,
    /// Average over the instances, in percent of what they request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}
