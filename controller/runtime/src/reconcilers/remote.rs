//! `remote`: see [`popcell_core::remote`].

mod claim_projects;
mod instance_claim;
mod instance_copy;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations;
use popcell_api::conditions::READY;
use popcell_api::kind::{self, Kind};
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::conditions;
use popcell_core::deployment;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::remote::cell::Identity;
use popcell_core::remote::claim;
use popcell_core::slots;

pub(super) use instance_claim::{Claimed, instances_of};

use super::deployment::shown_by;
use super::events;
use crate::apply::{ApplyError, Done};
use crate::cell::{Cell, MISMATCH_AGAIN};
use crate::context::Context;
use crate::planes::{Change, Store};
use crate::queue::{Key, RateLimit, Urgency};
use crate::reconcile::{LiveReads, Reconciler, Snapshot};

/// Name of the reconciler.
pub(super) const REMOTE_RECONCILER: &str = "remote";

/// Key on the hub: the copy of an Instance, by cell namespace and name. In a project: its claim there, by cell namespace
/// and name of the Instance. In the cell: the record of projects with claims.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The cell.
    pub cell: Arc<Cell>,
}

impl Reconciler for Remote {
    fn name(&self) -> &'static str {
        REMOTE_RECONCILER
    }

    /// Providers write on the Instances, and any client may on copies and claims.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_TWO_WRITERS)
    }

    fn prepare<'a>(
        &'a self,
        context: &'a Context,
        live: &'a mut LiveReads,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        Box::pin(async move {
            self.cell.identity_cache.identify(&self.cell, &context.applier).await?;
            match &key.plane {
                Plane::Hub => instance_copy::prepare(&self.cell, context, live, key).await,
                Plane::Project(_) => instance_claim::prepare(&self.cell, context, live, key).await,
                Plane::Cell | Plane::Discovery => claim_projects::prepare(&self.cell, context, live).await,
            }
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let identity = self.cell.identity_cache.identity();
        let mut plan = match &key.plane {
            Plane::Hub => instance_copy::decide(&self.cell, snapshot, key, now)?,
            Plane::Project(project) => {
                let claimed = Claimed::look(&self.cell, snapshot, &key.namespace, &key.name)?
                    .in_project(&self.cell, snapshot, project);
                claimed.observe(&self.cell, |seen| seen.map(claim::decide))?
            }
            Plane::Cell | Plane::Discovery => claim_projects::decide(&self.cell, snapshot, now)?,
        };
        if matches!(identity, Identity::Mismatch(_)) {
            plan.requeue_within(MISMATCH_AGAIN);
        }
        Some(plan)
    }

    fn executed(&self, _: &Context, key: &Key, plan: &Plan, _: Done) {
        if key.plane == Plane::Cell {
            self.cell.forget_record();
        }
        if let Plane::Project(_) = &key.plane {
            // Such a claim does not carry our label, so only the reconcile that was refused its name has seen it.
            let held = instance_claim::held(plan);
            self.cell.names_in_use.set(key, held);
            let reported = held.map(|target| {
                self.cell
                    .names_in_use
                    .reported(key, target, instance_claim::maker(plan))
            });
            self.cell.refused(&key.namespace, &key.name, reported);
        }
    }

    fn failed(&self, _: &Context, key: &Key, error: &ApplyError) {
        if let (Plane::Project(_), Some(refusal)) = (&key.plane, instance_claim::refusal(error)) {
            self.cell.refused(&key.namespace, &key.name, Some(refusal));
        }
    }

    fn shown_by(&self, _: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        shown_by(&key.namespace, &key.name)
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        match (plane, kind) {
            // It may be another hub, or know another cell by our name: it is asked before anything is written.
            (Plane::Hub, kind::INSTANCE) if events::is_listed(change) => self.cell.identity_cache.forget(),
            (Plane::Hub, kind::INSTANCE) | (Plane::Project(_), kind::RESOURCE_CLAIM) => {
                if let Change::Gone { last, .. } = change {
                    self.cell.identity_cache.doubt_identity();
                    // The hub's garbage collector may have deleted it, whose owner is gone: it must not be made again.
                    let owners = last
                        .iter()
                        .flat_map(|last| last.metadata.owner_references.iter().flatten());
                    owners.for_each(|owner| self.cell.identity_cache.doubt(&owner.uid));
                }
            }
            (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | NAMESPACE) if events::is_listed(change) => {
                self.cell.look_again();
            }
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_memory(change) => {
                for uid in events::both(change).filter_map(|one| one.annotation(annotations::RESOURCE_TEMPLATE_UID)) {
                    self.cell.identity_cache.doubt(uid);
                }
            }
            (Plane::Cell, NAMESPACE) if events::is_more_than_status(change) => {
                if let Change::Gone { name, .. } = change {
                    self.cell.identity_cache.forget_namespace(name);
                }
                self.cell.look_again();
            }
            _ => {}
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE) if events::is_listed(change) => self.initial_keys(context),
            (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | NAMESPACE) if events::is_listed(change) => {
                self.initial_keys(context)
            }
            (Plane::Cell, kind::INSTANCE) => {
                let Some((namespace, name)) = events::address(change) else {
                    return Vec::new();
                };
                let mut enqueued = self.of_instance(context, namespace, name);
                if !concerns_claim(change) {
                    enqueued.retain(|key| key.plane == Plane::Hub);
                }
                if matches!(change, Change::Gone { .. }) {
                    // A namespace that has changed hands: what ran kept its claim where it was.
                    enqueued.extend(misplaced(context, namespace, |store| store.named(&claim::name(name))));
                }
                enqueued
            }
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_memory(change) => {
                let (namespace, name) = events::address(change).unwrap_or_default();
                let mut enqueued = self.of_deployment(context, namespace, name);
                if asks_for_less(change) {
                    let prefix = claim::name(&slots::prefix(name));
                    enqueued.extend(misplaced(context, namespace, |store| store.starting_anywhere(&prefix)));
                }
                enqueued
            }
            (Plane::Cell, NAMESPACE) if events::is_more_than_status(change) => {
                let mut enqueued = self.record();
                enqueued.extend(
                    events::address(change)
                        .map(|(_, name)| self.within(context, name))
                        .unwrap_or_default(),
                );
                enqueued
            }
            // After a stamp there is more to do.
            (Plane::Hub, kind::INSTANCE)
                if !events::is_more_than_status(change) && context.applier.is_own_report(plane, kind, change) =>
            {
                Vec::new()
            }
            (Plane::Hub, kind::INSTANCE) => events::key(plane, change),
            // Whose a claim is, and what it asks for, is not changed by an answer.
            (Plane::Project(_), kind::RESOURCE_CLAIM)
                if context.applier.is_own_create(plane, kind, change) || is_answer(change) =>
            {
                Vec::new()
            }
            (Plane::Project(id), kind::RESOURCE_CLAIM) if events::is_listed(change) => {
                let mut enqueued = self.record();
                enqueued.extend(self.claims(context, plane, None));
                enqueued.extend(self.of_project(context, id));
                enqueued
            }
            (Plane::Project(id), kind::RESOURCE_CLAIM) => {
                let claimed = events::both(change).flat_map(|claim| instances_of(&self.cell, context, id, claim));
                let mut enqueued: Vec<Key> = claimed
                    .map(|(namespace, name)| Key::new(plane, &namespace, &name))
                    .collect();
                if matches!(change, Change::Gone { .. }) && !events::is_occupied(context, plane, kind) {
                    // Its last claim: nothing else shows that the project may be unused.
                    enqueued.extend(self.record());
                }
                enqueued
            }
            _ => Vec::new(),
        }
    }

    /// A copy is written once its Instance has settled; a claim at once.
    fn urgency(&self, _: &Context, plane: &Plane, kind: Kind, change: &Change, key: &Key) -> Urgency {
        match change {
            _ if (plane, kind, &key.plane) != (&Plane::Cell, kind::INSTANCE, &Plane::Hub) => Urgency::AtOnce,
            Change::Applied { before, now }
                if !conditions::says(now, READY, "True") && deployment::is_on_its_way(before.as_deref(), now) =>
            {
                Urgency::Progress
            }
            Change::Applied { .. } | Change::Gone { .. } => Urgency::Settled,
            _ => Urgency::AtOnce,
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => events::keys_of(context, plane, kind::INSTANCE),
            Plane::Project(_) => self.claims(context, plane, None),
            Plane::Cell => self.record(),
            Plane::Discovery => Vec::new(),
        }
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        let mut all: BTreeSet<Key> = self.record().into_iter().collect();
        for one in events::stored(context, &Plane::Cell, kind::INSTANCE, None) {
            all.extend(self.of_instance(context, one.namespace(), one.name()));
        }
        for plane in context.planes.planes() {
            all.extend(self.keys(context, &plane));
        }
        all.into_iter().collect()
    }
}

