//! What an Instance becomes: one Pod, and one NetworkPolicy where its interface has rules.
//!
//! - Only fields that are named here are taken from an Instance: of its annotations the size of its instance type, no label of a
//!   tenant, nothing that a schema does not describe. So no template makes a Pod privileged, reaches the node, or steers what else runs in the cell.
//! - The limits of all containers together are never more than what `popcell_core::sizing` counts for the Instance.
//! - What a Pod cannot give is refused with the place and the fix, and never dropped.
//!
//! Why: `docs/decisions/29-an-instance-is-one-pod.md`.

use std::collections::BTreeMap;

use clap::ValueEnum;
use k8s_openapi::api::core::v1::{
    Capabilities, Container as PodContainer, ContainerPort, EmptyDirVolumeSource, LocalObjectReference, Pod,
    PodSecurityContext, PodSpec, ResourceRequirements, SeccompProfile, SecurityContext, Volume as PodVolume,
    VolumeMount,
};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::api::DynamicObject;
use popcell_api::{
    Container, InstanceSpec, PortProtocol, Quantities, SandboxRuntime, Volume, VolumeAttachment, annotations, kind,
    labels, quota,
};
use popcell_contract::quantity;
use popcell_core::downward::{self, Fault};
use popcell_core::sizing::{self, Described};
use serde_json::Value;
use thiserror::Error;

/// Labels of an Instance that its Pod has too: whose it is. Others are a tenant's.
const CARRIED: [&str; 7] = [
    labels::WORKLOAD_UID,
    labels::WORKLOAD_NAME,
    labels::PLACEMENT_NAME,
    labels::WORKLOAD_DEPLOYMENT_UID,
    labels::WORKLOAD_DEPLOYMENT_NAME,
    labels::INSTANCE_INDEX,
    labels::INSTANCE_CITY_CODE,
];

/// What the operator says of all Pods.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `runtimeClassName` of each Pod, such as that of a sandboxed runtime; `None`: the cell's default.
    pub runtime_class: Option<String>,
    /// `imagePullPolicy` of each container.
    pub image_pull_policy: PullPolicy,
}

/// When a node asks the registry for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PullPolicy {
    /// Each time, so that nobody runs an image of another tenant without the right to pull it.
    #[default]
    #[value(name = "Always")]
    Always,
    /// Where the node does not have it.
    #[value(name = "IfNotPresent")]
    IfNotPresent,
}

/// Why an Instance cannot be a Pod. Each names the place and the fix.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The spec does not fit its type.
    #[error("spec cannot be read: {0}; correct the template of the Workload")]
    Unreadable(String),
    /// It asks for a machine.
    #[error(
        "spec.runtime.virtualMachine: a Pod cannot be a virtual machine; use spec.runtime.sandbox, or a city whose cell has \
         virtual machines"
    )]
    VirtualMachine,
    /// It asks for nothing.
    #[error("spec.runtime.sandbox is missing: name at least one container")]
    NoSandbox,
    /// More networks than a Pod has.
    #[error("spec.networkInterfaces has {0} interfaces: a Pod has one; remove the others")]
    Interfaces(usize),
    /// Nothing says how large it is.
    #[error("spec.runtime.resources.instanceType is missing: without it the Pod would have no limits")]
    NoSize,
    /// What says how large it is cannot be read.
    #[error("the size of the Instance is unknown: correct spec.runtime.resources or the resources of its containers")]
    UnknownSize,
    /// The size of its instance type is not known, or cannot be read.
    #[error("spec.runtime.resources.instanceType: {0}; use an instance type of the catalogue")]
    UnknownType(String),
    /// The other containers take all.
    #[error(
        "container {container}: the other containers take all {resource} of the Instance; give each container limits, or \
         use a larger instance type"
    )]
    NoShare {
        /// Its name.
        container: String,
        /// `cpu` or `memory`.
        resource: &'static str,
    },
    /// A resource that no quota counts.
    #[error("{place}: the resource {resource} is not provided; only cpu and memory are")]
    Resource {
        /// Where it is asked for.
        place: String,
        /// Its name.
        resource: String,
    },
    /// A disk that is no empty filesystem.
    #[error(
        "volume {0}: a Pod has no disks but empty filesystems; use populator.filesystem with resources.requests.storage, or a \
         configMap or secret"
    )]
    Disk(String),
    /// A volume without a source.
    #[error("volume {0} has no source: use disk, configMap or secret")]
    NoSource(String),
    /// A variable of what the node is.
    #[error(
        "container {container}: variable {variable} takes {what}, which is not of the Instance; use a field or resource of its own, such as \
         status.podIP or limits.memory"
    )]
    Variable {
        /// Name of the container.
        container: String,
        /// Name of the variable.
        variable: String,
        /// What it takes its value from.
        what: String,
    },
    /// A device.
    #[error("container {container}: volume {volume} has no mountPath, and a Pod has no devices; add a mountPath")]
    Device {
        /// Name of the container.
        container: String,
        /// Name of the volume.
        volume: String,
    },
}

