//! `federation`: see [`popcell_core::federation`].

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::finalizers;
use popcell_api::kind::{self, Kind};
use popcell_core::federation::{self, Hub};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane, Target};
use popcell_core::references::{self, CARRIED, Reference};
use popcell_core::rejection::Rejection;
use popcell_core::{bindings, derived, identity, names, reference_copy, slots};

use super::data_copy::DATA_COPY_RECONCILER;
use super::policy::POLICY_RECONCILER;
use super::projection::PROJECTION_RECONCILER;
use super::reference_copy::REFERENCE_COPY_RECONCILER;
use super::{events, hub_namespaces};
use crate::apply::ApplyError;
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Name of the reconciler.
const FEDERATION_RECONCILER: &str = "federation";

/// Key: a WorkloadDeployment in its project.
#[derive(Clone, Copy, Debug)]
pub struct Federation;

/// What the hub holds of one WorkloadDeployment.
struct Holding {
    namespaces: Vec<Arc<Object>>,
    deployments: Vec<Arc<Object>>,
    policy: Option<Arc<Object>>,
    binding: Option<Arc<Object>>,
    held: Option<Target>,
}

impl Holding {
    fn look(snapshot: &Snapshot<'_>, project: &str, deployment: &Object, current: Option<&Object>) -> Observed<Self> {
        Self::found(snapshot, project, deployment, current).map_or(Observed::Unknown, Observed::Known)
    }

    fn found(snapshot: &Snapshot<'_>, project: &str, deployment: &Object, current: Option<&Object>) -> Option<Self> {
        let mut namespaces = snapshot.hub_namespaces(project, deployment.namespace()).known()?;
        let current = current.map(|one| names::hub_namespace(one.uid()));
        if let Some(name) = current
            .as_deref()
            .filter(|name| namespaces.iter().all(|one| one.name() != *name))
        {
            namespaces.extend(snapshot.get(&Plane::Hub, NAMESPACE, "", name).known()?);
        }
        let mut deployments = Vec::new();
        for namespace in &namespaces {
            let within = snapshot.in_namespace(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, namespace.name());
            deployments.extend(within.known()?);
        }
        if !snapshot.is_known(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT) {
            return None;
        }
        let city = deployment.text("/spec/cityCode").unwrap_or_default();
        let within = current.unwrap_or_default();
        let policy = snapshot.get(
            &Plane::Hub,
            kind::PROPAGATION_POLICY,
            &within,
            &names::city_policy(city),
        );
        let bindings = snapshot
            .in_namespace(&Plane::Hub, kind::RESOURCE_BINDING, &within)
            .known()?;
        let held = held(snapshot, &within, deployment);
        Some(Self {
            namespaces,
            deployments,
            policy: policy.known()?,
            binding: bindings
                .into_iter()
                .find(|one| bound(one).is_some_and(|(_, name)| name == deployment.name())),
            held,
        })
    }
}

/// Reads live what the hub holds of a WorkloadDeployment that goes: without anything there its finalizer is taken away,
/// and the stores may not have seen yet what the last reconcile made.
async fn read_what_is_left(context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
    let Plane::Project(id) = &key.plane else { return Ok(()) };
    if !Snapshot::new(context, live).is_known(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT) {
        return Ok(());
    }
    let mut within = context.hub_index.of(id, &key.namespace);
    let namespace = Snapshot::new(context, live).project_namespace(&key.plane, &key.namespace);
    if let Observed::Known(Some(namespace)) = namespace {
        let current = names::hub_namespace(namespace.uid());
        if !within.contains(&current) {
            let target = Target::cluster(&Plane::Hub, NAMESPACE, &current);
            live.put(&target, context.applier.read(&target).await?);
            within.push(current);
        }
    }
    for namespace in within {
        let target = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, &namespace, &key.name);
        live.put(&target, context.applier.read(&target).await?);
    }
    Ok(())
}

