//! What a project gets: objects of popcell's own manifests with the values of flags in them, or those of a kustomization of
//! the operator's own.
//!
//! Invariant: every object carries the label that says whose it is, since one without it would belong to another owner at the
//! next run.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use itertools::Itertools as _;
use popcell_api::{
    kind::{Kind, Scope},
    labels::{PART_OF, PART_OF_POPCELL},
};
use popcell_sdk::test::yaml;
use serde_json::{Value, json};

use crate::{args::project::Apply, console::Console, exit::Failure, interpret, interpreters};

pub(super) const DEFINITION: Kind = of_cluster(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
pub(super) const BINDING: Kind = of_cluster("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings");
const POLICY: Kind = of_cluster(
    "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
);
pub(super) const WEBHOOKS: [Kind; 2] = [
    of_cluster(
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    of_cluster(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
];

/// Every kind that a project gets, in the order in which they are written: rights before the webhooks that need them.
const KINDS: [Kind; 7] = [
    DEFINITION,
    of_cluster("rbac.authorization.k8s.io", "ClusterRole", "clusterroles"),
    BINDING,
    POLICY,
    of_cluster(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    ),
    WEBHOOKS[0],
    WEBHOOKS[1],
];

const fn of_cluster(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind::of(group, "v1", kind, plural, Scope::Cluster)
}

const CRDS: [&str; 3] = [
    include_str!("../../../manifests/crds/compute.datumapis.com_instances.yaml"),
    include_str!("../../../manifests/crds/compute.datumapis.com_workloaddeployments.yaml"),
    include_str!("../../../manifests/crds/compute.datumapis.com_workloads.yaml"),
];
const RIGHTS: [&str; 2] = [
    include_str!("../../../manifests/project-rbac/rbac.yaml"),
    include_str!("../../../manifests/components/deployment-writers/policy.yaml"),
];
const ADMISSION: [&str; 2] = [
    include_str!("../../../manifests/base/admission/mutating.yaml"),
    include_str!("../../../manifests/base/admission/validating.yaml"),
];

/// An object that a project gets.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    /// One of [`KINDS`].
    pub(super) kind: Kind,
    /// Its name.
    pub(super) name: String,
    /// All of it.
    pub(super) object: Value,
}

impl Manifest {
    /// Kind and name.
    pub(super) fn address(&self) -> String {
        format!("{} {}", self.kind.kind, self.name)
    }
}

/// What the flags ask for, in the order in which it is written.
pub(super) fn manifests(args: &Apply, console: &mut Console) -> Result<Vec<Manifest>, Failure> {
    let mut objects = Vec::new();
    if !args.skip_crds {
        objects.extend(embedded(&CRDS)?);
    }
    if let Some(file) = &args.manifests {
        objects.extend(own(file, console)?);
    } else {
        let mut rights = embedded(&RIGHTS)?;
        for object in &mut rights {
            name_user(object, &args.user);
        }
        objects.extend(rights);
    }
    if let Some(url) = &args.webhook_url {
        let bundle = args.ca_file.as_deref().map(interpreters::read_bundle).transpose()?;
        let bundle = bundle.map(|bundle| BASE64_STANDARD.encode(bundle.to_pem()));
        let mut webhooks = embedded(&ADMISSION)?;
        for object in &mut webhooks {
            call(object, url, bundle.as_deref());
        }
        objects.extend(webhooks);
    }
    in_order(objects)
}

/// Documents of a file that this program brings.
fn embedded(files: &[&str]) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for file in files {
        let documents = yaml::documents(file).map_err(|error| Failure::Environment(error.message))?;
        for document in documents {
            let mut object = value(&document)?;
            object["metadata"]["labels"][PART_OF] = json!(PART_OF_POPCELL);
            objects.push(object);
        }
    }
    Ok(objects)
}

fn value(document: &yaml::Node) -> Result<Value, Failure> {
    serde_json::from_str(&document.to_json()).map_err(|error| Failure::Usage(error.to_string()))
}

/// Objects of the operator's own, which say whose they are.
fn own(file: &Path, console: &mut Console) -> Result<Vec<Value>, Failure> {
    let documents = interpret::documents(file, console)?;
    let objects: Vec<Value> = documents.iter().map(value).try_collect()?;
    for object in &objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if object["metadata"]["labels"][PART_OF] != PART_OF_POPCELL {
            return Err(Failure::Usage(format!(
                "{}: {} {} lacks the label {PART_OF}: {PART_OF_POPCELL}, by which the next run knows it: add it in the kustomization",
                file.display(),
                text("/kind"),
                text("/metadata/name")
            )));
        }
    }
    Ok(objects)
}

/// Kinds in their order, and no object twice.
fn in_order(objects: Vec<Value>) -> Result<Vec<Manifest>, Failure> {
    let mut manifests: Vec<Manifest> = objects.into_iter().map(manifest).try_collect()?;
    let place = |one: &Manifest| KINDS.iter().position(|kind| *kind == one.kind);
    manifests.sort_by_key(place);
    if let Some(twice) = manifests.iter().map(Manifest::address).duplicates().next() {
        return Err(Failure::Usage(format!("{twice} is given twice: give it once")));
    }
    Ok(manifests)
}

fn manifest(object: Value) -> Result<Manifest, Failure> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let found = KINDS
        .iter()
        .find(|one| one.kind == kind && one.api_version() == version);
    let Some(found) = found else {
        let known = KINDS.iter().map(|one| one.kind).join(", ");
        return Err(Failure::Usage(format!(
            "{version} {kind} {name} is no object that a project gets from this command: expected {known}"
        )));
    };
    // It becomes a part of a URL.
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | ':');
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(is_plain) {
        return Err(Failure::Usage(format!(
            "{kind} {name:?}: expected a name of lower-case letters, digits, '-', '.' and ':'"
        )));
    }
    Ok(Manifest {
        kind: *found,
        name: name.to_owned(),
        object,
    })
}

/// Puts the program's user where the manifests name it.
fn name_user(object: &mut Value, user: &str) {
    if object["kind"] == BINDING.kind {
        object["subjects"][0]["name"] = json!(user);
    } else if object["kind"] == POLICY.kind {
        object["spec"]["variables"][0]["expression"] = json!(format!("['{user}']"));
    }
}

/// Has a configuration call a URL in place of the Service, on the same paths.
fn call(object: &mut Value, url: &str, bundle: Option<&str>) {
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
        let mut client = json!({ "url": format!("{url}{path}") });
        if let Some(bundle) = bundle {
            client["caBundle"] = json!(bundle);
        }
        webhook["clientConfig"] = client;
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
pub(super) mod tests;
