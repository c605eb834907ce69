//! `project-claims`: claims of cells that are gone are deleted in a project, by what the claims say themselves; see
//! [`popcell_core::removed_cells::clean_claims`]. Once the copies have gone, by whoever's hand, nothing else shows that the claims
//! are there.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Note, Plan, Plane};
use popcell_core::removed_cells::{self, Claims};

use super::gone_sources::{
    GoneSources, PROJECT_CLAIMS_RECONCILER, borrowed, claims_key, may_be_gone, note_unreadable, put_claims, removed,
    watch_record, with_absences,
};
use super::{events, hub_namespaces};
use crate::apply::{ApplyError, Difference, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};
use crate::sync::lock;

/// Key: a project ([`claims_key`]). Its claims are not watched: they are listed when a cell may be gone, and once after the
/// project was engaged.
#[derive(Debug)]
pub struct ProjectClaims {
    sources: Arc<GoneSources>,
    /// Projects whose claims were looked at since they were engaged.
    seen: Mutex<BTreeSet<Plane>>,
}

impl ProjectClaims {
    /// With what is shared with the other reconcilers of removed cells.
    pub fn new(sources: Arc<GoneSources>) -> Self {
        Self {
            sources,
            seen: Mutex::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeSet<Plane>> {
        lock(&self.seen)
    }

    /// Claims whose source is gone, as far as stores say.
    async fn read(&self, context: &Context, live: &mut LiveReads, project: &Plane) -> Result<(), ApplyError> {
        let Observed::Known(clusters) = Snapshot::new(context, live).all(&Plane::Hub, kind::CLUSTER) else {
            return Ok(());
        };
        let clusters = refs(&clusters);
        let mut found = self.sources.read_claims(context, project).await?;
        found.objects.retain(|claim| {
            let gone = |source| removed_cells::is_gone(source, Observed::Known(&clusters), false);
            removed_cells::of(claim).and_then(gone) == Some(true)
        });
        if !found.objects.is_empty() {
            self.sources.read_records(context, live).await?;
        }
        put_claims(live, project, found);
        self.seen().insert(project.clone());
        Ok(())
    }

    fn unseen(&self, context: &Context) -> Vec<Key> {
        let seen = self.seen();
        let mut projects = events::projects(context);
        projects.retain(|project| !seen.contains(project));
        projects.iter().map(claims_key).collect()
    }
}

impl Reconciler for ProjectClaims {
    fn name(&self) -> &'static str {
        PROJECT_CLAIMS_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(self.read(context, live, &key.plane))
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let mut claims = snapshot.live_of(kind::RESOURCE_CLAIM);
        claims.retain(|(of, _)| *of == key.plane);
        let claims: Vec<Arc<Object>> = claims.into_iter().map(|(_, claim)| claim).collect();
        let clusters = snapshot.all(&Plane::Hub, kind::CLUSTER);
        let Observed::Known(clusters) = clusters.as_ref().map(|all| refs(all)) else {
            return Some(Plan {
                notes: vec![Note::Unknown(Plane::Hub)],
                ..Plan::independent()
            });
        };
        let namespaces = snapshot.all(&Plane::Hub, NAMESPACE).known()?;
        let removed = removed(snapshot);
        let (claims, namespaces) = (refs(&claims), refs(&namespaces));
        let seen = Claims {
            project: &key.name,
            claims: &claims,
            clusters: Observed::Known(&clusters),
            removed: &removed.iter().map(borrowed).collect(),
            namespaces: &namespaces,
        };
        let (mut plan, absent) = (Plan::independent(), seen.absent());
        let graces = with_absences(snapshot, now, |notes| notes.review(&absent, &clusters, &mut plan));
        plan.append(removed_cells::clean_claims(&seen, &graces.unwrap_or_default()));
        note_unreadable(&mut plan, snapshot, &key.plane);
        Some(plan)
    }

    fn executed(&self, context: &Context, _: &Key, plan: &Plan, _: Done) {
        watch_record(context, plan);
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::CLUSTER) if events::is_listed(change) => self.unseen(context),
            (Plane::Hub, kind::CLUSTER) if is_another(change) => {
                events::projects(context).iter().map(claims_key).collect()
            }
            (Plane::Hub, kind::INSTANCE) => claims_of_lost_copy(context, change),
            // A project that is engaged later may hold claims of a cell that is gone.
            (Plane::Project(_), kind::WORKLOAD) if events::is_listed(change) && !self.seen().contains(plane) => {
                vec![claims_key(plane)]
            }
            _ => Vec::new(),
        }
    }

    fn keys_on_disengage(&self, _: &Context, plane: &Plane) -> Vec<Key> {
        self.seen().remove(plane);
        self.sources.forget(plane);
        Vec::new()
    }

    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        self.sources.count(snapshot, plane, kind)
    }

    fn keys(&self, _: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Project(_) => vec![claims_key(plane)],
            Plane::Hub | Plane::Cell | Plane::Discovery => Vec::new(),
        }
    }
}

/// Whether what a Cluster was is gone: itself, or the cell that it stood for.
fn is_another(change: &Change) -> bool {
    match change {
        Change::Gone { .. } => true,
        Change::Applied {
            before: Some(before),
            now,
        } => before.text("/spec/id") != now.text("/spec/id"),
        _ => false,
    }
}

/// The project of a copy that went, where its source may be gone.
fn claims_of_lost_copy(context: &Context, change: &Change) -> Vec<Key> {
    let Change::Gone { last: Some(copy), .. } = change else {
        return Vec::new();
    };
    let source = removed_cells::of(copy).filter(|source| may_be_gone(context, *source));
    let owner = source.and_then(|_| hub_namespaces::owner(context, copy.namespace()));
    owner.map(|(project, _)| claims_key(&project)).into_iter().collect()
}
