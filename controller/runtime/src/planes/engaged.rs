//! One engaged plane: its client, its stores and the tasks that fill them.

use std::sync::Arc;

use futures::future::select_all;
use kube::Client;
use popcell_api::kind::Kind;
use popcell_core::limits::Limits;
use popcell_core::metrics::plane_kind;
use popcell_core::object::Object;
use popcell_core::plan::{Plane, Target};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, info_span};

use super::Connection;
use super::Listener;
use super::budget::Budget;
use super::change::Change;
use super::follow::{Follow, Reached, Renewal, Streams};
use super::interest::{Interest, When};
use super::store::Store;
use crate::memory::Memory;
use crate::required::Required;

/// A plane while it is engaged. Reading goes on after the plane was disengaged, but everything is Unknown then.
pub struct Engaged {
    plane: Plane,
    uid: Option<String>,
    client: Client,
    interests: Arc<[Interest]>,
    stores: Vec<(Kind, Arc<Store>)>,
    memory: Arc<Memory>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What all planes share.
pub(super) struct Shared<'a> {
    pub(super) streams: &'a Streams,
    pub(super) listener: &'a Arc<dyn Listener>,
    /// Told of watches that end.
    pub(super) required: &'a Required,
    /// This plane's.
    pub(super) reached: Reached,
}

/// Whether any of some stores has an object.
#[derive(Clone)]
struct Occupied(Vec<Arc<Store>>);

impl Occupied {
    /// Returns when any of them has one, or none has.
    async fn becomes(&self, wanted: bool) {
        loop {
            // Before looking: what happens from then on is told.
            let changes: Vec<_> = self.0.iter().map(|each| Box::pin(each.occupancy_changes())).collect();
            if self.is_any() == wanted {
                return;
            }
            if changes.is_empty() {
                return std::future::pending().await;
            }
            select_all(changes).await;
        }
    }

    fn is_any(&self) -> bool {
        self.0.iter().any(|each| each.is_occupied())
    }
}

