//! `--url`: the webhook itself, served in this process over TLS.

use std::time::Duration;

use popcell_https::{Limits, SelfSigned, Source};
use popcell_webhook::{Config, Running, start};

use crate::program::{Run, module, popcell, repository, scratch};

pub(crate) struct Served {
    running: Option<Running>,
    runtime: tokio::runtime::Runtime,
    folder: tempfile::TempDir,
    pub(crate) url: String,
}

/// Serves the example module with a certificate for 127.0.0.1.
pub(crate) fn serve() -> Served {
    let folder = scratch();
    let modules = folder.path().join("modules");
    std::fs::create_dir(&modules).unwrap();
    std::fs::copy(module(), modules.join("example.wasm")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        module_dir: modules,
        settings: popcell_engine::Settings::default(),
        listen: "127.0.0.1:0".parse().unwrap(),
        health_listen: "127.0.0.1:0".parse().unwrap(),
        source: Source::SelfSigned(SelfSigned {
            ca_dir: folder.path().join("ca"),
            names: vec!["127.0.0.1".into()],
        }),
        reload_period: Duration::from_mins(1),
        limits: Limits::default(),
    };
    let running = runtime.block_on(start(config)).unwrap();
    let url = format!("https://{}/interpret", running.address);
    Served {
        running: Some(running),
        runtime,
        folder,
        url,
    }
}

impl Served {
    pub(crate) fn ca(&self) -> String {
        SelfSigned {
            ca_dir: self.folder.path().join("ca"),
            names: Vec::new(),
        }
        .public_file()
        .to_str()
        .unwrap()
        .to_owned()
    }

    pub(crate) fn modules(&self) -> String {
        self.folder.path().join("modules").to_str().unwrap().to_owned()
    }

    fn run(&self, command: &str, args: &[&str]) -> Run {
        popcell(&[&[command, "--url", &self.url, "--ca-file", &self.ca()], args].concat())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.leave();
            self.runtime.block_on(running.finished()).unwrap();
        }
    }
}

#[test]
fn a_webhook_answers_as_its_module_does() {
    let served = serve();
    for args in [
        &["--operation", "InterpretReplica", "-f", "workload.yaml"][..],
        &[
            "--operation",
            "ReviseReplica",
            "-f",
            "workload.yaml",
            "--desired-replica",
            "5",
        ],
        &[
            "--operation",
            "Retain",
            "--desired-file",
            "workload.yaml",
            "--observed-file",
            "workload.yaml",
        ],
        &[
            "--operation",
            "AggregateStatus",
            "-f",
            "workload.yaml",
            "--status-file",
            "items.yaml",
        ],
        &["--operation", "InterpretStatus", "-f", "workload.yaml"],
        &["--operation", "InterpretHealth", "-f", "workload.yaml"],
        &["--operation", "InterpretDependency", "-f", "workload.yaml"],
    ] {
        let there = served.run("interpret", args).expect(0);
        let here = popcell(&[&["interpret", "--module", module()], args].concat()).expect(0);
        assert_eq!(there.out, here.out, "{args:?}");
    }
    let refused = served
        .run(
            "interpret",
            &["--operation", "InterpretReplica", "-f", "workload-odd.yaml"],
        )
        .expect(1);
    assert!(refused.err.contains("/spec/replicas"), "{}", refused.err);
}

#[test]
fn test_files_run_against_a_webhook() {
    let served = serve();
    let files = repository().join("interpreter-wasm/karmada-example/tests");
    let run = served.run("test", &[files.to_str().unwrap()]).expect(0);
    assert!(
        run.out.contains("ok    health.yaml::") && run.out.contains(&served.url),
        "{}",
        run.out
    );
}

#[test]
fn check_asks_a_webhook_what_it_serves() {
    let served = serve();
    let run = served
        .run(
            "check",
            &[
                "--kind",
                "workload.example.io/v1alpha1/Workload",
                "--calls",
                "2",
                "-o",
                "json",
            ],
        )
        .expect(0);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let target = &report[0]["targets"][0];
    assert_eq!(
        target["operations"].as_array().unwrap().len() + target["off"].as_array().unwrap().len(),
        8
    );
    let run = served
        .run("check", &["--kind", "nobody.io/v1/Nothing", "-o", "json"])
        .expect(0);
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report[0]["targets"][0]["off"].as_array().unwrap().len(), 8);
    let run = served.run("check", &["--kind", "nobody.io/v1/Nothing"]).expect(0);
    assert!(
        run.out
            .contains("InterpretHealth      absent: application failover is off"),
        "{}",
        run.out
    );
    served.run("check", &["--kind", "Workload"]).expect(2);
}

#[test]
fn a_certificate_of_another_owner_is_refused_with_the_reason() {
    let served = serve();
    let ask = ["--operation", "InterpretHealth", "-f", "workload.yaml"];
    let other = served.folder.path().join("other");
    let other = SelfSigned {
        ca_dir: other,
        names: vec!["127.0.0.1".into()],
    };
    popcell_https::Certificates::open(Source::SelfSigned(other.clone())).unwrap();
    let other_ca = other.public_file().to_str().unwrap().to_owned();
    let wrong_ca = [
        &["interpret", "--url", &served.url, "--ca-file", other_ca.as_str()],
        &ask[..],
    ]
    .concat();
    let run = popcell(&wrong_ca).expect(4);
    assert!(
        run.err.contains("failed to agree on TLS") && run.err.contains("invalid peer certificate"),
        "{}",
        run.err
    );
    let run = served
        .run(
            "interpret",
            &[&["--server-name", "hook.example.org"], &ask[..]].concat(),
        )
        .expect(4);
    assert!(run.err.contains("hook.example.org"), "{}", run.err);
}

#[test]
fn a_dead_port_and_a_file_that_is_no_ca_are_distinguished() {
    let ask = ["--operation", "InterpretHealth", "-f", "workload.yaml"];
    let served = serve();
    let (url, ca) = (served.url.clone(), served.ca());
    let run = popcell(&[&["interpret", "--url", &url, "--ca-file", "workload.yaml"], &ask[..]].concat()).expect(2);
    assert!(run.err.contains("no CERTIFICATE block"), "{}", run.err);
    let kept = std::fs::read(&ca).unwrap();
    drop(served);
    let folder = scratch();
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, kept).unwrap();
    let run = popcell(
        &[
            &["interpret", "--url", &url, "--ca-file", ca.to_str().unwrap()],
            &ask[..],
        ]
        .concat(),
    )
    .expect(4);
    assert!(run.err.contains("failed to connect"), "{}", run.err);
}
