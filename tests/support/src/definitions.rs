//! The kinds that a plain API server needs to be a project, and Projects.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use popcell_api::kind::{self, Kind};
use serde_json::json;

use crate::{Plane, eventually, objects, stand_ins, users, workspace};

/// How long a server may take to serve a kind.
const SOON: Duration = Duration::from_secs(90);

const OURS: [Kind; 3] = [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE];

/// Defines our kinds and those `others` on a server, and waits until it serves them.
pub async fn define(server: &Plane, others: &[Kind]) -> Result<()> {
    let dir = workspace::crds_dir();
    for ours in OURS {
        let crd = workspace::yaml(&dir.join(format!("{}_{}.yaml", ours.group, ours.plural)))?;
        server.apply(&crd).await?;
    }
    for kind in others {
        server.apply(&stand_ins::crd(kind)?).await?;
    }
    for kind in OURS.iter().chain(others) {
        let api = Api::<DynamicObject>::all_with(server.client().clone(), &kind.resource());
        let look = async || Ok(api.list(&ListParams::default()).await?);
        eventually(&format!("{} is served", kind.kind), SOON, look).await?;
    }
    Ok(())
}

/// Defines InstanceTypes on a server, as on the one that the management plane runs on, and waits until it serves them.
pub async fn catalogue(server: &Plane) -> Result<()> {
    let kind = kind::INSTANCE_TYPE;
    let file = format!("{}_{}.yaml", kind.group, kind.plural);
    let crd = workspace::yaml(&workspace::catalogue_crds_dir().join(file))?;
    server.apply(&crd).await?;
    let api = Api::<DynamicObject>::all_with(server.client().clone(), &kind.resource());
    let look = async || Ok(api.list(&ListParams::default()).await?);
    eventually("InstanceType is served", SOON, look).await.map(|_| ())
}

/// Makes a project of a server: its kinds, the rights of these cells and no others, and bindings of these cities.
pub async fn project(server: &Plane, cells: &[&str], cities: &[&str]) -> Result<()> {
    define(server, &stand_ins::IN_PROJECTS).await?;
    users::cells_in_project(server, cells).await?;
    for city in cities {
        server.apply(&objects::location_binding(city)).await?;
    }
    Ok(())
}

/// Makes a hub of a Karmada: what is carried to cells beside our kinds.
pub async fn hub(server: &Plane) -> Result<()> {
    define(server, &stand_ins::ON_HUB).await
}

/// Makes the cell of a city of a server: its kinds, the namespace where the program keeps what it must not lose, and its
/// Location.
pub async fn cell(server: &Plane, city: &str) -> Result<()> {
    define(server, &stand_ins::IN_CELLS).await?;
    server.apply(&objects::namespace(users::NAMESPACE)).await?;
    server.apply(&objects::location(city)).await.map(|_| ())
}

/// Makes a discovery server of a server, which knows these Projects.
pub async fn discovery(server: &Plane, ids: &[&str]) -> Result<()> {
    define(server, &[kind::PROJECT]).await?;
    for id in ids {
        ready_project(server, id).await?;
    }
    Ok(())
}

/// A Project whose control plane serves.
pub async fn ready_project(server: &Plane, id: &str) -> Result<()> {
    server.apply(&objects::project(id)).await?;
    set_ready(server, id, "True").await
}

/// Sets the condition that discovery reads.
pub async fn set_ready(server: &Plane, id: &str, status: &str) -> Result<()> {
    let ready = json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Test", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let patch = json!({ "status": ready });
    let api = Api::<DynamicObject>::all_with(server.client().clone(), &kind::PROJECT.resource());
    let patched = api
        .patch_status(id, &PatchParams::default(), &Patch::Merge(&patch))
        .await;
    patched
        .map(|_| ())
        .with_context(|| format!("failed to set the status of project {id}"))
}
