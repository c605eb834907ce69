//! `deployment`: see [`popcell_core::deployment`].

mod data;
mod networks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::{gates, labels};
use popcell_core::deployment::{self, Networks, PROGRESS};
use popcell_core::instance::has_gate;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Action, Plan, Plane};
use popcell_core::rewind::{self, SET_BACK};
use popcell_core::slots;
use tokio::time::Instant;
use tracing::warn;

use super::instance_copy::INSTANCE_COPY_RECONCILER;
use super::{events, federation};
use crate::apply::Done;
use crate::cell::{INSTANCE_CLAIM_RECONCILER, INSTANCE_RECONCILER};
use crate::context::Context;
use crate::planes::{Change, SINGLE};
use crate::queue::{Key, RateLimit, Urgency};
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};
use crate::sync::lock;

/// Name of the reconciler.
const DEPLOYMENT_RECONCILER: &str = "deployment";

/// Key: a WorkloadDeployment in the cell.
#[derive(Debug)]
pub struct Deployment {
    /// Whether Instances wait for networks.
    networking: bool,
    /// Single-cluster mode: the cell is the project, and the cities were not checked before.
    single: bool,
    /// What a hub that was set back has taken back, by namespace and name, and since when: see [`rewind::is_repeated`].
    earlier_specs: Mutex<EarlierSpecs>,
    /// Those that have progress to tell, and since when.
    progress: Mutex<BTreeMap<(String, String), Instant>>,
}

type EarlierSpecs = BTreeMap<(String, String), (Arc<Object>, Instant)>;

impl Deployment {
    /// `networking`: whether Instances wait for networks. `single`: whether the cell is the project, so that no component has
    /// looked at the cities before.
    pub fn new(networking: bool, single: bool) -> Self {
        Self {
            networking,
            single,
            earlier_specs: Mutex::default(),
            progress: Mutex::default(),
        }
    }

    // Each hold is one step of a map: there is no half-done state that a panic could leave.
    fn earlier_specs(&self) -> MutexGuard<'_, EarlierSpecs> {
        lock(&self.earlier_specs)
    }

    // The same.
    fn progress(&self) -> MutexGuard<'_, BTreeMap<(String, String), Instant>> {
        lock(&self.progress)
    }

    /// What only tells of progress waits for more of it, and not longer than [`PROGRESS`], whichever event led to it.
    fn gathered(&self, key: &Key, deployment: &Object, plan: Plan) -> Plan {
        let address = (key.namespace.clone(), key.name.clone());
        if !deployment::reports_progress(deployment, &plan) {
            self.progress().remove(&address);
            return plan;
        }
        let since = *self.progress().entry(address).or_insert_with(Instant::now);
        let left = PROGRESS.saturating_sub(since.elapsed());
        if left.is_zero() {
            return plan;
        }
        let mut plan = deployment::without_progress(deployment, plan);
        plan.requeue_within(left);
        plan
    }

    /// While the hub repeats what it said before, nothing is replaced by it: it is corrected in a moment.
    fn held(&self, key: &Key, plan: Plan) -> Plan {
        let since = match self.earlier_specs().get(&(key.namespace.clone(), key.name.clone())) {
            Some((_, since)) => since.elapsed(),
            None => return plan,
        };
        let left = SET_BACK.saturating_sub(since);
        if left.is_zero() {
            return plan;
        }
        let mut plan = plan;
        plan.actions.retain(|action| !matches!(action, Action::Delete(_)));
        plan.requeue_within(left);
        plan
    }
}

