//! `federation`: a WorkloadDeployment of a project becomes one of the hub, and its status comes back.
//!
//! - The hub namespace is named by the uid of the project's Namespace; only while that lives is anything written there.
//! - A hub WorkloadDeployment is changed only when its `upstream-uid` is this one's, or when it has none and was made for
//!   the same Workload. One of another uid goes only on proof that this one is the living one.
//! - A WorkloadDeployment that is finalising deletes what was made for its own uid and nothing else.
//! - One that no Workload asks for is carried only to a city that the project has a usable LocationBinding of. Without
//!   one, running workloads are unaffected, and may become fewer.
//! - A reference to an object of the own namespace loses that namespace, which has another name on the hub.
//! - With each change of its template it has to be found out again what a city is to have of ConfigMaps and Secrets ([`crate::data_copy`]).
//! - Reserved keys of a template ([`crate::reserved`]) stay in the project.
//! - The size of its instance type goes with it, from the platform's catalogue ([`crate::instance_types`]) and never from the project.
//!
//! The runtime enqueues it on its own events, those of the hub WorkloadDeployment ([`crate::identity::of_deployment`]), of
//! the hub Namespace, of the ResourceBinding, of LocationBindings and Workloads, and of siblings with another spelling of
//! the city.
//!
//! Why: `docs/decisions/01-city-is-fixed.md`, `docs/decisions/04-hub-namespace-identity.md` and
//! `docs/decisions/07-takeover.md`.

mod hub;
mod mirror;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeSet;

use jiff::Timestamp;
use popcell_api::conditions::{messages, reasons};
use popcell_api::{annotations, finalizers, kind, labels};
use serde_json::Value;

use crate::bindings::usable_cities;
use crate::conditions::{self, Condition};
use crate::derived;
use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::instance_types::{self, Catalogue, Unsized};
use crate::names;
use crate::object::{Excess, Fields, Object};
use crate::observed::Observed;
use crate::plan::{Note, Plan, Plane, Target, Terminal};
use crate::rejection::{self, Rejection};
use crate::sizing::Described;
use crate::spec_echoes::ExplainSpec;
use crate::{paused, policy};

/// Where a WorkloadDeployment has the spec of an Instance.
const INSTANCE: &str = "/spec/template/spec";

/// Reason of Available=False while a deletion waits for a plane that is unreachable.
pub const DELETING: &str = "Deleting";

/// What a reconcile looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The project; an empty id is dropped.
    pub project: Project<'a>,
    /// The WorkloadDeployment in the project.
    pub deployment: &'a Object,
    /// All WorkloadDeployments of its namespace in the project that may hold the city, itself included: see [`is_served`].
    pub siblings: &'a [&'a Object],
    /// The Workload that it says it is made from ([`derived::claimed`]); `Known(None)` = there is none.
    pub workload: Observed<Option<&'a Object>>,
    /// All LocationBindings of the project.
    pub bindings: Observed<&'a [&'a Object]>,
    /// The project's Namespace, read live; `Known(None)` = NotFound.
    pub namespace: Observed<Option<&'a Object>>,
    /// What the hub holds of it.
    pub hub: Observed<Hub<'a>>,
    /// The instance types.
    pub types: Observed<&'a Catalogue>,
    /// Whether ConfigMaps and Secrets are carried ([`crate::data_copy`]).
    pub carries_data: bool,
    /// What the hub's server made of earlier writes.
    pub spec_echoes: &'a dyn ExplainSpec,
    /// What it, or the project's, refused of the last reconcile.
    pub rejected: &'a [Rejection],
    /// What a server refuses elsewhere: of the policy of its city, or of what shows its Instances in the project.
    pub elsewhere: Option<&'a Rejection>,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// The hub as far as it concerns one WorkloadDeployment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hub<'a> {
    /// Namespaces that are labelled with the project and namespace, and the one that is named by the Namespace's uid.
    pub namespaces: &'a [&'a Object],
    /// All WorkloadDeployments in those namespaces.
    pub deployments: &'a [&'a Object],
    /// The policy of the city ([`names::city_policy`]) in the current one of them.
    pub policy: Option<&'a Object>,
    /// The ResourceBinding of the hub WorkloadDeployment.
    pub binding: Option<&'a Object>,
    /// An object of another client at the name of a copy that it needs ([`crate::reference_copy`]).
    pub held: Option<&'a Target>,
}

