//! The request as Karmada sends it (pkg/apis/config/v1alpha1/interpretercontext_types.go), and bytes to [`Request`].

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::scan::{MAX_UID, kind_name, too_deep};
use crate::{API_VERSION, Gvk, Health, KIND, MAX_DEPTH, Operation};

/// What one member cluster reported (work/v1alpha2 `AggregatedStatusItem`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusItem<'a> {
    /// Name of the member's `Cluster`.
    #[serde(borrow)]
    pub cluster_name: Cow<'a, str>,
    /// What InterpretStatus returned there; `None` while nothing was collected.
    #[serde(borrow)]
    pub status: Option<&'a RawValue>,
    /// Whether the object was applied in the member.
    #[serde(default)]
    pub applied: bool,
    /// Why it was not.
    #[serde(borrow, default, deserialize_with = "text")]
    pub applied_message: Cow<'a, str>,
    /// Health in the member; data of old Karmada versions may have none.
    #[serde(default, deserialize_with = "health")]
    pub health: Option<Health>,
}

/// One question about one object. Everything but the kind borrows from the body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The text that all of this was read from.
    pub body: &'a [u8],
    /// Names the question; the answer must carry the same.
    pub uid: Cow<'a, str>,
    /// Kind of the object.
    pub kind: Gvk,
    /// Name of the object.
    pub name: Cow<'a, str>,
    /// Namespace of the object; `None` for cluster-scoped ones.
    pub namespace: Option<Cow<'a, str>>,
    /// What is asked.
    pub operation: Operation,
    /// The object: always a JSON object.
    pub object: &'a RawValue,
    /// The object as the member cluster has it: always there for Retain, and then a JSON object.
    pub observed_object: Option<&'a RawValue>,
    /// Present (as 0) for every operation: only ReviseReplica may look at it.
    pub replicas: Option<i32>,
    /// One item per member cluster, for AggregateStatus.
    pub aggregated_status: Vec<StatusItem<'a>>,
}

/// A string that borrows when it has no escapes. serde borrows a plain `Cow` only outside of `Option`.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A text that may be null, which says the same as none.
fn text<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Cow<'a, str>, D::Error> {
    let text: Option<Text<'a>> = Option::deserialize(deserializer)?;
    Ok(text.unwrap_or_default().0)
}

fn health<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Health>, D::Error> {
    Ok(match &*text(deserializer)? {
        "" => None,
        // A word that a newer Karmada invented says no more than "unknown".
        word => Some(Health::from_wire(word).unwrap_or(Health::Unknown)),
    })
}

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
    Ok(Request {
        body,
        uid: request.uid,
        kind: Gvk::new(request.kind.group, request.kind.version, request.kind.kind),
        name: request.name,
        namespace: Some(request.namespace).filter(|namespace| !namespace.is_empty()),
        operation: request.operation,
        object: request.object,
        observed_object: request.observed_object,
        replicas: request.replicas,
        aggregated_status: request.aggregated_status.unwrap_or_default(),
    })
}

fn check(request: &RawRequest<'_>) -> Result<(), DecodeError> {
    let uid = request.uid.len();
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
    match (request.observed_object, request.operation) {
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
    match (request.replicas, request.operation) {
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
    match kind_name(value.get()) {
        "an object" => Ok(()),
        found => Err(DecodeError::field(path, format!("expected an object, found {found}"))),
    }
}

fn require_depth(path: &str, value: &RawValue) -> Result<(), DecodeError> {
    too_deep(value.get().as_bytes()).map_or(Ok(()), |place| {
        Err(DecodeError::Depth {
            path: path.to_owned(),
            place,
        })
    })
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    request: Option<RawRequest<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    kind: RawKind<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    namespace: Cow<'a, str>,
    #[serde(deserialize_with = "operation")]
    operation: Operation,
    #[serde(borrow)]
    object: &'a RawValue,
    #[serde(borrow)]
    observed_object: Option<&'a RawValue>,
    replicas: Option<i32>,
    #[serde(borrow)]
    aggregated_status: Option<Vec<StatusItem<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawKind<'a> {
    #[serde(borrow)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

fn operation<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Operation, D::Error> {
    let Text(name) = Text::deserialize(deserializer)?;
    Operation::from_wire(&name).ok_or_else(|| de::Error::custom(crate::UnknownOperation::new(&name)))
}

/// Reads the body once more to find the value that made decoding fail: `serde_json` names only a column.
fn diagnose(body: &[u8], error: serde_json::Error) -> DecodeError {
    if !error.is_data() {
        return DecodeError::Syntax(error);
    }
    let again = &mut serde_json::Deserializer::from_slice(body);
    let path = serde_path_to_error::deserialize::<_, Envelope<'_>>(again)
        .err()
        .map(|traced| pointer(traced.path()));
    DecodeError::Field {
        path: path.unwrap_or_default(),
        message: without_position(&error),
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        named => format!("/{named}"),
    };
    path.iter().map(step).collect()
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(message, _)| message.to_owned())
}
