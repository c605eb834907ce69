//! Containers in a sandbox, and the parts they share with virtual machines.

use k8s_openapi::api::core::v1::EnvVar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Quantities, quantities};
use crate::schema::keyed_by_name;

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