impl Reconciler for Deployment {
    fn name(&self) -> &'static str {
        DEPLOYMENT_RECONCILER
    }

    /// Every write on one of its Instances may enqueue it, and other writers of its status do.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_MANY_OBJECTS)
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            data::read(context, live, key).await;
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let deployment = snapshot
            .get(plane, kind::WORKLOAD_DEPLOYMENT, &key.namespace, &key.name)
            .known()??;
        let instances = instances(snapshot, plane, &deployment).known()?;
        let networks = self.networking.then(|| networks::look(snapshot, &deployment));
        let [locations, bindings, contexts, claims, subnets] = match &networks {
            Some(networks) => networks.each_ref().map(|all| all.as_ref().map(|all| refs(all))),
            None => std::array::from_fn(|_| Observed::Unknown),
        };
        let autoscaler = snapshot.get(plane, kind::HORIZONTAL_POD_AUTOSCALER, &key.namespace, &key.name);
        let prefix = slots::prefix(&key.name);
        let of_it = |name: &str| slots::deployment_of(name) == Some(key.name.as_str());
        let first_rejection = |reconcilers: &[&'static str], plane| {
            let context = snapshot.context;
            context.first_rejection(reconcilers, plane, &key.namespace, &prefix, of_it)
        };
        let elsewhere = first_rejection(&[INSTANCE_RECONCILER], Some(plane))
            .or_else(|| first_rejection(&[INSTANCE_COPY_RECONCILER, INSTANCE_CLAIM_RECONCILER], None));
        let rejected = snapshot.context.rejections_of(self.name(), key);
        let types = self.single.then(|| snapshot.context.types.known());
        let plan = deployment::decide(&deployment::Observation {
            deployment: &deployment,
            instances: &refs(&instances),
            served: self.served(snapshot, &deployment),
            derived: self.single && federation::is_derived(snapshot, &single(), &deployment),
            types: types.as_ref().map(|types| types.as_ref().map(Arc::as_ref)),
            networks: networks.as_ref().map(|_| Networks {
                locations: locations.as_ref().map(Vec::as_slice),
                bindings: bindings.as_ref().map(Vec::as_slice),
                contexts: contexts.as_ref().map(Vec::as_slice),
                claims: claims.as_ref().map(Vec::as_slice),
                subnets: subnets.as_ref().map(Vec::as_slice),
                own_namespace_only: !self.single,
            }),
            data: &data::judge(snapshot, &deployment, &instances),
            autoscaler: autoscaler.as_ref().map(Option::as_deref),
            rejected: &rejected,
            elsewhere: elsewhere.as_ref(),
            now,
        });
        if deployment.deleting() {
            return Some(plan);
        }
        let plan = self.held(key, plan);
        // What is rejected is shown at once.
        let is_rejected = !rejected.is_empty() || elsewhere.is_some();
        Some(if is_rejected {
            plan
        } else {
            self.gathered(key, &deployment, plan)
        })
    }

    fn executed(&self, _: &Context, key: &Key, plan: &Plan, _: Done) {
        if plan.status.is_some() {
            self.progress().remove(&(key.namespace.clone(), key.name.clone()));
        }
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        if *plane != Plane::Cell || kind != kind::WORKLOAD_DEPLOYMENT {
            return;
        }
        let Some((namespace, name)) = events::address(change) else {
            return;
        };
        let key = (namespace.to_owned(), name.to_owned());
        let mut ahead = self.earlier_specs();
        match change {
            Change::Applied { before, now } => {
                if ahead
                    .get(&key)
                    .is_some_and(|(before, _)| rewind::has_caught_up(before, now))
                {
                    ahead.remove(&key);
                }
                let repeated = before.as_ref().filter(|before| rewind::is_repeated(before, now));
                if let (Some(before), false) = (repeated, ahead.contains_key(&key)) {
                    warn!(
                        namespace,
                        name,
                        "the hub repeats an earlier spec of this WorkloadDeployment: it was set back to a backup; for {} s, or \
                         until the management plane has corrected it, no Instance is replaced or deleted",
                        SET_BACK.as_secs()
                    );
                    ahead.insert(key, (Arc::clone(before), Instant::now()));
                }
            }
            Change::Gone { .. } => {
                ahead.remove(&key);
                self.progress().remove(&key);
            }
            _ => {}
        }
    }

    /// What is on its way is counted once for several steps; what is to be read for a new Instance is read at once.
    fn urgency(&self, _: &Context, plane: &Plane, kind: Kind, change: &Change, _: &Key) -> Urgency {
        match change {
            Change::Applied { before, now }
                if *plane == Plane::Cell
                    && kind == kind::INSTANCE
                    && slots::deployment_of(now.name()).is_some()
                    && !(before.is_none() && has_gate(now, gates::REFERENCED_DATA))
                    && deployment::is_on_its_way(before.as_deref(), now) =>
            {
                // One that another client has made holds the name of a slot.
                if owner_of(now).is_some() {
                    Urgency::Progress
                } else {
                    Urgency::Gathered
                }
            }
            _ => Urgency::AtOnce,
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            // A kind that comes back with nothing in it tells of no object.
            (
                Plane::Cell,
                kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE | kind::NETWORK_BINDING | kind::HORIZONTAL_POD_AUTOSCALER,
            ) if events::is_listed(change) => self.keys(context, plane),
            // It has been decided with what is written so.
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if context.applier.is_own_report(plane, kind, change) => {
                Vec::new()
            }
            (Plane::Cell, kind::NETWORK_BINDING | kind::SUBNET_CLAIM)
                if context.applier.is_own_create(plane, kind, change) =>
            {
                Vec::new()
            }
            // Its status, which an autoscaler writes every few seconds, says nothing here.
            (Plane::Cell, kind::HORIZONTAL_POD_AUTOSCALER) if has_spec_of_before(change) => Vec::new(),
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT | kind::HORIZONTAL_POD_AUTOSCALER) => events::key(plane, change),
            (Plane::Discovery, kind::INSTANCE_TYPE) if self.single => {
                events::keys_of_type(context, &Plane::Cell, change)
            }
            (Plane::Cell, kind::INSTANCE) => of_instance(change),
            (Plane::Cell, kind::NETWORK_BINDING) => events::both(change).filter_map(|one| owner_of(one)).collect(),
            (Plane::Cell, _) => networks::waiting(context, kind, change),
            (project, _) if self.single && *project == single() => self.of_project(context, project, kind, change),
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Cell => events::keys_of(context, plane, kind::WORKLOAD_DEPLOYMENT),
            _ => Vec::new(),
        }
    }
}

