//! Status from the hub to the project.

use super::*;

fn with_status(status: Value) -> FakeServers {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| one.data["status"] = status);
    servers
}

fn hub_status(replicas: i64, observed: i64) -> Value {
    json!({ "replicas": replicas, "currentReplicas": 0, "updatedReplicas": 0, "desiredReplicas": 1,
        "readyReplicas": 0, "observedGeneration": observed, "conditions": [
        { "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 77 }] })
}

/// As Karmada v1.18 writes it where no cluster fits any more: the generation that it notes is that of its last success.
fn binding(clusters: Value, since: &str) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": "ns-n1", "generation": 4, "uid": "b", "resourceVersion": "1" },
        "spec": { "clusters": clusters },
        "status": { "schedulerObservedGeneration": 3, "conditions": [
            { "type": "Scheduled", "status": "False", "reason": "NoClusterFit", "lastTransitionTime": since }] } }),
    )
}

#[test]
fn a_status_change_on_the_hub_is_one_write_and_no_change_is_none() {
    let mut servers = with_status(hub_status(1, 1));
    let plan = reconcile(&servers, "web");
    assert!(plan.actions.is_empty() && plan.status.is_some());
    servers.apply(&plan);
    assert_eq!(in_project(&servers, "web").int("/status/replicas"), Some(1));
    let writes = servers.writes;
    settle(&mut servers, "web");
    assert_eq!(servers.writes, writes);
}

#[test]
fn unknown_status_fields_are_mirrored_and_removed_again() {
    let mut status = hub_status(1, 1);
    status["suspended"] = json!(true);
    status["location"] = json!({ "name": "dfw-a", "more": [1] });
    status["conditions"][0]["extra"] = json!("x");
    let mut servers = with_status(status);
    settle(&mut servers, "web");
    let arrived = in_project(&servers, "web");
    assert_eq!(
        arrived.at("/status/location"),
        Some(&json!({ "name": "dfw-a", "more": [1] }))
    );
    assert_eq!(arrived.at("/status/conditions/0/extra"), Some(&json!("x")));
    change_hub(&mut servers, "web", |one| one.data["status"] = hub_status(1, 1));
    settle(&mut servers, "web");
    assert_eq!(in_project(&servers, "web").at("/status/suspended"), None);
}

#[test]
fn generations_are_translated_and_never_copied() {
    let mut servers = with_status(hub_status(1, 1));
    // The hub's generation runs ahead of the project's.
    change_hub(&mut servers, "web", |one| {
        one.metadata.generation = Some(7);
        one.data["status"]["observedGeneration"] = json!(7);
    });
    settle(&mut servers, "web");
    let observed = |servers: &FakeServers| {
        let one = in_project(servers, "web");
        (
            one.int("/status/observedGeneration"),
            one.int("/status/conditions/0/observedGeneration"),
        )
    };
    assert_eq!(observed(&servers), (Some(1), Some(1)));
    // The project has moved on; the cell has not seen it: the number stays.
    change(&mut servers, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["template"]["x"] = json!(1);
    });
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web").unwrap().generation(), Some(8));
    assert_eq!(observed(&servers), (Some(1), Some(1)));
    change_hub(&mut servers, "web", |one| {
        one.data["status"]["observedGeneration"] = json!(8)
    });
    settle(&mut servers, "web");
    assert_eq!(observed(&servers), (Some(2), Some(2)));
    // Seen nothing at all: no number is made up.
    let mut unseen = with_status(json!({ "replicas": 0, "conditions": [{ "type": "A", "observedGeneration": 5 }] }));
    settle(&mut unseen, "web");
    assert_eq!(observed(&unseen), (None, None));
}

#[test]
fn the_status_does_not_depend_on_the_writes_beside_it() {
    // The hub may refuse them, and the status is written all the same.
    let mut servers = with_status(hub_status(1, 1));
    change(&mut servers, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["template"]["x"] = json!(1);
    });
    let status = |mut plan: Plan| {
        assert!(!plan.actions.is_empty());
        plan.actions.clear();
        plan
    };
    servers.apply(&status(reconcile(&servers.clone(), "web")));
    let one = in_project(&servers, "web");
    assert_eq!(one.int("/status/observedGeneration"), Some(1));
    assert_eq!(one.int("/status/conditions/0/observedGeneration"), Some(1));
    // Nor does that of one that the hub does not have yet.
    let mut servers = self::servers(&[("web", "DFW")]);
    servers.apply(&reconcile(&servers.clone(), "web"));
    servers.apply(&status(reconcile(&servers.clone(), "web")));
    let one = in_project(&servers, "web");
    assert_eq!(available(one).1, "Waiting for city DFW");
    assert_eq!(one.at("/status/observedGeneration"), None);
}

#[test]
fn a_mirrored_status_has_every_count() {
    let mut servers = with_status(json!({ "replicas": 1 }));
    settle(&mut servers, "web");
    for count in [
        "replicas",
        "currentReplicas",
        "updatedReplicas",
        "desiredReplicas",
        "readyReplicas",
    ] {
        assert!(
            in_project(&servers, "web").int(&format!("/status/{count}")).is_some(),
            "{count}"
        );
    }
}

