//! Karmada's own client (tests/lab/cmd/bench), one process for each turn.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use popcell_protocol::Operation;
use popcell_test_support::{artifacts, workspace};
use serde::{Deserialize, Serialize};

use crate::peers::{Place, Target};

/// What the client measured: one operation of one target with one number of callers, in one round. CPU times are user
/// and system time of whole processes, per call.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measurement {
    pub(crate) callers: usize,
    pub(crate) calls: usize,
    pub(crate) calls_per_second: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    pub(crate) client_cpu_micros: f64,
    /// The part of the client's that copies the object before each call that changes it, as Karmada does.
    pub(crate) prepare_cpu_micros: f64,
    /// Nothing where there is no server.
    pub(crate) server_cpu_micros: Option<f64>,
    pub(crate) server_rss_kib_after: Option<f64>,
}

/// Size of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) operation: Operation,
    pub(crate) callers: &'a [usize],
    pub(crate) count: usize,
    pub(crate) warm_up: usize,
}

/// Folder of the objects that everybody gets.
pub(crate) fn objects() -> PathBuf {
    workspace::root().join("tests/benches/objects")
}

/// Runs the client once: a measurement for each number of callers.
pub(crate) fn run(target: &Target, turn: &Turn<'_>) -> Result<Vec<Measurement>> {
    let callers: Vec<_> = turn.callers.iter().map(ToString::to_string).collect();
    let file = |name: &str| objects().join(name).display().to_string();
    let mut command = Command::new(artifacts::lab_programs()?.join("bench"));
    command
        .args(["--operations", turn.operation.as_str(), "--callers", &callers.join(",")])
        .args([
            "--count",
            &turn.count.to_string(),
            "--warm-up",
            &turn.warm_up.to_string(),
        ])
        .args(["--object", &file("object.yaml"), "--observed", &file("observed.yaml")])
        .args(["--items", &file("items.yaml")]);
    match &target.place {
        Place::Server { url, ca_file, pid } => command
            .args(["--url", url, "--server-pid", &pid.to_string(), "--ca-file"])
            .arg(ca_file),
        Place::Scripts(file) => command.arg("--customization").arg(file),
    };
    let output = command.output().context("failed to start the client")?;
    let (peer, operation) = (target.peer.name(), turn.operation.as_str());
    ensure!(
        output.status.success(),
        "the client failed to measure {operation} of {peer}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let lines = String::from_utf8_lossy(&output.stdout);
    let measurements: Vec<Measurement> = lines
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("the client wrote {line:?}")))
        .collect::<Result<_>>()?;
    ensure!(
        measurements.len() == turn.callers.len(),
        "the client measured {operation} of {peer} {} times, not {}",
        measurements.len(),
        turn.callers.len()
    );
    Ok(measurements)
}
