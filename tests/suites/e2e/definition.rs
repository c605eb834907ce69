//! A cell whose CustomResourceDefinition of WorkloadDeployment comes late, or is deleted and created again.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_suites::read;
use popcell_suites::steps::with_city;
use popcell_test_support::kind::{CLUSTER, CRD, WORK, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually, objects};
use serde_json::{Value, json};

use crate::cells::carries;
use crate::planes::{Deployed, NAME, gone};
use crate::reinterpret::command;

const DEFINITION: &str = "workloaddeployments.compute.datumapis.com";
const CITY: &str = "LHR";
const WATCHED: Duration = Duration::from_secs(6);

/// A test that takes the definition from the spare cell.
struct Late {
    hub: Plane,
    spare: Plane,
    definition: Value,
}

impl Late {
    async fn new(environment: &Environment) -> Result<Self> {
        let (hub, spare) = (environment.lab.hub().await?, environment.lab.plane(SPARE).await?);
        let found = serde_json::to_value(spare.expect(CRD, None, DEFINITION).await?)?;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": CRD.kind,
            "metadata": { "name": DEFINITION }, "spec": found["spec"],
        });
        Ok(Self { hub, spare, definition })
    }

    async fn take(&self) -> Result<()> {
        self.spare.delete(CRD, None, DEFINITION).await?;
        gone(&self.spare, CRD, "", DEFINITION).await?;
        self.seen(false).await
    }

    async fn give(&self) -> Result<()> {
        self.spare.apply(&self.definition).await?;
        self.seen(true).await
    }

    /// Waits until Karmada knows whether the cell has the kind.
    async fn seen(&self, expected: bool) -> Result<()> {
        eventually(&format!("Karmada sees the definition: {expected}"), SOON, async || {
            let cluster = self.hub.expect(CLUSTER, None, SPARE).await?;
            let enabled = read::at(&cluster, "/status/apiEnablements").to_string();
            ensure!(enabled.contains("\"WorkloadDeployment\"") == expected);
            Ok(())
        })
        .await
    }

    async fn asked_for(&self, namespace: &str) -> Result<()> {
        self.hub.apply(&objects::namespace(namespace)).await?;
        self.hub.apply(&objects::city_policy(namespace, CITY)).await?;
        let deployment = objects::workload_deployment(namespace, NAME, CITY, 2);
        self.hub.apply(&deployment).await.map(|_| ())
    }

    async fn arrives(&self, namespace: &str, ready: i32) -> Result<()> {
        let deployed = Deployed {
            hub: self.hub.clone(),
            cell: self.spare.clone(),
            namespace: namespace.to_owned(),
        };
        deployed.awaited_in_cell(read::replicas(2)).await?;
        deployed.report(2, ready).await?;
        deployed.mirrored(ready).await.map(|_| ())
    }

    /// Leaves the cell as it was.
    async fn end(self, namespace: &str, outcome: Result<()>) -> Result<()> {
        self.give().await?;
        self.hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
        gone(&self.spare, WORKLOAD_DEPLOYMENT, namespace, NAME).await?;
        with_city(&self.hub, SPARE, None).await?;
        outcome
    }
}

/// With the label after the definition, as docs/operations.md has it, and with the label before it.
pub(crate) async fn late(environment: &Environment, namespace: &str) -> Result<()> {
    let late = Late::new(environment).await?;
    let outcome = comes_late(environment, &late, namespace).await;
    late.end(namespace, outcome).await
}

async fn comes_late(environment: &Environment, late: &Late, namespace: &str) -> Result<()> {
    late.take().await?;
    with_city(&late.hub, SPARE, Some(CITY)).await?;
    late.asked_for(namespace).await?;
    always("it is nowhere", WATCHED, async || {
        let works = late.hub.list(WORK, Some(&format!("karmada-es-{SPARE}")), "").await?;
        let names = [namespace.to_owned()];
        ensure!(!works.iter().any(|work| carries(work, "WorkloadDeployment", &names)));
        Ok(())
    })
    .await?;
    late.give().await?;
    // Karmada's scheduler looks at a Cluster again when its labels or its spec change, not for a kind more.
    let output = command(environment, namespace)?.output()?;
    ensure!(output.status.success(), "{output:?}");
    late.arrives(namespace, 1).await.context("after reinterpret")?;

    late.hub.delete(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    gone(&late.spare, WORKLOAD_DEPLOYMENT, namespace, NAME).await?;
    with_city(&late.hub, SPARE, None).await?;
    late.take().await?;
    late.asked_for(namespace).await?;
    late.give().await?;
    with_city(&late.hub, SPARE, Some(CITY)).await?;
    late.arrives(namespace, 1).await.context("with the label last")
}

/// What was there is made again, under its name.
pub(crate) async fn back(environment: &Environment, namespace: &str) -> Result<()> {
    let late = Late::new(environment).await?;
    with_city(&late.hub, SPARE, Some(CITY)).await?;
    late.asked_for(namespace).await?;
    let outcome = comes_back(&late, namespace).await;
    late.end(namespace, outcome).await
}

async fn comes_back(late: &Late, namespace: &str) -> Result<()> {
    late.arrives(namespace, 1).await?;
    late.take().await?;
    late.give().await?;
    late.arrives(namespace, 2)
        .await
        .context("after the definition came back")
}
