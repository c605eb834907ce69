//! Milo's path prefix in front of one real API server that many projects share (design.md 8): project p's only namespace
//! is `p`. Nothing is rewritten but paths; every answer is the real server's.

mod route;

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{self, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::plane::Plane;
use route::{Route, route};

/// Larger than any object that etcd takes.
const LARGEST_BODY: usize = 4 << 20;

/// A running gateway; it ends when this value is dropped.
#[derive(Debug)]
pub struct Gateway {
    url: String,
    open: watch::Sender<bool>,
    server: JoinHandle<()>,
}

struct Upstream {
    client: Client,
    open: watch::Receiver<bool>,
}

impl Gateway {
    /// Serves on a free port of the loopback, over plain HTTP, with the rights of the plane's client.
    pub async fn start(plane: &Plane) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("failed to open a port for the project gateway")?;
        let address = listener
            .local_addr()
            .context("failed to learn the gateway's own address")?;
        let (open, is_open) = watch::channel(true);
        let upstream = Upstream {
            client: plane.client().clone(),
            open: is_open,
        };
        let router = Router::new().fallback(serve).with_state(Arc::new(upstream));
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("gateway: {error}");
            }
        });
        Ok(Self {
            url: format!("http://{address}"),
            open,
            server,
        })
    }

    /// How clients reach milo; projects are below it.
    pub fn config(&self) -> Result<Config> {
        Ok(Config::new(self.url.parse().context("the gateway's URL is none")?))
    }

    /// Breaks every watch and answers 503 from now on.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Serves again.
    pub fn reopen(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.close();
        self.server.abort();
    }
}

async fn serve(State(upstream): State<Arc<Upstream>>, request: Request) -> Response {
    let mut open = upstream.open.clone();
    if !*open.borrow_and_update() {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "the gateway is closed");
    }
    match forward(&upstream.client, request).await {
        Ok(answer) => {
            let (parts, body) = answer.into_parts();
            let closed = async move {
                // An error means that the gateway is gone: closed as well.
                let _ = open.wait_for(|is| !*is).await;
            };
            let body = Body::new(body).into_data_stream().take_until(Box::pin(closed));
            Response::from_parts(parts, Body::from_stream(body))
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &format!("{error:#}")),
    }
}

async fn forward(client: &Client, request: Request) -> Result<http::Response<kube::client::Body>> {
    let (parts, body) = request.into_parts();
    let Route::To(target) = route(parts.uri.path(), parts.uri.query()) else {
        return not_found();
    };
    let body = to_bytes(body, LARGEST_BODY)
        .await
        .context("failed to read the request")?;
    let mut forwarded = http::Request::builder().method(parts.method).uri(target);
    for name in [ACCEPT, CONTENT_TYPE] {
        if let Some(value) = parts.headers.get(&name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let forwarded = forwarded
        .body(body.to_vec().into())
        .context("failed to make a request")?;
    client.send(forwarded).await.context("failed to reach the server")
}

/// As a server that has no such namespace answers.
fn not_found() -> Result<http::Response<kube::client::Body>> {
    let body = status(StatusCode::NOT_FOUND, "the project has no such namespace").into_bytes();
    http::Response::builder()
        .status(StatusCode::NOT_FOUND)
        .header(CONTENT_TYPE, "application/json")
        .body(body.into())
        .context("failed to make an answer")
}

fn refusal(code: StatusCode, message: &str) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], status(code, message)).into_response()
}

fn status(code: StatusCode, message: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(),
        "reason": if code == StatusCode::NOT_FOUND { "NotFound" } else { "ServiceUnavailable" },
        "message": message,
    })
    .to_string()
}
