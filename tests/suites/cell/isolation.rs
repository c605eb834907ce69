//! Cells whose controllers are killed, and cells in which nothing happens.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_suites::environment::{DFW, SOON};
use popcell_test_support::probe::requests_by_kind;
use popcell_test_support::{Plane, eventually};

use crate::environment::{CELLS, Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];

pub(crate) async fn killed(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", CITY, 3).await?;
    let before = tenant.instances(&cell).await?;
    tenant.restart("web").await?;
    let mut controller = environment.cells[0].lock().await;
    for replaced in 1..=3 {
        eventually("the roll has come so far", SOON, async || {
            let now = tenant.instances(&cell).await?;
            let kept = now.iter().filter(|one| before.contains(one)).count();
            ensure!(kept <= 3 - replaced, "{kept} are as before");
            Ok(())
        })
        .await?;
        controller.kill()?;
        controller.start_again().await?;
    }
    drop(controller);
    tenant.ready("web", 3).await?;
    tenant
        .claims_are(&["web-us-dfw-0", "web-us-dfw-1", "web-us-dfw-2"])
        .await
}

/// Requests that change something, of the kinds that the cell writes and no other client.
async fn writes(plane: &Plane, resources: &[&str]) -> Result<BTreeMap<String, f64>> {
    let mut found = requests_by_kind(&plane.metrics().await?);
    found.retain(|request, _| {
        let (verb, resource) = request.split_once(' ').unwrap_or_default();
        ["POST", "PUT", "PATCH", "DELETE", "APPLY"].contains(&verb) && resources.contains(&resource)
    });
    Ok(found)
}

pub(crate) async fn idle(environment: &Environment, namespace: &str) -> Result<()> {
    const CELL: [&str; 5] = [
        "workloaddeployments",
        "instances",
        "networkbindings",
        "subnetclaims",
        "configmaps",
    ];
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.runs("web", &["DFW", "ORD"], 2).await?;
    let count = async || -> Result<Vec<BTreeMap<String, f64>>> {
        let mut counts = vec![
            writes(&tenant.hub, &["instances"]).await?,
            writes(&tenant.project, &["resourceclaims", "instances"]).await?,
        ];
        for (name, _) in CELLS {
            counts.push(writes(&environment.lab.plane(name).await?, &CELL).await?);
        }
        Ok(counts)
    };
    // Until the last words of what was made before have come everywhere.
    let mut before = count().await?;
    eventually("nothing was written for some seconds", SOON, async || {
        tokio::time::sleep(WATCHED).await;
        let now = count().await?;
        let same = now == before;
        before = now;
        ensure!(same, "{before:?}");
        Ok(())
    })
    .await?;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let after = count().await?;
    ensure!(after == before, "written: {before:?} and then {after:?}");
    Ok(())
}
