//! Metadata that copies of an object share.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// Metadata; a clone shares it until one of the two is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Metadata(Arc<ObjectMeta>);

/// Domains of the keys that we read.
const DOMAINS: [&str; 4] = ["datumapis.com", "datum.net", "karmada.io", "miloapis.com"];
/// How many keys, owners and finalizers of one object are kept, and how long a value may be.
const KEPT: usize = 64;
const VALUE: usize = 1024;

impl Metadata {
    /// Keeps labels and annotations of [`DOMAINS`] that are short, and so many owners and finalizers as anything needs.
    pub(super) fn trim(&mut self) {
        let metadata = &mut **self;
        for keys in [&mut metadata.labels, &mut metadata.annotations] {
            let Some(all) = keys.take() else { continue };
            let kept = all.into_iter().filter(|(key, value)| {
                let domain = key.split_once('/').map_or("", |(domain, _)| domain);
                value.len() <= VALUE && DOMAINS.iter().any(|one| domain.ends_with(one))
            });
            *keys = Some(kept.take(KEPT).collect());
        }
        metadata.owner_references.iter_mut().for_each(|all| all.truncate(KEPT));
        if let Some(all) = &mut metadata.finalizers
            && all.len() > KEPT
        {
            all.retain(|one| {
                one.split_once('/')
                    .is_some_and(|(domain, _)| domain.ends_with(DOMAINS[0]))
            });
        }
        (metadata.generate_name, metadata.managed_fields, metadata.self_link) = (None, None, None);
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
    fn a_tenants_keys_are_thrown_away_and_ours_stay() {
        let mut labels = serde_json::Map::new();
        labels.extend((0..5_000).map(|number| (format!("tenant.example/{number}"), json!("x".repeat(60)))));
        labels.insert("compute.datumapis.com/managed-by".to_owned(), json!("popcell"));
        let finalizers: Vec<String> = (0..5_000).map(|number| format!("tenant.example/{number}")).collect();
        let ours = "compute.datumapis.com/workload-controller".to_owned();
        let mut metadata: Metadata = serde_json::from_value::<ObjectMeta>(json!({ "name": "web", "uid": "u",
            "labels": labels, "annotations": { "compute.datumapis.com/ssh-keys": "x".repeat(VALUE + 1) },
            "finalizers": finalizers.iter().chain([&ours]).collect::<Vec<_>>(),
            "ownerReferences": vec![json!({ "apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b" }); 5_000] }))
        .unwrap()
        .into();
        metadata.trim();
        assert!(serde_json::to_string(&metadata).unwrap().len() < 8_000);
        assert_eq!(metadata.labels.as_ref().unwrap().len(), 1);
        assert_eq!(metadata.finalizers, Some(vec![ours]));
        assert_eq!(
            (metadata.name.as_deref(), metadata.uid.as_deref()),
            (Some("web"), Some("u"))
        );
    }
}
