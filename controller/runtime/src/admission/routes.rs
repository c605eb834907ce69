//! The webhooks over HTTP, and their TLS port.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{Request as HttpRequest, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use futures::FutureExt;
use popcell_api::admission::{MUTATE_WORKLOAD_PATH, VALIDATE_DEPLOYMENT_PATH, VALIDATE_WORKLOAD_PATH};
use popcell_https::body::{self, BodyError, Received};
use popcell_https::log::shown;
use popcell_https::{
    CertificateError, CertificateStatus, Certificates, Drained, FilePair, Limits, ListenError, Listener,
    ListenerStatus, Source, timeout,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::wire::{DecodeError, Reason, Refusal, Request, decode, encode};
use super::{Admission, LONGEST, Outcome, limits};

/// Threads that serve reviews: to read a large object takes some tenths of a second, in which a thread does nothing else.
/// The others renew the Lease and keep watches.
const THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1);

/// Why the webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no certificate to serve.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The port cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// A bound port. API servers that call wait until it is served.
#[derive(Debug)]
pub struct Endpoint {
    listener: Listener,
    certificates: Arc<Certificates>,
}

impl Endpoint {
    /// Loads the certificate and binds; port 0 takes a free one.
    ///
    /// # Errors
    /// No certificate, or no port.
    pub async fn bind(address: SocketAddr, files: FilePair) -> Result<Self, ServeError> {
        Self::bind_within(address, files, limits()).await
    }

    /// With limits of one's own; those of bodies are [`Admission`]'s.
    pub(super) async fn bind_within(address: SocketAddr, files: FilePair, limits: Limits) -> Result<Self, ServeError> {
        let certificates = Arc::new(Certificates::open(Source::Files(files))?);
        let listener = Listener::bind(address, limits).await?.on_threads(THREADS)?;
        Ok(Self { listener, certificates })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Values for metrics.
    pub fn status(&self) -> (Arc<ListenerStatus>, Arc<CertificateStatus>) {
        (self.listener.status(), self.certificates.status())
    }

    /// Serves until `stop`, then answers what was begun: at most 17 s more. Looks for another certificate every `reload`.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub async fn serve(self, router: Router, reload: Duration, stop: CancellationToken) -> Result<Drained, ServeError> {
        info!(address = %self.address(), names = self.certificates.names(), "serving admission");
        let Self { listener, certificates } = self;
        Ok(listener.serve_renewing(certificates, reload, router, stop).await?)
    }
}

/// The routes of the TLS port.
pub fn router(admission: Admission) -> Router {
    let reviewed = post(validate).fallback(wrong_method);
    Router::new()
        // What is reviewed is said by the request.
        .route(VALIDATE_WORKLOAD_PATH, reviewed.clone())
        .route(VALIDATE_DEPLOYMENT_PATH, reviewed)
        .route(MUTATE_WORKLOAD_PATH, post(mutate).fallback(wrong_method))
        .fallback(async || (StatusCode::NOT_FOUND, "not found: no webhook has this path"))
        .with_state(Arc::new(admission))
}

async fn validate(State(admission): State<Arc<Admission>>, request: HttpRequest<Body>) -> Response<Body> {
    let received = Instant::now();
    let (response, outcome) = admission.reviewed(received, request).await;
    (admission.record)(outcome.as_str(), received.elapsed());
    response
}

/// Defaults nothing: the CRD does.
async fn mutate(State(admission): State<Arc<Admission>>, request: HttpRequest<Body>) -> Response<Body> {
    let body = match admission.read(request).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    match decode(&body) {
        Ok(request) => review(&request.uid, Ok(&[])),
        Err(error) => undecoded(&error),
    }
}

impl Admission {
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
            Ok(admitted) => admitted.outcome,
            Err(refusal) => match refusal.reason {
                Reason::Invalid | Reason::Forbidden => Outcome::Denied,
                Reason::BadRequest | Reason::InternalError => Outcome::Error,
            },
        };
        log(&request, outcome, reviewed.as_ref().err());
        let answer = reviewed.as_ref().map(|admitted| admitted.warnings.as_slice());
        (review(&request.uid, answer), outcome)
    }

    async fn read(&self, request: HttpRequest<Body>) -> Result<Received, Response<Body>> {
        let asked = timeout::asked(request.uri().query());
        body::read_call(request, &self.limits, asked)
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

/// A body that was not read to its end. As all that is no review, the answer is plain text, which API servers put into
/// the error that their users see.
fn unread(error: &BodyError) -> Response<Body> {
    info!(%error, "request not read");
    error.respond(error.to_string())
}

fn undecoded(error: &DecodeError) -> Response<Body> {
    warn!(error = %shown(&error.to_string()), "request not understood");
    match error {
        DecodeError::Request { uid, .. } => review(uid, Err(&Refusal::bad(error.to_string()))),
        _ => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

fn review(uid: &str, answer: Result<&[String], &Refusal>) -> Response<Body> {
    ([(CONTENT_TYPE, "application/json")], encode(uid, answer)).into_response()
}

async fn wrong_method() -> impl IntoResponse {
    let message = "requests to webhooks are POST";
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")], message)
}
