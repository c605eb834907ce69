//! One hub namespace and what its project says, and what the controller's own decision makes of them. Pure.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::kind;
use popcell_core::{
    identity,
    object::{Fields, Object},
    observed::Observed,
    orphans::{self, ProjectState},
    plan::{Action, NAMESPACE, Note, Plan, Target},
    policy,
};

/// A project's end is noted, then go its WorkloadDeployments, what they held, and the namespace; the rest is room.
const ROUNDS: usize = 8;

/// What was read of one hub namespace. Everything but the namespace itself has metadata only.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The Namespace, which carries our marker.
    pub(super) namespace: Object,
    /// All WorkloadDeployments in it.
    pub(super) deployments: Vec<Object>,
    /// All Instances in it.
    pub(super) copies: Vec<Object>,
    /// All PropagationPolicies in it.
    pub(super) policies: Vec<Object>,
    /// What in it cannot be read, and why.
    pub(super) unreadable: Vec<(Target, String)>,
    /// Its project.
    pub(super) project: Project,
}

/// What the servers said of the project that a hub namespace names.
#[derive(Clone, Debug)]
pub(super) enum Project {
    /// Its API server answered.
    Engaged {
        /// Uid of the Project; only in mode `milo`.
        uid: Option<String>,
        /// Uid of its `kube-system`; only in mode `single`.
        server: Option<String>,
        /// Its Namespace; `None` = NotFound.
        namespace: Option<Box<Object>>,
        /// All WorkloadDeployments in that Namespace.
        deployments: Vec<Object>,
    },
    /// Unknown, for this reason.
    Unknown(String),
    /// The discovery server answered NotFound, or another uid than the hub namespace carries.
    Gone,
}

/// Where a namespace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The project's Namespace lives and is this one's.
    Current,
    /// The project's Namespace is gone, or was recreated.
    Outlived,
    /// The project's Namespace is not there, and nothing says that this server is the one that had it.
    Unproven,
    /// The hub namespace says that its project is on another server than the one that was given.
    Elsewhere,
    /// The project is gone, or was recreated.
    Gone,
    /// See [`Project::Unknown`].
    Unknown,
}

/// What would become of a namespace if no other client did anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Foreseen {
    /// What would be deleted, in this order.
    pub(super) to_delete: Vec<Target>,
    /// Orphans that would stay, because nothing proves whose they are.
    pub(super) stays: Vec<Target>,
}

impl Subject {
    /// Project id and namespace in it; empty where the labels do not say.
    pub(super) fn owner(&self) -> (&str, &str) {
        identity::of_namespace(&self.namespace).unwrap_or_default()
    }

    pub(super) fn standing(&self) -> Standing {
        let (uid, server, namespace) = match &self.project {
            Project::Unknown(_) => return Standing::Unknown,
            Project::Gone => return Standing::Gone,
            Project::Engaged {
                uid, server, namespace, ..
            } => (uid.as_deref(), server.as_deref(), namespace.as_deref()),
        };
        let of = |uid, server| identity::Project {
            id: self.owner().0,
            uid,
            server,
        };
        if identity::is_of_another_server(&self.namespace, of(None, server)) {
            Standing::Elsewhere
        } else if !identity::same_project(&self.namespace, of(uid, None)) {
            Standing::Gone
        } else if identity::is_current(&self.namespace, namespace) {
            Standing::Current
        } else if uid.is_none() && identity::server_of(&self.namespace).is_none() {
            Standing::Unproven
        } else {
            Standing::Outlived
        }
    }

