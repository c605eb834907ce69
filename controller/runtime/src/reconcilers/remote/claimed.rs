//! What a pass over one claim looks at.

use std::sync::Arc;

use popcell_api::conditions::reasons;
use popcell_api::kind;
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Note, Plan, Plane, Target};
use popcell_core::remote::claim::{self, Home, Observation};

use crate::apply::ApplyError;
use crate::cell::Cell;
use crate::error::chain;
use crate::pass::{Live, Sight, refs};
use crate::queue::Key;
use crate::reconcilers::{events, owner};
use crate::world::World;

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
    home: Option<String>,
    claims: Observed<Vec<Arc<Object>>>,
    record: Option<Arc<Object>>,
}

impl Claimed {
    /// Looks at the cell, and at the project that the cell namespace is of. `None` while the cell is unknown.
    pub(in crate::reconcilers) fn look(cell: &Cell, sight: &Sight<'_>, namespace: &str, name: &str) -> Option<Self> {
        let plane = &Plane::Cell;
        let cell_namespace = sight.get(plane, NAMESPACE, "", namespace).known()?;
        let instance = sight.get(plane, kind::INSTANCE, namespace, name).known()?;
        let slot = owner::of_slot(sight, namespace, name).known()?;
        let project = cell.home(namespace, cell_namespace.as_deref()).project();
        let project = project.map(str::to_owned);
        let record = sight.read_live(plane, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
        let found = Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            cell_namespace,
            instance,
            slot,
            project: None,
            home: None,
            claims: Observed::Unknown,
            record: record.flatten(),
        };
        Some(match project {
            Some(project) => found.in_project(cell, sight, &project),
            None => found,
        })
    }

    /// The same with claims of this project.
    pub(super) fn in_project(mut self, cell: &Cell, sight: &Sight<'_>, project: &str) -> Self {
        let plane = Plane::Project(project.to_owned());
        let name = claim::name(&self.name);
        self.home = match cell.home(&self.namespace, self.cell_namespace.as_deref()) {
            Home::In { project: of, namespace } if of == project => Some(namespace.to_owned()),
            _ => None,
        };
        // One that cannot be read holds the name, whatever it grants.
        let at_home = self
            .home
            .as_deref()
            .map(|home| sight.get(&plane, kind::RESOURCE_CLAIM, home, &name));
        self.claims = match at_home {
            Some(Observed::Unknown) => Observed::Unknown,
            _ => sight.named(&plane, kind::RESOURCE_CLAIM, &name),
        };
        self.project = Some(project.to_owned());
        self
    }

