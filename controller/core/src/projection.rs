//! `projection`: hub copies of Instances are shown in the project.
//!
//! - Whose a copy is, is said by the labels of its hub Namespace, and only the *current* one is shown.
//! - Only projections that carry our marker, or are owned by the same WorkloadDeployment, are written; only marked ones
//!   are deleted.
//! - A projection always has an owner: the WorkloadDeployment of the project.
//! - A cell says what it runs, not how much a project is to keep: a copy that names its source is shown only under the name
//!   of a slot, a slot that is not asked for is not shown again, and of labels only those that cells set go along.
//!
//! The project's Instances are watched as metadata only. The runtime remembers the resourceVersion that it last wrote or
//! compared, and gives a projection read live when that moved.
//!
//! Why: `docs/decisions/15-projections.md` and `docs/decisions/12-reasons-where-users-look.md`.

use std::collections::BTreeMap;

use popcell_api::conditions as types;
use popcell_api::{events, kind, labels};
use serde_json::{Value, json};

use crate::conditions;
use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, Event, Note, Plan, Plane, Proof, Severity, Target};
use crate::slots;
use crate::spec_echoes::ExplainSpec;
use crate::workload::owner;

#[cfg(test)]
mod tests;

/// Reason of the event when a projection that was deleted by hand is made again.
pub const PROJECTION_RESTORED: &str = "ProjectionRestored";
/// Labels of a copy that are shown.
const SHOWN: [&str; 11] = [
    labels::MANAGED_BY,
    labels::SOURCE_CLUSTER,
    labels::UPSTREAM_CLUSTER_NAME,
    labels::UPSTREAM_NAMESPACE,
    labels::WORKLOAD_UID,
    labels::WORKLOAD_NAME,
    labels::PLACEMENT_NAME,
    labels::INSTANCE_CITY_CODE,
    labels::WORKLOAD_DEPLOYMENT_UID,
    labels::WORKLOAD_DEPLOYMENT_NAME,
    labels::INSTANCE_INDEX,
];
const HOW_TO_RESTART: &str = "An Instance in the project only shows what runs in its city: deleting it restarts nothing. \
     To restart, set annotation compute.datumapis.com/restartedAt in the template of the Workload";

/// What reconciles of one project namespace look at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The project.
    pub project: Project<'a>,
    /// The project's Namespace; `Known(None)` = NotFound.
    pub namespace: Observed<Option<&'a Object>>,
    /// The hub Namespace that the copies are in.
    pub hub_namespace: &'a Object,
    /// All WorkloadDeployments of the project's namespace.
    pub deployments: Observed<&'a [&'a Object]>,
    /// All Karmada Clusters.
    pub clusters: Observed<&'a [&'a Object]>,
    /// What the project's server made of earlier writes.
    pub spec_echoes: &'a dyn ExplainSpec,
}

/// Whether a copy is shown.
enum ProjectionDecision<'a> {
    Shown { owner: &'a Object, namespace: &'a Object },
    Dropped(&'static str),
    Unknown,
}

/// Shows one copy. `carried` is the hub's WorkloadDeployment of the name that the copy is labelled with; `projection` is the
/// project's Instance of the copy's name, read live; `removed` is the uid of one that was deleted without our doing, and of
/// which nothing has been said yet.
pub fn show(
    seen: &Observation<'_>,
    copy: &Object,
    carried: Observed<Option<&Object>>,
    projection: Option<&Object>,
    removed: Option<&str>,
) -> Plan {
    let plane = Plane::Project(seen.project.id.to_owned());
    if let Some(excess) = copy.excess() {
        return Plan::exceeded(Target::of(&Plane::Hub, kind::INSTANCE, copy), excess);
    }
    let (owner, namespace) = match judge(seen, copy) {
        ProjectionDecision::Shown { owner, namespace } => (owner, namespace),
        ProjectionDecision::Dropped(why) => return Plan::dropped(why),
        ProjectionDecision::Unknown => return Plan::noted(Note::Unknown(plane)),
    };
    let target = Target::namespaced(&plane, kind::INSTANCE, namespace.name(), copy.name());
    let mut plan = match projection {
        None if carried == Observed::Unknown => return Plan::noted(Note::Unknown(Plane::Hub)),
        None if exceeds(copy, carried) => return Plan::dropped("no WorkloadDeployment asks for its slot"),
        None => create(&plane, namespace.name(), copy, owner),
        Some(existing) if existing.deleting() => return Plan::noted(Note::WaitsFor(target)),
        Some(existing) if !existing.marked() && !owned_by(existing, owner) => {
            return Plan::noted(Note::Foreign(target));
        }
        Some(existing) => update(seen, &plane, copy, existing, owner),
    };
    // What was recreated before the deletion was known is reported too.
    if removed.is_some_and(|uid| projection.is_none_or(|existing| existing.uid() != uid)) {
        plan.events.push(restored(&plane, owner));
    }
    plan
}

