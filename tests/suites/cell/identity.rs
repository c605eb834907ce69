//! A controller that runs in another cluster than the one whose name and credentials it was given. A cell is its Karmada
//! Cluster's name and the uid of its own kube-system; where these two disagree nothing is written outside the cell.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::DFW;
use popcell_suites::read::{self, says};
use popcell_suites::steps::with_city;
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};
use serde_json::json;

use crate::environment::{Environment, P1, WATCHED};
use crate::spare_cell::{CITY, Spare};
use popcell_suites::tenant::Tenant;

const OURS: [&str; 2] = ["web-us-dfw-0", "web-us-dfw-1"];
/// What is in the log while nothing is written.
const SILENT: &str = "nothing is written to other planes: Cluster \"dfw\" on the hub is another cell";

/// What the real cell has in other planes, to the last write.
async fn real(tenant: &Tenant) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for name in OURS {
        let copy = tenant.hub.expect(INSTANCE, Some(&tenant.below), name).await?;
        let claim = format!("instance-{name}");
        let project = &tenant.project;
        let claim = project.expect(RESOURCE_CLAIM, Some(&tenant.namespace), &claim).await?;
        for one in [copy, claim] {
            all.push(format!("{} at {:?}", read::uid(&one), one.metadata.resource_version));
        }
    }
    Ok(all)
}

fn is_reported(one: &DynamicObject) -> Result<()> {
    says(one, "QuotaGranted", "False", "QuotaMisconfigured")?;
    let message = read::condition(one, "QuotaGranted")?["message"].to_string();
    ensure!(
        message.contains("on the hub is another cell") && message.contains("set discovery.clusterName"),
        "{message}"
    );
    Ok(())
}

pub(crate) async fn mistaken(environment: &Environment, namespace: &str) -> Result<()> {
    let spares = environment.spares.lock().await;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.project.apply(&objects::location_binding(CITY)).await?;
    tenant.runs("web", &["DFW"], 2).await?;
    let [_, cluster] = *spares;
    with_city(&tenant.hub, cluster, Some(CITY)).await?;
    let outcome = other_cell(environment, &tenant, cluster).await;
    with_city(&tenant.hub, cluster, None).await?;
    outcome
}

async fn other_cell(environment: &Environment, tenant: &Tenant, cluster: &'static str) -> Result<()> {
    // All that it was given is the real cell's, so that no right and no policy holds it.
    let spare = Spare::start(environment, cluster, DFW).await?;
    let reported = writes_nothing(tenant, &spare).await;
    reported.with_context(|| spare.last_words())?;
    spare.end()?;
    // Under its own name it is what it says.
    let spare = Spare::start(environment, cluster, cluster).await?;
    let runs = async {
        tenant.ready("far", 1).await?;
        tenant.in_project(INSTANCE, "far-us-lhr-0", read::is_ready).await?;
        for name in ["far", "web"] {
            tenant.clean(name).await?;
        }
        tenant.claims_are(&[]).await
    };
    runs.await.with_context(|| spare.last_words())?;
    spare.end()
}

async fn writes_nothing(tenant: &Tenant, spare: &Spare) -> Result<()> {
    tenant.deploy("far", &[CITY], 1, |_| {}).await?;
    tenant.instance(&spare.plane, "far-us-lhr-0", is_reported).await?;
    // The project shows it: Karmada carries the status of a WorkloadDeployment.
    tenant
        .in_project(WORKLOAD_DEPLOYMENT, "far-us-lhr", |one| {
            says(one, "Available", "False", "PendingQuota")?;
            let message = read::condition(one, "Available")?["message"].to_string();
            ensure!(message.contains("on the hub is another cell"), "{message}");
            Ok(())
        })
        .await?;
    // One that is named as an Instance of the real cell is taken for it by nobody.
    let real_cell = OURS[0];
    let template = spare
        .plane
        .expect(INSTANCE, Some(&tenant.below), "far-us-lhr-0")
        .await?;
    let twin = json!({
        "apiVersion": INSTANCE.api_version(),
        "kind": INSTANCE.kind,
        "metadata": { "namespace": tenant.below, "name": real_cell },
        "spec": read::at(&template, "/spec"),
    });
    spare.plane.create(&twin, false).await?;
    tenant
        .instance(&spare.plane, real_cell, |one| {
            says(one, "QuotaGranted", "False", "QuotaMisconfigured")
        })
        .await?;
    let before = real(tenant).await?;
    always("nothing of it is anywhere else", WATCHED, async || {
        let copies = tenant.names_in_hub(INSTANCE).await?;
        ensure!(copies == OURS, "{copies:?}");
        let claims = tenant.names_in_project(RESOURCE_CLAIM).await?;
        ensure!(claims == OURS.map(|name| format!("instance-{name}")), "{claims:?}");
        let shown = tenant.project.get(INSTANCE, Some(&tenant.namespace), "far-us-lhr-0");
        ensure!(shown.await?.is_none(), "the project shows it");
        let now = real(tenant).await?;
        ensure!(now == before, "{now:?}, not {before:?}");
        Ok(())
    })
    .await?;
    spare.plane.delete(INSTANCE, Some(&tenant.below), real_cell).await?;
    ensure!(spare.writes() == 0, "it has asked for {} changes", spare.writes());
    ensure!(spare.tells(SILENT) >= 1, "it is not in its log");
    // It runs what it has, as while the hub is unreachable.
    let (code, body) = spare.controller.health("/readyz").await?;
    ensure!(code == 200, "/readyz answers {code}: {body}");
    tenant.ready("web", 2).await.map(|_| ())
}
