//! An environment where everything runs, and what is reported of it as a whole.

mod edges;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::tree::read::{Cell, Strange};
use popcell_core::object::Unreadable;

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
fn state_of_planes() -> Value {
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

fn snapshot(state_of_planes: &Value) -> Snapshot {
    let one = |key: &str| (!state_of_planes[key].is_null()).then(|| object(state_of_planes[key].clone()));
    let all = |key: &str| objects(state_of_planes[key].as_array().unwrap().clone());
    let cell = Cell {
        deployments: all("cell"),
        instances: all("running"),
    };
    Snapshot {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        hub_namespace: "ns-1".to_owned(),
        workload: one("workload"),
        deployments: all("deployments"),
        claims: Ok(all("claims")),
        hub: Some(Ok(Hub {
            namespace: one("namespace"),
            deployments: all("hub"),
            policies: all("policies"),
            bindings: all("bindings"),
            works: all("works"),
            copies: all("copies"),
            clusters: all("clusters"),
        })),
        instances: all("instances"),
        cells: BTreeMap::from([("dfw-01".to_owned(), Ok(cell))]),
        unreadable: Vec::new(),
    }
}

/// Everything that is not fine, and how many nodes there are.
fn reported(node: &Node) -> (Vec<String>, usize) {
    let mut reported = Vec::new();
    if node.state != State::Fine {
        reported.push(format!(
            "{} {} {}: {}",
            node.plane,
            node.kind,
            node.state.word(),
            node.text
        ));
    }
    let mut count = 1;
    for child in &node.children {
        let (more, others) = self::reported(child);
        reported.extend(more);
        count += others;
    }
    (reported, count)
}

#[track_caller]
fn broken(path: &str, value: Value, expected: &[&str]) {
    let mut state_of_planes = state_of_planes();
    *state_of_planes.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value;
    assert_eq!(reported(&tree(&snapshot(&state_of_planes))).0, expected, "{path}");
}

#[test]
fn nothing_is_said_where_everything_runs() {
    let whole = tree(&snapshot(&state_of_planes()));
    // Workload, three deployments, policy, binding, Work, two Instances, two claims.
    assert_eq!(reported(&whole), (Vec::new(), 11));
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
fn a_plane_that_does_not_answer_hides_no_other() {
    let mut seen = snapshot(&state_of_planes());
    seen.hub = Some(Err("no answer".to_owned()));
    let (reasons, count) = reported(&tree(&seen));
    // Without policy, binding and Work.
    assert_eq!(
        (reasons, count),
        (vec!["hub WorkloadDeployment unknown: no answer".to_owned()], 8)
    );
    assert_eq!(tree(&seen).worst(), State::Unknown);

    let mut seen = snapshot(&state_of_planes());
    seen.cells.insert("dfw-01".to_owned(), Err("no answer".to_owned()));
    assert_eq!(
        reported(&tree(&seen)),
        (vec!["cell dfw-01 WorkloadDeployment unknown: no answer".to_owned()], 11)
    );
    seen.cells.clear();
    let (reasons, count) = reported(&tree(&seen));
    let hint = "cell dfw-01 WorkloadDeployment not-looked-at: give --cell dfw-01=KUBECONFIG";
    assert_eq!((reasons, count), (vec![hint.to_owned()], 11));
    assert_eq!(tree(&seen).worst(), State::Unasked);

    let mut seen = snapshot(&state_of_planes());
    seen.claims = Err("not served".to_owned());
    assert_eq!(
        reported(&tree(&seen)).0,
        ["project ResourceClaim unknown: not served"; 2]
    );
}

#[test]
fn a_single_cluster_is_its_own_cell() {
    let mut state_of_planes = state_of_planes();
    state_of_planes["instances"] = state_of_planes["running"].clone();
    let mut seen = snapshot(&state_of_planes);
    (seen.hub, seen.cells) = (None, BTreeMap::new());
    // Workload, its deployment, two Instances, two claims.
    assert_eq!(reported(&tree(&seen)), (Vec::new(), 6));
    seen.instances.pop();
    assert_eq!(reported(&tree(&seen)).0, ["project Instance broken: not there"]);
}

#[test]
fn objects_of_any_shape_are_shown() {
    let mut state_of_planes = state_of_planes();
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
            state_of_planes[key][0]["status"] = odd.clone();
            state_of_planes[key][0]["spec"] = odd;
            reported(&tree(&snapshot(&state_of_planes)));
        }
    }
}

#[test]
fn what_cannot_be_read_is_unknown_in_its_place_and_hides_nothing_else() {
    let strange = |plane: &str, kind, namespace: &str, name: &str| Strange {
        plane: plane.to_owned(),
        kind,
        item: Unreadable {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            why: "no object".to_owned(),
        },
    };
    let mut state_of_planes = state_of_planes();
    state_of_planes["claims"].as_array_mut().unwrap().remove(1);
    state_of_planes["running"].as_array_mut().unwrap().remove(0);
    let mut snapshot = snapshot(&state_of_planes);
    snapshot.unreadable = vec![
        strange(PROJECT, "ResourceClaim", "shop", "instance-web-edge-dfw-1"),
        strange("cell dfw-01", "Instance", "ns-1", "web-edge-dfw-0"),
        strange(HUB, "Work", "karmada-es-dfw-01", "web-other-6c8d"),
        strange(HUB, "Cluster", "", "ord-01"),
        strange(PROJECT, "WorkloadDeployment", "shop", ""),
        // Of other Workloads.
        strange(PROJECT, "ResourceClaim", "shop", "instance-api-0"),
        strange(HUB, "WorkloadDeployment", "ns-1", "api"),
    ];
    let unknown = |plane: &str, kind: &str| format!("{plane} {kind} unknown: it cannot be read: no object");
    assert_eq!(
        reported(&tree(&snapshot)).0,
        [
            unknown(PROJECT, "ResourceClaim"),
            unknown("cell dfw-01", "Instance"),
            unknown(HUB, "Work"),
            unknown(HUB, "Cluster"),
            unknown(PROJECT, "WorkloadDeployment"),
        ]
    );
}
