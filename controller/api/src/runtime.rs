//! What runs in an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Quantities, quantities};
use crate::sandbox::{NamedPort, SandboxRuntime, VolumeAttachment};
use crate::schema::keyed_by_name;

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
