//! Clients of API servers: kube's, but for what thousands of them cost.
//!
//! kube makes a TLS configuration and a pool of connections for each client, with roots and remembered sessions of its own,
//! keeps an idle connection for as long as the server does, and logs an error for each answer that is no success. Here clients
//! of the same roots share both, idle connections end, and who asks decides what is logged. Credentials are headers, so a
//! connection has nothing of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt as _, DynBody};
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use crate::sync::lock;

/// An idle connection ends after this time. An idle project then holds its watches only.
const IDLE: Duration = Duration::from_secs(10);

type Connector = TimeoutConnector<HttpsConnector<HttpConnector>>;
type Pool = hyper_util::client::legacy::Client<Connector, Body>;

/// What a client is made of, before layers of our own.
type Service = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// What decides how a connection is made, and how a server's certificate is verified.
#[derive(Debug, PartialEq, Eq)]
struct Trust {
    roots: Option<Vec<Vec<u8>>>,
    roots_file: Option<PathBuf>,
    accepts_all: bool,
    server_name: Option<String>,
    /// Of connecting, reading and writing.
    timeouts: [Option<Duration>; 3],
    /// After which an idle connection ends.
    idle: Duration,
}

impl Trust {
    /// `None` where the client has a certificate of its own, which may change with each look at its file.
    fn of(config: &Config, idle: Duration) -> Option<Self> {
        let auth = &config.auth_info;
        let own = auth.client_certificate.is_some()
            || auth.client_certificate_data.is_some()
            || auth.client_key.is_some()
            || auth.client_key_data.is_some();
        (!own).then(|| Self {
            roots: config.root_cert.clone(),
            roots_file: config.root_cert_file.clone(),
            accepts_all: config.accept_invalid_certs,
            server_name: config.tls_server_name.clone(),
            timeouts: [config.connect_timeout, config.read_timeout, config.write_timeout],
            idle,
        })
    }
}

/// Connections that clients share. Clones share them too.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Arc<Mutex<Vec<(Trust, Pool)>>>);

impl Clients {
    /// A client of a server; no request is sent. Needs a tokio runtime.
    ///
    /// # Errors
    /// The configuration, or a file that it names, cannot be used.
    pub(super) fn builder(&self, config: Config) -> Result<ClientBuilder<Service>, kube::Error> {
        self.builder_with(config, IDLE)
    }

    fn builder_with(&self, config: Config, idle: Duration) -> Result<ClientBuilder<Service>, kube::Error> {
        // Proxies, and credentials that a program gives out, are kube's matter.
        if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
            return ClientBuilder::try_from(config);
        }
        let pool = self.pool(&config, idle)?;
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .service(pool)
            .map_response(|answer: Response<_>| {
                answer.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
            });
        Ok(ClientBuilder::new(service.boxed(), config.default_namespace))
    }

    fn pool(&self, config: &Config, idle: Duration) -> Result<Pool, kube::Error> {
        let Some(trust) = Trust::of(config, idle) else {
            return connect(config, idle);
        };
        let mut known = lock(&self.0);
        if let Some((_, pool)) = known.iter().find(|(one, _)| *one == trust) {
            return Ok(pool.clone());
        }
        let pool = connect(config, idle)?;
        known.push((trust, pool.clone()));
        Ok(pool)
    }
}

fn connect(config: &Config, idle: Duration) -> Result<Pool, kube::Error> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(https.enable_http1().wrap_connector(http));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .build(connector))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[test]
    fn clients_of_the_same_roots_share_what_they_know() {
        let clients = Clients::default();
        let config = |url: &str| Config::new(url.parse().unwrap());
        let held = || clients.0.lock().unwrap().len();
        for url in ["https://a", "https://b"] {
            clients.pool(&config(url), IDLE).unwrap();
        }
        assert_eq!(held(), 1);
        let mut other = config("https://c");
        other.accept_invalid_certs = true;
        clients.pool(&other, IDLE).unwrap();
        assert_eq!(held(), 2);
        let mut own = config("https://d");
        own.auth_info.client_certificate = Some("/nowhere".to_owned());
        assert!(clients.pool(&own, IDLE).is_err(), "its file is read each time");
        assert_eq!(held(), 2);
    }

    #[tokio::test]
    async fn an_idle_connection_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let open = Arc::clone(&counted);
                open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut read = [0; 4096];
                    while stream.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        stream.write_all(answer).await.unwrap();
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        let config = Config::new(url.parse().unwrap());
        let idle = Duration::from_millis(200);
        let client = Clients::default().builder_with(config, idle).unwrap().build();
        let request = Request::get("/version").body(Body::empty()).unwrap();
        let answer = client.send(request).await.unwrap();
        answer.into_body().collect().await.unwrap();
        let ended = async {
            while open.load(Ordering::SeqCst) > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), ended).await.unwrap();
        let request = Request::get("/version").body(Body::empty()).unwrap();
        assert!(client.send(request).await.unwrap().status().is_success());
    }
}