impl Reconciler for Federation {
    fn name(&self) -> &'static str {
        FEDERATION_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            let store = context.store(&key.plane, kind::WORKLOAD_DEPLOYMENT);
            let found = store.and_then(|store| store.get(&key.namespace, &key.name).known().flatten());
            let Some(deployment) = found else {
                return Ok(());
            };
            context.read_server(live, &key.plane).await?;
            context.read_namespace(live, &key.plane, &key.namespace).await?;
            if deployment.deleting()
                && deployment.has_finalizer(finalizers::FEDERATOR)
                && let Err(error) = read_what_is_left(context, live, key).await
            {
                // The status in the project shows that the deletion waits.
                live.miss(&Plane::Hub, error);
            }
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let siblings = snapshot
            .in_namespace(plane, kind::WORKLOAD_DEPLOYMENT, &key.namespace)
            .known()?;
        let deployment = siblings.iter().find(|one| one.name() == key.name)?;
        let namespace = snapshot.project_namespace(plane, &key.namespace);
        let bindings = snapshot.all(plane, kind::LOCATION_BINDING);
        let workload = claimed(snapshot, plane, deployment);
        // All spell the city alike but in rare cases, and then siblings change nothing.
        let is_disputed = siblings.iter().any(|one| spells_otherwise(one, deployment));
        let may_hold = |one: &&Arc<Object>| {
            let is_itself = one.name() == key.name;
            is_itself || is_disputed && is_served(snapshot, plane, one, &bindings) == Observed::Known(true)
        };
        let others: Vec<Arc<Object>> = siblings.iter().filter(may_hold).cloned().collect();
        let types = snapshot.context.types.known();
        let rejected = snapshot.context.rejections_of(self.name(), key);
        let current = namespace.as_ref().known().and_then(Option::as_deref);
        let elsewhere = current.and_then(|one| rejected_elsewhere(snapshot.context, deployment, one));
        snapshot.project(plane, |project| {
            let holding = if snapshot.has_missed(&Plane::Hub) {
                Observed::Unknown
            } else {
                Holding::look(snapshot, project.id, deployment, current)
            };
            let holding = holding.as_ref();
            let (namespaces, deployments) = match holding {
                Observed::Known(holding) => (refs(&holding.namespaces), refs(&holding.deployments)),
                Observed::Unknown => Default::default(),
            };
            federation::decide(&federation::Observation {
                project,
                deployment,
                siblings: &refs(&others),
                workload: workload.as_ref().map(Option::as_deref),
                bindings: bindings.as_ref().map(|all| refs(all)).as_ref().map(Vec::as_slice),
                namespace: namespace.as_ref().map(Option::as_deref),
                hub: holding.map(|holding| Hub {
                    namespaces: &namespaces,
                    deployments: &deployments,
                    policy: holding.policy.as_deref(),
                    binding: holding.binding.as_deref(),
                    held: holding.held.as_ref(),
                }),
                types: types.as_ref().map(Arc::as_ref),
                carries_data: snapshot.context.rules.carries_data,
                spec_echoes: snapshot.context.applier.spec_echoes(),
                rejected: &rejected,
                elsewhere: elsewhere.as_ref(),
                now,
            })
        })
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Project(_), kind::WORKLOAD_DEPLOYMENT | kind::LOCATION_BINDING | kind::WORKLOAD)
                if events::is_listed(change) =>
            {
                self.keys(context, plane)
            }
            (Plane::Project(_), kind::WORKLOAD_DEPLOYMENT) => of_deployment(context, plane, change),
            (Plane::Project(_), NAMESPACE) => of_namespace(context, plane, change),
            (Plane::Project(_), kind::LOCATION_BINDING) => keys_in_cities(context, plane, change),
            (Plane::Project(_), kind::WORKLOAD) if events::comes_or_goes(change) => of_workload(context, plane, change),
            (Plane::Discovery, kind::INSTANCE_TYPE) => {
                let all = events::projects(context).into_iter();
                all.flat_map(|project| events::keys_of_type(context, &project, change))
                    .collect()
            }
            (Plane::Hub, _) if events::is_listed(change) => self.keys(context, plane),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) => of_hub_deployment(context, change),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => of_hub_namespace(context, change),
            (Plane::Hub, kind::RESOURCE_BINDING) => of_resource_binding(context, change),
            (Plane::Hub, kind::PROPAGATION_POLICY) if events::comes_or_goes(change) => of_policy(context, change),
            (Plane::Hub, kind) if CARRIED.contains(&kind) && is_or_was_foreign(change) => {
                of_holder(context, kind, change)
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => {
                let all = events::projects(context).into_iter();
                all.flat_map(|project| self.keys(context, &project)).collect()
            }
            project => events::keys_of(context, project, kind::WORKLOAD_DEPLOYMENT),
        }
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        // They are those of all projects.
        self.keys(context, &Plane::Hub)
    }
}

