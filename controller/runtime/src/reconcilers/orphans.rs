//! `orphans`: see [`popcell_core::orphans`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations;
use popcell_api::kind::{self, Kind, PROJECT};
use popcell_core::identity;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::orphans::{self, ProjectState};
use popcell_core::plan::{NAMESPACE, Note, Plan, Plane, Target};

use super::{events, hub_namespaces};
use crate::apply::{ApplyError, Difference, Done, ProjectAnswer};
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs, writes};
use crate::sync::lock;

/// When a state is looked at again whose end brings no event: a Namespace that is being deleted, a project that is not
/// engaged.
const AGAIN: Duration = Duration::from_secs(10);

/// Key: a hub namespace ([`hub_namespaces::key`]).
#[derive(Debug, Default)]
pub struct Orphans {
    /// Hub namespaces that were seen with the note that their project is gone.
    noted: Mutex<BTreeSet<String>>,
}

impl Orphans {
    fn noted(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.noted)
    }

    /// Who takes the note away has the project: another installation on this hub, or a person who knows better. It is not
    /// made again.
    fn is_contested(&self, hub_namespace: &Object) -> bool {
        !is_noted(hub_namespace) && self.noted().contains(hub_namespace.name())
    }

    async fn read(&self, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
        let Some(hub_namespace) = hub_namespace(context, live, key) else {
            return Ok(());
        };
        let Some((id, namespace)) = identity::of_namespace(&hub_namespace) else {
            return Ok(());
        };
        let plane = Plane::Project(id.to_owned());
        if context.planes.get(&plane).is_none() {
            ask_for_project(context, live, id, &plane).await?;
            match Snapshot::new(context, live).read_live(&plane, PROJECT, "", id) {
                // Its note is taken away, by us: it is made again when the project ends.
                Some(Some(_)) => {
                    self.noted().remove(&key.name);
                }
                _ if is_noted(&hub_namespace) => {
                    self.noted().insert(key.name.clone());
                }
                _ => {}
            }
            return Ok(());
        }
        self.noted().remove(&key.name);
        context.read_server(live, &plane).await?;
        context.read_namespace(live, &plane, namespace).await?;
        let known = Snapshot::new(context, live)
            .project_namespace(&plane, namespace)
            .known()
            .flatten();
        let empty = events::stored(context, &Plane::Hub, kind::WORKLOAD_DEPLOYMENT, Some(&key.name)).is_empty();
        // Objects that were not read since the last WorkloadDeployment went may be gone.
        if empty || !identity::is_current(&hub_namespace, known.as_deref()) {
            context.reread_namespace(live, &plane, namespace).await?;
        }
        Ok(())
    }
}

