//! What the shipped manifests promise beyond what an API server checks, and that their programs take their flags.

use std::process::Command;

use anyhow::{Context, Result};
use popcell_test_support::artifacts::{self, Profile};
use popcell_test_support::{manifests, workspace};
use serde_json::{Value, json};

/// A component of 90 KB has more than so many characters in base64.
const CHARACTERS_OF_90_KB: usize = 122_880;

fn shipped() -> Result<Vec<Value>> {
    manifests::build("webhook/overlays/default".as_ref())
}

fn find<'a>(shipped: &'a [Value], kind: &str, name: &str) -> Result<&'a Value> {
    let wanted = |object: &&Value| {
        object["kind"] == kind
            && object["metadata"]["name"]
                .as_str()
                .is_some_and(|found| found.starts_with(name))
    };
    let found = shipped.iter().find(wanted);
    found.with_context(|| format!("no {kind} {name}"))
}

/// Restricted Pod Security is the API server's to judge (e2e); it does not ask for these.
#[test]
fn pods_are_hardened_beyond_what_pod_security_asks() -> Result<()> {
    let shipped = shipped()?;
    let deployment = find(&shipped, "Deployment", "popcell-webhook")?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    let budget = find(&shipped, "PodDisruptionBudget", "popcell-webhook")?;
    assert_eq!(budget["spec"]["minAvailable"], 1);
    for workload in [deployment, find(&shipped, "CronJob", "popcell-register")?] {
        let pod = &manifests::pod_template(workload)["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{workload}");
        let containers = pod["containers"].as_array().context("no containers")?;
        for container in containers {
            assert_eq!(
                container["securityContext"]["readOnlyRootFilesystem"], true,
                "{container}"
            );
            assert!(container["resources"]["limits"]["memory"].is_string(), "{container}");
        }
    }
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "health", "{probe}");
    }
    let policy = find(&shipped, "NetworkPolicy", "popcell-webhook")?;
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["egress"], json!([]), "the webhook calls nobody");
    Ok(())
}

