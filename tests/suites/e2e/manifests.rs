//! The manifests that are shipped.

use anyhow::{Context, Result, ensure};
use popcell_suites::world::{SOON, SPARE, World};
use popcell_test_support::{eventually, manifests, objects};
use serde_json::json;

/// The shipped manifests on a real API server: accepted, and the Pod passes restricted Pod Security.
pub(crate) async fn accepted(world: &World, _: &str) -> Result<()> {
    let plane = world.lab.plane(SPARE).await?;
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
    for object in &shipped {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        let applied = eventually(&what, SOON, async || plane.apply(object).await);
        applied.await?;
    }
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
