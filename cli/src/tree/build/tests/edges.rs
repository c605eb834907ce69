//! Each row breaks one thing in an environment where everything runs, and expects one reason at the edge that it breaks.

use super::*;

#[test]
fn what_breaks_in_the_project_is_reported_there() {
    broken("/workload", json!(null), &["project Workload broken: not there"]);
    broken(
        "/workload/metadata/generation",
        json!(4),
        &["project Workload broken: not taken up yet: generation 4, observed 3"],
    );
    broken(
        "/workload/status",
        json!(null),
        &["project Workload broken: no status yet"],
    );
    broken(
        "/workload/status/conditions/0",
        condition("Available", "False", "NetworkNotFound", "Unable to find networks: a"),
        &["project Workload broken: NetworkNotFound: Unable to find networks: a"],
    );
    broken(
        "/deployments",
        json!([]),
        &[
            "project WorkloadDeployment broken: not made: does the controller run, and is this project Ready and engaged?",
        ],
    );
    broken(
        "/deployments/0/metadata/annotations",
        json!({ "compute.datumapis.com/paused": "true" }),
        &["project WorkloadDeployment broken: paused by annotation compute.datumapis.com/paused"],
    );
}

#[test]
fn a_city_without_deployment_says_why() {
    let without = |available: Value| {
        let mut state_of_planes = state_of_planes();
        state_of_planes["deployments"] = json!([]);
        state_of_planes["workload"]["status"]["placements"] = json!([{ "name": "edge", "conditions": [available] }]);
        let tree = tree(&snapshot(&state_of_planes));
        tree.children.first().map(|one| one.text.clone()).unwrap_or_default()
    };
    let no_location = "not made: NoMatchingLocation: No Location matches city code \"DFW\"";
    for (status, reason, message, expected) in [
        (
            "False",
            "NoMatchingLocation",
            "No Location matches city code \"DFW\"",
            no_location,
        ),
        (
            "True",
            "AvailableDeploymentFound",
            "At least one available deployment was found. No Location matches city code \"DFW\"",
            no_location,
        ),
        (
            "False",
            "NameConflict",
            "It is another's",
            "not made: NameConflict: It is another's",
        ),
        (
            "True",
            "AvailableDeploymentFound",
            "At least one available deployment was found",
            "not made: does the controller run, and is this project Ready and engaged?",
        ),
    ] {
        assert_eq!(without(condition("Available", status, reason, message)), expected);
    }
}

#[test]
fn what_breaks_on_the_hub_is_reported_there() {
    broken(
        "/hub",
        json!([]),
        &["hub WorkloadDeployment broken: not there: does the controller run, and reach the hub?"],
    );
    broken(
        "/hub/0/metadata/annotations/compute.datumapis.com~1upstream-uid",
        json!("p0"),
        &["hub WorkloadDeployment broken: it is of another WorkloadDeployment of that name, p0"],
    );
    broken(
        "/hub/0/metadata/annotations/compute.datumapis.com~1upstream-generation",
        json!("1"),
        &["hub WorkloadDeployment broken: it carries generation 1, the project has 2"],
    );
    broken(
        "/policies",
        json!([]),
        &["hub PropagationPolicy broken: not there, so Karmada places nothing: does the controller run?"],
    );
    broken(
        "/bindings",
        json!([]),
        &["hub ResourceBinding broken: not there: does Karmada run, and does the policy select this object?"],
    );
    broken("/works", json!([]), &["hub Work broken: not there: does Karmada run?"]);
    broken(
        "/works/0/status/conditions/0",
        condition("Applied", "False", "AppliedFailed", "no matches for kind"),
        &["hub Work broken: AppliedFailed: no matches for kind"],
    );
    broken(
        "/clusters/0/status/conditions/0",
        condition("Ready", "Unknown", "ClusterStatusUnknown", "no news"),
        &["hub Work broken: Cluster dfw-01 is not Ready: ClusterStatusUnknown: no news"],
    );
}

#[test]
fn the_reason_why_a_binding_has_no_cluster_is_shown_once() {
    let mut state_of_planes = state_of_planes();
    state_of_planes["bindings"][0]["spec"]["clusters"] = json!([]);
    state_of_planes["cell"] = json!([]);
    let reason = |state_of_planes: &Value| reported(&tree(&snapshot(state_of_planes))).0;
    assert_eq!(
        reason(&state_of_planes),
        ["hub ResourceBinding broken: Karmada has chosen no Cluster yet"]
    );
    state_of_planes["bindings"][0]["status"]["conditions"][0] =
        condition("Scheduled", "False", "NoClusterFit", "0/1 clusters are available");
    assert_eq!(
        reason(&state_of_planes),
        ["hub ResourceBinding broken: NoClusterFit: 0/1 clusters are available"]
    );
    state_of_planes["clusters"][0]["metadata"]["labels"] = json!({ "topology.datum.net/city-code": "dfw" });
    assert_eq!(
        reason(&state_of_planes),
        ["hub ResourceBinding broken: no Cluster carries label topology.datum.net/city-code=DFW"]
    );
}

