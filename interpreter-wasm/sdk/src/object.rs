//! A whole Kubernetes object.

use std::ops::{Deref, DerefMut};

use crate::{Error, Json, Result};

/// A whole Kubernetes object: a [`Json`] object with short ways to what every object has.
///
/// The readers of names are lenient (absent or of another type = empty): the API server has checked them already.
#[derive(Debug, Clone, PartialEq)]
pub struct Object(Json);

impl Object {
    /// Reads an object from JSON text.
    ///
    /// # Errors
    /// [`Error::InvalidObject`] where the text is not JSON, is nested too deeply or is no JSON object.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self> {
        Json::parse(text)?.try_into()
    }

    /// `/apiVersion`.
    pub fn api_version(&self) -> &str {
        self.lenient("/apiVersion").unwrap_or_default()
    }

    /// `/kind`.
    pub fn kind(&self) -> &str {
        self.lenient("/kind").unwrap_or_default()
    }

    /// `/metadata/name`.
    pub fn name(&self) -> &str {
        self.lenient("/metadata/name").unwrap_or_default()
    }

    /// `/metadata/namespace`; absent for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.lenient("/metadata/namespace")
    }

    /// `/metadata/generation`.
    pub fn generation(&self) -> Result<Option<i64>> {
        self.int("/metadata/generation")
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.get("/metadata/labels")?.member(key)?.as_text()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.get("/metadata/annotations")?.member(key)?.as_text()
    }

    /// The object as plain JSON.
    pub fn into_json(self) -> Json {
        self.0
    }

    fn lenient(&self, pointer: &str) -> Option<&str> {
        self.get(pointer)?.as_text()
    }
}

impl TryFrom<Json> for Object {
    type Error = Error;

    fn try_from(value: Json) -> Result<Self> {
        if value.is_object() {
            Ok(Self(value))
        } else {
            Err(Error::invalid(
                "",
                format!("expected an object, found {}", value.found()),
            ))
        }
    }
}

impl Deref for Object {
    type Target = Json;

    fn deref(&self) -> &Json {
        &self.0
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Json {
        &mut self.0
    }
}

#[cfg(test)]
mod tests;
