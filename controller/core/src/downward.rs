//! What a variable of a container may take its value from, beside ConfigMaps and Secrets: fields and resources of what runs
//! (Kubernetes' downward API, k8s.io/kubernetes, pkg/apis/core/validation `validEnvDownwardAPIFieldPathExpressions` and
//! `validContainerResourceFieldPathExpressions`). Kubernetes has those of the node too, which are the platform's own.

use k8s_openapi::api::core::v1::EnvVarSource;

use crate::names::is_qualified_name;

/// Fields of what runs.
pub const FIELDS: [&str; 7] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels['<KEY>']",
    "metadata.annotations['<KEY>']",
    "status.podIP",
    "status.podIPs",
];
/// Fields of the node, and of the account.
const OF_THE_PLATFORM: [&str; 4] = [
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
];
/// Resources that an Instance has a size of: of others the node's own would be shown.
pub const RESOURCES: [&str; 4] = ["limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

/// What is wrong with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<'a> {
    /// This field is the platform's.
    OfThePlatform(&'a str),
    /// There is no such field.
    NoField(&'a str),
    /// This resource is none of an Instance.
    NoResource(&'a str),
}

/// Looks at the source of a variable.
pub fn fault(source: &EnvVarSource) -> Option<Fault<'_>> {
    let field = source.field_ref.as_ref().map(|field| field.field_path.as_str());
    if let Some(field) = field.filter(|field| OF_THE_PLATFORM.contains(field)) {
        return Some(Fault::OfThePlatform(field));
    }
    if let Some(field) = field.filter(|field| !is_own(field)) {
        return Some(Fault::NoField(field));
    }
    let resource = source.resource_field_ref.as_ref().map(|one| one.resource.as_str());
    resource
        .filter(|resource| !RESOURCES.contains(resource))
        .map(Fault::NoResource)
}

fn is_own(field: &str) -> bool {
    let key = |start: &str| field.strip_prefix(start)?.strip_suffix("']");
    let is_label = key("metadata.labels['").is_some_and(is_qualified_name);
    // Of annotations Kubernetes takes capital letters in the domain too.
    let is_annotation = key("metadata.annotations['").is_some_and(|key| is_qualified_name(&key.to_ascii_lowercase()));
    let is_listed = FIELDS.contains(&field) && !field.contains('<');
    is_listed || is_label || is_annotation
}
