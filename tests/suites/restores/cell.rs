//! A cell that is set back.

use anyhow::Result;
use popcell_suites::world::DFW;

use crate::fleet::Fleet;
use crate::world::World;

pub(crate) async fn set_back(world: &World, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(world, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    fleet.runs("kept", 1).await?;
    let snapshot = world.lab.snapshot(DFW, "older").await?;
    let kept = fleet.alive().await?.of("kept");
    fleet.rolled("web", 2).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;

    world.restore(DFW, &snapshot).await?;
    world.noticed("cell", [false, true]).await?;
    fleet.settled("web", 2).await?;
    fleet.settled("late", 1).await?;
    fleet.stays("what has not changed is as it was", &kept).await?;
    fleet.deleted_in_cell("old").await?;
    world.release().await?;
    fleet.nowhere("old").await?;
    fleet.is_shown().await
}
