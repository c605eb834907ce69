//! The manifests of the controller.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use kube::config::Kubeconfig;
use popcell_controller_runtime::config::{Controllers, Discovery, ServerConfig, Settings, Surroundings};
use popcell_controller_runtime::flags::Flags;
use popcell_suites::world::{DFW, SPARE, World};
use popcell_test_support::{manifests, objects};
use serde_json::{Value, json};

use crate::manifests::{accepted, only, secure};

/// Where kubelets put the service account's token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// A Pod as the program in it finds it, with the objects that came along.
struct Pod<'a> {
    shipped: &'a [Value],
    namespace: &'a str,
    spec: &'a Value,
}

impl Pod<'_> {
    fn container(&self) -> &Value {
        &self.spec["containers"][0]
    }

    /// The environment as arguments: every flag is a variable of its name (controller/runtime/src/flags.rs).
    fn arguments(&self) -> Vec<std::ffi::OsString> {
        let variables = self.container()["env"].as_array().into_iter().flatten();
        let flags = variables.filter_map(|variable| {
            let name = variable["name"].as_str()?.to_lowercase().replace('_', "-");
            Some(format!("--{name}={}", variable["value"].as_str()?).into())
        });
        [self.container()["command"][0].as_str().unwrap_or_default().into()]
            .into_iter()
            .chain(flags)
            .collect()
    }

    /// The volume that a file is in, and the file's path there.
    fn volume(&self, file: &Path) -> Option<(&Value, PathBuf)> {
        let mounts = self.container()["volumeMounts"].as_array()?;
        mounts.iter().find_map(|mount| {
            let path = file.strip_prefix(mount["mountPath"].as_str()?).ok()?;
            let mut volumes = self.spec["volumes"].as_array()?.iter();
            Some((volumes.find(|volume| volume["name"] == mount["name"])?, path.to_owned()))
        })
    }

    /// The text of a file, where it is from a ConfigMap that came along.
    fn shipped_text(&self, file: &Path) -> Option<&str> {
        let (volume, key) = self.volume(file)?;
        let name = &volume["configMap"]["name"];
        let mut maps = self.shipped.iter().filter(|object| object["kind"] == "ConfigMap");
        maps.find(|map| map["metadata"]["name"] == *name)?["data"][key.to_str()?].as_str()
    }
}

impl Surroundings for Pod<'_> {
    fn has(&self, file: &Path) -> bool {
        if file == Path::new(TOKEN) {
            return self.spec["automountServiceAccountToken"] == true;
        }
        let Some((volume, path)) = self.volume(file) else {
            return false;
        };
        match volume
            .as_object()
            .and_then(|volume| volume.keys().find(|key| *key != "name"))
            .map(String::as_str)
        {
            // What the operator gives has the keys that the component's head asks for.
            Some("configMap") => self.shipped_text(file).is_some() || path == Path::new("ca.crt"),
            Some("projected") => path == Path::new("token"),
            Some("csi") => [Path::new("tls.crt"), Path::new("tls.key")].contains(&path.as_path()),
            _ => false,
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "KUBERNETES_SERVICE_HOST").then(|| "10.0.0.1".to_owned())
    }

    fn text(&self, file: &Path) -> Option<String> {
        file.ends_with("namespace").then(|| self.namespace.to_owned())
    }
}

/// The overlay on a real API server, and what the program in its Pod makes of it.
pub(crate) async fn management_plane(world: &World, _: &str) -> Result<()> {
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
    // The Pods' volumes make certificates (domain.md 8-18).
    ensure!(
        !kinds.contains(&"Certificate") && !kinds.contains(&"Issuer"),
        "{kinds:?}"
    );
    let plane = world.lab.plane(SPARE).await?;
    accepted(&plane, &shipped).await?;
    secure(&plane, &shipped).await?;

    let deployment = only(&shipped, "Deployment")?;
    let pod = Pod {
        shipped: &shipped,
        namespace: deployment["metadata"]["namespace"].as_str().context("no namespace")?,
        spec: &deployment["spec"]["template"]["spec"],
    };
    let flags = Flags::read_from(pod.arguments()).context("the environment is refused")?;
    let file = flags.server_config.clone().context("no config file")?;
    let text = pod
        .shipped_text(&file)
        .with_context(|| format!("no {}", file.display()))?;
    let settings = Settings::resolve(&flags, &ServerConfig::parse(&file, text)?, &pod)?;
    as_meant(&settings, &shipped)?;
    is_known_to_the_hub(&pod)?;
    let kubeconfig = flags.federation_kubeconfig.context("no way to the hub")?;
    connects(&pod, &kubeconfig)
}

fn as_meant(settings: &Settings, shipped: &[Value]) -> Result<()> {
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
    let lease = settings.lease.as_ref().context("two replicas without a Lease")?;
    let role = only(shipped, "Role")?;
    ensure!(role["metadata"]["namespace"] == lease.namespace.as_str(), "{role}");
    ensure!(role["rules"][1]["resourceNames"] == json!([lease.name]), "{role}");

    let ports = &only(shipped, "Deployment")?["spec"]["template"]["spec"]["containers"][0]["ports"];
    let port = |name: &str| {
        let mut ports = ports.as_array().into_iter().flatten();
        ports
            .find(|port| port["name"] == name)
            .and_then(|port| port["containerPort"].as_u64())
    };
    let webhook = settings.webhook.as_ref().context("no admission webhook")?.listen.port();
    let health = settings.health.context("no health port")?.port();
    ensure!(
        port("webhook") == Some(webhook.into()) && port("health") == Some(health.into()),
        "{ports}"
    );
    let called = "/webhooks/0/clientConfig/service/port";
    let validating = only(shipped, "ValidatingWebhookConfiguration")?;
    ensure!(validating.pointer(called) == Some(&json!(webhook)), "{validating}");
    Ok(())
}

/// The rights in the hub are those of the user that the Pod's token names.
fn is_known_to_the_hub(pod: &Pod<'_>) -> Result<()> {
    let account = pod.spec["serviceAccountName"].as_str().context("no service account")?;
    let user = format!("system:serviceaccount:{}:{account}", pod.namespace);
    let rights = manifests::build(manifests::HUB_RBAC.as_ref())?;
    let bindings = rights
        .iter()
        .filter(|object| object["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")));
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
    let token = pod.spec["volumes"].as_array().into_iter().flatten();
    let mut token = token.filter(|volume| volume.get("projected").is_some()).cloned();
    let token = json!({ "volumes": [token.next().context("no projected token")?] });
    ensure!(
        token.pointer(audience).and_then(Value::as_str) == cluster.server.as_deref(),
        "{token}"
    );
    Ok(())
}

/// The overlay for a program on a developer's machine, on a real API server.
pub(crate) async fn dev(world: &World, _: &str) -> Result<()> {
    // Not where the other overlay is: both have the same Namespace, and this one without Pod Security.
    let plane = world.lab.plane(DFW).await?;
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
