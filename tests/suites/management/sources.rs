//! What a cell that is gone has left. Its copies and claims are written by hand.

use anyhow::{Context, Result};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{annotations, labels, names};
use popcell_core::sources::{Source, record_key};
use popcell_suites::read;
use popcell_suites::world::DFW;
use popcell_test_support::kind::{CLUSTER, INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, objects, users};
use serde_json::json;

use crate::tenant::Tenant;
use crate::world::{P1, WATCHED, World};

const DEPLOYMENT: &str = "web-us-dfw";
const LOST: Source<'static> = Source {
    name: "lost",
    id: "0d0c1d3a-lost",
};

/// A copy on the hub and its claim in the project, of one source.
async fn left_by(tenant: &Tenant, ordinal: u32, source: Source<'_>) -> Result<()> {
    let mut copy = objects::instance_copy(&tenant.hub_namespace, DEPLOYMENT, ordinal, source.name);
    objects::annotate(&mut copy, annotations::SOURCE_UID, source.id);
    let claim = json!({
        "apiVersion": RESOURCE_CLAIM.api_version(),
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": tenant.namespace,
            "name": claim(ordinal),
            "labels": { labels::SOURCE_CLUSTER: source.name, labels::INSTANCE_NAMESPACE: tenant.hub_namespace },
            "annotations": { annotations::SOURCE_UID: source.id },
        },
        "spec": { "requests": [{ "resourceType": "compute.datumapis.com/instances", "amount": 1 }] },
    });
    tenant.project.create(&claim, false).await?;
    tenant.hub.create(&copy, false).await.map(|_| ())
}

fn claim(ordinal: u32) -> String {
    format!("instance-{DEPLOYMENT}-{ordinal}")
}

pub(crate) async fn removed(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 2)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, DEPLOYMENT, |_| Ok(())).await?;
    let cluster = tenant.hub.expect(CLUSTER, None, DFW).await?;
    let id = read::at(&cluster, "/spec/id")
        .as_str()
        .context("the Cluster has no id")?;
    // As `popcell cell remove` writes it down.
    let record = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": users::NAMESPACE, "name": names::REMOVED_CELLS },
        "data": { record_key(LOST): "2026-01-01T00:00:00Z" },
    });
    tenant.hub.apply(&record).await?;
    left_by(&tenant, 0, Source { name: DFW, id }).await?;
    left_by(&tenant, 1, LOST).await?;

    tenant.gone_from_project(RESOURCE_CLAIM, &claim(1)).await?;
    tenant.gone_from_hub(INSTANCE, &format!("{DEPLOYMENT}-1")).await?;
    tenant.gone_from_project(INSTANCE, &format!("{DEPLOYMENT}-1")).await?;
    always("what a cell that is there has stays", WATCHED, async || {
        let copy = format!("{DEPLOYMENT}-0");
        tenant.hub.expect(INSTANCE, Some(&tenant.hub_namespace), &copy).await?;
        tenant
            .project
            .expect(RESOURCE_CLAIM, Some(&tenant.namespace), &claim(0))
            .await
            .map(|_| ())
    })
    .await
}
