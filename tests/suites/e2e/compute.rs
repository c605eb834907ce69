//! WorkloadDeployment on a real Karmada: what the compute module's answers lead to.

use anyhow::{Context, Result, ensure};
use popcell_api::conditions;
use popcell_suites::environment::{DFW, Environment, ORD};
use popcell_suites::read;
use popcell_test_support::objects;
use serde_json::{Value, json};

use crate::planes::Deployed;

pub(crate) async fn replicas(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 3).await?;
    let three = |binding: &_| read::expect_at(binding, "/spec/replicas", &json!(3));
    let binding = deployed.awaited_binding(three).await?;
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
    let deployed = Deployed::in_dallas(environment, namespace, 2).await?;
    let before = read::uid(&deployed.in_cell().await?);
    for replicas in [0, 2] {
        deployed.scaled(replicas).await?;
        deployed.is_kept(&before).await?;
        let expected = if replicas == 0 { Value::Null } else { json!(replicas) };
        let binding = deployed
            .awaited_binding(|binding| read::expect_at(binding, "/spec/replicas", &expected))
            .await?;
        let placed = read::placed_on(&binding);
        ensure!(placed == [DFW], "at {replicas} it is on {placed:?}");
    }
    Ok(())
}

/// In a Push and in a Pull member. The two planes count generations apart: the cell's object has seen more writes.
pub(crate) async fn status(environment: &Environment, namespace: &str) -> Result<()> {
    for (city, member) in [("DFW", DFW), ("ORD", ORD)] {
        let namespace = &format!("{namespace}-{member}");
        let deployed = Deployed::new(environment, namespace, city, member, 2).await?;
        deployed.report(2, 1).await?;
        deployed.mirrored(1).await?;
        for replicas in [3, 4] {
            deployed.scaled(replicas).await?;
        }
        an_old_observation_is_not_passed_off_as_new(&deployed).await?;
        deployed.report(4, 4).await?;
        every_field_is_there(&deployed.mirrored(4).await?, 4)?;
    }
    Ok(())
}

/// The cell has the new spec but has said nothing of it yet.
async fn an_old_observation_is_not_passed_off_as_new(deployed: &Deployed) -> Result<()> {
    let object = deployed.on_hub().await?;
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
    let deployed = Deployed::in_dallas(environment, namespace, 2).await?;
    for (available, reason, expected) in [
        ("True", conditions::reasons::STABLE_INSTANCE_FOUND, "Healthy"),
        ("False", conditions::reasons::IMAGE_UNAVAILABLE, "Unknown"),
        ("False", conditions::reasons::PROVISIONING_INSTANCES, "Unhealthy"),
        ("False", conditions::reasons::QUOTA_EXCEEDED, "Unknown"),
        ("False", conditions::reasons::NETWORK_FAILED_TO_CREATE, "Unhealthy"),
    ] {
        deployed.report_available(2, available, reason).await?;
        deployed.is(expected).await.context(reason)?;
    }
    Ok(())
}

/// What our code does not know, as a newer release of the cell writes it, travels all the same.
pub(crate) async fn unknown_fields(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 1).await?;
    let location = json!({ "name": "dfw-a", "namespace": "default" });
    deployed
        .report_as(|generation| {
            let mut status = objects::cell_status(generation, 1, 1);
            status["suspended"] = json!(true);
            status["location"] = location.clone();
            let mut paused = objects::condition("Paused", "False", "Running", "", generation);
            paused["cause"] = json!("by hand");
            if let Some(conditions) = status["conditions"].as_array_mut() {
                conditions.push(paused);
            }
            status
        })
        .await?;
    let on_hub = deployed
        .awaited_on_hub(|object| {
            read::expect_at(object, "/status/suspended", &json!(true))?;
            read::expect_at(object, "/status/location", &location)?;
            read::condition(object, "Paused").map(|_| ())
        })
        .await?;
    let paused = read::condition(&on_hub, "Paused")?;
    ensure!(
        paused["reason"] == "Running" && paused["cause"] == "by hand",
        "{paused}"
    );

    deployed.report(1, 1).await?;
    deployed
        .awaited_on_hub(|object| {
            read::expect_at(object, "/status/suspended", &Value::Null)?;
            read::expect_at(object, "/status/location", &Value::Null)
        })
        .await
        .map(|_| ())
}
