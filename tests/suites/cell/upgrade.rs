//! What upstream's controllers have left in a cell, on the hub and in the project is taken over as it runs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{annotations, finalizers, labels};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::awaited;
use popcell_test_support::kind::{ADMISSION_POLICY, CLUSTER, CONFIG_MAP, INSTANCE, NAMESPACE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually, objects};
use serde_json::{Value, json};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

const NAMES: [&str; 2] = ["web-us-dfw-0", "web-us-dfw-1"];
/// As upstream hashes.
const THEIR_HASH: &str = "6f8c9d7b4";

/// Uids of Instance, copy and claim.
type Uids = BTreeMap<&'static str, [String; 3]>;

async fn uids(tenant: &Tenant, cell: &Plane) -> Result<Uids> {
    let mut all = Uids::new();
    for name in NAMES {
        let claim = format!("instance-{name}");
        let one = cell.expect(INSTANCE, Some(&tenant.below), name).await?;
        let copy = tenant.hub.expect(INSTANCE, Some(&tenant.below), name).await?;
        let project = &tenant.project;
        let claim = project.expect(RESOURCE_CLAIM, Some(&tenant.namespace), &claim).await?;
        all.insert(name, [one, copy, claim].map(|object| read::uid(&object)));
    }
    Ok(all)
}

/// Makes of what is there what upstream's controllers would have made.
async fn as_upstream_leaves_it(tenant: &Tenant, cell: &Plane) -> Result<()> {
    let below = Some(tenant.below.as_str());
    let forgets =
        json!({ "metadata": { "annotations": { annotations::GRANTED_SLOTS: null, annotations::GRANTED_SIZE: null } } });
    cell.merge(WORKLOAD_DEPLOYMENT, below, "web-us-dfw", &forgets).await?;
    // Its controllers keep no record.
    cell.delete(CONFIG_MAP, Some("compute-system"), "popcell-claim-projects")
        .await?;
    for name in NAMES {
        let mut running = objects::condition("Running", "True", "Running", "", 1);
        running["lastTransitionTime"] = json!("2025-01-01T00:00:00Z");
        cell.set_status(INSTANCE, below, name, &json!({ "conditions": [running] }))
            .await?;
        let theirs = json!({
            "metadata": {
                "finalizers": [
                    finalizers::UPSTREAM_INSTANCE_CONTROLLER,
                    finalizers::UPSTREAM_CLAIM_CLEANUP,
                    finalizers::UNIKRAFT_PROVIDER,
                ],
                "labels": { labels::WORKLOAD_NAME: null, labels::PLACEMENT_NAME: null, labels::INSTANCE_CITY_CODE: null },
            },
            "spec": { "controller": { "templateHash": THEIR_HASH } },
        });
        cell.merge(INSTANCE, below, name, &theirs).await?;
        let unmarked = json!({ "metadata": {
            "labels": { labels::MANAGED_BY: null, labels::CLAIMED_BY: null, labels::SOURCE_CLUSTER: null },
            "annotations": { annotations::SOURCE_UID: null },
            "ownerReferences": null,
        } });
        tenant.hub.merge(INSTANCE, below, name, &unmarked).await?;
        let claim = format!("instance-{name}");
        let unmarked = json!({ "metadata": { "annotations": { annotations::SOURCE_UID: null } } });
        tenant
            .project
            .merge(RESOURCE_CLAIM, Some(&tenant.namespace), &claim, &unmarked)
            .await?;
    }
    Ok(())
}

/// Lets cells change copies that do not say whose they are, or not any more, as an operator does for an upgrade.
async fn let_take_over(hub: &Plane, value: &str) -> Result<()> {
    let policy = hub.expect(ADMISSION_POLICY, None, "popcell-cells").await?;
    let mut variables = read::at(&policy, "/spec/variables").clone();
    let takes_over = variables.as_array_mut().into_iter().flatten();
    for variable in takes_over.filter(|one| one["name"] == "takesOver") {
        variable["expression"] = json!(value);
    }
    let patch = json!({ "spec": { "variables": variables } });
    hub.merge(ADMISSION_POLICY, None, "popcell-cells", &patch).await?;
    Ok(())
}

/// Waits until the hub lets the cell take over, by a copy that nobody needs.
async fn may_take_over(environment: &Environment, tenant: &Tenant, files: &Path) -> Result<()> {
    let below = Some(tenant.below.as_str());
    let mut probe = objects::instance_copy(&tenant.below, "probe", 0, "");
    probe["metadata"]["labels"] = json!({});
    tenant.hub.create(&probe, false).await?;
    let cell = Plane::connect("hub of the cell", &environment.to_hub[0].kubeconfig(files, "probe")?).await?;
    let cluster = tenant.hub.expect(CLUSTER, None, DFW).await?;
    let ours = json!({ "metadata": { "labels": { labels::SOURCE_CLUSTER: DFW },
        "annotations": { annotations::SOURCE_UID: read::at(&cluster, "/spec/id") } } });
    eventually("the cell may take over", SOON, async || {
        cell.merge(INSTANCE, below, "probe-0", &ours).await
    })
    .await?;
    tenant.hub.delete(INSTANCE, below, "probe-0").await
}

