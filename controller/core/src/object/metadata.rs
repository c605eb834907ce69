//! Metadata that copies of an object share.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use popcell_api::{annotations, labels};
use serde::Serialize;

/// Metadata; a clone shares it until one of the two is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Metadata(Arc<ObjectMeta>);

/// How long an annotation may be that is kept beside what exceeds a limit.
const VALUE: usize = 1024;
/// The same where hardly anything is kept: a name, or a uid.
const LEAST: usize = 64;
const LEAST_LABELS: [&str; 4] = [
    labels::MANAGED_BY,
    labels::SOURCE_CLUSTER,
    labels::WORKLOAD_DEPLOYMENT_NAME,
    labels::WORKLOAD_DEPLOYMENT_UID,
];
const LEAST_ANNOTATIONS: [&str; 3] = [
    annotations::SOURCE_UID,
    annotations::UPSTREAM_UID,
    annotations::UPSTREAM_GENERATION,
];

impl Metadata {
    /// Keeps the labels and annotations that decide anything, where they are short. Owners and finalizers stay: a list of
    /// them is written as a whole.
    pub(super) fn trim(&mut self) {
        self.keep_keys(labels::ALL, annotations::ALL, VALUE);
        let metadata = &mut **self;
        (metadata.generate_name, metadata.managed_fields, metadata.self_link) = (None, None, None);
    }

    /// The same with what says whose it is, where hardly anything is kept: a few hundred bytes.
    pub(super) fn trim_to_least(&mut self) {
        self.trim();
        self.keep_keys(&LEAST_LABELS, &LEAST_ANNOTATIONS, LEAST);
    }

    fn keep_keys(&mut self, labels: &[&str], annotations: &[&str], longest: usize) {
        let metadata = &mut **self;
        for (keys, known) in [(&mut metadata.labels, labels), (&mut metadata.annotations, annotations)] {
            let Some(mut all) = keys.take() else { continue };
            let found = known.iter().filter_map(|key| all.remove_entry(*key));
            *keys = Some(found.filter(|(_, value)| value.len() <= longest).collect());
        }
    }

    /// The bytes of owners and finalizers, which cannot be shortened.
    pub(super) fn listed_bytes(&self) -> usize {
        let length = |one: &OwnerReference| one.name.len() + one.uid.len() + one.kind.len() + one.api_version.len();
        let owners = self.owner_references.iter().flatten().map(length);
        owners.chain(self.finalizers.iter().flatten().map(String::len)).sum()
    }
}

impl Deref for Metadata {
    type Target = ObjectMeta;

    fn deref(&self) -> &ObjectMeta {
        &self.0
    }
}

impl DerefMut for Metadata {
    fn deref_mut(&mut self) -> &mut ObjectMeta {
        Arc::make_mut(&mut self.0)
    }
}

impl From<ObjectMeta> for Metadata {
    fn from(metadata: ObjectMeta) -> Self {
        Self(Arc::new(metadata))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tenants_keys_are_thrown_away_and_what_is_written_as_a_whole_stays() {
        // Also where they are of our own domain, and come first.
        for domain in ["tenant.example", "a.datumapis.com", "compute.datumapis.com"] {
            let mut labels = serde_json::Map::new();
            labels.extend((0..5_000).map(|number| (format!("{domain}/{number}"), json!("x".repeat(60)))));
            labels.insert("compute.datumapis.com/managed-by".to_owned(), json!("popcell"));
            let annotations = json!({ "compute.datumapis.com/ssh-keys": "x".repeat(VALUE + 1) });
            let finalizers: Vec<String> = (0..100).map(|number| format!("{domain}/{number}")).collect();
            let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b" });
            let metadata = json!({ "name": "web", "uid": "u", "labels": labels, "annotations": annotations,
                "finalizers": finalizers, "ownerReferences": vec![owner; 100] });
            let mut metadata: Metadata = serde_json::from_value::<ObjectMeta>(metadata).unwrap().into();
            metadata.trim();
            let labels: Vec<&String> = metadata.labels.iter().flat_map(|labels| labels.keys()).collect();
            assert_eq!(labels, ["compute.datumapis.com/managed-by"], "{domain}");
            assert!(metadata.annotations.as_ref().unwrap().is_empty());
            assert_eq!(metadata.finalizers, Some(finalizers));
            assert_eq!(metadata.owner_references.as_ref().unwrap().len(), 100);
            assert_eq!(metadata.listed_bytes(), 100 * (domain.len() + 3) - 10 + 100 * 8);
        }
    }
}
