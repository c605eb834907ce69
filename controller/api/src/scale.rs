//! How many instances a city runs.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::quantity;

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
