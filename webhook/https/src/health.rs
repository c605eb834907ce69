//! A plain port for probes and scrapers: `/livez`, `/readyz`, `/metrics`.
//!
//! It accepts and answers on a thread of its own, so that it answers whatever the rest of the process does.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::limits::Limits;
use crate::listener::{ListenError, Listener};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Something that must hold for requests to come here.
pub struct Check {
    name: &'static str,
    holds: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    /// A check that is made at each probe, on the thread of the port. The error is a reason in a few words.
    pub fn new(name: &'static str, holds: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self {
            name,
            holds: Box::new(holds),
        }
    }

    /// Holds forever once it has held: for a start that must be complete, where a failure later on says nothing about
    /// what can be answered.
    #[must_use]
    pub fn once(self) -> Self {
        let (held, holds) = (AtomicBool::new(false), self.holds);
        Self::new(self.name, move || {
            if !held.load(Ordering::Acquire) {
                holds()?;
                held.store(true, Ordering::Release);
            }
            Ok(())
        })
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// Whether the process still wants new requests. True from the start.
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

    /// The same as a check.
    pub fn check(&self) -> Check {
        let readiness = self.clone();
        Check::new("serving", move || {
            if readiness.is_ready() {
                Ok(())
            } else {
                Err("stopping".to_owned())
            }
        })
    }
}

/// The served port. Dropping it ends it.
#[derive(Debug)]
pub struct Health {
    address: SocketAddr,
    stop: DropGuard,
    ended: CancellationToken,
}

impl Health {
    /// Binds and serves. Port 0 takes a free one.
    ///
    /// # Errors
    /// The port cannot be bound, or the system refuses a thread.
    pub async fn start(address: SocketAddr, router: Router) -> Result<Self, ListenError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ListenError::Thread)?;
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let (bound, is_bound) = oneshot::channel();
        let (until, end) = (stop.clone(), ended.clone().drop_guard());
        let stop = stop.drop_guard();
        thread::Builder::new()
            .name("popcell-health".to_owned())
            .spawn(move || {
                // Dropped by a panic, too.
                let _end = end;
                runtime.block_on(serve(address, router, until, bound));
            })
            .map_err(ListenError::Thread)?;
        let address = is_bound
            .await
            .unwrap_or_else(|_| Err(ListenError::Thread(std::io::Error::other("it ended at once"))))?;
        Ok(Self { address, stop, ended })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the port is served no more, which happens by itself only after a panic.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.ended.clone().cancelled_owned()
    }

    /// Ends the port, and returns when it is free.
    pub async fn stop(self) {
        drop(self.stop);
        self.ended.cancelled().await;
    }
}

async fn serve(
    address: SocketAddr,
    router: Router,
    stop: CancellationToken,
    bound: oneshot::Sender<Result<SocketAddr, ListenError>>,
) {
    let listener = match Listener::bind(address, Limits::for_scrapers()).await {
        Ok(listener) => listener,
        Err(error) => return drop(bound.send(Err(error))),
    };
    // Whoever does not wait for this has dropped `stop` as well.
    drop(bound.send(Ok(listener.address())));
    if let Err(error) = listener.serve_plain(router, stop).await {
        tracing::error!(%error, "the health port ended");
    }
}

/// The routes of the port. Ready is who passes all checks; those that fail are named in the answer with their reasons.
/// `metrics` writes OpenMetrics text.
pub fn routes(checks: Vec<Check>, metrics: impl Fn() -> Result<String, fmt::Error> + Send + Sync + 'static) -> Router {
    let (checks, metrics) = (Arc::new(checks), Arc::new(metrics));
    let ready = move || {
        let failed = failed(&checks);
        async move {
            if failed.is_empty() {
                (StatusCode::OK, "ok\n".to_owned())
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, failed)
            }
        }
    };
    let scrape = move || {
        let metrics = Arc::clone(&metrics);
        async move {
            match metrics() {
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

/// A line for each check that fails.
fn failed(checks: &[Check]) -> String {
    let mut lines = String::new();
    for check in checks {
        if let Err(reason) = (check.holds)() {
            lines.extend([check.name, ": ", &reason, "\n"]);
        }
    }
    lines
}
