//! `instance`: see [`popcell_core::instance`].

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::conditions::QUOTA_GRANTED;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::conditions;
use popcell_core::deployment;
use popcell_core::instance::{self, Quota};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::remote::claim;

use super::deployment::{of_uid, owner_of, shown_by};
use super::events;
use super::instance_claim::{Claimed, instances_of};
use crate::cell::{Cell, INSTANCE_RECONCILER};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::{Key, RateLimit, Urgency};
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Key: an Instance in the cell.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The cell.
    pub cell: Arc<Cell>,
}

impl Reconciler for Instance {
    fn name(&self) -> &'static str {
        INSTANCE_RECONCILER
    }

    /// Its provider writes on the same object.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_TWO_WRITERS)
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        // Only asked for: a reconcile waits for its own plane.
        self.reread(&Snapshot::new(context, live), key);
        Box::pin(std::future::ready(Ok(())))
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let found = snapshot
            .get(plane, kind::INSTANCE, &key.namespace, &key.name)
            .known()??;
        let uid = found.label(labels::WORKLOAD_DEPLOYMENT_UID).unwrap_or_default();
        let deployment = of_uid(snapshot, &key.namespace, uid).known()?;
        let bindings = match &deployment {
            _ if !self.cell.networking => Observed::Unknown,
            Some(deployment) => {
                let prefix = deployment::binding_prefix(deployment.name());
                snapshot.starting(plane, kind::NETWORK_BINDING, &key.namespace, &prefix)
            }
            None => Observed::Known(Vec::new()),
        };
        let bindings = bindings.as_ref().map(|all| refs(all));
        let data = deployment.as_ref().zip(snapshot.context.memory(plane));
        let data = data.map(|(deployment, memory)| memory.data_waits.of(&key.namespace, deployment.name()));
        let data = data.unwrap_or(Observed::Unknown);
        let rejected = snapshot.context.rejections_of(self.name(), key);
        let gates_rejected = rejected
            .iter()
            .any(|one| one.verb == "patch" && one.target.kind == kind::INSTANCE);
        let decide = |quota: Quota<'_>| {
            instance::decide(&instance::Observation {
                instance: &found,
                deployment: deployment.as_deref(),
                bindings: bindings.as_ref().map(Vec::as_slice),
                own_namespace_only: !self.cell.is_project,
                lacks_networks: self.cell.lacks_networks(),
                data: data.as_ref().map(Option::as_deref),
                quota,
                gates_rejected,
                no_budget_grace: self.cell.no_budget_grace,
                now,
            })
        };
        if !self.cell.quota {
            return Some(decide(Quota::Disabled));
        }
        let claimed = Claimed::look(&self.cell, snapshot, &key.namespace, &key.name, None)?;
        let refusal = self.cell.refusal(&key.namespace, &key.name);
        let refusal = refusal.as_ref().map(|(reason, message)| (*reason, message.as_str()));
        let away = claimed.trouble(snapshot);
        Some(claimed.observe(&self.cell, |seen| {
            let quota = seen.map_or(Quota::Unknown(None), |seen| {
                claim::quota(seen, away.as_deref(), refusal)
            });
            decide(quota)
        }))
    }

    fn shown_by(&self, _: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        shown_by(&key.namespace, &key.name)
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | kind::NETWORK_BINDING | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.keys(context, plane)
            }
            // No other client here writes one.
            (Plane::Cell, kind::INSTANCE) if context.applier.is_own_report(plane, kind, change) => Vec::new(),
            (Plane::Cell, kind::INSTANCE) => events::key(plane, change),
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                of_deployments(context, change)
            }
            (Plane::Cell, kind::NETWORK_BINDING) => of_failed_bindings(context, change),
            (Plane::Cell, NAMESPACE) => within(context, change),
            (Plane::Project(id), kind::RESOURCE_CLAIM) if events::address(change).is_none() => {
                self.of_project(context, id)
            }
            (Plane::Project(id), kind::RESOURCE_CLAIM) => events::both(change)
                .flat_map(|claim| instances_of(&self.cell, context, id, claim))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// What neither lets an Instance go nor tells how it is waits for what does.
    fn urgency(&self, context: &Context, _: &Plane, kind: Kind, change: &Change, _: &Key) -> Urgency {
        let Change::Applied { before, now } = change else {
            return Urgency::AtOnce;
        };
        let waits = match (kind, before) {
            (kind::INSTANCE, None) => self.waits_for_a_claim(context, now),
            (kind::INSTANCE, Some(before)) => {
                before.at("/status") == now.at("/status")
                    && before.deleting() == now.deleting()
                    && deployment::differs_by_gates_at_most(before, now)
            }
            (kind::RESOURCE_CLAIM, _) => !claim::is_answered(now),
            _ => false,
        };
        if waits { Urgency::Gathered } else { Urgency::AtOnce }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Cell => events::keys_of(context, plane, kind::INSTANCE),
            _ => Vec::new(),
        }
    }
}

