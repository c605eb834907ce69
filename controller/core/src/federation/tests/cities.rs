//! Cities that a project may use, and keys that stay in it.

use super::*;

fn lose_binding(servers: &mut FakeServers, city: &str) {
    servers.remove(&plane(), kind::LOCATION_BINDING, "", &format!("binding-{city}"));
}

/// The Workload that one is made from.
fn workload(cities: &[&str]) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": "default", "uid": "w1", "resourceVersion": "1" },
        "spec": { "placements": [{ "name": "us", "cityCodes": cities }] } }),
    )
}

/// Makes `name` one of the Workload.
fn own(servers: &mut FakeServers, name: &str) {
    change(servers, name, |one| {
        one.metadata.owner_references = serde_json::from_value(json!([{ "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "Workload", "name": "web", "uid": "w1", "controller": true }]))
        .unwrap();
    });
}

fn replicas(object: &Object) -> Option<i64> {
    object.int("/spec/scaleSettings/minReplicas")
}

#[test]
fn a_city_without_usable_binding_gets_nothing_and_the_project_shows_why() {
    let mut servers = servers(&[("mine", "DFW")]);
    lose_binding(&mut servers, "DFW");
    settle(&mut servers, "mine");
    assert!(servers.list(&Plane::Hub, NAMESPACE).is_empty() && in_hub(&servers, "mine").is_none());
    assert_eq!(
        available(in_project(&servers, "mine")),
        (
            reasons::NO_MATCHING_LOCATION.to_owned(),
            messages::no_matching_location("DFW")
        )
    );
    let again = reconcile(&servers, "mine");
    assert!(again.is_unchanged() && again.requeue.is_none());
    assert_eq!(again.terminal.unwrap().reason, reasons::NO_MATCHING_LOCATION);
    // A binding that says that it cannot be used is none.
    let mut closed = location_binding("DFW");
    closed.data["status"] = json!({ "conditions": [{ "type": "Available", "status": "False" }] });
    servers.put(&plane(), kind::LOCATION_BINDING, closed);
    settle(&mut servers, "mine");
    assert!(in_hub(&servers, "mine").is_none());
    servers.put(&plane(), kind::LOCATION_BINDING, location_binding("DFW"));
    settle(&mut servers, "mine");
    assert!(in_hub(&servers, "mine").is_some());
    assert_eq!(
        available(in_project(&servers, "mine")).0,
        reasons::PROVISIONING_INSTANCES
    );
}

#[test]
fn what_runs_in_a_city_that_lost_its_binding_continues_and_may_become_less() {
    let mut servers = servers(&[("mine", "DFW")]);
    change(&mut servers, "mine", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3)
    });
    settle(&mut servers, "mine");
    change_hub(&mut servers, "mine", |one| {
        one.data["status"] = json!({ "replicas": 3, "readyReplicas": 3, "conditions": [
            { "type": "Available", "status": "True", "reason": "StableInstanceFound" },
            { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable" }] });
    });
    settle(&mut servers, "mine");
    lose_binding(&mut servers, "DFW");
    settle(&mut servers, "mine");
    let shown = in_project(&servers, "mine");
    assert_eq!(available(shown).0, reasons::NO_MATCHING_LOCATION);
    assert_eq!(shown.int("/status/readyReplicas"), Some(3), "what runs is shown");
    assert!(crate::conditions::says(shown, "ReplicasReady", "True"));
    for (asked, runs) in [(5, 3), (2, 2), (4, 2)] {
        change(&mut servers, "mine", |one| {
            one.data["spec"]["scaleSettings"]["minReplicas"] = json!(asked);
            one.data["spec"]["template"]["spec"] = json!({ "of": "later" });
        });
        settle(&mut servers, "mine");
        let made = in_hub(&servers, "mine").unwrap();
        assert_eq!(replicas(made), Some(runs));
        assert_eq!(made.at("/spec/template/spec"), Some(&json!({})));
    }
    // It can be removed, and comes up to date with its binding.
    let mut back = servers.clone();
    back.put(&plane(), kind::LOCATION_BINDING, location_binding("DFW"));
    settle(&mut back, "mine");
    assert_eq!(replicas(in_hub(&back, "mine").unwrap()), Some(4));
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "mine");
    settle(&mut servers, "mine");
    assert!(in_hub(&servers, "mine").is_none());
}

#[test]
fn what_a_living_workload_asks_for_needs_a_binding_like_any_other() {
    let mut servers = servers(&[("web-us-dfw", "DFW")]);
    own(&mut servers, "web-us-dfw");
    servers.put(&plane(), kind::WORKLOAD, workload(&["DFW"]));
    change(&mut servers, "web-us-dfw", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2)
    });
    let mut never = servers.clone();
    lose_binding(&mut never, "DFW");
    settle(&mut never, "web-us-dfw");
    assert!(in_hub(&never, "web-us-dfw").is_none());
    settle(&mut servers, "web-us-dfw");
    lose_binding(&mut servers, "DFW");
    // Somebody raises it past its Workload, which was held; then it is lowered and mended.
    for (asked, image, runs) in [(1000, "one", 2), (1, "two", 1), (2, "two", 1)] {
        change(&mut servers, "web-us-dfw", |one| {
            one.data["spec"]["scaleSettings"]["minReplicas"] = json!(asked);
            one.data["spec"]["cityCode"] = json!("DFW");
            one.data["spec"]["template"]["metadata"]["annotations"] = json!({ "image": image });
            one.metadata.generation = Some(asked);
        });
        settle(&mut servers, "web-us-dfw");
        let made = in_hub(&servers, "web-us-dfw").unwrap();
        assert_eq!(replicas(made), Some(runs), "{asked} are asked for");
        assert_eq!(made.text("/spec/template/metadata/annotations/image"), Some(image));
        let generation = made.annotation(annotations::UPSTREAM_GENERATION);
        assert_eq!(generation == Some(&asked.to_string()), asked == runs, "{generation:?}");
        // Its Workload tells of the city, and this what is held back.
        let reported = available(in_project(&servers, "web-us-dfw")).0;
        assert_eq!(reported == reasons::NO_MATCHING_LOCATION, asked != runs, "{reported}");
    }
}

#[test]
fn what_is_unknown_carries_nothing_and_tears_nothing_down() {
    let mut servers = servers(&[("mine", "DFW")]);
    let unknown = |servers: &FakeServers, bindings: Observed<&[&Object]>, workload, hub| {
        decide(&Observation {
            project: P,
            deployment: in_project(servers, "mine"),
            siblings: &[],
            workload,
            bindings,
            namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
            hub,
            types: Observed::Known(&Catalogue::default()),
            carries_data: true,
            spec_echoes: &SpecEchoes::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    servers.apply(&reconcile(&servers.clone(), "mine"));
    let nothing = Observed::Known(Hub::default());
    let plan = unknown(&servers, Observed::Unknown, Observed::Known(None), nothing);
    assert!(plan.actions.is_empty() && plan.terminal.is_none());
    assert_eq!(plan.notes, [Note::Unknown(plane())]);
    // One binding is enough, whoever made the object.
    let bound = [&location_binding("DFW")];
    let plan = unknown(&servers, Observed::Known(&bound), Observed::Unknown, nothing);
    assert!(!plan.actions.is_empty());
    // While they are unknown, what a living Workload asks for is carried.
    own(&mut servers, "mine");
    change(&mut servers, "mine", |one| {
        one.data["spec"]["placementName"] = json!("us")
    });
    let plan = unknown(&servers, Observed::Unknown, Observed::Known(None), nothing);
    assert!(plan.actions.is_empty());
    // Without the hub the reason is shown all the same.
    let plan = unknown(&servers, Observed::Known(&[]), Observed::Known(None), Observed::Unknown);
    assert!(plan.actions.is_empty() && plan.status.is_some());
    assert_eq!(plan.terminal.unwrap().reason, reasons::NO_MATCHING_LOCATION);
}

#[test]
fn reserved_keys_of_a_template_stay_in_the_project() {
    let mut servers = servers(&[("mine", "DFW")]);
    change(&mut servers, "mine", |one| {
        one.metadata.labels = Some([("karmada.io/x".to_owned(), "y".to_owned())].into());
        one.data["spec"]["template"] = json!({ "metadata": {
            "labels": { "app": "a", "work.karmada.io/x": "b", "compute.datumapis.com/source-cluster": "ord" },
            "annotations": { "compute.datumapis.com/granted-slots": "0", "compute.datumapis.com/ssh-keys": "k" } },
            "spec": {} });
    });
    settle(&mut servers, "mine");
    let made = in_hub(&servers, "mine").unwrap();
    assert_eq!(
        made.at("/spec/template/metadata"),
        Some(&json!({ "labels": { "app": "a" }, "annotations": { "compute.datumapis.com/ssh-keys": "k" } }))
    );
    assert_eq!(made.label("karmada.io/x"), None);
    assert!(reconcile(&servers, "mine").is_unchanged());
    // What came there by another way goes.
    change_hub(&mut servers, "mine", |one| {
        one.data["spec"]["template"]["metadata"]["labels"]["work.karmada.io/x"] = json!("b");
    });
    settle(&mut servers, "mine");
    assert_eq!(
        in_hub(&servers, "mine").unwrap().at("/spec/template/metadata/labels"),
        Some(&json!({ "app": "a" }))
    );
}
