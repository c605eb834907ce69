//! Each row breaks one thing in a world where everything runs, and expects one reason at the edge that it breaks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::tree::sight::Cell;

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn objects(values: Vec<Value>) -> Vec<Object> {
    values.into_iter().map(object).collect()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "message": message })
}

fn deployment(namespace: &str, uid: &str, annotations: &Value) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": "web-edge-dfw", "uid": uid, "generation": 2, "annotations": annotations },
        "spec": { "cityCode": "DFW", "workloadRef": { "name": "web" }, "scaleSettings": { "minReplicas": 2 } },
        "status": { "observedGeneration": 2, "readyReplicas": 2, "desiredReplicas": 2,
            "conditions": [condition("Available", "True", "StableInstanceFound", "2/2 instances are ready")] },
    })
}

fn instance(name: &str) -> Value {
    json!({
        "metadata": { "namespace": "ns-1", "name": name, "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
        "status": { "conditions": [condition("Ready", "True", "Available", ""), condition("QuotaGranted", "True", "QuotaAvailable", "")] },
    })
}

fn claim(name: &str) -> Value {
    json!({
        "metadata": { "namespace": "shop", "name": name, "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
        "status": { "conditions": [condition("Granted", "True", "QuotaAvailable", "")] },
    })
}

/// The planes as JSON, so that a row can point at what it breaks.
fn world() -> Value {
    json!({
        "workload": {
            "metadata": { "namespace": "shop", "name": "web", "generation": 3 },
            "spec": { "placements": [{ "name": "edge", "cityCodes": ["DFW"] }] },
            "status": { "observedGeneration": 3, "conditions": [condition("Available", "True", "AvailablePlacementFound", "")] },
        },
        "deployments": [deployment("shop", "p1", &json!({}))],
        "claims": [claim("instance-web-edge-dfw-0"), claim("instance-web-edge-dfw-1")],
        "instances": [],
        "namespace": { "metadata": { "name": "ns-1" } },
        "hub": [deployment("ns-1", "h1", &json!({
            "compute.datumapis.com/upstream-uid": "p1", "compute.datumapis.com/upstream-generation": "2" }))],
        "policies": [{ "metadata": { "namespace": "ns-1", "name": "city-dfw" } }],
        "bindings": [{
            "metadata": { "namespace": "ns-1", "name": "web-edge-dfw-workloaddeployment" },
            "spec": { "resource": { "kind": "WorkloadDeployment", "name": "web-edge-dfw" }, "clusters": [{ "name": "dfw-01" }] },
            "status": { "conditions": [condition("Scheduled", "True", "Success", "")] },
        }],
        "works": [{
            "metadata": { "namespace": "karmada-es-dfw-01", "name": "web-edge-dfw-5b7c" },
            "spec": { "workload": { "manifests": [
                { "kind": "WorkloadDeployment", "metadata": { "namespace": "ns-1", "name": "web-edge-dfw" } }] } },
            "status": { "conditions": [condition("Applied", "True", "AppliedSuccessful", "")] },
        }],
        "copies": [instance("web-edge-dfw-0"), instance("web-edge-dfw-1")],
        "clusters": [{
            "metadata": { "name": "dfw-01", "labels": { "topology.datum.net/city-code": "DFW" } },
            "status": { "conditions": [condition("Ready", "True", "ClusterReady", "")] },
        }],
        "cell": [deployment("ns-1", "c1", &json!({
            "resourcetemplate.karmada.io/uid": "h1", "resourcetemplate.karmada.io/generation": "2" }))],
        "running": [instance("web-edge-dfw-0"), instance("web-edge-dfw-1")],
    })
}

fn sight(world: &Value) -> Sight {
    let one = |key: &str| (!world[key].is_null()).then(|| object(world[key].clone()));
    let all = |key: &str| objects(world[key].as_array().unwrap().clone());
    let cell = Cell {
        deployments: all("cell"),
        instances: all("running"),
    };
    Sight {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        hub_namespace: "ns-1".to_owned(),
        workload: one("workload"),
        deployments: all("deployments"),
        claims: Found::Known(all("claims")),
        hub: Some(Found::Known(Hub {
            namespace: one("namespace"),
            deployments: all("hub"),
            policies: all("policies"),
            bindings: all("bindings"),
            works: all("works"),
            copies: all("copies"),
            clusters: all("clusters"),
        })),
        instances: all("instances"),
        cells: BTreeMap::from([("dfw-01".to_owned(), Found::Known(cell))]),
    }
}

/// Everything that is not fine, and how many nodes there are.
fn told(node: &Node) -> (Vec<String>, usize) {
    let mut told = Vec::new();
    if node.state != State::Fine {
        told.push(format!(
            "{} {} {}: {}",
            node.plane,
            node.kind,
            node.state.word(),
            node.text
        ));
    }
    let mut count = 1;
    for child in &node.children {
        let (more, others) = self::told(child);
        told.extend(more);
        count += others;
    }
    (told, count)
}

#[track_caller]
fn broken(path: &str, value: Value, expected: &[&str]) {
    let mut world = world();
    *world.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    assert_eq!(told(&tree(&sight(&world))).0, expected, "{path}");
}

#[test]
fn nothing_is_said_where_everything_runs() {
    let whole = tree(&sight(&world()));
    // Workload, three deployments, policy, binding, Work, two Instances, two claims.
    assert_eq!(told(&whole), (Vec::new(), 11));
    assert_eq!(whole.worst(), State::Fine);
    let in_project = &whole.children[0];
    assert_eq!(in_project.text, "DFW 2/2 ready");
    let binding = &in_project.children[0].children[1];
    assert_eq!((binding.kind, binding.text.as_str()), (BINDING, "on dfw-01"));
    let claim = &binding.children[0].children[0].children[1].children[0];
    assert_eq!(
        (claim.name.as_str(), claim.text.as_str()),
        ("shop/instance-web-edge-dfw-1", "granted")
    );
}

#[test]
fn what_breaks_in_the_project_is_told_there() {
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
        let mut world = world();
        world["deployments"] = json!([]);
        world["workload"]["status"]["placements"] = json!([{ "name": "edge", "conditions": [available] }]);
        let tree = tree(&sight(&world));
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
fn what_breaks_on_the_hub_is_told_there() {
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
fn c37_why_a_binding_has_no_cluster_is_told_once() {
    let mut world = world();
    world["bindings"][0]["spec"]["clusters"] = json!([]);
    world["cell"] = json!([]);
    let reason = |world: &Value| told(&tree(&sight(world))).0;
    assert_eq!(
        reason(&world),
        ["hub ResourceBinding broken: Karmada has chosen no Cluster yet"]
    );
    world["bindings"][0]["status"]["conditions"][0] =
        condition("Scheduled", "False", "NoClusterFit", "0/1 clusters are available");
    assert_eq!(
        reason(&world),
        ["hub ResourceBinding broken: NoClusterFit: 0/1 clusters are available"]
    );
    world["clusters"][0]["metadata"]["labels"] = json!({ "topology.datum.net/city-code": "dfw" });
    assert_eq!(
        reason(&world),
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
fn what_breaks_in_the_cell_is_told_there() {
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
        &["cell dfw-01 Instance broken: beyond the number that is asked for"],
    );
}

#[test]
fn d10_a_slot_says_whom_it_waits_for() {
    broken(
        "/running/1",
        instance("other-0"),
        &["cell dfw-01 Instance broken: not there"],
    );
    let mut world = world();
    world["cell"][0]["spec"]["scaleSettings"]["minReplicas"] = json!(5);
    world["running"] = json!([instance("web-edge-dfw-0")]);
    world["running"][0]["status"]["conditions"][0] = condition("Ready", "False", "PendingProgramming", "");
    assert_eq!(
        told(&tree(&sight(&world))).0,
        [
            "cell dfw-01 Instance broken: PendingProgramming",
            "cell dfw-01 Instance broken: not there: waits until web-edge-dfw-0 is Ready, and 3 more after it",
        ]
    );
}

#[test]
fn what_breaks_with_a_claim_is_told_there() {
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
    let mut world = world();
    world["claims"] = json!([]);
    for one in world["running"].as_array_mut().unwrap() {
        one["status"]["conditions"][1] = condition("QuotaGranted", "Unknown", "QuotaDisabled", "");
    }
    assert_eq!(told(&tree(&sight(&world))).0, [""; 0]);
    world["running"][0]["status"]["conditions"][1] =
        condition("QuotaGranted", "Unknown", "QuotaBackendUnavailable", "no answer");
    assert_eq!(
        told(&tree(&sight(&world))).0,
        ["project ResourceClaim broken: not there: QuotaBackendUnavailable: no answer"]
    );
}

#[test]
fn a_plane_that_does_not_answer_hides_no_other() {
    let mut seen = sight(&world());
    seen.hub = Some(Found::Away("no answer".to_owned()));
    let (reasons, count) = told(&tree(&seen));
    // Without policy, binding and Work.
    assert_eq!(
        (reasons, count),
        (vec!["hub WorkloadDeployment unknown: no answer".to_owned()], 8)
    );
    assert_eq!(tree(&seen).worst(), State::Unknown);

    let mut seen = sight(&world());
    seen.cells
        .insert("dfw-01".to_owned(), Found::Away("no answer".to_owned()));
    assert_eq!(
        told(&tree(&seen)),
        (vec!["cell dfw-01 WorkloadDeployment unknown: no answer".to_owned()], 11)
    );
    seen.cells.clear();
    let (reasons, count) = told(&tree(&seen));
    let hint = "cell dfw-01 WorkloadDeployment not-looked-at: give --cell dfw-01=KUBECONFIG";
    assert_eq!((reasons, count), (vec![hint.to_owned()], 11));
    assert_eq!(tree(&seen).worst(), State::Unasked);

    let mut seen = sight(&world());
    seen.claims = Found::Away("not served".to_owned());
    assert_eq!(told(&tree(&seen)).0, ["project ResourceClaim unknown: not served"; 2]);
}

#[test]
fn d8_one_cluster_is_its_own_cell() {
    let mut world = world();
    world["instances"] = world["running"].clone();
    let mut seen = sight(&world);
    (seen.hub, seen.cells) = (None, BTreeMap::new());
    // Workload, its deployment, two Instances, two claims.
    assert_eq!(told(&tree(&seen)), (Vec::new(), 6));
    seen.instances.pop();
    assert_eq!(told(&tree(&seen)).0, ["project Instance broken: not there"]);
}

#[test]
fn c15_objects_of_any_shape_are_shown() {
    let mut world = world();
    for key in [
        "deployments",
        "hub",
        "policies",
        "bindings",
        "works",
        "copies",
        "clusters",
        "cell",
        "running",
        "claims",
    ] {
        for odd in [json!(null), json!([1]), json!("x"), json!({ "conditions": "x" })] {
            world[key][0]["status"] = odd.clone();
            world[key][0]["spec"] = odd;
            told(&tree(&sight(&world)));
        }
    }
}
