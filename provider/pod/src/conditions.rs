//! What an Instance's status says of its Pod: the conditions Programmed and Available, addresses, and the hash of the template
//! that runs.
//!
//! - Nothing else of a status is written: Ready and QuotaGranted are popcell's.
//! - A container that waits is reported before the phase of its Pod: a program that ends again and again is Running to Kubernetes.
//! - A report of an unchanged Pod is the same text, so it is not written again.
//!
//! The contract: `docs/domain.md#providers`.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition, PodStatus, Volume};
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_core::conditions::{self, Condition};
use serde_json::{Map, Value, json};

/// A Pod that was given to a node and has no network for so long will not get one by waiting.
const NETWORK: Duration = Duration::from_mins(1);

/// What is known of an Instance's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    /// Of the Pod.
    Is(String),
    /// It has none.
    None,
    /// What was written stays: the Pod has ended, or ends.
    Kept,
}

/// What is to be said of an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    programmed: Condition,
    available: Condition,
    address: Address,
    /// Hash of the template that the Pod was made from, once it runs.
    hash: Option<String>,
    /// After how long the same Pod has another report.
    pub requeue: Option<Duration>,
}

impl Report {
    /// Of the Pod of an Instance as it is at a time.
    pub fn of(pod: &Pod, instance: &DynamicObject, now: Timestamp) -> Self {
        let empty = PodStatus::default();
        let status = pod.status.as_ref().unwrap_or(&empty);
        let phase = status.phase.as_deref().unwrap_or("Pending");
        let held = blocked(status);
        let mut report = match (phase, held) {
            ("Running", Some((reason, message))) => Self {
                programmed: programmed(),
                ..Self::waiting(reason, message)
            },
            ("Running", None) => running(status),
            ("Pending", Some((reason, message))) => Self::waiting(reason, message),
            ("Pending", None) => pending(pod, status, has_data(instance), now),
            ("Succeeded", _) => Self::down(reasons::STOPPING, ended(status, "has ended")),
            ("Failed", _) => Self::down(reasons::FAILED, ended(status, "has failed")),
            (other, _) => Self::waiting(reasons::UNKNOWN, format!("The Pod is in the phase {other}")),
        };
        if report.address == Address::None
            && let Some(address) = status.pod_ip.as_ref().filter(|address| !address.is_empty())
        {
            report.address = Address::Is(address.clone());
        }
        if phase == "Running" {
            let noted = pod.metadata.annotations.as_ref();
            report.hash = noted.and_then(|all| all.get(annotations::TEMPLATE_HASH)).cloned();
        }
        report
    }

    /// Of an Instance whose Pod does not run yet, or cannot be made.
    pub fn waiting(reason: &str, message: impl Into<String>) -> Self {
        let unknown = |type_, reason: &str, message| Condition {
            type_,
            status: "Unknown",
            reason: reason.to_owned(),
            message,
        };
        let made = "The Pod is being made".to_owned();
        Self {
            programmed: unknown(types::PROGRAMMED, reasons::PROGRAMMING_IN_PROGRESS, made),
            available: unknown(types::AVAILABLE, reason, message.into()),
            address: Address::None,
            hash: None,
            requeue: None,
        }
    }

    /// Of a Pod that is being deleted.
    pub fn stopping() -> Self {
        Self::down(reasons::STOPPING, "The Pod is being deleted")
    }

    fn down(reason: &str, message: impl Into<String>) -> Self {
        Self {
            programmed: programmed(),
            available: Condition::new(types::AVAILABLE, false, reason, message),
            address: Address::Kept,
            hash: None,
            requeue: None,
        }
    }

    /// The same, with what follows from it.
    #[must_use]
    pub fn adding(mut self, words: &str) -> Self {
        self.available.message = format!("{}; {words}", self.available.message);
        self
    }

