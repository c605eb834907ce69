//! Operations that only the example module registers, on a real Karmada: of Karmada's own cases for its example kind (its
//! test/e2e/suites/base/resourceinterpreter_test.go) those that the compute module does not show.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::environment::{DFW, Environment, ORD};
use popcell_suites::read;
use popcell_test_support::Plane;
use popcell_test_support::kind::{CONFIG_MAP, EXAMPLE_WORKLOAD, PROPAGATION_POLICY};
use serde_json::{Value, json};

use crate::planes::{awaited, example_policy, example_workload, gone, hub_with_namespace};

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

fn replicas_are(expected: i32) -> impl FnMut(&DynamicObject) -> Result<()> {
    move |object| read::expect_at(object, "/spec/replicas", &json!(expected))
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

/// What a Workload refers to goes where it goes.
pub(crate) async fn dependencies(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = hub_with_namespace(environment, namespace).await?;
    let settings = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": "settings" }, "data": { "key": value },
        })
    };
    hub.apply(&settings("one")).await?;
    hub.apply(&example_policy(
        namespace,
        &json!({ "clusterAffinity": { "clusterNames": [DFW] } }),
    ))
    .await?;
    let mut workload = example_workload(namespace, 1);
    workload["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{ "configMapRef": { "name": "settings" } }]);
    hub.apply(&workload).await?;

    let (dfw, ord) = (environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?);
    awaited(&dfw, CONFIG_MAP, namespace, "settings", |_| Ok(())).await?;
    hub.apply(&settings("two")).await?;
    awaited(&dfw, CONFIG_MAP, namespace, "settings", |object| {
        read::expect_at(object, "/data/key", &json!("two"))
    })
    .await?;
    ensure!(
        ord.get(CONFIG_MAP, Some(namespace), "settings").await?.is_none(),
        "it went to the other member too"
    );

    let moved = json!({ "spec": { "placement": { "clusterAffinity": { "clusterNames": [ORD] } } } });
    hub.merge(PROPAGATION_POLICY, Some(namespace), "example", &moved)
        .await?;
    awaited(&ord, CONFIG_MAP, namespace, "settings", |_| Ok(())).await?;
    gone(&dfw, CONFIG_MAP, namespace, "settings").await
}
