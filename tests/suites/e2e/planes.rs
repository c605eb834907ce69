//! Steps that many tests take on the planes.

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use popcell_suites::environment::Environment;
use popcell_suites::read;
pub(crate) use popcell_suites::steps::{awaited, gone};
use popcell_test_support::{Plane, kind, objects};
use serde_json::{Value, json};

/// The hub with a namespace of the test's own.
pub(crate) async fn hub_with_namespace(environment: &Environment, namespace: &str) -> Result<Plane> {
    let hub = environment.lab.hub().await?;
    hub.apply(&objects::namespace(namespace)).await?;
    Ok(hub)
}

/// A WorkloadDeployment of a city, with the city's policy; waits until its cell has it.
pub(crate) async fn deployed(
    environment: &Environment,
    namespace: &str,
    city: &str,
    cell: &str,
    replicas: i32,
) -> Result<(Plane, Plane)> {
    let hub = hub_with_namespace(environment, namespace).await?;
    hub.apply(&objects::city_policy(namespace, city)).await?;
    hub.apply(&objects::workload_deployment(namespace, NAME, city, replicas))
        .await?;
    let cell = environment.lab.plane(cell).await?;
    awaited(&cell, kind::WORKLOAD_DEPLOYMENT, namespace, NAME, |_| Ok(())).await?;
    Ok((hub, cell))
}

/// Name of the one WorkloadDeployment that a test makes.
pub(crate) const NAME: &str = "web-edge";
/// Name that Karmada gives its binding.
pub(crate) const BINDING: &str = "web-edge-workloaddeployment";

/// Writes a status in the cell as its controller would, for the generation that the object has there.
pub(crate) async fn report(cell: &Plane, namespace: &str, desired: i32, ready: i32) -> Result<()> {
    let object = cell.expect(kind::WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    let generation = object.metadata.generation.context("the cell gave no generation")?;
    let status = objects::cell_status(generation, desired, ready);
    cell.set_status(kind::WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &status)
        .await?;
    Ok(())
}

/// Waits until the hub's object shows the ready replicas and has observed its own generation.
pub(crate) async fn mirrored(hub: &Plane, namespace: &str, ready: i32) -> Result<DynamicObject> {
    awaited(hub, kind::WORKLOAD_DEPLOYMENT, namespace, NAME, |object| {
        read::expect_at(object, "/status/readyReplicas", &json!(ready))?;
        read::expect_at(object, "/status/observedGeneration", &json!(object.metadata.generation))
    })
    .await
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
