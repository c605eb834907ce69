//! How many Instances a namespace on the hub may have, whoever makes them.

use anyhow::{Context, Result};
use popcell_api::annotations;
use popcell_api::names::HUB_QUOTA;
use popcell_core::hub_quota::COUNTED;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::refused;
use popcell_test_support::kind::{CLUSTER, INSTANCE, RESOURCE_QUOTA, WORKLOAD_DEPLOYMENT};
use popcell_test_support::lab::HUB;
use popcell_test_support::{Controller, Plane, eventually, objects, users};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-dfw";
const FLAG: &str = "--hub-instances-per-namespace";
const LIMIT: u32 = 3;

/// What somebody can make on the hub who holds the identity of a cell.
pub(crate) async fn stolen(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 1)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await?;
    users::cells_on_hub(&tenant.hub, &[DFW]).await?;
    let thief = Plane::connect(HUB, &users::of_cell(&environment.lab, DFW).await?).await?;
    environment
        .without_controller(async || {
            let mut limiting = Controller::start(environment.spec().flag(format!("{FLAG}={LIMIT}"))).await?;
            let outcome = holds(&tenant, &thief).await;
            outcome.with_context(|| limiting.last_words())?;
            limiting.end()?;

            let mut off = Controller::start(environment.spec().flag(format!("{FLAG}=0"))).await?;
            let outcome = tenant.gone_from_hub(RESOURCE_QUOTA, HUB_QUOTA).await;
            outcome.with_context(|| off.last_words())?;
            off.end()
        })
        .await?;
    let limited = |one: &_| read::expect_at(one, "/spec/hard", &json!({ COUNTED: "20k" }));
    tenant.in_hub(RESOURCE_QUOTA, HUB_QUOTA, limited).await.map(|_| ())
}

async fn holds(tenant: &Tenant, thief: &Plane) -> Result<()> {
    let here = Some(tenant.below.as_str());
    let counted = |used: u32| {
        let status = json!({ "hard": { COUNTED: LIMIT.to_string() }, "used": { COUNTED: used.to_string() } });
        move |one: &_| read::expect_at(one, "/status", &status)
    };
    tenant.in_hub(RESOURCE_QUOTA, HUB_QUOTA, counted(0)).await?;
    for ordinal in 0..LIMIT {
        let copy = copy(tenant, ordinal).await?;
        eventually("a copy may be made", SOON, async || thief.create(&copy, false).await).await?;
    }
    let more = copy(tenant, LIMIT).await?;
    let quota = format!("exceeded quota: {HUB_QUOTA}");
    refused(
        thief.create(&more, false).await,
        &[&quota, COUNTED],
        "one more than the quota",
    )?;
    let edit = json!({ "spec": { "hard": { COUNTED: "1000" } } });
    let edited = thief.merge(RESOURCE_QUOTA, here, HUB_QUOTA, &edit).await;
    refused(edited, &["forbidden: User \"", " cannot "], "to raise the quota")?;
    let deleted = thief.delete(RESOURCE_QUOTA, here, HUB_QUOTA).await;
    refused(deleted, &["forbidden: User \"", " cannot "], "to delete the quota")?;
    // What is deleted leaves its place to others.
    thief.delete(INSTANCE, here, &format!("{NAME}-0")).await?;
    eventually("there is room again", SOON, async || thief.create(&more, false).await)
        .await
        .map(|_| ())
}

/// A copy as the cell makes it.
async fn copy(tenant: &Tenant, ordinal: u32) -> Result<Value> {
    let cluster = tenant.hub.expect(CLUSTER, None, DFW).await?;
    let uid = cluster.data["spec"]["id"].as_str().context("no spec.id")?;
    let mut copy = objects::instance_copy(&tenant.below, NAME, ordinal, DFW);
    objects::annotate(&mut copy, annotations::SOURCE_UID, uid);
    Ok(copy)
}