#[test]
fn what_is_left_in_a_cell_is_shown() {
    broken(
        "/bindings/0/spec/clusters/0/name",
        json!("ord-01"),
        &[
            "hub Work broken: not there: does Karmada run?",
            "cell ord-01 WorkloadDeployment not-looked-at: give --cell ord-01=KUBECONFIG",
            "hub Instance broken: not there, and 1 more after it",
            "cell dfw-01 WorkloadDeployment broken: it is here although the binding does not name this cell",
        ],
    );
}

#[test]
fn what_breaks_in_the_cell_is_reported_there() {
    broken(
        "/cell",
        json!([]),
        &["cell dfw-01 WorkloadDeployment broken: not there: has the cell our CRDs, and does Karmada reach it?"],
    );
    broken(
        "/cell/0/metadata/annotations/resourcetemplate.karmada.io~1uid",
        json!("h0"),
        &["cell dfw-01 WorkloadDeployment broken: it is of a former object on the hub"],
    );
    broken(
        "/cell/0/metadata/annotations/resourcetemplate.karmada.io~1generation",
        json!("1"),
        &["cell dfw-01 WorkloadDeployment broken: it carries generation 1, the hub has 2"],
    );
    broken(
        "/running/1/status/conditions/0",
        condition("Ready", "False", "ImageUnavailable", "no such image"),
        &["cell dfw-01 Instance broken: ImageUnavailable: no such image"],
    );
    broken(
        "/running/1/metadata",
        json!({ "namespace": "ns-1", "name": "web-edge-dfw-1", "deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["a/b"] }),
        &["cell dfw-01 Instance broken: is being deleted since 2026-01-01T12:00:00Z, waits for a/b"],
    );
    broken(
        "/cell/0/spec/scaleSettings/minReplicas",
        json!(1),
        &["cell dfw-01 Instance broken: surplus replica"],
    );
}

#[test]
fn a_missing_slot_names_the_instance_that_it_waits_for() {
    broken(
        "/running/1",
        instance("other-0"),
        &["cell dfw-01 Instance broken: not there"],
    );
    let mut state_of_planes = state_of_planes();
    state_of_planes["cell"][0]["spec"]["scaleSettings"]["minReplicas"] = json!(5);
    state_of_planes["running"] = json!([instance("web-edge-dfw-0")]);
    state_of_planes["running"][0]["status"]["conditions"][0] = condition("Ready", "False", "PendingProgramming", "");
    assert_eq!(
        reported(&tree(&snapshot(&state_of_planes))).0,
        [
            "cell dfw-01 Instance broken: PendingProgramming",
            "cell dfw-01 Instance broken: not there: waits until web-edge-dfw-0 is Ready, and 3 more after it",
        ]
    );
}

#[test]
fn what_breaks_with_a_claim_is_reported_there() {
    broken(
        "/claims/1",
        claim("other"),
        &["project ResourceClaim broken: not there"],
    );
    broken(
        "/claims/1/status/conditions/0",
        condition("Granted", "False", "QuotaExceeded", "3 of 3 used"),
        &["project ResourceClaim broken: QuotaExceeded: 3 of 3 used"],
    );
    broken(
        "/claims/1/status",
        json!({}),
        &["project ResourceClaim broken: the quota system has not answered yet"],
    );
    broken(
        "/claims/1/metadata/labels",
        json!({ "compute.datumapis.com/source-cluster": "ord-01" }),
        &["project ResourceClaim broken: it is of cell ord-01"],
    );
    broken(
        "/claims/1/metadata/labels",
        json!({}),
        &["project ResourceClaim broken: it is not ours"],
    );
    let mut state_of_planes = state_of_planes();
    state_of_planes["claims"] = json!([]);
    for one in state_of_planes["running"].as_array_mut().unwrap() {
        one["status"]["conditions"][1] = condition("QuotaGranted", "Unknown", "QuotaDisabled", "");
    }
    assert_eq!(reported(&tree(&snapshot(&state_of_planes))).0, [""; 0]);
    state_of_planes["running"][0]["status"]["conditions"][1] =
        condition("QuotaGranted", "Unknown", "QuotaBackendUnavailable", "no answer");
    assert_eq!(
        reported(&tree(&snapshot(&state_of_planes))).0,
        ["project ResourceClaim broken: not there: QuotaBackendUnavailable: no answer"]
    );
}
