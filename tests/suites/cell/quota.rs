//! A project that refuses claims, beside one that goes on; a budget that two cells share, and a full one.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_suites::read::{self, condition, says};
use popcell_suites::steps::warned;
use popcell_test_support::kind::{INSTANCE, RESOURCE_GRANT, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::{Budget, Quota};
use popcell_test_support::{Asked, Fault, Plane, eventually, objects};
use serde_json::json;
use tokio::time::sleep;

use crate::environment::{Environment, P1, P2};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
/// Instances that need claims.
const MANY: usize = 150;
/// Instances more for each other way to fail.
const MORE: usize = 20;
/// Within this time a project that fails costs little: less than a request a second for [`COUNTED`].
const SETTLED: Duration = Duration::from_secs(90);
const COUNTED: Duration = Duration::from_secs(20);
/// Hundreds of claims may still be going.
const GIVEN_BACK: Duration = Duration::from_mins(4);

/// Whatever a project answers, others roll and grow, and it is asked little; when it takes claims again all are granted.
pub(crate) async fn refused(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(1000));
    let failing = Tenant::new(&environment.lab, P2, &format!("{namespace}-f")).await?;
    let healthy = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    // Karmada makes the namespace in the cell.
    failing.runs("first", CITY, 1).await?;
    let creates = |asked: &Asked| asked.is_of(P2) && asked.verb == "create" && asked.plural == RESOURCE_CLAIM.plural;
    let proxy = &environment.to_projects[0];

    let fault = proxy.inject(Fault::refused(403, "Forbidden"), creates);
    let mut names = BTreeSet::new();
    names.extend(instances(&cell, &failing, "refused", MANY).await?);
    healthy.runs("web", CITY, 2).await?;
    reported(&cell, &failing, &names, &["QuotaMisconfigured"]).await?;
    let asked = || proxy.count(|asked| asked.is_of(P2) && asked.verb != "watch");
    eventually("it costs little", SETTLED, async || {
        let (before, written) = (asked(), versions(&cell, &failing).await?);
        sleep(COUNTED).await;
        let after = asked() - before;
        let rewritten = versions(&cell, &failing).await?.difference(&written).count();
        eprintln!("starved: {before} requests in all, then {after} in {COUNTED:?}");
        ensure!(rewritten < MORE, "{rewritten} Instances were written again");
        ensure!(after <= COUNTED.as_secs(), "{after} requests in {COUNTED:?}");
        Ok(())
    })
    .await?;
    ensure!(fault.hits() > 0, "nothing was refused");
    fault.lift();

    for (second, kind, fault) in [
        (1, "busy", Fault::refused(429, "TooManyRequests")),
        (2, "silent", Fault::Silent),
    ] {
        let before = asked();
        let fault = proxy.inject(fault, creates);
        let more = instances(&cell, &failing, kind, MORE).await?;
        let before_roll = healthy.instances(&cell).await?;
        let restarted = format!("2026-01-01T00:00:0{second}Z");
        let annotations = json!({ annotations::RESTARTED_AT: restarted });
        let template = json!({ "template": { "metadata": { "annotations": annotations } } });
        healthy.edit("web", &template).await?;
        healthy.all_are_others(&cell, &before_roll).await?;
        healthy.ready("web", 2).await?;
        reported(&cell, &failing, &more, &["QuotaBackendUnavailable"]).await?;
        eventually("a claim is tried", SOON, async || {
            ensure!(fault.hits() > 0, "none is");
            Ok(())
        })
        .await?;
        eprintln!("starved: {} requests while it was {kind}", asked() - before);
        fault.lift();
        names.extend(more);
    }

    eventually("all are granted", 3 * SOON, async || {
        let waiting = waiting(&cell, &failing, &names, |one| {
            read::says(one, "QuotaGranted", "True", "QuotaAvailable")
        })
        .await?;
        ensure!(waiting == 0, "{waiting} wait");
        Ok(())
    })
    .await?;
    environment.cells[0].lock().await.expect_alive()?;
    for name in &names {
        cell.delete(INSTANCE, Some(&failing.below), name).await?;
    }
    failing.clean("first").await?;
    failing.claims_are(&[]).await?;
    given_back(&quota).await?;
    healthy.clean("web").await
}

/// Instances of no WorkloadDeployment: one would wait for the one before it.
async fn instances(cell: &Plane, tenant: &Tenant, name: &str, count: usize) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for number in 0..count {
        let name = format!("{name}-{number}");
        let instance = objects::instance(&tenant.below, &name, &["Quota"]);
        cell.create(&instance, false).await?;
        names.insert(name);
    }
    Ok(names)
}

/// Names of the Instances with their versions.
async fn versions(cell: &Plane, tenant: &Tenant) -> Result<BTreeSet<(Option<String>, Option<String>)>> {
    let all = cell.list(INSTANCE, Some(&tenant.below), "").await?.into_iter();
    Ok(all
        .map(|one| (one.metadata.name, one.metadata.resource_version))
        .collect())
}

/// How many of these Instances `check` does not accept.
async fn waiting(
    cell: &Plane,
    tenant: &Tenant,
    names: &BTreeSet<String>,
    check: impl Fn(&DynamicObject) -> Result<()>,
) -> Result<usize> {
    let all = cell.list(INSTANCE, Some(&tenant.below), "").await?;
    let of = |one: &&DynamicObject| one.metadata.name.as_ref().is_some_and(|name| names.contains(name));
    let accepted = all.iter().filter(of).filter(|one| check(one).is_ok()).count();
    Ok(names.len() - accepted)
}

