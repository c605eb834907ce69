//! Objects that exceed a limit, in the project and on the hub.

use super::*;
use crate::object::Excess;
use crate::testing::{deepened, enlarged};

const RUNS: &str = r#"{ "replicas": 1, "readyReplicas": 1, "observedGeneration": 1, "conditions": [
    { "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "1/1" },
    { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable", "message": "1/1" }] }"#;

fn deepen(world: &mut World, field: &str, levels: usize) {
    change(world, "web", |one| *one = deepened(one, field, levels));
}

fn told(world: &World, type_: &str) -> (String, String) {
    let status = in_project(world, "web").at("/status").cloned().unwrap_or_default();
    let condition = crate::conditions::find(&status, type_).cloned().unwrap_or_default();
    let text = |field| crate::conditions::text(&condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn what_nests_too_deeply_is_not_carried_and_says_how_deeply() {
    for (levels, carried) in [(61, true), (62, true), (63, false), (122, false), (200, false)] {
        let mut world = world(&[("web", "DFW")]);
        deepen(&mut world, "spec", levels);
        settle(&mut world, "web");
        assert_eq!(in_hub(&world, "web").is_some(), carried, "{levels}");
        if !carried {
            let message = format!(
                "WorkloadDeployment web nests {} levels deep, the limit is 64: it is not carried to its city; make it smaller",
                levels + 2
            );
            for type_ in ["Available", "ReplicasReady"] {
                assert_eq!(told(&world, type_), ("LimitExceeded".to_owned(), message.clone()));
            }
            assert!(pass(&world, "web").is_quiet(), "said once");
        }
    }
}

#[test]
fn what_runs_goes_on_and_is_shown_beside_what_is_not_carried() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.data["status"] = serde_json::from_str(RUNS).unwrap();
    });
    let before = in_hub(&world, "web").unwrap().clone();
    deepen(&mut world, "spec", 200);
    settle(&mut world, "web");
    assert_eq!(in_hub(&world, "web"), Some(&before));
    assert_eq!(told(&world, "Available").0, "StableInstanceFound");
    assert_eq!(told(&world, "ReplicasReady").0, "LimitExceeded");
    assert_eq!(in_project(&world, "web").int("/status/readyReplicas"), Some(1));

    // Smaller again, it is carried, and the city's word is all that is shown.
    change(&mut world, "web", |one| {
        let mut value = serde_json::to_value(&*one).unwrap();
        value["spec"] = before.at("/spec").cloned().unwrap();
        *one = object(value);
    });
    settle(&mut world, "web");
    assert_eq!(told(&world, "ReplicasReady").0, "ReplicasAvailable");
}

#[test]
fn a_deletion_takes_everything_along_also_of_one_that_exceeds_a_limit() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    deepen(&mut world, "spec", 200);
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut world, "web");
    assert!(in_hub(&world, "web").is_none());
    assert!(
        world
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );
}

#[test]
fn a_status_that_a_city_reports_too_deeply_is_not_shown_and_the_spec_is_carried_on() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.data["status"] = serde_json::from_str(RUNS).unwrap();
    });
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| *one = deepened(one, "status", 200));
    settle(&mut world, "web");
    assert_eq!(told(&world, "Available").0, "StableInstanceFound", "what it said last");
    let message =
        "What city DFW reports of WorkloadDeployment web nests 202 levels deep, the limit is 64: it is not shown";
    assert_eq!(
        told(&world, "ReplicasReady"),
        ("LimitExceeded".to_owned(), message.to_owned())
    );

    change(&mut world, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(5);
    });
    settle(&mut world, "web");
    assert_eq!(
        in_hub(&world, "web").unwrap().int("/spec/scaleSettings/minReplicas"),
        Some(5)
    );
}

#[test]
fn one_of_the_hub_that_exceeds_a_limit_is_not_replaced() {
    let too_large = Excess::Bytes {
        bytes: 300_000,
        limit: 262_144,
    };
    for field in ["spec", "status"] {
        let mut world = world(&[("web", "DFW")]);
        settle(&mut world, "web");
        let before = in_hub(&world, "web").unwrap().clone();
        change_hub(&mut world, "web", |one| {
            *one = enlarged(one, kind::WORKLOAD_DEPLOYMENT, field, 300_000, too_large);
        });
        settle(&mut world, "web");
        let now = in_hub(&world, "web").unwrap();
        assert_eq!(now.uid(), before.uid(), "{field}");
        assert_eq!(told(&world, "ReplicasReady").0, "LimitExceeded");
        assert!(pass(&world, "web").is_quiet());
    }
}

#[test]
fn of_what_exceeds_a_limit_fewer_replicas_are_carried_and_nothing_else() {
    for (bytes, excess) in [
        (5_000, Excess::ProjectObjects { limit: 3 }),
        (5_000, Excess::ProjectBytes { limit: 3 }),
        (
            300_000,
            Excess::Bytes {
                bytes: 300_000,
                limit: 262_144,
            },
        ),
    ] {
        for (asked, carried) in [(2, 2), (9, 5)] {
            let mut world = world(&[("web", "DFW")]);
            let replicas =
                |one: &mut Object, count: i64| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(count);
            change(&mut world, "web", |one| replicas(one, 5));
            settle(&mut world, "web");
            let mut expected = in_hub(&world, "web").unwrap().at("/spec").cloned().unwrap();
            change(&mut world, "web", |one| {
                replicas(one, asked);
                *one = enlarged(one, kind::WORKLOAD_DEPLOYMENT, "spec", bytes, excess);
            });
            settle(&mut world, "web");
            expected["scaleSettings"]["minReplicas"] = json!(carried);
            assert_eq!(
                in_hub(&world, "web").unwrap().at("/spec"),
                Some(&expected),
                "{excess:?}"
            );
            assert!(told(&world, "ReplicasReady").1.ends_with(excess.remedy()), "{excess:?}");
        }
    }
}
