//! `hub-quota`: see [`popcell_core::hub_quota`].

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::names;
use popcell_core::plan::{NAMESPACE, Plan, Plane, RESOURCE_QUOTA};
use popcell_core::{hub_quota, identity};

use super::{events, hub_namespaces};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot};

/// Key: a hub namespace ([`hub_namespaces::key`]).
///
/// It is a reconciler of its own, not a part of the one that makes the namespace: all WorkloadDeployments of a namespace
/// share one quota, and a hub that refuses it stops none of them.
#[derive(Clone, Copy, Debug)]
pub struct HubQuota;

impl Reconciler for HubQuota {
    fn name(&self) -> &'static str {
        "hub-quota"
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            match project_of(&Snapshot::new(context, live), key) {
                Some(plane) if context.planes.get(&plane).is_some() => context.read_server(live, &plane).await,
                _ => Ok(()),
            }
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let hub = &key.plane;
        let namespace = snapshot.get(hub, NAMESPACE, "", &key.name).known()??;
        let quota = snapshot.get(hub, RESOURCE_QUOTA, &key.name, names::HUB_QUOTA).known()?;
        let plane = project_of(snapshot, key)?;
        snapshot.project(&plane, |project| {
            hub_quota::decide(&hub_quota::Observation {
                project,
                namespace: &namespace,
                quota: quota.as_deref(),
                instances: snapshot.context.rules.hub_instances,
            })
        })
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let concerned = match (plane, kind) {
            (Plane::Hub, NAMESPACE | RESOURCE_QUOTA) if events::is_listed(change) => hub_namespaces::all(context),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => hub_namespaces::named(change),
            // With each Instance that comes or goes its status changes.
            (Plane::Hub, RESOURCE_QUOTA) if events::is_more_than_status(change) && is_ours(change) => {
                hub_namespaces::around(change)
            }
            // The project is engaged now.
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::is_listed(change) => {
                context.hub_index.of_project(id)
            }
            _ => Vec::new(),
        };
        hub_namespaces::keys(&concerned)
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        hub_namespaces::keys_on(context, plane)
    }
}

fn is_ours(change: &Change) -> bool {
    events::address(change).is_some_and(|(_, name)| name == names::HUB_QUOTA)
}

/// The project that a hub namespace names, engaged or not.
fn project_of(snapshot: &Snapshot<'_>, key: &Key) -> Option<Plane> {
    let namespace = snapshot.get(&key.plane, NAMESPACE, "", &key.name).known()??;
    let (id, _) = identity::of_namespace(&namespace)?;
    Some(Plane::Project(id.to_owned()))
}
