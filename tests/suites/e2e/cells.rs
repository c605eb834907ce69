//! What a cell keeps of its own, and what reaches it when it was unreachable.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use kube::api::DynamicObject;
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_suites::read;
use popcell_test_support::kind::{CLUSTER, CONFIG_MAP, NAMESPACE, WORK, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually};
use serde_json::{Value, json};

use crate::planes::{NAME, awaited, deployed, gone, mirrored, report};

const FINALIZER: &str = "popcell.test/held";
const WATCHED: Duration = Duration::from_secs(6);

async fn finalize(cell: &Plane, namespace: &str, finalizers: &Value) -> Result<()> {
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    cell.merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &patch)
        .await
        .map(|_| ())
}

async fn scale(plane: &Plane, namespace: &str, replicas: i32) -> Result<()> {
    let patch = json!({ "spec": { "scaleSettings": { "minReplicas": replicas } } });
    plane
        .merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &patch)
        .await
        .map(|_| ())
}

async fn scaled(plane: &Plane, namespace: &str, replicas: i32) -> Result<DynamicObject> {
    awaited(plane, WORKLOAD_DEPLOYMENT, namespace, NAME, |one| {
        read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(replicas))
    })
    .await
}

/// The spec follows the hub; finalizer and owner that the cell's own controllers put on the object stay.
pub(crate) async fn keeps_its_own(environment: &Environment, namespace: &str) -> Result<()> {
    for (city, cell) in [("DFW", DFW), ("ORD", ORD)] {
        let namespace = &format!("{namespace}-{cell}");
        let (hub, cell) = deployed(environment, namespace, city, cell, 1).await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": "owner" },
        });
        let owner = cell.create(&owner, false).await?;
        finalize(&cell, namespace, &json!([FINALIZER])).await?;
        let owners = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": read::uid(&owner) }]);
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        cell.merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &patch).await?;

        scale(&hub, namespace, 3).await?;
        let there = scaled(&cell, namespace, 3).await?;
        let finalizers = there.metadata.finalizers.unwrap_or_default();
        ensure!(finalizers == [FINALIZER], "{finalizers:?}");
        let found = there.metadata.owner_references.unwrap_or_default();
        let is_kept = found
            .iter()
            .any(|one| one.name == "owner" && one.uid == read::uid(&owner));
        ensure!(is_kept, "{found:?}");
        finalize(&cell, namespace, &json!([])).await?;
        cell.expect(CONFIG_MAP, Some(namespace), "owner").await?;
    }
    Ok(())
}

/// The hub's object goes at once, the cell's when its own controllers let it.
pub(crate) async fn lets_go_itself(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    finalize(&cell, namespace, &json!([FINALIZER])).await?;
    hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    gone(&hub, WORKLOAD_DEPLOYMENT, namespace, NAME).await?;
    let going = |one: &DynamicObject| {
        ensure!(one.metadata.deletion_timestamp.is_some(), "it is not being deleted");
        Ok(())
    };
    awaited(&cell, WORKLOAD_DEPLOYMENT, namespace, NAME, going).await?;
    always("the cell's object waits", WATCHED, async || {
        going(&cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?)
    })
    .await?;
    finalize(&cell, namespace, &json!([])).await?;
    gone(&cell, WORKLOAD_DEPLOYMENT, namespace, NAME).await
}

/// How many projects there are in one city each, one after the other.
const PROJECTS: usize = 18;
const CELLS: [(&str, &str); 2] = [("DFW", DFW), ("ORD", ORD)];

