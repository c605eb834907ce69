//! `kubectl wait --for=condition=Available` means on every kind and plane what it says, with kubectl itself.

use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_test_support::Plane;
use popcell_test_support::kind::{Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use tempfile::TempDir;
use tokio::process::Command;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-dfw";
/// Longer than anything takes.
const PATIENT: &str = "90s";
/// One look.
const ONCE: &str = "0s";

struct Kubectl<'a> {
    environment: &'a Environment,
    cache: TempDir,
}

impl Kubectl<'_> {
    async fn wait(&self, plane: &Plane, namespace: &str, kind: Kind, name: &str, timeout: &str) -> Result<Output> {
        let cache = |path: &Path| format!("--cache-dir={}", path.display());
        let mut command = Command::new(self.environment.lab.program("kubectl"));
        command
            .arg("wait")
            .arg(format!("{}.{}/{name}", kind.plural, kind.group))
            .args(["--for=condition=Available", "-n", namespace])
            .arg(format!("--timeout={timeout}"))
            .arg(format!("--kubeconfig={}", plane.kubeconfig().display()))
            .arg(cache(self.cache.path()))
            .kill_on_drop(true);
        command.output().await.context("failed to start kubectl")
    }
}

fn met(output: &Output) -> Result<()> {
    let reported = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "kubectl ended with {}: {reported}",
        output.status
    );
    Ok(())
}

fn unmet(output: &Output) -> Result<()> {
    let reported = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success(), "kubectl takes it for available");
    ensure!(
        reported.contains("condition not met"),
        "kubectl says otherwise: {reported}"
    );
    Ok(())
}

pub(crate) async fn available(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let dfw = environment.lab.plane(DFW).await?;
    let cache = tempfile::tempdir().context("failed to make a directory")?;
    let kubectl = Kubectl { environment, cache };
    let (project, hub) = (&tenant.project, &tenant.hub);
    let everywhere = [
        (project, namespace, WORKLOAD, "web"),
        (project, namespace, WORKLOAD_DEPLOYMENT, NAME),
        (hub, tenant.below.as_str(), WORKLOAD_DEPLOYMENT, NAME),
    ];
    tenant.workload("web", &[("us", &["DFW"], 2)]).await?;
    tenant.report(&dfw, NAME, 2, 0).await?;
    tenant.shown(NAME, 0).await?;
    for (plane, namespace, kind, name) in everywhere {
        let output = kubectl.wait(plane, namespace, kind, name, ONCE).await?;
        unmet(&output).with_context(|| format!("{} in {}", kind.kind, plane.name()))?;
    }
    let waits = everywhere.map(|(plane, namespace, kind, name)| kubectl.wait(plane, namespace, kind, name, PATIENT));
    let (waited, reported) = tokio::join!(futures::future::join_all(waits), tenant.report(&dfw, NAME, 2, 1));
    reported?;
    for output in waited {
        met(&output?)?;
    }

    // A change that the city has not seen: what is available is the old. A Workload has done its part when it is passed on,
    // as a Deployment of apps/v1 when its ReplicaSet is.
    tenant.place("web", &[("us", &["DFW"], 3)]).await?;
    let three = read::replicas(3);
    tenant.in_cell(&dfw, NAME, three).await?;
    for (plane, namespace, kind, name) in [everywhere[1], everywhere[2]] {
        let output = kubectl.wait(plane, namespace, kind, name, ONCE).await?;
        unmet(&output).with_context(|| format!("{} in {}", kind.kind, plane.name()))?;
    }
    tenant.report(&dfw, NAME, 3, 3).await?;
    for (plane, namespace, kind, name) in everywhere {
        met(&kubectl.wait(plane, namespace, kind, name, PATIENT).await?)?;
    }
    Ok(())
}