    /// A merge patch of the status fields that differ, which a server rejects if the Instance has changed since it was read.
    /// `None` where nothing differs.
    pub fn patch(&self, instance: &DynamicObject, now: Timestamp) -> Option<Value> {
        let old = instance.data.get("status").cloned().unwrap_or_else(|| json!({}));
        let mut list = conditions::all(&old).to_vec();
        for condition in [&self.programmed, &self.available] {
            conditions::put(
                &mut list,
                condition.render(Some(&old), instance.metadata.generation, now),
            );
        }
        let mut wanted = Map::from_iter([("conditions".to_owned(), Value::Array(list))]);
        match &self.address {
            Address::Is(address) => {
                let addresses = json!([{ "assignments": { "networkIP": address } }]);
                wanted.insert("networkInterfaces".to_owned(), addresses);
            }
            Address::None => {
                wanted.insert("networkInterfaces".to_owned(), Value::Null);
            }
            Address::Kept => {}
        }
        wanted.retain(|field, value| old.get(field).unwrap_or(&Value::Null) != value);
        let echoed = old.pointer("/controller/observedTemplateHash").and_then(Value::as_str);
        if let Some(hash) = self.hash.as_deref().filter(|hash| echoed != Some(hash)) {
            wanted.insert("controller".to_owned(), json!({ "observedTemplateHash": hash }));
        }
        let version = instance.metadata.resource_version.as_deref();
        (!wanted.is_empty()).then(|| json!({ "metadata": { "resourceVersion": version }, "status": wanted }))
    }
}

/// When a Pod ended, as far as it says so.
pub fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    let finished = containers.filter_map(|one| Some(one.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0));
    let changed = status.conditions.iter().flatten();
    let changed = changed.filter_map(|one| Some(one.last_transition_time.as_ref()?.0));
    finished
        .max()
        .or_else(|| changed.max())
        .or_else(|| Some(pod.metadata.creation_timestamp.as_ref()?.0))
}

/// Whether a Pod has ended, and will not run again.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// What the kubelet says of a container that waits, in the words of the contract.
fn translated(waiting: &str) -> &'static str {
    match waiting {
        "ImagePullBackOff" | "ErrImagePull" | "ImageInspectError" | "InvalidImageName" | "RegistryUnavailable" => {
            reasons::IMAGE_UNAVAILABLE
        }
        "CrashLoopBackOff" => reasons::INSTANCE_CRASHING,
        "CreateContainerError" | "CreateContainerConfigError" => reasons::CONFIGURATION_ERROR,
        _ => reasons::PROVISIONING,
    }
}

/// Reason and message of the first container that keeps the Pod from running, those of a known cause first.
fn blocked(status: &PodStatus) -> Option<(&'static str, String)> {
    let containers = status.container_statuses.iter().flatten();
    let mut held: Vec<_> = containers.filter_map(held_container).collect();
    // Stable: the first container of the worst.
    held.sort_by_key(|(reason, _)| std::cmp::Reverse(conditions::priority(reason)));
    let (reason, message) = held.into_iter().next()?;
    // "ContainerCreating" has more to say in the conditions of the Pod.
    (reason != reasons::PROVISIONING || status.phase.as_deref() == Some("Running")).then_some((reason, message))
}

fn held_container(container: &ContainerStatus) -> Option<(&'static str, String)> {
    let name = &container.name;
    match container.state.as_ref()? {
        ContainerState {
            waiting: Some(waiting), ..
        } => {
            let reason = waiting.reason.as_deref().unwrap_or("waiting");
            let details = waiting.message.as_deref().map(|message| format!(": {message}"));
            let message = format!("Container {name}: {reason}{}", details.unwrap_or_default());
            Some((translated(reason), message))
        }
        // It is started again; one that ends too often waits first, as CrashLoopBackOff.
        ContainerState {
            terminated: Some(ended),
            ..
        } => {
            let message = format!(
                "Container {name} ended with exit code {} and is restarted",
                ended.exit_code
            );
            Some((reasons::PROVISIONING, message))
        }
        _ => None,
    }
}

fn programmed() -> Condition {
    Condition::new(
        types::PROGRAMMED,
        true,
        reasons::PROGRAMMED,
        messages::INSTANCE_PROGRAMMED,
    )
}