    /// Why nothing is known of the claim, for people: the project's plane is away, or the claim cannot be read.
    pub(in crate::reconcilers) fn trouble(&self, sight: &Sight<'_>) -> Option<String> {
        let plane = Plane::Project(self.project.clone()?);
        let store = sight.world.store(&plane, kind::RESOURCE_CLAIM)?;
        store.trouble().or_else(|| {
            let (home, name) = (self.home.as_deref()?, claim::name(&self.name));
            let why = store.why_unreadable(home, &name)?;
            Some(format!(
                "ResourceClaim {home}/{name} is there and cannot be read: {why}"
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
            identity: &cell.facts.identity(),
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
/// its name in the cell namespace that is the claim's in its project: that one's pass sees whether it is ours, and stamps it
/// again.
pub(in crate::reconcilers) fn instances_of(
    cell: &Cell,
    world: &World,
    project: &str,
    claim: &Object,
) -> Vec<(String, String)> {
    if let Some((namespace, name)) = claim::instance_of(claim) {
        return vec![(namespace.to_owned(), name.to_owned())];
    }
    let Some(name) = claim::instance_name(claim) else {
        return Vec::new();
    };
    let home = Home::In {
        project,
        namespace: claim.namespace(),
    };
    let mut found = Vec::new();
    if cell.home(claim.namespace(), None) == home {
        found.push(claim.namespace().to_owned());
    }
    let namespaces = events::stored(world, &Plane::Cell, NAMESPACE, None);
    let ours = namespaces.iter().filter(|one| cell.home(one.name(), Some(one)) == home);
    found.extend(ours.map(|one| one.name().to_owned()));
    found.dedup();
    found
        .into_iter()
        .map(|namespace| (namespace, name.to_owned()))
        .collect()
}

/// Before a claim is made its project must be written down: reads where, and whether it may still be made.
pub(super) async fn prepare(cell: &Cell, world: &World, live: &mut Live, key: &Key) -> Result<(), ApplyError> {
    let sight = Sight::new(world, live);
    let instance = sight.get(&Plane::Cell, kind::INSTANCE, &key.namespace, &key.name);
    let name = claim::name(&key.name);
    let claims = sight.named(&key.plane, kind::RESOURCE_CLAIM, &name);
    let (Observed::Known(Some(_)), Observed::Known(claims)) = (instance, claims) else {
        return Ok(());
    };
    if !claims.is_empty() {
        return Ok(());
    }
    // Many may wait for a project that takes none: what they would read first costs the cell.
    if let Some(home) = home_of(cell, &sight, key) {
        // One that cannot be read holds the name: none is made.
        if sight.get(&key.plane, kind::RESOURCE_CLAIM, &home, &name) == Observed::Unknown {
            return Ok(());
        }
        world
            .applier
            .may_create(&Target::namespaced(&key.plane, kind::RESOURCE_CLAIM, &home, &name))?;
    }
    cell.facts.confirm(cell, &world.applier).await;
    let target = Target::namespaced(&Plane::Cell, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
    let Plane::Project(project) = &key.plane else {
        return Ok(());
    };
    let known = cell.record_with(project);
    if known.is_some() {
        live.insert(&target, known);
        return Ok(());
    }
    let read = world.applier.read(&target).await?.map(Arc::new);
    cell.keep_record(read.clone());
    live.insert(&target, read);
    Ok(())
}

/// The namespace of claims in the project of a key, as far as it is known.
fn home_of(cell: &Cell, sight: &Sight<'_>, key: &Key) -> Option<String> {
    let namespace = sight.get(&Plane::Cell, NAMESPACE, "", &key.namespace).known()?;
    match cell.home(&key.namespace, namespace.as_deref()) {
        Home::In { namespace, .. } => Some(namespace.to_owned()),
        Home::None | Home::Bad(_) => None,
    }
}

/// What an Instance is told of a claim that was not taken, or that was not tried because others were not.
pub(super) fn refusal(error: &ApplyError) -> Option<(&'static str, String)> {
    let failed = match error {
        ApplyError::Failed(failed) | ApplyError::Shut(failed, _) => failed,
        ApplyError::Away(Plane::Project(_), _) => {
            return Some((reasons::QUOTA_BACKEND_UNAVAILABLE, chain(error)));
        }
        _ => return None,
    };
    if failed.target.kind != kind::RESOURCE_CLAIM {
        return None;
    }
    let namespace = failed.target.namespace.as_deref().unwrap_or_default();
    let reason = claim::refusal(failed.refusal.code(), failed.refusal.misses_namespace(namespace));
    let told = failed.told();
    // One that was not tried says so.
    let told = if matches!(error, ApplyError::Shut(..)) {
        format!("not retried yet: {told}")
    } else {
        told
    };
    Some((reason, told))
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
    use crate::apply::{Failed, Refusal, Words};

    fn failed(kind: kind::Kind, code: u16) -> Box<Failed> {
        let message: Words = "no".to_owned().into();
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
        let away = |plane| ApplyError::Away(plane, soon);
        for (error, reason) in [
            (ApplyError::Failed(failed(claim, 403)), Some("QuotaMisconfigured")),
            (ApplyError::Shut(failed(claim, 403), soon), Some("QuotaMisconfigured")),
            (ApplyError::Failed(failed(claim, 429)), Some("QuotaBackendUnavailable")),
            (
                ApplyError::Shut(failed(claim, 401), soon),
                Some("QuotaBackendUnavailable"),
            ),
            (away(Plane::Project("p".to_owned())), Some("QuotaBackendUnavailable")),
            (away(Plane::Hub), None),
            (ApplyError::Failed(failed(kind::INSTANCE, 403)), None),
            (ApplyError::NotAllowed, None),
        ] {
            let told = refusal(&error);
            assert_eq!(told.as_ref().map(|(reason, _)| *reason), reason, "{error}");
            assert!(told.is_none_or(|(_, message)| !message.is_empty()), "{error}");
        }
    }
}
