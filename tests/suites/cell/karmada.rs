//! Karmada between hub and cells: a cell is cut off.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::{ORD, SOON};
use popcell_suites::read;
use popcell_suites::steps::{gone, names_in};
use popcell_test_support::kind::{CLUSTER, INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Fault, always, eventually};
use serde_json::{Value, json};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

pub(crate) async fn deleted_meanwhile(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let ord = environment.lab.plane(ORD).await?;
    tenant.runs("web", &["ORD"], 2).await?;
    let before = tenant.instances(&ord).await?;
    let agent = format!("karmada-agent-{ORD}");
    let away = environment.to_hub[1].inject(Fault::HungUp, |_| true);
    environment.to_hub[1].cut();
    environment.lab.stop(&agent).await?;
    let meanwhile = async {
        tenant.clean("web").await?;
        tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-ord").await?;
        always("it runs on, and holds what it uses", WATCHED, async || {
            ensure!(tenant.instances(&ord).await? == before);
            for (name, _) in &before {
                let one = ord.expect(INSTANCE, Some(&tenant.below), name).await?;
                read::is_ready(&one)?;
            }
            let claims = names_in(&tenant.project, RESOURCE_CLAIM, &tenant.namespace).await?;
            ensure!(claims.len() == 2, "{claims:?}");
            Ok(())
        })
        .await?;
        // Karmada finds out by itself, after a while.
        let cluster = tenant.hub.expect(CLUSTER, None, ORD).await?;
        tenant.hub.set_status(CLUSTER, None, ORD, &not_ready(&cluster)).await?;
        eventually("the cell's silence has an age", SOON, async || {
            let age = silent(environment).await?;
            ensure!(age.is_some_and(|age| age > 1.0), "{age:?}");
            Ok(())
        })
        .await
    };
    let meanwhile = meanwhile.await;
    environment.lab.start_process(&agent).await?;
    away.lift();
    meanwhile?;
    gone(&ord, WORKLOAD_DEPLOYMENT, &tenant.below, "web-us-ord").await?;
    for name in ["web-us-ord-0", "web-us-ord-1"] {
        gone(&ord, INSTANCE, &tenant.below, name).await?;
        tenant.gone_from_hub(INSTANCE, name).await?;
        tenant.gone_from_project(INSTANCE, name).await?;
    }
    tenant.claims_are(&[]).await?;
    eventually("the cell is not silent any more", SOON, async || {
        let age = silent(environment).await?;
        ensure!(age.is_none(), "{age:?}");
        Ok(())
    })
    .await
}

/// The age of what the cell last said, while it is silent.
async fn silent(environment: &Environment) -> Result<Option<f64>> {
    let page = environment.management.lock().await.metrics().await?;
    let series = format!("popcell_status_age_seconds{{source_cluster=\"{ORD}\"}} ");
    let age = page.lines().find_map(|line| line.strip_prefix(&series));
    Ok(age.map(str::parse).transpose()?)
}

fn not_ready(cluster: &DynamicObject) -> Value {
    let now = cluster.data["status"]["conditions"][0]["lastTransitionTime"].clone();
    let mut status = cluster.data["status"].clone();
    status["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "Test", "message": "", "lastTransitionTime": now,
    }]);
    status
}
