//! A hub that is set back.

use anyhow::Result;

use crate::environment::{Environment, HUB};
use crate::fleet::Fleet;

pub(crate) async fn set_back(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    let snapshot = environment.lab.snapshot(HUB, "older").await?;
    fleet.rolled("web", 2).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;
    fleet.is_shown().await?;
    let mut before = fleet.alive().await?;

    environment.restore(HUB, &snapshot).await?;
    before.deployments.retain(|name, _| !name.starts_with("late"));
    environment.noticed("hub", [true, true]).await?;
    fleet.settled("web", 2).await?;
    fleet.settled("late", 1).await?;
    fleet.stays("what lives goes on", &before).await?;
    fleet.reclaimed(environment, "old").await?;
    fleet.is_copied().await?;
    environment.release().await?;
    fleet.nowhere("old").await?;
    fleet.is_shown().await?;
    fleet.alive().await?.holds(&before)?;
    fleet.deleted("web").await?;
    fleet.deleted("late").await
}
