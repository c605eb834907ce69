//! Cities that come and go by bindings in the project.

use anyhow::{Result, ensure};
use popcell_api::conditions;
use popcell_api::conditions::reasons::NO_MATCHING_LOCATION;
use popcell_suites::read;
use popcell_test_support::kind::{LOCATION_BINDING, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

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
