//! One API server and what tests do with objects on it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http;
use kube::api::{Api, DeleteParams, DynamicObject, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{GroupVersionKind, Request, Status};
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
    /// `kubectl`; with `dry_run` nothing is stored. What is there after an attempt without an answer was made by it.
    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<DynamicObject> {
        let what = describe(object);
        let failed = || self.failed("create", &what);
        let (api, name) = self.addressed(object).await.with_context(failed)?;
        let parameters = PostParams {
            dry_run,
            ..PostParams::default()
        };
        let mut request = Request::new(api.resource_url())
            .create(&parameters, object.to_string().into_bytes())
            .with_context(failed)?;
        let strict = format!("{}&fieldValidation=Strict", request.uri());
        *request.uri_mut() = strict.parse().with_context(failed)?;
        let mut attempts = 0;
        let made = answered(async || {
            attempts += 1;
            self.client.request(request.clone()).await
        });
        match made.await {
            Err(kube::Error::Api(status)) if attempts > 1 && status.is_already_exists() => {
                api.get(&name).await.with_context(failed)
            }
            made => made.with_context(failed),
        }
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
        answered(async || api.patch(&name, how, &Patch::Apply(object)).await)
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
        let found = answered(async || api.get_opt(name).await).await;
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
        let found = answered(async || api.list(&wanted).await).await;
        Ok(found.with_context(|| self.failed("list", kind.kind))?.items)
    }

    /// JSON merge patch of the object.
    pub async fn merge(&self, kind: Kind, namespace: Option<&str>, name: &str, patch: &Value) -> Result<DynamicObject> {
        let (api, how, patch) = (self.api(kind, namespace), PatchParams::default(), Patch::Merge(patch));
        let patched = answered(async || api.patch(name, &how, &patch).await).await;
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
        let (api, how) = (self.api(kind, namespace), PatchParams::default());
        let patched = answered(async || api.patch_status(name, &how, &patch).await).await;
        patched.with_context(|| self.failed("write the status of", &format!("{} {name}", kind.kind)))
    }

    /// Deletes the object; its absence is no error.
    pub async fn delete(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<()> {
        let (api, how) = (self.api(kind, namespace), DeleteParams::default());
        match answered(async || api.delete(name, &how).await).await {
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

/// Asks again, up to ten times, where the answer says nothing about the object: where the server asks to be asked later (429), as it
/// does while the storage of a CustomResourceDefinition that was changed starts fresh, and client-go asks again then; and where
/// etcd did not answer in time, as on a machine that is loaded.
async fn answered<T>(mut ask: impl AsyncFnMut() -> kube::Result<T>) -> kube::Result<T> {
    for _ in 0..10 {
        match ask().await {
            Err(kube::Error::Api(status)) if says_nothing(&status) => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                sleep(Duration::from_secs(u64::from(seconds.max(1)))).await;
            }
            answer => return answer,
        }
    }
    ask().await
}

fn says_nothing(status: &Status) -> bool {
    status.code == 429 || status.code == 500 && status.message.starts_with("etcdserver: ")
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
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_server_answers_later_is_asked_again_and_a_refusal_is_not() {
        let failure = |code: u16, message: &str| {
            let status = Status::failure(message, "").with_code(code);
            Err(kube::Error::Api(Box::new(status)))
        };
        for (code, message, asked) in [
            (429, "storage is (re)initializing", 3),
            (500, "etcdserver: request timed out", 3),
            (500, "failed calling webhook", 1),
            (409, "etcdserver: said by somebody else", 1),
        ] {
            let mut attempts = 0;
            let answer = answered(async || {
                attempts += 1;
                if attempts == 3 {
                    Ok("found")
                } else {
                    failure(code, message)
                }
            });
            assert_eq!(answer.await.is_ok(), asked == 3, "{message}");
            assert_eq!(attempts, asked, "{message}");
        }
    }
}
