//! Types of the compute API and of what it touches: CRDs, labels, annotations, condition types and reasons. No logic.
//!
//! Every name and wire string here is an interface shared with programs outside this project. The types are those of our own
//! CRDs and of what admission reads; code that carries an object from one plane to another works on raw JSON, so that fields
//! these types do not know survive.
#![forbid(unsafe_code)]

/// Makes constants of keys, and `ALL`, the list of them.
macro_rules! keys {
    ($($(#[$about:meta])+ $name:ident = $key:literal;)+) => {
        $($(#[$about])+ pub const $name: &str = $key;)+

        /// All of these: no other key decides anything.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

pub mod annotations;
pub mod conditions;
mod crds;
mod instance;
mod instance_type;
pub mod kind;
pub mod labels;
pub mod names;
mod others;
pub mod quota;
mod schema;
mod workload;
mod workload_deployment;

pub use conditions::events;
pub use crds::{catalogue_crds, crds};
pub use instance::{
    Container, ContainerResources, DiskPopulator, DiskResources, DiskSpec, DiskTemplate, DiskVolumeSource,
    FilesystemPopulator, FilesystemType, ImagePopulator, ImagePullSecret, Instance, InstanceController,
    InstanceControllerStatus, InstanceRuntime, InstanceRuntimeResources, InstanceSpec, InstanceStatus,
    InstanceTemplateSpec, LocationReference, NamedPort, NetworkIngressRule, NetworkInterface,
    NetworkInterfaceAssignments, NetworkInterfaceStatus, NetworkPeer, NetworkPolicy, NetworkReference, PortProtocol,
    SandboxRuntime, SchedulingGate, TemplateMetadata, VirtualMachineRuntime, Volume, VolumeAttachment, catalogue,
    gates,
};
pub use instance_type::{InstanceType, InstanceTypeSpec};
pub use names::{admission, finalizers};
pub use others::{karmada, networking, resource_manager};
pub use schema::Quantities;
pub use workload::{
    HorizontalScaleSettings, InstanceManagementPolicy, MetricSpec, MetricTarget, ResourceMetricName,
    ResourceMetricSource, Workload, WorkloadPlacement, WorkloadPlacementStatus, WorkloadSpec, WorkloadStatus,
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
