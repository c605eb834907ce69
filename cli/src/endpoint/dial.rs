//! Resolve, connect and handshake, as Karmada's client does it: http/1.1 only, no client certificate.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use popcell_client::sync::lock;
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::CryptoProvider,
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{Endpoint, certificate::Bundle};

/// What the certificate of a webhook is checked against.
#[derive(Clone, Debug)]
pub enum Trust {
    /// These certificates (a caBundle).
    Bundle(Bundle),
    /// The system's roots (no caBundle).
    System,
}

/// The certificate that the server showed, and whether it holds.
#[derive(Clone, Debug)]
pub struct Presented {
    /// The server's own certificate.
    pub certificate: CertificateDer<'static>,
    /// Why it does not chain to a trusted certificate, or is not valid now.
    pub distrust: Option<String>,
    /// Why it does not name the server.
    pub misnomer: Option<String>,
}

/// The step that failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No address for the name.
    #[error("failed to resolve {host}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No TCP connection.
    #[error("failed to connect to {address}: {reason}")]
    Connect {
        /// Host and port, or the address that was tried last.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// No TLS session.
    #[error("failed to agree on TLS with {host} as {server_name}: {reason}")]
    Handshake {
        /// Host and port.
        host: String,
        /// The name that was expected.
        server_name: String,
        /// What went wrong, in rustls' words.
        reason: String,
        /// The certificate, when the server got so far as to show one.
        presented: Option<Box<Presented>>,
    },
    /// No roots to check against.
    #[error("failed to read the system's certificates: {0}; give --ca-file")]
    Roots(String),
}

/// A TLS session with a webhook.
pub struct Session {
    /// The open stream.
    pub stream: TlsStream<TcpStream>,
    /// What the server showed.
    pub presented: Option<Presented>,
}

/// What a step gives, or why it gives nothing: its error, or that there is no answer in time.
pub(super) async fn within<T, E: ToString>(
    limit: Duration,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(limit, step).await {
        Ok(given) => given.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {limit:?}")),
    }
}

/// Finds the addresses of the host.
pub async fn resolve(endpoint: &Endpoint, limit: Duration) -> Result<Vec<SocketAddr>, DialError> {
    let fail = |reason: String| DialError::Resolve {
        host: endpoint.host.clone(),
        reason,
    };
    let lookup = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port));
    let addresses: Vec<_> = within(limit, lookup).await.map_err(fail)?.collect();
    if addresses.is_empty() {
        Err(fail("it has no address".to_owned()))
    } else {
        Ok(addresses)
    }
}

/// Connects to the first address that accepts.
pub async fn connect(endpoint: &Endpoint, addresses: &[SocketAddr], limit: Duration) -> Result<TcpStream, DialError> {
    let mut last = DialError::Connect {
        address: endpoint.host.clone(),
        reason: "no address".to_owned(),
    };
    for address in addresses {
        let reason = match within(limit, TcpStream::connect(address)).await {
            Ok(stream) => return Ok(stream),
            Err(reason) => reason,
        };
        last = DialError::Connect {
            address: address.to_string(),
            reason,
        };
    }
    Err(last)
}

/// Shakes hands, with the certificate checked against `trust` and the endpoint's server name.
pub async fn handshake(
    endpoint: &Endpoint,
    tcp: TcpStream,
    trust: &Trust,
    limit: Duration,
) -> Result<Session, DialError> {
    let host = format!("{}:{}", endpoint.host, endpoint.port);
    let fail = |reason: String, presented: Option<Presented>| DialError::Handshake {
        host: host.clone(),
        server_name: endpoint.server_name.clone(),
        reason,
        presented: presented.map(Box::new),
    };
    let name = ServerName::try_from(endpoint.server_name.clone()).map_err(|error| fail(error.to_string(), None))?;
    let witness = Arc::new(Witness::new(trust)?);
    let mut config = ClientConfig::builder_with_provider(witness.provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| fail(error.to_string(), None))?
        .dangerous() // the verifier below checks chain and name with rustls' own functions, and remembers
        .with_custom_certificate_verifier(witness.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    match within(limit, TlsConnector::from(Arc::new(config)).connect(name, tcp)).await {
        Ok(stream) => Ok(Session {
            stream,
            presented: witness.seen(),
        }),
        Err(reason) => Err(fail(reason, witness.seen())),
    }
}

/// A verifier that refuses what rustls refuses, and keeps what it saw for the report.
#[derive(Debug)]
struct Witness {
    roots: RootCertStore,
    /// Go accepts a server certificate that is itself in the pool, even one that is no CA.
    pinned: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    seen: Mutex<Option<Presented>>,
}

impl Witness {
    fn new(trust: &Trust) -> Result<Self, DialError> {
        let mut roots = RootCertStore::empty();
        let pinned = match trust {
            Trust::Bundle(bundle) => bundle.certificates().to_vec(),
            Trust::System => {
                let found = rustls_native_certs::load_native_certs();
                if found.certs.is_empty() {
                    let reason = found
                        .errors
                        .first()
                        .map_or_else(|| "none found".to_owned(), ToString::to_string);
                    return Err(DialError::Roots(reason));
                }
                roots.add_parsable_certificates(found.certs);
                Vec::new()
            }
        };
        roots.add_parsable_certificates(pinned.iter().cloned());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        Ok(Self {
            roots,
            pinned,
            provider,
            seen: Mutex::default(),
        })
    }

    fn seen(&self) -> Option<Presented> {
        lock(&self.seen).clone()
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let mut trusted =
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms);
        let outdated = matches!(
            &trusted,
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::Expired
                    | rustls::CertificateError::ExpiredContext { .. }
                    | rustls::CertificateError::NotValidYet
                    | rustls::CertificateError::NotValidYetContext { .. }
            ))
        );
        if !outdated && self.pinned.iter().any(|pinned| pinned == end_entity) {
            trusted = Ok(());
        }
        let named = verify_server_name(&parsed, server_name);
        let presented = Presented {
            certificate: end_entity.clone().into_owned(),
            distrust: trusted.as_ref().err().map(ToString::to_string),
            misnomer: named.as_ref().err().map(ToString::to_string),
        };
        *lock(&self.seen) = Some(presented);
        trusted.and(named).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
