//! A plane that is older than a Workload, a deletion and a roll.

use std::collections::BTreeMap;

use anyhow::Result;
use popcell_suites::environment::DFW;

use crate::environment::{Environment, HUB, P1};
use crate::fleet::{Alive, Fleet};

pub(crate) async fn hub(environment: &Environment, namespace: &str) -> Result<()> {
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

pub(crate) async fn cell(environment: &Environment, namespace: &str) -> Result<()> {
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

/// What the project says is what its tenant wants.
pub(crate) async fn project(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    fleet.runs("kept", 1).await?;
    let kept = fleet.alive().await?.of("kept");
    let snapshot = environment.lab.snapshot(P1, "older").await?;
    fleet.rolled("web", 2).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;
    // What the project itself has lost is made again.
    let late = Alive {
        claims: BTreeMap::new(),
        shown: BTreeMap::new(),
        ..fleet.alive().await?.of("late")
    };

    environment.restore(P1, &snapshot).await?;
    environment.noticed("project p1", [true, true]).await?;
    fleet.settled("web", 2).await?;
    fleet.settled("old", 1).await?;
    fleet.stays("what the project does not know runs on", &late).await?;
    fleet.stays("what has not changed is as it was", &kept).await?;
    environment.release_of("project p1").await?;
    fleet.stays("what the project does not know runs on", &late).await
}
