//! A hub that is set back.

use anyhow::Result;

use crate::fleet::Fleet;
use crate::world::{HUB, World};

pub(crate) async fn set_back(world: &World, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(world, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    let snapshot = world.lab.snapshot(HUB, "older").await?;
    fleet.rolled("web", 2).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;
    fleet.is_shown().await?;
    let mut before = fleet.alive().await?;

    world.restore(HUB, &snapshot).await?;
    before.deployments.retain(|name, _| !name.starts_with("late"));
    world.noticed("hub", [true, true]).await?;
    fleet.settled("web", 2).await?;
    fleet.settled("late", 1).await?;
    fleet.stays("what lives goes on", &before).await?;
    fleet.reclaimed(world, "old").await?;
    fleet.is_copied().await?;
    world.release().await?;
    fleet.nowhere("old").await?;
    fleet.is_shown().await?;
    fleet.alive().await?.holds(&before)?;
    fleet.deleted("web").await?;
    fleet.deleted("late").await
}
