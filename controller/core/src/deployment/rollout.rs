//! Ordered instances: one action a reconcile, the first of these that applies.
//!
//! 1. Delete an Instance of no slot.
//! 2. Delete the highest surplus ordinal, whatever lower slots do.
//! 3. Delete the highest slot that is unready and drifted.
//! 4. Create the lowest missing slot whose lower slots are all Ready, or wait until they are.
//! 5. Once all are Ready, delete the highest drifted slot.
//!
//! Law: of the desired slots, no fewer are Ready than min(those at the start, desired - 1) by our doing. A slot that is
//! Ready is given up only while every other one is Ready; what is deleted beside that was not Ready, or is not desired.
//!
//! Why: `docs/decisions/10-rollout.md`.

use std::collections::BTreeMap;

use popcell_api::conditions as types;

use super::template::{Likeness, Template};
use crate::conditions;
use crate::object::{Fields, Object};
use crate::slots;

/// The Instances of a WorkloadDeployment, by what they are to it.
#[derive(Debug, Default)]
pub(super) struct Instances<'a> {
    /// Those of slots, desired or not.
    pub(super) slots: BTreeMap<i64, Slot<'a>>,
    /// Those of no slot: their name has no ordinal, or a slot's second name.
    pub(super) unexpected: Vec<&'a Object>,
}

/// One slot that has an Instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a> {
    pub(super) instance: &'a Object,
    pub(super) likeness: Likeness,
}

impl Slot<'_> {
    fn is_ready(&self) -> bool {
        !self.instance.deleting() && is_ready(self.instance)
    }
}

/// Ready=True.
pub(super) fn is_ready(instance: &Object) -> bool {
    conditions::says(instance, types::READY, "True")
}

impl<'a> Instances<'a> {
    /// Sorts those of one WorkloadDeployment.
    pub(super) fn sort(deployment: &Object, template: &Template<'_>, instances: &[&'a Object]) -> Self {
        let mut sorted = Self::default();
        for instance in instances {
            match slots::ordinal_of(deployment.name(), instance.name()) {
                Some(ordinal) => {
                    let likeness = template.compare(ordinal, instance);
                    sorted.slots.insert(ordinal, Slot { instance, likeness });
                }
                None => sorted.unexpected.push(instance),
            }
        }
        sorted.unexpected.sort_by(|one, other| one.name().cmp(other.name()));
        sorted
    }

    /// The slot above the highest that has an Instance.
    pub(super) fn end(&self) -> i64 {
        self.slots
            .last_key_value()
            .map_or(0, |(ordinal, _)| ordinal.saturating_add(1))
    }
}

/// What one reconcile does.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// Takes one away.
    Delete(&'a Object),
    /// Fills a slot.
    Create(i64),
    /// Something must happen first.
    Wait,
    /// Everything is as desired.
    Settled,
}

/// What may be done of a step while nothing may be carried that adds something: the slots below `before` were asked for
/// before, and `adds` says whether an Instance would become more by being replaced. One of them must run on: nothing else
/// says what it was.
pub(super) fn without_growth<'a>(
    step: Step<'a>,
    instances: &Instances<'a>,
    desired: i64,
    before: i64,
    adds: impl Fn(&Object) -> bool,
) -> Step<'a> {
    let wanted = || instances.slots.range(..desired).map(|(_, slot)| slot);
    let mut grown = wanted().filter(|slot| slot.likeness == Likeness::Drifted && adds(slot.instance));
    let may = match step {
        Step::Create(ordinal) => ordinal < before && wanted().next().is_some() && grown.next().is_none(),
        Step::Delete(instance) => {
            let is_it = |slot: &Slot<'_>| slot.instance.name() == instance.name();
            let is_wanted = wanted().any(is_it);
            !is_wanted || grown.all(|slot| !is_it(slot)) && wanted().any(|slot| !is_it(slot))
        }
        Step::Wait | Step::Settled => true,
    };
    if may { step } else { Step::Wait }
}

/// Decides on one action for `desired` slots.
pub(super) fn step<'a>(instances: &Instances<'a>, desired: i64) -> Step<'a> {
    let stays = |instance: &&'a Object| !instance.deleting();
    if let Some(unexpected) = instances.unexpected.iter().copied().find(stays) {
        return Step::Delete(unexpected);
    }
    let surplus = instances.slots.range(desired..).rev();
    if let Some(surplus) = surplus.map(|(_, slot)| slot.instance).find(stays) {
        return Step::Delete(surplus);
    }
    let wanted = || instances.slots.range(..desired);
    let broken = |slot: &&Slot<'_>| !slot.instance.deleting() && slot.likeness == Likeness::Drifted && !slot.is_ready();
    if let Some(broken) = wanted().rev().map(|(_, slot)| slot).find(broken) {
        return Step::Delete(broken.instance);
    }
    for ordinal in 0..desired {
        match instances.slots.get(&ordinal) {
            None => return Step::Create(ordinal),
            Some(slot) if slot.is_ready() => {}
            Some(_) => return Step::Wait,
        }
    }
    let drifted = |slot: &&Slot<'_>| slot.likeness == Likeness::Drifted;
    match wanted().rev().map(|(_, slot)| slot).find(drifted) {
        Some(drifted) => Step::Delete(drifted.instance),
        None => Step::Settled,
    }
}
