//! `popcell doctor` on a webhook that is served in this process.

use std::process::Stdio;

use jiff::SignedDuration;
use serde_json::Value;

use crate::{
    karmada::{CONFIGURATIONS, Karmada},
    program::{Run, command, finish},
    webhook::{Served, serve},
};

/// What `popcell register` would write.
fn planned(karmada: &Karmada, served: &Served) -> Value {
    let run = finish(
        command()
            .args(["register", "--dry-run", "--output=json", "--url", &served.url])
            .args(["--module-dir", &served.modules(), "--ca-file", &served.ca()])
            .arg("--kubeconfig")
            .arg(karmada.kubeconfig()),
    )
    .expect(0);
    assert!(run.err.contains("probed https://127.0.0.1:"), "{}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn doctor(karmada: &Karmada, args: &[&str]) -> Run {
    finish(
        command()
            .arg("doctor")
            .arg("--kubeconfig")
            .arg(karmada.kubeconfig())
            .args(args),
    )
}

#[test]
fn what_register_writes_passes_every_check() {
    let (karmada, served) = (Karmada::start(), serve());
    karmada.set(CONFIGURATIONS, vec![planned(&karmada, &served)]);
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
    let (karmada, served) = (Karmada::start(), serve());
    karmada.set(CONFIGURATIONS, vec![planned(&karmada, &served)]);
    karmada.set_clock_ahead(SignedDuration::from_hours(1));
    let run = doctor(&karmada, &["-o", "short"]).expect(1);
    assert!(
        run.out.contains("fail  clock-skew: the Karmada API server is ") && run.out.contains("the webhook agrees"),
        "{}",
        run.out
    );
}

#[test]
fn a_webhook_that_is_gone_is_told_from_one_that_was_never_registered() {
    let (karmada, served) = (Karmada::start(), serve());
    let run = doctor(&karmada, &["-o", "short"]).expect(1);
    assert!(run.out.contains("fail  config-present"), "{}", run.out);
    karmada.set(CONFIGURATIONS, vec![planned(&karmada, &served)]);
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
    let (karmada, served) = (Karmada::start(), serve());
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
    karmada.set(CONFIGURATIONS, vec![planned]);
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
    let run = doctor(&Karmada::start(), &["--wait", "1ms", "-o", "short"]).expect(1);
    assert!(run.out.contains("fail  config-present"), "{}", run.out);
    doctor(&Karmada::start(), &["--wait", "soon"]).expect(2);
}
