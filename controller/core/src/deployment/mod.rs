//! `deployment`: a WorkloadDeployment becomes ordered Instances in its cell.
//!
//! - Only Instances that are owned by this WorkloadDeployment are changed or deleted; one action of the rollout a reconcile.
//! - The spec of an Instance that exists is never rewritten, but for its gates `Network` and `ReferencedData`, and an equal
//!   template's hash.
//! - Nothing here needs another plane: a cell runs what it received while everything above it is unreachable.

mod autoscaler;
mod data;
mod networks;
mod progress;
mod rollout;
mod status;
mod template;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::{annotations, finalizers, gates, kind};
use serde_json::{Value, json};

use crate::conditions::{self, Condition};
use crate::edit::{self, Edit};
use crate::growth;
use crate::instance_types::{self, Catalogue, Unsized};
use crate::names;
use crate::object::{Excess, Fields, Object};
use crate::observed::Observed;
use crate::paused;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Target, Terminal};
use crate::rejection::{self, Rejection};
use crate::remote::NAME_CONFLICT_RETRY;
use crate::sizing::{self, Described};
use crate::slots;
pub use data::{MOST as MOST_DATA, Presence, ReferencedData, awaits_data, data_to_read, judge as judge_data};
pub use networks::{Networks, binding_name, binding_prefix};
pub(crate) use networks::{is_without_network, missing};
pub use progress::{
    PROGRESS, PROGRESS_AT_MOST, PROGRESS_EVERY, differs_by_gates_at_most, is_on_its_way, reports_progress,
    without_progress,
};
use rollout::{Instances, Step};
use status::Hindrance;
pub use template::hash;
pub(crate) use template::is_nothing;
use template::{Likeness, Template};

/// What a reconcile looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The WorkloadDeployment in the cell.
    pub deployment: &'a Object,
    /// Instances of its namespace: at least all that say they are its own, and those at the names of its slots.
    pub instances: &'a [&'a Object],
    /// Whether its city may be used. Known and true in a cell, which is not asked; in a single cluster it was not checked
    /// before.
    pub served: Observed<bool>,
    /// Whether a living Workload asks for it, which reports the city itself.
    pub derived: bool,
    /// In a single cluster the instance types; `None` in a cell, where the WorkloadDeployment says how large its type is.
    pub types: Option<Observed<&'a Catalogue>>,
    /// What the cell has of networks; `None` where networking is off.
    pub networks: Option<Networks<'a>>,
    /// What the cell has of the ConfigMaps and Secrets of its template, while [`awaits_data`].
    pub data: &'a ReferencedData,
    /// The HorizontalPodAutoscaler of its name.
    pub autoscaler: Observed<Option<&'a Object>>,
    /// What the cell's server refused of the last reconcile.
    pub rejected: &'a [Rejection],
    /// What a server refuses of its Instances elsewhere: of their gates, their copies on the hub, their claims.
    pub elsewhere: Option<&'a Rejection>,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// Whether an Instance is of a WorkloadDeployment: by its controller, or by its label where it has none.
pub fn owns(deployment: &Object, instance: &Object) -> bool {
    match instance.controller() {
        Some(owner) => owner.uid == deployment.uid(),
        None => instance.label(popcell_api::labels::WORKLOAD_DEPLOYMENT_UID) == Some(deployment.uid()),
    }
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    let deployment = seen.deployment;
    let ours = seen
        .instances
        .iter()
        .copied()
        .filter(|one| owns(deployment, one))
        .collect();
    let reconcile = Reconcile {
        seen,
        deployment,
        ours,
        autoscaling: autoscaler::Report::Unchanged,
        unsized_type: None,
        type_size: None,
        plan: Plan::default(),
    };
    reconcile.decide()
}

struct Reconcile<'a> {
    seen: &'a Observation<'a>,
    deployment: &'a Object,
    ours: Vec<&'a Object>,
    autoscaling: autoscaler::Report,
    /// Why it is not known how large its instance type is, in a single cluster.
    unsized_type: Option<Unsized>,
    /// What the status is to say of its size there.
    type_size: Option<String>,
    plan: Plan,
}