fn running(status: &PodStatus) -> Report {
    let up = Report {
        available: Condition::new(types::AVAILABLE, true, reasons::AVAILABLE, messages::INSTANCE_AVAILABLE),
        address: Address::None,
        ..Report::down("", "")
    };
    // All containers run and the Pod is not ready: its node does not answer.
    match condition(status, "Ready") {
        Some(ready) if ready.status != "True" => Report {
            available: Condition {
                status: "Unknown",
                reason: reasons::UNKNOWN.to_owned(),
                message: format!("The Pod is not ready: {}", said(ready)),
                ..up.available
            },
            ..up
        },
        _ => up,
    }
}

/// Whether what a template names was in the cell when the Instance started.
fn has_data(instance: &DynamicObject) -> bool {
    let hash = instance.data.pointer("/status/referencedDataHash");
    hash.is_some_and(Value::is_string)
}

/// Whether a volume names keys, of which no cell knows whether they are there.
fn names_keys(volume: &Volume) -> bool {
    let config_map = volume.config_map.as_ref().map(|one| (&one.items, one.optional));
    let secret = volume.secret.as_ref().map(|one| (&one.items, one.optional));
    let named = config_map.into_iter().chain(secret);
    named
        .into_iter()
        .any(|(items, optional)| items.is_some() && optional != Some(true))
}

/// Why no node takes a Pod. The scheduler's own words count the nodes and name taints, which may be those of other tenants.
fn unschedulable(scheduled: &PodCondition) -> String {
    let words = scheduled.message.as_deref().unwrap_or_default();
    let resources = ["cpu", "memory", "ephemeral-storage"];
    let lacking = resources
        .into_iter()
        .filter(|one| words.contains(&format!("Insufficient {one}")));
    match lacking.collect::<Vec<_>>().join(" and ").as_str() {
        "" => "The Pod waits for a node that takes it".to_owned(),
        lacking => format!("The Pod waits for a node with enough {lacking}"),
    }
}

/// Of a Pod of which no container waits for a cause of its own.
fn pending(pod: &Pod, status: &PodStatus, has_data: bool, now: Timestamp) -> Report {
    let provisioning = |message: String| Report::waiting(reasons::PROVISIONING, message);
    match condition(status, "PodScheduled") {
        None => return provisioning("The Pod waits for a node".to_owned()),
        Some(scheduled) if scheduled.status != "True" => {
            return provisioning(unschedulable(scheduled));
        }
        Some(_) => {}
    }
    // The kubelet says so once the Pod has its network, and before that mounts what the Pod needs.
    let network = condition(status, "PodReadyToStartContainers").filter(|one| one.status == "False");
    let since = network.and_then(|one| Some(one.last_transition_time.as_ref()?.0));
    let Some(since) = since else {
        return provisioning("The containers are being made".to_owned());
    };
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if let Some(left) = NETWORK.checked_sub(waited).filter(|left| !left.is_zero()) {
        return Report {
            requeue: Some(left),
            ..provisioning("The network is being made".to_owned())
        };
    }
    let seconds = NETWORK.as_secs();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let others: Vec<&str> = volumes
        .filter(|volume| volume.empty_dir.is_none())
        .map(|volume| volume.name.as_str())
        .collect();
    if others.is_empty() {
        let message = format!("The node has made no network for the Pod within {seconds} s");
        return Report::waiting(reasons::NETWORK_FAILED_TO_CREATE, message);
    }
    let message = format!(
        "The node has made no network, or has not found what the volumes {} name, within {seconds} s",
        others.join(", ")
    );
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    if has_data && !volumes.into_iter().any(names_keys) {
        return Report::waiting(reasons::NETWORK_FAILED_TO_CREATE, message);
    }
    provisioning(message)
}

fn condition<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|one| one.type_ == type_)
}

fn said(condition: &PodCondition) -> String {
    let parts = [condition.reason.as_deref(), condition.message.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// Why a Pod ended, as far as it says so.
fn ended(status: &PodStatus, what: &str) -> String {
    let mut text = format!("The Pod {what}");
    for part in [&status.reason, &status.message].into_iter().flatten() {
        text.push_str(": ");
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests;