impl Remote {
    /// The key of the record.
    fn record(&self) -> Vec<Key> {
        let key = || Key::new(&Plane::Cell, &self.cell.namespace, CLAIM_PROJECTS);
        self.cell.quota.then(key).into_iter().collect()
    }

    /// Copy and claim of an Instance, or of what was one.
    fn of_instance(&self, context: &Context, namespace: &str, name: &str) -> Vec<Key> {
        let project = self.cell.project(context, namespace).filter(|_| self.cell.quota);
        let claim = project.map(|project| Key::new(&Plane::Project(project), namespace, name));
        let copy = self.cell.hub.then(|| Key::new(&Plane::Hub, namespace, name));
        copy.into_iter().chain(claim).collect()
    }

    /// Copies and claims of all slots that a WorkloadDeployment has, had, or may have.
    fn of_deployment(&self, context: &Context, namespace: &str, deployment: &str) -> Vec<Key> {
        let prefix = slots::prefix(deployment);
        let starting =
            |plane: &Plane, kind| events::picked(context, plane, kind, |store| store.starting(namespace, &prefix));
        let mut names: BTreeSet<String> = BTreeSet::new();
        for plane in [Plane::Cell, Plane::Hub] {
            names.extend(starting(&plane, kind::INSTANCE).iter().map(|one| one.name().to_owned()));
        }
        names.extend(self.claimed(context, namespace, &prefix));
        names
            .iter()
            .filter(|name| slots::deployment_of(name) == Some(deployment))
            .flat_map(|name| self.of_instance(context, namespace, name))
            .collect()
    }

