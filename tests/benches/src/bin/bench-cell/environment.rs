//! A cell, its hub and a project on real servers, and the controller of the cell as its shipped user.
//!
//! WorkloadDeployments are put into the cell and on the hub as Karmada and the management plane leave them there, so that
//! nothing is measured but the cell.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::api::{DynamicObject, PostParams};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{annotations, labels, names};
use popcell_benches::{FLOW, for_each};
use popcell_suites::definitions;
use popcell_suites::read;
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::{Budget, Networks, Pace, Provider, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, Gateway, Lab, LabSpec, Member, Plane, eventually, manifests, objects, users,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The cell, and its Cluster.
pub(crate) const CELL: &str = "dfw";
pub(crate) const CITY: &str = "DFW";
/// The namespace of everything in cell and hub.
pub(crate) const BELOW: &str = "ns-bench";
/// How servers refuse what a user has no right to, and what a policy forbids.
pub(crate) const REFUSALS: [&str; 2] = [" cannot ", "ValidatingAdmissionPolicy"];
pub(crate) const PATIENCE: Duration = Duration::from_mins(15);

const INFRA: &str = "infra";
const ID: &str = "p1";
/// The namespace in the project.
pub(crate) const ABOVE: &str = "bench";
const PLENTY: i64 = 1_000_000;

/// The planes, and who works on them.
pub(crate) struct Environment {
    pub(crate) cell: Plane,
    pub(crate) hub: Plane,
    pub(crate) project: Plane,
    pub(crate) lab: Lab,
    pub(crate) files: TempDir,
    spec: ControllerSpec,
    // Held: it ends with its value.
    _gateway: Gateway,
}

impl Environment {
    /// Starts servers; nobody works on them yet.
    pub(crate) async fn start() -> Result<Self> {
        let program = popcell_benches::controller()?;
        let spec = LabSpec::karmada().member(Member::push(CELL).city(CITY));
        let lab = Lab::start(&spec.plane(INFRA).plane(ID)).await?;
        let (infra, project) = (lab.plane(INFRA).await?, lab.plane(ID).await?);
        let (cell, hub) = (lab.plane(CELL).await?, lab.hub().await?);
        definitions::discovery(&infra, &[ID]).await?;
        definitions::project(&project, &[CELL], &[]).await?;
        project.apply(&objects::namespace(ABOVE)).await?;
        definitions::cell(&cell, CITY).await?;
        let mut below = objects::namespace(BELOW);
        below["metadata"]["labels"] = json!({
            labels::UPSTREAM_CLUSTER_NAME: format!("{}{ID}", names::PROJECT_LABEL_PREFIX),
            labels::UPSTREAM_NAMESPACE: ABOVE,
        });
        for plane in [&cell, &hub] {
            plane.apply(&below).await?;
        }
        // As Karmada brings it.
        cell.apply(&objects::network(BELOW, "default")).await?;

        let files = tempfile::tempdir().context("failed to make a directory")?;
        let user = users::cell(CELL);
        users::cells_on_hub(&hub, &[CELL]).await?;
        let home = users::at_home(&lab, CELL, manifests::CELL, files.path()).await?;
        let to_hub = users::of_cell(&lab, CELL).await?;
        let gateway = Gateway::of_planes(&lab, INFRA, &[ID]).await?;
        let milo = gateway.kubeconfig(files.path(), Some(&user))?;
        for (plane, user) in [(&cell, users::USER), (&hub, &user), (&project, &user)] {
            users::count(plane, FLOW, user, &["*"]).await?;
        }
        Ok(Self {
            spec: ControllerSpec::cell(&home, CELL, &to_hub, &milo).program(program),
            cell,
            hub,
            project,
            lab,
            files,
            _gateway: gateway,
        })
    }

    /// Starts a controller.
    pub(crate) async fn controller(&self) -> Result<Controller> {
        Controller::start(self.spec.clone()).await
    }

    /// The planes by their names in results.
    pub(crate) fn planes(&self) -> [(&'static str, &Plane); 3] {
        [("cell", &self.cell), ("hub", &self.hub), ("project", &self.project)]
    }

    /// Makes a WorkloadDeployment as Karmada brings it, and answers when the cell's was sent.
    pub(crate) async fn deployment(&self, name: &str, replicas: i32) -> Result<Instant> {
        let mut wanted = objects::workload_deployment(BELOW, name, CITY, replicas);
        let above = create(&self.hub, &wanted).await?;
        objects::annotate(&mut wanted, annotations::RESOURCE_TEMPLATE_UID, &read::uid(&above));
        let sent = Instant::now();
        create(&self.cell, &wanted).await?;
        Ok(sent)
    }

    /// Deletes every WorkloadDeployment, and waits until nothing of it is left.
    pub(crate) async fn clean(&self) -> Result<()> {
        for plane in [&self.cell, &self.hub] {
            let found = plane.list(WORKLOAD_DEPLOYMENT, Some(BELOW), "").await?;
            let names = found.into_iter().filter_map(|one| one.metadata.name);
            for_each(names, async |name| {
                plane.delete(WORKLOAD_DEPLOYMENT, Some(BELOW), &name).await
            })
            .await?;
        }
        eventually("everything is gone", PATIENCE, async || {
            let kinds = [
                (&self.cell, WORKLOAD_DEPLOYMENT, BELOW),
                (&self.cell, INSTANCE, BELOW),
                (&self.hub, INSTANCE, BELOW),
                (&self.project, RESOURCE_CLAIM, ABOVE),
            ];
            for (plane, kind, namespace) in kinds {
                let left = plane.list(kind, Some(namespace), "").await?.len();
                ensure!(left == 0, "{left} {} on {}", kind.kind, plane.name());
            }
            Ok(())
        })
        .await
    }

    /// Ends all processes.
    pub(crate) async fn end(self) -> Result<()> {
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

/// Stand-ins that take no time of their own. They end with this value.
pub(crate) struct StandIns {
    /// `None` where another program answers in its place.
    pub(crate) provider: Option<Provider>,
    /// The same.
    pub(crate) quota: Option<Quota>,
    _networks: Networks,
}

impl StandIns {
    pub(crate) fn start(environment: &Environment) -> Self {
        Self {
            provider: Some(Provider::start(environment.cell.client(), Pace::INSTANT)),
            quota: Some(quota(environment)),
            _networks: Networks::start(environment.cell.client()),
        }
    }
}

/// A quota system with room for everything.
pub(crate) fn quota(environment: &Environment) -> Quota {
    Quota::start(environment.project.client(), Budget::instances(PLENTY))
}

/// Creates an object of ours by one request.
async fn create(plane: &Plane, object: &Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone()).context("failed to make an object")?;
    let created = plane
        .api(WORKLOAD_DEPLOYMENT, Some(BELOW))
        .create(&PostParams::default(), &object)
        .await;
    created.with_context(|| format!("failed to create {:?} on {}", object.metadata.name, plane.name()))
}

/// The kubeconfig of the cell's administrator.
pub(crate) fn admin(environment: &Environment) -> Result<PathBuf> {
    Ok(environment.lab.kubeconfig(CELL)?.to_owned())
}
