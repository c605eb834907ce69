//! `reference-copy`: see [`popcell_core::reference_copy`].

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations::PREVIOUS_REFERENCES;
use popcell_api::kind::{self, Kind};
use popcell_core::identity::{self, Project};
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{NAMESPACE, Plan, Plane};
use popcell_core::reference_copy;
use popcell_core::references::{self, CARRIED, Reference};

use super::{events, federation, hub_namespaces};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot};

/// Name of the reconciler.
pub(super) const REFERENCE_COPY_RECONCILER: &str = "reference-copy";

/// Key: a [`Reference`] in a hub namespace.
///
/// It is a reconciler of its own, not a part of the one that carries WorkloadDeployments: many share one copy, and a hub
/// that refuses it stops none of them.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceCopy;

impl Reconciler for ReferenceCopy {
    fn name(&self) -> &'static str {
        REFERENCE_COPY_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            match hub_namespaces::owner(context, &key.namespace) {
                Some((plane, _)) => context.read_server(live, &plane).await,
                None => Ok(()),
            }
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let (hub, reference) = (&key.plane, Reference::of_key(&key.name)?);
        let namespace = snapshot.get(hub, NAMESPACE, "", &key.namespace).known()??;
        let copy = snapshot.get(hub, reference.kind, &key.namespace, &reference.name);
        let copy = copy.known()?;
        let deployments = snapshot.in_namespace(hub, kind::WORKLOAD_DEPLOYMENT, &key.namespace);
        let deployments = deployments.known()?;
        let (id, within) = identity::of_namespace(&namespace)?;
        let plane = Plane::Project(id.to_owned());
        let source = snapshot.get(&plane, reference.kind, within, &reference.name);
        let decide = |project: Option<Project<'_>>| {
            reference_copy::decide(&reference_copy::Observation {
                project,
                namespace: &namespace,
                reference: &reference,
                is_named: references::is_named(deployments.iter().map(AsRef::as_ref), &reference),
                source: source.as_ref().map(Option::as_deref),
                copy: copy.as_deref(),
                spec_echoes: snapshot.context.applier.spec_echoes(),
            })
        };
        let engaged = snapshot.project(&plane, |project| decide(Some(project)));
        Some(engaged.unwrap_or_else(|| decide(None)))
    }

    /// WorkloadDeployments of the project that name it.
    fn shown_by(&self, context: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        federation::users_of_reference(context, &key.namespace, &key.name)
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, _) if events::is_listed(change) => self.keys(context, plane),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) => of_deployment(change),
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => {
                within(context, &hub_namespaces::named(change))
            }
            (Plane::Hub, kind) if is_carried(kind) && events::is_more_than_status(change) => {
                keys(kind, &hub_namespaces::around(change), change)
            }
            (Plane::Project(id), kind) if is_carried(kind) && events::is_listed(change) => {
                within(context, &context.hub_index.of_project(id))
            }
            (Plane::Project(id), kind) if is_carried(kind) && events::is_more_than_status(change) => {
                keys(kind, &hub_namespaces::of_object(context, id, change), change)
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => named_or_there(context, None),
            Plane::Project(_) | Plane::Cell | Plane::Discovery => Vec::new(),
        }
    }
}

fn is_carried(kind: Kind) -> bool {
    CARRIED.contains(&kind)
}

fn key(hub_namespace: &str, reference: &Reference) -> Key {
    Key::new(&Plane::Hub, hub_namespace, &reference.to_string())
}

/// The copy that an object of a project, or of the hub, is the source of, or is.
fn keys(kind: Kind, hub_namespaces: &[String], change: &Change) -> Vec<Key> {
    let Some((_, name)) = events::address(change) else {
        return Vec::new();
    };
    let name = name.to_owned();
    let reference = Reference { kind, name };
    hub_namespaces.iter().map(|within| key(within, &reference)).collect()
}

/// What a WorkloadDeployment of the hub names, or named before.
fn of_deployment(change: &Change) -> Vec<Key> {
    if let Change::Applied {
        before: Some(before),
        now,
    } = change
        && !events::comes_or_goes(change)
        && before.has_spec_text_of(now)
        && before.annotation(PREVIOUS_REFERENCES) == now.annotation(PREVIOUS_REFERENCES)
    {
        return Vec::new();
    }
    events::both(change).flat_map(named_by).collect()
}

fn named_by(deployment: &Arc<Object>) -> Vec<Key> {
    // What is decoded to look at one goes with this copy.
    let deployment = Object::clone(deployment);
    let named = references::needed_networks(&deployment);
    named.iter().map(|one| key(deployment.namespace(), one)).collect()
}

/// What is named in hub namespaces, or copied there.
fn within(context: &Context, hub_namespaces: &[String]) -> Vec<Key> {
    let each = hub_namespaces.iter();
    each.flat_map(|within| named_or_there(context, Some(within))).collect()
}

/// The same of one hub namespace, or of all.
fn named_or_there(context: &Context, hub_namespace: Option<&str>) -> Vec<Key> {
    let stored = |kind| events::stored(context, &Plane::Hub, kind, hub_namespace);
    let mut found: Vec<Key> = stored(kind::WORKLOAD_DEPLOYMENT).iter().flat_map(named_by).collect();
    for kind in CARRIED {
        let copies = stored(kind);
        let ours = copies.iter().filter(|one| one.marked());
        found.extend(ours.map(|one| {
            let name = one.name().to_owned();
            key(one.namespace(), &Reference { kind, name })
        }));
    }
    found.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    found.dedup();
    found
}
