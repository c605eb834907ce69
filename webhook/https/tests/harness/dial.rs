//! A client that verifies the listener's certificate: for the tests of this crate and of the webhook.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const HOST: &str = "webhook.popcell.test";

/// Dials [`HOST`] at an address, trusting some authorities.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    from: IpAddr,
    roots: RootCertStore,
    versions: Vec<&'static rustls::SupportedProtocolVersion>,
    receives: Option<u32>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, authorities: &[impl AsRef<[u8]>]) -> Self {
        let mut roots = RootCertStore::empty();
        for pem in authorities {
            roots
                .add(CertificateDer::from_pem_slice(pem.as_ref()).unwrap())
                .unwrap();
        }
        Self {
            address,
            from: Ipv4Addr::LOCALHOST.into(),
            roots,
            versions: rustls::ALL_VERSIONS.to_vec(),
            receives: None,
        }
    }

    /// The same from another address of this machine.
    pub(crate) fn calling_from(self, from: IpAddr) -> Self {
        Self { from, ..self }
    }

    /// The same, of whose answers the kernel keeps little on this side.
    pub(crate) fn taking_little(mut self) -> Self {
        self.receives = Some(4096);
        self
    }

    pub(crate) fn only(mut self, version: &'static rustls::SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    /// A handshake that offers application protocols, with commas between them; none when it is empty.
    pub(crate) async fn dial(&self, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
        self.dial_name(alpn, HOST).await
    }

    pub(crate) async fn dial_name(&self, alpn: &str, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        if !alpn.is_empty() {
            config.alpn_protocols = alpn.split(',').map(|name| name.as_bytes().to_vec()).collect();
        }
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        if let Some(bytes) = self.receives {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(self.address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}
