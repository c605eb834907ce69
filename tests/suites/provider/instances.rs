//! What an Instance says of its Pod.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::{annotations, finalizers, gates, labels};
use popcell_suites::read::{self, expect_at, is_ready, says, uid};
use popcell_suites::steps::gone;
use popcell_test_support::kind::{INSTANCE, NETWORK_POLICY, POD};
use popcell_test_support::{always, images};
use serde_json::json;

use crate::environment::{Environment, Site};

pub(crate) async fn ready(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    let rule =
        json!({ "ports": [{ "protocol": "TCP", "port": 80 }], "from": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }] });
    site.make("web", &[gates::NETWORK], |one| {
        // A type that only the annotation knows.
        one["metadata"]["annotations"] = json!({ annotations::INSTANCE_TYPE_SIZE: "acme/large cpu=2 memory=3Gi" });
        one["spec"]["runtime"]["resources"]["instanceType"] = json!("acme/large");
        one["spec"]["networkInterfaces"][0]["networkPolicy"] = json!({ "ingress": [rule] });
    })
    .await?;
    site.instance("web", |one| says(one, "Ready", "False", "SchedulingGatesPresent"))
        .await?;
    always("the gate holds the Pod back", Duration::from_secs(2), async || {
        let pod = site.cell.get(POD, Some(namespace), "web").await?;
        ensure!(pod.is_none(), "there is one");
        let held = site.cell.expect(INSTANCE, Some(namespace), "web").await?;
        ensure!(held.metadata.finalizers.is_none(), "{:?}", held.metadata.finalizers);
        says(&held, "Programmed", "Unknown", "Pending")
    })
    .await?;
    let open = json!({ "spec": { "controller": { "schedulingGates": [] } } });
    site.cell.merge(INSTANCE, Some(namespace), "web", &open).await?;
    let instance = site.instance("web", is_ready).await?;
    says(&instance, "Programmed", "True", "Programmed")?;
    says(&instance, "Available", "True", "Available")?;
    expect_at(
        &instance,
        "/status/controller/observedTemplateHash",
        read::at(&instance, "/spec/controller/templateHash"),
    )?;
    ensure!(
        instance.metadata.finalizers == Some(vec![finalizers::POD_PROVIDER.to_owned()]),
        "{:?}",
        instance.metadata.finalizers
    );
    let pod = site.pod("web", |_| Ok(())).await?;
    let address = read::at(&pod, "/status/podIP");
    ensure!(address.is_string(), "the Pod has no address: {address}");
    expect_at(
        &instance,
        "/status/networkInterfaces",
        &json!([{ "assignments": { "networkIP": address } }]),
    )?;
    expect_at(
        &pod,
        "/spec/containers/0/resources/limits",
        &json!({ "cpu": "2", "memory": "3Gi" }),
    )?;
    expect_at(&pod, "/spec/automountServiceAccountToken", &json!(false))?;
    let policies = site.cell.list(NETWORK_POLICY, Some(namespace), "").await?;
    let [policy] = policies.as_slice() else {
        anyhow::bail!("{policies:?}");
    };
    let selected = json!({ "matchLabels": { labels::INSTANCE_UID: uid(&instance) } });
    expect_at(policy, "/spec/podSelector", &selected)
}

pub(crate) async fn reasons(environment: &Environment, namespace: &str) -> Result<()> {
    let site = Site::new(environment, namespace).await?;
    for (name, image, reason) in [
        ("missing", images::MISSING, "ImageUnavailable"),
        ("crashing", images::CRASHING, "InstanceCrashing"),
        ("misconfigured", images::MISCONFIGURED, "ConfigurationError"),
        ("networkless", images::NETWORKLESS, "NetworkFailedToCreate"),
    ] {
        site.make(name, &[], |one| {
            one["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!(image);
        })
        .await?;
        let instance = site
            .instance(name, |one| says(one, "Available", "Unknown", reason))
            .await?;
        // popcell passes it on to who declared it.
        site.instance(name, |one| says(one, "Ready", "Unknown", reason)).await?;
        expect_at(&instance, "/status/controller", &json!(null)).or_else(|error| {
            // What crashes has run.
            if name == "crashing" { Ok(()) } else { Err(error) }
        })?;
    }
    // No Pod can be a machine, and no API server is asked for one.
    site.make("machine", &[], |one| {
        one["spec"]["runtime"] = json!({
            "resources": { "instanceType": "datumcloud/d1-standard-2" },
            "virtualMachine": { "volumeAttachments": [{ "name": "boot" }] },
        });
    })
    .await?;
    let machine = site
        .instance("machine", |one| says(one, "Ready", "Unknown", "ConfigurationError"))
        .await?;
    let message = read::condition(&machine, "Ready")?["message"].to_string();
    ensure!(message.contains("a Pod cannot be a virtual machine"), "{message}");
    ensure!(
        site.cell.get(POD, Some(namespace), "machine").await?.is_none(),
        "there is a Pod"
    );
    // What the server refuses of a Pod is said with its words.
    site.make("unnameable", &[], |one| {
        one["spec"]["runtime"]["sandbox"]["containers"][0]["name"] = json!("Not A Name");
    })
    .await?;
    let rejected = site
        .instance("unnameable", |one| says(one, "Ready", "Unknown", "ConfigurationError"))
        .await?;
    let message = read::condition(&rejected, "Ready")?["message"].to_string();
    ensure!(message.contains("spec.containers[0].name"), "{message}");
    // It would be tried again, now and then.
    site.cell.delete(INSTANCE, Some(namespace), "unnameable").await?;
    gone(&site.cell, INSTANCE, namespace, "unnameable").await
}
