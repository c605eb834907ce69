//! One namespace of a project, and what stands for it in the hub and in cells.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone, names_in};
use popcell_suites::world::SOON;
use popcell_test_support::kind::{INSTANCE, Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually, objects};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) struct Tenant {
    pub(crate) project: Plane,
    pub(crate) hub: Plane,
    pub(crate) namespace: String,
    /// The same in hub and cells.
    pub(crate) below: String,
}

impl Tenant {
    /// Makes the namespace in the project, with network `default`.
    pub(crate) async fn new(world: &World, project: &str, namespace: &str) -> Result<Self> {
        let project = world.lab.plane(project).await?;
        let made = project.apply(&objects::namespace(namespace)).await?;
        let network = objects::network(namespace, "default");
        eventually("the network can be made", SOON, async || project.apply(&network).await).await?;
        Ok(Self {
            hub: world.lab.hub().await?,
            below: objects::hub_namespace_name(&read::uid(&made)),
            namespace: namespace.to_owned(),
            project,
        })
    }

    /// Makes a Workload with one placement `us`; `change` may edit it first.
    pub(crate) async fn workload(
        &self,
        name: &str,
        cities: &[&str],
        replicas: i32,
        change: impl FnOnce(&mut Value),
    ) -> Result<()> {
        let mut workload = objects::workload(&self.namespace, name, &[("us", cities, replicas)]);
        change(&mut workload);
        self.project.create(&workload, false).await.map(|_| ())
    }

    /// Changes the spec of the Workload by a merge patch.
    pub(crate) async fn edit(&self, name: &str, spec: &Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        self.project
            .merge(WORKLOAD, Some(&self.namespace), name, &patch)
            .await
            .map(|_| ())
    }

    pub(crate) async fn scale(&self, name: &str, cities: &[&str], replicas: i32) -> Result<()> {
        let wanted = objects::workload(&self.namespace, name, &[("us", cities, replicas)]);
        self.edit(name, &json!({ "placements": wanted["spec"]["placements"] }))
            .await
    }

    /// Asks for a roll as `kubectl rollout restart` does.
    pub(crate) async fn restart(&self, name: &str) -> Result<()> {
        let annotations = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
        self.edit(
            name,
            &json!({ "template": { "metadata": { "annotations": annotations } } }),
        )
        .await
    }

    /// Waits until the Workload shows so many ready instances of its newest generation.
    pub(crate) async fn ready(&self, name: &str, ready: i32) -> Result<DynamicObject> {
        awaited(&self.project, WORKLOAD, &self.namespace, name, |object| {
            read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
            read::expect_at(object, "/status/updatedReplicas", &json!(ready))?;
            read::expect_at(object, "/status/replicas", &json!(ready))?;
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
    }

    pub(crate) async fn in_project(
        &self,
        kind: Kind,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.project, kind, &self.namespace, name, check).await
    }

    /// An Instance in a cell, once `check` accepts it.
    pub(crate) async fn instance(
        &self,
        cell: &Plane,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(cell, INSTANCE, &self.below, name, check).await
    }

    /// Fails unless these Instances of a cell are Ready.
    pub(crate) async fn all_ready(&self, cell: &Plane, names: &[&str]) -> Result<()> {
        for name in names {
            let one = cell.expect(INSTANCE, Some(&self.below), name).await?;
            read::says(&one, "Ready", "True", "Available")?;
        }
        Ok(())
    }

    /// The WorkloadDeployment in a cell, once `check` accepts it.
    pub(crate) async fn deployment(
        &self,
        cell: &Plane,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(cell, WORKLOAD_DEPLOYMENT, &self.below, name, check).await
    }

    /// Names and uids of the Instances in a cell.
    pub(crate) async fn instances(&self, cell: &Plane) -> Result<Vec<(String, String)>> {
        let found = cell.list(INSTANCE, Some(&self.below), "").await?;
        let mut all: Vec<_> = found
            .iter()
            .map(|one| (one.metadata.name.clone().unwrap_or_default(), read::uid(one)))
            .collect();
        all.sort();
        Ok(all)
    }

    /// Waits until there are as many Instances in the cell as before, and none of those.
    pub(crate) async fn all_are_others(&self, cell: &Plane, before: &[(String, String)]) -> Result<()> {
        eventually("every instance is another", SOON, async || {
            let now = self.instances(cell).await?;
            ensure!(
                now.len() == before.len() && now.iter().all(|one| !before.contains(one)),
                "{now:?}"
            );
            Ok(())
        })
        .await
    }

    /// Waits until the claims of the namespace are exactly those of these Instances.
    pub(crate) async fn claims_are(&self, instances: &[&str]) -> Result<()> {
        let wanted: Vec<String> = instances.iter().map(|name| format!("instance-{name}")).collect();
        eventually("the claims are those of the instances", SOON, async || {
            let names = names_in(&self.project, RESOURCE_CLAIM, &self.namespace).await?;
            ensure!(names == wanted, "{names:?}, not {wanted:?}");
            Ok(())
        })
        .await
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.project.delete(WORKLOAD, Some(&self.namespace), name).await
    }

    /// Deletes the Workload and waits until it is gone.
    pub(crate) async fn clean(&self, name: &str) -> Result<()> {
        self.delete(name).await?;
        gone(&self.project, WORKLOAD, &self.namespace, name).await
    }
}
