//! Dependencies: what a Workload refers to goes where it goes, and a Workload goes where its referrer goes.

use anyhow::{Result, ensure};
use popcell_suites::environment::{DFW, Environment, ORD};
use popcell_suites::read;
use popcell_test_support::kind::{CONFIG_MAP, CRD, EXAMPLE_WORKLOAD, INTERPRETER_CUSTOMIZATION};
use popcell_test_support::objects;
use serde_json::json;

use crate::planes::{awaited, example_policy, example_workload, gone, hub_with_namespace};

pub(crate) async fn config_map(environment: &Environment, namespace: &str) -> Result<()> {
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
    hub.merge(
        popcell_test_support::kind::PROPAGATION_POLICY,
        Some(namespace),
        "example",
        &moved,
    )
    .await?;
    awaited(&ord, CONFIG_MAP, namespace, "settings", |_| Ok(())).await?;
    gone(&dfw, CONFIG_MAP, namespace, "settings").await
}

/// A kind that only this test knows refers to a Workload; Lua tells Karmada so, and our module interprets the Workload.
pub(crate) async fn custom_resource(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = hub_with_namespace(environment, namespace).await?;
    let (dfw, ord) = (environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?);
    for plane in [&hub, &dfw, &ord] {
        plane
            .apply(&objects::open_crd("e2e.popcell.dev", "Referrer", "referrers"))
            .await?;
        awaited(plane, CRD, "", "referrers.e2e.popcell.dev", |crd| {
            let established = read::condition(crd, "Established")?;
            ensure!(established["status"] == "True", "{established}");
            Ok(())
        })
        .await?;
    }
    hub.apply(&referrer_customization()).await?;
    hub.apply(&example_workload(namespace, 2)).await?;
    hub.apply(&json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": { "namespace": namespace, "name": "referrers" },
        "spec": {
            "propagateDeps": true,
            "resourceSelectors": [{ "apiVersion": "e2e.popcell.dev/v1", "kind": "Referrer" }],
            "placement": { "clusterAffinity": { "clusterNames": [ORD] } },
        },
    }))
    .await?;
    hub.apply(&json!({
        "apiVersion": "e2e.popcell.dev/v1", "kind": "Referrer",
        "metadata": { "namespace": namespace, "name": "first" }, "spec": { "workload": "nginx" },
    }))
    .await?;
    awaited(&ord, EXAMPLE_WORKLOAD, namespace, "nginx", |_| Ok(())).await?;
    hub.merge(
        EXAMPLE_WORKLOAD,
        Some(namespace),
        "nginx",
        &json!({ "spec": { "replicas": 7 } }),
    )
    .await?;
    awaited(&ord, EXAMPLE_WORKLOAD, namespace, "nginx", |object| {
        read::expect_at(object, "/spec/replicas", &json!(7))
    })
    .await?;
    ensure!(
        dfw.get(EXAMPLE_WORKLOAD, Some(namespace), "nginx").await?.is_none(),
        "it went to the other member too"
    );
    hub.delete(INTERPRETER_CUSTOMIZATION, None, "e2e-referrers").await
}

fn referrer_customization() -> serde_json::Value {
    let script = "function GetDependencies(desiredObj)\n  return {{apiVersion = 'workload.example.io/v1alpha1', \
                  kind = 'Workload', namespace = desiredObj.metadata.namespace, name = desiredObj.spec.workload}}\nend";
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": "e2e-referrers" },
        "spec": {
            "target": { "apiVersion": "e2e.popcell.dev/v1", "kind": "Referrer" },
            "customizations": { "dependencyInterpretation": { "luaScript": script } },
        },
    })
}