    /// Uid of the server that was given; empty where it is not asked for.
    pub(super) fn server(&self) -> &str {
        match &self.project {
            Project::Engaged { server, .. } => server.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// The controller's decision, with `--reclaim-orphans`, and that on the policies of a namespace that nothing can fill again;
    /// nothing where another server would have to be asked.
    pub(super) fn plan(&self, grace: Duration, now: Timestamp) -> Plan {
        if self.standing() == Standing::Elsewhere {
            return Plan::default();
        }
        let in_project: Vec<&Object>;
        let project = match &self.project {
            Project::Unknown(_) => ProjectState::Away,
            Project::Gone => ProjectState::Gone,
            Project::Engaged {
                uid,
                server,
                namespace,
                deployments,
            } => {
                in_project = refs(deployments);
                ProjectState::Engaged {
                    uid: uid.as_deref(),
                    server: server.as_deref(),
                    namespace: Observed::Known(namespace.as_deref()),
                    deployments: Observed::Known(&in_project),
                }
            }
        };
        let mut plan = orphans::decide(&orphans::Observation {
            namespace: &self.namespace,
            deployments: &refs(&self.deployments),
            copies: &refs(&self.copies),
            policies: &refs(&self.policies),
            project,
            deleted: false,
            reclaim: true,
            grace,
            now,
        });
        // What cannot be read holds its namespace, and may need a policy.
        if !self.unreadable.is_empty() {
            plan.actions.retain(|action| {
                !matches!(action.target().kind, NAMESPACE | kind::PROPAGATION_POLICY)
                    || !matches!(action, Action::Delete(_))
            });
            return plan;
        }
        if self.standing() == Standing::Outlived && self.deployments.is_empty() {
            for one in &self.policies {
                let found = policy::decide(&policy::Observation {
                    namespace: Some(&self.namespace),
                    namespace_name: self.namespace.name(),
                    name: one.name(),
                    policy: Some(one),
                    hub_deployments: &[],
                    project_deployments: Observed::Known(&[]),
                });
                plan.actions.extend(found.actions);
            }
        }
        plan
    }

    /// Carries the plan out in thought, without grace, until it has nothing more to do.
    pub(super) fn foresee(&self, now: Timestamp) -> Foreseen {
        let mut later = self.clone();
        for objects in [&mut later.deployments, &mut later.copies, &mut later.policies] {
            // They go by themselves.
            objects.retain(|one| !one.deleting());
        }
        let mut foreseen = Foreseen::default();
        for _ in 0..ROUNDS {
            let plan = later.plan(Duration::ZERO, now);
            let mut acted = false;
            for action in &plan.actions {
                acted |= later.imagine(action);
                if let Action::Delete(delete) = action {
                    foreseen.to_delete.push(delete.target.clone());
                }
            }
            let noted = plan.notes.into_iter().filter_map(|note| match note {
                Note::Orphan(target) => Some(target),
                _ => None,
            });
            foreseen.stays = noted.filter(|one| !foreseen.to_delete.contains(one)).collect();
            if !acted || foreseen.to_delete.iter().any(|target| target.kind == NAMESPACE) {
                break;
            }
        }
        foreseen
    }

    /// Whether something is different now.
    fn imagine(&mut self, action: &Action) -> bool {
        match action {
            Action::Create { .. } => false,
            Action::Patch(patch) => {
                let mut value = serde_json::to_value(&self.namespace).unwrap_or_default();
                if json_patch::patch(&mut value, &patch.patch).is_err() {
                    return false;
                }
                let patched = serde_json::from_value(value).map(|namespace| self.namespace = namespace);
                patched.is_ok()
            }
            Action::Delete(delete) => {
                let objects = match delete.target.kind {
                    kind::WORKLOAD_DEPLOYMENT => &mut self.deployments,
                    kind::INSTANCE => &mut self.copies,
                    kind::PROPAGATION_POLICY => &mut self.policies,
                    NAMESPACE => return true,
                    _ => return false,
                };
                let before = objects.len();
                objects.retain(|one| one.name() != delete.target.name);
                objects.len() < before
            }
        }
    }

    /// Whether something in it is on its way out.
    pub(super) fn is_moving(&self) -> bool {
        let all = [&self.deployments, &self.copies, &self.policies];
        all.into_iter().flatten().any(Fields::deleting)
    }

    /// When an object of it was created.
    pub(super) fn created(&self, target: &Target) -> Option<Timestamp> {
        let objects = match target.kind {
            kind::WORKLOAD_DEPLOYMENT => &self.deployments,
            kind::INSTANCE => &self.copies,
            kind::PROPAGATION_POLICY => &self.policies,
            _ => return self.namespace.created(),
        };
        let found = objects.iter().find(|one| one.name() == target.name);
        found.and_then(Fields::created)
    }
}

fn refs(objects: &[Object]) -> Vec<&Object> {
    objects.iter().collect()
}

#[cfg(test)]
pub(super) mod tests;
