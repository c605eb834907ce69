//! Karmada's objects as far as we look at them, and the requests for them. Reading is lenient: an object of another
//! client must not stop us.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Service, apimachinery::pkg::apis::meta::v1::APIResource};
use kube::{Api, api::ApiResource, client::Body, core::GroupVersionKind};
use popcell_core::{object::Object, plan::Precondition};
use popcell_protocol::{Gvk, Operation};
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, PlaneError, Server};
use crate::{args::reach::Cluster, endpoint::clock, exit::Failure};

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

/// Address of a webhook, and its CA.
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
    /// Such an object cannot be stored.
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
    /// Names of those whose own agents call the webhook; empty where there is none.
    pub fn pulling(members: &[Self]) -> String {
        let names: Vec<_> = members
            .iter()
            .filter(|one| one.pull)
            .map(|one| one.name.as_str())
            .collect();
        names.join(", ")
    }

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

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// There was nothing to do.
    Unchanged,
    /// The object is new.
    Created,
    /// The object was changed.
    Replaced,
    /// The object is gone.
    Deleted,
}

/// A Karmada API server. Nothing is retried but a write that met a newer object.
pub struct Karmada(Server);

impl Karmada {
    /// Reads the kubeconfig. No request is made yet.
    pub async fn open(cluster: &Cluster) -> Result<Self, PlaneError> {
        let server = Server::open(cluster).await?;
        Ok(Self(server.advising(|code| match code {
            401 | 403 => " (rights that are needed: manifests/webhook/components/register/register.rbac.yaml)",
            404 => " (is this a Karmada API server? look at --kubeconfig and --context)",
            _ => "",
        })))
    }

    /// Its URL.
    pub fn server(&self) -> &str {
        self.0.name()
    }

    /// Whether it serves a kind.
    pub async fn served(&self, kind: &Gvk) -> Result<Served, PlaneError> {
        let client = self.0.client();
        let list = async {
            let list = if kind.group.is_empty() {
                client.list_core_api_resources(&kind.version).await
            } else {
                client.list_api_group_resources(&kind.api_version()).await
            };
            match list {
                Ok(list) => Ok(list.resources),
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        };
        let action = format!("ask for the kinds of {}", kind.api_version());
        Ok(Served::read(&self.0.run(&action, list).await?, &kind.kind))
    }

    /// Seconds by which its clock is ahead of ours; `None` when it does not say. A refusal says it too.
    pub async fn skew(&self) -> Result<Option<i64>, PlaneError> {
        let asked = Timestamp::now();
        let request = hyper::Request::get("/version")
            .body(Body::empty())
            .map_err(kube::Error::HttpError);
        let send = async { self.0.client().send(request?).await };
        let answer = self.0.run("ask for the time", send).await?;
        Ok(clock::skew(answer.headers(), asked, Timestamp::now()))
    }

    /// Every ResourceInterpreterWebhookConfiguration.
    pub async fn configurations(&self) -> Result<Vec<Configuration>, PlaneError> {
        self.list(&configurations(), Configuration::read).await
    }

    /// Every ResourceInterpreterCustomization.
    pub async fn customizations(&self) -> Result<Vec<Customization>, PlaneError> {
        let resource = resource(
            "config.karmada.io",
            "ResourceInterpreterCustomization",
            "resourceinterpretercustomizations",
        );
        self.list(&resource, Customization::read).await
    }

    /// Every member cluster.
    pub async fn members(&self) -> Result<Vec<Member>, PlaneError> {
        self.list(&resource("cluster.karmada.io", "Cluster", "clusters"), Member::read)
            .await
    }

    /// All objects of a kind: one that cannot be read may be the one that matters.
    async fn list<T>(&self, resource: &ApiResource, read: fn(&Value) -> T) -> Result<Vec<T>, PlaneError> {
        let found = self.0.list(resource, None, "").await?;
        if let Some(one) = found.unreadable.first() {
            let reason = format!("{} cannot be read: {}", one.name, one.why);
            return Err(self.0.failure(&format!("list {}", resource.plural), &reason));
        }
        Ok(found.objects.iter().map(|object| read(&plain(object))).collect())
    }

    /// The Service of a reference, when the Karmada API server has it.
    pub async fn service(&self, reference: &ServiceReference) -> Result<Option<Service>, PlaneError> {
        let ServiceReference { namespace, name, .. } = reference;
        let api: Api<Service> = Api::namespaced(self.0.client().clone(), namespace);
        let action = format!("read Service {namespace}/{name}");
        self.0.run(&action, api.get_opt(name)).await
    }

    /// One ResourceInterpreterWebhookConfiguration, as it is.
    pub async fn configuration(&self, name: &str) -> Result<Option<Value>, PlaneError> {
        let found = self.0.get(&configurations(), None, name).await?;
        Ok(found.as_ref().map(plain))
    }

    /// Changes one ResourceInterpreterWebhookConfiguration. `change` gets what is there and says what shall be (`None` =
    /// nothing). A write that meets a newer object is decided again, three times.
    pub async fn write(
        &self,
        name: &str,
        change: impl Fn(Option<&Value>) -> Result<Option<Value>, Failure>,
    ) -> Result<Written, Failure> {
        let action = format!("write ResourceInterpreterWebhookConfiguration {name}");
        for _ in 0..3 {
            let found = self.configuration(name).await?;
            let wanted = change(found.as_ref())?;
            let (answer, written) = self.write_once(name, found.as_ref(), wanted.as_ref()).await?;
            match answer {
                Answer::Done => return Ok(written),
                Answer::Refused { code, message } => return Err(self.0.refusal(&action, code, &message).into()),
                Answer::Gone | Answer::Changed(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let reason = "another client keeps modifying it: find out which, then retry";
        Err(self.0.failure(&action, reason).into())
    }

    async fn write_once(
        &self,
        name: &str,
        found: Option<&Value>,
        wanted: Option<&Value>,
    ) -> Result<(Answer, Written), PlaneError> {
        let resource = configurations();
        let (answer, written) = match (found, wanted) {
            (found, wanted) if found == wanted => return Ok((Answer::Done, Written::Unchanged)),
            (None, Some(wanted)) => (self.0.create(&resource, None, name, wanted).await?, Written::Created),
            (_, Some(wanted)) => (self.0.replace(&resource, None, name, wanted).await?, Written::Replaced),
            (found, None) => {
                let text = |field: &str| Some(found?.pointer(field)?.as_str()?.to_owned());
                let on = Precondition {
                    uid: text("/metadata/uid").unwrap_or_default(),
                    resource_version: text("/metadata/resourceVersion").unwrap_or_default(),
                };
                (self.0.delete(&resource, None, name, &on).await?, Written::Deleted)
            }
        };
        Ok((answer, written))
    }
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1alpha1", kind), plural)
}

fn configurations() -> ApiResource {
    resource(
        "config.karmada.io",
        "ResourceInterpreterWebhookConfiguration",
        "resourceinterpreterwebhookconfigurations",
    )
}

/// The object as JSON, without the server's bookkeeping of writers.
fn plain(object: &Object) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
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
