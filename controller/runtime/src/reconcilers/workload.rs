//! `workload`: see [`popcell_core::workload`].

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::Fields;
use popcell_core::plan::{Plan, Plane};
use popcell_core::{bindings, workload};

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
        let rejected = snapshot.context.rejections_of(self.name(), key);
        snapshot.project(plane, |project| {
            workload::decide(&workload::Observation {
                project: project.id,
                workload: &workload,
                deployments: &refs(&deployments),
                bindings: bindings.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
                networks: networks.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
                spec_echoes: snapshot.context.applier.spec_echoes(),
                rejected: &rejected,
                now,
            })
        })
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        if !matches!(plane, Plane::Project(_)) {
            return Vec::new();
        }
        let watched = [
            kind::WORKLOAD,
            kind::WORKLOAD_DEPLOYMENT,
            kind::NETWORK,
            kind::LOCATION_BINDING,
        ];
        if events::is_listed(change) && watched.contains(&kind) {
            return events::keys_of(context, plane, kind::WORKLOAD);
        }
        let Some((namespace, name)) = events::address(change) else {
            return Vec::new();
        };
        match kind {
            kind::WORKLOAD => vec![Key::new(plane, namespace, name)],
            // By name rather than by reference: who waits for a name that is held has no reference to it.
            kind::WORKLOAD_DEPLOYMENT => {
                events::keys_where(context, plane, kind::WORKLOAD, Some(namespace), |workload| {
                    let rest = name.strip_prefix(workload.name());
                    rest.is_some_and(|rest| rest.starts_with('-')) || refers_to(change, workload.name())
                })
            }
            kind::NETWORK if events::comes_or_goes(change) => {
                let network = (namespace.to_owned(), name.to_owned());
                events::keys_where(context, plane, kind::WORKLOAD, None, |workload| {
                    workload::networks(workload).contains(&network)
                })
            }
            kind::LOCATION_BINDING => {
                let cities: Vec<&str> = events::both(change).filter_map(|one| bindings::city(one)).collect();
                events::keys_where(context, plane, kind::WORKLOAD, None, |workload| {
                    let wanted = workload::cities(workload);
                    cities.iter().any(|city| wanted.contains(city))
                })
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        events::keys_of(context, plane, kind::WORKLOAD)
    }
}

fn refers_to(change: &Change, workload: &str) -> bool {
    events::both(change).any(|one| one.text("/spec/workloadRef/name") == Some(workload))
}