impl Reconciler for Orphans {
    fn name(&self) -> &'static str {
        "orphans"
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(self.read(context, live, key))
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, now: Timestamp) -> Option<Plan> {
        let hub = &key.plane;
        let namespace = snapshot.get(hub, NAMESPACE, "", &key.name).known()??;
        let within = |kind| snapshot.in_namespace(hub, kind, &key.name).known();
        let (deployments, copies, policies) = (
            within(kind::WORKLOAD_DEPLOYMENT)?,
            within(kind::INSTANCE)?,
            within(kind::PROPAGATION_POLICY)?,
        );
        let (id, namespace_name) = identity::of_namespace(&namespace).unwrap_or_default();
        let plane = Plane::Project(id.to_owned());
        let in_project = snapshot.in_namespace(&plane, kind::WORKLOAD_DEPLOYMENT, namespace_name);
        let in_project = in_project.as_ref().map(|all| refs(all));
        let project_namespace = snapshot.project_namespace(&plane, namespace_name);
        let engaged = snapshot.context.planes.get(&plane);
        let server = snapshot.server(&plane);
        let project = snapshot.read_live(&plane, PROJECT, "", id);
        let gone = matches!(project, Some(None));
        if engaged.is_none() && gone && self.is_contested(&namespace) {
            return Some(Plan::noted(Note::Orphan(Target::of(hub, NAMESPACE, &namespace))));
        }
        let state = match &engaged {
            Some(engaged) => ProjectState::Engaged {
                uid: engaged.uid(),
                server: server.as_deref().map(Fields::uid),
                namespace: project_namespace.as_ref().map(Option::as_deref),
                deployments: in_project.as_ref().map(Vec::as_slice),
            },
            None => match &project {
                Some(None) => ProjectState::Gone,
                Some(Some(project)) => ProjectState::Listed { uid: project.uid() },
                None => ProjectState::Away,
            },
        };
        let mut plan = orphans::decide(&orphans::Observation {
            namespace: &namespace,
            deployments: &refs(&deployments),
            copies: &refs(&copies),
            policies: &refs(&policies),
            project: state,
            deleted: snapshot
                .context
                .project_removals
                .has(id, namespace.annotation(annotations::UPSTREAM_PROJECT_UID)),
            reclaim: snapshot.context.rules.reclaim_orphans,
            grace: snapshot.context.rules.project_grace,
            now,
        });
        let going = matches!(&project_namespace, Observed::Known(Some(one)) if one.deleting());
        // A Project that leaves the list while it is not engaged enqueues no key: it is looked up in the list.
        let away = engaged.is_none() && !gone && snapshot.context.projects.is_some();
        if going || away {
            plan.requeue_within(AGAIN);
        }
        Some(plan)
    }

    fn executed(&self, context: &Context, key: &Key, plan: &Plan, _: Done) {
        if writes(plan, NAMESPACE)
            && hub_namespace(context, &LiveReads::default(), key).is_some_and(|one| is_noted(&one))
        {
            self.noted().insert(key.name.clone());
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        let concerned = match (plane, kind) {
            (Plane::Hub, NAMESPACE | kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE | kind::PROPAGATION_POLICY)
                if events::is_listed(change) =>
            {
                hub_namespaces::all(context)
            }
            (Plane::Hub, NAMESPACE) if events::is_more_than_status(change) => hub_namespaces::named(change),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT | kind::INSTANCE | kind::PROPAGATION_POLICY)
                if events::comes_or_goes(change) =>
            {
                hub_namespaces::around(change)
            }
            (Plane::Project(id), NAMESPACE) => hub_namespaces::of_namespace(context, id, change),
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::is_listed(change) => {
                context.hub_index.of_project(id)
            }
            (Plane::Project(id), kind::WORKLOAD_DEPLOYMENT) if events::comes_or_goes(change) => {
                hub_namespaces::of_object(context, id, change)
            }
            _ => Vec::new(),
        };
        hub_namespaces::keys(&concerned)
    }

    fn keys_on_disengage(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        let Plane::Project(id) = plane else { return Vec::new() };
        hub_namespaces::keys(&context.hub_index.of_project(id))
    }

    fn count(&self, snapshot: &Snapshot<'_>, plane: &Plane, kind: Kind) -> Option<Difference> {
        if kind != PROJECT {
            return None;
        }
        // While it is unknown nothing is decided, and what was held stays so.
        let Observed::Known(namespaces) = snapshot.all(plane, NAMESPACE) else {
            return Some(Difference {
                partial: true,
                ..Difference::default()
            });
        };
        let (ours, to_delete) = orphans::count_projects(namespaces.iter().map(AsRef::as_ref));
        Some(Difference {
            ours,
            to_delete,
            partial: false,
        })
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        hub_namespaces::keys_on(context, plane)
    }
}

fn is_noted(hub_namespace: &Object) -> bool {
    hub_namespace.annotation(annotations::PROJECT_GONE_SINCE).is_some()
}

fn hub_namespace(context: &Context, live: &LiveReads, key: &Key) -> Option<std::sync::Arc<Object>> {
    Snapshot::new(context, live)
        .get(&Plane::Hub, NAMESPACE, "", &key.name)
        .known()?
}

/// Asks the discovery server whether a project that is not engaged is there. One that the list has is only not Ready.
async fn ask_for_project(context: &Context, live: &mut LiveReads, id: &str, plane: &Plane) -> Result<(), ApplyError> {
    let listed = context.projects.as_ref().map(|projects| projects.get("", id));
    let Some(Observed::Known(listed)) = listed else {
        return Ok(());
    };
    let target = Target::cluster(plane, PROJECT, id);
    if let Some(listed) = listed {
        live.insert(&target, Some(listed));
        return Ok(());
    }
    match context.applier.project(id).await? {
        ProjectAnswer::Gone => live.put(&target, None),
        ProjectAnswer::Is(uid) => {
            let mut found = Object::new(id, &PROJECT.resource());
            found.metadata.uid = Some(uid);
            live.put(&target, Some(found));
        }
        ProjectAnswer::Unasked => {}
    }
    Ok(())
}
