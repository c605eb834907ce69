//! The controller is killed at random moments while WorkloadDeployments come, change and go.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::DynamicObject;
use popcell_api::{annotations, labels};
use popcell_suites::dice::Dice;
use popcell_suites::read;
use popcell_test_support::kind::{NAMESPACE, PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Controller, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::{Tenant, annotation};

const KILLS: usize = 20;
const WORKLOADS: usize = 50;
/// Cities of nobody: it is the controller that is looked at, not Karmada's members. With each Workload in all of them
/// there are 200 WorkloadDeployments.
const CITIES: [&str; 4] = ["CH1", "CH2", "CH3", "CH4"];
const SETTLED: Duration = Duration::from_mins(4);
/// What a Workload asks for.
#[derive(Clone)]
struct Wanted {
    replicas: i32,
    cities: BTreeSet<&'static str>,
}

pub(crate) async fn killed(environment: &Environment, namespace: &str) -> Result<()> {
    let mut dice = Dice::seeded("churn");
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    for city in CITIES {
        tenant.project.apply(&objects::location_binding(city)).await?;
    }
    let mut controller = environment.controller.lock().await;
    let mut wanted = BTreeMap::new();
    let mut moments = dice.others();
    let over = Cell::new(false);
    let kills = async {
        let killed = kill(&mut controller, &mut moments).await;
        over.set(true);
        killed
    };
    // The churn goes on for as long as there are kills, and ends between two changes: what was asked for is known.
    let disturbed = tokio::join!(kills, churn(&tenant, &mut dice, &mut wanted, &over));
    let disturbed = disturbed.0.and(disturbed.1);
    if controller.pid().is_none() {
        controller.start_again().await?;
    } else {
        controller.ready().await?;
    }
    disturbed?;
    eprintln!("churn: {} Workloads at the end", wanted.len());
    settled(&tenant, &wanted).await?;
    drop(controller);
    // Leaves nothing for the tests after it.
    stream::iter(wanted.keys())
        .map(async |name| tenant.delete(WORKLOAD, name).await)
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    settled(&tenant, &BTreeMap::new()).await
}

async fn kill(controller: &mut Controller, dice: &mut Dice) -> Result<()> {
    for _ in 0..KILLS {
        // Half of the time it is killed while it starts.
        if dice.below(2) == 0 {
            controller.ready().await?;
        }
        tokio::time::sleep(dice.pause(100, 2500)).await;
        controller.kill()?;
        controller.launch()?;
    }
    controller.ready().await
}

/// Changes the project until it is `over`; `wanted` is what it asks for.
async fn churn(
    tenant: &Tenant,
    dice: &mut Dice,
    wanted: &mut BTreeMap<String, Wanted>,
    over: &Cell<bool>,
) -> Result<()> {
    let all = || Wanted {
        replicas: 1,
        cities: CITIES.into(),
    };
    for number in 0..WORKLOADS {
        let name = format!("w{number:02}");
        create(tenant, &name, &all()).await?;
        wanted.insert(name, all());
    }
    while !over.get() {
        let name = format!("w{:02}", dice.below(WORKLOADS));
        match (wanted.get_mut(&name), dice.below(6)) {
            // A predecessor may still be going: then this comes to nothing.
            (None, _) => {
                if create(tenant, &name, &all()).await.is_ok() {
                    wanted.insert(name, all());
                }
            }
            (Some(_), 0) => {
                tenant.delete(WORKLOAD, &name).await?;
                wanted.remove(&name);
            }
            (Some(one), 1 | 2) => {
                let city = CITIES[dice.below(CITIES.len())];
                if !one.cities.remove(city) || one.cities.is_empty() {
                    one.cities.insert(city);
                }
                place(tenant, &name, one).await?;
            }
            (Some(one), _) => {
                one.replicas = i32::try_from(1 + dice.below(9))?;
                place(tenant, &name, one).await?;
            }
        }
        tokio::time::sleep(dice.pause(20, 200)).await;
    }
    Ok(())
}

async fn create(tenant: &Tenant, name: &str, wanted: &Wanted) -> Result<()> {
    let cities: Vec<&str> = wanted.cities.iter().copied().collect();
    tenant
        .workload(name, &[("p", &cities, wanted.replicas)])
        .await
        .map(|_| ())
}

async fn place(tenant: &Tenant, name: &str, wanted: &Wanted) -> Result<()> {
    let cities: Vec<&str> = wanted.cities.iter().copied().collect();
    tenant.place(name, &[("p", &cities, wanted.replicas)]).await
}

/// Exactly what is asked for is in the project, in one hub namespace, and has its policies.
async fn settled(tenant: &Tenant, wanted: &BTreeMap<String, Wanted>) -> Result<()> {
    let expected: BTreeMap<String, i32> = wanted
        .iter()
        .flat_map(|(name, one)| {
            let names = one
                .cities
                .iter()
                .map(move |city| format!("{name}-p-{}", city.to_lowercase()));
            names.map(|name| (name, one.replicas))
        })
        .collect();
    let policies: BTreeSet<String> = wanted
        .values()
        .flat_map(|one| one.cities.iter().map(|city| objects::city_policy_name(city)))
        .collect();
    eventually("the right state", SETTLED, async || {
        let mine = tenant
            .project
            .list(WORKLOAD_DEPLOYMENT, Some(&tenant.namespace), "")
            .await?;
        let carried = tenant.hub.list(WORKLOAD_DEPLOYMENT, Some(&tenant.below), "").await?;
        same(&replicas(&mine)?, &expected, "the project")?;
        same(&replicas(&carried)?, &expected, "the hub")?;
        let uids = |object: &DynamicObject| (object.metadata.name.clone(), read::uid(object));
        let stamped = |object: &DynamicObject| {
            let uid = annotation(object, annotations::UPSTREAM_UID);
            (object.metadata.name.clone(), uid.to_owned())
        };
        let (sources, stamps): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (mine.iter().map(uids).collect(), carried.iter().map(stamped).collect());
        ensure!(sources == stamps, "a deployment of the hub is of another uid");
        let found: BTreeSet<String> = tenant.names_in_hub(PROPAGATION_POLICY).await?.into_iter().collect();
        ensure!(found == policies, "policies are {found:?}, not {policies:?}");
        let selector = format!("{}={}", labels::UPSTREAM_NAMESPACE, tenant.namespace);
        let namespaces = tenant.hub.list(NAMESPACE, None, &selector).await?;
        ensure!(namespaces.len() == 1, "{} hub namespaces", namespaces.len());
        Ok(())
    })
    .await
}

fn replicas(objects: &[DynamicObject]) -> Result<BTreeMap<String, i32>> {
    let one = |object: &DynamicObject| {
        let count = read::at(object, "/spec/scaleSettings/minReplicas").as_i64();
        let name = object.metadata.name.clone().context("no name")?;
        Ok((name, i32::try_from(count.context("no replicas")?)?))
    };
    objects.iter().map(one).collect()
}

fn same(found: &BTreeMap<String, i32>, expected: &BTreeMap<String, i32>, plane: &str) -> Result<()> {
    let differ = |left: &BTreeMap<String, i32>, right: &BTreeMap<String, i32>| {
        let entries = left.iter().filter(|(name, count)| right.get(*name) != Some(count));
        json!(entries.collect::<BTreeMap<_, _>>())
    };
    ensure!(
        found == expected,
        "{plane} has {} of {}; it has {} and lacks {}",
        found.len(),
        expected.len(),
        differ(found, expected),
        differ(expected, found)
    );
    Ok(())
}
