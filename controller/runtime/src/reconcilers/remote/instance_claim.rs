//! What a reconcile over one claim looks at.

use std::sync::Arc;

use popcell_api::conditions::reasons;
use popcell_api::kind;
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Note, Plan, Plane, Target};
use popcell_core::remote::claim::{self, Observation, ProjectNamespace};

use crate::apply::ApplyError;
use crate::cell::Cell;
use crate::context::Context;
use crate::error::chain;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Snapshot, refs};
use crate::reconcilers::{events, owner};

/// What was found of one name.
pub(in crate::reconcilers) struct Claimed {
    namespace: String,
    name: String,
    cell_namespace: Option<Arc<Object>>,
    instance: Option<Arc<Object>>,
    /// The one in which the name stands for a slot.
    slot: Option<Arc<Object>>,
    project: Option<String>,
    /// The namespace in the project that the claim belongs in.
    project_namespace: Option<String>,
    claims: Observed<Vec<Arc<Object>>>,
    record: Option<Arc<Object>>,
}

impl Claimed {
    /// Looks at the cell, and at the project that the cell namespace is of. `None` while the cell is unknown.
    pub(in crate::reconcilers) fn look(
        cell: &Cell,
        snapshot: &Snapshot<'_>,
        namespace: &str,
        name: &str,
    ) -> Option<Self> {
        let plane = &Plane::Cell;
        let cell_namespace = snapshot.get(plane, NAMESPACE, "", namespace).known()?;
        let instance = snapshot.get(plane, kind::INSTANCE, namespace, name).known()?;
        let slot = owner::of_slot(snapshot, namespace, name).known()?;
        let project = cell.project_namespace(namespace, cell_namespace.as_deref()).project();
        let project = project.map(str::to_owned);
        let record = snapshot.read_live(plane, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
        let found = Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            cell_namespace,
            instance,
            slot,
            project: None,
            project_namespace: None,
            claims: Observed::Unknown,
            record: record.flatten(),
        };
        Some(match project {
            Some(project) => found.in_project(cell, snapshot, &project),
            None => found,
        })
    }

    /// The same with claims of this project.
    pub(super) fn in_project(mut self, cell: &Cell, snapshot: &Snapshot<'_>, project: &str) -> Self {
        let plane = Plane::Project(project.to_owned());
        let name = claim::name(&self.name);
        self.project_namespace = match cell.project_namespace(&self.namespace, self.cell_namespace.as_deref()) {
            ProjectNamespace::In { project: of, namespace } if of == project => Some(namespace.to_owned()),
            _ => None,
        };
        // One that cannot be read holds the name, whatever it grants.
        let at_home = self
            .project_namespace
            .as_deref()
            .map(|project_namespace| snapshot.get(&plane, kind::RESOURCE_CLAIM, project_namespace, &name));
        self.claims = match at_home {
            Some(Observed::Unknown) => Observed::Unknown,
            _ => snapshot.named(&plane, kind::RESOURCE_CLAIM, &name),
        };
        self.project = Some(project.to_owned());
        self
    }

    /// Why nothing is known of the claim, for people: the project's plane is unreachable, or the claim cannot be read.
    pub(in crate::reconcilers) fn trouble(&self, snapshot: &Snapshot<'_>) -> Option<String> {
        let plane = Plane::Project(self.project.clone()?);
        let store = snapshot.context.store(&plane, kind::RESOURCE_CLAIM)?;
        store.trouble().or_else(|| {
            let (project_namespace, name) = (self.project_namespace.as_deref()?, claim::name(&self.name));
            let why = store.why_unreadable(project_namespace, &name)?;
            Some(format!(
                "ResourceClaim {project_namespace}/{name} is there and cannot be read: {why}"
            ))
        })
    }

