//! What a cell keeps of its own, and what reaches it when it was unreachable.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use kube::api::DynamicObject;
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_suites::read;
use popcell_suites::steps::scale;
use popcell_test_support::kind::{CLUSTER, CONFIG_MAP, NAMESPACE, WORK, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually, objects};
use serde_json::{Value, json};

use crate::planes::{Deployed, NAME, awaited};

const FINALIZER: &str = "popcell.test/held";
const WATCHED: Duration = Duration::from_secs(6);

async fn finalize(deployed: &Deployed, finalizers: &Value) -> Result<()> {
    deployed
        .edit_in_cell(&json!({ "metadata": { "finalizers": finalizers } }))
        .await
}

/// The spec follows the hub; finalizer and owner that the cell's own controllers put on the object stay.
pub(crate) async fn keeps_its_own(environment: &Environment, namespace: &str) -> Result<()> {
    for (city, cell) in CELLS {
        let namespace = &format!("{namespace}-{cell}");
        let deployed = Deployed::new(environment, namespace, city, cell, 1).await?;
        let owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": namespace, "name": "owner" },
        });
        let owner = read::uid(&deployed.cell.create(&owner, false).await?);
        finalize(&deployed, &json!([FINALIZER])).await?;
        let owners = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner }]);
        let patch = json!({ "metadata": { "ownerReferences": owners } });
        deployed.edit_in_cell(&patch).await?;

        let there = deployed.scaled(3).await?;
        let finalizers = there.metadata.finalizers.unwrap_or_default();
        ensure!(finalizers == [FINALIZER], "{finalizers:?}");
        let found = there.metadata.owner_references.unwrap_or_default();
        let is_kept = found.iter().any(|one| one.name == "owner" && one.uid == owner);
        ensure!(is_kept, "{found:?}");
        finalize(&deployed, &json!([])).await?;
        deployed.cell.expect(CONFIG_MAP, Some(namespace), "owner").await?;
    }
    Ok(())
}

/// The hub's object goes at once, the cell's when its own controllers let it.
pub(crate) async fn lets_go_itself(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    finalize(&deployed, &json!([FINALIZER])).await?;
    deployed.delete().await?;
    deployed.gone_from(&deployed.hub).await?;
    let going = |one: &DynamicObject| {
        ensure!(one.metadata.deletion_timestamp.is_some(), "it is not being deleted");
        Ok(())
    };
    deployed.awaited_in_cell(going).await?;
    always("the cell's object waits", WATCHED, async || {
        going(&deployed.in_cell().await?)
    })
    .await?;
    finalize(&deployed, &json!([])).await?;
    deployed.gone_from(&deployed.cell).await
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
        Deployed::new(environment, name, city, cell, 1).await.map(|_| ())
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
    let Deployed { hub, cell, .. } = Deployed::in_dallas(environment, namespace, 1).await?;
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

/// An edit on the hub, upon which Karmada aggregates: a status that was made wrong before is again what the cell reported.
async fn aggregated_anew(deployed: &Deployed, reported: &DynamicObject) -> Result<()> {
    let (hub, here) = (&deployed.hub, Some(deployed.namespace.as_str()));
    let wrong = objects::cell_status(1, 2, 0);
    hub.set_status(WORKLOAD_DEPLOYMENT, here, NAME, &wrong).await?;
    let edit = json!({ "spec": { "template": { "metadata": { "annotations": { "popcell.test/edited": "yes" } } } } });
    hub.merge(WORKLOAD_DEPLOYMENT, here, NAME, &edit).await?;
    deployed
        .awaited_on_hub(|now| read::expect_at(now, "/status", read::at(reported, "/status")))
        .await
        .map(|_| ())
}

/// What a cell reported stays on the hub while its API server is away, also where Karmada aggregates it anew. Afterwards what is edited there is reverted, and what is reported there arrives.
pub(crate) async fn watched_again(environment: &Environment, namespace: &str) -> Result<()> {
    let mut deployed = Deployed::in_dallas(environment, namespace, 2).await?;
    deployed.report(2, 1).await?;
    let reported = deployed.mirrored(1).await?;
    let server = format!("kube-apiserver-{DFW}");
    environment.lab.stop(&server).await?;
    let meanwhile = async {
        ready(&deployed.hub, "False").await?;
        aggregated_anew(&deployed, &reported).await?;
        always("what the cell reported last stays on the hub", WATCHED, async || {
            let now = deployed.hub.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
            read::expect_at(&now, "/status", read::at(&reported, "/status"))
        })
        .await
    };
    let meanwhile = meanwhile.await;
    environment.lab.start_process(&server).await?;
    meanwhile?;
    ready(&deployed.hub, "True").await?;
    deployed.cell = environment.lab.plane(DFW).await?;
    scale(&deployed.cell, namespace, NAME, 7).await?;
    let reverted = deployed.awaited_in_cell(read::replicas(2)).await;
    reverted.context("an edit in the cell stays")?;
    deployed.report(2, 2).await?;
    deployed.mirrored(2).await.map(|_| ())
}
