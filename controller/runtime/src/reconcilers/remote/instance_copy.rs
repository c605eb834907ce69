//! What a reconcile over one copy looks at.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::{kind, labels};
use popcell_core::identity;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane, Target};
use popcell_core::remote::copy::{self, Observation};

use crate::apply::ApplyError;
use crate::cell::Cell;
use crate::context::Context;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Snapshot, refs};
use crate::reconcilers::owner;

/// A hub Namespace that does not say whose it is may be about to: it is not watched.
const LABELS_AGAIN: Duration = Duration::from_secs(30);
/// How soon a copy is looked at again whose owner became doubtful during the reconcile.
const DOUBTED_AGAIN: Duration = Duration::from_secs(1);

/// Reads whose the hub Namespace is, whether the hub's WorkloadDeployment lives, and whether a copy may still be made.
pub(super) async fn prepare(cell: &Cell, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
    let snapshot = Snapshot::new(context, live);
    let instance = snapshot.get(&Plane::Cell, kind::INSTANCE, &key.namespace, &key.name);
    let copy = snapshot.get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name);
    let deployments = deployments(&snapshot, key, &instance, &copy);
    let (Observed::Known(instance), Observed::Known(deployments)) = (instance, deployments) else {
        return Ok(());
    };
    if instance.is_some() && copy == Observed::Known(None) {
        cell.identity_cache.confirm(cell, &context.applier).await;
    }
    // A slot keeps the copy of an Instance that is gone, and tells on it that there is none.
    if copy::is_behind(&key.name, instance.as_deref(), &refs(&deployments)) {
        let found = cell
            .identity_cache
            .read_namespace(&context.applier, &key.namespace)
            .await?;
        live.insert(&Target::cluster(&Plane::Hub, NAMESPACE, &key.namespace), found);
    }
    let owner = copy::hub_deployment(&key.name, instance.as_deref(), &refs(&deployments));
    if let Some(owner) = owner.filter(|(_, uid)| cell.identity_cache.lives(uid) != Observed::Known(true)) {
        cell.identity_cache
            .read_deployment(&context.applier, &key.namespace, owner)
            .await?;
    }
    Ok(())
}

/// WorkloadDeployments of the cell that a copy may be of: by its name, or because Instance or copy say so.
fn deployments(
    snapshot: &Snapshot<'_>,
    key: &Key,
    instance: &Observed<Option<Arc<Object>>>,
    copy: &Observed<Option<Arc<Object>>>,
) -> Observed<Vec<Arc<Object>>> {
    let Observed::Known(slot) = owner::of_slot(snapshot, &key.namespace, &key.name) else {
        return Observed::Unknown;
    };
    let mut found = Vec::from_iter(slot);
    for one in [instance, copy] {
        let Observed::Known(Some(one)) = one else { continue };
        let uid = one.label(labels::WORKLOAD_DEPLOYMENT_UID).unwrap_or_default();
        found.extend(owner::of_uid(snapshot, &key.namespace, uid).known().flatten());
    }
    Observed::Known(found)
}

/// Decides one reconcile.
pub(super) fn decide(cell: &Cell, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
    let source = cell.source()?;
    let plane = &Plane::Cell;
    let instance = snapshot.get(plane, kind::INSTANCE, &key.namespace, &key.name);
    let copy = snapshot.get(&Plane::Hub, kind::INSTANCE, &key.namespace, &key.name);
    let deployments = deployments(snapshot, key, &instance, &copy).known()?;
    let deployments = refs(&deployments);
    let instance = instance.known()?;
    let hub_namespace = match snapshot.read_live(&Plane::Hub, NAMESPACE, "", &key.namespace) {
        Some(read) => Observed::Known(read),
        // The deletion guard asks for the plans of all keys at once, which reads nothing.
        None => cell.identity_cache.namespace(&key.namespace),
    };
    let owner = copy::hub_deployment(&key.name, instance.as_deref(), &deployments);
    let lives = owner.map(|(_, uid)| cell.identity_cache.lives(uid));
    let mut plan = copy::decide(&Observation {
        identity: &cell.identity_cache.identity(),
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
    Some(plan)
}
