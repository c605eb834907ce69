//! What is outside the project, stood in for: milo's gateway, the quota of the project, and in each cell network services
//! and an infrastructure provider.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use popcell_api::kind;
use popcell_test_support::definitions::{define, ready_project};
use popcell_test_support::stand_ins::{Budget, IN_CELLS, Networks, Pace, Provider, Quota};
use popcell_test_support::{Gateway, Lab, objects};
use tempfile::TempDir;

use super::{CITIES, MILO, PROJECT};

/// Instances that the project may have: as many as the story asks for at most.
const BUDGET: i64 = 6;

/// They end with this value.
pub(super) struct Surroundings {
    milo: PathBuf,
    _gateway: Gateway,
    _quota: Quota,
    _cells: Vec<(Provider, Networks)>,
    _files: TempDir,
}

impl Surroundings {
    /// Starts all of them; `pace` is the time that an instance takes to start.
    pub(super) async fn start(lab: &Lab, pace: Duration) -> Result<Self> {
        let milo = lab.plane(MILO).await?;
        define(&milo, &[kind::PROJECT]).await?;
        ready_project(&milo, PROJECT).await?;
        let mut cells = Vec::new();
        for city in &CITIES {
            let cell = lab.plane(city.member).await?;
            define(&cell, &IN_CELLS).await?;
            // Where a cell writes down which projects hold its claims.
            cell.apply(&objects::namespace("compute-system")).await?;
            cell.apply(&objects::location(city.code)).await?;
            let pace = Pace {
                start: pace,
                ..Pace::LIFELIKE
            };
            cells.push((Provider::start(cell.client(), pace), Networks::start(cell.client())));
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