/// The object of another client on the hub at the name of a copy that a WorkloadDeployment needs.
fn held(snapshot: &Snapshot<'_>, hub_namespace: &str, deployment: &Object) -> Option<Target> {
    references::of(deployment)
        .into_iter()
        .find_map(|Reference { kind, name }| {
            let holder = snapshot.get(&Plane::Hub, kind, hub_namespace, &name).known()??;
            reference_copy::is_foreign(&holder).then(|| Target::of(&Plane::Hub, kind, &holder))
        })
}

/// What was rejected of the policy of its city, of a copy that it needs, or of what shows its Instances in the project.
fn rejected_elsewhere(context: &Context, deployment: &Object, namespace: &Object) -> Option<Rejection> {
    let hub_namespace = names::hub_namespace(namespace.uid());
    let policy = names::city_policy(deployment.text("/spec/cityCode")?);
    let hub = context.memory(&Plane::Hub)?;
    let of_policy = hub
        .rejections
        .of(POLICY_RECONCILER, &Key::new(&Plane::Hub, &hub_namespace, &policy));
    let of_reference = || {
        let needed = references::of(deployment);
        let is_needed = |key: &str| needed.iter().any(|one| one.to_string() == key);
        let rejections = &hub.rejections;
        let first = rejections.first_of(REFERENCE_COPY_RECONCILER, &hub_namespace, "", is_needed);
        first.map(|(_, rejection)| rejection)
    };
    let of_data = || {
        let is_named = !references::data(deployment).is_empty();
        let of_namespace = || {
            hub.rejections
                .of(DATA_COPY_RECONCILER, &hub_namespaces::key(&hub_namespace))
        };
        let named = references::data(deployment);
        let is_of_it = |one: &Rejection| {
            let target = &one.target;
            named
                .iter()
                .any(|one| one.kind == target.kind && one.name == target.name)
        };
        is_named.then(of_namespace)?.into_iter().find(is_of_it)
    };
    let of_reference = || of_reference().or_else(of_data);
    of_policy.into_iter().next().or_else(of_reference).or_else(|| {
        let of_it = |name: &str| slots::deployment_of(name) == Some(deployment.name());
        let prefix = slots::prefix(deployment.name());
        let first = hub
            .rejections
            .first_of(PROJECTION_RECONCILER, &hub_namespace, &prefix, of_it);
        first.map(|(_, rejection)| rejection)
    })
}

/// Who shows what is rejected of a policy: the WorkloadDeployments whose city has that policy name.
pub(super) fn users_of_policy(context: &Context, hub_namespace: &str, policy: &str) -> Vec<(&'static str, Key)> {
    let Some((plane, namespace)) = hub_namespaces::owner(context, hub_namespace) else {
        return Vec::new();
    };
    let all = events::stored(context, &plane, kind::WORKLOAD_DEPLOYMENT, Some(&namespace));
    let names_it = |one: &&Arc<Object>| one.text("/spec/cityCode").map(names::city_policy).as_deref() == Some(policy);
    all.iter()
        .filter(names_it)
        .map(|one| (FEDERATION_RECONCILER, Key::new(&plane, &namespace, one.name())))
        .collect()
}

/// Who shows what is rejected of a copy: the WorkloadDeployments that name its source.
pub(super) fn users_of_reference(context: &Context, hub_namespace: &str, key: &str) -> Vec<(&'static str, Key)> {
    let users = named_in_project(context, hub_namespace, |one| one.to_string() == key);
    users.into_iter().map(|user| (FEDERATION_RECONCILER, user)).collect()
}

/// Who shows what is rejected of copies of ConfigMaps and Secrets: the WorkloadDeployments that name any.
pub(super) fn users_of_data(context: &Context, hub_namespace: &str) -> Vec<(&'static str, Key)> {
    let users = keys_in_project(context, hub_namespace, |one| !references::data(one).is_empty());
    users.into_iter().map(|user| (FEDERATION_RECONCILER, user)).collect()
}

