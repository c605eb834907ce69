//! One policy per city: DFW goes to DFW and nowhere else, and nothing takes the only copy away.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::environment::{DFW, Environment, ORD, SPARE};
use popcell_suites::read;
use popcell_suites::steps::with_city;
use popcell_test_support::kind::{CLUSTER, RESOURCE_BINDING, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, objects};
use serde_json::{Value, json};

use crate::planes::{BINDING, Deployed, NAME, awaited, gone, hub_with_namespace};

/// How long to watch for what must not happen: several rounds of Karmada's controllers and of its eviction queue.
const WATCHED: Duration = Duration::from_secs(8);

/// Fails if the object comes to another city.
async fn is_away(member: &Plane, namespace: &str) -> Result<()> {
    let found = member.get(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    ensure!(found.is_none(), "it is in {}", member.name());
    Ok(())
}

pub(crate) async fn only_to_its_city(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    deployed.hub.apply(&objects::city_policy(namespace, "ORD")).await?;
    let placed = read::placed_on(&deployed.awaited_binding(|_| Ok(())).await?);
    ensure!(placed == [DFW], "placed on {placed:?}");
    let others = [environment.lab.plane(ORD).await?, environment.lab.plane(SPARE).await?];
    always("the object is in no other city", WATCHED, async || {
        for other in &others {
            is_away(other, namespace).await?;
        }
        Ok(())
    })
    .await
}

pub(crate) async fn waits_for_a_cell(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = hub_with_namespace(environment, namespace).await?;
    hub.apply(&objects::city_policy(namespace, "LHR")).await?;
    hub.apply(&objects::workload_deployment(namespace, NAME, "LHR", 1))
        .await?;
    awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
        let scheduled = read::condition(binding, "Scheduled")?;
        ensure!(scheduled["reason"] == "NoClusterFit", "{scheduled}");
        Ok(())
    })
    .await?;
    let spare = environment.lab.plane(SPARE).await?;
    with_city(&hub, SPARE, Some("LHR")).await?;
    awaited(&spare, WORKLOAD_DEPLOYMENT, namespace, NAME, |_| Ok(())).await?;
    hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    gone(&spare, WORKLOAD_DEPLOYMENT, namespace, NAME).await?;
    with_city(&hub, SPARE, None).await
}

pub(crate) async fn not_doubled(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    let before = read::uid(&deployed.in_cell().await?);
    with_city(&deployed.hub, SPARE, Some("DFW")).await?;
    let outcome = nothing_is_doubled(environment, &deployed.hub, namespace).await;
    with_city(&deployed.hub, SPARE, None).await?;
    outcome?;
    deployed.is_kept(&before).await
}

/// The object that is there already, and one that comes while two clusters carry the label.
async fn nothing_is_doubled(environment: &Environment, hub: &Plane, namespace: &str) -> Result<()> {
    let spare = environment.lab.plane(SPARE).await?;
    hub.apply(&objects::workload_deployment(namespace, "late", "DFW", 1))
        .await?;
    let on_one = |binding: &DynamicObject| {
        let clusters = read::placed_on(binding);
        ensure!(clusters.len() == 1, "placed on {clusters:?}");
        Ok(())
    };
    let binding = "late-workloaddeployment";
    awaited(hub, RESOURCE_BINDING, namespace, binding, on_one).await?;
    always(
        "the old object stays where it is, and the new one is on one cluster",
        WATCHED,
        async || {
            is_away(&spare, namespace).await?;
            on_one(&hub.expect(RESOURCE_BINDING, Some(namespace), binding).await?)
        },
    )
    .await?;
    hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), "late").await
}

/// In both orders: the new cell gets the label before the old one loses it, and after.
pub(crate) async fn label_moves(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    let (hub, dfw) = (&deployed.hub, &deployed.cell);
    let spare = &environment.lab.plane(SPARE).await?;
    with_city(hub, SPARE, Some("DFW")).await?;
    with_city(hub, DFW, None).await?;
    awaited(spare, WORKLOAD_DEPLOYMENT, namespace, NAME, |_| Ok(())).await?;
    deployed.gone_from(dfw).await?;

    with_city(hub, SPARE, None).await?;
    with_city(hub, DFW, Some("DFW")).await?;
    deployed.awaited_in_cell(|_| Ok(())).await?;
    deployed.gone_from(spare).await
}

/// Fail-over is switched on in this environment. The control policy, without our toleration, proves that the taint evicts.
pub(crate) async fn no_execute(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    let before = read::uid(&deployed.in_cell().await?);
    let control = Deployed {
        hub: deployed.hub.clone(),
        cell: deployed.cell.clone(),
        namespace: format!("{namespace}-control"),
    };
    let hub = &hub_with_namespace(environment, &control.namespace).await?;
    let mut policy = objects::city_policy(&control.namespace, "DFW");
    policy["spec"]["placement"]
        .as_object_mut()
        .map(|placement| placement.remove("clusterTolerations"));
    hub.apply(&policy).await?;
    hub.apply(&objects::workload_deployment(&control.namespace, NAME, "DFW", 1))
        .await?;
    control.awaited_in_cell(|_| Ok(())).await?;

    taint(hub, json!([{ "key": "popcell.dev/e2e", "effect": "NoExecute" }])).await?;
    let evicted = control.awaited_binding(|binding| {
        let tasks = read::at(binding, "/spec/gracefulEvictionTasks");
        ensure!(tasks[0]["fromCluster"] == DFW, "eviction tasks are {tasks}");
        Ok(())
    });
    let evicted = evicted.await;
    let kept = always("the tolerating object stays", WATCHED, async || {
        let binding = deployed.binding().await?;
        let (placed, tasks) = (
            read::placed_on(&binding),
            read::at(&binding, "/spec/gracefulEvictionTasks"),
        );
        ensure!(placed == [DFW], "placed on {placed:?}");
        ensure!(tasks.is_null(), "an eviction task was added");
        Ok(())
    })
    .await;
    control.delete().await?;
    taint(hub, json!([])).await?;
    evicted?;
    kept?;
    deployed.is_kept(&before).await
}

async fn taint(hub: &Plane, taints: Value) -> Result<()> {
    hub.merge(CLUSTER, None, DFW, &json!({ "spec": { "taints": taints } }))
        .await
        .map(|_| ())
}
