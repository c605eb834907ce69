//! HTTP answers. Each body is a `ResourceInterpreterContext`, so that whoever reads one finds the reason in the same
//! place.

use axum::body::Body;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{Response, StatusCode};
use popcell_https::body::BodyError;
use popcell_protocol::{Answer, Refusal, encode, extract_uid};

/// An answer that Karmada reads: HTTP 200, whether it is good news or not.
pub(crate) fn context(uid: &str, answer: &Result<Answer, Refusal>) -> Response<Body> {
    json(StatusCode::OK, encode(uid, answer))
}

/// An answer about the request itself. Karmada loses its text; people with other clients do not.
pub(crate) fn refusal(status: StatusCode, uid: &str, message: impl Into<String>) -> Response<Body> {
    let refusal = Refusal {
        code: status.as_u16(),
        message: message.into(),
    };
    json(status, encode(uid, &Err(refusal)))
}

/// Asks the client to come back in a second. Karmada's client does so up to ten times, inside its own deadline.
pub(crate) fn again(status: StatusCode, uid: &str, message: impl Into<String>) -> Response<Body> {
    with(refusal(status, uid, message), RETRY_AFTER, "1")
}

/// Answers a body that could not be read to its end. What has arrived of it may still show the uid.
pub(crate) fn unread(error: &BodyError) -> Response<Body> {
    let uid = extract_uid(error.head()).unwrap_or_default();
    let message = error.to_string();
    let response = match error {
        BodyError::TooLarge { .. } => refusal(StatusCode::PAYLOAD_TOO_LARGE, &uid, message),
        BodyError::TooSlow { .. } => refusal(StatusCode::REQUEST_TIMEOUT, &uid, message),
        BodyError::NoRoom { .. } => again(StatusCode::TOO_MANY_REQUESTS, &uid, message),
        BodyError::Stopping { .. } => again(StatusCode::SERVICE_UNAVAILABLE, &uid, message),
        BodyError::Broken { .. } => refusal(StatusCode::BAD_REQUEST, &uid, message),
    };
    // The rest of the body may still come; it must not be taken for the next request.
    with(response, CONNECTION, "close")
}

/// A path that is not served.
pub(crate) fn not_found() -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, "", "not found: requests go to /interpret")
}

/// A method that is not served.
pub(crate) fn wrong_method() -> Response<Body> {
    with(
        refusal(StatusCode::METHOD_NOT_ALLOWED, "", "requests to /interpret are POST"),
        ALLOW,
        "POST",
    )
}

fn with(mut response: Response<Body>, name: HeaderName, value: &'static str) -> Response<Body> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}

fn json(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, "application/json")
}
