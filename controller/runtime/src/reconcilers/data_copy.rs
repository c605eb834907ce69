//! `data-copy`: see [`popcell_core::data_copy`].

use std::sync::{Arc, Mutex};

use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations::{DATA_PENDING, EXPECTED_REFERENCED_DATA, PREVIOUS_REFERENCES};
use popcell_api::kind::{self, Kind};
use popcell_core::data_copy::{self, Access, ROLE, Source};
use popcell_core::identity::{self, Project};
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{NAMESPACE, Plan, Plane, ROLE_BINDING, Target};
use popcell_core::references::{self, DATA, Reference};

use super::{events, federation, hub_namespaces};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot};
use crate::refusal::ApplyError;
use crate::sync::lock;

/// Name of the reconciler.
pub(super) const DATA_COPY_RECONCILER: &str = "data-copy";

/// So many bytes of sources are held by one reconcile; the next goes on with the others.
const AT_ONCE: usize = 4 << 20;

/// Key: a hub namespace ([`hub_namespaces::key`]).
///
/// ConfigMaps and Secrets are no kinds that are watched, since that takes the right to read all of them: they are read by name, in
/// a project and, without what they hold, in a hub namespace.
#[derive(Debug, Default)]
pub struct DataCopy {
    /// Who the hub takes this process for, as it said last.
    user: Mutex<String>,
}

/// The objects that a reconcile starts from, as the stores have them.
struct Stored {
    namespace: Arc<Object>,
    deployments: Vec<Arc<Object>>,
    /// The project that the namespace names, engaged or not, and its namespace there.
    source: Option<(Plane, String)>,
}

impl Stored {
    fn find(snapshot: &Snapshot<'_>, key: &Key) -> Option<Self> {
        let namespace = snapshot.get(&key.plane, NAMESPACE, "", &key.name).known()??;
        let deployments = snapshot
            .in_namespace(&key.plane, kind::WORKLOAD_DEPLOYMENT, &key.name)
            .known()?;
        let source =
            identity::of_namespace(&namespace).map(|(id, within)| (Plane::Project(id.to_owned()), within.to_owned()));
        Some(Self {
            namespace,
            deployments,
            source,
        })
    }

    fn is_concerned(&self) -> bool {
        data_copy::is_concerned(&self.namespace, self.deployments.iter().map(AsRef::as_ref))
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
            let stored = Stored::find(&Snapshot::new(context, live), key);
            let Some(stored) = stored.filter(Stored::is_concerned) else {
                return Ok(());
            };
            for one in &stored.deployments {
                live.read_for(&key.plane, kind::WORKLOAD_DEPLOYMENT, one);
            }
            if !self.read_copies(context, live, key).await? {
                return Ok(());
            }
            let Some((project, within)) = stored
                .source
                .as_ref()
                .filter(|(one, _)| context.planes.get(one).is_some())
            else {
                return Ok(());
            };
            if let Err(error) = read_sources(context, live, (project, within), &stored).await {
                // What is not needed any more goes all the same.
                live.miss(project, error);
            }
            Ok(())
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let stored = Stored::find(snapshot, key)?;
        if !stored.is_concerned() {
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
            _ if !context.rules.carries_data => Vec::new(),
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
        if context.rules.carries_data {
            hub_namespaces::keys_on(context, plane)
        } else {
            Vec::new()
        }
    }
}

impl DataCopy {
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

/// Reads what a project has of what is needed, and of each that differs the copy as a whole.
async fn read_sources(
    context: &Context,
    live: &mut LiveReads,
    (project, within): (&Plane, &str),
    stored: &Stored,
) -> Result<(), ApplyError> {
    let hub_namespace = stored.namespace.name();
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
    let mut held = 0;
    for Reference { kind, name } in &stored.needed() {
        if held > AT_ONCE {
            return Ok(());
        }
        let target = Target::namespaced(project, *kind, within, name);
        let mut source = match context.applier.read(&target).await {
            Ok(found) => found,
            Err(error) if error.is_forbidden() => {
                live.put_unreadable(&target);
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(source) = &mut source {
            let copy = Snapshot::new(context, live).read_live(&Plane::Hub, *kind, hub_namespace, name);
            let copy = copy.flatten();
            let bytes = data_copy::noted(*kind, source, copy.as_deref(), context.rules.object_bytes);
            if bytes > 0 && copy.is_some() {
                let copy = Target::namespaced(&Plane::Hub, *kind, hub_namespace, name);
                live.put(&copy, context.applier.read(&copy).await?);
            }
            held += bytes;
        }
        live.put(&target, source);
    }
    Ok(())
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
