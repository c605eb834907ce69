use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::*;

/// A machine with files (by path, with their text) and variables (by name).
#[derive(Clone, Default)]
struct FakeEnvironment {
    files: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
}

impl FakeEnvironment {
    /// Files `/h`, `/l`, `/d`, `/p`, `/q` for kubeconfigs, and certificates where they are by default.
    fn whole() -> Self {
        let ports = ["webhook", "metrics"];
        let certificates = ports.map(|port| format!("/tmp/k8s-{port}-server/serving-certs/tls"));
        let certificates = certificates
            .iter()
            .flat_map(|base| [format!("{base}.crt"), format!("{base}.key")]);
        let kubeconfigs = ["/h", "/l", "/d", "/p", "/q"].map(str::to_owned);
        Self {
            files: kubeconfigs
                .into_iter()
                .chain(certificates)
                .map(|path| (path, String::new()))
                .collect(),
            variables: [("KUBECONFIG".to_owned(), "/l".to_owned())].into(),
        }
    }

    fn in_pod(mut self) -> Self {
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        self.variables
            .insert("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
        self.files.insert(format!("{account}/token"), "t".to_owned());
        self.files.insert(format!("{account}/namespace"), "own".to_owned());
        self
    }

    fn without(mut self, file: &str) -> Self {
        assert!(self.files.remove(file).is_some(), "{file}");
        self
    }
}

impl ProcessEnvironment for FakeEnvironment {
    fn has(&self, file: &Path) -> bool {
        file.to_str().is_some_and(|path| self.files.contains_key(path))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn text(&self, file: &Path) -> Option<String> {
        self.files.get(file.to_str()?).cloned()
    }
}

/// Settings from short forms: `management`, `cell` and `hub` in a line of flags; the file without its head.
fn resolve_in(environment: &FakeEnvironment, line: &str, file: &str) -> Result<Settings, String> {
    let long = |word: &str| match word {
        "management" => "--enable-management-controllers".to_owned(),
        "cell" => "--enable-cell-controllers".to_owned(),
        "hub" => "--federation-kubeconfig=/h".to_owned(),
        other => other.to_owned(),
    };
    let words = line.split_ascii_whitespace().map(long).map(OsString::from);
    let flags = Flags::read_from([OsString::from("popcell-controller")].into_iter().chain(words)).unwrap();
    let head = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: WorkloadOperator\n";
    let file = ServerConfig::parse(Path::new("c.yaml"), &format!("{head}{file}")).unwrap();
    Settings::resolve(&flags, &file, environment).map_err(|error| error.to_string())
}

fn resolve(line: &str, file: &str) -> Result<Settings, String> {
    resolve_in(&FakeEnvironment::whole(), line, file)
}

#[test]
fn a_hub_namespace_may_have_what_a_project_may_have_unless_it_is_said() {
    for (line, expected) in [
        ("", 20_000),
        ("--max-project-objects=50000", 50_000),
        ("--hub-instances-per-namespace=", 20_000),
        ("--hub-instances-per-namespace=300 --max-project-objects=50000", 300),
        ("--hub-instances-per-namespace=0", 0),
    ] {
        let settings = resolve(&format!("management hub {line}"), "").unwrap();
        assert_eq!(settings.hub_instances, expected, "{line}");
    }
}

#[test]
fn refused_combinations_name_both_settings() {
    for (line, file, expected) in [
        ("cell hub", "", ["--federation-kubeconfig", "discovery.clusterName"]),
        (
            "cell",
            "discovery: {quotaKubeconfigPath: /q}",
            ["discovery.quotaKubeconfigPath", "discovery.clusterName"],
        ),
        (
            "cell",
            "discovery: {projectKubeconfigPath: /p}",
            ["discovery.projectKubeconfigPath", "discovery.clusterName"],
        ),
        (
            "management",
            "discovery: {mode: milo}",
            ["discovery.mode milo", "--federation-kubeconfig"],
        ),
        (
            "management cell hub",
            "",
            ["--enable-cell-controllers", "--federation-kubeconfig"],
        ),
        (
            "management cell hub",
            "discovery: {mode: milo, clusterName: a}",
            ["--enable-management-controllers", "--federation-kubeconfig"],
        ),
        (
            "management cell",
            "discovery: {clusterName: a, quotaKubeconfigPath: /q}",
            ["discovery.quotaKubeconfigPath", "discovery.projectID"],
        ),
        (
            "cell hub",
            "discovery: {clusterName: a, quotaKubeconfigPath: /q, projectID: p}",
            ["discovery.projectID", "--federation-kubeconfig"],
        ),
        (
            "management",
            "discovery: {projectID: p}",
            ["discovery.projectID", "--enable-cell-controllers"],
        ),
        (
            "--federation-context=x",
            "",
            ["--federation-context", "--federation-kubeconfig"],
        ),
    ] {
        let message = resolve(line, file).unwrap_err();
        for setting in expected {
            assert!(message.contains(setting), "{line} {file}: {message}");
        }
    }
}

#[test]
fn combinations_of_controllers_hub_and_quota_that_may_run_together() {
    let hubless = "discovery: {clusterName: a}";
    let quota = "discovery: {clusterName: a, quotaKubeconfigPath: /q}";
    for (line, file, [management, cell, hub, quota]) in [
        ("", "", [false, false, false, false]),
        ("management", "", [true, false, false, false]),
        ("management hub", "", [true, false, true, false]),
        ("management hub", "discovery: {mode: milo}", [true, false, true, false]),
        (
            "management hub",
            "discovery: {mode: milo, projectKubeconfigPath: /p}",
            [true, false, true, false],
        ),
        ("cell", "", [false, true, false, false]),
        ("cell", hubless, [false, true, false, false]),
        ("cell hub", hubless, [false, true, true, false]),
        ("cell", quota, [false, true, false, true]),
        ("cell hub", quota, [false, true, true, true]),
        ("management cell", "", [true, true, false, false]),
        ("management=false cell", "", [false, true, false, false]),
        (
            "management cell",
            "discovery: {clusterName: a, quotaKubeconfigPath: /q, projectID: p}",
            [true, true, false, true],
        ),
        (
            "management=false cell",
            "discovery: {clusterName: a, quotaKubeconfigPath: /q, projectID: p}",
            [false, true, false, true],
        ),
    ] {
        let line = line.replace("management=false", "--enable-management-controllers=false");
        let settings = resolve(&line, file).unwrap();
        let found = [
            settings.controllers.management,
            settings.controllers.cell,
            settings.hub.is_some(),
            settings.quota.is_some(),
        ];
        assert_eq!(found, [management, cell, hub, quota], "{line} {file}");
        assert_eq!(settings.quota_is_off(), cell && !quota, "{line} {file}");
    }
}

#[test]
fn quota_uses_its_own_file_or_that_of_projects_and_never_the_local_server() {
    let file = |rest: &str| format!("discovery: {{clusterName: a{rest}}}");
    let quota = |rest: &str| {
        resolve_in(&FakeEnvironment::whole().in_pod(), "cell", &file(rest))
            .unwrap()
            .quota
    };
    let named = |setting, path: &str| Some(Credentials::file(setting, path));
    let credentials = |rest| quota(rest).map(|quota| quota.credentials);
    assert_eq!(credentials(""), None);
    let both = ", quotaKubeconfigPath: /q, projectKubeconfigPath: /p";
    assert_eq!(credentials(both), named("discovery.quotaKubeconfigPath", "/q"));
    let fallback = ", projectKubeconfigPath: /p";
    assert_eq!(credentials(fallback), named("discovery.projectKubeconfigPath", "/p"));
}

#[test]
fn files_that_are_set_and_missing() {
    let certificates = "/tmp/k8s-webhook-server/serving-certs";
    let serving = format!("{certificates}/tls.crt");
    let key = format!("{certificates}/tls.key");
    let metrics = "/tmp/k8s-metrics-server/serving-certs/tls.crt";
    for (missing, line, file, setting) in [
        ("/h", "management hub", "", "--federation-kubeconfig"),
        ("/l", "--kubeconfig=/l", "", "--kubeconfig"),
        (
            "/d",
            "",
            "discovery: {discoveryKubeconfigPath: /d}",
            "discovery.discoveryKubeconfigPath",
        ),
        (
            "/p",
            "",
            "discovery: {projectKubeconfigPath: /p}",
            "discovery.projectKubeconfigPath",
        ),
        (
            "/q",
            "",
            "discovery: {quotaKubeconfigPath: /q}",
            "discovery.quotaKubeconfigPath",
        ),
        (&serving, "", "webhookServer: {}", "webhookServer.tls"),
        (&key, "", "webhookServer: {}", "webhookServer.tls"),
        (
            metrics,
            "",
            "metricsServer: {bindAddress: \":8443\"}",
            "metricsServer.tls",
        ),
    ] {
        resolve(line, file).unwrap();
        let message = resolve_in(&FakeEnvironment::whole().without(missing), line, file).unwrap_err();
        let expected = format!("failed to find {missing}, which {setting} names");
        assert!(message.starts_with(&expected), "{message}");
    }
    // Certificates of a port that is off, or plain, are not looked for.
    for file in ["", "metricsServer: {bindAddress: \":8443\", secureServing: false}"] {
        resolve_in(&FakeEnvironment::whole().without(metrics), "", file).unwrap();
    }
}

#[test]
fn values_that_cannot_be() {
    for (line, file, expected) in [
        (
            "cell",
            "discovery: {clusterName: DFW_1}",
            "discovery.clusterName: \"DFW_1\" must be the name",
        ),
        (
            "management cell",
            "discovery: {clusterName: a, quotaKubeconfigPath: /q, projectID: ../x}",
            "discovery.projectID: project id \"../x\" is not a DNS-1123 subdomain",
        ),
    ] {
        let message = resolve(line, file).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_local_server_is_the_flags_the_pods_or_that_of_the_variable() {
    let local = |environment: &FakeEnvironment, line| resolve_in(environment, line, "").map(|settings| settings.local);
    let environment = FakeEnvironment::whole();
    let variable = Credentials::Variable { files: "/l".to_owned() };
    assert_eq!(local(&environment, ""), Ok(variable));
    assert_eq!(local(&environment.clone().in_pod(), ""), Ok(Credentials::InCluster));
    let flag = Credentials::file("--kubeconfig", "/l");
    assert_eq!(local(&environment.in_pod(), "--kubeconfig=/l"), Ok(flag));
    let nowhere = local(&FakeEnvironment::default(), "").unwrap_err();
    assert!(nowhere.contains("give --kubeconfig"), "{nowhere}");
}

#[test]
fn milo_mode_lists_projects_and_reaches_them_by_path_or_service() {
    let milo = |rest: &str| {
        let file = format!("discovery: {{mode: milo{rest}}}");
        let Discovery::Milo(milo) = resolve("", &file).unwrap().discovery else {
            panic!("not milo")
        };
        milo
    };
    let local = Credentials::Variable { files: "/l".to_owned() };
    let plain = milo("");
    assert_eq!((&plain.projects, &plain.template), (&local, &local));
    assert_eq!(
        (plain.addressing, plain.kind, plain.condition),
        (Addressing::Path, kind::PROJECT, "Ready")
    );
    let given = milo(", discoveryKubeconfigPath: /d");
    let discovery = Credentials::file("discovery.discoveryKubeconfigPath", "/d");
    assert_eq!((&given.projects, &given.template), (&discovery, &discovery));
    let inside = milo(", internalServiceDiscovery: true, projectKubeconfigPath: /p");
    assert_eq!(
        (inside.addressing, inside.condition),
        (Addressing::Service, "ControlPlaneReady")
    );
    assert_eq!(inside.kind, kind::PROJECT_CONTROL_PLANE);
    assert_eq!(
        inside.template,
        Credentials::file("discovery.projectKubeconfigPath", "/p")
    );
    assert_eq!(inside.projects, local);
}

#[test]
fn no_lease_is_taken_where_no_other_process_writes_or_nothing_is_written() {
    let lease = |environment: &FakeEnvironment, line| {
        let settings = resolve_in(environment, line, "").unwrap();
        settings.lease.map(|lease| (lease.namespace, lease.name))
    };
    let (environment, name) = (FakeEnvironment::whole(), "e98b06c6.datumapis.com");
    assert_eq!(lease(&environment, ""), Some(("compute-system".to_owned(), name)));
    assert_eq!(lease(&environment.clone().in_pod(), ""), Some(("own".to_owned(), name)));
    let given = lease(&environment.clone().in_pod(), "--leader-elect-namespace=other");
    assert_eq!(given, Some(("other".to_owned(), name)));
    assert_eq!(lease(&environment, "--leader-elect=false"), None);
    assert_eq!(lease(&environment, "--dry-run"), None);
    let namespace = resolve_in(&environment.in_pod(), "--leader-elect-namespace=other", "")
        .unwrap()
        .namespace;
    assert_eq!(namespace, "own");
}

#[test]
fn ports() {
    let off = resolve("--health-probe-bind-address=0", "").unwrap();
    assert_eq!((off.health, off.webhook, off.metrics), (None, None, None));
    let file = "webhookServer: {}\nmetricsServer: {bindAddress: \"127.0.0.1:8443\"}";
    let on = resolve("", file).unwrap();
    assert_eq!(on.health, Some("0.0.0.0:8081".parse().unwrap()));
    let webhook = on.webhook.unwrap();
    assert_eq!(webhook.listen, "0.0.0.0:9443".parse().unwrap());
    let key = Path::new("/tmp/k8s-webhook-server/serving-certs/tls.key");
    assert_eq!(webhook.certificate.key, key);
    let metrics = on.metrics.unwrap();
    assert_eq!(metrics.listen, "127.0.0.1:8443".parse().unwrap());
    assert!(metrics.certificate.is_some());
    let mut environment = FakeEnvironment::whole();
    environment.files.insert("/proc/net/if_inet6".to_owned(), String::new());
    let dual = resolve_in(
        &environment,
        "",
        "metricsServer: {bindAddress: \":80\", secureServing: false}",
    )
    .unwrap();
    assert_eq!(dual.health, Some("[::]:8081".parse().unwrap()));
    let plain = Metrics {
        listen: "[::]:80".parse().unwrap(),
        certificate: None,
    };
    assert_eq!(dual.metrics, Some(plain));
    let elsewhere = resolve_in(
        &FakeEnvironment {
            variables: [
                ("TMPDIR".to_owned(), "/x".to_owned()),
                ("KUBECONFIG".to_owned(), "/l".to_owned()),
            ]
            .into(),
            ..FakeEnvironment::default()
        },
        "",
        "webhookServer: {}",
    );
    let message = elsewhere.unwrap_err();
    assert!(
        message.contains("/x/k8s-webhook-server/serving-certs/tls.crt"),
        "{message}"
    );
}

#[test]
fn what_is_odd_is_reported_and_starts() {
    for (line, file, expected) in [
        ("", "", Some("nothing is enabled")),
        ("", "webhookServer: {}", None),
        ("management", "", Some("nothing is federated")),
        ("management hub", "", None),
        ("cell", "", Some("not written back")),
        ("management cell", "", None),
        (
            "management hub",
            "discovery: {internalServiceDiscovery: true}",
            Some("count in discovery.mode milo only"),
        ),
        (
            "management hub",
            "discovery: {quotaKubeconfigPath: /q}",
            Some("--enable-cell-controllers only"),
        ),
        (
            "management hub",
            "featureFlags: {a: true}\nreferencedData: {}\nlocationSource: binding",
            Some("no effect: featureFlags, referencedData, locationSource"),
        ),
    ] {
        let warnings = resolve(line, file).unwrap().warnings;
        assert_eq!(
            warnings.len(),
            usize::from(expected.is_some()),
            "{line} {file}: {warnings:?}"
        );
        assert!(
            warnings
                .iter()
                .all(|warning| expected.is_some_and(|part| warning.contains(part)))
        );
    }
}

#[test]
fn one_project_may_have_every_worker_and_one_of_many_half_of_them() {
    let share = |file| {
        let Workers { total, share } = resolve("--workers=9", file).unwrap().workers;
        (total, share)
    };
    assert_eq!(share(""), (9, 6));
    assert_eq!(share("discovery: {mode: milo}"), (9, 5));
}

#[test]
fn the_file_that_a_flag_names_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let words = [
            "popcell-controller".into(),
            "--server-config".into(),
            file.clone().into_os_string(),
        ];
        Settings::read(&Flags::read_from(words).unwrap())
            .unwrap_err()
            .to_string()
    };
    let head = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: WorkloadOperator\n";
    let unknown = read(&format!("{head}discovery: {{cluster: a}}\n"));
    assert!(
        unknown.contains(&format!("{}: discovery.cluster: unknown key", file.display())),
        "{unknown}"
    );
    let missing = read(&format!("{head}discovery: {{quotaKubeconfigPath: /no/such}}\n"));
    assert!(
        missing.contains("failed to find /no/such, which discovery.quotaKubeconfigPath names"),
        "{missing}"
    );
}
