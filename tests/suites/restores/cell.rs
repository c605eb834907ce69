//! A cell that is set back.

use anyhow::Result;
use popcell_suites::environment::DFW;

use crate::environment::Environment;
use crate::fleet::Fleet;

pub(crate) async fn set_back(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    fleet.runs("kept", 1).await?;
    let snapshot = environment.lab.snapshot(DFW, "older").await?;
    let kept = fleet.alive().await?.of("kept");
    fleet.rolled("web", 2).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;

    environment.restore(DFW, &snapshot).await?;
    environment.noticed("cell", [false, true]).await?;
    fleet.settled("web", 2).await?;
    fleet.settled("late", 1).await?;
    fleet.stays("what has not changed is as it was", &kept).await?;
    fleet.deleted_in_cell("old").await?;
    environment.release().await?;
    fleet.nowhere("old").await?;
    fleet.is_shown().await
}
