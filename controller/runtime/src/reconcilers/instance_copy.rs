//! `instance-copy`: the copy of an Instance on the hub. See [`popcell_core::remote::copy`].

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::conditions::READY;
use popcell_api::kind::{self, Kind};
use popcell_api::{annotations, labels};
use popcell_core::deployment;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane, Target};
use popcell_core::remote::copy::{self, Observation};
use popcell_core::{conditions, identity, slots};

use super::deployment::{of_slot, of_uid, shown_by};
use super::events;
use crate::apply::ApplyError;
use crate::cell::Cell;
use crate::context::Context;
use crate::planes::{Change, Store};
use crate::queue::{Key, RateLimit, Urgency};
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Name of the reconciler.
pub(super) const INSTANCE_COPY_RECONCILER: &str = "instance-copy";

/// A hub Namespace that does not say whose it is may be about to: it is not watched.
const LABELS_AGAIN: Duration = Duration::from_secs(30);
/// How soon a copy is looked at again whose owner became doubtful during the reconcile.
const DOUBTED_AGAIN: Duration = Duration::from_secs(1);

/// Key: the copy of an Instance, on the hub. It has the namespace and name of the Instance.
#[derive(Clone, Debug)]
pub struct InstanceCopy {
    /// The cell.
    pub cell: Arc<Cell>,
}

impl Reconciler for InstanceCopy {
    fn name(&self) -> &'static str {
        INSTANCE_COPY_RECONCILER
    }

    /// Providers write on the Instances, and any client may on the copies.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_TWO_WRITERS)
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            self.cell.identity_cache.identify(&self.cell, &context.applier).await?;
            self.read_hub(context, live, key).await
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let identity_cache = &self.cell.identity_cache;
        let source = self.cell.source()?;
        let (instance, copy) = instance_and_copy(snapshot, key);
        let deployments = deployments(snapshot, key, &instance, &copy).known()?;
        let deployments = refs(&deployments);
        let instance = instance.known()?;
        let hub_namespace = match snapshot.read_live(&Plane::Hub, NAMESPACE, "", &key.namespace) {
            Some(read) => Observed::Known(read),
            // The deletion guard asks for the plans of all keys at once, which reads nothing.
            None => identity_cache.namespace(&key.namespace),
        };
        let owner = copy::hub_deployment(&key.name, instance.as_deref(), &deployments);
        let lives = owner.map(|(_, uid)| identity_cache.lives(uid));
        let mut plan = copy::decide(&Observation {
            identity: &identity_cache.identity(),
            source,
            namespace: &key.namespace,
            name: &key.name,
            instance: instance.as_deref(),
            deployments: &deployments,
            hub_namespace: hub_namespace.as_ref().map(Option::as_deref),
            copy: copy.as_ref().map(Option::as_deref),
            hub_deployment_lives: Observed::Known(lives == Some(Observed::Known(true))),
            spec_echoes: snapshot.context.applier.spec_echoes(),
            now,
        });
        let unlabelled = |one: &Arc<Object>| identity::of_namespace(one).is_none();
        if lives == Some(Observed::Unknown) {
            // An event since this reconcile began. Whoever it enqueued may not be this key.
            plan.requeue_within(DOUBTED_AGAIN);
        }
        if instance.is_some() && hub_namespace.known().flatten().as_ref().is_some_and(unlabelled) {
            plan.requeue_within(LABELS_AGAIN);
        }
        Some(identity_cache.until_matched(plan))
    }

    fn shown_by(&self, _: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        shown_by(&key.namespace, &key.name)
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        let identity_cache = &self.cell.identity_cache;
        match (plane, kind, change) {
            // It may be another hub, or know another cell by our name: it is asked before anything is written.
            (Plane::Hub, kind::INSTANCE, Change::Listed) => identity_cache.forget(),
            (Plane::Hub, kind::INSTANCE, Change::Gone { last, .. }) => {
                identity_cache.doubt_identity();
                // The hub's garbage collector may have deleted it, whose owner is gone: it must not be made again.
                let owners = last.iter().flat_map(|last| last.metadata.owner_references.iter());
                owners.flatten().for_each(|owner| identity_cache.doubt(&owner.uid));
            }
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT, _) if events::is_more_than_memory(change) => {
                let uids = events::both(change).filter_map(|one| one.annotation(annotations::RESOURCE_TEMPLATE_UID));
                uids.for_each(|uid| identity_cache.doubt(uid));
            }
            (Plane::Cell, NAMESPACE, Change::Gone { name, .. }) => identity_cache.forget_namespace(name),
            _ => {}
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE) | (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.initial_keys(context)
            }
            // After a stamp there is more to do.
            (Plane::Hub, kind::INSTANCE)
                if !events::is_more_than_status(change) && context.applier.is_own_report(plane, kind, change) =>
            {
                Vec::new()
            }
            (Plane::Hub | Plane::Cell, kind::INSTANCE) => events::key(&Plane::Hub, change),
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_memory(change) => {
                of_slots(context, change)
            }
            (Plane::Cell, NAMESPACE) if events::is_more_than_status(change) => within(context, change),
            _ => Vec::new(),
        }
    }

    /// It is written once its Instance has settled.
    fn urgency(&self, _: &Context, plane: &Plane, kind: Kind, change: &Change, _: &Key) -> Urgency {
        match change {
            _ if (plane, kind) != (&Plane::Cell, kind::INSTANCE) => Urgency::AtOnce,
            Change::Applied { before, now }
                if !conditions::says(now, READY, "True") && deployment::is_on_its_way(before.as_deref(), now) =>
            {
                Urgency::Progress
            }
            Change::Applied { .. } | Change::Gone { .. } => Urgency::Settled,
            _ => Urgency::AtOnce,
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => events::keys_of(context, plane, kind::INSTANCE),
            _ => Vec::new(),
        }
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        picked(context, Store::all)
    }
}

