//! What holds for the management plane, over generated histories.
//!
//! Why: `docs/decisions/28-laws.md`.

mod driver;

use proptest::prelude::*;

use driver::{CITIES, Driver, Step};
use popcell_api::kind;

use crate::limits::Excess;
use crate::plan::{Event, Plan, Plane, Severity, Target};
use crate::testing::{is_neutral, texts_for_users};

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
    fn foreign_objects_are_never_changed(steps in steps(), schedule in schedule(), which in 0..32_u8) {
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

    /// Users know projects, Workloads and cities: no condition and no Event of theirs names what stands between, also while it
    /// is unreachable. `FakeServers::apply` looks at each text; here are the histories, and that each tells something.
    #[test]
    fn no_text_for_users_names_hub_karmada_or_cluster(steps in steps(), more in steps(), schedule in schedule()) {
        let mut driver = Driver::new();
        driver.converge();
        driver.run(&steps, &schedule);
        driver.hub_away = true;
        driver.run(&more, &schedule);
        driver.converge_without_cells();
        driver.hub_away = false;
        driver.converge();
        prop_assert!(!driver.told.is_empty());
    }
}

#[test]
fn words_that_users_do_not_know_are_found_in_what_they_read() {
    let event = |plane, note: &str| {
        let target = Target::namespaced(&plane, kind::WORKLOAD, "default", "web");
        Event::of(&target, "u", Severity::Warning, "Reason", note)
    };
    let mut plan = Plan::default();
    plan.events
        .push(event(Plane::Project("p".to_owned()), "Karmada has no Cluster"));
    plan.events.push(event(Plane::Hub, "of operators"));
    assert_eq!(texts_for_users(&plan), ["Karmada has no Cluster"]);
    for (text, neutral) in [
        ("the hub is away", false),
        ("upstream-cluster-name", false),
        ("No Location matches city code \"X\"", true),
        ("a clutter of github", true),
    ] {
        assert_eq!(is_neutral(text), neutral, "{text}");
    }
    for excess in [
        Excess::Depth { levels: 1 },
        Excess::Bytes { bytes: 1, limit: 1 },
        Excess::ProjectObjects { limit: 1 },
        Excess::ProjectBytes { limit: 1 },
        Excess::CellBytes { limit: 1 },
    ] {
        assert!(is_neutral(&format!("{excess}: {}", excess.fix())), "{excess}");
    }
}

/// Of all messages that conditions have to the letter, and of one that is added: they are read from the source.
#[test]
fn no_message_of_a_condition_names_what_users_do_not_know() {
    let source = include_str!("../../api/src/conditions.rs");
    let (_, after) = source.split_once("pub mod messages {").unwrap();
    let (messages, _) = after.split_once("\npub mod ").unwrap();
    let code: Vec<&str> = messages
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n").replace("\\\"", "'");
    let texts: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    assert!(texts.contains(&"Waiting for controller") && texts.contains(&"Waiting for city {city_code}"));
    let declared = code.matches("pub const ").count() + code.matches("pub fn ").count();
    assert!(texts.len() >= declared, "{declared} messages, {} texts", texts.len());
    for text in texts {
        assert!(is_neutral(text), "{text}");
    }
}
