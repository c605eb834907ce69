//! A cell whose CustomResourceDefinition of WorkloadDeployment comes late.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_suites::read;
use popcell_suites::steps::{taken_away, with_city};
use popcell_test_support::kind::{CLUSTER, WORK, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{always, eventually, objects};
use serde_json::Value;

use crate::cells::carries;
use crate::planes::{Deployed, NAME};
use crate::reinterpret::command;

const CITY: &str = "LHR";
const WATCHED: Duration = Duration::from_secs(6);

/// A WorkloadDeployment of the city of the spare cell, which may not have the definition.
struct Late {
    it: Deployed,
    definition: Value,
}

impl Late {
    /// Takes the definition away.
    async fn new(environment: &Environment, namespace: &str) -> Result<Self> {
        let (hub, spare) = (environment.lab.hub().await?, environment.lab.plane(SPARE).await?);
        Ok(Self {
            definition: taken_away(&spare, WORKLOAD_DEPLOYMENT).await?,
            it: Deployed {
                hub,
                cell: spare,
                namespace: namespace.to_owned(),
            },
        })
    }

    async fn give(&self) -> Result<()> {
        self.it.cell.apply(&self.definition).await?;
        self.seen(true).await
    }

    /// Waits until Karmada knows whether the cell has the kind.
    async fn seen(&self, expected: bool) -> Result<()> {
        eventually(&format!("Karmada sees the definition: {expected}"), SOON, async || {
            let cluster = self.it.hub.expect(CLUSTER, None, SPARE).await?;
            let enabled = read::at(&cluster, "/status/apiEnablements").to_string();
            ensure!(enabled.contains("\"WorkloadDeployment\"") == expected);
            Ok(())
        })
        .await
    }

    async fn asked_for(&self) -> Result<()> {
        let (hub, namespace) = (&self.it.hub, self.it.namespace.as_str());
        hub.apply(&objects::namespace(namespace)).await?;
        hub.apply(&objects::city_policy(namespace, CITY)).await?;
        let deployment = objects::workload_deployment(namespace, NAME, CITY, 2);
        hub.apply(&deployment).await.map(|_| ())
    }

    async fn arrives(&self) -> Result<()> {
        self.it.awaited_in_cell(read::replicas(2)).await?;
        self.it.report(2, 1).await?;
        self.it.mirrored(1).await.map(|_| ())
    }

    async fn city(&self, city: Option<&str>) -> Result<()> {
        with_city(&self.it.hub, SPARE, city).await
    }

    async fn ends(&self) -> Result<()> {
        self.it.delete().await?;
        self.it.gone_from(&self.it.cell).await?;
        self.city(None).await
    }
}

/// With the label after the definition, as docs/operations.md has it, and with the label before it.
pub(crate) async fn late(environment: &Environment, namespace: &str) -> Result<()> {
    let late = Late::new(environment, namespace).await?;
    let outcome = label_first(environment, &late).await;
    // Leaves the cell as it was.
    late.give().await?;
    late.ends().await?;
    outcome.context("with the label first")?;

    let late = Late::new(environment, namespace).await?;
    let outcome = label_last(&late).await;
    late.give().await?;
    late.ends().await?;
    outcome.context("with the label last")
}

async fn label_first(environment: &Environment, late: &Late) -> Result<()> {
    late.seen(false).await?;
    late.city(Some(CITY)).await?;
    late.asked_for().await?;
    always("it is nowhere", WATCHED, async || {
        let works = late.it.hub.list(WORK, Some(&format!("karmada-es-{SPARE}")), "").await?;
        let names = [late.it.namespace.clone()];
        ensure!(!works.iter().any(|work| carries(work, "WorkloadDeployment", &names)));
        Ok(())
    })
    .await?;
    late.give().await?;
    // Karmada's scheduler looks at a Cluster again when its labels or its spec change, not for a kind more.
    let output = command(environment, &late.it.namespace)?.output()?;
    ensure!(output.status.success(), "{output:?}");
    late.arrives().await
}

async fn label_last(late: &Late) -> Result<()> {
    late.seen(false).await?;
    late.asked_for().await?;
    late.give().await?;
    late.city(Some(CITY)).await?;
    late.arrives().await
}