/// WorkloadDeployments of a project that name an object which is copied to a hub namespace.
fn named_in_project(context: &Context, hub_namespace: &str, is_meant: impl Fn(&Reference) -> bool) -> Vec<Key> {
    keys_in_project(context, hub_namespace, |one| references::of(one).iter().any(&is_meant))
}

/// WorkloadDeployments of the namespace of a project that a hub namespace stands for.
fn keys_in_project(context: &Context, hub_namespace: &str, is_meant: impl Fn(&Object) -> bool) -> Vec<Key> {
    let Some((plane, namespace)) = hub_namespaces::owner(context, hub_namespace) else {
        return Vec::new();
    };
    events::keys_where(context, &plane, kind::WORKLOAD_DEPLOYMENT, Some(&namespace), is_meant)
}

/// Who shows what is rejected of an Instance that is shown in a project: its WorkloadDeployment there.
pub(super) fn user_of_instance(context: &Context, hub_namespace: &str, instance: &str) -> Vec<(&'static str, Key)> {
    let found = slots::deployment_of(instance).and_then(|name| origin(context, hub_namespace, name));
    found.map(|key| (FEDERATION_RECONCILER, key)).into_iter().collect()
}

/// The Workload that a WorkloadDeployment says it is made from.
fn claimed(snapshot: &Snapshot<'_>, plane: &Plane, deployment: &Object) -> Observed<Option<Arc<Object>>> {
    match derived::claimed(deployment) {
        Some((name, _)) => snapshot.get(plane, kind::WORKLOAD, deployment.namespace(), name),
        None => Observed::Known(None),
    }
}

/// Whether a living Workload asks for a WorkloadDeployment.
pub(super) fn is_derived(snapshot: &Snapshot<'_>, plane: &Plane, deployment: &Object) -> bool {
    let workload = claimed(snapshot, plane, deployment).known().flatten();
    workload.is_some_and(|workload| derived::is_of(deployment, &workload))
}

/// Whether a WorkloadDeployment of a project may be carried to its city: only then it counts among those that name it.
pub(super) fn is_served(
    snapshot: &Snapshot<'_>,
    plane: &Plane,
    deployment: &Object,
    bindings: &Observed<Vec<Arc<Object>>>,
) -> Observed<bool> {
    let workload = claimed(snapshot, plane, deployment);
    let bindings = bindings.as_ref().map(|all| refs(all));
    let usable: Observed<BTreeSet<&str>> = bindings.as_ref().map(|all| bindings::usable_cities(all));
    federation::is_served(deployment, workload.as_ref().map(Option::as_deref), usable.as_ref())
}

/// WorkloadDeployments whose city a LocationBinding names, or named before.
pub(super) fn in_cities(context: &Context, plane: &Plane, change: &Change) -> Vec<Arc<Object>> {
    let cities: Vec<&str> = events::both(change).filter_map(|one| bindings::city(one)).collect();
    let mut all = events::stored(context, plane, kind::WORKLOAD_DEPLOYMENT, None);
    all.retain(|one| one.text("/spec/cityCode").is_some_and(|city| cities.contains(&city)));
    all
}

/// Their keys.
pub(super) fn keys_in_cities(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let all = in_cities(context, plane, change);
    all.iter()
        .map(|one| Key::new(plane, one.namespace(), one.name()))
        .collect()
}

/// The WorkloadDeployment of a project that an event is about, and those that may wait for it.
fn of_deployment(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let mut enqueued = events::key(plane, change);
    if events::comes_or_goes(change) {
        for one in events::both(change) {
            enqueued.extend(other_spellings(context, plane, one.namespace(), one));
        }
    }
    enqueued
}

/// WorkloadDeployments of the Namespace of a project that an event is about.
fn of_namespace(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let found = events::address(change).map(|(_, namespace)| within(context, plane, namespace));
    found.unwrap_or_default()
}

/// WorkloadDeployments that say they are made from the Workload of an event.
pub(super) fn of_workload(context: &Context, plane: &Plane, change: &Change) -> Vec<Key> {
    let Some((namespace, workload)) = events::address(change) else {
        return Vec::new();
    };
    events::keys_where(context, plane, kind::WORKLOAD_DEPLOYMENT, Some(namespace), |one| {
        derived::claimed(one).is_some_and(|(name, _)| name == workload)
    })
}

