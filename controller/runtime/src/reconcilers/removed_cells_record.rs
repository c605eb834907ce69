//! `removed-cells-record`: what cells in the record of removed cells have left, though their Cluster may be there; and what
//! concerns all Clusters: which of them are one cell, and which are back.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::observed::Observed;
use popcell_core::plan::{Note, Plan, Plane};
use popcell_core::removed_cells;

use super::events;
use super::gone_sources::{GoneSources, RECORD_RECONCILER, record_key, removed, with_absences};
use super::removed_cells::{clean, read_claims_of};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// How soon a cell that is recorded as removed after its Cluster went is noticed.
const RECORD: Duration = Duration::from_mins(1);

/// Key: the ConfigMap of the record ([`record_key`]). It is not watched: while the grace of a source runs, it is read every
/// [`RECORD`].
#[derive(Debug)]
pub struct RemovedCellsRecord {
    /// Shared with the other reconcilers of removed cells.
    pub sources: Arc<GoneSources>,
}

impl Reconciler for RemovedCellsRecord {
    fn name(&self) -> &'static str {
        RECORD_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, _: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            self.sources.read_records(context, live).await?;
            let gone = removed(&Snapshot::new(context, live));
            read_claims_of(&self.sources, context, live, &gone).await;
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, _: &Key, now: Timestamp) -> Option<Plan> {
        let mut plan = clean(snapshot, &removed(snapshot), now)?;
        let again = with_absences(snapshot, now, |notes| notes.runs().then_some(RECORD));
        if let Some(again) = again.flatten() {
            plan.requeue_within(again);
        }
        if let Observed::Known(clusters) = snapshot.all(&Plane::Hub, kind::CLUSTER) {
            let clusters = refs(&clusters);
            let twins = removed_cells::twins(&clusters).into_iter();
            plan.notes.extend(twins.map(|(id, names)| Note::Twins {
                id: id.to_owned(),
                clusters: names.join(", "),
            }));
        }
        Some(plan)
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::CLUSTER | kind::INSTANCE) if events::is_listed(change) => vec![record_key(context)],
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => vec![record_key(context)],
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Hub => vec![record_key(context)],
            Plane::Project(_) | Plane::Cell | Plane::Discovery => Vec::new(),
        }
    }
}
