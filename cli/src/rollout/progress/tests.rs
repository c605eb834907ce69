use super::*;

fn object(value: &Value) -> Object {
    serde_json::from_value(value.clone()).unwrap()
}

fn template() -> Value {
    json!({ "spec": { "runtime": { "sandbox": { "containers": [{ "name": "web", "image": "a" }] } } } })
}

/// Two replicas in DFW.
fn workload() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "w1", "generation": 4 },
        "spec": { "template": template(), "placements": [
            { "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 2 } }] },
        "status": { "observedGeneration": 4, "conditions": [
            { "type": "Available", "status": "True", "reason": "AvailablePlacementFound" }] },
    })
}

/// It runs there.
fn deployment() -> Value {
    json!({
        "metadata": { "name": "web-us-dfw", "namespace": "shop", "generation": 2 },
        "spec": { "workloadRef": { "name": "web", "uid": "w1" }, "template": template(),
            "scaleSettings": { "minReplicas": 2, "metrics": [] } },
        "status": { "observedGeneration": 2, "desiredReplicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "replicas": 2,
            "conditions": [
                { "type": "Available", "status": "True", "reason": "StableInstanceFound" },
                { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable" }] },
    })
}

fn instance(ordinal: i64, hash: &str, reason: &str) -> Member {
    let status = if reason.is_empty() { "True" } else { "False" };
    let name = format!("web-us-dfw-{ordinal}");
    Member::of(&object(&json!({
        "metadata": { "name": name }, "spec": { "controller": { "templateHash": hash } },
        "status": { "conditions": [{ "type": "Ready", "status": status, "reason": reason, "message": "because" }] },
    })))
}

fn progress(workload: &Value, deployments: &[&Value], members: &[Member]) -> Progress {
    let deployments = deployments.iter().map(|one| object(one));
    let deployments = deployments.map(|one| (one.name().to_owned(), one)).collect();
    Progress::of(&object(workload), &deployments, members)
}

/// State and line of the one city.
fn city(workload: &Value, deployment: &Value, members: &[Member]) -> (State, String) {
    let progress = progress(workload, &[deployment], members);
    let [city] = progress.cities.as_slice() else {
        panic!("{progress:?}");
    };
    assert_eq!(progress.state(), city.state);
    (city.state, city.line())
}

fn with(mut value: Value, changes: &[(&str, Value)]) -> Value {
    for (pointer, change) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = change.clone();
    }
    value
}

#[test]
fn a_city_is_done_when_its_cell_runs_what_the_workload_says() {
    assert_eq!(
        city(&workload(), &deployment(), &[]),
        (State::Complete, "us DFW: done, 2 of 2 updated and ready".to_owned())
    );
    // More than the least, where an autoscaler asks for it.
    let more: Vec<_> = ["desiredReplicas", "updatedReplicas", "readyReplicas", "replicas"]
        .map(|field| (format!("/status/{field}"), json!(3)))
        .into();
    let more: Vec<(&str, Value)> = more
        .iter()
        .map(|(path, value)| (path.as_str(), value.clone()))
        .collect();
    assert_eq!(city(&workload(), &with(deployment(), &more), &[]).0, State::Complete);
}

type Changes<'a> = Vec<(&'a str, Value)>;

/// What is changed of the Workload and of the WorkloadDeployment, the Instances, and the end of the line.
type Case<'a> = (Changes<'a>, Changes<'a>, Vec<Member>, &'a str);

fn all_wait(cases: Vec<Case<'_>>) {
    for (of_workload, of_deployment, members, expected) in cases {
        let workload = with(workload(), &of_workload);
        let (state, line) = city(&workload, &with(deployment(), &of_deployment), &members);
        assert_eq!(state, State::Waiting, "{line}");
        assert!(line.ends_with(expected), "{line}\n{expected}");
    }
}

#[test]
fn each_thing_that_is_waited_for_has_a_name() {
    let paused = json!({ "compute.datumapis.com/paused": "true" });
    all_wait(vec![
        // The change is on its way.
        (
            vec![("/spec/template/spec/volumes", json!([1]))],
            vec![],
            vec![],
            "2 of 2 updated, 2 ready; waiting: the WorkloadDeployment does not have the Workload's spec yet",
        ),
        (
            vec![("/spec/placements/0/scaleSettings/minReplicas", json!(3))],
            vec![],
            vec![],
            "does not have the Workload's spec yet",
        ),
        (
            vec![],
            vec![("/metadata/generation", json!(3))],
            vec![],
            "waiting: city DFW has not observed the change yet",
        ),
        (
            vec![],
            vec![("/status", json!({}))],
            vec![],
            "0 of 0 updated, 0 ready; waiting: city DFW has not observed the change yet",
        ),
        // Somebody holds it.
        (
            vec![
                ("/metadata/annotations", paused.clone()),
                ("/spec/placements/0/scaleSettings/minReplicas", json!(3)),
            ],
            vec![],
            vec![],
            "waiting: the Workload is paused by annotation compute.datumapis.com/paused",
        ),
        (
            vec![],
            vec![("/metadata/annotations", paused), ("/metadata/generation", json!(3))],
            vec![],
            "waiting: the WorkloadDeployment is paused by annotation compute.datumapis.com/paused",
        ),
        (
            vec![],
            vec![("/metadata/deletionTimestamp", json!("2026-01-01T12:00:00Z"))],
            vec![],
            "waiting: WorkloadDeployment web-us-dfw is being deleted",
        ),
        (
            vec![
                ("/spec/template/spec/volumes", json!([1])),
                (
                    "/status/conditions",
                    json!([{ "type": "Available", "status": "False", "reason": "NetworkNotFound",
                        "message": "Unable to find networks: a" }]),
                ),
            ],
            vec![],
            vec![],
            "waiting: NetworkNotFound: Unable to find networks: a",
        ),
        (
            vec![
                ("/spec/placements/0/scaleSettings/minReplicas", json!(3)),
                (
                    "/status/placements",
                    json!([{ "name": "us", "conditions": [{ "type": "Available", "status": "True", "reason": "A",
                        "message": "At least one. No Location matches city code \"DFW\"" }] }]),
                ),
            ],
            vec![],
            vec![],
            "waiting: NoMatchingLocation: No Location matches city code \"DFW\"",
        ),
    ]);
}

