//! What runs: sandbox or virtual machine, environment, ports, attachments, network interfaces.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::EnvFromSource;
use popcell_api::{
    Container, InstanceRuntime, NamedPort, NetworkIngressRule, NetworkInterface, SandboxRuntime, VirtualMachineRuntime,
    Volume, VolumeAttachment,
};

use super::field::Faults;
use super::{INSTANCE, LONGEST_LIST, MOST_DATA, MOST_NETWORKS, MOST_RULES};
use crate::downward;
use crate::fields::NO_AMOUNTS;
use crate::instance_types::Catalogue;
use crate::observed::Observed;

const CHOICE: &str = "exactly one of sandbox and virtualMachine";

/// What all variables of a template may have together, names and values, in bytes: as its annotations may
/// (k8s.io/apimachinery, pkg/api/validation `TotalAnnotationSizeLimitB`). Linux takes 2 MiB for a process, arguments
/// included, and a ConfigMap may have 1 MiB; but the object has to be carried with all else that it has.
const ALL_VARIABLES: usize = 256 * 1024;
/// What one may have, its name included: `name=value` and its end are one string of 32 pages at most (Linux,
/// `MAX_ARG_STRLEN`), or the container never starts.
const ONE_VARIABLE: usize = 128 * 1024 - 2;
/// What a prefix may have, in bytes. Kubernetes has no bound, and the node repeats it for each key: a ConfigMap of 1 MiB has more
/// than 100 000.
const PREFIX: usize = 256;

/// Volumes by their names; of two of one name the first.
type Volumes<'a> = BTreeMap<&'a str, &'a Volume>;

pub(super) fn check(runtime: &InstanceRuntime, volumes: &[Volume], types: Observed<&Catalogue>, faults: &mut Faults) {
    let volumes: Volumes<'_> = volumes
        .iter()
        .rev()
        .map(|volume| (volume.name.as_str(), volume))
        .collect();
    let path = format!("{INSTANCE}.runtime");
    check_type(
        format!("{path}.resources.instanceType"),
        &runtime.resources.instance_type,
        types,
        faults,
    );
    if !runtime.resources.requests.is_empty() {
        faults.forbidden(format!("{path}.resources.requests"), NO_AMOUNTS);
    }
    match (&runtime.sandbox, &runtime.virtual_machine) {
        (None, None) => faults.required(path.as_str(), CHOICE),
        (Some(_), Some(_)) => faults.forbidden(path.as_str(), CHOICE),
        _ => {}
    }
    if let Some(sandbox) = &runtime.sandbox {
        check_sandbox(&format!("{path}.sandbox"), sandbox, &volumes, faults);
    }
    if let Some(machine) = &runtime.virtual_machine {
        check_machine(&format!("{path}.virtualMachine"), machine, &volumes, faults);
    }
}

fn check_type(path: String, name: &str, types: Observed<&Catalogue>, faults: &mut Faults) {
    match types {
        Observed::Known(types) if types.size(name).is_none() => faults.not_supported(path, name, &types.names()),
        Observed::Known(_) => {}
        Observed::Unknown => faults.internal(path, "the platform's instance types are not read yet: try again"),
    }
}

fn check_sandbox(path: &str, sandbox: &SandboxRuntime, volumes: &Volumes<'_>, faults: &mut Faults) {
    if sandbox.containers.is_empty() {
        faults.required(format!("{path}.containers"), "");
    }
    let mut names = BTreeSet::new();
    let containers = faults.at_most(&format!("{path}.containers"), &sandbox.containers, LONGEST_LIST);
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}.containers[{index}]");
        faults.dns_label(format!("{path}.name"), &container.name);
        if !names.insert(container.name.as_str()) {
            faults.duplicate(format!("{path}.name"), &container.name);
        }
        if container.image.is_empty() {
            faults.required(format!("{path}.image"), "");
        }
        if container.resources.is_some() {
            faults.forbidden(format!("{path}.resources"), NO_AMOUNTS);
        }
        attachments(&path, &container.volume_attachments, volumes, faults);
        ports(&path, &container.ports, faults);
    }
    check_environment(&format!("{path}.containers"), containers, faults);
    let secrets = faults.at_most(
        &format!("{path}.imagePullSecrets"),
        &sandbox.image_pull_secrets,
        LONGEST_LIST,
    );
    for (index, secret) in secrets.iter().enumerate() {
        faults.object_name(format!("{path}.imagePullSecrets[{index}].name"), &secret.name);
    }
}

