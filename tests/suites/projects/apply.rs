//! `popcell project apply` on a real API server behind a milo's paths: its checks, its defaults, and writes of many at once.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use popcell_suites::steps::{Ran, ran};
use popcell_test_support::probe::sum_of;
use popcell_test_support::{Plane, artifacts, kind};
use serde_json::json;

use crate::environment::{Environment, id};

/// As many as are enough to write the same at once.
const PROJECTS: usize = 50;
const NAME: &str = "compute-manager-project";

async fn apply(milo: &Path, args: &'static [&'static str]) -> Result<Ran> {
    let mut command = artifacts::popcell()?;
    command.args(["project", "apply", "--mode=milo"]).args(args);
    command.args((0..PROJECTS).map(|number| format!("--project={}", id(number))));
    command.arg(format!("--project-kubeconfig={}", milo.display()));
    // The gateway is in this process.
    tokio::task::spawn_blocking(move || ran(&mut command)).await?
}

/// What the server has stored of the kinds that a project gets.
async fn writes(server: &Plane) -> Result<f64> {
    let page = server.metrics().await?;
    let groups = [
        "apiextensions.k8s.io",
        "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io",
    ];
    let verbs = ["POST", "PUT", "PATCH"];
    let each = groups.iter().flat_map(|group| verbs.map(|verb| (group, verb)));
    Ok(each
        .map(|(group, verb)| {
            let labels = [
                format!("group=\"{group}\""),
                format!("verb=\"{verb}\""),
                "dry_run=\"\"".to_owned(),
            ];
            sum_of(&page, "apiserver_request_total", &labels.each_ref().map(String::as_str))
        })
        .sum())
}

/// The projects share one server here, so all of them write the same objects at once: who comes second finds them as they
/// shall be. What the server makes of its defaults is no difference in the next run.
pub(crate) async fn applied(environment: &Environment, _: &str) -> Result<()> {
    let server = &environment.server;
    let dir = tempfile::tempdir().context("failed to make a directory")?;
    let milo = environment.gateway.kubeconfig(dir.path(), None)?;

    let before = writes(server).await?;
    let run = apply(&milo, &["--dry-run"]).await?;
    ensure!(run.code == Some(0), "{run:?}");
    ensure!(writes(server).await? <= before, "a dry run has written");
    ensure!(
        server.get(kind::CLUSTER_ROLE, None, NAME).await?.is_none(),
        "{NAME} is there"
    );

    let run = apply(&milo, &[]).await?;
    ensure!(run.code == Some(0), "{run:?}");
    let role = server.expect(kind::CLUSTER_ROLE, None, NAME).await?;

    let before = writes(server).await?;
    let run = apply(&milo, &[]).await?;
    ensure!(run.code == Some(0), "{run:?}");
    ensure!(
        run.err == format!("{PROJECTS} projects: {PROJECTS} unchanged\n"),
        "{}",
        run.err
    );
    ensure!(writes(server).await? <= before, "a second run has written");

    // A change by hand is put back, a user's own label stays.
    let patch = json!({ "metadata": { "labels": { "jo": "1" } }, "rules": [] });
    server.merge(kind::CLUSTER_ROLE, None, NAME, &patch).await?;
    let run = apply(&milo, &[]).await?;
    ensure!(
        run.code == Some(0) && run.out.contains("changed ClusterRole"),
        "{run:?}"
    );
    let now = server.expect(kind::CLUSTER_ROLE, None, NAME).await?;
    ensure!(now.data["rules"] == role.data["rules"], "{now:?}");
    ensure!(
        now.metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key("jo")),
        "{now:?}"
    );

    // Whose label is gone is of another owner.
    let patch = json!({ "metadata": { "labels": { "app.kubernetes.io/part-of": null } }, "rules": [] });
    server.merge(kind::CLUSTER_ROLE, None, NAME, &patch).await?;
    let run = apply(&milo, &["--skip-crds"]).await?;
    ensure!(run.code == Some(1), "{run:?}");
    ensure!(
        run.err == format!("{PROJECTS} projects: {PROJECTS} refused\n"),
        "{}",
        run.err
    );
    let now = server.expect(kind::CLUSTER_ROLE, None, NAME).await?;
    ensure!(now.data["rules"] != role.data["rules"], "{now:?}");

    for (kind, name) in [
        (kind::CLUSTER_ROLE, NAME),
        (kind::CLUSTER_ROLE_BINDING, NAME),
        (kind::ADMISSION_POLICY_BINDING, "compute-deployment-writers"),
        (kind::ADMISSION_POLICY, "compute-deployment-writers"),
    ] {
        server.delete(kind, None, name).await?;
    }
    Ok(())
}
