//! What counts as absence.

use kube::core::Status;

/// Plural and name of the object that an API server says is not there.
///
/// Any other 404 says nothing about an object: that of a proxy, of a path that is not served, of a namespace. kube makes a
/// Status of whatever body it gets, with another reason.
pub fn absent(status: &Status) -> Option<(&str, &str)> {
    let details = status.details.as_ref().filter(|_| status.reason == "NotFound")?;
    Some((&details.kind, &details.name))
}
