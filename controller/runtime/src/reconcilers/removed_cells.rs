//! `removed-cells`: what cells that are gone have left; see [`popcell_core::removed_cells`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_api::names::{ABSENT_CELLS, REMOVED_CELLS};
use popcell_core::identity;
use popcell_core::object::{Fields, Listed, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{Action, CONFIG_MAP, NAMESPACE, Note, Plan, Plane, Target};
use popcell_core::removed_cells::{self, Absences, Claims, Observation, Source};

use super::events;
use crate::apply::{ApplyError, Difference, Done};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Reconciler, Snapshot, refs};
use crate::sync::lock;

/// Key on the hub: name of a Karmada Cluster, whatever its id: copies of all sources of that name that are gone, and the
/// claims in their projects. Without a name, those of the record of removed cells. The record is not watched: while the grace
/// of a source runs, it is read every [`RECORD`].
///
/// Key on a project, without a name: what the claims there say themselves. Once the copies have gone, by whoever's hand,
/// nothing else says that the claims are there.
#[derive(Debug, Default)]
pub struct RemovedCells {
    /// Projects whose claims were looked at since they were engaged.
    seen: Mutex<BTreeSet<Plane>>,
    /// What was read of planes that are not watched, for the deletion guard.
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    /// How many claims of which source a project had when it was read last.
    claims: BTreeMap<Plane, BTreeMap<Named, usize>>,
    /// Sources in the record of removed cells, when it was read last.
    removed: BTreeSet<Named>,
}

const RECORDED: &str = "";

/// How soon a cell that is recorded as removed after its Cluster went is noticed.
const RECORD: Duration = Duration::from_mins(1);

/// How soon claims that could not be read are looked for again.
const UNREADABLE: Duration = Duration::from_mins(1);

/// Name and id of a source.
type Named = (String, String);

impl RemovedCells {
    fn seen(&self) -> MutexGuard<'_, BTreeSet<Plane>> {
        lock(&self.seen)
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        lock(&self.counted)
    }

    /// The records of cells, read live. Without the notes of absent ones, nothing of these is released.
    async fn read_records(&self, context: &Context, live: &mut LiveReads) -> Result<(), ApplyError> {
        let record = context.applier.removed_cells().await?;
        live.put(&record_target(REMOVED_CELLS), record);
        let recorded = removed(&Snapshot::new(context, live));
        let before = std::mem::replace(&mut self.counted().removed, recorded.clone());
        if !recorded.is_subset(&before) {
            for project in events::projects(context) {
                context.wait_list.enqueue(NAME, of_project(&project));
            }
        }
        match context.applier.absent_cells().await {
            Ok(notes) => live.put(&record_target(ABSENT_CELLS), notes),
            Err(error) => live.miss(&Plane::Hub, error),
        }
        Ok(())
    }

    /// Claims of sources that are gone, of projects that copies of theirs are for. A project that does not say holds up its
    /// own copies only.
    async fn read(&self, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
        let found = found_sources(&Snapshot::new(context, live), key);
        if found.is_empty() && key.name != RECORDED {
            return Ok(());
        }
        self.read_records(context, live).await?;
        for project in left(&Snapshot::new(context, live), key) {
            // Of all cells: the deletion guard asks how many there are.
            match claims(context, &project, labels::SOURCE_CLUSTER).await {
                Ok(claims) => {
                    self.count_claims(&project, &claims.objects);
                    put(live, &project, claims);
                }
                Err(error) => live.miss(&project, error),
            }
        }
        Ok(())
    }

    fn count_claims(&self, project: &Plane, claims: &[Object]) {
        let mut by_source: BTreeMap<Named, usize> = BTreeMap::new();
        for source in claims.iter().filter_map(removed_cells::of) {
            *by_source.entry(named(source)).or_default() += 1;
        }
        self.counted().claims.insert(project.clone(), by_source);
    }

    /// Objects of cells, by source, and how many of these are of one that is only absent.
    fn difference<'a>(&self, snapshot: &Snapshot<'_>, objects: impl Iterator<Item = (&'a Named, usize)>) -> Difference {
        let Observed::Known(clusters) = snapshot.all(&Plane::Hub, kind::CLUSTER) else {
            return Difference {
                partial: true,
                ..Difference::default()
            };
        };
        let clusters = refs(&clusters);
        let mut difference = Difference::default();
        let counted = self.counted();
        for ((name, id), count) in objects {
            difference.ours += count;
            let gone = removed_cells::is_gone(Source { name, id }, Observed::Known(&clusters), false) == Some(true);
            if gone && !counted.removed.contains(&(name.clone(), id.clone())) {
                difference.to_delete += count;
            }
        }
        difference
    }

    /// Claims of a project whose source is gone, as far as stores say.
    async fn read_project(&self, context: &Context, live: &mut LiveReads, plane: &Plane) -> Result<(), ApplyError> {
        let Observed::Known(clusters) = Snapshot::new(context, live).all(&Plane::Hub, kind::CLUSTER) else {
            return Ok(());
        };
        let clusters = refs(&clusters);
        let mut found = claims(context, plane, labels::SOURCE_CLUSTER).await?;
        self.count_claims(plane, &found.objects);
        found.objects.retain(|claim| {
            let gone = |source| removed_cells::is_gone(source, Observed::Known(&clusters), false);
            removed_cells::of(claim).and_then(gone) == Some(true)
        });
        if !found.objects.is_empty() {
            self.read_records(context, live).await?;
        }
        put(live, plane, found);
        self.seen().insert(plane.clone());
        Ok(())
    }

    fn unseen(&self, context: &Context) -> Vec<Key> {
        let seen = self.seen();
        let mut projects = events::projects(context);
        projects.retain(|plane| !seen.contains(plane));
        projects.iter().map(of_project).collect()
    }
}

