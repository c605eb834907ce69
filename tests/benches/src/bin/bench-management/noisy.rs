//! Workloads of one project beside objects of another that no server accepts.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::kind::Kind;
use popcell_benches::MillisSince;
use popcell_suites::read;
use popcell_test_support::eventually;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};

use crate::environment::{CITY, Environment, id};
use crate::failing::{create_large, failing_webhook, forget_webhook, largest};
use crate::latency::{Hub, PAUSE, create, hub_namespace};
use crate::plan::Plan;
use crate::results::Latency;

/// The project whose objects fail, and the one that is measured.
const NOISY: usize = 0;
const MEASURED: usize = 1;
pub(crate) const PROJECTS: usize = 2;
const PATIENCE: Duration = Duration::from_mins(5);

/// The same while nobody fails, while many objects come and after they have come: ordinary ones, objects behind a webhook of the hub that
/// fails, and objects that are too large for etcd. What comes costs its servers what it costs whether it fails or not.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Vec<Latency>> {
    let (project, server) = (id(NOISY), &environment.server);
    let mut hub = Hub::watched(&environment.hub).await?;
    create(server, &project, "first", CITY).await?;
    let noisy = hub_namespace(server, &project).await?;
    hub.complete(&noisy, "first", CITY).await?;

    let (all, few) = (plan.samples, plan.samples.div_ceil(4));
    let mut found = vec![one(environment, all, &mut hub, "quiet").await?];
    // What those that fail are compared with: they share the cores of the servers with whoever is measured.
    for number in 0..plan.failing {
        create(server, &project, &format!("accepted-{number}"), CITY).await?;
    }
    found.push(one(environment, few, &mut hub, "while those come that are accepted").await?);
    remove(environment, plan, "accepted").await?;
    let webhook = failing_webhook(&environment.hub, &noisy).await?;
    for number in 0..plan.failing {
        create(server, &project, &format!("failing-{number}"), CITY).await?;
    }
    found.push(one(environment, few, &mut hub, "while those of a failing webhook come").await?);
    all_say(
        environment,
        plan,
        WORKLOAD_DEPLOYMENT,
        |number| format!("failing-{number}-us-dfw"),
        "Rejected",
    )
    .await?;
    found.push(one(environment, all, &mut hub, "beside a webhook that fails").await?);
    forget_webhook(&environment.hub, &webhook).await?;
    remove(environment, plan, "failing").await?;

    let bytes = largest(server, &project, CITY).await?;
    for number in 0..plan.failing {
        create_large(server, &project, &format!("large-{number}"), CITY, bytes).await?;
    }
    found.push(one(environment, few, &mut hub, "while those too large for etcd come").await?);
    // They have no room for a status either, so nothing of them says that what they ask for was tried.
    tokio::time::sleep(Duration::from_secs(plan.settle_seconds)).await;
    found.push(one(environment, all, &mut hub, "beside objects too large for etcd").await?);
    Ok(found)
}

/// Deletes these Workloads of the noisy project, and waits for their end.
async fn remove(environment: &Environment, plan: &Plan, names: &str) -> Result<()> {
    let (project, server) = (id(NOISY), &environment.server);
    let all = || (0..plan.failing).map(|number| format!("{names}-{number}"));
    for name in all() {
        server.delete(WORKLOAD, Some(&project), &name).await?;
    }
    for name in all() {
        eventually("it is gone", PATIENCE, async || {
            ensure!(
                server.get(WORKLOAD, Some(&project), &name).await?.is_none(),
                "{name} is there"
            );
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Waits until each of these objects of the noisy project says why it is not available.
async fn all_say(
    environment: &Environment,
    plan: &Plan,
    kind: Kind,
    name: impl Fn(usize) -> String,
    reason: &str,
) -> Result<()> {
    let project = id(NOISY);
    for name in (0..plan.failing).map(name) {
        eventually("what fails says so", PATIENCE, async || {
            let object = environment.server.expect(kind, Some(&project), &name).await?;
            read::says(&object, "Available", "False", reason)
        })
        .await?;
    }
    Ok(())
}

async fn one(environment: &Environment, samples: usize, hub: &mut Hub, what: &'static str) -> Result<Latency> {
    println!("{what}");
    let project = id(MEASURED);
    let namespace = hub_namespace(&environment.server, &project).await?;
    let mut times = Vec::new();
    for number in 0..samples {
        let name = format!("{}-{number}", what.replace(' ', "-"));
        let sent = create(&environment.server, &project, &name, CITY).await?;
        times.push(hub.deployment(&namespace, &name, CITY).await?.millis_since(sent));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Latency::of(what, PROJECTS, times))
}
