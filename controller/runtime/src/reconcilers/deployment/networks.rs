//! What a WorkloadDeployment sees of networks, and which keys they enqueue. A cell has those of all its projects: a
//! reconcile takes what its own bindings lead to, and an event enqueues whose bindings lead to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use popcell_api::kind::{self, Kind};
use popcell_core::deployment::binding_prefix;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;

use super::owner_of;
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::Snapshot;
use crate::reconcilers::events;

const CELL: &Plane = &Plane::Cell;

type Seen = Observed<Vec<Arc<Object>>>;

/// All Locations, the bindings of a WorkloadDeployment, their contexts, and claims and subnets of the contexts' namespaces.
pub(super) fn look(snapshot: &Snapshot<'_>, deployment: &Object) -> [Seen; 5] {
    let prefix = binding_prefix(deployment.name());
    let bindings = snapshot.starting(CELL, kind::NETWORK_BINDING, deployment.namespace(), &prefix);
    let reported = bindings.as_ref().known().into_iter().flatten();
    let contexts: BTreeSet<_> = reported.filter_map(|one| context_of(one)).collect();
    let namespaces: BTreeSet<_> = contexts.iter().map(|(namespace, _)| *namespace).collect();
    let found = each(snapshot, kind::NETWORK_CONTEXT, &contexts, |(namespace, name)| {
        let found = snapshot.get(CELL, kind::NETWORK_CONTEXT, namespace, name);
        found.map(|found| found.into_iter().collect())
    });
    let within = |kind| {
        each(snapshot, kind, &namespaces, |namespace| {
            snapshot.in_namespace(CELL, kind, namespace)
        })
    };
    let (claims, subnets) = (within(kind::SUBNET_CLAIM), within(kind::SUBNET));
    drop((namespaces, contexts));
    [snapshot.all(CELL, kind::LOCATION), bindings, found, claims, subnets]
}

/// What is found of each place; unknown where the kind is.
fn each<P>(snapshot: &Snapshot<'_>, kind: Kind, places: &BTreeSet<P>, find: impl Fn(&P) -> Seen) -> Seen {
    if !snapshot.is_known(CELL, kind) {
        return Observed::Unknown;
    }
    let mut all = Vec::new();
    for place in places {
        let Observed::Known(found) = find(place) else {
            return Observed::Unknown;
        };
        all.extend(found);
    }
    Observed::Known(all)
}

/// Namespace and name of the context that a binding refers to.
fn context_of(binding: &Object) -> Option<(&str, &str)> {
    let text = |pointer| binding.text(pointer).filter(|text| !text.is_empty());
    Some((
        text("/status/networkContextRef/namespace")?,
        text("/status/networkContextRef/name")?,
    ))
}

/// WorkloadDeployments that an event of a part of a network concerns.
pub(super) fn waiting(context: &Context, kind: Kind, change: &Change) -> Vec<Key> {
    match kind {
        kind::LOCATION | kind::NETWORK_CONTEXT | kind::SUBNET_CLAIM | kind::SUBNET if events::is_listed(change) => {
            events::keys_of(context, CELL, kind::WORKLOAD_DEPLOYMENT)
        }
        // Few, and seldom: which one a city has is decided among all of them.
        kind::LOCATION if events::both(change).next().is_some() => {
            events::keys_of(context, CELL, kind::WORKLOAD_DEPLOYMENT)
        }
        kind::NETWORK_CONTEXT | kind::SUBNET_CLAIM | kind::SUBNET => {
            let contexts = events::both(change)
                .flat_map(|one| contexts(context, kind, one))
                .collect();
            bound_to(context, &contexts)
        }
        _ => Vec::new(),
    }
}

/// Namespace and name of the contexts that an object is, or is for.
fn contexts(context: &Context, kind: Kind, one: &Object) -> Vec<(String, String)> {
    let within = |name: &str| (one.namespace().to_owned(), name.to_owned());
    let claimed = |claim: &Object| claim.text("/spec/networkContext/name").map(within);
    match kind {
        kind::NETWORK_CONTEXT => vec![within(one.name())],
        kind::SUBNET_CLAIM => claimed(one).into_iter().collect(),
        _ => {
            let claims = events::stored(context, CELL, kind::SUBNET_CLAIM, Some(one.namespace()));
            let of_it = |claim: &&Arc<Object>| claim.text("/status/subnetRef/name") == Some(one.name());
            claims.iter().filter(of_it).filter_map(|claim| claimed(claim)).collect()
        }
    }
}

/// Those whose bindings refer to one of these contexts.
fn bound_to(context: &Context, contexts: &BTreeSet<(String, String)>) -> Vec<Key> {
    if contexts.is_empty() {
        return Vec::new();
    }
    let is_bound = |binding: &&Arc<Object>| {
        context_of(binding).is_some_and(|(namespace, name)| contexts.contains(&(namespace.to_owned(), name.to_owned())))
    };
    let bindings = events::stored(context, CELL, kind::NETWORK_BINDING, None);
    bindings
        .iter()
        .filter(is_bound)
        .filter_map(|one| owner_of(one))
        .collect()
}
