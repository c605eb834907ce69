//! Names that cannot be, and objects that are to be kept unchanged.

use super::*;

#[test]
fn the_second_derivation_of_one_name_is_a_conflict() {
    // In one Workload: the first holds it.
    let mut one = servers(
        json!([placement("us-a", &["b"]), placement("us", &["a-b"])]),
        &["b", "a-b"],
    );
    one.settle(decide_in);
    assert_eq!(names(&one), ["web-us-a-b"]);
    assert_eq!(available(&status(&one)).1, reasons::NAME_CONFLICT);
    assert_eq!(decide_in(&one).terminal.unwrap().reason, reasons::NAME_CONFLICT);

    // In two: nothing is overwritten.
    let mut two = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let foreign = object(json!({
        "metadata": { "name": "web-us-dfw", "namespace": "default", "uid": "x", "resourceVersion": "9" },
        "spec": { "workloadRef": { "name": "web-us", "uid": "w9" }, "cityCode": "DFW", "placementName": "" } }));
    two.put(&plane, kind::WORKLOAD_DEPLOYMENT, foreign.clone());
    two.settle(decide_in);
    assert_eq!(two.list(&plane, kind::WORKLOAD_DEPLOYMENT), [&foreign]);
    assert_eq!(available(&status(&two)).1, reasons::NAME_CONFLICT);
    two.remove(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw");
    two.settle(decide_in);
    assert_eq!(names(&two), ["web-us-dfw"]);
    assert_eq!(available(&status(&two)).1, reasons::NO_AVAILABLE_PLACEMENTS);
}

#[test]
fn a_predecessors_deployment_is_deleted_only_on_proof_that_its_successor_lives() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let old = json!({
        "metadata": { "name": "web-us-dfw", "namespace": "default", "uid": "x", "resourceVersion": "9",
            "labels": { "compute.datumapis.com/workload-uid": "w0" } },
        "spec": { "workloadRef": { "name": "web", "uid": "w0" }, "cityCode": "DFW", "placementName": "us" } });
    servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, object(old));
    let plan = decide_in(&servers);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(delete.on.uid, "x");
    assert!(matches!(&delete.proofs[..], [Proof::Lives { uid, .. }] if uid == "w1"));
    servers.settle(decide_in);
    let made = servers
        .get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw")
        .unwrap();
    assert_eq!(made.text("/spec/workloadRef/uid"), Some("w1"));
}

#[test]
fn invalid_cities_are_reported_once_and_the_rest_continues() {
    let mut servers = servers(json!([placement("us", &["nyc_1", "DFW"])]), &["nyc_1", "DFW"]);
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
    let (_, reason, message) = available(&status(&servers));
    assert_eq!(reason, reasons::INVALID_CITY_CODE);
    let us = conditions::find(&status(&servers)["placements"][0], types::AVAILABLE)
        .cloned()
        .unwrap();
    assert_eq!(us["reason"], reasons::INVALID_CITY_CODE);
    assert!(message.contains("nyc_1") && us["message"].as_str().unwrap().contains("nyc_1"));
}

#[test]
fn long_names_are_shortened_and_no_two_slots_share_one() {
    let (long, city) = ("p".repeat(63), "C".repeat(32));
    // Whole, the names of the last two would be one.
    let placements = json!([
        placement(&long, &["DFW", &city]),
        placement(&format!("a-{}", "b".repeat(60)), &["c-d"]),
        placement(&format!("a-{}-c", "b".repeat(60)), &["d"])
    ]);
    let mut servers = servers(placements, &["DFW", &city, "c-d", "d"]);
    servers.settle(decide_in);
    assert_eq!(names(&servers).len(), 4, "{:?}", names(&servers));
    for name in names(&servers) {
        assert_eq!(name.len(), 59, "{name}");
    }
    assert_ne!(available(&status(&servers)).1, reasons::NAME_CONFLICT);
}

