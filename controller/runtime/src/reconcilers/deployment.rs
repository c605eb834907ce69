//! `deployment`: see [`popcell_core::deployment`].

mod networks;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::deployment::{self, Networks};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Plan, Plane};
use popcell_core::slots;

use super::{events, owner};
use crate::pass::{Reconciler, Sight, refs};
use crate::planes::Change;
use crate::queue::{Key, Pace};
use crate::world::World;

/// Key: a WorkloadDeployment in the cell.
#[derive(Clone, Copy, Debug)]
pub struct Deployment {
    /// Whether Instances wait for networks.
    pub networking: bool,
}

impl Reconciler for Deployment {
    fn name(&self) -> &'static str {
        "deployment"
    }

    /// Every write on one of its Instances may wake it, and other writers of its status do.
    fn pace(&self) -> Option<Pace> {
        Some(Pace::OF_MANY_OBJECTS)
    }

    fn decide(&self, sight: &Sight<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let plane = &key.plane;
        let deployment = sight
            .get(plane, kind::WORKLOAD_DEPLOYMENT, &key.namespace, &key.name)
            .known()??;
        let instances = instances(sight, plane, &deployment).known()?;
        let networks = self.networking.then(|| networks::look(sight, &deployment));
        let [locations, bindings, contexts, claims, subnets] = match &networks {
            Some(networks) => networks.each_ref().map(|all| all.as_ref().map(|all| refs(all))),
            None => std::array::from_fn(|_| Observed::Unknown),
        };
        Some(deployment::decide(&deployment::Observation {
            deployment: &deployment,
            instances: &refs(&instances),
            networks: networks.as_ref().map(|_| Networks {
                locations: locations.as_ref().map(Vec::as_slice),
                bindings: bindings.as_ref().map(Vec::as_slice),
                contexts: contexts.as_ref().map(Vec::as_slice),
                claims: claims.as_ref().map(Vec::as_slice),
                subnets: subnets.as_ref().map(Vec::as_slice),
            }),
            rejected: &sight.world.rejections.of(self.name(), key),
            now,
        }))
    }

    fn wake(&self, world: &World, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        if *plane != Plane::Cell {
            return Vec::new();
        }
        match kind {
            // A kind that comes back with nothing in it tells of no object.
            kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE | kind::NETWORK_BINDING if events::is_listed(change) => {
                self.keys(world, plane)
            }
            kind::WORKLOAD_DEPLOYMENT => events::key(plane, change),
            kind::INSTANCE | kind::NETWORK_BINDING => {
                let mut woken: Vec<Key> = events::both(change).filter_map(|one| owner::of(one)).collect();
                // One that is nobody's, or another's, may have held the name of a slot.
                let (namespace, name) = events::address(change).unwrap_or_default();
                let slot = slots::deployment_of(name).filter(|_| kind == kind::INSTANCE);
                woken.extend(slot.map(|deployment| Key::new(plane, namespace, deployment)));
                woken.sort();
                woken.dedup();
                woken
            }
            _ => networks::waiting(world, kind, change),
        }
    }

    fn keys(&self, world: &World, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Cell => events::keys_of(world, plane, kind::WORKLOAD_DEPLOYMENT),
            _ => Vec::new(),
        }
    }
}

/// Instances that say they are of a WorkloadDeployment, and those at the names of its slots.
fn instances(sight: &Sight<'_>, plane: &Plane, deployment: &Object) -> Observed<Vec<Arc<Object>>> {
    let namespace = deployment.namespace();
    let of_it = sight.saying(plane, kind::INSTANCE, deployment.uid());
    let named = sight.starting(plane, kind::INSTANCE, namespace, &slots::prefix(deployment.name()));
    let (Observed::Known(of_it), Observed::Known(mut found)) = (of_it, named) else {
        return Observed::Unknown;
    };
    found.extend(of_it.into_iter().filter(|one| one.namespace() == namespace));
    found.sort_by(|one, other| one.name().cmp(other.name()));
    found.dedup_by(|one, other| one.name() == other.name());
    Observed::Known(found)
}