/// The variables of all containers: as many and as large as a process can be started with. Kubernetes itself bounds them by
/// the size of the object only. These are its bounds of what is comparable, and those of Linux, beyond which nothing starts.
/// `path` is that of the list of containers.
fn check_environment(path: &str, containers: &[Container], faults: &mut Faults) {
    let mut together = 0_usize;
    for (index, one) in containers.iter().enumerate() {
        let container = format!("{path}[{index}]");
        let path = format!("{container}.env");
        let variables = faults.at_most(&path, &one.env, LONGEST_LIST);
        for (number, variable) in variables.iter().enumerate() {
            let value = variable.value.as_deref().unwrap_or_default();
            let size = variable.name.len().saturating_add(value.len());
            if size > ONE_VARIABLE {
                let rule = format!(
                    "bytes of name and value must be at most {ONE_VARIABLE}, or Linux starts no process with it: put it in a file, as \
                     by a volume"
                );
                faults.invalid(format!("{path}[{number}].value"), size, &rule);
            }
            let path = format!("{path}[{number}].valueFrom");
            match variable.value_from.as_ref().and_then(downward::fault) {
                None => {}
                Some(downward::Fault::OfThePlatform(_)) => {
                    let rule = "a Workload is not shown the node and the account that it runs with: use a field of its own, such as \
                                status.podIP";
                    faults.forbidden(format!("{path}.fieldRef.fieldPath"), rule);
                }
                Some(downward::Fault::NoField(field)) => {
                    faults.not_supported(format!("{path}.fieldRef.fieldPath"), field, &downward::FIELDS);
                }
                Some(downward::Fault::NoResource(resource)) => {
                    let path = format!("{path}.resourceFieldRef.resource");
                    faults.not_supported(path, resource, &downward::RESOURCES);
                }
            }
            let from = variable.value_from.as_ref().map(serde_json::to_string);
            let from = from.and_then(Result::ok).map_or(0, |text| text.len());
            together = together.saturating_add(size).saturating_add(from);
        }
        let from = check_sources(&format!("{container}.envFrom"), &one.env_from, faults);
        together = together.saturating_add(from);
    }
    if together > ALL_VARIABLES {
        let rule = format!(
            "bytes of the variables of all containers together, names included, must be at most {ALL_VARIABLES}: keep what is \
             large in a ConfigMap or Secret, and refer to it by valueFrom or a volume"
        );
        faults.invalid(path, together, &rule);
    }
}

/// ConfigMaps and Secrets whose keys are variables of a container, by the rules of Kubernetes (k8s.io/kubernetes,
/// pkg/apis/core/validation `ValidateEnvFrom`). What they take as text, in bytes.
fn check_sources(path: &str, sources: &[EnvFromSource], faults: &mut Faults) -> usize {
    const CHOICE: &str = "exactly one of configMapRef and secretRef";
    let mut together = 0_usize;
    for (index, source) in faults.at_most(path, sources, MOST_DATA).iter().enumerate() {
        let path = format!("{path}[{index}]");
        match (&source.config_map_ref, &source.secret_ref) {
            (None, None) => faults.required(path.as_str(), CHOICE),
            (Some(_), Some(_)) => faults.forbidden(path.as_str(), CHOICE),
            (Some(config_map), None) => faults.object_name(format!("{path}.configMapRef.name"), &config_map.name),
            (None, Some(secret)) => faults.object_name(format!("{path}.secretRef.name"), &secret.name),
        }
        let prefix = source.prefix.as_deref().unwrap_or_default();
        if prefix.len() > PREFIX {
            faults.too_long(format!("{path}.prefix"), PREFIX);
        } else if !prefix.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') {
            let rule = "must consist only of printable ASCII characters other than '='";
            faults.invalid(format!("{path}.prefix"), prefix, rule);
        }
        together = together.saturating_add(serde_json::to_string(source).map_or(0, |text| text.len()));
    }
    together
}

