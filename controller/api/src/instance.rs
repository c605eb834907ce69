//! Instance: one running copy of what a template describes; its template, and all that it is made of.
#![allow(clippy::duplicated_attributes, reason = "each printcolumn(..) is a list of its own")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, EnvFromSource, EnvVar, SecretVolumeSource};
use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conditions::{self as types, messages, reasons};
use crate::schema::{Quantities, conditions, keyed_by_name, quantities};

/// Scheduling gates: `spec.controller.schedulingGates[].name` of an Instance.
pub mod gates {
    /// The networks of the instance are not ready yet.
    pub const NETWORK: &str = "Network";
    /// The quota of the instance is not granted yet.
    pub const QUOTA: &str = "Quota";
    /// ConfigMaps and Secrets that the template names are not in the city yet.
    pub const REFERENCED_DATA: &str = "ReferencedData";
}

/// What disks can be made from: the names that admission takes.
pub mod catalogue {
    /// The only class of disks, and the default.
    pub const PD_STANDARD: &str = "pd-standard";
    /// The only image that a disk can be filled from.
    pub const UBUNTU_2204_LTS: &str = "datumcloud/ubuntu-2204-lts";
}

/// What each instance of a deployment is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceTemplateSpec {
    /// Labels and annotations of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The instance.
    pub spec: InstanceSpec,
}

/// Labels and annotations of objects made from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

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
        name = "City",
        type_ = "string",
        json_path = r".metadata.labels.compute\.datumapis\.com/city-code"
    ),
    printcolumn(
        name = "Cell",
        type_ = "string",
        json_path = r".metadata.labels.compute\.datumapis\.com/source-cluster"
    ),
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
    /// Hash of the versions of the ConfigMaps and Secrets that the template names, as they were in the city when the instance was
    /// let go; written by the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referenced_data_hash: Option<String>,
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

/// The status of an instance before its first reconcile: the default in the CRD.
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

/// Name of a Location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocationReference {
    /// Name of the Location.
    pub name: String,
    /// Namespace of the Location, on servers where Locations are namespaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network it is attached to.
    pub network: NetworkReference,
    /// Traffic that may reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
}

/// Name of a Network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkReference {
    /// Name of the Network.
    pub name: String,
    /// Its namespace; the object's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Traffic that may reach an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicy {
    /// Traffic that one of these rules matches is let in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<NetworkIngressRule>,
}

/// Incoming traffic by port and origin; an absent part matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkIngressRule {
    /// Ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPolicyPort>,
    /// Origins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<NetworkPeer>,
}

/// Where traffic comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPeer {
    /// A range of addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_block: Option<IPBlock>,
}

/// What runs; exactly one of `sandbox` and `virtualMachine` is set (checked at admission).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRuntime {
    /// Size of the instance.
    pub resources: InstanceRuntimeResources,
    /// Containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRuntime>,
    /// A virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<VirtualMachineRuntime>,
}

/// Size of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRuntimeResources {
    /// Name in the catalogue of instance types.
    pub instance_type: String,
    /// Amounts in place of the instance type's.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: Quantities,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineRuntime {
    /// Volumes; the first is the boot disk.
    #[schemars(length(min = 1))]
    pub volume_attachments: Vec<VolumeAttachment>,
    /// Ports that the machine listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_name)]
    pub ports: Vec<NamedPort>,
}

/// Containers that run together in one sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxRuntime {
    /// The containers.
    #[schemars(length(min = 1))]
    #[schemars(transform = keyed_by_name)]
    pub containers: Vec<Container>,
    /// Secrets with credentials for the images' registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<ImagePullSecret>,
}

/// One container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Name, unique in the sandbox.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_name)]
    pub env: Vec<EnvVar>,
    /// ConfigMaps and Secrets whose keys are variables of the environment; of each exactly one source is set (checked at
    /// admission). A variable in `env` replaces one of the same name, and a later source an earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFromSource>,
    /// What the container may use and asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    /// Volumes of the instance that the container sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_attachments: Vec<VolumeAttachment>,
    /// Ports that the container listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_name)]
    pub ports: Vec<NamedPort>,
}

/// What a container may use and asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResources {
    /// Upper bounds.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub limits: Quantities,
    /// Amounts that must be free.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: Quantities,
}

/// Name of a Secret in the object's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullSecret {
    /// Name of the Secret.
    pub name: String,
}

/// A volume of the instance, made visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeAttachment {
    /// Name of the volume.
    pub name: String,
    /// Where it is mounted; absent leaves the device unmounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<String>,
}

/// A port with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedPort {
    /// Name, unique among the ports.
    pub name: String,
    /// Port number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Transport protocol.
    #[serde(default)]
    pub protocol: PortProtocol,
}

/// Transport protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum PortProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A volume; exactly one source is set (checked at admission).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Name, unique in the instance.
    pub name: String,
    /// A disk that is made for the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskVolumeSource>,
    /// Keys of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolumeSource>,
    /// Keys of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretVolumeSource>,
}

/// A disk that is made for the instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskVolumeSource {
    /// Device name in the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// What the disk is made from.
    pub template: DiskTemplate,
}

/// What a disk is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskTemplate {
    /// Labels and annotations of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The disk.
    pub spec: DiskSpec,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskSpec {
    /// Class of the disk.
    #[serde(rename = "type", default = "default_disk_type")]
    pub type_: String,
    /// Size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<DiskResources>,
    /// What the disk holds at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub populator: Option<DiskPopulator>,
}

fn default_disk_type() -> String {
    catalogue::PD_STANDARD.to_owned()
}

/// Size of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskResources {
    /// `storage` is the size.
    #[serde(default, skip_serializing_if = "Quantities::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: Quantities,
}

/// What a disk holds at first; exactly one field is set (checked at admission).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskPopulator {
    /// A disk image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImagePopulator>,
    /// An empty filesystem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FilesystemPopulator>,
}

/// A disk image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePopulator {
    /// Name of the image.
    pub name: String,
}

/// An empty filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesystemPopulator {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: FilesystemType,
}

/// Types of filesystems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemType {
    /// ext4.
    Ext4,
}