fn is_taken_over(one: &DynamicObject) -> Result<()> {
    let finalizers = one.metadata.finalizers.clone().unwrap_or_default();
    ensure!(finalizers == [finalizers::UNIKRAFT_PROVIDER], "{finalizers:?}");
    let hash = read::at(one, "/spec/controller/templateHash");
    ensure!(hash != THEIR_HASH, "it has upstream's hash");
    let labels = one.metadata.labels.clone().unwrap_or_default();
    ensure!(labels.contains_key(labels::WORKLOAD_NAME), "{labels:?}");
    read::is_ready(one)
}

fn is_stamped(object: &DynamicObject, cell_uid: &str) -> Result<()> {
    let of = |map: &Option<BTreeMap<String, String>>, key| map.as_ref().and_then(|all| all.get(key)).cloned();
    let source = of(&object.metadata.labels, labels::SOURCE_CLUSTER);
    ensure!(source.as_deref() == Some(DFW), "its source is {source:?}");
    let uid = of(&object.metadata.annotations, annotations::SOURCE_UID);
    ensure!(uid.as_deref() == Some(cell_uid), "its source is {uid:?}");
    Ok(())
}

pub(crate) async fn taken_over(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let_take_over(&tenant.hub, "true").await?;
    let outcome = upgraded(environment, &tenant).await;
    let_take_over(&tenant.hub, "false").await?;
    outcome
}

/// `Running` stays in its cell, and is neither in the copy nor in what the project shows.
async fn keeps_the_old_condition(tenant: &Tenant, cell: &Plane, name: &str) -> Result<()> {
    const OLD: &str = "Running";
    let below = Some(tenant.below.as_str());
    read::condition(&cell.expect(INSTANCE, below, name).await?, OLD)?;
    let copy = tenant.hub.expect(INSTANCE, below, name).await?;
    let project = &tenant.project;
    let shown = project.expect(INSTANCE, Some(&tenant.namespace), name).await?;
    for (plane, object) in [("the hub", &copy), ("the project", &shown)] {
        let found = read::condition(object, OLD);
        ensure!(found.is_err(), "{name} has it on {plane}: {found:?}");
    }
    Ok(())
}

async fn upgraded(environment: &Environment, tenant: &Tenant) -> Result<()> {
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", &["DFW"], 2).await?;
    for name in NAMES {
        tenant.in_hub(INSTANCE, name, read::is_ready).await?;
    }
    let mut controller = environment.cells[0].lock().await;
    controller.stop()?;
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let left = async {
        may_take_over(environment, tenant, files.path()).await?;
        let before = uids(tenant, &cell).await?;
        as_upstream_leaves_it(tenant, &cell).await?;
        Ok::<_, anyhow::Error>(before)
    };
    let left = left.await;
    controller.start_again().await?;
    drop(controller);
    let before = left?;
    let kube_system = cell.expect(NAMESPACE, None, "kube-system").await?;
    let cell_uid = read::uid(&kube_system);
    for name in NAMES {
        tenant.instance(&cell, name, is_taken_over).await?;
        tenant
            .in_hub(INSTANCE, name, |copy| {
                is_stamped(copy, &cell_uid)?;
                let labels = copy.metadata.labels.clone().unwrap_or_default();
                let is = |key, value: &str| labels.get(key).map(String::as_str) == Some(value);
                ensure!(
                    is(labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)
                        && is(labels::CLAIMED_BY, labels::CLAIMED_BY_POPCELL),
                    "{labels:?}"
                );
                read::is_ready(copy)
            })
            .await?;
        tenant
            .in_project(RESOURCE_CLAIM, &format!("instance-{name}"), |claim| {
                is_stamped(claim, &cell_uid)
            })
            .await?;
    }
    let remembered = |one: &DynamicObject| {
        let known = one.metadata.annotations.as_ref();
        let granted = known.and_then(|all| all.get(annotations::GRANTED_SLOTS));
        ensure!(granted.is_some_and(|granted| granted == "0,1"), "{granted:?}");
        Ok(())
    };
    tenant.in_cell(&cell, "web-us-dfw", remembered).await?;
    tenant.ready("web", 2).await?;
    always("nothing is recreated", WATCHED, async || {
        let now = uids(tenant, &cell).await?;
        ensure!(now == before, "{now:?}, not {before:?}");
        Ok(())
    })
    .await?;
    for name in NAMES {
        keeps_the_old_condition(tenant, &cell, name).await?;
    }
    awaited(
        &cell,
        CONFIG_MAP,
        "compute-system",
        "popcell-claim-projects",
        |record| {
            ensure!(record.data["data"] != Value::Null, "no project is written down");
            Ok(())
        },
    )
    .await?;
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await
}
