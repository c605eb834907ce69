//! Requests for each propagated object. Servers count them by flow, and our user is the only one of its flow; the controller
//! itself counts writes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_benches::Counters;
use popcell_benches::counted::grown;
use popcell_suites::steps::awaited;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::probe::requests_by_kind;
use popcell_test_support::{Controller, eventually, objects};
use serde_json::json;

use crate::environment::{CITY, Environment, id};
use crate::latency::{create, hub_namespace};
use crate::results::Requests;

const PATIENCE: Duration = Duration::from_mins(5);

/// In the first project, which has nothing else. What a project and a city need once is made before.
pub(crate) async fn measure(environment: &Environment, controller: &Controller, count: usize) -> Result<Vec<Requests>> {
    let project = id(0);
    let hub_namespace = hub_namespace(&environment.server, &project).await?;
    let names: Vec<String> = (0..count).map(|number| format!("r{number:04}")).collect();
    let mut found = Vec::new();

    create(&environment.server, &project, "warm", CITY).await?;
    awaited(
        &environment.hub,
        WORKLOAD_DEPLOYMENT,
        &hub_namespace,
        "warm-us-dfw",
        |_| Ok(()),
    )
    .await?;
    let before = Counts::at_rest(environment, controller).await?;
    for name in &names {
        create(&environment.server, &project, name, CITY).await?;
    }
    let after = reached(environment, controller, &project, count, |_| true).await?;
    found.push(after.since(&before, "a Workload with one city", count));

    let before = after;
    for name in &names {
        let name = format!("{name}-us-dfw");
        let scope = Some(hub_namespace.as_str());
        let object = environment.hub.expect(WORKLOAD_DEPLOYMENT, scope, &name).await?;
        let status = objects::cell_status(object.metadata.generation.unwrap_or(1), 1, 1);
        environment
            .hub
            .set_status(WORKLOAD_DEPLOYMENT, scope, &name, &status)
            .await?;
    }
    let after = reached(environment, controller, &project, count, |ready| ready == &json!(1)).await?;
    found.push(after.since(&before, "a status", count));

    let before = after;
    for name in &names {
        let spec = objects::workload(&project, name, &[("us", &[CITY], 2)]);
        let patch = json!({ "spec": { "placements": spec["spec"]["placements"] } });
        environment.server.merge(WORKLOAD, Some(&project), name, &patch).await?;
    }
    let after = Counts::at_rest(environment, controller).await?;
    found.push(after.since(&before, "a change of replicas", count));

    let before = after;
    for name in &names {
        environment.server.delete(WORKLOAD, Some(&project), name).await?;
    }
    eventually("all are gone", PATIENCE, async || {
        let left = environment.server.list(WORKLOAD, Some(&project), "").await?;
        let left = left.iter().filter(|one| is_ours(one.metadata.name.as_deref())).count();
        ensure!(left == 0, "{left} are left");
        Ok(())
    })
    .await?;
    let after = Counts::at_rest(environment, controller).await?;
    found.push(after.since(&before, "a deletion", count));
    Ok(found)
}

fn is_ours(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.starts_with('r'))
}

/// Waits until so many WorkloadDeployments of the project have a status that fits, and then for rest.
async fn reached(
    environment: &Environment,
    controller: &Controller,
    project: &str,
    count: usize,
    fits: impl Fn(&serde_json::Value) -> bool,
) -> Result<Counts> {
    eventually("all are carried", PATIENCE, async || {
        let all = environment.server.list(WORKLOAD_DEPLOYMENT, Some(project), "").await?;
        let there = all.iter().filter(|one| is_ours(one.metadata.name.as_deref()));
        let shown = there.filter_map(|one| one.data.pointer("/status/readyReplicas"));
        let fitting = shown.filter(|ready| fits(ready)).count();
        ensure!(fitting == count, "{fitting} of {count}");
        Ok(())
    })
    .await?;
    Counts::at_rest(environment, controller).await
}

/// What our program does, and what else the projects' server counts.
struct Counts {
    ours: Counters,
    seen: BTreeMap<String, f64>,
}

impl Counts {
    /// Once neither we nor anybody for us requests anything; others may read as they like.
    async fn at_rest(environment: &Environment, controller: &Controller) -> Result<Self> {
        let planes = [("project", &environment.server), ("hub", &environment.hub)];
        Ok(Self {
            ours: Counters::at_rest(&planes, controller).await?,
            seen: seen(&environment.server.metrics().await?),
        })
    }

    fn since(&self, before: &Self, what: &'static str, objects: usize) -> Requests {
        Requests {
            what,
            objects,
            effort: self.ours.since(&before.ours, objects),
            seen: grown(&self.seen, &before.seen, objects),
        }
    }
}

/// Reads of single objects and writes of events that a server has had, by verb and resource.
fn seen(page: &str) -> BTreeMap<String, f64> {
    let mut found = requests_by_kind(page);
    found.retain(|request, _| {
        let (verb, resource) = request.split_once(' ').unwrap_or_default();
        (verb == "GET" || resource == "events") && !matches!(resource, "" | "leases")
    });
    found
}