/// What is made of an Instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// It is there before the Pod, so that no traffic arrives that it keeps out. It has a name of its own for each Instance, and
    /// is deleted with the Instance by Kubernetes.
    pub policy: Option<NetworkPolicy>,
    /// The Pod.
    pub pod: Pod,
}

/// The Pod of an Instance, which replaced so many that had ended.
///
/// # Errors
/// What of it no Pod can be.
pub fn manifest(instance: &DynamicObject, settings: &Settings, replacements: u32) -> Result<Manifest, Refusal> {
    let raw = instance.data.get("spec").unwrap_or(&Value::Null);
    let spec: InstanceSpec =
        serde_json::from_value(raw.clone()).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    if spec.runtime.virtual_machine.is_some() {
        return Err(Refusal::VirtualMachine);
    }
    let sandbox = spec.runtime.sandbox.as_ref().ok_or(Refusal::NoSandbox)?;
    if spec.network_interfaces.len() > 1 {
        return Err(Refusal::Interfaces(spec.network_interfaces.len()));
    }
    only_counted("spec.runtime.resources.requests", &spec.runtime.resources.requests)?;
    let mut made_of = BTreeMap::from([(annotations::POD_REPLACEMENTS.to_owned(), replacements.to_string())]);
    if let Some(controller) = &spec.controller {
        made_of.insert(annotations::TEMPLATE_HASH.to_owned(), controller.template_hash.clone());
    }
    let given = instance.metadata.annotations.as_ref();
    let described = Described {
        spec: raw,
        type_size: given
            .and_then(|given| given.get(annotations::INSTANCE_TYPE_SIZE))
            .map(String::as_str),
    };
    let pod = Pod {
        metadata: ObjectMeta {
            annotations: Some(made_of),
            ..metadata(instance, instance.metadata.name.clone())
        },
        spec: Some(pod_spec(described, &spec, sandbox, settings)?),
        status: None,
    };
    Ok(Manifest {
        policy: policy(instance, &spec),
        pod,
    })
}

/// Whether a Pod is that of an Instance: by uid, so that what an earlier Instance of the name has left is none.
pub fn is_of(pod: &Pod, instance: &DynamicObject) -> bool {
    let controller = controller(pod);
    controller.is_some_and(|owner| Some(&owner.uid) == instance.metadata.uid.as_ref())
}

