//! Types of the compute API and of what it touches: CRDs, labels, annotations, condition types and reasons. No logic.
//!
//! Every name and wire string here is an interface shared with programs outside this project. The types describe what
//! *we* read and write; code that carries an object from one plane to another works on raw JSON, so that fields these
//! types do not know survive.
#![forbid(unsafe_code)]

pub mod admission;
pub mod annotations;
pub mod catalogue;
pub mod conditions;
mod crds;
pub mod events;
pub mod finalizers;
pub mod gates;
mod instance;
pub mod karmada;
pub mod kind;
pub mod labels;
mod location;
pub mod metrics;
pub mod names;
mod network_interface;
pub mod networking;
mod observed;
mod quantity;
pub mod quota;
pub mod resource_manager;
mod runtime;
mod sandbox;
mod scale;
mod schema;
mod template;
mod volume;
mod workload;
mod workload_deployment;

pub use crds::crds;
pub use instance::{
    Instance, InstanceController, InstanceControllerStatus, InstanceSpec, InstanceStatus, NetworkInterfaceAssignments,
    NetworkInterfaceStatus, SchedulingGate,
};
pub use location::LocationReference;
pub use network_interface::{NetworkIngressRule, NetworkInterface, NetworkPeer, NetworkPolicy, NetworkReference};
pub use observed::{ConditionsOnly, ObservedCondition};
pub use quantity::Quantities;
pub use runtime::{InstanceRuntime, InstanceRuntimeResources, VirtualMachineRuntime};
pub use sandbox::{
    Container, ContainerResources, ImagePullSecret, NamedPort, PortProtocol, SandboxRuntime, VolumeAttachment,
};
pub use scale::{
    HorizontalScaleSettings, InstanceManagementPolicy, MetricSpec, MetricTarget, ResourceMetricName,
    ResourceMetricSource,
};
pub use template::{InstanceTemplateSpec, TemplateMetadata};
pub use volume::{
    DiskPopulator, DiskResources, DiskSpec, DiskTemplate, DiskVolumeSource, FilesystemPopulator, FilesystemType,
    ImagePopulator, Volume,
};
pub use workload::{Workload, WorkloadPlacement, WorkloadPlacementStatus, WorkloadSpec, WorkloadStatus};
pub use workload_deployment::{
    WorkloadDeployment, WorkloadDeploymentSpec, WorkloadDeploymentStatus, WorkloadReference,
};

/// API group of all compute types.
pub const GROUP: &str = "compute.datumapis.com";
/// The only version of the compute types.
pub const VERSION: &str = "v1alpha";
/// `apiVersion` of all compute types.
pub const API_VERSION: &str = "compute.datumapis.com/v1alpha";
