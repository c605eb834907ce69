//! `orphans`: what is left in hub namespaces and has no owner in a project any more.
//!
//! A project is *gone* only by a live answer of the discovery server, never because it is unreachable, and never in mode
//! `single`. What is gone without a deletion that we saw is counted and listed; it is deleted only on a command
//! (`--reclaim-orphans`, `popcell orphans --delete`).
//!
//! In mode `single` nothing says which server the project is but a kubeconfig, and a wrong one makes an orphan of
//! everything. So a hub namespace says it itself ([`annotations::UPSTREAM_SERVER_UID`]), and what it holds is deleted only
//! because of an answer of that server. One that does not say is stamped while its Namespace lives there.
//!
//! Why: `docs/decisions/14-orphans.md`.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use popcell_api::kind::Kind;
use popcell_api::names::HUB_NAMESPACE_PREFIX;
use popcell_api::{annotations, kind};

use crate::conditions::{age, seconds};
use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, NAMESPACE, Note, Plan, Plane, Proof, Target};

#[cfg(test)]
mod tests;

/// How long nothing is cleaned after a project was found to be gone (default of `--project-grace`).
pub const PROJECT_GRACE: Duration = Duration::from_hours(1);

/// The project that a hub namespace names.
#[derive(Clone, Copy, Debug)]
pub enum ProjectState<'a> {
    /// It is engaged.
    Engaged {
        /// Uid of the Project; only in mode `milo`.
        uid: Option<&'a str>,
        /// Uid of its server's `kube-system`; only in mode `single`, and `None` until it was read.
        server: Option<&'a str>,
        /// The project's Namespace, read live; `Known(None)` = NotFound.
        namespace: Observed<Option<&'a Object>>,
        /// All WorkloadDeployments of that namespace.
        deployments: Observed<&'a [&'a Object]>,
    },
    /// It exists in whatever state, and is not engaged.
    Listed {
        /// Uid of the Project.
        uid: &'a str,
    },
    /// Unknown.
    Away,
    /// The discovery server answered NotFound, or another uid than the namespace carries.
    Gone,
}

/// What a reconcile over one hub namespace looks at. The hub is this reconciler's own plane and known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The hub Namespace.
    pub namespace: &'a Object,
    /// All WorkloadDeployments in it.
    pub deployments: &'a [&'a Object],
    /// All Instances in it.
    pub copies: &'a [&'a Object],
    /// All PropagationPolicies in it.
    pub policies: &'a [&'a Object],
    /// Its project.
    pub project: ProjectState<'a>,
    /// Whether the Project that it was made for was seen while it was being deleted.
    pub deleted: bool,
    /// Delete orphans (`--reclaim-orphans`, `popcell orphans --delete`).
    pub reclaim: bool,
    /// See [`PROJECT_GRACE`].
    pub grace: Duration,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    if !seen.namespace.marked() || seen.namespace.deleting() {
        return Plan::dropped("the namespace is not ours, or going");
    }
    let Some((project, namespace_name)) = identity::of_namespace(seen.namespace) else {
        return Plan::dropped("the labels of the namespace name no project and namespace");
    };
    let reconcile = Reconcile {
        seen,
        project,
        namespace_name,
        plan: Plan::independent(),
    };
    let of = |uid, server| Project {
        id: project,
        uid,
        server,
    };
    match seen.project {
        ProjectState::Away => reconcile.plan,
        ProjectState::Gone => reconcile.gone(),
        ProjectState::Listed { uid } if !identity::same_project(seen.namespace, of(Some(uid), None)) => {
            reconcile.gone()
        }
        ProjectState::Listed { .. } => reconcile.back(),
        ProjectState::Engaged { server, .. } if identity::is_of_another_server(seen.namespace, of(None, server)) => {
            reconcile.of_another_server(server.unwrap_or_default())
        }
        ProjectState::Engaged { uid, .. } if !identity::same_project(seen.namespace, of(uid, None)) => reconcile.gone(),
        ProjectState::Engaged {
            uid,
            server,
            namespace,
            deployments,
        } => reconcile.engaged(of(uid, server), namespace, deployments),
    }
}

