//! The deletion guard on mass deletion: what would go at the first difference after a start stays until an operator releases
//! it.

use anyhow::{Context, Result, ensure};
use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_suites::environment::{DFW, SOON};
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Asked, Controller, Plane, always, eventually, objects, users};
use serde_json::json;

use crate::environment::{Environment, INFRA, LEASE, P2, WATCHED};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-dfw";
/// More than 20, and more than half of all that are in the project.
const MANY: u32 = 24;

pub(crate) async fn held(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    // All of them are asked for: what a user scales down is never held.
    let replicas = i32::try_from(MANY)?;
    tenant.workload("web", &[("us", &["DFW"], replicas)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await?;
    copies(&tenant).await?;
    counted(&tenant, MANY as usize).await?;
    let infra = environment.lab.plane(INFRA).await?;
    environment
        .without_controller(async || {
            // As a hub does that was restored from an old backup.
            for ordinal in 0..MANY {
                let name = format!("{NAME}-{ordinal}");
                tenant.hub.delete(INSTANCE, Some(&tenant.below), &name).await?;
            }
            environment.without_lease().await?;
            let spec = environment
                .spec()
                .flag("--leader-elect=true")
                .flag(format!("--leader-elect-namespace={}", users::NAMESPACE));
            let mut controller = Controller::start(spec).await?;
            let outcome = holds(environment, &tenant, &infra, &controller).await;
            outcome.with_context(|| controller.last_words())?;
            controller.stop().map(|_| ())
        })
        .await
}

async fn holds(environment: &Environment, tenant: &Tenant, infra: &Plane, controller: &Controller) -> Result<()> {
    let held = async || {
        let plane = format!("plane=\"project {P2}\"");
        controller
            .metric("popcell_deletion_guard_held", &[&plane, "kind=\"Instance\""])
            .await
    };
    let on = async || {
        let held = held().await?;
        ensure!(held > 0.5, "{held}");
        Ok(())
    };
    eventually("the deletion guard holds", SOON, on).await?;
    // The rest of the project goes on.
    tenant.workload("other", &[("us", &["LHR"], 1)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "other-us-lhr", |_| Ok(())).await?;
    let is_delete = |asked: &Asked| asked.verb == "delete" && asked.plural == INSTANCE.plural;
    let deletes = environment.to_milo.count(is_delete);
    always("nothing of it is deleted", WATCHED, async || {
        let left = tenant.names_in_project(INSTANCE).await?.len();
        ensure!(left == MANY as usize, "{left} are left");
        ensure!(environment.to_milo.count(is_delete) == deletes, "a delete was sent");
        Ok(())
    })
    .await?;

    let leases = infra.list(LEASE, Some(users::NAMESPACE), "").await?;
    let lease = leases
        .first()
        .and_then(|one| one.metadata.name.clone())
        .context("no Lease")?;
    let allow = json!({ "metadata": { "annotations": { MASS_DELETE: MASS_DELETE_ALLOW } } });
    infra.merge(LEASE, Some(users::NAMESPACE), &lease, &allow).await?;
    counted(tenant, 0).await?;
    let off = async || {
        let held = held().await?;
        ensure!(held < 0.5, "{held}");
        Ok(())
    };
    eventually("the deletion guard is off", SOON, off).await?;
    let now = infra.expect(LEASE, Some(users::NAMESPACE), &lease).await?;
    let annotations = now.metadata.annotations.unwrap_or_default();
    ensure!(
        !annotations.contains_key(MASS_DELETE),
        "it would release the next one: {annotations:?}"
    );
    Ok(())
}

async fn copies(tenant: &Tenant) -> Result<()> {
    let made = (0..MANY).map(async |ordinal| {
        let copy = objects::instance_copy(&tenant.below, NAME, ordinal, DFW);
        tenant.hub.create(&copy, false).await
    });
    futures::future::try_join_all(made).await.map(|_| ())
}

async fn counted(tenant: &Tenant, expected: usize) -> Result<()> {
    eventually(&format!("{expected} projections"), SOON, async || {
        let found = tenant.names_in_project(INSTANCE).await?.len();
        ensure!(found == expected, "{found}");
        Ok(())
    })
    .await
}
