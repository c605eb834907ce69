//! What the manifests ship, on real API servers and as the program in their Pods finds it.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use kube::config::Kubeconfig;
use popcell_api::names;
use popcell_controller_runtime::config::{Controllers, Credentials, Discovery, ProcessEnvironment, Settings};
use popcell_controller_runtime::flags::Flags;
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_test_support::{Plane, eventually, manifests, objects};
use serde_json::{Value, json};

use crate::manifests_pod::{Pod, SERVING_CERTIFICATE};
use crate::manifests_rights;

/// The shipped manifests on a real API server: accepted, and the Pod passes restricted Pod Security.
pub(crate) async fn webhook(environment: &Environment, _: &str) -> Result<()> {
    let plane = environment.lab.plane(SPARE).await?;
    cert_manager(&plane).await?;
    let shipped = manifests::build("webhook/overlays/default".as_ref())?;
    let kinds: Vec<&str> = shipped.iter().filter_map(|object| object["kind"].as_str()).collect();
    for kind in [
        "Namespace",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "CronJob",
        "Certificate",
    ] {
        ensure!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await
}

/// The kinds of cert-manager that are shipped.
pub(crate) async fn cert_manager(plane: &Plane) -> Result<()> {
    for (kind, plural) in [("Issuer", "issuers"), ("Certificate", "certificates")] {
        plane.apply(&objects::open_crd("cert-manager.io", kind, plural)).await?;
    }
    Ok(())
}

/// The Pods pass restricted Pod Security, and would not if they might take more rights.
async fn secure(plane: &Plane, shipped: &[Value]) -> Result<()> {
    for workload in shipped
        .iter()
        .filter(|object| object["kind"] == "Deployment" || object["kind"] == "CronJob")
    {
        let mut pod = manifests::pod_template(workload).clone();
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

/// A real API server takes all of it. Nothing is stored that would act on others' objects there, nor a ResourceQuota: without
/// its controller, which the lab does not run, it refuses every Pod.
pub(crate) async fn accepted(plane: &Plane, shipped: &[Value]) -> Result<()> {
    for object in shipped {
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_tried =
            kind.ends_with("WebhookConfiguration") || ["CustomResourceDefinition", "ResourceQuota"].contains(&kind);
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

/// The overlay on a real API server, and what the program in its Pod makes of it.
pub(crate) async fn management_plane(environment: &Environment, _: &str) -> Result<()> {
    let shipped = manifests::build("overlays/management-plane".as_ref())?;
    let kinds: Vec<&str> = shipped.iter().filter_map(|object| object["kind"].as_str()).collect();
    for kind in [
        "Namespace",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "CustomResourceDefinition",
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "ConfigMap",
        "ValidatingWebhookConfiguration",
    ] {
        ensure!(kinds.contains(&kind), "no {kind} in {kinds:?}");
    }
    trusts_its_certificate(&shipped)?;
    let plane = environment.lab.plane(SPARE).await?;
    cert_manager(&plane).await?;
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await?;

    let pod = Pod::of(&shipped)?;
    manifests_rights::at_home(&plane, &pod.user()?).await?;
    let (flags, settings) = started(&pod, &shipped, [true, false])?;
    ensure!(
        matches!(settings.discovery, Discovery::Milo(_)),
        "{:?}",
        settings.discovery
    );
    reviews(&pod, &settings, &shipped)?;
    is_known_to_the_hub(&pod)?;
    let kubeconfig = flags.federation_kubeconfig.context("no way to the hub")?;
    connects(&pod, &kubeconfig)
}

/// cert-manager alone makes the certificate and has the API server trust it.
fn trusts_its_certificate(shipped: &[Value]) -> Result<()> {
    let mut certificates = shipped.iter().filter(|object| object["kind"] == "Certificate");
    let serving = certificates.find(|object| object["spec"]["secretName"] == SERVING_CERTIFICATE);
    let serving = serving.context("no certificate for the webhook")?;
    let name = serving["metadata"]["name"].as_str().unwrap_or_default();
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let configuration = only(shipped, kind)?;
        let authority = &configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        ensure!(*authority == format!("compute-system/{name}"), "{configuration}");
    }
    Ok(())
}

/// What the program makes of its Pod: it works, with nothing to warn of, and the Lease is its own.
fn started(pod: &Pod<'_>, shipped: &[Value], [management, cell]: [bool; 2]) -> Result<(Flags, Settings)> {
    let (flags, settings) = pod.settings()?;
    let expected = Controllers { management, cell };
    ensure!(settings.controllers == expected, "{:?}", settings.controllers);
    ensure!(settings.warnings.is_empty() && !settings.dry_run, "{settings:?}");
    holds_its_lease(&settings, shipped)?;
    Ok((flags, settings))
}

/// Two replicas take the Lease that their Role is about.
fn holds_its_lease(settings: &Settings, shipped: &[Value]) -> Result<()> {
    let lease = settings.lease.as_ref().context("two replicas without a Lease")?;
    let mut roles = shipped.iter().filter(|object| object["kind"] == "Role");
    let role = roles.find(|role| role["metadata"]["name"] == "compute-lease");
    let role = role.context("no Role for the Lease")?;
    ensure!(role["metadata"]["namespace"] == lease.namespace.as_str(), "{role}");
    ensure!(role["rules"][1]["resourceNames"] == json!([lease.name]), "{role}");
    Ok(())
}

/// The admission webhook is served where API servers call it.
fn reviews(pod: &Pod<'_>, settings: &Settings, shipped: &[Value]) -> Result<()> {
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
    cert_manager(&plane).await?;
    let shipped = manifests::build("overlays/dev".as_ref())?;
    accepted(&plane, &shipped).await?;
    ensure!(
        only(&shipped, "Deployment").is_err(),
        "it runs on the developer's machine"
    );
    trusts_its_certificate(&shipped)?;
    let mut certificates = shipped.iter().filter(|object| object["kind"] == "Certificate");
    let certificate = certificates.find(|object| object["metadata"]["name"] == SERVING_CERTIFICATE);
    let certificate = certificate.context("no certificate")?;
    let hosts = certificate["spec"]["dnsNames"].as_array().context("no names")?;
    ensure!(hosts.contains(&json!("host.docker.internal")), "{certificate}");
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let configuration = only(&shipped, kind)?;
        let url = configuration["webhooks"][0]["clientConfig"]["url"]
            .as_str()
            .unwrap_or_default();
        ensure!(url.starts_with("https://host.docker.internal:9443/"), "{configuration}");
    }
    Ok(())
}

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
    let (_, settings) = started(&pod, &shipped, [false, true])?;
    ensure!(
        settings.discovery == Discovery::Single && settings.cluster_name == DFW && settings.webhook.is_none(),
        "{settings:?}"
    );
    ensure!(settings.namespace == "compute-system", "{}", settings.namespace);
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
    ensure!(crds.count() == 4, "our three kinds, and instance types");
    // Tried only: stored, it would give the same user rights that other tests show it does not have.
    let plane = environment.lab.plane(SPARE).await?;
    cert_manager(&plane).await?;
    trusts_its_certificate(&shipped)?;
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
    let (_, settings) = started(&pod, &shipped, [true, true])?;
    ensure!(
        settings.discovery == Discovery::Single && settings.hub.is_none() && settings.quota.is_none(),
        "{settings:?}"
    );
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
