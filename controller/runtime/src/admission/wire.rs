//! `AdmissionReview` of admission.k8s.io/v1 on the wire.
//!
//! Objects stay the text that the API server sent until they are read: most reviews carry two, and the
//! mutating webhook looks at none. And a request that cannot be read is answered as long as it has a uid. The
//! `AdmissionReview` of kube 5.0 (`kube::core::admission`) decodes whole objects, and fails without a uid to answer.

use std::borrow::Cow;
use std::fmt;

use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusCause, StatusDetails};
use popcell_api::kind::Kind;
use popcell_core::admission::{Fault, FieldError, refusal};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// What is spoken.
const API_VERSION: &str = "admission.k8s.io/v1";
/// Of requests and answers.
const REVIEW: &str = "AdmissionReview";

/// Why a body is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    /// Not JSON, or not of this shape.
    #[error("failed to read the AdmissionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Something else, or another version.
    #[error("failed to read the AdmissionReview: it is a {kind} of {api_version}, not {REVIEW} of {API_VERSION}")]
    Other {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// No `request`.
    #[error("failed to read the AdmissionReview: it has no request")]
    NoRequest,
    /// The request cannot be distinguished from others.
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
    pub(super) sub_resource: Cow<'a, str>,
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
    if envelope.api_version != API_VERSION || envelope.kind != REVIEW {
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

/// The answer to the request of this uid: allowed with these warnings, or refused.
pub(super) fn encode(uid: &str, answer: Result<&[String], &Refusal>) -> String {
    let response = match answer {
        Ok([]) => json!({ "uid": uid, "allowed": true }),
        Ok(warnings) => json!({ "uid": uid, "allowed": true, "warnings": warnings }),
        Err(refusal) => json!({ "uid": uid, "allowed": false, "status": refusal.status() }),
    };
    json!({ "apiVersion": API_VERSION, "kind": REVIEW, "response": response }).to_string()
}

/// Why a request is refused, in the words of `k8s.io/apimachinery/pkg/api/errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Fields break rules.
    Invalid,
    /// The request names no valid project.
    Forbidden,
    /// It cannot be read, or should not have come here.
    BadRequest,
    /// Unknown.
    InternalError,
}

/// A refusal, as the user of the API server finds it (metav1.Status).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) message: String,
    details: Option<Box<StatusDetails>>,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::Forbidden => "Forbidden",
            Self::BadRequest => "BadRequest",
            Self::InternalError => "InternalError",
        }
    }

    fn code(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Refusal {
    /// Fields are at fault. Invalid as soon as one of them certainly is, since then no repetition can help; where nobody
    /// could tell about any of them it is an internal error, which clients may repeat.
    pub(super) fn fields(kind: Kind, name: &str, errors: &[FieldError]) -> Self {
        let cause = |error: &FieldError| StatusCause {
            field: Some(error.path.clone()),
            message: Some(error.fault.to_string()),
            reason: Some(error.reason().to_owned()),
        };
        let unsure = errors.iter().all(|error| matches!(error.fault, Fault::Internal(_)));
        Self {
            reason: if unsure { Reason::InternalError } else { Reason::Invalid },
            message: refusal(kind, name, errors),
            details: Some(Box::new(StatusDetails {
                causes: Some(errors.iter().map(cause).collect()),
                ..details(kind.kind, kind, name)
            })),
        }
    }

    /// What a log has of it: fields and reasons, and no value of a spec.
    pub(super) fn brief(&self) -> String {
        let Some(causes) = self.details.as_ref().and_then(|details| details.causes.as_ref()) else {
            return self.message.clone();
        };
        let reported = causes.iter().map(|StatusCause { field, reason, .. }| {
            let [field, reason] = [field, reason].map(|text| text.as_deref().unwrap_or_default());
            format!("{field}: {reason}")
        });
        reported.collect::<Vec<_>>().join(", ")
    }

    /// The request may not be made.
    pub(super) fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        let (plural, group) = (kind.plural, kind.group);
        Self {
            reason: Reason::Forbidden,
            message: format!("{plural}.{group} \"{name}\" is forbidden: {why}"),
            details: Some(Box::new(details(plural, kind, name))),
        }
    }

    /// The request cannot be read.
    pub(super) fn bad(message: String) -> Self {
        Self {
            reason: Reason::BadRequest,
            message,
            details: None,
        }
    }

    /// A bug of ours.
    pub(super) fn panicked() -> Self {
        Self {
            reason: Reason::InternalError,
            message: "Internal error occurred: failed to review the request (a bug in popcell; its log has more)"
                .to_owned(),
            details: None,
        }
    }

    /// As the answer to a review carries it.
    fn status(&self) -> Status {
        Status {
            code: Some(self.reason.code().as_u16().into()),
            details: self.details.as_deref().cloned(),
            message: Some(self.message.clone()),
            reason: Some(self.reason.name().to_owned()),
            status: Some("Failure".to_owned()),
            ..Status::default()
        }
    }
}

/// `called`: errors name kinds of objects, and what is forbidden by its resource.
fn details(called: &str, kind: Kind, name: &str) -> StatusDetails {
    StatusDetails {
        name: Some(name.to_owned()),
        group: Some(kind.group.to_owned()),
        kind: Some(called.to_owned()),
        ..StatusDetails::default()
    }
}
