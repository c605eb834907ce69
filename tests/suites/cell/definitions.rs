//! CustomResourceDefinitions that are deleted in a cell whose controllers run, and created again.
//!
//! Who deletes a definition deletes its objects. Networks that are lost so stop nothing that runs. Instances that are lost
//! are made again in order, with the claims and copies that they had. A WorkloadDeployment that is lost cannot be
//! distinguished from one that was deleted: its Instances end with it, and all of it is there again when Karmada has
//! brought it again.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::kind::{NETWORK_BINDING, RESOURCE_CLAIM, SUBNET_CLAIM};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::{taken_away, uids_in};
use popcell_test_support::kind::{INSTANCE, Kind, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
const NAMES: [&str; 3] = ["web-us-dfw-0", "web-us-dfw-1", "web-us-dfw-2"];
/// How long a definition is unreachable: watches restart several times.
const AWAY: Duration = Duration::from_secs(5);
/// Passes in that time that are no storm.
const BOUNDED: f64 = 150.0;

/// Definitions that are unreachable.
struct Taken {
    kinds: Vec<Kind>,
    definitions: Vec<Value>,
}

impl Taken {
    async fn from(cell: &Plane, kinds: &[Kind]) -> Result<Self> {
        let mut definitions = Vec::new();
        for kind in kinds {
            definitions.push(taken_away(cell, *kind).await?);
        }
        Ok(Self {
            kinds: kinds.to_vec(),
            definitions,
        })
    }

    async fn give_back(self, cell: &Plane) -> Result<()> {
        for definition in &self.definitions {
            cell.apply(definition).await?;
        }
        for kind in self.kinds {
            eventually(&format!("{} is served", kind.kind), SOON, async || {
                cell.list(kind, None, "").await
            })
            .await?;
        }
        Ok(())
    }
}

/// While these definitions are unreachable `check` holds, and there are few reconciles; then they are there again.
async fn without(
    environment: &Environment,
    cell: &Plane,
    kinds: &[Kind],
    check: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let taken = Taken::from(cell, kinds).await?;
    let before = reconciles(environment).await?;
    let outcome = always("what the others hold stays", AWAY, check).await;
    let counted = reconciles(environment).await? - before;
    taken.give_back(cell).await?;
    outcome?;
    eprintln!(
        "definitions: {counted} reconciles in {AWAY:?} without {}",
        kinds[0].kind
    );
    ensure!(counted < BOUNDED, "a storm of {counted} reconciles in {AWAY:?}");
    environment.cells[0].lock().await.expect_alive()
}

async fn reconciles(environment: &Environment) -> Result<f64> {
    let controller = environment.cells[0].lock().await;
    controller.metric("controller_runtime_reconcile_total", &[]).await
}

pub(crate) async fn restored(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    let pid = environment.cells[0].lock().await.pid();
    tenant.runs("web", CITY, 2).await?;
    networks(environment, &tenant, &cell).await?;
    instances(environment, &tenant, &cell).await?;
    deployments(environment, &tenant, &cell).await?;
    ensure!(environment.cells[0].lock().await.pid() == pid, "it was restarted");
    // Karmada deletes nothing in a cell that its cache does not have, and a status comes from the same cache.
    tenant.scale("web", CITY, 2).await?;
    tenant.shown("web-us-dfw", 2).await?;
    tenant.clean("web").await?;
    tenant.claims_are(&[]).await
}

async fn networks(environment: &Environment, tenant: &Tenant, cell: &Plane) -> Result<()> {
    let before = tenant.instances(cell).await?;
    let runs_on = async || {
        let now = tenant.instances(cell).await?;
        ensure!(now == before, "{now:?}, not {before:?}");
        tenant.all_ready(cell, &NAMES[..2]).await
    };
    without(environment, cell, &[NETWORK_BINDING, SUBNET_CLAIM], runs_on).await?;
    // A new one finds its network, and the others have theirs again.
    tenant.scale("web", CITY, 3).await?;
    tenant.ready("web", 3).await?;
    ensure!(!cell.list(NETWORK_BINDING, Some(&tenant.below), "").await?.is_empty());
    let now = tenant.instances(cell).await?;
    ensure!(before.iter().all(|one| now.contains(one)), "{now:?}, not {before:?}");
    Ok(())
}

async fn instances(environment: &Environment, tenant: &Tenant, cell: &Plane) -> Result<()> {
    let before = tenant.instances(cell).await?;
    eventually("there is a copy of each", SOON, async || {
        let copies = uids_in(&tenant.hub, INSTANCE, &tenant.below).await?;
        ensure!(copies.len() == NAMES.len(), "{copies:?}");
        Ok(())
    })
    .await?;
    let afar = async || -> Result<_> {
        Ok((
            uids_in(&tenant.hub, INSTANCE, &tenant.below).await?,
            uids_in(&tenant.project, RESOURCE_CLAIM, &tenant.namespace).await?,
        ))
    };
    let kept = afar().await?;
    let same = async || {
        let now = afar().await?;
        ensure!(now == kept, "{now:?}, not {kept:?}");
        Ok(())
    };
    without(environment, cell, &[INSTANCE], same).await?;
    tenant.all_are_others(cell, &before).await?;
    tenant.ready("web", 3).await?;
    tenant.all_ready(cell, &NAMES).await?;
    same().await
}

async fn deployments(environment: &Environment, tenant: &Tenant, cell: &Plane) -> Result<()> {
    without(environment, cell, &[WORKLOAD_DEPLOYMENT], async || Ok(())).await?;
    tenant
        .in_cell(cell, "web-us-dfw", |one| {
            read::expect_at(one, "/status/readyReplicas", &json!(3))
        })
        .await?;
    tenant.ready("web", 3).await?;
    let now = tenant.instances(cell).await?;
    let names: Vec<&str> = now.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(names == NAMES, "{names:?}");
    tenant.all_ready(cell, &NAMES).await?;
    tenant.claims_are(&NAMES).await?;
    eventually("there is one copy of each", SOON, async || {
        let copies = uids_in(&tenant.hub, INSTANCE, &tenant.below).await?;
        ensure!(copies.keys().eq(NAMES), "{copies:?}");
        Ok(())
    })
    .await
}
