//! `reference-copy`: on the hub, a copy of each object that WorkloadDeployments there name ([`crate::references`]), for
//! Karmada to carry with them to their cells.
//!
//! - A copy is needed as long as a WorkloadDeployment of its hub namespace names it: those are what Karmada carries. The end
//!   of its source changes nothing: running workloads keep what they need.
//! - Ours is one with our marker. Another client's object at the name is never changed; the WorkloadDeployments that name it
//!   report it.
//! - A copy has the whole spec of its source and nothing else of it.
//! - It is deleted when a live list finds no WorkloadDeployment that names it.
//!
//! Why: `docs/decisions/30-networks-in-cells.md`.

use popcell_api::labels;
use serde_json::{Value, json};

use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Proof, Target};
use crate::references::Reference;
use crate::spec_echoes::ExplainSpec;

#[cfg(test)]
mod tests;

/// What a reconcile over one copy looks at. The hub is this reconciler's own plane and known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The project that the namespace names; `None` while it is not engaged.
    pub project: Option<Project<'a>>,
    /// The hub Namespace.
    pub namespace: &'a Object,
    /// What is copied.
    pub reference: &'a Reference,
    /// Whether a WorkloadDeployment of the hub namespace names it ([`crate::references::is_named`]).
    pub is_named: Observed<bool>,
    /// The object in the project.
    pub source: Observed<Option<&'a Object>>,
    /// The object of its kind and name in the hub namespace.
    pub copy: Option<&'a Object>,
    /// What the hub's server made of earlier writes.
    pub spec_echoes: &'a dyn ExplainSpec,
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let namespace = seen.namespace;
    if !namespace.marked() || namespace.deleting() {
        return Plan::dropped("the namespace is not ours, or going");
    }
    let mut plan = Plan::default();
    match (seen.is_named, seen.copy) {
        (Observed::Unknown, _) | (Observed::Known(false), None) => {}
        (_, Some(copy)) if copy.deleting() => plan.notes.push(Note::WaitsFor(target(seen, copy))),
        (Observed::Known(true), copy) => keep(seen, copy, &mut plan),
        (Observed::Known(false), Some(copy)) if copy.marked() => plan.actions.push(delete(seen, copy)),
        (Observed::Known(false), Some(_)) => {}
    }
    plan
}

/// The object of another client at the name of a copy, if `copy` is one.
pub fn is_foreign(copy: &Object) -> bool {
    !copy.marked() && !copy.deleting()
}

fn keep(seen: &Observation<'_>, copy: Option<&Object>, plan: &mut Plan) {
    if let Some(copy) = copy.filter(|copy| is_foreign(copy)) {
        plan.notes.push(Note::Foreign(target(seen, copy)));
        return;
    }
    let Some(project) = seen.project else { return };
    if !identity::is_of(seen.namespace, project) {
        // An earlier Project, or one of another installation: its source is not the one that was read.
        return;
    }
    let plane = Plane::Project(project.id.to_owned());
    let source = match seen.source {
        Observed::Known(Some(source)) if !source.deleting() => source,
        Observed::Known(_) => return,
        Observed::Unknown => {
            plan.notes.push(Note::Unknown(plane));
            return;
        }
    };
    let kind = seen.reference.kind;
    if let Some(excess) = source.excess() {
        plan.notes.push(Note::Excess(Target::of(&plane, kind, source), excess));
        return;
    }
    let spec = source.at("/spec").cloned().unwrap_or_else(|| json!({}));
    let action = match copy {
        None => Some(create(seen, &spec)),
        Some(copy) => Edit::of(&Plane::Hub, kind, copy)
            .spec_unless_echoed(&spec, seen.spec_echoes, &mut plan.notes)
            .action(),
    };
    plan.actions.extend(action);
}

fn create(seen: &Observation<'_>, spec: &Value) -> Action {
    let Reference { kind, name } = seen.reference;
    let mut object = Object::new(name, &kind.resource())
        .within(seen.namespace.name())
        .data(json!({ "spec": spec }));
    object.metadata.labels = Some([(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_POPCELL.to_owned())].into());
    Action::create(&Plane::Hub, *kind, object)
}

fn delete(seen: &Observation<'_>, copy: &Object) -> Action {
    let unnamed = Proof::NotNamed {
        namespace: seen.namespace.name().to_owned(),
        reference: seen.reference.clone(),
    };
    // Its last WorkloadDeployment is gone by then, which the guard has counted.
    Action::delete(
        &Plane::Hub,
        seen.reference.kind,
        copy,
        vec![unnamed],
        DeletionGuard::Exempt,
    )
}

fn target(seen: &Observation<'_>, copy: &Object) -> Target {
    Target::of(&Plane::Hub, seen.reference.kind, copy)
}
