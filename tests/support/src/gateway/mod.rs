//! Milo's path prefix in front of real API servers: either one that many projects share, where project p's only
//! namespace is `p`, or one for each project, with one more for milo's own kinds. Nothing is rewritten but paths; every
//! answer is the real server's.
//!
//! In front of one server for each project it is a front proxy, as milo is: servers take the caller from its headers, with
//! the claims about the project that milo adds, so that admission webhooks see them.

mod caller;
mod route;
mod servers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{self, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use kube::Config;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::kubeconfig;
use crate::lab::Lab;
use crate::plane::Plane;
pub(crate) use route::of_project;
use servers::{Hop, Servers};

/// Larger than any object that etcd takes.
const LARGEST_BODY: usize = 4 << 20;

/// A running gateway; it ends when this value is dropped.
#[derive(Debug)]
pub struct Gateway {
    url: String,
    open: watch::Sender<bool>,
    revoked: watch::Sender<BTreeSet<String>>,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    servers: Arc<Servers>,
    open: watch::Receiver<bool>,
    revoked: watch::Receiver<BTreeSet<String>>,
}

impl Gateway {
    /// Many projects on one server, over plain HTTP on a free port of the loopback, with the rights of the plane's client.
    pub async fn start(plane: &Plane) -> Result<Self> {
        Self::serve(Servers::shared(plane)).await
    }

    /// One server for each project: paths that are not below a project go to the plane `milo` of the lab, those of project
    /// `id` to the plane that is named like it.
    ///
    /// A caller is who its bearer token names, without any right but those that RBAC gives to that user; without a token it
    /// is the administrator.
    pub async fn of_planes(lab: &Lab, milo: &str, projects: &[&str]) -> Result<Self> {
        Self::serve(Servers::each(lab, milo, projects).await?).await
    }

    async fn serve(servers: Servers) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("failed to open a port for the project gateway")?;
        let address = listener
            .local_addr()
            .context("failed to learn the gateway's own address")?;
        let (open, is_open) = watch::channel(true);
        let (revoked, is_revoked) = watch::channel(BTreeSet::new());
        let shared = Shared {
            servers: Arc::new(servers),
            open: is_open,
            revoked: is_revoked,
        };
        let router = Router::new().fallback(serve).with_state(shared);
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("gateway: {error}");
            }
        });
        Ok(Self {
            url: format!("http://{address}"),
            open,
            revoked,
            server,
        })
    }

    /// How clients reach milo; projects are below it.
    pub fn config(&self) -> Result<Config> {
        Ok(Config::new(self.url.parse().context("the gateway's URL is none")?))
    }

    /// The same as a kubeconfig in a directory; for a user, or for the administrator.
    pub fn kubeconfig(&self, dir: &Path, user: Option<&str>) -> Result<PathBuf> {
        let credentials = user.map_or_else(|| json!({}), |user| json!({ "token": user }));
        let name = format!("gateway-{}", user.unwrap_or("admin").replace(':', "-"));
        kubeconfig::write(dir, &name, &kubeconfig::document(&self.url, None, &credentials))
    }

    /// The URL of a project's API server.
    #[must_use]
    pub fn project_url(&self, id: &str) -> String {
        format!("{}{}{id}/control-plane", self.url, route::PROJECTS)
    }

    /// From now on whoever has this token is answered 401. What has begun goes on, as on a real server.
    pub fn revoke(&self, token: &str) {
        self.revoked.send_modify(|revoked| {
            revoked.insert(token.to_owned());
        });
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

async fn serve(State(shared): State<Shared>, request: Request) -> Response {
    let uri = request.uri();
    let hop = match shared.servers.hop(uri.path(), uri.query()) {
        Ok(hop) => hop,
        Err(missing) => return refusal(StatusCode::NOT_FOUND, "NotFound", missing),
    };
    let mut open = shared.open.clone();
    if !*open.borrow_and_update() {
        let message = "the gateway is closed";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message);
    }
    if caller::token(request.headers()).is_some_and(|token| shared.revoked.borrow().contains(token)) {
        return refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
    }
    match forward(&hop, request).await {
        Ok(answer) => {
            let (parts, body) = answer.into_parts();
            // An error means that the gateway is gone: closed as well.
            let closed = async move { open.wait_for(|is_open| !*is_open).await.map(drop) };
            let body = Body::new(body).into_data_stream().take_until(Box::pin(closed));
            Response::from_parts(parts, Body::from_stream(body))
        }
        Err(error) => refusal(StatusCode::BAD_GATEWAY, "ServiceUnavailable", &format!("{error:#}")),
    }
}

async fn forward(hop: &Hop<'_>, request: Request) -> Result<http::Response<kube::client::Body>> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, LARGEST_BODY)
        .await
        .context("failed to read the request")?;
    let mut forwarded = http::Request::builder().method(parts.method).uri(&hop.target);
    for name in [ACCEPT, CONTENT_TYPE] {
        if let Some(value) = parts.headers.get(&name) {
            forwarded = forwarded.header(name, value);
        }
    }
    if hop.server.takes_callers() {
        for (name, value) in caller::headers(&parts.headers, hop.project)? {
            forwarded = forwarded.header(name, value);
        }
    }
    let forwarded = forwarded
        .body(body.to_vec().into())
        .context("failed to make a request")?;
    let sent = hop.server.client().send(forwarded).await;
    sent.context("failed to reach the server")
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(),
        "reason": reason, "message": message,
    });
    (code, [(CONTENT_TYPE, "application/json")], status.to_string()).into_response()
}
