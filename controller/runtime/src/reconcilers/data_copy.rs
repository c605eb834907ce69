//! `data-copy`: see [`popcell_core::data_copy`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations::{DATA_PENDING, EXPECTED_REFERENCED_DATA, PREVIOUS_REFERENCES};
use popcell_api::kind::{self, Kind};
use popcell_api::labels::{REFERENCED_DATA, REFERENCED_DATA_TRUE};
use popcell_core::data_copy::{self, Access, ROLE, Source};
use popcell_core::identity::{self, Project};
use popcell_core::limits::Excess;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plan, Plane, ROLE_BINDING, Target};
use popcell_core::referenced_data::version_of_source;
use popcell_core::references::{self, DATA, Reference};
use tracing::{info, warn};

use super::{events, federation, hub_namespaces};
use crate::context::Context;
use crate::memory::Memory;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot};
use crate::refusal::ApplyError;
use crate::sync::lock;

/// Name of the reconciler.
pub(super) const DATA_COPY_RECONCILER: &str = "data-copy";

/// So many bytes of sources are held by one reconcile to be written; the next begins with the others.
const AT_ONCE: usize = 4 << 20;

/// Key: a hub namespace ([`hub_namespaces::key`]).
///
/// ConfigMaps and Secrets are no kinds that are watched, since that takes the right to read all of them: they are read by name, in
/// a project and, without what they hold, in a hub namespace.
#[derive(Debug, Default)]
pub struct DataCopy {
    /// Who the hub takes this process for, as it said last.
    user: Mutex<String>,
    /// Hub namespaces with sources that the last reconcile did not hold, and the first of them.
    left: Mutex<HashMap<String, Reference>>,
    /// Whether the log says that copies are left which are not carried any more.
    has_logged: AtomicBool,
}

/// The objects that a reconcile starts from, as the stores have them.
struct Stored {
    namespace: Arc<Object>,
    deployments: Vec<Arc<Object>>,
    /// The project that the namespace names, engaged or not, and its namespace there.
    source: Option<(Plane, String)>,
}

impl Stored {
    fn find(snapshot: &Snapshot<'_>, key: &Key) -> Observed<Option<Self>> {
        let deployments = snapshot.in_namespace(&key.plane, kind::WORKLOAD_DEPLOYMENT, &key.name);
        let (Observed::Known(namespace), Observed::Known(deployments)) =
            (snapshot.get(&key.plane, NAMESPACE, "", &key.name), deployments)
        else {
            return Observed::Unknown;
        };
        Observed::Known(namespace.map(|namespace| {
            let source = identity::of_namespace(&namespace);
            let source = source.map(|(id, within)| (Plane::Project(id.to_owned()), within.to_owned()));
            Self {
                namespace,
                deployments,
                source,
            }
        }))
    }

    fn is_concerned(&self, context: &Context) -> bool {
        let deployments = self.deployments.iter().map(AsRef::as_ref);
        data_copy::is_concerned(&self.namespace, deployments, context.rules.carries_data)
    }

    /// Counts what the project has here, if it is its own.
    fn count(&self, snapshot: &Snapshot<'_>, memory: &Memory, copies: &[(Kind, Arc<Object>)]) {
        let (name, budget) = (self.namespace.name(), &memory.data_budget);
        let is_another = |plane| snapshot.project(plane, |project| !identity::is_of(&self.namespace, project));
        let id = match &self.source {
            Some((plane @ Plane::Project(id), _)) if is_another(plane) != Some(true) => id,
            _ => return budget.forget(name),
        };
        let largest = snapshot.context.rules.object_bytes;
        let listed = copies.iter().map(|(kind, copy)| {
            let name = copy.name().to_owned();
            let bytes = data_copy::bytes_taken(copy, largest);
            (Reference { kind: *kind, name }, bytes, copy.deleting())
        });
        let needed = self.needed();
        budget.put(name, id, listed, |one| needed.contains(one));
    }

