//! How far each city is, and what it waits for: from a Workload, its WorkloadDeployments and its Instances. Pure.
//!
//! Invariant: what is said of an earlier generation neither ends nor fails a rollout.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_core::{
    conditions::{all, find, needs_an_edit, priority, text},
    deployment::hash,
    object::{Fields as _, Object},
    paused::is_paused,
};
use serde_json::{Value, json};

use super::{Slot, member::Member, slots};
use crate::{restart::PAUSED, tree::fault};

/// How it is with a city, or with all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It runs what the Workload says.
    Complete,
    /// It is on its way.
    Waiting,
    /// Only a change of the Workload helps.
    Failed,
}

impl State {
    /// For programs.
    fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

/// Numbers of Instances in a city.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    desired: i64,
    updated: i64,
    ready: i64,
    replicas: i64,
}

/// One placement in one city.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct City {
    /// Name of the placement.
    pub(super) placement: String,
    /// Code of the city.
    pub(super) code: String,
    /// Name of its WorkloadDeployment.
    pub(super) name: String,
    /// How it is.
    pub(super) state: State,
    /// Its numbers; zero while its cell has not said.
    pub(super) counts: Counts,
    /// What it waits for; empty once it is complete.
    pub(super) text: String,
}

/// How far a Workload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Its cities, in the order of the Workload.
    pub(super) cities: Vec<City>,
    /// WorkloadDeployments that nothing asks for any more, by name.
    pub(super) leaving: Vec<String>,
}

impl Progress {
    /// Of what there is now, by name.
    pub(super) fn of<'a>(
        workload: &Object,
        deployments: &BTreeMap<String, Object>,
        members: impl IntoIterator<Item = &'a Member>,
    ) -> Self {
        let members = members.into_iter().map(|one| (one.deployment.as_str(), one));
        let mut members = members.into_group_map();
        let wanted = hash(workload.at("/spec/template").unwrap_or(&Value::Null));
        let slots = slots(workload);
        let of_workload = |name: &str| {
            let found = deployments.get(name);
            found.filter(|one| one.text("/spec/workloadRef/uid") == Some(workload.uid()))
        };
        let leaving = deployments.keys().filter(|name| of_workload(name).is_some());
        let leaving = leaving.filter(|name| !slots.iter().any(|slot| slot.name == **name));
        Self {
            leaving: leaving.cloned().collect(),
            cities: slots
                .iter()
                .map(|slot| {
                    let mut members = members.remove(slot.name.as_str()).unwrap_or_default();
                    members.sort_by_key(|one| one.ordinal);
                    let look = Look {
                        workload,
                        wanted: &wanted,
                        slot,
                        members: &members,
                    };
                    look.city(of_workload(&slot.name))
                })
                .collect(),
        }
    }

    /// How it is with all of it.
    pub(super) fn state(&self) -> State {
        let cities = self.cities.iter().map(|one| one.state).max();
        let rest = if self.leaving.is_empty() {
            State::Complete
        } else {
            State::Waiting
        };
        // Of one without cities nothing can be complete.
        cities.map_or(State::Waiting, |worst| worst.max(rest))
    }

    /// What is waited for first, or has failed.
    pub(super) fn first(&self) -> Option<String> {
        let state = self.state();
        let city = self.cities.iter().find(|one| one.state == state);
        let city = city.filter(|one| one.state != State::Complete).map(City::line);
        city.or_else(|| self.leaving.first().map(|name| left(name)))
    }

    /// A line for each city that is not as it was `before`.
    pub(super) fn lines_since(&self, before: Option<&Self>) -> Vec<String> {
        let was = |city: &&City| before.is_some_and(|before| before.cities.contains(city));
        let cities = self.cities.iter().filter(|city| !was(city)).map(City::line);
        let is_new = |name: &&String| before.is_none_or(|before| !before.leaving.contains(name));
        let leaving = self.leaving.iter().filter(is_new).map(|name| left(name));
        cities.chain(leaving).collect()
    }

    /// For programs.
    pub(super) fn json(&self, workload: &Object) -> Value {
        let cities = self.cities.iter().map(|one| {
            json!({
                "placement": one.placement,
                "city": one.code,
                "workloadDeployment": one.name,
                "state": one.state.word(),
                "desired": one.counts.desired,
                "updated": one.counts.updated,
                "ready": one.counts.ready,
                "replicas": one.counts.replicas,
                "text": Some(&one.text).filter(|text| !text.is_empty()),
            })
        });
        json!({
            "namespace": workload.namespace(),
            "workload": workload.name(),
            "generation": workload.generation(),
            "state": self.state().word(),
            "cities": cities.collect::<Vec<_>>(),
            "leaving": self.leaving,
        })
    }
}

