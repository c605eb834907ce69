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
    Planes::new(Box::new(Silent), interests, Arc::new(Deaf))
}

/// The store of a kind on a plane that is engaged.
pub(crate) fn store(planes: &Planes, plane: &Plane, kind: Kind) -> Arc<Store> {
    Arc::clone(planes.get(plane).unwrap().store(kind).unwrap())
}

/// A full list with nothing in it.
pub(crate) fn list_nothing(store: &Store) {
    store.take::<false>(Event::Init);
    store.take::<false>(Event::InitDone);
}

/// An object comes or changes.
pub(crate) fn put(store: &Store, object: Value) {
    let raw: Raw<false> = serde_json::from_value(object).unwrap();
    store.take(Event::Apply(raw));
}
