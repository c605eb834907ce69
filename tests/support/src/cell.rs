//! Stand-in for the controllers of a cell, which come later: it starts no instance, but reports as if it did.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::objects::cell_status;
use crate::{Plane, kind};

/// Watches the WorkloadDeployments of one plane and writes their status: first that it has seen the spec, then one more
/// ready instance after each `pace`, until all are ready. Ends with this value.
#[derive(Debug)]
pub struct CellStandIn {
    task: JoinHandle<()>,
}

impl CellStandIn {
    /// Starts it. An object that cannot be written now is tried again at its next event.
    #[must_use]
    pub fn start(plane: Plane, pace: Duration) -> Self {
        Self {
            task: tokio::spawn(watch(plane, pace)),
        }
    }
}

impl Drop for CellStandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(plane: Plane, pace: Duration) {
    let api = plane.api(kind::WORKLOAD_DEPLOYMENT, None);
    let mut objects = watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(object) = objects.next().await {
        // Errors are a server that is away: the watcher connects again by itself.
        let Ok(object) = object else { continue };
        let plane = plane.clone();
        // Each event leads to at most one step, and each step to an event: objects advance side by side.
        tokio::spawn(async move {
            if let Err(error) = advance(&plane, &object, pace).await {
                eprintln!("stand-in of cell {}: {error:#}", plane.name());
            }
        });
    }
}

/// One step towards "all ready", if one is due.
async fn advance(plane: &Plane, object: &DynamicObject, pace: Duration) -> Result<()> {
    let Some((status, wait)) = next_status(object) else {
        return Ok(());
    };
    if wait {
        tokio::time::sleep(pace).await;
    }
    let name = object.metadata.name.as_deref().context("an object without name")?;
    let namespace = object.metadata.namespace.as_deref();
    if plane
        .get(kind::WORKLOAD_DEPLOYMENT, namespace, name)
        .await?
        .is_some_and(|now| is_same(&now, object))
    {
        plane
            .set_status(kind::WORKLOAD_DEPLOYMENT, namespace, name, &status)
            .await?;
    }
    Ok(())
}

/// Whether nothing happened to the object since; otherwise another event is on its way.
fn is_same(now: &DynamicObject, then: &DynamicObject) -> bool {
    now.metadata.resource_version == then.metadata.resource_version
}

/// The next status, and whether an instance has to start for it.
fn next_status(object: &DynamicObject) -> Option<(Value, bool)> {
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_i64);
    let generation = object.metadata.generation?;
    let desired = i32::try_from(number("/spec/scaleSettings/minReplicas")?).ok()?;
    let ready = number("/status/readyReplicas")
        .and_then(|ready| i32::try_from(ready).ok())
        .unwrap_or(0);
    if number("/status/observedGeneration") != Some(generation) {
        return Some((cell_status(generation, desired, ready.min(desired)), false));
    }
    (ready < desired).then(|| (cell_status(generation, desired, ready + 1), true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(generation: i64, desired: i32, status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "WorkloadDeployment",
            "metadata": { "name": "web", "generation": generation },
            "spec": { "scaleSettings": { "minReplicas": desired } },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn reports_the_spec_at_once_and_instances_one_by_one() {
        let mut object = object(1, 2, &json!({}));
        let mut seen = Vec::new();
        while let Some((status, waited)) = next_status(&object) {
            seen.push((status["readyReplicas"].clone(), waited));
            object.data["status"] = status;
        }
        assert_eq!(seen, [(json!(0), false), (json!(1), true), (json!(2), true)]);
    }

    #[test]
    fn fewer_instances_need_no_wait() {
        let object = object(2, 1, &cell_status(1, 2, 2));
        assert_eq!(next_status(&object), Some((cell_status(2, 1, 1), false)));
    }
}
