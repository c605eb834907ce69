//! The copy of one Instance on the hub.
//!
//! - Whose the copy is, is said by the labels of the hub Namespace; without them none is made, and none is blanked. Cells
//!   never write Namespaces.
//! - A copy belongs to the hub WorkloadDeployment that its Instance came from, and nothing is written once that is gone.
//! - A copy of another source, an unmarked one of no agreeing identity, and one that is being deleted are not changed.
//!
//! Why: `docs/decisions/06-copies-and-claims-by-level.md` and `docs/decisions/13-generations.md`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::{API_VERSION, annotations, kind, labels};
use serde_json::{Value, json};

use super::cell::Identity;
use super::{BackingObject, Ownership, SourceMatch, done, foreign, guarded};
use crate::conditions::{self, Condition};
use crate::edit::Edit;
use crate::identity;
use crate::names::LABEL_LENGTH;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Note, Plan, Plane, Proof, Target};
use crate::removed_cells::Source;
use crate::reserved;
use crate::spec_echoes::ExplainSpec;

#[cfg(test)]
mod tests;

/// Labels that go from the Instance to its copy, with the field of its WorkloadDeployment that says the same where the
/// Instance, made by upstream, does not.
const CARRIED: [(&str, Option<&str>); 7] = [
    (labels::WORKLOAD_UID, Some("/spec/workloadRef/uid")),
    (labels::WORKLOAD_NAME, Some("/spec/workloadRef/name")),
    (labels::PLACEMENT_NAME, Some("/spec/placementName")),
    (labels::INSTANCE_CITY_CODE, Some("/spec/cityCode")),
    (labels::WORKLOAD_DEPLOYMENT_UID, None),
    (labels::WORKLOAD_DEPLOYMENT_NAME, None),
    (labels::INSTANCE_INDEX, None),
];

/// What a reconcile over one name in one cell namespace looks at. The cell is this reconciler's own plane and known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Whether we may write at all.
    pub identity: &'a Identity,
    /// Who we are.
    pub source: Source<'a>,
    /// Namespace, the same in cell and hub.
    pub namespace: &'a str,
    /// Name of the Instance.
    pub name: &'a str,
    /// The Instance.
    pub instance: Option<&'a Object>,
    /// WorkloadDeployments of the cell namespace: at least the one in which the name stands for a slot, and those whose uid
    /// Instance and copy are labelled with.
    pub deployments: &'a [&'a Object],
    /// The hub Namespace; `Known(None)` = it is not there.
    pub hub_namespace: Observed<Option<&'a Object>>,
    /// The hub's Instance of that name.
    pub copy: Observed<Option<&'a Object>>,
    /// Whether the WorkloadDeployment of [`hub_deployment`] is on the hub, with that uid; one that is being deleted still
    /// is. Not read where there is none.
    pub hub_deployment_lives: Observed<bool>,
    /// What the hub made of earlier writes.
    pub spec_echoes: &'a dyn ExplainSpec,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// Name and uid of the hub WorkloadDeployment that owns the copy of a name; `None` where the name belongs to no
/// WorkloadDeployment of the cell, or to one that Karmada has not brought.
pub fn hub_deployment<'a>(
    name: &str,
    instance: Option<&'a Object>,
    deployments: &[&'a Object],
) -> Option<(&'a str, &'a str)> {
    let deployment = match BackingObject::of(name, instance, deployments) {
        BackingObject::Instance(instance) => match belongs(instance, deployments) {
            Belongs::To(deployment) => deployment,
            Belongs::ToNone | Belongs::ToOneThatIsGone => return None,
        },
        BackingObject::Slot(deployment) => deployment,
        BackingObject::Nothing => return None,
    };
    let uid = deployment.annotation(annotations::RESOURCE_TEMPLATE_UID)?;
    (!uid.is_empty()).then_some((deployment.name(), uid))
}

/// Whether anything in the cell stands behind a name: then a reconcile has to know the hub Namespace.
pub fn is_behind(name: &str, instance: Option<&Object>, deployments: &[&Object]) -> bool {
    !matches!(BackingObject::of(name, instance, deployments), BackingObject::Nothing)
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    if let Some(plan) = seen.identity.forbids() {
        return plan;
    }
    let Observed::Known(copy) = seen.copy else {
        return unknown();
    };
    let backing = BackingObject::of(seen.name, seen.instance, seen.deployments);
    let ownership = copy.map(|copy| ownership(seen, copy));
    match (copy, ownership, backing) {
        (_, _, BackingObject::Instance(instance)) if instance.excess().is_some() => {
            instance.excess().map_or_else(Plan::default, |excess| {
                Plan::exceeded(Target::of(&Plane::Cell, kind::INSTANCE, instance), excess)
            })
        }
        (None, _, BackingObject::Instance(instance)) => create(seen, instance),
        (Some(copy), _, BackingObject::Instance(_)) if copy.deleting() => Plan::noted(Note::WaitsFor(target(copy))),
        (Some(copy), Some(Ownership::Foreign), BackingObject::Instance(_)) => foreign(target(copy)),
        (Some(copy), _, BackingObject::Instance(instance)) => update(seen, instance, copy),
        (None, ..) | (Some(_), Some(Ownership::Foreign), _) => Plan::default(),
        (Some(copy), ..) if copy.deleting() => Plan::default(),
        // Only what is stamped is deleted: that is the next reconcile.
        (Some(copy), Some(Ownership::Agrees), BackingObject::Nothing) => done(stamped(seen, copy)),
        (Some(copy), _, BackingObject::Nothing) => delete(seen, copy),
        (Some(copy), _, BackingObject::Slot(_)) => hold(seen, copy),
    }
}

