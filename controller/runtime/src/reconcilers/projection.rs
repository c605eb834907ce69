//! `projection`: see [`popcell_core::projection`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::identity;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Action, NAMESPACE, Plan, Plane, Target};
use popcell_core::projection::{self, Observation, PROJECTION_RESTORED};
use popcell_core::slots;

use super::{events, federation};
use crate::apply::{ApplyError, Done};
use crate::pass::{Live, Reconciler, Sight, refs};
use crate::planes::Change;
use crate::queue::Key;
use crate::world::World;

/// Name of the reconciler.
pub(super) const PROJECTION_RECONCILER: &str = "projection";

/// Name in the key of the pass that deletes all projections without a copy: what a list brought is not told of one by one.
const SWEEP: &str = "";

/// Key: an Instance of a hub namespace, or of the project's, by the name of both; without a name, all projections that come
/// from that namespace.
#[derive(Debug, Default)]
pub struct Projection {
    /// The last projections that are known to have been deleted, by hub namespace and name of a copy that lives.
    removed: Mutex<BTreeMap<(String, String), Removed>>,
}

/// The hub's WorkloadDeployment of a copy.
type Carried = Observed<Option<Arc<Object>>>;

/// A projection that is not there any more.
#[derive(Debug, Default)]
struct Removed {
    uid: String,
    /// Its user knows how to restart, or it was deleted by us.
    told: bool,
}

impl Removed {
    fn went(&mut self, uid: &str, told: bool) {
        self.told = told || self.told && self.uid == uid;
        uid.clone_into(&mut self.uid);
    }
}

impl Projection {
    fn removed(&self) -> MutexGuard<'_, BTreeMap<(String, String), Removed>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read says that a projection is gone, or we deleted it: the watch is going to say so too.
    fn went(&self, hub_namespace: &str, name: &str, uid: &str, told: bool) {
        let mut removed = self.removed();
        let known = removed.entry((hub_namespace.to_owned(), name.to_owned())).or_default();
        known.went(uid, told);
    }

    /// The watch says that a projection is gone, which is the last that is heard of it.
    fn ended(&self, hub_namespace: &str, name: &str, uid: &str, shown: bool) {
        let address = (hub_namespace.to_owned(), name.to_owned());
        let mut removed = self.removed();
        let is_over = removed.get(&address).is_some_and(|one| one.uid == uid && one.told);
        if is_over || !shown {
            removed.remove(&address);
        } else {
            removed.entry(address).or_default().went(uid, false);
        }
    }

    /// What was swept before: of what no copy is there any more nobody is told.
    fn forget(&self, world: &World, hub_namespace: &str) {
        let copies = events::stored(world, &Plane::Hub, kind::INSTANCE, Some(hub_namespace));
        let shown: BTreeSet<&str> = copies.iter().map(|one| one.name()).collect();
        self.removed()
            .retain(|(namespace, name), _| namespace != hub_namespace || shown.contains(name.as_str()));
    }

    fn show(
        &self,
        seen: &Observation<'_>,
        copy: &Object,
        carried: &Carried,
        shown: Option<&Object>,
        key: &Key,
    ) -> Plan {
        let removed = self.removed();
        let removed = removed.get(&(key.namespace.clone(), key.name.clone()));
        let uid = removed.filter(|one| !one.told).map(|one| one.uid.as_str());
        let carried = carried.as_ref().map(Option::as_deref);
        projection::show(seen, copy, carried, shown, uid)
    }

    fn in_project(&self, world: &World, id: &str, change: &Change) -> Vec<Key> {
        let Some((namespace, name)) = events::address(change) else {
            return Vec::new();
        };
        let copies = world.store(&Plane::Hub, kind::INSTANCE);
        let is_copy = |within: &str| {
            let copy = copies.as_ref().map(|copies| copies.get(within, name));
            matches!(copy, Some(Observed::Known(Some(_))))
        };
        let mut woken = Vec::new();
        for hub_namespace in world.hub_index.of(id, namespace) {
            if let Change::Gone { last: Some(last), .. } = change
                && last.marked()
            {
                self.ended(&hub_namespace, name, last.uid(), is_copy(&hub_namespace));
            }
            woken.push(Key::new(&Plane::Hub, &hub_namespace, name));
        }
        woken
    }
}

