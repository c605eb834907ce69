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
use super::kind_watch::{KindWatch, Reached, Renewal, Streams};
use super::store::Store;
use super::watch_spec::{WatchCondition, WatchSpec};
use crate::critical_tasks::CriticalTasks;
use crate::memory::Memory;

/// A plane while it is engaged. Reading goes on after the plane was disengaged, but everything is Unknown then.
pub struct Engaged {
    plane: Plane,
    uid: Option<String>,
    client: Client,
    watch_specs: Arc<[WatchSpec]>,
    stores: Vec<(Kind, Arc<Store>)>,
    memory: Arc<Memory>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What all planes share.
pub(super) struct Shared<'a> {
    pub(super) streams: &'a Streams,
    pub(super) listener: &'a Arc<dyn Listener>,
    /// Notified of watches that end.
    pub(super) required: &'a CriticalTasks,
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
        watch_specs: Arc<[WatchSpec]>,
        limits: Limits,
        shared: &Shared<'_>,
    ) -> Self {
        let Shared {
            streams,
            listener,
            required,
            ..
        } = *shared;
        let renewal = connection.renewed.map(|reported| Renewal::new(&plane, reported));
        let budget = Budget::new(limits, &plane);
        let stores = watch_specs
            .iter()
            .map(|watch_spec| (watch_spec.kind, Arc::new(Store::of(watch_spec.kind, budget.clone()))));
        let engaged = Self {
            plane,
            uid,
            client: connection.client,
            stores: stores.collect(),
            watch_specs,
            memory: Arc::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let streams = streams.of_plane();
        for watch_spec in engaged.watch_specs.iter() {
            let following = (renewal.clone(), shared.reached.clone());
            let keep = engaged.keep(watch_spec.clone(), following, streams.clone(), Arc::clone(listener));
            if let Some(keep) = keep {
                let task = format!("the watch of {} in the {}", watch_spec.kind.kind, engaged.plane);
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
        watch_spec: WatchSpec,
        (mut renewal, reached): (Option<Renewal>, Reached),
        streams: Streams,
        listener: Arc<dyn Listener>,
    ) -> Option<impl Future<Output = Option<()>> + use<>> {
        let store = self.store(watch_spec.kind).cloned()?;
        let occupied = match watch_spec.when {
            WatchCondition::Engaged | WatchCondition::Optional => None,
            WatchCondition::Any(triggers) => Some(Occupied(
                triggers
                    .iter()
                    .filter_map(|trigger| self.store(*trigger).cloned())
                    .collect(),
            )),
        };
        let (client, plane) = (self.client.clone(), self.plane.clone());
        let kind = watch_spec.kind;
        let keep = async move {
            let notify = |change: Change| listener.changed(&plane, watch_spec.kind, &change);
            let went_back = || listener.went_back(&plane);
            let follow = KindWatch {
                client: &client,
                plane_kind: plane_kind(&plane),
                list_permit: matches!(plane, Plane::Project(_)).then(|| streams.list_permit()),
                watch_spec: &watch_spec,
                store: &store,
                reached: &reached,
                notify: &notify,
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
                notify(store.clear());
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
        let watch_spec = self.watch_specs.iter().find(|watch_spec| watch_spec.kind == kind);
        if let (Some(watch_spec), Some(store)) = (watch_spec, self.store(kind)) {
            store.wrote(object, watch_spec.sees(object));
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
        let due = self
            .watch_specs
            .iter()
            .filter(|watch_spec| self.is_due(watch_spec.when));
        let stores = due.filter_map(|watch_spec| Some((watch_spec.kind, self.store(watch_spec.kind)?)));
        stores.filter(|(_, store)| !store.is_known())
    }

    fn is_due(&self, when: WatchCondition) -> bool {
        match when {
            WatchCondition::Engaged => true,
            WatchCondition::Optional => false,
            WatchCondition::Any(triggers) => {
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
