//! Workloads of one project beside objects of another that no server accepts.

use anyhow::Result;
use popcell_benches::MillisSince;
use popcell_suites::failing::{FailingWebhook, create_large, largest};
use popcell_test_support::kind::WORKLOAD;

use crate::figures::Latency;
use crate::latency::{Hub, PAUSE, create, hub_namespace};
use crate::plan::Plan;
use crate::world::{CITY, World, id};

/// The project whose objects fail, and the one that is measured.
const NOISY: usize = 0;
const MEASURED: usize = 1;
pub(crate) const PROJECTS: usize = 2;

/// Three times the same: nobody fails, many objects behind a webhook of the hub that fails, many that are too large for
/// etcd.
pub(crate) async fn measure(world: &World, plan: &Plan) -> Result<Vec<Latency>> {
    let (project, server) = (id(NOISY), &world.server);
    let mut hub = Hub::watched(&world.hub).await?;
    create(server, &project, "first", CITY).await?;
    let noisy = hub_namespace(server, &project).await?;
    hub.complete(&noisy, "first", CITY).await?;

    let mut found = vec![one(world, plan, &mut hub, "quiet").await?];
    let webhook = FailingWebhook::start(&world.lab, world.hub.clone(), &noisy).await?;
    for number in 0..plan.failing {
        create(server, &project, &format!("failing-{number}"), CITY).await?;
    }
    found.push(one(world, plan, &mut hub, "beside a webhook that fails").await?);
    webhook.end().await?;
    for number in 0..plan.failing {
        server
            .delete(WORKLOAD, Some(&project), &format!("failing-{number}"))
            .await?;
    }

    let bytes = largest(server, &project, CITY).await?;
    for number in 0..plan.failing {
        create_large(server, &project, &format!("large-{number}"), CITY, bytes).await?;
    }
    found.push(one(world, plan, &mut hub, "beside objects too large for etcd").await?);
    Ok(found)
}

async fn one(world: &World, plan: &Plan, hub: &mut Hub, what: &'static str) -> Result<Latency> {
    println!("{what}");
    let project = id(MEASURED);
    let namespace = hub_namespace(&world.server, &project).await?;
    let mut times = Vec::new();
    for number in 0..plan.samples {
        let name = format!("{}-{number}", what.replace(' ', "-"));
        let sent = create(&world.server, &project, &name, CITY).await?;
        times.push(hub.deployment(&namespace, &name, CITY).await?.millis_since(sent));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Latency::of(what, PROJECTS, times))
}