impl Deployment {
    /// Whether its city may be used.
    fn served(&self, snapshot: &Snapshot<'_>, deployment: &Object) -> Observed<bool> {
        if !self.single {
            return Observed::Known(true);
        }
        let project = single();
        let bindings = snapshot.all(&project, kind::LOCATION_BINDING);
        federation::is_served(snapshot, &project, deployment, &bindings)
    }

    /// The keys that an event of the cell's own project concerns.
    fn of_project(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let mut enqueued = match kind {
            kind::LOCATION_BINDING | kind::WORKLOAD if events::is_listed(change) => self.keys(context, &Plane::Cell),
            kind::LOCATION_BINDING => federation::keys_in_cities(context, plane, change),
            kind::WORKLOAD if events::comes_or_goes(change) => federation::of_workload(context, plane, change),
            _ => Vec::new(),
        };
        for key in &mut enqueued {
            key.plane = Plane::Cell;
        }
        enqueued
    }
}

/// The WorkloadDeployments that an Instance is of. One without an owner, or of another, may have held the name of a slot.
fn of_instance(change: &Change) -> Vec<Key> {
    let (namespace, name) = events::address(change).unwrap_or_default();
    let slot = slots::deployment_of(name).map(|deployment| Key::new(&Plane::Cell, namespace, deployment));
    let owners = events::both(change).filter_map(|one| owner_of(one));
    owners.chain(slot).collect()
}

/// Whether an object has the spec, labels, owners and life that it had.
fn has_spec_of_before(change: &Change) -> bool {
    let Change::Applied {
        before: Some(before),
        now,
    } = change
    else {
        return false;
    };
    now.has_spec_of(before)
        && now.uid() == before.uid()
        && now.metadata.labels == before.metadata.labels
        && now.owners() == before.owners()
        && now.deleting() == before.deleting()
}

/// The project that a single cluster is.
fn single() -> Plane {
    Plane::Project(SINGLE.to_owned())
}

/// The WorkloadDeployment that an Instance or NetworkBinding is of: its controller, else the one that it is labelled with.
pub(super) fn owner_of(object: &Object) -> Option<Key> {
    let owners = object.metadata.owner_references.iter().flatten();
    let controller = owners
        .into_iter()
        .find(|one| one.kind == kind::WORKLOAD_DEPLOYMENT.kind && one.controller == Some(true))
        .map(|one| one.name.as_str());
    let name = controller.or_else(|| object.label(labels::WORKLOAD_DEPLOYMENT_NAME))?;
    Some(Key::new(&Plane::Cell, object.namespace(), name))
}

/// The one that has a uid, in a namespace.
pub(super) fn of_uid(snapshot: &Snapshot<'_>, namespace: &str, uid: &str) -> Observed<Option<Arc<Object>>> {
    let found = snapshot.saying(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, uid);
    found.map(|found| found.into_iter().find(|one| one.namespace() == namespace))
}

/// The one in which a name stands for a slot.
pub(super) fn of_slot(snapshot: &Snapshot<'_>, namespace: &str, name: &str) -> Observed<Option<Arc<Object>>> {
    let deployment = slots::deployment_of(name).unwrap_or_default();
    snapshot.get(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, namespace, deployment)
}

/// Who shows what is rejected of an Instance, its copy or its claim: its WorkloadDeployment.
pub(super) fn shown_by(namespace: &str, instance: &str) -> Vec<(&'static str, Key)> {
    let deployment = slots::deployment_of(instance);
    let key = deployment.map(|name| (DEPLOYMENT_RECONCILER, Key::new(&Plane::Cell, namespace, name)));
    key.into_iter().collect()
}

/// Instances that say they are of a WorkloadDeployment, and those at the names of its slots.
fn instances(snapshot: &Snapshot<'_>, plane: &Plane, deployment: &Object) -> Observed<Vec<Arc<Object>>> {
    let namespace = deployment.namespace();
    let of_it = snapshot.saying(plane, kind::INSTANCE, deployment.uid());
    let named = snapshot.starting(plane, kind::INSTANCE, namespace, &slots::prefix(deployment.name()));
    let (Observed::Known(of_it), Observed::Known(mut found)) = (of_it, named) else {
        return Observed::Unknown;
    };
    found.extend(of_it.into_iter().filter(|one| one.namespace() == namespace));
    found.sort_by(|one, other| one.name().cmp(other.name()));
    found.dedup_by(|one, other| one.name() == other.name());
    Observed::Known(found)
}
