//! The webhooks over HTTP.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{Request as HttpRequest, Response, StatusCode};
use axum::routing::post;
use futures::FutureExt;
use popcell_api::admission::{MUTATE_WORKLOAD_PATH, VALIDATE_DEPLOYMENT_PATH, VALIDATE_WORKLOAD_PATH};
use popcell_https::body::{self, BodyError, Received};
use popcell_https::log::shown;
use popcell_https::{Limits, timeout};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::refusal::{Reason, Refusal};
use super::wire::{DecodeError, Request, decode, encode};
use super::{Admission, LONGEST, Outcome};

/// The routes of the TLS port.
pub fn router(admission: Admission) -> Router {
    let validating = Arc::new(admission);
    let mutating = Arc::clone(&validating);
    let validate = move |request: HttpRequest<Body>| {
        let admission = Arc::clone(&validating);
        async move { admission.validate(request).await }
    };
    let mutate = move |request: HttpRequest<Body>| {
        let admission = Arc::clone(&mutating);
        async move { admission.mutate(request).await }
    };
    Router::new()
        .route(
            VALIDATE_WORKLOAD_PATH,
            post(validate.clone()).fallback(async || wrong_method()),
        )
        // What is reviewed is said by the request.
        .route(
            VALIDATE_DEPLOYMENT_PATH,
            post(validate).fallback(async || wrong_method()),
        )
        .route(MUTATE_WORKLOAD_PATH, post(mutate).fallback(async || wrong_method()))
        .fallback(async || text(StatusCode::NOT_FOUND, "not found: no webhook has this path"))
}

impl Admission {
    async fn validate(&self, request: HttpRequest<Body>) -> Response<Body> {
        let received = Instant::now();
        let (response, outcome) = self.reviewed(received, request).await;
        (self.record)(outcome.as_str(), received.elapsed());
        response
    }

    async fn reviewed(&self, received: Instant, request: HttpRequest<Body>) -> (Response<Body>, Outcome) {
        let asked = timeout::asked(request.uri().query()).unwrap_or(LONGEST);
        let by = received + asked.min(LONGEST);
        let body = match self.read(request).await {
            Ok(body) => body,
            Err(response) => return (response, Outcome::Error),
        };
        let request = match decode(&body) {
            Ok(request) => request,
            Err(error) => return (undecoded(&error), Outcome::Error),
        };
        let reviewing = AssertUnwindSafe(self.review(&request, by)).catch_unwind().await;
        let reviewed = reviewing.unwrap_or_else(|_| Err(Refusal::panicked()));
        let outcome = match &reviewed {
            Ok(outcome) => *outcome,
            Err(refusal) => match refusal.reason {
                Reason::Invalid | Reason::Forbidden => Outcome::Denied,
                Reason::BadRequest | Reason::InternalError => Outcome::Error,
            },
        };
        log(&request, outcome, reviewed.as_ref().err());
        (review(&request.uid, reviewed.as_ref().err()), outcome)
    }

    /// Defaults nothing: the CRD does.
    async fn mutate(&self, request: HttpRequest<Body>) -> Response<Body> {
        let body = match self.read(request).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        match decode(&body) {
            Ok(request) => review(&request.uid, None),
            Err(error) => undecoded(&error),
        }
    }

    async fn read(&self, request: HttpRequest<Body>) -> Result<Received, Response<Body>> {
        let encoding = request.headers().get(CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            let message = format!("content-encoding {encoding:?} is not supported: send the body as it is");
            return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let asked = timeout::asked(request.uri().query()).unwrap_or(self.limits.upload);
        let upload = asked.min(self.limits.upload);
        body::read(request, &Limits { upload, ..self.limits })
            .await
            .map_err(|error| unread(&error))
    }
}

fn log(request: &Request<'_>, outcome: Outcome, refusal: Option<&Refusal>) {
    let refused = refusal.map(Refusal::brief).unwrap_or_default();
    macro_rules! log {
        ($level:ident) => {
            $level!(
                uid = %shown(&request.uid),
                operation = %shown(&request.operation),
                namespace = %shown(&request.namespace),
                name = %shown(&request.name),
                outcome = outcome.as_str(),
                refused = %shown(&refused),
                "review"
            )
        };
    }
    match outcome {
        Outcome::Allowed | Outcome::Unread => log!(debug),
        Outcome::Denied => log!(info),
        Outcome::Error => log!(warn),
    }
}

/// A body that was not read to its end.
fn unread(error: &BodyError) -> Response<Body> {
    info!(%error, "request not read");
    error.respond(text(error.status(), error.to_string()))
}

fn undecoded(error: &DecodeError) -> Response<Body> {
    warn!(error = %shown(&error.to_string()), "request not understood");
    match error {
        DecodeError::Request { uid, .. } => review(uid, Some(&Refusal::bad(error.to_string()))),
        _ => text(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

fn review(uid: &str, refusal: Option<&Refusal>) -> Response<Body> {
    with(
        Response::new(Body::from(encode(uid, refusal))),
        CONTENT_TYPE,
        "application/json",
    )
}

fn wrong_method() -> Response<Body> {
    with(
        text(StatusCode::METHOD_NOT_ALLOWED, "requests to webhooks are POST"),
        ALLOW,
        "POST",
    )
}

/// API servers put plain text into the error that their users see.
fn text(status: StatusCode, message: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::from(message.into()));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, "text/plain; charset=utf-8")
}

fn with(mut response: Response<Body>, name: HeaderName, value: &'static str) -> Response<Body> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
