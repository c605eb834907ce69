//! A proxy between a program and a real server, which fails as a test asks for. Without a fault every answer is the
//! server's; it counts all that it is asked.
//!
//! It takes plain HTTP/1 on a port of the loopback and reaches the server with the credentials of a kubeconfig, so that
//! whoever is given its own kubeconfig has these rights and no others. Where that kubeconfig names no user, a caller is who
//! its own token names.

mod asked;
mod fault;
mod rules;
mod stream;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{self, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub use asked::Asked;
pub use fault::{Answer, Fault};
pub use rules::Injected;
use rules::Rules;

use crate::kubeconfig;
use crate::plane::Plane;

/// Larger than any object that etcd takes, and than any list of a test.
const LARGEST_BODY: usize = 64 << 20;

/// A running proxy; it ends when this value is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    state: Arc<State>,
    server: JoinHandle<Infallible>,
}

struct State {
    client: Client,
    rules: Rules,
    counts: Mutex<BTreeMap<Asked, u64>>,
    answers: Mutex<BTreeMap<(Asked, u16), u64>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl FaultProxy {
    /// One in front of the server of a kubeconfig.
    pub async fn start(kubeconfig: &Path) -> Result<Self> {
        let client = Plane::connect("behind a fault proxy", kubeconfig)
            .await?
            .client()
            .clone();
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.context("failed to open a port for a fault proxy")?;
        let address = listener
            .local_addr()
            .context("failed to learn a fault proxy's own address")?;
        let state = Arc::new(State {
            client,
            rules: Rules::default(),
            counts: Mutex::default(),
            answers: Mutex::default(),
        });
        let server = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            url: format!("http://{address}"),
            state,
            server,
        })
    }

    /// Writes a kubeconfig that leads through it into a directory.
    pub fn kubeconfig(&self, dir: &Path, name: &str) -> Result<PathBuf> {
        self.kubeconfig_of(dir, name, &json!({}))
    }

    /// The same with credentials for what is behind it, such as `{ "tokenFile": ... }`.
    pub fn kubeconfig_of(&self, dir: &Path, name: &str, user: &Value) -> Result<PathBuf> {
        kubeconfig::write(dir, name, &kubeconfig::document(&self.url, None, user))
    }

    /// From now on, until the answer is dropped, requests that `matching` accepts meet the fault. Of several that match
    /// the one that was injected last counts.
    #[must_use = "the fault ends when this is dropped"]
    pub fn inject(&self, fault: Fault, matching: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Injected {
        self.state.rules.inject(fault, Box::new(matching))
    }

    /// Breaks every answer that is being given, which is to say: every watch.
    pub fn cut(&self) {
        self.state.rules.cut();
    }

    /// Requests so far that `matching` accepts, whatever became of them.
    pub fn count(&self, matching: impl Fn(&Asked) -> bool) -> u64 {
        let counts = lock(&self.state.counts);
        counts
            .iter()
            .filter(|(asked, _)| matching(asked))
            .map(|(_, count)| count)
            .sum()
    }

    /// How often the server itself has answered so to requests that `matching` accepts.
    pub fn answered(&self, code: u16, matching: impl Fn(&Asked) -> bool) -> u64 {
        let answers = lock(&self.state.answers);
        let found = answers
            .iter()
            .filter(|((asked, found), _)| *found == code && matching(asked));
        found.map(|(_, count)| count).sum()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Serves connections until it is aborted, and all of them end with it.
async fn accept(listener: TcpListener, state: Arc<State>) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&state)));
                }
                Err(error) => eprintln!("fault proxy: {error}"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        async move { serve(&state, request.map(Body::new)).await }
    });
    // Its end is the client's business: it hung up, or was hung up on.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// An error closes the connection without an answer.
async fn serve(state: &Arc<State>, request: Request) -> io::Result<Response> {
    let asked = Asked::of(request.method(), request.uri());
    *lock(&state.counts).entry(asked.clone()).or_default() += 1;
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, LARGEST_BODY).await.map_err(io::Error::other)?;
    let forward = {
        let (state, asked) = (Arc::clone(state), asked.clone());
        async move { forward(&state, asked, parts, body.to_vec()).await }
    };
    match state.rules.fault(&asked) {
        None => Ok(streamed(state, asked, forward.await)),
        Some((Fault::Answer(answer), _)) => Ok(answer.response()),
        Some((Fault::Silent, lifted)) => {
            lifted.await;
            Err(io::ErrorKind::ConnectionReset.into())
        }
        Some((Fault::HungUp, _)) => Err(io::ErrorKind::ConnectionReset.into()),
        Some((Fault::Held, lifted)) => {
            // A task of its own: who sent it may not wait for it.
            let sent = tokio::spawn(async move {
                lifted.await;
                forward.await
            });
            Ok(streamed(state, asked, sent.await.map_err(io::Error::other)?))
        }
    }
}

async fn forward(state: &State, asked: Asked, parts: Parts, body: Vec<u8>) -> Response {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut forwarded = http::Request::builder().method(parts.method).uri(target);
    for name in [ACCEPT, AUTHORIZATION, CONTENT_TYPE] {
        if let Some(value) = parts.headers.get(&name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let sent = async {
        let forwarded = forwarded.body(body.into()).context("failed to make a request")?;
        state.client.send(forwarded).await.context("failed to reach the server")
    };
    match sent.await {
        Ok(answer) => {
            let code = answer.status().as_u16();
            *lock(&state.answers).entry((asked, code)).or_default() += 1;
            answer.map(Body::new)
        }
        // As a proxy says it.
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

fn streamed(state: &Arc<State>, asked: Asked, answer: Response) -> Response {
    let (parts, body) = answer.into_parts();
    let body = stream::faulty(body, asked, state.rules.watch());
    Response::from_parts(parts, Body::from_stream(body))
}

// Each hold is one step of a map: there is no half-done state that a panic could leave.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
