//! `projection`: a hub copy of an Instance is shown in the project; see [`popcell_core::projection`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::identity;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Action, NAMESPACE, Plan, Plane, Target};
use popcell_core::projection::{self, Observation, PROJECTION_RESTORED};
use popcell_core::slots;

use super::{events, federation, hub_namespaces, projection_sweep};
use crate::apply::{Difference, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};
use crate::sync::lock;

/// Name of the reconciler.
pub(super) const PROJECTION_RECONCILER: &str = "projection";

/// Key: a hub copy, by hub namespace and name. Its projection has the same name, and is deleted where there is no copy.
#[derive(Debug)]
pub struct Projection {
    /// Shared with the sweep.
    pub removed: Arc<RemovedProjections>,
}

/// Projections that were deleted, by hub namespace and name of a copy that lives: whether users know how to restart
/// an Instance.
#[derive(Debug, Default)]
pub struct RemovedProjections(Mutex<BTreeMap<(String, String), Removed>>);

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

impl RemovedProjections {
    fn removed(&self) -> MutexGuard<'_, BTreeMap<(String, String), Removed>> {
        lock(&self.0)
    }

    /// A read says that a projection is gone, or we deleted it: the watch is going to say so too.
    fn went(&self, hub_namespace: &str, name: &str, uid: &str, reported: bool) {
        let mut removed = self.removed();
        let known = removed.entry((hub_namespace.to_owned(), name.to_owned())).or_default();
        known.went(uid, reported);
    }

    /// What a plan that was executed has deleted.
    pub(super) fn deleted(&self, hub_namespace: &str, plan: &Plan, done: Done) {
        for action in plan.actions.iter().filter(|_| done == Done::Written) {
            if let Action::Delete(delete) = action {
                self.went(hub_namespace, &delete.target.name, &delete.on.uid, true);
            }
        }
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

    /// The uid of the last projection of a copy, where it was not deleted by us and users do not know yet how to restart.
    fn unreported(&self, key: &Key) -> Option<String> {
        let removed = self.removed();
        let last = removed.get(&(key.namespace.clone(), key.name.clone()))?;
        (!last.reported).then(|| last.uid.clone())
    }

    /// Users know how to restart.
    fn report(&self, key: &Key) {
        if let Some(removed) = self.removed().get_mut(&(key.namespace.clone(), key.name.clone())) {
            removed.reported = true;
        }
    }

    /// There is neither copy nor projection.
    fn forget(&self, key: &Key) {
        self.removed().remove(&(key.namespace.clone(), key.name.clone()));
    }

    /// A hub namespace is gone.
    fn forget_namespace(&self, hub_namespace: &str) {
        self.removed().retain(|(namespace, _), _| namespace != hub_namespace);
    }

    /// A hub namespace was swept: where there is no copy any more, nothing is reported.
    pub(super) fn forget_all_but_copies(&self, context: &Context, hub_namespace: &str) {
        let copies = events::stored(context, &Plane::Hub, kind::INSTANCE, Some(hub_namespace));
        let shown: BTreeSet<&str> = copies.iter().map(|one| one.name()).collect();
        self.removed()
            .retain(|(namespace, name), _| namespace != hub_namespace || shown.contains(name.as_str()));
    }
}

impl Reconciler for Projection {
    fn name(&self) -> &'static str {
        PROJECTION_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            let Some((plane, namespace)) = hub_namespaces::owner(context, &key.namespace) else {
                return Ok(());
            };
            context.read_namespace(live, &plane, &namespace).await?;
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
                self.removed.went(&key.namespace, &key.name, stored.uid(), false);
            }
            live.insert(&target, found);
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        observe(snapshot, &key.namespace, |seen, plane, namespace| {
            let copy = snapshot
                .get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name)
                .known()?;
            let shown = snapshot.get(plane, kind::INSTANCE, namespace, &key.name).known()?;
            let plan = copy.as_deref().map(|copy| {
                let carried = carried(snapshot, key, copy);
                let carried = carried.as_ref().map(Option::as_deref);
                let removed = self.removed.unreported(key);
                projection::show(seen, copy, carried, shown.as_deref(), removed.as_deref())
            });
            let Some(shown) = shown.as_deref() else {
                if copy.is_none() {
                    self.removed.forget(key);
                }
                return plan;
            };
            if plan.as_ref().is_some_and(|plan| !plan.is_dropped()) {
                return plan;
            }
            let copies: Vec<&Object> = copy.as_deref().into_iter().collect();
            let swept = projection::sweep(seen, Observed::Known(&copies), &[shown]);
            if swept.is_unchanged() { plan } else { Some(swept) }
        })?
    }

    fn shown_by(&self, context: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        federation::user_of_instance(context, &key.namespace, &key.name)
    }

    fn executed(&self, _: &Context, key: &Key, plan: &Plan, done: Done) {
        self.removed.deleted(&key.namespace, plan, done);
        if plan.events.iter().any(|event| event.reason == PROJECTION_RESTORED) {
            self.removed.report(key);
        }
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let (Plane::Hub, NAMESPACE, Change::Gone { name, .. }) = (plane, kind, change) {
            self.removed.forget_namespace(name);
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE | kind::CLUSTER | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.initial_keys(context)
            }
            (Plane::Hub, kind::INSTANCE) => events::key(plane, change),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if is_scaled(change) => copies_of_deployment(context, change),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => {
                copies_in(context, &hub_namespaces::named(change))
            }
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => copies_from(context, change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE) if events::is_listed(change) => {
                copies_in(context, &context.hub_index.of_project(id))
            }
            (Plane::Project(id), kind::INSTANCE) => self.of_projection(context, id, change),
            (Plane::Project(id), NAMESPACE) => copies_in(context, &hub_namespaces::of_namespace(context, id, change)),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                copies_in(context, &hub_namespaces::of_object(context, id, change))
            }
            _ => Vec::new(),
        }
    }

    /// As many as all copies of the project together: a hub that has lost its copies brings each one as an event.
    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        projection_sweep::count(snapshot, plane, kind)
    }

    /// None: what the deletion guard held, the sweep deletes once it is released.
    fn keys(&self, _: &Context, _: &Plane) -> Vec<Key> {
        Vec::new()
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        copies_in(context, &hub_namespaces::all(context))
    }
}

