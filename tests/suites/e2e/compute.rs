//! WorkloadDeployment on a real Karmada: what the compute module's answers lead to.

use anyhow::{Context, Result, ensure};
use popcell_api::conditions;
use popcell_suites::environment::{DFW, Environment, ORD};
use popcell_suites::read;
use popcell_test_support::kind::{RESOURCE_BINDING, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, objects};
use serde_json::{Value, json};

use crate::planes::{BINDING, NAME, awaited, deployed, mirrored, report};

pub(crate) async fn replicas(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, _) = deployed(environment, namespace, "DFW", DFW, 3).await?;
    let binding = awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
        read::expect_at(binding, "/spec/replicas", &json!(3))
    })
    .await?;
    // The instance type of the catalogue: one processor, two GiB.
    let request = read::at(&binding, "/spec/replicaRequirements/resourceRequest");
    ensure!(
        request["cpu"] == "1" && request["memory"] == "2Gi",
        "requirements are {request}"
    );
    Ok(())
}

/// With requirements at 0 replicas Karmada would take the object out of its cell.
pub(crate) async fn zero_and_back(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 2).await?;
    let before = read::uid(&cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?);
    for replicas in [0, 2] {
        let change = json!({ "spec": { "scaleSettings": { "minReplicas": replicas } } });
        hub.merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &change).await?;
        let in_cell = awaited(&cell, WORKLOAD_DEPLOYMENT, namespace, NAME, |object| {
            read::expect_at(object, "/spec/scaleSettings/minReplicas", &json!(replicas))
        })
        .await?;
        ensure!(
            read::uid(&in_cell) == before,
            "the cell's object was recreated at {replicas} replicas"
        );
        let binding = awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
            let expected = if replicas == 0 { Value::Null } else { json!(replicas) };
            read::expect_at(binding, "/spec/replicas", &expected)
        })
        .await?;
        ensure!(
            read::placed_on(&binding) == [DFW],
            "at {replicas} it is on {:?}",
            read::placed_on(&binding)
        );
    }
    Ok(())
}

/// In a Push and in a Pull member. The two planes count generations apart: the cell's object has seen more writes.
pub(crate) async fn status(environment: &Environment, namespace: &str) -> Result<()> {
    for (city, member) in [("DFW", DFW), ("ORD", ORD)] {
        let namespace = &format!("{namespace}-{member}");
        let (hub, cell) = deployed(environment, namespace, city, member, 2).await?;
        report(&cell, namespace, 2, 1).await?;
        mirrored(&hub, namespace, 1).await?;
        for replicas in [3, 4] {
            let change = json!({ "spec": { "scaleSettings": { "minReplicas": replicas } } });
            hub.merge(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &change).await?;
            awaited(&cell, WORKLOAD_DEPLOYMENT, namespace, NAME, |object| {
                read::expect_at(object, "/spec/scaleSettings/minReplicas", &json!(replicas))
            })
            .await?;
        }
        an_old_observation_is_not_passed_off_as_new(&hub, namespace).await?;
        report(&cell, namespace, 4, 4).await?;
        let object = mirrored(&hub, namespace, 4).await?;
        every_field_is_there(&object, 4)?;
    }
    Ok(())
}

/// The cell has the new spec but has said nothing of it yet.
async fn an_old_observation_is_not_passed_off_as_new(hub: &Plane, namespace: &str) -> Result<()> {
    let object = hub.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    let observed = read::at(&object, "/status/observedGeneration")
        .as_i64()
        .context("no observedGeneration")?;
    let generation = object.metadata.generation.context("no generation")?;
    ensure!(
        observed < generation,
        "observed {observed} of generation {generation} before the cell said so"
    );
    Ok(())
}

fn every_field_is_there(object: &kube::api::DynamicObject, replicas: i32) -> Result<()> {
    for field in [
        "replicas",
        "currentReplicas",
        "updatedReplicas",
        "desiredReplicas",
        "readyReplicas",
    ] {
        read::expect_at(object, &format!("/status/{field}"), &json!(replicas))?;
    }
    for type_ in [conditions::AVAILABLE, conditions::REPLICAS_READY] {
        let condition = read::condition(object, type_)?;
        ensure!(condition["status"] == "True", "{condition}");
        ensure!(
            condition["observedGeneration"] == json!(object.metadata.generation),
            "{condition}"
        );
    }
    for helper in ["generation", "resourceTemplateGeneration"] {
        ensure!(
            read::at(object, "/status").get(helper).is_none(),
            "helper {helper} is in the status"
        );
    }
    Ok(())
}

pub(crate) async fn health(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 2).await?;
    let steps: [(&str, &str, &str); 5] = [
        ("True", conditions::reasons::STABLE_INSTANCE_FOUND, "Healthy"),
        ("False", conditions::reasons::IMAGE_UNAVAILABLE, "Unknown"),
        ("False", conditions::reasons::PROVISIONING_INSTANCES, "Unhealthy"),
        ("False", conditions::reasons::QUOTA_EXCEEDED, "Unknown"),
        ("False", conditions::reasons::NETWORK_FAILED_TO_CREATE, "Unhealthy"),
    ];
    for (available, reason, expected) in steps {
        let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
        let generation = object.metadata.generation.context("no generation")?;
        let mut status = objects::cell_status(generation, 2, i32::from(available == "True"));
        status["conditions"] = json!([objects::condition(
            conditions::AVAILABLE,
            available,
            reason,
            reason,
            generation
        )]);
        cell.set_status(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &status)
            .await?;
        awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
            let health = read::health_on(binding, DFW)?;
            ensure!(health == expected, "{reason} is {health}, not {expected}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// What our code does not know, as a newer release of the cell writes it, travels all the same.
pub(crate) async fn unknown_fields(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, cell) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    let generation = object.metadata.generation.context("no generation")?;
    let mut status = objects::cell_status(generation, 1, 1);
    status["suspended"] = json!(true);
    status["location"] = json!({ "name": "dfw-a", "namespace": "default" });
    let mut paused = objects::condition("Paused", "False", "Running", "", generation);
    paused["cause"] = json!("by hand");
    status["conditions"]
        .as_array_mut()
        .context("no conditions")?
        .push(paused);
    cell.set_status(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &status)
        .await?;
    let on_hub = awaited(&hub, WORKLOAD_DEPLOYMENT, namespace, NAME, |object| {
        read::expect_at(object, "/status/suspended", &status["suspended"])?;
        read::expect_at(object, "/status/location", &status["location"])?;
        read::condition(object, "Paused").map(|_| ())
    })
    .await?;
    let paused = read::condition(&on_hub, "Paused")?;
    ensure!(
        paused["reason"] == "Running" && paused["cause"] == "by hand",
        "{paused}"
    );

    let without = objects::cell_status(generation, 1, 1);
    cell.set_status(WORKLOAD_DEPLOYMENT, Some(namespace), NAME, &without)
        .await?;
    awaited(&hub, WORKLOAD_DEPLOYMENT, namespace, NAME, |object| {
        read::expect_at(object, "/status/suspended", &Value::Null)?;
        read::expect_at(object, "/status/location", &Value::Null)
    })
    .await?;
    Ok(())
}
