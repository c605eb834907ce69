//! TLS in front of the project gateway, which speaks plain HTTP: in production every connection of the controller is
//! encrypted, and its buffers are a good part of what a project costs.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A running front; it ends when this value is dropped.
pub(crate) struct Front {
    url: String,
    server: JoinHandle<()>,
}

impl Front {
    /// Ends TLS on a free port of 127.0.0.1 and passes what is inside to `target`, such as `127.0.0.1:8080`.
    pub(crate) async fn start(target: String, certificate: &Path, key: &Path) -> Result<Self> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
            .context("failed to read the front's certificate")?
            .collect();
        let chain = chain.context("failed to understand the front's certificate")?;
        let key = PrivateKeyDer::from_pem_file(key).context("failed to read the front's key")?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .context("failed to choose versions of TLS")?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .context("failed to use the front's certificate")?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("failed to open a port for the front")?;
        let address = listener
            .local_addr()
            .context("failed to learn the front's own address")?;
        let target: Arc<str> = target.into();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, target) = (acceptor.clone(), Arc::clone(&target));
                // A connection that breaks is its client's to make again.
                tokio::spawn(async move { pass(acceptor, stream, &target).await.ok() });
            }
        });
        Ok(Self {
            url: format!("https://{address}"),
            server,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(acceptor: TlsAcceptor, stream: TcpStream, target: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inside = acceptor.accept(stream).await?;
    let mut onward = TcpStream::connect(target).await?;
    onward.set_nodelay(true)?;
    copy_bidirectional(&mut inside, &mut onward).await.map(|_| ())
}
