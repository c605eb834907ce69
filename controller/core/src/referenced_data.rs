//! ConfigMaps and Secrets that a template names, on their way to the cities that need them: versions, and what a city is to have.
//!
//! - Of an object nothing but its version leaves the plane it is read on, and a version says of what it holds no more than how many
//!   KiB it has: it is hashed with the uid of its source, which only those know who may read it.
//! - What a city is to have is one hash over the versions of all that its WorkloadDeployment names.
//!
//! Why: `docs/decisions/31-configuration-and-secrets.md`.

use popcell_api::{annotations, labels};
use serde_json::{Value, json};

use crate::deployment;
use crate::object::{Fields, Object};
use crate::references::Reference;

/// What the WorkloadDeployment of a city says that it is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// Nothing: popcell does not carry them, and what is there is used.
    Anything,
    /// It is not known yet; perhaps why not.
    Pending(Option<&'a str>),
    /// The [`hash`] of the versions.
    Hash(&'a str),
}

impl<'a> Expected<'a> {
    /// What a WorkloadDeployment says.
    pub fn of(deployment: &'a Object) -> Self {
        match deployment.annotation(annotations::EXPECTED_REFERENCED_DATA) {
            None => Self::Anything,
            Some(annotations::DATA_PENDING) => Self::Pending(deployment.annotation(annotations::REFERENCED_DATA_ERROR)),
            Some(hash) => Self::Hash(hash),
        }
    }
}

const KIB: usize = 1 << 10;

/// Fields of a ConfigMap or Secret that make up what it holds.
pub const FIELDS: [&str; 3] = ["data", "binaryData", "type"];

/// What a source holds.
pub(crate) fn held(source: &Object) -> Value {
    let fields = FIELDS.iter();
    let held = fields.filter_map(|field| Some(((*field).to_owned(), source.data.get(*field)?.clone())));
    Value::Object(held.collect())
}

/// The version of what a source holds.
pub fn version_of_source(source: &Object) -> String {
    version_of(source.uid(), source)
}

/// The version of what an object holds, as a copy of the source with this uid: its hash and, after a dash, how many KiB of JSON it
/// has, rounded up.
pub(crate) fn version_of(source_uid: &str, object: &Object) -> String {
    let held = held(object);
    let fields = held.as_object().into_iter().flat_map(|fields| fields.values());
    let bytes: usize = fields
        .filter(|one| !deployment::is_nothing(one))
        .map(|one| one.to_string().len())
        .sum();
    format!(
        "{}-{}",
        deployment::hash(&json!([source_uid, held])),
        bytes.div_ceil(KIB)
    )
}

/// How many bytes what has this version holds, as it says; `None` where it says more than any server keeps.
pub(crate) fn bytes_of(version: &str) -> Option<usize> {
    let kib: u16 = version.rsplit_once('-')?.1.parse().ok()?;
    Some(usize::from(kib) * KIB)
}

/// The version of an object as it is in a city, read with or without its data: that of its source where it is a copy of ours, or
/// its own.
pub fn version(object: &Object) -> String {
    let copied = object.annotation(annotations::DATA_VERSION).filter(|_| object.marked());
    let own = || deployment::hash(&json!([object.uid(), object.metadata.resource_version]));
    copied.map_or_else(own, str::to_owned)
}

/// One hash over the versions of all that a template names.
pub fn hash<'a>(versions: impl IntoIterator<Item = (&'a Reference, &'a str)>) -> String {
    let versions = versions.into_iter();
    let versions: Vec<Value> = versions
        .map(|(one, version)| json!([one.to_string(), version]))
        .collect();
    deployment::hash(&Value::Array(versions))
}

/// Labels of a copy.
pub(crate) fn copy_labels() -> [(&'static str, &'static str); 2] {
    [
        (labels::MANAGED_BY, labels::MANAGED_BY_POPCELL),
        (labels::REFERENCED_DATA, labels::REFERENCED_DATA_TRUE),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;

    #[test]
    fn a_version_follows_what_is_held_and_tells_nothing_to_who_does_not_know_the_source() {
        let secret = |uid: &str, fields: Value| {
            let mut value = fields;
            value["metadata"] = json!({ "name": "a", "uid": uid, "resourceVersion": "1" });
            version_of_source(&object(value))
        };
        let one = secret("u1", json!({ "type": "Opaque", "data": { "a": "eA==" } }));
        assert_eq!(
            one,
            secret(
                "u1",
                json!({ "type": "Opaque", "data": { "a": "eA==" }, "immutable": true })
            )
        );
        assert_eq!(bytes_of(&one), Some(KIB));
        let large = secret("u1", json!({ "type": "Opaque", "data": { "a": "x".repeat(2 * KIB) } }));
        assert_eq!(bytes_of(&large), Some(3 * KIB));
        for other in ["f00", "f00-", "f00-65536", "f00-18446744073709551615"] {
            assert_eq!(bytes_of(other), None);
        }
        for other in [
            secret("u2", json!({ "type": "Opaque", "data": { "a": "eA==" } })),
            secret("u1", json!({ "type": "Opaque", "data": { "a": "eQ==" } })),
            secret("u1", json!({ "type": "other", "data": { "a": "eA==" } })),
            secret("u1", json!({ "type": "Opaque" })),
            secret("u1", json!({ "type": "Opaque", "binaryData": { "a": "eA==" } })),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn only_a_copy_of_ours_has_the_version_of_its_source() {
        let config_map = |labels: Value, version: &str| {
            object(
                json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": version, "labels": labels,
                "annotations": { annotations::DATA_VERSION: "f00" } } }),
            )
        };
        let ours = json!({ labels::MANAGED_BY: labels::MANAGED_BY_POPCELL });
        assert_eq!(version(&config_map(ours.clone(), "1")), "f00");
        assert_eq!(version(&config_map(ours, "2")), "f00");
        let theirs = version(&config_map(json!({}), "1"));
        assert_ne!(theirs, "f00");
        assert_ne!(theirs, version(&config_map(json!({}), "2")));
    }

    #[test]
    fn what_a_city_is_to_have_is_read_as_it_is_written() {
        let deployment =
            |annotations: Value| object(json!({ "metadata": { "name": "web", "annotations": annotations } }));
        let (expected, error) = (
            annotations::EXPECTED_REFERENCED_DATA,
            annotations::REFERENCED_DATA_ERROR,
        );
        for (given, meant) in [
            (json!({}), Expected::Anything),
            (json!({ error: "why" }), Expected::Anything),
            (json!({ expected: "pending" }), Expected::Pending(None)),
            (
                json!({ expected: "pending", error: "why" }),
                Expected::Pending(Some("why")),
            ),
            (json!({ expected: "f00", error: "why" }), Expected::Hash("f00")),
        ] {
            assert_eq!(Expected::of(&deployment(given)), meant);
        }
    }

    #[test]
    fn the_hash_of_all_tells_names_and_versions_apart() {
        let (a, b) = (
            Reference::of_key("secrets/a").unwrap(),
            Reference::of_key("secrets/b").unwrap(),
        );
        let one = hash([(&a, "1"), (&b, "2")]);
        assert_eq!(one, hash([(&a, "1"), (&b, "2")]));
        for other in [hash([(&a, "2"), (&b, "1")]), hash([(&a, "1")]), hash([])] {
            assert_ne!(one, other);
        }
    }
}
