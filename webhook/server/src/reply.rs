//! HTTP answers. Each body is a `ResourceInterpreterContext`, so that whoever reads one finds the reason in the same
//! place.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use popcell_https::body::BodyError;
use popcell_protocol::{Answer, Refusal, encode, extract_uid};

/// An answer that Karmada reads: HTTP 200, whether it is good news or not.
pub(crate) fn context(uid: &str, answer: &Result<Answer, Refusal>) -> Response {
    ([(CONTENT_TYPE, "application/json")], Body::from(encode(uid, answer))).into_response()
}

/// An answer about the request itself. Karmada loses its text; people with other clients do not.
pub(crate) fn refusal(status: StatusCode, uid: &str, message: impl Into<String>) -> Response {
    let refusal = Refusal {
        code: status.as_u16(),
        message: message.into(),
    };
    (status, context(uid, &Err(refusal))).into_response()
}

/// Asks the client to come back in a second. Karmada's client does so up to ten times, inside its own deadline.
pub(crate) fn again(uid: &str, message: impl Into<String>) -> Response {
    let refusal = refusal(StatusCode::TOO_MANY_REQUESTS, uid, message);
    ([(RETRY_AFTER, "1")], refusal).into_response()
}

/// Answers a body that could not be read to its end. What has arrived of it may still show the uid.
pub(crate) fn unread(error: &BodyError) -> Response {
    let uid = extract_uid(&error.head).unwrap_or_default();
    error.respond(refusal(error.status(), &uid, error.to_string()))
}

/// A path that is not served.
pub(crate) async fn not_found() -> Response {
    refusal(StatusCode::NOT_FOUND, "", "not found: requests go to /interpret")
}

/// A method that is not served.
pub(crate) async fn wrong_method() -> Response {
    let refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, "", "requests to /interpret are POST");
    ([(ALLOW, "POST")], refusal).into_response()
}
