//! A discovery server that is set back: it does not know a project that lives.

use anyhow::{Result, ensure};
use popcell_api::{annotations, labels, names};
use popcell_suites::definitions::ready_project;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_suites::steps::gone;
use popcell_test_support::kind::{CONFIG_MAP, NAMESPACE, PROJECT, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, GRACE, INFRA};
use crate::fleet::Fleet;

/// Nothing serves these: one that is missing is no more than half of all.
const SPARE: [&str; 2] = ["spare-1", "spare-2"];
/// Newer than the backup.
const LATE: &str = "late";
const WEB: &str = "web";
const WRITES: u32 = 1000;

pub(crate) async fn set_back(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs(WEB, 1).await?;
    let infra = environment.lab.plane(INFRA).await?;
    for id in SPARE {
        ready_project(&infra, id).await?;
    }
    let snapshot = environment.lab.snapshot(INFRA, "older").await?;
    goes_on(&infra).await?;
    ready_project(&infra, LATE).await?;
    engaged(environment, 4.0).await?;
    let uid = read::uid(&infra.expect(PROJECT, None, LATE).await?);
    let below = objects::hub_namespace_name(&uid);
    let mut on_hub = objects::namespace(&below);
    on_hub["metadata"]["annotations"] = json!({ annotations::UPSTREAM_PROJECT_UID: uid });
    on_hub["metadata"]["labels"] = json!({
        labels::MANAGED_BY: labels::MANAGED_BY_POPCELL,
        labels::UPSTREAM_CLUSTER_NAME: format!("{}{LATE}", names::PROJECT_LABEL_PREFIX),
        labels::UPSTREAM_NAMESPACE: "default",
    });
    fleet.tenant.hub.apply(&on_hub).await?;
    // A city that no cell has.
    let deployment = objects::workload_deployment(&below, WEB, "NOWHERE", 1);
    fleet.tenant.hub.apply(&deployment).await?;
    let before = fleet.alive().await?;

    environment.restore(INFRA, &snapshot).await?;
    environment.noticed("discovery", [true, false]).await?;
    always("the project that it lacks keeps what it has", 3 * GRACE, async || {
        let found = fleet.tenant.hub.expect(NAMESPACE, None, &below).await?;
        let noted = found.metadata.annotations.unwrap_or_default();
        ensure!(!noted.contains_key(annotations::PROJECT_GONE_SINCE), "{noted:?}");
        fleet.tenant.hub.expect(WORKLOAD_DEPLOYMENT, Some(&below), WEB).await?;
        fleet.alive().await?.holds(&before)
    })
    .await?;
    engaged(environment, 4.0).await?;
    environment.release_of("discovery").await?;
    engaged(environment, 3.0).await?;
    gone(&fleet.tenant.hub, WORKLOAD_DEPLOYMENT, &below, WEB).await?;
    fleet.stays("what it knows goes on", &before).await
}

/// The server writes what has nothing to do with projects, as it does all the time: more than it writes when it starts again,
/// so that its versions do not overtake what is known before they are looked at.
async fn goes_on(infra: &Plane) -> Result<()> {
    const NAME: &str = "goes-on";
    let home = Some("default");
    let one = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": NAME, "namespace": "default" } });
    infra.create(&one, false).await?;
    for number in 0..WRITES {
        let patch = json!({ "data": { "number": number.to_string() } });
        infra.merge(CONFIG_MAP, home, NAME, &patch).await?;
    }
    Ok(())
}

async fn engaged(environment: &Environment, expected: f64) -> Result<()> {
    eventually("so many projects are engaged", SOON, async || {
        let engaged = environment.management.metric("popcell_projects_engaged", &[]).await?;
        ensure!((engaged - expected).abs() < 0.5, "{engaged}, not {expected}");
        Ok(())
    })
    .await
}
