//! What holds for the copies and claims that a cell keeps in other planes, over generated histories.
//!
//! Why: `docs/decisions/28-laws.md`.

mod driver;

use proptest::prelude::*;

use driver::{Driver, SLOTS, Step};

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = || 0..SLOTS;
    let step = prop_oneof![
        2 => (0..=SLOTS).prop_map(Step::Scale),
        4 => slot().prop_map(Step::Make),
        3 => slot().prop_map(Step::End),
        3 => slot().prop_map(Step::Open),
        2 => (slot(), any::<bool>()).prop_map(|(slot, ready)| Step::Report(slot, ready)),
        1 => any::<bool>().prop_map(Step::Resize),
        1 => any::<bool>().prop_map(Step::Hub),
        1 => any::<bool>().prop_map(Step::Project),
        1 => Just(Step::Replace),
        1 => slot().prop_map(Step::TakeOff),
    ];
    prop::collection::vec(step, 1..16)
}

fn schedule() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((any::<usize>(), 0..4_usize), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every Instance ends with a copy and a claim of its size, and nothing else of ours is left; then all is quiet.
    #[test]
    fn copies_and_claims_equal_instances(steps in steps(), schedule in schedule()) {
        let mut driver = Driver::new();
        driver.run(&steps, &schedule);
        driver.converge();
        let instances = driver.instances();
        prop_assert_eq!(driver.copies(), instances.clone());
        prop_assert_eq!(driver.claims(), instances);
        for plan in driver.plans() {
            prop_assert!(plan.is_unchanged() && plan.requeue.is_none() && plan.notes.is_empty(), "{:#?}", plan);
        }
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

    /// Copies and claims of others at names of ours are never changed, whatever happens around them.
    #[test]
    fn foreign_objects_are_never_changed(steps in steps(), schedule in schedule(), which in 0..16_u8) {
        let mut driver = Driver::new();
        let foreign = driver.add_foreign(which);
        driver.run(&steps, &schedule);
        driver.settle();
        for (key, object) in foreign {
            let now = driver.servers.all().find(|(one, _)| **one == key).map(|(_, object)| object);
            prop_assert_eq!(now, Some(&object));
        }
    }
}
