//! `popcell tree` on planes that are served in this process. What it says of each broken edge is in the crate's own tests.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish, popcell},
};

/// A test that waits so long has failed.
const LONG: Duration = Duration::from_mins(1);
const COMPUTE: &str = "apis/compute.datumapis.com/v1alpha";

struct Planes {
    project: Plane,
    hub: Plane,
    cell: Plane,
}

fn status(type_: &str, reason: &str) -> Value {
    json!({ "readyReplicas": 1, "desiredReplicas": 1, "conditions": [{ "type": type_, "status": "True", "reason": reason }] })
}

fn deployment(namespace: &str) -> Value {
    json!({
        "metadata": { "namespace": namespace, "uid": namespace }, "status": status("Available", "StableInstanceFound"),
        "spec": { "cityCode": "DFW", "workloadRef": { "name": "web" }, "scaleSettings": { "minReplicas": 1 } },
    })
}

/// Everything runs.
fn planes() -> Planes {
    let (project, hub, cell) = (Plane::start(), Plane::start(), Plane::start());
    project.put("/api/v1/namespaces/shop", json!({ "metadata": { "uid": "1" } }));
    project.put(
        &format!("/{COMPUTE}/namespaces/shop/workloads/web"),
        json!({ "metadata": { "namespace": "shop" }, "status": status("Available", "AvailablePlacementFound"),
            "spec": { "placements": [{ "name": "edge", "cityCodes": ["DFW"] }] } }),
    );
    let name = "workloaddeployments/web-edge-dfw";
    project.put(&format!("/{COMPUTE}/namespaces/shop/{name}"), deployment("shop"));
    let mut other = deployment("shop");
    other["spec"]["workloadRef"]["name"] = json!("other");
    project.put(
        &format!("/{COMPUTE}/namespaces/shop/workloaddeployments/other-edge-dfw"),
        other,
    );
    project.put(
        "/apis/quota.miloapis.com/v1alpha1/namespaces/shop/resourceclaims/instance-web-edge-dfw-0",
        json!({ "metadata": { "namespace": "shop", "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
            "status": status("Granted", "QuotaAvailable") }),
    );
    hub.put("/api/v1/namespaces/ns-1", json!({}));
    hub.put(&format!("/{COMPUTE}/namespaces/ns-1/{name}"), deployment("ns-1"));
    hub.put(
        "/apis/policy.karmada.io/v1alpha1/namespaces/ns-1/propagationpolicies/city-dfw",
        json!({ "metadata": { "namespace": "ns-1" } }),
    );
    hub.put(
        "/apis/work.karmada.io/v1alpha2/namespaces/ns-1/resourcebindings/web-edge-dfw-workloaddeployment",
        json!({ "metadata": { "namespace": "ns-1", "labels": { "resourcebinding.karmada.io/permanent-id": "b1" } },
            "spec": { "resource": { "kind": "WorkloadDeployment", "name": "web-edge-dfw" }, "clusters": [{ "name": "dfw-01" }] } }),
    );
    hub.put(
        "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-dfw-01/works/web-edge-dfw-5b7c",
        json!({ "metadata": { "namespace": "karmada-es-dfw-01" }, "status": status("Applied", "AppliedSuccessful"),
            "spec": { "workload": { "manifests": [
                { "kind": "WorkloadDeployment", "metadata": { "namespace": "ns-1", "name": "web-edge-dfw" } }] } } }),
    );
    hub.put(
        "/apis/cluster.karmada.io/v1alpha1/clusters/dfw-01",
        json!({ "metadata": { "labels": { "topology.datum.net/city-code": "DFW" } }, "status": status("Ready", "ClusterReady") }),
    );
    cell.put(&format!("/{COMPUTE}/namespaces/ns-1/{name}"), deployment("ns-1"));
    cell.put(
        &format!("/{COMPUTE}/namespaces/ns-1/instances/web-edge-dfw-0"),
        json!({ "metadata": { "namespace": "ns-1" }, "status": status("Ready", "Available") }),
    );
    Planes { project, hub, cell }
}

impl Planes {
    fn args(&self) -> Vec<String> {
        let file = |plane: &Plane| plane.kubeconfig().display().to_string();
        vec![
            "tree".to_owned(),
            "web".to_owned(),
            "--namespace=shop".to_owned(),
            format!("--project-kubeconfig={}", file(&self.project)),
            format!("--kubeconfig={}", file(&self.hub)),
            format!("--cell=dfw-01={}", file(&self.cell)),
        ]
    }

    fn tree(&self, more: &[&str]) -> Run {
        finish(command().args(self.args()).args(more))
    }
}

#[test]
fn a_workload_is_followed_to_its_instances_and_claims() {
    let planes = planes();
    let run = planes.tree(&[]).expect(0);
    let shown: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = "\
OBJECT PLANE AGE STATE
Workload shop/web project -
└─ WorkloadDeployment shop/web-edge-dfw project - DFW 1/1 ready
└─ WorkloadDeployment ns-1/web-edge-dfw hub -
├─ PropagationPolicy ns-1/city-dfw hub -
└─ ResourceBinding ns-1/web-edge-dfw-workloaddeployment hub - on dfw-01
└─ Work karmada-es-dfw-01/web-edge-dfw-5b7c hub -
└─ WorkloadDeployment ns-1/web-edge-dfw cell dfw-01 - DFW 1/1 ready
└─ Instance ns-1/web-edge-dfw-0 cell dfw-01 - ready
└─ ResourceClaim shop/instance-web-edge-dfw-0 project - granted";
    let expected: Vec<Vec<&str>> = expected.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(shown, expected, "{}", run.out);
    for plane in [&planes.project, &planes.hub, &planes.cell] {
        assert!(plane.writes().is_empty());
    }
}

#[test]
fn an_object_that_cannot_be_read_hides_no_other() {
    let planes = planes();
    planes.project.put(
        &format!("/{COMPUTE}/namespaces/shop/workloaddeployments/api-edge-dfw"),
        json!({ "metadata": { "namespace": "shop", "labels": 7 } }),
    );
    planes.tree(&[]).expect(0);
    planes.cell.put(
        &format!("/{COMPUTE}/namespaces/ns-1/instances/web-edge-dfw-0"),
        json!({ "metadata": { "namespace": "ns-1", "labels": 7 } }),
    );
    let run = planes.tree(&[]).expect(4);
    let line = run
        .out
        .lines()
        .find(|line| line.contains("Instance ns-1/web-edge-dfw-0"))
        .unwrap();
    assert!(
        line.contains("unknown: it cannot be read") && run.out.contains("1/1 ready"),
        "{}",
        run.out
    );
}

#[test]
fn the_exit_code_says_how_it_is() {
    let planes = planes();
    let clusters = "/apis/cluster.karmada.io/v1alpha1/clusters";
    planes.hub.refuse("GET", clusters, 403, "not you", 1);
    let run = planes.tree(&[]).expect(4);
    assert!(
        run.out.contains("unknown: failed to list clusters") && run.out.contains("not you"),
        "{}",
        run.out
    );

    let claim = "/apis/quota.miloapis.com/v1alpha1/namespaces/shop/resourceclaims/instance-web-edge-dfw-0";
    planes.project.put(
        claim,
        json!({ "metadata": { "namespace": "shop", "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
            "status": { "conditions": [{ "type": "Granted", "status": "False", "reason": "QuotaExceeded", "message": "3 of 3" }] } }),
    );
    let run = planes.tree(&["-o=json"]).expect(1);
    let reported: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(reported["state"], "broken");
    let claim = "/tree/children/0/children/0/children/1/children/0/children/0/children/0/children/0";
    let claim = reported.pointer(claim).unwrap();
    assert_eq!(
        (&claim["state"], &claim["text"]),
        (&json!("broken"), &json!("QuotaExceeded: 3 of 3"))
    );
}

#[test]
fn watching_shows_what_changes() {
    let planes = planes();
    let mut child = command()
        .args(planes.args())
        .args(["-o=json", "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (tell, reported) = mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let state = || {
        let line = reported.recv_timeout(LONG);
        let line = line.expect("nothing more is shown");
        serde_json::from_str::<Value>(&line).unwrap()["state"].clone()
    };
    assert_eq!(state(), "fine");
    let instance = format!("/{COMPUTE}/namespaces/ns-1/instances/web-edge-dfw-0");
    planes
        .cell
        .put(&instance, json!({ "metadata": { "namespace": "ns-1" } }));
    assert_eq!(state(), "broken");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_makes_no_sense_is_said() {
    let planes = planes();
    let run = planes.tree(&["--project=a"]).expect(2);
    assert!(run.err.contains("--mode milo"), "{}", run.err);
    let run = planes.tree(&["--mode=milo"]).expect(2);
    assert!(run.err.contains("give --project"), "{}", run.err);
    planes.tree(&["--single-cluster"]).expect(2);
    planes.tree(&["--cell=dfw"]).expect(2);
    popcell(&["tree", "web"]).expect(2);
    let project = planes.project.kubeconfig().display().to_string();
    let run = finish(command().args(["tree", "web", "--single-cluster", "--project-kubeconfig", &project])).expect(2);
    assert!(
        run.err.contains("namespace default not found") && run.err.contains("-n"),
        "{}",
        run.err
    );
}
