//! Tokens and certificates that change while a plane is engaged.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use kube::{Client, Config};
use popcell_core::plan::Plane;
use popcell_https::{Certificates, FilePair, Limits, Listener, Source};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::super::testing::{Deaf, of_cell};
use super::super::{Direct, Planes, Projects, Tokens, client};
use crate::error::chain;

/// A good token must serve within this time.
const SOON: Duration = Duration::from_secs(30);
const GOOD: &str = "Bearer good";

/// Knows one token; lists are empty and watches bring nothing.
#[derive(Clone, Default)]
struct Server {
    lists: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
}

impl Server {
    fn answer(&self, request: &Request) -> Response {
        if request.headers().get(AUTHORIZATION).is_none_or(|sent| sent != GOOD) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            let status = json!({ "kind": "Status", "status": "Failure", "code": 401, "message": "Unauthorized" });
            return (StatusCode::UNAUTHORIZED, status.to_string()).into_response();
        }
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return Body::from_stream(stream::pending::<Result<Bytes, Infallible>>().boxed()).into_response();
        }
        self.lists.fetch_add(1, Ordering::SeqCst);
        json!({ "metadata": { "resourceVersion": "1" }, "items": [] })
            .to_string()
            .into_response()
    }

    fn router(&self) -> Router {
        let server = self.clone();
        Router::new().fallback(move |request: Request| {
            let answer = server.answer(&request);
            async move { answer }
        })
    }

    async fn start(&self) -> Config {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, self.router()).into_future());
        Config::new(url.parse().unwrap())
    }
}

async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, wait).await.expect(what);
}

#[tokio::test]
async fn a_good_token_is_used_at_once_and_refused_watches_are_restarted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "garbage").unwrap();
    let server = Server::default();
    let mut config = server.start().await;
    config.auth_info.token_file = Some(file.display().to_string());
    let transport = Direct {
        local: config.clone(),
        hub: None,
        projects: Projects::Local,
        claims: None,
        tokens: Tokens::default(),
    };
    let planes = Planes::new(
        Box::new(transport),
        Box::new(of_cell),
        popcell_core::limits::Limits::DEFAULT,
        Arc::new(Deaf),
    );
    planes.engage(&Plane::Cell, None).await.unwrap();
    let engaged = planes.get(&Plane::Cell).unwrap();
    until("it is refused", async || server.refused.load(Ordering::SeqCst) > 0).await;
    assert!(!engaged.is_known());
    fs::write(&file, "good").unwrap();
    until("it is listed", async || engaged.is_known()).await;

    // The watches go on as they began, but a request is refused.
    fs::write(&file, "garbage again").unwrap();
    let ask = || {
        engaged
            .client()
            .request_text(axum::http::Request::get("/version").body(Vec::new()).unwrap())
    };
    until("the old token is not used", async || ask().await.is_err()).await;
    assert!(engaged.is_known());
    let lists = server.lists.load(Ordering::SeqCst);
    fs::write(&file, "good").unwrap();
    until("it is listed anew", async || {
        server.lists.load(Ordering::SeqCst) >= lists + of_cell(&Plane::Cell).len()
    })
    .await;
    until("it is known", async || engaged.is_known()).await;
    ask().await.unwrap();
    planes.disengage_all().await;
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Serves with a certificate of its own until the token is cancelled; answers with the port.
async fn serve(dir: &Path, authority: &CertifiedIssuer<'_, KeyPair>, port: u16, stop: &CancellationToken) -> u16 {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, authority).unwrap();
    let files = FilePair {
        certificate: dir.join("tls.crt"),
        key: dir.join("tls.key"),
        names: Vec::new(),
    };
    fs::write(&files.certificate, leaf.pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    let certificates = Arc::new(Certificates::open(Source::Files(files)).unwrap());
    let limits = Limits {
        grace: Duration::ZERO,
        ..Limits::default()
    };
    let listener = Listener::bind(([127, 0, 0, 1], port).into(), limits).await.unwrap();
    let (port, stop) = (listener.address().port(), stop.clone());
    let router = Server::default().router();
    tokio::spawn(async move { listener.serve(&certificates, router, stop).await });
    port
}

/// What the server answers, once it does with this certificate.
async fn answer(client: &Client) -> Result<String, String> {
    let request = axum::http::Request::get("/version")
        .header(AUTHORIZATION, GOOD)
        .body(Vec::new())
        .unwrap();
    client.request_text(request).await.map_err(|error| chain(&error))
}

#[tokio::test]
async fn a_server_with_a_new_certificate_is_trusted_and_a_stranger_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, stranger) = (authority(), authority());
    let mut stop = CancellationToken::new();
    let port = serve(dir.path(), &ours, 0, &stop).await;
    let mut config = Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.root_cert = Some(vec![ours.der().to_vec()]);
    let client = client(&Tokens::default(), &Plane::Cell, config).unwrap();
    assert!(answer(&client).await.is_ok());
    for (authority, good) in [(&ours, true), (&stranger, false), (&ours, true)] {
        stop.cancel();
        // The connection ends with the listener, and the port is free.
        until("the port is free", async || {
            TcpListener::bind(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        stop = CancellationToken::new();
        serve(dir.path(), authority, port, &stop).await;
        until("the certificate is looked at anew", async || {
            match answer(&client).await {
                Ok(_) => good,
                Err(error) => !good && error.contains("invalid peer certificate"),
            }
        })
        .await;
    }
    stop.cancel();
}