/// Waits until each of these Instances says why it waits.
async fn reported(cell: &Plane, tenant: &Tenant, names: &BTreeSet<String>, reasons: &[&str]) -> Result<()> {
    eventually("each says why it waits", SOON, async || {
        let mut other = Vec::new();
        for one in cell.list(INSTANCE, Some(&tenant.below), "").await? {
            let name = one.metadata.name.clone().unwrap_or_default();
            if !names.contains(&name) {
                continue;
            }
            let said = condition(&one, "QuotaGranted")
                .map(|found| found["reason"].clone())
                .unwrap_or_default();
            if !reasons.iter().any(|reason| said == *reason) {
                other.push(format!("{name}: {said}"));
            }
        }
        ensure!(
            other.is_empty(),
            "{} say something else: {:?}",
            other.len(),
            other.first()
        );
        Ok(())
    })
    .await
}

/// Instances of the tenant that run in these cells.
async fn running(tenant: &Tenant, cells: &[Plane]) -> Result<usize> {
    let mut running = 0;
    for cell in cells {
        for one in cell.list(INSTANCE, Some(&tenant.below), "").await? {
            running += usize::from(read::is_ready(&one).is_ok());
        }
    }
    Ok(running)
}

/// Waits until nothing is granted any more: whoever sets the next budget counts the most from what is granted then.
async fn given_back(quota: &Quota) -> Result<()> {
    eventually("nothing is granted", GIVEN_BACK, async || {
        let granted = quota.audit().granted.instances;
        ensure!(granted == 0, "{granted} are");
        Ok(())
    })
    .await
}

/// What waits says so in the project, and starts when others shrink.
pub(crate) async fn shared(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(3));
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cells = [environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?];
    tenant.deploy("web", &["DFW", "ORD"], 2, |_| {}).await?;
    eventually("three run and one waits", SOON, async || {
        let running = running(&tenant, &cells).await?;
        ensure!(running == 3, "{running} run");
        Ok(())
    })
    .await?;
    // The project shows which one waits, and why.
    let waiting = eventually("one of the two cities reports that it waits", SOON, async || {
        for city in ["dfw", "ord"] {
            let name = format!("web-us-{city}");
            let namespace = Some(tenant.namespace.as_str());
            let deployment = tenant.project.expect(WORKLOAD_DEPLOYMENT, namespace, &name).await?;
            let instance = tenant.project.get(INSTANCE, namespace, &format!("{name}-1")).await?;
            if let (Ok(()), Some(instance)) = (says(&deployment, "ReplicasReady", "False", "QuotaExceeded"), instance) {
                says(&instance, "Ready", "False", "PendingQuota")?;
                return Ok(city);
            }
        }
        bail!("neither does")
    })
    .await?;
    let other = if waiting == "dfw" { ["DFW"] } else { ["ORD"] };
    tenant.scale("web", &other, 2).await?;
    tenant.ready("web", 2).await?;
    let audit = quota.audit();
    ensure!(audit.most.instances <= 3, "{audit:?}");
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await
}

/// A budget that two cells share.
pub(crate) async fn full(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(2));
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", &["DFW"], 2).await?;
    // Somebody else is waiting for whatever becomes free.
    tenant.deploy("envious", &["ORD"], 1, |_| {}).await?;
    let ord = environment.lab.plane(ORD).await?;
    tenant
        .instance(&ord, "envious-us-ord-0", |one| {
            says(one, "QuotaGranted", "False", "QuotaExceeded")
        })
        .await?;
    let before = tenant.instances(&cell).await?;
    tenant.restart("web").await?;
    tenant.all_are_others(&cell, &before).await?;
    tenant.ready("web", 2).await?;
    let envious = tenant.instance(&ord, "envious-us-ord-0", |_| Ok(())).await?;
    says(&envious, "QuotaGranted", "False", "QuotaExceeded")?;
    for name in ["web", "envious"] {
        tenant.clean(name).await?;
    }
    tenant.claims_are(&[]).await
}

/// A project that was granted no budget: what waits says so there and in the cell, and starts with the first grant.
pub(crate) async fn without_budget(environment: &Environment, namespace: &str) -> Result<()> {
    let mut quota = environment.quota.lock().await;
    let project = environment.lab.plane(P2).await?;
    *quota = Quota::by_grants(project.client());
    let outcome = ungranted(environment, namespace).await;
    *quota = Quota::start(project.client(), Budget::instances(1000));
    outcome
}

async fn ungranted(environment: &Environment, namespace: &str) -> Result<()> {
    const NAME: &str = "web-us-dfw-0";
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.deploy("web", &["DFW"], 1, |_| {}).await?;
    let waits = |one: &DynamicObject| says(one, "QuotaGranted", "Unknown", "QuotaNoBudget");
    tenant.instance(&cell, NAME, waits).await?;
    tenant.in_project(INSTANCE, NAME, waits).await?;
    for (plane, within) in [(&cell, &tenant.below), (&tenant.project, &tenant.namespace)] {
        warned(plane, within, NAME, "QuotaNoBudget").await?;
    }
    let grant = objects::resource_grant(&tenant.namespace, P2, &Budget::SHIPPED);
    let granted = tenant.project.apply(&grant).await?;
    tenant.ready("web", 1).await?;
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await?;
    let name = granted.metadata.name.context("the grant has no name")?;
    tenant
        .project
        .delete(RESOURCE_GRANT, Some(&tenant.namespace), &name)
        .await
}
