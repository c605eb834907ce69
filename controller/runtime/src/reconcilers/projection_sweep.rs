//! `projection-sweep`: projections of a hub namespace without a copy are deleted, all of them: a list does not
//! report one by one what it lacks. See [`popcell_core::projection::sweep`].

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::Fields;
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::projection;

use super::projection::{RemovedProjections, observe};
use super::{events, hub_namespaces};
use crate::apply::{Difference, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Key: a hub namespace ([`hub_namespaces::key`]).
#[derive(Debug)]
pub struct ProjectionSweep {
    /// Shared with the reconciler of one copy.
    pub removed: Arc<RemovedProjections>,
}

impl Reconciler for ProjectionSweep {
    fn name(&self) -> &'static str {
        "projection-sweep"
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            match hub_namespaces::owner(context, &key.name) {
                Some((plane, namespace)) => context.read_namespace(live, &plane, &namespace).await,
                None => Ok(()),
            }
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        sweep(snapshot, &key.name)
    }

    fn executed(&self, context: &Context, key: &Key, plan: &Plan, done: Done) {
        self.removed.forget_all_but_copies(context, &key.name);
        self.removed.deleted(&key.name, plan, done);
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let concerned = match (plane, kind) {
            (Plane::Hub, kind::INSTANCE | kind::CLUSTER | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                hub_namespaces::all(context)
            }
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => hub_namespaces::named(change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE) if events::is_listed(change) => {
                context.hub_index.of_project(id)
            }
            (Plane::Project(id), NAMESPACE) => hub_namespaces::of_namespace(context, id, change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                hub_namespaces::of_object(context, id, change)
            }
            _ => Vec::new(),
        };
        hub_namespaces::keys(&concerned)
    }

    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        count(snapshot, plane, kind)
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        let Plane::Project(id) = plane else { return Vec::new() };
        hub_namespaces::keys(&context.hub_index.of_project(id))
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        hub_namespaces::keys_on(context, &Plane::Hub)
    }
}

/// All projections of a project, and those that sweeps would delete: the difference of each reconciler that deletes any.
pub(super) fn count(snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
    let (Plane::Project(id), kind::INSTANCE) = (plane, kind) else {
        return None;
    };
    let projections = snapshot.all(plane, kind).known().unwrap_or_default();
    let mut difference = Difference {
        ours: projections.iter().filter(|one| one.marked()).count(),
        ..Difference::default()
    };
    for hub_namespace in snapshot.context.hub_index.of_project(id) {
        difference.add(sweep(snapshot, &hub_namespace).as_ref(), plane, kind);
    }
    Some(difference)
}

fn sweep(snapshot: &Snapshot<'_>, hub_namespace: &str) -> Option<Plan> {
    observe(snapshot, hub_namespace, |seen, plane, namespace| {
        let projections = snapshot.in_namespace(plane, kind::INSTANCE, namespace).known()?;
        let copies = snapshot.in_namespace(&Plane::Hub, kind::INSTANCE, hub_namespace);
        let copies = copies.as_ref().map(|all| refs(all));
        let copies = copies.as_ref().map(Vec::as_slice);
        Some(projection::sweep(seen, copies, &refs(&projections)))
    })?
}
