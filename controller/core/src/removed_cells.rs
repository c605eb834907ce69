//! Cells as the hub knows them, and what is left of one that is gone.
//!
//! A source is (name of the Karmada Cluster, uid of the cell's kube-system). It is *gone* when its Cluster is absent or
//! has another id, or when `popcell cell remove` recorded it. Unreachable is not gone, and neither is a Cluster whose id
//! Karmada has not read yet. What was recorded is released at once. What is only absent may come back: it is noted, and
//! released after a grace ([`Absences`]), under the deletion guard.
//!
//! Why: `docs/decisions/08-cells-that-are-gone.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::{annotations, labels};

use crate::conditions;
use crate::edit;
use crate::identity;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Proof, Target};
use crate::remote::claim;

mod absence;

pub use absence::{Absences, CELL_GRACE, Graces};

/// How soon claims that were just deleted are looked for again: they are not watched here.
const DELETED: Duration = Duration::from_secs(1);
/// The same for those that another client's finalizer holds.
const HELD: Duration = Duration::from_secs(10);

/// Identity of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source<'a> {
    /// Name of the Karmada Cluster.
    pub name: &'a str,
    /// Uid of the cell's kube-system namespace.
    pub id: &'a str,
}

/// What the clean-up after one source looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The source.
    pub source: Source<'a>,
    /// All Karmada Clusters.
    pub clusters: Observed<&'a [&'a Object]>,
    /// Whether the record of removed cells has it.
    pub removed: bool,
    /// What is left of its grace, where it is only absent; `None` where that is not noted yet.
    pub left: Option<Duration>,
    /// ResourceClaims of the projects that the copies are for, with the project id.
    pub claims: &'a [(&'a str, &'a Object)],
    /// Names of claims there that cannot be read, so that their owner is unknown; empty where one says none.
    pub unreadable: &'a [&'a str],
    /// Instances in the hub that are to wait for these claims.
    pub copies: &'a [&'a Object],
}

/// The source that wrote a copy or claim; `None` where it does not say.
pub fn of(object: &Object) -> Option<Source<'_>> {
    Some(Source {
        name: object.label(labels::SOURCE_CLUSTER)?,
        id: object.annotation(annotations::SOURCE_UID)?,
    })
}

/// Whether a source is gone; `None` while that is unknown.
pub fn is_gone(source: Source<'_>, clusters: Observed<&[&Object]>, removed: bool) -> Option<bool> {
    if removed {
        return Some(true);
    }
    let clusters = clusters.known()?;
    let Some(cluster) = clusters.iter().find(|one| one.name() == source.name) else {
        return Some(true);
    };
    let id = cluster.text("/spec/id").unwrap_or_default();
    Some(!id.is_empty() && id != source.id)
}

/// Whether the record of removed cells has a source: `data` of the ConfigMap `popcell-removed-cells` on the hub has the key
/// [`record_key`], with the time of the removal.
pub fn is_removed(record: &Object, source: Source<'_>) -> bool {
    edit::data(Some(record)).is_some_and(|data| data.contains_key(&record_key(source)))
}

/// Sources in the record of removed cells.
pub fn removed(record: &Object) -> impl Iterator<Item = Source<'_>> {
    let data = edit::data(Some(record));
    data.into_iter().flatten().filter_map(|(key, _)| of_record_key(key))
}

fn of_record_key(key: &str) -> Option<Source<'_>> {
    let (name, id) = key.rsplit_once('_')?;
    Some(Source { name, id })
}

/// Key of a source in the record of removed cells. Names of Clusters have no `_`.
pub fn record_key(source: Source<'_>) -> String {
    format!("{}_{}", source.name, source.id)
}

/// Deletes what a source that is gone has left: claims first, since they hold a budget; copies once no claim is left.
pub fn clean(seen: &Observation<'_>) -> Plan {
    let mut plan = Plan::independent();
    match is_gone(seen.source, seen.clusters, seen.removed) {
        None => {
            plan.notes.push(Note::Unknown(Plane::Hub));
            return plan;
        }
        Some(false) => return plan,
        Some(true) => {}
    }
    let deletion_guard = match (seen.removed, seen.left) {
        (true, _) => DeletionGuard::Exempt,
        (false, Some(left)) if left.is_zero() => DeletionGuard::Applies,
        (false, Some(left)) => {
            plan.requeue_within(left);
            return plan;
        }
        (false, None) => return plan,
    };
    let proof = Proof::SourceGone {
        cluster: seen.source.name.to_owned(),
        id: seen.source.id.to_owned(),
    };
    let mut claims = 0_usize;
    for (project, claim) in seen.claims.iter().filter(|(_, claim)| of(claim) == Some(seen.source)) {
        claims += 1;
        let project = Plane::Project((*project).to_owned());
        if claim.deleting() {
            plan.requeue_within(HELD);
            let target = Target::of(&project, kind::RESOURCE_CLAIM, claim);
            plan.notes.push(Note::WaitsFor(target));
        } else {
            plan.requeue_within(DELETED);
            plan.actions.push(delete(
                &project,
                kind::RESOURCE_CLAIM,
                claim,
                &proof,
                deletion_guard.clone(),
            ));
        }
    }
    if claims > 0 {
        return plan;
    }
    // A copy whose claim may be one that cannot be read is kept: that claim may hold a budget still.
    let may_be_claimed = |copy: &Object| {
        let claim = claim::name(copy.name());
        seen.unreadable.iter().any(|name| name.is_empty() || *name == claim)
    };
    let ours =
        |copy: &&&Object| copy.marked() && !copy.deleting() && of(copy) == Some(seen.source) && !may_be_claimed(copy);
    for copy in seen.copies.iter().filter(ours) {
        plan.actions.push(delete(
            &Plane::Hub,
            kind::INSTANCE,
            copy,
            &proof,
            deletion_guard.clone(),
        ));
    }
    plan
}

