//! One namespace of the project, and what stands for it on hub and cell.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone, uids_in};
use popcell_suites::tenant::Tenant;
use popcell_test_support::kind::{INSTANCE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, always, eventually};
use serde_json::json;

use crate::environment::{CITY, Environment, P1};

/// How long to watch for what must not happen: many passes.
const WATCHED: Duration = Duration::from_secs(4);

type Uids = BTreeMap<String, String>;

/// What must outlive a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alive {
    pub(crate) instances: Uids,
    pub(crate) claims: Uids,
    pub(crate) deployments: Uids,
    /// Projections, in the project.
    pub(crate) shown: Uids,
}

pub(crate) struct Fleet {
    pub(crate) tenant: Tenant,
    pub(crate) cell: Plane,
}

impl Fleet {
    /// Makes the namespace in the project.
    pub(crate) async fn new(environment: &Environment, namespace: &str) -> Result<Self> {
        Ok(Self {
            tenant: Tenant::new(&environment.lab, P1, namespace).await?,
            cell: environment.lab.plane(DFW).await?,
        })
    }

    /// Makes a Workload, and waits until all of it is ready.
    pub(crate) async fn runs(&self, name: &str, replicas: i32) -> Result<()> {
        self.tenant.runs(name, CITY, replicas).await
    }

    pub(crate) async fn scaled(&self, name: &str, replicas: i32) -> Result<()> {
        self.tenant.scale(name, CITY, replicas).await?;
        self.tenant.ready(name, replicas).await.map(drop)
    }

    /// Rolls a Workload, and waits until it is done.
    pub(crate) async fn rolled(&self, name: &str, replicas: i32) -> Result<()> {
        self.tenant.restart(name).await?;
        self.tenant.ready(name, replicas).await.map(drop)
    }

    /// Waits until the cell has what the project says of a Workload, and all of it is ready there.
    pub(crate) async fn settled(&self, name: &str, replicas: i32) -> Result<()> {
        let name = format!("{name}-us-dfw");
        let wanted = self
            .tenant
            .project
            .expect(WORKLOAD_DEPLOYMENT, Some(&self.tenant.namespace), &name)
            .await?;
        let generation = wanted.metadata.generation.unwrap_or_default().to_string();
        awaited(&self.cell, WORKLOAD_DEPLOYMENT, &self.tenant.below, &name, |object| {
            let annotations = object.metadata.annotations.as_ref();
            let reported = annotations.and_then(|all| all.get(popcell_api::annotations::UPSTREAM_GENERATION));
            ensure!(reported == Some(&generation), "{reported:?}, not {generation}");
            for field in ["readyReplicas", "updatedReplicas", "replicas"] {
                read::expect_at(object, &format!("/status/{field}"), &json!(replicas))?;
            }
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
        .map(|_| ())
    }

    /// Deletes in the cell what came back there with it, as an operator does.
    pub(crate) async fn deleted_in_cell(&self, name: &str) -> Result<()> {
        let deployment = format!("{name}-us-dfw");
        self.cell
            .delete(WORKLOAD_DEPLOYMENT, Some(&self.tenant.below), &deployment)
            .await?;
        gone(&self.cell, WORKLOAD_DEPLOYMENT, &self.tenant.below, &deployment).await
    }

    /// Deletes a Workload and waits until nothing of it is left anywhere.
    pub(crate) async fn deleted(&self, name: &str) -> Result<()> {
        self.tenant.delete(WORKLOAD, name).await?;
        self.nowhere(name).await
    }

    /// Deletes on the hub what came back there with it, as an operator does whom `popcell orphans` tells of it.
    pub(crate) async fn reclaimed(&self, environment: &Environment, name: &str) -> Result<()> {
        eventually("it is told as an orphan", SOON, async || {
            let orphans = environment
                .management
                .metric("popcell_orphans", &["kind=\"WorkloadDeployment\""])
                .await?;
            ensure!(orphans > 0.5, "{orphans}");
            Ok(())
        })
        .await?;
        let deployment = format!("{name}-us-dfw");
        self.tenant
            .hub
            .delete(WORKLOAD_DEPLOYMENT, Some(&self.tenant.below), &deployment)
            .await?;
        self.tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, &deployment).await
    }

    /// Waits until nothing of a Workload is left anywhere.
    pub(crate) async fn nowhere(&self, name: &str) -> Result<()> {
        let deployment = format!("{name}-us-dfw");
        self.tenant.gone_from_project(WORKLOAD, name).await?;
        self.tenant.gone_from_project(WORKLOAD_DEPLOYMENT, &deployment).await?;
        self.tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, &deployment).await?;
        gone(&self.cell, WORKLOAD_DEPLOYMENT, &self.tenant.below, &deployment).await?;
        eventually("nothing of it is left", SOON, async || {
            let now = self.alive().await?;
            let left = now.of(name);
            ensure!(left == Alive::default(), "{left:?}");
            Ok(())
        })
        .await
    }