impl Reconciler for Projection {
    fn name(&self) -> &'static str {
        PROJECTION_RECONCILER
    }

    fn prepare<'a>(
        &'a self,
        world: &'a World,
        live: &'a mut Live,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let Some((plane, namespace)) = federation::owner(world, &key.namespace) else {
                return Ok(());
            };
            world.read_namespace(live, &plane, &namespace).await?;
            if key.name == SWEEP {
                return Ok(());
            }
            let sight = Sight::new(world, live);
            let copy = sight.get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name);
            let stored = sight.get(&plane, kind::INSTANCE, &namespace, &key.name);
            let (Observed::Known(Some(copy)), Observed::Known(Some(stored))) = (copy, stored) else {
                return Ok(());
            };
            // For a delete its metadata is enough.
            if copy.deleting() {
                return Ok(());
            }
            let target = Target::namespaced(&plane, kind::INSTANCE, &namespace, &key.name);
            // A whole object is one that was read live in an earlier turn of this pass.
            if stored.data.get("spec").is_some() {
                return Ok(());
            }
            let found = match world.applier.remembered(&target, stored.resource_version()) {
                Some(known) => Some(known),
                None => world.applier.read(&target).await?.map(Arc::new),
            };
            // A read may know of it before the watch does.
            if found.is_none() && stored.marked() {
                self.went(&key.namespace, &key.name, stored.uid(), false);
            }
            live.insert(&target, found);
            Ok(())
        })
    }

    fn decide(&self, sight: &Sight<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let hub_namespace = sight.get(&Plane::Hub, NAMESPACE, "", &key.namespace).known()??;
        let (id, namespace_name) = identity::of_namespace(&hub_namespace)?;
        let plane = Plane::Project(id.to_owned());
        let deployments = sight.in_namespace(&plane, kind::WORKLOAD_DEPLOYMENT, namespace_name);
        let deployments = deployments.as_ref().map(|all| refs(all));
        let clusters = sight.all(&Plane::Hub, kind::CLUSTER);
        let clusters = clusters.as_ref().map(|all| refs(all));
        let namespace = sight.project_namespace(&plane, namespace_name);
        sight.project(&plane, |project| {
            let seen = Observation {
                project,
                namespace: namespace.as_ref().map(Option::as_deref),
                hub_namespace: &hub_namespace,
                deployments: deployments.as_ref().map(Vec::as_slice),
                clusters: clusters.as_ref().map(Vec::as_slice),
                ledger: sight.world.applier.ledger(),
            };
            if key.name == SWEEP {
                let copies = sight.in_namespace(&Plane::Hub, kind::INSTANCE, &key.namespace);
                let projections = sight.in_namespace(&plane, kind::INSTANCE, namespace_name).known()?;
                let copies = copies.as_ref().map(|all| refs(all));
                return Some(projection::sweep(
                    &seen,
                    copies.as_ref().map(Vec::as_slice),
                    &refs(&projections),
                ));
            }
            let copy = sight
                .get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name)
                .known()?;
            let shown = sight.get(&plane, kind::INSTANCE, namespace_name, &key.name).known()?;
            let plan = copy
                .as_deref()
                .map(|copy| self.show(&seen, copy, &carried(sight, key, copy), shown.as_deref(), key));
            let Some(shown) = shown.as_deref() else {
                if copy.is_none() {
                    self.removed().remove(&(key.namespace.clone(), key.name.clone()));
                }
                return plan;
            };
            if plan.as_ref().is_some_and(|plan| !plan.is_dropped()) {
                return plan;
            }
            let copies: Vec<&Object> = copy.as_deref().into_iter().collect();
            let swept = projection::sweep(&seen, Observed::Known(&copies), &[shown]);
            if swept.is_quiet() { plan } else { Some(swept) }
        })?
    }

    fn shown_by(&self, world: &World, key: &Key) -> Vec<(&'static str, Key)> {
        federation::user_of_instance(world, &key.namespace, &key.name)
    }

    fn carried_out(&self, world: &World, key: &Key, plan: &Plan, done: Done) {
        if key.name == SWEEP {
            self.forget(world, &key.namespace);
        }
        for action in plan.actions.iter().filter(|_| done == Done::Written) {
            if let Action::Delete(delete) = action {
                self.went(&key.namespace, &delete.target.name, &delete.on.uid, true);
            }
        }
        if plan.events.iter().any(|event| event.reason == PROJECTION_RESTORED)
            && let Some(removed) = self.removed().get_mut(&(key.namespace.clone(), key.name.clone()))
        {
            removed.told = true;
        }
    }

    fn note(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let (Plane::Hub, NAMESPACE, Change::Gone { name, .. }) = (plane, kind, change) {
            self.removed().retain(|(namespace, _), _| namespace != name);
        }
    }

    fn wake(&self, world: &World, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE | kind::CLUSTER | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                all(world)
            }
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if is_scaled(change) => events::address(change)
                .map(|(namespace, name)| of_deployment(world, namespace, name))
                .unwrap_or_default(),
            (Plane::Hub, kind::INSTANCE) => events::address(change)
                .map(|(namespace, name)| Key::new(plane, namespace, name))
                .into_iter()
                .collect(),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, name)| of_namespace(world, name))
                .unwrap_or_default(),
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, cluster)| from_source(world, cluster))
                .unwrap_or_default(),
            (Plane::Project(id), NAMESPACE) => events::address(change)
                .map(|(_, namespace)| world.hub_index.of(id, namespace).into_iter())
                .into_iter()
                .flatten()
                .flat_map(|name| of_namespace(world, &name))
                .collect(),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE) if events::is_listed(change) => {
                let all = world.hub_index.of_project(id).into_iter();
                all.flat_map(|name| of_namespace(world, &name)).collect()
            }
            (Plane::Project(id), kind::INSTANCE) => self.in_project(world, id, change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => events::address(change)
                .map(|(namespace, _)| world.hub_index.of(id, namespace).into_iter())
                .into_iter()
                .flatten()
                .flat_map(|name| of_namespace(world, &name))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn keys(&self, world: &World, plane: &Plane) -> Vec<Key> {
        let Plane::Project(id) = plane else { return Vec::new() };
        let all = world.hub_index.of_project(id).into_iter();
        all.map(|name| Key::new(&Plane::Hub, &name, SWEEP)).collect()
    }

    fn all(&self, world: &World) -> Vec<Key> {
        all(world)
    }
}