fn check_machine(path: &str, machine: &VirtualMachineRuntime, volumes: &Volumes<'_>, faults: &mut Faults) {
    match machine.volume_attachments.first() {
        None => faults.required(format!("{path}.volumeAttachments"), ""),
        Some(first) => {
            let volume = volumes.get(first.name.as_str());
            let boots = volume.and_then(|volume| volume.disk.as_ref()).is_some_and(|disk| {
                let populator = disk.template.spec.populator.as_ref();
                populator.is_some_and(|populator| populator.image.is_some())
            });
            if volume.is_some() && !boots {
                let path = format!("{path}.volumeAttachments[0].name");
                let rule = "the first must be a disk with an image populator";
                faults.invalid(path, first.name.as_str(), rule);
            }
        }
    }
    attachments(path, &machine.volume_attachments, volumes, faults);
    ports(path, &machine.ports, faults);
}

fn attachments(path: &str, attachments: &[VolumeAttachment], volumes: &Volumes<'_>, faults: &mut Faults) {
    let mut mounted = BTreeSet::new();
    let attachments = faults.at_most(&format!("{path}.volumeAttachments"), attachments, LONGEST_LIST);
    for (index, attachment) in attachments.iter().enumerate() {
        let path = format!("{path}.volumeAttachments[{index}]");
        let volume = volumes.get(attachment.name.as_str());
        if volume.is_none() {
            faults.not_found(format!("{path}.name"), &attachment.name);
        }
        let Some(mount) = &attachment.mount_path else {
            continue;
        };
        if !mounted.insert(mount.as_str()) {
            faults.duplicate(format!("{path}.mountPath"), mount);
        }
        let bare = volume
            .and_then(|volume| volume.disk.as_ref())
            .is_some_and(|disk| disk.template.spec.populator.is_none());
        if bare {
            faults.forbidden(format!("{path}.mountPath"), "mounting a disk needs a populator");
        }
    }
}

fn ports(path: &str, ports: &[NamedPort], faults: &mut Faults) {
    let mut names = BTreeSet::new();
    let ports = faults.at_most(&format!("{path}.ports"), ports, LONGEST_LIST);
    for (index, port) in ports.iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        if port.name.is_empty() {
            faults.required(format!("{path}.name"), "");
        } else if !is_port_name(&port.name) {
            let rule = "must be at most 15 lower case letters, digits and single '-', with one letter or more";
            faults.invalid(format!("{path}.name"), port.name.as_str(), rule);
        } else if !names.insert(port.name.as_str()) {
            faults.duplicate(format!("{path}.name"), &port.name);
        }
        if !(1..=65535).contains(&port.port) {
            faults.invalid(
                format!("{path}.port"),
                port.port,
                "must be between 1 and 65535, inclusive",
            );
        }
    }
}

/// An IANA service name (RFC 6335, section 5.1), in lower case as Kubernetes wants it.
fn is_port_name(name: &str) -> bool {
    name.len() <= 15
        && crate::names::is_dns_label(name)
        && !name.contains("--")
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
}

pub(super) fn check_interfaces(interfaces: &[NetworkInterface], faults: &mut Faults) {
    let path = format!("{INSTANCE}.networkInterfaces");
    if interfaces.is_empty() {
        faults.required(path.as_str(), "");
    }
    let interfaces = faults.at_most(&path, interfaces, MOST_NETWORKS);
    for (index, interface) in interfaces.iter().enumerate() {
        if let Some(policy) = &interface.network_policy {
            rules(
                &format!("{path}[{index}].networkPolicy.ingress"),
                &policy.ingress,
                faults,
            );
        }
        let path = format!("{path}[{index}].network");
        faults.dns_label(format!("{path}.name"), &interface.network.name);
        if let Some(namespace) = interface.network.namespace.as_deref().filter(|one| !one.is_empty()) {
            faults.dns_label(format!("{path}.namespace"), namespace);
        }
    }
}

fn rules(path: &str, rules: &[NetworkIngressRule], faults: &mut Faults) {
    for (index, rule) in faults.at_most(path, rules, MOST_RULES).iter().enumerate() {
        let path = format!("{path}[{index}]");
        faults.at_most(&format!("{path}.ports"), &rule.ports, MOST_RULES);
        let from = faults.at_most(&format!("{path}.from"), &rule.from, MOST_RULES);
        for (number, peer) in from.iter().enumerate() {
            if let Some(except) = peer.ip_block.as_ref().and_then(|block| block.except.as_ref()) {
                faults.at_most(&format!("{path}.from[{number}].ipBlock.except"), except, MOST_RULES);
            }
        }
    }
}