    fn needed(&self) -> Vec<Reference> {
        data_copy::needed(self.deployments.iter().map(AsRef::as_ref))
    }
}

impl Reconciler for DataCopy {
    fn name(&self) -> &'static str {
        DATA_COPY_RECONCILER
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            let Some(memory) = context.memory(&key.plane) else {
                return Ok(());
            };
            let checked = &memory.checked_copies;
            let Observed::Known(stored) = Stored::find(&Snapshot::new(context, live), key) else {
                return Ok(());
            };
            let mut next = lock(&self.left).remove(&key.name);
            let Some(stored) = stored.filter(|stored| stored.is_concerned(context)) else {
                checked.retain(&key.name, []);
                memory.data_budget.forget(&key.name);
                return Ok(());
            };
            for one in &stored.deployments {
                live.read_for(&key.plane, kind::WORKLOAD_DEPLOYMENT, one);
            }
            let has_access = self.read_copies(context, live, key).await;
            if !matches!(has_access, Ok(true)) {
                let is_denied = has_access.is_ok() && data_copy::has_had_some(&stored.namespace);
                if memory.data_budget.fail(&key.name, is_denied) {
                    warn!(
                        namespace = key.name,
                        "failed to list the ConfigMaps and Secrets of a hub namespace: the hub gives no right to, and its project gets no \
                         more of them in any namespace until it does; see whether its RoleBinding {ROLE} names this user and its \
                         ClusterRole is there"
                    );
                }
                return has_access.map(drop);
            }
            let copies = copies(&Snapshot::new(context, live), key);
            checked.retain(&key.name, copies.iter().map(|(kind, copy)| (*kind, copy.as_ref())));
            stored.count(&Snapshot::new(context, live), &memory, &copies);
            if !context.rules.carries_data {
                self.log_left_copies(&copies);
                return Ok(());
            }
            let Some((project, within)) = stored
                .source
                .as_ref()
                .filter(|(one, _)| context.planes.get(one).is_some())
            else {
                return Ok(());
            };
            if let Err(error) = read_sources(context, live, (project, within), &stored, &memory, &mut next).await {
                // What is not needed any more goes all the same.
                live.miss(project, error);
            }
            if let Some(next) = next {
                lock(&self.left).insert(key.name.clone(), next);
            }
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let stored = Stored::find(snapshot, key).known()??;
        if !stored.is_concerned(snapshot.context) {
            return Some(Plan::default());
        }
        let user = lock(&self.user).clone();
        let binding = snapshot.read_live(&key.plane, ROLE_BINDING, &key.name, ROLE);
        let copies = copies(snapshot, key);
        let copies: Vec<(Kind, &Object)> = copies.iter().map(|(kind, copy)| (*kind, copy.as_ref())).collect();
        let access = match &binding {
            Some(binding) => Access::Forbidden(binding.as_deref(), &user),
            None => Access::Open(&copies),
        };
        let sources = Sources::find(snapshot, &stored);
        let deployments: Vec<&Object> = stored.deployments.iter().map(AsRef::as_ref).collect();
        let decide = |project: Option<Project<'_>>| {
            data_copy::decide(&data_copy::Observation {
                project,
                namespace: &stored.namespace,
                deployments: &deployments,
                is_read_for: &|one| snapshot.is_read_for(&key.plane, kind::WORKLOAD_DEPLOYMENT, one),
                access,
                source: &|reference| sources.get(reference),
                has_more: sources.has_more,
                is_carried: snapshot.context.rules.carries_data,
                now,
            })
        };
        let engaged = stored
            .source
            .as_ref()
            .and_then(|(plane, _)| snapshot.project(plane, |project| decide(Some(project))));
        Some(engaged.unwrap_or_else(|| decide(None)))
    }

    /// WorkloadDeployments of the project that name any.
    fn shown_by(&self, context: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        federation::users_of_data(context, &key.name)
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT | NAMESPACE) if events::is_listed(change) => {
                self.keys(context, plane)
            }
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT) if is_news(change) => {
                hub_namespaces::keys(&hub_namespaces::around(change))
            }
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => {
                hub_namespaces::keys(&hub_namespaces::named(change))
            }
            // The project is engaged now.
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::is_listed(change) => {
                hub_namespaces::keys(&context.hub_index.of_project(id))
            }
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        hub_namespaces::keys_on(context, plane)
    }
}

