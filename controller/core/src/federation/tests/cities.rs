//! Cities that a project may use, and keys that stay in it.

use super::*;

fn lose_binding(world: &mut World, city: &str) {
    world.remove(&plane(), kind::LOCATION_BINDING, "", &format!("binding-{city}"));
}

/// The Workload that one is made from.
fn workload(cities: &[&str]) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": "default", "uid": "w1", "resourceVersion": "1" },
        "spec": { "placements": [{ "name": "us", "cityCodes": cities }] } }),
    )
}

/// Makes `name` one of the Workload.
fn own(world: &mut World, name: &str) {
    change(world, name, |one| {
        one.metadata.owner_references = serde_json::from_value(json!([{ "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "Workload", "name": "web", "uid": "w1", "controller": true }]))
        .unwrap();
    });
}

fn replicas(object: &Object) -> Option<i64> {
    object.int("/spec/scaleSettings/minReplicas")
}

#[test]
fn a_city_without_usable_binding_gets_nothing_and_the_project_is_told_why() {
    let mut world = world(&[("mine", "DFW")]);
    lose_binding(&mut world, "DFW");
    settle(&mut world, "mine");
    assert!(world.list(&Plane::Hub, NAMESPACE).is_empty() && in_hub(&world, "mine").is_none());
    assert_eq!(
        available(in_project(&world, "mine")),
        (
            reasons::NO_MATCHING_LOCATION.to_owned(),
            messages::no_matching_location("DFW")
        )
    );
    let again = pass(&world, "mine");
    assert!(again.is_quiet() && again.requeue.is_none());
    assert_eq!(again.terminal.unwrap().reason, reasons::NO_MATCHING_LOCATION);
    // A binding that says that it cannot be used is none.
    let mut closed = location_binding("DFW");
    closed.data["status"] = json!({ "conditions": [{ "type": "Available", "status": "False" }] });
    world.put(&plane(), kind::LOCATION_BINDING, closed);
    settle(&mut world, "mine");
    assert!(in_hub(&world, "mine").is_none());
    world.put(&plane(), kind::LOCATION_BINDING, location_binding("DFW"));
    settle(&mut world, "mine");
    assert!(in_hub(&world, "mine").is_some());
    assert_eq!(available(in_project(&world, "mine")).0, reasons::PROVISIONING_INSTANCES);
}

#[test]
fn what_runs_in_a_city_that_lost_its_binding_goes_on_and_may_become_less() {
    let mut world = world(&[("mine", "DFW")]);
    change(&mut world, "mine", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3)
    });
    settle(&mut world, "mine");
    change_hub(&mut world, "mine", |one| {
        one.data["status"] = json!({ "replicas": 3, "readyReplicas": 3, "conditions": [
            { "type": "Available", "status": "True", "reason": "StableInstanceFound" },
            { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable" }] });
    });
    settle(&mut world, "mine");
    lose_binding(&mut world, "DFW");
    settle(&mut world, "mine");
    let shown = in_project(&world, "mine");
    assert_eq!(available(shown).0, reasons::NO_MATCHING_LOCATION);
    assert_eq!(shown.int("/status/readyReplicas"), Some(3), "what runs is shown");
    assert!(crate::conditions::says(shown, "ReplicasReady", "True"));
    for (asked, runs) in [(5, 3), (2, 2), (4, 2)] {
        change(&mut world, "mine", |one| {
            one.data["spec"]["scaleSettings"]["minReplicas"] = json!(asked);
            one.data["spec"]["template"]["spec"] = json!({ "of": "later" });
        });
        settle(&mut world, "mine");
        let made = in_hub(&world, "mine").unwrap();
        assert_eq!(replicas(made), Some(runs));
        assert_eq!(made.at("/spec/template/spec"), Some(&json!({})));
    }
    // It can be removed, and comes up to date with its binding.
    let mut back = world.clone();
    back.put(&plane(), kind::LOCATION_BINDING, location_binding("DFW"));
    settle(&mut back, "mine");
    assert_eq!(replicas(in_hub(&back, "mine").unwrap()), Some(4));
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "mine");
    settle(&mut world, "mine");
    assert!(in_hub(&world, "mine").is_none());
}

#[test]
fn what_a_living_workload_asks_for_needs_a_binding_like_any_other() {
    let mut world = world(&[("web-us-dfw", "DFW")]);
    own(&mut world, "web-us-dfw");
    world.put(&plane(), kind::WORKLOAD, workload(&["DFW"]));
    change(&mut world, "web-us-dfw", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2)
    });
    let mut never = world.clone();
    lose_binding(&mut never, "DFW");
    settle(&mut never, "web-us-dfw");
    assert!(in_hub(&never, "web-us-dfw").is_none());
    settle(&mut world, "web-us-dfw");
    lose_binding(&mut world, "DFW");
    // Somebody raises it past its Workload, which was held; then it is lowered and mended.
    for (asked, image, runs) in [(1000, "one", 2), (1, "two", 1), (2, "two", 1)] {
        change(&mut world, "web-us-dfw", |one| {
            one.data["spec"]["scaleSettings"]["minReplicas"] = json!(asked);
            one.data["spec"]["cityCode"] = json!("DFW");
            one.data["spec"]["template"]["metadata"]["annotations"] = json!({ "image": image });
            one.metadata.generation = Some(asked);
        });
        settle(&mut world, "web-us-dfw");
        let made = in_hub(&world, "web-us-dfw").unwrap();
        assert_eq!(replicas(made), Some(runs), "{asked} are asked for");
        assert_eq!(made.text("/spec/template/metadata/annotations/image"), Some(image));
        let generation = made.annotation(annotations::UPSTREAM_GENERATION);
        assert_eq!(generation == Some(&asked.to_string()), asked == runs, "{generation:?}");
        // Its Workload tells of the city, and this what is held back.
        let told = available(in_project(&world, "web-us-dfw")).0;
        assert_eq!(told == reasons::NO_MATCHING_LOCATION, asked != runs, "{told}");
    }
}

#[test]
fn what_is_unknown_carries_nothing_and_tears_nothing_down() {
    let mut world = world(&[("mine", "DFW")]);
    let unknown = |world: &World, bindings: Observed<&[&Object]>, workload, hub| {
        decide(&Observation {
            project: P,
            deployment: in_project(world, "mine"),
            siblings: &[],
            workload,
            bindings,
            namespace: Observed::Known(world.get(&plane(), NAMESPACE, "", "default")),
            hub,
            ledger: &Ledger::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    world.apply(&pass(&world.clone(), "mine"));
    let nothing = Observed::Known(Hub::default());
    let plan = unknown(&world, Observed::Unknown, Observed::Known(None), nothing);
    assert!(plan.actions.is_empty() && plan.terminal.is_none());
    assert_eq!(plan.notes, [Note::Unknown(plane())]);
    // One binding is enough, whoever made the object.
    let bound = [&location_binding("DFW")];
    let plan = unknown(&world, Observed::Known(&bound), Observed::Unknown, nothing);
    assert!(!plan.actions.is_empty());
    // While they are unknown, what a living Workload asks for is carried.
    own(&mut world, "mine");
    change(&mut world, "mine", |one| {
        one.data["spec"]["placementName"] = json!("us")
    });
    let plan = unknown(&world, Observed::Unknown, Observed::Known(None), nothing);
    assert!(plan.actions.is_empty());
    // Without the hub the reason is shown all the same.
    let plan = unknown(&world, Observed::Known(&[]), Observed::Known(None), Observed::Unknown);
    assert!(plan.actions.is_empty() && plan.status.is_some());
    assert_eq!(plan.terminal.unwrap().reason, reasons::NO_MATCHING_LOCATION);
}

#[test]
fn reserved_keys_of_a_template_stay_in_the_project() {
    let mut world = world(&[("mine", "DFW")]);
    change(&mut world, "mine", |one| {
        one.metadata.labels = Some([("karmada.io/x".to_owned(), "y".to_owned())].into());
        one.data["spec"]["template"] = json!({ "metadata": {
            "labels": { "app": "a", "work.karmada.io/x": "b", "compute.datumapis.com/source-cluster": "ord" },
            "annotations": { "compute.datumapis.com/granted-slots": "0", "compute.datumapis.com/ssh-keys": "k" } },
            "spec": {} });
    });
    settle(&mut world, "mine");
    let made = in_hub(&world, "mine").unwrap();
    assert_eq!(
        made.at("/spec/template/metadata"),
        Some(&json!({ "labels": { "app": "a" }, "annotations": { "compute.datumapis.com/ssh-keys": "k" } }))
    );
    assert_eq!(made.label("karmada.io/x"), None);
    assert!(pass(&world, "mine").is_quiet());
    // What came there by another way goes.
    change_hub(&mut world, "mine", |one| {
        one.data["spec"]["template"]["metadata"]["labels"]["work.karmada.io/x"] = json!("b");
    });
    settle(&mut world, "mine");
    assert_eq!(
        in_hub(&world, "mine").unwrap().at("/spec/template/metadata/labels"),
        Some(&json!({ "app": "a" }))
    );
}