/// Decides one reconcile.
pub fn decide(observation: &Observation<'_>) -> Plan {
    if observation.project.id.is_empty() {
        return Plan::dropped("no project");
    }
    let reconcile = Reconcile {
        seen: observation,
        plane: Plane::Project(observation.project.id.to_owned()),
        plan: Plan::default(),
    };
    reconcile.decide()
}

/// Whether a WorkloadDeployment may be carried to its city: the project has a usable binding. What says so may be unknown; what
/// a living Workload asks for had one when it was made, and is carried until more is known.
pub fn is_served(
    deployment: &Object,
    workload: Observed<Option<&Object>>,
    usable: Observed<&BTreeSet<&str>>,
) -> Observed<bool> {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    match (usable, workload) {
        (Observed::Known(usable), _) => Observed::Known(usable.contains(city)),
        (Observed::Unknown, Observed::Known(Some(workload))) if derived::is_of(deployment, workload) => {
            Observed::Known(true)
        }
        (Observed::Unknown, _) => Observed::Unknown,
    }
}

struct Reconcile<'a> {
    seen: &'a Observation<'a>,
    plane: Plane,
    plan: Plan,
}

impl<'a> Reconcile<'a> {
    fn decide(mut self) -> Plan {
        let deployment = self.seen.deployment;
        if paused::is_paused(deployment) {
            return paused::plan(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment, self.seen.now);
        }
        if deployment.deleting() {
            return self.finalise();
        }
        if let Some(excess) = deployment.excess() {
            return self.exceeded(excess);
        }
        if !deployment.has_finalizer(finalizers::FEDERATOR) {
            let edit =
                Edit::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment).with_finalizer(finalizers::FEDERATOR);
            self.plan.actions.extend(edit.action());
            return self.reported_rejection(None);
        }
        let city = deployment.text("/spec/cityCode").unwrap_or_default();
        if let Some((reason, message)) = names::fault(city, deployment.name()) {
            return self.terminal(reason, message);
        }
        let namespace = match self.seen.namespace {
            Observed::Known(Some(namespace)) if !namespace.deleting() => namespace,
            Observed::Known(_) => return Plan::dropped("the namespace is gone or going"),
            Observed::Unknown => {
                self.plan.notes.push(Note::Unknown(self.plane.clone()));
                return self.plan;
            }
        };
        let usable = self.seen.bindings.map(usable_cities);
        let served = is_served(deployment, self.seen.workload, usable.as_ref());
        let Observed::Known(hub) = self.seen.hub else {
            self.plan.notes.push(Note::Unknown(Plane::Hub));
            if served == Observed::Known(false) {
                return self.unserved(city, None);
            }
            return match mirror::first(deployment, self.seen.now) {
                Some(status) => self.with_status(status),
                None => self.plan,
            };
        };
        let hub_namespace = names::hub_namespace(namespace.uid());
        match served {
            Observed::Known(true) => {}
            Observed::Known(false) => {
                self.lower_what_is_there();
                let made = self.mine(&hub, &hub_namespace);
                let workload = self.seen.workload.known().flatten();
                // Its Workload reports the city; what it asks for is all there.
                if workload.is_some_and(|workload| derived::is_of(deployment, workload))
                    && made.is_some_and(|made| self.is_carried_whole(made))
                {
                    return self.mirrored(&hub, made);
                }
                return self.unserved(city, made);
            }
            Observed::Unknown => {
                self.plan.notes.push(Note::Unknown(self.plane.clone()));
                self.lower_what_is_there();
                let made = self.mine(&hub, &hub_namespace);
                return self.mirrored(&hub, made);
            }
        }
        if let Some(other) = self.other_spelling(&hub, &hub_namespace, city) {
            let message = format!("City code {city} is in use as {other} in this namespace: use one spelling");
            self.lower_what_is_there();
            let status = mirror::overlay(
                deployment,
                &unavailable(reasons::CITY_CODE_CONFLICT, message),
                self.seen.now,
            );
            return self.with_status(status);
        }
        let made = self.mine(&hub, &hub_namespace);
        match self.size_of(deployment.at(INSTANCE), made) {
            Ok(_) => {}
            Err(Unsized::NotFound(name)) => return self.unsized_type(&hub, made, &name),
            Err(Unsized::Unknown) => {
                self.plan.notes.push(Note::Unknown(Plane::Discovery));
                self.lower_what_is_there();
                return self.mirrored(&hub, made);
            }
        }
        let foreign = self.carry(&hub, namespace, &hub_namespace);
        if foreign {
            let message = format!("WorkloadDeployment {} is held by another owner", deployment.name());
            let reported = unavailable(reasons::NAME_CONFLICT, message);
            let status = mirror::overlay(deployment, &reported, self.seen.now);
            return self.with_status(status);
        }
        let made = self.mine(&hub, &hub_namespace);
        self.mirrored(&hub, made)
    }

    /// The plan with what the hub says.
    fn mirrored(mut self, hub: &Hub<'a>, made: Option<&Object>) -> Plan {
        let deployment = self.seen.deployment;
        if let Some((made, excess)) = made.and_then(|made| Some((made, made.excess()?))) {
            let message = format!(
                "What city {} reports of WorkloadDeployment {} {excess}: it is not shown",
                deployment.text("/spec/cityCode").unwrap_or_default(),
                deployment.name()
            );
            let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, made);
            self.plan.notes.push(Note::Excess(target, excess));
            let status = mirror::stopped(deployment, None, reasons::LIMIT_EXCEEDED, &message, self.seen.now);
            return self.with_status(status);
        }
        let (status, requeue) = mirror::status(deployment, made, hub.binding, self.seen.now);
        if let Some(delay) = requeue {
            self.plan.requeue_within(delay);
        }
        let status = match hub.held {
            Some(held) => {
                let message = messages::held_on_the_hub(held.kind.kind, &held.name);
                let reason = reasons::NAME_CONFLICT;
                Some(mirror::stopped(deployment, status, reason, &message, self.seen.now))
            }
            None => status,
        };
        let status = match made.and_then(|made| made.annotation(annotations::REFERENCED_DATA_ERROR)) {
            Some(message) => {
                let reason = reasons::REFERENCED_DATA_NOT_READY;
                Some(mirror::stopped(deployment, status, reason, message, self.seen.now))
            }
            None => status,
        };
        self.reported_rejection(status)
    }

    /// With this status, and in it what a server refuses of the plan.
    fn reported_rejection(self, status: Option<Value>) -> Plan {
        let rejection = rejection::of_plan(&self.plan, self.seen.rejected).or(self.seen.elsewhere);
        let status = match rejection.map(Rejection::message) {
            Some(message) => {
                let deployment = self.seen.deployment;
                Some(mirror::stopped(
                    deployment,
                    status,
                    reasons::REJECTED,
                    &message,
                    self.seen.now,
                ))
            }
            None => status,
        };
        match status {
            Some(status) => self.with_status(status),
            None => self.plan,
        }
    }

    /// The city has no usable binding: shown beside what the city reports of `made`.
    fn unserved(mut self, city: &str, made: Option<&Object>) -> Plan {
        let message = messages::no_matching_location(city);
        self.plan.terminal = Some(Terminal::new(reasons::NO_MATCHING_LOCATION, &message));
        let reported = unavailable(reasons::NO_MATCHING_LOCATION, message);
        let status = mirror::beside(self.seen.deployment, made, &reported, self.seen.now);
        self.with_status(status)
    }

    /// The catalogue does not have its instance type: nothing of that type is carried, and what was carried before runs on.
    fn unsized_type(mut self, hub: &Hub<'a>, made: Option<&Object>, name: &str) -> Plan {
        let deployment = self.seen.deployment;
        self.lower_what_is_there();
        let (reason, message) = (reasons::INSTANCE_TYPE_NOT_FOUND, instance_types::not_found(name));
        self.plan.terminal = Some(Terminal::new(reason, &message));
        let shown = made.and_then(|made| mirror::status(deployment, Some(made), hub.binding, self.seen.now).0);
        let status = mirror::stopped(deployment, shown, reason, &message, self.seen.now);
        self.with_status(status)
    }

    /// How large the instance type of such an Instance is, for the annotation of the WorkloadDeployment on the hub. What the one in
    /// the project says itself counts for nothing.
    fn size_of(&self, instance: Option<&Value>, made: Option<&Object>) -> Result<Option<String>, Unsized> {
        let kept = made.and_then(|made| Described::at(made, INSTANCE));
        instance_types::annotation(instance, self.seen.types, kept)
    }

    /// The hub WorkloadDeployment that was made for this one.
    fn mine(&self, hub: &Hub<'a>, hub_namespace: &str) -> Option<&'a Object> {
        let deployment = self.seen.deployment;
        hub.deployments
            .iter()
            .copied()
            .find(|one| one.namespace() == hub_namespace && one.name() == deployment.name())
            .filter(|one| hub::is_made_for(one, deployment))
    }

    fn other_spelling(&self, hub: &Hub<'a>, hub_namespace: &str, city: &str) -> Option<&'a str> {
        let in_hub = hub.deployments.iter().filter(|one| one.namespace() == hub_namespace);
        let all = self.seen.siblings.iter().chain(in_hub).copied();
        policy::spelling(&names::city_policy(city), hub.policy, all).filter(|spelling| *spelling != city)
    }

    fn finalise(mut self) -> Plan {
        let deployment = self.seen.deployment;
        if !deployment.has_finalizer(finalizers::FEDERATOR) {
            return self.plan;
        }
        let city = deployment.text("/spec/cityCode").unwrap_or_default();
        let reported = unavailable(DELETING, format!("Waiting for the removal in city {city}"));
        let status = mirror::overlay(deployment, &reported, self.seen.now);
        let Observed::Known(hub) = self.seen.hub else {
            self.plan.notes.push(Note::Unknown(Plane::Hub));
            return self.with_status(status);
        };
        let held = self.remove_from(&hub);
        let status = match rejection::of_plan(&self.plan, self.seen.rejected) {
            Some(rejection) => {
                let reported = unavailable(
                    DELETING,
                    format!("Waiting for the removal in city {city}: {}", rejection.message()),
                );
                mirror::overlay(deployment, &reported, self.seen.now)
            }
            None => status,
        };
        self.plan.fallback_status = Edit::status(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment, status);
        if !held {
            let edit =
                Edit::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment).without_finalizer(finalizers::FEDERATOR);
            self.plan.actions.extend(edit.action());
        }
        self.plan
    }

    /// It has too much of something: nothing of it is carried but fewer replicas, and what was carried before runs on.
    fn exceeded(mut self, excess: Excess) -> Plan {
        let deployment = self.seen.deployment;
        let message = format!(
            "WorkloadDeployment {} {excess}: it is not carried to its city; {}",
            deployment.name(),
            excess.fix()
        );
        self.lower_what_is_there();
        let shown = match (self.seen.hub, self.seen.namespace) {
            (Observed::Known(hub), Observed::Known(Some(namespace))) => self
                .mine(&hub, &names::hub_namespace(namespace.uid()))
                .and_then(|made| mirror::status(deployment, Some(made), hub.binding, self.seen.now).0),
            _ => None,
        };
        self.plan.notes.push(Note::Excess(self.target(), excess));
        self.plan.terminal = Some(Terminal::new(reasons::LIMIT_EXCEEDED, &message));
        let status = mirror::stopped(deployment, shown, reasons::LIMIT_EXCEEDED, &message, self.seen.now);
        self.with_status(status)
    }

    /// What the hub has from before goes on, and may become less: only more of it waits.
    fn lower_what_is_there(&mut self) {
        if let (Observed::Known(hub), Observed::Known(Some(namespace))) = (self.seen.hub, self.seen.namespace) {
            let made = self.mine(&hub, &names::hub_namespace(namespace.uid()));
            self.plan.actions.extend(made.and_then(|made| self.lowered(made)));
        }
    }

    fn terminal(mut self, reason: &'static str, message: String) -> Plan {
        self.lower_what_is_there();
        self.plan.terminal = Some(Terminal::new(reason, &message));
        let status = mirror::overlay(self.seen.deployment, &unavailable(reason, message), self.seen.now);
        self.with_status(status)
    }

    fn with_status(mut self, status: Value) -> Plan {
        let deployment = self.seen.deployment;
        let event = conditions::blocked_event(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment, &status);
        self.plan.events.extend(event);
        self.plan.status = Edit::status(&self.plane, kind::WORKLOAD_DEPLOYMENT, deployment, status);
        self.plan
    }

    fn target(&self) -> Target {
        Target::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, self.seen.deployment)
    }

    fn belongs(&self, hub_namespace: &Object) -> bool {
        identity::belongs(hub_namespace, self.seen.project, self.seen.deployment.namespace())
    }
}

fn unavailable(reason: &str, message: String) -> Condition {
    Condition::new(popcell_api::conditions::AVAILABLE, false, reason, message)
}

/// Labels that the hub WorkloadDeployment carries for us.
pub(crate) fn hub_labels(deployment: &Object) -> [(&'static str, String); 3] {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    [
        (labels::CITY_CODE, city.to_owned()),
        (labels::UPSTREAM_NAMESPACE, deployment.namespace().to_owned()),
        (labels::MANAGED_BY, labels::MANAGED_BY_POPCELL.to_owned()),
    ]
}
