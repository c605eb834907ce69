//! `policy`: see [`popcell_core::policy`].

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::{identity, names, policy};
use tracing::debug;

use super::{events, federation, hub_namespaces};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Name of the reconciler.
pub(super) const POLICY_RECONCILER: &str = "policy";

/// Key: a policy name in a hub namespace.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

impl Reconciler for Policy {
    fn name(&self) -> &'static str {
        POLICY_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            if let Some((plane, namespace)) = hub_namespaces::owner(context, &key.namespace) {
                // The hub is this reconciler's plane: it does not wait for a project that is unreachable.
                let read = context.read_namespace(live, &plane, &namespace).await;
                read.unwrap_or_else(|error| debug!(%error, "the project's namespace stays unknown"));
            }
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let hub = &key.plane;
        let namespace = snapshot.get(hub, NAMESPACE, "", &key.namespace).known()?;
        let owner = namespace.as_deref().and_then(identity::of_namespace);
        if owner.is_some_and(|(project, _)| !snapshot.context.has_project(project)) {
            return None;
        }
        let policy = snapshot
            .get(hub, kind::PROPAGATION_POLICY, &key.namespace, &key.name)
            .known()?;
        let deployments = snapshot
            .in_namespace(hub, kind::WORKLOAD_DEPLOYMENT, &key.namespace)
            .known()?;
        let in_project = in_project(snapshot, namespace.as_deref(), &key.name);
        Some(policy::decide(&policy::Observation {
            namespace: namespace.as_deref(),
            namespace_name: &key.namespace,
            name: &key.name,
            policy: policy.as_deref(),
            hub_deployments: &refs(&deployments),
            project_deployments: in_project.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
        }))
    }

    /// WorkloadDeployments of the project that name the city.
    fn shown_by(&self, context: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        federation::users_of_policy(context, &key.namespace, &key.name)
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::PROPAGATION_POLICY | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.keys(context, plane)
            }
            (Plane::Hub, kind::PROPAGATION_POLICY) => events::key(plane, change),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_status(change) => {
                events::both(change).filter_map(|one| named_by(one)).collect()
            }
            (Plane::Hub, NAMESPACE) if events::comes_or_goes(change) => {
                policies_in(context, &hub_namespaces::named(change))
            }
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::LOCATION_BINDING) if events::is_listed(change) => {
                policies_in(context, &context.hub_index.of_project(id))
            }
            (Plane::Project(id), NAMESPACE) => policies_in(context, &hub_namespaces::of_namespace(context, id, change)),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                policies_for(context, id, events::both(change))
            }
            (Plane::Project(id), kind::LOCATION_BINDING) => {
                policies_for(context, id, &federation::in_cities(context, plane, change))
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => policies_in(context, &hub_namespaces::all(context)),
            Plane::Project(_) | Plane::Cell | Plane::Discovery => Vec::new(),
        }
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        // A namespace that has lost its labels is not among those that are watched: what is in it is healed none the less.
        let policies = events::keys_of(context, &Plane::Hub, kind::PROPAGATION_POLICY);
        let deployments = events::stored(context, &Plane::Hub, kind::WORKLOAD_DEPLOYMENT, None);
        let named = deployments.iter().filter_map(|one| named_by(one));
        let keys = self.keys(context, &Plane::Hub).into_iter();
        keys.chain(policies).chain(named).collect()
    }
}

/// WorkloadDeployments of the project's namespace that may be carried to their city; none where the hub namespace is not
/// its current one. So there are policies for cities that the project has bindings of, and for those that its objects on
/// the hub name. Unknown while one that names the policy is neither.
fn in_project(snapshot: &Snapshot<'_>, hub_namespace: Option<&Object>, policy: &str) -> Observed<Vec<Arc<Object>>> {
    let Some(hub_namespace) = hub_namespace else {
        return Observed::Unknown;
    };
    let Some((project, namespace)) = identity::of_namespace(hub_namespace) else {
        return Observed::Unknown;
    };
    let plane = Plane::Project(project.to_owned());
    let deployments = snapshot.in_namespace(&plane, kind::WORKLOAD_DEPLOYMENT, namespace);
    match snapshot.project_namespace(&plane, namespace) {
        Observed::Known(one) if !identity::is_current(hub_namespace, one.as_deref()) => {
            return Observed::Known(Vec::new());
        }
        _ => {}
    }
    let Observed::Known(all) = deployments else {
        return Observed::Unknown;
    };
    let bindings = snapshot.all(&plane, kind::LOCATION_BINDING);
    let mut served = Vec::new();
    for one in all {
        if city_policy(&one).as_deref() != Some(policy) {
            continue;
        }
        match federation::is_served(snapshot, &plane, &one, &bindings) {
            Observed::Known(true) => served.push(one),
            Observed::Known(false) => {}
            Observed::Unknown => return Observed::Unknown,
        }
    }
    Observed::Known(served)
}

fn city_policy(deployment: &Object) -> Option<String> {
    deployment.text("/spec/cityCode").map(names::city_policy)
}

/// The policy of a WorkloadDeployment of the hub.
fn named_by(deployment: &Object) -> Option<Key> {
    Some(Key::new(&Plane::Hub, deployment.namespace(), &city_policy(deployment)?))
}

/// The policies of WorkloadDeployments of a project.
fn policies_for<'a>(
    context: &Context,
    project: &str,
    deployments: impl IntoIterator<Item = &'a Arc<Object>>,
) -> Vec<Key> {
    let mut enqueued = Vec::new();
    for deployment in deployments {
        let Some(policy) = city_policy(deployment) else {
            continue;
        };
        let within = context.hub_index.of(project, deployment.namespace());
        enqueued.extend(within.iter().map(|within| Key::new(&Plane::Hub, within, &policy)));
    }
    enqueued
}

/// Every policy of hub namespaces that is or was in use.
fn policies_in(context: &Context, hub_namespaces: &[String]) -> Vec<Key> {
    let mut enqueued = Vec::new();
    for within in hub_namespaces {
        let names = names_in(context, within);
        enqueued.extend(names.iter().map(|name| Key::new(&Plane::Hub, within, name)));
    }
    enqueued
}

fn names_in(context: &Context, hub_namespace: &str) -> BTreeSet<String> {
    let within = |plane: &Plane, kind, namespace: &str| events::stored(context, plane, kind, Some(namespace));
    let policies = within(&Plane::Hub, kind::PROPAGATION_POLICY, hub_namespace);
    let mut deployments = within(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, hub_namespace);
    if let Some((project, namespace)) = hub_namespaces::owner(context, hub_namespace) {
        deployments.extend(within(&project, kind::WORKLOAD_DEPLOYMENT, &namespace));
    }
    let wanted = deployments.iter().filter_map(|one| city_policy(one));
    let present = policies.iter().map(|one| one.name().to_owned());
    present.chain(wanted).collect()
}
