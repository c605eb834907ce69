//! One API server and what tests do with objects on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http;
use kube::api::{Api, DeleteParams, DynamicObject, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, Request};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::kind::{Kind, Scope};

/// Field manager of everything that tests apply.
const MANAGER: &str = "popcell-tests";

/// One API server. A client belongs to the runtime it was made in: connect again in each test.
#[derive(Clone)]
pub struct Plane {
    name: String,
    kubeconfig: PathBuf,
    client: Client,
}

impl Plane {
    /// Makes a client from the kubeconfig, with its current context. No request is sent.
    pub async fn connect(name: &str, kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig).with_context(|| {
            format!(
                "failed to read the kubeconfig of plane {name}, {}",
                kubeconfig.display()
            )
        })?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("failed to understand the kubeconfig of plane {name}"))?;
        // Tests repeat by themselves what they expect to fail for a while.
        config.default_retry = false;
        let client = Client::try_from(config).with_context(|| format!("failed to make a client for plane {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            client,
        })
    }

    /// Name in the lab: `hub`, or the member's.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Objects of one kind, in `namespace` where the kind is namespaced; `None` then means all namespaces.
    #[must_use]
    pub fn api(&self, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) if kind.scope == Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
            }
            _ => Api::all_with(self.client.clone(), &kind.resource()),
        }
    }

    /// Creates an object of any kind that the server knows. A field that the kind does not have is an error, as it is for
    /// `kubectl`; with `dry_run` nothing is stored.
    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<DynamicObject> {
        let what = describe(object);
        let failed = || self.failed("create", &what);
        let (api, _) = self.addressed(object).await.with_context(failed)?;
        let parameters = PostParams {
            dry_run,
            ..PostParams::default()
        };
        let mut request = Request::new(api.resource_url())
            .create(&parameters, object.to_string().into_bytes())
            .with_context(failed)?;
        let strict = format!("{}&fieldValidation=Strict", request.uri());
        *request.uri_mut() = strict.parse().with_context(failed)?;
        self.client.request(request).await.with_context(failed)
    }

    /// What `kubectl get -o wide` shows of an object: cells by the name of their column.
    pub async fn columns(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<BTreeMap<String, Value>> {
        let failed = || self.failed("print", &format!("{} {name}", kind.kind));
        let api = self.api(kind, namespace);
        let mut request = Request::new(api.resource_url())
            .get(name, &GetParams::default())
            .with_context(failed)?;
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1"
            .parse()
            .with_context(failed)?;
        request.headers_mut().insert("accept", table);
        let table: Value = self.client.request(request).await.with_context(failed)?;
        let columns = table["columnDefinitions"].as_array().with_context(failed)?;
        let cells = table["rows"][0]["cells"].as_array().with_context(failed)?;
        let named = columns.iter().map(|column| column["name"].as_str().unwrap_or_default());
        Ok(named.map(str::to_owned).zip(cells.iter().cloned()).collect())
    }

    /// Server-side apply of an object of any kind that the server knows, taking fields from other writers.
    pub async fn apply(&self, object: &Value) -> Result<DynamicObject> {
        self.apply_with(object, &PatchParams::apply(MANAGER).force()).await
    }

    /// As [`Plane::apply`], but nothing is stored.
    pub async fn dry_run(&self, object: &Value) -> Result<DynamicObject> {
        self.apply_with(object, &PatchParams::apply(MANAGER).force().dry_run())
            .await
    }

    async fn apply_with(&self, object: &Value, how: &PatchParams) -> Result<DynamicObject> {
        let what = describe(object);
        let (api, name) = self
            .addressed(object)
            .await
            .with_context(|| self.failed("apply", &what))?;
        api.patch(&name, how, &Patch::Apply(object))
            .await
            .with_context(|| self.failed("apply", &what))
    }

    /// The API and the name under which `object` is stored.
    async fn addressed(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let (Some(api_version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            bail!("the object has no apiVersion or no kind");
        };
        let name = text("/metadata/name").context("the object has no name")?.to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = kube::discovery::pinned_kind(&self.client, &gvk)
            .await
            .with_context(|| format!("the server does not serve {api_version} {kind}"))?;
        let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
        let api = match text("/metadata/namespace") {
            Some(namespace) if namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None if namespaced => bail!("the object has no namespace"),
            _ => Api::all_with(self.client.clone(), &resource),
        };
        Ok((api, name))
    }

    /// The object, or `None` where there is none.
    pub async fn get(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<Option<DynamicObject>> {
        let api = self.api(kind, namespace);
        let found = admitted(async || api.get_opt(name).await).await;
        found.with_context(|| self.failed("read", &format!("{} {name}", kind.kind)))
    }

    /// The object; absence is an error that says so.
    pub async fn expect(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<DynamicObject> {
        let found = self.get(kind, namespace, name).await?;
        found.with_context(|| format!("plane {}: no {} {}", self.name, kind.kind, full_name(namespace, name)))
    }

    /// Objects that carry every label of `selector` (`""` = all).
    pub async fn list(&self, kind: Kind, namespace: Option<&str>, selector: &str) -> Result<Vec<DynamicObject>> {
        let (api, wanted) = (self.api(kind, namespace), ListParams::default().labels(selector));
        let found = admitted(async || api.list(&wanted).await).await;
        Ok(found.with_context(|| self.failed("list", kind.kind))?.items)
    }

    /// JSON merge patch of the object.
    pub async fn merge(&self, kind: Kind, namespace: Option<&str>, name: &str, patch: &Value) -> Result<DynamicObject> {
        let patched = self
            .api(kind, namespace)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.with_context(|| self.failed("patch", &format!("{} {name}", kind.kind)))
    }

    /// Puts `status` in place of the object's status, as a controller of the kind does.
    pub async fn set_status(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        name: &str,
        status: &Value,
    ) -> Result<DynamicObject> {
        let patch: kube::api::Patch<()> = Patch::Json(
            serde_json::from_value(json!([{ "op": "add", "path": "/status", "value": status }]))
                .context("failed to make a JSON patch")?,
        );
        let patched = self
            .api(kind, namespace)
            .patch_status(name, &PatchParams::default(), &patch)
            .await;
        patched.with_context(|| self.failed("write the status of", &format!("{} {name}", kind.kind)))
    }

    /// Deletes the object; its absence is no error.
    pub async fn delete(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<()> {
        match self.api(kind, namespace).delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error).with_context(|| self.failed("delete", &format!("{} {name}", kind.kind))),
        }
    }

    /// A token of a service account, good for the time of a test.
    pub async fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        let spec = json!({ "expirationSeconds": 86_400 });
        self.requested_token(namespace, service_account, &spec).await
    }

    /// A token of a service account as a kubelet asks for one: `spec` is that of a `TokenRequest`, with `audiences` and
    /// `expirationSeconds`.
    pub async fn requested_token(&self, namespace: &str, service_account: &str, spec: &Value) -> Result<String> {
        let failed = || self.failed("get a token of", &full_name(Some(namespace), service_account));
        let asked = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec });
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(asked.to_string().into_bytes()).with_context(failed)?;
        let answer: Value = self.client.request(request).await.with_context(failed)?;
        answer["status"]["token"]
            .as_str()
            .map(str::to_owned)
            .with_context(failed)
    }

    /// The server's own metrics page.
    pub async fn metrics(&self) -> Result<String> {
        let request = http::Request::get("/metrics").body(Vec::new());
        let request = request.context("failed to make a request")?;
        let metrics = self.client.request_text(request).await;
        metrics.with_context(|| self.failed("read", "/metrics"))
    }

    fn failed(&self, verb: &str, what: &str) -> String {
        format!("failed to {verb} {what} on plane {}", self.name)
    }
}

/// Reads again where the server asks to be asked later (429), as client-go does, up to ten times: a server answers so while
/// the storage of a CustomResourceDefinition that was changed starts fresh, which says nothing about the object.
async fn admitted<T>(mut read: impl AsyncFnMut() -> kube::Result<T>) -> kube::Result<T> {
    for _ in 0..10 {
        match read().await {
            Err(kube::Error::Api(status)) if status.code == 429 => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                sleep(Duration::from_secs(u64::from(seconds.max(1)))).await;
            }
            answer => return answer,
        }
    }
    read().await
}

fn full_name(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn describe(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("an object without kind");
    format!(
        "{kind} {}",
        full_name(
            text("/metadata/namespace"),
            text("/metadata/name").unwrap_or("without name")
        )
    )
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_server_admits_later_is_read_again() {
        let mut busy = 2;
        let read = admitted(async || {
            if busy == 0 {
                return Ok("found");
            }
            busy -= 1;
            let status = Status::failure("storage is (re)initializing", "TooManyRequests").with_code(429);
            Err(kube::Error::Api(Box::new(status)))
        });
        assert_eq!(read.await.unwrap(), "found");
    }
}
