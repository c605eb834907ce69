//! Objects that exceed a limit, in the project and on the hub.

use super::*;
use crate::object::Excess;
use crate::testing::{deepened, enlarged};

const RUNS: &str = r#"{ "replicas": 1, "readyReplicas": 1, "observedGeneration": 1, "conditions": [
    { "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "1/1" },
    { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable", "message": "1/1" }] }"#;

fn deepen(servers: &mut FakeServers, field: &str, levels: usize) {
    change(servers, "web", |one| *one = deepened(one, field, levels));
}

fn reported(servers: &FakeServers, type_: &str) -> (String, String) {
    let status = in_project(servers, "web").at("/status").cloned().unwrap_or_default();
    let condition = crate::conditions::find(&status, type_).cloned().unwrap_or_default();
    let text = |field| crate::conditions::text(&condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn what_nests_too_deeply_is_not_carried_and_says_how_deeply() {
    for (levels, carried) in [(61, true), (62, true), (63, false), (122, false), (200, false)] {
        let mut servers = servers(&[("web", "DFW")]);
        deepen(&mut servers, "spec", levels);
        settle(&mut servers, "web");
        assert_eq!(in_hub(&servers, "web").is_some(), carried, "{levels}");
        if !carried {
            let message = format!(
                "WorkloadDeployment web nests {} levels deep, the limit is 64: it is not carried to its city; make it smaller",
                levels + 2
            );
            for type_ in ["Available", "ReplicasReady"] {
                assert_eq!(reported(&servers, type_), ("LimitExceeded".to_owned(), message.clone()));
            }
            assert!(reconcile(&servers, "web").is_unchanged(), "said once");
        }
    }
}

#[test]
fn what_runs_continues_and_is_shown_beside_what_is_not_carried() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.data["status"] = serde_json::from_str(RUNS).unwrap();
    });
    let before = in_hub(&servers, "web").unwrap().clone();
    deepen(&mut servers, "spec", 200);
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web"), Some(&before));
    assert_eq!(reported(&servers, "Available").0, "StableInstanceFound");
    assert_eq!(reported(&servers, "ReplicasReady").0, "LimitExceeded");
    assert_eq!(in_project(&servers, "web").int("/status/readyReplicas"), Some(1));

    // Smaller again, it is carried, and the city's word is all that is shown.
    change(&mut servers, "web", |one| {
        let mut value = serde_json::to_value(&*one).unwrap();
        value["spec"] = before.at("/spec").cloned().unwrap();
        *one = object(value);
    });
    settle(&mut servers, "web");
    assert_eq!(reported(&servers, "ReplicasReady").0, "ReplicasAvailable");
}

#[test]
fn a_deletion_takes_everything_along_also_of_one_that_exceeds_a_limit() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    deepen(&mut servers, "spec", 200);
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut servers, "web");
    assert!(in_hub(&servers, "web").is_none());
    assert!(
        servers
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );
}

#[test]
fn a_status_that_a_city_reports_too_deeply_is_not_shown_and_the_spec_is_carried_on() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.data["status"] = serde_json::from_str(RUNS).unwrap();
    });
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| *one = deepened(one, "status", 200));
    settle(&mut servers, "web");
    assert_eq!(
        reported(&servers, "Available").0,
        "StableInstanceFound",
        "what it said last"
    );
    let message =
        "What city DFW reports of WorkloadDeployment web nests 202 levels deep, the limit is 64: it is not shown";
    assert_eq!(
        reported(&servers, "ReplicasReady"),
        ("LimitExceeded".to_owned(), message.to_owned())
    );

    change(&mut servers, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(5);
    });
    settle(&mut servers, "web");
    assert_eq!(
        in_hub(&servers, "web").unwrap().int("/spec/scaleSettings/minReplicas"),
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
        let mut servers = servers(&[("web", "DFW")]);
        settle(&mut servers, "web");
        let before = in_hub(&servers, "web").unwrap().clone();
        change_hub(&mut servers, "web", |one| {
            *one = enlarged(one, kind::WORKLOAD_DEPLOYMENT, field, 300_000, too_large);
        });
        settle(&mut servers, "web");
        let now = in_hub(&servers, "web").unwrap();
        assert_eq!(now.uid(), before.uid(), "{field}");
        assert_eq!(reported(&servers, "ReplicasReady").0, "LimitExceeded");
        assert!(reconcile(&servers, "web").is_unchanged());
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
            let mut servers = servers(&[("web", "DFW")]);
            let replicas =
                |one: &mut Object, count: i64| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(count);
            change(&mut servers, "web", |one| replicas(one, 5));
            settle(&mut servers, "web");
            let mut expected = in_hub(&servers, "web").unwrap().at("/spec").cloned().unwrap();
            change(&mut servers, "web", |one| {
                replicas(one, asked);
                *one = enlarged(one, kind::WORKLOAD_DEPLOYMENT, "spec", bytes, excess);
            });
            settle(&mut servers, "web");
            expected["scaleSettings"]["minReplicas"] = json!(carried);
            assert_eq!(
                in_hub(&servers, "web").unwrap().at("/spec"),
                Some(&expected),
                "{excess:?}"
            );
            assert!(
                reported(&servers, "ReplicasReady").1.ends_with(excess.fix()),
                "{excess:?}"
            );
        }
    }
}