/// Deletes projections that no copy stands behind. `copies` are all of the hub namespace, `projections` all Instances of
/// the project's namespace, or both those of one name; metadata is enough of these.
pub fn sweep(seen: &Observation<'_>, copies: Observed<&[&Object]>, projections: &[&Object]) -> Plan {
    let plane = Plane::Project(seen.project.id.to_owned());
    let (Observed::Known(copies), Observed::Known(Some(namespace))) = (copies, seen.namespace) else {
        return Plan::noted(Note::Unknown(Plane::Hub));
    };
    if !ours_and_current(seen, namespace) {
        return Plan::dropped("the hub namespace is not the current one");
    }
    let copies: BTreeMap<&str, &Object> = copies.iter().map(|copy| (copy.name(), *copy)).collect();
    let mut plan = Plan::independent();
    for projection in projections.iter().filter(|one| one.marked() && !one.deleting()) {
        let copy = copies.get(projection.name()).copied();
        let source = Target::namespaced(
            &Plane::Hub,
            kind::INSTANCE,
            seen.hub_namespace.name(),
            projection.name(),
        );
        let proof = match copy {
            None => Proof::Gone { source, uid: None },
            Some(copy) if copy.deleting() => Proof::Gone {
                source,
                uid: Some(copy.uid().to_owned()),
            },
            // The live copy is the one that was judged: its source does not serve the city, or it has no name of a slot. One whose
            // Cluster is absent may come back, and until its copies are released what it last said stays.
            Some(copy) if is_false(seen, copy) && is_joined(seen, copy) => Proof::Lives {
                source,
                uid: copy.uid().to_owned(),
            },
            Some(_) => continue,
        };
        let guard = match copy {
            Some(copy) if !copy.deleting() => DeletionGuard::Applies,
            _ => guarded(seen, &plane, projection),
        };
        let delete = Action::delete(&plane, kind::INSTANCE, projection, vec![proof], guard);
        plan.actions.push(delete);
    }
    plan
}

/// A user did it where the project's WorkloadDeployment is gone, or asks for fewer. Otherwise the hub has lost copies.
fn guarded(seen: &Observation<'_>, plane: &Plane, projection: &Object) -> DeletionGuard {
    let Observed::Known(deployments) = seen.deployments else {
        return DeletionGuard::Applies;
    };
    let owner = projection.owner_of(kind::WORKLOAD_DEPLOYMENT);
    let name = owner
        .map(|one| one.name.as_str())
        .or_else(|| projection.label(labels::WORKLOAD_DEPLOYMENT_NAME));
    let Some(name) = name else {
        return DeletionGuard::Applies;
    };
    let source = Target::namespaced(plane, kind::WORKLOAD_DEPLOYMENT, projection.namespace(), name);
    let proof = match deployments.iter().find(|one| one.name() == name && !one.deleting()) {
        Some(living) => match slots::ordinal_of(name, projection.name()) {
            Some(ordinal) if ordinal >= slots::most(living) => Proof::Lives {
                source,
                uid: living.uid().to_owned(),
            },
            _ => return DeletionGuard::Applies,
        },
        None => Proof::Gone {
            source,
            uid: owner.map(|one| one.uid.clone()),
        },
    };
    DeletionGuard::Unless(vec![proof])
}

