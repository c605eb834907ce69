//! The configuration file of `--server-config`, as it is written: nothing is looked up here, and defaults that depend on
//! the machine are left open.
//!
//! serde reads it strictly, and [`problem`] says what it found wrong in the words of the file. `null` and an empty text are
//! as if the key were absent, as in Kubernetes.

use std::fmt::Display;
use std::num::NonZeroU16;
use std::path::Path;
use std::str::FromStr;

use schemars::{JsonSchema, Schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

use super::{Address, ConfigError, Host, Listen};

const API_VERSION: &str = "apiserver.config.datumapis.com/v1alpha1";
const KIND: &str = "WorkloadOperator";
/// Keys that later versions of upstream's operator have, and popcell has not. A file that was written for one of them starts
/// popcell too, with a warning.
const LATER: [&str; 4] = [
    "featureFlags",
    "referencedData",
    "consumerScopedProjection",
    "locationSource",
];
/// Port of the webhook server.
const WEBHOOK_PORT: u16 = 9443;

/// What the file says. The default is what holds without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping")]
#[schemars(title = "The configuration file of popcell-controller", transform = head)]
pub struct ServerConfig {
    /// A port for metrics alone; they are on the health port in any case.
    #[serde(rename = "metricsServer", deserialize_with = "or_default")]
    pub metrics: MetricsServer,
    /// The admission webhook; absent: none.
    #[serde(rename = "webhookServer")]
    pub webhook: Option<WebhookServer>,
    /// Where projects are, and what a cell is called.
    #[serde(deserialize_with = "or_default")]
    pub discovery: DiscoveryConfig,
    /// Keys of later versions of upstream's operator that are set: they have no effect.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// `metricsServer`: a port for metrics alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping")]
pub struct MetricsServer {
    /// An address with a port, such as `:8443`; `"0"`, the default, is off.
    #[serde(rename = "bindAddress", deserialize_with = "parsed")]
    #[schemars(with = "Option<String>")]
    pub listen: Listen,
    /// Whether TLS is served, which is the default.
    pub secure_serving: Option<bool>,
    /// Where its certificate is.
    #[serde(deserialize_with = "or_default")]
    pub tls: TlsFiles,
}

/// `webhookServer`: the admission webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping")]
pub struct WebhookServer {
    /// An IP address, or `localhost`; every address by default.
    #[serde(deserialize_with = "parsed")]
    #[schemars(with = "Option<String>")]
    pub host: Host,
    /// 9443 by default.
    pub port: Option<NonZeroU16>,
    /// Where its certificate is.
    #[serde(deserialize_with = "or_default")]
    pub tls: TlsFiles,
    #[serde(rename = "clientCAName", deserialize_with = "no_client_ca")]
    #[schemars(skip)]
    client_ca: Unsupported,
}

/// `tls`: the files of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping")]
pub struct TlsFiles {
    /// Their directory; the default is below the directory for temporary files.
    #[serde(rename = "certDir", deserialize_with = "text")]
    pub directory: Option<String>,
    /// The chain, in PEM; `tls.crt` by default.
    #[serde(rename = "certName", deserialize_with = "text")]
    pub certificate: Option<String>,
    /// Its key, in PEM; `tls.key` by default.
    #[serde(rename = "keyName", deserialize_with = "text")]
    pub key: Option<String>,
    #[serde(deserialize_with = "no_secret_ref")]
    #[schemars(skip)]
    secret_ref: Unsupported,
}

/// `discovery`: where projects are, and what a cell is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping")]
pub struct DiscoveryConfig {
    /// `single`, the default, or `milo`.
    #[serde(deserialize_with = "parsed")]
    pub mode: Mode,
    /// Lists ProjectControlPlanes, and reaches each project by the name of its Service.
    #[serde(rename = "internalServiceDiscovery", deserialize_with = "or_default")]
    pub internal: bool,
    /// Kubeconfig of the API server that has the Projects; the program's own by default.
    #[serde(rename = "discoveryKubeconfigPath", deserialize_with = "text")]
    pub discovery_kubeconfig: Option<String>,
    /// Kubeconfig with credentials for the API servers of projects; that of the list by default.
    #[serde(rename = "projectKubeconfigPath", deserialize_with = "text")]
    pub project_kubeconfig: Option<String>,
    /// Name of the cell's Karmada Cluster.
    #[serde(deserialize_with = "text")]
    pub cluster_name: Option<String>,
    /// Kubeconfig with credentials for claims in the API servers of projects; that of projects by default.
    #[serde(rename = "quotaKubeconfigPath", deserialize_with = "text")]
    pub quota_kubeconfig: Option<String>,
    /// The project whose quota a single cluster uses. Upstream has no such key.
    #[serde(rename = "projectID", deserialize_with = "text")]
    pub project: Option<String>,
}

/// Where projects come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Mode {
    /// The API server that the process runs on is the one project.
    #[default]
    Single,
    /// Projects are listed, and each has an API server of its own.
    Milo,
}

/// A key that upstream's operator knows and popcell does not serve: it may be there and must be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unsupported;

impl FromStr for Mode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "single" => Ok(Self::Single),
            "milo" => Ok(Self::Milo),
            // Upstream declares it and never served it.
            "kind" => Err("kind is not supported: use single or milo"),
            _ => Err("must be single or milo"),
        }
    }
}

impl MetricsServer {
    /// Whether TLS is served.
    pub fn is_secure(&self) -> bool {
        self.secure_serving.unwrap_or(true)
    }
}