/// How many projects hub namespaces name, and how many of them are noted as gone, without those that a user deleted: the
/// deletion guard counts these where a project's end is the reason of a delete.
pub fn count_projects<'a>(hub_namespaces: impl Iterator<Item = &'a Object>) -> (usize, usize) {
    let (mut all, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for namespace in hub_namespaces.filter(|one| one.marked()) {
        let Some((project, _)) = identity::of_namespace(namespace) else {
            continue;
        };
        if namespace.annotation(annotations::PROJECT_DELETED).is_some() {
            continue;
        }
        let uid = namespace.annotation(annotations::UPSTREAM_PROJECT_UID);
        all.insert((project, uid));
        if namespace.annotation(annotations::PROJECT_GONE_SINCE).is_some() {
            gone.insert((project, uid));
        }
    }
    (all.len(), gone.len())
}

/// Takes the note of a project's end off a hub Namespace.
pub(crate) fn unnoted(namespace: &Object) -> Edit<'_> {
    [annotations::PROJECT_GONE_SINCE, annotations::PROJECT_DELETED]
        .iter()
        .fold(Edit::of(&Plane::Hub, NAMESPACE, namespace), |edit, key| {
            edit.annotation(key, None)
        })
}

struct Reconcile<'a> {
    seen: &'a Observation<'a>,
    project: &'a str,
    namespace_name: &'a str,
    plan: Plan,
}

