//! `popcell tree` on every plane.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_test_support::stand_ins::FAIL;
use popcell_test_support::{artifacts, eventually};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

/// From the Workload to what is in one cell, with what stands beside it.
const KINDS: [&str; 9] = [
    "Workload",
    "WorkloadDeployment",
    "WorkloadDeployment",
    "PropagationPolicy",
    "ResourceBinding",
    "Work",
    "WorkloadDeployment",
    "Instance",
    "ResourceClaim",
];

/// `popcell tree` of a Workload. `cells` are those that are named.
pub(crate) fn command(
    environment: &Environment,
    files: &Path,
    tenant: &Tenant,
    workload: &str,
    cells: &[&str],
) -> Result<Command> {
    let milo = environment.gateway.kubeconfig(files, None)?;
    let mut command = artifacts::popcell()?;
    command
        .args(["tree", workload, "--mode=milo", "--project", P1])
        .arg(format!("--namespace={}", tenant.namespace))
        .arg(format!("--project-kubeconfig={}", milo.display()))
        .arg(format!("--kubeconfig={}", environment.lab.kubeconfig("hub")?.display()));
    for cell in cells {
        command.arg(format!("--cell={cell}={}", environment.lab.kubeconfig(cell)?.display()));
    }
    Ok(command)
}

/// The tree as JSON, after the exit code.
fn tree(environment: &Environment, files: &Path, tenant: &Tenant, cells: &[&str]) -> Result<(Option<i32>, Value)> {
    let mut command = command(environment, files, tenant, "web", cells)?;
    let output = command.arg("--output=json").output();
    let output = output.context("failed to start popcell")?;
    let tree = serde_json::from_slice(&output.stdout).with_context(|| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("no tree: {:?} {error}", output.status.code())
    })?;
    Ok((output.status.code(), tree))
}

/// All nodes below and with one, the parent before its children.
fn nodes(node: &Value) -> Vec<&Value> {
    let children = node["children"].as_array().into_iter().flatten();
    [node].into_iter().chain(children.flat_map(nodes)).collect()
}

fn kinds(node: &Value) -> Vec<&str> {
    nodes(node).iter().filter_map(|one| one["kind"].as_str()).collect()
}

pub(crate) async fn followed(environment: &Environment, namespace: &str) -> Result<()> {
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.runs("web", &["DFW", "ORD"], 1).await?;
    // Karmada writes its own objects after ours are fine.
    let reported = eventually("the whole tree is fine", SOON, async || {
        let (code, reported) = tree(environment, files.path(), &tenant, &[DFW, ORD])?;
        ensure!(code == Some(0) && reported["state"] == "fine", "{code:?}: {reported}");
        Ok(reported)
    })
    .await?;
    let cities = reported["tree"]["children"].as_array().context("no children")?;
    ensure!(cities.len() == 2, "{reported}");
    for city in cities {
        ensure!(kinds(city) == KINDS[1..], "{:?}", kinds(city));
    }
    let without_age = nodes(&reported["tree"])
        .into_iter()
        .find(|one| one["created"].is_null());
    ensure!(without_age.is_none(), "{without_age:?}");

    let (code, reported) = tree(environment, files.path(), &tenant, &[DFW])?;
    let unasked = |one: &&Value| one["state"] == "not-looked-at";
    ensure!(code == Some(0), "a cell that is not named is no failure: {reported}");
    ensure!(
        nodes(&reported["tree"]).iter().filter(|one| unasked(one)).count() == 1,
        "{reported}"
    );

    let fails = json!({ "metadata": { "annotations": { FAIL: "image-unavailable" } } });
    tenant.edit("web", &json!({ "template": fails })).await?;
    eventually("what is broken is told with its reason", SOON, async || {
        let (code, reported) = tree(environment, files.path(), &tenant, &[DFW, ORD])?;
        ensure!(code == Some(1) && reported["state"] == "broken", "{code:?}: {reported}");
        for cell in [DFW, ORD] {
            let plane = format!("cell {cell}");
            let broken = nodes(&reported["tree"]).into_iter().find(|one| {
                one["kind"] == "Instance"
                    && one["plane"] == plane.as_str()
                    && one["state"] == "broken"
                    && one["text"]
                        .as_str()
                        .is_some_and(|text| text.contains("ImageUnavailable"))
            });
            ensure!(broken.is_some(), "{cell}: {reported}");
        }
        Ok(())
    })
    .await?;
    tenant.clean("web").await
}
