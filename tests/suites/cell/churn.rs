//! Controllers of cells are killed at random moments while Workloads roll, grow, shrink, go and come under a budget.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{annotations, quota};
use popcell_suites::dice::Dice;
use popcell_suites::read;
use popcell_suites::steps::names_in;
use popcell_test_support::kind::{INSTANCE, WORKLOAD};
use popcell_test_support::stand_ins::{Budget, FAIL};
use popcell_test_support::{Plane, eventually, objects};
use serde_json::{Value, json};

use crate::environment::{CELLS, Environment, P2};
use popcell_suites::tenant::Tenant;

const KILLS: usize = 20;
const CITIES: &[&str] = &["DFW", "ORD"];
const WORKLOADS: [&str; 3] = ["w0", "w1", "w2"];
/// Less than the churn may ask for, and as much as is asked for at its end.
const BUDGET: i64 = 8;
const AT_THE_END: [(&str, i32); 3] = [("w0", 2), ("w1", 1), ("w2", 1)];
const SETTLED: Duration = Duration::from_mins(4);
/// Holds the names of a slot that nobody asks for.
const FOREIGN: &str = "w0-us-dfw-7";

/// How a Workload is rolled: what its Instances must be made from.
fn template(roll: usize) -> Value {
    json!({ "template": {
        "metadata": { "annotations": { annotations::RESTARTED_AT: format!("2026-01-01T00:00:00.{roll:03}Z") } },
        "spec": { "runtime": { "sandbox": {
            "containers": [{ "name": "web", "image": format!("registry.example.com/web:{roll}") }],
        } } },
    } })
}

/// By Workload: its last roll. Those that are not there are missing.
type Rolls = BTreeMap<&'static str, usize>;

async fn kill(environment: &Environment, dice: &mut Dice) -> Result<()> {
    for _ in 0..KILLS {
        let mut controller = environment.cells[dice.below(CELLS.len())].lock().await;
        // Half of the time it is killed while it starts.
        if dice.below(2) == 0 {
            controller.ready().await?;
        }
        tokio::time::sleep(dice.pause(100, 2000)).await;
        controller.kill()?;
        controller.launch()?;
    }
    Ok(())
}

async fn churn(tenant: &Tenant, dice: &mut Dice, rolls: &mut Rolls, over: &Cell<bool>) -> Result<()> {
    let mut roll = 1;
    while !over.get() {
        let name = WORKLOADS[dice.below(WORKLOADS.len())];
        match (rolls.get_mut(name), dice.below(8)) {
            // A predecessor may still be going: then this comes to nothing.
            (None, _) => {
                if tenant.deploy(name, CITIES, 2, |_| {}).await.is_ok() {
                    tenant.edit(name, &template(roll)).await?;
                    rolls.insert(name, roll);
                }
            }
            (Some(_), 0) => {
                tenant.delete(WORKLOAD, name).await?;
                rolls.remove(name);
            }
            (Some(last), 1..=3) => {
                *last = roll;
                tenant.edit(name, &template(roll)).await?;
            }
            (Some(_), _) => {
                let replicas = i32::try_from(1 + dice.below(3))?;
                tenant.scale(name, CITIES, replicas).await?;
            }
        }
        roll += 1;
        tokio::time::sleep(dice.pause(100, 1500)).await;
    }
    Ok(())
}

/// A copy and a claim that another client has made.
async fn foreign(tenant: &Tenant) -> Result<[DynamicObject; 2]> {
    let mut copy = objects::instance_copy(&tenant.below, "w0-us-dfw", 7, "");
    copy["metadata"]["labels"] = json!({ "theirs": "true" });
    let copy = tenant.hub.create(&copy, false).await?;
    let claim = json!({
        "apiVersion": RESOURCE_CLAIM.api_version(),
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": tenant.namespace,
            "name": format!("instance-{FOREIGN}"),
            "annotations": { FAIL: "denied" },
        },
        "spec": { "requests": [{ "resourceType": quota::INSTANCES, "amount": 1 }] },
    });
    let claim = tenant.project.create(&claim, false).await?;
    Ok([copy, claim])
}

async fn foreign_now(tenant: &Tenant) -> Result<[DynamicObject; 2]> {
    let copy = tenant.hub.expect(INSTANCE, Some(&tenant.below), FOREIGN).await?;
    let claim = format!("instance-{FOREIGN}");
    let claim = tenant
        .project
        .expect(RESOURCE_CLAIM, Some(&tenant.namespace), &claim)
        .await?;
    Ok([copy, claim])
}

