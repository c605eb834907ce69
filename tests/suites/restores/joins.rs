//! A cell that leaves Karmada and comes back, by hand and with the hub.

use anyhow::{Result, ensure};
use popcell_api::names::ABSENT_CELLS;
use popcell_suites::environment::SOON;
use popcell_test_support::kind::CONFIG_MAP;
use popcell_test_support::{eventually, users};

use crate::environment::{Environment, HUB};
use crate::fleet::Fleet;

/// Waits until the absence of the cell is noted, or is not any more.
async fn noted(fleet: &Fleet, expected: bool) -> Result<()> {
    eventually(
        "the absence of the cell is noted as long as it lasts",
        SOON,
        async || {
            let notes = fleet
                .tenant
                .hub
                .get(CONFIG_MAP, Some(users::NAMESPACE), ABSENT_CELLS)
                .await?;
            let is_noted =
                notes.is_some_and(|notes| notes.data["data"].as_object().is_some_and(|data| !data.is_empty()));
            ensure!(is_noted == expected, "{is_noted}, not {expected}");
            Ok(())
        },
    )
    .await
}

pub(crate) async fn unjoined(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.is_shown().await?;
    let before = fleet.alive().await?;
    let cluster = environment.unjoin().await?;
    noted(&fleet, true).await?;
    fleet
        .stays("what runs in an absent cell is not touched", &before)
        .await?;
    environment.join(&cluster).await?;
    noted(&fleet, false).await?;
    fleet.scaled("web", 3).await?;
    fleet.is_shown().await?;
    fleet.alive().await?.holds(&before)?;
    fleet.deleted("web").await
}

pub(crate) async fn hub_set_back(environment: &Environment, namespace: &str) -> Result<()> {
    let fleet = Fleet::new(environment, namespace).await?;
    fleet.runs("web", 2).await?;
    fleet.runs("old", 1).await?;
    let cluster = environment.unjoin().await?;
    let snapshot = environment.lab.snapshot(HUB, "unjoined").await?;
    environment.join(&cluster).await?;
    fleet.scaled("web", 3).await?;
    fleet.rolled("web", 3).await?;
    fleet.runs("late", 1).await?;
    fleet.deleted("old").await?;
    fleet.is_shown().await?;
    let mut before = fleet.alive().await?;

    environment.restore(HUB, &snapshot).await?;
    // What the hub itself has lost is made again.
    before.deployments.retain(|name, _| !name.starts_with("late"));
    environment.noticed("hub", [true, true]).await?;
    noted(&fleet, true).await?;
    fleet
        .stays("what runs in a cell that the hub forgot is not touched", &before)
        .await?;
    fleet.reclaimed(environment, "old").await?;
    environment.join(&cluster).await?;
    noted(&fleet, false).await?;
    fleet.settled("web", 3).await?;
    fleet.settled("late", 1).await?;
    fleet.is_copied().await?;
    fleet.stays("what runs there is taken over as it is", &before).await?;
    environment.release().await?;
    fleet.nowhere("old").await?;
    fleet.is_shown().await?;
    fleet.alive().await?.holds(&before)?;
    fleet.deleted("web").await?;
    fleet.deleted("late").await
}
