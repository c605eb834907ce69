//! Objects of one namespace that no server accepts, beside those of another.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::SOON;
use popcell_suites::failing::{FailingWebhook, create_large, largest};
use popcell_test_support::eventually;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use tokio::time::{sleep, timeout};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

/// Objects that fail.
const MANY: usize = 50;
/// Workloads of the other namespace in each part of the run: the slowest is the 99th percentile.
const MEASURED: usize = 30;
/// Slower than twice the quiet figure is delayed by others only beyond this. Programs and servers of a test share few
/// processors, which objects of 1.5 MB keep busy for seconds; an open circuit breaker costs 15 s and more.
const GRANULARITY: Duration = Duration::from_secs(10);

/// Fifty Workloads behind a webhook of the hub that answers 500, then fifty that are too large for etcd.
pub(crate) async fn beside_others(environment: &Environment, namespace: &str) -> Result<()> {
    let short: String = namespace.chars().take(50).collect();
    let noisy = Tenant::new(&environment.lab, P1, &format!("{short}-a")).await?;
    let other = Tenant::new(&environment.lab, P1, &format!("{short}-b")).await?;
    // Its hub namespace is there before anything is measured.
    carried(&other, "first").await?;
    noisy.workload("first", &[("us", &["LHR"], 1)]).await?;
    noisy.in_hub(WORKLOAD_DEPLOYMENT, "first-us-lhr", |_| Ok(())).await?;
    let quiet = slowest(&other, "quiet").await?;

    let webhook = FailingWebhook::start(&environment.lab, environment.lab.hub().await?, &noisy.below).await?;
    for number in 0..MANY {
        noisy
            .workload(&format!("failing-{number}"), &[("us", &["LHR"], 1)])
            .await?;
    }
    eventually("the webhook is called", SOON, async || was_called(environment).await).await?;
    let beside_failing = slowest(&other, "failing").await?;
    let names = noisy.names_in_hub(WORKLOAD_DEPLOYMENT).await?;
    ensure!(
        names == ["first-us-lhr"],
        "the webhook has let something through: {names:?}"
    );
    webhook.end().await?;
    for number in 0..MANY {
        noisy.delete(WORKLOAD, &format!("failing-{number}")).await?;
    }

    let size = largest(&noisy.project, &noisy.namespace, "LHR").await?;
    for number in 0..MANY {
        let name = format!("large-{number}");
        create_large(&noisy.project, &noisy.namespace, &name, "LHR", size).await?;
    }
    let beside_large = slowest(&other, "large").await?;
    eprintln!(
        "noisy: {quiet:?} quiet, {beside_failing:?} beside a webhook that fails, {beside_large:?} beside {size} bytes"
    );
    for number in 0..MANY {
        noisy.delete(WORKLOAD, &format!("large-{number}")).await?;
    }
    for found in [beside_failing, beside_large] {
        ensure!(
            found <= (2 * quiet).max(GRANULARITY),
            "{found:?}, and {quiet:?} without the others"
        );
    }
    Ok(())
}

/// The longest time from a Workload to its WorkloadDeployment in the hub.
async fn slowest(tenant: &Tenant, part: &str) -> Result<Duration> {
    let mut times = Vec::new();
    for number in 0..MEASURED {
        times.push(carried(tenant, &format!("{part}-{number}")).await?);
    }
    times.sort();
    let (middle, slowest) = (times.get(MEASURED / 2), times.last().context("nothing was measured")?);
    eprintln!("noisy: {part}: {middle:?} in the middle, {slowest:?} at most");
    Ok(*slowest)
}

async fn carried(tenant: &Tenant, name: &str) -> Result<Duration> {
    let since = Instant::now();
    tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
    let deployment = format!("{name}-us-lhr");
    let is_there = async {
        let namespace = Some(tenant.below.as_str());
        while tenant
            .hub
            .get(WORKLOAD_DEPLOYMENT, namespace, &deployment)
            .await?
            .is_none()
        {
            sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    timeout(SOON, is_there).await.context("it is not carried")??;
    Ok(since.elapsed())
}

/// The controller has met the webhook.
async fn was_called(environment: &Environment) -> Result<()> {
    let log = environment.controller.lock().await.log();
    ensure!(log.contains("failed calling webhook"), "it was not");
    Ok(())
}