impl Engaged {
    /// Begins to watch.
    pub(super) fn start(
        plane: Plane,
        uid: Option<String>,
        connection: Connection,
        interests: Arc<[Interest]>,
        limits: Limits,
        shared: &Shared<'_>,
    ) -> Self {
        let Shared {
            streams,
            listener,
            required,
            ..
        } = *shared;
        let renewal = connection.renewed.map(|told| Renewal::new(&plane, told));
        let budget = Budget::new(limits, &plane);
        let stores = interests
            .iter()
            .map(|interest| (interest.kind, Arc::new(Store::of(interest.kind, budget.clone()))));
        let engaged = Self {
            plane,
            uid,
            client: connection.client,
            stores: stores.collect(),
            interests,
            memory: Arc::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let streams = streams.of_plane();
        for interest in engaged.interests.iter() {
            let following = (renewal.clone(), shared.reached.clone());
            let keep = engaged.keep(interest.clone(), following, streams.clone(), Arc::clone(listener));
            if let Some(keep) = keep {
                let task = format!("the watch of {} in the {}", interest.kind.kind, engaged.plane);
                engaged
                    .tasks
                    .spawn(required.clone().until(engaged.stop.clone(), task, keep));
            }
        }
        engaged
    }

    /// Follows a kind until the plane is disengaged.
    fn keep(
        &self,
        interest: Interest,
        (mut renewal, reached): (Option<Renewal>, Reached),
        streams: Streams,
        listener: Arc<dyn Listener>,
    ) -> Option<impl Future<Output = Option<()>> + use<>> {
        let store = self.store(interest.kind).cloned()?;
        let occupied = match interest.when {
            When::Engaged | When::Optional => None,
            When::Any(triggers) => Some(Occupied(
                triggers
                    .iter()
                    .filter_map(|trigger| self.store(*trigger).cloned())
                    .collect(),
            )),
        };
        let (client, plane) = (self.client.clone(), self.plane.clone());
        let kind = interest.kind;
        let keep = async move {
            let tell = |change: Change| listener.changed(&plane, interest.kind, &change);
            let went_back = || listener.went_back(&plane);
            let follow = Follow {
                client: &client,
                plane_kind: plane_kind(&plane),
                leave: matches!(plane, Plane::Project(_)).then(|| streams.leave()),
                interest: &interest,
                store: &store,
                reached: &reached,
                tell: &tell,
                went_back: &went_back,
            };
            let Some(occupied) = occupied else {
                return Box::pin(follow.run(&streams, &mut renewal)).await;
            };
            loop {
                occupied.becomes(true).await;
                tokio::select! {
                    // Boxed: most kinds of most projects wait for the first object of another.
                    () = Box::pin(follow.run(&streams, &mut renewal)) => {}
                    () = occupied.becomes(false) => {}
                }
                tell(store.clear());
            }
        };
        // Boxed: each of the futures around it would have room for it twice, for thousands of projects.
        let keep = Box::pin(keep);
        // Which watch a line of the log is about.
        let keep = keep.instrument(info_span!("watch", plane = %self.plane, kind = kind.kind));
        Some(self.stop.clone().run_until_cancelled_owned(keep))
    }

    /// The plane.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// The uid of the Project, in mode `milo`.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// A client for short requests.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What is remembered of it beside its stores: that goes with it.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The store of a kind; `None` where it is never watched on this plane. A kind whose time has not come is Unknown.
    pub fn store(&self, kind: Kind) -> Option<&Arc<Store>> {
        let found = self.stores.iter().find(|(each, _)| *each == kind);
        found.map(|(_, store)| store)
    }

    /// A server answered to a write of ours that an object is so: its store is read so from now on.
    pub fn wrote(&self, kind: Kind, object: &Object) {
        let interest = self.interests.iter().find(|interest| interest.kind == kind);
        if let (Some(interest), Some(store)) = (interest, self.store(kind)) {
            store.wrote(object, interest.sees(object));
        }
    }

    /// A server answered that the object of this uid, which was there at this version, is gone.
    pub fn deleted(&self, target: &Target, uid: &str, version: &str) {
        self.memory.forget(target);
        if let Some(store) = self.store(target.kind) {
            let namespace = target.namespace.as_deref().unwrap_or_default();
            store.deleted(namespace, &target.name, uid, version);
        }
    }

    /// All stores, by kind.
    pub fn stores(&self) -> impl Iterator<Item = (Kind, &Arc<Store>)> {
        self.stores.iter().map(|(kind, store)| (*kind, store))
    }

    /// Whether everything that is to be watched now was fully listed since its last reconnect. A kind whose time has not
    /// come is not missed, nor is one that is optional.
    pub fn is_known(&self) -> bool {
        self.missed().next().is_none()
    }

    /// The stores that keep it from being known.
    pub fn missed(&self) -> impl Iterator<Item = (Kind, &Arc<Store>)> {
        let due = self.interests.iter().filter(|interest| self.is_due(interest.when));
        let stores = due.filter_map(|interest| Some((interest.kind, self.store(interest.kind)?)));
        stores.filter(|(_, store)| !store.is_known())
    }

    fn is_due(&self, when: When) -> bool {
        match when {
            When::Engaged => true,
            When::Optional => false,
            When::Any(triggers) => {
                let mut stores = triggers.iter().filter_map(|trigger| self.store(*trigger));
                stores.any(|store| store.is_occupied())
            }
        }
    }

    /// Frees every watch, and returns when nothing more will be told.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        for (_, store) in &self.stores {
            store.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::planes::testing;

    #[tokio::test]
    async fn a_kind_is_watched_while_any_of_its_triggers_has_an_object() {
        let stores = [Arc::<Store>::default(), Arc::<Store>::default()];
        let object = || json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "1" } });
        let occupied = Occupied(stores.to_vec());
        let [one, other] = &stores;
        let mut waits = Box::pin(occupied.becomes(true));
        assert!(futures::poll!(&mut waits).is_pending());
        testing::put(other, object());
        waits.await;
        let mut waits = Box::pin(occupied.becomes(false));
        assert!(futures::poll!(&mut waits).is_pending());
        testing::put(one, object());
        testing::remove(other, object());
        assert!(
            futures::poll!(&mut waits).is_pending(),
            "one of them has an object still"
        );
        testing::remove(one, object());
        waits.await;
        let mut waits = Box::pin(occupied.becomes(true));
        assert!(futures::poll!(&mut waits).is_pending());
        testing::put(one, object());
        waits.await;
        // A store that nobody fills any more has nothing.
        let mut waits = Box::pin(occupied.becomes(false));
        assert!(futures::poll!(&mut waits).is_pending());
        one.clear();
        waits.await;
    }
}
