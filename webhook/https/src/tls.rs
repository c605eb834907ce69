//! The rustls configuration, and who is offered HTTP/2.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{Acceptor, ResolvesServerCert};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The crypto provider of the whole program.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Makes handshakes: TLS 1.2 and 1.3, h2 and http/1.1 by ALPN, no client certificate (Karmada's client has none to send),
/// stateless session tickets so that a client that comes back skips the dear part of the handshake.
pub(crate) struct Handshakes {
    both: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
    http2_places: Arc<Semaphore>,
}

/// The place of a connection that speaks HTTP/2, until it is dropped.
pub(crate) type Http2Place = OwnedSemaphorePermit;

impl Handshakes {
    /// At most so many connections speak HTTP/2 at once.
    pub(crate) fn new(
        certificates: Arc<dyn ResolvesServerCert>,
        http2_connections: usize,
    ) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificates);
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Self {
            both: offering(&[HTTP2, HTTP1]),
            http1: offering(&[HTTP1]),
            http2_places: Arc::new(Semaphore::new(http2_connections.min(Semaphore::MAX_PERMITS))),
        })
    }

    /// The handshake of one connection, with its place where HTTP/2 was agreed. Where there is none left, a client that
    /// speaks HTTP/1.1 too is served with that.
    pub(crate) async fn accept<S>(&self, socket: S) -> io::Result<(TlsStream<S>, Option<Http2Place>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let offers = start.client_hello().alpn();
        let place = offers
            .is_some_and(|mut offers| offers.any(|name| name == HTTP2))
            .then(|| Arc::clone(&self.http2_places).try_acquire_owned().ok())
            .flatten();
        let config = if place.is_some() { &self.both } else { &self.http1 };
        Ok((start.into_stream(Arc::clone(config)).await?, place))
    }
}
