//! A refusal, as the user of the API server finds it (metav1.Status).

use http::StatusCode;
use popcell_api::kind::Kind;
use popcell_core::admission::{Fault, FieldError, refusal};
use serde_json::{Value, json};

/// Why a request is refused, in the words of `k8s.io/apimachinery/pkg/api/errors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Fields break rules.
    Invalid,
    /// The request is for nobody that it may be for.
    Forbidden,
    /// It cannot be read, or should not have come here.
    BadRequest,
    /// Nobody could tell.
    InternalError,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) message: String,
    details: Value,
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

    pub(super) fn code(self) -> StatusCode {
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
        let causes = errors
            .iter()
            .map(|error| json!({ "reason": error.reason(), "message": error.fault.to_string(), "field": error.path }));
        let causes: Vec<Value> = causes.collect();
        let unsure = errors.iter().all(|error| matches!(error.fault, Fault::Internal(_)));
        Self {
            reason: if unsure { Reason::InternalError } else { Reason::Invalid },
            message: refusal(kind, name, errors),
            details: json!({ "name": name, "group": kind.group, "kind": kind.kind, "causes": causes }),
        }
    }

    /// What a log has of it: fields and reasons, and no value of a spec.
    pub(super) fn brief(&self) -> String {
        let Some(causes) = self.details.get("causes").and_then(Value::as_array) else {
            return self.message.clone();
        };
        let text =
            |cause: &'_ Value, field: &str| cause.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let told = causes
            .iter()
            .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "reason")));
        told.collect::<Vec<_>>().join(", ")
    }

    /// The request may not be made.
    pub(super) fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        let (plural, group) = (kind.plural, kind.group);
        Self {
            reason: Reason::Forbidden,
            message: format!("{plural}.{group} \"{name}\" is forbidden: {why}"),
            details: json!({ "name": name, "group": group, "kind": plural }),
        }
    }

    /// The request cannot be read.
    pub(super) fn bad(message: String) -> Self {
        Self {
            reason: Reason::BadRequest,
            message,
            details: Value::Null,
        }
    }

    /// A bug of ours.
    pub(super) fn panicked() -> Self {
        Self {
            reason: Reason::InternalError,
            message: "Internal error occurred: failed to review the request (a bug in popcell; its log has more)"
                .to_owned(),
            details: Value::Null,
        }
    }

    /// A metav1.Status.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason.name(), "code": self.reason.code().as_u16(),
        });
        if let (Some(fields), false) = (status.as_object_mut(), self.details.is_null()) {
            fields.insert("details".to_owned(), self.details.clone());
        }
        status
    }
}
