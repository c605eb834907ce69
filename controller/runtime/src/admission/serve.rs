//! The TLS port of the webhooks.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use popcell_https::{
    CertificateError, CertificateStatus, Certificates, Drained, FilePair, Limits, ListenError, Listener,
    ListenerStatus, Source,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

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
        Self::bind_within(address, files, super::limits()).await
    }

    /// With limits of one's own; those of bodies are [`Admission`](super::Admission)'s.
    pub(super) async fn bind_within(address: SocketAddr, files: FilePair, limits: Limits) -> Result<Self, ServeError> {
        let certificates = Arc::new(Certificates::open(Source::Files(files))?);
        let listener = Listener::bind(address, limits).await?.on_threads(THREADS)?;
        Ok(Self { listener, certificates })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Figures for metrics.
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
