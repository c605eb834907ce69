//! A listener on a free port and clients that verify its certificate, for the tests of this crate.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its environment ends")]

mod dial;
pub(crate) mod http2;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path as Part, Request};
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2 as h2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use popcell_https::{Certificates, Drained, FilePair, Limits, Listener, ListenerStatus, Source, body};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

pub(crate) use dial::{Client, HOST};

const DAY: Duration = Duration::from_hours(24);

/// A certificate authority and what it signs.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Pem {
        self.issue_between(names, SystemTime::now() - DAY, SystemTime::now() + 30 * DAY)
    }

    pub(crate) fn expired(&self, names: &[&str]) -> Pem {
        self.issue_between(names, SystemTime::now() - 30 * DAY, SystemTime::now() - DAY)
    }

    pub(crate) fn issue_between(&self, names: &[&str], begin: SystemTime, end: SystemTime) -> Pem {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = begin.into();
        params.not_after = end.into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pem {
            der: certificate.der().to_vec(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A certificate with its key.
pub(crate) struct Pem {
    pub(crate) der: Vec<u8>,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A directory laid out like a Secret volume: `tls.crt` and `tls.key` are links through `..data`, which is swapped.
pub(crate) struct SecretVolume {
    pub(crate) root: TempDir,
}

impl SecretVolume {
    pub(crate) fn new(pem: &Pem) -> Self {
        let volume = Self {
            root: TempDir::new().unwrap(),
        };
        volume.swap(pem);
        for file in ["tls.crt", "tls.key"] {
            std::os::unix::fs::symlink(Path::new("..data").join(file), volume.root.path().join(file)).unwrap();
        }
        volume
    }

    /// Replaces both files at once, as the kubelet does: new directory, new link, rename, old directory removed.
    pub(crate) fn swap(&self, pem: &Pem) {
        self.swap_parts(Some(&pem.certificate), Some(&pem.key));
    }

    /// A `..data` with only some of the files.
    pub(crate) fn swap_parts(&self, certificate: Option<&str>, key: Option<&str>) {
        let root = self.root.path();
        let data = root.join("..data");
        let former = fs::read_link(&data).ok();
        let fresh = tempfile::Builder::new()
            .prefix("..2026_")
            .tempdir_in(root)
            .unwrap()
            .keep();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key)] {
            if let Some(text) = text {
                fs::write(fresh.join(name), text).unwrap();
            }
        }
        let link = root.join("..data_tmp");
        std::os::unix::fs::symlink(fresh.file_name().unwrap(), &link).unwrap();
        fs::rename(&link, &data).unwrap();
        if let Some(former) = former {
            fs::remove_dir_all(root.join(former)).unwrap();
        }
    }

    /// Takes the volume's content away, links and all.
    pub(crate) fn empty(&self) {
        for entry in fs::read_dir(self.root.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
    }

    pub(crate) fn pair(&self) -> FilePair {
        FilePair {
            certificate: self.file("tls.crt"),
            key: self.file("tls.key"),
            names: Vec::new(),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

/// A served listener.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) status: Arc<ListenerStatus>,
    pub(crate) certificates: Arc<Certificates>,
    /// Each permit lets one call to `/held` or `/kept` end.
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) task: JoinHandle<Drained>,
}

impl Running {
    pub(crate) async fn start(source: Source, limits: Limits) -> Self {
        let certificates = Arc::new(Certificates::open(source).unwrap());
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), limits).await.unwrap();
        let (address, status, stop) = (listener.address(), listener.status(), CancellationToken::new());
        let gate = Arc::new(Semaphore::new(0));
        let router = router(&limits, &gate);
        let task = {
            let (certificates, stop) = (Arc::clone(&certificates), stop.clone());
            tokio::spawn(async move { listener.serve(&certificates, router, stop).await.unwrap() })
        };
        Self {
            address,
            stop,
            status,
            certificates,
            gate,
            task,
        }
    }

    /// A listener with a certificate for [`HOST`], and its authority.
    pub(crate) async fn simple(limits: Limits) -> (Self, Authority, SecretVolume) {
        let authority = Authority::new("one");
        let volume = SecretVolume::new(&authority.issue(&[HOST]));
        (
            Self::start(Source::Files(volume.pair()), limits).await,
            authority,
            volume,
        )
    }
}

fn router(limits: &Limits, gate: &Arc<Semaphore>) -> Router {
    let (limits, gate) = (*limits, Arc::clone(gate));
    let length = move |request: Request| async move {
        match body::read(request, &limits).await {
            Ok(body) => (StatusCode::OK, body.len().to_string()),
            Err(error) => (error.status(), format!("{error}; head {}", error.head.len())),
        }
    };
    let keeping = Arc::clone(&gate);
    let kept = move |request: Request| {
        let gate = Arc::clone(&keeping);
        async move {
            let body = body::read(request, &limits).await.unwrap();
            gate.acquire().await.unwrap().forget();
            body.len().to_string()
        }
    };
    let bytes = async |Part(size): Part<usize>| vec![b'x'; size];
    let held = move || {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            "held"
        }
    };
    Router::new()
        .route("/length", post(length))
        .route("/hello", get(|| async { "hello" }))
        .route("/held", get(held))
        .route("/kept", post(kept))
        .route("/bytes/{size}", get(bytes))
        .route("/panic", get(panics))
}

#[allow(clippy::panic, reason = "the application under test has a bug")]
async fn panics() -> &'static str {
    panic!("a bug of the application")
}

