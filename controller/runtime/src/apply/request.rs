//! Requests as Kubernetes' API takes them, and what its answers mean.
//!
//! Bodies are JSON values, not kube's types: what a server answers is compared with what was sent, whole.

use http::Request;
use kube::api::{DeleteParams, ListParams, Patch as Patching, PatchParams, PostParams, Preconditions, Request as Url};
use kube::core::{DynamicObject, Status};
use kube::{Client, Error, Resource};
use popcell_core::object::Object;
use popcell_core::plan::{Delete, Patch, Target};
use serde_json::Value;
use tokio::time::timeout;

use super::REQUEST_TIMEOUT;
use super::absence::absent;
use super::error::Refusal;
use crate::error::chain;

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

pub(super) fn list(target: &Target, selector: &str) -> Result<Request<Vec<u8>>, Refusal> {
    let mut params = ListParams::default();
    if !selector.is_empty() {
        params = params.labels(selector);
    }
    made(url(target).list(&params))
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

/// The spec that a patch puts in place.
pub(super) fn spec_of(patch: &Patch) -> Option<&Value> {
    use json_patch::PatchOperation::{Add, Replace};
    patch.patch.iter().find_map(|operation| match operation {
        Add(add) if add.path.as_str() == "/spec" => Some(&add.value),
        Replace(replace) if replace.path.as_str() == "/spec" => Some(&replace.value),
        _ => None,
    })
}

/// The object in an answer, without what nobody here reads; `None` where it is none, such as a Status.
pub(super) fn object(mut answer: Value) -> Option<Object> {
    let metadata = answer.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("managedFields");
    let object: Object = serde_json::from_value(answer).ok()?;
    object.metadata.uid.is_some().then_some(object)
}

/// Sends a request and reads the answer.
pub(super) async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<Value, Refusal> {
    match timeout(REQUEST_TIMEOUT, client.request::<Value>(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(refusal(&error)),
        Err(_) => Err(Refusal::Silent(format!("not within {} s", REQUEST_TIMEOUT.as_secs()))),
    }
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Api(status) => refused(status),
        Error::SerdeError(error) => Refusal::Unreadable(error.to_string()),
        Error::FromUtf8(error) => Refusal::Unreadable(error.to_string()),
        Error::Auth(_) => Refusal::Refused {
            code: 401,
            message: chain(error),
        },
        other => Refusal::Silent(chain(other)),
    }
}

fn refused(status: &Status) -> Refusal {
    let message = status.message.clone();
    match status.code {
        404 => Refusal::NotFound {
            message,
            what: absent(status).map(|(plural, name)| (plural.to_owned(), name.to_owned())),
        },
        409 => Refusal::Changed(message),
        // How API servers answer a JSON patch whose `test` fails; what is invalid names its causes.
        422 if is_failed_test(status) => Refusal::Changed(message),
        429 | 500..=599 => Refusal::Busy {
            code: status.code,
            message,
        },
        code => Refusal::Refused { code, message },
    }
}

/// A patch that does not fit what is stored is told without details; an object that is invalid names its causes
/// (apiserver/pkg/endpoints/handlers/patch.go, `applyJSPatch`).
fn is_failed_test(status: &Status) -> bool {
    let causes = status
        .details
        .as_ref()
        .is_some_and(|details| !details.causes.is_empty());
    !causes
        && status
            .message
            .contains("the server rejected our request due to an error in our request")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, message: &str) -> Status {
        let mut status = Status::failure(message, "");
        status.code = code;
        status
    }

    #[test]
    fn c36_each_answer_has_its_meaning() {
        let failed = "the server rejected our request due to an error in our request";
        assert!(matches!(refused(&status(422, failed)), Refusal::Changed(_)));
        assert!(matches!(refused(&status(409, "exists")), Refusal::Changed(_)));
        assert!(matches!(refused(&status(404, "")), Refusal::NotFound { .. }));
        for code in [429, 500, 503, 504] {
            assert!(refused(&status(code, "")).is_of_the_server(), "{code}");
        }
        for code in [400, 401, 403, 405, 422] {
            let refusal = refused(&status(code, "invalid"));
            assert!(
                matches!(refusal, Refusal::Refused { .. }) && !refusal.is_of_the_server(),
                "{code}"
            );
        }
    }
}
