//! Requests to the Karmada API server. Every request ends within [`LIMIT`]; nothing is retried but a write that met a newer
//! object.

use std::{future::Future, path::Path, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams, Preconditions},
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
};
use popcell_protocol::Gvk;
use serde_json::Value;

use super::karmada::{Configuration, Customization, Member, Served, ServiceReference};
use crate::{args::cluster::Cluster, endpoint::clock, exit::Failure};

pub(super) const LIMIT: Duration = Duration::from_secs(15);

/// A request that failed.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// No kubeconfig that makes sense.
    #[error("failed to read the kubeconfig{}: {reason}; give --kubeconfig and --context, or set KUBECONFIG", file.as_ref().map(|file| format!(" {file}")).unwrap_or_default())]
    Kubeconfig {
        /// The file, when one was named.
        file: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// The server refused, or cannot be reached.
    #[error("failed to {action} at {server}: {reason}")]
    Request {
        /// What was tried.
        action: String,
        /// Where.
        server: String,
        /// What happened.
        reason: String,
    },
}

impl From<PlaneError> for Failure {
    fn from(error: PlaneError) -> Self {
        Self::Environment(error.to_string())
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

/// A Karmada API server.
pub struct Karmada {
    client: Client,
    server: String,
}

impl Karmada {
    /// Reads the kubeconfig. No request is made yet.
    pub async fn open(cluster: &Cluster) -> Result<Self, PlaneError> {
        let mut config = config(cluster.kubeconfig.as_deref(), cluster.context.clone()).await?;
        // A person waits, and each command says what failed: no hidden retries.
        config.default_retry = false;
        config.connect_timeout = Some(LIMIT);
        config.read_timeout = Some(LIMIT);
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| wrong(cluster.kubeconfig.as_deref(), &error))?;
        Ok(Self { client, server })
    }

    /// Its URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Whether it serves a kind.
    pub async fn served(&self, kind: &Gvk) -> Result<Served, PlaneError> {
        let list = async {
            if kind.group.is_empty() {
                return self.client.list_core_api_resources(&kind.version).await;
            }
            self.client.list_api_group_resources(&kind.api_version()).await
        };
        let list = async {
            match list.await {
                Ok(list) => Ok(list.resources),
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        };
        let resources = self
            .run(&format!("ask for the kinds of {}", kind.api_version()), list)
            .await?;
        Ok(Served::read(&resources, &kind.kind))
    }

    /// Seconds by which its clock is ahead of ours; `None` when it does not say. A refusal says it too.
    pub async fn skew(&self) -> Result<Option<i64>, PlaneError> {
        let asked = Timestamp::now();
        let request = hyper::Request::get("/version")
            .body(Body::empty())
            .map_err(kube::Error::HttpError);
        let answer = self
            .run("ask for the time", async { self.client.send(request?).await })
            .await?;
        Ok(clock::skew(answer.headers(), asked, Timestamp::now()))
    }

    fn api(&self, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
    }

    fn configurations_api(&self) -> Api<DynamicObject> {
        self.api(
            "config.karmada.io",
            "ResourceInterpreterWebhookConfiguration",
            "resourceinterpreterwebhookconfigurations",
        )
    }

    async fn run<T>(&self, action: &str, request: impl Future<Output = kube::Result<T>>) -> Result<T, PlaneError> {
        let fail = |reason: String| PlaneError::Request {
            action: action.to_owned(),
            server: self.server.clone(),
            reason,
        };
        match tokio::time::timeout(LIMIT, request).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(fail(described(&error))),
            Err(_) => Err(fail(format!("no answer within {LIMIT:?}"))),
        }
    }

    async fn list(&self, api: Api<DynamicObject>, what: &str) -> Result<Vec<Value>, PlaneError> {
        let list = self
            .run(&format!("list {what}"), api.list(&ListParams::default()))
            .await?;
        Ok(list.items.iter().map(plain).collect())
    }

    /// Every ResourceInterpreterWebhookConfiguration.
    pub async fn configurations(&self) -> Result<Vec<Configuration>, PlaneError> {
        let list = self
            .list(self.configurations_api(), "ResourceInterpreterWebhookConfigurations")
            .await?;
        Ok(list.iter().map(Configuration::read).collect())
    }

    /// Every ResourceInterpreterCustomization.
    pub async fn customizations(&self) -> Result<Vec<Customization>, PlaneError> {
        let api = self.api(
            "config.karmada.io",
            "ResourceInterpreterCustomization",
            "resourceinterpretercustomizations",
        );
        let list = self.list(api, "ResourceInterpreterCustomizations").await?;
        Ok(list.iter().map(Customization::read).collect())
    }

    /// Every member cluster.
    pub async fn members(&self) -> Result<Vec<Member>, PlaneError> {
        let list = self
            .list(self.api("cluster.karmada.io", "Cluster", "clusters"), "Clusters")
            .await?;
        Ok(list.iter().map(Member::read).collect())
    }

    /// The Service of a reference, when the Karmada API server has it.
    pub async fn service(&self, reference: &ServiceReference) -> Result<Option<Service>, PlaneError> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), &reference.namespace);
        self.run(
            &format!("read Service {}/{}", reference.namespace, reference.name),
            api.get_opt(&reference.name),
        )
        .await
    }

    /// One ResourceInterpreterWebhookConfiguration, as it is.
    pub async fn configuration(&self, name: &str) -> Result<Option<Value>, PlaneError> {
        let action = format!("read ResourceInterpreterWebhookConfiguration {name}");
        Ok(self
            .run(&action, self.configurations_api().get_opt(name))
            .await?
            .as_ref()
            .map(plain))
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
            match self.run(&action, self.write_once(name, found.as_ref(), wanted)).await? {
                Some(written) => return Ok(written),
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        let reason = "somebody else changes it all the time: find out who, then try again".to_owned();
        Err(PlaneError::Request {
            action,
            server: self.server.clone(),
            reason,
        }
        .into())
    }

    /// `None` when the object is not any more what was found.
    async fn write_once(
        &self,
        name: &str,
        found: Option<&Value>,
        wanted: Option<Value>,
    ) -> kube::Result<Option<Written>> {
        let api = self.configurations_api();
        let object = |value: Value| serde_json::from_value::<DynamicObject>(value).map_err(kube::Error::SerdeError);
        let result = match (found, wanted) {
            (None, None) => return Ok(Some(Written::Unchanged)),
            (Some(found), Some(wanted)) if *found == wanted => return Ok(Some(Written::Unchanged)),
            (None, Some(wanted)) => api
                .create(&PostParams::default(), &object(wanted)?)
                .await
                .map(|_| Written::Created),
            (Some(_), Some(wanted)) => api
                .replace(name, &PostParams::default(), &object(wanted)?)
                .await
                .map(|_| Written::Replaced),
            (Some(found), None) => {
                let version = found.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                let preconditions = Preconditions {
                    resource_version: version.map(str::to_owned),
                    uid: None,
                };
                let parameters = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::default()
                };
                api.delete(name, &parameters).await.map(|_| Written::Deleted)
            }
        };
        match result {
            Ok(written) => Ok(Some(written)),
            Err(kube::Error::Api(status))
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

pub(crate) async fn config(file: Option<&Path>, context: Option<String>) -> Result<Config, PlaneError> {
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    match file {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file).map_err(|error| wrong(Some(file), &error))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| wrong(Some(file), &error))
        }
        None => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| wrong(None, &error)),
    }
}

pub(super) fn wrong(file: Option<&Path>, error: &dyn std::error::Error) -> PlaneError {
    PlaneError::Kubeconfig {
        file: file.map(|file| file.display().to_string()),
        reason: chain(error),
    }
}

/// The API server's own words where it spoke, else the whole chain of causes.
fn described(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            let message = &status.message;
            let remedy = match status.code {
                401 | 403 => " (rights that are needed: manifests/webhook/components/register/register.rbac.yaml)",
                404 => " (is this a Karmada API server? look at --kubeconfig and --context)",
                _ => "",
            };
            format!("{} {message}{remedy}", status.code)
        }
        other => chain(other),
    }
}

pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// The object as JSON, without the server's bookkeeping of writers.
fn plain(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    value
}
