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

use super::{events, federation};
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
            if let Some((plane, namespace)) = federation::owner(context, &key.namespace) {
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
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_status(change) => events::both(change)
                .filter_map(|one| Some(Key::new(plane, one.namespace(), &city_policy(one)?)))
                .collect(),
            (Plane::Hub, NAMESPACE) if events::comes_or_goes(change) => {
                let (_, name) = events::address(change).unwrap_or_default();
                of_namespace(context, name)
            }
            (Plane::Project(id), NAMESPACE) => {
                let (_, name) = events::address(change).unwrap_or_default();
                of_namespaces(context, context.hub_index.of(id, name))
            }
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT | kind::LOCATION_BINDING) if events::is_listed(change) => {
                of_namespaces(context, context.hub_index.of_project(id))
            }
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                of_deployments(context, id, events::both(change))
            }
            (Plane::Project(id), kind::LOCATION_BINDING) => {
                of_deployments(context, id, &federation::in_cities(context, plane, change))
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        if *plane != Plane::Hub {
            return Vec::new();
        }
        let namespaces = events::stored(context, plane, NAMESPACE, None);
        of_namespaces(context, namespaces.iter().map(|one| one.name().to_owned()))
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        // A namespace that has lost its labels is not among those that are watched: what is in it is healed none the less.
        let policies = events::keys_of(context, &Plane::Hub, kind::PROPAGATION_POLICY);
        let deployments = events::stored(context, &Plane::Hub, kind::WORKLOAD_DEPLOYMENT, None);
        let named = deployments
            .iter()
            .filter_map(|one| Some(Key::new(&Plane::Hub, one.namespace(), &city_policy(one)?)));
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

/// Policies of the cities of a project's WorkloadDeployments, in the hub namespaces of theirs.
fn of_deployments<'a>(context: &Context, id: &str, all: impl IntoIterator<Item = &'a Arc<Object>>) -> Vec<Key> {
    let mut keys = Vec::new();
    for one in all {
        let Some(policy) = city_policy(one) else { continue };
        let namespaces = context.hub_index.of(id, one.namespace()).into_iter();
        keys.extend(namespaces.map(|namespace| Key::new(&Plane::Hub, &namespace, &policy)));
    }
    keys
}

fn of_namespaces(context: &Context, hub_namespaces: impl IntoIterator<Item = String>) -> Vec<Key> {
    let all = hub_namespaces.into_iter();
    all.flat_map(|name| of_namespace(context, &name)).collect()
}

/// Every policy name of a hub namespace that is or was in use.
fn of_namespace(context: &Context, hub_namespace: &str) -> Vec<Key> {
    let within = |plane: &Plane, kind, namespace: &str| events::stored(context, plane, kind, Some(namespace));
    let mut found: BTreeSet<String> = within(&Plane::Hub, kind::PROPAGATION_POLICY, hub_namespace)
        .iter()
        .map(|one| one.name().to_owned())
        .collect();
    let deployments = within(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, hub_namespace);
    found.extend(deployments.iter().filter_map(|one| city_policy(one)));
    if let Some((project, namespace)) = federation::owner(context, hub_namespace) {
        let deployments = within(&project, kind::WORKLOAD_DEPLOYMENT, &namespace);
        found.extend(deployments.iter().filter_map(|one| city_policy(one)));
    }
    found
        .iter()
        .map(|name| Key::new(&Plane::Hub, hub_namespace, name))
        .collect()
}