    pub(crate) async fn alive(&self) -> Result<Alive> {
        Ok(Alive {
            instances: uids_in(&self.cell, INSTANCE, &self.tenant.below).await?,
            claims: uids_in(&self.tenant.project, RESOURCE_CLAIM, &self.tenant.namespace).await?,
            deployments: uids_in(&self.tenant.hub, WORKLOAD_DEPLOYMENT, &self.tenant.below).await?,
            shown: uids_in(&self.tenant.project, INSTANCE, &self.tenant.namespace).await?,
        })
    }

    /// Fails unless all of this is there, as it was, while it is watched.
    pub(crate) async fn stays(&self, what: &str, expected: &Alive) -> Result<()> {
        always(what, WATCHED, async || {
            let now = self.alive().await?;
            now.holds(expected)
        })
        .await
    }

    /// The hub has a copy of each Instance of the cell: it has what it should have.
    pub(crate) async fn is_copied(&self) -> Result<()> {
        eventually("the hub has a copy of each Instance", SOON, async || {
            let copies = uids_in(&self.tenant.hub, INSTANCE, &self.tenant.below).await?;
            let instances = uids_in(&self.cell, INSTANCE, &self.tenant.below).await?;
            ensure!(
                instances.keys().all(|name| copies.contains_key(name)),
                "{instances:?}, {copies:?}"
            );
            Ok(())
        })
        .await
    }

    /// The copies of the Instances on the hub, and their projections, are those of the cell.
    pub(crate) async fn is_shown(&self) -> Result<()> {
        eventually("hub and project show the Instances of the cell", SOON, async || {
            let names = async |plane: &Plane, namespace: &str| -> Result<Vec<String>> {
                Ok(uids_in(plane, INSTANCE, namespace).await?.into_keys().collect())
            };
            let cell = names(&self.cell, &self.tenant.below).await?;
            let (hub, project) = (
                names(&self.tenant.hub, &self.tenant.below).await?,
                names(&self.tenant.project, &self.tenant.namespace).await?,
            );
            ensure!(cell == hub && cell == project, "{cell:?}, {hub:?}, {project:?}");
            let claims = uids_in(&self.tenant.project, RESOURCE_CLAIM, &self.tenant.namespace).await?;
            let claims: Vec<String> = claims.into_keys().collect();
            let wanted: Vec<String> = cell.iter().map(|name| format!("instance-{name}")).collect();
            ensure!(claims == wanted, "{claims:?}, not {wanted:?}");
            Ok(())
        })
        .await
    }
}

impl Alive {
    /// What of it is of a Workload.
    pub(crate) fn of(&self, workload: &str) -> Self {
        let pick = |uids: &Uids, prefix: &str| {
            let mut uids = uids.clone();
            uids.retain(|name, _| name.starts_with(&format!("{prefix}{workload}-us-dfw")));
            uids
        };
        Self {
            instances: pick(&self.instances, ""),
            claims: pick(&self.claims, "instance-"),
            deployments: pick(&self.deployments, ""),
            shown: pick(&self.shown, ""),
        }
    }

    /// Fails unless all of `expected` is in it.
    pub(crate) fn holds(&self, expected: &Self) -> Result<()> {
        for (what, now, expected) in [
            ("Instances", &self.instances, &expected.instances),
            ("claims", &self.claims, &expected.claims),
            ("WorkloadDeployments", &self.deployments, &expected.deployments),
            ("projections", &self.shown, &expected.shown),
        ] {
            let lost: Vec<_> = expected
                .iter()
                .filter(|(name, uid)| now.get(*name) != Some(*uid))
                .collect();
            ensure!(lost.is_empty(), "{what} are not what they were: {lost:?}; now {now:?}");
        }
        Ok(())
    }
}
