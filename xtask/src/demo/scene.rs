//! What the demo plays on.

use anyhow::{Context, Result};
use popcell_test_support::definitions::define;
use popcell_test_support::stand_ins::IN_PROJECTS;
use popcell_test_support::{Lab, Plane, Webhook, objects};

use super::{CITIES, NAMESPACE, PROJECT};

/// The planes, and what is where on them.
pub(super) struct Scene {
    pub(super) lab: Lab,
    pub(super) webhook: Webhook,
    pub(super) project: Plane,
    pub(super) hub: Plane,
    /// The namespace of the hub and of the cells that stands for the project's.
    pub(super) hub_namespace: String,
}

impl Scene {
    /// Makes a project of a plain API server: our kinds, a namespace with a network, and the cities that it may use.
    pub(super) async fn prepare(lab: Lab, webhook: Webhook) -> Result<Self> {
        let project = lab.plane(PROJECT).await?;
        define(&project, &IN_PROJECTS).await?;
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
        })
    }
}
