//! `removed-cells`: what cells of one Karmada Cluster that are gone have left: copies on the hub, and before these their claims
//! in projects; see [`popcell_core::removed_cells::clean`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Note, Plan, Plane, Target};
use popcell_core::removed_cells::{self, Observation, Source};

use super::gone_sources::{
    GoneSources, SourceName, borrowed, may_be_gone, note_unreadable, owned, put_claims, removed, watch_record,
    with_absences,
};
use super::{events, hub_namespaces};
use crate::apply::{Difference, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Key: the name of a Karmada Cluster, whatever its id: all sources of that name that are gone.
#[derive(Debug)]
pub struct RemovedCells {
    /// Shared with the other reconcilers of removed cells.
    pub sources: Arc<GoneSources>,
}

impl Reconciler for RemovedCells {
    fn name(&self) -> &'static str {
        "removed-cells"
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            if sources_of_copies(&Snapshot::new(context, live), &key.name).is_empty() {
                return Ok(());
            }
            self.sources.read_records(context, live).await?;
            let gone = gone(&Snapshot::new(context, live), &key.name);
            read_claims_of(&self.sources, context, live, &gone).await;
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        clean(snapshot, &gone(snapshot, &key.name), now)
    }

    fn executed(&self, context: &Context, _: &Key, plan: &Plan, _: Done) {
        watch_record(context, plan);
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::CLUSTER | kind::INSTANCE) if events::is_listed(change) => self.keys(context, plane),
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => events::key(plane, change),
            (Plane::Hub, kind::INSTANCE) if events::comes_or_goes(change) => sources_of_copy(context, change),
            _ => Vec::new(),
        }
    }

    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        self.sources.count(snapshot, plane, kind)
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        if *plane != Plane::Hub {
            return Vec::new();
        }
        let copies = events::stored(context, plane, kind::INSTANCE, None);
        let sources = copies.iter().filter_map(|copy| removed_cells::of(copy));
        let names: BTreeSet<&str> = sources.map(|source| source.name).collect();
        names.into_iter().map(key).collect()
    }
}

fn key(cluster: &str) -> Key {
    Key::new(&Plane::Hub, "", cluster)
}

/// Sources of a copy that came or went, where they may be gone. A reconcile looks at the copies of all cells: what a cell that
/// is there writes does not cost that.
fn sources_of_copy(context: &Context, change: &Change) -> Vec<Key> {
    let sources = events::both(change).filter_map(|copy| removed_cells::of(copy));
    let gone = sources.filter(|source| may_be_gone(context, *source));
    gone.map(|source| key(source.name)).collect()
}

/// Sources of a name that are gone, by stores or by the record.
fn gone(snapshot: &Snapshot<'_>, cluster: &str) -> BTreeSet<SourceName> {
    let mut found = sources_of_copies(snapshot, cluster);
    found.extend(removed(snapshot).into_iter().filter(|(name, _)| name == cluster));
    found
}

/// Sources of a name that may be gone, as far as stores say: those of copies whose Cluster is not theirs.
fn sources_of_copies(snapshot: &Snapshot<'_>, cluster: &str) -> BTreeSet<SourceName> {
    let (Observed::Known(copies), Observed::Known(clusters)) = (
        snapshot.all(&Plane::Hub, kind::INSTANCE),
        snapshot.all(&Plane::Hub, kind::CLUSTER),
    ) else {
        return BTreeSet::new();
    };
    let clusters = refs(&clusters);
    let named = copies.iter().filter_map(|copy| removed_cells::of(copy));
    named
        .filter(|source| source.name == cluster)
        .filter(|source| removed_cells::is_gone(*source, Observed::Known(&clusters), false) == Some(true))
        .map(owned)
        .collect()
}

/// Reads the claims of all projects that copies of these sources are for. A project that does not answer holds up its own copies
/// only.
pub(super) async fn read_claims_of(
    sources: &GoneSources,
    context: &Context,
    live: &mut LiveReads,
    gone: &BTreeSet<SourceName>,
) {
    let copies = events::stored(context, &Plane::Hub, kind::INSTANCE, None);
    let theirs = copies
        .iter()
        .filter(|copy| removed_cells::of(copy).is_some_and(|source| gone.contains(&owned(source))));
    let projects: BTreeSet<Plane> = theirs.filter_map(|copy| project_of(context, copy)).collect();
    for project in projects {
        match sources.read_claims(context, &project).await {
            Ok(claims) => put_claims(live, &project, claims),
            Err(error) => live.miss(&project, error),
        }
    }
}

/// The engaged project that a copy is for.
fn project_of(context: &Context, copy: &Object) -> Option<Plane> {
    hub_namespaces::owner(context, copy.namespace()).map(|(project, _)| project)
}

/// Cleans up after sources that are gone, project by project. Those that are only absent are noted, and released later.
pub(super) fn clean(snapshot: &Snapshot<'_>, gone: &BTreeSet<SourceName>, now: Timestamp) -> Option<Plan> {
    let clusters = snapshot.all(&Plane::Hub, kind::CLUSTER);
    let clusters = clusters.as_ref().map(|all| refs(all));
    let copies = snapshot.all(&Plane::Hub, kind::INSTANCE).known()?;
    let claims = snapshot.live_of(kind::RESOURCE_CLAIM);
    let mut by_project: BTreeMap<Option<Plane>, Vec<&Object>> = BTreeMap::new();
    for copy in &copies {
        let project = project_of(snapshot.context, copy);
        by_project.entry(project).or_default().push(copy);
    }
    let mut plan = Plan::independent();
    let removed = removed(snapshot);
    let absent: BTreeSet<Source<'_>> = gone.difference(&removed).map(borrowed).collect();
    let graces = clusters
        .as_ref()
        .known()
        .and_then(|clusters| with_absences(snapshot, now, |notes| notes.review(&absent, clusters, &mut plan)));
    let graces = graces.unwrap_or_default();
    for project in by_project.keys().flatten() {
        note_unreadable(&mut plan, snapshot, project);
    }
    let is_misplaced = |copy: &&Arc<Object>| removed_cells::of(copy).is_some_and(|source| graces.is_misplaced(source));
    let orphan = |copy: &Arc<Object>| Note::Orphan(Target::of(&Plane::Hub, kind::INSTANCE, copy));
    plan.notes.extend(copies.iter().filter(is_misplaced).map(orphan));
    for name in gone {
        let source = borrowed(name);
        if graces.is_misplaced(source) {
            continue;
        }
        for (project, copies) in &by_project {
            if project.as_ref().is_some_and(|project| snapshot.has_missed(project)) {
                continue;
            }
            let theirs = claims.iter().filter_map(|(plane, claim)| match plane {
                Plane::Project(id) if Some(plane) == project.as_ref() => Some((id.as_str(), claim.as_ref())),
                _ => None,
            });
            let unreadable = project.iter();
            let unreadable: Vec<&str> = unreadable
                .flat_map(|project| snapshot.unreadable_of(project, kind::RESOURCE_CLAIM))
                .map(|(_, name)| name)
                .collect();
            plan.append(removed_cells::clean(&Observation {
                source,
                clusters: clusters.as_ref().map(Vec::as_slice),
                removed: removed.contains(name),
                left: graces.left(source),
                claims: &theirs.collect::<Vec<_>>(),
                unreadable: &unreadable,
                copies,
            }));
        }
    }
    Some(plan)
}
