//! The whole mission: declared in a project, run in cells, seen in the project.

use anyhow::{Result, ensure};
use popcell_api::annotations::INSTANCE_TYPE_SIZE;
use popcell_api::kind::{NETWORK_BINDING, RESOURCE_BINDING, RESOURCE_CLAIM};
use popcell_api::quota::{INSTANCES, MEMORY, VCPUS};
use popcell_api::{finalizers, labels};
use popcell_suites::definitions::define;
use popcell_suites::environment::{DFW, ORD};
use popcell_suites::read::{self, says};
use popcell_suites::steps::gone;
use popcell_test_support::kind::{INSTANCE, NAMESPACE, PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};
use serde_json::{Value, json};

use crate::environment::{Environment, LARGE, P1};
use popcell_suites::tenant::Tenant;

pub(crate) async fn runs(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    for cell in [DFW, ORD] {
        // A claim that is made at the wrong server is not to fail for want of its kind.
        define(&environment.lab.plane(cell).await?, &[RESOURCE_CLAIM]).await?;
    }
    let large = |workload: &mut Value| {
        workload["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!(LARGE);
    };
    tenant.deploy("web", &["DFW", "ORD"], 2, large).await?;
    let workload = tenant.ready("web", 4).await?;
    says(&workload, "Available", "True", "AvailablePlacementFound")?;
    for (cell, city) in [(DFW, "dfw"), (ORD, "ord")] {
        let (cell, name) = (environment.lab.plane(cell).await?, format!("web-us-{city}"));
        let names: Vec<String> = tenant
            .instances(&cell)
            .await?
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        ensure!(names == [format!("{name}-0"), format!("{name}-1")], "{names:?}");
        let instance = tenant
            .instance(&cell, &format!("{name}-0"), |one| {
                read::is_ready(one)?;
                says(one, "QuotaGranted", "True", "QuotaAvailable")
            })
            .await?;
        read::expect_at(&instance, "/spec/controller/schedulingGates", &json!([]))?;
        let sizes = instance.metadata.annotations.as_ref();
        let size = sizes.and_then(|all| all.get(INSTANCE_TYPE_SIZE)).map(String::as_str);
        ensure!(size == Some("acme/large cpu=4 memory=8Gi"), "{size:?}");
        ensure!(
            instance.metadata.finalizers == Some(vec![finalizers::UNIKRAFT_PROVIDER.to_owned()]),
            "{:?}",
            instance.metadata.finalizers
        );
        let shown = tenant
            .in_project(INSTANCE, &format!("{name}-0"), read::is_ready)
            .await?;
        let carried = |key: &str| shown.metadata.labels.as_ref().and_then(|all| all.get(key)).cloned();
        ensure!(
            carried(labels::SOURCE_CLUSTER).as_deref() == Some(cell.name()),
            "{:?}",
            shown.metadata.labels
        );
        let owner = tenant.in_project(WORKLOAD_DEPLOYMENT, &name, |_| Ok(())).await?;
        let owners = shown.metadata.owner_references.unwrap_or_default();
        ensure!(owners.iter().any(|one| one.uid == read::uid(&owner)), "{owners:?}");
        // Claims live in the project and nowhere else.
        let claims = cell.list(RESOURCE_CLAIM, None, "").await?;
        ensure!(claims.is_empty(), "{claims:?}");
    }
    tenant
        .claims_are(&["web-us-dfw-0", "web-us-dfw-1", "web-us-ord-0", "web-us-ord-1"])
        .await?;
    // The size of its instance type, as the catalogue has it and the server keeps it.
    let amounts = json!([
        { "resourceType": INSTANCES, "amount": 1 },
        { "resourceType": VCPUS, "amount": 4000 },
        { "resourceType": MEMORY, "amount": 8192 },
    ]);
    for claim in tenant.project.list(RESOURCE_CLAIM, Some(namespace), "").await? {
        read::expect_at(&claim, "/spec/requests", &amounts)?;
    }
    for name in ["web-us-dfw", "web-us-ord"] {
        let binding = format!("{name}-workloaddeployment");
        let binding = tenant
            .hub
            .expect(RESOURCE_BINDING, Some(&tenant.below), &binding)
            .await?;
        let required = json!({ "cpu": "4", "memory": "8Gi" });
        read::expect_at(&binding, "/spec/replicaRequirements/resourceRequest", &required)?;
    }
    goes(environment, &tenant).await
}

async fn goes(environment: &Environment, tenant: &Tenant) -> Result<()> {
    for (kind, name, finalizer) in [
        (WORKLOAD, "web", finalizers::WORKLOAD_CONTROLLER),
        (WORKLOAD_DEPLOYMENT, "web-us-dfw", finalizers::FEDERATOR),
    ] {
        let one = tenant.in_project(kind, name, |_| Ok(())).await?;
        let found = one.metadata.finalizers.unwrap_or_default();
        ensure!(found.iter().any(|each| each == finalizer), "{found:?}");
    }
    tenant.delete(WORKLOAD, "web").await?;
    tenant.gone_from_project(WORKLOAD, "web").await?;
    tenant.claims_are(&[]).await?;
    for (cell, name) in [(DFW, "web-us-dfw"), (ORD, "web-us-ord")] {
        let cell = environment.lab.plane(cell).await?;
        let instance = format!("{name}-0");
        gone(&cell, WORKLOAD_DEPLOYMENT, &tenant.below, name).await?;
        gone(&cell, INSTANCE, &tenant.below, &instance).await?;
        gone(&cell, NETWORK_BINDING, &tenant.below, &format!("{name}-net-0")).await?;
        tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, name).await?;
        tenant.gone_from_hub(INSTANCE, &instance).await?;
        tenant.gone_from_project(WORKLOAD_DEPLOYMENT, name).await?;
        tenant.gone_from_project(INSTANCE, &instance).await?;
    }
    for policy in ["city-dfw", "city-ord"] {
        tenant.gone_from_hub(PROPAGATION_POLICY, policy).await?;
    }
    // The namespace is current while the project's lives.
    let kept = tenant.hub.expect(NAMESPACE, None, &tenant.below).await?;
    ensure!(kept.metadata.deletion_timestamp.is_none(), "the hub namespace goes");
    Ok(())
}