/// One node or zone that fails, one late answer, and a replica that never gets ready end no service and block no drain.
#[test]
fn replicas_are_spread_and_probed_and_unready_ones_block_no_drain() -> Result<()> {
    let provider = manifests::build_own(&json!({
        "resources": [format!("../{}", manifests::CELL)], "components": [format!("../{}", manifests::PROVIDER)],
    }))?;
    for (shipped, name, replicas) in [
        (&shipped()?, "popcell-webhook", 2),
        (
            &manifests::build(manifests::MANAGEMENT_PLANE.as_ref())?,
            "compute-manager",
            2,
        ),
        (&provider, "popcell-provider-pod", 1),
    ] {
        let deployment = find(shipped, "Deployment", name)?;
        assert_eq!(deployment["spec"]["replicas"], replicas);
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        assert_eq!(container["readinessProbe"]["failureThreshold"], 2, "{name}");
        // The others begin once it has succeeded.
        let startup = &container["startupProbe"];
        assert_eq!(startup["periodSeconds"], 1, "{name}: {startup}");
        assert_eq!(startup["failureThreshold"], 60, "{name}: {startup}");
        if replicas == 1 {
            continue;
        }
        let budget = find(shipped, "PodDisruptionBudget", name)?;
        assert_eq!(budget["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
        let constraints = pod["topologySpreadConstraints"].as_array().context("not spread")?;
        let keys: Vec<&Value> = constraints.iter().map(|one| &one["topologyKey"]).collect();
        assert_eq!(
            json!(keys),
            json!(["topology.kubernetes.io/zone", "kubernetes.io/hostname"])
        );
        for constraint in constraints {
            assert_eq!(
                constraint["labelSelector"]["matchLabels"]["app.kubernetes.io/name"],
                name
            );
            // A cluster of one node or zone runs all of them too.
            assert_eq!(constraint["whenUnsatisfiable"], "ScheduleAnyway");
        }
    }
    Ok(())
}

/// Platforms that refuse the class outside of kube-system admit it where a quota counts it: both come and go together.
#[test]
fn the_priority_of_the_webhook_comes_with_the_quota_that_admits_it() -> Result<()> {
    let class = "/spec/template/spec/priorityClassName";
    let base = manifests::build("webhook/base".as_ref())?;
    assert!(find(&base, "Deployment", "popcell-webhook")?.pointer(class).is_none());
    assert!(find(&base, "ResourceQuota", "").is_err());
    let shipped = shipped()?;
    let deployment = find(&shipped, "Deployment", "popcell-webhook")?;
    let class = deployment.pointer(class).context("no priority")?;
    let quota = find(&shipped, "ResourceQuota", "popcell-webhook-priority")?;
    assert_eq!(quota["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let counted = json!([{ "scopeName": "PriorityClass", "operator": "In", "values": [class] }]);
    assert_eq!(quota["spec"]["scopeSelector"]["matchExpressions"], counted);
    let pods = quota["spec"]["hard"]["pods"].as_str().context("no number of Pods")?;
    // At a rollout one more.
    assert!(pods.parse::<u64>()? > deployment["spec"]["replicas"].as_u64().context("no replicas")?);
    Ok(())
}

/// With a number in the Deployment, each apply would undo what the autoscaler did.
#[test]
fn an_autoscaler_alone_sets_the_replicas_of_the_webhook() -> Result<()> {
    let shipped = manifests::build_own(&json!({
        "resources": ["../webhook/overlays/default"], "components": ["../webhook/components/autoscaling"],
    }))?;
    let deployment = find(&shipped, "Deployment", "popcell-webhook")?;
    assert!(deployment["spec"].get("replicas").is_none(), "{}", deployment["spec"]);
    let autoscaler = find(&shipped, "HorizontalPodAutoscaler", "popcell-webhook")?;
    assert_eq!(autoscaler["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"] });
    assert_eq!(autoscaler["spec"]["scaleTargetRef"], target);
    // As many as without it: one may be drained.
    assert_eq!(autoscaler["spec"]["minReplicas"], 2);
    let most = autoscaler["spec"]["maxReplicas"].as_u64().context("no bound")?;
    let quota = find(&shipped, "ResourceQuota", "popcell-webhook-priority")?;
    let pods = quota["spec"]["hard"]["pods"].as_str().context("no number of Pods")?;
    assert!(pods.parse::<u64>()? > most, "the quota holds up a rollout at {most}");
    Ok(())
}

/// Whether a selector of Pods selects those of a Deployment.
fn selects(selector: &Value, deployment: &Value) -> bool {
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let among = selector["matchExpressions"].as_array().into_iter().flatten();
    let mut selected = equal.map(|(key, value)| labels[key] == *value).chain(among.map(|one| {
        let mut values = one["values"].as_array().into_iter().flatten();
        let key = one["key"].as_str().unwrap_or_default();
        one["operator"] == "In" && values.any(|value| labels[key] == *value)
    }));
    selected.all(|matches| matches)
}

#[test]
fn a_pod_monitor_scrapes_every_pod_where_its_metrics_are() -> Result<()> {
    for (overlay, components, monitor, scraped) in [
        (
            "webhook/overlays/default",
            json!(["../webhook/components/pod-monitor"]),
            "popcell-webhook",
            vec!["popcell-webhook"],
        ),
        (
            manifests::MANAGEMENT_PLANE,
            json!(["../components/pod-monitor"]),
            "compute-manager",
            vec!["compute-manager"],
        ),
        (
            manifests::CELL,
            json!([format!("../{}", manifests::PROVIDER), "../components/pod-monitor"]),
            "compute-manager",
            vec!["compute-manager", "popcell-provider-pod"],
        ),
    ] {
        let own = json!({ "resources": [format!("../{overlay}")], "components": components });
        let shipped = manifests::build_own(&own)?;
        let monitor = find(&shipped, "PodMonitor", monitor)?;
        let endpoints = json!([{ "port": "health", "path": "/metrics" }]);
        assert_eq!(monitor["spec"]["podMetricsEndpoints"], endpoints);
        for name in scraped {
            let deployment = find(&shipped, "Deployment", name)?;
            assert_eq!(monitor["metadata"]["namespace"], deployment["metadata"]["namespace"]);
            assert!(selects(&monitor["spec"]["selector"], deployment), "{overlay}: {name}");
            let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array();
            assert!(
                ports.into_iter().flatten().any(|port| port["name"] == "health"),
                "{name}"
            );
        }
    }
    Ok(())
}

/// Clouds serve credentials of the node at link-local addresses, by HTTP.
#[test]
fn the_egress_policy_admits_dns_and_api_servers_and_no_link_local_address() -> Result<()> {
    let shipped = manifests::build_own(&json!({
        "resources": [format!("../{}", manifests::CELL)],
        "components": [format!("../{}", manifests::PROVIDER), "../components/egress"],
    }))?;
    let policy = find(&shipped, "NetworkPolicy", "compute-egress")?;
    for name in ["compute-manager", "popcell-provider-pod"] {
        let deployment = find(&shipped, "Deployment", name)?;
        assert_eq!(policy["metadata"]["namespace"], deployment["metadata"]["namespace"]);
        assert!(selects(&policy["spec"]["podSelector"], deployment), "{name}");
    }
    assert_eq!(policy["spec"]["policyTypes"], json!(["Egress"]));
    let rules = policy["spec"]["egress"].as_array().context("no rules")?;
    let mut ports: Vec<(String, bool)> = Vec::new();
    for rule in rules {
        let to = rule["to"].as_array().into_iter().flatten();
        let blocks: Vec<&Value> = to.map(|peer| &peer["ipBlock"]).collect();
        for block in &blocks {
            let excepted = block["except"].to_string();
            assert!(
                excepted.contains("169.254.0.0/16") || excepted.contains("fe80::/10"),
                "{block}"
            );
        }
        for port in rule["ports"].as_array().context("a rule for all ports")? {
            ports.push((format!("{} {}", port["protocol"], port["port"]), blocks.is_empty()));
        }
    }
    let expected = [
        ("\"UDP\" 53", true),
        ("\"TCP\" 53", true),
        ("\"TCP\" 443", false),
        ("\"TCP\" 5443", false),
        ("\"TCP\" 6443", false),
    ];
    assert_eq!(ports, expected.map(|(port, anywhere)| (port.to_owned(), anywhere)));
    Ok(())
}

/// As it is shipped, the value is none that an API server accepts. What it would reject is the policy for the port alone:
/// the one that closes the pods has no such value.
#[test]
fn only_addresses_that_are_given_reach_admission() -> Result<()> {
    assert!(manifests::API_SERVERS.parse::<std::net::IpAddr>().is_err());
    for overlay in [manifests::MANAGEMENT_PLANE, manifests::SINGLE_CLUSTER] {
        let shipped = manifests::build(overlay.as_ref())?;
        let deployment = find(&shipped, "Deployment", "compute-manager")?;
        let scrapers = json!({ "namespaceSelector": { "matchLabels": { "popcell.dev/scrapes-metrics": "true" } } });
        let addresses = json!({ "ipBlock": { "cidr": manifests::ADDRESSES } });
        for (name, from, port) in [
            ("compute-manager", scrapers, json!("health")),
            ("compute-webhook", addresses, json!(9443)),
        ] {
            let policy = find(&shipped, "NetworkPolicy", name)?;
            assert_eq!(policy["metadata"]["namespace"], deployment["metadata"]["namespace"]);
            let spec = json!({
                "podSelector": { "matchLabels": { "app.kubernetes.io/name": "compute-manager" } },
                "policyTypes": ["Ingress"],
                "ingress": [{ "from": [from], "ports": [{ "protocol": "TCP", "port": port }] }],
            });
            assert_eq!(policy["spec"], spec, "{overlay}: {name}");
        }
        let pods = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(pods["app.kubernetes.io/name"], "compute-manager");
    }
    Ok(())
}

/// Pods that have modules from elsewhere than their image, and from where.
fn module_volumes(shipped: &[Value]) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for (kind, name) in [("Deployment", "popcell-webhook"), ("CronJob", "popcell-register")] {
        let pod = &manifests::pod_template(find(shipped, kind, name)?)["spec"];
        let named = |one: &&Value| one["name"] == "modules";
        let volume = pod["volumes"].as_array().context("no volumes")?.iter().find(named);
        let mounts = pod["containers"][0]["volumeMounts"].as_array().context("no mounts")?;
        assert_eq!(volume.is_some(), mounts.iter().any(|one| named(&one)), "{kind}");
        found.extend(volume.cloned());
    }
    Ok(found)
}

#[test]
fn modules_come_from_the_image_unless_a_component_brings_others() -> Result<()> {
    assert_eq!(module_volumes(&shipped()?)?, Vec::<Value>::new());
    let with = |component: &str| {
        let resources = ["../webhook/overlays/default"];
        manifests::build_own(&json!({ "resources": resources, "components": [format!("../{component}")] }))
    };
    let from_config_map = with(manifests::MODULE_CONFIG_MAP)?;
    let modules = find(&from_config_map, "ConfigMap", "popcell-modules-")?;
    let module = modules["binaryData"]["compute.wasm"].as_str().context("no module")?;
    assert!(module.len() > CHARACTERS_OF_90_KB, "{} characters", module.len());
    let volumes = module_volumes(&from_config_map)?;
    assert_eq!(volumes.len(), 2);
    for volume in volumes {
        assert_eq!(volume["configMap"]["name"], modules["metadata"]["name"]);
    }
    let volumes = module_volumes(&with(manifests::MODULE_IMAGE)?)?;
    assert_eq!(volumes.len(), 2);
    assert!(volumes.iter().all(|volume| volume["image"]["reference"].is_string()));
    Ok(())
}

/// 2 would be a flag that there is not; 4 is a file that is not there, outside of a Pod.
#[test]
fn programs_take_the_flags_of_their_pods() -> Result<()> {
    let shipped = shipped()?;
    let programs = artifacts::programs(Profile::Dev)?;
    for (kind, name, program) in [
        ("Deployment", "popcell-webhook", &programs.webhook),
        ("CronJob", "popcell-register", &programs.popcell),
    ] {
        let container = &manifests::pod_template(find(&shipped, kind, name)?)["spec"]["containers"][0];
        let file = program.file_name().context("no name")?.to_string_lossy();
        assert_eq!(container["command"], json!([format!("/usr/local/bin/{file}")]));
        let arguments = container["args"].as_array().context("no arguments")?;
        let output = Command::new(program)
            .args(arguments.iter().filter_map(Value::as_str))
            .output()
            .with_context(|| format!("failed to start {}", program.display()))?;
        assert_eq!(
            output.status.code(),
            Some(4),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Who registers may change its own configuration only: another's answers in front of ours, or would be gone.
#[test]
fn registration_changes_its_own_configuration_only() -> Result<()> {
    let file = workspace::root().join("manifests/webhook/components/register/register.rbac.yaml");
    let text = std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let role = find(&objects, "ClusterRole", "popcell-webhook-registration")?;
    for rule in role["rules"].as_array().context("no rules")? {
        let verbs = rule["verbs"].as_array().context("no verbs")?;
        let changes = verbs
            .iter()
            .any(|verb| ["update", "patch", "delete", "*"].iter().any(|one| verb == one));
        assert!(!changes || rule["resourceNames"] == json!(["popcell"]), "{rule}");
        assert!(!verbs.iter().any(|verb| verb == "deletecollection"), "{rule}");
    }
    Ok(())
}

/// cert-manager makes the certificate, in the Secret that the Pods mount, and gives its CA to what calls. Its driver for volumes is
/// needed by those alone who take the component of it, which takes out what it replaces.
#[test]
fn admission_needs_cert_manager_alone_and_its_driver_by_choice() -> Result<()> {
    const ANNOTATION: &str = "cert-manager.io/inject-ca-from";
    let volume = |shipped: &[Value]| -> Result<Value> {
        let deployment = find(shipped, "Deployment", "compute-manager")?;
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array();
        let mut volumes = volumes.into_iter().flatten();
        let volume = volumes.find(|volume| volume["name"] == "webhook-cert");
        volume.cloned().context("no volume for the certificate")
    };
    for overlay in [manifests::MANAGEMENT_PLANE, manifests::SINGLE_CLUSTER] {
        let shipped = manifests::build(overlay.as_ref())?;
        let certificate = find(&shipped, "Certificate", "compute-serving-cert")?;
        let issuer = find(&shipped, "Issuer", "compute-webhook-ca")?;
        let authority = find(&shipped, "Certificate", "compute-webhook-ca")?;
        assert_eq!(
            volume(&shipped)?["secret"]["secretName"],
            certificate["spec"]["secretName"]
        );
        assert_eq!(certificate["spec"]["issuerRef"]["name"], issuer["metadata"]["name"]);
        assert_eq!(issuer["spec"]["ca"]["secretName"], authority["spec"]["secretName"]);
        let service = find(&shipped, "Service", "compute-webhook")?;
        let host = format!(
            "{}.{}.svc",
            service["metadata"]["name"].as_str().context("no name")?,
            service["metadata"]["namespace"].as_str().context("no namespace")?
        );
        let hosts = certificate["spec"]["dnsNames"].as_array().context("no names")?;
        assert!(hosts.iter().any(|one| *one == host), "{certificate}");
        let by_driver = manifests::build_own(&json!({
            "resources": [format!("../{overlay}")], "components": [format!("../{}", manifests::CSI_CERTIFICATE)],
        }))?;
        for kind in ["Certificate", "Issuer"] {
            assert!(find(&by_driver, kind, "").is_err(), "{overlay}: {kind}");
        }
        let mounted = volume(&by_driver)?;
        assert_eq!(mounted["csi"]["driver"], "csi.cert-manager.io");
        assert!(mounted.get("secret").is_none(), "{mounted}");
        for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
            let authority = &find(&shipped, kind, "compute-")?["metadata"]["annotations"][ANNOTATION];
            assert_eq!(authority, "compute-system/compute-serving-cert", "{overlay}: {kind}");
            let given = &find(&by_driver, kind, "compute-")?["metadata"]["annotations"];
            assert!(given.is_null(), "{overlay}: {kind}: {given}");
        }
    }
    Ok(())
}

/// A binding that an operator adds subjects to would lose them whenever it is applied again: with server-side apply, `subjects`
/// is replaced as a whole. Those of a cell are made from `hub-rbac/cell` and `components/claims/cell`.
#[test]
fn applying_again_takes_no_subject_away() -> Result<()> {
    let with_claims = json!({
        "resources": [format!("../{}", manifests::PROJECT_RBAC)], "components": [format!("../{}", manifests::CLAIMS)],
    });
    let mut built = vec![manifests::build_own(&with_claims)?];
    for overlay in manifests::overlays()? {
        built.push(manifests::build(&overlay)?);
    }
    let mut bindings = 0;
    for object in built.iter().flatten() {
        if ["RoleBinding", "ClusterRoleBinding"]
            .iter()
            .any(|kind| object["kind"] == *kind)
        {
            bindings += 1;
            let subjects = object["subjects"].as_array();
            assert!(subjects.is_some_and(|subjects| !subjects.is_empty()), "{object}");
        }
    }
    assert!(bindings > 0);
    Ok(())
}

/// Two cells are two sets of bindings, and the roles that they name are there.
#[test]
fn each_cell_has_bindings_of_its_own() -> Result<()> {
    let cells = ["dfw", "ord"];
    let hub = manifests::with_cells(manifests::HUB_RBAC, &[], manifests::CELL_ON_HUB, &cells)?;
    let components = [manifests::CLAIMS];
    let bindings = manifests::CELL_IN_PROJECT;
    let project = manifests::with_cells(manifests::PROJECT_RBAC, &components, bindings, &cells)?;
    for (shipped, role, name) in [
        (&hub, "ClusterRole", "popcell-cell"),
        (&hub, "Role", "popcell-cell"),
        (&project, "ClusterRole", "popcell-cell-claims"),
    ] {
        assert_eq!(find(shipped, role, name)?["metadata"]["name"], name);
        for cell in cells {
            let binding = find(shipped, &format!("{role}Binding"), &format!("{name}-{cell}"))?;
            assert_eq!(binding["roleRef"]["kind"], role);
            assert_eq!(binding["roleRef"]["name"], name);
            let user = format!("popcell:cell:{cell}");
            let subjects = json!([
                { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user },
                { "kind": "ServiceAccount", "namespace": "popcell-cells", "name": cell },
            ]);
            assert_eq!(binding["subjects"], subjects, "{binding}");
            // `popcell project apply -f` takes none without it.
            assert_eq!(binding["metadata"]["labels"]["app.kubernetes.io/part-of"], "popcell");
        }
    }
    Ok(())
}

/// On by default: what each project gets, and what one cluster is for all.
#[test]
fn deployments_are_left_to_popcell_wherever_projects_are_set_up() -> Result<()> {
    const POLICY: &str = "compute-deployment-writers";
    for directory in [manifests::PROJECT_RBAC, manifests::SINGLE_CLUSTER] {
        let shipped = manifests::build(directory.as_ref())?;
        let policy = find(&shipped, "ValidatingAdmissionPolicy", POLICY)?;
        let user = find(&shipped, "ClusterRoleBinding", "compute-manager-project")?["subjects"][0]["name"].clone();
        let writers = policy["spec"]["variables"][0]["expression"].as_str();
        assert_eq!(
            writers,
            Some(format!("['{}']", user.as_str().unwrap_or_default()).as_str())
        );
        let rules = &policy["spec"]["matchConstraints"]["resourceRules"];
        assert_eq!(
            rules[0]["resources"],
            json!(["workloaddeployments"]),
            "{directory}: status and finalizers are of others"
        );
        let binding = find(&shipped, "ValidatingAdmissionPolicyBinding", POLICY)?;
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]), "{directory}");
    }
    Ok(())
}

#[test]
fn the_provider_of_pods_is_off_by_default_and_hardened_where_it_is_added() -> Result<()> {
    const NAME: &str = "popcell-provider-pod";
    for overlay in manifests::overlays()? {
        assert!(
            find(&manifests::build(&overlay)?, "Deployment", NAME).is_err(),
            "{}",
            overlay.display()
        );
    }
    for overlay in [manifests::CELL, manifests::SINGLE_CLUSTER] {
        let shipped = manifests::build_own(&json!({
            "resources": [format!("../{overlay}")], "components": [format!("../{}", manifests::PROVIDER)],
        }))?;
        let deployment = find(&shipped, "Deployment", NAME)?;
        // Two at a time would do each thing twice.
        assert_eq!(deployment["spec"]["replicas"], 1);
        assert_eq!(deployment["spec"]["strategy"], json!({ "type": "Recreate" }));
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["image"], "ghcr.io/popcell/popcell:0.1.0");
        let file = artifacts::programs(Profile::Dev)?.provider;
        let file = file.file_name().context("no name")?.to_string_lossy();
        assert_eq!(container["command"], json!([format!("/usr/local/bin/{file}")]));
        let account = find(&shipped, "ServiceAccount", NAME)?;
        assert_eq!(account["automountServiceAccountToken"], false);
        // The policies are about the user that the Pod is.
        for policy in shipped.iter().filter(|one| one["kind"] == "ValidatingAdmissionPolicy") {
            let condition = policy["spec"]["matchConditions"][0]["expression"]
                .as_str()
                .unwrap_or_default();
            let is_its_own = policy["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(NAME));
            let user = format!("'system:serviceaccount:compute-system:{NAME}'");
            assert_eq!(condition.contains(&user), is_its_own, "{policy}");
        }
    }
    Ok(())
}