#[test]
fn an_empty_status_on_the_hub_blanks_nothing() {
    let mut servers = with_status(hub_status(3, 1));
    settle(&mut servers, "web");
    for empty in [json!({}), json!(null)] {
        change_hub(&mut servers, "web", |one| one.data["status"] = empty);
        settle(&mut servers, "web");
        assert_eq!(in_project(&servers, "web").int("/status/replicas"), Some(3));
    }
}

#[test]
fn a_new_deployment_says_that_it_waits_for_its_city() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    let one = in_project(&servers, "web");
    assert_eq!(
        available(one),
        (
            reasons::PROVISIONING_INSTANCES.to_owned(),
            "Waiting for city DFW".to_owned()
        )
    );
    assert_eq!(one.int("/status/desiredReplicas"), Some(0));
    assert_eq!(one.at("/status/observedGeneration"), None);
}

#[test]
fn a_city_without_a_cell_is_reported_with_zero_counts_after_a_minute() {
    let mut servers = with_status(hub_status(3, 1));
    settle(&mut servers, "web");
    // now is 00:10:00.
    servers.put(
        &Plane::Hub,
        kind::RESOURCE_BINDING,
        binding(json!([]), "2026-01-01T00:09:30Z"),
    );
    let early = reconcile(&servers, "web");
    assert!(early.is_unchanged());
    assert_eq!(early.requeue, Some(std::time::Duration::from_secs(30)));
    servers.put(
        &Plane::Hub,
        kind::RESOURCE_BINDING,
        binding(json!([]), "2026-01-01T00:09:00Z"),
    );
    settle(&mut servers, "web");
    let one = in_project(&servers, "web");
    assert_eq!(one.int("/status/replicas"), Some(0));
    assert_eq!(
        available(one),
        (
            reasons::NO_MATCHING_LOCATION.to_owned(),
            r#"No Location matches city code "DFW""#.to_owned()
        )
    );
    // A clock that is behind, a scheduler that has not looked or that failed, and a placed binding change nothing.
    let mut new = binding(json!([]), "2026-01-01T00:00:00Z");
    new.data["status"] = json!({});
    let mut failed = binding(json!([]), "2026-01-01T00:00:00Z");
    failed.data["status"]["conditions"][0]["reason"] = json!("SchedulerError");
    for other in [
        new,
        failed,
        binding(json!([{ "name": "dfw" }]), "2026-01-01T00:00:00Z"),
        binding(json!([]), "2026-01-01T09:00:00Z"),
    ] {
        let mut servers = with_status(hub_status(3, 1));
        servers.put(&Plane::Hub, kind::RESOURCE_BINDING, other);
        settle(&mut servers, "web");
        assert_eq!(in_project(&servers, "web").int("/status/replicas"), Some(3));
    }
}

#[test]
fn a_city_that_gets_its_cell_waits_for_the_first_status_from_it() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    servers.put(
        &Plane::Hub,
        kind::RESOURCE_BINDING,
        binding(json!([]), "2026-01-01T00:00:00Z"),
    );
    settle(&mut servers, "web");
    assert_eq!(available(in_project(&servers, "web")).0, reasons::NO_MATCHING_LOCATION);
    servers.put(
        &Plane::Hub,
        kind::RESOURCE_BINDING,
        binding(json!([{ "name": "dfw" }]), "2026-01-01T00:00:00Z"),
    );
    settle(&mut servers, "web");
    assert_eq!(
        available(in_project(&servers, "web")).0,
        reasons::PROVISIONING_INSTANCES
    );
    // A binding about an earlier object of the name says nothing.
    let mut old = binding(json!([]), "2026-01-01T00:00:00Z");
    old.data["spec"]["resource"] = json!({ "uid": "earlier" });
    servers.put(&Plane::Hub, kind::RESOURCE_BINDING, old);
    assert!(reconcile(&servers, "web").is_unchanged());
}

#[test]
fn while_the_hub_is_unreachable_a_new_deployment_says_it_waits_and_an_old_one_keeps_its_status() {
    let mut deployment = wd("web", "DFW");
    deployment.metadata.finalizers = Some(vec![finalizers::FEDERATOR.to_owned()]);
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let away = |deployment: &Object| {
        decide(&Observation {
            project: P,
            deployment,
            siblings: &[],
            workload: Observed::Known(None),
            bindings: Observed::Known(&[&location_binding("DFW")]),
            namespace: Observed::Known(Some(&namespace)),
            hub: Observed::Unknown,
            types: Observed::Known(&Catalogue::default()),
            carries_data: true,
            spec_echoes: &SpecEchoes::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    let plan = away(&deployment);
    assert!(plan.actions.is_empty() && plan.status.is_some());
    deployment.data["status"] = hub_status(3, 1);
    assert!(away(&deployment).is_unchanged());
}