/// The owner an Instance was made for.
enum Belongs<'a> {
    ToNone,
    To(&'a Object),
    ToOneThatIsGone,
}

fn belongs<'a>(instance: &Object, deployments: &[&'a Object]) -> Belongs<'a> {
    let Some(uid) = instance.label(labels::WORKLOAD_DEPLOYMENT_UID) else {
        return Belongs::ToNone;
    };
    let found = deployments.iter().find(|one| one.uid() == uid);
    found.map_or(Belongs::ToOneThatIsGone, |found| Belongs::To(found))
}

/// By the stamps of the source; where one is missing, by the uid of a WorkloadDeployment, which is of this cell only.
fn ownership(seen: &Observation<'_>, copy: &Object) -> Ownership {
    let marker = copy.label(labels::MANAGED_BY);
    if marker.is_some_and(|marker| marker != labels::MANAGED_BY_POPCELL) {
        return Ownership::Foreign;
    }
    let ours = |uid: &str| seen.deployments.iter().any(|one| one.uid() == uid);
    match SourceMatch::on(copy, seen.source) {
        SourceMatch::Ours if marker.is_some() => Ownership::Ours,
        SourceMatch::Ours | SourceMatch::Partly { id: true, .. } => Ownership::Agrees,
        SourceMatch::Partly { .. } if copy.label(labels::WORKLOAD_DEPLOYMENT_UID).is_some_and(ours) => {
            Ownership::Agrees
        }
        SourceMatch::Another | SourceMatch::Partly { .. } => Ownership::Foreign,
    }
}

/// What stands in the way of a write; `None` where it may be sent.
fn withheld(seen: &Observation<'_>) -> Option<Plan> {
    let instances = seen.instance.map(|instance| belongs(instance, seen.deployments));
    if matches!(instances, Some(Belongs::ToOneThatIsGone)) {
        return Some(Plan::dropped("its WorkloadDeployment is not there"));
    }
    match hub_deployment(seen.name, seen.instance, seen.deployments).map(|_| seen.hub_deployment_lives) {
        None | Some(Observed::Known(true)) => {}
        Some(Observed::Known(false)) => return Some(Plan::dropped("its WorkloadDeployment on the hub is gone")),
        Some(Observed::Unknown) => return Some(unknown()),
    }
    match seen.hub_namespace {
        Observed::Unknown => Some(unknown()),
        Observed::Known(Some(namespace)) if !namespace.deleting() => None,
        Observed::Known(_) => Some(Plan::dropped("the hub namespace is gone or going")),
    }
}

fn create(seen: &Observation<'_>, instance: &Object) -> Plan {
    if let Some(plan) = withheld(seen) {
        return plan;
    }
    let says_whose = |namespace: &Object| identity::of_namespace(namespace).is_some();
    if !seen.hub_namespace.known().flatten().is_some_and(says_whose) {
        return Plan::dropped("the hub namespace lacks the labels upstream-cluster-name and upstream-namespace");
    }
    let mut object = Object::new(seen.name, &kind::INSTANCE.resource())
        .within(seen.namespace)
        .data(json!({ "spec": spec(instance).unwrap_or_else(|| json!({})) }));
    object.metadata.labels = Some(wanted_labels(seen, instance));
    object.metadata.annotations = Some([(annotations::SOURCE_UID.to_owned(), seen.source.id.to_owned())].into());
    object.metadata.owner_references = owner(seen).map(|owner| vec![owner]);
    done(Some(Action::create(&Plane::Hub, kind::INSTANCE, object)))
}

