//! What the demo plays on: the planes; in each cell the provider of Pods and a node, whose containers KWOK plays or which are real;
//! and stand-ins for what is outside the project: milo's gateway, the quota of the project, and network services.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use popcell_api::kind;
use popcell_test_support::definitions::{define, ready_project};
use popcell_test_support::stand_ins::{Budget, IN_CELLS, IN_PROJECTS, Networks, ON_HUB, Quota};
use popcell_test_support::{Gateway, Lab, Nodes, Plane, PodProvider, PodProviderSpec, Webhook, objects};
use tempfile::TempDir;

use super::{CITIES, MILO, NAMESPACE, PROJECT};

/// The planes, and what is where on them.
pub(super) struct Scene {
    pub(super) lab: Lab,
    pub(super) webhook: Webhook,
    pub(super) project: Plane,
    pub(super) hub: Plane,
    /// The namespace of the hub and of the cells that stands for the project's.
    pub(super) hub_namespace: String,
    pub(super) containers: Containers,
}

/// Who runs the containers of Pods.
#[derive(Clone, Copy)]
pub(super) enum Containers {
    /// No program: KWOK reports that they run, after this time.
    Played(Duration),
    /// Kubelets.
    Real,
}

impl Scene {
    /// Makes a project of a plain API server: our kinds, a namespace with a network, and the cities that it may use.
    pub(super) async fn prepare(lab: Lab, webhook: Webhook, containers: Containers) -> Result<Self> {
        let project = lab.plane(PROJECT).await?;
        define(&project, &IN_PROJECTS).await?;
        define(&lab.hub().await?, &ON_HUB).await?;
        let namespace = project.apply(&objects::namespace(NAMESPACE)).await?;
        let uid = namespace.metadata.uid.context("a Namespace without uid")?;
        project.apply(&objects::network(NAMESPACE, "default")).await?;
        for city in &CITIES {
            project.apply(&objects::location_binding(city.code)).await?;
        }
        println!(
            "project: network default, and locations in {}",
            CITIES.map(|city| city.code).join(" and ")
        );
        Ok(Self {
            hub: lab.hub().await?,
            hub_namespace: objects::hub_namespace_name(&uid),
            lab,
            webhook,
            project,
            containers,
        })
    }
}

/// Instances that the story asks for in one city at most, and those that the project may have.
const MOST_OF_A_CITY: usize = 3;
const BUDGET: i64 = 7;

/// They end with this value.
pub(super) struct Surroundings {
    milo: PathBuf,
    _gateway: Gateway,
    _quota: Quota,
    _cells: Vec<(PodProvider, Nodes, Networks)>,
    _files: TempDir,
}

impl Surroundings {
    /// Starts all of them.
    pub(super) async fn start(lab: &Lab, containers: Containers) -> Result<Self> {
        let milo = lab.plane(MILO).await?;
        define(&milo, &[kind::PROJECT]).await?;
        ready_project(&milo, PROJECT).await?;
        // Each thinks that it has all processors of the machine; an Instance needs one.
        let nodes = MOST_OF_A_CITY.div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
        let mut cells = Vec::new();
        for city in &CITIES {
            let cell = lab.plane(city.member).await?;
            define(&cell, &IN_CELLS).await?;
            // Where a cell writes down which projects hold its claims.
            cell.apply(&objects::namespace("compute-system")).await?;
            cell.apply(&objects::location(city.code)).await?;
            let nodes = match containers {
                Containers::Played(pace) => Nodes::start(&cell, pace).await?,
                Containers::Real => Nodes::of_containers(&cell, nodes).await?,
            };
            let provider = PodProvider::start(PodProviderSpec::of(cell.kubeconfig()).without_registry()).await?;
            println!("provider: ready, Instances of {} become Pods", city.member);
            cells.push((provider, nodes, Networks::start(cell.client())));
        }
        let gateway = Gateway::of_planes(lab, MILO, &[PROJECT]).await?;
        let files = tempfile::tempdir().context("failed to make a directory")?;
        println!("project: a budget of {BUDGET} instances");
        Ok(Self {
            milo: gateway.kubeconfig(files.path(), None)?,
            _quota: Quota::start(lab.plane(PROJECT).await?.client(), Budget::instances(BUDGET)),
            _gateway: gateway,
            _cells: cells,
            _files: files,
        })
    }

    /// A kubeconfig of milo, below which projects are.
    pub(super) fn milo(&self) -> &Path {
        &self.milo
    }
}
