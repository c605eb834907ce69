//! What a list or watch yields: any JSON object, as text.
//!
//! Invariant: splitting what a server sent never fails for one of its objects. One that cannot be read harms itself only.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Object;

/// An object, or why it cannot be read.
#[derive(Clone, Debug)]
pub struct Raw {
    namespace: String,
    name: String,
    version: String,
    /// The object, or why it cannot be read.
    pub object: Result<Box<Object>, String>,
}

impl Raw {
    /// From the text of an object.
    pub fn read(text: &str) -> Self {
        let object = Object::read(text);
        let [namespace, name, version] = match &object {
            Ok(object) => {
                let metadata = &object.metadata;
                [&metadata.namespace, &metadata.name, &metadata.resource_version].map(Clone::clone)
            }
            Err(_) => Object::address_in(text),
        };
        Self {
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            version: version.unwrap_or_default(),
            object: object.map(Box::new).map_err(|error| error.to_string()),
        }
    }

    /// Its namespace; empty for objects of the cluster.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name; empty where it says none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its resourceVersion.
    pub fn version(&self) -> &str {
        &self.version
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::read(text.get()))
    }
}

/// A line of a watch: the type of its event, and the text of the object that it is about.
#[derive(Debug, Deserialize)]
pub struct EventLine<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<'a> EventLine<'a> {
    /// From the text of the line, in whatever order.
    ///
    /// # Errors
    /// It is no event; the error says values of the line, and is not to be shown.
    pub fn read(text: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }

    /// The object's text.
    pub fn object(&self) -> &'a str {
        self.object.get()
    }
}

/// A list, or a page of one.
#[derive(Debug, Deserialize)]
pub struct List {
    /// What is said of the list itself.
    #[serde(default)]
    pub metadata: ListMetadata,
    /// Null in some servers' empty lists; never absent.
    #[serde(deserialize_with = "Option::deserialize")]
    pub items: Option<Vec<Raw>>,
}

impl List {
    /// From the text of an answer.
    ///
    /// # Errors
    /// It is no list; the error says values of the answer, and is not to be shown.
    pub fn read(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }
}

/// What is there and cannot be read: whatever it is, it holds its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// Its namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Its name; empty where it says none: it may be any.
    pub name: String,
    /// Why it cannot be read.
    pub why: String,
}

/// A whole list: what can be read of it, and what is there all the same.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// What can be read.
    pub objects: Vec<Object>,
    /// What cannot.
    pub unreadable: Vec<Unreadable>,
    /// The version that the list is of; empty where the server does not say.
    pub version: String,
}

impl Listed {
    /// How many there are, readable or not.
    pub fn count(&self) -> usize {
        self.objects.len() + self.unreadable.len()
    }
}

impl From<List> for Listed {
    fn from(list: List) -> Self {
        let mut listed = Self {
            version: list.metadata.resource_version.unwrap_or_default(),
            ..Self::default()
        };
        for raw in list.items.into_iter().flatten() {
            match raw.object {
                Ok(object) => listed.objects.push(*object),
                Err(why) => listed.unreadable.push(Unreadable {
                    namespace: raw.namespace,
                    name: raw.name,
                    why,
                }),
            }
        }
        listed
    }
}

/// What is said of the list itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMetadata {
    /// The version that the list is of.
    pub resource_version: Option<String>,
    /// The token for the next page; none or empty at the last.
    #[serde(rename = "continue")]
    pub more: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::{Excess, Fields};

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn an_object_that_cannot_be_read_is_known_by_its_address() {
        let bad = Raw::read(r#"{"metadata":{"name":"bad","namespace":"n","resourceVersion":"3","labels":"s3cret"}}"#);
        assert_eq!((bad.namespace(), bad.name(), bad.version()), ("n", "bad", "3"));
        let error = bad.object.unwrap_err();
        assert!(error.contains("metadata") && !error.contains("s3cret"), "{error}");
        assert_eq!(Raw::read(r#"{"spec":3}"#).name(), "");
    }

    #[test]
    fn managed_fields_are_not_kept_and_unknown_fields_are() {
        let good =
            Raw::read(r#"{"metadata":{"name":"good","managedFields":[{"manager":"x"}]},"spec":{"unknown":[1,null]}}"#);
        let object = good.object.unwrap();
        assert_eq!(object.metadata.managed_fields, None);
        assert_eq!(object.at("/spec/unknown/0"), Some(&json!(1)));
    }

    #[test]
    fn managed_fields_that_nest_deeper_than_the_object_do_not_count() {
        let text = format!(
            r#"{{"metadata":{{"name":"a","managedFields":[{{"fieldsV1":{}}}]}},"spec":{}}}"#,
            nested(70),
            nested(63)
        );
        let object = Raw::read(&text).object.unwrap();
        assert_eq!((object.excess(), object.at("/spec").is_some()), (None, true));
    }

    #[test]
    fn however_deeply_an_object_nests_it_is_read_and_says_so() {
        for (levels, is_there) in [
            (61, true),
            (62, true),
            (63, false),
            (122, false),
            (200, false),
            (100_000, false),
        ] {
            let text = format!(
                r#"{{"metadata":{{"name":"deep"}},"spec":{{"deep":{}}},"status":{{"replicas":1}}}}"#,
                nested(levels)
            );
            let object = Raw::read(&text).object.unwrap();
            let excess = (!is_there).then_some(Excess::Depth { levels: levels + 2 });
            assert_eq!(
                (object.at("/spec").is_some(), object.excess()),
                (is_there, excess),
                "{levels}"
            );
            assert_eq!(object.int("/status/replicas"), Some(1), "{levels}");
        }
    }
}
