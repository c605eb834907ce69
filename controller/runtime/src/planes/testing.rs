//! Planes whose servers answer no watch, and nothing else but what a test says: it fills the stores itself.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher::Event;
use popcell_api::kind::{INSTANCE, Kind, RESOURCE_CLAIM};
use popcell_core::limits::Limits;
use popcell_core::plan::Plane;
use serde_json::Value;

use super::{CELL, CELL_NETWORKS, Change, Listener, Planes, Store, Transport, WatchSpec, management, of_source};
use popcell_client::ConnectError;
use popcell_core::object::Raw;

/// What a server is asked.
pub(crate) struct Asked {
    pub(crate) plane: Plane,
    /// Method, path and query.
    pub(crate) line: String,
    /// Null where there is none.
    pub(crate) body: Value,
}

/// Status and body of the answer, 0 where there is no connection; without one, the server never answers.
pub(crate) type Answer = dyn Fn(Asked) -> Option<(u16, Value)> + Send + Sync;

#[derive(Clone)]
struct ScriptedTransport(Arc<Answer>);

impl ScriptedTransport {
    async fn answer(self, plane: Plane, request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let line = format!("{} {}", request.method(), request.uri());
        let body = request.into_body().collect_bytes().await.unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        match (self.0)(Asked { plane, line, body }) {
            Some((0, _)) => {
                // Not before what came over it was looked at.
                tokio::task::yield_now().await;
                Err(std::io::ErrorKind::ConnectionReset.into())
            }
            Some((code, body)) => {
                let mut response = Response::new(Body::from(body.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(code).unwrap();
                Ok(response)
            }
            None => std::future::pending().await,
        }
    }
}

impl Transport for ScriptedTransport {
    fn client(&self, plane: &Plane) -> Result<Client, ConnectError> {
        let (reported, plane) = (self.clone(), plane.clone());
        let answer = move |request: Request<Body>| reported.clone().answer(plane.clone(), request);
        Ok(Client::new(tower::service_fn(answer), "default"))
    }
}

/// Nobody.
pub(crate) struct Deaf;

impl Listener for Deaf {
    fn changed(&self, _: &Plane, _: Kind, _: &Change) {}
    fn disengaged(&self, _: &Plane) {}
}

/// A client of a server that answers so.
pub(crate) fn client(answer: &Arc<Answer>, plane: &Plane) -> Client {
    ScriptedTransport(Arc::clone(answer)).client(plane).unwrap()
}

/// No plane yet.
pub(crate) fn silent() -> Planes {
    silent_for(Arc::new(Deaf))
}

/// The same, with somebody who is told that planes are disengaged.
pub(crate) fn silent_for(listener: Arc<dyn Listener>) -> Planes {
    answering(listener, Arc::new(|_| None))
}

/// The same with answers.
pub(crate) fn answering(listener: Arc<dyn Listener>, answer: Arc<Answer>) -> Planes {
    watching(listener, answer, management)
}

/// The same with what is watched.
pub(crate) fn watching(listener: Arc<dyn Listener>, answer: Arc<Answer>, watch_specs: Watched) -> Planes {
    Planes::new(
        Box::new(ScriptedTransport(answer)),
        Box::new(watch_specs),
        Limits::DEFAULT,
        listener,
    )
}

/// What is watched on a plane.
pub(crate) type Watched = fn(&Plane) -> Arc<[WatchSpec]>;

/// The name of the cell in [`of_cell`].
pub(crate) const CLUSTER: &str = "dfw-01";

/// What the controllers of a cell watch.
pub(crate) fn of_cell(plane: &Plane) -> Arc<[WatchSpec]> {
    match plane {
        Plane::Cell => Arc::from(CELL),
        Plane::Hub => Arc::from([of_source(INSTANCE, CLUSTER)]),
        Plane::Project(_) => Arc::from([of_source(RESOURCE_CLAIM, CLUSTER)]),
        Plane::Discovery => Arc::from([]),
    }
}

/// The same where Instances wait for networks.
pub(crate) fn of_networked_cell(plane: &Plane) -> Arc<[WatchSpec]> {
    match plane {
        Plane::Cell => CELL.into_iter().chain(CELL_NETWORKS).collect(),
        _ => of_cell(plane),
    }
}

/// The store of a kind on a plane that is engaged.
pub(crate) fn store(planes: &Planes, plane: &Plane, kind: Kind) -> Arc<Store> {
    Arc::clone(planes.get(plane).unwrap().store(kind).unwrap())
}

/// A full list with nothing in it.
pub(crate) fn list_nothing(store: &Store) {
    list(store, Vec::new());
}

/// A full list, and what it changes.
pub(crate) fn list(store: &Store, objects: Vec<Value>) -> Vec<Change> {
    store.take(Event::Init);
    for object in objects {
        store.take(Event::InitApply(raw(object)));
    }
    store.take(Event::InitDone)
}

/// An object comes or changes, and what that changes.
pub(crate) fn put(store: &Store, object: Value) -> Vec<Change> {
    store.take(Event::Apply(raw(object)))
}

/// An object goes, and what that changes.
pub(crate) fn remove(store: &Store, object: Value) -> Vec<Change> {
    store.take(Event::Delete(raw(object)))
}

fn raw(object: Value) -> Raw {
    serde_json::from_value(object).unwrap()
}