impl Instance {
    /// Whether a new Instance has no claim yet, and its project is known.
    fn waits_for_a_claim(&self, context: &Context, instance: &Object) -> bool {
        let project_namespace = self
            .cell
            .project_namespace_of(context, instance.namespace())
            .filter(|_| self.cell.quota);
        let claims = project_namespace.and_then(|(project, namespace)| {
            let claims = context.store(&Plane::Project(project), kind::RESOURCE_CLAIM)?;
            Some(claims.get(&namespace, &claim::name(instance.name())))
        });
        claims == Some(Observed::Known(None))
    }

    /// Has the claims of a project read again, while an Instance waits for one that is there and not granted.
    fn reread(&self, snapshot: &Snapshot<'_>, key: &Key) {
        if let Some((project, tier, quiet)) = self.waits(snapshot, key) {
            self.cell.claim_relists.wait(&project, tier, quiet);
        }
    }

    /// Its project, how soon it is looked at again, and how long nothing was heard of its project's claims.
    fn waits(&self, snapshot: &Snapshot<'_>, key: &Key) -> Option<(String, Duration, Duration)> {
        if !self.cell.quota {
            return None;
        }
        let found = snapshot.get(&key.plane, kind::INSTANCE, &key.namespace, &key.name);
        let found = found.known()??;
        if found.deleting() || conditions::says(&found, QUOTA_GRANTED, "True") {
            return None;
        }
        let project = self.cell.project(snapshot.context, &key.namespace)?;
        let claims = snapshot
            .context
            .store(&Plane::Project(project.clone()), kind::RESOURCE_CLAIM)?;
        let is_there = !claims.named(&claim::name(&key.name)).known()?.is_empty();
        let tier = instance::tier(found.created(), Timestamp::now());
        let quiet = claims.quiet_for().filter(|_| is_there)?;
        Some((project, tier, quiet))
    }

    fn of_project(&self, context: &Context, id: &str) -> Vec<Key> {
        let instances = self.cell.instances(context, id);
        instances
            .iter()
            .map(|one| Key::new(&Plane::Cell, one.namespace(), one.name()))
            .collect()
    }
}

/// Those of a namespace that came, changed or went.
fn within(context: &Context, change: &Change) -> Vec<Key> {
    let Some((_, namespace)) = events::address(change) else {
        return Vec::new();
    };
    events::keys_within(context, &Plane::Cell, kind::INSTANCE, namespace)
}

/// Those of a WorkloadDeployment that came or went.
fn of_deployments(context: &Context, change: &Change) -> Vec<Key> {
    events::both(change)
        .flat_map(|deployment| events::instances_saying(context, deployment.uid()))
        .collect()
}

/// Those that wait for a NetworkBinding, of which only a failure is shown: they are of its WorkloadDeployment.
fn of_failed_bindings(context: &Context, change: &Change) -> Vec<Key> {
    if !events::both(change).any(|binding| instance::has_failed(binding)) {
        return Vec::new();
    }
    let owners = events::both(change).filter_map(|binding| owner_of(binding));
    let deployments = owners.filter_map(|owner| {
        let store = context.store(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT)?;
        store.get(&owner.namespace, &owner.name).known()?
    });
    deployments
        .flat_map(|deployment| events::instances_saying(context, deployment.uid()))
        .collect()
}
