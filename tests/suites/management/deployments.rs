//! Workloads of two projects.

use anyhow::{Result, ensure};
use popcell_suites::environment::DFW;
use popcell_suites::read;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};

use crate::environment::{Environment, P1, P2};
use popcell_suites::tenant::Tenant;

pub(crate) async fn apart(environment: &Environment, namespace: &str) -> Result<()> {
    let tenants = [
        Tenant::new(&environment.lab, P1, namespace).await?,
        Tenant::new(&environment.lab, P2, namespace).await?,
    ];
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        tenant.workload("web", &[("us", &["DFW"], replicas)]).await?;
    }
    ensure!(tenants[0].below != tenants[1].below);
    let dfw = environment.lab.plane(DFW).await?;
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        let mine = read::replicas(replicas);
        tenant.in_cell(&dfw, "web-us-dfw", mine).await?;
        tenant.report(&dfw, "web-us-dfw", replicas, replicas).await?;
    }
    for (tenant, replicas) in tenants.iter().zip([1, 2]) {
        tenant.shown("web-us-dfw", replicas).await?;
    }
    tenants[0].delete(WORKLOAD, "web").await?;
    tenants[0].gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw").await?;
    tenants[1].now_in_hub("web-us-dfw").await.map(|_| ())
}