#[test]
fn of_instances_on_their_way_the_one_that_is_waited_for_is_named() {
    let ours = hash(&template());
    let quota = json!([{ "type": "ReplicasReady", "status": "False", "reason": "QuotaExceeded", "observedGeneration": 2,
        "message": "1 of 2 desired replicas are pending quota" }]);
    let gated = || instance(1, &ours, "SchedulingGatesPresent");
    let one_ready = [
        ("/status/readyReplicas", json!(1)),
        ("/status/updatedReplicas", json!(1)),
    ];
    all_wait(vec![
        (
            vec![],
            one_ready.to_vec(),
            vec![instance(0, &ours, ""), gated()],
            "us DFW: 1 of 2 updated, 1 ready; waiting: web-us-dfw-1: SchedulingGatesPresent: because",
        ),
        (
            vec![],
            [&one_ready[..], &[("/status/conditions", quota)]].concat(),
            vec![gated()],
            "waiting: QuotaExceeded: 1 of 2 desired replicas are pending quota",
        ),
        (
            vec![],
            one_ready.to_vec(),
            vec![instance(1, &ours, "ImageUnavailable"), instance(0, "old", "Stopped")],
            "waiting: web-us-dfw-1: ImageUnavailable: because",
        ),
        (vec![], one_ready.to_vec(), vec![], "us DFW: 1 of 2 updated, 1 ready"),
        (
            vec![],
            vec![("/status/replicas", json!(4))],
            vec![],
            "us DFW: 2 of 2 updated, 2 ready, 2 to be removed",
        ),
    ]);
}

#[test]
fn what_only_a_change_ends_fails_once_it_is_about_the_present_spec() {
    let conflict = |of: i64| {
        let condition = json!({ "type": "Available", "status": "False", "reason": "CityCodeConflict", "message": "dfw",
            "observedGeneration": of });
        with(deployment(), &[("/status", json!({ "conditions": [condition] }))])
    };
    assert_eq!(
        city(&workload(), &conflict(2), &[]),
        (
            State::Failed,
            "us DFW: 0 of 0 updated, 0 ready; failed: CityCodeConflict: dfw".to_owned()
        )
    );
    assert_eq!(city(&workload(), &conflict(1), &[]).0, State::Waiting);

    // The change may be to mend what the old Instance says.
    let rolls = with(deployment(), &[("/status/updatedReplicas", json!(1))]);
    let refused = |hash: &str| city(&workload(), &rolls, &[instance(0, hash, "ConfigurationError")]).0;
    assert_eq!(
        (refused("old"), refused(&hash(&template()))),
        (State::Waiting, State::Failed)
    );
}

#[test]
fn a_city_without_its_object_says_why() {
    let nothing = progress(&workload(), &[], &[]);
    assert_eq!(nothing.state(), State::Waiting);
    assert!(nothing.first().unwrap().contains("waiting: not made:"), "{nothing:?}");
    let reported = json!([{ "name": "us", "conditions": [{ "type": "Available", "status": "False",
        "reason": "InvalidCityCode", "message": "no", "observedGeneration": 4 }] }]);
    let never = with(workload(), &[("/status/placements", reported.clone())]);
    assert_eq!(progress(&never, &[], &[]).state(), State::Failed);
    let mended = with(never, &[("/metadata/generation", json!(5))]);
    assert_eq!(progress(&mended, &[], &[]).state(), State::Waiting);
    // One of another Workload of the name is none.
    let other = with(deployment(), &[("/spec/workloadRef/uid", json!("w0"))]);
    assert_eq!(progress(&workload(), &[&other], &[]).state(), State::Waiting);
}

#[test]
fn a_city_that_is_not_named_any_more_is_waited_for() {
    let old = with(deployment(), &[("/metadata/name", json!("web-us-ord"))]);
    let progress = progress(&workload(), &[&deployment(), &old], &[]);
    assert_eq!(
        (progress.state(), progress.leaving.as_slice()),
        (State::Waiting, &["web-us-ord".to_owned()][..])
    );
    assert!(progress.first().unwrap().starts_with("web-us-ord: nothing asks for it"));
}

#[test]
fn only_what_has_changed_is_printed_again() {
    let two = with(
        workload(),
        &[("/spec/placements/0/cityCodes", json!(["DFW", "ORD", "DFW"]))],
    );
    let first = progress(&two, &[], &[]);
    assert_eq!(first.lines_since(None).len(), 2);
    let second = progress(&two, &[&deployment()], &[]);
    assert_eq!(
        second.lines_since(Some(&first)),
        ["us DFW: done, 2 of 2 updated and ready"]
    );
    assert_eq!(second.json(&object(&two))["cities"][0]["state"], "complete");
    assert_eq!(second.json(&object(&two))["state"], "waiting");
}

#[test]
fn a_workload_without_cities_is_never_done() {
    let none = with(workload(), &[("/spec/placements", json!([]))]);
    assert_eq!(progress(&none, &[], &[]).state(), State::Waiting);
}
