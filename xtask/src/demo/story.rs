//! What the demo does, and what must be seen before it goes on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_api::labels;
use popcell_test_support::{Lab, Plane, Webhook, eventually, kind, objects};
use serde_json::{Value, json};

use super::journal::Journal;
use super::{CITIES, City, NAMESPACE};

/// Everything below takes seconds; this is for a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs the story. Fails when something is not seen in time.
pub(super) async fn tell(lab: &Lab, webhook: &Webhook, journal: &Journal) -> Result<()> {
    let hub = lab.hub().await?;
    hub.apply(&objects::namespace(NAMESPACE)).await?;

    journal.chapter("docs/examples on the hub: a deployment and a policy for each city");
    for city in &CITIES {
        hub.apply(&objects::city_policy(NAMESPACE, city.code)).await?;
        hub.apply(&city.example()?).await?;
    }
    for city in &CITIES {
        settled(&hub, city, city.replicas).await?;
    }
    for city in &CITIES {
        only_in_its_cell(lab, city).await?;
    }

    journal.chapter("One instance more for DFW, asked for on the hub");
    let more = CITIES[0].replicas + 1;
    let scaled = json!({ "spec": { "scaleSettings": { "minReplicas": more } } });
    hub.merge(
        kind::WORKLOAD_DEPLOYMENT,
        Some(NAMESPACE),
        CITIES[0].deployment,
        &scaled,
    )
    .await?;
    settled(&hub, &CITIES[0], more).await?;

    let calls = webhook.metric("popcell_calls_total", &["outcome=\"ok\""]).await?;
    ensure!(calls > 0.0, "everything arrived, but Karmada never called the webhook");
    Ok(())
}

/// The hub says that all instances are ready, about its own generation, and that the object is healthy.
async fn settled(hub: &Plane, city: &City, replicas: i32) -> Result<()> {
    let what = format!("the status of {} is back on the hub", city.deployment);
    eventually(&what, PATIENCE, async || {
        let object = hub
            .expect(kind::WORKLOAD_DEPLOYMENT, Some(NAMESPACE), city.deployment)
            .await?;
        let status = object.data.get("status").context("no status")?;
        let counts = [&status["readyReplicas"], &status["desiredReplicas"]];
        ensure!(counts == [&json!(replicas); 2], "ready and desired are {counts:?}");
        ensure!(
            status["observedGeneration"].as_i64() == object.metadata.generation,
            "the status is about generation {} of {:?}",
            status["observedGeneration"],
            object.metadata.generation
        );
        let bindings = hub.list(kind::RESOURCE_BINDING, Some(NAMESPACE), "").await?;
        let ours = bindings
            .iter()
            .find(|binding| binding.data["spec"]["resource"]["name"] == city.deployment);
        let binding = &ours.context("no ResourceBinding")?.data;
        ensure!(
            binding["spec"]["replicas"] == replicas,
            "the binding has {} replicas",
            binding["spec"]["replicas"]
        );
        let health = binding
            .pointer("/status/aggregatedStatus/0/health")
            .and_then(Value::as_str);
        ensure!(health == Some("Healthy"), "the binding's health is {health:?}");
        Ok(())
    })
    .await
}

/// The object is in the cell of its city, carries its label, and is in no other cell.
async fn only_in_its_cell(lab: &Lab, city: &City) -> Result<()> {
    for member in lab.members() {
        let cell = lab.plane(member).await?;
        let found = cell
            .get(kind::WORKLOAD_DEPLOYMENT, Some(NAMESPACE), city.deployment)
            .await?;
        if member != city.member {
            ensure!(
                found.is_none(),
                "{} is in {member}, which is not {}",
                city.deployment,
                city.code
            );
            continue;
        }
        let object = found.with_context(|| format!("{} is not in {member}", city.deployment))?;
        let label = object.metadata.labels.unwrap_or_default().remove(labels::CITY_CODE);
        ensure!(
            label.as_deref() == Some(city.code),
            "{} in {member} carries city {label:?}",
            city.deployment
        );
    }
    Ok(())
}