impl Projection {
    /// The copy of a projection. What goes is noted here, so that the reconcile of the copy finds it.
    fn of_projection(&self, context: &Context, project: &str, change: &Change) -> Vec<Key> {
        let Some((namespace, name)) = events::address(change) else {
            return Vec::new();
        };
        let copies = context.store(&Plane::Hub, kind::INSTANCE);
        let is_copy = |within: &str| {
            let copy = copies.as_ref().map(|copies| copies.get(within, name));
            matches!(copy, Some(Observed::Known(Some(_))))
        };
        let mut enqueued = Vec::new();
        for hub_namespace in context.hub_index.of(project, namespace) {
            if let Change::Gone { last: Some(last), .. } = change
                && last.marked()
            {
                self.removed
                    .ended(&hub_namespace, name, last.uid(), is_copy(&hub_namespace));
            }
            enqueued.push(Key::new(&Plane::Hub, &hub_namespace, name));
        }
        enqueued
    }
}

/// What is seen of a hub namespace and of the project's that it stands for, with the plane and name of that one; `None`
/// while the project is not engaged, or the hub namespace not known.
pub(super) fn observe<R>(
    snapshot: &Snapshot<'_>,
    hub_namespace: &str,
    view: impl FnOnce(&Observation<'_>, &Plane, &str) -> R,
) -> Option<R> {
    let hub_namespace = snapshot.get(&Plane::Hub, NAMESPACE, "", hub_namespace).known()??;
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
        view(&seen, &plane, namespace_name)
    })
}

/// The hub's WorkloadDeployment of a copy.
fn carried(snapshot: &Snapshot<'_>, key: &Key, copy: &Object) -> Observed<Option<Arc<Object>>> {
    let Some(name) = copy.label(labels::WORKLOAD_DEPLOYMENT_NAME) else {
        return Observed::Known(None);
    };
    snapshot.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &key.namespace, name)
}

fn copies_in(context: &Context, hub_namespaces: &[String]) -> Vec<Key> {
    let copies = hub_namespaces
        .iter()
        .flat_map(|within| events::stored(context, &Plane::Hub, kind::INSTANCE, Some(within)));
    copies.map(|copy| key(&copy)).collect()
}

/// Copies of the slots of the WorkloadDeployment that an event of the hub is about.
fn copies_of_deployment(context: &Context, change: &Change) -> Vec<Key> {
    let Some((hub_namespace, name)) = events::address(change) else {
        return Vec::new();
    };
    let prefix = slots::prefix(name);
    let copies = events::picked(context, &Plane::Hub, kind::INSTANCE, |store| {
        store.starting(hub_namespace, &prefix)
    });
    copies.iter().map(|copy| key(copy)).collect()
}

/// Copies that come from the Cluster that an event is about.
fn copies_from(context: &Context, change: &Change) -> Vec<Key> {
    let Some((_, cluster)) = events::address(change) else {
        return Vec::new();
    };
    let is_from = |copy: &Object| copy.label(labels::SOURCE_CLUSTER) == Some(cluster);
    events::keys_where(context, &Plane::Hub, kind::INSTANCE, None, is_from)
}

fn key(copy: &Object) -> Key {
    Key::new(&Plane::Hub, copy.namespace(), copy.name())
}

/// Whether a WorkloadDeployment asks for more or fewer slots than before. For none that has gone anything is shown again.
fn is_scaled(change: &Change) -> bool {
    match change {
        Change::Applied { before, now } => before.as_deref().map_or(0, slots::most) != slots::most(now),
        _ => false,
    }
}