impl<'a> Reconcile<'a> {
    fn decide(mut self) -> Plan {
        let deployment = self.deployment;
        if paused::is_paused(deployment) {
            return paused::plan(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment, self.seen.now);
        }
        if deployment.deleting() {
            return self.finalise();
        }
        // What was taken in goes on: it came from where names were checked by other rules, and neither name nor city can change.
        let is_new = !deployment.has_finalizer(finalizers::WORKLOAD_CONTROLLER) && self.ours.is_empty();
        let city = deployment.text("/spec/cityCode").unwrap_or_default();
        // The hub is not asked what it lets through, and a single cluster was not checked before.
        if is_new && let Some((reason, message)) = names::fault(city, deployment.name()) {
            return self.refuse(reason, &message);
        }
        match self.seen.served {
            Observed::Known(false) if is_new => {
                return self.refuse(reasons::NO_MATCHING_LOCATION, &unserved(deployment));
            }
            Observed::Unknown if is_new => {
                self.plan.notes.push(Note::Unknown(Plane::Cell));
                return self.plan;
            }
            _ => {}
        }
        if !deployment.has_finalizer(finalizers::WORKLOAD_CONTROLLER) {
            let edit = self.edit().with_finalizer(finalizers::WORKLOAD_CONTROLLER);
            let edit = match autoscaler::beginning(deployment) {
                Some(replicas) => edit.set(&["spec", "replicas"], json!(replicas)),
                None => edit,
            };
            self.plan.actions.extend(edit.action());
            if deployment.excess().is_none() && Template::of(deployment).is_some() {
                // They take longest, and the garbage collector takes them away with or without a finalizer.
                self.ask_for_networks();
            }
            return match self.rejection() {
                Some(_) => self.report(None, None, None),
                None => self.plan,
            };
        }
        if let Some(excess) = deployment.excess() {
            return self.exceeded(excess);
        }
        let Some(mut template) = Template::of(deployment) else {
            return self.unreadable("/spec/template/spec");
        };
        self.look_up_size(&mut template);
        if let Some(replicas) = autoscaler::beginning(deployment) {
            let edit = self.edit().set(&["spec", "replicas"], json!(replicas));
            self.plan.actions.extend(edit.action());
            // What is rejected must not hold up the Instances.
            if self.rejection().is_none() {
                return self.plan;
            }
        }
        let networks = self.ask_for_networks();
        let networks_are_there = networks.as_ref().is_none_or(|networks| networks.ready);
        let sorted = Instances::sort(deployment, &template, &self.ours);
        self.heal(&sorted, &template);
        self.open_gates(networks_are_there, &template);
        let held = self.roll(&sorted, &template, networks.as_ref());
        let held = held.or_else(|| networks.as_ref()?.held.clone());
        self.autoscaling = autoscaler::settle(deployment, self.seen.autoscaler, self.seen.rejected, &mut self.plan);
        let granted = slots::granted_list(&status::granted(deployment, template.described(), &sorted));
        let size = template.described().map(sizing::size).filter(|_| granted.is_some());
        let memory = self.edit().annotation(annotations::GRANTED_SLOTS, granted.as_deref());
        let memory = memory.annotation(annotations::GRANTED_SIZE, size.as_deref());
        let memory = if autoscaler::is_left(deployment) {
            memory.without(&["spec", "replicas"])
        } else {
            memory
        };
        if let Some(remember) = memory.action() {
            // Behind what is refused it would never be written.
            let place = if self.rejection().is_some() {
                0
            } else {
                self.plan.actions.len()
            };
            self.plan.actions.insert(place, remember);
        }
        if held.is_some() {
            // The removal of foreign objects causes no event.
            self.plan.requeue_within(NAME_CONFLICT_RETRY);
        }
        self.report(Some(&template), networks.as_ref(), held.as_ref())
    }

    /// In a single cluster no component before has looked up how large its instance type is. What the annotations of the
    /// WorkloadDeployment and its Instances say is a tenant's word; its status is not.
    fn look_up_size(&mut self, template: &mut Template<'_>) {
        let Some(types) = self.seen.types else { return };
        let named = template.described().and_then(Described::type_name);
        let recorded = self.deployment.text("/status/instanceTypeSize");
        // That of an earlier template may be of another type.
        let recorded = recorded.filter(|text| text.split(' ').next() == named);
        let spec = template.value.get("spec");
        let kept = spec.zip(recorded).map(|(spec, text)| Described {
            spec,
            type_size: Some(text),
        });
        match instance_types::size(spec, types, kept) {
            Ok(sized) => {
                template.type_size = sized.and_then(|(name, size)| size.annotation(name));
                self.type_size = sized.map(|(name, size)| size.text(name));
            }
            Err(why) => {
                template.type_size = None;
                if why == Unsized::Unknown {
                    self.plan.notes.push(Note::Unknown(Plane::Discovery));
                }
                self.unsized_type = Some(why);
            }
        }
    }