impl InstanceCopy {
    /// Reads whose the hub Namespace is, whether the hub's WorkloadDeployment lives, and whether a copy may still be made.
    async fn read_hub(&self, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
        let (identity_cache, applier) = (&self.cell.identity_cache, &context.applier);
        let snapshot = Snapshot::new(context, live);
        let (instance, copy) = instance_and_copy(&snapshot, key);
        let deployments = deployments(&snapshot, key, &instance, &copy);
        let (Observed::Known(instance), Observed::Known(deployments)) = (instance, deployments) else {
            return Ok(());
        };
        if instance.is_some() && copy == Observed::Known(None) {
            identity_cache.confirm(&self.cell, applier).await;
        }
        // A slot keeps the copy of an Instance that is gone, and tells on it that there is none.
        if copy::is_behind(&key.name, instance.as_deref(), &refs(&deployments)) {
            let found = identity_cache.read_namespace(applier, &key.namespace).await?;
            live.insert(&Target::cluster(&Plane::Hub, NAMESPACE, &key.namespace), found);
        }
        let owner = copy::hub_deployment(&key.name, instance.as_deref(), &refs(&deployments));
        if let Some(owner) = owner.filter(|(_, uid)| identity_cache.lives(uid) != Observed::Known(true)) {
            identity_cache.read_deployment(applier, &key.namespace, owner).await?;
        }
        Ok(())
    }
}

type Found = Observed<Option<Arc<Object>>>;

/// The Instance and its copy.
fn instance_and_copy(snapshot: &Snapshot<'_>, key: &Key) -> (Found, Found) {
    let at = |plane| snapshot.get(plane, kind::INSTANCE, &key.namespace, &key.name);
    (at(&Plane::Cell), at(&Plane::Hub))
}

/// WorkloadDeployments of the cell that a copy may be of: by its name, or because Instance or copy say so.
fn deployments(snapshot: &Snapshot<'_>, key: &Key, instance: &Found, copy: &Found) -> Observed<Vec<Arc<Object>>> {
    let Observed::Known(slot) = of_slot(snapshot, &key.namespace, &key.name) else {
        return Observed::Unknown;
    };
    let mut found = Vec::from_iter(slot);
    for one in [instance, copy] {
        let Observed::Known(Some(one)) = one else { continue };
        let uid = one.label(labels::WORKLOAD_DEPLOYMENT_UID).unwrap_or_default();
        found.extend(of_uid(snapshot, &key.namespace, uid).known().flatten());
    }
    Observed::Known(found)
}

/// Copies of all slots that a WorkloadDeployment has, had, or may have.
fn of_slots(context: &Context, change: &Change) -> Vec<Key> {
    let (namespace, deployment) = events::address(change).unwrap_or_default();
    let prefix = slots::prefix(deployment);
    let mut keys = picked(context, |store| store.starting(namespace, &prefix));
    keys.retain(|key| slots::deployment_of(&key.name) == Some(deployment));
    keys
}

/// Copies that a namespace has or should have.
fn within(context: &Context, change: &Change) -> Vec<Key> {
    let (_, namespace) = events::address(change).unwrap_or_default();
    picked(context, |store| store.in_namespace(namespace))
}

/// Copies that are on the hub, or whose Instances are in the cell, of those that are picked from either store.
fn picked(context: &Context, pick: impl Fn(&Store) -> Observed<Vec<Arc<Object>>>) -> Vec<Key> {
    let instances = [Plane::Cell, Plane::Hub].map(|plane| events::picked(context, &plane, kind::INSTANCE, &pick));
    let all = instances.iter().flatten();
    all.map(|one| Key::new(&Plane::Hub, one.namespace(), one.name()))
        .collect()
}
