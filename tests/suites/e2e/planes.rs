//! Steps that many tests take on the planes.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::conditions;
use popcell_suites::environment::{DFW, Environment};
use popcell_suites::read;
use popcell_suites::steps::scale;
pub(crate) use popcell_suites::steps::{awaited, gone};
use popcell_test_support::{Plane, kind, objects};
use serde_json::{Value, json};

/// The hub with a namespace of the test's own.
pub(crate) async fn hub_with_namespace(environment: &Environment, namespace: &str) -> Result<Plane> {
    let hub = environment.lab.hub().await?;
    hub.apply(&objects::namespace(namespace)).await?;
    Ok(hub)
}

/// Name of the one WorkloadDeployment that a test makes.
pub(crate) const NAME: &str = "web-edge";
/// Name that Karmada gives its binding.
pub(crate) const BINDING: &str = "web-edge-workloaddeployment";

/// A WorkloadDeployment on the hub, and in the cell of its city.
pub(crate) struct Deployed {
    pub(crate) hub: Plane,
    pub(crate) cell: Plane,
    pub(crate) namespace: String,
}

impl Deployed {
    /// Makes it, with the city's policy, and waits until its cell has it.
    pub(crate) async fn new(
        environment: &Environment,
        namespace: &str,
        city: &str,
        cell: &str,
        replicas: i32,
    ) -> Result<Self> {
        let hub = hub_with_namespace(environment, namespace).await?;
        hub.apply(&objects::city_policy(namespace, city)).await?;
        hub.apply(&objects::workload_deployment(namespace, NAME, city, replicas))
            .await?;
        let deployed = Self {
            hub,
            cell: environment.lab.plane(cell).await?,
            namespace: namespace.to_owned(),
        };
        deployed.awaited_in_cell(|_| Ok(())).await?;
        Ok(deployed)
    }

    /// The same in Dallas, a Push member.
    pub(crate) async fn in_dallas(environment: &Environment, namespace: &str, replicas: i32) -> Result<Self> {
        Self::new(environment, namespace, "DFW", DFW, replicas).await
    }

    /// Waits until `check` accepts the hub's object.
    pub(crate) async fn awaited_on_hub(
        &self,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.hub, kind::WORKLOAD_DEPLOYMENT, &self.namespace, NAME, check).await
    }

    /// Waits until `check` accepts the cell's object.
    pub(crate) async fn awaited_in_cell(
        &self,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.cell, kind::WORKLOAD_DEPLOYMENT, &self.namespace, NAME, check).await
    }

    /// Waits until `check` accepts Karmada's binding.
    pub(crate) async fn awaited_binding(
        &self,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.hub, kind::RESOURCE_BINDING, &self.namespace, BINDING, check).await
    }

    /// Karmada's binding as it is now.
    pub(crate) async fn binding(&self) -> Result<DynamicObject> {
        let here = Some(self.namespace.as_str());
        self.hub.expect(kind::RESOURCE_BINDING, here, BINDING).await
    }

    /// The hub's object as it is now.
    pub(crate) async fn on_hub(&self) -> Result<DynamicObject> {
        let here = Some(self.namespace.as_str());
        self.hub.expect(kind::WORKLOAD_DEPLOYMENT, here, NAME).await
    }

    /// The cell's object as it is now.
    pub(crate) async fn in_cell(&self) -> Result<DynamicObject> {
        let here = Some(self.namespace.as_str());
        self.cell.expect(kind::WORKLOAD_DEPLOYMENT, here, NAME).await
    }

    /// Fails unless the cell's object is the one of this uid.
    pub(crate) async fn is_kept(&self, uid: &str) -> Result<()> {
        let now = read::uid(&self.in_cell().await?);
        ensure!(now == uid, "the object in {} was recreated", self.cell.name());
        Ok(())
    }

    /// Changes the cell's object by a merge patch.
    pub(crate) async fn edit_in_cell(&self, patch: &Value) -> Result<()> {
        let here = Some(self.namespace.as_str());
        let edited = self.cell.merge(kind::WORKLOAD_DEPLOYMENT, here, NAME, patch);
        edited.await.map(|_| ())
    }

    /// Changes the replicas on the hub, and waits until the cell has them.
    pub(crate) async fn scaled(&self, replicas: i32) -> Result<DynamicObject> {
        scale(&self.hub, &self.namespace, NAME, replicas).await?;
        self.awaited_in_cell(read::replicas(replicas)).await
    }

    /// Says in the cell, as its controller would, how many of the desired instances are ready.
    pub(crate) async fn report(&self, desired: i32, ready: i32) -> Result<()> {
        self.report_as(|generation| objects::cell_status(generation, desired, ready))
            .await
    }

    /// Writes the status that `status` makes for the generation that the object has in the cell.
    pub(crate) async fn report_as(&self, status: impl FnOnce(i64) -> Value) -> Result<()> {
        let generation = self.in_cell().await?.metadata.generation;
        let status = status(generation.context("the cell gave no generation")?);
        let here = Some(self.namespace.as_str());
        let set = self.cell.set_status(kind::WORKLOAD_DEPLOYMENT, here, NAME, &status);
        set.await.map(|_| ())
    }

    /// The same with condition `Available` only.
    pub(crate) async fn report_available(&self, desired: i32, status: &str, reason: &str) -> Result<()> {
        self.report_as(|generation| {
            let mut said = objects::cell_status(generation, desired, i32::from(status == "True"));
            let condition = objects::condition(conditions::AVAILABLE, status, reason, reason, generation);
            said["conditions"] = json!([condition]);
            said
        })
        .await
    }

    /// Waits until Karmada takes the cell's object for so healthy.
    pub(crate) async fn is(&self, health: &str) -> Result<()> {
        let healthy = |binding: &DynamicObject| {
            let found = read::health_on(binding, self.cell.name())?;
            ensure!(found == health, "it is {found}, not {health}");
            Ok(())
        };
        self.awaited_binding(healthy).await.map(|_| ())
    }

    /// Waits until the hub's object shows the ready replicas and has observed its own generation.
    pub(crate) async fn mirrored(&self, ready: i32) -> Result<DynamicObject> {
        self.awaited_on_hub(|object| {
            read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
            read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
        })
        .await
    }

    /// Deletes the hub's object.
    pub(crate) async fn delete(&self) -> Result<()> {
        let here = Some(self.namespace.as_str());
        self.hub.delete(kind::WORKLOAD_DEPLOYMENT, here, NAME).await
    }

    /// Waits until the object is gone from the hub or a cell.
    pub(crate) async fn gone_from(&self, plane: &Plane) -> Result<()> {
        gone(plane, kind::WORKLOAD_DEPLOYMENT, &self.namespace, NAME).await
    }
}

/// A policy for objects of the example kind in a namespace, with a placement of the test's choice.
pub(crate) fn example_policy(namespace: &str, placement: &Value) -> Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": { "namespace": namespace, "name": "example" },
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [{ "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload" }],
            "placement": placement,
        },
    })
}

/// An object of the example kind.
pub(crate) fn example_workload(namespace: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "workload.example.io/v1alpha1",
        "kind": "Workload",
        "metadata": { "namespace": namespace, "name": "nginx" },
        "spec": {
            "replicas": replicas,
            "paused": false,
            "template": {
                "metadata": { "labels": { "app": "nginx" } },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx" }] },
            },
        },
    })
}