impl DataCopy {
    /// Logs once that copies are left of the time when they were carried, and how an operator deletes them.
    fn log_left_copies(&self, copies: &[(Kind, Arc<Object>)]) {
        let are_left = copies.iter().any(|(_, copy)| copy.label(REFERENCED_DATA).is_some());
        if are_left && !self.has_logged.swap(true, Ordering::Relaxed) {
            info!(
                "ConfigMaps and Secrets are not carried (--referenced-data=false): copies that were made before stay on the hub and \
                 in cells as they are while a WorkloadDeployment names them; to delete them now, run on the hub: kubectl delete \
                 configmaps,secrets --all-namespaces -l {REFERENCED_DATA}={REFERENCED_DATA_TRUE}"
            );
        }
    }

    /// Reads what is in the hub namespace, or, without the right to, what would give it; whether it has the right.
    async fn read_copies(&self, context: &Context, live: &mut LiveReads, key: &Key) -> Result<bool, ApplyError> {
        live.forget(&key.plane, ROLE_BINDING);
        for kind in DATA {
            live.forget(&key.plane, kind);
            match context.applier.list_metadata(&key.plane, kind, &key.name).await {
                Ok(listed) => {
                    for one in listed.objects {
                        live.put(&Target::of(&key.plane, kind, &one), Some(one));
                    }
                }
                Err(error) if error.is_forbidden() => {
                    let binding = Target::namespaced(&key.plane, ROLE_BINDING, &key.name, ROLE);
                    live.put(&binding, context.applier.read(&binding).await?);
                    *lock(&self.user) = context.applier.user(&key.plane).await?;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Reads what a project has of what is needed, and of each that differs the copy as a whole. It begins with copies that were deleted
/// and are not there again, then with the `next` that the last reconcile left; which it is now is written there.
async fn read_sources(
    context: &Context,
    live: &mut LiveReads,
    (project, within): (&Plane, &str),
    stored: &Stored,
    memory: &Memory,
    next: &mut Option<Reference>,
) -> Result<(), ApplyError> {
    for kind in DATA {
        live.forget(project, kind);
    }
    context.read_server(live, project).await?;
    context.read_namespace(live, project, within).await?;
    let lives = Snapshot::new(context, live).project_namespace(project, within);
    // An earlier namespace of the name gets nothing of this one.
    if !identity::is_current(&stored.namespace, lives.known().flatten().as_deref()) {
        return Ok(());
    }
    let reading = Reading {
        context,
        memory,
        project,
        within,
        hub_namespace: stored.namespace.name(),
        uncounted: OnceLock::new(),
    };
    let first = next.take();
    let mut needed = stored.needed();
    let begin = needed.iter().position(|one| Some(one) == first.as_ref());
    needed.rotate_left(begin.unwrap_or_default());
    if first.is_none() {
        let reserved = memory.data_budget.reserved(reading.hub_namespace);
        needed.sort_by_key(|one| !reserved.contains(one));
    }
    let mut held = 0;
    for one in needed {
        match reading.read(live, &one, held <= AT_ONCE).await {
            Ok(Some(bytes)) => held += bytes,
            Ok(None) => *next = next.take().or(Some(one)),
            // Of this one: the others are read all the same.
            Err(error @ ApplyError::Failed(_)) => live.miss(project, error),
            Err(error) => {
                *next = next.take().or(Some(one));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// How the sources of a hub namespace are read.
struct Reading<'a> {
    context: &'a Context,
    memory: &'a Memory,
    project: &'a Plane,
    within: &'a str,
    hub_namespace: &'a str,
    /// Why nothing that is new or grows has room; looked for once, and only where something is or does.
    uncounted: OnceLock<Option<Excess>>,
}

impl Reading<'_> {
    /// Reads a source, and its copy as a whole where it differs. How many bytes are held to be written; `None` where it has some and is
    /// left, since there is no more room.
    async fn read(&self, live: &mut LiveReads, one: &Reference, has_room: bool) -> Result<Option<usize>, ApplyError> {
        let (applier, budget) = (&self.context.applier, &self.memory.data_budget);
        let target = Target::namespaced(self.project, one.kind, self.within, &one.name);
        let mut source = match applier.read(&target).await {
            Ok(found) => found,
            Err(error) if error.is_forbidden() => {
                live.put_unreadable(&target);
                return Ok(Some(0));
            }
            Err(error) => return Err(error),
        };
        let place = Target::namespaced(&Plane::Hub, one.kind, self.hub_namespace, &one.name);
        let listed = Snapshot::new(self.context, live).read_live(&Plane::Hub, one.kind, self.hub_namespace, &one.name);
        let listed = listed.flatten();
        let (mut bytes, mut is_made_again) = (0, false);
        if let Some(source) = &mut source {
            let version = version_of_source(source);
            let whole = self.checked(&place, listed.as_deref(), source, &version).await?;
            let copy = whole.as_ref().map_or(listed.as_deref(), Option::as_ref);
            if !has_room && data_copy::is_written(source, copy, &version) {
                return Ok(None);
            }
            let limit = self.context.rules.object_bytes;
            let refuses = |bytes| self.refused(&Snapshot::new(self.context, live), one, bytes);
            bytes = data_copy::noted(one.kind, source, version, copy, limit, refuses);
            if bytes > 0 && listed.is_some() {
                let whole = match whole {
                    Some(whole) => whole,
                    None => applier.read(&place).await?,
                };
                is_made_again = whole
                    .as_ref()
                    .is_some_and(|copy| data_copy::is_made_again(copy, source));
                live.put(&place, whole);
            }
        }
        // While it is gone, or going, it keeps what it has, as long as it is named.
        if listed.is_some_and(|copy| !copy.deleting()) {
            budget.reserve(self.hub_namespace, one, is_made_again);
        }
        live.put(&target, source);
        Ok(Some(bytes))
    }

    /// A copy that says this version, as a whole, with the version of what it holds, unless it was found right already.
    async fn checked(
        &self,
        place: &Target,
        listed: Option<&Object>,
        source: &Object,
        version: &str,
    ) -> Result<Option<Option<Object>>, ApplyError> {
        let checked = &self.memory.checked_copies;
        let says = listed.filter(|copy| data_copy::is_at(copy, version));
        if says.is_none_or(|copy| checked.contains(place.kind, copy)) {
            return Ok(None);
        }
        let mut whole = self.context.applier.read(place).await?;
        if let Some(copy) = &mut whole {
            data_copy::weigh(copy, source);
            if data_copy::is_at(copy, version) {
                checked.insert(place.kind, copy);
            }
        }
        Ok(Some(whole))
    }

    /// What the project has too much of for a copy of so many bytes; where it has room, that is the copy's now.
    fn refused(&self, snapshot: &Snapshot<'_>, copy: &Reference, bytes: usize) -> Option<Excess> {
        let (budget, limit) = (&self.memory.data_budget, self.context.rules.data_bytes);
        if budget.holds(self.hub_namespace, copy, bytes) {
            return None;
        }
        let uncounted = || uncounted(snapshot, self.memory, self.project);
        if let Some(excess) = self.uncounted.get_or_init(uncounted) {
            return Some(*excess);
        }
        let takes = budget.take(self.hub_namespace, copy, bytes, limit);
        (!takes).then_some(Excess::DataBytes { limit })
    }
}

/// Why nothing is new or grows of a project: not all that it has is counted.
fn uncounted(snapshot: &Snapshot<'_>, memory: &Memory, project: &Plane) -> Option<Excess> {
    snapshot.project(project, |project| {
        if memory.data_budget.is_counted(project.id) {
            return None;
        }
        if !snapshot.context.hub_index.is_listed() {
            return Some(Excess::DataUncounted { is_denied: false });
        }
        let mut all = snapshot.context.hub_index.of_project(project.id);
        all.retain(|name| has_copies(snapshot, project, name));
        memory.data_budget.count(project.id, &all).err()
    })?
}

/// Whether a hub namespace of a project may have copies.
fn has_copies(snapshot: &Snapshot<'_>, project: Project<'_>, name: &str) -> bool {
    match snapshot.get(&Plane::Hub, NAMESPACE, "", name) {
        Observed::Known(None) => false,
        Observed::Known(Some(one)) => {
            let is_ours = one.marked() && !one.deleting() && identity::is_of(&one, project);
            is_ours && data_copy::has_had_some(&one)
        }
        Observed::Unknown => true,
    }
}

/// What was read of the hub namespace.
fn copies(snapshot: &Snapshot<'_>, key: &Key) -> Vec<(Kind, Arc<Object>)> {
    let of_kind = |kind: Kind| {
        let found = snapshot.live_of(kind).into_iter();
        let there = found.filter(|(plane, one)| *plane == key.plane && one.namespace() == key.name);
        there.map(move |(_, one)| (kind, one))
    };
    DATA.into_iter().flat_map(of_kind).collect()
}

/// What was read of a project.
struct Sources {
    found: Vec<(Reference, Option<Arc<Object>>)>,
    forbidden: Vec<Reference>,
    has_more: bool,
}

impl Sources {
    fn find(snapshot: &Snapshot<'_>, stored: &Stored) -> Self {
        let mut sources = Self {
            found: Vec::new(),
            forbidden: Vec::new(),
            has_more: false,
        };
        let Some((project, within)) = &stored.source else {
            return sources;
        };
        let needed = stored.needed();
        let count = needed.len();
        for one in needed {
            let is_forbidden = || {
                snapshot
                    .unreadable_of(project, one.kind)
                    .any(|it| it == (within, &one.name))
            };
            match snapshot.read_live(project, one.kind, within, &one.name) {
                Some(found) => sources.found.push((one, found)),
                None if is_forbidden() => sources.forbidden.push(one),
                None => {}
            }
        }
        let read = sources.found.len() + sources.forbidden.len();
        sources.has_more = read > 0 && read < count && !snapshot.has_missed(project);
        sources
    }

    fn get(&self, reference: &Reference) -> Source<'_> {
        match self.found.iter().find(|(one, _)| one == reference) {
            Some((_, Some(source))) => Source::Found(source),
            Some((_, None)) => Source::Absent,
            None if self.forbidden.contains(reference) => Source::Forbidden,
            None => Source::Unknown,
        }
    }
}

/// Whether an event of a hub WorkloadDeployment changes what is needed, or what has to be found out.
fn is_news(change: &Change) -> bool {
    if let Change::Applied {
        before: Some(before),
        now,
    } = change
        && !events::comes_or_goes(change)
        && before.has_spec_text_of(now)
    {
        let is_pending = |one: &Object| one.annotation(EXPECTED_REFERENCED_DATA) == Some(DATA_PENDING);
        let names_less = before.annotation(PREVIOUS_REFERENCES) != now.annotation(PREVIOUS_REFERENCES);
        return names_less || is_pending(now) && !is_pending(before);
    }
    // What is decoded to look at one goes with the copy.
    events::both(change).any(|one| !references::needed_data(&Object::clone(one)).is_empty())
}
