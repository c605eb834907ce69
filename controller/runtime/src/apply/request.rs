//! Requests as Kubernetes' API takes them, and what its answers mean.
//!
//! Bodies are JSON values, not kube's types: what a server answers is compared with what was sent, whole.

use std::hash::{DefaultHasher, Hasher};

use http::Request;
use http_body_util::BodyExt as _;
use json_patch::PatchOperation;
use kube::api::{DeleteParams, ListParams, Patch as Patching, PatchParams, PostParams, Preconditions, Request as Url};
use kube::client::Body;
use kube::core::DynamicObject;
use kube::{Client, Error, Resource};
use popcell_api::kind::Kind;
use popcell_core::object::Object;
use popcell_core::plan::{Delete, Patch, Target};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::answer::Text;
use super::{REQUEST_TIMEOUT, answer};
use crate::error::chain;
use crate::refusal::Refusal;

/// The largest list that is read, in bytes: of all that a cell holds in a project.
pub(super) const LIST: usize = 64 << 20;
/// The largest answer that is read where one object is asked for, in bytes: more than a store takes.
pub(super) const OBJECT: usize = 4 << 20;
/// So much is read of an answer that is an error, in bytes.
const ERROR: usize = 64 << 10;
/// Who writes, in `managedFields`.
const FIELD_MANAGER: &str = "popcell";

fn url(target: &Target) -> Url {
    Url::new(DynamicObject::url_path(
        &target.kind.resource(),
        target.namespace.as_deref(),
    ))
}

fn made<T>(request: Result<Request<T>, impl std::error::Error + 'static>) -> Result<Request<T>, Refusal> {
    request.map_err(|error| Refusal::Unsendable(chain(&error)))
}

pub(super) fn get(target: &Target) -> Result<Request<Vec<u8>>, Refusal> {
    made(url(target).get(&target.name, &kube::api::GetParams::default()))
}

/// Of an object its metadata: what it holds does not leave the server.
pub(super) fn get_metadata(target: &Target) -> Result<Request<Vec<u8>>, Refusal> {
    made(url(target).get_metadata(&target.name, &kube::api::GetParams::default()))
}

pub(super) fn list(target: &Target, selector: &str) -> Result<Request<Vec<u8>>, Refusal> {
    let mut params = ListParams::default();
    if !selector.is_empty() {
        params = params.labels(selector);
    }
    made(url(target).list(&params))
}

/// The same without anything but the metadata of the objects.
pub(super) fn list_metadata(target: &Target) -> Result<Request<Vec<u8>>, Refusal> {
    made(url(target).list_metadata(&ListParams::default()))
}

/// Who the server takes us for.
pub(super) fn self_subject_review() -> Result<Request<Vec<u8>>, Refusal> {
    let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    made(
        request
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes()),
    )
}

/// What a group and version serves, or, without them, which there are.
pub(super) fn discover(group_version: Option<(&str, &str)>) -> Result<Request<Vec<u8>>, Refusal> {
    let path = match group_version {
        Some((group, version)) => format!("/apis/{group}/{version}"),
        None => "/apis".to_owned(),
    };
    made(Request::get(path).body(Vec::new()))
}

pub(super) fn create(target: &Target, object: &Object) -> Result<Request<Vec<u8>>, Refusal> {
    let body = serde_json::to_vec(object).map_err(|error| Refusal::Unsendable(error.to_string()))?;
    post(target, body)
}

pub(super) fn post(target: &Target, body: Vec<u8>) -> Result<Request<Vec<u8>>, Refusal> {
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    made(url(target).create(&params, body))
}

pub(super) fn patch(patch: &Patch) -> Result<Request<Vec<u8>>, Refusal> {
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let body = Patching::<Value>::Json(patch.patch.clone());
    let (url, name) = (url(&patch.target), &patch.target.name);
    let request = if patch.status {
        url.patch_subresource("status", name, &params, &body)
    } else {
        url.patch(name, &params, &body)
    };
    made(request)
}

pub(super) fn delete(delete: &Delete) -> Result<Request<Vec<u8>>, Refusal> {
    let params = DeleteParams::background().preconditions(Preconditions {
        uid: Some(delete.on.uid.clone()),
        resource_version: Some(delete.on.resource_version.clone()),
    });
    made(url(&delete.target).delete(&delete.target.name, &params))
}

