//! Planes whose servers never answer: a test fills the stores itself.

use std::sync::Arc;

use kube::Client;
use kube::runtime::watcher::Event;
use popcell_api::kind::Kind;
use popcell_core::plan::Plane;
use serde_json::Value;

use super::raw::Raw;
use super::{Change, HUB, Interest, Listener, PROJECT, Planes, Store, Transport};
use crate::error::Error;

struct Silent;

impl Transport for Silent {
    fn client(&self, _: &Plane) -> Result<Client, Error> {
        let never = |_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        };
        Ok(Client::new(tower::service_fn(never), "default"))
    }
}

struct Deaf;

impl Listener for Deaf {
    fn changed(&self, _: &Plane, _: Kind, _: &Change) {}
    fn disengaged(&self, _: &Plane) {}
}

fn interests(plane: &Plane) -> &'static [Interest] {
    match plane {
        Plane::Project(_) => &PROJECT,
        Plane::Hub => &HUB,
        Plane::Cell => &[],
    }
}

/// No plane yet.
pub(crate) fn silent() -> Planes {
    silent_for(Arc::new(Deaf))
}

/// The same, with somebody who is told that planes are disengaged.
pub(crate) fn silent_for(listener: Arc<dyn Listener>) -> Planes {
    Planes::new(Box::new(Silent), interests, listener)
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
    store.take::<false>(Event::Init);
    for object in objects {
        store.take(Event::InitApply(raw(object)));
    }
    store.take::<false>(Event::InitDone)
}

/// An object comes or changes, and what that changes.
pub(crate) fn put(store: &Store, object: Value) -> Vec<Change> {
    store.take(Event::Apply(raw(object)))
}

/// An object goes, and what that changes.
pub(crate) fn remove(store: &Store, object: Value) -> Vec<Change> {
    store.take(Event::Delete(raw(object)))
}

fn raw(object: Value) -> Raw<false> {
    serde_json::from_value(object).unwrap()
}
