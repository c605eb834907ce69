//! Parts of the environment go away and come back.

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use kube::ResourceExt;
use kube::api::DynamicObject;
use popcell_suites::environment::{DFW, Environment, ORD, SOON};
use popcell_suites::read;
use popcell_suites::steps::uids_in;
use popcell_test_support::kind::{EVENT, RESOURCE_BINDING, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually, objects};
use serde_json::json;

use crate::planes::{Deployed, awaited, hub_with_namespace};

pub(crate) async fn webhook_outage(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 2).await?;
    let hub = &deployed.hub;
    deployed.report(2, 1).await?;
    deployed.mirrored(1).await?;
    let before = read::uid(&deployed.in_cell().await?);

    environment.webhook.lock().await.stop()?;
    deployed.report(2, 2).await?;
    hub.apply(&objects::workload_deployment(namespace, "late", "DFW", 1))
        .await?;
    eventually("Karmada says that it cannot read the new object", SOON, async || {
        let events = hub.list(EVENT, Some(namespace), "").await?;
        let of_late = |event: &DynamicObject| {
            read::at(event, "/involvedObject/name") == "late" && read::at(event, "/reason") == "GetReplicasFailed"
        };
        ensure!(events.iter().any(of_late), "{} other events", events.len());
        Ok(())
    })
    .await?;
    deployed.is_kept(&before).await?;

    environment.webhook.lock().await.start_again().await?;
    awaited(&deployed.cell, WORKLOAD_DEPLOYMENT, namespace, "late", |_| Ok(())).await?;
    deployed.mirrored(2).await?;
    deployed.is_kept(&before).await
}

async fn restart_karmada(environment: &Environment) -> Result<()> {
    for process in [
        "karmada-controller-manager",
        "karmada-scheduler",
        "karmada-webhook",
        "karmada-agent-ord",
    ] {
        environment.lab.restart(process).await?;
    }
    Ok(())
}

/// In each of two cells.
const STORM: usize = 100;
const CITIES: [(&str, &str); 2] = [("DFW", DFW), ("ORD", ORD)];
/// What the webhook's memory may grow by in a storm: its pool of instances is filled once.
const GROWTH: f64 = 64.0 * 1024.0 * 1024.0;

/// Karmada does not repeat a failed InterpretHealth: a call that is turned away would leave Unknown until the next event.
/// Cells keep their objects, and what is reported afterwards arrives, from a Push and from a Pull member.
pub(crate) async fn restart_storm(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = hub_with_namespace(environment, namespace).await?;
    for (city, member) in CITIES {
        hub.apply(&objects::city_policy(namespace, city)).await?;
        try_join_all((0..STORM).map(async |number| {
            hub.apply(&objects::workload_deployment(namespace, &name(member, number), city, 1))
                .await
        }))
        .await?;
    }
    let mut before = Vec::new();
    for (_, member) in CITIES {
        let cell = environment.lab.plane(member).await?;
        eventually("every object is in its cell", SOON * 2, async || {
            let there = cell.list(WORKLOAD_DEPLOYMENT, Some(namespace), "").await?.len();
            ensure!(there == STORM, "{there} of {STORM} in {member}");
            Ok(())
        })
        .await?;
        try_join_all((0..STORM).map(async |number| ready(&cell, namespace, &name(member, number), 1).await)).await?;
        before.push(uids_in(&cell, WORKLOAD_DEPLOYMENT, namespace).await?);
    }
    all_healthy(&hub, namespace, 2 * STORM).await?;
    let resident_before = resident(environment).await?;

    restart_karmada(environment).await?;
    hub.apply(&objects::workload_deployment(namespace, "extra", "DFW", 1))
        .await?;
    let dfw = environment.lab.plane(DFW).await?;
    awaited(&dfw, WORKLOAD_DEPLOYMENT, namespace, "extra", |_| Ok(())).await?;
    ready(&dfw, namespace, "extra", 1).await?;
    all_healthy(&hub, namespace, 2 * STORM + 1).await?;
    let resident_after = resident(environment).await?;
    ensure!(
        resident_after < resident_before + GROWTH,
        "the webhook's memory grew from {resident_before} to {resident_after} bytes"
    );
    for ((_, member), before) in CITIES.iter().zip(before) {
        let (cell, first) = (environment.lab.plane(member).await?, name(member, 0));
        ready(&cell, namespace, &first, 2).await?;
        awaited(&hub, WORKLOAD_DEPLOYMENT, namespace, &first, |one| {
            read::expect_at(one, "/status/readyReplicas", &json!(2))
        })
        .await?;
        let after = uids_in(&cell, WORKLOAD_DEPLOYMENT, namespace).await?;
        let is_kept = before.iter().all(|(name, uid)| after.get(name) == Some(uid));
        ensure!(is_kept, "the restart made objects in {member} anew");
    }
    for deployment in hub.list(WORKLOAD_DEPLOYMENT, Some(namespace), "").await? {
        hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), &deployment.name_any())
            .await?;
    }
    Ok(())
}

fn name(member: &str, number: usize) -> String {
    format!("{member}-{number:03}")
}

async fn resident(environment: &Environment) -> Result<f64> {
    environment
        .webhook
        .lock()
        .await
        .metric("process_resident_memory_bytes", &[])
        .await
}

async fn ready(cell: &Plane, namespace: &str, name: &str, count: i32) -> Result<()> {
    let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), name).await?;
    let status = objects::cell_status(object.metadata.generation.unwrap_or(1), count, count);
    cell.set_status(WORKLOAD_DEPLOYMENT, Some(namespace), name, &status)
        .await
        .map(|_| ())
}

async fn all_healthy(hub: &Plane, namespace: &str, count: usize) -> Result<()> {
    eventually("every binding is healthy", SOON * 2, async || {
        let bindings = hub.list(RESOURCE_BINDING, Some(namespace), "").await?;
        let healthy = |binding: &&DynamicObject| {
            CITIES
                .iter()
                .any(|(_, member)| read::health_on(binding, member).is_ok_and(|it| it == "Healthy"))
        };
        let healthy = bindings.iter().filter(|binding| healthy(binding)).count();
        ensure!(healthy == count, "{healthy} of {count} are healthy");
        let deployments = hub.list(WORKLOAD_DEPLOYMENT, Some(namespace), "").await?;
        let shown = |each: &&DynamicObject| *read::at(each, "/status/readyReplicas") == json!(1);
        let shown = deployments.iter().filter(shown).count();
        ensure!(shown == count, "{shown} of {count} show their status");
        Ok(())
    })
    .await
}
