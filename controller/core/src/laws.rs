//! What holds for the management plane, over generated histories.
//!
//! Why: `docs/decisions/28-laws.md`.

mod driver;

use proptest::prelude::*;

use driver::{CITIES, Driver, Step};

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cities = prop::collection::vec(any::<bool>(), CITIES.len());
    let step = prop_oneof![
        3 => cities.prop_map(Step::Place),
        2 => (0..CITIES.len()).prop_map(Step::Bind),
        1 => Just(Step::Network),
        2 => (0..3_u8).prop_map(Step::Cells),
        1 => Just(Step::DeleteWorkload),
        2 => Just(Step::CreateWorkload),
    ];
    prop::collection::vec(step, 1..12)
}

fn schedule() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((any::<usize>(), 0..4_usize), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Deciding over a converged state gives empty plans, and asks for nothing again and again.
    #[test]
    fn a_converged_state_plans_nothing(steps in steps(), schedule in schedule()) {
        let mut driver = Driver::new();
        driver.run(&steps, &schedule);
        driver.converge();
        let writes = driver.servers.writes;
        for plan in driver.plans() {
            prop_assert!(plan.is_unchanged() && plan.requeue.is_none(), "{:#?}", plan);
        }
        driver.converge();
        prop_assert_eq!(driver.servers.writes, writes);
    }

    /// Any order of reconciles, and a death after any write of any of them, end in the same state.
    #[test]
    fn order_and_crashes_do_not_matter(steps in steps(), one in schedule(), other in schedule()) {
        let end = |schedule: &[(usize, usize)]| {
            let mut driver = Driver::new();
            driver.run(&steps, schedule);
            driver.converge();
            driver.picture()
        };
        prop_assert_eq!(end(&one), end(&other));
    }

    /// Whatever single object of ours is deleted by hand comes back, and nothing else changes.
    #[test]
    fn a_deletion_by_hand_heals(steps in steps(), victim in any::<prop::sample::Index>()) {
        let mut driver = Driver::new();
        driver.run(&steps, &[]);
        driver.converge();
        let before = driver.picture();
        driver.delete_by_hand(victim);
        driver.converge();
        prop_assert_eq!(driver.picture(), before);
    }

    /// Objects of others at names of ours are never changed, whatever happens around them.
    #[test]
    fn foreign_objects_are_never_changed(steps in steps(), schedule in schedule(), which in 0..16_u8) {
        let mut driver = Driver::new();
        let foreign = driver.add_foreign(which);
        driver.run(&steps, &schedule);
        driver.converge();
        for (key, object) in foreign {
            let now = driver.servers.all().find(|(one, _)| **one == key).map(|(_, object)| object);
            let now = now.cloned().map(|one| driver::as_its_owner_made_it(&key, one));
            prop_assert_eq!(now, Some(object));
        }
    }

    /// A hub that is unreachable is never written to, and nothing of a project is deleted for it.
    #[test]
    fn an_unknown_hub_loses_nothing(steps in steps(), more in steps(), schedule in schedule()) {
        let mut driver = Driver::new();
        driver.run(&steps, &schedule);
        driver.converge();
        let in_hub = driver.hub();
        driver.hub_away = true;
        driver.run(&more, &schedule);
        driver.converge_without_cells();
        prop_assert_eq!(driver.hub(), in_hub);
        driver.hub_away = false;
        driver.converge();
        prop_assert!(driver.plans().iter().all(crate::plan::Plan::is_unchanged));
    }
}
