//! The manifests of the controller.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use kube::config::Kubeconfig;
use popcell_controller_runtime::config::{Controllers, Discovery, ProcessEnvironment, Settings};
use popcell_suites::environment::{DFW, Environment, SPARE};
use popcell_test_support::{manifests, objects};
use serde_json::{Value, json};

use crate::manifests::{accepted, only, secure};
use crate::manifests_pod::Pod;

/// The overlay on a real API server, and what the program in its Pod makes of it.
pub(crate) async fn management_plane(environment: &Environment, _: &str) -> Result<()> {
    let shipped = manifests::build("overlays/management-plane".as_ref())?;
    let kinds: Vec<&str> = shipped.iter().filter_map(|object| object["kind"].as_str()).collect();
    for kind in [
        "Namespace",
        "ServiceAccount",
        "Role",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "ConfigMap",
        "ValidatingWebhookConfiguration",
    ] {
        ensure!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    // The Pods' volumes make certificates.
    ensure!(
        !kinds.contains(&"Certificate") && !kinds.contains(&"Issuer"),
        "{kinds:?}"
    );
    let plane = environment.lab.plane(SPARE).await?;
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await?;

    let pod = Pod::of(&shipped)?;
    let (flags, settings) = pod.settings()?;
    let management = Controllers {
        management: true,
        cell: false,
    };
    ensure!(settings.controllers == management, "{:?}", settings.controllers);
    ensure!(
        matches!(settings.discovery, Discovery::Milo(_)),
        "{:?}",
        settings.discovery
    );
    ensure!(settings.warnings.is_empty() && !settings.dry_run, "{settings:?}");
    holds_its_lease(&settings, &shipped)?;
    reviews(&pod, &settings, &shipped)?;
    is_known_to_the_hub(&pod)?;
    let kubeconfig = flags.federation_kubeconfig.context("no way to the hub")?;
    connects(&pod, &kubeconfig)
}

/// Two replicas take the Lease that their Role is about.
pub(crate) fn holds_its_lease(settings: &Settings, shipped: &[Value]) -> Result<()> {
    let lease = settings.lease.as_ref().context("two replicas without a Lease")?;
    let mut roles = shipped.iter().filter(|object| object["kind"] == "Role");
    let role = roles.find(|role| role["metadata"]["name"] == "compute-lease");
    let role = role.context("no Role for the Lease")?;
    ensure!(role["metadata"]["namespace"] == lease.namespace.as_str(), "{role}");
    ensure!(role["rules"][1]["resourceNames"] == json!([lease.name]), "{role}");
    Ok(())
}

/// The admission webhook is served where API servers call it.
pub(crate) fn reviews(pod: &Pod<'_>, settings: &Settings, shipped: &[Value]) -> Result<()> {
    let webhook = settings.webhook.as_ref().context("no admission webhook")?.listen.port();
    let health = settings.health.context("no health port")?.port();
    ensure!(
        pod.port("webhook") == Some(webhook.into()) && pod.port("health") == Some(health.into()),
        "{}",
        pod.spec()
    );
    let called = "/webhooks/0/clientConfig/service/port";
    let validating = only(shipped, "ValidatingWebhookConfiguration")?;
    ensure!(validating.pointer(called) == Some(&json!(webhook)), "{validating}");
    Ok(())
}

/// The rights in the hub are those of the user that the Pod's token names.
fn is_known_to_the_hub(pod: &Pod<'_>) -> Result<()> {
    let user = pod.user()?;
    let rights = manifests::build(manifests::HUB_RBAC.as_ref())?;
    let bindings = rights
        .iter()
        .filter(|object| {
            object["kind"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("RoleBinding"))
        })
        .filter(|binding| binding["roleRef"]["name"] != "popcell-cell");
    for binding in bindings {
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        ensure!(
            subjects.any(|subject| subject["name"] == user.as_str()),
            "{user} is not in {binding}"
        );
    }
    Ok(())
}

/// The kubeconfig names files that are there.
fn connects(pod: &Pod<'_>, file: &Path) -> Result<()> {
    let text = pod
        .shipped_text(file)
        .with_context(|| format!("no {}", file.display()))?;
    let kubeconfig = Kubeconfig::from_yaml(text)?;
    let cluster = kubeconfig.clusters.first().and_then(|named| named.cluster.as_ref());
    let user = kubeconfig.auth_infos.first().and_then(|named| named.auth_info.as_ref());
    let (Some(cluster), Some(user)) = (cluster, user) else {
        bail!("no cluster or no user in {text}");
    };
    for named in [&cluster.certificate_authority, &user.token_file] {
        let named = named
            .as_deref()
            .with_context(|| format!("a file is missing in {text}"))?;
        ensure!(pod.has(Path::new(named)), "the Pod has no {named}");
    }
    let audience = "/volumes/0/projected/sources/0/serviceAccountToken/audience";
    let token = pod.spec()["volumes"].as_array().into_iter().flatten();
    let mut token = token.filter(|volume| volume.get("projected").is_some()).cloned();
    let token = json!({ "volumes": [token.next().context("no projected token")?] });
    ensure!(
        token.pointer(audience).and_then(Value::as_str) == cluster.server.as_deref(),
        "{token}"
    );
    Ok(())
}

/// The overlay for a program on a developer's machine, on a real API server.
pub(crate) async fn dev(environment: &Environment, _: &str) -> Result<()> {
    // Not where the other overlay is: both have the same Namespace, and this one without Pod Security.
    let plane = environment.lab.plane(DFW).await?;
    for (kind, plural) in [("Issuer", "issuers"), ("Certificate", "certificates")] {
        plane.apply(&objects::open_crd("cert-manager.io", kind, plural)).await?;
    }
    let shipped = manifests::build("overlays/dev".as_ref())?;
    accepted(&plane, &shipped).await?;
    ensure!(
        only(&shipped, "Deployment").is_err(),
        "it runs on the developer's machine"
    );
    let certificate = only(&shipped, "Certificate")?;
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    ensure!(name(certificate) == "compute-serving-cert", "{certificate}");
    ensure!(
        certificate["spec"]["issuerRef"]["name"] == "selfsigned-issuer",
        "{certificate}"
    );
    let hosts = certificate["spec"]["dnsNames"].as_array().context("no names")?;
    ensure!(hosts.contains(&json!("host.docker.internal")), "{certificate}");
    let authority = format!("compute-system/{}", name(certificate));
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let configuration = only(&shipped, kind)?;
        let annotations = &configuration["metadata"]["annotations"];
        ensure!(
            annotations["cert-manager.io/inject-ca-from"] == authority.as_str(),
            "{configuration}"
        );
        let url = configuration["webhooks"][0]["clientConfig"]["url"]
            .as_str()
            .unwrap_or_default();
        ensure!(url.starts_with("https://host.docker.internal:9443/"), "{configuration}");
    }
    Ok(())
}