fn judge<'a>(seen: &Observation<'a>, copy: &Object) -> ProjectionDecision<'a> {
    if seen.project.id.is_empty() {
        return ProjectionDecision::Dropped("no project");
    }
    let namespace = match seen.namespace {
        Observed::Known(Some(namespace)) if !namespace.deleting() => namespace,
        Observed::Known(_) => return ProjectionDecision::Dropped("the namespace is gone or going"),
        Observed::Unknown => return ProjectionDecision::Unknown,
    };
    if !ours_and_current(seen, namespace) {
        return ProjectionDecision::Dropped("the hub namespace is not the current one");
    }
    if copy.deleting() {
        return ProjectionDecision::Dropped("the copy is going");
    }
    let (Observed::Known(deployments), Observed::Known(_)) = (seen.deployments, seen.clusters) else {
        return ProjectionDecision::Unknown;
    };
    match owner_of(copy, deployments) {
        None => ProjectionDecision::Dropped("its WorkloadDeployment is not there"),
        Some(_) if serves_another_city(seen, copy) => ProjectionDecision::Dropped("its source does not serve the city"),
        Some(owner) if !is_slot(copy, owner) => {
            ProjectionDecision::Dropped("its name is no slot of its WorkloadDeployment")
        }
        Some(owner) => ProjectionDecision::Shown { owner, namespace },
    }
}

fn ours_and_current(seen: &Observation<'_>, namespace: &Object) -> bool {
    identity::belongs(seen.hub_namespace, seen.project, namespace.name())
        && identity::is_current(seen.hub_namespace, Some(namespace))
}

/// By name, which is the same on every plane; the uid in the copy's label is that of the cell's WorkloadDeployment.
fn owner_of<'a>(copy: &Object, deployments: &[&'a Object]) -> Option<&'a Object> {
    let name = copy.label(labels::WORKLOAD_DEPLOYMENT_NAME)?;
    deployments.iter().copied().find(|one| one.name() == name)
}

/// Whether a copy has the name of a slot that its WorkloadDeployment can have. One that names no source is upstream's, or was
/// written by hand, under any name: a cell may not write one.
fn is_slot(copy: &Object, owner: &Object) -> bool {
    let ordinal = slots::ordinal_of(owner.name(), copy.name());
    copy.label(labels::SOURCE_CLUSTER).is_none() || ordinal.is_some_and(|ordinal| ordinal < slots::MOST)
}

/// Whether its city is asked for fewer slots than a copy stands for, whatever an autoscaler there asks for. What was shown
/// before stays until its copy goes: it runs until it has stopped. Others are being deleted, or have no owner.
fn exceeds(copy: &Object, carried: Observed<Option<&Object>>) -> bool {
    let carried = carried.known().flatten();
    let slot = slots::deployment_of(copy.name()).and_then(|name| slots::ordinal_of(name, copy.name()));
    copy.label(labels::SOURCE_CLUSTER).is_some() && slot >= Some(carried.map_or(0, slots::most))
}

/// Known not to be what runs in the city of its WorkloadDeployment.
fn is_false(seen: &Observation<'_>, copy: &Object) -> bool {
    let owner = seen.deployments.known().and_then(|all| owner_of(copy, all));
    serves_another_city(seen, copy) || owner.is_some_and(|owner| !is_slot(copy, owner))
}

/// Known to come from a Cluster that does not carry the city of its WorkloadDeployment. A copy that names no source is
/// upstream's, or was written by hand: it does not.
fn serves_another_city(seen: &Observation<'_>, copy: &Object) -> bool {
    let (Some(source), Observed::Known(deployments), Observed::Known(clusters)) =
        (copy.label(labels::SOURCE_CLUSTER), seen.deployments, seen.clusters)
    else {
        return false;
    };
    let Some(owner) = owner_of(copy, deployments) else {
        return false;
    };
    let city = owner.text("/spec/cityCode");
    !clusters
        .iter()
        .any(|cluster| cluster.name() == source && city.is_some() && cluster.label(labels::CITY_CODE) == city)
}

