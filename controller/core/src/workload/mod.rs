//! `workload`: a Workload becomes WorkloadDeployments in the same project, and their status comes up.
//!
//! - Only WorkloadDeployments whose `workloadRef.uid` is this Workload's are changed or deleted; a predecessor of the
//!   same name only on proof that this one lives.
//! - A binding that is lost tears nothing down: only the user's edit removes a city.
//! - A Network that is missing, a binding that is lost and a name that cannot be hold what grows, and nothing else
//!   ([`crate::growth`]): what takes away or mends goes on.
//!
//! The runtime enqueues a Workload on its own events, those of WorkloadDeployments that name it (and, while it has a
//! `NameConflict`, those of the holder of the name), of Networks ([`networks`]) and of LocationBindings ([`cities`]).
//!
//! Why: `docs/decisions/01-city-is-fixed.md`, `docs/decisions/02-names-and-conflicts.md` and
//! `docs/decisions/11-lost-binding.md`.

mod desired;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use popcell_api::conditions::{messages, reasons};
use popcell_api::{finalizers, kind, labels};
use serde_json::Value;

use crate::bindings::usable_cities;
use crate::conditions;
use crate::edit::Edit;
use crate::growth;
use crate::instance_types::{self, Catalogue};
use crate::object::{Excess, Fields, Object};
use crate::observed::Observed;
use crate::paused;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Proof, Target, Terminal};
use crate::rejection::{self, Rejection};
use crate::sizing::Described;
use crate::spec_echoes::ExplainSpec;
pub(crate) use desired::{REPLICAS, lowered, named_networks, owner};
use desired::{Slot, Trouble, Unreadable};
pub use desired::{cities, networks};

/// How many WorkloadDeployments one reconcile creates. Each holds the whole template while it is sent; the next ones are
/// created once these are seen.
const AT_ONCE: usize = 32;
/// What the metadata of a WorkloadDeployment may take beside its spec and status, in bytes.
const METADATA: usize = 16 * 1024;

/// What a reconcile looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The project id; empty is dropped.
    pub project: &'a str,
    /// The Workload.
    pub workload: &'a Object,
    /// All WorkloadDeployments of its namespace.
    pub deployments: &'a [&'a Object],
    /// All LocationBindings of the project.
    pub bindings: Observed<&'a [&'a Object]>,
    /// All Networks of the project, in all namespaces; metadata is enough.
    pub networks: Observed<&'a [&'a Object]>,
    /// The instance types.
    pub types: Observed<&'a Catalogue>,
    /// What the project's server made of earlier writes.
    pub spec_echoes: &'a dyn ExplainSpec,
    /// What it refused of the last reconcile.
    pub rejected: &'a [Rejection],
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// Decides one reconcile.
pub fn decide(observation: &Observation<'_>) -> Plan {
    if observation.project.is_empty() {
        return Plan::dropped("no project");
    }
    Reconcile::new(observation).decide()
}

/// What became of one slot.
#[derive(Default)]
struct Settled {
    /// It is, or is being, written as asked for; or it must not be, and `trouble` says so.
    done: bool,
    /// This plan creates it.
    created: bool,
    /// What is shown.
    trouble: Option<Trouble>,
}

impl Settled {
    /// Something must come first.
    fn not_yet() -> Self {
        Self::default()
    }

    fn yes() -> Self {
        Self {
            done: true,
            ..Self::default()
        }
    }

    fn trouble(done: bool, trouble: Trouble) -> Self {
        Self {
            done,
            created: false,
            trouble: Some(trouble),
        }
    }
}

/// What holds growth.
struct Gates<'a> {
    /// Cities with a usable binding.
    usable: Observed<BTreeSet<&'a str>>,
    /// Networks of the template that do not exist.
    missing: Observed<BTreeSet<(String, String)>>,
}

impl Gates<'_> {
    fn networks_are_there(&self) -> bool {
        matches!(&self.missing, Observed::Known(missing) if missing.is_empty())
    }

    /// Whether a template that was not asked for yet names a network that is not there, or may not be.
    fn bar(&self, workload: &Object, stored: &Object) -> bool {
        let (new, old) = (desired::networks(workload), desired::networks(stored));
        new.difference(&old).any(|network| match &self.missing {
            Observed::Known(missing) => missing.contains(network),
            Observed::Unknown => true,
        })
    }
}

