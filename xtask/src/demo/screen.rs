//! The last screen: each plane as it is now, and how to look around.

use anyhow::Result;
use kube::api::DynamicObject;
use popcell_test_support::{Kind, Plane, Webhook, artifacts, kind};

use super::scene::{Containers, Scene};
use super::{CITIES, NAMESPACE, PROJECT, describe};

/// Prints it.
pub(super) async fn show(scene: &Scene) -> Result<()> {
    let Scene { lab, webhook, .. } = scene;
    println!("\n=== Each plane");
    println!("\nproject: the Workload as its owner sees it, and its share of each city");
    workloads(&scene.project).await?;
    deployments(&scene.project, NAMESPACE).await?;
    instances(&scene.project, NAMESPACE).await?;
    println!(
        "\nhub (Karmada), {}: both deployments, with the status that the webhook's module aggregated",
        scene.hub_namespace
    );
    deployments(&scene.hub, &scene.hub_namespace).await?;
    bindings(scene).await?;
    for city in &CITIES {
        println!(
            "\n{} (member, city {}): the deployment of {} and no other",
            city.member, city.code, city.code
        );
        let cell = lab.plane(city.member).await?;
        deployments(&cell, &scene.hub_namespace).await?;
        instances(&cell, &scene.hub_namespace).await?;
    }
    calls(webhook).await?;
    println!("\n=== Look around");
    let karmadactl = lab.program("karmadactl");
    let behind = ["hub"].into_iter().chain(CITIES.iter().map(|city| city.member));
    let behind = behind.map(|plane| (plane, scene.hub_namespace.as_str(), "wd,instances"));
    for (plane, namespace, kinds) in [(PROJECT, NAMESPACE, "workloads,wd,instances")]
        .into_iter()
        .chain(behind)
    {
        let kubeconfig = lab.kubeconfig(plane)?;
        println!(
            "  {} --kubeconfig {} -n {namespace} get {kinds}",
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
    println!(
        "Milo's gateway, quota and network services are stand-ins. Each Instance is a Pod, made by popcell-provider-pod"
    );
    println!(
        "and placed by kube-scheduler; {}.",
        match scene.containers {
            Containers::Played(_) => "KWOK plays the node, so no container runs (--real runs them)",
            Containers::Real => "a kubelet runs its containers, and the image httpd is a small web server of the lab",
        }
    );
    Ok(())
}

async fn workloads(project: &Plane) -> Result<()> {
    let heads = ["WORKLOAD", "DEPLOYMENTS", "READY", "AVAILABLE"];
    list(project, kind::WORKLOAD, NAMESPACE, &heads, |object| {
        vec![
            describe::number(object, "/status/deployments"),
            describe::ready(object),
            describe::available(object),
        ]
    })
    .await
}

async fn deployments(plane: &Plane, namespace: &str) -> Result<()> {
    let heads = ["NAME", "CITY", "READY", "AVAILABLE", "GENERATION", "OBSERVED"];
    list(plane, kind::WORKLOAD_DEPLOYMENT, namespace, &heads, |object| {
        vec![
            describe::text(object, "/spec/cityCode"),
            describe::ready(object),
            describe::available(object),
            object.metadata.generation.unwrap_or_default().to_string(),
            describe::number(object, "/status/observedGeneration"),
        ]
    })
    .await
}

async fn instances(plane: &Plane, namespace: &str) -> Result<()> {
    let heads = ["INSTANCE", "READY", "QUOTA", "ADDRESS"];
    list(plane, kind::INSTANCE, namespace, &heads, |object| {
        vec![
            describe::condition(object, "Ready"),
            describe::condition(object, "QuotaGranted"),
            describe::text(object, "/status/networkInterfaces/0/assignments/networkIP"),
        ]
    })
    .await
}

async fn bindings(scene: &Scene) -> Result<()> {
    let heads = ["BINDING", "CLUSTERS", "REPLICAS", "HEALTH"];
    list(
        &scene.hub,
        kind::RESOURCE_BINDING,
        &scene.hub_namespace,
        &heads,
        |object| {
            vec![
                describe::names(object, "/spec/clusters", "name"),
                describe::number(object, "/spec/replicas"),
                describe::names(object, "/status/aggregatedStatus", "health"),
            ]
        },
    )
    .await
}

/// A table of a kind's objects: the name of each, and then `columns`.
async fn list(
    plane: &Plane,
    kind: Kind,
    namespace: &str,
    heads: &[&str],
    columns: fn(&DynamicObject) -> Vec<String>,
) -> Result<()> {
    let objects = plane.list(kind, Some(namespace), "").await?;
    let row = |object: &DynamicObject| {
        let name = describe::name(object).to_owned();
        std::iter::once(name).chain(columns(object)).collect()
    };
    table(heads, &objects.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

/// What the webhook was asked; all by Karmada, but for the probe of `popcell register`.
async fn calls(webhook: &Webhook) -> Result<()> {
    println!("\nwebhook: calls so far, the one that `popcell register` probes with included");
    let metrics = webhook.metrics().await?;
    let mut rows: Vec<Vec<String>> = metrics.lines().filter_map(call).filter(|row| row[2] != "0").collect();
    rows.sort();
    table(&["OPERATION", "OUTCOME", "CALLS"], &rows);
    Ok(())
}

/// Operation, outcome and number of a sample of the counter of calls.
fn call(line: &str) -> Option<Vec<String>> {
    let (labels, number) = line.strip_prefix("popcell_calls_total{")?.rsplit_once("} ")?;
    let label = |name: &str| {
        let (_, rest) = labels.split_once(&format!("{name}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    Some(vec![label("operation")?, label("outcome")?, number.to_owned()])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_metrics() {
        let line = r#"popcell_calls_total{module="m@1",kind="g/v K",operation="Retain",outcome="ok"} 7"#;
        assert_eq!(call(line).unwrap(), ["Retain", "ok", "7"]);
        assert_eq!(call("popcell_module_info{name=\"m\"} 1"), None);
    }
}