/// What a look at the claims of one project sees.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// The project id.
    pub project: &'a str,
    /// ResourceClaims of cells in it.
    pub claims: &'a [&'a Object],
    /// All Karmada Clusters.
    pub clusters: Observed<&'a [&'a Object]>,
    /// Sources in the record of removed cells.
    pub removed: &'a BTreeSet<Source<'a>>,
    /// Hub Namespaces that the claims name.
    pub namespaces: &'a [&'a Object],
}

/// Deletes claims of sources that are gone, on the evidence of the claims themselves: their copies may have gone while the
/// project was not engaged.
///
/// A hub that was set up again knows no Cluster, and so does the hub of other cells. So a claim of a Cluster that is only
/// absent is deleted where this hub carried its namespace before it was made; any other is reported.
pub fn clean_claims(seen: &Claims<'_>, graces: &Graces<'_>) -> Plan {
    let mut plan = Plan::independent();
    let project = Plane::Project(seen.project.to_owned());
    for claim in seen.claims.iter().filter(|claim| !claim.deleting()) {
        let Some(source) = of(claim) else { continue };
        let removed = seen.removed.contains(&source);
        match is_gone(source, seen.clusters, removed) {
            None => plan.notes.push(Note::Unknown(Plane::Hub)),
            Some(false) => {}
            Some(true) if (removed || seen.carried(claim)) && !graces.is_misplaced(source) => {
                let proof = Proof::SourceGone {
                    cluster: source.name.to_owned(),
                    id: source.id.to_owned(),
                };
                let deletion_guard = if removed {
                    DeletionGuard::Exempt
                } else {
                    DeletionGuard::Applies
                };
                match graces.left(source).filter(|_| !removed) {
                    Some(left) if !left.is_zero() => plan.requeue_within(left),
                    None if !removed => {}
                    _ => plan
                        .actions
                        .push(delete(&project, kind::RESOURCE_CLAIM, claim, &proof, deletion_guard)),
                }
            }
            Some(true) => {
                let target = Target::of(&project, kind::RESOURCE_CLAIM, claim);
                plan.notes.push(Note::Orphan(target));
            }
        }
    }
    plan
}

impl<'a> Claims<'a> {
    /// Sources of claims that are to be released, but for the grace of their absence: these are to be noted.
    pub fn absent(&self) -> BTreeSet<Source<'a>> {
        let claims = self.claims.iter().filter(|claim| self.carried(claim));
        let sources = claims.filter_map(|claim| of(claim));
        sources
            .filter(|source| !self.removed.contains(source))
            .filter(|source| is_gone(*source, self.clusters, false) == Some(true))
            .collect()
    }

    /// Whether the hub carried the namespace that a claim was made for, for this project, before it was made.
    fn carried(&self, claim: &Object) -> bool {
        let Some(name) = claim.label(labels::INSTANCE_NAMESPACE) else {
            return false;
        };
        let found = self.namespaces.iter().find(|one| one.name() == name);
        found.is_some_and(|namespace| {
            let of_project = identity::of_namespace(namespace).is_some_and(|(project, _)| project == self.project);
            let (Some(first), Some(then)) = (namespace.created(), claim.created()) else {
                return false;
            };
            of_project && first <= then
        })
    }
}

fn delete(plane: &Plane, kind: Kind, object: &Object, proof: &Proof, deletion_guard: DeletionGuard) -> Action {
    Action::delete(plane, kind, object, vec![proof.clone()], deletion_guard)
}

/// Clusters that carry the same id: two names of one cell, which is joined twice, or a cell that was cloned with its etcd. By
/// id, the names.
pub fn twins<'a>(clusters: &[&'a Object]) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut by_id: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cluster in clusters.iter().filter(|one| !one.deleting()) {
        if let Some(id) = cluster.text("/spec/id").filter(|id| !id.is_empty()) {
            by_id.entry(id).or_default().push(cluster.name());
        }
    }
    by_id.retain(|_, names| names.len() > 1);
    by_id
}

/// Cities that more than one Cluster carries: each object goes to one of them, and the conflict is reported to operators.
pub fn crowded_cities<'a>(clusters: &[&'a Object]) -> BTreeSet<&'a str> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for city in clusters
        .iter()
        .filter(|cluster| !cluster.deleting())
        .filter_map(|cluster| cluster.label(labels::CITY_CODE))
    {
        *count.entry(city).or_default() += 1;
    }
    count
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(city, _)| city)
        .collect()
}

/// Since when a Cluster does not answer: what its cell last said is at least that old. `None` while it answers.
pub fn silent_since(cluster: &Object) -> Option<Timestamp> {
    let ready = conditions::of(cluster, "Ready")?;
    if conditions::text(ready, "status") == "True" {
        return None;
    }
    conditions::text(ready, "lastTransitionTime").parse().ok()
}

#[cfg(test)]
mod tests;
