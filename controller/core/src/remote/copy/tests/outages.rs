//! What is not known, not ours to write, or not to be read.

use super::*;

/// Planes whose Instance is new, and one in which its copy is left over.
fn fresh_and_left() -> [FakeServers; 2] {
    let mut left = servers();
    settle(&mut left, "web-0");
    left.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    left.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    [servers(), left]
}

#[test]
fn while_the_hub_is_unknown_no_copy_is_written_or_deleted() {
    for servers in &fresh_and_left() {
        assert!(!reconcile(servers, "web-0").is_unchanged());
        let plan = see(servers, "web-0", |seen| {
            decide(&Observation {
                copy: Observed::Unknown,
                ..*seen
            })
        });
        assert!(
            plan.is_unchanged() && plan.notes == [Note::Unknown(Plane::Hub)],
            "{plan:?}"
        );
    }
    let without_namespace = see(&servers(), "web-0", |seen| {
        decide(&Observation {
            hub_namespace: Observed::Unknown,
            ..*seen
        })
    });
    let without_owner = see(&servers(), "web-0", |seen| {
        decide(&Observation {
            hub_deployment_lives: Observed::Unknown,
            ..*seen
        })
    });
    for plan in [without_namespace, without_owner] {
        assert!(
            plan.is_unchanged() && plan.notes == [Note::Unknown(Plane::Hub)],
            "{plan:?}"
        );
    }
}

#[test]
fn a_cell_whose_identity_is_not_confirmed_writes_no_copy() {
    for servers in &fresh_and_left() {
        for identity in [Identity::Mismatch("another".to_owned()), Identity::Unknown] {
            let plan = see(servers, "web-0", |seen| {
                decide(&Observation {
                    identity: &identity,
                    ..*seen
                })
            });
            assert!(plan.is_unchanged(), "{identity:?}: {plan:?}");
        }
    }
}

#[test]
fn no_copy_is_written_once_the_hub_deployment_is_gone() {
    let mut settled = servers();
    settle(&mut settled, "web-0");
    let gone: fn(&mut FakeServers) = |servers| servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let made_anew: fn(&mut FakeServers) = |servers| {
        let other = json!({ "metadata": { "name": "web", "namespace": "ns-n1", "uid": "hub-2" } });
        servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object(other));
    };
    for end in [gone, made_anew] {
        let (mut fresh, mut servers) = (servers(), settled.clone());
        end(&mut fresh);
        end(&mut servers);
        assert!(reconcile(&fresh, "web-0").is_unchanged());
        servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
            one.data["status"]["conditions"][0]["status"] = json!("False");
        });
        assert!(reconcile(&servers, "web-0").is_unchanged());
        servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
        assert!(reconcile(&servers, "web-0").is_unchanged());
        // What is left when the cell's has ended as well is deleted, if the garbage collector was not faster.
        servers.remove(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
        settle(&mut servers, "web-0");
        assert!(copy_of(&servers, "web-0").is_none());
    }
}

#[test]
fn an_instance_whose_deployment_left_the_cell_is_not_copied_and_keeps_its_copy() {
    let mut settled = servers();
    settle(&mut settled, "web-0");
    for mut servers in [servers(), settled] {
        servers.remove(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
        let plan = reconcile(&servers, "web-0");
        assert!(
            plan.is_unchanged() && matches!(plan.notes[..], [Note::Dropped(_)]),
            "{plan:?}"
        );
    }
}

#[test]
fn an_unreadable_spec_or_status_does_no_harm() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    for data in [
        json!({}),
        json!({ "spec": null, "status": null }),
        json!({ "spec": { "controller": null }, "status": { "controller": null, "conditions": null } }),
        json!({ "spec": "x", "status": [] }),
        json!({ "spec": {}, "status": { "conditions": [7, {}, { "type": null, "observedGeneration": "x" }] } }),
    ] {
        servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
            one.data = data.into()
        });
        settle(&mut servers, "web-0");
        servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
            one.data["status"] = json!("x")
        });
        servers.settle(|servers| {
            see(servers, "web-0", |seen| {
                decide(&Observation {
                    instance: None,
                    ..*seen
                })
            })
        });
        assert_eq!(ready(&servers, "web-0")["reason"], "Pending");
    }
}

#[test]
fn a_hub_that_prunes_a_spec_is_reported_once() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["new"] = json!(1);
    });
    let spec_echoes = SpecEchoes::default();
    let sent = servers
        .get(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0")
        .unwrap()
        .data["spec"]
        .clone();
    let copy = copy_of(&servers, "web-0").unwrap();
    spec_echoes.record(&target(copy), &sent, copy.at("/spec").unwrap());
    let plan = see(&servers, "web-0", |seen| {
        decide(&Observation {
            spec_echoes: &spec_echoes,
            ..*seen
        })
    });
    assert!(
        plan.is_unchanged() && matches!(plan.notes[..], [Note::Skew(_)]),
        "{plan:?}"
    );
}
