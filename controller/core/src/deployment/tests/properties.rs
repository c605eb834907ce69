//! The law of the rollout, under any order of events.
//!
//! Why: `docs/decisions/28-laws.md` and `docs/decisions/10-rollout.md`.

use popcell_api::kind;
use proptest::prelude::*;
use serde_json::json;

use super::super::rollout;
use super::{Cell, NAMESPACE, run, template};
use crate::object::Fields;
use crate::plan::{Action, Plane};

/// What happens around the reconciler.
#[derive(Clone, Debug)]
enum Event {
    Ready(i64, bool),
    Image(u8),
    Scale(i64),
    /// Somebody deletes an Instance.
    Lose(i64),
    /// The provider ends a teardown.
    TornDown(i64),
    Reconcile,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let slot = 0..4_i64;
    let one = prop_oneof![
        3 => (slot.clone(), any::<bool>()).prop_map(|(slot, ready)| Event::Ready(slot, ready)),
        1 => (0..3_u8).prop_map(Event::Image),
        1 => (0..4_i64).prop_map(Event::Scale),
        1 => slot.clone().prop_map(Event::Lose),
        2 => slot.prop_map(Event::TornDown),
        6 => Just(Event::Reconcile),
    ];
    prop::collection::vec(one, 1..60)
}

fn ready_slots(cell: &Cell, desired: i64) -> usize {
    let ready = |ordinal: &i64| {
        let instance = cell.instance(*ordinal);
        instance.is_some_and(|one| !one.deleting() && rollout::is_ready(one))
    };
    (0..desired).filter(ready).count()
}

impl Cell {
    fn happen(&mut self, event: &Event) {
        match event {
            Event::Ready(slot, ready) if self.instance(*slot).is_some() => {
                self.edit_instance(*slot, |one| {
                    run(one, *ready);
                    one.metadata.finalizers = Some(vec!["provider".to_owned()]);
                });
            }
            Event::Image(image) => {
                self.edit(|one| one.data["spec"]["template"] = template(&image.to_string()));
            }
            Event::Scale(replicas) => {
                self.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(replicas));
            }
            Event::Lose(slot) => {
                let name = format!("web-{slot}");
                self.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, &name);
            }
            Event::TornDown(slot) if self.instance(*slot).is_some_and(Fields::deleting) => {
                self.edit_instance(*slot, |one| one.metadata.finalizers = None);
            }
            _ => {}
        }
    }

    fn desired(&self) -> i64 {
        crate::slots::desired(self.get().unwrap())
    }

    /// One reconcile, and what the law says of it.
    fn lawful_pass(&mut self) -> Result<(), TestCaseError> {
        let (plan, desired) = (self.plan(), self.desired());
        let start = ready_slots(self, desired);
        let of_instances =
            |action: &&Action| action.target().kind == kind::INSTANCE && !matches!(action, Action::Patch(_));
        prop_assert!(plan.actions.iter().filter(of_instances).count() <= 1);
        self.servers.apply(&plan);
        let floor = start.min(usize::try_from(desired).unwrap().saturating_sub(1));
        prop_assert!(ready_slots(self, desired) >= floor, "{:?}", plan.actions);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn never_more_than_one_ready_slot_is_given_up(events in events()) {
        let mut cell = Cell::new(3);
        for event in &events {
            match event {
                Event::Reconcile => cell.lawful_pass()?,
                other => cell.happen(other),
            }
        }
    }

    /// With a provider that does its work it ends with what is asked for, whatever happened before.
    #[test]
    fn every_history_ends_as_asked(events in events()) {
        let mut cell = Cell::new(3);
        for event in &events {
            match event {
                Event::Reconcile => cell.lawful_pass()?,
                other => cell.happen(other),
            }
        }
        let mut rounds = 0;
        loop {
            let mut acted = false;
            for slot in 0..4 {
                cell.happen(&Event::TornDown(slot));
                let waits = cell.instance(slot).is_some_and(|one| !one.deleting() && !rollout::is_ready(one));
                if waits {
                    cell.happen(&Event::Ready(slot, true));
                    acted = true;
                }
            }
            let plan = cell.plan();
            if plan.is_unchanged() && !acted {
                break;
            }
            cell.lawful_pass()?;
            rounds += 1;
            prop_assert!(rounds < 80, "{:#?}", cell.plan());
        }
        let desired = cell.desired();
        let found = cell.servers.list(&Plane::Cell, kind::INSTANCE);
        prop_assert_eq!(i64::try_from(found.len()).unwrap(), desired);
        prop_assert_eq!(ready_slots(&cell, desired), usize::try_from(desired).unwrap());
        let image = cell.get().unwrap().text("/spec/template/spec/runtime/sandbox/containers/0/image");
        for instance in found {
            prop_assert_eq!(instance.text("/spec/runtime/sandbox/containers/0/image"), image);
        }
    }
}
