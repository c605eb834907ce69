//! The manifests of the webhook, and what all manifests are held to.

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_test_support::{Plane, eventually, manifests, objects};
use serde_json::{Value, json};

/// The shipped manifests on a real API server: accepted, and the Pod passes restricted Pod Security.
pub(crate) async fn webhook(environment: &Environment, _: &str) -> Result<()> {
    let plane = environment.lab.plane(SPARE).await?;
    for (group, kind, plural) in [
        ("cert-manager.io", "Issuer", "issuers"),
        ("cert-manager.io", "Certificate", "certificates"),
    ] {
        plane.apply(&objects::open_crd(group, kind, plural)).await?;
    }
    let shipped = manifests::build("webhook/overlays/default".as_ref())?;
    let kinds: Vec<&str> = shipped.iter().filter_map(|object| object["kind"].as_str()).collect();
    for kind in [
        "Namespace",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "ConfigMap",
        "Job",
        "Certificate",
    ] {
        ensure!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await
}

/// The Pods pass restricted Pod Security, and would not if they might take more rights.
pub(crate) async fn secure(plane: &Plane, shipped: &[Value]) -> Result<()> {
    for workload in shipped
        .iter()
        .filter(|object| object["kind"] == "Deployment" || object["kind"] == "Job")
    {
        let mut pod = workload["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = workload["metadata"]["name"].clone();
        pod["metadata"]["namespace"] = workload["metadata"]["namespace"].clone();
        plane.dry_run(&pod).await.context("the Pod is refused")?;
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let refused = plane.dry_run(&pod).await.err().context("Pod Security does not look")?;
        ensure!(format!("{refused:#}").contains("restricted"), "{refused:#}");
    }
    Ok(())
}

/// A real API server takes all of it. Nothing is stored that would act on others' objects there.
pub(crate) async fn accepted(plane: &Plane, shipped: &[Value]) -> Result<()> {
    for object in shipped {
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_tried = kind.ends_with("WebhookConfiguration") || kind == "CustomResourceDefinition";
        let what = format!("{kind} {}", object["metadata"]["name"]);
        let applied = eventually(&what, SOON, async || {
            if is_tried {
                plane.dry_run(object).await
            } else {
                plane.apply(object).await
            }
        });
        applied.await?;
    }
    Ok(())
}

/// The one object of a kind.
pub(crate) fn only<'a>(shipped: &'a [Value], kind: &str) -> Result<&'a Value> {
    let mut found = shipped.iter().filter(|object| object["kind"] == kind);
    let first = found.next().with_context(|| format!("no {kind}"))?;
    ensure!(found.next().is_none(), "more than one {kind}");
    Ok(first)
}
