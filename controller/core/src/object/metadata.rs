//! Metadata that copies of an object share.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// Metadata; a clone shares it until one of the two is changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Metadata(Arc<ObjectMeta>);

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
