//! Karmada's own cases for its example kind (its test/e2e/suites/base/resourceinterpreter_test.go), with our module.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::environment::SOON;
use popcell_suites::environment::{DFW, Environment, ORD};
use popcell_suites::read;
use popcell_test_support::kind::{EXAMPLE_WORKLOAD, RESOURCE_BINDING, WORK};
use popcell_test_support::{Plane, eventually};
use serde_json::{Value, json};

use crate::planes::{awaited, example_policy, example_workload, hub_with_namespace};

const BINDING: &str = "nginx-workload";

fn both() -> Value {
    json!({ "clusterAffinity": { "clusterNames": [DFW, ORD] } })
}

async fn propagated(
    environment: &Environment,
    namespace: &str,
    placement: &Value,
    replicas: i32,
) -> Result<(Plane, [Plane; 2])> {
    let hub = hub_with_namespace(environment, namespace).await?;
    hub.apply(&example_policy(namespace, placement)).await?;
    hub.apply(&example_workload(namespace, replicas)).await?;
    let members = [environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?];
    for member in &members {
        awaited(member, EXAMPLE_WORKLOAD, namespace, "nginx", |_| Ok(())).await?;
    }
    Ok((hub, members))
}

async fn set_ready(member: &Plane, namespace: &str, ready: i32) -> Result<()> {
    let status = json!({ "readyReplicas": ready });
    member
        .set_status(EXAMPLE_WORKLOAD, Some(namespace), "nginx", &status)
        .await
        .map(|_| ())
}

fn replicas_are(expected: i32) -> impl FnMut(&DynamicObject) -> Result<()> {
    move |object| read::expect_at(object, "/spec/replicas", &json!(expected))
}

pub(crate) async fn replicas(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, _) = propagated(environment, namespace, &both(), 3).await?;
    awaited(&hub, RESOURCE_BINDING, namespace, BINDING, replicas_are(3)).await?;
    hub.merge(
        EXAMPLE_WORKLOAD,
        Some(namespace),
        "nginx",
        &json!({ "spec": { "replicas": 5 } }),
    )
    .await?;
    awaited(&hub, RESOURCE_BINDING, namespace, BINDING, replicas_are(5)).await?;
    Ok(())
}

pub(crate) async fn retain(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, members) = propagated(environment, namespace, &both(), 2).await?;
    for member in &members {
        let paused = json!({ "spec": { "paused": true } });
        member
            .merge(EXAMPLE_WORKLOAD, Some(namespace), "nginx", &paused)
            .await?;
    }
    let change = json!({ "spec": { "replicas": 4, "paused": false } });
    hub.merge(EXAMPLE_WORKLOAD, Some(namespace), "nginx", &change).await?;
    for member in &members {
        let changed = awaited(member, EXAMPLE_WORKLOAD, namespace, "nginx", replicas_are(4)).await?;
        read::expect_at(&changed, "/spec/paused", &json!(true))?;
    }
    Ok(())
}

pub(crate) async fn revise(environment: &Environment, namespace: &str) -> Result<()> {
    let weight =
        |cluster: &str, weight: i32| json!({ "targetCluster": { "clusterNames": [cluster] }, "weight": weight });
    let placement = json!({
        "clusterAffinity": { "clusterNames": [DFW, ORD] },
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": { "staticWeightList": [weight(DFW, 1), weight(ORD, 2)] },
        },
    });
    let (hub, [dfw, ord]) = propagated(environment, namespace, &placement, 3).await?;
    awaited(&dfw, EXAMPLE_WORKLOAD, namespace, "nginx", replicas_are(1)).await?;
    awaited(&ord, EXAMPLE_WORKLOAD, namespace, "nginx", replicas_are(2)).await?;
    hub.expect(EXAMPLE_WORKLOAD, Some(namespace), "nginx")
        .await
        .and_then(|hubs| replicas_are(3)(&hubs))
}

pub(crate) async fn aggregate(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, [dfw, ord]) = propagated(environment, namespace, &both(), 3).await?;
    set_ready(&dfw, namespace, 1).await?;
    set_ready(&ord, namespace, 2).await?;
    awaited(&hub, EXAMPLE_WORKLOAD, namespace, "nginx", |object| {
        read::expect_at(object, "/status/readyReplicas", &json!(3))
    })
    .await?;
    set_ready(&ord, namespace, 0).await?;
    awaited(&hub, EXAMPLE_WORKLOAD, namespace, "nginx", |object| {
        read::expect_at(object, "/status/readyReplicas", &json!(1))
    })
    .await?;
    Ok(())
}

pub(crate) async fn status(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, [dfw, _]) = propagated(environment, namespace, &both(), 3).await?;
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({ "readyReplicas": 2, "conditions": [condition] });
    dfw.set_status(EXAMPLE_WORKLOAD, Some(namespace), "nginx", &status)
        .await?;
    let work_namespace = format!("karmada-es-{DFW}");
    eventually("the Work's reflected status", SOON, async || {
        let works = hub.list(WORK, Some(&work_namespace), "").await?;
        let of_ours = |work: &&DynamicObject| {
            let metadata = read::at(work, "/spec/workload/manifests/0/metadata");
            metadata["namespace"] == namespace && metadata["name"] == "nginx"
        };
        let work = works.iter().find(of_ours);
        let status = work.map_or(&Value::Null, |work| read::at(work, "/status/manifestStatuses/0/status"));
        ensure!(*status == json!({ "readyReplicas": 2 }), "it is {status}");
        Ok(())
    })
    .await
}

pub(crate) async fn health(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, members) = propagated(environment, namespace, &both(), 2).await?;
    for (ready, expected) in [(2, "Healthy"), (1, "Unhealthy"), (2, "Healthy")] {
        for member in &members {
            set_ready(member, namespace, ready).await?;
        }
        awaited(&hub, RESOURCE_BINDING, namespace, BINDING, |binding| {
            for cluster in [DFW, ORD] {
                let health = read::health_on(binding, cluster)?;
                ensure!(
                    health == expected,
                    "{cluster} is {health}, not {expected}, with {ready} of 2 ready"
                );
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}