/// Whether the Cluster of a copy's source is there.
fn is_joined(seen: &Observation<'_>, copy: &Object) -> bool {
    let source = copy.label(labels::SOURCE_CLUSTER);
    let clusters = seen.clusters.known().unwrap_or_default();
    clusters.iter().any(|cluster| Some(cluster.name()) == source)
}

fn owned_by(projection: &Object, owner: &Object) -> bool {
    let mut owners = projection.owners().iter();
    owners.any(|one| one.uid == owner.uid() && one.kind == kind::WORKLOAD_DEPLOYMENT.kind)
}

/// Labels that cells set, as far as a copy has them, and our marker. Whoever writes copies chooses no others, nor their number:
/// a project keeps them in its own store.
fn shown_labels(copy: &Object) -> BTreeMap<String, String> {
    let found = SHOWN.iter().filter_map(|key| Some((*key, copy.label(key)?)));
    let marker = (labels::MANAGED_BY, labels::MANAGED_BY_POPCELL);
    let shown = found.chain([marker]);
    shown.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn restored(plane: &Plane, deployment: &Object) -> Event {
    let kind = kind::WORKLOAD_DEPLOYMENT;
    Event {
        severity: Severity::Normal,
        ..Event::warning(plane, kind, deployment, PROJECTION_RESTORED, HOW_TO_RESTART)
    }
}

fn create(plane: &Plane, namespace: &str, copy: &Object, deployment: &Object) -> Plan {
    let mut object = Object::new(copy.name(), &kind::INSTANCE.resource())
        .within(namespace)
        .data(json!({ "spec": copy.at("/spec").cloned().unwrap_or_else(|| json!({})) }));
    object.metadata.labels = Some(shown_labels(copy));
    object.metadata.owner_references = Some(vec![owner(kind::WORKLOAD_DEPLOYMENT, deployment, false)]);
    Plan {
        actions: vec![Action::create(plane, kind::INSTANCE, object)],
        ..Plan::default()
    }
}

fn update(seen: &Observation<'_>, plane: &Plane, copy: &Object, existing: &Object, deployment: &Object) -> Plan {
    let mut plan = Plan::default();
    let mut edit = Edit::of(plane, kind::INSTANCE, existing);
    for (key, value) in shown_labels(copy) {
        edit = edit.label(&key, &value);
    }
    edit = edit.owner(&owner(kind::WORKLOAD_DEPLOYMENT, deployment, false));
    if let Some(spec) = copy.at("/spec") {
        edit = edit.spec_unless_echoed(spec, seen.spec_echoes, &mut plan.notes);
    }
    if let Some(action) = edit.action() {
        // Its status speaks of a generation: that is known once the spec is stored, so the next reconcile writes it.
        plan.actions.push(action);
        return plan;
    }
    if let Some(status) = conditions::carried(copy, existing) {
        plan.events = warnings(plane, existing, &status);
        plan.status = Edit::status(plane, kind::INSTANCE, existing, status);
    }
    plan
}

/// Warnings that the cell raises too, repeated where the user looks.
fn warnings(plane: &Plane, existing: &Object, status: &Value) -> Vec<Event> {
    let watched: [(&str, &[&str]); 2] = [
        (types::READY, &events::STUCK),
        (types::QUOTA_GRANTED, &events::QUOTA_FAILURES),
    ];
    let old = existing.at("/status");
    watched
        .iter()
        .filter_map(|(type_, named)| {
            let condition = conditions::find(status, type_)?;
            let reason = conditions::text(condition, "reason");
            let before = old
                .and_then(|old| conditions::find(old, type_))
                .map(|old| conditions::text(old, "reason"));
            let reported = named.contains(&reason) && before != Some(reason);
            reported.then(|| {
                Event::warning(
                    plane,
                    kind::INSTANCE,
                    existing,
                    reason,
                    conditions::text(condition, "message"),
                )
            })
        })
        .collect()
}
