//! `instance`: see [`popcell_core::instance`].

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::instance::{self, Quota};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::remote::claim;

use super::remote::{Claimed, instances_of};
use super::{deployment, events};
use crate::cell::Cell;
use crate::pass::{Reconciler, Sight, refs};
use crate::planes::Change;
use crate::queue::{Key, Pace};
use crate::world::World;

/// Name of the reconciler.
pub const INSTANCE_RECONCILER: &str = "instance";

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
    fn pace(&self) -> Option<Pace> {
        Some(Pace::OF_TWO_WRITERS)
    }

    fn decide(&self, sight: &Sight<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let found = sight.get(plane, kind::INSTANCE, &key.namespace, &key.name).known()??;
        let deployments = sight
            .in_namespace(plane, kind::WORKLOAD_DEPLOYMENT, &key.namespace)
            .known()?;
        let uid = found.label(labels::WORKLOAD_DEPLOYMENT_UID);
        let deployment = deployments.iter().find(|one| Some(one.uid()) == uid);
        let bindings = if self.cell.networking {
            sight.in_namespace(plane, kind::NETWORK_BINDING, &key.namespace)
        } else {
            Observed::Unknown
        };
        let bindings = bindings.as_ref().map(|all| refs(all));
        let decide = |quota: Quota<'_>| {
            instance::decide(&instance::Observation {
                instance: &found,
                deployment: deployment.map(AsRef::as_ref),
                bindings: bindings.as_ref().map(Vec::as_slice),
                quota,
                no_budget_grace: self.cell.no_budget_grace,
                now,
            })
        };
        if !self.cell.quota {
            return Some(decide(Quota::Disabled));
        }
        let claimed = Claimed::look(&self.cell, sight, &key.namespace, &key.name)?;
        let refusal = self.cell.refusal(&key.namespace, &key.name);
        let refusal = refusal.as_ref().map(|(reason, message)| (*reason, message.as_str()));
        let away = claimed.trouble(sight);
        Some(claimed.observe(&self.cell, |seen| {
            let quota = seen.map_or(Quota::Unknown(None), |seen| {
                claim::quota(seen, away.as_deref(), refusal)
            });
            decide(quota)
        }))
    }

    fn wake(&self, world: &World, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | kind::NETWORK_BINDING | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.keys(world, plane)
            }
            (Plane::Cell, kind::INSTANCE) => events::key(plane, change),
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => events::address(change)
                .map(|(namespace, _)| within(world, namespace))
                .unwrap_or_default(),
            (Plane::Cell, kind::NETWORK_BINDING) => events::both(change)
                .filter_map(|binding| deployment::owner(binding))
                .flat_map(|owner| of_deployment(world, &owner))
                .collect(),
            (Plane::Cell, NAMESPACE) => events::address(change)
                .map(|(_, name)| within(world, name))
                .unwrap_or_default(),
            (Plane::Project(id), kind::RESOURCE_CLAIM) => match change {
                Change::Listed | Change::Lost | Change::Cleared => self.of_project(world, id),
                _ => events::both(change)
                    .flat_map(|claim| instances_of(&self.cell, world, id, claim))
                    .map(|(namespace, name)| Key::new(&Plane::Cell, &namespace, &name))
                    .collect(),
            },
            _ => Vec::new(),
        }
    }

    fn keys(&self, world: &World, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Cell => events::keys_of(world, plane, kind::INSTANCE),
            _ => Vec::new(),
        }
    }
}

impl Instance {
    fn of_project(&self, world: &World, id: &str) -> Vec<Key> {
        let all = events::stored(world, &Plane::Cell, kind::INSTANCE, None);
        let is_of = |one: &&Arc<Object>| self.cell.project(world, one.namespace()).as_deref() == Some(id);
        all.iter()
            .filter(is_of)
            .map(|one| Key::new(&Plane::Cell, one.namespace(), one.name()))
            .collect()
    }
}

fn within(world: &World, namespace: &str) -> Vec<Key> {
    let all = events::stored(world, &Plane::Cell, kind::INSTANCE, Some(namespace));
    all.iter()
        .map(|one| Key::new(&Plane::Cell, namespace, one.name()))
        .collect()
}

fn of_deployment(world: &World, deployment: &Key) -> Vec<Key> {
    let all = events::stored(world, &Plane::Cell, kind::INSTANCE, Some(&deployment.namespace));
    all.iter()
        .filter(|one| deployment::owner(one).as_ref() == Some(deployment))
        .map(|one| Key::new(&Plane::Cell, one.namespace(), one.name()))
        .collect()
}
