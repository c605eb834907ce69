//! Whether the user may use the networks, and which project a request is about.

use std::collections::BTreeSet;

use popcell_api::{admission, networking};
use serde_json::{Value, json};

use super::field::{Fault, FieldError};
use crate::derived;
use crate::names::{self, NameError};
use crate::object::Object;
use crate::workload;

/// A network that an interface names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkUse {
    /// Path of the reference.
    pub path: String,
    /// Namespace of the network.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Networks to ask for: those of the new object, a Workload or a WorkloadDeployment, that the old one did not name, each
/// once. `workload` is the one that a WorkloadDeployment says it is made from, as it lives: what it names was reviewed with
/// it.
pub fn networks_to_review(old: Option<&Object>, new: &Object, workload: Option<&Object>) -> Vec<NetworkUse> {
    if !super::is_spec_reviewed(old, new) {
        return Vec::new();
    }
    let mut asked: BTreeSet<(String, String)> = old.map(workload::networks).unwrap_or_default();
    asked.extend(
        workload
            .filter(|workload| derived::is_of(new, workload))
            .map(workload::networks)
            .unwrap_or_default(),
    );
    let mut uses = Vec::new();
    for (index, namespace, name) in workload::named_networks(new) {
        if asked.insert((namespace.to_owned(), name.to_owned())) {
            uses.push(NetworkUse {
                path: format!("{}.networkInterfaces[{index}].network", super::INSTANCE),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    uses
}

/// More networks than one review asks for.
pub fn too_many_networks(uses: &[NetworkUse]) -> Option<FieldError> {
    let (given, most) = (uses.len(), super::MOST_NETWORKS);
    (given > most).then(|| FieldError {
        path: format!("{}.networkInterfaces", super::INSTANCE),
        fault: Fault::TooMany { given, most },
    })
}

/// The SubjectAccessReview for one network. `user_info` is that of the request: every key of its `extra` goes along,
/// since the project's authorizer decides by them.
pub fn access_review(user_info: &Value, network: &NetworkUse) -> Value {
    let mut spec = json!({
        "resourceAttributes": {
            "verb": admission::NETWORK_VERB,
            "group": networking::GROUP,
            "version": networking::VERSION,
            "resource": "networks",
            "name": network.name,
            "namespace": network.namespace,
        },
    });
    for (from, to) in [
        ("username", "user"),
        ("groups", "groups"),
        ("uid", "uid"),
        ("extra", "extra"),
    ] {
        if let (Some(value), Some(fields)) = (user_info.get(from), spec.as_object_mut())
            && !value.is_null()
        {
            fields.insert(to.to_owned(), value.clone());
        }
    }
    json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec })
}

/// The user may not use the network.
pub fn access_denied(network: &NetworkUse) -> FieldError {
    FieldError {
        path: network.path.clone(),
        fault: Fault::Forbidden("permission to use the network was denied".to_owned()),
    }
}

/// The access review had no answer.
pub fn access_failed(network: &NetworkUse, error: &str) -> FieldError {
    FieldError {
        path: network.path.clone(),
        fault: Fault::Internal(error.to_owned()),
    }
}

/// The project of a request in mode `milo`, from `userInfo.extra`.
///
/// # Errors
/// Text for the refusal: a request that names no project is denied.
pub fn project_of(user_info: &Value) -> Result<&str, String> {
    let key = admission::EXTRA_PARENT_NAME;
    let named = user_info
        .get("extra")
        .and_then(|extra| extra.get(key)?.get(0)?.as_str());
    let project = named
        .filter(|project| !project.is_empty())
        .ok_or_else(|| format!("the request names no project: userInfo.extra[{key}] is empty"))?;
    names::check_project(project).map_err(|error: NameError| error.to_string())?;
    Ok(project)
}