fn is_untouched(now: &DynamicObject, before: &DynamicObject) -> Result<()> {
    let metadata = |one: &DynamicObject| {
        let metadata = one.metadata.clone();
        (
            metadata.uid,
            metadata.labels,
            metadata.annotations,
            metadata.owner_references,
            metadata.deletion_timestamp,
        )
    };
    ensure!(
        metadata(now) == metadata(before),
        "{:?}, not {:?}",
        now.metadata,
        before.metadata
    );
    ensure!(now.data["spec"] == before.data["spec"]);
    Ok(())
}

/// Names of all Instances that there must be, with the image that each must run.
fn wanted(rolls: &Rolls) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, replicas) in AT_THE_END {
        for (city, ordinal) in CITIES
            .iter()
            .flat_map(|city| (0..replicas).map(move |ordinal| (city, ordinal)))
        {
            let roll = rolls.get(name).copied().unwrap_or_default();
            all.insert(
                format!("{name}-us-{}-{ordinal}", city.to_lowercase()),
                format!("registry.example.com/web:{roll}"),
            );
        }
    }
    all
}

async fn settled(tenant: &Tenant, cells: &[Plane], wanted: &BTreeMap<String, String>) -> Result<()> {
    eventually("the right state", SETTLED, async || {
        let mut found = BTreeMap::new();
        for cell in cells {
            for one in cell.list(INSTANCE, Some(&tenant.below), "").await? {
                let image = read::at(&one, "/spec/runtime/sandbox/containers/0/image");
                found.insert(
                    one.metadata.name.clone().unwrap_or_default(),
                    image.as_str().unwrap_or_default().to_owned(),
                );
                read::is_ready(&one)?;
            }
        }
        ensure!(found == *wanted, "{found:?}, not {wanted:?}");
        let names = |prefix: &str| -> Vec<String> {
            let mut names: Vec<String> = wanted.keys().map(|name| format!("{prefix}{name}")).collect();
            names.push(format!("{prefix}{FOREIGN}"));
            names.sort();
            names
        };
        let copies = names_in(&tenant.hub, INSTANCE, &tenant.below).await?;
        ensure!(copies == names(""), "the hub has {copies:?}");
        let claims = names_in(&tenant.project, RESOURCE_CLAIM, &tenant.namespace).await?;
        ensure!(claims == names("instance-"), "the project has {claims:?}");
        Ok(())
    })
    .await
}

pub(crate) async fn killed(environment: &Environment, namespace: &str) -> Result<()> {
    let quota = environment.quota.lock().await;
    quota.set_budget(Budget::instances(BUDGET));
    let mut dice = Dice::seeded("cell churn");
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    let cells = [
        environment.lab.plane(CELLS[0].0).await?,
        environment.lab.plane(CELLS[1].0).await?,
    ];
    let mut rolls = Rolls::new();
    for name in WORKLOADS {
        tenant.deploy(name, CITIES, 1, |_| {}).await?;
        tenant.edit(name, &template(0)).await?;
        rolls.insert(name, 0);
    }
    // Its namespace is on the hub by then.
    tenant.ready("w0", 2).await?;
    let theirs = foreign(&tenant).await?;
    let mut moments = dice.others();
    let over = Cell::new(false);
    let kills = async {
        let killed = kill(environment, &mut moments).await;
        over.set(true);
        killed
    };
    let disturbed = tokio::join!(kills, churn(&tenant, &mut dice, &mut rolls, &over));
    for controller in &environment.cells {
        let mut controller = controller.lock().await;
        if controller.pid().is_none() {
            controller.launch()?;
        }
        controller.ready().await?;
    }
    disturbed.0.and(disturbed.1)?;
    for (name, replicas) in AT_THE_END {
        if rolls.contains_key(name) {
            tenant.scale(name, CITIES, replicas).await?;
        } else {
            tenant.gone_from_project(WORKLOAD, name).await?;
            tenant.deploy(name, CITIES, replicas, |_| {}).await?;
            tenant.edit(name, &template(0)).await?;
            rolls.insert(name, 0);
        }
    }
    settled(&tenant, &cells, &wanted(&rolls)).await?;
    for (name, replicas) in AT_THE_END {
        tenant.ready(name, replicas * 2).await?;
    }
    let audit = quota.audit();
    eprintln!("cell churn: {audit:?}");
    ensure!(audit.most.instances <= BUDGET, "{audit:?}");
    for (now, before) in foreign_now(&tenant).await?.iter().zip(&theirs) {
        is_untouched(now, before)?;
    }
    for (name, _) in AT_THE_END {
        tenant.clean(name).await?;
    }
    tenant.claims_are(&[FOREIGN]).await?;
    let claim = format!("instance-{FOREIGN}");
    tenant
        .project
        .delete(RESOURCE_CLAIM, Some(&tenant.namespace), &claim)
        .await
}
