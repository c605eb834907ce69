//! `AdmissionReview` of admission.k8s.io/v1 on the wire.
//!
//! Objects stay the text that the API server sent until somebody looks at them: most reviews carry two, and the
//! mutating webhook looks at none.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::refusal::Refusal;

/// What is spoken.
const API_VERSION: &str = "admission.k8s.io/v1";
/// Of requests and answers.
const KIND: &str = "AdmissionReview";

/// Why a body is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// Not JSON, or not of this shape.
    #[error("failed to read the AdmissionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Something else, or another version.
    #[error("failed to read the AdmissionReview: it is a {kind} of {api_version}, not {KIND} of {API_VERSION}")]
    Other {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// No `request`.
    #[error("failed to read the AdmissionReview: it has no request")]
    NoRequest,
    /// The request cannot be told from others.
    #[error("failed to read the AdmissionReview: its request has no uid")]
    NoUid,
    /// The request has a uid and is not of this shape: it can be answered.
    #[error("failed to read the request of the AdmissionReview: {source}")]
    Request {
        /// Its uid.
        uid: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    uid: String,
}

/// Group, version and kind, as in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Gvk {
    #[serde(default)]
    pub(super) group: String,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) kind: String,
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        write!(f, "{kind} of {group}/{version}")
    }
}

/// The part of a request that is looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    pub(super) uid: Cow<'a, str>,
    #[serde(default)]
    pub(super) kind: Gvk,
    #[serde(borrow, default)]
    pub(super) operation: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) user_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) old_object: Option<&'a RawValue>,
}

/// The request in a body.
pub(super) fn decode(body: &[u8]) -> Result<Request<'_>, DecodeError> {
    let envelope: Envelope<'_> = serde_json::from_slice(body)?;
    if envelope.api_version != API_VERSION || envelope.kind != KIND {
        return Err(DecodeError::Other {
            api_version: envelope.api_version.into_owned(),
            kind: envelope.kind.into_owned(),
        });
    }
    let request = envelope.request.ok_or(DecodeError::NoRequest)?.get();
    match serde_json::from_str::<Request<'_>>(request) {
        Ok(request) if request.uid.is_empty() => Err(DecodeError::NoUid),
        Ok(request) => Ok(request),
        Err(source) => {
            let identity = serde_json::from_str::<Identity>(request);
            let uid = identity.map(|identity| identity.uid).unwrap_or_default();
            Err(if uid.is_empty() {
                DecodeError::NoUid
            } else {
                DecodeError::Request { uid, source }
            })
        }
    }
}

/// The answer to the request of this uid; allowed where there is no refusal.
pub(super) fn encode(uid: &str, refusal: Option<&Refusal>) -> String {
    let mut response = json!({ "uid": uid, "allowed": refusal.is_none() });
    if let (Some(refusal), Some(fields)) = (refusal, response.as_object_mut()) {
        fields.insert("status".to_owned(), refusal.status());
    }
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response }).to_string()
}
