//! One namespace of a project, and what stands for it in the hub and in cells.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::conditions::AVAILABLE;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{API_VERSION, annotations};
use popcell_test_support::kind::{INSTANCE, Kind, NAMESPACE, PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Lab, Plane, eventually, objects};
use serde_json::{Value, json};

use crate::environment::SOON;
use crate::read;
use crate::steps::{awaited, gone, names_in};

/// One namespace of a project.
pub struct Tenant {
    /// The project.
    pub project: Plane,
    /// The hub.
    pub hub: Plane,
    /// In the project.
    pub namespace: String,
    /// The same in hub and cells.
    pub below: String,
}

/// Placements of a Workload: name, cities, replicas in each.
pub type Placements<'a> = &'a [(&'a str, &'a [&'a str], i32)];

impl Tenant {
    /// Makes the namespace in the project, with network `default`.
    pub async fn new(lab: &Lab, project: &str, namespace: &str) -> Result<Self> {
        let project = lab.plane(project).await?;
        let made = eventually("the namespace can be made", SOON, async || {
            project.apply(&objects::namespace(namespace)).await
        })
        .await?;
        let network = objects::network(namespace, "default");
        eventually("the network can be made", SOON, async || project.apply(&network).await).await?;
        Ok(Self {
            hub: lab.hub().await?,
            below: objects::hub_namespace_name(&read::uid(&made)),
            namespace: namespace.to_owned(),
            project,
        })
    }

    /// Makes a Workload.
    pub async fn workload(&self, name: &str, placements: Placements<'_>) -> Result<DynamicObject> {
        let workload = objects::workload(&self.namespace, name, placements);
        self.project.create(&workload, false).await
    }

    /// Makes a Workload with one placement `us`; `change` may edit it first.
    pub async fn deploy(
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

    /// Makes a Workload with one placement `us`, and waits until all of it is ready.
    pub async fn runs(&self, name: &str, cities: &[&str], replicas: i32) -> Result<()> {
        self.deploy(name, cities, replicas, |_| {}).await?;
        let all = replicas * i32::try_from(cities.len())?;
        self.ready(name, all).await.map(|_| ())
    }

    /// Changes the spec of a Workload by a merge patch.
    pub async fn edit(&self, name: &str, spec: &Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        let patched = self.project.merge(WORKLOAD, Some(&self.namespace), name, &patch);
        patched.await.map(|_| ())
    }

    /// Changes the placements of a Workload.
    pub async fn place(&self, name: &str, placements: Placements<'_>) -> Result<()> {
        let wanted = objects::workload(&self.namespace, name, placements);
        self.edit(name, &json!({ "placements": wanted["spec"]["placements"] }))
            .await
    }

    /// Changes the one placement that [`Tenant::deploy`] makes.
    pub async fn scale(&self, name: &str, cities: &[&str], replicas: i32) -> Result<()> {
        self.place(name, &[("us", cities, replicas)]).await
    }

    /// Asks for a roll as `kubectl rollout restart` does.
    pub async fn restart(&self, name: &str) -> Result<()> {
        let annotations = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
        let template = json!({ "template": { "metadata": { "annotations": annotations } } });
        self.edit(name, &template).await
    }

    /// A WorkloadDeployment that a tenant makes without a Workload. Its network and city need no Workload either.
    pub fn direct(&self, name: &str, city: &str, replicas: i32) -> Value {
        let mut object = objects::workload_deployment(&self.namespace, name, city, replicas);
        object["metadata"]["labels"] = json!({});
        object
    }

    /// Waits until the Workload shows so many ready instances of its newest generation.
    pub async fn ready(&self, name: &str, ready: i32) -> Result<DynamicObject> {
        awaited(&self.project, WORKLOAD, &self.namespace, name, |object| {
            read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
            read::expect_at(object, "/status/updatedReplicas", &json!(ready))?;
            read::expect_at(object, "/status/replicas", &json!(ready))?;
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
    }

    /// An object in the project, once `check` accepts it.
    pub async fn in_project(
        &self,
        kind: Kind,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.project, kind, &self.namespace, name, check).await
    }

    /// An object in the hub namespace, once `check` accepts it.
    pub async fn in_hub(
        &self,
        kind: Kind,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.hub, kind, &self.below, name, check).await
    }

    /// The WorkloadDeployment in a cell, once `check` accepts it.
    pub async fn in_cell(
        &self,
        cell: &Plane,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(cell, WORKLOAD_DEPLOYMENT, &self.below, name, check).await
    }

    /// The WorkloadDeployment as it is now in the hub.
    pub async fn now_in_hub(&self, name: &str) -> Result<DynamicObject> {
        self.hub.expect(WORKLOAD_DEPLOYMENT, Some(&self.below), name).await
    }

    /// Waits until an object is gone from the project.
    pub async fn gone_from_project(&self, kind: Kind, name: &str) -> Result<()> {
        gone(&self.project, kind, &self.namespace, name).await
    }

    /// Waits until an object is gone from the hub namespace.
    pub async fn gone_from_hub(&self, kind: Kind, name: &str) -> Result<()> {
        gone(&self.hub, kind, &self.below, name).await
    }

    /// Deletes an object in the project.
    pub async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        self.project.delete(kind, Some(&self.namespace), name).await
    }

    /// The policy of a city, once it is there.
    pub async fn policy(&self, city: &str) -> Result<DynamicObject> {
        self.in_hub(PROPAGATION_POLICY, &objects::city_policy_name(city), |_| Ok(()))
            .await
    }

    /// The hub namespace, once it is there.
    pub async fn hub_namespace_object(&self) -> Result<DynamicObject> {
        awaited(&self.hub, NAMESPACE, "", &self.below, |_| Ok(())).await
    }

    /// Names of what is in the hub namespace.
    pub async fn names_in_hub(&self, kind: Kind) -> Result<Vec<String>> {
        names_in(&self.hub, kind, &self.below).await
    }

    /// Names of what is in the project's namespace.
    pub async fn names_in_project(&self, kind: Kind) -> Result<Vec<String>> {
        names_in(&self.project, kind, &self.namespace).await
    }

    /// Says in the cell, as its controllers would, how many of the desired instances are ready.
    pub async fn report(&self, cell: &Plane, name: &str, desired: i32, ready: i32) -> Result<()> {
        let object = self.in_cell(cell, name, |_| Ok(())).await?;
        let generation = object.metadata.generation.context("the cell gave no generation")?;
        let status = objects::cell_status(generation, desired, ready);
        cell.set_status(WORKLOAD_DEPLOYMENT, Some(&self.below), name, &status)
            .await
            .map(|_| ())
    }

    /// An Instance in a cell, once `check` accepts it.
    pub async fn instance(
        &self,
        cell: &Plane,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(cell, INSTANCE, &self.below, name, check).await
    }

    /// Fails unless these Instances of a cell are Ready.
    pub async fn all_ready(&self, cell: &Plane, names: &[&str]) -> Result<()> {
        for name in names {
            let one = cell.expect(INSTANCE, Some(&self.below), name).await?;
            read::says(&one, "Ready", "True", "Available")?;
        }
        Ok(())
    }

    /// Names and uids of the Instances in a cell.
    pub async fn instances(&self, cell: &Plane) -> Result<Vec<(String, String)>> {
        let found = cell.list(INSTANCE, Some(&self.below), "").await?;
        let mut all: Vec<_> = found
            .iter()
            .map(|one| (one.metadata.name.clone().unwrap_or_default(), read::uid(one)))
            .collect();
        all.sort();
        Ok(all)
    }

    /// Waits until there are as many Instances in the cell as before, and none of those.
    pub async fn all_are_others(&self, cell: &Plane, before: &[(String, String)]) -> Result<()> {
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
    pub async fn claims_are(&self, instances: &[&str]) -> Result<()> {
        let wanted: Vec<String> = instances.iter().map(|name| format!("instance-{name}")).collect();
        eventually("the claims are those of the instances", SOON, async || {
            let names = names_in(&self.project, RESOURCE_CLAIM, &self.namespace).await?;
            ensure!(names == wanted, "{names:?}, not {wanted:?}");
            Ok(())
        })
        .await
    }

    /// Deletes a Workload and waits until it is gone.
    pub async fn clean(&self, name: &str) -> Result<()> {
        self.delete(WORKLOAD, name).await?;
        self.gone_from_project(WORKLOAD, name).await
    }

    /// Gives a user a right in the namespace.
    pub async fn grant(&self, name: &str, user: &str, rule: &Value) -> Result<()> {
        const VERSION: &str = "rbac.authorization.k8s.io/v1";
        let metadata = json!({ "namespace": self.namespace, "name": name });
        let held = json!({ "apiVersion": VERSION, "kind": "Role", "metadata": metadata, "rules": [rule] });
        let granted = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
        let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user });
        let binding = json!({
            "apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata, "roleRef": granted, "subjects": [subject],
        });
        self.project.apply(&held).await?;
        self.project.apply(&binding).await.map(|_| ())
    }

    /// Waits until the project's WorkloadDeployment shows so many ready, of its newest generation.
    pub async fn shown(&self, name: &str, ready: i32) -> Result<DynamicObject> {
        self.in_project(WORKLOAD_DEPLOYMENT, name, |object| {
            read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
    }
}

/// Fails unless the label has the value.
pub fn expect_label(object: &DynamicObject, key: &str, expected: &str) -> Result<()> {
    let found = object.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    ensure!(
        found.map(String::as_str) == Some(expected),
        "label {key} is {found:?}, not {expected}"
    );
    Ok(())
}

/// The value of an annotation; empty where there is none.
pub fn annotation<'a>(object: &'a DynamicObject, key: &str) -> &'a str {
    let annotations = object.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(key))
        .map(String::as_str)
        .unwrap_or_default()
}

/// Fails unless both have the same spec.
pub fn same_spec(one: &DynamicObject, other: &DynamicObject) -> Result<()> {
    read::expect_at(one, "/spec", read::at(other, "/spec"))
}

/// Fails unless condition `Available` has this status and reason.
pub fn available(object: &DynamicObject, status: &str, reason: &str) -> Result<()> {
    read::says(object, AVAILABLE, status, reason)
}

/// An owner reference to `owner`, as far as it identifies it.
pub fn is_owned_by(object: &DynamicObject, owner: &DynamicObject) -> bool {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|one| {
        one.uid == read::uid(owner) && Some(&one.name) == owner.metadata.name.as_ref() && one.api_version == API_VERSION
    })
}
