//! Two controllers with a Lease: one writes, whatever becomes of the other.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use popcell_suites::world::SOON;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{Controller, Plane, eventually, probe, users};

use crate::tenant::Tenant;
use crate::world::{P1, World};

/// A holder that ends gracefully gives the Lease back; the other looks every two seconds.
const HANDOVER: Duration = Duration::from_secs(5);
/// 15 s until the Lease of a dead holder is over, and a look.
const TAKEOVER: Duration = Duration::from_secs(20);

pub(crate) async fn one_writes(world: &World, namespace: &str) -> Result<()> {
    world
        .without_controller(async || with_two(world, namespace).await)
        .await
}

async fn with_two(world: &World, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(world, P1, namespace).await?;
    let spec = world
        .spec()
        .flag("--leader-elect=true")
        .flag(format!("--leader-elect-namespace={}", users::NAMESPACE));
    let mut replicas = vec![
        Controller::start(spec.clone()).await?,
        Controller::start(spec.clone()).await?,
    ];
    let outcome = handed_over(&tenant, &mut replicas, &spec).await;
    outcome.with_context(|| {
        let words: Vec<String> = replicas.iter().map(Controller::last_words).collect();
        words.join("\n\nthe other:\n")
    })
}

async fn handed_over(
    tenant: &Tenant,
    replicas: &mut Vec<Controller>,
    spec: &popcell_test_support::ControllerSpec,
) -> Result<()> {
    let created = created(&tenant.hub).await?;
    leader(replicas, SOON).await?;
    carried(tenant, "first").await?;

    let mut holder = replicas.remove(leader(replicas, SOON).await?);
    holder.end()?;
    let since = Instant::now();
    leader(replicas, HANDOVER).await?;
    eprintln!("replicas: handed over in {:.1} s", since.elapsed().as_secs_f64());
    carried(tenant, "second").await?;

    replicas.push(Controller::start(spec.clone()).await?);
    let mut holder = replicas.remove(leader(replicas, SOON).await?);
    holder.kill()?;
    let since = Instant::now();
    leader(replicas, TAKEOVER).await?;
    eprintln!("replicas: taken over in {:.1} s", since.elapsed().as_secs_f64());
    carried(tenant, "third").await?;

    let now = self::created(&tenant.hub).await?;
    ensure!(
        (now - created - 3.0).abs() < 0.5,
        "{} creates for three objects",
        now - created
    );
    Ok(())
}

/// Which of them may write: exactly one, at the end.
pub(crate) async fn leader(replicas: &[Controller], within: Duration) -> Result<usize> {
    eventually("one of them leads", within, async || {
        let mut leaders = Vec::new();
        for (index, replica) in replicas.iter().enumerate() {
            if replica.metric("popcell_leader", &[]).await? > 0.5 {
                leaders.push(index);
            }
        }
        ensure!(leaders.len() == 1, "{leaders:?} lead");
        leaders.first().copied().context("nobody leads")
    })
    .await
}

/// A Workload in one city reaches the hub.
async fn carried(tenant: &Tenant, name: &str) -> Result<()> {
    tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
    let deployment = format!("{name}-us-lhr");
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, &deployment, |_| Ok(()))
        .await
        .map(|_| ())
}

/// Requests to create a WorkloadDeployment, whatever the server answered.
async fn created(hub: &Plane) -> Result<f64> {
    let with = ["verb=\"POST\"", "resource=\"workloaddeployments\"", "subresource=\"\""];
    Ok(probe::sum_of(&hub.metrics().await?, "apiserver_request_total", &with))
}
