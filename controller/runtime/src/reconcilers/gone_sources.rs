//! What the reconcilers of removed cells share: the records of cells, which are not watched and are read live; the claims that
//! cells have in projects; and how much there is of which cell, for the deletion guard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_api::names::{ABSENT_CELLS, REMOVED_CELLS};
use popcell_core::object::{Fields, Listed};
use popcell_core::observed::Observed;
use popcell_core::plan::{Action, CONFIG_MAP, Note, Plan, Plane, Target};
use popcell_core::removed_cells::{self, Absences, Source};

use super::events;
use crate::apply::{ApplyError, Difference};
use crate::context::Context;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Snapshot, refs};
use crate::sync::lock;

/// Name of the reconciler of the claims of one project.
pub(super) const PROJECT_CLAIMS_RECONCILER: &str = "project-claims";
/// Name of the reconciler of the record of removed cells.
pub(super) const RECORD_RECONCILER: &str = "removed-cells-record";

/// How soon claims that could not be read are looked for again.
const UNREADABLE: Duration = Duration::from_mins(1);

/// Key of the reconciler of the claims of one project: the project.
pub(super) fn claims_key(project: &Plane) -> Key {
    let id = match project {
        Plane::Project(id) => id,
        Plane::Hub | Plane::Cell | Plane::Discovery => "",
    };
    Key::new(project, "", id)
}

/// Key of the reconciler of the record of removed cells: its ConfigMap.
pub(super) fn record_key(context: &Context) -> Key {
    Key::new(&Plane::Hub, context.applier.namespace(), REMOVED_CELLS)
}

/// Name and id of a source.
pub(super) type SourceName = (String, String);

pub(super) fn owned(source: Source<'_>) -> SourceName {
    (source.name.to_owned(), source.id.to_owned())
}

pub(super) fn borrowed((name, id): &SourceName) -> Source<'_> {
    Source { name, id }
}

/// What was read last of planes that are not watched.
#[derive(Debug, Default)]
pub struct GoneSources(Mutex<LastRead>);

#[derive(Debug, Default)]
struct LastRead {
    /// How many claims of which source a project had.
    claims: BTreeMap<Plane, BTreeMap<SourceName, usize>>,
    /// Sources in the record of removed cells.
    removed: BTreeSet<SourceName>,
}

impl GoneSources {
    fn last_read(&self) -> MutexGuard<'_, LastRead> {
        lock(&self.0)
    }

    /// The records of cells, read live. Without the notes of absent ones, nothing of these is released. For a source that is
    /// new in the record of removed cells, the claims of all projects are looked at.
    pub(super) async fn read_records(&self, context: &Context, live: &mut LiveReads) -> Result<(), ApplyError> {
        let record = context.applier.removed_cells().await?;
        live.put(&record_target(context, REMOVED_CELLS), record);
        let recorded = removed(&Snapshot::new(context, live));
        let before = std::mem::replace(&mut self.last_read().removed, recorded.clone());
        if !recorded.is_subset(&before) {
            for project in events::projects(context) {
                context
                    .wait_list
                    .enqueue(PROJECT_CLAIMS_RECONCILER, claims_key(&project));
            }
        }
        match context.applier.absent_cells().await {
            Ok(notes) => live.put(&record_target(context, ABSENT_CELLS), notes),
            Err(error) => live.miss(&Plane::Hub, error),
        }
        Ok(())
    }

    /// Claims of all cells in a project: the deletion guard asks how many there are. There are none where the project's server
    /// does not know claims.
    pub(super) async fn read_claims(&self, context: &Context, project: &Plane) -> Result<Listed, ApplyError> {
        let listed = context
            .applier
            .list(project, kind::RESOURCE_CLAIM, None, labels::SOURCE_CLUSTER);
        let found = match listed.await {
            Err(error) if error.is_not_found() && !context.applier.serves(project, kind::RESOURCE_CLAIM).await? => {
                Listed::default()
            }
            found => found?,
        };
        let mut by_source: BTreeMap<SourceName, usize> = BTreeMap::new();
        for source in found.objects.iter().filter_map(removed_cells::of) {
            *by_source.entry(owned(source)).or_default() += 1;
        }
        self.last_read().claims.insert(project.clone(), by_source);
        Ok(found)
    }

    /// A project is not engaged any more.
    pub(super) fn forget(&self, project: &Plane) {
        self.last_read().claims.remove(project);
    }

    /// Copies and claims of cells, and how many of them are of one that is only absent; `None` for another kind.
    pub(super) fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        let by_source = match (plane, kind) {
            (Plane::Hub, kind::INSTANCE) => {
                let copies = snapshot.all(plane, kind).known().unwrap_or_default();
                let marked = copies.iter().filter(|copy| copy.marked());
                let sources = marked.filter_map(|copy| removed_cells::of(copy).map(owned));
                sources.map(|source| (source, 1)).collect()
            }
            (Plane::Project(_), kind::RESOURCE_CLAIM) => {
                let claims = self.last_read().claims.get(plane).cloned();
                claims.into_iter().flatten().collect()
            }
            _ => return None,
        };
        Some(self.difference(snapshot, by_source))
    }

    fn difference(&self, snapshot: &Snapshot<'_>, by_source: Vec<(SourceName, usize)>) -> Difference {
        let mut difference = Difference::default();
        let Observed::Known(clusters) = snapshot.all(&Plane::Hub, kind::CLUSTER) else {
            difference.partial = true;
            return difference;
        };
        let clusters = refs(&clusters);
        let last_read = self.last_read();
        for (source, count) in by_source {
            difference.ours += count;
            let gone = removed_cells::is_gone(borrowed(&source), Observed::Known(&clusters), false) == Some(true);
            if gone && !last_read.removed.contains(&source) {
                difference.to_delete += count;
            }
        }
        difference
    }
}

