//! The program with `--dry-run`, which only logs what it would do, and with `--reclaim-orphans`.

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::{DFW, SOON};
use popcell_test_support::kind::{INSTANCE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Asked, Controller, always, eventually, objects};
use serde_json::{Value, json};

use crate::environment::{Environment, P2, WATCHED};
use popcell_suites::tenant::Tenant;

pub(crate) async fn dry_run(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    for name in ["changed", "gone"] {
        tenant.workload(name, &[("us", &["DFW"], 1)]).await?;
        let name = format!("{name}-us-dfw");
        tenant.in_hub(WORKLOAD_DEPLOYMENT, &name, |_| Ok(())).await?;
    }
    environment
        .without_controller(async || {
            tenant.workload("new", &[("us", &["DFW"], 1)]).await?;
            tenant.place("changed", &[("us", &["DFW"], 2)]).await?;
            tenant.delete(WORKLOAD, "gone").await?;
            let copy = objects::instance_copy(&tenant.below, "changed-us-dfw", 0, DFW);
            tenant.hub.create(&copy, false).await?;
            let mut controller = Controller::start(environment.spec().flag("--dry-run")).await?;
            let outcome = only_says(environment, &tenant, &controller).await;
            outcome.with_context(|| controller.last_words())?;
            controller.stop().map(|_| ())
        })
        .await?;
    // What it said is done by the one that may.
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "new-us-dfw", |_| Ok(())).await?;
    tenant.in_project(INSTANCE, "changed-us-dfw-0", |_| Ok(())).await?;
    tenant.gone_from_project(WORKLOAD, "gone").await
}

async fn only_says(environment: &Environment, tenant: &Tenant, controller: &Controller) -> Result<()> {
    let writes = || environment.to_hub.count(Asked::writes) + environment.to_milo.count(Asked::writes);
    let before = writes();
    let expected = [
        format!("patch Workload {}/new", tenant.namespace),
        format!("patch WorkloadDeployment {}/changed-us-dfw", tenant.namespace),
        format!("delete WorkloadDeployment {}/gone-us-dfw", tenant.namespace),
        format!("create Instance {}/changed-us-dfw-0", tenant.namespace),
    ];
    eventually("the plans are logged", SOON, async || {
        let log = controller.log();
        let said: Vec<&str> = log.lines().filter(|line| line.contains("dry run")).collect();
        for plan in &expected {
            ensure!(said.iter().any(|line| line.contains(plan)), "no {plan} in {said:#?}");
        }
        Ok(())
    })
    .await?;
    always("nothing is written", WATCHED, async || {
        ensure!(writes() == before, "{} writes", writes() - before);
        Ok(())
    })
    .await?;
    let sent = controller.metric("popcell_writes_total", &[]).await?;
    let left_out = controller.metric("popcell_dry_run_writes_total", &[]).await?;
    ensure!(sent.abs() < 0.5, "it counts {sent} writes");
    ensure!(left_out > 3.5, "it counts {left_out} writes that it left out");
    Ok(())
}

pub(crate) async fn reclaiming(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    for name in ["lost", "kept"] {
        tenant.workload(name, &[("us", &["DFW"], 1)]).await?;
        let name = format!("{name}-us-dfw");
        tenant.in_hub(WORKLOAD_DEPLOYMENT, &name, |_| Ok(())).await?;
    }
    environment
        .without_controller(async || {
            // Somebody forces a deletion while nobody looks.
            for (kind, name) in [(WORKLOAD, "lost"), (WORKLOAD_DEPLOYMENT, "lost-us-dfw")] {
                let freed = json!({ "metadata": { "finalizers": Value::Null } });
                tenant.delete(kind, name).await?;
                tenant
                    .project
                    .merge(kind, Some(&tenant.namespace), name, &freed)
                    .await?;
                tenant.gone_from_project(kind, name).await?;
            }
            let mut reclaiming = Controller::start(environment.spec().flag("--reclaim-orphans")).await?;
            let outcome = tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "lost-us-dfw").await;
            outcome.with_context(|| reclaiming.last_words())?;
            let kept = tenant.now_in_hub("kept-us-dfw").await?;
            ensure!(kept.metadata.deletion_timestamp.is_none(), "it is no orphan");
            reclaiming.stop().map(|_| ())
        })
        .await
}