    /// As decisions take it; without it while this cell does not know who it is.
    pub(in crate::reconcilers) fn observe<R>(
        &self,
        cell: &Cell,
        view: impl FnOnce(Option<&Observation<'_>>) -> R,
    ) -> R {
        let Some(source) = cell.source() else { return view(None) };
        let claims = self.claims.as_ref().map(|all| refs(all));
        view(Some(&Observation {
            identity: &cell.identity_cache.identity(),
            source,
            project: self.project.as_deref().unwrap_or_default(),
            namespace: &self.namespace,
            name: &self.name,
            cell_namespace: self.cell_namespace.as_deref(),
            single: cell.single.as_deref(),
            instance: self.instance.as_deref(),
            deployments: &Vec::from_iter(self.slot.as_deref()),
            claims: claims.as_ref().map(Vec::as_slice),
            record: self.record.as_deref(),
            program_namespace: &cell.namespace,
        }))
    }
}

/// Cell namespace and name of the Instances that a claim may be for. Without the label that says so, it is for the one of
/// its name in the cell namespace that is the claim's in its project: that one's reconcile sees whether it is ours, and
/// stamps it again.
pub(in crate::reconcilers) fn instances_of(
    cell: &Cell,
    context: &Context,
    project: &str,
    claim: &Object,
) -> Vec<(String, String)> {
    if let Some((namespace, name)) = claim::instance_of(claim) {
        return vec![(namespace.to_owned(), name.to_owned())];
    }
    let Some(name) = claim::instance_name(claim) else {
        return Vec::new();
    };
    let project_namespace = ProjectNamespace::In {
        project,
        namespace: claim.namespace(),
    };
    let mut found = Vec::new();
    if cell.project_namespace(claim.namespace(), None) == project_namespace {
        found.push(claim.namespace().to_owned());
    }
    let namespaces = events::stored(context, &Plane::Cell, NAMESPACE, None);
    let ours = namespaces
        .iter()
        .filter(|one| cell.project_namespace(one.name(), Some(one)) == project_namespace);
    found.extend(ours.map(|one| one.name().to_owned()));
    found.dedup();
    found
        .into_iter()
        .map(|namespace| (namespace, name.to_owned()))
        .collect()
}

/// Before a claim is made its project must be written down: reads where, and whether it may still be made.
pub(super) async fn prepare(cell: &Cell, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
    let snapshot = Snapshot::new(context, live);
    let instance = snapshot.get(&Plane::Cell, kind::INSTANCE, &key.namespace, &key.name);
    let name = claim::name(&key.name);
    let claims = snapshot.named(&key.plane, kind::RESOURCE_CLAIM, &name);
    let (Observed::Known(Some(_)), Observed::Known(claims)) = (instance, claims) else {
        return Ok(());
    };
    if !claims.is_empty() {
        return Ok(());
    }
    // Many may wait for a project that takes none: what they would read first costs the cell.
    if let Some(project_namespace) = project_namespace_of(cell, &snapshot, key) {
        // One that cannot be read holds the name: none is made.
        if snapshot.get(&key.plane, kind::RESOURCE_CLAIM, &project_namespace, &name) == Observed::Unknown {
            return Ok(());
        }
        context.applier.may_create(&Target::namespaced(
            &key.plane,
            kind::RESOURCE_CLAIM,
            &project_namespace,
            &name,
        ))?;
    }
    cell.identity_cache.confirm(cell, &context.applier).await;
    let target = Target::namespaced(&Plane::Cell, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
    let Plane::Project(project) = &key.plane else {
        return Ok(());
    };
    let known = cell.record_with(project);
    if known.is_some() {
        live.insert(&target, known);
        return Ok(());
    }
    let read = context.applier.read(&target).await?.map(Arc::new);
    cell.keep_record(read.clone());
    live.insert(&target, read);
    Ok(())
}

/// The namespace of claims in the project of a key, as far as it is known.
fn project_namespace_of(cell: &Cell, snapshot: &Snapshot<'_>, key: &Key) -> Option<String> {
    let namespace = snapshot.get(&Plane::Cell, NAMESPACE, "", &key.namespace).known()?;
    match cell.project_namespace(&key.namespace, namespace.as_deref()) {
        ProjectNamespace::In { namespace, .. } => Some(namespace.to_owned()),
        ProjectNamespace::None | ProjectNamespace::Bad(_) => None,
    }
}

/// What an Instance is told of a claim that was not taken, or that was not tried because others were not.
pub(super) fn refusal(error: &ApplyError) -> Option<(&'static str, String)> {
    let failed = match error {
        ApplyError::Failed(failed) | ApplyError::CircuitOpen(failed, _) => failed,
        ApplyError::Unreachable(Plane::Project(_), _) => {
            return Some((reasons::QUOTA_BACKEND_UNAVAILABLE, chain(error)));
        }
        _ => return None,
    };
    if failed.target.kind != kind::RESOURCE_CLAIM {
        return None;
    }
    let namespace = failed.target.namespace.as_deref().unwrap_or_default();
    let reason = claim::refusal(failed.refusal.code(), failed.refusal.misses_namespace(namespace));
    let reported = failed.reported();
    // One that was not tried says so.
    let reported = if matches!(error, ApplyError::CircuitOpen(..)) {
        format!("not retried yet: {reported}")
    } else {
        reported
    };
    Some((reason, reported))
}

/// The claim of another owner that holds the name of ours.
pub(super) fn held(plan: &Plan) -> Option<&Target> {
    plan.notes.iter().find_map(|note| match note {
        Note::Foreign(target) if target.kind == kind::RESOURCE_CLAIM => Some(target),
        _ => None,
    })
}

/// Who made it, as far as it was seen.
pub(super) fn maker(plan: &Plan) -> Option<&str> {
    plan.notes.iter().find_map(|note| match note {
        Note::Maker(maker) => Some(maker.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::apply::{Failed, Refusal, ServerMessage};

    fn failed(kind: kind::Kind, code: u16) -> Box<Failed> {
        let message: ServerMessage = "no".to_owned().into();
        Box::new(Failed {
            target: Target::namespaced(&Plane::Project("p".to_owned()), kind, "n", "instance-a"),
            verb: "create",
            refusal: if code == 429 {
                Refusal::Busy {
                    code,
                    message,
                    retry_after: None,
                }
            } else {
                Refusal::Refused { code, message }
            },
        })
    }

    #[test]
    fn a_claim_that_was_not_tried_has_a_reason_too() {
        let (claim, soon) = (kind::RESOURCE_CLAIM, Duration::from_secs(1));
        let away = |plane| ApplyError::Unreachable(plane, soon);
        for (error, reason) in [
            (ApplyError::Failed(failed(claim, 403)), Some("QuotaMisconfigured")),
            (
                ApplyError::CircuitOpen(failed(claim, 403), soon),
                Some("QuotaMisconfigured"),
            ),
            (ApplyError::Failed(failed(claim, 429)), Some("QuotaBackendUnavailable")),
            (
                ApplyError::CircuitOpen(failed(claim, 401), soon),
                Some("QuotaBackendUnavailable"),
            ),
            (away(Plane::Project("p".to_owned())), Some("QuotaBackendUnavailable")),
            (away(Plane::Hub), None),
            (ApplyError::Failed(failed(kind::INSTANCE, 403)), None),
            (ApplyError::NotAllowed, None),
        ] {
            let reported = refusal(&error);
            assert_eq!(reported.as_ref().map(|(reason, _)| *reason), reason, "{error}");
            assert!(reported.is_none_or(|(_, message)| !message.is_empty()), "{error}");
        }
    }
}
