use std::path::PathBuf;

use super::*;

const HEAD: &str = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: WorkloadOperator\n";

fn parse(rest: &str) -> Result<ServerConfig, String> {
    let file = Path::new("/etc/config.yaml");
    ServerConfig::parse(file, &format!("{HEAD}{rest}")).map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_of_the_right_kind_equals_no_file() {
    for rest in [
        "",
        "discovery:\n",
        "discovery: {}\nmetricsServer: null\n",
        "discovery: {mode: single, clusterName: \"\"}\n",
        "metricsServer: {bindAddress: \"0\", tls: {secretRef: {}, certDir: \"\"}}\n",
    ] {
        assert_eq!(parse(rest).unwrap(), ServerConfig::default(), "{rest}");
    }
    for switch in ["true", "null"] {
        let config = parse(&format!("metricsServer: {{secureServing: {switch}}}\n")).unwrap();
        assert!(config.metrics.is_secure(), "{switch}");
    }
}

#[test]
fn every_key_of_the_file_is_read() {
    let config = parse(
        "metricsServer: {bindAddress: \":8443\", secureServing: false,
  tls: {certDir: /m, certName: m.crt, keyName: m.key}}
webhookServer: {host: 127.0.0.1, port: 9444, clientCAName: \"\", tls: {certDir: /w}}
discovery:
  mode: milo
  internalServiceDiscovery: true
  discoveryKubeconfigPath: /d
  projectKubeconfigPath: /p
  clusterName: dfw-01
  quotaKubeconfigPath: /q
  projectID: p1
",
    )
    .unwrap();
    let files = |directory: &str, certificate: &str, key: &str| TlsFiles {
        directory: Some(directory.to_owned()),
        certificate: Some(certificate.to_owned()),
        key: Some(key.to_owned()),
        secret_ref: Unsupported,
    };
    let metrics = MetricsServer {
        listen: ":8443".parse().unwrap(),
        secure_serving: Some(false),
        tls: files("/m", "m.crt", "m.key"),
    };
    let webhook = WebhookServer {
        host: "127.0.0.1".parse().unwrap(),
        port: NonZeroU16::new(9444),
        tls: TlsFiles {
            directory: Some("/w".to_owned()),
            ..TlsFiles::default()
        },
        client_ca: Unsupported,
    };
    let discovery = DiscoveryConfig {
        mode: Mode::Milo,
        internal: true,
        discovery_kubeconfig: Some("/d".to_owned()),
        project_kubeconfig: Some("/p".to_owned()),
        cluster_name: Some("dfw-01".to_owned()),
        quota_kubeconfig: Some("/q".to_owned()),
        project: Some("p1".to_owned()),
    };
    assert_eq!((config.metrics, config.discovery), (metrics, discovery));
    assert_eq!(config.webhook, Some(webhook));
    let default = parse("webhookServer: {}\n").unwrap().webhook.unwrap();
    assert_eq!(default.address(), ":9443".parse().unwrap());
}

#[test]
fn an_unknown_key_or_a_value_of_another_type_is_refused_by_name() {
    for (rest, path, problem) in [
        (
            "discovry: {}\n",
            "discovry",
            "unknown key: remove it; known here: metricsServer, webhookServer, discovery",
        ),
        ("discovery: {Mode: milo}\n", "discovery.Mode", "unknown key"),
        (
            "webhookServer: {tls: {cert: a}}\n",
            "webhookServer.tls.cert",
            "known here: certDir, certName, keyName, secretRef",
        ),
        ("featureFlag: {}\n", "featureFlag", "unknown key"),
        (
            "webhookServer: {featureFlags: {}}\n",
            "webhookServer.featureFlags",
            "unknown key",
        ),
        ("discovery: {mode: kind}\n", "discovery.mode", "use single or milo"),
        ("discovery: {mode: kcp}\n", "discovery.mode", "must be single or milo"),
        (
            "discovery: {mode: 3}\n",
            "discovery.mode",
            "must be text; put it in quotes; it is 3",
        ),
        ("discovery: [milo]\n", "discovery", "no key takes a list"),
        (
            "webhookServer: {tls: {certDir: [secret]}}\n",
            "webhookServer.tls.certDir",
            "give one value",
        ),
        ("discovery: secret\n", "discovery", "must be a mapping; it is text"),
        (
            "discovery: {internalServiceDiscovery: \"true\"}\n",
            "discovery.internalServiceDiscovery",
            "without quotes",
        ),
        (
            "metricsServer: {bindAddress: 0}\n",
            "metricsServer.bindAddress",
            "put it in quotes",
        ),
        (
            "metricsServer: {bindAddress: \"8443\"}\n",
            "metricsServer.bindAddress",
            "such as :8081",
        ),
        (
            "webhookServer: {port: \"9443\"}\n",
            "webhookServer.port",
            "without quotes",
        ),
        (
            "webhookServer: {port: 0}\n",
            "webhookServer.port",
            "1 to 65535, without quotes; it is 0",
        ),
        ("webhookServer: {port: 65536}\n", "webhookServer.port", "1 to 65535"),
        (
            "webhookServer: {host: web}\n",
            "webhookServer.host",
            "leave the host out",
        ),
        (
            "webhookServer: {clientCAName: ca.crt}\n",
            "webhookServer.clientCAName",
            "is not supported",
        ),
        (
            "webhookServer: {tls: {secretRef: {name: a}}}\n",
            "webhookServer.tls.secretRef",
            "name the directory in certDir",
        ),
    ] {
        let message = parse(rest).unwrap_err();
        let expected = format!("failed to accept /etc/config.yaml: {path}: ");
        assert!(
            message.starts_with(&expected) && message.contains(problem),
            "{rest}: {message}"
        );
    }
}

#[test]
fn keys_of_later_upstream_versions_are_ignored_and_named() {
    for (rest, ignored) in [
        ("featureFlags: {a: true}\n", &["featureFlags"][..]),
        (
            "featureFlags: [a, b]\nlocationSource: x\n",
            &["featureFlags", "locationSource"],
        ),
        (
            "referencedData: {enabled: true}\nconsumerScopedProjection: false\n",
            &["referencedData", "consumerScopedProjection"],
        ),
        ("discovery: {locationSource: x}\n", &["discovery.locationSource"]),
        ("featureFlags:\nlocationSource: \"\"\n", &[]),
    ] {
        let config = parse(rest).unwrap();
        assert_eq!(config.ignored, ignored, "{rest}");
        let other = ServerConfig {
            ignored: Vec::new(),
            ..config
        };
        assert_eq!(other, ServerConfig::default(), "{rest}");
    }
    let wrong = parse("featureFlags: {}\ndiscovry: {}\n").unwrap_err();
    assert!(wrong.contains("discovry: unknown key"), "{wrong}");
}

#[test]
fn another_version_or_kind_and_what_is_no_yaml_are_refused() {
    let parse = |text: &str| {
        let refused = ServerConfig::parse(Path::new("c.yaml"), text);
        refused.unwrap_err().to_string()
    };
    for (text, expected) in [
        (
            "kind: WorkloadOperator\n",
            "c.yaml: apiVersion: must be apiserver.config.datumapis.com/v1alpha1",
        ),
        (
            "apiVersion: v1\nkind: WorkloadOperator\n",
            "c.yaml: apiVersion: must be",
        ),
        (
            "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: Operator\n",
            "c.yaml: kind: must be WorkloadOperator",
        ),
        ("", "c.yaml: the file: must be a mapping"),
        ("- a\n", "c.yaml: the file: must be a mapping, not a list"),
        ("discovery: {\n", "failed to understand c.yaml: "),
        ("kind: a\nkind: b\n", "failed to understand c.yaml: "),
        ("kind: a\n---\nkind: b\n", "failed to understand c.yaml: "),
    ] {
        let message = parse(text);
        assert!(message.contains(expected), "{text}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let missing = ServerConfig::read(Path::new("/no/such/file")).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "failed to read /no/such/file, which --server-config names"
    );
}

fn schema_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.schema.json")
}

fn schema() -> String {
    format!("{:#}\n", schemars::schema_for!(ServerConfig).to_value())
}

#[test]
fn the_schema_in_docs_is_that_of_the_file() {
    let found = std::fs::read_to_string(schema_file()).unwrap_or_default();
    assert!(
        found == schema(),
        "docs/reference/config.schema.json is not what the types say: run \
         `cargo test -p popcell-client write_the_schema -- --ignored`"
    );
}

#[test]
#[ignore = "writes docs/reference/config.schema.json"]
fn write_the_schema() {
    std::fs::write(schema_file(), schema()).unwrap();
}