struct Reconcile<'a> {
    seen: &'a Observation<'a>,
    plane: Plane,
    ours: Vec<&'a Object>,
    by_name: BTreeMap<&'a str, &'a Object>,
    /// How many WorkloadDeployments this plan creates.
    created: usize,
    plan: Plan,
}

impl<'a> Reconcile<'a> {
    fn new(seen: &'a Observation<'a>) -> Self {
        let uid = seen.workload.uid();
        Self {
            seen,
            plane: Plane::Project(seen.project.to_owned()),
            ours: seen
                .deployments
                .iter()
                .copied()
                .filter(|deployment| deployment.text("/spec/workloadRef/uid") == Some(uid))
                .collect(),
            by_name: seen.deployments.iter().map(|one| (one.name(), *one)).collect(),
            created: 0,
            plan: Plan::independent(),
        }
    }

    fn decide(mut self) -> Plan {
        let workload = self.seen.workload;
        if paused::is_paused(workload) {
            return paused::plan(&self.plane, kind::WORKLOAD, workload, self.seen.now);
        }
        if workload.deleting() {
            return self.finalise();
        }
        let finalizer = finalizers::WORKLOAD_CONTROLLER;
        // A write of a large object costs its server much: one that has nothing to take along needs no finalizer.
        if let Some(excess) = workload.excess()
            && (workload.has_finalizer(finalizer) || self.ours.is_empty())
        {
            return self.exceeded(excess);
        }
        if !workload.has_finalizer(finalizer) {
            let edit = Edit::of(&self.plane, kind::WORKLOAD, workload).with_finalizer(finalizer);
            self.plan.actions.extend(edit.action());
            return self.before_all();
        }
        let slots = match desired::slots(workload, &self.ours) {
            Ok(slots) => slots,
            Err(unreadable) => return self.unreadable(unreadable),
        };
        let gates = Gates {
            usable: self.seen.bindings.map(usable_cities),
            missing: self.seen.networks.map(|networks| self.missing_networks(networks)),
        };
        let mut report = status::Report::default();
        if let Observed::Known(missing) = &gates.missing
            && !missing.is_empty()
        {
            report.blocked = Some((reasons::NETWORK_NOT_FOUND, missing_message(workload, missing)));
        }
        report.troubles.extend(self.delete_orphans(&slots));
        for slot in &slots {
            let settled = self.settle(slot, &gates);
            report.settled &= settled.done;
            report.created += u32::from(settled.created);
            report.troubles.extend(settled.trouble);
        }
        if let Observed::Unknown = gates.missing {
            self.plan.notes.push(Note::Unknown(self.plane.clone()));
            return self.plan;
        }
        self.report(&slots, &report)
    }

    /// Nothing can be done for a Workload before this write of the plan; where it is refused, its status says so.
    fn before_all(self) -> Plan {
        let Some(rejection) = rejection::of_plan(&self.plan, self.seen.rejected) else {
            return self.plan;
        };
        let report = status::Report::blocked(reasons::REJECTED, rejection.message());
        self.report(&[], &report)
    }

    fn finalise(mut self) -> Plan {
        for deployment in self.ours.iter().filter(|deployment| !deployment.deleting()) {
            let delete = self.delete(deployment, Vec::new(), DeletionGuard::Exempt);
            self.plan.actions.push(delete);
        }
        if self.ours.is_empty() {
            let edit = Edit::of(&self.plane, kind::WORKLOAD, self.seen.workload)
                .without_finalizer(finalizers::WORKLOAD_CONTROLLER);
            self.plan.actions.extend(edit.action());
        }
        self.plan
    }

    /// It has too much of something: its WorkloadDeployments stay as they are, and run on, or become less.
    fn exceeded(mut self, excess: Excess) -> Plan {
        let target = Target::of(&self.plane, kind::WORKLOAD, self.seen.workload);
        let message = format!(
            "Workload {} {excess}: its WorkloadDeployments stay as they are; {}",
            self.seen.workload.name(),
            excess.fix()
        );
        self.shrink(excess);
        self.plan.notes.push(Note::Excess(target, excess));
        self.plan.terminal = Some(Terminal::new(reasons::LIMIT_EXCEEDED, &message));
        self.report(&[], &status::Report::blocked(reasons::LIMIT_EXCEEDED, message))
    }

