//! Bytes to [`Request`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

use crate::depth::{MAX_DEPTH, too_deep};
use crate::uid::MAX_UID;
use crate::{API_VERSION, Gvk, Health, KIND, Operation, Request, StatusItem, UnknownOperation};

/// Why a body is no request.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or cut off.
    #[error("failed to read the request: {0}")]
    Syntax(serde_json::Error),
    /// JSON, but one value is not what Karmada sends there.
    #[error("failed to read the request: {path}: {message}")]
    Field {
        /// JSON pointer into the body.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// An object or a status nests deeper than [`MAX_DEPTH`].
    #[error("failed to read the request: {path} nests deeper than {MAX_DEPTH} levels at {place}")]
    Depth {
        /// JSON pointer of the object or status into the body.
        path: String,
        /// Where in it, from its root; long ones are cut.
        place: String,
    },
}

impl DecodeError {
    fn field(path: &str, message: impl Into<String>) -> Self {
        Self::Field {
            path: path.to_owned(),
            message: message.into(),
        }
    }
}

/// Reads one request. Unknown fields are ignored, known ones may appear once. Objects are not looked into: only that
/// they are there, are JSON objects in UTF-8, and nest no deeper than [`MAX_DEPTH`] each.
pub fn decode(body: &[u8]) -> Result<Request<'_>, DecodeError> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| diagnose(body, error))?;
    if envelope
        .api_version
        .as_ref()
        .is_some_and(|version| version.0 != API_VERSION)
    {
        return Err(DecodeError::field("/apiVersion", format!("expected {API_VERSION:?}")));
    }
    if envelope.kind.as_ref().is_some_and(|kind| kind.0 != KIND) {
        return Err(DecodeError::field("/kind", format!("expected {KIND:?}")));
    }
    let request = envelope
        .request
        .ok_or_else(|| DecodeError::field("/request", "missing"))?;
    check(&request)?;
    let aggregated_status = request.aggregated_status.unwrap_or_default();
    Ok(Request {
        uid: request.uid.0,
        kind: Gvk::new(request.kind.group, request.kind.version, request.kind.kind),
        name: request.name.map(|name| name.0).unwrap_or_default(),
        namespace: request
            .namespace
            .map(|namespace| namespace.0)
            .filter(|namespace| !namespace.is_empty()),
        operation: request.operation.0,
        object: request.object,
        observed_object: request.observed_object,
        replicas: request.replicas,
        aggregated_status: aggregated_status.into_iter().map(StatusItem::from).collect(),
    })
}

fn check(request: &RawRequest<'_>) -> Result<(), DecodeError> {
    let uid = request.uid.0.len();
    if uid > MAX_UID {
        let message = format!("has {uid} bytes, the limit is {MAX_UID}");
        return Err(DecodeError::field("/request/uid", message));
    }
    if request.kind.version.is_empty() {
        return Err(DecodeError::field("/request/kind/version", "missing"));
    }
    if request.kind.kind.is_empty() {
        return Err(DecodeError::field("/request/kind/kind", "missing"));
    }
    require_object("/request/object", request.object)?;
    require_depth("/request/object", request.object)?;
    match (request.observed_object, request.operation.0) {
        (Some(observed), _) => {
            require_object("/request/observedObject", observed)?;
            require_depth("/request/observedObject", observed)?;
        }
        (None, Operation::Retain) => {
            return Err(DecodeError::field(
                "/request/observedObject",
                "missing: Retain needs it",
            ));
        }
        (None, _) => {}
    }
    for (index, item) in request.aggregated_status.iter().flatten().enumerate() {
        if let Some(status) = item.status {
            require_depth(&format!("/request/aggregatedStatus/{index}/status"), status)?;
        }
    }
    match (request.replicas, request.operation.0) {
        (None, Operation::ReviseReplica) => Err(DecodeError::field(
            "/request/replicas",
            "missing: ReviseReplica needs it",
        )),
        (Some(replicas), Operation::ReviseReplica) if replicas < 0 => Err(DecodeError::field(
            "/request/replicas",
            format!("expected 0 or more, found {replicas}"),
        )),
        _ => Ok(()),
    }
}

