//! A whole Kubernetes object.

use std::ops::{Deref, DerefMut};

use crate::{Error, Json, Result};

/// A whole Kubernetes object: a [`Json`] object with short ways to what every object has.
///
/// The readers of names are lenient (absent or of another type = empty): the API server has checked them already.
#[derive(Debug, Clone)]
pub struct Object {
    json: Json,
    left_out: u32,
}

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

    /// Says, in AggregateStatus, that so many more parts of the reported statuses were skipped of the object, since the
    /// API server would refuse them. The webhook counts them (`popcell_status_parts_dropped_total`), so that what
    /// vanishes on the way up is seen; the answer is the same. Other operations ignore it.
    pub fn leave_out(&mut self, parts: u32) {
        self.left_out = self.left_out.saturating_add(parts);
    }

    /// How many parts [`Object::leave_out`] was given.
    pub(crate) fn left_out(&self) -> u32 {
        self.left_out
    }

    /// The object as plain JSON.
    pub fn into_json(self) -> Json {
        self.json
    }

    fn lenient(&self, pointer: &str) -> Option<&str> {
        self.get(pointer)?.as_text()
    }
}

impl PartialEq for Object {
    /// Whether the JSON is equal.
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl TryFrom<Json> for Object {
    type Error = Error;

    fn try_from(value: Json) -> Result<Self> {
        if value.is_object() {
            Ok(Self {
                json: value,
                left_out: 0,
            })
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
        &self.json
    }
}

impl DerefMut for Object {
    fn deref_mut(&mut self) -> &mut Json {
        &mut self.json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_object_has_is_read_shortly() {
        let object = Object::parse(
            r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "generation": 3,
            "labels": {"a.io/b": "c"}, "annotations": {"x": "y"}}}"#,
        )
        .unwrap();
        assert_eq!(
            (object.api_version(), object.kind(), object.name()),
            ("v1", "ConfigMap", "a")
        );
        assert_eq!((object.namespace(), object.generation()), (Some("ns"), Ok(Some(3))));
        assert_eq!(
            (object.label("a.io/b"), object.label("a"), object.annotation("x")),
            (Some("c"), None, Some("y"))
        );
    }

    #[test]
    fn an_empty_object_answers_everything() {
        let object = Object::parse("{}").unwrap();
        assert_eq!(
            (object.api_version(), object.kind(), object.name(), object.namespace()),
            ("", "", "", None)
        );
        assert_eq!(
            (object.generation(), object.label("a"), object.annotation("a")),
            (Ok(None), None, None)
        );
    }

    #[test]
    fn only_objects_are_objects() {
        for (text, found) in [("[]", "an array"), ("null", "null"), ("\"x\"", "\"x\"")] {
            let message = format!("expected an object, found {found}");
            assert_eq!(Object::parse(text), Err(Error::invalid("", message)));
        }
        assert!(matches!(Object::parse("{"), Err(Error::InvalidObject { .. })));
    }
}