/// The origin of a WorkloadDeployment of the hub that an event is about, and those that may wait for that one.
fn of_hub_deployment(context: &Context, change: &Change) -> Vec<Key> {
    let mut enqueued = Vec::new();
    for one in events::both(change) {
        let Some((plane, namespace)) = hub_namespaces::owner(context, one.namespace()) else {
            continue;
        };
        enqueued.push(Key::new(&plane, &namespace, one.name()));
        if events::comes_or_goes(change) {
            enqueued.extend(other_spellings(context, &plane, &namespace, one));
        }
    }
    enqueued
}

/// WorkloadDeployments of the namespaces that a hub namespace stands for, before and after an event.
fn of_hub_namespace(context: &Context, change: &Change) -> Vec<Key> {
    let owners = events::both(change).filter_map(|one| identity::of_namespace(one));
    owners
        .flat_map(|(project, namespace)| within(context, &Plane::Project(project.to_owned()), namespace))
        .collect()
}

/// The origin of the WorkloadDeployment that a ResourceBinding of an event is about.
fn of_resource_binding(context: &Context, change: &Change) -> Vec<Key> {
    let bound = events::both(change).filter_map(|one| bound(one));
    bound
        .filter_map(|(hub_namespace, name)| origin(context, hub_namespace, name))
        .collect()
}

/// WorkloadDeployments of the namespace that the hub namespace of a policy stands for.
fn of_policy(context: &Context, change: &Change) -> Vec<Key> {
    let hub_namespace = events::address(change).map(|(hub_namespace, _)| hub_namespace);
    let owner = hub_namespace.and_then(|hub_namespace| hub_namespaces::owner(context, hub_namespace));
    owner
        .map(|(plane, namespace)| within(context, &plane, &namespace))
        .unwrap_or_default()
}

/// Whether an object at the name of a copy is another client's, or was.
fn is_or_was_foreign(change: &Change) -> bool {
    events::is_more_than_status(change) && events::both(change).any(|one| !one.marked())
}

/// WorkloadDeployments that wait for the name of an object of another client on the hub.
fn of_holder(context: &Context, kind: Kind, change: &Change) -> Vec<Key> {
    let Some((hub_namespace, name)) = events::address(change) else {
        return Vec::new();
    };
    named_in_project(context, hub_namespace, |one| one.kind == kind && one.name == name)
}

/// WorkloadDeployments of a project's namespace that spell the city of one otherwise: they may wait for it.
fn other_spellings(context: &Context, plane: &Plane, namespace: &str, deployment: &Object) -> Vec<Key> {
    events::stored(context, plane, kind::WORKLOAD_DEPLOYMENT, Some(namespace))
        .iter()
        .filter(|one| spells_otherwise(one, deployment))
        .map(|one| Key::new(plane, namespace, one.name()))
        .collect()
}

/// Whether two name the same city, for which there is one policy, in other letters.
fn spells_otherwise(one: &Object, other: &Object) -> bool {
    let [one, other] = [one, other].map(|each| each.text("/spec/cityCode"));
    one.zip(other)
        .is_some_and(|(one, other)| one != other && names::city_policy(one) == names::city_policy(other))
}

/// The WorkloadDeployment in the project that one of the hub stands for.
fn origin(context: &Context, hub_namespace: &str, name: &str) -> Option<Key> {
    let (plane, namespace) = hub_namespaces::owner(context, hub_namespace)?;
    Some(Key::new(&plane, &namespace, name))
}

/// All WorkloadDeployments of a project's namespace.
fn within(context: &Context, plane: &Plane, namespace: &str) -> Vec<Key> {
    events::keys_within(context, plane, kind::WORKLOAD_DEPLOYMENT, namespace)
}

/// Namespace and name of the WorkloadDeployment that a ResourceBinding is about.
fn bound(binding: &Object) -> Option<(&str, &str)> {
    let is_ours = binding.text("/spec/resource/kind") == Some(kind::WORKLOAD_DEPLOYMENT.kind);
    let name = binding.text("/spec/resource/name").filter(|_| is_ours)?;
    Some((binding.namespace(), name))
}