    /// What a Workload that exceeds a limit does not ask for any more goes, where its whole spec is kept.
    fn shrink(&mut self, excess: Excess) {
        let workload = self.seen.workload;
        let is_whole = !matches!(excess, Excess::Depth { .. }) && workload.at("/spec/template").is_some();
        let Ok(slots) = desired::slots(workload, &self.ours) else {
            return;
        };
        if !is_whole {
            return;
        }
        self.delete_orphans(&slots);
        for slot in &slots {
            if let Some(holder) = self.holder(slot).filter(|one| !one.deleting() && self.is_of(one, slot)) {
                self.lower(holder, slot);
            }
        }
    }

    /// Nothing but fewer replicas.
    fn lower(&mut self, holder: &Object, slot: &Slot<'_>) {
        // What is decoded to compare goes again with this copy.
        let holder = holder.clone();
        if let Some(stored) = holder.at("/spec") {
            let edit = Edit::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, &holder).spec(&lowered(stored, &slot.spec()));
            self.plan.actions.extend(edit.action());
        }
    }

    fn unreadable(mut self, unreadable: Unreadable) -> Plan {
        let target = Target::of(&self.plane, kind::WORKLOAD, self.seen.workload);
        self.plan.note_undecodable(target, unreadable.0);
        self.plan
    }

    fn missing_networks(&self, networks: &[&Object]) -> BTreeSet<(String, String)> {
        let mut needed = desired::networks(self.seen.workload);
        for network in networks {
            needed.remove(&(network.namespace().to_owned(), network.name().to_owned()));
        }
        needed
    }

    /// Takes away what no placement asks for; the troubles are those that are refused.
    fn delete_orphans(&mut self, slots: &[Slot<'_>]) -> Vec<Trouble> {
        let wanted: BTreeSet<&str> = slots.iter().map(|slot| slot.name.as_str()).collect();
        let mut troubles = Vec::new();
        for deployment in &self.ours {
            if !deployment.deleting() && !wanted.contains(deployment.name()) {
                let delete = self.delete(deployment, Vec::new(), self.by_user());
                self.plan.actions.push(delete);
                let text = |pointer| deployment.text(pointer).unwrap_or_default();
                let (placement, city) = (text("/spec/placementName"), text("/spec/cityCode"));
                troubles.extend(self.rejection(deployment.name()).map(|rejection| Trouble {
                    placement: placement.to_owned(),
                    city: city.to_owned(),
                    reason: reasons::REJECTED,
                    message: rejection.message(),
                }));
            }
        }
        troubles
    }

    /// What was refused of the last write of a WorkloadDeployment.
    fn rejection(&self, name: &str) -> Option<&'a Rejection> {
        let of_it = |one: &&Rejection| one.target.kind == kind::WORKLOAD_DEPLOYMENT && one.target.name == name;
        self.seen.rejected.iter().find(of_it)
    }

    fn settle(&mut self, slot: &Slot<'_>, gates: &Gates<'_>) -> Settled {
        let before = self.plan.actions.len();
        let settled = self.settled(slot, gates);
        let writes = self.plan.actions.len() > before;
        match self.rejection(&slot.name).filter(|_| writes) {
            Some(rejection) => Settled::trouble(false, trouble(slot, reasons::REJECTED, rejection.message())),
            None => settled,
        }
    }

    fn settled(&mut self, slot: &Slot<'_>, gates: &Gates<'_>) -> Settled {
        if let Some(trouble) = &slot.trouble {
            // What was made under other rules is not made larger, and that is all.
            let holder = self.holder(slot).filter(|one| !one.deleting() && self.is_of(one, slot));
            if let Some(holder) = holder.filter(|_| trouble.reason != reasons::NAME_CONFLICT) {
                self.write(holder, slot, true, gates);
            }
            return Settled::trouble(true, trouble.clone());
        }
        match self.holder(slot) {
            None => self.create(slot, gates),
            Some(holder) if holder.deleting() => {
                let target = Target::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, holder);
                self.plan.notes.push(Note::WaitsFor(target));
                Settled::not_yet()
            }
            Some(holder) if holder.text("/spec/workloadRef/uid") == Some(self.seen.workload.uid()) => {
                self.update(holder, slot, gates)
            }
            Some(holder) if self.is_predecessor(holder) => {
                let lives = self.lives();
                let delete = self.delete(holder, vec![lives], self.by_user());
                self.plan.actions.push(delete);
                Settled::not_yet()
            }
            Some(holder) => {
                self.plan.notes.push(Note::Foreign(Target::of(
                    &self.plane,
                    kind::WORKLOAD_DEPLOYMENT,
                    holder,
                )));
                Settled::trouble(false, trouble(slot, reasons::NAME_CONFLICT, held(holder)))
            }
        }
    }

    fn create(&mut self, slot: &Slot<'_>, gates: &Gates<'_>) -> Settled {
        match &gates.usable {
            Observed::Unknown => Settled::not_yet(),
            Observed::Known(cities) if !cities.contains(slot.city) => Settled::trouble(true, unserved(slot)),
            Observed::Known(_) if !gates.networks_are_there() || self.created == AT_ONCE => Settled::not_yet(),
            Observed::Known(_) => {
                self.created += 1;
                let object = desired::deployment(self.seen.workload, slot);
                let create = Action::create(&self.plane, kind::WORKLOAD_DEPLOYMENT, object);
                self.plan.actions.push(create);
                Settled {
                    created: true,
                    ..Settled::yes()
                }
            }
        }
    }

    /// Whether a WorkloadDeployment of ours is for this slot: another spelling of a city, or another split of one name, is
    /// another object, since neither can be changed.
    fn is_of(&self, holder: &Object, slot: &Slot<'_>) -> bool {
        holder.text("/spec/workloadRef/uid") == Some(self.seen.workload.uid())
            && holder.text("/spec/cityCode") == Some(slot.city)
            && holder.text("/spec/placementName") == Some(slot.placement)
    }

    fn update(&mut self, holder: &Object, slot: &Slot<'_>, gates: &Gates<'_>) -> Settled {
        if !self.is_of(holder, slot) {
            if !gates.networks_are_there() {
                // The one in its place could not be made.
                return Settled::not_yet();
            }
            let delete = self.delete(holder, Vec::new(), self.by_user());
            self.plan.actions.push(delete);
            return Settled::not_yet();
        }
        if let Some(excess) = holder.excess()
            && holder.at("/spec/template").is_none()
            && !may_fit(excess, holder, slot)
        {
            let target = Target::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, holder);
            self.plan.notes.push(Note::Excess(target, excess));
            self.lower(holder, slot);
            let fix = excess.fix();
            let message = format!("WorkloadDeployment {} {excess}: it stays as it is; {fix}", slot.name);
            return Settled::trouble(true, trouble(slot, reasons::LIMIT_EXCEEDED, message));
        }
        let lost = gates.usable.as_ref().map(|cities| !cities.contains(slot.city));
        let held = lost != Observed::Known(false) || !gates.networks_are_there();
        let fits = self.write(holder, slot, held, gates);
        match lost {
            Observed::Known(true) => Settled::trouble(fits, unserved(slot)),
            _ if fits => Settled::yes(),
            _ => Settled::not_yet(),
        }
    }

    /// Writes what may be written while growth is held, or all; whether that is what is asked for.
    fn write(&mut self, holder: &Object, slot: &Slot<'_>, held: bool, gates: &Gates<'_>) -> bool {
        // What is decoded to compare goes again with this copy.
        let holder = holder.clone();
        let stored = holder.at("/spec");
        let wanted = desired::with_own_fields(slot.spec(), stored);
        let held = match stored {
            Some(stored) if held && gates.bar(self.seen.workload, &holder) => Some(lowered(stored, &wanted)),
            Some(stored) if held => {
                let (size, wanted_size) = (self.type_size(stored), self.type_size(&wanted));
                let described = |spec, type_size| Described { spec, type_size };
                Some(growth::held(
                    described(stored, size.as_deref()),
                    described(&wanted, wanted_size.as_deref()),
                ))
            }
            _ => None,
        };
        let desired = held.as_ref().unwrap_or(&wanted);
        let edit = Edit::of(&self.plane, kind::WORKLOAD_DEPLOYMENT, &holder)
            .label(labels::WORKLOAD_UID, self.seen.workload.uid())
            .owner(&owner(kind::WORKLOAD, self.seen.workload, true))
            .spec_unless_echoed(desired, self.seen.spec_echoes, &mut self.plan.notes);
        self.plan.actions.extend(edit.action());
        *desired == wanted
    }

    /// How large the instance type is that a spec names, as far as the catalogue says.
    fn type_size(&self, spec: &Value) -> Option<String> {
        instance_types::annotation(spec.pointer("/template/spec"), self.seen.types, None).ok()?
    }

    /// Made by us for an earlier Workload of this name.
    fn is_predecessor(&self, holder: &Object) -> bool {
        let uid = holder.text("/spec/workloadRef/uid");
        holder.text("/spec/workloadRef/name") == Some(self.seen.workload.name())
            && uid.is_some()
            && holder.label(labels::WORKLOAD_UID) == uid
    }

    fn holder(&self, slot: &Slot<'_>) -> Option<&'a Object> {
        self.by_name.get(slot.name.as_str()).copied()
    }

    fn lives(&self) -> Proof {
        Proof::Lives {
            source: Target::of(&self.plane, kind::WORKLOAD, self.seen.workload),
            uid: self.seen.workload.uid().to_owned(),
        }
    }

    /// The user's own Workload says so, as long as it is there.
    fn by_user(&self) -> DeletionGuard {
        DeletionGuard::Unless(vec![self.lives()])
    }

    fn delete(&self, deployment: &Object, proofs: Vec<Proof>, deletion_guard: DeletionGuard) -> Action {
        Action::delete(
            &self.plane,
            kind::WORKLOAD_DEPLOYMENT,
            deployment,
            proofs,
            deletion_guard,
        )
    }

    fn report(mut self, slots: &[Slot<'_>], report: &status::Report) -> Plan {
        let workload = self.seen.workload;
        let shown: Vec<Object> = self.ours.iter().map(|one| one.only(&status::LOOKS_AT)).collect();
        let shown: Vec<&Object> = shown.iter().collect();
        let rendered = status::render(workload, slots, &shown, report, self.seen.now);
        self.plan.events.extend(conditions::blocked_event(
            &self.plane,
            kind::WORKLOAD,
            workload,
            &rendered,
        ));
        self.plan.status = Edit::status(&self.plane, kind::WORKLOAD, workload, rendered);
        self.plan.terminal = report
            .troubles
            .iter()
            .find(|trouble| conditions::needs_an_edit(trouble.reason))
            .map(|trouble| Terminal::new(trouble.reason, &trouble.message));
        self.plan
    }
}

/// Whether a WorkloadDeployment that is too large, and whose spec is not kept, would not be with the one that is asked for now.
/// Nothing else is written on it: what cannot be seen cannot be compared.
fn may_fit(excess: Excess, holder: &Object, slot: &Slot<'_>) -> bool {
    let Excess::Bytes { limit, .. } = excess else {
        return false;
    };
    let status = holder.at("/status").map_or(0, |status| status.to_string().len());
    slot.spec().to_string().len() + status + METADATA <= limit
}

fn missing_message(workload: &Object, missing: &BTreeSet<(String, String)>) -> String {
    let names: Vec<String> = missing
        .iter()
        .map(|(namespace, name)| {
            if namespace == workload.namespace() {
                name.clone()
            } else {
                format!("{namespace}/{name}")
            }
        })
        .collect();
    messages::networks_not_found(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn held(holder: &Object) -> String {
    let owner = holder.text("/spec/workloadRef/name").unwrap_or("nobody");
    format!("WorkloadDeployment {} belongs to Workload {owner}", holder.name())
}

fn trouble(slot: &Slot<'_>, reason: &'static str, message: String) -> Trouble {
    Trouble {
        placement: slot.placement.to_owned(),
        city: slot.city.to_owned(),
        reason,
        message,
    }
}

fn unserved(slot: &Slot<'_>) -> Trouble {
    trouble(
        slot,
        reasons::NO_MATCHING_LOCATION,
        messages::no_matching_location(slot.city),
    )
}
