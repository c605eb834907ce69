//! What counts as absence.

use kube::core::Status;
use popcell_api::kind::Kind;
use serde_json::Value;

/// Plural and name of the object that an API server says is not there.
///
/// Any other 404 says nothing about an object: that of a proxy, of a path that is not served, of a namespace. kube makes a
/// Status of whatever body it gets, with another reason.
pub fn absent(status: &Status) -> Option<(&str, &str)> {
    let details = status.details.as_ref().filter(|_| status.reason == "NotFound")?;
    Some((&details.kind, &details.name))
}

/// Whether the resources of a group and version have a kind. An answer that is no list of resources may have any.
pub fn serves_resource(resources: &Value, kind: Kind) -> bool {
    let Some(resources) = resources.get("resources").and_then(Value::as_array) else {
        return true;
    };
    let named = |one: &Value| one.get("name").and_then(Value::as_str) == Some(kind.plural);
    resources.iter().any(named)
}

/// Whether the groups of a server have that of a kind, in its version. An answer that is no list of groups may have any.
pub fn serves_group(groups: &Value, kind: Kind) -> bool {
    let Some(groups) = groups.get("groups").and_then(Value::as_array) else {
        return true;
    };
    groups.iter().any(|group| {
        let versions = group.get("versions").and_then(Value::as_array);
        let is_version = |one: &Value| one.get("version").and_then(Value::as_str) == Some(kind.version);
        group.get("name").and_then(Value::as_str) == Some(kind.group)
            && versions.is_some_and(|all| all.iter().any(is_version))
    })
}