/// Tells the contents of creations apart.
pub(super) fn content(request: &Result<Request<Vec<u8>>, Refusal>) -> u64 {
    request.as_ref().map_or(0, |request| hash(request.body()))
}

/// Tells patches apart by what they change, whatever version they are made for, and whenever: a status that is refused has
/// another time of its transitions with each attempt.
pub(super) fn changes(patch: &Patch) -> u64 {
    let changes = patch.patch.iter();
    let changes: Vec<_> = changes.filter(|one| !matches!(one, PatchOperation::Test(_))).collect();
    if !patch.status {
        return serde_json::to_vec(&changes).map_or(0, |text| hash(&text));
    }
    serde_json::to_value(&changes).map_or(0, |mut changes| {
        forget_times(&mut changes);
        hash(changes.to_string().as_bytes())
    })
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget_times),
        _ => {}
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    hasher.finish()
}

/// The object in an answer, without unused parts; `None` where it is none, such as a Status.
pub(super) fn object(answer: &Text) -> Option<Object> {
    let object = Object::read(answer.get()).ok()?;
    object.metadata.uid.is_some().then_some(object)
}

/// A read that shows whether a server works: the first object of a kind that is watched there, without its content. It
/// takes the way of every request, through authentication and flow control to the store, but not through admission.
pub(super) fn probe(kind: Option<Kind>) -> Result<Request<Vec<u8>>, Refusal> {
    let Some(kind) = kind else {
        return made(Request::get("/version").body(Vec::new()));
    };
    let all = Url::new(DynamicObject::url_path(&kind.resource(), None));
    made(all.list_metadata(&ListParams::default().limit(1)))
}

/// Sends a request and reads the answer, of at most so many bytes.
pub(super) async fn send(client: &Client, request: Request<Vec<u8>>, most: usize) -> Result<Text, Refusal> {
    let answered = async {
        let response = client
            .send(request.map(Body::from))
            .await
            .map_err(|error| unsent(&error))?;
        let (head, body) = response.into_parts();
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        let most = if is_error { ERROR } else { most };
        match begun(body, most).await.map_err(|error| unsent(&error))? {
            (_, false) if !is_error => Err(Refusal::Unreadable(format!("it has more than {most} bytes"))),
            (text, _) => answer::read(head.status, &head.headers, &text),
        }
    };
    let late = |_| Refusal::TimedOut(format!("not within {} s", REQUEST_TIMEOUT.as_secs()));
    timeout(REQUEST_TIMEOUT, answered).await.map_err(late)?
}

/// The first bytes of a body, and whether they are all of it.
async fn begun(mut body: Body, most: usize) -> Result<(Vec<u8>, bool), Error> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = most - text.len();
        if let Some(head) = data.get(..room).filter(|head| head.len() < data.len()) {
            text.extend_from_slice(head);
            return Ok((text, false));
        }
        text.extend_from_slice(&data);
    }
    Ok((text, true))
}

fn unsent(error: &Error) -> Refusal {
    match error {
        Error::Auth(_) => Refusal::Refused {
            code: 401,
            message: chain(error).into(),
        },
        other => Refusal::Silent(chain(other)),
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::WORKLOAD_DEPLOYMENT;
    use popcell_core::edit::Edit;
    use popcell_core::object::Object;
    use popcell_core::plan::Plane;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_secret_holds_is_not_asked_for() {
        let target = Target::namespaced(&Plane::Cell, popcell_core::plan::SECRET, "ns-1", "key");
        let request = get_metadata(&target).unwrap();
        assert_eq!(request.uri(), "/api/v1/namespaces/ns-1/secrets/key");
        let accepted = request.headers()[http::header::ACCEPT].to_str().unwrap();
        let only = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert!(accepted.split(',').all(|one| one.trim() == only), "{accepted}");
    }

    #[test]
    fn a_status_is_distinguished_by_what_it_says_and_not_by_when() {
        let object = Object::read(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}"#).unwrap();
        let sent = |reason: &str, time: &str| {
            let status =
                json!({ "conditions": [{ "type": "Available", "reason": reason, "lastTransitionTime": time }] });
            changes(&Edit::status(&Plane::Cell, WORKLOAD_DEPLOYMENT, &object, status).unwrap())
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:08Z");
        assert_eq!(sent("Rejected", early), sent("Rejected", late));
        assert_ne!(sent("Rejected", early), sent("Available", early));
    }
}
