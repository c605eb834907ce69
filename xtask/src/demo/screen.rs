//! The last screen: each plane as it is now, and how to look around.

use anyhow::Result;
use kube::api::DynamicObject;
use popcell_test_support::{Lab, Plane, Webhook, artifacts, kind};

use super::{CITIES, NAMESPACE, describe};

/// Prints it.
pub(super) async fn show(lab: &Lab, webhook: &Webhook) -> Result<()> {
    println!("\n=== Each plane");
    let hub = lab.hub().await?;
    println!("\nhub (Karmada): both deployments, with the status that the webhook's module aggregated");
    deployments(&hub).await?;
    bindings(&hub).await?;
    for city in &CITIES {
        println!(
            "\n{} (member, city {}): the deployment of {} and no other",
            city.member, city.code, city.code
        );
        deployments(&lab.plane(city.member).await?).await?;
    }
    calls(webhook).await?;
    println!("\n=== Look around");
    let karmadactl = lab.program("karmadactl");
    for plane in ["hub"].into_iter().chain(CITIES.iter().map(|city| city.member)) {
        let kubeconfig = lab.kubeconfig(plane)?;
        println!(
            "  {} --kubeconfig {} -n {NAMESPACE} get wd",
            karmadactl.display(),
            kubeconfig.display()
        );
    }
    let popcell = artifacts::popcell()?.get_program().to_string_lossy().into_owned();
    println!("  {popcell} doctor --kubeconfig {}", lab.kubeconfig("hub")?.display());
    println!(
        "  {popcell} check {}",
        webhook.module_dir().join("compute.wasm").display()
    );
    println!("  logs: {}", lab.dir().join("logs").display());
    println!("The cells' status is written by a stand-in: it starts no instance, but reports as a cell would.");
    Ok(())
}

async fn deployments(plane: &Plane) -> Result<()> {
    let heads = ["NAME", "CITY", "READY", "AVAILABLE", "GENERATION", "OBSERVED"];
    let row = |object: &DynamicObject| {
        vec![
            object.metadata.name.clone().unwrap_or_default(),
            describe::text(object, "/spec/cityCode"),
            format!(
                "{}/{}",
                describe::number(object, "/status/readyReplicas"),
                describe::number(object, "/status/desiredReplicas")
            ),
            describe::available(object),
            object.metadata.generation.unwrap_or_default().to_string(),
            describe::number(object, "/status/observedGeneration"),
        ]
    };
    let objects = plane.list(kind::WORKLOAD_DEPLOYMENT, Some(NAMESPACE), "").await?;
    table(&heads, &objects.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

async fn bindings(hub: &Plane) -> Result<()> {
    let row = |object: &DynamicObject| {
        vec![
            object.metadata.name.clone().unwrap_or_default(),
            describe::names(object, "/spec/clusters", "name"),
            describe::number(object, "/spec/replicas"),
            describe::names(object, "/status/aggregatedStatus", "health"),
        ]
    };
    let objects = hub.list(kind::RESOURCE_BINDING, Some(NAMESPACE), "").await?;
    table(
        &["BINDING", "CLUSTERS", "REPLICAS", "HEALTH"],
        &objects.iter().map(row).collect::<Vec<_>>(),
    );
    Ok(())
}

/// What Karmada asked the webhook.
async fn calls(webhook: &Webhook) -> Result<()> {
    println!("\nwebhook: calls of Karmada so far");
    let metrics = webhook.metrics().await?;
    for line in metrics.lines().filter(|line| line.starts_with("popcell_calls_total{")) {
        println!("  {line}");
    }
    Ok(())
}

fn table(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::len);
        cells.chain([heads[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let print = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        println!("  {}", padded.join("  ").trim_end());
    };
    print(&mut heads.iter().copied());
    for row in rows {
        print(&mut row.iter().map(String::as_str));
    }
}
