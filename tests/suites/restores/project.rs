//! A project that is set back: what it says is what its tenant wants.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::environment::{Environment, P1};
use crate::fleet::{Alive, Fleet};

pub(crate) async fn set_back(environment: &Environment, namespace: &str) -> Result<()> {
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