impl Client {
    /// The head and the first bytes of an upload over HTTP/1.
    pub(crate) async fn begin_upload(&self, announced: usize, sent: usize) -> TlsStream<TcpStream> {
        let mut stream = self.dial("http/1.1").await.unwrap();
        let head = format!("POST /length HTTP/1.1\r\nhost: x\r\ncontent-length: {announced}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; sent]).await.unwrap();
        stream
    }

    pub(crate) async fn http1(&self) -> http1::SendRequest<Full<Bytes>> {
        let stream = self.dial("http/1.1").await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    pub(crate) async fn http2(&self) -> (h2::SendRequest<Full<Bytes>>, JoinHandle<hyper::Result<()>>) {
        let stream = self.dial("h2").await.unwrap();
        let (sender, connection) = h2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        (sender, tokio::spawn(connection))
    }

    /// The certificate that the server shows now.
    pub(crate) async fn served(&self) -> Option<Vec<u8>> {
        let stream = self.dial("http/1.1").await.ok()?;
        Some(stream.get_ref().1.peer_certificates()?.first()?.to_vec())
    }
}

/// Of this each size gets a quarter of 4,000,000 bytes; the rest is for the one body or answer of each that is completed
/// whatever others hold.
pub(crate) const A_MILLION_EACH: usize = 4_000_000 + 1_000_000 + 1024 * 1024 + 64 * 1024 + 8 * 1024;

/// Two calls that hold a million bytes each, which is all that [`A_MILLION_EACH`] has for large bodies.
pub(crate) async fn hold_all(running: &Running, client: &Client) -> Vec<JoinHandle<Response<Incoming>>> {
    let mut kept = Vec::new();
    for held in 1..=2 {
        let mut sender = client.http1().await;
        let call = async move { send(&mut sender, post_request("/kept", vec![b'x'; 1_000_000])).await };
        kept.push(tokio::spawn(call));
        eventually("it is held", async || {
            running.status.held.load(Relaxed) >= held * 1_000_000
        })
        .await;
    }
    kept
}

/// Sends on a connection once it is ready for the next request.
pub(crate) async fn send(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Response<Incoming> {
    sender.ready().await.unwrap();
    sender.send_request(request).await.unwrap()
}

pub(crate) fn get_request(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).header("host", HOST).body(Full::default()).unwrap()
}

pub(crate) fn post_request(path: &str, body: Vec<u8>) -> Request<Full<Bytes>> {
    Request::post(path).header("host", HOST).body(Full::from(body)).unwrap()
}

pub(crate) async fn text<B>(response: Response<B>) -> String
where
    B: hyper::body::Body,
    B::Error: std::fmt::Debug,
{
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Waits until `condition` holds; fails after 20 s.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition().await {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
