//! What a WorkloadDeployment sees of the ConfigMaps and Secrets that its template names: they are not watched, and read by name
//! while an Instance waits for them, without what they hold.

use std::sync::Arc;

use popcell_api::{gates, kind};
use popcell_core::deployment::{Presence, ReferencedData, awaits_data, data_to_read, judge_data};
use popcell_core::instance::has_gate;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Plane, Target};
use popcell_core::references::is_optional;

use super::instances;
use crate::apply::ApplyError;
use crate::cell::INSTANCE_RECONCILER;
use crate::context::Context;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Snapshot, refs};

const CELL: &Plane = &Plane::Cell;

/// Reads what Instances of a WorkloadDeployment wait for, up to the first that keeps them waiting. What the server does not
/// answer is missed; what it gives no right to is for the user to see, and ends no reconcile.
pub(super) async fn read(context: &Context, live: &mut LiveReads, key: &Key) {
    for (target, is_optional) in to_read(&Snapshot::new(context, live), key) {
        match context.applier.read_metadata(&target).await {
            Ok(found) => {
                let is_there = found.as_ref().is_some_and(|one| !one.deleting());
                live.put(&target, found);
                if !is_there && !is_optional {
                    return;
                }
            }
            Err(error) if is_forbidden(&error) => return live.put_unreadable(&target),
            Err(error) => return live.miss(CELL, error),
        }
    }
}

/// Each with whether an Instance starts without it.
fn to_read(snapshot: &Snapshot<'_>, key: &Key) -> Vec<(Target, bool)> {
    let found = snapshot.get(CELL, kind::WORKLOAD_DEPLOYMENT, &key.namespace, &key.name);
    let Some(deployment) = found.known().flatten() else {
        return Vec::new();
    };
    let instances = instances(snapshot, CELL, &deployment).known();
    if !instances.is_some_and(|instances| awaits_data(&deployment, &refs(&instances))) {
        return Vec::new();
    }
    let named = data_to_read(&deployment).into_iter();
    let read = named.map(|one| {
        let target = Target::namespaced(CELL, one.kind, &key.namespace, &one.name);
        (target, is_optional(&deployment, &one))
    });
    read.collect()
}

fn is_forbidden(error: &ApplyError) -> bool {
    error
        .rejected()
        .is_some_and(|failed| matches!(failed.refusal.code(), 401 | 403))
}

/// How far they are, by what was read. What keeps Instances waiting is passed on to them, who show it.
pub(super) fn judge(snapshot: &Snapshot<'_>, deployment: &Object, instances: &[Arc<Object>]) -> ReferencedData {
    let (namespace, name) = (deployment.namespace(), deployment.name());
    let Some(memory) = snapshot.context.memory(CELL) else {
        return ReferencedData::Unknown;
    };
    if !awaits_data(deployment, &refs(instances)) {
        memory.data_waits.forget(namespace, name);
        return ReferencedData::Unknown;
    }
    let data = judge_data(deployment, |one| {
        match snapshot.read_live(CELL, one.kind, namespace, &one.name) {
            Some(found) => Presence::of(found.as_deref()),
            None if snapshot
                .unreadable_of(CELL, one.kind)
                .any(|(_, unreadable)| unreadable == one.name) =>
            {
                Presence::Forbidden
            }
            None => Presence::Unknown,
        }
    });
    let is_new = match &data {
        ReferencedData::Unknown => false,
        ReferencedData::Ready(_) => memory.data_waits.put(namespace, name, None),
        ReferencedData::Waiting(why) => memory.data_waits.put(namespace, name, Some(why)),
    };
    let waiting = instances.iter().filter(|one| has_gate(one, gates::REFERENCED_DATA));
    for one in waiting.filter(|_| is_new) {
        let key = Key::new(CELL, one.namespace(), one.name());
        snapshot.context.wait_list.enqueue(INSTANCE_RECONCILER, key);
    }
    data
}
