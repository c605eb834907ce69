//! The plain port: `/livez`, `/readyz`, `/metrics`. Its connections have a thread of their own, so that it answers
//! whatever the calls do to the others.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use popcell_https::{Drained, Limits, ListenError, Listener};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether new requests should come here. True from the start: the port is bound only when everything can be answered.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on not.
    pub fn leave(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether requests should come.
    pub fn is_ready(&self) -> bool {
        !self.0.load(Ordering::Acquire)
    }
}

/// The served port.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Drained>,
}

impl Health {
    /// Binds and serves.
    pub(crate) async fn start(address: SocketAddr, router: Router) -> Result<Self, ListenError> {
        let listener = Listener::bind(address, limits()).await?.on_threads(NonZeroUsize::MIN)?;
        let (address, stop) = (listener.address(), CancellationToken::new());
        let serving = tokio::spawn(listener.serve_plain(router, stop.clone()));
        Ok(Self { address, stop, serving })
    }

    /// Ends the port after everything else.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        if self.serving.await.is_err() {
            tracing::error!("the task of the health port panicked");
        }
    }
}

/// Probes and scrapers are few and short.
fn limits() -> Limits {
    Limits {
        connections: 64,
        grace: Duration::ZERO,
        drain: Duration::from_secs(1),
        body: 0,
        ..Limits::default()
    }
}

/// The routes of the plain port.
pub(crate) fn router(readiness: Readiness, metrics: Metrics) -> Router {
    let metrics = Arc::new(metrics);
    let ready = move || {
        let ready = readiness.is_ready();
        async move {
            if ready {
                (StatusCode::OK, "ok\n")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
            }
        }
    };
    let scrape = move || {
        let metrics = Arc::clone(&metrics);
        async move {
            match metrics.text() {
                Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
                Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed to write the metrics\n").into_response(),
            }
        }
    };
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(scrape))
}
