//! Servers of projects: each answers by the same rule, and all that they are asked is noted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use popcell_core::plan::Plane;
use serde_json::Value;
use tokio::time::sleep;
use tower::{BoxError, service_fn};

use crate::admission::Record;
use crate::planes::Transport;
use popcell_client::ConnectError;

/// What a server does with a request.
pub(super) enum Reply {
    Json(Value),
    Text(StatusCode, &'static str),
    /// After so long.
    Late(Duration, Value),
    /// Takes the request and says nothing.
    Never,
    /// Takes no connection.
    Away,
}

/// A request that was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) plane: Plane,
    /// Method and path with query.
    pub(super) what: String,
    pub(super) body: Value,
}

#[derive(Clone)]
pub(super) struct Servers(Arc<Inner>);

struct Inner {
    answer: Box<dyn Fn(&Asked) -> Reply + Send + Sync>,
    asked: Mutex<Vec<Asked>>,
    clients: Mutex<Vec<Plane>>,
    outcomes: Mutex<Vec<&'static str>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Servers {
    /// Answers by method and path.
    pub(super) fn new(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::seeing(move |asked| answer(&asked.what))
    }

    /// Answers by all of the request.
    pub(super) fn seeing(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            answer: Box::new(answer),
            asked: Mutex::default(),
            clients: Mutex::default(),
            outcomes: Mutex::default(),
            now: AtomicUsize::default(),
            most: AtomicUsize::default(),
        }))
    }

    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.clone())
    }

    pub(super) fn record(&self) -> Record {
        let servers = self.clone();
        Arc::new(move |outcome, _| servers.0.outcomes.lock().unwrap().push(outcome))
    }

    /// What was asked since the last call, sorted: questions are asked at once.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let mut asked = std::mem::take(&mut *self.0.asked.lock().unwrap());
        asked.sort_by_key(|one| (one.plane.clone(), one.what.clone(), one.body.to_string()));
        asked
    }

    /// The same, method and path only.
    pub(super) fn paths(&self) -> Vec<String> {
        self.asked().into_iter().map(|one| one.what).collect()
    }

    /// Planes that a client was made for, one entry for each client.
    pub(super) fn clients(&self) -> Vec<Plane> {
        self.0.clients.lock().unwrap().clone()
    }

    /// Outcomes since the last call.
    pub(super) fn outcomes(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.outcomes.lock().unwrap())
    }

    /// How many requests were being answered at once, at most.
    pub(super) fn most_at_once(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    async fn answer(self, plane: Plane, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let asked = Asked {
            plane,
            what: format!("{} {}", head.method, head.uri),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let reply = (self.0.answer)(&asked);
        self.0.asked.lock().unwrap().push(asked);
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        let (status, text) = match reply {
            Reply::Json(value) => (StatusCode::OK, value.to_string()),
            Reply::Text(status, text) => (status, text.to_owned()),
            Reply::Late(time, value) => {
                sleep(time).await;
                (StatusCode::OK, value.to_string())
            }
            Reply::Never => std::future::pending().await,
            Reply::Away => return Err("tcp connect error: 10.1.2.3:6443 refused it".into()),
        };
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        Ok(response)
    }
}

impl Transport for Servers {
    fn client(&self, plane: &Plane) -> Result<Client, ConnectError> {
        self.0.clients.lock().unwrap().push(plane.clone());
        let (servers, plane) = (self.clone(), plane.clone());
        let service = service_fn(move |request| servers.clone().answer(plane.clone(), request));
        Ok(Client::new(service, "default"))
    }
}
