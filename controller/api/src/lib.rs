//! Types of the compute API: CRDs, labels, annotations, condition types and reasons. No logic.
//!
//! Every name and wire string here is an interface shared with programs outside this project. The types describe what
//! *we* write; code that carries an object from one plane to another works on raw JSON, so that fields these types do
//! not know survive.
#![forbid(unsafe_code)]

pub mod annotations;
pub mod conditions;
mod crds;
mod instance;
pub mod labels;
mod network;
mod quantity;
mod sandbox;
mod scale;
mod schema;
mod volume;
mod workload_deployment;

pub use crds::crds;
pub use instance::{
    InstanceController, InstanceRuntime, InstanceRuntimeResources, InstanceSpec, InstanceTemplateSpec,
    LocationReference, SchedulingGate, TemplateMetadata, VirtualMachineRuntime,
};
pub use network::{NetworkIngressRule, NetworkInterface, NetworkPeer, NetworkPolicy, NetworkReference};
pub use quantity::Quantities;
pub use sandbox::{
    Container, ContainerResources, ImagePullSecret, NamedPort, PortProtocol, SandboxRuntime, VolumeAttachment,
};
pub use scale::{
    HorizontalScaleSettings, InstanceManagementPolicy, MetricSpec, MetricTarget, ResourceMetricName,
    ResourceMetricSource,
};
pub use volume::{
    DiskPopulator, DiskResources, DiskSpec, DiskTemplate, DiskVolumeSource, FilesystemPopulator, FilesystemType,
    ImagePopulator, Volume,
};
pub use workload_deployment::{
    WorkloadDeployment, WorkloadDeploymentSpec, WorkloadDeploymentStatus, WorkloadReference,
};

/// API group of all compute types.
pub const GROUP: &str = "compute.datumapis.com";
/// The only version of the compute types.
pub const VERSION: &str = "v1alpha";
/// `apiVersion` of all compute types.
pub const API_VERSION: &str = "compute.datumapis.com/v1alpha";