    /// Instances of a cell namespace whose names begin so and that have claims where the namespace says.
    fn claimed(&self, context: &Context, namespace: &str, prefix: &str) -> Vec<String> {
        let Some((project, within)) = self.cell.project_namespace_of(context, namespace) else {
            return Vec::new();
        };
        let prefix = claim::name(prefix);
        let pick = |store: &Store| store.starting(&within, &prefix);
        let claims = events::picked(context, &Plane::Project(project), kind::RESOURCE_CLAIM, pick);
        let name = |claim: &Arc<Object>| claim::instance_name(claim).map(str::to_owned);
        claims.iter().filter_map(name).collect()
    }

    /// Copies and claims that a cell namespace has or should have.
    fn within(&self, context: &Context, namespace: &str) -> Vec<Key> {
        let mut enqueued = BTreeSet::new();
        for one in events::stored(context, &Plane::Cell, kind::INSTANCE, Some(namespace)) {
            enqueued.extend(self.of_instance(context, namespace, one.name()));
        }
        for one in events::stored(context, &Plane::Hub, kind::INSTANCE, Some(namespace)) {
            enqueued.insert(Key::new(&Plane::Hub, namespace, one.name()));
        }
        for plane in events::projects(context) {
            enqueued.extend(self.claims(context, &plane, Some(namespace)));
        }
        enqueued.into_iter().collect()
    }

    /// Claims that the Instances of a project have or should have.
    fn of_project(&self, context: &Context, id: &str) -> Vec<Key> {
        let instances = self.cell.instances(context, id);
        let plane = Plane::Project(id.to_owned());
        let key = |one: &Arc<Object>| Key::new(&plane, one.namespace(), one.name());
        instances.iter().map(key).collect()
    }

    /// Keys of a project's claims that this cell has made, for Instances of one cell namespace or of all.
    fn claims(&self, context: &Context, plane: &Plane, namespace: Option<&str>) -> Vec<Key> {
        let Plane::Project(id) = plane else { return Vec::new() };
        events::stored(context, plane, kind::RESOURCE_CLAIM, None)
            .iter()
            .flat_map(|claim| instances_of(&self.cell, context, id, claim))
            .filter(|(within, _)| namespace.is_none_or(|namespace| namespace == within))
            .map(|(within, name)| Key::new(plane, &within, &name))
            .collect()
    }
}

/// Whether what became of an Instance may change what is claimed for it: its size, whether it waits for it, whether it is there.
fn concerns_claim(change: &Change) -> bool {
    let Change::Applied {
        before: Some(before),
        now,
    } = change
    else {
        return true;
    };
    let gates = |one: &Object| one.items("/spec/controller/schedulingGates").len();
    events::comes_or_goes(change)
        || gates(now) > gates(before)
        || !deployment::differs_by_gates_at_most(before, now)
        || before.metadata.labels != now.metadata.labels
}

/// Whether only the status has changed of a claim that says whose it is.
fn is_answer(change: &Change) -> bool {
    let Change::Applied {
        before: Some(before),
        now,
    } = change
    else {
        return false;
    };
    let says_whose = claim::instance_of(now).is_some() && now.annotation(annotations::SOURCE_UID).is_some();
    says_whose
        && before.metadata.owner_references == now.metadata.owner_references
        && !events::is_more_than_status(change)
}

/// Whether slots of a WorkloadDeployment are not asked for any more.
fn asks_for_less(change: &Change) -> bool {
    match change {
        Change::Applied {
            before: Some(before),
            now,
        } => slots::desired(now) < slots::desired(before),
        _ => matches!(change, Change::Gone { .. }),
    }
}

/// Claims in any project that say they are of a cell namespace, whatever that says now.
fn misplaced(context: &Context, namespace: &str, pick: impl Fn(&Store) -> Observed<Vec<Arc<Object>>>) -> Vec<Key> {
    let mut enqueued = Vec::new();
    for plane in events::projects(context) {
        let claims = events::picked(context, &plane, kind::RESOURCE_CLAIM, &pick);
        let of_it = claims.iter().filter_map(|one| claim::instance_of(one));
        let of_it = of_it.filter(|(within, _)| *within == namespace);
        enqueued.extend(of_it.map(|(within, name)| Key::new(&plane, within, name)));
    }
    enqueued
}
