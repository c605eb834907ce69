//! `orphans`: what is left in hub namespaces that nobody stands behind (design.md 7.5-4, -14; 5 as section 11 replaces it).
//!
//! A project is *gone* only by a live answer of the discovery server, never because it is away, and never in mode
//! `single`. What is gone without a deletion that we saw is counted and listed; it is deleted only when told to.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::kind::Kind;
use popcell_api::names::HUB_NAMESPACE_PREFIX;
use popcell_api::{annotations, kind};

use crate::conditions::seconds;
use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Brake, NAMESPACE, Note, Plan, Plane, Proof, Target};

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
        /// The project's Namespace, read live; `Known(None)` = NotFound.
        namespace: Observed<Option<&'a Object>>,
        /// All WorkloadDeployments of that namespace.
        deployments: Observed<&'a [&'a Object]>,
    },
    /// It exists, or nobody knows.
    Away,
    /// The discovery server answered NotFound, or another uid than the namespace carries.
    Gone,
}

/// What a pass over one hub namespace looks at. The hub is this reconciler's own plane and known.
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
    /// Delete orphans (`--reclaim-orphans`, `popcell orphans --delete`).
    pub reclaim: bool,
    /// See [`PROJECT_GRACE`].
    pub grace: Duration,
    /// The time of the pass.
    pub now: Timestamp,
}

/// Decides one pass.
pub fn decide(seen: &Observation<'_>) -> Plan {
    if !seen.namespace.marked() || seen.namespace.deleting() {
        return Plan::dropped("the namespace is not ours, or going");
    }
    let Some((project, namespace_name)) = identity::of_namespace(seen.namespace) else {
        return Plan::dropped("the namespace does not say whose it is");
    };
    let pass = Pass {
        seen,
        project,
        namespace_name,
        plan: Plan::independent(),
    };
    match seen.project {
        ProjectState::Away => pass.plan,
        ProjectState::Gone => pass.gone(),
        ProjectState::Engaged { uid, .. } if !identity::same_project(seen.namespace, Project { id: project, uid }) => {
            pass.gone()
        }
        ProjectState::Engaged {
            namespace, deployments, ..
        } => pass.engaged(namespace, deployments),
    }
}

struct Pass<'a> {
    seen: &'a Observation<'a>,
    project: &'a str,
    namespace_name: &'a str,
    plan: Plan,
}

impl Pass<'_> {
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
            let edit =
                Edit::of(&Plane::Hub, NAMESPACE, namespace).annotation(annotations::PROJECT_GONE_SINCE, Some(&now));
            self.plan.actions.extend(edit.action());
            self.plan.requeue_within(self.seen.grace);
            return self.plan;
        };
        let age = Duration::try_from(self.seen.now.duration_since(since)).unwrap_or_default();
        let left = self.seen.grace.saturating_sub(age);
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
            self.delete_namespace(gone);
        }
        self.plan
    }

    fn engaged(mut self, namespace: Observed<Option<&Object>>, deployments: Observed<&[&Object]>) -> Plan {
        let edit =
            Edit::of(&Plane::Hub, NAMESPACE, self.seen.namespace).annotation(annotations::PROJECT_GONE_SINCE, None);
        self.plan.actions.extend(edit.action());
        let (Observed::Known(namespace), Observed::Known(deployments)) = (namespace, deployments) else {
            return self.plan;
        };
        let plane = Plane::Project(self.project.to_owned());
        if identity::is_current(self.seen.namespace, namespace) {
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
                    self.orphan(kind::WORKLOAD_DEPLOYMENT, orphan, Proof::Gone { source, uid });
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
            self.delete_namespace(gone);
            return self.plan;
        }
        for orphan in self
            .seen
            .deployments
            .iter()
            .filter(|one| one.marked() && !one.deleting())
        {
            self.orphan(kind::WORKLOAD_DEPLOYMENT, orphan, gone.clone());
        }
        if self.seen.deployments.is_empty() {
            for orphan in self.seen.copies.iter().filter(|one| one.marked() && !one.deleting()) {
                self.orphan(kind::INSTANCE, orphan, gone.clone());
            }
        }
        self.plan
    }

    fn orphan(&mut self, kind: Kind, orphan: &Object, proof: Proof) {
        self.plan
            .notes
            .push(Note::Orphan(Target::of(&Plane::Hub, kind, orphan)));
        if self.seen.reclaim {
            self.plan.actions.push(delete(kind, orphan, vec![proof]));
        }
    }

    fn delete_all(&mut self, kind: Kind, objects: &[&Object], proof: &Proof) {
        for object in objects.iter().filter(|one| !one.deleting()) {
            if object.marked() {
                self.plan.actions.push(delete(kind, object, vec![proof.clone()]));
            } else {
                let target = Target::of(&Plane::Hub, kind, object);
                self.plan.notes.push(Note::Orphan(target));
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.seen.deployments.is_empty() && self.seen.copies.is_empty() && self.seen.policies.is_empty()
    }

    fn delete_namespace(&mut self, proof: Proof) {
        let namespace = self.seen.namespace;
        let mut proofs = vec![proof];
        for kind in [kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE, kind::PROPAGATION_POLICY] {
            proofs.push(Proof::NoneLeft {
                plane: Plane::Hub,
                kind,
                namespace: namespace.name().to_owned(),
                selector: String::new(),
            });
        }
        self.plan.actions.push(delete(NAMESPACE, namespace, proofs));
    }
}

fn delete(kind: Kind, object: &Object, proofs: Vec<Proof>) -> Action {
    Action::delete(&Plane::Hub, kind, object, proofs, Brake::Exempt)
}
