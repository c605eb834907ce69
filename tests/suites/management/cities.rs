//! Cities that come and go: by bindings in the project, and by cells in the hub.

use anyhow::{Context, Result, ensure};
use popcell_api::conditions;
use popcell_api::conditions::reasons::{NO_MATCHING_LOCATION, STABLE_INSTANCE_FOUND};
use popcell_suites::environment::{ORD, SOON};
use popcell_suites::read;
use popcell_suites::steps::with_city;
use popcell_test_support::kind::{LOCATION_BINDING, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::{Tenant, available};

/// A city of this test's own: bindings are the whole project's.
const CITY: &str = "K2X";

pub(crate) async fn bindings(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let both: [&str; 2] = ["LHR", CITY];
    tenant.workload("web", &[("us", &both, 2)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", |_| Ok(())).await?;
    tenant
        .in_project(WORKLOAD, "web", |workload| {
            let condition = read::at(workload, "/status/placements/0/conditions/0");
            ensure!(
                condition["reason"] == NO_MATCHING_LOCATION
                    && condition["message"] == conditions::messages::no_matching_location(CITY),
                "{condition}"
            );
            Ok(())
        })
        .await?;
    let names = tenant.names_in_project(WORKLOAD_DEPLOYMENT).await?;
    ensure!(names == ["web-us-lhr"], "{names:?}");

    tenant.project.apply(&objects::location_binding(CITY)).await?;
    let carried = tenant.in_hub(WORKLOAD_DEPLOYMENT, "web-us-k2x", |_| Ok(())).await?;

    let binding = CITY.to_lowercase();
    tenant.project.delete(LOCATION_BINDING, None, &binding).await?;
    tenant.place("web", &[("us", &both, 5)]).await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", read::replicas(5))
        .await?;
    always("it stays as it is", WATCHED, async || {
        let now = tenant.now_in_hub("web-us-k2x").await?;
        ensure!(read::uid(&now) == read::uid(&carried), "it was recreated");
        read::replicas(2)(&now)
    })
    .await?;
    tenant.place("web", &[("us", &both, 1)]).await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "web-us-k2x", read::replicas(1))
        .await?;
    tenant.place("web", &[("us", &["LHR"], 1)]).await?;
    tenant.gone_from_project(WORKLOAD_DEPLOYMENT, "web-us-k2x").await?;
    tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-k2x").await
}

/// No other test has work in this city.
pub(crate) async fn loses_its_cell(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["ORD"], 2)]).await?;
    let ord = environment.lab.plane(ORD).await?;
    tenant.report(&ord, "web-us-ord", 2, 2).await?;
    tenant.shown("web-us-ord", 2).await?;

    with_city(&tenant.hub, ORD, None).await?;
    let reported = reported_as_not_served(&tenant).await;
    with_city(&tenant.hub, ORD, Some("ORD")).await?;
    reported?;
    tenant.report(&ord, "web-us-ord", 2, 1).await?;
    let back = tenant.shown("web-us-ord", 1).await?;
    available(&back, "True", STABLE_INSTANCE_FOUND)
}

/// A binding without a cluster is reported after a minute; the rest is room for Karmada to empty the binding and for a
/// busy machine.
async fn reported_as_not_served(tenant: &Tenant) -> Result<()> {
    eventually("the city is without a cell", SOON, async || {
        let mine = tenant
            .project
            .expect(WORKLOAD_DEPLOYMENT, Some(&tenant.namespace), "web-us-ord")
            .await?;
        available(&mine, "False", NO_MATCHING_LOCATION)?;
        for count in ["replicas", "currentReplicas", "updatedReplicas", "readyReplicas"] {
            read::expect_at(&mine, &format!("/status/{count}"), &json!(0))?;
        }
        let workload = tenant.project.expect(WORKLOAD, Some(&tenant.namespace), "web").await?;
        read::expect_at(&workload, "/status/readyReplicas", &json!(0))?;
        let condition = read::condition(&workload, conditions::AVAILABLE)?;
        let message = condition["message"].as_str().context("no message")?;
        ensure!(condition["status"] == "False" && message.contains("ORD"), "{condition}");
        Ok(())
    })
    .await
}
