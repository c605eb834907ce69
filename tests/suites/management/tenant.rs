//! One namespace of a project, and what stands for it in the hub and in cells.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::API_VERSION;
use popcell_api::conditions::{AVAILABLE, reasons};
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone, names_in};
use popcell_suites::world::SOON;
use popcell_test_support::kind::{Kind, NAMESPACE, PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually, objects};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) struct Tenant {
    pub(crate) project: Plane,
    pub(crate) hub: Plane,
    pub(crate) namespace: String,
    pub(crate) hub_namespace: String,
}

/// Placements of a Workload: name, cities, replicas in each.
pub(crate) type Placements<'a> = &'a [(&'a str, &'a [&'a str], i32)];

impl Tenant {
    /// Makes the namespace in the project, with network `default`.
    pub(crate) async fn new(world: &World, project: &str, namespace: &str) -> Result<Self> {
        let project = world.lab.plane(project).await?;
        let made = eventually("the namespace can be made", SOON, async || {
            project.apply(&objects::namespace(namespace)).await
        })
        .await?;
        let network = objects::network(namespace, "default");
        eventually("the network can be made", SOON, async || project.apply(&network).await).await?;
        Ok(Self {
            hub: world.lab.hub().await?,
            hub_namespace: objects::hub_namespace_name(&read::uid(&made)),
            namespace: namespace.to_owned(),
            project,
        })
    }

    pub(crate) async fn workload(&self, name: &str, placements: Placements<'_>) -> Result<DynamicObject> {
        let workload = objects::workload(&self.namespace, name, placements);
        self.project.create(&workload, false).await
    }

    /// Changes the placements of a Workload.
    pub(crate) async fn place(&self, name: &str, placements: Placements<'_>) -> Result<()> {
        let wanted = objects::workload(&self.namespace, name, placements);
        let patch = json!({ "spec": { "placements": wanted["spec"]["placements"] } });
        self.project
            .merge(WORKLOAD, Some(&self.namespace), name, &patch)
            .await
            .map(|_| ())
    }

    /// A WorkloadDeployment that a tenant makes without a Workload. Its network and city need no Workload either.
    pub(crate) fn deployment(&self, name: &str, city: &str, replicas: i32) -> Value {
        let mut object = objects::workload_deployment(&self.namespace, name, city, replicas);
        object["metadata"]["labels"] = json!({});
        object
    }

    pub(crate) async fn in_project(
        &self,
        kind: Kind,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.project, kind, &self.namespace, name, check).await
    }

    pub(crate) async fn in_hub(
        &self,
        kind: Kind,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.hub, kind, &self.hub_namespace, name, check).await
    }

    pub(crate) async fn in_cell(
        &self,
        cell: &Plane,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(cell, WORKLOAD_DEPLOYMENT, &self.hub_namespace, name, check).await
    }

    /// The WorkloadDeployment as it is now in the hub.
    pub(crate) async fn now_in_hub(&self, name: &str) -> Result<DynamicObject> {
        self.hub
            .expect(WORKLOAD_DEPLOYMENT, Some(&self.hub_namespace), name)
            .await
    }

    pub(crate) async fn gone_from_project(&self, kind: Kind, name: &str) -> Result<()> {
        gone(&self.project, kind, &self.namespace, name).await
    }

    pub(crate) async fn gone_from_hub(&self, kind: Kind, name: &str) -> Result<()> {
        gone(&self.hub, kind, &self.hub_namespace, name).await
    }

    pub(crate) async fn delete(&self, kind: Kind, name: &str) -> Result<()> {
        self.project.delete(kind, Some(&self.namespace), name).await
    }

    pub(crate) async fn policy(&self, city: &str) -> Result<DynamicObject> {
        self.in_hub(PROPAGATION_POLICY, &objects::city_policy_name(city), |_| Ok(()))
            .await
    }

    pub(crate) async fn hub_namespace_object(&self) -> Result<DynamicObject> {
        awaited(&self.hub, NAMESPACE, "", &self.hub_namespace, |_| Ok(())).await
    }

    /// Names of what is in the hub namespace.
    pub(crate) async fn names_in_hub(&self, kind: Kind) -> Result<Vec<String>> {
        names_in(&self.hub, kind, &self.hub_namespace).await
    }

    /// Names of what is in the project's namespace.
    pub(crate) async fn names_in_project(&self, kind: Kind) -> Result<Vec<String>> {
        names_in(&self.project, kind, &self.namespace).await
    }

    /// Says in the cell, as its controllers would, how many of the desired instances are ready.
    pub(crate) async fn report(&self, cell: &Plane, name: &str, desired: i32, ready: i32) -> Result<()> {
        let object = self.in_cell(cell, name, |_| Ok(())).await?;
        let generation = object.metadata.generation.context("the cell gave no generation")?;
        let status = objects::cell_status(generation, desired, ready);
        cell.set_status(WORKLOAD_DEPLOYMENT, Some(&self.hub_namespace), name, &status)
            .await
            .map(|_| ())
    }

    /// Gives a user a right in the namespace.
    pub(crate) async fn grant(&self, name: &str, user: &str, rule: &Value) -> Result<()> {
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

    /// Waits until the project's WorkloadDeployment says that nobody serves its city.
    pub(crate) async fn shown_unserved(&self, name: &str) -> Result<DynamicObject> {
        self.in_project(WORKLOAD_DEPLOYMENT, name, |object| {
            available(object, "False", reasons::NO_MATCHING_LOCATION)
        })
        .await
    }

    /// Waits until the project's WorkloadDeployment shows so many ready, of its newest generation.
    pub(crate) async fn shown(&self, name: &str, ready: i32) -> Result<DynamicObject> {
        self.in_project(WORKLOAD_DEPLOYMENT, name, |object| {
            read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
    }
}

/// Fails unless the label has the value.
pub(crate) fn expect_label(object: &DynamicObject, key: &str, expected: &str) -> Result<()> {
    let found = object.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    ensure!(
        found.map(String::as_str) == Some(expected),
        "label {key} is {found:?}, not {expected}"
    );
    Ok(())
}

/// The value of an annotation; empty where there is none.
pub(crate) fn annotation<'a>(object: &'a DynamicObject, key: &str) -> &'a str {
    let annotations = object.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(key))
        .map(String::as_str)
        .unwrap_or_default()
}

/// Fails unless both have the same spec.
pub(crate) fn same_spec(one: &DynamicObject, other: &DynamicObject) -> Result<()> {
    read::expect_at(one, "/spec", read::at(other, "/spec"))
}

/// Fails unless condition `Available` has this status and reason.
pub(crate) fn available(object: &DynamicObject, status: &str, reason: &str) -> Result<()> {
    read::says(object, AVAILABLE, status, reason)
}

/// An owner reference to `owner`, as far as it identifies it.
pub(crate) fn is_owned_by(object: &DynamicObject, owner: &DynamicObject) -> bool {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|one| {
        one.uid == read::uid(owner) && Some(&one.name) == owner.metadata.name.as_ref() && one.api_version == API_VERSION
    })
}