    /// Asks for what is missing of networks. What cannot be asked for holds up their gates, and nothing else.
    fn ask_for_networks(&mut self) -> Option<networks::State> {
        let mut asked = Plan::default();
        let networks = self.seen.networks.as_ref();
        let networks = networks.map(|seen| networks::settle(self.deployment, seen, &mut asked));
        self.plan.best_effort = asked.actions;
        self.plan.notes.extend(asked.notes);
        networks
    }

    /// What is refused of the plan as it is so far.
    fn rejection(&self) -> Option<&'a Rejection> {
        rejection::of_plan(&self.plan, self.seen.rejected)
    }

    fn edit(&self) -> Edit<'a> {
        Edit::of(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, self.deployment)
    }

    fn finalise(mut self) -> Plan {
        if !self.deployment.has_finalizer(finalizers::WORKLOAD_CONTROLLER) {
            return self.plan;
        }
        for instance in self.ours.clone() {
            if !instance.deleting() {
                self.delete(instance);
            }
        }
        if self.ours.is_empty() {
            let edit = self.edit().without_finalizer(finalizers::WORKLOAD_CONTROLLER);
            self.plan.actions.extend(edit.action());
            return self.plan;
        }
        let template = Template::of(self.deployment);
        self.report(template.as_ref(), None, None)
    }

    fn delete(&mut self, instance: &Object) {
        let delete = Action::delete(
            &Plane::Cell,
            kind::INSTANCE,
            instance,
            Vec::new(),
            DeletionGuard::Exempt,
        );
        self.plan.actions.push(delete);
    }

    fn refuse(mut self, reason: &'static str, message: &str) -> Plan {
        let status = status::refused(self.deployment, reason, message, self.seen.now);
        self.plan.status = Edit::status(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, self.deployment, status);
        self.plan.terminal = Some(Terminal::new(reason, message));
        self.plan
    }

    /// It has too much of something: nothing is made of it, and what runs goes on, or becomes less.
    fn exceeded(mut self, excess: Excess) -> Plan {
        let deployment = self.deployment;
        let message = format!(
            "WorkloadDeployment {} {excess}: its Instances stay as they are; {}",
            deployment.name(),
            excess.fix()
        );
        let target = Target::of(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment);
        self.plan.notes.push(Note::Excess(target, excess));
        if self.ours.is_empty() {
            return self.refuse(reasons::LIMIT_EXCEEDED, &message);
        }
        // Where the number is not kept, none would be taken for 0.
        if deployment.int("/spec/scaleSettings/minReplicas").is_some() {
            self.delete_surplus();
        }
        let reported = Condition::new(types::REPLICAS_READY, false, reasons::LIMIT_EXCEEDED, message);
        let observed = deployment.int("/status/observedGeneration");
        let status = Value::Object(paused::reported_instead(deployment, &reported, observed, self.seen.now));
        self.plan.status = Edit::status(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment, status);
        self.plan
    }

    /// Fewer replicas need no template.
    fn delete_surplus(&mut self) {
        let desired = slots::desired(self.deployment);
        let ordinal = |one: &Object| slots::ordinal_of(self.deployment.name(), one.name());
        let surplus = self.ours.iter().copied().filter(|one| !one.deleting());
        let surplus = surplus.filter(|one| ordinal(one).is_some_and(|ordinal| ordinal >= desired));
        if let Some(surplus) = surplus.max_by_key(|one| ordinal(one)) {
            self.delete(surplus);
        }
    }

    fn unreadable(mut self, path: &str) -> Plan {
        self.delete_surplus();
        let target = Target::of(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, self.deployment);
        self.plan.note_undecodable(target, path.to_owned());
        self.plan
    }

    /// Labels that others took away, sizes of instance types that were not known before, and hashes of those that were made from
    /// an equal template.
    fn heal(&mut self, sorted: &Instances<'_>, template: &Template<'_>) {
        for (ordinal, slot) in &sorted.slots {
            if slot.instance.deleting() {
                continue;
            }
            let mut edit = Edit::of(&Plane::Cell, kind::INSTANCE, slot.instance);
            for (key, value) in template.labels(*ordinal) {
                edit = edit.label(&key, &value);
            }
            if template.knows_size_of(slot.instance) {
                edit = edit.annotation(annotations::INSTANCE_TYPE_SIZE, template.type_size.as_deref());
            }
            if slot.likeness == Likeness::Unstamped {
                edit = match slot.instance.at("/spec/controller") {
                    Some(_) => edit.set(&["spec", "controller", "templateHash"], json!(template.hash)),
                    None => edit.set(&["spec", "controller"], json!({ "templateHash": template.hash })),
                };
            }
            self.plan.actions.extend(edit.action());
        }
    }

    fn open_gates(&mut self, networks_are_there: bool, template: &Template<'_>) {
        for instance in self.ours.iter().filter(|one| !one.deleting()) {
            let mut opened: Vec<&str> = networks_are_there.then_some(gates::NETWORK).into_iter().collect();
            if let Some(hash) = data::lets_go(self.seen.data, template, instance) {
                self.plan.actions.extend(data::note(instance, hash).map(Action::Patch));
                opened.push(gates::REFERENCED_DATA);
            }
            let open = edit::without_gates(&Plane::Cell, instance, &opened);
            self.plan.actions.extend(open.map(Action::Patch));
        }
        if let Some(delay) = data::next_look(self.deployment, self.seen.data, &self.ours, self.seen.now) {
            self.plan.requeue_within(delay);
        }
    }

    /// One action of the rollout. Says which object of another owner is at the name of the slot that is to be filled.
    fn roll(
        &mut self,
        sorted: &Instances<'a>,
        template: &Template<'_>,
        networks: Option<&networks::State>,
    ) -> Option<Target> {
        let (asked, before) = (slots::desired(self.deployment), status::desired_before(self.deployment));
        let is_served = self.seen.served == Observed::Known(true) && self.unsized_type.is_none();
        let desired = if is_served {
            asked
        } else {
            asked.min(before.max(sorted.end()))
        };
        let adds = |instance: &Object| {
            let described = Described::at(instance, "/spec").zip(template.described());
            described.is_none_or(|(stored, desired)| growth::adds(stored, desired))
        };
        let step = match rollout::step(sorted, desired) {
            step if is_served => step,
            step => rollout::without_growth(step, sorted, desired, before, adds),
        };
        match step {
            Step::Settled | Step::Wait => {}
            Step::Delete(instance) => {
                self.delete(instance);
            }
            Step::Create(ordinal) => {
                let location = networks.and_then(|networks| networks.location.as_ref());
                let waits = networks.is_some_and(|networks| !networks.ready);
                let instance = template.instance(ordinal, location, waits);
                let holder = self.seen.instances.iter().find(|one| one.name() == instance.name());
                if let Some(holder) = holder {
                    self.plan.notes.push(held(holder));
                    return Some(Target::of(&Plane::Cell, kind::INSTANCE, holder)).filter(|_| !holder.deleting());
                }
                let create = Action::create(&Plane::Cell, kind::INSTANCE, instance);
                self.plan.actions.push(create);
            }
        }
        None
    }

    fn report(
        mut self,
        template: Option<&Template<'_>>,
        networks: Option<&networks::State>,
        held: Option<&Target>,
    ) -> Plan {
        let rejection = self.rejection().or(self.seen.elsewhere).map(Rejection::message);
        let not_found = match &self.unsized_type {
            Some(Unsized::NotFound(name)) => Some(instance_types::not_found(name)),
            Some(Unsized::Unknown) | None => None,
        };
        let hindrance = Hindrance {
            held,
            rejected: rejection.as_deref(),
            served: self.seen.served,
            derived: self.seen.derived,
            unsized_type: not_found.as_deref(),
        };
        let mut status: Value = status::render(
            self.deployment,
            template,
            &self.ours,
            (networks, &self.autoscaling),
            hindrance,
            self.seen.now,
        );
        if let (Some(size), Some(fields)) = (self.type_size.take(), status.as_object_mut()) {
            fields.insert("instanceTypeSize".to_owned(), Value::String(size));
        }
        let reported = if hindrance.is_unserved() || hindrance.unsized_type.is_some() {
            conditions::blocked_event
        } else {
            conditions::rejected_event
        };
        let event = reported(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, self.deployment, &status);
        self.plan.events.extend(event);
        self.plan.status = Edit::status(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, self.deployment, status);
        if let Some(delay) = status::next_look(&self.ours, self.seen.now) {
            self.plan.requeue_within(delay);
        }
        self.plan
    }
}

fn unserved(deployment: &Object) -> String {
    messages::no_matching_location(deployment.text("/spec/cityCode").unwrap_or_default())
}

/// Why an object that is not ours keeps its name.
fn held(holder: &Object) -> Note {
    let target = Target::of(&Plane::Cell, kind::INSTANCE, holder);
    if holder.deleting() {
        Note::WaitsFor(target)
    } else {
        Note::Foreign(target)
    }
}