fn update(seen: &Observation<'_>, instance: &Object, copy: &Object) -> Plan {
    if let Some(plan) = withheld(seen) {
        return plan;
    }
    let mut plan = Plan::default();
    let mut edit = stamps(seen, copy);
    for (key, value) in &wanted_labels(seen, instance) {
        edit = edit.label(key, value);
    }
    if let Some(owner) = owner(seen) {
        edit = edit.owner(&owner);
    }
    if let Some(spec) = spec(instance) {
        edit = edit.spec_unless_echoed(&spec, seen.spec_echoes, &mut plan.notes);
    }
    if let Some(action) = edit.action() {
        // Its status speaks of a generation: that is known once the spec is stored, so the next reconcile writes it.
        plan.actions.push(action);
        return plan;
    }
    plan.status =
        conditions::carried(instance, copy).and_then(|status| Edit::status(&Plane::Hub, kind::INSTANCE, copy, status));
    plan
}

/// The spec as it leaves the cell.
fn spec(instance: &Object) -> Option<Value> {
    let mut spec = instance.at("/spec").cloned()?;
    reserved::strip_disks(&mut spec);
    Some(spec)
}

/// The slot has no Instance now: what is there stays, and is not ready.
fn hold(seen: &Observation<'_>, copy: &Object) -> Plan {
    if let Some(plan) = withheld(seen) {
        return plan;
    }
    if let Some(action) = stamped(seen, copy) {
        return done(Some(action));
    }
    let old = copy.at("/status");
    let ready = Condition::new(types::READY, false, reasons::PENDING, messages::INSTANCE_MADE_ANEW);
    let mut status = old.and_then(Value::as_object).cloned().unwrap_or_default();
    conditions::put_in(&mut status, ready.render(old, copy.generation(), seen.now));
    Plan {
        status: Edit::status(&Plane::Hub, kind::INSTANCE, copy, Value::Object(status)),
        ..Plan::default()
    }
}

fn delete(seen: &Observation<'_>, copy: &Object) -> Plan {
    let gone = Proof::Gone {
        source: Target::namespaced(&Plane::Cell, kind::INSTANCE, seen.namespace, seen.name),
        uid: None,
    };
    let owner = copy.owner_of(kind::WORKLOAD_DEPLOYMENT).map(|one| one.uid.as_str());
    let guard = guarded(
        (seen.namespace, seen.name),
        seen.deployments,
        seen.source,
        &Plane::Hub,
        owner,
    );
    let delete = Action::delete(&Plane::Hub, kind::INSTANCE, copy, vec![gone], guard);
    done(Some(delete))
}

/// Marker and source, and what keeps Karmada away.
fn stamps<'o>(seen: &Observation<'_>, copy: &'o Object) -> Edit<'o> {
    Edit::of(&Plane::Hub, kind::INSTANCE, copy)
        .label(labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)
        .label(labels::CLAIMED_BY, labels::CLAIMED_BY_POPCELL)
        .label(labels::SOURCE_CLUSTER, seen.source.name)
        .annotation(annotations::SOURCE_UID, Some(seen.source.id))
}

fn stamped(seen: &Observation<'_>, copy: &Object) -> Option<Action> {
    stamps(seen, copy).action()
}

/// Labels that are ours to set; an unknown one is not in it, and stays on the copy as it is.
fn wanted_labels(seen: &Observation<'_>, instance: &Object) -> BTreeMap<String, String> {
    let deployment = match belongs(instance, seen.deployments) {
        Belongs::To(deployment) => Some(deployment),
        Belongs::ToNone | Belongs::ToOneThatIsGone => None,
    };
    let mut wanted: BTreeMap<&str, &str> = [
        (labels::MANAGED_BY, labels::MANAGED_BY_POPCELL),
        (labels::CLAIMED_BY, labels::CLAIMED_BY_POPCELL),
        (labels::SOURCE_CLUSTER, seen.source.name),
    ]
    .into();
    if let Some(namespace) = seen.hub_namespace.known().flatten() {
        for key in [labels::UPSTREAM_CLUSTER_NAME, labels::UPSTREAM_NAMESPACE] {
            wanted.extend(namespace.label(key).map(|value| (key, value)));
        }
    }
    for (key, field) in CARRIED {
        let of_deployment = || match (deployment, field) {
            // One that is too long for a label would keep the whole copy away.
            (Some(deployment), Some(field)) => deployment.text(field).filter(|text| text.len() <= LABEL_LENGTH),
            (Some(deployment), None) if key == labels::WORKLOAD_DEPLOYMENT_NAME => Some(deployment.name()),
            _ => None,
        };
        wanted.extend(instance.label(key).or_else(of_deployment).map(|value| (key, value)));
    }
    wanted
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The hub's WorkloadDeployment has the name of the cell's, and the uid that Karmada noted there.
fn owner(seen: &Observation<'_>) -> Option<OwnerReference> {
    let (name, uid) = hub_deployment(seen.name, seen.instance, seen.deployments)?;
    Some(OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: kind::WORKLOAD_DEPLOYMENT.kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    })
}

fn target(copy: &Object) -> Target {
    Target::of(&Plane::Hub, kind::INSTANCE, copy)
}

fn unknown() -> Plan {
    Plan::noted(Note::Unknown(Plane::Hub))
}