fn carried(sight: &Sight<'_>, key: &Key, copy: &Object) -> Carried {
    let Some(name) = copy.label(labels::WORKLOAD_DEPLOYMENT_NAME) else {
        return Observed::Known(None);
    };
    sight.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &key.namespace, name)
}

fn all(world: &World) -> Vec<Key> {
    let namespaces = events::stored(world, &Plane::Hub, NAMESPACE, None);
    namespaces
        .iter()
        .flat_map(|one| of_namespace(world, one.name()))
        .collect()
}

fn of_namespace(world: &World, hub_namespace: &str) -> Vec<Key> {
    let copies = events::stored(world, &Plane::Hub, kind::INSTANCE, Some(hub_namespace));
    let key = |name: &str| Key::new(&Plane::Hub, hub_namespace, name);
    copies.iter().map(|one| key(one.name())).chain([key(SWEEP)]).collect()
}

/// Copies of the slots of a WorkloadDeployment.
fn of_deployment(world: &World, hub_namespace: &str, name: &str) -> Vec<Key> {
    let prefix = slots::prefix(name);
    let copies = events::picked(world, &Plane::Hub, kind::INSTANCE, |store| {
        store.starting(hub_namespace, &prefix)
    });
    let key = |one: &Arc<Object>| Key::new(&Plane::Hub, hub_namespace, one.name());
    copies.iter().map(key).collect()
}

/// Whether a WorkloadDeployment asks for more or fewer slots than before. For none that has gone anything is shown anew.
fn is_scaled(change: &Change) -> bool {
    match change {
        Change::Applied { before, now } => before.as_deref().map_or(0, slots::desired) != slots::desired(now),
        _ => false,
    }
}

fn from_source(world: &World, cluster: &str) -> Vec<Key> {
    let copies = events::stored(world, &Plane::Hub, kind::INSTANCE, None);
    let theirs = copies.iter().filter(|one| is_from(one, cluster));
    theirs
        .map(|one| Key::new(&Plane::Hub, one.namespace(), one.name()))
        .collect()
}

fn is_from(copy: &Object, cluster: &str) -> bool {
    copy.label(labels::SOURCE_CLUSTER) == Some(cluster)
}
