//! `popcell cell remove` on a hub that is served in this process.

use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish, popcell},
};

const CLUSTER: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/dfw-01";
const RECORDS: &str = "/api/v1/namespaces/compute-system/configmaps";
const RECORD: &str = "/api/v1/namespaces/compute-system/configmaps/popcell-removed-cells";

fn cluster(id: &str, ready: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": { "uid": "u1", "resourceVersion": "7" }, "spec": { "id": id, "syncMode": "Push" },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

fn hub(ready: &str) -> Plane {
    let hub = Plane::start();
    hub.put(CLUSTER, cluster("k1", ready));
    hub
}

fn record(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "compute-system" }, "data": data })
}

fn remove(hub: &Plane, args: &[&str]) -> Run {
    finish(
        command()
            .args(["cell", "remove"])
            .args(args)
            .arg("--kubeconfig")
            .arg(hub.kubeconfig()),
    )
}

#[test]
fn a_cell_is_recorded_before_its_cluster_is_deleted() {
    let hub = hub("Unknown");
    let run = remove(&hub, &["dfw-01"]).expect(0);
    assert_eq!(
        run.out,
        "cell dfw-01: recorded as dfw-01_k1 in ConfigMap compute-system/popcell-removed-cells\nCluster dfw-01: deleted\n"
    );
    for said in [
        "claims of cell dfw-01 in every project, then its copies",
        "delete dfw-01_k1 from ConfigMap",
    ] {
        assert!(run.err.contains(said), "{}", run.err);
    }
    assert_eq!(hub.writes(), [format!("POST {RECORDS}"), format!("DELETE {CLUSTER}")]);
    let record = hub.get(RECORD).unwrap();
    let since = record["data"]["dfw-01_k1"].as_str().unwrap();
    since.parse::<jiff::Timestamp>().unwrap();
    assert!(hub.get(CLUSTER).is_none());

    let run = remove(&hub, &["dfw-01"]).expect(0);
    assert!(
        run.out.contains("recorded before") && run.out.contains("gone already"),
        "{}",
        run.out
    );
    assert_eq!(hub.writes().len(), 2, "{:?}", hub.writes());
}

#[test]
fn a_ready_cell_is_removed_only_with_force() {
    let hub = hub("True");
    let run = remove(&hub, &["dfw-01"]).expect(1);
    assert!(
        run.err.contains("is Ready") && run.err.contains("--force"),
        "{}",
        run.err
    );
    assert!(hub.writes().is_empty() && hub.get(CLUSTER).is_some());
    remove(&hub, &["dfw-01", "--force"]).expect(0);
    assert!(hub.get(CLUSTER).is_none() && hub.get(RECORD).is_some());
}

#[test]
fn entries_of_others_and_times_of_before_stay() {
    let hub = hub("False");
    hub.put(
        RECORD,
        record(&json!({ "ord_k9": "2026-01-01T12:00:00Z", "dfw-01_k1": "2026-01-02T12:00:00Z" })),
    );
    let run = remove(&hub, &["dfw-01"]).expect(0);
    assert!(run.out.contains("recorded before"), "{}", run.out);
    assert_eq!(hub.writes(), [format!("DELETE {CLUSTER}")]);

    hub.put(CLUSTER, cluster("k2", "False"));
    remove(&hub, &["dfw-01"]).expect(0);
    let data = hub.get(RECORD).unwrap()["data"].clone();
    assert_eq!(data["ord_k9"], "2026-01-01T12:00:00Z");
    assert_eq!(data["dfw-01_k1"], "2026-01-02T12:00:00Z");
    assert!(data["dfw-01_k2"].is_string(), "{data}");
}

#[test]
fn an_object_that_moves_is_taken_up_again() {
    let hub = hub("Unknown");
    hub.refuse("POST", RECORDS, 409, "there is one", 1);
    hub.refuse("DELETE", CLUSTER, 409, "it has changed", 2);
    remove(&hub, &["dfw-01"]).expect(0);
    assert!(hub.get(CLUSTER).is_none());
    assert!(hub.get(RECORD).unwrap()["data"]["dfw-01_k1"].is_string());
}

#[test]
fn without_a_record_the_cluster_is_kept() {
    for (code, message, fix) in [
        (403, "not you", "create and patch of ConfigMaps"),
        (404, "namespaces \"x\" not found", "--namespace"),
        (500, "full", "the log of the hub's API server"),
    ] {
        let hub = hub("Unknown");
        hub.refuse("POST", RECORDS, code, message, 1);
        let run = remove(&hub, &["dfw-01"]).expect(4);
        assert!(run.err.contains(message) && run.err.contains(fix), "{}", run.err);
        assert_eq!(hub.writes(), [format!("POST {RECORDS}")]);
    }
}

#[test]
fn a_cluster_that_cannot_be_deleted_is_taken_up_by_the_next_run() {
    let hub = hub("Unknown");
    hub.refuse("DELETE", CLUSTER, 403, "not you", 1);
    let run = remove(&hub, &["dfw-01"]).expect(4);
    assert!(
        run.err.contains("not you") && run.err.contains("run the command again"),
        "{}",
        run.err
    );
    remove(&hub, &["dfw-01"]).expect(0);
    assert!(hub.get(CLUSTER).is_none());
}

#[test]
fn the_cluster_of_another_cell_that_has_the_name_now_is_kept() {
    let hub = hub("True");
    let run = remove(&hub, &["dfw-01", "--id", "k0"]).expect(0);
    assert!(
        run.out.contains("recorded as dfw-01_k0") && run.out.contains("another cell"),
        "{}",
        run.out
    );
    assert!(hub.get(CLUSTER).is_some());
}

#[test]
fn what_is_not_there_is_named() {
    let hub = hub("Unknown");
    let run = remove(&hub, &["dfw"]).expect(2);
    assert!(
        run.err.contains("no Cluster dfw ") && run.err.contains("there: dfw-01)"),
        "{}",
        run.err
    );
    remove(&hub, &["dfw", "--id", "k0"]).expect(0);
    assert!(hub.get(RECORD).unwrap()["data"]["dfw_k0"].is_string() && hub.get(CLUSTER).is_some());
}

#[test]
fn a_dry_run_writes_nothing() {
    let hub = hub("Unknown");
    let run = remove(&hub, &["dfw-01", "--dry-run"]).expect(0);
    assert!(
        run.err.contains("would record dfw-01_k1") && run.err.contains("would delete Cluster dfw-01"),
        "{}",
        run.err
    );
    assert!(hub.writes().is_empty());
}

#[test]
fn a_hub_that_is_unreachable_is_an_environment_that_failed() {
    let run = popcell(&["cell", "remove", "dfw-01", "--kubeconfig", "kubeconfig-dead.yaml"]).expect(4);
    assert!(run.err.contains("https://127.0.0.1:1/"), "{}", run.err);
    for nonsense in [
        &["cell"][..],
        &["cell", "remove"],
        &["cell", "remove", "DFW"],
        &["cell", "remove", "a/b"],
    ] {
        assert_eq!(popcell(nonsense).code, Some(2), "{nonsense:?}");
    }
}
