//! `workload`: see [`popcell_core::workload`].

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::Fields;
use popcell_core::plan::{Plan, Plane};
use popcell_core::{bindings, names, workload};

use super::events;
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{Reconciler, Snapshot, refs};

/// Key: a Workload in its project.
#[derive(Clone, Copy, Debug)]
pub struct Workload;

impl Reconciler for Workload {
    fn name(&self) -> &'static str {
        "workload"
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let workload = snapshot
            .get(plane, kind::WORKLOAD, &key.namespace, &key.name)
            .known()??;
        let deployments = snapshot
            .in_namespace(plane, kind::WORKLOAD_DEPLOYMENT, &key.namespace)
            .known()?;
        let (bindings, networks) = (
            snapshot.all(plane, kind::LOCATION_BINDING),
            snapshot.all(plane, kind::NETWORK),
        );
        let types = snapshot.context.types.known();
        let rejected = snapshot.context.rejections_of(self.name(), key);
        snapshot.project(plane, |project| {
            workload::decide(&workload::Observation {
                project: project.id,
                workload: &workload,
                deployments: &refs(&deployments),
                bindings: bindings.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
                networks: networks.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
                types: types.as_ref().map(Arc::as_ref),
                spec_echoes: snapshot.context.applier.spec_echoes(),
                rejected: &rejected,
                now,
            })
        })
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (
                Plane::Project(_),
                kind::WORKLOAD | kind::WORKLOAD_DEPLOYMENT | kind::NETWORK | kind::LOCATION_BINDING,
            ) if events::is_listed(change) => self.keys(context, plane),
            (Plane::Project(_), kind::WORKLOAD) => events::key(plane, change),
            // Held changes may be carried out, now that sizes are known.
            (Plane::Discovery, kind::INSTANCE_TYPE) if events::is_listed(change) => {
                let all = events::projects(context).into_iter();
                all.flat_map(|project| self.keys(context, &project)).collect()
            }
            (Plane::Project(_), kind::WORKLOAD_DEPLOYMENT) => of_deployment(context, plane, change),
            (Plane::Project(_), kind::NETWORK) if events::comes_or_goes(change) => on_network(context, plane, change),
            (Plane::Project(_), kind::LOCATION_BINDING) => in_cities(context, plane, change),
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        events::keys_of(context, plane, kind::WORKLOAD)
    }
}

/// Workloads whose slots have such a name, or that a WorkloadDeployment refers to. By name rather than by reference: who waits
/// for a name that is held has no reference to it.
fn of_deployment(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let Some((namespace, name)) = events::address(change) else {
        return Vec::new();
    };
    events::keys_where(context, plane, kind::WORKLOAD, Some(namespace), |workload| {
        names::may_be_of(name, workload.name()) || refers_to(change, workload.name())
    })
}

fn refers_to(change: &Change, workload: &str) -> bool {
    events::both(change).any(|one| one.text("/spec/workloadRef/name") == Some(workload))
}

/// Workloads that name a network.
fn on_network(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let Some((namespace, name)) = events::address(change) else {
        return Vec::new();
    };
    let network = (namespace.to_owned(), name.to_owned());
    events::keys_where(context, plane, kind::WORKLOAD, None, |workload| {
        workload::networks(workload).contains(&network)
    })
}

/// Workloads that name a city which a LocationBinding names, or named before.
fn in_cities(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let cities: Vec<&str> = events::both(change).filter_map(|one| bindings::city(one)).collect();
    events::keys_where(context, plane, kind::WORKLOAD, None, |workload| {
        let wanted = workload::cities(workload);
        cities.iter().any(|city| wanted.contains(city))
    })
}