/// Claims by label; none where the project's server does not know claims.
async fn claims(context: &Context, project: &Plane, selector: &str) -> Result<Listed, ApplyError> {
    let found = context
        .applier
        .list(project, kind::RESOURCE_CLAIM, None, selector)
        .await;
    match found {
        Err(error) if error.is_not_found() && !context.applier.serves(project, kind::RESOURCE_CLAIM).await? => {
            Ok(Listed::default())
        }
        found => found,
    }
}

fn put(live: &mut LiveReads, project: &Plane, claims: Listed) {
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

fn record_target(name: &str) -> Target {
    Target::namespaced(&Plane::Hub, CONFIG_MAP, "", name)
}

fn named(source: Source<'_>) -> Named {
    (source.name.to_owned(), source.id.to_owned())
}

fn of_project(plane: &Plane) -> Key {
    Key::new(plane, "", "")
}

const NAME: &str = "removed-cells";

impl Reconciler for RemovedCells {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prepare<'a>(
        &'a self,
        context: &'a Context,
        live: &'a mut LiveReads,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<(), ApplyError>> {
        match &key.plane {
            Plane::Project(_) => Box::pin(self.read_project(context, live, &key.plane)),
            Plane::Hub | Plane::Cell | Plane::Discovery => Box::pin(self.read(context, live, key)),
        }
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        match &key.plane {
            Plane::Project(id) => decide_project(snapshot, &key.plane, id, now),
            Plane::Hub | Plane::Cell | Plane::Discovery => decide(snapshot, key, now),
        }
    }

    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE) => {
                let copies = snapshot.all(plane, kind).known().unwrap_or_default();
                let marked = copies.iter().filter(|copy| copy.marked());
                let named: Vec<Named> = marked.filter_map(|copy| removed_cells::of(copy).map(named)).collect();
                Some(self.difference(snapshot, named.iter().map(|one| (one, 1))))
            }
            (Plane::Project(_), kind::RESOURCE_CLAIM) => {
                let claims = self.counted().claims.get(plane).cloned().unwrap_or_default();
                Some(self.difference(snapshot, claims.iter().map(|(source, count)| (source, *count))))
            }
            _ => None,
        }
    }

    fn executed(&self, context: &Context, key: &Key, plan: &Plan, _: Done) {
        if key.name != RECORDED || key.plane != Plane::Hub {
            let targets = plan.actions.iter().map(Action::target);
            if targets
                .filter(|one| one.kind == CONFIG_MAP)
                .any(|one| one.name == ABSENT_CELLS)
            {
                context.wait_list.enqueue(NAME, Key::new(&Plane::Hub, "", RECORDED));
            }
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::CLUSTER) if events::is_listed(change) => {
                let mut enqueued = self.keys(context, plane);
                enqueued.extend(self.unseen(context));
                enqueued
            }
            (Plane::Hub, kind::INSTANCE) if events::is_listed(change) => self.keys(context, plane),
            (Plane::Hub, kind::CLUSTER) if events::is_more_than_status(change) => events::address(change)
                .map(|(_, name)| {
                    let mut enqueued = vec![Key::new(plane, "", name), Key::new(plane, "", RECORDED)];
                    if is_another(change) {
                        enqueued.extend(events::projects(context).iter().map(of_project));
                    }
                    enqueued
                })
                .unwrap_or_default(),
            // A reconcile looks at the copies of all cells: what a cell that is there writes does not cost that.
            (Plane::Hub, kind::INSTANCE) if events::comes_or_goes(change) => {
                let may_be_gone =
                    |copy: &&Arc<Object>| removed_cells::of(copy).is_some_and(|one| may_be_gone(context, one));
                let copies = events::both(change).filter(may_be_gone);
                let (is_gone, live) = (matches!(change, Change::Gone { .. }), LiveReads::default());
                let keys = copies.flat_map(|copy| {
                    let source = removed_cells::of(copy).map(|source| Key::new(plane, "", source.name));
                    let project = is_gone
                        .then(|| project_of(&Snapshot::new(context, &live), copy))
                        .flatten();
                    source.into_iter().chain(project.as_ref().map(of_project))
                });
                keys.collect()
            }
            // A project that is engaged later may hold claims of a cell that is gone.
            (Plane::Project(_), kind::WORKLOAD) if events::is_listed(change) && !self.seen().contains(plane) => {
                vec![of_project(plane)]
            }
            _ => Vec::new(),
        }
    }

    fn keys_on_disengage(&self, _: &Context, plane: &Plane) -> Vec<Key> {
        self.seen().remove(plane);
        self.counted().claims.remove(plane);
        Vec::new()
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        if let Plane::Project(_) = plane {
            return vec![of_project(plane)];
        }
        let copies = events::stored(context, plane, kind::INSTANCE, None);
        let names: BTreeSet<&str> = copies
            .iter()
            .filter_map(|copy| Some(removed_cells::of(copy)?.name))
            .chain([RECORDED])
            .collect();
        names.into_iter().map(|name| Key::new(&Plane::Hub, "", name)).collect()
    }
}