/// Each hub namespace is a Work for every cell, and each WorkloadDeployment one for its own cell (docs/operations.md).
pub(crate) async fn works(environment: &Environment, namespace: &str) -> Result<()> {
    let names: Vec<String> = (0..PROJECTS).map(|number| format!("{namespace}-{number}")).collect();
    let city = |number: usize| CELLS[number % CELLS.len()];
    try_join_all(names.iter().enumerate().map(async |(number, name)| {
        let (city, cell) = city(number);
        deployed(environment, name, city, cell, 1).await.map(|_| ())
    }))
    .await?;
    let hub = environment.lab.hub().await?;
    for cell in [DFW, ORD, SPARE] {
        let plane = environment.lab.plane(cell).await?;
        for (number, name) in names.iter().enumerate() {
            awaited(&plane, NAMESPACE, "", name, |_| Ok(())).await?;
            if city(number).1 != cell {
                let found = plane.list(WORKLOAD_DEPLOYMENT, Some(name), "").await?.len();
                ensure!(found == 0, "{found} in {cell} of {name}");
            }
        }
        let mine = if cell == SPARE { 0 } else { PROJECTS / CELLS.len() };
        let expected = BTreeMap::from([("Namespace", PROJECTS), ("WorkloadDeployment", mine)]);
        let space = format!("karmada-es-{cell}");
        let found = hub.list(WORK, Some(&space), "").await?;
        for (kind, expected) in expected {
            let of_ours = found.iter().filter(|work| carries(work, kind, &names)).count();
            ensure!(
                of_ours == expected,
                "{of_ours} Works of {kind} for {cell}, not {expected}"
            );
        }
    }
    try_join_all(names.iter().map(async |name| hub.delete(NAMESPACE, None, name).await)).await?;
    Ok(())
}

/// Whether the Work has an object of the kind of one of these namespaces in it.
pub(crate) fn carries(work: &DynamicObject, kind: &str, namespaces: &[String]) -> bool {
    let manifest = read::at(work, "/spec/workload/manifests/0");
    let of = if kind == "Namespace" { "name" } else { "namespace" };
    let of = manifest["metadata"][of].as_str().unwrap_or_default();
    manifest["kind"] == kind && namespaces.iter().any(|each| each == of)
}

/// What an administrator of a cell says of a namespace survives what the hub says of it.
pub(crate) async fn keeps_labels(environment: &Environment, namespace: &str) -> Result<()> {
    const MINE: &str = "popcell.test/by-the-cell";
    const HUBS: &str = "popcell.test/by-the-hub";
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    let label = |key: &str| json!({ "metadata": { "labels": { key: "yes" } } });
    cell.merge(NAMESPACE, None, namespace, &label(MINE)).await?;
    hub.merge(NAMESPACE, None, namespace, &label(HUBS)).await?;
    let has = |one: &DynamicObject, key: &str| {
        let labels = one.metadata.labels.as_ref();
        ensure!(labels.is_some_and(|all| all.contains_key(key)), "no {key}: {labels:?}");
        Ok(())
    };
    awaited(&cell, NAMESPACE, "", namespace, |one| has(one, HUBS)).await?;
    has(&cell.expect(NAMESPACE, None, namespace).await?, MINE)
}

async fn ready(hub: &Plane, expected: &str) -> Result<()> {
    eventually(&format!("{DFW} is Ready={expected}"), SOON * 2, async || {
        let cluster = hub.expect(CLUSTER, None, DFW).await?;
        let condition = read::condition(&cluster, "Ready")?;
        ensure!(condition["status"] == expected, "{condition}");
        Ok(())
    })
    .await
}

/// After an outage of a cell's API server what is edited there is reverted, and what is reported there arrives.
pub(crate) async fn watched_again(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 2).await?;
    report(&cell, namespace, 2, 1).await?;
    mirrored(&hub, namespace, 1).await?;
    let server = format!("kube-apiserver-{DFW}");
    environment.lab.stop(&server).await?;
    let noticed = ready(&hub, "False").await;
    environment.lab.start_process(&server).await?;
    noticed?;
    ready(&hub, "True").await?;
    let cell = environment.lab.plane(DFW).await?;
    scale(&cell, namespace, 7).await?;
    scaled(&cell, namespace, 2).await.context("an edit in the cell stays")?;
    report(&cell, namespace, 2, 2).await?;
    mirrored(&hub, namespace, 2).await.map(|_| ())
}
