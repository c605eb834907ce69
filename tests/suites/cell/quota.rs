//! A budget of a project that two cells share.

use anyhow::Result;
use popcell_suites::environment::{DFW, ORD};
use popcell_suites::read::says;
use popcell_test_support::stand_ins::Budget;

use crate::environment::{Environment, P2};
use popcell_suites::tenant::Tenant;

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