/// Whether a source may be gone, as far as the Cluster of its name says. A Cluster that becomes another enqueues by itself.
fn may_be_gone(context: &Context, source: Source<'_>) -> bool {
    let store = context.store(&Plane::Hub, kind::CLUSTER);
    match store.map(|store| store.get("", source.name)) {
        Some(Observed::Known(Some(cluster))) => {
            removed_cells::is_gone(source, Observed::Known(&[&cluster]), false) != Some(false)
        }
        _ => true,
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

/// The notes of absent cells, where they were read.
fn with_absences<R>(snapshot: &Snapshot<'_>, now: Timestamp, view: impl FnOnce(Option<&Absences<'_>>) -> R) -> R {
    let Some(record) = snapshot.read_live(&Plane::Hub, CONFIG_MAP, "", ABSENT_CELLS) else {
        return view(None);
    };
    view(Some(&Absences {
        record: record.as_deref(),
        namespace: snapshot.context.applier.namespace(),
        grace: snapshot.context.rules.cell_grace,
        now,
    }))
}

/// What is left of the graces of sources, as far as they are noted.
fn left_of<'a>(seen: &Absences<'_>, absent: &BTreeSet<Source<'a>>) -> BTreeMap<Source<'a>, Duration> {
    let left = absent.iter().filter_map(|source| Some((*source, seen.left(*source)?)));
    left.collect()
}

/// Notes what is absent, and is requeued when its grace is over.
fn note(plan: &mut Plan, seen: &Absences<'_>, absent: &BTreeSet<Source<'_>>, clusters: &[&Object]) {
    plan.actions.extend(seen.note(absent, clusters));
    if absent.iter().any(|source| seen.left(*source).is_none()) {
        plan.requeue_within(seen.grace);
    }
}

/// Claims that cannot be read are told of, and looked for again: their owner is unknown, and they are not watched.
fn note_unreadable(plan: &mut Plan, snapshot: &Snapshot<'_>, project: &Plane) {
    for (namespace, name) in snapshot.unreadable_of(project, kind::RESOURCE_CLAIM) {
        plan.notes.push(Note::Undecodable {
            target: Target::namespaced(project, kind::RESOURCE_CLAIM, namespace, name),
            path: "/metadata".to_owned(),
        });
        plan.requeue_within(UNREADABLE);
    }
}

fn decide(snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
    let clusters = snapshot.all(&Plane::Hub, kind::CLUSTER);
    let clusters = clusters.as_ref().map(|all| refs(all));
    let copies = snapshot.all(&Plane::Hub, kind::INSTANCE).known()?;
    let claims = snapshot.live_of(kind::RESOURCE_CLAIM);
    let mut by_project: BTreeMap<Option<Plane>, Vec<&Object>> = BTreeMap::new();
    for copy in &copies {
        by_project.entry(project_of(snapshot, copy)).or_default().push(copy);
    }
    let mut plan = Plan::independent();
    let (gone, removed) = (gone(snapshot, key), removed(snapshot));
    let absent = gone.iter().filter(|one| !removed.contains(*one));
    let absent: BTreeSet<Source<'_>> = absent.map(|(name, id)| Source { name, id }).collect();
    let (left, misplaced) = with_absences(snapshot, now, |seen| {
        let (Some(seen), Observed::Known(clusters)) = (seen, clusters.as_ref()) else {
            return (BTreeMap::new(), BTreeSet::new());
        };
        note(&mut plan, seen, &absent, clusters);
        (left_of(seen, &absent), seen.misplaced(&absent, clusters))
    });
    if key.name == RECORDED && with_absences(snapshot, now, |seen| seen.is_some_and(Absences::runs)) {
        plan.requeue_within(RECORD);
    }
    if let (RECORDED, Observed::Known(clusters)) = (key.name.as_str(), clusters.as_ref()) {
        let twins = removed_cells::twins(clusters).into_iter();
        plan.notes.extend(twins.map(|(id, names)| Note::Twins {
            id: id.to_owned(),
            clusters: names.join(", "),
        }));
    }
    for project in by_project.keys().flatten() {
        note_unreadable(&mut plan, snapshot, project);
    }
    let is_astray = |copy: &&Arc<Object>| removed_cells::of(copy).is_some_and(|source| misplaced.contains(&source));
    let orphan = |copy: &Arc<Object>| Note::Orphan(Target::of(&Plane::Hub, kind::INSTANCE, copy));
    plan.notes.extend(copies.iter().filter(is_astray).map(orphan));
    for source in &gone {
        let (name, id) = source;
        let gone = Source { name, id };
        if misplaced.contains(&gone) {
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
            let cleaned = removed_cells::clean(&Observation {
                source: gone,
                clusters: clusters.as_ref().map(Vec::as_slice),
                removed: removed.contains(source),
                left: left.get(&gone).copied(),
                claims: &theirs.collect::<Vec<_>>(),
                unreadable: &unreadable,
                copies,
            });
            plan.actions.extend(cleaned.actions);
            plan.notes.extend(cleaned.notes);
            if let Some(again) = cleaned.requeue {
                plan.requeue_within(again);
            }
        }
    }
    Some(plan)
}

fn decide_project(snapshot: &Snapshot<'_>, plane: &Plane, id: &str, now: Timestamp) -> Option<Plan> {
    let mut claims = snapshot.live_of(kind::RESOURCE_CLAIM);
    claims.retain(|(of, _)| of == plane);
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
    let removed: BTreeSet<Source<'_>> = removed.iter().map(|(name, id)| Source { name, id }).collect();
    let (unnoted, none) = (BTreeMap::new(), BTreeSet::new());
    let seen = Claims {
        project: id,
        claims: &claims,
        clusters: Observed::Known(&clusters),
        removed: &removed,
        left: &unnoted,
        misplaced: &none,
        namespaces: &namespaces,
    };
    let absent = seen.absent();
    Some(with_absences(snapshot, now, |absences| {
        let left = absences.map(|seen| left_of(seen, &absent)).unwrap_or_default();
        let misplaced = absences
            .map(|seen| seen.misplaced(&absent, &clusters))
            .unwrap_or_default();
        let mut plan = removed_cells::clean_claims(&Claims {
            left: &left,
            misplaced: &misplaced,
            ..seen
        });
        if let Some(absences) = absences {
            note(&mut plan, absences, &absent, &clusters);
        }
        note_unreadable(&mut plan, snapshot, plane);
        plan
    }))
}

/// The engaged project that a copy is for.
fn project_of(snapshot: &Snapshot<'_>, copy: &Object) -> Option<Plane> {
    let namespace = snapshot.get(&Plane::Hub, NAMESPACE, "", copy.namespace()).known()??;
    let (project, _) = identity::of_namespace(&namespace)?;
    let plane = Plane::Project(project.to_owned());
    snapshot.context.planes.get(&plane).map(|_| plane)
}

/// Engaged projects that copies of a key's sources are for.
fn left(snapshot: &Snapshot<'_>, key: &Key) -> BTreeSet<Plane> {
    let sources = gone(snapshot, key);
    let copies = snapshot.all(&Plane::Hub, kind::INSTANCE).known().unwrap_or_default();
    let named = copies.iter().filter_map(|copy| {
        let source = removed_cells::of(copy)?;
        let is_gone = sources.contains(&(source.name.to_owned(), source.id.to_owned()));
        is_gone.then(|| project_of(snapshot, copy))?
    });
    named.collect()
}

/// Sources of a key that may be gone, as far as stores say: those of copies whose Cluster is not theirs.
fn found_sources(snapshot: &Snapshot<'_>, key: &Key) -> BTreeSet<Named> {
    let (Observed::Known(copies), Observed::Known(clusters)) = (
        snapshot.all(&Plane::Hub, kind::INSTANCE),
        snapshot.all(&Plane::Hub, kind::CLUSTER),
    ) else {
        return BTreeSet::new();
    };
    let clusters = refs(&clusters);
    let named = copies.iter().filter_map(|copy| removed_cells::of(copy));
    named
        .filter(|source| source.name == key.name)
        .filter(|source| removed_cells::is_gone(*source, Observed::Known(&clusters), false) == Some(true))
        .map(|source| (source.name.to_owned(), source.id.to_owned()))
        .collect()
}

/// Sources of a key that are gone, by stores or by the record.
fn gone(snapshot: &Snapshot<'_>, key: &Key) -> BTreeSet<Named> {
    let mut found = found_sources(snapshot, key);
    let recorded = removed(snapshot).into_iter();
    found.extend(recorded.filter(|(name, _)| key.name == RECORDED || *name == key.name));
    found
}

/// Sources in the record of removed cells, where it was read.
fn removed(snapshot: &Snapshot<'_>) -> BTreeSet<Named> {
    let record = snapshot.read_live(&Plane::Hub, CONFIG_MAP, "", REMOVED_CELLS).flatten();
    let all = record.iter().flat_map(|record| removed_cells::removed(record));
    all.map(|source| (source.name.to_owned(), source.id.to_owned()))
        .collect()
}