/// Takes in claims of a project.
pub(super) fn put_claims(live: &mut LiveReads, project: &Plane, claims: Listed) {
    for one in &claims.unreadable {
        live.put_unreadable(&Target::namespaced(
            project,
            kind::RESOURCE_CLAIM,
            &one.namespace,
            &one.name,
        ));
    }
    for claim in claims.objects {
        live.put(&Target::of(project, kind::RESOURCE_CLAIM, &claim), Some(claim));
    }
}

/// Where an absence was noted, the record is looked at from now on: it may come before the end of the grace.
pub(super) fn watch_record(context: &Context, plan: &Plan) {
    let targets = plan.actions.iter().map(Action::target);
    if targets
        .filter(|target| target.kind == CONFIG_MAP)
        .any(|target| target.name == ABSENT_CELLS)
    {
        context.wait_list.enqueue(RECORD_RECONCILER, record_key(context));
    }
}

fn record_target(context: &Context, name: &str) -> Target {
    Target::namespaced(&Plane::Hub, CONFIG_MAP, context.applier.namespace(), name)
}

/// Sources in the record of removed cells, where it was read.
pub(super) fn removed(snapshot: &Snapshot<'_>) -> BTreeSet<SourceName> {
    let namespace = snapshot.context.applier.namespace();
    let record = snapshot.read_live(&Plane::Hub, CONFIG_MAP, namespace, REMOVED_CELLS);
    let record = record.flatten();
    let all = record.iter().flat_map(|record| removed_cells::removed(record));
    all.map(owned).collect()
}

/// What the notes of absent cells say; `None` where they were not read.
pub(super) fn with_absences<R>(
    snapshot: &Snapshot<'_>,
    now: Timestamp,
    view: impl FnOnce(&Absences<'_>) -> R,
) -> Option<R> {
    let namespace = snapshot.context.applier.namespace();
    let record = snapshot.read_live(&Plane::Hub, CONFIG_MAP, namespace, ABSENT_CELLS)?;
    Some(view(&Absences {
        record: record.as_deref(),
        namespace,
        grace: snapshot.context.rules.cell_grace,
        now,
    }))
}

/// Claims that cannot be read are reported, and looked for again: their owner is unknown, and they are not watched.
pub(super) fn note_unreadable(plan: &mut Plan, snapshot: &Snapshot<'_>, project: &Plane) {
    for (namespace, name) in snapshot.unreadable_of(project, kind::RESOURCE_CLAIM) {
        plan.notes.push(Note::Undecodable {
            target: Target::namespaced(project, kind::RESOURCE_CLAIM, namespace, name),
            path: "/metadata".to_owned(),
        });
        plan.requeue_within(UNREADABLE);
    }
}

/// Whether a source may be gone, as far as the Cluster of its name says. A Cluster that becomes another enqueues by itself.
pub(super) fn may_be_gone(context: &Context, source: Source<'_>) -> bool {
    let store = context.store(&Plane::Hub, kind::CLUSTER);
    match store.map(|store| store.get("", source.name)) {
        Some(Observed::Known(Some(cluster))) => {
            removed_cells::is_gone(source, Observed::Known(&[&cluster]), false) != Some(false)
        }
        _ => true,
    }
}