fn left(name: &str) -> String {
    format!("{name}: nothing asks for it any more, waiting for its deletion")
}

impl City {
    fn line(&self) -> String {
        let Self {
            placement,
            code: city,
            counts,
            ..
        } = self;
        let Counts {
            desired,
            updated,
            ready,
            replicas,
        } = *counts;
        let numbers = format!("{placement} {city}: {updated} of {desired} updated, {ready} ready");
        let surplus = replicas.saturating_sub(desired);
        let surplus = match surplus {
            1.. => format!(", {surplus} to be removed"),
            _ => String::new(),
        };
        match (self.state, self.text.as_str()) {
            (State::Complete, _) => format!("{placement} {city}: done, {ready} of {desired} updated and ready"),
            (State::Waiting, "") => format!("{numbers}{surplus}"),
            (State::Waiting, text) => format!("{numbers}{surplus}; waiting: {text}"),
            (State::Failed, text) => format!("{numbers}{surplus}; failed: {text}"),
        }
    }
}

/// What is looked at of one city.
struct Look<'a> {
    workload: &'a Object,
    /// Hash of the template that is to run.
    wanted: &'a str,
    slot: &'a Slot,
    members: &'a [&'a Member],
}

impl Look<'_> {
    fn city(&self, deployment: Option<&Object>) -> City {
        let (state, counts, text) = match deployment {
            None => self.missing(),
            Some(deployment) => self.found(deployment),
        };
        City {
            placement: self.slot.placement.clone(),
            code: self.slot.city.clone(),
            name: self.slot.name.clone(),
            state,
            counts,
            text,
        }
    }

    /// There is no WorkloadDeployment.
    fn missing(&self) -> (State, Counts, String) {
        let (workload, slot) = (self.workload, self.slot);
        let failed = self.reported().filter(|one| {
            let reason = text(one, "reason");
            text(one, "status") == "False" && needs_an_edit(reason) && is_current(workload, one)
        });
        match failed {
            _ if is_paused(workload) => (State::Waiting, Counts::default(), of_paused("Workload")),
            Some(failed) => (State::Failed, Counts::default(), said(failed)),
            None => {
                let text = fault::not_made(workload, &slot.placement, &slot.city);
                (State::Waiting, Counts::default(), text)
            }
        }
    }

    fn found(&self, deployment: &Object) -> (State, Counts, String) {
        let number = |field: &str| deployment.int(&format!("/status/{field}")).unwrap_or_default();
        let counts = Counts {
            desired: number("desiredReplicas"),
            updated: number("updatedReplicas"),
            ready: number("readyReplicas"),
            replicas: number("replicas"),
        };
        let settings = |settings: Option<&Value>| hash(settings.unwrap_or(&Value::Null));
        let placement = self.workload.items("/spec/placements").get(self.slot.index);
        let carried = hash(deployment.at("/spec/template").unwrap_or(&Value::Null)) == self.wanted
            && settings(deployment.at("/spec/scaleSettings"))
                == settings(placement.and_then(|one| one.get("scaleSettings")));
        let observed = deployment.int("/status/observedGeneration");
        let observed = observed.is_some() && observed >= deployment.generation();
        let least = deployment.int("/spec/scaleSettings/minReplicas").unwrap_or_default();
        let runs = counts.desired >= least
            && [counts.updated, counts.ready, counts.replicas]
                .iter()
                .all(|count| *count == counts.desired);
        if carried && observed && runs && !deployment.deleting() {
            return (State::Complete, counts, String::new());
        }
        if let Some((state, text)) = self.blocked(deployment) {
            return (state, counts, text);
        }
        let (state, text) = if !carried {
            (State::Waiting, self.uncarried())
        } else if !observed {
            let text = format!("city {} has not observed the change yet", self.slot.city);
            (State::Waiting, text)
        } else {
            self.explained(deployment)
        };
        (state, counts, text)
    }

    /// Why the WorkloadDeployment is not what the Workload says.
    fn uncarried(&self) -> String {
        let no_location = messages::no_matching_location(&self.slot.city);
        match self.reported() {
            Some(one) if text(one, "message").contains(&no_location) => {
                format!("{}: {no_location}", reasons::NO_MATCHING_LOCATION)
            }
            Some(one) if text(one, "reason") == reasons::REJECTED => said(one),
            _ => "the WorkloadDeployment does not have the Workload's spec yet".to_owned(),
        }
    }

    /// What the Workload says of the placement.
    fn reported(&self) -> Option<&Value> {
        let placements = self.workload.items("/status/placements").iter();
        let mut placements = placements.filter(|one| text(one, "name") == self.slot.placement);
        placements.find_map(|one| find(one, types::AVAILABLE))
    }

    /// What holds up all of it.
    fn blocked(&self, deployment: &Object) -> Option<(State, String)> {
        if is_paused(self.workload) {
            return Some((State::Waiting, of_paused("Workload")));
        }
        if deployment.deleting() {
            let text = format!("WorkloadDeployment {} is being deleted", deployment.name());
            return Some((State::Waiting, text));
        }
        if is_paused(deployment) {
            return Some((State::Waiting, of_paused("WorkloadDeployment")));
        }
        if let Some(condition) = worst(deployment).filter(|one| needs_an_edit(text(one, "reason"))) {
            let state = if is_current(deployment, condition) {
                State::Failed
            } else {
                State::Waiting
            };
            return Some((state, said(condition)));
        }
        // A network or a right that is missing holds up what the Workload asks for, and is said there only.
        let available = find(self.workload.at("/status")?, types::AVAILABLE)?;
        let holds = text(available, "reason") == reasons::NETWORK_NOT_FOUND;
        holds.then(|| (State::Waiting, said(available)))
    }

    /// Why a city that has observed the spec is not done.
    fn explained(&self, deployment: &Object) -> (State, String) {
        let waiting = || self.members.iter().filter(|one| one.waits.is_some());
        let current = || waiting().filter(|one| one.hash == self.wanted);
        let says = |one: &&&Member, wanted: &str| one.waits.as_ref().is_some_and(|(reason, _)| reason == wanted);
        // One of an earlier template may have been what the change is to mend.
        if let Some(refused) = current().find(|one| says(one, reasons::CONFIGURATION_ERROR)) {
            return (State::Failed, refused.waits_for());
        }
        let worst = worst(deployment).filter(|one| priority(text(one, "reason")) > 1);
        // The lowest that is of the present template is the one that the others wait for.
        let waits = || current().next().or_else(|| waiting().next()).map(|one| one.waits_for());
        (State::Waiting, worst.map(said).or_else(waits).unwrap_or_default())
    }
}

/// The condition that is not True with the reason of the highest priority.
fn worst(object: &Object) -> Option<&Value> {
    let conditions = all(object.at("/status")?).iter();
    conditions
        .filter(|one| [types::AVAILABLE, types::REPLICAS_READY].contains(&text(one, "type")))
        .filter(|one| text(one, "status") != "True")
        .max_by_key(|one| priority(text(one, "reason")))
}

/// Whether a condition is about the present generation, as far as it says of which it is.
fn is_current(object: &Object, condition: &Value) -> bool {
    let of = condition.get("observedGeneration").and_then(Value::as_i64);
    let of = of.or_else(|| object.int("/status/observedGeneration"));
    of.is_none() || of >= object.generation()
}

fn of_paused(kind: &str) -> String {
    format!("the {kind} is {PAUSED}")
}

fn said(condition: &Value) -> String {
    let (reason, message) = (text(condition, "reason"), text(condition, "message"));
    match message {
        "" => reason.to_owned(),
        message => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests;
