//! API servers, and objects of any kind on them: what we read, and what we write. Every request ends within `LIMIT`; nothing
//! is retried.

pub mod karmada;
mod project;
mod projects;

pub use karmada::{Karmada, Written};
pub(crate) use project::Project;
pub(crate) use projects::{Projects, no_server};

use std::{future::Future, path::Path, time::Duration};

use kube::{
    Client, Config, Error,
    api::{
        ApiResource, DeleteParams, DynamicObject, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
    },
    config::{KubeConfigOptions, Kubeconfig},
    core::{GroupVersionKind, Request, Resource as _, TypeMeta, request},
    discovery,
};
use popcell_client::{absent, chain};
use popcell_core::object::{List, Listed, Object};
use popcell_core::plan::Precondition;
use serde_json::Value;

use crate::{args::reach::Cluster, exit::Failure};

/// A request that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(15);
/// Objects in one answer of a list.
const PAGE: u32 = 500;
/// Who writes, in `managedFields`.
const MANAGER: &str = "popcell-cli";

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

/// A change of one object.
#[derive(Clone, Copy)]
pub enum Write<'a> {
    /// Makes it; [`Answer::Changed`] = there is one of this name.
    Create(&'a Value),
    /// Stores it in the place of the one that it was made from, by its resourceVersion.
    Replace(&'a Value),
    /// Changes it.
    Patch(&'a Patch<Value>),
    /// Deletes it exactly as it was read.
    Delete(&'a Precondition),
}

/// What became of a write that reached the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// NotFound: the object is not there.
    Gone,
    /// 409: the object has changed since it was read.
    Changed(String),
    /// Any other refusal.
    Refused {
        /// HTTP status.
        code: u16,
        /// The server's own words.
        message: String,
    },
}

/// What a dry run of a write gave.
#[derive(Clone, Debug)]
pub enum Rehearsal {
    /// This would be stored.
    Stored(Box<Object>),
    /// The answer that the write would have; never [`Answer::Done`].
    Not(Answer),
}

/// An API server.
#[derive(Clone)]
pub struct Server {
    client: Client,
    name: String,
    /// What to do about a refusal with this code; empty where nothing helps.
    fix: fn(u16) -> &'static str,
}

impl Server {
    /// Reads the kubeconfig. No request is made yet.
    pub async fn open(cluster: &Cluster) -> Result<Self, PlaneError> {
        let file = cluster.kubeconfig.as_deref();
        Self::configured(config(file, cluster.context.clone()).await?, file)
    }

    /// By what a kubeconfig says; `file` is for messages.
    fn configured(mut config: Config, file: Option<&Path>) -> Result<Self, PlaneError> {
        // A person waits, and each command says what failed: no hidden retries.
        config.default_retry = false;
        config.connect_timeout = Some(LIMIT);
        let name = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| wrong(file, &error))?;
        Ok(Self::of(client, name))
    }

    /// By a client; `name` is for messages.
    pub fn of(client: Client, name: String) -> Self {
        Self {
            client,
            name,
            fix: |code| match code {
                404 => " (does it serve this kind? look at --kubeconfig and --context)",
                _ => "",
            },
        }
    }

    /// With other advice to people about refusals.
    #[must_use]
    pub fn advising(mut self, fix: fn(u16) -> &'static str) -> Self {
        self.fix = fix;
        self
    }

    /// Its URL, or what it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For requests that are about no object.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// How a kind is addressed here, and whether its objects are in namespaces.
    pub async fn resource(&self, kind: &GroupVersionKind) -> Result<(ApiResource, bool), PlaneError> {
        let what = format!("find the kind {}/{}", kind.api_version(), kind.kind);
        let (resource, capabilities) = self.run(&what, discovery::pinned_kind(&self.client, kind)).await?;
        Ok((resource, capabilities.scope == discovery::Scope::Namespaced))
    }

    /// Objects of a kind, in all namespaces where none is named.
    pub fn at(&self, resource: impl Into<ApiResource>, namespace: Option<&str>) -> Objects<'_> {
        let resource = resource.into();
        Objects {
            server: self,
            url: Request::new(DynamicObject::url_path(&resource, namespace)),
            resource,
        }
    }

    /// The text of an answer: kube would decode it, and log what it cannot decode.
    async fn text(&self, request: Built) -> kube::Result<String> {
        self.client.request_text(request.map_err(Error::BuildRequest)?).await
    }

    pub(super) async fn run<T>(
        &self,
        action: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, PlaneError> {
        match tokio::time::timeout(LIMIT, request).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Error::Api(status))) => Err(self.refusal(action, status.code, &status.message)),
            Ok(Err(error)) => Err(self.failure(action, &chain(&error))),
            Err(_) => Err(self.failure(action, &format!("no answer within {LIMIT:?}"))),
        }
    }

    /// What the server says to a request, in its own words, and what to do about it.
    pub(super) fn refusal(&self, action: &str, code: u16, message: &str) -> PlaneError {
        self.failure(action, &format!("{code} {message}{}", (self.fix)(code)))
    }

    /// A request that failed for this reason.
    pub(crate) fn failure(&self, action: &str, reason: &str) -> PlaneError {
        PlaneError::Request {
            action: action.to_owned(),
            server: self.name.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// A request before it is sent.
type Built = Result<hyper::Request<Vec<u8>>, request::Error>;

/// Objects of one kind on a server.
pub struct Objects<'a> {
    server: &'a Server,
    resource: ApiResource,
    url: Request,
}

impl Objects<'_> {
    /// With metadata only. What cannot be read of a list keeps nothing else from being found.
    pub async fn metadata(&self, selector: &str) -> Result<Listed, PlaneError> {
        let mut found = self.pages(selector, Request::list_metadata).await?;
        for object in &mut found.objects {
            object.types = Some(TypeMeta {
                api_version: self.resource.api_version.clone(),
                kind: self.resource.kind.clone(),
            });
        }
        Ok(found)
    }

    /// Whole; see [`Self::metadata`].
    pub async fn list(&self, selector: &str) -> Result<Listed, PlaneError> {
        self.pages(selector, Request::list).await
    }

    async fn pages(&self, selector: &str, request: fn(&Request, &ListParams) -> Built) -> Result<Listed, PlaneError> {
        let mut found = Listed::default();
        let keep = |page: Listed| {
            found.objects.extend(page.objects);
            found.unreadable.extend(page.unreadable);
        };
        self.fold(selector, request, keep).await?;
        Ok(found)
    }

    /// Whole, page by page: no more than one page is held here.
    pub(crate) async fn each_page(&self, selector: &str, take: impl FnMut(Listed)) -> Result<(), PlaneError> {
        self.fold(selector, Request::list, take).await
    }

    async fn fold(
        &self,
        selector: &str,
        request: fn(&Request, &ListParams) -> Built,
        mut take: impl FnMut(Listed),
    ) -> Result<(), PlaneError> {
        let (server, action) = (self.server, format!("list {}", self.resource.plural));
        let mut page = ListParams::default().labels(selector).limit(PAGE);
        loop {
            let text = server.run(&action, server.text(request(&self.url, &page))).await?;
            let list: List =
                serde_json::from_str(&text).map_err(|_| server.failure(&action, "the answer is no list"))?;
            let more = list.metadata.more.clone().filter(|token| !token.is_empty());
            take(Listed::from(list));
            match more {
                Some(token) => page.continue_token = Some(token),
                None => return Ok(()),
            }
        }
    }

    /// One as it is now; `None` = NotFound.
    pub async fn get(&self, name: &str) -> Result<Option<Object>, PlaneError> {
        let (server, action) = (self.server, format!("read {} {name}", self.resource.kind));
        let request = async {
            match server.text(self.url.get(name, &GetParams::default())).await {
                Ok(found) => Ok(Some(found)),
                Err(Error::Api(status)) if absent(&status) == Some((&self.resource.plural, name)) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = server.run(&action, request).await?.map(|text| Object::read(&text));
        found
            .transpose()
            .map_err(|error| server.failure(&action, &error.to_string()))
    }

    /// Changes one. A refusal is an answer; only silence is an error.
    pub async fn write(&self, name: &str, write: Write<'_>) -> Result<Answer, PlaneError> {
        let (server, url) = (self.server, &self.url);
        let (verb, request) = match write {
            Write::Create(object) => ("create", url.create(&post(), object.to_string().into())),
            Write::Replace(object) => ("replace", url.replace(name, &post(), object.to_string().into())),
            Write::Patch(patch) => {
                let params = PatchParams {
                    field_manager: Some(MANAGER.to_owned()),
                    ..PatchParams::default()
                };
                ("patch", url.patch_metadata(name, &params, patch))
            }
            Write::Delete(on) => {
                let params = DeleteParams::background().preconditions(Preconditions {
                    uid: Some(on.uid.clone()),
                    resource_version: Some(on.resource_version.clone()),
                });
                ("delete", url.delete(name, &params))
            }
        };
        let sent = async { answer((&self.resource.plural, name), server.text(request).await) };
        let action = format!("{verb} {} {name}", self.resource.kind);
        server.run(&action, sent).await
    }

    /// What the server would store, checked and with its defaults, by a dry run that stores nothing: of a new object, or in the
    /// place of the one that it was made from.
    pub async fn rehearse(&self, name: &str, object: &Value, is_new: bool) -> Result<Rehearsal, PlaneError> {
        let (server, url) = (self.server, &self.url);
        let params = PostParams {
            dry_run: true,
            ..post()
        };
        let request = if is_new {
            url.create(&params, object.to_string().into())
        } else {
            url.replace(name, &params, object.to_string().into())
        };
        let sent = async {
            match server.text(request).await {
                Ok(text) => Ok(Ok(text)),
                Err(error) => answer((&self.resource.plural, name), Err(error)).map(Err),
            }
        };
        let action = format!("try {} {name}", self.resource.kind);
        match server.run(&action, sent).await? {
            Ok(text) => Object::read(&text)
                .map(|stored| Rehearsal::Stored(Box::new(stored)))
                .map_err(|error| server.failure(&action, &error.to_string())),
            Err(answer) => Ok(Rehearsal::Not(answer)),
        }
    }
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// What the server says to a write of an object (plural and name).
fn answer(what: (&str, &str), result: kube::Result<String>) -> kube::Result<Answer> {
    match result {
        // Not every success is one of this server's: a proxy may answer with a page.
        Ok(text) => serde_json::from_str::<TypeMeta>(&text)
            .map(|_| Answer::Done)
            .map_err(Error::SerdeError),
        Err(Error::Api(status)) if absent(&status) == Some(what) => Ok(Answer::Gone),
        Err(Error::Api(status)) => Ok(match status.code {
            409 => Answer::Changed(status.message.clone()),
            code => Answer::Refused {
                code,
                message: status.message.clone(),
            },
        }),
        Err(error) => Err(error),
    }
}

/// The configuration that a kubeconfig, or the environment, says.
pub(crate) async fn config(file: Option<&Path>, context: Option<String>) -> Result<Config, PlaneError> {
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    let read = async {
        match file {
            Some(file) => Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await,
            None => Config::from_kubeconfig(&options).await,
        }
    };
    read.await.map_err(|error| wrong(file, &error))
}

fn wrong(file: Option<&Path>, error: &dyn std::error::Error) -> PlaneError {
    PlaneError::Kubeconfig {
        file: file.map(|file| file.display().to_string()),
        reason: chain(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::json;

    use super::*;

    const WHAT: (&str, &str) = ("workloaddeployments", "web");

    fn said(code: u16) -> Answer {
        let mut status = Status::failure("words", "");
        status.code = code;
        answer(WHAT, Err(Error::Api(Box::new(status)))).unwrap()
    }

    /// As an API server says that an object is not there.
    fn said_absent(plural: &str, name: &str) -> Answer {
        let status: Status = serde_json::from_value(json!({ "status": "Failure", "reason": "NotFound", "code": 404,
            "message": "words", "details": { "kind": plural, "name": name } }))
        .unwrap();
        answer(WHAT, Err(Error::Api(Box::new(status)))).unwrap()
    }

    #[test]
    fn a_refusal_is_an_answer() {
        assert_eq!(said_absent("workloaddeployments", "web"), Answer::Gone);
        // A proxy, a namespace or another object that is not there says nothing about this one.
        for other in [
            said(404),
            said_absent("namespaces", "web"),
            said_absent("workloaddeployments", "other"),
        ] {
            assert!(matches!(other, Answer::Refused { code: 404, .. }), "{other:?}");
        }
        assert_eq!(said(409), Answer::Changed("words".to_owned()));
        assert!(matches!(said(422), Answer::Refused { code: 422, .. }));
        let done = r#"{ "apiVersion": "v1", "kind": "Status", "status": "Success" }"#;
        assert_eq!(answer(WHAT, Ok(done.to_owned())).unwrap(), Answer::Done);
        // The page of a proxy is none.
        for page in ["", "<html>please log in</html>"] {
            assert!(answer(WHAT, Ok(page.to_owned())).is_err(), "{page}");
        }
    }
}
