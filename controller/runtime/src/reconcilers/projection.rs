//! `projection`: see [`popcell_core::projection`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

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

use super::{events, federation, hub_namespaces};
use crate::apply::{ApplyError, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Reconciler, Snapshot, refs};
use crate::sync::lock;

/// Name of the reconciler.
pub(super) const PROJECTION_RECONCILER: &str = "projection";

/// Name in the key of the reconcile that deletes all projections without a copy: what a list brought is not told of one
/// by one.
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
    reported: bool,
}

impl Removed {
    fn went(&mut self, uid: &str, reported: bool) {
        self.reported = reported || self.reported && self.uid == uid;
        uid.clone_into(&mut self.uid);
    }
}

impl Projection {
    fn removed(&self) -> MutexGuard<'_, BTreeMap<(String, String), Removed>> {
        lock(&self.removed)
    }

    /// A read says that a projection is gone, or we deleted it: the watch is going to say so too.
    fn went(&self, hub_namespace: &str, name: &str, uid: &str, reported: bool) {
        let mut removed = self.removed();
        let known = removed.entry((hub_namespace.to_owned(), name.to_owned())).or_default();
        known.went(uid, reported);
    }

    /// The watch says that a projection is gone, which is the last that is heard of it.
    fn ended(&self, hub_namespace: &str, name: &str, uid: &str, shown: bool) {
        let address = (hub_namespace.to_owned(), name.to_owned());
        let mut removed = self.removed();
        let is_over = removed.get(&address).is_some_and(|one| one.uid == uid && one.reported);
        if is_over || !shown {
            removed.remove(&address);
        } else {
            removed.entry(address).or_default().went(uid, false);
        }
    }

    /// What was swept before: of what no copy is there any more nobody is told.
    fn forget(&self, context: &Context, hub_namespace: &str) {
        let copies = events::stored(context, &Plane::Hub, kind::INSTANCE, Some(hub_namespace));
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
        let uid = removed.filter(|one| !one.reported).map(|one| one.uid.as_str());
        let carried = carried.as_ref().map(Option::as_deref);
        projection::show(seen, copy, carried, shown, uid)
    }

    fn in_project(&self, context: &Context, id: &str, change: &Change) -> Vec<Key> {
        let Some((namespace, name)) = events::address(change) else {
            return Vec::new();
        };
        let copies = context.store(&Plane::Hub, kind::INSTANCE);
        let is_copy = |within: &str| {
            let copy = copies.as_ref().map(|copies| copies.get(within, name));
            matches!(copy, Some(Observed::Known(Some(_))))
        };
        let mut enqueued = Vec::new();
        for hub_namespace in context.hub_index.of(id, namespace) {
            if let Change::Gone { last: Some(last), .. } = change
                && last.marked()
            {
                self.ended(&hub_namespace, name, last.uid(), is_copy(&hub_namespace));
            }
            enqueued.push(Key::new(&Plane::Hub, &hub_namespace, name));
        }
        enqueued
    }
}