impl DiscoveryConfig {
    /// The file with credentials for quota, and the setting that names it. Never the local server's: without either setting
    /// quota is off.
    pub fn quota_file(&self) -> Option<(&'static str, &str)> {
        let own = self.quota_kubeconfig.as_deref();
        let own = own.map(|path| ("discovery.quotaKubeconfigPath", path));
        let fallback = self.project_kubeconfig.as_deref();
        own.or_else(|| fallback.map(|path| ("discovery.projectKubeconfigPath", path)))
    }
}

impl WebhookServer {
    /// Where it listens.
    pub fn address(&self) -> Address {
        self.host.port(self.port.map_or(WEBHOOK_PORT, NonZeroU16::get))
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
        let refused = |path: String, problem: String| ConfigError::Field {
            file: file.to_owned(),
            path,
            problem,
        };
        let mut root: Value = serde_saphyr::from_str(text).map_err(|error| ConfigError::Syntax {
            file: file.to_owned(),
            reason: error.without_snippet().to_string(),
        })?;
        let Some(fields) = root.as_object_mut() else {
            let problem = format!("must be a mapping, not {}", named(&root));
            return Err(refused("the file".to_owned(), problem));
        };
        for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            if fields.remove(key).is_none_or(|value| value != expected) {
                return Err(refused(
                    key.to_owned(),
                    format!("must be {expected}: no other is understood"),
                ));
            }
        }
        let ignored = take_later(fields);
        if let Some(path) = list_in(&root) {
            return Err(refused(
                path,
                "no key takes a list: give one value, or a mapping".to_owned(),
            ));
        }
        let read: Result<Self, _> = serde_path_to_error::deserialize(&root);
        let read = read.map_err(|error| {
            refused(
                error.path().to_string(),
                problem(error.inner(), found(&root, error.path())),
            )
        });
        Ok(Self { ignored, ..read? })
    }
}

/// Takes out the keys of [`LATER`], of the file and of `discovery`; those that are set.
fn take_later(fields: &mut Map<String, Value>) -> Vec<String> {
    let mut ignored = Vec::new();
    let mut take = |section: &mut Map<String, Value>, above: &str| {
        for key in LATER {
            let is_set = |value: Value| !value.is_null() && value != "";
            if section.remove(key).is_some_and(is_set) {
                ignored.push(format!("{above}{key}"));
            }
        }
    };
    take(fields, "");
    if let Some(Value::Object(discovery)) = fields.get_mut("discovery") {
        take(discovery, "discovery.");
    }
    ignored
}

/// What comes before the keys, and those that have no effect, for the JSON schema (docs/reference/config.schema.json).
fn head(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("apiVersion".to_owned(), json!({ "const": API_VERSION }));
        properties.insert("kind".to_owned(), json!({ "const": KIND }));
        for key in LATER {
            let about = "Of later versions of upstream's operator; no effect.";
            properties.insert(key.to_owned(), json!({ "description": about }));
        }
    }
    schema.insert("required".to_owned(), json!(["apiVersion", "kind"]));
}

/// A value, or its default for `null`.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A text, if there is one.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// What a text stands for, or its default without one.
fn parsed<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display> + Default,
{
    match text(from)? {
        Some(text) => text.parse().map_err(D::Error::custom),
        None => Ok(T::default()),
    }
}

fn no_client_ca<'de, D: Deserializer<'de>>(from: D) -> Result<Unsupported, D::Error> {
    unsupported(from, "remove it, and restrict access to the port with a NetworkPolicy")
}

fn no_secret_ref<'de, D: Deserializer<'de>>(from: D) -> Result<Unsupported, D::Error> {
    unsupported(from, "mount the Secret, and name the directory in certDir")
}

/// Refuses a key that upstream's operator knows and popcell does not serve, when it is set.
fn unsupported<'de, D: Deserializer<'de>>(from: D, fix: &str) -> Result<Unsupported, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(Unsupported),
        Value::String(text) if text.is_empty() => Ok(Unsupported),
        Value::Object(fields) if fields.is_empty() => Ok(Unsupported),
        _ => Err(D::Error::custom(format!("is not supported: {fix}"))),
    }
}

/// Where a list is, if there is one: serde would take it for the keys of a section in their order.
fn list_in(value: &Value) -> Option<String> {
    match value {
        Value::Array(_) => Some(String::new()),
        Value::Object(fields) => fields.iter().find_map(|(key, inner)| match list_in(inner)?.as_str() {
            "" => Some(key.clone()),
            below => Some(format!("{key}.{below}")),
        }),
        _ => None,
    }
}

/// The value at a path.
fn found<'v>(root: &'v Value, path: &serde_path_to_error::Path) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        _ => None,
    })
}

/// What is wrong with a value, and the fix. Texts are not shown: one may be a secret in the wrong place.
fn problem(error: &serde_json::Error, found: Option<&Value>) -> String {
    let error = error.to_string();
    let Some((wrong, expected)) = error.rsplit_once(", expected ") else {
        return error;
    };
    if wrong.starts_with("unknown field") {
        let known = expected.trim_start_matches("one of ").replace('`', "");
        return format!("unknown key: remove it; known here: {known}");
    }
    let expected = match expected {
        "a string" => "text; put it in quotes",
        "a boolean" => "true or false, without quotes",
        "a nonzero u16" => "a number from 1 to 65535, without quotes",
        other => other,
    };
    format!(
        "must be {expected}; it is {}",
        found.map_or("something else".to_owned(), named)
    )
}

/// A value in a message.
fn named(value: &Value) -> String {
    match value {
        Value::Null => "empty".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

#[cfg(test)]
mod tests;
