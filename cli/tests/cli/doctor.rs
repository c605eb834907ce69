//! `popcell doctor` on a webhook that is served in this process.

use std::process::Stdio;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish},
    webhook::{Served, serve},
};

const CONFIGURATIONS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";
const KINDS: &str = "/apis/workload.example.io/v1alpha1";

/// A Karmada API server with one member and the kind of the module.
fn karmada() -> Plane {
    let karmada = Plane::start();
    karmada.put("/version", json!({ "major": "1" }));
    karmada.put(
        "/apis/cluster.karmada.io/v1alpha1/clusters/a",
        json!({ "metadata": { "labels": { "topology.datum.net/city-code": "DFW" } }, "spec": { "syncMode": "Push" } }),
    );
    let resource = |name| json!({ "name": name, "singularName": "workload", "kind": "Workload", "namespaced": true, "verbs": ["get"] });
    karmada.put(
        KINDS,
        json!({ "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "workload.example.io/v1alpha1",
            "resources": [resource("workloads"), resource("workloads/status")] }),
    );
    karmada
}

/// Registers what was planned.
fn register(karmada: &Plane, planned: Value) {
    karmada.put(&format!("{CONFIGURATIONS}/popcell"), planned);
}

/// What `popcell register` would write.
fn planned(karmada: &Plane, served: &Served) -> Value {
    let run = finish(
        command()
            .args(["register", "--dry-run", "--output=json", "--url", &served.url])
            .args(["--module-dir", &served.modules(), "--ca-file", &served.ca()])
            .arg("--kubeconfig")
            .arg(karmada.kubeconfig()),
    )
    .expect(0);
    assert!(run.err.contains("probed https://127.0.0.1:"), "{}", run.err);
    assert_eq!(karmada.writes(), Vec::<String>::new());
    serde_json::from_str(&run.out).unwrap()
}

fn doctor(karmada: &Plane, args: &[&str]) -> Run {
    let mut doctor = command();
    doctor.arg("doctor").arg("--kubeconfig").arg(karmada.kubeconfig());
    let run = finish(doctor.args(args));
    assert_eq!(karmada.writes(), Vec::<String>::new());
    run
}

#[test]
fn what_register_writes_passes_every_check() {
    let (karmada, served) = (karmada(), serve());
    register(&karmada, planned(&karmada, &served));
    let run = doctor(&karmada, &["--module-dir", &served.modules(), "-o", "json"]).expect(0);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 15, "{report:#}");
    for check in checks {
        assert_eq!(check["verdict"], "ok", "{check:#}");
    }
}

#[test]
fn a_clock_that_is_wrong_is_named() {
    let (karmada, served) = (karmada(), serve());
    register(&karmada, planned(&karmada, &served));
    karmada.set_clock_ahead(SignedDuration::from_hours(1));
    let run = doctor(&karmada, &["-o", "short"]).expect(1);
    assert!(
        run.out.contains("fail  clock-skew: the Karmada API server is ") && run.out.contains("the webhook agrees"),
        "{}",
        run.out
    );
}

#[test]
fn a_webhook_that_is_gone_is_distinguished_from_one_that_was_never_registered() {
    let (karmada, served) = (karmada(), serve());
    let run = doctor(&karmada, &["-o", "short"]).expect(1);
    assert!(run.out.contains("fail  config-present"), "{}", run.out);
    register(&karmada, planned(&karmada, &served));
    drop(served);
    let run = doctor(&karmada, &["-o", "short"]).expect(1);
    assert!(
        run.out.contains("fail  endpoint-connects") && run.out.contains(" 1 failed"),
        "{}",
        run.out
    );
}

#[test]
fn wait_looks_again_until_nothing_fails() {
    let (karmada, served) = (karmada(), serve());
    let planned = planned(&karmada, &served);
    let before = karmada.asked(CONFIGURATIONS);
    let child = command()
        .args(["doctor", "--wait", "10m", "--kubeconfig"])
        .arg(karmada.kubeconfig())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while karmada.asked(CONFIGURATIONS) == before {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    register(&karmada, planned);
    let output = child.wait_with_output().unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert_eq!(err, "waiting for config-present\n");
    assert!(out.contains(" 0 failed"), "{out}");
}

#[test]
fn wait_ends_with_what_still_fails() {
    let run = doctor(&karmada(), &["--wait", "1ms", "-o", "short"]).expect(1);
    assert!(run.out.contains("fail  config-present"), "{}", run.out);
    doctor(&karmada(), &["--wait", "soon"]).expect(2);
}
