//! Views of events, for the question which keys they enqueue.

use std::sync::Arc;

use popcell_api::annotations;
use popcell_api::kind::{self, Kind};
use popcell_core::limits::INSTANCE_TYPE;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;

use crate::context::Context;
use crate::planes::{Change, Store};
use crate::queue::Key;

/// Namespace and name of the object that an event is about; `None` where it is about a whole store.
pub(super) fn address(change: &Change) -> Option<(&str, &str)> {
    match change {
        Change::Applied { now, .. } => Some((now.namespace(), now.name())),
        Change::Gone { namespace, name, .. } | Change::Unreadable { namespace, name, .. } => Some((namespace, name)),
        Change::Listed | Change::Lost | Change::Cleared => None,
    }
}

/// The object that an event is about, as a key.
pub(super) fn key(plane: &Plane, change: &Change) -> Vec<Key> {
    let found = address(change).map(|(namespace, name)| Key::new(plane, namespace, name));
    found.into_iter().collect()
}

/// The object before and after, where it could be read.
pub(super) fn both(change: &Change) -> impl Iterator<Item = &Arc<Object>> {
    let (before, now) = match change {
        Change::Applied { before, now } => (before.as_ref(), Some(now)),
        Change::Gone { last, .. } => (last.as_ref(), None),
        Change::Unreadable { .. } | Change::Listed | Change::Lost | Change::Cleared => (None, None),
    };
    before.into_iter().chain(now)
}

/// Whether an object came, went, or began to go.
pub(super) fn comes_or_goes(change: &Change) -> bool {
    match change {
        Change::Applied { before: None, .. } | Change::Gone { .. } => true,
        Change::Applied {
            before: Some(before),
            now,
        } => before.deleting() != now.deleting() || before.uid() != now.uid(),
        Change::Unreadable { .. } | Change::Listed | Change::Lost | Change::Cleared => false,
    }
}

/// Whether more than the status has changed.
pub(super) fn is_more_than_status(change: &Change) -> bool {
    match change {
        Change::Applied {
            before: Some(before),
            now,
        } => {
            let same = |one: &Object, other: &Object| {
                one.at("/spec") == other.at("/spec")
                    && one.metadata.labels == other.metadata.labels
                    && one.metadata.annotations == other.metadata.annotations
            };
            comes_or_goes(change) || !same(before, now)
        }
        _ => comes_or_goes(change),
    }
}

/// Whether more of a WorkloadDeployment has changed than its status, and the memory of slots that were granted.
pub(super) fn is_more_than_memory(change: &Change) -> bool {
    let without_memory = |one: &Object| {
        let mut left = one.metadata.annotations.clone().unwrap_or_default();
        left.remove(annotations::GRANTED_SLOTS);
        left.remove(annotations::GRANTED_SIZE);
        left
    };
    match change {
        Change::Applied {
            before: Some(before),
            now,
        } => {
            comes_or_goes(change)
                || before.at("/spec") != now.at("/spec")
                || before.metadata.labels != now.metadata.labels
                || without_memory(before) != without_memory(now)
        }
        _ => comes_or_goes(change),
    }
}

/// Whether a store is known again.
pub(super) fn is_listed(change: &Change) -> bool {
    matches!(change, Change::Listed)
}

/// All objects of a plane as keys.
pub(super) fn keys_of(context: &Context, plane: &Plane, kind: Kind) -> Vec<Key> {
    keys_where(context, plane, kind, None, |_| true)
}

/// All objects of a namespace as keys.
pub(super) fn keys_within(context: &Context, plane: &Plane, kind: Kind, namespace: &str) -> Vec<Key> {
    keys_where(context, plane, kind, Some(namespace), |_| true)
}

/// Objects of a namespace, or of all, as keys, where they are known.
pub(super) fn keys_where(
    context: &Context,
    plane: &Plane,
    kind: Kind,
    namespace: Option<&str>,
    is_meant: impl Fn(&Object) -> bool,
) -> Vec<Key> {
    // One after the other: what is decoded to look at one goes with it.
    let meant = stored(context, plane, kind, namespace)
        .into_iter()
        .filter(|one| is_meant(one));
    meant.map(|one| Key::new(plane, one.namespace(), one.name())).collect()
}

/// WorkloadDeployments of a plane that name an instance type which is another than before; all where all types may be.
pub(super) fn keys_of_type(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let is_all = is_listed(change);
    keys_where(context, plane, kind::WORKLOAD_DEPLOYMENT, None, |one| {
        is_all || both(change).any(|changed| changed.text("/spec/name") == one.text(INSTANCE_TYPE))
    })
}

/// What a store holds, where it is known.
pub(super) fn stored(context: &Context, plane: &Plane, kind: Kind, namespace: Option<&str>) -> Vec<Arc<Object>> {
    picked(context, plane, kind, |store| match namespace {
        Some(namespace) => store.in_namespace(namespace),
        None => store.all(),
    })
}

/// Instances in the cell that are of a WorkloadDeployment, or say so.
pub(super) fn instances_saying(context: &Context, uid: &str) -> Vec<Key> {
    let found = picked(context, &Plane::Cell, kind::INSTANCE, |store| store.saying(uid));
    found
        .iter()
        .map(|one| Key::new(&Plane::Cell, one.namespace(), one.name()))
        .collect()
}

/// What is found in a store, where it is known.
pub(super) fn picked(
    context: &Context,
    plane: &Plane,
    kind: Kind,
    pick: impl FnOnce(&Store) -> Observed<Vec<Arc<Object>>>,
) -> Vec<Arc<Object>> {
    let store = context.store(plane, kind);
    store.and_then(|store| pick(&store).known()).unwrap_or_default()
}

/// Whether a watch has brought any object that is still there.
pub(super) fn is_occupied(context: &Context, plane: &Plane, kind: Kind) -> bool {
    context.store(plane, kind).is_some_and(|store| !store.is_empty())
}

/// Engaged projects.
pub(super) fn projects(context: &Context) -> Vec<Plane> {
    let mut planes = context.planes.planes();
    planes.retain(|plane| matches!(plane, Plane::Project(_)));
    planes
}
