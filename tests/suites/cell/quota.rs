//! Budgets of a project that two cells share.

use anyhow::{Result, ensure};
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_suites::read::{self, says};
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::Budget;
use popcell_test_support::{Plane, eventually};

use crate::environment::{Environment, P2};
use popcell_suites::tenant::Tenant;

async fn running(tenant: &Tenant, cells: &[Plane]) -> Result<usize> {
    let mut running = 0;
    for cell in cells {
        for one in cell.list(INSTANCE, Some(&tenant.below), "").await? {
            running += usize::from(read::is_ready(&one).is_ok());
        }
    }
    Ok(running)
}

pub(crate) async fn shared(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(3));
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cells = [environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?];
    tenant.deploy("web", &["DFW", "ORD"], 2, |_| {}).await?;
    eventually("three run and one waits", SOON, async || {
        let running = running(&tenant, &cells).await?;
        ensure!(running == 3, "{running} run");
        Ok(())
    })
    .await?;
    // It is told in the project which one waits, and why.
    let waiting = eventually("one of the two cities says that it waits", SOON, async || {
        for city in ["dfw", "ord"] {
            let name = format!("web-us-{city}");
            let namespace = Some(tenant.namespace.as_str());
            let deployment = tenant.project.expect(WORKLOAD_DEPLOYMENT, namespace, &name).await?;
            let instance = tenant.project.get(INSTANCE, namespace, &format!("{name}-1")).await?;
            if let (Ok(()), Some(instance)) = (says(&deployment, "ReplicasReady", "False", "QuotaExceeded"), instance) {
                says(&instance, "Ready", "False", "PendingQuota")?;
                return Ok(city);
            }
        }
        anyhow::bail!("neither does")
    })
    .await?;
    // Another ends: the one that waited runs.
    let other = if waiting == "dfw" { ["DFW"] } else { ["ORD"] };
    tenant.scale("web", &other, 2).await?;
    tenant.ready("web", 2).await?;
    let audit = quota.audit();
    ensure!(audit.most.instances <= 3, "{audit:?}");
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await
}

pub(crate) async fn full(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(2));
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", &["DFW"], 2).await?;
    // Somebody else is waiting for whatever becomes free.
    tenant.deploy("envious", &["ORD"], 1, |_| {}).await?;
    let ord = environment.lab.plane(ORD).await?;
    tenant
        .instance(&ord, "envious-us-ord-0", |one| {
            says(one, "QuotaGranted", "False", "QuotaExceeded")
        })
        .await?;
    let before = tenant.instances(&cell).await?;
    tenant.restart("web").await?;
    tenant.all_are_others(&cell, &before).await?;
    tenant.ready("web", 2).await?;
    let envious = tenant.instance(&ord, "envious-us-ord-0", |_| Ok(())).await?;
    says(&envious, "QuotaGranted", "False", "QuotaExceeded")?;
    for name in ["web", "envious"] {
        tenant.clean(name).await?;
    }
    tenant.claims_are(&[]).await
}