fn require_object(path: &str, value: &RawValue) -> Result<(), DecodeError> {
    let found = match value.get().as_bytes().first() {
        Some(b'{') => return Ok(()),
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    Err(DecodeError::field(path, format!("expected an object, found {found}")))
}

fn require_depth(path: &str, value: &RawValue) -> Result<(), DecodeError> {
    too_deep(value.get().as_bytes()).map_or(Ok(()), |place| {
        Err(DecodeError::Depth {
            path: path.to_owned(),
            place,
        })
    })
}

#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    request: Option<RawRequest<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    kind: RawKind<'a>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    operation: Spelled,
    #[serde(borrow)]
    object: &'a RawValue,
    #[serde(borrow)]
    observed_object: Option<&'a RawValue>,
    replicas: Option<i32>,
    #[serde(borrow)]
    aggregated_status: Option<Vec<RawItem<'a>>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct RawKind<'a> {
    #[serde(borrow)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawItem<'a> {
    #[serde(borrow)]
    cluster_name: Text<'a>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(default)]
    applied: bool,
    #[serde(borrow)]
    applied_message: Option<Text<'a>>,
    #[serde(borrow)]
    health: Option<Text<'a>>,
}

impl<'a> From<RawItem<'a>> for StatusItem<'a> {
    fn from(item: RawItem<'a>) -> Self {
        Self {
            cluster_name: item.cluster_name.0,
            status: item.status,
            applied: item.applied,
            applied_message: item.applied_message.map(|message| message.0).unwrap_or_default(),
            // A word that a newer Karmada invented says no more than "unknown".
            health: item
                .health
                .filter(|health| !health.0.is_empty())
                .map(|health| Health::from_wire(&health.0).unwrap_or(Health::Unknown)),
        }
    }
}

/// A string that borrows when it has no escapes. serde borrows a plain `Cow` only outside of `Option`.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Spelled(Operation);

impl<'de> Deserialize<'de> for Spelled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Spelled;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an operation")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Spelled, E> {
                Operation::from_wire(name)
                    .map(Spelled)
                    .ok_or_else(|| E::custom(UnknownOperation::new(name)))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

/// Looks for the field that made decoding fail, one by one: serde names only a column.
fn diagnose(body: &[u8], error: serde_json::Error) -> DecodeError {
    #[derive(serde::Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        request: Option<&'a RawValue>,
    }
    if !error.is_data() {
        return DecodeError::Syntax(error);
    }
    let Ok(Outer { request: Some(request) }) = serde_json::from_slice(body) else {
        return DecodeError::Field {
            path: String::new(),
            message: without_position(&error),
        };
    };
    field_of_request(request.get()).map_or_else(
        || DecodeError::field("/request", without_position(&error)),
        |(path, message)| DecodeError::Field { path, message },
    )
}

fn field_of_request(request: &str) -> Option<(String, String)> {
    fn failure<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<String> {
        serde_json::from_str::<T>(raw.get())
            .err()
            .map(|error| without_position(&error))
    }
    let fields: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(request).ok()?;
    fields.iter().find_map(|(name, raw)| {
        let message = match &**name {
            "uid" | "name" | "namespace" => failure::<Option<Text<'_>>>(raw),
            "kind" => failure::<RawKind<'_>>(raw),
            "operation" => failure::<Spelled>(raw),
            "replicas" => failure::<Option<i32>>(raw),
            "aggregatedStatus" => {
                let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
                    return failure::<Option<Vec<RawItem<'_>>>>(raw)
                        .map(|message| ("/request/aggregatedStatus".to_owned(), message));
                };
                return items.iter().enumerate().find_map(|(index, item)| {
                    let message = failure::<RawItem<'_>>(item)?;
                    Some((format!("/request/aggregatedStatus/{index}"), message))
                });
            }
            _ => None,
        }?;
        Some((format!("/request/{name}"), message))
    })
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(message, _)| message.to_owned())
}