impl Reconciler for Projection {
    fn name(&self) -> &'static str {
        PROJECTION_RECONCILER
    }

    fn prepare<'a>(
        &'a self,
        context: &'a Context,
        live: &'a mut LiveReads,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            let Some((plane, namespace)) = hub_namespaces::owner(context, &key.namespace) else {
                return Ok(());
            };
            context.read_namespace(live, &plane, &namespace).await?;
            if key.name == SWEEP {
                return Ok(());
            }
            let snapshot = Snapshot::new(context, live);
            let copy = snapshot.get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name);
            let stored = snapshot.get(&plane, kind::INSTANCE, &namespace, &key.name);
            let (Observed::Known(Some(copy)), Observed::Known(Some(stored))) = (copy, stored) else {
                return Ok(());
            };
            // For a delete its metadata is enough.
            if copy.deleting() {
                return Ok(());
            }
            let target = Target::namespaced(&plane, kind::INSTANCE, &namespace, &key.name);
            // A whole object is one that was read live in an earlier turn of this reconcile.
            if stored.data.get("spec").is_some() {
                return Ok(());
            }
            let found = match context.applier.remembered(&target, stored.resource_version()) {
                Some(known) => Some(known),
                None => context.applier.read(&target).await?.map(Arc::new),
            };
            // A read may know of it before the watch does.
            if found.is_none() && stored.marked() {
                self.went(&key.namespace, &key.name, stored.uid(), false);
            }
            live.insert(&target, found);
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let hub_namespace = snapshot.get(&Plane::Hub, NAMESPACE, "", &key.namespace).known()??;
        let (id, namespace_name) = identity::of_namespace(&hub_namespace)?;
        let plane = Plane::Project(id.to_owned());
        let deployments = snapshot.in_namespace(&plane, kind::WORKLOAD_DEPLOYMENT, namespace_name);
        let deployments = deployments.as_ref().map(|all| refs(all));
        let clusters = snapshot.all(&Plane::Hub, kind::CLUSTER);
        let clusters = clusters.as_ref().map(|all| refs(all));
        let namespace = snapshot.project_namespace(&plane, namespace_name);
        snapshot.project(&plane, |project| {
            let seen = Observation {
                project,
                namespace: namespace.as_ref().map(Option::as_deref),
                hub_namespace: &hub_namespace,
                deployments: deployments.as_ref().map(Vec::as_slice),
                clusters: clusters.as_ref().map(Vec::as_slice),
                spec_echoes: snapshot.context.applier.spec_echoes(),
            };
            if key.name == SWEEP {
                let copies = snapshot.in_namespace(&Plane::Hub, kind::INSTANCE, &key.namespace);
                let projections = snapshot.in_namespace(&plane, kind::INSTANCE, namespace_name).known()?;
                let copies = copies.as_ref().map(|all| refs(all));
                return Some(projection::sweep(
                    &seen,
                    copies.as_ref().map(Vec::as_slice),
                    &refs(&projections),
                ));
            }
            let copy = snapshot
                .get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name)
                .known()?;
            let shown = snapshot
                .get(&plane, kind::INSTANCE, namespace_name, &key.name)
                .known()?;
            let plan = copy
                .as_deref()
                .map(|copy| self.show(&seen, copy, &carried(snapshot, key, copy), shown.as_deref(), key));
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
            if swept.is_unchanged() { plan } else { Some(swept) }
        })?
    }

    fn shown_by(&self, context: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        federation::user_of_instance(context, &key.namespace, &key.name)
    }

    fn executed(&self, context: &Context, key: &Key, plan: &Plan, done: Done) {
        if key.name == SWEEP {
            self.forget(context, &key.namespace);
        }
        for action in plan.actions.iter().filter(|_| done == Done::Written) {
            if let Action::Delete(delete) = action {
                self.went(&key.namespace, &delete.target.name, &delete.on.uid, true);
            }
        }
        if plan.events.iter().any(|event| event.reason == PROJECTION_RESTORED)
            && let Some(removed) = self.removed().get_mut(&(key.namespace.clone(), key.name.clone()))
        {
            removed.reported = true;
        }
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let (Plane::Hub, NAMESPACE, Change::Gone { name, .. }) = (plane, kind, change) {
            self.removed().retain(|(namespace, _), _| namespace != name);
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE | kind::CLUSTER | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                all(context)
            }
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if is_scaled(change) => events::address(change)
                .map(|(namespace, name)| of_deployment(context, namespace, name))
                .unwrap_or_default(),
            (Plane::Hub, kind::INSTANCE) => events::address(change)
                .map(|(namespace, name)| Key::new(plane, namespace, name))
                .into_iter()
                .collect(),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, name)| of_namespace(context, name))
                .unwrap_or_default(),
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, cluster)| from_source(context, cluster))
                .unwrap_or_default(),
            (Plane::Project(id), NAMESPACE) => events::address(change)
                .map(|(_, namespace)| context.hub_index.of(id, namespace).into_iter())
                .into_iter()
                .flatten()
                .flat_map(|name| of_namespace(context, &name))
                .collect(),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE) if events::is_listed(change) => {
                let all = context.hub_index.of_project(id).into_iter();
                all.flat_map(|name| of_namespace(context, &name)).collect()
            }
            (Plane::Project(id), kind::INSTANCE) => self.in_project(context, id, change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => events::address(change)
                .map(|(namespace, _)| context.hub_index.of(id, namespace).into_iter())
                .into_iter()
                .flatten()
                .flat_map(|name| of_namespace(context, &name))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        let Plane::Project(id) = plane else { return Vec::new() };
        let all = context.hub_index.of_project(id).into_iter();
        all.map(|name| Key::new(&Plane::Hub, &name, SWEEP)).collect()
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        all(context)
    }
}

fn carried(snapshot: &Snapshot<'_>, key: &Key, copy: &Object) -> Carried {
    let Some(name) = copy.label(labels::WORKLOAD_DEPLOYMENT_NAME) else {
        return Observed::Known(None);
    };
    snapshot.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &key.namespace, name)
}

fn all(context: &Context) -> Vec<Key> {
    let namespaces = events::stored(context, &Plane::Hub, NAMESPACE, None);
    namespaces
        .iter()
        .flat_map(|one| of_namespace(context, one.name()))
        .collect()
}

fn of_namespace(context: &Context, hub_namespace: &str) -> Vec<Key> {
    let copies = events::stored(context, &Plane::Hub, kind::INSTANCE, Some(hub_namespace));
    let key = |name: &str| Key::new(&Plane::Hub, hub_namespace, name);
    copies.iter().map(|one| key(one.name())).chain([key(SWEEP)]).collect()
}

/// Copies of the slots of a WorkloadDeployment.
fn of_deployment(context: &Context, hub_namespace: &str, name: &str) -> Vec<Key> {
    let prefix = slots::prefix(name);
    let copies = events::picked(context, &Plane::Hub, kind::INSTANCE, |store| {
        store.starting(hub_namespace, &prefix)
    });
    let key = |one: &Arc<Object>| Key::new(&Plane::Hub, hub_namespace, one.name());
    copies.iter().map(key).collect()
}

/// Whether a WorkloadDeployment asks for more or fewer slots than before. For none that has gone anything is shown again.
fn is_scaled(change: &Change) -> bool {
    match change {
        Change::Applied { before, now } => before.as_deref().map_or(0, slots::desired) != slots::desired(now),
        _ => false,
    }
}

fn from_source(context: &Context, cluster: &str) -> Vec<Key> {
    let copies = events::stored(context, &Plane::Hub, kind::INSTANCE, None);
    let theirs = copies.iter().filter(|one| is_from(one, cluster));
    theirs
        .map(|one| Key::new(&Plane::Hub, one.namespace(), one.name()))
        .collect()
}

fn is_from(copy: &Object, cluster: &str) -> bool {
    copy.label(labels::SOURCE_CLUSTER) == Some(cluster)
}
