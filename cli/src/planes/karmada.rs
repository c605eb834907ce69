//! Karmada's objects as far as we look at them. Reading is lenient: an object of somebody else must not stop us.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use popcell_protocol::{Gvk, Operation};
use serde::Deserialize;
use serde_json::Value;

/// A ResourceInterpreterWebhookConfiguration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Configuration {
    metadata: Metadata,
    /// Its webhooks, in order.
    pub webhooks: Vec<Webhook>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    labels: BTreeMap<String, String>,
}

/// One webhook of a configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Webhook {
    /// Unique in its configuration.
    pub name: String,
    /// Where and how it is called.
    pub client_config: ClientConfig,
    /// What it is asked.
    pub rules: Vec<Rule>,
    /// Deadline of a call; `None` = none at all: Karmada sets no default, although its API comment says 10 s.
    pub timeout_seconds: Option<i64>,
    /// Versions of the envelope.
    pub interpreter_context_versions: Vec<String>,
}

/// Where a webhook is, and whom to trust.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientConfig {
    /// Either this
    pub url: Option<String>,
    /// or that.
    pub service: Option<ServiceReference>,
    /// Base64 of PEM.
    pub ca_bundle: Option<String>,
}

/// A Service as Karmada resolves it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// 443 unless given.
    pub port: Option<u16>,
    /// `/` unless given.
    pub path: Option<String>,
}

/// Operations and kinds, each list either exact or `*`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// Karmada's names, or `*`.
    pub operations: Vec<String>,
    /// Groups, or `*`.
    pub api_groups: Vec<String>,
    /// Versions, or `*`.
    pub api_versions: Vec<String>,
    /// Kinds, or `*`.
    pub kinds: Vec<String>,
}

impl Rule {
    /// Whether Karmada asks this rule's webhook (pkg/util/interpreter/matcher.go).
    pub fn matches(&self, kind: &Gvk, operation: Operation) -> bool {
        let holds = |list: &[String], item: &str| list.iter().any(|entry| entry == "*" || entry == item);
        holds(&self.operations, operation.as_str())
            && holds(&self.api_groups, &kind.group)
            && holds(&self.api_versions, &kind.version)
            && holds(&self.kinds, &kind.kind)
    }

    /// The lists that hold a `*`.
    pub fn wildcards(&self) -> Vec<&'static str> {
        [
            ("operations", &self.operations),
            ("apiGroups", &self.api_groups),
            ("apiVersions", &self.api_versions),
            ("kinds", &self.kinds),
        ]
        .into_iter()
        .filter(|(_, list)| list.iter().any(|entry| entry == "*"))
        .map(|(name, _)| name)
        .collect()
    }
}

impl Configuration {
    /// Reads an object as the API server gave it. What cannot be understood counts as absent.
    pub fn read(object: &Value) -> Self {
        let metadata = object
            .get("metadata")
            .map(|metadata| Metadata::deserialize(metadata).unwrap_or_default());
        let webhooks = object.get("webhooks").and_then(Value::as_array);
        Self {
            metadata: metadata.unwrap_or_default(),
            webhooks: webhooks
                .into_iter()
                .flatten()
                .map(|webhook| Webhook::deserialize(webhook).unwrap_or_default())
                .collect(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The webhook of that name.
    pub fn webhook(&self, name: &str) -> Option<&Webhook> {
        self.webhooks.iter().find(|webhook| webhook.name == name)
    }
}

/// A ResourceInterpreterCustomization: Lua that wins over every webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customization {
    /// Its name.
    pub name: String,
    /// The kind that it is for.
    pub kind: Gvk,
    /// The operations that it takes.
    pub operations: Vec<Operation>,
}

/// Names of the scripts in a ResourceInterpreterCustomization.
const SCRIPTS: [(&str, Operation); 8] = [
    ("replicaResource", Operation::InterpretReplica),
    ("componentResource", Operation::InterpretComponent),
    ("replicaRevision", Operation::ReviseReplica),
    ("retention", Operation::Retain),
    ("statusAggregation", Operation::AggregateStatus),
    ("statusReflection", Operation::InterpretStatus),
    ("healthInterpretation", Operation::InterpretHealth),
    ("dependencyInterpretation", Operation::InterpretDependency),
];

impl Customization {
    /// Reads an object as the API server gave it.
    pub fn read(object: &Value) -> Self {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let api_version = text("/spec/target/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let scripts = object.pointer("/spec/customizations");
        let set = |key: &str| {
            scripts
                .and_then(|scripts| scripts.get(key))
                .is_some_and(|script| !script.is_null())
        };
        Self {
            name: text("/metadata/name"),
            kind: Gvk::new(group, version, text("/spec/target/kind")),
            operations: SCRIPTS
                .into_iter()
                .filter(|(key, _)| set(key))
                .map(|(_, operation)| operation)
                .collect(),
        }
    }
}

/// Whether an API server serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Nobody can store such an object.
    Not,
    /// Its status is stored with the object: a write to `/status` is answered with 404.
    WithoutStatus,
    /// With the subresource `status`.
    WithStatus,
}

impl Served {
    /// Reads what discovery lists for the group and version of the kind.
    pub fn read(resources: &[APIResource], kind: &str) -> Self {
        let named: Vec<_> = resources.iter().filter(|found| found.kind == kind).collect();
        // Subresources are listed as `widgets/status`.
        match named.iter().find(|found| !found.name.contains('/')) {
            None => Self::Not,
            Some(main)
                if resources
                    .iter()
                    .any(|found| found.name == format!("{}/status", main.name)) =>
            {
                Self::WithStatus
            }
            Some(_) => Self::WithoutStatus,
        }
    }
}

/// A member cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whether an agent in the cluster does the work, and so calls the webhook.
    pub pull: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl Member {
    /// Reads a Cluster as the API server gave it.
    pub fn read(object: &Value) -> Self {
        let metadata = object
            .get("metadata")
            .map(|metadata| Metadata::deserialize(metadata).unwrap_or_default())
            .unwrap_or_default();
        let pull = object.pointer("/spec/syncMode").and_then(Value::as_str) == Some("Pull");
        Self {
            name: metadata.name,
            pull,
            labels: metadata.labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_says_whether_a_kind_has_a_status() {
        let resource = |name: &str, kind: &str| APIResource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            ..APIResource::default()
        };
        let resources = [
            resource("widgets", "Widget"),
            resource("widgets/status", "Widget"),
            resource("gadgets", "Gadget"),
            resource("gadgets/scale", "Scale"),
        ];
        assert_eq!(Served::read(&resources, "Widget"), Served::WithStatus);
        assert_eq!(Served::read(&resources, "Gadget"), Served::WithoutStatus);
        assert_eq!(Served::read(&resources, "Scale"), Served::Not);
        assert_eq!(Served::read(&[], "Widget"), Served::Not);
    }
}