/// What upstream's operator made has such names: it runs on, gets no more, and its next one has a name that fits.
#[test]
fn a_deployment_with_a_long_name_keeps_it_and_is_not_replaced() {
    let long = "p".repeat(60);
    let mut servers = servers(json!([placement(&long, &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let name = format!("web-{long}-dfw");
    let theirs = json!({
        "metadata": { "name": name, "namespace": "default", "uid": "x", "resourceVersion": "9",
            "labels": { "compute.datumapis.com/workload-uid": "w1" } },
        "spec": { "workloadRef": { "name": "web", "uid": "w1" }, "cityCode": "DFW", "placementName": long,
            "scaleSettings": { "minReplicas": 1 } } });
    servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, object(theirs));
    servers.settle(decide_in);
    assert_eq!(names(&servers), [name.as_str()]);
    let (_, reason, message) = available(&status(&servers));
    assert_eq!(reason, crate::names::INVALID_NAME);
    assert!(message.contains("68 characters, at most 59 fit"), "{message}");
    let kept = servers
        .get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", &name)
        .unwrap();
    assert_eq!(kept.int("/spec/scaleSettings/minReplicas"), Some(1));
    servers.delete(&plane, kind::WORKLOAD_DEPLOYMENT, "default", &name);
    servers.settle(decide_in);
    assert_eq!(
        names(&servers),
        [crate::names::workload_deployment("web", &long, "DFW")]
    );
}

#[test]
fn a_workload_whose_name_fits_no_label_is_reported() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let mut long = servers.get(&plane, kind::WORKLOAD, "default", "web").unwrap().clone();
    long.metadata.name = Some("w".repeat(64));
    servers.put(&plane, kind::WORKLOAD, long.clone());
    let plan = decide(&Observation {
        project: "p",
        workload: &long,
        deployments: &[],
        bindings: Observed::Known(&servers.list(&plane, kind::LOCATION_BINDING)),
        networks: Observed::Known(&servers.list(&plane, kind::NETWORK)),
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        now: testing::now(),
    });
    assert!(plan.actions.is_empty());
    let terminal = plan.terminal.unwrap();
    assert_eq!(terminal.reason, crate::names::INVALID_NAME);
    assert!(
        terminal.message.contains("64 characters, at most 63 fit"),
        "{}",
        terminal.message
    );
}

#[test]
fn a_paused_workload_is_shown_as_paused_and_kept() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    edit(&mut servers, |workload| {
        workload.metadata.annotations = Some([("compute.datumapis.com/paused".to_owned(), "true".to_owned())].into());
        workload.data["spec"]["placements"] = json!([placement("us", &["ORD"])]);
    });
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
    assert!(conditions::find(&status(&servers), "Paused").is_some());
    edit(&mut servers, |workload| workload.metadata.annotations = None);
    servers.settle(decide_in);
    assert!(conditions::find(&status(&servers), "Paused").is_none());
}

#[test]
fn a_tenants_deployment_for_an_earlier_workload_of_the_name_is_kept() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let theirs = object(json!({
        "metadata": { "name": "web-us-dfw", "namespace": "default", "uid": "x", "resourceVersion": "9" },
        "spec": { "workloadRef": { "name": "web", "uid": "w0" }, "cityCode": "DFW", "placementName": "us" } }));
    servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, theirs.clone());
    servers.settle(decide_in);
    assert_eq!(servers.list(&plane, kind::WORKLOAD_DEPLOYMENT), [&theirs]);
    assert_eq!(available(&status(&servers)).1, reasons::NAME_CONFLICT);
}

#[test]
fn another_spelling_or_split_of_one_name_is_another_object() {
    for (before, after) in [
        (json!([placement("us", &["DFW"])]), json!([placement("us", &["dfw"])])),
        (json!([placement("us-a", &["b"])]), json!([placement("us", &["a-b"])])),
    ] {
        let mut servers = servers(before, &["DFW", "dfw", "b", "a-b"]);
        servers.settle(decide_in);
        let plane = Plane::Project("p".to_owned());
        let old = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT)[0].uid().to_owned();
        edit(&mut servers, |workload| {
            workload.data["spec"]["placements"] = after.clone()
        });
        servers.settle(decide_in);
        let made = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT);
        assert_eq!(made.len(), 1);
        assert_ne!(made[0].uid(), old);
        assert_eq!(made[0].text("/spec/cityCode"), after[0]["cityCodes"][0].as_str());
    }
}