/// Whether a Pod is that of any Instance.
pub fn is_of_an_instance(pod: &Pod) -> bool {
    controller(pod)
        .is_some_and(|owner| owner.kind == kind::INSTANCE.kind && owner.api_version == popcell_api::API_VERSION)
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// How many Pods that had ended this one replaced in a row.
pub fn replacements(pod: &Pod) -> u32 {
    let noted = pod.metadata.annotations.as_ref();
    let noted = noted.and_then(|all| all.get(annotations::POD_REPLACEMENTS));
    noted.and_then(|count| count.parse().ok()).unwrap_or_default()
}

fn metadata(instance: &DynamicObject, name: Option<String>) -> ObjectMeta {
    let uid = instance.metadata.uid.clone().unwrap_or_default();
    let own = instance.metadata.labels.iter().flatten();
    let mut carried: BTreeMap<String, String> = own
        .filter(|(key, _)| CARRIED.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    carried.insert(labels::INSTANCE_UID.to_owned(), uid.clone());
    ObjectMeta {
        name,
        namespace: instance.metadata.namespace.clone(),
        labels: Some(carried),
        owner_references: Some(vec![OwnerReference {
            api_version: popcell_api::API_VERSION.to_owned(),
            kind: kind::INSTANCE.kind.to_owned(),
            name: instance.metadata.name.clone().unwrap_or_default(),
            uid,
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    }
}

fn pod_spec(
    described: Described<'_>,
    spec: &InstanceSpec,
    sandbox: &SandboxRuntime,
    settings: &Settings,
) -> Result<PodSpec, Refusal> {
    let sizes = sizes(described, &sandbox.containers)?;
    let containers = sandbox.containers.iter().zip(sizes);
    let containers: Result<Vec<PodContainer>, Refusal> = containers
        .map(|(container, size)| pod_container(container, size, settings))
        .collect();
    let volumes: Result<Vec<PodVolume>, Refusal> = spec.volumes.iter().map(pod_volume).collect();
    let secrets = sandbox.image_pull_secrets.iter();
    let secrets = secrets.map(|secret| LocalObjectReference {
        name: secret.name.clone(),
    });
    Ok(PodSpec {
        automount_service_account_token: Some(false),
        containers: containers?,
        enable_service_links: Some(false),
        image_pull_secrets: Some(secrets.collect()),
        restart_policy: Some("Always".to_owned()),
        runtime_class_name: settings.runtime_class.clone(),
        security_context: Some(PodSecurityContext {
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        volumes: Some(volumes?),
        ..PodSpec::default()
    })
}

fn pod_container(
    container: &Container,
    size: ResourceRequirements,
    settings: &Settings,
) -> Result<PodContainer, Refusal> {
    let pull = match settings.image_pull_policy {
        PullPolicy::Always => "Always",
        PullPolicy::IfNotPresent => "IfNotPresent",
    };
    for variable in &container.env {
        let fault = variable.value_from.as_ref().and_then(downward::fault);
        // Kubernetes refuses by itself what it does not have.
        if let Some(Fault::OfThePlatform(what) | Fault::NoResource(what)) = fault {
            return Err(Refusal::Variable {
                container: container.name.clone(),
                variable: variable.name.clone(),
                what: what.to_owned(),
            });
        }
    }
    let ports = container.ports.iter().map(|port| ContainerPort {
        container_port: port.port,
        name: Some(port.name.clone()),
        protocol: Some(
            match port.protocol {
                PortProtocol::Tcp => "TCP",
                PortProtocol::Udp => "UDP",
                PortProtocol::Sctp => "SCTP",
            }
            .to_owned(),
        ),
        ..ContainerPort::default()
    });
    let mount = |attachment: &VolumeAttachment| match &attachment.mount_path {
        Some(path) => Ok(VolumeMount {
            name: attachment.name.clone(),
            mount_path: path.clone(),
            ..VolumeMount::default()
        }),
        None => Err(Refusal::Device {
            container: container.name.clone(),
            volume: attachment.name.clone(),
        }),
    };
    let mounts: Result<Vec<VolumeMount>, Refusal> = container.volume_attachments.iter().map(mount).collect();
    Ok(PodContainer {
        name: container.name.clone(),
        image: Some(container.image.clone()),
        image_pull_policy: Some(pull.to_owned()),
        env: Some(container.env.clone()),
        env_from: Some(container.env_from.clone()),
        ports: Some(ports.collect()),
        resources: Some(size),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            // With it one Pod can send packets in the name of another.
            capabilities: Some(Capabilities {
                add: None,
                drop: Some(vec!["NET_RAW".to_owned()]),
            }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(mounts?),
        ..PodContainer::default()
    })
}

/// A disk is an empty directory of its size on the node, if it is an empty filesystem: whatever else it holds or is, a Pod
/// cannot give.
fn pod_volume(volume: &Volume) -> Result<PodVolume, Refusal> {
    let mut made = PodVolume {
        name: volume.name.clone(),
        ..PodVolume::default()
    };
    if let Some(disk) = &volume.disk {
        let spec = &disk.template.spec;
        let empty = spec
            .populator
            .as_ref()
            .is_some_and(|one| one.filesystem.is_some() && one.image.is_none());
        let size = spec.resources.as_ref().and_then(|one| one.requests.get("storage"));
        let size = size
            .filter(|_| empty)
            .ok_or_else(|| Refusal::Disk(volume.name.clone()))?;
        made.empty_dir = Some(EmptyDirVolumeSource {
            medium: None,
            size_limit: Some(size.clone()),
        });
    } else if volume.config_map.is_some() {
        made.config_map.clone_from(&volume.config_map);
    } else if volume.secret.is_some() {
        made.secret.clone_from(&volume.secret);
    } else {
        return Err(Refusal::NoSource(volume.name.clone()));
    }
    Ok(made)
}

fn only_counted(place: &str, quantities: &Quantities) -> Result<(), Refusal> {
    match quantities
        .keys()
        .find(|name| !matches!(name.as_str(), "cpu" | "memory"))
    {
        Some(resource) => Err(Refusal::Resource {
            place: place.to_owned(),
            resource: resource.clone(),
        }),
        None => Ok(()),
    }
}

/// Limits and requests of each container. One that names an amount has it; the others share what is left of the Instance's size
/// in equal parts.
fn sizes(described: Described<'_>, containers: &[Container]) -> Result<Vec<ResourceRequirements>, Refusal> {
    for container in containers {
        let place = format!("container {}", container.name);
        for quantities in container.resources.iter().flat_map(|one| [&one.limits, &one.requests]) {
            only_counted(&place, quantities)?;
        }
    }
    let counted: BTreeMap<&str, i64> = sizing::requests(described).into_iter().collect();
    let mut sizes = vec![ResourceRequirements::default(); containers.len()];
    for (resource, counted_as, unit, nano) in [
        ("cpu", quota::VCPUS, "m", quantity::ONE / 1000),
        ("memory", quota::MEMORY, "Mi", quantity::GIB / 1024),
    ] {
        let total = *counted.get(counted_as).ok_or(Refusal::NoSize)?;
        if total == sizing::UNCOUNTED {
            return Err(described
                .why_unsized()
                .map_or(Refusal::UnknownSize, Refusal::UnknownType));
        }
        let named: Vec<Option<(&Quantity, &Quantity)>> =
            containers.iter().map(|container| named(container, resource)).collect();
        let taken: i128 = named.iter().flatten().map(|(limit, _)| units(limit, nano)).sum();
        let unnamed = i128::try_from(named.iter().filter(|one| one.is_none()).count()).unwrap_or(i128::MAX);
        let share = (i128::from(total) - taken).checked_div(unnamed).unwrap_or_default();
        for ((size, named), container) in sizes.iter_mut().zip(named).zip(containers) {
            let (limit, request) = match named {
                Some((limit, request)) => (limit.clone(), request.clone()),
                None if share > 0 => {
                    let share = Quantity(format!("{share}{unit}"));
                    (share.clone(), share)
                }
                None => {
                    return Err(Refusal::NoShare {
                        container: container.name.clone(),
                        resource,
                    });
                }
            };
            size.limits.get_or_insert_default().insert(resource.to_owned(), limit);
            size.requests
                .get_or_insert_default()
                .insert(resource.to_owned(), request);
        }
    }
    Ok(sizes)
}

/// Limit and request of a container that names one of them; an amount of zero names nothing. The limit is what was counted: a
/// request alone is one, since the container may have no more than that.
fn named<'a>(container: &'a Container, resource: &str) -> Option<(&'a Quantity, &'a Quantity)> {
    let resources = container.resources.as_ref()?;
    let amount = |from: &'a Quantities| from.get(resource).filter(|one| units(one, 1) > 0);
    let (limit, request) = (amount(&resources.limits), amount(&resources.requests));
    Some((limit.or(request)?, request.or(limit)?))
}

/// An amount in units of so many nanos, rounded up; zero where it cannot be read.
fn units(amount: &Quantity, nano: i128) -> i128 {
    let read = quantity::nano(&amount.0).unwrap_or_default();
    read / nano + i128::from(read % nano > 0)
}

/// What may reach the Pod, where the interface says so.
fn policy(instance: &DynamicObject, spec: &InstanceSpec) -> Option<NetworkPolicy> {
    let rules = &spec.network_interfaces.first()?.network_policy.as_ref()?.ingress;
    let uid = instance.metadata.uid.clone().unwrap_or_default();
    let rules = rules.iter().map(|rule| NetworkPolicyIngressRule {
        from: Some(
            rule.from
                .iter()
                .map(|peer| NetworkPolicyPeer {
                    ip_block: peer.ip_block.clone(),
                    ..NetworkPolicyPeer::default()
                })
                .collect(),
        ),
        ports: Some(rule.ports.clone()),
    });
    Some(NetworkPolicy {
        metadata: metadata(instance, Some(format!("instance-{uid}"))),
        spec: Some(NetworkPolicySpec {
            ingress: Some(rules.collect()),
            pod_selector: Some(LabelSelector {
                match_labels: Some(BTreeMap::from([(labels::INSTANCE_UID.to_owned(), uid)])),
                match_expressions: None,
            }),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    })
}

#[cfg(test)]
mod tests;
