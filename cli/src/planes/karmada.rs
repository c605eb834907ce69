//! Karmada's objects as far as we look at them, and the requests for them. Reading is lenient: an object of another
//! client must not stop us.

use std::time::Duration;

use itertools::Itertools as _;
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Service, apimachinery::pkg::apis::meta::v1::APIResource};
use kube::{Api, client::Body};
use popcell_api::kind::{CLUSTER, Kind, Scope};
use popcell_core::{
    object::{Fields, Object},
    plan::Precondition,
};
use popcell_protocol::{Gvk, Operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, PlaneError, Server, Write};
use crate::{args::reach::Cluster, endpoint::call::skew, exit::Failure};

/// A ResourceInterpreterWebhookConfiguration.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: String,
    /// Its webhooks, in order.
    pub webhooks: Vec<Webhook>,
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
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
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
    pub fn read(object: &Object) -> Self {
        let webhooks = object.items("/webhooks").iter();
        Self {
            name: object.name().to_owned(),
            webhooks: webhooks
                .map(|webhook| Webhook::deserialize(webhook).unwrap_or_default())
                .collect(),
        }
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
    pub fn read(object: &Object) -> Self {
        let text = |pointer: &str| object.text(pointer).unwrap_or_default();
        let has = |script: &str| object.at(&format!("/spec/customizations/{script}")).is_some();
        let scripts = SCRIPTS.into_iter().filter(|(script, _)| has(script));
        Self {
            name: object.name().to_owned(),
            kind: Gvk::of(text("/spec/target/apiVersion"), text("/spec/target/kind")),
            operations: scripts.map(|(_, operation)| operation).collect(),
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
        // Subresources are listed as `widgets/status`.
        let main = resources
            .iter()
            .find(|found| found.kind == kind && !found.name.contains('/'));
        let Some(main) = main else { return Self::Not };
        let status = format!("{}/status", main.name);
        if resources.iter().any(|found| found.name == status) {
            Self::WithStatus
        } else {
            Self::WithoutStatus
        }
    }
}

/// Names of the Clusters whose own agents call the webhook (Pull mode); empty where there is none.
pub fn pulling(members: &[Object]) -> String {
    let pull = |one: &&Object| one.text("/spec/syncMode") == Some("Pull");
    members.iter().filter(pull).map(Fields::name).join(", ")
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

const CONFIGURATION: Kind = Kind::of(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterWebhookConfiguration",
    "resourceinterpreterwebhookconfigurations",
    Scope::Cluster,
);
const CUSTOMIZATION: Kind = Kind::of(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterCustomization",
    "resourceinterpretercustomizations",
    Scope::Cluster,
);

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
        Ok(skew(answer.headers(), asked, Timestamp::now()))
    }

    /// Every ResourceInterpreterWebhookConfiguration.
    pub async fn configurations(&self) -> Result<Vec<Configuration>, PlaneError> {
        let found = self.list(CONFIGURATION).await?;
        Ok(found.iter().map(Configuration::read).collect())
    }

    /// Every ResourceInterpreterCustomization.
    pub async fn customizations(&self) -> Result<Vec<Customization>, PlaneError> {
        let found = self.list(CUSTOMIZATION).await?;
        Ok(found.iter().map(Customization::read).collect())
    }

    /// Every member cluster.
    pub async fn members(&self) -> Result<Vec<Object>, PlaneError> {
        self.list(CLUSTER).await
    }

    /// All objects of a kind: one that cannot be read may be the one that matters.
    async fn list(&self, kind: Kind) -> Result<Vec<Object>, PlaneError> {
        let found = self.0.at(kind, None).list("").await?;
        if let Some(one) = found.unreadable.first() {
            let reason = format!("{} cannot be read: {}", one.name, one.why);
            return Err(self.0.failure(&format!("list {}", kind.plural), &reason));
        }
        Ok(found.objects)
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
        let found = self.0.at(CONFIGURATION, None).get(name).await?;
        Ok(found.map(|object| serde_json::to_value(object).unwrap_or_default()))
    }

    /// Changes one ResourceInterpreterWebhookConfiguration. `change` gets what is there and says what shall be (`None` =
    /// nothing). A write that meets a newer object is decided again, three times.
    pub async fn write(
        &self,
        name: &str,
        change: impl Fn(Option<&Value>) -> Option<Value>,
    ) -> Result<Written, Failure> {
        let action = format!("write ResourceInterpreterWebhookConfiguration {name}");
        for _ in 0..3 {
            let found = self.configuration(name).await?;
            let wanted = change(found.as_ref());
            let on = precondition(found.as_ref());
            let (write, written) = match (&found, &wanted) {
                (found, wanted) if found == wanted => return Ok(Written::Unchanged),
                (None, Some(wanted)) => (Write::Create(wanted), Written::Created),
                (_, Some(wanted)) => (Write::Replace(wanted), Written::Replaced),
                (_, None) => (Write::Delete(&on), Written::Deleted),
            };
            match self.0.at(CONFIGURATION, None).write(name, write).await? {
                Answer::Done => return Ok(written),
                Answer::Refused { code, message } => return Err(self.0.refusal(&action, code, &message).into()),
                Answer::Gone | Answer::Changed(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let reason = "another client keeps modifying it: find out which, then retry";
        Err(self.0.failure(&action, reason).into())
    }
}

/// The state of an object that a write rests on.
fn precondition(object: Option<&Value>) -> Precondition {
    let text = |field: &str| Some(object?.pointer(field)?.as_str()?.to_owned());
    Precondition {
        uid: text("/metadata/uid").unwrap_or_default(),
        resource_version: text("/metadata/resourceVersion").unwrap_or_default(),
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