impl Reconcile<'_> {
    fn gone(mut self) -> Plan {
        let namespace = self.seen.namespace;
        let Some(uid) = namespace.annotation(annotations::UPSTREAM_PROJECT_UID) else {
            // Nothing says which Project it was: no proof is possible.
            let target = Target::of(&Plane::Hub, NAMESPACE, namespace);
            self.plan.notes.push(Note::Orphan(target));
            return self.plan;
        };
        let gone = Proof::ProjectGone {
            project: self.project.to_owned(),
            uid: uid.to_owned(),
        };
        let noted = namespace
            .annotation(annotations::PROJECT_GONE_SINCE)
            .and_then(|since| since.parse::<Timestamp>().ok());
        let Some(since) = noted else {
            let now = seconds(self.seen.now);
            let edit = Edit::of(&Plane::Hub, NAMESPACE, namespace)
                .annotation(annotations::PROJECT_GONE_SINCE, Some(&now))
                .annotation(annotations::PROJECT_DELETED, self.seen.deleted.then_some("true"));
            self.plan.actions.extend(edit.action());
            self.plan.requeue_within(self.seen.grace);
            return self.plan;
        };
        let left = self.seen.grace.saturating_sub(age(since, self.seen.now));
        if !left.is_zero() {
            self.plan.requeue_within(left);
            return self.plan;
        }
        self.delete_all(kind::WORKLOAD_DEPLOYMENT, self.seen.deployments, &gone);
        if self.seen.deployments.is_empty() {
            // While one is left, its cell may still write copies, and its policy takes it out of the cell.
            self.delete_all(kind::INSTANCE, self.seen.copies, &gone);
            self.delete_all(kind::PROPAGATION_POLICY, self.seen.policies, &gone);
        }
        if self.is_empty() {
            self.delete_namespace(vec![gone], self.deletion_guard());
        }
        self.plan
    }

    /// The project is there: a note of its end would count against it when it really ends.
    fn back(mut self) -> Plan {
        self.plan.actions.extend(unnoted(self.seen.namespace).action());
        self.plan
    }

    /// What the server that was given does not have proves nothing. Where orphans are to be deleted, that they are not is
    /// said by the proof that fails, and by the deletion guard where there are many.
    fn of_another_server(mut self, server: &str) -> Plan {
        let namespace = self.seen.namespace;
        let stamped = identity::server_of(namespace).unwrap_or_default().to_owned();
        self.plan.notes.push(Note::AnotherServer {
            target: Target::of(&Plane::Hub, NAMESPACE, namespace),
            stamped: stamped.clone(),
            server: server.to_owned(),
        });
        let proof = Proof::Server {
            project: self.project.to_owned(),
            uid: stamped,
        };
        let ours = |one: &&&Object| self.seen.reclaim && one.marked() && !one.deleting();
        for one in self.seen.deployments.iter().filter(ours) {
            let proofs = vec![proof.clone()];
            let delete = delete(kind::WORKLOAD_DEPLOYMENT, one, proofs, DeletionGuard::Applies);
            self.plan.actions.push(delete);
        }
        self.plan
    }

    /// What must be proven beside the absence itself; `None` where nothing says that this is the project's server.
    fn of_server(&self, project: Project<'_>, is_current: bool) -> Option<Vec<Proof>> {
        if project.uid.is_some() {
            // Below its Project's path there is no other.
            return Some(Vec::new());
        }
        let server = project.server?;
        let is_its = is_current || identity::server_of(self.seen.namespace) == Some(server);
        let proof = Proof::Server {
            project: self.project.to_owned(),
            uid: server.to_owned(),
        };
        is_its.then(|| vec![proof])
    }

    fn engaged(
        mut self,
        project: Project<'_>,
        namespace: Observed<Option<&Object>>,
        deployments: Observed<&[&Object]>,
    ) -> Plan {
        let is_current = namespace
            .known()
            .is_some_and(|found| identity::is_current(self.seen.namespace, found));
        let mut edit = unnoted(self.seen.namespace);
        if let Some(server) = project.server.filter(|_| is_current) {
            edit = edit.annotation(annotations::UPSTREAM_SERVER_UID, Some(server));
        }
        self.plan.actions.extend(edit.action());
        let plane = Plane::Project(self.project.to_owned());
        let (Observed::Known(_), Observed::Known(deployments)) = (namespace, deployments) else {
            self.plan.notes.push(Note::Unknown(plane));
            return self.plan;
        };
        let server = self.of_server(project, is_current);
        if is_current {
            for orphan in self
                .seen
                .deployments
                .iter()
                .filter(|one| one.marked() && !one.deleting())
            {
                // One of another uid under the name is for `federation` to settle.
                if deployments.iter().all(|one| one.name() != orphan.name()) {
                    let source =
                        Target::namespaced(&plane, kind::WORKLOAD_DEPLOYMENT, self.namespace_name, orphan.name());
                    let uid = orphan.annotation(annotations::UPSTREAM_UID).map(str::to_owned);
                    let gone = Proof::Gone { source, uid };
                    self.orphan(kind::WORKLOAD_DEPLOYMENT, orphan, server.as_ref(), gone);
                }
            }
            return self.plan;
        }
        let uid = self.seen.namespace.name().strip_prefix(HUB_NAMESPACE_PREFIX);
        let gone = Proof::Gone {
            source: Target::cluster(&plane, NAMESPACE, self.namespace_name),
            uid: uid.map(str::to_owned),
        };
        if self.is_empty() {
            if let Some(mut proofs) = server {
                proofs.push(gone);
                self.delete_namespace(proofs, DeletionGuard::Exempt);
            } else {
                let target = Target::of(&Plane::Hub, NAMESPACE, self.seen.namespace);
                self.plan.notes.push(Note::Orphan(target));
            }
            return self.plan;
        }
        for orphan in self
            .seen
            .deployments
            .iter()
            .filter(|one| one.marked() && !one.deleting())
        {
            self.orphan(kind::WORKLOAD_DEPLOYMENT, orphan, server.as_ref(), gone.clone());
        }
        if self.seen.deployments.is_empty() {
            for orphan in self.seen.copies.iter().filter(|one| one.marked() && !one.deleting()) {
                self.orphan(kind::INSTANCE, orphan, server.as_ref(), gone.clone());
            }
        }
        self.plan
    }

    fn orphan(&mut self, kind: Kind, orphan: &Object, server: Option<&Vec<Proof>>, gone: Proof) {
        self.plan
            .notes
            .push(Note::Orphan(Target::of(&Plane::Hub, kind, orphan)));
        if let Some(server) = server.filter(|_| self.seen.reclaim) {
            let proofs = server.iter().cloned().chain([gone]).collect();
            // A flag that stands is no command: it was meant for other orphans.
            self.plan
                .actions
                .push(delete(kind, orphan, proofs, DeletionGuard::Applies));
        }
    }

    fn delete_all(&mut self, kind: Kind, objects: &[&Object], proof: &Proof) {
        for object in objects.iter().filter(|one| !one.deleting()) {
            if object.marked() {
                let proofs = vec![proof.clone()];
                self.plan
                    .actions
                    .push(delete(kind, object, proofs, self.deletion_guard()));
            } else {
                let target = Target::of(&Plane::Hub, kind, object);
                self.plan.notes.push(Note::Orphan(target));
            }
        }
    }

    fn deletion_guard(&self) -> DeletionGuard {
        match self.seen.namespace.annotation(annotations::PROJECT_DELETED) {
            Some(_) => DeletionGuard::Exempt,
            None => DeletionGuard::With(kind::PROJECT),
        }
    }

    fn is_empty(&self) -> bool {
        self.seen.deployments.is_empty() && self.seen.copies.is_empty() && self.seen.policies.is_empty()
    }

    fn delete_namespace(&mut self, mut proofs: Vec<Proof>, deletion_guard: DeletionGuard) {
        let namespace = self.seen.namespace;
        for kind in [kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE, kind::PROPAGATION_POLICY] {
            proofs.push(Proof::NoneLeft {
                plane: Plane::Hub,
                kind,
                namespace: namespace.name().to_owned(),
                selector: String::new(),
            });
        }
        self.plan
            .actions
            .push(delete(NAMESPACE, namespace, proofs, deletion_guard));
    }
}

fn delete(kind: Kind, object: &Object, proofs: Vec<Proof>, deletion_guard: DeletionGuard) -> Action {
    Action::delete(&Plane::Hub, kind, object, proofs, deletion_guard)
}
