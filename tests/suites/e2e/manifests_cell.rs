//! The manifests of a cell, and of everything on one cluster.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use popcell_api::names;
use popcell_controller_runtime::config::{Controllers, Credentials, Discovery};
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_test_support::{eventually, manifests};
use serde_json::{Value, json};

use crate::manifests::{accepted, only, secure};
use crate::manifests_controller::{holds_its_lease, reviews};
use crate::manifests_pod::Pod;

/// The overlay on a real API server, and what the program in its Pod makes of it.
pub(crate) async fn cell(environment: &Environment, _: &str) -> Result<()> {
    let shipped = manifests::build(manifests::CELL.as_ref())?;
    let foreign = ["ValidatingWebhookConfiguration", "CustomResourceDefinition", "Secret"];
    let mut kinds = shipped.iter().filter_map(|object| object["kind"].as_str());
    ensure!(!kinds.any(|kind| foreign.contains(&kind)), "{shipped:?}");
    // As tests of its rights: where no other overlay gives rights to the same user.
    let plane = environment.lab.plane(ORD).await?;
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await?;

    let pod = Pod::of(&shipped)?;
    let (_, settings) = pod.settings()?;
    let cell = Controllers {
        management: false,
        cell: true,
    };
    ensure!(settings.controllers == cell, "{:?}", settings.controllers);
    ensure!(
        settings.discovery == Discovery::Single && settings.cluster_name == DFW && settings.webhook.is_none(),
        "{settings:?}"
    );
    ensure!(settings.warnings.is_empty() && !settings.dry_run, "{settings:?}");
    ensure!(settings.namespace == "compute-system", "{}", settings.namespace);
    holds_its_lease(&settings, &shipped)?;
    let quota = settings.quota.context("no quota")?;
    ensure!(quota.project.is_none(), "{quota:?}");
    let file = |credentials: &Credentials| match credentials {
        Credentials::File { file, .. } => Some(file.clone()),
        _ => None,
    };
    let (hub, quota) = (settings.hub.as_ref().and_then(file), file(&quota.credentials));
    ensure!(
        hub.as_deref() == Some(Path::new("/etc/hub-credentials/kubeconfig")),
        "{hub:?}"
    );
    ensure!(
        quota.as_deref() == Some(Path::new("/etc/quota-credentials/kubeconfig")),
        "{quota:?}"
    );
    // Nobody calls in but those who scrape.
    let policy = &only(&shipped, "NetworkPolicy")?["spec"]["ingress"];
    ensure!(
        policy.as_array().map(Vec::len) == Some(1) && policy[0]["ports"][0]["port"] == "health",
        "{policy}"
    );
    record_is_writable(&shipped)
}

/// The Role of the record of projects names the ConfigMap that the program writes.
fn record_is_writable(shipped: &[Value]) -> Result<()> {
    let mut roles = shipped.iter().filter(|object| object["kind"] == "Role");
    let named = json!([names::CLAIM_PROJECTS]);
    ensure!(
        roles.any(|role| role["rules"][1]["resourceNames"] == named),
        "no Role for {named}"
    );
    Ok(())
}

/// Both groups of controllers run.
pub(crate) async fn single_cluster(environment: &Environment, _: &str) -> Result<()> {
    let shipped = manifests::build(manifests::SINGLE_CLUSTER.as_ref())?;
    let crds = shipped
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    ensure!(crds.count() == 3, "our three kinds");
    // Tried only: stored, it would give the same user rights that other tests show it does not have.
    let plane = environment.lab.plane(SPARE).await?;
    plane.apply(only(&shipped, "Namespace")?).await?;
    for object in &shipped {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        eventually(&what, SOON, async || plane.dry_run(object).await).await?;
    }
    secure(&plane, &shipped).await?;

    let pod = Pod::of(&shipped)?;
    for variable in ["ENABLE_MANAGEMENT_CONTROLLERS", "ENABLE_CELL_CONTROLLERS"] {
        let environment = pod.spec()["containers"][0]["env"].as_array().into_iter().flatten();
        let mut values = environment
            .filter(|one| one["name"] == variable)
            .map(|one| &one["value"]);
        ensure!(
            values.next() == Some(&json!("true")) && values.next().is_none(),
            "{variable}"
        );
    }
    let (_, settings) = pod.settings()?;
    let both = Controllers {
        management: true,
        cell: true,
    };
    ensure!(settings.controllers == both, "{:?}", settings.controllers);
    ensure!(
        settings.discovery == Discovery::Single && settings.hub.is_none() && settings.quota.is_none(),
        "{settings:?}"
    );
    ensure!(settings.warnings.is_empty() && !settings.dry_run, "{settings:?}");
    holds_its_lease(&settings, &shipped)?;
    reviews(&pod, &settings, &shipped)?;
    // The one account has the rights of both.
    let user = pod.user()?;
    for role in ["compute-manager-project", "compute-cell"] {
        let mut bindings = shipped.iter().filter(|object| object["kind"] == "ClusterRoleBinding");
        let binding = bindings.find(|binding| binding["roleRef"]["name"] == role);
        let subject = &binding.with_context(|| format!("nobody has {role}"))?["subjects"][0];
        let name = subject["name"].as_str().unwrap_or_default();
        let full = match subject["namespace"].as_str() {
            Some(namespace) => format!("system:serviceaccount:{namespace}:{name}"),
            None => name.to_owned(),
        };
        ensure!(full == user, "{role} is of {full}");
    }
    Ok(())
}
