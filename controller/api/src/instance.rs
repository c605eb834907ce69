//! Instance: one running copy of what a template describes.
#![allow(clippy::duplicated_attributes, reason = "each printcolumn(..) is a list of its own")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conditions::{self as types, messages, reasons};
use crate::location::LocationReference;
use crate::network_interface::NetworkInterface;
use crate::runtime::InstanceRuntime;
use crate::schema::{conditions, keyed_by_name};
use crate::volume::Volume;

/// An instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "compute.datumapis.com",
    version = "v1alpha",
    kind = "Instance",
    plural = "instances",
    shortname = "inst",
    namespaced,
    doc = "One running copy of what a WorkloadDeployment's template describes.",
    status = "InstanceStatus",
    derive = "PartialEq",
    annotation("discovery.miloapis.com/parent-contexts", "Project"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "Network IP",
        type_ = "string",
        json_path = ".status.networkInterfaces[0].assignments.networkIP"
    ),
    printcolumn(
        name = "External IP",
        type_ = "string",
        json_path = ".status.networkInterfaces[0].assignments.externalIP"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(
        name = "Quota",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="QuotaGranted")].reason"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// What runs.
    pub runtime: InstanceRuntime,
    /// Network interfaces, in order.
    #[schemars(length(min = 1))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Volumes that containers or the virtual machine attach by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_name)]
    pub volumes: Vec<Volume>,
    /// The site, written by the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
    /// What the cell's controller notes down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<InstanceController>,
}

/// What the cell's controller notes down on an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceController {
    /// Hash of the template that the instance was made from.
    pub template_hash: String,
    /// The provider does not start the instance while one is left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_name)]
    pub scheduling_gates: Vec<SchedulingGate>,
}

/// Something that must happen before the instance may start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingGate {
    /// Name of the gate.
    pub name: String,
}

/// How the instance is, as its provider and its cell see it.
///
/// The API server gives every new instance a status in which each condition is `Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Conditions, one for each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Network interfaces, in the order of the spec; written by the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_interfaces: Vec<NetworkInterfaceStatus>,
    /// What the provider answers to `spec.controller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<InstanceControllerStatus>,
}

/// One network interface as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterfaceStatus {
    /// Its addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignments: Option<NetworkInterfaceAssignments>,
}

/// Addresses of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkInterfaceAssignments {
    /// Address in the network.
    #[serde(rename = "networkIP", default, skip_serializing_if = "Option::is_none")]
    pub network_ip: Option<String>,
    /// Address in the Internet.
    #[serde(rename = "externalIP", default, skip_serializing_if = "Option::is_none")]
    pub external_ip: Option<String>,
}

/// What the provider answers to `spec.controller`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceControllerStatus {
    /// Hash of the template that the instance runs.
    pub observed_template_hash: String,
}

/// The status of an instance that nobody has looked at: the default in the CRD.
pub(crate) fn unobserved_status() -> Value {
    let unknown = |type_: &str, reason: &str, message: &str| {
        json!({
            "type": type_,
            "status": "Unknown",
            "reason": reason,
            "message": message,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        })
    };
    let waiting = |type_| unknown(type_, reasons::PENDING, messages::WAITING_FOR_CONTROLLER);
    json!({
        "conditions": [
            waiting(types::PROGRAMMED),
            waiting(types::AVAILABLE),
            waiting(types::READY),
            unknown(
                types::QUOTA_GRANTED,
                reasons::PENDING_EVALUATION,
                messages::WAITING_FOR_QUOTA_EVALUATION,
            ),
        ],
    })
}
