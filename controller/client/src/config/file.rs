//! The configuration file of `--server-config`, as it is written: nothing is looked up here, and defaults that depend on
//! the machine are left open.

use std::path::Path;

use super::address::{Address, Listen};
use super::error::ConfigError;
use super::section::Section;

const API_VERSION: &str = "apiserver.config.datumapis.com/v1alpha1";
const KIND: &str = "WorkloadOperator";
/// Port of the webhook server.
const WEBHOOK_PORT: u16 = 9443;

/// What the file says. The default is what holds without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// `metricsServer`.
    pub metrics: MetricsServer,
    /// `webhookServer`; absent: no webhook.
    pub webhook: Option<WebhookServer>,
    /// `discovery`.
    pub discovery: DiscoveryConfig,
}

/// `metricsServer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsServer {
    /// `bindAddress`; `"0"`, the default, is off.
    pub listen: Listen,
    /// `secureServing`, default true.
    pub secure: bool,
    /// `tls`.
    pub tls: TlsFiles,
}

/// `webhookServer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookServer {
    /// `host` and `port`.
    pub address: Address,
    /// `tls`.
    pub tls: TlsFiles,
}

/// `tls`: where certificate and key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// `certDir`; the default is below the directory for temporary files.
    pub directory: Option<String>,
    /// `certName`.
    pub certificate: String,
    /// `keyName`.
    pub key: String,
}

/// `discovery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// `mode`.
    pub mode: Mode,
    /// `internalServiceDiscovery`.
    pub internal: bool,
    /// `discoveryKubeconfigPath`: the API server that has the Projects.
    pub discovery_kubeconfig: Option<String>,
    /// `projectKubeconfigPath`: credentials for the API servers of projects.
    pub project_kubeconfig: Option<String>,
    /// `clusterName`: name of the cell's Karmada Cluster.
    pub cluster_name: Option<String>,
    /// `quotaKubeconfigPath`: credentials for claims in the API servers of projects.
    pub quota_kubeconfig: Option<String>,
    /// `projectID`, a key of ours: the project that a single cluster stands for. See [`super::Settings::quota`].
    pub project: Option<String>,
}

/// `discovery.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The API server that the process runs on is the one project.
    #[default]
    Single,
    /// Projects are listed, and each has an API server of its own.
    Milo,
}

impl Default for MetricsServer {
    fn default() -> Self {
        Self {
            listen: Listen::Off,
            secure: true,
            tls: TlsFiles::default(),
        }
    }
}

impl Default for TlsFiles {
    fn default() -> Self {
        Self {
            directory: None,
            certificate: "tls.crt".to_owned(),
            key: "tls.key".to_owned(),
        }
    }
}

impl ServerConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// See [`Self::parse`]; and a file that cannot be read.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Read {
            file: file.to_owned(),
            source,
        })?;
        Self::parse(file, &text)
    }

    /// Decodes a text; `file` is for messages.
    ///
    /// # Errors
    /// What is no YAML, of another version or kind, has keys that are not known, or values that cannot be.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut root = Section::root(file, text)?;
        for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            if root.text(key)?.as_deref() != Some(expected) {
                return Err(root.refuse(key, format!("must be {expected}: no other is understood")));
            }
        }
        let config = Self {
            metrics: root
                .section("metricsServer")?
                .map(metrics)
                .transpose()?
                .unwrap_or_default(),
            webhook: root.section("webhookServer")?.map(webhook).transpose()?,
            discovery: root
                .section("discovery")?
                .map(discovery)
                .transpose()?
                .unwrap_or_default(),
        };
        root.end()?;
        Ok(config)
    }
}

fn metrics(mut section: Section<'_>) -> Result<MetricsServer, ConfigError> {
    let default = MetricsServer::default();
    let listen = match section.text("bindAddress")? {
        None => default.listen,
        Some(text) => text
            .parse()
            .map_err(|wrong: String| section.refuse("bindAddress", wrong))?,
    };
    let server = MetricsServer {
        listen,
        secure: section.switch("secureServing")?.unwrap_or(default.secure),
        tls: section.section("tls")?.map(tls).transpose()?.unwrap_or_default(),
    };
    section.end()?;
    Ok(server)
}

fn webhook(mut section: Section<'_>) -> Result<WebhookServer, ConfigError> {
    let host = section.text("host")?.unwrap_or_default();
    let port = section.port("port")?.unwrap_or(WEBHOOK_PORT);
    let address = Address::new(&host, port).map_err(|wrong| section.refuse("host", wrong))?;
    section.unsupported(
        "clientCAName",
        "remove it, and restrict by a NetworkPolicy who reaches the port",
    )?;
    let server = WebhookServer {
        address,
        tls: section.section("tls")?.map(tls).transpose()?.unwrap_or_default(),
    };
    section.end()?;
    Ok(server)
}

fn tls(mut section: Section<'_>) -> Result<TlsFiles, ConfigError> {
    let default = TlsFiles::default();
    section.unsupported("secretRef", "mount the Secret, and name the directory in certDir")?;
    let files = TlsFiles {
        directory: section.text("certDir")?,
        certificate: section.text("certName")?.unwrap_or(default.certificate),
        key: section.text("keyName")?.unwrap_or(default.key),
    };
    section.end()?;
    Ok(files)
}

fn discovery(mut section: Section<'_>) -> Result<DiscoveryConfig, ConfigError> {
    let mode = match section.text("mode")?.as_deref() {
        None | Some("single") => Mode::Single,
        Some("milo") => Mode::Milo,
        // Upstream declares it and never served it.
        Some("kind") => return Err(section.refuse("mode", "kind is not supported: use single or milo")),
        Some(_) => return Err(section.refuse("mode", "must be single or milo")),
    };
    let config = DiscoveryConfig {
        mode,
        internal: section.switch("internalServiceDiscovery")?.unwrap_or(false),
        discovery_kubeconfig: section.text("discoveryKubeconfigPath")?,
        project_kubeconfig: section.text("projectKubeconfigPath")?,
        cluster_name: section.text("clusterName")?,
        quota_kubeconfig: section.text("quotaKubeconfigPath")?,
        project: section.text("projectID")?,
    };
    section.end()?;
    Ok(config)
}

#[cfg(test)]
mod tests;
