//! Whether the user may use what a template names, and which project a request is about.

use std::collections::BTreeSet;

use popcell_api::admission;
use popcell_api::kind::{Kind, NETWORK};
use serde_json::{Value, json};

use super::field::{Fault, FieldError};
use crate::derived;
use crate::names::{self, NameError};
use crate::object::{Fields, Object};
use crate::plan::CONFIG_MAP;
use crate::references;
use crate::workload;

/// What an object names and the user needs a right to: a Network, a ConfigMap or a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUse {
    /// Path of the reference.
    pub path: String,
    /// The kind.
    pub kind: Kind,
    /// Namespace of the object.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What to ask for of a new object, a Workload or a WorkloadDeployment, each once: the Networks that the old one did not name; and
/// all its ConfigMaps and Secrets where the old one's template was another, since who writes what runs reads what it is given.
/// `workload` is the one that a WorkloadDeployment says it is made from, as it lives: what it names was reviewed with it.
pub fn uses_to_review(old: Option<&Object>, new: &Object, workload: Option<&Object>) -> Vec<ObjectUse> {
    if !super::is_spec_reviewed(old, new) {
        return Vec::new();
    }
    let workload = workload.filter(|workload| derived::is_of(new, workload));
    let mut uses = networks(old, new, workload);
    // Its Workload's author was asked for what runs there, and for nothing else.
    let is_reviewed = workload.is_some_and(|workload| template(workload) == template(new));
    if !is_reviewed && (old.is_none() || old.and_then(template) != template(new)) {
        uses.extend(data(new));
    }
    uses
}

/// What runs; not its annotations, such as the one that restarts it.
fn template(object: &Object) -> Option<&Value> {
    object.at("/spec/template/spec")
}

fn networks(old: Option<&Object>, new: &Object, workload: Option<&Object>) -> Vec<ObjectUse> {
    let mut asked: BTreeSet<(String, String)> = old.map(workload::networks).unwrap_or_default();
    asked.extend(workload.map(workload::networks).unwrap_or_default());
    let mut uses = Vec::new();
    for (index, namespace, name) in workload::named_networks(new) {
        if asked.insert((namespace.to_owned(), name.to_owned())) {
            uses.push(ObjectUse {
                path: format!("{}.networkInterfaces[{index}].network", super::INSTANCE),
                kind: NETWORK,
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    uses
}

fn data(new: &Object) -> Vec<ObjectUse> {
    let (mut asked, mut uses) = (BTreeSet::new(), Vec::new());
    for one in references::uses(new) {
        if asked.insert((one.kind.plural, one.name)) {
            uses.push(ObjectUse {
                path: format!("{}.{}", super::INSTANCE, one.place),
                kind: one.kind,
                namespace: new.namespace().to_owned(),
                name: one.name.to_owned(),
            });
        }
    }
    uses
}

/// More than one review asks for.
pub fn too_many_uses(uses: &[ObjectUse]) -> Option<FieldError> {
    let (networks, data): (Vec<_>, Vec<_>) = uses.iter().partition(|one| one.kind == NETWORK);
    let of = |found: &[&ObjectUse], path: String, most| {
        let given = found.len();
        let fault = Fault::TooMany { given, most };
        (given > most).then_some(FieldError { path, fault })
    };
    let networks = of(
        &networks,
        format!("{}.networkInterfaces", super::INSTANCE),
        super::MOST_NETWORKS,
    );
    networks.or_else(|| {
        of(
            &data,
            format!("{} (ConfigMaps and Secrets)", super::INSTANCE),
            super::MOST_DATA,
        )
    })
}

/// The SubjectAccessReview for one object. `user_info` is that of the request: every key of its `extra` goes along,
/// since the project's authorizer decides by them.
pub fn access_review(user_info: &Value, object: &ObjectUse) -> Value {
    let kind = object.kind;
    let mut spec = json!({
        "resourceAttributes": {
            "verb": if kind == NETWORK { admission::NETWORK_VERB } else { "get" },
            "group": kind.group,
            "version": kind.version,
            "resource": kind.plural,
            "name": object.name,
            "namespace": object.namespace,
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

/// The user may not use the object.
pub fn access_denied(object: &ObjectUse) -> FieldError {
    let read = |kind: &str| {
        let (name, resource) = (&object.name, object.kind.plural);
        format!("permission to read the {kind} was denied: get the right to \"get\" {resource} \"{name}\"")
    };
    let denied = match object.kind {
        NETWORK => "permission to use the network was denied".to_owned(),
        CONFIG_MAP => read("ConfigMap"),
        _ => read("Secret"),
    };
    FieldError {
        path: object.path.clone(),
        fault: Fault::Forbidden(denied),
    }
}

/// The access review had no answer.
pub fn access_failed(object: &ObjectUse, error: &str) -> FieldError {
    let what = match object.kind {
        NETWORK => "network",
        CONFIG_MAP => "ConfigMap",
        _ => "Secret",
    };
    let name = &object.name;
    FieldError {
        path: object.path.clone(),
        fault: Fault::Internal(format!("failed to review access to {what} \"{name}\": {error}")),
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
